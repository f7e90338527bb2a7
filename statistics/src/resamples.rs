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
        let runs = self.runs;
        let mut numbers = vec![0; runs];
        let parts = self.drawn.chunks_exact_mut(runs).zip(self.counts.chunks_exact_mut(runs));
        for ((drawn, counts), task) in parts.zip(&self.tasks) {
            let first = (task * runs) as u32;
            for (lane, stream) in streams.iter_mut().enumerate() {
                stream.fill_below(runs as u32, &mut numbers);
                for (number, drawn) in numbers.iter().zip(&mut *drawn) {
                    drawn[lane] = first + number;
                    counts[*number as usize][lane] += 1;
                }
            }
            self.most = counts.iter().flatten().copied().fold(self.most, u16::max);
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

/// The numbers with one index in up to [`WIDTH`] columns, in one cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Row([f64; WIDTH]);

/// Returns the columns in groups of [`WIDTH`], each as one row per index.
fn interleaved(columns: &[Vec<f64>]) -> Vec<Vec<Row>> {
    let rows = |columns: &[Vec<f64>]| {
        let mut rows = vec![Row([0.0; WIDTH]); columns[0].len()];
        for (number, column) in columns.iter().enumerate() {
            rows.iter_mut().zip(column).for_each(|(Row(row), value)| row[number] = *value);
        }
        rows
    };
    columns.chunks(WIDTH).map(rows).collect()
}

/// The sums of a group of columns in each lane, in the order of the draws.
struct Sums<const L: usize> {
    all: [[f64; WIDTH]; L],
    /// The sums of each part.
    parts: Vec<[[f64; WIDTH]; L]>,
}

impl<const L: usize> Sums<L> {
    fn new(columns: &[Row], draws: &Draws<L>) -> Self {
        const TOGETHER: usize = 4;
        let mut all = [[0.0; WIDTH]; L];
        let part = |drawn: &[[u32; L]]| {
            let mut part = [[0.0; WIDTH]; L];
            let ((groups, rest), (parts, part_rest)) = (all.as_chunks_mut::<TOGETHER>(), part.as_chunks_mut::<TOGETHER>());
            let first_of_rest = groups.len() * TOGETHER;
            for (group, (all, part)) in groups.iter_mut().zip(parts).enumerate() {
                dispatch(Level::best(), AddRows { columns, drawn, first: group * TOGETHER, all, part });
            }
            for (lane, (all, part)) in rest.iter_mut().zip(part_rest).enumerate() {
                let (all, part) = (std::array::from_mut(all), std::array::from_mut(part));
                dispatch(Level::best(), AddRows { columns, drawn, first: first_of_rest + lane, all, part });
            }
            part
        };
        let parts = draws.drawn.chunks_exact(draws.runs).map(part).collect();
        Self { all, parts }
    }
}

/// Adds the drawn rows to the sums of `P` lanes from lane `first` on.
struct AddRows<'a, const L: usize, const P: usize> {
    columns: &'a [Row],
    drawn: &'a [[u32; L]],
    first: usize,
    all: &'a mut [[f64; WIDTH]; P],
    part: &'a mut [[f64; WIDTH]; P],
}

impl<const L: usize, const P: usize> Kernel for AddRows<'_, L, P> {
    #[inline(always)]
    fn run(self) {
        let (mut all, mut part) = (*self.all, *self.part);
        for drawn in self.drawn {
            for lane in 0..P {
                let Row(row) = self.columns[drawn[self.first + lane] as usize];
                for column in 0..WIDTH {
                    all[lane][column] += row[column];
                    part[lane][column] += row[column];
                }
            }
        }
        (*self.all, *self.part) = (all, part);
    }
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
    /// Columns whose sums are needed.
    columns: Vec<Vec<Row>>,
    /// For each aggregate, the column of the first table; the columns of the other tables follow. Unused for the interquartile mean.
    first: Vec<usize>,
    /// The sorted scores of each table, each with its index, if the interquartile mean is wanted.
    sorted: Vec<Vec<(f64, u32)>>,
}

impl<'a> Aggregates<'a> {
    pub(crate) fn new(tables: &[&Scores], wanted: &'a [Aggregate]) -> Self {
        let mut columns: Vec<Vec<f64>> = tables.iter().map(|scores| scores.values.clone()).collect();
        let mut first = vec![0; wanted.len()];
        for (first, aggregate) in first.iter_mut().zip(wanted) {
            if let Aggregate::OptimalityGap(gamma) = aggregate {
                *first = columns.len();
                columns.extend(tables.iter().map(|scores| scores.values.iter().map(|score| score.min(*gamma)).collect()));
            }
        }
        let sorted = |scores: &&Scores| {
            let mut sorted: Vec<(f64, u32)> = scores.values.iter().copied().zip(0..).collect();
            sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
            sorted
        };
        let is_sum = |aggregate: &Aggregate| *aggregate != Aggregate::InterquartileMean;
        Self {
            wanted,
            tables: tables.len(),
            columns: if wanted.iter().any(is_sum) { interleaved(&columns) } else { Vec::new() },
            first,
            sorted: if wanted.iter().all(is_sum) { Vec::new() } else { tables.iter().map(sorted).collect() },
        }
    }
}

