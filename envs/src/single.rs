//! [`SingleEnv`]: one environment with its observation, its checks and autoreset.

use crate::{Action, Autoreset, Ending, Env, EnvError, EnvSpec, Finished, Outcome, Scene, Space, Step, UNWRITTEN, registry, unwritten};
use gradus_base::panics;
use gradus_base::random::episode_seed;

/// Makes the environment `name` (our name or Gymnasium's), at the start of its first episode. Its episodes follow from `seed`.
///
/// ```
/// use gradus_envs::{Action, make};
///
/// let mut env = make("CartPole-v1", 7)?;
/// assert_eq!(env.observation().len(), 4);
/// while !env.step(Action::Discrete(1))?.done() {} // always pushes to the right
/// let episode = env.finished().expect("an episode has ended");
/// assert_eq!(episode.episode_return, f64::from(episode.length));
/// assert_eq!(env.length(), 0); // the next episode has begun
/// # Ok::<(), gradus_envs::EnvError>(())
/// ```
pub fn make(name: &str, seed: u64) -> Result<SingleEnv, EnvError> {
    registry::find(name)?.single(seed)
}

/// One environment. It keeps the observation and the action mask, checks actions, observations and rewards, and begins the next episode as
/// [`Autoreset`] says.
///
/// Episode n, counted from 0, has the seed [`episode_seed`]`(seed, 0, n)`, like those of the first environment of a
/// [`VecEnv`](crate::VecEnv) with the same seed.
pub struct SingleEnv {
    /// Name of the environment, for errors.
    world: String,
    env: Box<dyn Env>,
    action_space: Space,
    is_text: bool,
    autoreset: Autoreset,
    seed: u64,
    observation: Vec<f32>,
    mask: Option<Vec<bool>>,
    /// Number of episodes that have begun.
    episodes: u64,
    /// The seed, the return and the number of steps of the current episode.
    episode_seed: u64,
    episode_return: f64,
    length: u32,
    finished: Option<Finished>,
    /// The reward and the ending of the last step, and whether it was none but the reset after an episode.
    reward: f32,
    ending: Ending,
    is_idle: bool,
    /// Whether the last action completed a solution step; only of texts.
    ends_step: Option<bool>,
    /// Whether the episode is over and the next one has not begun.
    is_waiting: bool,
}

impl std::fmt::Debug for SingleEnv {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SingleEnv")
            .field("world", &self.world)
            .field("seed", &self.seed)
            .field("episodes", &self.episodes)
            .finish_non_exhaustive()
    }
}

impl EnvSpec {
    /// Makes one environment at the start of its first episode, with [`Autoreset::SameStep`]. Its episodes follow from `seed`.
    pub fn single(&self, seed: u64) -> Result<SingleEnv, EnvError> {
        self.single_with(seed, Autoreset::SameStep)
    }

    /// As [`single`](EnvSpec::single), with the given autoreset mode.
    pub fn single_with(&self, seed: u64, autoreset: Autoreset) -> Result<SingleEnv, EnvError> {
        let mut single = self.before_episodes(seed, autoreset)?;
        single.reset()?;
        Ok(single)
    }

    /// Makes one environment at the start of the episode with the seed `seed`, with [`Autoreset::Disabled`].
    pub fn single_episode(&self, seed: u64) -> Result<SingleEnv, EnvError> {
        let mut single = self.before_episodes(seed, Autoreset::Disabled)?;
        single.reset_to(seed)?;
        Ok(single)
    }

