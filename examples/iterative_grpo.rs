//! Makes `results/text/iterative.*`: compares iterative GRPO (Shao et al., arXiv 2402.03300, algorithm 1) with GRPO on a reward model that
//! is trained once.
//!
//! `cargo run --release --example iterative_grpo`
//!
//! | | once | refreshed | iterative |
//! |---|---|---|---|
//! | reference policy | the initial policy | the policy at the beginning of each outer iteration | as in refreshed |
//! | reward model | trained before the first update | as in once | trained before each outer iteration, on completions of the current policy and 10 % of the old rankings |
//! | ranked problems | all before the first update | as in once | the same number in total, an equal part before each outer iteration |
//!
//! All three arms begin with the same fine-tuned policy. The hidden scorer of the task `preference` ranks completions. Its score is
//! recorded but not used as a reward. The settings are in `results/text/iterative.toml`.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use gradus::figure::{self, Chart, Figure, Lines, Panel, Series};
use gradus::nets::threads;
use gradus::run::sft::{self, WarmStart};
use gradus::{Config, Error, Trainer};

/// Outer iterations: I of algorithm 1.
const OUTER: usize = 8;
/// Updates in each outer iteration: M of algorithm 1.
const INNER: usize = 15;
/// Problems whose completions are ranked for each training of the reward model in the iterative arm. The other arms rank the completions
/// of `OUTER * PROBLEMS` problems before the first update.
const PROBLEMS: usize = 400;
const SEEDS: u64 = 5;
/// Each point of the figure is a mean over this many updates.
const STRETCH: usize = 5;
const DIR: &str = "results/text";

/// The mean scores in the rollout of an update, the tokens generated so far, and the accuracy of the reward model.
struct Point {
    tokens: u64,
    learned: f64,
    real: f64,
    /// Share of validation pairs that the reward model ranks correctly; NaN unless it was trained immediately before this update. The pairs
    /// are completions of the current policy.
    accuracy: f64,
}

/// Returns the settings that each arm has in addition to the shared settings.
fn arms() -> [(&'static str, Vec<String>); 3] {
    let once = format!("reward_model.pairs={}", OUTER * PROBLEMS);
    let refresh = format!("reference.refresh_every={INNER}");
    let again = [format!("reward_model.pairs={PROBLEMS}"), format!("reward_model.retrain_every={INNER}")];
    let iterative = again.into_iter().chain([refresh.clone()]).collect();
    [("once", vec![once.clone()]), ("refreshed", vec![once, refresh]), ("iterative", iterative)]
}

fn train(config: Config) -> Result<Vec<Point>, Error> {
    let mut trainer = Trainer::new(config)?;
    let mut points = Vec::new();
    for _ in 0..OUTER * INNER {
        let iteration = trainer.iterate()?;
        let metric = |name: &str| iteration.metrics.iter().find(|(key, _)| key == name).map_or(f64::NAN, |(_, number)| *number);
        points.push(Point {
            tokens: iteration.steps,
            learned: metric("reward/mean"),
            real: metric("reward/true"),
            accuracy: metric("reward_model/accuracy"),
        });
    }
    Ok(points)
}

/// Returns the mean of `number` over these updates of all runs. Values that are not finite are ignored.
fn mean(runs: &[Vec<Point>], updates: std::ops::Range<usize>, number: fn(&Point) -> f64) -> f64 {
    let numbers: Vec<f64> = runs.iter().flat_map(|run| run[updates.clone()].iter().map(number)).filter(|x| x.is_finite()).collect();
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

/// Returns the curve of `number`: each point is a mean over all seeds and [`STRETCH`] updates.
fn curve(runs: &[Vec<Point>], number: fn(&Point) -> f64) -> Vec<(f64, f64)> {
    let stretch = |first: usize| (first as f64 + STRETCH as f64 / 2.0, mean(runs, first..first + STRETCH, number));
    (0..OUTER * INNER).step_by(STRETCH).map(stretch).collect()
}

fn main() -> Result<(), Error> {
    let dir = Path::new(DIR);
    let base = Config::preset("grpo", "preference", None)?.with_file(&dir.join("iterative.toml"))?;
    let wanted = WarmStart { steps: 30, ..WarmStart::default() };
    let (start, _) = sft::run(&sft::defaults(base.clone()), &wanted, None, "iterative_grpo-start", |_| ())?;
    let base = Config { init: start.display().to_string(), ..base };

    let mut csv = String::from("arm,seed,update,tokens,learned,true,accuracy\n");
    let (mut learned, mut real) = (Lines::default(), Lines::default());
    for (arm, settings) in arms() {
        let config = settings.iter().try_fold(base.clone(), |config, setting| config.with_setting(setting))?;
        let mut seeds: Vec<u64> = (1..=SEEDS).collect();
        let runs = threads::with_default(|| threads::map(&mut seeds, |_, seed| train(Config { seed: *seed, ..config.clone() })));
        let runs = runs.into_iter().collect::<Result<Vec<_>, _>>()?;
        for (seed, run) in seeds.iter().zip(&runs) {
            for (update, Point { tokens, learned, real, accuracy }) in run.iter().enumerate() {
                writeln!(csv, "{arm},{seed},{},{tokens},{learned},{real},{accuracy}", update + 1).expect("writing to a string cannot fail");
            }
        }
        println!("{arm}, mean of {SEEDS} seeds in each outer iteration:");
        println!("  outer  learned  true   accuracy of the reward model (blank: not trained here)");
        for outer in 0..OUTER {
            let of = |number| mean(&runs, outer * INNER..(outer + 1) * INNER, number);
            let (score, truth, accuracy) = (of(|p| p.learned), of(|p| p.real), of(|p| p.accuracy));
            let accuracy = if accuracy.is_nan() { String::new() } else { format!("{:.1} %", 100.0 * accuracy) };
            println!("  {:>5}  {score:>7.3}  {truth:.3}  {accuracy}", outer + 1);
        }
        let ends = runs.iter().map(|run| format!("{:.3}", mean(std::slice::from_ref(run), (OUTER - 1) * INNER..OUTER * INNER, |p| p.real)));
        println!("  true score in the last outer iteration, by seed: {}", ends.collect::<Vec<_>>().join(" "));
        learned.series.push(Series::new(arm, curve(&runs, |p| p.learned)));
        real.series.push(Series::new(arm, curve(&runs, |p| p.real)));
    }
    for (lines, label) in [(&mut learned, "learned score"), (&mut real, "true score")] {
        lines.x_label = format!("updates, {INNER} to an outer iteration");
        lines.y_label = label.into();
    }
    let panel = |title: &str, lines| Panel { title: title.into(), chart: Chart::Lines(lines) };
    let panels = vec![panel("what is maximised", learned), panel("what was meant", real)];
    let title = "Iterative GRPO on preference, mean of five seeds".into();
    let figure = Figure { title, note: String::new(), columns: 2, panels };
    for extension in ["svg", "png"] {
        figure::write(&figure, &dir.join(format!("iterative.{extension}")))?;
    }
    let path = dir.join("iterative.csv");
    fs::write(&path, csv).map_err(|source| Error::Io { action: "write", path, source })
}
