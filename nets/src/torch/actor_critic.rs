//! A multilayer perceptron for the actor and one for the critic, or a shared one with two heads, on libtorch.

use gradus_envs::Space;
use gradus_envs::random::Stream;
use rand_distr::{Distribution as _, StandardNormal};
use tch::{Kind, TchError, Tensor, no_grad};

use super::distribution::Distribution;
use super::fault::{Fault, one_line};
use super::judge::{Said, assert_batch, even_slices, judge, judge_parts, rows_of};
use super::library::{open, use_threads};
use super::parameters::{Parameters, Views, to_device, to_host};
use super::raw::Shared;
use crate::math::exp;
use crate::network::Actions;
use crate::tensors::{Tensors, TensorsError};
use crate::{
    ActionRows, Activation, Actor, Batch, Choice, Device, Group, NetworkConfig, NetworkError, Objective, OptimiserStep, Policy, Store,
};
use crate::{Sums, TorchConfig, categorical, cpu};

/// Actor and critic on libtorch.
pub struct ActorCritic {
    config: NetworkConfig,
    torch: TorchConfig,
    width: usize,
    actions: Actions,
    parameters: Parameters,
    fault: Fault,
}

/// The rows of a store on the device.
pub(super) struct Rows {
    pub observations: Shared,
    /// Numbers of actions, or rows of them.
    pub actions: Shared,
    pub masks: Option<Shared>,
}

/// What the layers make of observations.
struct Heads {
    /// What the actor's last layer reads, and what it says.
    features: Tensor,
    actor: Tensor,
    value: Tensor,
}

impl ActorCritic {
    /// The same network as the engine `cpu` makes of these, with the same parameters, on `device`.
    pub fn new(
        (config, torch): (&NetworkConfig, &TorchConfig),
        (observations, actions): (&Space, &Space),
        seed: u64,
        device: Device,
    ) -> Result<Self, NetworkError> {
        let (width, kind) = config.check(observations, actions)?;
        let parameters = cpu::ActorCritic::new(config, observations, actions, seed)?.save();
        let on = open(device, torch.precision).map_err(NetworkError::Device)?;
        let parameters =
            Parameters::new(&parameters, on).map_err(|error| NetworkError::Device(format!("device {device}: {}", one_line(&error))))?;
        use_threads(parameters.len());
        Ok(Self { config: config.clone(), torch: torch.clone(), width, actions: kind, parameters, fault: Fault::none(device) })
    }

    fn outputs(&self) -> usize {
        match self.actions {
            Actions::Discrete(n) | Actions::Continuous(n) => n,
        }
    }

    /// Layers one after the other, each but the last followed by the activation; the last one too where `to_the_end`.
    fn chain(&self, views: &Views, name: &str, (mut x, layers): (Tensor, usize), to_the_end: bool) -> Result<(Tensor, Tensor), TchError> {
        let mut read = x.shallow_clone();
        for i in 0..layers {
            let (weight, bias) = (views.get(&format!("{name}.{}.weight", 2 * i))?, views.get(&format!("{name}.{}.bias", 2 * i))?);
            read = x;
            x = read.f_linear(weight, Some(bias))?;
            if to_the_end || i + 1 < layers {
                x = match self.config.activation {
                    Activation::Tanh => x.f_tanh()?,
                    Activation::Relu => x.f_relu()?,
                };
            }
        }
        Ok((read, x))
    }

    fn heads(&self, views: &Views, observations: &Tensor) -> Result<Heads, TchError> {
        let hidden = self.config.hidden.len();
        let x = observations.shallow_clone();
        let (x, layers) = match self.config.shared {
            true => (self.chain(views, "trunk", (x, hidden), true)?.1, 1),
            false => (x, hidden + 1),
        };
        let (features, actor) = self.chain(views, "actor", (x.shallow_clone(), layers), false)?;
        let (_, value) = self.chain(views, "critic", (x, layers), false)?;
        Ok(Heads { features, actor, value: value.f_squeeze_dim(-1)? })
    }

