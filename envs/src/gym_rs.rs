//! Environments of the crate `gym-rs`, enabled by the cargo feature `gym-rs`.
//!
//! ```
//! use gradus_envs::gym_rs::GymRs;
//! use gradus_envs::gym_rs::envs::classical_control::mountain_car::MountainCarEnv;
//! use gradus_envs::gym_rs::utils::renderer::RenderMode;
//! use gradus_envs::{TimeLimit, EnvSpec};
//!
//! let world = EnvSpec::new("gym-rs-mountain-car", || TimeLimit::new(GymRs::new(|| MountainCarEnv::new(RenderMode::None)), 200));
//! assert_eq!(world.env().action_space(), gradus_envs::Space::Discrete(3));
//! ```
//!
//! **Its CartPole differs from CartPole-v1.** Two differences in gym-rs 0.3.0 make learning curves incomparable:
//! - The equations need the product of the pole's mass and half its length, 0.1 x 0.5 = 0.05; gym-rs uses their sum, 0.6.
//! - gym-rs draws each number of the initial state between -0.5 and 0.5, instead of between -0.05 and 0.05. An episode terminates at
//!   12 degrees (0.21 rad), so more than half of the episodes end with their first step. [`GymRs::starting_between`] sets other bounds.
//!
//! Other differences:
//! - gym-rs never truncates an episode. Wrap its environments in a [`TimeLimit`](crate::TimeLimit).
//! - gym-rs uses the platform's sines, so the last digits may differ between machines.
//! - The environments of gym-rs can open a window, so the build needs cmake and the SDL2_gfx headers:
//!   `apt-get install cmake libsdl2-gfx-dev`.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use ::gym_rs::core::{ActionReward, Env as GymEnv, EnvProperties};
use ::gym_rs::spaces::{BoxR, Discrete};
pub use ::gym_rs::{core, envs, spaces, utils};

use crate::{Action, Env, EnvError, Space, Step};

/// An environment of gym-rs. Its actions are discrete, as in all environments of that crate.
///
/// The environment runs in its own thread, because a window must stay in the thread that opened it. The thread costs some microseconds
/// per step.
///
/// gym-rs cannot save an environment, but an episode is a pure function of its seed and actions. [`save`](Env::save) stores these, and
/// [`load`](Env::load) replays them.
pub struct GymRs {
    requests: Sender<Request>,
    answers: Receiver<(Vec<f64>, Step)>,
    observation_space: Space,
    actions: u32,
    seed: u64,
    taken: Vec<u32>,
}

enum Request {
    Reset(u64),
    Step(usize),
}

impl GymRs {
    /// Wraps the environment that `make` makes.
    pub fn new<E, O>(make: impl FnOnce() -> E + Send + 'static) -> Self
    where
        E: GymEnv<Action = usize, Observation = O> + EnvProperties<ActionSpace = Discrete, ObservationSpace = BoxR<O>>,
        O: utils::custom::traits::Sample + Into<Vec<f64>> + Clone,
    {
        Self::start(make, || None)
    }

    /// Wraps the environment that `make` makes, with start states drawn between the bounds that `bounds` returns.
    pub fn starting_between<E, O>(make: impl FnOnce() -> E + Send + 'static, bounds: impl Fn() -> BoxR<O> + Send + 'static) -> Self
    where
        E: GymEnv<Action = usize, Observation = O> + EnvProperties<ActionSpace = Discrete, ObservationSpace = BoxR<O>>,
        O: utils::custom::traits::Sample + Into<Vec<f64>> + Clone,
    {
        Self::start(make, move || Some(bounds()))
    }

    fn start<E, O>(make: impl FnOnce() -> E + Send + 'static, bounds: impl Fn() -> Option<BoxR<O>> + Send + 'static) -> Self
    where
        E: GymEnv<Action = usize, Observation = O> + EnvProperties<ActionSpace = Discrete, ObservationSpace = BoxR<O>>,
        O: utils::custom::traits::Sample + Into<Vec<f64>> + Clone,
    {
        let (requests, inbox) = channel();
        let (outbox, answers) = channel();
        let (say_spaces, spaces) = channel();
        thread::spawn(move || {
            let mut env = make();
            let row = |bound: &O| -> Vec<f32> { Into::<Vec<f64>>::into(bound.clone()).into_iter().map(|x| x as f32).collect() };
            let space = env.observation_space();
            let observations = Space::Box { low: row(&space.low), high: row(&space.high) };
            let _ = say_spaces.send((observations, env.action_space().0 as u32));
            // the thread ends when `GymRs` is dropped
            while let Ok(request) = inbox.recv() {
                let answer = match request {
                    Request::Reset(seed) => {
                        let (observation, _) = env.reset(Some(seed), false, bounds());
                        (observation.into(), Step { reward: 0.0, terminated: false, truncated: false })
                    }
                    Request::Step(action) => {
                        let ActionReward { observation, reward, done, truncated, .. } = env.step(action);
                        (observation.into(), Step { reward: reward.into_inner(), terminated: done, truncated })
                    }
                };
                if outbox.send(answer).is_err() {
                    break;
                }
            }
            env.close();
        });
        let (observation_space, actions) = spaces.recv().expect("gym-rs: the environment panicked while it was made");
        Self { requests, answers, observation_space, actions, seed: 0, taken: Vec::new() }
    }

    fn ask(&self, request: Request, observation: &mut [f32]) -> Step {
        // the thread ends early only if it panics, which prints a message
        let answer = self.requests.send(request).ok().and_then(|()| self.answers.recv().ok());
        let (row, step) = answer.expect("gym-rs: the environment panicked");
        observation.iter_mut().zip(row).for_each(|(out, number)| *out = number as f32);
        step
    }
}

impl Env for GymRs {
    fn observation_space(&self) -> Space {
        self.observation_space.clone()
    }

    fn action_space(&self) -> Space {
        Space::Discrete(self.actions)
    }

    fn reset(&mut self, seed: u64, observation: &mut [f32]) {
        self.seed = seed;
        self.taken.clear();
        self.ask(Request::Reset(seed), observation);
    }

    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        let Action::Discrete(number) = action else { panic!("gym-rs: expected a discrete action, got {action:?}") };
        self.taken.push(number);
        self.ask(Request::Step(number as usize), observation)
    }

    fn save(&self) -> Vec<u64> {
        let taken = self.taken.iter().map(|action| u64::from(*action));
        [self.seed, self.taken.len() as u64].into_iter().chain(taken).collect()
    }

    fn load(&mut self, state: &[u64]) -> Result<(), EnvError> {
        let wrong = |expected: String, got: String| Err(EnvError::State(format!("gym-rs: expected {expected}, got {got}")));
        let (seed, taken) = match state {
            [seed, length, taken @ ..] if *length == taken.len() as u64 => (*seed, taken),
            _ => return wrong("a seed, a number of actions and the actions".into(), format!("{} words", state.len())),
        };
        if let Some(action) = taken.iter().find(|action| **action >= u64::from(self.actions)) {
            return wrong(self.action_space().to_string(), action.to_string());
        }
        let mut observation = vec![0.0; self.observation_space.width()];
        self.reset(seed, &mut observation);
        for action in taken {
            self.step(Action::Discrete(*action as u32), &mut observation);
        }
        Ok(())
    }
}
