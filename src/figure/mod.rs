//! Figures for lectures and papers, as SVG, PNG and PDF.
//!
//! A [`Figure`] has a title, a note and panels; a panel has a title and a [`Chart`]: [`Lines`], [`Intervals`], [`Violins`], a
//! [`Grid`], [`Coordinates`], [`Episodes`] or a [`Radar`]. Series of the same name look the same in every panel and appear once in the legend above the panels.
//!
//! ```
//! use gradus::figure::{Chart, Figure, Lines, Panel, Scale, Series, Threshold, write};
//!
//! let band = vec![(0.25, 0.8, 1.0), (1.0, 1.2, 1.5), (4.0, 1.0, 1.1)]; // x, low, high
//! let greedy = Series { band, ..Series::new("greedy", vec![(0.25, 0.9), (1.0, 1.4), (4.0, 1.05)]) };
//! let lines = Lines {
//!     x_label: "initial value".into(),
//!     y_label: "average reward over 1000 steps".into(),
//!     x_scale: Scale::Log2,
//!     series: vec![greedy, Series::new("UCB", vec![(0.25, 1.3), (4.0, 1.35)])],
//!     threshold: Some(Threshold { value: 1.5, label: "best".into() }),
//!     direct: true, // names at the ends of the lines instead of a legend
//!     ..Lines::default()
//! };
//! let panels = vec![Panel { title: "10 arms".into(), chart: Chart::Lines(lines) }];
//! let figure = Figure { title: "Bandits".into(), note: "mean of 2000 problems".into(), columns: 1, panels };
//! let folder = std::env::temp_dir();
//! write(&figure, &folder.join("bandits.svg"))?;
//! write(&figure, &folder.join("bandits.png"))?;
//! # Ok::<(), gradus::figure::FigureError>(())
//! ```
//!
//! [`Figure::of`] makes a figure of one chart. [`Violin::normal`] and [`Violin::of_samples`] make distributions. A [`Grid`] has [`Cell`]s
//! with a shade, a text and [`Arrow`]s. The first colours are Okabe and Ito's. Series also differ in their dashes, so that a print without
//! colour can be read.
//!
//! SVG, PNG and PDF have the same layout. plotters writes the SVG. The rasteriser of the crate `gradus-drawing` draws
//! the PNG. The font of PNG and PDF is the bundled one, Open Sans. Letters that it lacks ([`missing_letters`]), such as Chinese ones, are
//! empty boxes there; the viewer of an SVG takes them from another font. System fonts are not used, and the same input gives the same bytes.

mod axis;
mod brush;
mod coordinates;
mod episodes;
mod frame;
mod grid;
mod intervals;
mod learning;
mod lines;
mod page;
mod pdf;
mod radar;
mod style;
mod violins;

use std::io;
use std::path::{Path, PathBuf};

pub use axis::Scale;
pub use coordinates::{Coordinate, Coordinates};
pub use episodes::{Episode, Episodes};
pub use gradus_drawing::fonts::missing_letters;
pub use grid::{Arrow, Cell, Grid};
pub use intervals::{Interval, Intervals};
pub use learning::{Curve, LearningCurves, WINDOW, smooth, smooth_over};
pub use lines::{Lines, Series, Threshold};
pub use radar::Radar;
pub use style::{dashed, solid};
pub use violins::{Violin, Violins};

use gradus_drawing::pixels::Pixels;
use page::Page;

use crate::files::{create_parents, remove_leftovers_of, replace};

/// One chart of any kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Chart {
    /// Lines with common axes.
    Lines(Lines),
    /// Points with intervals, one row each.
    Intervals(Intervals),
    /// Distributions side by side.
    Violins(Violins),
    /// Cells with shades and arrows.
    Grid(Grid),
    /// Lines across vertical axes.
    Coordinates(Coordinates),
    /// Moments of episodes side by side.
    Episodes(Episodes),
    /// Scores around a centre.
    Radar(Radar),
}

/// A chart with a title.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// Title, such as the environment; may be empty.
    pub title: String,
    /// The chart.
    pub chart: Chart,
}

/// A page of panels with a title and a note.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figure {
    /// Title above the panels.
    pub title: String,
    /// Smaller line below the title, such as the meaning of the bands or the number of runs; may be empty.
    pub note: String,
    /// Largest number of panels side by side.
    pub columns: usize,
    /// The panels, row by row.
    pub panels: Vec<Panel>,
}

impl Figure {
    /// Returns a figure of one chart, without a title.
    pub fn of(chart: Chart) -> Self {
        Self { columns: 1, panels: vec![Panel { title: String::new(), chart }], ..Self::default() }
    }

    /// Returns the text of the SVG. Error messages call the figure `name`.
    pub fn svg(&self, name: &Path) -> Result<String, FigureError> {
        check(self, name)?;
        svg(self).map_err(|reason| FigureError::Draw { path: name.into(), reason })
    }
}

/// The format of a figure's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Vectors for pages in a browser.
    Svg,
    /// Pixels.
    Png,
    /// Vectors for papers.
    Pdf,
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 3] = [Format::Svg, Format::Png, Format::Pdf];

    /// The formats that commands write unless others are chosen.
    pub const USUAL: [Format; 2] = [Format::Svg, Format::Png];

    /// Returns the ending of its files' names, such as `svg`.
    pub fn ending(self) -> &'static str {
        match self {
            Format::Svg => "svg",
            Format::Png => "png",
            Format::Pdf => "pdf",
        }
    }
}

