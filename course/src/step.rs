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
