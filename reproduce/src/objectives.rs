//! PPO's objectives (Schulman et al., 2017, table 1).

use std::fmt::Write;

use super::draw::{figure, intervals};
use super::experiment::Experiment;
use super::findings::{Claim, Findings, Test, bootstrap, difference, mean};
use super::study::Study;
use gradus::Error;
use gradus::envs::random::{Purpose, Stream};
use gradus::envs::{Action, Space, registry};
use gradus_compare::statistics::Estimate;
use gradus_compare::statistics::csv::quoted;

/// The scores of table 1, in the order of the experiment file.
const PUBLISHED: [f64; 11] = [-0.39, 0.76, 0.82, 0.70, 0.68, 0.74, 0.71, 0.62, 0.71, 0.72, 0.69];

/// Returns the mean return of 100 episodes of uniformly random actions.
fn random(environment: &str) -> Result<f64, Error> {
    let world = registry::find(environment)?;
    let Space::Box { low, high } = world.env().action_space() else {
        return Err(Error::Parse { what: environment.into(), expected: "continuous actions".into(), got: "others".into() });
    };
    let (mut env, mut stream, mut total) = (world.single(1)?, Stream::new(1, Purpose::Action, 0), 0.0);
    for _ in 0..100 {
        loop {
            let action: Vec<f32> =
                low.iter().zip(&high).map(|(low, high)| stream.uniform(f64::from(*low), f64::from(*high)) as f32).collect();
            let step = env.step(Action::Continuous(&action))?;
            total += step.reward;
            if step.done() {
                break;
            }
        }
    }
    Ok(total / 100.0)
}

/// Table 1.
pub(super) fn reproduce(experiment: &Experiment) -> Result<Findings, Error> {
    let study = Study::make(experiment)?;
    let environments = 0..study.comparison.environments.len();
    let last = |agent: &str, environment: usize| study.numbers(agent, environment, |run| run.last_episodes(100));
    let mut ends = Vec::new();
    for environment in environments.clone() {
        let best = study.agents().iter().flat_map(|agent| last(agent, environment)).fold(f64::NEG_INFINITY, f64::max);
        ends.push((random(&study.comparison.environments[environment])?, best));
    }
    // the score of a seed is the mean over the tasks
    let scores = |agent: &str| -> Vec<f64> {
        let of = |environment: usize| -> Vec<f64> {
            let (low, high) = ends[environment];
            last(agent, environment).iter().map(|value| (value - low) / (high - low)).collect()
        };
        let all: Vec<Vec<f64>> = environments.clone().map(of).collect();
        (0..all[0].len()).map(|seed| all.iter().map(|scores| scores[seed]).sum::<f64>() / all.len() as f64).collect()
    };
    let bootstrap = bootstrap(4);
    let against = |other: &str| difference(bootstrap, &scores("clipping, ε = 0.2"), &scores(other));
    let claims = vec![
        Claim::new(
            "clipping with ε = 0.2 is better than no clipping or penalty: difference of the scores",
            against("no clipping or penalty"),
            Test::Above(0.0),
        ),
        Claim::new("better than an adaptive penalty with target 0.01", against("adaptive KL, target 0.01"), Test::Above(0.0)),
        Claim::new("better than a fixed penalty with β = 3", against("fixed KL, β = 3"), Test::Above(0.0)),
        Claim::new(
            "without clipping or penalty the score is below that of random actions",
            mean(bootstrap, &scores("no clipping or penalty")),
            Test::Below(0.0),
        ),
    ];
    let pointwise = super::findings::bootstrap(1);
    let mut csv = String::from("objective,score,low,high,published\n");
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for (agent, published) in study.agents().into_iter().zip(PUBLISHED) {
        let estimate = mean(pointwise, &scores(agent));
        let Estimate { point, low, high } = estimate;
        writeln!(csv, "{},{point},{low},{high},{published}", quoted(agent)).expect("a string");
        ours.push((agent.to_owned(), estimate));
        theirs.push((agent.to_owned(), Estimate { point: published, low: published, high: published }));
    }
    let panels = vec![
        intervals("ours, with 95 % intervals", "normalised score", ours),
        intervals("published, seven tasks of MuJoCo", "normalised score", theirs),
    ];
    let note =
        format!("{} seeds; mean of the last 100 training episodes, 0: random actions, 1: the best run", study.comparison.seeds.len());
    let figure = figure(&experiment.title, &note, 1, panels);
    Ok(Findings { claims, figures: vec![("figure", figure)], tables: vec![("scores.csv", csv)] })
}
