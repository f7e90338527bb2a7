//! The umbrella chain: an action whose effect comes late, among noise.

use super::scenes::{bar, disc, time_line, triangle, unit};
use super::{Draws, Each, Experiment};
use crate::scene::{Ink, Scene};

/// The forecast says whether an umbrella is needed; the first action takes one or not. The last reward says whether that was right; all rewards before are noise.
///
/// | | |
/// |---|---|
/// | actions | `Discrete(2)`: in the first step 1 takes the umbrella; later, nothing |
/// | observations | whether it is needed; whether it is there; the time that is left, from 1 to 0; numbers without meaning, 0 or 1 |
/// | reward | -1 or 1 at random; in the last step 1 if the umbrella is there exactly if it is needed, otherwise -1 |
/// | start | whether it is needed, and whether it is there, at random |
/// | end | terminated after as many steps as the chain is long |
#[derive(Clone, Debug)]
pub struct UmbrellaChain {
    length: i32,
    steps: i32,
    needed: i32,
    there: i32,
    others: Vec<i32>,
}

impl UmbrellaChain {
    /// A chain of this length, with this many numbers without meaning.
    pub fn new(length: usize, others: usize) -> Self {
        Self { length: length as i32, steps: 0, needed: 0, there: 0, others: vec![0; others] }
    }

    fn look(&mut self, draws: &mut dyn Draws) {
        self.others.iter_mut().for_each(|number| *number = draws.coin());
    }
}

impl Experiment for UmbrellaChain {
    fn observations(&self) -> (Vec<f32>, Vec<f32>) {
        let width = 3 + self.others.len();
        (vec![0.0; width], vec![1.0; width])
    }

    fn actions(&self) -> u32 {
        2
    }

    fn start(&mut self, draws: &mut dyn Draws) {
        self.steps = 0;
        self.needed = draws.coin();
        self.there = draws.coin();
        self.look(draws);
    }

    fn act(&mut self, action: i32, draws: &mut dyn Draws) -> (f64, bool) {
        self.steps += 1;
        if self.steps == 1 {
            self.there = action;
        }
        let is_over = self.steps == self.length;
        let reward = match is_over {
            true if self.there == self.needed => 1.0,
            true => -1.0,
            false => f64::from(2 * draws.coin() - 1),
        };
        self.look(draws);
        (reward, is_over)
    }

    fn show(&self, observation: &mut [f32]) {
        observation[0] = self.needed as f32;
        observation[1] = self.there as f32;
        observation[2] = (1.0 - f64::from(self.steps) / f64::from(self.length)) as f32;
        observation[3..].iter_mut().zip(&self.others).for_each(|(number, other)| *number = *other as f32);
    }

    fn visit(&mut self, each: Each<'_>) {
        each(&mut self.steps, 0..=self.length);
        each(&mut self.needed, 0..=1);
        each(&mut self.there, 0..=1);
        self.others.iter_mut().for_each(|number| each(number, 0..=1));
    }

    fn draw(&self) -> Scene {
        let mut shapes = time_line(0.0, self.length, self.steps);
        // the weather at the end: a cloud, or the sun
        if self.needed == 1 {
            shapes.extend([[0.93, 0.27], [1.0, 0.3], [1.06, 0.26]].map(|at| disc(at, 0.05, Ink::Joint)));
        } else {
            shapes.push(disc([1.0, 0.28], 0.06, Ink::Goal));
        }
        if self.there == 1 {
            let x = f64::from(self.steps) / f64::from(self.length);
            shapes.push(bar([x, 0.07], 0.008, 0.1, Ink::Limb));
            shapes.push(triangle([x, 0.13], 0.06, true, Ink::Limb));
        }
        unit(0.4, shapes)
    }

    fn copy(&self) -> Box<dyn Experiment> {
        Box::new(self.clone())
    }
}
