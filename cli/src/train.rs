//! `gradus train`: trains an agent and writes a run folder.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use gradus::agents::ConfigError;
use gradus::agents::registry as agents;
use gradus::config::inputs::environment_in;
use gradus::config::spaces::about_defaults;
use gradus::config::{Atari, parse_steps};
use gradus::envs::{EnvError, Space, gym, registry};
use gradus::files::read_named_to_string;
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
    /// Total environment steps (text tasks: tokens), such as 500k or 2m [default: that of --config, or the preset's]
    #[arg(long, allow_hyphen_values = true)]
    steps: Option<String>,
    /// Random seed [default: that of --config, or 1]
    #[arg(long, allow_hyphen_values = true)]
    seed: Option<String>,
    /// Number of environments in lockstep [default: that of --config, or the preset's]
    #[arg(long, allow_hyphen_values = true)]
    envs: Option<String>,
    /// Number of threads; does not affect the results [default: all cores]
    #[arg(long, allow_hyphen_values = true)]
    threads: Option<String>,
    /// Device: cpu; with the feature `tch` also torch-cpu, cuda, cuda:N or mps [default: that of --config, or cpu]
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
    /// Approximate seconds between checkpoints; at least ten times what writing one takes, unless it is 0.
    #[arg(long, value_name = "SECONDS", default_value = "1", allow_hyphen_values = true)]
    checkpoint_every: String,
    /// Show a dashboard in the terminal: the learning curve, episodes or the values of a map, and metrics. Needs the feature `watch`.
    #[arg(long, conflicts_with = "quiet")]
    watch: bool,
    /// With --watch, train as slowly as eyes follow: four updates a second. Keys change the speed.
    #[arg(long, requires = "watch")]
    slow: bool,
    /// With --watch, train a second agent beside the first one, on the same environment and with the same seed: "AGENT KEY=VALUE ...".
    #[arg(long, value_name = "AGENT", requires = "watch", conflicts_with = "resume")]
    beside: Option<String>,
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
    let runs = || -> Result<Vec<Run>, Error> {
        match &arguments.resume {
            Some(dir) => match steps {
                Some(steps) => Run::resume_until(dir, steps).map(|run| vec![run]),
                None => Run::resume(dir).map(|run| vec![run]),
            },
            None => {
                // a pipe can be read only once
                let file = arguments.config.as_deref().map(|path| read_named_to_string(path).map(|text| (path, text))).transpose()?;
                let in_file = file.as_ref().filter(|_| arguments.env.is_none()).map(|(path, text)| named_in(path, text)).transpose()?;
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
                let config = configure(arguments, file.as_ref(), agent, env)?;
                let config = match steps {
                    // the changes of another number of steps are not those of this one
                    Some(steps) => Config { steps, earlier_steps: Vec::new(), ..config },
                    None => config,
                };
                let other = arguments.beside.as_ref().map(|words| beside(arguments, words, &config)).transpose()?;
                let name = config.short_name();
                let first = match &arguments.out {
                    Some(dir) => Run::create(config, dir)?,
                    None => Run::create_numbered(config, &name)?,
                };
                let second = other.map(|config| {
                    let name = config.short_name();
                    Run::create_numbered(config, &name)
                });
                Ok(std::iter::once(first).chain(second.transpose()?).collect())
            }
        }
    };
    on_threads(threads, || {
        let mut runs = runs()?;
        let signals = Signals::handle();
        for run in &mut runs {
            run.checkpoint_every(every);
            run.stop_when(signals.stop.clone());
        }
        // the dashboard owns the terminal, and must leave it as it was
        if !arguments.watch {
            let end = format!("stopped within an iteration; continue from the last checkpoint with: {}", resume(&runs[0]));
            signals.announce("stopping after this update, with a checkpoint; again: at once", end);
        }
        if arguments.resume.is_some() && !arguments.quiet {
            runs.iter().flat_map(Run::notes).for_each(|note| warn(note));
        }
        let were_finished: Vec<bool> = runs.iter().map(|run| run.trainer().is_finished()).collect();
        if !arguments.quiet {
            runs.iter().zip(&were_finished).for_each(|(run, was_finished)| announce(arguments, run, *was_finished));
        }
        let results = if arguments.watch {
            watched(&mut runs, &signals, arguments.slow)
        } else {
            runs.iter_mut().map(|run| run.train(show)).collect()
        };
        let mut is_stopped = false;
        for (run, result) in runs.iter().zip(results) {
            match result {
                Err(stopped @ Error::Stopped(_)) => {
                    complain(format!("{stopped}; continue with: {}", resume(run)));
                    is_stopped = true;
                }
                Err(error @ Error::Env(EnvError::Fault { .. })) if gym::is_gym(&run.trainer().config().environment) => {
                    complain(format!("error: {error}; continue with: {}", resume(run)));
                    return Ok(2);
                }
                result => result?,
            }
        }
        if is_stopped {
            return Ok(signals.exit_code());
        }
        if !arguments.quiet {
            for (run, was_finished) in runs.iter().zip(were_finished) {
                if runs.len() > 1 {
                    say(format!("\n{} in {}", run.trainer().config().agent, run.dir().display()));
                }
                report(run, was_finished, arguments.resume.is_some());
            }
        }
        Ok(0)
    })?
}

