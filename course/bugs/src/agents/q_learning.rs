//! Q-learning with a table (Watkins, 1989), the whole agent in one file.

use gradus::agents::tabular::{ActionValues, ValueTable};
use gradus::agents::{
    AgentConfig, AgentError, AgentKind, Algorithm, Collection, ConfigError, End, Preset, Report, Rollout, Setup, UpdateContext,
};
use gradus::base::settings;
use gradus::envs::Space;
use gradus::nets::{ActionRows, Behaviour, Observations};

settings! {
    /// The settings.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Config {
        /// The step size.
        pub alpha: f64 = 0.5,
        /// The probability of a random action.
        pub epsilon: f64 = 0.1,
        /// Discount factor.
        pub gamma: f64 = 0.99,
    }
}

impl AgentConfig for Config {
    const NAME: &'static str = "course-q-learning";
    const ABOUT: &'static str = "Q-learning of the course";
    const PRESETS: &'static [Preset] =
        &[Preset { agent: Self::NAME, environment: "any", name: "default", text: "steps = 20_000\nenvs = 1\n" }];
    const HAS_ACTOR_CRITIC: bool = false;

    fn build(&self, setup: &Setup<'_>) -> Result<AgentKind, ConfigError> {
        let env = setup.world.env();
        let Space::Discrete(actions) = env.action_space() else {
            let error = ConfigError::unless(false, "environment", "one with numbered states and actions", &setup.world.name);
            return error.map(|()| unreachable!("the condition is false"));
        };
        // a state is a row of zeros with a one in its place
        let q = ActionValues::new(env.observation_space().width(), actions as usize, 0.0);
        let table = ValueTable { q, v: Vec::new(), epsilon: self.epsilon };
        Ok(AgentKind::Own(Box::new(QLearning { config: self.clone(), table })))
    }

    fn discounts(&self) -> (f32, f32) {
        (self.gamma as f32, 1.0)
    }
}

struct QLearning {
    config: Config,
    table: ValueTable,
}

/// The largest of the values.
fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

impl QLearning {
    /// Learns from a step; `next` is `None` if the episode terminated. Returns the TD error.
    fn learn(&mut self, state: usize, action: usize, reward: f64, next: Option<usize>) -> f64 {
        let Config { alpha, gamma, .. } = self.config;
        let after = next.map_or(0.0, |next| largest(self.table.q.row(next)));
        let target = reward + gamma * after;
        let value = self.table.q.at_mut(state, action);
        let error = target - *value;
        *value += alpha * error;
        error
    }
}

impl Algorithm for QLearning {
    fn behaviour(&self) -> &dyn Behaviour {
        &self.table
    }

    fn behaviour_mut(&mut self) -> &mut dyn Behaviour {
        &mut self.table
    }

    fn into_behaviour(self: Box<Self>) -> Box<dyn Behaviour> {
        Box::new(self.table)
    }

    fn collection(&self) -> Collection {
        Collection::Steps(1)
    }

    fn update(&mut self, rollout: &Rollout, _: UpdateContext) -> Result<Report, AgentError> {
        let (Observations::Rows { rows, width }, ActionRows::Discrete(actions)) = (rollout.store.observations(), &rollout.store.actions)
        else {
            panic!("expected numbered states and actions");
        };
        // a state is a row of zeros with a one in its place
        let state = |row: usize| rows[row * width..(row + 1) * width].iter().position(|x| *x == 1.0).unwrap_or(0);
        let (mut error, mut value) = (0.0, 0.0);
        for segment in &rollout.segments {
            for t in segment.range.clone() {
                let next = match segment.end {
                    _ if t + 1 < segment.range.end => Some(t + 1),
                    End::Terminated => None,
                    End::Truncated { successor } | End::Cut { successor } => Some(successor),
                };
                error = self.learn(state(t), actions[t] as usize, f64::from(rollout.rewards[t]), next.map(state));
                value = largest(self.table.q.row(state(t)));
            }
        }
        Ok(vec![("train/td_error", error), ("train/q_value", value)])
    }
}
