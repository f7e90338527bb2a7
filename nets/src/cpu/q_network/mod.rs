//! Networks of action values: multilayer perceptrons with layer normalisation and a dueling architecture if requested.

mod layout;
mod tile;

use std::any::Any;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use gradus_base::random::{Purpose, Stream};
use gradus_envs::Space;

use super::aligned::Aligned;
use super::perceptron::{Observed, ROWS, Tile, gradient};
use super::update::track;
use super::weights::{Named, Weights, behaviour_by_weights, network_by_weights};
use crate::cpu::footprint::Footprint;
use crate::network::Input;
use crate::sequences::{MOST, plans_of_batch, plans_of_rows};
use crate::store::Numbers;
use crate::{
    ActionRows, Actor, Batch, Behaviour, Choice, Evaluated, FeatureMaps, Inspection, NetworkConfig, NetworkError, QHead, Store,
    UpdatedGroups, ValueObjective,
};
use gradus_base::simd::Level;
use gradus_base::tensors::Tensors;
use gradus_base::threads;
use layout::QLayout;
use tile::{QTile, Question};

/// The largest number of tiles that keep their activations. A larger batch is computed in several parts.
const MAX_TILES: usize = 64;

/// A network of action values on the CPU.
pub struct QNetwork {
    layout: QLayout,
    sequence_length: usize,
    level: Level,
    weights: Weights,
    tiles: Vec<QTile>,
    /// Tiles that actors have used, for the next actors.
    spares: Mutex<Vec<QTile>>,
}

impl QNetwork {
    /// Creates a network for these spaces. With `orthogonal`, weights are orthogonal with gain sqrt 2 and biases are 0, as in CleanRL's PQN.
    /// Otherwise, weights and biases are uniform within 1 / sqrt(inputs) of 0, as in PyTorch's `Linear`. Gains of layer normalisations are 1
    /// and shifts are 0.
    pub fn new(config: &NetworkConfig, head: QHead, observations: &Space, actions: &Space, seed: u64) -> Result<Self, NetworkError> {
        let (input, actions) = config.check_q(head, observations, actions)?;
        let layout = QLayout::new(config, head, input, actions);
        let mut parameters = Aligned::zeros(layout.parameters());
        let mut stream = Stream::new(seed, Purpose::Initialisation, 0);
        layout.perceptron.initialise(config.orthogonal, |_| std::f64::consts::SQRT_2, &mut parameters, &mut stream);
        Ok(Self {
            sequence_length: config.sequence_length,
            level: Level::best(),
            weights: Weights::new(parameters, layout.groups()),
            tiles: Vec::new(),
            spares: Mutex::default(),
            layout,
        })
    }

