//! The acting loop: observe all rows, choose actions, step the environments, and reuse the rows of environments that are done.
//!
//! Training, evaluation and generation differ in what a row is and what they record of a step. Each implements [`Environments`].

use gradus_envs::random::Stream;
use gradus_envs::{Actions, EnvError, Space};
use gradus_nets::{ActionRows, Behaviour, Choice, Sampling, math};

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

    /// Returns the probability of a random action in the next step. The other actions are greedy. `None`: all actions are sampled from the
    /// policy.
    fn epsilon(&self) -> Option<f64> {
        None
    }

    /// Fills in the next actions and their log-probabilities if they were decided in advance, and returns whether they were. Each action
    /// counts as one draw from the row's stream.
    fn scripted(&self, _rows: &[usize], _actions: &mut ActionRows, _log_probs: &mut [f32]) -> bool {
        false
    }
}

/// Lets `policy` act in `envs` until all of them are done. Actions are chosen by `sampling`, with the random streams of `active`.
pub fn act(policy: &dyn Behaviour, envs: &mut impl Environments, mut active: ActiveRows<'_>, sampling: &Sampling) -> Result<(), EnvError> {
    let space = envs.action_space();
    let mut actor = policy.actor();
    let actions = if let Space::Discrete(n) = space { n as usize } else { 0 };
    let (mut drawn, mut log_probs, mut done) = (ActionRows::empty(&space), Vec::new(), Vec::new());
    let mut clipped = Clipped::to(space);
    while !active.rows().is_empty() {
        let (rows, streams) = active.rows_and_streams();
        log_probs.resize(rows.len(), 0.0);
        let is_scripted = envs.scripted(rows, &mut drawn, &mut log_probs);
        let epsilon = envs.epsilon();
        let (observations, masks) = envs.observe(rows);
        if is_scripted {
            streams.iter_mut().for_each(|stream| stream.seek(stream.position() + 1));
        } else if let Some(epsilon) = epsilon {
            if epsilon < 1.0 {
                actor.act(observations, masks, Choice::Greedy, &mut drawn, &mut log_probs);
            } else {
                drawn.resize(streams.len());
            }
            explore(epsilon, masks, (streams, actions), (&mut drawn, &mut log_probs));
        } else {
            actor.act(observations, masks, Choice::by(sampling, streams), &mut drawn, &mut log_probs);
        }
        let decisions = Decisions { drawn: &drawn, clipped: clipped.clip(&drawn), log_probs: &log_probs };
        envs.step(rows, &decisions, &mut done)?;
        for row in done.drain(..).rev() {
            let id = active.rows()[row];
            let next = active.release(row);
            envs.pass_on(row, id, next)?;
        }
    }
    Ok(())
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
