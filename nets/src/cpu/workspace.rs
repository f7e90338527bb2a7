//! What a thread writes to while it computes a tile of rows of actor and critic.

use super::aligned::Aligned;
use super::layer::padded;
use super::layout::{Head, Layout};
use super::perceptron::Tile;
use crate::sequences::Plan;
use crate::{PolicyOutput, Sums};
use gradus_base::simd::Square;

/// Rows per tile; a recurrent network has whole sequences in a tile.
pub(super) const TILE: usize = 64;

/// A tile's activations and derivatives.
pub(super) struct Workspace {
    pub tile: Tile,
    /// With shared layers: the actor's derivative with respect to their outputs.
    pub of_actor: Aligned,
    /// The policy's outputs for each row, except the value, which is in `values`. The objective replaces them by weight x derivative.
    pub outputs: Vec<PolicyOutput>,
    pub values: Vec<f32>,
    pub head: HeadSpace,
}

impl Workspace {
    pub fn new(layout: &Layout) -> Self {
        Self::with_room(layout, TILE)
    }

    /// Creates a workspace for tiles of this many rows, a multiple of 16.
    fn with_room(layout: &Layout, rows: usize) -> Self {
        let shared = layout.trunk.end.checked_sub(1).map_or(0, |last| layout.perceptron.layers[last].row());
        Self {
            tile: Tile::new(&layout.perceptron, rows),
            of_actor: Aligned::zeros(rows * shared),
            outputs: vec![PolicyOutput::default(); rows],
            values: vec![0.0; rows],
            head: HeadSpace::new(layout, rows),
        }
    }

    /// Makes room for the rows of some sequences, which a recurrent network reads in one tile, and begins them.
    pub fn begin(&mut self, layout: &Layout, plan: &Plan) {
        let rows = padded(plan.rows.len());
        if self.tile.room(&layout.perceptron) < rows {
            *self = Self::with_room(layout, rows);
        }
        self.tile.begin(&plan.steps, &plan.memory);
    }
}

/// Buffers of the heads; a buffer that the head does not use is empty.
pub(super) struct HeadSpace {
    /// Entropies of the rows, which the backward pass reads again.
    pub entropies: Vec<f32>,
    /// For a narrow categorical head: log-probabilities and probabilities, actions x rows, sixteen rows at a time.
    pub columns: Vec<[Square; 2]>,
    /// Log standard deviations by row, and the derivatives with respect to them.
    pub log_stds: Aligned,
    pub d_log_stds: Aligned,
    /// For gSDE: phi^2, by row.
    pub squares: Aligned,
    /// For gSDE: sigma^2, one row per feature.
    pub variances: Aligned,
}

impl HeadSpace {
    fn new(layout: &Layout, all: usize) -> Self {
        let stride = padded(layout.actions);
        let rows = if layout.head == Head::Categorical { 0 } else { all };
        let (features, f_stride) =
            if matches!(layout.head, Head::Gsde { .. }) { (layout.features(), layout.feature_stride()) } else { (0, 0) };
        Self {
            entropies: vec![0.0; all],
            columns: if layout.is_narrow() { vec![[[[0.0; 16]; 16]; 2]; all / 16] } else { Vec::new() },
            log_stds: Aligned::zeros(rows * stride),
            d_log_stds: Aligned::zeros(rows * stride),
            squares: Aligned::zeros(all * f_stride),
            variances: Aligned::zeros(features * stride),
        }
    }
}

/// A part of a batch with its own activations and gradient.
pub(super) struct Lane {
    pub workspace: Workspace,
    pub gradient: Aligned,
    pub sums: Sums,
}
