//! Environments by name.
//!
//! An environment listed in [`all`] is available on the command line. [`register`] adds an environment from another crate.

use std::path::Path;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use crate::arcade::{self, Arcade, Asterix, Breakout, DoorKey, Freeway, Game, Seaquest, SpaceInvaders};
use crate::bandits::{Bandit, ContextualBandit};
use crate::columns::Columnar;
use crate::tabular::{self, Blackjack, CarRental, CliffWalking, FickleTaxi, FrozenLake, GridWorld, ShortCorridor, Tabular, Taxi};
use crate::{
    Acrobot, Batch, CartPole, ColumnBatch, Env, EnvError, EnvSpec, MountainCar, MountainCarContinuous, Pendulum, TensorEnvSpec, TimeLimit,
    bsuite, gym, text,
};
use gradus_base::files::read_text;
use gradus_base::names;

/// A classic task with a time limit: single environments, and vectors with their states in columns.
fn classic<T: Columnar<N, W> + Default + 'static, const N: usize, const W: usize>(name: &str, limit: u32) -> EnvSpec {
    let one = move || -> Box<dyn Env> { Box::new(TimeLimit::new(T::default(), limit)) };
    let many = move |n| -> Box<dyn Batch> { Box::new(ColumnBatch::<T, N, W>::new(n, limit)) };
    EnvSpec { max_episode_steps: Some(limit), ..EnvSpec::of(name, Arc::new(one), Arc::new(many)) }
}

fn cartpole() -> EnvSpec {
    const LIMIT: u32 = 500;
    EnvSpec {
        gymnasium_id: Some("CartPole-v1".into()),
        about: "balance a pole on a cart by pushing it left or right, 500 steps at most".into(),
        solved_at: Some(475.0),
        tensor_spec: Some(TensorEnvSpec::CartPole { limit: LIMIT }),
        ..classic::<CartPole, _, _>("cartpole", LIMIT)
    }
}

fn mountain_car() -> EnvSpec {
    EnvSpec {
        gymnasium_id: Some("MountainCar-v0".into()),
        about: "drive an underpowered car up a hill by building momentum, 200 steps at most".into(),
        solved_at: Some(-110.0),
        ..classic::<MountainCar, _, _>("mountain-car", 200)
    }
}

fn mountain_car_continuous() -> EnvSpec {
    EnvSpec {
        gymnasium_id: Some("MountainCarContinuous-v0".into()),
        about: "drive the car up the hill with a continuous force that costs reward, 999 steps at most".into(),
        solved_at: Some(90.0),
        ..classic::<MountainCarContinuous, _, _>("mountain-car-continuous", 999)
    }
}

fn acrobot() -> EnvSpec {
    EnvSpec {
        gymnasium_id: Some("Acrobot-v1".into()),
        about: "swing the tip of a double pendulum above a line with a torque at its middle joint, 500 steps at most".into(),
        solved_at: Some(-100.0),
        ..classic::<Acrobot, _, _>("acrobot", 500)
    }
}

fn pendulum() -> EnvSpec {
    EnvSpec {
        gymnasium_id: Some("Pendulum-v1".into()),
        about: "swing a pendulum up with a weak torque and balance it, 200 steps".into(),
        ..classic::<Pendulum, _, _>("pendulum", 200)
    }
}

/// A classic task without its velocities: the numbers of observations at these places are 0, as rl-zoo has them.
fn masked(world: EnvSpec, places: &'static [usize]) -> EnvSpec {
    let (name, about) = (format!("{}-masked", world.name), format!("{}; velocities are not seen", world.about));
    EnvSpec { name, about, gymnasium_id: None, ..world.masked(places) }
}

/// The problem seed of the registered bandits.
const PROBLEM: u64 = 0;

fn bandit() -> EnvSpec {
    EnvSpec {
        tensor_spec: Some(TensorEnvSpec::Bandit(Bandit::gaussian(10, PROBLEM))),
        about: "pull one of ten arms with different mean rewards and Gaussian noise".into(),
        ..EnvSpec::new("bandit", || Bandit::gaussian(10, PROBLEM))
    }
}

