//! Comparisons of agents x environments x seeds, described in one file and reported with confidence intervals and tests.
//!
//! [`Comparison::read`] reads the file. [`compare`] makes the missing runs and writes tables, figures and a report. [`plot_results`] draws
//! the figures again from the table of results, without the comparison file, in any [`Format`].
//!
//! ```toml
//! name = "cartpole"                       # title of the report
//! environments = ["cartpole"]
//! seeds = 10                              # the seeds 1 to 10; or a list of seeds
//! steps = "500k"                          # or one number per environment: { cartpole = "500k", pendulum = "1m" }
//! evaluations = 20                        # evenly spaced during training, and one more before it
//! evaluation_episodes = 20
//! statistic = "iqm"                       # statistic over runs that the curves show: iqm or mean
//! score = { cartpole = [0, 500] }         # returns whose normalised scores are 0 and 1
//! fall = { cartpole = 300 }               # return below which a solved run counts as fallen [default: a score of 0.6]
//! x = "linear"                            # axis of steps of the curves: linear or log
//! finding = "PPO needs the fewest steps"  # title of the figure of the curves [default: Return over environment steps]
//! task_bootstrap = false                  # whether intervals over all environments also resample the environments
//!
//! [[agents]]
//! name = "PPO (clip)"
//! agent = "ppo"
//! preset = "cleanrl"                      # [default: `default` if it exists, else the default settings]
//! steps = "100k"                          # of this agent alone; also per environment [default: the `steps` above]
//! settings = { "ppo.clip" = 0.2 }         # applied after the preset, as with `--set`
//! only = ["cartpole"]                     # the environments of this agent [default: all]
//! environments.cartpole = { preset = "zoo", settings = { envs = 4 } }   # another preset and more settings, in one environment
//! ```
//!
//! A preset's number of steps and its early stopping are ignored. All agents are evaluated at the same intervals, so the steps of an agent
//! must be a multiple of `steps` / `evaluations`. If agents have different numbers of steps, tables and tests compare them after the
//! fewest, a further table has the returns after each agent's own steps, and the curves show all evaluations. An evaluation takes place
//! after the first rollout that reaches its planned step. `results.csv` has the actual number of steps. All evaluations of a run play the
//! same episodes, which the run's training never sees.
//!
//! Output, in one folder:
//!
//! | file | contents |
//! | --- | --- |
//! | `comparison.toml` | the comparison file |
//! | `runs/KEY.csv`, `runs/KEY.timing`; on text tasks also `runs/KEY.problems` | one finished run; KEY is a hash of all its settings, so that only changed runs are made again |
//! | `policies/AGENT-ENVIRONMENT-SEED.safetensors` | the final policy of each run, for `gradus play`, `eval` and `sample` |
//! | `results.csv` | one row per evaluation of each run |
//! | `timing.csv` | the seconds of training before each evaluation; a separate file, because they are not reproducible |
//! | `problems.csv` | on text tasks, the return of every problem in the last evaluation, one row per run |
//! | `summary.csv`, `summary.md`, `summary.tex` | as data, in Markdown, and in LaTeX with the package booktabs: aggregates with 95 % intervals, tests for pairs of agents, the steps at which runs were solved, the runs that fell afterwards |
//! | `*.svg`, `*.png` | the figures, also as PDF if the folder has PDFs; `episodes` shows moments of an episode of every agent |
//! | `report.html` | everything on one page |
//! | `SHA256SUMS` | hashes of `comparison.toml` and the tables, for [`verify`] and the command `sha256sum -c` |
//!
//! A run is kept if its settings, the code that determines numbers ([`Code`]) and the contents of the files that it reads (a map or problems of the
//! environment, `init`, `dpo.pairs`, `reward_model.folder`) are unchanged. Otherwise it is made again, and its line of output gives the reason.
//!
//! A folder belongs to one study. Two comparison files belong to the same study if they have the same name and at least one environment in
//! common. The files of another study or of a training run are not overwritten. The outputs of the same study are replaced, and outputs
//! that the study no longer has are removed. The study's runs are kept.
//!
//! Every run has one thread and is independent of the others, so numbers do not depend on how many runs are made at the same time. Except
//! for the report, the files with times, their hash and the figures over seconds, all files are reproducible byte for byte.

