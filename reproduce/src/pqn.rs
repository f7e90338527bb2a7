//! PQN against DQN (Gallici et al., 2024).

use std::fmt::Write;

use super::draw::{figure, lines};
use super::experiment::Experiment;
use super::findings::{Claim, Findings, Test, bootstrap, difference};
use super::runs::Run;
use super::study::Study;
use gradus::Error;
use gradus::figure::{Panel, Series, solid};

const AGENTS: [&str; 2] = ["PQN", "DQN"];

/// The comparison.
pub(super) fn reproduce(experiment: &Experiment) -> Result<Findings, Error> {
    let study = Study::make(experiment)?;
    let bootstrap = bootstrap(4);
    let [pqn, dqn] = AGENTS;
    let of = |environment: usize, number: fn(&Run) -> f64| {
        difference(bootstrap, &study.numbers(pqn, environment, number), &study.numbers(dqn, environment, number))
    };
    let claims = vec![
        Claim::new(
            "on CartPole PQN is not worse than DQN by more than 25 after all steps: difference of the greedy returns",
            of(0, Run::last),
            Test::Above(-25.0),
        ),
        Claim::new("over the whole training, too: difference of the mean returns", of(0, Run::area), Test::Above(-25.0)),
        Claim::new("on Acrobot it is not worse by more than 10 after all steps", of(1, Run::last), Test::Above(-10.0)),
        Claim::new("over the whole training, too", of(1, Run::area), Test::Above(-10.0)),
    ];
    let mut timing = String::from("env,agent,mean_seconds\n");
    let mut over_time: Vec<Panel> = Vec::new();
    for environment in 0..study.comparison.environments.len() {
        let mut series = Vec::new();
        for (colour, agent) in AGENTS.iter().enumerate() {
            let seconds = study.numbers(agent, environment, |run| run.seconds.last().copied().unwrap_or(0.0));
            let mean = |numbers: &[f64]| numbers.iter().sum::<f64>() / numbers.len() as f64;
            writeln!(timing, "{},{agent},{:.3}", study.comparison.environments[environment], mean(&seconds)).expect("a string");
            let evaluations = study.runs[0].evaluations.len();
            let at = |place: usize| {
                let number = |of: &dyn Fn(&Run) -> f64| mean(&study.numbers(agent, environment, of));
                (
                    number(&|run: &Run| run.seconds.get(place).copied().unwrap_or(0.0)),
                    number(&|run: &Run| run.evaluations.get(place).map_or(0.0, |at| at.1)),
                )
            };
            series.push(Series { style: Some(solid(colour)), ..Series::new(*agent, (0..evaluations).map(at).collect()) });
        }
        over_time.push(lines(&study.title(environment), "seconds of training on one core", "greedy return", series));
    }
    let panels = (0..study.comparison.environments.len()).map(|environment| study.curves(&AGENTS, environment)).collect();
    let note = format!("mean of {} seeds with 95 % intervals", study.comparison.seeds.len());
    let figures = vec![
        ("figure", figure(&experiment.title, &note, 1, panels)),
        ("time", figure("The same over the time of training", "mean of the seeds", 1, over_time)),
    ];
    Ok(Findings { claims, figures, tables: vec![("results.csv", study.csv()), ("timing.csv", timing)] })
}
