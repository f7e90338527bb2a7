//! Parallel coordinates: many settings at once, a line for each point, coloured by its value (Inselberg, 1985).

use gradus_drawing::fonts;
use plotters::style::text_anchor::HPos;

use super::axis::Axis;
use super::brush::Brush;
use super::frame::{Margins, Rect, extremes};
use super::grid::{SHADES, shade};
use super::style::{FRAME, SLACK, TEXT, TICK_EM, WHITE, crisp};

/// A vertical axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Coordinate {
    /// Name, below the axis.
    pub name: String,
    /// Places on the axis, from 0 at the bottom to 1 at the top, with their labels.
    pub ticks: Vec<(f64, String)>,
}

/// Lines across vertical axes. The axis of the values is the last, on the right.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Coordinates {
    /// The axes, from the left.
    pub axes: Vec<Coordinate>,
    /// For each line its place on each axis, 0 to 1, `None` where it has none, and its value.
    pub lines: Vec<(Vec<Option<f64>>, f64)>,
    /// Name of the values, with their unit.
    pub value_label: String,
}

impl Coordinates {
    pub(super) fn numbers(&self) -> impl Iterator<Item = (&str, f64, f64)> {
        self.lines.iter().map(|(_, value)| (self.value_label.as_str(), *value, *value))
    }

    fn axis(&self) -> Axis {
        let (low, high) = extremes(self.lines.iter().map(|(_, value)| *value)).unwrap_or((0.0, 1.0));
        if high > low { Axis::with_air(low, high, 8) } else { Axis::new(low - 0.5, low + 0.5, 2) }
    }

    pub(super) fn margins(&self) -> Margins {
        let widest = |labels: &mut dyn Iterator<Item = &str>| labels.map(|label| SLACK * fonts::width(label, TICK_EM)).fold(0.0, f64::max);
        let first = widest(&mut self.axes.iter().take(1).flat_map(|axis| &axis.ticks).map(|(_, label)| label.as_str()));
        let axis = self.axis();
        let right =
            widest(&mut axis.ticks.iter().map(|tick| tick.label.as_str())).max(SLACK * fonts::width(&self.value_label, TICK_EM) / 2.0);
        Margins { left: first + 18.0, right: right + 24.0, below: 2.2 * TICK_EM }
    }

    pub(super) fn draw(&self, rect: Rect, brush: &mut impl Brush) -> Result<(), String> {
        let (axis, count) = (self.axis(), self.axes.len());
        let column = |place: usize| rect.left + rect.width() * place as f64 / count.max(1) as f64;
        let row = |part: f64| rect.bottom - part * rect.height();
        // the best are drawn last, over the others
        let mut lines: Vec<&(Vec<Option<f64>>, f64)> = self.lines.iter().collect();
        lines.sort_by(|a, b| a.1.total_cmp(&b.1));
        let (low, high) = extremes(lines.iter().map(|(_, value)| *value)).unwrap_or((0.0, 1.0));
        for (places, value) in lines {
            let part = if high > low { (value - low) / (high - low) } else { 1.0 };
            // the lightest shades are hard to see on white
            let colour = shade(0.15 + 0.85 * part, SHADES);
            let all: Vec<Option<[f64; 2]>> = places
                .iter()
                .enumerate()
                .map(|(place, part)| part.map(|part| [column(place), row(part)]))
                .chain([Some([column(count), row(axis.part(*value))])])
                .collect();
            for part in all.split(Option::is_none).filter(|part| part.len() > 1) {
                brush.line(&part.iter().flatten().copied().collect::<Vec<_>>(), 1.6, colour)?;
            }
        }
        let of_values: Vec<(f64, String)> = axis.ticks.iter().map(|tick| (axis.part(tick.value), tick.label.clone())).collect();
        let vertical = self.axes.iter().map(|axis| (&axis.name, &axis.ticks)).chain([(&self.value_label, &of_values)]);
        for (place, (name, ticks)) in vertical.enumerate() {
            let (x, is_last) = (crisp(column(place)), place == count);
            brush.line(&[[x, rect.top], [x, rect.bottom]], 1.5, FRAME)?;
            let side = if is_last { 1.0 } else { -1.0 };
            for (part, label) in ticks {
                let y = row(*part);
                brush.line(&[[x, y], [x + side * 6.0, y]], 1.5, FRAME)?;
                let anchor = if is_last { HPos::Left } else { HPos::Right };
                let room = if place == 0 || is_last { f64::INFINITY } else { 0.5 * rect.width() / count.max(1) as f64 };
                let text = fonts::shorten(label, TICK_EM, room.min(1e4) / SLACK);
                if !is_last {
                    // lines do not cross the labels
                    let (width, height) = (fonts::width(&text, TICK_EM) + 6.0, 0.62 * TICK_EM);
                    let right = x - 7.0;
                    let corners = [[right - width, y - height], [right, y - height], [right, y + height], [right - width, y + height]];
                    brush.area(&corners, WHITE, 0.8)?;
                }
                brush.write(text, TICK_EM, [x + side * 10.0, y + 0.36 * TICK_EM], anchor, TEXT)?;
            }
            let room = rect.width() / count.max(1) as f64;
            let text = fonts::shorten(name, TICK_EM, 0.95 * room / SLACK);
            brush.write(text, TICK_EM, [x, rect.bottom + 1.6 * TICK_EM], HPos::Center, TEXT)?;
        }
        Ok(())
    }
}
