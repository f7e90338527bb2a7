//! The command line of the Gradus reinforcement-learning toolkit: the program `gradus`, and [`app`], the same commands for programs with
//! environments and agents of their own.
//!
//! One file is one command, and `command.rs` has their arguments.
//!
//! | feature | adds |
//! | --- | --- |
//! | `watch` | `gradus train --watch`, a dashboard in the terminal |
//! | `shell` | `gradus shell`, which writes completions and manual pages |
//! | `tch`, `download-libtorch` | the engine `torch`, on a CPU or a GPU; downloads libtorch for the CPU |
//! | `language` | pretrained language models, `chat:PATH?model=MODEL` |
//! | `gym-rs` | the environments of the crate gym-rs |
#![forbid(unsafe_code)]
#![deny(clippy::print_stderr, clippy::print_stdout)] // these panic if the output cannot be written

mod advice;
mod app;
mod arguments;
mod bandit;
pub mod bench;
mod chat;
mod check;
mod command;
mod course;
mod doctor;
mod end;
mod eval;
mod explain;
mod export;
mod folder;
mod guide;
mod inspect;
mod list;
mod new;
mod output;
#[doc(hidden)] // for the tests of the published pages
pub mod pages;
mod play;
mod plot;
mod probe;
mod reproduce;
mod reward_model;
mod sample;
mod sft;
#[cfg(feature = "shell")]
mod shell;
mod signals;
mod study;
mod train;
mod values;
mod verify;
#[cfg(feature = "watch")]
mod watch;

pub use app::{App, app};
