//! A world: environments by the dozen.

use std::ops::Range;
use std::sync::Arc;

use crate::bandits::{Bandit, ContextualBandit};
use crate::text::{TargetSum, TextWorld};
use crate::{Autoreset, Batch, Env, EnvError, ScalarBatch, Starts, TimeLimit, VecEnv};

/// What an engine has to know of a world that it steps itself, as a program of tensors on its own device.
#[derive(Clone, Debug)]
pub enum TensorEnvSpec {
    /// CartPole, truncated after so many steps.
    CartPole {
        /// How many.
        limit: u32,
    },
    /// A bandit.
    Bandit(Bandit),
    /// A contextual bandit.
    ContextualBandit(ContextualBandit),
    /// A text: a device writes it, and the task judges it on the host.
    Text,
    /// A text about a sum: a device asks, writes and judges.
    TargetSum(TargetSum),
}

/// Puts a wrapper on a world once more.
type Again = Arc<dyn Fn(World) -> World + Send + Sync>;

/// A world that can be made one at a time or many at a time.
#[derive(Clone)]
pub struct World {
    /// Our name, such as `cartpole`.
    pub name: String,
    /// Gymnasium's name, such as `CartPole-v1`, where there is one.
    pub gymnasium_id: Option<String>,
    /// What it is, in a line.
    pub about: String,
    /// The mean return from which it counts as solved, where one is agreed on.
    pub solved_at: Option<f64>,
    /// The number of steps after which episodes are truncated, where they are.
    pub max_episode_steps: Option<u32>,
    /// What a world of text is made of; nothing for other worlds.
    pub text: Option<TextWorld>,
    /// How a device steps it, where one can; nothing for worlds of your own and for those with a wrapper around them.
    pub tensor_spec: Option<TensorEnvSpec>,
    pub(crate) one: Arc<dyn Fn() -> Box<dyn Env> + Send + Sync>,
    pub(crate) many: Arc<dyn Fn(usize) -> Box<dyn Batch> + Send + Sync>,
    /// What was wrapped around it, from the inside out.
    pub(crate) wrappers: Vec<Again>,
}

impl World {
    /// A world of your own: whatever `make` returns, time limit included.
    pub fn new<E: Env + 'static>(name: &str, make: impl Fn() -> E + Clone + Send + Sync + 'static) -> Self {
        let one = make.clone();
        Self {
            name: name.into(),
            gymnasium_id: None,
            about: String::new(),
            solved_at: None,
            max_episode_steps: None,
            text: None,
            tensor_spec: None,
            one: Arc::new(move || Box::new(one())),
            many: Arc::new(move |n| Box::new(ScalarBatch::new((0..n).map(|_| make()).collect()))),
            wrappers: Vec::new(),
        }
    }

    /// A world of your own whose episodes are truncated after `limit` steps.
    pub fn limited<E: Env + 'static>(name: &str, limit: u32, make: impl Fn() -> E + Clone + Send + Sync + 'static) -> Self {
        Self { max_episode_steps: Some(limit), ..Self::new(name, move || TimeLimit::new(make(), limit)) }
    }

    /// The same world, with all its copies stepped by a faster implementation that gives the same numbers.
    pub(crate) fn batched<B: Batch + 'static>(self, make: impl Fn(usize) -> B + Send + Sync + 'static) -> Self {
        Self { many: Arc::new(move |n| Box::new(make(n))), ..self }
    }

    /// The same world with a wrapper around every environment.
    pub fn wrapped<E: Env + 'static>(self, wrap: impl Fn(Box<dyn Env>) -> E + Clone + Send + Sync + 'static) -> Self {
        let (one, again, mut wrappers) = (self.one, wrap.clone(), self.wrappers);
        wrappers.push(Arc::new(move |world: World| world.wrapped(again.clone())));
        let made = Self::new(&self.name, move || wrap(one()));
        Self { one: made.one, many: made.many, wrappers, tensor_spec: None, ..self }
    }

    /// The same world, stepped one environment after the other: slower, with the same numbers.
    pub fn scalar(self) -> Self {
        let one = self.one.clone();
        Self { many: Arc::new(move |n| Box::new(ScalarBatch::new((0..n).map(|_| one()).collect()))), ..self }
    }

    /// The name to put above a figure: Gymnasium's where there is one.
    pub fn title(&self) -> &str {
        self.gymnasium_id.as_deref().unwrap_or(&self.name)
    }

    /// One environment.
    pub fn env(&self) -> Box<dyn Env> {
        (self.one)()
    }

    /// The environments `ids` of the run with seed `seed`, with autoreset within the step.
    pub fn vec_env(&self, ids: Range<usize>, seed: u64) -> Result<VecEnv, EnvError> {
        self.vec_env_with(ids, seed, Autoreset::SameStep)
    }

    /// As [`vec_env`](World::vec_env), with the starts and the autoreset of your choice.
    pub fn vec_env_with(&self, ids: Range<usize>, starts: impl Into<Starts>, autoreset: Autoreset) -> Result<VecEnv, EnvError> {
        VecEnv::new((self.many)(ids.len()), ids, starts, autoreset)
    }
}
