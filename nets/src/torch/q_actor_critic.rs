//! Networks of continuous actions on libtorch: an actor, and critics of observations and actions.

use std::any::Any;
use std::ops::Range;

use gradus_base::random::Stream;
use gradus_envs::Space;
use tch::{Kind, TchError, Tensor, no_grad};

use super::common::{behaviour_by_parameters, impl_network};
use super::fault::Fault;
use super::library::use_threads;
use super::parameters::{Parameters, Views, to_device, to_host};
use super::perceptron::{self, chain};
use crate::noise::RowNoise;
use crate::policy::restore;
use crate::q_actor_critic::{actor_noise, fill_normal};
use crate::squashed::HALF_LN_2PI;
use crate::{
    ActionRows, ActionScale, Actor, ActorObjective, ActorState, Batch, Behaviour, Choice, Device, Evaluated, Evaluation, LogStdBounds,
    NetworkConfig, NetworkError, Of, QActor, QActorHead, QValues, Store, Sums, TorchConfig, UpdatedGroups, ValueObjective, cpu,
};
use gradus_base::tensors::Tensors;

/// Added to the variances of gSDE, as in the engine `cpu`.
const VARIANCE_FLOOR: f64 = 1e-6;
/// Bound of the means with gSDE, as in the engine `cpu`.
const MEAN_BOUND: f64 = 2.0;

/// A network of continuous actions on libtorch.
pub struct QActorCritic {
    config: NetworkConfig,
    head: QActorHead,
    width: usize,
    scale: ActionScale,
    parameters: Parameters,
    fault: Fault,
}

/// The standard normal numbers of some rows, on the device.
enum Noise {
    /// None: the greedy actions.
    Zero,
    /// Rows x dimensions.
    Rows(Tensor),
    /// With gSDE: one matrix of features x dimensions, or rows x features x dimensions.
    Matrices(Tensor),
}

impl QActorCritic {
    /// Creates a network on `device`, with the same parameters as the engine `cpu` creates for these arguments.
    pub fn new(
        (config, torch): (&NetworkConfig, &TorchConfig),
        head: QActorHead,
        (observations, actions): (&Space, &Space),
        seed: u64,
        device: Device,
    ) -> Result<Self, NetworkError> {
        let (width, scale) = config.check_q_actor(head, observations, actions)?;
        let values = cpu::QActorCritic::new(config, head, observations, actions, seed)?.save();
        let (parameters, fault) = perceptron::parameters(&values, torch, device)?;
        Ok(Self { config: config.clone(), head, width, scale, parameters, fault })
    }

    /// Returns the gradient of the last batch by name, in PyTorch's layout.
    pub fn gradient_tensors(&self) -> Tensors {
        self.parameters.save_gradient()
    }

    /// Numbers of the layer that the actor's last layer reads.
    fn features(&self) -> usize {
        self.config.hidden.last().copied().unwrap_or(self.width)
    }

    /// Copies standard normal numbers to the device. `numbers` has a row for each of `rows` rows, or with gSDE one matrix of all rows or one of
    /// each.
    fn noise(&self, numbers: &[f32], rows: usize) -> Result<Noise, TchError> {
        if numbers.is_empty() {
            return Ok(Noise::Zero);
        }
        let (there, d, features) = (to_device(numbers, self.parameters.device())?, self.scale.width() as i64, self.features() as i64);
        Ok(match self.config.gsde {
            false => Noise::Rows(there.f_view([rows as i64, d])?),
            true if numbers.len() == self.features() * self.scale.width() => Noise::Matrices(there.f_view([features, d])?),
            true => Noise::Matrices(there.f_view([rows as i64, features, d])?),
        })
    }

