//! Lesson 7: the exact gradient.

use gradus_base::random::Stream;
use gradus_envs::tabular::Table;

use crate::exercise::{About, Exercise, Mistake, Trial};
use crate::inputs::{numbers, stream};
use crate::lesson_2::{backup, outcomes};
use crate::lesson_6::softmax;
use crate::lessons::lesson;
use crate::sheet::{Sheet, list, rows};
use crate::worlds;

/// Returns the expected visits of each state, from the table, the policy and gamma.
pub type Visits = fn(&Table, &[Vec<f64>], f64) -> Vec<f64>;
/// Returns the advantage of each action in each state, from the table, the values of the states and gamma.
pub type Advantages = fn(&Table, &[f64], f64) -> Vec<Vec<f64>>;
/// Returns the derivative of the expected return for each logit, from the visits, the policy and the advantages.
pub type ExactGradient = fn(&[f64], &[Vec<f64>], &[Vec<f64>]) -> Vec<Vec<f64>>;
/// Returns the squared length of the bias, and the variance, from estimates and the exact gradient.
pub type BiasAndVariance = fn(&[Vec<f64>], &[f64]) -> (f64, f64);

lesson!("7", "the exact gradient", {
    visits: Visits = VISITS,
    advantages: Advantages = ADVANTAGES,
    exact_gradient: ExactGradient = EXACT_GRADIENT,
    bias_and_variance: BiasAndVariance = BIAS_AND_VARIANCE,
});

/// Draws a policy.
fn any_policy(stream: &mut Stream, table: &Table) -> Vec<Vec<f64>> {
    (0..table.states()).map(|_| softmax(&(0..table.actions()).map(|_| f64::from(stream.normal())).collect::<Vec<_>>())).collect()
}

/// The values of a policy, after 1000 sweeps.
fn values_of(table: &Table, policy: &[Vec<f64>], gamma: f64) -> Vec<f64> {
    let mut values = vec![0.0; table.states()];
    for _ in 0..1000 {
        let of_state = |s: usize| (0..table.actions()).map(|a| policy[s][a] * backup(table, &values, s, a, gamma)).sum();
        values = (0..table.states()).map(of_state).collect();
    }
    values
}

/// The world of two states in words.
fn world(table: &Table) -> String {
    let pairs = (0..table.states()).flat_map(|s| (0..table.actions()).map(move |a| (s, a)));
    pairs.map(|(s, a)| format!("state {s}, action {a}: {}", outcomes(table, s, a))).collect::<Vec<_>>().join("; ")
}

// 7.1

/// The visits: what flows, from the start on, with `keeps` of what leads on, until nearly nothing is left.
fn flowing(table: &Table, policy: &[Vec<f64>], gamma: f64, ends: bool) -> Vec<f64> {
    let mut flow = table.starts().to_vec();
    let mut sum = flow.clone();
    for _ in 0..1000 {
        let mut next = vec![0.0; flow.len()];
        for (s, row) in policy.iter().enumerate() {
            for (a, p) in row.iter().enumerate() {
                for outcome in table.outcomes(s, a).iter().filter(|outcome| !(ends && outcome.terminated)) {
                    next[outcome.next as usize] += gamma * flow[s] * p * outcome.probability;
                }
            }
        }
        sum.iter_mut().zip(&next).for_each(|(sum, more)| *sum += more);
        flow = next;
    }
    sum
}

fn row_of_visits(sheet: &mut Sheet, function: Visits, (what, table): (&str, &Table), policy: &[Vec<f64>], gamma: f64, expected: Vec<f64>) {
    let place = format!("visits(table of {what}, policy = {}, gamma = {gamma}), starts = {}", rows(policy), list(table.starts()));
    sheet.row(place, expected, || function(table, policy, gamma));
}