mod analysis;
mod claim;
mod code;
mod draft;
mod emit;
mod figures;
mod file;
mod folder;
mod machine;
mod policies;
mod report;
mod run;
mod runner;
pub mod runs;
mod share;
mod summary;
mod sweep;
mod tune;
mod verify;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use gradus_base::threads;

pub use code::Code;
pub use draft::Draft;
pub use emit::{Scheduler, Script};
pub use file::{Comparison, Contender, Statistic};
pub use gradus_statistics as statistics;
pub use share::{Share, Study};
pub use sweep::{Design, Measure, Sweep, sweep};
pub use tune::{Tuning, tune};
pub use verify::{Checked, Verdict, verify};

use analysis::{Analysis, Parts, Wanted};
use code::Inputs;
use figures::Named;
use folder::COMPARISONS;
use gradus::figure::{self, Format};
use gradus::files::{self, exists, read_named_to_string, read_to_string, replace};
use gradus::run::with_steps;
use gradus::saved::COMPARISON;
use gradus::{Config, Error, Show};
use gradus_statistics::csv::{push_row, quoted};
use gradus_statistics::table::Table;
use report::Facts;
use run::{Job, Outcome};
use runner::{Finished, Lines, Making};

const RESULTS: &str = "results.csv";
const TIMING: &str = "timing.csv";
const PROBLEMS: &str = "problems.csv";

/// How a comparison is carried out. No field affects the numbers.
#[derive(Clone, Copy, Debug)]
pub struct Execution<'a> {
    /// Number of simultaneous runs, each on one thread.
    pub jobs: usize,
    /// The command line shown in the report.
    pub command: &'a str,
    /// How to identify the code that determines the numbers.
    pub code: Code,
    /// When this becomes true, every run finishes its current iteration and writes a checkpoint, from which the next comparison in the
    /// same folder continues it. No outputs are written, and the result is [`Error::Stopped`].
    pub stop: &'a AtomicBool,
    /// Whether the analysis names its steps on a terminal.
    pub show: Show,
}

/// Makes the missing runs and writes all outputs into the folder `dir`. Calls `say` with a line for each run and a last line for all runs.
/// Returns the paths of the main output files.
///
/// If a run fails, the other runs are still made and kept, and the first error is returned.
pub fn compare(comparison: &Comparison, dir: &Path, execution: Execution, say: impl Fn(&str) + Sync) -> Result<Vec<PathBuf>, Error> {
    let (files, failure) = compare_what_runs(comparison, dir, execution, say)?;
    failure.map_or(Ok(files), |failure| Err(Error::folder(&dir.join("runs"), failure.text)))
}

/// What failed in a comparison.
pub(crate) struct Failure {
    /// What failed, and whose results are left out.
    pub(crate) text: String,
    /// Whether it says nothing about a run's settings: a file that cannot be written, or an environment that fails.
    pub(crate) is_fault: bool,
}

