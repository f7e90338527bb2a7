//! Advantage actor-critic with n-step returns (Mnih et al., 2016), the whole agent in one file.

use gradus::agents::{
    Agent, AgentConfig, AgentError, AgentKind, Collection, ConfigError, End, OptimiserConfig, Preset, Report, Rollout, Setup, UpdateContext,
};
use gradus::base::settings;
use gradus::nets::{Batch, Evaluation, Objective, Outputs, Policy};

settings! {
    /// The settings.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Config {
        /// Steps of each environment in a rollout.
        pub rollout_steps: usize = 16,
        /// Discount factor.
        pub gamma: f32 = 0.99,
        /// Coefficient of the value loss.
        pub value_coefficient: f32 = 0.5,
        /// Coefficient of the entropy bonus.
        pub entropy_coefficient: f32 = 0.01,
    }
}

impl AgentConfig for Config {
    const NAME: &'static str = "course-actor-critic";
    const ABOUT: &'static str = "advantage actor-critic of the course";
    const PRESETS: &'static [Preset] = &[Preset {
        agent: Self::NAME,
        environment: "any",
        name: "default",
        text: "steps = 100_000\nenvs = 8\n[optimiser]\nlearning_rate = 2e-3\nmax_grad_norm = 0.5\n",
    }];

    fn build(&self, setup: &Setup<'_>) -> Result<AgentKind, ConfigError> {
        Ok(ActorCritic { config: self.clone(), optimiser: setup.optimiser.clone() }.into())
    }

    fn discounts(&self) -> (f32, f32) {
        (self.gamma, 1.0)
    }
}

struct ActorCritic {
    config: Config,
    optimiser: OptimiserConfig,
}

/// The loss of a decision. Everything but what the policy returns now, `pi`, is a number.
struct Loss<'a> {
    config: &'a Config,
    advantages: &'a [f32],
    returns: &'a [f32],
}

impl Objective for Loss<'_> {
    fn decision(&self, i: usize, pi: Outputs) -> Evaluation {
        let Config { value_coefficient, entropy_coefficient, .. } = *self.config;
        let policy_loss = -self.advantages[i] * pi.log_prob;
        let value_loss = 0.5 * (pi.value - self.returns[i]).squared();
        let loss = policy_loss + value_coefficient * value_loss - entropy_coefficient * pi.entropy;
        loss.with_diagnostics([policy_loss.value(), value_loss.value(), -pi.entropy.value()])
    }
}

impl ActorCritic {
    /// The return of each decision: its rewards up to the end of the segment, and the value of what follows.
    fn returns(&self, rollout: &Rollout, values: &[f32]) -> Vec<f32> {
        let gamma = self.config.gamma;
        let mut returns = vec![0.0; rollout.len()];
        for segment in &rollout.segments {
            let mut next = match segment.end {
                End::Terminated => 0.0,
                End::Truncated { successor } | End::Cut { successor } => values[successor],
            };
            for t in segment.range.clone().rev() {
                next = rollout.rewards[t] + gamma * next;
                returns[t] = next;
            }
        }
        returns
    }
}

impl Agent for ActorCritic {
    fn collection(&self) -> Collection {
        Collection::Steps(self.config.rollout_steps)
    }

    fn update(&mut self, policy: &mut dyn Policy, rollout: &Rollout, context: UpdateContext) -> Result<Report, AgentError> {
        let mut values = Vec::new();
        policy.values(&rollout.store, &mut values);
        let returns = self.returns(rollout, &values);
        let advantages: Vec<f32> = returns.iter().zip(&values).map(|(g, value)| g - value).collect();

        let all: Vec<u32> = (0..rollout.len() as u32).collect();
        let weights = vec![1.0 / all.len() as f32; all.len()];
        let loss = Loss { config: &self.config, advantages: &advantages, returns: &returns };
        let sums = policy.gradient(&rollout.store, Batch::new(&all, &weights), &loss);
        policy.apply(&self.optimiser.step(context.progress));

        let names = ["train/policy_gradient_loss", "train/value_loss", "train/entropy_loss"];
        let mut report: Report = names.into_iter().zip(sums.diagnostics).collect();
        report.push(("train/explained_variance", explained_variance(&values[..returns.len()], &returns)));
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
