//! What a setting does to the score: its levels, the response at each, and how much the mean score differs between them.
//!
//! The size of an effect is the standard deviation of the mean score over the levels of a setting, without the part that the seeds alone would cause: the square root of
//! the variance component of an analysis of variance (Searle, Casella & McCulloch, *Variance Components*, 1992, chapter 3). In a random design, settings that are numbers
//! are cut into bins of equally many points (Plischke, Borgonovo & Smith, "Global sensitivity measures from given data", 2013), and what the other settings cause counts as
//! noise.

use gradus_base::random::{Purpose, Stream};
use gradus_statistics::{Aggregate, Bootstrap, Estimate, Scores};
use toml::Value;

use super::space::{Dimension, Domain, Settings, number, shown};

/// Resamples of an interval.
const RESAMPLES: usize = 2_000;
/// Largest number of bins of a setting in a random design.
const BINS: usize = 8;

/// One value of a setting, or one bin.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Level {
    pub(super) label: String,
    /// The value, or the median value of the bin, if the setting is a number.
    pub(super) place: Option<f64>,
    /// The points with this value.
    pub(super) points: Vec<usize>,
}

fn value_at<'a>(point: &'a Settings, key: &str) -> Option<&'a Value> {
    point.iter().find(|(name, _)| name == key).map(|(_, value)| value)
}

/// Returns the levels of a setting among `points`, given with their numbers, in the order of the space. Points without the setting are in none. Many
/// values of a random sample are cut into bins.
pub(super) fn levels(dimension: &Dimension, points: &[(usize, &Settings)], is_random: bool) -> Vec<Level> {
    let key = dimension.key.as_str();
    let mut with: Vec<(usize, &Value)> = points.iter().filter_map(|(number, point)| Some((*number, value_at(point, key)?))).collect();
    let mut distinct: Vec<&Value> = Vec::new();
    for (_, value) in &with {
        if !distinct.contains(value) {
            distinct.push(value);
        }
    }
    if let Domain::List(values) = &dimension.domain {
        distinct.sort_by_key(|value| values.iter().position(|other| other == *value));
    } else {
        let place = |value: &Value| number(value).unwrap_or(f64::NAN);
        with.sort_by(|a, b| place(a.1).total_cmp(&place(b.1)));
        distinct.sort_by(|a, b| place(a).total_cmp(&place(b)));
        if is_random && distinct.len() > BINS && distinct.len() * 2 > with.len() {
            let bins = (with.len() as f64).sqrt() as usize;
            return cut(&with, bins.clamp(2, BINS));
        }
    }
    let of = |value: &&Value| with.iter().filter(|(_, other)| other == value).map(|(number, _)| *number).collect();
    distinct.iter().map(|value| Level { label: shown(value), place: number(value), points: of(value) }).collect()
}

/// Cuts sorted values into bins of equally many points.
fn cut(sorted: &[(usize, &Value)], bins: usize) -> Vec<Level> {
    let bin = |i: usize| {
        let members = &sorted[i * sorted.len() / bins..(i + 1) * sorted.len() / bins];
        let (first, last) = (shown(members[0].1), shown(members[members.len() - 1].1));
        let place = number(members[members.len() / 2].1);
        Level { label: format!("{first} to {last}"), place, points: members.iter().map(|(number, _)| *number).collect() }
    };
    (0..bins).map(bin).collect()
}

/// Returns the statistic of the scores at every level, with 95 % intervals. `scores` has a row for each point, with a score for each seed. With `resample_points` the
/// points are a sample of all that there could be.
pub(super) fn responses(levels: &[Level], scores: &[Vec<f64>], aggregate: Aggregate, resample_points: bool) -> Vec<Estimate> {
    let of = |level: &Level| Scores::new(level.points.iter().map(|point| scores[*point].clone()).collect());
    let tables: Vec<Option<Scores>> = levels.iter().map(|level| of(level).ok()).collect();
    let whole: Vec<&Scores> = tables.iter().flatten().collect();
    let bootstrap = Bootstrap { resamples: RESAMPLES, tasks: resample_points, ..Bootstrap::default() };
    let mut found = bootstrap.aggregates(&whole, &[aggregate]).into_iter();
    let nothing = Estimate { point: f64::NAN, low: f64::NAN, high: f64::NAN };
    tables.iter().map(|table| table.as_ref().and_then(|_| found.next()).map_or(nothing, |estimates| estimates[0])).collect()
}

