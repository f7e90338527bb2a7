//! The search: batches of proposals, each cut by successive halving.
//!
//! A batch of trials is evaluated at the first rung, with few seeds and few steps; the better half goes on to the next rung, and so on (Jamieson & Talwalkar, "Non-stochastic
//! Best Arm Identification and Hyperparameter Optimization", 2016). The estimator learns from the highest rung that enough trials have reached, and every third proposal is
//! random, as in BOHB (Falkner, Klein & Hutter, 2018). Proposals depend on the trials of earlier batches only, so a search is the same for any number of workers.

use gradus_base::random::{Purpose, Stream};

use super::tpe;
use crate::sweep::space::{Settings, Space};

/// How much a trial gets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rung {
    /// Share of the steps.
    pub(super) steps: f64,
    /// Number of seeds.
    pub(super) seeds: usize,
}

/// How a search is made.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Plan {
    pub(super) trials: usize,
    pub(super) batch: usize,
    /// Number of random trials before the first proposal of the estimator.
    pub(super) startup: usize,
    pub(super) rungs: Vec<Rung>,
    pub(super) seed: u64,
}

/// A point with its scores.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Trial {
    pub(super) settings: Settings,
    /// The score at every rung that it has reached; minus infinity if its runs have failed.
    pub(super) scores: Vec<f64>,
}

/// Share of the trials that count as good.
const GOOD: f64 = 0.2;
/// Every this many proposals one is random.
const RANDOM: usize = 3;

/// Places of the trials from the best to the worst score at a rung; of equal ones the one that was better at lower rungs, or else the earlier.
fn ranked(trials: &[Trial], places: &[usize], rung: usize) -> Vec<usize> {
    let mut order = places.to_vec();
    let by_scores = |a: &usize, b: &usize| {
        let pairs = trials[*a].scores[..=rung].iter().zip(&trials[*b].scores[..=rung]);
        pairs.rev().map(|(a, b)| b.total_cmp(a)).find(|order| order.is_ne()).unwrap_or(a.cmp(b))
    };
    order.sort_by(by_scores);
    order
}

/// Proposes the trial with this number, from the trials of earlier batches.
fn propose(space: &Space, plan: &Plan, known: &[Trial], number: usize) -> Settings {
    let mut stream = Stream::new(plan.seed, Purpose::Design, number as u64);
    let at = |rung: usize| -> Vec<usize> { (0..known.len()).filter(|place| known[*place].scores.len() > rung).collect() };
    // fewer points say nothing about so many settings
    let enough = (space.0.len() + 3).max(4);
    let rung = (0..plan.rungs.len()).rev().find(|rung| at(*rung).len() >= enough);
    let Some(rung) = rung.filter(|_| number >= plan.startup && !number.is_multiple_of(RANDOM)) else {
        return space.sample(&mut stream);
    };
    let order = ranked(known, &at(rung), rung);
    let good = ((order.len() as f64 * GOOD).ceil() as usize).max(2);
    let settings: Vec<&Settings> = order.iter().map(|place| &known[*place].settings).collect();
    tpe::propose(space, &settings[..good], &settings[good..], &mut stream)
}

/// Searches. `evaluate` returns the scores of some trials, given by their places, at a rung. `said` is called after every rung of every batch.
pub(super) fn search<E>(
    space: &Space,
    plan: &Plan,
    mut evaluate: impl FnMut(usize, &[usize], &[Trial]) -> Result<Vec<f64>, E>,
) -> Result<Vec<Trial>, E> {
    let mut trials: Vec<Trial> = Vec::new();
    while trials.len() < plan.trials {
        let (first, known) = (trials.len(), trials.clone());
        for number in first..plan.trials.min(first + plan.batch) {
            trials.push(Trial { settings: propose(space, plan, &known, number), scores: Vec::new() });
        }
        let mut left: Vec<usize> = (first..trials.len()).collect();
        for rung in 0..plan.rungs.len() {
            let scores = evaluate(rung, &left, &trials)?;
            left.iter().zip(scores).for_each(|(place, score)| trials[*place].scores.push(score));
            let order = ranked(&trials, &left, rung);
            left = order[..order.len().div_ceil(2)].to_vec();
            left.sort_unstable();
        }
    }
    Ok(trials)
}

