//! The tables of aggregates, as CSV, in Markdown and in LaTeX. They have no measured times.
//!
//! Two agents are tied if the interval of their difference lies within a margin of no difference: 0.4 to 0.6 for a probability of improvement, and a twentieth of the range of
//! all returns in the environment for a paired difference. If the interval is wider and contains no difference, they are undecided. A single run has no interval and no verdict.

use std::fmt::Write;

use super::Statistic;
use super::analysis::{Aggregates, Analysis, ByAgent, ENOUGH, Pair, Solved, by_problem};
use super::figures::title;
pub(super) use gradus::numbers::typeset as short;
use gradus_statistics::csv::{push_row, quoted};
use gradus_statistics::{Estimate, coverage};

/// One table of the report: heading, note (may be empty), column names and rows.
pub(super) struct Sheet {
    pub(super) heading: String,
    pub(super) note: String,
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

impl Sheet {
    /// Returns the table in Markdown, with its heading and its note.
    pub(super) fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.iter().map(|cell| markdown(cell)).collect::<Vec<_>>().join(" | "));
        let rule = format!("|{}\n", " --- |".repeat(self.columns.len()));
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        let note = if self.note.is_empty() { String::new() } else { format!("{}\n\n", markdown(&self.note)) };
        format!("\n## {}\n\n{note}{}{rule}{rows}", markdown(&self.heading), line(&self.columns))
    }
}

/// Half the width of the interval within which a probability of improvement is that of a tie.
const TIE: f64 = 0.1;

/// The share of the range of returns within which a difference is that of a tie.
const SMALL: f64 = 0.05;

/// Formats an estimate from this number of runs; a single run has no interval.
fn with_interval(Estimate { point, low, high }: &Estimate, runs: usize) -> String {
    if runs < 2 { short(*point) } else { format!("{} [{}, {}]", short(*point), short(*low), short(*high)) }
}

