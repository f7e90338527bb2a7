//! Multilayer perceptrons for actor and critic on libtorch, separate or with a shared trunk.

use std::ops::Range;

use gradus_envs::Space;
use tch::{Kind, TchError, Tensor, no_grad};

use super::cell::{Going, remember};
use super::common::{impl_network, objectives_by_parameters};
use super::distribution::Distribution;
use super::fault::{Fault, one_line};
use super::forward_backward::{Said, Slices, assert_batch, even_slices, forward_backward, forward_backward_parts, rows_of};
use super::images::see;
use super::library::{open, use_threads};
use super::parameters::{Parameters, Views, to_device, to_host};
use super::perceptron::observations;
use super::raw::Shared;
use crate::choices::Choices;
use crate::network::{Actions, Input};
use crate::sequences::{plans_of_batch, plans_of_rows};
use crate::{ActionRows, Activation, Batch, Behaviour, Device, NetworkConfig, NetworkError, Objective, Policy, Store, UpdatedGroups};
use crate::{Precision, Sums, TorchConfig, cpu};
use gradus_base::tensors::Tensors;

/// Actor and critic on libtorch.
pub struct ActorCritic {
    config: NetworkConfig,
    torch: TorchConfig,
    input: Input,
    actions: Actions,
    pub(super) parameters: Parameters,
    pub(super) fault: Fault,
}

/// The rows of a store on the device.
pub(super) struct Rows {
    pub observations: Shared,
    /// One number per discrete action, or one row per continuous action or action of several choices.
    pub actions: Shared,
    pub masks: Option<Shared>,
}

/// The outputs of actor and critic for some observations.
pub(super) struct Heads {
    /// The inputs of the actor's last layer.
    pub features: Tensor,
    /// The outputs of the actor's last layer.
    pub actor: Tensor,
    pub value: Tensor,
}

impl ActorCritic {
    /// Creates a network on `device`, with the same parameters as the engine `cpu` creates for these arguments.
    pub fn new(
        (config, torch): (&NetworkConfig, &TorchConfig),
        (observations, actions): (&Space, &Space),
        seed: u64,
        device: Device,
    ) -> Result<Self, NetworkError> {
        let (input, kind) = config.check(observations, actions)?;
        let parameters = cpu::ActorCritic::new(config, observations, actions, seed)?.save();
        if torch.precision == Precision::Bf16 {
            return Err(NetworkError::Device("torch.precision: expected f32 or tf32 for a multilayer perceptron, got bf16".into()));
        }
        let on = open(device, torch.precision).map_err(NetworkError::Device)?;
        let fault = Fault::none(device);
        let parameters = Parameters::new(&parameters, on, fault.clone())
            .map_err(|error| NetworkError::Device(format!("device {device}: {}", one_line(&error))))?;
        Ok(Self { config: config.clone(), torch: torch.clone(), input, actions: kind, parameters, fault })
    }

    /// Number of logits of discrete actions, or of dimensions of a continuous action.
    pub(super) fn outputs(&self) -> usize {
        match &self.actions {
            Actions::Discrete(choices) => choices.logits(),
            Actions::Continuous(n) => *n,
        }
    }

    /// The choices of discrete actions.
    pub(super) fn choices(&self) -> Choices {
        match &self.actions {
            Actions::Discrete(choices) => choices.clone(),
            Actions::Continuous(_) => Choices::of(&[]),
        }
    }

    /// Numbers per observation.
    pub(super) fn width(&self) -> usize {
        self.input.width
    }

    /// Returns the parameters by name.
    pub(super) fn views(&self, kind: Kind) -> Result<Views, TchError> {
        self.parameters.views(kind)
    }

    /// The record of the first error of the policy's device.
    pub(super) fn fault(&self) -> &Fault {
        &self.fault
    }

    /// Whether the noise of continuous actions depends on the state.
    pub(super) fn has_gsde(&self) -> bool {
        self.config.gsde
    }

    /// Number of steps between two samples of the gSDE noise; 0: one sample per rollout.
    pub(super) fn noise_lasts(&self) -> usize {
        self.config.gsde_sample_every
    }

    /// Largest number of decisions of a sequence; 0: no limit.
    pub(super) fn sequence_length(&self) -> usize {
        self.config.sequence_length
    }

