//! The recurrent cells: gated recurrent units and long short-term memories, forward and backward through time.
//!
//! A cell is two layers. The first computes x W_ih + b_ih of all rows at once; it is an ordinary layer whose outputs are gates. The second, in
//! this file, goes through the steps: it adds h W_hh + b_hh of the numbers h that it remembers, and computes the new ones. Gates begin at
//! multiples of sixteen. The rows of a tile are in the order of [`Plan`](crate::sequences::Plan).

use super::super::aligned::Aligned;
use super::super::layer::{Layer, padded};
use super::super::product::Finish;
use crate::Cell;
use gradus_base::math::tanh_inline;
use gradus_base::simd::Simd;

/// A recurrent cell.
#[derive(Clone, Copy, Debug)]
pub(in crate::cpu) struct Recurrent {
    pub cell: Cell,
    /// Number of units.
    pub units: usize,
    /// Where its numbers begin in a row of memory.
    pub at: usize,
    /// Initial bias of the gate that keeps what is remembered: the second one.
    pub bias: f32,
}

/// What a cell keeps of a pass through a tile.
#[derive(Default)]
pub(in crate::cpu) struct Steps {
    /// h W_hh + b_hh of each row; after the backward pass, the derivatives with respect to them.
    gates: Aligned,
    /// h before each row's step.
    before: Aligned,
    /// An LSTM's c after and before each row's step.
    c: Aligned,
    c_before: Aligned,
    /// The derivatives with respect to h and c that a step passes on to the one before it.
    carried: Aligned,
    carried_c: Aligned,
}

/// 1 / (1 + exp(-x)).
#[inline(always)]
fn sigmoid(x: f32) -> f32 {
    tanh_inline(0.5 * x).mul_add(0.5, 0.5)
}

impl Recurrent {
    /// Width of a row of h, padding included.
    pub fn stride(&self) -> usize {
        padded(self.units)
    }

    /// Numbers that the cell remembers.
    pub fn memory(&self) -> usize {
        self.cell.vectors() * self.units
    }

    /// Numbers that a tile needs for a row, besides the outputs and the derivatives with respect to them.
    pub fn numbers(&self) -> usize {
        let c = if self.cell == Cell::Lstm { 3 } else { 0 };
        (self.cell.gates() + 2 + c) * self.stride()
    }

    pub fn steps(&self, rows: usize) -> Steps {
        let row = |vectors: usize| Aligned::zeros(rows * vectors * self.stride());
        let c = usize::from(self.cell == Cell::Lstm);
        Steps { gates: row(self.cell.gates()), before: row(1), c: row(c), c_before: row(c), carried: row(1), carried_c: row(c) }
    }

    /// Goes through the steps of some sequences, of which `steps` go on at each step. `memory` has a row of `width` numbers for each. `inputs` is
    /// what the first layer computed; it becomes the gates. Writes h after each row's step.
    #[inline(always)]
    pub fn forward<S: Simd>(
        &self,
        simd: S,
        (layer, parameters): (&Layer, &[f32]),
        steps: &[usize],
        (memory, width): (&[f32], usize),
        inputs: &mut [f32],
        (own, h): (&mut Steps, &mut [f32]),
    ) {
        let (p, g) = (self.stride(), padded(layer.outputs));
        let Steps { gates, before, c, c_before, .. } = own;
        let (mut first, mut previous) = (0, 0);
        for (step, n) in steps.iter().copied().enumerate() {
            let rows = first * p..(first + n) * p;
            if step == 0 {
                for (row, memory) in memory.chunks_exact(width).take(n).enumerate() {
                    let memory = &memory[self.at..];
                    before[row * p..row * p + self.units].copy_from_slice(&memory[..self.units]);
                    if self.cell == Cell::Lstm {
                        c_before[row * p..row * p + self.units].copy_from_slice(&memory[self.units..2 * self.units]);
                    }
                }
            } else {
                before[rows.clone()].copy_from_slice(&h[previous * p..(previous + n) * p]);
                if self.cell == Cell::Lstm {
                    c_before[rows.clone()].copy_from_slice(&c[previous * p..(previous + n) * p]);
                }
            }
            layer.forward(simd, parameters, n, &before[rows.clone()], &mut gates[first * g..(first + n) * g], Finish::Same);
            for row in first..first + n {
                let (inputs, gates) = (&mut inputs[row * g..(row + 1) * g], &gates[row * g..(row + 1) * g]);
                let (own, h) = (row * p..(row + 1) * p, &mut h[row * p..(row + 1) * p]);
                match self.cell {
                    Cell::Lstm => lstm(inputs, gates, &c_before[own.clone()], (&mut c[own], h)),
                    _ => gru(inputs, gates, &before[own], h),
                }
            }
            (previous, first) = (first, first + n);
        }
    }

