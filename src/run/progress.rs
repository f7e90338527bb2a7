//! The progress bars of training runs and analyses.

use std::io::{self, Write};
use std::sync::Once;

#[cfg(feature = "terminal")]
mod bar;
#[cfg(not(feature = "terminal"))]
mod none;

#[cfg(feature = "terminal")]
pub(crate) use bar::Progress;
#[cfg(feature = "terminal")]
pub use bar::with_steps;
#[cfg(not(feature = "terminal"))]
pub(crate) use none::Progress;
#[cfg(not(feature = "terminal"))]
pub use none::with_steps;

/// The lines of Cargo.toml that make a debug build of a program that depends on Gradus fast.
const PROFILE: &str = "\
[profile.dev.package]
gradus-agents = { opt-level = 3, debug-assertions = false, overflow-checks = false }
gradus-base = { opt-level = 3, debug-assertions = false, overflow-checks = false }
gradus-envs = { opt-level = 3, debug-assertions = false, overflow-checks = false }
gradus-nets = { opt-level = 3, debug-assertions = false, overflow-checks = false }
gradus-rollouts = { opt-level = 3, debug-assertions = false, overflow-checks = false }";

/// Prints a warning at the first call, if Gradus is built without optimisation.
pub(crate) fn warn_of_a_debug_build() {
    static WARNED: Once = Once::new();
    if !gradus_nets::is_optimised() {
        let advice = format!("add these lines to Cargo.toml, or use `cargo run --release`\n{PROFILE}");
        // standard error may be closed
        WARNED.call_once(|| drop(writeln!(io::stderr(), "warning: this debug build of gradus trains many times more slowly; {advice}")));
    }
}

/// Whether training or an analysis shows its progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    /// A progress bar, if standard error is a terminal; else, in a training, a line every minute.
    Progress,
    /// Nothing.
    Nothing,
}