/// As [`compare`], but a run that fails is no error: also returns what failed, and whose results are left out.
pub(crate) fn compare_what_runs(
    comparison: &Comparison,
    dir: &Path,
    execution: Execution,
    say: impl Fn(&str) + Sync,
) -> Result<(Vec<PathBuf>, Option<Failure>), Error> {
    let Execution { jobs, command, show, .. } = execution;
    let runs = dir.join("runs");
    let Made { jobs: all, outcomes, failure, fault, _lock } = make_runs(&COMPARISONS, comparison, dir, &execution, Lines::Each, &say)?;
    // an agent with a run that failed has no results, the others have theirs
    let is_whole = |agent: &str| all.iter().zip(&outcomes).all(|(job, outcome)| job.agent != agent || outcome.is_some());
    let (whole, failed): (Vec<Contender>, Vec<Contender>) = comparison.agents.iter().cloned().partition(|agent| is_whole(&agent.name));
    if whole.is_empty() {
        return Err(Error::folder(&runs, failure.unwrap_or_default()));
    }
    let left_out: Vec<String> = failed.into_iter().map(|agent| agent.name).collect();
    let (all, outcomes): (Vec<Job>, Vec<Outcome>) = all
        .into_iter()
        .zip(outcomes)
        .filter(|(job, _)| !left_out.iter().any(|name| name == job.agent))
        .filter_map(|(job, run)| Some((job, run?)))
        .unzip();
    let comparison = &Comparison { agents: whole, ..comparison.clone() };
    // writes the file that identifies the study before the other outputs
    write(&dir.join(COMPARISON), &folder::named(comparison))?;
    let formats = folder::formats(&COMPARISONS, dir);
    let without = policies::publish(dir, &runs, &all)?;
    folder::remove_outputs(&COMPARISONS, dir)?;
    if without > 0 {
        say(&format!("{without} of {} kept runs have no policy, because an older version made them", all.len()));
    }
    let pairs: Vec<(&Job, &Outcome)> = all.iter().zip(&outcomes).collect();
    write(&dir.join(RESULTS), &results_csv(comparison, &pairs))?;
    write(&dir.join(TIMING), &timing_csv(&pairs))?;
    let problems = problems_csv(&all, &outcomes);
    problems.map_or(Ok(()), |text| write(&dir.join(PROBLEMS), &text))?;

    let analyse = |begin: &dyn Fn(&str)| {
        begin("reading the results");
        let table = read_table(&dir.join(RESULTS))?;
        let unsound = |error: gradus_statistics::ScoresError| Error::folder(&dir.join(RESULTS), error.to_string());
        let analysis = Analysis::new(&table, &Wanted::of(comparison), begin).map_err(unsound)?;
        begin("tables");
        write(&dir.join("summary.csv"), &analysis.summary_csv())?;
        let note = if left_out.is_empty() { String::new() } else { format!("\nLeft out, because runs failed: {}.\n", left_out.join(", ")) };
        write(&dir.join("summary.md"), &(analysis.summary_md(&comparison.name) + &note))?;
        write(&dir.join("summary.tex"), &analysis.summary_tex(&comparison.name))?;
        let mut figures = analysis.figures();
        begin("episodes");
        figures.extend(policies::sheet(comparison, &runs, &all, &outcomes));
        begin("figures");
        let files = draw(&figures, dir, &formats)?;
        let seconds = outcomes.iter().filter_map(|run| run.evaluated.last()).map(|at| at.seconds).sum();
        let facts = Facts { comparison, command, jobs, cores: threads::cores(), seconds, left_out: &left_out };
        Ok::<_, Error>((files, report::html(&facts, &analysis, &figures, &dir.join("report.html"))?))
    };
    let (files, page) = threads::with(jobs, || with_steps(show, analyse))?;
    write(&dir.join("report.html"), &page)?;
    write(&dir.join(folder::SUMS), &folder::sums(&COMPARISONS, dir)?)?;
    let tables = [RESULTS, TIMING, "summary.csv", "summary.md", "summary.tex"].map(|name| dir.join(name));
    let files = tables.into_iter().chain(files).chain([dir.join("report.html")]).collect();
    let text = |failure: String| format!("{failure}; the tables and figures leave out {}", left_out.join(", "));
    let failure = failure.map(|failure| Failure { text: text(failure), is_fault: fault.is_some() });
    Ok((files, failure))
}

/// The runs of a study, and the lock of its folder.
struct Made<'a> {
    jobs: Vec<Job<'a>>,
    /// `None` for a run that failed.
    outcomes: Vec<Option<Outcome>>,
    /// What failed.
    failure: Option<String>,
    /// The first failure that says nothing about a run's settings.
    fault: Option<String>,
    _lock: File,
}

