//! Monte Carlo methods: values are means of returns.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use gradus_base::random::Stream;
use gradus_base::settings;
use gradus_envs::tabular::{Outcome, Tabular};
use serde::{Deserialize, Serialize};

use super::agent::{Learning, Rule, Seen, Sizes, TableConfig, model, of_random_actions, preset, reward_scale};
use super::{Experience, Steps, Sweeps, Trajectory, ValueTable, reachable_by};
use crate::config::{AgentConfig, AgentKind, Preset, Setup};
use crate::error::ConfigError;

/// Returns the return from each step of an episode that terminated: G_t = R_{t+1} + gamma G_{t+1} (equation 3.9).
///
/// ```
/// assert_eq!(gradus_agents::tabular::returns(&[1.0, 0.0, 4.0], 0.5), [2.0, 2.0, 4.0]);
/// ```
pub fn returns(rewards: &[f64], gamma: f64) -> Vec<f64> {
    let mut all = rewards.to_vec();
    (0..all.len().saturating_sub(1)).rev().for_each(|t| all[t] += gamma * all[t + 1]);
    all
}

/// Whether a mean takes the return of each visit to a state, or that of its first visit in an episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Visits {
    /// The first visit in each episode.
    First,
    /// Every visit.
    Every,
}

/// Moves the mean return of every pair that an episode visits, by the incremental mean V <- V + (G - V) / n (section 5.1 and equation 2.3). `place` gives
/// the place of step t in `means` and `counts`: that of a state for prediction, or of a state and an action for control.
///
/// ```
/// use gradus_agents::tabular::{Trajectory, Visits, monte_carlo};
///
/// let episode = Trajectory { states: vec![0, 1, 0], actions: vec![0, 0, 0], rewards: vec![1.0, 2.0, 3.0] };
/// let (mut values, mut counts) = ([0.0; 2], [0; 2]);
/// monte_carlo((&mut values, &mut counts), &episode, |t| episode.states[t], Visits::Every, 1.0);
/// assert_eq!((values, counts), ([4.5, 5.0], [2, 1])); // the mean of 6 and 3, and 5
/// ```
pub fn monte_carlo(
    (means, counts): (&mut [f64], &mut [u64]),
    episode: &Trajectory,
    place: impl Fn(usize) -> usize,
    visits: Visits,
    gamma: f64,
) {
    for (t, value) in returns(&episode.rewards, gamma).into_iter().enumerate() {
        let at = place(t);
        if visits == Visits::Every || (0..t).all(|earlier| place(earlier) != at) {
            counts[at] += 1;
            means[at] += (value - means[at]) / counts[at] as f64;
        }
    }
}

/// Off-policy estimates of a value by importance sampling: from returns of a behaviour policy, each with its ratio rho, the product of
/// pi(A|S) / b(A|S) over the rest of the episode (equation 5.3).
///
/// ```
/// use gradus_agents::tabular::ImportanceSampling;
///
/// let mut estimate = ImportanceSampling::default();
/// [(4.0, 1.0), (0.0, 0.0), (2.0, 3.0)].into_iter().for_each(|(value, ratio)| estimate.add(value, ratio));
/// assert_eq!((estimate.ordinary(), estimate.weighted()), (10.0 / 3.0, 2.5));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ImportanceSampling {
    count: u64,
    ratios: f64,
    products: f64,
}

impl ImportanceSampling {
    /// Adds the return of an episode.
    pub fn add(&mut self, value: f64, ratio: f64) {
        self.count += 1;
        self.ratios += ratio;
        self.products += ratio * value;
    }

    /// Returns the ordinary estimate, the sum of rho G divided by the number of episodes (equation 5.5): unbiased, with a variance that may be infinite.
    pub fn ordinary(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.products / self.count as f64 }
    }

    /// Returns the weighted estimate, the sum of rho G divided by the sum of rho (equation 5.6): biased, with a small variance. It is 0 while all ratios are 0.
    pub fn weighted(&self) -> f64 {
        if self.ratios == 0.0 { 0.0 } else { self.products / self.ratios }
    }
}

