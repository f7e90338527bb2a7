//! `gradus chat`: talks to a trained language model.

use std::io::{self, BufRead, IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;

use clap::Args;
use gradus::Error;
use gradus::evaluate::chat::{Chat, Ended};
use gradus::nets::Sampling;

use crate::arguments::{number, number_within};
use crate::output::{complain, say, written};
use crate::sample::Chosen;

/// Talk to a pretrained language model as a run has trained it.
#[derive(Args)]
pub(crate) struct Talk {
    /// Run folder of a world `chat:PATH?model=MODEL`.
    dir: PathBuf,
    #[command(flatten)]
    chosen: Chosen,
    /// Random seed of the answers.
    #[arg(long, default_value = "1", allow_hyphen_values = true)]
    seed: String,
    /// Most tokens of an answer.
    #[arg(long, default_value = "256", allow_hyphen_values = true)]
    max_new_tokens: String,
    /// Most tokens of the conversation, which the model's own context limits, too.
    #[arg(long, default_value = "2048", allow_hyphen_values = true)]
    context: String,
}

pub(crate) fn run(arguments: &Talk) -> Result<u8, Error> {
    let seed = number("--seed", &arguments.seed, 0)?;
    let most = number_within("--max-new-tokens", &arguments.max_new_tokens, 1, 1 << 16)? as usize;
    let context = number_within("--context", &arguments.context, 2, 1 << 16)? as usize;
    let sampling: Sampling = arguments.chosen.sampling()?;
    let mut chat = Chat::load(&arguments.dir, context, sampling, seed)?;
    let is_terminal = io::stdin().is_terminal();
    if is_terminal {
        say("an empty line ends the conversation; /new begins another");
    }
    let mut lines = io::stdin().lock().lines();
    loop {
        if is_terminal {
            written(write!(io::stdout(), "> ").and_then(|()| io::stdout().flush()));
        }
        let line = match lines.next() {
            Some(line) => line.map_err(|source| Error::Io { action: "read", path: "standard input".into(), source })?,
            None => return Ok(0),
        };
        match line.trim() {
            "" if is_terminal => return Ok(0),
            "" => continue,
            "/new" => chat.restart(),
            text => {
                let ended = chat.say(text, most, &mut |piece| {
                    written(write!(io::stdout(), "{}", gradus::plain(piece)).and_then(|()| io::stdout().flush()));
                    ControlFlow::Continue(())
                });
                match ended {
                    Ok(Ended::Said) => say(""),
                    Ok(Ended::Cut) => say(" ..."),
                    // the conversation is too long, and can be begun again
                    Err(error) if is_terminal => complain(format!("{error}; /new begins another")),
                    Err(error) => return Err(error),
                }
            }
        }
    }
}
