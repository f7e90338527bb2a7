//! [`Policy`]: a trained policy that chooses actions.

use std::path::Path;

use gradus_agents::ConfigError;
use gradus_base::random::{Purpose, Stream};
use gradus_base::tensors::{self, Tensors};
use gradus_envs::{Action, Actions, EnvSpec, SingleEnv};
use gradus_nets::Behaviour;
use gradus_rollouts::{InputError, Inputs, Predictor};

use crate::config::language;
use crate::evaluate::{Evaluation, Mode, evaluate};
use crate::files::{create_folder, replace};
use crate::run::vacant;
use crate::saved::{self, CONFIG, POLICY};
use crate::{Config, Error, Trainer};

/// A trained policy: it chooses actions for observations, plays and is evaluated. It comes from a run folder, or from a training without one.
///
/// ```no_run
/// use gradus::{Mode, Policy, draw, make};
///
/// let mut policy = Policy::load("runs/first")?;
/// let mut env = make("cartpole", 1)?;
/// for _ in 0..500 {
///     env.step(policy.predict(env.observation(), Mode::Greedy)?)?;
///     draw::show(&mut env)?;
/// }
/// # Ok::<(), gradus::Error>(())
/// ```
pub struct Policy {
    config: Config,
    /// With the configured wrappers, without normalisation.
    world: EnvSpec,
    behaviour: Box<dyn Behaviour>,
    predictor: Predictor,
    inputs: Inputs,
    seed: u64,
    streams: Vec<Stream>,
}

impl std::fmt::Debug for Policy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Policy").field("config", &self.config).field("seed", &self.seed).finish_non_exhaustive()
    }
}

/// Returns an error if a parameter, which an agent of another crate may have moved anywhere, is NaN or infinite.
fn sound(parameters: &Tensors) -> Result<(), Error> {
    tensors::check_finite(parameters).map_err(|source| Error::Tensors { path: "the policy".into(), source })
}

