//! Lesson 12: preferences, and the price of optimising them.

use crate::exercise::{About, Exercise, Mistake, Trial};
use crate::inputs::{distinct, number, numbers, rounded, stream};
use crate::lesson_6::softmax;
use crate::lessons::lesson;
use crate::sheet::{Sheet, list};

/// Returns the loss of a pair from the scores of the chosen and of the rejected completion.
pub type PreferenceLoss = fn(f64, f64) -> f64;
/// Returns the rewards of the tokens from their log-probabilities, those of the reference, the score, and beta.
pub type PenalisedRewards = fn(&[f64], &[f64], f64, f64) -> Vec<f64>;
/// Returns the best policy from the reference's probabilities, the rewards, and beta.
pub type BestPolicy = fn(&[f64], &[f64], f64) -> Vec<f64>;
/// Returns the loss of a pair from the log-probabilities of the chosen completion, of the policy and of the reference, those of the rejected
/// one, and beta.
pub type DpoLoss = fn([f64; 2], [f64; 2], f64) -> f64;
/// Returns the mean true reward of the best of n from the scores and the true rewards of completions, and n.
pub type BestOfN = fn(&[f64], &[f64], usize) -> f64;

lesson!("12", "preferences", {
    preference_loss: PreferenceLoss = PREFERENCE_LOSS,
    penalised_rewards: PenalisedRewards = PENALISED_REWARDS,
    best_policy: BestPolicy = BEST_POLICY,
    dpo_loss: DpoLoss = DPO_LOSS,
    best_of_n: BestOfN = BEST_OF_N,
});

/// -ln sigma(x), without an overflow.
fn softplus_of_minus(x: f64) -> f64 {
    (-x).max(0.0) + (-x.abs()).exp().ln_1p()
}