static VISITS: Exercise<Visits> = Exercise {
    about: About {
        number: "7.1",
        name: "visits",
        title: "where the policy goes",
        section: "visits",
        hints: &[
            "Begin with the distribution of the first state, table.starts(). Let it flow one step further, again and again, and add up what is in each state.",
            "In a step, the share flow[s] * policy[s][a] * probability * gamma goes to the next state of each outcome that does not terminate.",
            "Stop when the sum of what flows is below 1e-9.",
        ],
    },
    right: |table, policy, gamma| flowing(table, policy, gamma, true),
    checks: &[
        |Trial { function, .. }, sheet| {
            let table = worlds::two_states();
            let what = format!("two states: {}", world(&table));
            // from state 0 to state 1, and from there to the end
            let on = [vec![1.0, 0.0], vec![1.0, 0.0]];
            row_of_visits(sheet, function, (&what, &table), &on, 0.5, vec![0.5, 0.75]);
            row_of_visits(sheet, function, (&what, &table), &on, 1.0, vec![0.5, 1.0]);
            // half of the time state 0 is left for good: 1/2 + 1/4 + 1/8 ... visits
            let risky = [vec![0.0, 1.0], vec![1.0, 0.0]];
            row_of_visits(sheet, function, (&what, &table), &risky, 1.0, vec![1.0, 0.5]);
            row_of_visits(sheet, function, (&what, &table), &risky, 0.0, vec![0.5, 0.5]);
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 71);
            let grid = worlds::grid();
            let uniform = vec![vec![0.25; 4]; grid.states()];
            row_of_visits(sheet, function, ("the 4 x 4 grid", &grid), &uniform, 1.0, right(&grid, &uniform, 1.0));
            for _ in 0..10 {
                let table = worlds::random(&mut stream);
                let policy = any_policy(&mut stream, &table);
                let gamma = f64::from(1 + stream.below(19)) / 20.0;
                row_of_visits(sheet, function, ("a random world", &table), &policy, gamma, right(&table, &policy, gamma));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "every state begins with the same flow, instead of its share of the starts",
            section: "visits",
            function: |table, policy, gamma| {
                let n = table.states();
                let outcomes =
                    (0..n * table.actions()).map(|i| table.outcomes(i / table.actions(), i % table.actions()).to_vec()).collect();
                let even = Table::new(table.actions(), outcomes, vec![1.0 / n as f64; n]).expect("the same table from other starts");
                flowing(&even, policy, gamma, true)
            },
        },
        Mistake {
            says: "outcomes that end the episode lead on: who has left is counted in the state that the table names",
            section: "visits",
            function: |table, policy, gamma| flowing(table, policy, gamma, false),
        },
        Mistake {
            says: "gamma is left out: visits count alike, however late they are",
            section: "visits",
            function: |table, policy, _| flowing(table, policy, 1.0, true),
        },
        Mistake {
            says: "the visits are divided by their sum: a distribution, and not numbers of visits",
            section: "visits",
            function: |table, policy, gamma| {
                let all = flowing(table, policy, gamma, true);
                let sum: f64 = all.iter().sum();
                all.iter().map(|d| d / sum).collect()
            },
        },
        Mistake {
            says: "the first state of an episode is not counted",
            section: "visits",
            function: |table, policy, gamma| {
                flowing(table, policy, gamma, true).iter().zip(table.starts()).map(|(d, start)| d - start).collect()
            },
        },
        Mistake {
            says: "the visits flow backwards: a state gets what is in the states that it leads to, as for values",
            section: "visits",
            function: |table, policy, gamma| {
                let mut all = table.starts().to_vec();
                for _ in 0..1000 {
                    let ahead = |s: usize, a: usize| -> f64 {
                        let outcomes = table.outcomes(s, a).iter().filter(|outcome| !outcome.terminated);
                        outcomes.map(|outcome| outcome.probability * all[outcome.next as usize]).sum()
                    };
                    let of = |s: usize| table.starts()[s] + gamma * policy[s].iter().enumerate().map(|(a, p)| p * ahead(s, a)).sum::<f64>();
                    all = (0..all.len()).map(of).collect();
                }
                all
            },
        },
    ],
};

// 7.2

fn actions_of(table: &Table, of: impl Fn(usize, usize) -> f64) -> Vec<Vec<f64>> {
    (0..table.states()).map(|s| (0..table.actions()).map(|a| of(s, a)).collect()).collect()
}

