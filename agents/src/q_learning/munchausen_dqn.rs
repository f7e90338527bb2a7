//! Munchausen-DQN (Vieillard, Pietquin, Geist, arXiv 2007.14430): [`dqn`](crate::q_learning::dqn) that adds the scaled logarithm of its own
//! policy to the reward.
//!
//! The policy is the softmax of the target network's values, pi = softmax(Q_target / tau). An update moves Q(s, a) towards
//!
//! > y = r + alpha \[tau log pi(a|s)\] + gamma sum_a' pi(a'|s') (Q_target(s', a') - tau log pi(a'|s'))       (equation 2)
//!
//! The bracket is clipped to l_0 to 0, because log pi is not bounded. With alpha = 0 this is soft DQN; if also tau tends to 0, DQN. The agent
//! takes the action of the greatest value, and explores as DQN does.
//!
//! With several rewards in a target (`n_step`), each of them gets the term of its own decision.
//!
//! Left out: M-IQN, the same change to implicit quantile networks.

use gradus_base::math::{exp, ln};
use gradus_base::range::{above, from};
use gradus_base::settings;
use gradus_nets::{Evaluated, QHead, QNetwork};

use crate::agent::UpdateContext;
use crate::config::{AgentConfig, AgentKind, Preset, Setup, preset_files};
use crate::error::{AgentError, ConfigError};
use crate::q_learning::dqn::{DqnObjective, TdLoss};
use crate::q_learning::q_learner::{QLearner, QLearnerConfig};
use crate::replay::Sample;
use crate::replay::off_policy::{OffPolicyAgent, TargetUpdate};

settings! {
    /// The settings of Munchausen-DQN.
    #[derive(Clone, Debug, PartialEq)]
    pub struct MunchausenDqnConfig {
        /// Share alpha of the log-policy in the reward.
        pub alpha: f32 = 0.9 => from(0.0).to(1.0),
        /// Temperature tau of the softmax policy, above 0, in the units of the values.
        pub temperature: f32 = 0.03 => above(0.0),
        /// Lower limit l_0 of the temperature times the log-policy, at most 0; `-inf`: none.
        pub log_policy_min: f32 = -1.0,
        /// Loss of the error: huber or squared.
        pub loss: TdLoss = TdLoss::Huber,
        /// Whether the network has the dueling architecture.
        pub dueling: bool = false,
        ..
        /// The settings that agents with a replay buffer and a network of action values share.
        pub learner: QLearnerConfig,
    }
}

impl AgentConfig for MunchausenDqnConfig {
    const NAME: &'static str = "munchausen-dqn";
    const ABOUT: &'static str = "Munchausen-DQN: DQN with the scaled log-policy in the reward and a softmax target";
    const PRESETS: &'static [Preset] = preset_files!["munchausen-dqn": "cartpole" "default"; "any" "default"];
    const HAS_ACTOR_CRITIC: bool = false;

    fn build(&self, setup: &Setup<'_>) -> Result<AgentKind, ConfigError> {
        let key = |name: &str| format!("{}.{name}", Self::NAME);
        ConfigError::unless(self.log_policy_min <= 0.0, &key("log_policy_min"), "a number up to 0, or -inf", self.log_policy_min)?;
        self.learner.check(Self::NAME, setup)?;
        let head = QHead { atoms: 1, dueling: self.dueling };
        Ok(self.learner.built(head, setup, MunchausenDqn { config: self.clone() }))
    }

    fn discounts(&self) -> (f32, f32) {
        (self.learner.off_policy.gamma, 1.0)
    }

    fn scheduled(&self, steps: u64, done: u64) -> Vec<(&'static str, f64)> {
        self.learner.scheduled(steps, done)
    }
}

/// The softmax policy of some action values.
#[derive(Clone, Copy, Debug)]
pub struct SoftmaxPolicy<'a> {
    q: &'a [f32],
    tau: f32,
    highest: f32,
    /// log sum_a exp((Q(a) - highest) / tau).
    log_sum: f32,
}

