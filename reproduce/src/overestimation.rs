//! Overestimated action values (van Hasselt et al., 2016).

use std::fmt::Write;

use serde::Deserialize;

use super::draw::{banded, figure, lines};
use super::experiment::Experiment;
use super::findings::{Claim, Findings, Test, bootstrap, difference, mean};
use super::runs::each;
use gradus::agents::tabular::{deterministic, policy_evaluation};
use gradus::config::Network;
use gradus::envs::random::{Purpose, Stream};
use gradus::envs::tabular::{FrozenLake, Table, Tabular};
use gradus::figure::{Chart, Lines, Scale, Series, dashed};
use gradus::nets::cpu::QNetwork;
use gradus::nets::{ActionRows, Behaviour as _, QHead, QNetwork as _, Store};
use gradus::{Config, Error, Trainer};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    seeds: u64,
    steps: u64,
    environments: Vec<String>,
    gamma: f64,
    /// Settings of both agents, beside gamma.
    changes: Vec<String>,
    draws: usize,
}

/// Looks at the values during the training.
const LOOKS: u64 = 20;

fn table_of(environment: &str) -> Result<Table, Error> {
    let lake = match environment {
        "frozen-lake" => FrozenLake::slippery(&FrozenLake::MAP_4X4, FrozenLake::SUCCESS_RATE)?,
        _ => FrozenLake::slippery(&FrozenLake::MAP_8X8, FrozenLake::SUCCESS_RATE)?,
    };
    Ok(lake.table().clone())
}

/// Returns Q(s, a) of the training's network for all states.
fn values_of(trainer: &Trainer, table: &Table) -> Result<Vec<f64>, Error> {
    let (config, env) = (trainer.config(), trainer.world().env());
    let Network::Perceptron(network) = &config.network else { unreachable!("an agent with a perceptron") };
    let mut q = QNetwork::new(network, QHead::default(), &env.observation_space(), &env.action_space(), 1)?;
    q.load(&trainer.export()).map_err(|source| Error::Tensors { path: "the trained policy".into(), source })?;
    let states = table.states();
    let mut rows = vec![0.0; states * states];
    (0..states).for_each(|state| rows[state * states + state] = 1.0);
    let (store, mut values) = (Store::new(states, rows, ActionRows::Discrete(vec![0; states])), Vec::new());
    q.q_values(&store, 0..states, &mut values);
    Ok(values.iter().map(|value| f64::from(*value)).collect())
}

/// Returns the largest action value of the start minus the true value of the greedy policy, at every look.
fn train(environment: &str, is_double: bool, settings: &Settings, seed: u64) -> Result<Vec<f64>, Error> {
    let Settings { steps, gamma, ref changes, .. } = *settings;
    let table = table_of(environment)?;
    let config = Config { steps, seed, ..Config::preset("dqn", environment, None)? };
    let config = config.with_setting(&format!("dqn.double={is_double}"))?.with_setting(&format!("dqn.gamma={gamma}"))?;
    let mut trainer = Trainer::new(changes.iter().try_fold(config, |config, change| config.with_setting(change))?)?;
    let mut found = Vec::new();
    for look in 1..=LOOKS {
        while trainer.steps() < look * steps / LOOKS && !trainer.is_finished() {
            trainer.iterate()?;
        }
        let values = values_of(&trainer, &table)?;
        let actions = table.actions();
        let best = |state: usize| {
            let row = &values[state * actions..(state + 1) * actions];
            (0..actions).fold(0, |best, action| if row[action] > row[best] { action } else { best })
        };
        let chosen: Vec<usize> = (0..table.states()).map(best).collect();
        let truth = policy_evaluation(&table, &deterministic(&chosen, actions), gamma, 1e-9, 20_000).values;
        let start = table.starts().iter().position(|p| *p > 0.0).unwrap_or(0);
        found.push(values[start * actions + chosen[start]] - truth[start]);
    }
    Ok(found)
}

/// Returns the expectation of the maximum of m standard normal numbers, by the integral of 1 - F^m above 0 and of F^m below.
fn expected_maximum(m: usize) -> f64 {
    let (step, mut cdf, mut total) = (1e-3, 0.0, 0.0);
    for i in -9000..9000 {
        let x = (f64::from(i) + 0.5) * step;
        cdf += step * f64::from(gradus::nets::math::exp((-0.5 * x * x) as f32)) / std::f64::consts::TAU.sqrt();
        let power = cdf.min(1.0).powi(m as i32);
        total += step * if x > 0.0 { 1.0 - power } else { -power };
    }
    total
}

