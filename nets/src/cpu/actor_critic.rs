//! Multilayer perceptrons for actor and critic, separate or with a shared trunk.

use std::sync::Mutex;

use gradus_base::random::{Purpose, Stream};
use gradus_envs::Space;

use super::act::{Answer, CpuActor, Describe, Values};
use super::aligned::Aligned;
use super::forward_backward::{Ask, Fisher, ForwardBackward, Learn, Question, Subnet, Transpose};
use super::layer::{Part, padded};
use super::layout::{Head, Layout};
use super::perceptron::{Dense, Tile};
use super::weights::{Named, Visit, Weights, behaviour_by_weights, network_by_weights, reduce};
use super::workspace::{Lane, TILE, Workspace};
use crate::cpu::footprint::Footprint;
use crate::network::{Actions, Input};
use crate::{
    ActionRows, Actor, Batch, Behaviour, FeatureMaps, Inspection, NetworkConfig, NetworkError, Objective, Policy, PolicyOutput, Store, Sums,
};
use gradus_base::math::exp;
use gradus_base::simd::{Level, dispatch};
use gradus_base::tensors::Tensors;
use gradus_base::threads;

/// The largest number of lanes of a batch, and so of the cores that share a batch. The limit must not depend on how many cores the machine
/// has.
const MAX_LANES: usize = 16;
/// With more than four lanes, each has at least this many tiles, because adding up the lanes' gradients takes time.
const LANE_TILES: usize = 4;
/// For batches of at most this many tiles, two threads compute the actor on one core and the critic on another, if they share no layers.
/// All data of a network (activations, gradient, moments, parameters) then stay in one core's cache.
const SIDE_TILES: usize = 4;

/// Actor and critic on the CPU.
pub struct ActorCritic {
    pub(super) config: NetworkConfig,
    pub(super) layout: Layout,
    pub(super) level: Level,
    pub(super) weights: Weights,
    /// The transposed weights of the wide layers of the trunk, the actor and the critic.
    pub(super) copies: [Aligned; 3],
    /// Whether the parameters have changed since `copies` was computed.
    is_stale: bool,
    pub(super) lanes: Vec<Lane>,
    /// Workspaces for small batches: of the actor's tiles, then of the critic's tiles.
    sides: Vec<Workspace>,
    /// Workspaces that actors have used, for the next actors.
    pub(super) spares: Mutex<Vec<Workspace>>,
}

impl ActorCritic {
    /// Creates a network for these spaces, initialised as in the "37 details" study (Huang et al., 2022). Weights are orthogonal, with gain
    /// sqrt 2 in hidden layers, 0.01 in the policy's head and 1 in the critic's head. Biases are 0. Without `orthogonal`, weights and
    /// biases are uniform within 1 / sqrt(inputs) of 0, as in PyTorch's `Linear`.
    ///
    /// The head is categorical for discrete actions and Gaussian for a box.
    pub fn new(config: &NetworkConfig, observations: &Space, actions: &Space, seed: u64) -> Result<Self, NetworkError> {
        let (input, actions) = config.check(observations, actions)?;
        let layout = Layout::new(config, input, actions);
        let mut parameters = Aligned::zeros(layout.parameters());
        let mut stream = Stream::new(seed, Purpose::Initialisation, 0);
        let gain = |dense: &Dense| match dense.layer.weights {
            _ if dense.is_hidden => std::f64::consts::SQRT_2,
            of_actor if of_actor < layout.critic_begin() => 0.01,
            _ => 1.0,
        };
        layout.perceptron.initialise(config.orthogonal, gain, &mut parameters, &mut stream);
        for row in parameters[layout.log_std_range()].chunks_exact_mut(padded(layout.actions)) {
            row[..layout.actions].fill(config.log_std_init);
        }
        Ok(Self {
            config: config.clone(),
            level: Level::best(),
            weights: Weights::new(parameters, layout.groups()),
            copies: layout.transposed.map(Aligned::zeros),
            is_stale: true,
            lanes: Vec::new(),
            sides: Vec::new(),
            spares: Mutex::default(),
            layout,
        })
    }

