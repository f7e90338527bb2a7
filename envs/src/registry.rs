//! Worlds by name.

use std::ops::Range;
use std::sync::Arc;

use crate::{Autoreset, Batch, CartPole, CartPoleBatch, Env, EnvError, ScalarBatch, Starts, TimeLimit, VecEnv, names};

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
    one: Arc<dyn Fn() -> Box<dyn Env> + Send + Sync>,
    many: Arc<dyn Fn(usize) -> Box<dyn Batch> + Send + Sync>,
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
            one: Arc::new(move || Box::new(one())),
            many: Arc::new(move |n| Box::new(ScalarBatch::new((0..n).map(|_| make()).collect()))),
        }
    }

    /// The same world with a wrapper around every environment.
    pub fn wrapped<E: Env + 'static>(self, wrap: impl Fn(Box<dyn Env>) -> E + Clone + Send + Sync + 'static) -> Self {
        let one = self.one;
        let made = Self::new(&self.name, move || wrap(one()));
        Self { one: made.one, many: made.many, ..self }
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

fn cartpole() -> World {
    const LIMIT: u32 = 500;
    World {
        gymnasium_id: Some("CartPole-v1".into()),
        about: "balance a pole on a cart by pushing it left or right, 500 steps at most".into(),
        solved_at: Some(475.0),
        max_episode_steps: Some(LIMIT),
        many: Arc::new(|n| Box::new(CartPoleBatch::new(n, LIMIT))),
        ..World::new("cartpole", || TimeLimit::new(CartPole::default(), LIMIT))
    }
}

/// All worlds, in the order in which `gradus list` shows them.
pub fn all() -> Vec<World> {
    vec![cartpole()]
}

/// The world called `name`, by our name or by Gymnasium's.
pub fn find(name: &str) -> Result<World, EnvError> {
    let worlds = all();
    let is_named = |world: &&World| world.name == name || world.gymnasium_id.as_deref() == Some(name);
    if let Some(world) = worlds.iter().find(is_named) {
        return Ok(world.clone());
    }
    let known: Vec<&str> = worlds.iter().flat_map(|world| [Some(world.name.as_str()), world.gymnasium_id.as_deref()]).flatten().collect();
    Err(EnvError::Unknown { name: name.into(), hint: names::hint(name, &known) })
}
