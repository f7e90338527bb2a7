//! TRPO's step against the natural and the vanilla gradient (Schulman et al., 2015, figure 4).

use super::draw::figure;
use super::experiment::Experiment;
use super::findings::{Claim, Findings, Test, bootstrap, difference};
use super::runs::Run;
use super::study::Study;
use gradus::Error;

const SIZES: [&str; 4] = ["0.01", "0.1", "1", "10"];

/// Returns the mean greedy return over the training of every run, with the best step size of a rule. That of each half of the seeds is the best one of the other
/// half, so that the choice does not favour it. Also returns the step sizes.
fn best(study: &Study, rule: &str, environment: usize) -> (Vec<f64>, [&'static str; 2]) {
    let half = |size: &str, is_odd: bool| -> Vec<f64> {
        study.numbers(&format!("{rule}, {size}"), environment, Run::area).into_iter().skip(usize::from(is_odd)).step_by(2).collect()
    };
    let sum = |numbers: Vec<f64>| numbers.iter().sum::<f64>();
    let choose = |is_odd: bool| SIZES.into_iter().max_by(|a, b| sum(half(a, is_odd)).total_cmp(&sum(half(b, is_odd)))).unwrap_or(SIZES[0]);
    let chosen = [choose(true), choose(false)];
    ([half(chosen[0], false), half(chosen[1], true)].concat(), chosen)
}

/// Figure 4.
pub(super) fn reproduce(experiment: &Experiment) -> Result<Findings, Error> {
    let study = Study::make(experiment)?;
    let bootstrap = bootstrap(6);
    let (mut claims, mut panels, mut csv) = (Vec::new(), Vec::new(), String::from("env,rule,step_size_of_odd_seeds,of_even_seeds\n"));
    for environment in 0..study.comparison.environments.len() {
        let title = study.title(environment);
        let trust = study.numbers("trust region", environment, Run::area);
        let mut shown = vec!["trust region".to_owned()];
        for rule in ["natural", "vanilla"] {
            let (numbers, chosen) = best(&study, rule, environment);
            csv += &format!("{},{rule},{},{}\n", study.comparison.environments[environment], chosen[0], chosen[1]);
            let (words, test) = match rule {
                "natural" => ("the natural gradient does as well with its best step size, within 25", Test::Within(-25.0, 25.0)),
                _ => ("the vanilla gradient learns more slowly with its best step size", Test::Above(0.0)),
            };
            claims.push(Claim::new(
                format!("{title}: {words}: mean return over the training with the trust region minus that"),
                difference(bootstrap, &trust, &numbers),
                test,
            ));
            shown.push(format!("{rule}, {}", chosen[0]));
        }
        let wide = study.numbers("trust region, 100 δ", environment, Run::area);
        let large = study.numbers("natural, 10", environment, Run::area);
        claims.push(Claim::new(
            format!(
                "{title}: with steps ten times too long the trust region, of 100 δ, is better than the step size of 10: the same difference"
            ),
            difference(bootstrap, &wide, &large),
            Test::Above(0.0),
        ));
        shown.extend(["trust region, 100 δ".to_owned(), "natural, 10".to_owned()]);
        panels.push(study.curves(&shown.iter().map(String::as_str).collect::<Vec<_>>(), environment));
    }
    let note = format!("mean of {} seeds with 95 % intervals; the numbers are step sizes", study.comparison.seeds.len());
    let figure = figure(&experiment.title, &note, 1, panels);
    Ok(Findings { claims, figures: vec![("figure", figure)], tables: vec![("results.csv", study.csv()), ("step-sizes.csv", csv)] })
}
