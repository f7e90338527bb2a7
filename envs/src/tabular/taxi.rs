//! Taxi-v4, as in Gymnasium (after Dietterich, 2000, section 7.1): pick up a passenger and drive to the destination.
//!
//! | | |
//! |---|---|
//! | actions | `Discrete(6)`: 0 south, 1 north, 2 east, 3 west, 4 pick up, 5 drop off |
//! | observations | `Discrete(500)`: ((row x 5 + column) x 5 + passenger) x 4 + destination; passenger and destination are 0 red, 1 green, 2 yellow, 3 blue, and a passenger in the taxi is 4 |
//! | reward | -1 on every step, but 20 for delivering the passenger, and -10 for an illegal pick-up or drop-off |
//! | start | the taxi in any cell, the passenger at one of the four places, the destination at another of them: 300 states, equally likely |
//! | end | terminated when the passenger is delivered; truncated after 200 steps ([`TimeLimit`](crate::TimeLimit)) |
//!
//! In the rain, a move that is not blocked goes to each of the two sides with probability 0.1; a wall at that side stops it. A fickle
//! passenger ([`FickleTaxi`]) may change the destination. The action mask marks the actions that change the state.

use std::sync::Arc;

use super::grid::Grid;
use super::{Outcome, StateMap, Table, TableEnv, Tabular};
use crate::scene::{Ink, Scene, Shape};
use crate::{Action, Env, EnvError, Space, Step};

const GRID: Grid = Grid { rows: 5, columns: 5 };

/// Red, green, yellow and blue.
const PLACES: [[usize; 2]; 4] = [[0, 0], [0, 4], [4, 0], [4, 3]];

const NAMES: [&str; 4] = ["red", "green", "yellow", "blue"];

/// The row of each wall, and the column to the left of the wall.
const WALLS: [[usize; 2]; 6] = [[0, 1], [1, 1], [3, 0], [4, 0], [3, 2], [4, 2]];

/// South, north, east, west: rows down and columns to the right.
const STEPS: [[isize; 2]; 4] = [[1, 0], [-1, 0], [0, 1], [0, -1]];

/// The directions to the left and right of each direction.
const SIDES: [[usize; 2]; 4] = [[2, 3], [3, 2], [1, 0], [0, 1]];

const IN_TAXI: usize = 4;

/// A decoded state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ride {
    taxi: usize,
    passenger: usize,
    destination: usize,
}

impl Ride {
    fn of(state: usize) -> Self {
        Self { taxi: state / 20, passenger: state / 4 % 5, destination: state % 4 }
    }

    fn number(self) -> u32 {
        ((self.taxi * 5 + self.passenger) * 4 + self.destination) as u32
    }

    /// The index of the place at which the taxi is, if it is at one of the four places.
    fn place(self) -> Option<usize> {
        PLACES.iter().position(|place| *place == GRID.place(self.taxi))
    }
}

/// Returns the cell that a move leads to. Moves stop at walls and at the edge.
fn moved(cell: usize, direction: usize) -> usize {
    let [row, column] = GRID.place(cell);
    let walled = match direction {
        2 => WALLS.contains(&[row, column]),
        3 => column > 0 && WALLS.contains(&[row, column - 1]),
        _ => false,
    };
    if walled { cell } else { GRID.moved(cell, STEPS[direction]) }
}

/// Returns the next state, the reward and whether the episode ends, for a pick-up or drop-off.
fn served(ride: Ride, action: usize) -> (Ride, f64, bool) {
    let at = ride.place();
    match (action, ride.passenger) {
        (4, passenger) if at == Some(passenger) => (Ride { passenger: IN_TAXI, ..ride }, -1.0, false),
        (5, IN_TAXI) if at == Some(ride.destination) => (Ride { passenger: ride.destination, ..ride }, 20.0, true),
        (5, IN_TAXI) if at.is_some() => (Ride { passenger: at.unwrap_or(IN_TAXI), ..ride }, -1.0, false),
        _ => (ride, -10.0, false),
    }
}

