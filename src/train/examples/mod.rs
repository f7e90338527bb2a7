//! What a reward model learns from: completions of a policy, ranked (an outcome reward model) or with labelled steps (a process reward
//! model).

mod file;
mod judge;
mod rankings;
mod steps;

use std::path::Path;

use gradus_agents::groups::Supervision;
use gradus_agents::process_reward::{self, StepQuality};
use gradus_agents::reward_model::{self, Agreement, RewardModelConfig};
use gradus_agents::{AgentError, OptimiserConfig, Report, UpdateContext};
use gradus_agents::{Pair, registry};
use gradus_base::random::{Purpose, Stream, episode_seed};
use gradus_base::tensors::{Tensors, TensorsError, get_u64};
use gradus_envs::text::{Split, TextWorld};
use gradus_envs::{EnvError, EnvSpec};
use gradus_nets::{Behaviour, Policy, Sampling};
use gradus_rollouts::generate;

use crate::config::{Labelling, of_text};
use crate::saved::{EXAMPLES_FILE, check_reward_model, check_vocabulary, examples_file, read_config};
use crate::{Config, Error};
pub(crate) use judge::{Judge, Verifier, judge_in};
use rankings::RankedTexts;
use steps::{LabelledText, STEPS};

/// Number of problems, and number of completions per problem.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Questions {
    pub problems: usize,
    pub completions: usize,
}

/// How completions become examples.
pub(crate) enum How<'a> {
    /// The completions of each problem are ranked by a judge, for an outcome reward model.
    Ranked(&'a mut dyn Judge),
    /// The steps of each completion are labelled, for a process reward model.
    Labelled(&'a Labelling),
}

impl<'a> How<'a> {
    /// Labels with a labelling, else rankings by `judge`.
    pub fn of(labelling: Option<&'a Labelling>, judge: &'a mut dyn Judge) -> Self {
        labelling.map_or_else(|| How::Ranked(judge), How::Labelled)
    }
}

/// Completions from which a reward model learns.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Examples {
    Rankings(Vec<RankedTexts>),
    Steps(Vec<LabelledText>),
}

impl Examples {
    /// Returns no examples, for a process reward model if `is_process`.
    pub fn none(is_process: bool) -> Self {
        if is_process { Self::Steps(Vec::new()) } else { Self::Rankings(Vec::new()) }
    }

    /// Samples completions from `policy`, and ranks or labels them.
    pub fn draw(
        policy: &dyn Behaviour,
        world: &TextWorld,
        split: Split,
        questions: Questions,
        how: How<'_>,
        seed: u64,
    ) -> Result<Self, EnvError> {
        Ok(match how {
            How::Ranked(judge) => Self::Rankings(rankings::draw(policy, world, split, questions, judge, seed)?),
            How::Labelled(labelling) => Self::Steps(steps::draw(policy, world, split, questions, labelling, seed)?),
        })
    }

    /// Reads rankings from a file: those for training, and those for the evaluation.
    pub fn read(path: &Path, world: &TextWorld) -> Result<[Self; 2], EnvError> {
        file::read(path, world).map(|parts| parts.map(Self::Rankings))
    }

    /// Returns the share of the pairs of the rankings in which `judge` agrees with the order; NaN without pairs or for labelled steps.
    pub fn agreement(&self, judge: &mut dyn Judge) -> Result<f64, EnvError> {
        match self {
            Self::Rankings(rankings) => rankings::agreement(rankings, judge),
            Self::Steps(_) => Ok(f64::NAN),
        }
    }

    /// Number of rankings or of labelled completions.
    pub fn len(&self) -> usize {
        match self {
            Self::Rankings(rankings) => rankings.len(),
            Self::Steps(texts) => texts.len(),
        }
    }

    /// Number of labelled steps; `None` for rankings.
    pub fn steps(&self) -> Option<usize> {
        match self {
            Self::Rankings(_) => None,
            Self::Steps(texts) => Some(texts.iter().map(|text| text.steps.len()).sum()),
        }
    }

