//! Prioritised sweeping: planning where values change most (Moore and Atkeson, 1993; Peng and Williams, 1993).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use gradus_base::range::{at_least, from};
use gradus_base::settings;

use super::agent::{Learning, Rule, Seen, Sizes, TableConfig, fits, preset};
use super::{ActionValues, Experience, q_learning};
use crate::config::{AgentConfig, AgentKind, Preset, Setup};
use crate::error::ConfigError;

/// A deterministic model with a queue of the pairs whose values would change most.
///
/// ```
/// use gradus_agents::tabular::{ActionValues, Experience, PrioritisedSweeping};
///
/// // a corridor of three states: one pass backwards gives all of them their values
/// let (mut q, mut sweeping) = (ActionValues::new(3, 1, 0.0), PrioritisedSweeping::new(0.01));
/// for state in 0..3 {
///     let is_last = state == 2;
///     let step = Experience { state, action: 0, reward: if is_last { 1.0 } else { 0.0 }, next: state + 1 - usize::from(is_last), terminated: is_last };
///     sweeping.learn(&q, step, 0.5);
/// }
/// assert_eq!(sweeping.plan(&mut q, 10, 1.0, 0.5), 3);
/// assert_eq!([q.row(0)[0], q.row(1)[0], q.row(2)[0]], [0.25, 0.5, 1.0]);
/// ```
#[derive(Clone, Debug)]
pub struct PrioritisedSweeping {
    /// A pair with a smaller error is not queued.
    theta: f64,
    /// The last outcome of every state and action that was tried.
    model: BTreeMap<(usize, usize), Experience>,
    /// The pairs that led to each state.
    before: BTreeMap<usize, Vec<(usize, usize)>>,
    /// The bits of a positive error, which are in the order of the numbers, and a pair. Of equal errors, the first pair comes first. An older entry of the same pair may
    /// remain behind a larger one; `priority` has the current one.
    queue: BinaryHeap<(u64, Reverse<(usize, usize)>)>,
    priority: BTreeMap<(usize, usize), u64>,
}

impl PrioritisedSweeping {
    /// Creates a model that knows nothing and queues pairs with an error above `theta`.
    pub fn new(theta: f64) -> Self {
        Self { theta, model: BTreeMap::new(), before: BTreeMap::new(), queue: BinaryHeap::new(), priority: BTreeMap::new() }
    }

    /// Remembers a transition, and queues its pair if its error is large (steps d to f of the textbook's algorithm).
    pub fn learn(&mut self, q: &ActionValues, step: Experience, gamma: f64) {
        let pair = (step.state, step.action);
        if let Some(old) = self.model.insert(pair, step)
            && let Some(pairs) = self.before.get_mut(&old.next)
        {
            pairs.retain(|other| *other != pair);
        }
        if !step.terminated {
            self.before.entry(step.next).or_default().push(pair);
        }
        self.enqueue(q, step, gamma);
    }

    /// Queues the pair of a transition with the size of its error, |R + gamma max_a Q(S', a) - Q(S, A)|.
    fn enqueue(&mut self, q: &ActionValues, step: Experience, gamma: f64) {
        let after = if step.terminated { 0.0 } else { q.best(step.next) };
        let (pair, error) = ((step.state, step.action), (step.reward + gamma * after - q.row(step.state)[step.action]).abs());
        let current = self.priority.get(&pair).copied().unwrap_or(0);
        if error > self.theta && error.to_bits() > current {
            self.priority.insert(pair, error.to_bits());
            self.queue.push((error.to_bits(), Reverse(pair)));
        }
    }

    /// Makes at most `n` Q-learning updates, each with the pair of the largest error, and queues the pairs that lead to its state (step g). Returns their number.
    pub fn plan(&mut self, q: &mut ActionValues, n: usize, alpha: f64, gamma: f64) -> usize {
        let mut updates = 0;
        while updates < n
            && let Some((error, Reverse(pair))) = self.queue.pop()
        {
            if self.priority.get(&pair) != Some(&error) {
                continue; // an older entry
            }
            self.priority.remove(&pair);
            q_learning(q, self.model[&pair], alpha, gamma);
            updates += 1;
            for before in self.before.get(&pair.0).cloned().unwrap_or_default() {
                self.enqueue(q, self.model[&before], gamma);
            }
        }
        updates
    }
}

settings! {
    /// The settings of prioritised sweeping.
    #[derive(Clone, Debug, PartialEq)]
    pub struct PrioritisedSweepingConfig {
        /// Planning updates after each step, at most.
        pub n: usize = 5 => at_least(1).up_to(1_000_000),
        /// A pair is queued if its error is larger, from 0 up.
        pub theta: f64 = 1e-4 => from(0.0),
        ..
        /// The settings that tabular agents share.
        pub table: TableConfig,
    }
}

impl AgentConfig for PrioritisedSweepingConfig {
    const NAME: &'static str = "prioritised-sweeping";
    const ABOUT: &'static str = "prioritised sweeping: planning with a model where values change most";
    const PRESETS: &'static [Preset] = &[preset(Self::NAME)];
    const HAS_ACTOR_CRITIC: bool = false;

    fn build(&self, setup: &Setup<'_>) -> Result<AgentKind, ConfigError> {
        self.table.built(setup, Sweeping { n: self.n, sweeping: PrioritisedSweeping::new(self.theta) })
    }

    fn discounts(&self) -> (f32, f32) {
        (self.table.gamma as f32, 1.0)
    }

    fn scheduled(&self, steps: u64, done: u64) -> Vec<(&'static str, f64)> {
        self.table.scheduled(steps, done)
    }
}

struct Sweeping {
    n: usize,
    sweeping: PrioritisedSweeping,
}

impl Rule for Sweeping {
    fn learn(&mut self, Seen { step, .. }: &Seen, Learning { table, sizes, gamma, .. }: Learning<'_>) {
        self.sweeping.learn(&table.q, *step, gamma);
        let alpha = sizes.next(table.q.place(step.state, step.action));
        self.sweeping.plan(&mut table.q, self.n, alpha, gamma);
    }

    fn save(&self) -> Vec<u64> {
        let words = |(pair, step): (&(usize, usize), &Experience)| {
            let priority = self.sweeping.priority.get(pair).copied().unwrap_or(0);
            [step.state as u64, step.action as u64, step.reward.to_bits(), step.next as u64, u64::from(step.terminated), priority]
        };
        self.sweeping.model.iter().flat_map(words).collect()
    }

    /// Predecessors are then in the order of the pairs, which does not matter: the queue has an order of its own.
    fn load(&mut self, words: &[u64], sizes: Sizes) -> Option<()> {
        let (all, rest) = words.as_chunks::<6>();
        let mut sweeping = PrioritisedSweeping::new(self.sweeping.theta);
        for [state, action, reward, next, terminated, priority] in all.iter().copied() {
            let [state, action, next] = [state, action, next].map(|word| word as usize);
            let step = Experience { state, action, reward: f64::from_bits(reward), next, terminated: terminated == 1 };
            if !fits(&step, sizes) {
                return None;
            }
            sweeping.model.insert((state, action), step);
            if !step.terminated {
                sweeping.before.entry(next).or_default().push((state, action));
            }
            if priority > 0 {
                sweeping.priority.insert((state, action), priority);
                sweeping.queue.push((priority, Reverse((state, action))));
            }
        }
        self.sweeping = sweeping;
        rest.is_empty().then_some(())
    }
}