/// The taxi's transition table.
#[derive(Clone, Debug, PartialEq)]
pub struct Taxi {
    table: Table,
}

impl Taxi {
    /// Gymnasium's probability that a move in the rain goes in the intended direction.
    pub const RAINY_PROBABILITY: f64 = 0.8;

    /// Builds the table in which every move goes in the intended direction.
    pub fn dry() -> Self {
        Self::build(|cell, direction| vec![(1.0, moved(cell, direction))])
    }

    /// Builds the table in which a move goes in the intended direction with probability `probability`, and otherwise to one of the two
    /// sides, which are equally likely. A move that is blocked in the intended direction never goes to a side.
    pub fn rainy(probability: f64) -> Result<Self, EnvError> {
        if !(0.0..=1.0).contains(&probability) {
            return Err(EnvError::Table(format!("rain of Taxi: expected a probability, got {probability}")));
        }
        let to_a_side = (1.0 - probability) / 2.0;
        Ok(Self::build(|cell, direction| {
            let ahead = moved(cell, direction);
            let [left, right] = SIDES[direction].map(|side| if ahead == cell { cell } else { moved(cell, side) });
            vec![(probability, ahead), (to_a_side, left), (to_a_side, right)]
        }))
    }

    /// Builds the table. `steps` returns the possible next cells of a move with their probabilities.
    fn build(steps: impl Fn(usize, usize) -> Vec<(f64, usize)>) -> Self {
        let outcomes = |state: usize, action: usize| {
            let ride = Ride::of(state);
            if action < STEPS.len() {
                let step = |(probability, taxi)| {
                    let next = Ride { taxi, ..ride }.number();
                    Outcome { probability, next, reward: -1.0, terminated: false }
                };
                return steps(ride.taxi, action).into_iter().map(step).collect();
            }
            let (next, reward, terminated) = served(ride, action);
            vec![Outcome { probability: 1.0, next: next.number(), reward, terminated }]
        };
        let all = (0..500).flat_map(|state| (0..6).map(move |action| (state, action)));
        let outcomes = all.map(|(state, action)| outcomes(state, action)).collect();
        let is_start = |ride: Ride| ride.passenger != IN_TAXI && ride.passenger != ride.destination;
        let starts = (0..500).map(|state| if is_start(Ride::of(state)) { 1.0 / 300.0 } else { 0.0 }).collect();
        Self { table: Table::new(6, outcomes, starts).expect("the rules above give distributions") }
    }
}

impl Tabular for Taxi {
    fn table(&self) -> &Table {
        &self.table
    }

    fn action_mask(&self, state: u32, mask: &mut [bool]) -> bool {
        let ride = Ride::of(state as usize);
        for (direction, marked) in mask[..4].iter_mut().enumerate() {
            *marked = moved(ride.taxi, direction) != ride.taxi;
        }
        mask[4] = ride.place() == Some(ride.passenger);
        mask[5] = ride.passenger == IN_TAXI && ride.place().is_some();
        true
    }

    /// The four places are small squares and the destination is a large one. The taxi is a large disc and the passenger a small one,
    /// which is inside the taxi after the pick-up.
    /// Eight of the twenty maps: the passenger waits at each stand and goes to the next, or is in the taxi, to each stand.
    fn maps(&self) -> Vec<StateMap> {
        let map = |passenger: usize, destination: usize| StateMap {
            title: match passenger {
                IN_TAXI => format!("in the taxi, to {}", NAMES[destination]),
                stand => format!("waiting at {}, to {}", NAMES[stand], NAMES[destination]),
            },
            axes: "arrows: best moves; P: pick up, D: drop off; walls are not drawn".into(),
            columns: 5,
            states: (0..25).map(|taxi| Some(Ride { taxi, passenger, destination }.number())).collect(),
            steps: STEPS.to_vec(),
            letters: vec![' ', ' ', ' ', ' ', 'P', 'D'],
            ..StateMap::default()
        };
        let waiting = (0..4).map(|stand| map(stand, (stand + 1) % 4));
        waiting.chain((0..4).map(|stand| map(IN_TAXI, stand))).collect()
    }

