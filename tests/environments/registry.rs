//! A registered agent or environment of another crate works with training, resuming, settings with their help, presets and loading. So does
//! an agent without a network.

use gradus::agents::gae::Gae;
use gradus::agents::returns::Truncated;
use gradus::agents::{
    Agent, AgentConfig, AgentError, AgentKind, Algorithm, Collection, ConfigError, End, Preset, Report, Rollout, Setup, UpdateContext,
    registry,
};
use gradus::config::settings::explain;
use gradus::envs::{Action, Env, EnvError, EnvSpec, Space, Step};
use gradus::evaluate::{Mode, evaluate};
use gradus::nets::tensors::{self, Tensor, Tensors, TensorsError, get_f64};
use gradus::nets::{ActionRows, Actor, Batch, Behaviour, Choice, Evaluation, Objective, Observations, Outputs, Policy, settings};
use gradus::saved::{load_behaviour, load_policy};
use gradus::{Config, Run, Show, Trainer};

/// A corridor of five cells. Episodes begin in the middle; the right end gives a reward of 1, the left end 0.
#[derive(Clone, Default)]
struct Corridor {
    at: u64,
}

impl Env for Corridor {
    fn observation_space(&self) -> Space {
        Space::Discrete(5)
    }

    fn action_space(&self) -> Space {
        Space::Discrete(2)
    }

    fn reset(&mut self, _: u64, observation: &mut [f32]) {
        self.at = 2;
        observation[0] = 2.0;
    }

    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        let Action::Discrete(right) = action else { panic!("expected a discrete action") };
        self.at = if right == 1 { self.at + 1 } else { self.at - 1 };
        observation[0] = self.at as f32;
        let ends = self.at == 0 || self.at == 4;
        Step { reward: f64::from(u8::from(self.at == 4)), terminated: ends, truncated: false }
    }

    fn save(&self) -> Vec<u64> {
        vec![self.at]
    }

    fn load(&mut self, state: &[u64]) -> Result<(), EnvError> {
        let [at] = *state else { return Err(EnvError::State("corridor: expected one word".into())) };
        self.at = at;
        Ok(())
    }
}

settings! {
    /// The settings of a plain policy gradient with a critic.
    #[derive(Clone, Debug, PartialEq)]
    pub struct PlainConfig {
        /// Steps of each environment
        /// in a rollout.
        pub rollout_steps: usize = 16,
        /// Discount factor gamma, 0 to 1.
        pub gamma: f32 = 0.9,
    }
}

impl AgentConfig for PlainConfig {
    const NAME: &'static str = "plain";
    const ABOUT: &'static str = "a plain policy gradient";
    const PRESETS: &'static [Preset] = &[Preset {
        agent: "plain",
        environment: "corridor",
        name: "default",
        text: "# Found by hand.\nsteps = 4000\nenvs = 4\n[optimiser]\nlearning_rate = 0.01\n",
    }];

    fn build(&self, setup: &Setup<'_>) -> Result<AgentKind, ConfigError> {
        ConfigError::unless(self.rollout_steps > 0, "plain.rollout_steps", "at least 1", self.rollout_steps)?;
        Ok(Plain { config: self.clone(), optimiser: setup.optimiser.clone() }.into())
    }
}

struct Plain {
    config: PlainConfig,
    optimiser: gradus::agents::OptimiserConfig,
}

struct PlainObjective<'a>(&'a [f32], &'a [f32]);

impl Objective for PlainObjective<'_> {
    fn decision(&self, i: usize, pi: Outputs) -> Evaluation {
        (-self.0[i] * pi.log_prob + 0.5 * (pi.value - self.1[i]).squared()).into()
    }
}

impl Agent for Plain {
    fn collection(&self) -> Collection {
        Collection::Steps(self.config.rollout_steps)
    }

    fn update(&mut self, policy: &mut dyn Policy, rollout: &Rollout, context: UpdateContext) -> Result<Report, AgentError> {
        let (mut values, mut advantages, mut targets) = (Vec::new(), Vec::new(), Vec::new());
        policy.values(&rollout.store, &mut values);
        let gae = Gae { gamma: self.config.gamma, lambda: 0.95, truncated: Truncated::Bootstraps };
        gae.of_rollout(rollout, &values, &mut advantages, &mut targets);
        let indices: Vec<u32> = (0..rollout.len() as u32).collect();
        let weights = vec![1.0 / indices.len() as f32; indices.len()];
        let sums = policy.gradient(&rollout.store, Batch::new(&indices, &weights), &PlainObjective(&advantages, &targets));
        policy.apply(&self.optimiser.step(context.progress));
        Ok(vec![("train/loss", sums.loss)])
    }
}

