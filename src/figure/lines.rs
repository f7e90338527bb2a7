//! Line charts: learning curves, sample efficiency, profiles, parameter studies.

use gradus_drawing::fonts;
use plotters::style::text_anchor::HPos;

use super::axis::{Axis, Scale};
use super::brush::{Brush, thin};
use super::frame::{BELOW, Frame, Margins, NAME, Rect, clip, extremes, left_of, most_ticks, roomy};
use super::style::{AXIS_EM, LEGEND_EM, Look, QUIET, SAMPLE, SLACK, TEXT, THRESHOLD, TICK_EM, crisp, look};

/// Largest number of dots in one chart.
const DOTS: usize = 2000;

/// One line of a chart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Name of the series. Series of the same name look the same in all panels of a figure.
    pub label: String,
    /// The points of the line, from left to right. A point whose y is NaN makes a gap in the line.
    pub points: Vec<(f64, f64)>,
    /// The band around the line: x, low, high.
    pub band: Vec<(f64, f64, f64)>,
    /// Faint dots behind the line. A dot whose y is NaN is not drawn.
    pub dots: Vec<(f64, f64)>,
    /// Legend entry of the dots; empty: none.
    pub dots_label: String,
    /// Number of the colour and dashes; `None`: the index of the name among all names of the figure or, if series of a chart share a name,
    /// the index of the series in the chart.
    pub style: Option<usize>,
}

impl Series {
    /// Returns a line without a band.
    pub fn new(label: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { label: label.into(), points, ..Self::default() }
    }

    /// Returns the parts of the line between its gaps.
    fn parts(&self) -> impl Iterator<Item = &[(f64, f64)]> {
        self.points.split(|(_, y)| y.is_nan()).filter(|part| !part.is_empty())
    }
}

/// A horizontal dashed line with a label at its right end.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    /// The y value.
    pub value: f64,
    /// The label.
    pub label: String,
}

/// Lines with common axes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lines {
    /// Label of the x axis, with its unit.
    pub x_label: String,
    /// Label of the y axis, with its unit.
    pub y_label: String,
    /// Scale of the x axis.
    pub x_scale: Scale,
    /// Range of the x axis; `None`: the range of the data. A linear axis is extended to 0 if 0 is near.
    pub x_range: Option<(f64, f64)>,
    /// Range of the y axis; `None`: the range of the data and the threshold, extended to 0 if 0 is near, with a margin.
    pub y_range: Option<(f64, f64)>,
    /// The lines.
    pub series: Vec<Series>,
    /// Reference value.
    pub threshold: Option<Threshold>,
    /// Whether the names are at the right ends of the lines instead of in the legend.
    pub direct: bool,
    /// Text for a chart without data; empty: `no data`.
    pub empty: String,
}

impl Lines {
    /// Limits the y axis to where most numbers are, if a few lie far from there, and says so in the label of the x axis. The middle nine tenths of all points of lines span a range, and so do those of all
    /// dots; the axis has both, and reaches at most as far again to either side.
    pub fn leave_out_extremes(&mut self) {
        let most = |of: fn(&Series) -> &Vec<(f64, f64)>| {
            let mut ys: Vec<f64> = self.series.iter().flat_map(of).map(|(_, y)| *y).filter(|y| y.is_finite()).collect();
            ys.sort_unstable_by(f64::total_cmp);
            (ys.len() >= 40).then(|| (ys[ys.len() / 20], ys[ys.len() - 1 - ys.len() / 20]))
        };
        let Some((low, high)) = extremes(self.numbers().map(|(_, _, y)| y)).filter(|_| self.y_range.is_none()) else { return };
        let Some((from, to)) = most(|series| &series.points) else { return };
        let (from, to) = most(|series| &series.dots).map_or((from, to), |(low, high)| (from.min(low), to.max(high)));
        let span = to - from;
        if span <= 0.0 || low >= from - span && high <= to + span {
            return;
        }
        let (low, high) = (low.max(from - span), high.min(to + span));
        let (low, high) = self.threshold.iter().fold((low, high), |(low, high), line| (low.min(line.value), high.max(line.value)));
        let air = 0.04 * (high - low);
        self.y_range = Some((low - air, high + air));
        self.x_label.push_str(" (the y axis leaves out extremes)"); // where there is room
    }

    /// Returns every x and y that is drawn, with the name of its series.
    pub(super) fn numbers(&self) -> impl Iterator<Item = (&str, f64, f64)> {
        self.series.iter().flat_map(|series| {
            let bands = series.band.iter().flat_map(|(x, low, high)| [(*x, *low), (*x, *high)]);
            let all = series.points.iter().chain(&series.dots).copied().filter(|(_, y)| !y.is_nan()).chain(bands);
            all.map(|(x, y)| (series.label.as_str(), x, y))
        })
    }

