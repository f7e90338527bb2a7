//! How a program reports its errors.

use std::io::{self, Write};
use std::process::{ExitCode, Termination};
use std::sync::OnceLock;

use gradus_envs::panics;

use crate::Error;

/// The name of a program with a command line of its own.
static NAME: OnceLock<String> = OnceLock::new();

/// Returns the name of the command that messages advise to type: `gradus`, or the name of the program that calls `app`.
pub fn program_name() -> &'static str {
    NAME.get().map_or("gradus", String::as_str)
}

/// Makes [`program_name`] return the name of the file of this process.
#[cfg(feature = "app")]
pub(crate) fn take_name() {
    let path = std::env::args_os().next().unwrap_or_default();
    let _ = NAME.set(std::path::Path::new(&path).file_stem().unwrap_or_default().display().to_string());
}

/// Runs `body`, the body of `main`, and reports errors as the command `gradus` does: one line on standard error and exit code 2.
///
/// A panic is reported in the same way, with its place in the source. The panic hook of the process is replaced, see
/// [`keep_quiet`](panics::keep_quiet); with `RUST_BACKTRACE=1` the panic and its backtrace are also printed.
///
/// ```no_run
/// use std::process::ExitCode;
/// use gradus::{Config, Run, Show};
///
/// fn main() -> ExitCode {
///     gradus::program(|| Run::create(Config::preset("ppo", "cartpole", None)?, "runs/first")?.train(Show::Progress))
/// }
/// ```
pub fn program<T: Termination>(body: impl FnOnce() -> Result<T, Error>) -> ExitCode {
    panics::keep_quiet();
    match panics::catch(body).unwrap_or_else(|panic| Err(panic.into())) {
        Ok(result) => result.report(),
        Err(error) => {
            // standard error may be closed or full
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::from(2)
        }
    }
}
