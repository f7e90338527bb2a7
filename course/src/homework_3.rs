//! Homework 3: language.

use crate::exercise::{About, Exercise, Mistake, Trial};
use crate::inputs::{distinct, normals, number, stream};
use crate::lesson_6::softmax;
use crate::lessons::lesson;
use crate::sheet::{Sheet, list, rows};

/// Returns the probabilities that are left from the logits and the share to keep.
pub type TopP = fn(&[f64], f64) -> Vec<f64>;
/// Returns the loss of a ranking from the scores, the best first.
pub type RankingLoss = fn(&[f64]) -> f64;
/// Returns the next coefficient from the present one, the divergence, its target, the number of texts, and the horizon.
pub type AdaptiveBeta = fn(f64, f64, f64, usize, f64) -> f64;
/// Returns the advantage of each token from the rewards of the steps and the tokens at which they end, of each completion, and the lengths.
pub type ProcessAdvantages = fn(&[Vec<f64>], &[Vec<usize>], &[usize]) -> Vec<Vec<f64>>;

lesson!("h3", "language", {
    top_p: TopP = TOP_P,
    ranking_loss: RankingLoss = RANKING_LOSS,
    adaptive_beta: AdaptiveBeta = ADAPTIVE_BETA,
    process_advantages: ProcessAdvantages = PROCESS_ADVANTAGES,
});

// h3.1

/// Keeps tokens from the likeliest on, as long as `keeps` says so of the sum before the token and after it; divides by the sum if `divides`.
fn kept(logits: &[f64], keeps: impl Fn(f64, f64) -> bool, divides: bool) -> Vec<f64> {
    let all = softmax(logits);
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by(|a, b| all[*b].total_cmp(&all[*a]));
    let (mut sum, mut left) = (0.0, vec![0.0; all.len()]);
    for (rank, token) in order.into_iter().enumerate() {
        if rank > 0 && !keeps(sum, sum + all[token]) {
            break;
        }
        left[token] = all[token];
        sum += all[token];
    }
    left.iter().map(|p| if divides { p / sum } else { *p }).collect()
}

/// Draws logits and a share that no sum of probabilities comes near to.
fn any_choice(stream: &mut gradus_base::random::Stream) -> (Vec<f64>, f64) {
    loop {
        let n = 3 + stream.below(5) as usize;
        let (logits, p) = (normals(stream, n), f64::from(1 + stream.below(19)) / 20.0);
        let mut sorted = softmax(&logits);
        sorted.sort_by(|a, b| b.total_cmp(a));
        let is_far = |(sum, ok): (f64, bool), q: &f64| (sum + q, ok && (sum + q - p).abs() > 0.005);
        let differ = sorted.windows(2).all(|pair| pair[0] - pair[1] > 1e-3);
        if sorted.iter().fold((0.0, differ), is_far).1 {
            return (logits, p);
        }
    }
}

