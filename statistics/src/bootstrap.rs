//! The stratified percentile bootstrap.

use gradus_envs::random::{Purpose, Stream};
use gradus_nets::threads;

use super::{Scores, mean, probability_of_improvement, profile};

/// Number of resamples that a thread computes at a time.
const CHUNK: usize = 250;

/// Writes the statistics of groups of scores. It is called once for the original scores and once per resample.
type Statistics<'a> = &'a (dyn Fn(&[Vec<Scores>], &mut [f64]) + Sync);

/// A point estimate and its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
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
    /// Number of resamples.
    pub resamples: usize,
    /// Confidence level of the interval.
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

    /// Returns the intervals of several statistics, from the same resamples.
    pub fn intervals<const K: usize>(&self, scores: &Scores, statistics: impl Fn(&Scores) -> [f64; K] + Sync) -> [Estimate; K] {
        let estimates = self.estimate(&[&[scores]], K, &|groups, out| out.copy_from_slice(&statistics(&groups[0][0])));
        std::array::from_fn(|number| estimates[number])
    }

    /// Returns the interval of a statistic at each point of a curve. `points` are the scores of the same runs at different times. A
    /// resample contains the same runs at all points.
    ///
    /// # Panics
    /// If the points differ in their number of runs or tasks.
    pub fn curve(&self, points: &[Scores], statistic: impl Fn(&Scores) -> f64 + Sync) -> Vec<Estimate> {
        let group: Vec<&Scores> = points.iter().collect();
        self.estimate(&[&group], points.len(), &|groups, out| {
            out.iter_mut().zip(&groups[0]).for_each(|(out, scores)| *out = statistic(scores));
        })
    }

    /// Returns the interval of the [`profile`] at each of `taus`.
    pub fn profile(&self, scores: &Scores, taus: &[f64]) -> Vec<Estimate> {
        self.estimate(&[&[scores]], taus.len(), &|groups, out| out.copy_from_slice(&profile(&groups[0][0], taus)))
    }

    /// Returns the interval of the [`probability_of_improvement`] of `x` over `y`. Their runs are resampled independently.
    pub fn improvement(&self, x: &Scores, y: &Scores) -> Estimate {
        self.estimate(&[&[x], &[y]], 1, &|groups, out| out[0] = probability_of_improvement(&groups[0][0], &groups[1][0]))[0]
    }

    /// Returns the interval of the mean difference x - y of paired runs. A resample contains the same runs of `x` and `y`.
    ///
    /// # Panics
    /// If `x` and `y` differ in their number of runs or tasks.
    pub fn paired_difference(&self, x: &Scores, y: &Scores) -> Estimate {
        self.estimate(&[&[x, y]], 1, &|groups, out| out[0] = mean(&groups[0][0]) - mean(&groups[0][1]))[0]
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
        means.sort_unstable_by(f64::total_cmp);
        let tail = (1.0 - self.level) / 2.0;
        Estimate { point, low: quantile(&means, tail), high: quantile(&means, 1.0 - tail) }
    }

    /// Returns the intervals of the numbers that `statistics` writes. A resample draws the same runs for all scores of a group, but draws
    /// independently for each group. Resampled tasks are the same in all groups.
    fn estimate(&self, groups: &[&[&Scores]], outputs: usize, statistics: Statistics<'_>) -> Vec<Estimate> {
        let owned: Vec<Vec<Scores>> = groups.iter().map(|group| group.iter().map(|scores| (*scores).clone()).collect()).collect();
        for group in &owned {
            let same = group.iter().all(|scores| scores.runs == group[0].runs && scores.values.len() == group[0].values.len());
            assert!(same, "bootstrap: expected the same runs and tasks at every point");
        }
        let mut points = vec![0.0; outputs];
        statistics(&owned, &mut points);

        let mut results = vec![0.0; self.resamples * outputs];
        let mut chunks: Vec<&mut [f64]> = results.chunks_mut((CHUNK * outputs).max(1)).collect();
        threads::with_default(|| {
            threads::for_each(&mut chunks, |chunk, results| {
                let mut resampled = owned.clone();
                for (number, out) in results.chunks_exact_mut(outputs).enumerate() {
                    // one stream per resample, so the result does not depend on the thread
                    let mut stream = Stream::new(self.seed, Purpose::Bootstrap, (chunk * CHUNK + number) as u64);
                    let count = owned.first().and_then(|group| group.first()).map_or(0, |scores| scores.tasks().len());
                    let tasks: Option<Vec<usize>> = self.tasks.then(|| (0..count).map(|_| stream.below(count as u32) as usize).collect());
                    owned.iter().zip(&mut resampled).for_each(|(from, to)| resample(from, to, tasks.as_deref(), &mut stream));
                    statistics(&resampled, out);
                }
            });
        });
        let tail = (1.0 - self.level) / 2.0;
        let interval = |(output, point): (usize, &f64)| {
            let mut values: Vec<f64> = results.iter().skip(output).step_by(outputs).copied().collect();
            values.sort_unstable_by(f64::total_cmp);
            Estimate { point: *point, low: quantile(&values, tail), high: quantile(&values, 1.0 - tail) }
        };
        points.iter().enumerate().map(interval).collect()
    }
}

