//! Parallelised Q-network (Gallici et al., arXiv 2407.04811): Q-learning without a replay buffer and without a target network.
//!
//! Many environments take some steps with the same network, each exploring for itself. The targets are Q(lambda) returns within each episode,
//!
//! > G_t = r_t + gamma ((1 - lambda) max_a Q(s_{t+1}, a) + lambda G_{t+1})
//!
//! with the network at the beginning of the update. If the episode terminated, nothing follows its last reward. If a time limit truncated
//! it, or if the rollout ends, max_a Q of the next observation follows. A few epochs of minibatches then move Q(s, a) towards G, with the
//! squared error as the loss. Layer normalisation (`network.layer_norm`) keeps the values from diverging.

use gradus_base::random::{Purpose, Stream};
use gradus_base::range::{at_least, from};
use gradus_base::tensors::{Tensor, Tensors, TensorsError, get_u64, named};
use gradus_base::{Settings, settings};
use gradus_nets::{Batch, Behaviour, Evaluated, QHead, QNetwork, Store, Sums, greedy};

use crate::agent::{Collection, Report, UpdateContext};
use crate::algorithm::Algorithm;
use crate::config::{AgentConfig, AgentKind, Preset, Setup, preset_files};
use crate::error::{AgentError, ConfigError};
use crate::exploration::{EpsilonGreedy, Exploration};
use crate::parts::aggregation::Aggregation;
use crate::parts::minibatches::Minibatches;
use crate::parts::optimiser::OptimiserConfig;
use crate::parts::returns::q_lambda;
use crate::q_learning::dqn::{DqnObjective, TdLoss};
use crate::q_learning::q_learner::checked_gradient;
use crate::rollout::Rollout;

settings! {
    /// The settings of PQN.
    #[derive(Clone, Debug, PartialEq)]
    pub struct PqnConfig {
        /// Steps of each environment in a rollout.
        pub rollout_steps: usize = 32,
        /// Passes over the rollout in each update.
        pub epochs: usize = 4 => at_least(1),
        /// Minibatches in each pass; fewer if the rollout has fewer decisions, texts, or sequences of a network with a cell.
        pub minibatches: usize = 4 => at_least(1),
        /// Discount factor gamma.
        pub gamma: f32 = 0.99 => from(0.0).to(1.0),
        /// Lambda of the targets.
        pub q_lambda: f32 = 0.65 => from(0.0).to(1.0),
        /// Fraction of the training in which epsilon, the probability of a random action, changes linearly.
        pub exploration_fraction: f64 = 0.5 => from(0.0).to(1.0),
        /// Epsilon at the beginning.
        pub exploration_initial_eps: f64 = 1.0 => from(0.0).to(1.0),
        /// Epsilon after `exploration_fraction`.
        pub exploration_final_eps: f64 = 0.05 => from(0.0).to(1.0),
    }
}

impl PqnConfig {
    /// Checks that every setting is in range for `envs` environments.
    pub fn check(&self, envs: usize) -> Result<(), ConfigError> {
        self.check_ranges(Self::NAME)?;
        ConfigError::unless_rollout("pqn.rollout_steps", self.rollout_steps, envs)
    }

    /// How the agent explores in a training of `steps` environment steps.
    pub fn exploration(&self, steps: u64) -> EpsilonGreedy {
        EpsilonGreedy {
            random_steps: 0,
            first: self.exploration_initial_eps,
            last: self.exploration_final_eps,
            over: (self.exploration_fraction * steps as f64).round() as u64,
        }
    }
}

impl AgentConfig for PqnConfig {
    const NAME: &'static str = "pqn";
    const ABOUT: &'static str = "parallelised Q-network: Q(lambda) over many environments, without replay and target network";
    const PRESETS: &'static [Preset] = preset_files!["pqn":
        "cartpole" "default" "cleanrl"; "acrobot" "default" "cleanrl"; "mountain-car" "cleanrl"; "any" "default";
        "asterix" "default"; "breakout" "default"; "freeway" "default"; "seaquest" "default"; "space-invaders" "default"
    ];
    const HAS_ACTOR_CRITIC: bool = false;

    fn build(&self, setup: &Setup<'_>) -> Result<AgentKind, ConfigError> {
        setup.reference.check_unused(Self::NAME)?;
        setup.optimiser.check()?;
        self.check(setup.envs)?;
        let (config, optimiser, steps) = (self.clone(), setup.optimiser.clone(), setup.steps);
        let make = move |network| Box::new(Pqn::new(config, optimiser, steps, network)) as _;
        Ok(AgentKind::ActionValues { head: QHead::default(), replay: None, make: Box::new(make) })
    }

    fn discounts(&self) -> (f32, f32) {
        (self.gamma, self.q_lambda)
    }

    fn scheduled(&self, steps: u64, done: u64) -> Vec<(&'static str, f64)> {
        vec![("epsilon", self.exploration(steps).epsilon(done))]
    }
}

