//! Wrong conclusions from few seeds (Henderson et al., 2018; Agarwal et al., 2021).

use std::fmt::Write;

use serde::Deserialize;

use super::draw::{figure, lines};
use super::experiment::Experiment;
use super::findings::{Claim, Findings, Test, bootstrap, difference, scores};
use super::runs::each;
use super::study::Study;
use crate::Error;
use crate::envs::random::{Purpose, Stream};
use crate::figure::{Chart, Panel, Series, Violin, Violins, solid};
use crate::statistics::{Estimate, mann_whitney};

const COUNTS: [usize; 10] = [2, 3, 4, 5, 7, 10, 15, 20, 30, 50];

#[derive(Deserialize)]
struct Settings {
    /// Draws of groups of seeds for each size.
    draws: usize,
}

/// Returns `n` different numbers of `all`.
fn draw(all: &[f64], n: usize, stream: &mut Stream) -> Vec<f64> {
    let mut places: Vec<usize> = Vec::new();
    while places.len() < n {
        let place = stream.below(all.len() as u32) as usize;
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places.into_iter().map(|place| all[place]).collect()
}

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

/// The probability of an event over draws, with the interval of a normal approximation, together with those of the other claims at 95 %.
fn share(events: usize, draws: usize, width: f64) -> Estimate {
    let p = events as f64 / draws as f64;
    let error = width * (p * (1.0 - p) / draws as f64).sqrt();
    Estimate { point: p, low: p - error, high: p + error }
}

/// The resampling.
pub(super) fn reproduce(experiment: &Experiment) -> Result<Findings, Error> {
    let Settings { draws, .. } = experiment.settings()?;
    let study = Study::make(experiment)?;
    let [ppo, a2c] = ["PPO", "A2C"].map(|agent| study.numbers(agent, 0, |run| run.last_episodes(100)));
    let better = if mean(&ppo) >= mean(&a2c) { 1.0 } else { -1.0 };
    let counts: Vec<usize> = COUNTS.into_iter().filter(|n| 2 * n <= ppo.len()).collect();
    // how often: wrong order, significant in the wrong order, equal agents significant, significant in the right order
    let events = each(&counts, |n| {
        let mut stream = Stream::new(1, Purpose::Shuffle, *n as u64);
        let mut events = [0; 4];
        for _ in 0..draws {
            let (x, y) = (draw(&ppo, *n, &mut stream), draw(&a2c, *n, &mut stream));
            let difference = better * (mean(&x) - mean(&y));
            let is_found = mann_whitney(&scores(&x), &scores(&y)) < 0.05;
            // two groups of the same agent
            let both = draw(&ppo, 2 * n, &mut stream);
            let is_equal_found = mann_whitney(&scores(&both[..*n]), &scores(&both[*n..])) < 0.05;
            let happened = [difference < 0.0, is_found && difference < 0.0, is_equal_found, is_found && difference > 0.0];
            events.iter_mut().zip(happened).for_each(|(count, happened)| *count += usize::from(happened));
        }
        Ok(events)
    })?;
    let rows: Vec<(usize, [usize; 4])> = counts.into_iter().zip(events).collect();
    let mut csv = String::from("seeds,wrong_order,wrong_significant,equal_agents_significant,right_significant\n");
    for (n, events) in &rows {
        let shares = events.map(|events| (events as f64 / draws as f64).to_string());
        writeln!(csv, "{n},{}", shares.join(",")).expect("a string");
    }
    let at = |n: usize| rows.iter().find(|(count, _)| *count == n).map_or([0; 4], |(_, events)| *events);
    let width = 2.576; // of five intervals together
    let claims = vec![
        Claim::new(
            "the two agents differ: mean return of PPO minus that of A2C over all runs",
            difference(bootstrap(5), &ppo, &a2c),
            Test::Above(0.0),
        ),
        Claim::new(
            "with 3 seeds each the means are in the wrong order with a probability above 5 %",
            share(at(3)[0], draws, width),
            Test::Above(0.05),
        ),
        Claim::new("with 5 seeds each, too", share(at(5)[0], draws, width), Test::Above(0.05)),
        Claim::new(
            "two groups of five seeds of the same agent differ significantly now and then, exactly as often as the test promises, in 8 of 252 cases",
            share(at(5)[2], draws, width),
            Test::Within(0.025, 0.038),
        ),
        Claim::new(
            "with 20 seeds each the means are in the wrong order with a probability below 1 %",
            share(at(20)[0], draws, width),
            Test::Below(0.01),
        ),
    ];
    let line = |place: usize, colour: usize, label: &str| Series {
        style: Some(solid(colour)),
        ..Series::new(label, rows.iter().map(|(n, events)| (*n as f64, events[place] as f64 / draws as f64)).collect())
    };
    let violins = vec![Violin::of_samples("PPO", &ppo), Violin::of_samples("A2C", &a2c)];
    let chart = Violins { x_label: String::new(), y_label: "training return, last 100 episodes".into(), violins, ..Violins::default() };
    let panels = vec![
        lines(
            "what may go wrong",
            "seeds of each agent",
            "probability",
            vec![
                line(0, 1, "means in the wrong order"),
                line(2, 3, "equal agents differ significantly"),
                line(1, 6, "significant in the wrong order"),
            ],
        ),
        lines("what is wanted", "seeds of each agent", "probability", vec![line(3, 0, "difference found, p < 0.05")]),
        Panel { title: "all runs".into(), chart: Chart::Violins(chart) },
    ];
    let note = format!("{} runs of each agent on CartPole-v1, {draws} draws; test of Mann and Whitney", ppo.len());
    let figure = figure(&experiment.title, &note, 1, panels);
    Ok(Findings { claims, figures: vec![("figure", figure)], tables: vec![("probabilities.csv", csv)] })
}
