//! The critic's loss in PPO, as a pure function of a value, its old value and its target.

use crate::surrogate::within;

/// Returns the Huber loss of an error and its derivative. The loss is half the squared error if abs(error) <= `delta`, and linear above.
///
/// ```
/// use gradus_agents::value_loss::huber;
/// assert_eq!((huber(1.0, 2.0), huber(-3.0, 2.0), huber(-3.0, f32::INFINITY)), ((0.5, 1.0), (4.0, -2.0), (4.5, -3.0)));
/// ```
#[inline(always)]
pub fn huber(error: f32, delta: f32) -> (f32, f32) {
    if error.abs() <= delta { (0.5 * (error * error), error) } else { (delta * (error.abs() - 0.5 * delta), within(error, -delta, delta)) }
}

/// Returns the loss of a value and its derivative. The loss is the larger of two [`huber`] losses: that of the value, and that of the
/// value clipped to within `clip` of the old value. If the loss of the clipped value is larger, the derivative is 0.
///
/// ```
/// use gradus_agents::value_loss::clipped_value_loss;
///
/// let loss = |value, target| clipped_value_loss(value, 1.0, target, 0.5, f32::INFINITY);
/// assert_eq!(loss(1.25, 2.0), (0.28125, -0.75)); // within the clip range
/// assert_eq!(loss(2.0, 2.0), (0.125, 0.0)); // clipped to 1.5
/// ```
#[inline(always)]
pub fn clipped_value_loss(value: f32, old_value: f32, target: f32, clip: f32, delta: f32) -> (f32, f32) {
    let (error, moved) = (value - target, value - old_value);
    let clipped_error = if moved.abs() > clip { old_value + within(moved, -clip, clip) - target } else { error };
    let ((plain_loss, slope), (clipped_loss, _)) = (huber(error, delta), huber(clipped_error, delta));
    (plain_loss.max(clipped_loss), if plain_loss >= clipped_loss { slope } else { 0.0 })
}