/// The effect of a setting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Effect {
    /// The standard deviation of the mean score over the levels, in units of the score.
    pub(super) deviation: Estimate,
    /// The share of the variance of all scores, if every point has the setting.
    pub(super) share: Option<f64>,
}

fn mean(scores: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n = scores.len().max(1) as f64;
    scores.sum::<f64>() / n
}

/// The sum of squares of the scores less their mean.
fn squares(scores: &[f64]) -> f64 {
    let centre = mean(scores.iter().copied());
    scores.iter().map(|score| (score - centre).powi(2)).sum()
}

/// Sums over the runs of some levels.
struct Sums {
    /// The sum of squares between levels.
    between: f64,
    /// The sum of squares between the points of a level, counting every run.
    points: f64,
    /// The sum of squares between the runs of a point, and its degrees of freedom. Points with a run that failed are left out: the lowest score in the place of all their
    /// scores would be a point whose seeds make no difference.
    seeds: [f64; 2],
    /// Numbers of levels, points and runs.
    counts: [f64; 3],
}

/// The scores of a point, one for each seed, and whether all its runs were made.
type Row<'a> = (&'a [f64], bool);

impl Sums {
    fn of(levels: &[Vec<Row<'_>>]) -> Self {
        let all = || levels.iter().flatten().flat_map(|(row, _)| row.iter().copied());
        let runs = all().count() as f64;
        let grand = all().sum::<f64>() / runs.max(1.0);
        let mut sums = Self { between: 0.0, points: 0.0, seeds: [0.0; 2], counts: [0.0, 0.0, runs] };
        for level in levels.iter().filter(|level| !level.is_empty()) {
            let n: usize = level.iter().map(|(row, _)| row.len()).sum();
            let centre = level.iter().flat_map(|(row, _)| row.iter()).sum::<f64>() / n as f64;
            sums.between += n as f64 * (centre - grand).powi(2);
            for (row, is_whole) in level {
                let own = mean(row.iter().copied());
                sums.points += row.len() as f64 * (own - centre).powi(2);
                if *is_whole {
                    sums.seeds[0] += squares(row);
                    sums.seeds[1] += row.len() as f64 - 1.0;
                }
            }
            sums.counts[0] += 1.0;
            sums.counts[1] += level.len() as f64;
        }
        sums
    }

    /// The mean square of what is noise for the setting, in units of a run.
    fn noise(&self, of_points: bool) -> f64 {
        let ([levels, points, _], [squares, free]) = (self.counts, self.seeds);
        if of_points { self.points / (points - levels).max(1.0) } else { squares / free.max(1.0) }
    }

    /// The variance component: the sum of squares between levels without that of the noise, per run.
    fn component(&self, noise: f64) -> f64 {
        (self.between - (self.counts[0] - 1.0) * noise) / self.counts[2].max(1.0)
    }
}

/// The square root of a variance, 0 of a negative one.
fn root(variance: f64) -> f64 {
    variance.max(0.0).sqrt()
}

/// Returns the effect of a setting. `is_whole` says which points have no run that failed. `resample_points` says that the points are a random sample; then they are
/// resampled, and otherwise the seeds of every point.
pub(super) fn effect(levels: &[Level], scores: &[Vec<f64>], is_whole: &[bool], resample_points: bool) -> Effect {
    let row = |point: &usize| -> Row<'_> { (&scores[*point], is_whole[*point]) };
    let rows: Vec<Vec<Row<'_>>> = levels.iter().map(|level| level.points.iter().map(row).collect()).collect();
    let sums = Sums::of(&rows);
    let noise = sums.noise(resample_points);
    let point = sums.component(noise);
    // a resample has the noise twice: that of the scores, and that of its draws, which is smaller, because a resample has fewer different numbers
    let mut resampled: Vec<f64> = (0..RESAMPLES as u64)
        .map(|number| {
            let mut stream = Stream::new(1, Purpose::Bootstrap, number);
            let drawn = if resample_points { draw_points(&rows, &mut stream) } else { draw_seeds(&rows, &mut stream) };
            let views: Vec<Vec<Row<'_>>> =
                drawn.iter().map(|level| level.iter().map(|(row, is_whole)| (row.as_slice(), *is_whole)).collect()).collect();
            let sums = Sums::of(&views);
            let [levels, points, runs] = sums.counts;
            let per_cell = if resample_points { points / levels.max(1.0) } else { runs / points.max(1.0) };
            let fewer = 1.0 - 1.0 / per_cell.max(2.0);
            sums.component(sums.noise(resample_points) / fewer + fewer * noise)
        })
        .collect();
    resampled.sort_unstable_by(f64::total_cmp);
    let quantile = |share: f64| resampled[((RESAMPLES as f64 * share) as usize).min(RESAMPLES - 1)];
    let deviation = Estimate { point: root(point), low: root(quantile(0.025)), high: root(quantile(0.975)) };
    let has_all = levels.iter().map(|level| level.points.len()).sum::<usize>() == scores.len();
    let within = scores.iter().map(|row| squares(row)).sum::<f64>();
    let total = sums.between + sums.points + within;
    let share = (has_all && total > 0.0).then(|| point.max(0.0) * sums.counts[2] / total);
    Effect { deviation, share }
}

/// The scores of the points of every level, drawn anew, each with whether all its runs were made.
type Drawn = Vec<Vec<(Vec<f64>, bool)>>;

fn draw_seeds(levels: &[Vec<Row<'_>>], stream: &mut Stream) -> Drawn {
    let mut draw = |(row, is_whole): &Row<'_>| {
        let scores = (0..row.len()).map(|_| row[stream.below(row.len() as u32) as usize]).collect();
        (scores, *is_whole)
    };
    levels.iter().map(|level| level.iter().map(&mut draw).collect()).collect()
}

fn draw_points(levels: &[Vec<Row<'_>>], stream: &mut Stream) -> Drawn {
    let mut point = |level: &Vec<Row<'_>>| {
        let (row, is_whole) = level[stream.below(level.len() as u32) as usize];
        (row.to_vec(), is_whole)
    };
    levels.iter().map(|level| (0..level.len()).map(|_| point(level)).collect()).collect()
}

/// The standard deviation between runs of one point, which differ in their seed only, of the points without a run that failed; NaN with one seed.
pub(super) fn seed_deviation(scores: &[Vec<f64>], is_whole: &[bool]) -> f64 {
    let rows: Vec<Vec<Row<'_>>> = scores.iter().zip(is_whole).map(|(row, is_whole)| vec![(row.as_slice(), *is_whole)]).collect();
    let sums = Sums::of(&rows);
    if sums.seeds[1] > 0.0 { root(sums.noise(false)) } else { f64::NAN }
}

#[cfg(test)]
mod tests {
    use super::super::space::Space;
    use super::*;

