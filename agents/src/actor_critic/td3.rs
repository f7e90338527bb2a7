//! Twin delayed deep deterministic policy gradient (Fujimoto et al., arXiv 1802.09477): [`ddpg`](crate::actor_critic::ddpg) with three changes against values
//! that are too high. They are numbered in the code.
//!
//! 1. Clipped double Q-learning: two critics learn, and the target takes the smaller of their values.
//! 2. Delayed updates: actor and target networks are updated after every second update of the critics.
//! 3. Target policy smoothing: noise is added to the target's action, drawn for each sampled decision, so that the value of a narrow peak
//!    counts less.
//!
//! > y = r + gamma min_k Q_target,k(s', clip(mu_target(s') + clip(epsilon, -c, c), -1, 1))
//!
//! The names of the settings are those of Stable-Baselines3.

use gradus_base::range::{at_least, from};
use gradus_base::settings;
use gradus_nets::{Evaluated, QActor, QActorCritic, QActorHead};

use crate::actor_critic::actor_learner::{ActorLearner, ActorLearnerConfig};
use crate::actor_critic::ddpg::{Ddpg, DeterministicObjective};
use crate::agent::UpdateContext;
use crate::config::{AgentConfig, AgentKind, Preset, Setup, Work, preset_files};
use crate::error::{AgentError, ConfigError};
use crate::exploration::{ActionNoise, Exploration, Noisy};
use crate::replay::Sample;
use crate::replay::off_policy::{OffPolicyAgent, OffPolicyConfig, TargetUpdate};

settings! {
    /// The settings of TD3.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Td3Config {
        /// Number of critics, 1 to 16.
        pub n_critics: usize = 2 => at_least(1).up_to(16),
        /// Updates of the critics for each update of the actor and of the target networks.
        pub policy_delay: u64 = 2 => at_least(1),
        /// Standard deviation of the noise added to the target's actions, which are scaled to -1 to 1.
        pub target_policy_noise: f32 = 0.2 => from(0.0),
        /// Largest absolute value of this noise.
        pub target_noise_clip: f32 = 0.5 => from(0.0),
        /// Noise added to the actions: normal, ornstein-uhlenbeck or none.
        pub action_noise: ActionNoise = ActionNoise::Normal,
        /// Standard deviation of the noise, for actions scaled to -1 to 1.
        pub action_noise_std: f32 = 0.1 => from(0.0),
        ..
        /// The settings that agents with a replay buffer, an actor and critics share.
        pub learner: ActorLearnerConfig,
    }
}

impl AgentConfig for Td3Config {
    const NAME: &'static str = "td3";
    const ABOUT: &'static str = "twin delayed DDPG: two critics, delayed actor, smoothed targets";
    const PRESETS: &'static [Preset] = preset_files!["td3":
        "pendulum" "default" "sb3" "cleanrl"; "mountain-car-continuous" "default"; "any" "default"; "LunarLanderContinuous-v3" "default";
        "BipedalWalker-v3" "default"
    ];
    const HAS_ACTOR_CRITIC: bool = false;

    fn build(&self, setup: &Setup<'_>) -> Result<AgentKind, ConfigError> {
        self.learner.check(Self::NAME, setup)?;
        let (noise, std) = (self.action_noise, self.action_noise_std);
        let exploration = Exploration::Noisy(Noisy { random_steps: self.learner.off_policy.learning_starts, noise, std });
        let head = QActorHead { actor: QActor::Deterministic, critics: self.n_critics };
        Ok(self.learner.built((head, exploration), setup, Td3 { config: self.clone() }))
    }

    fn discounts(&self) -> (f32, f32) {
        (self.learner.off_policy.gamma, 1.0)
    }

    fn work(&self, _: usize) -> Option<Work> {
        let (critics, criticised, share, is_random) = (self.n_critics, 1, 1.0 / self.policy_delay as f64, false);
        let OffPolicyConfig { updates_per_step: updates, batch_size, .. } = self.learner.off_policy;
        Some(Work::ActorAndCritics { updates, batch_size, critics, criticised, share, is_random })
    }

    fn scheduled(&self, steps: u64, done: u64) -> Vec<(&'static str, f64)> {
        self.learner.off_policy.scheduled(steps, done)
    }
}

/// Twin delayed deep deterministic policy gradient.
pub struct Td3 {
    /// The settings.
    pub config: Td3Config,
}

impl OffPolicyAgent<dyn QActorCritic> for Td3 {
    fn learn(&mut self, learner: &mut ActorLearner, sample: &Sample, context: UpdateContext) -> Result<Evaluated, AgentError> {
        // change 3: noise on the target's actions
        let Td3Config { target_policy_noise, target_noise_clip: c, .. } = self.config;
        let mut noise = learner.noise(context);
        let mut actions = learner.next_target_actions(sample);
        for action in &mut actions {
            let epsilon = (target_policy_noise * noise.normal()).clamp(-c, c);
            *action = (*action + epsilon).clamp(-1.0, 1.0);
        }
        // change 1: the smaller of the critics' values
        let q = learner.next_target_values(sample, &actions);
        let values: Vec<f32> = q.chunks(self.config.n_critics).map(|q| q.iter().copied().fold(f32::INFINITY, f32::min)).collect();
        let (r, gamma) = (&sample.rollout.rewards, self.config.learner.off_policy.gamma);
        let targets = sample.targets(&values, 1, |t, q| r[t] + gamma * q);
        let evaluated = learner.step_critics(sample, &targets, 1.0, context)?;

        // change 2: the actor is updated less often, and so are the target networks
        if (learner.updates() + 1).is_multiple_of(self.config.policy_delay) {
            learner.step_actor(sample, None, &DeterministicObjective, context)?;
        }
        Ok(evaluated)
    }

    fn target_update(&self) -> TargetUpdate {
        TargetUpdate::Updates { interval: self.config.policy_delay, tau: self.config.learner.tau }
    }

    fn metrics(&self) -> Vec<&'static str> {
        Ddpg::METRICS.to_vec()
    }
}
