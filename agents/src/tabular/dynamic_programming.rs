//! Dynamic programming as agents: values computed from the environment's transition table. One update follows every episode, so that a learning curve shows what each
//! sweep is worth; the steps of the episode are not used.

use std::sync::Arc;

use gradus_base::settings;
use gradus_envs::tabular::Tabular;

use super::agent::{Learning, Rule, Seen, TableConfig, model, of_random_actions, preset};
use super::{Sweeps, deterministic, look_ahead, policy_evaluation_from};
use crate::config::{AgentConfig, AgentKind, Preset, Setup};
use crate::error::ConfigError;

settings! {
    /// The settings of value iteration.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ValueIterationConfig {
        ..
        /// The settings that tabular agents share.
        pub table: TableConfig,
    }
}

impl AgentConfig for ValueIterationConfig {
    const NAME: &'static str = "value-iteration";
    const ABOUT: &'static str = "value iteration: a sweep over the known table after every episode";
    const PRESETS: &'static [Preset] = &[preset(Self::NAME)];
    const HAS_ACTOR_CRITIC: bool = false;

    fn build(&self, setup: &Setup<'_>) -> Result<AgentKind, ConfigError> {
        self.table.built(setup, ValueIteration { model: model(setup)? })
    }

    fn discounts(&self) -> (f32, f32) {
        (self.table.gamma as f32, 1.0)
    }
}

/// V(s) <- max_a of the sum over s', r of p(s', r | s, a) (r + gamma V(s')) for every state, in place (equation 4.10). V(s) is max_a Q(s, a).
struct ValueIteration {
    model: Arc<dyn Tabular>,
}

impl Rule for ValueIteration {
    fn plans(&self) -> bool {
        true
    }

    fn epsilon(&self) -> Option<f64> {
        Some(0.0)
    }

    fn learn(&mut self, seen: &Seen, Learning { table, gamma, .. }: Learning<'_>) {
        let model = self.model.table();
        for state in 0..if seen.is_last { model.states() } else { 0 } {
            let value = |next: u32, terminated: bool| if terminated { 0.0 } else { table.q.best(next as usize) };
            let outcomes = |action| model.outcomes(state, action).iter();
            let backed_up = |action| outcomes(action).map(|o| o.probability * (o.reward + gamma * value(o.next, o.terminated))).sum();
            // all actions of a state see the same V, which changes when all are known
            let new: Vec<f64> = (0..model.actions()).map(backed_up).collect();
            new.into_iter().enumerate().for_each(|(action, value)| *table.q.at_mut(state, action) = value);
        }
    }
}

settings! {
    /// The settings of policy iteration.
    #[derive(Clone, Debug, PartialEq)]
    pub struct PolicyIterationConfig {
        ..
        /// The settings that tabular agents share.
        pub table: TableConfig,
    }
}

impl AgentConfig for PolicyIterationConfig {
    const NAME: &'static str = "policy-iteration";
    const ABOUT: &'static str = "policy iteration: evaluation of the policy on the known table, then improvement, after every episode";
    const PRESETS: &'static [Preset] = &[preset(Self::NAME)];
    const HAS_ACTOR_CRITIC: bool = false;

    fn build(&self, setup: &Setup<'_>) -> Result<AgentKind, ConfigError> {
        self.table.built(setup, PolicyIteration { model: model(setup)? })
    }

    fn discounts(&self) -> (f32, f32) {
        (self.table.gamma as f32, 1.0)
    }
}

/// Evaluates the greedy policy until no value changes by more than 1e-10, at most in 1000 sweeps, then acts greedily on the new values (section 4.3). With
/// gamma below 1 an evaluation begins with the largest action values of the one before, and so goes on where 1000 sweeps were not enough; the first begins with 0.
struct PolicyIteration {
    model: Arc<dyn Tabular>,
}

impl Rule for PolicyIteration {
    fn plans(&self) -> bool {
        true
    }

    fn epsilon(&self) -> Option<f64> {
        Some(0.0)
    }

    fn learn(&mut self, seen: &Seen, Learning { table, gamma, .. }: Learning<'_>) {
        if seen.is_last {
            let model = self.model.table();
            let policy = deterministic(&table.q.greedy(), model.actions());
            // without discount, a policy that never ends an episode would keep what it begins with
            let is_first = table.q.all().iter().all(|value| *value == table.q.all()[0]);
            let before = (0..model.states()).map(|state| if is_first || gamma == 1.0 { 0.0 } else { table.q.best(state) }).collect();
            let values = policy_evaluation_from(before, model, &policy, gamma, 1e-10, 1000).values;
            look_ahead(model, &values, gamma, &mut table.q);
        }
    }
}

settings! {
    /// The settings of policy evaluation.
    #[derive(Clone, Debug, PartialEq)]
    pub struct PolicyEvaluationConfig {
        ..
        /// The settings that tabular agents share.
        pub table: TableConfig,
    }
}

impl AgentConfig for PolicyEvaluationConfig {
    const NAME: &'static str = "policy-evaluation";
    const ABOUT: &'static str = "policy evaluation: values of random actions, a sweep over the known table after every episode";
    const PRESETS: &'static [Preset] = &[preset(Self::NAME)];
    const HAS_ACTOR_CRITIC: bool = false;

