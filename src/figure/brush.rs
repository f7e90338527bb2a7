//! The drawing backends: SVG by plotters, and pixels by our own rasteriser; PDF is in `pdf.rs`. plotters' bitmap backend is not used because it turns lines
//! with narrow corners into polygons with spikes and holes.

use std::collections::BTreeSet;

use gradus_drawing::fonts;
use gradus_drawing::pixels::{Direction, Pixels};
use plotters::prelude::{Color, DrawingBackend, FontDesc, FontStyle, FontTransform, RGBColor, SVGBackend, TextStyle};
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::style::{Look, WHITE};

/// A line of text.
pub(super) struct Text {
    pub(super) text: String,
    pub(super) em: f64,
    /// Position of the anchor, on the baseline.
    pub(super) at: [f64; 2],
    pub(super) anchor: HPos,
    pub(super) colour: RGBColor,
    /// Whether the text is rotated to read from bottom to top.
    pub(super) upwards: bool,
}

/// A drawing backend. All positions are in pixels.
pub(super) trait Brush {
    /// Draws a line with round ends.
    fn line(&mut self, points: &[[f64; 2]], width: f64, colour: RGBColor) -> Result<(), String>;

    /// Fills a polygon that does not cross itself.
    fn area(&mut self, corners: &[[f64; 2]], colour: RGBColor, opacity: f64) -> Result<(), String>;

    fn dot(&mut self, centre: [f64; 2], radius: f64, colour: RGBColor, opacity: f64) -> Result<(), String>;

    fn text(&mut self, text: &Text) -> Result<(), String>;

    /// Draws a curve, or a dot if there is a single point.
    fn curve(&mut self, points: &[[f64; 2]], width: f64, look: Look) -> Result<(), String> {
        match points {
            [] => Ok(()),
            [point] => self.dot(*point, 1.5 * width, look.colour, 1.0),
            points if look.dashes.is_empty() => self.line(points, width, look.colour),
            points => dashes(points, look.dashes).iter().try_for_each(|dash| self.line(dash, width, look.colour)),
        }
    }

    /// Writes a horizontal line of text.
    fn write(&mut self, text: impl Into<String>, em: f64, at: [f64; 2], anchor: HPos, colour: RGBColor) -> Result<(), String>
    where
        Self: Sized,
    {
        self.text(&Text { text: text.into(), em, at, anchor, colour, upwards: false })
    }
}

/// plotters rounds positions to whole numbers, so an SVG is drawn this many times larger than it is shown.
const FINE: f64 = 4.0;

/// Returns an SVG of `size` pixels: a white page on which `draw` draws.
pub(super) fn svg(size: [u32; 2], draw: impl FnOnce(&mut SvgBrush) -> Result<(), String>) -> Result<String, String> {
    let large = size.map(|side| side * FINE as u32);
    let mut text = String::new();
    {
        let mut brush = SvgBrush { backend: SVGBackend::with_string(&mut text, (large[0], large[1])) };
        let corner = (large[0] as i32, large[1] as i32);
        brush.backend.draw_rect((0, 0), corner, &WHITE.filled(), true).map_err(|error| error.to_string())?;
        draw(&mut brush)?;
        brush.backend.present().map_err(|error| error.to_string())?;
    }
    // The view box keeps plotters' size; width and height are those of the figure.
    let shown = |[width, height]: [u32; 2]| format!("width=\"{width}\" height=\"{height}\"");
    let round = "stroke-linecap=\"round\" stroke-linejoin=\"round\" xmlns=";
    Ok(text.replacen(&shown(large), &shown(size), 1).replacen("xmlns=", round, 1))
}

pub(super) struct SvgBrush<'a> {
    backend: SVGBackend<'a>,
}

fn units([x, y]: [f64; 2]) -> (i32, i32) {
    ((x * FINE).round() as i32, (y * FINE).round() as i32)
}

impl Brush for SvgBrush<'_> {
    fn line(&mut self, points: &[[f64; 2]], width: f64, colour: RGBColor) -> Result<(), String> {
        let mut path: Vec<_> = points.iter().map(|point| units(*point)).collect();
        path.dedup();
        self.backend.draw_path(path, &colour.stroke_width((width * FINE).round() as u32)).map_err(|error| error.to_string())
    }

    fn area(&mut self, corners: &[[f64; 2]], colour: RGBColor, opacity: f64) -> Result<(), String> {
        let corners = corners.iter().map(|corner| units(*corner));
        self.backend.fill_polygon(corners, &colour.mix(opacity).filled()).map_err(|error| error.to_string())
    }

    fn dot(&mut self, centre: [f64; 2], radius: f64, colour: RGBColor, opacity: f64) -> Result<(), String> {
        let radius = (radius * FINE).round() as u32;
        self.backend.draw_circle(units(centre), radius, &colour.mix(opacity).filled(), true).map_err(|error| error.to_string())
    }

    fn text(&mut self, text: &Text) -> Result<(), String> {
        // plotters divides font sizes by 1.24 and centres the letter x, which is 0.535 em high, on the given position.
        let font = FontDesc::new(fonts::family(), 1.24 * text.em * FINE, FontStyle::Normal);
        let ([x, y], lift) = (text.at, 0.535 / 2.0 * text.em);
        let (font, place) = if text.upwards { (font.transform(FontTransform::Rotate270), [x - lift, y]) } else { (font, [x, y - lift]) };
        let style = TextStyle { pos: Pos::new(text.anchor, VPos::Center), ..TextStyle::from(font).color(&text.colour) };
        // XML has no control characters
        let plain: String = text.text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
        self.backend.draw_text(&plain, &style, units(place)).map_err(|error| error.to_string())
    }
}

