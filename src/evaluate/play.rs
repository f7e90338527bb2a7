//! Playing an episode to show it.

use std::path::Path;

use gradus_envs::random::{Purpose, Stream};
use gradus_envs::{Env, EnvError, Space, World};
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

/// Plays the episode of `seed` with the most probable actions.
pub fn play(policy: &dyn Behaviour, world: &World, seed: u64) -> Result<Played, EnvError> {
    let mut env = world.env();
    let mut observation = vec![0.0; policy.observation_width()];
    env.reset(seed, &mut observation);
    let mask = match env.action_space() {
        Space::Discrete(n) => vec![true; n as usize],
        _ => Vec::new(),
    };
    let played = Played { frames: Vec::new(), texts: Vec::new(), actions: Vec::new(), episode_return: 0.0, steps: 0 };
    let mut shown = Shown { env, seed, observation, mask, played };
    shown.show();
    // greedy actions draw nothing from the stream
    let mut streams = [Stream::new(seed, Purpose::Evaluation, 0)];
    act(policy, &mut shown, ActiveRows::lockstep(&mut streams), &Sampling::GREEDY)?;
    Ok(shown.played)
}

/// An environment that is rendered at the start and after each step.
struct Shown {
    env: Box<dyn Env>,
    seed: u64,
    observation: Vec<f32>,
    mask: Vec<bool>,
    played: Played,
}

impl Shown {
    fn show(&mut self) {
        let Self { env, played, .. } = self;
        if let Some(scene) = env.render() {
            played.frames.push(Frame { scene, step: played.steps, return_so_far: played.episode_return });
        }
        played.texts.extend(env.ansi());
    }
}

impl Environments for Shown {
    fn action_space(&self) -> Space {
        self.env.action_space()
    }

    fn observe(&mut self, _: &[usize]) -> (&[f32], Option<&[bool]>) {
        self.mask.fill(true);
        let mask = self.env.action_mask(&mut self.mask).then_some(&*self.mask);
        (&self.observation, mask)
    }

    fn step(&mut self, _: &[usize], decisions: &Decisions<'_>, done: &mut Vec<usize>) -> Result<(), EnvError> {
        let Self { env, seed, observation, played, .. } = self;
        let action = decisions.clipped.get(0);
        played.actions.push(action.into());
        let step = env.step(action, observation);
        played.steps += 1;
        played.episode_return += step.reward;
        let number =
            observation.iter().enumerate().find(|(_, x)| !x.is_finite()).map(|(i, x)| (format!("observation[{i}]"), f64::from(*x)));
        let reward = (!step.reward.is_finite()).then(|| ("reward".into(), step.reward));
        if let Some((what, got)) = reward.or(number) {
            return Err(EnvError::NotFinite { what, env: 0, got, step: played.steps as u32, seed: *seed });
        }
        done.extend(step.done().then_some(0));
        self.show();
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
