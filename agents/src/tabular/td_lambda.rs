//! TD(lambda): prediction with eligibility traces. With lambda 0 it is TD(0).

use gradus_envs::tabular::Tabular;

use gradus_base::range::from;
use gradus_base::settings;

use super::agent::{Learning, Rule, Seen, Sizes, TableConfig, of_random_actions, preset};
use super::{Sweeps, Traces};
use crate::config::{AgentConfig, AgentKind, Preset, Setup};
use crate::error::ConfigError;

settings! {
    /// The settings of TD(lambda).
    #[derive(Clone, Debug, PartialEq)]
    pub struct TdLambdaConfig {
        /// Decay of the traces, lambda; 0: TD(0).
        pub lambda: f64 = 0.0 => from(0.0).to(1.0),
        ..
        /// The settings that tabular agents share.
        pub table: TableConfig,
    }
}

impl AgentConfig for TdLambdaConfig {
    const NAME: &'static str = "td-lambda";
    const ABOUT: &'static str = "TD(lambda): values of random actions, with eligibility traces; TD(0) if lambda is 0";
    const PRESETS: &'static [Preset] = &[preset(Self::NAME)];
    const HAS_ACTOR_CRITIC: bool = false;

    fn build(&self, setup: &Setup<'_>) -> Result<AgentKind, ConfigError> {
        self.table.built(setup, TdLambda { lambda: self.lambda, traces: vec![Traces::default(); setup.envs] })
    }

    fn discounts(&self) -> (f32, f32) {
        (self.table.gamma as f32, 1.0)
    }
}

/// With the error delta = R + gamma V(S') - V(S), moves every value V(s) += alpha delta z(s) along its accumulating trace (equations 12.5 to 12.7, for a
/// table).
struct TdLambda {
    lambda: f64,
    /// The traces of every environment, by state.
    traces: Vec<Traces>,
}

impl Rule for TdLambda {
    fn predicts(&self) -> bool {
        true
    }

    fn truth(&self, model: &dyn Tabular, gamma: f64) -> Sweeps {
        of_random_actions(model, gamma)
    }

    fn learn(&mut self, Seen { env, step, is_last, .. }: &Seen, Learning { table, sizes, gamma, .. }: Learning<'_>) {
        let after = if step.terminated { 0.0 } else { table.v[step.next] };
        let error = step.reward + gamma * after - table.v[step.state];
        let traces = &mut self.traces[*env];
        traces.visit(step.state, false);
        let alpha = sizes.next(step.state);
        traces.iter().for_each(|(state, trace)| table.v[state] += alpha * error * trace);
        if *is_last { traces.clear() } else { traces.decay(gamma * self.lambda) }
    }

    fn interrupt(&mut self) {
        self.traces.iter_mut().for_each(Traces::clear);
    }

    fn save(&self) -> Vec<u64> {
        Traces::save(&self.traces)
    }

    fn load(&mut self, words: &[u64], (states, _): Sizes) -> Option<()> {
        Traces::load(&mut self.traces, words, states)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use gradus_base::random::{Purpose, Stream};

    use super::super::agent::StepSizes;
    use super::super::{ActionValues, Experience, ValueTable};
    use super::*;

    /// Two episodes, s0, s1, s0 and then s1 alone, with alpha, gamma and lambda 0.5: returns both values after each step, of V if the rule predicts, else of Q with one action.
    pub(in super::super) fn values_after_each_step(rule: &mut dyn Rule) -> Vec<[f64; 2]> {
        let mut table = ValueTable { q: ActionValues::new(2, 1, 0.0), v: vec![0.0; 2], epsilon: 0.0 };
        let (mut sizes, mut stream) = (StepSizes::new(0.5, 0.0, 2), Stream::new(1, Purpose::Shuffle, 0));
        let steps = [(0, 1.0, 1, false), (1, 0.0, 0, false), (0, 2.0, 0, true), (1, 0.0, 0, true)];
        let mut after = Vec::new();
        for (state, reward, next, terminated) in steps {
            let step = Experience { state, action: 0, reward, next, terminated };
            let seen = Seen { env: 0, step, next_action: 0, probability: 1.0, is_last: terminated };
            rule.learn(&seen, Learning { table: &mut table, sizes: &mut sizes, gamma: 0.5, stream: &mut stream, time: 1 });
            let values = if rule.predicts() { &table.v[..] } else { table.q.all() };
            after.push([values[0], values[1]]);
        }
        after
    }

    /// By hand. Errors: 1, 0.25, 1.46875, -0.30859375; traces of s0: 1, 1/4, 1 + 1/16, none; of s1: none, 1, 1/4, 1.
    #[test]
    fn traces_grow_decay_and_end_with_the_episode() {
        let found = values_after_each_step(&mut TdLambda { lambda: 0.5, traces: vec![Traces::default()] });
        assert_eq!(found, [[0.5, 0.0], [0.531_25, 0.125], [1.311_523_437_5, 0.308_593_75], [1.311_523_437_5, 0.154_296_875]]);
    }
}