    /// Restricts the kernels to an instruction set. The results stay the same.
    pub fn with_level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }

    /// Returns the gradient of the last batch by name, in PyTorch's layout.
    pub fn gradient_tensors(&self) -> Tensors {
        self.layout.to_tensors(&self.weights.gradient, "")
    }

    /// Returns the memory of a network for these observations and actions; see [`NetworkConfig::q_footprint`].
    pub(crate) fn footprint(config: &NetworkConfig, head: QHead, input: Input, actions: usize) -> Footprint {
        let layout = QLayout::new(config, head, input, actions);
        let bytes = |numbers: usize| 4.0 * numbers as f64;
        Footprint {
            parameters: bytes(layout.parameters()),
            transposed: 0.0,
            workspace: QTile::bytes(&layout) as f64,
            row: 0.0,
            decision: if layout.perceptron.memory > 0 { Tile::bytes(&layout.perceptron, 1) as f64 } else { 0.0 },
            most_lanes: 0,
            lane: ROWS,
        }
    }

    /// Creates tiles until there are at least `n`.
    fn with_tiles(&mut self, n: usize) {
        while self.tiles.len() < n {
            self.tiles.push(QTile::new(&self.layout));
        }
    }

    /// Nothing is computed from the parameters in advance.
    fn parameters_changed(&mut self) {}

    /// Panics unless the store and the batch fit this network.
    fn assert_fits(&self, store: &Store, batch: Batch<'_>) {
        let width = self.layout.width();
        assert_eq!(store.width(), width, "observations: expected rows of {width}, got {}", store.width());
        assert!(matches!(store.actions, ActionRows::Discrete(_)), "actions: expected discrete actions, got {}", store.actions.kind());
        assert_eq!(batch.indices.len(), batch.weights.len(), "batch: expected one weight per decision");
    }

    fn forward_backward(&mut self, store: &Store, batch: Batch<'_>, objective: &dyn ValueObjective, with_gradient: bool) -> Evaluated {
        self.assert_fits(store, batch);
        if self.memory() > 0 {
            return self.learn_sequences(store, batch, objective, with_gradient);
        }
        let mut evaluated = Evaluated::default();
        let most = MAX_TILES * ROWS;
        for first in (0..batch.indices.len().max(1)).step_by(most) {
            let range = first..batch.indices.len().min(first + most);
            let part = Batch::new(&batch.indices[range.clone()], &batch.weights[range]);
            let n = part.indices.len().div_ceil(ROWS);
            self.with_tiles(n);
            let Self { layout, level, weights: Weights { values: parameters, .. }, tiles, .. } = self;
            let question = Question { layout, parameters, store, batch: part, objective };
            threads::for_each(&mut tiles[..n], |number, tile| {
                let end = part.indices.len().min((number + 1) * ROWS);
                question.learn(*level, number * ROWS..end, tile, with_gradient);
            });
            tiles[..n].iter().for_each(|tile| evaluated.extend(&tile.evaluated));
            if with_gradient {
                self.add_up(n, first > 0);
            }
        }
        evaluated
    }

    /// As [`forward_backward`](QNetwork::forward_backward), of a network with a memory: each tile has some of the sequences of the batch.
    fn learn_sequences(&mut self, store: &Store, batch: Batch<'_>, objective: &dyn ValueObjective, with_gradient: bool) -> Evaluated {
        let plans = plans_of_batch(store, self.memory(), batch, MOST);
        self.with_tiles(plans.len());
        let Self { layout, level, weights: Weights { values: parameters, .. }, tiles, .. } = self;
        let mut parts: Vec<_> = tiles.iter_mut().zip(&plans).collect();
        threads::for_each(&mut parts, |_, (tile, (plan, weights))| {
            tile.begin(layout, plan);
            let question = Question { layout, parameters, store, batch: Batch::new(&plan.rows, weights), objective };
            question.learn(*level, 0..plan.rows.len(), tile, with_gradient);
        });
        let mut evaluated = Evaluated { errors: vec![0.0; batch.indices.len()], ..Evaluated::default() };
        for (tile, (plan, _)) in self.tiles.iter().zip(&plans) {
            evaluated.sums.add(&tile.evaluated.sums);
            plan.places.iter().zip(&tile.evaluated.errors).for_each(|(place, error)| evaluated.errors[*place as usize] = *error);
        }
        if with_gradient {
            self.add_up(plans.len(), false);
        }
        evaluated
    }

    /// A store of observations to look at, each with an action.
    fn looked_at(&self, observations: &[f32]) -> Store {
        let width = self.layout.width();
        Store::new(width, observations.to_vec(), ActionRows::Discrete(vec![0; observations.len() / width]))
    }

    /// Returns what the network computes from the observations of a store.
    fn look(&mut self, store: &Store) -> Vec<Inspection> {
        let (atoms, mut values) = (self.layout.head.atoms, Vec::new());
        crate::QNetwork::q_values(self, store, 0..store.rows(), &mut values);
        let mean = |atoms: &[f32]| atoms.iter().map(|q| f64::from(*q)).sum::<f64>() / atoms.len() as f64;
        let look = |row: &[f32]| Inspection { action_values: row.chunks(atoms).map(mean).collect(), ..Inspection::default() };
        values.chunks(atoms * self.layout.actions).map(look).collect()
    }

    /// Numbers that the network remembers of an episode.
    fn memory(&self) -> usize {
        self.layout.perceptron.memory
    }

    /// Computes the gradient of the first `n` tiles. With `adds`, adds it to the gradient.
    fn add_up(&mut self, n: usize, adds: bool) {
        let Self { layout, level, weights, tiles, .. } = self;
        let parts = [(&layout.perceptron, tiles[..n].iter().map(|tile| &tile.tile).collect())];
        weights.gradient_norm = gradient(*level, &parts, adds, &mut weights.gradient);
        weights.updates = UpdatedGroups::All;
    }
}