    /// Returns the log standard deviations of gSDE, a row for each feature.
    pub(super) fn log_stds(&self) -> Result<Vec<f32>, TchError> {
        no_grad(|| to_host(self.views(Kind::Float)?.get("actor.log_std")?))
    }

    /// Number of gSDE's log standard deviations.
    pub(super) fn noise_length(&self) -> usize {
        let features = if self.memory() > 0 { &self.config.cell_width } else { self.config.hidden.last().unwrap_or(&self.input.width) };
        features * self.outputs()
    }

    /// Applies a chain of layers. The activation follows each layer except the last; with `to_the_end`, it also follows the last layer.
    /// Returns the inputs and the outputs of the last layer.
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

    /// Returns the inputs of the layers that actor and critic do not share: what they share makes of observations, or the observations.
    fn trunk(&self, views: &Views, observations: &Tensor, going: Option<&Going>) -> Result<Tensor, TchError> {
        if !self.config.shared {
            return Ok(observations.shallow_clone());
        }
        let seen = see(&self.config, self.input, (views, "trunk"), observations)?;
        let x = self.chain(views, "trunk", (seen, self.config.hidden.len()), true)?.1;
        remember(&self.config, (views, "trunk"), x, going, 0)
    }

    /// Applies the layers of the actor or of the critic that the other does not share. Returns the inputs and the outputs of the last one.
    fn own(&self, views: &Views, name: &str, x: &Tensor, going: Option<&Going>) -> Result<(Tensor, Tensor), TchError> {
        if self.config.shared {
            return self.chain(views, name, (x.shallow_clone(), 1), false);
        }
        if going.is_some() {
            let hidden = self.config.hidden.len();
            let x = self.chain(views, name, (see(&self.config, self.input, (views, name), x)?, hidden), true)?.1;
            let at = if name == "critic" { self.config.remembered() } else { 0 };
            let x = remember(&self.config, (views, name), x, going, at)?;
            let of = |what: &str| views.get(&format!("{name}.{}.{what}", 2 * hidden));
            let y = x.f_linear(of("weight")?, Some(of("bias")?))?;
            return Ok((x, y));
        }
        self.chain(views, name, (see(&self.config, self.input, (views, name), x)?, self.config.hidden.len() + 1), false)
    }

    /// Numbers that the policy remembers of an episode.
    pub(super) fn memory(&self) -> usize {
        self.config.remembered() * if self.config.shared { 1 } else { 2 }
    }

    /// Returns the outputs of actor and critic for some observations. If the network has a recurrent cell, they are those of the sequences that
    /// `going` begins, in the order of their steps.
    pub(super) fn heads(&self, views: &Views, observations: &Tensor, going: Option<&Going>) -> Result<Heads, TchError> {
        use_threads(self.parameters.len(), observations.size().first().map_or(0, |rows| *rows as usize));
        let x = self.trunk(views, observations, going)?;
        let (features, actor) = self.own(views, "actor", &x, going)?;
        let (_, value) = self.own(views, "critic", &x, going)?;
        Ok(Heads { features, actor, value: value.f_squeeze_dim(-1)? })
    }

    /// Returns the distributions that the actor's last layer parameterises.
    pub(super) fn distribution(&self, views: &Views, heads: &Heads, masks: Option<&Tensor>) -> Result<Distribution, TchError> {
        match &self.actions {
            Actions::Discrete(choices) => Distribution::of_choices(&heads.actor, masks, choices),
            Actions::Continuous(_) if self.config.gsde => {
                Distribution::gsde(heads.actor.shallow_clone(), &heads.features, views.get("actor.log_std")?)
            }
            Actions::Continuous(_) => Distribution::gaussian(heads.actor.shallow_clone(), views.get("actor.log_std")?),
        }
    }

