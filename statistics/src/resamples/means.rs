//! Statistics that are means or medians of drawn scores.

use std::borrow::Cow;
use std::ops::Range;

use gradus_base::simd::{Kernel, Level, Simd, dispatch};

use super::{Draws, LANES, Resampled};
use crate::{Aggregate, Scores, ascending, median_of, middle_of};

/// Number of columns whose scores are interleaved.
const WIDTH: usize = 8;

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
struct Sums {
    all: [[f64; WIDTH]; LANES],
    /// The sums of each part.
    parts: Vec<[[f64; WIDTH]; LANES]>,
}

impl Sums {
    fn new(columns: &[Row], draws: &Draws) -> Self {
        let mut all = [[0.0; WIDTH]; LANES];
        let part = |drawn: &[[u32; LANES]]| {
            let mut part = [[0.0; WIDTH]; LANES];
            let groups = all.as_chunks_mut::<TOGETHER>().0.iter_mut().zip(part.as_chunks_mut::<TOGETHER>().0);
            for (group, (all, part)) in groups.enumerate() {
                dispatch(Level::best(), AddRows { columns, drawn, first: group * TOGETHER, all, part });
            }
            part
        };
        let parts = draws.drawn.chunks_exact(draws.runs).map(part).collect();
        Self { all, parts }
    }
}

/// Number of lanes whose sums are added together: as many as fit into registers.
const TOGETHER: usize = 4;

/// Adds the drawn rows to the sums of [`TOGETHER`] lanes from lane `first` on.
struct AddRows<'a> {
    columns: &'a [Row],
    drawn: &'a [[u32; LANES]],
    first: usize,
    all: &'a mut [[f64; WIDTH]; TOGETHER],
    part: &'a mut [[f64; WIDTH]; TOGETHER],
}

impl Kernel for AddRows<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let (mut all, mut part) = (*self.all, *self.part);
        for drawn in self.drawn {
            for lane in 0..TOGETHER {
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

/// How often each score of a table is drawn.
struct Counts<'a> {
    counts: Cow<'a, [[u16; LANES]]>,
    /// The highest count of each score.
    most: Vec<u16>,
}

impl<'a> Counts<'a> {
    fn new(draws: &'a Draws) -> Self {
        let mut counts = Cow::Borrowed(&draws.counts[..]);
        if draws.has_other_tasks {
            // a task may be drawn in several parts
            let counts = counts.to_mut();
            counts.fill([0; LANES]);
            draws.drawn.iter().for_each(|drawn| (0..LANES).for_each(|lane| counts[drawn[lane] as usize][lane] += 1));
        }
        Self { most: counts.iter().map(|counts| counts.iter().copied().max().unwrap_or(0)).collect(), counts }
    }
}

/// Adds the middle half of each resample in ascending order.
struct Middle<'a> {
    /// The indices of the scores in ascending order of the scores, and the scores.
    sorted: &'a [(f64, u32)],
    counts: &'a Counts<'a>,
    middle: Range<u32>,
    sums: &'a mut [f64; LANES],
}

impl Kernel for Middle<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let (start, end) = (self.middle.start, self.middle.end);
        let (mut before, mut sums) = ([0_u32; LANES], [0.0; LANES]);
        for scores in self.sorted.chunks(8) {
            let mut after = before;
            for (_, index) in scores {
                let counts = self.counts.counts[*index as usize];
                for lane in 0..LANES {
                    after[lane] += u32::from(counts[lane]);
                }
            }
            // whether a lane has reached the middle half, all lanes are inside, all lanes have left it
            let (mut has_begun, mut is_inside, mut is_over) = (false, true, true);
            for lane in 0..LANES {
                has_begun |= after[lane] > start;
                is_inside &= before[lane] >= start && after[lane] <= end;
                is_over &= before[lane] >= end;
            }
            if is_over {
                break;
            }
            if is_inside {
                self.add_all(scores, &mut sums);
            } else if has_begun {
                self.add(scores, before, &mut sums);
            }
            before = after;
        }
        *self.sums = sums;
    }
}

