//! Probabilities of improvement.

use gradus_base::simd::{Kernel, Level, Simd, dispatch};

use super::{Draws, LANES, Resampled};
use crate::bootstrap::grouped;
use crate::{Scores, ascending};

/// A number per lane, in one cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Lanes([u32; LANES]);

/// The probabilities of improvement of pairs of tables. `draws[0]` are those of the first table of each pair, `draws[1]` those of the second.
pub(crate) struct Improvements {
    tasks: Vec<Task>,
    /// Each second table, with its pairs and their first tables.
    seconds: Vec<(usize, Vec<(usize, usize)>)>,
    pairs: usize,
}

/// The order of the scores on one task.
struct Task {
    /// For each table, its runs in ascending order of their scores; empty if no pair has this table.
    runs: Vec<Vec<u32>>,
    /// For each pair and each run of its first table, in ascending order: the number of lower scores in the second table, and the number of
    /// lower and equal ones.
    ranks: Vec<Vec<[u32; 2]>>,
}

impl Task {
    fn new(task: usize, tables: &[&Scores], pairs: &[(usize, usize)]) -> Self {
        let scores = |table: usize| &tables[table].values[task * tables[table].runs..(task + 1) * tables[table].runs];
        let is_used = |table: usize| pairs.iter().any(|(x, y)| [*x, *y].contains(&table));
        let (sorted, runs): (Vec<Vec<f64>>, Vec<Vec<u32>>) = (0..tables.len())
            .map(|table| if is_used(table) { ascending(scores(table)).into_iter().unzip() } else { (Vec::new(), Vec::new()) })
            .unzip();
        let ranks = |(x, y): &(usize, usize)| {
            let (mut lower, mut not_higher) = (0, 0);
            let rank = |score: &f64| {
                let y = &sorted[*y];
                lower += y[lower..].iter().take_while(|other| *other < score).count();
                not_higher = not_higher.max(lower);
                not_higher += y[not_higher..].iter().take_while(|other| *other <= score).count();
                [lower as u32, not_higher as u32]
            };
            sorted[*x].iter().map(rank).collect()
        };
        Self { ranks: pairs.iter().map(ranks).collect(), runs }
    }
}

impl Improvements {
    /// The first tables of all pairs must have one shape, and so must the second tables.
    pub(crate) fn new(tables: &[&Scores], pairs: &[(usize, usize)]) -> Self {
        let count = pairs.first().map_or(0, |(x, _)| tables[*x].tasks().len());
        let seconds = grouped(pairs.iter().map(|(_, y)| *y)).into_iter();
        let seconds = seconds.map(|same| (pairs[same[0]].1, same.into_iter().map(|pair| (pair, pairs[pair].0)).collect())).collect();
        Self { tasks: (0..count).map(|task| Task::new(task, tables, pairs)).collect(), seconds, pairs: pairs.len() }
    }
}

impl Resampled for Improvements {
    fn outputs(&self) -> usize {
        self.pairs
    }

    fn compute(&self, draws: &[Draws], out: &mut [[f64; LANES]]) {
        let [x, y] = draws else { return };
        let (n, m) = (x.runs, y.runs);
        // a run adds at most `highest` to twice the number of wins
        let highest = 2 * m as u64 * u64::from(x.most);
        let together = (u64::from(u32::MAX) / highest.max(1)).max(1) as usize;
        out.fill([0.0; LANES]);
        let mut wins = vec![[0; LANES]; self.pairs];
        for (part, counts) in x.counts.chunks_exact(n).zip(y.counts.chunks_exact(m)).enumerate() {
            wins.fill([0; LANES]);
            let mut add = |task: u32, [x_counts, y_counts]: [&[[u16; LANES]]; 2]| {
                let (task, seconds) = (&self.tasks[task as usize], &self.seconds);
                dispatch(Level::best(), Wins { task, seconds, x_counts, y_counts, together, wins: &mut wins });
            };
            if !x.has_other_tasks {
                add(part as u32, [counts.0, counts.1]);
            } else {
                let tasks = x.tasks[part];
                for task in (0..self.tasks.len() as u32).filter(|task| tasks.contains(task)) {
                    // only the lanes that have drawn this task
                    let of_lane = |lane: usize, count: u16| if tasks[lane] == task { count } else { 0 };
                    let masked = |counts: &[[u16; LANES]]| -> Vec<[u16; LANES]> {
                        counts.iter().map(|counts| std::array::from_fn(|lane| of_lane(lane, counts[lane]))).collect()
                    };
                    add(task, [&masked(counts.0), &masked(counts.1)]);
                }
            }
            for (out, wins) in out.iter_mut().zip(&wins) {
                (0..LANES).for_each(|lane| out[lane] += wins[lane] as f64 / 2.0 / (n * m) as f64);
            }
        }
        out.iter_mut().flatten().for_each(|sum| *sum /= self.tasks.len() as f64);
    }
}

/// Counts twice the wins of each pair on one task; a tie is half a win.
struct Wins<'a> {
    task: &'a Task,
    seconds: &'a [(usize, Vec<(usize, usize)>)],
    /// How often each run is drawn from the first and the second tables.
    x_counts: &'a [[u16; LANES]],
    y_counts: &'a [[u16; LANES]],
    /// Number of runs whose wins fit into 32 bits.
    together: usize,
    wins: &'a mut [[u64; LANES]],
}

impl Kernel for Wins<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self { task: Task { runs, ranks }, seconds, x_counts, y_counts, together, wins } = self;
        // below[k]: how many copies of the k lowest scores of the second table are drawn
        let mut below = vec![Lanes([0; LANES]); y_counts.len() + 1];
        for (second, pairs) in seconds {
            let mut sum = [0; LANES];
            for (run, below) in runs[*second].iter().zip(&mut below[1..]) {
                let counts = y_counts[*run as usize];
                for lane in 0..LANES {
                    sum[lane] += u32::from(counts[lane]);
                }
                *below = Lanes(sum);
            }
            for (pair, first) in pairs {
                let both = runs[*first].chunks(together).zip(ranks[*pair].chunks(together));
                for (runs, ranks) in both {
                    let mut sum = [0; LANES];
                    for (run, [lower, not_higher]) in runs.iter().zip(ranks) {
                        let counts = x_counts[*run as usize];
                        let (Lanes(lower), Lanes(not_higher)) = (below[*lower as usize], below[*not_higher as usize]);
                        for lane in 0..LANES {
                            sum[lane] += u32::from(counts[lane]) * (lower[lane] + not_higher[lane]);
                        }
                    }
                    for lane in 0..LANES {
                        wins[*pair][lane] += u64::from(sum[lane]);
                    }
                }
            }
        }
    }
}
