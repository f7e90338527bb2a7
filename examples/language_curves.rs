//! Draws what `scripts/language/agents.sh` records: `cargo run --example language_curves -- results/language`.
//!
//! Reads `curves.csv` in the folder, whose rows are the tokens so far, the mean reward, the KL divergence from the beginning per token and the mean length of the completions of an update, and
//! writes `curves.svg` and `curves.png` beside it. The updates of 2000 tokens, of all seeds, are one point: their medians, because the estimate of the divergence has outliers. For each task there are three panels: the reward over the tokens,
//! the reward over the KL divergence, and the length over the tokens.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use gradus::figure::{Chart, Figure, Lines, Panel, Series, write};

/// Tokens, reward, KL divergence and length of an update.
type Update = [f64; 4];
/// The updates by task, agent and number of the point.
type Updates = BTreeMap<String, BTreeMap<String, BTreeMap<u64, Vec<Update>>>>;

const TOKENS: f64 = 2000.0;

fn updates(csv: &str) -> Result<Updates, Box<dyn Error>> {
    let mut updates = Updates::new();
    for row in csv.lines().skip(1) {
        let [task, agent, _seed, numbers @ ..] = &row.split(',').collect::<Vec<_>>()[..] else {
            return Err(format!("curves.csv: expected seven columns, got `{row}`").into());
        };
        if *agent == "start" {
            continue;
        }
        let numbers = numbers.iter().map(|number| number.parse()).collect::<Result<Vec<f64>, _>>()?;
        let update: Update = numbers.try_into().map_err(|_| format!("curves.csv: expected seven columns, got `{row}`"))?;
        let point = (update[0] / TOKENS) as u64;
        updates.entry((*task).into()).or_default().entry((*agent).into()).or_default().entry(point).or_default().push(update);
    }
    Ok(updates)
}

/// The name of an agent as people write it.
fn shown(agent: &str) -> String {
    match agent {
        "grpo-all" => "GRPO, all parameters".into(),
        agent => agent.to_uppercase(),
    }
}

/// The medians of the updates of each point.
fn medians(points: &BTreeMap<u64, Vec<Update>>) -> Vec<Update> {
    let median = |updates: &Vec<Update>, i: usize| {
        let mut all: Vec<f64> = updates.iter().map(|update| update[i]).collect();
        all.sort_by(f64::total_cmp);
        (all[(all.len() - 1) / 2] + all[all.len() / 2]) / 2.0
    };
    points.values().map(|updates| std::array::from_fn(|i| median(updates, i))).collect()
}

fn draw(folder: &Path) -> Result<(), Box<dyn Error>> {
    let path = folder.join("curves.csv");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut panels = Vec::new();
    for (task, agents) in updates(&text)? {
        let names = [("tokens", "reward", 0, 1), ("KL divergence per token", "reward", 2, 1), ("tokens", "tokens of a completion", 0, 3)];
        for (x_label, y_label, x, y) in names {
            let of =
                |points: &BTreeMap<u64, Vec<Update>>| medians(points).into_iter().map(|median| (median[x], median[y])).collect::<Vec<_>>();
            let series = agents.iter().map(|(agent, points)| Series::new(shown(agent), of(points))).collect();
            let lines = Lines { x_label: x_label.into(), y_label: y_label.into(), series, ..Lines::default() };
            panels.push(Panel { title: task.replace('-', " "), chart: Chart::Lines(lines) });
        }
    }
    let (title, note) = ("Agents train SmolLM2-135M".into(), "Medians of the updates of 2000 tokens, over all seeds".into());
    let figure = Figure { title, note, columns: 3, panels };
    for ending in ["svg", "png"] {
        write(&figure, &folder.join("curves").with_extension(ending))?;
    }
    Ok(())
}

fn main() -> ExitCode {
    let Some(folder) = std::env::args().nth(1) else {
        eprintln!("usage: cargo run --example language_curves -- FOLDER (such as results/language)");
        return ExitCode::from(2);
    };
    match draw(Path::new(&folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("language_curves: {error}");
            ExitCode::from(2)
        }
    }
}