fn row_of_advantages(
    sheet: &mut Sheet,
    function: Advantages,
    (what, table): (&str, &Table),
    values: &[f64],
    gamma: f64,
    expected: Vec<Vec<f64>>,
) {
    let place = format!("advantages(table of {what}, values = {}, gamma = {gamma})", list(values));
    sheet.row(place, expected, || function(table, values, gamma));
}

static ADVANTAGES: Exercise<Advantages> = Exercise {
    about: About {
        number: "7.2",
        name: "advantages",
        title: "what is better than usual",
        section: "advantages",
        hints: &[
            "The value of an action is exercise 2.2: the mean of reward plus gamma times the value of the next state.",
            "The advantage is the value of the action minus the value of the state, values[s].",
        ],
    },
    right: |table, values, gamma| actions_of(table, |s, a| backup(table, values, s, a, gamma) - values[s]),
    checks: &[
        |Trial { function, .. }, sheet| {
            let table = worlds::two_states();
            let what = format!("two states: {}", world(&table));
            // the actions are worth 1 + 1/2 10 = 6, 1/2 (2 + 1/2 4) + 1/2 4 = 4, 10, and -1 + 1/2 10 = 4
            row_of_advantages(sheet, function, (&what, &table), &[4.0, 10.0], 0.5, vec![vec![2.0, 0.0], vec![0.0, -6.0]]);
            row_of_advantages(sheet, function, (&what, &table), &[6.0, 10.0], 0.0, vec![vec![-5.0, -3.0], vec![0.0, -11.0]]);
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 72);
            for _ in 0..10 {
                let table = worlds::random(&mut stream);
                let policy = any_policy(&mut stream, &table);
                let gamma = f64::from(1 + stream.below(19)) / 20.0;
                let values = values_of(&table, &policy, gamma);
                row_of_advantages(sheet, function, ("a random world", &table), &values, gamma, right(&table, &values, gamma));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "the value of the state is not subtracted",
            section: "advantages",
            function: |table, values, gamma| actions_of(table, |s, a| backup(table, values, s, a, gamma)),
        },
        Mistake {
            says: "the best action's value is subtracted instead of the state's: no advantage is positive then",
            section: "advantages",
            function: |table, values, gamma| {
                let best = |s: usize| (0..table.actions()).map(|a| backup(table, values, s, a, gamma)).fold(f64::NEG_INFINITY, f64::max);
                actions_of(table, |s, a| backup(table, values, s, a, gamma) - best(s))
            },
        },
        Mistake {
            says: "the sign is wrong: what is better than usual is negative",
            section: "advantages",
            function: |table, values, gamma| actions_of(table, |s, a| values[s] - backup(table, values, s, a, gamma)),
        },
        Mistake {
            says: "the value of the next state counts after the end of the episode",
            section: "advantages",
            function: |table, values, gamma| {
                let value = |s: usize, a: usize| -> f64 {
                    table.outcomes(s, a).iter().map(|o| o.probability * (o.reward + gamma * values[o.next as usize])).sum()
                };
                actions_of(table, |s, a| value(s, a) - values[s])
            },
        },
        Mistake {
            says: "gamma is left out",
            section: "advantages",
            function: |table, values, _| actions_of(table, |s, a| backup(table, values, s, a, 1.0) - values[s]),
        },
    ],
};

// 7.3

fn product(visits: &[f64], policy: &[Vec<f64>], advantages: &[Vec<f64>], of: impl Fn(f64, f64, f64) -> f64) -> Vec<Vec<f64>> {
    let row = |s: usize| policy[s].iter().zip(&advantages[s]).map(|(p, a)| of(visits[s], *p, *a)).collect();
    (0..policy.len()).map(row).collect()
}

fn row_of_gradient(
    sheet: &mut Sheet,
    function: ExactGradient,
    visits: &[f64],
    policy: &[Vec<f64>],
    advantages: &[Vec<f64>],
    expected: Vec<Vec<f64>>,
) {
    let place = format!("exact_gradient(visits = {}, policy = {}, advantages = {})", list(visits), rows(policy), rows(advantages));
    sheet.row(place, expected, || function(visits, policy, advantages));
}

