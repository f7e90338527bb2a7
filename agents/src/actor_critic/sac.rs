//! Soft actor-critic (Haarnoja et al., arXiv 1812.05905): off-policy learning of a policy with high entropy.
//!
//! The policy is a squashed Gaussian: a = tanh u with u ~ N(mu(s), sigma(s)^2). The return contains the policy's entropy, weighted by a
//! temperature alpha. Decisions go to a replay buffer, and an update samples some of them:
//!
//! - The critics Q_1 and Q_2 learn the target y = r + gamma (min_k Q_target,k(s', a') - alpha log pi(a'|s')), with a' drawn from the current
//!   policy (equations 5 and 6, with the smaller of two critics).
//! - The actor minimises alpha log pi(a|s) - min_k Q_k(s, a), with a drawn from the policy; the gradient goes through a (equation 9).
//! - With `auto_ent_coef`, log alpha minimises -log alpha (log pi(a|s) + H), so that the entropy stays near the target H (equation 18; the
//!   logarithm instead of alpha as in the authors' program and in Stable-Baselines3).
//!
//! After a termination y = r; after a truncation s' is the final observation. With n rewards in a target (`n_step`), y is the sum of gamma^k r_k and gamma^n times the bracket: the
//! entropies of the states between are left out, as in Stable-Baselines3.
//!
//! log pi is the density of actions that are scaled to -1 to 1, as in Stable-Baselines3.

use gradus_base::range::{above, at_least, finite};
use gradus_base::tensors::{Tensor, Tensors, TensorsError, get_u64, named};
use gradus_base::{math, settings};
use gradus_nets::loss::LogProb;
use gradus_nets::{ActorObjective, Evaluated, Evaluation, LogStdBounds, Of, QActor, QActorCritic, QActorHead, QValues};

use crate::actor_critic::actor_learner::{ActorLearner, ActorLearnerConfig, CriticObjective};
use crate::agent::UpdateContext;
use crate::config::{AgentConfig, AgentKind, Preset, Setup, Work, preset_files};
use crate::error::{AgentError, ConfigError};
use crate::exploration::{ActionNoise, Exploration, Noisy};
use crate::replay::Sample;
use crate::replay::off_policy::{OffPolicyAgent, OffPolicyConfig, TargetUpdate};

settings! {
    /// The settings of SAC.
    #[derive(Clone, Debug, PartialEq)]
    pub struct SacConfig {
        /// Number of critics, 1 to 16.
        pub n_critics: usize = 2 => at_least(1).up_to(16),
        /// Temperature alpha: fixed, or the initial one if it is learned.
        pub ent_coef: f32 = 1.0 => above(0.0),
        /// Whether alpha is learned.
        pub auto_ent_coef: bool = true,
        /// Entropy towards which alpha is learned, for each dimension of actions that are scaled to -1 to 1.
        pub target_entropy: f32 = -1.0 => finite(),
        /// How the log standard deviation is kept within bounds: clamp (-20 to 2) or tanh (-5 to 2); unused with gSDE.
        pub log_std_bounds: LogStdBounds = LogStdBounds::Clamp,
        ..
        /// The settings that agents with a replay buffer, an actor and critics share.
        pub learner: ActorLearnerConfig,
    }
}

impl AgentConfig for SacConfig {
    const NAME: &'static str = "sac";
    const ABOUT: &'static str = "soft actor-critic: maximises return and entropy, off-policy";
    const PRESETS: &'static [Preset] = preset_files!["sac":
        "pendulum" "default" "sb3" "cleanrl"; "mountain-car-continuous" "default"; "any" "default"; "LunarLanderContinuous-v3" "default";
        "BipedalWalker-v3" "default"
    ];
    const HAS_ACTOR_CRITIC: bool = false;
    const MEANINGS: &'static [&'static str] = &["log_std_bounds"];

    fn build(&self, setup: &Setup<'_>) -> Result<AgentKind, ConfigError> {
        self.learner.check(Self::NAME, setup)?;
        // after the random actions at the beginning, the policy explores by itself
        let random_steps = self.learner.off_policy.learning_starts;
        let exploration = Exploration::Noisy(Noisy { random_steps, noise: ActionNoise::None, std: 0.0 });
        let head = QActorHead { actor: QActor::Squashed(self.log_std_bounds), critics: self.n_critics };
        Ok(self.learner.built((head, exploration), setup, Sac::new(self.clone())))
    }

    fn discounts(&self) -> (f32, f32) {
        (self.learner.off_policy.gamma, 1.0)
    }

    fn work(&self, _: usize) -> Option<Work> {
        let (critics, criticised, share, is_random) = (self.n_critics, self.n_critics, 1.0, true);
        let OffPolicyConfig { updates_per_step: updates, batch_size, .. } = self.learner.off_policy;
        Some(Work::ActorAndCritics { updates, batch_size, critics, criticised, share, is_random })
    }

    fn scheduled(&self, steps: u64, done: u64) -> Vec<(&'static str, f64)> {
        self.learner.off_policy.scheduled(steps, done)
    }
}

/// The loss of the actor in one observation: alpha log pi(a|s) - min_k Q_k(s, a).
pub struct SacObjective {
    /// The temperature.
    pub alpha: f32,
}

