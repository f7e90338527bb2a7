//! One environment.

use crate::{EnvError, Scene, Space};

/// One action, in the form of the environment's action space.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action<'a> {
    /// An element of [`Space::Discrete`].
    Discrete(u32),
    /// A point of [`Space::Box`].
    Continuous(&'a [f32]),
}

impl Action<'_> {
    /// The one number of a continuous action, for the environment `name`.
    ///
    /// # Panics
    /// If it is not one finite number.
    pub(crate) fn one_number(self, name: &str) -> f32 {
        match self {
            Action::Continuous(&[number]) if number.is_finite() => number,
            _ => panic!("{name}: expected one finite number, got {self:?}"),
        }
    }
}

/// The actions of many environments, one after the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Actions<'a> {
    /// One number per environment.
    Discrete(&'a [u32]),
    /// One row of `width` numbers per environment.
    Continuous {
        /// The rows, concatenated.
        rows: &'a [f32],
        /// Numbers per row.
        width: usize,
    },
}

impl<'a> Actions<'a> {
    /// How many actions these are.
    pub fn len(&self) -> usize {
        match self {
            Actions::Discrete(actions) => actions.len(),
            Actions::Continuous { rows, width } => rows.len() / width.max(&1),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The action of environment `env`.
    pub fn get(&self, env: usize) -> Action<'a> {
        match *self {
            Actions::Discrete(actions) => Action::Discrete(actions[env]),
            Actions::Continuous { rows, width } => Action::Continuous(&rows[env * width..(env + 1) * width]),
        }
    }
}

/// What one step returned besides the observation. Both ends may be true at once; then *terminated* wins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// r_{t+1}, the reward of the action just taken.
    pub reward: f64,
    /// The Markov decision process ended: the value of the next state is 0.
    pub terminated: bool,
    /// A limit from outside ended the episode: the return would have gone on.
    pub truncated: bool,
}

impl Step {
    /// Whether the episode is over, one way or the other.
    pub fn done(&self) -> bool {
        self.terminated || self.truncated
    }
}

/// One environment, with Gymnasium's semantics.
///
/// Observations are rows of `observation_space().width()` numbers, written into a buffer of the caller's. An episode is a pure
/// function of the seed given to [`reset`](Env::reset) and of the actions: a random environment draws from
/// [`Stream::new(seed, Purpose::Environment, 0)`](crate::random::Stream::new).
pub trait Env: Send {
    /// The set that observations belong to.
    fn observation_space(&self) -> Space;

    /// The set that actions belong to.
    fn action_space(&self) -> Space;

    /// Begins the episode that belongs to `seed` and writes its first observation.
    fn reset(&mut self, seed: u64, observation: &mut [f32]);

    /// Takes one step and writes the observation that follows it (the final one when the episode ended).
    ///
    /// # Panics
    /// May panic on an action outside the action space; [`VecEnv`](crate::VecEnv) never passes one on.
    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step;

    /// All that a checkpoint needs to continue this episode bit for bit (floating-point numbers as `f64::to_bits`).
    fn save(&self) -> Vec<u64>;

    /// Continues an episode saved by [`save`](Env::save); [`EnvError::State`] when `state` is not one of this environment's.
    fn load(&mut self, state: &[u64]) -> Result<(), EnvError>;

    /// Begins an episode in a given physical state (Gymnasium's `env.unwrapped.state`), for replaying recorded episodes.
    fn start_from(&mut self, state: &[f64], observation: &mut [f32]) -> Result<(), EnvError> {
        let _ = (state, observation);
        Err(EnvError::State("this environment cannot begin in a given state".into()))
    }

    /// Draws all randomness from here on from the stream of `seed` instead: episodes with the same start need not share their
    /// dynamics. An environment without chance after the start has nothing to do.
    fn reseed(&mut self, seed: u64) {
        let _ = seed;
    }

    /// Marks in `mask`, one place per action, which actions are worth taking now; returns whether there is anything to say. Actions
    /// that are not marked are still allowed.
    fn action_mask(&self, mask: &mut [bool]) -> bool {
        let _ = mask;
        false
    }

    /// Whether the last action ended a step of a longer solution, whose reward was just given. Process supervision learns from these.
    fn ends_step(&self) -> bool {
        false
    }

    /// The names of [`scores`](Env::scores).
    fn score_names(&self) -> Vec<String> {
        Vec::new()
    }

    /// What an episode that has just ended was like, besides its return, one number per name.
    fn scores(&self, scores: &mut [f64]) {
        let _ = scores;
    }

    /// Why the last reward is not a number, where the environment knows.
    fn fault(&self) -> Option<String> {
        None
    }

    /// The present state in characters (Gymnasium's `ansi`), where it is a text.
    fn ansi(&self) -> Option<String> {
        None
    }

    /// A picture of the present state, if the environment can be drawn.
    fn render(&self) -> Option<Scene> {
        None
    }
}

impl<E: Env + ?Sized> Env for Box<E> {
    fn observation_space(&self) -> Space {
        (**self).observation_space()
    }
    fn action_space(&self) -> Space {
        (**self).action_space()
    }
    fn reset(&mut self, seed: u64, observation: &mut [f32]) {
        (**self).reset(seed, observation)
    }
    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        (**self).step(action, observation)
    }
    fn save(&self) -> Vec<u64> {
        (**self).save()
    }
    fn load(&mut self, state: &[u64]) -> Result<(), EnvError> {
        (**self).load(state)
    }
    fn start_from(&mut self, state: &[f64], observation: &mut [f32]) -> Result<(), EnvError> {
        (**self).start_from(state, observation)
    }
    fn reseed(&mut self, seed: u64) {
        (**self).reseed(seed)
    }
    fn action_mask(&self, mask: &mut [bool]) -> bool {
        (**self).action_mask(mask)
    }
    fn ends_step(&self) -> bool {
        (**self).ends_step()
    }
    fn score_names(&self) -> Vec<String> {
        (**self).score_names()
    }
    fn scores(&self, scores: &mut [f64]) {
        (**self).scores(scores)
    }
    fn fault(&self) -> Option<String> {
        (**self).fault()
    }
    fn ansi(&self) -> Option<String> {
        (**self).ansi()
    }
    fn render(&self) -> Option<Scene> {
        (**self).render()
    }
}
