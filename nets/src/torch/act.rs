//! Chooses actions for rows of observations: the device computes the distributions, and the host samples from them.

use gradus_base::random::Stream;
use rand_distr::{Distribution as _, StandardNormal};
use tch::{Kind, TchError, no_grad};

use super::actor_critic::ActorCritic;
use super::cell::Going;
use super::common::behaviour_by_parameters;
use super::parameters::{Views, to_device, to_host};
use crate::noise::RowNoise;
use crate::policy::restore;
use crate::{ActionRows, Actor, ActorState, Behaviour, Choice, gaussian};
use gradus_base::math::exp;

/// The actor of an [`ActorCritic`].
pub(super) struct RowActor<'a> {
    policy: &'a ActorCritic,
    views: Option<Views>,
    /// gSDE's noise matrix theta (features x action dimensions) of every row.
    noise: RowNoise,
    /// What is remembered of the episode of each row.
    memory: Vec<f32>,
}

impl Behaviour for ActorCritic {
    behaviour_by_parameters!();

    fn observation_width(&self) -> usize {
        self.width()
    }

    fn actor(&self) -> Box<dyn Actor + '_> {
        Box::new(RowActor::new(self))
    }

    fn memory_width(&self) -> usize {
        self.memory()
    }

    fn sequence_length(&self) -> usize {
        self.sequence_length()
    }
}

/// The device's outputs for some rows.
struct Outputs {
    /// The log-probabilities of discrete actions, or the means and log standard deviations of continuous actions.
    numbers: Vec<f32>,
    /// With gSDE, the inputs of the actor's last layer; otherwise empty.
    features: Vec<f32>,
}

impl<'a> RowActor<'a> {
    pub fn new(policy: &'a ActorCritic) -> Self {
        let length = if policy.has_gsde() { policy.noise_length() } else { 1 };
        Self { policy, views: None, noise: RowNoise::new(length, policy.noise_lasts()), memory: Vec::new() }
    }

    fn ask(&mut self, observations: &[f32], masks: Option<&[bool]>) -> Result<Outputs, TchError> {
        let policy = self.policy;
        let (device, width, n) = (policy.device(), policy.width(), policy.outputs());
        no_grad(|| {
            let views = match self.views.take() {
                Some(views) => views,
                None => policy.views(Kind::Float)?,
            };
            let rows = to_device(observations, device)?.f_view([-1, width as i64])?;
            let masks = masks.map(|masks| to_device(masks, device)?.f_view([-1, n as i64])).transpose()?;
            let count = observations.len() / width;
            let going = match policy.memory() {
                0 => None,
                remembered => Some(Going::new(&[count], &self.memory, remembered, device)?),
            };
            let heads = policy.heads(&views, &rows, going.as_ref())?;
            if let Some(going) = going {
                self.memory = to_host(&going.after()?)?;
            }
            let numbers = to_host(&policy.distribution(&views, &heads, masks.as_ref())?.rows()?)?;
            let features = if policy.has_gsde() { to_host(&heads.features)? } else { Vec::new() };
            self.views = Some(views);
            Ok(Outputs { numbers, features })
        })
    }

    /// Samples theta for the rows that have none, and again after every `gsde_sample_every` steps of a row (0: never).
    fn draw_noise(&mut self, streams: &mut [Stream]) -> Result<(), TchError> {
        let (policy, mut log_stds) = (self.policy, Ok(Vec::new()));
        self.noise.draw(streams, |stream, theta| {
            // fetched from the device if a row needs them
            if log_stds.as_ref().is_ok_and(Vec::is_empty) {
                log_stds = policy.log_stds();
            }
            if let Ok(log_stds) = &log_stds {
                theta.iter_mut().zip(log_stds).for_each(|(theta, log_std)| *theta = deviation(*log_std, stream));
            }
        });
        log_stds.map(|_| ())
    }

    fn answer(
        &mut self,
        (observations, masks): (&[f32], Option<&[bool]>),
        choice: &mut Choice<'_>,
        actions: &mut ActionRows,
        log_probs: &mut [f32],
    ) -> Result<(), TchError> {
        let (n, choices) = (self.policy.outputs(), self.policy.choices());
        if let (true, Choice::Sample(streams)) = (self.policy.has_gsde(), &mut *choice) {
            self.draw_noise(streams)?;
        }
        let Outputs { numbers, features } = self.ask(observations, masks)?;
        match actions {
            ActionRows::Discrete(actions) => {
                for (row, numbers) in numbers.chunks_exact(n).enumerate() {
                    let action = choices.choose(numbers, choice, row);
                    (actions[row], log_probs[row]) = (action, choices.log_prob(numbers, action));
                }
            }
            ActionRows::Continuous { rows, .. } => {
                let width = features.len() / log_probs.len().max(1);
                for (row, (action, numbers)) in rows.chunks_exact_mut(n).zip(numbers.chunks_exact(2 * n)).enumerate() {
                    let (means, log_stds) = numbers.split_at(n);
                    action.copy_from_slice(means);
                    match &mut *choice {
                        Choice::Sample(_) if self.policy.has_gsde() => {
                            let theta = self.noise.of(row..row + 1);
                            for (feature, theta) in features[row * width..][..width].iter().zip(theta.chunks_exact(n)) {
                                action.iter_mut().zip(theta).for_each(|(a, theta)| *a += feature * theta);
                            }
                        }
                        Choice::Sample(streams) => {
                            action.iter_mut().zip(log_stds).for_each(|(a, log_std)| *a += deviation(*log_std, &mut streams[row]));
                        }
                        _ => {}
                    }
                    log_probs[row] = gaussian::log_prob(means, log_stds, action);
                }
            }
            ActionRows::OnDevice(_) => actions.not_here(),
        }
        Ok(())
    }
}

/// Samples from N(0, sigma^2), given log sigma.
fn deviation(log_std: f32, stream: &mut Stream) -> f32 {
    let normal: f32 = StandardNormal.sample(stream);
    exp(log_std) * normal
}

impl Actor for RowActor<'_> {
    fn act(
        &mut self,
        observations: &[f32],
        masks: Option<&[bool]>,
        mut choice: Choice<'_>,
        actions: &mut ActionRows,
        log_probs: &mut [f32],
    ) {
        let (width, n) = (self.policy.width(), self.policy.outputs());
        assert!(observations.len().is_multiple_of(width), "observations: expected rows of {width} numbers");
        let rows = observations.len() / width;
        self.policy.assert_actions(actions);
        actions.resize(rows);
        assert_eq!(rows, log_probs.len(), "log-probabilities: expected room for {rows}");
        if let Some(masks) = masks {
            assert_eq!(masks.len(), rows * n, "masks: expected {n} entries for each of {rows} rows");
        }
        if let Choice::Sample(streams) | Choice::Truncated(streams, _) = &choice {
            assert_eq!(streams.len(), rows, "streams: expected one per row");
        }
        let policy = self.policy;
        self.memory.resize(rows * policy.memory(), 0.0);
        policy.fault().guard(|| self.answer((observations, masks), &mut choice, actions, log_probs));
    }

    fn memory(&mut self) -> Option<&mut Vec<f32>> {
        (self.policy.memory() > 0).then_some(&mut self.memory)
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
