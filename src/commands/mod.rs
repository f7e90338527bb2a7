//! The command line: parses the arguments and calls the library.

mod advice;
mod bandit;
mod bench;
mod compare;
mod doctor;
mod end;
mod eval;
mod explain;
mod export;
mod folder;
mod guide;
mod inspect;
mod new;
mod pages;
mod play;
mod plot;
mod probe;
mod reproduce;
mod reward_model;
mod sample;
mod sft;
#[cfg(feature = "shell")]
mod shell;
mod signals;
mod values;
mod verify;
#[cfg(feature = "watch")]
mod watch;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use self::signals::Signals;
use crate::agents::registry as agents;
use crate::agents::{ConfigError, Preset, Reached, reached_by};
use crate::config::effect::covers;
use crate::config::parse_steps;
use crate::config::settings::explain;
use crate::envs::checker::{Severity, Topic, check_world};
use crate::envs::{names, registry};
use crate::nets::{Device, NetworkError, UnknownDevice, threads};
use crate::numbers::{rate, short};
use crate::{Config, Error, Run, Show, evaluate::trace, one_line, plain, program_name};
use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand};

/// Reinforcement-learning toolkit for teaching and research.
#[derive(Parser)]
#[command(version, about, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Train an agent and write a run folder.
    Train(Box<Train>),
    /// Evaluate trained policies.
    Eval(eval::Eval),
    /// Play an episode in the terminal, or write it as an animated GIF.
    Play(play::Play),
    /// Try an agent in probe worlds, the smallest ones there are, and say which properties it has. Exit code 1 if one is missing.
    Probe(probe::Probe),
    /// Draw the values and the greedy actions of a policy, in the terminal and as a figure.
    Values(values::Values),
    /// Say in words what looks sick in a run, and which page explains it.
    Explain(explain::Explain),
    /// Write a policy with a model card, its evaluation and an animation, to be published.
    Export(export::Export),
    /// Supervised warm start: train a fresh policy on the known answers of a text task.
    Sft(sft::Sft),
    /// Train a reward model of a text task from preferences.
    RewardModel(reward_model::RewardModel),
    /// Compare the advantages and gradients of all estimators on one set of rollouts.
    Inspect(inspect::Inspect),
    /// Complete a prompt and show every token's log-probability, entropy, value and advantage.
    Sample(sample::Sample),
    /// Compare agents on environments over several seeds, and write tables, figures and a report.
    Compare(compare::Compare),
    /// Draw the learning curves or other metrics of run folders, or the figures of a comparison from its results.csv, except its sheet of episodes. Runs that differ only
    /// in their seed are drawn as one line with a band.
    Plot(plot::Draw),
    /// Compare bandit rules on many problems: rewards, regret and figures.
    Bandit(bandit::Bandit),
    /// Redraw a published figure and say whether it holds: `gradus reproduce list` lists them.
    Reproduce(reproduce::Reproduce),
    /// Check the numbers quoted in Markdown pages against the tables they are from. Exit code 1 if a number differs.
    Pages(pages::Pages),
    /// Check that an environment implements its interface correctly. Exit code 1 if it does not.
    Check {
        /// Environment, such as cartpole.
        env: String,
        /// Instead, replay the episodes recorded in this file and compare the results with the recorded ones. The file has one JSON object
        /// per line, from `gradus play --record` or from Gymnasium.
        #[arg(long)]
        trace: Option<PathBuf>,
    },
    /// Create a crate with an environment and an agent of its own, and with all of these commands.
    New(new::New),
    /// Check that the files of runs, policies and comparisons are as they were written. Exit code 1 if one is damaged.
    Verify(verify::Verify),
    /// List agents, environments and presets.
    List {
        /// What to list: agents, environments, presets or settings, or the name of an agent or an environment [default: all names]
        what: Option<String>,
        /// List the key, default and meaning of every setting instead, or of the settings of one agent.
        #[arg(long, value_name = "AGENT", num_args = 0..=1)]
        settings: Option<Option<String>>,
        /// List the presets and where they are from instead.
        #[arg(long, conflicts_with = "settings")]
        presets: bool,
    },
    /// Write the completions of shells and the manual pages to a folder.
    #[cfg(feature = "shell")]
    #[command(hide = true)]
    Shell(shell::Shell),
    /// Print a page of the documentation, such as metrics or ppo.
    Guide(guide::Guide),
    /// Show libtorch, CUDA and the available devices, and how to fix what does not work.
    Doctor(doctor::Doctor),
    /// Measure speed.
    #[command(subcommand)]
    Bench(bench::Bench),
}