    fn distribution(&self, views: &Views, heads: &Heads, masks: Option<&Tensor>) -> Result<Distribution, TchError> {
        match self.actions {
            Actions::Discrete(_) => Distribution::categorical(&heads.actor, masks),
            Actions::Continuous(_) if self.config.gsde => {
                Distribution::gsde(heads.actor.shallow_clone(), &heads.features, views.get("actor.log_std")?)
            }
            Actions::Continuous(_) => Distribution::gaussian(heads.actor.shallow_clone(), views.get("actor.log_std")?),
        }
    }

    /// The store on the device; it is copied once.
    fn rows(&self, store: &Store) -> Result<std::sync::Arc<Rows>, TchError> {
        let (device, width, n) = (self.parameters.device(), self.width, self.outputs());
        assert_eq!(store.width(), width, "observations: expected rows of {width}, got {}", store.width());
        self.assert_actions(&store.actions);
        let rows = store.copy(|| {
            let crate::Observations::Rows { rows, .. } = store.observations() else { unreachable!("the width was not 0") };
            let observations = to_device(rows, device)?.f_view([-1, width as i64])?.into();
            let actions = match &store.actions {
                ActionRows::Discrete(actions) => to_device(&actions.iter().map(|a| i64::from(*a)).collect::<Vec<_>>(), device)?,
                ActionRows::Continuous { rows, width } => to_device(rows, device)?.f_view([-1, *width as i64])?,
            };
            let masks = match &store.masks {
                Some(masks) => Some(to_device(masks, device)?.f_view([-1, n as i64])?.into()),
                None => None,
            };
            Ok::<Rows, TchError>(Rows { observations, actions: actions.into(), masks })
        })?;
        Ok(rows)
    }

    fn assert_actions(&self, actions: &ActionRows) {
        let fits = match (actions, self.actions) {
            (ActionRows::Discrete(_), Actions::Discrete(_)) => true,
            (ActionRows::Continuous { width, .. }, Actions::Continuous(n)) => *width == n,
            _ => false,
        };
        assert!(fits, "actions: expected those of this policy's head, got {}", actions.kind());
    }

    /// log pi, H and V of the decisions `indices` of `store` as tensors with their graph, with the divergences that `batch` asks for.
    pub fn said(&self, store: &Store, batch: Batch<'_>) -> Result<Said, TchError> {
        let rows = self.rows(store)?;
        let device = self.parameters.device();
        let views = self.parameters.views(Kind::Float)?;
        let index = to_device(&batch.indices.iter().map(|i| i64::from(*i)).collect::<Vec<_>>(), device)?;
        let select = |tensor: &Tensor| tensor.f_index_select(0, &index);
        let heads = self.heads(&views, &select(&rows.observations)?)?;
        let masks = rows.masks.as_ref().map(|masks| select(masks)).transpose()?;
        let distribution = self.distribution(&views, &heads, masks.as_ref())?;
        let width = self.distribution_width();
        let given = |of: Option<&[f32]>| -> Result<Option<Tensor>, TchError> {
            of.map(|of| to_device(&rows_of(of, batch.indices, width), device)?.f_view([-1, width as i64])).transpose()
        };
        let kl_old = given(batch.old)?.map(|old| distribution.kl_old(&old)).transpose()?;
        let kl_ref = given(batch.reference)?.map(|reference| distribution.kl_ref(&reference)).transpose()?;
        let log_prob = distribution.log_prob(&select(&rows.actions)?)?;
        Ok(Said { log_prob, entropy: distribution.entropy()?, value: heads.value, kl_old, kl_ref })
    }

    /// Makes the gradient of `loss` the one that [`apply`](Policy::apply) follows.
    pub fn differentiate(&mut self, loss: &Tensor) -> Result<(), TchError> {
        let gradients = Tensor::f_run_backward(&[loss], &[self.parameters.leaf()], false, false)?;
        gradients.into_iter().for_each(|gradient| self.parameters.take_gradient(gradient));
        Ok(())
    }

