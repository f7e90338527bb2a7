//! A picture of RGB pixels on which lines, polygons, discs and text are drawn with smooth edges.

use std::collections::BTreeMap;

use crate::fonts::Lettering;
use crate::raster::{Outline, coverage};

/// RGB pixels, row by row. Positions are in pixels from the upper left corner; y points downwards.
pub struct Pixels {
    size: [usize; 2],
    bytes: Vec<u8>,
}

/// The direction in which a text is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From left to right.
    Right,
    /// From bottom to top.
    Upwards,
}

impl Pixels {
    /// Returns a white page.
    pub fn new([width, height]: [u32; 2]) -> Self {
        Self { size: [width as usize, height as usize], bytes: vec![255; 3 * width as usize * height as usize] }
    }

    /// Returns red, green and blue of every pixel.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the picture as a PNG file.
    pub fn png(&self) -> Result<Vec<u8>, png::EncodingError> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, self.size[0] as u32, self.size[1] as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&self.bytes)?;
        writer.finish()?;
        Ok(bytes)
    }

    fn blend(&mut self, x: usize, y: usize, colour: [u8; 3], part: f64) {
        let first = 3 * (y * self.size[0] + x);
        for (pixel, ink) in self.bytes[first..first + 3].iter_mut().zip(colour) {
            *pixel = (f64::from(*pixel) + part * (f64::from(ink) - f64::from(*pixel))).round() as u8;
        }
    }

    /// Draws a line with round ends through `points`.
    pub fn stroke(&mut self, points: &[[f64; 2]], width: f64, colour: [u8; 3]) {
        // Pixels near a corner belong to two strokes: they are coloured once, by the larger coverage.
        let mut parts = BTreeMap::new();
        for (from, to) in points.iter().zip(points.iter().skip(1)) {
            Outline::Stroke { from: *from, to: *to, half: width / 2.0 }.visit(self.size, |x, y, distance| {
                if distance < 0.5 {
                    let part = parts.entry((y, x)).or_insert(0.0_f64);
                    *part = part.max(coverage(distance));
                }
            });
        }
        parts.into_iter().for_each(|((y, x), part)| self.blend(x, y, colour, part));
    }

    /// Fills a polygon whose edges do not cross.
    pub fn polygon(&mut self, corners: &[[f64; 2]], colour: [u8; 3], opacity: f64) {
        let rows = corners.iter().map(|corner| corner[1]);
        let (top, bottom) = (rows.clone().fold(f64::INFINITY, f64::min), rows.fold(f64::NEG_INFINITY, f64::max));
        let mut parts = vec![0.0; self.size[0]];
        // both casts saturate, so rows outside of the page are skipped
        for row in top.floor() as usize..self.size[1].min(bottom.ceil() as usize) {
            parts.fill(0.0);
            for line in 0..SUBROWS {
                add_spans(corners, row as f64 + (f64::from(line) + 0.5) / f64::from(SUBROWS), &mut parts);
            }
            for (column, part) in parts.iter().enumerate().filter(|(_, part)| **part > 0.0) {
                self.blend(column, row, colour, opacity * part / f64::from(SUBROWS));
            }
        }
    }

    /// Fills a circle.
    pub fn disc(&mut self, centre: [f64; 2], radius: f64, colour: [u8; 3], opacity: f64) {
        let size = self.size;
        Outline::Disc { centre, radius }.visit(size, |x, y, distance| self.blend(x, y, colour, opacity * coverage(distance)));
    }

    /// Draws letters whose em is `em` pixels. The first `before` pixels of the text are before `at`, which is on the baseline.
    pub fn letters(&mut self, text: &str, em: f64, at: [f64; 2], before: f64, direction: Direction, colour: [u8; 3]) {
        let [column, row] = at.map(|place| place.round() as i32);
        Lettering::new(em).draw(text, [-before, 0.0], |x, y, part| {
            let (x, y) = match direction {
                Direction::Right => (column + x, row + y),
                Direction::Upwards => (column + y, row - x),
            };
            if let (Ok(x), Ok(y)) = (usize::try_from(x), usize::try_from(y))
                && x < self.size[0]
                && y < self.size[1]
            {
                self.blend(x, y, colour, part);
            }
        });
    }
}

/// Number of horizontal lines per row of pixels. The coverage of a polygon is measured along these lines.
const SUBROWS: u32 = 4;

/// Adds to each pixel the fraction of it that the polygon covers along the horizontal line at `y`.
fn add_spans(corners: &[[f64; 2]], y: f64, parts: &mut [f64]) {
    let edges = corners.iter().zip(corners.iter().cycle().skip(1));
    let crossing = edges.filter(|(a, b)| (a[1] <= y) != (b[1] <= y)).map(|(a, b)| a[0] + (b[0] - a[0]) * (y - a[1]) / (b[1] - a[1]));
    let mut places: Vec<f64> = crossing.map(|x| x.clamp(0.0, parts.len() as f64)).collect();
    places.sort_by(f64::total_cmp);
    for span in places.chunks_exact(2) {
        let (from, to) = (span[0], span[1]);
        let columns = from as usize..parts.len().min(to.ceil() as usize);
        for column in columns {
            parts[column] += to.min(column as f64 + 1.0) - from.max(column as f64);
        }
    }
}
