//! Many copies of a classic task, with their states stored in columns.
#![allow(clippy::needless_range_loop)] // the compiler vectorises plain loops over lanes

use std::marker::PhantomData;

use crate::columns::{Columnar, Number, Shown, reset};
use crate::{Actions, Batch, Ending, Env, EnvError, Space, TimeLimit};
use gradus_base::random::first_units;
use gradus_base::simd::{Kernel, Level, Simd, dispatch, of_lane};

/// Environments per wide block. The compiler does not unroll loops over this many lanes, and a block fits in the first-level cache.
const WIDE: usize = 64;
/// Environments per narrow block. One AVX-512 vector holds this many f64.
const NARROW: usize = 8;

/// The states of `L` environments, and the elapsed steps of their episodes.
#[derive(Clone)]
struct Block<const N: usize, const L: usize> {
    state: [[f64; L]; N],
    elapsed: [u32; L],
}

impl<const N: usize, const L: usize> Block<N, L> {
    fn many(count: usize) -> Vec<Self> {
        vec![Self { state: [[0.0; L]; N], elapsed: [0; L] }; count]
    }

    #[inline(always)]
    fn get(&self, lane: usize) -> [f64; N] {
        of_lane(&self.state, lane)
    }

    #[inline(always)]
    fn set(&mut self, lane: usize, state: [f64; N]) {
        for i in 0..N {
            self.state[i][lane] = state[i];
        }
    }
}

/// All environments: as many wide blocks as they fill, and narrow blocks for the remainder.
struct Blocks<const N: usize> {
    wide: Vec<Block<N, WIDE>>,
    narrow: Vec<Block<N, NARROW>>,
}

impl<const N: usize> Blocks<N> {
    fn get(&self, env: usize) -> ([f64; N], u32) {
        match self.wide.get(env / WIDE) {
            Some(block) => (block.get(env % WIDE), block.elapsed[env % WIDE]),
            None => {
                let (block, lane) = (&self.narrow[env % WIDE / NARROW], env % NARROW);
                (block.get(lane), block.elapsed[lane])
            }
        }
    }

    #[inline(always)]
    fn set(&mut self, env: usize, state: [f64; N], elapsed: u32) {
        match self.wide.get_mut(env / WIDE) {
            Some(block) => {
                block.set(env % WIDE, state);
                block.elapsed[env % WIDE] = elapsed;
            }
            None => {
                let (block, lane) = (&mut self.narrow[env % WIDE / NARROW], env % NARROW);
                block.set(lane, state);
                block.elapsed[lane] = elapsed;
            }
        }
    }
}

/// Many copies of a classic task with its time limit.
pub struct ColumnBatch<T, const N: usize, const W: usize> {
    /// An environment that holds the task's parameters. Its state has no meaning: `reset` overwrites it.
    one: T,
    blocks: Blocks<N>,
    limit: u32,
    len: usize,
    level: Level,
}

impl<T: Columnar<N, W>, const N: usize, const W: usize> ColumnBatch<T, N, W> {
    /// Creates `len` copies of `one`, with episodes truncated after `limit` steps.
    ///
    /// # Panics
    /// If `limit` is 0.
    pub fn of(one: T, len: usize, limit: u32) -> Self {
        assert!(limit > 0, "time limit: expected at least 1 step, got 0");
        let blocks = Blocks { wide: Block::many(len / WIDE), narrow: Block::many((len % WIDE).div_ceil(NARROW)) };
        Self { one, blocks, limit, len, level: Level::best() }
    }
}

impl<T: Columnar<N, W> + Default, const N: usize, const W: usize> ColumnBatch<T, N, W> {
    /// Creates `len` default copies, with episodes truncated after `limit` steps.
    ///
    /// # Panics
    /// If `limit` is 0.
    pub fn new(len: usize, limit: u32) -> Self {
        Self::of(T::default(), len, limit)
    }
}

/// The inputs and outputs of one step of several environments.
struct Slices<'a, A, const W: usize> {
    actions: &'a [A],
    finished: &'a [bool],
    rows: &'a mut [[f32; W]],
    rewards: &'a mut [f32],
    endings: &'a mut [Ending],
}

