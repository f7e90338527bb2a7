//! The classic tasks, many at a time.
//!
//! A task is written once, as functions without branches ([`Columnar`]). One environment calls them for itself; a [`ColumnBatch`] calls
//! the very same functions in loops over environments whose numbers lie side by side, which the compiler turns into vector
//! instructions, so both give the same bits.

use std::marker::PhantomData;

use crate::random::first_units;
use crate::simd::{Kernel, Level, dispatch};
use crate::{Actions, Batch, Ending, Env, EnvError, Space, Step, TimeLimit};

/// What a step shows of a state: the observation, the step's reward, and whether the episode is over.
#[derive(Clone, Copy, Debug)]
pub struct Shown<const W: usize> {
    /// The observation.
    pub row: [f32; W],
    /// The reward of the step that led here.
    pub reward: f64,
    /// Whether the Markov decision process ended.
    pub terminated: bool,
}

/// A task whose state is `N` numbers and whose observation is `W`.
///
/// All but [`settle`](Columnar::settle) must be free of branches and `#[inline(always)]`, and so must all that they call.
pub trait Columnar<const N: usize, const W: usize>: Env + Clone {
    /// `u32` where actions are discrete, `f32` where they are one number.
    type Action: Number;

    /// Whether [`settle`](Columnar::settle) does anything.
    const SETTLES: bool = false;

    /// The state that this environment is in.
    fn state(&self) -> [f64; N];

    /// Puts this environment into a state.
    fn set_state(&mut self, state: [f64; N]);

    /// The first state of an episode, from `N` numbers uniform in [0, 1).
    fn start(units: [f64; N]) -> [f64; N];

    /// The state that follows, and what the step has cost so far.
    fn advance(&self, state: [f64; N], action: Self::Action) -> ([f64; N], f64);

    /// The part of the step that cannot do without branches, done for one environment after the other.
    fn settle(state: [f64; N]) -> [f64; N] {
        state
    }

    /// What there is to see of a state, after a step that has cost `cost` so far.
    fn show(state: [f64; N], cost: f64) -> Shown<W>;
}

/// An action that is one number.
pub trait Number: Copy + Default + Send + 'static {
    /// The actions, where they are of this kind.
    fn all(actions: Actions<'_>) -> Option<&[Self]>;
}

impl Number for u32 {
    fn all(actions: Actions<'_>) -> Option<&[Self]> {
        if let Actions::Discrete(actions) = actions { Some(actions) } else { None }
    }
}

impl Number for f32 {
    fn all(actions: Actions<'_>) -> Option<&[Self]> {
        if let Actions::Continuous { rows, width: 1 } = actions { Some(rows) } else { None }
    }
}

/// A number of [low, high) for a `unit` of [0, 1).
#[inline(always)]
pub(crate) fn between(low: f64, high: f64, unit: f64) -> f64 {
    low + (high - low) * unit
}

/// The episode that belongs to `seed` begins in one environment.
pub(crate) fn reset<T: Columnar<N, W>, const N: usize, const W: usize>(env: &mut T, seed: u64, observation: &mut [f32]) {
    env.set_state(T::start(first_units(seed)));
    show(env, 0.0, observation);
}

/// A step of one environment.
pub(crate) fn step<T: Columnar<N, W>, const N: usize, const W: usize>(env: &mut T, action: T::Action, observation: &mut [f32]) -> Step {
    let (state, cost) = env.advance(env.state(), action);
    env.set_state(T::settle(state));
    show(env, cost, observation)
}

/// What one environment shows, after a step that has cost `cost` so far.
pub(crate) fn show<T: Columnar<N, W>, const N: usize, const W: usize>(env: &T, cost: f64, observation: &mut [f32]) -> Step {
    let Shown { row, reward, terminated } = T::show(env.state(), cost);
    observation.copy_from_slice(&row);
    Step { reward, terminated, truncated: false }
}

/// Environments whose numbers lie side by side.
const LANES: usize = 8;

/// `LANES` environments.
#[derive(Clone)]
struct Block<const N: usize> {
    state: [[f64; LANES]; N],
    elapsed: [u32; LANES],
}

impl<const N: usize> Block<N> {
    fn get(&self, lane: usize) -> [f64; N] {
        std::array::from_fn(|i| self.state[i][lane])
    }

