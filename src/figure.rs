//! Learning curves: episode return over environment steps, as SVG and as PNG.
//!
//! The layout and the ticks are worked out once and drawn twice: plotters writes the SVG and fills the letters of the bundled font,
//! our raster fills the PNG. No font of the system is asked, and the same input gives the same bytes.

mod axis;
mod brush;
mod layout;

use std::io;
use std::path::{Path, PathBuf};

use brush::Pixels;
use layout::Layout;

use crate::files::replace;

/// Episodes per trailing mean: the usual window, and the one in which Gymnasium's thresholds are stated.
pub const WINDOW: usize = 100;

/// A smoothed curve is drawn with at most this many points: about one per pixel.
const DRAWN_POINTS: usize = 1000;

/// A figure that could not be written.
#[derive(Debug, thiserror::Error)]
pub enum FigureError {
    /// The file name asks for neither format.
    #[error("{}: expected a name ending in .svg or .png, got {}", path.display(), ending(extension))]
    Extension {
        /// The file.
        path: PathBuf,
        /// What its name ends in.
        extension: Option<String>,
    },
    /// A point is not finite.
    #[error("{}: curve \"{curve}\": expected finite numbers, got return {value} at step {step}", path.display())]
    NotFinite {
        /// The file.
        path: PathBuf,
        /// The curve's label.
        curve: String,
        /// The point's environment steps.
        step: f64,
        /// The point's return.
        value: f64,
    },
    /// The threshold is not finite.
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
        /// What the drawing library says.
        reason: String,
    },
    /// The file could not be written.
    #[error("{}: cannot write: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

fn ending(extension: &Option<String>) -> String {
    extension.as_ref().map_or_else(|| "no extension".to_owned(), |extension| format!(".{extension}"))
}

/// The episodes of one run, in the order in which they ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    /// Its name in the legend.
    pub label: String,
    /// Environment steps at the episode's end, and the episode's return.
    pub episodes: Vec<(f64, f64)>,
    /// The line that is drawn, from [`smooth`].
    pub smoothed: Vec<(f64, f64)>,
}

impl Curve {
    /// A curve through the trailing means of `episodes`.
    pub fn new(label: impl Into<String>, episodes: Vec<(f64, f64)>) -> Self {
        Self { label: label.into(), smoothed: smooth(&episodes), episodes }
    }
}

/// What a figure shows.
#[derive(Clone, Debug, PartialEq)]
pub struct LearningCurves<'a> {
    /// The line above it, such as `CartPole-v1, ppo, seed 0`.
    pub title: String,
    /// One or two are drawn with their episodes. Twelve can be told apart.
    pub curves: &'a [Curve],
    /// The return at which the environment counts as solved: a dashed line.
    pub threshold: Option<f64>,
}

/// The mean of each episode's return and of up to 99 before it. A run of more than 1000 episodes is thinned to that many points or
/// fewer: the first episode, and the last one in each of equally long stretches of steps.
///
/// ```
/// assert_eq!(gradus::figure::smooth(&[(10.0, 1.0), (20.0, 3.0), (30.0, 8.0)]), [(10.0, 1.0), (20.0, 2.0), (30.0, 4.0)]);
/// ```
pub fn smooth(episodes: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mean = |last: usize| {
        let window = &episodes[(last + 1).saturating_sub(WINDOW)..=last];
        (episodes[last].0, window.iter().map(|(_, value)| value).sum::<f64>() / window.len() as f64)
    };
    let ([(first, _), ..], [.., (end, _)]) = (episodes, episodes) else { return Vec::new() };
    let stretch = |episode: usize| ((episodes[episode].0 - first) / (end - first) * (DRAWN_POINTS - 2) as f64) as usize;
    let all = episodes.len() <= DRAWN_POINTS;
    let drawn = |episode: &usize| match *episode {
        0 => true,
        last if last == episodes.len() - 1 => true,
        inner => all || stretch(inner) != stretch(inner + 1),
    };
    (0..episodes.len()).filter(drawn).map(mean).collect()
}

/// Writes the figure to `path`, whose extension chooses the format. The file appears whole or not at all.
pub fn write(figure: &LearningCurves, path: &Path) -> Result<(), FigureError> {
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    let draw = match extension.as_deref() {
        Some("svg") => svg,
        Some("png") => png,
        _ => return Err(FigureError::Extension { path: path.into(), extension }),
    };
    check(figure, path)?;
    let bytes = draw(figure).map_err(|reason| FigureError::Draw { path: path.into(), reason })?;
    replace(path, &bytes).map_err(|source| FigureError::Write { path: path.into(), source })
}

fn check(figure: &LearningCurves, path: &Path) -> Result<(), FigureError> {
    // Differences between numbers of this size and sums of a hundred of them are still finite.
    let usable = |number: f64| number.abs() < 1e300;
    if let Some(threshold) = figure.threshold.filter(|threshold| !usable(*threshold)) {
        return Err(FigureError::Threshold { path: path.into(), threshold });
    }
    for curve in figure.curves {
        if let Some(&(step, value)) = curve.episodes.iter().chain(&curve.smoothed).find(|(step, value)| !usable(*step) || !usable(*value)) {
            return Err(FigureError::NotFinite { path: path.into(), curve: curve.label.clone(), step, value });
        }
    }
    Ok(())
}

fn svg(figure: &LearningCurves) -> Result<Vec<u8>, String> {
    let layout = Layout::new(figure);
    brush::svg(layout.size, |brush| layout.draw(figure, brush)).map(String::into_bytes)
}

fn png(figure: &LearningCurves) -> Result<Vec<u8>, String> {
    let layout = Layout::new(figure);
    let mut pixels = Pixels::new(layout.size);
    layout.draw(figure, &mut pixels)?;
    encode(layout.size, &pixels.bytes).map_err(|error| error.to_string())
}

fn encode([width, height]: [u32; 2], pixels: &[u8]) -> Result<Vec<u8>, png::EncodingError> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    writer.finish()?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
