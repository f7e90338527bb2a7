//! A preset that names a source has that source's numbers, except for the differences that its first lines declare.
//!
//! The tables in `tests/golden/preset_sources.toml` were typed from the sources that they name. Our value coefficient multiplies half of the
//! squared error. In Stable-Baselines3 and rl-zoo it multiplies the whole squared error, so the tables have twice the value of these
//! sources. Only settings are compared, not losses. TRPO's critic loss, for example, is half of sb3-contrib's. That difference only matters
//! because of Adam's epsilon.

use std::collections::BTreeMap;

use gradus::Config;
use gradus::agents::{Preset, registry as agents};
use gradus::envs::{EnvSpec, Image, Space, registry};

/// A preset that names a source, with that source's settings.
struct Claim {
    preset: String,
    theirs: BTreeMap<String, String>,
}

/// Reads the claims that are checked.
fn claims() -> Vec<Claim> {
    let text = std::fs::read_to_string(gradus_testing::golden::path("preset_sources.toml")).unwrap();
    let all: toml::Table = text.parse().unwrap();
    let rows = |table: &toml::Value| -> Vec<(String, String)> {
        let rows = table.as_table().unwrap().iter().filter(|(key, _)| *key != "tables");
        rows.map(|(key, value)| (key.clone(), value.as_str().unwrap().to_owned())).collect()
    };
    let claim = |(preset, own): (&String, &toml::Value)| {
        let tables = own["tables"].as_array().unwrap().iter().map(|name| &all["tables"][name.as_str().unwrap()]);
        Claim { preset: preset.clone(), theirs: tables.chain([own]).flat_map(rows).collect() }
    };
    all["presets"].as_table().unwrap().iter().map(claim).collect()
}

/// Settings that have no effect if another setting has the given value. A setting is not compared if it has no effect in the preset or in
/// the source.
const WITHOUT_EFFECT: &[(&str, &str, &str)] = &[
    ("ppo.kl_stop", "ppo.target_kl", "inf"),
    ("network.gsde_sample_every", "network.gsde", "false"),
    ("dqn.importance_exponent", "dqn.priority_exponent", "0"),
    ("qr-dqn.importance_exponent", "qr-dqn.priority_exponent", "0"),
    ("wrappers.reward_discount", "wrappers.normalise_rewards", "false"),
];

fn file_name(preset: &Preset) -> String {
    format!("{}-{}-{}", preset.environment, preset.agent, preset.name)
}

/// Returns whether a line names a source that this file has tables of.
fn names_a_source(line: &str) -> bool {
    ["rl-zoo", "rl_zoo", "cleanrl", "stable-baselines", "stable_baselines", "sb3"].iter().any(|name| line.to_lowercase().contains(name))
}

/// Returns whether two settings are equal, as numbers if both are numbers.
fn same(a: &str, b: &str) -> bool {
    let number = |text: &str| text.replace('_', "").parse::<f64>().ok();
    match (number(a), number(b)) {
        (Some(a), Some(b)) => a == b,
        _ => a.trim_matches('"') == b.trim_matches('"'),
    }
}

/// Parses the list of `KEY = OURS (there THEIRS)` after `Differences: ` in the comment above a preset's settings, up to the full stop.
fn declared(preset: &Preset) -> BTreeMap<String, (String, String)> {
    let about = preset.about();
    let Some((_, text)) = about.split_once("Differences: ") else {
        assert!(about.contains("No differences."), "{}: expected `Differences: ...` or `No differences.`", file_name(preset));
        return BTreeMap::new();
    };
    let (list, _) = text.split_once(").").unwrap_or_else(|| panic!("{}: expected `).` at the end of the differences", file_name(preset)));
    let difference = |entry: &str| {
        let parts = entry.split_once(" = ").and_then(|(key, values)| Some((key, values.split_once(" (there ")?)));
        let (key, (ours, theirs)) =
            parts.unwrap_or_else(|| panic!("{}: expected `KEY = OURS (there THEIRS)`, got {entry}", file_name(preset)));
        (key.to_owned(), (ours.to_owned(), theirs.to_owned()))
    };
    list.split("), ").map(difference).collect()
}

