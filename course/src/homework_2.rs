//! Homework 2: policy gradients.

use crate::exercise::{About, Exercise, Mistake, Trial};
use crate::inputs::{normals, number, numbers, rounded, share, stream};
use crate::lessons::lesson;
use crate::sheet::{Sheet, list, rows};

/// Returns the log-density of the action tanh u from u, the mean, and the standard deviation.
pub type SquashedLogProb = fn(f64, f64, f64) -> f64;
/// Returns V-trace's targets from the rewards, the values, the value that follows, the ratios, gamma, and the two limits of the ratios.
pub type VTrace = fn(&[f64], &[f64], f64, &[f64], f64, [f64; 2]) -> Vec<f64>;
/// Returns what the conjugate gradient method has after some rounds, from the matrix, the right side, and the number of rounds.
pub type ConjugateGradient = fn(&[Vec<f64>], &[f64], usize) -> Vec<f64>;
/// Returns the normalised numbers from the numbers and which of them are valid.
pub type MaskedWhitened = fn(&[f64], &[bool]) -> Vec<f64>;

lesson!("h2", "policy gradients", {
    squashed_log_prob: SquashedLogProb = SQUASHED_LOG_PROB,
    v_trace: VTrace = V_TRACE,
    conjugate_gradient: ConjugateGradient = CONJUGATE_GRADIENT,
    masked_whitened: MaskedWhitened = MASKED_WHITENED,
});

// h2.1

fn gaussian(u: f64, mean: f64, std: f64) -> f64 {
    let z = (u - mean) / std;
    -0.5 * z * z - std.ln() - 0.5 * std::f64::consts::TAU.ln()
}

/// ln(1 - tanh^2 u), also where tanh u is 1 in floating point.
fn log_slope(u: f64) -> f64 {
    2.0 * (std::f64::consts::LN_2 - u.abs() - (-2.0 * u.abs()).exp().ln_1p())
}

static SQUASHED_LOG_PROB: Exercise<SquashedLogProb> = Exercise {
    about: About {
        number: "h2.1",
        name: "squashed_log_prob",
        title: "the density of a squashed action",
        section: "squashed-actions",
        hints: &[],
    },
    right: |u, mean, std| gaussian(u, mean, std) - log_slope(u),
    checks: &[
        |Trial { function, .. }, sheet| {
            // -ln(root of 2 pi) = -0.918939
            for (u, mean, std, expected) in [
                (0.0, 0.0, 1.0, -0.918_939),
                (0.0, 0.0, 0.5, -0.225_791),
                (1.0, 1.0, 1.0, -0.051_377),   // -0.918939 + 0.867562
                (-1.0, 1.0, 2.0, -1.244_525),  // -0.5 - 0.693147 - 0.918939 + 0.867562
                (20.0, 20.0, 1.0, 37.694_767), // 40 - 2 ln 2 - 0.918939
                (-20.0, -20.0, 1.0, 37.694_767),
            ] {
                sheet.row(format!("squashed_log_prob(u = {u}, mean = {mean}, std = {std})"), expected, || function(u, mean, std));
            }
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 2001);
            for row in 0..40 {
                // some far from 0, on both sides
                let wide = if row % 4 == 0 { 4.0 } else { 1.0 };
                let (mean, std) = (wide * number(&mut stream), f64::from(1 + stream.below(20)) / 10.0);
                let u = rounded(mean + std * f64::from(stream.normal()));
                sheet
                    .row(format!("squashed_log_prob(u = {u}, mean = {mean}, std = {std})"), right(u, mean, std), || function(u, mean, std));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "the correction for tanh is missing: it is the density of u and not that of the action",
            section: "squashed-actions",
            function: gaussian,
        },
        Mistake {
            says: "the correction has the wrong sign",
            section: "squashed-actions",
            function: |u, mean, std| gaussian(u, mean, std) + log_slope(u),
        },
        Mistake {
            says: "1 - tanh^2 u is 0 in floating point where |u| is large, and its logarithm infinite",
            section: "squashed-actions",
            function: |u, mean, std| gaussian(u, mean, std) - (1.0 - u.tanh() * u.tanh()).ln(),
        },
        Mistake {
            says: "a small number is added to 1 - tanh^2 u: the density is wrong where |u| is large",
            section: "squashed-actions",
            function: |u, mean, std| gaussian(u, mean, std) - (1.0 - u.tanh() * u.tanh() + 1e-6).ln(),
        },
        Mistake {
            says: "tanh is applied to the mean and not to the action: the Gaussian is that of tanh u",
            section: "squashed-actions",
            function: |u, mean, std| gaussian(u.tanh(), mean, std) - log_slope(u),
        },
        Mistake {
            says: "the logarithm of the standard deviation is missing",
            section: "squashed-actions",
            function: |u, mean, std| gaussian(u, mean, std) + std.ln() - log_slope(u),
        },
    ],
};

