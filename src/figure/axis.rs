//! Axes: the range that holds the data, round ticks within it, and their labels.

/// How values map to positions along an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Linear.
    #[default]
    Linear,
    /// Logarithmic, with ticks at powers of two: 1/4, 1/2, 1, 2.
    Log2,
    /// Logarithmic, with ticks at powers of ten; on a short axis also between them.
    Log10,
}

impl Scale {
    fn forward(self, value: f64) -> f64 {
        match self {
            Scale::Linear => value,
            Scale::Log2 => value.log2(),
            Scale::Log10 => value.log10(),
        }
    }

    /// Returns whether `value` can be shown: a logarithmic scale has only numbers above 0.
    pub(super) fn holds(self, value: f64) -> bool {
        self == Scale::Linear || value > 0.0
    }
}

/// Returns the smallest 1, 2 or 5 times a power of ten that fits into `span` at most `most` times.
fn step(span: f64, most: usize) -> f64 {
    let rough = span / most as f64;
    let power = 10f64.powi(rough.log10().floor() as i32);
    // The factor 20 is for a logarithm that was rounded down across a power of ten.
    let found = [1.0, 2.0, 5.0, 10.0, 20.0].into_iter().map(|factor| factor * power).find(|step| span / step < most as f64 + 1.0);
    found.unwrap_or(rough)
}

/// One axis: its range from `low` to `high`, and its ticks.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Axis {
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) ticks: Vec<Tick>,
    scale: Scale,
}

/// A labelled number on an axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    pub(super) value: f64,
    pub(super) label: String,
}

impl Axis {
    /// Returns a linear axis from `low` to `high`, with at most `most` intervals between ticks.
    pub(super) fn new(low: f64, high: f64, most: usize) -> Self {
        let step = step(high - low, most);
        let (first, last) = ((low / step - 1e-9).ceil(), (high / step + 1e-9).floor());
        let count = (last - first).max(0.0) as usize + 1;
        let largest = low.abs().max(high.abs());
        let ticks = (0..count.min(most + 1)).map(|tick| (first + tick as f64) * step);
        let ticks = ticks.map(|value| Tick { value, label: label(value, step, largest) }).collect();
        Self { low, high, ticks, scale: Scale::Linear }
    }

    /// Returns an axis from `low` to `high` without a margin. A linear axis begins at 0 if `low` is from 0 to 40 % of `high`.
    pub(super) fn across(low: f64, high: f64, scale: Scale, most: usize) -> Self {
        if scale == Scale::Linear {
            let low = if low >= 0.0 && low <= 0.4 * high { 0.0 } else { low };
            return Self::new(low, if high > low { high } else { low + 1.0 }, most);
        }
        let (low, high) = if high > low { (low, high) } else { (low / 2.0, high * 2.0) };
        let logarithms = (scale.forward(low), scale.forward(high));
        let (first, last) = ((logarithms.0 - 1e-9).ceil() as i32, (logarithms.1 + 1e-9).floor() as i32);
        let every = ((last - first) as f64 / most as f64).ceil().max(1.0) as i32;
        let powers = (first..=last).filter(|power| power.rem_euclid(every) == 0);
        let ticks: Vec<_> = match scale {
            Scale::Log2 => powers.map(power_of_two).collect(),
            // within a decade: the ticks of a linear axis
            _ if high / low < 10.0 => Self::new(low, high, most).ticks,
            _ => one_two_five(low, high, most).unwrap_or_else(|| powers.map(power_of_ten).collect()),
        };
        Self { low, high, ticks, scale }
    }

    /// Returns a linear axis from `low` to `high` with a margin at both ends. The range is extended to 0 if `low` and `high` have the same
    /// sign and the number nearer to 0 is at most 40 % of the other number.
    pub(super) fn with_air(low: f64, high: f64, most: usize) -> Self {
        let largest = low.abs().max(high.abs());
        let slack = (0.05 * largest).max(1.0);
        let (low, high) = if high - low > 1e-9 * largest { (low, high) } else { (low - slack, high + slack) };
        let low_end = if low >= 0.0 && low <= 0.4 * high { 0.0 } else { low };
        let high_end = if high <= 0.0 && high >= 0.4 * low { 0.0 } else { high };
        let air = 0.04 * (high_end - low_end);
        Self::new(low_end - air, high_end + air, most)
    }

    /// Returns an axis without ticks.
    pub(super) fn blank() -> Self {
        Self { low: 0.0, high: 1.0, ticks: Vec::new(), scale: Scale::Linear }
    }

    /// Returns the position of `value` on the axis: 0 at `low`, 1 at `high`.
    pub(super) fn part(&self, value: f64) -> f64 {
        let [low, high, value] = [self.low, self.high, value].map(|x| self.scale.forward(x));
        (value - low) / (high - low)
    }
}

fn power_of_two(power: i32) -> Tick {
    let number = if power < 0 { format!("1/{}", 2f64.powi(-power)) } else { 2f64.powi(power).to_string() };
    Tick { value: 2f64.powi(power), label: number }
}

fn power_of_ten(power: i32) -> Tick {
    let value = 10f64.powi(power);
    Tick { value, label: if power < -4 { format!("1e−{}", -power) } else { label(value, value, value) } }
}

/// Returns ticks at 1, 2, 5, 10, 20 and so on; `None` if there are fewer than 2 or more than `most` + 1, or if `low` is below 1e-4.
fn one_two_five(low: f64, high: f64, most: usize) -> Option<Vec<Tick>> {
    let powers = low.log10().floor() as i32..=high.log10().ceil() as i32;
    let values = powers.filter(|power| *power >= -4).flat_map(|power| [1.0, 2.0, 5.0].map(|factor| (factor * 10f64.powi(power), power)));
    let within = values.filter(|(value, _)| (low * (1.0 - 1e-9)..=high * (1.0 + 1e-9)).contains(value));
    let ticks: Vec<Tick> = within.map(|(value, power)| Tick { value, label: label(value, 10f64.powi(power), value) }).collect();
    (ticks.len() <= most + 1 && ticks.len() >= 2 && low >= 1e-4).then_some(ticks)
}