#[derive(Args)]
struct Train {
    /// Agent, such as ppo.
    #[arg(required_unless_present_any = ["resume", "config"])]
    agent: Option<String>,
    /// Environment, such as cartpole or CartPole-v1.
    #[arg(required_unless_present_any = ["resume", "config"])]
    env: Option<String>,
    /// Total environment steps (text tasks: tokens), such as 500k or 2m [default: the preset's]
    #[arg(long, allow_hyphen_values = true)]
    steps: Option<String>,
    /// Random seed [default: 1]
    #[arg(long, allow_hyphen_values = true)]
    seed: Option<String>,
    /// Number of environments in lockstep [default: the preset's]
    #[arg(long, allow_hyphen_values = true)]
    envs: Option<String>,
    /// Number of threads; does not affect the results [default: all cores]
    #[arg(long, allow_hyphen_values = true)]
    threads: Option<String>,
    /// Device: cpu; with the feature `tch` also torch-cpu, cuda, cuda:N or mps [default: cpu]
    #[arg(long)]
    device: Option<String>,
    /// Preset; `gradus list` shows them [default: default]
    #[arg(long)]
    preset: Option<String>,
    /// TOML file of settings, applied after the preset; it may name the agent and the environment.
    #[arg(long)]
    config: Option<PathBuf>,
    /// One setting, applied after the preset and the --config file; may be repeated. `gradus list --settings` explains all settings.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    /// Run folder [default: the first free runs/AGENT-ENV-N]
    #[arg(long)]
    out: Option<PathBuf>,
    /// Resume the run in this folder; with --steps, train until this number of steps is done in all, even if the run is finished.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["agent", "env", "seed", "envs", "preset", "config", "settings", "device", "out"])]
    resume: Option<PathBuf>,
    /// Approximate seconds between checkpoints.
    #[arg(long, value_name = "SECONDS", default_value = "1", allow_hyphen_values = true)]
    checkpoint_every: String,
    /// Show a dashboard in the terminal: the learning curve, episodes and metrics. Needs the feature `watch`.
    #[arg(long, conflicts_with = "quiet")]
    watch: bool,
    /// Print only errors.
    #[arg(long)]
    quiet: bool,
}

/// Runs the command that the arguments of the process name, unless `prepared` is an error. Returns the exit code.
pub(crate) fn main(prepared: Result<(), Error>, presets: Result<(), Error>) -> ExitCode {
    let arguments = Arguments::try_parse().unwrap_or_else(|error| {
        if error.kind() == ErrorKind::DisplayVersion && program_name() != "gradus" {
            say(format!("{}, with gradus {}", program_name(), env!("CARGO_PKG_VERSION")));
            std::process::exit(0);
        }
        if !error.use_stderr() {
            written(error.print());
            std::process::exit(0);
        }
        if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
            error.exit();
        }
        let words: Vec<String> = std::env::args().skip(1).collect();
        let message = one_line(&in_one_line(&error.to_string()));
        let message = match advice::advice(&error, &words) {
            // the parser's own tip is a guess from letters
            Some(advice) => format!("{}; {advice}", message.split("; tip:").next().unwrap_or(&message)),
            None => message,
        };
        complain(message);
        std::process::exit(2);
    });
    signals::survive_large_files();
    crate::program(|| {
        prepared?;
        let reads_presets = matches!(arguments.command, Command::Train(_) | Command::Compare(_) | Command::List { .. } | Command::Bench(_));
        match presets {
            Err(error) if !reads_presets => warn(&error.to_string()),
            result => result?,
        }
        run(arguments).map(ExitCode::from)
    })
}