impl Analysis<'_> {
    /// Returns `summary.csv`: one row per environment, agent (or pair of agents) and statistic. The environment `all` marks a statistic
    /// over all environments. The column `text` has the verdict on a pair of agents, `stands` if it is significant after Holm's correction,
    /// or the seeds of the runs that fell.
    pub(super) fn summary_csv(&self) -> String {
        let mut text = String::from("env,agent,runs,statistic,value,low,high,text\n");
        let mut push = |env: &str, agent: &str, runs: usize, statistic: &str, numbers: [Option<f64>; 3], note: &str| {
            let numbers = numbers.map(|number| number.map_or_else(String::new, |number| number.to_string()));
            let names = [quoted(env), quoted(agent), runs.to_string(), statistic.to_owned()];
            push_row(&mut text, &[names.as_slice(), &numbers, &[quoted(note)]].concat());
        };
        let interval = |Estimate { point, low, high }: Estimate, runs: usize| {
            let [low, high] = [low, high].map(|end| Some(end).filter(|_| runs > 1));
            [Some(point), low, high]
        };
        let number = |number: f64| [Some(number), None, None];
        let (agents, environments) = (&self.table.agents, &self.table.environments);
        let runs = |agent: usize| self.table.count(agent);
        let finals = self.finals.iter().zip(environments).map(|(all, environment)| (environment.as_str(), all));
        let overall = self.overall.iter().map(|all| ("all", all));
        for (environment, all) in finals.chain(overall) {
            for (&agent, Aggregates { iqm, mean, of_scores }) in all {
                let mut push = |statistic, estimate: &Estimate| {
                    push(environment, &agents[agent], runs(agent), statistic, interval(*estimate, runs(agent)), "");
                };
                push("iqm", iqm);
                push("mean", mean);
                if let Some([median, gap]) = of_scores {
                    push("median", median);
                    push("optimality_gap", gap);
                }
            }
        }
        for (finals, environment) in self.own_finals.iter().zip(environments) {
            for (&agent, Aggregates { iqm, mean, .. }) in finals.iter().flatten() {
                push(environment, &agents[agent], runs(agent), "own_steps_iqm", interval(*iqm, runs(agent)), "");
                push(environment, &agents[agent], runs(agent), "own_steps_mean", interval(*mean, runs(agent)), "");
            }
        }
        for (solved, environment) in self.solved.iter().zip(environments) {
            for (&agent, Solved { runs: reached, first, all_from, fallen, fall, .. }) in solved.iter().flatten() {
                let mut push = |statistic, numbers, text: &str| push(environment, &agents[agent], runs(agent), statistic, numbers, text);
                push("solved_runs", number(*reached as f64), "");
                push("first_solved_step", first.map_or([None; 3], |first| interval(first, runs(agent))), "");
                push("all_solved_at_step", [*all_from, None, None], "");
                if fall.is_some() {
                    let seeds: Vec<String> = fallen.iter().map(|(seed, _)| seed.to_string()).collect();
                    let lowest = fallen.iter().map(|(_, lowest)| *lowest).reduce(f64::min);
                    push("fallen_runs", number(fallen.len() as f64), &seeds.join(" "));
                    push("lowest_after_solved", [lowest, None, None], "");
                }
            }
        }
        let mut push_pairs = |environment: &str, pairs: &[Pair], statistic: &str, (nothing, margin): (f64, f64)| {
            for pair in pairs {
                let name = format!("{} > {}", agents[pair.x], agents[pair.y]);
                let mut push = |statistic: &str, numbers, text: &str| push(environment, &name, runs(pair.x), statistic, numbers, text);
                let least = self.runs_of(pair);
                push(statistic, interval(pair.estimate, least), if least < ENOUGH { "undecided" } else { pair.verdict(nothing, margin) });
                let p = |p: f64| if least < 2 { [None; 3] } else { number(p) };
                push(&format!("{statistic}_p"), p(pair.p), "");
                push(&format!("{statistic}_p_holm"), p(pair.corrected), if pair.stands() { "stands" } else { "" });
            }
        };
        for (at, environment) in environments.iter().enumerate() {
            push_pairs(environment, &self.improvements_within[at], "probability_of_improvement", (0.5, TIE));
            push_pairs(environment, &self.differences[at], "paired_difference", (0.0, self.small(at)));
            push_pairs(environment, &self.sooner[at], "probability_of_solving_sooner", (0.5, TIE));
        }
        if environments.len() > 1 {
            push_pairs("all", &self.improvements, "probability_of_improvement", (0.5, TIE));
        }
        text
    }

    /// The number of runs of an agent of a pair, of the one with fewer.
    pub(super) fn runs_of(&self, pair: &Pair) -> usize {
        self.table.count(pair.x).min(self.table.count(pair.y))
    }

    /// A difference of returns that is small in an environment.
    fn small(&self, at: usize) -> f64 {
        let (low, high) = self.returns(at);
        SMALL * (high - low)
    }

    /// Says what intervals and tests of few runs are worth. `smallest` is the least p-value that n runs of each agent can have.
    fn on_few_runs(&self, smallest: impl Fn(usize) -> f64) -> String {
        let least = (0..self.table.agents.len()).map(|agent| self.table.count(agent)).min().unwrap_or(0);
        match least {
            0 => String::new(),
            1 => " An agent with one run has no interval, and nothing is decided about it.".into(),
            few if few < ENOUGH => {
                let p = short(smallest(few));
                format!(
                    " With {few} runs an interval is little more than their range, and no p-value can be below {p}: nothing is decided by a test."
                )
            }
            few if smallest(few) > 0.05 => format!(" With {few} runs no p-value can be below {}.", short(smallest(few))),
            _ => String::new(),
        }
    }

    /// Returns the tables of `summary.md` and of the report.
    pub(super) fn sheets(&self) -> Vec<Sheet> {
        let environments = 0..self.table.environments.len();
        let several = environments.len() > 1;
        let mut sheets: Vec<Sheet> = environments.clone().map(|at| self.environment_sheet(at)).collect();
        sheets.extend(environments.clone().filter_map(|at| self.own_sheet(at)));
        sheets.extend(self.overall.as_ref().filter(|_| several).map(|overall| self.overall_sheet(overall)));
        sheets.extend(environments.clone().filter_map(|at| self.solved_sheet(at)));
        if !self.improvements.is_empty() {
            let what = if several { " over all environments" } else { "" };
            sheets.push(self.improvement_sheet(what, &self.improvements));
            for at in environments.clone().filter(|_| several) {
                let what = format!(" on {}", title(&self.table.environments[at]));
                sheets.push(self.improvement_sheet(&what, &self.improvements_within[at]));
            }
            sheets.extend(environments.clone().filter(|at| !self.differences[*at].is_empty()).map(|at| self.difference_sheet(at)));
            sheets.extend(environments.filter(|at| !self.sooner[*at].is_empty()).map(|at| self.sooner_sheet(at)));
        }
        sheets
    }

    /// Names the agent with the highest interquartile mean in an environment, the agents tied with it, and those above or below it.
    fn leaders(&self, at: usize) -> String {
        // if interquartile means are equal, the mean decides
        let points = |agent: &usize| [self.finals[at][agent].iqm.point, self.finals[at][agent].mean.point];
        let Some(best) = self.finals[at].keys().copied().reduce(|best, agent| if points(&agent) > points(&best) { agent } else { best })
        else {
            return String::new();
        };
        let verdict = |pair: &Pair| match (pair.x == best, pair.verdict(0.5, TIE)) {
            _ if self.runs_of(pair) < ENOUGH => "undecided",
            (_, "tie") => "tie",
            (_, "undecided") => "undecided",
            (true, "higher") | (false, "lower") if pair.stands() => "below",
            (true, "higher") | (false, "lower") => "perhaps",
            _ if pair.stands() => "above",
            _ => "perhaps above",
        };
        let named = |wanted: &str| -> Vec<&str> {
            let pairs = self.improvements_within[at].iter().filter(|pair| (pair.x == best || pair.y == best) && verdict(pair) == wanted);
            pairs.map(|pair| self.table.agents[if pair.x == best { pair.y } else { pair.x }].as_str()).collect()
        };
        let list = |what: &str, names: Vec<&str>| if names.is_empty() { String::new() } else { format!(" {what}: {}.", names.join("; ")) };
        let (name, value) = (&self.table.agents[best], short(points(&best)[0]));
        let others = [
            list("Tied with it (the interval of P(X > Y) contains 0.5 and lies within 0.4 to 0.6)", named("tie")),
            list("Undecided (the interval contains 0.5 and is wider, or the runs are few)", named("undecided")),
            list("Below it", named("below")),
            list("Below it by the interval, but not significant after Holm's correction", named("perhaps")),
            list("Above it by P(X > Y)", named("above")),
            list("Above it by the interval of P(X > Y), but not significant after Holm's correction", named("perhaps above")),
        ];
        format!("Highest interquartile mean: {name}, {value}.{}", others.concat())
    }

    fn solved_sheet(&self, at: usize) -> Option<Sheet> {
        let all = self.solved[at].as_ref()?;
        let Solved { at: threshold, fall, .. } = all.values().next()?;
        let threshold = short(*threshold);
        let mut columns: Vec<String> =
            ["agent".into(), "runs".into(), format!("reached {threshold}"), "first at step".into(), "all at once at step".into()].into();
        columns.extend(fall.iter().flat_map(|fall| [format!("fell below {} afterwards", short(*fall)), "lowest".into()]));
        let row = |(&agent, solved): (&usize, &Solved)| {
            let runs = self.table.count(agent);
            let from = solved.all_from.map_or_else(|| "never".into(), |step| format!("{step:.0}"));
            let whole = |Estimate { point, low, high }: &Estimate| match runs {
                1 => format!("{point:.0}"),
                _ => format!("{point:.0} [{low:.0}, {high:.0}]"),
            };
            let first = solved.first.as_ref().map_or_else(String::new, whole);
            let mut row = vec![self.table.agents[agent].clone(), runs.to_string(), solved.runs.to_string(), first, from];
            if fall.is_some() {
                let seeds: Vec<String> = solved.fallen.iter().map(|(seed, _)| seed.to_string()).collect();
                let lowest = solved.fallen.iter().map(|(_, lowest)| *lowest).reduce(f64::min);
                let named = match seeds.as_slice() {
                    [] => "0".into(),
                    [only] => format!("1: seed {only}"),
                    _ => format!("{}: seeds {}", seeds.len(), seeds.join(", ")),
                };
                row.extend([named, lowest.map_or_else(String::new, short)]);
            }
            row
        };
        let note = "Greedy evaluations, without the one at step 0. First at step: mean over the runs of the step of the first solved \
                    evaluation. All at once at step: first evaluation at which all runs are solved.";
        let budgets = if self.table.has_budgets(at) { " Every agent has its own number of steps." } else { "" };
        let heading = format!("{}: solved, and fallen again", title(&self.table.environments[at]));
        Some(Sheet { heading, note: format!("{note}{budgets}"), columns, rows: all.iter().map(row).collect() })
    }

    fn environment_sheet(&self, at: usize) -> Sheet {
        let environment = &self.table.environments[at];
        let solved = gradus::envs::registry::find(environment).ok().and_then(|world| world.solved_at);
        let mut columns: Vec<String> =
            ["agent", "runs", "interquartile mean", "mean", "lowest run", "highest run"].map(String::from).into();
        columns.extend(solved.map(|solved| format!("runs at {} or more", short(solved))));
        let gaps = self.overall.as_ref().filter(|_| self.table.environments.len() == 1);
        columns.extend(gaps.map(|_| "optimality gap".to_owned()));
        let row = |agent: usize| {
            let number = self.table.equal(agent, at);
            let finals: Vec<f64> = self.table.runs[agent][at].iter().map(|run| run.points[number].value).collect();
            let (low, high) =
                (finals.iter().copied().fold(f64::INFINITY, f64::min), finals.iter().copied().fold(f64::NEG_INFINITY, f64::max));
            let Aggregates { iqm, mean, .. } = &self.finals[at][&agent];
            let mut row = vec![
                self.table.agents[agent].clone(),
                finals.len().to_string(),
                with_interval(iqm, finals.len()),
                with_interval(mean, finals.len()),
                short(low),
                short(high),
            ];
            row.extend(solved.map(|solved| finals.iter().filter(|value| **value >= solved).count().to_string()));
            row.extend(gaps.and_then(|all| all[&agent].of_scores).map(|[_, gap]| with_interval(&gap, finals.len())));
            row
        };
        let rows = self.table.agents_in(at).into_iter().map(row).collect();
        let heading = format!("{}: return {}", title(environment), self.moment(at));
        Sheet { heading, note: self.leaders(at) + &self.elsewhere(at) + &self.caveats[at], columns, rows }
    }

    /// Names the agents whose long rollouts were not evaluated at the steps of the others, but before their next update or after it.
    pub(super) fn elsewhere(&self, at: usize) -> String {
        let table = self.table;
        let steps = table.mean_step(table.shortest(at), at, table.common(at) - 1);
        let sentence = |agent: usize| {
            let (number, name) = (table.equal(agent, at), &table.agents[agent]);
            let own = table.mean_step(agent, at, number);
            let why = match number + 1 < table.common(at) {
                true => "before its next update",
                false if table.has_budgets(at) && own > 1.05 * steps => "the first evaluation after that",
                false => return String::new(),
            };
            format!(" {name}: after {own:.0} {}, {why}.", self.steps_name())
        };
        table.agents_in(at).into_iter().map(sentence).collect()
    }

    /// The returns after each agent's own steps, if agents have different numbers of steps.
    fn own_sheet(&self, at: usize) -> Option<Sheet> {
        let finals = self.own_finals[at].as_ref()?;
        let columns = ["agent", "steps", "interquartile mean", "mean"].map(String::from).into();
        let row = |(&agent, Aggregates { iqm, mean, .. }): (&usize, &Aggregates)| {
            let last = self.table.runs[agent][at][0].points.len() - 1;
            let steps = format!("{:.0}", self.table.mean_step(agent, at, last));
            let runs = self.table.count(agent);
            vec![self.table.agents[agent].clone(), steps, with_interval(iqm, runs), with_interval(mean, runs)]
        };
        let heading = format!("{}: return of the final parameters, after each agent's own steps", title(&self.table.environments[at]));
        Some(Sheet { heading, note: String::new(), columns, rows: finals.iter().map(row).collect() })
    }

    fn overall_sheet(&self, overall: &ByAgent<Aggregates>) -> Sheet {
        let columns = ["agent", "interquartile mean", "median", "mean", "optimality gap"].map(String::from).into();
        let row = |(&agent, aggregates): (&usize, &Aggregates)| {
            let Aggregates { iqm, mean, of_scores } = aggregates;
            let shown = |estimate: &Estimate| with_interval(estimate, self.table.count(agent));
            let [median, gap] = of_scores.map_or_else(Default::default, |of_scores| of_scores.map(|estimate| shown(&estimate)));
            vec![self.table.agents[agent].clone(), shown(iqm), median, shown(mean), gap]
        };
        let rows = overall.iter().map(row).collect();
        Sheet { heading: "Normalised scores over all environments".into(), note: self.left_out(), columns, rows }
    }

    /// Names the agents that have no runs in some environments, and so no place in a table over all of them.
    pub(super) fn left_out(&self) -> String {
        let everywhere = self.table.agents_everywhere();
        let missing: Vec<&str> = (0..self.table.agents.len())
            .filter(|agent| !everywhere.contains(agent))
            .map(|agent| self.table.agents[agent].as_str())
            .collect();
        if missing.is_empty() { String::new() } else { format!("Without {}, not run in every environment.", missing.join(", ")) }
    }

    fn improvement_sheet(&self, what: &str, pairs: &[Pair]) -> Sheet {
        let columns = ["X", "Y", "P(X > Y)", "p", "p (Holm)", "X against Y"].map(String::from).into();
        let returns = if self.has_budgets() { "return after equal steps" } else { "final return" };
        let left_out =
            if what.ends_with("all environments") { format!(" {}", self.left_out()).trim_end().to_owned() } else { String::new() };
        let note = format!(
            "Probability that the {returns} of a run of X is higher than that of a run of Y. p: Mann-Whitney test; p (Holm): corrected \
             for all pairs in this table. Tie: the interval contains 0.5 and lies within 0.4 to 0.6.{}{left_out}",
            self.on_few_runs(|n| 2.0 / (0..n).map(|i| (2 * n - i) as f64 / (n - i) as f64).product::<f64>())
        );
        let rows = pairs.iter().map(|pair| self.pair_row(pair, (0.5, TIE))).collect();
        Sheet { heading: format!("Probability of improvement{what}"), note, columns, rows }
    }

    fn difference_sheet(&self, at: usize) -> Sheet {
        let columns = ["X", "Y", "mean difference", "p", "p (Holm)", "X against Y"].map(String::from).into();
        let first = &self.table.runs[self.table.shortest(at)][at];
        let shared = by_problem(first, first).filter(|_| !self.table.has_budgets(at));
        let shared = shared.map(|table| table[0].len());
        let returns = if self.table.has_budgets(at) { "Returns after equal steps" } else { "Final returns" };
        let resampled =
            shared.map_or_else(|| "the seeds".into(), |problems| format!("both the seeds and the {problems} problems that all runs share"));
        let note = format!(
            "{returns} of X minus those of Y with the same seed; the interval resamples {resampled}. p: sign-flip test over the seeds, exact up \
             to 20 seeds; p (Holm): corrected for all pairs in this table. Tie: the interval contains 0 and lies within {} of it, a twentieth of the range of all \
             returns.{}",
            short(self.small(at)),
            self.on_few_runs(|n| 2.0 * 0.5_f64.powi(n as i32))
        );
        let rows = self.differences[at].iter().map(|pair| self.pair_row(pair, (0.0, self.small(at)))).collect();
        let heading = format!("Paired differences on {}", title(&self.table.environments[at]));
        Sheet { heading, note, columns, rows }
    }

    fn sooner_sheet(&self, at: usize) -> Sheet {
        let columns = ["X", "Y", "P(X sooner)", "p", "p (Holm)", "X against Y"].map(String::from).into();
        let note = "Probability that a run of X is solved at an earlier evaluation than a run of Y; two runs solved at the same evaluation \
                    count one half. Agents with a run that was never solved are left out. p: Mann-Whitney test; p (Holm): corrected for \
                    all pairs in this table.";
        let rows = self.sooner[at].iter().map(|pair| {
            let mut row = self.pair_row(pair, (0.5, TIE));
            if let Some(verdict) = row.last_mut() {
                *verdict = verdict.replace("higher", "sooner").replace("lower", "later");
            }
            row
        });
        Sheet {
            heading: format!("{}: solved sooner", title(&self.table.environments[at])),
            note: note.into(),
            columns,
            rows: rows.collect(),
        }
    }

    /// Returns names, estimate, p-values and verdict of a pair. `nothing` is the estimate that means no difference, and `margin` that which is small.
    fn pair_row(&self, pair: &Pair, (nothing, margin): (f64, f64)) -> Vec<String> {
        let runs = self.runs_of(pair);
        let verdict = match (pair.verdict(nothing, margin), pair.stands()) {
            _ if runs < 2 => "undecided: one run".into(),
            ("undecided", _) => format!("undecided: the interval contains {nothing}"),
            (verdict, _) if runs < ENOUGH => format!("undecided: {verdict} by the interval of {runs} runs"),
            ("tie", _) => "tie".into(),
            (verdict, true) => verdict.to_owned(),
            (verdict, false) if pair.p > 0.05 => format!("{verdict} by the interval, not by the test"),
            (verdict, false) => format!("{verdict}; not significant after Holm's correction"),
        };
        let [x, y] = [pair.x, pair.y].map(|agent| self.table.agents[agent].clone());
        let p = |p: f64| if runs < 2 { String::new() } else { p_value(p) };
        vec![x, y, with_interval(&pair.estimate, runs), p(pair.p), p(pair.corrected), verdict]
    }

    /// Says what the brackets of all tables are.
    pub(super) fn brackets(&self) -> String {
        let runs = (0..self.table.agents.len()).map(|agent| self.table.count(agent)).filter(|runs| *runs > 1).min();
        if runs.is_none() {
            return "Every agent has one run, and no interval.".into();
        }
        let few = runs.filter(|runs| *runs <= 30).map(|runs| {
            let percent = 100.0 * coverage(runs);
            format!(" With few runs they are too short: of such intervals of the mean of {runs} normally distributed returns, about {percent:.0} % contain the true mean.")
        });
        format!("Brackets: 95 % stratified bootstrap intervals, computed as in rliable.{}", few.unwrap_or_default())
    }

    /// Returns `summary.md`.
    pub(super) fn summary_md(&self, name: &str) -> String {
        let mut text = format!("# {}\n\n{}\n", markdown(name), self.brackets());
        self.sheets().iter().for_each(|sheet| text += &sheet.markdown());
        text
    }

    /// Returns `summary.tex`: one table of agents by environments, for a paper that uses the package booktabs. A cell has the interquartile mean or the mean of the returns of
    /// the final parameters, with its interval; bold are the highest one of an environment and those that are not significantly below it.
    pub(super) fn summary_tex(&self, name: &str) -> String {
        let (agents, environments) = (&self.table.agents, &self.table.environments);
        let (is_iqm, runs) = (self.statistic == Statistic::Iqm, self.runs());
        let estimate = |at: usize, agent: usize| {
            let Aggregates { iqm, mean, .. } = &self.finals[at][&agent];
            if is_iqm { *iqm } else { *mean }
        };
        let shown = |estimate: &Estimate, is_best: bool, runs: usize| {
            let point = latex(&short(estimate.point));
            let point = if is_best { format!("\\textbf{{{point}}}") } else { point };
            let interval = format!(" {{\\scriptsize [{}, {}]}}", latex(&short(estimate.low)), latex(&short(estimate.high)));
            if runs < 2 { point } else { point + &interval }
        };
        let overall = self.overall.as_ref().filter(|_| environments.len() > 1);
        let best = |at: usize| {
            self.finals[at].keys().copied().reduce(|a, b| if estimate(at, b).point > estimate(at, a).point { b } else { a }).unwrap_or(0)
        };
        let is_behind = |at: usize, agent: usize| {
            let pair = self.improvements_within[at].iter().find(|pair| [(pair.x, pair.y), (pair.y, pair.x)].contains(&(best(at), agent)));
            let is_below = |pair: &Pair| (pair.estimate.point > 0.5) == (pair.y == agent);
            pair.is_some_and(|pair| pair.stands() && is_below(pair) && self.runs_of(pair) >= ENOUGH)
        };
        let mut rows = String::new();
        for (agent, name) in agents.iter().enumerate() {
            let n = self.table.count(agent);
            let cell = |at: usize| {
                let is_played = self.finals[at].contains_key(&agent);
                if is_played { shown(&estimate(at, agent), !is_behind(at, agent), n) } else { "--".into() }
            };
            let cells = (0..environments.len()).map(cell);
            let score = overall
                .map(|all| all.get(&agent).map_or_else(|| "--".into(), |of| shown(if is_iqm { &of.iqm } else { &of.mean }, false, n)));
            let cells: Vec<String> = std::iter::once(latex(name)).chain(cells).chain(score).collect();
            writeln!(rows, "    {} \\\\", cells.join(" & ")).expect("writing to a string does not fail");
        }
        let titles = environments.iter().map(|environment| latex(&title(environment)));
        let head: Vec<String> =
            std::iter::once("agent".to_owned()).chain(titles).chain(overall.map(|_| "normalised score".to_owned())).collect();
        let columns = "r".repeat(head.len() - 1);
        let intervals =
            if (0..agents.len()).all(|agent| self.table.count(agent) < 2) { "" } else { ", with 95\\,\\% bootstrap intervals in brackets" };
        let caption = format!(
            "{}: {} of the returns {} over {runs}{intervals}. Bold{}: the highest, and those that are not significantly below it.",
            latex(name),
            self.statistic_name(),
            self.moments(),
            if overall.is_some() { ", in each environment" } else { "" }
        );
        let label = name
            .to_lowercase()
            .split(|letter: char| !letter.is_ascii_alphanumeric())
            .filter(|word| !word.is_empty())
            .collect::<Vec<_>>()
            .join("-");
        format!(
            "% Needs \\usepackage{{booktabs}}.\n\\begin{{table}}\n  \\centering\n  \\caption{{{caption}}}\n  \\label{{tab:{label}}}\n  \\begin{{tabular}}{{l{columns}}}\n    \\toprule\n    {} \\\\\n    \\midrule\n{rows}    \
             \\bottomrule\n  \\end{{tabular}}\n\\end{{table}}\n",
            head.join(" & ")
        )
    }
}

