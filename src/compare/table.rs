//! The tidy table of results: one row per evaluation of each run. All figures are drawn from it.

use std::collections::BTreeMap;
use std::path::Path;

use crate::Error;
use crate::files::csv::cells;
use crate::files::{read_named_to_string, read_to_string};

/// One evaluation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) step: f64,
    /// The mean return of the episodes.
    pub(super) value: f64,
    /// The normalised return, if known.
    pub(super) score: Option<f64>,
    /// Seconds of training before the evaluation, if known.
    pub(super) seconds: Option<f64>,
}

/// The evaluations of one run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Runs {
    pub(super) seed: u64,
    pub(super) points: Vec<Point>,
    /// The return of every problem in the last evaluation; empty if unknown.
    pub(super) problems: Vec<f64>,
}

/// The table: the runs of each agent and environment, sorted by seed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Table {
    /// The agents, in the order of the file.
    pub(super) agents: Vec<String>,
    /// The environments, in the order of the file.
    pub(super) environments: Vec<String>,
    /// `runs[agent][environment][run]`; every run of an environment has the same number of points.
    pub(super) runs: Vec<Vec<Vec<Runs>>>,
}

const COLUMNS: [&str; 5] = ["agent", "env", "seed", "step", "return"];

/// One line of a CSV file, with cells by column.
struct Line<'a> {
    number: usize,
    header: &'a [String],
    cells: Vec<String>,
}

impl Line<'_> {
    fn text(&self, column: &str) -> Option<&str> {
        let place = self.header.iter().position(|name| name == column)?;
        self.cells.get(place).map(String::as_str)
    }

    /// Returns the finite number in `column`; `None` if the column is missing or the cell is empty.
    fn number(&self, column: &str) -> Result<Option<f64>, String> {
        let Some(text) = self.text(column).filter(|text| !text.trim().is_empty()) else { return Ok(None) };
        let number = text.trim().parse().ok().filter(|number: &f64| number.is_finite());
        let expected = || format!("line {}: {column}: expected a finite number, got {text}", self.number);
        number.map(Some).ok_or_else(expected)
    }

    fn needed(&self, column: &str) -> Result<f64, String> {
        self.number(column)?.ok_or_else(|| format!("line {}: {column}: expected a finite number, got nothing", self.number))
    }

    fn whole(&self, column: &str) -> Result<u64, String> {
        let text = self.text(column).unwrap_or_default();
        text.trim().parse().map_err(|_| format!("line {}: {column}: expected a whole number from 0 up, got {text}", self.number))
    }

    /// Returns agent, environment and seed of the line.
    fn owner(&self) -> Result<(String, String, u64), String> {
        let name = |column: &str| match self.text(column).map(str::trim) {
            Some(name) if !name.is_empty() => Ok(name.to_owned()),
            _ => Err(format!("line {}: {column}: expected a name, got nothing", self.number)),
        };
        Ok((name("agent")?, name("env")?, self.whole("seed")?))
    }
}

/// Calls `visit` for every line below the header that is not blank. Returns an error if the header lacks one of `columns`.
fn read_lines(text: &str, columns: &[&str], mut visit: impl FnMut(&Line) -> Result<(), String>) -> Result<(), String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let (_, header) = lines.next().ok_or("expected a table, got an empty file")?;
    let header: Vec<String> = cells(header).unwrap_or_default().iter().map(|name| name.trim().to_owned()).collect();
    let missing: Vec<&str> = columns.iter().copied().filter(|column| !header.iter().any(|name| name == column)).collect();
    if !missing.is_empty() {
        return Err(format!("line 1: expected the columns {}, got none called {}", columns.join(", "), missing.join(" or ")));
    }
    for (number, line) in lines {
        let number = number + 1;
        let cells = cells(line).ok_or(format!("line {number}: expected a closing quotation mark, got none"))?;
        if cells.len() != header.len() {
            return Err(format!("line {number}: expected {} cells, got {}", header.len(), cells.len()));
        }
        visit(&Line { number, header: &header, cells })?;
    }
    Ok(())
}