fn bernoulli_bandit() -> EnvSpec {
    EnvSpec {
        tensor_spec: Some(TensorEnvSpec::Bandit(Bandit::bernoulli(10, PROBLEM))),
        about: "pull one of ten arms that pay 0 or 1, with different probabilities".into(),
        ..EnvSpec::new("bernoulli-bandit", || Bandit::bernoulli(10, PROBLEM))
    }
}

fn contextual_bandit() -> EnvSpec {
    EnvSpec {
        tensor_spec: Some(TensorEnvSpec::ContextualBandit(ContextualBandit::new(5, 4, PROBLEM))),
        about: "pull one of five arms with mean rewards that depend on the four observed numbers".into(),
        ..EnvSpec::new("contextual-bandit", || ContextualBandit::new(5, 4, PROBLEM))
    }
}

/// Makes a world from a transition table.
fn of_table<W: Tabular + 'static>(name: &str, about: &str, limit: u32, table: fn() -> W) -> EnvSpec {
    EnvSpec { about: about.into(), ..EnvSpec::of_table(name, limit, table) }
}

fn slippery(map: &[&str]) -> FrozenLake {
    FrozenLake::slippery(map, FrozenLake::SUCCESS_RATE).expect("a map")
}

fn frozen_lake() -> EnvSpec {
    let about = "cross slippery ice without falling into a hole, 16 states, 100 steps at most";
    let gymnasium_id = Some("FrozenLake-v1".into());
    EnvSpec { gymnasium_id, solved_at: Some(0.7), ..of_table("frozen-lake", about, 100, || slippery(&FrozenLake::MAP_4X4)) }
}

fn frozen_lake_8x8() -> EnvSpec {
    let about = "cross a larger lake of slippery ice, 64 states, 200 steps at most";
    let gymnasium_id = Some("FrozenLake8x8-v1".into());
    EnvSpec { gymnasium_id, solved_at: Some(0.85), ..of_table("frozen-lake-8x8", about, 200, || slippery(&FrozenLake::MAP_8X8)) }
}

fn frozen_lake_deterministic() -> EnvSpec {
    let about = "cross a frozen lake that is not slippery, 16 states, 100 steps at most";
    of_table("frozen-lake-deterministic", about, 100, || FrozenLake::deterministic(&FrozenLake::MAP_4X4).expect("a map"))
}

/// Gymnasium's CliffWalking has no time limit. Without a limit, a policy that never reaches the goal would never finish an episode.
const CLIFF_LIMIT: u32 = 1000;

fn cliff_walking() -> EnvSpec {
    let about = "walk along a cliff to the goal, 48 states, 1000 steps at most";
    let world = of_table("cliff-walking", about, CLIFF_LIMIT, CliffWalking::deterministic);
    EnvSpec { gymnasium_id: Some("CliffWalking-v1".into()), ..world }
}

fn cliff_walking_slippery() -> EnvSpec {
    let about = "walk along a cliff on slippery ground, 48 states, 1000 steps at most";
    let world = of_table("cliff-walking-slippery", about, CLIFF_LIMIT, CliffWalking::slippery);
    EnvSpec { gymnasium_id: Some("CliffWalkingSlippery-v1".into()), ..world }
}

const TAXI_LIMIT: u32 = 200;

fn taxi() -> EnvSpec {
    let about = "pick up a passenger and drive to the destination, 500 states, 200 steps at most";
    EnvSpec { gymnasium_id: Some("Taxi-v4".into()), solved_at: Some(8.0), ..of_table("taxi", about, TAXI_LIMIT, Taxi::dry) }
}

fn taxi_rainy() -> EnvSpec {
    let about = "the taxi in the rain: one move in five goes sideways";
    of_table("taxi-rainy", about, TAXI_LIMIT, || Taxi::rainy(Taxi::RAINY_PROBABILITY).expect("a probability"))
}

