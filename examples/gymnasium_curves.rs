//! Draws the learning curves of `results/gymnasium`: `cargo run --example gymnasium_curves`.
//!
//! Reads `curves.csv`, whose rows are the mean return of the training episodes in a twentieth of a run, and writes `curves.svg` and `curves.png` beside it: a
//! panel for each environment, a line for each agent through the medians over seeds, and a band from the lowest to the highest seed.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use gradus::figure::{Chart, Figure, Lines, Panel, Series, write};

/// Returns of all seeds by environment, agent and step.
type Curves = BTreeMap<String, BTreeMap<String, BTreeMap<u64, Vec<f64>>>>;

fn curves(csv: &str) -> Result<Curves, Box<dyn Error>> {
    let mut curves = Curves::new();
    for row in csv.lines().skip(1) {
        let [agent, environment, _seed, step, value] = row.split(',').collect::<Vec<_>>()[..] else {
            return Err(format!("curves.csv: expected five columns, got `{row}`").into());
        };
        let environment = environment.trim_start_matches("gym:").trim_start_matches("minigrid/").to_owned();
        curves
            .entry(environment)
            .or_default()
            .entry(agent.to_uppercase())
            .or_default()
            .entry(step.parse()?)
            .or_default()
            .push(value.parse()?);
    }
    Ok(curves)
}

fn series(name: &str, steps: &BTreeMap<u64, Vec<f64>>) -> Series {
    let (mut points, mut band) = (Vec::new(), Vec::new());
    for (&step, returns) in steps {
        let mut returns = returns.clone();
        returns.sort_by(f64::total_cmp);
        let n = returns.len();
        points.push((step as f64, (returns[(n - 1) / 2] + returns[n / 2]) / 2.0));
        band.push((step as f64, returns[0], returns[n - 1]));
    }
    Series { band, ..Series::new(name, points) }
}

fn draw() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("results/gymnasium");
    let mut panels = Vec::new();
    for (environment, agents) in curves(&std::fs::read_to_string(folder.join("curves.csv"))?)? {
        let series = agents.iter().map(|(agent, steps)| series(agent, steps)).collect();
        let lines = Lines { x_label: "environment steps".into(), y_label: "return".into(), series, ..Lines::default() };
        panels.push(Panel { title: environment, chart: Chart::Lines(lines) });
    }
    let note = "Training episodes; medians over seeds, bands from the lowest to the highest".into();
    let figure = Figure { title: "Presets of rl-zoo in environments of Gymnasium".into(), note, columns: 2, panels };
    for ending in ["svg", "png"] {
        write(&figure, &folder.join("curves").with_extension(ending))?;
    }
    Ok(())
}

fn main() -> ExitCode {
    match draw() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gymnasium_curves: {error}");
            ExitCode::FAILURE
        }
    }
}
