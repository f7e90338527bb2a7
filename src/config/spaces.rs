//! Settings of an environment without a preset of its own, by its spaces: where presets are looked for, and what Gymnasium's environments need.

use std::borrow::Cow;

use gradus_agents::registry as agents;
use gradus_envs::{EnvSpec, Space, gym, registry};
use gradus_nets::Activation;

use super::{Config, Network, is_text};

/// Returns the name under which presets of an environment are found. Of `gym:` names this is the identifier, without the package and the arguments;
/// or the environment of ours that is the same, as `cartpole` of `gym:CartPole-v1`.
pub fn preset_environment(environment: &str) -> Cow<'_, str> {
    let Some(id) = gym::id(environment) else { return environment.into() };
    let id = id.rsplit(['/', ':']).next().unwrap_or(id);
    let ours = registry::all().into_iter().find(|world| world.gymnasium_id.as_deref() == Some(id));
    ours.map_or(Cow::Borrowed(id), |world| world.name.into())
}

/// Returns the kinds of environments to which this one belongs, whose presets fit it, the best first: `text`; `chat` if it is in the language of a pretrained model; or of Gymnasium's
/// environments `atari` or, with continuous actions, `continuous`; and `any`.
pub fn kinds(world: &EnvSpec) -> &'static [&'static str] {
    match world.env().action_space() {
        _ if world.text.as_ref().is_some_and(|text| text.task.vocabulary().language().is_some()) => &["chat"],
        _ if is_text(world) => &["text"],
        Space::Discrete(_) if gym::is_atari(&world.name) => &["atari", "any"],
        Space::Box { .. } if gym::is_gym(&world.name) => &["continuous", "any"],
        _ => &["any"],
    }
}

/// Whether an agent has a preset of its own for an environment.
fn has_own(agent: &str, environment: &str) -> bool {
    let names: &[&str] =
        if gym::is_atari(environment) { &[&preset_environment(environment), "atari"] } else { &[&preset_environment(environment)] };
    agents::presets().iter().any(|preset| preset.agent == agent && names.contains(&preset.environment))
}

/// The least pixels in a direction that the trunk `nature` needs.
const SMALLEST: usize = 36;

/// The largest number of an observation that networks read as it is.
const MODERATE: f32 = 10.0;
/// Bounds from here on are those of numbers that have none.
const NO_BOUND: f32 = 1e6;

/// Returns the largest bound of the observations of one of Gymnasium's environments without a preset, if that is why they are normalised. An
/// actor-critic normalises numbers without bounds, too.
fn wide(config: &Config, world: &EnvSpec) -> Option<f32> {
    if !gym::is_gym(&world.name) || has_own(&config.agent, &world.name) {
        return None;
    }
    let Space::Box { low, high } = world.env().observation_space() else { return None };
    let largest = low.iter().chain(&high).fold(0.0, |largest: f32, bound| largest.max(bound.abs()));
    let is_wide = largest > MODERATE && (largest < NO_BOUND || config.has_actor_critic());
    is_wide.then_some(largest)
}

/// Changes the settings of an environment without a preset as its spaces need it.
pub(super) fn adapted(mut config: Config, world: &EnvSpec) -> Config {
    config.wrappers.normalise_observations |= wide(&config, world).is_some();
    // one network for both takes half the time; TRPO's trust region is of the actor alone
    let shares = config.has_actor_critic() && config.agent != "trpo";
    let Space::Image(image) = world.env().observation_space() else { return config };
    // presets for numbers normalise them; images are divided by their largest number
    config.wrappers.normalise_observations = false;
    if let Network::Perceptron(network) = &mut config.network
        && network.trunk.is_none()
    {
        let (trunk, hidden) = if image.height.min(image.width) >= SMALLEST { ("nature", 512) } else { ("arcade", 128) };
        network.trunk = trunk.parse().expect("the name of a trunk");
        (network.hidden, network.activation, network.shared) = (vec![hidden], Activation::Relu, shares);
    }
    config
}

/// Returns one line about the default settings of an agent in one of Gymnasium's environments without a preset: what they are.
pub fn about_defaults(config: &Config, world: &EnvSpec) -> Option<String> {
    if !gym::is_gym(&world.name) || has_own(&config.agent, &world.name) {
        return None;
    }
    let is_known = |kind: &&&str| agents::presets().iter().any(|preset| (preset.agent, preset.environment) == (&config.agent, kind));
    let of = match kinds(world).iter().find(is_known) {
        Some(&"continuous") => "those for continuous actions",
        Some(_) => "those for any environment",
        None => "the defaults of the agent",
    };
    let reason = match wide(config, world).filter(|_| config.wrappers.normalise_observations) {
        Some(bound) if bound < NO_BOUND => format!("; observations are normalised, because their numbers go to {bound}"),
        Some(_) => "; observations are normalised, because their numbers have no bounds".into(),
        None => String::new(),
    };
    Some(format!("{} has no preset for this environment; its settings are {of}{reason}", config.agent))
}
