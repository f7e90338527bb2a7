//! What to type instead of arguments that the parser refuses.

use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use gradus::agents::registry as agents;
use gradus::config::effect::covers;
use gradus::config::settings::explain;
use gradus::envs::registry;
use gradus::{Config, program_name};

/// Options of `train` in other programs, and what they are called here, with the place of the value.
const OPTIONS: [(&[&str], &str); 12] = [
    (&["timesteps", "total-timesteps", "n-timesteps", "frames", "total-steps"], "--steps {}"),
    (&["num-envs", "n-envs"], "--envs {}"),
    (&["seeds", "n-seeds", "num-seeds"], "--seed 1: a run has one seed; `compare` trains several seeds"),
    (&["algo", "agent", "env", "env-id", "environment"], "the names without an option, such as `train ppo cartpole`"),
    (&["render", "render-mode", "gif", "video", "capture-video", "record"], "the command `play`, which shows the policy of a run"),
    (&["log-dir", "logdir", "log-folder", "log-path", "output", "save", "save-path", "dir"], "--out {}"),
    (&["tensorboard-log", "tensorboard", "tb-log"], "not needed: TensorBoard's files are always in the run folder"),
    (
        &["track", "wandb", "wandb-project-name"],
        "not an option: after the training, scripts/to_wandb.py writes a run in the form of Weights and Biases, to be sent with `wandb sync`",
    ),
    (&["hidden", "hidden-size"], "--set network.hidden=[{},{}]"),
    (&["cuda", "gpu"], "--device cuda, in a program with the feature `tch`"),
    (&["eval-freq", "eval-every", "evaluate-every"], "--set evaluate_every={}"),
    (&["verbose"], "not needed: the progress is shown unless --quiet is given"),
];

/// Commands of other programs, and what they are called here.
const COMMANDS: [(&[&str], &str); 12] = [
    (&["resume", "continue"], "train --resume DIR"),
    (&["record-video", "gif"], "play DIR --gif FILE"),
    (&["init", "create"], "new"),
    (&["algos", "agents", "envs", "environments", "algorithms"], "list"),
    (&["tensorboard"], "train, whose run folders have files for TensorBoard: tensorboard --logdir runs"),
    (&["learn", "fit", "run", "start"], "train"),
    (&["evaluate", "test", "score"], "eval"),
    (&["render", "enjoy", "show", "view", "record"], "play"),
    (&["benchmark"], "compare"),
    (&["grid", "grid-search", "search"], "sweep"),
    (&["version"], "--version"),
    (&["ls"], "list"),
];

/// Returns the end of the parser's message: what to type instead. `words` are the arguments of the process.
pub(crate) fn advice(error: &Error, words: &[String]) -> Option<String> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let (first, second) = (words.first().map_or("", String::as_str), words.get(1).map_or("", String::as_str));
    let is_agent = |name: &str| agents::find(name).is_ok();
    let is_world = |name: &str| !name.is_empty() && registry::find(name).is_ok();
    if let (ErrorKind::InvalidSubcommand, Some(name)) = (error.kind(), text(ContextKind::InvalidSubcommand)) {
        let (program, wanted) = (program_name(), name.to_lowercase());
        if first == "help" {
            let has_page = super::guide::has_page(name);
            return match (is_agent(name) || is_world(name), has_page) {
                (true, true) => Some(format!("type {program} guide {name}, or {program} list {name}")),
                (true, false) => Some(format!("type {program} list {name}")),
                (false, true) => Some(format!("type {program} guide {name}")),
                (false, false) => None,
            };
        }
        let known =
            COMMANDS.iter().find(|(names, _)| names.contains(&wanted.as_str())).map(|(_, command)| format!("type {program} {command}"));
        return match (is_agent(name), is_world(name)) {
            (true, _) => Some(format!("type {program} train {name} {}", if is_world(second) { second } else { world_of(name) })),
            (_, true) => Some(format!("type {program} train {} {name}", if is_agent(second) { second } else { "ppo" })),
            _ => known,
        };
    }
    if error.kind() == ErrorKind::MissingRequiredArgument
        && first == "train"
        && is_world(second)
        && words.get(2).is_none_or(|word| word.starts_with('-'))
    {
        return Some(format!("{second} is an environment: type {} train ppo {second}", program_name()));
    }
    let invalid = text(ContextKind::InvalidArg)?;
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    match invalid.strip_prefix("--") {
        Some("force" | "overwrite") => Some("a run is never overwritten: choose another folder with --out".into()),
        Some(option) => of_option(&option.replace('_', "-"), words, error.get(ContextKind::SuggestedArg).is_some()),
        None if first == "train" && invalid.contains('=') => Some(format!("did you mean --set {invalid}?")),
        None if matches!(first, "play" | "eval" | "explain" | "values" | "export" | "plot") && is_agent(second) => {
            let program = program_name();
            let fits = Config::preset(second, invalid, None).and_then(|config| config.build(&config.world()?).map(|_| config));
            let to = if first == "export" { " --hub DIR" } else { "" };
            Some(match fits {
                Ok(config) => {
                    let (agent, world) = (&config.agent, &config.environment);
                    format!(
                        "{first} needs the folder of a run: type {program} train {agent} {world} --out runs/first, then {program} {first} runs/first{to}"
                    )
                }
                Err(_) => format!("{first} needs the folder of a run"),
            })
        }
        None if first == "compare" => Some("a comparison has one file, and its folder with --out; `guide commands` has an example".into()),
        None if first == "train" && invalid.parse::<u64>().is_ok() => Some(match words.iter().any(|word| word == "--seed") {
            true => "a run has one seed; `compare` trains several seeds".into(),
            false => format!("type --steps {invalid}"),
        }),
        None => None,
    }
}

