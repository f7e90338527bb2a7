//! The `gradus` command.

mod commands;

use clap::Parser;
use clap::error::ErrorKind;

fn main() {
    let arguments = commands::Arguments::try_parse().unwrap_or_else(|error| {
        if !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
            error.exit();
        }
        eprintln!("{}", commands::in_one_line(&error.to_string()));
        std::process::exit(2);
    });
    match commands::run(arguments) {
        Ok(code) => std::process::exit(code),
        Err(error) => {
            eprintln!("error: {error}");
            std::process::exit(2);
        }
    }
}
