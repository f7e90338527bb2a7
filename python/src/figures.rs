//! Figures: lines and intervals, with the look of all figures of Gradus.

use std::path::PathBuf;

use gradus::figure::{Chart, Figure as Page, Interval, Intervals, Lines, Panel, Scale, Series, Threshold, write};
use pyo3::prelude::*;

use crate::failed;

/// A figure of one chart.
#[pyclass(frozen, module = "gradus_rl._core")]
pub struct Figure {
    page: Page,
}

impl Figure {
    fn of(title: String, note: String, chart: Chart) -> Self {
        Self { page: Page { title, note, columns: 1, panels: vec![Panel { title: String::new(), chart }] } }
    }
}

/// A line: its name, points (x, y), band (x, low, high) and dots (x, y).
type Line = (String, Vec<(f64, f64)>, Vec<(f64, f64, f64)>, Vec<(f64, f64)>);

#[pymethods]
impl Figure {
    /// Lines with common axes. The scale of the x axis is `linear`, `log2` or `log10`; `threshold` is a value and its label.
    #[staticmethod]
    #[pyo3(signature = (title, note, x_label, y_label, series, scale, threshold))]
    fn lines(
        title: String,
        note: String,
        x_label: String,
        y_label: String,
        series: Vec<Line>,
        scale: &str,
        threshold: Option<(f64, String)>,
    ) -> PyResult<Self> {
        let x_scale = match scale {
            "linear" => Scale::Linear,
            "log2" => Scale::Log2,
            "log10" => Scale::Log10,
            other => return Err(failed(format!("scale: expected linear, log2 or log10, got {other}"))),
        };
        let series = series.into_iter().map(|(label, points, band, dots)| Series { band, dots, ..Series::new(label, points) }).collect();
        let threshold = threshold.map(|(value, label)| Threshold { value, label });
        Ok(Self::of(title, note, Chart::Lines(Lines { x_label, y_label, x_scale, series, threshold, ..Lines::default() })))
    }

    /// Points with their intervals, a row each: label, point, low, high, and the numbers that they were estimated from.
    #[staticmethod]
    #[pyo3(signature = (title, note, x_label, rows, reference))]
    fn intervals(
        title: String,
        note: String,
        x_label: String,
        rows: Vec<(String, f64, f64, f64, Vec<f64>)>,
        reference: Option<f64>,
    ) -> Self {
        let rows = rows.into_iter().map(|(label, point, low, high, dots)| Interval { label, point, low, high, dots }).collect();
        Self::of(title, note, Chart::Intervals(Intervals { x_label, rows, reference, ..Intervals::default() }))
    }

    /// The text of the SVG.
    fn svg(&self) -> PyResult<String> {
        self.page.svg(std::path::Path::new("figure.svg")).map_err(failed)
    }

    /// Writes a file, whose ending (.svg, .png or .pdf) says its format.
    fn save(&self, path: PathBuf) -> PyResult<()> {
        write(&self.page, &path).map_err(failed)
    }

    /// How notebooks show the figure.
    #[pyo3(name = "_repr_svg_")]
    fn repr_svg(&self) -> PyResult<String> {
        self.svg()
    }
}

/// Adds this file's class.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Figure>()
}