    fn build(&self, setup: &Setup<'_>) -> Result<AgentKind, ConfigError> {
        self.table.built(setup, PolicyEvaluation { model: model(setup)? })
    }

    fn discounts(&self) -> (f32, f32) {
        (self.table.gamma as f32, 1.0)
    }
}

/// V(s) <- sum_a pi(a|s) of the sum over s', r of p(s', r | s, a) (r + gamma V(s')) for every state, in place, where pi is uniform (equation 4.5).
struct PolicyEvaluation {
    model: Arc<dyn Tabular>,
}

impl Rule for PolicyEvaluation {
    fn plans(&self) -> bool {
        true
    }

    fn predicts(&self) -> bool {
        true
    }

    fn truth(&self, model: &dyn Tabular, gamma: f64) -> Sweeps {
        of_random_actions(model, gamma)
    }

    fn learn(&mut self, seen: &Seen, Learning { table, gamma, .. }: Learning<'_>) {
        let model = self.model.table();
        for state in 0..if seen.is_last { model.states() } else { 0 } {
            let value = |next: u32, terminated: bool| if terminated { 0.0 } else { table.v[next as usize] };
            let actions: Vec<usize> = (0..model.actions()).filter(|action| table.q.is_allowed(state, *action)).collect();
            let outcomes = actions.iter().flat_map(|action| model.outcomes(state, *action));
            let sum: f64 = outcomes.map(|o| o.probability * (o.reward + gamma * value(o.next, o.terminated))).sum();
            table.v[state] = sum / actions.len() as f64;
        }
    }
}

#[cfg(test)]
mod tests {
    use gradus_base::random::{Purpose, Stream};
    use gradus_envs::registry;
    use gradus_envs::tabular::Outcome;

    use super::super::agent::StepSizes;
    use super::super::{ActionValues, Experience, ValueTable, value_iteration};
    use super::*;

    /// A table of zeros for a world.
    fn empty(model: &dyn Tabular) -> ValueTable {
        let q = ActionValues::new(model.table().states(), model.table().actions(), 0.0);
        ValueTable { q, v: Vec::new(), epsilon: 0.0 }
    }

    /// Lets a rule learn at the end of an episode.
    fn end_episode(rule: &mut dyn Rule, table: &mut ValueTable, gamma: f64) {
        let (mut sizes, mut stream) = (StepSizes::new(0.1, 0.0, table.q.all().len()), Stream::new(1, Purpose::Action, 0));
        let step = Experience { state: 0, action: 0, reward: 0.0, next: 0, terminated: true };
        let seen = Seen { env: 0, step, next_action: 0, probability: 1.0, is_last: true };
        rule.learn(&seen, Learning { table, sizes: &mut sizes, gamma, stream: &mut stream, time: 1 });
    }

    /// After every sweep the values are those of equation 4.10 in place, not only at its end: an action that may leave the state as it is, as on ice, sees the same V as the
    /// actions before it.
    #[test]
    fn each_sweep_is_one_of_the_textbook() {
        let model: Arc<dyn Tabular> = registry::find("frozen-lake").unwrap().model().unwrap();
        let mut table = empty(model.as_ref());
        let mut rule = ValueIteration { model: model.clone() };
        for sweeps in 1..=10 {
            end_episode(&mut rule, &mut table, 0.99);
            let expected = value_iteration(model.table(), 0.99, 0.0, sweeps).values;
            for (state, expected) in expected.iter().enumerate() {
                assert!((table.q.best(state) - expected).abs() < 1e-12, "sweep {sweeps}, state {state}: {expected}");
            }
        }
    }

    /// Without discount a policy that stays where it is for ever has the value 0, whatever the values before it were.
    #[test]
    fn a_policy_that_ends_no_episode_has_no_value() {
        let model: Arc<dyn Tabular> = registry::find("frozen-lake-deterministic").unwrap().model().unwrap();
        let (states, actions) = (model.table().states(), model.table().actions());
        let mut table = empty(model.as_ref());
        let mut rule = PolicyIteration { model: model.clone() };
        for round in 1..=20 {
            let policy = deterministic(&table.q.greedy(), actions);
            let own = super::super::policy_evaluation(model.table(), &policy, 1.0, 1e-10, 1000).values;
            end_episode(&mut rule, &mut table, 1.0);
            let mut expected = ActionValues::new(states, actions, 0.0);
            look_ahead(model.table(), &own, 1.0, &mut expected);
            assert_eq!(table.q.all(), expected.all(), "round {round}");
        }
    }

    /// A reward of 1 in every step, for ever: the value is 1 / (1 - gamma), for which 1000 sweeps are not enough.
    #[test]
    fn an_evaluation_goes_on_where_the_last_one_was_cut() {
        let stay = |reward: f64| vec![Outcome { probability: 1.0, next: 0, reward, terminated: false }];
        let model: Arc<dyn Tabular> = Arc::new(gradus_envs::tabular::Table::new(2, vec![stay(1.0), stay(0.0)], vec![1.0]).unwrap());
        let mut table = empty(model.as_ref());
        let mut rule = PolicyIteration { model };
        for _ in 0..40 {
            end_episode(&mut rule, &mut table, 0.999);
        }
        assert!((table.q.best(0) - 1000.0).abs() < 1e-6, "{}", table.q.best(0));
    }
}
