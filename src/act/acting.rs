//! The acting loop: rows are observed, the actor chooses, the environments step, those that are done pass their rows on.
//!
//! Training, evaluation and generation differ in what a row is and in what is recorded of a step: each says so in its [`Environments`].

use gradus_envs::{Actions, EnvError, Space};
use gradus_nets::{ActionRows, Behaviour, Choice, Sampling};

use crate::act::{ActiveRows, Clipped};

/// What the actor decided, row by row.
pub(crate) struct Decisions<'a> {
    /// The actions as they were drawn.
    pub drawn: &'a ActionRows,
    /// The actions within the bounds of the action space.
    pub clipped: Actions<'a>,
    /// log pi(a|s) of the actions as they were drawn.
    pub log_probs: &'a [f32],
}

/// Environments that a policy acts in, numbered from 0. Some or all of them act at a time, in rows: `rows` says the environment of each.
pub(crate) trait Environments {
    /// The set that each action belongs to.
    fn action_space(&self) -> Space;

    /// The observation of every row, one after the other, and which actions it allows, where these environments say so.
    fn observe(&mut self, rows: &[usize]) -> (&[f32], Option<&[bool]>);

    /// Every row takes its action. Puts those rows that are done now into `done`, in ascending order.
    fn step(&mut self, rows: &[usize], decisions: &Decisions<'_>, done: &mut Vec<usize>) -> Result<(), EnvError>;

    /// The environment `done`, in `row`, has reported that it is done; `next` takes its row. Where none is next, the last row moves
    /// there, or in lockstep all stay.
    fn pass_on(&mut self, _row: usize, _done: usize, _next: Option<usize>) -> Result<(), EnvError> {
        Ok(())
    }

    /// Whether the next actions were decided beforehand; then these are they, with log pi. Each counts as one draw of its stream.
    fn scripted(&self, _rows: &[usize], _actions: &mut ActionRows, _log_probs: &mut [f32]) -> bool {
        false
    }
}

/// `policy` acts in `envs` until all of them are done; `sampling` says how actions are chosen, drawn from the streams of `active`.
pub(crate) fn act(
    policy: &dyn Behaviour,
    envs: &mut impl Environments,
    mut active: ActiveRows<'_>,
    sampling: &Sampling,
) -> Result<(), EnvError> {
    let space = envs.action_space();
    let mut actor = policy.actor();
    let (mut drawn, mut log_probs, mut done) = (ActionRows::empty(&space), Vec::new(), Vec::new());
    let mut clipped = Clipped::to(space);
    while !active.rows().is_empty() {
        let (rows, streams) = active.rows_and_streams();
        log_probs.resize(rows.len(), 0.0);
        let is_scripted = envs.scripted(rows, &mut drawn, &mut log_probs);
        let (observations, masks) = envs.observe(rows);
        if is_scripted {
            streams.iter_mut().for_each(|stream| stream.seek(stream.position() + 1));
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