/// Why a figure could not be written.
#[derive(Debug, thiserror::Error)]
pub enum FigureError {
    /// The file name ends in none of `.svg`, `.png` and `.pdf`.
    #[error("{}: expected a name ending in .svg, .png or .pdf, got {}", path.display(), ending(extension))]
    Extension {
        /// The file.
        path: PathBuf,
        /// Its extension.
        extension: Option<String>,
    },
    /// A number is NaN, other than the y of a line's point, or its absolute value is 1e300 or more.
    #[error("{}: \"{label}\": expected finite numbers, got {value} at {at}", path.display())]
    NotFinite {
        /// The file.
        path: PathBuf,
        /// Label of the series, row or distribution, or of the values of a grid.
        label: String,
        /// The x of a line's point, the point estimate of an interval, a value of a distribution, or the value of a cell.
        at: f64,
        /// The y of a line's point, an end of an interval, the density at a value, or the value of a cell.
        value: f64,
    },
    /// A number on a logarithmic axis is not above 0.
    #[error("{}: \"{label}\": expected numbers above 0 on a logarithmic axis, got {value}", path.display())]
    NotPositive {
        /// The file.
        path: PathBuf,
        /// Label of the series.
        label: String,
        /// The number.
        value: f64,
    },
    /// The threshold or reference value is NaN, or its absolute value is 1e300 or more.
    #[error("{}: expected a finite threshold, got {threshold}", path.display())]
    Threshold {
        /// The file.
        path: PathBuf,
        /// The threshold.
        threshold: f64,
    },
    /// The picture could not be drawn.
    #[error("{}: cannot draw: {reason}", path.display())]
    Draw {
        /// The file.
        path: PathBuf,
        /// Message of the drawing library.
        reason: String,
    },
    /// The file could not be written.
    #[error("{}: cannot write: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
}

fn ending(extension: &Option<String>) -> String {
    extension.as_ref().map_or_else(|| "no extension".to_owned(), |extension| format!(".{extension}"))
}

/// Writes the figure to `path`, in the format of the extension. The file appears complete or not at all.
pub fn write(figure: &Figure, path: &Path) -> Result<(), FigureError> {
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    let Some(format) = Format::ALL.into_iter().find(|format| Some(format.ending()) == extension.as_deref()) else {
        return Err(FigureError::Extension { path: path.into(), extension });
    };
    check(figure, path)?;
    let bytes = match format {
        Format::Svg => svg(figure).map(String::into_bytes),
        Format::Png => png(figure),
        Format::Pdf => pdf(figure),
    };
    let bytes = bytes.map_err(|reason| FigureError::Draw { path: path.into(), reason })?;
    remove_leftovers_of(path);
    create_parents(path).and_then(|()| replace(path, &bytes)).map_err(|source| FigureError::Write { path: path.into(), source })
}

/// Whether a number can be drawn. With this limit, the difference of two numbers and the sum of a hundred numbers are still finite.
fn usable(number: f64) -> bool {
    number.abs() < 1e300
}

/// Makes a gap of every point of a line that cannot be drawn. Returns their number.
pub fn make_gaps(points: &mut [(f64, f64)]) -> usize {
    let bad = points.iter_mut().filter(|(_, y)| !usable(*y));
    bad.map(|point| point.1 = f64::NAN).count()
}

fn check(figure: &Figure, path: &Path) -> Result<(), FigureError> {
    for Panel { chart, .. } in &figure.panels {
        let (numbers, lines): (Vec<(String, f64, f64)>, Vec<f64>) = match chart {
            Chart::Lines(lines) => (owned(lines.numbers()), lines.threshold.iter().map(|line| line.value).collect()),
            Chart::Intervals(intervals) => (owned(intervals.numbers()), intervals.reference.into_iter().collect()),
            Chart::Violins(violins) => (owned(violins.numbers()), violins.reference.into_iter().collect()),
            Chart::Grid(grid) => (owned(grid.numbers()), Vec::new()),
            Chart::Coordinates(coordinates) => (owned(coordinates.numbers()), Vec::new()),
            Chart::Radar(radar) => (owned(radar.numbers()), Vec::new()),
            Chart::Episodes(_) => (Vec::new(), Vec::new()),
        };
        if let Some(threshold) = lines.into_iter().find(|threshold| !usable(*threshold)) {
            return Err(FigureError::Threshold { path: path.into(), threshold });
        }
        if let Some((label, at, value)) = numbers.iter().find(|(_, at, value)| !usable(*at) || !usable(*value)) {
            return Err(FigureError::NotFinite { path: path.into(), label: label.clone(), at: *at, value: *value });
        }
        if let Chart::Lines(lines) = chart
            && let Some((label, value, _)) = numbers.into_iter().find(|(_, x, _)| !lines.x_scale.holds(*x))
        {
            return Err(FigureError::NotPositive { path: path.into(), label, value });
        }
    }
    Ok(())
}

fn owned<'a>(numbers: impl Iterator<Item = (&'a str, f64, f64)>) -> Vec<(String, f64, f64)> {
    numbers.map(|(label, at, value)| (label.to_owned(), at, value)).collect()
}

fn svg(figure: &Figure) -> Result<String, String> {
    let page = Page::new(figure);
    brush::svg(page.size, |brush| page.draw(brush))
}

fn png(figure: &Figure) -> Result<Vec<u8>, String> {
    let page = Page::new(figure);
    let mut pixels = Pixels::new(page.size);
    page.draw(&mut pixels)?;
    pixels.png().map_err(|error| error.to_string())
}

fn pdf(figure: &Figure) -> Result<Vec<u8>, String> {
    let page = Page::new(figure);
    pdf::pdf(page.size, |brush| page.draw(brush))
}

#[cfg(test)]
mod tests;