impl Behaviour for QNetwork {
    fn observation_width(&self) -> usize {
        self.layout.width()
    }

    fn actor(&self) -> Box<dyn Actor + '_> {
        let spare = self.spares.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Box::new(QActor { network: self, tile: Some(spare.unwrap_or_else(|| QTile::new(&self.layout))), memory: Vec::new() })
    }

    fn memory_width(&self) -> usize {
        self.memory()
    }

    fn sequence_length(&self) -> usize {
        self.sequence_length
    }

    fn inspect(&mut self, observations: &[f32]) -> Vec<Inspection> {
        let store = self.looked_at(observations);
        self.look(&store)
    }

    fn inspect_episode(&mut self, observations: &[f32]) -> Vec<Inspection> {
        let store = self.looked_at(observations).into_episode(self.memory());
        self.look(&store)
    }

    fn feature_maps(&mut self, observations: &[f32]) -> Vec<FeatureMaps> {
        self.layout.perceptron.feature_maps(self.level, &self.weights.values, observations)
    }

    behaviour_by_weights!();
}

network_by_weights!(QNetwork);

impl crate::QNetwork for QNetwork {
    fn actions(&self) -> usize {
        self.layout.actions
    }

    fn head(&self) -> QHead {
        self.layout.head
    }

    fn q_values(&mut self, store: &Store, rows: Range<usize>, values: &mut Vec<f32>) {
        let width = self.layout.width();
        assert_eq!(store.width(), width, "observations: expected rows of {width}, got {}", store.width());
        values.resize(rows.len() * self.layout.q_width(), 0.0);
        if self.memory() > 0 {
            let plans = plans_of_rows(store, self.memory(), rows.end, MOST);
            self.with_tiles(plans.len());
            let Self { layout, level, weights: Weights { values: parameters, .. }, tiles, .. } = self;
            let mut parts: Vec<_> = tiles.iter_mut().zip(&plans).collect();
            threads::for_each(&mut parts, |_, (tile, plan)| {
                tile.begin(layout, plan);
                tile.forward(*level, (layout, parameters), Observed::Chosen(store.numbers(), &plan.rows));
            });
            for (tile, plan) in tiles.iter().zip(&plans) {
                let q = tile.q(layout).chunks_exact(layout.q_width());
                for (place, q) in plan.places.iter().zip(q).filter(|(place, _)| rows.contains(&(**place as usize))) {
                    let row = *place as usize - rows.start;
                    values[row * layout.q_width()..(row + 1) * layout.q_width()].copy_from_slice(q);
                }
            }
            return;
        }
        let most = MAX_TILES * ROWS;
        let parts = values.chunks_mut(most * self.layout.q_width());
        for (first, values) in rows.clone().step_by(most).zip(parts) {
            let n = (rows.end - first).div_ceil(ROWS).min(MAX_TILES);
            self.with_tiles(n);
            let Self { layout, level, weights: Weights { values: parameters, .. }, tiles, .. } = self;
            let mut tiles: Vec<_> = tiles[..n].iter_mut().zip(values.chunks_mut(ROWS * layout.q_width())).collect();
            threads::for_each(&mut tiles, |i, (tile, values)| {
                let range = first + i * ROWS..rows.end.min(first + (i + 1) * ROWS);
                let observations = store.numbers().part(range.start * width..range.end * width);
                tile.forward(*level, (layout, parameters), Observed::Block(observations));
                values.copy_from_slice(tile.q(layout));
            });
        }
    }

