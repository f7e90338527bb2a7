//! Lesson 2: Markov decision processes and dynamic programming.

use gradus_envs::tabular::{Outcome, Table};

use crate::exercise::{About, Exercise, Mistake, Trial};
use crate::inputs::{numbers, share, stream};
use crate::lessons::lesson;
use crate::sheet::{Sheet, list};
use crate::worlds;

/// Returns the discounted return from the rewards and gamma.
pub type DiscountedReturn = fn(&[f64], f64) -> f64;
/// Returns the value of an action from the table, the values of the states, a state, an action and gamma.
pub type ActionValue = fn(&Table, &[f64], usize, usize, f64) -> f64;
/// Returns the values after a sweep, from the table, the probabilities of the actions in each state, the values before it, and gamma.
pub type EvaluationSweep = fn(&Table, &[Vec<f64>], &[f64], f64) -> Vec<f64>;
/// Returns the greedy action from the table, the values of the states, a state and gamma.
pub type GreedyAction = fn(&Table, &[f64], usize, f64) -> usize;
/// Returns the optimal values from the table, gamma and the change at which to stop.
pub type ValueIteration = fn(&Table, f64, f64) -> Vec<f64>;

lesson!("2", "Markov decision processes and dynamic programming", {
    discounted_return: DiscountedReturn = DISCOUNTED_RETURN,
    action_value: ActionValue = ACTION_VALUE,
    evaluation_sweep: EvaluationSweep = EVALUATION_SWEEP,
    greedy_action: GreedyAction = GREEDY_ACTION,
    value_iteration: ValueIteration = VALUE_ITERATION,
});

/// Writes outcomes in words.
pub(crate) fn outcomes(table: &Table, state: usize, action: usize) -> String {
    let one = |o: &Outcome| {
        let to = if o.terminated { "the end".into() } else { format!("state {}", o.next) };
        format!("{} with probability {:.2} and reward {:.4}", to, o.probability, o.reward)
    };
    table.outcomes(state, action).iter().map(one).collect::<Vec<_>>().join(", ")
}

// 2.1

fn backwards(rewards: &[f64], gamma: f64) -> f64 {
    rewards.iter().rev().fold(0.0, |sum, reward| reward + gamma * sum)
}

static DISCOUNTED_RETURN: Exercise<DiscountedReturn> = Exercise {
    about: About {
        number: "2.1",
        name: "discounted_return",
        title: "what an episode was worth",
        section: "returns",
        hints: &[
            "The first reward counts in full, the second one gamma times, the third one gamma squared times.",
            "From the back it is simpler: G = r + gamma times the G of what follows, which is 0 after the last reward.",
        ],
    },
    right: backwards,
    checks: &[
        |Trial { function, .. }, sheet| {
            for (rewards, gamma, expected) in [
                (&[1.0, 2.0, 4.0][..], 0.5, 3.0),
                (&[0.0, 0.0, 8.0], 0.5, 2.0),
                (&[1.0, 1.0, 1.0], 1.0, 3.0),
                (&[3.0, 5.0], 0.0, 3.0),
                (&[-2.0], 0.9, -2.0),
                (&[], 0.9, 0.0),
            ] {
                sheet
                    .row(format!("discounted_return(rewards = {}, gamma = {gamma})", list(rewards)), expected, || function(rewards, gamma));
            }
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 21);
            for _ in 0..50 {
                let n = 1 + stream.below(12) as usize;
                let (rewards, gamma) = (numbers(&mut stream, n), share(&mut stream));
                let place = format!("discounted_return(rewards = {}, gamma = {gamma})", list(&rewards));
                sheet.row(place, right(&rewards, gamma), || function(&rewards, gamma));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "gamma is multiplied by the number of the step instead of raised to it",
            section: "returns",
            function: |rewards, gamma| (0_i32..).zip(rewards).map(|(t, reward)| gamma * f64::from(t) * reward).sum(),
        },
        Mistake {
            says: "the first reward is discounted, too: it stands one step too late",
            section: "returns",
            function: |rewards, gamma| gamma * backwards(rewards, gamma),
        },
        Mistake {
            says: "the rewards are taken in the wrong order: the last one counts in full",
            section: "returns",
            function: |rewards, gamma| rewards.iter().fold(0.0, |sum, reward| reward + gamma * sum),
        },
        Mistake { says: "gamma is left out", section: "returns", function: |rewards, _| rewards.iter().sum() },
        Mistake {
            says: "each reward counts gamma times as much, however late it comes",
            section: "returns",
            function: |rewards, gamma| {
                let Some((first, rest)) = rewards.split_first() else { return 0.0 };
                first + gamma * rest.iter().sum::<f64>()
            },
        },
        Mistake {
            says: "the weights are divided by their sum, so that it is a mean of the rewards",
            section: "returns",
            function: |rewards, gamma| {
                let weights = backwards(&vec![1.0; rewards.len()], gamma);
                if rewards.is_empty() { 0.0 } else { backwards(rewards, gamma) / weights }
            },
        },
    ],
};

