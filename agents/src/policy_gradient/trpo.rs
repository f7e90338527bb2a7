//! Trust region policy optimisation (Schulman et al., arXiv 1502.05477), which leads from A2C to PPO.
//!
//! Each update maximises the surrogate over all policies whose mean divergence from the current policy is at most delta:
//!
//! > maximise mean_t rho_t A_t   subject to   mean_t KL(pi_old(.|s_t) || pi(.|s_t)) <= delta       (equation 14)
//!
//! Let g be the gradient of the surrogate and F the Fisher information matrix. To second order the divergence of a step v is v^T F v / 2.
//! The direction of the step is therefore x = F^-1 g. Conjugate gradients find x from products F v alone; a damping xi is added to the diagonal of F in all of this. The longest allowed step is
//! x sqrt(2 delta / x^T F x) (appendix C). The formula for the divergence is an approximation, so a line search shortens the step until the
//! surrogate has improved and the divergence is at most delta. The critic is trained separately, on minibatches. PPO's clip approximates
//! this method with first derivatives only.
//!
//! Left out: the paper's "vine" sampling, which needs a simulator that can be set to an earlier state.

use gradus_base::random::{Purpose, Stream};
use gradus_base::range::{above, at_least, from};
use gradus_base::{Settings, settings};
use gradus_nets::{Batch, Cell, DIAGNOSTICS, Evaluation, Objective, Outputs, Policy, Store, UpdatedGroups};

use serde::{Deserialize, Serialize};

use crate::agent::{Agent, Collection, Report, UpdateContext};
use crate::config::{AgentConfig, AgentKind, Preset, Setup, preset_files};
use crate::error::{AgentError, ConfigError};
use crate::parts::gae::Gae;
use crate::parts::optimiser::OptimiserConfig;
use crate::parts::returns::Truncated;
use crate::parts::rewards::whiten_scored;
use crate::parts::surrogate::LOG_RATIO_LIMIT;
use crate::rollout::Rollout;

/// How the policy moves along the surrogate's gradient g. The two rules without a trust region came before TRPO, and show what it adds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyStep {
    /// Along (F + xi I)^-1 g, as far as the trust region allows and the line search finds an improvement.
    #[default]
    TrustRegion,
    /// By `step_size` x (F + xi I)^-1 g, the natural gradient (Kakade, 2001) with the damping xi, however large the divergence is.
    Natural,
    /// By `step_size` x g.
    Vanilla,
}

settings! {
    /// The settings of TRPO. The learning rate applies to the critic only: the trust region sets the length of the policy's step.
    #[derive(Clone, Debug, PartialEq)]
    pub struct TrpoConfig {
        /// Steps of each environment in a rollout.
        pub rollout_steps: usize = 256,
        /// Discount factor gamma.
        pub gamma: f32 = 0.99 => from(0.0).to(1.0),
        /// Lambda of GAE.
        pub gae_lambda: f32 = 0.95 => from(0.0).to(1.0),
        /// Return of a truncated episode: bootstraps (adds the value of the final observation) or ends (adds 0; wrong, but common).
        pub truncated: Truncated = Truncated::Bootstraps,
        /// Whether the advantages of each rollout are normalised (mean 0, sample standard deviation 1).
        pub normalise_advantages: bool = true,
        /// Rule of the policy's step: trust-region, or for comparisons natural (a fixed multiple of the damped natural gradient) or vanilla (of the gradient).
        pub step: PolicyStep = PolicyStep::TrustRegion,
        /// Multiple of the gradient for the rules natural and vanilla.
        pub step_size: f32 = 0.1 => above(0.0),
        /// Trust region delta: limit of the mean divergence in one update.
        pub max_kl: f32 = 0.01 => above(0.0),
        /// Iterations of conjugate gradients.
        pub cg_iterations: usize = 15 => at_least(1),
        /// Multiple of the identity that is added to the Fisher information, so that it is invertible.
        pub cg_damping: f32 = 0.1 => from(0.0),
        /// Number n: every n-th decision is used for the Fisher information; 1: all decisions.
        pub fisher_stride: usize = 1 => at_least(1),
        /// Maximum number of candidates in the line search.
        pub line_search_steps: usize = 10 => at_least(1),
        /// Ratio between the lengths of successive candidates in the line search, between 0 and 1.
        pub line_search_shrink: f32 = 0.8,
        /// Passes of the critic over each rollout.
        pub critic_epochs: usize = 10 => at_least(1),
        /// Decisions in a minibatch of the critic; the last minibatch of an epoch may be smaller.
        pub critic_minibatch_size: usize = 128 => at_least(1),
    }
}

