//! Gradus with an environment and an agent of one's own.
//!
//! ```text
//! cargo run -- train awr thermostat
//! cargo run -- compare compare.toml --out runs/compare
//! cargo run -- list
//! ```

mod awr;
mod thermostat;

use std::process::ExitCode;

fn main() -> ExitCode {
    gradus::app().with_world(thermostat::world()).agent::<awr::AwrConfig>().run()
}