    /// The parts of a batch that are worked on at once.
    fn parts<'a>(&self, batch: Batch<'a>) -> impl Iterator<Item = Batch<'a>> {
        let n = if self.torch.micro_batch == 0 { batch.indices.len().max(1) } else { self.torch.micro_batch };
        batch.indices.chunks(n).zip(batch.weights.chunks(n)).map(move |(indices, weights)| Batch { indices, weights, ..batch })
    }

    fn judge(
        &self,
        store: &Store,
        batch: Batch<'_>,
        objective: &dyn Objective,
        with_gradient: bool,
    ) -> Result<(Sums, Option<Tensor>), TchError> {
        assert_batch(batch, store.actions.len(), self.distribution_width());
        judge_parts(self.parts(batch), self.parameters.leaf(), with_gradient, |part| {
            let said = self.said(store, part)?;
            judge(&said, (part.indices, part.weights, &even_slices(part.indices.len())), objective, with_gradient)
        })
    }

    /// What the actor says of all decisions of a store, `width` numbers each.
    fn describe(&self, store: &Store, what: impl Fn(&Distribution, &Tensor) -> Result<Tensor, TchError>) -> Result<Vec<f32>, TchError> {
        let decisions = store.actions.len() as i64;
        no_grad(|| {
            let (rows, views) = (self.rows(store)?, self.parameters.views(Kind::Float)?);
            let heads = self.heads(&views, &rows.observations.f_narrow(0, 0, decisions)?)?;
            let distribution = self.distribution(&views, &heads, rows.masks.as_deref())?;
            to_host(&what(&distribution, &rows.actions)?)
        })
    }

    /// The gradient of the last batch by name, in PyTorch's layout.
    pub fn gradient_tensors(&self) -> Tensors {
        self.parameters.save_gradient()
    }
}

/// Chooses actions by the parameters of a policy.
struct TorchActor<'a> {
    policy: &'a ActorCritic,
    views: Option<Views>,
    /// gSDE: theta, features x actions for every row, and how many calls have used it.
    noise: Vec<f32>,
    uses: usize,
}

impl TorchActor<'_> {
    /// Draws the noise of rows that have none, and that of all where it is time for another.
    fn draw(&mut self, streams: &mut [Stream]) -> Result<(), TchError> {
        if self.uses == self.policy.config.gsde_sample_every && self.uses > 0 {
            self.noise.clear();
            self.uses = 0;
        }
        let views = self.views.as_ref().map_or_else(|| Err(TchError::Shape("no parameters".into())), Ok)?;
        let log_stds = to_host(views.get("actor.log_std")?)?;
        for stream in &mut streams[self.noise.len() / log_stds.len()..] {
            self.noise.extend(log_stds.iter().map(|log_std| {
                let normal: f32 = StandardNormal.sample(stream);
                exp(*log_std) * normal
            }));
        }
        self.uses += 1;
        Ok(())
    }

    fn answer(
        &mut self,
        observations: &[f32],
        masks: Option<&[bool]>,
        choice: &mut Choice<'_>,
        actions: &mut ActionRows,
        log_probs: &mut [f32],
    ) -> Result<(), TchError> {
        let policy = self.policy;
        let (device, n) = (policy.parameters.device(), policy.outputs());
        if self.views.is_none() {
            self.views = Some(no_grad(|| policy.parameters.views(Kind::Float))?);
        }
        if let (true, Choice::Sample(streams)) = (policy.config.gsde, &mut *choice) {
            self.draw(streams)?;
        }
        let Some(views) = &self.views else { return Ok(()) };
        let (numbers, features, distribution) = no_grad(|| {
            let rows = to_device(observations, device)?.f_view([-1, policy.width as i64])?;
            let masks = masks.map(|masks| to_device(masks, device)?.f_view([-1, n as i64])).transpose()?;
            let heads = policy.heads(views, &rows)?;
            let distribution = policy.distribution(views, &heads, masks.as_ref())?;
            let features = if policy.config.gsde { to_host(&heads.features)? } else { Vec::new() };
            Ok::<_, TchError>((to_host(&distribution.rows()?)?, features, distribution))
        })?;
        match actions {
            ActionRows::Discrete(actions) => {
                for (row, numbers) in numbers.chunks_exact(n).enumerate() {
                    let action = categorical::choose(numbers, choice, row);
                    (actions[row], log_probs[row]) = (action as u32, numbers[action]);
                }
            }
            ActionRows::Continuous { rows, .. } => {
                for (row, (action, numbers)) in rows.chunks_exact_mut(n).zip(numbers.chunks_exact(2 * n)).enumerate() {
                    let (means, log_stds) = numbers.split_at(n);
                    action.copy_from_slice(means);
                    let Choice::Sample(streams) = &mut *choice else { continue };
                    if policy.config.gsde {
                        let width = features.len() / log_probs.len();
                        let (features, theta) = (&features[row * width..][..width], &self.noise[row * width * n..][..width * n]);
                        for (feature, theta) in features.iter().zip(theta.chunks_exact(n)) {
                            action.iter_mut().zip(theta).for_each(|(a, theta)| *a += feature * theta);
                        }
                    } else {
                        for (a, log_std) in action.iter_mut().zip(log_stds) {
                            let normal: f32 = StandardNormal.sample(&mut streams[row]);
                            *a += exp(*log_std) * normal;
                        }
                    }
                }
                let drawn = to_device(rows, device)?.f_view([-1, n as i64])?;
                log_probs.copy_from_slice(&no_grad(|| to_host(&distribution.log_prob(&drawn)?))?);
            }
        }
        Ok(())
    }
}

