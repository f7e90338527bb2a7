//! Proximal policy optimisation (Schulman et al., 2017), the whole agent in one file.

use gradus::agents::{
    Agent, AgentConfig, AgentError, AgentKind, Collection, ConfigError, End, OptimiserConfig, Preset, Report, Rollout, Setup, UpdateContext,
};
use gradus::base::random::{Purpose, Stream};
use gradus::base::settings;
use gradus::nets::{Batch, Evaluation, Objective, Outputs, Policy};

settings! {
    /// The settings.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Config {
        /// Steps of each environment in a rollout.
        pub rollout_steps: usize = 128,
        /// Passes over each rollout.
        pub epochs: usize = 4,
        /// Decisions in a minibatch.
        pub minibatch_size: usize = 64,
        /// Discount factor.
        pub gamma: f32 = 0.99,
        /// Lambda of GAE.
        pub gae_lambda: f32 = 0.95,
        /// Clip range of the ratio.
        pub clip: f32 = 0.2,
        /// Coefficient of the value loss.
        pub value_coefficient: f32 = 0.5,
        /// Coefficient of the entropy bonus.
        pub entropy_coefficient: f32 = 0.01,
    }
}

impl AgentConfig for Config {
    const NAME: &'static str = "course-ppo";
    const ABOUT: &'static str = "PPO of the course";
    const PRESETS: &'static [Preset] = &[Preset {
        agent: Self::NAME,
        environment: "any",
        name: "default",
        text: "steps = 100_000\nenvs = 8\n[optimiser]\nlearning_rate = 1e-3\nmax_grad_norm = 0.5\n",
    }];

    fn build(&self, setup: &Setup<'_>) -> Result<AgentKind, ConfigError> {
        Ok(Ppo { config: self.clone(), optimiser: setup.optimiser.clone() }.into())
    }

    fn discounts(&self) -> (f32, f32) {
        (self.gamma, self.gae_lambda)
    }
}

struct Ppo {
    config: Config,
    optimiser: OptimiserConfig,
}

/// The loss of a decision. Everything but what the policy returns now, `pi`, is a number.
struct Loss<'a> {
    config: &'a Config,
    old_log_probs: &'a [f32],
    advantages: &'a [f32],
    targets: &'a [f32],
}

impl Objective for Loss<'_> {
    fn decision(&self, i: usize, pi: Outputs) -> Evaluation {
        let Config { clip, value_coefficient, entropy_coefficient, .. } = *self.config;
        let advantage = self.advantages[i];

        let log_ratio = pi.log_prob - self.old_log_probs[i];
        let ratio = log_ratio.exp();
        let policy_loss = -(ratio * advantage).min(ratio.clamp(1.0 - clip, 1.0 + clip) * advantage);

        let value_loss = 0.5 * (pi.value - self.targets[i]).squared();

        let loss = policy_loss + value_coefficient * value_loss - entropy_coefficient * pi.entropy;
        let approx_kl = (ratio.value() - 1.0) - log_ratio.value();
        loss.with_diagnostics([policy_loss.value(), value_loss.value(), -pi.entropy.value(), approx_kl])
    }
}

impl Ppo {
    /// Advantages and value targets, by GAE. `values` has the value of each decision's observation, and those of the successors behind them.
    fn estimate(&self, rollout: &Rollout, values: &[f32]) -> (Vec<f32>, Vec<f32>) {
        let Config { gamma, gae_lambda, .. } = self.config;
        let mut advantages = vec![0.0; rollout.len()];
        for segment in &rollout.segments {
            let mut next_value = match segment.end {
                End::Terminated => 0.0,
                End::Truncated { successor } | End::Cut { successor } => values[successor],
            };
            let mut next_advantage = 0.0;
            for t in segment.range.clone().rev() {
                let delta = rollout.rewards[t] + gamma * next_value - values[t];
                advantages[t] = delta + gamma * gae_lambda * next_advantage;
                (next_value, next_advantage) = (values[t], advantages[t]);
            }
        }
        let targets = advantages.iter().zip(values).map(|(advantage, value)| advantage + value).collect();
        (advantages, targets)
    }
}

/// The numbers with the mean 0 and the standard deviation 1.
fn normalised(numbers: &[f32]) -> Vec<f32> {
    let n = numbers.len() as f32;
    let mean = numbers.iter().sum::<f32>() / n;
    let std = (numbers.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / n).sqrt();
    numbers.iter().map(|x| (x - mean) / (std + 1e-8)).collect()
}

impl Agent for Ppo {
    fn collection(&self) -> Collection {
        Collection::Steps(self.config.rollout_steps)
    }

    fn update(&mut self, policy: &mut dyn Policy, rollout: &Rollout, context: UpdateContext) -> Result<Report, AgentError> {
        let mut values = Vec::new();
        policy.values(&rollout.store, &mut values);
        let (advantages, targets) = self.estimate(rollout, &values);
        let advantages = normalised(&advantages);
        let loss = Loss { config: &self.config, old_log_probs: &rollout.log_probs, advantages: &advantages, targets: &targets };

        let mut order: Vec<u32> = (0..rollout.len() as u32).collect();
        let mut stream = Stream::new(context.seed, Purpose::Shuffle, context.iteration);
        let mut last = [0.0; 4];
        for _ in 0..self.config.epochs {
            stream.shuffle(&mut order);
            for minibatch in order.chunks(self.config.minibatch_size) {
                let weights = vec![1.0 / minibatch.len() as f32; minibatch.len()];
                let sums = policy.gradient(&rollout.store, Batch::new(minibatch, &weights), &loss);
                last.copy_from_slice(&sums.diagnostics[..4]);
                policy.apply(&self.optimiser.step(context.progress));
            }
        }

        let names = ["train/policy_gradient_loss", "train/value_loss", "train/entropy_loss", "train/approx_kl"];
        let mut report: Report = names.into_iter().zip(last).collect();
        report.push(("train/explained_variance", explained_variance(&values[..targets.len()], &targets)));
        report.push(("train/learning_rate", f64::from(self.optimiser.step(context.progress).learning_rate)));
        Ok(report)
    }
}

/// The share of the targets' variance that the values explain.
fn explained_variance(values: &[f32], targets: &[f32]) -> f64 {
    let variance = |numbers: &mut dyn Iterator<Item = f64>| {
        let numbers: Vec<f64> = numbers.collect();
        let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
        numbers.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>()
    };
    let left = variance(&mut targets.iter().zip(values).map(|(target, value)| f64::from(target - value)));
    1.0 - left / variance(&mut targets.iter().map(|target| f64::from(*target)))
}