impl Brush for Pixels {
    fn line(&mut self, points: &[[f64; 2]], width: f64, colour: RGBColor) -> Result<(), String> {
        self.stroke(points, width, rgb(colour));
        Ok(())
    }

    fn area(&mut self, corners: &[[f64; 2]], colour: RGBColor, opacity: f64) -> Result<(), String> {
        self.polygon(corners, rgb(colour), opacity);
        Ok(())
    }

    fn dot(&mut self, centre: [f64; 2], radius: f64, colour: RGBColor, opacity: f64) -> Result<(), String> {
        self.disc(centre, radius, rgb(colour), opacity);
        Ok(())
    }

    fn text(&mut self, text: &Text) -> Result<(), String> {
        let before = match text.anchor {
            HPos::Left => 0.0,
            HPos::Center => fonts::width(&text.text, text.em) / 2.0,
            HPos::Right => fonts::width(&text.text, text.em),
        };
        let direction = if text.upwards { Direction::Upwards } else { Direction::Right };
        self.letters(&text.text, text.em, text.at, before, direction, rgb(text.colour));
        Ok(())
    }
}

fn rgb(colour: RGBColor) -> [u8; 3] {
    [colour.0, colour.1, colour.2]
}

/// Cuts a line into dashes. `pattern` has the lengths of a dash, of the gap after it, of the next dash and so on; it is repeated.
fn dashes(points: &[[f64; 2]], pattern: &[f64]) -> Vec<Vec<[f64; 2]>> {
    let mut dashes = Vec::new();
    let mut dash: Vec<[f64; 2]> = points.first().copied().into_iter().collect();
    let (mut part, mut left) = (0, pattern[0]);
    for (a, b) in points.iter().zip(points.iter().skip(1)) {
        let length = (b[0] - a[0]).hypot(b[1] - a[1]);
        let mut done = 0.0;
        while length - done > left {
            done += left;
            let point = [a[0] + (b[0] - a[0]) * done / length, a[1] + (b[1] - a[1]) * done / length];
            dash.push(point);
            if part % 2 == 0 {
                dashes.push(std::mem::take(&mut dash));
            }
            part += 1;
            left = pattern[part % pattern.len()];
            dash = vec![point];
        }
        left -= length - done;
        dash.push(*b);
    }
    if part % 2 == 0 {
        dashes.push(dash);
    }
    dashes
}

/// Returns at most `most` of the points, evenly chosen. Of the points in one cell of 2 by 2 pixels only the first is kept.
pub(super) fn thin(points: impl Iterator<Item = [f64; 2]>, most: usize) -> Vec<[f64; 2]> {
    let mut cells = BTreeSet::new();
    let apart: Vec<_> = points.filter(|[x, y]| cells.insert(((x / 2.0).round() as i64, (y / 2.0).round() as i64))).collect();
    let kept = apart.len().min(most);
    (0..kept).map(|number| apart[number * apart.len() / kept]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dashes_have_the_given_lengths_around_a_corner() {
        // 12 pixels of dash, 7 of gap, 12 of dash, and 2 of the next gap; the corner lies 3 pixels into the second dash
        let cut = dashes(&[[0.0, 0.0], [22.0, 0.0], [22.0, 11.0]], &[12.0, 7.0]);
        assert_eq!(cut, [vec![[0.0, 0.0], [12.0, 0.0]], vec![[19.0, 0.0], [22.0, 0.0], [22.0, 9.0]]]);
        assert_eq!(dashes(&[[0.0, 0.0], [5.0, 0.0]], &[12.0, 7.0]), [vec![[0.0, 0.0], [5.0, 0.0]]]);
    }

    #[test]
    fn areas_have_their_geometric_size() {
        let covered = |corners: &[[f64; 2]]| {
            let mut pixels = Pixels::new([60, 40]);
            pixels.area(corners, RGBColor(0, 0, 0), 1.0).unwrap();
            pixels.bytes().chunks_exact(3).map(|pixel| 1.0 - f64::from(pixel[0]) / 255.0).sum::<f64>()
        };
        assert_eq!(covered(&[[10.0, 5.0], [30.0, 5.0], [30.0, 25.0], [10.0, 25.0]]), 400.0);
        let arrow = [[10.0, 5.0], [30.3, 15.5], [10.0, 26.0], [16.0, 15.5]];
        assert!((covered(&arrow) - (20.3 - 6.0) * 21.0 / 2.0).abs() < 1.0, "{}", covered(&arrow));
        let notched = [[10.0, 5.0], [20.0, 15.0], [30.0, 5.0], [20.0, 35.0]];
        assert!((covered(&notched) - 200.0).abs() < 1.0, "a row may leave the polygon and enter it again: {}", covered(&notched));
        assert_eq!(covered(&[[-50.0, -50.0], [100.0, -50.0], [100.0, 100.0], [-50.0, 100.0]]), 2400.0, "the whole page and no more");
        assert_eq!(covered(&[]), 0.0);
    }

    #[test]
    fn thinning_drops_coincident_points_and_limits_their_number() {
        let line = (0..1000).map(|number| [f64::from(number), 0.0]);
        assert_eq!(thin(line.clone(), 100).len(), 100);
        assert_eq!(thin(line.clone(), 5000).len(), 501, "one per two pixels");
        assert_eq!(thin(std::iter::repeat_n([3.0, 4.0], 50), 10), [[3.0, 4.0]]);
        assert_eq!(thin(line, 0).len(), 0);
    }
}
