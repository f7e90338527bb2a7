//! Supervised warm start: the policy learns the task's reference answers, so that reinforcement learning begins with a policy that
//! sometimes gets a reward.
//!
//! Training uses the train split. The validation split decides when to stop, and the final evaluation uses the test split.

use std::ops::Range;
use std::path::{Path, PathBuf};

use gradus_agents::sft::{SftConfig, demonstrations, fine_tune};
use gradus_agents::{Aggregation, ConfigError, UpdateContext};
use gradus_base::random::{Purpose, Stream, episode_seed};
use gradus_envs::EnvSpec;
use gradus_envs::text::{self, Problem, Split, TextWorld};
use gradus_nets::{ActionRows, Observations, Policy, Schedule, Store};

use crate::config::{Network, of_text};
use crate::evaluate::{Evaluation, Mode, evaluate};
use crate::run::{expect_place, vacant, write_policy};
use crate::saved::first_policy;
use crate::{Config, Error};

/// Settings of a warm start.
#[derive(Clone, Debug, PartialEq)]
pub struct WarmStart {
    /// Maximum number of optimiser steps.
    pub steps: u64,
    /// Answers per step.
    pub batch: usize,
    /// Training stops when the policy answers at least this share of the validation problems exactly; `inf`: only after `steps`.
    pub until_exact: f64,
    /// Optimiser steps between two evaluations. The last step is also followed by an evaluation.
    pub evaluate_every: u64,
    /// Problems per evaluation; all problems of the split if it has fewer.
    pub problems: usize,
}

impl Default for WarmStart {
    fn default() -> Self {
        Self { steps: 1000, batch: 64, until_exact: f64::INFINITY, evaluate_every: 10, problems: 200 }
    }
}

/// An evaluation during a warm start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Optimiser steps so far.
    pub step: u64,
    /// Mean of -log pi(token) over the tokens of the answers in the latest step.
    pub loss: f64,
    /// Share of validation problems answered exactly by the most probable tokens; the mean reward if the task has no score `exact`.
    pub exact: f64,
}

/// Returns `config` with a learning rate, its schedule, an epsilon and a gradient clip for warm starts, instead of those for reinforcement
/// learning, and with temperature 1, at which answers are learned as they are. The adapters of a pretrained model keep their learning rate.
pub fn defaults(mut config: Config) -> Config {
    let is_pretrained = matches!(&config.network, Network::Transformer(network) if network.lora_rank > 0);
    let optimiser = gradus_agents::OptimiserConfig {
        epsilon: 1e-8,
        learning_rate: if is_pretrained { config.optimiser.learning_rate } else { 2e-3 },
        schedule: Schedule::Constant,
        max_grad_norm: 1.0,
        ..config.optimiser
    };
    if let Network::Transformer(network) = &mut config.network {
        network.temperature = 1.0;
    }
    Config { optimiser, ..config }
}

