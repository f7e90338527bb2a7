//! `gradus compare`, and `gradus plot` for a table of results.

use std::path::{Path, PathBuf};

use clap::Args;
use gradus::nets::threads;
use gradus::{Error, Show, program_name};
use gradus_compare::{Code, Comparison, Execution, compare};

use crate::arguments::number_within;
use crate::output::{complain, quoted, say};
use crate::plot::warn_of_letters;
use crate::signals::Signals;

/// A comparison file, for the help.
const EXAMPLE: &str = "\
Example of a file:
  environments = [\"cartpole\"]
  seeds = 10
  steps = \"100k\"

  [[agents]]
  agent = \"ppo\"

  [[agents]]
  name = \"A2C, slower\"
  agent = \"a2c\"
  settings = { learning_rate = 0.0003 }";

#[derive(Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Compare {
    /// TOML file of agents, environments and seeds.
    file: PathBuf,
    /// Results folder [default: runs/NAME, where NAME is the file's name without its extension]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Number of simultaneous runs, each on one thread; does not affect the results [default: one per core]
    #[arg(long, allow_hyphen_values = true)]
    jobs: Option<String>,
    /// Print only errors.
    #[arg(long)]
    quiet: bool,
}

pub(crate) fn run(arguments: &Compare) -> Result<u8, Error> {
    let jobs = arguments.jobs.as_deref().map(|text| number_within("--jobs", text, 1, 256)).transpose()?;
    let jobs = jobs.map_or_else(threads::cores, |jobs| jobs as usize);
    let comparison = Comparison::read(&arguments.file)?;
    let stem = arguments.file.file_stem().unwrap_or_default();
    let dir = arguments.out.clone().unwrap_or_else(|| Path::new("runs").join(stem));
    let show = |line: &str| {
        if !arguments.quiet {
            say(line)
        }
    };
    let steps = if arguments.quiet { Show::Nothing } else { Show::Progress };
    let (command, signals) = (command(), Signals::handle());
    let execution = Execution { jobs, command: &command, code: Code::Gradus, stop: &signals.stop, show: steps };
    let files = match compare(&comparison, &dir, execution, show) {
        Err(stopped @ Error::Stopped(_)) => {
            complain(format!("{stopped}; continue with: {command}"));
            return Ok(signals.exit_code());
        }
        files => files?,
    };
    files.iter().for_each(|file| show(&file.display().to_string()));
    let pictures: Vec<PathBuf> = files.into_iter().filter(|file| file.extension().is_some_and(|ending| ending == "png")).collect();
    warn_of_letters(&comparison.agents.iter().map(|agent| agent.name.as_str()).collect::<String>(), &pictures);
    Ok(0)
}

/// Returns the command line as it can be typed.
fn command() -> String {
    let words = std::env::args().skip(1).map(|word| quoted(&word));
    std::iter::once(program_name().to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}