    /// Draws standard normal numbers for `rows` rows, or with gSDE for one noise matrix. None without a stream.
    fn draw(&self, rows: usize, noise: Option<&mut Stream>) -> Vec<f32> {
        let n = self.scale.width() * if self.config.gsde { self.features() } else { rows };
        match (noise, self.head.actor) {
            (Some(stream), QActor::Squashed(_)) => (0..n).map(|_| stream.normal()).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the actor's actions, rows x dimensions, and log pi(a|s), one number per row.
    fn choose(&self, views: &Views, observations: &Tensor, noise: &Noise) -> Result<(Tensor, Tensor), TchError> {
        let (hidden, d) = (self.config.hidden.len(), self.scale.width() as i64);
        use_threads(self.parameters.len(), observations.size().first().map_or(0, |rows| *rows as usize));
        let QActor::Squashed(bounds) = self.head.actor else {
            let actions = chain(&self.config, (views, "actor"), observations.shallow_clone(), hidden, true)?.f_tanh()?;
            let log_probs = no_grad(|| actions.f_select(1, 0)?.f_zeros_like())?;
            return Ok((actions, log_probs));
        };
        let (u, terms) = if self.config.gsde {
            self.explore(views, observations, noise)?
        } else {
            let outputs = chain(&self.config, (views, "actor"), observations.shallow_clone(), hidden, true)?;
            let (means, log_stds) = (outputs.f_narrow(1, 0, d)?, outputs.f_narrow(1, d, d)?);
            let log_stds = match bounds {
                LogStdBounds::Clamp => log_stds.f_clamp(-20.0, 2.0)?,
                LogStdBounds::Tanh => log_stds.f_tanh()?.f_add_scalar(1.0)?.f_mul_scalar(3.5)?.f_sub_scalar(5.0)?,
            };
            match noise {
                Noise::Rows(epsilon) => {
                    let terms = epsilon.f_square()?.f_mul_scalar(-0.5)?.f_sub(&log_stds)?;
                    (log_stds.f_exp()?.f_mul(epsilon)?.f_add(&means)?, terms)
                }
                _ => (means, log_stds.f_neg()?),
            }
        };
        // ln(1 - tanh^2 u) = 2 (ln 2 - u - softplus(-2 u))
        let log_slopes = u.f_mul_scalar(-2.0)?.f_softplus()?.f_add(&u)?.f_mul_scalar(-2.0)?.f_add_scalar(2.0 * 2.0_f64.ln())?;
        let terms = terms.f_sub(&log_slopes)?.f_sub_scalar(f64::from(HALF_LN_2PI))?;
        Ok((u.f_tanh()?, terms.f_sum_dim_intlist(1, false, Kind::Float)?))
    }

    /// Returns u with the noise of gSDE, and -n^2 / (2 v) - ln(v) / 2 of noise n and its variance v.
    fn explore(&self, views: &Views, observations: &Tensor, noise: &Noise) -> Result<(Tensor, Tensor), TchError> {
        let hidden = self.config.hidden.len();
        let features = chain(&self.config, (views, "actor"), observations.shallow_clone(), hidden, false)?;
        // the output layer follows the hidden layers, numbered as in PyTorch's `Sequential`
        let last = hidden * if self.config.layer_norm { 3 } else { 2 };
        let of = |what: &str| views.get(&format!("actor.{last}.{what}"));
        let means = features.f_linear(of("weight")?, Some(of("bias")?))?.f_clamp(-MEAN_BOUND, MEAN_BOUND)?;
        let stds = views.get("actor.log_std")?.f_exp()?;
        let variances = features.f_square()?.f_matmul(&stds.f_square()?)?.f_add_scalar(VARIANCE_FLOOR)?;
        let half_logs = variances.f_log()?.f_mul_scalar(-0.5)?;
        let Noise::Matrices(epsilon) = noise else { return Ok((means, half_logs)) };
        let theta = epsilon.f_mul(&stds)?;
        let noise = match theta.dim() {
            2 => features.f_matmul(&theta)?,
            _ => features.f_unsqueeze(1)?.f_matmul(&theta)?.f_squeeze_dim(1)?,
        };
        let terms = noise.f_square()?.f_div(&variances)?.f_mul_scalar(-0.5)?.f_add(&half_logs)?;
        Ok((means.f_add(&noise)?, terms))
    }

    /// Returns Q_k(s, a) of the first `critics` critics: rows x critics.
    fn criticise(&self, views: &Views, critics: usize, observations: &Tensor, actions: &Tensor) -> Result<Tensor, TchError> {
        let pairs = Tensor::f_cat(&[observations, actions], 1)?;
        let of = |k: usize| chain(&self.config, (views, &format!("critic.{k}")), pairs.shallow_clone(), self.config.hidden.len(), true);
        Tensor::f_cat(&(0..critics).map(of).collect::<Result<Vec<_>, _>>()?, 1)
    }

    /// Returns rows of the observations of a store.
    fn rows(&self, store: &Store, indices: &[u32]) -> Result<Tensor, TchError> {
        let indices: Vec<i64> = indices.iter().map(|i| i64::from(*i)).collect();
        perceptron::rows(store, self.width, &self.parameters)?.0.f_index_select(0, &to_device(&indices, self.parameters.device())?)
    }

    /// Returns consecutive rows of the observations of a store.
    fn range(&self, store: &Store, rows: &Range<usize>) -> Result<Tensor, TchError> {
        perceptron::rows(store, self.width, &self.parameters)?.0.f_narrow(0, rows.start as i64, rows.len() as i64)
    }

    /// Differentiates the sum over `outputs` of output x the objective's derivative with respect to it. `numbers` has these derivatives.
    fn differentiate(&self, outputs: &Tensor, numbers: &[f32]) -> Result<Option<Tensor>, TchError> {
        let loss = outputs.f_mul(&to_device(numbers, outputs.device())?.f_view_as(outputs)?)?.f_sum(Kind::Float)?;
        Ok(Tensor::f_run_backward(&[loss], &[self.parameters.leaf()], false, false)?.into_iter().next())
    }

    fn of_critics(&self, store: &Store, batch: Batch<'_>, objective: &dyn ValueObjective) -> Result<(Evaluated, Option<Tensor>), TchError> {
        let (d, n, mut evaluated) = (self.scale.width(), self.head.critics, Evaluated::default());
        let ActionRows::Continuous { rows, width } = &store.actions else {
            panic!("actions: expected rows of {d} numbers, got {}", store.actions.kind())
        };
        assert_eq!(
            (*width, batch.indices.len()),
            (d, batch.weights.len()),
            "batch: expected actions of width {d} and one weight per decision"
        );
        let mut actions: Vec<f32> = batch.indices.iter().flat_map(|i| &rows[*i as usize * d..(*i as usize + 1) * d]).copied().collect();
        self.scale.scale(&mut actions);
        let actions = to_device(&actions, self.parameters.device())?.f_view([-1, d as i64])?;
        let q = self.criticise(&self.parameters.views(Kind::Float)?, n, &self.rows(store, batch.indices)?, &actions)?;
        let (mut numbers, mut derivative) = (to_host(&q)?, vec![0.0; n]);
        for ((index, weight), row) in batch.indices.iter().zip(batch.weights).zip(numbers.chunks_exact_mut(n)) {
            if *weight == 0.0 {
                row.fill(0.0);
                evaluated.add(0.0, &Evaluation::default());
                continue;
            }
            let evaluation = objective.decision(*index as usize, QValues::new(row, &mut derivative));
            evaluated.add(*weight, &evaluation);
            row.iter_mut().zip(&derivative).for_each(|(row, d)| *row = weight * (evaluation.loss.q * d));
        }
        Ok((evaluated, self.differentiate(&q, &numbers)?))
    }

    fn of_actor(
        &self,
        store: &Store,
        batch: Batch<'_>,
        epsilon: &[f32],
        objective: &dyn ActorObjective,
    ) -> Result<(Sums, Option<Tensor>), TchError> {
        assert_eq!(batch.indices.len(), batch.weights.len(), "batch: expected one weight per decision");
        let n = objective.critics(self.head.critics).min(self.head.critics);
        let (views, rows, mut evaluated) = (self.parameters.views(Kind::Float)?, self.rows(store, batch.indices)?, Evaluated::default());
        let (actions, log_probs) = self.choose(&views, &rows, &self.noise(epsilon, batch.indices.len())?)?;
        // the critics are held: the gradient goes through them into the action
        let q = self.criticise(&views.detached()?, n, &rows, &actions)?;
        let outputs = Tensor::f_cat(&[log_probs.f_unsqueeze(1)?, q], 1)?;
        let (mut numbers, mut derivative) = (to_host(&outputs)?, vec![0.0; n]);
        for ((index, weight), row) in batch.indices.iter().zip(batch.weights).zip(numbers.chunks_exact_mut(1 + n)) {
            if *weight == 0.0 {
                row.fill(0.0);
                evaluated.add(0.0, &Evaluation::default());
                continue;
            }
            let evaluation = objective.decision(*index as usize, Of::variable(row[0]), QValues::new(&row[1..], &mut derivative));
            evaluated.add(*weight, &evaluation);
            row[0] = weight * evaluation.loss.slopes.log_prob;
            row[1..].iter_mut().zip(&derivative).for_each(|(row, d)| *row = weight * (evaluation.loss.q * d));
        }
        Ok((evaluated.sums, self.differentiate(&outputs, &numbers)?))
    }
}

impl Behaviour for QActorCritic {
    behaviour_by_parameters!();

    fn observation_width(&self) -> usize {
        self.width
    }

    fn actor(&self) -> Box<dyn Actor + '_> {
        Box::new(TorchActor { network: self, views: None, noise: actor_noise(&self.config, self.features(), self.scale.width()) })
    }
}

impl_network!(QActorCritic);

impl crate::QActorCritic for QActorCritic {
    fn head(&self) -> QActorHead {
        self.head
    }

