//! What is known of a run: its logs, its settings and an evaluation of its policy.

use std::collections::BTreeMap;
use std::path::Path;

use gradus::envs::{EnvSpec, Space};
use gradus::evaluate::Evaluation;
use gradus::evaluate::levels::Levels;
use gradus::files::read_to_string;
use gradus::{Config, Error};
use gradus_compare::statistics::{Scores, mann_whitney};

/// What is known of a run.
pub(super) struct Record {
    pub(super) config: Config,
    /// The finite numbers of each column of `metrics.csv`, in order.
    pub(super) columns: BTreeMap<String, Vec<f64>>,
    /// The return of each episode.
    pub(super) returns: Vec<f64>,
    /// The steps that were taken, if they are fewer than those of the run.
    pub(super) stopped_at: Option<u64>,
    /// The number of steps of each episode.
    pub(super) lengths: Vec<f64>,
    /// Whether each episode ended by a time limit.
    pub(super) truncated: Vec<bool>,
    /// The number of discrete actions.
    pub(super) actions: Option<f64>,
    /// Whether the agent has a table instead of a network.
    pub(super) is_table: bool,
    /// The number of state-action pairs of a table.
    pub(super) pairs: Option<usize>,
    pub(super) is_text: bool,
    /// Whether observations tell states apart.
    pub(super) sees_states: bool,
    /// Whether no episode of the greedy policy ended before the time limit, and some of the training did, or the best policy's do.
    pub(super) is_endless: bool,
    /// The first infinite number: the column, and the row from 0.
    pub(super) infinite: Option<(String, usize)>,
    /// The mean return of the greedy policy and its standard error, if it could be evaluated.
    pub(super) greedy: Option<(f64, f64)>,
    pub(super) levels: Option<Levels>,
    /// How much the decisions of a policy with a memory differ from those without it; see `use_of_memory`.
    pub(super) remembered: Option<f64>,
}

/// Reads a table as texts: the header, which has the column `needed`, then the rows. The last line of a run that is still going on may be unfinished.
fn table(path: &Path, needed: &str) -> Result<Vec<Vec<String>>, Error> {
    let text = read_to_string(path)?;
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let rows: Vec<Vec<String>> = whole.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect();
    let header = rows.first().map_or(&[][..], Vec::as_slice);
    // no episode has ended yet
    let is_empty = text.is_empty();
    if !is_empty && !header.iter().any(|name| name == needed) {
        let (what, expected) = (format!("{}: line 1", path.display()), format!("the table of a run of `train`, with the column {needed}"));
        return Err(Error::Parse { what, expected, got: header.join(",") });
    }
    if let Some(row) = rows.iter().position(|row| row.len() != header.len()) {
        let what = format!("{}: line {}", path.display(), row + 1);
        return Err(Error::Parse { what, expected: format!("{} cells", header.len()), got: rows[row].len().to_string() });
    }
    Ok(rows)
}

/// Returns the steps in the last row of a table of metrics.
fn steps_at_end(metrics: &[Vec<String>]) -> u64 {
    let place = metrics.first().and_then(|header| header.iter().position(|name| name == "time/total_timesteps"));
    place.zip(metrics.last()).and_then(|(place, row)| row[place].parse().ok()).unwrap_or(0)
}

pub(super) fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

pub(super) fn median(numbers: &[f64]) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    if sorted.is_empty() { f64::NAN } else { sorted[sorted.len() / 2] }
}

/// Returns the sample standard deviation.
pub(super) fn spread(numbers: &[f64]) -> f64 {
    let middle = mean(numbers);
    (numbers.iter().map(|x| (x - middle) * (x - middle)).sum::<f64>() / (numbers.len() as f64 - 1.0).max(1.0)).sqrt()
}

/// Returns the first or last part of some numbers, at least one.
pub(super) fn first(numbers: &[f64], part: usize) -> &[f64] {
    &numbers[..numbers.len().div_ceil(part)]
}

pub(super) fn last(numbers: &[f64], part: usize) -> &[f64] {
    &numbers[numbers.len() - numbers.len().div_ceil(part)..]
}

/// Whether two samples differ by their ranks, with p below 0.001 (Mann and Whitney).
pub(super) fn differ(x: &[f64], y: &[f64]) -> bool {
    let some = |numbers: &[f64]| Scores::new(vec![numbers.iter().step_by(numbers.len().div_ceil(300).max(1)).copied().collect()]);
    matches!((some(x), some(y)), (Ok(x), Ok(y)) if mann_whitney(&x, &y) < 1e-3)
}

/// The policy of a run, evaluated.
pub(super) struct Evaluated {
    /// The greedy policy, if the agent has one and its episodes end.
    pub(super) greedy: Option<Evaluation>,
    /// What to compare it with.
    pub(super) levels: Option<Levels>,
}

