//! Violin charts: distributions side by side, each as a vertical density with its mean.

use gradus_drawing::fonts;
use plotters::style::text_anchor::HPos;

use super::axis::Axis;
use super::brush::Brush;
use super::frame::{BELOW, Frame, Margins, Rect, clip, extremes, left_of, most_ticks};
use super::style::{FRAME, Look, QUIET, SLACK, TEXT, THRESHOLD, TICK_EM, crisp};

/// Number of points at which a density is computed.
const POINTS: usize = 121;

/// One distribution.
#[derive(Clone, Debug, PartialEq)]
pub struct Violin {
    /// Label below the density.
    pub label: String,
    /// Values in ascending order, each with its density. All densities of a chart have the same scale.
    pub density: Vec<(f64, f64)>,
    /// Mean, which is marked.
    pub mean: f64,
}

impl Violin {
    /// Returns a normal distribution, cut off at `reach` standard deviations from the mean.
    pub fn normal(label: impl Into<String>, mean: f64, deviation: f64, reach: f64) -> Self {
        let place = |number: usize| (2.0 * number as f64 / (POINTS - 1) as f64 - 1.0) * reach;
        let density = |z: f64| (-0.5 * z * z).exp() / (deviation * (2.0 * std::f64::consts::PI).sqrt());
        let points = (0..POINTS).map(|number| (mean + deviation * place(number), density(place(number))));
        Self { label: label.into(), density: points.collect(), mean }
    }

    /// Estimates the density of samples with normal kernels and a bandwidth by Silverman's rule of thumb. Equal samples become a thin line.
    pub fn of_samples(label: impl Into<String>, samples: &[f64]) -> Self {
        let n = samples.len() as f64;
        let mean = samples.iter().sum::<f64>() / n;
        let deviation = (samples.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0).max(1.0)).sqrt();
        let Some((low, high)) = extremes(samples.iter().copied()) else {
            return Self { label: label.into(), density: Vec::new(), mean: 0.0 };
        };
        let width = (1.06 * deviation * n.powf(-0.2)).max(1e-3 * mean.abs().max(1e-3));
        let density = |value: f64| {
            let kernels = samples.iter().map(|x| (-0.5 * ((value - x) / width).powi(2)).exp());
            kernels.sum::<f64>() / (n * width * (2.0 * std::f64::consts::PI).sqrt())
        };
        let (low, high) = (low - 3.0 * width, high + 3.0 * width);
        let values = (0..POINTS).map(|number| low + (high - low) * number as f64 / (POINTS - 1) as f64);
        Self { label: label.into(), density: values.map(|value| (value, density(value))).collect(), mean }
    }
}

/// Distributions of one quantity side by side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Violins {
    /// Label of the x axis.
    pub x_label: String,
    /// Label of the y axis, with its unit.
    pub y_label: String,
    /// The distributions, from the left.
    pub violins: Vec<Violin>,
    /// Reference value, drawn as a horizontal dashed line.
    pub reference: Option<f64>,
    /// Labels of the means, such as q*(1); empty: none.
    pub mean_labels: Vec<String>,
}

impl Violins {
    pub(super) fn numbers(&self) -> impl Iterator<Item = (&str, f64, f64)> {
        self.violins.iter().flat_map(|violin| {
            let points = violin.density.iter().copied().chain([(violin.mean, 0.0)]);
            points.map(|(value, density)| (violin.label.as_str(), value, density))
        })
    }

    fn axis(&self, height: f64) -> Axis {
        let range = extremes(self.numbers().map(|(_, value, _)| value).chain(self.reference));
        range.map_or_else(Axis::blank, |(low, high)| Axis::with_air(low, high, most_ticks(height, 55.0, 8)))
    }

    pub(super) fn margins(&self, [_, height]: [f64; 2]) -> Margins {
        Margins { left: left_of(&self.axis(height)), right: 24.0, below: BELOW }
    }

    pub(super) fn draw(&self, rect: Rect, looks: &[Look], brush: &mut impl Brush) -> Result<(), String> {
        let frame = Frame { rect, x: Axis::blank(), y: self.axis(rect.height()) };
        frame.draw_grid(brush)?;
        if let Some(value) = self.reference {
            let y = crisp(frame.row(value));
            brush.curve(&[[rect.left, y], [rect.right, y]], 1.75, THRESHOLD)?;
        }
        let each = rect.width() / self.violins.len().max(1) as f64;
        let names = !self.mean_labels.is_empty();
        let half = each * if names { 0.32 } else { 0.42 };
        let densest = self.numbers().map(|(_, _, density)| density).fold(0.0, f64::max);
        for (number, (violin, look)) in self.violins.iter().zip(looks).enumerate() {
            let middle = rect.left + (number as f64 + 0.5) * each - if names { 0.1 * each } else { 0.0 };
            let edge = |sign: f64, (value, density): &(f64, f64)| {
                [middle + sign * half * density / densest.max(f64::MIN_POSITIVE), frame.row(*value)]
            };
            let left = violin.density.iter().map(|point| edge(-1.0, point));
            let outline: Vec<_> = left.chain(violin.density.iter().rev().map(|point| edge(1.0, point))).collect();
            brush.area(&outline, look.colour, 0.3)?;
            let closed: Vec<_> = outline.iter().chain(outline.first()).copied().collect();
            clip(&closed, &rect).iter().try_for_each(|line| brush.line(line, 1.5, look.colour))?;
            let y = frame.row(violin.mean);
            brush.line(&[[middle - 0.8 * half, y], [middle + 0.8 * half, y]], 3.0, look.colour)?;
            if let Some(name) = self.mean_labels.get(number) {
                brush.write(name, 0.9 * TICK_EM, [middle + half + 2.0, y + 0.3 * TICK_EM], HPos::Left, QUIET)?;
            }
            let label = fonts::shorten(&violin.label, TICK_EM, (each - 8.0) / SLACK);
            brush.write(label, TICK_EM, [middle, rect.bottom + 8.0 + TICK_EM], HPos::Center, TEXT)?;
        }
        brush.line(&[[rect.left, rect.bottom], [rect.right, rect.bottom]], 1.5, FRAME)?;
        frame.draw_labels(&self.x_label, &self.y_label, brush)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area(violin: &Violin) -> f64 {
        violin.density.windows(2).map(|pair| (pair[1].0 - pair[0].0) * (pair[0].1 + pair[1].1) / 2.0).sum()
    }

    #[test]
    fn densities_integrate_to_one() {
        assert!((area(&Violin::normal("", 3.0, 2.0, 5.0)) - 1.0).abs() < 1e-4);
        let samples: Vec<f64> = (0..100).map(|number| f64::from(number * number % 37)).collect();
        let violin = Violin::of_samples("", &samples);
        assert!((area(&violin) - 1.0).abs() < 0.01, "{}", area(&violin));
        assert_eq!(violin.mean, samples.iter().sum::<f64>() / 100.0);
        assert!((area(&Violin::of_samples("", &[5.0; 10])) - 1.0).abs() < 0.01);
        assert!(Violin::of_samples("", &[]).density.is_empty());
    }
}
