//! The settings of text tasks.

use gradus_envs::text::TextOptions;
use gradus_envs::{EnvError, World};
use gradus_nets::settings;
use serde::{Deserialize, Serialize};

settings! {
    /// The length and penalties of completions on text tasks.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct TextConfig {
        /// Maximum tokens per completion; 0: the limit that the task defines.
        pub max_new_tokens: usize = 0,
        /// Number n of tokens by which a completion may exceed this maximum, with a penalty that rises evenly to 1 (DAPO); 0: none.
        pub overlong_buffer: usize = 0,
        /// Penalty for a completion that is cut off before EOS.
        pub missing_eos_penalty: f64 = 0.0,
        /// Penalty per token of a completion.
        pub length_penalty: f64 = 0.0,
        /// Whether a completion that is cut off counts as truncated instead of terminated, so that the critic bootstraps its value.
        pub length_bootstraps: bool = false,
    }
}

impl TextConfig {
    /// Applies these options to `world`.
    pub(super) fn apply(&self, world: World) -> Result<World, EnvError> {
        if *self == Self::default() {
            return Ok(world); // keeps options that the world already has
        }
        let Self { max_new_tokens, overlong_buffer, missing_eos_penalty, length_penalty, length_bootstraps } = self.clone();
        let max_new_tokens = (max_new_tokens > 0).then_some(max_new_tokens);
        world.with_text_options(TextOptions { max_new_tokens, overlong_buffer, missing_eos_penalty, length_penalty, length_bootstraps })
    }
}
