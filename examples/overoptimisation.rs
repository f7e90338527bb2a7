//! Makes `results/text/overoptimisation.*`: records the true score while a policy is trained on a learned reward.
//!
//! `cargo run --release --example overoptimisation`
//!
//! A reward model is trained on pairs of completions of the initial policy and then frozen. GRPO maximises the model's score, with
//! a KL penalty to the initial policy, for several coefficients beta. The score of the task's hidden scorer is recorded but not used as a
//! reward. The settings are in `results/text/overoptimisation.toml`.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use gradus::figure::{self, Chart, Figure, Lines, Panel, Series};
use gradus::nets::threads;
use gradus::run::reward_model::{Wanted, run as learn};
use gradus::run::sft::{self, WarmStart};
use gradus::train::Quality;
use gradus::{Config, Error, Trainer};

const BETAS: [f32; 3] = [0.0, 0.03, 0.1];
const SEEDS: u64 = 5;
const DIR: &str = "results/text";

/// The mean scores of a rollout, the tokens generated so far, and the policy's divergence from the initial policy.
struct Point {
    tokens: u64,
    learned: f64,
    real: f64,
    divergence: f64,
}

fn train(config: Config) -> Result<Vec<Point>, Error> {
    let mut trainer = Trainer::new(config)?;
    let mut points = Vec::new();
    while !trainer.is_finished() {
        let iteration = trainer.iterate()?;
        let metric = |name: &str| iteration.metrics.iter().find(|(key, _)| key == name).map_or(f64::NAN, |(_, number)| *number);
        points.push(Point {
            tokens: iteration.steps,
            learned: metric("reward/mean"),
            real: metric("reward/true"),
            divergence: metric("kl/ref_sequence"),
        });
    }
    Ok(points)
}

/// Returns the mean of `number` over the seeds, for each of `stretches` equal parts of the training. Each seed has the same weight,
/// regardless of its number of updates in the part.
fn curve(runs: &[Vec<Point>], number: fn(&Point) -> f64, stretches: u64) -> Vec<(f64, f64)> {
    let most = runs.iter().filter_map(|run| run.last()).map(|point| point.tokens).max().unwrap_or(1);
    let middle = |stretch: u64| (stretch as f64 + 0.5) * most as f64 / stretches as f64;
    let average = |numbers: Vec<f64>| numbers.iter().sum::<f64>() / numbers.len() as f64;
    let of_run = |run: &Vec<Point>, stretch: u64| {
        average(run.iter().filter(|point| point.tokens * stretches / (most + 1) == stretch).map(number).collect())
    };
    let mean = |stretch: u64| average(runs.iter().map(|run| of_run(run, stretch)).filter(|mean| mean.is_finite()).collect());
    (0..stretches).map(|stretch| (middle(stretch), mean(stretch))).filter(|(_, y)| y.is_finite()).collect()
}

fn main() -> Result<(), Error> {
    let dir = Path::new(DIR);
    let base = Config::preset("grpo", "preference", None)?.with_file(&dir.join("overoptimisation.toml"))?;
    let wanted = WarmStart { steps: 30, ..WarmStart::default() };
    let (start, _) = sft::run(&sft::defaults(base.clone()), &wanted, None, "overoptimisation-start", |_| ())?;
    let base = Config { init: start.display().to_string(), ..base };
    let (folder, learnt) = learn(&sft::defaults(base.clone()), &Wanted::default(), None, "overoptimisation-reward")?;
    let Quality::Rankings(agreement) = learnt.quality else { unreachable!("a model that learned from pairs") };
    let (accuracy, margin) = (agreement.accuracy(), agreement.margin());
    println!("reward model: {:.1} % of the test pairs ranked correctly, margin {margin:.2}", 100.0 * accuracy);
    let base = base.with_setting(&format!("reward_model.folder={}", folder.display()))?;
    let model = format!("trained_on,accuracy,margin\n{},{accuracy},{margin}\n", learnt.examples);
    write(&dir.join("overoptimisation-model.csv"), &model)?;

    let mut csv = String::from("beta,seed,tokens,learned,true,divergence\n");
    let (mut learned, mut real, mut divergence) = (Lines::default(), Lines::default(), Lines::default());
    for beta in BETAS {
        let config = base.clone().with_setting(&format!("reference.coefficient={beta}"))?;
        let mut seeds: Vec<u64> = (1..=SEEDS).collect();
        let runs = threads::with_default(|| threads::map(&mut seeds, |_, seed| train(Config { seed: *seed, ..config.clone() })));
        let runs = runs.into_iter().collect::<Result<Vec<_>, _>>()?;
        for (seed, run) in seeds.iter().zip(&runs) {
            for Point { tokens, learned, real, divergence } in run {
                writeln!(csv, "{beta},{seed},{tokens},{learned},{real},{divergence}").expect("writing to a string cannot fail");
            }
        }
        let end = |number: fn(&Point) -> f64| curve(&runs, number, 20).last().map_or(f64::NAN, |(_, y)| *y);
        println!("beta {beta}: learned {:.2}, true {:.2}, divergence {:.1}", end(|p| p.learned), end(|p| p.real), end(|p| p.divergence));
        for (lines, number) in
            [(&mut learned, (|p| p.learned) as fn(&Point) -> f64), (&mut real, |p| p.real), (&mut divergence, |p| p.divergence)]
        {
            lines.series.push(Series::new(format!("beta {beta}"), curve(&runs, number, 40)));
        }
    }
    for (lines, label) in [(&mut learned, "learned score"), (&mut real, "true score"), (&mut divergence, "KL from the start, nats")] {
        lines.x_label = "generated tokens".into();
        lines.y_label = label.into();
    }
    let panel = |title: &str, lines| Panel { title: title.into(), chart: Chart::Lines(lines) };
    let panels = vec![panel("what is maximised", learned), panel("what was meant", real), panel("how far it goes", divergence)];
    let title = "A learned reward, maximised: GRPO on preference, mean of five seeds".into();
    let figure = Figure { title, note: String::new(), columns: 3, panels };
    for extension in ["svg", "png"] {
        figure::write(&figure, &dir.join(format!("overoptimisation.{extension}")))?;
    }
    write(&dir.join("overoptimisation.csv"), &csv)
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    fs::write(path, text).map_err(|source| Error::Io { action: "write", path: path.into(), source })
}
