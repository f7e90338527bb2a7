//! PPO's implementation details (Huang et al., 2022).

use std::fmt::Write;

use super::draw::{figure, intervals};
use super::experiment::Experiment;
use super::findings::{Claim, Findings, Test, bootstrap, difference, mean};
use super::runs::Run;
use super::study::Study;
use gradus::Error;
use gradus::figure::{Chart, Panel};
use gradus_compare::statistics::Estimate;
use gradus_compare::statistics::csv::quoted;

/// The mean return of all training episodes, which counts how fast a run learns and where it ends.
fn during(run: &Run) -> f64 {
    run.episodes.iter().map(|(_, value)| value).sum::<f64>() / run.episodes.len().max(1) as f64
}

/// The ablation.
pub(super) fn reproduce(experiment: &Experiment) -> Result<Findings, Error> {
    let study = Study::make(experiment)?;
    let (cartpole, acrobot) = (0, 1);
    let bootstrap = bootstrap(8);
    let all = study.agents()[0];
    let last = |run: &Run| run.last_episodes(100);
    let change = |without: &str, environment: usize| {
        difference(bootstrap, &study.numbers(all, environment, during), &study.numbers(without, environment, during))
    };
    let claims = vec![
        Claim::new(
            "with all details PPO reaches the original implementation's return on CartPole-v1, 497.5, to 15: mean of the last 100 episodes",
            mean(bootstrap, &study.numbers(all, cartpole, last)),
            Test::Within(482.54, 512.54),
        ),
        Claim::new(
            "it reaches that of CleanRL, 490, to 15: the same mean",
            mean(bootstrap, &study.numbers(all, cartpole, last)),
            Test::Within(475.04, 505.04),
        ),
        Claim::new(
            "separate networks are better than shared layers on CartPole: difference of the mean return of all episodes",
            change("shared layers (13)", cartpole),
            Test::Above(0.0),
        ),
        Claim::new("the same on Acrobot", change("shared layers (13)", acrobot), Test::Above(0.0)),
        Claim::new(
            "orthogonal initialisation helps on CartPole: difference",
            change("PyTorch's initialisation (2)", cartpole),
            Test::Above(0.0),
        ),
        Claim::new("the same on Acrobot", change("PyTorch's initialisation (2)", acrobot), Test::Above(0.0)),
        Claim::new(
            "clipping the value loss does not help on CartPole by 25 or more: difference",
            change("no clipping of values (9)", cartpole),
            Test::Below(25.0),
        ),
        Claim::new(
            "normalising advantages makes little difference on CartPole, less than 25",
            change("advantages as they are (7)", cartpole),
            Test::Within(-25.0, 25.0),
        ),
    ];
    let pointwise = super::findings::bootstrap(1);
    let mut csv = String::from("variant,env,measure,mean,low,high\n");
    let mut panels = Vec::new();
    for (measure, name, of) in [("last 100 episodes", "last", &last as &dyn Fn(&Run) -> f64), ("all episodes", "all", &during)] {
        for environment in [cartpole, acrobot] {
            let rows: Vec<(String, Estimate)> = study
                .agents()
                .into_iter()
                .map(|agent| (agent.to_owned(), mean(pointwise, &study.numbers(agent, environment, of))))
                .collect();
            for (variant, Estimate { point, low, high }) in &rows {
                writeln!(csv, "{},{},{name},{point},{low},{high}", quoted(variant), study.comparison.environments[environment])
                    .expect("a string");
            }
            let mut panel: Panel = intervals(&format!("{}, {measure}", study.title(environment)), "training return", rows);
            if let Chart::Intervals(intervals) = &mut panel.chart {
                let of_all = intervals.rows[0].point;
                intervals.reference = Some(if environment == cartpole && name == "last" { 490.04 } else { of_all });
            }
            panels.push(panel);
        }
    }
    let note = format!(
        "mean of {} seeds with 95 % intervals; dashed: CleanRL's published return in the first panel, all details in the others",
        study.comparison.seeds.len()
    );
    let figure = figure(&experiment.title, &note, 2, panels);
    Ok(Findings { claims, figures: vec![("figure", figure)], tables: vec![("returns.csv", csv)] })
}
