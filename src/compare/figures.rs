//! The figures of a comparison.

use gradus_envs::registry;

use super::Statistic;
use super::analysis::{Aggregates, Analysis, Curve};
use crate::figure::{Chart, Figure, Interval, Intervals, Lines, Panel, Series, Threshold};
use crate::statistics::Estimate;

/// A figure with the name of its files and what one sees in it.
pub(super) struct Named {
    pub(super) name: &'static str,
    pub(super) figure: Figure,
    /// For the report, below the figure.
    pub(super) caption: String,
}

/// What an environment is called above a panel.
pub(super) fn title(environment: &str) -> String {
    registry::find(environment).map_or_else(|_| environment.to_owned(), |world| world.title().to_owned())
}

fn threshold(environment: &str) -> Option<Threshold> {
    let solved = registry::find(environment).ok()?.solved_at?;
    Some(Threshold { value: solved, label: format!("solved at {solved}").replace('-', "−") })
}

const GAP: &str = "optimality gap (less is better)";

/// Pairs above this number stand in two columns.
const ONE_COLUMN: usize = 12;

impl Analysis<'_> {
    fn statistic_name(&self) -> &'static str {
        match self.statistic {
            Statistic::Iqm => "interquartile mean",
            Statistic::Mean => "mean",
        }
    }

    /// Such as "10 runs", or "8 to 10 runs".
    fn runs(&self) -> String {
        let counts = || self.table.runs.iter().map(|runs| runs[0].len());
        let (least, most) = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
        match (least == most, most) {
            (true, 1) => "1 run".into(),
            (true, _) => format!("{most} runs"),
            _ => format!("{least} to {most} runs"),
        }
    }

    fn note(&self) -> String {
        let (runs, several) = (self.runs(), self.table.environments.len() > 1);
        format!("{} of {runs}{}, 95 % stratified bootstrap interval", self.statistic_name(), if several { " each" } else { "" })
    }

    /// All figures that there is data for.
    pub(super) fn figures(&self) -> Vec<Named> {
        let mut figures = vec![self.efficiency(false)];
        if self.table.has_seconds() {
            figures.push(self.efficiency(true));
        }
        figures.extend(self.overall_efficiency());
        figures.push(self.finals());
        figures.extend(self.aggregates());
        figures.extend(self.profiles());
        figures.extend(self.improvement());
        figures
    }

    fn line(&self, agent: usize, curve: &Curve, seconds: bool) -> Series {
        let xs = curve.seconds.as_ref().filter(|_| seconds).unwrap_or(&curve.steps);
        let points = xs.iter().zip(&curve.estimates).map(|(x, estimate)| (*x, estimate.point)).collect();
        let band = xs.iter().zip(&curve.estimates).map(|(x, Estimate { low, high, .. })| (*x, *low, *high)).collect();
        Series { band, ..Series::new(&self.table.agents[agent], points) }
    }

    fn lines(&self, curves: &[Curve], seconds: bool, y_label: String) -> Lines {
        let x_label = if seconds { "seconds of training, one core" } else { "environment steps" };
        let series = curves.iter().enumerate().map(|(agent, curve)| self.line(agent, curve, seconds)).collect();
        Lines { x_label: x_label.into(), y_label, series, ..Lines::default() }
    }

    fn efficiency(&self, seconds: bool) -> Named {
        let several = self.curves.len() > 1;
        let panels = self.curves.iter().zip(&self.table.environments).map(|(curves, environment)| {
            let lines = self.lines(curves, seconds, "return of the greedy policy".into());
            // beside names at the ends of the lines a threshold's name would be in the way; its value is in the title then
            let threshold = threshold(environment);
            let title = match &threshold {
                Some(line) if !several => format!("{} ({})", title(environment), line.label),
                _ => title(environment),
            };
            let threshold = threshold.map(|line| Threshold { label: String::new(), ..line });
            Panel { title, chart: Chart::Lines(Lines { threshold, direct: !several, ..lines }) }
        });
        let panels: Vec<Panel> = panels.collect();
        let columns = columns(panels.len());
        let broken = if several { "; broken line: solved" } else { "" };
        let (name, heading, caption) = if seconds {
            let caption = "The same curves over the seconds that training took, evaluations not counted. Every run had one core; the curve \
                           lies at the mean time of its runs.";
            ("wall_clock", "Return over time", caption)
        } else {
            let caption = "Each evaluation plays the same episodes, which training never sees, with the most probable actions. The curve lies at \
                           the steps that the policy had learnt from.";
            ("sample_efficiency", "Return over environment steps", caption)
        };
        let has_threshold = self.table.environments.iter().any(|environment| threshold(environment).is_some());
        let note = format!("{}{}", self.note(), if has_threshold { broken } else { "" });
        Named { name, caption: caption.into(), figure: Figure { title: heading.into(), note, columns, panels } }
    }

    fn overall_efficiency(&self) -> Option<Named> {
        let curves = self.overall_curves.as_ref()?;
        let label = || "normalised score".to_owned();
        let steps = Panel { title: String::new(), chart: Chart::Lines(self.lines(curves, false, label())) };
        let seconds = Panel { title: String::new(), chart: Chart::Lines(self.lines(curves, true, label())) };
        let panels = if self.table.has_seconds() { vec![steps, seconds] } else { vec![steps] };
        let environments = self.table.environments.len();
        let note =
            format!("{} over {environments} environments x {}, 95 % stratified bootstrap interval", self.statistic_name(), self.runs());
        let title = "Normalised score over all environments".into();
        let caption = "One curve for all environments: returns are normalised to the ranges of the file and put together. Steps and seconds are \
                       means over the environments.";
        Some(Named { name: "aggregate_efficiency", caption: caption.into(), figure: Figure { title, note, columns: panels.len(), panels } })
    }

    fn rows(&self, estimates: impl Iterator<Item = Estimate>) -> Vec<Interval> {
        let row = |(agent, Estimate { point, low, high }): (&String, Estimate)| Interval { label: agent.clone(), point, low, high };
        self.table.agents.iter().zip(estimates).map(row).collect()
    }

    fn finals(&self) -> Named {
        let single = self.finals.len() == 1;
        let panel = |title: String, x_label: &str, aggregates: &[Aggregates], of: fn(&Aggregates) -> Estimate| {
            let rows = self.rows(aggregates.iter().map(of));
            Panel { title, chart: Chart::Intervals(Intervals { x_label: x_label.into(), rows, ..Intervals::default() }) }
        };
        let panels: Vec<Panel> = match self.finals.as_slice() {
            [only] => {
                let gap = |all: &Vec<Aggregates>| panel(GAP.into(), "normalised score", all, |aggregates| aggregates.gap);
                let points = [
                    panel("interquartile mean".into(), "return", only, |aggregates| aggregates.iqm),
                    panel("mean".into(), "return", only, |aggregates| aggregates.mean),
                ];
                points.into_iter().chain(self.overall.as_ref().map(gap)).collect()
            }
            several => {
                let of: fn(&Aggregates) -> Estimate = match self.statistic {
                    Statistic::Iqm => |aggregates| aggregates.iqm,
                    Statistic::Mean => |aggregates| aggregates.mean,
                };
                several
                    .iter()
                    .zip(&self.table.environments)
                    .map(|(all, environment)| panel(title(environment), "return", all, of))
                    .collect()
            }
        };
        let where_from = if single { format!(" on {}", title(&self.table.environments[0])) } else { String::new() };
        let note = if single { format!("{}, 95 % stratified bootstrap intervals", self.runs()) } else { self.note() };
        let columns = if single { panels.len() } else { columns(panels.len()) };
        let figure = Figure { title: format!("Return of the final parameters{where_from}"), note, columns, panels };
        let caption =
            "Greedy evaluations after the last step, with the parameters that the training ended with: none was chosen afterwards.";
        Named { name: "final_scores", caption: caption.into(), figure }
    }

    fn aggregates(&self) -> Option<Named> {
        let overall = self.overall.as_ref().filter(|_| self.table.environments.len() > 1)?;
        let panel = |title: &str, of: fn(&Aggregates) -> Estimate| {
            let rows = self.rows(overall.iter().map(of));
            let chart = Intervals { x_label: "normalised score".into(), rows, ..Intervals::default() };
            Panel { title: title.into(), chart: Chart::Intervals(chart) }
        };
        let panels = vec![
            panel("median", |aggregates| aggregates.median),
            panel("interquartile mean", |aggregates| aggregates.iqm),
            panel("mean", |aggregates| aggregates.mean),
            panel(GAP, |aggregates| aggregates.gap),
        ];
        let environments = self.table.environments.len();
        let note = format!("final parameters, {environments} environments x {}, 95 % stratified bootstrap intervals", self.runs());
        let figure = Figure { title: "Normalised scores over all environments".into(), note, columns: 2, panels };
        let caption = "Agarwal et al. (2021). Median: of the environments' mean scores. Optimality gap: by how much scores fall short of 1 on average, \
                       where what lies above 1 does not count.";
        Some(Named { name: "aggregate_scores", caption: caption.into(), figure })
    }

    fn profiles(&self) -> Option<Named> {
        let (taus, profiles) = self.profiles.as_ref()?;
        let series = profiles.iter().zip(&self.table.agents).map(|(estimates, agent)| {
            let points = taus.iter().zip(estimates).map(|(tau, estimate)| (*tau, estimate.point)).collect();
            let band = taus.iter().zip(estimates).map(|(tau, Estimate { low, high, .. })| (*tau, *low, *high)).collect();
            Series { band, ..Series::new(agent, points) }
        });
        let what = if self.table.has_scores() { "normalised score" } else { "return" };
        let lines = Lines {
            x_label: format!("τ: {what} of the final parameters"),
            y_label: format!("part of runs with {what} > τ"),
            x_range: taus.first().copied().zip(taus.last().copied()),
            y_range: Some((0.0, 1.0)),
            series: series.collect(),
            direct: false,
            ..Lines::default()
        };
        let environments = if self.table.environments.len() == 1 { title(&self.table.environments[0]) } else { "all environments".into() };
        let note = format!("{environments}, {}, 95 % stratified bootstrap intervals", self.runs());
        let figure = Figure { title: "Performance profile".into(), note, ..Figure::of(Chart::Lines(lines)) };
        let caption =
            "The higher the better at every τ; where one curve lies above another everywhere, its algorithm is stochastically better.";
        Some(Named { name: "performance_profile", caption: caption.into(), figure })
    }

    fn improvement(&self) -> Option<Named> {
        if self.improvements.is_empty() {
            return None;
        }
        let row = |pair: &super::analysis::Improvement| {
            let Estimate { point, low, high } = pair.estimate;
            let [x, y] = [pair.x, pair.y].map(|agent| &self.table.agents[agent]);
            Interval { label: format!("{x} > {y}"), point, low, high }
        };
        let rows: Vec<Interval> = self.improvements.iter().map(row).collect();
        let columns = if rows.len() > ONE_COLUMN { 2 } else { 1 };
        let panel = |rows: &[Interval]| {
            let chart =
                Intervals { x_label: "P(X > Y)".into(), x_range: Some((0.0, 1.0)), rows: rows.to_vec(), reference: Some(0.5), plain: true };
            Panel { title: String::new(), chart: Chart::Intervals(chart) }
        };
        let panels = rows.chunks(rows.len().div_ceil(columns)).map(panel).collect();
        let note = format!(
            "X > Y: a run of X returns more than one of Y, with final parameters; {}, 95 % stratified bootstrap intervals",
            self.runs()
        );
        let figure = Figure { title: "Probability of improvement".into(), note, columns, panels };
        let caption = "Mann and Whitney's U over the number of pairs of runs, ties counting one half, averaged over the environments. An interval that \
                       holds 0.5 is a tie.";
        Some(Named { name: "probability_of_improvement", caption: caption.into(), figure })
    }
}

/// Columns for so many environments.
fn columns(panels: usize) -> usize {
    match panels {
        0 | 1 => 1,
        2 | 4 => 2,
        _ => 3,
    }
}
