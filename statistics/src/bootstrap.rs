//! The stratified percentile bootstrap.

use gradus_base::random::{Purpose, Stream};
use gradus_base::threads;

use super::resamples::{Aggregates, Difference, Differences, Draws, Function, Improvements, LANES, Profiles, Resampled};
use super::{Aggregate, Scores, mean, probability_of_improvement, profile};

/// Number of resamples that a thread computes at a time; a multiple of [`LANES`].
const CHUNK: usize = 128;
/// Maximum number of results that are stored at the same time, unless a single table has more.
const STORED: usize = 8_000_000;

/// A point estimate and its confidence interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// The statistic of the original scores.
    pub point: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

/// Settings of the bootstrap. Results depend on these settings and the scores, but not on the number of threads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bootstrap {
    /// Number of resamples, at least 1.
    pub resamples: usize,
    /// Confidence level of the interval, above 0 and below 1; intervals panic otherwise.
    pub level: f64,
    /// Seed of the resamples.
    pub seed: u64,
    /// Whether tasks are resampled as well as runs.
    pub tasks: bool,
}

impl Default for Bootstrap {
    fn default() -> Self {
        Self { resamples: 50_000, level: 0.95, seed: 1, tasks: false }
    }
}

impl Bootstrap {
    /// Returns the interval of one statistic.
    pub fn interval(&self, scores: &Scores, statistic: impl Fn(&Scores) -> f64 + Sync) -> Estimate {
        let [estimate] = self.intervals(scores, |scores| [statistic(scores)]);
        estimate
    }

    /// Returns the intervals of several statistics, from the same resamples. The statistics may be any functions; [`aggregates`] computes
    /// the usual ones faster.
    ///
    /// [`aggregates`]: Self::aggregates
    pub fn intervals<const K: usize>(&self, scores: &Scores, statistics: impl Fn(&Scores) -> [f64; K] + Sync) -> [Estimate; K] {
        let function = Function { scores, statistics };
        let estimates = self.estimates(&[scores], (function.statistics)(scores).to_vec(), &function);
        std::array::from_fn(|number| estimates[number])
    }

    /// Returns the intervals of `wanted` for each of `tables`, as `[table][aggregate]`. A resample contains the same runs and tasks of all
    /// tables of one shape. The tables may be the scores of several algorithms, or of the same runs at different times.
    ///
    /// The intervals are those of [`intervals`](Self::intervals), but the draws are computed only once for all tables.
    pub fn aggregates(&self, tables: &[&Scores], wanted: &[Aggregate]) -> Vec<Vec<Estimate>> {
        let mut estimates = vec![Vec::new(); tables.len()];
        for same in grouped(tables.iter().map(|scores| scores.shape())) {
            for places in same.chunks(self.tables_at_once(wanted.len())) {
                let tables: Vec<&Scores> = places.iter().map(|place| tables[*place]).collect();
                let points = tables.iter().flat_map(|scores| wanted.iter().map(|aggregate| aggregate.of(scores))).collect();
                let of_tables = self.estimates(&[tables[0]], points, &Aggregates::new(&tables, wanted));
                let each = of_tables.chunks(wanted.len().max(1));
                places.iter().zip(each).for_each(|(place, of_table)| estimates[*place] = of_table.to_vec());
            }
        }
        estimates
    }

    /// Returns the interval of the [`profile`] at each of `taus`.
    pub fn profile(&self, scores: &Scores, taus: &[f64]) -> Vec<Estimate> {
        self.profiles(&[scores], taus).concat()
    }

