//! [`EnvSpec`]: the specification of an environment, which makes single environments and vectors of them.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::bandits::{Bandit, ContextualBandit};
use crate::tabular::{TableEnv, Tabular};
use crate::text::{TargetSum, TextWorld};
use crate::wrappers::{NormaliseObservation, NormalisedBatch, RunningStatistics};
use crate::{Action, Autoreset, Batch, Env, EnvError, ScalarBatch, Space, Starts, Step, TimeLimit, VecEnv};
use gradus_base::panics;

/// The largest number of steps of an episode where training or evaluation waits for its end, unless the environment declares a longer time
/// limit. See [`EnvSpec::longest_episode`].
pub const MAX_EPISODE_STEPS: u32 = 1_000_000;

/// The description from which an engine (the part of a run that computes the networks) steps an environment as tensor operations on the
/// engine's device.
#[derive(Clone, Debug)]
pub enum TensorEnvSpec {
    /// CartPole with a time limit.
    CartPole {
        /// Number of steps after which episodes are truncated.
        limit: u32,
    },
    /// A bandit.
    Bandit(Bandit),
    /// A contextual bandit.
    ContextualBandit(ContextualBandit),
    /// A text task: the device generates completions, and the task verifies them on the host.
    Text,
    /// The text task target sum: the device draws the prompts, and generates and verifies the completions.
    TargetSum(TargetSum),
}

/// Makes an environment.
pub(crate) type One = Arc<dyn Fn() -> Box<dyn Env> + Send + Sync>;
/// Makes a number of environments.
pub(crate) type Many = Arc<dyn Fn(usize) -> Box<dyn Batch> + Send + Sync>;
/// Returns the transition table that a world's environments follow.
type Model = Arc<dyn Fn() -> Arc<dyn Tabular> + Send + Sync>;
/// Applies one of a world's wrappers to another world.
type Rewrap = Arc<dyn Fn(EnvSpec) -> EnvSpec + Send + Sync>;

/// The specification of an environment: its name, its properties, and how to make one copy or many.
#[derive(Clone)]
pub struct EnvSpec {
    /// Our name, such as `cartpole`.
    pub name: String,
    /// Gymnasium's name, such as `CartPole-v1`, if it has one.
    pub gymnasium_id: Option<String>,
    /// A one-line description.
    pub about: String,
    /// The environment counts as solved at this mean return or above; `None` if there is no such threshold.
    pub solved_at: Option<f64>,
    /// The number of steps after which episodes are truncated, if there is a limit.
    pub max_episode_steps: Option<u32>,
    /// The task and options of a text environment; `None` for other environments.
    pub text: Option<TextWorld>,
    /// The description for engines that step the environment on a device. `None` if no engine can, and for wrapped environments.
    pub tensor_spec: Option<TensorEnvSpec>,
    pub(crate) is_one_hot: bool,
    /// Whether an episode can be saved and continued.
    pub(crate) can_be_saved: bool,
    /// The number of states, if observations are exactly their one-hot codes.
    pub(crate) states: Option<usize>,
    pub(crate) model: Option<Model>,
    pub(crate) one: One,
    pub(crate) many: Many,
    /// The wrappers, innermost first.
    pub(crate) wrappers: Vec<Rewrap>,
    /// The world for evaluation without the wrappers, if it is another one: whole games, where an episode is a life.
    pub(crate) whole: Option<Arc<EnvSpec>>,
}

impl std::fmt::Debug for EnvSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EnvSpec")
            .field("name", &self.name)
            .field("gymnasium_id", &self.gymnasium_id)
            .field("about", &self.about)
            .field("solved_at", &self.solved_at)
            .field("max_episode_steps", &self.max_episode_steps)
            .finish_non_exhaustive()
    }
}

/// An environment that is stepped elsewhere.
struct Elsewhere {
    world: String,
    observations: Space,
    actions: Space,
}

impl Env for Elsewhere {
    fn observation_space(&self) -> Space {
        self.observations.clone()
    }