impl<'a> SoftmaxPolicy<'a> {
    /// Creates softmax(q / tau) over the actions that `mask` allows.
    ///
    /// ```
    /// use gradus_agents::q_learning::munchausen_dqn::SoftmaxPolicy;
    ///
    /// // pi = 1/4 and 3/4
    /// let q = [0.0, 0.5 * 3.0_f32.ln()];
    /// let pi = SoftmaxPolicy::new(&q, None, 0.5);
    /// assert!((pi.tau_log_prob(1) - 0.5 * 0.75_f32.ln()).abs() < 1e-6);
    /// // 1/4 (0 - tau log 1/4) + 3/4 (tau log 3 - tau log 3/4) = tau log 4
    /// assert!((pi.value() - 0.5 * 4.0_f32.ln()).abs() < 1e-6);
    /// ```
    pub fn new(q: &'a [f32], mask: Option<&[bool]>, tau: f32) -> Self {
        let allowed = || q.iter().enumerate().filter(|(a, _)| mask.is_none_or(|mask| mask[*a])).map(|(_, q)| *q);
        let highest = allowed().fold(f32::NEG_INFINITY, f32::max);
        let log_sum = ln(allowed().map(|q| exp((q - highest) / tau)).sum());
        Self { q, tau, highest, log_sum }
    }

    /// Returns tau log pi(a).
    pub fn tau_log_prob(&self, action: usize) -> f32 {
        (self.q[action] - self.highest) - self.tau * self.log_sum
    }

    /// Returns sum_a pi(a) (Q(a) - tau log pi(a)), the value of the policy with its entropy. Every bracket is the same number, tau log sum_a
    /// exp(Q(a) / tau).
    pub fn value(&self) -> f32 {
        self.highest + self.tau * self.log_sum
    }
}

/// Munchausen-DQN.
pub struct MunchausenDqn {
    /// The settings.
    pub config: MunchausenDqnConfig,
}

impl MunchausenDqn {
    /// Name of the mean of the clipped tau log pi(a|s) over the samples.
    const LOG_POLICY: &'static str = "train/tau_log_policy";

    /// Returns the clipped tau log pi(a|s) of every decision of a sample.
    fn log_policy(&self, learner: &mut QLearner, sample: &Sample) -> Vec<f32> {
        let (tau, least) = (self.config.temperature, self.config.log_policy_min);
        let q = learner.target_values(sample);
        let of = |(q, t): (&[f32], usize)| SoftmaxPolicy::new(q, sample.mask(t), tau).tau_log_prob(sample.action(t)).clamp(least, 0.0);
        q.chunks(learner.network.actions()).zip(0..).map(of).collect()
    }
}

impl OffPolicyAgent<dyn QNetwork> for MunchausenDqn {
    fn learn(&mut self, learner: &mut QLearner, sample: &Sample, context: UpdateContext) -> Result<Evaluated, AgentError> {
        let MunchausenDqnConfig { alpha, temperature: tau, .. } = self.config;
        let log_policy = self.log_policy(learner, sample);
        let next = learner.next_target_values(sample);
        let actions = learner.network.actions();
        let values: Vec<f32> =
            next.chunks(actions).enumerate().map(|(i, q)| SoftmaxPolicy::new(q, sample.next_mask(i), tau).value()).collect();

        let (r, gamma) = (&sample.rollout.rewards, self.config.learner.off_policy.gamma);
        let targets = sample.targets(&values, 1, |t, v| r[t] + alpha * log_policy[t] + gamma * v);
        let mean = log_policy.iter().map(|x| f64::from(*x)).sum::<f64>() / log_policy.len() as f64;
        learner.record([(Self::LOG_POLICY, mean)]);
        learner.step(sample, (&DqnObjective { targets: &targets, loss: self.config.loss }, DqnObjective::METRICS), context)
    }

    fn target_update(&self) -> TargetUpdate {
        self.config.learner.target_update()
    }

    fn metrics(&self) -> Vec<&'static str> {
        [&QLearner::metrics(DqnObjective::METRICS)[..], &[Self::LOG_POLICY]].concat()
    }
}