impl Actor for TorchActor<'_> {
    fn act(
        &mut self,
        observations: &[f32],
        masks: Option<&[bool]>,
        mut choice: Choice<'_>,
        actions: &mut ActionRows,
        log_probs: &mut [f32],
    ) {
        let (width, n) = (self.policy.width, self.policy.outputs());
        assert!(observations.len().is_multiple_of(width), "observations: expected rows of {width} numbers");
        let rows = observations.len() / width;
        self.policy.assert_actions(actions);
        actions.resize(rows);
        assert_eq!(rows, log_probs.len(), "log-probabilities: expected room for {rows}");
        if let Some(masks) = masks {
            assert_eq!(masks.len(), rows * n, "masks: expected {n} places for each of {rows} rows");
        }
        if let Choice::Sample(streams) | Choice::Truncated(streams, _) = &choice {
            assert_eq!(streams.len(), rows, "streams: expected one per row");
        }
        let policy = self.policy;
        policy.fault.guard(|| self.answer(observations, masks, &mut choice, actions, log_probs));
    }
}

impl Policy for ActorCritic {
    fn observation_width(&self) -> usize {
        self.width
    }

    fn actor(&self) -> Box<dyn Actor + '_> {
        Box::new(TorchActor { policy: self, views: None, noise: Vec::new(), uses: 0 })
    }

    fn values(&mut self, store: &Store, values: &mut Vec<f32>) {
        *values = self.fault.guard(|| {
            let policy = &*self;
            no_grad(|| {
                let (rows, views) = (policy.rows(store)?, policy.parameters.views(Kind::Float)?);
                to_host(&policy.heads(&views, &rows.observations)?.value)
            })
        });
        values.resize(store.rows(), f32::NAN);
    }

    fn log_probs(&mut self, store: &Store, log_probs: &mut Vec<f32>) {
        *log_probs = self.fault.guard(|| self.describe(store, |distribution, actions| distribution.log_prob(actions)));
        log_probs.resize(store.actions.len(), f32::NAN);
    }

    fn distributions(&mut self, store: &Store, rows: &mut Vec<f32>) {
        *rows = self.fault.guard(|| self.describe(store, |distribution, _| distribution.rows()));
        rows.resize(store.actions.len() * self.distribution_width(), f32::NAN);
    }

    fn distribution_width(&self) -> usize {
        match self.actions {
            Actions::Discrete(n) => n,
            Actions::Continuous(n) => 2 * n,
        }
    }

    fn evaluate(&mut self, store: &Store, batch: Batch<'_>, objective: &dyn Objective) -> Sums {
        self.fault.guard(|| Ok(self.judge(store, batch, objective, false)?.0))
    }

    fn gradient(&mut self, store: &Store, batch: Batch<'_>, objective: &dyn Objective) -> Sums {
        let (sums, gradient) = self.fault.guard(|| self.judge(store, batch, objective, true));
        if let Some(gradient) = gradient {
            self.parameters.take_gradient(gradient);
        }
        sums
    }

    fn fisher_vector_product(&mut self, store: &Store, batch: Batch<'_>, vector: &[f32], product: &mut Vec<f32>) {
        assert!(self.supports_fisher(), "this policy's head has no Fisher-vector product");
        assert_eq!(vector.len(), self.parameters.len(), "vector: expected {} numbers, got {}", self.parameters.len(), vector.len());
        // the second derivative of KL(old || new) at new = old, times the vector: the gradient of (gradient . vector)
        *product = self.fault.guard(|| {
            let policy = &*self;
            let device = policy.parameters.device();
            let old = no_grad(|| policy.describe(store, |distribution, _| distribution.rows()))?;
            let said = policy.said(store, Batch { old: Some(&old), reference: None, ..batch })?;
            let Some(kl) = said.kl_old else { return Ok(Vec::new()) };
            let leaf = [policy.parameters.leaf()];
            let divergence = kl.f_mul(&to_device(batch.weights, device)?)?.f_sum(Kind::Float)?;
            let mut product = Vec::new();
            for gradient in Tensor::f_run_backward(&[divergence], &leaf, true, true)? {
                let along = gradient.f_mul(&to_device(vector, device)?)?.f_sum(Kind::Float)?;
                for second in Tensor::f_run_backward(&[along], &leaf, false, false)? {
                    product = to_host(&second)?;
                }
            }
            Ok(product)
        });
        product.resize(vector.len(), f32::NAN);
    }

    fn supports_fisher(&self) -> bool {
        !self.config.gsde
    }

    fn gradient_norm(&self) -> f32 {
        self.parameters.gradient_norm()
    }

    fn apply(&mut self, step: &OptimiserStep) {
        if let Err(error) = self.parameters.apply(step) {
            self.fault.note(&error);
        }
    }

    fn groups(&self) -> Vec<Group> {
        self.parameters.groups().to_vec()
    }

    fn parameters(&self) -> &[f32] {
        self.parameters.host()
    }

    fn set_parameters(&mut self, parameters: &[f32]) {
        assert_eq!(parameters.len(), self.parameters.len(), "parameters: expected {}, got {}", self.parameters.len(), parameters.len());
        if let Err(error) = self.parameters.set(parameters) {
            self.fault.note(&error);
        }
    }

    fn last_gradient(&self) -> &[f32] {
        self.parameters.host_gradient()
    }

    fn snapshot(&self) -> Box<dyn Policy> {
        let (parameters, error) = self.parameters.snapshot();
        let copy = Self { config: self.config.clone(), torch: self.torch.clone(), parameters, fault: self.fault.cleared(), ..*self };
        error.iter().for_each(|error| copy.fault.note(error));
        Box::new(copy)
    }

    fn save(&self) -> Tensors {
        self.parameters.save()
    }

    fn load(&mut self, tensors: &Tensors) -> Result<(), TensorsError> {
        self.parameters.load(tensors)
    }

    fn fault(&self) -> Option<String> {
        self.fault.line()
    }

    fn wants_one_actor(&self) -> bool {
        true
    }

    fn save_optimiser(&self) -> Tensors {
        self.parameters.save_optimiser()
    }

    fn load_optimiser(&mut self, tensors: &Tensors) -> Result<(), TensorsError> {
        self.parameters.load_optimiser(tensors)
    }
}