// 2.2

pub(crate) fn backup(table: &Table, values: &[f64], state: usize, action: usize, gamma: f64) -> f64 {
    let one = |o: &Outcome| o.probability * (o.reward + if o.terminated { 0.0 } else { gamma * values[o.next as usize] });
    table.outcomes(state, action).iter().map(one).sum()
}

fn call_of(name: &str, table: &Table, values: &[f64], state: usize, actions: &[usize], gamma: f64) -> String {
    let led: Vec<String> =
        actions.iter().map(|action| format!("action {action} in state {state} leads to {}", outcomes(table, state, *action))).collect();
    format!("{name}, where {}, with values = {} and gamma = {gamma}", led.join("; "), list(values))
}

static ACTION_VALUE: Exercise<ActionValue> = Exercise {
    about: About {
        number: "2.2",
        name: "action_value",
        title: "one step ahead",
        section: "the-bellman-equation",
        hints: &[
            "It is a mean over the outcomes, with their probabilities as weights: of the reward, plus gamma times the value of the next state.",
            "Nothing follows an outcome that terminates, whatever its `next` is: it counts with its reward alone.",
            "for outcome in table.outcomes(state, action) { ... }; the fields are probability, next, reward and terminated, and next as usize is an index.",
        ],
    },
    right: backup,
    checks: &[
        |Trial { function, .. }, sheet| {
            // values 2 and 6, gamma 1/2: 1 + 3; (2 + 1) / 2 + 4 / 2; 10; -1 + 3
            let table = worlds::two_states();
            for (state, action, expected) in [(0, 0, 4.0), (0, 1, 3.5), (1, 0, 10.0), (1, 1, 2.0)] {
                let place = call_of("action_value", &table, &[2.0, 6.0], state, &[action], 0.5);
                sheet.row(place, expected, || function(&table, &[2.0, 6.0], state, action, 0.5));
            }
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 22);
            for _ in 0..30 {
                let table = worlds::random(&mut stream);
                let (values, gamma) = (numbers(&mut stream, table.states()), share(&mut stream));
                let state = stream.below(table.states() as u32) as usize;
                let action = stream.below(table.actions() as u32) as usize;
                let place = call_of("action_value", &table, &values, state, &[action], gamma);
                sheet.row(place, right(&table, &values, state, action, gamma), || function(&table, &values, state, action, gamma));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "the probability multiplies the reward only, and not what follows",
            section: "the-bellman-equation",
            function: |table, values, state, action, gamma| {
                let following = |o: &Outcome| if o.terminated { 0.0 } else { gamma * values[o.next as usize] };
                table.outcomes(state, action).iter().map(|o| o.probability * o.reward + following(o)).sum()
            },
        },
        Mistake {
            says: "the value of the next state counts also where the outcome terminates",
            section: "the-end-of-an-episode",
            function: |table, values, state, action, gamma| {
                table.outcomes(state, action).iter().map(|o| o.probability * (o.reward + gamma * values[o.next as usize])).sum()
            },
        },
        Mistake {
            says: "the outcomes are added up without their probabilities",
            section: "the-bellman-equation",
            function: |table, values, state, action, gamma| {
                let one = |o: &Outcome| o.reward + if o.terminated { 0.0 } else { gamma * values[o.next as usize] };
                table.outcomes(state, action).iter().map(one).sum()
            },
        },
        Mistake {
            says: "gamma multiplies the reward, too",
            section: "the-bellman-equation",
            function: |table, values, state, action, gamma| {
                let one = |o: &Outcome| gamma * o.probability * (o.reward + if o.terminated { 0.0 } else { values[o.next as usize] });
                table.outcomes(state, action).iter().map(one).sum()
            },
        },
        Mistake {
            says: "an outcome that terminates is left out, with its reward",
            section: "the-end-of-an-episode",
            function: |table, values, state, action, gamma| {
                let going = table.outcomes(state, action).iter().filter(|o| !o.terminated);
                going.map(|o| o.probability * (o.reward + gamma * values[o.next as usize])).sum()
            },
        },
        Mistake {
            says: "the value of the state itself stands where that of the next state should",
            section: "the-bellman-equation",
            function: |table, values, state, action, gamma| {
                let one = |o: &Outcome| o.probability * (o.reward + if o.terminated { 0.0 } else { gamma * values[state] });
                table.outcomes(state, action).iter().map(one).sum()
            },
        },
        Mistake {
            says: "the rewards are left out",
            section: "the-bellman-equation",
            function: |table, values, state, action, gamma| {
                let going = table.outcomes(state, action).iter().filter(|o| !o.terminated);
                going.map(|o| o.probability * gamma * values[o.next as usize]).sum()
            },
        },
    ],
};

