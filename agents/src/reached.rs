//! How many seeds of each default preset reach a level: `presets/reached.csv`, which `scripts/defaults.sh` measures.

use crate::config::Preset;

/// What the final policies of a preset's seeds have reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reached {
    /// What was measured: the mean `return` of greedy episodes, or a score such as `exact`.
    pub measure: &'static str,
    /// The least value that counts.
    pub level: f64,
    /// Seeds that reach it.
    pub reached: usize,
    /// Seeds that were tried.
    pub seeds: usize,
    /// The median over the seeds.
    pub median: f64,
}

const TABLE: &str = include_str!("../presets/reached.csv");

/// Returns what the preset `preset` of an agent has reached in an environment, if it was measured.
///
/// ```
/// let ppo = gradus_agents::reached("ppo", "cartpole", "default").unwrap();
/// assert_eq!((ppo.level, ppo.reached, ppo.seeds), (475.0, 20, 20));
/// assert_eq!(gradus_agents::reached("ppo", "cartpole", "my-preset"), None);
/// ```
pub fn reached(agent: &str, environment: &str, preset: &str) -> Option<Reached> {
    rows().find(|(key, _)| *key == [agent, environment, preset]).map(|(_, reached)| reached)
}

/// Returns the environments in which a preset was tried, with what it has reached there.
pub fn reached_by(preset: &Preset) -> Vec<(&'static str, Reached)> {
    let is_common = matches!(preset.environment, "any" | "text");
    // an own preset is tried in its environment; one for any environment where an agent has no own one, or under the name `any`
    let is_own = |environment: &str| {
        crate::registry::presets().iter().any(|own| (own.agent, own.environment, own.name) == (preset.agent, environment, preset.name))
    };
    let is_meant = |[agent, environment, name]: [&str; 3]| {
        agent == preset.agent
            && match is_common {
                true => name == "any" || name == preset.name && !is_own(environment),
                false => name == preset.name && environment == preset.environment,
            }
    };
    rows().filter(|(key, _)| is_meant(*key)).map(|([_, environment, _], reached)| (environment, reached)).collect()
}

/// Returns the highest median return that a default preset has in an environment, if one was measured.
pub fn best_known(environment: &str) -> Option<f64> {
    rows().filter(|([_, own, _], it)| *own == environment && it.measure == "return").map(|(_, it)| it.median).reduce(f64::max)
}

fn rows() -> impl Iterator<Item = ([&'static str; 3], Reached)> {
    TABLE.lines().skip(1).filter_map(|line| {
        let cells: Vec<&'static str> = line.split(',').collect();
        let [agent, environment, preset, measure, level, _, seeds, reached, median, _] = cells[..] else { return None };
        let (level, median) = (level.parse().ok()?, median.parse().ok()?);
        let (seeds, reached) = (seeds.parse().ok()?, reached.parse().ok()?);
        Some(([agent, environment, preset], Reached { measure, level, reached, seeds, median }))
    })
}
