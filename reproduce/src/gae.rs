//! GAE's gamma and lambda (Schulman et al., 2016, figure 2).

use std::fmt::Write;

use serde::Deserialize;

use super::draw::{banded, figure, lines};
use super::experiment::Experiment;
use super::findings::{Claim, Findings, Test, bootstrap, difference};
use super::runs::each;
use gradus::evaluate::evaluate;
use gradus::figure::{Cell, Chart, Grid, Panel};
use gradus::{Config, Error, Mode, Trainer};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    seeds: u64,
    iterations: u64,
    gammas: Vec<f64>,
    lambdas: Vec<f64>,
    envs: usize,
    rollout_steps: usize,
}

/// Episodes of an evaluation.
const EPISODES: usize = 20;

/// Returns the mean return of the sampling policy before the training and after every iteration.
fn train(settings: &Settings, gamma: f64, lambda: f64, seed: u64) -> Result<Vec<f64>, Error> {
    let Settings { iterations, envs, rollout_steps, .. } = *settings;
    let changes = [
        format!("envs={envs}"),
        format!("trpo.rollout_steps={rollout_steps}"),
        format!("trpo.gamma={gamma}"),
        format!("trpo.gae_lambda={lambda}"),
    ];
    let config = Config { seed, steps: iterations * (envs * rollout_steps) as u64, ..Config::preset("trpo", "cartpole", None)? };
    let config = changes.iter().try_fold(config, |config, change| config.with_setting(change))?;
    let mut trainer = Trainer::new(config)?;
    let look =
        |trainer: &Trainer| Ok::<f64, Error>(evaluate(trainer.policy(), &trainer.evaluation_world(), EPISODES, seed, Mode::Sampled)?.mean);
    let mut returns = vec![look(&trainer)?];
    while !trainer.is_finished() {
        trainer.iterate()?;
        returns.push(look(&trainer)?);
    }
    Ok(returns)
}

/// Figure 2.
pub(super) fn reproduce(experiment: &Experiment) -> Result<Findings, Error> {
    let settings: Settings = experiment.settings()?;
    let Settings { seeds, iterations, ref gammas, ref lambdas, .. } = settings;
    let cells: Vec<(f64, f64)> = gammas.iter().flat_map(|gamma| lambdas.iter().map(move |lambda| (*gamma, *lambda))).collect();
    let jobs: Vec<(f64, f64, u64)> =
        cells.iter().flat_map(|(gamma, lambda)| (1..=seeds).map(move |seed| (*gamma, *lambda, seed))).collect();
    let returns = each(&jobs, |(gamma, lambda, seed)| train(&settings, *gamma, *lambda, *seed))?;
    let of = |gamma: f64, lambda: f64| -> &[Vec<f64>] {
        let place = cells.iter().position(|cell| *cell == (gamma, lambda)).unwrap_or(0);
        &returns[place * seeds as usize..(place + 1) * seeds as usize]
    };
    let last = |gamma: f64, lambda: f64| of(gamma, lambda).iter().map(|run| run[run.len() - 1]).collect::<Vec<f64>>();
    let area = |gamma: f64, lambda: f64| {
        of(gamma, lambda).iter().map(|run| run[1..].iter().sum::<f64>() / (run.len() - 1) as f64).collect::<Vec<f64>>()
    };
    let bootstrap = bootstrap(7);
    let claims = vec![
        Claim::new(
            "with γ = 0.99, λ = 0.96 learns faster than λ = 0: difference of the mean return over all iterations",
            difference(bootstrap, &area(0.99, 0.96), &area(0.99, 0.0)),
            Test::Above(0.0),
        ),
        Claim::new("λ = 0.96 learns faster than λ = 1", difference(bootstrap, &area(0.99, 0.96), &area(0.99, 1.0)), Test::Above(0.0)),
        Claim::new(
            format!("after {iterations} iterations γ = 0.99 and λ = 0.96 are better than γ = 0.9 and λ = 0.96: difference of the return"),
            difference(bootstrap, &last(0.99, 0.96), &last(0.9, 0.96)),
            Test::Above(0.0),
        ),
        Claim::new("better than γ = 1 and λ = 0.96", difference(bootstrap, &last(0.99, 0.96), &last(1.0, 0.96)), Test::Above(0.0)),
        Claim::new("better than γ = 0.99 and λ = 0", difference(bootstrap, &last(0.99, 0.96), &last(0.99, 0.0)), Test::Above(0.0)),
        Claim::new("better than γ = 0.99 and λ = 1", difference(bootstrap, &last(0.99, 0.96), &last(0.99, 1.0)), Test::Above(0.0)),
        Claim::new("better than γ = 1 and λ = 1", difference(bootstrap, &last(0.99, 0.96), &last(1.0, 1.0)), Test::Above(0.0)),
    ];
    let mut csv = String::from("gamma,lambda,seed,iteration,return\n");
    for ((gamma, lambda, seed), run) in jobs.iter().zip(&returns) {
        run.iter()
            .enumerate()
            .for_each(|(iteration, value)| writeln!(csv, "{gamma},{lambda},{seed},{iteration},{value}").expect("a string"));
    }
    let xs: Vec<f64> = (0..=iterations).map(|iteration| iteration as f64).collect();
    let is_published = |lambda: f64| (0.92..=0.98).contains(&lambda);
    let name = |lambda: &f64| if is_published(*lambda) { format!("λ = {lambda}, published as fastest") } else { format!("λ = {lambda}") };
    let series = lambdas.iter().enumerate().map(|(colour, lambda)| banded(name(lambda), colour, &xs, of(0.99, *lambda))).collect();
    let cell = |(gamma, lambda): &(f64, f64)| {
        let values = last(*gamma, *lambda);
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        Cell { value: Some(mean), text: format!("{mean:.0}"), ..Cell::default() }
    };
    let grid = Grid {
        columns: lambdas.len(),
        cells: cells.iter().map(cell).collect(),
        value_label: "return".into(),
        row_names: gammas.iter().map(|gamma| format!("γ = {gamma}")).collect(),
        column_names: lambdas.iter().map(|lambda| format!("λ = {lambda}")).collect(),
        ..Grid::default()
    };
    let panels = vec![
        lines("γ = 0.99", "iterations", "return", series),
        Panel { title: format!("after {iterations} iterations"), chart: Chart::Grid(grid) },
    ];
    let note = format!("TRPO on CartPole-v1, mean of {seeds} runs with 95 % intervals");
    Ok(Findings { claims, figures: vec![("figure", figure(&experiment.title, &note, 1, panels))], tables: vec![("returns.csv", csv)] })
}
