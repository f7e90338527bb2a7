//! The command line: raw arguments in, calls of the library out.

mod bench;
mod compare;
mod doctor;
mod eval;
mod inspect;
mod pages;
mod play;
mod reward_model;
mod sample;
mod sft;

use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use gradus::agents::ConfigError;
use gradus::agents::registry as agents;
use gradus::config::parse_steps;
use gradus::config::settings::explain;
use gradus::envs::checker::{Severity, Topic, check_world};
use gradus::envs::registry;
use gradus::nets::{Device, NetworkError, UnknownDevice, threads};
use gradus::run::plot;
use gradus::statistics::numbers::short;
use gradus::{Config, Error, Run, Show, evaluate::trace};

/// Reinforcement learning to teach with and to publish from.
#[derive(Parser)]
#[command(version, about, arg_required_else_help = true)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Trains an agent and leaves a run folder.
    Train(Box<Train>),
    /// Evaluates a trained policy.
    Eval(eval::Eval),
    /// Plays an episode in the terminal, or writes an animated GIF.
    Play(play::Play),
    /// Supervised warm start: teaches a policy the answers that a task of text knows.
    Sft(sft::Sft),
    /// Reward model: learns from preferences which completions of a task are better.
    RewardModel(reward_model::RewardModel),
    /// Shows what every estimator makes of one set of rollouts: advantages and gradients side by side.
    Inspect(inspect::Inspect),
    /// Completes a prompt and shows every token's log-probability, entropy, value and advantage.
    Sample(sample::Sample),
    /// Compares agents on environments over seeds, as a file says, and writes tables, figures and a report.
    Compare(compare::Compare),
    /// Draws the learning curves of one or more run folders, or all figures of a comparison from its results.csv.
    Plot {
        /// Run folders, or one table of results.
        #[arg(required = true)]
        dirs: Vec<PathBuf>,
        /// The figure, .svg or .png [default: curve.svg and curve.png, in the folder when there is one]; for a table, the folder of
        /// the figures [default: the table's]
        #[arg(long)]
        out: Option<PathBuf>,
        /// Curves of a table show the mean instead of the interquartile mean.
        #[arg(long)]
        mean: bool,
    },
    /// Holds the numbers that pages quote against the tables they come from. Exit code 1 when they part.
    Pages(pages::Pages),
    /// Checks that an environment keeps its promises. Exit code 1 when it does not.
    Check {
        /// The environment.
        env: String,
        /// Instead replays these episodes, recorded here or in Gymnasium, one JSON object a line, and compares.
        #[arg(long)]
        trace: Option<PathBuf>,
    },
    /// Lists agents, environments and presets.
    List {
        /// Lists the settings instead: key, default and meaning.
        #[arg(long)]
        settings: bool,
    },
    /// Says what there is to compute on: libtorch, CUDA and devices, and what mends what does not work.
    Doctor(doctor::Doctor),
    /// Measures speed.
    #[command(subcommand)]
    Bench(bench::Bench),
}

#[derive(Args)]
struct Train {
    /// The agent, such as ppo.
    #[arg(required_unless_present = "resume")]
    agent: Option<String>,
    /// The environment, such as cartpole or CartPole-v1.
    #[arg(required_unless_present = "resume")]
    env: Option<String>,
    /// Environment steps of the whole training, such as 500k or 2m [default: the preset's]
    #[arg(long, allow_hyphen_values = true)]
    steps: Option<String>,
    /// The seed of all that is random [default: 1]
    #[arg(long, allow_hyphen_values = true)]
    seed: Option<String>,
    /// Environments in lockstep [default: the preset's]
    #[arg(long, allow_hyphen_values = true)]
    envs: Option<String>,
    /// Threads; they change nothing but the time [default: all cores]
    #[arg(long, allow_hyphen_values = true)]
    threads: Option<String>,
    /// What computes: cpu, or with the feature `tch` torch-cpu, cuda, cuda:N, mps [default: cpu]
    #[arg(long)]
    device: Option<String>,
    /// A preset, see `gradus list` [default: default]
    #[arg(long)]
    preset: Option<String>,
    /// A TOML file of settings, on top of the preset.
    #[arg(long)]
    config: Option<PathBuf>,
    /// A single setting, on top of both; may be repeated. `gradus list --settings` explains them.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    /// The run folder [default: the first free runs/AGENT-ENV-N]
    #[arg(long)]
    out: Option<PathBuf>,
    /// Goes on with the run in this folder.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["agent", "env", "steps", "seed", "envs", "preset", "config", "settings", "device", "out"])]
    resume: Option<PathBuf>,
    /// Seconds between checkpoints, about.
    #[arg(long, default_value = "1", allow_hyphen_values = true)]
    checkpoint_every: String,
    /// Shows nothing but errors.
    #[arg(long)]
    quiet: bool,
}