    fn evaluate(&mut self, store: &Store, batch: Batch<'_>, objective: &dyn ValueObjective) -> Evaluated {
        self.forward_backward(store, batch, objective, false)
    }

    fn gradient(&mut self, store: &Store, batch: Batch<'_>, objective: &dyn ValueObjective) -> Evaluated {
        self.forward_backward(store, batch, objective, true)
    }

    fn snapshot(&self) -> Box<dyn crate::QNetwork> {
        Box::new(Self {
            layout: self.layout.clone(),
            sequence_length: self.sequence_length,
            level: self.level,
            weights: self.weights.clone(),
            tiles: Vec::new(),
            spares: Mutex::default(),
        })
    }

    fn track(&mut self, online: &dyn crate::QNetwork, tau: f32) {
        let online = (online as &dyn Any).downcast_ref::<Self>().expect("a network of the same engine");
        track(self.level, &mut self.weights.values, &online.weights.values, tau);
    }
}

/// The actor of a [`QNetwork`]: it takes the action of the greatest value.
struct QActor<'a> {
    network: &'a QNetwork,
    /// Returned to the network when the actor is dropped.
    tile: Option<QTile>,
    /// What is remembered of the episode of each row.
    memory: Vec<f32>,
}

impl Drop for QActor<'_> {
    fn drop(&mut self) {
        self.network.spares.lock().unwrap_or_else(PoisonError::into_inner).extend(self.tile.take());
    }
}

impl Actor for QActor<'_> {
    fn act(&mut self, observations: &[f32], masks: Option<&[bool]>, _: Choice<'_>, actions: &mut ActionRows, log_probs: &mut [f32]) {
        let QNetwork { layout, level, weights: Weights { values: parameters, .. }, .. } = self.network;
        let tile = self.tile.as_mut().expect("an actor keeps its tile until it is dropped");
        assert!(observations.len().is_multiple_of(layout.width()), "observations: expected rows of {} numbers", layout.width());
        let rows = observations.len() / layout.width();
        assert_eq!(rows, log_probs.len(), "log-probabilities: expected room for {rows}");
        actions.resize(rows);
        let ActionRows::Discrete(actions) = actions else { panic!("actions: expected discrete actions, got {}", actions.kind()) };
        let remembered = self.network.memory();
        self.memory.resize(rows * remembered, 0.0);
        let blocks = observations.chunks(ROWS * layout.width()).zip(actions.chunks_mut(ROWS));
        for (first, (observations, actions)) in blocks.enumerate().map(|(i, block)| (i * ROWS, block)) {
            let memory = &mut self.memory[first * remembered..(first + actions.len()) * remembered];
            if remembered > 0 {
                tile.tile.begin(&[actions.len()], memory);
            }
            tile.forward(*level, (layout, parameters), Observed::Block(Numbers::F32(observations)));
            if remembered > 0 {
                tile.tile.recall(&layout.perceptron, memory);
            }
            for (row, (action, q)) in actions.iter_mut().zip(tile.q(layout).chunks_exact(layout.q_width())).enumerate() {
                let mask = masks.map(|masks| &masks[(first + row) * layout.actions..(first + row + 1) * layout.actions]);
                *action = crate::q_network::greedy(q, layout.head.atoms, mask) as u32;
            }
        }
        log_probs.fill(0.0);
    }

    fn memory(&mut self) -> Option<&mut Vec<f32>> {
        (self.network.memory() > 0).then_some(&mut self.memory)
    }
}
