//! CliffWalking-v1, as in Gymnasium (after Sutton and Barto, example 6.6): walk along a cliff to the goal.
//!
//! | | |
//! |---|---|
//! | actions | `Discrete(4)`: 0 up, 1 right, 2 down, 3 left |
//! | observations | `Discrete(48)`: 12 x row + column, from the upper left corner |
//! | reward | -1 on every step, but -100 for a step into the cliff, which moves the agent back to the start |
//! | start | the lower left corner, state 36 |
//! | end | terminated in the lower right corner, state 47; the registered environment truncates after 1000 steps, but Gymnasium has no time limit |
//!
//! The cliff is the ten cells between start and goal. On slippery ground (CliffWalkingSlippery-v1) the agent moves in the intended
//! direction or to one of the two sides, each with probability 1/3. A move across the edge of the grid leaves the agent in its cell.

use super::grid::Grid;
use super::{Outcome, StateMap, Table, Tabular};
use crate::scene::{Ink, Scene, Shape};

const GRID: Grid = Grid { rows: 4, columns: 12 };
const START: usize = 36;
const GOAL: usize = 47;

/// The step of each action: rows down and columns to the right.
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
    /// Builds the table in which every step goes in the intended direction.
    pub fn deterministic() -> Self {
        Self::build(|action| vec![action])
    }

    /// Builds the table in which a step goes to a side with probability 2/3.
    pub fn slippery() -> Self {
        Self::build(|action| vec![(action + 3) % 4, action, (action + 1) % 4])
    }

    /// Builds the table. `directions` returns the possible directions of an action, which are equally likely.
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

    fn maps(&self) -> Vec<StateMap> {
        let state = |cell: usize| (!is_cliff(cell) && cell != GOAL).then_some(cell as u32);
        let states = (0..GRID.cells()).map(state).collect();
        vec![StateMap { columns: GRID.columns, states, steps: STEPS.to_vec(), ..StateMap::default() }]
    }

    /// The cliff is dark, the goal is a square, and the agent is a disc.
    fn scene(&self, state: u32) -> Option<Scene> {
        let cliff = vec![[1.0, 0.0], [11.0, 0.0], [11.0, 1.0], [1.0, 1.0]];
        let mut shapes = vec![Shape::Polygon { corners: cliff, ink: Ink::Joint }];
        shapes.push(GRID.square(GRID.place(GOAL), 0.7, Ink::Goal));
        shapes.push(GRID.disc(GRID.place(state as usize), 0.24, Ink::Body));
        Some(GRID.scene(shapes))
    }
}
