//! What is put between the world and the agent.

use gradus_nets::settings;
use serde::{Deserialize, Serialize};

settings! {
    /// What a world looks like to the agent.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct WrapperConfig {
        /// Whether observations are brought to mean 0 and variance 1.
        pub normalise_observations: bool = false,
        /// Whether rewards are divided by the standard deviation of discounted returns; the returns that are reported are not.
        pub normalise_rewards: bool = false,
        /// The discount of those returns, 0 to 1.
        pub reward_discount: f64 = 0.99,
        /// Rewards are clipped to plus or minus this before anything else; `inf`: they are not.
        pub clip_reward: f32 = f32::INFINITY,
        /// So many of the latest observations are shown together; 1: the latest only.
        pub frame_stack: usize = 1,
        /// Whether the elapsed time is part of the observation.
        pub time_aware: bool = false,
    }
}
