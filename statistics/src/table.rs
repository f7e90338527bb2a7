//! The tidy table of results: one row per evaluation of each run. All figures are drawn from it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::csv::cells;

/// One evaluation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Environment steps before the evaluation.
    pub step: f64,
    /// The mean return of the episodes.
    pub value: f64,
    /// The normalised return, if known.
    pub score: Option<f64>,
    /// Seconds of training before the evaluation, if known.
    pub seconds: Option<f64>,
}

/// The evaluations of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Runs {
    /// The seed of the run.
    pub seed: u64,
    /// The evaluations, by step.
    pub points: Vec<Point>,
    /// The return of every problem in the last evaluation; empty if unknown.
    pub problems: Vec<f64>,
}

/// The table: the runs of each agent and environment, sorted by seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The agents, in the order of the file.
    pub agents: Vec<String>,
    /// The environments, in the order of the file.
    pub environments: Vec<String>,
    /// `runs[agent][environment][run]`; all runs of an agent in an environment have the same number of points. Agents may differ: their
    /// points are at about the same steps as far as they go. An agent need not have runs in every environment, and has equally many in those it has.
    pub runs: Vec<Vec<Vec<Runs>>>,
}

const COLUMNS: [&str; 5] = ["agent", "env", "seed", "step", "return"];

/// One line of a CSV file, with cells by column.
struct Line<'a> {
    number: usize,
    header: &'a [String],
    cells: Vec<Cow<'a, str>>,
}

impl Line<'_> {
    fn text(&self, column: &str) -> Option<&str> {
        let place = self.header.iter().position(|name| name == column)?;
        self.cells.get(place).map(Cow::as_ref)
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
    fn owner(&self) -> Result<(&str, &str, u64), String> {
        let name = |column: &str| match self.text(column).map(str::trim) {
            Some(name) if !name.is_empty() => Ok(name),
            _ => Err(format!("line {}: {column}: expected a name, got nothing", self.number)),
        };
        Ok((name("agent")?, name("env")?, self.whole("seed")?))
    }
}

/// Calls `visit` for every line below the header that is not blank. Returns an error if the header lacks one of `columns`.
fn read_lines(text: &str, columns: &[&str], visit: &mut dyn FnMut(&Line) -> Result<(), String>) -> Result<(), String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let (_, header) = lines.next().ok_or("expected a table, got an empty file")?;
    let header: Vec<String> = cells(header).unwrap_or_default().iter().map(|name| name.trim().to_owned()).collect();
    if let Some(twice) = header.iter().enumerate().find(|(i, name)| !name.is_empty() && header[..*i].contains(name)).map(|(_, name)| name) {
        return Err(format!("line 1: expected each column once, got {twice} twice"));
    }
    let missing: Vec<&str> = columns.iter().copied().filter(|column| !header.iter().any(|name| name == column)).collect();
    if missing.len() == columns.len() {
        return Err(format!("line 1: expected the columns {}, got none of them", columns.join(", ")));
    }
    if !missing.is_empty() {
        return Err(format!("line 1: expected the columns {}, got a table without {}", columns.join(", "), missing.join(", ")));
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

/// The most agents of a table, and the most environments.
const MOST_AGENTS: usize = 1000;

/// Returns the description of a run for error messages.
fn name(agent: &str, environment: &str, seed: u64) -> String {
    format!("agent \"{agent}\" on {environment}, seed {seed}")
}

/// Returns the index of `name` in `names`; a new name is appended.
fn place(names: &mut Vec<String>, name: &str) -> usize {
    names.iter().position(|known| *known == name).unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    })
}

