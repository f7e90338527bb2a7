//! `gradus list`: agents, environments, presets and settings.

use gradus::agents::registry as agents;
use gradus::agents::{Preset, Reached, reached_by};
use gradus::config::effect::covers;
use gradus::config::settings::explain;
use gradus::config::spaces::{kinds, preset_environment};
use gradus::envs::{gym, names, registry};
use gradus::{Config, Error, program_name};

use crate::output::{say, say_wrapped};

/// Lists everything of one kind, what there is of one agent or environment, or all names.
pub(crate) fn run(what: Option<&str>) -> Result<u8, Error> {
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
        Some("preset" | "presets") => return presets(None),
        Some("setting" | "settings") => return settings(None),
        Some(_) => {
            let name = what.unwrap_or_default();
            return match (agents::find(name), registry::find(name)) {
                (Ok(agent), _) => settings(Some(agent.name)),
                (_, Ok(world)) => list_world(&world),
                // such as a package that Python lacks
                (_, Err(error)) if gym::is_gym(name) => Err(error.into()),
                _ => {
                    let worlds = registry::all();
                    let known: Vec<&str> =
                        agents::all().iter().map(|agent| agent.name).chain(worlds.iter().map(|world| world.name.as_str())).collect();
                    let hint = names::hint(name, &known);
                    let near = if hint.starts_with("did you mean") { format!("; {hint}") } else { String::new() };
                    let expected = "agents, environments, presets, settings, or the name of an agent or an environment".into();
                    Err(Error::Parse { what: "list".into(), expected, got: format!("{name}{near}") })
                }
            };
        }
    }
    Ok(0)
}

/// Lists the presets for an environment, and the agents that learn in it with the settings of `Config::default`.
fn list_world(world: &gradus::envs::EnvSpec) -> Result<u8, Error> {
    presets(Some(&world.name))?;
    let presets = agents::presets();
    let (own, kinds) = (preset_environment(&world.name), kinds(world));
    let fits = |environment: &str| environment == own || kinds.contains(&environment);
    let has_preset = |name: &str| presets.iter().any(|preset| preset.agent == name && fits(preset.environment));
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
    say_wrapped(
        &format!("  {:<width$}", "gym:ID"),
        "an environment of Gymnasium, in Python, such as gym:LunarLander-v3 (the guide gymnasium)",
    );
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
pub(crate) fn presets(of: Option<&str>) -> Result<u8, Error> {
    let agent = of.and_then(|name| agents::find(name).ok());
    let world = of.filter(|_| agent.is_none()).map(registry::find).transpose()?;
    let of = agent.map(|agent| agent.name.to_owned()).or(world.as_ref().map(|world| preset_environment(&world.name).into_owned()));
    let kinds = world.as_ref().map_or(&[][..], kinds);
    // a preset for any environment is one for those that its agent accepts
    let accepts = |agent: &str| {
        let config = world.as_ref().map(|world| Config::preset_in(agent, world, None));
        config.is_some_and(|config| config.is_ok_and(|config| config.world().is_ok_and(|world| config.build(&world).is_ok())))
    };
    let is_meant = |preset: &Preset| match of.as_deref() {
        Some(of) if of == preset.agent || of == preset.environment => true,
        Some(_) => kinds.contains(&preset.environment) && accepts(preset.agent),
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
pub(crate) fn settings(agent: Option<&str>) -> Result<u8, Error> {
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
            say_wrapped(
                "# ",
                &format!(
                    "the values are built in; presets change them, and `{} list --settings ppo` shows those of an agent's default preset",
                    program_name()
                ),
            );
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
