//! `gradus explain`: says in words what looks sick in a run.

use std::path::PathBuf;

use crate::Error;
use crate::explain::Record;
use crate::saved::load_behaviour;
use clap::Args;

use super::{say, say_wrapped};

#[derive(Args)]
pub(super) struct Explain {
    /// Run folder.
    dir: PathBuf,
}

pub(super) fn run(arguments: &Explain) -> Result<u8, Error> {
    let (config, world, _) = load_behaviour(&arguments.dir)?;
    let symptoms = Record::read(&arguments.dir, config, &world)?.symptoms();
    if symptoms.is_empty() {
        say("nothing looks sick");
    }
    for symptom in symptoms {
        say_wrapped("", &format!("{}: {}", symptom.name, symptom.seen));
        say_wrapped("    ", symptom.advice);
        say_wrapped("    ", &format!("see {}", symptom.page));
    }
    Ok(0)
}
