//! Makes `results/text/length-bias*`: the lengths of right and wrong completions under GRPO and under Dr. GRPO.
//!
//! `cargo run --release --example length_bias`
//!
//! GRPO as published divides the loss of a completion by its length. Of two wrong completions with the same advantage, each token of the longer
//! one is then punished less, so wrong completions may grow (Liu et al., arXiv 2503.20783). Dr. GRPO divides by a constant. The task is target
//! sum: digits with a given sum, of which there are right and wrong ones of every length. `length-bias-summary.csv` has the mean length of wrong
//! completions in the first and in the last fifth of the training, and its difference from Dr. GRPO's with the same seed, with bootstrap
//! intervals over the seeds.

use std::fmt::Write;
use std::fs;
use std::ops::Range;
use std::path::Path;

use gradus::figure::{self, Chart, Figure, Lines, Panel, Series};
use gradus::nets::threads;
use gradus::statistics::{Bootstrap, Estimate};
use gradus::{Config, Error, Trainer};

/// Name, aggregation of the losses of a completion's tokens, and divisor of the advantages.
const METHODS: [(&str, &str, &str); 3] = [
    ("GRPO, as published", "sequence-mean", "population"),
    ("GRPO, mean over all tokens", "token-mean", "population"),
    ("Dr. GRPO", "constant-length", "none"),
];
const SEEDS: u64 = 10;
const TASK: &str = "target-sum";
/// Longest completion.
const LONGEST: usize = 24;
const TOKENS: u64 = 1_000_000;
/// Parts of the training, over which lengths are averaged.
const PARTS: u64 = 20;
const DIR: &str = "results/text";

/// Means over the completions of one part of a training.
#[derive(Clone, Copy, Default)]
struct Part {
    right: f64,
    right_tokens: f64,
    wrong: f64,
    wrong_tokens: f64,
    reward: f64,
}

impl Part {
    fn reward(&self) -> f64 {
        self.reward / (self.right + self.wrong)
    }

    fn right_length(&self) -> f64 {
        self.right_tokens / self.right
    }

    fn wrong_length(&self) -> f64 {
        self.wrong_tokens / self.wrong
    }
}

fn train(config: Config) -> Result<Vec<Part>, Error> {
    let mut trainer = Trainer::new(config)?;
    let exact = trainer.score_names().iter().position(|name| name == "exact").expect("a score of every task");
    let mut parts = vec![Part::default(); PARTS as usize];
    while !trainer.is_finished() {
        let part = &mut parts[(trainer.steps() * PARTS / TOKENS) as usize];
        for episode in trainer.iterate()?.episodes {
            let length = f64::from(episode.length);
            part.reward += episode.episode_return;
            if episode.scores[exact] == 1.0 {
                (part.right, part.right_tokens) = (part.right + 1.0, part.right_tokens + length);
            } else {
                (part.wrong, part.wrong_tokens) = (part.wrong + 1.0, part.wrong_tokens + length);
            }
        }
    }
    Ok(parts)
}

/// Returns the mean length of the wrong completions in some parts of each run.
fn wrong_lengths(runs: &[Vec<Part>], parts: Range<usize>) -> Vec<f64> {
    let sum = |run: &[Part], number: fn(&Part) -> f64| run[parts.clone()].iter().map(number).sum::<f64>();
    runs.iter().map(|run| sum(run, |part| part.wrong_tokens) / sum(run, |part| part.wrong)).collect()
}

/// Returns the mean over the seeds as the fields of a table, with its interval.
fn interval(numbers: &[f64]) -> String {
    let table: Vec<Vec<f64>> = numbers.iter().map(|number| vec![*number]).collect();
    let Estimate { point, low, high } = Bootstrap::default().crossed_mean(&table);
    format!("{point},{low},{high}")
}