/// The derivatives of the expected return for each logit, by differences. The logits are the logarithms of the probabilities.
fn by_differences(table: &Table, policy: &[Vec<f64>], gamma: f64) -> Vec<Vec<f64>> {
    const SMALL: f64 = 1e-5;
    let moved = |s: usize, a: usize, by: f64| {
        let mut policy = policy.to_vec();
        let logits: Vec<f64> = policy[s].iter().enumerate().map(|(b, p)| p.ln() + if a == b { by } else { 0.0 }).collect();
        policy[s] = softmax(&logits);
        values_of(table, &policy, gamma).iter().zip(table.starts()).map(|(v, start)| v * start).sum::<f64>()
    };
    actions_of(table, |s, a| (moved(s, a, SMALL) - moved(s, a, -SMALL)) / (2.0 * SMALL))
}

static EXACT_GRADIENT: Exercise<ExactGradient> = Exercise {
    about: About {
        number: "7.3",
        name: "exact_gradient",
        title: "three things, multiplied",
        section: "three-things-multiplied",
        hints: &[
            "For each state and action: visits of the state, times the probability of the action, times its advantage.",
            "The result has the shape of the policy: gradient[s][a].",
        ],
    },
    right: |visits, policy, advantages| product(visits, policy, advantages, |d, p, a| d * p * a),
    checks: &[
        |Trial { function, .. }, sheet| {
            let (policy, advantages) = ([vec![0.5, 0.5], vec![0.25, 0.75]], [vec![2.0, -2.0], vec![-6.0, 2.0]]);
            row_of_gradient(sheet, function, &[0.5, 2.0], &policy, &advantages, vec![vec![0.5, -0.5], vec![-3.0, 3.0]]);
            row_of_gradient(sheet, function, &[0.0, 1.0], &policy, &advantages, vec![vec![0.0, 0.0], vec![-1.5, 1.5]]);
        },
        |Trial { function, seed, .. }, sheet| {
            let mut stream = stream(seed, 73);
            for _ in 0..5 {
                let table = worlds::random(&mut stream);
                let policy = any_policy(&mut stream, &table);
                let gamma = f64::from(1 + stream.below(18)) / 20.0;
                let visits = flowing(&table, &policy, gamma, true);
                let values = values_of(&table, &policy, gamma);
                let advantages = actions_of(&table, |s, a| backup(&table, &values, s, a, gamma) - values[s]);
                let place = format!(
                    "exact_gradient(visits = {}, policy = {}, advantages = {}), beside differences of the expected return",
                    list(&visits),
                    rows(&policy),
                    rows(&advantages)
                );
                sheet.row(place, by_differences(&table, &policy, gamma), || function(&visits, &policy, &advantages));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "the visits are left out: every state counts alike",
            section: "three-things-multiplied",
            function: |visits, policy, advantages| product(visits, policy, advantages, |_, p, a| p * a),
        },
        Mistake {
            says: "the probabilities are left out",
            section: "three-things-multiplied",
            function: |visits, policy, advantages| product(visits, policy, advantages, |d, _, a| d * a),
        },
        Mistake {
            says: "the advantages are left out: every action would become likelier",
            section: "three-things-multiplied",
            function: |visits, policy, advantages| product(visits, policy, advantages, |d, p, _| d * p),
        },
        Mistake {
            says: "the visits are divided by their sum",
            section: "visits",
            function: |visits, policy, advantages| {
                let sum: f64 = visits.iter().sum();
                product(visits, policy, advantages, |d, p, a| d / sum * p * a)
            },
        },
        Mistake {
            says: "the sign is that of a loss",
            section: "three-things-multiplied",
            function: |visits, policy, advantages| product(visits, policy, advantages, |d, p, a| -d * p * a),
        },
    ],
};

// 7.4

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum()
}

/// The mean of the estimates, the sum of their squared distances from it, and their number.
fn spread(estimates: &[Vec<f64>]) -> (Vec<f64>, f64, f64) {
    let n = estimates.len() as f64;
    let mean: Vec<f64> = (0..estimates[0].len()).map(|i| estimates.iter().map(|estimate| estimate[i]).sum::<f64>() / n).collect();
    let squares = estimates.iter().map(|estimate| distance(estimate, &mean)).sum();
    (mean, squares, n)
}