fn taxi_fickle() -> EnvSpec {
    let shared = Arc::new(OnceLock::new());
    let make = move || {
        let taxi: Arc<Taxi> = shared.get_or_init(|| Arc::new(Taxi::dry())).clone();
        FickleTaxi::new(taxi, FickleTaxi::PROBABILITY).expect("a probability")
    };
    EnvSpec {
        about: "the taxi with passengers who may change their destination".into(),
        ..EnvSpec::limited("taxi-fickle", TAXI_LIMIT, make)
    }
}

fn random_walk() -> EnvSpec {
    of_table("random-walk", "a random walk over five states: nothing to decide, values to predict, 1000 steps at most", 1000, || {
        tabular::random_walk(5)
    })
}

fn random_walk_19() -> EnvSpec {
    let about = "a random walk over nineteen states, with -1 on the left and 1 on the right, 10000 steps at most";
    of_table("random-walk-19", about, 10_000, || tabular::random_walk_between(19, [-1.0, 1.0]))
}

fn windy_grid() -> EnvSpec {
    of_table("windy-grid", "walk to the goal in a wind that blows upwards, 70 states, 1000 steps at most", 1000, GridWorld::windy)
}

fn dyna_maze() -> EnvSpec {
    of_table("dyna-maze", "find the way through a maze, 54 states, 2000 steps at most", 2000, GridWorld::dyna_maze)
}

fn short_corridor() -> EnvSpec {
    let about = "three states that look the same, one with switched actions, 1000 steps at most";
    EnvSpec { about: about.into(), ..EnvSpec::limited("short-corridor", 1000, ShortCorridor::default) }
}

fn car_rental() -> EnvSpec {
    let about = "move cars over night to rent them by day, 441 states, 100 days";
    EnvSpec { about: about.into(), ..EnvSpec::limited("car-rental", 100, CarRental::default).with_model(tabular::car_rental) }
}

fn gambler() -> EnvSpec {
    of_table("gambler", "stake a capital on coin flips, 0.4 of which win, until it is 100 or nothing", 10_000, || tabular::gambler(0.4))
}

fn blackjack() -> EnvSpec {
    let about = "draw cards to come close to 21, but not above it, 715 states";
    EnvSpec { gymnasium_id: Some("Blackjack-v1".into()), ..of_table("blackjack", about, 100, Blackjack::new) }
}

fn door_key() -> EnvSpec {
    let about = "take a key, open a door and reach the goal, seen from above as 8 x 8 pixels, 640 steps at most";
    EnvSpec { about: about.into(), ..EnvSpec::limited("door-key", arcade::door_key::LIMIT, DoorKey::default) }
}

/// A game seen as planes of 10 x 10 pixels.
fn game<G: Game>(name: &str, about: &str) -> EnvSpec {
    // a pointer, so that the environments of all games are of one type, which is compiled once
    let make: fn() -> Arcade = Arcade::new::<G>;
    let id = format!("MinAtar/{}-v1", G::RULES.name);
    EnvSpec { gymnasium_id: Some(id), about: about.into(), ..EnvSpec::limited(name, arcade::LIMIT, make) }
}

/// What the name of a world from a map begins with; a file's path follows.
const GRID: &str = "grid:";

/// The number of steps after which episodes in worlds from maps are truncated.
const GRID_LIMIT: u32 = 1000;

/// Most bytes of a file with a map.
const LARGEST_MAP: u64 = 1 << 20;

/// Reads a [map](GridWorld) from a file.
fn grid(name: &str, path: &str) -> Result<EnvSpec, EnvError> {
    let problem = |error: String| EnvError::Table(format!("{path}: {error}"));
    if path.is_empty() {
        return Err(EnvError::Table("expected grid:PATH, such as grid:maze.txt, got no path".into()));
    }
    let text =
        read_text(Path::new(path), LARGEST_MAP).map_err(|error| problem(format!("expected a text file with a map, got: {error}")))?;
    let world: GridWorld = text.parse().map_err(|error| match error {
        EnvError::Table(text) => problem(text),
        other => other,
    })?;
    let about = format!("a grid world from a map, {GRID_LIMIT} steps at most");
    Ok(EnvSpec { about, ..EnvSpec::of_table(name, GRID_LIMIT, move || world.clone()) })
}

