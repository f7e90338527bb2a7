//! `gradus train`: trains an agent and writes a run folder.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use gradus::agents::ConfigError;
use gradus::agents::registry as agents;
use gradus::config::parse_steps;
use gradus::envs::registry;
use gradus::numbers::{rate, short};
use gradus::{Config, Error, Run, Show, program_name};

use crate::arguments::{device, number, on_threads};
use crate::end;
use crate::output::{complain, quoted, say, warn};
use crate::signals::Signals;
#[cfg(feature = "watch")]
use crate::watch;

#[derive(Args)]
pub(crate) struct Train {
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

pub(crate) fn run(arguments: &Train) -> Result<u8, Error> {
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
pub(crate) fn unchanged(key: &str, named: &str, got: &str) -> Result<(), ConfigError> {
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
