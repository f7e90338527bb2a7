//! Lesson 3: Monte Carlo and temporal differences.

use gradus_base::random::{Purpose, Stream};

use crate::exercise::{About, Exercise, Mistake, Trial};
use crate::inputs::{number, numbers, share, stream, whole};
use crate::lessons::lesson;
use crate::sheet::{Sheet, list};
use crate::step::End;

/// Returns the return after each step from the rewards and gamma.
pub type Returns = fn(&[f64], f64) -> Vec<f64>;
/// Changes values and counts after an episode: values, counts, states, rewards, gamma.
pub type FirstVisit = fn(&mut [f64], &mut [u32], &[usize], &[f64], f64);
/// Returns the TD error from the value of a state, the reward, the value of the next state, gamma, and how the episode goes on.
pub type TdError = fn(f64, f64, f64, f64, End) -> f64;
/// Returns the n-step return from the rewards, the value of the state after them, and gamma.
pub type NStepReturn = fn(&[f64], f64, f64) -> f64;
/// Returns the lambda-return after each step from the rewards, the values of the states after them, gamma and lambda.
pub type LambdaReturns = fn(&[f64], &[f64], f64, f64) -> Vec<f64>;
/// Returns the weighted estimate from returns and importance ratios.
pub type WeightedImportance = fn(&[f64], &[f64]) -> f64;

lesson!("3", "Monte Carlo and temporal differences", {
    returns: Returns = RETURNS,
    first_visit: FirstVisit = FIRST_VISIT,
    td_error: TdError = TD_ERROR,
    n_step_return: NStepReturn = N_STEP_RETURN,
    lambda_returns: LambdaReturns = LAMBDA_RETURNS,
    weighted_importance: WeightedImportance = WEIGHTED_IMPORTANCE,
});

// 3.1

fn all_returns(rewards: &[f64], gamma: f64) -> Vec<f64> {
    let mut all: Vec<f64> = rewards
        .iter()
        .rev()
        .scan(0.0, |sum, reward| {
            *sum = reward + gamma * *sum;
            Some(*sum)
        })
        .collect();
    all.reverse();
    all
}

static RETURNS: Exercise<Returns> = Exercise {
    about: About {
        number: "3.1",
        name: "returns",
        title: "what followed each step",
        section: "learning-from-episodes",
        hints: &[
            "The return of a step is its reward, plus gamma times the return of the next step. Nothing follows the last one.",
            "Go through the rewards from the back, and keep the return of the step that was handled before.",
            "Pushing from the back gives the list in the wrong order: all.reverse() at the end.",
        ],
    },
    right: all_returns,
    checks: &[
        |Trial { function, .. }, sheet| {
            for (rewards, gamma, expected) in [
                (&[1.0, 2.0, 4.0][..], 0.5, &[3.0, 4.0, 4.0][..]),
                (&[0.0, 0.0, 8.0], 0.5, &[2.0, 4.0, 8.0]),
                (&[1.0, 1.0, 1.0], 1.0, &[3.0, 2.0, 1.0]),
                (&[5.0, 7.0], 0.0, &[5.0, 7.0]),
                (&[], 0.5, &[]),
            ] {
                sheet.row(format!("returns(rewards = {}, gamma = {gamma})", list(rewards)), expected, || function(rewards, gamma));
            }
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 31);
            for _ in 0..50 {
                let n = 1 + stream.below(12) as usize;
                let (rewards, gamma) = (numbers(&mut stream, n), share(&mut stream));
                let place = format!("returns(rewards = {}, gamma = {gamma})", list(&rewards));
                sheet.row(place, right(&rewards, gamma), || function(&rewards, gamma));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "the sum runs forward: each number is what came before the step, not what follows it",
            section: "learning-from-episodes",
            function: |rewards, gamma| {
                let forward = rewards.iter().scan(0.0, |sum, reward| {
                    *sum = reward + gamma * *sum;
                    Some(*sum)
                });
                forward.collect()
            },
        },
        Mistake {
            says: "the reward of the step itself is left out, and its return begins one step late",
            section: "learning-from-episodes",
            function: |rewards, gamma| {
                let all = all_returns(rewards, gamma);
                (0..all.len()).map(|t| all.get(t + 1).copied().unwrap_or(0.0)).collect()
            },
        },
        Mistake {
            says: "the rewards are discounted from the beginning of the episode instead of from the step",
            section: "learning-from-episodes",
            function: |rewards, gamma| {
                let all = all_returns(rewards, gamma);
                (0_i32..).zip(all).map(|(t, g)| gamma.powi(t) * g).collect()
            },
        },
        Mistake {
            says: "the list is in the wrong order: the last step comes first",
            section: "learning-from-episodes",
            function: |rewards, gamma| all_returns(rewards, gamma).into_iter().rev().collect(),
        },
        Mistake {
            says: "each step gets the return of the whole episode",
            section: "learning-from-episodes",
            function: |rewards, gamma| vec![all_returns(rewards, gamma).first().copied().unwrap_or(0.0); rewards.len()],
        },
    ],
};