    fn action_width(&self) -> usize {
        self.scale.width()
    }

    fn actions(&mut self, store: &Store, rows: Range<usize>, noise: Option<&mut Stream>, actions: &mut Vec<f32>, log_probs: &mut Vec<f32>) {
        let epsilon = self.draw(rows.len(), noise);
        (*actions, *log_probs) = self.fault.guard(|| {
            no_grad(|| {
                let (views, noise) = (self.parameters.views(Kind::Float)?, self.noise(&epsilon, rows.len())?);
                pair_to_host(&self.choose(&views, &self.range(store, &rows)?, &noise)?)
            })
        });
        actions.resize(rows.len() * self.scale.width(), f32::NAN);
        log_probs.resize(rows.len(), f32::NAN);
    }

    fn q_values(&mut self, store: &Store, rows: Range<usize>, actions: &[f32], values: &mut Vec<f32>) {
        let d = self.scale.width();
        assert_eq!(actions.len(), rows.len() * d, "actions: expected a row of {d} numbers for each observation");
        *values = self.fault.guard(|| {
            no_grad(|| {
                let actions = to_device(actions, self.parameters.device())?.f_view([-1, d as i64])?;
                to_host(&self.criticise(&self.parameters.views(Kind::Float)?, self.head.critics, &self.range(store, &rows)?, &actions)?)
            })
        });
        values.resize(rows.len() * self.head.critics, f32::NAN);
    }

