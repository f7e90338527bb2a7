//! What is put between the world and the agent.

use serde::{Deserialize, Serialize};

/// What a world looks like to the agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrapperConfig {
    /// Whether observations are brought to mean 0 and variance 1.
    pub normalise_observations: bool,
    /// Whether rewards are divided by the standard deviation of discounted returns; the returns that are reported are not.
    pub normalise_rewards: bool,
    /// The discount of those returns, 0 to 1.
    pub reward_discount: f64,
    /// Rewards are clipped to plus or minus this before anything else; `inf`: they are not.
    pub clip_reward: f32,
    /// So many of the latest observations are shown together; 1: the latest only.
    pub frame_stack: usize,
    /// Whether the elapsed time is part of the observation.
    pub time_aware: bool,
}

impl Default for WrapperConfig {
    fn default() -> Self {
        Self {
            normalise_observations: false,
            normalise_rewards: false,
            reward_discount: 0.99,
            clip_reward: f32::INFINITY,
            frame_stack: 1,
            time_aware: false,
        }
    }
}