// h2.2

/// V-trace, from the ratios of the TD errors and of the traces.
fn traced(rewards: &[f64], values: &[f64], last: f64, gamma: f64, rho: impl Fn(usize) -> f64, c: impl Fn(usize) -> f64) -> Vec<f64> {
    let (mut targets, mut more, mut next) = (vec![0.0; values.len()], 0.0, last);
    for t in (0..values.len()).rev() {
        more = rho(t) * (rewards[t] + gamma * next - values[t]) + gamma * c(t) * more;
        targets[t] = values[t] + more;
        next = values[t];
    }
    targets
}

struct Rollout {
    rewards: Vec<f64>,
    values: Vec<f64>,
    last: f64,
    ratios: Vec<f64>,
    gamma: f64,
    limits: [f64; 2],
}

fn row_of_rollout(sheet: &mut Sheet, function: VTrace, rollout: &Rollout, expected: Vec<f64>) {
    let Rollout { rewards, values, last, ratios, gamma, limits } = rollout;
    let place = format!(
        "v_trace(rewards = {}, values = {}, next_value = {last}, ratios = {}, gamma = {gamma}, limits = {})",
        list(rewards),
        list(values),
        list(ratios),
        list(limits)
    );
    sheet.row(place, expected, || function(rewards, values, *last, ratios, *gamma, *limits));
}

static V_TRACE: Exercise<VTrace> = Exercise {
    about: About { number: "h2.2", name: "v_trace", title: "targets from another policy's rollout", section: "v-trace", hints: &[] },
    right: |rewards, values, last, ratios, gamma, [rho, c]| {
        traced(rewards, values, last, gamma, |t| ratios[t].min(rho), |t| ratios[t].min(c))
    },
    checks: &[
        |Trial { function, .. }, sheet| {
            let rollout = |ratios: &[f64], gamma: f64, limits: [f64; 2]| Rollout {
                rewards: vec![1.0, 2.0],
                values: vec![4.0, 6.0],
                last: 8.0,
                ratios: ratios.to_vec(),
                gamma,
                limits,
            };
            // on-policy: n-step returns, 2 + 4 = 6 and 1 + 3 = 4
            row_of_rollout(sheet, function, &rollout(&[1.0, 1.0], 0.5, [1.0, 1.0]), vec![4.0, 6.0]);
            // TD errors 3 and 4; 0.5 4 = 2, and 2 3 held to 3, and 1 2
            row_of_rollout(sheet, function, &rollout(&[2.0, 0.5], 1.0, [1.0, 1.0]), vec![9.0, 8.0]);
            row_of_rollout(sheet, function, &rollout(&[2.0, 0.5], 1.0, [2.0, 1.0]), vec![12.0, 8.0]);
            row_of_rollout(sheet, function, &rollout(&[2.0, 0.5], 1.0, [2.0, 0.0]), vec![10.0, 8.0]);
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 2002);
            for _ in 0..40 {
                let n = 1 + stream.below(5) as usize;
                let ratios = (0..n).map(|_| f64::from(1 + stream.below(30)) / 10.0).collect();
                let limits = [0, 1].map(|_| f64::from(5 + stream.below(20)) / 10.0);
                let (rewards, values) = (numbers(&mut stream, n), numbers(&mut stream, n));
                let rollout = Rollout { rewards, values, last: number(&mut stream), ratios, gamma: share(&mut stream), limits };
                let Rollout { rewards, values, last, ratios, gamma, limits } = &rollout;
                row_of_rollout(sheet, function, &rollout, right(rewards, values, *last, ratios, *gamma, *limits));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "the ratios are not limited",
            section: "v-trace",
            function: |rewards, values, last, ratios, gamma, _| traced(rewards, values, last, gamma, |t| ratios[t], |t| ratios[t]),
        },
        Mistake {
            says: "the two limits are exchanged",
            section: "v-trace",
            function: |rewards, values, last, ratios, gamma, [rho, c]| {
                traced(rewards, values, last, gamma, |t| ratios[t].min(c), |t| ratios[t].min(rho))
            },
        },
        Mistake {
            says: "the ratios are left out: these are n-step returns",
            section: "v-trace",
            function: |rewards, values, last, _, gamma, _| traced(rewards, values, last, gamma, |_| 1.0, |_| 1.0),
        },
        Mistake {
            says: "the sum is returned without the value",
            section: "v-trace",
            function: |rewards, values, last, ratios, gamma, [rho, c]| {
                let targets = traced(rewards, values, last, gamma, |t| ratios[t].min(rho), |t| ratios[t].min(c));
                targets.iter().zip(values).map(|(target, value)| target - value).collect()
            },
        },
        Mistake {
            says: "gamma is left out where the later errors are added",
            section: "v-trace",
            function: |rewards, values, last, ratios, gamma, [rho, c]| {
                traced(rewards, values, last, gamma, |t| ratios[t].min(rho), |t| if gamma == 0.0 { 0.0 } else { ratios[t].min(c) / gamma })
            },
        },
    ],
};

