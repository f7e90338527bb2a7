//! Deep Q-network with n-step targets (Mnih et al., 2015), the whole agent in one file. Its replay buffer is not saved.

use gradus::agents::{
    AgentConfig, AgentError, AgentKind, Algorithm, Collection, ConfigError, End, EpsilonGreedy, Exploration, OptimiserConfig, Preset,
    Report, Rollout, Setup, UpdateContext,
};
use gradus::base::random::{Purpose, Stream};
use gradus::base::settings;
use gradus::nets::{ActionRows, Batch, Behaviour, Evaluation, QHead, QNetwork, QValues, Store, ValueObjective};

settings! {
    /// The settings.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Config {
        /// Steps of each environment between two updates.
        pub rollout_steps: usize = 4,
        /// Rewards in a target.
        pub n_step: usize = 3,
        /// Steps that the buffer keeps.
        pub buffer_size: usize = 10_000,
        /// Steps before the first update.
        pub learning_starts: u64 = 1_000,
        /// Steps in a minibatch.
        pub batch_size: usize = 64,
        /// Updates between two copies to the target network.
        pub target_update_interval: u64 = 50,
        /// Discount factor.
        pub gamma: f32 = 0.99,
        /// Steps in which epsilon falls.
        pub exploration_steps: u64 = 5_000,
        /// Epsilon at the end.
        pub exploration_final_eps: f64 = 0.05,
    }
}

impl AgentConfig for Config {
    const NAME: &'static str = "course-dqn";
    const ABOUT: &'static str = "DQN of the course";
    const PRESETS: &'static [Preset] = &[Preset {
        agent: Self::NAME,
        environment: "any",
        name: "default",
        text: "steps = 50_000\nenvs = 1\n[optimiser]\nlearning_rate = 1e-3\nschedule = \"constant\"\nmax_grad_norm = 10.0\n",
    }];
    const HAS_ACTOR_CRITIC: bool = false;

    fn build(&self, setup: &Setup<'_>) -> Result<AgentKind, ConfigError> {
        let (config, optimiser) = (self.clone(), setup.optimiser.clone());
        let make = move |network: Box<dyn QNetwork>| {
            let (target, replay) = (network.snapshot(), Replay::new(config.buffer_size));
            Box::new(Dqn { config, optimiser, network, target, replay, steps: 0, updates: 0 }) as Box<dyn Algorithm>
        };
        Ok(AgentKind::ActionValues { head: QHead::default(), replay: None, make: Box::new(make) })
    }

    fn discounts(&self) -> (f32, f32) {
        (self.gamma, 1.0)
    }
}

/// The latest steps. Step i is in slot i modulo the capacity.
struct Replay {
    capacity: usize,
    added: usize,
    observations: Vec<Vec<f32>>,
    actions: Vec<u32>,
    /// The discounted sum of the rewards up to the observation `next`.
    rewards: Vec<f32>,
    /// What the value of the observation `next` is multiplied by: a power of gamma, or 0 if the episode terminated.
    discounts: Vec<f32>,
    next: Vec<Vec<f32>>,
}

impl Replay {
    fn new(capacity: usize) -> Self {
        let (actions, numbers) = (vec![0; capacity], vec![0.0; capacity]);
        Self { capacity, added: 0, observations: Vec::new(), actions, rewards: numbers.clone(), discounts: numbers, next: Vec::new() }
    }

    fn len(&self) -> usize {
        self.added.min(self.capacity)
    }

    fn add(&mut self, observation: &[f32], action: u32, reward: f32, discount: f32, next: &[f32]) {
        if self.added == 0 {
            let empty = vec![vec![0.0; observation.len()]; self.capacity];
            (self.observations, self.next) = (empty.clone(), empty);
        }
        let slot = self.added % self.capacity;
        self.observations[slot] = observation.to_vec();
        self.actions[slot] = action;
        self.rewards[slot] = reward;
        self.discounts[slot] = discount;
        self.next[slot] = next.to_vec();
        self.added += 1;
    }

    fn sample(&self, n: usize, stream: &mut Stream) -> Vec<usize> {
        (0..n).map(|_| stream.below(self.len() as u32) as usize).collect()
    }
}

/// The loss of a step. The targets are numbers.
struct Loss<'a> {
    targets: &'a [f32],
}

impl ValueObjective for Loss<'_> {
    fn decision(&self, i: usize, q: QValues<'_>) -> Evaluation {
        let q = q.at(0);
        let error = q - self.targets[i];
        error.huber(1.0).with_diagnostics([q.value(), error.value().abs()])
    }
}

struct Dqn {
    config: Config,
    optimiser: OptimiserConfig,
    network: Box<dyn QNetwork>,
    target: Box<dyn QNetwork>,
    replay: Replay,
    steps: u64,
    updates: u64,
}

