//! Dyna-Q: learning from experience, and from a model of it (Sutton, 1990). Dyna-Q+ also rewards what was not tried for long.

use gradus_base::random::Stream;
use gradus_base::range::{at_least, from};
use gradus_base::settings;

use super::agent::{Learning, Rule, Seen, Sizes, TableConfig, fits, preset, sizes};
use super::{ActionValues, Experience, q_learning};
use crate::config::{AgentConfig, AgentKind, Preset, Setup};
use crate::error::ConfigError;

/// A deterministic model: the last outcome of every state and action that was tried.
///
/// ```
/// use gradus_agents::tabular::{ActionValues, Experience, Model};
/// use gradus_base::random::{Purpose, Stream};
///
/// let (mut q, mut model) = (ActionValues::new(2, 1, 0.0), Model::new(2, 1));
/// model.learn(Experience { state: 0, action: 0, reward: 1.0, next: 1, terminated: true });
/// model.plan(&mut q, 3, 0.5, 0.9, &mut Stream::new(1, Purpose::Shuffle, 0));
/// assert_eq!(q.row(0), [0.875]); // three times half of the way to 1
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    actions: usize,
    outcomes: Vec<Option<Experience>>,
    /// The places of the known outcomes, in the order in which they were first seen.
    known: Vec<usize>,
    /// Dyna-Q+'s bonus kappa, and the number of steps when each pair was tried last, 0 if never.
    kappa: f64,
    tried: Vec<u64>,
    steps: u64,
}

impl Model {
    /// Creates a model that knows nothing.
    pub fn new(states: usize, actions: usize) -> Self {
        let n = states * actions;
        Self { actions, outcomes: vec![None; n], known: Vec::new(), kappa: 0.0, tried: vec![0; n], steps: 0 }
    }

    /// Makes planning add kappa sqrt(tau) to the reward of a pair that was not tried for tau steps (Dyna-Q+, section 8.3). In every state that was visited, actions that
    /// were never tried are then planned, too, as if they led back to the state with reward 0.
    pub fn with_bonus(self, kappa: f64) -> Self {
        Self { kappa, ..self }
    }

    /// Remembers a transition (tabular Dyna-Q, step e).
    pub fn learn(&mut self, step: Experience) {
        self.learn_where(step, |_| true);
    }

    /// As [`Self::learn`] in a state with the actions a for which `is_allowed(a)`.
    fn learn_where(&mut self, step: Experience, is_allowed: impl Fn(usize) -> bool) {
        self.steps += 1;
        if self.kappa > 0.0 {
            for action in (0..self.actions).filter(|action| is_allowed(*action)) {
                let stays = Experience { action, reward: 0.0, next: step.state, terminated: false, ..step };
                self.know(stays, false);
            }
        }
        self.know(step, true);
        self.tried[step.state * self.actions + step.action] = self.steps;
    }

    fn know(&mut self, step: Experience, replace: bool) {
        let place = step.state * self.actions + step.action;
        let outcome = &mut self.outcomes[place];
        if outcome.is_none() {
            self.known.push(place);
        }
        if outcome.is_none() || replace {
            *outcome = Some(step);
        }
    }

    /// Makes `n` Q-learning updates with remembered transitions, each of a random pair of a state and an action that was tried (step f; the book draws the state first, then one of its
    /// actions).
    pub fn plan(&self, q: &mut ActionValues, n: usize, alpha: f64, gamma: f64, stream: &mut Stream) {
        for _ in 0..if self.known.is_empty() { 0 } else { n } {
            let place = self.known[stream.below(self.known.len() as u32) as usize];
            if let Some(step) = self.outcomes[place] {
                let bonus = if self.kappa > 0.0 { self.kappa * ((self.steps - self.tried[place]) as f64).sqrt() } else { 0.0 };
                q_learning(q, Experience { reward: step.reward + bonus, ..step }, alpha, gamma);
            }
        }
    }

    /// The outcomes that are known, in the order in which they were first seen.
    fn known(&self) -> impl Iterator<Item = Experience> {
        self.known.iter().filter_map(|place| self.outcomes[*place])
    }

    fn save(&self) -> Vec<u64> {
        let words = |step: Experience| {
            let tried = self.tried[step.state * self.actions + step.action];
            [step.state as u64, step.action as u64, step.reward.to_bits(), step.next as u64, u64::from(step.terminated), tried]
        };
        std::iter::once(self.steps).chain(self.known().flat_map(words)).collect()
    }

    fn load(&mut self, words: &[u64]) -> Option<()> {
        let (steps, rest) = words.split_first()?;
        let (all, left) = rest.as_chunks::<6>();
        let n = self.outcomes.len();
        *self = Self::new(n / self.actions, self.actions).with_bonus(self.kappa);
        for [state, action, reward, next, terminated, tried] in all.iter().copied() {
            let [state, action, next] = [state, action, next].map(|word| word as usize);
            let step = Experience { state, action, reward: f64::from_bits(reward), next, terminated: terminated == 1 };
            if !fits(&step, (n / self.actions, self.actions)) || tried > *steps {
                return None;
            }
            self.know(step, true);
            self.tried[state * self.actions + action] = tried;
        }
        self.steps = *steps;
        left.is_empty().then_some(())
    }
}

settings! {
    /// The settings of Dyna-Q.
    #[derive(Clone, Debug, PartialEq)]
    pub struct DynaQConfig {
        /// Planning updates after each step; 0: Q-learning.
        pub n: usize = 10 => at_least(0).up_to(1_000_000),
        /// Dyna-Q+'s bonus: planning adds kappa sqrt(tau) to a reward that was not tried for tau steps, from 0 up.
        pub kappa: f64 = 0.0 => from(0.0),
        ..
        /// The settings that tabular agents share.
        pub table: TableConfig,
    }
}

impl AgentConfig for DynaQConfig {
    const NAME: &'static str = "dyna-q";
    const ABOUT: &'static str = "tabular Dyna-Q: Q-learning, and planning with a model; Dyna-Q+ if kappa is above 0";
    const PRESETS: &'static [Preset] = &[preset(Self::NAME)];
    const HAS_ACTOR_CRITIC: bool = false;

    fn build(&self, setup: &Setup<'_>) -> Result<AgentKind, ConfigError> {
        let (states, actions) = sizes(setup)?;
        self.table.built(setup, DynaQ { n: self.n, model: Model::new(states, actions).with_bonus(self.kappa) })
    }

    fn discounts(&self) -> (f32, f32) {
        (self.table.gamma as f32, 1.0)
    }

    fn scheduled(&self, steps: u64, done: u64) -> Vec<(&'static str, f64)> {
        self.table.scheduled(steps, done)
    }
}

/// A Q-learning update with every step, then n with steps from the model.
struct DynaQ {
    n: usize,
    model: Model,
}

impl Rule for DynaQ {
    fn learn(&mut self, Seen { step, .. }: &Seen, Learning { table, sizes, gamma, stream, .. }: Learning<'_>) {
        let alpha = sizes.next(table.q.place(step.state, step.action));
        q_learning(&mut table.q, *step, alpha, gamma);
        self.model.learn_where(*step, |action| table.q.is_allowed(step.state, action));
        self.model.plan(&mut table.q, self.n, alpha, gamma, stream);
    }

    fn save(&self) -> Vec<u64> {
        self.model.save()
    }

    fn load(&mut self, words: &[u64], _: Sizes) -> Option<()> {
        self.model.load(words)
    }
}