// 2.3

fn sweep(table: &Table, policy: &[Vec<f64>], values: &[f64], gamma: f64) -> Vec<f64> {
    let mean = |state: usize| (0..table.actions()).map(|a| policy[state][a] * backup(table, values, state, a, gamma)).sum();
    (0..table.states()).map(mean).collect()
}

fn uniform(table: &Table) -> Vec<Vec<f64>> {
    vec![vec![1.0 / table.actions() as f64; table.actions()]; table.states()]
}

static EVALUATION_SWEEP: Exercise<EvaluationSweep> = Exercise {
    about: About {
        number: "2.3",
        name: "evaluation_sweep",
        title: "one sweep of policy evaluation",
        section: "policy-evaluation",
        hints: &[
            "The new value of a state is the mean of its action values, with the probabilities of the policy as weights.",
            "All new values are computed from the old ones: make a new list, and do not change the old values on the way.",
            "Use the function of exercise 2.2 for each action.",
        ],
    },
    right: sweep,
    checks: &[
        |Trial { function, .. }, sheet| {
            let table = worlds::two_states();
            let place = |policy: &str| format!("evaluation_sweep in the world of exercise 2.2, values = [2, 6], gamma = 0.5, {policy}");
            sheet.row(place("both actions equally likely"), vec![3.75, 6.0], || function(&table, &uniform(&table), &[2.0, 6.0], 0.5));
            let certain = vec![vec![1.0, 0.0], vec![0.0, 1.0]];
            sheet.row(place("action 0 in state 0, action 1 in state 1"), vec![4.0, 2.0], || function(&table, &certain, &[2.0, 6.0], 0.5));
            // Sutton and Barto's figure 4.1: the values after one and after two sweeps from 0
            let table = worlds::grid();
            let once = vec![-1.0; 14];
            let place = |from: &str| format!("evaluation_sweep in the 4 x 4 grid of example 4.1, random actions, gamma = 1, from {from}");
            sheet.row(place("values of 0"), once.clone(), || function(&table, &uniform(&table), &[0.0; 14], 1.0));
            let twice: Vec<f64> = (1..15).map(|cell| if [1, 4, 11, 14].contains(&cell) { -1.75 } else { -2.0 }).collect();
            sheet.row(place("values of -1"), twice, || function(&table, &uniform(&table), &once, 1.0));
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 23);
            for world in 1..=20 {
                let table = worlds::random(&mut stream);
                let (values, gamma) = (numbers(&mut stream, table.states()), share(&mut stream));
                let mut row = || {
                    let weights: Vec<f64> = (0..table.actions()).map(|_| f64::from(1 + stream.below(5))).collect();
                    weights.iter().map(|weight| weight / weights.iter().sum::<f64>()).collect::<Vec<f64>>()
                };
                let policy: Vec<Vec<f64>> = (0..table.states()).map(|_| row()).collect();
                let place = format!("evaluation_sweep in random world {world}, values = {}, gamma = {gamma}", list(&values));
                sheet.row(place, right(&table, &policy, &values, gamma), || function(&table, &policy, &values, gamma));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "the values are replaced one after the other, so that later states see new values: that converges, too, but is another sweep",
            section: "sweeps-in-place",
            function: |table, policy, values, gamma| {
                let mut new = values.to_vec();
                for state in 0..table.states() {
                    new[state] = (0..table.actions()).map(|a| policy[state][a] * backup(table, &new, state, a, gamma)).sum();
                }
                new
            },
        },
        Mistake {
            says: "the best action is taken instead of the policy's mean: a sweep of value iteration",
            section: "value-iteration",
            function: |table, _, values, gamma| {
                let best = |s: usize| (0..table.actions()).map(|a| backup(table, values, s, a, gamma)).fold(f64::NEG_INFINITY, f64::max);
                (0..table.states()).map(best).collect()
            },
        },
        Mistake {
            says: "all actions count the same, whatever the policy",
            section: "policy-evaluation",
            function: |table, _, values, gamma| sweep(table, &uniform(table), values, gamma),
        },
        Mistake {
            says: "the sum over the actions lacks the probabilities of the policy",
            section: "policy-evaluation",
            function: |table, _, values, gamma| {
                (0..table.states()).map(|s| (0..table.actions()).map(|a| backup(table, values, s, a, gamma)).sum()).collect()
            },
        },
        Mistake {
            says: "the change is added to the old value instead of replacing it",
            section: "policy-evaluation",
            function: |table, policy, values, gamma| {
                sweep(table, policy, values, gamma).iter().zip(values).map(|(new, old)| new + old).collect()
            },
        },
    ],
};

