//! Training a reward model by itself: completions drawn from a policy, two or more of each problem, ranked by the task's own verifier.

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
use crate::{Config, Error};

/// What a reward model is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// Problems of which completions are drawn and ranked.
    pub pairs: usize,
    /// Completions of each: two make a pair, more a ranking; of those that are worth the same only the first one counts.
    pub completions: usize,
    /// Problems of the test split, likewise, to measure it by.
    pub held_out: usize,
    /// How it is trained.
    pub training: RewardModelConfig,
}

impl Default for Wanted {
    fn default() -> Self {
        Self { pairs: 2000, completions: 2, held_out: 500, training: RewardModelConfig::default() }
    }
}

/// How good it became.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Learnt {
    /// Pairs or rankings that it was trained on: problems whose completions were not all worth the same.
    pub pairs: usize,
    /// Those of the test split that it was measured by.
    pub held_out: usize,
    /// The mean loss of one while it learnt.
    pub loss: f64,
    /// The share of pairs, all those of the rankings it was measured by, in which the better completion has the higher score.
    pub accuracy: f64,
    /// By how much, on average.
    pub margin: f64,
}

/// What stands for reward models among environments, where seeds are made.
const OWN: u64 = u32::MAX as u64 - 3;

/// Draws completions from `policy` and makes a reward model of it: afterwards its value head scores whole texts of `world`.
pub fn learn(policy: &mut dyn Policy, world: &World, config: &Config, wanted: &Wanted) -> Result<Learnt, Error> {
    let learnt = draw_and_learn(policy, world, config, wanted);
    Error::unless_sound(policy)?;
    learnt.map(|(learnt, _)| learnt)
}

/// How good it became, and the rankings that it was trained on.
fn draw_and_learn(policy: &mut dyn Policy, world: &World, config: &Config, wanted: &Wanted) -> Result<(Learnt, Vec<RankedTexts>), Error> {
    config.optimiser.check()?;
    for (key, n) in [("pairs", wanted.pairs), ("held_out", wanted.held_out)] {
        ConfigError::unless(n > 0, key, "at least 1", n)?;
    }
    let is_ranking = (2..=MOST_COMPLETIONS).contains(&wanted.completions);
    ConfigError::unless(is_ranking, "completions", "2 to 1024", wanted.completions)?;
    let text = of_text("a reward model", world)?;
    let context = text.space().width() - 1;
    let seeds = [0, 1].map(|i| episode_seed(config.seed, OWN, i));
    let questions = |problems| Questions { problems, completions: wanted.completions };
    let pairs = draw(policy, text, Split::Train, questions(wanted.pairs), seeds[0])?;
    let held_out = draw(policy, text, Split::Test, questions(wanted.held_out), seeds[1])?;
    if pairs.is_empty() || held_out.is_empty() {
        let what = format!("completions of {}", world.name);
        let expected = "some that are not worth the same, as a policy that has learnt something would give".into();
        return Err(Error::Parse { what, expected, got: format!("{} to learn from and {} to measure by", pairs.len(), held_out.len()) });
    }
    let update = UpdateContext { seed: config.seed, iteration: 0, progress: 0.0 };
    let report = train(policy, &preferences(&pairs, context), &wanted.training, &config.optimiser, update)?;
    let loss = report.iter().find(|(name, _)| *name == "reward_model/loss").map_or(f64::NAN, |(_, loss)| *loss);
    let judged = evaluate(policy, &preferences(&held_out, context));
    let learnt = Learnt { pairs: pairs.len(), held_out: held_out.len(), loss, accuracy: judged.accuracy(), margin: judged.margin() };
    Ok((learnt, pairs))
}

/// A reward model from the parameters that the configuration begins with; leaves a folder for the setting `reward_model.folder`: `dir`, or
/// the first of `runs/NAME-1`, `runs/NAME-2`, ... that is free. The folder keeps the rankings that the model was trained on, for a run that
/// trains it further and replays a share of them.
pub fn run(config: &Config, wanted: &Wanted, dir: Option<&Path>, name: &str) -> Result<(PathBuf, Learnt), Error> {
    dir.map_or(Ok(PathBuf::new()), vacant)?; // found out now rather than in the end
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