impl TrpoConfig {
    /// Checks that every setting is in range for `envs` environments.
    pub fn check(&self, envs: usize) -> Result<(), ConfigError> {
        self.check_ranges(Self::NAME)?;
        ConfigError::unless_rollout("trpo.rollout_steps", self.rollout_steps, envs)?;
        let shrink = self.line_search_shrink;
        ConfigError::unless(shrink > 0.0 && shrink < 1.0, "trpo.line_search_shrink", "a number above 0 and below 1", shrink)
    }
}

impl AgentConfig for TrpoConfig {
    const NAME: &'static str = "trpo";
    const ABOUT: &'static str = "trust region policy optimisation: natural gradient and line search";
    const PRESETS: &'static [Preset] = preset_files!["trpo":
        "cartpole" "default"; "mountain-car" "default"; "mountain-car-continuous" "default"; "acrobot" "default"; "pendulum" "default";
        "LunarLander-v3" "default"; "LunarLanderContinuous-v3" "default"; "BipedalWalker-v3" "default"; "continuous" "default"
    ];

    fn build(&self, setup: &Setup<'_>) -> Result<AgentKind, ConfigError> {
        setup.reference.check_unused(Self::NAME)?;
        let Some(network) = setup.perceptron else {
            let expected = "another agent (a transformer has no Fisher-vector product)";
            return Err(ConfigError::unless(false, "agent", expected, Self::NAME).unwrap_err());
        };
        let (is_shared, gsde) = (network.shared, network.gsde);
        ConfigError::unless(!is_shared, "network.shared", "false (TRPO moves only the actor)", is_shared)?;
        ConfigError::unless(!gsde, "network.gsde", "false (gSDE has no Fisher-vector product)", gsde)?;
        let expected = "none (a recurrent cell has no Fisher-vector product)";
        ConfigError::unless(network.cell == Cell::None, "network.cell", expected, network.cell)?;
        Ok(Trpo::new(self.clone(), setup.optimiser.clone(), setup.envs)?.into())
    }

    fn discounts(&self) -> (f32, f32) {
        (self.gamma, self.gae_lambda)
    }
}

/// Solves F x = b for a symmetric, positive definite F by conjugate gradients (Hestenes and Stiefel, 1952). `product` returns F v for a
/// vector v.
///
/// ```
/// use gradus_agents::trpo::conjugate_gradient;
///
/// let product = |v: &[f32]| vec![4.0 * v[0] + v[1], v[0] + 3.0 * v[1]];
/// let x = conjugate_gradient(product, &[1.0, 2.0], 2);
/// assert!((x[0] - 1.0 / 11.0).abs() < 1e-6 && (x[1] - 7.0 / 11.0).abs() < 1e-6);
/// ```
pub fn conjugate_gradient(mut product: impl FnMut(&[f32]) -> Vec<f32>, b: &[f32], iterations: usize) -> Vec<f32> {
    let mut x = vec![0.0; b.len()];
    let (mut residual, mut direction) = (b.to_vec(), b.to_vec());
    let mut squares = dot(&residual, &residual);
    for _ in 0..iterations {
        if squares < 1e-20 {
            break;
        }
        let along = product(&direction);
        let curvature = dot(&direction, &along);
        if !(curvature > 0.0 && curvature.is_finite()) {
            break; // not positive definite along this direction: more damping is needed
        }
        let alpha = (squares / curvature) as f32;
        for i in 0..b.len() {
            x[i] += alpha * direction[i];
            residual[i] -= alpha * along[i];
        }
        let next = dot(&residual, &residual);
        let beta = (next / squares) as f32;
        direction.iter_mut().zip(&residual).for_each(|(d, r)| *d = r + beta * *d);
        squares = next;
    }
    x
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

/// Indices of the objectives' diagnostics.
const KL: usize = 0;
const ENTROPY: usize = 1;

/// The surrogate loss, -rho A. Its diagnostics are the divergence and the entropy.
struct Surrogate<'a> {
    old_log_probs: &'a [f32],
    advantages: &'a [f32],
}

