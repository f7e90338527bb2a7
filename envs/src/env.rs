//! One environment.

use crate::{EnvError, Scene, Space};

/// One action, in the form of the environment's action space.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action<'a> {
    /// An element of [`Space::Discrete`] or [`Space::MultiDiscrete`].
    Discrete(u32),
    /// A point of [`Space::Box`].
    Continuous(&'a [f32]),
}

/// The number, or the numbers in brackets.
impl std::fmt::Display for Action<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Action::Discrete(number) => write!(f, "{number}"),
            Action::Continuous(numbers) => write!(f, "{numbers:?}"),
        }
    }
}

impl Action<'_> {
    /// Returns the number of a one-dimensional continuous action of the environment `name`.
    ///
    /// # Panics
    /// If the action is not one finite number.
    pub(crate) fn one_number(self, name: &str) -> f32 {
        match self {
            Action::Continuous(&[number]) if number.is_finite() => number,
            _ => panic!("{name}: expected one finite number, got {self:?}"),
        }
    }
}

/// The actions of several environments, in order.
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
    /// Number of actions.
    pub fn len(&self) -> usize {
        match self {
            Actions::Discrete(actions) => actions.len(),
            Actions::Continuous { rows, width } => rows.len() / width.max(&1),
        }
    }

    /// Whether there are no actions.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the action of environment `env`.
    pub fn get(&self, env: usize) -> Action<'a> {
        match *self {
            Actions::Discrete(actions) => Action::Discrete(actions[env]),
            Actions::Continuous { rows, width } => Action::Continuous(&rows[env * width..(env + 1) * width]),
        }
    }
}

/// The result of one step, apart from the observation. If `terminated` and `truncated` are both true, `terminated` takes precedence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// r_{t+1}, the reward of the action just taken.
    pub reward: f64,
    /// Whether the Markov decision process ended. If so, the value of the next state is 0.
    pub terminated: bool,
    /// Whether an external limit ended the episode. If so, returns are bootstrapped from the value of the next state.
    pub truncated: bool,
}

impl Step {
    /// Whether the episode is over, terminated or truncated.
    pub fn done(&self) -> bool {
        self.terminated || self.truncated
    }
}

/// One environment, with Gymnasium's semantics.
///
/// An observation is a row of `observation_space().width()` numbers, which the environment writes into the caller's buffer. An episode
/// is a pure function of the actions and the seed given to [`reset`](Env::reset). A stochastic environment draws from
/// [`Stream::new(seed, Purpose::Environment, 0)`](gradus_base::random::Stream::new).
pub trait Env: Send {
    /// Returns the observation space.
    fn observation_space(&self) -> Space;

    /// Returns the action space.
    fn action_space(&self) -> Space;

    /// Begins the episode with seed `seed` and writes its first observation.
    fn reset(&mut self, seed: u64, observation: &mut [f32]);

    /// Takes one step and writes the next observation (the final observation when the episode ends).
    ///
    /// # Panics
    /// May panic on an action outside the action space. [`VecEnv`](crate::VecEnv) rejects such actions first.
    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step;

    /// Returns the state that [`load`](Env::load) needs to continue this episode bit for bit. Floating-point numbers are stored as
    /// their bits ([`f64::to_bits`] or [`f32::to_bits`]).
    fn save(&self) -> Vec<u64>;

    /// Continues an episode saved by [`save`](Env::save). Returns [`EnvError::State`] if `state` is not a state of this environment.
    fn load(&mut self, state: &[u64]) -> Result<(), EnvError>;

    /// Begins an episode in a given physical state (Gymnasium's `env.unwrapped.state`). Replays of recorded episodes use this method.
    fn start_from(&mut self, state: &[f64], observation: &mut [f32]) -> Result<(), EnvError> {
        let _ = (state, observation);
        Err(EnvError::State("this environment cannot begin in a given state".into()))
    }

    /// Draws all further randomness from the stream of `seed`, so that episodes with the same start can have different dynamics. An
    /// environment that is deterministic after the reset needs no implementation.
    fn reseed(&mut self, seed: u64) {
        let _ = seed;
    }

    /// Sets `mask[a]` to whether the policy may choose action `a` in the current state. Returns whether this environment has a mask: the same in
    /// every state; where all actions are allowed, all entries are true. The
    /// environment must still accept the actions that the mask leaves out. With several choices, the mask has the values of the first
    /// choice, then those of the second, and so on.
    fn action_mask(&self, mask: &mut [bool]) -> bool {
        let _ = mask;
        false
    }

    /// Whether the last action completed one step of a solution with several steps. If so, the reward is the reward of that step. Process
    /// supervision uses these rewards.
    fn ends_step(&self) -> bool {
        false
    }

    /// Returns the names of the [`scores`](Env::scores): different ones, without commas and quotes, because they are columns of tables.
    fn score_names(&self) -> Vec<String> {
        Vec::new()
    }

    /// Writes additional measures of an episode that has just ended, one per [name](Env::score_names).
    fn scores(&self, scores: &mut [f64]) {
        let _ = scores;
    }

    /// Returns the cause of a NaN in the last reward or observation, if the environment has recorded one.
    fn fault(&self) -> Option<String> {
        None
    }

    /// Returns the current state as text (Gymnasium's render mode `ansi`), which `gradus play` shows if there is no picture. Of ours only text environments have one.
    fn ansi(&self) -> Option<String> {
        None
    }

    /// Returns a picture of the current state, if the environment can be rendered.
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
