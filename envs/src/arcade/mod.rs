//! Small worlds that one must see: five games after Atari's on planes of 10 x 10 pixels, with the rules of MinAtar (Young and Tian, arXiv 1903.03176),
//! and a room with a [door and a key](DoorKey).
//!
//! | environment | actions | planes |
//! |---|---|---|
//! | [`Asterix`] | stay, left, up, right, down | player, enemies, trails, gold |
//! | [`Breakout`] | stay, left, right | paddle, ball, trail, bricks |
//! | [`Freeway`] | stay, up, down | chicken, cars, trails by speed (5) |
//! | [`Seaquest`] | stay, left, up, right, down, fire | front, back, bullets, trails, enemy bullets, fish, enemy submarines, oxygen, divers on board, divers |
//! | [`SpaceInvaders`] | stay, left, right, fire | cannon, aliens, aliens that move left, aliens that move right, bullets, enemy bullets |
//!
//! An observation is an [`Image`]: for each pixel, row by row, one number per plane, 0 or 1. With probability [`STICKY`] the action before is
//! repeated instead of the one that was chosen; before an episode's first action it is "stay". Except in Breakout and Freeway, episodes get harder
//! as they go on. The package `minatar` differs in two points: there the action before survives the end of an episode, and no episode is
//! truncated (here after [`LIMIT`] steps). The tests compare 10,000 steps of five seeds of each game with the package, fed with the same random
//! numbers.

mod asterix;
mod breakout;
pub mod door_key;
mod freeway;
mod pixels;
mod seaquest;
mod space_invaders;
mod sprites;

use std::ops::RangeInclusive;

pub use crate::episode_rng::Each;
use crate::episode_rng::{EpisodeRng, set_numbers, split_saved};
use crate::{Action, Env, EnvError, Image, Scene, Space, Step};
use gradus_base::random::Stream;

pub use asterix::Asterix;
pub use breakout::Breakout;
pub use door_key::DoorKey;
pub use freeway::Freeway;
pub use pixels::Screen;
pub use seaquest::Seaquest;
pub use space_invaders::SpaceInvaders;

/// Rows, and pixels of a row.
pub const SIZE: usize = 10;
/// The last row or column.
const LAST: i32 = SIZE as i32 - 1;
/// The probability that an action is replaced by the one before.
pub const STICKY: f64 = 0.1;
/// Steps after which the registered environments truncate an episode.
pub const LIMIT: u32 = 10_000;

/// What the player does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// Nothing.
    Stay,
    /// One pixel to the left.
    Left,
    /// One pixel up.
    Up,
    /// One pixel to the right.
    Right,
    /// One pixel down.
    Down,
    /// Shoots.
    Fire,
}

impl Move {
    /// Where the player is after this move from a pixel, in some rows.
    fn applied(self, [x, y]: [i32; 2], rows: RangeInclusive<i32>) -> [i32; 2] {
        match self {
            Move::Left => [(x - 1).max(0), y],
            Move::Right => [(x + 1).min(LAST), y],
            Move::Up => [x, (y - 1).max(*rows.start())],
            Move::Down => [x, (y + 1).min(*rows.end())],
            Move::Stay | Move::Fire => [x, y],
        }
    }
}

/// Dots of a picture, a byte for each row.
pub type Sprite = [u8; 8];

/// A plane of an observation, and what its pixels look like in a picture.
#[derive(Clone, Copy, Debug)]
pub struct Plane {
    /// What is seen on it.
    pub name: &'static str,
    /// Red, green and blue.
    pub colour: [u8; 3],
    /// The dots that have this colour.
    pub sprite: Sprite,
}

/// Random numbers, in the order in which a game asks for them.
pub trait Draws {
    /// A number from 0 to 1, without 1.
    fn unit(&mut self) -> f64;

    /// A whole number below `n`.
    fn below(&mut self, n: u32) -> u32;
}

impl Draws for Stream {
    fn unit(&mut self) -> f64 {
        self.unit_f64()
    }

    fn below(&mut self, n: u32) -> u32 {
        Stream::below(self, n)
    }
}