/// Places of the trials with the best scores at the last rung.
pub(super) fn best(trials: &[Trial], rungs: usize, count: usize) -> Vec<usize> {
    let whole: Vec<usize> = (0..trials.len()).filter(|place| trials[*place].scores.len() == rungs).collect();
    let mut order = ranked(trials, &whole, rungs - 1);
    // the same point may have been proposed twice
    let mut known: Vec<&Settings> = Vec::new();
    order.retain(|place| {
        let is_new = !known.contains(&&trials[*place].settings);
        known.push(&trials[*place].settings);
        is_new
    });
    order.truncate(count);
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::space::number;
    use gradus_statistics::{Bootstrap, mean_paired_difference};

    const SPACE: &str = "a = { log_uniform = [1e-4, 1] }\nb = { uniform = [0, 1] }\nc = { integers = [1, 20] }\nrule = [\"x\", \"y\", \"z\"]\n\
                         d = { uniform = [0, 1], if = { rule = \"x\" } }";

    fn space() -> Space {
        Space::parse(&SPACE.parse().unwrap()).unwrap()
    }

    /// A function with one best region, about 0 there and below elsewhere.
    fn truth(point: &Settings) -> f64 {
        let at = |key: &str| point.iter().find(|(name, _)| name == key).map(|(_, value)| value);
        let of = |key: &str| at(key).and_then(number).unwrap_or(0.0);
        let choice = match at("rule").and_then(|value| value.as_str()) {
            Some("x") => 4.0 * (of("d") - 0.3).powi(2),
            Some("y") => 0.5,
            _ => 1.0,
        };
        -((of("a").log10() + 2.5) / 2.0).powi(2) - 4.0 * (of("b") - 0.7).powi(2) - ((of("c") - 6.0) / 10.0).powi(2) - choice
    }

    fn plan(seed: u64) -> Plan {
        let rungs = [(0.25, 1), (0.5, 2), (1.0, 4)].map(|(steps, seeds)| Rung { steps, seeds });
        Plan { trials: 64, batch: 8, startup: 16, rungs: rungs.into(), seed }
    }

    /// The noise of a score of so many seeds; a run of fewer steps says less.
    fn noise(rung: Rung, stream: &mut Stream) -> f64 {
        0.5 * f64::from(stream.normal()) / (rung.seeds as f64 * rung.steps).sqrt()
    }

    /// The true value of what a search finds, and the runs that it took, in units of one with all steps.
    fn found(plan: &Plan) -> (f64, f64) {
        let (mut stream, mut cost) = (Stream::new(plan.seed, Purpose::Problem, 0), 0.0);
        let trials = search(&space(), plan, |rung, places, trials| {
            let at = plan.rungs[rung];
            cost += places.len() as f64 * at.steps * at.seeds as f64;
            Ok::<_, ()>(places.iter().map(|place| truth(&trials[*place].settings) + noise(at, &mut stream)).collect())
        });
        let trials = trials.unwrap();
        (truth(&trials[best(&trials, plan.rungs.len(), 1)[0]].settings), cost)
    }

    /// At equal cost, a search finds better points than random ones do, all of which get all seeds and steps.
    #[test]
    fn a_search_beats_random_points() {
        let of_random = |seed: u64, runs: f64| {
            let rung = Rung { steps: 1.0, seeds: 4 };
            let plan = Plan { trials: (runs / 4.0) as usize, batch: 1000, startup: 1000, rungs: vec![rung], seed };
            found(&plan)
        };
        let (mut own, mut random) = (Vec::new(), Vec::new());
        for seed in 1..=20 {
            let (value, cost) = found(&plan(seed));
            let (other, as_much) = of_random(seed, cost);
            assert!(as_much <= cost && as_much > 0.95 * cost, "{as_much} of {cost}");
            own.push(value);
            random.push(other);
        }
        let difference = mean_paired_difference(&own, &random, &Bootstrap::default()).unwrap();
        assert!(difference.low > 0.0, "{difference:?}: {own:?}, random {random:?}");
    }

    #[test]
    fn halves_go_on_and_proposals_use_earlier_batches_only() {
        let mut calls = Vec::new();
        let plan = plan(3);
        let trials = search(&space(), &plan, |rung, places, trials| {
            calls.push((rung, places.len()));
            Ok::<_, ()>(places.iter().map(|place| truth(&trials[*place].settings)).collect())
        });
        let trials = trials.unwrap();
        assert_eq!(calls[..4], [(0, 8), (1, 4), (2, 2), (0, 8)]);
        assert_eq!(trials.iter().filter(|trial| trial.scores.len() == 3).count(), 16);
        // those that go on are the better half of their batch
        for batch in trials.chunks(8) {
            let worst = batch.iter().filter(|trial| trial.scores.len() > 1).map(|trial| trial.scores[0]).fold(f64::INFINITY, f64::min);
            assert!(batch.iter().filter(|trial| trial.scores.len() == 1).all(|trial| trial.scores[0] <= worst));
        }
        // a shorter search is the beginning of a longer one
        let short = search(&space(), &Plan { trials: 16, ..plan.clone() }, |_, places, trials| {
            Ok::<_, ()>(places.iter().map(|place| truth(&trials[*place].settings)).collect())
        });
        assert_eq!(short.unwrap(), trials[..16]);
        // the startup is random
        let samples = space().samples(16, 3);
        assert!(trials.iter().zip(&samples).all(|(trial, sample)| trial.settings == *sample));
    }

    #[test]
    fn failed_trials_come_last() {
        let plan = Plan { trials: 8, ..plan(1) };
        let trials = search(&space(), &plan, |_, places, _| {
            Ok::<_, ()>(places.iter().map(|place| if place % 2 == 0 { f64::NEG_INFINITY } else { *place as f64 }).collect())
        });
        assert_eq!(best(&trials.unwrap(), 3, 3), [7, 5]);
    }
}
