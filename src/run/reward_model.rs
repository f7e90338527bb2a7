//! Trains a reward model outside a run. A policy generates two or more completions for each problem, and the task's verifier ranks them.

use std::path::{Path, PathBuf};

use gradus_agents::reward_model::{RewardModelConfig, evaluate, train};
use gradus_agents::{ConfigError, UpdateContext};
use gradus_envs::World;
use gradus_envs::random::episode_seed;
use gradus_envs::text::Split;
use gradus_nets::Policy;

use crate::config::MOST_COMPLETIONS;
use crate::config::of_text;
use crate::run::{vacant, write_policy};
use crate::saved::first_policy;
use crate::train::preferences::{Questions, RankedTexts, draw, preferences, to_file};
use crate::{Config, Error, memory};

/// The data and the settings of a reward model's training.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// Number of problems for which completions are sampled and ranked.
    pub pairs: usize,
    /// Completions per problem: two make a pair, more make a ranking. Of completions with equal rewards only the first is used.
    pub completions: usize,
    /// Number of problems of the test split for the evaluation of the model.
    pub held_out: usize,
    /// Settings of the training.
    pub training: RewardModelConfig,
}

impl Default for Wanted {
    fn default() -> Self {
        Self { pairs: 2000, completions: 2, held_out: 500, training: RewardModelConfig::default() }
    }
}

/// The quality of a trained reward model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Learnt {
    /// Number of training pairs or rankings: one for each problem whose completions do not all have the same reward.
    pub pairs: usize,
    /// Number of pairs or rankings of the test split in the evaluation.
    pub held_out: usize,
    /// Mean loss per pair or ranking during training.
    pub loss: f64,
    /// Share of all pairs of the test rankings in which the better completion has the higher score.
    pub accuracy: f64,
    /// Mean difference between the scores of the better and the worse completion, over the same pairs.
    pub margin: f64,
}

/// The environment number from which [`episode_seed`] derives the seeds of reward models.
const OWN: u64 = u32::MAX as u64 - 3;

/// Samples completions from `policy` and trains `policy` itself as a reward model. Afterwards its value head scores whole texts of
/// `world`.
pub fn learn(policy: &mut dyn Policy, world: &World, config: &Config, wanted: &Wanted) -> Result<Learnt, Error> {
    let learnt = draw_and_learn(policy, world, config, wanted);
    Error::unless_sound(policy)?;
    learnt.map(|(learnt, _)| learnt)
}

/// Same as [`learn`], but also returns the rankings that the model was trained on.
fn draw_and_learn(policy: &mut dyn Policy, world: &World, config: &Config, wanted: &Wanted) -> Result<(Learnt, Vec<RankedTexts>), Error> {
    config.optimiser.check()?;
    for (key, n) in [("pairs", wanted.pairs), ("held_out", wanted.held_out)] {
        ConfigError::unless(n > 0, key, "at least 1", n)?;
    }
    let is_ranking = (2..=MOST_COMPLETIONS).contains(&wanted.completions);
    ConfigError::unless(is_ranking, "completions", "2 to 1024", wanted.completions)?;
    let text = of_text("a reward model", world)?;
    let bytes = wanted.completions as f64 * memory::of_completion(text);
    for (key, n) in [("pairs", wanted.pairs), ("held_out", wanted.held_out)] {
        memory::expect(key, n, &format!("of {} completions", wanted.completions), |n| n * bytes)?;
    }
    let context = text.space().width() - 1;
    let seeds = [0, 1].map(|i| episode_seed(config.seed, OWN, i));
    let questions = |problems| Questions { problems, completions: wanted.completions };
    let pairs = draw(policy, text, Split::Train, questions(wanted.pairs), seeds[0])?;
    let held_out = draw(policy, text, Split::Test, questions(wanted.held_out), seeds[1])?;
    if pairs.is_empty() || held_out.is_empty() {
        let what = format!("completions of {}", world.name);
        let expected = "different rewards for at least one training and one test problem".into();
        let got = format!("{} rankings for training and {} for evaluation", pairs.len(), held_out.len());
        return Err(Error::Parse { what, expected, got });
    }
    let update = UpdateContext { seed: config.seed, iteration: 0, progress: 0.0 };
    let report = train(policy, &preferences(&pairs, context), &wanted.training, &config.optimiser, update)?;
    let loss = report.iter().find(|(name, _)| *name == "reward_model/loss").map_or(f64::NAN, |(_, loss)| *loss);
    let agreement = evaluate(policy, &preferences(&held_out, context));
    let learnt = Learnt { pairs: pairs.len(), held_out: held_out.len(), loss, accuracy: agreement.accuracy(), margin: agreement.margin() };
    Ok((learnt, pairs))
}

/// Trains a reward model from the initial parameters of the configuration. Creates a folder for the setting `reward_model.folder`: `dir`,
/// or the first of `runs/NAME-1`, `runs/NAME-2`, ... that is free. The folder keeps the rankings that the model was trained on, because a
/// run that trains the model further replays a share of them.
pub fn run(config: &Config, wanted: &Wanted, dir: Option<&Path>, name: &str) -> Result<(PathBuf, Learnt), Error> {
    dir.map_or(Ok(PathBuf::new()), vacant)?; // fails before the training instead of after it
    let world = config.world()?;
    of_text("a reward model", &world)?;
    let mut policy = first_policy(config, &world)?;
    let learnt = draw_and_learn(policy.as_mut(), &world, config, wanted);
    Error::unless_sound(policy.as_ref())?;
    let (learnt, rankings) = learnt?;
    let Learnt { pairs, held_out, loss, accuracy, margin } = learnt;
    let names = "pairs,held_out,reward_model/loss,reward_model/accuracy,reward_model/margin";
    let table = format!("{names}\n{pairs},{held_out},{},{},{}\n", loss as f32, accuracy as f32, margin as f32);
    Ok((write_policy(dir, name, config, &policy.save(), &table, Some(&to_file(&rankings)))?, learnt))
}