/// Returns a number with its noun: `1 seed`, `2 seeds`.
pub(super) fn plural(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// Returns a text that Markdown shows as it is, in a line or in a cell: no emphasis, code, link, tag or further cell.
pub(super) fn markdown(text: &str) -> String {
    let mut escaped = String::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let next = letters.peek().copied().unwrap_or(' ');
        let is_special = match letter {
            '|' | '*' | '`' | '\\' => true,
            '<' => next.is_alphanumeric() || "/!?".contains(next),
            '&' => next.is_alphanumeric() || next == '#',
            ']' => next == '(' || next == '[',
            _ => false,
        };
        escaped.extend(is_special.then_some('\\').into_iter().chain([if letter.is_control() { ' ' } else { letter }]));
    }
    escaped
}

/// Returns a text as LaTeX shows it.
fn latex(text: &str) -> String {
    let mut escaped = String::new();
    for letter in text.chars() {
        match letter {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => escaped.extend(['\\', letter]),
            '<' | '>' | '|' => escaped.extend(['$', letter, '$']),
            '\u{2212}' => escaped.push_str("$-$"),
            '\\' => escaped.push_str(r"\textbackslash{}"),
            // after the end of a row, a bracket would begin an argument
            '[' if escaped.is_empty() => escaped.push_str("{[}"),
            '~' => escaped.push_str(r"\textasciitilde{}"),
            '^' => escaped.push_str(r"\textasciicircum{}"),
            _ => escaped.push(letter),
        }
    }
    escaped
}

/// Formats a p-value with three decimals, or as `< 0.001`.
fn p_value(p: f64) -> String {
    match p {
        small if small < 0.0005 => "< 0.001".into(),
        p => format!("{p:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{latex, markdown};

    #[test]
    fn names_are_shown_as_they_are() {
        assert_eq!(markdown("a|b *x* `y` <b>z</b> [t](u) \\"), r"a\|b \*x\* \`y\` \<b>z\</b> [t\](u) \\");
        assert_eq!(markdown("R&B &lt; A & B"), r"R\&B \&lt; A & B");
        assert_eq!(markdown("0.5 [0.1, 0.9] < 0.001, P(X > Y)"), "0.5 [0.1, 0.9] < 0.001, P(X > Y)");
    }

    #[test]
    fn every_character_that_latex_reserves_is_escaped() {
        assert_eq!(latex("50 % of $3 & a_b #1 {x}"), r"50 \% of \$3 \& a\_b \#1 \{x\}");
        assert_eq!(
            latex("P(X > Y) < \u{2212}1 | \\ ~ ^"),
            r"P(X $>$ Y) $<$ $-$1 $|$ \textbackslash{} \textasciitilde{} \textasciicircum{}"
        );
    }
}