impl<'a, A, const W: usize> Slices<'a, A, W> {
    /// Splits the slices after the first `n` environments.
    #[inline(always)]
    fn split_at(self, n: usize) -> (Self, Self) {
        let ((actions, more_actions), (finished, more_finished)) = (self.actions.split_at(n), self.finished.split_at(n));
        let (rows, more_rows) = self.rows.split_at_mut(n);
        let (rewards, more_rewards) = self.rewards.split_at_mut(n);
        let (endings, more_endings) = self.endings.split_at_mut(n);
        let more = Slices { actions: more_actions, finished: more_finished, rows: more_rows, rewards: more_rewards, endings: more_endings };
        (Slices { actions, finished, rows, rewards, endings }, more)
    }
}

/// Steps all copies that are not finished.
struct StepAll<'a, T: Columnar<N, W>, const N: usize, const W: usize> {
    one: &'a T,
    blocks: &'a mut Blocks<N>,
    limit: u32,
    slices: Slices<'a, T::Action, W>,
}

impl<T: Columnar<N, W>, const N: usize, const W: usize> Kernel for StepAll<'_, T, N, W> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self { one, blocks: Blocks { wide, narrow }, limit, slices } = self;
        let (first, mut rest) = slices.split_at(wide.len() * WIDE);
        let Slices { actions, finished, rows, rewards, endings } = first;
        let (actions, finished) = (actions.as_chunks().0.iter(), finished.as_chunks().0);
        let (rows, rewards, endings) = (rows.as_chunks_mut().0, rewards.as_chunks_mut().0, endings.as_chunks_mut().0);
        let out = rows.iter_mut().zip(rewards).zip(endings);
        for ((block, (actions, finished)), ((rows, rewards), endings)) in wide.iter_mut().zip(actions.zip(finished)).zip(out) {
            step_block(one, block, limit, actions, finished, rows, rewards, endings);
        }

        // every narrow block is copied, not only the last one, so that a step is compiled twice and not three times
        for block in narrow {
            let n = rest.actions.len().min(NARROW);
            let (some, more) = rest.split_at(n);
            let (mut actions, mut finished) = ([T::Action::default(); NARROW], [true; NARROW]);
            let (mut rows, mut rewards, mut endings) = ([[0.0; W]; NARROW], [0.0; NARROW], [Ending::Running; NARROW]);
            actions[..n].copy_from_slice(some.actions);
            finished[..n].copy_from_slice(some.finished);
            step_block(one, block, limit, &actions, &finished, &mut rows, &mut rewards, &mut endings);
            some.rows.copy_from_slice(&rows[..n]);
            some.rewards.copy_from_slice(&rewards[..n]);
            some.endings.copy_from_slice(&endings[..n]);
            rest = more;
        }
    }
}

#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn step_block<T: Columnar<N, W>, const N: usize, const W: usize, const L: usize>(
    one: &T,
    block: &mut Block<N, L>,
    limit: u32,
    actions: &[T::Action; L],
    finished: &[bool; L],
    rows: &mut [[f32; W]; L],
    rewards: &mut [f32; L],
    endings: &mut [Ending; L],
) {
    let mut any = false;
    for lane in 0..L {
        any |= finished[lane];
    }
    let standing = if any { Some(block.clone()) } else { None };
    let Block { state, elapsed } = block;
    let mut costs = [0.0; L];
    for lane in 0..L {
        let (next, cost) = one.advance(of_lane(state, lane), actions[lane]);
        for i in 0..N {
            state[i][lane] = next[i];
        }
        costs[lane] = cost;
    }
    if T::SETTLES {
        for lane in 0..L {
            let settled = T::settle(of_lane(state, lane));
            for i in 0..N {
                state[i][lane] = settled[i];
            }
        }
    }
    // local arrays: the compiler knows that they do not alias
    let (mut columns, mut paid, mut flags) = ([[0.0; L]; W], [0.0; L], [0; L]);
    for lane in 0..L {
        let Shown { row, reward, terminated } = T::show(of_lane(state, lane), costs[lane]);
        for i in 0..W {
            columns[i][lane] = row[i];
        }
        paid[lane] = reward as f32;
        flags[lane] = u8::from(terminated);
    }
    *rewards = paid;
    for lane in 0..L {
        elapsed[lane] += 1;
        flags[lane] |= u8::from(elapsed[lane] >= limit) << 1;
    }
    for lane in 0..L {
        rows[lane] = of_lane(&columns, lane);
    }
    for (ending, flag) in endings.iter_mut().zip(flags) {
        *ending = Ending::new(flag & 1 != 0, flag & 2 != 0);
    }
    if let Some(standing) = standing {
        for lane in (0..L).filter(|lane| finished[*lane]) {
            block.set(lane, standing.get(lane));
            block.elapsed[lane] = standing.elapsed[lane];
        }
    }
}

