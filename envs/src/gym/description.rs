//! What a worker says of an environment.

use serde_json::Value as Json;

use super::worker::PROTOCOL;
use crate::Space;

/// What is known of an environment of Gymnasium.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// The name of its class.
    pub class: String,
    /// The observation space: a box, in which discrete parts are one-hot codes.
    pub observation_space: Space,
    /// The action space.
    pub action_space: Space,
    /// The names of the parts of an observation, in order, and how many numbers each has.
    pub parts: Vec<(String, usize)>,
    /// The parts of an observation that have no numbers and are left out.
    pub left_out: Vec<String>,
    /// The number of states, if observations are one-hot codes of a [`Discrete`](Space::Discrete) space.
    pub states: Option<usize>,
    /// The number of steps after which episodes are truncated, if there is a limit.
    pub max_episode_steps: Option<u32>,
    /// The mean return at which Gymnasium counts it as solved.
    pub reward_threshold: Option<f64>,
    /// The interpreter.
    pub executable: String,
    /// The versions of Python, NumPy, Gymnasium and the environment's package.
    pub versions: Vec<(String, String)>,
    /// Whether all numbers of an observation are bytes.
    pub(super) is_byte: bool,
}

impl Description {
    pub(super) fn parse(json: &Json) -> Result<Self, String> {
        let unexpected = |what: &str| format!("the worker's description: expected {what}, got {}", json[what]);
        let number = |json: &Json, what: &str| json[what].as_u64().ok_or_else(|| unexpected(what));
        match json["protocol"].as_u64() {
            Some(PROTOCOL) => {}
            _ => return Err(format!("expected a worker of protocol {PROTOCOL}, got {}", json["protocol"])),
        }
        let width = number(json, "width")? as usize;
        let observation_space = Space::Box { low: bounds(json, "low", width)?, high: bounds(json, "high", width)? };
        let actions = &json["actions"];
        let action_space = match actions["kind"].as_str() {
            Some("discrete") => Space::Discrete(u32::try_from(number(actions, "n")?).map_err(|_| unexpected("actions"))?),
            Some("box") => {
                let width = number(actions, "width")? as usize;
                Space::Box { low: bounds(actions, "low", width)?, high: bounds(actions, "high", width)? }
            }
            Some("multi_discrete") => {
                let size = |json: &Json| json.as_u64().and_then(|size| u32::try_from(size).ok());
                let sizes = actions["sizes"].as_array().and_then(|sizes| sizes.iter().map(size).collect());
                Space::MultiDiscrete(sizes.ok_or_else(|| unexpected("actions"))?)
            }
            _ => return Err(unexpected("actions")),
        };
        action_space.check("actions")?;
        let texts = |json: &Json| json.as_str().map(Into::into);
        let list = |what: &str| json[what].as_array().ok_or_else(|| unexpected(what));
        let parts = list("parts")?.iter().map(|part| Some((texts(&part[0])?, part[1].as_u64()? as usize)));
        let versions = json["versions"].as_object().ok_or_else(|| unexpected("versions"))?;
        Ok(Self {
            class: texts(&json["class"]).unwrap_or_default(),
            observation_space,
            action_space,
            parts: parts.collect::<Option<_>>().ok_or_else(|| unexpected("parts"))?,
            left_out: list("left_out")?.iter().filter_map(texts).collect(),
            states: json["states"].as_u64().map(|states| states as usize),
            max_episode_steps: json["max_episode_steps"].as_u64().and_then(|steps| u32::try_from(steps).ok()),
            reward_threshold: json["reward_threshold"].as_f64(),
            executable: texts(&json["executable"]).unwrap_or_default(),
            versions: versions.iter().filter_map(|(name, version)| Some((name.clone(), texts(version)?))).collect(),
            is_byte: json["is_byte"].as_bool().ok_or_else(|| unexpected("is_byte"))?,
        })
    }
}

/// Bounds of a box: one number for all of its dimensions, or one for each. Infinities are texts.
fn bounds(json: &Json, what: &str, width: usize) -> Result<Vec<f32>, String> {
    let unexpected = || format!("the worker's description: {what}: expected {width} numbers");
    let number = |json: &Json| json.as_f64().or_else(|| json.as_str()?.parse().ok()).map(|number| number as f32);
    let numbers: Vec<f32> = json[what].as_array().and_then(|all| all.iter().map(number).collect()).ok_or_else(unexpected)?;
    match numbers[..] {
        [one] => Ok(vec![one; width]),
        _ if numbers.len() == width => Ok(numbers),
        _ => Err(unexpected()),
    }
}