/// Returns the place of every counted visit of an episode, and the return from it.
fn visited(episode: &VecDeque<Seen>, place: impl Fn(&Seen) -> usize, is_first: bool, gamma: f64) -> Vec<(usize, f64)> {
    let rewards: Vec<f64> = episode.iter().map(|seen| seen.step.reward).collect();
    let (mut known, mut all) = (BTreeSet::new(), Vec::new());
    for (seen, value) in episode.iter().zip(returns(&rewards, gamma)) {
        if known.insert(place(seen)) || !is_first {
            all.push((place(seen), value));
        }
    }
    all
}

settings! {
    /// The settings of on-policy Monte Carlo control.
    #[derive(Clone, Debug, PartialEq)]
    pub struct MonteCarloConfig {
        /// Visits that count: first or every.
        pub visits: Visits = Visits::First,
        /// Whether episodes begin with a random state of those in which an episode can be, and a random allowed action, drawn from the environment's transition table (section 5.3). For every episode of the environment the
        /// agent plays one of these, greedily after its first action, of at most 1000 steps whatever the environment's time limit.
        pub exploring_starts: bool = false,
        ..
        /// The settings that tabular agents share.
        pub table: TableConfig,
    }
}

impl AgentConfig for MonteCarloConfig {
    const NAME: &'static str = "monte-carlo";
    const ABOUT: &'static str = "on-policy Monte Carlo control: first or every visit, or exploring starts";
    const PRESETS: &'static [Preset] = &[preset(Self::NAME)];
    const HAS_ACTOR_CRITIC: bool = false;

    fn build(&self, setup: &Setup<'_>) -> Result<AgentKind, ConfigError> {
        let exploring = if self.exploring_starts { Some(ExploringStarts::new(model(setup)?, reward_scale(setup)?)) } else { None };
        let rule = MonteCarlo { is_first: self.visits == Visits::First, exploring, episodes: vec![VecDeque::new(); setup.envs] };
        self.table.built(setup, rule)
    }

    fn discounts(&self) -> (f32, f32) {
        (self.table.gamma as f32, 1.0)
    }

    fn scheduled(&self, steps: u64, done: u64) -> Vec<(&'static str, f64)> {
        self.table.scheduled(steps, done)
    }
}

/// Moves Q(S, A) towards the return of each counted visit at the end of an episode (section 5.4). An episode that a time limit truncated counts with the rewards
/// until then.
struct MonteCarlo {
    is_first: bool,
    exploring: Option<ExploringStarts>,
    /// The episode so far of every environment.
    episodes: Vec<VecDeque<Seen>>,
}

/// Episodes that begin with a random state and a random action.
struct ExploringStarts {
    model: Arc<dyn Tabular>,
    /// The states in which an episode can be.
    starts: Vec<usize>,
    /// The factor between the table's rewards and those that the agent learns from.
    reward_scale: f64,
}

/// Most steps of an episode with an exploring start: a greedy policy may never end.
const LONGEST: usize = 1000;

impl ExploringStarts {
    fn new(model: Arc<dyn Tabular>, reward_scale: f64) -> Self {
        let (actions, allowed) = (model.table().actions(), model.allowed());
        let starts = reachable_by(model.table(), |state, action| allowed[state * actions + action]);
        Self { model, starts, reward_scale }
    }

    fn play(&self, table: &ValueTable, stream: &mut Stream) -> VecDeque<Seen> {
        let (model, greedy) = (self.model.table(), ValueTable { epsilon: 0.0, ..table.clone() });
        let mut state = self.starts[stream.below(self.starts.len() as u32) as usize];
        let allowed: Vec<usize> = (0..model.actions()).filter(|action| table.q.is_allowed(state, *action)).collect();
        let mut action = allowed[stream.below(allowed.len() as u32) as usize];
        let mut episode = VecDeque::new();
        while episode.len() < LONGEST {
            let Outcome { next, reward, terminated, .. } = model.sample(state, action, stream);
            let step = Experience { state, action, reward: self.reward_scale * reward, next: next as usize, terminated };
            episode.push_back(Seen { env: 0, step, next_action: 0, probability: 1.0, is_last: terminated });
            if terminated {
                break;
            }
            state = next as usize;
            (action, _) = greedy.choose(state, None, stream);
        }
        episode
    }
}

