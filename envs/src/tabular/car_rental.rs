//! Jack's car rental (Sutton and Barto, example 4.2): move cars between two places over night, to rent as many as possible by day.
//!
//! | | |
//! |---|---|
//! | actions | `Discrete(11)`: action a moves a - 5 cars from the first place to the second, at most as many as there are and as there is room for |
//! | observations | `Discrete(441)`: 21 x cars at the first place + cars at the second |
//! | reward | 10 for every car that is rented on the day, less 2 for every car moved in the night |
//! | start | ten cars at each place |
//! | end | never; the registered environment truncates after 100 days |
//!
//! By day, requests and returns at the two places are Poisson numbers with means 3 and 4, and 3 and 2. A request without a car is lost. Returned cars can be rented on the
//! next day. Cars above 20 disappear.

use std::sync::Arc;

use super::{Outcome, Table};
use crate::episode_rng::{EpisodeRng, split_saved};
use crate::{Action, Env, EnvError, Space, Step};
use gradus_base::random::Stream;

/// Most cars at a place, and most cars moved in a night.
const MOST: usize = 20;
const MOVED: usize = 5;
const SIDE: usize = MOST + 1;
const REQUESTS: [f64; 2] = [3.0, 4.0];
const RETURNS: [f64; 2] = [3.0, 2.0];
/// Numbers of requests and returns beyond this one have no probability that matters (below 1e-13), and count as this one.
const LARGEST: usize = 30;

/// Returns the probabilities of 0 to [`LARGEST`], which has all that is left.
fn poisson(mean: f64) -> [f64; LARGEST + 1] {
    // e^-mean as a series that has the same bits on every processor
    let first = 1.0 / (1..100).rev().fold(1.0, |sum, k| 1.0 + mean / f64::from(k) * sum);
    let mut all = [first; LARGEST + 1];
    (1..=LARGEST).for_each(|k| all[k] = all[k - 1] * mean / k as f64);
    all[LARGEST] = 1.0 - all[..LARGEST].iter().sum::<f64>();
    all
}

/// Returns the cars at both places after a night in which the action moved some, and their number.
fn after_night(state: usize, action: usize) -> ([usize; 2], usize) {
    let [first, second] = [state / SIDE, state % SIDE];
    if action >= MOVED {
        let moved = (action - MOVED).min(first).min(MOST - second);
        ([first - moved, second + moved], moved)
    } else {
        let moved = (MOVED - action).min(second).min(MOST - first);
        ([first + moved, second - moved], moved)
    }
}

/// The chances of a day at one place, for every number of cars in the morning: the probability of every number in the evening, and the mean number of rentals with each,
/// multiplied by this probability.
struct Day {
    evening: Vec<[f64; SIDE]>,
    rentals: Vec<[f64; SIDE]>,
}

impl Day {
    fn at(place: usize) -> Self {
        let (requests, returns) = (poisson(REQUESTS[place]), poisson(RETURNS[place]));
        let mut day = Self { evening: vec![[0.0; SIDE]; SIDE], rentals: vec![[0.0; SIDE]; SIDE] };
        for morning in 0..=MOST {
            for (asked, p) in requests.iter().enumerate() {
                let rented = asked.min(morning);
                for (back, q) in returns.iter().enumerate() {
                    let evening = (morning - rented + back).min(MOST);
                    day.evening[morning][evening] += p * q;
                    day.rentals[morning][evening] += p * q * rented as f64;
                }
            }
        }
        day
    }
}

/// Builds the table. The reward of an outcome is the mean over the days that lead to it, because the numbers of rentals on these days differ; all values are the same.
/// The table has two million outcomes.
pub fn car_rental() -> Table {
    let days = [0, 1].map(Day::at);
    let outcomes = |state: usize, action: usize| {
        let ([first, second], moved) = after_night(state, action);
        let mut all = Vec::with_capacity(SIDE * SIDE);
        for next_first in 0..SIDE {
            for next_second in 0..SIDE {
                let [p, q] = [days[0].evening[first][next_first], days[1].evening[second][next_second]];
                if p * q > 0.0 {
                    let rentals = days[0].rentals[first][next_first] / p + days[1].rentals[second][next_second] / q;
                    let (next, reward) = ((next_first * SIDE + next_second) as u32, 10.0 * rentals - 2.0 * moved as f64);
                    all.push(Outcome { probability: p * q, next, reward, terminated: false });
                }
            }
        }
        all
    };
    let pairs = (0..SIDE * SIDE).flat_map(|state| (0..=2 * MOVED).map(move |action| (state, action)));
    let starts = (0..SIDE * SIDE).map(|state| f64::from(u8::from(state == START))).collect();
    Table::new(2 * MOVED + 1, pairs.map(|(state, action)| outcomes(state, action)).collect(), starts)
        .expect("the rules above give distributions")
}

const START: usize = 10 * SIDE + 10;