/// Returns the name of a world; of one from files, without their folders.
///
/// ```
/// use gradus_envs::registry::without_folder;
/// assert_eq!(["grid:maps/maze.txt", "file:sums.jsonl", "cartpole"].map(without_folder), ["grid:maze.txt", "file:sums.jsonl", "cartpole"]);
/// assert_eq!(without_folder("chat:tasks/short.jsonl?model=models/small.gguf"), "chat:short.jsonl?model=small.gguf");
/// ```
pub fn without_folder(name: &str) -> String {
    let file = |path: &str| path.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().unwrap_or(path).to_owned();
    match name.split_once(':') {
        Some((kind @ ("grid" | "file"), path)) => format!("{kind}:{}", file(path)),
        Some((kind @ "chat", paths)) => match paths.split_once("?model=") {
            Some((problems, model)) => format!("{kind}:{}?model={}", file(problems), file(model)),
            None => format!("{kind}:{}", file(paths)),
        },
        _ => name.into(),
    }
}

/// The worlds added by [`register`].
static ADDED: RwLock<Vec<EnvSpec>> = RwLock::new(Vec::new());

/// Registers a world for the rest of the process. Its name and its Gymnasium name must be new, and have letters, digits, `-`, `_`, `.` and `/` only.
pub fn register(world: EnvSpec) -> Result<(), EnvError> {
    let is_plain = |name: &str| {
        let is_letter = |letter: char| letter.is_alphanumeric() || "-_./".contains(letter);
        // presets and settings give these words a meaning
        let is_taken = ["any", "text", "chat", "continuous", "atari", "all"].contains(&name);
        !name.is_empty() && name.chars().all(is_letter) && !name.contains("..") && !is_taken
    };
    for name in [Some(&world.name), world.gymnasium_id.as_ref()].into_iter().flatten() {
        if !is_plain(name) {
            let expected =
                "expected a name of letters, digits, `-`, `_`, `.` and `/` that is not any, text, chat, continuous, atari or all";
            return Err(EnvError::Made { world: format!("{name:?}"), problem: expected.into() });
        }
    }
    for name in [Some(&world.name), world.gymnasium_id.as_ref()].into_iter().flatten() {
        // names of sizes that do not exist would never be found
        if text::find(name).is_some() || bsuite::find(name).is_some() || find(name).is_ok() {
            return Err(EnvError::Registered { name: name.clone() });
        }
    }
    ADDED.write().unwrap_or_else(PoisonError::into_inner).push(world);
    Ok(())
}

/// Whether the world called `name` was added by [`register`].
pub fn is_registered(name: &str) -> bool {
    let is_named = |world: &EnvSpec| world.name == name || world.gymnasium_id.as_deref() == Some(name);
    ADDED.read().unwrap_or_else(PoisonError::into_inner).iter().any(is_named)
}

/// Returns all worlds, in the order of `gradus list`. The levels of text environments are not listed, but [`find`] accepts their names.
pub fn all() -> Vec<EnvSpec> {
    let mut worlds = vec![
        cartpole(),
        mountain_car(),
        mountain_car_continuous(),
        acrobot(),
        pendulum(),
        masked(cartpole(), &[1, 3]),
        masked(mountain_car(), &[1]),
        masked(mountain_car_continuous(), &[1]),
        masked(acrobot(), &[4, 5]),
        masked(pendulum(), &[2]),
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
        blackjack(),
        windy_grid(),
        dyna_maze(),
        car_rental(),
        gambler(),
        random_walk(),
        random_walk_19(),
        short_corridor(),
        door_key(),
        game::<Asterix>("asterix", "catch gold and avoid enemies on a screen of 10 x 10 pixels"),
        game::<Breakout>("breakout", "hold a ball in play and break bricks on a screen of 10 x 10 pixels"),
        game::<Freeway>("freeway", "cross a road of eight lanes on a screen of 10 x 10 pixels, 2501 steps"),
        game::<Seaquest>("seaquest", "rescue divers and shoot enemies on a screen of 10 x 10 pixels"),
        game::<SpaceInvaders>("space-invaders", "shoot aliens before they land on a screen of 10 x 10 pixels"),
    ];
    worlds.extend(bsuite::worlds());
    worlds.extend(text::worlds());
    worlds.extend_from_slice(&ADDED.read().unwrap_or_else(PoisonError::into_inner));
    worlds
}

