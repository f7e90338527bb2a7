//! Pictures of environments as plain data, for the programs that draw them.

use std::sync::Arc;

/// A colour by its role. The program that draws the scene chooses the actual colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// The ground, a track, an axis.
    Ground,
    /// The body that the agent moves.
    Body,
    /// The part that is balanced or swung.
    Limb,
    /// A joint or a small mark.
    Joint,
    /// A goal or a limit.
    Goal,
}

/// One shape, in the scene's coordinates.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// A straight line with round ends.
    Line {
        /// Start point.
        from: [f64; 2],
        /// End point.
        to: [f64; 2],
        /// Its width, in the scene's unit.
        width: f64,
        /// Its colour.
        ink: Ink,
    },
    /// A filled convex polygon.
    Polygon {
        /// The corners, in order.
        corners: Vec<[f64; 2]>,
        /// Its colour.
        ink: Ink,
    },
    /// A filled circle.
    Disc {
        /// Its centre.
        centre: [f64; 2],
        /// Its radius, in the scene's unit.
        radius: f64,
        /// Its colour.
        ink: Ink,
    },
    /// A picture of pixels, which fills the scene's rectangle.
    Picture(Arc<Picture>),
}

/// A picture of pixels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Pixels in a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Red, green and blue of each pixel, row by row from the top.
    pub rgb: Vec<u8>,
}

impl Picture {
    /// Returns the colour of a pixel.
    ///
    /// # Panics
    /// If the pixel is outside of the picture.
    pub fn colour(&self, column: usize, row: usize) -> [u8; 3] {
        let at = 3 * (row * self.width + column);
        [self.rgb[at], self.rgb[at + 1], self.rgb[at + 2]]
    }

    /// Returns the picture at most `width` pixels wide, each of which is the mean of the pixels in its place.
    pub fn shrunk(self, width: usize) -> Self {
        if self.width <= width || self.width == 0 {
            return self;
        }
        let height = (self.height * width).div_ceil(self.width).max(1);
        let mut rgb = Vec::with_capacity(3 * width * height);
        let range = |i: usize, n: usize, of: usize| i * of / n..((i + 1) * of / n).max(i * of / n + 1).min(of);
        for row in 0..height {
            for column in 0..width {
                let (mut sum, mut n) = ([0_u32; 3], 0);
                for y in range(row, height, self.height) {
                    for x in range(column, width, self.width) {
                        let colour = self.colour(x, y);
                        (0..3).for_each(|channel| sum[channel] += u32::from(colour[channel]));
                        n += 1;
                    }
                }
                rgb.extend(sum.map(|sum| (sum / n.max(1)) as u8));
            }
        }
        Self { width, height, rgb }
    }

    /// Returns the scene that this picture fills.
    pub fn into_scene(self) -> Scene {
        let (x, y) = ([0.0, self.width as f64], [0.0, self.height as f64]);
        Scene { x, y, shapes: vec![Shape::Picture(Arc::new(self))] }
    }
}

/// A picture of an environment: a rectangle and the shapes in it. The y axis points upwards.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// Left and right edge.
    pub x: [f64; 2],
    /// Lower and upper edge.
    pub y: [f64; 2],
    /// The shapes, in drawing order.
    pub shapes: Vec<Shape>,
}