static TOP_P: Exercise<TopP> = Exercise {
    about: About { number: "h3.1", name: "top_p", title: "the nucleus", section: "sampling", hints: &[] },
    right: |logits, p| kept(logits, |before, _| before < p, true),
    checks: &[
        |Trial { function, .. }, sheet| {
            let ln = |numbers: &[f64]| numbers.iter().map(|x| f64::ln(*x)).collect::<Vec<_>>();
            for (weights, p, expected) in [
                (&[0.1, 0.5, 0.4][..], 0.8, &[0.0, 5.0 / 9.0, 4.0 / 9.0][..]),
                (&[0.1, 0.5, 0.4], 0.3, &[0.0, 1.0, 0.0]),
                (&[0.1, 0.5, 0.4], 0.95, &[0.1, 0.5, 0.4]),
                (&[0.1, 0.5, 0.4], 1.0, &[0.1, 0.5, 0.4]),
                (&[0.1, 0.5, 0.4], 0.0, &[0.0, 1.0, 0.0]), // one token is always kept
            ] {
                let logits = ln(weights);
                sheet.row(format!("top_p(logits = {}, p = {p})", list(&logits)), expected, || function(&logits, p));
            }
            sheet.row("top_p(logits = [1000, 0], p = 0.9)", vec![1.0, 0.0], || function(&[1000.0, 0.0], 0.9));
            // which two is not said
            sheet.row("top_p(logits = [0, 0, 0, 0], p = 0.5), sorted", vec![0.0, 0.0, 0.5, 0.5], || {
                let mut kept = function(&[0.0; 4], 0.5);
                kept.sort_by(f64::total_cmp);
                kept
            });
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 3001);
            for _ in 0..40 {
                let (logits, p) = any_choice(&mut stream);
                sheet.row(format!("top_p(logits = {}, p = {p})", list(&logits)), right(&logits, p), || function(&logits, p));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "the token with which the sum reaches p is left out",
            section: "sampling",
            function: |logits, p| kept(logits, |_, after| after <= p, true),
        },
        Mistake {
            says: "what is left is not divided by its sum",
            section: "sampling",
            function: |logits, p| kept(logits, |before, _| before < p, false),
        },
        Mistake {
            says: "tokens with a probability of at least p are kept",
            section: "sampling",
            function: |logits, p| {
                let all = softmax(logits);
                let largest = all.iter().copied().fold(0.0, f64::max);
                let left: Vec<f64> = all.iter().map(|q| if *q >= p.min(largest) { *q } else { 0.0 }).collect();
                let sum: f64 = left.iter().sum();
                left.iter().map(|q| q / sum).collect()
            },
        },
        Mistake { says: "nothing is cut", section: "sampling", function: |logits, _| softmax(logits) },
        Mistake {
            says: "the unlikeliest tokens are kept",
            section: "sampling",
            function: |logits, p| {
                let all = softmax(logits);
                let own = kept(logits, |before, _| before < 1.0 - p, false);
                let left: Vec<f64> = all.iter().zip(own).map(|(all, own)| if own > 0.0 { 0.0 } else { *all }).collect();
                let sum = left.iter().sum::<f64>().max(1e-300);
                left.iter().map(|q| q / sum).collect()
            },
        },
    ],
};

// h3.2

fn log_sum(scores: &[f64]) -> f64 {
    let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    largest + scores.iter().map(|s| (s - largest).exp()).sum::<f64>().ln()
}

fn ranked(scores: &[f64]) -> f64 {
    (0..scores.len()).map(|i| log_sum(&scores[i..]) - scores[i]).sum()
}

static RANKING_LOSS: Exercise<RankingLoss> = Exercise {
    about: About { number: "h3.2", name: "ranking_loss", title: "a ranking of several answers", section: "rankings", hints: &[] },
    right: ranked,
    checks: &[
        |Trial { function, .. }, sheet| {
            for (scores, expected) in [
                (&[0.0, 0.0][..], 2.0_f64.ln()),
                (&[1.0, 0.0], 0.313_262),
                (&[0.0, 0.0, 0.0], 1.791_759), // ln 3 + ln 2
                (&[2.0, 1.0, 0.0], 0.720_868), // 0.407606 + 0.313262
                (&[5.0], 0.0),
                (&[0.0, 800.0], 800.0),
                (&[800.0, 0.0], 0.0),
            ] {
                sheet.row(format!("ranking_loss(scores = {})", list(scores)), expected, || function(scores));
            }
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 3002);
            for _ in 0..40 {
                let n = 2 + stream.below(4) as usize;
                let scores = normals(&mut stream, n);
                sheet.row(format!("ranking_loss(scores = {})", list(&scores)), right(&scores), || function(&scores));
            }
        },
    ],
    mistakes: &[
        Mistake { says: "only the first choice counts", section: "rankings", function: |scores| log_sum(scores) - scores[0] },
        Mistake {
            says: "it is the sum over all pairs: another model",
            section: "rankings",
            function: |scores| {
                let pair = |i: usize, j: usize| log_sum(&[scores[i], scores[j]]) - scores[i];
                (0..scores.len()).flat_map(|i| (i + 1..scores.len()).map(move |j| pair(i, j)).collect::<Vec<_>>()).sum()
            },
        },
        Mistake {
            says: "each choice is among all, also those that were chosen before",
            section: "rankings",
            function: |scores| scores.iter().map(|s| log_sum(scores) - s).sum(),
        },
        Mistake {
            says: "the worst comes first",
            section: "rankings",
            function: |scores| ranked(&scores.iter().rev().copied().collect::<Vec<_>>()),
        },
        Mistake {
            says: "the exponentials overflow",
            section: "rankings",
            function: |scores| (0..scores.len()).map(|i| scores[i..].iter().map(|s| s.exp()).sum::<f64>().ln() - scores[i]).sum(),
        },
        Mistake { says: "the sign is that of the log-likelihood", section: "rankings", function: |scores| -ranked(scores) },
    ],
};

