//! n-step Sarsa: control with returns of n rewards.

use std::collections::VecDeque;

use gradus_base::range::at_least;
use gradus_base::settings;

use super::Steps;
use super::agent::{Learning, Rule, Seen, Sizes, TableConfig, preset};
use crate::config::{AgentConfig, AgentKind, Preset, Setup};
use crate::error::ConfigError;

settings! {
    /// The settings of n-step Sarsa.
    #[derive(Clone, Debug, PartialEq)]
    pub struct NStepSarsaConfig {
        /// Number of rewards in a return.
        pub n: usize = 4 => at_least(1),
        ..
        /// The settings that tabular agents share.
        pub table: TableConfig,
    }
}

impl AgentConfig for NStepSarsaConfig {
    const NAME: &'static str = "n-step-sarsa";
    const ABOUT: &'static str = "tabular n-step Sarsa: on-policy control with returns of n rewards";
    const PRESETS: &'static [Preset] = &[preset(Self::NAME)];
    const HAS_ACTOR_CRITIC: bool = false;

    fn build(&self, setup: &Setup<'_>) -> Result<AgentKind, ConfigError> {
        self.table.built(setup, NStepSarsa { n: self.n, last: vec![VecDeque::new(); setup.envs] })
    }

    fn discounts(&self) -> (f32, f32) {
        (self.table.gamma as f32, 1.0)
    }

    fn scheduled(&self, steps: u64, done: u64) -> Vec<(&'static str, f64)> {
        self.table.scheduled(steps, done)
    }
}

/// Moves Q(S_t, A_t) += alpha (G - Q(S_t, A_t)) with the n-step return G = R_{t+1} + ... + gamma^{n-1} R_{t+n} + gamma^n Q(S_{t+n}, A_{t+n}) (equations 7.4
/// and 7.5). At the end of an episode, the last n returns are shorter.
struct NStepSarsa {
    n: usize,
    /// The last steps of every environment, at most n.
    last: Vec<VecDeque<Seen>>,
}

impl Rule for NStepSarsa {
    fn needs_next_action(&self) -> bool {
        true
    }

    fn learn(&mut self, seen: &Seen, Learning { table, sizes, gamma, .. }: Learning<'_>) {
        let last = &mut self.last[seen.env];
        last.push_back(*seen);
        while last.len() >= self.n || seen.is_last && !last.is_empty() {
            let after = if seen.step.terminated { 0.0 } else { table.q.row(seen.step.next)[seen.next_action] };
            let target = last.iter().rev().fold(after, |later, seen| seen.step.reward + gamma * later);
            let Some(Seen { step, .. }) = last.pop_front() else { break };
            let alpha = sizes.next(table.q.place(step.state, step.action));
            let value = table.q.at_mut(step.state, step.action);
            *value += alpha * (target - *value);
        }
    }

    fn interrupt(&mut self) {
        self.last.iter_mut().for_each(VecDeque::clear);
    }

    fn save(&self) -> Vec<u64> {
        Steps::save(&self.last)
    }

    fn load(&mut self, words: &[u64], sizes: Sizes) -> Option<()> {
        Steps::load(&mut self.last, words, sizes)
    }
}
