//! Drawing a scene as text with Unicode braille characters, each two dots wide and four dots high.

use gradus_envs::{Picture, Scene, Shape};

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
    let (width, height) = (2 * columns, 4 * rows);
    let mut cells = vec![BLANK; columns * rows];
    if let Some(view) = View::fit(scene, [width as f64, height as f64]) {
        for shape in &scene.shapes {
            if let Shape::Picture(picture) = shape {
                let (ground, mut dots) = (most_frequent(picture), vec![[0_u32; 2]; width * height]);
                // each dot has the share of its pixels that differ from the ground; small pictures have less than a pixel for a dot
                let n = (1.0 / view.scale).ceil().max(1.0) as usize;
                view.visit_picture(picture, [width, height], |x, y, [column, row]| {
                    for (dx, dy) in (0..n).flat_map(|dy| (0..n).map(move |dx| (dx, dy))) {
                        let pixel = picture.colour((column + dx).min(picture.width - 1), (row + dy).min(picture.height - 1));
                        let differs = (0..3).map(|i| u32::from(pixel[i].abs_diff(ground[i]))).sum::<u32>() > DIFFERENCE;
                        let dot = &mut dots[y * width + x];
                        *dot = [dot[0] + u32::from(differs), dot[1] + 1];
                    }
                });
                for (i, _) in dots.iter().enumerate().filter(|(_, [differ, all])| *all > 0 && 3 * differ >= *all) {
                    let (x, y) = (i % width, i / width);
                    cells[y / 4 * columns + x / 2] |= BITS[y % 4][x % 2];
                }
                continue;
            }
            view.outline(shape, 1.0).visit([width, height], |x, y, distance| {
                if distance <= 0.0 {
                    cells[y / 4 * columns + x / 2] |= BITS[y % 4][x % 2];
                }
            });
        }
    }
    let text = |row: &[u32]| row.iter().filter_map(|cell| char::from_u32(*cell)).collect();
    (0..rows).map(|row| text(&cells[row * columns..(row + 1) * columns])).collect()
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

    #[test]
    fn filled_shapes_are_solid_and_the_rest_is_blank() {
        let corners = vec![[0.0, 4.0], [4.0, 4.0], [4.0, 8.0], [0.0, 8.0]];
        assert_eq!(draw(&scene(vec![Shape::Polygon { corners, ink: Ink::Body }]), 4, 2), ["⣿⣿⠀⠀", "⠀⠀⠀⠀"]);
        assert_eq!(draw(&Scene { x: [0.0, 0.0], ..scene(vec![line([0.0, 0.0], [8.0, 8.0])]) }, 2, 1), ["⠀⠀"]);
        assert!(draw(&scene(Vec::new()), 4, 0).is_empty());
    }
}
