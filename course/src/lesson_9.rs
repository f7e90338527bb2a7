//! Lesson 9: trust regions and PPO.

use gradus_base::random::Stream;

use crate::exercise::{About, Exercise, Mistake, Trial};
use crate::inputs::{normals, number, rounded, stream};
use crate::lesson_6::{LN_3, log_softmax, softmax};
use crate::lessons::lesson;
use crate::sheet::{Sheet, list};

/// Returns the objective of a decision from its log-probability, that of the old policy, the advantage, and the clip range.
pub type Surrogate = fn(f64, f64, f64, f64) -> f64;
/// Returns the derivative of that objective for the log-probability, from the same.
pub type SurrogateSlope = fn(f64, f64, f64, f64) -> f64;
/// Returns the divergence of the new policy from the old one, from the logits of the old and of the new one.
pub type KlDivergence = fn(&[f64], &[f64]) -> f64;
/// Returns the estimate of the divergence from the log-probabilities of decisions, of the policy and of the old policy.
pub type ApproxKl = fn(&[f64], &[f64]) -> f64;
/// Returns the step from the gradient, the Fisher matrix and the limit of the divergence.
pub type NaturalStep = fn(&[f64], &[Vec<f64>], f64) -> Vec<f64>;

lesson!("9", "trust regions and PPO", {
    surrogate: Surrogate = SURROGATE,
    surrogate_slope: SurrogateSlope = SURROGATE_SLOPE,
    kl_divergence: KlDivergence = KL_DIVERGENCE,
    approx_kl: ApproxKl = APPROX_KL,
    natural_step: NaturalStep = NATURAL_STEP,
});

fn clipped(ratio: f64, clip: f64) -> f64 {
    ratio.clamp(1.0 - clip, 1.0 + clip)
}

fn call_of(name: &str, log_prob: f64, old: f64, advantage: f64, clip: f64) -> String {
    format!("{name}(log_prob = {log_prob:.4}, old_log_prob = {old:.4}, advantage = {advantage}, clip = {clip})")
}

/// Ratios and advantages on all sides of the clip range, with what the objective and its derivative are with a clip of 0.2.
const CASES: [(f64, f64, f64, f64); 8] = [
    (1.0, 3.0, 3.0, 3.0),
    (1.1, 2.0, 2.2, 2.2),
    (1.5, 2.0, 2.4, 0.0),
    (0.5, 2.0, 1.0, 1.0),
    (0.5, -2.0, -1.6, 0.0),
    (1.5, -2.0, -3.0, -3.0),
    (0.9, -1.0, -0.9, -0.9),
    (2.0, 0.0, 0.0, 0.0),
];

/// Draws a log-probability, that of the old policy, an advantage and a clip range, with a ratio that is not at the end of the range.
fn any_decision(stream: &mut Stream) -> (f64, f64, f64, f64) {
    loop {
        let (ratio, clip) = (f64::from(30 + stream.below(140)) / 100.0, f64::from(1 + stream.below(4)) / 10.0);
        if ((ratio - 1.0).abs() - clip).abs() > 0.005 {
            let old = -f64::from(5 + stream.below(30)) / 10.0;
            return (old + ratio.ln(), old, number(stream), clip);
        }
    }
}

// 9.1

fn objective(log_prob: f64, old: f64, advantage: f64, clip: f64) -> f64 {
    let ratio = (log_prob - old).exp();
    (ratio * advantage).min(clipped(ratio, clip) * advantage)
}

