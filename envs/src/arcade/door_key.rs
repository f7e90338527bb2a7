//! A key, a door and a goal, seen from above.
//!
//! | | |
//! |---|---|
//! | actions | `Discrete(4)`: 0 up, 1 right, 2 down, 3 left |
//! | observations | an [`Image`] of 8 x 8 pixels with seven planes: walls, agent, key, locked door, open door, goal, and a plane that is full while the agent has the key |
//! | reward | 1 - 0.9 t / 640 at the goal after t steps, otherwise 0 (as MiniGrid's DoorKey-8x8) |
//! | start | a wall between two rooms with a locked door in it; the agent and the key are in the left room, the goal is in the lower right corner |
//! | end | terminated at the goal; the registered environment truncates after 640 steps |
//!
//! The agent takes the key by walking onto it, and opens the door by walking into it with the key. MiniGrid's agent has a direction, sees only what is in front of it,
//! and has actions of its own for the key and the door.

use super::{Plane, pixels, sprites};
use crate::episode_rng::{EpisodeRng, split_saved};
use crate::{Action, Env, EnvError, Image, Scene, Space, Step};

/// Rows and columns, walls included.
const SIZE: usize = 8;
/// Steps after which the registered environment truncates an episode.
pub const LIMIT: u32 = 10 * (SIZE * SIZE) as u32;

const PLANES: [Plane; 7] = [
    Plane { name: "wall", colour: [96, 102, 120], sprite: sprites::BRICK },
    Plane { name: "agent", colour: [240, 240, 245], sprite: sprites::PLAYER },
    Plane { name: "key", colour: [255, 209, 92], sprite: sprites::KEY },
    Plane { name: "locked door", colour: [226, 92, 77], sprite: sprites::DOOR },
    Plane { name: "open door", colour: [120, 200, 130], sprite: sprites::OPEN_DOOR },
    Plane { name: "goal", colour: [120, 200, 130], sprite: sprites::GOAL },
    Plane { name: "the agent has the key", colour: [255, 209, 92], sprite: [0; 8] },
];

/// Rows and columns of a cell.
type Cell = [u8; 2];

/// The environment.
#[derive(Clone, Debug)]
pub struct DoorKey {
    agent: Cell,
    /// Where the key is; the first cell, in a wall, if the agent has it.
    key: Cell,
    door: Cell,
    is_open: bool,
    steps: u32,
    rng: EpisodeRng,
}

impl Default for DoorKey {
    fn default() -> Self {
        Self::new(0)
    }
}

/// The lower right corner inside of the walls.
const GOAL: Cell = [SIZE as u8 - 2; 2];
/// Not a place where a key can be.
const TAKEN: Cell = [0; 2];

impl DoorKey {
    /// Begins the episode of a seed.
    pub fn new(seed: u64) -> Self {
        let mut rng = EpisodeRng::new(seed);
        let inside = SIZE as u32 - 2;
        let mut below = |n: u32| rng.stream.below(n) as u8;
        // both rooms have a column
        let door = [1 + below(inside), 2 + below(inside - 2)];
        let rooms = |below: &mut dyn FnMut(u32) -> u8| [1 + below(inside), 1 + below(u32::from(door[1]) - 1)];
        let agent = rooms(&mut below);
        let key = loop {
            let key = rooms(&mut below);
            if key != agent {
                break key;
            }
        };
        Self { agent, key, door, is_open: false, steps: 0, rng }
    }

    /// The image that an observation is.
    pub fn image() -> Image {
        Image { frames: 1, height: SIZE, width: SIZE, channels: PLANES.len(), largest: 1 }
    }

    fn is_wall(&self, [row, column]: Cell) -> bool {
        let is_edge = |i: u8| i == 0 || usize::from(i) == SIZE - 1;
        is_edge(row) || is_edge(column) || column == self.door[1] && row != self.door[0]
    }

    fn has_key(&self) -> bool {
        self.key == TAKEN
    }

    fn show(&self, observation: &mut [f32]) {
        observation.fill(0.0);
        let mut set = |[row, column]: Cell, plane: usize| {
            observation[(usize::from(row) * SIZE + usize::from(column)) * PLANES.len() + plane] = 1.0;
        };
        for cell in (0..SIZE as u8).flat_map(|row| (0..SIZE as u8).map(move |column| [row, column])) {
            if self.is_wall(cell) {
                set(cell, 0);
            }
            if self.has_key() {
                set(cell, 6);
            }
        }
        set(self.agent, 1);
        if !self.has_key() {
            set(self.key, 2);
        }
        set(self.door, if self.is_open { 4 } else { 3 });
        set(GOAL, 5);
    }
}

