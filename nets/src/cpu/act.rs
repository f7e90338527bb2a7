//! Computations that need only forward passes: values, distributions, actions.

use std::sync::PoisonError;

use gradus_base::random::Stream;
use rand_distr::{Distribution, StandardNormal};

use super::ActorCritic;
use super::forward_backward::{Subnet, forward};
use super::head::{Decisions, HeadPass};
use super::layer::padded;
use super::layout::{Head, Layout};
use super::perceptron::Observed;
use super::weights::Weights;
use super::workspace::{TILE, Workspace};
use crate::noise::RowNoise;
use crate::policy::restore;
use crate::store::Numbers;
use crate::{ActionRows, Actor, ActorState, Choice, Store};
use gradus_base::math::exp_inline;
use gradus_base::simd::{Kernel, Simd, dispatch};

/// Computes the values of `values.len()` observations of a store, from observation `first` on.
pub(super) struct Values<'a> {
    pub layout: &'a Layout,
    pub parameters: &'a [f32],
    pub store: &'a Store,
    pub first: usize,
    pub workspace: &'a mut Workspace,
    pub values: &'a mut [f32],
}

impl Kernel for Values<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { layout, parameters, store, first, workspace: w, values } = self;
        for (tile, values) in values.chunks_mut(TILE).enumerate() {
            let begin = first + tile * TILE;
            let observations = store.numbers().part(begin * layout.width()..(begin + values.len()) * layout.width());
            w.tile.read(&layout.perceptron, Observed::Block(observations));
            forward(simd, layout, parameters, Subnet::Critic, w);
            let heads = w.tile.outputs(layout.critic_head()).chunks_exact(padded(1));
            values.iter_mut().zip(heads).for_each(|(value, head)| *value = head[0]);
        }
    }
}

/// The requested outputs of the actor.
pub(super) enum Answer<'a> {
    /// log pi(a|s), one number per decision.
    LogProbs(&'a mut [f32]),
    /// The whole distribution, one row per decision.
    Distributions(&'a mut [f32]),
    /// V(s), one number per observation, of a network with a memory.
    Values(&'a mut [f32]),
}

/// Evaluates the actor on the decisions of a store, from decision `first` on, until `answer` is full.
pub(super) struct Describe<'a> {
    pub layout: &'a Layout,
    pub parameters: &'a [f32],
    pub store: &'a Store,
    pub first: usize,
    pub workspace: &'a mut Workspace,
    pub answer: Answer<'a>,
}

impl Kernel for Describe<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { layout, parameters, store, first, workspace: w, mut answer } = self;
        let width = layout.distribution_width();
        let end = first
            + match &answer {
                Answer::LogProbs(numbers) | Answer::Values(numbers) => numbers.len(),
                Answer::Distributions(rows) => rows.len() / width,
            };
        let head = HeadPass { simd, layout, parameters };
        head.prepare(w);
        for begin in (first..end).step_by(TILE) {
            let indices: [u32; TILE] = std::array::from_fn(|row| (begin + row) as u32);
            let decisions = Decisions { store, indices: &indices[..TILE.min(end - begin)], old: None, reference: None };
            let rows = w.tile.read(&layout.perceptron, decisions.observations());
            forward(simd, layout, parameters, Subnet::Actor, w);
            head.read(rows, decisions.masks(layout.actions), w);
            for row in 0..rows {
                let place = begin - first + row;
                match &mut answer {
                    Answer::LogProbs(log_probs) => log_probs[place] = head.log_prob(row, &store.actions, begin + row, w),
                    Answer::Distributions(rows) => head.describe(row, w, &mut rows[place * width..(place + 1) * width]),
                    Answer::Values(_) => {}
                }
            }
        }
    }
}

/// Runs the actor over rows of observations and chooses actions.
struct Act<'a, 'b> {
    layout: &'a Layout,
    parameters: &'a [f32],
    workspace: &'a mut Workspace,
    /// Whether the workspace has not been prepared.
    is_first: bool,
    observations: &'a [f32],
    masks: Option<&'a [bool]>,
    choice: Choice<'b>,
    /// For gSDE: the noise matrix theta of each row (features x actions).
    noise: &'a [f32],
    /// What is remembered of the episode of each row; empty without a memory.
    memory: &'a mut [f32],
    actions: &'a mut ActionRows,
    log_probs: &'a mut [f32],
}

