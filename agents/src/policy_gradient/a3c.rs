//! Asynchronous advantage actor-critic (Mnih et al., arXiv 1602.01783, algorithm S3), as a deterministic simulation.
//!
//! Several workers learn at once. Each copies the shared parameters theta into its own theta', takes a few steps with theta', computes A2C's
//! gradient at theta', and applies it to theta, which the other workers have changed in the meantime. The number of updates between copying
//! and applying is the staleness of the gradient. The workers share the moments of the optimiser.
//!
//! On real machines the order of the updates depends on chance. Here, each rollout takes a simulated time that a keyed random stream
//! decides, and the gradients are applied in the order in which the rollouts end. The same seed therefore gives the same training. With
//! one worker, no gradient is stale, and the training is that of [`a2c`], bit for bit.
//!
//! The environments are divided evenly among the workers: environment i of n belongs to worker i x workers / n.
//!
//! Left out: updates that overwrite parts of each other (the paper's Hogwild updates take no locks).

use gradus_base::random::{Purpose, Stream};
use gradus_base::range::from;
use gradus_base::settings;
use gradus_base::tensors::{Tensor, Tensors, TensorsError, add_with_prefix, get_u64, without_prefix};
use gradus_nets::{Behaviour, Policy};

use crate::agent::{Agent, Collection, Report, UpdateContext};
use crate::config::{AgentConfig, AgentKind, Preset, Setup, preset_files};
use crate::error::{AgentError, ConfigError};
use crate::parts::optimiser::OptimiserConfig;
use crate::policy_gradient::a2c::{self, A2cConfig};
use crate::rollout::Rollout;

settings! {
    /// The settings of A3C.
    #[derive(Clone, Debug, PartialEq)]
    pub struct A3cConfig {
        /// Number of workers, which divides the number of environments; 0: one for each environment.
        pub workers: usize = 0,
        /// How much the simulated times of rollouts differ: uniformly between 1 - spread and 1 + spread. With 0, the workers take
        /// turns.
        pub spread: f64 = 0.5 => from(0.0).to(1.0),
        ..
        /// The settings of A2C.
        pub a2c: A2cConfig,
    }
}

impl AgentConfig for A3cConfig {
    const NAME: &'static str = "a3c";
    const ABOUT: &'static str = "asynchronous advantage actor-critic, simulated: workers apply stale gradients to shared parameters";
    const PRESETS: &'static [Preset] = preset_files!["a3c": "cartpole" "default"];

    fn build(&self, setup: &Setup<'_>) -> Result<AgentKind, ConfigError> {
        setup.reference.check_unused(Self::NAME)?;
        Ok(A3c::new(self.clone(), setup.optimiser.clone(), (setup.envs, setup.seed))?.into())
    }

    fn discounts(&self) -> (f32, f32) {
        (self.a2c.gamma, self.a2c.gae_lambda)
    }
}

/// Asynchronous advantage actor-critic.
pub struct A3c {
    config: A3cConfig,
    optimiser: OptimiserConfig,
    seed: u64,
    workers: Vec<Worker>,
    /// The network with the parameters of the worker whose rollout ends next.
    acting: Option<Box<dyn Policy>>,
    updates: u64,
    /// Iteration of `staleness`, which has the sum and the number of its updates.
    iteration: Option<u64>,
    staleness: (f64, f64),
}

/// A worker.
#[derive(Clone, Debug, Default)]
struct Worker {
    /// Its parameters theta'.
    parameters: Vec<f32>,
    /// Updates of the shared parameters before it copied them.
    copied: u64,
    /// Number of its current rollout, and the simulated time at which the rollout ends.
    rollout: u64,
    end: f64,
}

impl A3c {
    /// Creates A3C with these settings, for a number of environments and a seed.
    pub fn new(config: A3cConfig, optimiser: OptimiserConfig, (envs, seed): (usize, u64)) -> Result<Self, ConfigError> {
        let workers = if config.workers == 0 { envs } else { config.workers };
        let expected = format!("a number that divides the number of environments, {envs}");
        ConfigError::unless(envs.is_multiple_of(workers), "a3c.workers", &expected, workers)?;
        config.a2c.check("a3c", envs)?;
        optimiser.check()?;
        let workers = vec![Worker::default(); workers];
        Ok(Self { config, optimiser, seed, workers, acting: None, updates: 0, iteration: None, staleness: (0.0, 0.0) })
    }

    /// Returns the simulated time of a worker's rollout.
    fn duration(&self, worker: usize, rollout: u64) -> f64 {
        let mut stream = Stream::new(self.seed, Purpose::Duration, (worker as u64) << 32 | rollout & 0xFFFF_FFFF);
        1.0 + self.config.spread * stream.uniform(-1.0, 1.0)
    }