impl Policy {
    /// Loads the policy of a run folder, or a policy file in a run folder. Only reads: another process may train in the folder. An
    /// unfinished run has the policy of its last checkpoint.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
        saved::load(path.as_ref(), None)
    }

    /// As [`load`](Policy::load), for a run in a custom environment that is not registered.
    pub fn load_in_world(path: impl AsRef<Path>, world: EnvSpec) -> Result<Self, Error> {
        saved::load(path.as_ref(), Some(world))
    }

    /// Trains an agent without a run folder, and returns its policy. Nothing is printed, except once that Gradus is not optimised.
    ///
    /// ```
    /// use gradus::{Config, Mode, Policy};
    ///
    /// let config = Config { steps: 50_000, ..Config::preset("ppo", "CartPole-v1", None)? };
    /// let policy = Policy::train(config)?;
    /// assert!(policy.evaluate(100, Mode::Greedy)?.mean > 400.0);
    /// # Ok::<(), gradus::Error>(())
    /// ```
    pub fn train(config: Config) -> Result<Self, Error> {
        crate::run::warn_of_a_debug_build();
        let mut trainer = Trainer::new(config)?;
        trainer.finish()?;
        sound(&trainer.policy().save())?;
        Ok(trainer.into_policy())
    }

    /// `world` has the wrappers of `config`, without normalisation.
    pub(crate) fn new(config: Config, world: EnvSpec, behaviour: Box<dyn Behaviour>, normaliser: &gradus_rollouts::Normaliser) -> Self {
        let width = behaviour.observation_width();
        let predictor = Predictor::new(normaliser, width, &world.env().action_space());
        let (inputs, seed) = (Inputs::of(&world, &config.wrappers), config.seed);
        Self { config, world, behaviour, predictor, inputs, seed, streams: Vec::new() }
    }

    /// As [`new`](Policy::new), with a copy of `behaviour`.
    pub(crate) fn copy(
        config: &Config,
        world: &EnvSpec,
        behaviour: &dyn Behaviour,
        normaliser: &gradus_rollouts::Normaliser,
    ) -> Result<Self, Error> {
        let mut copy = config.algorithm(world)?.into_behaviour();
        copy.load(&behaviour.save()).map_err(|source| Error::Tensors { path: "the policy".into(), source })?;
        Ok(Self::new(config.clone(), world.clone(), copy, normaliser))
    }

    /// Returns the settings of the training.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the values and probabilities that the policy computes from rows of observations, which are normalised as in training. Discrete observations are one-hot codes. A policy
    /// with a [memory](Policy::memory) sees each row as the first of an episode.
    ///
    /// Returns an error if the rows have not as many numbers as the policy expects, or if a number is not finite.
    pub fn inspect(&mut self, observations: &[f32]) -> Result<Vec<gradus_nets::Inspection>, Error> {
        let width = self.behaviour.observation_width();
        if !observations.len().is_multiple_of(width) {
            return Err(InputError::new("observations", format!("rows of {width} numbers"), observations.len()).into());
        }
        if let Some(number) = observations.iter().find(|number| !number.is_finite()) {
            return Err(InputError::new("observations", "finite numbers", number).into());
        }
        let mut rows = observations.to_vec();
        self.predictor.normaliser().show(&mut rows);
        Ok(self.behaviour.inspect(&rows))
    }

    /// Returns the policy as the evaluations and the functions of [`evaluate`](crate::evaluate) take it. Its observations must be normalised.
    pub fn behaviour(&self) -> &dyn Behaviour {
        self.behaviour.as_ref()
    }

    /// Returns the environment with the wrappers of the training, without normalisation. Its observations are what
    /// [`predict`](Policy::predict) takes.
    pub fn world(&self) -> &EnvSpec {
        &self.world
    }

    /// Returns the environment as [`behaviour`](Policy::behaviour) sees it: with normalised observations, if the training normalised them.
    pub fn normalised_world(&self) -> EnvSpec {
        self.predictor.normaliser().frozen(&self.world)
    }

    /// Makes a copy of the environment of the training, whose episodes follow from `seed`.
    pub fn make(&self, seed: u64) -> Result<SingleEnv, Error> {
        Ok(self.world.single(seed)?)
    }

    /// Sets the seed of sampled actions and evaluations, and begins its random numbers anew. At first it is that of the training.
    pub fn set_seed(&mut self, seed: u64) {
        self.seed = seed;
        self.streams.clear();
    }

    /// Chooses an action for one observation, which is normalised as in training. An environment with discrete observations may give their
    /// number. Wrappers with a memory, such as stacked frames, are not applied: use the observations of [`make`](Policy::make).
    ///
    /// Returns an error if the observation has not as many numbers as the policy expects, or if one is not finite, and if the policy has a
    /// [memory](Policy::memory).
    pub fn predict(&mut self, observation: &[f32], mode: Mode) -> Result<Action<'_>, Error> {
        self.predict_masked(observation, None, mode)
    }

    /// As [`predict`](Policy::predict), but only actions whose entry in `mask` is true can be chosen.
    pub fn predict_masked(&mut self, observation: &[f32], mask: Option<&[bool]>, mode: Mode) -> Result<Action<'_>, Error> {
        Ok(self.choose(observation, observation.len(), mask, &mut [], mode)?.get(0))
    }

    /// Returns what the policy remembers at the beginning of an episode, for [`predict_with`](Policy::predict_with): as many zeros as it remembers
    /// numbers; none without a recurrent cell.
    pub fn memory(&self) -> Vec<f32> {
        vec![0.0; self.behaviour.memory_width()]
    }

    /// As [`predict_masked`](Policy::predict_masked), of a policy that remembers earlier observations of the episode. The caller holds what it
    /// remembers, and begins every episode with [`memory`](Policy::memory).
    ///
    /// ```no_run
    /// use gradus::{Mode, Policy};
    ///
    /// let mut policy = Policy::load("runs/recurrent")?;
    /// let (mut env, mut memory) = (policy.make(1)?, policy.memory());
    /// while !env.step(policy.predict_with(env.observation(), &mut memory, None, Mode::Greedy)?)?.done() {}
    /// # Ok::<(), gradus::Error>(())
    /// ```
    pub fn predict_with(
        &mut self,
        observation: &[f32],
        memory: &mut [f32],
        mask: Option<&[bool]>,
        mode: Mode,
    ) -> Result<Action<'_>, Error> {
        Ok(self.choose(observation, observation.len(), mask, memory, mode)?.get(0))
    }

    /// Chooses an action for each row of `observations`. With `masks`, rows x actions, only actions whose entry is true can be chosen.
    ///
    /// ```no_run
    /// # let mut policy = gradus::Policy::load("runs/first")?;
    /// let mut envs = policy.world().vec_env(0..8, 1)?;
    /// for _ in 0..500 {
    ///     let actions = policy.predict_many(envs.observations(), envs.action_masks(), gradus::Mode::Sampled)?;
    ///     envs.step(actions)?;
    /// }
    /// // or the rows of a slice
    /// let rows = gradus::ndarray::ArrayView2::from_shape((2, 4), &[0.0, 0.1, 0.0, -0.1, 0.0, 0.2, 0.0, -0.2]).expect("2 x 4 numbers");
    /// let actions = policy.predict_many(rows, None, gradus::Mode::Greedy)?;
    /// # Ok::<(), gradus::Error>(())
    /// ```
    #[cfg(feature = "ndarray")]
    pub fn predict_many(
        &mut self,
        observations: ndarray::ArrayView2<'_, f32>,
        masks: Option<&[bool]>,
        mode: Mode,
    ) -> Result<Actions<'_>, Error> {
        self.predict_many_with(observations, &mut [], masks, mode)
    }

    /// As [`predict_many`](Policy::predict_many) and [`predict_with`](Policy::predict_with): `memory` has the numbers of each row, one row after
    /// the other.
    #[cfg(feature = "ndarray")]
    pub fn predict_many_with(
        &mut self,
        observations: ndarray::ArrayView2<'_, f32>,
        memory: &mut [f32],
        masks: Option<&[bool]>,
        mode: Mode,
    ) -> Result<Actions<'_>, Error> {
        let width = observations.ncols();
        match observations.as_slice() {
            Some(rows) => self.choose(rows, width, masks, memory, mode),
            None => self.choose(&observations.iter().copied().collect::<Vec<f32>>(), width, masks, memory, mode),
        }
    }

    /// Chooses actions for rows of `width` numbers. The length of `rows` must be a multiple of `width`.
    fn choose(&mut self, rows: &[f32], width: usize, masks: Option<&[bool]>, memory: &mut [f32], mode: Mode) -> Result<Actions<'_>, Error> {
        let rows = self.inputs.rows(rows, width)?;
        let count = rows.len() / self.behaviour.observation_width();
        if self.world().text.is_some() && rows.chunks_exact(self.behaviour.observation_width()).any(|row| row[0] == 0.0) {
            return Err(InputError::new("observation", "a text of at least 1 token", "none").into());
        }
        let remembered = count * self.behaviour.memory_width();
        if memory.len() != remembered {
            return Err(InputError::new(
                "memory",
                format!("{remembered} numbers, as Policy::memory returns them for each row"),
                memory.len(),
            )
            .into());
        }
        if let Some(number) = memory.iter().find(|number| !number.is_finite()) {
            return Err(InputError::new("memory", "finite numbers", number).into());
        }
        self.inputs.check_masks(masks, count, |_| true)?;
        if mode == Mode::Sampled {
            let first = self.streams.len() as u64;
            self.streams.extend((first..count as u64).map(|row| Stream::new(self.seed, Purpose::Evaluation, 1 + row)));
        }
        let streams = if mode == Mode::Sampled { &mut self.streams[..count] } else { &mut [] };
        let actions = self.predictor.predict(self.behaviour.as_ref(), &rows, masks, memory, (&mode.sampling(), streams));
        Error::unless_sound(self.behaviour.as_ref())?;
        Ok(actions)
    }

    /// Evaluates the policy on `episodes` episodes with other seeds than in training; on a text task, on problems of the test split.
    pub fn evaluate(&self, episodes: usize, mode: Mode) -> Result<Evaluation, Error> {
        ConfigError::unless(episodes > 0, "episodes", "at least 1", episodes)?;
        let world = self.normalised_world().on_split(gradus_envs::text::Split::Test);
        evaluate(self.behaviour(), &world, episodes, self.seed, mode)
    }

    /// Plays the episode of `seed` greedily and writes it as an animated GIF.
    #[cfg(feature = "gif")]
    pub fn write_gif(&self, path: impl AsRef<Path>, seed: u64) -> Result<crate::evaluate::play::Played, Error> {
        crate::evaluate::play::write_gif(self.behaviour(), &self.normalised_world(), seed, path)
    }

    /// Writes the policy and its settings to a folder, which must be new or empty, for [`load`](Policy::load) and the commands `eval`, `play`
    /// and `sample`. The folder also gets copies of the files that the training read, such as the map of a grid world, as far as they still exist.
    pub fn save(&self, dir: impl AsRef<Path>) -> Result<(), Error> {
        create_folder(&vacant(dir.as_ref())?, |temporary| self.save_into(temporary))
    }

    /// As [`save`](Policy::save), into an existing folder that may have other files.
    pub fn save_into(&self, dir: &Path) -> Result<(), Error> {
        let settings = self.config.clone().with_copies(dir)?.to_file_in(dir)?;
        let mut parameters = self.behaviour.save();
        parameters.extend(self.predictor.normaliser().save_observations());
        sound(&parameters)?;
        let write = |name, bytes: &[u8]| replace(&dir.join(name), bytes).map_err(Error::io("write", dir));
        write(CONFIG, settings.as_bytes())?;
        write(POLICY, &tensors::encode(&parameters, &settings))?;
        language::write_adapters(dir, &self.config, self.world(), self.behaviour.as_ref())?;
        crate::run::gym::record(dir, &self.config.environment)
    }

    /// Writes the policy of a pretrained model as a whole model into an existing folder, in Hugging Face's layout: products of adapters are added to the matrices.
    /// Needs the feature `language`.
    pub fn save_for_transformers(&self, dir: &Path) -> Result<(), Error> {
        language::write_whole(dir, &self.config, self.world(), self.behaviour.as_ref())
    }
}
