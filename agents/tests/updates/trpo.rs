//! The effect of TRPO's update.

use crate::common::identity::{group, identity_rollout, policy};
use crate::common::{context, metric, optimiser};
use gradus_agents::trpo::PolicyStep;
use gradus_agents::{Agent, OptimiserConfig, Report, Rollout, Trpo, TrpoConfig};
use gradus_nets::cpu::ActorCritic;
use gradus_nets::{Batch, Evaluation, Network, Objective, Outputs, Policy};

/// The surrogate as a loss, and the divergence as a diagnostic.
struct SurrogateAndKl<'a>(&'a [f32], &'a [f32]);

impl Objective for SurrogateAndKl<'_> {
    fn decision(&self, i: usize, pi: Outputs) -> Evaluation {
        ((pi.log_prob - self.0[i]).exp() * self.1[i]).with_diagnostics([pi.kl_old.value()])
    }
}

/// The surrogate, descended upon.
struct SurrogateAlone<'a>(&'a [f32], &'a [f32]);

impl Objective for SurrogateAlone<'_> {
    fn decision(&self, i: usize, pi: Outputs) -> Evaluation {
        ((pi.log_prob - self.0[i]).exp() * self.1[i]).into()
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

/// What the actor's line search has done in an update of a policy: the policy with the parameters before, with those after, and the report.
fn searched(config: TrpoConfig) -> (ActorCritic, [Vec<f32>; 2], Rollout, Vec<f32>, Report) {
    let mut policy = policy(2);
    let actor = policy.groups()[0].range.clone();
    let rollout = identity_rollout(&mut policy, 256, 0);
    let mut old = Vec::new();
    policy.distributions(&rollout.store, &mut old);
    let before = policy.parameters().to_vec();
    let config = TrpoConfig { rollout_steps: 256, normalise_advantages: false, gae_lambda: 1.0, ..config };
    let report = Trpo::new(config, optimiser(), 1).unwrap().update(&mut policy, &rollout, context(0)).unwrap();
    let mut after = before.clone();
    after[actor.clone()].copy_from_slice(&policy.parameters()[actor]);
    (policy, [before, after], rollout, old, report)
}

/// Each candidate is shorter than the one before by the factor of the settings, until one lies within the trust region and improves the surrogate; if none does, the actor stays as it was.
#[test]
fn the_line_search_takes_the_first_candidate_that_is_allowed() {
    let config = TrpoConfig { max_kl: 1.5, cg_damping: 1e-6, line_search_shrink: 0.7, ..TrpoConfig::default() };
    let (mut policy, [before, after], rollout, old, report) = searched(config.clone());
    let share = metric(&report, "train/step_share");
    let steps = (share.ln() / f64::from(0.7_f32).ln()).round() as usize;
    assert!(steps > 0 && (share - f64::from(0.7_f32).powi(steps as i32)).abs() < 1e-9, "the whole step must be too long: {share}");
    let indices: Vec<u32> = (0..256).collect();
    let weights = vec![1.0 / 256.0; 256];
    let mut values = Vec::new();
    policy.set_parameters(&before);
    policy.values(&rollout.store, &mut values);
    let advantages: Vec<f32> = rollout.rewards.iter().zip(&values).map(|(r, v)| r - v).collect();
    let mut is_allowed = |share_of_step: f32| {
        let moved: Vec<f32> = before.iter().zip(&after).map(|(b, a)| b + share_of_step * (a - b)).collect();
        policy.set_parameters(&moved);
        let batch = Batch { old: Some(&old), ..Batch::new(&indices, &weights) };
        let sums = policy.evaluate(&rollout.store, batch, &SurrogateAndKl(&rollout.log_probs, &advantages));
        let mean = f64::from(advantages.iter().sum::<f32>()) / 256.0;
        (sums.diagnostics[0] <= 1.5 && sums.loss > mean, sums.diagnostics[0], sums.loss)
    };
    let (allowed, kl, surrogate) = is_allowed(1.0);
    assert!(allowed && (kl - metric(&report, "train/kl_divergence_loss")).abs() < 1e-6);
    assert!((surrogate - metric(&report, "train/policy_objective")).abs() < 1e-6);
    for longer in 1..=steps as i32 {
        assert!(!is_allowed(0.7_f32.powi(-longer)).0, "candidate {longer} before the last was allowed");
    }
    // one candidate fewer than it takes
    let (_, [before, after], _, _, report) = searched(TrpoConfig { line_search_steps: steps, ..config.clone() });
    assert_eq!(before, after);
    assert_eq!([metric(&report, "train/step_share"), metric(&report, "train/kl_divergence_loss")], [0.0, 0.0]);
    let (_, [_, as_many], ..) = searched(TrpoConfig { line_search_steps: steps + 1, ..config });
    assert!(as_many != before);
}

/// `vanilla` moves along the gradient, `natural` along x with (F + damping I) x = gradient, which conjugate gradients have found after enough iterations.
#[test]
fn free_steps_follow_their_directions() {
    let stepped = |step, cg_iterations, cg_damping| {
        let config = TrpoConfig { step, step_size: 0.25, cg_iterations, cg_damping, ..TrpoConfig::default() };
        let (policy, [before, after], rollout, ..) = searched(config);
        let direction: Vec<f32> = before.iter().zip(&after).map(|(b, a)| (a - b) / 0.25).collect();
        (policy, before, rollout, direction)
    };
    let (mut policy, before, rollout, gradient) = stepped(PolicyStep::Vanilla, 1, 0.0);
    policy.set_parameters(&before);
    let indices: Vec<u32> = (0..256).collect();
    let weights = vec![1.0 / 256.0; 256];
    let mut values = Vec::new();
    policy.values(&rollout.store, &mut values);
    let advantages: Vec<f32> = rollout.rewards.iter().zip(&values).map(|(r, v)| r - v).collect();
    policy.gradient(&rollout.store, Batch::new(&indices, &weights), &SurrogateAlone(&rollout.log_probs, &advantages));
    let expected = policy.last_gradient().to_vec();
    let far = |x: &[f32], y: &[f32]| {
        x.iter().zip(y).map(|(x, y)| (x - y).abs()).fold(0.0, f32::max) / y.iter().fold(0.0, |most, y| y.abs().max(most))
    };
    assert!(far(&gradient, &expected) < 1e-3);
    for damping in [0.1, 1.0] {
        let (_, _, _, direction) = stepped(PolicyStep::Natural, 40, damping);
        let mut product = Vec::new();
        policy.fisher_vector_product(&rollout.store, Batch::new(&indices, &weights), &direction, &mut product);
        product.iter_mut().zip(&direction).for_each(|(p, d)| *p += damping * d);
        assert!(far(&product, &expected) < 1e-2, "{damping}: {}", far(&product, &expected));
        // the first iteration only scales the gradient
        let (_, _, _, first) = stepped(PolicyStep::Natural, 1, damping);
        let scale = first.iter().zip(&expected).map(|(x, y)| x * y).sum::<f32>() / expected.iter().map(|y| y * y).sum::<f32>();
        let scaled: Vec<f32> = expected.iter().map(|y| scale * y).collect();
        assert!(far(&first, &scaled) < 1e-3 && far(&direction, &scaled) > 1e-2);
    }
}