/// Parallelised Q-network.
pub struct Pqn {
    config: PqnConfig,
    optimiser: OptimiserConfig,
    exploration: EpsilonGreedy,
    network: Box<dyn QNetwork>,
    /// Environment steps and optimiser steps so far.
    steps: u64,
    updates: u64,
}

impl Pqn {
    /// Creates PQN with these settings, for a training of `steps` environment steps.
    pub fn new(config: PqnConfig, optimiser: OptimiserConfig, steps: u64, network: Box<dyn QNetwork>) -> Self {
        let exploration = config.exploration(steps);
        Self { config, optimiser, exploration, network, steps: 0, updates: 0 }
    }

    /// Returns the target of every decision.
    fn targets(&mut self, rollout: &Rollout) -> Vec<f32> {
        let (mut q, n) = (Vec::new(), self.network.actions());
        self.network.q_values(&rollout.store, 0..rollout.store.rows(), &mut q);
        let Store { masks, next_masks, .. } = &rollout.store;
        let masks = masks.as_ref().zip(next_masks.as_ref()).map(|(masks, next)| [&masks[..], next].concat());
        let mask = |row: usize| masks.as_ref().map(|masks| &masks[row * n..(row + 1) * n]);
        let values: Vec<f32> = q.chunks(n).enumerate().map(|(row, q)| q[greedy(q, 1, mask(row))]).collect();
        let mut targets = vec![0.0; rollout.len()];
        for segment in &rollout.segments {
            let range = segment.range.clone();
            let (rewards, own) = (&rollout.rewards[range.clone()], &values[range.clone()]);
            q_lambda(rewards, own, segment.bootstrap(&values), self.config.gamma, self.config.q_lambda, &mut targets[range]);
        }
        targets
    }
}

impl Algorithm for Pqn {
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
        Exploration::EpsilonGreedy(self.exploration)
    }

    fn update(&mut self, rollout: &Rollout, context: UpdateContext) -> Result<Report, AgentError> {
        let targets = self.targets(rollout);
        let objective = DqnObjective { targets: &targets, loss: TdLoss::Squared };
        let step = self.optimiser.step(context.progress);
        let mut minibatches = Minibatches::scored(rollout, Aggregation::TokenMean, 0);
        let mut shuffling = Stream::new(context.seed, Purpose::Shuffle, context.iteration);
        let (mut totals, mut norms, mut n) = (Sums::default(), 0.0, 0.0);
        for epoch in 0..self.config.epochs {
            minibatches.shuffle(&mut shuffling);
            for minibatch in minibatches.parts(self.config.minibatches) {
                let batch = Batch::new(&minibatch.indices, &minibatch.weights);
                let (Evaluated { sums, .. }, norm) =
                    checked_gradient(self.network.as_mut(), (&rollout.store, batch), &objective, (context, epoch))?;
                self.network.apply(&step);
                totals.add(&sums);
                (norms, n) = (norms + norm, n + 1.0);
            }
        }
        context.check_parameters(self.network.as_ref(), self.config.epochs)?;
        self.steps += rollout.len() as u64;
        self.updates += n as u64;
        let mut report = vec![("train/loss", totals.loss / n)];
        report.extend(DqnObjective::METRICS.iter().zip(totals.diagnostics).map(|(name, sum)| (*name, sum / n)));
        report.extend([
            ("train/grad_norm", norms / n),
            ("train/learning_rate", f64::from(step.learning_rate)),
            ("train/n_updates", self.updates as f64),
            ("rollout/exploration_rate", self.exploration.epsilon(self.steps)),
        ]);
        Ok(report)
    }

    fn save(&self) -> Tensors {
        named(vec![("counters".into(), Tensor::u64(vec![self.steps, self.updates]))])
    }

    fn load(&mut self, state: &Tensors) -> Result<(), TensorsError> {
        let [steps, updates] = *get_u64(state, "counters")? else {
            return Err(TensorsError::State("counters: expected two numbers".into()));
        };
        (self.steps, self.updates) = (steps, updates);
        Ok(())
    }
}
