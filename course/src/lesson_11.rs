//! Lesson 11: a text is a Markov decision process.

use crate::exercise::{About, Exercise, Mistake, Trial};
use crate::inputs::{normals, number, rounded, share, stream};
use crate::lesson_6::{LN_3, log_softmax, softmax};
use crate::lessons::lesson;
use crate::sheet::{Sheet, list, rows};

/// Returns the log-probability of a token from the logits, the token, and the temperature.
pub type TokenLogProb = fn(&[f64], usize, f64) -> f64;
/// Returns the log-probability of a completion from the log-probabilities of the tokens of a text, and which are the completion's.
pub type CompletionLogProb = fn(&[f64], &[bool]) -> f64;
/// Returns the advantages of a group of completions from their rewards.
pub type GroupAdvantages = fn(&[f64]) -> Vec<f64>;
/// Returns the objective from the log-ratios of the tokens of each completion, the advantages, and the clip range.
pub type GrpoObjective = fn(&[Vec<f64>], &[f64], f64) -> f64;
/// Returns the advantage of each token from the values before the tokens, the reward of the text, and lambda.
pub type TokenAdvantages = fn(&[f64], f64, f64) -> Vec<f64>;

lesson!("11", "a text is a Markov decision process", {
    token_log_prob: TokenLogProb = TOKEN_LOG_PROB,
    completion_log_prob: CompletionLogProb = COMPLETION_LOG_PROB,
    group_advantages: GroupAdvantages = GROUP_ADVANTAGES,
    grpo_objective: GrpoObjective = GRPO_OBJECTIVE,
    token_advantages: TokenAdvantages = TOKEN_ADVANTAGES,
});

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

// 11.1

fn scaled(logits: &[f64], by: f64) -> Vec<f64> {
    logits.iter().map(|z| z * by).collect()
}

static TOKEN_LOG_PROB: Exercise<TokenLogProb> = Exercise {
    about: About {
        number: "11.1",
        name: "token_log_prob",
        title: "the policy that was sampled from",
        section: "tokens-are-actions",
        hints: &[
            "Divide the logits by the temperature; the token is then drawn from the softmax of these numbers.",
            "The log-probability is the scaled logit of the token minus the logarithm of the sum of all exponentials (the log-softmax).",
            "Subtract the largest of the scaled logits from all of them first, so that no exponential overflows.",
        ],
    },
    right: |logits, token, temperature| log_softmax(&scaled(logits, 1.0 / temperature))[token],
    checks: &[
        |Trial { function, .. }, sheet| {
            for (logits, token, temperature, expected) in [
                (&[0.0, LN_3][..], 1, 1.0, -0.287_682),      // ln 3/4
                (&[0.0, LN_3], 1, 0.5, -0.105_361),          // 9 to 1
                (&[0.0, LN_3], 0, 0.5, -(10.0_f64.ln())),    // ln 1/10
                (&[0.0, LN_3], 1, 2.0, -0.455_746),          // the root of 3 to 1
                (&[1.0, 1.0, 1.0, 1.0], 2, 0.7, -1.386_294), // ln 1/4
                (&[800.0, 0.0], 1, 1.0, -800.0),
            ] {
                let place = format!("token_log_prob(logits = {}, token = {token}, temperature = {temperature})", list(logits));
                sheet.row(place, expected, || function(logits, token, temperature));
            }
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 111);
            for _ in 0..40 {
                let n = 2 + stream.below(5) as usize;
                let logits = normals(&mut stream, n);
                let (token, temperature) = (stream.below(n as u32) as usize, f64::from(2 + stream.below(20)) / 10.0);
                let place = format!("token_log_prob(logits = {}, token = {token}, temperature = {temperature})", list(&logits));
                sheet.row(place, right(&logits, token, temperature), || function(&logits, token, temperature));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "the temperature is left out: the ratio is then not 1 even before the first step",
            section: "tokens-are-actions",
            function: |logits, token, _| log_softmax(logits)[token],
        },
        Mistake {
            says: "the log-probability is divided by the temperature, and not the logits: the exponentials of such numbers do not add up to 1",
            section: "tokens-are-actions",
            function: |logits, token, temperature| log_softmax(logits)[token] / temperature,
        },
        Mistake {
            says: "the logits are multiplied by the temperature: a low one then makes the policy more random",
            section: "tokens-are-actions",
            function: |logits, token, temperature| log_softmax(&scaled(logits, temperature))[token],
        },
        Mistake {
            says: "the probability is returned and not its logarithm",
            section: "tokens-are-actions",
            function: |logits, token, temperature| softmax(&scaled(logits, 1.0 / temperature))[token],
        },
        Mistake {
            says: "the logarithm is that of a probability that became 0, or an exponential overflows: do not leave the logarithms",
            section: "tokens-are-actions",
            function: |logits, token, temperature| {
                let weights: Vec<f64> = logits.iter().map(|z| (z / temperature).exp()).collect();
                (weights[token] / weights.iter().sum::<f64>()).ln()
            },
        },
        Mistake {
            says: "the sign is wrong",
            section: "tokens-are-actions",
            function: |logits, token, temperature| -log_softmax(&scaled(logits, 1.0 / temperature))[token],
        },
        Mistake {
            says: "the largest logit is subtracted in the sum, but not from the logit of the token",
            section: "tokens-are-actions",
            function: |logits, token, temperature| {
                let scaled = scaled(logits, 1.0 / temperature);
                let largest = scaled.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                log_softmax(&scaled)[token] + largest
            },
        },
        Mistake {
            says: "the scaled logit is returned: the logarithm of the sum is not subtracted",
            section: "tokens-are-actions",
            function: |logits, token, temperature| logits[token] / temperature,
        },
    ],
};