/// Returns the command that continues a run.
fn resume(run: &Run) -> String {
    format!("{} train --resume {}", program_name(), quoted(&run.dir().display().to_string()))
}

/// Says what is trained, and which settings do nothing.
fn announce(arguments: &Train, run: &Run, was_finished: bool) {
    let config = run.trainer().config();
    let from = match run.trainer().steps() {
        steps if steps > 0 && !was_finished => format!(", from step {steps}"),
        _ => String::new(),
    };
    let (agent, env, seed) = (&config.agent, &config.environment, config.seed);
    let base = Config::preset(agent, env, arguments.preset.as_deref()).ok().filter(|_| arguments.resume.is_none());
    let vain = base.map_or_else(Vec::new, |base| config.vain_settings(&base));
    config.warnings().iter().chain(&vain).for_each(|warning| complain(format!("warning: {warning}")));
    let (every, iteration) = (config.evaluate_every, run.trainer().steps_per_iteration().unwrap_or(0));
    if (1..iteration).contains(&every) {
        complain(format!(
            "warning: evaluate_every = {every}: an evaluation takes place at the end of an iteration, which has {iteration} steps"
        ));
    }
    say(format!("{agent} on {env}, {} steps, seed {seed}{from}, in {}", run.trainer().total_steps(), run.dir().display()));
    if gym::is_gym(env)
        && let Ok(known) = gym::describe(env)
    {
        let versions: Vec<String> = known.versions.iter().map(|(package, version)| format!("{package} {version}")).collect();
        say(format!("stepped by {}", versions.join(", ")));
        if !known.left_out.is_empty() {
            say(format!("left out of the observations: {}", known.left_out.join(", ")));
        }
        if known.action_space == Space::Discrete(1) {
            say("it has one action, so all policies are the same");
        }
        if config.wrappers.atari == Atari::Lives {
            say("an episode of the training is a life; evaluations play whole games");
        }
        if known.max_episode_steps.is_none() {
            let end = if env.contains('?') { "&" } else { "?" };
            say(format!("it has no time limit, so an episode may never end; this name sets one: {env}{end}max_episode_steps=1000"));
        }
    }
    if let (None, None, Ok(world)) = (&arguments.preset, &arguments.resume, registry::find(env))
        && let Some(about) = about_defaults(config, &world)
    {
        say(about);
    }
    let two_digits = |x: &f64| format!("{x:.1e}").parse().unwrap_or(*x);
    let jump = |(name, before, now): &(String, f64, f64)| format!("{name} jumps from {} to {}", two_digits(before), two_digits(now));
    let jumps: Vec<String> = run.trainer().jumps().iter().map(jump).collect();
    if !jumps.is_empty() {
        say(format!("schedules follow the new number of steps from here on: {}", jumps.join(", ")));
    }
}

/// Says what a finished run has come to.
fn report(run: &Run, was_finished: bool, is_resumed: bool) {
    let speed = run.trainer().steps() as f64 / run.seconds();
    let unit = if run.trainer().is_text() { "tokens" } else { "steps" };
    let trained = if was_finished { "this run was already finished; it trained for" } else { "trained for" };
    let in_all = if is_resumed { " in total" } else { "" };
    say(format!("{trained} {} s{in_all}, {} {unit}/s", short(run.seconds()), rate(speed)));
    let (steps, planned, stop_at) = (run.trainer().steps(), run.trainer().total_steps(), run.trainer().config().stop_at);
    if steps < planned && stop_at.is_finite() {
        say(format!("ended after {steps} of {planned} steps: an evaluation reached stop_at = {stop_at}"));
    }
    if let Some(mean) = run.trainer().recent_return_shown() {
        say(format!("mean return of the last {} training episodes: {mean}", run.trainer().recent_episodes()));
    }
    say(format!("learning curve: {}", run.dir().join("curve.png").display()));
    // the run is finished: a failure of its evaluation is not one of the training
    if let Err(error) = end::report(run) {
        warn(&format!("the policy could not be evaluated: {error}"));
    }
    if was_finished {
        say(format!("train it further with: {} --steps {}", resume(run), 2 * run.trainer().steps()));
    }
}

