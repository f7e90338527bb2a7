//! CliffWalking-v1, as in Gymnasium (after Sutton and Barto, example 6.6): walk along a cliff to the goal.
//!
//! | | |
//! |---|---|
//! | actions | `Discrete(4)`: 0 up, 1 right, 2 down, 3 left |
//! | observations | `Discrete(48)`: 12 x row + column, from the upper left corner |
//! | reward | -1 on every step, -100 for a step over the cliff, which leads back to the start |
//! | start | the lower left corner, state 36 |
//! | end | terminated in the lower right corner, state 47; Gymnasium has no time limit, the registered environment truncates after 1000 steps |
//!
//! The cliff is the ten cells between start and goal. On slippery ground (CliffWalkingSlippery-v1) the agent moves in the intended
//! direction and to each of the two sides with probability 1/3. Moves stop at the edge.

use super::grid::Grid;
use super::{Outcome, Table, Tabular};
use crate::scene::{Ink, Scene, Shape};

const GRID: Grid = Grid { rows: 4, columns: 12 };
const START: usize = 36;
const GOAL: usize = 47;

/// Each action's step: rows down and columns to the right.
const STEPS: [[isize; 2]; 4] = [[-1, 0], [0, 1], [1, 0], [0, -1]];

fn is_cliff(cell: usize) -> bool {
    cell > START && cell < GOAL
}

/// The transition table of CliffWalking.
#[derive(Clone, Debug, PartialEq)]
pub struct CliffWalking {
    table: Table,
}

impl CliffWalking {
    /// Builds the table where every step goes in the intended direction.
    pub fn deterministic() -> Self {
        Self::build(|action| vec![action])
    }

    /// Builds the table where two steps in three go to a side.
    pub fn slippery() -> Self {
        Self::build(|action| vec![(action + 3) % 4, action, (action + 1) % 4])
    }

    /// `directions` returns the possible directions of an action, each with the same probability.
    fn build(directions: impl Fn(usize) -> Vec<usize>) -> Self {
        let outcomes = |cell: usize, action: usize| {
            let directions = directions(action);
            let probability = 1.0 / directions.len() as f64;
            let outcome = |direction: usize| match GRID.moved(cell, STEPS[direction]) {
                next if is_cliff(next) => Outcome { probability, next: START as u32, reward: -100.0, terminated: false },
                next => Outcome { probability, next: next as u32, reward: -1.0, terminated: next == GOAL },
            };
            directions.into_iter().map(outcome).collect()
        };
        let all = (0..GRID.cells()).flat_map(|cell| (0..4).map(move |action| (cell, action)));
        let outcomes = all.map(|(cell, action)| outcomes(cell, action)).collect();
        let starts = (0..GRID.cells()).map(|cell| f64::from(u8::from(cell == START))).collect();
        Self { table: Table::new(4, outcomes, starts).expect("the rules above give distributions") }
    }
}

impl Tabular for CliffWalking {
    fn table(&self) -> &Table {
        &self.table
    }

    /// The cliff is dark, the goal a square, the agent a disc.
    fn scene(&self, state: u32) -> Option<Scene> {
        let cliff = vec![[1.0, 0.0], [11.0, 0.0], [11.0, 1.0], [1.0, 1.0]];
        let mut shapes = vec![Shape::Polygon { corners: cliff, ink: Ink::Joint }];
        shapes.push(GRID.square(GRID.place(GOAL), 0.7, Ink::Goal));
        shapes.push(GRID.disc(GRID.place(state as usize), 0.24, Ink::Body));
        Some(GRID.scene(shapes))
    }
}
