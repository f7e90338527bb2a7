//! Q-learning: off-policy control (Watkins, 1989).

use gradus_base::settings;

use super::agent::{Learning, Rule, Seen, TableConfig, preset};
use super::{ActionValues, Experience};
use crate::config::{AgentConfig, AgentKind, Preset, Setup};
use crate::error::ConfigError;

/// Updates Q(S, A) += alpha (R + gamma max_a Q(S', a) - Q(S, A)) (equation 6.8). Q(S', a) is 0 if the process terminated. The target
/// assumes greedy actions from S' on, even if the agent explores.
///
/// ```
/// use gradus_agents::tabular::{ActionValues, Experience, q_learning};
///
/// let mut q = ActionValues::new(2, 2, 0.0);
/// *q.at_mut(1, 0) = 3.0;
/// q_learning(&mut q, Experience { state: 0, action: 1, reward: -1.0, next: 1, terminated: false }, 0.5, 0.9);
/// assert!((q.row(0)[1] - 0.85).abs() < 1e-12); // half of the target -1 + 0.9 x 3
/// ```
pub fn q_learning(q: &mut ActionValues, step: Experience, alpha: f64, gamma: f64) {
    let after = if step.terminated { 0.0 } else { q.best(step.next) };
    let value = q.at_mut(step.state, step.action);
    *value += alpha * (step.reward + gamma * after - *value);
}

settings! {
    /// The settings of Q-learning.
    #[derive(Clone, Debug, PartialEq)]
    pub struct QLearningConfig {
        ..
        /// The settings that tabular agents share.
        pub table: TableConfig,
    }
}

impl AgentConfig for QLearningConfig {
    const NAME: &'static str = "q-learning";
    const ABOUT: &'static str = "tabular Q-learning: off-policy control";
    const PRESETS: &'static [Preset] = &[preset(Self::NAME)];
    const HAS_ACTOR_CRITIC: bool = false;

    fn build(&self, setup: &Setup<'_>) -> Result<AgentKind, ConfigError> {
        self.table.built(setup, QLearning)
    }

    fn discounts(&self) -> (f32, f32) {
        (self.table.gamma as f32, 1.0)
    }

    fn scheduled(&self, steps: u64, done: u64) -> Vec<(&'static str, f64)> {
        self.table.scheduled(steps, done)
    }
}

struct QLearning;

impl Rule for QLearning {
    fn learn(&mut self, Seen { step, .. }: &Seen, Learning { table, sizes, gamma, .. }: Learning<'_>) {
        let alpha = sizes.next(table.q.place(step.state, step.action));
        q_learning(&mut table.q, *step, alpha, gamma);
    }
}
