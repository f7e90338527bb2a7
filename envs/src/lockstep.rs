//! The bookkeeping of a vector of environments in each step, compiled to vector instructions.

use crate::{Actions, Ending, Space, Starts};
use gradus_base::random::episode_seed_inline;
use gradus_base::simd::{Kernel, Level, Simd, dispatch};

/// The exponent bits of an f32. All of them are 1 in NaN and the infinities, and in no other number.
const EXPONENT: u32 = 0x7F80_0000;

/// Returns the instruction set for `envs` environments. With few environments, detecting the processor's features would take longer than
/// the computation.
fn level(envs: usize) -> Level {
    if envs < 32 { Level::Portable } else { Level::best() }
}

/// Whether every action belongs to `space`.
pub(crate) fn are_allowed(space: &Space, actions: Actions<'_>) -> bool {
    let mut outcome = false;
    dispatch(level(actions.len()), AreAllowed { space, actions, outcome: &mut outcome });
    outcome
}

struct AreAllowed<'a> {
    space: &'a Space,
    actions: Actions<'a>,
    outcome: &'a mut bool,
}

impl Kernel for AreAllowed<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        *self.outcome = match (self.space, self.actions) {
            (Space::Discrete(n), Actions::Discrete(actions)) => {
                let mut are_all = true;
                for action in actions {
                    are_all &= action < n;
                }
                are_all
            }
            (space @ Space::MultiDiscrete(_), Actions::Discrete(actions)) => {
                let n = space.elements().unwrap_or(0);
                actions.iter().all(|action| *action < n)
            }
            (Space::Box { low, high }, Actions::Continuous { rows, width }) if width == low.len() => {
                let mut are_all = true;
                if let ([low], [high]) = (low.as_slice(), high.as_slice()) {
                    for number in rows {
                        are_all &= (low <= number) & (number <= high);
                    }
                } else {
                    for row in rows.chunks_exact(width.max(1)) {
                        for (number, (low, high)) in row.iter().zip(low.iter().zip(high)) {
                            are_all &= (low <= number) & (number <= high);
                        }
                    }
                }
                are_all
            }
            _ => false,
        };
    }
}

/// Computes the seeds of the next episodes of some environments of a vector.
pub(crate) struct Seeds<'a> {
    pub starts: Starts,
    /// Index in the run of the vector's first environment.
    pub first: usize,
    pub envs: &'a [usize],
    /// Number of episodes that each environment of the vector has begun.
    pub episodes: &'a [u64],
    /// Output: the seeds.
    pub seeds: &'a mut Vec<u64>,
}

impl Seeds<'_> {
    pub(crate) fn take(self) {
        dispatch(Level::best(), self);
    }
}

impl Kernel for Seeds<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        const LANES: usize = 8;
        self.seeds.clear();
        for envs in self.envs.chunks(LANES) {
            let (mut groups, mut episodes, mut seeds) = ([0; LANES], [0; LANES], [0; LANES]);
            for (lane, env) in envs.iter().enumerate() {
                groups[lane] = self.starts.group_of(self.first + env) as u64;
                episodes[lane] = self.episodes[*env];
            }
            for lane in 0..LANES {
                seeds[lane] = episode_seed_inline(self.starts.seed, groups[lane], episodes[lane]);
            }
            self.seeds.extend_from_slice(&seeds[..envs.len()]);
        }
    }
}

/// Adds a step to the length and to the return of every episode. Finds the finished episodes, and checks that all numbers are finite.
pub(crate) struct Tally<'a> {
    pub observations: &'a [f32],
    pub rewards: &'a [f32],
    pub endings: &'a [Ending],
    pub lengths: &'a mut [u32],
    pub returns: &'a mut [f64],
    /// Output: the environments with finished episodes.
    pub done: &'a mut Vec<usize>,
    /// Output: whether every observation and reward is finite.
    pub are_finite: &'a mut bool,
}

impl Tally<'_> {
    pub(crate) fn take(self) {
        dispatch(level(self.endings.len()), self);
    }
}

