//! n-step temporal differences, and the lambda-return that averages all of them.

use std::collections::VecDeque;

use gradus_base::range::at_least;
use gradus_base::settings;
use gradus_envs::tabular::Tabular;

use super::agent::{Learning, Rule, Seen, Sizes, TableConfig, of_random_actions, preset};
use super::{Steps, Sweeps, Trajectory};
use crate::config::{AgentConfig, AgentKind, Preset, Setup};
use crate::error::ConfigError;

/// Runs n-step TD prediction over an episode that terminated: for each t in turn, V(S_t) += alpha (G - V(S_t)) with the n-step return
/// G = R_{t+1} + ... + gamma^{n-1} R_{t+n} + gamma^n V(S_{t+n}) (equations 7.1 and 7.2). Returns that reach beyond the end are complete. With n = 1 this is
/// TD(0), with a large n constant-alpha Monte Carlo.
///
/// ```
/// use gradus_agents::tabular::{Trajectory, n_step_td};
///
/// let episode = Trajectory { states: vec![0, 1, 2], actions: vec![0; 3], rewards: vec![1.0, 2.0, 4.0] };
/// let mut values = [0.0, 0.0, 10.0];
/// n_step_td(&mut values, &episode, 2, 0.5, 0.5);
/// assert_eq!(values, [2.25, 2.0, 7.0]); // targets 1 + 0.5 x 2 + 0.25 x 10, then 2 + 0.5 x 4, then 4
/// ```
pub fn n_step_td(values: &mut [f64], episode: &Trajectory, n: usize, alpha: f64, gamma: f64) {
    let Trajectory { states, rewards, .. } = episode;
    for t in 0..states.len() {
        let end = t.saturating_add(n).min(states.len());
        let after = if end < states.len() { values[states[end]] } else { 0.0 };
        let target = rewards[t..end].iter().rev().fold(after, |later, reward| reward + gamma * later);
        values[states[t]] += alpha * (target - values[states[t]]);
    }
}

/// Runs the off-line lambda-return algorithm over an episode that terminated: computes the lambda-returns
/// G_t = R_{t+1} + gamma ((1 - lambda) V(S_{t+1}) + lambda G_{t+1}) with the values at the beginning of the episode, then moves
/// V(S_t) += alpha (G_t - V(S_t)) for each t in turn (equations 12.2, 12.3 and 12.4).
///
/// ```
/// use gradus_agents::tabular::{Trajectory, lambda_return};
///
/// let episode = Trajectory { states: vec![0, 1], actions: vec![0; 2], rewards: vec![1.0, 2.0] };
/// let mut values = [0.0, 4.0];
/// lambda_return(&mut values, &episode, 0.5, 0.5, 1.0);
/// assert_eq!(values, [2.0, 3.0]); // targets 1 + (4 + 2) / 2, and 2
/// ```
pub fn lambda_return(values: &mut [f64], episode: &Trajectory, lambda: f64, alpha: f64, gamma: f64) {
    let Trajectory { states, rewards, .. } = episode;
    let mut targets = vec![0.0; states.len()];
    let mut later = 0.0;
    for t in (0..states.len()).rev() {
        let next = states.get(t + 1).map_or(0.0, |state| (1.0 - lambda) * values[*state] + lambda * later);
        later = rewards[t] + gamma * next;
        targets[t] = later;
    }
    states.iter().zip(targets).for_each(|(state, target)| values[*state] += alpha * (target - values[*state]));
}

settings! {
    /// The settings of n-step TD.
    #[derive(Clone, Debug, PartialEq)]
    pub struct NStepTdConfig {
        /// Number of rewards in a return, at least 1; 1: TD(0).
        pub n: usize = 4 => at_least(1),
        ..
        /// The settings that tabular agents share.
        pub table: TableConfig,
    }
}

impl AgentConfig for NStepTdConfig {
    const NAME: &'static str = "n-step-td";
    const ABOUT: &'static str = "n-step TD: values of random actions, with returns of n rewards";
    const PRESETS: &'static [Preset] = &[preset(Self::NAME)];
    const HAS_ACTOR_CRITIC: bool = false;

    fn build(&self, setup: &Setup<'_>) -> Result<AgentKind, ConfigError> {
        self.table.built(setup, NStepTd { n: self.n, last: vec![VecDeque::new(); setup.envs] })
    }

    fn discounts(&self) -> (f32, f32) {
        (self.table.gamma as f32, 1.0)
    }
}

/// n-step TD, step by step: equation 7.2 as soon as n rewards are known, and at the end of an episode with the shorter returns of the last states.
struct NStepTd {
    n: usize,
    /// The last steps of every environment, at most n.
    last: Vec<VecDeque<Seen>>,
}

impl Rule for NStepTd {
    fn predicts(&self) -> bool {
        true
    }

    fn truth(&self, model: &dyn Tabular, gamma: f64) -> Sweeps {
        of_random_actions(model, gamma)
    }

    fn learn(&mut self, seen: &Seen, Learning { table, sizes, gamma, .. }: Learning<'_>) {
        let last = &mut self.last[seen.env];
        last.push_back(*seen);
        while last.len() >= self.n || seen.is_last && !last.is_empty() {
            let after = if seen.step.terminated { 0.0 } else { table.v[seen.step.next] };
            let target = last.iter().rev().fold(after, |later, seen| seen.step.reward + gamma * later);
            let Some(Seen { step, .. }) = last.pop_front() else { break };
            table.v[step.state] += sizes.next(step.state) * (target - table.v[step.state]);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The lambda-return is the average of all n-step returns, (1 - lambda) sum lambda^{n-1} G_{t:t+n} + lambda^{T-t-1} G_t (equation 12.3).
    #[test]
    fn the_lambda_return_averages_n_step_returns() {
        let episode = Trajectory { states: vec![0, 1, 2, 3], actions: vec![0; 4], rewards: vec![1.0, -2.0, 0.5, 3.0] };
        let (values, gamma, lambda) = ([0.3, -1.0, 2.0, 0.7], 0.9, 0.6);
        // with alpha 1 the first state's value becomes its target
        let target = |update: &dyn Fn(&mut [f64])| {
            let mut moved = values;
            update(&mut moved);
            moved[0]
        };
        let of_n: Vec<f64> = (1..=4).map(|n| target(&|values| n_step_td(values, &episode, n, 1.0, gamma))).collect();
        let average = (0..3).map(|i| (1.0 - lambda) * f64::powi(lambda, i) * of_n[i as usize]).sum::<f64>() + lambda.powi(3) * of_n[3];
        let found = target(&|values| lambda_return(values, &episode, lambda, 1.0, gamma));
        assert!((found - average).abs() < 1e-12, "{found} {average}");
    }
}
