//! Where everything in a figure lies, and the drawing of it.

use plotters::prelude::RGBColor;
use plotters::style::text_anchor::HPos;

use super::axis::Axis;
use super::brush::{Brush, Look, Text, thin};
use super::{Curve, LearningCurves, WINDOW};
use crate::fonts;

const WIDTH: f64 = 1280.0;
const HEIGHT: f64 = 800.0;
/// A figure with a long legend becomes higher rather than flatter than this.
const LEAST_PLOT_HEIGHT: f64 = 480.0;
const MARGIN: f64 = 28.0;

const TITLE_EM: f64 = 27.0;
const AXIS_EM: f64 = 22.0;
const TICK_EM: f64 = 20.0;
const LEGEND_EM: f64 = 20.0;
const LEGEND_ROW: f64 = 32.0;
const SAMPLE: f64 = 36.0;
const SAMPLE_DOT: f64 = 4.0;
const SAMPLE_GAP: f64 = 10.0;
const ENTRY_GAP: f64 = 32.0;

const TEXT: RGBColor = RGBColor(45, 45, 45);
const QUIET: RGBColor = RGBColor(95, 95, 95);
const FRAME: RGBColor = RGBColor(120, 120, 120);
const GRID: RGBColor = RGBColor(228, 228, 228);

/// The palette of Okabe and Ito (2008), which the colour-blind can tell apart, without the yellow that is lost on white.
const PALETTE: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
];

/// Dots for single episodes are drawn for no more curves than this; with more they hide each other.
const CURVES_WITH_DOTS: usize = 2;
/// No more dots than this, in all curves together.
const DOTS: usize = 2000;

/// Beyond this, viewers without Open Sans may use a font that is wider.
const SLACK: f64 = 1.1;

fn look(curve: usize) -> Look {
    Look { colour: PALETTE[curve % PALETTE.len()], broken: curve / PALETTE.len() % 2 == 1 }
}

enum Sample {
    Line(Look),
    Dot(RGBColor),
}

impl Sample {
    fn width(&self) -> f64 {
        match self {
            Sample::Line(_) => SAMPLE,
            Sample::Dot(_) => 2.0 * SAMPLE_DOT,
        }
    }
}

struct Entry {
    sample: Sample,
    at: [f64; 2],
}

/// All places of one figure, in pixels.
pub(super) struct Layout {
    pub(super) size: [u32; 2],
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
    x: Axis,
    y: Axis,
    threshold: Option<f64>,
    entries: Vec<Entry>,
    texts: Vec<Text>,
}

/// The middle of a pixel, where a thin line is drawn sharply.
fn crisp(place: f64) -> f64 {
    place.floor() + 0.5
}

fn shows_dots(figure: &LearningCurves) -> bool {
    figure.curves.len() <= CURVES_WITH_DOTS
}

/// Smallest and largest of some numbers.
fn extremes(numbers: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    numbers.fold(None, |range, number| {
        let (low, high) = range.unwrap_or((number, number));
        Some((low.min(number), high.max(number)))
    })
}

impl Layout {
    pub(super) fn new(figure: &LearningCurves) -> Self {
        let drawn = |curve: &'_ Curve| {
            let episodes = if shows_dots(figure) { curve.episodes.as_slice() } else { &[] };
            curve.smoothed.iter().chain(episodes).copied().collect::<Vec<_>>()
        };
        let points: Vec<(f64, f64)> = figure.curves.iter().flat_map(drawn).collect();
        let steps = extremes(points.iter().map(|(step, _)| *step));
        // Nothing happened yet: no number on an axis would mean anything.
        let threshold = figure.threshold.filter(|_| steps.is_some());
        let returns = extremes(points.iter().map(|(_, value)| *value).chain(threshold));
        let (first, last) = steps.unwrap_or((0.0, 1.0));
        let (low, high) = returns.unwrap_or((0.0, 1.0));
        let (mut x, mut y) = (Axis::of_steps(first, last), Axis::of_returns(low, high));
        if steps.is_none() {
            x.ticks.clear();
            y.ticks.clear();
        }

