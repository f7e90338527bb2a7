//! The `gradus` command.

mod commands;

use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

fn main() -> ExitCode {
    let arguments = commands::Arguments::try_parse().unwrap_or_else(|error| {
        if !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
            error.exit();
        }
        eprintln!("{}", commands::in_one_line(&error.to_string()));
        std::process::exit(2);
    });
    gradus::program(|| commands::run(arguments).map(ExitCode::from))
}