/// Runs a command; returns the exit code.
pub fn run(arguments: Arguments) -> Result<i32, Error> {
    match arguments.command {
        Command::Train(arguments) => train(&arguments),
        Command::Eval(arguments) => eval::run(&arguments),
        Command::Play(arguments) => play::run(&arguments),
        Command::Sft(arguments) => sft::run(&arguments),
        Command::RewardModel(arguments) => reward_model::run(&arguments),
        Command::Inspect(arguments) => inspect::run(&arguments),
        Command::Sample(arguments) => sample::run(&arguments),
        Command::Compare(arguments) => compare::run(&arguments),
        Command::Pages(arguments) => pages::run(&arguments),
        Command::Plot { dirs, out, mean } => compare::plot_table(&dirs, out.as_deref(), mean).unwrap_or_else(|| draw(&dirs, out)),
        Command::Check { env, trace: Some(path) } => replay(&env, &path),
        Command::Check { env, trace: None } => check(&env),
        Command::List { settings: false } => list(),
        Command::List { settings: true } => list_settings(),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Bench(arguments) => bench::run(arguments),
    }
}

/// A whole number that is at least `least`.
fn number(what: &str, text: &str, least: u64) -> Result<u64, Error> {
    number_within(what, text, least, i64::MAX as u64)
}

/// A whole number from `least` to `most`.
fn number_within(what: &str, text: &str, least: u64, most: u64) -> Result<u64, Error> {
    let too_large = text.len() > 15 || text.parse().is_ok_and(|n: u64| n > most);
    let upper = if too_large { format!("to {most}") } else { "up".into() };
    let parsed = text.parse().ok().filter(|n| (least..=most).contains(n));
    parsed.ok_or_else(|| Error::Parse { what: what.into(), expected: format!("a whole number from {least} {upper}"), got: text.into() })
}

/// A device by its name.
fn device(name: &str) -> Result<Device, Error> {
    Ok(name.parse().map_err(|error: UnknownDevice| NetworkError::Device(error.to_string()))?)
}

/// Does `work` on so many threads, or on as many as there are cores.
fn on_threads<T>(count: Option<&str>, work: impl FnOnce() -> T) -> Result<T, Error> {
    let count = count.map(|text| number("--threads", text, 1)).transpose()?.unwrap_or(threads::cores() as u64);
    ConfigError::unless(count <= 256, "--threads", "1 to 256", count)?;
    Ok(threads::with(count as usize, work))
}

/// Prints to standard output. A reader that has gone away is no error; a full disk is.
fn say(line: impl AsRef<str>) {
    match writeln!(std::io::stdout(), "{}", line.as_ref()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            eprintln!("error: cannot write to standard output: {error}");
            std::process::exit(2);
        }
        _ => {}
    }
}

/// An error of the argument parser without its usage: that is what `--help` is for.
pub fn in_one_line(error: &str) -> String {
    let lines = error.lines().take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    let parts: Vec<&str> = lines.map(str::trim).filter(|line| !line.is_empty()).collect();
    parts.join("; ").replace(":; ", ": ")
}

fn train(arguments: &Train) -> Result<i32, Error> {
    let show = if arguments.quiet { Show::Nothing } else { Show::Progress };
    let threads = arguments.threads.as_deref();
    let every = arguments.checkpoint_every.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let every = every.ok_or_else(|| Error::Parse {
        what: "--checkpoint-every".into(),
        expected: "seconds from 0 up".into(),
        got: arguments.checkpoint_every.clone(),
    })?;
    let run = || match &arguments.resume {
        Some(dir) => Run::resume(dir),
        None => {
            let (agent, env) = (arguments.agent.as_deref().unwrap_or_default(), arguments.env.as_deref().unwrap_or_default());
            let config = configure(arguments, agent, env)?;
            let name = format!("{}-{}", config.agent, config.environment);
            match &arguments.out {
                Some(dir) => Run::create(config, dir),
                None => Run::create_numbered(config, &name),
            }
        }
    };
    on_threads(threads, || {
        let mut run = run()?;
        run.checkpoint_every(every);
        let was_finished = run.trainer().is_finished();
        if !arguments.quiet {
            let config = run.trainer().config();
            let from = match run.trainer().steps() {
                steps if steps > 0 && !was_finished => format!(", from step {steps}"),
                _ => String::new(),
            };
            let (agent, env, seed) = (&config.agent, &config.environment, config.seed);
            say(format!("{agent} on {env}, {} steps, seed {seed}{from}, in {}", run.trainer().total_steps(), run.dir().display()));
        }
        run.train(show)?;
        if !arguments.quiet {
            let speed = run.trainer().steps() as f64 / run.seconds();
            let unit = if run.trainer().is_text() { "tokens" } else { "steps" };
            let trained = if was_finished { "this run was finished already; it trained for" } else { "trained for" };
            let in_all = if arguments.resume.is_some() { " in all" } else { "" };
            say(format!("{trained} {} s{in_all}, {}k {unit}/s", short(run.seconds()), short(speed / 1e3)));
            if let Some(mean) = run.trainer().recent_return_shown() {
                say(format!("mean return of the last {} training episodes: {mean}", run.trainer().recent_episodes()));
            }
            say(format!("learning curve: {}", run.dir().join("curve.png").display()));
        }
        Ok(0)
    })?
}

