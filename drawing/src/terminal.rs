//! Drawing a scene as text with Unicode braille characters, each two dots wide and four dots high.

use std::fmt::Write;

use gradus_envs::{Ink, Picture, Scene, Shape};

use crate::raster::View;

/// The braille character without dots.
const BLANK: u32 = 0x2800;

/// The bit of each dot of a character, by row and column.
const BITS: [[u32; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];

/// How much the colours of two pixels must differ, summed over red, green and blue, to be told apart.
const DIFFERENCE: u32 = 60;

/// The most frequent colour of a picture, up to small differences.
fn most_frequent(picture: &Picture) -> [u8; 3] {
    let mut counts = std::collections::HashMap::new();
    for colour in picture.rgb.chunks_exact(3) {
        *counts.entry([colour[0] >> 3, colour[1] >> 3, colour[2] >> 3]).or_insert(0) += 1;
    }
    // of equally frequent ones the darkest
    let most = counts.into_iter().max_by_key(|(colour, count): &([u8; 3], u32)| (*count, std::cmp::Reverse(*colour)));
    most.map_or([0; 3], |(colour, _)| colour.map(|channel| channel << 3))
}

/// Draws `scene` as `rows` lines of `columns` characters, as large as fits and centred. Dots have no colour; every shape is drawn in the
/// same way, and of a picture what differs from its most frequent colour. A scene whose rectangle is empty or not finite is blank.
///
/// ```
/// use gradus_drawing::terminal;
/// use gradus_envs::{Ink, Scene, Shape};
///
/// let shapes = vec![Shape::Line { from: [0.0, 0.0], to: [8.0, 4.0], width: 0.1, ink: Ink::Limb }];
/// let scene = Scene { x: [0.0, 8.0], y: [0.0, 4.0], shapes };
/// assert_eq!(terminal::draw(&scene, 4, 1), ["⣀⠤⠒⠉"]);
/// ```
pub fn draw(scene: &Scene, columns: usize, rows: usize) -> Vec<String> {
    let text = |row: &[Cell]| row.iter().filter_map(|cell| char::from_u32(cell.dots)).collect();
    cells(scene, columns, rows).chunks(columns.max(1)).take(rows).map(text).collect()
}

/// As [`draw`], with the escape sequences of colours: a character has that of the topmost shape in it, one of the terminal's own colours, or that of a picture's pixel.
pub fn draw_in_colour(scene: &Scene, columns: usize, rows: usize) -> Vec<String> {
    let line = |row: &[Cell]| {
        let (mut text, mut last) = (String::new(), None);
        for cell in row {
            if cell.dots != BLANK && cell.colour != last {
                text.push_str(&cell.colour.map_or_else(|| "\x1b[39m".into(), Colour::escape));
                last = cell.colour;
            }
            text.extend(char::from_u32(cell.dots));
        }
        if last.is_some() { text + "\x1b[39m" } else { text }
    };
    cells(scene, columns, rows).chunks(columns.max(1)).take(rows).map(line).collect()
}

#[derive(Clone, Copy, PartialEq)]
enum Colour {
    Of(Ink),
    Pixel([u8; 3]),
}

impl Colour {
    fn escape(self) -> String {
        match self {
            Self::Of(Ink::Ground) => "\x1b[90m".into(),
            Self::Of(Ink::Body) => "\x1b[36m".into(),
            Self::Of(Ink::Limb) => "\x1b[33m".into(),
            Self::Of(Ink::Joint) => "\x1b[35m".into(),
            Self::Of(Ink::Goal) => "\x1b[32m".into(),
            Self::Pixel([red, green, blue]) => {
                let mut text = String::new();
                write!(text, "\x1b[38;2;{red};{green};{blue}m").expect("a string");
                text
            }
        }
    }
}

/// A character: its dots, and the colour of the last shape that lit one.
#[derive(Clone, Copy)]
struct Cell {
    dots: u32,
    colour: Option<Colour>,
}

impl Cell {
    fn light(&mut self, x: usize, y: usize, colour: Colour) {
        self.dots |= BITS[y % 4][x % 2];
        self.colour = Some(colour);
    }
}

fn ink_of(shape: &Shape) -> Ink {
    match shape {
        Shape::Line { ink, .. } | Shape::Polygon { ink, .. } | Shape::Disc { ink, .. } => *ink,
        Shape::Picture(_) => Ink::Ground,
    }
}

fn cells(scene: &Scene, columns: usize, rows: usize) -> Vec<Cell> {
    let (width, height) = (2 * columns, 4 * rows);
    let mut cells = vec![Cell { dots: BLANK, colour: None }; columns * rows];
    if let Some(view) = View::fit(scene, [width as f64, height as f64]) {
        for shape in &scene.shapes {
            if let Shape::Picture(picture) = shape {
                let (ground, mut dots) = (most_frequent(picture), vec![([0_u32; 2], [0; 3]); width * height]);
                // each dot has the share of its pixels that differ from the ground; small pictures have less than a pixel for a dot
                let n = (1.0 / view.scale).ceil().max(1.0) as usize;
                view.visit_picture(picture, [width, height], |x, y, [column, row]| {
                    for (dx, dy) in (0..n).flat_map(|dy| (0..n).map(move |dx| (dx, dy))) {
                        let pixel = picture.colour((column + dx).min(picture.width - 1), (row + dy).min(picture.height - 1));
                        let differs = (0..3).map(|i| u32::from(pixel[i].abs_diff(ground[i]))).sum::<u32>() > DIFFERENCE;
                        let (counts, colour) = &mut dots[y * width + x];
                        *counts = [counts[0] + u32::from(differs), counts[1] + 1];
                        if differs {
                            *colour = pixel;
                        }
                    }
                });
                for (i, (_, colour)) in dots.iter().enumerate().filter(|(_, ([differ, all], _))| *all > 0 && 3 * differ >= *all) {
                    let (x, y) = (i % width, i / width);
                    cells[y / 4 * columns + x / 2].light(x, y, Colour::Pixel(*colour));
                }
                continue;
            }
            view.outline(shape, 1.0).visit([width, height], |x, y, distance| {
                if distance <= 0.0 {
                    cells[y / 4 * columns + x / 2].light(x, y, Colour::Of(ink_of(shape)));
                }
            });
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_envs::Ink;

    fn scene(shapes: Vec<Shape>) -> Scene {
        Scene { x: [0.0, 8.0], y: [0.0, 8.0], shapes }
    }

    fn line(from: [f64; 2], to: [f64; 2]) -> Shape {
        Shape::Line { from, to, width: 0.1, ink: Ink::Limb }
    }

    #[test]
    fn lines_light_the_dots_under_them() {
        // 8 x 8 dots of one unit; the lines go through the centres of the lowest row and of the third column
        let picture = scene(vec![line([0.0, 0.5], [8.0, 0.5]), line([2.5, 0.0], [2.5, 8.0])]);
        assert_eq!(draw(&picture, 4, 2), ["⠀⡇⠀⠀", "⣀⣇⣀⣀"]);
    }

    /// The agent in a hole is seen by its colour.
    #[test]
    fn the_topmost_shape_has_the_colour() {
        let square = |low: f64, high: f64, ink| Shape::Polygon { corners: vec![[low, low], [high, low], [high, high], [low, high]], ink };
        let picture = scene(vec![square(0.0, 8.0, Ink::Ground), square(0.0, 4.0, Ink::Body)]);
        assert_eq!(draw_in_colour(&picture, 4, 2), ["\x1b[90m⣿⣿⣿⣿\x1b[39m", "\x1b[36m⣿⣿\x1b[90m⣿⣿\x1b[39m"]);
        assert_eq!(draw(&picture, 4, 2), ["⣿⣿⣿⣿", "⣿⣿⣿⣿"]);
    }

    #[test]
    fn filled_shapes_are_solid_and_the_rest_is_blank() {
        let corners = vec![[0.0, 4.0], [4.0, 4.0], [4.0, 8.0], [0.0, 8.0]];
        assert_eq!(draw(&scene(vec![Shape::Polygon { corners, ink: Ink::Body }]), 4, 2), ["⣿⣿⠀⠀", "⠀⠀⠀⠀"]);
        assert_eq!(draw(&Scene { x: [0.0, 0.0], ..scene(vec![line([0.0, 0.0], [8.0, 8.0])]) }, 2, 1), ["⠀⠀"]);
        assert!(draw(&scene(Vec::new()), 4, 0).is_empty());
    }
}
