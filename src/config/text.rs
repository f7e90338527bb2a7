//! The settings of text tasks.

use gradus_base::settings;
use gradus_envs::text::TextOptions;
use gradus_envs::{EnvError, EnvSpec};
use serde::{Deserialize, Serialize};

settings! {
    /// The length and penalties of completions on text tasks.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)] // older versions have fewer settings
    pub struct TextConfig {
        /// Maximum tokens per completion; 0: the limit that the task defines.
        pub max_new_tokens: usize = 0,
        /// Number n of tokens by which a completion may exceed this maximum, with a penalty that rises evenly to 1 (DAPO); 0: none.
        pub overlong_buffer: usize = 0,
        /// Penalty for a completion that is cut off before EOS.
        pub missing_eos_penalty: f64 = 0.0,
        /// Penalty per token of a completion.
        pub length_penalty: f64 = 0.0,
        /// Hash of the file of a task `file:PATH` when the run was created. The run is refused with another file; empty: no check.
        pub fingerprint: String = String::new(),
        /// Whether a completion that is cut off counts as truncated instead of terminated, so that the critic bootstraps its value.
        pub length_bootstraps: bool = false,
    }
}

impl TextConfig {
    /// Returns the default settings for `world`.
    pub(super) fn of(world: &EnvSpec) -> Self {
        let fingerprint = world.text.as_ref().and_then(|text| text.task.fingerprint()).unwrap_or_default();
        Self { fingerprint, ..Self::default() }
    }

    /// Applies these options to `world`.
    pub(super) fn apply(&self, world: EnvSpec) -> Result<EnvSpec, EnvError> {
        let Self { max_new_tokens, overlong_buffer, missing_eos_penalty, length_penalty, length_bootstraps, fingerprint } = self.clone();
        let found = world.text.as_ref().and_then(|text| text.task.fingerprint()).unwrap_or_default();
        if !fingerprint.is_empty() && found != fingerprint {
            let what = format!(
                "`{}`: expected the file with the hash {fingerprint}, with which the run was created, got one with the hash {found}",
                world.name
            );
            return Err(EnvError::Text(what));
        }
        if *self == (Self { fingerprint, ..Self::default() }) {
            return Ok(world); // keeps options that the world already has
        }
        let max_new_tokens = (max_new_tokens > 0).then_some(max_new_tokens);
        world.with_text_options(TextOptions { max_new_tokens, overlong_buffer, missing_eos_penalty, length_penalty, length_bootstraps })
    }
}