    fn set(&mut self, lane: usize, state: [f64; N]) {
        for (column, number) in self.state.iter_mut().zip(state) {
            column[lane] = number;
        }
    }
}

/// A classic task with its time limit, many at a time.
pub struct ColumnBatch<T, const N: usize, const W: usize> {
    /// Lent the state of one copy for whatever is done to one copy alone.
    one: T,
    blocks: Vec<Block<N>>,
    limit: u32,
    len: usize,
    level: Level,
}

impl<T: Columnar<N, W>, const N: usize, const W: usize> ColumnBatch<T, N, W> {
    /// `len` copies of `one`, truncated after `limit` steps.
    pub(crate) fn of(one: T, len: usize, limit: u32) -> Self {
        assert!(limit > 0, "time limit: expected at least 1 step, got 0");
        let block = Block { state: [[0.0; LANES]; N], elapsed: [0; LANES] };
        Self { one, blocks: vec![block; len.div_ceil(LANES)], limit, len, level: Level::best() }
    }

    /// The environment that is copy `env`.
    fn copy(&self, env: usize) -> T {
        let mut one = self.one.clone();
        one.set_state(self.blocks[env / LANES].get(env % LANES));
        one
    }
}

impl<T: Columnar<N, W> + Default, const N: usize, const W: usize> ColumnBatch<T, N, W> {
    /// `len` copies, truncated after `limit` steps.
    pub fn new(len: usize, limit: u32) -> Self {
        Self::of(T::default(), len, limit)
    }
}

/// A step of all copies.
struct StepAll<'a, T: Columnar<N, W>, const N: usize, const W: usize> {
    one: &'a T,
    blocks: &'a mut [Block<N>],
    limit: u32,
    actions: &'a [T::Action],
    finished: &'a [bool],
    rows: &'a mut [[f32; W]],
    rewards: &'a mut [f32],
    endings: &'a mut [Ending],
}

impl<T: Columnar<N, W>, const N: usize, const W: usize> Kernel for StepAll<'_, T, N, W> {
    #[inline(always)]
    fn run(self) {
        let Self { one, blocks, limit, actions, finished, rows, rewards, endings } = self;
        let n = actions.len();
        assert!(finished.len() == n && rows.len() == n && rewards.len() == n && endings.len() == n && blocks.len() == n.div_ceil(LANES));
        let whole = n - n % LANES;
        let ((actions, last_actions), (finished, last_finished)) = (actions.as_chunks(), finished.as_chunks());
        let (rows, last_rows) = rows.as_chunks_mut();
        let (rewards, last_rewards) = rewards.as_chunks_mut();
        let (endings, last_endings) = endings.as_chunks_mut();
        let out = rows.iter_mut().zip(rewards).zip(endings);
        for ((block, (actions, finished)), ((rows, rewards), endings)) in blocks.iter_mut().zip(actions.iter().zip(finished)).zip(out) {
            step_block(one, block, limit, actions, finished, rows, rewards, endings);
        }
        if let Some(block) = blocks.get_mut(whole / LANES) {
            let (mut actions, mut finished) = ([T::Action::default(); LANES], [true; LANES]);
            let (mut rows, mut rewards, mut endings) = ([[0.0; W]; LANES], [0.0; LANES], [Ending::Running; LANES]);
            let n = last_actions.len();
            actions[..n].copy_from_slice(last_actions);
            finished[..n].copy_from_slice(last_finished);
            step_block(one, block, limit, &actions, &finished, &mut rows, &mut rewards, &mut endings);
            last_rows.copy_from_slice(&rows[..n]);
            last_rewards.copy_from_slice(&rewards[..n]);
            last_endings.copy_from_slice(&endings[..n]);
        }
    }
}

