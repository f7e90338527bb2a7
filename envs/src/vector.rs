//! Many environments in lockstep.

use std::ops::Range;

#[cfg(feature = "ndarray")]
use ndarray::ArrayView2;

use crate::gym;
use crate::lockstep::{Seeds, Tally, are_allowed};
use crate::{Actions, Autoreset, Batch, Ending, EnvError, Finished, MAX_EPISODE_STEPS, Outcome, Space, Starts, Transition};
use gradus_base::panics;
use gradus_base::random::dynamics_seed;

/// The number that observations hold before an environment writes them: a NaN with an arbitrary payload.
pub const UNWRITTEN: f32 = f32::from_bits(0x7FD5_3A96);

/// Returns the index of the first number of an observation that is [`UNWRITTEN`].
pub fn unwritten(observation: &[f32]) -> Option<usize> {
    observation.iter().position(|number| number.to_bits() == UNWRITTEN.to_bits())
}

/// Many environments in lockstep, with autoreset and episode statistics.
///
/// A vector may hold any range of a run's environments: their episodes do not depend on how the run is split into vectors. [`Starts`]
/// defines the seeds of the episodes.
pub struct VecEnv {
    /// Name of the environment, for errors.
    world: String,
    batch: Box<dyn Batch>,
    ids: Range<usize>,
    autoreset: Autoreset,
    starts: Starts,
    width: usize,
    action_space: Space,
    /// One row per environment, if the environments have masks.
    masks: Option<Vec<bool>>,
    observations: Vec<f32>,
    transition: Transition,
    /// Whether the environment's episode is over and its next one has not begun.
    waiting: Vec<bool>,
    /// Whether the environment is paused (see [`hold`](VecEnv::hold)).
    held: Vec<bool>,
    score_names: Vec<String>,
    episodes: Vec<u64>,
    seeds: Vec<u64>,
    /// The bits of a seed that the environments get.
    seed_bits: u64,
    returns: Vec<f64>,
    lengths: Vec<u32>,
    /// Whether the environments are taking a step that `lengths` does not count yet.
    is_stepping: bool,
    /// Whether the environments have taken no step yet.
    is_new: bool,
    /// Whether episodes can be saved and continued; otherwise a loaded vector begins new ones.
    can_be_saved: bool,
    /// Reused allocations: the environments with finished episodes, rows for their final observations, and the next seeds.
    done: Vec<usize>,
    spare: Vec<Vec<f32>>,
    next_seeds: Vec<u64>,
}

impl std::fmt::Debug for VecEnv {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VecEnv").field("world", &self.world).field("ids", &self.ids).finish_non_exhaustive()
    }
}

impl VecEnv {
    /// Creates the environments `ids` of a run, at the start of their first episodes. `starts` may be the run's seed alone.
    ///
    /// # Panics
    /// If the lengths of `batch` and `ids` differ.
    pub fn new(batch: Box<dyn Batch>, ids: Range<usize>, starts: impl Into<Starts>, autoreset: Autoreset) -> Result<Self, EnvError> {
        Self::of_world("environment", batch, ids, starts.into(), autoreset)
    }

