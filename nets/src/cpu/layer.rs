//! One dense layer: y = x W + b, and its derivatives.

use std::ops::Range;

use super::dots::Dots;
use super::product::{Finish, Product, Start, product, product_then};
use gradus_base::simd::{Kernel, Simd, Square};

/// Rounds a row's width up to a multiple of sixteen; the numbers in the padding are 0.
pub(super) fn padded(width: usize) -> usize {
    width.next_multiple_of(16)
}

/// The distance between rows of a hidden layer's outputs: their padded width, and sixteen more for rows that would be a multiple of 512 bytes apart. A column of 64 rows would then
/// share an eighth of the first-level cache, and not fit into it.
pub(super) fn spread(width: usize) -> usize {
    let padded = padded(width);
    if padded.is_multiple_of(128) { padded + 16 } else { padded }
}

/// A part of a flat vector with one number per parameter; it begins at index `begin`.
pub(super) struct Part<'a> {
    pub numbers: &'a mut [f32],
    pub begin: usize,
}

impl<'a> Part<'a> {
    /// The whole vector.
    pub fn whole(numbers: &'a mut [f32]) -> Self {
        Self { numbers, begin: 0 }
    }

    /// The numbers of a range of the flat vector.
    #[inline(always)]
    pub fn of(&mut self, range: Range<usize>) -> &mut [f32] {
        &mut self.numbers[range.start - self.begin..range.end - self.begin]
    }
}

/// A layer, and the positions of its parameters in the flat vector.
///
/// A wide layer (16 outputs or more) stores its weights by input (input x padded outputs), so that they are read as vectors of outputs. A
/// narrow layer, such as a head of few actions, stores them by output (output x padded inputs), so that its few outputs need no padding in
/// the weights.
#[derive(Clone, Debug)]
pub(super) struct Layer {
    pub inputs: usize,
    pub outputs: usize,
    /// Distances between rows of inputs and between rows of outputs.
    pub x_stride: usize,
    pub y_stride: usize,
    pub weights: usize,
    pub bias: usize,
    /// Whether a layer of few outputs is stored as a wide one.
    pub is_wide: bool,
    /// Position of the transposed weights among those of the layer's chain; only for wide layers that need the derivative with respect to
    /// their inputs.
    pub transposed: Option<usize>,
}

impl Layer {
    pub fn is_narrow(&self) -> bool {
        self.outputs < 16 && !self.is_wide
    }

    pub fn weight_len(&self) -> usize {
        if self.is_narrow() { self.outputs * padded(self.inputs) } else { self.inputs * padded(self.outputs) }
    }

    /// Index of the weight from `input` to `output`.
    pub fn weight(&self, output: usize, input: usize) -> usize {
        self.weights + if self.is_narrow() { output * padded(self.inputs) + input } else { input * padded(self.outputs) + output }
    }

