//! Dyna-Q: learning from experience, and from a model of it (Sutton, 1990).

use gradus_envs::random::Stream;

use super::{ActionValues, Experience, q_learning};

/// A deterministic model: the last outcome of every state and action that was tried.
///
/// ```
/// use gradus_agents::tabular::{ActionValues, Experience, Model};
/// use gradus_envs::random::{Purpose, Stream};
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
}

impl Model {
    /// Creates a model that knows nothing.
    pub fn new(states: usize, actions: usize) -> Self {
        Self { actions, outcomes: vec![None; states * actions], known: Vec::new() }
    }

    /// Remembers a transition (tabular Dyna-Q, step e).
    pub fn learn(&mut self, step: Experience) {
        let place = step.state * self.actions + step.action;
        if self.outcomes[place].replace(step).is_none() {
            self.known.push(place);
        }
    }

    /// Makes `n` Q-learning updates with remembered transitions, each of a random state and action that were tried (step f).
    pub fn plan(&self, q: &mut ActionValues, n: usize, alpha: f64, gamma: f64, stream: &mut Stream) {
        for _ in 0..if self.known.is_empty() { 0 } else { n } {
            let place = self.known[stream.below(self.known.len() as u32) as usize];
            if let Some(step) = self.outcomes[place] {
                q_learning(q, step, alpha, gamma);
            }
        }
    }
}
