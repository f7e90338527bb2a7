//! Lesson 6: REINFORCE and baselines.

use gradus_base::random::Stream;

use crate::exercise::{About, Exercise, Mistake, Trial};
use crate::inputs::{normals, numbers, share, stream, whole};
use crate::lessons::lesson;
use crate::sheet::{Sheet, list, rows};

/// Returns the derivatives of the log-probability from the logits and the action.
pub type LogSoftmaxGradient = fn(&[f64], usize) -> Vec<f64>;
/// Returns the return from each step on, from the rewards, whether each step is the last one of its episode, and gamma.
pub type ReturnsToGo = fn(&[f64], &[bool], f64) -> Vec<f64>;
/// Returns the derivatives with respect to the logits of each step, from the logits, the actions and the weights of the steps.
pub type PolicyGradient = fn(&[Vec<f64>], &[usize], &[f64]) -> Vec<Vec<f64>>;
/// Returns the baseline of each episode from the returns of all.
pub type LeaveOneOut = fn(&[f64]) -> Vec<f64>;
/// Returns numbers with mean 0 and standard deviation 1.
pub type Whitened = fn(&[f64]) -> Vec<f64>;
/// Returns the derivatives of the entropy from the logits.
pub type EntropyGradient = fn(&[f64]) -> Vec<f64>;

lesson!("6", "REINFORCE and baselines", {
    log_softmax_gradient: LogSoftmaxGradient = LOG_SOFTMAX_GRADIENT,
    returns_to_go: ReturnsToGo = RETURNS_TO_GO,
    policy_gradient: PolicyGradient = POLICY_GRADIENT,
    leave_one_out: LeaveOneOut = LEAVE_ONE_OUT,
    whitened: Whitened = WHITENED,
    entropy_gradient: EntropyGradient = ENTROPY_GRADIENT,
});

/// The logarithms of the probabilities.
pub(crate) fn log_softmax(logits: &[f64]) -> Vec<f64> {
    let highest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = logits.iter().map(|z| (z - highest).exp()).sum();
    logits.iter().map(|z| z - highest - sum.ln()).collect()
}

pub(crate) fn softmax(logits: &[f64]) -> Vec<f64> {
    log_softmax(logits).into_iter().map(f64::exp).collect()
}

pub(crate) fn entropy(logits: &[f64]) -> f64 {
    -log_softmax(logits).into_iter().map(|log_p| log_p.exp() * log_p).sum::<f64>()
}

/// The derivatives of a function of logits, by differences.
pub(crate) fn differences(logits: &[f64], function: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    const SMALL: f64 = 1e-5;
    let moved = |i: usize, by: f64| {
        let mut logits = logits.to_vec();
        logits[i] += by;
        function(&logits)
    };
    (0..logits.len()).map(|i| (moved(i, SMALL) - moved(i, -SMALL)) / (2.0 * SMALL)).collect()
}

/// 1 for the action that was taken, 0 for the others.
fn taken(action: usize, b: usize) -> f64 {
    f64::from(u8::from(action == b))
}

/// Maps the probabilities and the indices of the actions.
fn each(logits: &[f64], entry: impl Fn(usize, f64) -> f64) -> Vec<f64> {
    softmax(logits).into_iter().enumerate().map(|(b, p)| entry(b, p)).collect()
}

// 6.1

/// ln 3: logits 0 and ln 3 give the probabilities 1/4 and 3/4.
pub(crate) const LN_3: f64 = 1.098_612_288_668_11;

