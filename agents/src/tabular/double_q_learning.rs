//! Double Q-learning: two tables against the maximisation bias (van Hasselt, 2010).

use gradus_base::settings;

use super::agent::{Learning, Rule, Seen, Sizes, TableConfig, preset, sizes};
use super::{ActionValues, Experience, ValueTable};
use crate::config::{AgentConfig, AgentKind, Preset, Setup};
use crate::error::ConfigError;

/// Updates one of two tables, Q1(S, A) += alpha (R + gamma Q2(S', argmax_a Q1(S', a)) - Q1(S, A)) (equation 6.10). The table that chooses the action is
/// not the one that gives its value, so that the largest of several noisy values is not taken for the value of the best action. Q2 is 0 if the process
/// terminated.
///
/// ```
/// use gradus_agents::tabular::{ActionValues, Experience, double_q_learning};
///
/// let [mut q1, mut q2] = [ActionValues::new(2, 2, 0.0), ActionValues::new(2, 2, 0.0)];
/// (*q1.at_mut(1, 1), *q2.at_mut(1, 0), *q2.at_mut(1, 1)) = (5.0, 7.0, 2.0);
/// double_q_learning(&mut q1, &q2, Experience { state: 0, action: 0, reward: 1.0, next: 1, terminated: false }, 0.5, 1.0);
/// assert_eq!(q1.row(0)[0], 1.5); // half of the target 1 + 2: Q1 prefers action 1, whose value in Q2 is 2
/// ```
pub fn double_q_learning(q1: &mut ActionValues, q2: &ActionValues, step: Experience, alpha: f64, gamma: f64) {
    let after = if step.terminated { 0.0 } else { q2.row(step.next)[q1.best_action(step.next)] };
    let value = q1.at_mut(step.state, step.action);
    *value += alpha * (step.reward + gamma * after - *value);
}

settings! {
    /// The settings of double Q-learning.
    #[derive(Clone, Debug, PartialEq)]
    pub struct DoubleQLearningConfig {
        ..
        /// The settings that tabular agents share.
        pub table: TableConfig,
    }
}

impl AgentConfig for DoubleQLearningConfig {
    const NAME: &'static str = "double-q-learning";
    const ABOUT: &'static str = "tabular double Q-learning: two tables, without maximisation bias";
    const PRESETS: &'static [Preset] = &[preset(Self::NAME)];
    const HAS_ACTOR_CRITIC: bool = false;

    fn build(&self, setup: &Setup<'_>) -> Result<AgentKind, ConfigError> {
        let (states, actions) = sizes(setup)?;
        let tables = [(); 2].map(|()| ActionValues::new(states, actions, self.table.initial));
        self.table.built(setup, DoubleQ { tables })
    }

    fn discounts(&self) -> (f32, f32) {
        (self.table.gamma as f32, 1.0)
    }

    fn scheduled(&self, steps: u64, done: u64) -> Vec<(&'static str, f64)> {
        self.table.scheduled(steps, done)
    }
}

/// The agent acts with the mean of both tables.
struct DoubleQ {
    tables: [ActionValues; 2],
}

impl Rule for DoubleQ {
    fn tables(&self) -> usize {
        2
    }

    fn begin(&mut self, table: &ValueTable) {
        self.tables.iter_mut().for_each(|q| q.all_mut().copy_from_slice(table.q.all()));
    }

    fn learn(&mut self, Seen { step, .. }: &Seen, Learning { table, sizes, gamma, stream, .. }: Learning<'_>) {
        let [q1, q2] = &mut self.tables;
        if !table.q.allowed().is_empty() {
            let allowed = &table.q.allowed()[table.q.place(step.next, 0)..table.q.place(step.next + 1, 0)];
            q1.allow(step.next, allowed);
            q2.allow(step.next, allowed);
        }
        // each table has its own number of updates, by which its step size falls
        let place = table.q.place(step.state, step.action);
        match stream.below(2) {
            0 => double_q_learning(q1, q2, *step, sizes.next(place), gamma),
            _ => double_q_learning(q2, q1, *step, sizes.next(table.q.all().len() + place), gamma),
        }
        *table.q.at_mut(step.state, step.action) = 0.5 * (q1.row(step.state)[step.action] + q2.row(step.state)[step.action]);
    }

    fn save(&self) -> Vec<u64> {
        self.tables.iter().flat_map(|q| q.all().iter().map(|value| value.to_bits())).collect()
    }

    fn load(&mut self, words: &[u64], _: Sizes) -> Option<()> {
        let n = self.tables[0].all().len();
        let tables = self.tables.iter_mut().flat_map(ActionValues::all_mut);
        (words.len() == 2 * n).then(|| tables.zip(words).for_each(|(value, word)| *value = f64::from_bits(*word)))
    }
}

#[cfg(test)]
mod tests {
    use gradus_base::random::{Purpose, Stream};

    use super::super::agent::StepSizes;
    use super::*;

    /// Both tables begin with the values of the policy that training begins with: the first update does not forget them.
    #[test]
    fn both_tables_begin_with_the_initial_values() {
        let mut rule = DoubleQ { tables: [(); 2].map(|()| ActionValues::new(2, 1, 0.0)) };
        let mut table = ValueTable { q: ActionValues::new(2, 1, 7.0), v: Vec::new(), epsilon: 0.0 };
        rule.begin(&table);
        let (mut sizes, mut stream) = (StepSizes::new(1e-9, 0.0, 4), Stream::new(1, Purpose::Shuffle, 0));
        let step = Experience { state: 0, action: 0, reward: 0.0, next: 1, terminated: false };
        let seen = Seen { env: 0, step, next_action: 0, probability: 1.0, is_last: false };
        rule.learn(&seen, Learning { table: &mut table, sizes: &mut sizes, gamma: 1.0, stream: &mut stream, time: 1 });
        assert!(table.q.all().iter().all(|value| (value - 7.0).abs() < 1e-6), "{:?}", table.q.all());
    }
}