/// Begins several episodes.
struct Reset<'a, const N: usize, const W: usize, T> {
    task: PhantomData<T>,
    blocks: &'a mut Blocks<N>,
    envs: &'a [usize],
    seeds: &'a [u64],
    rows: &'a mut [[f32; W]],
}

impl<T: Columnar<N, W>, const N: usize, const W: usize> Kernel for Reset<'_, N, W, T> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        for (envs, some) in self.envs.chunks(NARROW).zip(self.seeds.chunks(NARROW)) {
            let (mut seeds, mut state, mut rows) = ([0; NARROW], [[0.0; NARROW]; N], [[0.0; NARROW]; W]);
            seeds[..some.len()].copy_from_slice(some);
            for lane in 0..NARROW {
                let first = T::start(first_units(seeds[lane]));
                for i in 0..N {
                    state[i][lane] = first[i];
                }
                let row = T::show(first, 0.0).row;
                for i in 0..W {
                    rows[i][lane] = row[i];
                }
            }
            for (lane, env) in envs.iter().enumerate() {
                self.blocks.set(*env, of_lane(&state, lane), 0);
                self.rows[*env] = of_lane(&rows, lane);
            }
        }
    }
}

impl<T: Columnar<N, W>, const N: usize, const W: usize> Batch for ColumnBatch<T, N, W> {
    fn len(&self) -> usize {
        self.len
    }

    fn observation_space(&self) -> Space {
        self.one.observation_space()
    }

    fn action_space(&self) -> Space {
        self.one.action_space()
    }

    fn reset(&mut self, env: usize, seed: u64, observation: &mut [f32]) {
        reset(&mut self.one, seed, observation);
        self.blocks.set(env, self.one.state(), 0);
    }

    fn reset_many(&mut self, envs: &[usize], seeds: &[u64], observations: &mut [f32]) {
        let (rows, _) = observations.as_chunks_mut::<W>();
        dispatch(self.level, Reset::<N, W, T> { task: PhantomData, blocks: &mut self.blocks, envs, seeds, rows });
    }

    fn step(&mut self, actions: Actions<'_>, finished: &[bool], observations: &mut [f32], rewards: &mut [f32], endings: &mut [Ending]) {
        let actions = T::Action::all(actions).unwrap_or_else(|| panic!("expected actions of {}, got {actions:?}", self.one.action_space()));
        let (rows, _) = observations.as_chunks_mut::<W>();
        let Self { one, blocks, limit, level, .. } = self;
        dispatch(*level, StepAll { one, blocks, limit: *limit, slices: Slices { actions, finished, rows, rewards, endings } });
    }

    fn save(&self, env: usize) -> Vec<u64> {
        let (mut one, (state, elapsed)) = (self.one.clone(), self.blocks.get(env));
        one.set_state(state);
        let mut state = one.save();
        state.push(u64::from(elapsed));
        state
    }

    fn load(&mut self, env: usize, state: &[u64]) -> Result<(), EnvError> {
        let mut one = TimeLimit::new(self.one.clone(), self.limit);
        one.load(state)?;
        let (one, elapsed) = one.into_parts();
        self.blocks.set(env, one.state(), elapsed);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