/// Prepares the folder of a study. Returns the folder of its runs, and the lock, which only the first of several processes has.
fn enter(kind: &folder::Kind, comparison: &Comparison, dir: &Path, say: &(impl Fn(&str) + Sync)) -> Result<(PathBuf, Option<File>), Error> {
    folder::check(kind, dir, comparison)?;
    let runs = dir.join("runs");
    fs::create_dir_all(&runs).map_err(Error::io("create", &runs))?;
    let busy = "another process is working in this folder";
    // a second process makes some of the runs
    let first = match files::lock(dir, busy) {
        Err(Error::Folder { problem, .. }) if problem == busy => {
            say(&format!("{busy}: the runs are shared"));
            None
        }
        lock => Some(lock?),
    };
    folder::remove_unfinished(kind, dir, &runs);
    Ok((runs, first))
}

/// Makes the missing runs of a study in its folder, and shares them with other processes that do the same.
fn make_runs<'a>(
    kind: &folder::Kind,
    comparison: &'a Comparison,
    dir: &Path,
    &Execution { jobs: workers, code, stop, .. }: &Execution,
    lines: Lines,
    say: &(impl Fn(&str) + Sync),
) -> Result<Made<'a>, Error> {
    let jobs = jobs_of(comparison, code)?;
    let (runs, first) = enter(kind, comparison, dir, say)?;
    let Finished { outcomes, failure, fault, summary } = runner::make(&jobs, &runs, Making { workers, stop, lines }, say)?;
    say(&summary);
    let lock = match first {
        Some(lock) => lock,
        None => last_lock(dir, stop)?,
    };
    Ok(Made { jobs, outcomes, failure, fault, _lock: lock })
}

/// Returns the path of the table of results in a comparison's folder, or `None` if `dir` is no such folder.
pub fn table_of(dir: &Path) -> Option<PathBuf> {
    dir.join(COMPARISON).exists().then(|| dir.join(RESULTS))
}

/// Computes `summary.csv` and `summary.md` of the comparison in the folder `dir` from its `results.csv` and `comparison.toml`.
pub fn summaries(dir: &Path) -> Result<[String; 2], Error> {
    let comparison = Comparison::read_as(&dir.join(COMPARISON), false)?;
    let path = dir.join(RESULTS);
    let table = read_table(&path)?;
    let wanted = Wanted { parts: Parts::Tables, ..Wanted::of(&comparison) };
    let analysis = threads::with(1, || Analysis::new(&table, &wanted, &|_| {}));
    let analysis = analysis.map_err(|error| Error::folder(&path, error.to_string()))?;
    Ok([analysis.summary_csv(), analysis.summary_md(&comparison.name)])
}

/// Draws every figure into the folder `out`, in each of `formats`, and returns the paths of the files. The figures are those of the comparison file beside the table, if
/// there is one, with `statistic` instead of its statistic if that is given. Figures over seconds need a column `seconds` in the table at `path`, or a `timing.csv` next to
/// the table.
pub fn plot_results(path: &Path, out: &Path, statistic: Option<Statistic>, formats: &[Format], show: Show) -> Result<Vec<PathBuf>, Error> {
    let plot = |begin: &dyn Fn(&str)| {
        begin("reading the results");
        let table = read_table(path)?;
        let file = path.with_file_name(COMPARISON);
        let beside = if exists(&file)? { Some(Comparison::read_as(&file, false)?) } else { None };
        let wanted = beside.as_ref().map_or_else(Wanted::default, Wanted::of);
        let wanted = Wanted { statistic: statistic.unwrap_or(wanted.statistic), parts: Parts::Figures, ..wanted };
        let analysis = Analysis::new(&table, &wanted, begin).map_err(|error| Error::folder(path, error.to_string()))?;
        begin("figures");
        fs::create_dir_all(out).map_err(Error::io("create", out))?;
        draw(&analysis.figures(), out, formats)
    };
    threads::with_default(|| with_steps(show, plot))
}

/// Reads the table at `path`. Also reads the seconds from `timing.csv` and the returns of the problems from `problems.csv`, if these files
/// are in the same folder.
fn read_table(path: &Path) -> Result<Table, Error> {
    let mut table = Table::parse(&read_named_to_string(path)?).map_err(|problem| Error::folder(path, problem))?;
    for (name, add) in [(TIMING, Table::add_seconds as fn(&mut Table, &str) -> Result<(), String>), (PROBLEMS, Table::add_problems)] {
        let other = path.with_file_name(name);
        if other != path && exists(&other)? {
            add(&mut table, &read_to_string(&other)?).map_err(|problem| Error::folder(&other, problem))?;
        }
    }
    Ok(table)
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    replace(path, text.as_bytes()).map_err(Error::io("write", path))
}

