//! CartPole-v1, many at a time.
//!
//! The state lies in columns and the loop over environments has no branch, so the compiler turns the very function that
//! [`CartPole`](crate::CartPole) is made of into vector instructions, as wide as the processor has them. It never fuses or
//! reorders floating-point operations, so both give the same bits.

use crate::cartpole::{self, State, is_terminal, load_state, save_state, start, step_upright};
use crate::{Actions, Batch, Ending, EnvError, Space};

/// Environments that are stepped in one go: their columns stay in the first-level cache between the passes.
const BLOCK: usize = 64;

/// CartPole with its time limit, many at a time.
pub struct CartPoleBatch {
    /// Positions, velocities, angles, angular velocities; padded to whole blocks.
    columns: [Vec<f64>; 4],
    elapsed: Vec<u32>,
    limit: u32,
    len: usize,
}

impl CartPoleBatch {
    /// `len` copies, truncated after `limit` steps.
    pub fn new(len: usize, limit: u32) -> Self {
        let padded = len.next_multiple_of(BLOCK);
        Self { columns: std::array::from_fn(|_| vec![0.0; padded]), elapsed: vec![0; padded], limit, len }
    }

    fn state(&self, env: usize) -> State {
        std::array::from_fn(|i| self.columns[i][env])
    }

    fn set_state(&mut self, env: usize, state: State) {
        for (column, number) in self.columns.iter_mut().zip(state) {
            column[env] = number;
        }
    }
}

/// The part of the batch that one pass of the kernel works on.
struct Block<'a> {
    columns: [&'a mut [f64; BLOCK]; 4],
    elapsed: &'a mut [u32; BLOCK],
    limit: u32,
    actions: &'a [u32; BLOCK],
    rows: &'a mut [[f32; 4]; BLOCK],
    endings: &'a mut [u8; BLOCK],
}

impl Block<'_> {
    #[inline(always)]
    fn step(self) {
        let [x, x_dot, theta, theta_dot] = self.columns;
        for i in 0..BLOCK {
            let state = step_upright([x[i], x_dot[i], theta[i], theta_dot[i]], self.actions[i] == 1);
            [x[i], x_dot[i], theta[i], theta_dot[i]] = state;
        }
        for i in 0..BLOCK {
            self.elapsed[i] += 1;
            let terminated = is_terminal([x[i], x_dot[i], theta[i], theta_dot[i]]);
            self.endings[i] = u8::from(terminated) | u8::from(self.elapsed[i] >= self.limit) << 1;
        }
        for i in 0..BLOCK {
            self.rows[i] = [x[i] as f32, x_dot[i] as f32, theta[i] as f32, theta_dot[i] as f32];
        }
    }
}

#[allow(unsafe_code)]
mod dispatch {
    use super::Block;

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma")]
    fn avx512(block: Block<'_>) {
        block.step();
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    fn avx2(block: Block<'_>) {
        block.step();
    }

    /// Steps `block` with the widest vectors that the processor has.
    pub(super) fn step(block: Block<'_>) {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            if has!("avx512f") && has!("avx512dq") && has!("avx512vl") && has!("avx512bw") && has!("avx2") && has!("fma") {
                // SAFETY: the processor has every feature that the function was compiled for.
                return unsafe { avx512(block) };
            }
            if has!("avx2") && has!("fma") {
                // SAFETY: as above.
                return unsafe { avx2(block) };
            }
        }
        block.step();
    }
}

impl Batch for CartPoleBatch {
    fn len(&self) -> usize {
        self.len
    }

    fn observation_space(&self) -> Space {
        cartpole::observation_space()
    }

    fn action_space(&self) -> Space {
        cartpole::action_space()
    }

    fn reset(&mut self, env: usize, seed: u64, observation: &mut [f32]) {
        let state = start(seed);
        self.set_state(env, state);
        self.elapsed[env] = 0;
        observation.copy_from_slice(&state.map(|number| number as f32));
    }

    fn step(&mut self, actions: Actions<'_>, _finished: &[bool], observations: &mut [f32], rewards: &mut [f32], endings: &mut [Ending]) {
        let Actions::Discrete(actions) = actions else { panic!("CartPole: expected discrete actions") };
        rewards.fill(1.0);
        let (mut padded_actions, mut padded_rows, mut flags) = ([0; BLOCK], [[0.0; 4]; BLOCK], [0; BLOCK]);
        let (rows, _) = observations.as_chunks_mut::<4>();
        for begin in (0..self.len).step_by(BLOCK) {
            let n = BLOCK.min(self.len - begin);
            let [x, x_dot, theta, theta_dot] = &mut self.columns;
            let columns = [x, x_dot, theta, theta_dot].map(|column| block_mut(column, begin));
            let elapsed = block_mut(&mut self.elapsed, begin);
            let whole = (actions[begin..].first_chunk::<BLOCK>(), rows[begin..].first_chunk_mut::<BLOCK>());
            let endings = &mut endings[begin..begin + n];
            if let (Some(actions), Some(rows)) = whole {
                dispatch::step(Block { columns, elapsed, limit: self.limit, actions, rows, endings: &mut flags });
            } else {
                padded_actions[..n].copy_from_slice(&actions[begin..begin + n]);
                dispatch::step(Block {
                    columns,
                    elapsed,
                    limit: self.limit,
                    actions: &padded_actions,
                    rows: &mut padded_rows,
                    endings: &mut flags,
                });
                rows[begin..begin + n].copy_from_slice(&padded_rows[..n]);
            }
            for (ending, flag) in endings.iter_mut().zip(flags) {
                *ending = Ending::new(flag & 1 != 0, flag & 2 != 0);
            }
        }
    }

    fn save(&self, env: usize) -> Vec<u64> {
        let mut state = save_state(self.state(env));
        state.push(u64::from(self.elapsed[env]));
        state
    }

    fn load(&mut self, env: usize, state: &[u64]) -> Result<(), EnvError> {
        let (elapsed, state) = state.split_last().ok_or_else(|| EnvError::State("CartPole: expected 5 numbers, got none".into()))?;
        let within = u32::try_from(*elapsed).ok().filter(|elapsed| *elapsed <= self.limit);
        let within = within.ok_or_else(|| EnvError::State(format!("elapsed steps: expected at most {}, got {elapsed}", self.limit)))?;
        self.set_state(env, load_state(state)?);
        self.elapsed[env] = within;
        Ok(())
    }
}

fn block_mut<T>(column: &mut [T], begin: usize) -> &mut [T; BLOCK] {
    column[begin..].first_chunk_mut().expect("columns are padded to whole blocks")
}