    /// Returns the intervals of the [`profile`]s of `tables` at `taus`, as `[table][tau]`. The draws are those of [`profile`](Self::profile).
    pub fn profiles(&self, tables: &[&Scores], taus: &[f64]) -> Vec<Vec<Estimate>> {
        let mut estimates = vec![Vec::new(); tables.len()];
        for same in grouped(tables.iter().map(|scores| scores.shape())) {
            for places in same.chunks(self.tables_at_once(taus.len())) {
                let tables: Vec<&Scores> = places.iter().map(|place| tables[*place]).collect();
                let points = tables.iter().flat_map(|scores| profile(scores, taus)).collect();
                let of_tables = self.estimates(&[tables[0]], points, &Profiles::new(&tables, taus));
                let each = of_tables.chunks(taus.len().max(1));
                places.iter().zip(each).for_each(|(place, of_table)| estimates[*place] = of_table.to_vec());
            }
        }
        estimates
    }

    /// Returns the interval of the [`probability_of_improvement`] of `x` over `y`. Their runs are resampled independently.
    ///
    /// # Panics
    /// If `x` and `y` have different numbers of tasks.
    pub fn improvement(&self, x: &Scores, y: &Scores) -> Estimate {
        self.improvements(&[x, y], &[(0, 1)])[0]
    }

    /// Returns the interval of the [`improvement`](Self::improvement) for each of `pairs`, given by the places of X and Y in `tables`.
    ///
    /// # Panics
    /// If the tables of a pair have different numbers of tasks.
    pub fn improvements(&self, tables: &[&Scores], pairs: &[(usize, usize)]) -> Vec<Estimate> {
        let mut estimates = vec![Estimate::default(); pairs.len()];
        for same in grouped(pairs.iter().map(|(x, y)| (tables[*x].shape(), tables[*y].runs()))) {
            for places in same.chunks(self.tables_at_once(1)) {
                let pairs: Vec<(usize, usize)> = places.iter().map(|place| pairs[*place]).collect();
                let points = pairs.iter().map(|(x, y)| probability_of_improvement(tables[*x], tables[*y])).collect();
                let shapes = [tables[pairs[0].0], tables[pairs[0].1]];
                let of_pairs = self.estimates(&shapes, points, &Improvements::new(tables, &pairs));
                places.iter().zip(of_pairs).for_each(|(place, estimate)| estimates[*place] = estimate);
            }
        }
        estimates
    }

    /// Returns the interval of the difference of a statistic of `x` and of `y`. Their runs are resampled independently.
    ///
    /// # Panics
    /// If `x` and `y` have different numbers of tasks.
    pub fn difference(&self, x: &Scores, y: &Scores, aggregate: Aggregate) -> Estimate {
        assert_eq!(x.tasks().len(), y.tasks().len(), "difference: expected the same tasks");
        let point = aggregate.of(x) - aggregate.of(y);
        let wanted = [aggregate];
        let difference = Difference([x, y].map(|scores| Aggregates::new(&[scores], &wanted)));
        self.estimates(&[x, y], vec![point], &difference)[0]
    }

    /// Returns the interval of the mean difference x - y of paired runs. A resample contains the same runs of `x` and `y`.
    ///
    /// # Panics
    /// If `x` and `y` differ in their number of runs or tasks.
    pub fn paired_difference(&self, x: &Scores, y: &Scores) -> Estimate {
        self.paired_differences(&[x, y], &[(0, 1)])[0]
    }

    /// Returns the interval of the [`paired_difference`](Self::paired_difference) for each of `pairs`, given by the places of X and Y in
    /// `tables`.
    ///
    /// # Panics
    /// If the tables of a pair differ in their number of runs or tasks.
    pub fn paired_differences(&self, tables: &[&Scores], pairs: &[(usize, usize)]) -> Vec<Estimate> {
        let mut estimates = vec![Estimate::default(); pairs.len()];
        let is_even = |(x, y): &(usize, usize)| tables[*x].shape() == tables[*y].shape();
        assert!(pairs.iter().all(is_even), "bootstrap: expected the same runs and tasks of both tables of a pair");
        for same in grouped(pairs.iter().map(|(x, _)| tables[*x].shape())) {
            for places in same.chunks(self.tables_at_once(1)) {
                let pairs: Vec<(usize, usize)> = places.iter().map(|place| pairs[*place]).collect();
                let points = pairs.iter().map(|(x, y)| mean(tables[*x]) - mean(tables[*y])).collect();
                let of_pairs = self.estimates(&[tables[pairs[0].0]], points, &Differences::new(tables, &pairs));
                places.iter().zip(of_pairs).for_each(|(place, estimate)| estimates[*place] = estimate);
            }
        }
        estimates
    }

