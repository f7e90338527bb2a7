//! `gradus play`: plays an episode in the terminal, writes it as a GIF, or records it.

use std::path::PathBuf;

use crate::envs::random::episode_seed;
use crate::envs::text::Split;
use crate::evaluate::play::{play, write_gif};
use crate::evaluate::record::write_episode;
use crate::numbers::short;
use crate::saved::load_behaviour;
use crate::{Error, draw};
use clap::Args;

use super::{number, say, written};

#[derive(Args)]
pub(super) struct Play {
    /// Run folder.
    dir: PathBuf,
    /// Random seed of the episode.
    #[arg(long, default_value = "1", allow_hyphen_values = true)]
    seed: String,
    /// Write an animated GIF instead of playing in the terminal.
    #[arg(long, value_name = "FILE")]
    gif: Option<PathBuf>,
    /// Also write the episode as a line of JSON, which `gradus check ENV --trace FILE` replays.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
}

pub(super) fn run(arguments: &Play) -> Result<u8, Error> {
    let (config, world, policy) = load_behaviour(&arguments.dir)?;
    // an episode seed that no training or evaluation with the same `--seed` uses
    let seed = episode_seed(number("--seed", &arguments.seed, 0)?, u64::from(u32::MAX), 0);
    let world = world.on_split(Split::Test);
    let played = match &arguments.gif {
        Some(path) => write_gif(policy.as_ref(), &world, seed, path)?,
        None => play(policy.as_ref(), &world, seed)?,
    };
    if let Some(path) = &arguments.record {
        // records the unwrapped environment; the policy acts in the wrapped one
        write_episode(&config.plain_world()?.on_split(Split::Test), seed, &played.actions, path)?;
    }
    if arguments.gif.is_none() {
        // each text extends the one before it, so the last one is enough
        played.texts.last().into_iter().for_each(say);
        written(draw::play_in_terminal(&played.frames));
    }
    say(format!("{} on {}: return {} in {} steps", config.agent, world.title(), short(played.episode_return), played.steps));
    for path in arguments.gif.iter().chain(&arguments.record) {
        say(path.display().to_string());
    }
    Ok(0)
}