/// That a setting has not changed what the command line names.
fn unchanged(key: &str, named: &str, got: &str) -> Result<(), ConfigError> {
    ConfigError::unless(named == got, key, &format!("{named}, as the command line has it"), got)
}

fn configure(arguments: &Train, agent: &str, env: &str) -> Result<Config, Error> {
    let mut config = Config::preset(agent, env, arguments.preset.as_deref())?;
    if let Some(path) = &arguments.config {
        config = config.with_file(path)?;
    }
    for setting in &arguments.settings {
        config = config.with_setting(setting)?;
    }
    // a preset belongs to its agent and its world: neither may change under it
    unchanged("agent", agent, &config.agent)?;
    unchanged("environment", &registry::find(env)?.name, &config.environment)?;
    if let Some(steps) = &arguments.steps {
        let parse = |problem| Error::Parse { what: "--steps".into(), expected: problem, got: steps.clone() };
        config.steps = parse_steps(steps).map_err(|_| parse("a number of steps above 0, such as 5000, 500k or 2m".into()))?;
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

fn draw(dirs: &[PathBuf], out: Option<PathBuf>) -> Result<i32, Error> {
    let files = match (out, dirs) {
        (Some(out), _) => vec![out],
        (None, [dir]) => vec![dir.join("curve.svg"), dir.join("curve.png")],
        (None, _) => vec!["curve.svg".into(), "curve.png".into()],
    };
    plot(dirs, &files)?;
    files.iter().for_each(|file| say(file.display().to_string()));
    Ok(0)
}

fn check(env: &str) -> Result<i32, Error> {
    let world = registry::find(env)?;
    let findings = check_world(&world);
    let mut passed = 0;
    for topic in Topic::ALL {
        let found: Vec<_> = findings.iter().filter(|finding| finding.topic == topic).collect();
        let skipped = topic != Topic::Spaces && findings.iter().any(|finding| finding.topic == Topic::Spaces);
        if found.is_empty() {
            say(format!("{}  {topic}", if skipped { "-    " } else { "ok   " }));
        }
        for finding in &found {
            say(format!("{}  {finding}", if finding.severity == Severity::Note { "note " } else { "FAULT" }));
        }
        passed += usize::from(!skipped && found.iter().all(|finding| finding.severity == Severity::Note));
    }
    say(format!("{}: {passed} of {} topics passed", world.title(), Topic::ALL.len()));
    Ok(i32::from(passed < Topic::ALL.len()))
}

fn replay(env: &str, path: &PathBuf) -> Result<i32, Error> {
    let report = trace::check_file(&registry::find(env)?, path)?;
    for episode in &report.episodes {
        if let Some(difference) = &episode.difference {
            say(format!("line {} ({} steps): {difference}", episode.line, episode.steps));
        }
    }
    let (agreeing, all) = (report.agreeing(), report.episodes.len());
    say(format!("{agreeing} of {all} episodes agree"));
    Ok(i32::from(agreeing < all))
}

fn list() -> Result<i32, Error> {
    say("agents");
    for agent in agents::all() {
        say(format!("  {:<12}{}", agent.name, agent.about));
    }
    say("\nenvironments");
    let worlds = registry::all();
    let width = worlds.iter().map(|world| world.name.len() + 2).max().unwrap_or_default();
    for world in worlds {
        let id = world.gymnasium_id.map_or_else(String::new, |id| format!(" ({id})"));
        say(format!("  {:<width$}{}{id}", world.name, world.about));
    }
    say("\npresets");
    for preset in agents::presets() {
        say(format!("  {:<12}{} on {}. {}", preset.name, preset.agent, preset.environment, preset.about()));
    }
    Ok(0)
}

fn list_settings() -> Result<i32, Error> {
    let mut shown = Vec::new();
    let of_agent = |agent: agents::Entry| Config { agent: agent.name.into(), algorithm: agent.defaults(), ..Config::default() };
    let mut configs: Vec<Config> = agents::all().into_iter().map(of_agent).collect();
    configs.push(Config::preset("grpo", "addition", None)?);
    for config in configs {
        for (key, value, about) in explain(&config) {
            // what agents share is said once
            if !shown.contains(&key) {
                say(format!("{key} = {value}\n    {about}"));
                shown.push(key);
            }
        }
    }
    Ok(0)
}