/// Returns the world called `name`, which is our name, Gymnasium's name, a level of a text environment, such as `addition-3`, `grid:FILE` for the world of a
/// [map](GridWorld) in a file, or `gym:ID` for an environment of Gymnasium in Python (see [`gym`]).
pub fn find(name: &str) -> Result<EnvSpec, EnvError> {
    if let Some(level) = text::find(name) {
        return level;
    }
    if let Some(problem) = bsuite::find(name) {
        return problem;
    }
    if let Some(path) = name.strip_prefix(GRID) {
        return grid(name, path);
    }
    if gym::is_gym(name) {
        return gym::find(name);
    }
    let worlds = all();
    let is_named = |world: &&EnvSpec| world.name == name || world.gymnasium_id.as_deref() == Some(name);
    let is_typed = |world: &&EnvSpec| {
        let ids = world.gymnasium_id.iter().flat_map(|id| [names::spelled(id), names::without_version(id)]);
        ids.chain([names::spelled(&world.name)]).any(|own| own == names::spelled(name))
    };
    if let Some(world) = worlds.iter().find(is_named).or_else(|| worlds.iter().find(is_typed)) {
        return Ok(world.clone());
    }
    if names::spelled(name) == "frozenlake4x4" {
        return find("frozen-lake");
    }
    if let Some(hint) = elsewhere(name) {
        return Err(EnvError::Unknown { name: name.into(), hint });
    }
    let known: Vec<&str> = worlds.iter().flat_map(|world| [Some(world.name.as_str()), world.gymnasium_id.as_deref()]).flatten().collect();
    let some = || worlds.iter().step_by(8).take(3).map(|world| world.name.as_str()).collect::<Vec<_>>().join(", ");
    let all = || format!("expected one of {} names, such as {}; the command `list` shows all", worlds.len(), some());
    let hint = names::nearest(name, known).map_or_else(all, |near| format!("did you mean `{near}`?"));
    Err(EnvError::Unknown { name: name.into(), hint })
}

/// Well-known environments in Python, without version, and the name of one of them.
const ELSEWHERE: [(&[&str], &str); 4] = [
    (&["lunarlander", "lunarlandercontinuous", "bipedalwalker", "bipedalwalkerhardcore", "carracing"], "LunarLander-v3"),
    (
        &[
            "ant",
            "halfcheetah",
            "hopper",
            "humanoid",
            "humanoidstandup",
            "inverteddoublependulum",
            "invertedpendulum",
            "pusher",
            "reacher",
            "swimmer",
            "walker2d",
        ],
        "HalfCheetah-v5",
    ),
    (&["pong", "beamrider", "qbert", "mspacman", "montezumarevenge", "enduro"], "ALE/Pong-v5"),
    (
        &["minigridempty5x5", "minigriddoorkey5x5", "minigridfourrooms", "procgen", "coinrun", "crafter", "craftax"],
        "minigrid/MiniGrid-Empty-8x8-v0",
    ),
];

/// Returns how to name an environment that is known, but not here.
fn elsewhere(name: &str) -> Option<String> {
    let wanted = names::without_version(name);
    let is_atari = name.starts_with("ALE/") || ["noframeskip", "deterministic"].iter().any(|end| wanted.ends_with(end));
    let is_known = |known: &[&str]| known.contains(&wanted.as_str()) || is_atari && known.contains(&"pong");
    let (_, id) = ELSEWHERE.iter().find(|(known, _)| is_known(known))?;
    Some(format!("it runs in Python, with its whole name behind gym:, such as gym:{id}; the command `guide gymnasium` tells more"))
}
