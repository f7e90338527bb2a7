//! The training loop: collect, update, count. It writes nothing; see [`Run`](crate::Run) for runs that leave a folder.

use std::collections::VecDeque;

use gradus_agents::{Agent, Collection, Moment};
use gradus_envs::random::episode_seed;
use gradus_envs::{EnvError, World};
use gradus_nets::cpu::ActorCritic;
use gradus_nets::tensors::{Tensor, Tensors, TensorsError, get_u64};
use gradus_nets::{NetworkError, Policy, threads};

use crate::collect::{Collector, Episode};
use crate::evaluate::{Mode, evaluate};
use crate::{Config, Error};

/// Over how many of the latest episodes the training's mean return is taken.
pub const WINDOW: usize = 100;

/// One iteration: a rollout and an update.
#[derive(Clone, Debug)]
pub struct Iteration {
    /// The number of environment steps so far.
    pub steps: u64,
    /// Figures under Stable-Baselines3's names; NaN where there is none yet.
    pub metrics: Vec<(&'static str, f64)>,
    /// The episodes that ended in it, in the order in which they did.
    pub episodes: Vec<Episode>,
}

/// A training in progress, on the threads set by [`threads::with`], whose number changes nothing but the time.
pub struct Trainer {
    config: Config,
    world: World,
    agent: Box<dyn Agent>,
    policy: ActorCritic,
    collector: Collector,
    rollout_steps: usize,
    iteration: u64,
    recent: VecDeque<(f64, u32)>,
    last_evaluation: f64,
}

impl Trainer {
    /// A training that has not begun, in the world that the configuration names.
    pub fn new(config: Config) -> Result<Self, Error> {
        let world = gradus_envs::registry::find(&config.environment)?;
        Self::in_world(config, world)
    }

    /// A training that has not begun, in a world of your own.
    pub fn in_world(config: Config, world: World) -> Result<Self, Error> {
        let agent = config.agent()?;
        let policy = new_policy(&config, &world)?;
        let collector = Collector::new(&world, config.envs, config.seed)?;
        let Collection::Steps(rollout_steps) = agent.collection();
        let recent = VecDeque::with_capacity(WINDOW);
        Ok(Self { config, world, agent, policy, collector, rollout_steps, iteration: 0, recent, last_evaluation: f64::NAN })
    }

    /// The settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The world.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// The policy as it is now.
    pub fn policy(&self) -> &dyn Policy {
        &self.policy
    }

    /// Environment steps so far.
    pub fn steps(&self) -> u64 {
        self.iteration * self.steps_per_iteration()
    }

    /// Environment steps of the whole training.
    pub fn total_steps(&self) -> u64 {
        self.iterations() * self.steps_per_iteration()
    }

    /// Iterations so far.
    pub fn iteration(&self) -> u64 {
        self.iteration
    }

    /// Whether the training is over: all steps are made, or an evaluation was good enough.
    pub fn is_finished(&self) -> bool {
        self.iteration >= self.iterations() || self.last_evaluation >= self.config.stop_at
    }

    /// Environment steps of one iteration.
    pub fn steps_per_iteration(&self) -> u64 {
        (self.rollout_steps * self.config.envs) as u64
    }

    fn iterations(&self) -> u64 {
        self.config.steps.div_ceil(self.steps_per_iteration())
    }

    /// Mean return of the last [`WINDOW`] episodes; NaN before the first has ended.
    pub fn recent_return(&self) -> f64 {
        self.recent.iter().map(|(episode_return, _)| episode_return).sum::<f64>() / self.recent.len() as f64
    }

    /// One more rollout and update.
    pub fn iterate(&mut self) -> Result<Iteration, Error> {
        let (rollout, episodes) = self.collector.collect(&self.policy, self.rollout_steps, self.steps())?;
        for episode in &episodes {
            if self.recent.len() == WINDOW {
                self.recent.pop_front();
            }
            self.recent.push_back((episode.episode_return, episode.length));
        }
        let moment = Moment { seed: self.config.seed, iteration: self.iteration, iterations: self.iterations() };
        let report = self.agent.update(&mut self.policy, &rollout, moment)?;
        self.iteration += 1;

        let mean_length = self.recent.iter().map(|(_, length)| f64::from(*length)).sum::<f64>() / self.recent.len() as f64;
        let mut metrics = vec![("rollout/ep_rew_mean", self.recent_return()), ("rollout/ep_len_mean", mean_length)];
        metrics.extend(report);
        metrics.push(("eval/mean_reward", self.evaluate_if_due()?));
        Ok(Iteration { steps: self.steps(), metrics, episodes })
    }