    /// Writes what the cell remembers after one step to the rows of `memory`, which have `width` numbers each.
    pub fn recall(&self, (own, h): (&Steps, &[f32]), memory: &mut [f32], width: usize) {
        let p = self.stride();
        for (row, memory) in memory.chunks_exact_mut(width).enumerate() {
            let memory = &mut memory[self.at..];
            memory[..self.units].copy_from_slice(&h[row * p..row * p + self.units]);
            if self.cell == Cell::Lstm {
                memory[self.units..2 * self.units].copy_from_slice(&own.c[row * p..row * p + self.units]);
            }
        }
    }

    /// Goes back through the steps. `inputs` has the gates, and `delta` the derivatives with respect to h, as far as the loss depends on it in
    /// the same step. Writes the derivatives with respect to the outputs of the first layer. `backward` adds dy W_hh' to dh.
    #[inline(always)]
    pub fn backward(
        &self,
        steps: &[usize],
        (inputs, delta): (&[f32], &[f32]),
        own: &mut Steps,
        d_inputs: &mut [f32],
        g: usize,
        mut backward: impl FnMut(usize, &[f32], &mut [f32]),
    ) {
        let p = self.stride();
        let Steps { gates, before, c, c_before, carried, carried_c } = own;
        let most = steps.first().copied().unwrap_or(0);
        carried[..most * p].fill(0.0);
        if self.cell == Cell::Lstm {
            carried_c[..most * p].fill(0.0);
        }
        let mut end: usize = steps.iter().sum();
        for n in steps.iter().rev().copied() {
            let first = end - n;
            for (place, row) in (first..end).enumerate() {
                let (own, all) = (row * p..(row + 1) * p, row * g..(row + 1) * g);
                let dh = &mut carried[place * p..(place + 1) * p];
                dh.iter_mut().zip(&delta[own.clone()]).for_each(|(dh, delta)| *dh += delta);
                let (inputs, gates, d) = (&inputs[all.clone()], &mut gates[all.clone()], &mut d_inputs[all]);
                match self.cell {
                    Cell::Lstm => {
                        let dc = &mut carried_c[place * p..(place + 1) * p];
                        lstm_backward(inputs, (&c[own.clone()], &c_before[own]), (dh, dc), (d, gates));
                    }
                    _ => gru_backward(inputs, &before[own], dh, (d, gates)),
                }
            }
            backward(n, &gates[first * g..end * g], &mut carried[..n * p]);
            end = first;
        }
    }

    /// What the second layer has read, and the derivatives with respect to what it computed.
    pub fn read_and_derivatives<'a>(&self, own: &'a Steps) -> (&'a [f32], &'a [f32]) {
        (&own.before, &own.gates)
    }
}

