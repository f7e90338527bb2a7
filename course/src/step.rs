//! A step of an episode.

/// How an episode goes on after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It goes on.
    Running,
    /// It ended in the world: nothing follows.
    Terminated,
    /// It was cut off from outside, by a limit of time: the world would go on.
    Truncated,
}

impl End {
    /// All of them.
    pub(crate) const ALL: [Self; 3] = [Self::Running, Self::Terminated, Self::Truncated];
}

/// A step of an episode, in a world with numbered states and actions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The state.
    pub state: usize,
    /// The action.
    pub action: usize,
    /// The reward.
    pub reward: f64,
    /// The next state. After [`End::Terminated`] it has no value, whatever a table says.
    pub next: usize,
    /// How the episode goes on.
    pub end: End,
}

/// `value`, or 0 after the end of an episode.
pub(crate) fn following(end: End, value: f64) -> f64 {
    if end == End::Terminated { 0.0 } else { value }
}

/// The largest of the values of a state's actions.
pub(crate) fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

/// The first action with the largest value.
pub(crate) fn best(values: &[f64]) -> usize {
    values.iter().position(|value| *value == largest(values)).unwrap_or(0)
}
