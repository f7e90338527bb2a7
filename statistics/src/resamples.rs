//! The statistics of many resamples at a time.
//!
//! The resamples of two tables of the same shape draw the same runs, so the draws are computed once for all tables. A block of `L` resamples
//! is computed together: one resample per lane of the vector instructions. All numbers are the same, bit for bit, as those of one resample
//! after the other, as the tests check.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use gradus_envs::random::Stream;
use gradus_envs::simd::{Kernel, Level, dispatch};

use super::{Aggregate, Scores, median_of, middle_of};

/// Number of columns whose scores are interleaved.
const WIDTH: usize = 8;

/// The runs that `L` resamples draw from tables of one shape.
pub(crate) struct Draws<const L: usize> {
    runs: usize,
    /// The task of each part of the resamples: task t for part t, unless tasks are resampled, of which only `L` = 1 is capable.
    tasks: Vec<usize>,
    /// The index of the score at each place of the resamples.
    drawn: Vec<[u32; L]>,
    /// How often each run is drawn in each part; `counts[part * runs + run]`.
    counts: Vec<[u16; L]>,
    /// The highest count.
    most: u16,
}

impl<const L: usize> Draws<L> {
    pub(crate) fn new(runs: usize, tasks: usize) -> Self {
        let places = runs * tasks;
        Self { runs, tasks: (0..tasks).collect(), drawn: vec![[0; L]; places], counts: vec![[0; L]; places], most: 0 }
    }

    /// Draws from one stream per resample. `resampled` are the tasks that are drawn, unless it is every task once.
    pub(crate) fn draw(&mut self, streams: &mut [Stream; L], resampled: Option<&[usize]>) {
        if let Some(tasks) = resampled {
            self.tasks.copy_from_slice(tasks);
        }
        self.counts.fill([0; L]);
        self.most = 0;
        let mut numbers = vec![0; self.drawn.len()];
        for (lane, stream) in streams.iter_mut().enumerate() {
            stream.fill_below(self.runs as u32, &mut numbers);
            let drawn = numbers.chunks_exact(self.runs).zip(self.drawn.chunks_exact_mut(self.runs));
            for ((numbers, drawn), (counts, task)) in drawn.zip(self.counts.chunks_exact_mut(self.runs).zip(&self.tasks)) {
                let first = (task * self.runs) as u32;
                for (number, drawn) in numbers.iter().zip(drawn) {
                    drawn[lane] = first + number;
                    let count = &mut counts[*number as usize][lane];
                    *count += 1;
                    self.most = self.most.max(*count);
                }
            }
        }
    }

    /// Returns how often each score is drawn, from all parts.
    fn counts_of_scores(&self) -> Cow<'_, [[u16; L]]> {
        if self.tasks.iter().enumerate().all(|(part, task)| part == *task) {
            return Cow::Borrowed(&self.counts);
        }
        let mut counts = vec![[0; L]; self.counts.len()];
        self.drawn.iter().for_each(|drawn| (0..L).for_each(|lane| counts[drawn[lane] as usize][lane] += 1));
        Cow::Owned(counts)
    }
}

/// Numbers that are computed for every resample.
pub(crate) trait Resampled: Sync {
    /// Returns the number of results.
    fn outputs(&self) -> usize;

    /// Writes the results of `L` resamples. `draws` has one element for each group of runs that is drawn independently.
    fn compute<const L: usize>(&self, draws: &[Draws<L>], out: &mut [[f64; L]]);
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

    fn compute<const L: usize>(&self, draws: &[Draws<L>], out: &mut [[f64; L]]) {
        let [draws] = draws else { return };
        let mut resample = self.scores.clone();
        for lane in 0..L {
            let drawn = draws.drawn.iter().map(|drawn| self.scores.values[drawn[lane] as usize]);
            resample.values.iter_mut().zip(drawn).for_each(|(to, from)| *to = from);
            (self.statistics)(&resample).into_iter().zip(&mut *out).for_each(|(result, out)| out[lane] = result);
        }
    }
}

/// The scores with one index of up to [`WIDTH`] tables, in one cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Row([f64; WIDTH]);

/// Scores of up to [`WIDTH`] tables; row i has the scores with index i.
type Columns = Vec<Row>;