    /// Lets the network for the next rollout act with the parameters of its worker.
    fn choose_next(&mut self) {
        let next = self.next_worker();
        if let Some(acting) = &mut self.acting {
            acting.set_parameters(&self.workers[next].parameters);
        }
    }
}

impl Agent for A3c {
    fn collection(&self) -> Collection {
        Collection::Steps(self.config.a2c.rollout_steps)
    }

    fn batch(&self, decisions: usize) -> usize {
        decisions / self.workers.len()
    }

    fn workers(&self) -> usize {
        self.workers.len()
    }

    /// The workers' parameters, and the network that acts.
    fn kept_policies(&self) -> usize {
        self.workers.len() + 1
    }

    /// Returns the worker whose rollout ends first; of several, the one with the smallest number.
    fn next_worker(&self) -> usize {
        (1..self.workers.len()).fold(0, |first, worker| if self.workers[worker].end < self.workers[first].end { worker } else { first })
    }

    fn acting<'a>(&'a self, policy: &'a dyn Policy) -> &'a dyn Behaviour {
        self.acting.as_deref().map_or(policy, |acting| acting)
    }

    fn begin(&mut self, policy: &dyn Policy) {
        for worker in 0..self.workers.len() {
            let end = self.duration(worker, 0);
            self.workers[worker] = Worker { parameters: policy.parameters().to_vec(), copied: 0, rollout: 0, end };
        }
        self.acting = Some(policy.snapshot());
        self.choose_next();
    }

    fn update(&mut self, policy: &mut dyn Policy, rollout: &Rollout, context: UpdateContext) -> Result<Report, AgentError> {
        let (config, worker) = (&self.config.a2c, self.next_worker());
        let shared = policy.parameters().to_vec();

        // A2C's gradient at the worker's parameters
        policy.set_parameters(&self.workers[worker].parameters);
        let (mut learner, explained_variance) = a2c::gradient(config, policy, rollout, &self.optimiser, context)?;

        // applied to the shared parameters
        learner.policy().set_parameters(&shared);
        learner.step();
        learner.check_parameters()?;

        // the worker copies the result and begins its next rollout
        let staleness = (self.updates - self.workers[worker].copied) as f64;
        self.updates += 1;
        let rollout = self.workers[worker].rollout + 1;
        let end = self.workers[worker].end + self.duration(worker, rollout);
        self.workers[worker] = Worker { parameters: learner.policy().parameters().to_vec(), copied: self.updates, rollout, end };
        if self.iteration != Some(context.iteration) {
            (self.iteration, self.staleness) = (Some(context.iteration), (0.0, 0.0));
        }
        self.staleness = (self.staleness.0 + staleness, self.staleness.1 + 1.0);
        let mean = self.staleness.0 / self.staleness.1;
        let report = learner.report([("train/explained_variance", explained_variance)], [("train/staleness", mean)]);
        self.choose_next();
        Ok(report)
    }

    fn save(&self) -> Tensors {
        let mut tensors = Tensors::new();
        let Some(mut network) = self.acting.as_ref().map(|acting| acting.snapshot()) else { return tensors };
        for (i, worker) in self.workers.iter().enumerate() {
            network.set_parameters(&worker.parameters);
            add_with_prefix(&mut tensors, network.save(), &format!("worker.{i}."));
            tensors.insert(format!("worker.{i}.state"), Tensor::u64(vec![worker.copied, worker.rollout, worker.end.to_bits()]));
        }
        tensors.insert("updates".into(), Tensor::u64(vec![self.updates]));
        tensors
    }

    fn load(&mut self, policy: &dyn Policy, state: &Tensors) -> Result<(), TensorsError> {
        let mut network = policy.snapshot();
        for (i, worker) in self.workers.iter_mut().enumerate() {
            let prefix = format!("worker.{i}.");
            let [copied, rollout, end] = *get_u64(state, &format!("{prefix}state"))? else {
                return Err(TensorsError::State(format!("{prefix}state: expected three numbers")));
            };
            let mut parameters = without_prefix(state, &prefix);
            parameters.remove("state");
            network.load(&parameters)?;
            *worker = Worker { parameters: network.parameters().to_vec(), copied, rollout, end: f64::from_bits(end) };
        }
        let [updates] = *get_u64(state, "updates")? else { return Err(TensorsError::State("updates: expected one number".into())) };
        self.updates = updates;
        self.acting = Some(network);
        self.choose_next();
        Ok(())
    }
}