/// r = sigmoid(.), z = sigmoid(.), n = tanh(x + r q) with q = h W_hn + b_hn, and h' = (1 - z) n + z h. `inputs` becomes r, z and n.
#[inline(always)]
fn gru(inputs: &mut [f32], gates: &[f32], before: &[f32], h: &mut [f32]) {
    let p = h.len();
    let (r, rest) = inputs.split_at_mut(p);
    let (z, n) = rest.split_at_mut(p);
    let (r_h, rest) = gates.split_at(p);
    let (z_h, q) = rest.split_at(p);
    for i in 0..p {
        r[i] = sigmoid(r[i] + r_h[i]);
        z[i] = sigmoid(z[i] + z_h[i]);
        n[i] = tanh_inline(r[i].mul_add(q[i], n[i]));
        h[i] = z[i].mul_add(before[i] - n[i], n[i]);
    }
}

/// The derivatives of [`gru`]: with respect to what the two layers computed, and, in place of `dh`, what reaches h before the step through z h.
#[inline(always)]
fn gru_backward(inputs: &[f32], before: &[f32], dh: &mut [f32], (d, gates): (&mut [f32], &mut [f32])) {
    let p = dh.len();
    let (r, rest) = inputs.split_at(p);
    let (z, n) = rest.split_at(p);
    let (d_r, rest) = d.split_at_mut(p);
    let (d_z, d_n) = rest.split_at_mut(p);
    let (r_h, rest) = gates.split_at_mut(p);
    let (z_h, q) = rest.split_at_mut(p);
    for i in 0..p {
        let of_n = dh[i] * (1.0 - z[i]) * (-n[i]).mul_add(n[i], 1.0);
        d_z[i] = dh[i] * (before[i] - n[i]) * z[i] * (1.0 - z[i]);
        d_r[i] = of_n * q[i] * r[i] * (1.0 - r[i]);
        d_n[i] = of_n;
        (r_h[i], z_h[i], q[i]) = (d_r[i], d_z[i], of_n * r[i]);
        dh[i] *= z[i];
    }
}

/// i, f and o = sigmoid(.), g = tanh(.), c' = f c + i g, and h' = o tanh(c'). `inputs` becomes i, f, g and o.
#[inline(always)]
fn lstm(inputs: &mut [f32], gates: &[f32], before: &[f32], (c, h): (&mut [f32], &mut [f32])) {
    let p = h.len();
    let (i, rest) = inputs.split_at_mut(p);
    let (f, rest) = rest.split_at_mut(p);
    let (g, o) = rest.split_at_mut(p);
    for k in 0..p {
        i[k] = sigmoid(i[k] + gates[k]);
        f[k] = sigmoid(f[k] + gates[p + k]);
        g[k] = tanh_inline(g[k] + gates[2 * p + k]);
        o[k] = sigmoid(o[k] + gates[3 * p + k]);
        c[k] = f[k].mul_add(before[k], i[k] * g[k]);
        h[k] = o[k] * tanh_inline(c[k]);
    }
}

/// The derivatives of [`lstm`]: with respect to what the two layers computed, and, in place of `dc`, with respect to c before the step. That
/// with respect to h before the step is only what the second layer passes on, so `dh` becomes 0.
#[inline(always)]
fn lstm_backward(inputs: &[f32], (c, before): (&[f32], &[f32]), (dh, dc): (&mut [f32], &mut [f32]), (d, gates): (&mut [f32], &mut [f32])) {
    let p = dh.len();
    let (i, rest) = inputs.split_at(p);
    let (f, rest) = rest.split_at(p);
    let (g, o) = rest.split_at(p);
    for k in 0..p {
        let t = tanh_inline(c[k]);
        let of_c = (dh[k] * o[k]).mul_add((-t).mul_add(t, 1.0), dc[k]);
        d[k] = of_c * g[k] * i[k] * (1.0 - i[k]);
        d[p + k] = of_c * before[k] * f[k] * (1.0 - f[k]);
        d[2 * p + k] = of_c * i[k] * (-g[k]).mul_add(g[k], 1.0);
        d[3 * p + k] = dh[k] * t * o[k] * (1.0 - o[k]);
        dc[k] = of_c * f[k];
        dh[k] = 0.0;
    }
    gates.copy_from_slice(d);
}
