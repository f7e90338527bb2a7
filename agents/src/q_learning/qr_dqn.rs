//! Quantile-regression DQN (Dabney et al., arXiv 1710.10044): DQN that learns the distribution of the return.
//!
//! The network outputs N quantiles theta_1(s, a) to theta_N(s, a) of the return, for the fractions tau_i = (2 i - 1) / (2 N). The value
//! Q(s, a) is their mean. With the greedy action a' in the next state, each of the N targets is
//!
//! > y_j = r + gamma r' + ... + gamma^n theta_j(s_n, a')
//!
//! from the target network. The loss of a decision regresses every quantile on all targets (equation 10):
//!
//! > L = sum_i mean_j |tau_i - \[y_j < theta_i\]| Huber(y_j - theta_i)
//!
//! Everything else is as in [`dqn`](crate::q_learning::dqn). Left out: implicit quantiles (IQN), which sample the fractions tau.

use gradus_base::range::at_least;
use gradus_base::settings;
use gradus_nets::{Evaluated, Evaluation, QHead, QNetwork, QValues, ValueObjective};

use crate::agent::UpdateContext;
use crate::config::{AgentConfig, AgentKind, Preset, Setup, preset_files};
use crate::error::{AgentError, ConfigError};
use crate::q_learning::q_learner::{QLearner, QLearnerConfig};
use crate::replay::Sample;
use crate::replay::off_policy::{OffPolicyAgent, TargetUpdate};

settings! {
    /// The settings of QR-DQN.
    #[derive(Clone, Debug, PartialEq)]
    pub struct QrDqnConfig {
        /// Number of quantiles N of each action's return, 1 to 1024.
        pub quantiles: usize = 50 => at_least(1).up_to(1024),
        /// Whether the network chooses the next action whose quantiles the target network gives (double Q-learning).
        pub double: bool = false,
        /// Whether the network has the dueling architecture.
        pub dueling: bool = false,
        ..
        /// The settings that agents with a replay buffer and a network of action values share.
        pub learner: QLearnerConfig,
    }
}

impl AgentConfig for QrDqnConfig {
    const NAME: &'static str = "qr-dqn";
    const ABOUT: &'static str = "quantile-regression DQN: learns the distribution of the return";
    const PRESETS: &'static [Preset] = preset_files!["qr-dqn":
        "cartpole" "default"; "acrobot" "default"; "mountain-car" "default"; "any" "default"; "LunarLander-v3" "default"; "atari" "default"
    ];
    const HAS_ACTOR_CRITIC: bool = false;

    fn build(&self, setup: &Setup<'_>) -> Result<AgentKind, ConfigError> {
        self.learner.check(Self::NAME, setup)?;
        let head = QHead { atoms: self.quantiles, dueling: self.dueling };
        Ok(self.learner.built(head, setup, QrDqn { config: self.clone() }))
    }

    fn discounts(&self) -> (f32, f32) {
        (self.learner.off_policy.gamma, 1.0)
    }

    fn scheduled(&self, steps: u64, done: u64) -> Vec<(&'static str, f64)> {
        self.learner.scheduled(steps, done)
    }
}

/// QR-DQN's loss of one decision, as a function of the network's current quantiles.
pub struct QrDqnObjective<'a> {
    /// Targets y_j, N for each decision.
    pub targets: &'a [f32],
}

impl QrDqnObjective<'_> {
    /// Names of the diagnostics.
    pub const METRICS: &'static [&'static str] = &["train/q_value", "train/td_error"];
}

impl ValueObjective for QrDqnObjective<'_> {
    fn decision(&self, index: usize, quantiles: QValues<'_>) -> Evaluation {
        let n = quantiles.values().len();
        let (targets, share) = (&self.targets[index * n..(index + 1) * n], 1.0 / n as f32);
        let mean = |numbers: &[f32]| share * numbers.iter().sum::<f32>();
        let (q, distance) = (mean(quantiles.values()), (mean(quantiles.values()) - mean(targets)).abs());

        let loss = quantiles.sum(|i, theta| {
            let tau = (i as f32 + 0.5) * share;
            targets.iter().map(move |y| {
                let weight = if *y < theta.value() { 1.0 - tau } else { tau };
                share * weight * (theta - *y).huber(1.0)
            })
        });
        loss.with_diagnostics([q, distance]).with_error(distance)
    }
}

/// Quantile-regression DQN.
pub struct QrDqn {
    /// The settings.
    pub config: QrDqnConfig,
}

impl OffPolicyAgent<dyn QNetwork> for QrDqn {
    fn learn(&mut self, learner: &mut QLearner, sample: &Sample, context: UpdateContext) -> Result<Evaluated, AgentError> {
        let atoms = self.config.quantiles;
        let target = learner.next_target_values(sample);
        let choosing = if self.config.double { &learner.next_values(sample) } else { &target };
        let actions = learner.greedy_actions(sample, choosing);
        let row = learner.network.actions() * atoms;
        let of_action = |(quantiles, action): (&'_ [f32], usize)| quantiles[action * atoms..(action + 1) * atoms].to_vec();
        let values: Vec<f32> = target.chunks(row).zip(actions).flat_map(of_action).collect();

        let (r, gamma) = (&sample.rollout.rewards, self.config.learner.off_policy.gamma);
        let targets = sample.targets(&values, atoms, |t, theta| r[t] + gamma * theta);
        let objective = QrDqnObjective { targets: &targets };
        learner.step(sample, (&objective, QrDqnObjective::METRICS), context)
    }

    fn target_update(&self) -> TargetUpdate {
        self.config.learner.target_update()
    }

    fn metrics(&self) -> Vec<&'static str> {
        QLearner::metrics(QrDqnObjective::METRICS)
    }
}