// h2.3

fn times(matrix: &[Vec<f64>], x: &[f64]) -> Vec<f64> {
    matrix.iter().map(|row| dot(row, x)).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The conjugate gradient method; `share` gives the part of the old direction from the new and the old square of the rest.
fn conjugate(matrix: &[Vec<f64>], b: &[f64], rounds: usize, mut share: impl FnMut(f64, f64) -> f64) -> Vec<f64> {
    let (mut x, mut rest, mut direction) = (vec![0.0; b.len()], b.to_vec(), b.to_vec());
    for _ in 0..rounds {
        let (square, product) = (dot(&rest, &rest), times(matrix, &direction));
        if square < 1e-16 {
            break;
        }
        let length = square / dot(&direction, &product);
        x.iter_mut().zip(&direction).for_each(|(x, d)| *x += length * d);
        rest.iter_mut().zip(&product).for_each(|(r, p)| *r -= length * p);
        let part = share(dot(&rest, &rest), square);
        direction.iter_mut().zip(&rest).for_each(|(d, r)| *d = r + part * *d);
    }
    x
}

fn row_of_rounds(sheet: &mut Sheet, function: ConjugateGradient, matrix: &[Vec<f64>], b: &[f64], rounds: usize, expected: Vec<f64>) {
    let place = format!("conjugate_gradient(matrix = {}, b = {}, rounds = {rounds})", rows(matrix), list(b));
    sheet.row(place, expected, || function(matrix, b, rounds));
}

static CONJUGATE_GRADIENT: Exercise<ConjugateGradient> = Exercise {
    about: About {
        number: "h2.3",
        name: "conjugate_gradient",
        title: "an inverse by products alone",
        section: "conjugate-gradients",
        hints: &[],
    },
    right: |matrix, b, rounds| conjugate(matrix, b, rounds, |new, old| new / old),
    checks: &[
        |Trial { function, .. }, sheet| {
            let matrix = [vec![1.0, 0.0], vec![0.0, 4.0]];
            // one round: the length 8 / 20 along (2, 2)
            row_of_rounds(sheet, function, &matrix, &[2.0, 2.0], 1, vec![0.8, 0.8]);
            row_of_rounds(sheet, function, &matrix, &[2.0, 2.0], 2, vec![2.0, 0.5]);
            row_of_rounds(sheet, function, &matrix, &[2.0, 2.0], 0, vec![0.0, 0.0]);
            row_of_rounds(sheet, function, &[vec![2.0, 1.0], vec![1.0, 2.0]], &[3.0, 3.0], 1, vec![1.0, 1.0]);
            // solved after one round: nothing more is to be done, and nothing to be divided by 0
            row_of_rounds(sheet, function, &[vec![2.0, 0.0], vec![0.0, 2.0]], &[2.0, 4.0], 5, vec![1.0, 2.0]);
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 2003);
            for _ in 0..20 {
                let n = 4 + stream.below(2) as usize;
                let a: Vec<Vec<f64>> = (0..n).map(|_| normals(&mut stream, n)).collect();
                let entry =
                    |i: usize, j: usize| rounded(a.iter().map(|row| row[i] * row[j]).sum::<f64>()) + 2.0 * f64::from(u8::from(i == j));
                let matrix: Vec<Vec<f64>> = (0..n).map(|i| (0..n).map(|j| entry(i.min(j), i.max(j))).collect()).collect();
                let (b, rounds) = (numbers(&mut stream, n), 1 + stream.below(4) as usize);
                row_of_rounds(sheet, function, &matrix, &b, rounds, right(&matrix, &b, rounds));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "each direction is the rest alone: that is steepest descent",
            section: "conjugate-gradients",
            function: |matrix, b, rounds| conjugate(matrix, b, rounds, |_, _| 0.0),
        },
        Mistake {
            says: "the part of the old direction is upside down",
            section: "conjugate-gradients",
            function: |matrix, b, rounds| conjugate(matrix, b, rounds, |new, old| if new < 1e-16 { 0.0 } else { old / new }),
        },
        Mistake {
            says: "the part of the old direction is divided by the first square of the rest, and not by the one before",
            section: "conjugate-gradients",
            function: |matrix, b, rounds| {
                let mut first = None;
                conjugate(matrix, b, rounds, |new, old| new / *first.get_or_insert(old))
            },
        },
        Mistake {
            says: "the part of the old direction is 1",
            section: "conjugate-gradients",
            function: |matrix, b, rounds| conjugate(matrix, b, rounds, |_, _| 1.0),
        },
        Mistake {
            says: "the part of the old direction is the root of what it should be",
            section: "conjugate-gradients",
            function: |matrix, b, rounds| conjugate(matrix, b, rounds, |new, old| (new / old).sqrt()),
        },
        Mistake {
            says: "there is one round too many",
            section: "conjugate-gradients",
            function: |matrix, b, rounds| conjugate(matrix, b, rounds + 1, |new, old| new / old),
        },
    ],
};

// h2.4

fn whitened(numbers: &[f64], is_valid: &[bool], over_all: bool, divisor: fn(f64, f64) -> f64) -> Vec<f64> {
    let valid: Vec<f64> = numbers.iter().zip(is_valid).filter(|(_, is)| **is || over_all).map(|(x, _)| *x).collect();
    let n = valid.len().max(1) as f64;
    let mean = valid.iter().sum::<f64>() / n;
    let squares = valid.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
    numbers.iter().zip(is_valid).map(|(x, is)| if *is { (x - mean) / divisor(squares, n) } else { 0.0 }).collect()
}

fn usual(squares: f64, n: f64) -> f64 {
    (squares / n).sqrt() + 1e-8
}

fn row_of_mask(sheet: &mut Sheet, function: MaskedWhitened, numbers: &[f64], is_valid: &[bool], expected: Vec<f64>) {
    let mask = is_valid.iter().map(bool::to_string).collect::<Vec<_>>().join(", ");
    let place = format!("masked_whitened(numbers = {}, is_valid = [{mask}])", list(numbers));
    sheet.row(place, expected, || function(numbers, is_valid));
}

static MASKED_WHITENED: Exercise<MaskedWhitened> = Exercise {
    about: About { number: "h2.4", name: "masked_whitened", title: "normalised, without the padding", section: "padding", hints: &[] },
    right: |numbers, is_valid| whitened(numbers, is_valid, false, usual),
    checks: &[
        |Trial { function, .. }, sheet| {
            row_of_mask(sheet, function, &[1.0, 3.0, 100.0], &[true, true, false], vec![-1.0, 1.0, 0.0]);
            row_of_mask(
                sheet,
                function,
                &[7.0, 1.0, 1.0, 4.0],
                &[true, true, true, true],
                vec![1.507_557, -0.904_534, -0.904_534, 0.301_511],
            );
            row_of_mask(sheet, function, &[5.0, 5.0, 0.0], &[true, true, false], vec![0.0, 0.0, 0.0]);
            row_of_mask(sheet, function, &[1.0, f64::NAN, 3.0], &[true, false, true], vec![-1.0, 0.0, 1.0]);
            row_of_mask(sheet, function, &[2.0, 4.0], &[false, false], vec![0.0, 0.0]);
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 2004);
            for _ in 0..40 {
                let n = 2 + stream.below(8) as usize;
                let (all, valid) = (numbers(&mut stream, n), (0..n).map(|_| stream.below(4) > 0).collect::<Vec<_>>());
                row_of_mask(sheet, function, &all, &valid, right(&all, &valid));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "mean and standard deviation are those of all numbers, with the padding",
            section: "padding",
            function: |numbers, is_valid| whitened(numbers, is_valid, true, usual),
        },
        Mistake {
            says: "the padding counts as zeros in the mean and in the standard deviation",
            section: "padding",
            function: |numbers, is_valid| {
                let zeros: Vec<f64> = numbers.iter().zip(is_valid).map(|(x, is)| if *is { *x } else { 0.0 }).collect();
                whitened(&zeros, is_valid, true, usual)
            },
        },
        Mistake {
            says: "the padding is multiplied by 0 and not replaced: NaN stays NaN",
            section: "padding",
            function: |numbers, is_valid| {
                let own = whitened(numbers, is_valid, false, usual);
                own.iter().zip(numbers).zip(is_valid).map(|((own, x), is)| if *is { *own } else { 0.0 * x }).collect()
            },
        },
        Mistake {
            says: "the standard deviation is that of a sample",
            section: "padding",
            function: |numbers, is_valid| whitened(numbers, is_valid, false, |squares, n| (squares / (n - 1.0).max(1.0)).sqrt() + 1e-8),
        },
        Mistake {
            says: "it is divided by the variance",
            section: "padding",
            function: |numbers, is_valid| whitened(numbers, is_valid, false, |squares, n| squares / n + 1e-8),
        },
        Mistake {
            says: "only the mean is subtracted",
            section: "padding",
            function: |numbers, is_valid| whitened(numbers, is_valid, false, |_, _| 1.0),
        },
    ],
};