/// Returns the description of a run for error messages.
fn name(agent: &str, environment: &str, seed: u64) -> String {
    format!("agent \"{agent}\" on {environment}, seed {seed}")
}

/// Returns the index of `name` in `names`; a new name is appended.
fn place(names: &mut Vec<String>, name: String) -> usize {
    names.iter().position(|known| *known == name).unwrap_or_else(|| {
        names.push(name);
        names.len() - 1
    })
}

impl Table {
    /// Reads the table at `path`. Also reads the seconds from `timing.csv` and the returns of the problems from `problems.csv`, if these
    /// files are in the same folder.
    pub(super) fn read(path: &Path) -> Result<Self, Error> {
        let text = read_named_to_string(path)?;
        let mut table = Self::parse(&text).map_err(|problem| Error::folder(path, problem))?;
        let timing = path.with_file_name("timing.csv");
        if timing.exists() && timing != path {
            let text = read_to_string(&timing)?;
            table.add_seconds(&text).map_err(|problem| Error::folder(&timing, problem))?;
        }
        let problems = path.with_file_name("problems.csv");
        if problems.exists() && problems != path {
            let text = read_to_string(&problems)?;
            table.add_problems(&text).map_err(|problem| Error::folder(&problems, problem))?;
        }
        Ok(table)
    }