    /// The weights of a wide layer, and the distance between their rows.
    #[inline(always)]
    pub fn kernel<'a>(&self, parameters: &'a [f32]) -> (&'a [f32], usize) {
        (&parameters[self.weights..self.weights + self.weight_len()], padded(self.outputs))
    }

    /// The bias, for every row.
    #[inline(always)]
    pub fn start<'a>(&self, parameters: &'a [f32]) -> Start<'a> {
        Start::Row(&parameters[self.bias..self.bias + padded(self.outputs)])
    }

    /// Computes f(x W + b) for `rows` rows; `finish` is f.
    #[inline(always)]
    pub fn forward<S: Simd>(&self, simd: S, parameters: &[f32], rows: usize, x: &[f32], y: &mut [f32], finish: Finish<'_>) {
        self.multiply(simd, parameters, rows, x, y, (self.start(parameters), finish));
    }

    /// Computes the change of f(y) if x changes by `dx` and the parameters by `change`: dy = f'(y) (x dW + db + dx W). The last term is
    /// absent if x is fixed (`dx` is `None`). `finish` is the factor f'(y).
    #[inline(always)]
    pub fn tangent<S: Simd>(
        &self,
        simd: S,
        (parameters, change): (&[f32], &[f32]),
        rows: usize,
        (x, dx): (&[f32], Option<&[f32]>),
        dy: &mut [f32],
        finish: Finish<'_>,
    ) {
        self.forward(simd, change, rows, x, dy, if dx.is_some() { Finish::Same } else { finish });
        if let Some(dx) = dx {
            self.multiply(simd, parameters, rows, dx, dy, (Start::Sum, finish));
        }
    }

    /// Computes y = f(start + x W) for `rows` rows; `finish` is f.
    #[inline(always)]
    fn multiply<S: Simd>(
        &self,
        simd: S,
        parameters: &[f32],
        rows: usize,
        x: &[f32],
        y: &mut [f32],
        (start, finish): (Start<'_>, Finish<'_>),
    ) {
        let weights = &parameters[self.weights..self.weights + self.weight_len()];
        simd.call(Multiply { layer: self, weights, rows, x, y, start, finish });
    }

    /// Adds to the gradients of W and b (or sets them, with `Start::Zero`), given `dy`.
    #[inline(always)]
    pub fn backward_parameters<S: Simd>(&self, simd: S, rows: usize, x: &[f32], dy: &[f32], gradient: &mut Part<'_>, start: Start<'_>) {
        self.backward_bias(simd, rows, dy, gradient, start);
        let all = 0..if self.is_narrow() { self.outputs } else { self.inputs };
        let weights = gradient.of(self.weights..self.weights + self.weight_len());
        self.backward_weights(simd, all, rows, (x, dy), weights, start);
    }

    /// Adds to the gradient of b (or sets it, with `Start::Zero`): db = 1' dy.
    #[inline(always)]
    pub fn backward_bias<S: Simd>(&self, simd: S, rows: usize, dy: &[f32], gradient: &mut Part<'_>, start: Start<'_>) {
        let n = padded(self.outputs);
        product(
            simd,
            Product {
                m: 1,
                n,
                k: rows,
                a: &[1.0],
                a_strides: (0, 0),
                b: dy,
                b_stride: self.y_stride,
                c: gradient.of(self.bias..self.bias + n),
                c_stride: n,
                start,
            },
        );
    }

    /// Adds to the gradient of some rows of the weights as they are stored (or sets it, with `Start::Zero`). `gradient` has these rows.
    #[inline(always)]
    pub fn backward_weights<S: Simd>(
        &self,
        simd: S,
        stored: Range<usize>,
        rows: usize,
        (x, dy): (&[f32], &[f32]),
        gradient: &mut [f32],
        start: Start<'_>,
    ) {
        // dW (output x input) = dy' x of a narrow layer; dW (input x output) = x' dy of a wide layer
        let (of_x, of_dy) = ((x, self.x_stride), (dy, self.y_stride));
        let ((a, a_stride), (b, b_stride), n) =
            if self.is_narrow() { (of_dy, of_x, padded(self.inputs)) } else { (of_x, of_dy, padded(self.outputs)) };
        product(
            simd,
            Product {
                m: stored.len(),
                n,
                k: rows,
                a: &a[stored.start..],
                a_strides: (1, a_stride),
                b,
                b_stride,
                c: gradient,
                c_stride: n,
                start,
            },
        );
    }

    /// Computes dx = (start + dy W') times `finish`, the derivative of the activation that gave x, if any. A wide layer reads its transposed
    /// weights.
    #[inline(always)]
    pub fn backward_input<S: Simd>(
        &self,
        simd: S,
        (parameters, transposed): (&[f32], &[f32]),
        rows: usize,
        dy: &[f32],
        dx: &mut [f32],
        (start, finish): (Start<'_>, Finish<'_>),
    ) {
        let n = padded(self.inputs);
        let by_output = match self.transposed {
            Some(begin) => &transposed[begin..begin + self.transposed_len()],
            None => &parameters[self.weights..self.weights + self.weight_len()],
        };
        let product = Product {
            m: rows,
            n,
            k: self.outputs,
            a: dy,
            a_strides: (self.y_stride, 1),
            b: by_output,
            b_stride: n,
            c: dx,
            c_stride: self.x_stride,
            start,
        };
        product_then(simd, product, finish);
    }

    /// Length of the transposed weights of a wide layer: output x padded inputs.
    pub fn transposed_len(&self) -> usize {
        self.outputs * padded(self.inputs)
    }

    /// Writes the layer's transposed weights, if any, to their position in `copies`.
    #[inline(always)]
    pub fn transpose<S: Simd>(&self, simd: S, parameters: &[f32], copies: &mut [f32]) {
        let Some(begin) = self.transposed else { return };
        self.transpose_to(simd, parameters, &mut copies[begin..begin + self.transposed_len()]);
    }

    /// Writes the transposed weights of a wide layer.
    #[inline(always)]
    pub fn transpose_to<S: Simd>(&self, simd: S, parameters: &[f32], copy: &mut [f32]) {
        transpose(simd, self.kernel(parameters), (self.inputs, self.outputs), (copy, padded(self.inputs)));
    }

    /// As [`backward_input`](Layer::backward_input), for a wide layer and without its transposed weights: computes dx' = W dy', and transposes
    /// dy and dx instead of W. `columns` has room for [`columns_len`](Layer::columns_len) numbers. The result has the same bits.
    #[inline(always)]
    pub fn backward_input_by_columns<S: Simd>(
        &self,
        simd: S,
        (parameters, columns): (&[f32], &mut [f32]),
        rows: usize,
        dy: &[f32],
        dx: &mut [f32],
        (start, finish): (Start<'_>, Finish<'_>),
    ) {
        let (x_stride, y_stride, lanes) = (self.x_stride, self.y_stride, padded(rows));
        let (dy_columns, dx_columns) = columns.split_at_mut(self.outputs * lanes);
        transpose(simd, (dy, y_stride), (rows, self.outputs), (dy_columns, lanes));
        if let Start::Sum = start {
            transpose(simd, (dx, x_stride), (rows, self.inputs), (dx_columns, lanes));
        }
        product(
            simd,
            Product {
                m: self.inputs,
                n: lanes,
                k: self.outputs,
                a: &parameters[self.weights..self.weights + self.weight_len()],
                a_strides: (padded(self.outputs), 1),
                b: dy_columns,
                b_stride: lanes,
                c: dx_columns,
                c_stride: lanes,
                start,
            },
        );
        transpose(simd, (dx_columns, lanes), (self.inputs, rows), (dx, x_stride));
        let n = rows * x_stride;
        finish.apply(simd, &mut dx[..n], 0, (n, n));
    }

    /// Numbers that [`backward_input_by_columns`](Layer::backward_input_by_columns) needs for this number of rows.
    pub fn columns_len(&self, rows: usize) -> usize {
        (self.outputs + self.inputs) * padded(rows)
    }
}

