//! The figures of a comparison.

use std::borrow::Cow;

use gradus::envs::{gym, registry};

use super::Statistic;
use super::analysis::{Aggregates, Analysis, ByAgent, Curve, ENOUGH, Pair};
use gradus::config::inputs;
use gradus::figure::{Cell, Chart, Figure, Grid, Interval, Intervals, Lines, Panel, Scale, Series, Threshold, solid};
use gradus_statistics::Estimate;

/// A figure with its file name and caption.
pub(super) struct Named {
    pub(super) name: Cow<'static, str>,
    pub(super) figure: Figure,
    /// Caption below the figure in the report.
    pub(super) caption: String,
}

/// File names of all figures that a comparison may write, without extension.
pub(super) const METRICS: [&str; 8] = [
    "sample_efficiency",
    "wall_clock",
    "aggregate_efficiency",
    "final_scores",
    "aggregate_scores",
    "performance_profile",
    "probability_of_improvement",
    "episodes",
];

/// Returns the title of an environment's panel: of one from a file, the path as the comparison calls it.
pub(super) fn title(environment: &str) -> String {
    if let Some(path) = inputs::path_of(environment) {
        return path.to_owned();
    }
    // Gymnasium's CartPole is not ours
    if gym::is_gym(environment) {
        return environment.to_owned();
    }
    registry::find(environment).map_or_else(|_| environment.to_owned(), |world| world.title())
}

fn threshold(environment: &str) -> Option<Threshold> {
    let solved = registry::find(environment).ok()?.solved_at?;
    Some(Threshold { value: solved, label: format!("solved at {solved}").replace('-', "−") })
}

/// Largest number of pairs that are listed as intervals; more are a matrix.
const ONE_LIST: usize = 6;
/// Largest number of agents whose bands, one over the other, can still be told apart.
const BANDS: usize = 4;
/// Number of the palette's grey.
const GREY: usize = 10;

