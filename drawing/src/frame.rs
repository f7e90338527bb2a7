//! The frames of an episode, for the terminal and for animations.

use gradus_envs::{Ink, Scene};

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

/// Returns the red, green and blue of an ink. Blue, orange and green are those of the figures' palette.
pub const fn ink_colour(ink: Ink) -> [u8; 3] {
    match ink {
        Ink::Ground => [170, 176, 184],
        Ink::Body => [0, 114, 178],
        Ink::Limb => [230, 159, 0],
        Ink::Joint => [45, 55, 70],
        Ink::Goal => [0, 158, 115],
    }
}
