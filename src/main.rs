//! The `gradus` command.
#![deny(clippy::print_stderr, clippy::print_stdout)] // these panic if the output cannot be written

mod commands;

use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

fn main() -> ExitCode {
    let arguments = commands::Arguments::try_parse().unwrap_or_else(|error| {
        if !error.use_stderr() {
            commands::written(error.print());
            std::process::exit(0);
        }
        if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
            error.exit();
        }
        commands::complain(commands::in_one_line(&error.to_string()));
        std::process::exit(2);
    });
    gradus::program(|| commands::run(arguments).map(ExitCode::from))
}