#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn step_block<T: Columnar<N, W>, const N: usize, const W: usize>(
    one: &T,
    block: &mut Block<N>,
    limit: u32,
    actions: &[T::Action; LANES],
    finished: &[bool; LANES],
    rows: &mut [[f32; W]; LANES],
    rewards: &mut [f32; LANES],
    endings: &mut [Ending; LANES],
) {
    let standing = (*finished != [false; LANES]).then(|| block.clone());
    let Block { state, elapsed } = block;
    let mut costs = [0.0; LANES];
    for lane in 0..LANES {
        let (next, cost) = one.advance(std::array::from_fn(|i| state[i][lane]), actions[lane]);
        for i in 0..N {
            state[i][lane] = next[i];
        }
        costs[lane] = cost;
    }
    if T::SETTLES {
        for lane in 0..LANES {
            let settled = T::settle(std::array::from_fn(|i| state[i][lane]));
            for i in 0..N {
                state[i][lane] = settled[i];
            }
        }
    }
    let (mut columns, mut flags) = ([[0.0; LANES]; W], [0; LANES]);
    for lane in 0..LANES {
        let Shown { row, reward, terminated } = T::show(std::array::from_fn(|i| state[i][lane]), costs[lane]);
        for i in 0..W {
            columns[i][lane] = row[i];
        }
        rewards[lane] = reward as f32;
        elapsed[lane] += 1;
        flags[lane] = u8::from(terminated) | u8::from(elapsed[lane] >= limit) << 1;
    }
    for lane in 0..LANES {
        rows[lane] = std::array::from_fn(|i| columns[i][lane]);
    }
    for (ending, flag) in endings.iter_mut().zip(flags) {
        *ending = Ending::new(flag & 1 != 0, flag & 2 != 0);
    }
    if let Some(standing) = standing {
        for lane in (0..LANES).filter(|lane| finished[*lane]) {
            block.set(lane, standing.get(lane));
            block.elapsed[lane] = standing.elapsed[lane];
        }
    }
}

/// The first states of several episodes.
struct Reset<'a, const N: usize, const W: usize, T> {
    task: PhantomData<T>,
    blocks: &'a mut [Block<N>],
    envs: &'a [usize],
    seeds: &'a [u64],
    rows: &'a mut [[f32; W]],
}

impl<T: Columnar<N, W>, const N: usize, const W: usize> Kernel for Reset<'_, N, W, T> {
    #[inline(always)]
    fn run(self) {
        for (envs, some) in self.envs.chunks(LANES).zip(self.seeds.chunks(LANES)) {
            let (mut seeds, mut state, mut rows) = ([0; LANES], [[0.0; LANES]; N], [[0.0; LANES]; W]);
            seeds[..some.len()].copy_from_slice(some);
            for lane in 0..LANES {
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
                let block = &mut self.blocks[env / LANES];
                block.set(env % LANES, std::array::from_fn(|i| state[i][lane]));
                block.elapsed[env % LANES] = 0;
                self.rows[*env] = std::array::from_fn(|i| rows[i][lane]);
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
        let (block, lane) = (&mut self.blocks[env / LANES], env % LANES);
        block.set(lane, self.one.state());
        block.elapsed[lane] = 0;
    }

    fn reset_many(&mut self, envs: &[usize], seeds: &[u64], observations: &mut [f32]) {
        let (rows, _) = observations.as_chunks_mut::<W>();
        dispatch(self.level, Reset::<N, W, T> { task: PhantomData, blocks: &mut self.blocks, envs, seeds, rows });
    }

    fn step(&mut self, actions: Actions<'_>, finished: &[bool], observations: &mut [f32], rewards: &mut [f32], endings: &mut [Ending]) {
        let actions = T::Action::all(actions).unwrap_or_else(|| panic!("expected actions of {}, got {actions:?}", self.one.action_space()));
        let (rows, _) = observations.as_chunks_mut::<W>();
        let Self { one, blocks, limit, level, .. } = self;
        dispatch(*level, StepAll { one, blocks, limit: *limit, actions, finished, rows, rewards, endings });
    }

    fn save(&self, env: usize) -> Vec<u64> {
        let mut state = self.copy(env).save();
        state.push(u64::from(self.blocks[env / LANES].elapsed[env % LANES]));
        state
    }

    fn load(&mut self, env: usize, state: &[u64]) -> Result<(), EnvError> {
        let mut one = TimeLimit::new(self.one.clone(), self.limit);
        one.load(state)?;
        let (one, elapsed) = one.into_parts();
        let block = &mut self.blocks[env / LANES];
        block.set(env % LANES, one.state());
        block.elapsed[env % LANES] = elapsed;
        Ok(())
    }
}
