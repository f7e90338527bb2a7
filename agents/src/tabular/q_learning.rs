//! Q-learning: off-policy control (Watkins, 1989).

use super::{ActionValues, Experience};

/// Updates Q(S, A) += alpha (R + gamma max_a Q(S', a) - Q(S, A)) (equation 6.8). Q(S', a) is 0 if the process terminated. The target
/// assumes greedy actions from S' on, even if the agent explores.
///
/// ```
/// use gradus_agents::tabular::{ActionValues, Experience, q_learning};
///
/// let mut q = ActionValues::new(2, 2, 0.0);
/// *q.at_mut(1, 0) = 3.0;
/// q_learning(&mut q, Experience { state: 0, action: 1, reward: -1.0, next: 1, terminated: false }, 0.5, 0.9);
/// assert!((q.row(0)[1] - 0.85).abs() < 1e-12); // half of the target -1 + 0.9 x 3
/// ```
pub fn q_learning(q: &mut ActionValues, step: Experience, alpha: f64, gamma: f64) {
    let after = if step.terminated { 0.0 } else { q.best(step.next) };
    let value = q.at_mut(step.state, step.action);
    *value += alpha * (step.reward + gamma * after - *value);
}
