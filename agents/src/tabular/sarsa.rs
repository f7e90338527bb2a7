//! Sarsa: on-policy control (Rummery and Niranjan, 1994).

use super::{ActionValues, Experience};

/// Updates Q(S, A) += alpha (R + gamma Q(S', A') - Q(S, A)) (equation 6.7). Q(S', A') is 0 if the process terminated. A' is the action
/// taken in S', so the target estimates the value of the policy that the agent follows, exploration included.
///
/// ```
/// use gradus_agents::tabular::{ActionValues, Experience, sarsa};
///
/// let mut q = ActionValues::new(2, 2, 0.0);
/// (*q.at_mut(1, 0), *q.at_mut(1, 1)) = (3.0, -2.0);
/// sarsa(&mut q, Experience { state: 0, action: 1, reward: -1.0, next: 1, terminated: false }, 1, 0.5, 0.9);
/// assert!((q.row(0)[1] + 1.4).abs() < 1e-12); // half of the target -1 - 0.9 x 2
/// ```
pub fn sarsa(q: &mut ActionValues, step: Experience, next_action: usize, alpha: f64, gamma: f64) {
    let after = if step.terminated { 0.0 } else { q.row(step.next)[next_action] };
    let value = q.at_mut(step.state, step.action);
    *value += alpha * (step.reward + gamma * after - *value);
}
