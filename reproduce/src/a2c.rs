//! A2C as a special case of PPO (Huang et al., 2022).

use std::fmt::Write;

use serde::Deserialize;

use super::draw::{figure, lines};
use super::experiment::Experiment;
use super::findings::{Claim, Findings, Test};
use super::runs::each;
use gradus::evaluate::evaluate;
use gradus::figure::{Series, dashed, solid};
use gradus::{Config, Error, Mode, Trainer};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    environments: Vec<String>,
    seeds: u64,
    steps: u64,
    /// Updates between two evaluations.
    every: u64,
}

/// The settings of A2C, and those of PPO that make it the same.
const A2C: [&str; 3] = ["a2c.rollout_steps=5", "a2c.gae_lambda=1", "a2c.normalise_advantages=false"];
const PPO: [&str; 5] =
    ["ppo.rollout_steps=5", "ppo.gae_lambda=1", "ppo.normalise_advantages=false", "ppo.epochs=1", "ppo.minibatch_size=40"];
const BOTH: [&str; 6] = [
    "envs=8",
    "optimiser.rule=rmsprop",
    "optimiser.learning_rate=7e-4",
    "optimiser.schedule=constant",
    "optimiser.max_grad_norm=0.5",
    "AGENT.value_coefficient=1",
];

fn trainer(agent: &str, settings: &[&str], environment: &str, steps: u64, seed: u64) -> Result<Trainer, Error> {
    let config = Config::default().with_setting(&format!("agent={agent}"))?.with_setting(&format!("environment={environment}"))?;
    let config = Config { steps, seed, ..config };
    let changes = settings.iter().chain(&BOTH).map(|change| change.replace("AGENT", agent));
    Trainer::new(changes.into_iter().try_fold(config, |config, change| config.with_setting(&change))?)
}

/// Returns the bits of the parameters.
fn bits(trainer: &Trainer) -> Vec<u32> {
    trainer.actor_critic().map(|policy| policy.parameters().iter().map(|x| x.to_bits()).collect()).unwrap_or_default()
}

/// What the two agents have in common.
struct Compared {
    updates: u64,
    /// Parameters that differed after any update.
    different: u64,
    /// Steps, and the returns of A2C and of PPO.
    returns: Vec<(u64, f64, f64)>,
}

/// The comparison.
pub(super) fn reproduce(experiment: &Experiment) -> Result<Findings, Error> {
    let Settings { environments, seeds, steps, every } = experiment.settings()?;
    let jobs: Vec<(&str, u64)> = environments.iter().flat_map(|environment| (1..=seeds).map(|seed| (environment.as_str(), seed))).collect();
    let found = each(&jobs, |(environment, seed)| {
        let (mut a2c, mut ppo) = (trainer("a2c", &A2C, environment, steps, *seed)?, trainer("ppo", &PPO, environment, steps, *seed)?);
        let look =
            |trainer: &Trainer| Ok::<f64, Error>(evaluate(trainer.policy(), &trainer.evaluation_world(), 10, *seed, Mode::Greedy)?.mean);
        let mut compared = Compared { updates: 0, different: 0, returns: Vec::new() };
        while !a2c.is_finished() {
            a2c.iterate()?;
            ppo.iterate()?;
            compared.updates += 1;
            let [of_a2c, of_ppo] = [&a2c, &ppo].map(bits);
            assert!(!of_a2c.is_empty() && of_a2c.len() == of_ppo.len(), "both agents train networks of the same size");
            compared.different += of_a2c.iter().zip(&of_ppo).filter(|(a, b)| a != b).count() as u64;
            if compared.updates.is_multiple_of(every) {
                compared.returns.push((a2c.steps(), look(&a2c)?, look(&ppo)?));
            }
        }
        Ok(compared)
    })?;
    let mut csv = String::from("env,seed,updates,different_parameters\n");
    for ((environment, seed), compared) in jobs.iter().zip(&found) {
        writeln!(csv, "{environment},{seed},{},{}", compared.updates, compared.different).expect("a string");
    }
    let (mut claims, mut panels) = (Vec::new(), Vec::new());
    for (place, environment) in environments.iter().enumerate() {
        let those = &found[place * seeds as usize..(place + 1) * seeds as usize];
        let updates: u64 = those.iter().map(|compared| compared.updates).sum();
        let different: u64 = those.iter().map(|compared| compared.different).sum();
        claims.push(Claim::exact(
            format!("parameters that differ after any of {updates} updates in {seeds} runs on {environment}"),
            different as f64,
            Test::Below(0.5),
        ));
        let first = &those[0].returns;
        let line = |of: fn(&(u64, f64, f64)) -> f64| first.iter().map(|point| (point.0 as f64, of(point))).collect::<Vec<_>>();
        let series = vec![
            Series { style: Some(solid(5)), ..Series::new("A2C", line(|point| point.1)) },
            Series { style: Some(dashed(1, 1)), ..Series::new("PPO", line(|point| point.2)) },
        ];
        panels.push(lines(environment, "environment steps", "greedy return", series));
    }
    let figure = figure(&experiment.title, "one seed; the lines of both agents lie on each other", 1, panels);
    Ok(Findings { claims, figures: vec![("figure", figure)], tables: vec![("parameters.csv", csv)] })
}
