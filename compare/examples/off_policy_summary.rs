//! Makes `results/off-policy/summary.csv` from `seeds.csv`, which `benches/peers/off_policy.py` writes: agents of Gradus beside those of
//! Stable-Baselines3 with the same settings. For each task and measure the table has the interquartile mean of each side and the
//! difference, with bootstrap intervals, and for the number of seeds that reach a return Fisher's exact test.
//!
//! `cargo run --release --example off_policy_summary`

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;

use gradus_compare::statistics::csv::cells;
use gradus_compare::statistics::{Aggregate, Bootstrap, Scores, fisher_exact};

/// The return that counts as success: the task's threshold in Gymnasium; for MountainCar that it reaches the flag in at least one of the 100
/// episodes; for Pendulum, which has no threshold, -200.
const SUCCESS: [(&str, f64); 7] = [
    ("acrobot", -100.0),
    ("cartpole", 475.0),
    ("mountain-car", -199.999),
    ("mountain-car-continuous-sac", 90.0),
    ("pendulum-ddpg", -200.0),
    ("pendulum-sac", -200.0),
    ("pendulum-td3", -200.0),
];

/// Seeds of each side. The table leaves out tasks with fewer: their runs have not finished.
const SEEDS: usize = 20;

fn main() -> Result<(), Box<dyn Error>> {
    let text = fs::read_to_string("results/off-policy/seeds.csv")?;
    // the returns by task, measure and side
    let mut returns: BTreeMap<(String, &str), [Vec<f64>; 2]> = BTreeMap::new();
    for line in text.lines().skip(1) {
        let cells = cells(line).ok_or("expected a closing quotation mark")?;
        let [task, side, _seed, _steps, greedy, training] = cells.as_slice() else {
            return Err(format!("expected 6 cells: {line}").into());
        };
        for (measure, cell) in [("greedy_return", greedy), ("last_100_training_episodes", training)] {
            let sides = returns.entry((task.to_string(), measure)).or_default();
            sides[usize::from(side == "sb3")].push(cell.parse()?);
        }
    }
    let mut csv = String::from("task,measure,seeds,seeds_sb3,iqm,iqm_sb3,difference,low,high,successes,successes_sb3,fisher_p\n");
    for ((task, measure), [ours, theirs]) in returns.into_iter().filter(|(_, sides)| sides.iter().all(|side| side.len() >= SEEDS)) {
        let success = SUCCESS.iter().find(|(name, _)| *name == task).ok_or_else(|| format!("unknown task {task}"))?.1;
        let successes = |returns: &[f64]| [returns.iter().filter(|x| **x >= success).count() as u64, returns.len() as u64];
        let (x, y) = (successes(&ours), successes(&theirs));
        let (ours, theirs) = (Scores::new(vec![ours])?, Scores::new(vec![theirs])?);
        let difference = Bootstrap::default().difference(&ours, &theirs, Aggregate::InterquartileMean);
        let iqm = |scores: &Scores| Aggregate::InterquartileMean.of(scores);
        let line = format!(
            "{task},{measure},{},{},{},{},{},{},{},{},{},{}\n",
            x[1],
            y[1],
            iqm(&ours),
            iqm(&theirs),
            difference.point,
            difference.low,
            difference.high,
            x[0],
            y[0],
            fisher_exact(x, y)
        );
        print!("{line}");
        csv.push_str(&line);
    }
    fs::write("results/off-policy/summary.csv", csv)?;
    Ok(())
}