    /// Returns the interval of the mean of a table of runs x problems. Runs and problems are both resampled, so the interval covers other
    /// runs on other problems.
    ///
    /// # Panics
    /// If there is no run or no problem, or if runs have different problems.
    pub fn crossed_mean(&self, table: &[Vec<f64>]) -> Estimate {
        let (runs, problems) = (table.len(), table.first().map_or(0, Vec::len));
        assert!(runs * problems > 0 && table.iter().all(|run| run.len() == problems), "crossed bootstrap: expected a full table");
        let mean = |counts: &[f64], run: &[f64]| run.iter().zip(counts).map(|(x, count)| x * count).sum::<f64>() / problems as f64;
        let point = table.iter().map(|run| mean(&vec![1.0; problems], run)).sum::<f64>() / runs as f64;
        let mut means = vec![0.0; self.resamples];
        let mut chunks: Vec<&mut [f64]> = means.chunks_mut(CHUNK).collect();
        threads::with_default(|| {
            threads::for_each(&mut chunks, |chunk, means| {
                for (number, out) in means.iter_mut().enumerate() {
                    let mut stream = Stream::new(self.seed, Purpose::Bootstrap, (chunk * CHUNK + number) as u64);
                    let mut counts = vec![0.0; problems];
                    (0..problems).for_each(|_| counts[stream.below(problems as u32) as usize] += 1.0);
                    let drawn = (0..runs).map(|_| mean(&counts, &table[stream.below(runs as u32) as usize]));
                    *out = drawn.sum::<f64>() / runs as f64;
                }
            });
        });
        self.interval_of(point, means)
    }

    /// Returns the number of tables with `outputs` results each whose results are stored at the same time.
    fn tables_at_once(&self, outputs: usize) -> usize {
        (STORED / (self.resamples * outputs).max(1)).max(1)
    }

    /// Returns the intervals of the results of `resampled`. `points` are the results of the original scores. A resample draws runs
    /// independently for each of `shapes`. Resampled tasks are the same for all of them.
    fn estimates(&self, shapes: &[&Scores], points: Vec<f64>, resampled: &dyn Resampled) -> Vec<Estimate> {
        let results = self.results(shapes, resampled);
        let mut estimates: Vec<Estimate> = points.iter().map(|point| Estimate { point: *point, ..Estimate::default() }).collect();
        threads::with_default(|| {
            threads::for_each(&mut estimates, |output, estimate| *estimate = self.interval_of(estimate.point, results.of(output)))
        });
        estimates
    }

    /// Computes the results of all resamples.
    fn results(&self, shapes: &[&Scores], resampled: &dyn Resampled) -> Results {
        let outputs = resampled.outputs();
        let tasks = shapes[0].tasks().len();
        let mut values = vec![[0.0; LANES]; self.resamples.div_ceil(LANES) * outputs];
        let mut chunks: Vec<&mut [[f64; LANES]]> = values.chunks_mut((CHUNK / LANES * outputs).max(1)).collect();
        threads::with_default(|| {
            threads::for_each(&mut chunks, |chunk, values| {
                let mut draws: Vec<Draws> = shapes.iter().map(|scores| Draws::new(scores.runs(), tasks)).collect();
                for (block, out) in values.chunks_exact_mut(outputs.max(1)).enumerate() {
                    // one stream per resample, so the result does not depend on the thread
                    let first = chunk * CHUNK + block * LANES;
                    let stream = |lane| Stream::new(self.seed, Purpose::Bootstrap, (first + lane) as u64);
                    let mut streams: [Stream; LANES] = std::array::from_fn(stream);
                    let mut task = || streams.each_mut().map(|stream| stream.below(tasks as u32));
                    let tasks: Option<Vec<[u32; LANES]>> = self.tasks.then(|| (0..tasks).map(|_| task()).collect());
                    draws.iter_mut().for_each(|draws| draws.draw(&mut streams, tasks.as_deref()));
                    resampled.compute(&draws, out);
                }
            });
        });
        Results { values, resamples: self.resamples, outputs }
    }

