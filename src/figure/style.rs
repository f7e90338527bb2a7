//! Sizes and colours, the same in every figure. All sizes are in pixels; most pages are 1280 wide.

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

/// The palette of Okabe and Ito (2008), which colour-blind readers can tell apart. Its yellow is left out, because it is hard to see on
/// white. Five more colours, for figures of many series, differ clearly from these colours and from each other.
const PALETTE: [RGBColor; 12] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
    RGBColor(128, 20, 60),
    RGBColor(125, 125, 20),
    RGBColor(90, 50, 170),
    RGBColor(140, 140, 140),
    RGBColor(140, 85, 45),
];

/// Alternating lengths of dashes and gaps, for prints without colour. The round ends of a dash add to its length.
const DASHES: [&[f64]; 6] = [&[], &[11.0, 9.0], &[1.0, 7.0], &[14.0, 8.0, 1.0, 8.0], &[24.0, 10.0], &[14.0, 8.0, 1.0, 8.0, 1.0, 8.0]];

/// The look of a series everywhere in a figure. The first 12 looks differ in colour, and no two of the first 72 are the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Look {
    pub(super) colour: RGBColor,
    pub(super) dashes: &'static [f64],
}

pub(super) fn look(number: usize) -> Look {
    let colours = PALETTE.len();
    Look { colour: PALETTE[number % colours], dashes: DASHES[(number + number / colours) % DASHES.len()] }
}

/// Returns the number of the style with colour `colour`, 0 to 11, and a solid line, for [`Series::style`](super::Series::style).
pub fn solid(colour: usize) -> usize {
    dashed(colour, 0)
}

/// Returns the number of the style with colour `colour`, 0 to 11, and dashes `dashes`: 0 (none) to 5.
pub fn dashed(colour: usize, dashes: usize) -> usize {
    // colours repeat every 12 numbers, each time with the next dashes
    colour + PALETTE.len() * ((dashes + DASHES.len() - colour % DASHES.len()) % DASHES.len())
}

/// The look of thresholds: a dashed line.
pub(super) const THRESHOLD: Look = Look { colour: FRAME, dashes: &[10.0, 8.0] };

/// A viewer without Open Sans may use a font that is wider by this factor.
pub(super) const SLACK: f64 = 1.1;

/// Returns the centre of a pixel, where a thin line is sharp.
pub(super) fn crisp(place: f64) -> f64 {
    place.floor() + 0.5
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CIELAB of an sRGB colour under D65 (CIE 15; IEC 61966-2-1).
    fn lab(RGBColor(r, g, b): RGBColor) -> [f64; 3] {
        let linear = |c: u8| {
            let c = f64::from(c) / 255.0;
            if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
        };
        let [r, g, b] = [r, g, b].map(linear);
        let xyz = [
            (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505,
            0.2126 * r + 0.7152 * g + 0.0722 * b,
            (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089,
        ];
        let [x, y, z] = xyz.map(|t| if t > 0.008856 { t.cbrt() } else { 7.787 * t + 16.0 / 116.0 });
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    /// A difference of 2.3 is just noticeable side by side (Mahy et al., 1994); thin lines need about ten times that.
    #[test]
    fn twelve_series_have_twelve_colours() {
        let distance = |a: Look, b: Look| lab(a.colour).iter().zip(lab(b.colour)).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
        for a in 0..12 {
            for b in 0..a {
                assert!(distance(look(a), look(b)) > 23.0, "{a} and {b}: {}", distance(look(a), look(b)));
            }
            let white = Look { colour: WHITE, dashes: &[] };
            assert!(distance(look(a), white) > 40.0, "{a} on white");
        }
        assert!((0..12).all(|colour| look(solid(colour)) == Look { colour: PALETTE[colour], dashes: &[] }));
        let all: Vec<Look> = (0..72).map(look).collect();
        assert!(all.iter().enumerate().all(|(number, look)| !all[..number].contains(look)));
    }
}
