//! Tests of pairs of algorithms, and the correction for testing many pairs.
//!
//! An interval estimates the size of a difference. A p-value is the probability that chance alone makes a difference at least as large.
//! The Mann-Whitney test and the sign-flip test are exact for few runs, with and without ties: they count rearrangements of the scores.

use std::ops::Range;

use gradus_base::random::{Purpose, Stream};
use gradus_base::{math, threads};

use super::bootstrap::grouped;
use super::{Scores, ascending, average};

/// With at most this many runs of both algorithms together, the distribution of rank sums is exact. With more, it is approximated.
const COUNTED: usize = 60;
/// With at most this many pairs, every assignment of signs is tried. With more, [`SAMPLED`] random assignments are tried.
const ENUMERATED: usize = 20;
/// Number of random assignments of signs.
const SAMPLED: u64 = 100_000;
/// Number of assignments of signs that a thread tries at a time.
const ASSIGNMENTS: u64 = 4_096;

/// Returns the two-sided p-value of Mann and Whitney's test of the hypothesis that runs of X and Y score alike.
///
/// U is summed over the tasks, and runs are exchanged only within each task. The p-value is exact, also with ties, for at most 60 runs of
/// X and Y together. For more runs it is a normal approximation with corrections for ties and continuity. U divided by the number of pairs
/// is the [`probability_of_improvement`](super::probability_of_improvement).
///
/// # Panics
/// If X and Y have different numbers of tasks.
pub fn mann_whitney(x: &Scores, y: &Scores) -> f64 {
    assert_eq!(x.tasks().len(), y.tasks().len(), "Mann-Whitney test: expected the same tasks");
    let tasks = || x.tasks().zip(y.tasks()).map(|(x, y)| doubled_ranks(x, y));
    let observed: u64 = tasks().map(|ranks| ranks[..x.runs()].iter().sum::<u64>()).sum();
    if x.runs() + y.runs() <= COUNTED {
        // probabilities of the sum of X's doubled ranks over all tasks, from 0 up
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
    // without ties doubled ranks have steps of two, so the continuity correction is 1
    let distance = ((observed as f64 - mean).abs() - 1.0).max(0.0);
    if variance > 0.0 { (2.0 * normal_tail(distance / variance.sqrt())).min(1.0) } else { 1.0 }
}

/// Returns twice the rank of every score among the scores of X and Y, in this order. Tied scores have the mean of their ranks.
fn doubled_ranks(x: &[f64], y: &[f64]) -> Vec<u64> {
    let all: Vec<f64> = x.iter().chain(y).copied().collect();
    let (mut ranks, mut below) = (vec![0; all.len()], 0);
    for same in ascending(&all).chunk_by(|a, b| a.0 == b.0) {
        same.iter().for_each(|(_, place)| ranks[*place as usize] = (2 * below + same.len() + 1) as u64);
        below += same.len();
    }
    ranks
}

/// Returns the probability of each sum of `n` of the `ranks`, if all choices of `n` ranks are equally probable.
fn rank_sums(ranks: &[u64], n: usize) -> Vec<f64> {
    let width = ranks.iter().sum::<u64>() as usize + 1;
    // sums[k][s]: the probability that k of the ranks so far were chosen and add up to s
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

/// Returns the distribution of the sum of two independent numbers.
fn convolved(a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut sum = vec![0.0; a.len() + b.len() - 1];
    for (i, a) in a.iter().enumerate().filter(|(_, a)| **a > 0.0) {
        b.iter().zip(&mut sum[i..]).for_each(|(b, sum)| *sum += a * b);
    }
    sum
}

/// Returns P(Z > z) of a standard normal Z, for z of at least 0. It uses a Chebyshev approximation of `erfc` (Press et al., Numerical
/// Recipes, section 6.2.2). The relative error is below 1.2e-7.
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
    0.5 * t * libm::exp(polynomial - x * x)
}

/// Returns the two-sided p-value of the sign-flip test for the [`paired`] differences of runs. The null hypothesis is that each difference
/// is equally probable with either sign. The p-value is exact for at most 20 pairs. For more pairs it is estimated from 100 000 random
/// assignments of signs with a fixed seed. NaN if a difference is not finite.
pub fn sign_flips(differences: &[f64]) -> f64 {
    sign_flips_of_all(&[differences])[0]
}

/// Returns the p-value of [`sign_flips`] for each list of differences. Lists of the same length share the random signs, which are computed
/// only once.
pub fn sign_flips_of_all(all: &[&[f64]]) -> Vec<f64> {
    let mut p_values = vec![0.0; all.len()];
    for same in grouped(all.iter().map(|differences| differences.len())) {
        let flips: Vec<Flips> = same.iter().map(|place| Flips::new(all[*place])).collect();
        let runs = all[same[0]].len();
        let assignments = if runs <= ENUMERATED { 1 << runs } else { SAMPLED };
        let mut chunks: Vec<u64> = (0..assignments.div_ceil(ASSIGNMENTS)).collect();
        let counts = threads::with_default(|| {
            threads::map(&mut chunks, |_, chunk| {
                let numbers = *chunk * ASSIGNMENTS..assignments.min((*chunk + 1) * ASSIGNMENTS);
                let signs = if runs <= ENUMERATED { enumerated_signs(numbers, runs) } else { random_signs(numbers, runs) };
                flips.iter().map(|flips| flips.count(&signs)).collect::<Vec<[u64; 2]>>()
            })
        });
        for (number, place) in same.iter().enumerate() {
            // the observed signs are one of the assignments, in addition to the random ones
            let observed = u64::from(runs > ENUMERATED);
            let extreme = [0, 1].map(|end| observed + counts.iter().map(|counts| counts[number][end]).sum::<u64>());
            p_values[*place] = (2.0 * extreme[0].min(extreme[1]) as f64 / (assignments + observed) as f64).min(1.0);
        }
    }
    for (p, differences) in p_values.iter_mut().zip(all) {
        if differences.iter().any(|difference| !difference.is_finite()) {
            *p = f64::NAN;
        }
    }
    p_values
}

/// The signs of the runs in several assignments, eight runs to a byte: `signs[byte][assignment]`. A set bit is a minus.
type Signs = Vec<Vec<u8>>;

/// Returns the assignments with these numbers, of all assignments of signs to `runs` runs.
fn enumerated_signs(numbers: Range<u64>, runs: usize) -> Signs {
    (0..runs.div_ceil(8)).map(|byte| numbers.clone().map(|number| (number >> (8 * byte)) as u8).collect()).collect()
}

/// Returns the random assignments with these numbers.
fn random_signs(numbers: Range<u64>, runs: usize) -> Signs {
    let mut signs = vec![Vec::with_capacity((numbers.end - numbers.start) as usize); runs.div_ceil(8)];
    let mut words = vec![0; runs];
    for number in numbers {
        Stream::new(1, Purpose::Bootstrap, number).fill(&mut words);
        for (signs, words) in signs.iter_mut().zip(words.chunks(8)) {
            signs.push(words.iter().rev().fold(0, |byte, word| byte << 1 | (word & 1) as u8));
        }
    }
    signs
}

/// The sign-flip test of one list of differences.
struct Flips<'a> {
    differences: &'a [f64],
    observed: f64,
    /// Sums that differ by at most this amount count as equal, because they differ only by rounding.
    slack: f64,
}

