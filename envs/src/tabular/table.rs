//! A finite Markov decision process, written out.

use crate::EnvError;
use crate::random::Stream;

/// One thing that may happen after an action: an entry of Gymnasium's `P[state][action]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// p(s', r | s, a).
    pub probability: f64,
    /// s'.
    pub next: u32,
    /// r.
    pub reward: f64,
    /// Whether the episode ends with it: then the value of s' does not count.
    pub terminated: bool,
}

/// The transition table of a finite Markov decision process: p(s', r | s, a) and the distribution of the first state.
///
/// ```
/// use gradus_envs::tabular::{Outcome, Table};
///
/// // one state; the first action ends the episode with 1, the second one does nothing
/// let end = Outcome { probability: 1.0, next: 0, reward: 1.0, terminated: true };
/// let wait = Outcome { reward: 0.0, terminated: false, ..end };
/// let table = Table::new(2, vec![vec![end], vec![wait]], vec![1.0])?;
/// assert_eq!((table.states(), table.actions(), table.outcomes(0, 0)), (1, 2, &[end][..]));
/// # Ok::<(), gradus_envs::EnvError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    actions: usize,
    /// Where the outcomes of each state and action begin, and where the last ones end.
    bounds: Vec<usize>,
    outcomes: Vec<Outcome>,
    starts: Vec<f64>,
}

/// How far probabilities may be from summing to 1.
const TOLERANCE: f64 = 1e-9;

/// A state is observed as an f32, which holds whole numbers up to here.
const MOST_STATES: usize = 1 << 24;

/// The sum of what should be a distribution, where it is none.
fn wrong_sum(probabilities: impl Iterator<Item = f64> + Clone) -> Option<f64> {
    let sum = probabilities.clone().fold(0.0, |sum, p| sum + p);
    let is_sound = probabilities.clone().all(|p| (0.0..=1.0).contains(&p)) && (sum - 1.0).abs() <= TOLERANCE;
    (!is_sound).then_some(sum)
}

impl Table {
    /// A table from what may happen in each state after each action: all actions of state 0, then all of state 1, and so on; `starts`
    /// has the probability that an episode begins there for each state.
    pub fn new(actions: usize, outcomes: Vec<Vec<Outcome>>, starts: Vec<f64>) -> Result<Self, EnvError> {
        let wrong = |text: String| Err(EnvError::Table(text));
        let states = starts.len();
        if actions == 0 || states == 0 || states > MOST_STATES || outcomes.len() != states * actions {
            let got = outcomes.len();
            return wrong(format!(
                "expected one list of outcomes per state and action, got {got} for {states} states and {actions} actions"
            ));
        }
        if let Some(sum) = wrong_sum(starts.iter().copied()) {
            return wrong(format!("first state: expected probabilities that sum to 1, got a sum of {sum}"));
        }
        let mut bounds = vec![0];
        for (i, list) in outcomes.iter().enumerate() {
            let place = format!("state {}, action {}", i / actions, i % actions);
            if let Some(sum) = wrong_sum(list.iter().map(|outcome| outcome.probability)) {
                return wrong(format!("{place}: expected probabilities that sum to 1, got a sum of {sum}"));
            }
            if let Some(outcome) = list.iter().find(|outcome| outcome.next as usize >= states) {
                return wrong(format!("{place}: expected a next state below {states}, got {}", outcome.next));
            }
            if let Some(outcome) = list.iter().find(|outcome| !outcome.reward.is_finite()) {
                return wrong(format!("{place}: expected a finite reward, got {}", outcome.reward));
            }
            bounds.push(bounds[i] + list.len());
        }
        Ok(Self { actions, bounds, outcomes: outcomes.into_iter().flatten().collect(), starts })
    }

    /// How many states there are.
    pub fn states(&self) -> usize {
        self.starts.len()
    }

    /// How many actions there are in each state.
    pub fn actions(&self) -> usize {
        self.actions
    }

    /// What may happen after an action.
    pub fn outcomes(&self, state: usize, action: usize) -> &[Outcome] {
        let pair = state * self.actions + action;
        &self.outcomes[self.bounds[pair]..self.bounds[pair + 1]]
    }

    /// The probability of each state that an episode begins there.
    pub fn starts(&self) -> &[f64] {
        &self.starts
    }

    /// What happens after an action. Nothing is drawn where only one thing can.
    pub fn sample(&self, state: usize, action: usize, stream: &mut Stream) -> Outcome {
        let outcomes = self.outcomes(state, action);
        outcomes[pick(outcomes.iter().map(|outcome| outcome.probability), outcomes.len(), stream)]
    }

    /// Where an episode begins.
    pub fn sample_start(&self, stream: &mut Stream) -> u32 {
        match self.starts.iter().position(|p| *p == 1.0) {
            Some(only) => only as u32,
            None => pick(self.starts.iter().copied(), self.states(), stream) as u32,
        }
    }
}

/// A draw from a distribution over `n` things.
fn pick(probabilities: impl Iterator<Item = f64> + Clone, n: usize, stream: &mut Stream) -> usize {
    if n == 1 {
        return 0;
    }
    let mut left = stream.unit_f64();
    for (i, p) in probabilities.clone().enumerate() {
        left -= p;
        if left < 0.0 {
            return i;
        }
    }
    // what rounding left over belongs to the last one that can come up
    probabilities.enumerate().filter(|(_, p)| *p > 0.0).last().map_or(0, |(i, _)| i)
}