settings! {
    /// The settings of tabular Q-learning.
    #[derive(Clone, Debug, PartialEq)]
    pub struct TableConfig {
        /// The step size alpha, above 0 and up to 1.
        pub alpha: f64 = 0.5,
        /// The probability of a random action.
        pub epsilon: f32 = 0.2,
        /// Discount factor gamma, 0 to 1.
        pub gamma: f64 = 0.9,
    }
}

impl AgentConfig for TableConfig {
    const NAME: &'static str = "toy-q-learning";
    const ABOUT: &'static str = "tabular Q-learning";
    const HAS_ACTOR_CRITIC: bool = false;

    fn build(&self, setup: &Setup<'_>) -> Result<AgentKind, ConfigError> {
        let env = setup.world.env();
        let Space::Discrete(actions) = env.action_space() else {
            return Err(ConfigError::unless(false, "environment", "one with discrete actions", &setup.world.name).unwrap_err());
        };
        // states are one-hot rows
        let (states, actions) = (env.observation_space().width(), actions as usize);
        let table = Table { q: vec![0.0; states * actions], actions, epsilon: self.epsilon };
        Ok(AgentKind::Own(Box::new(QLearning { config: self.clone(), table })))
    }
}

/// A table of action values, with an epsilon-greedy policy.
#[derive(Clone)]
struct Table {
    q: Vec<f64>,
    actions: usize,
    epsilon: f32,
}

impl Table {
    fn values(&self, row: &[f32]) -> &[f64] {
        let state = row.iter().position(|x| *x == 1.0).expect("a state is a one-hot row");
        &self.q[state * self.actions..(state + 1) * self.actions]
    }
}

fn argmax(values: &[f64]) -> usize {
    (0..values.len()).fold(0, |best, i| if values[i] > values[best] { i } else { best })
}

struct TableActor<'a>(&'a Table);

impl Actor for TableActor<'_> {
    fn act(&mut self, rows: &[f32], _: Option<&[bool]>, mut choice: Choice<'_>, actions: &mut ActionRows, log_probs: &mut [f32]) {
        let width = rows.len() / log_probs.len();
        let chosen = rows.chunks(width).enumerate().map(|(i, row)| {
            let greedy = argmax(self.0.values(row)) as u32;
            if let Choice::Sample(streams) = &mut choice
                && streams[i].unit_f64() < f64::from(self.0.epsilon)
            {
                return streams[i].below(self.0.actions as u32);
            }
            greedy
        });
        *actions = ActionRows::Discrete(chosen.collect());
        log_probs.fill(0.0);
    }
}

impl Behaviour for Table {
    fn observation_width(&self) -> usize {
        self.q.len() / self.actions
    }

    fn actor(&self) -> Box<dyn Actor + '_> {
        Box::new(TableActor(self))
    }

    fn save(&self) -> Tensors {
        Tensors::from([("q".to_string(), Tensor::f64(&[self.observation_width(), self.actions], self.q.clone()))])
    }

    fn load(&mut self, tensors: &Tensors) -> Result<(), TensorsError> {
        self.q = get_f64(tensors, "q", &[self.observation_width(), self.actions])?.to_vec();
        Ok(())
    }
}

struct QLearning {
    config: TableConfig,
    table: Table,
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
            panic!("expected states and discrete actions");
        };
        let row = |i: usize| &rows[i * width..(i + 1) * width];
        let mut error = 0.0;
        for segment in &rollout.segments {
            for t in segment.range.clone() {
                let next = match segment.end {
                    _ if t + 1 < segment.range.end => Some(t + 1),
                    End::Terminated => None,
                    End::Truncated { successor } | End::Cut { successor } => Some(successor),
                };
                let value_tp1 = next.map_or(0.0, |next| self.table.values(row(next)).iter().copied().fold(f64::NEG_INFINITY, f64::max));
                let state = row(t).iter().position(|x| *x == 1.0).expect("a state is a one-hot row");
                let q = &mut self.table.q[state * self.table.actions + actions[t] as usize];
                error = f64::from(rollout.rewards[t]) + self.config.gamma * value_tp1 - *q;
                *q += self.config.alpha * error;
            }
        }
        Ok(vec![("train/td_error", error)])
    }
}

/// Registers the environment and the two agents once for the whole process, as a program does when it starts.
fn register() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        gradus::envs::registry::register(EnvSpec::limited("corridor", 50, Corridor::default)).unwrap();
        registry::register::<PlainConfig>().unwrap();
        registry::register::<TableConfig>().unwrap();
    });
}

