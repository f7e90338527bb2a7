//! The tables of aggregates, as CSV, in Markdown and in LaTeX. They have no measured times.

use std::fmt::Write;

use super::analysis::{Aggregates, Analysis, Pair, Solved, by_problem};
use super::figures::title;
pub(super) use crate::numbers::typeset as short;
use crate::statistics::Estimate;
use crate::statistics::csv::{push_row, quoted};

/// One table of the report: heading, note (may be empty), column names and rows.
pub(super) struct Sheet {
    pub(super) heading: String,
    pub(super) note: String,
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

fn with_interval(Estimate { point, low, high }: &Estimate) -> String {
    format!("{} [{}, {}]", short(*point), short(*low), short(*high))
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
        let interval = |Estimate { point, low, high }: Estimate| [Some(point), Some(low), Some(high)];
        let number = |number: f64| [Some(number), None, None];
        let (agents, environments) = (&self.table.agents, &self.table.environments);
        let runs = |agent: usize| self.table.runs[agent][0].len();
        let finals = self.finals.iter().zip(environments).map(|(all, environment)| (environment.as_str(), all));
        let overall = self.overall.iter().map(|all| ("all", all));
        for (environment, all) in finals.chain(overall) {
            for (agent, Aggregates { iqm, mean, of_scores }) in all.iter().enumerate() {
                let mut push =
                    |statistic, estimate: &Estimate| push(environment, &agents[agent], runs(agent), statistic, interval(*estimate), "");
                push("iqm", iqm);
                push("mean", mean);
                if let Some([median, gap]) = of_scores {
                    push("median", median);
                    push("optimality_gap", gap);
                }
            }
        }
        for (finals, environment) in self.own_finals.iter().zip(environments) {
            for (agent, Aggregates { iqm, mean, .. }) in finals.iter().flatten().enumerate() {
                push(environment, &agents[agent], runs(agent), "own_steps_iqm", interval(*iqm), "");
                push(environment, &agents[agent], runs(agent), "own_steps_mean", interval(*mean), "");
            }
        }
        for (solved, environment) in self.solved.iter().zip(environments) {
            for (agent, Solved { runs: reached, first, all_from, fallen, fall, .. }) in solved.iter().flatten().enumerate() {
                let mut push = |statistic, numbers, text: &str| push(environment, &agents[agent], runs(agent), statistic, numbers, text);
                push("solved_runs", number(*reached as f64), "");
                push("first_solved_step", first.map_or([None; 3], interval), "");
                push("all_solved_at_step", [*all_from, None, None], "");
                if fall.is_some() {
                    let seeds: Vec<String> = fallen.iter().map(|(seed, _)| seed.to_string()).collect();
                    let lowest = fallen.iter().map(|(_, lowest)| *lowest).reduce(f64::min);
                    push("fallen_runs", number(fallen.len() as f64), &seeds.join(" "));
                    push("lowest_after_solved", [lowest, None, None], "");
                }
            }
        }
        let mut push_pairs = |environment: &str, pairs: &[Pair], statistic: &str, nothing: f64| {
            for pair in pairs {
                let name = format!("{} > {}", agents[pair.x], agents[pair.y]);
                let mut push = |statistic: &str, numbers, text: &str| push(environment, &name, runs(pair.x), statistic, numbers, text);
                push(statistic, interval(pair.estimate), pair.verdict(nothing));
                push(&format!("{statistic}_p"), number(pair.p), "");
                push(&format!("{statistic}_p_holm"), number(pair.corrected), if pair.stands() { "stands" } else { "" });
            }
        };
        for (at, environment) in environments.iter().enumerate() {
            push_pairs(environment, &self.improvements_within[at], "probability_of_improvement", 0.5);
            push_pairs(environment, &self.differences[at], "paired_difference", 0.0);
            push_pairs(environment, &self.sooner[at], "probability_of_solving_sooner", 0.5);
        }
        if environments.len() > 1 {
            push_pairs("all", &self.improvements, "probability_of_improvement", 0.5);
        }
        text
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
        let points = |agent: &usize| [self.finals[at][*agent].iqm.point, self.finals[at][*agent].mean.point];
        let Some(best) = (0..self.table.agents.len()).reduce(|best, agent| if points(&agent) > points(&best) { agent } else { best })
        else {
            return String::new();
        };
        let verdict = |pair: &Pair| match (pair.x == best, pair.verdict(0.5)) {
            (_, "tie") => "tie",
            (true, "higher") | (false, "lower") if pair.stands() => "below",
            (true, "higher") | (false, "lower") => "perhaps",
            _ => "above",
        };
        let named = |wanted: &str| -> Vec<&str> {
            let pairs = self.improvements_within[at].iter().filter(|pair| (pair.x == best || pair.y == best) && verdict(pair) == wanted);
            pairs.map(|pair| self.table.agents[if pair.x == best { pair.y } else { pair.x }].as_str()).collect()
        };
        let list = |what: &str, names: Vec<&str>| if names.is_empty() { String::new() } else { format!(" {what}: {}.", names.join("; ")) };
        let (name, value) = (&self.table.agents[best], short(points(&best)[0]));
        let others = [
            list("Tied with it (the interval of P(X > Y) contains 0.5)", named("tie")),
            list("Below it", named("below")),
            list("Below it by the interval, but not significant after Holm's correction", named("perhaps")),
            list("Above it by P(X > Y)", named("above")),
        ];
        format!("Highest interquartile mean: {name}, {value}.{}", others.concat())
    }