impl Analysis<'_> {
    pub(super) fn statistic_name(&self) -> &'static str {
        match self.statistic {
            Statistic::Iqm => "interquartile mean",
            Statistic::Mean => "mean",
        }
    }

    /// Returns the number of runs of an agent in one environment, such as "10 runs" or "8 to 10 runs".
    pub(super) fn runs(&self) -> String {
        let counts = || (0..self.table.agents.len()).map(|agent| self.table.count(agent));
        let (least, most) = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
        match (least == most, most) {
            (true, 1) => "1 run".into(),
            (true, _) => format!("{most} runs"),
            _ => format!("{least} to {most} runs"),
        }
    }

    /// Whether agents have different numbers of steps.
    pub(super) fn has_budgets(&self) -> bool {
        (0..self.table.environments.len()).any(|at| self.table.has_budgets(at))
    }

    /// Returns when the returns in tables and figures were measured in environment `at`: after the steps that all agents have.
    pub(super) fn moment(&self, at: usize) -> String {
        if !self.table.has_budgets(at) {
            return "of the final parameters".into();
        }
        let (agent, last) = (self.table.shortest(at), self.table.common(at) - 1);
        format!("after {:.0} {}", self.table.mean_step(agent, at, last), self.steps_name())
    }

    /// Returns [`moment`](Analysis::moment) for all environments together.
    pub(super) fn moments(&self) -> &'static str {
        if self.has_budgets() { "after equal steps" } else { "of the final parameters" }
    }

    fn short_moments(&self) -> &'static str {
        self.moments().trim_start_matches("of the ")
    }

    fn note(&self) -> String {
        let (runs, several) = (self.runs(), self.table.environments.len() > 1);
        format!("{} of {runs}{}{}", self.statistic_name(), if several { " each" } else { "" }, self.bars("stratified bootstrap interval"))
    }

    /// Names the intervals of a figure; nothing if every agent has one run.
    fn bars(&self, what: &str) -> String {
        let has_several = (0..self.table.agents.len()).any(|agent| self.table.count(agent) > 1);
        if has_several { format!(", 95 % {what}") } else { String::new() }
    }

    /// Returns all figures for which there is data.
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
        debug_assert!(figures.iter().all(|figure| METRICS.contains(&&*figure.name)), "only figures in METRICS are removed when outdated");
        figures
    }

    fn line(&self, agent: usize, curve: &Curve, seconds: bool) -> Series {
        let xs = curve.seconds.as_ref().filter(|_| seconds).unwrap_or(&curve.steps);
        // the evaluation before training is at 0, which a logarithmic axis cannot show
        let shown = || xs.iter().zip(&curve.estimates).filter(|(x, _)| !(seconds || self.log_steps) || **x > 0.0);
        let mut points: Vec<_> = shown().map(|(x, estimate)| (*x, estimate.point)).collect();
        let mut band: Vec<_> = shown().map(|(x, Estimate { low, high, .. })| (*x, *low, *high)).collect();
        if seconds {
            // a slope across a logarithmic axis would show returns that nobody measured
            points = stairs(&points, |at, (x, _)| (x, at.1));
            band = if self.table.agents.len() > BANDS { Vec::new() } else { stairs(&band, |at, (x, ..)| (x, at.1, at.2)) };
        }
        Series { band, ..Series::new(&self.table.agents[agent], points) }
    }

    /// Returns the axis label of steps: generated tokens if all environments are text tasks, otherwise environment steps.
    pub(super) fn steps_name(&self) -> &'static str {
        let is_text = |name: &String| name.starts_with("file:") || registry::find(name).is_ok_and(|world| world.text.is_some());
        if self.table.environments.iter().all(is_text) { "generated tokens" } else { "environment steps" }
    }

    fn lines(&self, curves: &ByAgent<Curve>, seconds: bool, y_label: String) -> Lines {
        let x_label = if seconds { "seconds of training, one core" } else { self.steps_name() };
        let x_label = if seconds || self.log_steps { format!("{x_label}, logarithmic") } else { x_label.into() };
        let series = curves.iter().map(|(agent, curve)| self.line(*agent, curve, seconds)).collect();
        // agents may differ tenfold in time
        let x_scale = if seconds || self.log_steps { Scale::Log10 } else { Scale::Linear };
        Lines { x_label, y_label, x_scale, series, ..Lines::default() }
    }

    fn efficiency(&self, seconds: bool) -> Named {
        let several = self.curves.len() > 1;
        let panels = self.curves.iter().zip(&self.table.environments).map(|(curves, environment)| {
            let lines = self.lines(curves, seconds, "return of the greedy policy".into());
            // the label of the threshold would collide with the names at the ends of the lines, so a single panel shows it in the title
            let threshold = threshold(environment);
            let title = match &threshold {
                Some(line) if !several => format!("{} ({})", title(environment), line.label),
                _ => title(environment),
            };
            let threshold = threshold.map(|line| Threshold { label: String::new(), ..line });
            // names at the ends of the lines need lines that end at the same x
            let direct = !several && !seconds && !self.has_budgets();
            Panel { title, chart: Chart::Lines(Lines { threshold, direct, ..lines }) }
        });
        let panels: Vec<Panel> = panels.collect();
        let columns = columns(panels.len());
        let broken = if several { "; broken line: solved" } else { "" };
        let (name, heading, caption) = if seconds {
            let caption = "The same evaluations over seconds of training, not counting evaluations. Every run had one core. Each evaluation is \
                           drawn at the mean time of the agent's runs, and its return holds until the next one.";
            ("wall_clock", "Return over time".into(), caption)
        } else {
            let caption = "Each evaluation plays the same episodes, which training never sees, with the most probable actions. The x axis shows \
                           the steps that the policy was trained on.";
            let title = self.finding.clone().unwrap_or_else(|| format!("Return over {}", self.steps_name()));
            ("sample_efficiency", title, caption)
        };
        let has_threshold = self.table.environments.iter().any(|environment| threshold(environment).is_some());
        let banded =
            if seconds && self.table.agents.len() > BANDS { format!("{} of {}", self.statistic_name(), self.runs()) } else { self.note() };
        let note = format!("{banded}{}", if has_threshold { broken } else { "" });
        Named { name: name.into(), caption: caption.into(), figure: Figure { title: heading, note, columns, panels } }
    }

    fn overall_efficiency(&self) -> Option<Named> {
        let curves = self.overall_curves.as_ref()?;
        let label = || "normalised score".to_owned();
        let steps = Panel { title: String::new(), chart: Chart::Lines(self.lines(curves, false, label())) };
        let seconds = Panel { title: String::new(), chart: Chart::Lines(self.lines(curves, true, label())) };
        let panels = if self.table.has_seconds() { vec![steps, seconds] } else { vec![steps] };
        let environments = self.table.environments.len();
        let note = format!(
            "{} over {environments} environments x {}{}",
            self.statistic_name(),
            self.runs(),
            self.bars("stratified bootstrap interval")
        );
        let title = "Normalised score over all environments".into();
        let caption = "One curve per agent over all environments: returns are normalised to the ranges in the file and aggregated. Steps \
                       and seconds are means over the environments.";
        Some(Named {
            name: "aggregate_efficiency".into(),
            caption: caption.into(),
            figure: Figure { title, note, columns: panels.len(), panels },
        })
    }

    /// Returns a panel of one statistic; `all` is the range of all evaluations.
    fn interval_panel(&self, title: &str, x_label: &str, estimates: ByAgent<Estimate>, all: (f64, f64)) -> Panel {
        self.dotted_panel(title, x_label, estimates, &|_| Vec::new(), all)
    }

    /// Returns such a panel with the numbers that an agent's estimate is of.
    fn dotted_panel(
        &self,
        title: &str,
        x_label: &str,
        estimates: ByAgent<Estimate>,
        dots: &dyn Fn(usize) -> Vec<f64>,
        all: (f64, f64),
    ) -> Panel {
        let ends = estimates.values().flat_map(|Estimate { point, low, high }| [*point, *low, *high]);
        let (low, high) = extremes(ends.chain(estimates.keys().flat_map(|agent| dots(*agent))));
        let row = |(agent, Estimate { point, low, high }): (usize, Estimate)| Interval {
            label: self.table.agents[agent].clone(),
            point,
            low,
            high,
            dots: dots(agent),
        };
        let rows = estimates.into_iter().map(row).collect();
        let chart = Intervals { x_label: x_label.into(), x_range: Some(roomy(low, high, all)), rows, ..Intervals::default() };
        Panel { title: title.into(), chart: Chart::Intervals(chart) }
    }

    /// Returns the range of the returns in an environment.
    pub(super) fn returns(&self, at: usize) -> (f64, f64) {
        extremes(self.table.runs.iter().flat_map(|runs| &runs[at]).flat_map(|run| &run.points).map(|point| point.value))
    }

    /// Returns the range of the normalised scores of all environments.
    fn scores(&self) -> (f64, f64) {
        extremes(self.table.points().filter_map(|point| point.score))
    }

    fn finals(&self) -> Named {
        let single = self.finals.len() == 1;
        let panels: Vec<Panel> = match self.finals.as_slice() {
            [only] => {
                let of = |of: fn(&Aggregates) -> Estimate| only.iter().map(|(agent, all)| (*agent, of(all))).collect();
                let gap = |all: &ByAgent<Aggregates>| self.gap_panel(all);
                let points = [
                    self.dotted_panel(
                        "interquartile mean, and every run",
                        "return",
                        of(|aggregates| aggregates.iqm),
                        &|agent| self.last_returns(agent),
                        self.returns(0),
                    ),
                    self.interval_panel("mean", "return", of(|aggregates| aggregates.mean), self.returns(0)),
                ];
                points.into_iter().chain(self.overall.as_ref().map(gap)).collect()
            }
            several => {
                let of: fn(&Aggregates) -> Estimate = match self.statistic {
                    Statistic::Iqm => |aggregates| aggregates.iqm,
                    Statistic::Mean => |aggregates| aggregates.mean,
                };
                let panel = |(at, all): (usize, &ByAgent<Aggregates>)| {
                    let when = if self.table.has_budgets(at) { format!(" {}", self.moment(at)) } else { String::new() };
                    let label = format!("return{when}");
                    let estimates = all.iter().map(|(agent, all)| (*agent, of(all))).collect();
                    self.interval_panel(&title(&self.table.environments[at]), &label, estimates, self.returns(at))
                };
                several.iter().enumerate().map(panel).collect()
            }
        };
        let where_from = if single { format!(" on {}", title(&self.table.environments[0])) } else { String::new() };
        let note = if single { self.runs() + &self.bars("stratified bootstrap intervals") } else { self.note() };
        let columns = if single { panels.len() } else { columns(panels.len()) };
        let when = if single { self.moment(0) } else { self.moments().into() };
        let figure = Figure { title: format!("Return {when}{where_from}"), note, columns, panels };
        let caption = format!(
            "Greedy evaluations {}; no best checkpoint was selected. Every axis spans at least a fifth of the range of returns during training.{}",
            self.moments(),
            if single { self.elsewhere(0) } else { String::new() }
        );
        Named { name: "final_scores".into(), caption, figure }
    }

    /// Returns the returns of an agent's runs in the only environment at the moment that the tables show.
    fn last_returns(&self, agent: usize) -> Vec<f64> {
        let number = self.table.equal(agent, 0);
        self.table.runs[agent][0].iter().map(|run| run.points[number].value).collect()
    }

    fn gap_panel(&self, all: &ByAgent<Aggregates>) -> Panel {
        let (low, high) = self.scores();
        let estimates = all.iter().filter_map(|(agent, aggregates)| Some((*agent, aggregates.of_scores?[1]))).collect();
        self.interval_panel("optimality gap (less is better)", "normalised score", estimates, (0.0, (high - low).max(0.0)))
    }

    fn aggregates(&self) -> Option<Named> {
        let overall = self.overall.as_ref().filter(|_| self.table.environments.len() > 1)?;
        let estimates =
            |of: fn(&Aggregates) -> Option<Estimate>| overall.iter().filter_map(|(agent, all)| Some((*agent, of(all)?))).collect();
        let panel = |title: &str, of: fn(&Aggregates) -> Option<Estimate>| {
            self.interval_panel(title, "normalised score", estimates(of), self.scores())
        };
        let environments = self.table.environments.len();
        let mut panels = vec![
            panel("median", |aggregates| aggregates.of_scores.map(|[median, _]| median)),
            panel("interquartile mean", |aggregates| Some(aggregates.iqm)),
            panel("mean", |aggregates| Some(aggregates.mean)),
            self.gap_panel(overall),
        ];
        if environments == 2 {
            panels.remove(0); // the median of two means is their mean
        }
        let when = self.short_moments();
        let note = format!("{when}, {environments} environments x {}{}", self.runs(), self.bars("stratified bootstrap intervals"));
        let columns = columns(panels.len());
        let figure = Figure { title: "Normalised scores over all environments".into(), note, columns, panels };
        let caption = "The statistics of Agarwal et al. (2021). Median: median of the environments' mean scores. Optimality gap: mean \
                       amount by which scores fall short of 1; scores above 1 count as 1.";
        Some(Named { name: "aggregate_scores".into(), caption: caption.into(), figure })
    }

    fn profiles(&self) -> Option<Named> {
        let (taus, profiles) = self.profiles.as_ref()?;
        let series = |(agent, estimates): (&usize, &Vec<Estimate>)| {
            let points = taus.iter().zip(estimates).map(|(tau, estimate)| (*tau, estimate.point)).collect();
            let band = taus.iter().zip(estimates).map(|(tau, Estimate { low, high, .. })| (*tau, *low, *high)).collect();
            Series { band, ..Series::new(&self.table.agents[*agent], points) }
        };
        let all: Vec<Series> = profiles.iter().map(series).collect();
        let what = if self.table.has_scores() { "normalised score" } else { "return" };
        let lines = |series: Vec<Series>, y_label: String| {
            Chart::Lines(Lines {
                x_label: format!("τ: {what} {}", self.moments()),
                y_label,
                x_range: taus.first().copied().zip(taus.last().copied()),
                y_range: Some((0.0, 1.0)),
                series,
                ..Lines::default()
            })
        };
        let y_label = format!("part of runs with {what} > τ");
        // one panel for each agent, before the others in grey
        let apart = |own: usize| {
            let grey = |series: &Series| Series { label: String::new(), band: Vec::new(), style: Some(solid(GREY)), ..series.clone() };
            let others = all.iter().enumerate().filter(|(number, _)| *number != own).map(|(_, series)| grey(series));
            let own_line = Series { label: String::new(), style: Some(solid(0)), ..all[own].clone() };
            Panel { title: all[own].label.clone(), chart: lines(others.chain([own_line]).collect(), "part of runs".into()) }
        };
        let (panels, columns) = match all.len() > BANDS {
            true => ((0..all.len()).map(apart).collect(), columns(all.len())),
            false => (vec![Panel { title: String::new(), chart: lines(all, y_label.clone()) }], 1),
        };
        let environments = if self.table.environments.len() == 1 { title(&self.table.environments[0]) } else { "all environments".into() };
        let of_what = if columns > 1 { format!("{y_label}; grey: the other agents; ") } else { String::new() };
        let note = format!("{of_what}{environments}, {}{}", self.runs(), self.bars("stratified bootstrap intervals"));
        let figure = Figure { title: "Performance profile".into(), note, columns, panels };
        let caption = "Higher is better at every τ. If one curve lies above another everywhere, its agent is stochastically dominant in these runs; where bands overlap, other runs may differ.";
        Some(Named { name: "performance_profile".into(), caption: caption.into(), figure })
    }

    fn improvement(&self) -> Option<Named> {
        let agents = &self.table.agents;
        if self.improvements.is_empty() {
            return None;
        }
        let is_list = self.improvements.len() <= ONE_LIST;
        let chart = if is_list {
            let row = |pair: &Pair| {
                let Estimate { point, low, high } = pair.estimate;
                Interval { label: format!("{} > {}", agents[pair.x], agents[pair.y]), point, low, high, dots: Vec::new() }
            };
            let rows = self.improvements.iter().map(row).collect();
            Chart::Intervals(Intervals { x_label: "P(X > Y)".into(), x_range: Some((0.0, 1.0)), rows, reference: Some(0.5), plain: true })
        } else {
            let everywhere = self.table.agents_everywhere();
            let (rows, columns) = (&everywhere[..everywhere.len() - 1], &everywhere[1..]);
            // every pair once: cells below the diagonal are empty
            let cell = |x: &usize, y: &usize| match self.improvements.iter().find(|pair| (pair.x, pair.y) == (*x, *y)) {
                None => Cell::default(),
                Some(pair) => {
                    let Estimate { point, low, high } = pair.estimate;
                    let decided = (low > 0.5 || high < 0.5) && self.runs_of(pair) >= ENOUGH;
                    let value = Some(if decided { point } else { 0.5 });
                    Cell { value, text: format!("{point:.2}"), note: format!("{low:.2} to {high:.2}"), ..Cell::default() }
                }
            };
            Chart::Grid(Grid {
                columns: columns.len(),
                cells: rows.iter().flat_map(|x| columns.iter().map(move |y| cell(x, y))).collect(),
                value_label: "P(row > column)".into(),
                range: Some((0.0, 1.0)),
                row_names: rows.iter().map(|x| agents[*x].clone()).collect(),
                column_names: columns.iter().map(|y| agents[*y].clone()).collect(),
                around: true,
            })
        };
        let (runs, when) = (self.runs(), self.short_moments());
        let note = match is_list {
            true => {
                format!("how likely a run of X returns more than one of Y; {when}, {runs}{}", self.bars("stratified bootstrap intervals"))
            }
            false => format!("{when}, {runs}{}; white: tied or undecided", self.bars("bootstrap intervals")),
        };
        let figure = Figure { title: "Probability of improvement".into(), note, ..Figure::of(chart) };
        let caption = "Mann and Whitney's U divided by the number of pairs of runs, with ties counted as one half, averaged over the environments. If \
                       an interval contains 0.5, the two are tied or their order is undecided: the tables say which.";
        Some(Named { name: "probability_of_improvement".into(), caption: caption.into(), figure })
    }
}

