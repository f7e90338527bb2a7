//! Bias and noise of policy gradient estimates, measured against the exact gradient: `cargo run --example exact_gradient`.
//!
//! In a small world with a known table the gradient is a sum, and not a guess. The estimates of many single episodes are compared with it:
//! GAE with every lambda and three critics. Lesson 7 of the course explains the figure. Writes `exact-gradient.csv` and
//! `.svg` into the folder `runs/lesson-7`, or into another one: `... --example exact_gradient -- FOLDER`.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use gradus::Error;
use gradus::agents::returns::gae;
use gradus::agents::tabular::policy_evaluation;
use gradus::envs::random::{Purpose, Stream};
use gradus::envs::tabular::{GridWorld, Table, Tabular};
use gradus::figure::{self, Chart, Figure, Lines, Panel, Series};

/// A step costs 1, a fall 10, and one step in five slips to a side.
const WORLD: &str = "slip = 0.2\ncliff = -10\n\nS...\n.C..\n...G";
const EPISODES: usize = 20_000;
const LAMBDAS: [f32; 14] = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 1.0];
/// Episodes of a batch, for the error of a whole update.
const BATCH: f64 = 20.0;

/// A policy that prefers to go down and to the right, in every state.
fn policy(states: usize) -> Vec<f64> {
    let logits: [f64; 4] = [0.0, 1.5, 1.0, 0.0];
    let sum: f64 = logits.iter().map(|z| z.exp()).sum();
    (0..states).flat_map(|_| logits.map(|z| z.exp() / sum)).collect()
}

/// The gradient of the expected return with respect to the logits: the visits of a state, times the probability and the advantage of an
/// action.
fn exact(table: &Table, policy: &[f64], values: &[f64]) -> Vec<f64> {
    let (states, actions) = (table.states(), table.actions());
    let mut visits = table.starts().to_vec();
    let mut flow = visits.clone();
    while flow.iter().sum::<f64>() > 1e-12 {
        let mut next = vec![0.0; states];
        for (pair, probability) in policy.iter().enumerate() {
            let (state, action) = (pair / actions, pair % actions);
            for outcome in table.outcomes(state, action).iter().filter(|outcome| !outcome.terminated) {
                next[outcome.next as usize] += flow[state] * probability * outcome.probability;
            }
        }
        visits.iter_mut().zip(&next).for_each(|(sum, more)| *sum += more);
        flow = next;
    }
    let advantage = |state: usize, action: usize| {
        let following = |next: u32, terminated: bool| if terminated { 0.0 } else { values[next as usize] };
        let outcomes = table.outcomes(state, action).iter();
        outcomes.map(|o| o.probability * (o.reward + following(o.next, o.terminated))).sum::<f64>() - values[state]
    };
    policy.iter().enumerate().map(|(pair, p)| visits[pair / actions] * p * advantage(pair / actions, pair % actions)).collect()
}

/// The states, actions and rewards of an episode.
struct Episode {
    states: Vec<usize>,
    actions: Vec<usize>,
    rewards: Vec<f32>,
}

fn play(table: &Table, policy: &[f64], random: &mut Stream) -> Episode {
    let mut episode = Episode { states: Vec::new(), actions: Vec::new(), rewards: Vec::new() };
    let mut state = table.sample_start(random) as usize;
    loop {
        let (mut left, mut action) = (random.unit_f64(), 0);
        while action < 3 && left >= policy[4 * state + action] {
            left -= policy[4 * state + action];
            action += 1;
        }
        let step = table.sample(state, action, random);
        episode.states.push(state);
        episode.actions.push(action);
        episode.rewards.push(step.reward as f32);
        if step.terminated {
            return episode;
        }
        state = step.next as usize;
    }
}