impl Record {
    /// Reads the logs in a run folder.
    pub(super) fn read(dir: &Path, config: Config, world: &EnvSpec, evaluated: &Evaluated) -> Result<Self, Error> {
        let metrics = table(&dir.join("metrics.csv"), "time/total_timesteps")?;
        let header = metrics.first().cloned().unwrap_or_default();
        let cells = |place: usize| metrics.iter().skip(1).map(move |row| row.get(place).and_then(|cell| cell.parse::<f64>().ok()));
        let column = |place: usize| cells(place).flatten().filter(|x| x.is_finite()).collect();
        // a range or a budget may be infinite, what is measured may not
        let is_measured = |name: &str| ["loss", "grad_norm", "value", "entropy", "td_error", "kl"].iter().any(|part| name.contains(part));
        let infinite = header
            .iter()
            .enumerate()
            .filter(|(_, name)| is_measured(name))
            .find_map(|(place, name)| cells(place).position(|cell| cell.is_some_and(f64::is_infinite)).map(|row| (name.clone(), row)));
        let columns = header.iter().enumerate().map(|(i, name)| (name.clone(), column(i))).collect();
        let path = dir.join("episodes.csv");
        let done = steps_at_end(&metrics);
        let is_finished = done >= config.steps;
        let evaluations =
            header.iter().position(|name| name == "eval/mean_reward").map(|place| cells(place).flatten().collect::<Vec<f64>>());
        let has_reached = evaluations.and_then(|all| all.last().copied()).is_some_and(|last| last >= config.stop_at);
        let stopped_at = Some(done).filter(|_| !is_finished && !has_reached);
        let episodes = table(&path, "return")?;
        if is_finished && !episodes.is_empty() && !read_to_string(&path)?.ends_with('\n') {
            let (what, expected) =
                (format!("{}: line {}", path.display(), episodes.len() + 1), "a whole line, because the run has ended".into());
            return Err(Error::Parse { what, expected, got: "a part of one".into() });
        }
        let place = |name: &str| episodes.first().and_then(|header| header.iter().position(|other| other == name));
        let (value, length, end) = (place("return"), place("length"), place("end"));
        let rows = || episodes.iter().skip(1);
        let returns = rows().filter_map(|row| row.get(value?)?.parse().ok()).collect();
        let lengths: Vec<f64> = rows().filter_map(|row| row.get(length?)?.parse().ok()).collect();
        let truncated = rows().filter_map(|row| Some(row.get(end?)?.contains("truncated"))).collect();
        let actions = match world.env().action_space() {
            space if world.text.is_none() => space.elements().map(f64::from),
            _ => None,
        };
        let greedy = evaluated.greedy.as_ref().map(|last| (last.mean, last.error()));
        let is_table = config.foreign(world).iter().any(|(key, _)| key == "network.");
        let pairs = world.model().filter(|_| is_table).map(|model| model.table().states() * model.table().actions());
        let is_text = world.text.is_some();
        let sees_states = !matches!(world.env().observation_space(), Space::Discrete(1));
        let limit = world.max_episode_steps.unwrap_or(u32::MAX);
        // in some worlds all episodes end with the last step that they may have
        // where each step costs something, the best policy ends an episode
        let needs_no_limit = |levels: &Levels| levels.random.0 < 0.0 && levels.optimum.is_some_and(|optimum| optimum > -f64::from(limit));
        let is_endless = evaluated.greedy.as_ref().is_some_and(|last| last.lengths.iter().all(|length| *length >= limit))
            && (lengths.iter().any(|length| *length < f64::from(limit)) || evaluated.levels.as_ref().is_some_and(needs_no_limit));
        let levels = evaluated.levels;
        Ok(Self {
            config,
            columns,
            returns,
            stopped_at,
            lengths,
            truncated,
            actions,
            is_table,
            pairs,
            is_text,
            sees_states,
            is_endless,
            infinite,
            greedy,
            levels,
            remembered: None,
        })
    }

    /// Returns the numbers of the first of these columns that has any.
    pub(super) fn any(&self, names: &[&str]) -> &[f64] {
        names.iter().filter_map(|name| self.columns.get(*name)).find(|numbers| !numbers.is_empty()).map_or(&[], Vec::as_slice)
    }

    pub(super) fn setting(&self, key: &str) -> Option<f64> {
        self.config.settings().into_iter().find(|(own, _)| own == key).and_then(|(_, value)| value.parse().ok())
    }

    /// The mean return at the end, if there are enough episodes to say.
    pub(super) fn at_end(&self) -> Option<f64> {
        (self.returns.len() >= 20).then(|| mean(last(&self.returns, 10)))
    }

    /// The return to reach: the optimum, or else that of a solved environment, or else the best that is known.
    pub(super) fn goal(&self) -> Option<f64> {
        let levels = self.levels?;
        // Gymnasium's threshold may be above the optimum
        levels.optimum.or(levels.solved).or(levels.best)
    }

    /// How far the greedy policy has come from random actions, 0, to the goal, 1.
    pub(super) fn progress(&self) -> Option<f64> {
        let ((greedy, _), goal, (random, _)) = (self.greedy?, self.goal()?, self.levels?.random);
        (goal > random).then(|| (greedy - random) / (goal - random))
    }

    /// Whether the policy is as good as can be expected: its evaluation, or else the last episodes of the training, come near the goal.
    pub(super) fn is_good(&self) -> bool {
        let near = self.goal().zip(self.at_end()).is_some_and(|(goal, end)| end >= goal);
        self.progress().map_or(near, |progress| progress >= 0.95)
    }

    /// Whether the policy has learned something: its returns rose, or it is half-way to the goal. An untrained greedy policy may be better than random actions.
    pub(super) fn is_learning(&self) -> bool {
        self.is_improved() || self.progress().is_some_and(|progress| progress > 0.5)
    }

    /// Whether returns are higher at the end than at the beginning, by the means or by the ranks, or whether the values of a table have come closer to the exact ones.
    pub(super) fn is_improved(&self) -> bool {
        let (begin, end) = (first(&self.returns, 10), last(&self.returns, 10));
        let error = (spread(begin).powi(2) / begin.len() as f64 + spread(end).powi(2) / end.len() as f64).sqrt();
        let errors = self.any(&["train/value_error"]);
        let is_closer = errors.last().is_some_and(|last| *last < 0.7 * errors[0] || *last < 0.01);
        mean(end) - mean(begin) > 3.0 * error || median(end) > median(begin) && differ(begin, end) || is_closer
    }
}
