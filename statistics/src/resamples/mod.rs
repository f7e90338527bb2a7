//! The statistics of many resamples at a time.
//!
//! The resamples of two tables of the same shape draw the same runs, so the draws are computed once for all tables. A block of [`LANES`]
//! resamples is computed together: one resample per lane of the vector instructions. All numbers are the same, bit for bit, as those of one
//! resample after the other, as the tests check.

mod improvements;
mod means;

use gradus_base::random::Stream;

use super::{Scores, ascending};

pub(crate) use improvements::Improvements;
pub(crate) use means::{Aggregates, Differences};

/// Number of resamples that are computed together.
pub(crate) const LANES: usize = 16;

/// The runs that a block of resamples draws from tables of one shape.
pub(crate) struct Draws {
    runs: usize,
    /// The task of each part of the resamples.
    tasks: Vec<[u32; LANES]>,
    /// Whether tasks are resampled; otherwise part t is task t.
    has_other_tasks: bool,
    /// The index of the score at each place of the resamples.
    drawn: Vec<[u32; LANES]>,
    /// How often each run is drawn in each part; `counts[part * runs + run]`.
    counts: Vec<[u16; LANES]>,
    /// The highest count.
    most: u16,
}

impl Draws {
    pub(crate) fn new(runs: usize, tasks: usize) -> Self {
        let places = runs * tasks;
        Self {
            runs,
            tasks: (0..tasks as u32).map(|task| [task; LANES]).collect(),
            has_other_tasks: false,
            drawn: vec![[0; LANES]; places],
            counts: vec![[0; LANES]; places],
            most: 0,
        }
    }

    /// Draws from one stream per resample. `resampled` are the tasks that are drawn, unless it is every task once.
    pub(crate) fn draw(&mut self, streams: &mut [Stream; LANES], resampled: Option<&[[u32; LANES]]>) {
        if let Some(tasks) = resampled {
            self.tasks.copy_from_slice(tasks);
            self.has_other_tasks = true;
        }
        self.counts.fill([0; LANES]);
        self.most = 0;
        let runs = self.runs;
        let mut numbers = vec![0; runs];
        let parts = self.drawn.chunks_exact_mut(runs).zip(self.counts.chunks_exact_mut(runs));
        for ((drawn, counts), tasks) in parts.zip(&self.tasks) {
            for (lane, stream) in streams.iter_mut().enumerate() {
                let first = tasks[lane] * runs as u32;
                stream.fill_below(runs as u32, &mut numbers);
                for (number, drawn) in numbers.iter().zip(&mut *drawn) {
                    drawn[lane] = first + number;
                    counts[*number as usize][lane] += 1;
                }
            }
            self.most = counts.iter().flatten().copied().fold(self.most, u16::max);
        }
    }
}

/// Numbers that are computed for every resample.
pub(crate) trait Resampled: Sync {
    /// Returns the number of results.
    fn outputs(&self) -> usize;

    /// Writes the results of a block of resamples. `draws` has one element for each group of runs that is drawn independently.
    fn compute(&self, draws: &[Draws], out: &mut [[f64; LANES]]);
}

/// Any statistics of one table.
pub(crate) struct Function<'a, F> {
    pub(crate) scores: &'a Scores,
    pub(crate) statistics: F,
}

impl<const K: usize, F: Fn(&Scores) -> [f64; K] + Sync> Resampled for Function<'_, F> {
    fn outputs(&self) -> usize {
        K
    }

    fn compute(&self, draws: &[Draws], out: &mut [[f64; LANES]]) {
        let [draws] = draws else { return };
        let mut resample = self.scores.clone();
        for lane in 0..LANES {
            let drawn = draws.drawn.iter().map(|drawn| self.scores.values[drawn[lane] as usize]);
            resample.values.iter_mut().zip(drawn).for_each(|(to, from)| *to = from);
            (self.statistics)(&resample).into_iter().zip(&mut *out).for_each(|(result, out)| out[lane] = result);
        }
    }
}

/// The difference of a statistic of two tables, each with its own draws.
pub(crate) struct Difference<'a>(pub(crate) [Aggregates<'a>; 2]);

impl Resampled for Difference<'_> {
    fn outputs(&self) -> usize {
        1
    }

    fn compute(&self, draws: &[Draws], out: &mut [[f64; LANES]]) {
        let [x, y] = std::array::from_fn(|table| {
            let mut results = [[0.0; LANES]];
            self.0[table].compute(&draws[table..=table], &mut results);
            results[0]
        });
        out[0] = std::array::from_fn(|lane| x[lane] - y[lane]);
    }
}

/// The performance profiles of tables of one shape. The results of a table are next to each other.
pub(crate) struct Profiles {
    /// For each table, the number of thresholds that each score exceeds.
    exceeded: Vec<Vec<u32>>,
    /// The place of each threshold in ascending order.
    places: Vec<usize>,
}

impl Profiles {
    pub(crate) fn new(tables: &[&Scores], taus: &[f64]) -> Self {
        let sorted = ascending(taus);
        let exceeded = |score: &f64| sorted.partition_point(|(tau, _)| tau < score) as u32;
        let mut places = vec![0; taus.len()];
        sorted.iter().enumerate().for_each(|(place, (_, tau))| places[*tau as usize] = place);
        Self { exceeded: tables.iter().map(|scores| scores.values.iter().map(exceeded).collect()).collect(), places }
    }
}

impl Resampled for Profiles {
    fn outputs(&self) -> usize {
        self.exceeded.len() * self.places.len()
    }

    fn compute(&self, draws: &[Draws], out: &mut [[f64; LANES]]) {
        let ([draws], taus) = (draws, self.places.len()) else { return };
        for (exceeded, out) in self.exceeded.iter().zip(out.chunks_exact_mut(taus.max(1))) {
            // above[k]: the number of scores that exceed k thresholds, then the number of those that exceed more than k
            let mut above = vec![[0_u32; LANES]; taus + 1];
            draws.drawn.iter().for_each(|drawn| (0..LANES).for_each(|lane| above[exceeded[drawn[lane] as usize] as usize][lane] += 1));
            let mut sum = [0_u32; LANES];
            for above in above.iter_mut().rev() {
                let here = std::mem::replace(above, sum);
                sum.iter_mut().zip(here).for_each(|(sum, here)| *sum += here);
            }
            for (place, out) in self.places.iter().zip(out) {
                *out = above[*place].map(|above| f64::from(above) / draws.drawn.len() as f64);
            }
        }
    }
}