impl Table {
    /// Parses the text of a table. An error is one line with the expected and the actual value.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (mut agents, mut environments) = (Vec::new(), Vec::new());
        let mut found: BTreeMap<(usize, usize, u64), Vec<Point>> = BTreeMap::new();
        read_lines(text, &COLUMNS, &mut |line| {
            let (agent, environment, seed) = line.owner()?;
            let (step, value) = (line.needed("step")?, line.needed("return")?);
            let point = Point { step, value, score: line.number("score")?, seconds: line.number("seconds")? };
            let points = found.entry((place(&mut agents, agent), place(&mut environments, environment), seed)).or_default();
            if step < 0.0 || points.last().is_some_and(|last| last.step > step) {
                let run = name(agent, environment, seed);
                return Err(format!("line {}: {run}: expected steps that rise from 0, got {step}", line.number));
            }
            points.push(point);
            Ok(())
        })?;
        if found.is_empty() {
            return Err("expected at least one evaluation, got only a header".into());
        }
        // wrong columns would make a large table
        if agents.len() > MOST_AGENTS || environments.len() > MOST_AGENTS {
            let (agents, environments) = (agents.len(), environments.len());
            return Err(format!("expected at most {MOST_AGENTS} agents and as many environments, got {agents} and {environments}"));
        }
        let mut runs = vec![vec![Vec::new(); environments.len()]; agents.len()];
        for ((agent, environment, seed), points) in found {
            runs[agent][environment].push(Runs { seed, points, problems: Vec::new() });
        }
        let table = Self { agents, environments, runs };
        table.check()?;
        Ok(table)
    }

    /// Checks that every agent has the same number of runs on each of its environments, that its runs of an environment have the same number of
    /// evaluations at about the same steps, that all evaluations or none have a score, and that agents can be compared after equal steps.
    fn check(&self) -> Result<(), String> {
        if !self.has_scores() && self.points().any(|point| point.score.is_some()) {
            return Err("score: expected a finite number in every line or in none, got some lines without".into());
        }
        for (environment, at) in self.environments.iter().zip(0..) {
            for (runs, agent) in self.runs.iter().zip(&self.agents) {
                for run in &runs[at] {
                    let (expected, got) = (runs[at][0].points.len(), run.points.len());
                    if got != expected {
                        let (run, other) = (name(agent, environment, run.seed), name(agent, environment, runs[at][0].seed));
                        return Err(format!("{run}: expected {expected} evaluations, as for {other}, got {got}"));
                    }
                }
            }
            self.check_steps(environment, at)?;
            for agent in self.agents_in(at) {
                let name = &self.agents[agent];
                // only evaluation 0, before training, was within the others' steps
                if self.common(at) > 1 && self.equal(agent, at) == 0 {
                    let last = self.common(at) - 1;
                    let (expected, got) = (self.mean_step(self.shortest(at), at, last), self.mean_step(agent, at, 1));
                    let (what, other) = (format!("agent \"{name}\" on {environment}"), &self.agents[self.shortest(at)]);
                    return Err(format!(
                        "{what}: expected an evaluation by step {expected:.0}, as for \"{other}\", got the first at step {got:.0}"
                    ));
                }
            }
        }
        for (runs, agent) in self.runs.iter().zip(&self.agents) {
            let mut counts = runs.iter().map(Vec::len).zip(&self.environments).filter(|(count, _)| *count > 0);
            let Some((expected, there)) = counts.next() else { continue };
            if let Some((got, here)) = counts.find(|(count, _)| *count != expected) {
                return Err(format!("agent \"{agent}\": expected {expected} runs on {here}, as on {there}, got {got}"));
            }
        }
        Ok(())
    }

    /// Checks that evaluations of the same number are of about the same step: those of an agent's runs, and those of agents with as many evaluations. An agent whose rollouts
    /// are longer than the steps between two evaluations, so that its last ones are of the same step, is not checked.
    fn check_steps(&self, environment: &str, at: usize) -> Result<(), String> {
        let compare = |all: Vec<(String, f64)>| -> Result<(), String> {
            let least = all.iter().min_by(|a, b| a.1.total_cmp(&b.1));
            let most = all.iter().max_by(|a, b| a.1.total_cmp(&b.1));
            match least.zip(most) {
                Some(((early, least), (late, most))) if *most > 2.0 * least => Err(format!(
                    "{late}: expected the last evaluation by step {:.0}, twice that of {early}, which has as many evaluations, got step {most:.0}",
                    2.0 * least
                )),
                _ => Ok(()),
            }
        };
        let last = |points: &[Point]| points.last().map_or(0.0, |point| point.step);
        for agent in self.agents_in(at) {
            let runs = self.runs[agent][at].iter().filter(|run| match &run.points[..] {
                [_, .., before, last] => before.step < last.step,
                _ => false,
            });
            compare(runs.map(|run| (name(&self.agents[agent], environment, run.seed), last(&run.points))).collect())?;
        }
        let many = self.agents_in(at).into_iter().filter(|agent| {
            let n = self.evaluations(*agent, at);
            n > 2 && self.mean_step(*agent, at, n - 2) < self.mean_step(*agent, at, n - 1)
        });
        let of = |agent: usize| (format!("agent \"{}\" on {environment}", self.agents[agent]), self.evaluations(agent, at));
        let all: Vec<((String, usize), f64)> =
            many.map(|agent| (of(agent), self.mean_step(agent, at, self.evaluations(agent, at) - 1))).collect();
        for count in all.iter().map(|((_, count), _)| *count) {
            let alike = all.iter().filter(|((_, other), _)| *other == count);
            compare(alike.map(|((name, _), step)| (name.clone(), *step)).collect())?;
        }
        Ok(())
    }

    /// Adds the seconds of training before each evaluation from the text of `timing.csv`. Each run needs as many rows as evaluations. An
    /// error is one line with the expected and the actual value.
    pub fn add_seconds(&mut self, text: &str) -> Result<(), String> {
        let (mut agents, mut environments) = (self.agents.clone(), self.environments.clone());
        let mut seconds: BTreeMap<(usize, usize, u64), Vec<f64>> = BTreeMap::new();
        read_lines(text, &["agent", "env", "seed", "seconds"], &mut |line| {
            let (agent, environment, seed) = line.owner()?;
            let at = (place(&mut agents, agent), place(&mut environments, environment), seed);
            seconds.entry(at).or_default().push(line.needed("seconds")?);
            Ok(())
        })?;
        for (agent, runs) in self.runs.iter_mut().enumerate() {
            for (environment, runs) in runs.iter_mut().enumerate() {
                for run in runs {
                    let known = seconds.remove(&(agent, environment, run.seed)).unwrap_or_default();
                    if known.len() != run.points.len() {
                        let expected = run.points.len();
                        let run = name(&self.agents[agent], &self.environments[environment], run.seed);
                        return Err(format!("{run}: expected {expected} rows, as in the results, got {}", known.len()));
                    }
                    run.points.iter_mut().zip(known).for_each(|(point, seconds)| point.seconds = Some(seconds));
                }
            }
        }
        Ok(())
    }

    /// Adds the returns of the problems from the text of `problems.csv`. Rows of unknown runs are ignored. An error is one line with the
    /// expected and the actual value.
    pub fn add_problems(&mut self, text: &str) -> Result<(), String> {
        let (mut agents, mut environments) = (self.agents.clone(), self.environments.clone());
        let mut problems: BTreeMap<(usize, usize, u64), Vec<f64>> = BTreeMap::new();
        read_lines(text, &["agent", "env", "seed", "returns"], &mut |line| {
            let cell = line.text("returns").unwrap_or_default();
            let parse = |word: &str| word.parse().ok().filter(|number: &f64| number.is_finite());
            let numbers: Option<Vec<f64>> = cell.split_whitespace().map(parse).collect();
            let expected = || format!("line {}: returns: expected finite numbers, got {cell}", line.number);
            let (agent, environment, seed) = line.owner()?;
            let at = (place(&mut agents, agent), place(&mut environments, environment), seed);
            problems.insert(at, numbers.ok_or_else(expected)?);
            Ok(())
        })?;
        for (agent, runs) in self.runs.iter_mut().enumerate() {
            for (environment, runs) in runs.iter_mut().enumerate() {
                for run in runs {
                    run.problems = problems.remove(&(agent, environment, run.seed)).unwrap_or_default();
                }
            }
        }
        Ok(())
    }

    /// Returns the agents that have runs in environment `at`.
    pub fn agents_in(&self, at: usize) -> Vec<usize> {
        (0..self.agents.len()).filter(|agent| !self.runs[*agent][at].is_empty()).collect()
    }

    /// Returns the agents that have runs in every environment.
    pub fn agents_everywhere(&self) -> Vec<usize> {
        (0..self.agents.len()).filter(|agent| self.runs[*agent].iter().all(|runs| !runs.is_empty())).collect()
    }

    /// Returns the number of runs of an agent in each of its environments.
    pub fn count(&self, agent: usize) -> usize {
        self.runs[agent].iter().map(Vec::len).max().unwrap_or(0)
    }

    /// Returns the number of evaluations of an agent in environment `at`.
    fn evaluations(&self, agent: usize, at: usize) -> usize {
        self.runs[agent][at].first().map_or(0, |run| run.points.len())
    }

    /// Returns the number of evaluations that every agent of environment `at` has.
    pub fn common(&self, at: usize) -> usize {
        self.agents_in(at).into_iter().map(|agent| self.evaluations(agent, at)).min().unwrap_or(0)
    }

    /// Returns the first agent that has the fewest evaluations in environment `at`.
    pub fn shortest(&self, at: usize) -> usize {
        self.agents_in(at).into_iter().find(|agent| self.evaluations(*agent, at) == self.common(at)).unwrap_or(0)
    }

    /// Returns the number of the evaluation at which an agent is compared with the others after equal steps, in environment `at`: the last that
    /// all agents have. Long rollouts can carry an agent far beyond the steps of the [shortest](Table::shortest) agent; then the last
    /// evaluation is taken that is at most one interval between evaluations later; tables name such agents with their steps.
    pub fn equal(&self, agent: usize, at: usize) -> usize {
        let last = self.common(at) - 1;
        let steps = self.mean_step(self.shortest(at), at, last);
        let limit = if self.has_budgets(at) { steps + steps / last.max(1) as f64 } else { f64::INFINITY };
        (0..=last).rev().find(|number| self.mean_step(agent, at, *number) <= limit).unwrap_or(0)
    }

    /// Whether some agents have more evaluations than others in environment `at`.
    pub fn has_budgets(&self, at: usize) -> bool {
        self.agents_in(at).into_iter().any(|agent| self.evaluations(agent, at) != self.common(at))
    }

    /// Returns the mean step over an agent's runs in environment `at` of evaluation number `number`.
    pub fn mean_step(&self, agent: usize, at: usize, number: usize) -> f64 {
        let runs = &self.runs[agent][at];
        runs.iter().map(|run| run.points[number].step).sum::<f64>() / runs.len() as f64
    }

    /// Iterates over all evaluations.
    pub fn points(&self) -> impl Iterator<Item = &Point> {
        self.runs.iter().flatten().flatten().flat_map(|run| &run.points)
    }

    /// Whether all evaluations have normalised returns.
    pub fn has_scores(&self) -> bool {
        self.points().all(|point| point.score.is_some())
    }

    /// Whether all evaluations have seconds.
    pub fn has_seconds(&self) -> bool {
        self.points().all(|point| point.seconds.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::csv::quoted;

    const SMALL: &str =
        "agent,env,seed,step,return\nPPO,cartpole,1,0,9\nPPO,cartpole,1,500,40.5\nPPO,cartpole,2,0,10\nPPO,cartpole,2,500,60\n";

    #[test]
    fn a_table_of_too_many_agents_is_refused() {
        let rows: String = (0..=MOST_AGENTS).map(|agent| format!("A{agent},cartpole,1,0,9\n")).collect();
        let error = Table::parse(&format!("agent,env,seed,step,return\n{rows}")).unwrap_err();
        assert_eq!(error, "expected at most 1000 agents and as many environments, got 1001 and 1");
    }

    #[test]
    fn evaluations_at_other_steps_are_refused() {
        let table = |rows: &str| Table::parse(&format!("agent,env,seed,step,return,score\n{rows}")).map(|_| ());
        let a = "A,cartpole,1,0,9,\nA,cartpole,1,500,9,\nA,cartpole,1,1000,9,\n";
        assert_eq!(table(&format!("{a}B,cartpole,1,0,9,\nB,cartpole,1,500,9,\nB,cartpole,1,1900,9,\n")), Ok(()));
        for (more, problem) in [
            (
                "B,cartpole,1,0,9,\nB,cartpole,1,500,9,\nB,cartpole,1,9000,9,\n",
                "agent \"B\" on cartpole: expected the last evaluation by step 2000, twice that of agent \"A\" on cartpole, which has as many evaluations, got step 9000",
            ),
            (
                "A,cartpole,2,0,9,\nA,cartpole,2,500,9,\nA,cartpole,2,9000,9,\n",
                "agent \"A\" on cartpole, seed 2: expected the last evaluation by step 2000, twice that of agent \"A\" on cartpole, seed 1, which has as many evaluations, got step 9000",
            ),
            (
                "B,cartpole,1,0,9,0.5\nB,cartpole,1,500,9,0.5\nB,cartpole,1,1000,9,0.5\n",
                "score: expected a finite number in every line or in none, got some lines without",
            ),
        ] {
            assert_eq!(table(&format!("{a}{more}")).unwrap_err(), problem);
        }
        let twice = Table::parse("agent,env,seed,step,return,return\nA,cartpole,1,0,9,9\n").unwrap_err();
        assert_eq!(twice, "line 1: expected each column once, got return twice");
    }

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
        assert_eq!(cells(&quoted(&table.agents[0])), Some(vec![table.agents[0].as_str().into()]));
    }

    #[test]
    fn agents_are_compared_within_the_steps_of_the_shortest() {
        let run =
            |agent: &str, steps: &[u32]| -> String { steps.iter().map(|step| format!("{agent},cartpole,1,{step},{step}\n")).collect() };
        let of = |runs: &[String]| Table::parse(&["agent,env,seed,step,return\n", &runs.concat()].concat()).unwrap();
        // an update of GRPO takes 500 steps
        let long = run("GRPO", &[0, 500, 500, 1000, 1000, 1000]);
        let table = of(&[run("PPO", &[0, 200, 400, 600, 800, 1000]), run("DQN", &[0, 200, 400, 600]), long.clone()]);
        assert_eq!((table.shortest(0), table.common(0)), (1, 4));
        assert_eq!([0, 1, 2].map(|agent| table.equal(agent, 0)), [3, 3, 2]);
        // without budgets of their own, all agents are compared at the end
        let table = of(&[run("PPO", &[0, 200, 400, 600, 800, 1000]), long]);
        assert_eq!([0, 1].map(|agent| table.equal(agent, 0)), [5, 5]);
    }

    #[test]
    fn an_agent_need_not_have_runs_in_every_environment() {
        let table = Table::parse(&SMALL.replace("PPO,cartpole,2,0,10\nPPO,cartpole,2", "A2C,pendulum,2,0,10\nA2C,pendulum,2")).unwrap();
        assert_eq!((table.agents_in(0), table.agents_in(1), table.agents_everywhere()), (vec![0], vec![1], vec![]));
        assert_eq!((table.common(1), table.shortest(1), table.equal(1, 1), table.count(1)), (2, 1, 1, 1));
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
                "line 1: expected the columns agent, env, seed, step, return, got a table without seed, return",
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
                "PPO,cartpole,2,500,60\n",
                "PPO,cartpole,2,500,60\nA2C,cartpole,1,0,9\nA2C,cartpole,1,1100,9\nA2C,cartpole,1,2200,9\n",
                "agent \"A2C\" on cartpole: expected an evaluation by step 500, as for \"PPO\", got the first at step 1100",
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
