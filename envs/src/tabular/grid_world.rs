//! Grid worlds from text maps.

use std::collections::BTreeSet;

use super::grid::Grid;
use super::{Outcome, StateMap, Table, Tabular};
use crate::EnvError;
use crate::scene::{Ink, Scene, Shape};

/// A grid world from a text map. The four actions are 0 up, 1 right, 2 down and 3 left; with eight moves, 4 to 7 are up-right, down-right, down-left and up-left. States
/// are the cells, row by row from the upper left corner. A move against a wall or across the edge leaves the agent in its cell.
///
/// | letter | cell |
/// |---|---|
/// | `S` | a start; without one, an episode begins in any cell with equal probability |
/// | `G` | a goal, where an episode ends |
/// | `C` | a cliff: a step into it has a reward of its own, and moves the agent to a start |
/// | `#` | a wall |
/// | `.` | any other cell |
/// | another letter | a cell with a reward of its own, or a place from or to which a teleport leads |
///
/// Before the map, a line `NAME = VALUE` is a setting, a line `A -> B = REWARD` a teleport, and a line that starts with `//` a comment:
///
/// | setting | meaning | default |
/// |---|---|---|
/// | `step` | reward of a step | -1 |
/// | `goal` | reward of a step to a goal | as `step` |
/// | `cliff` | reward of a step into a cliff | -100 |
/// | `bump` | reward of a step that a wall or the edge stops | as `step` |
/// | `wind` | a digit for every column: the cells by which a step from there also moves the agent up | 0 |
/// | `slip` | the probability that a step goes to one of the two sides instead, each with half of it | 0 |
/// | `moves` | 4 or 8 | 4 |
/// | a letter | reward of a step to the cells with this letter | as `step` |
///
/// Every action in a cell of a teleport `A -> B = REWARD` has this reward and leads to the cell `B`.
///
/// ```
/// use gradus_envs::tabular::{GridWorld, Tabular};
///
/// // Sutton and Barto, example 3.5
/// let world: GridWorld = "step = 0\nbump = -1\nA -> a = 10\nB -> b = 5\n\n.A.B.\n.....\n...b.\n.....\n.a...".parse()?;
/// let outcome = world.table().outcomes(1, 2)[0];
/// assert_eq!((outcome.next, outcome.reward), (21, 10.0));
/// assert_eq!(world.table().outcomes(0, 0)[0].reward, -1.0); // up, across the edge
/// # Ok::<(), gradus_envs::EnvError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct GridWorld {
    table: Table,
    map: Map,
}

/// The letters of the cells.
#[derive(Clone, Debug, PartialEq)]
struct Map {
    cells: Vec<u8>,
    grid: Grid,
}

/// The step of each action: rows down and columns to the right.
const STEPS: [[isize; 2]; 8] = [[-1, 0], [0, 1], [1, 0], [0, -1], [-1, 1], [1, 1], [1, -1], [-1, -1]];
/// The moves around the agent, clockwise: the sides of a move are before and after it.
const AROUND: [usize; 8] = [0, 4, 1, 5, 2, 6, 3, 7];
/// Most cells of a map: an agent sees a cell as one of so many numbers.
const MOST_CELLS: usize = 1 << 16;
/// Most pairs of a cliff and a start.
const MOST_FALLS: usize = 1 << 20;

/// The settings of a map.
#[derive(Clone, Debug, PartialEq)]
struct Rules {
    step: f64,
    goal: Option<f64>,
    cliff: f64,
    bump: Option<f64>,
    wind: Vec<isize>,
    slip: f64,
    moves: usize,
    /// Letters with a reward of their own.
    rewards: Vec<(u8, f64)>,
    /// From a letter, to a letter, with a reward.
    teleports: Vec<(u8, u8, f64)>,
    /// The names of the settings that were read.
    given: BTreeSet<String>,
}

