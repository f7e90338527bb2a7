//! Gradus with an environment and an agent of one's own.

mod awr;
mod thermostat;

use std::process::ExitCode;

fn main() -> ExitCode {
    let presets = concat!(env!("CARGO_MANIFEST_DIR"), "/presets");
    gradus_cli::app().with_world(thermostat::world()).agent::<awr::AwrConfig>().presets(presets).run()
}