    /// Returns what a reward model needs, if these examples lack it.
    pub fn lack(&self) -> Option<&'static str> {
        match self {
            Self::Rankings(rankings) => rankings.is_empty().then_some("different rewards for at least one training and one test problem"),
            Self::Steps(texts) if texts.iter().all(|text| text.steps.len() < 2) => {
                Some("two steps or more in at least one of them, because a process reward model scores steps")
            }
            Self::Steps(_) => {
                let [low, high] = self.labels();
                (low == high).then_some("steps with different labels for training and for evaluation")
            }
        }
    }

    /// Returns the lowest and the highest label of a step.
    fn labels(&self) -> [f32; 2] {
        let Self::Steps(texts) = self else { return [0.0; 2] };
        let labels = texts.iter().flat_map(|text| &text.steps).map(|step| step.label);
        labels.fold([1.0, 0.0], |[low, high]: [f32; 2], label| [low.min(label), high.max(label)])
    }

    /// Returns a description of the examples for messages, such as `12 rankings`.
    pub fn describe(&self) -> String {
        match self {
            Self::Rankings(rankings) => format!("{} rankings", rankings.len()),
            Self::Steps(texts) => {
                let [low, high] = self.labels();
                let steps = self.steps().unwrap_or_default();
                format!("{steps} steps of {} completions with labels from {low} to {high}", texts.len())
            }
        }
    }

    /// Trains `model` on these examples and a random share of `old`, and returns the report.
    pub fn train(
        &self,
        old: &Examples,
        model: &mut dyn Policy,
        context: usize,
        config: &RewardModelConfig,
        optimiser: &OptimiserConfig,
        update: UpdateContext,
    ) -> Result<Report, AgentError> {
        let mut stream = Stream::new(update.seed, Purpose::Shuffle, u64::MAX >> 8);
        match (self, old) {
            (Self::Rankings(new), Self::Rankings(old)) => {
                let (new, old) = (rankings::preferences(new, context), rankings::preferences(old, context));
                reward_model::train(model, &new.with_replay(&old, config.replay, &mut stream), config, optimiser, update)
            }
            (Self::Steps(new), Self::Steps(old)) => {
                let replayed = steps::share(old, config.replay, &mut stream);
                let all = steps::labelled(new.iter().chain(replayed), context);
                process_reward::train(model, &all, config, optimiser, update)
            }
            _ => unreachable!("a reward model keeps its kind"),
        }
    }

    /// Measures how well `model` agrees with these examples.
    pub fn quality(&self, model: &mut dyn Policy, context: usize) -> Quality {
        match self {
            Self::Rankings(held_out) => Quality::Rankings(reward_model::evaluate(model, &rankings::preferences(held_out, context))),
            Self::Steps(held_out) => Quality::Steps(Box::new(process_reward::evaluate(model, &steps::labelled(held_out, context)))),
        }
    }

    /// Appends examples of the same kind.
    pub fn extend(&mut self, more: Examples) {
        match (self, more) {
            (Self::Rankings(all), Self::Rankings(more)) => all.extend(more),
            (Self::Steps(all), Self::Steps(more)) => all.extend(more),
            _ => unreachable!("a reward model keeps its kind"),
        }
    }

    /// Encodes the examples as a tensor.
    pub fn save(&self) -> Tensors {
        match self {
            Self::Rankings(rankings) => rankings::save(rankings),
            Self::Steps(texts) => Tensors::from([(STEPS.into(), steps::save(texts))]),
        }
    }

    /// Decodes the examples that [`save`](Examples::save) encoded, as texts of `world`.
    pub fn load(is_process: bool, tensors: &Tensors, world: &TextWorld) -> Result<Self, TensorsError> {
        let (vocabulary, context) = (world.task.vocabulary().len() as u32, world.space().width() - 1);
        Ok(match is_process {
            true => Self::Steps(steps::load(get_u64(tensors, STEPS)?, vocabulary, context)?),
            false => Self::Rankings(rankings::load(tensors, vocabulary, context)?),
        })
    }
}