// 3.2

/// Updates the values of the steps for which `counts_step` is true.
fn averaged(values: &mut [f64], counts: &mut [u32], states: &[usize], targets: &[f64], counts_step: impl Fn(usize) -> bool) {
    for t in (0..states.len()).filter(|t| counts_step(*t)) {
        let state = states[t];
        counts[state] += 1;
        values[state] += (targets[t] - values[state]) / f64::from(counts[state]);
    }
}

fn after_episode(function: FirstVisit, values: &[f64], counts: &[u32], states: &[usize], rewards: &[f64], gamma: f64) -> Vec<f64> {
    let (mut values, mut counts) = (values.to_vec(), counts.to_vec());
    function(&mut values, &mut counts, states, rewards, gamma);
    values.into_iter().chain(counts.into_iter().map(f64::from)).collect()
}

fn row_of_episode(
    sheet: &mut Sheet,
    function: FirstVisit,
    (values, counts): (&[f64], &[u32]),
    (states, rewards, gamma): (&[usize], &[f64], f64),
    expected: Vec<f64>,
) {
    let numbers = whole(counts);
    let place = format!(
        "values and then counts after first_visit(values = {}, counts = {numbers}, states = {}, rewards = {}, gamma = {gamma})",
        list(values),
        whole(states),
        list(rewards)
    );
    sheet.row(place, expected, || after_episode(function, values, counts, states, rewards, gamma));
}

static FIRST_VISIT: Exercise<FirstVisit> = Exercise {
    about: About {
        number: "3.2",
        name: "first_visit",
        title: "first-visit Monte Carlo",
        section: "first-visit-and-every-visit",
        hints: &[
            "Compute the return of each step (exercise 3.1). Only the first visit to each state in the episode counts.",
            "For a first visit: add 1 to the state's count, and move its value by (return - value) / count.",
            "Step t is a first visit if states[..t] does not contain states[t].",
        ],
    },
    right: |values, counts, states, rewards, gamma| {
        averaged(values, counts, states, &all_returns(rewards, gamma), |t| !states[..t].contains(&states[t]));
    },
    checks: &[
        |Trial { function, .. }, sheet| {
            let zero: (&[f64], &[u32]) = (&[0.0, 0.0], &[0, 0]);
            // returns 1 + 2 + 4, 2 + 4, 4: state 0 is visited twice
            row_of_episode(sheet, function, zero, (&[0, 1, 0], &[1.0, 2.0, 4.0], 1.0), vec![7.0, 6.0, 1.0, 1.0]);
            row_of_episode(sheet, function, zero, (&[1, 1], &[2.0, 8.0], 0.5), vec![0.0, 6.0, 0.0, 1.0]);
            // the mean of 4, 4, 4 and a new 8; a count of 1 and a return of 8
            let before: (&[f64], &[u32]) = (&[4.0, 2.0], &[3, 1]);
            row_of_episode(sheet, function, before, (&[0], &[8.0], 0.9), vec![5.0, 2.0, 4.0, 1.0]);
            row_of_episode(sheet, function, before, (&[1, 0], &[0.0, 8.0], 1.0), vec![5.0, 5.0, 4.0, 2.0]);
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 32);
            let (mut values, mut counts) = (vec![0.0; 4], vec![0; 4]);
            for _ in 0..30 {
                let n = 1 + stream.below(8) as usize;
                let states: Vec<usize> = (0..n).map(|_| stream.below(4) as usize).collect();
                let (rewards, gamma) = (numbers(&mut stream, n), share(&mut stream));
                let expected = after_episode(right, &values, &counts, &states, &rewards, gamma);
                row_of_episode(sheet, function, (&values, &counts), (&states, &rewards, gamma), expected);
                right(&mut values, &mut counts, &states, &rewards, gamma);
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "every visit counts, not only the first one in the episode",
            section: "first-visit-and-every-visit",
            function: |values, counts, states, rewards, gamma| {
                averaged(values, counts, states, &all_returns(rewards, gamma), |_| true);
            },
        },
        Mistake {
            says: "the last visit in the episode counts instead of the first: the loop runs from the back and looks at the later steps",
            section: "first-visit-and-every-visit",
            function: |values, counts, states, rewards, gamma| {
                averaged(values, counts, states, &all_returns(rewards, gamma), |t| !states[t + 1..].contains(&states[t]));
            },
        },
        Mistake {
            says: "the reward of the step is used instead of its return",
            section: "learning-from-episodes",
            function: |values, counts, states, rewards, _| averaged(values, counts, states, rewards, |t| !states[..t].contains(&states[t])),
        },
        Mistake {
            says: "the count is raised after the value was moved: the new return has the weight 1 / (n - 1), and the first one is divided by 0",
            section: "first-visit-and-every-visit",
            function: |values, counts, states, rewards, gamma| {
                let targets = all_returns(rewards, gamma);
                for t in (0..states.len()).filter(|t| !states[..*t].contains(&states[*t])) {
                    let state = states[t];
                    values[state] += (targets[t] - values[state]) / f64::from(counts[state]);
                    counts[state] += 1;
                }
            },
        },
        Mistake {
            says: "the value is replaced by the return of this episode, and the earlier ones are forgotten",
            section: "first-visit-and-every-visit",
            function: |values, counts, states, rewards, gamma| {
                let targets = all_returns(rewards, gamma);
                for t in (0..states.len()).filter(|t| !states[..*t].contains(&states[*t])) {
                    values[states[t]] = targets[t];
                    counts[states[t]] += 1;
                }
            },
        },
    ],
};

