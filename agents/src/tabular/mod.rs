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
//! Each update depends only on its arguments. The agents of the command line are [`Rule`]s that a [`TabularAgent`] hands its steps to.

mod agent;
mod double_q_learning;
mod dyna;
mod dynamic_programming;
mod expected_sarsa;
mod memory;
mod monte_carlo;
mod n_step;
mod n_step_sarsa;
mod off_policy_monte_carlo;
mod planning;
mod prioritised_sweeping;
mod q_learning;
mod sarsa;
mod sarsa_lambda;
mod semi_gradient_sarsa;
mod td;
mod td_lambda;
mod tiles;
mod value_table;

pub use agent::{Learning, Rule, Seen, Sizes, StepSizes, TableConfig, TabularAgent};
pub use double_q_learning::{DoubleQLearningConfig, double_q_learning};
pub use dyna::{DynaQConfig, Model};
pub use dynamic_programming::{PolicyEvaluationConfig, PolicyIterationConfig, ValueIterationConfig};
pub use expected_sarsa::{ExpectedSarsaConfig, expected_sarsa};
use memory::{Steps, Traces};
pub use monte_carlo::{ImportanceSampling, MonteCarloConfig, MonteCarloPredictionConfig, Visits, monte_carlo, returns};
pub use n_step::{NStepTdConfig, lambda_return, n_step_td};
pub use n_step_sarsa::NStepSarsaConfig;
pub use off_policy_monte_carlo::OffPolicyMonteCarloConfig;
pub use planning::{
    Sweeps, best_actions, deterministic, evaluate_within, look_ahead, mean_over_starts, policy_evaluation, policy_evaluation_from,
    reachable, reachable_by, value_iteration, value_iteration_among,
};
pub use prioritised_sweeping::{PrioritisedSweeping, PrioritisedSweepingConfig};
pub use q_learning::{QLearningConfig, q_learning};
pub use sarsa::{SarsaConfig, sarsa};
pub use sarsa_lambda::SarsaLambdaConfig;
pub use semi_gradient_sarsa::{SarsaSettings, TileSarsaConfig, semi_gradient_sarsa};
pub use td::{Transition, td0};
pub use td_lambda::TdLambdaConfig;
pub use tiles::Tiles;
pub use value_table::ValueTable;

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
    /// Whether each action is allowed; empty if all are.
    allowed: Vec<bool>,
}

impl ActionValues {
    /// Creates a table in which every action value is `initial`.
    ///
    /// # Panics
    /// If there are no actions.
    pub fn new(states: usize, actions: usize, initial: f64) -> Self {
        assert!(actions > 0, "action values: expected at least 1 action, got 0");
        Self { actions, values: vec![initial; states * actions], allowed: Vec::new() }
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

    /// Forbids the actions that are false in `allowed`, row by row. Maxima and means are then over the allowed actions.
    ///
    /// # Panics
    /// If there is not one entry for each value, or a state has no allowed action.
    pub fn with_allowed(self, allowed: Vec<bool>) -> Self {
        assert_eq!(allowed.len(), self.values.len(), "allowed actions: expected one entry for each value");
        assert!(allowed.chunks_exact(self.actions).all(|row| row.contains(&true)), "allowed actions: expected at least one in every state");
        Self { allowed, ..self }
    }

    /// Forbids the actions of a state that are false in `allowed`, and allows the others.
    ///
    /// # Panics
    /// If `allowed` does not have one entry for each action, or none is true.
    pub fn allow(&mut self, state: usize, allowed: &[bool]) {
        assert!(allowed.len() == self.actions && allowed.contains(&true), "allowed actions: expected at least one of {}", self.actions);
        if self.allowed.is_empty() {
            self.allowed = vec![true; self.values.len()];
        }
        self.allowed[state * self.actions..(state + 1) * self.actions].copy_from_slice(allowed);
    }

    /// Returns whether each action is allowed, row by row; nothing if all are.
    pub fn allowed(&self) -> &[bool] {
        &self.allowed
    }

    /// Whether an action is allowed.
    pub fn is_allowed(&self, state: usize, action: usize) -> bool {
        self.allowed.is_empty() || self.allowed[self.place(state, action)]
    }

    /// Returns max_a Q(s, a).
    pub fn best(&self, state: usize) -> f64 {
        let row = self.row(state).iter().enumerate();
        row.filter(|(action, _)| self.is_allowed(state, *action)).fold(f64::NEG_INFINITY, |best, (_, value)| best.max(*value))
    }

    /// Returns the mean of Q(s, a) over the actions.
    pub fn mean(&self, state: usize) -> f64 {
        let allowed = self.row(state).iter().enumerate().filter(|(action, _)| self.is_allowed(state, *action));
        let (sum, count) = allowed.fold((0.0, 0.0), |(sum, count), (_, value)| (sum + value, count + 1.0));
        sum / count
    }

    /// Returns argmax_a Q(s, a); of several, the first.
    pub fn best_action(&self, state: usize) -> usize {
        let (row, mut best) = (self.row(state), None);
        for action in (0..row.len()).filter(|action| self.is_allowed(state, *action)) {
            if best.is_none_or(|best: usize| row[action] > row[best]) {
                best = Some(action);
            }
        }
        best.unwrap_or(0)
    }

    /// Returns argmax_a Q(s, a) for every state. If several actions have the highest value, returns the first of them.
    pub fn greedy(&self) -> Vec<usize> {
        (0..self.states()).map(|state| self.best_action(state)).collect()
    }

    /// Returns all values, row by row.
    pub fn all(&self) -> &[f64] {
        &self.values
    }

    /// Returns all values mutably, row by row.
    pub fn all_mut(&mut self) -> &mut [f64] {
        &mut self.values
    }

    /// Returns the place of Q(s, a) in [`all`](Self::all).
    pub fn place(&self, state: usize, action: usize) -> usize {
        state * self.actions + action
    }
}
