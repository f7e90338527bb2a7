//! Actor and critics over a tile of rows.

use super::super::layer::padded;
use super::super::perceptron::{Observed, ROWS, Tile};
use super::head::{ActorTile, Noise, ThroughActions};
use super::layout::QActorLayout;
use crate::{ActionRows, ActorObjective, Batch, Evaluated, Evaluation, Of, QValues, Store, ValueObjective};
use gradus_base::simd::{Level, dispatch};

/// The activations of some rows in all networks.
pub(super) struct QActorTile {
    pub actor: ActorTile,
    pub critics: Vec<Tile>,
    /// Scaled actions of the store.
    actions: Vec<f32>,
    /// Q_k(s, a) of each row, and the derivative of its objective.
    q: Vec<f32>,
    derivative: Vec<f32>,
    pub evaluated: Evaluated,
}

/// Some decisions of a batch.
#[derive(Clone, Copy)]
pub(super) struct Decisions<'a> {
    pub layout: &'a QActorLayout,
    pub parameters: &'a [f32],
    pub store: &'a Store,
    pub batch: Batch<'a>,
}

impl QActorTile {
    pub fn new(layout: &QActorLayout) -> Self {
        Self {
            actor: ActorTile::new(layout),
            critics: layout.critics.iter().map(|critic| Tile::new(critic, ROWS).with_input_derivatives(critic)).collect(),
            actions: vec![0.0; ROWS * layout.actions()],
            q: vec![0.0; ROWS * layout.critics.len()],
            derivative: vec![0.0; layout.critics.len()],
            evaluated: Evaluated::default(),
        }
    }

    /// Bytes of a tile.
    pub fn bytes(layout: &QActorLayout) -> usize {
        Tile::bytes(&layout.actor, ROWS) + layout.critics.iter().map(|critic| Tile::bytes(critic, ROWS)).sum::<usize>()
    }