fn interleaved<'a>(tables: &[&'a Scores], of: impl Fn(f64) -> f64 + 'a) -> Vec<Columns> {
    let rows = |tables: &[&Scores]| {
        let mut rows = vec![Row([0.0; WIDTH]); tables[0].values.len()];
        for (column, table) in tables.iter().enumerate() {
            rows.iter_mut().zip(&table.values).for_each(|(row, value)| row.0[column] = of(*value));
        }
        rows
    };
    tables.chunks(WIDTH).map(rows).collect()
}

/// Adds the drawn rows to the sums of `P` lanes from lane `first` on, in the order of the draws.
struct Sums<'a, const L: usize, const P: usize> {
    columns: &'a [Row],
    drawn: &'a [[u32; L]],
    first: usize,
    sums: &'a mut [[f64; WIDTH]; P],
}

impl<const L: usize, const P: usize> Kernel for Sums<'_, L, P> {
    #[inline(always)]
    fn run(self) {
        let mut sums = *self.sums;
        for drawn in self.drawn {
            for lane in 0..P {
                let Row(row) = &self.columns[drawn[self.first + lane] as usize];
                for column in 0..WIDTH {
                    sums[lane][column] += row[column];
                }
            }
        }
        *self.sums = sums;
    }
}

/// Returns the sum of each column in each lane.
fn sums<const L: usize>(columns: &[Row], drawn: &[[u32; L]]) -> [[f64; WIDTH]; L] {
    const TOGETHER: usize = 4;
    let mut all = [[-0.0; WIDTH]; L]; // as `Iterator::sum` begins
    let (groups, rest) = all.as_chunks_mut::<TOGETHER>();
    let grouped = groups.len() * TOGETHER;
    for (group, sums) in groups.iter_mut().enumerate() {
        dispatch(Level::best(), Sums { columns, drawn, first: group * TOGETHER, sums });
    }
    for (lane, sums) in rest.iter_mut().enumerate() {
        dispatch(Level::best(), Sums { columns, drawn, first: grouped + lane, sums: std::array::from_mut(sums) });
    }
    all
}

/// Adds the middle half of each resample in ascending order.
struct Middle<'a, const L: usize> {
    /// The scores in ascending order, each with its index.
    sorted: &'a [(f64, u32)],
    counts: &'a [[u16; L]],
    /// The highest count of each score.
    most: &'a [u16],
    middle: Range<u32>,
    sums: &'a mut [f64; L],
}

impl<const L: usize> Kernel for Middle<'_, L> {
    #[inline(always)]
    fn run(self) {
        let (start, end) = (self.middle.start, self.middle.end);
        let (mut before, mut sums) = ([0_u32; L], [0.0; L]);
        for scores in self.sorted.chunks(8) {
            let mut after = before;
            for (_, index) in scores {
                let counts = self.counts[*index as usize];
                for lane in 0..L {
                    after[lane] += u32::from(counts[lane]);
                }
            }
            let (mut has_begun, mut is_over) = (false, true);
            for lane in 0..L {
                has_begun |= after[lane] > start;
                is_over &= before[lane] >= end;
            }
            if has_begun && !is_over {
                self.add(scores, before, &mut sums);
            }
            before = after;
        }
        *self.sums = sums;
    }
}

impl<const L: usize> Middle<'_, L> {
    /// Adds those copies of the scores that lie in the middle half. `before` is the number of copies of all lower scores.
    #[inline(always)]
    fn add(&self, scores: &[(f64, u32)], mut before: [u32; L], sums: &mut [f64; L]) {
        let (start, end) = (self.middle.start, self.middle.end);
        let mut added = *sums;
        for (value, index) in scores {
            let counts = self.counts[*index as usize];
            let mut inside = [0; L];
            for lane in 0..L {
                let after = before[lane] + u32::from(counts[lane]);
                inside[lane] = after.min(end).max(start) - before[lane].min(end).max(start);
                before[lane] = after;
            }
            for copy in 0..u32::from(self.most[*index as usize]) {
                for lane in 0..L {
                    // all bits or none; adding 0 changes no sum
                    let mask = u64::from(inside[lane] > copy).wrapping_neg();
                    added[lane] += f64::from_bits(value.to_bits() & mask);
                }
            }
        }
        *sums = added;
    }
}

