//! The frames of an episode, for the terminal and for animations.

use gradus_envs::Scene;

/// One frame of an episode.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// The rendered environment.
    pub scene: Scene,
    /// Number of steps so far.
    pub step: usize,
    /// The sum of rewards so far.
    pub return_so_far: f64,
}