// 11.2

fn words(is_completion: &[bool]) -> String {
    format!("[{}]", is_completion.iter().map(bool::to_string).collect::<Vec<_>>().join(", "))
}

fn of_completion(log_probs: &[f64], is_completion: &[bool]) -> Vec<f64> {
    log_probs.iter().zip(is_completion).filter(|(_, is)| **is).map(|(l, _)| *l).collect()
}

static COMPLETION_LOG_PROB: Exercise<CompletionLogProb> = Exercise {
    about: About {
        number: "11.2",
        name: "completion_log_prob",
        title: "how likely is the whole answer?",
        section: "the-log-derivative-of-a-text",
        hints: &[
            "The probability of an answer is the product over its tokens, so its logarithm is a sum.",
            "The tokens of the prompt were not chosen by the policy, and padding by nobody: only those where is_completion is true count.",
        ],
    },
    right: |log_probs, is_completion| of_completion(log_probs, is_completion).iter().sum(),
    checks: &[
        |Trial { function, .. }, sheet| {
            for (log_probs, is_completion, expected) in [
                (&[-1.0, -2.0, -0.5, -0.25][..], &[false, false, true, true][..], -0.75),
                (&[-3.0, -1.0, -0.5, -9.0], &[false, true, true, false], -1.5), // padding at the end
                (&[-0.5], &[true], -0.5),
                (&[-1.0, -0.5, f64::NEG_INFINITY], &[false, true, false], -0.5), // anything may stand in the padding
                (&[-2.0, -1.0], &[false, false], 0.0),                           // no token at all
            ] {
                let place = format!("completion_log_prob(log_probs = {}, is_completion = {})", list(log_probs), words(is_completion));
                sheet.row(place, expected, || function(log_probs, is_completion));
            }
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 112);
            for _ in 0..40 {
                let [prompt, completion, padding] = [1, 1, 0].map(|least| least + stream.below(4) as usize);
                let log_probs: Vec<f64> = (0..prompt + completion + padding).map(|_| -rounded(3.0 * stream.unit_f64()) - 0.01).collect();
                let is_completion: Vec<bool> = (0..log_probs.len()).map(|t| (prompt..prompt + completion).contains(&t)).collect();
                let place = format!("completion_log_prob(log_probs = {}, is_completion = {})", list(&log_probs), words(&is_completion));
                sheet.row(place, right(&log_probs, &is_completion), || function(&log_probs, &is_completion));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "the prompt and the padding count, too",
            section: "the-log-derivative-of-a-text",
            function: |log_probs, _| log_probs.iter().sum(),
        },
        Mistake {
            says: "the padding counts, too",
            section: "the-log-derivative-of-a-text",
            function: |log_probs, is_completion| {
                let start = is_completion.iter().position(|is| *is).unwrap_or(log_probs.len());
                log_probs[start..].iter().sum()
            },
        },
        Mistake {
            says: "the prompt counts, too",
            section: "the-log-derivative-of-a-text",
            function: |log_probs, is_completion| {
                let end = is_completion.iter().rposition(|is| *is).map_or(0, |last| last + 1);
                log_probs[..end].iter().sum()
            },
        },
        Mistake {
            says: "the last token, the end of the sequence, is left out",
            section: "the-log-derivative-of-a-text",
            function: |log_probs, is_completion| {
                let own = of_completion(log_probs, is_completion);
                own[..own.len().saturating_sub(1)].iter().sum()
            },
        },
        Mistake {
            says: "it is the mean over the completion's tokens: a long answer would be as likely as a short one",
            section: "the-log-derivative-of-a-text",
            function: |log_probs, is_completion| {
                let own = of_completion(log_probs, is_completion);
                own.iter().sum::<f64>() / own.len().max(1) as f64
            },
        },
        Mistake {
            says: "the mask is inverted: it is the log-probability of the prompt and the padding",
            section: "the-log-derivative-of-a-text",
            function: |log_probs, is_completion| log_probs.iter().zip(is_completion).filter(|(_, is)| !**is).map(|(l, _)| l).sum(),
        },
        Mistake {
            says: "the mask is one place off: the last token of the prompt counts, and the last one of the completion does not",
            section: "the-log-derivative-of-a-text",
            function: |log_probs, is_completion| log_probs.iter().zip(&is_completion[1..]).filter(|(_, is)| **is).map(|(l, _)| l).sum(),
        },
        Mistake {
            says: "only the last token counts",
            section: "the-log-derivative-of-a-text",
            function: |log_probs, is_completion| of_completion(log_probs, is_completion).last().copied().unwrap_or(0.0),
        },
        Mistake {
            says: "the probability is returned and not its logarithm",
            section: "the-log-derivative-of-a-text",
            function: |log_probs, is_completion| of_completion(log_probs, is_completion).iter().sum::<f64>().exp(),
        },
    ],
};

