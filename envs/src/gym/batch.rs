//! The environments of a worker, as a batch and one by one.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use gradus_base::panics;

use super::description::Description;
use super::frame::Frame;
use super::worker::{HINT, Offsets, Worker};
use super::{DRAWS_NOTHING, SEED_BITS, World};
use crate::python::Failure;
use crate::{Action, Actions, Batch, Ending, Env, EnvError, Picture, Scene, Space, Step, choices};

/// A started worker with its environments.
struct Running {
    worker: Worker,
    frame: Frame,
    offsets: Offsets,
}

impl Running {
    /// Returns the picture of an environment, unless it has none.
    fn picture(&mut self, env: usize) -> Result<Option<Picture>, String> {
        let [height, width] = self.worker.picture(env)?;
        if height * width == 0 {
            return Ok(None);
        }
        let mut rgb = vec![0; 3 * height * width];
        self.frame.read(&mut rgb, self.offsets.end).map_err(|error| format!("cannot read the picture: {error}"))?;
        Ok(Some(Picture { width, height, rgb }))
    }
}

/// The environments of a worker. It is started when they are reset first.
pub(super) struct GymBatch {
    world: Arc<World>,
    n: usize,
    is_rendered: bool,
    running: Option<Running>,
    /// What is wrong with an environment; it may be that of all.
    faults: Vec<Option<String>>,
    /// The seed with which an environment is reset when its episode ends, if it was announced.
    announced: Vec<Option<u64>>,
    /// Whether the worker has already reset an environment, with the announced seed.
    is_reset: Vec<bool>,
    has_mask: bool,
    /// One row per environment: 1 for an action that the policy may choose. The second half has those of final observations.
    masks: Vec<u8>,
    /// What the worker wrote in the last step: rewards, flags, masks, observations.
    answer: Vec<u8>,
    /// Reused.
    bytes: Vec<u8>,
}

impl GymBatch {
    pub(super) fn new(world: Arc<World>, n: usize, is_rendered: bool) -> Self {
        let masks = vec![1; 2 * n * world.description.action_space.mask_width()];
        let (faults, announced, is_reset) = (vec![None; n], vec![None; n], vec![false; n]);
        Self {
            world,
            n,
            is_rendered,
            running: None,
            faults,
            announced,
            is_reset,
            has_mask: false,
            masks,
            answer: Vec::new(),
            bytes: Vec::new(),
        }
    }

    fn running(&mut self) -> Result<&mut Running, String> {
        if self.running.is_none() {
            let mut worker = self.world.worker()?;
            let (frame, offsets) = worker.make(self.n, self.is_rendered)?;
            self.running = Some(Running { worker, frame, offsets });
        }
        Ok(self.running.as_mut().expect("it was started above"))
    }

    fn width(&self) -> usize {
        self.world.description.observation_space.width()
    }

    /// Notes what is wrong. The numbers of these environments become NaN, so that their fault is asked for.
    fn fail(&mut self, failure: Failure, envs: &[usize]) {
        match failure.env.filter(|env| *env < self.n) {
            Some(env) => self.faults[env] = Some(failure.problem),
            None => envs.iter().for_each(|env| self.faults[*env] = Some(failure.problem.clone())),
        }
    }

    /// Lets the worker reset environments.
    fn try_reset(&mut self, envs: &[usize], seeds: &[u64]) -> Result<(), Failure> {
        let n = self.n;
        let broken = |problem| Failure { env: None, problem };
        // after a failure, a reset of all environments begins with a new worker
        if envs.len() == n && self.running.as_ref().is_some_and(|running| !running.worker.is_alive()) {
            self.running = None;
            self.faults.fill(None);
        }
        let Running { worker, frame, offsets } = self.running().map_err(broken)?;
        let (mut marks, mut all) = (vec![0; n], vec![0; 8 * n]);
        for (env, seed) in envs.iter().zip(seeds) {
            marks[*env] = 1;
            all[8 * env..8 * env + 8].copy_from_slice(&(*seed & SEED_BITS).to_le_bytes());
        }
        let written = frame.write(&marks, offsets.marks).and_then(|()| frame.write(&all, offsets.seeds));
        written.map_err(|error| broken(format!("cannot write the shared file: {error}")))?;
        let has_mask = worker.reset()?;
        self.has_mask |= has_mask;
        Ok(())
    }

    /// Lets the worker step the environments that are not finished.
    fn try_step(&mut self, actions: Actions<'_>, finished: &[bool]) -> Result<(), Failure> {
        let broken = |problem| Failure { env: None, problem };
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        bytes.resize(HINT, 0);
        match actions {
            Actions::Discrete(actions) => {
                let sizes = self.world.description.action_space.sizes();
                let numbers = actions.iter().flat_map(|action| choices(sizes, *action));
                bytes.extend(numbers.flat_map(|number| i64::from(number).to_le_bytes()));
            }
            Actions::Continuous { rows, .. } => bytes.extend(rows.iter().flat_map(|number| number.to_le_bytes())),
        }
        let autoresets = self.announced.iter().all(Option::is_some);
        let Running { worker, frame, offsets } = self.running().map_err(broken)?;
        if !autoresets {
            let marks: Vec<u8> = finished.iter().map(|finished| u8::from(*finished)).collect();
            frame.write(&marks, offsets.marks).map_err(|error| broken(format!("cannot write the shared file: {error}")))?;
        }
        let stepped = worker.step(if autoresets { b'a' } else { b's' }, &mut bytes, frame, offsets);
        self.bytes = bytes;
        stepped
    }

