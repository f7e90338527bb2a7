//! How episodes begin, end and follow each other.

/// How an episode stands after a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Ending {
    /// It goes on.
    #[default]
    Running = 0,
    /// The Markov decision process ended.
    Terminated = 1,
    /// A limit from outside ended it.
    Truncated = 2,
    /// Both at once: for the return, *terminated* wins.
    Both = 3,
}

impl Ending {
    /// From Gymnasium's two flags.
    #[inline(always)]
    pub fn new(terminated: bool, truncated: bool) -> Self {
        match (terminated, truncated) {
            (false, false) => Ending::Running,
            (true, false) => Ending::Terminated,
            (false, true) => Ending::Truncated,
            (true, true) => Ending::Both,
        }
    }

    /// Whether the Markov decision process ended, whatever else happened.
    pub fn terminated(self) -> bool {
        matches!(self, Ending::Terminated | Ending::Both)
    }

    /// Whether a limit from outside was reached, whatever else happened.
    pub fn truncated(self) -> bool {
        matches!(self, Ending::Truncated | Ending::Both)
    }

    /// Whether the episode is over.
    #[inline(always)]
    pub fn done(self) -> bool {
        self != Ending::Running
    }
}

/// What happens to an environment whose episode ended; Gymnasium's three modes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Autoreset {
    /// It is reset within the same step; the final observation is handed over in [`Finished`]. Ours.
    #[default]
    SameStep,
    /// The next step ignores the action, returns the first observation of the next episode and reward 0, and is marked in
    /// [`Transition::resets`]: such a transition must never reach a loss. Gymnasium's default.
    NextStep,
    /// Nothing: stepping it is an error until [`VecEnv::reset_finished`](crate::VecEnv::reset_finished).
    Disabled,
}

/// An episode that ended in the last step.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// Which environment of this vector.
    pub env: usize,
    /// The seed of the episode.
    pub seed: u64,
    /// How it ended.
    pub ending: Ending,
    /// The undiscounted return.
    pub episode_return: f64,
    /// The number of steps.
    pub length: u32,
    /// The observation that the last action led to.
    pub observation: Vec<f32>,
    /// What the episode was like besides, see [`Env::scores`](crate::Env::scores).
    pub scores: Vec<f64>,
}

/// What a step of all environments returned, besides the observations that follow it.
#[derive(Clone, Debug, Default)]
pub struct Transition {
    /// One reward per environment, rounded to f32.
    pub rewards: Vec<f32>,
    /// One ending per environment.
    pub endings: Vec<Ending>,
    /// Where observations are texts, whether the action ended a step of a longer solution, see
    /// [`Env::ends_step`](crate::Env::ends_step); empty elsewhere.
    pub step_ends: Vec<bool>,
    /// With [`Autoreset::NextStep`], the environments for which this step was nothing but a reset.
    pub resets: Vec<bool>,
    /// The episodes that ended, by environment.
    pub finished: Vec<Finished>,
}

/// What the episodes of a run begin from.
///
/// Environment number i of a run with seed s plays the episodes with seeds [`episode_seed`](crate::random::episode_seed)`(s, i, 0)`, `episode_seed(s, i, 1)`, ... In groups of
/// size G > 1 the n-th episodes of G neighbouring environments begin from one seed, that of `episode_seed(s, i / G, n)`; what chance does
/// afterwards is each environment's own ([`Env::reseed`](crate::Env::reseed)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Starts {
    /// The run's seed.
    pub seed: u64,
    /// Environments of a group; 1: each for itself.
    pub group: usize,
}

impl From<u64> for Starts {
    fn from(seed: u64) -> Self {
        Self { seed, group: 1 }
    }
}

impl Starts {
    /// The group of environment `env`.
    pub fn group_of(&self, env: usize) -> usize {
        env / self.group.max(1)
    }
}
