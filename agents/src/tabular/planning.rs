//! Dynamic programming: values computed from a known transition table.
//!
//! A policy is pi(a|s), one row per state. Sweeps change the values in place, as in the textbook's algorithms, except in
//! [`evaluate_within`].

use gradus_envs::tabular::Table;

use super::ActionValues;

/// Actions with a value within this distance of the highest also count as best, so that rounding does not break ties.
const TIE: f64 = 1e-9;

/// Values found by repeated sweeps over the states.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweeps {
    /// V(s).
    pub values: Vec<f64>,
    /// Number of sweeps.
    pub sweeps: usize,
    /// Largest change of a value in the last sweep. It is above the tolerance if the values have not converged.
    pub change: f64,
}

/// Returns the sum over s', r of p(s', r | s, a) (r + gamma V(s')). V(s') is 0 after termination.
fn backed_up(table: &Table, values: &[f64], state: usize, action: usize, gamma: f64) -> f64 {
    let value = |next: u32, terminated: bool| if terminated { 0.0 } else { values[next as usize] };
    table.outcomes(state, action).iter().map(|o| o.probability * (o.reward + gamma * value(o.next, o.terminated))).sum()
}

/// Sweeps over `values` until none changes by more than `tolerance`, at most `max_sweeps` times. `update` computes a state's new value from all
/// values.
fn sweep(values: Vec<f64>, tolerance: f64, max_sweeps: usize, update: impl Fn(&[f64], usize) -> f64) -> Sweeps {
    let mut found = Sweeps { values, sweeps: 0, change: f64::INFINITY };
    while found.change > tolerance && found.sweeps < max_sweeps {
        found.change = 0.0;
        for state in 0..found.values.len() {
            let value = update(&found.values, state);
            found.change = found.change.max((value - found.values[state]).abs());
            found.values[state] = value;
        }
        found.sweeps += 1;
    }
    found
}

/// Runs value iteration from V = 0: V(s) <- max_a sum over s', r of p(s', r | s, a) (r + gamma V(s')) (equation 4.10).
///
/// With gamma 1 it converges if every state can reach termination with a higher return than by never terminating.
pub fn value_iteration(table: &Table, gamma: f64, tolerance: f64, max_sweeps: usize) -> Sweeps {
    value_iteration_among(table, |_, _| true, gamma, tolerance, max_sweeps)
}

/// As [`value_iteration`], with maxima over the actions a of each state s for which `is_allowed(s, a)`.
pub fn value_iteration_among(
    table: &Table,
    is_allowed: impl Fn(usize, usize) -> bool,
    gamma: f64,
    tolerance: f64,
    max_sweeps: usize,
) -> Sweeps {
    let best = |values: &[f64], state| {
        let allowed = (0..table.actions()).filter(|action| is_allowed(state, *action));
        allowed.map(|action| backed_up(table, values, state, action, gamma)).fold(f64::NEG_INFINITY, f64::max)
    };
    sweep(vec![0.0; table.states()], tolerance, max_sweeps, best)
}

/// Runs iterative policy evaluation from V = 0: V(s) <- sum_a pi(a|s) sum over s', r of p(s', r | s, a) (r + gamma V(s')) (equation
/// 4.5).
///
/// # Panics
/// If `policy` does not have one number per state and action.
pub fn policy_evaluation(table: &Table, policy: &[f64], gamma: f64, tolerance: f64, max_sweeps: usize) -> Sweeps {
    policy_evaluation_from(vec![0.0; table.states()], table, policy, gamma, tolerance, max_sweeps)
}

/// As [`policy_evaluation`], from these values of the states.
///
/// # Panics
/// If `policy` does not have one number per state and action, or `values` one per state.
pub fn policy_evaluation_from(values: Vec<f64>, table: &Table, policy: &[f64], gamma: f64, tolerance: f64, max_sweeps: usize) -> Sweeps {
    check(table, policy);
    assert_eq!(values.len(), table.states(), "values: expected {} numbers, one per state, got {}", table.states(), values.len());
    sweep(values, tolerance, max_sweeps, |values, state| expected(table, policy, values, state, gamma))
}