    fn axes(&self, width: f64, height: f64) -> (Axis, Axis) {
        let (xs, ys) = (extremes(self.numbers().map(|(_, x, _)| x)), self.numbers().map(|(_, _, y)| y));
        let Some((first, last)) = xs else { return (Axis::blank(), Axis::blank()) };
        let (first, last) = self.x_range.unwrap_or((first, last));
        let x = roomy(width, |most| Axis::across(first, last, self.x_scale, most));
        let most = most_ticks(height, 55.0, 8);
        let y = match self.y_range {
            Some((low, high)) => Axis::new(low, high, most),
            None => {
                let (low, high) = extremes(ys.chain(self.threshold.iter().map(|line| line.value))).unwrap_or((0.0, 1.0));
                Axis::with_air(low, high, most)
            }
        };
        (x, y)
    }

    fn is_empty(&self) -> bool {
        self.numbers().next().is_none()
    }

    /// Returns the threshold; `None` if there is no data, because the axes are blank then.
    fn threshold(&self) -> Option<&Threshold> {
        self.threshold.as_ref().filter(|_| !self.is_empty())
    }

    pub(super) fn margins(&self, [width, height]: [f64; 2], named: bool) -> Margins {
        let (_, y) = self.axes(width, height);
        let threshold = self.threshold().map_or(0.0, |line| SLACK * fonts::width(&threshold_text(line), TICK_EM) + 10.0);
        let direct =
            if self.direct { self.series.iter().map(|series| fonts::width(&name(series), LEGEND_EM)).fold(0.0, f64::max) } else { 0.0 };
        let direct = if direct > 0.0 { LEADER + SAMPLE + 8.0 + SLACK * direct } else { 0.0 };
        let name = if named { 0.0 } else { NAME };
        Margins { left: left_of(&y) - name, right: threshold.max(direct).max(24.0), below: BELOW }
    }

    pub(super) fn draw(&self, rect: Rect, looks: &[Look], named: bool, brush: &mut impl Brush) -> Result<(), String> {
        let (x, y) = self.axes(rect.width(), rect.height());
        let frame = Frame { rect, x, y };
        frame.draw_grid(brush)?;
        for (series, look) in self.series.iter().zip(looks) {
            self.draw_band(&frame, series, *look, brush)?;
        }
        for (series, look) in self.series.iter().zip(looks) {
            let opacity = if self.series.len() == 1 { 0.25 } else { 0.18 };
            let dots =
                series.dots.iter().filter(|(_, y)| !y.is_nan()).map(|dot| frame.place(*dot)).filter(|dot| !clip(&[*dot], &rect).is_empty());
            thin(dots, DOTS / self.series.len()).into_iter().try_for_each(|at| brush.dot(at, 2.5, look.colour, opacity))?;
        }
        if let Some(line) = self.threshold() {
            let y = crisp(frame.row(line.value));
            brush.curve(&[[rect.left, y], [rect.right, y]], 1.75, THRESHOLD)?;
        }
        let width = self.line_width();
        for (series, look) in self.series.iter().zip(looks) {
            for part in series.parts() {
                let points: Vec<_> = part.iter().map(|point| frame.place(*point)).collect();
                clip(&points, &rect).iter().try_for_each(|line| brush.curve(line, width, *look))?;
            }
        }
        frame.draw_labels(&self.x_label, if named { &self.y_label } else { "" }, brush)?;
        if let Some(line) = self.threshold() {
            let at = [rect.right + 10.0, frame.row(line.value) + 0.36 * TICK_EM];
            brush.write(threshold_text(line), TICK_EM, at, HPos::Left, QUIET)?;
        }
        if self.direct {
            self.draw_names(&frame, looks, brush)?;
        }
        if self.is_empty() {
            let text = if self.empty.is_empty() { "no data" } else { &self.empty };
            brush.write(text, AXIS_EM, rect.middle(), HPos::Center, QUIET)?;
        }
        Ok(())
    }

    pub(super) fn line_width(&self) -> f64 {
        if self.series.len() > 4 { 2.5 } else { 3.0 }
    }

    fn draw_band(&self, frame: &Frame, series: &Series, look: Look, brush: &mut impl Brush) -> Result<(), String> {
        let rect = frame.rect;
        let place = |x: f64, y: f64| {
            let [x, y] = frame.place((x, y));
            [x, y.clamp(rect.top, rect.bottom)]
        };
        let within = |(x, ..): &&(f64, f64, f64)| (-1e-9..=1.0 + 1e-9).contains(&frame.x.part(*x));
        let band: Vec<_> = series.band.iter().filter(within).collect();
        if band.len() < 2 {
            return Ok(());
        }
        let lower = band.iter().map(|(x, low, _)| place(*x, *low));
        let upper = band.iter().rev().map(|(x, _, high)| place(*x, *high));
        brush.area(&lower.chain(upper).collect::<Vec<_>>(), look.colour, if self.series.len() > 4 { 0.13 } else { 0.2 })
    }