    /// Returns the rows of a store on the device; they are copied once.
    fn rows(&self, store: &Store) -> Result<std::sync::Arc<Rows>, TchError> {
        let (device, width, n) = (self.parameters.device(), self.input.width, self.outputs());
        assert_eq!(store.width(), width, "observations: expected rows of {width}, got {}", store.width());
        self.assert_actions(&store.actions);
        let fits = |rows: &Rows| rows.observations.device() == device;
        let rows = store.copy(fits, || {
            let observations = observations(store, device)?;
            let actions = match &store.actions {
                ActionRows::Discrete(actions) => to_device(&self.choices().places(actions), device)?.f_view(&self.choices().shape()[..])?,
                ActionRows::Continuous { rows, width } => to_device(rows, device)?.f_view([-1, *width as i64])?,
                ActionRows::OnDevice(_) => store.actions.not_here(),
            };
            let masks = match &store.masks {
                Some(masks) => Some(to_device(masks, device)?.f_view([-1, n as i64])?.into()),
                None => None,
            };
            Ok::<Rows, TchError>(Rows { observations, actions: actions.into(), masks })
        })?;
        Ok(rows)
    }

    /// Panics unless the actions match the head.
    pub(super) fn assert_actions(&self, actions: &ActionRows) {
        let fits = match (actions, &self.actions) {
            (ActionRows::Discrete(_), Actions::Discrete(_)) => true,
            (ActionRows::Continuous { width, .. }, Actions::Continuous(n)) => width == n,
            // a policy with this head chose these actions on a device
            (ActionRows::OnDevice(_), _) => true,
            _ => false,
        };
        assert!(fits, "actions: expected those of this policy's action space, got {}", actions.kind());
    }

    /// Returns log pi, H and V of the decisions of a batch as tensors with their autograd graph. If `batch` has old or reference
    /// distributions, also returns the KL divergences between them and the policy's distributions.
    ///
    /// If the network has a recurrent cell, every decision is the only one of its sequence.
    pub fn said(&self, store: &Store, batch: Batch<'_>) -> Result<Said, TchError> {
        let n = batch.indices.len();
        let going = match self.memory() {
            0 => None,
            width => Some(Going::new(&[n], &vec![0.0; n * width], width, self.device())?),
        };
        self.said_of(store, batch, going.as_ref())
    }

    /// As [`said`](ActorCritic::said), of the decisions of sequences, in the order of their steps.
    fn said_of(&self, store: &Store, batch: Batch<'_>, going: Option<&Going>) -> Result<Said, TchError> {
        let rows = self.rows(store)?;
        let device = self.parameters.device();
        let (distribution, value, actions) = self.pass(&rows, batch.indices, going)?;
        let width = self.distribution_width();
        let given = |of: Option<&[f32]>| -> Result<Option<Tensor>, TchError> {
            of.map(|of| to_device(&rows_of(of, batch.indices, width), device)?.f_view([-1, width as i64])).transpose()
        };
        let kl_old = given(batch.old)?.map(|old| distribution.kl_old(&old)).transpose()?;
        let kl_ref = given(batch.reference)?.map(|reference| distribution.kl_ref(&reference)).transpose()?;
        Ok(Said { log_prob: distribution.log_prob(&actions)?, entropy: distribution.entropy()?, value, kl_old, kl_ref })
    }

    /// Returns the distributions and values of some decisions, and the actions taken.
    fn pass(&self, rows: &Rows, indices: &[u32], going: Option<&Going>) -> Result<(Distribution, Tensor, Tensor), TchError> {
        let views = self.parameters.views(Kind::Float)?;
        let index = to_device(&indices.iter().map(|i| *i as i32).collect::<Vec<_>>(), self.parameters.device())?;
        let select = |tensor: &Tensor| tensor.f_index_select(0, &index);
        let heads = self.heads(&views, &select(&rows.observations)?, going)?;
        let masks = rows.masks.as_ref().map(|masks| select(masks)).transpose()?;
        Ok((self.distribution(&views, &heads, masks.as_ref())?, heads.value, select(&rows.actions)?))
    }

    /// Sets the gradient for [`apply`](crate::Network::apply) to the gradient of `loss`. The gradient updates all parameter groups.
    pub fn differentiate(&mut self, loss: &Tensor) -> Result<(), TchError> {
        let gradients = Tensor::f_run_backward(&[loss], &[self.parameters.leaf()], false, false)?;
        self.parameters.take_gradient(gradients.into_iter().next(), UpdatedGroups::All);
        Ok(())
    }

