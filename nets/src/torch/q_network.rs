//! Networks of action values on libtorch.

use std::any::Any;
use std::ops::Range;

use gradus_envs::Space;
use tch::{Kind, TchError, Tensor, no_grad};

use super::cell::{Going, remember};
use super::common::{behaviour_by_parameters, impl_network};
use super::fault::Fault;
use super::images::see;
use super::library::use_threads;
use super::parameters::{Parameters, Views, to_device, to_host};
use super::perceptron::{self, chain, rows};
use crate::network::Input;
use crate::q_network::greedy;
use crate::sequences::{plans_of_batch, plans_of_rows};
use crate::{
    ActionRows, Actor, Batch, Behaviour, Choice, Device, Evaluated, Evaluation, NetworkConfig, NetworkError, QHead, QValues, Store,
    TorchConfig, UpdatedGroups, ValueObjective, cpu,
};
use gradus_base::tensors::Tensors;

/// A network of action values on libtorch.
pub struct QNetwork {
    config: NetworkConfig,
    head: QHead,
    input: Input,
    actions: usize,
    parameters: Parameters,
    fault: Fault,
}

impl QNetwork {
    /// Creates a network on `device`, with the same parameters as the engine `cpu` creates for these arguments.
    pub fn new(
        (config, torch): (&NetworkConfig, &TorchConfig),
        head: QHead,
        (observations, actions): (&Space, &Space),
        seed: u64,
        device: Device,
    ) -> Result<Self, NetworkError> {
        let (input, n) = config.check_q(head, observations, actions)?;
        let values = cpu::QNetwork::new(config, head, observations, actions, seed)?.save();
        let (parameters, fault) = perceptron::parameters(&values, torch, device)?;
        Ok(Self { config: config.clone(), head, input, actions: n, parameters, fault })
    }

    /// Returns the gradient of the last batch by name, in PyTorch's layout.
    pub fn gradient_tensors(&self) -> Tensors {
        self.parameters.save_gradient()
    }

    /// Numbers that the network remembers of an episode.
    fn memory(&self) -> usize {
        self.config.remembered()
    }

    /// Returns Q(s, .) of some observations: rows x actions x atoms. If the network has a recurrent cell, they are those of the sequences that
    /// `going` begins, in the order of their steps.
    fn q(&self, views: &Views, observations: &Tensor, going: Option<&Going>) -> Result<Tensor, TchError> {
        use_threads(self.parameters.len(), observations.size().first().map_or(0, |rows| *rows as usize));
        let (hidden, x) = (self.config.hidden.len(), see(&self.config, self.input, (views, "trunk"), observations)?);
        let shape = [-1, self.actions as i64, self.head.atoms as i64];
        if !self.head.dueling {
            let Some(going) = going else { return chain(&self.config, (views, "q"), x, hidden, true)?.f_view(shape) };
            let x = remember(&self.config, (views, "q"), chain(&self.config, (views, "q"), x, hidden, false)?, Some(going), 0)?;
            let number = hidden * if self.config.layer_norm { 3 } else { 2 };
            let of = |what: &str| views.get(&format!("q.{number}.{what}"));
            return x.f_linear(of("weight")?, Some(of("bias")?))?.f_view(shape);
        }
        let own = hidden.min(1);
        let features = chain(&self.config, (views, "trunk"), x, hidden - own, false)?;
        let features = remember(&self.config, (views, "trunk"), features, going, 0)?;
        let value = chain(&self.config, (views, "value"), features.shallow_clone(), own, true)?.f_unsqueeze(1)?;
        let advantage = chain(&self.config, (views, "advantage"), features, own, true)?.f_view(shape)?;
        let mean = advantage.f_mean_dim(&[1i64][..], true, Kind::Float)?;
        value.f_add(&advantage)?.f_sub(&mean)
    }

