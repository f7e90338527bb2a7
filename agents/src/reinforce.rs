//! REINFORCE (Williams, 1992; Sutton and Barto, section 13.3 and 13.4): the policy gradient in its first form.
//!
//! Play whole episodes with the present policy. For every step take the return that followed it, G_t, and follow once the gradient of
//!
//! > L = - mean_t (G_t - b_t) log pi(a_t|s_t) + c_v mean_t (V(s_t) - G_t)^2 / 2 - c_e H
//!
//! so that what was followed by a high return becomes more probable. The baseline b changes nothing on average and calms the noise:
//!
//! | baseline | b | |
//! | --- | --- | --- |
//! | none | 0 | |
//! | mean | the mean return to go of earlier updates | |
//! | value | V(s_t), which a critic learns beside; only then is there a loss of values | |
//! | greedy | the return of one episode that began alike and took the most probable actions | ReMax, Li et al., arXiv 2310.10505 |
//! | leave-one-out | the mean return of the other episodes of the group | RLOO, Ahmadian et al., arXiv 2402.14740 |
//!
//! The last two compare whole episodes: every decision of an episode has R - b, both discounted. REINFORCE++ (Hu, arXiv 2501.03262) is
//! `baseline = "none"` with `normalise_returns` and the divergence from the [`reference`](crate::reference) charged in the reward.
//!
//! A critic's error is as large as returns are, and so is its gradient: on CartPole its norm grows from 15 to 200, the actor's is about 3. Where
//! both share one norm to be clipped (`optimiser.max_grad_norm`), the critic's error decides how far the actor moves; `optimiser.clip_per_group`
//! clips them apart.
//!
//! The mean over all decisions makes a long episode count more, and its decisions as much as any other's; `sequence-sum` is the gradient of the
//! expected return itself.
//!
//! Left out, as everybody leaves it out: the factor gamma^t of the book's box, which belongs to the discounted start-state objective and
//! would make late steps count for nothing.

use crate::registry::preset_files;
use crate::{AgentConfig, Built, Preset, Setup};
use gradus_nets::settings;
use gradus_nets::tensors::{Tensor, Tensors, TensorsError, get_u64};
use gradus_nets::{Batch, DIAGNOSTICS, LossGrad, Moves, Objective, Policy, PolicyOutput};
use serde::{Deserialize, Serialize};

use crate::groups::{self, leave_one_out};
use crate::mismatch::{AgainstSampler, Mismatch};
use crate::reference::{KlPenalty, Reference, ReferenceConfig};
use crate::returns::{Truncated, discounted, explained_variance, mean_and_sample_std, whiten};
use crate::{Agent, AgentError, Aggregation, Collection, ConfigError, End, Minibatches, OptimiserConfig, Report, Rollout, UpdateContext};

/// What is subtracted from a return.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Baseline {
    /// Nothing.
    None,
    /// The running mean of the returns of earlier updates.
    Mean,
    /// V(s), which a critic learns beside.
    Value,
    /// The return of a greedy episode that began alike, which is played beside.
    Greedy,
    /// The mean return of the others of the group.
    LeaveOneOut,
}

settings! {
    /// The settings of REINFORCE.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct ReinforceConfig {
        /// Whole episodes of each environment per update.
        pub episodes_per_env: usize = 1,
        /// Episodes of a group, which begin alike; a divisor of the number of environments, and at least 2 for leave-one-out.
        pub group_size: usize = 1,
        /// Discount factor gamma, 0 to 1.
        pub gamma: f32 = 0.99,
        /// What is subtracted from the return: none, mean (running), value (of a critic), greedy or leave-one-out (of a group).
        pub baseline: Baseline = Baseline::Value,
        /// How fast the running mean follows: the weight of the newest update's mean, above 0 to 1.
        pub baseline_step: f32 = 0.1,
        /// What a truncated episode's return is: bootstraps (with the critic's value, where there is one) or ends.
        pub truncated: Truncated = Truncated::Bootstraps,
        /// Whether what multiplies log pi is normalised over the update (mean 0, sample standard deviation 1).
        pub normalise_returns: bool = false,
        /// How losses of decisions become one: token-mean, sequence-mean, sequence-sum or constant-length.
        pub aggregation: Aggregation = Aggregation::TokenMean,
        /// The length that constant-length divides by: that of the longest episode there may be.
        pub constant_length: usize = 0,
        /// Coefficient c_e of the entropy bonus.
        pub entropy_coefficient: f32 = 0.0,
        /// Coefficient c_v of the value loss, which is half the squared error.
        pub value_coefficient: f32 = 0.5,
    }
}