impl Kernel for Tally<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        for length in self.lengths {
            *length = length.wrapping_add(1);
        }
        for (sum, reward) in self.returns.iter_mut().zip(self.rewards) {
            *sum += f64::from(*reward);
        }
        // two plain loops without branches, which the compiler can vectorise
        let mut any = false;
        for number in self.rewards {
            any |= number.to_bits() & EXPONENT == EXPONENT;
        }
        for number in self.observations {
            any |= number.to_bits() & EXPONENT == EXPONENT;
        }
        *self.are_finite = !any;
        self.done.clear();
        let (chunks, rest) = self.endings.as_chunks::<8>();
        for (i, chunk) in chunks.iter().enumerate() {
            let mut any = false;
            for ending in chunk {
                any |= ending.done();
            }
            if any {
                for (lane, ending) in chunk.iter().enumerate() {
                    if ending.done() {
                        self.done.push(8 * i + lane);
                    }
                }
            }
        }
        for (lane, ending) in rest.iter().enumerate() {
            if ending.done() {
                self.done.push(8 * chunks.len() + lane);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of environments lie on both sides of the threshold in [`level`]. The wrong action is put at every index.
    #[test]
    fn a_wrong_action_is_found_at_any_index() {
        let one = Space::Box { low: vec![-1.0], high: vec![2.0] };
        let two = Space::Box { low: vec![-1.0, 0.0], high: vec![2.0, 5.0] };
        for n in [1, 31, 32, 77] {
            assert!(are_allowed(&Space::Discrete(3), Actions::Discrete(&vec![2; n])));
            assert!(!are_allowed(&one, Actions::Discrete(&vec![2; n])));
            assert!(!are_allowed(&two, Actions::Continuous { rows: &vec![1.0; n], width: 1 }));
            for wrong in 0..n {
                let mut actions = vec![2; n];
                actions[wrong] = 3;
                assert!(!are_allowed(&Space::Discrete(3), Actions::Discrete(&actions)), "{wrong} of {n}");
                for (value, allowed) in [(-1.0, true), (2.0, true), (-1.001, false), (2.001, false), (f32::NAN, false)] {
                    let mut rows = vec![0.5; n];
                    rows[wrong] = value;
                    assert_eq!(are_allowed(&one, Actions::Continuous { rows: &rows, width: 1 }), allowed, "{value}, {wrong} of {n}");
                    let mut rows = vec![0.5; 2 * n];
                    rows[2 * wrong] = value;
                    assert_eq!(are_allowed(&two, Actions::Continuous { rows: &rows, width: 2 }), allowed, "{value}, {wrong} of {n}");
                }
            }
        }
    }

    #[test]
    fn finished_episodes_and_non_finite_numbers_are_found() {
        for n in [1, 8, 31, 32, 77] {
            for at in 0..n {
                for (reward, number, finite) in [(1.0, 2.0, true), (f32::NAN, 2.0, false), (1.0, f32::NEG_INFINITY, false)] {
                    let (mut observations, mut rewards, mut endings) = (vec![0.5; 3 * n], vec![0.25; n], vec![Ending::Running; n]);
                    (observations[3 * at + 2], rewards[at], endings[at]) = (number, reward, Ending::Truncated);
                    endings[n - 1] = Ending::Terminated;
                    let (mut lengths, mut returns, mut done, mut are_finite) = (vec![u32::MAX; n], vec![4.0; n], vec![9], !finite);
                    let tally = Tally {
                        observations: &observations,
                        rewards: &rewards,
                        endings: &endings,
                        lengths: &mut lengths,
                        returns: &mut returns,
                        done: &mut done,
                        are_finite: &mut are_finite,
                    };
                    tally.take();
                    let mut expected = vec![at, n - 1];
                    expected.dedup();
                    assert_eq!((done, are_finite, lengths), (expected, finite, vec![0; n]), "{at} of {n}");
                    assert!(returns.iter().zip(&rewards).all(|(sum, reward)| sum.is_nan() || *sum == 4.0 + f64::from(*reward)));
                }
            }
        }
    }
}
