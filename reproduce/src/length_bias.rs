//! GRPO's length bias (Liu et al., 2025).

use std::fmt::Write;

use serde::Deserialize;

use super::draw::{banded, figure, lines};
use super::experiment::Experiment;
use super::findings::{Claim, Findings, Test, bootstrap, paired};
use super::runs::each;
use gradus::{Config, Error, Trainer};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    task: String,
    seeds: u64,
    first_seed: u64,
    tokens: u64,
    longest: usize,
    /// Parts of the training, over which lengths are averaged.
    parts: u64,
}

/// Name, aggregation of the losses of a completion's tokens, and divisor of the advantages.
const METHODS: [(&str, &str, &str); 5] = [
    ("GRPO, as published", "sequence-mean", "population"),
    ("GRPO, constant divisor", "constant-length", "population"),
    ("GRPO, no standard deviation", "sequence-mean", "none"),
    ("Dr. GRPO", "constant-length", "none"),
    ("GRPO, mean over all tokens", "token-mean", "population"),
];

/// Sums over the completions of one part of a training.
#[derive(Clone, Copy, Default)]
struct Part {
    wrong: f64,
    wrong_tokens: f64,
    completions: f64,
    reward: f64,
}

fn train(settings: &Settings, aggregation: &str, std: &str, seed: u64) -> Result<Vec<Part>, Error> {
    let Settings { ref task, tokens, longest, parts: count, .. } = *settings;
    let config = Config { steps: tokens, seed, ..Config::preset("grpo", task, None)? };
    let changes = [format!("grpo.aggregation={aggregation}"), format!("grpo.group_std={std}"), format!("text.max_new_tokens={longest}")];
    let mut trainer = Trainer::new(changes.iter().try_fold(config, |config, change| config.with_setting(change))?)?;
    let exact = trainer.score_names().iter().position(|name| name == "exact").unwrap_or(0);
    let mut parts = vec![Part::default(); count as usize];
    while !trainer.is_finished() {
        let part = &mut parts[(trainer.steps() * count / tokens) as usize];
        for episode in trainer.iterate()?.episodes {
            part.completions += 1.0;
            part.reward += episode.episode_return;
            if episode.scores[exact] < 1.0 {
                (part.wrong, part.wrong_tokens) = (part.wrong + 1.0, part.wrong_tokens + f64::from(episode.length));
            }
        }
    }
    Ok(parts)
}

/// Figure 5.
pub(super) fn reproduce(experiment: &Experiment) -> Result<Findings, Error> {
    let settings: Settings = experiment.settings()?;
    let Settings { ref task, seeds, first_seed, tokens, parts, .. } = settings;
    let jobs: Vec<(usize, u64)> =
        (0..METHODS.len()).flat_map(|method| (first_seed..first_seed + seeds).map(move |seed| (method, seed))).collect();
    let all = each(&jobs, |(method, seed)| train(&settings, METHODS[*method].1, METHODS[*method].2, *seed))?;
    let of = |method: usize| &all[method * seeds as usize..(method + 1) * seeds as usize];
    // of each seed: the mean length in each part of the training, and their mean over the training, in which every part has the same weight
    let length = |method: usize| -> Vec<f64> {
        let lengths =
            |run: &Vec<Part>| run.iter().filter(|part| part.wrong > 0.0).map(|part| part.wrong_tokens / part.wrong).collect::<Vec<f64>>();
        let mean = |lengths: Vec<f64>| lengths.iter().sum::<f64>() / lengths.len() as f64;
        of(method).iter().map(|run| mean(lengths(run))).collect()
    };
    let reward =
        |method: usize| -> Vec<f64> { of(method).iter().map(|run| run[run.len() - 1].reward / run[run.len() - 1].completions).collect() };
    let bootstrap = bootstrap(6);
    let [grpo, constant, no_std, dr_grpo, token_mean] = [0, 1, 2, 3, 4];
    let claims = vec![
        Claim::new(
            "wrong completions of GRPO are longer than those of Dr. GRPO: difference in tokens, mean over the training",
            paired(bootstrap, &length(grpo), &length(dr_grpo)),
            Test::Above(0.0),
        ),
        Claim::new(
            "the division by the length is a cause: GRPO minus GRPO with a constant",
            paired(bootstrap, &length(grpo), &length(constant)),
            Test::Above(0.0),
        ),
        Claim::new("also without the standard deviation", paired(bootstrap, &length(no_std), &length(dr_grpo)), Test::Above(0.0)),
        Claim::new(
            "the mean over all tokens, our preset, has the bias, too: minus Dr. GRPO",
            paired(bootstrap, &length(token_mean), &length(dr_grpo)),
            Test::Above(0.0),
        ),
        Claim::new(
            "the standard deviation changes the length by less than half a token: GRPO minus GRPO without it",
            paired(bootstrap, &length(grpo), &length(no_std)),
            Test::Within(-0.5, 0.5),
        ),
        Claim::new(
            "Dr. GRPO's reward at the end is not lower by more than 0.02",
            paired(bootstrap, &reward(dr_grpo), &reward(grpo)),
            Test::Above(-0.02),
        ),
    ];
    let middle: Vec<f64> = (0..parts).map(|part| (part as f64 + 0.5) * tokens as f64 / parts as f64).collect();
    let curves = |title: &str, label: &str, number: &dyn Fn(&Part) -> f64| {
        let series = METHODS.iter().enumerate().map(|(method, (name, ..))| {
            let runs: Vec<Vec<f64>> = of(method).iter().map(|run| run.iter().map(number).collect()).collect();
            banded(*name, method, &middle, &runs)
        });
        lines(title, "generated tokens", label, series.collect())
    };
    // a part without wrong completions would have no length; none is without them in this task
    let panels = vec![
        curves("wrong completions", "mean length, tokens", &|part| part.wrong_tokens / part.wrong.max(1.0)),
        curves("reward", "mean reward", &|part| part.reward / part.completions.max(1.0)),
    ];
    let mut csv = String::from("method,seed,tokens,reward,wrong,wrong_length\n");
    for ((method, seed), run) in jobs.iter().zip(&all) {
        for (part, tokens) in run.iter().zip(&middle) {
            let (reward, length) = (part.reward / part.completions.max(1.0), part.wrong_tokens / part.wrong.max(1.0));
            writeln!(csv, "\"{}\",{seed},{tokens},{reward},{},{length}", METHODS[*method].0, part.wrong).expect("a string");
        }
    }
    let note = format!("{task}, mean of {seeds} seeds with 95 % intervals");
    Ok(Findings { claims, figures: vec![("figure", figure(&experiment.title, &note, 1, panels))], tables: vec![("lengths.csv", csv)] })
}