        let widest = y.ticks.iter().map(|tick| fonts::width(&tick.label, TICK_EM)).fold(0.0, f64::max);
        let left = MARGIN + 1.5 * AXIS_EM + SLACK * widest + 16.0;
        let solved = threshold.map(|threshold| fonts::shorten(&format!("solved at {}", number(threshold)), TICK_EM, 180.0));
        let right = WIDTH - solved.as_ref().map_or(MARGIN + 12.0, |text| SLACK * fonts::width(text, TICK_EM) + 10.0 + MARGIN / 2.0);

        let mut layout = Layout {
            size: [WIDTH as u32, HEIGHT as u32],
            left,
            top: 0.0,
            right,
            bottom: 0.0,
            x,
            y,
            threshold,
            entries: Vec::new(),
            texts: Vec::new(),
        };
        let title = fonts::shorten(&figure.title, TITLE_EM, (WIDTH - MARGIN - left) / SLACK);
        layout.write(title, TITLE_EM, [left, MARGIN + 0.8 * TITLE_EM], HPos::Left, TEXT);
        let below_title = if figure.title.is_empty() { MARGIN } else { MARGIN + 1.6 * TITLE_EM };
        let rows = layout.legend(figure, below_title);
        layout.top = below_title + rows as f64 * LEGEND_ROW + 10.0;
        let below = 8.0 + 1.5 * TICK_EM + 1.5 * AXIS_EM + MARGIN / 2.0;
        let height = HEIGHT.max(layout.top + LEAST_PLOT_HEIGHT + below).ceil();
        layout.size[1] = height as u32;
        layout.bottom = crisp(height - below);
        layout.write_axes(figure, steps.is_none());
        if let (Some(text), Some(threshold)) = (solved, threshold) {
            let baseline = layout.place((0.0, threshold))[1] + 0.36 * TICK_EM;
            layout.write(text, TICK_EM, [right + 10.0, baseline], HPos::Left, QUIET);
        }
        layout
    }

    fn write(&mut self, text: impl Into<String>, em: f64, at: [f64; 2], anchor: HPos, colour: RGBColor) {
        self.texts.push(Text { text: text.into(), em, at, anchor, colour, upwards: false });
    }

    /// Places the legend's entries row by row and returns the number of rows.
    fn legend(&mut self, figure: &LearningCurves, top: f64) -> usize {
        let entries: Vec<(Sample, String)> = match figure.curves {
            [] => return 0,
            [only] if only.episodes.is_empty() && only.smoothed.is_empty() => return 0,
            [only] => {
                let name = if only.label.is_empty() { String::new() } else { format!("{}, ", only.label) };
                let dot = (Sample::Dot(look(0).colour), "one episode".to_owned());
                vec![dot, (Sample::Line(look(0)), format!("{name}mean of the last {WINDOW} episodes"))]
            }
            several => several
                .iter()
                .enumerate()
                .map(|(curve, Curve { label, smoothed, .. })| {
                    let note = if smoothed.is_empty() { " (no episode)" } else { "" };
                    (Sample::Line(look(curve)), format!("{label}{note}"))
                })
                .collect(),
        };
        let space = WIDTH - MARGIN - self.left;
        let limit = space / 2.0 - SAMPLE - SAMPLE_GAP - ENTRY_GAP;
        let entries: Vec<_> =
            entries.into_iter().map(|(sample, label)| (sample, fonts::shorten(&label, LEGEND_EM, limit / SLACK))).collect();
        let widths: Vec<_> = entries
            .iter()
            .map(|(sample, label)| sample.width() + SAMPLE_GAP + SLACK * fonts::width(label, LEGEND_EM) + ENTRY_GAP)
            .collect();
        let column = widths.iter().copied().fold(0.0, f64::max);
        let columns =
            if widths.iter().sum::<f64>() <= space + ENTRY_GAP { entries.len() } else { (space + ENTRY_GAP).div_euclid(column) as usize };
        let rows = entries.len().div_ceil(columns.max(1));
        for (number, (sample, label)) in entries.into_iter().enumerate() {
            let (row, before) = (number / columns.max(1), number % columns.max(1));
            // One row is set tightly, several in columns.
            let x = self.left + if rows == 1 { widths[..before].iter().sum() } else { before as f64 * column };
            let middle = top + (row as f64 + 0.5) * LEGEND_ROW;
            self.write(label, LEGEND_EM, [x + sample.width() + SAMPLE_GAP, middle + 0.3 * LEGEND_EM], HPos::Left, TEXT);
            self.entries.push(Entry { sample, at: [x, middle] });
        }
        rows
    }

    fn write_axes(&mut self, figure: &LearningCurves, empty: bool) {
        for tick in self.x.ticks.clone() {
            let at = [self.place((tick.value, self.y.low))[0], self.bottom + 8.0 + TICK_EM];
            self.write(tick.label, TICK_EM, at, HPos::Center, TEXT);
        }
        for tick in self.y.ticks.clone() {
            let at = [self.left - 12.0, self.place((0.0, tick.value))[1] + 0.36 * TICK_EM];
            self.write(tick.label, TICK_EM, at, HPos::Right, TEXT);
        }
        let middle = [(self.left + self.right) / 2.0, (self.top + self.bottom) / 2.0];
        let below = self.bottom + 8.0 + 1.5 * TICK_EM + 1.1 * AXIS_EM;
        self.write("environment steps", AXIS_EM, [middle[0], below], HPos::Center, TEXT);
        let label =
            if figure.curves.len() > 1 { format!("episode return, mean of the last {WINDOW}") } else { "episode return".to_owned() };
        self.write(label, AXIS_EM, [MARGIN / 2.0 + AXIS_EM, middle[1]], HPos::Center, TEXT);
        if let Some(text) = self.texts.last_mut() {
            text.upwards = true;
        }
        if empty {
            self.write("no episode has ended yet", AXIS_EM, middle, HPos::Center, QUIET);
        }
    }

    fn place(&self, (step, value): (f64, f64)) -> [f64; 2] {
        let (across, up) = (self.x.part(step), self.y.part(value));
        [self.left + across * (self.right - self.left), self.bottom - up * (self.bottom - self.top)]
    }

    /// Draws everything, what lies lowest first.
    pub(super) fn draw(&self, figure: &LearningCurves, brush: &mut impl Brush) -> Result<(), String> {
        for tick in &self.x.ticks {
            let x = crisp(self.place((tick.value, self.y.low))[0]);
            brush.line(&[[x, self.top], [x, self.bottom]], 1.0, GRID)?;
            brush.line(&[[x, self.bottom], [x, self.bottom + 6.0]], 1.5, FRAME)?;
        }
        for tick in &self.y.ticks {
            let y = crisp(self.place((0.0, tick.value))[1]);
            brush.line(&[[self.left, y], [self.right, y]], 1.0, GRID)?;
        }
        brush.line(&[[self.left, self.bottom], [self.right, self.bottom]], 1.5, FRAME)?;

        if shows_dots(figure) {
            for (number, curve) in figure.curves.iter().enumerate() {
                for at in thin(curve.episodes.iter().map(|point| self.place(*point)), DOTS / figure.curves.len()) {
                    brush.dot(at, 2.5, look(number).colour, if figure.curves.len() == 1 { 0.25 } else { 0.18 })?;
                }
            }
        }
        if let Some(threshold) = self.threshold {
            let y = crisp(self.place((0.0, threshold))[1]);
            brush.broken_line(&[[self.left, y], [self.right, y]], 1.75, FRAME)?;
        }
        let width = if figure.curves.len() > 4 { 2.5 } else { 3.0 };
        for (number, curve) in figure.curves.iter().enumerate() {
            let points: Vec<_> = curve.smoothed.iter().map(|point| self.place(*point)).collect();
            brush.curve(&points, width, look(number))?;
        }
        for Entry { sample, at: [x, y] } in &self.entries {
            match sample {
                Sample::Line(look) => brush.curve(&[[*x, *y], [x + SAMPLE, *y]], width, *look)?,
                Sample::Dot(colour) => brush.dot([x + SAMPLE_DOT, *y], SAMPLE_DOT, *colour, 0.4)?,
            }
        }
        self.texts.iter().try_for_each(|text| brush.text(text))
    }
}

/// A threshold as a reader would write it.
fn number(value: f64) -> String {
    value.to_string().replace('-', "−")
}
