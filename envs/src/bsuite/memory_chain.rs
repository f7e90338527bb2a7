//! The memory chain: say at the end what was seen at the beginning.

use super::scenes::{disc, time_line, triangle, unit};
use super::{Draws, Each, Experiment};
use crate::scene::{Ink, Scene};

/// The first two observations show some bits as -1 and 1, the last but one which of them is asked for; the action of the last step is the answer.
///
/// | | |
/// |---|---|
/// | actions | `Discrete(2)`: the answer 0 or 1 in the last step; before, nothing |
/// | observations | the time that is left, from 1 to 0; the number of the bit that is asked for, or 0; the bits, or zeros |
/// | reward | 1 for the right answer, -1 for the wrong one |
/// | end | terminated by the answer, after one step more than the length |
#[derive(Clone, Debug)]
pub struct MemoryChain {
    length: i32,
    steps: i32,
    bits: Vec<i32>,
    asked: i32,
}

impl MemoryChain {
    /// A chain of this length, with this many bits.
    pub fn new(length: usize, bits: usize) -> Self {
        Self { length: length as i32, steps: 0, bits: vec![0; bits], asked: 0 }
    }
}

impl Experiment for MemoryChain {
    fn observations(&self) -> (Vec<f32>, Vec<f32>) {
        let last = self.bits.len().saturating_sub(1) as f32;
        let bits = self.bits.len();
        ([vec![0.0, 0.0], vec![-1.0; bits]].concat(), [vec![1.0, last], vec![1.0; bits]].concat())
    }

    fn actions(&self) -> u32 {
        2
    }

    fn start(&mut self, draws: &mut dyn Draws) {
        self.steps = 0;
        self.bits.iter_mut().for_each(|bit| *bit = draws.coin());
        self.asked = draws.below(self.bits.len() as u32) as i32;
    }

    fn act(&mut self, action: i32, _: &mut dyn Draws) -> (f64, bool) {
        self.steps += 1;
        if self.steps <= self.length {
            return (0.0, false);
        }
        (if action == self.bits[self.asked as usize] { 1.0 } else { -1.0 }, true)
    }

    fn show(&self, observation: &mut [f32]) {
        // the beginning is seen twice
        let time = (self.steps - 1).max(0);
        observation[0] = (1.0 - f64::from(time) / f64::from(self.length)) as f32;
        if time == self.length - 1 {
            observation[1] = self.asked as f32;
        }
        if time == 0 {
            observation[2..].iter_mut().zip(&self.bits).for_each(|(number, bit)| *number = (2 * bit - 1) as f32);
        }
    }

    fn visit(&mut self, each: Each<'_>) {
        each(&mut self.steps, 0..=self.length + 1);
        self.bits.iter_mut().for_each(|bit| each(bit, 0..=1));
        each(&mut self.asked, 0..=self.bits.len() as i32 - 1);
    }

    fn draw(&self) -> Scene {
        let mut shapes = time_line(0.0, self.length, self.steps);
        // the bits point up for 1, and are full while they are seen; over the one that is asked for is a dot
        let (count, is_seen) = (self.bits.len().max(1), self.steps <= 1);
        let size = (0.3 / count as f64).min(0.06);
        for (place, bit) in self.bits.iter().enumerate() {
            let at = [(place as f64 + 0.5) / count as f64, 0.2];
            shapes.push(triangle(at, size, *bit == 1, if is_seen { Ink::Goal } else { Ink::Ground }));
            if self.steps >= self.length && place == self.asked as usize {
                shapes.push(disc([at[0], 0.32], 0.02, Ink::Body));
            }
        }
        unit(0.4, shapes)
    }

    fn copy(&self) -> Box<dyn Experiment> {
        Box::new(self.clone())
    }
}
