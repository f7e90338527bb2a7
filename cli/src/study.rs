//! `gradus compare`, `gradus sweep` and `gradus tune`: many runs that one file describes.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use gradus::agents::ConfigError;
use gradus::nets::threads;
use gradus::{Error, Show, program_name};
use gradus_compare::{Code, Comparison, Execution, Scheduler, Script, Share, Study, Sweep, Tuning, compare, sweep, tune};

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
    #[command(flatten)]
    sharing: Sharing,
}

#[derive(Args)]
#[command(after_help = SWEEP)]
pub(crate) struct Sweeping {
    /// TOML file of agents with the settings to vary, environments and seeds.
    file: PathBuf,
    #[command(flatten)]
    making: Making,
    #[command(flatten)]
    sharing: Sharing,
}

#[derive(Args)]
#[command(after_help = TUNING)]
pub(crate) struct Tune {
    /// TOML file of an agent with the settings to search, environments and seeds.
    file: PathBuf,
    #[command(flatten)]
    making: Making,
    /// Instead, print a script for a cluster, whose tasks share the runs through the results folder.
    #[arg(long, value_name = "SCHEDULER", value_enum)]
    emit: Option<Cluster>,
    /// Number of tasks of that script.
    #[arg(long, default_value = "8", requires = "emit", allow_hyphen_values = true)]
    tasks: String,
}

/// What the commands of a cluster's tasks end with.
const ONE: &str = " --jobs 1 --quiet";

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

/// A part of the runs, or other machines.
#[derive(Args)]
#[group(multiple = false)]
pub(crate) struct Sharing {
    /// Instead, print a table of all runs with their numbers and their keys, and whether they are made.
    #[arg(long)]
    pub(crate) list: bool,
    /// Make only these runs, by their numbers in the list, such as 7 or 1-5,9, and write no other outputs.
    #[arg(long, value_name = "NUMBERS", allow_hyphen_values = true)]
    task: Option<String>,
    /// Make only part I of N of the runs, from 1, and write no other outputs.
    #[arg(long, value_name = "I/N", allow_hyphen_values = true)]
    shard: Option<String>,
    /// First copy the runs from the results folders of other machines; train nothing.
    #[arg(long, value_name = "DIR", num_args = 1..)]
    pub(crate) merge: Vec<PathBuf>,
    /// Instead, print a script that makes the runs on a cluster.
    #[arg(long, value_name = "SCHEDULER", value_enum)]
    pub(crate) emit: Option<Cluster>,
}

/// A program that starts jobs on many machines.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Cluster {
    /// SLURM: an array job, for sbatch.
    Slurm,
    /// HyperQueue: a script that submits a task array.
    Hq,
    /// Kubernetes: an indexed job, for kubectl apply.
    K8s,
}

impl From<Cluster> for Scheduler {
    fn from(cluster: Cluster) -> Self {
        match cluster {
            Cluster::Slurm => Scheduler::Slurm,
            Cluster::Hq => Scheduler::HyperQueue,
            Cluster::K8s => Scheduler::Kubernetes,
        }
    }
}

impl Sharing {
    /// The part of the runs that is asked for.
    pub(crate) fn share(&self) -> Result<Option<Share>, Error> {
        if let Some(text) = &self.task {
            let expected = "numbers from 1 such as 7 or 1-5,9";
            let number = |text: &str| text.trim().parse::<usize>().ok().filter(|number| *number > 0);
            let mut numbers = Vec::new();
            for part in text.split(',') {
                let (first, last) = part.split_once('-').unwrap_or((part, part));
                match (number(first), number(last)) {
                    (Some(first), Some(last)) if first <= last && last - first < 10_000_000 => numbers.extend(first..=last),
                    _ => return ConfigError::unless(false, "--task", expected, text).map(|()| None).map_err(Error::from),
                }
            }
            return Ok(Some(Share::Tasks(numbers)));
        }
        let Some(text) = &self.shard else { return Ok(None) };
        let numbers = text.split_once('/').and_then(|(part, of)| Some((part.parse::<usize>().ok()?, of.parse::<usize>().ok()?)));
        let numbers = numbers.filter(|(part, of)| (1..=*of).contains(part));
        ConfigError::unless(numbers.is_some(), "--shard", "I/N with I from 1 to N, such as 2/8", text)?;
        Ok(numbers.map(|(part, of)| Share::Shard { part, of }))
    }