/// The planes of an observation, and what the actions do.
#[derive(Debug)]
pub struct Rules {
    /// The name of the game.
    pub name: &'static str,
    /// The planes.
    pub planes: &'static [Plane],
    /// What each action does.
    pub moves: &'static [Move],
}

/// A game without the rule of repeated actions.
pub trait Game: Clone + Send + 'static {
    /// Its planes and actions.
    const RULES: Rules;

    /// Begins an episode.
    fn start(draws: &mut dyn Draws) -> Self;

    /// Takes a step. Returns the reward, and whether the episode is over.
    fn act(&mut self, action: Move, draws: &mut dyn Draws) -> (u32, bool);

    /// Sets the pixels that are there; all are 0 before.
    fn show(&self, screen: &mut Screen<'_>);

    /// Visits every number of the state.
    fn visit(&mut self, each: Each<'_>);
}

/// A game of any kind, so that the environment is compiled once.
trait AnyGame: Send {
    fn rules(&self) -> &'static Rules;
    fn restart(&mut self, draws: &mut dyn Draws);
    fn act(&mut self, action: Move, draws: &mut dyn Draws) -> (u32, bool);
    fn show(&self, screen: &mut Screen<'_>);
    fn visit(&mut self, each: Each<'_>);
    fn visit_copy(&self, each: Each<'_>);
}

impl<G: Game> AnyGame for G {
    fn rules(&self) -> &'static Rules {
        &G::RULES
    }
    fn restart(&mut self, draws: &mut dyn Draws) {
        *self = G::start(draws);
    }
    fn act(&mut self, action: Move, draws: &mut dyn Draws) -> (u32, bool) {
        Game::act(self, action, draws)
    }
    fn show(&self, screen: &mut Screen<'_>) {
        Game::show(self, screen);
    }
    fn visit(&mut self, each: Each<'_>) {
        Game::visit(self, each);
    }
    fn visit_copy(&self, each: Each<'_>) {
        Game::visit(&mut self.clone(), each);
    }
}

/// A game as an environment.
pub struct Arcade {
    game: Box<dyn AnyGame>,
    before: Move,
    rng: EpisodeRng,
}

impl Arcade {
    /// Makes an environment of a game.
    pub fn new<G: Game>() -> Self {
        let mut rng = EpisodeRng::new(0);
        Self { game: Box::new(G::start(&mut rng.stream)), before: Move::Stay, rng }
    }

    /// The image that an observation is.
    pub fn image(&self) -> Image {
        Image { frames: 1, height: SIZE, width: SIZE, channels: self.game.rules().planes.len(), largest: 1 }
    }

    fn show(&self, observation: &mut [f32]) {
        observation.fill(0.0);
        self.game.show(&mut Screen::new(observation, self.game.rules().planes.len()));
    }
}

/// The action that is taken when one is `chosen` after another one, which it replaces.
pub fn taken(chosen: Move, before: &mut Move, draws: &mut dyn Draws) -> Move {
    if draws.unit() >= STICKY {
        *before = chosen;
    }
    *before
}

impl Env for Arcade {
    fn observation_space(&self) -> Space {
        Space::Image(self.image())
    }

    fn action_space(&self) -> Space {
        Space::Discrete(self.game.rules().moves.len() as u32)
    }

    fn reset(&mut self, seed: u64, observation: &mut [f32]) {
        (self.before, self.rng) = (Move::Stay, EpisodeRng::new(seed));
        self.game.restart(&mut self.rng.stream);
        self.show(observation);
    }

    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        let Rules { name, moves, .. } = self.game.rules();
        let chosen = match action {
            Action::Discrete(action) if (action as usize) < moves.len() => moves[action as usize],
            _ => panic!("{name}: expected an action from 0 to {}, got {action:?}", moves.len() - 1),
        };
        let action = taken(chosen, &mut self.before, &mut self.rng.stream);
        let (reward, terminated) = self.game.act(action, &mut self.rng.stream);
        self.show(observation);
        Step { reward: reward.into(), terminated, truncated: false }
    }

    fn save(&self) -> Vec<u64> {
        let mut words = self.rng.save().to_vec();
        words.push(self.game.rules().moves.iter().position(|action| *action == self.before).unwrap_or(0) as u64);
        self.game.visit_copy(&mut |number, _| words.push(i64::from(*number) as u64));
        words
    }

    fn load(&mut self, state: &[u64]) -> Result<(), EnvError> {
        let Rules { name, moves, .. } = self.game.rules();
        let wrong = |problem: String| EnvError::State(format!("{name}: {problem}"));
        let (first, own) = state.split_at(state.len().min(EpisodeRng::WORDS + 1));
        let (rng, [before]) = split_saved::<1>(name, first)?;
        let before = moves.get(before as usize).ok_or_else(|| wrong(format!("expected an action, got {before}")))?;
        let known = self.save();
        if let Err(problem) = self.set(own) {
            self.set(&known[EpisodeRng::WORDS + 1..]).expect("the state of this environment");
            return Err(wrong(problem));
        }
        (self.before, self.rng) = (*before, rng);
        Ok(())
    }

    fn reseed(&mut self, seed: u64) {
        self.rng = EpisodeRng::new(seed);
    }

    fn render(&self) -> Option<Scene> {
        let mut observation = vec![0.0; self.image().len()];
        self.show(&mut observation);
        Some(pixels::scene(&observation, SIZE, self.game.rules().planes))
    }
}

impl Arcade {
    /// Sets the numbers of the game's state.
    fn set(&mut self, words: &[u64]) -> Result<(), String> {
        set_numbers(&mut |each| self.game.visit(each), words)
    }
}

/// A pixel, and what moves between pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Mover {
    x: i32,
    y: i32,
    /// 1 to the right, -1 to the left.
    direction: i32,
    /// Steps until it moves.
    timer: i32,
    /// A second number: steps until it shoots, or whether it is of another kind.
    other: i32,
}

/// The side from which something enters: the first column if it moves to the right.
fn side(direction: i32) -> i32 {
    if direction > 0 { 0 } else { LAST }
}

impl Mover {
    fn is_at(&self, x: i32, y: i32) -> bool {
        (self.x, self.y) == (x, y)
    }

    /// Whether it is on the screen.
    fn is_inside(&self) -> bool {
        (0..=LAST).contains(&self.x)
    }

    /// The column that it has left.
    fn behind(&self) -> i32 {
        self.x - self.direction
    }

    fn visit(&mut self, each: Each<'_>) {
        each(&mut self.x, 0..=LAST);
        each(&mut self.y, 0..=LAST);
        each(&mut self.direction, -1..=1);
        each(&mut self.timer, 0..=i32::MAX);
        each(&mut self.other, 0..=i32::MAX);
    }
}

/// A list of at most `N` things, in order.
#[derive(Clone, Debug)]
struct Movers<const N: usize> {
    all: [Mover; N],
    len: usize,
}

impl<const N: usize> Movers<N> {
    fn new() -> Self {
        Self { all: [Mover::default(); N], len: 0 }
    }

    fn iter(&self) -> std::slice::Iter<'_, Mover> {
        self.all[..self.len].iter()
    }

    fn push(&mut self, mover: Mover) {
        if self.len < N {
            self.all[self.len] = mover;
            self.len += 1;
        }
    }

    fn remove(&mut self, i: usize) {
        self.all.copy_within(i + 1..self.len, i);
        self.len -= 1;
    }

    /// Removes the first one at a pixel; returns whether there was one.
    fn take(&mut self, x: i32, y: i32) -> bool {
        let found = self.iter().position(|mover| mover.is_at(x, y));
        found.into_iter().for_each(|i| self.remove(i));
        found.is_some()
    }

    fn visit(&mut self, each: Each<'_>) {
        let mut len = self.len as i32;
        each(&mut len, 0..=N as i32);
        self.len = len as usize;
        self.all[..self.len].iter_mut().for_each(|mover| mover.visit(&mut *each));
    }
}