    fn critic_gradient(&mut self, store: &Store, batch: Batch<'_>, objective: &dyn ValueObjective) -> Evaluated {
        let (mut evaluated, gradient) = self.fault.guard(|| self.of_critics(store, batch, objective));
        evaluated.errors.resize(batch.indices.len(), 0.0); // after a fault there are none
        self.parameters.take_gradient(gradient, UpdatedGroups::Critic);
        evaluated
    }

    fn actor_gradient(&mut self, store: &Store, batch: Batch<'_>, noise: Option<&mut Stream>, objective: &dyn ActorObjective) -> Sums {
        let epsilon = self.draw(batch.indices.len(), noise);
        let (sums, gradient) = self.fault.guard(|| self.of_actor(store, batch, &epsilon, objective));
        self.parameters.take_gradient(gradient, UpdatedGroups::Actor);
        sums
    }

    fn snapshot(&self) -> Box<dyn crate::QActorCritic> {
        let (parameters, fault) = (self.parameters.snapshot(), self.fault.clone());
        Box::new(Self { config: self.config.clone(), scale: self.scale.clone(), parameters, fault, ..*self })
    }

    fn track(&mut self, online: &dyn crate::QActorCritic, tau: f32) {
        let online = (online as &dyn Any).downcast_ref::<Self>().expect("a network of the same engine");
        if let Err(error) = self.parameters.track(&online.parameters, tau) {
            self.fault.note(&error);
        }
    }
}

/// Copies actions and their log-probabilities to the host, at once.
fn pair_to_host((actions, log_probs): &(Tensor, Tensor)) -> Result<(Vec<f32>, Vec<f32>), TchError> {
    let mut numbers = to_host(&Tensor::f_cat(&[actions.f_flatten(0, -1)?, log_probs.f_flatten(0, -1)?], 0)?)?;
    let log_probs = numbers.split_off(actions.numel());
    Ok((numbers, log_probs))
}

/// The actor of a [`QActorCritic`].
struct TorchActor<'a> {
    network: &'a QActorCritic,
    views: Option<Views>,
    noise: RowNoise,
}

