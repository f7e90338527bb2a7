//! Grid worlds from text maps.

use super::grid::Grid;
use super::{Outcome, Table, Tabular};
use crate::EnvError;
use crate::scene::{Ink, Scene, Shape};

/// A deterministic grid world. The four actions are 0 up, 1 right, 2 down and 3 left; a move against a wall or across the edge leaves the agent in its
/// cell.
///
/// | letter | cell |
/// |---|---|
/// | `S` | the start |
/// | `G` | the goal, where an episode ends |
/// | `#` | a wall |
/// | `.` | any other cell |
///
/// ```
/// use gradus_envs::tabular::{GridWorld, Tabular};
///
/// let maze = GridWorld::new(&["S#G", "..."], [0.0, 1.0])?;
/// assert_eq!(maze.table().states(), 6); // row by row, from the upper left corner
/// assert_eq!(maze.table().outcomes(0, 1)[0].next, 0); // a wall
/// let end = maze.table().outcomes(5, 0)[0];
/// assert_eq!((end.next, end.reward, end.terminated), (2, 1.0, true));
/// # Ok::<(), gradus_envs::EnvError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct GridWorld {
    table: Table,
    map: Vec<Vec<u8>>,
}

/// The step of each action: rows down and columns to the right.
const STEPS: [[isize; 2]; 4] = [[-1, 0], [0, 1], [1, 0], [0, -1]];

impl GridWorld {
    /// Builds the world of a map, row by row. A step has the first reward, and a step to the goal the second one.
    ///
    /// # Errors
    /// [`EnvError::Table`] if the rows are not equally long, there is another letter, or not one start and at least one goal.
    pub fn new(rows: &[&str], [step, goal]: [f64; 2]) -> Result<Self, EnvError> {
        let wrong = |text: String| Err(EnvError::Table(text));
        let map: Vec<Vec<u8>> = rows.iter().map(|row| row.bytes().collect()).collect();
        let grid = Grid { rows: map.len(), columns: map.first().map_or(0, Vec::len) };
        if let Some(row) = map.iter().position(|row| row.len() != grid.columns) {
            return wrong(format!("map: expected {} cells in row {}, as in row 1, got {}", grid.columns, row + 1, map[row].len()));
        }
        let cells: Vec<u8> = map.concat();
        if let Some(cell) = cells.iter().position(|letter| !b"SG#.".contains(letter)) {
            let [row, column] = grid.place(cell);
            return wrong(format!("map: row {}, column {}: expected S, G, # or ., got {:?}", row + 1, column + 1, char::from(cells[cell])));
        }
        let count = |wanted: u8| cells.iter().filter(|letter| **letter == wanted).count();
        if count(b'S') != 1 || count(b'G') == 0 {
            return wrong(format!("map: expected one S and at least one G, got {} and {}", count(b'S'), count(b'G')));
        }
        let outcome = |cell: usize, action: usize| {
            let next = grid.moved(cell, STEPS[action]);
            let next = if cells[next] == b'#' { cell } else { next };
            let terminated = cells[next] == b'G';
            vec![Outcome { probability: 1.0, next: next as u32, reward: if terminated { goal } else { step }, terminated }]
        };
        let outcomes =
            (0..cells.len()).flat_map(|cell| (0..4).map(move |action| (cell, action))).map(|(cell, action)| outcome(cell, action));
        let starts = cells.iter().map(|letter| f64::from(u8::from(*letter == b'S'))).collect();
        Ok(Self { table: Table::new(4, outcomes.collect(), starts)?, map })
    }

    /// The maze of Sutton and Barto's example 8.1: 6 x 9 cells, and a reward of 1 at the goal.
    pub fn dyna_maze() -> Self {
        let rows = [".......#G", "..#....#.", "S.#....#.", "..#......", ".....#...", "........."];
        Self::new(&rows, [0.0, 1.0]).expect("a map")
    }
}

impl Tabular for GridWorld {
    fn table(&self) -> &Table {
        &self.table
    }

    /// Walls are dark, goals are squares, and the agent is a disc.
    fn scene(&self, state: u32) -> Option<Scene> {
        let grid = Grid { rows: self.map.len(), columns: self.map[0].len() };
        let mut shapes: Vec<Shape> = Vec::new();
        for (cell, letter) in self.map.iter().flatten().enumerate() {
            match letter {
                b'#' => shapes.push(grid.square(grid.place(cell), 1.0, Ink::Joint)),
                b'G' => shapes.push(grid.square(grid.place(cell), 0.7, Ink::Goal)),
                _ => {}
            }
        }
        shapes.push(grid.disc(grid.place(state as usize), 0.24, Ink::Body));
        Some(grid.scene(shapes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_maps_are_refused_in_one_line() {
        let error = |rows: &[&str]| GridWorld::new(rows, [0.0, 1.0]).unwrap_err().to_string();
        for (rows, expected) in [
            (&["S.G", ".."][..], "map: expected 3 cells in row 2, as in row 1, got 2"),
            (&["SxG"], "map: row 1, column 2: expected S, G, # or ., got 'x'"),
            (&["..G"], "map: expected one S and at least one G, got 0 and 1"),
            (&[], "map: expected one S and at least one G, got 0 and 0"),
        ] {
            assert!(error(rows).contains(expected), "{}", error(rows));
        }
    }

    #[test]
    fn the_shortest_path_of_the_maze_has_14_steps() {
        let (table, mut distances) = (GridWorld::dyna_maze().table().clone(), vec![usize::MAX; 54]);
        let mut reached = vec![18];
        distances[18] = 0;
        while let Some(state) = (!reached.is_empty()).then(|| reached.remove(0)) {
            for action in 0..4 {
                let next = table.outcomes(state, action)[0].next as usize;
                if distances[next] == usize::MAX {
                    distances[next] = distances[state] + 1;
                    reached.push(next);
                }
            }
        }
        assert_eq!(distances[8], 14, "Sutton and Barto, figure 8.2");
    }
}
