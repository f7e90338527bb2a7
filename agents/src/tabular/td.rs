//! Prediction by temporal differences.

/// Updates V(S) += alpha (R + gamma V(S') - V(S)), one step of TD(0) (equation 6.2). V(S') is 0 if the process terminated. Returns the TD
/// error (equation 6.5).
///
/// ```
/// let mut values = [0.5, 0.8];
/// let error = gradus_agents::tabular::td0(&mut values, (0, 1.0, 1), false, 0.1, 0.9);
/// assert!((error - 1.22_f64).abs() < 1e-12 && (values[0] - 0.622_f64).abs() < 1e-12);
/// ```
pub fn td0(values: &mut [f64], (state, reward, next): (usize, f64, usize), terminated: bool, alpha: f64, gamma: f64) -> f64 {
    let after = if terminated { 0.0 } else { values[next] };
    let error = reward + gamma * after - values[state];
    values[state] += alpha * error;
    error
}
