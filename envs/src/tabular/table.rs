//! Transition tables of finite Markov decision processes.

use crate::EnvError;
use gradus_base::random::Stream;

/// One possible outcome of an action: an entry of Gymnasium's `P[state][action]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// The probability p(s', r | s, a).
    pub probability: f64,
    /// The next state s'.
    pub next: u32,
    /// The reward r.
    pub reward: f64,
    /// Whether the episode terminates. If so, the value of s' is not used.
    pub terminated: bool,
}

/// The transition table of a finite Markov decision process: p(s', r | s, a) and the distribution of the first state.
///
/// ```
/// use gradus_envs::tabular::{Outcome, Table};
///
/// // one state; the first action ends the episode with reward 1, the second one does nothing
/// let end = Outcome { probability: 1.0, next: 0, reward: 1.0, terminated: true };
/// let wait = Outcome { reward: 0.0, terminated: false, ..end };
/// let table = Table::new(2, vec![vec![end], vec![wait]], vec![1.0])?;
/// assert_eq!((table.states(), table.actions(), table.outcomes(0, 0)), (1, 2, &[end][..]));
/// # Ok::<(), gradus_envs::EnvError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    actions: usize,
    /// For each (state, action) pair, the index of its first outcome. The last element is the number of all outcomes.
    bounds: Vec<usize>,
    outcomes: Vec<Outcome>,
    starts: Vec<f64>,
}

/// Tolerance of the sum of probabilities.
const TOLERANCE: f64 = 1e-9;

/// Observations are f32, which represents all integers up to this number.
const MOST_STATES: usize = 1 << 24;

/// Returns the sum of `probabilities` if they are not a distribution.
fn wrong_sum(probabilities: impl Iterator<Item = f64> + Clone) -> Option<f64> {
    let sum = probabilities.clone().fold(0.0, |sum, p| sum + p);
    let is_sound = probabilities.clone().all(|p| (0.0..=1.0).contains(&p)) && (sum - 1.0).abs() <= TOLERANCE;
    (!is_sound).then_some(sum)
}

impl Table {
    /// Creates a table from the outcomes of each action in each state: all actions of state 0, then all of state 1, and so on. `starts`
    /// holds the probability that an episode begins in each state.
    ///
    /// # Errors
    /// [`EnvError::Table`] if there is no state or no action, there is not one list per state and action, probabilities are negative or do
    /// not sum to 1, a next state does not exist, a reward is not finite, or there are more than 2^24 states.
    pub fn new(actions: usize, outcomes: Vec<Vec<Outcome>>, starts: Vec<f64>) -> Result<Self, EnvError> {
        let wrong = |text: String| Err(EnvError::Table(text));
        let states = starts.len();
        if states > MOST_STATES {
            return wrong(format!("expected at most {MOST_STATES} states, got {states}"));
        }
        if actions == 0 || states == 0 || outcomes.len() != states * actions {
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

    /// Number of states.
    pub fn states(&self) -> usize {
        self.starts.len()
    }

    /// Number of actions in each state.
    pub fn actions(&self) -> usize {
        self.actions
    }

    /// The possible outcomes of an action.
    pub fn outcomes(&self, state: usize, action: usize) -> &[Outcome] {
        let pair = state * self.actions + action;
        &self.outcomes[self.bounds[pair]..self.bounds[pair + 1]]
    }

    /// The distribution of the first state.
    pub fn starts(&self) -> &[f64] {
        &self.starts
    }

    /// Draws the outcome of an action. If there is only one outcome, no random number is drawn.
    pub fn sample(&self, state: usize, action: usize, stream: &mut Stream) -> Outcome {
        let outcomes = self.outcomes(state, action);
        outcomes[pick(outcomes.iter().map(|outcome| outcome.probability), outcomes.len(), stream)]
    }

    /// Draws the first state of an episode.
    pub fn sample_start(&self, stream: &mut Stream) -> u32 {
        match self.starts.iter().position(|p| *p == 1.0) {
            Some(only) => only as u32,
            None => pick(self.starts.iter().copied(), self.states(), stream) as u32,
        }
    }
}

/// Draws an index from a distribution over `n` elements.
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
    // rounding can leave a remainder; then the last element with positive probability is drawn
    probabilities.enumerate().filter(|(_, p)| *p > 0.0).last().map_or(0, |(i, _)| i)
}
