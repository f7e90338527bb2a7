//! The command `gradus`.

mod commands;

use clap::Parser;

fn main() {
    let arguments = commands::Arguments::parse();
    match commands::run(arguments) {
        Ok(code) => std::process::exit(code),
        Err(error) => {
            eprintln!("error: {error}");
            std::process::exit(2);
        }
    }
}