// 11.3

/// What GRPO adds to the standard deviation.
const EPSILON: f64 = 1e-4;

/// The advantages, with the divisor from the sum of squares and the number of completions.
fn standardised(rewards: &[f64], divisor: fn(f64, f64) -> f64) -> Vec<f64> {
    let centre = mean(rewards);
    let squares = rewards.iter().map(|r| (r - centre).powi(2)).sum::<f64>();
    rewards.iter().map(|r| (r - centre) / divisor(squares, rewards.len() as f64)).collect()
}

static GROUP_ADVANTAGES: Exercise<GroupAdvantages> = Exercise {
    about: About {
        number: "11.3",
        name: "group_advantages",
        title: "the group is the critic",
        section: "groups",
        hints: &[
            "Subtract the mean of the group from each reward, and divide by the standard deviation of the group plus 1e-4.",
            "The standard deviation is that of the population: the root of the mean of the squared differences from the mean.",
            "A group whose rewards are all the same gets zeros; the 1e-4 keeps 0 / 0 away.",
        ],
    },
    right: |rewards| standardised(rewards, |squares, n| (squares / n).sqrt() + EPSILON),
    checks: &[
        |Trial { function, .. }, sheet| {
            for (rewards, expected) in [
                (&[1.0, 0.8, 0.4, 0.2][..], &[1.264_511, 0.632_256, -0.632_256, -1.264_511][..]),
                (&[1.0, 0.0], &[0.999_800, -0.999_800]),
                (&[0.5, 0.5, 0.5], &[0.0, 0.0, 0.0]),
                (&[1.0, 0.0, 0.0, 0.0], &[1.731_651, -0.577_217, -0.577_217, -0.577_217]),
                (&[3.0], &[0.0]),
            ] {
                sheet.row(format!("group_advantages(rewards = {})", list(rewards)), expected, || function(rewards));
            }
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 113);
            for _ in 0..40 {
                let n = 2 + stream.below(7) as usize;
                let rewards: Vec<f64> = (0..n).map(|_| f64::from(stream.below(11)) / 10.0).collect();
                sheet.row(format!("group_advantages(rewards = {})", list(&rewards)), right(&rewards), || function(&rewards));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "the squares are divided by n - 1: that is the standard deviation of a sample, as in TRL and verl, and not that of the population",
            section: "groups",
            function: |rewards| standardised(rewards, |squares, n| (squares / (n - 1.0).max(1.0)).sqrt() + EPSILON),
        },
        Mistake {
            says: "nothing is divided by the standard deviation: that is Dr. GRPO",
            section: "groups",
            function: |rewards| standardised(rewards, |_, _| 1.0),
        },
        Mistake {
            says: "the 1e-4 is missing: a group whose rewards are all the same gives 0 / 0",
            section: "groups",
            function: |rewards| standardised(rewards, |squares, n| (squares / n).sqrt()),
        },
        Mistake {
            says: "the sign is wrong: what is better than usual becomes less likely",
            section: "groups",
            function: |rewards| standardised(rewards, |squares, n| -((squares / n).sqrt() + EPSILON)),
        },
        Mistake {
            says: "only the mean is divided: r - mean / std needs parentheses around the difference",
            section: "groups",
            function: |rewards| {
                let centre = mean(rewards);
                let std = (rewards.iter().map(|r| (r - centre).powi(2)).sum::<f64>() / rewards.len() as f64).sqrt();
                rewards.iter().map(|r| r - centre / (std + EPSILON)).collect()
            },
        },
        Mistake {
            says: "the squares are added up and not averaged before the root",
            section: "groups",
            function: |rewards| standardised(rewards, |squares, _| squares.sqrt() + EPSILON),
        },
        Mistake {
            says: "it is divided by the variance and not by its root",
            section: "groups",
            function: |rewards| standardised(rewards, |squares, n| squares / n + EPSILON),
        },
        Mistake {
            says: "the 1e-4 is under the root",
            section: "groups",
            function: |rewards| standardised(rewards, |squares, n| (squares / n + EPSILON).sqrt()),
        },
        Mistake {
            says: "the mean is not subtracted: every completion with a reward becomes likelier",
            section: "groups",
            function: |rewards| {
                let centre = mean(rewards);
                let std = (rewards.iter().map(|r| (r - centre).powi(2)).sum::<f64>() / rewards.len() as f64).sqrt();
                rewards.iter().map(|r| r / (std + EPSILON)).collect()
            },
        },
        Mistake {
            says: "the mean of the others is subtracted, and nothing divided: that is RLOO",
            section: "groups",
            function: |rewards| standardised(rewards, |_, n| (n - 1.0).max(1.0) / n),
        },
    ],
};