    fn interval_of(&self, point: f64, mut values: Vec<f64>) -> Estimate {
        assert!(self.level > 0.0 && self.level < 1.0, "level: expected a number above 0 and below 1, got {}", self.level);
        let tail = (1.0 - self.level) / 2.0;
        Estimate { point, low: quantile(&mut values, tail), high: quantile(&mut values, 1.0 - tail) }
    }
}

/// The results of all resamples.
struct Results {
    /// For each block of resamples and each output, one number per lane.
    values: Vec<[f64; LANES]>,
    resamples: usize,
    outputs: usize,
}

impl Results {
    /// Returns the results of one output.
    fn of(&self, output: usize) -> Vec<f64> {
        let lanes = self.values.iter().skip(output).step_by(self.outputs);
        lanes.flatten().copied().take(self.resamples).collect()
    }
}

/// Returns the share of 95 % intervals of the mean of `runs` normally distributed scores that contain the true mean: P(|T| <= z sqrt((n - 1) / n)) for Student's T with
/// n - 1 degrees of freedom, since a percentile interval reaches about z sqrt((n - 1) / n) standard errors to either side (Hesterberg, The American Statistician 69, 2015,
/// section 3.2). NaN for fewer than two runs.
pub fn coverage(runs: usize) -> f64 {
    if runs < 2 {
        return f64::NAN;
    }
    let n = runs as f64;
    within(1.959_964 * ((n - 1.0) / n).sqrt(), runs - 1)
}

/// Returns t with P(|T| <= t) = 0.95 for Student's T with n - 1 degrees of freedom: the standard errors to either side of the mean of n >= 2 numbers that are a 95 % interval.
///
/// ```
/// assert!((gradus_statistics::student(5) - 2.776).abs() < 1e-3);
/// assert!((gradus_statistics::student(100_000) - 1.96).abs() < 1e-3);
/// ```
pub fn student(n: usize) -> f64 {
    let (mut low, mut high) = (0.0, 20.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if within(middle, n.max(2) - 1) < 0.95 { low = middle } else { high = middle }
    }
    low
}

/// Returns P(|T| <= t) for Student's T with `nu` degrees of freedom (Abramowitz and Stegun, 26.7.3 and 26.7.4).
fn within(t: f64, nu: usize) -> f64 {
    let theta = (t / (nu as f64).sqrt()).atan();
    let (sin, cos) = theta.sin_cos();
    let (mut term, mut sum) = if nu.is_multiple_of(2) { (1.0, 1.0) } else { (cos, if nu == 1 { 0.0 } else { cos }) };
    for i in (2 + nu % 2..nu.saturating_sub(1)).step_by(2) {
        term *= (i - 1) as f64 / i as f64 * cos * cos;
        sum += term;
    }
    if nu.is_multiple_of(2) { sin * sum } else { (theta + sin * sum) * std::f64::consts::FRAC_2_PI }
}

/// Returns the places of equal keys.
pub(crate) fn grouped<K: PartialEq>(keys: impl Iterator<Item = K>) -> Vec<Vec<usize>> {
    let (mut known, mut groups): (Vec<K>, Vec<Vec<usize>>) = Default::default();
    for (place, key) in keys.enumerate() {
        match known.iter().position(|known| *known == key) {
            Some(group) => groups[group].push(place),
            None => {
                known.push(key);
                groups.push(vec![place]);
            }
        }
    }
    groups
}

