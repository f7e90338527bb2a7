//! Figures 5.1 to 5.3: Monte Carlo methods on Blackjack.

use std::fmt::Write;

use serde::Deserialize;

use super::super::experiment::Experiment;
use super::super::findings::{Claim, Findings, Test, bootstrap, mean, paired};
use super::super::runs::each;
use super::{banded, figure, lines, play, root_mean_square};
use gradus::Error;
use gradus::agents::tabular::{
    ImportanceSampling, Visits, best_actions, deterministic, mean_over_starts, monte_carlo, policy_evaluation, returns, value_iteration,
};
use gradus::envs::random::{Purpose, Stream};
use gradus::envs::tabular::{Blackjack, Table, Tabular};
use gradus::figure::{Cell, Chart, Grid, Lines, Panel, Scale};

const STICK: usize = 0;
const HIT: usize = 1;
/// Sums of the figures: below 12, hitting cannot go above 21, so the book leaves them out.
const SUMS: std::ops::RangeInclusive<usize> = 12..=21;

/// The 200 states of the book: sums 12 to 21, dealer's cards 1 to 10, with or without a usable ace.
fn states() -> Vec<usize> {
    let all = |has_ace| SUMS.flat_map(move |sum| (1..=10).map(move |dealer| Blackjack::state(sum, dealer, has_ace)));
    all(true).chain(all(false)).collect()
}

/// The policy of figure 5.1: stick on 20 or 21.
fn sticks_on_20(state: usize) -> usize {
    if Blackjack::parts(state).0 >= 20 { STICK } else { HIT }
}

/// Returns the values of a policy on Blackjack's table.
fn values_of(table: &Table, policy: impl Fn(usize) -> usize) -> Vec<f64> {
    let chosen: Vec<usize> = (0..table.states()).map(policy).collect();
    policy_evaluation(table, &deterministic(&chosen, 2), 1.0, 1e-12, 1000).values
}

