//! REINFORCE (Williams, 1992; Sutton and Barto, section 13.3 and 13.4): the policy gradient in its first form.
//!
//! Play whole episodes with the present policy. For every step take the return that followed it, G_t, and follow once the gradient of
//!
//! > L = - mean_t (G_t - b_t) log pi(a_t|s_t) + c_v mean_t (V(s_t) - G_t)^2 / 2 - c_e H
//!
//! so that what was followed by a high return becomes more probable. The baseline b changes nothing on average and calms the noise: it is
//! nothing, the mean return so far, or the value that a critic expects (only then is there a loss of values).
//!
//! Left out, as everybody leaves it out: the factor gamma^t of the book's box, which belongs to the discounted start-state objective and
//! would make late steps count for nothing.

use gradus_nets::tensors::{Tensor, Tensors, TensorsError, get_u64};
use gradus_nets::{Batch, DIAGNOSTICS, Decision, Objective, Output, Policy};
use serde::{Deserialize, Serialize};

use crate::returns::{Truncated, discounted, explained_variance, mean_and_sample_std};
use crate::{Agent, AgentError, Collection, ConfigError, End, Moment, OptimiserConfig, Report, Rollout};

/// What is subtracted from a return.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Baseline {
    /// Nothing.
    None,
    /// The running mean of the returns of earlier updates.
    Mean,
    /// V(s), which a critic learns beside.
    Value,
}

/// The text of this file, from which the command line takes what each setting means.
pub const SOURCE: &str = include_str!("reinforce.rs");

/// The settings of REINFORCE.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReinforceConfig {
    /// Whole episodes of each environment per update.
    pub episodes_per_env: usize,
    /// Discount factor gamma, 0 to 1.
    pub gamma: f32,
    /// What is subtracted from the return: none, mean (running) or value (of a critic).
    pub baseline: Baseline,
    /// How fast the running mean follows: the weight of the newest update's mean, above 0 to 1.
    pub baseline_step: f32,
    /// What a truncated episode's return is: bootstraps (with the critic's value, where there is one) or ends.
    pub truncated: Truncated,
    /// Whether what multiplies log pi is normalised over the update (mean 0, sample standard deviation 1).
    pub normalise_returns: bool,
    /// Coefficient c_e of the entropy bonus.
    pub entropy_coefficient: f32,
    /// Coefficient c_v of the value loss, which is half the squared error.
    pub value_coefficient: f32,
}

impl Default for ReinforceConfig {
    fn default() -> Self {
        Self {
            episodes_per_env: 1,
            gamma: 0.99,
            baseline: Baseline::Value,
            baseline_step: 0.1,
            truncated: Truncated::Bootstraps,
            normalise_returns: false,
            entropy_coefficient: 0.0,
            value_coefficient: 0.5,
        }
    }
}

impl ReinforceConfig {
    /// Whether every setting is in range, with `envs` environments.
    pub fn check(&self, envs: usize) -> Result<(), ConfigError> {
        ConfigError::unless_rollout("reinforce.episodes_per_env", self.episodes_per_env, envs)?;
        ConfigError::unless_fraction("reinforce.gamma", self.gamma)?;
        let step = self.baseline_step;
        ConfigError::unless(step > 0.0 && step <= 1.0, "reinforce.baseline_step", "a number above 0 and up to 1", step)?;
        ConfigError::unless_not_negative("reinforce.entropy_coefficient", self.entropy_coefficient)?;
        ConfigError::unless_not_negative("reinforce.value_coefficient", self.value_coefficient)
    }
}

/// REINFORCE's loss, as a function of what the policy now says of a decision.
pub struct ReinforceObjective<'a> {
    /// G - b, normalised or not.
    pub advantages: &'a [f32],
    /// G, the targets of the values.
    pub returns: &'a [f32],
    /// c_e.
    pub entropy_coefficient: f32,
    /// c_v, or 0 without a critic.
    pub value_coefficient: f32,
}

/// Where the diagnostics stand in the objective's sums.
const POLICY_LOSS: usize = 0;
const VALUE_LOSS: usize = 1;
const ENTROPY: usize = 2;

impl Objective for ReinforceObjective<'_> {
    fn decision(&self, i: usize, now: Output) -> Decision {
        let policy_loss = -self.advantages[i] * now.log_prob;
        let error = now.value - self.returns[i];
        let value_loss = 0.5 * error * error;

        let mut diagnostics = [0.0; DIAGNOSTICS];
        diagnostics[POLICY_LOSS] = policy_loss;
        diagnostics[VALUE_LOSS] = value_loss;
        diagnostics[ENTROPY] = now.entropy;
        Decision {
            loss: policy_loss + self.value_coefficient * value_loss - self.entropy_coefficient * now.entropy,
            derivative: Output {
                log_prob: -self.advantages[i],
                entropy: -self.entropy_coefficient,
                value: self.value_coefficient * error,
                ..Output::default()
            },
            diagnostics,
        }
    }
}

