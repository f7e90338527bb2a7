//! The aggregate table, for programs and for people. Nothing in it depends on the clock.

use std::fmt::Write;

use super::analysis::{Aggregates, Analysis};
use super::figures::title;
use super::table::{push_row, quoted};
pub(super) use crate::numbers::typeset as short;
use crate::statistics::Estimate;

/// One table for people: a heading, the columns' names, and the rows.
pub(super) struct Sheet {
    pub(super) heading: String,
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

fn with_interval(Estimate { point, low, high }: &Estimate) -> String {
    format!("{} [{}, {}]", short(*point), short(*low), short(*high))
}

impl Analysis<'_> {
    /// `summary.csv`: one row for each environment, agent and statistic; `all` are the normalised scores of all environments.
    pub(super) fn summary_csv(&self) -> String {
        let mut text = String::from("env,agent,runs,statistic,value,low,high\n");
        let mut push = |env: &str, agent: &str, runs: usize, statistic: &str, Estimate { point, low, high }: Estimate| {
            let numbers = [point, low, high].map(|number| number.to_string());
            let names = [quoted(env), quoted(agent), runs.to_string(), statistic.to_owned()];
            push_row(&mut text, &[names.as_slice(), &numbers].concat());
        };
        let runs = |agent: usize| self.table.runs[agent][0].len();
        let finals = self.finals.iter().zip(&self.table.environments).map(|(all, environment)| (environment.as_str(), all, false));
        let overall = self.overall.iter().map(|all| ("all", all, true));
        for (environment, all, scores) in finals.chain(overall) {
            for (number, (aggregates, agent)) in all.iter().zip(&self.table.agents).enumerate() {
                let Aggregates { iqm, median, mean, gap } = *aggregates;
                push(environment, agent, runs(number), "iqm", iqm);
                push(environment, agent, runs(number), "mean", mean);
                if scores {
                    push(environment, agent, runs(number), "median", median);
                    push(environment, agent, runs(number), "optimality_gap", gap);
                }
            }
        }
        for pair in &self.improvements {
            let [x, y] = [pair.x, pair.y].map(|agent| &self.table.agents[agent]);
            push("all", &format!("{x} > {y}"), runs(pair.x), "probability_of_improvement", pair.estimate);
        }
        text
    }

    /// The tables for people.
    pub(super) fn sheets(&self) -> Vec<Sheet> {
        let mut sheets: Vec<Sheet> = (0..self.table.environments.len()).map(|at| self.environment_sheet(at)).collect();
        sheets.extend(self.overall.as_ref().filter(|_| self.table.environments.len() > 1).map(|overall| self.overall_sheet(overall)));
        if !self.improvements.is_empty() {
            sheets.push(self.improvement_sheet());
        }
        sheets
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
            let finals: Vec<f64> = self.table.runs[agent][at].iter().filter_map(|run| run.points.last()).map(|point| point.value).collect();
            let (low, high) =
                (finals.iter().copied().fold(f64::INFINITY, f64::min), finals.iter().copied().fold(f64::NEG_INFINITY, f64::max));
            let Aggregates { iqm, mean, .. } = &self.finals[at][agent];
            let mut row = vec![name.clone(), finals.len().to_string(), with_interval(iqm), with_interval(mean), short(low), short(high)];
            row.extend(solved.map(|solved| finals.iter().filter(|value| **value >= solved).count().to_string()));
            row.extend(gaps.map(|gaps| with_interval(&gaps[agent].gap)));
            row
        };
        let rows = self.table.agents.iter().enumerate().map(row).collect();
        Sheet { heading: format!("{}: return of the final parameters", title(environment)), columns, rows }
    }

    fn overall_sheet(&self, overall: &[Aggregates]) -> Sheet {
        let columns = ["agent", "interquartile mean", "median", "mean", "optimality gap"].map(String::from).into();
        let row = |(name, aggregates): (&String, &Aggregates)| {
            let Aggregates { iqm, median, mean, gap } = aggregates;
            vec![name.clone(), with_interval(iqm), with_interval(median), with_interval(mean), with_interval(gap)]
        };
        let rows = self.table.agents.iter().zip(overall).map(row).collect();
        Sheet { heading: "Normalised scores over all environments".into(), columns, rows }
    }

    fn improvement_sheet(&self) -> Sheet {
        let columns = ["X", "Y", "P(X > Y)", "X against Y"].map(String::from).into();
        let rows = self.improvements.iter().map(|pair| {
            let [x, y] = [pair.x, pair.y].map(|agent| self.table.agents[agent].clone());
            vec![x, y, with_interval(&pair.estimate), pair.verdict().into()]
        });
        Sheet { heading: "Probability of improvement".into(), columns, rows: rows.collect() }
    }

    /// `summary.md`.
    pub(super) fn summary_md(&self, name: &str) -> String {
        let mut text = format!("# {name}\n\nBrackets: 95 % stratified bootstrap intervals.\n");
        for Sheet { heading, columns, rows } in self.sheets() {
            let line =
                |cells: &[String]| format!("| {} |\n", cells.iter().map(|cell| cell.replace('|', "\\|")).collect::<Vec<_>>().join(" | "));
            let rule = format!("|{}\n", " --- |".repeat(columns.len()));
            let rows: String = rows.iter().map(|row| line(row)).collect();
            write!(text, "\n## {heading}\n\n{}{rule}{rows}", line(&columns)).expect("a string takes all");
        }
        text
    }
}
