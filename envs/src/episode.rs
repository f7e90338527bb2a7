//! The beginning and end of episodes.

/// Whether a step ended the episode, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Ending {
    /// The episode continues.
    #[default]
    Running = 0,
    /// The Markov decision process ended.
    Terminated = 1,
    /// An external limit ended the episode.
    Truncated = 2,
    /// Both in the same step. *Terminated* takes precedence: the value of the next state is 0.
    Both = 3,
}

impl Ending {
    /// Converts Gymnasium's two flags.
    #[inline(always)]
    pub fn new(terminated: bool, truncated: bool) -> Self {
        match (terminated, truncated) {
            (false, false) => Ending::Running,
            (true, false) => Ending::Terminated,
            (false, true) => Ending::Truncated,
            (true, true) => Ending::Both,
        }
    }

    /// Whether the Markov decision process ended: [`Terminated`](Ending::Terminated) or [`Both`](Ending::Both).
    pub fn terminated(self) -> bool {
        matches!(self, Ending::Terminated | Ending::Both)
    }

    /// Whether an external limit was reached: [`Truncated`](Ending::Truncated) or [`Both`](Ending::Both).
    pub fn truncated(self) -> bool {
        matches!(self, Ending::Truncated | Ending::Both)
    }

    /// Whether the episode is over.
    #[inline(always)]
    pub fn done(self) -> bool {
        self != Ending::Running
    }
}

/// When an environment is reset after its episode ends: one of Gymnasium's three modes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Autoreset {
    /// The environment is reset within the same step, and [`Finished`] holds the final observation. This is our default.
    #[default]
    SameStep,
    /// The next step ignores the action, and returns the first observation of the next episode and reward 0. Such a step is marked in
    /// [`Transition::resets`] and must be excluded from the loss. This is Gymnasium's default.
    NextStep,
    /// No automatic reset: after the end of an episode, [`VecEnv::step`](crate::VecEnv::step) returns an error until
    /// [`reset_finished`](crate::VecEnv::reset_finished) is called.
    Disabled,
}

/// An episode that ended in the last step.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// Index of the environment in its vector.
    pub env: usize,
    /// The seed of the episode.
    pub seed: u64,
    /// How the episode ended.
    pub ending: Ending,
    /// The undiscounted return.
    pub episode_return: f64,
    /// Number of steps.
    pub length: u32,
    /// The final observation.
    pub observation: Vec<f32>,
    /// The action mask of the final state, if the environment has masks. It allows all actions if the environment's own mask allows none.
    pub mask: Option<Vec<bool>>,
    /// Additional measures of the episode (see [`Env::scores`](crate::Env::scores)).
    pub scores: Vec<f64>,
}

/// The result of one step of all environments, apart from the observations.
#[derive(Clone, Debug, Default)]
pub struct Transition {
    /// One reward per environment, rounded to f32.
    pub rewards: Vec<f32>,
    /// One ending per environment.
    pub endings: Vec<Ending>,
    /// One flag per text environment: whether its action completed a solution step (see [`Env::ends_step`](crate::Env::ends_step)). Empty
    /// for other environments.
    pub step_ends: Vec<bool>,
    /// One flag per environment: whether this step reset the environment, with [`Autoreset::NextStep`].
    pub resets: Vec<bool>,
    /// One flag per environment: whether it took no step, because it was reset instead, paused, or waiting for its next episode.
    pub idle: Vec<bool>,
    /// The episodes that ended, in the order of the environments.
    pub finished: Vec<Finished>,
}

/// What followed the actions of one step in some environments: what an agent learns from. Each slice has one entry or one row per environment.
#[derive(Clone, Copy, Debug)]
pub struct Outcome<'a> {
    /// The rewards.
    pub rewards: &'a [f32],
    /// Whether the episodes go on.
    pub endings: &'a [Ending],
    /// The observations after the step. If an episode has ended: its final observation, unless `finished` has it.
    pub observations: &'a [f32],
    /// The action masks of these observations, if the environments have masks. That of an episode that terminated is not read.
    pub masks: Option<&'a [bool]>,
    /// The episodes that ended, if the environments have begun the next ones already; `env` counts from the first of these environments.
    pub finished: &'a [Finished],
    /// The environments that ignored their actions; may be empty if there are none. See [`Transition::idle`].
    pub idle: &'a [bool],
    /// The texts that completed a step of their solution; empty for other environments. See [`Transition::step_ends`].
    pub step_ends: &'a [bool],
}

impl<'a> Outcome<'a> {
    /// The outcome in environments without masks and texts whose observations are never those of the next episode.
    pub fn new(rewards: &'a [f32], endings: &'a [Ending], observations: &'a [f32]) -> Self {
        Self { rewards, endings, observations, masks: None, finished: &[], idle: &[], step_ends: &[] }
    }
}

/// The seeds of the episodes of a run.
///
/// Without groups, environment i of a run with seed s plays the episodes with seeds
/// [`episode_seed`](gradus_base::random::episode_seed)`(s, i, 0)`, `episode_seed(s, i, 1)`, ...
///
/// In groups of size G > 1, the n-th episodes (counted from 0) of the G environments i with equal i / G, rounded down, share the seed
/// `episode_seed(s, i / G, n)`, so they begin in the same state. After the start each environment has its own
/// random stream ([`Env::reseed`](crate::Env::reseed)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Starts {
    /// The run's seed.
    pub seed: u64,
    /// Number of environments in a group. 1 means no groups.
    pub group: usize,
}

impl From<u64> for Starts {
    fn from(seed: u64) -> Self {
        Self { seed, group: 1 }
    }
}

impl Starts {
    /// Returns the index of the group of environment `env`.
    #[inline]
    pub fn group_of(&self, env: usize) -> usize {
        env / self.group.max(1)
    }
}
