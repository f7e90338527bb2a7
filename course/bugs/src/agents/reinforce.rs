//! REINFORCE with a baseline (Williams, 1992), the whole agent in one file.

use gradus::agents::{
    Agent, AgentConfig, AgentError, AgentKind, Collection, ConfigError, OptimiserConfig, Preset, Report, Rollout, Setup, UpdateContext,
};
use gradus::base::settings;
use gradus::nets::{Batch, Evaluation, Objective, Outputs, Policy};

settings! {
    /// The settings.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Config {
        /// Episodes of each environment in a rollout.
        pub episodes: usize = 1,
        /// Discount factor.
        pub gamma: f32 = 0.99,
    }
}

impl AgentConfig for Config {
    const NAME: &'static str = "course-reinforce";
    const ABOUT: &'static str = "REINFORCE of the course";
    const PRESETS: &'static [Preset] = &[Preset {
        agent: Self::NAME,
        environment: "any",
        name: "default",
        text: "steps = 100_000\nenvs = 8\n[optimiser]\nlearning_rate = 5e-3\nmax_grad_norm = 1.0\n",
    }];

    fn build(&self, setup: &Setup<'_>) -> Result<AgentKind, ConfigError> {
        Ok(Reinforce { config: self.clone(), optimiser: setup.optimiser.clone() }.into())
    }

    fn discounts(&self) -> (f32, f32) {
        (self.gamma, 1.0)
    }
}

struct Reinforce {
    config: Config,
    optimiser: OptimiserConfig,
}

/// The loss of a decision: minus its weight times the logarithm of its probability.
struct Loss<'a> {
    weights: &'a [f32],
}

impl Objective for Loss<'_> {
    fn decision(&self, i: usize, pi: Outputs) -> Evaluation {
        let loss = -self.weights[i] * pi.log_prob;
        loss.with_diagnostics([loss.value(), -pi.entropy.value()])
    }
}

/// The discounted return from each reward on.
fn returns_to_go(rewards: &[f32], gamma: f32) -> Vec<f32> {
    let mut following = 0.0;
    let mut returns = Vec::new();
    for reward in rewards.iter().rev() {
        following = reward + gamma * following;
        returns.push(following);
    }
    returns.reverse();
    returns
}

/// The numbers with the mean 0 and the standard deviation 1.
fn normalised(numbers: &[f32]) -> Vec<f32> {
    let n = numbers.len() as f32;
    let mean = numbers.iter().sum::<f32>() / n;
    let std = (numbers.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / n).sqrt();
    numbers.iter().map(|x| (x - mean) / (std + 1e-8)).collect()
}

impl Agent for Reinforce {
    fn collection(&self) -> Collection {
        Collection::Episodes { per_env: self.config.episodes, group: 1, greedy: false }
    }

    fn update(&mut self, policy: &mut dyn Policy, rollout: &Rollout, context: UpdateContext) -> Result<Report, AgentError> {
        let mut returns = vec![0.0; rollout.len()];
        for episode in &rollout.segments {
            let range = episode.range.clone();
            let own = returns_to_go(&rollout.rewards[range.clone()], self.config.gamma);
            returns[range].copy_from_slice(&own);
        }
        let weights = normalised(&returns);

        let all: Vec<u32> = (0..rollout.len() as u32).collect();
        let mean = vec![1.0 / all.len() as f32; all.len()];
        let sums = policy.gradient(&rollout.store, Batch::new(&all, &mean), &Loss { weights: &weights });
        policy.apply(&self.optimiser.step(context.progress));
        Ok(["train/policy_gradient_loss", "train/entropy_loss"].into_iter().zip(sums.diagnostics).collect())
    }
}
