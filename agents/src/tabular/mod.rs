//! Tabular methods: one number for every state, or for every state and action.
//!
//! Sutton and Barto, "Reinforcement Learning: An Introduction", second edition, 2018. Equation numbers refer to this book.
//!
//! - With a known transition table: [`value_iteration`] (4.10), [`policy_evaluation`] (4.5), and [`evaluate_within`] for
//!   episodes with a time limit.
//! - From experience: [`td0`] (6.2) for prediction, [`q_learning`] (6.8) and [`sarsa`] (6.7) for control.
//!
//! Each update depends only on its arguments. `gradus::textbook` runs the episodes.

mod planning;
mod q_learning;
mod sarsa;
mod td;

pub use planning::{Sweeps, best_actions, deterministic, evaluate_within, mean_over_starts, policy_evaluation, value_iteration};
pub use q_learning::q_learning;
pub use sarsa::sarsa;
pub use td::td0;

/// One transition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Experience {
    /// State S.
    pub state: usize,
    /// Action A.
    pub action: usize,
    /// Reward R.
    pub reward: f64,
    /// Next state S'.
    pub next: usize,
    /// Whether the Markov decision process terminated, so that no reward follows R; false for a truncated episode.
    pub terminated: bool,
}

/// A table of action values Q(s, a), with one row per state.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionValues {
    actions: usize,
    values: Vec<f64>,
}

impl ActionValues {
    /// Creates a table in which every action value is `initial`.
    ///
    /// # Panics
    /// If there are no actions.
    pub fn new(states: usize, actions: usize, initial: f64) -> Self {
        assert!(actions > 0, "action values: expected at least 1 action, got 0");
        Self { actions, values: vec![initial; states * actions] }
    }

    /// Number of states.
    pub fn states(&self) -> usize {
        self.values.len() / self.actions
    }

    /// Number of actions.
    pub fn actions(&self) -> usize {
        self.actions
    }

    /// Returns Q(s, .).
    pub fn row(&self, state: usize) -> &[f64] {
        &self.values[state * self.actions..(state + 1) * self.actions]
    }

    /// Returns Q(s, a) mutably.
    pub fn at_mut(&mut self, state: usize, action: usize) -> &mut f64 {
        assert!(action < self.actions, "action values: expected an action below {}, got {action}", self.actions);
        &mut self.values[state * self.actions + action]
    }

    /// Returns max_a Q(s, a).
    pub fn best(&self, state: usize) -> f64 {
        self.row(state).iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }

    /// Returns argmax_a Q(s, a) for every state. If several actions have the highest value, returns the first of them.
    pub fn greedy(&self) -> Vec<usize> {
        let first_best = |row: &[f64]| (1..row.len()).fold(0, |best, action| if row[action] > row[best] { action } else { best });
        self.values.chunks_exact(self.actions).map(first_best).collect()
    }
}
