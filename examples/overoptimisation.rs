//! Makes `results/text/overoptimisation*`: records the true score while a learned reward is maximised.
//!
//! `cargo run --release --example overoptimisation`
//!
//! A reward model is trained on pairs of completions of the initial policy and then frozen. Its score is maximised in four ways: by GRPO and
//! by PPO, with and without a KL penalty to the initial policy, by DPO on pairs that the model ranks, and by best of n, which trains nothing.
//! The score of the task's hidden scorer is recorded but not used as a reward. Each way pays for a higher learned score with divergence from
//! the initial policy, so the second figure draws both scores over the divergence (Gao et al., arXiv 2210.10760). The settings are in
//! `results/text/overoptimisation.toml`.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use gradus::envs::text::Split;
use gradus::figure::{self, Chart, Figure, Lines, Panel, Series};
use gradus::nets::threads;
use gradus::run::best_of::{BestOf, best_of};
use gradus::run::reward_model::{Wanted, run as learn};
use gradus::run::sft::{self, WarmStart};
use gradus::train::Quality;
use gradus::{Config, Error, Trainer};

/// The agents, each with its coefficient of the divergence from the initial policy.
const RUNS: [(&str, f32); 7] = [("grpo", 0.0), ("grpo", 0.03), ("grpo", 0.1), ("ppo", 0.0), ("ppo", 0.1), ("dpo", 0.03), ("dpo", 0.1)];
const SEEDS: u64 = 10;
/// Largest number of completions from which the best is chosen.
const MOST: usize = 1024;
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

/// Returns `number` over the divergence: one point for each part of the training.
fn over_divergence(runs: &[Vec<Point>], number: fn(&Point) -> f64) -> Vec<(f64, f64)> {
    let (divergence, number) = (curve(runs, |p| p.divergence, 30), curve(runs, number, 30));
    divergence.into_iter().zip(number).map(|((_, x), (_, y))| (x, y)).collect()
}

/// Returns the settings of one way to maximise the learned reward.
fn settings(agent: &str, beta: f32, start: &Path, model: &Path) -> Result<Config, Error> {
    let config = Config::preset(agent, "preference", None)?.with_file(&Path::new(DIR).join("overoptimisation.toml"))?;
    let of_beta = if agent == "dpo" { "dpo.beta" } else { "reference.coefficient" };
    let config = config.with_setting(&format!("{of_beta}={beta}"))?;
    config.with_setting(&format!("init={}", start.display()))?.with_setting(&format!("reward_model.folder={}", model.display()))
}