impl Env for DoorKey {
    fn observation_space(&self) -> Space {
        Space::Image(Self::image())
    }

    fn action_space(&self) -> Space {
        Space::Discrete(4)
    }

    fn reset(&mut self, seed: u64, observation: &mut [f32]) {
        *self = Self::new(seed);
        self.show(observation);
    }

    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        let [row, column] = self.agent;
        let to = match action {
            Action::Discrete(0) => [row - 1, column],
            Action::Discrete(1) => [row, column + 1],
            Action::Discrete(2) => [row + 1, column],
            Action::Discrete(3) => [row, column - 1],
            _ => panic!("DoorKey: expected an action from 0 to 3, got {action:?}"),
        };
        self.steps += 1;
        if to == self.door && !self.is_open {
            self.is_open = self.has_key();
        } else if !self.is_wall(to) {
            self.agent = to;
            if to == self.key {
                self.key = TAKEN;
            }
        }
        self.show(observation);
        let terminated = self.agent == GOAL;
        let reward = if terminated { 1.0 - 0.9 * f64::from(self.steps) / f64::from(LIMIT) } else { 0.0 };
        Step { reward, terminated, truncated: false }
    }

    fn save(&self) -> Vec<u64> {
        let cells = [self.agent, self.key, self.door].concat();
        let own = cells.into_iter().map(u64::from).chain([self.is_open.into(), self.steps.into()]);
        self.rng.save().into_iter().chain(own).collect()
    }

    fn load(&mut self, state: &[u64]) -> Result<(), EnvError> {
        let (rng, [y, x, key_y, key_x, door_y, door_x, is_open, steps]) = split_saved::<8>("DoorKey", state)?;
        let wrong = || EnvError::State(format!("DoorKey: expected cells inside of the walls, 0 or 1, and steps, got {state:?}"));
        let inside = |i: u64| u8::try_from(i).ok().filter(|i| (1..SIZE as u8 - 1).contains(i)).ok_or_else(wrong);
        let key = if [key_y, key_x] == [0, 0] { TAKEN } else { [inside(key_y)?, inside(key_x)?] };
        let (agent, door) = ([inside(y)?, inside(x)?], [inside(door_y)?, inside(door_x)?]);
        let steps = u32::try_from(steps).map_err(|_| wrong())?;
        let state = Self { agent, key, door, is_open: is_open == 1, steps, rng };
        if is_open > 1 || state.is_wall(agent) {
            return Err(wrong());
        }
        *self = state;
        Ok(())
    }

    fn render(&self) -> Option<Scene> {
        let mut observation = vec![0.0; Self::image().len()];
        self.show(&mut observation);
        Some(pixels::scene(&observation, SIZE, &PLANES))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashSet, VecDeque};

    use super::*;

    /// Every level can be solved, and only by way of the key and the door.
    #[test]
    fn every_level_can_be_solved() {
        for seed in 0..300 {
            let start = DoorKey::new(seed);
            let mut observation = vec![0.0; DoorKey::image().len()];
            let (mut seen, mut queue, mut lengths) = (HashSet::new(), VecDeque::from([(start.clone(), 0)]), None);
            while let Some((env, length)) = queue.pop_front() {
                for action in 0..4 {
                    let mut next = env.clone();
                    let step = next.step(Action::Discrete(action), &mut observation);
                    if step.terminated {
                        assert!(next.is_open && next.has_key() && step.reward == 1.0 - 0.9 * f64::from(length + 1) / 640.0);
                        lengths.get_or_insert(length + 1);
                    }
                    if seen.insert((next.agent, next.key, next.is_open)) {
                        queue.push_back((next, length + 1));
                    }
                }
            }
            let least = |a: Cell, b: Cell| u32::from(a[0].abs_diff(b[0])) + u32::from(a[1].abs_diff(b[1]));
            // to the key, to the door, one more step to open it, and to the goal
            let expected = least(start.agent, start.key) + least(start.key, start.door) + 1 + least(start.door, GOAL);
            assert_eq!(lengths, Some(expected), "seed {seed}: {start:?}");
        }
    }
}