/// Returns a quantile by linear interpolation between sorted values; NaN if there are none. Changes the order of the values.
fn quantile(values: &mut [f64], part: f64) -> f64 {
    let Some(last) = values.len().checked_sub(1) else { return f64::NAN };
    let place = part * last as f64;
    let (_, below, rest) = values.select_nth_unstable_by(place.floor() as usize, f64::total_cmp);
    let above = rest.iter().copied().min_by(f64::total_cmp).unwrap_or(*below);
    *below + (above - *below) * place.fract()
}

#[cfg(test)]
mod tests {
    use super::super::*;
    use super::*;

    fn table() -> Scores {
        Scores::new((0..4).map(|task| (0..7).map(|run| f64::from((task * 31 + run * run * 17) % 23) / 10.0).collect()).collect()).unwrap()
    }

    #[test]
    fn quantiles_match_numpy() {
        // numpy.quantile([1, 2, 4, 8], q) for q of 0, 0.1, 0.5, 0.9, 1
        let values = [1.0, 2.0, 4.0, 8.0];
        for (part, expected) in [(0.0, 1.0), (0.1, 1.3), (0.5, 3.0), (0.9, 6.8), (1.0, 8.0)] {
            assert!((quantile(&mut values.clone(), part) - expected).abs() < 1e-12, "{part}");
        }
        assert_eq!(quantile(&mut [3.0], 0.3), 3.0);
    }

    const COVERAGES: [(usize, f64); 8] =
        [(2, 0.602_085), (3, 0.749_331), (4, 0.811_809), (5, 0.845_534), (6, 0.866_396), (10, 0.904_093), (20, 0.928_699), (31, 0.936_644)];

    #[test]
    fn few_runs_have_intervals_that_miss_the_mean_more_often_than_the_level_says() {
        // scipy.stats.t(n - 1).cdf(1.959964 * sqrt((n - 1) / n)) * 2 - 1
        for (runs, expected) in COVERAGES {
            assert!((coverage(runs) - expected).abs() < 1e-5, "{runs}: {}", coverage(runs));
        }
        assert!(coverage(1).is_nan());
        // and as often as intervals of drawn scores do: the standard error of each share is 0.013
        let bootstrap = Bootstrap { resamples: 1_000, ..Bootstrap::default() };
        for runs in [4, 8, 16] {
            let mut stream = Stream::new(7, Purpose::Action, runs as u64);
            let experiments: Vec<Scores> =
                (0..800).map(|_| Scores::new(vec![(0..runs).map(|_| f64::from(stream.normal())).collect()]).unwrap()).collect();
            let tables: Vec<&Scores> = experiments.iter().collect();
            let hit = |estimates: &Vec<Estimate>| estimates[0].low <= 0.0 && 0.0 <= estimates[0].high;
            let hits = bootstrap.aggregates(&tables, &[Aggregate::Mean]).iter().filter(|estimates| hit(estimates)).count();
            assert!((hits as f64 / 800.0 - coverage(runs)).abs() < 0.035, "{runs}: {hits} of 800");
        }
    }

    #[test]
    fn intervals_depend_on_the_seed_but_not_on_the_number_of_threads() {
        let bootstrap = Bootstrap { resamples: 1_333, ..Bootstrap::default() };
        let run = |threads, seed| threads::with(threads, || Bootstrap { seed, ..bootstrap }.interval(&table(), interquartile_mean));
        assert_eq!(run(1, 1), run(2, 1));
        assert_eq!(run(1, 1), run(5, 1));
        assert_ne!(run(1, 1), run(1, 2));
    }