/// The [`Aggregate`]s of tables of one shape. The results of a table are next to each other.
pub(crate) struct Aggregates<'a> {
    wanted: &'a [Aggregate],
    tables: usize,
    /// For each aggregate that is a sum, the interleaved summands.
    summands: Vec<Vec<Columns>>,
    /// The sorted scores of each table, if the interquartile mean is wanted.
    sorted: Vec<Vec<(f64, u32)>>,
}

impl<'a> Aggregates<'a> {
    pub(crate) fn new(tables: &[&Scores], wanted: &'a [Aggregate]) -> Self {
        let summands = wanted.iter().map(|aggregate| match aggregate {
            Aggregate::Mean | Aggregate::Median => interleaved(tables, |score| score),
            Aggregate::OptimalityGap(gamma) => interleaved(tables, |score| score.min(*gamma)),
            Aggregate::InterquartileMean => Vec::new(),
        });
        let sorted = |scores: &&Scores| {
            let mut sorted: Vec<(f64, u32)> = scores.values.iter().copied().zip(0..).collect();
            sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
            sorted
        };
        let needs_order = wanted.contains(&Aggregate::InterquartileMean);
        let sorted = if needs_order { tables.iter().map(sorted).collect() } else { Vec::new() };
        Self { wanted, tables: tables.len(), summands: summands.collect(), sorted }
    }
}

impl Resampled for Aggregates<'_> {
    fn outputs(&self) -> usize {
        self.tables * self.wanted.len()
    }

    fn compute<const L: usize>(&self, draws: &[Draws<L>], out: &mut [[f64; L]]) {
        let [draws] = draws else { return };
        let (total, runs) = (draws.drawn.len() as f64, draws.runs);
        let counts = draws.counts_of_scores();
        let most: Vec<u16> = counts.iter().map(|counts| counts.iter().copied().max().unwrap_or(0)).collect();
        for (which, (aggregate, groups)) in self.wanted.iter().zip(&self.summands).enumerate() {
            let mut write = |table: usize, results: [f64; L]| out[table * self.wanted.len() + which] = results;
            if *aggregate == Aggregate::InterquartileMean {
                let middle = middle_of(draws.drawn.len());
                let (kept, middle) = (middle.len() as f64, middle.start as u32..middle.end as u32);
                for (table, sorted) in self.sorted.iter().enumerate() {
                    let mut sums = [0.0; L];
                    dispatch(Level::best(), Middle { sorted, counts: &counts, most: &most, middle: middle.clone(), sums: &mut sums });
                    write(table, sums.map(|sum| sum / kept));
                }
                continue;
            }
            for (group, columns) in groups.iter().enumerate() {
                let tables = group * WIDTH..self.tables.min((group + 1) * WIDTH);
                if *aggregate == Aggregate::Median {
                    let parts: Vec<[[f64; WIDTH]; L]> = draws.drawn.chunks_exact(runs).map(|drawn| sums(columns, drawn)).collect();
                    for (column, table) in tables.enumerate() {
                        let median = |lane: usize| median_of(parts.iter().map(|sums| sums[lane][column] / runs as f64).collect());
                        write(table, std::array::from_fn(median));
                    }
                } else {
                    let sums = sums(columns, &draws.drawn);
                    for (column, table) in tables.enumerate() {
                        let means = sums.map(|sums| sums[column] / total);
                        write(table, if let Aggregate::OptimalityGap(gamma) = aggregate { means.map(|mean| gamma - mean) } else { means });
                    }
                }
            }
        }
    }
}

/// The differences of the means of pairs of tables of one shape, which draw the same runs.
pub(crate) struct Differences {
    columns: Vec<Columns>,
    /// The columns of each pair.
    pairs: Vec<(usize, usize)>,
}

impl Differences {
    pub(crate) fn new(tables: &[&Scores], pairs: &[(usize, usize)]) -> Self {
        let used: BTreeSet<usize> = pairs.iter().flat_map(|(x, y)| [*x, *y]).collect();
        let columns: BTreeMap<usize, usize> = used.iter().copied().zip(0..).collect();
        let tables: Vec<&Scores> = used.iter().map(|table| tables[*table]).collect();
        Self { columns: interleaved(&tables, |score| score), pairs: pairs.iter().map(|(x, y)| (columns[x], columns[y])).collect() }
    }
}