/// Formats the number of a tick: 0, 2500, 50k, 1.5M, −0.25. Thousands are written in full if `largest` is below 10 000. The number of
/// decimals follows from `step`.
fn label(value: f64, step: f64, largest: f64) -> String {
    if value.abs() < 0.5 * step {
        return "0".to_owned();
    }
    if largest >= 1e12 || step < 1e-6 {
        return format!("{:.1e}", value).replace('-', "−").replace(".0e", "e");
    }
    let units = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    let (unit, suffix) = units.into_iter().find(|(unit, _)| largest >= 1e4 && value.abs() >= *unit).unwrap_or((1.0, ""));
    let decimals = (-(step / unit * 1.0001).log10().floor()).max(0.0) as usize;
    let number = format!("{:.decimals$}", value.abs() / unit);
    let number = if suffix.is_empty() || decimals == 0 { &number } else { number.trim_end_matches('0').trim_end_matches('.') };
    format!("{}{number}{suffix}", if value < 0.0 { "−" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|tick| tick.label.as_str()).collect()
    }

    #[test]
    fn ticks_are_round_and_few() {
        let cases: [(f64, f64, usize, &[&str]); 8] = [
            (0.0, 1_000_000.0, 10, &["0", "100k", "200k", "300k", "400k", "500k", "600k", "700k", "800k", "900k", "1M"]),
            (0.0, 3_000_000.0, 6, &["0", "500k", "1M", "1.5M", "2M", "2.5M", "3M"]),
            (0.0, 100_352.0, 5, &["0", "20k", "40k", "60k", "80k", "100k"]),
            (0.0, 12_500.0, 5, &["0", "5k", "10k"]),
            (-20.0, 520.0, 6, &["0", "100", "200", "300", "400", "500"]),
            (-200.0, -90.0, 4, &["−200", "−150", "−100"]),
            (-1.0, 1.0, 4, &["−1.0", "−0.5", "0", "0.5", "1.0"]),
            (0.0, 9_000.0, 5, &["0", "2000", "4000", "6000", "8000"]),
        ];
        for (low, high, most, expected) in cases {
            assert_eq!(labels(&Axis::new(low, high, most)), expected, "{low} to {high}");
        }
    }

    #[test]
    fn every_magnitude_has_4_to_11_ticks_with_different_labels() {
        for exponent in -9..=15 {
            for mantissa in [1.0, 1.7, 2.0, 3.3, 5.0, 9.99] {
                let high = mantissa * 10f64.powi(exponent);
                let axis = Axis::new(0.0, high, 10);
                assert!((4..=11).contains(&axis.ticks.len()), "0 to {high}: {axis:?}");
                assert!(axis.ticks.iter().all(|tick| tick.value <= high * 1.0001));
                let mut texts = labels(&axis);
                texts.dedup();
                assert_eq!(texts.len(), axis.ticks.len(), "labels differ: {texts:?}");
            }
        }
    }

    #[test]
    fn ranges_hold_the_data() {
        for (low, high) in [
            (9.0, 500.0),
            (-500.0, -80.0),
            (-30.0, -2.0),
            (7.0, 7.0),
            (0.0, 0.0),
            (-1e6, -1e6),
            (199.0, 200.0),
            (0.0, 3e-5),
            (-1e299, 1e299),
        ] {
            let axis = Axis::with_air(low, high, 8);
            assert!(axis.low < low && axis.high > high && axis.ticks.len() >= 2, "{low} to {high}: {axis:?}");
        }
        let cartpole = Axis::with_air(9.0, 500.0, 8);
        assert_eq!((cartpole.low, cartpole.high), (-20.0, 520.0), "returns that begin near 0 are shown from 0");
        assert!(Axis::with_air(0.0, 3e-5, 8).high < 1e-4, "small returns are not flattened");
        assert_eq!(Axis::across(0.0, 0.0, Scale::Linear, 8).high, 1.0);
    }

    #[test]
    fn logarithmic_axes_have_ticks_at_powers() {
        let axis = Axis::across(1.0 / 128.0, 4.0, Scale::Log2, 10);
        assert_eq!(labels(&axis), ["1/128", "1/64", "1/32", "1/16", "1/8", "1/4", "1/2", "1", "2", "4"]);
        assert_eq!((axis.part(1.0 / 128.0), axis.part(0.5), axis.part(4.0)), (0.0, 6.0 / 9.0, 1.0));
        assert_eq!(
            labels(&Axis::across(3e-6, 2e4, Scale::Log10, 10)),
            ["1e−5", "0.0001", "0.001", "0.01", "0.1", "1", "10", "100", "1000", "10k"]
        );
        assert_eq!(labels(&Axis::across(1.0, 1e9, Scale::Log10, 5)), ["1", "100", "10k", "1M", "100M"]);
        assert_eq!(labels(&Axis::across(2.0, 7.0, Scale::Log10, 6)), ["2", "3", "4", "5", "6", "7"]);
        assert_eq!(labels(&Axis::across(0.02, 6.3, Scale::Log10, 10)), ["0.02", "0.05", "0.1", "0.2", "0.5", "1", "2", "5"]);
        assert_eq!(labels(&Axis::across(0.02, 6.3, Scale::Log10, 4)), ["0.1", "1"]);
        assert_eq!(labels(&Axis::across(8.0, 8.0, Scale::Log2, 6)), ["4", "8", "16"]);
    }
}
