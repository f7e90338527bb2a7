//! SAC's temperature (Haarnoja et al., 2018).

use super::draw::figure;
use super::experiment::Experiment;
use super::findings::{Claim, Findings, Test, bootstrap, difference};
use super::runs::Run;
use super::study::Study;
use gradus::Error;

/// The comparison.
pub(super) fn reproduce(experiment: &Experiment) -> Result<Findings, Error> {
    let study = Study::make(experiment)?;
    let bootstrap = bootstrap(4);
    let last = |agent: &str| study.numbers(agent, 0, Run::last);
    let against = |other: &str| difference(bootstrap, &last("α learned"), &last(other));
    // the best fixed temperature, chosen by the mean over the training and not by the final return
    let fixed = ["α = 1e-6", "α = 0.1", "α = 1", "α = 10", "α = 100"];
    let area = |agent: &str| study.numbers(agent, 0, Run::area).iter().sum::<f64>();
    let best = fixed.into_iter().max_by(|a, b| area(a).total_cmp(&area(b))).unwrap_or(fixed[0]);
    let claims = vec![
        Claim::new(
            "too high a temperature lowers the return: return with a learned one minus that with α = 100",
            against("α = 100"),
            Test::Above(0.0),
        ),
        Claim::new("α = 10 is too high, too", against("α = 10"), Test::Above(0.0)),
        Claim::new("α = 1e-6 lowers the return, too: return with a learned one minus that", against("α = 1e-6"), Test::Above(0.0)),
        Claim::new(
            format!("a learned temperature is not worse than the best fixed one, {best}, by more than 20"),
            against(best),
            Test::Above(-20.0),
        ),
    ];
    let agents = study.agents();
    let note = format!("mean of {} seeds with 95 % intervals", study.comparison.seeds.len());
    let figure = figure(&experiment.title, &note, 1, vec![study.curves(&agents, 0)]);
    Ok(Findings { claims, figures: vec![("figure", figure)], tables: vec![("results.csv", study.csv())] })
}
