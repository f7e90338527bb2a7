//! Networks of continuous actions: an actor, and critics of observations and actions.

mod head;
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
use crate::noise::RowNoise;
use crate::policy::restore;
use crate::q_actor_critic::{actor_noise, fill_normal};
use crate::store::Numbers;
use crate::{
    ActionRows, ActionScale, Actor, ActorObjective, ActorState, Batch, Behaviour, Choice, Evaluated, Inspection, NetworkConfig,
    NetworkError, QActor, QActorHead, Store, Sums, UpdatedGroups, ValueObjective,
};
use gradus_base::simd::Level;
use gradus_base::tensors::Tensors;
use gradus_base::threads;
use head::{ActorTile, Noise};
use layout::QActorLayout;
use tile::{Decisions, QActorTile};

/// The largest number of tiles that keep their activations. A larger batch is computed in several parts.
const MAX_TILES: usize = 64;

/// A network of continuous actions on the CPU.
pub struct QActorCritic {
    layout: QActorLayout,
    config: NetworkConfig,
    level: Level,
    weights: Weights,
    tiles: Vec<QActorTile>,
    /// Tiles that actors have used, for the next actors.
    spares: Mutex<Vec<ActorTile>>,
}

impl QActorCritic {
    /// Creates a network for these spaces. With `orthogonal`, weights are orthogonal, with gain sqrt 2 in hidden layers, 0.01 in the actor's
    /// last layer and 1 in the critics', and biases are 0. Otherwise, weights and biases are uniform within 1 / sqrt(inputs) of 0, as in
    /// PyTorch's `Linear`.
    pub fn new(config: &NetworkConfig, head: QActorHead, observations: &Space, actions: &Space, seed: u64) -> Result<Self, NetworkError> {
        let (width, scale) = config.check_q_actor(head, observations, actions)?;
        let layout = QActorLayout::new(config, head, width, scale);
        let mut parameters = Aligned::zeros(layout.parameters());
        let mut stream = Stream::new(seed, Purpose::Initialisation, 0);
        let mut initialise = |perceptron: &super::perceptron::Perceptron, of_output: f64| {
            let gain = |is_hidden: bool| if is_hidden { std::f64::consts::SQRT_2 } else { of_output };
            perceptron.initialise(config.orthogonal, |dense| gain(dense.is_hidden), &mut parameters, &mut stream);
        };
        initialise(&layout.actor, 0.01);
        layout.critics.iter().for_each(|critic| initialise(critic, 1.0));
        if let Some(range) = &layout.log_stds {
            let rows = parameters[range.clone()].chunks_exact_mut(super::layer::padded(layout.actions()));
            rows.for_each(|row| row[..layout.scale.width()].fill(config.log_std_init));
        }
        Ok(Self {
            level: Level::best(),
            config: config.clone(),
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

    /// Returns the memory of a network for these observations and actions; see [`NetworkConfig::q_actor_footprint`].
    pub(crate) fn footprint(config: &NetworkConfig, head: QActorHead, width: usize, scale: ActionScale) -> Footprint {
        let layout = QActorLayout::new(config, head, width, scale);
        Footprint {
            parameters: 4.0 * layout.parameters() as f64,
            transposed: 0.0,
            workspace: QActorTile::bytes(&layout) as f64,
            row: 0.0,
            decision: 0.0,
            most_lanes: 0,
            lane: ROWS,
        }
    }

    /// Creates tiles until there are at least `n`.
    fn with_tiles(&mut self, n: usize) {
        while self.tiles.len() < n {
            self.tiles.push(QActorTile::new(&self.layout));
        }
    }

    /// Nothing is computed from the parameters in advance.
    fn parameters_changed(&mut self) {}

    fn assert_width(&self, store: &Store) {
        let width = self.layout.width();
        assert_eq!(store.width(), width, "observations: expected rows of {width}, got {}", store.width());
    }

    /// Draws standard normal numbers for `rows` rows, or with gSDE for one noise matrix. None without a stream.
    fn draw(&self, rows: usize, noise: Option<&mut Stream>) -> Vec<f32> {
        let n = match &self.layout.log_stds {
            Some(_) => self.layout.features() * self.layout.actions(),
            None => rows * self.layout.actions(),
        };
        match (noise, self.layout.head.actor) {
            (Some(stream), QActor::Squashed(_)) => (0..n).map(|_| stream.normal()).collect(),
            _ => Vec::new(),
        }
    }

    /// Lets `work` compute one part of `batch` after another, with the number of the part's first decision, and then sums up the gradient of
    /// the parameters of `updates`.
    fn learn(
        &mut self,
        store: &Store,
        batch: Batch<'_>,
        updates: UpdatedGroups,
        work: impl Fn(Level, Decisions<'_>, usize, usize, &mut QActorTile) + Sync,
    ) -> Evaluated {
        self.assert_width(store);
        assert_eq!(batch.indices.len(), batch.weights.len(), "batch: expected one weight per decision");
        let mut evaluated = Evaluated::default();
        let most = MAX_TILES * ROWS;
        for first in (0..batch.indices.len().max(1)).step_by(most) {
            let range = first..batch.indices.len().min(first + most);
            let part = Batch::new(&batch.indices[range.clone()], &batch.weights[range]);
            let n = part.indices.len().div_ceil(ROWS);
            self.with_tiles(n);
            let Self { layout, level, weights, tiles, .. } = self;
            let decisions = Decisions { layout, parameters: &weights.values, store, batch: part };
            threads::for_each(&mut tiles[..n], |number, tile| work(*level, decisions, number, first, tile));
            tiles[..n].iter().for_each(|tile| evaluated.extend(&tile.evaluated));
            self.add_up(n, first > 0, updates);
        }
        evaluated
    }

    /// Computes the gradient of the first `n` tiles. With `adds`, adds it to the gradient.
    fn add_up(&mut self, n: usize, adds: bool, updates: UpdatedGroups) {
        let Self { layout, level, weights, tiles, .. } = self;
        let tiles = &tiles[..n];
        weights.updates = updates;
        if updates == UpdatedGroups::Critic {
            let of = |k: usize| tiles.iter().map(|tile| &tile.critics[k]).collect::<Vec<&Tile>>();
            let parts: Vec<_> = layout.critics.iter().enumerate().map(|(k, critic)| (critic, of(k))).collect();
            weights.gradient_norm = gradient(*level, &parts, adds, &mut weights.gradient[layout.of_critics()]);
            return;
        }
        let parts = [(&layout.actor, tiles.iter().map(|tile| &tile.actor.tile).collect())];
        weights.gradient_norm = gradient(*level, &parts, adds, &mut weights.gradient[layout.actor.range.clone()]);
        if let Some(range) = &layout.log_stds {
            let own = &mut weights.gradient[range.clone()];
            if !adds {
                own.fill(0.0);
            }
            for tile in tiles {
                own.iter_mut().zip(&tile.actor.d_log_stds).for_each(|(sum, d)| *sum += d);
            }
            let squares = own.iter().map(|d| d * d).sum::<f32>();
            weights.gradient_norm = weights.gradient_norm.mul_add(weights.gradient_norm, squares).sqrt();
        }
    }
}

impl Behaviour for QActorCritic {
    fn observation_width(&self) -> usize {
        self.layout.width()
    }

    fn actor(&self) -> Box<dyn Actor + '_> {
        let spare = self.spares.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let tile = Some(spare.unwrap_or_else(|| ActorTile::new(&self.layout)));
        let noise = actor_noise(&self.config, self.layout.features(), self.layout.actions());
        Box::new(CpuActor { network: self, tile, noise })
    }

    /// The value is the smallest Q_k(s, a) for the action a = tanh mu(s).
    fn inspect(&mut self, observations: &[f32]) -> Vec<Inspection> {
        let n = observations.len() / self.layout.width();
        let store = Store::new(self.layout.width(), observations.to_vec(), ActionRows::Discrete(vec![0; n]));
        let (mut actions, mut values) = (Vec::new(), Vec::new());
        crate::QActorCritic::actions(self, &store, 0..n, None, &mut actions, &mut Vec::new());
        crate::QActorCritic::q_values(self, &store, 0..n, &actions, &mut values);
        let least = |q: &[f32]| q.iter().copied().reduce(f32::min).map(f64::from);
        values.chunks(self.layout.critics.len()).map(|q| Inspection { value: least(q), ..Inspection::default() }).collect()
    }

    behaviour_by_weights!();
}

network_by_weights!(QActorCritic);

impl crate::QActorCritic for QActorCritic {
    fn head(&self) -> QActorHead {
        self.layout.head
    }

    fn action_width(&self) -> usize {
        self.layout.actions()
    }

    fn actions(&mut self, store: &Store, rows: Range<usize>, noise: Option<&mut Stream>, actions: &mut Vec<f32>, log_probs: &mut Vec<f32>) {
        self.assert_width(store);
        let (d, width) = (self.layout.actions(), self.layout.width());
        actions.resize(rows.len() * d, 0.0);
        log_probs.resize(rows.len(), 0.0);
        let epsilon = self.draw(rows.len(), noise);
        self.with_tiles(rows.len().div_ceil(ROWS).min(MAX_TILES));
        let Self { layout, level, weights: Weights { values: parameters, .. }, tiles, .. } = self;
        let most = MAX_TILES * ROWS;
        for (part, (actions, log_probs)) in actions.chunks_mut(most * d).zip(log_probs.chunks_mut(most)).enumerate() {
            let outputs = actions.chunks_mut(ROWS * d).zip(log_probs.chunks_mut(ROWS));
            let mut tiles: Vec<_> = tiles.iter_mut().zip(outputs).collect();
            threads::for_each(&mut tiles, |number, (QActorTile { actor, .. }, (actions, log_probs))| {
                let first = part * most + number * ROWS;
                let begin = rows.start + first;
                let observations = store.numbers().part(begin * width..(begin + log_probs.len()) * width);
                let noise = noise_of(layout, &epsilon, first, log_probs.len());
                actor.choose(*level, (layout, parameters), Observed::Block(observations), noise);
                actions.copy_from_slice(&actor.actions[..actions.len()]);
                log_probs.copy_from_slice(&actor.log_probs[..log_probs.len()]);
            });
        }
    }

    fn q_values(&mut self, store: &Store, rows: Range<usize>, actions: &[f32], values: &mut Vec<f32>) {
        self.assert_width(store);
        let (d, n) = (self.layout.actions(), self.layout.critics.len());
        assert_eq!(actions.len(), rows.len() * d, "actions: expected a row of {d} numbers for each observation");
        values.resize(rows.len() * n, 0.0);
        self.with_tiles(rows.len().div_ceil(ROWS).min(MAX_TILES));
        let Self { layout, level, weights: Weights { values: parameters, .. }, tiles, .. } = self;
        let most = MAX_TILES * ROWS;
        for (part, (values, actions)) in values.chunks_mut(most * n).zip(actions.chunks(most * d)).enumerate() {
            let parts = values.chunks_mut(ROWS * n).zip(actions.chunks(ROWS * d));
            let mut tiles: Vec<_> = tiles.iter_mut().zip(parts).collect();
            threads::for_each(&mut tiles, |number, (tile, (values, actions))| {
                let first = rows.start + part * most + number * ROWS;
                let observations = (first..rows.end).map(|row| store.observation(row));
                tile.q_values(*level, (layout, parameters), observations.zip(actions.chunks_exact(d)), values);
            });
        }
    }

    fn critic_gradient(&mut self, store: &Store, batch: Batch<'_>, objective: &dyn ValueObjective) -> Evaluated {
        let d = self.layout.actions();
        let is_right = matches!(store.actions, ActionRows::Continuous { width, .. } if width == d);
        assert!(is_right, "actions: expected rows of {d} numbers, got {}", store.actions.kind());
        let work = |level, of: Decisions<'_>, number, _, tile: &mut QActorTile| tile.criticise_decisions(level, of, number, objective);
        self.learn(store, batch, UpdatedGroups::Critic, work)
    }

    fn actor_gradient(&mut self, store: &Store, batch: Batch<'_>, noise: Option<&mut Stream>, objective: &dyn ActorObjective) -> Sums {
        let epsilon = self.draw(batch.indices.len(), noise);
        let work = |level, of: Decisions<'_>, number, first, tile: &mut QActorTile| {
            let rows = ROWS.min(of.batch.indices.len() - number * ROWS);
            let noise = noise_of(of.layout, &epsilon, first + number * ROWS, rows);
            tile.act_and_criticise(level, of, number, (noise, objective));
        };
        self.learn(store, batch, UpdatedGroups::Actor, work).sums
    }

    fn snapshot(&self) -> Box<dyn crate::QActorCritic> {
        Box::new(Self {
            layout: self.layout.clone(),
            config: self.config.clone(),
            level: self.level,
            weights: self.weights.clone(),
            tiles: Vec::new(),
            spares: Mutex::default(),
        })
    }

    fn track(&mut self, online: &dyn crate::QActorCritic, tau: f32) {
        let online = (online as &dyn Any).downcast_ref::<Self>().expect("a network of the same engine");
        track(self.level, &mut self.weights.values, &online.weights.values, tau);
    }
}

/// The noise of `rows` rows from row `first` on; `epsilon` is what [`QActorCritic::draw`] drew.
fn noise_of<'a>(layout: &QActorLayout, epsilon: &'a [f32], first: usize, rows: usize) -> Noise<'a> {
    match layout.log_stds {
        _ if epsilon.is_empty() => Noise::Zero,
        Some(_) => Noise::Matrices { numbers: epsilon, is_shared: true },
        None => Noise::Rows(&epsilon[first * layout.actions()..(first + rows) * layout.actions()]),
    }
}

