//! Expected Sarsa (van Seijen et al., 2009).

use gradus_base::settings;

use super::agent::{Learning, Rule, Seen, TableConfig, preset};
use super::{ActionValues, Experience};
use crate::config::{AgentConfig, AgentKind, Preset, Setup};
use crate::error::ConfigError;

/// Updates Q(S, A) += alpha (R + gamma sum_a pi(a|S') Q(S', a) - Q(S, A)) (equation 6.9), where pi is epsilon-greedy. The expectation takes the place of
/// Sarsa's next action, whose variance it removes. Q(S', a) is 0 if the process terminated. With `epsilon` 0 this is Q-learning.
///
/// ```
/// use gradus_agents::tabular::{ActionValues, Experience, expected_sarsa};
///
/// let mut q = ActionValues::new(2, 2, 0.0);
/// (*q.at_mut(1, 0), *q.at_mut(1, 1)) = (3.0, -1.0);
/// expected_sarsa(&mut q, Experience { state: 0, action: 1, reward: -1.0, next: 1, terminated: false }, 0.5, 0.5, 1.0);
/// assert_eq!(q.row(0)[1], 0.5); // half of the target -1 + 0.5 x 3 + 0.5 x 1
/// ```
pub fn expected_sarsa(q: &mut ActionValues, step: Experience, epsilon: f64, alpha: f64, gamma: f64) {
    let after = if step.terminated { 0.0 } else { (1.0 - epsilon) * q.best(step.next) + epsilon * q.mean(step.next) };
    let value = q.at_mut(step.state, step.action);
    *value += alpha * (step.reward + gamma * after - *value);
}

settings! {
    /// The settings of Expected Sarsa.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ExpectedSarsaConfig {
        ..
        /// The settings that tabular agents share.
        pub table: TableConfig,
    }
}

impl AgentConfig for ExpectedSarsaConfig {
    const NAME: &'static str = "expected-sarsa";
    const ABOUT: &'static str = "tabular Expected Sarsa: on-policy control without the variance of the next action";
    const PRESETS: &'static [Preset] = &[preset(Self::NAME)];
    const HAS_ACTOR_CRITIC: bool = false;

    fn build(&self, setup: &Setup<'_>) -> Result<AgentKind, ConfigError> {
        self.table.built(setup, ExpectedSarsa)
    }

    fn discounts(&self) -> (f32, f32) {
        (self.table.gamma as f32, 1.0)
    }

    fn scheduled(&self, steps: u64, done: u64) -> Vec<(&'static str, f64)> {
        self.table.scheduled(steps, done)
    }
}

struct ExpectedSarsa;

impl Rule for ExpectedSarsa {
    fn learn(&mut self, Seen { step, .. }: &Seen, Learning { table, sizes, gamma, .. }: Learning<'_>) {
        let alpha = sizes.next(table.q.place(step.state, step.action));
        expected_sarsa(&mut table.q, *step, table.epsilon, alpha, gamma);
    }
}
