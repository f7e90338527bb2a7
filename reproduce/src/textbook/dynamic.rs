//! Figures 4.2 and 4.3: Jack's car rental and the gambler's problem, by dynamic programming.

use std::fmt::Write;

use serde::Deserialize;

use super::super::experiment::Experiment;
use super::super::findings::{Claim, Findings, Test};
use super::{figure, lines};
use gradus::Error;
use gradus::agents::tabular::{ActionValues, best_actions, deterministic, look_ahead, policy_evaluation, value_iteration};
use gradus::envs::tabular::{Table, car_rental, gambler};
use gradus::figure::{Cell, Chart, Grid, Panel, Series, solid};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rental {
    gamma: f64,
    tolerance: f64,
}

/// Cars at a place, and cars that can be moved in a night.
const SIDE: usize = 21;
const MOVED: usize = 5;

/// Returns the number of cars that an action moves from the first place to the second.
fn moved(state: usize, action: usize) -> isize {
    let (first, second, most) = (state / SIDE, state % SIDE, SIDE - 1);
    if action >= MOVED {
        (action - MOVED).min(first).min(most - second) as isize
    } else {
        -((MOVED - action).min(second).min(most - first) as isize)
    }
}

/// Returns the best actions; of equal ones, that of `policy` if it is one of them, otherwise the one that moves the fewest cars.
fn improved(table: &Table, values: &[f64], gamma: f64, policy: &[usize]) -> Vec<usize> {
    let mut q = ActionValues::new(table.states(), table.actions(), 0.0);
    look_ahead(table, values, gamma, &mut q);
    let best = |state: usize| {
        let is_best = |action: usize| q.row(state)[action] > q.best(state) - 1e-9;
        let mut all: Vec<usize> = (0..table.actions()).filter(|action| is_best(*action)).collect();
        all.sort_by_key(|action| (*action != policy[state], action.abs_diff(MOVED)));
        all[0]
    };
    (0..table.states()).map(best).collect()
}

/// Draws numbers of all states: cars at the first place upwards, cars at the second to the right.
fn grid(title: String, label: &str, number: impl Fn(usize) -> f64, is_labelled: bool) -> Panel {
    let cell = |state: usize| {
        let value = number(state);
        Cell {
            value: Some(value),
            text: if is_labelled && value != 0.0 { value.to_string().replace('-', "−") } else { String::new() },
            ..Cell::default()
        }
    };
    let cells = (0..SIDE).rev().flat_map(|first| (0..SIDE).map(move |second| first * SIDE + second)).map(cell).collect();
    // all policies have one scale: at most five cars are moved
    let range = is_labelled.then_some((-5.0, 5.0));
    Panel {
        title,
        chart: Chart::Grid(Grid { columns: SIDE, cells, value_label: label.into(), range, around: is_labelled, ..Grid::default() }),
    }
}