    fn action_space(&self) -> Space {
        self.actions.clone()
    }

    fn reset(&mut self, _: u64, observation: &mut [f32]) {
        observation.fill(0.0);
    }

    fn step(&mut self, _: Action<'_>, _: &mut [f32]) -> Step {
        let problem = "its environments are stepped elsewhere, only their spaces are known here".into();
        panics::raise(EnvError::Made { world: self.world.clone(), problem })
    }

    fn save(&self) -> Vec<u64> {
        Vec::new()
    }

    fn load(&mut self, _: &[u64]) -> Result<(), EnvError> {
        Ok(())
    }
}

/// The name of [`EnvSpec`] in earlier versions.
#[deprecated = "renamed to EnvSpec"]
pub type World = EnvSpec;

/// Makes vectors of boxed environments, so that those of all wrappers are compiled once.
fn one_by_one(one: One) -> Many {
    Arc::new(move |n| Box::new(ScalarBatch::new((0..n).map(|_| one()).collect())))
}

impl EnvSpec {
    /// Creates a custom world from `make`, which returns a new environment. Any time limit must be part of that environment.
    pub fn new<E: Env + 'static>(name: &str, make: impl Fn() -> E + Clone + Send + Sync + 'static) -> Self {
        let one = make.clone();
        let many = move |n| -> Box<dyn Batch> { Box::new(ScalarBatch::new((0..n).map(|_| make()).collect())) };
        Self::of(name, Arc::new(move || Box::new(one())), Arc::new(many))
    }

    /// Creates a world from `one`, which makes an environment, and from `many`, which makes a number of copies. Both must give the same numbers.
    pub(crate) fn of(name: &str, one: One, many: Many) -> Self {
        Self {
            name: name.into(),
            gymnasium_id: None,
            about: String::new(),
            solved_at: None,
            max_episode_steps: None,
            text: None,
            tensor_spec: None,
            is_one_hot: false,
            can_be_saved: true,
            states: None,
            model: None,
            one,
            many,
            wrappers: Vec::new(),
            whole: None,
        }
    }

    /// Creates a custom world with episodes truncated after `limit` steps.
    pub fn limited<E: Env + 'static>(name: &str, limit: u32, make: impl Fn() -> E + Clone + Send + Sync + 'static) -> Self {
        Self { max_episode_steps: Some(limit), ..Self::new(name, move || TimeLimit::new(make(), limit)) }
    }

    /// Creates the spec of environments that are stepped elsewhere, with these observation and action spaces: in another program, by a simulator,
    /// in a game. It can be asked for its spaces; its environments cannot take a step.
    ///
    /// ```
    /// use gradus_envs::{EnvSpec, Space};
    ///
    /// let observations = Space::Box { low: vec![-1.0; 3], high: vec![1.0; 3] };
    /// let arm = EnvSpec::of_spaces("arm", observations, Space::Discrete(4));
    /// assert_eq!(arm.env().action_space(), Space::Discrete(4));
    /// ```
    pub fn of_spaces(name: &str, observations: Space, actions: Space) -> Self {
        let world = name.to_string();
        Self::new(name, move || Elsewhere { world: world.clone(), observations: observations.clone(), actions: actions.clone() })
    }

    /// Creates a world from a transition table, with episodes truncated after `limit` steps. All environments share the table, which `make` builds when it is first
    /// needed.
    ///
    /// ```
    /// use gradus_envs::EnvSpec;
    /// use gradus_envs::tabular::random_walk;
    ///
    /// let walk = EnvSpec::of_table("random-walk", 1000, || random_walk(5));
    /// assert_eq!(walk.model().map(|model| model.table().states()), Some(5));
    /// ```
    pub fn of_table<W: Tabular + 'static>(name: &str, limit: u32, make: impl Fn() -> W + Send + Sync + 'static) -> Self {
        let shared: OnceLock<Arc<dyn Tabular>> = OnceLock::new();
        Self::of_model(name, limit, Arc::new(move || shared.get_or_init(|| Arc::new(make())).clone()))
    }

    /// As [`of_table`](Self::of_table). Environments of all tables are of one type, which is compiled once.
    fn of_model(name: &str, limit: u32, model: Model) -> Self {
        let table = model.clone();
        Self { model: Some(model), ..Self::limited(name, limit, move || TableEnv::<dyn Tabular>::new(table())) }
    }

    /// Says that the environments follow a transition table, which `make` builds: a world whose environments draw by themselves what the table describes.
    pub fn with_model<W: Tabular + 'static>(self, make: impl Fn() -> W + Send + Sync + 'static) -> Self {
        let shared: OnceLock<Arc<W>> = OnceLock::new();
        Self { model: Some(Arc::new(move || shared.get_or_init(|| Arc::new(make())).clone())), ..self }
    }

    /// Returns the transition table that the environments follow, if one is known: p(s', r | s, a) of every state and action. Observations are the numbers of its states,
    /// or their [one-hot codes](Self::is_one_hot). Time limits are not part of it.
    pub fn model(&self) -> Option<Arc<dyn Tabular>> {
        self.model.as_ref().map(|model| model())
    }

    /// Wraps every environment of this world. The wrapped world has no [`model`](Self::model), because a wrapper may change anything.
    pub fn wrapped<E: Env + 'static>(self, wrap: impl Fn(Box<dyn Env>) -> E + Clone + Send + Sync + 'static) -> Self {
        let (one, again, mut wrappers) = (self.one, wrap.clone(), self.wrappers);
        wrappers.push(Arc::new(move |world: EnvSpec| world.wrapped(again.clone())));
        let one: One = Arc::new(move || Box::new(wrap(one())));
        Self { many: one_by_one(one.clone()), one, wrappers, tensor_spec: None, model: None, states: None, ..self }
    }

    /// Says how the last wrapper is applied to another world.
    pub(crate) fn wrap_again_by(mut self, wrap: impl Fn(EnvSpec) -> EnvSpec + Send + Sync + 'static) -> Self {
        self.wrappers.pop();
        self.wrappers.push(Arc::new(wrap));
        self
    }

    /// Normalises the observations by frozen statistics, as [`NormaliseObservation`] does. Vectors still step together.
    pub fn normalised(self, statistics: Arc<RunningStatistics>, clip: f32) -> Self {
        let (many, of_rows) = (self.many.clone(), statistics.clone());
        let made = self.wrapped(move |env| NormaliseObservation::new(env, statistics.clone(), clip));
        let batch = move |n| -> Box<dyn Batch> { Box::new(NormalisedBatch::new(many(n), of_rows.clone(), clip)) };
        Self { many: Arc::new(batch), ..made }
    }

    /// Makes vectors step their environments one after the other, which is slower and gives the same numbers.
    pub fn scalar(self) -> Self {
        Self { many: one_by_one(self.one.clone()), ..self }
    }

    /// Says that episodes cannot be saved and continued, because their state is elsewhere: in another process, in a simulator. A run that is resumed begins
    /// new ones, and an evaluation makes few environments.
    pub fn without_saving(self) -> Self {
        Self { can_be_saved: false, ..self }
    }

    /// Whether episodes can be saved and continued. Otherwise a run that is resumed begins new ones.
    pub fn can_be_saved(&self) -> bool {
        self.can_be_saved
    }

    /// Whether the wrapper [`OneHot`](crate::wrappers::OneHot) encodes the environment's discrete observations.
    pub fn is_one_hot(&self) -> bool {
        self.is_one_hot
    }

    /// Returns the number of states, if observations are exactly their one-hot codes: if the wrapper [`OneHot`](crate::wrappers::OneHot) is the outermost one.
    pub fn one_hot_states(&self) -> Option<usize> {
        self.states
    }

    /// Makes vectors as `other` does. Both must give the same numbers; the crate gradus-checker tests this.
    pub fn with_vectors_of(self, other: &EnvSpec) -> Self {
        Self { many: other.many.clone(), ..self }
    }

    /// The title of a figure: Gymnasium's name if there is one, otherwise ours, or the names of the files that a world comes from.
    pub fn title(&self) -> String {
        let name = crate::registry::without_folder(self.gymnasium_id.as_ref().unwrap_or(&self.name));
        match name.split_once(':') {
            Some(("grid" | "file" | "chat", files)) => files.replace("?model=", ", "),
            _ => name,
        }
    }

    /// Makes one environment.
    pub fn env(&self) -> Box<dyn Env> {
        (self.one)()
    }

    /// Makes one environment and checks its spaces. A panic is an error, too.
    pub fn checked_env(&self) -> Result<Box<dyn Env>, EnvError> {
        let (env, spaces) = self.making(|| {
            let env = self.env();
            let spaces = [("observation space", env.observation_space()), ("action space", env.action_space())];
            (env, spaces)
        })?;
        let wrong = |problem| EnvError::Made { world: self.name.clone(), problem };
        for (what, space) in spaces {
            space.check(what).map_err(wrong)?;
            if let ("observation space", Space::Discrete(n)) = (what, &space)
                && *n > 1 << f32::MANTISSA_DIGITS
            {
                return Err(wrong(format!("{what}: expected at most 2^24 elements, got {n}")));
            }
        }
        // they are columns of tables
        const OTHERS: [&str; 6] = ["step", "env", "seed", "return", "length", "end"];
        let names = env.score_names();
        let is_wrong = |(at, name): &(usize, &String)| {
            name.is_empty() || name.contains([',', '"', '\n', '\r']) || OTHERS.contains(&name.as_str()) || names[..*at].contains(name)
        };
        match names.iter().enumerate().find(is_wrong) {
            Some((_, name)) => Err(wrong(format!(
                "score names: expected different ones without commas, quotes and line ends, and none of {}, got {name:?}",
                OTHERS.join(", ")
            ))),
            None => Ok(env),
        }
    }

    /// Returns the largest number of steps of an episode in evaluation, in play, and in training on whole episodes:
    /// [`MAX_EPISODE_STEPS`], or [`max_episode_steps`](EnvSpec::max_episode_steps) if this is larger. An episode without an end by then is
    /// [`EnvError::Endless`].
    pub fn longest_episode(&self) -> u32 {
        self.max_episode_steps.map_or(MAX_EPISODE_STEPS, |limit| limit.max(MAX_EPISODE_STEPS))
    }

    /// Makes `n` environments that step together, whose first episodes have not begun.
    pub fn batch(&self, n: usize) -> Result<Box<dyn Batch>, EnvError> {
        self.checked_env()?;
        self.making(|| (self.many)(n))
    }

    /// Makes the environments `ids` of the run with seed `seed`, with [`Autoreset::SameStep`].
    pub fn vec_env(&self, ids: Range<usize>, seed: u64) -> Result<VecEnv, EnvError> {
        self.vec_env_with(ids, seed, Autoreset::SameStep)
    }

    /// As [`vec_env`](EnvSpec::vec_env), with the given starts and autoreset mode.
    pub fn vec_env_with(&self, ids: Range<usize>, starts: impl Into<Starts>, autoreset: Autoreset) -> Result<VecEnv, EnvError> {
        let batch = self.batch(ids.len())?;
        VecEnv::of_world(&self.name, batch, ids, starts.into(), autoreset).map(|envs| envs.that_can_be_saved(self.can_be_saved))
    }

    /// Calls `make`, which makes environments. A panic is an error.
    fn making<T>(&self, make: impl FnOnce() -> T) -> Result<T, EnvError> {
        let panicked = |message| format!("panicked before the first episode: {message}");
        panics::catch(make).map_err(|panic| EnvError::Made { world: self.name.clone(), problem: panicked(panic.message()) })
    }
}