/// Transposes a matrix of `rows` x `columns` numbers. Each matrix comes with the distance between its rows, a multiple of 16. The last row of
/// squares of 16 x 16 is filled up with zeros.
#[inline(always)]
fn transpose<S: Simd>(
    simd: S,
    (from, from_stride): (&[f32], usize),
    (rows, columns): (usize, usize),
    (to, to_stride): (&mut [f32], usize),
) {
    let mut first_row = 0;
    while first_row < rows {
        let mut first_column = 0;
        while first_column < columns {
            let from = &from[first_row * from_stride + first_column..];
            let to = &mut to[first_column * to_stride + first_row..];
            // constant numbers of rows and columns stay in registers
            match (rows - first_row, columns - first_column) {
                (16.., 16..) => transpose_square(simd, (from, from_stride), (16, 16), (to, to_stride)),
                (rows, columns) => transpose_square(simd, (from, from_stride), (rows.min(16), columns.min(16)), (to, to_stride)),
            }
            first_column += 16;
        }
        first_row += 16;
    }
}

/// [`transpose`] as a kernel.
pub(super) struct Transpose<'a> {
    /// The numbers, and the distance between their rows.
    pub from: (&'a [f32], usize),
    /// Rows and columns.
    pub shape: (usize, usize),
    /// The transposed numbers, and the distance between their rows.
    pub to: (&'a mut [f32], usize),
}

impl Kernel for Transpose<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        transpose(simd, self.from, self.shape, self.to);
    }
}

/// Writes some columns of some rows of sixteen numbers as rows of sixteen numbers; what other rows would have is 0.
#[inline(always)]
fn transpose_square<S: Simd>(
    simd: S,
    (from, from_stride): (&[f32], usize),
    (rows, columns): (usize, usize),
    (to, to_stride): (&mut [f32], usize),
) {
    let mut square: Square = [[0.0; 16]; 16];
    for (i, numbers) in square[..rows].iter_mut().enumerate() {
        numbers.copy_from_slice(&from[i * from_stride..i * from_stride + 16]);
    }
    simd.transpose(&mut square);
    for (i, numbers) in square[..columns].iter().enumerate() {
        to[i * to_stride..i * to_stride + 16].copy_from_slice(numbers);
    }
}

/// The product of [`Layer::multiply`].
struct Multiply<'a> {
    layer: &'a Layer,
    weights: &'a [f32],
    rows: usize,
    x: &'a [f32],
    y: &'a mut [f32],
    start: Start<'a>,
    finish: Finish<'a>,
}

impl Kernel for Multiply<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { layer, weights, rows, x, y, start, finish } = self;
        let (x_stride, y_stride) = (layer.x_stride, layer.y_stride);
        if !layer.is_narrow() {
            let n = padded(layer.outputs);
            let product = Product {
                m: rows,
                n,
                k: layer.inputs,
                a: x,
                a_strides: (x_stride, 1),
                b: weights,
                b_stride: n,
                c: y,
                c_stride: y_stride,
                start,
            };
            return product_then(simd, product, finish);
        }
        let dots = Dots { rows, outputs: layer.outputs, x, x_stride, weights, stride: padded(layer.inputs) };
        dots.run(simd, |row, output, sum| {
            let y = &mut y[row * y_stride + output];
            *y = sum
                + match start {
                    Start::Zero => 0.0,
                    Start::Row(bias) => bias[output],
                    Start::Sum => *y,
                };
        });
        let n = rows * y_stride;
        finish.apply(simd, &mut y[..n], 0, (n, n));
    }
}
