//! Trains a reward model outside a run. A policy generates completions of problems. For an outcome reward model the task's verifier or
//! another judge ranks the completions of each problem, or a file has the preferences; for a process reward model the steps of each completion
//! are labelled.

use std::path::{Path, PathBuf};

use gradus_agents::groups::Supervision;
use gradus_agents::reward_model::RewardModelConfig;
use gradus_agents::{ConfigError, UpdateContext};
use gradus_base::random::episode_seed;
use gradus_envs::EnvSpec;
use gradus_envs::text::{Split, TextWorld};
use gradus_nets::Policy;

use crate::config::{Labelling, MOST_COMPLETIONS, inputs, of_text};
use crate::run::{expect_place, vacant, write_policy};
use crate::saved::first_policy;
use crate::train::Quality;
use crate::train::examples::{Examples, How, Questions, Verifier, judge_in};
use crate::{Config, Error, memory};

/// The examples of a reward model's training.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Source {
    /// Completions of the policy, ranked by the task's verifier, for an outcome reward model.
    #[default]
    Verifier,
    /// Completions of the policy, ranked by the judge in this folder: a reward model by its scores, or the policy of a run by its
    /// log-likelihoods (Lee et al., arXiv 2309.00267, learn from a model's preferences, too).
    Judge(PathBuf),
    /// Preferences in this file, in JSON Lines.
    File(PathBuf),
    /// Completions of the policy with labelled steps, for a process reward model.
    Steps(Labelling),
}

/// The data and the settings of a reward model's training.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// Where the examples come from.
    pub source: Source,
    /// Number of problems for which completions are sampled, and ranked or labelled; not used for a file.
    pub pairs: usize,
    /// Completions per problem. For rankings, two make a pair, more make a ranking, and of completions with equal rewards only the first is
    /// used.
    pub completions: usize,
    /// Number of problems of the test split for the evaluation of the model; not used for a file, of which one prompt in eight is held out.
    pub held_out: usize,
    /// Settings of the training.
    pub training: RewardModelConfig,
}

impl Default for Wanted {
    fn default() -> Self {
        Self { source: Source::Verifier, pairs: 2000, completions: 2, held_out: 500, training: RewardModelConfig::default() }
    }
}

/// The quality of a trained reward model.
#[derive(Clone, Debug, PartialEq)]
pub struct Learnt {
    /// Number of training examples: for an outcome reward model the pairs or rankings, one for each problem whose completions do not all
    /// have the same reward; for a process reward model the completions.
    pub examples: usize,
    /// Number of labelled steps in the training examples of a process reward model.
    pub steps: Option<usize>,
    /// Number of examples of the test split in the evaluation.
    pub held_out: usize,
    /// Mean loss per ranking or per step during training.
    pub loss: f64,
    /// Agreement with the examples of the test split, whose ranks or labels are always the verifier's, or with the held-out lines of a file.
    pub quality: Quality,
    /// Share of the training pairs in which the judge agrees with the verifier; `None` without a judge.
    pub agreement: Option<f64>,
}

/// The environment number from which [`episode_seed`] derives the seeds of reward models.
const OWN: u64 = u32::MAX as u64 - 3;

/// Samples completions from `policy` and trains `policy` itself as a reward model. Afterwards its value head scores whole texts of
/// `world`, or the steps of solutions.
pub fn learn(policy: &mut dyn Policy, world: &EnvSpec, config: &Config, wanted: &Wanted) -> Result<Learnt, Error> {
    let learnt = draw_and_learn(policy, world, config, wanted);
    Error::unless_sound(policy)?;
    learnt.map(|(learnt, _)| learnt)
}

/// Same as [`learn`], but also returns the examples that the model was trained on.
fn draw_and_learn(policy: &mut dyn Policy, world: &EnvSpec, config: &Config, wanted: &Wanted) -> Result<(Learnt, Examples), Error> {
    config.optimiser.check()?;
    let text = of_text("a reward model", world)?;
    let context = text.space().width() - 1;
    let (examples, held_out, agreement) = match &wanted.source {
        Source::File(path) => {
            let [examples, held_out] = Examples::read(path, text)?;
            let expected = "a preference for the evaluation (one prompt in eight is held out, or the lines with the split test)";
            let none = || Error::Parse { what: path.display().to_string(), expected: expected.into(), got: "none".into() };
            (examples, Some(held_out).filter(|held_out| held_out.len() > 0).ok_or_else(none)?, None)
        }
        source => draw(policy, world, text, config, wanted, source)?,
    };
    let is_process = matches!(wanted.source, Source::Steps(_));
    let update = UpdateContext { seed: config.seed, iteration: 0, progress: 0.0 };
    let none = Examples::none(is_process);
    let report = examples.train(&none, policy, context, &wanted.training, &config.optimiser, update)?;
    let loss = report.iter().find(|(name, _)| *name == "reward_model/loss").map_or(f64::NAN, |(_, loss)| *loss);
    let quality = held_out.quality(policy, context);
    let learnt = Learnt { examples: examples.len(), steps: examples.steps(), held_out: held_out.len(), loss, quality, agreement };
    Ok((learnt, examples))
}