/// The environment, which draws requests and returns.
///
/// ```
/// use gradus_envs::tabular::CarRental;
/// use gradus_envs::{Action, Env};
///
/// let (mut env, mut observation) = (CarRental::default(), [0.0]);
/// env.reset(7, &mut observation);
/// assert_eq!(observation, [220.0]); // 10 x 21 + 10
/// let step = env.step(Action::Discrete(7), &mut observation); // moves two cars for 4
/// assert_eq!((step.reward + 4.0) % 10.0, 0.0);
/// ```
#[derive(Clone, Debug)]
pub struct CarRental {
    state: usize,
    rng: EpisodeRng,
    chances: Arc<[[[f64; LARGEST + 1]; 2]; 2]>,
}

impl Default for CarRental {
    fn default() -> Self {
        let chances = [0, 1].map(|place| [poisson(REQUESTS[place]), poisson(RETURNS[place])]);
        Self { state: START, rng: EpisodeRng::new(0), chances: Arc::new(chances) }
    }
}

fn draw(chances: &[f64], stream: &mut Stream) -> usize {
    let mut left = stream.unit_f64();
    chances
        .iter()
        .position(|p| {
            left -= p;
            left < 0.0
        })
        .unwrap_or(LARGEST)
}

impl Env for CarRental {
    fn observation_space(&self) -> Space {
        Space::Discrete((SIDE * SIDE) as u32)
    }

    fn action_space(&self) -> Space {
        Space::Discrete(2 * MOVED as u32 + 1)
    }

    fn reset(&mut self, seed: u64, observation: &mut [f32]) {
        (self.rng, self.state) = (EpisodeRng::new(seed), START);
        observation[0] = START as f32;
    }

    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        assert!(self.action_space().contains(action), "expected an action of {}, got {action:?}", self.action_space());
        let Action::Discrete(action) = action else { unreachable!("a discrete space") };
        let (mut cars, moved) = after_night(self.state, action as usize);
        let mut reward = -2.0 * moved as f64;
        for (cars, [requests, returns]) in cars.iter_mut().zip(self.chances.iter()) {
            let rented = draw(requests, &mut self.rng.stream).min(*cars);
            *cars = (*cars - rented + draw(returns, &mut self.rng.stream)).min(MOST);
            reward += 10.0 * rented as f64;
        }
        self.state = cars[0] * SIDE + cars[1];
        observation[0] = self.state as f32;
        Step { reward, terminated: false, truncated: false }
    }

    fn save(&self) -> Vec<u64> {
        let [seed, position] = self.rng.save();
        vec![seed, position, self.state as u64]
    }

    fn load(&mut self, state: &[u64]) -> Result<(), EnvError> {
        let (rng, [state]) = split_saved("car rental", state)?;
        self.start_from(&[state as f64], &mut [0.0])?;
        self.rng = rng;
        Ok(())
    }

    fn start_from(&mut self, state: &[f64], observation: &mut [f32]) -> Result<(), EnvError> {
        let states = SIDE * SIDE;
        match state {
            [state] if (0.0..states as f64).contains(state) && state.fract() == 0.0 => {
                (self.rng, self.state) = (EpisodeRng::new(0), *state as usize);
                observation[0] = *state as f32;
                Ok(())
            }
            other => Err(EnvError::State(format!("expected one whole number below {states}, got {other:?}"))),
        }
    }

    fn reseed(&mut self, seed: u64) {
        self.rng = EpisodeRng::new(seed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn poisson_numbers_have_their_means() {
        for mean in [2.0, 3.0, 4.0] {
            let all = poisson(mean);
            let sum: f64 = all.iter().enumerate().map(|(k, p)| k as f64 * p).sum();
            assert!((sum - mean).abs() < 1e-10, "{sum}");
            assert!((all[0] - (-mean).exp()).abs() < 1e-15 && all[LARGEST] < 1e-13);
        }
    }

    /// Frequencies and mean rewards of drawn days against the table.
    #[test]
    fn drawn_days_follow_the_table() {
        let (table, mut env, mut observation) = (car_rental(), CarRental::default(), [0.0]);
        let (state, action, n) = (5 * SIDE + 12, 2, 40_000);
        let (mut counts, mut total) = (vec![0.0; SIDE * SIDE], 0.0);
        for seed in 0..n {
            env.start_from(&[state as f64], &mut observation).unwrap();
            env.reseed(seed);
            total += env.step(Action::Discrete(action), &mut observation).reward;
            counts[observation[0] as usize] += 1.0;
        }
        let outcomes = table.outcomes(state, action as usize);
        let mean: f64 = outcomes.iter().map(|o| o.probability * o.reward).sum();
        assert!((total / n as f64 - mean).abs() < 0.6, "{} {mean}", total / n as f64); // a standard error is 0.12
        let distance: f64 = outcomes.iter().map(|o| (counts[o.next as usize] / n as f64 - o.probability).abs()).sum();
        assert!(distance < 0.1, "{distance}");
    }
}