fn draw(figures: &[Named], dir: &Path, formats: &[Format]) -> Result<Vec<PathBuf>, Error> {
    let name = |named: &Named, format: &Format| dir.join(format!("{}.{}", named.name, format.ending()));
    let files = figures.iter().flat_map(|named| formats.iter().map(move |format| (&named.figure, name(named, format))));
    files
        .map(|(figure, path)| {
            figure::write(figure, &path)?;
            Ok(path)
        })
        .collect()
}

/// Time between two looks at a lock of another process.
const PAUSE: Duration = Duration::from_millis(50);

/// Waits until the other process has written its outputs.
fn last_lock(dir: &Path, stop: &AtomicBool) -> Result<File, Error> {
    loop {
        if let Some(lock) = files::try_lock(&dir.join(files::LOCK))? {
            return Ok(lock);
        }
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Stopped("after all runs".into()));
        }
        thread::sleep(PAUSE);
    }
}

fn jobs_of(comparison: &Comparison, code: Code) -> Result<Vec<Job<'_>>, Error> {
    let (mut all, mut inputs) = (Vec::new(), Inputs::default());
    for agent in &comparison.agents {
        for (at, config) in &agent.configs {
            let evaluations = comparison.evaluations_of(*at, config.steps);
            let origin: Vec<String> = std::iter::once(code.line(config)?).chain(inputs.lines(config, &comparison.folder)?).collect();
            for seed in &comparison.seeds {
                let (config, origin) = (Config { seed: *seed, ..config.clone() }, origin.clone());
                let folder = &comparison.folder;
                all.push(Job { agent: &agent.name, config, folder, evaluations, episodes: comparison.episodes, origin });
            }
        }
    }
    Ok(all)
}

fn owner(job: &Job) -> [String; 3] {
    [quoted(job.agent), quoted(&job.environment()), job.config.seed.to_string()]
}

fn results_csv(comparison: &Comparison, runs: &[(&Job, &Outcome)]) -> String {
    let scored = !comparison.score.is_empty();
    let mut text = format!("agent,env,seed,step,return,{}std,min,max,length\n", if scored { "score," } else { "" });
    for (job, run) in runs {
        for at in &run.evaluated {
            let score = comparison.score.get(&job.environment()).map(|[low, high]| ((at.mean - low) / (high - low)).to_string());
            let before = [at.step.to_string(), at.mean.to_string()].into_iter().chain(score);
            let numbers = before
                .chain([at.std, at.min, at.max, at.length].map(|number| if number.is_nan() { String::new() } else { number.to_string() }));
            push_row(&mut text, &owner(job).into_iter().chain(numbers).collect::<Vec<_>>());
        }
    }
    text
}

/// Returns the text of `problems.csv`; `None` if there are no runs on text tasks.
fn problems_csv(all: &[Job], outcomes: &[Outcome]) -> Option<String> {
    let mut text = String::from("agent,env,seed,returns\n");
    for (job, run) in all.iter().zip(outcomes).filter(|(_, run)| !run.problems.is_empty()) {
        let returns: Vec<String> = run.problems.iter().map(f64::to_string).collect();
        push_row(&mut text, &owner(job).into_iter().chain([returns.join(" ")]).collect::<Vec<_>>());
    }
    outcomes.iter().any(|run| !run.problems.is_empty()).then_some(text)
}

fn timing_csv(runs: &[(&Job, &Outcome)]) -> String {
    let mut text = String::from("agent,env,seed,step,seconds\n");
    for (job, run) in runs {
        for at in &run.evaluated {
            let numbers = [at.step.to_string(), at.seconds.to_string()];
            push_row(&mut text, &owner(job).into_iter().chain(numbers).collect::<Vec<_>>());
        }
    }
    text
}