/// Returns an environment for which the agent has a preset.
fn world_of(agent: &str) -> &'static str {
    let name = agents::find(agent).map_or("", |entry| entry.name);
    let own = agents::presets().into_iter().find(|preset| preset.agent == name).map_or("any", |preset| preset.environment);
    match own {
        "any" => "frozen-lake",
        "text" => "addition",
        own => own,
    }
}

/// Returns what to type instead of an unknown option of `train`, or of a command that takes settings.
fn of_option(option: &str, words: &[String], has_tip: bool) -> Option<String> {
    let first = words.first().map_or("", String::as_str);
    if matches!(first, "compare" | "sweep") && matches!(option, "seed" | "seeds" | "steps" | "timesteps" | "agent" | "env" | "set") {
        return Some("agents, environments, steps and seeds are in the file".into());
    }
    match (first, option) {
        ("eval" | "play", "deterministic" | "greedy") => {
            return Some("it is not needed: actions are the most probable ones unless --sampled is given".into());
        }
        ("eval" | "play", "stochastic" | "sample") => return Some("type --sampled".into()),
        ("eval", "n-eval-episodes" | "n-episodes" | "num-episodes" | "n") => return Some("type --episodes".into()),
        ("play", "episodes" | "n-episodes") => return Some("one episode is played, which --seed chooses; `eval` plays many".into()),
        ("train" | "bench", _) => {}
        _ => return None,
    }
    let name_of = |word: &str| word.trim_start_matches('-').split('=').next().unwrap_or_default().replace('_', "-");
    let mut from = words.iter().skip_while(|word| name_of(word) != option);
    let value = match from.next().and_then(|word| word.split_once('=')) {
        Some((_, value)) => Some(value),
        None => from.next().map(String::as_str),
    };
    let value = value.filter(|value| !value.starts_with("--")).unwrap_or("VALUE");
    if let Some((_, typed)) = OPTIONS.iter().find(|(names, _)| names.contains(&option)) {
        let typed = typed.replace("{}", value);
        return Some(if typed.starts_with("--") { format!("type {typed}") } else { format!("here it is {typed}") });
    }
    // options may stand before the names
    let names = || words.iter().skip(1).filter(|word| !word.starts_with('-'));
    let agent = names().find(|word| agents::find(word).is_ok())?;
    let env = names().find(|word| registry::find(word).is_ok())?;
    // the name of a setting, here or elsewhere
    let config = Config::preset(agent, env, None).ok()?;
    let is_meant = |key: &&str| key.rsplit('.').next().is_some_and(|name| name.replace('_', "-") == option);
    let foreign = config.world().map(|world| config.foreign(&world)).unwrap_or_default();
    let settings = explain(&config);
    // of several sections that have the name, the first that this agent reads
    let is_read = |key: &&str| !foreign.iter().any(|(own, _)| covers(own, key));
    if let Some(key) = settings.iter().map(|(key, ..)| key.as_str()).filter(is_meant).find(is_read) {
        return Some(format!("type --set {key}={value}"));
    }
    let elsewhere = match config.clone().with_setting(&format!("{}={value}", option.replace('-', "_"))) {
        Err(gradus::Error::Unknown { hint, .. }) if hint.starts_with("here it is called `") => {
            Some(hint.replacen("here it is called", "type --set", 1).replacen('`', "", 1).replacen('`', &format!("={value}"), 1))
        }
        _ => None,
    };
    let listed = || format!("settings are given with --set KEY=VALUE; {} list {} shows them", program_name(), config.agent);
    // a word that is neither may be a misspelt option, which the parser names
    elsewhere.or_else(|| (!has_tip).then(listed))
}
