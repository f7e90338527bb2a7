//! A multilayer perceptron for the actor and one for the critic, or a shared one with two heads.

use gradus_envs::Space;
use gradus_envs::random::{Purpose, Stream};

use super::act::{Answer, CpuActor, Describe, Values};
use super::aligned::Aligned;
use super::judge::{Fisher, Judge};
use super::layer::{Layer, padded};
use super::layout::{Chain, Head, Layout};
use super::pass::{Lane, TILE, Workspace};
use super::simd::{Level, dispatch};
use super::update::{BETA1, BETA2, Moments, Reduce, Update};
use crate::init::{orthogonal, uniform};
use crate::tensors::{Tensor, Tensors, TensorsError, get_f32, get_u64};
use crate::threads;
use crate::{Actor, Batch, Group, NetworkConfig, NetworkError, Objective, OptimiserStep, Policy, Store, Sums};

/// Into how many lanes a batch is cut at most. It bounds the cores that can share a batch, and must not depend on their number.
const MAX_LANES: usize = 16;

/// Parameters that are summed up and updated in one piece of work.
const CHUNK: usize = 1024;

/// Actor and critic on the CPU.
pub struct ActorCritic {
    pub(super) config: NetworkConfig,
    pub(super) layout: Layout,
    pub(super) level: Level,
    pub(super) parameters: Aligned,
    transposed: Aligned,
    gradient: Aligned,
    gradient_norm: f32,
    moments: Moments,
    lanes: Vec<Lane>,
}

impl ActorCritic {
    /// A network for these spaces, initialised as the "37 details" study has it: orthogonal weights with gain sqrt 2 in hidden layers,
    /// 0.01 in the policy's head and 1 in the critic's; biases 0. Where the configuration says not orthogonal, weights and biases are
    /// uniform within 1 / sqrt(inputs) of 0, as in PyTorch's `Linear`.
    ///
    /// Discrete actions get a categorical head, a box of actions a Gaussian one.
    pub fn new(config: &NetworkConfig, observations: &Space, actions: &Space, seed: u64) -> Result<Self, NetworkError> {
        let (width, actions) = config.check(observations, actions)?;
        let layout = Layout::new(config, width, actions);
        let mut parameters = Aligned::zeros(layout.parameters);
        let mut stream = Stream::new(seed, Purpose::Initialisation, 0);
        for (name, chain) in layout.chains() {
            for (i, layer) in chain.iter().enumerate() {
                let gain = match name {
                    "actor" if i + 1 == chain.len() => 0.01,
                    "critic" if i + 1 == chain.len() => 1.0,
                    _ => std::f64::consts::SQRT_2,
                };
                let reach = 1.0 / (layer.inputs as f64).sqrt();
                let weights = match config.orthogonal {
                    true => orthogonal(layer.outputs, layer.inputs, gain, &mut stream),
                    false => uniform(layer.outputs * layer.inputs, reach, &mut stream),
                };
                for (i, weight) in weights.into_iter().enumerate() {
                    parameters[layer.weight(i / layer.inputs, i % layer.inputs)] = weight;
                }
                if !config.orthogonal {
                    parameters[layer.bias..layer.bias + layer.outputs].copy_from_slice(&uniform(layer.outputs, reach, &mut stream));
                }
            }
        }
        for row in parameters[layout.log_std_range()].chunks_exact_mut(padded(layout.actions)) {
            row[..layout.actions].fill(config.log_std_init);
        }
        let zeros = Aligned::zeros(layout.parameters);
        let mut policy = Self {
            config: config.clone(),
            level: Level::best(),
            parameters,
            transposed: Aligned::zeros(layout.transposed),
            gradient: zeros.clone(),
            gradient_norm: 0.0,
            moments: Moments { first: zeros.clone(), second: zeros, powers: [1.0; 2] },
            lanes: Vec::new(),
            layout,
        };
        policy.parameters_changed();
        Ok(policy)
    }

