//! Sizes and colours, the same in every figure. All sizes are in pixels of a page that is 1280 wide.

use plotters::prelude::RGBColor;

pub(super) const WIDTH: f64 = 1280.0;
pub(super) const HEIGHT: f64 = 800.0;
pub(super) const MARGIN: f64 = 28.0;

pub(super) const TITLE_EM: f64 = 27.0;
pub(super) const PANEL_EM: f64 = 23.0;
pub(super) const AXIS_EM: f64 = 22.0;
pub(super) const TICK_EM: f64 = 20.0;
pub(super) const LEGEND_EM: f64 = 20.0;
pub(super) const NOTE_EM: f64 = 18.0;
pub(super) const LEGEND_ROW: f64 = 32.0;
pub(super) const SAMPLE: f64 = 54.0;

pub(super) const TEXT: RGBColor = RGBColor(45, 45, 45);
pub(super) const QUIET: RGBColor = RGBColor(95, 95, 95);
pub(super) const FRAME: RGBColor = RGBColor(120, 120, 120);
pub(super) const GRID: RGBColor = RGBColor(228, 228, 228);
pub(super) const WHITE: RGBColor = RGBColor(255, 255, 255);

/// The palette of Okabe and Ito (2008), which the colour-blind can tell apart, without the yellow that is lost on white.
const PALETTE: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
];

/// Strokes and gaps in turn; the ends are round and add their width. For prints without colour.
const DASHES: [&[f64]; 6] = [&[], &[11.0, 9.0], &[1.0, 7.0], &[14.0, 8.0, 1.0, 8.0], &[24.0, 10.0], &[14.0, 8.0, 1.0, 8.0, 1.0, 8.0]];

/// How one series looks, everywhere in a figure: no two of the first 42 look the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Look {
    pub(super) colour: RGBColor,
    pub(super) dashes: &'static [f64],
}

pub(super) fn look(number: usize) -> Look {
    Look { colour: PALETTE[number % PALETTE.len()], dashes: DASHES[number % DASHES.len()] }
}

/// A thin broken line for thresholds.
pub(super) const THRESHOLD: Look = Look { colour: FRAME, dashes: &[10.0, 8.0] };

/// Viewers without Open Sans may use a font that is this much wider.
pub(super) const SLACK: f64 = 1.1;

/// The middle of a pixel, where a thin line is drawn sharply.
pub(super) fn crisp(place: f64) -> f64 {
    place.floor() + 0.5
}