    /// Writes the announced seeds, after some of them have changed.
    fn write_announced(&mut self) {
        let seeds: Vec<u8> = self.announced.iter().flat_map(|seed| (seed.unwrap_or_default() & SEED_BITS).to_le_bytes()).collect();
        if let Some(Running { frame, offsets, .. }) = &self.running {
            _ = frame.write(&seeds, offsets.seeds);
        }
    }

    /// Bytes of an observation in the file.
    fn row_size(&self) -> usize {
        match &self.world.description {
            Description { screens: Some(screens), .. } => screens.len(),
            Description { is_byte: true, .. } => self.width(),
            _ => 4 * self.width(),
        }
    }

    /// Reads the bytes of an observation.
    fn decode(&self, bytes: &[u8], row: &mut [f32]) {
        if let Some(screens) = &self.world.description.screens {
            screens.observe(bytes, row);
        } else if self.world.description.is_byte {
            row.iter_mut().zip(bytes).for_each(|(number, byte)| *number = f32::from(*byte));
        } else {
            let (fours, _) = bytes.as_chunks::<4>();
            row.iter_mut().zip(fours).for_each(|(number, four)| *number = f32::from_le_bytes(*four));
        }
    }

    /// Reads the observations of environments from the file, or their final ones.
    fn read_observations(&mut self, envs: &[usize], is_final: bool, observations: &mut [f32]) {
        let (width, size) = (self.width(), self.row_size());
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.resize(size, 0);
        for env in envs.iter().copied() {
            let row = &mut observations[env * width..(env + 1) * width];
            match &self.running {
                Some(Running { frame, offsets, .. }) if self.faults[env].is_none() => {
                    let from = if is_final { offsets.final_observations } else { offsets.observations };
                    match frame.read(&mut bytes, from + (env * size) as u64) {
                        Ok(()) => self.decode(&bytes, row),
                        Err(_) => row.fill(f32::NAN),
                    }
                }
                _ => row.fill(f32::NAN),
            }
        }
        self.bytes = bytes;
    }

    fn read_masks(&mut self) {
        if let (true, Some(Running { frame, offsets, .. })) = (self.has_mask, &self.running) {
            let half = self.masks.len() / 2;
            let (masks, final_masks) = self.masks.split_at_mut(half);
            _ = frame.read(masks, offsets.masks).and_then(|()| frame.read(final_masks, offsets.final_masks));
        }
    }
}

impl Drop for GymBatch {
    fn drop(&mut self) {
        if let Some(Running { worker, .. }) = self.running.take() {
            self.world.give_back(worker);
        }
    }
}

impl Batch for GymBatch {
    fn len(&self) -> usize {
        self.n
    }

    fn observation_space(&self) -> Space {
        self.world.description.observation_space.clone()
    }

    fn action_space(&self) -> Space {
        self.world.description.action_space.clone()
    }

    fn reset(&mut self, env: usize, seed: u64, observation: &mut [f32]) {
        let width = self.width();
        let mut rows = vec![0.0; self.n * width];
        self.reset_many(&[env], &[seed], &mut rows);
        observation.copy_from_slice(&rows[env * width..(env + 1) * width]);
    }

    fn reset_many(&mut self, envs: &[usize], seeds: &[u64], observations: &mut [f32]) {
        let is_announced = |(env, seed): (&usize, &u64)| self.is_reset[*env] && self.announced[*env] == Some(*seed);
        if !envs.iter().zip(seeds).all(is_announced)
            && let Err(failure) = self.try_reset(envs, seeds)
        {
            self.fail(failure, envs);
        }
        envs.iter().for_each(|env| (self.is_reset[*env], self.announced[*env]) = (false, None));
        self.read_observations(envs, false, observations);
        self.read_masks();
    }