/// REINFORCE.
pub struct Reinforce {
    config: ReinforceConfig,
    optimiser: OptimiserConfig,
    /// The running mean of the returns to go; `None` before the first update.
    mean_return: Option<f64>,
}

impl Reinforce {
    /// REINFORCE with these settings, for `envs` environments.
    pub fn new(config: ReinforceConfig, optimiser: OptimiserConfig, envs: usize) -> Result<Self, ConfigError> {
        config.check(envs)?;
        optimiser.check()?;
        Ok(Self { config, optimiser, mean_return: None })
    }

    /// G_t of every decision, given the values of all rows of the store (none without a critic).
    fn returns(&self, rollout: &Rollout, values: &[f32]) -> Vec<f32> {
        let mut returns = vec![0.0; rollout.len()];
        for segment in &rollout.segments {
            // without a critic nothing is known of what a limit from outside cut off
            let bootstrap = match segment.end {
                End::Truncated { .. } if self.config.truncated == Truncated::Ends => 0.0,
                _ if values.is_empty() => 0.0,
                _ => segment.bootstrap(values),
            };
            let range = segment.range.clone();
            discounted(&rollout.rewards[range.clone()], bootstrap, self.config.gamma, &mut returns[range]);
        }
        returns
    }
}

impl Agent for Reinforce {
    fn collection(&self) -> Collection {
        Collection::Episodes { per_env: self.config.episodes_per_env, group: 1, greedy: false }
    }

    fn update(&mut self, policy: &mut dyn Policy, rollout: &Rollout, moment: Moment) -> Result<Report, AgentError> {
        let config = &self.config;
        let has_critic = config.baseline == Baseline::Value;
        let mut values = Vec::new();
        if has_critic {
            policy.values(&rollout.store, &mut values);
        }

        // returns to go, less the baseline
        let returns = self.returns(rollout, &values);
        let mean_return = self.mean_return.unwrap_or(0.0);
        let mut advantages = returns.clone();
        match config.baseline {
            Baseline::None => {}
            Baseline::Mean => advantages.iter_mut().for_each(|g| *g -= mean_return as f32),
            Baseline::Value => advantages.iter_mut().zip(&values).for_each(|(g, v)| *g -= v),
        }
        moment.check_advantages(&advantages)?;
        if config.normalise_returns && advantages.len() > 1 {
            let (mean, std) = mean_and_sample_std(advantages.iter().copied());
            advantages.iter_mut().for_each(|a| *a = (*a - mean as f32) / (std as f32 + 1e-8));
        }

        // one step
        let indices: Vec<u32> = (0..rollout.len() as u32).collect();
        let weights = vec![1.0 / indices.len() as f32; indices.len()];
        let value_coefficient = if has_critic { config.value_coefficient } else { 0.0 };
        let objective = ReinforceObjective {
            advantages: &advantages,
            returns: &returns,
            entropy_coefficient: config.entropy_coefficient,
            value_coefficient,
        };
        let batch = Batch::new(&indices, &weights);
        let (sums, norm) = moment.gradient(policy, (&rollout.store, batch), &objective, 0)?;
        let step = self.optimiser.step(moment.progress);
        policy.apply(&step);
        moment.check_parameters(policy, 0)?;

        let (newest, _) = mean_and_sample_std(returns.iter().copied());
        self.mean_return = Some(match self.mean_return {
            Some(mean) => mean + f64::from(config.baseline_step) * (newest - mean),
            None => newest,
        });
        let explained = if has_critic { explained_variance(&values[..rollout.len()], &returns) } else { f64::NAN };
        Ok(vec![
            ("train/loss", sums.loss),
            ("train/policy_gradient_loss", sums.diagnostics[POLICY_LOSS]),
            ("train/value_loss", if has_critic { sums.diagnostics[VALUE_LOSS] } else { f64::NAN }),
            ("train/entropy_loss", -sums.diagnostics[ENTROPY]),
            ("train/explained_variance", explained),
            ("train/baseline", if config.baseline == Baseline::Mean { mean_return } else { f64::NAN }),
            ("train/grad_norm", norm),
            ("train/learning_rate", f64::from(step.learning_rate)),
        ])
    }

    fn save(&self) -> Tensors {
        let mean = self.mean_return.map(f64::to_bits);
        Tensors::from([("mean_return".into(), Tensor::u64(mean.into_iter().collect()))])
    }

    fn load(&mut self, _: &dyn Policy, state: &Tensors) -> Result<(), TensorsError> {
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