// 3.3

fn error_of(value: f64, reward: f64, next: f64, gamma: f64, end: End) -> f64 {
    reward + if end == End::Terminated { 0.0 } else { gamma * next } - value
}

/// TD(0) predicts a random walk of five states with reward 1 at the right end, with a limit of 10 steps an episode. Returns the root mean square
/// of the error of the values after 300 episodes.
fn walk_error(function: TdError, seed: u64) -> f64 {
    let mut stream = Stream::new(seed, Purpose::Episode, 33);
    let mut values = [0.5; 5];
    for _ in 0..300 {
        let mut state = stream.below(5) as usize;
        for t in 1..=10 {
            let next = state as i32 + if stream.below(2) == 0 { -1 } else { 1 };
            let inside = (0..5).contains(&next);
            let end = match (inside, t) {
                (false, _) => End::Terminated,
                (true, 10) => End::Truncated,
                _ => End::Running,
            };
            // behind the ends are states whose values mean nothing
            let following = if inside { values[next as usize] } else { 0.5 };
            values[state] += 0.05 * function(values[state], f64::from(u8::from(next == 5)), following, 1.0, end);
            if end != End::Running {
                break;
            }
            state = next as usize;
        }
    }
    let squares = values.iter().zip(1..).map(|(value, i)| (value - f64::from(i) / 6.0).powi(2));
    (squares.sum::<f64>() / 5.0).sqrt()
}