impl ActorObjective for SacObjective {
    fn decision(&self, _: usize, log_prob: Of<LogProb>, q: QValues<'_>) -> Evaluation {
        (self.alpha * log_prob - q.min()).with_diagnostics([log_prob.value()])
    }
}

/// The temperature, learned by Adam.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Temperature {
    log_alpha: f64,
    /// Adam's moments, and the powers of its betas.
    moments: [f64; 2],
    powers: [f64; 2],
}

impl Temperature {
    /// Starts at `alpha`.
    pub fn new(alpha: f32) -> Self {
        Self { log_alpha: f64::from(math::ln(alpha)), moments: [0.0; 2], powers: [1.0; 2] }
    }

    /// Returns alpha.
    pub fn alpha(&self) -> f32 {
        math::exp(self.log_alpha as f32)
    }

    /// Takes a step of Adam (PyTorch's, with its epsilon of 1e-8) on the loss -log alpha (log pi + H), with the mean of log pi and the target
    /// entropy H. Returns the loss before the step.
    pub fn step(&mut self, log_prob: f64, target_entropy: f64, learning_rate: f64) -> f64 {
        // the loss is a product of log alpha and a constant, which is therefore its derivative
        let gradient = -(log_prob + target_entropy);
        let loss = gradient * self.log_alpha;
        let [first, second] = self.moments;
        self.moments = [0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient * gradient];
        self.powers = [0.9 * self.powers[0], 0.999 * self.powers[1]];
        let [first, second] = [0, 1].map(|i| self.moments[i] / (1.0 - self.powers[i]));
        self.log_alpha -= learning_rate * first / (second.sqrt() + 1e-8);
        loss
    }
}

/// Soft actor-critic.
pub struct Sac {
    config: SacConfig,
    /// The temperature.
    pub temperature: Temperature,
}

impl Sac {
    /// Names of the metrics that are means over updates.
    pub const METRICS: &'static [&'static str] = &[
        "train/actor_loss",
        "train/critic_loss",
        CriticObjective::METRICS[0],
        CriticObjective::METRICS[1],
        "train/log_prob",
        "train/ent_coef",
        "train/ent_coef_loss",
        "train/actor_grad_norm",
        "train/critic_grad_norm",
    ];

    /// Creates SAC with these settings.
    pub fn new(config: SacConfig) -> Self {
        Self { temperature: Temperature::new(config.ent_coef), config }
    }
}

impl OffPolicyAgent<dyn QActorCritic> for Sac {
    fn learn(&mut self, learner: &mut ActorLearner, sample: &Sample, context: UpdateContext) -> Result<Evaluated, AgentError> {
        let (alpha, mut noise) = (self.temperature.alpha(), learner.noise(context));
        // y = r + gamma (min_k Q_target,k(s', a') - alpha log pi(a'|s'))
        let (actions, log_probs) = learner.next_actions(sample, &mut noise);
        let q = learner.next_target_values(sample, &actions);
        let least = q.chunks(self.config.n_critics).map(|q| q.iter().copied().fold(f32::INFINITY, f32::min));
        let values: Vec<f32> = least.zip(&log_probs).map(|(q, log_prob)| q - alpha * log_prob).collect();
        let (r, gamma) = (&sample.rollout.rewards, self.config.learner.off_policy.gamma);
        let targets = sample.targets(&values, 1, |t, v| r[t] + gamma * v);
        let evaluated = learner.step_critics(sample, &targets, 0.5, context)?;

        let log_prob = learner.step_actor(sample, Some(&mut noise), &SacObjective { alpha }, context)?.diagnostics[0];
        learner.record([("train/log_prob", log_prob), ("train/ent_coef", f64::from(alpha))]);

        if self.config.auto_ent_coef {
            let target_entropy = f64::from(self.config.target_entropy) * learner.network.action_width() as f64;
            let loss = self.temperature.step(log_prob, target_entropy, f64::from(learner.optimiser_step(context).learning_rate));
            learner.record([("train/ent_coef_loss", loss)]);
        }
        Ok(evaluated)
    }

    fn target_update(&self) -> TargetUpdate {
        TargetUpdate::Updates { interval: 1, tau: self.config.learner.tau }
    }

    fn metrics(&self) -> Vec<&'static str> {
        let is_known = |name: &&str| self.config.auto_ent_coef || *name != "train/ent_coef_loss";
        Sac::METRICS.iter().copied().filter(is_known).collect()
    }

    fn save(&self) -> Tensors {
        let Temperature { log_alpha, moments: [first, second], powers: [of_first, of_second] } = self.temperature;
        let numbers = [log_alpha, first, second, of_first, of_second].map(f64::to_bits);
        named(vec![("temperature".into(), Tensor::u64(numbers.into()))])
    }

    fn load(&mut self, state: &Tensors) -> Result<(), TensorsError> {
        let Ok(numbers) = <[u64; 5]>::try_from(get_u64(state, "temperature")?) else {
            return Err(TensorsError::State("temperature: expected five numbers".into()));
        };
        let [log_alpha, first, second, of_first, of_second] = numbers.map(f64::from_bits);
        self.temperature = Temperature { log_alpha, moments: [first, second], powers: [of_first, of_second] };
        Ok(())
    }
}
