//! The actor's actions in a tile of rows, and the derivatives through them.
//!
//! For a squashed Gaussian, a = tanh u with u = mu + sigma epsilon. With gSDE (Raffin et al., arXiv 2005.05719), the noise of row phi of
//! features is phi theta with theta_kj = sigma_kj epsilon_kj; its variance is v_j = sum of phi_k^2 sigma_kj^2.

use super::super::layer::padded;
use super::super::perceptron::{Observed, ROWS, Tile};
use super::layout::QActorLayout;
use crate::squashed::{HALF_LN_2PI, log_prob, log_slope};
use crate::{LogStdBounds, QActor};
use gradus_base::math::{exp_inline, ln_inline, tanh_inline};
use gradus_base::simd::{Kernel, Level, Simd, dispatch};

/// Added to the variances of gSDE, as in Stable-Baselines3.
const VARIANCE_FLOOR: f32 = 1e-6;
/// Bound of the means with gSDE, as in Stable-Baselines3.
const MEAN_BOUND: f32 = 2.0;

/// The standard normal numbers from which the noise of some rows is computed.
#[derive(Clone, Copy)]
pub(super) enum Noise<'a> {
    /// None: the greedy actions.
    Zero,
    /// One number per row and dimension.
    Rows(&'a [f32]),
    /// With gSDE: matrices of features x dimensions, one of all rows or one of each.
    Matrices { numbers: &'a [f32], is_shared: bool },
}

/// A tile of the actor, and what the head computes of its rows. There is one number for each row and dimension, without padding.
pub(super) struct ActorTile {
    pub tile: Tile,
    /// log sigma and its derivative with respect to the network's output.
    log_stds: Vec<f32>,
    slopes: Vec<f32>,
    /// epsilon; with gSDE the noise itself.
    noise: Vec<f32>,
    /// With gSDE: the variances.
    variances: Vec<f32>,
    u: Vec<f32>,
    /// tanh u.
    pub actions: Vec<f32>,
    /// log pi(a|s) of each row.
    pub log_probs: [f32; ROWS],
    /// The loss's derivatives with respect to the actions, and to log pi(a|s) of each row.
    pub d_actions: Vec<f32>,
    pub d_log_probs: [f32; ROWS],
    /// With gSDE: the loss's derivative with respect to the log standard deviations, summed over the rows.
    pub d_log_stds: Vec<f32>,
    /// With gSDE: the variances and the noise matrix, features x dimensions.
    squares: Vec<f32>,
}

impl ActorTile {
    pub fn new(layout: &QActorLayout) -> Self {
        let numbers = || vec![0.0; ROWS * layout.actions()];
        let matrix = || vec![0.0; layout.log_stds.as_ref().map_or(0, |range| range.len())];
        Self {
            tile: Tile::new(&layout.actor, ROWS),
            log_stds: numbers(),
            slopes: numbers(),
            noise: numbers(),
            variances: numbers(),
            u: numbers(),
            actions: numbers(),
            log_probs: [0.0; ROWS],
            d_actions: numbers(),
            d_log_probs: [0.0; ROWS],
            d_log_stds: matrix(),
            squares: matrix(),
        }
    }
}

impl ActorTile {
    /// Reads at most [`ROWS`] observations, and computes actions and log-probabilities.
    #[inline(never)] // once per program instead of once per caller
    pub fn choose(&mut self, level: Level, (layout, parameters): (&QActorLayout, &[f32]), observations: Observed<'_>, noise: Noise<'_>) {
        self.tile.read(&layout.actor, observations);
        self.tile.forward(level, &layout.actor, parameters);
        dispatch(level, Choose { layout, parameters, noise, tile: self });
    }
}

/// Computes actions and log-probabilities from the outputs of the actor's last layer.
struct Choose<'a> {
    layout: &'a QActorLayout,
    parameters: &'a [f32],
    noise: Noise<'a>,
    tile: &'a mut ActorTile,
}