static TD_ERROR: Exercise<TdError> = Exercise {
    about: About {
        number: "3.3",
        name: "td_error",
        title: "the surprise of one step",
        section: "temporal-differences",
        hints: &[
            "The target is the reward plus gamma times the value of the next state. The error is the target minus the value of the state.",
            "After End::Terminated nothing follows: the target is the reward alone.",
            "After End::Truncated the world would go on; only the observer left. The value of the next state counts as always.",
        ],
    },
    right: error_of,
    checks: &[
        |Trial { function, .. }, sheet| {
            for (value, reward, next, gamma, end, expected) in [
                (2.0, 1.0, 6.0, 0.5, End::Running, 2.0),
                (2.0, 1.0, 6.0, 0.5, End::Terminated, -1.0),
                (2.0, 1.0, 6.0, 0.5, End::Truncated, 2.0),
                (0.0, -3.0, 10.0, 0.9, End::Running, 6.0),
                (5.0, 5.0, 7.0, 1.0, End::Terminated, 0.0),
            ] {
                let place = format!("td_error(value = {value}, reward = {reward}, next_value = {next}, gamma = {gamma}, End::{end:?})");
                sheet.row(place, expected, || function(value, reward, next, gamma, end));
            }
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 33);
            for _ in 0..60 {
                let [value, reward, next] = [(); 3].map(|()| number(&mut stream));
                let gamma = share(&mut stream);
                let end = [End::Running, End::Terminated, End::Truncated][stream.below(3) as usize];
                let place = format!("td_error(value = {value}, reward = {reward}, next_value = {next}, gamma = {gamma}, End::{end:?})");
                sheet.row(place, right(value, reward, next, gamma, end), || function(value, reward, next, gamma, end));
            }
        },
        |Trial { function, seed, .. }, sheet| {
            let close = (0..20).filter(|i| walk_error(function, seed.wrapping_add(*i)) < 0.12).count();
            let place = "TD(0) with this function, on a random walk of 5 states with a limit of 10 steps, 20 seeds";
            let expected = "values within 0.12 of the true ones for at least 19 seeds";
            sheet.claim(place, expected, close >= 19, format!("for {close} of 20 seeds"));
        },
    ],
    mistakes: &[
        Mistake {
            says: "the value of the next state is left out where the episode goes on",
            section: "temporal-differences",
            function: |value, reward, next, gamma, end| reward + if end == End::Truncated { gamma * next } else { 0.0 } - value,
        },
        Mistake {
            says: "the value of the state is not subtracted where the episode ended",
            section: "temporal-differences",
            function: |value, reward, next, gamma, end| if end == End::Terminated { reward } else { reward + gamma * next - value },
        },
        Mistake {
            says: "the value of the next state counts also after the episode has terminated",
            section: "termination-and-truncation",
            function: |value, reward, next, gamma, _| reward + gamma * next - value,
        },
        Mistake {
            says: "truncation is treated as termination: a limit of time from outside looks like the end of the world",
            section: "termination-and-truncation",
            function: |value, reward, next, gamma, end| reward + if end == End::Running { gamma * next } else { 0.0 } - value,
        },
        Mistake {
            says: "the sign is wrong: the value minus the target",
            section: "temporal-differences",
            function: |value, reward, next, gamma, end| -error_of(value, reward, next, gamma, end),
        },
        Mistake {
            says: "gamma is left out",
            section: "temporal-differences",
            function: |value, reward, next, _, end| error_of(value, reward, next, 1.0, end),
        },
        Mistake {
            says: "the value of the state is not subtracted: this is the target, not the error",
            section: "temporal-differences",
            function: |_, reward, next, gamma, end| error_of(0.0, reward, next, gamma, end),
        },
        Mistake {
            says: "gamma multiplies the value of the state, too",
            section: "temporal-differences",
            function: |value, reward, next, gamma, end| error_of(gamma * value, reward, next, gamma, end),
        },
    ],
};

// 3.4

fn n_step(rewards: &[f64], next: f64, gamma: f64) -> f64 {
    rewards.iter().rev().fold(next, |sum, reward| reward + gamma * sum)
}

fn plain_return(rewards: &[f64], gamma: f64) -> f64 {
    n_step(rewards, 0.0, gamma)
}

static N_STEP_RETURN: Exercise<NStepReturn> = Exercise {
    about: About {
        number: "3.4",
        name: "n_step_return",
        title: "n rewards, then an estimate",
        section: "n-steps",
        hints: &[
            "The discounted return of the n rewards, plus gamma to the n times the value of the state after them.",
            "From the back it is one line: begin with the value, then G = reward + gamma G for each reward.",
        ],
    },
    right: n_step,
    checks: &[
        |Trial { function, .. }, sheet| {
            for (rewards, next, gamma, expected) in [
                (&[1.0, 2.0, 4.0][..], 8.0, 0.5, 4.0),
                (&[3.0], 10.0, 0.9, 12.0),
                (&[1.0, 1.0], 5.0, 1.0, 7.0),
                (&[1.0, 1.0], 0.0, 0.5, 1.5),
                (&[2.0, 9.0], 100.0, 0.0, 2.0),
            ] {
                let place = format!("n_step_return(rewards = {}, next_value = {next}, gamma = {gamma})", list(rewards));
                sheet.row(place, expected, || function(rewards, next, gamma));
            }
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 34);
            for _ in 0..50 {
                let n = 1 + stream.below(8) as usize;
                let (rewards, next, gamma) = (numbers(&mut stream, n), number(&mut stream), share(&mut stream));
                let place = format!("n_step_return(rewards = {}, next_value = {next}, gamma = {gamma})", list(&rewards));
                sheet.row(place, right(&rewards, next, gamma), || function(&rewards, next, gamma));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "the loop runs from the front: the last reward counts in full, and the first one is discounted most",
            section: "n-steps",
            function: |rewards, next, gamma| rewards.iter().fold(next, |following, reward| reward + gamma * following),
        },
        Mistake {
            says: "the value is discounted one step too little: gamma to the n - 1",
            section: "n-steps",
            function: |rewards, next, gamma| plain_return(rewards, gamma) + gamma.powi(rewards.len() as i32 - 1) * next,
        },
        Mistake {
            says: "the value is discounted one step too much: gamma to the n + 1",
            section: "n-steps",
            function: |rewards, next, gamma| plain_return(rewards, gamma) + gamma.powi(rewards.len() as i32 + 1) * next,
        },
        Mistake {
            says: "the value is left out: a Monte Carlo return of an episode that has not ended",
            section: "n-steps",
            function: |rewards, _, gamma| plain_return(rewards, gamma),
        },
        Mistake {
            says: "the value is not discounted",
            section: "n-steps",
            function: |rewards, next, gamma| plain_return(rewards, gamma) + next,
        },
        Mistake {
            says: "the value is discounted once, however many rewards come before it",
            section: "n-steps",
            function: |rewards, next, gamma| plain_return(rewards, gamma) + gamma * next,
        },
    ],
};

