//! Figure 6.5: the maximisation bias of Q-learning, and double Q-learning.

use std::fmt::Write;

use serde::Deserialize;

use super::super::experiment::Experiment;
use super::super::findings::{Claim, Findings, Test, bootstrap, mean};
use super::super::runs::each;
use super::{banded, figure, lines, published};
use gradus::Error;
use gradus::agents::bandit::epsilon_greedy;
use gradus::agents::tabular::{ActionValues, Experience, double_q_learning, q_learning};
use gradus::envs::random::{Purpose, Stream};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    runs: u64,
    episodes: usize,
    actions: usize,
    alpha: f64,
    epsilon: f64,
}

/// State A, with the actions left and right, and state B, from which all actions end the episode.
const A: usize = 0;
const B: usize = 1;
const LEFT: usize = 0;

/// Returns for every episode whether its first action is left, which leads to B with reward 0; right ends the episode with reward 0. Rewards in B are normal with mean -0.1
/// and variance 1.
fn learn(settings: &Settings, is_double: bool, seed: u64) -> Vec<f64> {
    let Settings { episodes, actions, alpha, epsilon, .. } = *settings;
    let (mut stream, mut coin) = (Stream::new(seed, Purpose::Action, 0), Stream::new(seed, Purpose::Shuffle, 0));
    let mut tables = [(); 2].map(|()| ActionValues::new(2, actions, 0.0));
    let mut update = |tables: &mut [ActionValues; 2], step: Experience| {
        let [q1, q2] = tables;
        match is_double.then(|| coin.below(2)) {
            None => q_learning(q1, step, alpha, 1.0),
            Some(0) => double_q_learning(q1, q2, step, alpha, 1.0),
            Some(_) => double_q_learning(q2, q1, step, alpha, 1.0),
        }
    };
    // the sum of both tables; that of Q-learning has one
    let values = |tables: &[ActionValues; 2], state: usize, n: usize| -> Vec<f64> {
        (0..n).map(|action| tables[0].row(state)[action] + tables[1].row(state)[action]).collect()
    };
    let episode = |_| {
        let first = epsilon_greedy(&values(&tables, A, 2), epsilon, &mut stream);
        let step = Experience { state: A, action: first, reward: 0.0, next: B, terminated: first != LEFT };
        if first != LEFT {
            update(&mut tables, step);
            return 0.0;
        }
        update(&mut tables, step);
        let action = epsilon_greedy(&values(&tables, B, actions), epsilon, &mut stream);
        let reward = f64::from(stream.normal()) - 0.1;
        update(&mut tables, Experience { state: B, action, reward, next: B, terminated: true });
        100.0
    };
    (0..episodes).map(episode).collect()
}

/// Figure 6.5.
pub(crate) fn bias(experiment: &Experiment) -> Result<Findings, Error> {
    let settings: Settings = experiment.settings()?;
    let Settings { runs, episodes, actions, alpha, epsilon } = settings;
    let jobs: Vec<(bool, u64)> = [false, true].iter().flat_map(|is_double| (1..=runs).map(|seed| (*is_double, seed))).collect();
    let all = each(&jobs, |(is_double, seed)| Ok(learn(&settings, *is_double, *seed)))?;
    let (single, double) = all.split_at(runs as usize);
    let share = |runs: &[Vec<f64>], from: usize, to: usize| -> Vec<f64> {
        runs.iter().map(|run| run[from..to].iter().sum::<f64>() / (to - from) as f64).collect()
    };
    let (early, late) = ((episodes / 30, episodes / 10), (episodes * 9 / 10, episodes));
    let bootstrap = bootstrap(4);
    let optimum = 100.0 * epsilon / 2.0;
    let claims = vec![
        Claim::new(
            format!("Q-learning at first learns to go left much more often than right: percent in episodes {} to {}", early.0 + 1, early.1),
            mean(bootstrap, &share(single, early.0, early.1)),
            Test::Above(50.0),
        ),
        Claim::new(
            format!(
                "Q-learning always goes left more often than the optimal {optimum} %: percent in the tenth of the training with the fewest"
            ),
            {
                let tenths = (0..10).map(|i| mean(bootstrap, &share(single, episodes * i / 10, episodes * (i + 1) / 10)));
                tenths.reduce(|a, b| if b.point < a.point { b } else { a }).expect("there are ten")
            },
            Test::Above(optimum),
        ),
        Claim::new(
            "double Q-learning is essentially unaffected, and does not prefer left: percent in the same first episodes",
            mean(bootstrap, &share(double, early.0, early.1)),
            Test::Below(50.0),
        ),
        Claim::new(
            "double Q-learning is close to the optimum at the end: percent in the last tenth minus the optimum",
            {
                let minus: Vec<f64> = share(double, late.0, late.1).iter().map(|share| share - optimum).collect();
                mean(bootstrap, &minus)
            },
            Test::Within(-3.0, 3.0),
        ),
    ];
    let xs: Vec<f64> = (1..=episodes).map(|episode| episode as f64).collect();
    let mut series = vec![banded("Q-learning", 1, &xs, single), banded("double Q-learning", 2, &xs, double)];
    let mut csv = String::from("method,episode,left_percent,low,high\n");
    for series in &series {
        for ((x, y), (_, low, high)) in series.points.iter().zip(&series.band) {
            writeln!(csv, "{},{x},{y:.3},{low:.3},{high:.3}", series.label).expect("a string");
        }
    }
    series.push(published("optimal", optimum, episodes as f64));
    let panel = lines("", "episodes", "left actions from A, %", series);
    let note = format!("{actions} actions in B, α = {alpha}, ε = {epsilon}; mean of {runs} runs with 95 % intervals");
    Ok(Findings { claims, figures: vec![("figure", figure(&experiment.title, &note, 1, vec![panel]))], tables: vec![("left.csv", csv)] })
}