impl Kernel for Choose<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self { layout, parameters, noise, tile: w } = self;
        let (d, rows, output) = (layout.actions(), w.tile.rows(), layout.actor.layers.len() - 1);
        let n = rows * d;
        let y = w.tile.outputs(output).chunks_exact(layout.actor.layers[output].stride());
        match (layout.head.actor, &layout.log_stds) {
            (QActor::Deterministic, _) => {
                w.u[..n].chunks_exact_mut(d).zip(y).for_each(|(u, y)| u.copy_from_slice(&y[..d]));
                w.log_probs.fill(0.0);
            }
            (QActor::Squashed(bounds), None) => {
                let outputs = w.u[..n].chunks_exact_mut(d).zip(w.log_stds.chunks_exact_mut(d)).zip(y);
                outputs.for_each(|((u, log_stds), y)| {
                    u.copy_from_slice(&y[..d]);
                    log_stds.copy_from_slice(&y[d..2 * d]);
                });
                match noise {
                    Noise::Rows(epsilon) => w.noise[..n].copy_from_slice(epsilon),
                    _ => w.noise[..n].fill(0.0),
                }
                squash(bounds, (&mut w.log_stds[..n], &mut w.slopes[..n]), (&w.noise[..n], &mut w.u[..n]), &mut w.d_actions[..n]);
                let terms = w.d_actions[..n].chunks_exact(d);
                w.log_probs.iter_mut().zip(terms).for_each(|(log_prob, terms)| *log_prob = terms.iter().sum());
            }
            (QActor::Squashed(_), Some(range)) => {
                w.u[..n].chunks_exact_mut(d).zip(y).for_each(|(u, y)| u.copy_from_slice(&y[..d]));
                for slope in 0..n {
                    let (mean, bounded) = (w.u[slope], w.u[slope].clamp(-MEAN_BOUND, MEAN_BOUND));
                    (w.u[slope], w.slopes[slope]) = (bounded, if mean.abs() < MEAN_BOUND { 1.0 } else { 0.0 });
                }
                w.explore(layout, &parameters[range.clone()], noise);
            }
        }
        w.actions[..n].iter_mut().zip(&w.u).for_each(|(a, u)| *a = tanh_inline(*u));
    }
}

/// Replaces outputs by bounded log standard deviations and means by u = mu + sigma epsilon. Writes the terms of log pi(a|s).
#[inline(always)]
fn squash(bounds: LogStdBounds, (log_stds, slopes): (&mut [f32], &mut [f32]), (noise, u): (&[f32], &mut [f32]), terms: &mut [f32]) {
    for (log_std, slope) in log_stds.iter_mut().zip(slopes) {
        (*log_std, *slope) = bounds.of(*log_std);
    }
    for ((u, log_std), (epsilon, term)) in u.iter_mut().zip(log_stds).zip(noise.iter().zip(terms)) {
        *u = exp_inline(*log_std).mul_add(*epsilon, *u);
        *term = log_prob(*epsilon, *log_std, *u);
    }
}

impl ActorTile {
    /// The features of the rows, and the numbers from one row to the next.
    #[inline(always)]
    fn features<'a>(tile: &'a Tile, layout: &QActorLayout) -> std::slice::ChunksExact<'a, f32> {
        let stride = layout.feature_stride();
        match layout.actor.layers.last().and_then(|dense| dense.reads) {
            Some(layer) => tile.outputs(layer).chunks_exact(stride),
            None => tile.inputs().chunks_exact(stride),
        }
    }

    /// Adds the noise of gSDE to u, and computes log pi(a|s).
    #[inline(always)]
    fn explore(&mut self, layout: &QActorLayout, log_stds: &[f32], noise: Noise<'_>) {
        let (d, stride, k) = (layout.actions(), padded(layout.actions()), layout.features());
        let Self { tile, noise: own, variances, u, log_probs, squares, .. } = self;
        squares.iter_mut().zip(log_stds).for_each(|(square, log_std)| *square = exp_inline(*log_std));
        for (row, phi) in Self::features(tile, layout).take(tile.rows()).enumerate() {
            let at = row * d..(row + 1) * d;
            let (own, variances, u) = (&mut own[at.clone()], &mut variances[at.clone()], &mut u[at]);
            own.fill(0.0);
            variances.fill(VARIANCE_FLOOR);
            for (f, (phi, stds)) in phi[..k].iter().zip(squares.chunks_exact(stride)).enumerate() {
                for (variance, std) in variances.iter_mut().zip(stds) {
                    *variance = (phi * phi).mul_add(std * std, *variance);
                }
                if let Noise::Matrices { numbers, is_shared } = noise {
                    let begin = (if is_shared { 0 } else { row * k } + f) * d;
                    for ((noise, std), epsilon) in own.iter_mut().zip(stds).zip(&numbers[begin..begin + d]) {
                        *noise = phi.mul_add(std * epsilon, *noise);
                    }
                }
            }
            let mut sum = 0.0;
            for ((u, noise), variance) in u.iter_mut().zip(own).zip(variances) {
                *u += *noise;
                sum += -0.5 * *noise * *noise / *variance - 0.5 * ln_inline(*variance) - HALF_LN_2PI - log_slope(*u);
            }
            log_probs[row] = sum;
        }
    }
}

/// Computes the derivatives with respect to the outputs of the actor's last layer from those with respect to actions and log pi(a|s).
pub(super) struct ThroughActions<'a> {
    pub layout: &'a QActorLayout,
    pub noise: Noise<'a>,
    pub tile: &'a mut ActorTile,
}