// 3.5

/// The lambda-returns from the back, with `mix` of the next value and the next lambda-return.
fn mixed(rewards: &[f64], next_values: &[f64], gamma: f64, mix: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    let mut following = next_values.last().copied().unwrap_or(0.0);
    let mut all: Vec<f64> = rewards
        .iter()
        .zip(next_values)
        .rev()
        .map(|(reward, next)| {
            following = reward + gamma * mix(*next, following);
            following
        })
        .collect();
    all.reverse();
    all
}

static LAMBDA_RETURNS: Exercise<LambdaReturns> = Exercise {
    about: About {
        number: "3.5",
        name: "lambda_returns",
        title: "all n-step returns at once",
        section: "lambda-returns",
        hints: &[
            "G = r + gamma ((1 - lambda) V + lambda G'), where V is the value of the next state and G' the lambda-return of the next step.",
            "After the last step there is no G': its place is taken by the value of the last state, so that the last G is r + gamma V.",
            "From the back: begin with following = the last of next_values.",
        ],
    },
    right: |rewards, next_values, gamma, lambda| mixed(rewards, next_values, gamma, |next, g| (1.0 - lambda) * next + lambda * g),
    checks: &[
        |Trial { function, .. }, sheet| {
            // the last G is 4 + 1/2 8 = 8; before it 2 + 1/2 (1/2 6 + 1/2 8) = 5.5; before it 1 + 1/2 (1/2 2 + 1/2 5.5) = 2.875
            let (rewards, next): (&[f64], &[f64]) = (&[1.0, 2.0, 4.0], &[2.0, 6.0, 8.0]);
            for (gamma, lambda, expected) in
                [(0.5, 0.5, [2.875, 5.5, 8.0]), (0.5, 0.0, [2.0, 5.0, 8.0]), (0.5, 1.0, [4.0, 6.0, 8.0]), (1.0, 1.0, [15.0, 14.0, 12.0])]
            {
                let place = format!(
                    "lambda_returns(rewards = {}, next_values = {}, gamma = {gamma}, lambda = {lambda})",
                    list(rewards),
                    list(next)
                );
                sheet.row(place, &expected[..], || function(rewards, next, gamma, lambda));
            }
            sheet.row("lambda_returns of one step: rewards = [3], next_values = [10], gamma = 0.9, lambda = 0.5", vec![12.0], || {
                function(&[3.0], &[10.0], 0.9, 0.5)
            });
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 35);
            for _ in 0..50 {
                let n = 1 + stream.below(8) as usize;
                let (rewards, next) = (numbers(&mut stream, n), numbers(&mut stream, n));
                let (gamma, lambda) = (share(&mut stream), share(&mut stream));
                let place = format!(
                    "lambda_returns(rewards = {}, next_values = {}, gamma = {gamma}, lambda = {lambda})",
                    list(&rewards),
                    list(&next)
                );
                sheet.row(place, right(&rewards, &next, gamma, lambda), || function(&rewards, &next, gamma, lambda));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "the value of the next state lacks its weight 1 - lambda",
            section: "lambda-returns",
            function: |rewards, next_values, gamma, lambda| mixed(rewards, next_values, gamma, |next, g| next + lambda * g),
        },
        Mistake {
            says: "lambda and 1 - lambda are exchanged: lambda = 0 should give TD(0), and lambda = 1 Monte Carlo",
            section: "lambda-returns",
            function: |rewards, next_values, gamma, lambda| {
                mixed(rewards, next_values, gamma, |next, g| lambda * next + (1.0 - lambda) * g)
            },
        },
        Mistake {
            says: "nothing follows the last step, although the episode has not terminated there",
            section: "lambda-returns",
            function: |rewards, next_values, gamma, lambda| {
                let mut following = 0.0;
                let back = rewards.iter().zip(next_values).rev().map(|(reward, next)| {
                    following = reward + gamma * ((1.0 - lambda) * next + lambda * following);
                    following
                });
                let mut all: Vec<f64> = back.collect();
                all.reverse();
                all
            },
        },
        Mistake {
            says: "the weight 1 - lambda is left out together with the value: only the last value counts",
            section: "lambda-returns",
            function: |rewards, next_values, gamma, lambda| mixed(rewards, next_values, gamma, |_, g| lambda * g),
        },
        Mistake {
            says: "gamma multiplies the next lambda-return only, not the value of the next state",
            section: "lambda-returns",
            function: |rewards, next_values, gamma, lambda| {
                mixed(rewards, next_values, 1.0, |next, g| (1.0 - lambda) * next + gamma * lambda * g)
            },
        },
    ],
};