    /// Splits a batch into micro-batches.
    fn parts<'a>(&self, batch: Batch<'a>) -> impl Iterator<Item = Batch<'a>> {
        let n = if self.torch.micro_batch == 0 { batch.indices.len().max(1) } else { self.torch.micro_batch };
        batch.indices.chunks(n).zip(batch.weights.chunks(n)).map(move |(indices, weights)| Batch { indices, weights, ..batch })
    }

    fn forward_backward(
        &self,
        store: &Store,
        batch: Batch<'_>,
        objective: &dyn Objective,
        with_gradient: bool,
    ) -> Result<(Sums, Option<Tensor>), TchError> {
        assert_batch(batch, store.actions.len(), self.distribution_width());
        if self.memory() > 0 {
            let plans = plans_of_batch(store, self.memory(), batch, 1);
            return forward_backward_parts(plans.iter(), self.parameters.leaf(), with_gradient, |(plan, weights)| {
                let going = Going::of(plan, self.memory(), self.device())?;
                let said = self.said_of(store, Batch { indices: &plan.rows, weights, ..batch }, Some(&going))?;
                let slices = Slices { indices: &plan.rows, weights, ends: &even_slices(plan.rows.len()) };
                forward_backward(&said, slices, objective, with_gradient)
            });
        }
        forward_backward_parts(self.parts(batch), self.parameters.leaf(), with_gradient, |part| {
            let said = self.said(store, part)?;
            forward_backward(
                &said,
                Slices { indices: part.indices, weights: part.weights, ends: &even_slices(part.indices.len()) },
                objective,
                with_gradient,
            )
        })
    }

    /// Evaluates `what` for the first `rows` observations of a store, one micro-batch at a time.
    fn describe(
        &self,
        store: &Store,
        rows: usize,
        what: impl Fn(&Views, &Rows, Range<i64>) -> Result<Tensor, TchError>,
    ) -> Result<Vec<f32>, TchError> {
        let at_once = if self.torch.micro_batch == 0 { rows.max(1) } else { self.torch.micro_batch };
        no_grad(|| {
            let (on_device, views) = (self.rows(store)?, self.parameters.views(Kind::Float)?);
            let part = |begin: usize| to_host(&what(&views, &on_device, begin as i64..(begin + at_once).min(rows) as i64)?);
            Ok((0..rows).step_by(at_once).map(part).collect::<Result<Vec<_>, TchError>>()?.concat())
        })
    }

    /// Evaluates `what` for the heads, the actions and the masks of the first `rows` observations of a store, all of them rows of sequences.
    /// `what` gives `width` numbers for each.
    fn describe_sequences(
        &self,
        store: &Store,
        (rows, width): (usize, usize),
        what: impl Fn(&Views, &Heads, &dyn Fn(&Tensor) -> Result<Tensor, TchError>) -> Result<Tensor, TchError>,
    ) -> Result<Vec<f32>, TchError> {
        no_grad(|| {
            let (on_device, views) = (self.rows(store)?, self.parameters.views(Kind::Float)?);
            let mut numbers = vec![0.0; rows * width];
            for plan in plans_of_rows(store, self.memory(), rows, 1).iter().filter(|plan| !plan.rows.is_empty()) {
                let index = to_device(&plan.rows.iter().map(|i| *i as i32).collect::<Vec<_>>(), self.device())?;
                let select = |tensor: &Tensor| tensor.f_index_select(0, &index);
                let going = Going::of(plan, self.memory(), self.device())?;
                let heads = self.heads(&views, &select(&on_device.observations)?, Some(&going))?;
                let own = to_host(&what(&views, &heads, &select)?)?;
                for (place, own) in plan.places.iter().zip(own.chunks_exact(width)) {
                    numbers[*place as usize * width..(*place as usize + 1) * width].copy_from_slice(own);
                }
            }
            Ok(numbers)
        })
    }

    /// Evaluates `what`, which gives `width` numbers for each, for the distributions and actions of all decisions of a store.
    fn describe_actor(
        &self,
        store: &Store,
        width: usize,
        what: impl Fn(&Distribution, &Tensor) -> Result<Tensor, TchError>,
    ) -> Result<Vec<f32>, TchError> {
        if self.memory() > 0 {
            let on_device = self.rows(store)?;
            return self.describe_sequences(store, (store.actions.len(), width), |views, heads, select| {
                let masks = on_device.masks.as_ref().map(|masks| select(masks)).transpose()?;
                what(&self.distribution(views, heads, masks.as_ref())?, &select(&on_device.actions)?)
            });
        }
        self.describe(store, store.actions.len(), |views, rows, range| {
            let some = |tensor: &Tensor| tensor.f_narrow(0, range.start, range.end - range.start);
            let heads = self.heads(views, &some(&rows.observations)?, None)?;
            let masks = rows.masks.as_ref().map(|masks| some(masks)).transpose()?;
            what(&self.distribution(views, &heads, masks.as_ref())?, &some(&rows.actions)?)
        })
    }

    /// Records an error of the policy's environments and returns it in one line.
    pub(super) fn failed(&self, error: &TchError) -> String {
        self.fault.note(error);
        one_line(error)
    }

    /// The device.
    pub(super) fn device(&self) -> tch::Device {
        self.parameters.device()
    }

    /// Numbers per observation, and the number of actions if they are discrete.
    pub(super) fn reads_and_chooses(&self) -> (usize, Option<usize>) {
        (self.input.width, Some(self.outputs()).filter(|_| self.choices().is_one()))
    }

    /// Returns a function that computes log pi(a|s) of all discrete actions for observations on the device. It uses the current parameters
    /// and records no autograd graph.
    pub(super) fn log_probs_of_rows(&self) -> Result<impl Fn(&Tensor) -> Result<Tensor, TchError> + '_, TchError> {
        let views = no_grad(|| self.parameters.views(Kind::Float))?;
        Ok(move |rows: &Tensor| {
            no_grad(|| {
                let x = self.trunk(&views, rows, None)?;
                self.own(&views, "actor", &x, None)?.1.f_log_softmax(-1, Kind::Float)
            })
        })
    }

    /// Returns the gradient of the last batch by name, in PyTorch's layout.
    pub fn gradient_tensors(&self) -> Tensors {
        self.parameters.save_gradient()
    }
}