// h3.3

fn adapted(beta: f64, error: f64, limit: f64, share: f64) -> f64 {
    beta * (1.0 + error.clamp(-limit, limit) * share)
}

static ADAPTIVE_BETA: Exercise<AdaptiveBeta> = Exercise {
    about: About { number: "h3.3", name: "adaptive_beta", title: "a leash that adapts", section: "adaptive", hints: &[] },
    right: |beta, kl, target, n, horizon| adapted(beta, kl / target - 1.0, 0.2, n as f64 / horizon),
    checks: &[
        |Trial { function, .. }, sheet| {
            for (beta, kl, target, n, horizon, expected) in [
                (1.0, 9.0, 6.0, 64, 10_000.0, 1.001_28), // 0.5 is held to 0.2
                (2.0, 6.0, 6.0, 64, 1_000.0, 2.0),
                (1.0, 0.0, 6.0, 100, 1_000.0, 0.98),
                (0.5, 6.3, 6.0, 500, 1_000.0, 0.5125),
            ] {
                let place = format!("adaptive_beta(beta = {beta}, kl = {kl}, target = {target}, texts = {n}, horizon = {horizon})");
                sheet.row(place, expected, || function(beta, kl, target, n, horizon));
            }
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 3003);
            for _ in 0..40 {
                let (beta, target) = (f64::from(1 + stream.below(20)) / 10.0, f64::from(1 + stream.below(20)));
                let kl = (target * (0.6 + 0.8 * stream.unit_f64()) * 100.0).round() / 100.0;
                let (n, horizon) = (16 + stream.below(500) as usize, f64::from(1 + stream.below(20)) * 100.0);
                let place = format!("adaptive_beta(beta = {beta}, kl = {kl}, target = {target}, texts = {n}, horizon = {horizon})");
                sheet.row(place, right(beta, kl, target, n, horizon), || function(beta, kl, target, n, horizon));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "the error is not limited",
            section: "adaptive",
            function: |beta, kl, target, n, horizon| adapted(beta, kl / target - 1.0, f64::INFINITY, n as f64 / horizon),
        },
        Mistake {
            says: "the sign is wrong: the leash gets longer where the policy goes too far",
            section: "adaptive",
            function: |beta, kl, target, n, horizon| adapted(beta, 1.0 - kl / target, 0.2, n as f64 / horizon),
        },
        Mistake {
            says: "the error is the difference and not the ratio",
            section: "adaptive",
            function: |beta, kl, target, n, horizon| adapted(beta, kl - target, 0.2, n as f64 / horizon),
        },
        Mistake {
            says: "number of texts and horizon are left out",
            section: "adaptive",
            function: |beta, kl, target, _, _| adapted(beta, kl / target - 1.0, 0.2, 1.0),
        },
        Mistake {
            says: "the change is added to beta and does not multiply it",
            section: "adaptive",
            function: |beta, kl, target, n, horizon| beta + (kl / target - 1.0).clamp(-0.2, 0.2) * n as f64 / horizon,
        },
    ],
};

// h3.4

/// The normalised rewards of all steps together.
fn normalised(rewards: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let all = rewards.concat();
    let n = all.len().max(1) as f64;
    let mean = all.iter().sum::<f64>() / n;
    let std = (all.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / n).sqrt();
    rewards.iter().map(|own| own.iter().map(|r| (r - mean) / (std + 1e-4)).collect()).collect()
}

/// The advantages: for each token the sum over the steps of which `counts` says so, from the end of the step, the token, and the step's end
/// before.
fn over_steps(
    rewards: &[Vec<f64>],
    ends: &[Vec<usize>],
    lengths: &[usize],
    counts: fn(usize, usize, Option<usize>) -> bool,
) -> Vec<Vec<f64>> {
    let of = |i: usize, t: usize| -> f64 {
        let before = |k: usize| if k == 0 { None } else { Some(ends[i][k - 1]) };
        (0..rewards[i].len()).filter(|k| counts(ends[i][*k], t, before(*k))).map(|k| rewards[i][k]).sum()
    };
    (0..lengths.len()).map(|i| (0..lengths[i]).map(|t| of(i, t)).collect()).collect()
}