/// Lets every number hold until the next one: `hold` returns the first point at the x of the second.
fn stairs<T: Copy>(points: &[T], hold: impl Fn(T, T) -> T) -> Vec<T> {
    let steps = points.windows(2).flat_map(|pair| [pair[0], hold(pair[0], pair[1])]);
    steps.chain(points.last().copied()).collect()
}

/// Returns the ends of an axis that contains `low` to `high` and spans at least a fifth of `all`, the range of all evaluations, so that
/// small differences do not look large.
fn roomy(low: f64, high: f64, all: (f64, f64)) -> (f64, f64) {
    let least = 0.2 * (all.1 - all.0);
    let missing = (least - (high - low)).max(0.0);
    // extends downwards as far as `all` reaches, and upwards for the rest
    let down = missing.min((low - all.0).max(0.0)).max(missing - (all.1 - high).max(0.0)).min(missing);
    let (low, high) = (low - down, high + missing - down);
    let air = 0.04 * if high > low { high - low } else { low.abs().max(1.0) };
    (low - air, high + air)
}

/// Returns the smallest and the largest number.
fn extremes(numbers: impl Iterator<Item = f64>) -> (f64, f64) {
    numbers.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), number| (low.min(number), high.max(number)))
}

/// Returns the number of columns for a number of panels.
fn columns(panels: usize) -> usize {
    match panels {
        0 | 1 => 1,
        2 | 4 => 2,
        _ => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::{roomy, stairs};

    #[test]
    fn a_return_holds_until_the_next_evaluation() {
        let points = stairs(&[(1.0, 20.0), (10.0, 90.0), (20.0, 80.0)], |at, (x, _)| (x, at.1));
        assert_eq!(points, [(1.0, 20.0), (10.0, 20.0), (10.0, 90.0), (20.0, 90.0), (20.0, 80.0)]);
        assert!(stairs(&[] as &[(f64, f64)], |at, _| at).is_empty());
    }

    #[test]
    fn axes_span_at_least_a_fifth_of_all_evaluations() {
        let near = |(low, high): (f64, f64), expected: (f64, f64)| (low - expected.0).abs() < 1e-9 && (high - expected.1).abs() < 1e-9;
        // the axis spans a fifth of 500, plus a margin of 4 % at each end
        assert!(near(roomy(492.0, 500.0, (0.0, 500.0)), (396.0, 504.0)), "near the top: {:?}", roomy(492.0, 500.0, (0.0, 500.0)));
        assert!(near(roomy(0.0, 0.01, (0.0, 0.5)), (-0.004, 0.104)), "near the bottom: {:?}", roomy(0.0, 0.01, (0.0, 0.5)));
        assert!(near(roomy(100.0, 400.0, (0.0, 500.0)), (88.0, 412.0)), "wide enough: {:?}", roomy(100.0, 400.0, (0.0, 500.0)));
        let (low, high) = roomy(-200.0, -200.0, (-200.0, -200.0));
        assert!(low < -200.0 && high > -200.0);
    }
}