impl<'a> Flips<'a> {
    fn new(differences: &'a [f64]) -> Self {
        let total: f64 = differences.iter().map(|difference| difference.abs()).sum();
        Self { differences, observed: differences.iter().sum(), slack: 1e-12 * total }
    }

    /// Counts the assignments with at most the observed sum, and those with at least the observed sum.
    fn count(&self, signs: &Signs) -> [u64; 2] {
        let mut sums = vec![0.0; signs.first().map_or(1, Vec::len)];
        for (differences, signs) in self.differences.chunks(8).zip(signs) {
            // the sums of eight differences for all assignments of their signs
            let mut table = [0.0; 256];
            for (bit, difference) in differences.iter().enumerate() {
                for place in 0..1 << bit {
                    (table[place], table[place | 1 << bit]) = (table[place] + difference, table[place] - difference);
                }
            }
            sums.iter_mut().zip(signs).for_each(|(sum, signs)| *sum += table[*signs as usize]);
        }
        let count = |is_extreme: &dyn Fn(f64) -> bool| sums.iter().filter(|sum| is_extreme(**sum)).count() as u64;
        [count(&|sum| sum <= self.observed + self.slack), count(&|sum| sum >= self.observed - self.slack)]
    }
}

/// Returns the two-sided p-value of Fisher's exact test of the hypothesis that runs of X and Y succeed with the same probability. Each pair
/// is the number of successes and of runs. The p-value is the probability, given the total number of successes, of all divisions of them
/// between X and Y that are at most as probable as the observed one.
///
/// ```
/// // Fisher's tea tasting (The Design of Experiments, 1935): 3 of 4 cups right
/// assert!((gradus_statistics::fisher_exact([3, 4], [1, 4]) - 34.0 / 70.0).abs() < 1e-12);
/// ```
///
/// # Panics
/// If there are more successes than runs.
pub fn fisher_exact([x, n]: [u64; 2], [y, m]: [u64; 2]) -> f64 {
    assert!(x <= n && y <= m, "Fisher's exact test: expected at most as many successes as runs, got {x} of {n} and {y} of {m}");
    let successes = x + y;
    let possible = successes.saturating_sub(m)..=successes.min(n);
    // the logarithms of the hypergeometric probabilities of k successes of X, up to a common term, each from the one before it
    let mut log_weight: f64 = 0.0;
    let mut logs = Vec::new();
    for k in possible.clone() {
        logs.push(log_weight);
        let odds = (n - k) as f64 * (successes - k) as f64 / ((k + 1) as f64 * (m + k + 1 - successes) as f64);
        log_weight += math::ln_f64(odds);
    }
    let greatest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = logs.iter().map(|log| math::exp_f64(log - greatest)).collect();
    let observed = weights[(x - possible.start()) as usize];
    // equal probabilities may differ by rounding errors
    let as_extreme: f64 = weights.iter().filter(|weight| **weight <= observed * (1.0 + 1e-9)).sum();
    (as_extreme / weights.iter().sum::<f64>()).min(1.0)
}

