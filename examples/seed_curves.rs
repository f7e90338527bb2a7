//! Draws the learning curves that `scripts/seeds.sh` records: `cargo run --example seed_curves -- results/arcade`.
//!
//! Reads `curves.csv` in the folder, whose rows are the mean return of the training episodes in a twentieth of a run, and writes `curves.svg` and `curves.png`
//! beside it: a panel for each environment, a line for each agent through the medians over seeds, and a band from the lowest to the highest seed. The first line
//! of the folder's `README.md` is the title.

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

/// Says how many seeds there are, and what is drawn of them.
fn note(curves: &Curves) -> String {
    let counts = || curves.values().flat_map(BTreeMap::values).flat_map(BTreeMap::values).map(Vec::len);
    match (counts().min().unwrap_or(0), counts().max().unwrap_or(0)) {
        (_, 0 | 1) => "Training episodes, one seed".into(),
        (1, most) => format!(
            "Training episodes; medians over up to {most} seeds, bands from the lowest to the highest; a line without a band has one seed"
        ),
        (least, most) if least == most => format!("Training episodes; medians over {most} seeds, bands from the lowest to the highest"),
        (least, most) => format!("Training episodes; medians over {least} to {most} seeds, bands from the lowest to the highest"),
    }
}

fn read(folder: &Path, name: &str) -> Result<String, String> {
    let path = folder.join(name);
    std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
}

fn draw(folder: &Path) -> Result<(), Box<dyn Error>> {
    let mut panels = Vec::new();
    let text = read(folder, "curves.csv")?;
    for (environment, agents) in curves(&text)? {
        let series = agents.iter().map(|(agent, steps)| series(agent, steps)).collect();
        let lines = Lines { x_label: "environment steps".into(), y_label: "return".into(), series, ..Lines::default() };
        panels.push(Panel { title: environment, chart: Chart::Lines(lines) });
    }
    let note = note(&curves(&text)?);
    let title = read(folder, "README.md")?.lines().next().unwrap_or_default().trim_start_matches("# ").to_owned();
    let figure = Figure { title, note, columns: 2, panels };
    for ending in ["svg", "png"] {
        write(&figure, &folder.join("curves").with_extension(ending))?;
    }
    Ok(())
}

fn main() -> ExitCode {
    let Some(folder) = std::env::args().nth(1) else {
        eprintln!("usage: cargo run --example seed_curves -- FOLDER (such as results/gymnasium)");
        return ExitCode::from(2);
    };
    match draw(Path::new(&folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("seed_curves: {error}");
            ExitCode::from(2)
        }
    }
}
