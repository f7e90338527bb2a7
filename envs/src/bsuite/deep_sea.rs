//! The deep sea: a treasure that only a diver finds who goes to the right in every step.

use std::sync::Arc;

use super::scenes::{disc, field};
use super::{Draws, Each, Experiment};
use crate::scene::{Ink, Scene, Shape};
use gradus_base::random::{Purpose, Stream};

/// Each step is one down, and to the left or the right; which of two actions is which depends on the place. To the right costs a little, and only in the lower right corner is
/// there a reward.
///
/// | | |
/// |---|---|
/// | actions | `Discrete(2)`: one of them to the right, at each place another one |
/// | observations | a number for each place, row by row: 1 where the diver is, otherwise 0; all 0 at the end |
/// | reward | 1 for a step to the right in the last column; -0.01 / size for each step to the right |
/// | end | terminated after as many steps as the sea has rows |
///
/// In the stochastic sea a step to the right fails with probability 1 / size, and the rewards in the two lower corners have noise of variance 1.
#[derive(Clone, Debug)]
pub struct DeepSea {
    size: i32,
    is_stochastic: bool,
    /// For each place the action to the right.
    to_the_right: Arc<[i32]>,
    row: i32,
    column: i32,
}

/// The seed of the actions, as bsuite's.
const SEED: u64 = 42;
/// What all steps to the right cost together.
const COST: f64 = 0.01;

impl DeepSea {
    /// A sea with this many rows and columns.
    pub fn new(size: usize, is_stochastic: bool) -> Self {
        let mut stream = Stream::new(SEED, Purpose::Problem, size as u64);
        Self::with_actions(size, is_stochastic, (0..size * size).map(|_| stream.below(2) as i32).collect())
    }

    /// A sea with these actions to the right, 0 or 1 for each place.
    ///
    /// # Panics
    /// Unless there are `size` x `size` of them.
    pub fn with_actions(size: usize, is_stochastic: bool, to_the_right: Vec<i32>) -> Self {
        assert_eq!(to_the_right.len(), size * size, "DeepSea: expected an action for each place");
        Self { size: size as i32, is_stochastic, to_the_right: to_the_right.into(), row: 0, column: 0 }
    }

    fn place(&self) -> usize {
        (self.row * self.size + self.column) as usize
    }
}

impl Experiment for DeepSea {
    fn observations(&self) -> (Vec<f32>, Vec<f32>) {
        let places = self.to_the_right.len();
        (vec![0.0; places], vec![1.0; places])
    }

    fn actions(&self) -> u32 {
        2
    }

    fn start(&mut self, _: &mut dyn Draws) {
        (self.row, self.column) = (0, 0);
    }

    fn act(&mut self, action: i32, draws: &mut dyn Draws) -> (f64, bool) {
        let (last, mut reward) = (self.size - 1, 0.0);
        let is_right = action == self.to_the_right[self.place()];
        if is_right && self.column == last {
            reward += 1.0;
        }
        if self.is_stochastic && self.row == last && [0, last].contains(&self.column) {
            reward += draws.normal();
        }
        if is_right {
            if !self.is_stochastic || draws.unit() > 1.0 / f64::from(self.size) {
                self.column = (self.column + 1).min(last);
            }
            reward -= COST / f64::from(self.size);
        } else {
            self.column = (self.column - 1).max(0);
        }
        self.row += 1;
        (reward, self.row == self.size)
    }

    fn show(&self, observation: &mut [f32]) {
        if let Some(number) = observation.get_mut(self.place()) {
            *number = 1.0;
        }
    }

    fn visit(&mut self, each: Each<'_>) {
        // an episode that is over has left the sea
        each(&mut self.row, 0..=self.size);
        each(&mut self.column, 0..=self.size - 1);
    }

    fn draw(&self) -> Scene {
        let side = f64::from(self.size);
        let at = |row: i32, column: i32| [f64::from(column) + 0.5, side - f64::from(row) - 0.5];
        // the water that a diver can reach; the treasure; the diver
        let sea = vec![[0.0, side], [0.0, 0.0], [side, 0.0], [side, 1.0], [1.0, side]];
        let mut shapes = vec![Shape::Polygon { corners: sea, ink: Ink::Ground }, field(at(self.size - 1, self.size - 1), 0.8, Ink::Goal)];
        shapes.push(disc(at(self.row.min(self.size - 1), self.column), 0.4, Ink::Body));
        Scene { x: [0.0, side], y: [0.0, side], shapes }
    }

    fn copy(&self) -> Box<dyn Experiment> {
        Box::new(self.clone())
    }
}
