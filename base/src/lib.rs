//! What all crates of the Gradus reinforcement-learning toolkit need, and what knows none of them.
//!
//! - Numbers that are the same on every machine: [`math`] and [`trig`], [`random`], and the vector instructions of [`simd`].
//! - [`threads`]: a pool of threads whose number does not change results.
//! - [`tensors`]: named tensors and their files; [`settings!`]: structs of settings, whose documentation is their help text, and their
//!   [`range`]s.
//! - What users write and type: [`names`] that are nearly right, [`panics`] of their code, text [`files`].
#![deny(clippy::print_stderr, clippy::print_stdout)] // these panic if the output cannot be written

pub mod files;
pub mod math;
pub mod names;
pub mod panics;
pub mod random;
pub mod range;
mod settings;
pub mod simd;
pub mod tensors;
pub mod threads;
pub mod trig;

pub use settings::{Settings, Visit};
#[doc(hidden)]
pub use settings::{concatenated, concatenated_ranges};

/// Tests the code block of the README as a doctest.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
