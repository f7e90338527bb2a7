//! Draws scenes, which environments render: as an animated GIF ([`Animation`]) and in the terminal ([`terminal`]). This crate also has what
//! the figures of results need: the bundled font ([`fonts`]), a picture of pixels ([`pixels`]) and the format of numbers ([`numbers`]).
//!
//! The code that runs once per pixel is in this crate, which is optimised in every profile except `teach`. The crate writes no files.
//!
//! ```
//! use gradus_drawing::terminal;
//! use gradus_envs::{Ink, Scene, Shape};
//!
//! let shapes = vec![Shape::Line { from: [0.0, 0.0], to: [8.0, 4.0], width: 0.1, ink: Ink::Limb }];
//! let scene = Scene { x: [0.0, 8.0], y: [0.0, 4.0], shapes };
//! assert_eq!(terminal::draw(&scene, 4, 1), ["⣀⠤⠒⠉"]);
//! ```
#![forbid(unsafe_code)]
#![deny(clippy::print_stderr, clippy::print_stdout)] // these panic if the output cannot be written

#[cfg(feature = "gif")]
mod animation;
#[cfg(any(feature = "gif", feature = "figures"))]
pub mod fonts;
mod frame;
pub mod numbers;
#[cfg(feature = "figures")]
pub mod pixels;
mod raster;
mod still;
pub mod terminal;

#[cfg(feature = "gif")]
pub use animation::{Animation, AnimationError};
pub use frame::{Frame, ink_colour};
pub use still::still;

/// Tests the code block of the README as a doctest.
#[cfg(all(doctest, feature = "gif"))]
#[doc = include_str!("../README.md")]
struct Readme;