    /// Makes one environment, whose first episode has not begun.
    fn before_episodes(&self, seed: u64, autoreset: Autoreset) -> Result<SingleEnv, EnvError> {
        let env = self.checked_env()?;
        let (space, action_space) = (env.observation_space(), env.action_space());
        let mask = Some(action_space.mask_width()).filter(|width| *width > 0).map(|width| vec![true; width]);
        Ok(SingleEnv {
            world: self.name.clone(),
            env,
            action_space,
            is_text: matches!(space, Space::Text { .. }),
            autoreset,
            seed,
            observation: vec![UNWRITTEN; space.width()],
            mask,
            episodes: 0,
            episode_seed: 0,
            episode_return: 0.0,
            length: 0,
            finished: None,
            reward: 0.0,
            ending: Ending::Running,
            is_idle: false,
            ends_step: None,
            is_waiting: false,
        })
    }
}

impl SingleEnv {
    /// Takes one step. When it ends the episode, the environment begins the next one as [`Autoreset`] says. [`EnvError::Action`] and
    /// [`EnvError::Finished`] leave the environment unchanged; after another error it must be reset.
    pub fn step(&mut self, action: Action<'_>) -> Result<Step, EnvError> {
        if !self.action_space.contains(action) {
            let (expected, got) = (self.action_space.to_string(), action.to_string());
            return Err(EnvError::Action { env: 0, expected, got });
        }
        match self.autoreset {
            Autoreset::NextStep if self.is_waiting => {
                self.reset()?;
                (self.reward, self.ending, self.is_idle) = (0.0, Ending::Running, true);
                return Ok(Step { reward: 0.0, terminated: false, truncated: false });
            }
            _ if self.is_waiting => return Err(EnvError::Finished { env: 0 }),
            _ => {}
        }
        // an observation that the environment leaves as it is must not look like a new one; texts grow in place
        if self.episodes == 1 && self.length == 0 && !self.is_text {
            self.observation.fill(UNWRITTEN);
        }
        self.length += 1;
        let step = self.guarded(|env, observation| env.step(action, observation))?;
        self.episode_return += step.reward;
        self.check(step.reward)?;
        (self.reward, self.ending, self.is_idle) = (step.reward as f32, Ending::new(step.terminated, step.truncated), false);
        self.ends_step = if self.is_text { Some(self.guarded(|env, _| env.ends_step())?) } else { None };
        if step.done() {
            let (mut scores, mut mask) = (vec![0.0; self.env.score_names().len()], self.mask.clone());
            let space = self.action_space.clone();
            self.guarded(|env, _| {
                env.scores(&mut scores);
                if let Some(mask) = &mut mask {
                    mask.fill(true);
                    env.action_mask(mask);
                    if !space.is_possible(mask) {
                        mask.fill(true);
                    }
                }
            })?;
            self.finished = Some(Finished {
                env: 0,
                seed: self.episode_seed,
                ending: Ending::new(step.terminated, step.truncated),
                episode_return: self.episode_return,
                length: self.length,
                observation: self.observation.clone(),
                mask,
                scores,
            });
            self.is_waiting = true;
            // while the next episode has not begun, every action is allowed, and ignored
            self.mask.iter_mut().for_each(|mask| mask.fill(true));
            if self.autoreset == Autoreset::SameStep {
                self.reset()?;
            }
        } else {
            self.update_mask()?;
        }
        Ok(step)
    }

    /// Begins the next episode.
    pub fn reset(&mut self) -> Result<(), EnvError> {
        self.reset_to(episode_seed(self.seed, 0, self.episodes))
    }

    /// Begins the episode with the seed `seed`.
    pub fn reset_to(&mut self, seed: u64) -> Result<(), EnvError> {
        self.episodes += 1;
        (self.episode_seed, self.episode_return, self.length, self.is_waiting) = (seed, 0.0, 0, false);
        self.guarded(|env, observation| env.reset(seed, observation))?;
        self.check(0.0)?;
        self.update_mask()
    }

    /// The observation: the final one of an episode that is over, otherwise the current one.
    pub fn observation(&self) -> &[f32] {
        &self.observation
    }

    /// The action mask of the current state; `None` if the environment has none.
    pub fn action_mask(&self) -> Option<&[bool]> {
        self.mask.as_deref()
    }