impl ReinforceConfig {
    /// Whether every setting is in range, with `envs` environments.
    pub fn check(&self, envs: usize) -> Result<(), ConfigError> {
        ConfigError::unless_rollout("reinforce.episodes_per_env", self.episodes_per_env, envs)?;
        let (size, has_groups) = (self.group_size, self.baseline == Baseline::LeaveOneOut);
        ConfigError::unless_at_least_one("reinforce.group_size", size)?;
        ConfigError::unless(size > 1 || !has_groups, "reinforce.group_size", "at least 2, for leave-one-out leaves none of one", size)?;
        let expected = format!("a divisor of the number of environments, {envs}");
        ConfigError::unless(envs.is_multiple_of(size), "reinforce.group_size", &expected, size)?;
        self.aggregation.check("reinforce", self.constant_length)?;
        ConfigError::unless_fraction("reinforce.gamma", self.gamma)?;
        let step = self.baseline_step;
        ConfigError::unless(step > 0.0 && step <= 1.0, "reinforce.baseline_step", "a number above 0 and up to 1", step)?;
        ConfigError::unless_not_negative("reinforce.entropy_coefficient", self.entropy_coefficient)?;
        ConfigError::unless_not_negative("reinforce.value_coefficient", self.value_coefficient)
    }
}

impl AgentConfig for ReinforceConfig {
    const NAME: &'static str = "reinforce";
    const ABOUT: &'static str =
        "REINFORCE: whole episodes, less a baseline: none, a running mean, a critic, a greedy episode, the others of a group";
    const PRESETS: &'static [Preset] = preset_files![
        "reinforce":
        "cartpole" "default",
        "cartpole" "none",
        "cartpole" "mean",
        "mountain-car" "default",
        "mountain-car-continuous" "default",
        "acrobot" "default",
        "pendulum" "default",
        "text" "default",
    ];

    fn build(&self, setup: &Setup<'_>) -> Result<Built, ConfigError> {
        Ok(Reinforce::new(self.clone(), setup.optimiser.clone(), setup.reference.clone(), setup.envs)?.into())
    }

    fn discounts(&self) -> (f32, f32) {
        (self.gamma, 1.0)
    }
}

/// REINFORCE's loss, as a function of what the policy now says of a decision.
pub struct ReinforceObjective<'a> {
    /// G - b, normalised or not.
    pub advantages: &'a [f32],
    /// G, the targets of the values.
    pub returns: &'a [f32],
    /// What the reference says, and beta where the loss pays for it.
    pub kl_penalty: &'a KlPenalty,
    /// c_e.
    pub entropy_coefficient: f32,
    /// c_v; none without a critic.
    pub value_coefficient: Option<f32>,
}

/// Where the diagnostics stand in the objective's sums.
const POLICY_LOSS: usize = 0;
const VALUE_LOSS: usize = 1;
const ENTROPY: usize = 2;
const KL_REFERENCE: usize = 3;

impl Objective for ReinforceObjective<'_> {
    #[inline(always)]
    fn decision(&self, i: usize, now: PolicyOutput) -> LossGrad {
        let policy_loss = -self.advantages[i] * now.log_prob;
        let error = now.value - self.returns[i];
        let value_loss = 0.5 * error * error;
        let value_coefficient = self.value_coefficient.unwrap_or(0.0);
        let charge = self.kl_penalty.charge(i, now);

        let mut diagnostics = [0.0; DIAGNOSTICS];
        diagnostics[POLICY_LOSS] = policy_loss;
        diagnostics[VALUE_LOSS] = value_loss;
        diagnostics[ENTROPY] = now.entropy;
        diagnostics[KL_REFERENCE] = charge.divergence;
        LossGrad {
            loss: policy_loss + charge.loss + value_coefficient * value_loss - self.entropy_coefficient * now.entropy,
            derivative: PolicyOutput {
                log_prob: charge.d_log_prob - self.advantages[i],
                entropy: -self.entropy_coefficient,
                value: value_coefficient * error,
                kl_ref: charge.d_kl_ref,
                ..PolicyOutput::default()
            },
            diagnostics,
        }
    }

    fn moves(&self) -> Moves {
        if self.value_coefficient.is_some() { Moves::All } else { Moves::Actor }
    }
}

