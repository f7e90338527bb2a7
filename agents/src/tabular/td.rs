//! Prediction by temporal differences.

/// A step from the state S to S', with the reward R.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transition {
    /// S.
    pub state: usize,
    /// R.
    pub reward: f64,
    /// S'.
    pub next: usize,
    /// Whether the process terminated: S' has no value.
    pub terminated: bool,
}

/// Updates V(S) += alpha (R + gamma V(S') - V(S)), one step of TD(0) (equation 6.2). V(S') is 0 if the process terminated. Returns the TD
/// error (equation 6.5).
///
/// ```
/// use gradus_agents::tabular::{Transition, td0};
///
/// let mut values = [0.5, 0.8];
/// let error = td0(&mut values, Transition { state: 0, reward: 1.0, next: 1, terminated: false }, 0.1, 0.9);
/// assert!((error - 1.22_f64).abs() < 1e-12 && (values[0] - 0.622_f64).abs() < 1e-12);
/// ```
pub fn td0(values: &mut [f64], Transition { state, reward, next, terminated }: Transition, alpha: f64, gamma: f64) -> f64 {
    let after = if terminated { 0.0 } else { values[next] };
    let error = reward + gamma * after - values[state];
    values[state] += alpha * error;
    error
}
