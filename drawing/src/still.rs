//! A scene as pixels.

use gradus_envs::{Scene, Shape};

use crate::ink_colour;
use crate::raster::{View, coverage};

/// Width of a picture. Its height follows from the scene's aspect ratio, within `HEIGHTS`.
const WIDTH: usize = 480;
const HEIGHTS: [f64; 2] = [60.0, 480.0];
/// Minimum width of a line in pixels.
const THINNEST: f64 = 1.5;

/// Returns a scene as red, green and blue of each pixel, row by row, and the numbers of rows and columns. Two scenes whose rectangles have the same aspect ratio have the same
/// numbers. Returns `None` if the rectangle is empty or not finite.
///
/// ```
/// use gradus_drawing::still;
/// use gradus_envs::{Ink, Scene, Shape};
///
/// let shapes = vec![Shape::Disc { centre: [1.0, 1.0], radius: 1.0, ink: Ink::Body }];
/// let (pixels, [rows, columns]) = still(&Scene { x: [0.0, 2.0], y: [0.0, 2.0], shapes }).unwrap();
/// assert_eq!((pixels.len(), rows, columns), (3 * 480 * 480, 480, 480));
/// assert_eq!(pixels[..3], [255, 255, 255]);
/// ```
pub fn still(scene: &Scene) -> Option<(Vec<u8>, [usize; 2])> {
    View::fit(scene, [WIDTH as f64, WIDTH as f64])?;
    let aspect = (scene.y[1] - scene.y[0]) / (scene.x[1] - scene.x[0]);
    let size = [WIDTH, (WIDTH as f64 * aspect).clamp(HEIGHTS[0], HEIGHTS[1]).round() as usize];
    let view = View::fit(scene, size.map(|n| n as f64))?;
    let mut pixels = vec![255; 3 * size[0] * size[1]];
    for shape in &scene.shapes {
        let (Shape::Line { ink, .. } | Shape::Polygon { ink, .. } | Shape::Disc { ink, .. }) = shape else {
            if let Shape::Picture(picture) = shape {
                view.visit_picture(picture, size, |x, y, [column, row]| {
                    pixels[3 * (y * size[0] + x)..][..3].copy_from_slice(&picture.colour(column, row));
                });
            }
            continue;
        };
        let colour = ink_colour(*ink);
        view.outline(shape, THINNEST).visit(size, |x, y, distance| {
            let part = coverage(distance);
            for (pixel, ink) in pixels[3 * (y * size[0] + x)..][..3].iter_mut().zip(colour) {
                *pixel = (f64::from(*pixel) + part * (f64::from(ink) - f64::from(*pixel))).round() as u8;
            }
        });
    }
    Some((pixels, [size[1], size[0]]))
}