    /// Restricts the kernels to an instruction set; the numbers stay the same.
    pub fn with_level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }

    fn parameters_changed(&mut self) {
        let Self { layout, parameters, transposed, .. } = self;
        let layers = layout.chains().into_iter().flat_map(|(_, chain)| chain).filter(|layer| layer.transposed.is_some());
        // the copies lie one after the other, in the order of the layers
        let mut rest = &mut **transposed;
        let mut copies: Vec<(&Layer, &mut [f32])> = Vec::new();
        for layer in layers {
            let (copy, behind) = rest.split_at_mut(layer.transposed_len());
            copies.push((layer, copy));
            rest = behind;
        }
        threads::for_each(&mut copies, |_, (layer, copy)| layer.transpose(parameters, copy));
    }

    /// How many lanes a batch of `rows` is cut into: a function of `rows` alone.
    fn lanes_for(&mut self, rows: usize) -> usize {
        let n = rows.div_ceil(TILE).min(MAX_LANES);
        while self.lanes.len() < n {
            let gradient = Aligned::zeros(self.layout.parameters);
            self.lanes.push(Lane { workspace: Workspace::new(&self.layout), gradient, sums: Sums::default() });
        }
        n
    }

    /// Panics unless these are decisions that this policy can have made.
    fn assert_fits(&self, store: &Store, batch: Option<Batch<'_>>) {
        let Layout { width, .. } = self.layout;
        assert_eq!(store.width(), width, "observations: expected rows of {width}, got {}", store.width());
        self.layout.assert_actions(&store.actions);
        if let Some(masks) = &store.masks {
            let expected = store.actions.len() * self.layout.actions;
            assert_eq!(masks.len(), expected, "masks: expected {expected} places, got {}", masks.len());
        }
        let Some(batch) = batch else { return };
        assert_eq!(batch.indices.len(), batch.weights.len(), "batch: expected one weight per decision");
        if let Some(old) = batch.old {
            let expected = store.actions.len() * self.layout.distribution_width();
            assert_eq!(old.len(), expected, "old distributions: expected {expected} numbers, got {}", old.len());
        }
    }

    fn judge(&mut self, store: &Store, batch: Batch<'_>, objective: &dyn Objective, with_gradient: bool) -> Sums {
        self.assert_fits(store, Some(batch));
        let tiles = batch.indices.len().div_ceil(TILE);
        let n = self.lanes_for(batch.indices.len());
        let Self { layout, level, parameters, transposed, lanes, .. } = self;
        threads::for_each(&mut lanes[..n], |i, lane| {
            let tiles = i * tiles / n..(i + 1) * tiles / n;
            dispatch(*level, Judge { layout, parameters, transposed, store, batch, objective, tiles, lane, with_gradient });
        });
        let mut sums = Sums::default();
        lanes[..n].iter().for_each(|lane| sums.add(&lane.sums));
        sums
    }

    /// Asks the actor about all decisions of a store, `width` numbers each, into `numbers`.
    fn describe(&mut self, store: &Store, width: usize, numbers: &mut Vec<f32>, answer: impl Fn(&mut [f32]) -> Answer<'_> + Sync) {
        self.assert_fits(store, None);
        let decisions = store.actions.len();
        numbers.resize(decisions * width, 0.0);
        let n = self.lanes_for(decisions);
        let share = decisions.div_ceil(n.max(1)).next_multiple_of(TILE).max(TILE);
        let Self { layout, level, parameters, lanes, .. } = self;
        let mut shares: Vec<(&mut Lane, &mut [f32])> = lanes[..n].iter_mut().zip(numbers.chunks_mut(share * width)).collect();
        threads::for_each(&mut shares, |i, (lane, numbers)| {
            let workspace = &mut lane.workspace;
            dispatch(*level, Describe { layout, parameters, store, first: i * share, workspace, answer: answer(numbers) });
        });
    }

    /// Calls `visit` with the name and the shape of every tensor, and with where element (output, input) or (output) lies.
    fn for_each_tensor(&self, mut visit: impl FnMut(String, &[usize], &dyn Fn(usize) -> usize)) {
        for (name, chain) in self.layout.chains() {
            for (i, layer) in chain.iter().enumerate() {
                // numbered as in PyTorch's `Sequential`, where the activations count
                let (outputs, inputs) = (layer.outputs, layer.inputs);
                visit(format!("{name}.{}.weight", 2 * i), &[outputs, inputs], &|i| layer.weight(i / inputs, i % inputs));
                visit(format!("{name}.{}.bias", 2 * i), &[outputs], &|i| layer.bias + i);
            }
        }
        let (rows, n, begin) = (self.layout.log_std_rows(), self.layout.actions, self.layout.log_std_range().start);
        match self.layout.head {
            Head::Categorical => {}
            Head::Gaussian { .. } => visit("actor.log_std".into(), &[n], &|i| begin + i),
            Head::Gsde { .. } => visit("actor.log_std".into(), &[rows, n], &|i| begin + i / n * padded(n) + i % n),
        }
    }

    fn to_tensors(&self, flat: &[f32], prefix: &str) -> Tensors {
        let mut tensors = Tensors::new();
        self.for_each_tensor(|name, shape, at| {
            let data = (0..shape.iter().product()).map(|i| flat[at(i)]).collect();
            tensors.insert(format!("{prefix}{name}"), Tensor::f32(shape, data));
        });
        tensors
    }

    fn flat_from(&self, tensors: &Tensors, prefix: &str) -> Result<Aligned, TensorsError> {
        let mut flat = Aligned::zeros(self.parameters.len());
        let mut result = Ok(());
        self.for_each_tensor(|name, shape, at| match get_f32(tensors, &format!("{prefix}{name}"), shape) {
            Ok(data) => data.iter().enumerate().for_each(|(i, x)| flat[at(i)] = *x),
            Err(error) => result = std::mem::replace(&mut result, Ok(())).and(Err(error)),
        });
        result.map(|()| flat)
    }

    /// The gradient of the last batch by name, in PyTorch's layout.
    pub fn gradient_tensors(&self) -> Tensors {
        self.to_tensors(&self.gradient, "")
    }
}

