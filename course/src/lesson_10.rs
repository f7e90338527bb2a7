//! Lesson 10: comparing algorithms honestly.

use crate::exercise::{About, Exercise, Mistake, Trial};
use crate::inputs::{numbers, rounded, stream, whole};
use crate::lessons::lesson;
use crate::sheet::{Sheet, list};

/// Returns the interquartile mean of scores.
pub type InterquartileMean = fn(&[f64]) -> f64;
/// Returns the ends of the bootstrap's interval from the scores, the places that each resample has drawn, and the level.
pub type BootstrapInterval = fn(&[f64], &[Vec<usize>], f64) -> (f64, f64);
/// Returns the probability that a run of the first agent scores higher than one of the second.
pub type ProbabilityOfImprovement = fn(&[f64], &[f64]) -> f64;
/// Returns the corrected p-values.
pub type Holm = fn(&[f64]) -> Vec<f64>;
/// Returns the number of seeds of each agent from the standard deviation of a run and the difference to be seen.
pub type SeedsNeeded = fn(f64, f64) -> usize;

lesson!("10", "comparing algorithms", {
    interquartile_mean: InterquartileMean = INTERQUARTILE_MEAN,
    bootstrap_interval: BootstrapInterval = BOOTSTRAP_INTERVAL,
    improvement_probability: ProbabilityOfImprovement = PROBABILITY_OF_IMPROVEMENT,
    holm: Holm = HOLM,
    seeds_needed: SeedsNeeded = SEEDS_NEEDED,
});