    /// The mean return of an evaluation where one is due, NaN elsewhere.
    fn evaluate_if_due(&mut self) -> Result<f64, EnvError> {
        let (every, per_iteration) = (self.config.evaluate_every, self.steps_per_iteration());
        if every == 0 || self.steps() / every == (self.steps() - per_iteration) / every {
            return Ok(f64::NAN);
        }
        // other episodes than an evaluation with the run's seed plays: what decides when to stop must not be what is reported
        let seed = episode_seed(self.config.seed, u64::from(u32::MAX), 1);
        let evaluation = evaluate(&self.policy, &self.world, self.config.evaluate_episodes, seed, Mode::Greedy)?;
        self.last_evaluation = evaluation.mean;
        Ok(evaluation.mean)
    }

    /// Iterates to the end.
    pub fn finish(&mut self) -> Result<(), Error> {
        threads::with_default(|| {
            while !self.is_finished() {
                self.iterate()?;
            }
            Ok(())
        })
    }

    /// All that is needed to go on bit for bit.
    pub fn save(&self) -> Tensors {
        let (environments, positions) = self.collector.save();
        let recent = self.recent.iter().flat_map(|(episode_return, length)| [episode_return.to_bits(), u64::from(*length)]).collect();
        let mut tensors = Tensors::from([
            ("environments".into(), Tensor::u64(environments)),
            ("action_streams".into(), Tensor::u64(positions)),
            ("recent_episodes".into(), Tensor::u64(recent)),
            ("progress".into(), Tensor::u64(vec![self.iteration, self.last_evaluation.to_bits()])),
        ]);
        let prefixed = |prefix: &'static str, tensors: Tensors| tensors.into_iter().map(move |(name, t)| (format!("{prefix}{name}"), t));
        tensors.extend(prefixed(POLICY, self.policy.save()));
        tensors.extend(prefixed(OPTIMISER, self.policy.save_optimiser()));
        tensors
    }

    /// Goes on from what [`save`](Trainer::save) saved; after an error the training is of no use.
    pub fn load(&mut self, tensors: &Tensors) -> Result<(), TensorsError> {
        self.policy.load(&policy_of(tensors))?;
        self.policy.load_optimiser(&without_prefix(tensors, OPTIMISER))?;
        let (environments, positions) = (get_u64(tensors, "environments")?, get_u64(tensors, "action_streams")?);
        self.collector.load(environments, positions).map_err(|error| TensorsError::State(error.to_string()))?;
        let (recent, rest) = get_u64(tensors, "recent_episodes")?.as_chunks::<2>();
        let progress = get_u64(tensors, "progress")?;
        match *progress {
            [iteration, evaluation] if iteration <= self.iterations() && rest.is_empty() && recent.len() <= WINDOW => {
                self.iteration = iteration;
                self.last_evaluation = f64::from_bits(evaluation);
                self.recent = recent.iter().map(|[bits, length]| (f64::from_bits(*bits), *length as u32)).collect();
                Ok(())
            }
            _ => Err(TensorsError::State(format!("progress: expected at most {} iterations, got {progress:?}", self.iterations()))),
        }
    }
}

const POLICY: &str = "policy.";
const OPTIMISER: &str = "optimiser.";

fn without_prefix(tensors: &Tensors, prefix: &str) -> Tensors {
    tensors.iter().filter_map(|(name, tensor)| Some((name.strip_prefix(prefix)?.into(), tensor.clone()))).collect()
}

/// The policy's parameters in what [`Trainer::save`] saved.
pub(crate) fn policy_of(state: &Tensors) -> Tensors {
    without_prefix(state, POLICY)
}

/// The policy that a training with this configuration begins with.
pub fn new_policy(config: &Config, world: &World) -> Result<ActorCritic, NetworkError> {
    let env = world.env();
    ActorCritic::new(&config.network, &env.observation_space(), &env.action_space(), config.seed)
}
