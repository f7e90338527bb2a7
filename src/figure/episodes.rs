//! Contact sheets: moments of episodes side by side, one row per episode.

use gradus_drawing::fonts;
use gradus_drawing::{Frame, ink_colour};
use gradus_envs::{Ink, Picture, Shape};
use plotters::prelude::RGBColor;
use plotters::style::text_anchor::HPos;

use super::brush::Brush;
use super::frame::{Margins, Rect};
use super::style::{GRID, NOTE_EM, QUIET, SLACK, TEXT, TICK_EM};

/// Space between pictures.
const GAP: f64 = 10.0;
/// Space for the caption of a picture.
const CAPTION: f64 = 1.5 * NOTE_EM;
/// Smallest height of a row, which has two lines on its left.
const LEAST_ROW: f64 = 2.8 * TICK_EM;
/// Ratio of height to width of a picture, at least and at most.
const ASPECTS: [f64; 2] = [0.3, 1.0];
/// Smallest width of a line in pixels.
const THINNEST: f64 = 1.5;
const LABEL_LIMIT: f64 = 260.0;

/// Moments of one episode.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Episode {
    /// Name of the agent.
    pub label: String,
    /// A second line below the name, such as the return.
    pub result: String,
    /// The moments. Rows with fewer of them than others end earlier.
    pub frames: Vec<Frame>,
    /// The episode as text, for environments without pictures; shown if there are no frames.
    pub text: String,
}

/// Episodes, one per row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Episodes {
    /// The rows, from the top.
    pub rows: Vec<Episode>,
}

impl Episodes {
    fn columns(&self) -> usize {
        self.rows.iter().map(|row| row.frames.len()).max().unwrap_or(0)
    }

    /// Returns the width and height of a picture if `width` pixels are available for a row.
    fn picture(&self, width: f64) -> [f64; 2] {
        let columns = self.columns().max(1) as f64;
        let side = ((width - (columns - 1.0) * GAP) / columns).max(1.0);
        let aspect = |frame: &Frame| (frame.scene.y[1] - frame.scene.y[0]) / (frame.scene.x[1] - frame.scene.x[0]);
        let aspects = self.rows.iter().flat_map(|row| &row.frames).map(aspect).filter(|aspect| aspect.is_finite());
        [side, side * aspects.fold(0.0, f64::max).clamp(ASPECTS[0], ASPECTS[1])]
    }

    fn row_height(&self, width: f64) -> f64 {
        let pictures = if self.columns() == 0 { 0.0 } else { self.picture(width)[1] + CAPTION };
        pictures.max(LEAST_ROW) + GAP
    }

    pub(super) fn height(&self, width: f64) -> f64 {
        self.rows.len().max(1) as f64 * self.row_height(width)
    }

    pub(super) fn margins(&self) -> Margins {
        let lines = self.rows.iter().flat_map(|row| [&row.label, &row.result]);
        let widest = lines.map(|line| fonts::width(line, TICK_EM)).fold(0.0, f64::max);
        Margins { left: (SLACK * widest).min(LABEL_LIMIT) + 20.0, right: 16.0, below: 0.0 }
    }

    pub(super) fn draw(&self, rect: Rect, brush: &mut impl Brush) -> Result<(), String> {
        let ([width, height], row_height) = (self.picture(rect.width()), self.row_height(rect.width()));
        for (number, row) in self.rows.iter().enumerate() {
            let top = rect.top + number as f64 * row_height;
            let label = |line: &str| fonts::shorten(line, TICK_EM, LABEL_LIMIT / SLACK);
            brush.write(label(&row.label), TICK_EM, [rect.left - 20.0, top + TICK_EM], HPos::Right, TEXT)?;
            brush.write(label(&row.result), NOTE_EM, [rect.left - 20.0, top + 2.2 * TICK_EM], HPos::Right, QUIET)?;
            if row.frames.is_empty() {
                let text = fonts::shorten(&row.text, TICK_EM, rect.width() / SLACK);
                brush.write(text, TICK_EM, [rect.left, top + TICK_EM], HPos::Left, TEXT)?;
            }
            for (number, frame) in row.frames.iter().enumerate() {
                let left = rect.left + number as f64 * (width + GAP);
                let place = Rect { left, top, right: left + width, bottom: top + height };
                picture(frame, place, brush)?;
                let caption = [(place.left + place.right) / 2.0, place.bottom + 1.1 * NOTE_EM];
                brush.write(format!("step {}", frame.step), NOTE_EM, caption, HPos::Center, QUIET)?;
            }
        }
        Ok(())
    }
}