// 3.6

static WEIGHTED_IMPORTANCE: Exercise<WeightedImportance> = Exercise {
    about: About {
        number: "3.6",
        name: "weighted_importance",
        title: "another policy's episodes",
        section: "off-policy-estimates",
        hints: &[
            "A mean of the returns with the ratios as weights: the sum of ratio times return, divided by the sum of the ratios.",
            "If all ratios are 0, the target policy would never have done any of this: return 0.",
        ],
    },
    right: |returns, ratios| {
        let sum: f64 = ratios.iter().sum();
        if sum == 0.0 { 0.0 } else { returns.iter().zip(ratios).map(|(g, ratio)| ratio * g).sum::<f64>() / sum }
    },
    checks: &[
        |Trial { function, .. }, sheet| {
            for (returns, ratios, expected) in [
                (&[4.0, 8.0][..], &[1.0, 3.0][..], 7.0),
                (&[4.0, 8.0], &[0.0, 2.0], 8.0),
                (&[5.0], &[0.25], 5.0),
                (&[1.0, 2.0], &[0.0, 0.0], 0.0),
                (&[-2.0, 2.0, 6.0], &[1.0, 1.0, 1.0], 2.0),
                (&[], &[], 0.0),
            ] {
                let place = format!("weighted_importance(returns = {}, ratios = {})", list(returns), list(ratios));
                sheet.row(place, expected, || function(returns, ratios));
            }
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 36);
            for _ in 0..50 {
                let n = 1 + stream.below(8) as usize;
                let returns = numbers(&mut stream, n);
                let ratios: Vec<f64> = (0..n).map(|_| f64::from(stream.below(5)) / 2.0).collect();
                let place = format!("weighted_importance(returns = {}, ratios = {})", list(&returns), list(&ratios));
                sheet.row(place, right(&returns, &ratios), || function(&returns, &ratios));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "the sum is divided by the number of episodes: ordinary importance sampling, which is unbiased but varies much more",
            section: "off-policy-estimates",
            function: |returns, ratios| {
                let sum: f64 = returns.iter().zip(ratios).map(|(g, ratio)| ratio * g).sum();
                if returns.is_empty() { 0.0 } else { sum / returns.len() as f64 }
            },
        },
        Mistake {
            says: "the ratios are left out: the mean of the behaviour policy's returns",
            section: "off-policy-estimates",
            function: |returns, _| if returns.is_empty() { 0.0 } else { returns.iter().sum::<f64>() / returns.len() as f64 },
        },
        Mistake {
            says: "the sum is not divided by the sum of the ratios",
            section: "off-policy-estimates",
            function: |returns, ratios| returns.iter().zip(ratios).map(|(g, ratio)| ratio * g).sum(),
        },
        Mistake {
            says: "the case is left out in which all ratios are 0: then 0 / 0 is no number",
            section: "off-policy-estimates",
            function: |returns, ratios| returns.iter().zip(ratios).map(|(g, ratio)| ratio * g).sum::<f64>() / ratios.iter().sum::<f64>(),
        },
    ],
};