    /// The observation space.
    pub fn observation_space(&self) -> Space {
        self.env.observation_space()
    }

    /// The action space.
    pub fn action_space(&self) -> Space {
        self.action_space.clone()
    }

    /// The number of the current episode, counted from 1.
    pub fn episode(&self) -> u64 {
        self.episodes
    }

    /// The seed of the current episode.
    pub fn episode_seed(&self) -> u64 {
        self.episode_seed
    }

    /// The undiscounted return of the current episode so far.
    pub fn episode_return(&self) -> f64 {
        self.episode_return
    }

    /// The number of steps of the current episode so far.
    pub fn length(&self) -> u32 {
        self.length
    }

    /// The last episode that ended, with its final observation.
    pub fn finished(&self) -> Option<&Finished> {
        self.finished.as_ref()
    }

    /// The outcome of the last step.
    pub fn outcome(&self) -> Outcome<'_> {
        use std::slice::from_ref;
        let finished = if self.ending.done() { self.finished.as_slice() } else { &[] };
        Outcome {
            rewards: from_ref(&self.reward),
            endings: from_ref(&self.ending),
            observations: &self.observation,
            masks: self.mask.as_deref(),
            finished,
            idle: from_ref(&self.is_idle),
            step_ends: self.ends_step.as_slice(),
        }
    }

    /// A picture of the current state, if the environment can be rendered.
    pub fn render(&mut self) -> Result<Option<Scene>, EnvError> {
        self.guarded(|env, _| env.render())
    }

    /// The current state as text, if the environment has one.
    pub fn ansi(&mut self) -> Result<Option<String>, EnvError> {
        self.guarded(|env, _| env.ansi())
    }

    /// Calls code of the environment. A panic is an error.
    fn guarded<T>(&mut self, work: impl FnOnce(&mut dyn Env, &mut [f32]) -> T) -> Result<T, EnvError> {
        let Self { env, observation, .. } = self;
        panics::catch(|| work(env.as_mut(), observation)).map_err(|panic| {
            let (world, episode, step, seed) = (self.world.clone(), self.episodes, self.length, self.episode_seed);
            panic.into_error().unwrap_or_else(|panic| EnvError::Panicked { world, env: 0, episode, step, seed, message: panic.message() })
        })
    }

    /// Checks that every number of the observation is written, and that it and the reward are finite.
    fn check(&self, reward: f64) -> Result<(), EnvError> {
        let (env, step, seed) = (0, self.length, self.episode_seed);
        if let Some(i) = unwritten(&self.observation) {
            return Err(EnvError::Unwritten { world: self.world.clone(), i, env, width: self.observation.len(), step, seed });
        }
        let number = self.observation.iter().enumerate().find(|(_, x)| !x.is_finite());
        let number = number.map(|(i, x)| (format!("observation[{i}]"), f64::from(*x)));
        match (!(reward as f32).is_finite()).then(|| ("reward".into(), reward)).or(number) {
            None => Ok(()),
            Some((what, got)) => Err(match self.env.fault() {
                Some(fault) => EnvError::Fault { world: self.world.clone(), fault, env, step, seed },
                None => EnvError::NotFinite { world: self.world.clone(), what, env, got, step, seed },
            }),
        }
    }

    fn update_mask(&mut self) -> Result<(), EnvError> {
        let Some(mut mask) = self.mask.take() else { return Ok(()) };
        mask.fill(true);
        let has_mask = self.guarded(|env, _| env.action_mask(&mut mask));
        let is_possible = self.action_space.is_possible(&mask);
        // after an error, the environment is reset
        if !matches!(has_mask, Ok(false)) {
            self.mask = Some(mask);
        }
        if has_mask? && !is_possible {
            return Err(EnvError::Mask { world: self.world.clone(), env: 0, step: self.length, seed: self.episode_seed });
        }
        Ok(())
    }
}