fn row_of_spread(sheet: &mut Sheet, function: BiasAndVariance, estimates: &[Vec<f64>], exact: &[f64], (bias, variance): (f64, f64)) {
    let place = format!("bias_and_variance(estimates = {}, exact = {})", rows(estimates), list(exact));
    sheet.row(place, vec![bias, variance], || {
        let (bias, variance) = function(estimates, exact);
        vec![bias, variance]
    });
}

static BIAS_AND_VARIANCE: Exercise<BiasAndVariance> = Exercise {
    about: About {
        number: "7.4",
        name: "bias_and_variance",
        title: "two kinds of error",
        section: "bias-and-variance",
        hints: &[
            "First the mean of the estimates, entry by entry. The first number is the squared distance of this mean from the exact gradient.",
            "The second number is the sum of the squared distances of the estimates from their mean, divided by n - 1.",
            "The squared distance of two lists is the sum of the squared differences of their entries.",
        ],
    },
    right: |estimates, exact| {
        let (mean, squares, n) = spread(estimates);
        (distance(&mean, exact), squares / (n - 1.0))
    },
    checks: &[
        |Trial { function, .. }, sheet| {
            // the mean is (2, 0), 1 away from (1, 0); the estimates are 1 away from it
            row_of_spread(sheet, function, &[vec![1.0, 0.0], vec![3.0, 0.0]], &[1.0, 0.0], (1.0, 2.0));
            row_of_spread(sheet, function, &[vec![0.0, 0.0], vec![2.0, 2.0], vec![4.0, 4.0]], &[2.0, 2.0], (0.0, 8.0));
            row_of_spread(sheet, function, &[vec![3.0, 4.0], vec![3.0, 4.0]], &[0.0, 0.0], (25.0, 0.0));
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 74);
            for _ in 0..30 {
                let (n, k) = (2 + stream.below(4) as usize, 2 + stream.below(2) as usize);
                let estimates: Vec<Vec<f64>> = (0..n).map(|_| numbers(&mut stream, k)).collect();
                let exact = numbers(&mut stream, k);
                let expected = right(&estimates, &exact);
                row_of_spread(sheet, function, &estimates, &exact, expected);
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "the variance is divided by n and not by n - 1",
            section: "bias-and-variance",
            function: |estimates, exact| {
                let (mean, squares, n) = spread(estimates);
                (distance(&mean, exact), squares / n)
            },
        },
        Mistake {
            says: "the variance is around the exact gradient instead of the mean: the bias is in it",
            section: "bias-and-variance",
            function: |estimates, exact| {
                let (mean, _, n) = spread(estimates);
                (distance(&mean, exact), estimates.iter().map(|estimate| distance(estimate, exact)).sum::<f64>() / (n - 1.0))
            },
        },
        Mistake {
            says: "the first number is the mean squared error of single estimates, with their noise, and not that of their mean",
            section: "bias-and-variance",
            function: |estimates, exact| {
                let (_, squares, n) = spread(estimates);
                (estimates.iter().map(|estimate| distance(estimate, exact)).sum::<f64>() / n, squares / (n - 1.0))
            },
        },
        Mistake {
            says: "the bias is its length and not the square of it",
            section: "bias-and-variance",
            function: |estimates, exact| {
                let (mean, squares, n) = spread(estimates);
                (distance(&mean, exact).sqrt(), squares / (n - 1.0))
            },
        },
        Mistake {
            says: "the variance is that of the mean: it is divided by n once more",
            section: "bias-and-variance",
            function: |estimates, exact| {
                let (mean, squares, n) = spread(estimates);
                (distance(&mean, exact), squares / (n - 1.0) / n)
            },
        },
        Mistake {
            says: "the second number is the root of the variance",
            section: "bias-and-variance",
            function: |estimates, exact| {
                let (mean, squares, n) = spread(estimates);
                (distance(&mean, exact), (squares / (n - 1.0)).sqrt())
            },
        },
    ],
};