    /// Returns the memory of a network for these observations and actions; see [`NetworkConfig::footprint`].
    pub(crate) fn footprint(config: &NetworkConfig, input: Input, actions: Actions) -> Footprint {
        let layout = Layout::new(config, input, actions);
        let bytes = |numbers: usize| 4.0 * numbers as f64;
        Footprint {
            parameters: bytes(layout.parameters()),
            transposed: bytes(layout.transposed.iter().sum()),
            workspace: Tile::bytes(&layout.perceptron, TILE) as f64,
            row: 0.0,
            decision: if layout.perceptron.memory > 0 { Tile::bytes(&layout.perceptron, 1) as f64 } else { 0.0 },
            most_lanes: MAX_LANES,
            lane: LANE_TILES * TILE,
        }
    }

    /// Restricts the kernels to an instruction set. The results stay the same.
    pub fn with_level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }

    fn parameters_changed(&mut self) {
        self.is_stale = true;
    }

    /// Updates the transposed weights if the parameters have changed.
    pub(super) fn refresh(&mut self) {
        let Self { layout, level, weights: Weights { values: parameters, .. }, copies, is_stale, .. } = self;
        if !std::mem::take(is_stale) {
            return;
        }
        let mut parts: Vec<_> = layout.parts().into_iter().zip(copies).collect();
        threads::for_each(&mut parts, |_, ((_, layers), copies)| {
            dispatch(*level, Transpose { layout, layers: layers.clone(), parameters, copies });
        });
    }

    /// Returns the number of lanes for a batch of `rows` decisions. It depends only on `rows`.
    fn lanes_for(&mut self, rows: usize) -> usize {
        let tiles = rows.div_ceil(TILE);
        self.with_lanes(tiles.min((tiles / LANE_TILES).clamp(4, MAX_LANES)))
    }

    /// Returns the number of shares for a computation over `rows` rows that adds nothing up over the rows. Any number of shares gives the
    /// same results; many small shares balance the load better.
    fn shares_for(&mut self, rows: usize) -> usize {
        self.with_lanes(rows.div_ceil(TILE / 4).clamp(1, MAX_LANES))
    }

    /// Creates lanes until there are at least `n`; returns `n`.
    pub(super) fn with_lanes(&mut self, n: usize) -> usize {
        while self.lanes.len() < n {
            let gradient = Aligned::zeros(self.layout.parameters());
            self.lanes.push(Lane { workspace: Workspace::new(&self.layout), gradient, sums: Sums::default() });
        }
        n
    }

    /// Panics unless the store and the batch fit this policy.
    pub(super) fn assert_fits(&self, store: &Store, batch: Option<Batch<'_>>) {
        let width = self.layout.width();
        assert_eq!(store.width(), width, "observations: expected rows of {width}, got {}", store.width());
        self.layout.assert_actions(&store.actions);
        if let Some(masks) = &store.masks {
            let expected = store.actions.len() * self.layout.actions;
            assert_eq!(masks.len(), expected, "masks: expected {expected} entries, got {}", masks.len());
        }
        let Some(batch) = batch else { return };
        assert_eq!(batch.indices.len(), batch.weights.len(), "batch: expected one weight per decision");
        if let Some(old) = batch.old {
            let expected = store.actions.len() * self.layout.distribution_width();
            assert_eq!(old.len(), expected, "old distributions: expected {expected} numbers, got {}", old.len());
        }
    }

    fn forward_backward(&mut self, store: &Store, batch: Batch<'_>, objective: &dyn Objective, with_gradient: bool) -> Sums {
        self.assert_fits(store, Some(batch));
        if with_gradient {
            self.refresh();
        }
        let tiles = batch.indices.len().div_ceil(TILE);
        let n = self.lanes_for(batch.indices.len());
        let Self { layout, level, weights: Weights { values: parameters, .. }, copies, lanes, .. } = self;
        let question = Question { layout, parameters, store, batch, objective, tile: TILE };
        let copies = with_gradient.then_some(copies.each_ref().map(|copy| &**copy));
        threads::for_each(&mut lanes[..n], |i, lane| {
            let tiles = i * tiles / n..(i + 1) * tiles / n;
            dispatch(*level, ForwardBackward { question, tiles, lane, copies });
        });
        let mut sums = Sums::default();
        lanes[..n].iter().for_each(|lane| sums.add(&lane.sums));
        sums
    }

    /// Computes the gradient of a small batch, with the two networks in parallel: the forward passes, then the objective tile by tile, then
    /// the backward passes.
    fn learn_sides(&mut self, store: &Store, batch: Batch<'_>, objective: &dyn Objective) -> Sums {
        self.assert_fits(store, Some(batch));
        let tiles = batch.indices.len().div_ceil(TILE);
        while self.sides.len() < 2 * tiles {
            self.sides.push(Workspace::new(&self.layout));
        }
        let Self { layout, level, weights, copies: [_, actor_copy, critic_copy], is_stale, sides, .. } = self;
        let Weights { values: parameters, gradient, gradient_norm, updates, .. } = weights;
        *updates = objective.updates();
        let question = Question { layout, parameters, store, batch, objective, tile: TILE };
        let sides = &mut sides[..2 * tiles];
        // the sides of the networks that are computed: those of the actor come first
        let subnet = question.subnet();
        let computed = match subnet {
            Subnet::Actor => 0..1,
            Subnet::Critic => 1..2,
            Subnet::Both => 0..2,
        };
        match subnet {
            Subnet::Actor => sides[tiles..].iter_mut().for_each(|critic| critic.values.fill(0.0)),
            Subnet::Critic => sides[..tiles].iter_mut().for_each(|actor| actor.outputs.fill(PolicyOutput::default())),
            Subnet::Both => {}
        }
        let first = computed.start * tiles;
        threads::for_each(&mut sides[first..computed.end * tiles], |i, workspace| {
            let subnet = if first + i < tiles { Subnet::Actor } else { Subnet::Critic };
            dispatch(*level, Ask { question, subnet, tile: i % tiles, workspace });
        });

        // not in parallel, because fetching the other core's outputs takes longer than the evaluation
        let (actor, critic) = sides.split_at_mut(tiles);
        let mut sums = Sums::default();
        for (tile, (actor, critic)) in actor.iter_mut().zip(&mut *critic).enumerate() {
            question.loss_grad(tile, &mut actor.outputs, &mut critic.values, &mut sums);
        }

        // if only one network is computed, the other one's copy stays stale
        let is_stale = if subnet == Subnet::Both { std::mem::take(is_stale) } else { *is_stale };
        let begin = layout.critic_begin();
        let (actor_gradient, critic_gradient) = gradient.split_at_mut(begin);
        match subnet {
            Subnet::Actor => critic_gradient.fill(0.0),
            Subnet::Critic => actor_gradient.fill(0.0),
            Subnet::Both => {}
        }
        let actor = (Subnet::Actor, actor, actor_copy, Part { numbers: actor_gradient, begin: 0 }, 0.0);
        let mut learning = [actor, (Subnet::Critic, critic, critic_copy, Part { numbers: critic_gradient, begin }, 0.0)];
        threads::for_each(&mut learning[computed], |_, (subnet, tiles, copy, gradient, squares)| {
            let (subnet, gradient) = (*subnet, Part { numbers: &mut *gradient.numbers, begin: gradient.begin });
            *squares = dispatch(*level, Learn { question, subnet, tiles, copy, is_stale, gradient });
        });
        *gradient_norm = learning.iter().map(|(.., squares)| squares).sum::<f32>().sqrt();
        sums
    }

    /// Evaluates the actor on all decisions of a store. Writes `width` numbers per decision into `numbers`.
    fn describe(&mut self, store: &Store, width: usize, numbers: &mut Vec<f32>, answer: impl Fn(&mut [f32]) -> Answer<'_> + Sync) {
        self.assert_fits(store, None);
        let decisions = store.actions.len();
        if self.memory() > 0 {
            return self.answer_sequences(store, (decisions, width), numbers, answer);
        }
        numbers.resize(decisions * width, 0.0);
        let n = self.shares_for(decisions);
        let share = decisions.div_ceil(n).max(1);
        let Self { layout, level, weights: Weights { values: parameters, .. }, lanes, .. } = self;
        let mut shares: Vec<(&mut Lane, &mut [f32])> = lanes[..n].iter_mut().zip(numbers.chunks_mut(share * width)).collect();
        threads::for_each(&mut shares, |i, (lane, numbers)| {
            let workspace = &mut lane.workspace;
            dispatch(*level, Describe { layout, parameters, store, first: i * share, workspace, answer: answer(numbers) });
        });
    }

    /// A store of observations to look at, each with an action.
    fn looked_at(&self, observations: &[f32]) -> Store {
        let n = observations.len() / self.layout.width();
        let mut actions = match self.layout.head {
            Head::Categorical => ActionRows::Discrete(Vec::new()),
            _ => ActionRows::Continuous { rows: Vec::new(), width: self.layout.actions },
        };
        actions.resize(n);
        Store::new(self.layout.width(), observations.to_vec(), actions)
    }

    /// Returns what the network computes from the observations of a store.
    fn look(&mut self, store: &Store) -> Vec<Inspection> {
        let (mut values, mut logs) = (Vec::new(), Vec::new());
        self.values(store, &mut values);
        if self.layout.choices.is_one() {
            self.distributions(store, &mut logs);
        }
        let width = self.layout.distribution_width();
        let probabilities =
            |i: usize| logs.get(i * width..(i + 1) * width).unwrap_or_default().iter().map(|log| f64::from(exp(*log))).collect();
        let look = |(i, value): (usize, &f32)| Inspection {
            value: Some(f64::from(*value)),
            probabilities: probabilities(i),
            ..Inspection::default()
        };
        values.iter().enumerate().map(look).collect()
    }

    /// Returns the gradient of the last batch by name, in PyTorch's layout.
    pub fn gradient_tensors(&self) -> Tensors {
        self.layout.to_tensors(&self.weights.gradient, "")
    }
}