    /// Computes one resample after the other, each from its own copy of the scores. All tables of a group get the same runs.
    fn directly(bootstrap: &Bootstrap, groups: &[&[&Scores]], statistics: impl Fn(&[Vec<Scores>]) -> Vec<f64>) -> Vec<Estimate> {
        let original: Vec<Vec<Scores>> = groups.iter().map(|group| group.iter().map(|scores| (*scores).clone()).collect()).collect();
        let results: Vec<Vec<f64>> = (0..bootstrap.resamples)
            .map(|number| {
                let mut stream = Stream::new(bootstrap.seed, Purpose::Bootstrap, number as u64);
                let count = groups[0][0].tasks().len();
                let tasks: Vec<usize> =
                    (0..count).map(|task| if bootstrap.tasks { stream.below(count as u32) as usize } else { task }).collect();
                let mut resampled = original.clone();
                for (from, to) in original.iter().zip(&mut resampled) {
                    let runs = from[0].runs;
                    for place in 0..from[0].values.len() {
                        let drawn = tasks[place / runs] * runs + stream.below(runs as u32) as usize;
                        from.iter().zip(&mut *to).for_each(|(from, to)| to.values[place] = from.values[drawn]);
                    }
                }
                statistics(&resampled)
            })
            .collect();
        let interval = |(output, point): (usize, f64)| {
            let mut values: Vec<f64> = results.iter().map(|results| results[output]).collect();
            values.sort_by(f64::total_cmp);
            let at = |part: f64| {
                let place = part * (values.len() - 1) as f64;
                let (below, above) = (values[place.floor() as usize], values[place.ceil() as usize]);
                below + (above - below) * place.fract()
            };
            let tail = (1.0 - bootstrap.level) / 2.0;
            Estimate { point, low: at(tail), high: at(1.0 - tail) }
        };
        statistics(&original).into_iter().enumerate().map(interval).collect()
    }

    fn improvement_directly(x: &Scores, y: &Scores) -> f64 {
        let wins = |x: f64, y: f64| if x > y { 1.0 } else { f64::from(x == y) / 2.0 };
        let task = |(x, y): (&[f64], &[f64])| {
            x.iter().map(|x| y.iter().map(|y| wins(*x, *y)).sum::<f64>()).sum::<f64>() / (x.len() * y.len()) as f64
        };
        x.tasks().zip(y.tasks()).map(task).sum::<f64>() / x.tasks().len() as f64
    }

    /// Returns random scores, with ties if `levels` is small.
    fn random(tasks: usize, runs: usize, levels: u32, seed: u64) -> Scores {
        let mut stream = Stream::new(seed, Purpose::Problem, 0);
        let mut score = || f64::from(stream.below(levels)) * 0.37 - 0.1 * f64::from(levels);
        Scores::new((0..tasks).map(|_| (0..runs).map(|_| score()).collect()).collect()).unwrap()
    }

    /// Shapes of two tables, as the number of tasks, the runs of X and the runs of Y; and the number of values that scores have.
    fn shapes() -> impl Iterator<Item = (usize, usize, usize, u32)> {
        let sizes = (1..=50).map(|n| (1 + n % 4, n, 1 + (n * 7) % 50));
        sizes.flat_map(|(tasks, n, m)| [3, 20, u32::MAX].map(|levels| (tasks, n, m, levels)))
    }

    #[test]
    fn improvement_by_ranks_equals_the_count_of_pairs() {
        for (tasks, n, m, levels) in shapes() {
            let (x, y) = (random(tasks, n, levels, 1), random(tasks, m, levels, 2));
            assert_eq!(probability_of_improvement(&x, &y), improvement_directly(&x, &y), "{tasks} tasks, {n} and {m} runs");
        }
    }