/// Trains with a dashboard or, if standard output is not a terminal, one run after the other with a progress bar.
fn watched(runs: &mut [Run], signals: &Signals, is_slow: bool) -> Vec<Result<(), Error>> {
    #[cfg(feature = "watch")]
    if let Some(results) = watch::train(runs, signals, is_slow) {
        return results;
    }
    // without the feature, [`run`] has refused `--watch`
    let _ = (signals, is_slow);
    runs.iter_mut().map(|run| run.train(Show::Progress)).collect()
}

/// Returns the settings of the second agent: its default preset, the settings in `words` after its name, and what it shares with the first.
fn beside(arguments: &Train, words: &str, first: &Config) -> Result<Config, Error> {
    let mut words = words.split_whitespace();
    let agent = agents::find(words.next().unwrap_or_default())?.name;
    let mut config = Config::preset(agent, &first.environment, None)?;
    for setting in words {
        config = config.with_setting(setting)?;
    }
    unchanged("agent", agent, &config.agent)?;
    unchanged("environment", &first.environment, &config.environment)?;
    let config = Config { seed: first.seed, device: first.device, ..config };
    Ok(if arguments.steps.is_some() { Config { steps: first.steps, earlier_steps: Vec::new(), ..config } } else { config })
}

/// Checks that `--set` and `--config` have not changed the agent or environment named on the command line.
pub(crate) fn unchanged(key: &str, named: &str, got: &str) -> Result<(), ConfigError> {
    ConfigError::unless(named == got, key, &format!("{named}, as on the command line"), got)
}

/// Changes settings, which must be of these sections, or have these names.
pub(crate) fn within_sections(config: Config, settings: &[String], sections: &[&str]) -> Result<Config, Error> {
    settings.iter().try_fold(config, |config, setting| {
        let changed = config.clone().with_setting(setting)?;
        let key = config.setting_name(setting.split_once('=').map_or(setting.as_str(), |(key, _)| key).trim());
        let section = key.split_once('.').map_or(key.as_str(), |(section, _)| section);
        let expected = format!("a setting of {}, which this command reads", sections.join(", "));
        // another environment has its own error
        ConfigError::unless(sections.contains(&section) || section == "environment", "--set", &expected, &key)?;
        Ok(changed)
    })
}

/// Changes settings other than the agent and the environment.
pub(crate) fn with_settings(config: Config, settings: &[String]) -> Result<Config, Error> {
    let (agent, environment) = (config.agent.clone(), config.environment.clone());
    let config = settings.iter().try_fold(config, |config, setting| config.with_setting(setting))?;
    for (key, fixed, got) in [("agent", &agent, &config.agent), ("environment", &environment, &config.environment)] {
        ConfigError::unless(fixed == got, key, &format!("{fixed}, which --set does not change"), got)?;
    }
    Ok(config)
}

/// Returns the agent and the environment that a file of settings names.
fn named_in(path: &Path, text: &str) -> Result<(String, String), Error> {
    let table: toml::Table = match text.parse() {
        Ok(table) => table,
        // the settings' own reader says what is wrong, and where
        Err(_) => Config::preset("ppo", "cartpole", None)?.with_text_of(path, text).map(|_| toml::Table::new())?,
    };
    let name = |key: &str| table.get(key).and_then(toml::Value::as_str).map(str::to_owned);
    let missing = || {
        let expected = "an agent and an environment, on the command line or in the file of --config".into();
        let without = ["agent", "environment"].into_iter().filter(|key| name(key).is_none()).collect::<Vec<_>>().join(" and ");
        Error::Parse { what: "train".into(), expected, got: format!("{} without {without}", path.display()) }
    };
    // paths are relative to the file that names them
    let environment = name("environment").map(|name| environment_in(&name, path.parent().unwrap_or(Path::new(""))));
    name("agent").zip(environment).ok_or_else(missing)
}

fn configure(arguments: &Train, file: Option<&(&Path, String)>, agent: &str, env: &str) -> Result<Config, Error> {
    let mut config = Config::preset(agent, env, arguments.preset.as_deref())?;
    if let Some((path, text)) = file {
        config = config.with_text_of(path, text)?;
    }
    let options = [
        ("seed", arguments.seed.is_some()),
        ("device", arguments.device.is_some()),
        ("envs", arguments.envs.is_some()),
        ("steps", arguments.steps.is_some()),
    ];
    for setting in &arguments.settings {
        let key = setting.split_once('=').map_or("", |(key, _)| key.trim());
        let is_twice = options.contains(&(key, true));
        ConfigError::unless(!is_twice, &format!("--{key}"), "no --set of the same name beside it", setting)?;
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