impl Objective for Surrogate<'_> {
    fn decision(&self, i: usize, pi: Outputs) -> Evaluation {
        let ratio = (pi.log_prob - self.old_log_probs[i]).bounded(f32::NEG_INFINITY, LOG_RATIO_LIMIT).exp();
        let mut diagnostics = [0.0; DIAGNOSTICS];
        diagnostics[KL] = pi.kl_old.value();
        diagnostics[ENTROPY] = pi.entropy.value();
        (-ratio * self.advantages[i]).with_diagnostics(diagnostics)
    }

    fn updates(&self) -> UpdatedGroups {
        UpdatedGroups::Actor
    }
}

/// Half the squared error of the values.
struct ValueError<'a> {
    targets: &'a [f32],
}

impl Objective for ValueError<'_> {
    fn decision(&self, i: usize, pi: Outputs) -> Evaluation {
        (0.5 * (pi.value - self.targets[i]).squared()).into()
    }

    fn updates(&self) -> UpdatedGroups {
        UpdatedGroups::Critic
    }
}

/// Trust region policy optimisation. Actor and critic must not share parameters.
pub struct Trpo {
    config: TrpoConfig,
    optimiser: OptimiserConfig,
}

impl Trpo {
    /// Creates TRPO with these settings, for `envs` environments.
    pub fn new(config: TrpoConfig, optimiser: OptimiserConfig, envs: usize) -> Result<Self, ConfigError> {
        config.check(envs)?;
        optimiser.check()?;
        Ok(Self { config, optimiser })
    }

    /// Moves the policy to the first acceptable candidate of the line search. If no candidate is acceptable, the policy does not change.
    fn improve_policy(
        &self,
        policy: &mut dyn Policy,
        store: &Store,
        surrogate: &Surrogate<'_>,
        context: UpdateContext,
    ) -> Result<Step, AgentError> {
        let config = &self.config;
        let n = surrogate.advantages.len();
        let indices: Vec<u32> = (0..n as u32).collect();
        let weights = vec![1.0 / n as f32; n];
        let mut old = Vec::new();
        policy.distributions(store, &mut old);
        let batch = Batch { old: Some(&old), ..Batch::new(&indices, &weights) };
        let (before, norm) = context.gradient(policy, (store, batch), surrogate, 0)?;
        let uphill: Vec<f32> = policy.last_gradient().iter().map(|g| -g).collect();

        if config.step == PolicyStep::Vanilla {
            return Ok(self.move_freely(policy, (store, batch), surrogate, &uphill, norm));
        }
        // direction and longest step
        let sample: Vec<u32> = (0..n as u32).step_by(config.fisher_stride).collect();
        let sample_weights = vec![1.0 / sample.len() as f32; sample.len()];
        let mut product = |v: &[f32]| {
            let mut product = Vec::new();
            policy.fisher_vector_product(store, Batch::new(&sample, &sample_weights), v, &mut product);
            product.iter_mut().zip(v).for_each(|(p, v)| *p += config.cg_damping * v);
            product
        };
        let direction = conjugate_gradient(&mut product, &uphill, config.cg_iterations);
        if config.step == PolicyStep::Natural {
            return Ok(self.move_freely(policy, (store, batch), surrogate, &direction, norm));
        }
        let curvature = dot(&direction, &product(&direction));
        let unmoved = |kl| Step { share: 0.0, surrogate: -before.loss, kl, entropy: before.diagnostics[ENTROPY], norm };
        if curvature <= 0.0 {
            return Ok(unmoved(0.0)); // for example if all advantages are 0
        }
        let longest = (2.0 * f64::from(config.max_kl) / curvature).sqrt();
        if !longest.is_finite() {
            return Err(context.not_finite("length of the step", longest, 0));
        }

        // line search
        let start = policy.parameters().to_vec();
        let mut share = 1.0;
        for _ in 0..config.line_search_steps {
            let length = (share * longest) as f32;
            let moved: Vec<f32> = start.iter().zip(&direction).map(|(p, d)| p + length * d).collect();
            policy.set_parameters(&moved);
            let after = policy.evaluate(store, batch, surrogate);
            if after.diagnostics[KL] <= f64::from(config.max_kl) && after.loss < before.loss {
                let (kl, entropy) = (after.diagnostics[KL], after.diagnostics[ENTROPY]);
                return Ok(Step { share, surrogate: -after.loss, kl, entropy, norm });
            }
            share *= f64::from(config.line_search_shrink);
        }
        policy.set_parameters(&start);
        Ok(unmoved(0.0))
    }

