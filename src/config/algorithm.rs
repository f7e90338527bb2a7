//! Which algorithm learns: a choice between sections of the configuration.

use gradus_agents::{A2cConfig, GrpoConfig, PpoConfig, ReinforceConfig, TrpoConfig};
use gradus_envs::names;
use serde::{Deserialize, Serialize};

use crate::Error;

/// The agents there are: name and what it is.
pub const AGENTS: [(&str, &str); 5] = [
    ("reinforce", "REINFORCE: whole episodes, less a baseline: none, a running mean, a critic, a greedy episode, the others of a group"),
    ("a2c", "advantage actor-critic: n-step or GAE advantages, one step per rollout"),
    ("trpo", "trust region policy optimisation: natural gradient and line search"),
    ("ppo", "proximal policy optimisation: clipped surrogate or KL penalty, and GAE"),
    ("grpo", "group-relative policy optimisation: episodes compared with others that began alike, no critic"),
];

/// An algorithm with its settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(clippy::large_enum_variant)] // there is one per run
pub enum Algorithm {
    /// REINFORCE.
    Reinforce(ReinforceConfig),
    /// Advantage actor-critic.
    A2c(A2cConfig),
    /// Trust region policy optimisation.
    Trpo(TrpoConfig),
    /// Proximal policy optimisation.
    Ppo(PpoConfig),
    /// Group-relative policy optimisation.
    Grpo(GrpoConfig),
}

impl Algorithm {
    /// The algorithm called `name`, with its default settings.
    pub fn named(name: &str) -> Result<Self, Error> {
        match name {
            "reinforce" => Ok(Algorithm::Reinforce(ReinforceConfig::default())),
            "a2c" => Ok(Algorithm::A2c(A2cConfig::default())),
            "trpo" => Ok(Algorithm::Trpo(TrpoConfig::default())),
            "ppo" => Ok(Algorithm::Ppo(PpoConfig::default())),
            "grpo" => Ok(Algorithm::Grpo(GrpoConfig::default())),
            _ => Err(Error::Unknown { what: "agent", name: name.into(), hint: names::hint(name, &AGENTS.map(|(name, _)| name)) }),
        }
    }

    /// Gamma, and the lambda with which GAE is what the agent takes for advantages over a critic: REINFORCE takes whole returns. An agent
    /// without a critic has those of PPO on texts.
    ///
    /// ```
    /// let of = |agent, settings: [&str; 2]| -> Result<(f32, f32), gradus::Error> {
    ///     let config = gradus::Config::preset(agent, "addition", None)?;
    ///     Ok(settings.iter().try_fold(config, |config, setting| config.with_setting(setting))?.algorithm.discounts())
    /// };
    /// assert_eq!(of("a2c", ["a2c.gamma=0.5", "a2c.gae_lambda=0.75"])?, (0.5, 0.75));
    /// assert_eq!(of("ppo", ["ppo.gamma=0.5", "ppo.gae_lambda=0.75"])?, (0.5, 0.75));
    /// assert_eq!(of("reinforce", ["reinforce.gamma=0.5", "reinforce.baseline=value"])?, (0.5, 1.0));
    /// # Ok::<(), gradus::Error>(())
    /// ```
    pub fn discounts(&self) -> (f32, f32) {
        match self {
            Algorithm::Reinforce(config) => (config.gamma, 1.0),
            Algorithm::A2c(config) => (config.gamma, config.gae_lambda),
            Algorithm::Trpo(config) => (config.gamma, config.gae_lambda),
            Algorithm::Ppo(config) => (config.gamma, config.gae_lambda),
            Algorithm::Grpo(_) => (1.0, 0.95),
        }
    }
}
