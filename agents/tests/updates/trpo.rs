//! The effect of TRPO's update.

use crate::common::identity::{group, identity_rollout, policy};
use crate::common::{context, metric, optimiser};
use gradus_agents::{Agent, OptimiserConfig, Trpo, TrpoConfig};
use gradus_nets::{Batch, Evaluation, Network, Objective, Outputs, Policy};

/// The surrogate as a loss, and the divergence as a diagnostic.
struct SurrogateAndKl<'a>(&'a [f32], &'a [f32]);

impl Objective for SurrogateAndKl<'_> {
    fn decision(&self, i: usize, pi: Outputs) -> Evaluation {
        ((pi.log_prob - self.0[i]).exp() * self.1[i]).with_diagnostics([pi.kl_old.value()])
    }
}

/// The step improves the surrogate, and its divergence is between half of `max_kl` and `max_kl`.
#[test]
fn trpo_improves_the_surrogate_within_its_trust_region() {
    for max_kl in [1e-4, 1e-3, 1e-2] {
        let mut policy = policy(2);
        let rollout = identity_rollout(&mut policy, 256, 0);
        let mut old = Vec::new();
        policy.distributions(&rollout.store, &mut old);
        // with so little damping, the step is hardly shorter than without damping
        let config = TrpoConfig { rollout_steps: 256, max_kl, cg_damping: 1e-6, normalise_advantages: false, ..TrpoConfig::default() };
        let report = Trpo::new(config, optimiser(), 1).unwrap().update(&mut policy, &rollout, context(0)).unwrap();

        let indices: Vec<u32> = (0..256).collect();
        let weights = vec![1.0 / 256.0; 256];
        let batch = Batch { old: Some(&old), ..Batch::new(&indices, &weights) };
        let sums = policy.evaluate(&rollout.store, batch, &SurrogateAndKl(&rollout.log_probs, &rollout.rewards));
        let kl = sums.diagnostics[0];
        assert!((kl - metric(&report, "train/kl_divergence_loss")).abs() < 1e-7);
        assert!(kl <= f64::from(max_kl) && kl > 0.5 * f64::from(max_kl), "max_kl {max_kl}: divergence {kl}");
        let mean_reward = f64::from(rollout.rewards.iter().sum::<f32>()) / 256.0;
        assert!(sums.loss > mean_reward, "the surrogate fell from {mean_reward} to {}", sums.loss);
        assert_eq!(metric(&report, "train/is_line_search_success"), 1.0);
    }
}

/// If all advantages are zero, the actor does not change.
#[test]
fn trpo_without_advantages_does_not_change_the_actor() {
    let mut policy = policy(2);
    let actor = policy.groups()[0].range.clone();
    assert_eq!(policy.groups()[0].name, "actor");
    let mut rollout = identity_rollout(&mut policy, 64, 0);
    let mut values = Vec::new();
    policy.values(&rollout.store, &mut values);
    rollout.rewards = values[..64].to_vec();
    let before = policy.parameters()[actor.clone()].to_vec();
    let config = TrpoConfig { rollout_steps: 64, ..TrpoConfig::default() };
    let report = Trpo::new(config, optimiser(), 1).unwrap().update(&mut policy, &rollout, context(0)).unwrap();
    assert_eq!(policy.parameters()[actor].to_vec(), before);
    assert_eq!(metric(&report, "train/is_line_search_success"), 0.0);
}

/// Weight decay shrinks the critic's parameters in every minibatch, but not the actor's parameters.
#[test]
fn weight_decay_affects_only_trpos_critic() {
    let updated = |weight_decay| {
        let mut policy = policy(2);
        let rollout = identity_rollout(&mut policy, 256, 0);
        let config = TrpoConfig { rollout_steps: 256, critic_epochs: 3, critic_minibatch_size: 64, ..TrpoConfig::default() };
        let optimiser = OptimiserConfig { weight_decay, ..optimiser() };
        let before = group(&policy, "actor");
        let report = Trpo::new(config, optimiser, 1).unwrap().update(&mut policy, &rollout, context(0)).unwrap();
        assert_eq!(metric(&report, "train/is_line_search_success"), 1.0);
        let after = [group(&policy, "actor"), group(&policy, "critic")];
        assert!(after[0].0 != before.0, "the actor must have changed");
        assert_eq!([after[0].1, after[1].1], [0.0, 12.0], "steps of Adam: 3 epochs of 4 minibatches, for the critic only");
        after
    };
    let [plain, decayed] = [0.0, 0.1].map(updated);
    assert!(plain[0] == decayed[0], "weight decay has changed the actor");
    assert!(plain[1] != decayed[1], "weight decay has not changed the critic");
}
