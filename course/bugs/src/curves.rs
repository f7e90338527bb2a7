//! The figures of the bugs, and how far each agent with its bug is from the right one.

use std::fs;
use std::path::{Path, PathBuf};

use gradus::base::threads;
use gradus::run::logs::{read_episodes, read_metrics};
use gradus::{Config, Error, Run, Show};
use gradus_compare::runs::{Plot, plot_runs};
use gradus_compare::statistics::{Bootstrap, Scores};

use crate::bug::Bug;
use crate::program::{replace, say};

/// Seeds of each agent.
const SEEDS: u64 = 20;

/// The first line of `separation.csv`. `better` is the probability that a run without the bug has the higher number.
const HEADER: &str = "bug,number,right,with_bug,better,low,high";

/// Trains the agent of every bug and the right one, draws `bug-N.svg`, and writes `separation.csv` and `seeds.csv`, to the folder. Bugs with a
/// row are left out, so that it can be interrupted.
pub(crate) fn write(dir: &Path) -> Result<(), String> {
    let rows = |name: &str| fs::read_to_string(dir.join(name)).unwrap_or_default();
    let (mut table, mut seeds) = (rows("separation.csv"), rows("seeds.csv"));
    if table.is_empty() {
        (table, seeds) = (format!("{HEADER}\n"), "bug,seed,right,with_bug\n".into());
    }
    for bug in Bug::all() {
        if table.lines().any(|line| line.starts_with(&format!("{},", bug.number))) {
            continue;
        }
        let [right, own] = threads::with(1, || curves(bug, dir)).map_err(|error| format!("bug {}: {error}", bug.number))?;
        let mean = |numbers: &[f64]| numbers.iter().sum::<f64>() / numbers.len() as f64;
        let scores = |numbers: &[f64]| Scores::new(vec![numbers.to_vec()]).map_err(|error| error.to_string());
        let better = Bootstrap::default().improvement(&scores(&right)?, &scores(&own)?);
        let row = format!(
            "{},{},{:.6},{:.6},{},{},{}\n",
            bug.number,
            bug.metric.as_deref().unwrap_or("return"),
            mean(&right),
            mean(&own),
            better.point,
            better.low,
            better.high
        );
        say(row.trim_end());
        table += &row;
        table = in_order(&table);
        for (seed, (right, own)) in (1..).zip(right.iter().zip(&own)) {
            seeds += &format!("{},{seed},{right:.6},{own:.6}\n", bug.number);
        }
        seeds = in_order(&seeds);
        replace(&dir.join("seeds.csv"), &seeds)?;
        replace(&dir.join("separation.csv"), &table)?;
    }
    Ok(())
}

/// Returns a table with its rows in the order of the bugs.
fn in_order(table: &str) -> String {
    let (head, rows) = table.split_once('\n').unwrap_or((table, ""));
    let mut rows: Vec<&str> = rows.lines().collect();
    rows.sort_by_key(|row| row.split(',').next().and_then(|number| number.parse::<u32>().ok()));
    format!("{head}\n{}\n", rows.join("\n"))
}

/// Trains the agent of a bug and the right one with every seed, and draws them. Returns a number for each run.
fn curves(bug: &Bug, dir: &Path) -> Result<[Vec<f64>; 2], Error> {
    let work = std::env::temp_dir().join(format!("gradus-bug-{}-{}", bug.number, std::process::id()));
    let mut folders: Vec<PathBuf> = Vec::new();
    let mut numbers = [Vec::new(), Vec::new()];
    for (name, numbers) in [bug.right_name(), bug.name()].iter().zip(&mut numbers) {
        for seed in 1..=SEEDS {
            let mut config = Config::preset(name, &bug.world, None)?;
            for setting in &bug.settings {
                config = config.with_setting(setting)?;
            }
            config = config.with_setting(&format!("seed={seed}"))?;
            let folder = work.join(format!("{name}-{seed}"));
            Run::create(config, &folder)?.train(Show::Nothing)?;
            numbers.push(number(bug, &folder)?);
            folders.push(folder);
        }
    }
    let labels = vec!["without the bug".into(), "with the bug".into()];
    let plot = Plot { metrics: bug.metric.iter().cloned().collect(), labels, ..Plot::default() };
    plot_runs(&folders, &plot, &[dir.join(format!("bug-{}.svg", bug.number))])?;
    fs::remove_dir_all(&work).map_err(|source| Error::Io { action: "remove", path: work, source })?;
    Ok(numbers)
}

/// The mean return of all episodes of a run; or the mean of a metric in the last fifth of the updates.
fn number(bug: &Bug, folder: &Path) -> Result<f64, Error> {
    let mean = |numbers: &[f64]| numbers.iter().sum::<f64>() / numbers.len() as f64;
    let Some(metric) = &bug.metric else {
        return Ok(mean(&read_episodes(folder)?.iter().map(|(_, value)| *value).collect::<Vec<_>>()));
    };
    let column: Vec<f64> =
        read_metrics(folder)?.column(metric).into_iter().map(|(_, value)| value).filter(|value| !value.is_nan()).collect();
    Ok(mean(&column[column.len() * 4 / 5..]))
}