    /// As [`new`](VecEnv::new). Errors name the environment `world`.
    pub(crate) fn of_world(
        world: &str,
        batch: Box<dyn Batch>,
        ids: Range<usize>,
        starts: Starts,
        autoreset: Autoreset,
    ) -> Result<Self, EnvError> {
        let n = batch.len();
        assert_eq!(n, ids.len(), "environments: expected {} in the batch, got {n}", ids.len());
        let (space, score_names) = (batch.observation_space(), batch.score_names());
        let width = space.width();
        let is_text = matches!(space, Space::Text { .. });
        let mut envs = Self {
            world: world.into(),
            action_space: batch.action_space(),
            batch,
            ids,
            autoreset,
            starts,
            width,
            masks: None,
            observations: vec![UNWRITTEN; n * width],
            transition: Transition {
                rewards: vec![0.0; n],
                endings: vec![Ending::Running; n],
                step_ends: vec![false; if is_text { n } else { 0 }],
                resets: vec![false; n],
                idle: vec![false; n],
                finished: Vec::new(),
            },
            waiting: vec![false; n],
            held: vec![false; n],
            score_names,
            episodes: vec![0; n],
            seeds: vec![0; n],
            seed_bits: if gym::is_gym(world) { gym::SEED_BITS } else { u64::MAX },
            returns: vec![0.0; n],
            lengths: vec![0; n],
            is_stepping: false,
            is_new: true,
            can_be_saved: true,
            done: Vec::new(),
            spare: Vec::new(),
            next_seeds: Vec::new(),
        };
        envs.guarded(|envs| {
            envs.begin_episodes(&(0..n).collect::<Vec<_>>())?;
            let width = envs.action_space.mask_width();
            if width > 0 {
                let mut masks = vec![true; n * width];
                let has_mask = n > 0 && envs.batch.action_mask(0, &mut masks[..width]);
                envs.masks = has_mask.then_some(masks);
            }
            envs.update_masks(0..envs.len())
        })?;
        Ok(envs)
    }

    /// Whether [`save`](VecEnv::save) keeps the states of the episodes; otherwise [`load`](VecEnv::load) begins new ones.
    pub fn can_be_saved(&self) -> bool {
        self.can_be_saved
    }

    /// Says whether the episodes can be saved and continued.
    pub(crate) fn that_can_be_saved(self, can_be_saved: bool) -> Self {
        Self { can_be_saved, ..self }
    }

