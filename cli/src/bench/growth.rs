//! Measures whether the time per step and the memory of a long run stay constant.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use super::measure::{median, multiply_peak};
use super::memory;
use gradus::figure::{self, Chart, Figure, Lines, Panel, Scale, Series};
use gradus::files::replace;
use gradus::{Config, Error, Run, Show};

/// Environment steps at the end of the first stretch.
pub const FIRST: u64 = 10_000;

/// Environment steps between measurements of the machine's multiplication rate, at most; a tenth of the steps so far if that is less.
const PIECE: u64 = 100_000;

/// A stretch of the run, from the end of the previous stretch to `steps`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stretch {
    /// Environment steps since the start of the run.
    pub steps: u64,
    /// Seconds of training since the start of the run, including logs and checkpoints.
    pub seconds: f64,
    /// Mean seconds per step in this stretch.
    pub per_step: f64,
    /// Median over pieces of the stretch of the seconds per step. Unlike the mean, it excludes checkpoints and occasional interruptions.
    pub median_per_step: f64,
    /// Resident memory of the process at the end of the stretch, in bytes, if the system reports it.
    pub resident: Option<u64>,
    /// Multiplication rate of all threads together, in floating-point operations per second; the median over the pieces.
    pub peak: f64,
}

/// Returns the ends of the stretches: 1, 2 and 5 times powers of ten, from [`FIRST`] on, and finally `steps`.
fn marks(steps: u64) -> Vec<u64> {
    let round = (0..).map(|i| [1, 2, 5][i % 3] * FIRST * 10_u64.pow(i as u32 / 3));
    round.take_while(|mark| *mark < steps).chain([steps]).collect()
}

/// Trains for `steps` steps with logs and checkpoints, as `gradus train` does. Calls `say` with the measurements of each stretch. The run
/// folder is inside `dir` and is removed at the end. When `stop` becomes true, the result is [`Error::Stopped`].
pub fn growth(
    config: &Config,
    steps: u64,
    dir: &Path,
    stop: &Arc<AtomicBool>,
    mut say: impl FnMut(&Stretch),
) -> Result<Vec<Stretch>, Error> {
    fs::create_dir_all(dir).map_err(Error::io("create", dir))?;
    let folder = Folder(dir.join(format!(".growth-{}", std::process::id())));
    let mut run = Run::create(Config { steps, ..config.clone() }, &folder.0)?;
    run.stop_when(stop.clone());
    let (mut stretches, mut seconds, mut before) = (Vec::new(), 0.0, 0);
    for mark in marks(steps) {
        let (mut peaks, mut pieces, from) = (Vec::new(), Vec::new(), seconds);
        while run.trainer().steps() < mark {
            let (began, first) = (Instant::now(), run.trainer().steps());
            run.train_until(mark.min(first + PIECE.min(mark / 10)), Show::Nothing, &mut |_| ControlFlow::Continue(()))?;
            let piece = began.elapsed().as_secs_f64();
            pieces.push(piece / (run.trainer().steps() - first) as f64);
            seconds += piece;
            peaks.push(multiply_peak());
        }
        let steps = run.trainer().steps();
        let (per_step, median_per_step) = ((seconds - from) / (steps - before) as f64, median(pieces));
        let stretch = Stretch { steps, seconds, per_step, median_per_step, resident: memory::resident(), peak: median(peaks) };
        say(&stretch);
        stretches.push(stretch);
        before = steps;
    }
    Ok(stretches)
}

/// A folder that is removed on drop.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Writes `growth.csv`, `growth.svg` and `growth.png` into `dir` and returns their paths. `note` is shown in the figure.
pub fn write(stretches: &[Stretch], note: &str, dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let table = dir.join("growth.csv");
    let row = |at: &Stretch| {
        let resident = at.resident.map_or_else(String::new, |bytes| bytes.to_string());
        let [mean, median] = [at.per_step, at.median_per_step].map(|seconds| 1e6 * seconds);
        format!("{},{:.3},{mean:.4},{median:.4},{resident},{:.1}\n", at.steps, at.seconds, at.peak / 1e9)
    };
    let rows: String = stretches.iter().map(row).collect();
    let text = format!("steps,seconds,mean_microseconds_per_step,median_microseconds_per_step,resident_bytes,multiply_gflops\n{rows}");
    replace(&table, text.as_bytes()).map_err(Error::io("write", &table))?;
    let figure = draw(stretches, note);
    let figures = ["growth.svg", "growth.png"].map(|name| dir.join(name));
    figures.iter().try_for_each(|path| figure::write(&figure, path))?;
    Ok([table].into_iter().chain(figures).collect())
}

fn draw(stretches: &[Stretch], note: &str) -> Figure {
    let panel = |title: &str, y_label: &str, series: Vec<Series>| {
        // the axis starts at 0, so that small variations look small
        let highest = series.iter().flat_map(|series| &series.points).map(|(_, y)| *y).fold(0.0, f64::max);
        let chart = Lines {
            x_label: "environment steps".into(),
            y_label: y_label.into(),
            x_scale: Scale::Log10,
            y_range: Some((0.0, 1.25 * highest.max(1e-9))),
            series,
            ..Lines::default()
        };
        Panel { title: title.into(), chart: Chart::Lines(chart) }
    };
    let points = |y: fn(&Stretch) -> Option<f64>| stretches.iter().filter_map(|at| Some((at.steps as f64, y(at)?))).collect();
    let mean = Series::new("mean", points(|at| Some(1e6 * at.per_step)));
    let median = Series::new("median", points(|at| Some(1e6 * at.median_per_step)));
    let memory = Series::new("memory", points(|at| at.resident.map(|bytes| bytes as f64 / 1e6)));
    let mut panels = vec![panel("Time", "microseconds per step", vec![mean, median])];
    if !memory.points.is_empty() {
        panels.push(panel("Memory", "resident, MB", vec![memory]));
    }
    Figure { title: "A long run".into(), note: note.into(), columns: 2, panels }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round_numbers_and_end_with_the_run() {
        assert_eq!(marks(10_000), [10_000]);
        assert_eq!(marks(100_000), [10_000, 20_000, 50_000, 100_000]);
        assert_eq!(marks(25_000), [10_000, 20_000, 25_000]);
        assert_eq!(marks(100_000_000).len(), 13);
    }
}