// 11.4

fn pulled(log_ratio: f64, advantage: f64, clip: f64) -> f64 {
    let ratio = log_ratio.exp();
    (ratio * advantage).min(ratio.clamp(1.0 - clip, 1.0 + clip) * advantage)
}

/// The terms of all tokens, a list for each completion.
fn terms(log_ratios: &[Vec<f64>], advantages: &[f64], of: impl Fn(f64, f64) -> f64) -> Vec<Vec<f64>> {
    log_ratios.iter().zip(advantages).map(|(ratios, a)| ratios.iter().map(|d| of(*d, *a)).collect()).collect()
}

fn mean_of_means(terms: &[Vec<f64>]) -> f64 {
    mean(&terms.iter().map(|terms| mean(terms)).collect::<Vec<_>>())
}

fn row_of_objective(sheet: &mut Sheet, function: GrpoObjective, log_ratios: &[Vec<f64>], advantages: &[f64], clip: f64, expected: f64) {
    let place = format!("grpo_objective(log_ratios = {}, advantages = {}, clip = {clip})", rows(log_ratios), list(advantages));
    sheet.row(place, expected, || function(log_ratios, advantages, clip));
}

static GRPO_OBJECTIVE: Exercise<GrpoObjective> = Exercise {
    about: About {
        number: "11.4",
        name: "grpo_objective",
        title: "GRPO's objective",
        section: "grpo",
        hints: &[
            "Each token has its own ratio, the exponential of its log-ratio; all tokens of a completion have its advantage.",
            "The term of a token is exercise 9.1: min(ratio * advantage, ratio held between 1 - clip and 1 + clip, times the advantage).",
            "First the mean over the tokens of each completion, then the mean of these means.",
        ],
    },
    right: |log_ratios, advantages, clip| mean_of_means(&terms(log_ratios, advantages, |d, a| pulled(d, a, clip))),
    checks: &[
        |Trial { function, .. }, sheet| {
            let ln = f64::ln;
            row_of_objective(sheet, function, &[vec![0.0], vec![0.0, 0.0, 0.0]], &[2.0, -1.0], 0.2, 0.5);
            // 1.2, clipped, and 1.1
            row_of_objective(sheet, function, &[vec![ln(1.5), ln(1.1)]], &[1.0], 0.2, 1.15);
            // the second is not clipped: it became likelier and was bad
            row_of_objective(sheet, function, &[vec![ln(1.5)], vec![ln(1.5), 0.0]], &[2.0, -2.0], 0.2, -0.05);
            // -1.6, clipped, and -2
            row_of_objective(sheet, function, &[vec![ln(0.5), 0.0]], &[-2.0], 0.2, -1.8);
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 114);
            for _ in 0..40 {
                let n = 1 + stream.below(3) as usize;
                let log_ratios: Vec<Vec<f64>> =
                    (0..n).map(|_| (0..1 + stream.below(4)).map(|_| rounded(1.2 * stream.unit_f64() - 0.6)).collect()).collect();
                let advantages: Vec<f64> = (0..n).map(|_| number(&mut stream)).collect();
                let clip = f64::from(1 + stream.below(3)) / 10.0;
                row_of_objective(sheet, function, &log_ratios, &advantages, clip, right(&log_ratios, &advantages, clip));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "it is the mean over all tokens: long completions count more (DAPO's objective)",
            section: "the-mean-over-what",
            function: |log_ratios, advantages, clip| mean(&terms(log_ratios, advantages, |d, a| pulled(d, a, clip)).concat()),
        },
        Mistake {
            says: "the terms of a completion are added up and not averaged",
            section: "the-mean-over-what",
            function: |log_ratios, advantages, clip| {
                terms(log_ratios, advantages, |d, a| pulled(d, a, clip)).concat().iter().sum::<f64>() / log_ratios.len() as f64
            },
        },
        Mistake {
            says: "there is no clip",
            section: "grpo",
            function: |log_ratios, advantages, _| mean_of_means(&terms(log_ratios, advantages, |d, a| d.exp() * a)),
        },
        Mistake {
            says: "the ratio is always clipped: the minimum is missing",
            section: "grpo",
            function: |log_ratios, advantages, clip| {
                mean_of_means(&terms(log_ratios, advantages, |d, a| d.exp().clamp(1.0 - clip, 1.0 + clip) * a))
            },
        },
        Mistake {
            says: "a completion has one ratio, the exponential of the mean log-ratio: that is GSPO",
            section: "grpo",
            function: |log_ratios, advantages, clip| {
                let whole: Vec<Vec<f64>> = log_ratios.iter().map(|ratios| vec![mean(ratios)]).collect();
                mean_of_means(&terms(&whole, advantages, |d, a| pulled(d, a, clip)))
            },
        },
        Mistake {
            says: "a completion has one ratio, the exponential of the sum of its log-ratios: that of the whole text",
            section: "grpo",
            function: |log_ratios, advantages, clip| {
                let whole: Vec<Vec<f64>> = log_ratios.iter().map(|ratios| vec![ratios.iter().sum()]).collect();
                mean_of_means(&terms(&whole, advantages, |d, a| pulled(d, a, clip)))
            },
        },
        Mistake {
            says: "the larger of the two terms is taken",
            section: "grpo",
            function: |log_ratios, advantages, clip| {
                mean_of_means(&terms(log_ratios, advantages, |d, a| (d.exp() * a).max(d.exp().clamp(1.0 - clip, 1.0 + clip) * a)))
            },
        },
        Mistake {
            says: "the smaller ratio is taken, before it is multiplied by the advantage: wrong where that is negative",
            section: "grpo",
            function: |log_ratios, advantages, clip| {
                mean_of_means(&terms(log_ratios, advantages, |d, a| d.exp().min(d.exp().clamp(1.0 - clip, 1.0 + clip)) * a))
            },
        },
        Mistake {
            says: "the means of the completions are added up and not averaged",
            section: "grpo",
            function: |log_ratios, advantages, clip| {
                mean_of_means(&terms(log_ratios, advantages, |d, a| pulled(d, a, clip))) * log_ratios.len() as f64
            },
        },
        Mistake {
            says: "the log-ratio is taken for the ratio: its exponential is missing",
            section: "grpo",
            function: |log_ratios, advantages, clip| {
                mean_of_means(&terms(log_ratios, advantages, |d, a| (d * a).min(d.clamp(1.0 - clip, 1.0 + clip) * a)))
            },
        },
        Mistake {
            says: "the sign is that of a loss",
            section: "grpo",
            function: |log_ratios, advantages, clip| -mean_of_means(&terms(log_ratios, advantages, |d, a| pulled(d, a, clip))),
        },
    ],
};

