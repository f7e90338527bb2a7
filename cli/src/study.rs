//! `gradus compare`, `gradus sweep` and `gradus tune`: many runs that one file describes.

use std::path::{Path, PathBuf};

use clap::Args;
use gradus::nets::threads;
use gradus::{Error, Show, program_name};
use gradus_compare::{Code, Comparison, Execution, Sweep, Tuning, compare, sweep, tune};

use crate::arguments::number_within;
use crate::output::{complain, quoted, say};
use crate::plot::warn_of_letters;
use crate::signals::Signals;

/// A comparison file, for the help.
const COMPARISON: &str = "\
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

/// The file of a sweep, for the help.
const SWEEP: &str = "\
Example of a file:
  environments = [\"cartpole\"]
  seeds = 10
  steps = \"50k\"
  design = \"grid\"     # or one-at-a-time, or random with samples = 100

  [[agents]]
  agent = \"ppo\"

  [agents.space]
  \"ppo.clip\" = [0.1, 0.2, 0.4]
  learning_rate = { log_uniform = [1e-4, 1e-2], points = 5 }";

/// The file of a tuning, for the help.
const TUNING: &str = "\
Example of a file:
  environments = [\"cartpole\"]
  steps = \"50k\"
  seeds = 4           # for the search; the best are trained again with 20 others
  trials = 64

  [[agents]]
  agent = \"ppo\"

  [agents.space]
  \"ppo.clip\" = { uniform = [0.05, 0.5] }
  learning_rate = { log_uniform = [1e-4, 1e-2] }";

#[derive(Args)]
#[command(after_help = COMPARISON)]
pub(crate) struct Compare {
    /// TOML file of agents, environments and seeds.
    file: PathBuf,
    #[command(flatten)]
    making: Making,
}

#[derive(Args)]
#[command(after_help = SWEEP)]
pub(crate) struct Sweeping {
    /// TOML file of agents with the settings to vary, environments and seeds.
    file: PathBuf,
    #[command(flatten)]
    making: Making,
}

#[derive(Args)]
#[command(after_help = TUNING)]
pub(crate) struct Tune {
    /// TOML file of an agent with the settings to search, environments and seeds.
    file: PathBuf,
    #[command(flatten)]
    making: Making,
}

/// How the runs of a file are made.
#[derive(Args)]
struct Making {
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

impl Making {
    /// Calls `make` with the folder of the results, the execution and a function that shows a line. Shows the files that it returns.
    fn run(
        &self,
        file: &Path,
        names: &str,
        make: impl FnOnce(&Path, Execution, &(dyn Fn(&str) + Sync)) -> Result<Vec<PathBuf>, Error>,
    ) -> Result<u8, Error> {
        let jobs = self.jobs.as_deref().map(|text| number_within("--jobs", text, 1, 256)).transpose()?;
        let jobs = jobs.map_or_else(threads::cores, |jobs| jobs as usize);
        let dir = self.out.clone().unwrap_or_else(|| Path::new("runs").join(file.file_stem().unwrap_or_default()));
        let show = |line: &str| {
            if !self.quiet {
                say(line)
            }
        };
        let steps = if self.quiet { Show::Nothing } else { Show::Progress };
        let (command, signals) = (command(), Signals::handle());
        let execution = Execution { jobs, command: &command, code: Code::Gradus, stop: &signals.stop, show: steps };
        let files = match make(&dir, execution, &show) {
            Err(stopped @ Error::Stopped(_)) => {
                complain(format!("{stopped}; continue with: {command}"));
                return Ok(signals.exit_code());
            }
            files => files?,
        };
        files.iter().for_each(|file| show(&file.display().to_string()));
        let pictures: Vec<PathBuf> = files.into_iter().filter(|file| file.extension().is_some_and(|ending| ending == "png")).collect();
        warn_of_letters(names, &pictures);
        Ok(0)
    }
}

pub(crate) fn run_comparison(Compare { file, making }: &Compare) -> Result<u8, Error> {
    making.jobs.as_deref().map(|text| number_within("--jobs", text, 1, 256)).transpose()?;
    let comparison = Comparison::read(file)?;
    let names: String = comparison.agents.iter().map(|agent| agent.name.as_str()).collect();
    making.run(file, &names, |dir, execution, show| compare(&comparison, dir, execution, show))
}

pub(crate) fn run_sweep(Sweeping { file, making }: &Sweeping) -> Result<u8, Error> {
    making.jobs.as_deref().map(|text| number_within("--jobs", text, 1, 256)).transpose()?;
    let study = Sweep::read(file)?;
    making.run(file, &study.comparison.name, |dir, execution, show| {
        show(&format!("{} points, {} runs", study.comparison.agents.len(), study.runs()));
        sweep(&study, dir, execution, show)
    })
}

pub(crate) fn run_tuning(Tune { file, making }: &Tune) -> Result<u8, Error> {
    making.jobs.as_deref().map(|text| number_within("--jobs", text, 1, 256)).transpose()?;
    let study = Tuning::read(file)?;
    making.run(file, study.name(), |dir, execution, show| {
        show(&format!("{} trials", study.trials()));
        tune(&study, dir, execution, show)
    })
}

/// Returns the command line as it can be typed.
fn command() -> String {
    let words = std::env::args().skip(1).map(|word| quoted(&word));
    std::iter::once(program_name().to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}
