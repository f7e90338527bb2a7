//! Figure 6.3: Sarsa, Expected Sarsa and Q-learning on the cliff.

use std::fmt::Write;

use serde::Deserialize;

use super::super::experiment::Experiment;
use super::super::findings::{Claim, Findings, Test, bootstrap, difference};
use super::super::runs::each;
use super::{figure, lines, mean_of};
use gradus::Error;
use gradus::agents::bandit::epsilon_greedy;
use gradus::agents::tabular::{ActionValues, Experience, expected_sarsa, q_learning, sarsa};
use gradus::envs::random::{Purpose, Stream};
use gradus::envs::tabular::{CliffWalking, Tabular};
use gradus::figure::{Chart, Lines, Series, dashed};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    epsilon: f64,
    alphas: Vec<f64>,
    interim_runs: u64,
    interim_episodes: usize,
    asymptotic_runs: u64,
    asymptotic_episodes: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum Method {
    Sarsa,
    ExpectedSarsa,
    QLearning,
}

const METHODS: [(Method, &str); 3] =
    [(Method::ExpectedSarsa, "Expected Sarsa"), (Method::Sarsa, "Sarsa"), (Method::QLearning, "Q-learning")];

/// Returns the mean return of an episode over the first `episodes` episodes.
fn learn(method: Method, alpha: f64, epsilon: f64, episodes: usize, seed: u64) -> f64 {
    let cliff = CliffWalking::deterministic();
    let table = cliff.table();
    let mut q = ActionValues::new(table.states(), table.actions(), 0.0);
    let mut stream = Stream::new(seed, Purpose::Action, 0);
    let mut total = 0.0;
    for _ in 0..episodes {
        let mut state = table.sample_start(&mut stream) as usize;
        let mut action = epsilon_greedy(q.row(state), epsilon, &mut stream);
        loop {
            let outcome = table.outcomes(state, action)[0];
            let step = Experience { state, action, reward: outcome.reward, next: outcome.next as usize, terminated: outcome.terminated };
            total += step.reward;
            // Sarsa chooses the next action before its update; the others after it, from the new values
            match method {
                Method::Sarsa => {
                    action = epsilon_greedy(q.row(step.next), epsilon, &mut stream);
                    sarsa(&mut q, step, action, alpha, 1.0);
                }
                Method::ExpectedSarsa | Method::QLearning => {
                    match method {
                        Method::ExpectedSarsa => expected_sarsa(&mut q, step, epsilon, alpha, 1.0),
                        _ => q_learning(&mut q, step, alpha, 1.0),
                    }
                    action = epsilon_greedy(q.row(step.next), epsilon, &mut stream);
                }
            }
            if step.terminated {
                break;
            }
            state = step.next;
        }
    }
    total / episodes as f64
}

/// Figure 6.3.
pub(crate) fn methods(experiment: &Experiment) -> Result<Findings, Error> {
    let settings: Settings = experiment.settings()?;
    let Settings { epsilon, ref alphas, interim_runs, interim_episodes, asymptotic_runs, asymptotic_episodes } = settings;
    // returns[method][run][alpha]
    let measure = |runs: u64, episodes: usize| {
        let jobs: Vec<(Method, u64)> = METHODS.iter().flat_map(|(method, _)| (1..=runs).map(|seed| (*method, seed))).collect();
        let found = each(&jobs, |(method, seed)| {
            Ok(alphas.iter().map(|alpha| learn(*method, *alpha, epsilon, episodes, *seed)).collect::<Vec<f64>>())
        })?;
        Ok::<_, Error>(found.chunks(runs as usize).map(<[_]>::to_vec).collect::<Vec<_>>())
    };
    let (interim, asymptotic) = (measure(interim_runs, interim_episodes)?, measure(asymptotic_runs, asymptotic_episodes)?);
    let place = |alpha: f64| alphas.iter().position(|other| (other - alpha).abs() < 1e-9).unwrap_or(0);
    let at =
        |returns: &[Vec<Vec<f64>>], method: usize, alpha: f64| returns[method].iter().map(|run| run[place(alpha)]).collect::<Vec<f64>>();
    let (expected, sarsa, q) = (0, 1, 2);
    let bootstrap = bootstrap(6);
    let last = alphas[alphas.len() - 1];
    let claims = vec![
        Claim::new(
            "Expected Sarsa can use α = 1 without a loss in the long run: return with α = 1 minus that with α = 0.1",
            difference(bootstrap, &at(&asymptotic, expected, last), &at(&asymptotic, expected, 0.1)),
            Test::Above(-1.0),
        ),
        Claim::new(
            "Sarsa cannot: the same difference",
            difference(bootstrap, &at(&asymptotic, sarsa, last), &at(&asymptotic, sarsa, 0.1)),
            Test::Below(-10.0),
        ),
        Claim::new(
            "in the long run Expected Sarsa is better than Q-learning, which walks along the edge: difference with α = 0.5",
            difference(bootstrap, &at(&asymptotic, expected, 0.5), &at(&asymptotic, q, 0.5)),
            Test::Above(0.0),
        ),
        Claim::new(
            format!("over the first {interim_episodes} episodes Expected Sarsa is better than Sarsa: difference with α = 0.2"),
            difference(bootstrap, &at(&interim, expected, 0.2), &at(&interim, sarsa, 0.2)),
            Test::Above(0.0),
        ),
        Claim::new("with α = 0.5", difference(bootstrap, &at(&interim, expected, 0.5), &at(&interim, sarsa, 0.5)), Test::Above(0.0)),
        Claim::new("with α = 0.9", difference(bootstrap, &at(&interim, expected, 0.9), &at(&interim, sarsa, 0.9)), Test::Above(0.0)),
    ];
    let mut csv = String::from("method,performance,alpha,mean_return\n");
    let mut series = Vec::new();
    for (number, (_, name)) in METHODS.iter().enumerate() {
        for (is_interim, returns) in [(false, &asymptotic), (true, &interim)] {
            let (kind, dashes) = if is_interim { ("interim", 1) } else { ("asymptotic", 0) };
            let points: Vec<(f64, f64)> = alphas.iter().copied().zip(mean_of(&returns[number])).collect();
            points.iter().for_each(|(alpha, value)| writeln!(csv, "{name},{kind},{alpha},{value:.4}").expect("a string"));
            series.push(Series { style: Some(dashed([0, 1, 2][number], dashes)), ..Series::new(format!("{name}, {kind}"), points) });
        }
    }
    let mut panel = lines("", "α", "sum of rewards per episode", series);
    if let Chart::Lines(Lines { y_range, direct, .. }) = &mut panel.chart {
        (*y_range, *direct) = (Some((-160.0, 0.0)), false);
    }
    let note = format!(
        "ε = {epsilon}; asymptotic: {asymptotic_runs} runs of {asymptotic_episodes} episodes; interim (dashed): {interim_runs} runs of {interim_episodes} episodes"
    );
    Ok(Findings { claims, figures: vec![("figure", figure(&experiment.title, &note, 1, vec![panel]))], tables: vec![("returns.csv", csv)] })
}
