//! Sarsa: on-policy control (Rummery and Niranjan, 1994).

use gradus_base::settings;

use super::agent::{Learning, Rule, Seen, TableConfig, preset};
use super::{ActionValues, Experience};
use crate::config::{AgentConfig, AgentKind, Preset, Setup};
use crate::error::ConfigError;

/// Updates Q(S, A) += alpha (R + gamma Q(S', A') - Q(S, A)) (equation 6.7). Q(S', A') is 0 if the process terminated. A' is the action
/// taken in S', so the target estimates the value of the policy that the agent follows, exploration included.
///
/// ```
/// use gradus_agents::tabular::{ActionValues, Experience, sarsa};
///
/// let mut q = ActionValues::new(2, 2, 0.0);
/// (*q.at_mut(1, 0), *q.at_mut(1, 1)) = (3.0, -2.0);
/// sarsa(&mut q, Experience { state: 0, action: 1, reward: -1.0, next: 1, terminated: false }, 1, 0.5, 0.9);
/// assert!((q.row(0)[1] + 1.4).abs() < 1e-12); // half of the target -1 - 0.9 x 2
/// ```
pub fn sarsa(q: &mut ActionValues, step: Experience, next_action: usize, alpha: f64, gamma: f64) {
    let after = if step.terminated { 0.0 } else { q.row(step.next)[next_action] };
    let value = q.at_mut(step.state, step.action);
    *value += alpha * (step.reward + gamma * after - *value);
}

settings! {
    /// The settings of Sarsa.
    #[derive(Clone, Debug, PartialEq)]
    pub struct SarsaConfig {
        ..
        /// The settings that tabular agents share.
        pub table: TableConfig,
    }
}

impl AgentConfig for SarsaConfig {
    const NAME: &'static str = "sarsa";
    const ABOUT: &'static str = "tabular Sarsa: on-policy control";
    const PRESETS: &'static [Preset] = &[preset(Self::NAME)];
    const HAS_ACTOR_CRITIC: bool = false;

    fn build(&self, setup: &Setup<'_>) -> Result<AgentKind, ConfigError> {
        self.table.built(setup, Sarsa)
    }

    fn discounts(&self) -> (f32, f32) {
        (self.table.gamma as f32, 1.0)
    }

    fn scheduled(&self, steps: u64, done: u64) -> Vec<(&'static str, f64)> {
        self.table.scheduled(steps, done)
    }
}

struct Sarsa;

impl Rule for Sarsa {
    fn needs_next_action(&self) -> bool {
        true
    }

    fn learn(&mut self, Seen { step, next_action, .. }: &Seen, Learning { table, sizes, gamma, .. }: Learning<'_>) {
        let alpha = sizes.next(table.q.place(step.state, step.action));
        sarsa(&mut table.q, *step, *next_action, alpha, gamma);
    }
}