impl Default for Rules {
    fn default() -> Self {
        let (rewards, teleports, given) = (Vec::new(), Vec::new(), BTreeSet::new());
        Self { step: -1.0, goal: None, cliff: -100.0, bump: None, wind: Vec::new(), slip: 0.0, moves: 4, rewards, teleports, given }
    }
}

fn wrong<T>(text: String) -> Result<T, EnvError> {
    Err(EnvError::Table(text))
}

/// Returns the letter of a cell that may have a reward or a teleport.
fn letter(name: &str) -> Option<u8> {
    match name.as_bytes() {
        [letter] if letter.is_ascii_alphabetic() && !b"SGC".contains(letter) => Some(*letter),
        _ => None,
    }
}

impl Rules {
    /// Reads a line before the map.
    fn read(&mut self, line: &str) -> Result<(), EnvError> {
        let (name, value) = line.split_once('=').map_or((line, ""), |(name, value)| (name.trim(), value.trim()));
        let number = || match value.parse::<f64>() {
            // rewards are f32 numbers
            Ok(number) if (number as f32).is_finite() => Ok(number),
            Ok(number) if number.is_finite() => wrong(format!("map: {name}: expected a number from -3.4e38 to 3.4e38, got {value}")),
            _ => wrong(format!("map: {name}: expected a number, got {value:?}")),
        };
        let given = name.split_once("->").map_or_else(|| name.to_owned(), |(from, _)| format!("{} ->", from.trim()));
        if !self.given.insert(given.clone()) {
            return wrong(format!("map: expected every setting once, got {given} twice"));
        }
        if let Some((from, to)) = name.split_once("->") {
            return match (letter(from.trim()), letter(to.trim())) {
                (Some(from), Some(to)) => {
                    self.teleports.push((from, to, number()?));
                    Ok(())
                }
                _ => {
                    wrong(format!("map: expected a teleport between two letters other than S, G and C, such as A -> a = 10, got {line:?}"))
                }
            };
        }
        match name {
            "step" => self.step = number()?,
            "goal" => self.goal = Some(number()?),
            "cliff" => self.cliff = number()?,
            "bump" => self.bump = Some(number()?),
            "slip" => {
                self.slip = number()?;
                if !(0.0..=1.0).contains(&self.slip) {
                    return wrong(format!("map: slip: expected a probability from 0 to 1, got {value}"));
                }
            }
            "moves" => {
                self.moves = match value {
                    "4" => 4,
                    "8" => 8,
                    _ => return wrong(format!("map: moves: expected 4 or 8, got {value:?}")),
                }
            }
            "wind" => {
                let digits: Option<Vec<isize>> = value.chars().map(|c| c.to_digit(10).map(|digit| digit as isize)).collect();
                let Some(digits) = digits else {
                    return wrong(format!("map: wind: expected one digit for every column, such as 0001221000, got {value:?}"));
                };
                self.wind = digits;
            }
            _ => match letter(name) {
                Some(letter) => self.rewards.push((letter, number()?)),
                None => {
                    let known = "step, goal, cliff, bump, wind, slip, moves or a letter other than S, G and C";
                    return wrong(format!("map: expected a setting called {known}, got {name:?}"));
                }
            },
        }
        Ok(())
    }
}

impl std::str::FromStr for GridWorld {
    type Err = EnvError;

    /// Builds the world of a map with its settings.
    ///
    /// # Errors
    /// [`EnvError::Table`] for an unknown setting, a setting out of range, rows that are not equally long, a letter without a meaning, more than 2^16 cells, or a map in
    /// which every cell is a goal, a cliff or a wall.
    fn from_str(text: &str) -> Result<Self, EnvError> {
        let (mut rules, mut rows) = (Rules::default(), Vec::new());
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")) {
            if rows.is_empty() && line.contains('=') {
                rules.read(line)?;
            } else {
                rows.push(line);
            }
        }
        Self::build(&rows, &rules)
    }
}