impl Resampled for Differences {
    fn outputs(&self) -> usize {
        self.pairs.len()
    }

    fn compute<const L: usize>(&self, draws: &[Draws<L>], out: &mut [[f64; L]]) {
        let [draws] = draws else { return };
        let total = draws.drawn.len() as f64;
        let sums: Vec<[[f64; WIDTH]; L]> = self.columns.iter().map(|columns| sums(columns, &draws.drawn)).collect();
        let mean = |table: usize, lane: usize| sums[table / WIDTH][lane][table % WIDTH] / total;
        for ((x, y), out) in self.pairs.iter().zip(out) {
            *out = std::array::from_fn(|lane| mean(*x, lane) - mean(*y, lane));
        }
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
        let mut order: Vec<usize> = (0..taus.len()).collect();
        order.sort_by(|a, b| taus[*a].total_cmp(&taus[*b]));
        let ascending: Vec<f64> = order.iter().map(|place| taus[*place]).collect();
        let exceeded = |score: &f64| ascending.partition_point(|tau| tau < score) as u32;
        let mut places = vec![0; taus.len()];
        order.iter().enumerate().for_each(|(place, tau)| places[*tau] = place);
        Self { exceeded: tables.iter().map(|scores| scores.values.iter().map(exceeded).collect()).collect(), places }
    }
}

impl Resampled for Profiles {
    fn outputs(&self) -> usize {
        self.exceeded.len() * self.places.len()
    }

