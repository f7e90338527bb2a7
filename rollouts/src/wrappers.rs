//! The settings of the wrappers between environment and agent.

use gradus_base::range::{above, at_least, from};
use gradus_base::settings;
use serde::{Deserialize, Serialize};

/// Whether an Atari game is preprocessed, and what an episode is then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Atari {
    /// The environment is used as it is.
    #[default]
    Off,
    /// A whole game.
    Games,
    /// A life; evaluations play whole games.
    Lives,
}

settings! {
    /// The wrappers between environment and agent.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct WrapperConfig {
        /// Whether to normalise observations to mean 0 and variance 1, with running statistics.
        pub normalise_observations: bool = false,
        /// Whether to divide rewards by the standard deviation of discounted returns; reported returns are not affected.
        pub normalise_rewards: bool = false,
        /// Discount of the returns in `normalise_rewards`.
        pub reward_discount: f64 = 0.99 => from(0.0).to(1.0),
        /// Rewards are multiplied by this number before they are clipped and normalised; reported returns are not affected.
        pub reward_scale: f32 = 1.0 => above(0.0),
        /// Rewards are clipped to plus or minus this value before normalisation; `inf`: no clipping.
        pub clip_reward: f32 = f32::INFINITY => above(0.0).or_inf(),
        /// Preprocessing of Atari games (1 to 30 actions without effect at the start, 4 frames for an action, grey pictures of 84 x 84): `games` or `lives`,
        /// which are the episodes of the training; `off`: none.
        #[serde(default)]
        pub atari: Atari = Atari::Off,
        /// Number of latest observations that are stacked; 1: no stacking.
        pub frame_stack: usize = 1 => at_least(1).up_to(1024),
        /// Whether to append the elapsed time to the observation.
        pub time_aware: bool = false,
    }
}
