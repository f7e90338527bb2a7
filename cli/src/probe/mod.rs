//! `gradus probe`: tries an agent in the smallest worlds there are.

mod derivatives;
mod worlds;

use clap::Args;
use gradus::Error;
use gradus::agents::registry as agents;

use crate::arguments::number;
use crate::output::{say, say_wrapped};
use crate::signals::Signals;
use worlds::probe;

#[derive(Args)]
pub(crate) struct Probe {
    /// Agent, such as ppo, or one of your own program.
    agent: String,
    /// Random seed.
    #[arg(long, default_value = "1", allow_hyphen_values = true)]
    seed: String,
    /// A setting as KEY=VALUE, such as ppo.gamma=0.9; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE", allow_hyphen_values = true)]
    settings: Vec<String>,
}

pub(crate) fn run(arguments: &Probe) -> Result<u8, Error> {
    let seed = number("--seed", &arguments.seed, 0)?;
    let change = |config: gradus::Config| crate::train::with_settings(config, &arguments.settings);
    Signals::end_at_once();
    let verdicts = probe(agents::find(&arguments.agent)?.name, seed, &change)?;
    let mut has_failed = false;
    for verdict in verdicts {
        let (word, found) = match &verdict.found {
            Some((found, true)) => ("passes", found.as_str()),
            Some((found, false)) => ("FAILS", found.as_str()),
            None => {
                ("skipped", "no values that can be shown, or none that change: the agent has no critic, or its critic gets no gradient")
            }
        };
        say(format!("{word:<8} {}", verdict.property));
        say_wrapped("         ", found);
        // probes are in the order of what they need: the first failure is the one to look at
        if word == "FAILS" && !has_failed {
            say_wrapped("         ", &format!("look first at {}", verdict.suspect));
            has_failed = true;
        }
    }
    Ok(u8::from(has_failed))
}