fn sorted(numbers: &[f64]) -> Vec<f64> {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

// 10.1

/// The mean of the sorted scores without `low` of them at the one end and `high` at the other.
fn trimmed(scores: &[f64], low: usize, high: usize) -> f64 {
    mean(&sorted(scores)[low..scores.len() - high])
}

static INTERQUARTILE_MEAN: Exercise<InterquartileMean> = Exercise {
    about: About {
        number: "10.1",
        name: "interquartile_mean",
        title: "the mean of the middle half",
        section: "one-number-for-many-runs",
        hints: &[
            "Sort the scores, leave a quarter of them out at either end, and take the mean of the rest.",
            "A quarter of the number of scores is rounded down: of 10 scores, two are left out at either end.",
            "A copy can be sorted: let mut sorted = scores.to_vec(); sorted.sort_by(f64::total_cmp);",
        ],
    },
    right: |scores| trimmed(scores, scores.len() / 4, scores.len() / 4),
    checks: &[
        |Trial { function, .. }, sheet| {
            for (scores, expected) in [
                (&[4.0, 1.0, 100.0, 2.0][..], 3.0),
                (&[1.0, 9.0, 2.0], 4.0),
                (&[5.0], 5.0),
                (&[0.0, 0.0, 8.0, 1.0, 3.0, 2.0, 500.0, 500.0], 3.5),
                (&[9.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 40.0], 5.5), // 3 to 8
            ] {
                sheet.row(format!("interquartile_mean(scores = {})", list(scores)), expected, || function(scores));
            }
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 101);
            for _ in 0..40 {
                let n = 1 + stream.below(20) as usize;
                let scores = numbers(&mut stream, n);
                sheet.row(format!("interquartile_mean(scores = {})", list(&scores)), right(&scores), || function(&scores));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "the scores are not sorted: those that stand at the ends are left out, whatever they are",
            section: "one-number-for-many-runs",
            function: |scores| mean(&scores[scores.len() / 4..scores.len() - scores.len() / 4]),
        },
        Mistake { says: "nothing is left out: it is the mean", section: "one-number-for-many-runs", function: mean },
        Mistake {
            says: "only the lowest quarter is left out: the mean of the best runs flatters",
            section: "one-number-for-many-runs",
            function: |scores| trimmed(scores, scores.len() / 4, 0),
        },
        Mistake {
            says: "only the highest quarter is left out",
            section: "one-number-for-many-runs",
            function: |scores| trimmed(scores, 0, scores.len() / 4),
        },
        Mistake {
            says: "it is the median",
            section: "one-number-for-many-runs",
            function: |scores| (sorted(scores)[(scores.len() - 1) / 2] + sorted(scores)[scores.len() / 2]) / 2.0,
        },
        Mistake {
            says: "the quarter is rounded up, or to the nearest number",
            section: "one-number-for-many-runs",
            function: |scores| {
                let cut = scores.len().div_ceil(4).min((scores.len() - 1) / 2);
                trimmed(scores, cut, cut)
            },
        },
        Mistake {
            says: "the sum of the middle half is divided by the number of all scores",
            section: "one-number-for-many-runs",
            function: |scores| {
                let cut = scores.len() / 4;
                sorted(scores)[cut..scores.len() - cut].iter().sum::<f64>() / scores.len() as f64
            },
        },
    ],
};

// 10.2

fn means(scores: &[f64], draws: &[Vec<usize>]) -> Vec<f64> {
    draws.iter().map(|draw| mean(&draw.iter().map(|i| scores[*i]).collect::<Vec<_>>())).collect()
}

/// How many of `n` numbers are left out at an end at which the share `share` lies outside.
fn left_out(n: usize, share: f64) -> usize {
    // 1 - 0.9 is a little less than 0.1
    (share * n as f64 + 1e-9) as usize
}

/// The ends of what is left of the sorted numbers.
fn ends(numbers: &[f64], low: usize, high: usize) -> (f64, f64) {
    let sorted = sorted(numbers);
    (sorted[low], sorted[sorted.len() - 1 - high])
}

fn row_of_interval(sheet: &mut Sheet, function: BootstrapInterval, scores: &[f64], draws: &[Vec<usize>], level: f64, expected: (f64, f64)) {
    let shown = if draws.len() > 5 {
        format!("{} resamples, the first of which is {}", draws.len(), whole(&draws[0]))
    } else {
        format!("[{}]", draws.iter().map(|draw| whole(draw)).collect::<Vec<_>>().join(", "))
    };
    let place = format!("bootstrap_interval(scores = {}, draws = {shown}, level = {level})", list(scores));
    sheet.row(place, vec![expected.0, expected.1], || {
        let (low, high) = function(scores, draws, level);
        vec![low, high]
    });
}

static BOOTSTRAP_INTERVAL: Exercise<BootstrapInterval> = Exercise {
    about: About {
        number: "10.2",
        name: "bootstrap_interval",
        title: "how far the mean can be trusted",
        section: "the-bootstrap",
        hints: &[
            "For each list of places in `draws`, take the scores at these places, and their mean. There are as many means as lists.",
            "Sort the means. Of n means, leave out (1 - level) / 2 * n at either end, rounded down, and return the first and the last of the rest.",
            "Level 0.9 and 50 means: 0.05 * 50 = 2.5, so two are left out at either end, and the ends are the third and the 48th.",
        ],
    },
    right: |scores, draws, level| {
        let cut = left_out(draws.len(), (1.0 - level) / 2.0);
        ends(&means(scores, draws), cut, cut)
    },
    checks: &[
        |Trial { function, .. }, sheet| {
            let scores = [1.0, 5.0, 9.0];
            let draws = [vec![2, 2, 2], vec![0, 0, 0], vec![1, 1, 1], vec![0, 1, 2], vec![0, 0, 1]];
            // the means 5, 11/3, 19/3 and 11/3
            let mixed = [vec![0, 1, 2], vec![0, 1, 1], vec![1, 2, 1], vec![0, 0, 2]];
            row_of_interval(sheet, function, &scores, &mixed, 0.5, (11.0 / 3.0, 5.0));
            // the means 9, 1, 5, 5 and 7/3
            row_of_interval(sheet, function, &scores, &draws[..4], 0.5, (5.0, 5.0));
            row_of_interval(sheet, function, &scores, &draws, 0.6, (7.0 / 3.0, 5.0));
            row_of_interval(sheet, function, &scores, &draws, 0.2, (5.0, 5.0));
            row_of_interval(sheet, function, &scores, &draws, 0.95, (1.0, 9.0));
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 102);
            for _ in 0..10 {
                let n = 3 + stream.below(6) as usize;
                let scores = numbers(&mut stream, n);
                let draws: Vec<Vec<usize>> = (0..206).map(|_| (0..n).map(|_| stream.below(n as u32) as usize).collect()).collect();
                let level = [0.5, 0.8, 0.9, 0.95][stream.below(4) as usize];
                row_of_interval(sheet, function, &scores, &draws, level, right(&scores, &draws, level));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "1 - level is left out at either end, so that the interval is too short: half of it belongs to each",
            section: "the-bootstrap",
            function: |scores, draws, level| {
                let cut = left_out(draws.len(), 1.0 - level).min((draws.len() - 1) / 2);
                ends(&means(scores, draws), cut, cut)
            },
        },
        Mistake {
            says: "the interval is that of the scores and not that of their mean: it says where runs end, and does not shrink with their number",
            section: "the-bootstrap",
            function: |scores, draws, level| {
                let all: Vec<f64> = draws.iter().flatten().map(|i| scores[*i]).collect();
                let cut = left_out(all.len(), (1.0 - level) / 2.0);
                ends(&all, cut, cut)
            },
        },
        Mistake {
            says: "it is the smallest and the largest of the means, whatever the level",
            section: "the-bootstrap",
            function: |scores, draws, _| ends(&means(scores, draws), 0, 0),
        },
        Mistake {
            says: "the scores themselves are sorted and cut, without the resamples",
            section: "the-bootstrap",
            function: |scores, _, level| {
                let cut = left_out(scores.len(), (1.0 - level) / 2.0);
                ends(scores, cut, cut)
            },
        },
        Mistake {
            says: "the upper end is one place too low: of n sorted means the last one has the place n - 1",
            section: "the-bootstrap",
            function: |scores, draws, level| {
                let cut = left_out(draws.len(), (1.0 - level) / 2.0);
                ends(&means(scores, draws), cut, (cut + 1).min(draws.len() - 1))
            },
        },
        Mistake {
            says: "the means are not sorted",
            section: "the-bootstrap",
            function: |scores, draws, level| {
                let (means, cut) = (means(scores, draws), left_out(draws.len(), (1.0 - level) / 2.0));
                (means[cut], means[means.len() - 1 - cut])
            },
        },
        Mistake {
            says: "it is the mean of all resamples plus and minus 1.96 of their standard deviations: symmetric, and always of level 0.95",
            section: "the-bootstrap",
            function: |scores, draws, _| {
                let means = means(scores, draws);
                let centre = mean(&means);
                let std = (means.iter().map(|x| (x - centre).powi(2)).sum::<f64>() / (means.len().max(2) - 1) as f64).sqrt();
                (centre - 1.96 * std, centre + 1.96 * std)
            },
        },
        Mistake {
            says: "the ends are off by one place: the last of those that are left out, and not the first of the rest",
            section: "the-bootstrap",
            function: |scores, draws, level| {
                let cut = left_out(draws.len(), (1.0 - level) / 2.0).saturating_sub(1);
                ends(&means(scores, draws), cut, cut)
            },
        },
    ],
};

// 10.3

/// The mean over all pairs of what a pair is worth.
fn over_pairs(x: &[f64], y: &[f64], worth: impl Fn(f64, f64) -> f64) -> f64 {
    x.iter().flat_map(|x| y.iter().map(|y| worth(*x, *y)).collect::<Vec<_>>()).sum::<f64>() / (x.len() * y.len()) as f64
}

fn is(condition: bool) -> f64 {
    f64::from(u8::from(condition))
}

fn half_for_ties(x: f64, y: f64) -> f64 {
    is(x > y) + 0.5 * is(x == y)
}

static PROBABILITY_OF_IMPROVEMENT: Exercise<ProbabilityOfImprovement> = Exercise {
    about: About {
        number: "10.3",
        name: "improvement_probability",
        title: "would a new run be better?",
        section: "the-probability-of-improvement",
        hints: &[
            "Compare each run of x with each run of y: the share of the pairs in which x is higher.",
            "A pair of equal scores counts one half. The agents need not have equally many runs.",
        ],
    },
    right: |x, y| over_pairs(x, y, half_for_ties),
    checks: &[
        |Trial { function, .. }, sheet| {
            for (x, y, expected) in [
                (&[1.0, 2.0][..], &[0.0, 0.0][..], 1.0),
                (&[1.0, 4.0], &[3.0, 2.0], 0.5),
                (&[500.0, 500.0], &[500.0, 100.0], 0.75),
                (&[1.0], &[1.0], 0.5),
                (&[1.0, 1.0, 9.0], &[2.0], 1.0 / 3.0),
                (&[3.0, 5.0, 7.0, 9.0], &[4.0, 8.0], 0.5),
            ] {
                let place = format!("improvement_probability(x = {}, y = {})", list(x), list(y));
                sheet.row(place, expected, || function(x, y));
            }
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 103);
            for _ in 0..40 {
                let [x, y] = [1, 2].map(|least| {
                    let n = least + stream.below(8) as usize;
                    // whole numbers, many of which are equal
                    (0..n).map(|_| f64::from(stream.below(6))).collect::<Vec<_>>()
                });
                let place = format!("improvement_probability(x = {}, y = {})", list(&x), list(&y));
                sheet.row(place, right(&x, &y), || function(&x, &y));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "ties count nothing: two agents that always reach the maximum would have 0",
            section: "the-probability-of-improvement",
            function: |x, y| over_pairs(x, y, |x, y| is(x > y)),
        },
        Mistake {
            says: "ties count as wins",
            section: "the-probability-of-improvement",
            function: |x, y| over_pairs(x, y, |x, y| is(x >= y)),
        },
        Mistake {
            says: "x and y are exchanged",
            section: "the-probability-of-improvement",
            function: |x, y| over_pairs(y, x, half_for_ties),
        },
        Mistake {
            says: "only runs with the same place are compared, and all other pairs left out",
            section: "the-probability-of-improvement",
            function: |x, y| {
                let worths: Vec<f64> = x.iter().zip(y).map(|(x, y)| half_for_ties(*x, *y)).collect();
                mean(&worths)
            },
        },
        Mistake {
            says: "it is the share of the runs of x that are above the mean of y",
            section: "the-probability-of-improvement",
            function: |x, y| over_pairs(x, &[mean(y)], half_for_ties),
        },
        Mistake {
            says: "losses are subtracted from wins: a number from -1 to 1, and no probability",
            section: "the-probability-of-improvement",
            function: |x, y| over_pairs(x, y, |x, y| is(x > y) - is(x < y)),
        },
        Mistake {
            says: "pairs with a tie are left out",
            section: "the-probability-of-improvement",
            function: |x, y| {
                let wins = over_pairs(x, y, |x, y| is(x > y));
                wins / (wins + over_pairs(x, y, |x, y| is(x < y)))
            },
        },
        Mistake {
            says: "the wins are not divided by the number of pairs",
            section: "the-probability-of-improvement",
            function: |x, y| over_pairs(x, y, half_for_ties) * (x.len() * y.len()) as f64,
        },
    ],
};

// 10.4

/// Corrected p-values: from the place in ascending order and the number of tests the factor, whether they never fall, and whether 1 is the
/// limit.
fn corrected(p_values: &[f64], factor: fn(usize, usize) -> f64, never_falls: bool, limit: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let (mut all, mut least) = (vec![0.0; p_values.len()], 0.0_f64);
    for (rank, place) in order.into_iter().enumerate() {
        let p = (factor(rank, p_values.len()) * p_values[place]).min(limit);
        least = if never_falls { least.max(p) } else { p };
        all[place] = least;
    }
    all
}

fn less_by_rank(rank: usize, n: usize) -> f64 {
    (n - rank) as f64
}

static HOLM: Exercise<Holm> = Exercise {
    about: About {
        number: "10.4",
        name: "holm",
        title: "many comparisons",
        section: "many-comparisons",
        hints: &[
            "In ascending order the smallest of n p-values is multiplied by n, the next by n - 1, and so on, the largest by 1.",
            "No corrected value is above 1, and none is smaller than the one before it in this order: take the larger of the two.",
            "Return them in the order in which the p-values were given: sort the places, and not the values.",
        ],
    },
    right: |p| corrected(p, less_by_rank, true, 1.0),
    checks: &[
        |Trial { function, .. }, sheet| {
            for (p, expected) in [
                (&[0.01][..], &[0.01][..]),
                (&[0.01, 0.04], &[0.02, 0.04]),
                (&[0.04, 0.01, 0.03], &[0.06, 0.03, 0.06]), // 0.03 x 2 = 0.06, and 0.04 x 1 is not smaller
                (&[0.8, 0.6], &[1.0, 1.0]),
                (&[0.02, 0.001, 0.5, 0.01], &[0.04, 0.004, 0.5, 0.03]),
            ] {
                sheet.row(format!("holm(p_values = {})", list(p)), expected, || function(p));
            }
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 104);
            for _ in 0..40 {
                let n = 1 + stream.below(7) as usize;
                let p: Vec<f64> =
                    (0..n).map(|_| (f64::from(1 + stream.below(30)) / 30.0).powi(3)).map(|p| (p * 1e4).round() / 1e4 + 1e-4).collect();
                sheet.row(format!("holm(p_values = {})", list(&p)), right(&p), || function(&p));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "all are multiplied by the number of tests (Bonferroni): it is safe, and finds less",
            section: "many-comparisons",
            function: |p| corrected(p, |_, n| n as f64, true, 1.0),
        },
        Mistake {
            says: "the largest p-value gets the largest factor: the order is the wrong way round",
            section: "many-comparisons",
            function: |p| corrected(p, |rank, _| (rank + 1) as f64, true, 1.0),
        },
        Mistake {
            says: "a value may be smaller than one of a smaller p-value: a test could then pass although a clearer one failed",
            section: "many-comparisons",
            function: |p| corrected(p, less_by_rank, false, 1.0),
        },
        Mistake {
            says: "they are not sorted: the first that was given gets the largest factor",
            section: "many-comparisons",
            function: |p| p.iter().enumerate().map(|(place, p_i)| ((p.len() - place) as f64 * p_i).min(1.0)).collect(),
        },
        Mistake {
            says: "they are in ascending order, and not in the order that was given",
            section: "many-comparisons",
            function: |p| corrected(&sorted(p), less_by_rank, true, 1.0),
        },
        Mistake {
            says: "values above 1 are left: no probability",
            section: "many-comparisons",
            function: |p| corrected(p, less_by_rank, true, f64::INFINITY),
        },
        Mistake { says: "nothing is corrected", section: "many-comparisons", function: <[f64]>::to_vec },
        Mistake {
            says: "each is multiplied by the number of tests divided by its rank: that is Benjamini and Hochberg's, which bounds another error",
            section: "many-comparisons",
            function: |p| {
                let order = sorted(p);
                let of = |p: f64| {
                    let later = order.iter().enumerate().filter(|(_, other)| **other >= p);
                    later.map(|(rank, other)| (order.len() as f64 / (rank + 1) as f64 * other).min(1.0)).fold(1.0, f64::min)
                };
                p.iter().map(|p| of(*p)).collect()
            },
        },
    ],
};

// 10.5

fn seeds(std: f64, difference: f64, factor: f64) -> usize {
    (factor * (std / difference).powi(2)).ceil() as usize
}

/// The square of 1.96 + 0.84.
const Z: f64 = 2.8 * 2.8;

static SEEDS_NEEDED: Exercise<SeedsNeeded> = Exercise {
    about: About {
        number: "10.5",
        name: "seeds_needed",
        title: "how many seeds?",
        section: "how-many-seeds",
        hints: &[
            "The formula is in the lesson: n = 2 (1.96 + 0.84)^2 (std / difference)^2.",
            "A part of a seed does not exist: round up. (x.ceil() as usize)",
        ],
    },
    right: |std, difference| seeds(std, difference, 2.0 * Z),
    checks: &[
        |Trial { function, .. }, sheet| {
            // 2 x 7.84 = 15.68
            for (std, difference, expected) in [(1.0, 1.0, 16), (10.0, 5.0, 63), (10.0, 20.0, 4), (5.0, 50.0, 1), (3.0, 0.5, 565)] {
                let place = format!("seeds_needed(std = {std}, difference = {difference})");
                sheet.row(place, expected, || function(std, difference));
            }
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 105);
            for _ in 0..40 {
                let std = f64::from(1 + stream.below(100)) / 2.0;
                let difference = rounded(std * (0.3 + 2.0 * stream.unit_f64()));
                // near a whole number rounding decides
                let part = (2.0 * Z * (std / difference).powi(2)).fract();
                if !(0.001..0.999).contains(&part) {
                    continue;
                }
                let place = format!("seeds_needed(std = {std}, difference = {difference})");
                sheet.row(place, right(std, difference), || function(std, difference));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "the factor 2 is missing: the means of both agents are uncertain",
            section: "how-many-seeds",
            function: |std, difference| seeds(std, difference, Z),
        },
        Mistake {
            says: "the 0.84 is missing: a true difference of this size would be missed in every second study",
            section: "how-many-seeds",
            function: |std, difference| seeds(std, difference, 2.0 * 1.96 * 1.96),
        },
        Mistake {
            says: "the ratio of standard deviation and difference is not squared",
            section: "how-many-seeds",
            function: |std, difference| (2.0 * Z * std / difference).ceil() as usize,
        },
        Mistake {
            says: "the sum of 1.96 and 0.84 is not squared",
            section: "how-many-seeds",
            function: |std, difference| seeds(std, difference, 2.0 * 2.8),
        },
        Mistake {
            says: "the ratio is upside down: a small difference needs many seeds, not few",
            section: "how-many-seeds",
            function: |std, difference| seeds(difference, std, 2.0 * Z),
        },
        Mistake {
            says: "1.96 and 0.84 are squared one by one, and then added",
            section: "how-many-seeds",
            function: |std, difference| seeds(std, difference, 2.0 * (1.96 * 1.96 + 0.84 * 0.84)),
        },
        Mistake {
            says: "it is rounded to the nearest number, and not up",
            section: "how-many-seeds",
            function: |std, difference| (2.0 * Z * (std / difference).powi(2)).round() as usize,
        },
        Mistake {
            says: "it is rounded down, and not up",
            section: "how-many-seeds",
            function: |std, difference| (2.0 * Z * (std / difference).powi(2)) as usize,
        },
        Mistake {
            says: "it is the number of seeds of both agents together",
            section: "how-many-seeds",
            function: |std, difference| 2 * seeds(std, difference, 2.0 * Z),
        },
    ],
};
