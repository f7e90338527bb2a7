//! Catch: a ball falls, and a paddle must be under it.

use super::scenes::{bar, disc, field};
use super::{Draws, Each, Experiment};
use crate::scene::{Ink, Scene};

const ROWS: i32 = 10;
const COLUMNS: i32 = 5;

/// A ball falls straight down; the paddle in the last row catches it or not.
///
/// | | |
/// |---|---|
/// | actions | `Discrete(3)`: 0 left, 1 stay, 2 right |
/// | observations | a number for each of 10 x 5 places, row by row: 1 where the ball or the paddle is |
/// | reward | at the end 1 if the paddle is where the ball is, otherwise -1 |
/// | start | the ball in a random column of the first row, the paddle in the middle |
/// | end | terminated when the ball reaches the last row, after 9 steps |
#[derive(Clone, Debug, Default)]
pub struct Catch {
    /// Row and column.
    ball: [i32; 2],
    paddle: i32,
}

impl Experiment for Catch {
    fn observations(&self) -> (Vec<f32>, Vec<f32>) {
        let places = (ROWS * COLUMNS) as usize;
        (vec![0.0; places], vec![1.0; places])
    }

    fn actions(&self) -> u32 {
        3
    }

    fn start(&mut self, draws: &mut dyn Draws) {
        *self = Self { ball: [0, draws.below(COLUMNS as u32) as i32], paddle: COLUMNS / 2 };
    }

    fn act(&mut self, action: i32, _: &mut dyn Draws) -> (f64, bool) {
        self.paddle = (self.paddle + action - 1).clamp(0, COLUMNS - 1);
        self.ball[0] += 1;
        if self.ball[0] < ROWS - 1 {
            return (0.0, false);
        }
        (if self.ball[1] == self.paddle { 1.0 } else { -1.0 }, true)
    }

    fn show(&self, observation: &mut [f32]) {
        let mut set = |row: i32, column: i32| observation[(row * COLUMNS + column) as usize] = 1.0;
        set(self.ball[0], self.ball[1]);
        set(ROWS - 1, self.paddle);
    }

    fn visit(&mut self, each: Each<'_>) {
        each(&mut self.ball[0], 0..=ROWS - 1);
        each(&mut self.ball[1], 0..=COLUMNS - 1);
        each(&mut self.paddle, 0..=COLUMNS - 1);
    }

    fn draw(&self) -> Scene {
        let at = |row: i32, column: i32| [f64::from(column) + 0.5, f64::from(ROWS - row) - 0.5];
        let mut shapes = Vec::new();
        for row in 0..ROWS {
            shapes.extend((0..COLUMNS).map(|column| field(at(row, column), 0.9, Ink::Ground)));
        }
        shapes.push(disc(at(self.ball[0], self.ball[1]), 0.35, Ink::Goal));
        shapes.push(bar(at(ROWS - 1, self.paddle), 0.9, 0.35, Ink::Body));
        Scene { x: [0.0, f64::from(COLUMNS)], y: [0.0, f64::from(ROWS)], shapes }
    }

    fn copy(&self) -> Box<dyn Experiment> {
        Box::new(self.clone())
    }
}