    /// Writes every name at the right end of its line. Names that would touch are moved up or down.
    fn draw_names(&self, frame: &Frame, looks: &[Look], brush: &mut impl Brush) -> Result<(), String> {
        let rect = frame.rect;
        let end = |series: &Series| {
            let points: Vec<_> = series.parts().last()?.iter().map(|point| frame.place(*point)).collect();
            clip(&points, &rect).last().and_then(|line| line.last().copied())
        };
        let mut ends: Vec<([f64; 2], usize)> =
            self.series.iter().enumerate().filter_map(|(number, series)| Some((end(series)?, number))).collect();
        ends.sort_by(|a, b| a.0[1].total_cmp(&b.0[1]));
        let places = apart(&ends.iter().map(|(at, _)| at[1]).collect::<Vec<_>>(), 1.3 * LEGEND_EM, rect.top, rect.bottom);
        for (([x, from], number), y) in ends.into_iter().zip(places) {
            let sample = rect.right + LEADER;
            // draws a thin line to the name, except if the curve ends inside the chart, where the thin line would cross other curves
            // and look like one of them
            if rect.right - x < 0.03 * rect.width() {
                brush.line(&[[x + 3.0, from], [sample - 6.0, y]], 1.0, looks[number].colour)?;
            }
            brush.curve(&[[sample, y], [sample + SAMPLE - 6.0, y]], self.line_width(), looks[number])?;
            brush.write(name(&self.series[number]), LEGEND_EM, [sample + SAMPLE + 4.0, y + 0.34 * LEGEND_EM], HPos::Left, TEXT)?;
        }
        Ok(())
    }
}

/// Pixels from the chart's right edge to the sample of a line next to its name.
const LEADER: f64 = 34.0;

fn name(series: &Series) -> String {
    fonts::shorten(&series.label, LEGEND_EM, 400.0)
}

fn threshold_text(line: &Threshold) -> String {
    fonts::shorten(&line.label, TICK_EM, 180.0)
}

/// Moves sorted positions until neighbours are about `gap` apart and all lie between `low` and `high`. The gap shrinks if there is too
/// little room.
fn apart(places: &[f64], gap: f64, low: f64, high: f64) -> Vec<f64> {
    let gap = gap.min((high - low) / (places.len().max(2) - 1) as f64);
    let mut moved = places.to_vec();
    for _ in 0..200 {
        for number in 1..moved.len() {
            let overlap = gap - (moved[number] - moved[number - 1]);
            if overlap > 0.0 {
                moved[number - 1] -= overlap / 2.0;
                moved[number] += overlap / 2.0;
            }
        }
        if let Some(first) = moved.first_mut() {
            *first = first.max(low);
        }
        if let Some(last) = moved.last_mut() {
            *last = last.min(high);
        }
    }
    moved
}

/// Returns the look of a series: the one with the number of its `style` or, if it has none, with the number `place`.
pub(super) fn look_of(series: &Series, place: usize) -> Look {
    look(series.style.unwrap_or(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A few falls from a cliff do not hide the rest; a tenth of the episodes does count, and so do episodes far above their trailing mean.
    #[test]
    fn an_axis_leaves_out_a_few_extremes_and_says_so() {
        let of = |points: Vec<f64>, dots: Vec<f64>| {
            let placed = |ys: Vec<f64>| ys.into_iter().enumerate().map(|(x, y)| (x as f64, y)).collect();
            let mut lines = Lines { series: vec![Series { dots: placed(dots), ..Series::new("a", placed(points)) }], ..Lines::default() };
            lines.leave_out_extremes();
            (lines.y_range, lines.x_label)
        };
        let falls = |n: usize| (0..100).map(|i| if i < n { -2900.0 } else { -10.0 - (i % 20) as f64 }).collect::<Vec<f64>>();
        let (range, label) = of(falls(3), falls(3));
        assert!(range.is_some_and(|(low, high)| (-60.0..-40.0).contains(&low) && high > -10.0), "{range:?}");
        assert!(label.ends_with("leaves out extremes)"), "{label}");
        assert_eq!(of(falls(3), falls(10)), (None, String::new()));
        let rising: Vec<f64> = (0..100).map(f64::from).collect();
        let solved: Vec<f64> = (0..100).map(|i| if i < 80 { 20.0 } else { 500.0 }).collect();
        assert_eq!(of(rising, solved).0, None);
    }

    #[test]
    fn names_that_would_touch_move_apart() {
        assert_eq!(apart(&[10.0, 100.0], 20.0, 0.0, 200.0), [10.0, 100.0]);
        let together = apart(&[50.0, 50.0, 50.0], 20.0, 0.0, 200.0);
        assert!(together.windows(2).all(|pair| pair[1] - pair[0] > 19.9) && (together[1] - 50.0).abs() < 5.0, "{together:?}");
        let crowded = apart(&[0.0; 9], 20.0, 0.0, 80.0);
        assert!(crowded.windows(2).all(|pair| pair[1] - pair[0] > 9.0) && crowded[0] >= 0.0 && crowded[8] <= 80.1, "{crowded:?}");
    }
}