/// REINFORCE.
pub struct Reinforce {
    config: ReinforceConfig,
    optimiser: OptimiserConfig,
    reference: Reference,
    /// The running mean of the returns to go; `None` before the first update.
    mean_return: Option<f64>,
}

impl Reinforce {
    /// REINFORCE with these settings, for `envs` environments.
    pub fn new(config: ReinforceConfig, optimiser: OptimiserConfig, reference: ReferenceConfig, envs: usize) -> Result<Self, ConfigError> {
        config.check(envs)?;
        optimiser.check()?;
        Ok(Self { config, optimiser, reference: Reference::new(reference)?, mean_return: None })
    }

    /// G_t of every decision, given what each is paid and the values of all rows of the store (none without a critic).
    fn returns(&self, rollout: &Rollout, rewards: &[f32], values: &[f32]) -> Vec<f32> {
        let mut returns = vec![0.0; rollout.len()];
        for segment in &rollout.segments {
            // without a critic nothing is known of what a limit from outside cut off
            let bootstrap = match segment.end {
                End::Truncated { .. } if self.config.truncated == Truncated::Ends => 0.0,
                _ if values.is_empty() => 0.0,
                _ => segment.bootstrap(values),
            };
            let range = segment.range.clone();
            discounted(&rewards[range.clone()], bootstrap, self.config.gamma, &mut returns[range]);
        }
        returns
    }

    /// G - b of every decision.
    fn advantages(&self, rollout: &Rollout, returns: &[f32], values: &[f32]) -> Vec<f32> {
        let mut advantages = returns.to_vec();
        match self.config.baseline {
            Baseline::None => {}
            Baseline::Mean => advantages.iter_mut().for_each(|g| *g -= self.mean_return.unwrap_or(0.0) as f32),
            Baseline::Value => advantages.iter_mut().zip(values).for_each(|(g, v)| *g -= v),
            Baseline::Greedy => {
                let greedy = against_greedy(rollout, returns, self.config.gamma);
                fill_episodes(rollout, &greedy, &mut advantages);
            }
            Baseline::LeaveOneOut => fill_episodes(rollout, &against_others(rollout, returns), &mut advantages),
        }
        advantages
    }
}

/// G_0 of a segment; 0 for one without decisions.
fn whole_return(rollout: &Rollout, returns: &[f32], segment: usize) -> f32 {
    let range = &rollout.segments[segment].range;
    if range.is_empty() { 0.0 } else { returns[range.start] }
}

/// The return of every segment minus that of the greedy episode of its group (Li et al., equation 5), both discounted by `gamma`. Nothing is
/// known of what a limit from outside cut off, of neither.
///
/// # Panics
/// If a group has no greedy episode.
pub fn against_greedy(rollout: &Rollout, returns: &[f32], gamma: f32) -> Vec<f32> {
    let return_of = |rewards: &Vec<f32>| {
        let mut returns = vec![0.0; rewards.len()];
        discounted(rewards, 0.0, gamma, &mut returns);
        returns.first().copied().unwrap_or(0.0)
    };
    let greedy: Vec<f32> = rollout.greedy_rewards.iter().map(return_of).collect();
    let of_group = |i: usize| greedy[rollout.segments[i].group.0 as usize];
    (0..rollout.segments.len()).map(|i| whole_return(rollout, returns, i) - of_group(i)).collect()
}

/// The return of every segment minus the mean of the others of its group (Ahmadian et al., section 3.2).
pub fn against_others(rollout: &Rollout, returns: &[f32]) -> Vec<f32> {
    let mut advantages = vec![0.0; rollout.segments.len()];
    for group in groups::by_id(&rollout.segments) {
        let of_group: Vec<f64> = group.iter().map(|i| f64::from(whole_return(rollout, returns, *i))).collect();
        group.iter().zip(leave_one_out(&of_group)).for_each(|(i, a)| advantages[*i] = a as f32);
    }
    advantages
}

/// Gives every decision what its episode has.
pub(crate) fn fill_episodes(rollout: &Rollout, of_segments: &[f32], advantages: &mut [f32]) {
    for (segment, a) in rollout.segments.iter().zip(of_segments) {
        advantages[segment.range.clone()].fill(*a);
    }
}

