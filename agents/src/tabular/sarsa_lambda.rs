//! Sarsa(lambda): control with eligibility traces.

use gradus_base::range::from;
use gradus_base::settings;

use super::Traces;
use super::agent::{Learning, Rule, Seen, Sizes, TableConfig, preset};
use crate::config::{AgentConfig, AgentKind, Preset, Setup};
use crate::error::ConfigError;

settings! {
    /// The settings of Sarsa(lambda).
    #[derive(Clone, Debug, PartialEq)]
    pub struct SarsaLambdaConfig {
        /// Decay of the traces, lambda; 0: Sarsa.
        pub lambda: f64 = 0.9 => from(0.0).to(1.0),
        /// Whether a visit sets a trace to 1 (replacing traces) instead of adding 1 to it (accumulating traces).
        pub replace: bool = true,
        ..
        /// The settings that tabular agents share.
        pub table: TableConfig,
    }
}

impl AgentConfig for SarsaLambdaConfig {
    const NAME: &'static str = "sarsa-lambda";
    const ABOUT: &'static str = "tabular Sarsa(lambda): on-policy control with eligibility traces";
    const PRESETS: &'static [Preset] = &[preset(Self::NAME)];
    const HAS_ACTOR_CRITIC: bool = false;

    fn build(&self, setup: &Setup<'_>) -> Result<AgentKind, ConfigError> {
        let rule = SarsaLambda { lambda: self.lambda, replace: self.replace, traces: vec![Traces::default(); setup.envs] };
        self.table.built(setup, rule)
    }

    fn discounts(&self) -> (f32, f32) {
        (self.table.gamma as f32, 1.0)
    }

    fn scheduled(&self, steps: u64, done: u64) -> Vec<(&'static str, f64)> {
        self.table.scheduled(steps, done)
    }
}

/// With the error delta = R + gamma Q(S', A') - Q(S, A), moves every value Q(s, a) += alpha delta z(s, a) along its trace. Traces decay by gamma lambda with
/// every step, and that of (S, A) grows by 1 or becomes 1 (sections 12.2 and 12.7, for a table).
struct SarsaLambda {
    lambda: f64,
    replace: bool,
    /// The traces of every environment, by the place of a value.
    traces: Vec<Traces>,
}

impl Rule for SarsaLambda {
    fn needs_next_action(&self) -> bool {
        true
    }

    fn learn(&mut self, Seen { env, step, next_action, is_last, .. }: &Seen, Learning { table, sizes, gamma, .. }: Learning<'_>) {
        let after = if step.terminated { 0.0 } else { table.q.row(step.next)[*next_action] };
        let error = step.reward + gamma * after - table.q.row(step.state)[step.action];
        let (traces, place) = (&mut self.traces[*env], table.q.place(step.state, step.action));
        traces.visit(place, self.replace);
        let alpha = sizes.next(place);
        traces.iter().for_each(|(place, trace)| table.q.all_mut()[place] += alpha * error * trace);
        if *is_last { traces.clear() } else { traces.decay(gamma * self.lambda) }
    }

    fn interrupt(&mut self) {
        self.traces.iter_mut().for_each(Traces::clear);
    }

    fn save(&self) -> Vec<u64> {
        Traces::save(&self.traces)
    }

    fn load(&mut self, words: &[u64], (states, actions): Sizes) -> Option<()> {
        Traces::load(&mut self.traces, words, states * actions)
    }
}

#[cfg(test)]
mod tests {
    use super::super::td_lambda::tests::values_after_each_step;
    use super::*;

    /// With one action, by hand: accumulating traces move as those of TD(lambda), and of replacing ones that of s0 is 1 in the third step.
    #[test]
    fn traces_accumulate_or_are_replaced() {
        let after = |replace| values_after_each_step(&mut SarsaLambda { lambda: 0.5, replace, traces: vec![Traces::default()] });
        assert_eq!(after(false), [[0.5, 0.0], [0.531_25, 0.125], [1.311_523_437_5, 0.308_593_75], [1.311_523_437_5, 0.154_296_875]]);
        assert_eq!(after(true), [[0.5, 0.0], [0.531_25, 0.125], [1.265_625, 0.308_593_75], [1.265_625, 0.154_296_875]]);
    }
}
