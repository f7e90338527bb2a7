//! `gradus explain`: says in words what looks sick in a run.

mod causes;
mod record;
mod symptoms;

use std::path::PathBuf;

use clap::Args;
use gradus::config::effect::predicts;
use gradus::envs::EnvError;
use gradus::envs::text::Split;
use gradus::evaluate::levels::Levels;
use gradus::evaluate::{Evaluation, evaluate};
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

pub(crate) fn run(arguments: &Explain) -> Result<u8, Error> {
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
