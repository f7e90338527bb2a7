//! Figure 13.1: REINFORCE in a short corridor with switched actions.

use std::fmt::Write;

use serde::Deserialize;

use super::super::experiment::Experiment;
use super::super::findings::{Claim, Findings, Test, bootstrap, difference, mean};
use super::super::runs::each;
use super::{banded, figure, lines, published};
use gradus::Error;
use gradus::envs::random::{Purpose, Stream};
use gradus::figure::{Chart, Lines};
use gradus::nets::math::{exp, ln};

/// Expected return from the start for a policy that goes right with probability p in each of the three states, which look the same: each step costs 1, and in the second state
/// the actions are switched. From the Bellman equations v1 = -1 + (1 - p) v1 + p v2, v2 = -1 + p v1 + (1 - p) v3, v3 = -1 + (1 - p) v2:
/// v1 = (2 p - 4) / (p (1 - p)).
fn value(p: f64) -> f64 {
    (2.0 * p - 4.0) / (p * (1.0 - p))
}

/// The best probability of going right, 2 - sqrt 2, where the derivative of the value is 0.
fn best() -> f64 {
    2.0 - 2.0_f64.sqrt()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    runs: u64,
    episodes: usize,
    /// Step sizes 2^-power.
    powers: [i32; 3],
    /// Probability of going right at the beginning.
    initial: f64,
}

/// The least probability of an action. Without a bound a large step can make the policy almost deterministic, and an episode then lasts almost forever.
const LEAST: f64 = 0.05;

/// Returns the total reward of every episode of REINFORCE (section 13.3), with a softmax over the preferences of left and right.
fn learn(alpha: f64, initial: f64, episodes: usize, seed: u64) -> Vec<f64> {
    let mut stream = Stream::new(seed, Purpose::Action, 0);
    // the preference of right minus that of left decides, and both move by the same amounts
    let mut theta = [0.0, f64::from(ln((initial / (1.0 - initial)) as f32))];
    let right = |theta: [f64; 2]| (1.0 / (1.0 + f64::from(exp((theta[0] - theta[1]) as f32)))).clamp(LEAST, 1.0 - LEAST);
    let episode = |_| {
        let (mut place, mut actions) = (0, Vec::new());
        let p = right(theta);
        while place < 3 {
            let goes_right = stream.unit_f64() < p;
            actions.push(goes_right);
            // in the second state the actions are switched; a step to the left of the first state has no effect
            place = if goes_right != (place == 1) { place + 1 } else { place - usize::from(place > 0) };
        }
        let length = actions.len();
        for (t, goes_right) in actions.iter().enumerate() {
            let p = right(theta);
            let value = -((length - t) as f64);
            // grad ln pi: 1 - pi(a) for the taken action, -pi(b) for the other
            let [left_part, right_part] = if *goes_right { [-(1.0 - p), 1.0 - p] } else { [p, -p] };
            theta[0] += alpha * value * left_part;
            theta[1] += alpha * value * right_part;
        }
        -(length as f64)
    };
    (0..episodes).map(episode).collect()
}

/// Figure 13.1.
pub(crate) fn reinforce(experiment: &Experiment) -> Result<Findings, Error> {
    let Settings { runs, episodes, powers, initial } = experiment.settings()?;
    let jobs: Vec<(i32, u64)> = powers.iter().flat_map(|power| (1..=runs).map(|seed| (*power, seed))).collect();
    let rewards = each(&jobs, |(power, seed)| Ok(learn(f64::powi(2.0, -power), initial, episodes, *seed)))?;
    let rewards: Vec<Vec<Vec<f64>>> = rewards.chunks(runs as usize).map(<[_]>::to_vec).collect();
    let last =
        |place: usize, n: usize| rewards[place].iter().map(|run| run[episodes - n..].iter().sum::<f64>() / n as f64).collect::<Vec<f64>>();
    let tenth = episodes / 10;
    let bootstrap = bootstrap(6);
    let claims = vec![
        Claim::exact("the best probability of going right is about 0.59", best(), Test::Within(0.58, 0.60)),
        Claim::exact("its value is about -11.6", value(best()), Test::Within(-11.75, -11.45)),
        Claim::exact("an ε-greedy policy with ε = 0.1 that goes left has a value of about -82", value(0.05), Test::Within(-83.0, -81.0)),
        Claim::exact("one that goes right has a value of about -44", value(0.95), Test::Within(-45.0, -43.0)),
        Claim::new(
            format!(
                "with a good step size the total reward approaches this value: mean of the last {tenth} of {episodes} episodes with α = 2^-{} minus the value",
                powers[1]
            ),
            {
                let shortfalls: Vec<f64> = last(1, tenth).iter().map(|reward| reward - value(best())).collect();
                mean(bootstrap, &shortfalls)
            },
            Test::Within(-2.0, 2.0),
        ),
        Claim::new(
            format!(
                "half of that step size is slower: mean of the last {tenth} episodes with α = 2^-{} minus that with α = 2^-{}",
                powers[1], powers[2]
            ),
            difference(bootstrap, &last(1, tenth), &last(2, tenth)),
            Test::Above(0.0),
        ),
    ];
    let xs: Vec<f64> = (1..=episodes).map(|episode| episode as f64).collect();
    // the curves of the book are means over runs; ours are thinned to every fifth episode
    let shown: Vec<usize> = (0..episodes).filter(|episode| episode % 5 == 0).collect();
    let thin = |numbers: &[f64]| shown.iter().map(|place| numbers[*place]).collect::<Vec<f64>>();
    let mut csv = String::from("power,episode,mean_total_reward\n");
    let mut series = Vec::new();
    for (colour, (runs, power)) in rewards.iter().zip(powers).enumerate() {
        super::mean_of(runs)
            .iter()
            .zip(&xs)
            .for_each(|(reward, episode)| writeln!(csv, "{power},{episode},{reward:.3}").expect("a string"));
        series.push(banded(format!("α = 2^−{power}"), colour, &thin(&xs), &runs.iter().map(|run| thin(run)).collect::<Vec<_>>()));
    }
    series.push(published("−11.6, published", -11.6, episodes as f64));
    let mut panel = lines("", "episodes", "total reward of an episode", series);
    if let Chart::Lines(Lines { y_range, .. }) = &mut panel.chart {
        *y_range = Some((-90.0, -10.0));
    }
    let note = format!("mean of {runs} runs with 95 % intervals");
    Ok(Findings { claims, figures: vec![("figure", figure(&experiment.title, &note, 1, vec![panel]))], tables: vec![("rewards.csv", csv)] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_solves_the_bellman_equations() {
        for p in [0.05, 0.3, 0.59, 0.95] {
            // iterates the three equations
            let mut v = [0.0; 3];
            for _ in 0..100_000 {
                v = [-1.0 + (1.0 - p) * v[0] + p * v[1], -1.0 + p * v[0] + (1.0 - p) * v[2], -1.0 + (1.0 - p) * v[1]];
            }
            assert!((v[0] - value(p)).abs() < 1e-6, "{p}: {} {}", v[0], value(p));
        }
    }
}
