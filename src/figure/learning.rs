//! The learning curves of runs: episode return over environment steps.

use super::lines::{Lines, Series, Threshold};
use super::{Chart, Figure};

/// Episodes per trailing mean. Gymnasium's reward thresholds assume the same window.
pub const WINDOW: usize = 100;

/// A line begins at this episode, if it has twice as many and its means are that long.
const SETTLED: usize = 10;

/// A smoothed curve is drawn with at most this many points: about one per pixel.
const DRAWN_POINTS: usize = 1000;

/// Single episodes are drawn as dots for at most this many curves; with more, the dots hide each other.
const CURVES_WITH_DOTS: usize = 2;

/// The episodes of one run, in the order in which they ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    /// Name in the legend.
    pub label: String,
    /// The environment steps (generated tokens on text tasks) at the end of each episode, and the episode's return.
    pub episodes: Vec<(f64, f64)>,
    /// The line that is drawn, from [`smooth`].
    pub smoothed: Vec<(f64, f64)>,
}

impl Curve {
    /// Returns a curve through the trailing means of `episodes`.
    pub fn new(label: impl Into<String>, episodes: Vec<(f64, f64)>) -> Self {
        Self { label: label.into(), smoothed: smooth(&episodes), episodes }
    }

    /// Makes a gap of every return and mean that cannot be drawn. Returns the number of such returns.
    pub(crate) fn make_gaps(&mut self) -> usize {
        super::make_gaps(&mut self.smoothed);
        super::make_gaps(&mut self.episodes)
    }
}

/// The content of a figure of learning curves.
#[derive(Clone, Debug, PartialEq)]
pub struct LearningCurves<'a> {
    /// Title, such as `CartPole-v1, ppo, seed 0`.
    pub title: String,
    /// The curves. One or two are drawn with their episodes as dots.
    pub curves: &'a [Curve],
    /// Return at which the environment counts as solved, drawn as a dashed line.
    pub threshold: Option<f64>,
}

impl LearningCurves<'_> {
    /// Returns the figure.
    pub fn figure(&self) -> Figure {
        let mut lines = Lines {
            x_label: "environment steps".into(),
            y_label: if self.curves.len() > 1 { format!("episode return, mean of the last {WINDOW}") } else { "episode return".into() },
            threshold: self.threshold.map(|value| Threshold { value, label: format!("solved at {}", number(value)) }),
            empty: "no episode has ended yet".into(),
            series: self.curves.iter().map(|curve| self.series(curve)).collect(),
            ..Lines::default()
        };
        let last = lines.numbers().map(|(_, step, _)| step).reduce(f64::max);
        lines.x_range = last.map(|last| (0.0, last));
        lines.leave_out_extremes();
        Figure { title: self.title.clone(), ..Figure::of(Chart::Lines(lines)) }
    }

    fn series(&self, curve: &Curve) -> Series {
        let dots = if self.curves.len() <= CURVES_WITH_DOTS { curve.episodes.clone() } else { Vec::new() };
        let (label, dots_label) = match (self.curves.len(), curve.smoothed.is_empty()) {
            (1, true) => (String::new(), String::new()),
            (1, false) => {
                let name = if curve.label.is_empty() { String::new() } else { format!("{}, ", curve.label) };
                (format!("{name}mean of the last {WINDOW} episodes"), "one episode".into())
            }
            (_, empty) => (format!("{}{}", curve.label, if empty { " (no episode)" } else { "" }), String::new()),
        };
        Series { label, dots_label, dots, points: curve.smoothed.clone(), ..Series::default() }
    }
}

/// Returns a point for each episode: its environment steps, and the mean of its return and of up to 99 returns before it. Of more than 1000
/// episodes, at most 1000 have a point: the first episode, and the last episode in each of equally long intervals of steps. From 20 episodes on, the
/// first point is that of the tenth, because a mean of few episodes looks like a peak.
///
/// ```
/// assert_eq!(gradus::figure::smooth(&[(10.0, 1.0), (20.0, 3.0), (30.0, 8.0)]), [(10.0, 1.0), (20.0, 2.0), (30.0, 4.0)]);
/// ```
pub fn smooth(episodes: &[(f64, f64)]) -> Vec<(f64, f64)> {
    smooth_over(episodes, WINDOW)
}

/// As [`smooth`], with the mean of `window` returns, at least 1.
pub fn smooth_over(episodes: &[(f64, f64)], window: usize) -> Vec<(f64, f64)> {
    let mean = |last: usize| {
        let window = &episodes[(last + 1).saturating_sub(window.max(1))..=last];
        (episodes[last].0, window.iter().map(|(_, value)| value).sum::<f64>() / window.len() as f64)
    };
    let ([(first, _), ..], [.., (end, _)]) = (episodes, episodes) else { return Vec::new() };
    let stretch = |episode: usize| ((episodes[episode].0 - first) / (end - first) * (DRAWN_POINTS - 2) as f64) as usize;
    let all = episodes.len() <= DRAWN_POINTS;
    // a mean of one or two episodes looks like a peak
    let begin = if episodes.len() >= 2 * SETTLED { window.clamp(1, SETTLED) - 1 } else { 0 };
    let drawn = |episode: &usize| match *episode {
        early if early < begin => false,
        first if first == begin => true,
        last if last == episodes.len() - 1 => true,
        inner => all || stretch(inner) != stretch(inner + 1),
    };
    (0..episodes.len()).filter(drawn).map(mean).collect()
}

/// Formats a threshold, with a true minus sign.
fn number(value: f64) -> String {
    value.to_string().replace('-', "−")
}