/// Runs a command and returns the exit code.
fn run(arguments: Arguments) -> Result<u8, Error> {
    match arguments.command {
        Command::Train(arguments) => train(&arguments),
        Command::Eval(arguments) => eval::run(&arguments),
        Command::Probe(arguments) => probe::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Values(arguments) => values::run(&arguments),
        Command::Play(arguments) => play::run(&arguments),
        Command::Export(arguments) => export::run(&arguments),
        Command::Sft(arguments) => sft::run(&arguments),
        Command::RewardModel(arguments) => reward_model::run(&arguments),
        Command::Inspect(arguments) => inspect::run(&arguments),
        Command::Sample(arguments) => sample::run(&arguments),
        Command::Compare(arguments) => compare::run(&arguments),
        Command::Bandit(arguments) => bandit::run(&arguments),
        Command::Reproduce(arguments) => reproduce::run(&arguments),
        Command::Pages(arguments) => pages::run(&arguments),
        Command::Plot(arguments) => plot::run(arguments),
        Command::Check { env, trace: Some(path) } => replay(&env, &path),
        Command::Check { env, trace: None } => check(&env),
        Command::New(arguments) => new::run(&arguments),
        Command::Verify(arguments) => verify::run(&arguments),
        Command::List { what, settings: Some(agent), .. } => list_settings(agent.or(what).as_deref()),
        Command::List { what, presets: true, .. } => list_presets(what.as_deref()),
        Command::List { what, .. } => list(what.as_deref()),
        #[cfg(feature = "shell")]
        Command::Shell(arguments) => shell::run(&arguments),
        Command::Guide(arguments) => guide::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Bench(arguments) => bench::run(arguments),
    }
}

/// Parses a whole number of at least `least`.
fn number(what: &str, text: &str, least: u64) -> Result<u64, Error> {
    number_within(what, text, least, i64::MAX as u64)
}

/// Parses a whole number from `least` to `most`.
fn number_within(what: &str, text: &str, least: u64, most: u64) -> Result<u64, Error> {
    let too_large = text.len() > 15 || text.parse().is_ok_and(|n: u64| n > most);
    let upper = if too_large { format!("to {most}") } else { "up".into() };
    let parsed = text.parse().ok().filter(|n| (least..=most).contains(n));
    parsed.ok_or_else(|| Error::Parse { what: what.into(), expected: format!("a whole number from {least} {upper}"), got: text.into() })
}

/// Parses the name of a device.
fn device(name: &str) -> Result<Device, Error> {
    Ok(name.parse().map_err(|error: UnknownDevice| NetworkError::Device(error.to_string()))?)
}

/// Runs `work` on `count` threads; if `count` is `None`, on one thread per core.
fn on_threads<T>(count: Option<&str>, work: impl FnOnce() -> T) -> Result<T, Error> {
    let count = count.map(|text| number("--threads", text, 1)).transpose()?.unwrap_or(threads::cores() as u64);
    ConfigError::unless(count <= 256, "--threads", "1 to 256", count)?;
    Ok(threads::with(count as usize, work))
}

/// Prints a line to standard output. A closed pipe is ignored; any other error, such as a full disk, ends the program.
fn say(line: impl AsRef<str>) {
    written(writeln!(std::io::stdout(), "{}", line.as_ref()));
}

/// Ends the program if standard output could not be written. A closed pipe is ignored.
fn written(result: io::Result<()>) {
    if let Err(error) = result
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        complain(format!("error: cannot write to standard output: {error}"));
        std::process::exit(2);
    }
}

/// Returns a word of a command line as it can be typed.
fn quoted(word: &str) -> String {
    if word.is_empty() || !word.chars().all(|letter| letter.is_alphanumeric() || "-_./=:,@%+".contains(letter)) {
        format!("'{}'", word.replace('\'', "'\\''"))
    } else {
        word.into()
    }
}