    #[test]
    fn intervals_of_many_tables_equal_those_of_one_resample_after_the_other() {
        use Aggregate::{InterquartileMean, Mean, Median, OptimalityGap};
        let wanted = [InterquartileMean, Median, Mean, OptimalityGap(0.4)];
        for (tasks, n, m, levels) in shapes() {
            let bootstrap = Bootstrap { resamples: 37, seed: n as u64, tasks: n % 3 == 0, ..Bootstrap::default() };
            let tables: Vec<Scores> = (1..=11).map(|seed| random(tasks, if seed % 2 == 1 { n } else { m }, levels, seed)).collect();
            let tables: Vec<&Scores> = tables.iter().collect();
            let (x, y, later) = (tables[0], tables[1], tables[2]);
            let shape = format!("{tasks} tasks, {n} and {m} runs");

            let aggregates = bootstrap.aggregates(&tables, &wanted);
            for (table, ours) in tables.iter().zip(&aggregates) {
                let direct = directly(&bootstrap, &[&[table]], |groups| wanted.map(|aggregate| aggregate.of(&groups[0][0])).to_vec());
                assert_eq!(*ours, direct, "{shape}");
            }
            let function = |scores: &Scores| wanted.map(|aggregate| aggregate.of(scores));
            assert_eq!(aggregates[0], bootstrap.intervals(x, function), "{shape}");

            let direct = |x: &Scores, y: &Scores| {
                directly(&bootstrap, &[&[x], &[y]], |groups| vec![improvement_directly(&groups[0][0], &groups[1][0])])[0]
            };
            let pairs = [(0, 1), (0, 2), (1, 0), (2, 2), (3, 1), (4, 2)];
            let expected = pairs.map(|(x, y)| direct(tables[x], tables[y]));
            assert_eq!(bootstrap.improvements(&tables, &pairs), expected, "{shape}");
            assert_eq!(bootstrap.improvement(x, y), expected[0], "{shape}");

            let direct = directly(&bootstrap, &[&[x, later]], |groups| vec![mean(&groups[0][0]) - mean(&groups[0][1])]);
            assert_eq!(bootstrap.paired_differences(&tables, &[(3, 5), (0, 2)])[1], direct[0], "{shape}");

            let taus = [-0.4, 0.3, 0.0, 0.3, 1.1];
            let profiles = bootstrap.profiles(&tables, &taus);
            for (table, ours) in tables.iter().zip(&profiles).take(2) {
                assert_eq!(*ours, directly(&bootstrap, &[&[table]], |groups| profile(&groups[0][0], &taus)), "{shape}");
            }
        }
    }

    /// The wins of a pair of many runs exceed 32 bits if all runs are added.
    #[test]
    fn wins_are_counted_in_parts() {
        let x = Scores::new(vec![vec![1.0; 70_000]]).unwrap();
        let y = Scores::new(vec![vec![0.0; 70_000]]).unwrap();
        let bootstrap = Bootstrap { resamples: 16, ..Bootstrap::default() };
        assert_eq!(bootstrap.improvement(&x, &y), Estimate { point: 1.0, low: 1.0, high: 1.0 });
    }

    /// The standard error of a task's bootstrap mean is the population standard deviation divided by the square root of N.
    #[test]
    fn the_interval_of_a_mean_matches_its_standard_error() {
        let scores = table();
        let variance = |task: &[f64]| {
            let mean = average(task);
            task.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / task.len() as f64
        };
        let tasks = scores.tasks().len() as f64;
        let error = (scores.tasks().map(variance).sum::<f64>() / scores.runs() as f64).sqrt() / tasks;
        let estimate = Bootstrap::default().interval(&scores, mean);
        assert_eq!(estimate.point, mean(&scores));
        for (end, sign) in [(estimate.low, -1.0), (estimate.high, 1.0)] {
            assert!((end - (estimate.point + sign * 1.96 * error)).abs() < 0.06 * error, "{estimate:?}, standard error {error}");
        }
    }

    /// All runs of a task are equal, so a resample's mean depends only on the M tasks that it draws.
    #[test]
    fn tasks_are_resampled_on_request() {
        let scores = Scores::new((0..6).map(|task| vec![f64::from(task * task); 3]).collect()).unwrap();
        let plain = Bootstrap::default().interval(&scores, mean);
        assert_eq!((plain.low, plain.high), (plain.point, plain.point));
        let wide = Bootstrap { tasks: true, ..Bootstrap::default() }.interval(&scores, mean);
        let error = (scores.task_means().map(|x| (x - plain.point).powi(2)).sum::<f64>() / 6.0 / 6.0).sqrt();
        assert!((wide.high - wide.low - 2.0 * 1.96 * error).abs() < 0.15 * error, "{wide:?}, standard error {error}");
        // both algorithms have the same resampled tasks, so the probability that an algorithm improves on itself is always one half
        let even = Bootstrap { tasks: true, resamples: 500, ..Bootstrap::default() }.improvement(&scores, &scores);
        assert_eq!((even.low, even.high), (0.5, 0.5));
    }