/// Returns the p-values of several tests, corrected for the number of tests (Holm, Scandinavian Journal of Statistics 6, 1979). If
/// corrected values below 0.05 count as differences, the probability of at least one false difference is at most 0.05.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut corrected = vec![0.0; p_values.len()];
    let mut least: f64 = 0.0;
    for (rank, (p, place)) in ascending(p_values).into_iter().enumerate() {
        least = least.max(((p_values.len() - rank) as f64 * p).min(1.0));
        corrected[place as usize] = least;
    }
    corrected
}

/// Returns the difference x - y of each pair of runs with the same index, averaged over the tasks.
///
/// # Panics
/// If X and Y have different numbers of runs or tasks.
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

    /// By hand: of the 20 choices of 3 of 6 runs, one has the three highest scores. The two-sided p-value is therefore 2/20.
    #[test]
    fn p_values_of_few_runs_are_exact() {
        let near = |a: f64, b: f64| (a - b).abs() < 1e-12;
        assert!(near(mann_whitney(&scores(&[4.0, 5.0, 6.0]), &scores(&[1.0, 2.0, 3.0])), 0.1));
        assert!(near(mann_whitney(&scores(&[1.0, 1.0]), &scores(&[1.0, 1.0])), 1.0), "all tie");
        // ranks 1.5 1.5 | 3: X's sum is 3 in one of three choices, 4.5 in two
        assert!(near(mann_whitney(&scores(&[0.0, 0.0]), &scores(&[7.0])), 2.0 / 3.0));
        // of the eight assignments of signs, one has the sum 6
        assert!(near(sign_flips(&[1.0, 2.0, 3.0]), 0.25));
        assert!(near(sign_flips(&[0.1, 0.2, -0.3]), 1.0), "0.1 + 0.2 - 0.3 is 0 apart from rounding");
        assert!(near(sign_flips(&[0.0, 0.0]), 1.0));
    }

    /// Counts every assignment, with each sum computed on its own.
    fn sign_flips_directly(differences: &[f64]) -> f64 {
        let total: f64 = differences.iter().map(|difference| difference.abs()).sum();
        let (observed, slack) = (differences.iter().sum::<f64>(), 1e-12 * total);
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
            count(observed);
            for number in 0..SAMPLED {
                let mut stream = Stream::new(1, Purpose::Bootstrap, number);
                let signs: Vec<bool> = differences.iter().map(|_| stream.word() & 1 == 1).collect();
                count(signed(&|i| signs[i]));
            }
        }
        (2.0 * at_most.min(at_least) as f64 / all as f64).min(1.0)
    }

    /// Returns random numbers with `levels` values, so that many of them tie.
    fn tied(n: usize, levels: u32, seed: u64) -> Vec<f64> {
        let mut stream = Stream::new(seed, Purpose::Problem, 0);
        (0..n).map(|_| f64::from(stream.below(levels)) * 0.05 - 0.3).collect()
    }

    #[test]
    fn differences_that_are_no_numbers_say_nothing() {
        assert!(sign_flips(&[f64::NAN, 1.0, 2.0]).is_nan() && sign_flips(&[1.0, f64::INFINITY]).is_nan());
        assert_eq!(sign_flips_of_all(&[&[f64::NAN, 1.0], &[1.0, 1.0]])[1], 0.5);
    }

    #[test]
    fn sign_flips_equal_the_direct_count() {
        let lists: Vec<Vec<f64>> =
            [0, 1, 2, 7, 8, 9, 15, 17, 21, 24, 33, 21].into_iter().zip(0..).map(|(n, seed)| tied(n, 13, seed)).collect();
        let all = sign_flips_of_all(&lists.iter().map(Vec::as_slice).collect::<Vec<_>>());
        for (differences, p) in lists.iter().zip(all) {
            assert_eq!(p, sign_flips_directly(differences), "{differences:?}");
            assert_eq!(p, sign_flips(differences));
        }
    }

    #[test]
    fn ranks_equal_the_direct_count() {
        for (n, m) in (1..=50).zip((1..=50).rev()) {
            let (x, y) = (tied(n, 12, 1), tied(m, 9, 2));
            let all = [x.as_slice(), &y].concat();
            let rank = |score: &f64| {
                let count = |is: &dyn Fn(&f64) -> bool| all.iter().filter(|other| is(other)).count() as u64;
                2 * count(&|other| other < score) + count(&|other| other == score) + 1
            };
            assert_eq!(doubled_ranks(&x, &y), all.iter().map(rank).collect::<Vec<_>>());
        }
        assert_eq!(doubled_ranks(&[0.0], &[-0.0]), [3, 3]);
    }

    /// `scipy.stats.fisher_exact` 1.17.1.
    #[test]
    fn fishers_exact_test_matches_scipy() {
        for ((x, y), expected) in [
            (([8, 10], [1, 6]), 0.03496503496503495),
            (([6, 8], [1, 5]), 0.10256410256410256),
            (([20, 20], [20, 20]), 1.0),
            (([0, 20], [20, 20]), 1.4508889103849688e-11),
            (([12, 20], [5, 20]), 0.05355099259437413),
            (([3, 7], [50, 90]), 0.6981082353033375),
            // exact sums of binomial coefficients
            (([300, 600], [330, 600]), 0.09361584146866415),
            (([510, 1000], [560, 1000]), 0.028013855476787742),
        ] {
            let p = fisher_exact(x, y);
            assert!((p - expected).abs() <= 1e-9 * expected, "{x:?}, {y:?}: expected {expected}, got {p}");
            assert!((fisher_exact(y, x) - p).abs() < 1e-12);
        }
    }

    /// By hand, and by `statsmodels.stats.multitest.multipletests(p, method="holm")`.
    #[test]
    fn holms_correction_matches_statsmodels() {
        let corrected = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (ours, expected) in corrected.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((ours - expected).abs() < 1e-12, "{corrected:?}");
        }
        assert_eq!(holm(&[0.5, 0.9]), [1.0, 1.0]);
        assert!(holm(&[]).is_empty());
    }
}