// 11.5

/// GAE without a discount, from the reward of each token and the value after the last one.
fn gae(values: &[f64], reward: impl Fn(usize) -> f64, after: f64, lambda: f64) -> Vec<f64> {
    let (mut advantages, mut later, mut next) = (vec![0.0; values.len()], 0.0, after);
    for t in (0..values.len()).rev() {
        later = reward(t) + next - values[t] + lambda * later;
        (advantages[t], next) = (later, values[t]);
    }
    advantages
}

fn at_the_end(values: &[f64], reward: f64) -> impl Fn(usize) -> f64 {
    let last = values.len() - 1;
    move |t| if t == last { reward } else { 0.0 }
}

fn row_of_tokens(sheet: &mut Sheet, function: TokenAdvantages, values: &[f64], reward: f64, lambda: f64, expected: Vec<f64>) {
    let place = format!("token_advantages(values = {}, reward = {reward}, lambda = {lambda})", list(values));
    sheet.row(place, expected, || function(values, reward, lambda));
}

static TOKEN_ADVANTAGES: Exercise<TokenAdvantages> = Exercise {
    about: About {
        number: "11.5",
        name: "token_advantages",
        title: "PPO's advantages on tokens",
        section: "with-a-critic",
        hints: &[
            "It is GAE (exercise 8.1) without a discount. The reward of all tokens but the last is 0.",
            "The TD error of a token is the value after it minus the value before it; of the last one, the reward minus its value.",
            "From the back: the advantage is the TD error plus lambda times the advantage of the next token.",
        ],
    },
    right: |values, reward, lambda| gae(values, at_the_end(values, reward), 0.0, lambda),
    checks: &[
        |Trial { function, .. }, sheet| {
            // TD errors 0.05 and 0.2; 0.05 + 0.95 0.2 = 0.24
            row_of_tokens(sheet, function, &[0.25, 0.3], 0.5, 0.95, vec![0.24, 0.2]);
            // TD errors 2, -1 and 1
            row_of_tokens(sheet, function, &[1.0, 3.0, 2.0], 3.0, 0.0, vec![2.0, -1.0, 1.0]);
            row_of_tokens(sheet, function, &[1.0, 3.0, 2.0], 3.0, 1.0, vec![2.0, 0.0, 1.0]);
            row_of_tokens(sheet, function, &[1.0, 3.0, 2.0], 3.0, 0.5, vec![1.75, -0.5, 1.0]);
            row_of_tokens(sheet, function, &[0.5], 1.0, 0.9, vec![0.5]);
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 115);
            for _ in 0..40 {
                let n = 1 + stream.below(6) as usize;
                let values: Vec<f64> = (0..n).map(|_| number(&mut stream)).collect();
                let (reward, lambda) = (number(&mut stream), share(&mut stream));
                row_of_tokens(sheet, function, &values, reward, lambda, right(&values, reward, lambda));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "the reward is paid at every token",
            section: "with-a-critic",
            function: |values, reward, lambda| gae(values, |_| reward, 0.0, lambda),
        },
        Mistake {
            says: "the last value is used once more after the end, where nothing follows, or is not subtracted",
            section: "with-a-critic",
            function: |values, reward, lambda| gae(values, at_the_end(values, reward), values[values.len() - 1], lambda),
        },
        Mistake {
            says: "lambda is left out: it is the reward minus the value of each token",
            section: "with-a-critic",
            function: |values, reward, _| values.iter().map(|value| reward - value).collect(),
        },
        Mistake {
            says: "only the TD error of the token itself counts, and the later ones are missing",
            section: "with-a-critic",
            function: |values, reward, _| gae(values, at_the_end(values, reward), 0.0, 0.0),
        },
        Mistake {
            says: "the reward is paid at the first token",
            section: "with-a-critic",
            function: |values, reward, lambda| gae(values, |t| if t == 0 { reward } else { 0.0 }, 0.0, lambda),
        },
        Mistake {
            says: "the reward is missing",
            section: "with-a-critic",
            function: |values, _, lambda| gae(values, |_| 0.0, 0.0, lambda),
        },
        Mistake {
            says: "there is a discount of 0.99",
            section: "with-a-critic",
            function: |values, reward, lambda| {
                let (mut advantages, mut later, mut next) = (vec![0.0; values.len()], 0.0, 0.0);
                for t in (0..values.len()).rev() {
                    later = at_the_end(values, reward)(t) + 0.99 * next - values[t] + 0.99 * lambda * later;
                    (advantages[t], next) = (later, values[t]);
                }
                advantages
            },
        },
        Mistake {
            says: "the values are added again: these are the targets of the critic",
            section: "with-a-critic",
            function: |values, reward, lambda| {
                gae(values, at_the_end(values, reward), 0.0, lambda).iter().zip(values).map(|(a, v)| a + v).collect()
            },
        },
        Mistake {
            says: "every token gets the reward: that is REINFORCE without a baseline",
            section: "with-a-critic",
            function: |values, reward, _| vec![reward; values.len()],
        },
    ],
};