impl Resampled for Aggregates<'_> {
    fn outputs(&self) -> usize {
        self.tables * self.wanted.len()
    }

    fn compute<const L: usize>(&self, draws: &[Draws<L>], out: &mut [[f64; L]]) {
        let [draws] = draws else { return };
        let sums: Vec<Sums<L>> = self.columns.iter().map(|columns| Sums::new(columns, draws)).collect();
        let counts = draws.counts_of_scores();
        let most: Vec<u16> = counts.iter().map(|counts| counts.iter().copied().max().unwrap_or(0)).collect();
        let middle = middle_of(draws.drawn.len());
        let interquartile_means = |table: usize| {
            let mut sums = [0.0; L];
            let (sorted, places) = (&self.sorted[table], middle.start as u32..middle.end as u32);
            dispatch(Level::best(), Middle { sorted, counts: &counts, most: &most, middle: places, sums: &mut sums });
            sums.map(|sum| sum / middle.len() as f64)
        };
        for table in 0..self.tables {
            for (which, aggregate) in self.wanted.iter().enumerate() {
                let column = self.first[which] + table;
                let (group, column) = (column / WIDTH, column % WIDTH);
                let means = || sums[group].all.map(|sums| sums[column] / draws.drawn.len() as f64);
                out[table * self.wanted.len() + which] = match aggregate {
                    Aggregate::Mean => means(),
                    Aggregate::OptimalityGap(gamma) => means().map(|mean| gamma - mean),
                    Aggregate::InterquartileMean => interquartile_means(table),
                    Aggregate::Median => std::array::from_fn(|lane| {
                        median_of(sums[group].parts.iter().map(|part| part[lane][column] / draws.runs as f64).collect())
                    }),
                };
            }
        }
    }
}

/// The differences of the means of pairs of tables of one shape, which draw the same runs.
pub(crate) struct Differences {
    columns: Vec<Vec<Row>>,
    /// The columns of each pair.
    pairs: Vec<(usize, usize)>,
}

impl Differences {
    pub(crate) fn new(tables: &[&Scores], pairs: &[(usize, usize)]) -> Self {
        let used: BTreeSet<usize> = pairs.iter().flat_map(|(x, y)| [*x, *y]).collect();
        let places: BTreeMap<usize, usize> = used.iter().copied().zip(0..).collect();
        let columns: Vec<Vec<f64>> = used.iter().map(|table| tables[*table].values.clone()).collect();
        Self { columns: interleaved(&columns), pairs: pairs.iter().map(|(x, y)| (places[x], places[y])).collect() }
    }
}

impl Resampled for Differences {
    fn outputs(&self) -> usize {
        self.pairs.len()
    }

    fn compute<const L: usize>(&self, draws: &[Draws<L>], out: &mut [[f64; L]]) {
        let [draws] = draws else { return };
        let total = draws.drawn.len() as f64;
        let sums: Vec<Sums<L>> = self.columns.iter().map(|columns| Sums::new(columns, draws)).collect();
        let mean = |column: usize, lane: usize| sums[column / WIDTH].all[lane][column % WIDTH] / total;
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

/// Consecutive pairs whose second tables are also consecutive.
struct Span {
    pair: usize,
    second: usize,
    count: usize,
}

/// The probabilities of improvement of pairs of tables. `draws[0]` are those of the first table of each pair, `draws[1]` those of the second.
pub(crate) struct Improvements {
    tasks: Vec<Order>,
    /// For each table, the pairs in which it is the first table.
    against: Vec<Vec<Span>>,
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
        let against = |table: usize| {
            let mut spans: Vec<Span> = Vec::new();
            for (pair, (_, second)) in pairs.iter().enumerate().filter(|(_, (x, _))| *x == table) {
                match spans.last_mut() {
                    Some(last) if (last.pair + last.count, last.second + last.count) == (pair, *second) => last.count += 1,
                    _ => spans.push(Span { pair, second: *second, count: 1 }),
                }
            }
            spans
        };
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

/// A number per lane, in one cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Lanes<const L: usize>([u32; L]);

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
        let mut below = vec![Lanes([0; L]); against.len()];
        let mut sums = vec![Lanes([0; L]); wins.len()];
        let (mut begin, mut left) = (0, entries);
        for end in &order.ends {
            let same = &order.entries[begin..*end];
            begin = *end;
            add_counts(&mut below, same, is_second, y_counts);
            for (table, run) in same {
                let spans = &against[*table as usize];
                if spans.is_empty() {
                    continue;
                }
                let mut counts = [0; L];
                for lane in 0..L {
                    counts[lane] = u32::from(x_counts[*run as usize][lane]);
                }
                for Span { pair, second, count } in spans {
                    for (sum, below) in sums[*pair..*pair + *count].iter_mut().zip(&below[*second..*second + *count]) {
                        // the compiler vectorises copies, because these cannot overlap
                        let (Lanes(mut copy), Lanes(below)) = (*sum, *below);
                        for lane in 0..L {
                            copy[lane] += counts[lane] * below[lane];
                        }
                        *sum = Lanes(copy);
                    }
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
fn add_counts<const L: usize>(below: &mut [Lanes<L>], entries: &[(u32, u32)], is_second: &[bool], counts: &[[u16; L]]) {
    for (table, run) in entries {
        if is_second[*table as usize] {
            let (Lanes(mut sum), counts) = (below[*table as usize], counts[*run as usize]);
            for lane in 0..L {
                sum[lane] += u32::from(counts[lane]);
            }
            below[*table as usize] = Lanes(sum);
        }
    }
}

/// Adds the sums to the wins and sets them to 0.
#[inline(always)]
fn flush<const L: usize>(sums: &mut [Lanes<L>], wins: &mut [[u64; L]]) {
    for (Lanes(sums), wins) in sums.iter_mut().zip(wins) {
        for lane in 0..L {
            wins[lane] += u64::from(sums[lane]);
        }
        *sums = [0; L];
    }
}