fn main() -> Result<(), Error> {
    let dir = Path::new(DIR);
    let mut all = Vec::new();
    let mut csv = String::from("method,seed,tokens,reward,right,right_length,wrong,wrong_length\n");
    let titles = ["wrong completions", "right completions", "reward"];
    let mut lines = titles.map(|_| Lines::default());
    for (name, aggregation, std) in METHODS {
        let base = Config { steps: TOKENS, ..Config::preset("grpo", TASK, None)? };
        let settings =
            [format!("grpo.aggregation={aggregation}"), format!("grpo.group_std={std}"), format!("text.max_new_tokens={LONGEST}")];
        let config = settings.iter().try_fold(base, |config, setting| config.with_setting(setting))?;
        let mut seeds: Vec<u64> = (1..=SEEDS).collect();
        let runs = threads::with_default(|| threads::map(&mut seeds, |_, seed| train(Config { seed: *seed, ..config.clone() })));
        let runs = runs.into_iter().collect::<Result<Vec<_>, _>>()?;
        let middle = |part: usize| (part as f64 + 0.5) * TOKENS as f64 / PARTS as f64;
        for (seed, run) in seeds.iter().zip(&runs) {
            for (i, part) in run.iter().enumerate() {
                let (tokens, reward, right, wrong) = (middle(i), part.reward(), part.right, part.wrong);
                let (right_length, wrong_length) = (part.right_length(), part.wrong_length());
                writeln!(csv, "{name:?},{seed},{tokens},{reward},{right},{right_length},{wrong},{wrong_length}")
                    .expect("writing to a string cannot fail");
            }
        }
        // parts without such completions do not count
        let mean = |i: usize, number: fn(&Part) -> f64| {
            let numbers: Vec<f64> = runs.iter().map(|run| number(&run[i])).filter(|x| x.is_finite()).collect();
            numbers.iter().sum::<f64>() / numbers.len() as f64
        };
        for (lines, number) in lines.iter_mut().zip([Part::wrong_length, Part::right_length, Part::reward]) {
            let points = (0..PARTS as usize).map(|i| (middle(i), mean(i, number))).filter(|(_, y)| y.is_finite());
            lines.series.push(Series::new(name.to_string(), points.collect()));
        }
        println!("{name}: wrong completions have {:.1} tokens at the end", mean(PARTS as usize - 1, Part::wrong_length));
        all.push((name, runs));
    }
    let mut table = String::from("method,fifth,length,low,high,difference,difference_low,difference_high\n");
    let (_, of_dr_grpo) = all.last().expect("three methods");
    for (fifth, parts) in [("first", 0..PARTS as usize / 5), ("last", PARTS as usize * 4 / 5..PARTS as usize)] {
        let other = wrong_lengths(of_dr_grpo, parts.clone());
        for (name, runs) in &all {
            let lengths = wrong_lengths(runs, parts.clone());
            let differences: Vec<f64> = lengths.iter().zip(&other).map(|(own, other)| own - other).collect();
            writeln!(table, "{name:?},{fifth},{},{}", interval(&lengths), interval(&differences)).expect("writing to a string cannot fail");
        }
    }
    let panels = lines.into_iter().zip(titles).map(|(lines, title)| {
        let y_label = if title == "reward" { "mean reward" } else { "mean length, tokens" };
        let lines = Lines { x_label: "generated tokens".into(), y_label: y_label.into(), ..lines };
        Panel { title: title.into(), chart: Chart::Lines(lines) }
    });
    let title = format!("Lengths of completions on {TASK}, mean of ten seeds");
    let figure = Figure { title, note: String::new(), columns: 3, panels: panels.collect() };
    for extension in ["svg", "png"] {
        figure::write(&figure, &dir.join(format!("length-bias.{extension}")))?;
    }
    for (name, text) in [("length-bias.csv", csv), ("length-bias-summary.csv", table)] {
        fs::write(dir.join(name), text).map_err(|source| Error::Io { action: "write", path: dir.join(name), source })?;
    }
    Ok(())
}
