//! Dynamic programming: the values of a known transition table.
//!
//! A policy is pi(a|s), row after row, one row per state. Sweeps change the values in place, as in the textbook's boxes.

use gradus_envs::tabular::Table;

/// Actions this close to the best one count as best, so that rounding does not decide between equals.
const TIE: f64 = 1e-9;

/// Values found by sweeping over the states again and again.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweeps {
    /// V(s).
    pub values: Vec<f64>,
    /// How many sweeps there were.
    pub sweeps: usize,
    /// The largest change in the last one. Above the tolerance where the sweeps were not enough.
    pub change: f64,
}

/// sum over s', r of p(s', r | s, a) (r + gamma V(s')), with V = 0 after the end.
fn backed_up(table: &Table, values: &[f64], state: usize, action: usize, gamma: f64) -> f64 {
    let value = |next: u32, terminated: bool| if terminated { 0.0 } else { values[next as usize] };
    table.outcomes(state, action).iter().map(|o| o.probability * (o.reward + gamma * value(o.next, o.terminated))).sum()
}

/// Sweeps until nothing changes by more than `tolerance`, at most `most` times. `update` gives a state's new value from all values.
fn sweep(states: usize, tolerance: f64, most: usize, update: impl Fn(&[f64], usize) -> f64) -> Sweeps {
    let mut found = Sweeps { values: vec![0.0; states], sweeps: 0, change: f64::INFINITY };
    while found.change > tolerance && found.sweeps < most {
        found.change = 0.0;
        for state in 0..states {
            let value = update(&found.values, state);
            found.change = found.change.max((value - found.values[state]).abs());
            found.values[state] = value;
        }
        found.sweeps += 1;
    }
    found
}

/// Value iteration: V(s) <- max_a sum over s', r of p(s', r | s, a) (r + gamma V(s')), (4.10), from V = 0.
///
/// Without discount it ends where every state can reach an end that is better than going on for ever.
pub fn value_iteration(table: &Table, gamma: f64, tolerance: f64, most_sweeps: usize) -> Sweeps {
    let best = |values: &[f64], state| {
        let values = (0..table.actions()).map(|action| backed_up(table, values, state, action, gamma));
        values.fold(f64::NEG_INFINITY, f64::max)
    };
    sweep(table.states(), tolerance, most_sweeps, best)
}

/// Iterative policy evaluation: V(s) <- sum_a pi(a|s) sum over s', r of p(s', r | s, a) (r + gamma V(s')), (4.5), from V = 0.
///
/// # Panics
/// If `policy` has not one number per state and action.
pub fn policy_evaluation(table: &Table, policy: &[f64], gamma: f64, tolerance: f64, most_sweeps: usize) -> Sweeps {
    check(table, policy);
    sweep(table.states(), tolerance, most_sweeps, |values, state| expected(table, policy, values, state, gamma))
}

/// What `policy` earns from each state in an episode of at most `horizon` steps: (4.5) swept that many times, with the values of one
/// step less. With `gamma` 1 it is the mean return of an episode under a time limit, exactly.
///
/// # Panics
/// If `policy` has not one number per state and action.
pub fn evaluate_within(table: &Table, policy: &[f64], gamma: f64, horizon: usize) -> Vec<f64> {
    check(table, policy);
    let sooner = |values: Vec<f64>, _| (0..table.states()).map(|state| expected(table, policy, &values, state, gamma)).collect();
    (0..horizon).fold(vec![0.0; table.states()], sooner)
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

/// The actions that are best when what follows has the given values: for each state, those within 1e-9 of the largest.
pub fn best_actions(table: &Table, values: &[f64], gamma: f64) -> Vec<Vec<usize>> {
    let best = |state| {
        let values: Vec<f64> = (0..table.actions()).map(|action| backed_up(table, values, state, action, gamma)).collect();
        let highest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        (0..values.len()).filter(|action| values[*action] >= highest - TIE).collect()
    };
    (0..table.states()).map(best).collect()
}

/// The policy that always takes the given action of each state.
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

/// The mean value of the state that an episode begins in.
pub fn mean_over_starts(table: &Table, values: &[f64]) -> f64 {
    table.starts().iter().zip(values).map(|(p, value)| p * value).sum()
}