/// The estimate of one episode: the sum over its steps of the advantage times the derivative of the log-probability.
fn estimate(episode: &Episode, policy: &[f64], critic: &[f64], lambda: f32, gradient: &mut [f64]) {
    let values: Vec<f32> = episode.states.iter().map(|state| critic[*state] as f32).collect();
    let mut advantages = vec![0.0; values.len()];
    gae(&episode.rewards, &values, 0.0, 1.0, lambda, &mut advantages);
    gradient.fill(0.0);
    for ((state, action), advantage) in episode.states.iter().zip(&episode.actions).zip(advantages) {
        for b in 0..4 {
            let taken = f64::from(u8::from(b == *action));
            gradient[4 * state + b] += f64::from(advantage) * (taken - policy[4 * state + b]);
        }
    }
}

fn run() -> Result<(), Error> {
    let world: GridWorld = WORLD.parse()?;
    let table = world.table();
    let policy = policy(table.states());
    let values_after = |sweeps| policy_evaluation(table, &policy, 1.0, 0.0, sweeps).values;
    let values = values_after(100_000);
    let critics = [("exact values", values.clone()), ("after 4 sweeps", values_after(4)), ("all values 0", vec![0.0; values.len()])];
    let exact = exact(table, &policy, &values);
    let length = exact.iter().map(|x| x * x).sum::<f64>().sqrt();
    let mut random = Stream::new(1, Purpose::Episode, 0);
    let episodes: Vec<Episode> = (0..EPISODES).map(|_| play(table, &policy, &mut random)).collect();

    let mut csv = String::from("critic,lambda,bias,noise,error_of_20\n");
    let mut panels = ["bias", "noise of one episode", "error of 20 episodes"].map(|title| (title, Vec::new()));
    for (name, critic) in &critics {
        let mut lines = [Vec::new(), Vec::new(), Vec::new()];
        for lambda in LAMBDAS {
            let (mut sum, mut squares) = (vec![0.0; exact.len()], 0.0);
            let mut gradient = vec![0.0; exact.len()];
            for episode in &episodes {
                estimate(episode, &policy, critic, lambda, &mut gradient);
                sum.iter_mut().zip(&gradient).for_each(|(sum, x)| *sum += x);
                squares += gradient.iter().map(|x| x * x).sum::<f64>();
            }
            let n = EPISODES as f64;
            let mean_square: f64 = sum.iter().map(|x| (x / n).powi(2)).sum();
            let variance = (squares / n - mean_square) * n / (n - 1.0);
            // the squared distance of the mean from the exact gradient, less what is due to the number of episodes
            let distance: f64 = sum.iter().zip(&exact).map(|(x, g)| (x / n - g).powi(2)).sum();
            let bias = (distance - variance / n).max(0.0).sqrt() / length;
            let noise = variance.sqrt() / length;
            let error = (bias * bias + noise * noise / BATCH).sqrt();
            writeln!(csv, "{name},{lambda},{bias:.4},{noise:.4},{error:.4}").expect("a string grows");
            lines.iter_mut().zip([bias, noise, error]).for_each(|(line, y)| line.push((f64::from(lambda), y)));
        }
        panels.iter_mut().zip(lines).for_each(|((_, series), line)| series.push(Series::new(*name, line)));
    }
    let panel = |(title, series): (&str, _)| {
        let y_label = "length, relative to the gradient".into();
        Panel { title: title.into(), chart: Chart::Lines(Lines { x_label: "λ".into(), y_label, series, ..Lines::default() }) }
    };
    let figure = Figure {
        title: "Policy gradient estimates against the exact gradient".into(),
        note: format!("{EPISODES} episodes; GAE with three critics"),
        columns: 3,
        panels: panels.into_iter().map(panel).collect(),
    };
    let out = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("runs/lesson-7"), PathBuf::from);
    std::fs::create_dir_all(&out).map_err(|source| Error::Io { action: "create", path: out.clone(), source })?;
    gradus::files::replace(&out.join("exact-gradient.csv"), csv.as_bytes()).map_err(|source| Error::Io {
        action: "write",
        path: out.clone(),
        source,
    })?;
    figure::write(&figure, &out.join("exact-gradient.svg"))?;
    print!("{csv}");
    Ok(())
}

/// Reports an error in one line.
fn main() -> ExitCode {
    gradus::program(run)
}