/// Returns the pairs of completions that a setting of the agent names: in a file of preferences, or in the rankings of a folder of `gradus
/// reward-model`. Returns none if the agent has no such setting, or if it is empty.
pub(crate) fn pairs_of(config: &Config, world: &EnvSpec) -> Result<Vec<Pair>, Error> {
    let setting = registry::find(config.algorithm.name()).ok().and_then(|entry| entry.pairs);
    let settings = config.algorithm.to_table();
    let Some((setting, path)) = setting.and_then(|name| Some((name, settings.get(name)?.as_str()?))).filter(|(_, path)| !path.is_empty())
    else {
        return Ok(Vec::new());
    };
    let (key, path) = (format!("{}.{setting}", config.agent), Path::new(path));
    let text = of_text(&key, world)?;
    if !path.is_dir() {
        let [training, _] = file::read(path, text)?;
        return file::pairs(&training);
    }
    let problem = |expected: &str, got: &str| Error::folder(path, format!("expected {expected}, got {got}"));
    let (file, tensors) =
        examples_file(path)?.ok_or_else(|| problem(&format!("a folder of `{} reward-model`", crate::program_name()), "none"))?;
    check_reward_model(path, Supervision::Outcome)?;
    check_vocabulary(path, &read_config(path)?, world)?;
    let rankings = rankings::load(&tensors, text.task.vocabulary().len() as u32, text.space().width() - 1);
    let rankings = rankings.map_err(|source| Error::Tensors { path: file, source })?;
    if rankings.iter().any(|ranking| ranking.prompt.is_empty()) {
        return Err(problem(&format!("a {EXAMPLES_FILE} that says where prompts end"), "one of an older version"));
    }
    let fits =
        |ranking: &RankedTexts| text.check_prompt(&ranking.prompt).is_ok() && ranking.completions().all(|it| file::is_whole(it, text));
    if !rankings.iter().all(fits) {
        return Err(problem(&format!("completions of {}", world.name), "others, such as ones that are too long or have not ended"));
    }
    file::pairs(&rankings)
}

/// How well a reward model agrees with held-out examples.
#[derive(Clone, Debug, PartialEq)]
pub enum Quality {
    /// Of scores with rankings.
    Rankings(Agreement),
    /// Of probabilities with the verifier's labels of steps.
    Steps(Box<StepQuality>),
}

impl Quality {
    /// Names of the figures of a model's training and of its quality.
    pub fn names(is_process: bool) -> &'static [&'static str] {
        match is_process {
            true => &[
                "reward_model/loss",
                "reward_model/accuracy",
                "reward_model/first_error",
                "reward_model/accepted",
                "reward_model/calibration_error",
                "reward_model/brier",
            ],
            false => &["reward_model/loss", "reward_model/accuracy", "reward_model/margin"],
        }
    }

    /// Returns the figures after the loss, in the order of [`names`](Quality::names).
    pub fn figures(&self) -> Vec<f64> {
        match self {
            Self::Rankings(agreement) => vec![agreement.accuracy(), agreement.margin()],
            Self::Steps(quality) => {
                vec![quality.accuracy(), quality.first_error(), quality.accepted(), quality.calibration_error(), quality.brier()]
            }
        }
    }

    /// Returns the fraction of the pairs, or of the steps, in which the model agrees with the verifier.
    pub fn accuracy(&self) -> f64 {
        self.figures()[0]
    }
}

/// Completions of problems of the split, sampled from a policy: for each completion its prompt and its tokens, EOS included. Completions
/// of one problem follow each other.
struct Completions {
    prompts: Vec<Vec<u32>>,
    tokens: Vec<Vec<u32>>,
}

impl Completions {
    fn sample(policy: &dyn Behaviour, world: &TextWorld, split: Split, questions: Questions, seed: u64) -> Result<Self, EnvError> {
        let Questions { problems, completions } = questions;
        let problem = |i: usize| {
            let seed = episode_seed(seed, 0, i as u64);
            world.task.problem(split, &mut Stream::new(seed, Purpose::Environment, 0)).prompt
        };
        let prompts: Vec<Vec<u32>> = (0..problems).flat_map(|i| vec![problem(i); completions]).collect();
        prompts.iter().try_for_each(|prompt| world.check_prompt(prompt))?;
        let stream = |i: usize| Stream::new(seed, Purpose::Action, i as u64);
        let tokens = generate(policy, world, &prompts, &stream, &Sampling::default());
        Ok(Self { prompts, tokens })
    }

    fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Prompt and tokens of completion `i`.
    fn get(&self, i: usize) -> (&[u32], &[u32]) {
        (&self.prompts[i], &self.tokens[i])
    }

    /// Completion `i` after its prompt.
    fn text(&self, i: usize) -> Vec<u32> {
        [&self.prompts[i][..], &self.tokens[i]].concat()
    }
}

#[cfg(test)]
mod tests;