impl_network!(ActorCritic);

impl Policy for ActorCritic {
    objectives_by_parameters!();

    fn values(&mut self, store: &Store, values: &mut Vec<f32>) {
        *values = self.fault.guard(|| {
            if self.memory() > 0 {
                return self.describe_sequences(store, (store.rows(), 1), |_, heads, _| Ok(heads.value.shallow_clone()));
            }
            self.describe(store, store.rows(), |views, rows, range| {
                Ok(self.heads(views, &rows.observations.f_narrow(0, range.start, range.end - range.start)?, None)?.value)
            })
        });
        values.resize(store.rows(), f32::NAN);
    }

    fn log_probs(&mut self, store: &Store, log_probs: &mut Vec<f32>) {
        *log_probs = self.fault.guard(|| self.describe_actor(store, 1, |distribution, actions| distribution.log_prob(actions)));
        log_probs.resize(store.actions.len(), f32::NAN);
    }

    fn distributions(&mut self, store: &Store, rows: &mut Vec<f32>) {
        let width = self.distribution_width();
        *rows = self.fault.guard(|| self.describe_actor(store, width, |distribution, _| distribution.rows()));
        rows.resize(store.actions.len() * self.distribution_width(), f32::NAN);
    }

    fn distribution_width(&self) -> usize {
        match self.actions {
            Actions::Discrete(_) => self.outputs(),
            Actions::Continuous(n) => 2 * n,
        }
    }

    fn fisher_vector_product(&mut self, store: &Store, batch: Batch<'_>, vector: &[f32], product: &mut Vec<f32>) {
        assert!(self.supports_fisher(), "this policy's head has no Fisher-vector product");
        assert_eq!(vector.len(), self.parameters.len(), "vector: expected {} numbers, got {}", self.parameters.len(), vector.len());
        // F v is the gradient of v . g at new = old, where g is the gradient of KL(old || new); both gradients are with respect to new
        *product = self.fault.guard(|| {
            let policy = &*self;
            let device = policy.parameters.device();
            let (distribution, ..) = policy.pass(&*policy.rows(store)?, batch.indices, None)?;
            let kl = distribution.kl_old(&distribution.rows()?.f_detach()?)?;
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
        !self.config.gsde && self.memory() == 0
    }

    fn snapshot(&self) -> Box<dyn Policy> {
        let (parameters, fault) = (self.parameters.snapshot(), self.fault.clone());
        Box::new(Self { config: self.config.clone(), torch: self.torch.clone(), actions: self.actions.clone(), parameters, fault, ..*self })
    }
}