static SURROGATE: Exercise<Surrogate> = Exercise {
    about: About {
        number: "9.1",
        name: "surrogate",
        title: "PPO's clipped objective",
        section: "the-clip",
        hints: &[
            "The ratio is the probability now, divided by the old one: the exponential of the difference of the log-probabilities.",
            "Take the smaller of ratio * advantage and (ratio held between 1 - clip and 1 + clip) * advantage.",
        ],
    },
    right: objective,
    checks: &[
        |Trial { function, .. }, sheet| {
            for (ratio, advantage, expected, _) in CASES {
                let log_prob = -1.0 + f64::ln(ratio);
                sheet.row(call_of("surrogate", log_prob, -1.0, advantage, 0.2), expected, || function(log_prob, -1.0, advantage, 0.2));
            }
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 91);
            for _ in 0..60 {
                let (log_prob, old, advantage, clip) = any_decision(&mut stream);
                let place = call_of("surrogate", log_prob, old, advantage, clip);
                sheet.row(place, right(log_prob, old, advantage, clip), || function(log_prob, old, advantage, clip));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "the larger of the two terms is taken: the clip then holds back nothing, and rewards going too far",
            section: "the-clip",
            function: |log_prob, old, advantage, clip| {
                let ratio = (log_prob - old).exp();
                (ratio * advantage).max(clipped(ratio, clip) * advantage)
            },
        },
        Mistake {
            says: "the ratio is always clipped: where an action became likelier that was bad, nothing pulls it back",
            section: "the-clip",
            function: |log_prob, old, advantage, clip| clipped((log_prob - old).exp(), clip) * advantage,
        },
        Mistake {
            says: "there is no clip",
            section: "the-clip",
            function: |log_prob, old, advantage, _| (log_prob - old).exp() * advantage,
        },
        Mistake {
            says: "the difference of the log-probabilities is taken for the ratio: its exponential is missing",
            section: "the-ratio",
            function: |log_prob, old, advantage, clip| {
                let ratio = log_prob - old;
                (ratio * advantage).min(clipped(ratio, clip) * advantage)
            },
        },
        Mistake {
            says: "the ratio is upside down: the old probability divided by the new one",
            section: "the-ratio",
            function: |log_prob, old, advantage, clip| objective(old, log_prob, advantage, clip),
        },
        Mistake {
            says: "the sign is that of a loss",
            section: "the-clip",
            function: |log_prob, old, advantage, clip| -objective(log_prob, old, advantage, clip),
        },
        Mistake {
            says: "only the upper end of the range is there: an action that was bad is pushed down without a limit",
            section: "the-clip",
            function: |log_prob, old, advantage, clip| {
                let ratio = (log_prob - old).exp();
                (ratio * advantage).min(ratio.min(1.0 + clip) * advantage)
            },
        },
    ],
};

// 9.2

/// The derivative, where the clip cuts it off if `is_cut` says so, from the ratio, the advantage and the clip range.
fn slope(log_prob: f64, old: f64, advantage: f64, clip: f64, is_cut: fn(f64, f64, f64) -> bool) -> f64 {
    let ratio = (log_prob - old).exp();
    if is_cut(ratio, advantage, clip) { 0.0 } else { ratio * advantage }
}

fn is_cut(ratio: f64, advantage: f64, clip: f64) -> bool {
    advantage > 0.0 && ratio > 1.0 + clip || advantage < 0.0 && ratio < 1.0 - clip
}

