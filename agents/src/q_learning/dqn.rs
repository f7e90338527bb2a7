//! Deep Q-network (Mnih et al., Nature 2015), with double Q-learning (van Hasselt et al., arXiv 1509.06461), the dueling architecture (Wang
//! et al., arXiv 1511.06581), n-step returns (Sutton and Barto, equation 7.1) and prioritised replay (Schaul et al., arXiv 1511.05952).
//!
//! Decisions go to a replay buffer. An update samples some of them and moves Q(s, a) towards the target
//!
//! > y = r + gamma r' + ... + gamma^n max_a' Q_target(s_n, a')
//!
//! with the rewards of up to n steps. If the episode terminates within these steps, nothing follows its last reward. If a time limit
//! truncates it, s_n is the episode's final observation. With `double`, the action a' is the greedy one of the current network. The loss
//! is the square of the error Q(s, a) - y or, near 0, half of it and far from 0 its absolute value (Huber). Q_target is an older copy of the
//! network.
//!
//! Left out: noisy networks and the distribution of returns (see [`qr_dqn`](crate::q_learning::qr_dqn)), which Rainbow adds; clipping of rewards, which
//! is the setting `wrappers.clip_reward`.

use gradus_base::settings;
use gradus_nets::{Evaluated, Evaluation, Of, QHead, QNetwork, QValues, ValueObjective};
use serde::{Deserialize, Serialize};

use crate::agent::UpdateContext;
use crate::config::{AgentConfig, AgentKind, Preset, Setup, Work, preset_files};
use crate::error::{AgentError, ConfigError};
use crate::q_learning::q_learner::{QLearner, QLearnerConfig};
use crate::replay::Sample;
use crate::replay::off_policy::{OffPolicyAgent, OffPolicyConfig, TargetUpdate};

/// The loss as a function of the error Q(s, a) - y.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TdLoss {
    /// The square of the error.
    Squared,
    /// Half the square of an error of at most 1, otherwise its absolute value less 1/2: PyTorch's `smooth_l1_loss`.
    Huber,
}

impl TdLoss {
    /// Returns the loss of an error.
    ///
    /// ```
    /// use gradus_agents::dqn::TdLoss;
    /// use gradus_nets::{Of, loss::Q};
    ///
    /// let error = Of::<Q>::variable(3.0);
    /// assert_eq!([TdLoss::Squared, TdLoss::Huber].map(|loss| loss.of(error).value()), [9.0, 2.5]);
    /// ```
    #[inline]
    pub fn of<O: Copy>(self, error: Of<O>) -> Of<O> {
        match self {
            TdLoss::Squared => error.squared(),
            TdLoss::Huber => error.huber(1.0),
        }
    }
}

settings! {
    /// The settings of DQN.
    #[derive(Clone, Debug, PartialEq)]
    pub struct DqnConfig {
        /// Loss of the error: huber or squared.
        pub loss: TdLoss = TdLoss::Huber,
        /// Whether the network chooses the next action whose value the target network gives (double Q-learning).
        pub double: bool = true,
        /// Whether the network has the dueling architecture.
        pub dueling: bool = false,
        ..
        /// The settings that agents with a replay buffer and a network of action values share.
        pub learner: QLearnerConfig,
    }
}

impl AgentConfig for DqnConfig {
    const NAME: &'static str = "dqn";
    const ABOUT: &'static str = "deep Q-network: replay buffer, target network; double, dueling, n-step, prioritised";
    const PRESETS: &'static [Preset] = preset_files!["dqn":
        "cartpole" "default" "zoo" "cleanrl" "sb3"; "acrobot" "default" "cleanrl"; "mountain-car" "default" "cleanrl"; "any" "default";
        "LunarLander-v3" "default"; "asterix" "default"; "breakout" "default"; "freeway" "default"; "seaquest" "default"; "space-invaders" "default";
        "atari" "default" "cleanrl"
    ];
    const HAS_ACTOR_CRITIC: bool = false;

    fn build(&self, setup: &Setup<'_>) -> Result<AgentKind, ConfigError> {
        self.learner.check(Self::NAME, setup)?;
        let head = QHead { atoms: 1, dueling: self.dueling };
        Ok(self.learner.built(head, setup, Dqn { config: self.clone() }))
    }

    fn discounts(&self) -> (f32, f32) {
        (self.learner.off_policy.gamma, 1.0)
    }

    fn work(&self, _: usize) -> Option<Work> {
        let OffPolicyConfig { updates_per_step: updates, batch_size, .. } = self.learner.off_policy;
        Some(Work::ActionValues { updates, batch_size, next: if self.double { 2 } else { 1 }, dueling: self.dueling })
    }

    fn scheduled(&self, steps: u64, done: u64) -> Vec<(&'static str, f64)> {
        self.learner.scheduled(steps, done)
    }
}

/// DQN's loss of one decision, as a function of the network's current output.
pub struct DqnObjective<'a> {
    /// Targets y.
    pub targets: &'a [f32],
    /// The loss of an error.
    pub loss: TdLoss,
}

impl DqnObjective<'_> {
    /// Names of the diagnostics.
    pub const METRICS: &'static [&'static str] = &["train/q_value", "train/td_error"];
}

impl ValueObjective for DqnObjective<'_> {
    fn decision(&self, i: usize, q: QValues<'_>) -> Evaluation {
        let q = q.at(0);
        let error = q - self.targets[i];
        let (loss, distance) = (self.loss.of(error), error.value().abs());
        loss.with_diagnostics([q.value(), distance]).with_error(distance)
    }
}

/// Deep Q-network.
pub struct Dqn {
    /// The settings.
    pub config: DqnConfig,
}

impl OffPolicyAgent<dyn QNetwork> for Dqn {
    fn learn(&mut self, learner: &mut QLearner, sample: &Sample, context: UpdateContext) -> Result<Evaluated, AgentError> {
        // the value max_a' Q_target(s', a'), or with double Q-learning Q_target(s', argmax_a' Q(s', a'))
        let target = learner.next_target_values(sample);
        let choosing = if self.config.double { &learner.next_values(sample) } else { &target };
        let actions = learner.greedy_actions(sample, choosing);
        let values: Vec<f32> = target.chunks(learner.network.actions()).zip(actions).map(|(q, action)| q[action]).collect();

        let (r, gamma) = (&sample.rollout.rewards, self.config.learner.off_policy.gamma);
        let targets = sample.targets(&values, 1, |t, v| r[t] + gamma * v);
        let objective = DqnObjective { targets: &targets, loss: self.config.loss };
        learner.step(sample, (&objective, DqnObjective::METRICS), context)
    }

    fn target_update(&self) -> TargetUpdate {
        self.config.learner.target_update()
    }

    fn metrics(&self) -> Vec<&'static str> {
        QLearner::metrics(DqnObjective::METRICS)
    }
}
