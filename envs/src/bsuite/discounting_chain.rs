//! The discounting chain: which of five rewards is worth waiting for.

use super::scenes::{disc, unit};
use super::{Draws, Each, Experiment};
use crate::scene::{Ink, Scene, Shape};

/// The steps after which the rewards come.
pub(super) const AFTER: [i32; 5] = [1, 3, 10, 30, 100];
const STEPS: i32 = 100;

/// The first action chooses a reward, which comes after 1, 3, 10, 30 or 100 steps. One of them is 1.1, the others are 1.
///
/// | | |
/// |---|---|
/// | actions | `Discrete(5)`: in the first step the reward; later, nothing |
/// | observations | the chosen reward from 0 to 4, or -1 before; the time from 0 to 1 |
/// | reward | 1 or 1.1, once |
/// | end | terminated after 100 steps |
#[derive(Clone, Debug)]
pub struct DiscountingChain {
    largest: i32,
    chosen: i32,
    steps: i32,
}

impl DiscountingChain {
    /// A chain whose reward of this number is the largest.
    pub fn new(largest: usize) -> Self {
        Self { largest: largest as i32, chosen: -1, steps: 0 }
    }
}

impl Experiment for DiscountingChain {
    fn observations(&self) -> (Vec<f32>, Vec<f32>) {
        (vec![-1.0, 0.0], vec![AFTER.len() as f32 - 1.0, 1.0])
    }

    fn actions(&self) -> u32 {
        AFTER.len() as u32
    }

    fn start(&mut self, _: &mut dyn Draws) {
        (self.chosen, self.steps) = (-1, 0);
    }

    fn act(&mut self, action: i32, _: &mut dyn Draws) -> (f64, bool) {
        if self.steps == 0 {
            self.chosen = action;
        }
        self.steps += 1;
        let reward = if self.chosen == self.largest { 1.1 } else { 1.0 };
        (if self.steps == AFTER[self.chosen as usize] { reward } else { 0.0 }, self.steps == STEPS)
    }

    fn show(&self, observation: &mut [f32]) {
        observation[0] = self.chosen as f32;
        observation[1] = (f64::from(self.steps) / f64::from(STEPS)) as f32;
    }

    fn visit(&mut self, each: Each<'_>) {
        each(&mut self.steps, 0..=STEPS);
        // nothing is chosen before the first step, and something after it
        let chosen = if self.steps == 0 { -1..=-1 } else { 0..=AFTER.len() as i32 - 1 };
        each(&mut self.chosen, chosen);
    }

    fn draw(&self) -> Scene {
        let height = |chain: usize| 0.1 * chain as f64;
        let mut shapes = Vec::new();
        for (chain, after) in AFTER.iter().enumerate() {
            let end = [f64::from(*after) / f64::from(STEPS), height(chain)];
            shapes.push(Shape::Line { from: [0.0, height(chain)], to: end, width: 0.01, ink: Ink::Ground });
            let is_largest = chain == self.largest as usize;
            shapes.push(disc(end, if is_largest { 0.03 } else { 0.015 }, if is_largest { Ink::Goal } else { Ink::Joint }));
        }
        // before the choice the agent stands in front of all chains
        let y = usize::try_from(self.chosen).map_or(height(AFTER.len() - 1) / 2.0, height);
        let x = if self.chosen < 0 { -0.06 } else { f64::from(self.steps) / f64::from(STEPS) };
        shapes.push(disc([x, y], 0.025, Ink::Body));
        unit(height(AFTER.len() - 1) + 0.08, shapes)
    }

    fn copy(&self) -> Box<dyn Experiment> {
        Box::new(self.clone())
    }
}