/// Prints a line to standard error. Errors are ignored, because there is no other place to report them.
fn complain(line: impl AsRef<str>) {
    let _ = writeln!(io::stderr(), "{}", plain(line.as_ref()));
}

/// Prints a warning.
pub(crate) fn warn(text: &str) {
    complain(format!("warning: {}", one_line(text)));
}

/// Returns an error message of the argument parser as one line, without the usage text.
fn in_one_line(error: &str) -> String {
    let lines = error.lines().take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    // the parser's tip to give an unknown option as a value helps nobody here
    let lines = lines.filter(|line| !line.trim().starts_with("tip: to pass"));
    let parts: Vec<&str> = lines.map(str::trim).filter(|line| !line.is_empty()).collect();
    parts.join("; ").replace(":; ", ": ")
}

fn train(arguments: &Train) -> Result<u8, Error> {
    let show = if arguments.quiet { Show::Nothing } else { Show::Progress };
    let threads = arguments.threads.as_deref();
    let every = arguments.checkpoint_every.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let every = every.ok_or_else(|| Error::Parse {
        what: "--checkpoint-every".into(),
        expected: "seconds from 0 up".into(),
        got: arguments.checkpoint_every.clone(),
    })?;
    let steps = arguments.steps.as_ref().map(|text| {
        let expected = "a number of steps above 0, such as 5000, 500k or 2m".into();
        parse_steps(text).map_err(|_| Error::Parse { what: "--steps".into(), expected, got: text.clone() })
    });
    let steps = steps.transpose()?;
    if arguments.watch && cfg!(not(feature = "watch")) {
        let expected = "a program with the feature `watch`, such as `cargo run --features watch -- train ppo cartpole --watch`".into();
        return Err(Error::Parse { what: "--watch".into(), expected, got: "a program without it".into() });
    }
    let run = || match &arguments.resume {
        Some(dir) => match steps {
            Some(steps) => Run::resume_until(dir, steps),
            None => Run::resume(dir),
        },
        None => {
            let in_file = arguments.config.as_deref().filter(|_| arguments.env.is_none()).map(named_in).transpose()?;
            let (agent, env) = match &in_file {
                Some((agent, env)) => (arguments.agent.as_deref().unwrap_or(agent), env.as_str()),
                None => (arguments.agent.as_deref().unwrap_or_default(), arguments.env.as_deref().unwrap_or_default()),
            };
            // `train cartpole ppo` is understood, too
            let is_reversed = agents::find(agent).is_err() && agents::find(env).is_ok() && registry::find(agent).is_ok();
            let (agent, env) = if is_reversed { (env, agent) } else { (agent, env) };
            // any spelling is understood
            let agent = agents::find(agent).map_or(agent, |entry| entry.name);
            let twice = |what: &str, such: &str, got: String| {
                Err(Error::Parse { what: what.into(), expected: format!("the name of an {what}, such as {such}"), got })
            };
            if registry::find(agent).is_ok() && registry::find(env).is_ok() {
                return twice("agent", "ppo", format!("the environment `{agent}`"));
            }
            if agents::find(env).is_ok() && registry::find(env).is_err() {
                return twice("environment", "cartpole", format!("the agent `{env}`"));
            }
            let config = configure(arguments, agent, env)?;
            let config = match steps {
                // the changes of another number of steps are not those of this one
                Some(steps) => Config { steps, earlier_steps: Vec::new(), ..config },
                None => config,
            };
            let name = config.short_name();
            match &arguments.out {
                Some(dir) => Run::create(config, dir),
                None => Run::create_numbered(config, &name),
            }
        }
    };
    on_threads(threads, || {
        let mut run = run()?;
        run.checkpoint_every(every);
        let signals = Signals::handle();
        run.stop_when(signals.stop.clone());
        // the dashboard owns the terminal, and must leave it as it was
        if !arguments.watch {
            let resume = format!("{} train --resume {}", program_name(), quoted(&run.dir().display().to_string()));
            let end = format!("stopped within an iteration; continue from the last checkpoint with: {resume}");
            signals.announce("stopping after this update, with a checkpoint; again: at once", end);
        }
        let was_finished = run.trainer().is_finished();
        if !arguments.quiet {
            let config = run.trainer().config();
            let from = match run.trainer().steps() {
                steps if steps > 0 && !was_finished => format!(", from step {steps}"),
                _ => String::new(),
            };
            let (agent, env, seed) = (&config.agent, &config.environment, config.seed);
            let base = Config::preset(agent, env, arguments.preset.as_deref()).ok().filter(|_| arguments.resume.is_none());
            let vain = base.map_or_else(Vec::new, |base| config.vain_settings(&base));
            config.warnings().iter().chain(&vain).for_each(|warning| complain(format!("warning: {warning}")));
            say(format!("{agent} on {env}, {} steps, seed {seed}{from}, in {}", run.trainer().total_steps(), run.dir().display()));
            let two_digits = |x: &f64| format!("{x:.1e}").parse().unwrap_or(*x);
            let jump =
                |(name, before, now): &(String, f64, f64)| format!("{name} jumps from {} to {}", two_digits(before), two_digits(now));
            let jumps: Vec<String> = run.trainer().jumps().iter().map(jump).collect();
            if !jumps.is_empty() {
                say(format!("schedules follow the new number of steps from here on: {}", jumps.join(", ")));
            }
        }
        match if arguments.watch { watched(&mut run, &signals) } else { run.train(show) } {
            Err(stopped @ Error::Stopped(_)) => {
                complain(format!(
                    "{stopped}; continue with: {} train --resume {}",
                    program_name(),
                    quoted(&run.dir().display().to_string())
                ));
                return Ok(signals.exit_code());
            }
            result => result?,
        }
        if !arguments.quiet {
            let speed = run.trainer().steps() as f64 / run.seconds();
            let unit = if run.trainer().is_text() { "tokens" } else { "steps" };
            let trained = if was_finished { "this run was already finished; it trained for" } else { "trained for" };
            let in_all = if arguments.resume.is_some() { " in total" } else { "" };
            say(format!("{trained} {} s{in_all}, {} {unit}/s", short(run.seconds()), rate(speed)));
            if let Some(mean) = run.trainer().recent_return_shown() {
                say(format!("mean return of the last {} training episodes: {mean}", run.trainer().recent_episodes()));
            }
            say(format!("learning curve: {}", run.dir().join("curve.png").display()));
            // the run is finished: a failure of its evaluation is not one of the training
            if let Err(error) = end::report(&run) {
                warn(&format!("the policy could not be evaluated: {error}"));
            }
            if was_finished {
                let dir = quoted(&run.dir().display().to_string());
                say(format!("train it further with: {} train --resume {dir} --steps {}", program_name(), 2 * run.trainer().steps()));
            }
        }
        Ok(0)
    })?
}

