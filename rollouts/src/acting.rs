//! The acting loop: observe all rows, choose actions, step the environments, and reuse the rows of environments that are done.
//!
//! Training, evaluation and generation differ in what a row is and what they record of a step. Each implements [`Environments`].

use gradus_agents::{ActionNoise, Noisy};
use gradus_base::math;
use gradus_base::random::Stream;
use gradus_envs::{Actions, EnvError, Space};
use gradus_nets::{ActionRows, Actor, Behaviour, Choice, Sampling};

use crate::{ActiveRows, Clipped};

/// The actor's decisions, one per row.
pub struct Decisions<'a> {
    /// The sampled actions.
    pub drawn: &'a ActionRows,
    /// The actions, clipped to the bounds of the action space.
    pub clipped: Actions<'a>,
    /// log pi(a|s) of the sampled actions; for epsilon-greedy actions, the logarithm of their probability.
    pub log_probs: &'a [f32],
}

/// Environments that a policy acts in, numbered from 0. At each step, some or all of them act, one per row. The argument `rows` of the
/// methods has the number of the environment in each row.
pub trait Environments {
    /// The action space of each environment.
    fn action_space(&self) -> Space;

    /// Returns the observations of all rows, concatenated, and the action masks if the environments have any.
    fn observe(&mut self, rows: &[usize]) -> (&[f32], Option<&[bool]>);

    /// Steps every row with its action. Appends the rows that are now done to `done`, in ascending order.
    fn step(&mut self, rows: &[usize], decisions: &Decisions<'_>, done: &mut Vec<usize>) -> Result<(), EnvError>;

    /// Is called after environment `done`, in `row`, has finished. Environment `next` takes over the row. If `next` is `None`, the last row
    /// moves into `row`. In lockstep, no row moves.
    fn pass_on(&mut self, _row: usize, _done: usize, _next: Option<usize>) -> Result<(), EnvError> {
        Ok(())
    }

    /// Returns how the next actions differ from those of the policy.
    fn explores(&self) -> Explores {
        Explores::Not
    }

    /// Returns the last noise of every environment's actions, for [`Explores::Noise`].
    fn noise(&mut self) -> &mut [f32] {
        &mut []
    }

    /// Returns what a policy with a memory remembers of every environment's episode, `width` numbers each, which are 0 when an episode begins.
    /// `None` if each environment has only one episode: they then begin with 0.
    fn memory(&mut self) -> Option<&mut Vec<f32>> {
        None
    }

    /// Fills in the next actions and their log-probabilities if they were decided in advance, and returns whether they were. Each action
    /// counts as one draw from the row's stream.
    fn scripted(&self, _rows: &[usize], _actions: &mut ActionRows, _log_probs: &mut [f32]) -> bool {
        false
    }
}

/// How the actions of a step differ from those of the policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Explores {
    /// They are chosen as the caller of [`act`] says.
    Not,
    /// With this probability, an action is random. The other actions are greedy.
    Epsilon(f64),
    /// All are drawn uniformly between their bounds; continuous actions only.
    Uniform,
    /// Noise is added to the policy's actions, which are then clipped; continuous actions only.
    Noise(Noisy),
}