/// Trains `policy` on the answers of `world`'s task, with the optimiser and the seed of `config`. Calls `each` after every evaluation, and
/// returns all evaluations.
pub fn warm_start(
    policy: &mut dyn Policy,
    world: &EnvSpec,
    config: &Config,
    wanted: &WarmStart,
    mut each: impl FnMut(Progress),
) -> Result<Vec<Progress>, Error> {
    config.optimiser.check()?;
    let positive = |key, x: u64| ConfigError::unless(x > 0, key, "at least 1", x);
    positive("steps", wanted.steps)?;
    positive("batch", wanted.batch as u64)?;
    positive("evaluate_every", wanted.evaluate_every)?;
    positive("problems", wanted.problems as u64)?;
    let is_share = wanted.until_exact == f64::INFINITY || (0.0..=1.0).contains(&wanted.until_exact);
    ConfigError::unless(is_share, "until_exact", "a fraction from 0 to 1", wanted.until_exact)?;
    let text = of_text("a warm start", world)?;
    let validation = world.clone().on_split(Split::Validation);
    let mut all = Vec::new();
    for step in 0..wanted.steps {
        let problems: Vec<Problem> = (0..wanted.batch as u64).map(|i| problem(text, config.seed, step * wanted.batch as u64 + i)).collect();
        for problem in &problems {
            text.check_prompt(&problem.prompt)?;
            text.task.vocabulary().check(&problem.answer)?;
            let (most, length) = (text.max_new_tokens(), problem.answer.len());
            if length > most {
                let expected = format!("at least {length}, the length of an answer of {}", world.name);
                return Err(Error::Parse { what: "text.max_new_tokens + text.overlong_buffer".into(), expected, got: most.to_string() });
            }
        }
        if problems.iter().any(|problem| problem.answer.is_empty()) {
            let what = format!("answers of {}", world.name);
            return Err(Error::Parse { what, expected: "one for every problem".into(), got: "a problem without an answer".into() });
        }
        let (store, ranges) = answers(text, &problems);
        let (whole, context) =
            (store.actions.len(), UpdateContext { seed: config.seed, iteration: step, progress: step as f64 / wanted.steps as f64 });
        let once = SftConfig { epochs: 1, minibatch_size: whole, aggregation: Aggregation::TokenMean };
        let report = fine_tune(policy, &demonstrations(store, ranges), &once, &config.optimiser, context);
        Error::unless_sound(policy)?;
        let report = report?;
        let loss = report.iter().find(|(name, _)| *name == "sft/loss").map_or(f64::NAN, |(_, loss)| *loss);
        if (step + 1).is_multiple_of(wanted.evaluate_every) || step + 1 == wanted.steps {
            let evaluation = evaluate(policy, &validation, wanted.problems, config.seed, Mode::Greedy)?;
            let progress = Progress { step: step + 1, loss, exact: evaluation.score("exact").unwrap_or(evaluation.mean) };
            each(progress);
            all.push(progress);
            if progress.exact >= wanted.until_exact {
                break;
            }
        }
    }
    Ok(all)
}

/// Runs a warm start from the initial parameters of the configuration, in its environment. Creates a folder with the policy: `dir`, or the
/// first of `runs/NAME-1`, `runs/NAME-2`, ... that is free. Returns the folder, and an evaluation of the policy on the test split.
pub fn run(
    config: &Config,
    wanted: &WarmStart,
    dir: Option<&Path>,
    name: &str,
    each: impl FnMut(Progress),
) -> Result<(PathBuf, Evaluation), Error> {
    dir.map_or(Ok(PathBuf::new()), vacant)?;
    let world = config.world()?;
    of_text("a warm start", &world)?;
    let mut policy = first_policy(config, &world)?;
    expect_place(dir, name)?; // fails before the training instead of after it
    let all = warm_start(policy.as_mut(), &world, config, wanted, each)?;
    let row = |Progress { step, loss, exact }: &Progress| format!("{step},{},{}\n", *loss as f32, *exact as f32);
    let table = format!("step,loss/sft,scores/exact\n{}", all.iter().map(row).collect::<String>());
    let test = evaluate(policy.as_ref(), &world.on_split(Split::Test), wanted.problems, config.seed, Mode::Greedy)?;
    Ok((write_policy(dir, name, &config.clone().settled()?, &policy.save(), &table, None)?, test))
}

/// Draws the problem with the index `number`, of all problems of a warm start, from the train split.
fn problem(text: &TextWorld, seed: u64, number: u64) -> Problem {
    // a run with this seed uses other seeds for its episodes
    let seed = episode_seed(seed, u64::from(u32::MAX) - 1, number);
    text.task.problem(Split::Train, &mut Stream::new(seed, Purpose::Environment, 0))
}

/// Returns one decision per token of the answers. The observation of a decision is the prompt and the tokens of the answer before the
/// decision. Also returns the range of decisions of each answer.
fn answers(text: &TextWorld, problems: &[Problem]) -> (Store, Vec<Range<usize>>) {
    let space = text.space();
    let mut observations = Observations::empty(&space);
    let mut row = vec![0.0; space.width()];
    let (mut tokens, mut ranges) = (Vec::new(), Vec::new());
    for Problem { prompt, answer } in problems {
        let first = tokens.len();
        for (i, token) in answer.iter().enumerate() {
            text::write(&[&prompt[..], &answer[..i]].concat(), &mut row);
            observations.push(&row);
            tokens.push(*token);
        }
        observations.end_episode();
        ranges.push(first..tokens.len());
    }
    (Store::of(observations, ActionRows::Discrete(tokens)), ranges)
}