impl Kernel for Act<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { layout, parameters, workspace: w, is_first, observations, masks, mut choice, noise, memory, actions, log_probs } = self;
        let (n, remembered) = (layout.actions, layout.perceptron.memory);
        // the critic has a memory of its own
        let subnet = if remembered > 0 && layout.trunk.is_empty() { Subnet::Both } else { Subnet::Actor };
        let head = HeadPass { simd, layout, parameters };
        if is_first {
            head.prepare(w);
        }
        for (tile, (block, log_probs)) in observations.chunks(TILE * layout.width()).zip(log_probs.chunks_mut(TILE)).enumerate() {
            let first = tile * TILE;
            let rows = w.tile.read(&layout.perceptron, Observed::Block(Numbers::F32(block)));
            if remembered > 0 {
                let memory = &mut memory[first * remembered..(first + rows) * remembered];
                w.tile.begin(&[rows], memory);
                forward(simd, layout, parameters, subnet, w);
                w.tile.recall(&layout.perceptron, memory);
            } else {
                forward(simd, layout, parameters, subnet, w);
            }
            let mask = masks.map(|masks| move |row: usize| &masks[(first + row) * n..(first + row + 1) * n]);
            if let (ActionRows::Discrete(actions), Choice::Sample(streams), true) = (&mut *actions, &mut choice, layout.is_narrow()) {
                head.draw(mask, &mut streams[first..first + rows], (&mut actions[first..first + rows], log_probs), w);
                continue;
            }
            head.read(rows, mask, w);
            for (row, log_prob) in log_probs.iter_mut().enumerate() {
                let place = first + row;
                match actions {
                    ActionRows::Discrete(actions) => {
                        actions[place] = layout.choices.choose(head.numbers(row, w), &mut choice, place);
                    }
                    ActionRows::Continuous { rows, width } => {
                        let action = &mut rows[place * *width..(place + 1) * *width];
                        action.copy_from_slice(head.numbers(row, w));
                        if let Choice::Sample(streams) = &mut choice {
                            match layout.head {
                                Head::Gsde { .. } => {
                                    let theta = &noise[place * layout.features() * n..(place + 1) * layout.features() * n];
                                    head.add_noise(row, theta, w, action);
                                }
                                _ => add_noise(&mut streams[place], head.log_stds(row, w), action),
                            }
                        }
                    }
                    ActionRows::OnDevice(_) => actions.not_here(),
                }
                *log_prob = head.log_prob(row, actions, place, w);
            }
        }
    }
}

/// Adds noise to the means: a = mu + sigma N(0, 1).
#[inline(always)]
fn add_noise(stream: &mut Stream, log_stds: &[f32], action: &mut [f32]) {
    for (a, log_std) in action.iter_mut().zip(log_stds) {
        let normal: f32 = StandardNormal.sample(stream);
        *a += exp_inline(*log_std) * normal;
    }
}

/// Samples the gSDE noise theta_jk ~ N(0, sigma_jk^2) of a row.
struct Draw<'a> {
    layout: &'a Layout,
    parameters: &'a [f32],
    stream: &'a mut Stream,
    theta: &'a mut [f32],
}

impl Kernel for Draw<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self { layout, parameters, stream, theta } = self;
        let n = layout.actions;
        let log_stds = parameters[layout.log_std_range()].chunks_exact(padded(n));
        for (theta, log_stds) in theta.chunks_exact_mut(n).zip(log_stds) {
            theta.fill(0.0);
            add_noise(stream, &log_stds[..n], theta);
        }
    }
}

/// The actor of an [`ActorCritic`].
pub(super) struct CpuActor<'a> {
    policy: &'a ActorCritic,
    /// Returned to the policy when the actor is dropped.
    workspace: Option<Workspace>,
    is_first: bool,
    /// gSDE's matrices theta.
    noise: RowNoise,
    /// What is remembered of the episode of each row.
    memory: Vec<f32>,
}

impl<'a> CpuActor<'a> {
    pub fn new(policy: &'a ActorCritic) -> Self {
        let spare = policy.spares.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let workspace = spare.unwrap_or_else(|| Workspace::new(&policy.layout));
        let noise = RowNoise::new(policy.layout.features() * policy.layout.actions, policy.config.gsde_sample_every);
        Self { policy, workspace: Some(workspace), is_first: true, noise, memory: Vec::new() }
    }

    /// Samples the gSDE noise of rows without noise, and again after every `gsde_sample_every` steps of a row (0: never).
    fn draw(&mut self, streams: &mut [Stream]) {
        let ActorCritic { layout, level, weights: Weights { values: parameters, .. }, .. } = self.policy;
        self.noise.draw(streams, |stream, theta| dispatch(*level, Draw { layout, parameters, stream, theta }));
    }
}

impl Drop for CpuActor<'_> {
    fn drop(&mut self) {
        self.policy.spares.lock().unwrap_or_else(PoisonError::into_inner).extend(self.workspace.take());
    }
}

impl Actor for CpuActor<'_> {
    fn act(
        &mut self,
        observations: &[f32],
        masks: Option<&[bool]>,
        mut choice: Choice<'_>,
        actions: &mut ActionRows,
        log_probs: &mut [f32],
    ) {
        let ActorCritic { layout, level, weights: Weights { values: parameters, .. }, .. } = self.policy;
        assert!(observations.len().is_multiple_of(layout.width()), "observations: expected rows of {} numbers", layout.width());
        let rows = observations.len() / layout.width();
        layout.assert_actions(actions);
        actions.resize(rows);
        assert_eq!(rows, log_probs.len(), "log-probabilities: expected room for {rows}");
        layout.assert_masks(masks, rows);
        if let Choice::Sample(streams) = &mut choice {
            assert_eq!(streams.len(), rows, "streams: expected one per row");
            if let Head::Gsde { .. } = layout.head {
                self.draw(streams);
            }
        }
        self.memory.resize(rows * layout.perceptron.memory, 0.0);
        let noise = match (&choice, &layout.head) {
            (Choice::Sample(_), Head::Gsde { .. }) => self.noise.of(0..rows),
            _ => &[],
        };
        let Self { workspace, is_first, memory, .. } = self;
        let workspace = workspace.as_mut().expect("an actor keeps its workspace until it is dropped");
        let is_first = std::mem::replace(is_first, false);
        dispatch(*level, Act { layout, parameters, workspace, is_first, observations, masks, choice, noise, memory, actions, log_probs });
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
