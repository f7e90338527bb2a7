//! Soft actor-critic (Haarnoja et al., 2018), the whole update rule in one file. The buffer and the loop are those of the library.

use gradus::agents::actor_learner::{ActorLearner, ActorLearnerConfig};
use gradus::agents::{
    ActionNoise, AgentConfig, AgentError, AgentKind, ConfigError, Exploration, Noisy, OffPolicyAgent, OffPolicyConfig, Preset, Sample,
    Setup, TargetUpdate, UpdateContext,
};
use gradus::base::settings;
use gradus::nets::loss::LogProb;
use gradus::nets::math::exp;
use gradus::nets::{
    ActorObjective, Batch, Evaluated, Evaluation, LogStdBounds, Of, QActor, QActorCritic, QActorHead, QValues, ValueObjective,
};

settings! {
    /// The settings.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Config {
        /// Rate of the soft update of the target networks.
        pub tau: f32 = 0.005,
        /// Discount factor.
        pub gamma: f32 = 0.99,
        /// Step size of the temperature.
        pub temperature_rate: f32 = 3e-3,
    }
}

impl AgentConfig for Config {
    const NAME: &'static str = "course-sac";
    const ABOUT: &'static str = "SAC of the course";
    const PRESETS: &'static [Preset] = &[Preset {
        agent: Self::NAME,
        environment: "any",
        name: "default",
        text: "steps = 8_000\nenvs = 1\n[optimiser]\nlearning_rate = 1e-3\nschedule = \"constant\"\nmax_grad_norm = inf\n[network]\nhidden = [64, 64]\n",
    }];
    const HAS_ACTOR_CRITIC: bool = false;

    fn build(&self, setup: &Setup<'_>) -> Result<AgentKind, ConfigError> {
        let off_policy = OffPolicyConfig {
            rollout_steps: 1,
            updates_per_step: 1.0,
            learning_starts: 500,
            buffer_size: 20_000,
            batch_size: 128,
            gamma: self.gamma,
            ..OffPolicyConfig::default()
        };
        let learner = ActorLearnerConfig { tau: self.tau, off_policy };
        learner.check(Self::NAME, setup)?;
        let exploration = Exploration::Noisy(Noisy { random_steps: 500, noise: ActionNoise::None, std: 0.0 });
        let head = QActorHead { actor: QActor::Squashed(LogStdBounds::Clamp), critics: 2 };
        Ok(learner.built((head, exploration), setup, Sac { config: self.clone(), temperature: Temperature { log_alpha: 0.0 } }))
    }

    fn discounts(&self) -> (f32, f32) {
        (self.gamma, 1.0)
    }
}

struct Sac {
    config: Config,
    temperature: Temperature,
}

/// The weight of the entropy.
#[derive(Clone, Copy)]
struct Temperature {
    log_alpha: f32,
}

impl Temperature {
    fn alpha(self) -> f32 {
        exp(self.log_alpha)
    }

    /// Takes a step: the temperature rises while the entropy, -log pi, is below its target.
    fn step(&mut self, log_prob: f32, target_entropy: f32, rate: f32) {
        self.log_alpha += rate * (log_prob + target_entropy);
    }
}

/// The loss of both critics: half of the sum of the squared errors.
struct CriticLoss<'a> {
    targets: &'a [f32],
}

impl ValueObjective for CriticLoss<'_> {
    fn decision(&self, i: usize, q: QValues<'_>) -> Evaluation {
        let y = self.targets[i];
        let mean = 0.5 * (q.values()[0] + q.values()[1]);
        let loss = 0.5 * q.sum(|_, q_k| (q_k - y).squared());
        loss.with_diagnostics([mean, (mean - y).abs()]).with_error((mean - y).abs())
    }
}

/// The loss of the actor: alpha log pi(a|s) less the smaller value of the action.
struct ActorLoss {
    alpha: f32,
}

impl ActorObjective for ActorLoss {
    fn decision(&self, _: usize, log_prob: Of<LogProb>, q: QValues<'_>) -> Evaluation {
        (self.alpha * log_prob - q.min()).with_diagnostics([log_prob.value()])
    }
}

impl OffPolicyAgent<dyn QActorCritic> for Sac {
    fn learn(&mut self, learner: &mut ActorLearner, sample: &Sample, context: UpdateContext) -> Result<Evaluated, AgentError> {
        let (alpha, mut noise) = (self.temperature.alpha(), learner.noise(context));

        // the critics
        let (actions, log_probs) = learner.next_actions(sample, &mut noise);
        let q = learner.next_target_values(sample, &actions);
        let next_values: Vec<f32> = q.chunks(2).zip(&log_probs).map(|(q, log_prob)| q[0].min(q[1]) - alpha * log_prob).collect();
        let (rewards, gamma) = (&sample.rollout.rewards, self.config.gamma);
        // after a termination the value is 0
        let targets = sample.targets(&next_values, 1, |t, next| rewards[t] + gamma * next);
        let weights = ActorLearner::weights(sample);
        let batch = Batch::new(&sample.first, &weights);
        let evaluated = learner.network.critic_gradient(&sample.rollout.store, batch, &CriticLoss { targets: &targets });
        let step = learner.optimiser_step(context);
        learner.network.apply(&step);

        // the actor
        let log_prob = learner.step_actor(sample, Some(&mut noise), &ActorLoss { alpha }, context)?.diagnostics[0] as f32;

        // the temperature
        let target_entropy = -(learner.network.action_width() as f32);
        self.temperature.step(log_prob, target_entropy, self.config.temperature_rate);

        let [q_value, error, ..] = evaluated.sums.diagnostics;
        learner.record([("train/q_value", q_value), ("train/td_error", error)]);
        learner.record([("train/log_prob", f64::from(log_prob)), ("train/ent_coef", f64::from(alpha))]);
        Ok(evaluated)
    }

    fn target_update(&self) -> TargetUpdate {
        TargetUpdate::Updates { interval: 1, tau: self.config.tau }
    }

    fn metrics(&self) -> Vec<&'static str> {
        vec!["train/q_value", "train/td_error", "train/log_prob", "train/ent_coef", "train/actor_loss"]
    }
}