/// Samples completions from `policy`, and ranks or labels them: for the training, and of test problems for the evaluation. Also returns the
/// judge's agreement with the verifier, if there is a judge.
fn draw(
    policy: &dyn Policy,
    world: &EnvSpec,
    text: &TextWorld,
    config: &Config,
    wanted: &Wanted,
    source: &Source,
) -> Result<(Examples, Examples, Option<f64>), Error> {
    for (key, n) in [("pairs", wanted.pairs), ("held_out", wanted.held_out)] {
        ConfigError::unless(n > 0, key, "at least 1", n)?;
    }
    let is_ranking = (2..=MOST_COMPLETIONS).contains(&wanted.completions);
    ConfigError::unless(is_ranking, "completions", "2 to 1024", wanted.completions)?;
    let bytes = wanted.completions as f64 * memory::of_completion(text);
    for (key, n) in [("pairs", wanted.pairs), ("held_out", wanted.held_out)] {
        memory::expect(key, n, &format!("of {} completions", wanted.completions), |n| n * bytes)?;
    }
    let labelling = if let Source::Steps(labelling) = source { Some(labelling) } else { None };
    labelling.map_or(Ok(()), |labelling| labelling.check().and_then(|()| labelling.check_for(text)))?;
    let mut judge = if let Source::Judge(dir) = source { Some(judge_in(dir, config, world)?) } else { None };

    let mut verifier = Verifier::new(text);
    let seeds = [0, 1].map(|i| episode_seed(config.seed, OWN, i));
    let questions = |problems| Questions { problems, completions: wanted.completions };
    let how = match &mut judge {
        Some(judge) => How::Ranked(judge.as_mut()),
        None => How::of(labelling, &mut verifier),
    };
    let examples = Examples::draw(policy, text, Split::Train, questions(wanted.pairs), how, seeds[0])?;
    let by_verifier = labelling.map(|_| Labelling::by_verifier());
    let how = How::of(by_verifier.as_ref(), &mut verifier);
    let held_out = Examples::draw(policy, text, Split::Test, questions(wanted.held_out), how, seeds[1])?;
    if let Some(expected) = examples.lack().or_else(|| held_out.lack()) {
        let what = format!("completions of {}", world.name);
        let got = format!("{} for training and {} for evaluation", examples.describe(), held_out.describe());
        return Err(Error::Parse { what, expected: expected.into(), got });
    }
    let agreement = judge.map(|_| examples.agreement(&mut verifier)).transpose()?;
    Ok((examples, held_out, agreement))
}

/// Trains a reward model from the initial parameters of the configuration. Creates a folder for the setting `reward_model.folder`: `dir`,
/// or the first of `runs/NAME-1`, `runs/NAME-2`, ... that is free. The folder keeps the examples that the model was trained on, because a
/// run that trains the model further replays a share of them.
pub fn run(config: &Config, wanted: &Wanted, dir: Option<&Path>, name: &str) -> Result<(PathBuf, Learnt), Error> {
    dir.map_or(Ok(PathBuf::new()), vacant)?;
    let world = config.world()?;
    of_text("a reward model", &world)?;
    let mut policy = first_policy(config, &world)?;
    expect_place(dir, name)?; // fails before the training instead of after it
    let learnt = draw_and_learn(policy.as_mut(), &world, config, wanted);
    Error::unless_sound(policy.as_ref())?;
    let (learnt, examples) = learnt?;
    let Learnt { examples: count, steps, held_out, loss, ref quality, agreement } = learnt;
    let mut columns = match steps {
        Some(steps) => vec![("completions", count.to_string()), ("steps", steps.to_string())],
        None => vec![("pairs", count.to_string())],
    };
    columns.push(("held_out", held_out.to_string()));
    columns.extend(agreement.map(|agreement| ("judge_agreement", (agreement as f32).to_string())));
    let figures = std::iter::once(loss).chain(quality.figures()).map(|figure| (figure as f32).to_string());
    columns.extend(Quality::names(steps.is_some()).iter().copied().zip(figures));
    let (names, figures): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
    let table = format!("{}\n{}\n", names.join(","), figures.join(","));
    let mut config = config.clone().settled()?;
    let source = match &wanted.source {
        Source::Judge(dir) => inputs::hash(inputs::FOLDER, dir)?.map(|hash| ("judge", hash)),
        Source::File(path) => inputs::hash("pairs", path)?.map(|hash| ("pairs", hash)),
        _ => None,
    };
    config.inputs.extend(source.map(|(name, hash)| (name.to_string(), hash)));
    if let Source::Steps(labelling) = &wanted.source {
        let of_run = config.reward_model.get_or_insert_default();
        of_run.supervision = Supervision::Process;
        (of_run.labels, of_run.rollouts, of_run.success) = (labelling.labels, labelling.rollouts, labelling.success.clone());
    }
    Ok((write_policy(dir, name, &config, &policy.save(), &table, Some(&examples.save()))?, learnt))
}