    /// As [`q_values`](crate::QNetwork::q_values), of a network with a recurrent cell.
    fn q_of_sequences(&self, store: &Store, all: &Tensor, views: &Views, some: Range<usize>) -> Result<Vec<f32>, TchError> {
        let (width, device) = (self.actions * self.head.atoms, self.parameters.device());
        let mut values = vec![0.0; some.len() * width];
        for plan in plans_of_rows(store, self.memory(), some.end, 1).iter().filter(|plan| !plan.rows.is_empty()) {
            let index = to_device(&plan.rows.iter().map(|i| *i as i32).collect::<Vec<_>>(), device)?;
            let going = Going::of(plan, self.memory(), device)?;
            let q = to_host(&self.q(views, &all.f_index_select(0, &index)?, Some(&going))?)?;
            let rows = plan.places.iter().map(|place| *place as usize).zip(q.chunks_exact(width));
            for (row, q) in rows.filter(|(row, _)| some.contains(row)).map(|(row, q)| (row - some.start, q)) {
                values[row * width..(row + 1) * width].copy_from_slice(q);
            }
        }
        Ok(values)
    }

    fn forward_backward(
        &self,
        store: &Store,
        batch: Batch<'_>,
        objective: &dyn ValueObjective,
        with_gradient: bool,
    ) -> Result<(Evaluated, Option<Tensor>), TchError> {
        let ActionRows::Discrete(actions) = &store.actions else {
            panic!("actions: expected discrete actions, got {}", store.actions.kind())
        };
        assert_eq!(batch.indices.len(), batch.weights.len(), "batch: expected one weight per decision");
        let (device, atoms) = (self.parameters.device(), self.head.atoms);
        let plan = match self.memory() {
            0 => None,
            width => plans_of_batch(store, width, batch, 1).into_iter().next(),
        };
        let whole = batch;
        let batch = plan.as_ref().map_or(batch, |(plan, weights)| Batch { indices: &plan.rows, weights, ..batch });
        let ask = || {
            let going = plan.as_ref().map(|(plan, _)| Going::of(plan, self.memory(), device)).transpose()?;
            let views = self.parameters.views(Kind::Float)?;
            let index = to_device(&batch.indices.iter().map(|i| i64::from(*i)).collect::<Vec<_>>(), device)?;
            let q = self.q(&views, &rows(store, self.input.width, &self.parameters)?.0.f_index_select(0, &index)?, going.as_ref())?;
            let taken: Vec<i64> = batch.indices.iter().map(|i| i64::from(actions[*i as usize])).collect();
            let taken = to_device(&taken, device)?.f_view([-1, 1, 1])?.f_expand([-1, 1, atoms as i64], false)?;
            q.f_gather(1, &taken, false)?.f_squeeze_dim(1)
        };
        let q = if with_gradient { ask()? } else { no_grad(ask)? };
        let (mut numbers, mut evaluated) = (to_host(&q)?, Evaluated::default());
        let mut derivative = vec![0.0; atoms];
        for ((index, weight), row) in batch.indices.iter().zip(batch.weights).zip(numbers.chunks_exact_mut(atoms)) {
            if *weight == 0.0 {
                row.fill(0.0);
                evaluated.add(0.0, &Evaluation::default());
                continue;
            }
            let evaluation = objective.decision(*index as usize, QValues::new(row, &mut derivative));
            evaluated.add(*weight, &evaluation);
            row.iter_mut().zip(&derivative).for_each(|(row, d)| *row = weight * (evaluation.loss.q * d));
        }
        if let Some((plan, _)) = &plan {
            let own = std::mem::replace(&mut evaluated.errors, vec![0.0; whole.indices.len()]);
            plan.places.iter().zip(own).for_each(|(place, error)| evaluated.errors[*place as usize] = error);
        }
        if !with_gradient || batch.indices.is_empty() {
            return Ok((evaluated, None));
        }
        // the gradient of the sum of output x derivative, with constant derivatives, is that of the objective
        let loss = q.f_mul(&to_device(&numbers, device)?.f_view_as(&q)?)?.f_sum(Kind::Float)?;
        let gradients = Tensor::f_run_backward(&[loss], &[self.parameters.leaf()], false, false)?;
        Ok((evaluated, gradients.into_iter().next()))
    }
}

impl Behaviour for QNetwork {
    behaviour_by_parameters!();

    fn observation_width(&self) -> usize {
        self.input.width
    }

    fn actor(&self) -> Box<dyn Actor + '_> {
        Box::new(QActor { network: self, views: None, memory: Vec::new() })
    }

    fn memory_width(&self) -> usize {
        self.memory()
    }

    fn sequence_length(&self) -> usize {
        self.config.sequence_length
    }
}

impl_network!(QNetwork);

impl crate::QNetwork for QNetwork {
    fn actions(&self) -> usize {
        self.actions
    }

