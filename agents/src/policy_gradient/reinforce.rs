//! REINFORCE (Williams, 1992; Sutton and Barto, sections 13.3 and 13.4): the basic policy gradient.
//!
//! ```text
//! for every update:
//!     play whole episodes with the current policy
//!     for each decision: compute the return to go G_t = r_t + gamma G_{t+1} and the baseline b_t
//!     descend the gradient of L by one step
//! ```
//!
//! > L = - mean_t (G_t - b_t) log pi(a_t|s_t) + c_v mean_t (V(s_t) - G_t)^2 / 2 - c_e H
//!
//! Actions with a return above the baseline become more probable. The baseline b reduces the variance of the gradient without changing its
//! mean:
//!
//! | baseline | b | source |
//! | --- | --- | --- |
//! | none | 0 | |
//! | mean | running mean of the returns to go of earlier updates | |
//! | value | V(s_t) of a learned critic; only this baseline has a value loss | |
//! | greedy | return of one greedy episode with the same start | ReMax, Li et al., arXiv 2310.10505 |
//! | leave-one-out | mean return of the other episodes of the group | RLOO, Ahmadian et al., arXiv 2402.14740 |
//!
//! With greedy and leave-one-out, every decision of an episode has the same advantage R - b. R and b are then discounted returns of whole
//! episodes.
//!
//! REINFORCE++ (Hu, arXiv 2501.03262) is `baseline = "none"` with `normalise_returns`, with the KL penalty to the
//! [`reference`](crate::parts::reference) in the reward, and with PPO's minibatches and clip: for `epochs` passes over the rollout, each of
//! `minibatches` steps descends the gradient of the [`surrogate`](crate::parts::surrogate) instead of that of - (G - b) log pi:
//!
//! > - min(rho (G - b), clip(rho, 1 - eps, 1 + eps) (G - b)),   rho = pi(a|s) / pi_old(a|s)
//!
//! The critic's error is as large as the returns, and its gradient grows with the error. On CartPole the norm of the critic's gradient
//! grows from 15 to 200, while that of the actor's gradient is about 3. If both share one clipped norm (`optimiser.max_grad_norm`), a large
//! critic error shortens the actor's step. `optimiser.clip_per_group` clips the two gradients separately.
//!
//! By default the loss is the mean over all decisions, so longer episodes have more weight. With `sequence-sum` and gamma 1 the
//! negative gradient of the policy's loss estimates that of the expected return.
//!
//! Left out, as is common: the factor gamma^t of the book's algorithm. It belongs to the discounted start-state objective and would give
//! late steps almost no weight.

use gradus_base::range::{above, at_least, from};
use gradus_base::tensors::{Tensor, Tensors, TensorsError, get_u64};
use gradus_base::{Settings, settings};
use gradus_nets::{Evaluation, Objective, Outputs, Policy, UpdatedGroups};
use serde::{Deserialize, Serialize};

use crate::agent::{Agent, Collection, Report, UpdateContext};
use crate::config::{Advantages, AgentConfig, AgentKind, Preset, Setup, preset_files};
use crate::error::{AgentError, ConfigError};
use crate::parts::aggregation::Aggregation;
use crate::parts::gae::explained_of_scored;
use crate::parts::groups::{against_greedy, against_others, by_decision};
use crate::parts::learner::Learner;
use crate::parts::minibatches::Minibatches;
use crate::parts::optimiser::OptimiserConfig;
use crate::parts::reference::{KL_REFERENCE, KlPenalty, Reference, ReferenceConfig};
use crate::parts::returns::{Truncated, mean_and_sample_std, returns_to_go};
use crate::parts::rewards::{penalised_rewards, whiten_scored};
use crate::parts::surrogate::{APPROX_KL, Clip, limited};
use crate::rollout::Rollout;

/// The baseline that is subtracted from a return.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Baseline {
    /// No baseline.
    None,
    /// Running mean of the returns to go of earlier updates.
    Mean,
    /// V(s) of a critic, which is trained along with the policy.
    Value,
    /// Return of a greedy episode with the same start.
    Greedy,
    /// Mean return of the other episodes of the group.
    LeaveOneOut,
}

