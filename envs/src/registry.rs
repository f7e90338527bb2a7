//! Worlds by name.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::bandits::{Bandit, ContextualBandit};
use crate::tabular::{CliffWalking, FickleTaxi, FrozenLake, TableEnv, Tabular, Taxi};
use crate::{Autoreset, Batch, CartPole, CartPoleBatch, Env, EnvError, ScalarBatch, TimeLimit, VecEnv, names};

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

    /// As [`vec_env`](World::vec_env), with the autoreset of your choice.
    pub fn vec_env_with(&self, ids: Range<usize>, seed: u64, autoreset: Autoreset) -> Result<VecEnv, EnvError> {
        VecEnv::new((self.many)(ids.len()), ids, seed, autoreset)
    }
}

fn cartpole() -> World {
    const LIMIT: u32 = 500;
    World {
        gymnasium_id: Some("CartPole-v1".into()),
        about: "balance a pole on a cart by pushing it left or right, 500 steps at most".into(),
        solved_at: Some(475.0),
        many: Arc::new(|n| Box::new(CartPoleBatch::new(n, LIMIT))),
        ..World::new("cartpole", || TimeLimit::new(CartPole::default(), LIMIT))
    }
}

/// The seed of the problems that the registered bandits pose.
const PROBLEM: u64 = 0;

fn bandit() -> World {
    World {
        about: "pull one of ten arms that pay differently, with Gaussian noise".into(),
        ..World::new("bandit", || Bandit::gaussian(10, PROBLEM))
    }
}

fn bernoulli_bandit() -> World {
    World {
        about: "pull one of ten arms that pay 1 or nothing, with different probabilities".into(),
        ..World::new("bernoulli-bandit", || Bandit::bernoulli(10, PROBLEM))
    }
}

fn contextual_bandit() -> World {
    World {
        about: "pull one of five arms whose worth depends on the four numbers observed".into(),
        ..World::new("contextual-bandit", || ContextualBandit::new(5, 4, PROBLEM))
    }
}

/// A world whose copies share one table, made when the first of them is.
fn tabular<W: Tabular + 'static>(name: &str, about: &str, limit: u32, table: fn() -> W) -> World {
    let shared = Arc::new(OnceLock::new());
    let make = move || TimeLimit::new(TableEnv::<W>::new(shared.get_or_init(|| Arc::new(table())).clone()), limit);
    World { about: about.into(), ..World::new(name, make) }
}

fn slippery(map: &[&str]) -> FrozenLake {
    FrozenLake::slippery(map, FrozenLake::SUCCESS_RATE).expect("a map")
}

fn frozen_lake() -> World {
    let about = "cross slippery ice without falling into a hole, 16 states, 100 steps at most";
    let gymnasium_id = Some("FrozenLake-v1".into());
    World { gymnasium_id, solved_at: Some(0.7), ..tabular("frozen-lake", about, 100, || slippery(&FrozenLake::MAP_4X4)) }
}

fn frozen_lake_8x8() -> World {
    let about = "cross a larger lake of slippery ice, 64 states, 200 steps at most";
    let gymnasium_id = Some("FrozenLake8x8-v1".into());
    World { gymnasium_id, solved_at: Some(0.85), ..tabular("frozen-lake-8x8", about, 200, || slippery(&FrozenLake::MAP_8X8)) }
}

fn frozen_lake_deterministic() -> World {
    let about = "cross ice on which nobody slips, 16 states, 100 steps at most";
    tabular("frozen-lake-deterministic", about, 100, || FrozenLake::deterministic(&FrozenLake::MAP_4X4).expect("a map"))
}

/// Gymnasium's CliffWalking has no limit; a policy that stands still would never be done with its episode.
const CLIFF_LIMIT: u32 = 1000;

fn cliff_walking() -> World {
    let about = "walk along a cliff to the goal, 48 states, 1000 steps at most";
    let world = tabular("cliff-walking", about, CLIFF_LIMIT, CliffWalking::deterministic);
    World { gymnasium_id: Some("CliffWalking-v1".into()), ..world }
}

fn cliff_walking_slippery() -> World {
    let about = "walk along a cliff on slippery ground, 48 states, 1000 steps at most";
    let world = tabular("cliff-walking-slippery", about, CLIFF_LIMIT, CliffWalking::slippery);
    World { gymnasium_id: Some("CliffWalkingSlippery-v1".into()), ..world }
}

const TAXI_LIMIT: u32 = 200;

fn taxi() -> World {
    let about = "fetch a passenger and bring them to their destination, 500 states, 200 steps at most";
    World { gymnasium_id: Some("Taxi-v4".into()), solved_at: Some(8.0), ..tabular("taxi", about, TAXI_LIMIT, Taxi::dry) }
}

fn taxi_rainy() -> World {
    let about = "the taxi in the rain, where one step in five goes astray";
    tabular("taxi-rainy", about, TAXI_LIMIT, || Taxi::rainy(Taxi::RAINY_PROBABILITY).expect("a probability"))
}

fn taxi_fickle() -> World {
    let shared = Arc::new(OnceLock::new());
    let make = move || {
        let taxi: Arc<Taxi> = shared.get_or_init(|| Arc::new(Taxi::dry())).clone();
        TimeLimit::new(FickleTaxi::new(taxi, FickleTaxi::PROBABILITY).expect("a probability"), TAXI_LIMIT)
    };
    World { about: "the taxi with passengers who may change their destination".into(), ..World::new("taxi-fickle", make) }
}

/// All worlds, in the order in which `gradus list` shows them.
pub fn all() -> Vec<World> {
    vec![
        cartpole(),
        bandit(),
        bernoulli_bandit(),
        contextual_bandit(),
        frozen_lake(),
        frozen_lake_8x8(),
        frozen_lake_deterministic(),
        cliff_walking(),
        cliff_walking_slippery(),
        taxi(),
        taxi_rainy(),
        taxi_fickle(),
    ]
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
