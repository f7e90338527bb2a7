//! What a world of text asks of its completions.

use gradus_envs::text::TextOptions;
use gradus_envs::{EnvError, World};
use gradus_nets::settings;
use serde::{Deserialize, Serialize};

settings! {
    /// What a world of text asks of its completions.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct TextConfig {
        /// Tokens of a completion, at most; 0: as many as the task says.
        pub max_new_tokens: usize = 0,
        /// What a completion loses that was cut before its end.
        pub missing_eos_penalty: f64 = 0.0,
        /// What a completion loses for each of its tokens.
        pub length_penalty: f64 = 0.0,
        /// Whether a completion that was cut counts as one that would have gone on, so that the critic says what is missing.
        pub length_bootstraps: bool = false,
    }
}

impl TextConfig {
    /// `world` with these options.
    pub(super) fn apply(&self, world: World) -> Result<World, EnvError> {
        if *self == Self::default() {
            return Ok(world); // as it came, whatever its maker has done with it
        }
        let Self { max_new_tokens, missing_eos_penalty, length_penalty, length_bootstraps } = self.clone();
        let max_new_tokens = (max_new_tokens > 0).then_some(max_new_tokens);
        world.with_text_options(TextOptions { max_new_tokens, missing_eos_penalty, length_penalty, length_bootstraps })
    }
}
