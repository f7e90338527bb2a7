//! `gradus explain`: says in words what looks sick in a run.

mod causes;
mod record;
mod symptoms;

use std::path::PathBuf;

use clap::Args;
use gradus::config::effect::predicts;
use gradus::envs::text::Split;
use gradus::envs::{EnvError, EnvSpec, Space};
use gradus::evaluate::levels::Levels;
use gradus::evaluate::play::play;
use gradus::evaluate::{Evaluation, evaluate};
use gradus::nets::{ActionRows, Behaviour, Choice, Inspection};
use gradus::saved::load_behaviour;
use gradus::{Error, Mode, program_name};

use crate::end::{EPISODES, SEED, in_words, verdict};
use crate::output::{say, say_wrapped};
use record::{Evaluated, Record};

#[derive(Args)]
pub(crate) struct Explain {
    /// Run folder.
    dir: PathBuf,
}

/// Returns how much a policy's decisions in an episode differ from those that it would make without remembering what came before: the mean
/// distance of the probabilities of its actions (the share of a random action that would be another one), or else the mean difference of its
/// continuous actions or of its action values, as a share of their range. `None` if it cannot be looked into, and without a second step.
fn use_of_memory(policy: &mut dyn Behaviour, world: &EnvSpec) -> Option<f64> {
    let played = play(policy, world, SEED).ok()?;
    let seen = played.observations.concat();
    if let space @ Space::Box { .. } = world.env().action_space() {
        let (with, without) = (greedy(policy, &space, &seen, true), greedy(policy, &space, &seen, false));
        let (low, high) =
            with.iter().chain(&without).fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), x| (low.min(*x), high.max(*x)));
        let first = space.width(); // before the first step there is nothing to remember
        let pairs = || with.iter().zip(&without).skip(first);
        let mean = pairs().map(|(a, b)| f64::from((a - b).abs())).sum::<f64>() / pairs().count().max(1) as f64;
        return (with.len() > first && high > low).then(|| mean / f64::from(high - low));
    }
    let (with, without) = (policy.inspect_episode(&seen), policy.inspect(&seen));
    // before the first step there is nothing to remember
    let pairs = || with.iter().zip(&without).skip(1);
    let n = pairs().count().max(1) as f64;
    let distance = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum::<f64>();
    if with.get(1)?.probabilities.len() > 1 {
        return Some(pairs().map(|(a, b)| 0.5 * distance(&a.probabilities, &b.probabilities)).sum::<f64>() / n);
    }
    let values: Vec<f64> = with.iter().chain(&without).filter_map(Inspection::best_value).collect();
    let (low, high) = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(*x), high.max(*x)));
    let difference = pairs().filter_map(|(a, b)| Some((a.best_value()? - b.best_value()?).abs())).sum::<f64>() / n;
    (high > low).then(|| difference / (high - low))
}

/// Returns the greedy continuous actions for observations in order; without `remembers`, each as if it were the first of an episode.
fn greedy(policy: &dyn Behaviour, space: &Space, seen: &[f32], remembers: bool) -> Vec<f32> {
    let (mut actor, mut all) = (policy.actor(), Vec::new());
    for observation in seen.chunks_exact(policy.observation_width()) {
        if !remembers {
            actor.memory().into_iter().for_each(Vec::clear);
        }
        let mut actions = ActionRows::empty(space);
        actor.act(observation, None, Choice::Greedy, &mut actions, &mut [0.0]);
        if let ActionRows::Continuous { rows, .. } = actions {
            all.extend(rows);
        }
    }
    all
}

pub(crate) fn run(arguments: &Explain) -> Result<u8, Error> {
    let (config, world, mut policy) = load_behaviour(&arguments.dir)?;
    let world = world.on_split(Split::Test);
    let evaluated = match evaluate(policy.as_ref(), &world, EPISODES, SEED, Mode::Greedy) {
        // without a time limit, an episode may never end
        Err(Error::Env(EnvError::Endless { .. })) => Evaluated { greedy: None, levels: None },
        result => Evaluated { greedy: Some(result?).filter(|_| !predicts(&config.agent)), levels: Some(Levels::of(&config, &world)?) },
    };
    let remembered = if policy.memory_width() > 0 { use_of_memory(policy.as_mut(), &world) } else { None };
    let record = Record { remembered, ..Record::read(&arguments.dir, config, &world, &evaluated)? };
    let symptoms = record.symptoms();
    let is_random = |(greedy, levels): (&Evaluation, &Levels)| levels.is_random(greedy.mean, greedy.error());
    let has_learned = !evaluated.greedy.as_ref().zip(evaluated.levels.as_ref()).is_some_and(is_random) || record.is_good();
    if symptoms.is_empty() {
        say(if has_learned { "nothing looks sick" } else { "nothing looks sick, but little is learned yet: train for more steps" });
    }
    for symptom in symptoms {
        say_wrapped("", &format!("{}: {}", symptom.name, symptom.seen));
        say_wrapped("    ", &symptom.advice);
        say_wrapped("    ", &format!("see {} guide {}", program_name(), symptom.page));
    }
    if let (Some(greedy), Some(levels)) = (&evaluated.greedy, &evaluated.levels) {
        say_wrapped("", &format!("evaluation, greedy: {}: {}", in_words(greedy), verdict(greedy, levels)));
    }
    if let Some(remark) = record.remark() {
        say_wrapped("", &remark);
    }
    Ok(0)
}