/// Lets `policy` act in `envs` until all of them are done. Actions are chosen by `sampling`, with the random streams of `active`.
pub fn act(policy: &dyn Behaviour, envs: &mut impl Environments, mut active: ActiveRows<'_>, sampling: &Sampling) -> Result<(), EnvError> {
    let (mut actor, mut chooser, mut done) = (policy.actor(), Chooser::new(envs.action_space()), Vec::new());
    let mut remembered = Vec::new();
    while !active.rows().is_empty() {
        let (rows, streams) = active.rows_and_streams();
        chooser.log_probs.resize(rows.len(), 0.0);
        let is_scripted = envs.scripted(rows, &mut chooser.drawn, &mut chooser.log_probs);
        let explores = envs.explores();
        if let Some(memory) = actor.memory() {
            recall(memory, rows, envs.memory().unwrap_or(&mut remembered), policy.memory_width());
        }
        let (observations, masks) = envs.observe(rows);
        if is_scripted {
            streams.iter_mut().for_each(|stream| stream.seek(stream.position() + 1));
        } else {
            chooser.choose(actor.as_mut(), (observations, masks), explores, sampling, streams);
            if let Explores::Noise(noisy) = explores {
                chooser.add_noise(noisy, (rows, streams), envs.noise());
            }
        }
        if let Some(memory) = actor.memory() {
            keep(memory, rows, envs.memory().unwrap_or(&mut remembered), policy.memory_width());
        }
        envs.step(rows, &chooser.decisions(), &mut done)?;
        for row in done.drain(..).rev() {
            let id = active.rows()[row];
            let (before, next) = (active.rows().len(), active.release(row));
            if next.is_some() || active.rows().len() < before {
                actor.release(row, next.is_some());
            }
            envs.pass_on(row, id, next)?;
        }
    }
    Ok(())
}

/// Copies what is remembered of the environment in each of `rows` to an actor. Those that are missing begin an episode.
fn recall(memory: &mut Vec<f32>, rows: &[usize], remembered: &mut Vec<f32>, width: usize) {
    let envs = rows.iter().map(|env| env + 1).max().unwrap_or(0);
    if remembered.len() < envs * width {
        remembered.resize(envs * width, 0.0);
    }
    memory.resize(rows.len() * width, 0.0);
    let rows = memory.chunks_exact_mut(width).zip(rows);
    rows.for_each(|(memory, env)| memory.copy_from_slice(&remembered[env * width..(env + 1) * width]));
}

/// Copies what an actor remembers of each of `rows` to the memories of the environments.
fn keep(memory: &[f32], rows: &[usize], remembered: &mut [f32], width: usize) {
    let rows = memory.chunks_exact(width).zip(rows);
    rows.for_each(|(memory, env)| remembered[env * width..(env + 1) * width].copy_from_slice(memory));
}

/// Chooses the actions of a step, one per row. It keeps the buffers from step to step.
pub(crate) struct Chooser {
    space: Space,
    drawn: ActionRows,
    log_probs: Vec<f32>,
    clipped: Clipped,
}

impl Chooser {
    /// # Panics
    /// If `space` is a space of texts.
    pub fn new(space: Space) -> Self {
        Self { drawn: ActionRows::empty(&space), log_probs: Vec::new(), clipped: Clipped::to(space.clone()), space }
    }

    /// Chooses an action for each row of observations, of which each has its stream. Noise is not added yet.
    pub fn choose(
        &mut self,
        actor: &mut dyn Actor,
        (observations, masks): (&[f32], Option<&[bool]>),
        explores: Explores,
        sampling: &Sampling,
        streams: &mut [Stream],
    ) {
        let Self { space, drawn, log_probs, .. } = self;
        match explores {
            Explores::Not | Explores::Noise(_) => actor.act(observations, masks, Choice::by(sampling, streams), drawn, log_probs),
            Explores::Epsilon(epsilon) => {
                if epsilon < 1.0 || actor.memory().is_some() {
                    actor.act(observations, masks, Choice::Greedy, drawn, log_probs);
                } else {
                    drawn.resize(streams.len());
                }
                let actions = if let Space::Discrete(n) = space { *n as usize } else { 0 };
                explore(epsilon, masks, (streams, actions), (drawn, log_probs));
            }
            Explores::Uniform => explore_uniformly(space, streams, (drawn, log_probs)),
        }
    }

    /// Adds noise to the actions of these environments and clips them. `last` has the last noise of every environment's actions.
    pub fn add_noise(&mut self, noisy: Noisy, (envs, streams): (&[usize], &mut [Stream]), last: &mut [f32]) {
        add_noise(noisy, &self.space, (envs, streams), (last, &mut self.drawn));
    }