impl Middle<'_> {
    /// Adds all copies of the scores.
    #[inline(always)]
    fn add_all(&self, scores: &[(f64, u32)], sums: &mut [f64; LANES]) {
        let mut added = *sums;
        for (value, index) in scores {
            let counts = self.counts.counts[*index as usize].map(u32::from);
            add_copies(*value, self.counts.most[*index as usize], counts, &mut added);
        }
        *sums = added;
    }

    /// Adds those copies of the scores that lie in the middle half. `before` is the number of copies of all lower scores.
    #[inline(always)]
    fn add(&self, scores: &[(f64, u32)], mut before: [u32; LANES], sums: &mut [f64; LANES]) {
        let (start, end) = (self.middle.start, self.middle.end);
        let mut added = *sums;
        for (value, index) in scores {
            let counts = self.counts.counts[*index as usize];
            let mut inside = [0; LANES];
            for lane in 0..LANES {
                let after = before[lane] + u32::from(counts[lane]);
                inside[lane] = after.min(end).max(start) - before[lane].min(end).max(start);
                before[lane] = after;
            }
            add_copies(*value, self.counts.most[*index as usize], inside, &mut added);
        }
        *sums = added;
    }
}

/// Adds `copies[lane]` copies of a value, at most `most`, to the sum of each lane, one after the other.
#[inline(always)]
fn add_copies(value: f64, most: u16, copies: [u32; LANES], sums: &mut [f64; LANES]) {
    for copy in 0..u32::from(most) {
        for lane in 0..LANES {
            // all bits or none; adding 0 changes no sum
            let mask = u64::from(copies[lane] > copy).wrapping_neg();
            sums[lane] += f64::from_bits(value.to_bits() & mask);
        }
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
        let is_sum = |aggregate: &Aggregate| *aggregate != Aggregate::InterquartileMean;
        Self {
            wanted,
            tables: tables.len(),
            columns: if wanted.iter().any(is_sum) { interleaved(&columns) } else { Vec::new() },
            first,
            sorted: if wanted.iter().all(is_sum) { Vec::new() } else { tables.iter().map(|scores| ascending(&scores.values)).collect() },
        }
    }
}

impl Resampled for Aggregates<'_> {
    fn outputs(&self) -> usize {
        self.tables * self.wanted.len()
    }

    fn compute(&self, draws: &[Draws], out: &mut [[f64; LANES]]) {
        let [draws] = draws else { return };
        let sums: Vec<Sums> = self.columns.iter().map(|columns| Sums::new(columns, draws)).collect();
        let counts = &Counts::new(draws);
        let middle = middle_of(draws.drawn.len());
        let interquartile_means = |table: usize| {
            let mut sums = [0.0; LANES];
            let (sorted, places) = (&self.sorted[table], middle.start as u32..middle.end as u32);
            dispatch(Level::best(), Middle { sorted, counts, middle: places, sums: &mut sums });
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
        let used: Vec<usize> = (0..tables.len()).filter(|table| pairs.iter().any(|(x, y)| [*x, *y].contains(table))).collect();
        let columns: Vec<Vec<f64>> = used.iter().map(|table| tables[*table].values.clone()).collect();
        let place = |table: usize| used.partition_point(|before| *before < table);
        Self { columns: interleaved(&columns), pairs: pairs.iter().map(|(x, y)| (place(*x), place(*y))).collect() }
    }
}

impl Resampled for Differences {
    fn outputs(&self) -> usize {
        self.pairs.len()
    }

    fn compute(&self, draws: &[Draws], out: &mut [[f64; LANES]]) {
        let [draws] = draws else { return };
        let total = draws.drawn.len() as f64;
        let sums: Vec<Sums> = self.columns.iter().map(|columns| Sums::new(columns, draws)).collect();
        let mean = |column: usize, lane: usize| sums[column / WIDTH].all[lane][column % WIDTH] / total;
        for ((x, y), out) in self.pairs.iter().zip(out) {
            *out = std::array::from_fn(|lane| mean(*x, lane) - mean(*y, lane));
        }
    }
}