/// Trains with a dashboard, or with a progress bar if standard output is not a terminal.
#[cfg(feature = "watch")]
fn watched(run: &mut Run, signals: &Signals) -> Result<(), Error> {
    let Some(mut watch) = watch::Watch::start(run, signals) else { return run.train(Show::Progress) };
    run.train_with(Show::Nothing, |update| {
        watch.update(update);
        std::ops::ControlFlow::Continue(())
    })?;
    watch.finish(run.trainer());
    Ok(())
}

/// [`train`] has refused `--watch`.
#[cfg(not(feature = "watch"))]
fn watched(run: &mut Run, _: &Signals) -> Result<(), Error> {
    run.train(Show::Progress)
}

/// Checks that `--set` and `--config` have not changed the agent or environment named on the command line.
fn unchanged(key: &str, named: &str, got: &str) -> Result<(), ConfigError> {
    ConfigError::unless(named == got, key, &format!("{named}, as on the command line"), got)
}

/// Returns the agent and the environment that a file of settings names.
fn named_in(path: &std::path::Path) -> Result<(String, String), Error> {
    let text = std::fs::read_to_string(path).map_err(|source| Error::Io { action: "read", path: path.into(), source })?;
    let table: toml::Table = text.parse().unwrap_or_default();
    let name = |key: &str| table.get(key).and_then(toml::Value::as_str).map(str::to_owned);
    let missing = || {
        let expected = "an agent and an environment, on the command line or in the file of --config".into();
        Error::Parse { what: "train".into(), expected, got: format!("{} without them", path.display()) }
    };
    name("agent").zip(name("environment")).ok_or_else(missing)
}

