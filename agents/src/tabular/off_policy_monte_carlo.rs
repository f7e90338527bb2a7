//! Off-policy Monte Carlo control with weighted importance sampling.

use std::collections::VecDeque;

use gradus_base::settings;

use super::Steps;
use super::agent::{Learning, Rule, Seen, Sizes, TableConfig, preset, sizes};
use crate::config::{AgentConfig, AgentKind, Preset, Setup};
use crate::error::ConfigError;

settings! {
    /// The settings of off-policy Monte Carlo control. The step size is not used: weights take its place.
    #[derive(Clone, Debug, PartialEq)]
    pub struct OffPolicyMonteCarloConfig {
        ..
        /// The settings that tabular agents share.
        pub table: TableConfig,
    }
}

impl AgentConfig for OffPolicyMonteCarloConfig {
    const NAME: &'static str = "off-policy-monte-carlo";
    const ABOUT: &'static str = "off-policy Monte Carlo control: weighted importance sampling";
    const PRESETS: &'static [Preset] = &[preset(Self::NAME)];
    const HAS_ACTOR_CRITIC: bool = false;

    fn build(&self, setup: &Setup<'_>) -> Result<AgentKind, ConfigError> {
        let (states, actions) = sizes(setup)?;
        let rule = OffPolicyMonteCarlo { weights: vec![0.0; states * actions], episodes: vec![VecDeque::new(); setup.envs] };
        self.table.built(setup, rule)
    }

    fn discounts(&self) -> (f32, f32) {
        (self.table.gamma as f32, 1.0)
    }

    fn scheduled(&self, steps: u64, done: u64) -> Vec<(&'static str, f64)> {
        self.table.scheduled(steps, done)
    }
}

/// Learns the values of the greedy policy from episodes of the epsilon-greedy one (section 5.7). From the end of an episode backwards, as long as its actions are
/// greedy, moves Q(S, A) += (W / C(S, A)) (G - Q(S, A)), where C sums the weights W, the products of 1 / b(A|S) over the later steps.
struct OffPolicyMonteCarlo {
    /// C(s, a).
    weights: Vec<f64>,
    /// The episode so far of every environment.
    episodes: Vec<VecDeque<Seen>>,
}

impl Rule for OffPolicyMonteCarlo {
    fn learn(&mut self, seen: &Seen, Learning { table, gamma, .. }: Learning<'_>) {
        let episode = &mut self.episodes[seen.env];
        episode.push_back(*seen);
        if !seen.is_last {
            return;
        }
        let (mut value, mut weight) = (0.0, 1.0);
        while let Some(Seen { step, probability, .. }) = episode.pop_back() {
            value = step.reward + gamma * value;
            let place = table.q.place(step.state, step.action);
            self.weights[place] += weight;
            let mean = table.q.at_mut(step.state, step.action);
            *mean += weight / self.weights[place] * (value - *mean);
            if table.q.best_action(step.state) != step.action {
                episode.clear();
            }
            weight /= probability;
        }
    }

    fn interrupt(&mut self) {
        self.episodes.iter_mut().for_each(VecDeque::clear);
    }

    fn save(&self) -> Vec<u64> {
        self.weights.iter().map(|weight| weight.to_bits()).chain(Steps::save(&self.episodes)).collect()
    }

    fn load(&mut self, words: &[u64], sizes: Sizes) -> Option<()> {
        let (weights, rest) = words.split_at_checked(self.weights.len())?;
        self.weights.iter_mut().zip(weights).for_each(|(weight, word)| *weight = f64::from_bits(*word));
        Steps::load(&mut self.episodes, rest, sizes)
    }
}