    /// Does what is asked for instead of the whole study, if anything. Returns the exit code.
    fn run(&self, study: Study, name: &str, file: &Path, making: &Making) -> Result<Option<u8>, Error> {
        let dir = making.dir(file);
        if self.list {
            study.list(file, &dir, Code::Gradus)?.lines().for_each(say);
            return Ok(Some(0));
        }
        if let Some(cluster) = self.emit {
            making.expect_no_jobs()?;
            let command = on_cluster(&format!("{name} {}", quoted(&file.display().to_string())), &dir);
            let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let runs = study.runs(file)?;
            let script = Script { name: &stem, command: &command, options: ONE, finish: &command, runs, is_shared: false };
            say(script.text(cluster.into()).trim_end());
            return Ok(Some(0));
        }
        if let Some(share) = self.share()? {
            let make = |dir: &Path, execution: Execution, show: &(dyn Fn(&str) + Sync)| {
                study.make(file, dir, &share, execution, show).map(|()| Vec::new())
            };
            return making.run(file, "", make).map(Some);
        }
        if !self.merge.is_empty() {
            let copied = study.merge(file, &dir, &self.merge, Code::Gradus)?;
            making.show(&format!("{copied} runs copied"));
        }
        Ok(None)
    }
}

impl Making {
    /// Returns an error if a number of simultaneous runs is given, which has no effect on a script.
    fn expect_no_jobs(&self) -> Result<(), Error> {
        let expected = "none beside --emit, because each task of the script makes one run at a time";
        Ok(ConfigError::unless(self.jobs.is_none(), "--jobs", expected, self.jobs.as_deref().unwrap_or_default())?)
    }

    /// The results folder.
    fn dir(&self, file: &Path) -> PathBuf {
        self.out.clone().unwrap_or_else(|| Path::new("runs").join(file.file_stem().unwrap_or_default()))
    }

    /// Number of simultaneous runs.
    fn jobs(&self) -> Result<usize, Error> {
        let jobs = self.jobs.as_deref().map(|text| number_within("--jobs", text, 1, 256)).transpose()?;
        Ok(jobs.map_or_else(threads::cores, |jobs| jobs as usize))
    }

    fn show(&self, line: &str) {
        if !self.quiet {
            say(line)
        }
    }

    /// Calls `make` with the folder of the results, the execution and a function that shows a line. Shows the files that it returns.
    fn run(
        &self,
        file: &Path,
        names: &str,
        make: impl FnOnce(&Path, Execution, &(dyn Fn(&str) + Sync)) -> Result<Vec<PathBuf>, Error>,
    ) -> Result<u8, Error> {
        let jobs = self.jobs()?;
        let (dir, show) = (self.dir(file), |line: &str| self.show(line));
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

pub(crate) fn run_comparison(Compare { file, making, sharing }: &Compare) -> Result<u8, Error> {
    making.jobs()?;
    if let Some(code) = sharing.run(Study::Comparison, "compare", file, making)? {
        return Ok(code);
    }
    let comparison = Comparison::read(file)?;
    let names: String = comparison.agents.iter().map(|agent| agent.name.as_str()).collect();
    making.run(file, &names, |dir, execution, show| compare(&comparison, dir, execution, show))
}

pub(crate) fn run_sweep(Sweeping { file, making, sharing }: &Sweeping) -> Result<u8, Error> {
    making.jobs()?;
    if let Some(code) = sharing.run(Study::Sweep, "sweep", file, making)? {
        return Ok(code);
    }
    let study = Sweep::read(file)?;
    making.run(file, &study.comparison.name, |dir, execution, show| {
        show(&format!("{} points, {} runs", study.comparison.agents.len(), study.runs()));
        sweep(&study, dir, execution, show)
    })
}

pub(crate) fn run_tuning(Tune { file, making, emit, tasks }: &Tune) -> Result<u8, Error> {
    making.jobs()?;
    let study = Tuning::read(file)?;
    if let Some(cluster) = *emit {
        making.expect_no_jobs()?;
        let (tasks, dir) = (number_within("--tasks", tasks, 1, 1000)? as usize, making.dir(file));
        let command = on_cluster(&format!("tune {}", quoted(&file.display().to_string())), &dir);
        let script = Script { name: study.name(), command: &command, options: ONE, finish: &command, runs: tasks, is_shared: true };
        say(script.text(cluster.into()).trim_end());
        return Ok(0);
    }
    making.run(file, study.name(), |dir, execution, show| {
        show(&format!("{} trials", study.trials()));
        tune(&study, dir, execution, show)
    })
}

/// Returns the command `what` with the results folder `dir` for a cluster's tasks: with the Python interpreter of this command.
pub(crate) fn on_cluster(what: &str, dir: &Path) -> String {
    let python = gradus::envs::gym::chosen_python().map(|path| format!(" --python {}", quoted(&path.display().to_string())));
    format!("{}{} {what} --out {}", program_name(), python.unwrap_or_default(), quoted(&dir.display().to_string()))
}

/// Returns the command line as it can be typed.
fn command() -> String {
    let words = std::env::args_os().skip(1).map(|word| quoted(&word.to_string_lossy()));
    std::iter::once(program_name().to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}
