//! Advantage-weighted regression (Peng et al., arXiv 1910.00177).

use gradus::agents::gae::{Estimate, Gae};
use gradus::agents::returns::{Truncated, mean_and_sample_std};
use gradus::agents::{
    Agent, AgentConfig, AgentError, AgentKind, Collection, ConfigError, OptimiserConfig, Report, Rollout, Setup, UpdateContext,
};
use gradus::base::math::exp;
use gradus::base::range::{above, at_least};
use gradus::base::settings;
use gradus::nets::{Batch, Evaluation, Objective, Outputs, Policy};

settings! {
    /// Settings of advantage-weighted regression.
    #[derive(Clone, Debug, PartialEq)]
    pub struct AwrConfig {
        /// Temperature in standard deviations of the advantages.
        pub temperature: f32 = 1.0 => above(0.0),
        /// Passes over a rollout.
        pub epochs: usize = 6 => at_least(1),
    }
}

impl AgentConfig for AwrConfig {
    const NAME: &'static str = "awr";
    const ABOUT: &'static str = "advantage-weighted regression";

    fn build(&self, setup: &Setup<'_>) -> Result<AgentKind, ConfigError> {
        Ok(Awr { config: self.clone(), optimiser: setup.optimiser.clone() }.into())
    }
}

struct Awr {
    config: AwrConfig,
    optimiser: OptimiserConfig,
}

struct AwrObjective<'a> {
    weights: &'a [f32], // exp(A / temperature)
    targets: &'a [f32], // R
}

impl Objective for AwrObjective<'_> {
    fn decision(&self, i: usize, pi: Outputs) -> Evaluation {
        (-self.weights[i] * pi.log_prob + 0.5 * (pi.value - self.targets[i]).squared()).into()
    }
}

impl Agent for Awr {
    fn collection(&self) -> Collection {
        Collection::Steps(128)
    }

    fn update(&mut self, policy: &mut dyn Policy, rollout: &Rollout, context: UpdateContext) -> Result<Report, AgentError> {
        let gae = Gae { gamma: 0.99, lambda: 0.95, truncated: Truncated::Bootstraps };
        let Estimate { advantages, targets, .. } = gae.estimate(policy, rollout, &rollout.rewards, context)?;
        let (_, std) = mean_and_sample_std(advantages.iter().copied());
        let scale = self.config.temperature * std as f32 + 1e-8;
        let weights: Vec<f32> = advantages.iter().map(|a| exp((a / scale).min(3.0))).collect();

        let order: Vec<u32> = (0..rollout.len() as u32).collect();
        let mut loss = 0.0;
        for indices in (0..self.config.epochs).flat_map(|_| order.chunks(64)) {
            let mean = vec![1.0 / indices.len() as f32; indices.len()];
            let objective = AwrObjective { weights: &weights, targets: &targets };
            loss = policy.gradient(&rollout.store, Batch::new(indices, &mean), &objective).loss;
            policy.apply(&self.optimiser.step(context.progress));
        }
        Ok(vec![("train/loss", loss)])
    }
}