/// Returns the errors in a preset's claim, one line each.
fn wrong(preset: &Preset, claim: &Claim, settings: &BTreeMap<String, String>) -> Vec<String> {
    let theirs = &claim.theirs;
    let (mut declared, mut wrong) = (declared(preset), Vec::new());
    for (key, ours) in settings {
        if WITHOUT_EFFECT.iter().any(|(of, by, value)| of == key && [settings, theirs].iter().any(|all| same(&all[*by], value))) {
            continue;
        }
        let Some(there) = theirs.get(key) else {
            wrong.push(format!("{key}: expected a row in the tables of the source, got none"));
            continue;
        };
        match declared.remove(key) {
            None if !same(ours, there) => wrong.push(format!("{key} = {ours} (there {there}): not declared")),
            Some(_) if same(ours, there) => wrong.push(format!("{key} = {ours}: declared as a difference, but the source has it too")),
            Some((other, other_there)) if !(same(&other, ours) && same(&other_there, there)) => {
                wrong.push(format!("{key} = {ours} (there {there}): declared as {other} (there {other_there})"));
            }
            _ => {}
        }
    }
    wrong.extend(declared.into_keys().map(|key| format!("{key}: declared as a difference, but is not compared")));
    wrong
}

/// Returns the settings of a preset that are compared with its source.
fn settings(preset: &Preset) -> BTreeMap<String, String> {
    let config = Config::preset_in(preset.agent, &world(preset.environment), Some(preset.name)).unwrap();
    let sections = ["network.", "optimiser.", "wrappers.", &format!("{}.", preset.agent)];
    let counts =
        |key: &str| ["steps", "envs", "reference.coefficient"].contains(&key) || sections.iter().any(|section| key.starts_with(section));
    config.settings().into_iter().filter(|(key, _)| counts(key)).collect()
}

/// Returns the environment of a preset. Gymnasium's need Python; here their names are enough.
fn world(environment: &str) -> EnvSpec {
    let unit = || Space::Box { low: vec![-1.0], high: vec![1.0] };
    registry::find(environment).unwrap_or_else(|_| EnvSpec::of_spaces(&format!("gym:{environment}"), unit(), unit()))
}

fn find(name: &str) -> Preset {
    agents::presets().into_iter().find(|preset| file_name(preset) == name).unwrap_or_else(|| panic!("there is no preset {name}"))
}

