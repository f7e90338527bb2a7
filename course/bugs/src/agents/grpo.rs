//! Group-relative policy optimisation on texts (Shao et al., 2024), the whole agent in one file.

use std::collections::BTreeMap;

use gradus::agents::{
    Agent, AgentConfig, AgentError, AgentKind, Collection, ConfigError, GroupId, OptimiserConfig, Preset, Report, Rollout, Setup,
    UpdateContext,
};
use gradus::base::settings;
use gradus::nets::{Batch, Evaluation, Objective, Outputs, Policy};

settings! {
    /// The settings.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Config {
        /// Completions of each prompt.
        pub group_size: usize = 8,
        /// Passes over each rollout.
        pub epochs: usize = 2,
        /// Clip range of the ratio.
        pub clip: f32 = 0.2,
        /// Coefficient of the divergence from the reference.
        pub beta: f32 = 0.02,
    }
}

impl AgentConfig for Config {
    const NAME: &'static str = "course-grpo";
    const ABOUT: &'static str = "GRPO of the course";
    const PRESETS: &'static [Preset] = &[Preset {
        agent: Self::NAME,
        environment: "text",
        name: "default",
        text: "steps = 60_000\nenvs = 64\n[optimiser]\nlearning_rate = 1e-3\nmax_grad_norm = 1.0\n[transformer]\nlayers = 1\nwidth = 64\nfeed_forward_width = 128\n",
    }];

    fn build(&self, setup: &Setup<'_>) -> Result<AgentKind, ConfigError> {
        Ok(Grpo { config: self.clone(), optimiser: setup.optimiser.clone(), reference: None }.into())
    }
}

struct Grpo {
    config: Config,
    optimiser: OptimiserConfig,
    /// The policy that training began with.
    reference: Option<Box<dyn Policy>>,
}

/// The loss of a token. Everything but what the policy returns now, `pi`, is a number.
struct Loss<'a> {
    config: &'a Config,
    old_log_probs: &'a [f32],
    reference_log_probs: &'a [f32],
    advantages: &'a [f32],
}

impl Objective for Loss<'_> {
    fn decision(&self, i: usize, pi: Outputs) -> Evaluation {
        let Config { clip, beta, .. } = *self.config;
        let advantage = self.advantages[i];

        let ratio = (pi.log_prob - self.old_log_probs[i]).exp();
        let policy_loss = -(ratio * advantage).min(ratio.clamp(1.0 - clip, 1.0 + clip) * advantage);

        // k3, the estimate of the divergence from the reference
        let to_reference = self.reference_log_probs[i] - pi.log_prob;
        let divergence = to_reference.exp() - to_reference - 1.0;

        let loss = policy_loss + beta * divergence;
        loss.with_diagnostics([policy_loss.value(), divergence.value(), ratio.value()])
    }
}

/// The advantage of each completion: its return, less the mean of its group, divided by the standard deviation of its group.
fn group_advantages(returns: &[(GroupId, f32)]) -> Vec<f32> {
    let mut groups: BTreeMap<GroupId, Vec<f32>> = BTreeMap::new();
    for (group, value) in returns {
        groups.entry(*group).or_default().push(*value);
    }
    let of = |(group, value): &(GroupId, f32)| {
        let all = &groups[group];
        let n = all.len() as f32;
        let mean = all.iter().sum::<f32>() / n;
        let std = (all.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / n).sqrt();
        (value - mean) / (std + 1e-4)
    };
    returns.iter().map(of).collect()
}

impl Agent for Grpo {
    fn collection(&self) -> Collection {
        Collection::Episodes { per_env: 1, group: self.config.group_size, greedy: false }
    }

    fn kept_policies(&self) -> usize {
        1
    }

    fn begin(&mut self, policy: &dyn Policy) {
        self.reference = Some(policy.snapshot());
    }

    fn update(&mut self, policy: &mut dyn Policy, rollout: &Rollout, context: UpdateContext) -> Result<Report, AgentError> {
        let returns: Vec<(GroupId, f32)> =
            rollout.segments.iter().map(|completion| (completion.group, rollout.rewards[completion.range.clone()].iter().sum())).collect();
        let mut advantages = vec![0.0; rollout.len()];
        for (completion, advantage) in rollout.segments.iter().zip(group_advantages(&returns)) {
            advantages[completion.range.clone()].fill(advantage);
        }
        let mut reference_log_probs = Vec::new();
        self.reference.get_or_insert_with(|| policy.snapshot()).log_probs(&rollout.store, &mut reference_log_probs);
        let loss = Loss {
            config: &self.config,
            old_log_probs: &rollout.log_probs,
            reference_log_probs: &reference_log_probs,
            advantages: &advantages,
        };

        // the mean over the tokens of each completion, and over completions
        let all: Vec<u32> = (0..rollout.len() as u32).collect();
        let mut weights = vec![0.0; rollout.len()];
        for completion in &rollout.segments {
            weights[completion.range.clone()].fill(1.0 / (completion.range.len() * rollout.segments.len()) as f32);
        }
        let mut last = [0.0; 3];
        for _ in 0..self.config.epochs {
            let sums = policy.gradient(&rollout.store, Batch::new(&all, &weights), &loss);
            last.copy_from_slice(&sums.diagnostics[..3]);
            policy.apply(&self.optimiser.step(context.progress));
        }
        Ok(["train/policy_gradient_loss", "train/kl_reference", "train/ratio"].into_iter().zip(last).collect())
    }
}