impl Rule for MonteCarlo {
    fn learn(&mut self, seen: &Seen, Learning { table, sizes, gamma, stream, .. }: Learning<'_>) {
        let episode = &mut self.episodes[seen.env];
        episode.push_back(*seen);
        if !seen.is_last {
            return;
        }
        if let Some(exploring) = &self.exploring {
            *episode = exploring.play(table, stream);
        }
        let actions = table.q.actions();
        for (place, value) in visited(episode, |seen| seen.step.state * actions + seen.step.action, self.is_first, gamma) {
            let mean = &mut table.q.all_mut()[place];
            *mean += sizes.next(place) * (value - *mean);
        }
        episode.clear();
    }

    fn interrupt(&mut self) {
        self.episodes.iter_mut().for_each(VecDeque::clear);
    }

    fn save(&self) -> Vec<u64> {
        Steps::save(&self.episodes)
    }

    fn load(&mut self, words: &[u64], sizes: Sizes) -> Option<()> {
        Steps::load(&mut self.episodes, words, sizes)
    }
}

settings! {
    /// The settings of Monte Carlo prediction.
    #[derive(Clone, Debug, PartialEq)]
    pub struct MonteCarloPredictionConfig {
        /// Visits that count: first or every.
        pub visits: Visits = Visits::First,
        ..
        /// The settings that tabular agents share.
        pub table: TableConfig,
    }
}

impl AgentConfig for MonteCarloPredictionConfig {
    const NAME: &'static str = "monte-carlo-prediction";
    const ABOUT: &'static str = "Monte Carlo prediction: values of random actions, first or every visit";
    const PRESETS: &'static [Preset] = &[preset(Self::NAME)];
    const HAS_ACTOR_CRITIC: bool = false;

    fn build(&self, setup: &Setup<'_>) -> Result<AgentKind, ConfigError> {
        let rule = MonteCarloPrediction { is_first: self.visits == Visits::First, episodes: vec![VecDeque::new(); setup.envs] };
        self.table.built(setup, rule)
    }

    fn discounts(&self) -> (f32, f32) {
        (self.table.gamma as f32, 1.0)
    }
}

/// Moves V(S) towards the return of each counted visit at the end of an episode (section 5.1).
struct MonteCarloPrediction {
    is_first: bool,
    /// The episode so far of every environment.
    episodes: Vec<VecDeque<Seen>>,
}

impl Rule for MonteCarloPrediction {
    fn predicts(&self) -> bool {
        true
    }

    fn truth(&self, model: &dyn Tabular, gamma: f64) -> Sweeps {
        of_random_actions(model, gamma)
    }

    fn learn(&mut self, seen: &Seen, Learning { table, sizes, gamma, .. }: Learning<'_>) {
        let episode = &mut self.episodes[seen.env];
        episode.push_back(*seen);
        if seen.is_last {
            for (state, value) in visited(episode, |seen| seen.step.state, self.is_first, gamma) {
                table.v[state] += sizes.next(state) * (value - table.v[state]);
            }
            episode.clear();
        }
    }

    fn interrupt(&mut self) {
        self.episodes.iter_mut().for_each(VecDeque::clear);
    }

    fn save(&self) -> Vec<u64> {
        Steps::save(&self.episodes)
    }

    fn load(&mut self, words: &[u64], sizes: Sizes) -> Option<()> {
        Steps::load(&mut self.episodes, words, sizes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The states 0, 1 and 0 with the rewards 1, 2 and 3: the returns are 6, 5 and 3.
    #[test]
    fn the_first_visit_or_every_visit_counts() {
        let seen = |state: usize, reward: f64| {
            let step = Experience { state, action: 0, reward, next: 0, terminated: false };
            Seen { env: 0, step, next_action: 0, probability: 1.0, is_last: false }
        };
        let episode = VecDeque::from([seen(0, 1.0), seen(1, 2.0), seen(0, 3.0)]);
        assert_eq!(visited(&episode, |seen| seen.step.state, true, 1.0), [(0, 6.0), (1, 5.0)]);
        assert_eq!(visited(&episode, |seen| seen.step.state, false, 1.0), [(0, 6.0), (1, 5.0), (0, 3.0)]);
    }
}