impl Dqn {
    /// Adds the steps of a rollout to the buffer, each with the sum of its next rewards.
    fn remember(&mut self, rollout: &Rollout) {
        let Config { gamma, n_step, .. } = self.config;
        let ActionRows::Discrete(actions) = &rollout.store.actions else { panic!("expected numbered actions") };
        for segment in &rollout.segments {
            let range = segment.range.clone();
            for t in range.clone() {
                let end = (t + n_step).min(range.end);
                let (mut reward, mut power) = (0.0, 1.0);
                for k in t..end {
                    reward += power * rollout.rewards[k];
                    power *= gamma;
                }
                let (next, discount) = match segment.end {
                    _ if end < range.end => (end, power),
                    End::Terminated => (t, 0.0),
                    End::Truncated { successor } | End::Cut { successor } => (successor, power),
                };
                let (observation, next) = (rollout.store.observation(t), rollout.store.observation(next));
                self.replay.add(observation, actions[t], reward, discount, next);
            }
        }
    }

    /// Makes an update. Returns the means of the values and of the errors.
    fn learn(&mut self, context: UpdateContext) -> [f64; 2] {
        let n = self.config.batch_size;
        let slots = self.replay.sample(n, &mut Stream::new(context.seed, Purpose::Replay, self.updates));
        let rows = |of: &[Vec<f32>]| -> Vec<f32> { slots.iter().flat_map(|slot| of[*slot].clone()).collect() };
        let width = self.replay.observations[slots[0]].len();
        let actions: Vec<u32> = slots.iter().map(|slot| self.replay.actions[*slot]).collect();
        // the observations, and behind them those that follow
        let observations = [rows(&self.replay.observations), rows(&self.replay.next)].concat();
        let store = Store::new(width, observations, ActionRows::Discrete(actions));

        // double Q-learning: the network chooses, the target network values
        let (mut chooses, mut values) = (Vec::new(), Vec::new());
        self.network.q_values(&store, n..2 * n, &mut chooses);
        self.target.q_values(&store, n..2 * n, &mut values);
        let count = self.network.actions();
        let targets: Vec<f32> = (0..n)
            .map(|i| {
                let of = |all: &[f32]| all[i * count..(i + 1) * count].to_vec();
                let best = largest(&of(&chooses));
                self.replay.rewards[slots[i]] + self.replay.discounts[slots[i]] * of(&values)[best]
            })
            .collect();

        let (indices, weights): (Vec<u32>, _) = ((0..n as u32).collect(), vec![1.0 / n as f32; n]);
        let sums = self.network.gradient(&store, Batch::new(&indices, &weights), &Loss { targets: &targets }).sums;
        self.network.apply(&self.optimiser.step(context.progress));
        self.updates += 1;
        if self.updates.is_multiple_of(self.config.target_update_interval) {
            self.target.track(self.network.as_ref(), 1.0);
        }
        [sums.diagnostics[0], sums.diagnostics[1]]
    }

    fn schedule(&self) -> EpsilonGreedy {
        let Config { learning_starts, exploration_steps, exploration_final_eps: last, .. } = self.config;
        EpsilonGreedy { random_steps: learning_starts, first: 1.0, last, over: exploration_steps }
    }
}

/// The index of the largest of the values.
fn largest(values: &[f32]) -> usize {
    (0..values.len()).fold(0, |best, i| if values[i] > values[best] { i } else { best })
}

impl Algorithm for Dqn {
    fn behaviour(&self) -> &dyn Behaviour {
        self.network.as_ref()
    }

    fn behaviour_mut(&mut self) -> &mut dyn Behaviour {
        self.network.as_mut()
    }

    fn into_behaviour(self: Box<Self>) -> Box<dyn Behaviour> {
        self.network
    }

    fn collection(&self) -> Collection {
        Collection::Steps(self.config.rollout_steps)
    }

    fn exploration(&self) -> Exploration {
        Exploration::EpsilonGreedy(self.schedule())
    }

    fn begin(&mut self) {
        self.target = self.network.snapshot();
    }

    fn rollouts_per_iteration(&self) -> usize {
        64
    }

    fn update(&mut self, rollout: &Rollout, context: UpdateContext) -> Result<Report, AgentError> {
        self.remember(rollout);
        self.steps += rollout.len() as u64;
        let [q_value, error] = if self.steps > self.config.learning_starts { self.learn(context) } else { [f64::NAN; 2] };
        let mut report = vec![("train/q_value", q_value), ("train/td_error", error)];
        report.push(("train/buffer_size", self.replay.len() as f64));
        report.push(("rollout/exploration_rate", self.schedule().epsilon(self.steps)));
        Ok(report)
    }
}