    /// Parses the text of a table.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (mut agents, mut environments) = (Vec::new(), Vec::new());
        let mut found: BTreeMap<(usize, usize, u64), Vec<Point>> = BTreeMap::new();
        read_lines(text, &COLUMNS, |line| {
            let (agent, environment, seed) = line.owner()?;
            let (step, value) = (line.needed("step")?, line.needed("return")?);
            let point = Point { step, value, score: line.number("score")?, seconds: line.number("seconds")? };
            let run = name(&agent, &environment, seed);
            let points = found.entry((place(&mut agents, agent), place(&mut environments, environment), seed)).or_default();
            if step < 0.0 || points.last().is_some_and(|last| last.step > step) {
                return Err(format!("line {}: {run}: expected steps that rise from 0, got {step}", line.number));
            }
            points.push(point);
            Ok(())
        })?;
        if found.is_empty() {
            return Err("expected at least one evaluation, got only a header".into());
        }
        let mut runs = vec![vec![Vec::new(); environments.len()]; agents.len()];
        for ((agent, environment, seed), points) in found {
            runs[agent][environment].push(Runs { seed, points, problems: Vec::new() });
        }
        let table = Self { agents, environments, runs };
        table.check()?;
        Ok(table)
    }

    /// Checks that every agent has the same number of runs on every environment, and that the runs of an environment have the same number
    /// of evaluations.
    fn check(&self) -> Result<(), String> {
        for (environment, at) in self.environments.iter().zip(0..) {
            let first = self.runs.iter().zip(&self.agents).find_map(|(runs, agent)| Some((runs[at].first()?, agent)));
            let Some((first, first_agent)) = first else { continue };
            for (runs, agent) in self.runs.iter().zip(&self.agents) {
                if runs[at].is_empty() {
                    return Err(format!("agent \"{agent}\": expected runs on {environment}, as for \"{first_agent}\", got none"));
                }
                for run in &runs[at] {
                    let (expected, got) = (first.points.len(), run.points.len());
                    if got != expected {
                        let (run, other) = (name(agent, environment, run.seed), name(first_agent, environment, first.seed));
                        return Err(format!("{run}: expected {expected} evaluations, as for {other}, got {got}"));
                    }
                }
            }
        }
        for (runs, agent) in self.runs.iter().zip(&self.agents) {
            let counts: Vec<usize> = runs.iter().map(Vec::len).collect();
            if let Some(at) = counts.iter().position(|count| *count != counts[0]) {
                let (here, there) = (&self.environments[at], &self.environments[0]);
                return Err(format!("agent \"{agent}\": expected {} runs on {here}, as on {there}, got {}", counts[0], counts[at]));
            }
        }
        Ok(())
    }

    fn add_seconds(&mut self, text: &str) -> Result<(), String> {
        let mut seconds: BTreeMap<(String, String, u64), Vec<f64>> = BTreeMap::new();
        read_lines(text, &["agent", "env", "seed", "seconds"], |line| {
            seconds.entry(line.owner()?).or_default().push(line.needed("seconds")?);
            Ok(())
        })?;
        for (runs, agent) in self.runs.iter_mut().zip(&self.agents) {
            for (runs, environment) in runs.iter_mut().zip(&self.environments) {
                for run in runs {
                    let known = seconds.remove(&(agent.clone(), environment.clone(), run.seed)).unwrap_or_default();
                    if known.len() != run.points.len() {
                        let (run, expected) = (name(agent, environment, run.seed), run.points.len());
                        return Err(format!("{run}: expected {expected} rows, as in the results, got {}", known.len()));
                    }
                    run.points.iter_mut().zip(known).for_each(|(point, seconds)| point.seconds = Some(seconds));
                }
            }
        }
        Ok(())
    }

    fn add_problems(&mut self, text: &str) -> Result<(), String> {
        let mut problems: BTreeMap<(String, String, u64), Vec<f64>> = BTreeMap::new();
        read_lines(text, &["agent", "env", "seed", "returns"], |line| {
            let cell = line.text("returns").unwrap_or_default();
            let parse = |word: &str| word.parse().ok().filter(|number: &f64| number.is_finite());
            let numbers: Option<Vec<f64>> = cell.split_whitespace().map(parse).collect();
            let expected = || format!("line {}: returns: expected finite numbers, got {cell}", line.number);
            problems.insert(line.owner()?, numbers.ok_or_else(expected)?);
            Ok(())
        })?;
        for (runs, agent) in self.runs.iter_mut().zip(&self.agents) {
            for (runs, environment) in runs.iter_mut().zip(&self.environments) {
                for run in runs {
                    run.problems = problems.remove(&(agent.clone(), environment.clone(), run.seed)).unwrap_or_default();
                }
            }
        }
        Ok(())
    }

    /// Iterates over all evaluations.
    pub(super) fn points(&self) -> impl Iterator<Item = &Point> {
        self.runs.iter().flatten().flatten().flat_map(|run| &run.points)
    }

    /// Whether all evaluations have normalised returns.
    pub(super) fn has_scores(&self) -> bool {
        self.points().all(|point| point.score.is_some())
    }

    /// Whether all evaluations have seconds.
    pub(super) fn has_seconds(&self) -> bool {
        self.points().all(|point| point.seconds.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::csv::quoted;

    const SMALL: &str =
        "agent,env,seed,step,return\nPPO,cartpole,1,0,9\nPPO,cartpole,1,500,40.5\nPPO,cartpole,2,0,10\nPPO,cartpole,2,500,60\n";

    #[test]
    fn a_table_is_read_with_columns_in_any_order() {
        let table = Table::parse(SMALL).unwrap();
        assert_eq!(
            (table.agents.as_slice(), table.environments.as_slice()),
            (["PPO".to_string()].as_slice(), ["cartpole".to_string()].as_slice())
        );
        let values: Vec<Vec<f64>> = table.runs[0][0].iter().map(|run| run.points.iter().map(|point| point.value).collect()).collect();
        assert_eq!(values, [[9.0, 40.5], [10.0, 60.0]]);
        let turned = "return,note,step,seed,env,agent,score\n9,a,0,1,cartpole,\"PPO, \"\"new\"\"\",0.5\r\n\n";
        let table = Table::parse(turned).unwrap();
        assert_eq!(table.agents, ["PPO, \"new\""]);
        assert_eq!(table.runs[0][0][0].points, [Point { step: 0.0, value: 9.0, score: Some(0.5), seconds: None }]);
        assert_eq!(cells(&quoted(&table.agents[0])), Some(table.agents));
    }

    #[test]
    fn errors_in_tables_name_the_place() {
        let problem = |from: &str, to: &str| {
            assert!(SMALL.contains(from));
            Table::parse(&SMALL.replacen(from, to, 1)).unwrap_err()
        };
        for (from, to, expected) in [
            (
                "seed,step,return",
                "sed,step,value",
                "line 1: expected the columns agent, env, seed, step, return, got none called seed or return",
            ),
            ("500,40.5", "500,NaN", "line 3: return: expected a finite number, got NaN"),
            ("500,40.5", "500,inf", "line 3: return: expected a finite number, got inf"),
            ("500,40.5", "500,many", "line 3: return: expected a finite number, got many"),
            ("500,40.5", "500,", "line 3: return: expected a finite number, got nothing"),
            ("500,40.5", "500", "line 3: expected 5 cells, got 4"),
            ("PPO,cartpole,1,500", "PPO,cartpole,one,500", "line 3: seed: expected a whole number from 0 up, got one"),
            ("PPO,cartpole,1,500", ",cartpole,1,500", "line 3: agent: expected a name, got nothing"),
            ("PPO,cartpole,1,500", "\"PPO,cartpole,1,500", "line 3: expected a closing quotation mark, got none"),
            ("1,500", "1,-500", "line 3: agent \"PPO\" on cartpole, seed 1: expected steps that rise from 0, got -500"),
            (
                "PPO,cartpole,2,500,60\n",
                "",
                "agent \"PPO\" on cartpole, seed 2: expected 2 evaluations, as for agent \"PPO\" on cartpole, seed 1, got 1",
            ),
            (
                "PPO,cartpole,2,0,10\nPPO,cartpole,2",
                "A2C,pendulum,2,0,10\nA2C,pendulum,2",
                "agent \"A2C\": expected runs on cartpole, as for \"PPO\", got none",
            ),
            (
                "PPO,cartpole,2,0,10\nPPO,cartpole,2,500,60\n",
                "PPO,cartpole,2,0,1\nPPO,cartpole,2,5,6\nPPO,acrobot,2,500,60\n",
                "agent \"PPO\": expected 2 runs on acrobot, as on cartpole, got 1",
            ),
        ] {
            assert_eq!(problem(from, to), expected);
        }
        assert_eq!(Table::parse("").unwrap_err(), "expected a table, got an empty file");
        assert_eq!(Table::parse("agent,env,seed,step,return\n").unwrap_err(), "expected at least one evaluation, got only a header");
    }

    #[test]
    fn problems_are_read_from_problems_csv() {
        let mut table = Table::parse(SMALL).unwrap();
        table.add_problems("agent,env,seed,returns\nPPO,cartpole,2,0.5 1\n").unwrap();
        assert_eq!(
            (table.runs[0][0][0].problems.as_slice(), table.runs[0][0][1].problems.as_slice()),
            ([].as_slice(), [0.5, 1.0].as_slice())
        );
        let problem = table.add_problems("agent,env,seed,returns\nPPO,cartpole,2,1 x\n").unwrap_err();
        assert_eq!(problem, "line 2: returns: expected finite numbers, got 1 x");
    }

    #[test]
    fn seconds_are_read_from_timing_csv() {
        let mut table = Table::parse(SMALL).unwrap();
        let timing = "agent,env,seed,seconds\nPPO,cartpole,2,0\nPPO,cartpole,2,7\nPPO,cartpole,1,0\nPPO,cartpole,1,5\n";
        assert!(!table.has_seconds());
        table.add_seconds(timing).unwrap();
        assert!(table.has_seconds() && !table.has_scores());
        assert_eq!(table.runs[0][0][1].points[1].seconds, Some(7.0));
        let problem = Table::parse(SMALL).unwrap().add_seconds(&timing.replace("PPO,cartpole,1,5\n", "")).unwrap_err();
        assert_eq!(problem, "agent \"PPO\" on cartpole, seed 1: expected 2 rows, as in the results, got 1");
    }
}
