//! Deep deterministic policy gradient (Lillicrap et al., arXiv 1509.02971): Q-learning for continuous actions.
//!
//! Decisions go to a replay buffer. An update samples some of them and moves the critic Q(s, a) towards the target
//!
//! > y = r + gamma Q_target(s', mu_target(s'))
//!
//! After a termination y = r; after a truncation s' is the final observation. The actor mu(s) stands for
//! the maximum over actions: its loss is -Q(s, mu(s)), and the gradient goes through the action (equation 6, the deterministic policy
//! gradient). The target networks of actor and critic follow slowly: p' <- tau p + (1 - tau) p'. The collector adds noise to the actions.
//!
//! The names of the settings are those of Stable-Baselines3. [`td3`](crate::actor_critic::td3) is DDPG with three changes.
//!
//! Left out: batch normalisation and the weight decay of the critic, which the paper has and later implementations do not.

use gradus_base::range::from;
use gradus_base::settings;
use gradus_nets::loss::LogProb;
use gradus_nets::{ActorObjective, Evaluated, Evaluation, Of, QActor, QActorCritic, QActorHead, QValues};

use crate::actor_critic::actor_learner::{ActorLearner, ActorLearnerConfig, CriticObjective};
use crate::agent::UpdateContext;
use crate::config::{AgentConfig, AgentKind, Preset, Setup, Work, preset_files};
use crate::error::{AgentError, ConfigError};
use crate::exploration::{ActionNoise, Exploration, Noisy};
use crate::replay::Sample;
use crate::replay::off_policy::{OffPolicyAgent, OffPolicyConfig, TargetUpdate};

settings! {
    /// The settings of DDPG.
    #[derive(Clone, Debug, PartialEq)]
    pub struct DdpgConfig {
        /// Noise added to the actions: normal, ornstein-uhlenbeck or none.
        pub action_noise: ActionNoise = ActionNoise::Normal,
        /// Standard deviation of the noise, for actions scaled to -1 to 1.
        pub action_noise_std: f32 = 0.1 => from(0.0),
        ..
        /// The settings that agents with a replay buffer, an actor and critics share.
        pub learner: ActorLearnerConfig,
    }
}

impl AgentConfig for DdpgConfig {
    const NAME: &'static str = "ddpg";
    const ABOUT: &'static str = "deep deterministic policy gradient: Q-learning for continuous actions";
    const PRESETS: &'static [Preset] = preset_files!["ddpg":
        "pendulum" "default" "sb3" "cleanrl"; "mountain-car-continuous" "default"; "any" "default"; "LunarLanderContinuous-v3" "default";
        "BipedalWalker-v3" "default"
    ];
    const HAS_ACTOR_CRITIC: bool = false;

    fn build(&self, setup: &Setup<'_>) -> Result<AgentKind, ConfigError> {
        self.learner.check(Self::NAME, setup)?;
        let (noise, std) = (self.action_noise, self.action_noise_std);
        let exploration = Exploration::Noisy(Noisy { random_steps: self.learner.off_policy.learning_starts, noise, std });
        let head = QActorHead { actor: QActor::Deterministic, critics: 1 };
        Ok(self.learner.built((head, exploration), setup, Ddpg { config: self.clone() }))
    }

    fn discounts(&self) -> (f32, f32) {
        (self.learner.off_policy.gamma, 1.0)
    }

    fn work(&self, _: usize) -> Option<Work> {
        let (critics, criticised, share, is_random) = (1, 1, 1.0, false);
        let OffPolicyConfig { updates_per_step: updates, batch_size, .. } = self.learner.off_policy;
        Some(Work::ActorAndCritics { updates, batch_size, critics, criticised, share, is_random })
    }

    fn scheduled(&self, steps: u64, done: u64) -> Vec<(&'static str, f64)> {
        self.learner.off_policy.scheduled(steps, done)
    }
}

/// The loss of a deterministic actor in one observation: -Q_1(s, mu(s)).
pub struct DeterministicObjective;

impl ActorObjective for DeterministicObjective {
    fn critics(&self, _: usize) -> usize {
        1
    }

    fn decision(&self, _: usize, _: Of<LogProb>, q: QValues<'_>) -> Evaluation {
        (-q.at(0)).into()
    }
}

/// Deep deterministic policy gradient.
pub struct Ddpg {
    /// The settings.
    pub config: DdpgConfig,
}

impl Ddpg {
    /// Names of the metrics that are means over updates.
    pub const METRICS: &'static [&'static str] = &[
        "train/actor_loss",
        "train/critic_loss",
        CriticObjective::METRICS[0],
        CriticObjective::METRICS[1],
        "train/actor_grad_norm",
        "train/critic_grad_norm",
    ];
}

impl OffPolicyAgent<dyn QActorCritic> for Ddpg {
    fn learn(&mut self, learner: &mut ActorLearner, sample: &Sample, context: UpdateContext) -> Result<Evaluated, AgentError> {
        // y = r + gamma Q_target(s', mu_target(s'))
        let actions = learner.next_target_actions(sample);
        let values = learner.next_target_values(sample, &actions);
        let (r, gamma) = (&sample.rollout.rewards, self.config.learner.off_policy.gamma);
        let targets = sample.targets(&values, 1, |t, q| r[t] + gamma * q);
        let evaluated = learner.step_critics(sample, &targets, 1.0, context)?;

        learner.step_actor(sample, None, &DeterministicObjective, context)?;
        Ok(evaluated)
    }

    fn target_update(&self) -> TargetUpdate {
        TargetUpdate::Updates { interval: 1, tau: self.config.learner.tau }
    }

    fn metrics(&self) -> Vec<&'static str> {
        Ddpg::METRICS.to_vec()
    }
}