impl Kernel for ThroughActions<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self { layout, noise, tile: w } = self;
        let (d, rows, output) = (layout.actions(), w.tile.rows(), layout.actor.layers.len() - 1);
        let n = rows * d;
        let stride = layout.actor.layers[output].stride();
        if layout.head.actor == QActor::Deterministic {
            w.d_log_probs.fill(0.0); // a deterministic action has no density
        }
        // d a / d u = 1 - a^2, and -ln(1 - tanh^2 u) has the derivative 2 a
        let rows_of = w.d_actions[..n].chunks_exact_mut(d).zip(w.actions.chunks_exact(d)).zip(&w.d_log_probs);
        for ((d_u, actions), d_log_prob) in rows_of {
            for (d_u, a) in d_u.iter_mut().zip(actions) {
                *d_u = d_u.mul_add(1.0 - a * a, 2.0 * d_log_prob * a);
            }
        }
        match (layout.head.actor, &layout.log_stds) {
            (QActor::Deterministic, _) => {
                let dy = w.tile.derivatives(output);
                dy.fill(0.0);
                dy.chunks_exact_mut(stride).zip(w.d_actions[..n].chunks_exact(d)).for_each(|(dy, d_u)| dy[..d].copy_from_slice(d_u));
            }
            (QActor::Squashed(_), None) => {
                let dy = w.tile.derivatives(output);
                dy.fill(0.0);
                for (row, dy) in dy.chunks_exact_mut(stride).take(rows).enumerate() {
                    let at = row * d..(row + 1) * d;
                    let (d_u, d_log_prob) = (&w.d_actions[at.clone()], w.d_log_probs[row]);
                    dy[..d].copy_from_slice(d_u);
                    // u = mu + sigma epsilon, and log pi has the term -log sigma
                    let of = d_u.iter().zip(&w.noise[at.clone()]).zip(w.log_stds[at.clone()].iter().zip(&w.slopes[at]));
                    for (dy, ((d_u, epsilon), (log_std, slope))) in dy[d..2 * d].iter_mut().zip(of) {
                        *dy = slope * (d_u * epsilon).mul_add(exp_inline(*log_std), -d_log_prob);
                    }
                }
            }
            (QActor::Squashed(_), Some(_)) => w.through_noise(layout, noise),
        }
    }
}

impl ActorTile {
    /// The derivatives through the noise of gSDE: with respect to the means, the features and the log standard deviations.
    #[inline(always)]
    fn through_noise(&mut self, layout: &QActorLayout, noise: Noise<'_>) {
        let (d, matrix_stride, k) = (layout.actions(), padded(layout.actions()), layout.features());
        let output = layout.actor.layers.len() - 1;
        let stride = layout.actor.layers[output].stride();
        let Self { tile, noise: own, variances, slopes, d_actions, d_log_probs, d_log_stds, squares, .. } = self;
        let rows = tile.rows();
        d_log_stds.fill(0.0);
        let dy = tile.derivatives(output);
        dy.fill(0.0);
        for (row, dy) in dy.chunks_exact_mut(stride).take(rows).enumerate() {
            for j in 0..d {
                dy[j] = d_actions[row * d + j] * slopes[row * d + j];
            }
        }
        // from the derivatives with respect to u to those with respect to the noise n and its variance v:
        // log pi has the terms -n^2 / (2 v) - ln(v) / 2
        for (row, d_log_prob) in d_log_probs.iter().take(rows).enumerate() {
            for i in row * d..(row + 1) * d {
                let (n, v) = (own[i], variances[i]);
                d_actions[i] -= d_log_prob * n / v;
                variances[i] = d_log_prob * (0.5 * n * n / (v * v) - 0.5 / v);
            }
        }
        let reads = layout.actor.layers[output].reads;
        let features_stride = layout.feature_stride();
        for row in 0..rows {
            for f in 0..k {
                let phi = match reads {
                    Some(layer) => tile.outputs(layer)[row * features_stride + f],
                    None => tile.inputs()[row * features_stride + f],
                };
                let mut d_phi = 0.0;
                for j in 0..d {
                    let std = squares[f * matrix_stride + j];
                    let (d_noise, d_variance) = (d_actions[row * d + j], variances[row * d + j]);
                    let epsilon = match noise {
                        Noise::Matrices { numbers, is_shared } => numbers[(if is_shared { 0 } else { row * k } + f) * d + j],
                        _ => 0.0,
                    };
                    // n = phi sigma epsilon + .., v = phi^2 sigma^2 + ..
                    let through_noise = d_noise * std * epsilon;
                    let through_variance = 2.0 * d_variance * phi * std * std;
                    d_phi += through_noise + through_variance;
                    d_log_stds[f * matrix_stride + j] += phi * (through_noise + through_variance);
                }
                if let Some(layer) = reads {
                    tile.derivatives(layer)[row * features_stride + f] = d_phi;
                }
            }
        }
    }
}
