//! Advantage actor-critic (Mnih et al., arXiv 1602.01783, algorithm S3, in its synchronous form).
//!
//! All environments take a few steps with the current policy. The advantage measures how much better an action was than the critic
//! expected. One optimiser step then descends the gradient of
//!
//! > L = mean_t [- A_t log pi(a_t|s_t) + c_v (V(s_t) - R_t)^2 / 2 - c_e H(pi(.|s_t))]
//!
//! With `gae_lambda = 1` the advantage is A_t = R_t - V(s_t), with the n-step return R_t = r_t + gamma r_{t+1} + ... + gamma^n V(s_{t+n}).
//! With `gae_lambda` below 1 the advantage is GAE, and R_t = A_t + V(s_t).
//!
//! PPO with one epoch of one minibatch and without normalised advantages is the same algorithm: its ratio is 1 and nothing is clipped
//! (Huang et al., arXiv 2205.09123). `tests/updates/lineage.rs` checks this.
//!
//! Left out: the asynchronous workers, see [`a3c`](crate::policy_gradient::a3c).

use gradus_base::range::from;
use gradus_base::{Settings, settings};
use gradus_nets::{Evaluation, Objective, Outputs, Policy};

use crate::agent::{Agent, Collection, Report, UpdateContext};
use crate::config::{AgentConfig, AgentKind, Preset, Setup, preset_files};
use crate::error::{AgentError, ConfigError};
use crate::parts::gae::Gae;
use crate::parts::learner::Learner;
use crate::parts::optimiser::OptimiserConfig;
use crate::parts::returns::Truncated;
use crate::parts::rewards::whiten_scored;
use crate::rollout::Rollout;

settings! {
    /// The settings of A2C.
    #[derive(Clone, Debug, PartialEq)]
    pub struct A2cConfig {
        /// Steps of each environment in a rollout.
        pub rollout_steps: usize = 5,
        /// Discount factor gamma.
        pub gamma: f32 = 0.99 => from(0.0).to(1.0),
        /// Lambda of GAE. With 1, the targets are n-step returns.
        pub gae_lambda: f32 = 1.0 => from(0.0).to(1.0),
        /// Return of a truncated episode: bootstraps (adds the value of the final observation) or ends (adds 0; wrong, but common).
        pub truncated: Truncated = Truncated::Bootstraps,
        /// Whether the advantages of each rollout are normalised (mean 0, sample standard deviation 1).
        pub normalise_advantages: bool = false,
        /// Coefficient c_e of the entropy bonus.
        pub entropy_coefficient: f32 = 0.0 => from(0.0),
        /// Coefficient c_v of the value loss, which is half the squared error. A coefficient 0.5 of the plain squared error is 1.0 here.
        pub value_coefficient: f32 = 1.0 => from(0.0),
    }
}

impl A2cConfig {
    /// Checks that every setting of `agent` is in range for `envs` environments.
    pub fn check(&self, agent: &str, envs: usize) -> Result<(), ConfigError> {
        self.check_ranges(agent)?;
        let key = |name: &str| format!("{agent}.{name}");
        ConfigError::unless_rollout(&key("rollout_steps"), self.rollout_steps, envs)
    }
}

impl AgentConfig for A2cConfig {
    const NAME: &'static str = "a2c";
    const ABOUT: &'static str = "advantage actor-critic: n-step or GAE advantages, one step per rollout";
    const PRESETS: &'static [Preset] = preset_files!["a2c":
        "cartpole" "default"; "mountain-car" "default"; "mountain-car-continuous" "default"; "acrobot" "default"; "pendulum" "default";
        "LunarLander-v3" "default"; "LunarLanderContinuous-v3" "default"; "BipedalWalker-v3" "default"; "atari" "default"; "continuous" "default"
    ];

    fn build(&self, setup: &Setup<'_>) -> Result<AgentKind, ConfigError> {
        setup.reference.check_unused(Self::NAME)?;
        Ok(A2c::new(self.clone(), setup.optimiser.clone(), setup.envs)?.into())
    }

    fn discounts(&self) -> (f32, f32) {
        (self.gamma, self.gae_lambda)
    }
}

/// A2C's loss of one decision, as a function of the policy's current outputs.
pub struct A2cObjective<'a> {
    /// Advantages A.
    pub advantages: &'a [f32],
    /// Value targets R.
    pub targets: &'a [f32],
    /// Coefficient c_e of the entropy bonus.
    pub entropy_coefficient: f32,
    /// Coefficient c_v of the value loss.
    pub value_coefficient: f32,
}

impl A2cObjective<'_> {
    /// Names of the diagnostics.
    pub const METRICS: &'static [&'static str] = &["train/policy_gradient_loss", "train/value_loss", "train/entropy_loss"];
}

impl Objective for A2cObjective<'_> {
    #[inline(always)]
    fn decision(&self, i: usize, pi: Outputs) -> Evaluation {
        let policy_loss = -self.advantages[i] * pi.log_prob;
        let value_loss = 0.5 * (pi.value - self.targets[i]).squared();
        let loss = policy_loss + self.value_coefficient * value_loss - self.entropy_coefficient * pi.entropy;
        loss.with_diagnostics([policy_loss.value(), value_loss.value(), -pi.entropy.value()])
    }
}

/// Advantage actor-critic.
pub struct A2c {
    config: A2cConfig,
    optimiser: OptimiserConfig,
}

impl A2c {
    /// Creates A2C with these settings, for `envs` environments.
    pub fn new(config: A2cConfig, optimiser: OptimiserConfig, envs: usize) -> Result<Self, ConfigError> {
        config.check(A2cConfig::NAME, envs)?;
        optimiser.check()?;
        Ok(Self { config, optimiser })
    }
}

impl Agent for A2c {
    fn collection(&self) -> Collection {
        Collection::Steps(self.config.rollout_steps)
    }

    fn batch(&self, decisions: usize) -> usize {
        decisions
    }

    fn update(&mut self, policy: &mut dyn Policy, rollout: &Rollout, context: UpdateContext) -> Result<Report, AgentError> {
        let (mut learner, explained_variance) = gradient(&self.config, policy, rollout, &self.optimiser, context)?;
        if learner.decisions() > 0 {
            learner.step();
        }
        learner.check_parameters()?;
        Ok(learner.report([("train/explained_variance", explained_variance)], []))
    }
}

/// Computes A2C's gradient at the policy's parameters, for a learner to step along. Also returns the explained variance of the values.
pub(crate) fn gradient<'a>(
    config: &A2cConfig,
    policy: &'a mut dyn Policy,
    rollout: &'a Rollout,
    optimiser: &OptimiserConfig,
    context: UpdateContext,
) -> Result<(Learner<'a>, f64), AgentError> {
    let gae = Gae { gamma: config.gamma, lambda: config.gae_lambda, truncated: config.truncated };
    let mut estimate = gae.estimate(policy, rollout, &rollout.rewards, context)?;
    if config.normalise_advantages {
        whiten_scored(rollout, &mut estimate.advantages, false);
    }
    let objective = A2cObjective {
        advantages: &estimate.advantages,
        targets: &estimate.targets,
        entropy_coefficient: config.entropy_coefficient,
        value_coefficient: config.value_coefficient,
    };
    let mut learner = Learner::new(policy, rollout, optimiser, context).with_metrics(A2cObjective::METRICS);
    learner.gradient(&learner.all(), &objective)?;
    Ok((learner, estimate.explained_variance(rollout)))
}