// 2.4

fn first_best(scores: impl Iterator<Item = f64>) -> usize {
    scores.enumerate().fold((0, f64::NEG_INFINITY), |best, next| if next.1 > best.1 { next } else { best }).0
}

static GREEDY_ACTION: Exercise<GreedyAction> = Exercise {
    about: About {
        number: "2.4",
        name: "greedy_action",
        title: "policy improvement",
        section: "policy-improvement",
        hints: &[
            "Compute the value of each action with the function of exercise 2.2, and return the number of the largest.",
            "If several actions have the largest value, return the first: replace the best so far only if the new one is larger.",
        ],
    },
    right: |table, values, state, gamma| first_best((0..table.actions()).map(|a| backup(table, values, state, a, gamma))),
    checks: &[
        |Trial { function, .. }, sheet| {
            let table = worlds::two_states();
            for (values, state, gamma, expected) in [
                ([2.0, 6.0], 0, 0.5, 0_usize),
                ([2.0, 6.0], 1, 0.5, 0),
                ([9.0, 0.0], 0, 1.0, 1),
                ([0.0, 30.0], 1, 0.9, 1),
                ([0.0, 30.0], 1, 0.0, 0),
                ([-100.0, -100.0], 0, 0.9, 1),
            ] {
                let place = call_of("greedy_action", &table, &values, state, &[0, 1], gamma);
                sheet.row(place, expected, || function(&table, &values, state, gamma));
            }
            let table = worlds::grid();
            let place = "greedy_action in the middle of the 4 x 4 grid, where all actions are equally good";
            sheet.row(place, 0_usize, || function(&table, &[-1.0; 14], 4, 1.0));
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 24);
            for _ in 0..60 {
                let table = worlds::random(&mut stream);
                let (values, gamma) = (numbers(&mut stream, table.states()), share(&mut stream));
                let state = stream.below(table.states() as u32) as usize;
                // which of two equal actions is larger may depend on the order of the operations
                let mut of_actions: Vec<f64> = (0..table.actions()).map(|action| backup(&table, &values, state, action, gamma)).collect();
                of_actions.sort_by(f64::total_cmp);
                if of_actions.windows(2).next_back().is_some_and(|pair| pair[1] - pair[0] < 1e-9) {
                    continue;
                }
                let all: Vec<usize> = (0..table.actions()).collect();
                let place = call_of("greedy_action", &table, &values, state, &all, gamma);
                sheet.row(place, right(&table, &values, state, gamma), || function(&table, &values, state, gamma));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "the maximum begins at 0, so that no value can be below it",
            section: "policy-improvement",
            function: |table, values, state, gamma| {
                let (mut best, mut largest) = (0, 0.0);
                for action in 0..table.actions() {
                    let value = backup(table, values, state, action, gamma);
                    if value > largest {
                        (best, largest) = (action, value);
                    }
                }
                best
            },
        },
        Mistake {
            says: "only the reward of the next step counts, not what follows",
            section: "policy-improvement",
            function: |table, _, state, _| {
                let reward = |a: usize| table.outcomes(state, a).iter().map(|o| o.probability * o.reward).sum();
                first_best((0..table.actions()).map(reward))
            },
        },
        Mistake {
            says: "only the value of the next state counts, not the reward on the way",
            section: "policy-improvement",
            function: |table, values, state, _| {
                let next = |o: &Outcome| o.probability * if o.terminated { 0.0 } else { values[o.next as usize] };
                first_best((0..table.actions()).map(|a| table.outcomes(state, a).iter().map(next).sum()))
            },
        },
        Mistake {
            says: "the last of several actions with the largest value is returned, instead of the first",
            section: "policy-improvement",
            function: |table, values, state, gamma| {
                let scores: Vec<f64> = (0..table.actions()).map(|a| backup(table, values, state, a, gamma)).collect();
                (0..scores.len()).fold(0, |best, a| if scores[a] >= scores[best] { a } else { best })
            },
        },
        Mistake {
            says: "gamma is left out",
            section: "policy-improvement",
            function: |table, values, state, _| first_best((0..table.actions()).map(|a| backup(table, values, state, a, 1.0))),
        },
        Mistake {
            says: "the smallest value is taken",
            section: "policy-improvement",
            function: |table, values, state, gamma| first_best((0..table.actions()).map(|a| -backup(table, values, state, a, gamma))),
        },
        Mistake {
            says: "the value of the next state counts also where an outcome terminates",
            section: "the-end-of-an-episode",
            function: |table, values, state, gamma| {
                let one = |o: &Outcome| o.probability * (o.reward + gamma * values[o.next as usize]);
                first_best((0..table.actions()).map(|a| table.outcomes(state, a).iter().map(one).sum()))
            },
        },
    ],
};