    fn solved_sheet(&self, at: usize) -> Option<Sheet> {
        let all = self.solved[at].as_ref()?;
        let Solved { at: threshold, fall, .. } = all.first()?;
        let threshold = short(*threshold);
        let mut columns: Vec<String> =
            ["agent".into(), "runs".into(), format!("reached {threshold}"), "first at step".into(), "all at once at step".into()].into();
        columns.extend(fall.iter().flat_map(|fall| [format!("fell below {} afterwards", short(*fall)), "lowest".into()]));
        let row = |(agent, solved): (usize, &Solved)| {
            let runs = self.table.runs[agent][at].len();
            let from = solved.all_from.map_or_else(|| "never".into(), |step| format!("{step:.0}"));
            let whole = |Estimate { point, low, high }: &Estimate| format!("{point:.0} [{low:.0}, {high:.0}]");
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
        Some(Sheet { heading, note: format!("{note}{budgets}"), columns, rows: all.iter().enumerate().map(row).collect() })
    }

    fn environment_sheet(&self, at: usize) -> Sheet {
        let environment = &self.table.environments[at];
        let solved = gradus_envs::registry::find(environment).ok().and_then(|world| world.solved_at);
        let mut columns: Vec<String> =
            ["agent", "runs", "interquartile mean", "mean", "lowest run", "highest run"].map(String::from).into();
        columns.extend(solved.map(|solved| format!("runs at {} or more", short(solved))));
        let gaps = self.overall.as_ref().filter(|_| self.table.environments.len() == 1);
        columns.extend(gaps.map(|_| "optimality gap".to_owned()));
        let row = |(agent, name): (usize, &String)| {
            let number = self.table.equal(agent, at);
            let finals: Vec<f64> = self.table.runs[agent][at].iter().map(|run| run.points[number].value).collect();
            let (low, high) =
                (finals.iter().copied().fold(f64::INFINITY, f64::min), finals.iter().copied().fold(f64::NEG_INFINITY, f64::max));
            let Aggregates { iqm, mean, .. } = &self.finals[at][agent];
            let mut row = vec![name.clone(), finals.len().to_string(), with_interval(iqm), with_interval(mean), short(low), short(high)];
            row.extend(solved.map(|solved| finals.iter().filter(|value| **value >= solved).count().to_string()));
            row.extend(gaps.and_then(|all| all[agent].of_scores).map(|[_, gap]| with_interval(&gap)));
            row
        };
        let rows = self.table.agents.iter().enumerate().map(row).collect();
        let heading = format!("{}: return {}", title(environment), self.moment(at));
        Sheet { heading, note: self.leaders(at) + &self.earlier(at), columns, rows }
    }

    /// Names the agents whose long rollouts were evaluated last before the steps of the others.
    fn earlier(&self, at: usize) -> String {
        let table = self.table;
        let is_earlier = |(agent, _): &(usize, &String)| table.equal(*agent, at) + 1 < table.common(at);
        let sentence = |(agent, name): (usize, &String)| {
            format!(
                " {name}: after {:.0} {}, before its next update.",
                table.mean_step(agent, at, table.equal(agent, at)),
                self.steps_name()
            )
        };
        table.agents.iter().enumerate().filter(is_earlier).map(sentence).collect()
    }

    /// The returns after each agent's own steps, if agents have different numbers of steps.
    fn own_sheet(&self, at: usize) -> Option<Sheet> {
        let finals = self.own_finals[at].as_ref()?;
        let columns = ["agent", "steps", "interquartile mean", "mean"].map(String::from).into();
        let row = |(agent, Aggregates { iqm, mean, .. }): (usize, &Aggregates)| {
            let last = self.table.runs[agent][at][0].points.len() - 1;
            let steps = format!("{:.0}", self.table.mean_step(agent, at, last));
            vec![self.table.agents[agent].clone(), steps, with_interval(iqm), with_interval(mean)]
        };
        let heading = format!("{}: return of the final parameters, after each agent's own steps", title(&self.table.environments[at]));
        Some(Sheet { heading, note: String::new(), columns, rows: finals.iter().enumerate().map(row).collect() })
    }

    fn overall_sheet(&self, overall: &[Aggregates]) -> Sheet {
        let columns = ["agent", "interquartile mean", "median", "mean", "optimality gap"].map(String::from).into();
        let row = |(name, aggregates): (&String, &Aggregates)| {
            let Aggregates { iqm, mean, of_scores } = aggregates;
            let [median, gap] = of_scores.map_or_else(Default::default, |of_scores| of_scores.map(|estimate| with_interval(&estimate)));
            vec![name.clone(), with_interval(iqm), median, with_interval(mean), gap]
        };
        let rows = self.table.agents.iter().zip(overall).map(row).collect();
        Sheet { heading: "Normalised scores over all environments".into(), note: String::new(), columns, rows }
    }

    fn improvement_sheet(&self, what: &str, pairs: &[Pair]) -> Sheet {
        let columns = ["X", "Y", "P(X > Y)", "p", "p (Holm)", "X against Y"].map(String::from).into();
        let returns = if self.has_budgets() { "return after equal steps" } else { "final return" };
        let note = format!(
            "Probability that the {returns} of a run of X is higher than that of a run of Y. p: Mann-Whitney test; p (Holm): corrected \
             for all pairs in this table."
        );
        let rows = pairs.iter().map(|pair| self.pair_row(pair, 0.5)).collect();
        Sheet { heading: format!("Probability of improvement{what}"), note, columns, rows }
    }

    fn difference_sheet(&self, at: usize) -> Sheet {
        let columns = ["X", "Y", "mean difference", "p", "p (Holm)", "X against Y"].map(String::from).into();
        let shared = by_problem(&self.table.runs[0][at], &self.table.runs[0][at]).filter(|_| !self.table.has_budgets(at));
        let shared = shared.map(|table| table[0].len());
        let returns = if self.table.has_budgets(at) { "Returns after equal steps" } else { "Final returns" };
        let resampled =
            shared.map_or_else(|| "the seeds".into(), |problems| format!("both the seeds and the {problems} problems that all runs share"));
        let note = format!(
            "{returns} of X minus those of Y with the same seed; the interval resamples {resampled}. p: sign-flip test over the seeds, exact up \
             to 20 seeds; p (Holm): corrected for all pairs in this table."
        );
        let rows = self.differences[at].iter().map(|pair| self.pair_row(pair, 0.0)).collect();
        let heading = format!("Paired differences on {}", title(&self.table.environments[at]));
        Sheet { heading, note, columns, rows }
    }

    fn sooner_sheet(&self, at: usize) -> Sheet {
        let columns = ["X", "Y", "P(X sooner)", "p", "p (Holm)", "X against Y"].map(String::from).into();
        let note = "Probability that a run of X is solved at an earlier evaluation than a run of Y; two runs solved at the same evaluation \
                    count one half. Agents with a run that was never solved are left out. p: Mann-Whitney test; p (Holm): corrected for \
                    all pairs in this table.";
        let rows = self.sooner[at].iter().map(|pair| {
            let mut row = self.pair_row(pair, 0.5);
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

    /// Returns names, estimate, p-values and verdict of a pair. `nothing` is the estimate that means no difference.
    fn pair_row(&self, pair: &Pair, nothing: f64) -> Vec<String> {
        let verdict = match (pair.verdict(nothing), pair.stands()) {
            ("tie", _) => format!("tie: the interval contains {nothing}"),
            (verdict, true) => verdict.to_owned(),
            (verdict, false) if pair.p > 0.05 => format!("{verdict} by the interval, not by the test"),
            (verdict, false) => format!("{verdict}; not significant after Holm's correction"),
        };
        let [x, y] = [pair.x, pair.y].map(|agent| self.table.agents[agent].clone());
        vec![x, y, with_interval(&pair.estimate), p_value(pair.p), p_value(pair.corrected), verdict]
    }

    /// Returns `summary.md`.
    pub(super) fn summary_md(&self, name: &str) -> String {
        let mut text = format!("# {}\n\nBrackets: 95 % stratified bootstrap intervals.\n", markdown(name));
        for Sheet { heading, note, columns, rows } in self.sheets() {
            let line = |cells: &[String]| format!("| {} |\n", cells.iter().map(|cell| markdown(cell)).collect::<Vec<_>>().join(" | "));
            let rule = format!("|{}\n", " --- |".repeat(columns.len()));
            let rows: String = rows.iter().map(|row| line(row)).collect();
            let note = if note.is_empty() { note } else { format!("{note}\n\n") };
            write!(text, "\n## {}\n\n{note}{}{rule}{rows}", markdown(&heading), line(&columns)).expect("writing to a string does not fail");
        }
        text
    }

    /// Returns `summary.tex`: a table environment for each table, for a paper that uses the package booktabs. Columns of numbers are aligned at
    /// the right.
    pub(super) fn summary_tex(&self, name: &str) -> String {
        let mut text =
            format!("% {}\n% Needs \\usepackage{{booktabs}}. Brackets: 95 % stratified bootstrap intervals.\n", name.replace('\n', " "));
        for Sheet { heading, note, columns, rows } in self.sheets() {
            let line = |cells: &[String]| format!("    {} \\\\\n", cells.iter().map(|cell| latex(cell)).collect::<Vec<_>>().join(" & "));
            let is_number = |cell: &String| cell.is_empty() || cell.starts_with(|c: char| c.is_ascii_digit() || "\u{2212}+<".contains(c));
            let has_numbers = |column: usize| rows.iter().all(|row| is_number(&row[column]));
            let kinds: String = (0..columns.len()).map(|column| if has_numbers(column) { 'r' } else { 'l' }).collect();
            let caption = latex(format!("{heading}. {note}").trim());
            let rows: String = rows.iter().map(|row| line(row)).collect();
            let head = line(&columns);
            write!(
                text,
                "\n\\begin{{table}}\n  \\centering\\footnotesize\\setlength{{\\tabcolsep}}{{3pt}}\n  \\caption{{{caption}}}\n  \\begin{{tabular}}{{{kinds}}}\n    \\toprule\n{head}    \\midrule\n{rows}    \
                 \\bottomrule\n  \\end{{tabular}}\n\\end{{table}}\n"
            )
            .expect("writing to a string does not fail");
        }
        text
    }
}

/// Returns a text that Markdown shows as it is, in a line or in a cell: no emphasis, code, link, tag or further cell.
fn markdown(text: &str) -> String {
    let mut escaped = String::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let next = letters.peek().copied().unwrap_or(' ');
        let is_special = match letter {
            '|' | '*' | '`' | '\\' => true,
            '<' => next.is_alphanumeric() || "/!?".contains(next),
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