/// The actor of a [`QActorCritic`].
struct CpuActor<'a> {
    network: &'a QActorCritic,
    /// Returned to the network when the actor is dropped.
    tile: Option<ActorTile>,
    noise: RowNoise,
}

impl Drop for CpuActor<'_> {
    fn drop(&mut self) {
        self.network.spares.lock().unwrap_or_else(PoisonError::into_inner).extend(self.tile.take());
    }
}

impl Actor for CpuActor<'_> {
    fn act(&mut self, observations: &[f32], _: Option<&[bool]>, choice: Choice<'_>, actions: &mut ActionRows, log_probs: &mut [f32]) {
        let QActorCritic { layout, level, weights: Weights { values: parameters, .. }, .. } = self.network;
        let (width, d) = (layout.width(), layout.actions());
        assert!(observations.len().is_multiple_of(width), "observations: expected rows of {width} numbers");
        let rows = observations.len() / width;
        assert_eq!(rows, log_probs.len(), "log-probabilities: expected room for {rows}");
        actions.resize(rows);
        let is_sampled = matches!(layout.head.actor, QActor::Squashed(_)) && matches!(choice, Choice::Sample(_));
        if let (Choice::Sample(streams), true) = (choice, is_sampled) {
            assert_eq!(streams.len(), rows, "streams: expected one per row");
            self.noise.draw(streams, fill_normal);
        }
        let ActionRows::Continuous { rows: actions, .. } = actions else { panic!("actions: expected rows, got {}", actions.kind()) };
        let tile = self.tile.as_mut().expect("an actor keeps its tile until it is dropped");
        let blocks = observations.chunks(ROWS * width).zip(actions.chunks_mut(ROWS * d).zip(log_probs.chunks_mut(ROWS)));
        for (i, (observations, (actions, log_probs))) in blocks.enumerate() {
            let (first, n) = (i * ROWS, log_probs.len());
            let noise = match layout.log_stds {
                _ if !is_sampled => Noise::Zero,
                Some(_) => Noise::Matrices { numbers: self.noise.of(first..first + n), is_shared: false },
                None => Noise::Rows(self.noise.of(first..first + n)),
            };
            tile.choose(*level, (layout, parameters), Observed::Block(Numbers::F32(observations)), noise);
            actions.copy_from_slice(&tile.actions[..actions.len()]);
            layout.scale.unscale(actions);
            log_probs.copy_from_slice(&tile.log_probs[..n]);
        }
        if let QActor::Squashed(_) = layout.head.actor {
            let log_scale = layout.scale.log_scale();
            log_probs.iter_mut().for_each(|log_prob| *log_prob -= log_scale);
        }
    }

    fn release(&mut self, row: usize, is_taken: bool) {
        self.noise.release(row, is_taken);
    }

    fn take_state(&mut self) -> ActorState {
        Some(Box::new(self.noise.take()))
    }

    fn set_state(&mut self, state: ActorState) {
        restore(&mut self.noise, state);
    }
}