    fn level(points: &[usize]) -> Level {
        Level { label: String::new(), place: None, points: points.into() }
    }

    /// Two settings with two values each and two seeds, by hand.
    #[test]
    fn an_analysis_of_variance_by_hand() {
        // points (a, b): (0, 0), (0, 1), (1, 0), (1, 1)
        let scores = vec![vec![1.0, 3.0], vec![4.0, 6.0], vec![9.0, 11.0], vec![14.0, 16.0]];
        // means 2, 5, 10, 15; of a: 3.5 and 12.5; of b: 6 and 10; of all: 8; within points: 8 squares of 1, 4 degrees of freedom
        let whole = [true; 4];
        let a = effect(&[level(&[0, 1]), level(&[2, 3])], &scores, &whole, false);
        let b = effect(&[level(&[0, 2]), level(&[1, 3])], &scores, &whole, false);
        // between: 8 x 4.5^2 = 162 and 8 x 2^2 = 32; noise 8 / 4 = 2
        assert!((a.deviation.point - f64::sqrt((162.0 - 2.0) / 8.0)).abs() < 1e-12, "{a:?}");
        assert!((b.deviation.point - f64::sqrt((32.0 - 2.0) / 8.0)).abs() < 1e-12, "{b:?}");
        // all squares: 49 + 25 + 16 + 4 + 1 + 9 + 36 + 64 = 204
        assert!((a.share.unwrap() - 160.0 / 204.0).abs() < 1e-12);
        assert!((seed_deviation(&scores, &whole) - f64::sqrt(2.0)).abs() < 1e-12);
        // the runs of a point failed, and count as the lowest score: they say nothing of seeds
        let failed = [scores.clone(), vec![vec![1.0, 1.0]]].concat();
        let of_whole = seed_deviation(&failed, &[true, true, true, true, false]);
        assert!((of_whole - f64::sqrt(2.0)).abs() < 1e-12, "{of_whole}");
        // the points are a sample: what b does is noise for a
        let sampled = effect(&[level(&[0, 1]), level(&[2, 3])], &scores, &whole, true);
        // between the points of a level: 4 x 1.5^2 + 4 x 2.5^2 = 34, two degrees of freedom
        assert!((sampled.deviation.point - f64::sqrt((162.0 - 17.0) / 8.0)).abs() < 1e-12, "{sampled:?}");
    }

