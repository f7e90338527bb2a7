//! FrozenLake-v1, as in Gymnasium: cross the ice to the goal without falling into a hole.
//!
//! | | |
//! |---|---|
//! | actions | `Discrete(4)`: 0 left, 1 down, 2 right, 3 up |
//! | observations | `Discrete(16)`, or 64 on the large map: (number of columns) x row + column, from the upper left corner |
//! | reward | 1 for reaching the goal, else 0 |
//! | start | the upper left corner |
//! | end | terminated at the goal or in a hole; truncated after 100 steps, or 200 on the large map ([`TimeLimit`](crate::TimeLimit)) |
//!
//! On slippery ice the agent moves in the intended direction or to one of the two sides, each with probability 1/3. A move across the edge
//! of the grid leaves the agent in its cell. Gymnasium's other rewards (`reward_schedule`) and its random maps are not implemented; custom
//! maps are supported.

use super::grid::Grid;
use super::{Outcome, StateMap, Table, Tabular};
use crate::EnvError;
use crate::scene::{Ink, Scene};

/// The step of each action: rows down and columns to the right.
const STEPS: [[isize; 2]; 4] = [[0, -1], [1, 0], [0, 1], [-1, 0]];

/// A lake's map and transition table.
#[derive(Clone, Debug, PartialEq)]
pub struct FrozenLake {
    grid: Grid,
    /// The letter of each cell, row by row: S, F, H or G.
    letters: Vec<u8>,
    table: Table,
}

impl FrozenLake {
    /// Gymnasium's map `4x4`.
    pub const MAP_4X4: [&str; 4] = ["SFFF", "FHFH", "FFFH", "HFFG"];

    /// Gymnasium's map `8x8`.
    pub const MAP_8X8: [&str; 8] = ["SFFFFFFF", "FFFFFFFF", "FFFHFFFF", "FFFFFHFF", "FFFHFFFF", "FHHFFFHF", "FHFFHFHF", "FFFHFFFG"];

    /// Gymnasium's probability that a step on slippery ice goes in the intended direction.
    pub const SUCCESS_RATE: f64 = 1.0 / 3.0;

    /// Builds a slippery lake. A step goes in the intended direction with probability `success_rate`, and otherwise to one of the two
    /// sides, which are equally likely. The map has rows of equal length with the letters S (possible start), F (ice), H (hole) and G
    /// (goal).
    pub fn slippery(map: &[&str], success_rate: f64) -> Result<Self, EnvError> {
        if !(0.0..=1.0).contains(&success_rate) {
            return Err(EnvError::Table(format!("success rate of FrozenLake: expected a probability, got {success_rate}")));
        }
        let to_a_side = (1.0 - success_rate) / 2.0;
        Self::build(map, |action| vec![(to_a_side, (action + 3) % 4), (success_rate, action), (to_a_side, (action + 1) % 4)])
    }

    /// Builds a lake that is not slippery. The map is as in [`slippery`](FrozenLake::slippery).
    pub fn deterministic(map: &[&str]) -> Result<Self, EnvError> {
        Self::build(map, |action| vec![(1.0, action)])
    }

    /// Builds a lake. `directions` returns the possible directions of an action with their probabilities.
    fn build(map: &[&str], directions: impl Fn(usize) -> Vec<(f64, usize)>) -> Result<Self, EnvError> {
        let grid = Grid { rows: map.len(), columns: map.first().map_or(0, |row| row.len()) };
        let letters: Vec<u8> = map.iter().flat_map(|row| row.bytes()).collect();
        let is_map = map.iter().all(|row| row.len() == grid.columns) && letters.iter().all(|letter| b"SFHG".contains(letter));
        let starts = letters.iter().filter(|letter| **letter == b'S').count();
        if !is_map || starts == 0 {
            return Err(EnvError::Table(format!("map of FrozenLake: expected equally long rows of S, F, H and G with an S, got {map:?}")));
        }
        let ends = |cell: usize| b"GH".contains(&letters[cell]);
        let outcomes = |cell: usize, action: usize| {
            if ends(cell) {
                return vec![Outcome { probability: 1.0, next: cell as u32, reward: 0.0, terminated: true }];
            }
            let outcome = |(probability, direction): (f64, usize)| {
                let next = grid.moved(cell, STEPS[direction]);
                let reward = f64::from(u8::from(letters[next] == b'G'));
                Outcome { probability, next: next as u32, reward, terminated: ends(next) }
            };
            directions(action).into_iter().map(outcome).collect()
        };
        let all = (0..grid.cells()).flat_map(|cell| (0..4).map(move |action| (cell, action)));
        let outcomes = all.map(|(cell, action)| outcomes(cell, action)).collect();
        let first = |letter: &u8| if *letter == b'S' { 1.0 / starts as f64 } else { 0.0 };
        let table = Table::new(4, outcomes, letters.iter().map(first).collect())?;
        Ok(Self { grid, letters, table })
    }
}

impl Tabular for FrozenLake {
    fn table(&self) -> &Table {
        &self.table
    }

    fn maps(&self) -> Vec<StateMap> {
        let state = |(cell, letter): (usize, &u8)| (!b"HG".contains(letter)).then_some(cell as u32);
        let states = self.letters.iter().enumerate().map(state).collect();
        vec![StateMap { columns: self.grid.columns, states, steps: STEPS.to_vec(), ..StateMap::default() }]
    }

    /// Holes are dark discs, the goal is a square, the agent is a disc.
    fn scene(&self, state: u32) -> Option<Scene> {
        let mut shapes = Vec::new();
        for (cell, letter) in self.letters.iter().enumerate() {
            match letter {
                b'H' => shapes.push(self.grid.disc(self.grid.place(cell), 0.36, Ink::Joint)),
                b'G' => shapes.push(self.grid.square(self.grid.place(cell), 0.7, Ink::Goal)),
                _ => {}
            }
        }
        shapes.push(self.grid.disc(self.grid.place(state as usize), 0.24, Ink::Body));
        Some(self.grid.scene(shapes))
    }
}