    /// Lets the first `critics` critics compute Q(s, a) of at most [`ROWS`] observations and actions. The result is in `q`.
    pub fn criticise<'a>(
        &mut self,
        level: Level,
        (layout, parameters): (&QActorLayout, &[f32]),
        critics: usize,
        pairs: impl Iterator<Item = (&'a [f32], &'a [f32])> + Clone,
    ) {
        for (k, (tile, critic)) in self.critics.iter_mut().zip(&layout.critics).take(critics).enumerate() {
            tile.read_pairs(critic.width, pairs.clone());
            tile.forward(level, critic, parameters);
            let last = critic.layers.len() - 1;
            let outputs = tile.outputs(last).chunks_exact(critic.layers[last].stride()).take(tile.rows());
            self.q.iter_mut().skip(k).step_by(critics).zip(outputs).for_each(|(q, output)| *q = output[0]);
        }
    }

    /// As [`criticise`](QActorTile::criticise) of all critics, with the result as rows.
    pub fn q_values<'a>(
        &mut self,
        level: Level,
        (layout, parameters): (&QActorLayout, &[f32]),
        pairs: impl Iterator<Item = (&'a [f32], &'a [f32])> + Clone,
        values: &mut [f32],
    ) {
        self.criticise(level, (layout, parameters), layout.critics.len(), pairs);
        values.copy_from_slice(&self.q[..values.len()]);
    }

    /// Evaluates a critics' objective over the decisions of tile number `number`, and runs the backward pass of the critics.
    pub fn criticise_decisions(&mut self, level: Level, of: Decisions<'_>, number: usize, objective: &dyn ValueObjective) {
        let Decisions { layout, parameters, store, batch } = of;
        let (indices, weights) = part(batch, number);
        let (d, n) = (layout.actions(), layout.critics.len());
        let ActionRows::Continuous { rows, .. } = &store.actions else { return };
        let mut actions = std::mem::take(&mut self.actions);
        for (to, index) in actions.chunks_exact_mut(d).zip(indices) {
            to.copy_from_slice(&rows[*index as usize * d..(*index as usize + 1) * d]);
        }
        layout.scale.scale(&mut actions[..indices.len() * d]);
        let observations = indices.iter().map(|index| store.observation(*index as usize));
        self.criticise(level, (layout, parameters), n, observations.zip(actions.chunks_exact(d)));
        self.actions = actions;

        let Self { critics, q, derivative, evaluated, .. } = self;
        evaluated.clear();
        clear_derivatives(layout, &mut critics[..n]);
        for (row, (index, weight)) in indices.iter().zip(weights).enumerate() {
            if *weight == 0.0 {
                evaluated.add(0.0, &Evaluation::default());
                continue;
            }
            let evaluation = objective.decision(*index as usize, QValues::new(&q[row * n..(row + 1) * n], derivative));
            evaluated.add(*weight, &evaluation);
            set_derivatives(layout, critics, row, derivative.iter().map(|d| weight * (evaluation.loss.q * d)));
        }
        critics.iter_mut().zip(&layout.critics).for_each(|(tile, critic)| tile.backward(level, critic, parameters, None));
    }

    /// Evaluates an actor's objective over the decisions of tile number `number`, and runs the backward pass through the critics and the
    /// actions into the actor.
    pub fn act_and_criticise(
        &mut self,
        level: Level,
        of: Decisions<'_>,
        number: usize,
        (noise, objective): (Noise<'_>, &dyn ActorObjective),
    ) {
        let Decisions { layout, parameters, store, batch } = of;
        let (indices, weights) = part(batch, number);
        let (d, width) = (layout.actions(), layout.width());
        let n = objective.critics(layout.critics.len()).min(layout.critics.len());
        let observations = indices.iter().map(|index| store.observation(*index as usize));
        let log_std_rows = layout.log_stds.clone();
        self.actor.choose(level, (layout, parameters), Observed::Chosen(store.numbers(), indices), noise);
        let actions = std::mem::take(&mut self.actor.actions);
        self.criticise(level, (layout, parameters), n, observations.zip(actions.chunks_exact(d)));
        self.actor.actions = actions;

        let Self { actor, critics, q, derivative, evaluated, .. } = self;
        evaluated.clear();
        clear_derivatives(layout, &mut critics[..n]);
        actor.d_log_probs.fill(0.0);
        for (row, (index, weight)) in indices.iter().zip(weights).enumerate().filter(|(_, (_, weight))| **weight != 0.0) {
            let derivative = &mut derivative[..n];
            let q = QValues::new(&q[row * n..(row + 1) * n], derivative);
            let evaluation = objective.decision(*index as usize, Of::variable(actor.log_probs[row]), q);
            evaluated.add(*weight, &evaluation);
            actor.d_log_probs[row] = weight * evaluation.loss.slopes.log_prob;
            set_derivatives(layout, &mut critics[..n], row, derivative.iter().map(|d| weight * (evaluation.loss.q * d)));
        }
        // dL/da is the sum over the critics; with the smallest of several critics, each row depends on one of them
        actor.d_actions.fill(0.0);
        for (tile, critic) in critics[..n].iter_mut().zip(&layout.critics) {
            let (last, stride) = (critic.layers.len() - 1, critic.layers[critic.layers.len() - 1].stride());
            let rows: Vec<usize> = (0..indices.len()).filter(|row| tile.derivatives(last)[row * stride] != 0.0).collect();
            tile.keep(critic, &rows);
            tile.backward_to_input(level, critic, parameters);
            for (row, input) in rows.iter().zip(tile.input_derivatives().chunks_exact(padded(critic.width))) {
                let sum = &mut actor.d_actions[row * d..(row + 1) * d];
                sum.iter_mut().zip(&input[width..]).for_each(|(sum, d)| *sum += d);
            }
        }
        dispatch(level, ThroughActions { layout, noise, tile: actor });
        // with gSDE, the features also determine the noise
        let other = log_std_rows.and_then(|_| layout.actor.layers.last()).and_then(|dense| dense.reads);
        actor.tile.backward(level, &layout.actor, parameters, other);
    }
}

/// The decisions of tile number `number` and their weights.
fn part(batch: Batch<'_>, number: usize) -> (&[u32], &[f32]) {
    let range = number * ROWS..batch.indices.len().min((number + 1) * ROWS);
    (&batch.indices[range.clone()], &batch.weights[range])
}

/// Sets the derivatives with respect to the outputs of some critics to 0.
fn clear_derivatives(layout: &QActorLayout, critics: &mut [Tile]) {
    critics.iter_mut().zip(&layout.critics).for_each(|(tile, critic)| tile.derivatives(critic.layers.len() - 1).fill(0.0));
}

/// Sets the derivatives with respect to the outputs of some critics in row `row`.
fn set_derivatives(layout: &QActorLayout, critics: &mut [Tile], row: usize, derivatives: impl Iterator<Item = f32>) {
    for ((tile, critic), derivative) in critics.iter_mut().zip(&layout.critics).zip(derivatives) {
        let last = critic.layers.len() - 1;
        tile.derivatives(last)[row * critic.layers[last].stride()] = derivative;
    }
}
