//! Layers that read an image through windows: convolutions and pooling.
//!
//! An image is stored pixel by pixel, row by row, with the numbers of a pixel side by side. A convolution is then a matrix product of windows, which are
//! rows of A, and weights: nothing is copied, because the product [gathers](super::super::product::Gathered) the windows where they are. Only an
//! image with padding is copied once, into a larger one with zeros around it.

use std::ops::Range;

use super::super::layer::Layer;
use super::super::product::{Finish, Gathered, Places, Product, Start, gathered_then, product};
use crate::trunk::Window;
use gradus_base::simd::{Kernel, Simd};

/// The size of an image as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cpu) struct Grid {
    pub height: usize,
    pub width: usize,
    /// Numbers of a pixel.
    pub channels: usize,
    /// Distance between pixels, at least `channels`.
    pub stride: usize,
}

impl Grid {
    pub fn pixels(self) -> usize {
        self.height * self.width
    }

    /// Numbers of an image.
    pub fn len(self) -> usize {
        self.pixels() * self.stride
    }
}

/// How a layer looks at an image.
#[derive(Debug)]
pub(in crate::cpu) struct View {
    pub window: Window,
    /// The image that is read.
    pub from: Grid,
    /// The image with its padding.
    padded: Grid,
    /// Height and width of the outputs.
    pub to: [usize; 2],
    /// The first pixel of each window, in the padded image.
    windows: Vec<u32>,
    /// The numbers of a window, from its first pixel on: row by row, pixel by pixel.
    inside: Vec<u32>,
}

/// Windows whose derivatives are computed at once. A multiple of the rows that a product computes at a time.
const AT_ONCE: usize = 48;

impl View {
    /// Returns how windows look at an image; `None` if none fits.
    pub fn new(window: Window, from: Grid) -> Option<Self> {
        let Window { size, stride, padding } = window;
        let to = [window.outputs(from.height)?, window.outputs(from.width)?];
        let padded = Grid { height: from.height + 2 * padding, width: from.width + 2 * padding, ..from };
        let place = |y: usize, x: usize, channel: usize| ((y * padded.width + x) * padded.stride + channel) as u32;
        let windows = (0..to[0]).flat_map(|y| (0..to[1]).map(move |x| place(y * stride, x * stride, 0))).collect();
        let pixel = |y: usize, x: usize| (0..from.channels).map(move |channel| place(y, x, channel));
        let inside = (0..size).flat_map(|y| (0..size).flat_map(move |x| pixel(y, x))).collect();
        Some(Self { window, from, padded, to, windows, inside })
    }

    /// Number of windows.
    pub fn windows(&self) -> usize {
        self.windows.len()
    }

    /// Numbers of a window.
    pub fn inputs(&self) -> usize {
        self.inside.len()
    }

    /// Numbers of an image with its padding; 0 if it has none.
    pub fn padded_len(&self) -> usize {
        if self.window.padding == 0 { 0 } else { self.padded.len() }
    }

    /// Numbers that [`backward_input`](View::backward_input) needs room for.
    pub fn room(&self, layer: &Layer) -> usize {
        layer.transposed_len() + AT_ONCE * super::padded(self.inputs())
    }

    /// Copies images to the middle of larger ones, whose edges stay 0.
    pub fn pad(&self, images: &[f32], padded: &mut [f32]) {
        let Self { window: Window { padding, .. }, from, padded: around, .. } = self;
        let row = from.width * from.stride;
        for (image, padded) in images.chunks_exact(from.len()).zip(padded.chunks_exact_mut(around.len())) {
            for (y, pixels) in image.chunks_exact(row).enumerate() {
                let begin = ((y + padding) * around.width + padding) * around.stride;
                padded[begin..begin + row].copy_from_slice(pixels);
            }
        }
    }

    /// Computes f(x W + b) of all windows of some images, which have their padding; `start` is b, or with `Start::Sum` what `y` has.
    #[inline(always)]
    pub fn forward<S: Simd>(
        &self,
        simd: S,
        kernel: (&[f32], usize),
        images: &[f32],
        y: &mut [f32],
        (start, finish): (Start<'_>, Finish<'_>),
    ) {
        simd.call(Convolve { view: self, kernel, images, y, start, finish });
    }

    /// Adds to the gradient of some rows of the weights (or sets it, with `Start::Zero`): dW = x' dy, over all windows of some images, which have
    /// their padding.
    #[inline(always)]
    pub fn backward_weights<S: Simd>(
        &self,
        simd: S,
        stored: Range<usize>,
        stride: usize,
        (images, dy): (&[f32], &[f32]),
        gradient: &mut [f32],
        start: Start<'_>,
    ) {
        simd.call(Weights { view: self, stored, stride, images, dy, gradient, start });
    }

    /// Adds the derivatives with respect to the pixels to `dx`: for each window dy W', at its place. `transposed` is W'.
    #[inline(always)]
    pub fn backward_input<S: Simd>(&self, simd: S, layer: &Layer, (transposed, room): (&[f32], &mut [f32]), dy: &[f32], dx: &mut [f32]) {
        let (stride, width) = (super::padded(layer.outputs), super::padded(self.inputs()));
        for (dy, dx) in dy.chunks_exact(self.windows() * stride).zip(dx.chunks_exact_mut(self.from.len())) {
            for first in (0..self.windows()).step_by(AT_ONCE) {
                let m = AT_ONCE.min(self.windows() - first);
                let d_windows = &mut room[..m * width];
                product(
                    simd,
                    Product {
                        m,
                        n: width,
                        k: layer.outputs,
                        a: &dy[first * stride..],
                        a_strides: (stride, 1),
                        b: transposed,
                        b_stride: width,
                        c: d_windows,
                        c_stride: width,
                        start: Start::Zero,
                    },
                );
                for (i, d_window) in d_windows.chunks_exact(width).enumerate() {
                    self.add_window(first + i, d_window, dx);
                }
            }
        }
    }