    fn scene(&self, state: u32) -> Option<Scene> {
        let ride = Ride::of(state as usize);
        let mut shapes: Vec<Shape> = PLACES.iter().map(|place| GRID.square(*place, 0.5, Ink::Ground)).collect();
        shapes.push(GRID.square(PLACES[ride.destination], 0.8, Ink::Goal));
        for [row, column] in WALLS {
            let [x, top] = [column as f64 + 1.0, (GRID.rows - row) as f64];
            shapes.push(Shape::Line { from: [x, top], to: [x, top - 1.0], width: 0.1, ink: Ink::Joint });
        }
        let taxi = GRID.place(ride.taxi);
        shapes.push(GRID.disc(taxi, 0.32, Ink::Body));
        let passenger = if ride.passenger == IN_TAXI { taxi } else { PLACES[ride.passenger] };
        shapes.push(GRID.disc(passenger, 0.14, Ink::Limb));
        Some(GRID.scene(shapes))
    }
}

/// Taxi with a passenger who in some episodes changes the destination once, when the taxi first reaches another cell after the pick-up
/// (Gymnasium's `fickle_passenger`).
///
/// Whether the passenger is fickle is drawn at the start of the episode and is not observed, so it is not part of the table.
#[derive(Clone, Debug)]
pub struct FickleTaxi {
    env: TableEnv<Taxi>,
    probability: f64,
    is_fickle: bool,
}

impl FickleTaxi {
    /// Gymnasium's probability that a passenger is fickle.
    pub const PROBABILITY: f64 = 0.3;

    /// Creates an environment from `taxi`, with passengers who are fickle with probability `probability`.
    pub fn new(taxi: impl Into<Arc<Taxi>>, probability: f64) -> Result<Self, EnvError> {
        if !(0.0..=1.0).contains(&probability) {
            return Err(EnvError::Table(format!("fickleness of Taxi: expected a probability, got {probability}")));
        }
        Ok(Self { env: TableEnv::new(taxi), probability, is_fickle: false })
    }
}

impl Env for FickleTaxi {
    fn observation_space(&self) -> Space {
        self.env.observation_space()
    }

    fn action_space(&self) -> Space {
        self.env.action_space()
    }

    fn reset(&mut self, seed: u64, observation: &mut [f32]) {
        self.env.reset(seed, observation);
        self.is_fickle = self.env.rng().stream.unit_f64() < self.probability;
    }

    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        let before = Ride::of(self.env.state() as usize);
        let step = self.env.step(action, observation);
        let after = Ride::of(self.env.state() as usize);
        if self.is_fickle && before.passenger == IN_TAXI && after.taxi != before.taxi {
            self.is_fickle = false;
            let other = (before.destination + 1 + self.env.rng().stream.below(3) as usize) % 4;
            self.env.set_state(Ride { destination: other, ..after }.number(), observation);
        }
        step
    }

    fn save(&self) -> Vec<u64> {
        let mut state = self.env.save();
        state.push(u64::from(self.is_fickle));
        state
    }

    fn load(&mut self, state: &[u64]) -> Result<(), EnvError> {
        let (is_fickle, inner) = match state.split_last() {
            Some((fickle @ (0 | 1), inner)) => (*fickle == 1, inner),
            last => return Err(EnvError::State(format!("fickle taxi: expected 0 or 1 at the end, got {:?}", last.map(|(word, _)| word)))),
        };
        self.env.load(inner)?;
        self.is_fickle = is_fickle;
        Ok(())
    }

    fn start_from(&mut self, state: &[f64], observation: &mut [f32]) -> Result<(), EnvError> {
        self.is_fickle = false;
        self.env.start_from(state, observation)
    }

    fn reseed(&mut self, seed: u64) {
        self.env.reseed(seed);
    }

    fn action_mask(&self, mask: &mut [bool]) -> bool {
        self.env.action_mask(mask)
    }

    fn render(&self) -> Option<Scene> {
        self.env.render()
    }
}