settings! {
    /// The settings of REINFORCE.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ReinforceConfig {
        /// Whole episodes of each environment per update.
        pub episodes_per_env: usize = 1,
        /// Number of episodes in a group (episodes with the same start); a divisor of the number of environments, at least 2 for
        /// leave-one-out.
        pub group_size: usize = 1 => at_least(1),
        /// Discount factor gamma.
        pub gamma: f32 = 0.99 => from(0.0).to(1.0),
        /// Baseline subtracted from the return: none, mean (running mean), value (critic), greedy (greedy episode) or leave-one-out (mean
        /// return of the rest of the group).
        pub baseline: Baseline = Baseline::Value,
        /// Weight of the newest update in the running mean.
        pub baseline_step: f32 = 0.1 => above(0.0).to(1.0),
        /// Return of a truncated episode: bootstraps (adds the critic's value of the final observation, if there is a critic) or ends (adds
        /// 0).
        pub truncated: Truncated = Truncated::Bootstraps,
        /// Whether the returns minus the baseline are normalised over each rollout (mean 0, sample standard deviation 1).
        pub normalise_returns: bool = false,
        /// Passes over each rollout; above 1 only with `clip`.
        pub epochs: usize = 1 => at_least(1),
        /// Minibatches in each pass; above 1 only with `clip`. Fewer if the rollout has fewer texts, or sequences of a network with a cell.
        pub minibatches: usize = 1 => at_least(1),
        /// Clip range eps of the ratio pi / pi_old, as in PPO; `inf`: no ratio, the policy gradient itself.
        pub clip: f32 = f32::INFINITY => above(0.0).or_inf(),
        /// Aggregation of decision losses: token-mean, sequence-mean, sequence-sum or constant-length.
        pub aggregation: Aggregation = Aggregation::TokenMean,
        /// Constant L of constant-length; 0: the number of decisions of the longest possible episode.
        pub constant_length: usize = 0,
        /// Coefficient c_e of the entropy bonus.
        pub entropy_coefficient: f32 = 0.0 => from(0.0),
        /// Coefficient c_v of the value loss, which is half the squared error.
        pub value_coefficient: f32 = 0.5 => from(0.0),
    }
}

impl ReinforceConfig {
    /// Checks that every setting is in range for `envs` environments.
    pub fn check(&self, envs: usize) -> Result<(), ConfigError> {
        self.check_ranges(Self::NAME)?;
        ConfigError::unless_rollout("reinforce.episodes_per_env", self.episodes_per_env, envs)?;
        let (size, has_groups) = (self.group_size, self.baseline == Baseline::LeaveOneOut);
        ConfigError::unless(size > 1 || !has_groups, "reinforce.group_size", "at least 2 with leave-one-out", size)?;
        let expected = format!("a divisor of {envs}, the number of environments");
        ConfigError::unless(envs.is_multiple_of(size), "reinforce.group_size", &expected, size)?;
        let is_one_step = self.epochs == 1 && self.minibatches == 1;
        let expected = "a number above 0 with several epochs or minibatches";
        ConfigError::unless(is_one_step || self.clip < f32::INFINITY, "reinforce.clip", expected, self.clip)
    }
}

impl AgentConfig for ReinforceConfig {
    const NAME: &'static str = "reinforce";
    const ABOUT: &'static str =
        "REINFORCE: returns of whole episodes minus a baseline (running mean, critic, greedy episode or leave-one-out)";
    const PRESETS: &'static [Preset] = preset_files!["reinforce":
        "cartpole" "default" "none" "mean"; "mountain-car" "default"; "mountain-car-continuous" "default";
        "acrobot" "default"; "pendulum" "default"; "text" "default" "rloo" "reinforce-plus-plus";
        "chat" "default" "reinforce-plus-plus"
    ];

    fn build(&self, setup: &Setup<'_>) -> Result<AgentKind, ConfigError> {
        let constant_length = self.aggregation.constant_length("reinforce", self.constant_length, setup.world)?;
        let config = Self { constant_length, ..self.clone() };
        Ok(Reinforce::new(config, setup.optimiser.clone(), setup.reference.clone(), setup.envs)?.into())
    }

    fn discounts(&self) -> (f32, f32) {
        (self.gamma, 1.0)
    }

    fn advantages(&self) -> Advantages {
        let (gamma, lambda) = self.discounts();
        match self.baseline {
            Baseline::LeaveOneOut => Advantages::AgainstOthers { gamma },
            Baseline::None | Baseline::Mean | Baseline::Greedy => Advantages::OfReturns { gamma },
            Baseline::Value => Advantages::OfValues { gamma, lambda },
        }
    }
}