/// Draws a scene into `place`, as large as fits, and what lies outside its rectangle cut off.
fn picture(frame: &Frame, place: Rect, brush: &mut impl Brush) -> Result<(), String> {
    let scene = &frame.scene;
    let (across, up) = (scene.x[1] - scene.x[0], scene.y[1] - scene.y[0]);
    let scale = (place.width() / across).min(place.height() / up);
    let [x, y] = place.middle();
    let at = |[a, b]: [f64; 2]| [x + scale * (a - (scene.x[0] + scene.x[1]) / 2.0), y - scale * (b - (scene.y[0] + scene.y[1]) / 2.0)];
    if across > 0.0 && up > 0.0 && scale > 0.0 && scale.is_finite() {
        for shape in &scene.shapes {
            let (corners, ink) = match shape {
                Shape::Line { from, to, width, ink } => {
                    let width = (scale * width).max(THINNEST);
                    // the round ends would reach over the edge
                    let inside = |rect: Rect, by: f64| Rect {
                        left: rect.left + by,
                        top: rect.top + by,
                        right: rect.right - by,
                        bottom: rect.bottom - by,
                    };
                    let part = clip(&[at(*from), at(*to)], inside(place, width / 2.0));
                    if let [from, to, ..] = part[..] {
                        brush.line(&[from, to], width, colour(*ink))?;
                    }
                    continue;
                }
                Shape::Polygon { corners, ink } => (corners.iter().map(|corner| at(*corner)).collect(), *ink),
                Shape::Disc { centre, radius, ink } => (circle(at(*centre), scale * radius), *ink),
                Shape::Picture(picture) => {
                    pixels(picture, [scene.x[0], scene.y[1]], &at, brush)?;
                    continue;
                }
            };
            let corners = clip(&corners, place);
            if corners.len() > 2 {
                brush.area(&corners, colour(ink), 1.0)?;
            }
        }
    }
    let Rect { left, top, right, bottom } = place;
    brush.line(&[[left, top], [right, top], [right, bottom], [left, bottom], [left, top]], 1.0, GRID)
}

/// Pixels in a row of a picture in a figure.
const PICTURE_WIDTH: usize = 64;

/// Draws a picture whose upper left corner is at `corner`, as rectangles of one colour.
fn pixels(picture: &Picture, corner: [f64; 2], at: &impl Fn([f64; 2]) -> [f64; 2], brush: &mut impl Brush) -> Result<(), String> {
    let small = picture.clone().shrunk(PICTURE_WIDTH);
    let size = picture.width as f64 / small.width.max(1) as f64;
    for row in 0..small.height {
        let mut first = 0;
        while first < small.width {
            let own = small.colour(first, row);
            let n = (first..small.width).take_while(|column| small.colour(*column, row) == own).count();
            let [left, right] = [first, first + n].map(|column| corner[0] + size * column as f64);
            let [top, bottom] = [row, row + 1].map(|row| corner[1] - size * row as f64);
            brush.area(&[[left, top], [right, top], [right, bottom], [left, bottom]].map(at), RGBColor(own[0], own[1], own[2]), 1.0)?;
            first += n;
        }
    }
    Ok(())
}

fn colour(ink: Ink) -> RGBColor {
    let [red, green, blue] = ink_colour(ink);
    RGBColor(red, green, blue)
}

/// Returns the corners of a polygon that is a circle to the eye.
fn circle([x, y]: [f64; 2], radius: f64) -> Vec<[f64; 2]> {
    const CORNERS: usize = 32;
    let corner = |number: usize| (number as f64 * std::f64::consts::TAU / CORNERS as f64).sin_cos();
    (0..CORNERS).map(corner).map(|(sin, cos)| [x + radius * cos, y + radius * sin]).collect()
}

/// Returns the part of a convex polygon, or of a line of two points, that lies in `rect` (Sutherland and Hodgman, 1974). Returns nothing if a
/// point is not finite.
fn clip(corners: &[[f64; 2]], rect: Rect) -> Vec<[f64; 2]> {
    if !corners.iter().flatten().all(|place| place.is_finite()) {
        return Vec::new();
    }
    let mut corners = corners.to_vec();
    // each edge: the axis, its place, and the sign that makes larger numbers lie inside
    for (axis, edge, sign) in [(0, rect.left, 1.0), (0, rect.right, -1.0), (1, rect.top, 1.0), (1, rect.bottom, -1.0)] {
        let depth = |point: &[f64; 2]| sign * (point[axis] - edge);
        let mut kept = Vec::new();
        for (a, b) in corners.iter().zip(corners.iter().cycle().skip(1)) {
            let (from, to) = (depth(a), depth(b));
            if from >= 0.0 {
                kept.push(*a);
            }
            if (from < 0.0) != (to < 0.0) {
                let part = from / (from - to);
                kept.push([a[0] + part * (b[0] - a[0]), a[1] + part * (b[1] - a[1])]);
            }
        }
        kept.dedup();
        corners = kept;
    }
    corners
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_cut_at_the_edges() {
        let rect = Rect { left: 0.0, top: 0.0, right: 10.0, bottom: 10.0 };
        assert_eq!(clip(&[[2.0, 2.0], [5.0, 2.0], [5.0, 4.0]], rect), [[2.0, 2.0], [5.0, 2.0], [5.0, 4.0]], "inside");
        assert!(clip(&[[12.0, 2.0], [15.0, 2.0], [15.0, 4.0]], rect).is_empty(), "outside");
        assert!(clip(&[[f64::NAN, 2.0], [15.0, 2.0], [15.0, 4.0]], rect).is_empty());
        // half of a square, and a line with one end outside
        let square = clip(&[[5.0, 5.0], [15.0, 5.0], [15.0, 8.0], [5.0, 8.0]], rect);
        assert_eq!(square, [[5.0, 5.0], [10.0, 5.0], [10.0, 8.0], [5.0, 8.0]]);
        let line = clip(&[[5.0, 5.0], [15.0, 15.0]], rect);
        assert_eq!(line[..2], [[5.0, 5.0], [10.0, 10.0]]);
    }
}