fn sigma(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

// 12.1

static PREFERENCE_LOSS: Exercise<PreferenceLoss> = Exercise {
    about: About {
        number: "12.1",
        name: "preference_loss",
        title: "the loss of a reward model",
        section: "a-score-from-comparisons",
        hints: &[
            "The probability that the first is preferred is sigma(chosen - rejected), with sigma(x) = 1 / (1 + e^-x). The loss is minus its logarithm.",
            "For a difference of -800 the sigma is 0 in floating point, and its logarithm infinite. The loss is ln(1 + e^-x), with x the difference.",
            "Where e^-x is too large, ln(1 + e^-x) is -x + ln(1 + e^x). The method x.ln_1p() is ln(1 + x).",
        ],
    },
    right: |chosen, rejected| softplus_of_minus(chosen - rejected),
    checks: &[
        |Trial { function, .. }, sheet| {
            for (chosen, rejected, expected) in [
                (3.0, 3.0, 2.0_f64.ln()),
                (1.0, 0.0, 0.313_262),
                (4.0, 2.0, 0.126_928),
                (-1.0, 0.0, 1.313_262),
                (0.0, 800.0, 800.0),
                (800.0, 0.0, 0.0),
            ] {
                sheet.row(format!("preference_loss(chosen = {chosen}, rejected = {rejected})"), expected, || function(chosen, rejected));
            }
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 121);
            for _ in 0..40 {
                let (chosen, rejected) = (number(&mut stream), number(&mut stream));
                let place = format!("preference_loss(chosen = {chosen}, rejected = {rejected})");
                sheet.row(place, right(chosen, rejected), || function(chosen, rejected));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "chosen and rejected are exchanged: the model learns the opposite",
            section: "a-score-from-comparisons",
            function: |chosen, rejected| softplus_of_minus(rejected - chosen),
        },
        Mistake {
            says: "it is the probability of the preference, and not minus its logarithm",
            section: "a-score-from-comparisons",
            function: |chosen, rejected| sigma(chosen - rejected),
        },
        Mistake {
            says: "the minus is missing: it is the log-likelihood, which is to become large",
            section: "a-score-from-comparisons",
            function: |chosen, rejected| -softplus_of_minus(chosen - rejected),
        },
        Mistake {
            says: "an exponential overflows, or the logarithm is that of a number that became 0: for large differences the loss is infinite",
            section: "a-score-from-comparisons",
            function: |chosen, rejected| -sigma(chosen - rejected).ln(),
        },
        Mistake {
            says: "it is 1 minus the difference, or 0: a hinge, which stops to learn at a difference of 1",
            section: "a-score-from-comparisons",
            function: |chosen, rejected| (1.0 - (chosen - rejected)).max(0.0),
        },
        Mistake {
            says: "the difference is missing: only the score of the chosen completion counts",
            section: "a-score-from-comparisons",
            function: |chosen, _| softplus_of_minus(chosen),
        },
    ],
};

// 12.2

/// The rewards, from the index, the log-ratio to the reference and whether the token is the last one.
fn token_rewards(log_probs: &[f64], reference: &[f64], of: impl Fn(f64, bool) -> f64) -> Vec<f64> {
    let n = log_probs.len();
    (0..n).map(|t| of(log_probs[t] - reference[t], t + 1 == n)).collect()
}

fn if_last(score: f64, is_last: bool) -> f64 {
    if is_last { score } else { 0.0 }
}

fn row_of_rewards(
    sheet: &mut Sheet,
    function: PenalisedRewards,
    [log_probs, reference]: [&[f64]; 2],
    [score, beta]: [f64; 2],
    expected: Vec<f64>,
) {
    let (l, r) = (list(log_probs), list(reference));
    let place = format!("penalised_rewards(log_probs = {l}, reference = {r}, score = {score}, beta = {beta})");
    sheet.row(place, expected, || function(log_probs, reference, score, beta));
}

static PENALISED_REWARDS: Exercise<PenalisedRewards> = Exercise {
    about: About {
        number: "12.2",
        name: "penalised_rewards",
        title: "a score and a leash",
        section: "a-leash",
        hints: &[
            "Each token costs beta times the log-ratio: its log-probability in the policy minus that in the reference.",
            "The score of the text is added to the reward of the last token, and of no other.",
        ],
    },
    right: |log_probs, reference, score, beta| token_rewards(log_probs, reference, |d, last| if_last(score, last) - beta * d),
    checks: &[
        |Trial { function, .. }, sheet| {
            row_of_rewards(sheet, function, [&[-1.0, -2.0], &[-1.5, -1.0]], [1.0, 0.1], vec![-0.05, 1.1]);
            row_of_rewards(sheet, function, [&[-1.0, -2.0, -0.5], &[-1.0, -2.0, -0.5]], [2.0, 0.5], vec![0.0, 0.0, 2.0]);
            row_of_rewards(sheet, function, [&[-0.5], &[-2.5]], [1.0, 0.25], vec![0.5]);
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 122);
            for _ in 0..40 {
                let n = 1 + stream.below(6) as usize;
                let [log_probs, reference] = [0, 1].map(|_| (0..n).map(|_| -rounded(3.0 * stream.unit_f64()) - 0.01).collect::<Vec<_>>());
                let (score, beta) = (number(&mut stream), f64::from(1 + stream.below(10)) / 20.0);
                row_of_rewards(sheet, function, [&log_probs, &reference], [score, beta], right(&log_probs, &reference, score, beta));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "the sign of the penalty is wrong: the further from the reference, the better",
            section: "a-leash",
            function: |log_probs, reference, score, beta| token_rewards(log_probs, reference, |d, last| if_last(score, last) + beta * d),
        },
        Mistake {
            says: "every token gets the score: a longer text earns more",
            section: "a-leash",
            function: |log_probs, reference, score, beta| token_rewards(log_probs, reference, |d, _| score - beta * d),
        },
        Mistake {
            says: "the score is added to the first token",
            section: "a-leash",
            function: |log_probs, reference, score, beta| {
                let mut rewards = token_rewards(log_probs, reference, |d, _| -beta * d);
                rewards[0] += score;
                rewards
            },
        },
        Mistake {
            says: "there is no penalty",
            section: "a-leash",
            function: |log_probs, reference, score, _| token_rewards(log_probs, reference, |_, last| if_last(score, last)),
        },
        Mistake {
            says: "the penalty of the whole text is paid at its last token: the sum is right, but no token knows its part",
            section: "a-leash",
            function: |log_probs, reference, score, beta| {
                let all: f64 = token_rewards(log_probs, reference, |d, _| beta * d).iter().sum();
                token_rewards(log_probs, reference, |_, last| if_last(score - all, last))
            },
        },
        Mistake {
            says: "the penalty is that of k3: its mean is right, but as a reward it hardly pulls, for near the reference its policy gradient is almost 0",
            section: "a-leash",
            function: |log_probs, reference, score, beta| {
                token_rewards(log_probs, reference, |d, last| if_last(score, last) - beta * ((-d).exp() - 1.0 + d))
            },
        },
        Mistake {
            says: "beta is left out",
            section: "a-leash",
            function: |log_probs, reference, score, _| token_rewards(log_probs, reference, |d, last| if_last(score, last) - d),
        },
        Mistake {
            says: "beta multiplies the score as well",
            section: "a-leash",
            function: |log_probs, reference, score, beta| token_rewards(log_probs, reference, |d, last| beta * (if_last(score, last) - d)),
        },
        Mistake {
            says: "the reference is left out: the price is that of the log-probability itself",
            section: "a-leash",
            function: |log_probs, reference, score, beta| {
                token_rewards(log_probs, &vec![0.0; reference.len()], |d, last| if_last(score, last) - beta * d)
            },
        },
        Mistake {
            says: "the last token has no penalty",
            section: "a-leash",
            function: |log_probs, reference, score, beta| {
                token_rewards(log_probs, reference, |d, last| if last { score } else { -beta * d })
            },
        },
    ],
};

// 12.3

fn tilted(reference: &[f64], rewards: &[f64], scale: f64) -> Vec<f64> {
    let logits: Vec<f64> = reference.iter().zip(rewards).map(|(p, r)| p.ln() + r * scale).collect();
    softmax(&logits)
}

fn row_of_policy(sheet: &mut Sheet, function: BestPolicy, reference: &[f64], rewards: &[f64], beta: f64, expected: Vec<f64>) {
    let place = format!("best_policy(reference = {}, rewards = {}, beta = {beta})", list(reference), list(rewards));
    sheet.row(place, expected, || function(reference, rewards, beta));
}

static BEST_POLICY: Exercise<BestPolicy> = Exercise {
    about: About {
        number: "12.3",
        name: "best_policy",
        title: "what a leash leads to",
        section: "the-best-policy-on-a-leash",
        hints: &[
            "The weight of a completion is its probability in the reference times e^(reward / beta). Divide by the sum of the weights.",
            "e^(reward / beta) overflows easily: subtract the largest reward from all of them first. It cancels in the division. A completion that the reference never writes has no weight, and its reward must not be that largest one.",
        ],
    },
    right: |reference, rewards, beta| tilted(reference, rewards, 1.0 / beta),
    checks: &[
        |Trial { function, .. }, sheet| {
            let ln = f64::ln;
            row_of_policy(sheet, function, &[0.5, 0.5], &[0.0, ln(3.0)], 1.0, vec![0.25, 0.75]);
            row_of_policy(sheet, function, &[0.75, 0.25], &[0.0, ln(3.0)], 1.0, vec![0.5, 0.5]);
            // the weights 1/2 and 1/2 9
            row_of_policy(sheet, function, &[0.5, 0.5], &[0.0, ln(3.0)], 0.5, vec![0.1, 0.9]);
            row_of_policy(sheet, function, &[0.2, 0.3, 0.5], &[4.0, 4.0, 4.0], 2.0, vec![0.2, 0.3, 0.5]);
            row_of_policy(sheet, function, &[0.9, 0.1, 0.0], &[0.0, 100.0, 50.0], 0.1, vec![0.0, 1.0, 0.0]);
            row_of_policy(sheet, function, &[1.0, 0.0], &[0.0, 100.0], 0.1, vec![1.0, 0.0]);
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 123);
            for _ in 0..40 {
                let n = 2 + stream.below(4) as usize;
                let weights: Vec<u32> = (0..n).map(|_| 1 + stream.below(9)).collect();
                let sum = f64::from(weights.iter().sum::<u32>());
                let reference: Vec<f64> = weights.iter().map(|w| f64::from(*w) / sum).collect();
                let (rewards, beta) = (numbers(&mut stream, n), f64::from(2 + stream.below(18)) / 4.0);
                row_of_policy(sheet, function, &reference, &rewards, beta, right(&reference, &rewards, beta));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "the reference is left out: that is a softmax of the rewards",
            section: "the-best-policy-on-a-leash",
            function: |_, rewards, beta| softmax(&rewards.iter().map(|r| r / beta).collect::<Vec<_>>()),
        },
        Mistake {
            says: "the rewards are multiplied by beta and not divided: a tighter leash would let it go further",
            section: "the-best-policy-on-a-leash",
            function: |reference, rewards, beta| tilted(reference, rewards, beta),
        },
        Mistake {
            says: "the weights are not divided by their sum",
            section: "the-best-policy-on-a-leash",
            function: |reference, rewards, beta| reference.iter().zip(rewards).map(|(p, r)| p * (r / beta).exp()).collect(),
        },
        Mistake {
            says: "beta is left out",
            section: "the-best-policy-on-a-leash",
            function: |reference, rewards, _| tilted(reference, rewards, 1.0),
        },
        Mistake {
            says: "the exponential overflows, and infinite divided by infinite is not a number",
            section: "the-best-policy-on-a-leash",
            function: |reference, rewards, beta| {
                let weights: Vec<f64> = reference.iter().zip(rewards).map(|(p, r)| p * (r / beta).exp()).collect();
                let sum: f64 = weights.iter().sum();
                weights.into_iter().map(|weight| weight / sum).collect()
            },
        },
        Mistake {
            says: "the sign is wrong: a high reward makes a completion less likely",
            section: "the-best-policy-on-a-leash",
            function: |reference, rewards, beta| tilted(reference, rewards, -1.0 / beta),
        },
        Mistake {
            says: "all goes to the completion with the highest reward: that is the best policy without a leash",
            section: "the-best-policy-on-a-leash",
            function: |reference, rewards, _| {
                let largest = rewards.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let first = rewards.iter().position(|r| *r == largest);
                (0..reference.len()).map(|i| if Some(i) == first { 1.0 } else { 0.0 }).collect()
            },
        },
    ],
};

// 12.4

fn row_of_dpo(sheet: &mut Sheet, function: DpoLoss, chosen: [f64; 2], rejected: [f64; 2], beta: f64, expected: f64) {
    let place = format!("dpo_loss(chosen = {}, rejected = {}, beta = {beta})", list(&chosen), list(&rejected));
    sheet.row(place, expected, || function(chosen, rejected, beta));
}

static DPO_LOSS: Exercise<DpoLoss> = Exercise {
    about: About {
        number: "12.4",
        name: "dpo_loss",
        title: "DPO's loss of a pair",
        section: "dpo",
        hints: &[
            "The score of a completion is beta times its log-ratio: its log-probability in the policy minus that in the reference.",
            "The loss is that of exercise 12.1, of the two scores.",
        ],
    },
    right: |chosen, rejected, beta| softplus_of_minus(beta * ((chosen[0] - chosen[1]) - (rejected[0] - rejected[1]))),
    checks: &[
        |Trial { function, .. }, sheet| {
            row_of_dpo(sheet, function, [-5.0, -5.0], [-9.0, -9.0], 0.1, 2.0_f64.ln());
            // the scores 1/2 2 = 1 and 0
            row_of_dpo(sheet, function, [-4.0, -6.0], [-9.0, -9.0], 0.5, 0.313_262);
            // 0.1 (-10 - 0) = -1
            row_of_dpo(sheet, function, [-20.0, -10.0], [-3.0, -3.0], 0.1, 1.313_262);
            // 0.2 (-5 + 15) = 2
            row_of_dpo(sheet, function, [-15.0, -10.0], [-25.0, -10.0], 0.2, 0.126_928);
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 124);
            for _ in 0..40 {
                let [chosen, rejected] = [0, 1].map(|_| [0, 1].map(|_| -rounded(20.0 * stream.unit_f64()) - 0.01));
                let beta = f64::from(1 + stream.below(10)) / 20.0;
                row_of_dpo(sheet, function, chosen, rejected, beta, right(chosen, rejected, beta));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "the reference is left out: nothing holds the policy",
            section: "dpo",
            function: |chosen, rejected, beta| softplus_of_minus(beta * (chosen[0] - rejected[0])),
        },
        Mistake {
            says: "the sign of the margin is wrong: chosen and rejected are exchanged, or policy and reference",
            section: "dpo",
            function: |chosen, rejected, beta| softplus_of_minus(-beta * ((chosen[0] - chosen[1]) - (rejected[0] - rejected[1]))),
        },
        Mistake {
            says: "beta stands outside of the logarithm",
            section: "dpo",
            function: |chosen, rejected, beta| beta * softplus_of_minus((chosen[0] - chosen[1]) - (rejected[0] - rejected[1])),
        },
        Mistake {
            says: "beta is left out",
            section: "dpo",
            function: |chosen, rejected, _| softplus_of_minus((chosen[0] - chosen[1]) - (rejected[0] - rejected[1])),
        },
        Mistake {
            says: "the log-ratios are added and not subtracted",
            section: "dpo",
            function: |chosen, rejected, beta| softplus_of_minus(beta * ((chosen[0] - chosen[1]) + (rejected[0] - rejected[1]))),
        },
        Mistake {
            says: "the minus is missing: it is the log-likelihood, which is to become large",
            section: "dpo",
            function: |chosen, rejected, beta| -softplus_of_minus(beta * ((chosen[0] - chosen[1]) - (rejected[0] - rejected[1]))),
        },
        Mistake {
            says: "log-probabilities are divided by each other: a difference of logarithms is the logarithm of a ratio",
            section: "dpo",
            function: |chosen, rejected, beta| softplus_of_minus(beta * (chosen[0] / chosen[1] - rejected[0] / rejected[1])),
        },
        Mistake {
            says: "the logarithm is taken once more: the inputs are logarithms already",
            section: "dpo",
            function: |chosen, rejected, beta| {
                let score = |[policy, reference]: [f64; 2]| beta * (policy / reference).ln();
                softplus_of_minus(score(chosen) - score(rejected))
            },
        },
        Mistake {
            says: "it is the margin of the two scores, with a minus, and not the logarithm of its sigma",
            section: "dpo",
            function: |chosen, rejected, beta| -beta * ((chosen[0] - chosen[1]) - (rejected[0] - rejected[1])),
        },
    ],
};

// 12.5

/// The places of the completions, from the lowest score to the highest.
fn by_score(scores: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|a, b| scores[*a].total_cmp(&scores[*b]));
    order
}