static LOG_SOFTMAX_GRADIENT: Exercise<LogSoftmaxGradient> = Exercise {
    about: About {
        number: "6.1",
        name: "log_softmax_gradient",
        title: "the derivative of a log-probability",
        section: "the-log-derivative",
        hints: &[
            "The derivative with respect to logit b is 1 - pi(b) if b is the action, and -pi(b) otherwise.",
            "The probabilities are the softmax of exercise 1.4, with the largest logit subtracted first.",
        ],
    },
    right: |logits, action| each(logits, |b, p| taken(action, b) - p),
    checks: &[
        |Trial { function, .. }, sheet| {
            let third = 1.0 / 3.0;
            for (logits, action, expected) in [
                (&[0.0, 0.0][..], 0, &[0.5, -0.5][..]),
                (&[0.0, LN_3], 1, &[-0.25, 0.25]),
                (&[0.0, LN_3], 0, &[0.75, -0.75]),
                (&[2.0, 2.0, 2.0], 2, &[-third, -third, 2.0 * third]),
                (&[1000.0, 1000.0], 0, &[0.5, -0.5]),
            ] {
                let place = format!("log_softmax_gradient(logits = {}, action = {action})", list(logits));
                sheet.row(place, expected, || function(logits, action));
            }
        },
        |Trial { function, seed, .. }, sheet| {
            let mut stream = stream(seed, 61);
            for _ in 0..40 {
                let n = 2 + stream.below(4) as usize;
                let (logits, action) = (normals(&mut stream, n), stream.below(n as u32) as usize);
                let place = format!("log_softmax_gradient(logits = {}, action = {action}), beside differences", list(&logits));
                sheet.row(place, differences(&logits, |z| log_softmax(z)[action]), || function(&logits, action));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "the sign is that of a loss: the probabilities minus 1 for the action",
            section: "from-a-sum-to-a-loss",
            function: |logits, action| each(logits, |b, p| p - taken(action, b)),
        },
        Mistake {
            says: "only the logit of the action has a derivative; those of the others go down, too",
            section: "the-log-derivative",
            function: |logits, action| each(logits, |b, p| if b == action { 1.0 - p } else { 0.0 }),
        },
        Mistake {
            says: "it is the derivative of the probability and not of its logarithm",
            section: "the-log-derivative",
            function: |logits, action| {
                let of_action = softmax(logits)[action];
                each(logits, |b, p| of_action * (taken(action, b) - p))
            },
        },
        Mistake {
            says: "the probabilities are not subtracted",
            section: "the-log-derivative",
            function: |logits, action| each(logits, |b, _| taken(action, b)),
        },
        Mistake {
            says: "the logits are subtracted instead of the probabilities",
            section: "the-log-derivative",
            function: |logits, action| each(logits, |b, _| taken(action, b) - logits[b]),
        },
        Mistake {
            says: "the largest logit is not subtracted first: the exponential of a large one is infinite",
            section: "the-log-derivative",
            function: |logits, action| {
                let sum: f64 = logits.iter().map(|z| z.exp()).sum();
                logits.iter().enumerate().map(|(b, z)| taken(action, b) - z.exp() / sum).collect()
            },
        },
    ],
};

// 6.2

/// The returns from the back; `continues(t)` says whether what follows step t belongs to it.
fn from_the_back(rewards: &[f64], gamma: f64, continues: impl Fn(usize) -> bool) -> Vec<f64> {
    let mut all = vec![0.0; rewards.len()];
    let mut following = 0.0;
    for t in (0..rewards.len()).rev() {
        following = rewards[t] + if continues(t) { gamma * following } else { 0.0 };
        all[t] = following;
    }
    all
}

/// The index of the first step of each step's episode.
fn first_of(is_last: &[bool], t: usize) -> usize {
    (0..t).rev().find(|before| is_last[*before]).map_or(0, |before| before + 1)
}

fn call_of_returns(rewards: &[f64], is_last: &[bool], gamma: f64) -> String {
    format!("returns_to_go(rewards = {}, is_last = {is_last:?}, gamma = {gamma})", list(rewards))
}

/// Draws which steps are the last of their episodes; the last step of the list is.
fn ends(stream: &mut Stream, n: usize) -> Vec<bool> {
    (0..n).map(|t| t + 1 == n || stream.below(4) == 0).collect()
}

static RETURNS_TO_GO: Exercise<ReturnsToGo> = Exercise {
    about: About {
        number: "6.2",
        name: "returns_to_go",
        title: "several episodes in one list",
        section: "several-episodes",
        hints: &[
            "Exercise 3.1 with a list of several episodes: go through it from the back, and begin anew where an episode ends.",
            "If is_last[t], nothing follows step t: its return is its reward.",
        ],
    },
    right: |rewards, is_last, gamma| from_the_back(rewards, gamma, |t| !is_last[t]),
    checks: &[
        |Trial { function, .. }, sheet| {
            for (rewards, is_last, gamma, expected) in [
                (&[1.0, 2.0, 4.0][..], &[false, false, true][..], 0.5, &[3.0, 4.0, 4.0][..]),
                (&[1.0, 2.0, 4.0, 8.0], &[false, true, false, true], 0.5, &[2.0, 2.0, 8.0, 8.0]),
                (&[1.0, 2.0, 4.0, 8.0], &[false, true, false, true], 1.0, &[3.0, 2.0, 12.0, 8.0]),
                (&[5.0, 6.0, 7.0], &[true, true, true], 0.9, &[5.0, 6.0, 7.0]),
            ] {
                sheet.row(call_of_returns(rewards, is_last, gamma), expected, || function(rewards, is_last, gamma));
            }
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 62);
            for _ in 0..40 {
                let n = 2 + stream.below(10) as usize;
                let (rewards, is_last, gamma) = (numbers(&mut stream, n), ends(&mut stream, n), share(&mut stream));
                let place = call_of_returns(&rewards, &is_last, gamma);
                sheet.row(place, right(&rewards, &is_last, gamma), || function(&rewards, &is_last, gamma));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "the rewards of the next episode are passed on to the one before",
            section: "several-episodes",
            function: |rewards, _, gamma| from_the_back(rewards, gamma, |_| true),
        },
        Mistake {
            says: "the sum is cut before the last step of an episode, whose reward is lost to the steps before it",
            section: "several-episodes",
            function: |rewards, is_last, gamma| {
                from_the_back(rewards, gamma, |t| !is_last[t] && !is_last.get(t + 1).copied().unwrap_or(true))
            },
        },
        Mistake {
            says: "each step gets the return of its whole episode",
            section: "the-log-derivative",
            function: |rewards, is_last, gamma| {
                let all = from_the_back(rewards, gamma, |t| !is_last[t]);
                (0..all.len()).map(|t| all[first_of(is_last, t)]).collect()
            },
        },
        Mistake {
            says: "the rewards are discounted from the beginning of the episode instead of from the step",
            section: "the-log-derivative",
            function: |rewards, is_last, gamma| {
                let all = from_the_back(rewards, gamma, |t| !is_last[t]);
                (0..all.len()).map(|t| gamma.powi((t - first_of(is_last, t)) as i32) * all[t]).collect()
            },
        },
        Mistake {
            says: "gamma is left out",
            section: "the-log-derivative",
            function: |rewards, is_last, _| from_the_back(rewards, 1.0, |t| !is_last[t]),
        },
        Mistake { says: "the rewards themselves are returned", section: "the-log-derivative", function: |rewards, _, _| rewards.to_vec() },
    ],
};

// 6.3

/// The derivative for each step and logit, from the index of the step, that of the logit, and its log-derivative.
fn of_batch(logits: &[Vec<f64>], actions: &[usize], entry: impl Fn(usize, usize, f64) -> f64) -> Vec<Vec<f64>> {
    let of_step = |t: usize| each(&logits[t], |b, p| entry(t, b, taken(actions[t], b) - p));
    (0..logits.len()).map(of_step).collect()
}

fn row_of_batch(
    sheet: &mut Sheet,
    function: PolicyGradient,
    logits: &[Vec<f64>],
    actions: &[usize],
    weights: &[f64],
    expected: Vec<Vec<f64>>,
) {
    let place = format!("policy_gradient(logits = {}, actions = {}, weights = {})", rows(logits), whole(actions), list(weights));
    sheet.row(place, expected, || function(logits, actions, weights));
}

static POLICY_GRADIENT: Exercise<PolicyGradient> = Exercise {
    about: About {
        number: "6.3",
        name: "policy_gradient",
        title: "the estimate for a batch",
        section: "from-a-sum-to-a-loss",
        hints: &[
            "For each step, the log-derivative of exercise 6.1, times the weight of the step, divided by the number of steps.",
            "It is the gradient of what is to grow, not of a loss: an action with a positive weight gets a positive derivative.",
        ],
    },
    right: |logits, actions, weights| of_batch(logits, actions, |t, _, slope| weights[t] * slope / logits.len() as f64),
    checks: &[
        |Trial { function, .. }, sheet| {
            row_of_batch(sheet, function, &[vec![0.0, 0.0]], &[1], &[3.0], vec![vec![-1.5, 1.5]]);
            let logits = [vec![0.0, LN_3], vec![0.0, 0.0]];
            row_of_batch(sheet, function, &logits, &[0, 1], &[4.0, -2.0], vec![vec![1.5, -1.5], vec![0.5, -0.5]]);
            row_of_batch(sheet, function, &logits, &[1, 0], &[4.0, 0.0], vec![vec![-0.5, 0.5], vec![0.0, 0.0]]);
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 63);
            for _ in 0..30 {
                let (n, k) = (1 + stream.below(4) as usize, 2 + stream.below(3) as usize);
                let logits: Vec<Vec<f64>> = (0..n).map(|_| normals(&mut stream, k)).collect();
                let actions: Vec<usize> = (0..n).map(|_| stream.below(k as u32) as usize).collect();
                let weights = numbers(&mut stream, n);
                row_of_batch(sheet, function, &logits, &actions, &weights, right(&logits, &actions, &weights));
            }
        },
        // the mean over the actions, each with its probability, is the gradient of the expected value
        |Trial { function, seed, .. }, sheet| {
            let mut stream = stream(seed, 64);
            for _ in 0..10 {
                let (logits, values) = (normals(&mut stream, 3), numbers(&mut stream, 3));
                let value = |z: &[f64]| softmax(z).iter().zip(&values).map(|(p, q)| p * q).sum::<f64>();
                let place = format!(
                    "the mean of policy_gradient over the actions of a state with logits = {}, each weighed by its value in {}",
                    list(&logits),
                    list(&values)
                );
                sheet.row(place, differences(&logits, value), || {
                    let mut mean = vec![0.0; 3];
                    for (action, p) in softmax(&logits).into_iter().enumerate() {
                        let slopes = function(std::slice::from_ref(&logits), &[action], &[values[action]]).concat();
                        mean.iter_mut().zip(slopes).for_each(|(sum, slope)| *sum += p * slope);
                    }
                    mean
                });
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "it is the sum over the steps and not their mean",
            section: "from-a-sum-to-a-loss",
            function: |logits, actions, weights| of_batch(logits, actions, |t, _, slope| weights[t] * slope),
        },
        Mistake {
            says: "the sign is that of a loss: a step along it makes good actions less likely",
            section: "from-a-sum-to-a-loss",
            function: |logits, actions, weights| of_batch(logits, actions, |t, _, slope| -weights[t] * slope / logits.len() as f64),
        },
        Mistake {
            says: "the weights are left out: every action becomes likelier",
            section: "reinforce",
            function: |logits, actions, _| of_batch(logits, actions, |_, _, slope| slope / logits.len() as f64),
        },
        Mistake {
            says: "only the logit of the action has a derivative; those of the others go down, too",
            section: "the-log-derivative",
            function: |logits, actions, weights| {
                of_batch(logits, actions, |t, b, slope| taken(actions[t], b) * weights[t] * slope / logits.len() as f64)
            },
        },
        Mistake {
            says: "every step has the mean of the weights: what was good and what was bad is not told apart",
            section: "reinforce",
            function: |logits, actions, weights| {
                let mean = weights.iter().sum::<f64>() / weights.len() as f64;
                of_batch(logits, actions, |_, _, slope| mean * slope / logits.len() as f64)
            },
        },
        Mistake {
            says: "it is divided by the number of all logits instead of the number of steps",
            section: "from-a-sum-to-a-loss",
            function: |logits, actions, weights| {
                let all: usize = logits.iter().map(Vec::len).sum();
                of_batch(logits, actions, |t, _, slope| weights[t] * slope / all as f64)
            },
        },
    ],
};

// 6.4

/// The baseline of each episode from the sum of all returns and its own.
fn baselines(returns: &[f64], of: impl Fn(f64, f64, f64) -> f64) -> Vec<f64> {
    let (sum, n) = (returns.iter().sum::<f64>(), returns.len() as f64);
    returns.iter().map(|g| of(sum, *g, n)).collect()
}

static LEAVE_ONE_OUT: Exercise<LeaveOneOut> = Exercise {
    about: About {
        number: "6.4",
        name: "leave_one_out",
        title: "a baseline from the other episodes",
        section: "baselines",
        hints: &[
            "The baseline of an episode is the mean of the returns of all others.",
            "The sum of the others is the sum of all minus its own return. How many others are there?",
        ],
    },
    right: |returns| baselines(returns, |sum, g, n| (sum - g) / (n - 1.0)),
    checks: &[
        |Trial { function, .. }, sheet| {
            for (returns, expected) in [
                (&[1.0, 3.0, 5.0][..], &[4.0, 3.0, 2.0][..]),
                (&[2.0, 4.0], &[4.0, 2.0]),
                (&[0.0, 0.0, 0.0, 6.0], &[2.0, 2.0, 2.0, 0.0]),
                (&[-3.0, -3.0], &[-3.0, -3.0]),
            ] {
                sheet.row(format!("leave_one_out(returns = {})", list(returns)), expected, || function(returns));
            }
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 65);
            for _ in 0..40 {
                let n = 2 + stream.below(7) as usize;
                let returns = numbers(&mut stream, n);
                sheet.row(format!("leave_one_out(returns = {})", list(&returns)), right(&returns), || function(&returns));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "the episode's own return is in its baseline: the mean of all",
            section: "baselines",
            function: |returns| baselines(returns, |sum, _, n| sum / n),
        },
        Mistake {
            says: "the sum of the others is divided by the number of all",
            section: "baselines",
            function: |returns| baselines(returns, |sum, g, n| (sum - g) / n),
        },
        Mistake {
            says: "the sum of the others is not divided",
            section: "baselines",
            function: |returns| baselines(returns, |sum, g, _| sum - g),
        },
        Mistake {
            says: "it is the return minus the baseline, and not the baseline",
            section: "baselines",
            function: |returns| baselines(returns, |sum, g, n| g - (sum - g) / (n - 1.0)),
        },
    ],
};

// 6.5

/// The mean and the sum of the squared distances from it.
fn moments(numbers: &[f64]) -> (f64, f64) {
    let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
    (mean, numbers.iter().map(|x| (x - mean).powi(2)).sum())
}

fn whitened_by(numbers: &[f64], of: impl Fn(f64, f64, f64) -> f64) -> Vec<f64> {
    let (mean, squares) = moments(numbers);
    let variance = squares / numbers.len() as f64;
    // the mean of equal numbers may be rounded
    let are_equal = numbers.iter().all(|x| *x == numbers[0]);
    numbers.iter().map(|x| if are_equal { 0.0 } else { of(*x, mean, variance) }).collect()
}

static WHITENED: Exercise<Whitened> = Exercise {
    about: About {
        number: "6.5",
        name: "whitened",
        title: "mean 0, standard deviation 1",
        section: "whitening",
        hints: &[
            "Subtract the mean, and divide by the standard deviation: the root of the mean of the squared distances from the mean.",
            "The mean is over all n numbers, not n - 1. If all numbers are the same, return zeros: compare them, because their computed mean may differ from them in the last place, and the deviation is then not 0.",
        ],
    },
    right: |numbers| whitened_by(numbers, |x, mean, variance| (x - mean) / variance.sqrt()),
    checks: &[
        |Trial { function, .. }, sheet| {
            let root = std::f64::consts::FRAC_1_SQRT_2;
            for (numbers, expected) in [
                (&[1.0, 3.0][..], &[-1.0, 1.0][..]),
                (&[0.0, 0.0, 6.0], &[-root, -root, 2.0 * root]), // mean 2, variance 8
                (&[2.0, 2.0, 2.0], &[0.0, 0.0, 0.0]),
                (&[0.1, 0.1, 0.1], &[0.0, 0.0, 0.0]),
                (&[-10.0, 10.0, -10.0, 10.0], &[-1.0, 1.0, -1.0, 1.0]),
            ] {
                sheet.row(format!("whitened(numbers = {})", list(numbers)), expected, || function(numbers));
            }
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 66);
            for _ in 0..40 {
                let n = 2 + stream.below(7) as usize;
                // at least two of them differ
                let numbers: Vec<f64> = numbers(&mut stream, n).into_iter().chain([-5.1]).collect();
                sheet.row(format!("whitened(numbers = {})", list(&numbers)), right(&numbers), || function(&numbers));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "the mean is not subtracted",
            section: "whitening",
            function: |numbers| whitened_by(numbers, |x, _, variance| x / variance.sqrt()),
        },
        Mistake {
            says: "it is divided by the variance and not by its root",
            section: "whitening",
            function: |numbers| whitened_by(numbers, |x, mean, variance| (x - mean) / variance),
        },
        Mistake {
            says: "it is not divided by the standard deviation",
            section: "whitening",
            function: |numbers| whitened_by(numbers, |x, mean, _| x - mean),
        },
        Mistake {
            says: "the standard deviation is that of a sample, with n - 1: it is larger, and the numbers come out too small",
            section: "whitening",
            function: |numbers| {
                let n = numbers.len() as f64;
                whitened_by(numbers, |x, mean, variance| (x - mean) / (variance * n / (n - 1.0)).sqrt())
            },
        },
        Mistake {
            says: "the case is left out in which all numbers are the same: then 0 / 0 is no number",
            section: "whitening",
            function: |numbers| {
                let (mean, squares) = moments(numbers);
                numbers.iter().map(|x| (x - mean) / (squares / numbers.len() as f64).sqrt()).collect()
            },
        },
    ],
};

// 6.6

fn slopes_of_entropy(logits: &[f64], of: impl Fn(f64, f64, f64) -> f64) -> Vec<f64> {
    let h = entropy(logits);
    log_softmax(logits).into_iter().map(|log_p| of(log_p.exp(), log_p, h)).collect()
}

static ENTROPY_GRADIENT: Exercise<EntropyGradient> = Exercise {
    about: About {
        number: "6.6",
        name: "entropy_gradient",
        title: "the slope that holds a policy open",
        section: "entropy",
        hints: &[
            "With the probabilities p and the entropy H = -sum p log p, the derivative for a logit is -p (log p + H).",
            "log p = z - (the largest z) - ln(sum of e^(z - the largest)): so it is finite even where p is rounded to 0.",
        ],
    },
    right: |logits| slopes_of_entropy(logits, |p, log_p, h| -p * (log_p + h)),
    checks: &[
        |Trial { function, .. }, sheet| {
            // probabilities 1/4 and 3/4: 3/16 ln 3
            for (logits, expected) in [
                (&[0.0, 0.0][..], &[0.0, 0.0][..]),
                (&[0.0, LN_3], &[0.205_99, -0.205_99]),
                (&[5.0, 5.0, 5.0], &[0.0, 0.0, 0.0]),
                (&[1000.0, 0.0], &[0.0, 0.0]),
            ] {
                sheet.row(format!("entropy_gradient(logits = {})", list(logits)), expected, || function(logits));
            }
        },
        |Trial { function, seed, .. }, sheet| {
            let mut stream = stream(seed, 67);
            for _ in 0..40 {
                let n = 2 + stream.below(4) as usize;
                let logits = normals(&mut stream, n);
                let place = format!("entropy_gradient(logits = {}), beside differences", list(&logits));
                sheet.row(place, differences(&logits, entropy), || function(&logits));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "the sign is wrong: it makes the policy more certain",
            section: "entropy",
            function: |logits| slopes_of_entropy(logits, |p, log_p, h| p * (log_p + h)),
        },
        Mistake {
            says: "the entropy is left out: the derivatives do not sum to 0",
            section: "entropy",
            function: |logits| slopes_of_entropy(logits, |p, log_p, _| -p * log_p),
        },
        Mistake {
            says: "it is the derivative with respect to the probabilities, -(log p + 1), and not to the logits",
            section: "entropy",
            function: |logits| slopes_of_entropy(logits, |_, log_p, _| -(log_p + 1.0)),
        },
        Mistake {
            says: "the factor p is left out",
            section: "entropy",
            function: |logits| slopes_of_entropy(logits, |_, log_p, h| -(log_p + h)),
        },
        Mistake {
            says: "the logarithm of a probability that is rounded to 0 is taken: 0 times minus infinity is no number",
            section: "entropy",
            function: |logits| {
                let p = softmax(logits);
                let h = -p.iter().map(|p| p * p.ln()).sum::<f64>();
                p.iter().map(|p| -p * (p.ln() + h)).collect()
            },
        },
    ],
};
