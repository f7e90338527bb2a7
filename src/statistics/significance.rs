//! Tests of pairs of algorithms, and the correction for testing many pairs.
//!
//! An interval answers how large a difference is; a p-value how often chance alone makes one at least as large. Both tests here are
//! exact for few runs: they count rearrangements of the very scores at hand, ties included.

use gradus_envs::random::{Purpose, Stream};

use super::{Scores, average};

/// Up to so many runs of both algorithms together the distribution of ranks is counted; above, it is taken for normal.
const COUNTED: usize = 60;
/// Up to so many pairs every assignment of signs is tried; above, a sample of [`SAMPLED`].
const ENUMERATED: usize = 20;
/// Random assignments of signs.
const SAMPLED: u64 = 100_000;

/// The two-sided p-value of Mann and Whitney's test that runs of X and of Y score alike, stratified over the tasks: U is added over the
/// tasks, and runs are exchanged within each task only. Exact, ties included, up to 60 runs of both together; above, a normal
/// approximation with the corrections for ties and continuity.
///
/// It belongs to [`probability_of_improvement`](super::probability_of_improvement), which is the same U over the number of pairs.
///
/// # Panics
/// If they do not have the same number of tasks.
pub fn mann_whitney(x: &Scores, y: &Scores) -> f64 {
    assert_eq!(x.tasks().len(), y.tasks().len(), "Mann-Whitney test: expected the same tasks");
    let tasks = || x.tasks().zip(y.tasks()).map(|(x, y)| doubled_ranks(x, y));
    let observed: u64 = tasks().map(|ranks| ranks[..x.runs()].iter().sum::<u64>()).sum();
    if x.runs() + y.runs() <= COUNTED {
        // of the sum of X's doubled ranks over all tasks, from 0 up
        let all = tasks().map(|ranks| rank_sums(&ranks, x.runs())).reduce(|a, b| convolved(&a, &b)).unwrap_or_default();
        let (at_most, at_least) = (all.iter().take(observed as usize + 1).sum::<f64>(), all.iter().skip(observed as usize).sum::<f64>());
        return (2.0 * at_most.min(at_least)).min(1.0);
    }
    let (n, m) = (x.runs() as f64, y.runs() as f64);
    let (mut mean, mut variance) = (0.0, 0.0);
    for ranks in tasks() {
        let middle = n + m + 1.0; // of doubled ranks
        let spread: f64 = ranks.iter().map(|rank| (*rank as f64 - middle).powi(2)).sum();
        mean += n * middle;
        variance += n * m / (n + m) * spread / (n + m - 1.0);
    }
    // doubled ranks move in steps of two where nothing ties
    let distance = ((observed as f64 - mean).abs() - 1.0).max(0.0);
    if variance > 0.0 { (2.0 * normal_tail(distance / variance.sqrt())).min(1.0) } else { 1.0 }
}

/// Twice the rank of every score among all of them, X's first; scores that tie have the mean of their ranks.
fn doubled_ranks(x: &[f64], y: &[f64]) -> Vec<u64> {
    let all: Vec<f64> = x.iter().chain(y).copied().collect();
    let rank = |score: &f64| {
        let (below, same) =
            all.iter().fold((0, 0), |(below, same), other| (below + u64::from(other < score), same + u64::from(other == score)));
        2 * below + same + 1
    };
    all.iter().map(rank).collect()
}

/// How probable each sum of `n` of these ranks is, where every choice of `n` is as probable as any other.
fn rank_sums(ranks: &[u64], n: usize) -> Vec<f64> {
    let width = ranks.iter().sum::<u64>() as usize + 1;
    // sums[k][s]: how probable it is that k of the ranks so far were chosen and add up to s
    let mut sums = vec![vec![0.0; width]; n + 1];
    sums[0][0] = 1.0;
    for (seen, rank) in ranks.iter().enumerate() {
        let left = (ranks.len() - seen) as f64;
        for k in (0..=n.min(seen)).rev() {
            let chosen = (n - k) as f64 / left;
            for s in 0..width {
                let p = std::mem::take(&mut sums[k][s]);
                if p > 0.0 {
                    sums[k][s] = p * (1.0 - chosen);
                    if chosen > 0.0 {
                        sums[k + 1][s + *rank as usize] += p * chosen;
                    }
                }
            }
        }
    }
    sums.swap_remove(n)
}

/// The distribution of the sum of two independent numbers.
fn convolved(a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut sum = vec![0.0; a.len() + b.len() - 1];
    for (i, a) in a.iter().enumerate().filter(|(_, a)| **a > 0.0) {
        b.iter().zip(&mut sum[i..]).for_each(|(b, sum)| *sum += a * b);
    }
    sum
}