impl TorchActor<'_> {
    /// Returns scaled actions and log pi(a|s).
    fn choose(&mut self, observations: &[f32], rows: usize, is_sampled: bool) -> Result<(Vec<f32>, Vec<f32>), TchError> {
        let QActorCritic { width, parameters, .. } = self.network;
        no_grad(|| {
            let views = match self.views.take() {
                Some(views) => views,
                None => parameters.views(Kind::Float)?,
            };
            let there = to_device(observations, parameters.device())?.f_view([-1, *width as i64])?;
            let noise = self.network.noise(if is_sampled { self.noise.of(0..rows) } else { &[] }, rows)?;
            let chosen = self.network.choose(&views, &there, &noise)?;
            self.views = Some(views);
            pair_to_host(&chosen)
        })
    }
}

impl Actor for TorchActor<'_> {
    fn act(&mut self, observations: &[f32], _: Option<&[bool]>, choice: Choice<'_>, actions: &mut ActionRows, log_probs: &mut [f32]) {
        let QActorCritic { width, scale, fault, head, .. } = self.network;
        assert!(observations.len().is_multiple_of(*width), "observations: expected rows of {width} numbers");
        let rows = observations.len() / width;
        assert_eq!(rows, log_probs.len(), "log-probabilities: expected room for {rows}");
        actions.resize(rows);
        let is_sampled = matches!(head.actor, QActor::Squashed(_)) && matches!(choice, Choice::Sample(_));
        if let (Choice::Sample(streams), true) = (choice, is_sampled) {
            assert_eq!(streams.len(), rows, "streams: expected one per row");
            self.noise.draw(streams, fill_normal);
        }
        let ActionRows::Continuous { rows: to, .. } = actions else { panic!("actions: expected rows, got {}", actions.kind()) };
        let (chosen, of_chosen) = fault.guard(|| self.choose(observations, rows, is_sampled));
        // nothing was chosen if the device has failed
        to.iter_mut().zip(&chosen).for_each(|(to, action)| *to = *action);
        scale.unscale(to);
        let log_scale = if head.actor == QActor::Deterministic { 0.0 } else { scale.log_scale() };
        log_probs.iter_mut().zip(&of_chosen).for_each(|(to, log_prob)| *to = log_prob - log_scale);
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
