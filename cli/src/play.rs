//! `gradus play`: plays an episode in the terminal, writes it as a GIF, or records it.

use std::io::IsTerminal;
use std::path::PathBuf;

use clap::Args;
use gradus::agents::ConfigError;
use gradus::config::{Atari, Network};
use gradus::envs::random::episode_seed;
use gradus::envs::text::Split;
use gradus::evaluate::Mode;
use gradus::evaluate::features::show_features;
use gradus::evaluate::play::{Played, play_as, steps_per_second, write_played};
use gradus::evaluate::record::write_episode;
use gradus::evaluate::strip::show_memory;
use gradus::evaluate::trace::RecordedAction;
use gradus::nets::{Behaviour, Inspection};
use gradus::numbers::short;
use gradus::saved::load_behaviour;
use gradus::{Error, draw, plain};

use crate::arguments::number;
use crate::folder::expect_policy;
use crate::output::{say, written};

#[derive(Args)]
pub(crate) struct Play {
    /// Run folder.
    dir: PathBuf,
    /// Random seed of the episode.
    #[arg(long, default_value = "1", allow_hyphen_values = true)]
    seed: String,
    /// Sample actions as in training, instead of taking the most probable ones.
    #[arg(long)]
    sampled: bool,
    /// Write an animated GIF instead of playing in the terminal.
    #[arg(long, value_name = "FILE")]
    gif: Option<PathBuf>,
    /// Write only the picture after this number of steps, as a GIF of one frame.
    #[arg(long, value_name = "N", requires = "gif")]
    step: Option<usize>,
    /// Show the value, the action values or the probabilities of the actions at every step, slowly. If the output is no terminal, a line for every step.
    #[arg(long, conflicts_with = "gif")]
    values: bool,
    /// Show beside each frame what the filters of the first convolutional layer answer to, of a policy that sees images.
    #[arg(long)]
    features: bool,
    /// Also write the episode as a line of JSON, which `gradus check ENV --trace FILE` replays, to a file whose name ends in .json or .jsonl.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
}

/// Returns what the policy computes before each step, in words, with the action that it takes.
fn notes(policy: &mut dyn Behaviour, played: &Played) -> Result<Vec<String>, Error> {
    let looks = policy.inspect_episode(&played.observations.concat());
    if looks.is_empty() {
        let (what, expected) = ("--values".into(), "a policy whose values or probabilities can be shown".into());
        return Err(Error::Parse { what, expected, got: "one of texts, or one without them".into() });
    }
    let list = |numbers: &[f64]| {
        let shown = numbers.iter().take(MOST_ACTIONS).map(|x| format!("{x:.2}")).collect::<Vec<_>>().join(" ");
        if numbers.len() > MOST_ACTIONS { shown + " ..." } else { shown }
    };
    let note = |(look, action): (&Inspection, &RecordedAction)| {
        let mut parts: Vec<String> = look.value.map(|value| format!("value {value:.2}")).into_iter().collect();
        for (name, numbers) in [("action values", &look.action_values), ("probabilities", &look.probabilities)] {
            parts.extend((!numbers.is_empty()).then(|| format!("{name} {}", list(numbers))));
        }
        parts.extend(match action {
            RecordedAction::Discrete(action) => Some(format!("action {action}")),
            RecordedAction::Continuous(_) => None,
        });
        parts.join("; ")
    };
    Ok(looks.iter().zip(&played.actions).map(note).collect())
}

/// Actions whose numbers are shown.
const MOST_ACTIONS: usize = 8;

pub(crate) fn run(arguments: &Play) -> Result<u8, Error> {
    // a record takes the place of what is there, which must not be a file of a run
    if let Some(path) = arguments.record.as_ref().filter(|path| path.is_file() || !path.exists()) {
        let is_json = path.extension().is_some_and(|ending| ending == "json" || ending == "jsonl");
        let expected = "a file name that ends in .json or .jsonl".into();
        let wrong = || Error::Parse { what: "--record".into(), expected, got: path.display().to_string() };
        is_json.then_some(()).ok_or_else(wrong)?;
    }
    expect_policy(&arguments.dir)?;
    let (config, world, mut policy) = load_behaviour(&arguments.dir)?;
    let is_plain = arguments.record.is_none() || config.wrappers.atari == Atari::Off;
    let expected = "off: an episode that is recorded has the actions of the environment, and not those of Atari's preprocessing";
    ConfigError::unless(is_plain, "--record: wrappers.atari", expected, format!("{:?}", config.wrappers.atari).to_lowercase())?;
    // an episode seed that no training or evaluation with the same `--seed` uses
    let seed = episode_seed(number("--seed", &arguments.seed, 0)?, u64::from(u32::MAX), 0);
    let world = world.on_split(Split::Test);
    let mode = if arguments.sampled { Mode::Sampled } else { Mode::Greedy };
    let mut played = play_as(policy.as_ref(), &world, seed, mode)?;
    if let (Network::Perceptron(network), false) = (&config.network, played.memories.is_empty()) {
        show_memory(&mut played, network.cell_width);
    }
    if let Some(step) = arguments.step {
        let last = played.steps;
        played.frames.retain(|frame| frame.step == step);
        if played.frames.is_empty() && step > last {
            let expected = format!("0 to {last}, the steps of this episode");
            return Err(Error::Parse { what: "--step".into(), expected, got: step.to_string() });
        }
    }
    if arguments.features {
        let wrong = |(expected, got): (&str, &str)| Error::Parse { what: "--features".into(), expected: expected.into(), got: got.into() };
        show_features(policy.as_mut(), &mut played).map_err(wrong)?;
    }
    let notes = if arguments.values { notes(policy.as_mut(), &played)? } else { Vec::new() };
    if let Some(path) = &arguments.gif {
        write_played(&played, &world, path)?;
    }
    if let Some(path) = &arguments.record {
        // records the unwrapped environment; the policy acts in the wrapped one
        write_episode(&config.plain_world()?.on_split(Split::Test), seed, &played.actions, path)?;
    }
    if arguments.gif.is_none() {
        // each text extends the one before it, so the last one is enough
        let shown = |text: &String| text.lines().map(plain).collect::<Vec<_>>().join("\n");
        played.texts.last().map(shown).into_iter().for_each(say);
        if !std::io::stdout().is_terminal() {
            notes.iter().enumerate().for_each(|(step, note)| say(format!("step {step}: {note}")));
        }
        written(draw::play_with_notes(&played.frames, &notes, steps_per_second(&world)));
    }
    say(format!("{} on {}: return {} in {} steps", config.agent, world.title(), short(played.episode_return), played.steps));
    for path in arguments.gif.iter().chain(&arguments.record) {
        say(path.display().to_string());
    }
    Ok(0)
}
