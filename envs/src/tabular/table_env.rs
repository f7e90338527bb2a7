//! Environments that follow a transition table.

use std::sync::Arc;

use super::Table;
use crate::episode_rng::{EpisodeRng, split_saved};
use crate::{Action, Env, EnvError, Scene, Space, Step};

/// States laid out on a page, to draw their values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StateMap {
    /// What the map shows, if there are several.
    pub title: String,
    /// What rows, columns and letters mean, if they are no map.
    pub axes: String,
    /// Names of the rows, from the top, and of the columns; empty: none.
    pub names: [Vec<String>; 2],
    /// Cells in a row.
    pub columns: usize,
    /// The state of every cell, row by row from the top; `None` for a cell without decisions, such as a wall or a goal.
    pub states: Vec<Option<u32>>,
    /// The step of every action on the page, rows down and columns to the right; empty if actions are no moves.
    pub steps: Vec<[isize; 2]>,
    /// The letter of every action, if actions are no moves; a blank for one that is a move.
    pub letters: Vec<char>,
}

/// An environment that a transition table describes completely.
pub trait Tabular: Send + Sync {
    /// The transition table.
    fn table(&self) -> &Table;

    /// Writes the action mask of a given state, as [`Env::action_mask`] does for the current state.
    fn action_mask(&self, state: u32, mask: &mut [bool]) -> bool {
        let _ = (state, mask);
        false
    }

    /// Returns which actions are allowed, as rows of states. A state without an allowed action counts as one without a mask.
    fn allowed(&self) -> Vec<bool> {
        let (states, actions) = (self.table().states(), self.table().actions());
        let row = |state: usize| {
            let mut mask = vec![true; actions];
            let has_mask = self.action_mask(state as u32, &mut mask);
            if has_mask && mask.contains(&true) { mask } else { vec![true; actions] }
        };
        (0..states).flat_map(row).collect()
    }

    /// Returns how the states are laid out on a page; nothing if there is no such layout.
    fn maps(&self) -> Vec<StateMap> {
        Vec::new()
    }

    /// Returns the picture of a given state, as [`Env::render`] does for the current state.
    fn scene(&self, state: u32) -> Option<Scene> {
        let _ = state;
        None
    }
}

impl Tabular for Table {
    fn table(&self) -> &Table {
        self
    }
}

/// An environment that follows a table. The observation is the number of the state.
///
/// Clones share the table. Episodes have no time limit; [`TimeLimit`](crate::TimeLimit) adds one.
///
/// ```
/// use gradus_envs::tabular::{CliffWalking, TableEnv};
/// use gradus_envs::{Action, Env};
///
/// let mut env = TableEnv::new(CliffWalking::deterministic());
/// let mut observation = [0.0];
/// env.reset(7, &mut observation);
/// assert_eq!(observation, [36.0]);
/// let right_into_the_cliff = env.step(Action::Discrete(1), &mut observation);
/// assert_eq!((right_into_the_cliff.reward, observation), (-100.0, [36.0]));
/// ```
#[derive(Clone, Debug)]
pub struct TableEnv<W: ?Sized> {
    world: Arc<W>,
    state: u32,
    rng: EpisodeRng,
}

impl<W: Tabular + ?Sized> TableEnv<W> {
    /// Creates an environment from a table, which may be shared.
    pub fn new(world: impl Into<Arc<W>>) -> Self {
        Self { world: world.into(), state: 0, rng: EpisodeRng::new(0) }
    }

    /// The current state.
    pub fn state(&self) -> u32 {
        self.state
    }

    /// Moves to another state, regardless of the table.
    pub(super) fn set_state(&mut self, state: u32, observation: &mut [f32]) {
        self.state = state;
        observation[0] = state as f32;
    }

    /// The random stream of the episode.
    pub(super) fn rng(&mut self) -> &mut EpisodeRng {
        &mut self.rng
    }

    fn checked(&self, state: f64) -> Result<u32, EnvError> {
        let states = self.world.table().states();
        let is_one = (0.0..states as f64).contains(&state) && state.fract() == 0.0;
        if is_one { Ok(state as u32) } else { Err(EnvError::State(format!("expected a whole number below {states}, got {state}"))) }
    }
}

impl<W: Tabular + ?Sized> Env for TableEnv<W> {
    fn observation_space(&self) -> Space {
        Space::Discrete(self.world.table().states() as u32)
    }

    fn action_space(&self) -> Space {
        Space::Discrete(self.world.table().actions() as u32)
    }

    fn reset(&mut self, seed: u64, observation: &mut [f32]) {
        self.rng = EpisodeRng::new(seed);
        let state = self.world.table().sample_start(&mut self.rng.stream);
        self.set_state(state, observation);
    }

    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        assert!(self.action_space().contains(action), "expected an action of {}, got {action:?}", self.action_space());
        let Action::Discrete(action) = action else { unreachable!("a discrete space") };
        let outcome = self.world.table().sample(self.state as usize, action as usize, &mut self.rng.stream);
        self.set_state(outcome.next, observation);
        Step { reward: outcome.reward, terminated: outcome.terminated, truncated: false }
    }

    fn save(&self) -> Vec<u64> {
        let [seed, position] = self.rng.save();
        vec![seed, position, u64::from(self.state)]
    }

    fn load(&mut self, state: &[u64]) -> Result<(), EnvError> {
        let (rng, [state]) = split_saved("tabular world", state)?;
        self.state = self.checked(state as f64)?;
        self.rng = rng;
        Ok(())
    }

    fn start_from(&mut self, state: &[f64], observation: &mut [f32]) -> Result<(), EnvError> {
        let [state] = state else { return Err(EnvError::State(format!("expected 1 number, got {}", state.len()))) };
        let state = self.checked(*state)?;
        self.rng = EpisodeRng::new(0);
        self.set_state(state, observation);
        Ok(())
    }

    fn reseed(&mut self, seed: u64) {
        self.rng = EpisodeRng::new(seed);
    }

    fn action_mask(&self, mask: &mut [bool]) -> bool {
        self.world.action_mask(self.state, mask)
    }

    fn render(&self) -> Option<Scene> {
        self.world.scene(self.state)
    }
}
