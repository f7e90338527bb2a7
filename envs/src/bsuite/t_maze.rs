//! The T-maze: a sign at the beginning of a corridor says where to turn at its end.

use super::scenes::{disc, triangle};
use super::{Draws, Each, Experiment};
use crate::scene::{Ink, Scene, Shape};

const UP: i32 = 0;
const RIGHT: i32 = 1;
const DOWN: i32 = 2;

/// A corridor with a turn up and one down at its end (Bakker, NIPS 14, 2001, section 4.1). Only the first place shows which one is right.
///
/// | | |
/// |---|---|
/// | actions | `Discrete(4)`: 0 up, 1 right, 2 down, 3 left |
/// | observations | three numbers, 0 or 1: 0 1 1 at the beginning if the right turn is up, 1 1 0 if it is down; 1 0 1 in the corridor; 0 1 0 at the turn |
/// | reward | 4 for the right turn, -0.1 for the wrong one and for each step against a wall, otherwise 0 |
/// | start | the right turn up or down, at random |
/// | end | terminated by a turn; the registered environments truncate after 10 times the length, and 10 steps more |
#[derive(Clone, Debug)]
pub struct TMaze {
    /// Places from the first one to the turn.
    length: i32,
    place: i32,
    is_up: i32,
}

impl TMaze {
    /// A corridor of this length.
    pub fn new(length: usize) -> Self {
        Self { length: length as i32, place: 0, is_up: 0 }
    }
}

/// What the wrong turn and a wall cost.
const COST: f64 = -0.1;

impl Experiment for TMaze {
    fn observations(&self) -> (Vec<f32>, Vec<f32>) {
        (vec![0.0; 3], vec![1.0; 3])
    }

    fn actions(&self) -> u32 {
        4
    }

    fn start(&mut self, draws: &mut dyn Draws) {
        (self.place, self.is_up) = (0, draws.coin());
    }

    fn act(&mut self, action: i32, _: &mut dyn Draws) -> (f64, bool) {
        if self.place == self.length && [UP, DOWN].contains(&action) {
            let is_right = (action == UP) == (self.is_up == 1);
            return (if is_right { 4.0 } else { COST }, true);
        }
        let before = self.place;
        self.place = match action {
            RIGHT => (before + 1).min(self.length),
            UP | DOWN => before,
            _ => (before - 1).max(0),
        };
        (if self.place == before { COST } else { 0.0 }, false)
    }

    fn show(&self, observation: &mut [f32]) {
        let seen = match self.place {
            0 if self.is_up == 1 => [0.0, 1.0, 1.0],
            0 => [1.0, 1.0, 0.0],
            place if place == self.length => [0.0, 1.0, 0.0],
            _ => [1.0, 0.0, 1.0],
        };
        observation.copy_from_slice(&seen);
    }

    fn visit(&mut self, each: Each<'_>) {
        each(&mut self.place, 0..=self.length);
        each(&mut self.is_up, 0..=1);
    }

    fn draw(&self) -> Scene {
        let end = f64::from(self.length);
        // long corridors are drawn shorter
        let width = end.min(12.0);
        let x = |place: i32| f64::from(place) * width / end;
        let wall = |from: [f64; 2], to: [f64; 2]| Shape::Line { from, to, width: 0.9, ink: Ink::Ground };
        let mut shapes = vec![wall([0.0, 0.0], [width, 0.0]), wall([width, -1.0], [width, 1.0])];
        // the sign, which is seen from the first place, and the turn that it means
        shapes.push(triangle([-0.9, 0.0], 0.25, self.is_up == 1, if self.place == 0 { Ink::Limb } else { Ink::Joint }));
        shapes.push(disc([width, if self.is_up == 1 { 1.0 } else { -1.0 }], 0.25, Ink::Goal));
        shapes.push(disc([x(self.place), 0.0], 0.3, Ink::Body));
        Scene { x: [-1.4, width + 0.7], y: [-1.7, 1.7], shapes }
    }

    fn copy(&self) -> Box<dyn Experiment> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_base::random::{Purpose, Stream};

    #[test]
    fn the_sign_is_shown_once_and_decides() {
        let mut stream = Stream::new(1, Purpose::Environment, 0);
        let mut signs = [0; 2];
        for _ in 0..100 {
            let mut maze = TMaze::new(2);
            maze.start(&mut stream);
            let mut seen = [0.0; 3];
            maze.show(&mut seen);
            let is_up = seen == [0.0, 1.0, 1.0];
            assert!(is_up || seen == [1.0, 1.0, 0.0]);
            signs[usize::from(is_up)] += 1;
            // into a wall, forward, back and forward again
            assert_eq!(
                [UP, RIGHT, 3, 3, RIGHT].map(|action| maze.act(action, &mut stream)),
                [(COST, false), (0.0, false), (0.0, false), (COST, false), (0.0, false)]
            );
            maze.show(&mut seen);
            assert_eq!(seen, [1.0, 0.0, 1.0]);
            assert_eq!([DOWN, RIGHT, RIGHT].map(|action| maze.act(action, &mut stream).0), [COST, 0.0, COST]);
            maze.show(&mut seen);
            assert_eq!(seen, [0.0, 1.0, 0.0]);
            let turn = signs[0] % 2;
            let reward = if (turn == UP) == is_up { 4.0 } else { COST };
            assert_eq!(maze.act(if turn == UP { UP } else { DOWN }, &mut stream), (reward, true));
        }
        assert!(signs.iter().all(|sign| *sign > 30), "{signs:?}");
    }
}