/// REINFORCE's loss of one decision, as a function of the policy's current outputs.
pub struct ReinforceObjective<'a> {
    /// log pi_old(a|s), and the clip range of the ratio; `None`: the loss is that of the policy gradient.
    pub clip: Option<(&'a [f32], Clip)>,
    /// Advantages G - b, normalised if the settings require it.
    pub advantages: &'a [f32],
    /// Returns G, which are the value targets.
    pub returns: &'a [f32],
    /// KL penalty to the reference.
    pub kl_penalty: &'a KlPenalty,
    /// Coefficient c_e of the entropy bonus.
    pub entropy_coefficient: f32,
    /// Coefficient c_v of the value loss; `None` without a critic.
    pub value_coefficient: Option<f32>,
}

impl ReinforceObjective<'_> {
    /// Names of the diagnostics; without a clip only those before [`APPROX_KL`].
    pub const METRICS: &'static [&'static str] = &[
        "train/policy_gradient_loss",
        "train/value_loss",
        "train/entropy_loss",
        KL_REFERENCE,
        APPROX_KL,
        "train/clip_fraction",
        "train/clip_low",
        "train/clip_high",
    ];

    /// Returns the names of the diagnostics that this objective has.
    fn metrics(&self) -> &'static [&'static str] {
        if self.clip.is_some() { Self::METRICS } else { &Self::METRICS[..4] }
    }
}

impl Objective for ReinforceObjective<'_> {
    #[inline(always)]
    fn decision(&self, i: usize, pi: Outputs) -> Evaluation {
        let a = self.advantages[i];
        let (policy_loss, metrics) = match self.clip {
            None => (-a * pi.log_prob, [f32::NAN; 4]),
            Some((old_log_probs, clip)) => {
                let log_ratio = limited(pi.log_prob - old_log_probs[i]);
                let ratio = log_ratio.exp();
                (-(ratio * a).min(clip.of(ratio) * a), clip.metrics(log_ratio.value(), ratio.value(), a))
            }
        };
        let value_loss = 0.5 * (pi.value - self.returns[i]).squared();
        let kl = self.kl_penalty.term(i, pi);
        let (c_v, c_e) = (self.value_coefficient.unwrap_or(0.0), self.entropy_coefficient);
        let loss = policy_loss + kl.loss + c_v * value_loss - c_e * pi.entropy;

        let value_loss = if self.value_coefficient.is_some() { value_loss.value() } else { f32::NAN };
        let ([approx_kl, outside, low, high], entropy_loss) = (metrics, -pi.entropy.value());
        loss.with_diagnostics([policy_loss.value(), value_loss, entropy_loss, kl.divergence, approx_kl, outside, low, high])
    }

    fn updates(&self) -> UpdatedGroups {
        if self.value_coefficient.is_some() { UpdatedGroups::All } else { UpdatedGroups::Actor }
    }
}

/// REINFORCE.
pub struct Reinforce {
    config: ReinforceConfig,
    optimiser: OptimiserConfig,
    reference: Reference,
    /// Running mean of the returns to go; `None` before the first update.
    mean_return: Option<f64>,
}

impl Reinforce {
    /// Creates REINFORCE with these settings, for `envs` environments.
    pub fn new(config: ReinforceConfig, optimiser: OptimiserConfig, reference: ReferenceConfig, envs: usize) -> Result<Self, ConfigError> {
        config.check(envs)?;
        config.aggregation.check("reinforce", config.constant_length)?;
        optimiser.check()?;
        Ok(Self { config, optimiser, reference: Reference::new(reference)?, mean_return: None })
    }

    /// Returns G - b of every decision.
    fn advantages(&self, rollout: &Rollout, returns: &[f32], values: &[f32]) -> Vec<f32> {
        match self.config.baseline {
            Baseline::None => returns.to_vec(),
            Baseline::Mean => returns.iter().map(|g| g - self.mean_return.unwrap_or(0.0) as f32).collect(),
            Baseline::Value => returns.iter().zip(values).map(|(g, v)| g - v).collect(),
            Baseline::Greedy => by_decision(rollout, &against_greedy(rollout, returns, self.config.gamma)),
            Baseline::LeaveOneOut => by_decision(rollout, &against_others(rollout, returns)),
        }
    }

    /// Moves the running mean towards the mean of `returns`.
    fn follow(&mut self, returns: impl ExactSizeIterator<Item = f32>) {
        if returns.len() > 0 {
            let (newest, _) = mean_and_sample_std(returns);
            let step = f64::from(self.config.baseline_step);
            self.mean_return = Some(self.mean_return.map_or(newest, |mean| mean + step * (newest - mean)));
        }
    }