impl Named for Layout {
    fn for_each_tensor(&self, visit: Visit<'_>) {
        self.perceptron.for_each_tensor(visit);
        let (rows, n, begin) = (self.log_std_rows(), self.actions, self.log_std_range().start);
        match self.head {
            Head::Categorical => {}
            Head::Gaussian { .. } => visit("actor.log_std".into(), &[n], &|i| begin + i),
            Head::Gsde { .. } => visit("actor.log_std".into(), &[rows, n], &|i| begin + i / n * padded(n) + i % n),
        }
    }
}

impl Behaviour for ActorCritic {
    fn observation_width(&self) -> usize {
        self.layout.width()
    }

    fn actor(&self) -> Box<dyn Actor + '_> {
        Box::new(CpuActor::new(self))
    }

    fn memory_width(&self) -> usize {
        self.memory()
    }

    fn sequence_length(&self) -> usize {
        self.config.sequence_length
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

network_by_weights!(ActorCritic);

impl Policy for ActorCritic {
    fn values(&mut self, store: &Store, values: &mut Vec<f32>) {
        assert_eq!(store.width(), self.layout.width(), "observations: expected rows of {}, got {}", self.layout.width(), store.width());
        if self.memory() > 0 {
            return self.answer_sequences(store, (store.rows(), 1), values, |numbers| Answer::Values(numbers));
        }
        values.resize(store.rows(), 0.0);
        let n = self.shares_for(store.rows());
        let share = store.rows().div_ceil(n).max(1);
        let Self { layout, level, weights: Weights { values: parameters, .. }, lanes, .. } = self;
        let mut shares: Vec<(&mut Lane, &mut [f32])> = lanes[..n].iter_mut().zip(values.chunks_mut(share)).collect();
        threads::for_each(&mut shares, |i, (lane, values)| {
            dispatch(*level, Values { layout, parameters, store, first: i * share, workspace: &mut lane.workspace, values });
        });
    }

    fn log_probs(&mut self, store: &Store, log_probs: &mut Vec<f32>) {
        self.describe(store, 1, log_probs, |numbers| Answer::LogProbs(numbers));
    }

    fn distributions(&mut self, store: &Store, rows: &mut Vec<f32>) {
        self.describe(store, self.distribution_width(), rows, |numbers| Answer::Distributions(numbers));
    }

    fn distribution_width(&self) -> usize {
        self.layout.distribution_width()
    }

    fn evaluate(&mut self, store: &Store, batch: Batch<'_>, objective: &dyn Objective) -> Sums {
        if self.memory() > 0 {
            return self.learn_sequences(store, batch, objective, false).0;
        }
        self.forward_backward(store, batch, objective, false)
    }

    fn gradient(&mut self, store: &Store, batch: Batch<'_>, objective: &dyn Objective) -> Sums {
        if self.memory() > 0 {
            let (sums, n) = self.learn_sequences(store, batch, objective, true);
            self.weights.take_gradient(self.level, &gradients(&self.lanes[..n]), objective.updates());
            return sums;
        }
        let tiles = batch.indices.len().div_ceil(TILE);
        if self.layout.trunk.is_empty() && (1..=SIDE_TILES).contains(&tiles) {
            return self.learn_sides(store, batch, objective);
        }
        let sums = self.forward_backward(store, batch, objective, true);
        let n = self.lanes_for(batch.indices.len());
        self.weights.take_gradient(self.level, &gradients(&self.lanes[..n]), objective.updates());
        sums
    }

    fn fisher_vector_product(&mut self, store: &Store, batch: Batch<'_>, vector: &[f32], product: &mut Vec<f32>) {
        assert!(self.supports_fisher(), "this policy's head has no Fisher-vector product");
        self.assert_fits(store, Some(batch));
        assert_eq!(vector.len(), self.weights.values.len(), "vector: expected {} numbers, got {}", self.weights.values.len(), vector.len());
        self.refresh();
        let tiles = batch.indices.len().div_ceil(TILE);
        let n = self.lanes_for(batch.indices.len());
        let Self { layout, level, weights: Weights { values: parameters, .. }, copies, lanes, .. } = self;
        let copies = copies.each_ref().map(|copy| &**copy);
        threads::for_each(&mut lanes[..n], |i, lane| {
            let tiles = i * tiles / n..(i + 1) * tiles / n;
            dispatch(*level, Fisher { layout, parameters, copies, store, batch, vector, tiles, lane });
        });
        product.resize(vector.len(), 0.0);
        reduce(*level, &gradients(&lanes[..n]), product);
        // the critic's part of the lanes' gradients is left from an earlier batch
        for group in self.weights.groups().iter().filter(|group| group.name == "critic") {
            product[group.range.clone()].fill(0.0);
        }
    }

    fn supports_fisher(&self) -> bool {
        !matches!(self.layout.head, Head::Gsde { .. }) && self.memory() == 0
    }

    fn snapshot(&self) -> Box<dyn Policy> {
        Box::new(Self {
            config: self.config.clone(),
            layout: self.layout.clone(),
            level: self.level,
            weights: self.weights.clone(),
            copies: self.copies.clone(),
            is_stale: self.is_stale,
            lanes: Vec::new(),
            sides: Vec::new(),
            spares: Mutex::default(),
        })
    }
}

/// The lanes' gradients.
fn gradients(lanes: &[Lane]) -> Vec<&[f32]> {
    lanes.iter().map(|lane| &*lane.gradient).collect()
}