fn later(end: usize, t: usize, _: Option<usize>) -> bool {
    end >= t
}

fn row_of_steps(
    sheet: &mut Sheet,
    function: ProcessAdvantages,
    rewards: &[Vec<f64>],
    ends: &[Vec<usize>],
    lengths: &[usize],
    expected: Vec<Vec<f64>>,
) {
    let ends_shown: Vec<Vec<f64>> = ends.iter().map(|own| own.iter().map(|t| *t as f64).collect()).collect();
    let place = format!("process_advantages(rewards = {}, ends = {}, lengths = {lengths:?})", rows(rewards), rows(&ends_shown));
    sheet.row(place, expected, || function(rewards, ends, lengths));
}

static PROCESS_ADVANTAGES: Exercise<ProcessAdvantages> = Exercise {
    about: About { number: "h3.4", name: "process_advantages", title: "rewards for steps", section: "process-supervision", hints: &[] },
    right: |rewards, ends, lengths| over_steps(&normalised(rewards), ends, lengths, later),
    checks: &[
        |Trial { function, .. }, sheet| {
            // the mean 1/4 and the standard deviation 0.433013 of 0, 1, 0 and 0: -0.577217 and 1.731651
            let (rewards, ends) = ([vec![0.0, 1.0], vec![0.0, 0.0]], [vec![1, 3], vec![0, 1]]);
            let expected = vec![vec![1.154_434, 1.154_434, 1.731_651, 1.731_651], vec![-1.154_434, -0.577_217, 0.0]];
            row_of_steps(sheet, function, &rewards, &ends, &[4, 3], expected);
            row_of_steps(sheet, function, &[vec![2.0], vec![0.0]], &[vec![0], vec![0]], &[1, 1], vec![vec![0.9999], vec![-0.9999]]);
            row_of_steps(sheet, function, &[vec![1.0], vec![1.0, 1.0]], &[vec![0], vec![0, 1]], &[1, 2], vec![vec![0.0], vec![0.0, 0.0]]);
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 3004);
            for _ in 0..30 {
                let n = 2 + stream.below(2) as usize;
                let (mut rewards, mut ends, mut lengths) = (Vec::new(), Vec::new(), Vec::new());
                for _ in 0..n {
                    let steps = 1 + stream.below(3) as usize;
                    let mut end = 0;
                    ends.push(
                        (0..steps)
                            .map(|k| {
                                end += stream.below(3) as usize + usize::from(k > 0);
                                end
                            })
                            .collect::<Vec<usize>>(),
                    );
                    lengths.push(end + 1 + stream.below(2) as usize);
                    rewards.push(if stream.below(2) == 0 {
                        distinct(&mut stream, steps)
                    } else {
                        (0..steps).map(|_| number(&mut stream)).collect()
                    });
                }
                row_of_steps(sheet, function, &rewards, &ends, &lengths, right(&rewards, &ends, &lengths));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "each token gets its own step's reward alone, and not those of the later steps",
            section: "process-supervision",
            function: |rewards, ends, lengths| {
                over_steps(&normalised(rewards), ends, lengths, |end, t, before| end >= t && before.is_none_or(|before| before < t))
            },
        },
        Mistake {
            says: "the rewards of the steps before the token count, and not those after it",
            section: "process-supervision",
            function: |rewards, ends, lengths| over_steps(&normalised(rewards), ends, lengths, |end, t, _| end <= t),
        },
        Mistake {
            says: "the token with which a step ends does not get its reward",
            section: "process-supervision",
            function: |rewards, ends, lengths| over_steps(&normalised(rewards), ends, lengths, |end, t, _| end > t),
        },
        Mistake {
            says: "rewards are not normalised",
            section: "process-supervision",
            function: |rewards, ends, lengths| over_steps(rewards, ends, lengths, later),
        },
        Mistake {
            says: "rewards are normalised within each completion, and not over all steps of the group",
            section: "process-supervision",
            function: |rewards, ends, lengths| {
                let own: Vec<Vec<f64>> = rewards.iter().flat_map(|own| normalised(std::slice::from_ref(own))).collect();
                over_steps(&own, ends, lengths, later)
            },
        },
        Mistake {
            says: "every token gets the sum of all steps: outcome supervision",
            section: "process-supervision",
            function: |rewards, ends, lengths| over_steps(&normalised(rewards), ends, lengths, |_, _, _| true),
        },
    ],
};