    /// Checks that the rollout has greedy episodes if the baseline is greedy.
    fn check_rollout(&self, rollout: &Rollout) -> Result<(), ConfigError> {
        let groups = rollout.segments.iter().map(|segment| segment.group.0 as usize + 1).max().unwrap_or(0);
        let got = rollout.greedy_rewards.len();
        let has_greedy = self.config.baseline != Baseline::Greedy || got >= groups;
        ConfigError::unless(has_greedy, "reinforce.baseline", "a rollout with a greedy episode of every group", got)
    }
}

impl Agent for Reinforce {
    fn collection(&self) -> Collection {
        let Self { config: ReinforceConfig { episodes_per_env, group_size, baseline, .. }, .. } = self;
        Collection::Episodes { per_env: *episodes_per_env, group: *group_size, greedy: *baseline == Baseline::Greedy }
    }

    fn batch(&self, decisions: usize) -> usize {
        decisions / self.config.minibatches
    }

    fn kept_policies(&self) -> usize {
        self.reference.kept_policies()
    }

    fn kept_distributions(&self) -> usize {
        self.reference.kept_distributions()
    }

    fn begin(&mut self, policy: &dyn Policy) {
        self.reference.begin(policy);
    }

    fn update(&mut self, policy: &mut dyn Policy, rollout: &Rollout, context: UpdateContext) -> Result<Report, AgentError> {
        let config = &self.config;
        self.check_rollout(rollout)?;
        let has_critic = config.baseline == Baseline::Value;
        let mut values = Vec::new();
        if has_critic {
            policy.values(&rollout.store, &mut values);
        }

        // returns to go minus the baseline
        let kl_penalty = self.reference.penalty(rollout);
        let returns = returns_to_go(rollout, &penalised_rewards(rollout, &kl_penalty, false), &values, (config.gamma, config.truncated));
        let mut advantages = self.advantages(rollout, &returns, &values);
        context.check_advantages(rollout, &advantages)?;
        if config.normalise_returns {
            whiten_scored(rollout, &mut advantages, false);
        }

        // gradient steps: one, unless there is a clip
        let objective = ReinforceObjective {
            clip: (config.clip < f32::INFINITY).then_some((&*rollout.log_probs, Clip { low: config.clip, high: config.clip })),
            advantages: &advantages,
            returns: &returns,
            kl_penalty: &kl_penalty,
            entropy_coefficient: config.entropy_coefficient,
            value_coefficient: has_critic.then_some(config.value_coefficient),
        };
        let mut learner = Learner::new(policy, rollout, &self.optimiser, context)
            .with_minibatches(Minibatches::scored(rollout, config.aggregation, config.constant_length))
            .with_kl_penalty(&kl_penalty)
            .with_metrics(objective.metrics());
        let all = learner.all();
        'epochs: for _ in 0..config.epochs {
            let is_one_step = config.epochs * config.minibatches == 1;
            for minibatch in if is_one_step { vec![all.clone()] } else { learner.minibatches(config.minibatches) } {
                learner.gradient(&minibatch, &objective)?;
                if learner.exceeds_stop_kl() {
                    break 'epochs;
                }
                if !minibatch.indices.is_empty() {
                    learner.step();
                }
            }
        }
        learner.check_parameters()?;
        self.reference.finish(learner.policy(), rollout, &kl_penalty);

        let explained = if has_critic { explained_of_scored(rollout, &values, &returns) } else { f64::NAN };
        let baseline = if config.baseline == Baseline::Mean { self.mean_return.unwrap_or(0.0) } else { f64::NAN };
        let unscored = rollout.frac_unscored();
        self.follow(all.indices.iter().map(|i| returns[*i as usize]));
        let metrics = [("train/explained_variance", explained), ("train/baseline", baseline), ("train/frac_unscored", unscored)];
        Ok(learner.report(metrics, []))
    }

    fn save(&self) -> Tensors {
        let mean = self.mean_return.map(f64::to_bits);
        let mut tensors = self.reference.save();
        tensors.insert("mean_return".into(), Tensor::u64(mean.into_iter().collect()));
        tensors
    }

    fn load(&mut self, policy: &dyn Policy, state: &Tensors) -> Result<(), TensorsError> {
        self.reference.load(policy, state)?;
        let mean = get_u64(state, "mean_return")?.first().map(|bits| f64::from_bits(*bits));
        match mean {
            Some(mean) if !mean.is_finite() => {
                Err(TensorsError::NotFinite { name: "mean_return".into(), got: mean.to_string(), position: 0 })
            }
            mean => {
                self.mean_return = mean;
                Ok(())
            }
        }
    }
}