/// Figure 4.2.
pub(crate) fn rental(experiment: &Experiment) -> Result<Findings, Error> {
    let Rental { gamma, tolerance } = experiment.settings()?;
    let table = car_rental();
    let mut policies = vec![vec![MOVED; table.states()]];
    let values = loop {
        let last = &policies[policies.len() - 1];
        let values = policy_evaluation(&table, &deterministic(last, table.actions()), gamma, tolerance, 10_000).values;
        let next = improved(&table, &values, gamma, last);
        let is_same = (0..table.states()).all(|state| moved(state, next[state]) == moved(state, last[state]));
        if is_same {
            break values;
        }
        policies.push(next);
    };
    let last = &policies[policies.len() - 1];
    let optimal = value_iteration(&table, gamma, tolerance, 10_000).values;
    let off = values.iter().zip(&optimal).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    let moves: Vec<isize> = (0..table.states()).map(|state| moved(state, last[state])).collect();
    let (most, least) = (moves.iter().max().copied().unwrap_or(0), moves.iter().min().copied().unwrap_or(0));
    let claims = vec![
        Claim::exact(
            "policy iteration needs four improvements: policies after the first one",
            (policies.len() - 1) as f64,
            Test::Within(3.5, 4.5),
        ),
        Claim::exact(
            "the last policy is optimal: largest difference between its values and those of value iteration",
            off,
            Test::Below(1e-3),
        ),
        Claim::exact("at most five cars are moved from the first place to the second: largest number", most as f64, Test::Within(4.5, 5.5)),
        Claim::exact("at most four from the second to the first: largest number", -least as f64, Test::Within(3.5, 4.5)),
    ];
    let mut csv = String::from("cars_at_first,cars_at_second,policy,moved\n");
    for (number, policy) in policies.iter().enumerate() {
        for (state, action) in policy.iter().enumerate() {
            writeln!(csv, "{},{},{number},{}", state / SIDE, state % SIDE, moved(state, *action)).expect("a string");
        }
    }
    let mut panels: Vec<Panel> = policies
        .iter()
        .enumerate()
        .map(|(number, policy)| grid(format!("policy {number}"), "cars moved", |state| moved(state, policy[state]) as f64, true))
        .collect();
    panels.push(grid("values of the last policy".into(), "value", |state| values[state], false));
    let note = "rows: cars at the first place, 20 to 0; columns: at the second, 0 to 20; numbers: cars moved to the second";
    Ok(Findings { claims, figures: vec![("figure", figure(&experiment.title, note, 2, panels))], tables: vec![("policies.csv", csv)] })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Gambler {
    heads: f64,
    sweeps: Vec<usize>,
}

/// Figure 4.3.
pub(crate) fn stakes(experiment: &Experiment) -> Result<Findings, Error> {
    let Gambler { heads, sweeps } = experiment.settings()?;
    let table = gambler(heads);
    let after: Vec<Vec<f64>> = sweeps.iter().map(|sweeps| value_iteration(&table, 1.0, 0.0, *sweeps).values).collect();
    let last = value_iteration(&table, 1.0, 1e-13, 10_000).values;
    // of equal stakes, the smallest
    let stakes: Vec<f64> = best_actions(&table, &last, 1.0).iter().map(|best| (best[0] + 1) as f64).collect();
    let off = |values: &[f64]| values[1..100].iter().zip(&last[1..100]).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    let near = |x: f64| Test::Within(x - 1e-9, x + 1e-9);
    let claims = vec![
        Claim::exact("with a capital of 50 the best is to stake all of it: value", last[50], near(heads)),
        Claim::exact("with 25: value, heads twice", last[25], near(heads * heads)),
        Claim::exact("with 75: value", last[75], near(heads + (1.0 - heads) * heads)),
        Claim::exact("stake with a capital of 50", stakes[50], near(50.0)),
        Claim::exact("stake with a capital of 51", stakes[51], near(1.0)),
        Claim::exact(
            format!("after {} sweeps the values are close to the final ones: largest difference", sweeps[sweeps.len() - 1]),
            off(&after[after.len() - 1]),
            Test::Below(0.01),
        ),
    ];
    let curve = |label: String, values: &[f64], colour: usize| Series {
        style: Some(solid(colour)),
        ..Series::new(label, (1..100).map(|capital| (capital as f64, values[capital])).collect())
    };
    let mut series: Vec<Series> =
        sweeps.iter().zip(&after).enumerate().map(|(colour, (sweeps, values))| curve(format!("sweep {sweeps}"), values, colour)).collect();
    series.push(curve("final".into(), &last, sweeps.len()));
    let panels = vec![
        lines("value estimates", "capital", "value", series),
        lines("final policy", "capital", "stake", vec![curve("smallest best stake".into(), &stakes, 0)]),
    ];
    let mut csv = String::from("capital,value,stake\n");
    (1..100).for_each(|capital| writeln!(csv, "{capital},{},{}", last[capital], stakes[capital]).expect("a string"));
    let note = format!("heads with probability {heads}");
    Ok(Findings { claims, figures: vec![("figure", figure(&experiment.title, &note, 1, panels))], tables: vec![("values.csv", csv)] })
}