fn configure(arguments: &Train, agent: &str, env: &str) -> Result<Config, Error> {
    let mut config = Config::preset(agent, env, arguments.preset.as_deref())?;
    if let Some(path) = &arguments.config {
        config = config.with_file(path)?;
    }
    for setting in &arguments.settings {
        config = config.with_setting(setting)?;
    }
    // the preset belongs to this agent and environment, so neither may change
    unchanged("agent", agent, &config.agent)?;
    let (named, got) = (registry::find(env)?.name, &config.environment);
    // a settings file may name the same file from another folder
    let is_same_file = named.split_once(':').zip(got.split_once(':')).is_some_and(|((kind, ours), (other, theirs))| {
        let whole = |path: &str| std::fs::canonicalize(path).ok();
        kind == other && whole(ours).is_some() && whole(ours) == whole(theirs)
    });
    if !is_same_file {
        unchanged("environment", &named, got)?;
    }
    if let Some(seed) = &arguments.seed {
        config.seed = number("--seed", seed, 0)?;
    }
    if let Some(device) = &arguments.device {
        config.device = self::device(device)?;
    }
    if let Some(envs) = &arguments.envs {
        config.envs = number("--envs", envs, 1)? as usize;
    }
    Ok(config)
}

fn check(env: &str) -> Result<u8, Error> {
    let world = registry::find(env)?;
    let findings = check_world(&world);
    let mut passed = 0;
    for topic in Topic::ALL {
        let found: Vec<_> = findings.iter().filter(|finding| finding.topic == topic).collect();
        let is_unchecked = topic != Topic::Spaces && findings.iter().any(|finding| finding.topic == Topic::Spaces);
        if found.is_empty() {
            say(format!("{}  {topic}", if is_unchecked { "-    " } else { "ok   " }));
        }
        for finding in &found {
            let mark = match finding.severity {
                Severity::Fault => "FAULT",
                Severity::Note => "note ",
                Severity::Skipped => "-    ",
            };
            say(format!("{mark}  {finding}"));
        }
        passed += usize::from(!is_unchecked && found.iter().all(|finding| finding.severity == Severity::Note));
    }
    say(format!("{}: {passed} of {} topics passed", world.title(), Topic::ALL.len()));
    Ok(u8::from(passed < Topic::ALL.len()))
}

fn replay(env: &str, path: &PathBuf) -> Result<u8, Error> {
    let report = trace::check_file(&registry::find(env)?, path)?;
    for episode in &report.episodes {
        if let Some(difference) = &episode.difference {
            say(format!("line {} ({} steps): {difference}", episode.line, episode.steps));
        }
    }
    let (agreeing, all) = (report.agreeing(), report.episodes.len());
    say(format!("{agreeing} of {all} episodes agree"));
    Ok(u8::from(agreeing < all))
}

/// Lists everything of one kind, what there is of one agent or environment, or all names.
fn list(what: Option<&str>) -> Result<u8, Error> {
    match what.map(names::spelled).as_deref() {
        None => {
            list_agents();
            say("");
            list_environments();
            say("");
            list_names_of_presets();
        }
        Some("agent" | "agents") => list_agents(),
        Some("environment" | "environments" | "env" | "envs" | "worlds" | "tasks") => list_environments(),
        Some("preset" | "presets") => return list_presets(None),
        Some("setting" | "settings") => return list_settings(None),
        Some(_) => {
            let name = what.unwrap_or_default();
            return match (agents::find(name), registry::find(name)) {
                (Ok(agent), _) => list_settings(Some(agent.name)),
                (_, Ok(world)) => list_world(&world),
                _ => {
                    let expected = "agents, environments, presets, settings, or the name of an agent or an environment".into();
                    Err(Error::Parse { what: "list".into(), expected, got: name.into() })
                }
            };
        }
    }
    Ok(0)
}