impl Policy for ActorCritic {
    fn observation_width(&self) -> usize {
        self.layout.width
    }

    fn actor(&self) -> Box<dyn Actor + '_> {
        Box::new(CpuActor::new(self))
    }

    fn values(&mut self, store: &Store, values: &mut Vec<f32>) {
        assert_eq!(store.width(), self.layout.width, "observations: expected rows of {}, got {}", self.layout.width, store.width());
        values.resize(store.rows(), 0.0);
        let n = self.lanes_for(store.rows());
        let share = store.rows().div_ceil(n.max(1)).next_multiple_of(TILE);
        let Self { layout, level, parameters, lanes, .. } = self;
        let mut shares: Vec<(&mut Lane, &mut [f32])> = lanes[..n].iter_mut().zip(values.chunks_mut(share.max(1))).collect();
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
        self.judge(store, batch, objective, false)
    }

    fn gradient(&mut self, store: &Store, batch: Batch<'_>, objective: &dyn Objective) -> Sums {
        let sums = self.judge(store, batch, objective, true);
        let n = self.lanes_for(batch.indices.len());
        self.gradient_norm = reduce(self.level, &self.lanes[..n], &mut self.gradient);
        sums
    }

    fn fisher_vector_product(&mut self, store: &Store, batch: Batch<'_>, vector: &[f32], product: &mut Vec<f32>) {
        assert!(self.supports_fisher(), "this policy's head has no Fisher-vector product");
        self.assert_fits(store, Some(batch));
        assert_eq!(vector.len(), self.parameters.len(), "vector: expected {} numbers, got {}", self.parameters.len(), vector.len());
        let tiles = batch.indices.len().div_ceil(TILE);
        let n = self.lanes_for(batch.indices.len());
        let Self { layout, level, parameters, transposed, lanes, .. } = self;
        threads::for_each(&mut lanes[..n], |i, lane| {
            let tiles = i * tiles / n..(i + 1) * tiles / n;
            dispatch(*level, Fisher { layout, parameters, transposed, store, batch, vector, tiles, lane });
        });
        product.resize(vector.len(), 0.0);
        reduce(*level, &lanes[..n], product);
        // the lanes hold something older here
        for group in self.groups().into_iter().filter(|group| group.name == "critic") {
            product[group.range].fill(0.0);
        }
    }

    fn supports_fisher(&self) -> bool {
        !matches!(self.layout.head, Head::Gsde { .. })
    }

    fn gradient_norm(&self) -> f32 {
        self.gradient_norm
    }

    fn apply(&mut self, step: &OptimiserStep) {
        // as PyTorch's `clip_grad_norm_`
        let scale = (step.max_grad_norm / (self.gradient_norm + 1e-6)).min(1.0);
        self.moments.powers = [self.moments.powers[0] * f64::from(BETA1), self.moments.powers[1] * f64::from(BETA2)];
        let groups = self.groups();
        let Self { level, parameters, gradient, moments, .. } = self;
        let Moments { first, second, powers } = moments;
        let moments = first.chunks_mut(CHUNK).zip(second.chunks_mut(CHUNK));
        let mut chunks: Vec<_> = parameters.chunks_mut(CHUNK).zip(gradient.chunks(CHUNK)).zip(moments).collect();
        threads::for_each(&mut chunks, |i, ((parameters, gradient), (first, second))| {
            let begin = i * CHUNK;
            for Group { name, range } in &groups {
                let part = range.start.clamp(begin, begin + gradient.len()) - begin..range.end.clamp(begin, begin + gradient.len()) - begin;
                let update = Update {
                    rule: step.rule,
                    learning_rate: if *name == "critic" { step.critic_learning_rate } else { step.learning_rate },
                    epsilon: step.epsilon,
                    weight_decay: step.weight_decay,
                    scale,
                    powers: *powers,
                    parameters: &mut parameters[part.clone()],
                    gradient: &gradient[part.clone()],
                    first: &mut first[part.clone()],
                    second: &mut second[part],
                };
                dispatch(*level, update);
            }
        });
        self.parameters_changed();
    }

    fn groups(&self) -> Vec<Group> {
        let range = |chain: &Chain| match (chain.first(), chain.last()) {
            (Some(first), Some(last)) => first.weights..last.bias + padded(last.outputs),
            _ => 0..0,
        };
        let mut groups = self.layout.chains().map(|(name, chain)| Group { name, range: range(chain) });
        groups[1].range.end += self.layout.log_std_range().len(); // behind the actor's head
        groups.into_iter().filter(|group| !group.range.is_empty()).collect()
    }

    fn parameters(&self) -> &[f32] {
        &self.parameters
    }

    fn set_parameters(&mut self, parameters: &[f32]) {
        self.parameters.copy_from_slice(parameters);
        self.parameters_changed();
    }

    fn last_gradient(&self) -> &[f32] {
        &self.gradient
    }

    fn snapshot(&self) -> Box<dyn Policy> {
        Box::new(Self {
            config: self.config.clone(),
            layout: self.layout.clone(),
            level: self.level,
            parameters: self.parameters.clone(),
            transposed: self.transposed.clone(),
            gradient: self.gradient.clone(),
            gradient_norm: self.gradient_norm,
            moments: self.moments.clone(),
            lanes: Vec::new(),
        })
    }

    fn save(&self) -> Tensors {
        self.to_tensors(&self.parameters, "")
    }

    fn load(&mut self, tensors: &Tensors) -> Result<(), TensorsError> {
        let parameters = self.flat_from(tensors, "")?;
        let known = self.save();
        if let Some(name) = tensors.keys().find(|name| !known.contains_key(*name)) {
            return Err(TensorsError::Unexpected(name.clone()));
        }
        self.parameters = parameters;
        self.parameters_changed();
        Ok(())
    }

    fn save_optimiser(&self) -> Tensors {
        let mut tensors = self.to_tensors(&self.moments.first, "first.");
        tensors.extend(self.to_tensors(&self.moments.second, "second."));
        tensors.insert("powers".into(), Tensor::u64(self.moments.powers.map(f64::to_bits).to_vec()));
        tensors
    }

    fn load_optimiser(&mut self, tensors: &Tensors) -> Result<(), TensorsError> {
        let powers = get_u64(tensors, "powers")?;
        let [first_power, second_power] = powers else {
            return Err(TensorsError::Shape { name: "powers".into(), expected: "U64 [2]".into(), got: format!("U64 [{}]", powers.len()) });
        };
        let powers = [f64::from_bits(*first_power), f64::from_bits(*second_power)];
        let in_range = |name: &str, numbers: &mut dyn Iterator<Item = f64>, high: f64| match numbers
            .enumerate()
            .find(|(_, x)| !(0.0..=high).contains(x))
        {
            Some((position, got)) => Err(TensorsError::NotFinite { name: name.into(), got: got.to_string(), position }),
            None => Ok(()),
        };
        in_range("powers", &mut powers.into_iter(), 1.0)?;
        let moments = Moments { first: self.flat_from(tensors, "first.")?, second: self.flat_from(tensors, "second.")?, powers };
        in_range("second", &mut moments.second.iter().map(|x| f64::from(*x)), f64::MAX)?;
        let known = self.save_optimiser();
        if let Some(name) = tensors.keys().find(|name| !known.contains_key(*name)) {
            return Err(TensorsError::Unexpected(name.clone()));
        }
        self.moments = moments;
        Ok(())
    }
}

/// Adds up the lanes' gradients, in order; returns the norm of the sum.
fn reduce(level: Level, lanes: &[Lane], gradient: &mut [f32]) -> f32 {
    let mut chunks: Vec<(&mut [f32], f32)> = gradient.chunks_mut(CHUNK).map(|chunk| (chunk, 0.0)).collect();
    threads::for_each(&mut chunks, |i, (gradient, squares)| {
        *squares = dispatch(level, Reduce { lanes, first: i * CHUNK, gradient });
    });
    chunks.iter().map(|(_, squares)| squares).sum::<f32>().sqrt()
}