impl GridWorld {
    /// Builds the world of a map without settings, row by row. A step has the first reward, and a step to a goal the second one.
    ///
    /// # Errors
    /// [`EnvError::Table`], as for a map with settings.
    pub fn new(rows: &[&str], [step, goal]: [f64; 2]) -> Result<Self, EnvError> {
        Self::build(rows, &Rules { step, goal: Some(goal), ..Rules::default() })
    }

    fn build(rows: &[&str], rules: &Rules) -> Result<Self, EnvError> {
        let grid = Grid { rows: rows.len(), columns: rows.first().map_or(0, |row| row.len()) };
        if let Some(row) = rows.iter().position(|row| row.len() != grid.columns) {
            return wrong(format!("map: expected {} cells in row {}, as in row 1, got {}", grid.columns, row + 1, rows[row].len()));
        }
        let map: Vec<u8> = rows.concat().into_bytes();
        if map.len() > MOST_CELLS {
            return wrong(format!("map: expected at most {MOST_CELLS} cells, got {}", map.len()));
        }
        let is_known = |letter: u8| {
            let is_place = |(from, to, _): &(u8, u8, f64)| *from == letter || *to == letter;
            b"SGC#.".contains(&letter) || rules.rewards.iter().any(|(own, _)| *own == letter) || rules.teleports.iter().any(is_place)
        };
        if let Some(cell) = map.iter().position(|letter| !is_known(*letter)) {
            let [row, column] = grid.place(cell);
            let got = rows[row].char_indices().find(|(at, _)| *at == column).map_or(char::from(map[cell]), |(_, letter)| letter);
            return wrong(format!(
                "map: row {}, column {}: expected S, G, C, #, . or a letter with a setting, got {got:?}",
                row + 1,
                column + 1
            ));
        }
        if !rules.wind.is_empty() && rules.wind.len() != grid.columns {
            return wrong(format!("map: wind: expected {} digits, one for every column, got {}", grid.columns, rules.wind.len()));
        }
        let has_start = map.contains(&b'S');
        let is_start: Vec<bool> = map.iter().map(|letter| if has_start { *letter == b'S' } else { !b"GC#".contains(letter) }).collect();
        let starts = is_start.iter().filter(|is_start| **is_start).count();
        if starts == 0 {
            return wrong("map: expected a cell that is no goal, cliff or wall, got none".into());
        }
        let from = rules.teleports.iter().map(|(from, ..)| from);
        if let Some(letter) = rules.rewards.iter().map(|(letter, _)| letter).chain(from).find(|letter| !map.contains(letter)) {
            let letter = char::from(*letter);
            return wrong(format!("map: {letter}: expected a cell {letter}, because there is a setting for it, got none"));
        }
        for (from, to, _) in &rules.teleports {
            let count = map.iter().filter(|letter| *letter == to).count();
            if count != 1 {
                let (from, to) = (char::from(*from), char::from(*to));
                return wrong(format!("map: {from} -> {to}: expected one cell {to}, got {count}"));
            }
        }
        // every step into a cliff can lead to every start
        let cliffs = map.iter().filter(|letter| **letter == b'C').count();
        if cliffs * starts > MOST_FALLS {
            return wrong(format!(
                "map: expected at most {MOST_FALLS} pairs of a cliff and a start, got {}; mark one start with S",
                cliffs * starts
            ));
        }
        let map = Map { cells: map, grid };
        let starts: Vec<f64> = is_start.iter().map(|is_start| if *is_start { 1.0 / starts as f64 } else { 0.0 }).collect();
        let place = |to: u8| Some((to, map.cells.iter().position(|letter| *letter == to)?));
        let targets: Vec<(u8, usize)> = rules.teleports.iter().filter_map(|(_, to, _)| place(*to)).collect();
        let pairs = (0..map.cells.len()).flat_map(|cell| (0..rules.moves).map(move |action| (cell, action)));
        let outcomes = pairs.map(|(cell, action)| map.outcomes(rules, (&starts, &targets), cell, action)).collect();
        Ok(Self { table: Table::new(rules.moves, outcomes, starts)?, map })
    }