/// Checks that an uninterrupted run and a resumed training give the same policy.
fn trains_and_resumes(config: &Config) -> gradus_testing::TempDir {
    let dir = gradus_testing::tempdir().unwrap();
    Run::create(config.clone(), dir.path().join("whole")).unwrap().train(Show::Nothing).unwrap();
    Run::resume(dir.path().join("whole")).unwrap().train(Show::Nothing).unwrap(); // a finished run does not change
    let policy = std::fs::read(dir.path().join("whole").join("policy.safetensors")).unwrap();

    let mut first = Trainer::new(config.clone()).unwrap();
    (0..10).for_each(|_| drop(first.iterate().unwrap()));
    let mut second = Trainer::new(config.clone()).unwrap();
    second.load(&first.save()).unwrap();
    second.finish().unwrap();
    assert_eq!(tensors::decode(&policy).unwrap().0, second.export());
    dir
}

#[test]
fn an_agent_and_an_environment_of_another_crate_train_and_resume() {
    register();
    let config = Config::preset("plain", "corridor", None).unwrap();
    assert_eq!((config.steps, config.envs, config.optimiser.learning_rate), (4000, 4, 0.01));
    let dir = trains_and_resumes(&config);
    let (_, world, policy) = load_policy(dir.path().join("whole")).unwrap();
    assert_eq!(evaluate(policy.as_ref(), &world, 4, 1, Mode::Greedy).unwrap().mean, 1.0);
}

#[test]
fn an_agent_without_a_network_trains_and_resumes() {
    register();
    let config = Config { steps: 2000, envs: 2, ..Config::preset("toy-q-learning", "corridor", None).unwrap() };
    let dir = trains_and_resumes(&config);
    let (_, world, table) = load_behaviour(dir.path().join("whole")).unwrap();
    assert_eq!(evaluate(table.as_ref(), &world, 4, 1, Mode::Greedy).unwrap().mean, 1.0);
    // from cell 2, two steps to the right give the reward 1: Q*(2, right) = 0.9, Q*(3, right) = 1
    let q = table.save()["q"].clone();
    let expected = Tensor::f64(&[5, 2], vec![0.0, 0.0, 0.0, 0.81, 0.729, 0.9, 0.81, 1.0, 0.0, 0.0]);
    assert_eq!(q.shape, expected.shape);
    let near = |tensor: &Tensor| get_f64(&Tensors::from([("q".to_string(), tensor.clone())]), "q", &[5, 2]).unwrap().to_vec();
    assert!(near(&q).iter().zip(near(&expected)).all(|(a, b)| (a - b).abs() < 1e-3), "{:?}", near(&q));
    let error = load_policy(dir.path().join("whole")).map(|_| ()).unwrap_err().to_string();
    assert!(error.ends_with("expected a run with an actor-critic network, got a run of toy-q-learning"), "{error}");
}

#[test]
fn settings_of_a_registered_agent_have_their_help() {
    register();
    let config = Config::preset("plain", "cartpole", None).unwrap().with_setting("plain.gamma=0.5").unwrap();
    let explained = explain(&config);
    let of = |key: &str| explained.iter().find(|(name, ..)| name == key).map(|(_, value, about)| (value.as_str(), about.as_str()));
    assert_eq!(of("plain.gamma"), Some(("0.5", "Discount factor gamma, 0 to 1.")));
    assert_eq!(of("plain.rollout_steps"), Some(("16", "Steps of each environment in a rollout.")));
    assert_eq!(config.algorithm.get::<PlainConfig>().map(|plain| plain.gamma), Some(0.5));
    let error = config.with_setting("plain.gama=0.5").unwrap_err().to_string();
    assert_eq!(error, "unknown setting `plain.gama`; did you mean `plain.gamma`?");
    let zero = Config::preset("plain", "corridor", None).unwrap().with_setting("plain.rollout_steps=0").unwrap();
    let error = gradus::Trainer::new(zero).map(|_| ()).unwrap_err().to_string();
    assert_eq!(error, "plain.rollout_steps: expected at least 1, got 0");
}

#[test]
fn no_agent_can_have_the_name_of_a_setting() {
    for environment in ["cartpole", "addition"] {
        for (key, _) in Config::preset("ppo", environment, None).unwrap().settings() {
            let top = key.split('.').next().unwrap();
            assert!(top == "ppo" || !registry::is_name(top), "{top}");
        }
    }
    assert!(!registry::is_name("format") && !registry::is_name("Two Words") && registry::is_name("q-learning-2"));
}

#[test]
fn names_are_registered_once() {
    register();
    let error = registry::register::<PlainConfig>().unwrap_err().to_string();
    assert_eq!(error, "agent `plain`: expected an unused name of lowercase letters, digits and hyphens that is not a configuration key");
    for name in ["corridor", "cartpole", "addition-3"] {
        let error = gradus::envs::registry::register(EnvSpec::new(name, Corridor::default)).unwrap_err().to_string();
        assert_eq!(error, format!("environment `{name}`: expected a new name, got one that is registered already"));
    }
    let error = Config::preset("plian", "corridor", None).unwrap_err().to_string();
    assert_eq!(error, "unknown agent `plian`; did you mean `plain`?");
}
