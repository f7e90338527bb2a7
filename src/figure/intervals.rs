//! Interval charts: each row has a point estimate and its interval.

use gradus_drawing::fonts;
use plotters::style::text_anchor::HPos;

use super::axis::Axis;
use super::brush::Brush;
use super::frame::{BELOW, Frame, Margins, Rect, extremes, roomy};
use super::style::{FRAME, Look, SLACK, TEXT, THRESHOLD, TICK_EM, crisp};

const ROW: f64 = 44.0;
const LABEL_LIMIT: f64 = 480.0;

/// A point estimate with its interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Interval {
    /// Label of the row.
    pub label: String,
    /// The point estimate.
    pub point: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
    /// The numbers that were estimated from, as faint dots.
    pub dots: Vec<f64>,
}

/// Intervals, one per row. If panels side by side have the same row labels, only the first of them shows the labels.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Intervals {
    /// Label of the x axis, with its unit.
    pub x_label: String,
    /// Range of the x axis; `None`: the range of the data, extended to 0 if 0 is near, with a margin.
    pub x_range: Option<(f64, f64)>,
    /// The rows, from the top.
    pub rows: Vec<Interval>,
    /// Reference value, drawn as a vertical dashed line.
    pub reference: Option<f64>,
    /// Whether all rows have the first colour of the palette, instead of one colour for each label.
    pub plain: bool,
}

impl Intervals {
    pub(super) fn numbers(&self) -> impl Iterator<Item = (&str, f64, f64)> {
        let ends = |row: &Interval| [(row.point, row.low), (row.point, row.high)];
        let numbers = move |row: &'_ Interval| ends(row).into_iter().chain(row.dots.iter().map(|dot| (*dot, *dot))).collect::<Vec<_>>();
        self.rows.iter().flat_map(move |row| numbers(row).into_iter().map(|(at, value)| (row.label.as_str(), at, value)))
    }

    pub(super) fn height(&self) -> f64 {
        self.rows.len().max(1) as f64 * ROW + 12.0
    }

    pub(super) fn margins(&self, named: bool) -> Margins {
        let widest = self.rows.iter().map(|row| fonts::width(&name(row), TICK_EM)).fold(0.0, f64::max);
        Margins { left: if named { SLACK * widest + 20.0 } else { 16.0 }, right: 16.0, below: BELOW }
    }

    pub(super) fn draw(&self, rect: Rect, looks: &[Look], named: bool, brush: &mut impl Brush) -> Result<(), String> {
        let range = extremes(self.numbers().flat_map(|(_, at, value)| [at, value]).chain(self.reference));
        let axis = |most: usize| match (self.x_range, range) {
            (Some((low, high)), _) => Axis::new(low, high, most),
            (None, Some((low, high))) => Axis::with_air(low, high, most),
            (None, None) => Axis::blank(),
        };
        let frame = Frame { rect, x: roomy(rect.width(), axis), y: Axis::blank() };
        frame.draw_grid(brush)?;
        if let Some(value) = self.reference {
            let x = crisp(frame.column(value));
            brush.curve(&[[x, rect.top], [x, rect.bottom]], 1.75, THRESHOLD)?;
        }
        let column = |value: f64| frame.column(value).clamp(rect.left, rect.right);
        for (number, (row, look)) in self.rows.iter().zip(looks).enumerate() {
            let y = rect.top + 6.0 + (number as f64 + 0.5) * ROW;
            let (low, high) = (column(row.low), column(row.high));
            brush.area(&[[low, y - 11.0], [high, y - 11.0], [high, y + 11.0], [low, y + 11.0]], look.colour, 0.35)?;
            brush.line(&[[low, y], [high, y]], 2.0, look.colour)?;
            for end in [low, high] {
                brush.line(&[[end, y - 11.0], [end, y + 11.0]], 2.0, look.colour)?;
            }
            for (number, dot) in row.dots.iter().enumerate() {
                // equal numbers lie one below the other
                brush.dot([column(*dot), y + 7.0 * (number % 5) as f64 - 14.0], 3.5, look.colour, 0.45)?;
            }
            brush.dot([column(row.point), y], 6.5, look.colour, 1.0)?;
            if named {
                brush.write(name(row), TICK_EM, [rect.left - 12.0, y + 0.36 * TICK_EM], HPos::Right, TEXT)?;
            }
        }
        brush.line(&[[rect.left, rect.top], [rect.left, rect.bottom]], 1.0, FRAME)?;
        frame.draw_labels(&self.x_label, "", brush)
    }
}

fn name(row: &Interval) -> String {
    fonts::shorten(&row.label, TICK_EM, LABEL_LIMIT)
}