    /// Returns what was chosen.
    pub fn decisions(&mut self) -> Decisions<'_> {
        Decisions { drawn: &self.drawn, clipped: self.clipped.clip(&self.drawn), log_probs: &self.log_probs }
    }

    /// Makes room for `rows` rows.
    pub fn resize(&mut self, rows: usize) {
        self.drawn.resize(rows);
        self.log_probs.resize(rows, 0.0);
    }
}

/// Replaces each greedy action, with probability `epsilon`, by an action that is drawn uniformly from all actions, or from those that its row
/// of `masks` allows. Every row has its own stream. Computes the logarithms of the actions' probabilities.
///
/// # Panics
/// If the actions are not discrete.
fn explore(
    epsilon: f64,
    masks: Option<&[bool]>,
    (streams, n): (&mut [Stream], usize),
    (actions, log_probs): (&mut ActionRows, &mut [f32]),
) {
    let ActionRows::Discrete(actions) = actions else { panic!("actions: expected discrete actions to explore with") };
    for (row, (stream, (action, log_prob))) in streams.iter_mut().zip(actions.iter_mut().zip(log_probs)).enumerate() {
        let mask = masks.map(|masks| &masks[row * n..(row + 1) * n]);
        let allowed = mask.map_or(n, |mask| mask.iter().filter(|is_allowed| **is_allowed).count());
        let greedy = *action;
        if stream.unit_f64() < epsilon {
            let number = stream.below(allowed as u32) as usize;
            let nth = |mask: &[bool]| (0..n).filter(|action| mask[*action]).nth(number).expect("as many actions as are allowed");
            *action = mask.map_or(number, nth) as u32;
        }
        let of_greedy = if *action == greedy { 1.0 - epsilon } else { 0.0 };
        *log_prob = math::ln((epsilon / allowed as f64 + of_greedy) as f32);
    }
}

/// Draws continuous actions uniformly between their bounds, and computes the logarithm of their density.
///
/// # Panics
/// If the actions are not a box.
fn explore_uniformly(space: &Space, streams: &mut [Stream], (actions, log_probs): (&mut ActionRows, &mut [f32])) {
    actions.resize(streams.len());
    let (Space::Box { low, high }, ActionRows::Continuous { rows, width }) = (space, actions) else {
        panic!("actions: expected a box to explore uniformly, got {space}")
    };
    for (stream, action) in streams.iter_mut().zip(rows.chunks_exact_mut(*width)) {
        for (a, (low, high)) in action.iter_mut().zip(low.iter().zip(high)) {
            *a = (low + stream.unit_f32() * (high - low)).min(*high);
        }
    }
    log_probs.fill(-low.iter().zip(high).map(|(low, high)| math::ln(high - low)).sum::<f32>());
}

/// Adds noise to continuous actions and clips them. `last` has the last noise of every environment; each row of `rows` is the number of an
/// environment.
///
/// # Panics
/// If the actions are not a box.
fn add_noise(noisy: Noisy, space: &Space, (rows, streams): (&[usize], &mut [Stream]), (last, actions): (&mut [f32], &mut ActionRows)) {
    let (Space::Box { low, high }, ActionRows::Continuous { rows: numbers, width }) = (space, actions) else {
        panic!("actions: expected a box to add noise to, got {space}")
    };
    if noisy.noise == ActionNoise::None {
        return;
    }
    for ((env, stream), action) in rows.iter().zip(streams).zip(numbers.chunks_exact_mut(*width)) {
        let last = &mut last[env * *width..(env + 1) * *width];
        for ((a, last), (low, high)) in action.iter_mut().zip(last).zip(low.iter().zip(high)) {
            *last = noisy.next(*last, stream.normal());
            *a = (*a + *last * 0.5 * (high - low)).clamp(*low, *high);
        }
    }
}
