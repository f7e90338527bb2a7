//! `gradus explain`: says in words what looks sick in a run.

use std::path::PathBuf;

use crate::config::effect::predicts;
use crate::envs::EnvError;
use crate::envs::text::Split;
use crate::evaluate::levels::Levels;
use crate::evaluate::{Evaluation, evaluate};
use crate::explain::{Evaluated, Record};
use crate::saved::load_behaviour;
use crate::{Error, Mode, program_name};
use clap::Args;

use super::end::{EPISODES, SEED, in_words, verdict};
use super::{say, say_wrapped};

#[derive(Args)]
pub(super) struct Explain {
    /// Run folder.
    dir: PathBuf,
}

pub(super) fn run(arguments: &Explain) -> Result<u8, Error> {
    let (config, world, policy) = load_behaviour(&arguments.dir)?;
    let world = world.on_split(Split::Test);
    let evaluated = match evaluate(policy.as_ref(), &world, EPISODES, SEED, Mode::Greedy) {
        // without a time limit, an episode may never end
        Err(Error::Env(EnvError::Endless { .. })) => Evaluated { greedy: None, levels: None },
        result => Evaluated { greedy: Some(result?).filter(|_| !predicts(&config.agent)), levels: Some(Levels::of(&config, &world)?) },
    };
    let record = Record::read(&arguments.dir, config, &world, &evaluated)?;
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