/// Draws N runs with replacement from each task, or from each of `tasks` if given. All elements of `to` get the same runs.
fn resample(from: &[Scores], to: &mut [Scores], tasks: Option<&[usize]>, stream: &mut Stream) {
    let Some(Scores { runs, values }) = from.first() else { return };
    for place in 0..values.len() {
        let task = tasks.map_or(place / runs, |tasks| tasks[place / runs]);
        let drawn = task * runs + stream.below(*runs as u32) as usize;
        for (from, to) in from.iter().zip(&mut *to) {
            to.values[place] = from.values[drawn];
        }
    }
}

/// Returns a quantile of sorted values by linear interpolation; NaN if there are none.
fn quantile(sorted: &[f64], part: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let place = part * last as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[(place.ceil() as usize).min(last)]);
    below + (above - below) * place.fract()
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
            assert!((quantile(&values, part) - expected).abs() < 1e-12, "{part}");
        }
        assert_eq!(quantile(&[3.0], 0.3), 3.0);
    }

    #[test]
    fn intervals_depend_on_the_seed_but_not_on_the_number_of_threads() {
        let bootstrap = Bootstrap { resamples: 1_333, ..Bootstrap::default() };
        let run = |threads, seed| threads::with(threads, || Bootstrap { seed, ..bootstrap }.interval(&table(), interquartile_mean));
        assert_eq!(run(1, 1), run(2, 1));
        assert_eq!(run(1, 1), run(5, 1));
        assert_ne!(run(1, 1), run(1, 2));
    }

    #[test]
    fn resampled_runs_keep_their_task_and_their_points() {
        // a score's tens digit is its task and its ones digit is its run; the second table's scores are 1000 higher
        let tasks: Vec<Vec<f64>> = (0..3).map(|task| (0..5).map(|run| f64::from(10 * task + run)).collect()).collect();
        let later = tasks.iter().map(|task| task.iter().map(|score| score + 1000.0).collect()).collect();
        let from = [Scores::new(tasks).unwrap(), Scores::new(later).unwrap()];
        let mut to = from.clone();
        let mut seen = std::collections::BTreeSet::new();
        for number in 0..200 {
            resample(&from, &mut to, None, &mut Stream::new(1, Purpose::Bootstrap, number));
            for (task, runs) in to[0].tasks().enumerate() {
                assert!(runs.iter().all(|score| (*score / 10.0).floor() == task as f64), "{runs:?}");
                seen.extend(runs.iter().map(|score| *score as u64));
            }
            assert!(to[0].values.iter().zip(&to[1].values).all(|(early, late)| early + 1000.0 == *late));
        }
        assert_eq!(seen.len(), 15, "every run of every task is drawn");
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
}