fn main() -> Result<(), Error> {
    let dir = Path::new(DIR);
    let base = sft::defaults(Config::preset("grpo", "preference", None)?);
    let wanted = WarmStart { steps: 30, ..WarmStart::default() };
    let (start, _) = sft::run(&base, &wanted, None, "overoptimisation-start", |_| ())?;
    let (model, learnt) =
        learn(&base.with_setting(&format!("init={}", start.display()))?, &Wanted::default(), None, "overoptimisation-reward")?;
    let Quality::Rankings(agreement) = &learnt.quality else { unreachable!("a model that learned from pairs") };
    let (accuracy, margin) = (agreement.accuracy(), agreement.margin());
    println!("reward model: {:.1} % of the test pairs ranked correctly, margin {margin:.2}", 100.0 * accuracy);
    write(&dir.join("overoptimisation-model.csv"), &format!("trained_on,accuracy,margin\n{},{accuracy},{margin}\n", learnt.examples))?;

    let mut csv = String::from("agent,beta,seed,tokens,learned,true,divergence\n");
    let (mut learned, mut real, mut divergence) = (Lines::default(), Lines::default(), Lines::default());
    let (mut learned_over, mut real_over) = (Lines::default(), Lines::default());
    for (agent, beta) in RUNS {
        let config = settings(agent, beta, &start, &model)?;
        let mut seeds: Vec<u64> = (1..=SEEDS).collect();
        let runs = threads::with_default(|| threads::map(&mut seeds, |_, seed| train(Config { seed: *seed, ..config.clone() })));
        let runs = runs.into_iter().collect::<Result<Vec<_>, _>>()?;
        for (seed, run) in seeds.iter().zip(&runs) {
            for Point { tokens, learned, real, divergence } in run {
                writeln!(csv, "{agent},{beta},{seed},{tokens},{learned},{real},{divergence}").expect("writing to a string cannot fail");
            }
        }
        let end = |number: fn(&Point) -> f64| curve(&runs, number, 20).last().map_or(f64::NAN, |(_, y)| *y);
        let [score, truth, nats] = [|p: &Point| p.learned, |p: &Point| p.real, |p: &Point| p.divergence].map(end);
        println!("{agent}, beta {beta}: learned {score:.2}, true {truth:.2}, divergence {nats:.1}");
        if agent == "grpo" {
            let all = [(&mut learned, (|p| p.learned) as fn(&Point) -> f64), (&mut real, |p| p.real), (&mut divergence, |p| p.divergence)];
            all.into_iter().for_each(|(lines, number)| lines.series.push(Series::new(format!("beta {beta}"), curve(&runs, number, 40))));
        }
        let name = format!("{}, beta {beta}", agent.to_uppercase());
        learned_over.series.push(Series::new(name.clone(), over_divergence(&runs, |p| p.learned)));
        real_over.series.push(Series::new(name, over_divergence(&runs, |p| p.real)));
    }
    write(&dir.join("overoptimisation.csv"), &csv)?;

    // the problems that training uses, because the learned score is known to be good only near its training data
    let found = best_of(&start, Some(&model), Split::Train, 200, MOST, 1)?;
    let mut csv = String::from("n,kl_bound,learned,true,standard_error\n");
    for BestOf { n, kl_bound, worth, reward, error } in &found.best_of {
        writeln!(csv, "{n},{kl_bound},{worth},{reward},{error}").expect("writing to a string cannot fail");
    }
    write(&dir.join("best-of-n.csv"), &csv)?;
    let of = |number: fn(&BestOf) -> f64| found.best_of.iter().map(|best| (best.kl_bound, number(best))).collect::<Vec<_>>();
    learned_over.series.push(Series::new(format!("best of 1 to {MOST}"), of(|best| best.worth)));
    real_over.series.push(Series::new(format!("best of 1 to {MOST}"), of(|best| best.reward)));

    for (lines, label) in [(&mut learned, "learned score"), (&mut real, "true score"), (&mut divergence, "KL from the start, nats")] {
        (lines.x_label, lines.y_label) = ("generated tokens".into(), label.into());
    }
    for (lines, label) in [(&mut learned_over, "learned score"), (&mut real_over, "true score")] {
        (lines.x_label, lines.y_label) = ("KL from the start, nats per completion".into(), label.into());
    }
    let panel = |title: &str, lines| Panel { title: title.into(), chart: Chart::Lines(lines) };
    let over_tokens = vec![panel("what is maximised", learned), panel("what was meant", real), panel("how far it goes", divergence)];
    let over_divergence = vec![panel("what is maximised", learned_over), panel("what was meant", real_over)];
    for (name, columns, panels, title) in [
        ("overoptimisation", 3, over_tokens, "A learned reward, maximised: GRPO on preference, mean of ten seeds"),
        ("overoptimisation-kl", 2, over_divergence, "A learned reward over the divergence that it costs, mean of ten seeds"),
    ] {
        let figure = Figure { title: title.into(), note: String::new(), columns, panels };
        for extension in ["svg", "png"] {
            figure::write(&figure, &dir.join(format!("{name}.{extension}")))?;
        }
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    fs::write(path, text).map_err(|source| Error::Io { action: "write", path: path.into(), source })
}
