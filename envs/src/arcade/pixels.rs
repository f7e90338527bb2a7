//! The screen of a game: its planes in an observation, and its picture.

use super::{Plane, SIZE};
use crate::Scene;
use crate::scene::Picture;

/// The pixels of an observation.
pub struct Screen<'a> {
    pixels: &'a mut [f32],
    planes: usize,
}

impl<'a> Screen<'a> {
    /// A screen of this many planes.
    pub fn new(pixels: &'a mut [f32], planes: usize) -> Self {
        Self { pixels, planes }
    }

    /// Sets a pixel of a plane; one outside of the screen is left out.
    #[inline]
    pub fn set(&mut self, x: i32, y: i32, plane: usize) {
        let inside = 0..SIZE as i32;
        if inside.contains(&x) && inside.contains(&y) {
            self.pixels[(y as usize * SIZE + x as usize) * self.planes + plane] = 1.0;
        }
    }

    /// Sets the pixels of a row that are bits of `row`; bit x is column x.
    #[inline]
    pub fn set_row(&mut self, y: usize, row: u16, plane: usize) {
        let pixels = self.pixels[y * SIZE * self.planes..(y + 1) * SIZE * self.planes].chunks_exact_mut(self.planes);
        pixels.enumerate().for_each(|(x, pixel)| pixel[plane] = f32::from(row >> x & 1));
    }
}

/// Side of a dot of a sprite, and of a pixel in the picture.
const DOT: usize = 3;
const SIDE: usize = 8 * DOT;
/// The colour of nothing.
const NIGHT: [u8; 3] = [24, 27, 38];

/// The picture of an observation of `size` x `size` pixels: each pixel has the sprites of its planes, the first one on top.
pub(super) fn scene(observation: &[f32], size: usize, planes: &[Plane]) -> Scene {
    let side = size * SIDE;
    let colour = |i: usize| {
        let (row, column) = (i / side, i % side);
        let pixel = &observation[(row / SIDE * size + column / SIDE) * planes.len()..][..planes.len()];
        let is_dot = |plane: &Plane| plane.sprite[row % SIDE / DOT] << (column % SIDE / DOT) & 0x80 != 0;
        let seen = pixel.iter().zip(planes).find(|(number, plane)| **number > 0.0 && is_dot(plane));
        seen.map_or(NIGHT, |(_, plane)| plane.colour)
    };
    Picture { width: side, height: side, rgb: (0..side * side).flat_map(colour).collect() }.into_scene()
}
