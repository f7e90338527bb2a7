//! Tabular methods: one number for every state, or for every state and action.
//!
//! Sutton and Barto, "Reinforcement Learning: An Introduction", second edition, 2018. Equation numbers refer to this book.
//!
//! - With a known transition table: [`value_iteration`] (4.10), [`policy_evaluation`] (4.5), and [`evaluate_within`] for
//!   episodes with a time limit.
//! - From whole episodes: [`monte_carlo`] (section 5.1), off-policy [`ImportanceSampling`] (5.5, 5.6), [`n_step_td`] (7.2) and the off-line
//!   [`lambda_return`] (12.4).
//! - From single steps: [`td0`] (6.2) for prediction, [`q_learning`] (6.8), [`sarsa`] (6.7) and [`expected_sarsa`] (6.9) for control.
//! - From a learned [`Model`]: Dyna-Q (section 8.2).
//! - With [`Tiles`] instead of a table: [`semi_gradient_sarsa`] (section 10.1).
//!
//! Each update depends only on its arguments. `gradus::textbook` runs the episodes.

mod dyna;
mod expected_sarsa;
mod monte_carlo;
mod n_step;
mod planning;
mod q_learning;
mod sarsa;
mod td;
mod tiles;

pub use dyna::Model;
pub use expected_sarsa::expected_sarsa;
pub use monte_carlo::{ImportanceSampling, Visits, monte_carlo, returns};
pub use n_step::{lambda_return, n_step_td};
pub use planning::{Sweeps, best_actions, deterministic, evaluate_within, mean_over_starts, policy_evaluation, value_iteration};
pub use q_learning::q_learning;
pub use sarsa::sarsa;
pub use td::td0;
pub use tiles::{SarsaSettings, Tiles, semi_gradient_sarsa};

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

/// An episode that terminated: S_0, A_0, R_1, S_1, ..., R_T. The terminal state is not listed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trajectory {
    /// States S_0 to S_{T-1}.
    pub states: Vec<usize>,
    /// Actions A_0 to A_{T-1}.
    pub actions: Vec<usize>,
    /// Rewards R_1 to R_T.
    pub rewards: Vec<f64>,
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