    /// If a score is the sum of a run effect and a problem effect, the variance of the mean is the sum of the variances of the two mean
    /// effects.
    #[test]
    fn runs_and_problems_are_both_resampled() {
        let (of_run, of_problem) = (|run: usize| (run * run) as f64 / 4.0, |problem: usize| ((problem * 7) % 40) as f64 / 3.0);
        let table = |run: fn(usize) -> f64, problem: fn(usize) -> f64| -> Vec<Vec<f64>> {
            (0..8).map(|r| (0..40).map(|p| run(r) + problem(p)).collect()).collect()
        };
        let variance = |of: fn(usize) -> f64, n: usize| {
            let mean = (0..n).map(of).sum::<f64>() / n as f64;
            (0..n).map(|i| (of(i) - mean).powi(2)).sum::<f64>() / n as f64 / n as f64
        };
        let width = |estimate: Estimate| (estimate.high - estimate.low) / 2.0 / 1.96;
        let bootstrap = Bootstrap::default();
        for (run, problem) in [(of_run as fn(usize) -> f64, of_problem as fn(usize) -> f64), (of_run, |_| 0.0), (|_| 0.0, of_problem)] {
            let error = (variance(run, 8) + variance(problem, 40)).sqrt();
            let ours = width(bootstrap.crossed_mean(&table(run, problem)));
            assert!((ours / error - 1.0).abs() < 0.03, "standard error: expected {error}, got {ours}");
        }
        assert_eq!(bootstrap.crossed_mean(&table(|_| 0.5, |_| 1.0)), Estimate { point: 1.5, low: 1.5, high: 1.5 });
    }

    #[test]
    fn pairs_are_resampled_together() {
        let scores = |shift: f64| Scores::new(vec![(0..8).map(|run| f64::from(run * run) + shift).collect()]).unwrap();
        let estimate = Bootstrap::default().paired_difference(&scores(2.5), &scores(0.0));
        assert_eq!(estimate, Estimate { point: 2.5, low: 2.5, high: 2.5 });
    }

    #[test]
    fn one_run_has_an_interval_without_width() {
        let scores = Scores::new(vec![vec![2.0]]).unwrap();
        let bootstrap = Bootstrap { resamples: 100, ..Bootstrap::default() };
        assert_eq!(bootstrap.interval(&scores, mean), Estimate { point: 2.0, low: 2.0, high: 2.0 });
    }

    /// `scipy.stats.bootstrap` with `paired=False` and 500 000 resamples; the interquartile mean is `scipy.stats.trim_mean` of 0.25.
    #[test]
    fn differences_of_independent_tables_match_scipy() {
        let x = Scores::new(vec![vec![3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0]]).unwrap();
        let y = Scores::new(vec![vec![2.0, 7.0, 1.0, 8.0, 2.0, 8.0]]).unwrap();
        for (aggregate, expected) in [(Aggregate::InterquartileMean, [-1.25, -5.0, 2.75]), (Aggregate::Mean, [-0.7916667, -3.75, 2.25])] {
            let estimate = |x, y| {
                let Estimate { point, low, high } = Bootstrap::default().difference(x, y, aggregate);
                [point, low, high]
            };
            let (forward, [point, low, high]) = (estimate(&x, &y), estimate(&y, &x));
            for (got, expected) in forward.into_iter().zip(expected) {
                assert!((got - expected).abs() < 0.06, "{aggregate:?}: expected {expected}, got {got}");
            }
            for (got, expected) in [-point, -high, -low].into_iter().zip(expected) {
                assert!((got - expected).abs() < 0.06, "{aggregate:?}, exchanged: expected {expected}, got {got}");
            }
        }
    }
}