    /// The maze of Sutton and Barto's example 8.1: 6 x 9 cells, and a reward of 1 at the goal.
    pub fn dyna_maze() -> Self {
        let rows = [".......#G", "..#....#.", "S.#....#.", "..#......", ".....#...", "........."];
        Self::new(&rows, [0.0, 1.0]).expect("a map")
    }

    /// The two mazes of example 8.2: the way on the right of a wall is blocked, and another one on the left opens.
    pub fn blocking_mazes() -> [Self; 2] {
        ["########.", ".########"]
            .map(|wall| Self::new(&["........G", ".........", ".........", wall, ".........", "...S....."], [0.0, 1.0]).expect("a map"))
    }

    /// The two mazes of example 8.3: a shorter way on the right opens, and the one on the left remains.
    pub fn shortcut_mazes() -> [Self; 2] {
        [".########", ".#######."]
            .map(|wall| Self::new(&["........G", ".........", ".........", wall, ".........", "...S....."], [0.0, 1.0]).expect("a map"))
    }

    /// The windy grid world of example 6.5: 7 x 10 cells, a reward of -1 for every step, and a wind that blows upwards.
    pub fn windy() -> Self {
        "wind = 0001112210\n..........\n..........\n..........\nS......G..\n..........\n..........\n..........".parse().expect("a map")
    }
}

impl Map {
    /// Returns the outcomes of an action. Those with the same result are one.
    fn outcomes(&self, rules: &Rules, (starts, targets): (&[f64], &[(u8, usize)]), cell: usize, action: usize) -> Vec<Outcome> {
        let mut all: Vec<Outcome> = Vec::new();
        let mut add = |outcome: Outcome| {
            let is_same = |other: &&mut Outcome| {
                (other.next, other.terminated) == (outcome.next, outcome.terminated) && other.reward == outcome.reward
            };
            match all.iter_mut().find(is_same) {
                Some(same) => same.probability += outcome.probability,
                None => all.push(outcome),
            }
        };
        if let Some((_, to, reward)) = rules.teleports.iter().find(|(from, ..)| *from == self.cells[cell]) {
            let next = targets.iter().find(|(letter, _)| letter == to).map_or(cell, |(_, place)| *place) as u32;
            add(Outcome { probability: 1.0, next, reward: *reward, terminated: false });
            return all;
        }
        let around = AROUND.iter().filter(|other| **other < rules.moves).position(|other| *other == action).unwrap_or(0);
        let side =
            |by: usize| AROUND.iter().copied().filter(|other| *other < rules.moves).nth((around + by) % rules.moves).unwrap_or(action);
        let directions = [(action, 1.0 - rules.slip), (side(1), rules.slip / 2.0), (side(rules.moves - 1), rules.slip / 2.0)];
        let mut into_cliff = 0.0;
        for (direction, probability) in directions.into_iter().filter(|(_, probability)| *probability > 0.0) {
            let (next, is_stopped) = self.moved(rules, cell, direction);
            let own = rules.rewards.iter().find(|(letter, _)| *letter == self.cells[next]).map(|(_, reward)| *reward);
            let step = if is_stopped { rules.bump.unwrap_or(rules.step) } else { own.unwrap_or(rules.step) };
            match self.cells[next] {
                b'G' => add(Outcome { probability, next: next as u32, reward: rules.goal.unwrap_or(rules.step), terminated: true }),
                b'C' => into_cliff += probability,
                _ => add(Outcome { probability, next: next as u32, reward: step, terminated: false }),
            }
        }
        let all_starts = starts.iter().enumerate().filter(|(_, share)| into_cliff > 0.0 && **share > 0.0);
        let fallen = |(start, share): (usize, &f64)| Outcome {
            probability: into_cliff * share,
            next: start as u32,
            reward: rules.cliff,
            terminated: false,
        };
        all.extend(all_starts.map(fallen));
        all
    }