/// Draws numbers of the 100 states with or without a usable ace, the sum 21 at the top.
fn grid(title: String, label: &str, has_ace: bool, number: impl Fn(usize) -> (Option<f64>, String)) -> Panel {
    let cell = |sum: usize, dealer: usize| {
        let (value, text) = number(Blackjack::state(sum, dealer, has_ace));
        Cell { value, text, ..Cell::default() }
    };
    let cells = SUMS.rev().flat_map(|sum| (1..=10).map(move |dealer| (sum, dealer))).map(|(sum, dealer)| cell(sum, dealer)).collect();
    Panel { title, chart: Chart::Grid(Grid { columns: 10, cells, value_label: label.into(), ..Grid::default() }) }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Evaluation {
    runs: u64,
    first_seed: u64,
    few: u64,
    many: u64,
}

/// Figure 5.1.
pub(crate) fn evaluation(experiment: &Experiment) -> Result<Findings, Error> {
    let Evaluation { runs, first_seed, few, many } = experiment.settings()?;
    let (blackjack, states) = (Blackjack::new(), states());
    let table = blackjack.table();
    let truth = values_of(table, sticks_on_20);
    let at = |values: &[f64], states: &[usize]| states.iter().map(|state| values[*state]).collect::<Vec<f64>>();
    let seeds: Vec<u64> = (first_seed..first_seed + runs).collect();
    let found = each(&seeds, |seed| {
        let mut stream = Stream::new(*seed, Purpose::Environment, 0);
        let (mut values, mut counts) = (vec![0.0; table.states()], vec![0; table.states()]);
        let mut after_few = Vec::new();
        for number in 1..=many {
            let start = table.sample_start(&mut stream) as usize;
            // a natural is a 21 with a usable ace
            let mut episode = play(table, start, &mut stream, |state, _| sticks_on_20(state));
            for state in &mut episode.states {
                let (sum, dealer, has_ace) = Blackjack::parts(*state);
                *state = Blackjack::state(sum, dealer, has_ace);
            }
            monte_carlo((&mut values, &mut counts), &episode, |t| episode.states[t], Visits::First, 1.0);
            if number == few {
                after_few = values.clone();
            }
        }
        Ok([after_few, values])
    })?;
    // with naturals, the value of 21 with a usable ace is the mean over both kinds of hands
    let judged: Vec<usize> = states.iter().copied().filter(|state| !(Blackjack::parts(*state).0 == 21 && state % 2 == 1)).collect();
    let (aces, others): (Vec<usize>, Vec<usize>) = judged.iter().partition(|state| *state % 2 == 1);
    let errors = |stage: usize, states: &[usize]| {
        found.iter().map(|run| root_mean_square(&at(&run[stage], states), &at(&truth, states))).collect::<Vec<f64>>()
    };
    let bootstrap = bootstrap(3);
    let claims = vec![
        Claim::new(
            format!("after {many} episodes the root mean square error of the values is small, below a twentieth of the stake"),
            mean(bootstrap, &errors(1, &judged)),
            Test::Below(0.05),
        ),
        Claim::new(
            format!("after {few} episodes it is larger with a usable ace than without, because these states are rarer; difference"),
            paired(bootstrap, &errors(0, &aces), &errors(0, &others)),
            Test::Above(0.0),
        ),
        Claim::new(
            "the value jumps up where the player sticks: mean value of the sums 20 and 21 minus that of the others, without a usable ace",
            mean(
                bootstrap,
                &found
                    .iter()
                    .map(|run| {
                        let mean_where = |is_high: bool| {
                            let those: Vec<f64> = others
                                .iter()
                                .filter(|state| (Blackjack::parts(**state).0 >= 20) == is_high)
                                .map(|state| run[1][*state])
                                .collect();
                            those.iter().sum::<f64>() / those.len() as f64
                        };
                        mean_where(true) - mean_where(false)
                    })
                    .collect::<Vec<f64>>(),
            ),
            Test::Above(0.5),
        ),
    ];
    let mut csv = String::from("player_sum,dealer_card,usable_ace,exact,after_few,after_many\n");
    for state in &states {
        let (sum, dealer, has_ace) = Blackjack::parts(*state);
        let [few, many] = [0, 1].map(|stage| found[0][stage][*state]);
        writeln!(csv, "{sum},{dealer},{has_ace},{:.6},{few:.6},{many:.6}", truth[*state]).expect("a string");
    }
    let mut panels = Vec::new();
    for (has_ace, words) in [(true, "ace"), (false, "no ace")] {
        for (stage, name) in [(Some(0), format!("{few} episodes")), (Some(1), format!("{many} episodes")), (None, "exact values".into())] {
            let values = stage.map_or(&truth, |stage: usize| &found[0][stage]);
            panels.push(grid(format!("{words}, {name}"), "value", has_ace, |state| (Some(values[state]), String::new())));
        }
    }
    let note =
        "with and without a usable ace; rows: the player's sum from 21 down to 12; columns: the dealer's card from ace to 10; one run";
    Ok(Findings { claims, figures: vec![("figure", figure(&experiment.title, note, 3, panels))], tables: vec![("values.csv", csv)] })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Control {
    runs: u64,
    episodes: u64,
}

/// The policy of figure 5.2: the smallest sum on which the player sticks, for dealer's cards from the ace to 10.
const STICKS_WITH_ACE: [usize; 10] = [19, 18, 18, 18, 18, 18, 18, 18, 19, 19];
const STICKS_WITHOUT: [usize; 10] = [17, 13, 13, 12, 12, 12, 17, 17, 17, 17];

/// Figure 5.2.
pub(crate) fn control(experiment: &Experiment) -> Result<Findings, Error> {
    let Control { runs, episodes } = experiment.settings()?;
    let (blackjack, states) = (Blackjack::new(), states());
    let table = blackjack.table();
    let optimum = value_iteration(table, 1.0, 1e-12, 1000).values;
    let best: Vec<usize> = best_actions(table, &optimum, 1.0).iter().map(|best| best[0]).collect();
    let published = |state: usize| {
        let (sum, dealer, has_ace) = Blackjack::parts(state);
        let least = if has_ace { STICKS_WITH_ACE[dealer - 1] } else { STICKS_WITHOUT[dealer - 1] };
        if sum >= least { STICK } else { HIT }
    };
    let seeds: Vec<u64> = (1..=runs).collect();
    let policies = each(&seeds, |seed| {
        let mut stream = Stream::new(*seed, Purpose::Environment, 0);
        let (mut values, mut counts) = (vec![0.0; 2 * table.states()], vec![0; 2 * table.states()]);
        let mut policy: Vec<usize> = (0..table.states()).map(sticks_on_20).collect();
        for _ in 0..episodes {
            // exploring starts: every state of the book and both actions are equally likely
            let start = states[stream.below(states.len() as u32) as usize];
            let mut first = Some(stream.below(2) as usize);
            let episode = play(table, start, &mut stream, |state, _| first.take().unwrap_or(policy[state]));
            monte_carlo((&mut values, &mut counts), &episode, |t| 2 * episode.states[t] + episode.actions[t], Visits::First, 1.0);
            for state in &episode.states {
                policy[*state] = usize::from(values[2 * state + HIT] > values[2 * state + STICK]);
            }
        }
        // the policy of other states is never used in the figure: the player hits below 12 and sticks with a natural
        (0..table.states()).filter(|state| !states.contains(state)).for_each(|state| policy[state] = best[state]);
        Ok((policy, values))
    })?;
    let worth = |values: &[f64]| mean_over_starts(table, values);
    let lost: Vec<f64> = policies.iter().map(|(policy, _)| worth(&optimum) - worth(&values_of(table, |state| policy[state]))).collect();
    let differs = |policy: &dyn Fn(usize) -> usize| states.iter().filter(|state| policy(**state) != best[**state]).count() as f64;
    let counts: Vec<f64> = policies.iter().map(|(policy, _)| differs(&|state| policy[state])).collect();
    let bootstrap = bootstrap(3);
    let claims = vec![
        Claim::exact(
            "the published policy is optimal: states of 200 in which the optimum of the model differs from it",
            differs(&published),
            Test::Below(0.5),
        ),
        Claim::new(
            format!("Monte Carlo with exploring starts finds it: mean return that its policy loses after {episodes} episodes"),
            mean(bootstrap, &lost),
            Test::Below(0.001),
        ),
        Claim::new("states of 200 in which its policy is not that optimum", mean(bootstrap, &counts), Test::Below(10.0)),
    ];
    let mut csv = String::from("player_sum,dealer_card,usable_ace,optimal_value,stick,published,found_in_run_1\n");
    for state in &states {
        let (sum, dealer, has_ace) = Blackjack::parts(*state);
        let sticks = [best[*state], published(*state), policies[0].0[*state]].map(|action| action == STICK);
        writeln!(csv, "{sum},{dealer},{has_ace},{:.6},{},{},{}", optimum[*state], sticks[0], sticks[1], sticks[2]).expect("a string");
    }
    let letter = |action: usize| if action == STICK { "S" } else { "H" };
    let mut panels = Vec::new();
    for (has_ace, words) in [(true, "usable ace"), (false, "no usable ace")] {
        let share = |state: usize| policies.iter().filter(|(policy, _)| policy[state] == STICK).count() as f64 / policies.len() as f64;
        let title = format!("{words}: letters published, shades ours");
        panels.push(grid(title, "share of runs that stick", has_ace, |state| (Some(share(state)), letter(published(state)).into())));
        panels.push(grid(format!("{words}: optimal values"), "value", has_ace, |state| (Some(optimum[state]), letter(best[state]).into())));
    }
    let note = "rows: sum, 21 to 12; columns: dealer's card, ace to 10; S: stick, H: hit";
    Ok(Findings { claims, figures: vec![("figure", figure(&experiment.title, note, 2, panels))], tables: vec![("policy.csv", csv)] })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sampling {
    runs: u64,
    episodes: u64,
}

/// Figure 5.3.
pub(crate) fn importance_sampling(experiment: &Experiment) -> Result<Findings, Error> {
    let Sampling { runs, episodes } = experiment.settings()?;
    let blackjack = Blackjack::new();
    let (table, start) = (blackjack.table(), Blackjack::state(13, 2, true));
    let truth = values_of(table, sticks_on_20)[start];
    // the places of a logarithmic axis
    let mut shown: Vec<u64> = (0..=100).map(|i| (episodes as f64).powf(f64::from(i) / 100.0).round() as u64).collect();
    shown.dedup();
    let seeds: Vec<u64> = (1..=runs).collect();
    let errors = each(&seeds, |seed| {
        let mut stream = Stream::new(*seed, Purpose::Environment, 0);
        let (mut estimate, mut squares) = (ImportanceSampling::default(), [Vec::new(), Vec::new()]);
        for number in 1..=episodes {
            let episode = play(table, start, &mut stream, |_, stream| stream.below(2) as usize);
            let is_taken = |t: usize| sticks_on_20(episode.states[t]) == episode.actions[t];
            let ratio = (0..episode.states.len()).map(|t| if is_taken(t) { 2.0 } else { 0.0 }).product();
            estimate.add(returns(&episode.rewards, 1.0)[0], ratio);
            if shown.contains(&number) {
                let square = |value: f64| (value - truth) * (value - truth);
                squares[0].push(square(estimate.ordinary()));
                squares[1].push(square(estimate.weighted()));
            }
        }
        Ok(squares)
    })?;
    let all = |kind: usize| errors.iter().map(|squares| squares[kind].clone()).collect::<Vec<Vec<f64>>>();
    let (ordinary, weighted) = (all(0), all(1));
    let at = |runs: &[Vec<f64>], episode: u64| {
        let place = shown.iter().position(|number| *number >= episode).unwrap_or(shown.len() - 1);
        runs.iter().map(|run| run[place]).collect::<Vec<f64>>()
    };
    let bootstrap = bootstrap(4);
    let claims = vec![
        Claim::exact("the value of the state is -0.27726, to 0.001; our exact value", truth, Test::Within(-0.27826, -0.27626)),
        Claim::new(
            "weighted importance sampling has the lower error at the beginning: mean square error of the ordinary minus that of the weighted estimate after 10 episodes",
            paired(bootstrap, &at(&ordinary, 10), &at(&weighted, 10)),
            Test::Above(0.0),
        ),
        Claim::new(
            format!("both errors approach zero: that of the ordinary estimate after {episodes} episodes"),
            mean(bootstrap, &at(&ordinary, episodes)),
            Test::Below(0.01),
        ),
        Claim::new(
            format!("that of the weighted estimate after {episodes} episodes"),
            mean(bootstrap, &at(&weighted, episodes)),
            Test::Below(0.01),
        ),
    ];
    let xs: Vec<f64> = shown.iter().map(|number| *number as f64).collect();
    let series = vec![banded("ordinary", 1, &xs, &ordinary), banded("weighted", 0, &xs, &weighted)];
    let mut csv = String::from("estimate,episode,mean_square_error,low,high\n");
    for series in &series {
        for ((x, y), (_, low, high)) in series.points.iter().zip(&series.band) {
            writeln!(csv, "{},{x},{y:.6},{low:.6},{high:.6}", series.label).expect("a string");
        }
    }
    let mut panel = lines("", "episodes, logarithmic", "mean square error", series);
    if let Chart::Lines(Lines { x_scale, y_range, .. }) = &mut panel.chart {
        (*x_scale, *y_range) = (Scale::Log10, Some((0.0, 5.0)));
    }
    let note = format!("mean of {runs} runs with 95 % intervals");
    Ok(Findings { claims, figures: vec![("figure", figure(&experiment.title, &note, 1, vec![panel]))], tables: vec![("errors.csv", csv)] })
}