    /// Calls `work`. A panic of an environment is an error, after which the vector must not be used.
    fn guarded<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T, EnvError>) -> Result<T, EnvError> {
        panics::catch(|| work(self)).unwrap_or_else(|panic| Err(panic.into_error().unwrap_or_else(|panic| self.panicked(panic.message()))))
    }

    /// The error of a panic of the environment whose code was called last.
    #[cold]
    fn panicked(&self, message: String) -> EnvError {
        let env = self.batch.current();
        let step = self.lengths[env].wrapping_add(u32::from(self.is_stepping));
        let (world, episode, seed) = (self.world.clone(), self.episodes[env], self.seed_of(env));
        EnvError::Panicked { world, env: self.ids.start + env, episode, step, seed, message }
    }

    /// Returns an error if the current episode of an environment has [`MAX_EPISODE_STEPS`](crate::MAX_EPISODE_STEPS) steps or more, or
    /// `limit` steps or more if this is larger.
    pub fn check_lengths(&self, limit: u32) -> Result<(), EnvError> {
        let limit = limit.max(MAX_EPISODE_STEPS);
        let is_endless = |env: &usize| self.lengths[*env] >= limit && !self.waiting[*env];
        (0..self.len()).find(is_endless).map_or(Ok(()), |env| {
            let (world, episode, seed) = (self.world.clone(), self.episodes[env], self.seed_of(env));
            Err(EnvError::Endless { world, env: self.ids.start + env, episode, step: self.lengths[env], seed })
        })
    }

    /// Bytes that each environment of a vector needs for observations of `width` numbers, without its state.
    pub fn bytes_per_env(width: usize) -> usize {
        // observation, reward, return, episode, seed, length, ending, and the flags of resets, waiting and pauses
        4 * width + size_of::<f32>() + size_of::<f64>() + 2 * size_of::<u64>() + size_of::<u32>() + size_of::<Ending>() + 3
    }

    /// The seed of the episode of `env` as its environment got it, for messages.
    fn seed_of(&self, env: usize) -> u64 {
        self.seeds[env] & self.seed_bits
    }

    /// Number of environments.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether there are no environments.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns what happens at the end of an episode.
    pub fn autoreset(&self) -> Autoreset {
        self.autoreset
    }

    /// The seeds of the episodes.
    pub fn starts(&self) -> Starts {
        self.starts
    }

    /// Number of episodes that environment `env` has begun.
    pub fn episodes_begun(&self, env: usize) -> u64 {
        self.episodes[env]
    }

    /// The names of the scores of finished episodes (see [`Env::score_names`](crate::Env::score_names)).
    pub fn score_names(&self) -> &[String] {
        &self.score_names
    }

    /// Pauses or resumes environment `env`. While it is paused, its action is ignored and its episode does not advance.
    ///
    /// # Panics
    /// If the observations are not texts.
    pub fn hold(&mut self, env: usize, hold: bool) {
        assert!(!self.transition.step_ends.is_empty(), "hold: expected observations of texts, got {}", self.observation_space());
        self.held[env] = hold;
    }

    /// Takes the episodes that ended in the last step out of its [`Transition`].
    pub fn take_finished(&mut self) -> Vec<Finished> {
        std::mem::take(&mut self.transition.finished)
    }

    /// The observation space of each environment.
    pub fn observation_space(&self) -> Space {
        self.batch.observation_space()
    }

    /// The action space of each environment.
    pub fn action_space(&self) -> Space {
        self.action_space.clone()
    }

    /// The current observations: environments x width.
    #[cfg(feature = "ndarray")]
    pub fn observations(&self) -> ArrayView2<'_, f32> {
        ArrayView2::from_shape((self.len(), self.width), &self.observations).expect("one row per environment")
    }

    /// The current observations, row by row.
    pub fn observation_rows(&self) -> &[f32] {
        &self.observations
    }

    /// The current action masks, one row per environment; `None` if the environments have none.
    pub fn action_masks(&self) -> Option<&[bool]> {
        self.masks.as_deref()
    }

    fn update_masks(&mut self, envs: Range<usize>) -> Result<(), EnvError> {
        let Some(masks) = &mut self.masks else { return Ok(()) };
        let actions = masks.len() / self.waiting.len();
        for (env, mask) in masks.chunks_exact_mut(actions).enumerate().take(envs.end).skip(envs.start) {
            mask.fill(true);
            // the mask of a finished environment is not used, and may mark no action
            if !self.waiting[env] {
                self.batch.action_mask(env, mask);
                if !self.action_space.is_possible(mask) {
                    let (env, step, seed) = (self.ids.start + env, self.lengths[env], self.seed_of(env));
                    return Err(EnvError::Mask { world: self.world.clone(), env, step, seed });
                }
            }
        }
        Ok(())
    }

    /// Takes one step in every environment. [`EnvError::Finished`], [`EnvError::Action`] and [`EnvError::ActionCount`] leave the
    /// environments unchanged. Other errors are returned after the environments have taken the step; the vector must not be used after them.
    pub fn step(&mut self, actions: Actions<'_>) -> Result<&Transition, EnvError> {
        if self.autoreset == Autoreset::Disabled
            && let Some(env) = self.waiting.iter().position(|waiting| *waiting)
        {
            return Err(EnvError::Finished { env: self.ids.start + env });
        }
        self.step_unfinished(actions)
    }

    /// As [`step`](VecEnv::step), but with [`Autoreset::Disabled`] a finished environment is not an error. Every further step sets its
    /// observation and reward to 0, until [`begin_next`](VecEnv::begin_next) or [`reset_finished`](VecEnv::reset_finished) is called.
    pub fn step_unfinished(&mut self, actions: Actions<'_>) -> Result<&Transition, EnvError> {
        self.check_actions(actions)?;
        self.guarded(|envs| envs.advance(actions))?;
        Ok(&self.transition)
    }

    /// The outcome of the last step.
    pub fn outcome(&self) -> Outcome<'_> {
        let Transition { rewards, endings, step_ends, idle, finished, .. } = &self.transition;
        Outcome { rewards, endings, observations: &self.observations, masks: self.action_masks(), finished, idle, step_ends }
    }

    fn advance(&mut self, actions: Actions<'_>) -> Result<(), EnvError> {
        let Transition { rewards, endings, step_ends, resets, idle, finished } = &mut self.transition;
        if std::mem::take(&mut self.is_new) && step_ends.is_empty() {
            self.observations.fill(UNWRITTEN);
        }
        self.is_stepping = true;
        if step_ends.is_empty() {
            if self.autoreset != Autoreset::SameStep {
                idle.copy_from_slice(&self.waiting);
            }
            self.batch.step(actions, &self.waiting, &mut self.observations, rewards, endings);
        } else {
            idle.iter_mut().zip(self.waiting.iter().zip(&self.held)).for_each(|(idle, (waiting, held))| *idle = *waiting || *held);
            self.batch.step(actions, idle, &mut self.observations, rewards, endings);
            for (env, (ends_step, idle)) in step_ends.iter_mut().zip(idle).enumerate() {
                *ends_step = !*idle && self.batch.ends_step(env);
                if self.held[env] {
                    (rewards[env], endings[env]) = (0.0, Ending::Running);
                    self.lengths[env] = self.lengths[env].wrapping_sub(1); // the tally below adds 1 again
                }
            }
        }
        self.is_stepping = false;
        while let Some(finished) = finished.pop() {
            self.spare.push(finished.observation);
        }
        if self.autoreset == Autoreset::NextStep {
            resets.copy_from_slice(&self.waiting);
            for env in 0..self.len() {
                if std::mem::take(&mut self.waiting[env]) {
                    self.begin_episodes(&[env])?;
                    self.transition.rewards[env] = 0.0;
                    self.transition.endings[env] = Ending::Running;
                    self.lengths[env] = u32::MAX; // the tally below makes it 0: a reset is not a step
                }
            }
        }
        if self.autoreset == Autoreset::Disabled {
            for env in 0..self.len() {
                if self.waiting[env] {
                    self.observations[env * self.width..(env + 1) * self.width].fill(0.0);
                    self.transition.rewards[env] = 0.0;
                    self.transition.endings[env] = Ending::Running;
                    self.lengths[env] = self.lengths[env].wrapping_sub(1); // the tally below adds 1 again
                }
            }
        }

        let Transition { rewards, endings, .. } = &self.transition;
        let Self { observations, lengths, returns, done, .. } = self;
        let mut are_finite = true;
        Tally { observations, rewards, endings, lengths, returns, done, are_finite: &mut are_finite }.take();
        if !are_finite {
            self.check_finite(0..self.len())?;
        }
        let done = std::mem::take(&mut self.done);
        let outcome = self.finish_episodes(&done);
        self.done = done;
        outcome?;
        self.update_masks(0..self.len())
    }

    /// With [`Autoreset::Disabled`]: begins the next episode of every finished environment.
    pub fn reset_finished(&mut self) -> Result<(), EnvError> {
        let waiting: Vec<usize> = (0..self.len()).filter(|env| std::mem::take(&mut self.waiting[*env])).collect();
        self.guarded(|envs| {
            envs.begin_episodes(&waiting)?;
            envs.update_masks(0..envs.len())
        })
    }

    /// With [`Autoreset::Disabled`]: begins the next episode of environment `env`, if it is finished.
    pub fn begin_next(&mut self, env: usize) -> Result<(), EnvError> {
        if self.waiting[env] { self.begin_anew(env) } else { Ok(()) }
    }

    /// Begins the next episode of environment `env`, whether the last one is over or not.
    pub fn begin_anew(&mut self, env: usize) -> Result<(), EnvError> {
        self.waiting[env] = false;
        self.guarded(|envs| {
            envs.begin_episodes(&[env])?;
            envs.update_masks(env..env + 1)
        })
    }

    fn begin_episodes(&mut self, envs: &[usize]) -> Result<(), EnvError> {
        if envs.is_empty() {
            return Ok(());
        }
        let first = self.ids.start;
        Seeds { starts: self.starts, first, envs, episodes: &self.episodes, seeds: &mut self.next_seeds }.take();
        for (env, seed) in envs.iter().copied().zip(&self.next_seeds) {
            self.episodes[env] += 1;
            self.seeds[env] = *seed;
            self.returns[env] = 0.0;
            self.lengths[env] = 0;
        }
        self.batch.reset_many(envs, &self.next_seeds, &mut self.observations);
        if self.autoreset == Autoreset::SameStep {
            let Self { starts, episodes, next_seeds, .. } = self;
            Seeds { starts: *starts, first, envs, episodes, seeds: next_seeds }.take();
            envs.iter().zip(next_seeds).for_each(|(env, seed)| self.batch.announce(*env, *seed));
        }
        for env in envs.iter().copied() {
            if self.starts.group > 1 {
                self.batch.reseed(env, dynamics_seed(self.starts.seed, (first + env) as u64, self.episodes[env] - 1));
            }
            if !self.observations[env * self.width..(env + 1) * self.width].iter().all(|number| number.is_finite()) {
                self.check_finite(env..env + 1)?;
            }
        }
        Ok(())
    }

    fn finish_episodes(&mut self, envs: &[usize]) -> Result<(), EnvError> {
        for env in envs.iter().copied() {
            let mut scores = Vec::new();
            if !self.score_names.is_empty() {
                scores.resize(self.score_names.len(), 0.0);
                self.batch.scores(env, &mut scores);
            }
            let mask = self.masks.is_some().then(|| self.final_mask(env));
            let mut observation = self.spare.pop().unwrap_or_default();
            observation.clear();
            observation.extend_from_slice(&self.observations[env * self.width..(env + 1) * self.width]);
            self.transition.finished.push(Finished {
                scores,
                env,
                seed: self.seed_of(env),
                ending: self.transition.endings[env],
                episode_return: self.returns[env],
                length: self.lengths[env],
                observation,
                mask,
            });
        }
        match self.autoreset {
            Autoreset::SameStep => self.begin_episodes(envs)?,
            Autoreset::NextStep | Autoreset::Disabled => envs.iter().for_each(|env| self.waiting[*env] = true),
        }
        Ok(())
    }

    /// Returns the mask of a finished environment; one without an action becomes that of all.
    #[inline(never)]
    fn final_mask(&self, env: usize) -> Vec<bool> {
        let mut mask = vec![true; self.action_space.mask_width()];
        self.batch.action_mask(env, &mut mask);
        if self.action_space.is_possible(&mask) { mask } else { vec![true; mask.len()] }
    }

    fn check_actions(&self, actions: Actions<'_>) -> Result<(), EnvError> {
        let is_ragged = matches!(actions, Actions::Continuous { rows, width } if rows.len() != self.len() * width);
        if let Actions::Continuous { rows, width } = actions
            && (width == 0 || !rows.len().is_multiple_of(width))
        {
            let expected = format!("{} rows of {width} numbers", self.len());
            return Err(EnvError::Action { env: self.ids.start, expected, got: format!("{} numbers", rows.len()) });
        }
        if actions.len() != self.len() || is_ragged {
            return Err(EnvError::ActionCount { expected: self.len(), got: actions.len() });
        }
        if are_allowed(&self.action_space, actions) {
            return Ok(());
        }
        match (0..self.len()).find(|env| !self.action_space.contains(actions.get(*env))) {
            Some(env) => Err(EnvError::Action {
                env: self.ids.start + env,
                expected: self.action_space.to_string(),
                got: actions.get(env).to_string(),
            }),
            None => Ok(()),
        }
    }

    fn check_finite(&self, envs: Range<usize>) -> Result<(), EnvError> {
        for env in envs {
            let error = |what: String, got: f32| EnvError::NotFinite {
                world: self.world.clone(),
                what,
                env: self.ids.start + env,
                got: f64::from(got),
                step: self.lengths[env],
                seed: self.seed_of(env),
            };
            let row = &self.observations[env * self.width..(env + 1) * self.width];
            if let Some(i) = unwritten(row) {
                let (env, step, seed) = (self.ids.start + env, self.lengths[env], self.seed_of(env));
                return Err(EnvError::Unwritten { world: self.world.clone(), i, env, width: self.width, step, seed });
            }
            let is_finite = self.transition.rewards[env].is_finite() && row.iter().all(|number| number.is_finite());
            if !is_finite && let Some(fault) = self.batch.fault(env) {
                let (env, step, seed) = (self.ids.start + env, self.lengths[env], self.seed_of(env));
                return Err(EnvError::Fault { world: self.world.clone(), fault, env, step, seed });
            }
            if !self.transition.rewards[env].is_finite() {
                return Err(error("reward".into(), self.transition.rewards[env]));
            }
            for (i, number) in row.iter().enumerate() {
                if !number.is_finite() {
                    return Err(error(format!("observation[{i}]"), *number));
                }
            }
        }
        Ok(())
    }

    /// Returns the state that [`load`](VecEnv::load) needs to continue all episodes.
    ///
    /// # Panics
    /// If an environment panics: with its [`EnvError`], see [`Panic::into_error`](panics::Panic::into_error).
    pub fn save(&self) -> Vec<u64> {
        let mut words = Vec::new();
        for env in 0..self.len() {
            let state = panics::catch(|| self.batch.save(env)).unwrap_or_else(|panic| panics::raise(self.panicked(panic.message())));
            words.extend([self.episodes[env], self.seeds[env], self.returns[env].to_bits(), u64::from(self.lengths[env])]);
            words.push(u64::from(self.waiting[env]));
            words.extend(self.observations[env * self.width..(env + 1) * self.width].iter().map(|x| u64::from(x.to_bits())));
            words.push(state.len() as u64);
            words.extend(state);
        }
        words
    }

    /// Number of words that belong to the first environment in `words`; `None` if `words` is too short.
    fn saved_len(words: &[u64], width: usize) -> Option<usize> {
        let header = 6 + width;
        let state = usize::try_from(*words.get(header - 1)?).ok()?;
        header.checked_add(state).filter(|len| *len <= words.len())
    }

    /// Continues from a [saved](VecEnv::save) state. `words` may also hold the states of later environments of the run. Returns the
    /// remaining words. After an error the vector must not be used. Environments whose state cannot be saved
    /// ([`EnvSpec::can_be_saved`](crate::EnvSpec::can_be_saved)) begin new episodes.
    pub fn load<'a>(&mut self, words: &'a [u64]) -> Result<&'a [u64], EnvError> {
        self.guarded(|envs| envs.load_all(words))
    }

    fn load_all<'a>(&mut self, mut words: &'a [u64]) -> Result<&'a [u64], EnvError> {
        for env in 0..self.len() {
            let short = || EnvError::State(format!("environment {}: the saved state is too short", self.ids.start + env));
            let (own, rest) = words.split_at(Self::saved_len(words, self.width).ok_or_else(short)?);
            let (header, state) = own.split_at(6 + self.width);
            let wrong = |what: &str| EnvError::State(format!("environment {}: {what}", self.ids.start + env));
            let waiting = match (header[4], self.autoreset) {
                (0, _) => false,
                (1, Autoreset::NextStep | Autoreset::Disabled) => true,
                (1, Autoreset::SameStep) => return Err(wrong("autoreset in the same step: expected no wait for a reset, got one")),
                (other, _) => return Err(wrong(&format!("flag of a wait for a reset: expected 0 or 1, got {other}"))),
            };
            let length = u32::try_from(header[3]).map_err(|_| wrong("the length of its episode is not a 32-bit number"))?;
            let episode_return = f64::from_bits(header[2]);
            if !episode_return.is_finite() {
                return Err(wrong(&format!("expected a finite return, got {episode_return}")));
            }
            self.episodes[env] = header[0];
            self.seeds[env] = header[1];
            self.returns[env] = episode_return;
            self.lengths[env] = length;
            self.waiting[env] = waiting;
            for (number, word) in self.observations[env * self.width..].iter_mut().zip(&header[5..5 + self.width]) {
                *number = f32::from_bits(*word as u32);
            }
            if self.can_be_saved {
                self.batch.load(env, state)?;
                self.check_finite(env..env + 1)?;
            }
            words = rest;
        }
        if !self.can_be_saved {
            self.waiting.fill(false);
            // an episode that had just begun begins again
            self.episodes.iter_mut().zip(&self.lengths).for_each(|(episode, length)| *episode -= u64::from(*length == 0 && *episode > 0));
            self.begin_episodes(&(0..self.len()).collect::<Vec<_>>())?;
        }
        self.update_masks(0..self.len())?;
        Ok(words)
    }
}
