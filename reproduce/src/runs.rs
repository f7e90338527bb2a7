//! Trainings and other runs side by side, one on each core.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use gradus::envs::panics;
use gradus::evaluate::evaluate;
use gradus::nets::threads;
use gradus::{Config, Error, Mode, Trainer};
use gradus_compare::Comparison;
use gradus_compare::statistics::csv::{push_row, quoted};

/// Does `work` for every item, as many at a time as there are cores, each with one thread. The results are in the order of the items. On a terminal the
/// number of finished items is shown.
pub(super) fn each<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> Result<R, Error> + Sync) -> Result<Vec<R>, Error> {
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let results = Mutex::new(Vec::new());
    let (began, is_shown) = (Instant::now(), io::stderr().is_terminal());
    let run = || {
        while let number = next.fetch_add(1, Ordering::Relaxed)
            && let Some(item) = items.get(number)
        {
            let result = panics::catch(|| threads::with(1, || work(item))).unwrap_or_else(|panic| Err(panic.into()));
            let is_failed = result.is_err();
            results.lock().unwrap_or_else(PoisonError::into_inner).push((number, result));
            let done = 1 + done.fetch_add(1, Ordering::Relaxed);
            if is_shown {
                // standard error may be closed
                let _ = write!(io::stderr(), "\r{done} of {} runs, {:.0} s ", items.len(), began.elapsed().as_secs_f64());
            }
            if is_failed {
                next.store(items.len(), Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        // if the system refuses a thread, fewer threads do the same work
        (1..threads::cores().min(items.len())).for_each(|_| drop(std::thread::Builder::new().spawn_scoped(scope, run)));
        run();
    });
    if is_shown {
        let _ = write!(io::stderr(), "\r{:40}\r", "");
    }
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}

/// A training of a comparison, evaluated as `gradus compare` does.
#[derive(Clone, Debug)]
pub(super) struct Run {
    /// Place of the agent in the comparison.
    pub(super) agent: usize,
    /// Place of the environment.
    pub(super) environment: usize,
    pub(super) seed: u64,
    /// Steps, and the mean return of greedy episodes after them; the first evaluation is before the training.
    pub(super) evaluations: Vec<(u64, f64)>,
    /// Steps and return of every episode of the training.
    pub(super) episodes: Vec<(u64, f64)>,
    /// Seconds of the training before each evaluation; not reproducible.
    pub(super) seconds: Vec<f64>,
}

impl Run {
    /// Returns the greedy return after the last update.
    pub(super) fn last(&self) -> f64 {
        self.evaluations.last().map_or(f64::NAN, |(_, mean)| *mean)
    }

    /// Returns the mean of all evaluations after the one before the training: the area under the curve, in units of return.
    pub(super) fn area(&self) -> f64 {
        let after = &self.evaluations[1..];
        after.iter().map(|(_, mean)| mean).sum::<f64>() / after.len() as f64
    }

    /// Returns the mean return of the last `n` training episodes.
    pub(super) fn last_episodes(&self, n: usize) -> f64 {
        let last = &self.episodes[self.episodes.len().saturating_sub(n)..];
        last.iter().map(|(_, value)| value).sum::<f64>() / last.len() as f64
    }
}

/// Makes all runs of a comparison, agent by agent, environment by environment, seed by seed.
pub(super) fn train(comparison: &Comparison) -> Result<Vec<Run>, Error> {
    let mut jobs: Vec<(usize, usize, Config)> = Vec::new();
    for (agent, contender) in comparison.agents.iter().enumerate() {
        for (environment, config) in &contender.configs {
            jobs.extend(comparison.seeds.iter().map(|seed| (agent, *environment, Config { seed: *seed, ..config.clone() })));
        }
    }
    each(&jobs, |(agent, environment, config)| {
        let evaluations = comparison.evaluations_of(*environment, config.steps);
        let mut trainer = Trainer::new(config.clone())?;
        let mut run =
            Run { agent: *agent, environment: *environment, seed: config.seed, evaluations: vec![], episodes: vec![], seconds: vec![] };
        let (mut seconds, mut count) = (0.0, 0);
        loop {
            let played = evaluate(trainer.policy(), &trainer.evaluation_world(), comparison.episodes, config.seed, Mode::Greedy)?;
            run.evaluations.push((trainer.steps(), played.mean));
            run.seconds.push(seconds);
            if count == evaluations {
                return Ok(run);
            }
            count += 1;
            // the last evaluation uses the final parameters
            let due = (config.steps as u128 * u128::from(count)).div_ceil(u128::from(evaluations)) as u64;
            let began = Instant::now();
            while (trainer.steps() < due || count == evaluations) && !trainer.is_finished() {
                let iteration = trainer.iterate()?;
                run.episodes.extend(iteration.episodes.iter().map(|episode| (iteration.steps, episode.episode_return)));
            }
            seconds += began.elapsed().as_secs_f64();
        }
    })
}

/// Returns the evaluations as a table, like `results.csv` of a comparison.
pub(super) fn results_csv(comparison: &Comparison, runs: &[Run]) -> String {
    let mut text = String::from("agent,env,seed,step,return\n");
    for run in runs {
        let (agent, env) = (&comparison.agents[run.agent].name, &comparison.environments[run.environment]);
        for (step, mean) in &run.evaluations {
            let cells = [quoted(agent), env.clone(), run.seed.to_string(), step.to_string(), mean.to_string()];
            push_row(&mut text, &cells);
        }
    }
    text
}