    /// Returns the cell that a move leads to, and whether a wall or the edge stopped the move itself. The wind blows as far as walls and the edge allow.
    fn moved(&self, rules: &Rules, cell: usize, direction: usize) -> (usize, bool) {
        let step = |cell: usize, by: [isize; 2]| {
            let next = self.grid.moved(cell, by);
            let ([row, column], [next_row, next_column]) = (self.grid.place(cell), self.grid.place(next));
            // a diagonal move across the edge does not slide along it
            let is_whole = next_row as isize - row as isize == by[0] && next_column as isize - column as isize == by[1];
            if is_whole && self.cells[next] != b'#' { (next, false) } else { (cell, true) }
        };
        let wind = rules.wind.get(self.grid.place(cell)[1]).copied().unwrap_or(0);
        let (next, is_stopped) = step(cell, STEPS[direction]);
        ((0..wind).fold(next, |next, _| step(next, STEPS[0]).0), is_stopped)
    }
}

impl Tabular for GridWorld {
    fn table(&self) -> &Table {
        &self.table
    }

    fn maps(&self) -> Vec<StateMap> {
        let Map { cells, grid } = &self.map;
        let state = |(cell, letter): (usize, &u8)| (!b"#GC".contains(letter)).then_some(cell as u32);
        let (states, steps) = (cells.iter().enumerate().map(state).collect(), STEPS[..self.table.actions()].to_vec());
        vec![StateMap { columns: grid.columns, states, steps, ..StateMap::default() }]
    }

