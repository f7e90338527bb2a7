//! Training of tabular agents: Q-learning and Sarsa on any environment with discrete observations and actions.
//!
//! ```
//! use gradus::envs::registry;
//! use gradus::textbook::tabular::{Learner, Method, Settings};
//!
//! let world = registry::find("cliff-walking")?;
//! let settings = Settings { method: Method::QLearning, gamma: 1.0, ..Settings::default() };
//! let mut learner = Learner::new(&world, settings, 7)?;
//! learner.advance(20_000);
//! // up, eleven times right, down
//! let path = learner.values().greedy();
//! assert_eq!((path[36], path[24], path[35]), (0, 1, 2));
//! # Ok::<(), gradus::Error>(())
//! ```

use gradus_agents::bandit::epsilon_greedy;
use gradus_agents::tabular::{ActionValues, Experience, q_learning, sarsa};
use gradus_envs::random::{Purpose, Stream, episode_seed};
use gradus_envs::{Action, Env, EnvSpec, Space};
use gradus_nets::math::{exp, ln};
use serde::{Deserialize, Serialize};

use crate::Error;

/// The update rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Off-policy: Sutton and Barto, equation (6.8).
    QLearning,
    /// On-policy: Sutton and Barto, equation (6.7).
    Sarsa,
}

/// The step size of an update.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepSize {
    /// The same step size for all updates.
    Constant(f64),
    /// n^-power at the n-th visit to a state-action pair. Values converge for powers above 1/2 and up to 1 (Even-Dar and Mansour, JMLR 5,
    /// 2003).
    Visits {
        /// The power.
        power: f64,
    },
}

/// The settings of a tabular agent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Update rule.
    pub method: Method,
    /// Discount.
    pub gamma: f64,
    /// Step size.
    pub alpha: StepSize,
    /// Probability of a random action at the first step, if `epsilon_steps` is above 0.
    pub epsilon: f64,
    /// Probability of a random action from step `epsilon_steps` on.
    pub final_epsilon: f64,
    /// Number of steps over which the probability changes linearly from `epsilon` to `final_epsilon`.
    pub epsilon_steps: u64,
    /// Initial Q(s, a). High values encourage exploration.
    pub initial: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            method: Method::QLearning,
            gamma: 0.99,
            alpha: StepSize::Constant(0.5),
            epsilon: 0.1,
            final_epsilon: 0.1,
            epsilon_steps: 0,
            initial: 0.0,
        }
    }
}

impl Settings {
    /// Returns the probability of a random action at a step, counted from 0.
    pub fn epsilon_at(&self, step: u64) -> f64 {
        let done = if step < self.epsilon_steps { step as f64 / self.epsilon_steps as f64 } else { 1.0 };
        self.epsilon + done * (self.final_epsilon - self.epsilon)
    }

    fn check(&self) -> Result<(), Error> {
        let unit = 0.0..=1.0;
        let (name, value) = match self.alpha {
            StepSize::Constant(alpha) => ("alpha", alpha),
            StepSize::Visits { power } => ("alpha.power", power),
        };
        let numbers = [("gamma", self.gamma), (name, value), ("epsilon", self.epsilon), ("final_epsilon", self.final_epsilon)];
        for (key, number) in numbers {
            gradus_agents::ConfigError::unless(unit.contains(&number), key, "a number from 0 to 1", number)?;
        }
        Ok(gradus_agents::ConfigError::unless(self.initial.is_finite(), "initial", "a finite number", self.initial)?)
    }
}

/// A finished episode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Episode {
    /// Training steps so far, at the end of the episode.
    pub step: u64,
    /// Undiscounted return.
    pub episode_return: f64,
    /// Number of steps.
    pub length: u64,
}

/// A tabular agent and the environment that it learns in.
pub struct Learner {
    settings: Settings,
    seed: u64,
    env: Box<dyn Env>,
    values: ActionValues,
    visits: Vec<u32>,
    choices: Stream,
    steps: u64,
    episodes: Vec<Episode>,
    state: usize,
    action: usize,
    /// The current episode.
    episode: Episode,
}

impl Learner {
    /// Creates an untrained agent at the start of its first episode. Observations and actions must be discrete.
    pub fn new(world: &EnvSpec, settings: Settings, seed: u64) -> Result<Self, Error> {
        settings.check()?;
        let env = world.env();
        let (Space::Discrete(states), Space::Discrete(actions)) = (env.observation_space(), env.action_space()) else {
            let got = format!("observations in {} and actions in {}", env.observation_space(), env.action_space());
            return Err(
                gradus_agents::ConfigError { key: world.name.clone(), expected: "discrete observations and actions".into(), got }.into()
            );
        };
        let mut learner = Self {
            settings,
            seed,
            env,
            values: ActionValues::new(states as usize, actions as usize, settings.initial),
            visits: vec![0; states as usize * actions as usize],
            choices: Stream::new(seed, Purpose::Action, 0),
            steps: 0,
            episodes: Vec::new(),
            state: 0,
            action: 0,
            episode: Episode { step: 0, episode_return: 0.0, length: 0 },
        };
        learner.begin();
        Ok(learner)
    }

    /// Returns the current Q.
    pub fn values(&self) -> &ActionValues {
        &self.values
    }

    /// Returns the finished episodes, in order.
    pub fn episodes(&self) -> &[Episode] {
        &self.episodes
    }

    /// Returns the number of steps so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Takes `steps` more steps.
    pub fn advance(&mut self, steps: u64) {
        (0..steps).for_each(|_| self.step());
    }

    /// Continues until `episodes` episodes have ended in total.
    pub fn advance_to_episode(&mut self, episodes: usize) {
        while self.episodes.len() < episodes {
            self.step();
        }
    }

    fn begin(&mut self) {
        let mut observation = [0.0];
        self.env.reset(episode_seed(self.seed, 0, self.episodes.len() as u64), &mut observation);
        self.state = observation[0] as usize;
        self.action = self.choose();
        self.episode = Episode { step: 0, episode_return: 0.0, length: 0 };
    }

    fn choose(&mut self) -> usize {
        epsilon_greedy(self.values.row(self.state), self.settings.epsilon_at(self.steps), &mut self.choices)
    }

    fn step(&mut self) {
        let mut observation = [0.0];
        let (state, action) = (self.state, self.action);
        let step = self.env.step(Action::Discrete(action as u32), &mut observation);
        self.state = observation[0] as usize;
        self.steps += 1;
        self.episode.episode_return += step.reward;
        self.episode.length += 1;

        let Settings { method, gamma, .. } = self.settings;
        let alpha = self.step_size(state, action);
        let experience = Experience { state, action, reward: step.reward, next: self.state, terminated: step.terminated };
        match method {
            Method::QLearning => {
                q_learning(&mut self.values, experience, alpha, gamma);
                self.action = self.choose();
            }
            Method::Sarsa => {
                self.action = self.choose();
                sarsa(&mut self.values, experience, self.action, alpha, gamma);
            }
        }
        if step.done() {
            self.episodes.push(Episode { step: self.steps, ..self.episode });
            self.begin();
        }
    }

    fn step_size(&mut self, state: usize, action: usize) -> f64 {
        let visits = &mut self.visits[state * self.values.actions() + action];
        *visits = visits.saturating_add(1);
        match self.settings.alpha {
            StepSize::Constant(alpha) => alpha,
            StepSize::Visits { power } => f64::from(exp(-(power as f32) * ln(*visits as f32))),
        }
    }
}