/// Lists the presets for an environment, and the agents that learn in it with the settings of `Config::default`.
fn list_world(world: &crate::envs::EnvSpec) -> Result<u8, Error> {
    list_presets(Some(&world.name))?;
    let presets = agents::presets();
    let kind = if world.text.is_some() { "text" } else { "any" };
    let has_preset =
        |name: &str| presets.iter().any(|preset| preset.agent == name && [world.name.as_str(), kind].contains(&preset.environment));
    let accepts = |name: &str| {
        let config = Config::preset(name, &world.name, None);
        config.is_ok_and(|config| config.world().is_ok_and(|world| config.build(&world).is_ok()))
    };
    let others: Vec<&str> = agents::all().iter().map(|entry| entry.name).filter(|name| !has_preset(name) && accepts(name)).collect();
    if !others.is_empty() {
        say_wrapped("without a preset: ", &others.join(", "));
    }
    Ok(0)
}

fn list_agents() {
    let wide = width_of_agents();
    say("agents");
    for agent in agents::all() {
        say_wrapped(&format!("  {:<wide$}", agent.name), agent.about);
    }
}

fn width_of_agents() -> usize {
    agents::all().iter().map(|agent| agent.name.len() + 2).max().unwrap_or_default()
}

fn list_environments() {
    say("environments");
    let worlds = registry::all();
    let width = worlds.iter().map(|world| world.name.len() + 2).max().unwrap_or_default();
    for world in worlds {
        let id = world.gymnasium_id.map_or_else(String::new, |id| format!(" ({id})"));
        say_wrapped(&format!("  {:<width$}", world.name), &format!("{}{id}", world.about));
    }
    say_wrapped(&format!("  {:<width$}", "grid:PATH"), "a grid world from a text map with walls, cliffs, wind, rewards and teleports");
    say_wrapped(&format!("  {:<width$}", "file:PATH"), "a text task with the prompts, answers and verifiers of a file in JSON Lines");
}

fn list_names_of_presets() {
    let wide = width_of_agents();
    say(format!("presets (explained by `{} list presets`)", program_name()));
    let presets = agents::presets();
    for agent in agents::all() {
        let own: Vec<&Preset> = presets.iter().filter(|preset| preset.agent == agent.name).collect();
        let mut environments: Vec<&str> = own.iter().map(|preset| preset.environment).collect();
        environments.dedup();
        let names = |environment: &&str| {
            let names = own.iter().filter(|preset| preset.environment == *environment).map(|preset| preset.name);
            format!("{environment} ({})", names.collect::<Vec<_>>().join(", "))
        };
        if !environments.is_empty() {
            say_wrapped(&format!("  {:<wide$}", agent.name), &environments.iter().map(names).collect::<Vec<_>>().join(", "));
        }
    }
}