    fn compute<const L: usize>(&self, draws: &[Draws<L>], out: &mut [[f64; L]]) {
        let ([draws], taus) = (draws, self.places.len()) else { return };
        for (exceeded, out) in self.exceeded.iter().zip(out.chunks_exact_mut(taus.max(1))) {
            // above[k]: the number of scores that exceed k thresholds, then the number of those that exceed more than k
            let mut above = vec![[0_u32; L]; taus + 1];
            draws.drawn.iter().for_each(|drawn| (0..L).for_each(|lane| above[exceeded[drawn[lane] as usize] as usize][lane] += 1));
            let mut sum = [0_u32; L];
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

/// The scores of all tables on one task in ascending order.
struct Order {
    /// The table and the run of each score.
    entries: Vec<(u32, u32)>,
    /// The end of each range of equal scores.
    ends: Vec<usize>,
}

/// The probabilities of improvement of pairs of tables. `draws[0]` are those of the first table of each pair, `draws[1]` those of the second.
pub(crate) struct Improvements {
    tasks: Vec<Order>,
    /// For each table, the pairs in which it is the first table, each with the second table.
    against: Vec<Vec<(usize, usize)>>,
    /// Whether each table is the second table of a pair.
    is_second: Vec<bool>,
    pairs: usize,
}

impl Improvements {
    /// The first tables of all pairs must have one shape, and so must the second tables.
    pub(crate) fn new(tables: &[&Scores], pairs: &[(usize, usize)]) -> Self {
        let of_task = |task: usize| {
            let used = |table: &(usize, &&Scores)| pairs.iter().any(|(x, y)| [*x, *y].contains(&table.0));
            let scores = tables.iter().enumerate().filter(used).flat_map(|(table, scores)| {
                let runs = scores.runs;
                let values = scores.values[task * runs..(task + 1) * runs].iter();
                values.zip(0..).map(move |(score, run)| (*score, (table as u32, run)))
            });
            let mut all: Vec<(f64, (u32, u32))> = scores.collect();
            all.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
            let mut end = 0;
            let ends = all.chunk_by(|a, b| a.0 == b.0).map(|same| {
                end += same.len();
                end
            });
            Order { ends: ends.collect(), entries: all.iter().map(|(_, entry)| *entry).collect() }
        };
        let count = pairs.first().map_or(0, |(x, _)| tables[*x].tasks().len());
        let against = |table: usize| pairs.iter().enumerate().filter(|(_, (x, _))| *x == table).map(|(pair, (_, y))| (pair, *y)).collect();
        Self {
            tasks: (0..count).map(of_task).collect(),
            against: (0..tables.len()).map(against).collect(),
            is_second: (0..tables.len()).map(|table| pairs.iter().any(|(_, y)| *y == table)).collect(),
            pairs: pairs.len(),
        }
    }
}

impl Resampled for Improvements {
    fn outputs(&self) -> usize {
        self.pairs
    }

    fn compute<const L: usize>(&self, draws: &[Draws<L>], out: &mut [[f64; L]]) {
        let [x, y] = draws else { return };
        let (n, m) = (x.runs, y.runs);
        out.fill([0.0; L]);
        let mut wins = vec![[0; L]; self.pairs];
        for (part, (x_counts, y_counts)) in x.counts.chunks_exact(n).zip(y.counts.chunks_exact(m)).enumerate() {
            wins.fill([0; L]);
            let order = &self.tasks[x.tasks[part]];
            // an entry adds at most `highest` to a number of wins
            let highest = 2 * m as u64 * u64::from(x.most);
            let entries = (u64::from(u32::MAX) / highest.max(1)).max(1) as usize;
            dispatch(Level::best(), Wins { order, improvements: self, counts: [x_counts, y_counts], entries, wins: &mut wins });
            for (out, wins) in out.iter_mut().zip(&wins) {
                (0..L).for_each(|lane| out[lane] += wins[lane] as f64 / 2.0 / (n * m) as f64);
            }
        }
        out.iter_mut().flatten().for_each(|sum| *sum /= self.tasks.len() as f64);
    }
}

/// Counts twice the wins of each pair on one task; a tie is half a win.
struct Wins<'a, const L: usize> {
    order: &'a Order,
    improvements: &'a Improvements,
    counts: [&'a [[u16; L]]; 2],
    /// Number of entries whose wins fit into 32 bits.
    entries: usize,
    wins: &'a mut [[u64; L]],
}

impl<const L: usize> Kernel for Wins<'_, L> {
    #[inline(always)]
    fn run(self) {
        let Self { order, improvements: Improvements { against, is_second, .. }, counts: [x_counts, y_counts], entries, wins } = self;
        // for each second table, twice the number of its lower scores and once the number of its equal scores
        let mut below = vec![[0_u32; L]; against.len()];
        let mut sums = vec![[0_u32; L]; wins.len()];
        let (mut begin, mut left) = (0, entries);
        for end in &order.ends {
            let same = &order.entries[begin..*end];
            begin = *end;
            add_counts(&mut below, same, is_second, y_counts);
            for (table, run) in same {
                let pairs = &against[*table as usize];
                if pairs.is_empty() {
                    continue;
                }
                let mut counts = [0; L];
                for lane in 0..L {
                    counts[lane] = u32::from(x_counts[*run as usize][lane]);
                }
                for (pair, second) in pairs {
                    // the compiler vectorises copies, because these cannot overlap
                    let (mut sum, below) = (sums[*pair], below[*second]);
                    for lane in 0..L {
                        sum[lane] += counts[lane] * below[lane];
                    }
                    sums[*pair] = sum;
                }
                left -= 1;
                if left == 0 {
                    flush(&mut sums, wins);
                    left = entries;
                }
            }
            add_counts(&mut below, same, is_second, y_counts);
        }
        flush(&mut sums, wins);
    }
}

/// Adds the counts of the entries that are scores of second tables.
#[inline(always)]
fn add_counts<const L: usize>(below: &mut [[u32; L]], entries: &[(u32, u32)], is_second: &[bool], counts: &[[u16; L]]) {
    for (table, run) in entries {
        if is_second[*table as usize] {
            let (mut sum, counts) = (below[*table as usize], counts[*run as usize]);
            for lane in 0..L {
                sum[lane] += u32::from(counts[lane]);
            }
            below[*table as usize] = sum;
        }
    }
}

/// Adds the sums to the wins and sets them to 0.
#[inline(always)]
fn flush<const L: usize>(sums: &mut [[u32; L]], wins: &mut [[u64; L]]) {
    for (sums, wins) in sums.iter_mut().zip(wins) {
        for lane in 0..L {
            wins[lane] += u64::from(sums[lane]);
        }
        *sums = [0; L];
    }
}