    /// Moves the policy by a fixed multiple of `direction`, without a limit of the divergence.
    fn move_freely(
        &self,
        policy: &mut dyn Policy,
        (store, batch): (&Store, Batch<'_>),
        surrogate: &Surrogate<'_>,
        direction: &[f32],
        norm: f64,
    ) -> Step {
        let moved: Vec<f32> = policy.parameters().iter().zip(direction).map(|(p, d)| p + self.config.step_size * d).collect();
        policy.set_parameters(&moved);
        let after = policy.evaluate(store, batch, surrogate);
        Step { share: 1.0, surrogate: -after.loss, kl: after.diagnostics[KL], entropy: after.diagnostics[ENTROPY], norm }
    }

    /// Fits the critic to the targets and returns the mean loss over all minibatches.
    fn fit_critic(&self, policy: &mut dyn Policy, store: &Store, targets: &[f32], context: UpdateContext) -> Result<f64, AgentError> {
        let step = self.optimiser.step(context.progress);
        let mut stream = Stream::new(context.seed, Purpose::Shuffle, context.iteration);
        let mut order: Vec<u32> = (0..targets.len() as u32).collect();
        let (mut loss, mut minibatches) = (0.0, 0.0);
        for epoch in 0..self.config.critic_epochs {
            stream.shuffle(&mut order);
            for indices in order.chunks(self.config.critic_minibatch_size) {
                let weights = vec![1.0 / indices.len() as f32; indices.len()];
                let objective = ValueError { targets };
                let (sums, _) = context.gradient(policy, (store, Batch::new(indices, &weights)), &objective, epoch)?;
                policy.apply(&step);
                loss += sums.loss;
                minibatches += 1.0;
            }
        }
        Ok(loss / minibatches)
    }
}

/// The result of the line search.
struct Step {
    share: f64,
    surrogate: f64,
    kl: f64,
    entropy: f64,
    norm: f64,
}

impl Agent for Trpo {
    fn collection(&self) -> Collection {
        Collection::Steps(self.config.rollout_steps)
    }

    fn batch(&self, decisions: usize) -> usize {
        decisions
    }

    fn update(&mut self, policy: &mut dyn Policy, rollout: &Rollout, context: UpdateContext) -> Result<Report, AgentError> {
        let config = &self.config;
        let gae = Gae { gamma: config.gamma, lambda: config.gae_lambda, truncated: config.truncated };
        let mut estimate = gae.estimate(policy, rollout, &rollout.rewards, context)?;
        if config.normalise_advantages {
            whiten_scored(rollout, &mut estimate.advantages, false);
        }

        let surrogate = Surrogate { old_log_probs: &rollout.log_probs, advantages: &estimate.advantages };
        let step = self.improve_policy(policy, &rollout.store, &surrogate, context)?;
        let value_loss = self.fit_critic(policy, &rollout.store, &estimate.targets, context)?;
        context.check_parameters(policy, config.critic_epochs - 1)?;

        Ok(vec![
            ("train/policy_objective", step.surrogate),
            ("train/value_loss", value_loss),
            ("train/entropy_loss", -step.entropy),
            ("train/kl_divergence_loss", step.kl),
            ("train/is_line_search_success", if step.share > 0.0 { 1.0 } else { 0.0 }),
            ("train/step_share", step.share),
            ("train/explained_variance", estimate.explained_variance(rollout)),
            ("train/grad_norm", step.norm),
            ("train/learning_rate", f64::from(self.optimiser.step(context.progress).critic_learning_rate)),
        ])
    }
}
