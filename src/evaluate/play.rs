//! Playing an episode to show it.

use std::path::Path;

use gradus_envs::random::{Purpose, Stream};
use gradus_envs::{Env, EnvError, Space, UNWRITTEN, World, panics, unwritten};
use gradus_nets::{Behaviour, Sampling};
use gradus_rollouts::{ActiveRows, Decisions, Environments, act};

use crate::Error;
use crate::draw::{self, Animation, Frame};
use crate::evaluate::trace::RecordedAction;

/// A played episode.
pub struct Played {
    /// Frames at the start and after each step. Empty if the environment cannot be drawn.
    pub frames: Vec<Frame>,
    /// Text at the start and after each step. Empty if the environment has no text rendering.
    pub texts: Vec<String>,
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
pub fn play(policy: &dyn Behaviour, world: &World, seed: u64) -> Result<Played, EnvError> {
    let env = world.checked_env()?;
    let observation = vec![UNWRITTEN; policy.observation_width()];
    let mask = match env.action_space() {
        Space::Discrete(n) => vec![true; n as usize],
        _ => Vec::new(),
    };
    let played = Played { frames: Vec::new(), texts: Vec::new(), actions: Vec::new(), episode_return: 0.0, steps: 0 };
    let longest = world.max_episode_steps.map_or(MAX_STEPS, |limit| limit.max(MAX_STEPS));
    let mut shown = Shown { env, world: &world.name, seed, observation, mask, played, longest, current: None };
    // greedy actions draw nothing from the stream
    let mut streams = [Stream::new(seed, Purpose::Evaluation, 0)];
    let outcome = panics::catch(|| {
        shown.begin()?;
        act(policy, &mut shown, ActiveRows::lockstep(&mut streams), &Sampling::GREEDY)
    });
    match (outcome, shown.current) {
        (Ok(result), _) => result.map(|()| shown.played),
        (Err(panic), Some(step)) => {
            Err(EnvError::Panicked { world: world.name.clone(), env: 0, episode: 1, step, seed, message: panic.message() })
        }
        (Err(panic), None) => panic.resume(),
    }
}

/// An environment that is rendered at the start and after each step.
struct Shown<'a> {
    env: Box<dyn Env>,
    /// Name of the environment, for errors.
    world: &'a str,
    seed: u64,
    observation: Vec<f32>,
    mask: Vec<bool>,
    played: Played,
    /// Largest number of steps.
    longest: u32,
    /// The step of the environment while its code is called.
    current: Option<u32>,
}

impl Shown<'_> {
    fn begin(&mut self) -> Result<(), EnvError> {
        self.current = Some(0);
        self.env.reset(self.seed, &mut self.observation);
        self.show();
        self.current = None;
        self.check(0.0)
    }

    fn show(&mut self) {
        let Self { env, played, .. } = self;
        if let Some(scene) = env.render() {
            played.frames.push(Frame { scene, step: played.steps, return_so_far: played.episode_return });
        }
        played.texts.extend(env.ansi());
    }

    /// Checks that every number of the current observation is written, and that it and the reward are finite.
    fn check(&self, reward: f64) -> Result<(), EnvError> {
        let (observation, step, seed) = (&self.observation, self.played.steps as u32, self.seed);
        if let Some(i) = unwritten(observation) {
            return Err(EnvError::Unwritten { i, env: 0, width: observation.len(), step, seed });
        }
        let number =
            observation.iter().enumerate().find(|(_, x)| !x.is_finite()).map(|(i, x)| (format!("observation[{i}]"), f64::from(*x)));
        let reward = (!reward.is_finite()).then(|| ("reward".into(), reward));
        reward.or(number).map_or(Ok(()), |(what, got)| Err(EnvError::NotFinite { what, env: 0, got, step, seed }))
    }
}

impl Environments for Shown<'_> {
    fn action_space(&self) -> Space {
        self.env.action_space()
    }

    fn observe(&mut self, _: &[usize]) -> (&[f32], Option<&[bool]>) {
        self.mask.fill(true);
        self.current = Some(self.played.steps as u32);
        let mask = self.env.action_mask(&mut self.mask).then_some(&*self.mask);
        self.current = None;
        (&self.observation, mask)
    }

    fn step(&mut self, _: &[usize], decisions: &Decisions<'_>, done: &mut Vec<usize>) -> Result<(), EnvError> {
        let action = decisions.clipped.get(0);
        self.played.actions.push(action.into());
        self.current = Some(self.played.steps as u32 + 1);
        let step = self.env.step(action, &mut self.observation);
        self.played.steps += 1;
        self.played.episode_return += step.reward;
        self.current = None;
        self.check(step.reward)?;
        if !step.done() && self.played.steps >= self.longest as usize {
            let (world, step) = (self.world.into(), self.longest);
            return Err(EnvError::Endless { world, env: 0, episode: 1, step, seed: self.seed });
        }
        done.extend(step.done().then_some(0));
        self.current = Some(self.played.steps as u32);
        self.show();
        self.current = None;
        Ok(())
    }
}

/// Plays the episode of `seed` and writes it as an animated GIF at 50 steps per second, which is CartPole's real speed.
pub fn write_gif(policy: &dyn Behaviour, world: &World, seed: u64, path: impl AsRef<Path>) -> Result<Played, Error> {
    let played = play(policy, world, seed)?;
    let title = world.title().into();
    // every other frame, and always the last one
    let last = played.frames.len().saturating_sub(1);
    let frames: Vec<Frame> = played.frames.iter().enumerate().filter(|(i, _)| i % 2 == 0 || *i == last).map(|(_, f)| f.clone()).collect();
    draw::write_gif(&Animation { title, frames: &frames, frames_per_second: 25 }, path.as_ref())?;
    Ok(played)
}