/// Returns the expected return of `policy` from each state in an episode of at most `horizon` steps. It makes `horizon` sweeps of
/// equation 4.5, each from the values of the previous sweep. With `gamma` 1 this is the exact mean return under a time limit.
///
/// # Panics
/// If `policy` does not have one number per state and action.
pub fn evaluate_within(table: &Table, policy: &[f64], gamma: f64, horizon: usize) -> Vec<f64> {
    check(table, policy);
    let backup = |values: Vec<f64>, _| (0..table.states()).map(|state| expected(table, policy, &values, state, gamma)).collect();
    (0..horizon).fold(vec![0.0; table.states()], backup)
}

fn expected(table: &Table, policy: &[f64], values: &[f64], state: usize, gamma: f64) -> f64 {
    let row = &policy[state * table.actions()..(state + 1) * table.actions()];
    let taken = row.iter().enumerate().filter(|(_, p)| **p > 0.0);
    taken.map(|(action, p)| p * backed_up(table, values, state, action, gamma)).sum()
}

fn check(table: &Table, policy: &[f64]) {
    let expected = table.states() * table.actions();
    assert_eq!(policy.len(), expected, "policy: expected {expected} numbers, one per state and action, got {}", policy.len());
}

/// Returns the best actions of each state, given V of all states. The best actions are those with a value within 1e-9 of the highest.
pub fn best_actions(table: &Table, values: &[f64], gamma: f64) -> Vec<Vec<usize>> {
    let best = |state| {
        let values: Vec<f64> = (0..table.actions()).map(|action| backed_up(table, values, state, action, gamma)).collect();
        let highest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        (0..values.len()).filter(|action| values[*action] >= highest - TIE).collect()
    };
    (0..table.states()).map(best).collect()
}

/// Returns the policy that always takes action `chosen[s]` in state s.
///
/// ```
/// assert_eq!(gradus_agents::tabular::deterministic(&[1, 0], 2), [0.0, 1.0, 1.0, 0.0]);
/// ```
///
/// # Panics
/// If an action is not below `actions`.
pub fn deterministic(chosen: &[usize], actions: usize) -> Vec<f64> {
    let mut policy = vec![0.0; chosen.len() * actions];
    for (row, action) in policy.chunks_exact_mut(actions).zip(chosen) {
        row[*action] = 1.0;
    }
    policy
}

/// Returns the mean value of the first state of an episode.
pub fn mean_over_starts(table: &Table, values: &[f64]) -> f64 {
    table.starts().iter().zip(values).map(|(p, value)| p * value).sum()
}

/// Returns the states that can be reached from the first states of episodes, in order.
pub fn reachable(table: &Table) -> Vec<usize> {
    reachable_by(table, |_, _| true)
}

/// As [`reachable`], by the actions a of each state s for which `is_allowed(s, a)`.
pub fn reachable_by(table: &Table, is_allowed: impl Fn(usize, usize) -> bool) -> Vec<usize> {
    let mut is_reached: Vec<bool> = table.starts().iter().map(|p| *p > 0.0).collect();
    let mut left: Vec<usize> = (0..table.states()).filter(|state| is_reached[*state]).collect();
    while let Some(state) = left.pop() {
        let allowed = (0..table.actions()).filter(|action| is_allowed(state, *action));
        for outcome in
            allowed.flat_map(|action| table.outcomes(state, action)).filter(|outcome| !outcome.terminated && outcome.probability > 0.0)
        {
            if !std::mem::replace(&mut is_reached[outcome.next as usize], true) {
                left.push(outcome.next as usize);
            }
        }
    }
    (0..table.states()).filter(|state| is_reached[*state]).collect()
}

/// Writes the value of every action, given V of all states: the sum over s', r of p(s', r | s, a) (r + gamma V(s')).
pub fn look_ahead(table: &Table, values: &[f64], gamma: f64, q: &mut ActionValues) {
    for state in 0..table.states() {
        (0..table.actions()).for_each(|action| *q.at_mut(state, action) = backed_up(table, values, state, action, gamma));
    }
}