/// Explains the presets of an agent or on an environment, or all.
fn list_presets(of: Option<&str>) -> Result<u8, Error> {
    let found =
        of.map(|name| agents::find(name).map(|agent| agent.name.to_owned()).or_else(|_| registry::find(name).map(|world| world.name)));
    let of = found.transpose()?;
    let kind = of.as_deref().and_then(|name| registry::find(name).ok()).map(|world| if world.text.is_some() { "text" } else { "any" });
    // a preset for any environment is one for those that its agent accepts
    let accepts = |agent: &str, environment: &str| {
        let config = Config::preset(agent, environment, None);
        config.is_ok_and(|config| config.world().is_ok_and(|world| config.build(&world).is_ok()))
    };
    let is_meant = |preset: &Preset| match of.as_deref() {
        Some(of) if of == preset.agent || of == preset.environment => true,
        Some(of) => kind == Some(preset.environment) && accepts(preset.agent, of),
        None => true,
    };
    for preset in agents::presets().into_iter().filter(is_meant) {
        say(format!("{} on {}: {}", preset.agent, preset.environment, preset.name));
        say_wrapped("    ", &preset.about());
        let of = |(environment, it): (&str, Reached)| {
            let place = if environment == preset.environment { String::new() } else { format!("{environment}: ") };
            format!("{place}{} of {} seeds end with a {} of {} or more (median {})", it.reached, it.seeds, it.measure, it.level, it.median)
        };
        let known: Vec<String> = reached_by(&preset).into_iter().map(of).collect();
        if !known.is_empty() {
            say_wrapped("    ", &known.join("; "));
        }
    }
    Ok(0)
}

/// Prints a text after `start`, in lines of at most 80 characters. Further lines are indented by the length of `start`.
fn say_wrapped(start: &str, text: &str) {
    let indent = start.len();
    let (mut line, mut is_empty) = (start.to_owned(), true);
    for word in text.split_whitespace() {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > 80 {
            say(&line);
            (line, is_empty) = (" ".repeat(indent), true);
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    say(line.trim_end());
}

/// Returns the default settings of an agent: those of its default preset on the first environment for which it has one.
fn defaults_of(agent: agents::Entry) -> Result<Config, Error> {
    let presets = agents::presets();
    let own =
        presets.iter().find(|preset| (preset.agent, preset.name) == (agent.name, "default") && registry::find(preset.environment).is_ok());
    match own {
        Some(preset) => Config::preset(agent.name, preset.environment, None),
        None if presets.iter().any(|preset| (preset.agent, preset.environment) == (agent.name, "text")) => {
            Config::preset(agent.name, "addition", None)
        }
        None => {
            let accepts = |config: &Config| config.world().is_ok_and(|world| config.build(&world).is_ok());
            let mut all = ["frozen-lake", "mountain-car"].map(|world| Config::preset(agent.name, world, None)).into_iter();
            let first = all.next().expect("there are two");
            if first.as_ref().is_ok_and(accepts) { first } else { all.next().expect("there are two") }
        }
    }
}

/// Lists the settings of `agent` with the values of its default preset, or those of all agents.
fn list_settings(agent: Option<&str>) -> Result<u8, Error> {
    let mut shown = Vec::new();
    let entry = agent.map(|name| {
        let is_world = agents::find(name).is_err() && registry::find(name).is_ok();
        let expected = || format!("the name of an agent, such as {} list --settings ppo", program_name());
        if is_world {
            return Err(Error::Parse { what: "--settings".into(), expected: expected(), got: format!("the environment `{name}`") });
        }
        Ok(agents::find(name)?)
    });
    let entry = entry.transpose()?;
    let mut configs: Vec<Config> = match entry {
        Some(entry) => {
            let config = defaults_of(entry)?;
            say_wrapped("# ", &format!("{}, with the values of its default preset on {}", entry.name, config.environment));
            vec![config]
        }
        None => {
            let of_agent = |agent: agents::Entry| Config { agent: agent.name.into(), algorithm: agent.defaults(), ..Config::default() };
            agents::all().into_iter().map(of_agent).collect()
        }
    };
    if entry.is_none_or(|entry| entry.name == "grpo") {
        configs.push(Config::preset("grpo", "addition", None)?);
    }
    for config in configs {
        // one agent has its own settings alone; all agents together have all
        let foreign = if entry.is_some() { config.foreign(&config.world()?) } else { Vec::new() };
        for (key, value, about) in explain(&config) {
            // settings that agents share are listed once
            if !shown.contains(&key) && !foreign.iter().any(|(own, _)| covers(own, &key)) {
                say(format!("{key} = {value}"));
                say_wrapped("    ", &about);
                shown.push(key);
            }
        }
    }
    Ok(0)
}