    fn head(&self) -> QHead {
        self.head
    }

    fn q_values(&mut self, store: &Store, some: Range<usize>, values: &mut Vec<f32>) {
        let n = some.len() * self.actions * self.head.atoms;
        *values = self.fault.guard(|| {
            no_grad(|| {
                let (all, views) = (rows(store, self.input.width, &self.parameters)?, self.parameters.views(Kind::Float)?);
                if self.memory() > 0 {
                    return self.q_of_sequences(store, &all.0, &views, some);
                }
                to_host(&self.q(&views, &all.0.f_narrow(0, some.start as i64, some.len() as i64)?, None)?)
            })
        });
        values.resize(n, f32::NAN);
    }

    fn evaluate(&mut self, store: &Store, batch: Batch<'_>, objective: &dyn ValueObjective) -> Evaluated {
        let mut evaluated = self.fault.guard(|| Ok(self.forward_backward(store, batch, objective, false)?.0));
        evaluated.errors.resize(batch.indices.len(), 0.0); // after a fault there are none
        evaluated
    }

    fn gradient(&mut self, store: &Store, batch: Batch<'_>, objective: &dyn ValueObjective) -> Evaluated {
        let (mut evaluated, gradient) = self.fault.guard(|| self.forward_backward(store, batch, objective, true));
        evaluated.errors.resize(batch.indices.len(), 0.0); // after a fault there are none
        self.parameters.take_gradient(gradient, UpdatedGroups::All);
        evaluated
    }

    fn snapshot(&self) -> Box<dyn crate::QNetwork> {
        let (parameters, fault) = (self.parameters.snapshot(), self.fault.clone());
        Box::new(Self { config: self.config.clone(), parameters, fault, ..*self })
    }

    fn track(&mut self, online: &dyn crate::QNetwork, tau: f32) {
        let online = (online as &dyn Any).downcast_ref::<Self>().expect("a network of the same engine");
        if let Err(error) = self.parameters.track(&online.parameters, tau) {
            self.fault.note(&error);
        }
    }
}

/// The actor of a [`QNetwork`]: it takes the action of the greatest value.
struct QActor<'a> {
    network: &'a QNetwork,
    views: Option<Views>,
    /// What is remembered of the episode of each row.
    memory: Vec<f32>,
}

impl QActor<'_> {
    fn q(&mut self, observations: &[f32]) -> Result<Vec<f32>, TchError> {
        let QNetwork { input: Input { width, .. }, parameters, .. } = self.network;
        no_grad(|| {
            let views = match self.views.take() {
                Some(views) => views,
                None => parameters.views(Kind::Float)?,
            };
            let rows = to_device(observations, parameters.device())?.f_view([-1, *width as i64])?;
            let going = match self.network.memory() {
                0 => None,
                width => Some(Going::new(&[self.memory.len() / width], &self.memory, width, parameters.device())?),
            };
            let q = to_host(&self.network.q(&views, &rows, going.as_ref())?)?;
            if let Some(going) = going {
                self.memory = to_host(&going.after()?)?;
            }
            self.views = Some(views);
            Ok(q)
        })
    }
}

impl Actor for QActor<'_> {
    fn act(&mut self, observations: &[f32], masks: Option<&[bool]>, _: Choice<'_>, actions: &mut ActionRows, log_probs: &mut [f32]) {
        let (network, width) = (self.network, self.network.input.width);
        assert!(observations.len().is_multiple_of(width), "observations: expected rows of {width} numbers");
        let rows = observations.len() / width;
        assert_eq!(rows, log_probs.len(), "log-probabilities: expected room for {rows}");
        actions.resize(rows);
        let ActionRows::Discrete(actions) = actions else { panic!("actions: expected discrete actions, got {}", actions.kind()) };
        let (n, atoms) = (network.actions, network.head.atoms);
        self.memory.resize(rows * network.memory(), 0.0);
        let q = network.fault.guard(|| self.q(observations));
        for (row, (action, q)) in actions.iter_mut().zip(q.chunks_exact(n * atoms)).enumerate() {
            *action = greedy(q, atoms, masks.map(|masks| &masks[row * n..(row + 1) * n])) as u32;
        }
        log_probs.fill(0.0);
    }

    fn memory(&mut self) -> Option<&mut Vec<f32>> {
        (self.network.memory() > 0).then_some(&mut self.memory)
    }
}