#[test]
fn a_preset_that_names_a_source_has_its_numbers_or_declares_the_difference() {
    let mut all = Vec::new();
    for claim in &claims() {
        let preset = &find(&claim.preset);
        assert!(names_a_source(preset.text.lines().next().unwrap()), "{}: the first line names no source", claim.preset);
        all.extend(wrong(preset, claim, &settings(preset)).into_iter().map(|line| format!("{}: {line}", claim.preset)));
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[test]
fn a_preset_whose_first_line_names_a_source_has_a_table() {
    let claims = claims();
    for preset in agents::presets().iter().filter(|preset| names_a_source(preset.text.lines().next().unwrap_or_default())) {
        let is_there = claims.iter().any(|claim| claim.preset == file_name(preset));
        assert!(
            is_there,
            "{}: its first line names a source, but tests/golden/preset_sources.toml has no section for it",
            file_name(preset)
        );
    }
}

/// CartPole has presets of its own, PQN on MountainCar has none called `default`, FrozenLake and the texts have none.
#[test]
fn presets_for_any_environment_fill_the_gaps_on_everything_but_texts() {
    let rate =
        |agent: &str, environment: &str| Config::preset(agent, environment, None).map(|config| config.optimiser.learning_rate).unwrap();
    assert_eq!(["cartpole", "frozen-lake", "copy"].map(|environment| rate("dqn", environment)), [5e-4, 1e-3, 2.5e-4]);
    assert_eq!(["cartpole", "mountain-car", "copy"].map(|environment| rate("pqn", environment)), [1e-4, 1e-3, 2.5e-4]);
    let cleanrl = Config::preset("pqn", "mountain-car", Some("cleanrl")).unwrap();
    assert_eq!(cleanrl.optimiser.learning_rate, 2.5e-4);
    let error = Config::preset("dqn", "frozen-lake", Some("cleanrl")).unwrap_err().to_string();
    assert_eq!(error, "unknown preset `cleanrl`; expected one of: default");
    let error = Config::preset("dqn", "acrobot", Some("no-such")).unwrap_err().to_string();
    assert_eq!(error, "unknown preset `no-such`; expected one of: default, cleanrl");
}

/// Tests the check itself, on a preset without differences and on one with a difference.
#[test]
fn undeclared_and_wrong_differences_are_found() {
    let claims = claims();
    let claim = |name: &str| claims.iter().find(|claim| claim.preset == name).unwrap();
    let (zoo, trpo) = (&find("cartpole-ppo-zoo"), &find("acrobot-trpo-default"));
    let with = |preset: &Preset, key: &str, value: &str| {
        let mut changed = settings(preset);
        changed.insert(key.into(), value.into());
        changed
    };
    let message = wrong(zoo, claim("cartpole-ppo-zoo"), &with(zoo, "ppo.gamma", "0.97"));
    assert_eq!(message, ["ppo.gamma = 0.97 (there 0.98): not declared"]);
    let message = wrong(trpo, claim("acrobot-trpo-default"), &with(trpo, "steps", "100000"));
    assert_eq!(message, ["steps = 100000: declared as a difference, but the source has it too"]);
    let message = wrong(trpo, claim("acrobot-trpo-default"), &with(trpo, "steps", "200000"));
    assert_eq!(message, ["steps = 200000 (there 1e5): declared as 300_000 (there 100_000)"]);
    let message = wrong(zoo, claim("cartpole-ppo-zoo"), &with(zoo, "ppo.another", "1"));
    assert_eq!(message, ["ppo.another: expected a row in the tables of the source, got none"]);
    let text = zoo.text.replace("No differences.", "Differences: ppo.gama = 1 (there 2).");
    let message = wrong(&Preset { text: text.leak(), ..*zoo }, claim("cartpole-ppo-zoo"), &settings(zoo));
    assert_eq!(message, ["ppo.gama: declared as a difference, but is not compared"]);
}

/// The tables of docs/coming-from-sb3.md have the defaults of an environment without presets of its own: the first value of a cell is that of the table's first agent.
#[test]
fn the_defaults_beside_stable_baselines3_are_the_ones_here() {
    let page = std::fs::read_to_string(gradus_testing::root().join("docs/coming-from-sb3.md")).unwrap();
    let (mut agent, mut checked) = (String::new(), BTreeMap::<String, usize>::new());
    let next = page.lines().skip(1).chain([""]);
    for (line, next) in page.lines().zip(next).filter(|(line, _)| line.starts_with("| ")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [first, there, settings, here] = cells[..] else { continue };
        if next.starts_with("| ---") {
            let named = first.split([',', ' ']).next().unwrap_or_default().to_lowercase();
            agent = if there == "default in SB3" { named } else { String::new() };
            continue;
        }
        let Ok(entry) = agents::find(&agent) else { continue };
        let world = if ["sac", "td3", "ddpg"].contains(&entry.name) { "pendulum" } else { "frozen-lake" };
        // an agent without a preset for any environment has the defaults of its settings
        let config = Config::preset(entry.name, world, Some("any")).or_else(|_| Config::preset(entry.name, "frozen-lake", None)).unwrap();
        let known: BTreeMap<String, String> = config.settings().into_iter().collect();
        let key = settings.trim_matches('`').split('`').next().unwrap_or_default();
        let Some(own) = known.get(key) else { continue };
        let said = here.replace(['*', '`', '"', '\u{a0}'], "").replace('\u{2212}', "-").replace("[256, 256]", "[256,256]");
        let said = said.split([';', ':']).next().unwrap_or_default().trim_end_matches('.');
        // `1 000 000`; then what follows is a word
        let digits = said.replace(' ', "");
        let said = if digits.parse::<f64>().is_ok() { digits } else { said.split([',', ' ']).next().unwrap_or_default().to_owned() };
        let own = own.replace(['"', ' '], "");
        let equal = match (said.parse::<f64>(), own.parse::<f64>()) {
            (Ok(said), Ok(own)) => said == own || (said - own).abs() <= 1e-6 * own.abs(),
            _ => said == own || here.replace(' ', "").contains(&own),
        };
        assert!(equal, "{agent}: {key} is {own}, and the page says {here}");
        *checked.entry(agent.clone()).or_default() += 1;
    }
    assert!(
        ["ppo", "a2c", "trpo", "dqn", "sac", "td3"].iter().all(|agent| checked.get(*agent).is_some_and(|rows| *rows >= 4)),
        "{checked:?}"
    );
}

/// Environments of Gymnasium without presets have settings that follow from their spaces, and one line says what they are.
#[test]
fn settings_of_unknown_environments_follow_from_their_spaces() {
    let numbers = |n: usize, bound: f32| Space::Box { low: vec![-bound; n], high: vec![bound; n] };
    let bytes = || Space::Box { low: vec![0.0; 9], high: vec![255.0; 9] };
    let image = || Space::Image(Image { frames: 1, height: 96, width: 96, channels: 3, largest: 255 });
    let actions = || Space::MultiDiscrete(vec![3, 2]);
    let of = |agent: &str, name: &str, observations: Space, actions: Space| {
        let world = EnvSpec::of_spaces(name, observations, actions);
        let config = Config::preset_in(agent, &world, None).unwrap();
        let about = gradus::config::spaces::about_defaults(&config, &world);
        let is_image = matches!(world.env().observation_space(), Space::Image(_));
        assert_eq!(config.to_toml().contains("trunk = \"nature\""), is_image);
        (config.wrappers.normalise_observations, config.wrappers.normalise_rewards, config.steps, about)
    };
    let unknown = |agent: &str, reason: &str| Some(format!("{agent} has no preset for this environment; its settings are {reason}"));
    let table = [
        (of("ppo", "gym:My-v0", numbers(3, 1.0), numbers(2, 1.0)), (true, true, 1_000_000, unknown("ppo", "those for continuous actions"))),
        (of("ppo", "gym:My-v0", numbers(3, 1.0), actions()), (false, false, 100_000, unknown("ppo", "the defaults of the agent"))),
        (
            of("a2c", "gym:a.b:My-v0?x=1", bytes(), actions()),
            (
                true,
                false,
                100_000,
                unknown("a2c", "the defaults of the agent; observations are normalised, because their numbers go to 255"),
            ),
        ),
        (
            of("reinforce", "gym:My-v0", numbers(3, f32::INFINITY), Space::Discrete(2)),
            (
                true,
                false,
                100_000,
                unknown("reinforce", "the defaults of the agent; observations are normalised, because their numbers have no bounds"),
            ),
        ),
        // networks of action values read numbers without bounds as they are
        (
            of("sac", "gym:My-v0", numbers(3, f32::INFINITY), numbers(2, 1.0)),
            (false, false, 100_000, unknown("sac", "those for any environment")),
        ),
        (of("ppo", "mine", bytes(), Space::Discrete(2)), (false, false, 100_000, None)),
        // the settings for continuous actions and MiniGrid's presets normalise numbers
        (of("ppo", "gym:My-v0", image(), numbers(2, 1.0)), (false, true, 1_000_000, unknown("ppo", "those for continuous actions"))),
        (of("ppo", "gym:x/MiniGrid-DoorKey-5x5-v0?wrapper=RGB", image(), Space::Discrete(7)), (false, true, 100_000, None)),
        (of("ppo", "gym:x/MiniGrid-DoorKey-5x5-v0?keys=image", bytes(), Space::Discrete(7)), (true, true, 100_000, None)),
    ];
    for (got, expected) in table {
        assert_eq!(got, expected);
    }
    // an environment that is ours has our presets
    let cartpole = EnvSpec::of_spaces("gym:CartPole-v1", numbers(4, f32::MAX), Space::Discrete(2));
    let (theirs, ours) = (Config::preset_in("ppo", &cartpole, None).unwrap(), Config::preset("ppo", "cartpole", None).unwrap());
    assert_eq!(Config { environment: ours.environment.clone(), ..theirs }, ours);
}

#[test]
fn a_folder_of_presets_may_have_identifiers_of_gymnasium() {
    let dir = gradus_testing::tempdir().unwrap();
    for (environment, steps) in [("Own-v3", 12_345), ("continuous", 54_321)] {
        let folder = dir.path().join("ppo").join(environment);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("mine.toml"), format!("# Ours.\nsteps = {steps}\n")).unwrap();
    }
    gradus::config::register_presets(dir.path()).unwrap();
    let steps = |name: &str, actions| {
        let unit = Space::Box { low: vec![-1.0], high: vec![1.0] };
        Config::preset_in("ppo", &EnvSpec::of_spaces(name, unit, actions), Some("mine")).map(|config| config.steps)
    };
    assert_eq!(steps("gym:pack/Own-v3", Space::Discrete(2)).unwrap(), 12_345);
    assert_eq!(steps("gym:Other-v3", Space::Box { low: vec![0.0], high: vec![1.0] }).unwrap(), 54_321);
    let wrong = dir.path().join("ppo").join("NoVersion");
    std::fs::create_dir_all(&wrong).unwrap();
    assert!(gradus::config::register_presets(dir.path()).is_err());
}

/// A run folder of an earlier version lacks the settings that are newer: they must have a default. `tests/golden/settings_of_format_2.txt` has the ones that it has; a new setting is
/// not added there.
#[test]
fn newer_settings_may_be_absent() {
    let old = std::fs::read_to_string(gradus_testing::golden::path("settings_of_format_2.txt")).unwrap();
    let old: Vec<&str> = old.lines().collect();
    let mut newer = Vec::new();
    for agent in agents::all() {
        for environment in ["cartpole", "addition"] {
            let config = Config::preset(agent.name, environment, None).unwrap();
            for (key, _) in config.settings().into_iter().filter(|(key, _)| !old.contains(&key.as_str())) {
                let mut table: toml::Table = config.to_toml().parse().unwrap();
                match key.split_once('.') {
                    Some((section, name)) => table[section].as_table_mut().unwrap().remove(name),
                    None => table.remove(&key),
                };
                let read = Config::from_toml(&table.to_string());
                assert_eq!(read.map(|read| read.to_toml()).as_ref(), Ok(&config.to_toml()), "{key} of {}", agent.name);
                newer.push(key);
            }
        }
    }
    // a setting with a preset's value has it in every file, so only defaults are compared
    assert!(newer.iter().any(|key| key == "wrappers.atari") && newer.iter().any(|key| key == "network.trunk"), "{newer:?}");
}