/// P(Z > z) of a standard normal Z, for z of at least 0. Relative error below 1e-7: `erfc` by Chebyshev fitting (Press et al., Numerical
/// Recipes, section 6.2.2).
fn normal_tail(z: f64) -> f64 {
    let x = z / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.5 * x);
    let coefficients = [
        -1.265_512_23,
        1.000_023_68,
        0.374_091_96,
        0.096_784_18,
        -0.186_288_06,
        0.278_868_07,
        -1.135_203_98,
        1.488_515_87,
        -0.822_152_23,
        0.170_872_77,
    ];
    let polynomial = coefficients.iter().rev().fold(0.0, |sum, coefficient| sum * t + coefficient);
    0.5 * t * (polynomial - x * x).exp()
}

/// The two-sided p-value of the sign-flip test that paired runs of X and Y differ by 0 on average: under chance every difference could as
/// well have had the other sign. Exact up to 20 pairs; above, from 100 000 random assignments of signs with a fixed seed.
pub fn sign_flips(differences: &[f64]) -> f64 {
    let total: f64 = differences.iter().map(|difference| difference.abs()).sum();
    let observed: f64 = differences.iter().sum();
    // sums that are equal but for rounding are equal
    let slack = 1e-12 * total;
    let (mut at_most, mut at_least, mut all) = (0_u64, 0_u64, 0_u64);
    let mut count = |sum: f64| {
        at_most += u64::from(sum <= observed + slack);
        at_least += u64::from(sum >= observed - slack);
        all += 1;
    };
    let signed = |negative: &dyn Fn(usize) -> bool| -> f64 {
        differences.iter().enumerate().map(|(i, difference)| if negative(i) { -difference } else { *difference }).sum()
    };
    if differences.len() <= ENUMERATED {
        (0..1_u64 << differences.len()).for_each(|signs| count(signed(&|i| signs >> i & 1 == 1)));
    } else {
        count(observed); // what was seen is one of the assignments
        for number in 0..SAMPLED {
            let mut stream = Stream::new(1, Purpose::Bootstrap, number);
            let signs: Vec<bool> = differences.iter().map(|_| stream.word() & 1 == 1).collect();
            count(signed(&|i| signs[i]));
        }
    }
    (2.0 * at_most.min(at_least) as f64 / all as f64).min(1.0)
}

/// P-values corrected for their number (Holm, Scandinavian Journal of Statistics 6, 1979): with those below 0.05 called differences, the
/// probability of even one false call among all is at most 0.05.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut corrected = vec![0.0; p_values.len()];
    let mut least: f64 = 0.0;
    for (rank, place) in order.into_iter().enumerate() {
        least = least.max(((p_values.len() - rank) as f64 * p_values[place]).min(1.0));
        corrected[place] = least;
    }
    corrected
}

/// The differences x - y of runs of the same number, task by task averaged: one for each run.
///
/// # Panics
/// If they do not have the same runs and tasks.
pub fn paired(x: &Scores, y: &Scores) -> Vec<f64> {
    assert!((x.runs(), x.tasks().len()) == (y.runs(), y.tasks().len()), "paired differences: expected the same runs and tasks");
    let run = |scores: &Scores, run: usize| average(&scores.tasks().map(|task| task[run]).collect::<Vec<_>>());
    (0..x.runs()).map(|number| run(x, number) - run(y, number)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scores(runs: &[f64]) -> Scores {
        Scores::new(vec![runs.to_vec()]).unwrap()
    }

    /// By hand: of the 20 choices of 3 runs of 6, one has all three highest; two-sided that is 2 of 20.
    #[test]
    fn few_runs_are_counted() {
        let near = |a: f64, b: f64| (a - b).abs() < 1e-12;
        assert!(near(mann_whitney(&scores(&[4.0, 5.0, 6.0]), &scores(&[1.0, 2.0, 3.0])), 0.1));
        assert!(near(mann_whitney(&scores(&[1.0, 1.0]), &scores(&[1.0, 1.0])), 1.0), "all tie");
        // ranks 1.5 1.5 | 3: X's sum is 3 in one of three choices, 4.5 in two
        assert!(near(mann_whitney(&scores(&[0.0, 0.0]), &scores(&[7.0])), 2.0 / 3.0));
        // eight signs; the sum is 6 once
        assert!(near(sign_flips(&[1.0, 2.0, 3.0]), 0.25));
        assert!(near(sign_flips(&[0.1, 0.2, -0.3]), 1.0), "0.1 + 0.2 - 0.3 is 0 but for rounding");
        assert!(near(sign_flips(&[0.0, 0.0]), 1.0));
    }

    /// By hand, and as `statsmodels.stats.multitest.multipletests(p, method="holm")` has it.
    #[test]
    fn holms_correction() {
        let corrected = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (ours, expected) in corrected.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((ours - expected).abs() < 1e-12, "{corrected:?}");
        }
        assert_eq!(holm(&[0.5, 0.9]), [1.0, 1.0]);
        assert!(holm(&[]).is_empty());
    }
}