    fn step(&mut self, actions: Actions<'_>, finished: &[bool], observations: &mut [f32], rewards: &mut [f32], endings: &mut [Ending]) {
        let autoresets = self.announced.iter().all(Option::is_some);
        let active: Vec<usize> = (0..self.n).filter(|env| !finished[*env]).collect();
        if let Err(failure) = self.try_step(actions, finished) {
            self.fail(failure, &active);
        }
        let (n, width, size) = (self.n, self.width(), self.row_size());
        let mut answer = std::mem::take(&mut self.answer);
        let at = match &self.running {
            Some(Running { frame, offsets, .. }) => {
                // one call reads everything but the final observations
                let [flags, masks, final_masks, rows] = [offsets.flags, offsets.masks, offsets.final_masks, offsets.observations]
                    .map(|place| (place - offsets.rewards) as usize);
                answer.resize(rows + n * size, 0);
                if frame.read(&mut answer, offsets.rewards).is_err() {
                    answer.fill(u8::MAX); // NaN
                }
                [flags, masks, final_masks, rows]
            }
            None => {
                answer.resize(8 * n + n + n * size, u8::MAX);
                [8 * n, 0, 0, 9 * n]
            }
        };
        for env in active.iter().copied() {
            let eight = answer[8 * env..8 * env + 8].try_into().expect("eight bytes");
            let (reward, flags) = (f64::from_le_bytes(eight) as f32, answer[at[0] + env]);
            let is_wrong = self.faults[env].is_some();
            rewards[env] = if is_wrong { f32::NAN } else { reward };
            endings[env] = Ending::new(flags & 1 != 0, flags & 2 != 0);
            self.is_reset[env] = autoresets && endings[env].done();
            let row = &mut observations[env * width..(env + 1) * width];
            if is_wrong {
                row.fill(f32::NAN);
            } else if !self.is_reset[env] {
                self.decode(&answer[at[3] + env * size..at[3] + (env + 1) * size], row);
            }
        }
        if self.has_mask {
            let half = self.masks.len() / 2;
            let (masks, final_masks) = self.masks.split_at_mut(half);
            masks.copy_from_slice(&answer[at[1]..at[1] + half]);
            final_masks.copy_from_slice(&answer[at[2]..at[2] + half]);
        }
        self.answer = answer;
        let ended: Vec<usize> = active.into_iter().filter(|env| self.is_reset[*env]).collect();
        if !ended.is_empty() {
            self.read_observations(&ended, true, observations);
        }
    }

    fn announce(&mut self, env: usize, seed: u64) {
        self.announced[env] = Some(seed);
        if self.announced.iter().all(Option::is_some) {
            self.write_announced();
        }
    }

    fn action_mask(&self, env: usize, mask: &mut [bool]) -> bool {
        // of an episode that has ended the final mask is asked for until its environment is reset
        let row = if self.is_reset[env] { self.n + env } else { env };
        let own = &self.masks[row * mask.len()..(row + 1) * mask.len()];
        mask.iter_mut().zip(own).for_each(|(mask, own)| *mask = *own != 0);
        self.has_mask
    }

    fn fault(&self, env: usize) -> Option<String> {
        self.faults[env].clone()
    }

    fn save(&self, _: usize) -> Vec<u64> {
        Vec::new()
    }

    fn load(&mut self, _: usize, _: &[u64]) -> Result<(), EnvError> {
        Ok(())
    }
}

/// One environment, in a worker of its own, which can be rendered.
pub(super) struct GymEnv {
    batch: RefCell<GymBatch>,
}

impl GymEnv {
    pub(super) fn new(world: Arc<World>) -> Self {
        Self { batch: RefCell::new(GymBatch::new(world, 1, !DRAWS_NOTHING.load(Ordering::Relaxed))) }
    }
}

/// The widest picture that is kept: that of an animation.
const WIDEST: usize = 480;

impl Env for GymEnv {
    fn observation_space(&self) -> Space {
        self.batch.borrow().observation_space()
    }

    fn action_space(&self) -> Space {
        self.batch.borrow().action_space()
    }

    fn reset(&mut self, seed: u64, observation: &mut [f32]) {
        self.batch.get_mut().reset_many(&[0], &[seed], observation);
    }

    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        let one;
        let actions = match action {
            Action::Discrete(action) => {
                one = [action];
                Actions::Discrete(&one)
            }
            Action::Continuous(rows) => Actions::Continuous { rows, width: rows.len() },
        };
        let (mut reward, mut ending) = ([0.0], [Ending::Running]);
        self.batch.get_mut().step(actions, &[false], observation, &mut reward, &mut ending);
        Step { reward: f64::from(reward[0]), terminated: ending[0].terminated(), truncated: ending[0].truncated() }
    }

    fn save(&self) -> Vec<u64> {
        Vec::new()
    }

    fn load(&mut self, _: &[u64]) -> Result<(), EnvError> {
        Err(EnvError::State("the state of an environment of Gymnasium cannot be saved".into()))
    }

    fn action_mask(&self, mask: &mut [bool]) -> bool {
        self.batch.borrow().action_mask(0, mask)
    }

    fn fault(&self) -> Option<String> {
        self.batch.borrow().fault(0)
    }

    fn render(&self) -> Option<Scene> {
        let mut batch = self.batch.borrow_mut();
        let picture = match &mut batch.running {
            Some(running) => running.picture(0),
            None => return None,
        };
        match picture {
            Ok(picture) => picture.map(|picture| picture.shrunk(WIDEST).into_scene()),
            Err(problem) => {
                let (world, fault) = (batch.world.name.clone(), problem);
                drop(batch);
                panics::raise(EnvError::Made { world, problem: fault })
            }
        }
    }
}