    /// Of 95 % intervals for known effects, about 95 % hold the true one.
    #[test]
    fn intervals_hold_the_true_effect() {
        let mut stream = Stream::new(3, Purpose::Problem, 0);
        for (shift, resample_points) in [(0.0, false), (1.0, false), (1.0, true)] {
            let mut held = 0;
            for _ in 0..100 {
                // three levels at -shift, 0 and shift, ten points each, eight seeds
                let scores: Vec<Vec<f64>> = (0..30)
                    .map(|point| {
                        let other = if resample_points { f64::from(stream.normal()) } else { 0.0 };
                        let centre = shift * ((point / 10) as f64 - 1.0) + other;
                        (0..8).map(|_| centre + 2.0 * f64::from(stream.normal())).collect()
                    })
                    .collect();
                let levels: Vec<Level> = (0..3).map(|l| level(&(10 * l..10 * l + 10).collect::<Vec<_>>())).collect();
                let Estimate { low, high, .. } = effect(&levels, &scores, &[true; 30], resample_points).deviation;
                let truth = shift * f64::sqrt(2.0 / 3.0);
                held += u32::from(low <= truth && truth <= high);
            }
            assert!(held >= 88, "shift {shift}, points {resample_points}: {held} of 100");
        }
    }

    #[test]
    fn a_sample_is_cut_into_bins_of_equally_many_points() {
        let space = Space::parse(&"a = { uniform = [0, 1] }\nb = [\"x\", \"y\"]".parse().unwrap()).unwrap();
        let points = space.samples(40, 1);
        let numbered: Vec<(usize, &Settings)> = points.iter().enumerate().collect();
        let bins = levels(&space.0[0], &numbered, true);
        assert_eq!(bins.iter().map(|bin| bin.points.len()).collect::<Vec<_>>(), [6, 7, 7, 6, 7, 7]);
        assert!(bins.windows(2).all(|pair| pair[0].place < pair[1].place));
        let lists = levels(&space.0[1], &numbered, true);
        assert_eq!(lists.iter().map(|level| level.label.as_str()).collect::<Vec<_>>(), ["x", "y"]);
        assert_eq!(lists.iter().map(|level| level.points.len()).sum::<usize>(), 40);
    }
}