// 2.5

/// Most sweeps, for worlds in which a mistake does not converge.
const MOST: usize = 5_000;

/// Sweeps with `update` until `is_done` says so of the values before and after.
fn iterate(table: &Table, update: impl Fn(&[f64], usize) -> f64, is_done: impl Fn(&[f64], &[f64]) -> bool) -> Vec<f64> {
    let mut values = vec![0.0; table.states()];
    for _ in 0..MOST {
        let new: Vec<f64> = (0..table.states()).map(|state| update(&values, state)).collect();
        let done = is_done(&values, &new);
        values = new;
        if done {
            break;
        }
    }
    values
}

fn best_value(table: &Table, values: &[f64], state: usize, gamma: f64) -> f64 {
    (0..table.actions()).map(|a| backup(table, values, state, a, gamma)).fold(f64::NEG_INFINITY, f64::max)
}

fn largest_change(before: &[f64], after: &[f64]) -> f64 {
    before.iter().zip(after).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// The optimal values satisfy the Bellman equation, whatever way they were found.
fn solves_the_equation(table: &Table, values: &[f64], gamma: f64) -> Vec<f64> {
    (0..table.states()).map(|state| best_value(table, values, state, gamma)).collect()
}

fn optimal_values(Trial { function, right, seed }: Trial<ValueIteration>, sheet: &mut Sheet) {
    let mut stream = stream(seed, 25);
    for world in 1..=10 {
        let table = worlds::random(&mut stream);
        let gamma = f64::from(10 + stream.below(9)) / 20.0;
        let place = format!("value_iteration in random world {world}, gamma = {gamma}, theta = 1e-9");
        sheet.row(place, right(&table, gamma, 1e-9), || function(&table, gamma, 1e-9));
    }
    for (name, table) in worlds::known() {
        let found = right(&table, 1.0, 1e-10);
        debug_assert!(largest_change(&found, &solves_the_equation(&table, &found, 1.0)) < 1e-8);
        sheet.row(format!("value_iteration in {name}, gamma = 1, theta = 1e-10"), found, || function(&table, 1.0, 1e-10));
    }
}

static VALUE_ITERATION: Exercise<ValueIteration> = Exercise {
    about: About {
        number: "2.5",
        name: "value_iteration",
        title: "the optimal values",
        section: "value-iteration",
        hints: &[
            "Begin with values of 0. A sweep replaces the value of each state by the largest of its action values.",
            "Measure the largest change of a sweep: the absolute difference of new and old value, over all states. Stop below theta.",
            "loop { compute the new values; find the largest change; replace the old values; if the change is below theta, return }",
        ],
    },
    right: |table, gamma, theta| iterate(table, |v, s| best_value(table, v, s, gamma), |a, b| largest_change(a, b) < theta),
    checks: &[
        |Trial { function, .. }, sheet| {
            // state 1: 10 at once; state 0: 1 + 10 gamma, or 3 + gamma v / 2
            let table = worlds::two_states();
            for (gamma, expected) in [(0.5, [6.0, 10.0]), (0.9, [10.0, 10.0]), (0.0, [3.0, 10.0])] {
                let place = format!("value_iteration in the world of exercise 2.2, gamma = {gamma}, theta = 1e-9");
                sheet.row(place, &expected[..], || function(&table, gamma, 1e-9));
            }
            // minus the number of steps to the nearer corner
            let steps = [1, 2, 3, 1, 2, 3, 2, 2, 3, 2, 1, 3, 2, 1].map(|n: i32| f64::from(-n));
            let place = "value_iteration in the 4 x 4 grid of example 4.1, gamma = 1, theta = 1e-9";
            sheet.row(place, &steps[..], || function(&worlds::grid(), 1.0, 1e-9));
            // every sweep changes the value by at most 1, which is below theta; after very many it is 1000
            let place = "whether value_iteration (one state that is never left, reward 1, gamma = 0.999, theta = 10) has stopped after few sweeps: 1, or 0";
            sheet.row(place, 1_usize, || usize::from(function(&worlds::staying(), 0.999, 10.0)[0] < 100.0));
        },
        optimal_values,
    ],
    mistakes: &[
        Mistake {
            says: "the change has its sign: where all values fall, the first sweep is the last",
            section: "value-iteration",
            function: |table, gamma, theta| {
                let signed = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| b - a).fold(f64::NEG_INFINITY, f64::max);
                iterate(table, |v, s| best_value(table, v, s, gamma), |a, b| signed(a, b) < theta)
            },
        },
        Mistake {
            says: "the sweeps end as soon as one state changes little, not the one that changes most",
            section: "value-iteration",
            function: |table, gamma, theta| {
                let least = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(f64::INFINITY, f64::min);
                iterate(table, |v, s| best_value(table, v, s, gamma), |a, b| least(a, b) < theta)
            },
        },
        Mistake {
            says: "there is one sweep only",
            section: "value-iteration",
            function: |table, gamma, _| iterate(table, |v, s| best_value(table, v, s, gamma), |_, _| true),
        },
        Mistake {
            says: "the mean over the actions is taken instead of the largest: these are the values of random actions",
            section: "policy-evaluation",
            function: |table, gamma, theta| {
                let policy = uniform(table);
                iterate(table, |v, s| sweep(table, &policy, v, gamma)[s], |a, b| largest_change(a, b) < theta)
            },
        },
        Mistake {
            says: "the value of the next state counts also where an outcome terminates",
            section: "the-end-of-an-episode",
            function: |table, gamma, theta| {
                let value = |v: &[f64], s: usize, a: usize| -> f64 {
                    table.outcomes(s, a).iter().map(|o| o.probability * (o.reward + gamma * v[o.next as usize])).sum()
                };
                let best = |v: &[f64], s: usize| (0..table.actions()).map(|a| value(v, s, a)).fold(f64::NEG_INFINITY, f64::max);
                iterate(table, best, |a, b| largest_change(a, b) < theta)
            },
        },
        Mistake {
            says: "the largest starts at 0, so that no value can be below 0",
            section: "value-iteration",
            function: |table, gamma, theta| {
                iterate(table, |v, s| best_value(table, v, s, gamma).max(0.0), |a, b| largest_change(a, b) < theta)
            },
        },
    ],
};