    /// Walls and cliffs are dark, goals and other letters are squares, and the agent is a disc.
    fn scene(&self, state: u32) -> Option<Scene> {
        let Map { cells, grid } = &self.map;
        let mut shapes: Vec<Shape> = Vec::new();
        for (cell, letter) in cells.iter().enumerate() {
            match letter {
                b'#' | b'C' => shapes.push(grid.square(grid.place(cell), 1.0, Ink::Joint)),
                b'G' => shapes.push(grid.square(grid.place(cell), 0.7, Ink::Goal)),
                b'S' | b'.' => {}
                _ => shapes.push(grid.square(grid.place(cell), 0.4, Ink::Limb)),
            }
        }
        shapes.push(grid.disc(grid.place(state as usize), 0.24, Ink::Body));
        Some(grid.scene(shapes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        text.parse::<GridWorld>().unwrap_err().to_string()
    }

    #[test]
    fn bad_maps_are_refused_in_one_line() {
        for (text, expected) in [
            ("S.G\n..", "map: expected 3 cells in row 2, as in row 1, got 2"),
            ("SxG", "map: row 1, column 2: expected S, G, C, #, . or a letter with a setting, got 'x'"),
            ("GG#", "map: expected a cell that is no goal, cliff or wall, got none"),
            ("", "map: expected a cell that is no goal, cliff or wall, got none"),
            (
                "stp = 1\nS.G",
                "map: expected a setting called step, goal, cliff, bump, wind, slip, moves or a letter other than S, G and C, got \"stp\"",
            ),
            ("step = much\nS.G", "map: step: expected a number, got \"much\""),
            ("slip = 1.5\nS.G", "map: slip: expected a probability from 0 to 1, got 1.5"),
            ("moves = 5\nS.G", "map: moves: expected 4 or 8, got \"5\""),
            ("wind = 01\nS.G", "map: wind: expected 3 digits, one for every column, got 2"),
            ("wind = 0x1\nS.G", "map: wind: expected one digit for every column, such as 0001221000, got \"0x1\""),
            (&".".repeat(65_537), "map: expected at most 65536 cells, got 65537"),
            (
                &[".".repeat(2000), "C".repeat(2000)].join("\n"),
                "map: expected at most 1048576 pairs of a cliff and a start, got 4000000; mark one start with S",
            ),
            ("A -> b = 1\nSAG", "map: A -> b: expected one cell b, got 0"),
            ("A -> b = 1\nSbG", "map: A: expected a cell A, because there is a setting for it, got none"),
            ("x = 1\nS.G", "map: x: expected a cell x, because there is a setting for it, got none"),
            ("step = 1\nstep = 2\nS.G", "map: expected every setting once, got step twice"),
            ("x = 1\nslip = 0\nx = 1\nSxG", "map: expected every setting once, got x twice"),
            ("A -> b = 1\nA  ->  c = 1\nSAbcG", "map: expected every setting once, got A -> twice"),
            ("goal = 1e39\nS.G", "map: goal: expected a number from -3.4e38 to 3.4e38, got 1e39"),
            ("A -> b = -1e300\nSAbG", "expected a number from -3.4e38 to 3.4e38, got -1e300"),
            (
                "A -> S = 1\nSAG",
                "map: expected a teleport between two letters other than S, G and C, such as A -> a = 10, got \"A -> S = 1\"",
            ),
        ] {
            assert!(error(text).contains(expected), "{}", error(text));
        }
    }

    /// Returns the shortest number of steps from the start to the goal.
    fn distance(world: &GridWorld) -> usize {
        let table = world.table();
        let start = table.starts().iter().position(|p| *p == 1.0).unwrap();
        let mut distances = vec![usize::MAX; table.states()];
        distances[start] = 0;
        let mut reached = std::collections::VecDeque::from([start]);
        while let Some(state) = reached.pop_front() {
            for action in 0..table.actions() {
                let outcome = table.outcomes(state, action)[0];
                if outcome.terminated {
                    return distances[state] + 1;
                }
                if distances[outcome.next as usize] == usize::MAX {
                    distances[outcome.next as usize] = distances[state] + 1;
                    reached.push_back(outcome.next as usize);
                }
            }
        }
        usize::MAX
    }

    /// The lengths that the textbook gives or that can be counted in its figures.
    #[test]
    fn shortest_paths_have_the_textbooks_lengths() {
        assert_eq!(distance(&GridWorld::dyna_maze()), 14, "figure 8.2");
        assert_eq!(distance(&GridWorld::windy()), 15, "example 6.5");
        let [right, left] = GridWorld::blocking_mazes();
        assert_eq!([distance(&right), distance(&left)], [10, 16], "example 8.2");
        let [left, both] = GridWorld::shortcut_mazes();
        assert_eq!([distance(&left), distance(&both)], [16, 10], "example 8.3");
    }

    /// Exercise 6.9: with moves to all eight neighbours the windy grid world takes 7 steps.
    #[test]
    fn kings_moves_are_faster_in_the_wind() {
        let map = "moves = 8\nwind = 0001112210\n..........\n..........\n..........\nS......G..\n..........\n..........\n..........";
        assert_eq!(distance(&map.parse().unwrap()), 7);
    }

    #[test]
    fn a_cliff_leads_back_and_ice_is_slippery() {
        let world: GridWorld = "slip = 0.2\ngoal = 5\nx = -3\n.x.\nSCG".parse().unwrap();
        // down from the middle of the upper row: into the cliff, or to one side
        let outcomes = world.table().outcomes(1, 2);
        let all: Vec<(f64, u32, f64)> = outcomes.iter().map(|o| (o.probability, o.next, o.reward)).collect();
        assert_eq!(all, [(0.1, 0, -1.0), (0.1, 2, -1.0), (0.8, 3, -100.0)]);
        // right from the start: the edge below, the cell above, and the cliff
        assert_eq!(world.table().outcomes(3, 1).iter().map(|o| o.next).collect::<Vec<_>>(), [3, 0, 3]);
        let to_goal = world.table().outcomes(2, 2)[0];
        assert!(to_goal.terminated && to_goal.reward == 5.0);
        assert_eq!(world.table().outcomes(0, 1)[0].reward, -3.0);
    }
}