static SURROGATE_SLOPE: Exercise<SurrogateSlope> = Exercise {
    about: About {
        number: "9.2",
        name: "surrogate_slope",
        title: "what pulls on a decision",
        section: "what-the-clip-does",
        hints: &[
            "Where the clip does not hold, the objective is ratio * advantage, and the derivative of the ratio is the ratio itself.",
            "Where the clipped term is the smaller one, the objective is a constant, and its derivative is 0.",
            "That is so if the advantage is positive and the ratio above the range, or the advantage negative and the ratio below it.",
        ],
    },
    right: |log_prob, old, advantage, clip| slope(log_prob, old, advantage, clip, is_cut),
    checks: &[
        |Trial { function, .. }, sheet| {
            for (ratio, advantage, _, expected) in CASES {
                let log_prob = -1.0 + f64::ln(ratio);
                let place = call_of("surrogate_slope", log_prob, -1.0, advantage, 0.2);
                sheet.row(place, expected, || function(log_prob, -1.0, advantage, 0.2));
            }
        },
        |Trial { function, seed, .. }, sheet| {
            let mut stream = stream(seed, 92);
            for _ in 0..60 {
                let (log_prob, old, advantage, clip) = any_decision(&mut stream);
                let small = 1e-6;
                let of = |by: f64| objective(log_prob + by, old, advantage, clip);
                let difference = (of(small) - of(-small)) / (2.0 * small);
                let place = call_of("surrogate_slope", log_prob, old, advantage, clip) + ", beside the difference of the objective";
                sheet.row(place, difference, || function(log_prob, old, advantage, clip));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "the clip cuts nothing off",
            section: "what-the-clip-does",
            function: |log_prob, old, advantage, clip| slope(log_prob, old, advantage, clip, |_, _, _| false),
        },
        Mistake {
            says: "it is 0 wherever the ratio is outside of the range: a decision that went the wrong way is not pulled back",
            section: "what-the-clip-does",
            function: |log_prob, old, advantage, clip| slope(log_prob, old, advantage, clip, |ratio, _, clip| (ratio - 1.0).abs() > clip),
        },
        Mistake {
            says: "the factor ratio is missing: that is the slope of REINFORCE",
            section: "what-the-clip-does",
            function: |log_prob, old, advantage, clip| {
                if is_cut((log_prob - old).exp(), advantage, clip) { 0.0 } else { advantage }
            },
        },
        Mistake {
            says: "beyond the range it stays at its value there: the weight is clipped, and not the objective (CISPO)",
            section: "what-the-clip-does",
            function: |log_prob, old, advantage, clip| clipped((log_prob - old).exp(), clip) * advantage,
        },
        Mistake {
            says: "the sign is that of a loss",
            section: "what-the-clip-does",
            function: |log_prob, old, advantage, clip| -slope(log_prob, old, advantage, clip, is_cut),
        },
    ],
};

// 9.3

fn divergence(p: &[f64], q: &[f64], of: impl Fn(f64, f64) -> f64) -> f64 {
    log_softmax(p).into_iter().zip(log_softmax(q)).map(|(p, q)| of(p, q)).sum()
}

static KL_DIVERGENCE: Exercise<KlDivergence> = Exercise {
    about: About {
        number: "9.3",
        name: "kl_divergence",
        title: "how far one policy is from another",
        section: "the-distance-of-two-policies",
        hints: &[
            "The mean, over the actions of the old policy, of the difference of the log-probabilities: log p_old - log p_new.",
            "The weights are the probabilities of the old policy. It is never negative.",
        ],
    },
    right: |old, new| divergence(old, new, |p, q| p.exp() * (p - q)),
    checks: &[
        |Trial { function, .. }, sheet| {
            for (old, new, expected) in [
                (&[0.0, 0.0][..], &[0.0, 0.0][..], 0.0),
                (&[0.0, 0.0], &[0.0, LN_3], 0.143_841), // ln(4/3) / 2
                (&[0.0, LN_3], &[0.0, 0.0], 0.130_812),
                (&[5.0, 5.0], &[1.0, 1.0], 0.0),
                (&[1000.0, 1000.0], &[0.0, 0.0], 0.0),
                (&[1000.0, 0.0], &[0.0, 0.0], std::f64::consts::LN_2),
            ] {
                let place = format!("kl_divergence(old_logits = {}, new_logits = {})", list(old), list(new));
                sheet.row(place, expected, || function(old, new));
            }
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 93);
            for _ in 0..40 {
                let n = 2 + stream.below(4) as usize;
                let (old, new) = (normals(&mut stream, n), normals(&mut stream, n));
                let place = format!("kl_divergence(old_logits = {}, new_logits = {})", list(&old), list(&new));
                sheet.row(place, right(&old, &new), || function(&old, &new));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "it is the divergence in the other direction: the mean over the new policy",
            section: "the-distance-of-two-policies",
            function: |old, new| divergence(new, old, |p, q| p.exp() * (p - q)),
        },
        Mistake {
            says: "the entropy of the old policy is not subtracted: that is the cross-entropy",
            section: "the-distance-of-two-policies",
            function: |old, new| divergence(old, new, |p, q| -p.exp() * q),
        },
        Mistake {
            says: "the differences are not weighed by probabilities",
            section: "the-distance-of-two-policies",
            function: |old, new| divergence(old, new, |p, q| p - q),
        },
        Mistake {
            says: "the sign is wrong: a divergence is never negative",
            section: "the-distance-of-two-policies",
            function: |old, new| divergence(old, new, |p, q| p.exp() * (q - p)),
        },
        Mistake {
            says: "the largest logit is not subtracted first: the exponential of a large one is infinite",
            section: "the-distance-of-two-policies",
            function: |old, new| {
                let p = |z: &[f64]| -> Vec<f64> { z.iter().map(|x| x.exp() / z.iter().map(|y| y.exp()).sum::<f64>()).collect() };
                p(old).iter().zip(p(new)).map(|(p, q)| p * (p / q).ln()).sum()
            },
        },
    ],
};

// 9.4

/// The mean over the decisions, from log pi - log pi_old.
fn mean_of(log_probs: &[f64], old: &[f64], of: impl Fn(f64) -> f64) -> f64 {
    log_probs.iter().zip(old).map(|(now, old)| of(now - old)).sum::<f64>() / old.len() as f64
}

fn call_of_estimate(log_probs: &[f64], old: &[f64]) -> String {
    format!("approx_kl(log_probs = {}, old_log_probs = {})", list(log_probs), list(old))
}

static APPROX_KL: Exercise<ApproxKl> = Exercise {
    about: About {
        number: "9.4",
        name: "approx_kl",
        title: "the divergence, from samples",
        section: "the-divergence-from-samples",
        hints: &[
            "For each decision, the ratio r = pi / pi_old, and (r - 1) - ln r. It is 0 if r is 1, and positive otherwise.",
            "The estimate is the mean over the decisions.",
        ],
    },
    right: |log_probs, old| mean_of(log_probs, old, |d| d.exp() - 1.0 - d),
    checks: &[
        |Trial { function, .. }, sheet| {
            let ln_2 = std::f64::consts::LN_2;
            for (log_probs, old, expected) in [
                (&[-1.0, -2.0][..], &[-1.0, -2.0][..], 0.0),
                (&[-1.0 + ln_2], &[-1.0], 1.0 - ln_2),
                (&[-1.0 - ln_2], &[-1.0], ln_2 - 0.5),
                (&[-1.0 + ln_2, -1.0 - ln_2], &[-1.0, -1.0], 0.25),
            ] {
                sheet.row(call_of_estimate(log_probs, old), expected, || function(log_probs, old));
            }
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 94);
            for _ in 0..40 {
                let n = 1 + stream.below(6) as usize;
                let old: Vec<f64> = (0..n).map(|_| -f64::from(1 + stream.below(30)) / 10.0).collect();
                let log_probs: Vec<f64> = old.iter().map(|old| rounded(old + 0.5 * f64::from(stream.normal()))).collect();
                sheet.row(call_of_estimate(&log_probs, &old), right(&log_probs, &old), || function(&log_probs, &old));
            }
        },
        // over the actions of the old policy, the mean of the estimate is the divergence
        |Trial { function, seed, .. }, sheet| {
            let mut stream = stream(seed, 95);
            for _ in 0..10 {
                let (old, new) = (normals(&mut stream, 3), normals(&mut stream, 3));
                let expected = divergence(&old, &new, |p, q| p.exp() * (p - q));
                let place = format!("the mean of approx_kl over the actions of a policy with logits {}, now {}", list(&old), list(&new));
                sheet.row(place, expected, || {
                    let (now, before) = (log_softmax(&new), log_softmax(&old));
                    softmax(&old).iter().enumerate().map(|(a, p)| p * function(&[now[a]], &[before[a]])).sum::<f64>()
                });
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "it is the mean of -ln r (k1): right on average, but noisy, and often negative",
            section: "the-divergence-from-samples",
            function: |log_probs, old| mean_of(log_probs, old, |d| -d),
        },
        Mistake {
            says: "it is half the squared log-ratio (k2): never negative, but only nearly right on average",
            section: "the-divergence-from-samples",
            function: |log_probs, old| mean_of(log_probs, old, |d| d * d / 2.0),
        },
        Mistake {
            says: "the ratio is upside down: the old probability divided by the new one",
            section: "the-ratio",
            function: |log_probs, old| mean_of(log_probs, old, |d| (-d).exp() - 1.0 + d),
        },
        Mistake {
            says: "it is the sum over the decisions and not their mean",
            section: "the-divergence-from-samples",
            function: |log_probs, old| mean_of(log_probs, old, |d| d.exp() - 1.0 - d) * old.len() as f64,
        },
        Mistake {
            says: "it is the mean distance of the ratio from 1",
            section: "the-divergence-from-samples",
            function: |log_probs, old| mean_of(log_probs, old, |d| (d.exp() - 1.0).abs()),
        },
    ],
};

// 9.5

/// Solves a small system of linear equations by elimination.
fn solved(matrix: &[Vec<f64>], right: &[f64]) -> Vec<f64> {
    let n = right.len();
    let mut rows: Vec<Vec<f64>> = matrix.iter().zip(right).map(|(row, b)| row.iter().copied().chain([*b]).collect()).collect();
    for i in 0..n {
        let pivot = (i..n).fold(i, |best, k| if rows[k][i].abs() > rows[best][i].abs() { k } else { best });
        rows.swap(i, pivot);
        for k in (0..n).filter(|k| *k != i) {
            let factor = rows[k][i] / rows[i][i];
            (i..=n).for_each(|j| rows[k][j] -= factor * rows[i][j]);
        }
    }
    (0..n).map(|i| rows[i][n] / rows[i][i]).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn times(matrix: &[Vec<f64>], x: &[f64]) -> Vec<f64> {
    matrix.iter().map(|row| dot(row, x)).collect()
}

fn scaled(x: &[f64], by: f64) -> Vec<f64> {
    x.iter().map(|x| x * by).collect()
}

fn row_of_natural_step(sheet: &mut Sheet, function: NaturalStep, gradient: &[f64], fisher: &[Vec<f64>], delta: f64, expected: Vec<f64>) {
    let rows = fisher.iter().map(|row| list(row)).collect::<Vec<_>>().join(", ");
    let place = format!("natural_step(gradient = {}, fisher = [{rows}], delta = {delta})", list(gradient));
    sheet.row(place, expected, || function(gradient, fisher, delta));
}

static NATURAL_STEP: Exercise<NaturalStep> = Exercise {
    about: About {
        number: "9.5",
        name: "natural_step",
        title: "the step of a trust region",
        section: "trust-regions",
        hints: &[
            "First solve F x = g for the direction x: two or three equations, by elimination or by the conjugate gradient method.",
            "The step is x times sqrt(2 delta / (g . x)), so that half the step times F times the step is delta.",
        ],
    },
    right: |gradient, fisher, delta| {
        let x = solved(fisher, gradient);
        scaled(&x, (2.0 * delta / dot(gradient, &x)).sqrt())
    },
    checks: &[
        |Trial { function, .. }, sheet| {
            // x = (3, 4), g . x = 25, the factor sqrt(1 / 25)
            row_of_natural_step(sheet, function, &[3.0, 4.0], &[vec![1.0, 0.0], vec![0.0, 1.0]], 0.5, vec![0.6, 0.8]);
            // x = (1, 1), g . x = 6, the factor sqrt(0.24 / 6)
            row_of_natural_step(sheet, function, &[3.0, 3.0], &[vec![2.0, 1.0], vec![1.0, 2.0]], 0.12, vec![0.2, 0.2]);
            // x = (2, 1/2), g . x = 5, the factor sqrt(0.2 / 5)
            row_of_natural_step(sheet, function, &[2.0, 2.0], &[vec![1.0, 0.0], vec![0.0, 4.0]], 0.1, vec![0.4, 0.1]);
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 96);
            for _ in 0..30 {
                let n = 2 + stream.below(2) as usize;
                let a: Vec<Vec<f64>> = (0..n).map(|_| normals(&mut stream, n)).collect();
                // A^T A plus the identity
                let entry = |i: usize, j: usize| rounded(a.iter().map(|row| row[i] * row[j]).sum::<f64>()) + f64::from(u8::from(i == j));
                let fisher: Vec<Vec<f64>> = (0..n).map(|i| (0..n).map(|j| entry(i.min(j), i.max(j))).collect()).collect();
                let gradient: Vec<f64> = normals(&mut stream, n).into_iter().map(|g| g + 0.1).collect();
                let delta = f64::from(1 + stream.below(20)) / 100.0;
                let expected = right(&gradient, &fisher, delta);
                row_of_natural_step(sheet, function, &gradient, &fisher, delta, expected);
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "the direction is the gradient itself: the Fisher matrix is left out",
            section: "trust-regions",
            function: |gradient, fisher, delta| scaled(gradient, (2.0 * delta / dot(gradient, &times(fisher, gradient))).sqrt()),
        },
        Mistake {
            says: "the gradient is multiplied by the Fisher matrix and not by its inverse",
            section: "trust-regions",
            function: |gradient, fisher, delta| {
                let x = times(fisher, gradient);
                scaled(&x, (2.0 * delta / dot(gradient, &x)).sqrt())
            },
        },
        Mistake {
            says: "the factor is missing: the direction alone, whatever delta is",
            section: "trust-regions",
            function: |gradient, fisher, _| solved(fisher, gradient),
        },
        Mistake {
            says: "delta is not doubled: the divergence is half of a square",
            section: "trust-regions",
            function: |gradient, fisher, delta| {
                let x = solved(fisher, gradient);
                scaled(&x, (delta / dot(gradient, &x)).sqrt())
            },
        },
        Mistake {
            says: "the root is missing",
            section: "trust-regions",
            function: |gradient, fisher, delta| {
                let x = solved(fisher, gradient);
                scaled(&x, 2.0 * delta / dot(gradient, &x))
            },
        },
        Mistake {
            says: "the factor is computed from the length of the direction and not from g . x",
            section: "trust-regions",
            function: |gradient, fisher, delta| {
                let x = solved(fisher, gradient);
                scaled(&x, (2.0 * delta / dot(&x, &x)).sqrt())
            },
        },
    ],
};
