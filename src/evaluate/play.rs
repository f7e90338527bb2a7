//! Playing an episode to show it.

use gradus_base::random::{Purpose, Stream};
use gradus_envs::{EnvError, EnvSpec, Scene, Shape, SingleEnv, Space, gym};
use gradus_nets::Behaviour;
use gradus_rollouts::{ActiveRows, Decisions, Environments, act};

use crate::draw::Frame;
use crate::evaluate::Mode;
use crate::evaluate::trace::RecordedAction;
use crate::memory;

/// A played episode.
#[derive(Default)]
pub struct Played {
    /// Frames at the start and after each step. Empty if the environment cannot be drawn.
    pub frames: Vec<Frame>,
    /// Text at the start and after each step. Empty if the environment has no text rendering.
    pub texts: Vec<String>,
    /// The observation before each step, as the policy saw it.
    pub observations: Vec<Vec<f32>>,
    /// What the policy remembered after each step; nothing if it has no memory.
    pub memories: Vec<Vec<f32>>,
    /// The action of each step.
    pub actions: Vec<RecordedAction>,
    /// The undiscounted return.
    pub episode_return: f64,
    /// The number of steps.
    pub steps: usize,
}

/// The largest number of steps of a played episode, because every frame is kept in memory.
pub const MAX_STEPS: u32 = 100_000;

/// Plays the episode of `seed` with the most probable actions. An episode that has not ended after [`MAX_STEPS`] steps, or after the
/// environment's time limit if this is larger, is [`EnvError::Endless`].
pub fn play(policy: &dyn Behaviour, world: &EnvSpec, seed: u64) -> Result<Played, EnvError> {
    play_as(policy, world, seed, Mode::Greedy)
}

/// As [`play`], with actions that `mode` chooses.
pub fn play_as(policy: &dyn Behaviour, world: &EnvSpec, seed: u64, mode: Mode) -> Result<Played, EnvError> {
    let env = world.single_episode(seed)?;
    let mut shown = Shown {
        env,
        world: &world.name,
        played: Played::default(),
        memory: Vec::new(),
        longest: world.max_episode_steps.map_or(MAX_STEPS, |limit| limit.max(MAX_STEPS)),
        bytes: 0,
        // an animation copies frames
        most: memory::available().map_or(u64::MAX, |bytes| bytes / 2),
    };
    shown.show()?;
    // greedy actions draw nothing from the stream
    let mut streams = [Stream::new(seed, Purpose::Evaluation, 0)];
    act(policy, &mut shown, ActiveRows::lockstep(&mut streams), &mode.sampling())?;
    Ok(shown.played)
}

/// An environment that is rendered at the start and after each step.
struct Shown<'a> {
    env: SingleEnv,
    /// Name of the environment, for errors.
    world: &'a str,
    played: Played,
    /// What the policy remembers.
    memory: Vec<f32>,
    /// Largest number of steps.
    longest: u32,
    /// Approximate bytes of what was shown so far, and the most.
    bytes: u64,
    most: u64,
}

impl Shown<'_> {
    fn show(&mut self) -> Result<(), EnvError> {
        let Self { env, played, .. } = self;
        self.bytes += 4 * (env.observation().len() + self.memory.len()) as u64;
        if let Some(scene) = env.render()? {
            self.bytes += bytes_of(&scene);
            played.frames.push(Frame { scene, step: played.steps, return_so_far: played.episode_return });
        }
        if let Some(text) = env.ansi()? {
            self.bytes += text.len() as u64;
            played.texts.push(text);
        }
        if self.bytes > self.most {
            let (most, step) = (memory::shown(self.most), played.steps);
            let problem =
                format!("expected an episode whose pictures and observations need at most {most} of memory, got more at step {step}");
            return Err(EnvError::Made { world: self.world.into(), problem });
        }
        Ok(())
    }
}

/// Returns the approximate bytes of memory of a picture.
fn bytes_of(scene: &Scene) -> u64 {
    let own = |shape: &Shape| match shape {
        Shape::Polygon { corners, .. } => size_of_val(&corners[..]),
        Shape::Picture(picture) => picture.rgb.len(),
        _ => 0,
    };
    scene.shapes.iter().map(|shape| (size_of::<Shape>() + own(shape)) as u64).sum()
}

impl Environments for Shown<'_> {
    fn action_space(&self) -> Space {
        self.env.action_space()
    }

    fn observe(&mut self, _: &[usize]) -> (&[f32], Option<&[bool]>) {
        (self.env.observation(), self.env.action_mask())
    }

    fn memory(&mut self) -> Option<&mut Vec<f32>> {
        Some(&mut self.memory)
    }

    fn step(&mut self, _: &[usize], decisions: &Decisions<'_>, done: &mut Vec<usize>) -> Result<(), EnvError> {
        let action = decisions.clipped.get(0);
        self.played.observations.push(self.env.observation().to_vec());
        self.played.actions.push(action.into());
        if !self.memory.is_empty() {
            self.played.memories.push(self.memory.clone());
        }
        let step = self.env.step(action)?;
        self.played.steps += 1;
        self.played.episode_return = self.env.episode_return();
        if !step.done() && self.env.length() >= self.longest {
            let (world, step, seed) = (self.world.into(), self.longest, self.env.episode_seed());
            return Err(EnvError::Endless { world, env: 0, episode: 1, step, seed });
        }
        done.extend(step.done().then_some(0));
        self.show()
    }
}

/// Returns the steps per second at which an episode is shown: those that an environment of Gymnasium says (`render_fps`), 4 in worlds with a transition table, where each step is a move, and
/// otherwise 50, which is CartPole's real speed.
pub fn steps_per_second(world: &EnvSpec) -> u32 {
    if gym::is_gym(&world.name)
        && let Some(rate) = gym::describe(&world.name).ok().and_then(|known| known.render_fps)
    {
        return rate;
    }
    let plain = gradus_envs::registry::find(&world.name).ok();
    if world.model().is_some() || plain.is_some_and(|plain| plain.model().is_some()) { 4 } else { 50 }
}

/// Plays the episode of `seed` and writes it as an animated GIF at the [speed](steps_per_second) of the environment.
#[cfg(feature = "gif")]
pub fn write_gif(policy: &dyn Behaviour, world: &EnvSpec, seed: u64, path: impl AsRef<std::path::Path>) -> Result<Played, crate::Error> {
    let played = play(policy, world, seed)?;
    write_played(&played, world, path)?;
    Ok(played)
}

/// Writes a played episode as an animated GIF, as [`write_gif`] does.
#[cfg(feature = "gif")]
pub fn write_played(played: &Played, world: &EnvSpec, path: impl AsRef<std::path::Path>) -> Result<(), crate::Error> {
    use crate::draw::{Animation, write_gif};
    let title = world.title();
    if played.frames.is_empty() {
        let problem = format!("expected an environment with pictures, got {title}, which has none");
        return Err(crate::Error::folder(path.as_ref(), problem));
    }
    // at most 25 frames a second, and always the last one
    let (last, rate) = (played.frames.len().saturating_sub(1), steps_per_second(world));
    let every = rate.div_ceil(25);
    let is_shown = |i: &usize| i.is_multiple_of(every as usize) || *i == last;
    let frames: Vec<Frame> = (0..=last).filter(is_shown).map(|i| played.frames[i].clone()).collect();
    write_gif(&Animation { title, chapters: &[], frames: &frames, frames_per_second: rate / every }, path.as_ref())
}