/// Figures 1 and 3.
pub(super) fn reproduce(experiment: &Experiment) -> Result<Findings, Error> {
    let settings: Settings = experiment.settings()?;
    let Settings { seeds, steps, ref environments, draws, .. } = settings;
    // figure 1
    let sizes: Vec<usize> = (1..=10).map(|power| 1 << power).collect();
    let biases = each(&sizes, |m| {
        let mut stream = Stream::new(1, Purpose::Environment, *m as u64);
        let mut errors = || (0..*m).map(|_| f64::from(stream.normal())).collect::<Vec<f64>>();
        let one = |_| {
            let (first, second) = (errors(), errors());
            let best = (0..*m).fold(0, |best, action| if first[action] > first[best] { action } else { best });
            [first[best], second[best]]
        };
        Ok((0..draws).map(one).collect::<Vec<[f64; 2]>>())
    })?;
    // figure 3
    let jobs: Vec<(&str, bool, u64)> = environments
        .iter()
        .flat_map(|environment| [false, true].map(|is_double| (environment, is_double)))
        .flat_map(|(environment, is_double)| (1..=seeds).map(move |seed| (environment.as_str(), is_double, seed)))
        .collect();
    let trained = each(&jobs, |(environment, is_double, seed)| train(environment, *is_double, &settings, *seed))?;
    let of = |environment: &str, is_double: bool| -> Vec<Vec<f64>> {
        let those = jobs.iter().zip(&trained).filter(|((name, kind, _), _)| *name == environment && *kind == is_double);
        those.map(|(_, run)| run.clone()).collect()
    };
    // the mean over the second half of the training
    let late = |runs: Vec<Vec<f64>>| {
        runs.iter().map(|run| run[run.len() / 2..].iter().sum::<f64>() / (run.len() - run.len() / 2) as f64).collect::<Vec<f64>>()
    };
    let column = |m: usize, kind: usize| -> Vec<f64> {
        let place = sizes.iter().position(|size| *size == m).unwrap_or(0);
        biases[place].iter().map(|pair| pair[kind]).collect()
    };
    let bootstrap = bootstrap(3 + 3 * environments.len());
    let mut claims = vec![
        Claim::new("with 2 actions the maximum is too high: its mean error", mean(bootstrap, &column(2, 0)), Test::Above(0.0)),
        Claim::new(
            "with 1024 actions more so: mean error minus that with 2 actions",
            difference(bootstrap, &column(1024, 0), &column(2, 0)),
            Test::Above(0.0),
        ),
        Claim::new(
            "a second estimate of the chosen action is unbiased, within 0.05: its mean error with 1024 actions",
            mean(bootstrap, &column(1024, 1)),
            Test::Within(-0.05, 0.05),
        ),
    ];
    for environment in environments {
        let (single, double) = (late(of(environment, false)), late(of(environment, true)));
        claims.push(Claim::new(
            format!("in the second half of the training DQN overestimates the value of the start of {environment}: mean error"),
            mean(bootstrap, &single),
            Test::Above(0.0),
        ));
        claims.push(Claim::new(
            format!("double DQN's estimate is lower on {environment}: error of DQN minus that of double DQN"),
            difference(bootstrap, &single, &double),
            Test::Above(0.0),
        ));
        let size = |errors: &[f64]| errors.iter().map(|error| error.abs()).collect::<Vec<f64>>();
        claims.push(Claim::new(
            format!("double DQN's estimate is closer to the truth on {environment}: size of DQN's error minus that of double DQN's"),
            difference(bootstrap, &size(&single), &size(&double)),
            Test::Above(0.0),
        ));
    }
    let mut csv = String::from("env,agent,seed,step,error\n");
    for ((environment, is_double, seed), run) in jobs.iter().zip(&trained) {
        for (look, error) in run.iter().enumerate() {
            let agent = if *is_double { "double DQN" } else { "DQN" };
            writeln!(csv, "{environment},{agent},{seed},{},{error}", (look as u64 + 1) * steps / LOOKS).expect("a string");
        }
    }
    let means = |kind: usize| sizes.iter().map(|m| (*m as f64, column(*m, kind).iter().sum::<f64>() / draws as f64)).collect::<Vec<_>>();
    let exact = sizes.iter().map(|m| (*m as f64, expected_maximum(*m))).collect();
    let mut first = lines(
        "figure 1: error of a single update",
        "actions",
        "mean error",
        vec![
            Series { style: Some(gradus::figure::solid(1)), ..Series::new("Q-learning: the maximum", means(0)) },
            Series { style: Some(gradus::figure::solid(0)), ..Series::new("double Q-learning", means(1)) },
            Series { style: Some(dashed(10, 1)), ..Series::new("exact expectation", exact) },
        ],
    );
    if let Chart::Lines(Lines { x_scale, .. }) = &mut first.chart {
        *x_scale = Scale::Log2;
    }
    let xs: Vec<f64> = (1..=LOOKS).map(|look| (look * steps / LOOKS) as f64).collect();
    let mut panels = vec![first];
    for environment in environments {
        let series = vec![banded("DQN", 1, &xs, &of(environment, false)), banded("double DQN", 0, &xs, &of(environment, true))];
        panels.push(lines(environment, "environment steps", "estimated minus true value of the start", series));
    }
    let note = format!("DQN: mean of {seeds} seeds with 95 % intervals");
    Ok(Findings { claims, figures: vec![("figure", figure(&experiment.title, &note, 1, panels))], tables: vec![("errors.csv", csv)] })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known expectations of the largest of m standard normal numbers.
    #[test]
    fn the_expected_maximum_is_the_known_one() {
        for (m, expected) in [(1, 0.0), (2, 0.564_19), (4, 1.029_38), (10, 1.538_75), (100, 2.507_59)] {
            assert!((expected_maximum(m) - expected).abs() < 1e-3, "{m}: {}", expected_maximum(m));
        }
    }
}