    /// The pixels of window number `i` in row or column `at` of the outputs, without those in the padding: the first pixel of the image, and the range of
    /// the window.
    #[inline(always)]
    fn inside_of(&self, at: usize, pixels: usize) -> (usize, Range<usize>) {
        let Window { size, stride, padding } = self.window;
        let begin = at * stride;
        let from = padding.saturating_sub(begin);
        let to = size.min((pixels + padding).saturating_sub(begin));
        (begin + from - padding, from..to)
    }

    /// Adds the numbers of a window to the pixels that it has read.
    #[inline(always)]
    fn add_window(&self, i: usize, numbers: &[f32], dx: &mut [f32]) {
        let Grid { height, width, channels, stride } = self.from;
        let size = self.window.size;
        let ((y, rows), (x, columns)) = (self.inside_of(i / self.to[1], height), self.inside_of(i % self.to[1], width));
        for (y, row) in (y..).zip(rows) {
            let (begin, from) = ((y * width + x) * stride, (row * size + columns.start) * channels);
            if channels == stride {
                let n = columns.len() * channels;
                dx[begin..begin + n].iter_mut().zip(&numbers[from..from + n]).for_each(|(dx, number)| *dx += number);
            } else {
                let pixels = dx[begin..].chunks_mut(stride).zip(numbers[from..].chunks(channels)).take(columns.len());
                pixels.for_each(|(dx, numbers)| dx.iter_mut().zip(numbers).for_each(|(dx, number)| *dx += number));
            }
        }
    }

    /// Calls `f` with each pixel of window number `i`: with the position of its first number in the image.
    #[inline]
    fn pixels_of(&self, i: usize, mut f: impl FnMut(usize)) {
        let Grid { height, width, stride, .. } = self.from;
        let ((y, rows), (x, columns)) = (self.inside_of(i / self.to[1], height), self.inside_of(i % self.to[1], width));
        for y in y..y + rows.len() {
            for x in x..x + columns.len() {
                f((y * width + x) * stride);
            }
        }
    }

    /// The largest number of each window, for each channel; images have no padding.
    #[inline(never)]
    pub fn largest(&self, images: &[f32], y: &mut [f32]) {
        let stride = self.from.stride;
        for (image, y) in images.chunks_exact(self.from.len()).zip(y.chunks_exact_mut(self.windows() * stride)) {
            for (i, y) in y.chunks_exact_mut(stride).enumerate() {
                y.fill(f32::NEG_INFINITY);
                self.pixels_of(i, |begin| {
                    // a NaN stays one
                    y.iter_mut().zip(&image[begin..begin + stride]).for_each(|(y, x)| *y = if *x > *y || x.is_nan() { *x } else { *y });
                });
            }
        }
    }

    /// For each window and channel, calls `f` with the positions of the output and of the first pixel with the largest number.
    #[inline(never)]
    pub fn for_each_largest(&self, (images, y): (&[f32], &[f32]), f: &mut dyn FnMut(usize, usize)) {
        let stride = self.from.stride;
        for (number, image) in images.chunks_exact(self.from.len()).take(y.len() / (self.windows() * stride)).enumerate() {
            for i in 0..self.windows() {
                let output = (number * self.windows() + i) * stride;
                for channel in 0..self.from.channels {
                    let mut place = None;
                    self.pixels_of(i, |begin| {
                        let (x, largest) = (image[begin + channel], y[output + channel]);
                        if place.is_none() && (x == largest || x.is_nan() && largest.is_nan()) {
                            place = Some(begin + channel);
                        }
                    });
                    place.into_iter().for_each(|place| f(output + channel, number * self.from.len() + place));
                }
            }
        }
    }
}

/// The forward pass of a convolution, which is compiled once for each instruction set.
struct Convolve<'a> {
    view: &'a View,
    kernel: (&'a [f32], usize),
    images: &'a [f32],
    y: &'a mut [f32],
    start: Start<'a>,
    finish: Finish<'a>,
}

impl Kernel for Convolve<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { view, kernel: (weights, stride), images, y, start, finish } = self;
        let (rows, columns) = (Places::new(&view.windows), Places::new(&view.inside));
        let n = view.windows() * stride;
        for (i, (image, y)) in images.chunks_exact(view.padded.len()).zip(y.chunks_exact_mut(n)).enumerate() {
            // the numbers that a derivative of an activation is computed from are laid out as y
            let finish = match finish {
                Finish::Derivative(activation, h) => Finish::Derivative(activation, &h[i * n..(i + 1) * n]),
                other => other,
            };
            let product = Gathered { n: stride, a: image, rows, columns, b: weights, b_stride: stride, c: y, c_stride: stride, start };
            gathered_then(simd, product, finish);
        }
    }
}

/// The gradient of some rows of the weights.
struct Weights<'a> {
    view: &'a View,
    stored: Range<usize>,
    stride: usize,
    images: &'a [f32],
    dy: &'a [f32],
    gradient: &'a mut [f32],
    start: Start<'a>,
}

impl Kernel for Weights<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { view, stored, stride, images, dy, gradient, mut start } = self;
        let (rows, columns) = (Places::new(&view.inside).part(stored), Places::new(&view.windows));
        for (image, dy) in images.chunks_exact(view.padded.len()).zip(dy.chunks_exact(view.windows() * stride)) {
            let product = Gathered { n: stride, a: image, rows, columns, b: dy, b_stride: stride, c: gradient, c_stride: stride, start };
            gathered_then(simd, product, Finish::Same);
            start = Start::Sum;
        }
    }
}