/// The number of ways to choose k of n.
fn ways(n: usize, k: usize) -> f64 {
    if k > n { 0.0 } else { (0..k).map(|i| (n - i) as f64 / (k - i) as f64).product() }
}

/// The mean over all choices of n of what is best by `judge`.
fn best_by(judge: &[f64], rewards: &[f64], n: usize) -> f64 {
    by_score(judge).into_iter().enumerate().map(|(below, i)| ways(below, n - 1) * rewards[i]).sum::<f64>() / ways(rewards.len(), n)
}

fn row_of_best(sheet: &mut Sheet, function: BestOfN, scores: &[f64], rewards: &[f64], n: usize, expected: f64) {
    let place = format!("best_of_n(scores = {}, rewards = {}, n = {n})", list(scores), list(rewards));
    sheet.row(place, expected, || function(scores, rewards, n));
}

static BEST_OF_N: Exercise<BestOfN> = Exercise {
    about: About {
        number: "12.5",
        name: "best_of_n",
        title: "the price of a wrong judge",
        section: "over-optimisation",
        hints: &[
            "Think of all ways to choose n of the completions. In each, the one with the highest score is taken, and its true reward counts.",
            "Sort by score. A completion with k others below it is the best of C(k, n - 1) choices: n - 1 of those below. In all there are C(N, n).",
            "C(k, m) = k / m * (k - 1) / (m - 1) * ... * (k - m + 1) / 1, and 0 if m > k. Going through all choices by loops is right, too.",
        ],
    },
    right: best_by,
    checks: &[
        |Trial { function, .. }, sheet| {
            let (scores, rewards) = ([1.0, 2.0, 3.0], [10.0, 20.0, 0.0]);
            row_of_best(sheet, function, &scores, &rewards, 1, 10.0);
            row_of_best(sheet, function, &scores, &rewards, 2, 20.0 / 3.0); // 20, 0 and 0
            row_of_best(sheet, function, &scores, &rewards, 3, 0.0);
            // the choices {8, 5}, {8, 6}, {8, 7} and {5, 6}, {5, 7}, {6, 7}
            row_of_best(sheet, function, &[8.0, 5.0, 6.0, 7.0], &[1.0, 2.0, 3.0, 4.0], 2, (3.0 + 3.0 + 2.0 * 4.0) / 6.0);
            row_of_best(sheet, function, &[5.0], &[2.0], 1, 2.0);
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 125);
            for _ in 0..30 {
                let all = 2 + stream.below(7) as usize;
                let (scores, rewards) = (distinct(&mut stream, all), distinct(&mut stream, all));
                let n = 1 + stream.below(all as u32) as usize;
                row_of_best(sheet, function, &scores, &rewards, n, right(&scores, &rewards, n));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "the best by the true reward is taken, and not the best by the score: such a judge cannot be wrong",
            section: "over-optimisation",
            function: |_, rewards, n| best_by(rewards, rewards, n),
        },
        Mistake {
            says: "the score of the best is returned, and not its true reward",
            section: "over-optimisation",
            function: |scores, _, n| best_by(scores, scores, n),
        },
        Mistake {
            says: "completions are chosen with replacement: the same one may be among the n twice",
            section: "over-optimisation",
            function: |scores, rewards, n| {
                let all = rewards.len() as f64;
                let share = |k: usize| (k as f64 / all).powi(n as i32);
                by_score(scores).into_iter().enumerate().map(|(below, i)| (share(below + 1) - share(below)) * rewards[i]).sum()
            },
        },
        Mistake {
            says: "the lowest score is taken",
            section: "over-optimisation",
            function: |scores, rewards, n| best_by(&scores.iter().map(|s| -s).collect::<Vec<_>>(), rewards, n),
        },
        Mistake {
            says: "only the first n are looked at, and not all choices of n",
            section: "over-optimisation",
            function: |scores, rewards, n| by_score(&scores[..n]).last().map_or(0.0, |i| rewards[*i]),
        },
        Mistake {
            says: "it is the mean of the n with the highest scores",
            section: "over-optimisation",
            function: |scores, rewards, n| by_score(scores).iter().rev().take(n).map(|i| rewards[*i]).sum::<f64>() / n as f64,
        },
        Mistake {
            says: "the sum is not divided by the number of choices",
            section: "over-optimisation",
            function: |scores, rewards, n| best_by(scores, rewards, n) * ways(rewards.len(), n),
        },
        Mistake {
            says: "the mean of all true rewards is returned",
            section: "over-optimisation",
            function: |_, rewards, _| rewards.iter().sum::<f64>() / rewards.len() as f64,
        },
        Mistake {
            says: "the completions are not sorted by score: the last ones of the list count most",
            section: "over-optimisation",
            function: |scores, rewards, n| {
                let places: Vec<f64> = (0..scores.len()).map(|i| i as f64).collect();
                best_by(&places, rewards, n)
            },
        },
        Mistake {
            says: "the completion with the highest score of all is taken, whatever n is",
            section: "over-optimisation",
            function: |scores, rewards, _| by_score(scores).last().map_or(0.0, |i| rewards[*i]),
        },
    ],
};