impl Agent for Reinforce {
    fn collection(&self) -> Collection {
        let Self { config: ReinforceConfig { episodes_per_env, group_size, baseline, .. }, .. } = self;
        Collection::Episodes { per_env: *episodes_per_env, group: *group_size, greedy: *baseline == Baseline::Greedy }
    }

    fn begin(&mut self, policy: &dyn Policy) {
        self.reference.begin(policy);
    }

    fn update(&mut self, policy: &mut dyn Policy, rollout: &Rollout, context: UpdateContext) -> Result<Report, AgentError> {
        let config = &self.config;
        let groups = rollout.segments.iter().map(|segment| segment.group.0 as usize + 1).max().unwrap_or(0);
        let has_greedy = config.baseline != Baseline::Greedy || rollout.greedy_rewards.len() >= groups;
        ConfigError::unless(
            has_greedy,
            "reinforce.baseline",
            "a greedy episode of every group in the rollout",
            rollout.greedy_rewards.len(),
        )?;
        let has_critic = config.baseline == Baseline::Value;
        let kl_penalty = self.reference.penalty(rollout);
        let mut values = Vec::new();
        if has_critic {
            policy.values(&rollout.store, &mut values);
        }

        // returns to go, less the baseline
        let returns = self.returns(rollout, &kl_penalty.rewards(rollout), &values);
        let mean_return = self.mean_return.unwrap_or(0.0);
        let mut advantages = self.advantages(rollout, &returns, &values);

        // texts that could not be scored teach nothing
        let scored = rollout.scored();
        for (segment, _) in rollout.segments.iter().zip(&scored).filter(|(_, is_scored)| !**is_scored) {
            advantages[segment.range.clone()].fill(0.0);
        }
        context.check_advantages(&advantages)?;
        let batch = Minibatches::new(rollout, &scored, config.aggregation, config.constant_length).all();
        if config.normalise_returns {
            let mut valid: Vec<f32> = batch.indices.iter().map(|i| advantages[*i as usize]).collect();
            whiten(&mut valid, false);
            batch.indices.iter().zip(valid).for_each(|(i, a)| advantages[*i as usize] = a);
        }

        // one step
        let objective = ReinforceObjective {
            advantages: &advantages,
            returns: &returns,
            kl_penalty: &kl_penalty,
            entropy_coefficient: config.entropy_coefficient,
            value_coefficient: has_critic.then_some(config.value_coefficient),
        };
        let decisions = Batch { reference: kl_penalty.distributions(), ..Batch::new(&batch.indices, &batch.weights) };
        let (objective, mut mismatch) = (AgainstSampler::new(&objective, rollout), Mismatch::default());
        let (sums, norm) = context.gradient(policy, (&rollout.store, decisions), &objective, 0)?;
        let sums = batch.averaged(sums);
        mismatch.add(&objective, &sums);
        let step = self.optimiser.step(context.progress);
        if !batch.indices.is_empty() && !kl_penalty.stops_at(sums.diagnostics[KL_REFERENCE]) {
            policy.apply(&step);
        }
        context.check_parameters(policy, 0)?;
        self.reference.finish(policy, rollout, &kl_penalty);

        if !batch.indices.is_empty() {
            let (newest, _) = mean_and_sample_std(batch.indices.iter().map(|i| returns[*i as usize]));
            self.mean_return = Some(match self.mean_return {
                Some(mean) => mean + f64::from(config.baseline_step) * (newest - mean),
                None => newest,
            });
        }
        let explained = if has_critic { explained_variance(&values[..rollout.len()], &returns) } else { f64::NAN };
        let unscored = scored.iter().filter(|is_scored| !**is_scored).count();
        let mut report = vec![
            ("train/loss", sums.loss),
            ("train/policy_gradient_loss", sums.diagnostics[POLICY_LOSS]),
            ("train/value_loss", if has_critic { sums.diagnostics[VALUE_LOSS] } else { f64::NAN }),
            ("train/entropy_loss", -sums.diagnostics[ENTROPY]),
            ("train/explained_variance", explained),
            ("train/baseline", if config.baseline == Baseline::Mean { mean_return } else { f64::NAN }),
            ("train/frac_unscored", unscored as f64 / scored.len().max(1) as f64),
            ("train/grad_norm", norm),
            ("train/learning_rate", f64::from(step.learning_rate)),
        ];
        report.extend(mismatch.report(rollout));
        report.extend(Reference::report(&kl_penalty, rollout, sums.diagnostics[KL_REFERENCE]));
        Ok(report)
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
