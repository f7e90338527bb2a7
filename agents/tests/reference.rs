//! The reference policy: the effect of the KL penalty and of `stop_kl`, the adaptation of beta, and the saved state. Also PPO's penalty
//! variant, which has a beta of its own.

mod common;

use common::identity::{identity_rollout, policy};
use common::texts::{completions, rollout, sampled, transformer};
use common::{context, metric, optimiser};
use gradus_agents::reference::{Estimator, KlPlace, KlUnit, Reference};
use gradus_agents::reinforce::Baseline;
use gradus_agents::{Agent, Grpo, GrpoConfig, OptimiserConfig, Ppo, PpoConfig, ReferenceConfig, Reinforce, ReinforceConfig, Rollout};
use gradus_nets::cpu::Transformer;
use gradus_nets::{Batch, Evaluation, Network, Objective, Outputs, Policy};

/// The surrogate as a loss, and the divergence as a diagnostic.
struct SurrogateAndKl<'a>(&'a [f32], &'a [f32]);

impl Objective for SurrogateAndKl<'_> {
    fn decision(&self, i: usize, pi: Outputs) -> Evaluation {
        ((pi.log_prob - self.0[i]).exp() * self.1[i]).with_diagnostics([pi.kl_old.value()])
    }
}

/// The larger the coefficient, the smaller the divergence of the trained policy from the initial policy.
#[test]
fn a_larger_penalty_keeps_the_policy_nearer_to_the_reference() {
    for place in [KlPlace::Loss, KlPlace::Reward] {
        let run = |coefficient| {
            let mut policy = policy(1);
            let reference = ReferenceConfig { coefficient, place, ..ReferenceConfig::default() };
            let mut agent = Grpo::new(GrpoConfig::default(), optimiser(), reference, 64).unwrap();
            agent.begin(&policy);
            let start = policy.snapshot();
            for iteration in 0..60 {
                let rollout = identity_rollout(&mut policy, 64, iteration);
                agent.update(&mut policy, &rollout, context(iteration)).unwrap();
            }
            // the exact divergence from the initial policy
            let rollout = identity_rollout(&mut policy, 64, 99);
            let mut old = Vec::new();
            let mut start = start;
            start.distributions(&rollout.store, &mut old);
            let indices: Vec<u32> = (0..64).collect();
            let weights = [1.0 / 64.0; 64];
            let batch = Batch { old: Some(&old), ..Batch::new(&indices, &weights) };
            policy.evaluate(&rollout.store, batch, &SurrogateAndKl(&rollout.log_probs, &rollout.rewards)).diagnostics[0]
        };
        let [free, held, tight] = [0.0, 0.3, 3.0].map(run);
        assert!(free > 1.5 * held && held > 1.5 * tight, "{place:?}: {free}, {held}, {tight}");
    }
}

#[test]
fn beta_of_the_penalty_variant_adapts_and_is_restored() {
    let config = PpoConfig { rollout_steps: 64, minibatch_size: 64, clip: f32::INFINITY, ..PpoConfig::default() };
    // with this learning rate the divergence of every update is far below the target
    let still = OptimiserConfig { learning_rate: 1e-6, ..optimiser() };
    let config = PpoConfig { kl_coefficient: 1.0, adaptive_kl_target: 0.01, ..config };
    let mut agent = Ppo::new(config.clone(), still.clone(), ReferenceConfig::default(), 1).unwrap();
    let mut policy = policy(1);
    let rollout = identity_rollout(&mut policy, 64, 0);
    let betas: Vec<f64> =
        (0..3).map(|i| metric(&agent.update(&mut policy, &rollout, context(i)).unwrap(), "train/kl_coefficient")).collect();
    assert_eq!(betas, [1.0, 0.5, 0.25]);
    let mut other = Ppo::new(config, still, ReferenceConfig::default(), 1).unwrap();
    other.load(&policy, &agent.save()).unwrap();
    assert_eq!(metric(&other.update(&mut policy, &rollout, context(3)).unwrap(), "train/kl_coefficient"), 0.125);
}

/// With a large coefficient the divergence from pi_old is smaller than with a small coefficient.
#[test]
fn the_penalty_variant_keeps_the_policy_near_pi_old() {
    let divergence = |kl_coefficient: f32| {
        let config =
            PpoConfig { rollout_steps: 64, minibatch_size: 64, epochs: 20, clip: f32::INFINITY, kl_coefficient, ..PpoConfig::default() };
        let mut policy = policy(1);
        let rollout = identity_rollout(&mut policy, 64, 0);
        metric(
            &Ppo::new(config, optimiser(), ReferenceConfig::default(), 1).unwrap().update(&mut policy, &rollout, context(0)).unwrap(),
            "train/kl_divergence",
        )
    };
    let (weak, strong) = (divergence(0.01), divergence(10.0));
    assert!(strong < 0.3 * weak && strong > 0.0, "divergence {strong} with the large coefficient, {weak} with the small one");
}

/// Returns the mean of the exact KL(pi || pi_ref) over the tokens of a rollout.
fn divergence(policy: &mut Transformer, reference: &mut Transformer, rollout: &Rollout) -> f64 {
    struct SurrogateAndKl;
    impl Objective for SurrogateAndKl {
        fn decision(&self, _: usize, pi: Outputs) -> Evaluation {
            pi.kl_ref.into()
        }
    }
    let mut said = Vec::new();
    reference.distributions(&rollout.store, &mut said);
    let indices: Vec<u32> = (0..rollout.len() as u32).collect();
    let weights = vec![1.0 / rollout.len() as f32; rollout.len()];
    policy.evaluate(&rollout.store, Batch { reference: Some(&said), ..Batch::new(&indices, &weights) }, &SurrogateAndKl).loss
}

#[test]
fn the_penalty_keeps_every_agent_near_the_reference_with_every_estimator() {
    for (place, estimator) in [
        (KlPlace::Loss, Estimator::K2),
        (KlPlace::Loss, Estimator::K3),
        (KlPlace::Loss, Estimator::Exact),
        (KlPlace::Reward, Estimator::K3),
    ] {
        for name in ["ppo", "grpo", "reinforce"] {
            let run = |coefficient| {
                let reference = ReferenceConfig { coefficient, place, estimator, measure: true, ..ReferenceConfig::default() };
                let mut agent: Box<dyn Agent> = match name {
                    "ppo" => {
                        let config = PpoConfig { episodes_per_env: 1, minibatch_size: 32, gamma: 1.0, ..PpoConfig::default() };
                        Box::new(Ppo::new(config, optimiser(), reference, 24).unwrap())
                    }
                    "grpo" => Box::new(Grpo::new(GrpoConfig::default(), optimiser(), reference, 24).unwrap()),
                    _ => {
                        let config = ReinforceConfig { baseline: Baseline::None, normalise_returns: true, ..ReinforceConfig::default() };
                        Box::new(Reinforce::new(config, optimiser(), reference, 24).unwrap())
                    }
                };
                let (mut policy, mut start) = (transformer(3), transformer(3));
                agent.begin(&policy);
                let mut measured = Vec::new();
                for iteration in 0..30 {
                    let rollout = sampled(&mut policy, iteration, 3, 8);
                    measured.push(metric(&agent.update(&mut policy, &rollout, context(iteration)).unwrap(), "train/kl_reference"));
                }
                // k3 has a heavy tail if the policy is far from the reference, so this takes the median of five updates
                let last = &mut measured[25..];
                last.sort_by(f64::total_cmp);
                let measured = last[2];
                let rollout = sampled(&mut policy, 99, 3, 8);
                (divergence(&mut policy, &mut start, &rollout), measured)
            };
            let ((free, of_free), (held, _)) = (run(0.0), run(3.0));
            assert!(free > 2.0 * held && held >= 0.0, "{name}, {place:?}, {estimator:?}: {free} without a penalty, {held} with one");
            assert!(of_free > 0.3 * free && of_free < 3.0 * free, "{name}, {place:?}, {estimator:?}: measured {of_free}, exact {free}");
        }
    }
}

/// The divergence of an episode is larger than that of a token. If the target is between the two divergences, beta decreases with
/// `KlUnit::Token` and increases with `KlUnit::Sequence`.
#[test]
fn beta_adapts_to_the_divergence_per_token_or_per_episode() {
    let mut policy = transformer(2);
    let paid = rollout(&mut policy, &completions());
    let other = {
        let mut reference = Reference::new(ReferenceConfig { measure: true, ..ReferenceConfig::default() }).unwrap();
        reference.begin(&transformer(1));
        reference.penalty(&paid).measured(&paid)
    };
    assert!((other.0 / other.1 - 6.0 / 16.0).abs() < 1e-9, "{other:?}");
    let target = (0.6 * other.1) as f32;
    let beta = |unit| {
        let config = ReferenceConfig { coefficient: 1.0, adaptive_target: target, unit, horizon: 60.0, ..ReferenceConfig::default() };
        let mut reference = Reference::new(config).unwrap();
        reference.begin(&transformer(1));
        let kl_penalty = reference.penalty(&paid);
        reference.finish(&policy, &paid, &kl_penalty);
        reference.coefficient()
    };
    let (of_token, of_sequence) = (beta(KlUnit::Token), beta(KlUnit::Sequence));
    let expected = |kl: f64| 1.0 + 0.1 * (kl / f64::from(target) - 1.0).clamp(-0.2, 0.2);
    assert!((f64::from(of_token) - expected(other.0)).abs() < 1e-6, "{of_token}");
    assert!((f64::from(of_sequence) - expected(other.1)).abs() < 1e-6, "{of_sequence}");
    assert!(of_token < 1.0 && of_sequence > 1.0, "{of_token}, {of_sequence}, {other:?}");
}

/// beta and the reference change as configured, and a checkpoint restores both.
#[test]
fn beta_adapts_and_the_reference_is_refreshed_and_restored() {
    let config = ReferenceConfig {
        coefficient: 0.5,
        adaptive_target: 0.1,
        unit: KlUnit::Sequence,
        horizon: 60.0,
        refresh_every: 3,
        ..ReferenceConfig::default()
    };
    let (mut policy, start) = (transformer(1), transformer(1));
    let mut reference = Reference::new(config.clone()).unwrap();
    assert!(reference.save().is_empty(), "there is no state before `begin`");
    reference.begin(&policy);
    // collected by a policy other than the reference
    let rollout_of_other = rollout(&mut transformer(2), &completions());
    let kl_penalty = reference.penalty(&rollout_of_other);
    let (_, by_episode) = kl_penalty.measured(&rollout_of_other);
    reference.finish(&policy, &rollout_of_other, &kl_penalty);
    let factor = 1.0 + (by_episode / 0.1 - 1.0).clamp(-0.2, 0.2) * 6.0 / 60.0;
    assert!((f64::from(reference.coefficient()) - 0.5 * factor).abs() < 1e-6, "beta {} for KL {by_episode}", reference.coefficient());
    assert_eq!(kl_penalty.log_probs, {
        let mut log_probs = Vec::new();
        transformer(1).log_probs(&rollout_of_other.store, &mut log_probs);
        log_probs
    });

    // the policy changes, and the reference is refreshed after the third update
    policy.set_parameters(&start.parameters().iter().map(|p| p * 1.1).collect::<Vec<f32>>());
    let mut resumed = Reference::new(config).unwrap();
    resumed.load(&policy, &reference.save()).unwrap();
    for of in [&mut reference, &mut resumed] {
        let second = of.penalty(&rollout_of_other);
        assert_eq!(second.log_probs, kl_penalty.log_probs, "the reference is the initial policy");
        of.finish(&policy, &rollout_of_other, &second);
        let third = of.penalty(&rollout_of_other);
        assert_eq!(third.log_probs, kl_penalty.log_probs);
        of.finish(&policy, &rollout_of_other, &third);
        assert_ne!(of.penalty(&rollout_of_other).log_probs, kl_penalty.log_probs, "the reference is refreshed");
    }
    assert_eq!(reference.save(), resumed.save());
    let mut spoilt = reference.save();
    spoilt.remove("reference_coefficient");
    assert!(resumed.load(&policy, &spoilt).is_err());
    assert_eq!(resumed.save(), reference.save(), "a failed load changes nothing");
}

/// If the divergence from the reference is above `stop_kl` from the start, the update takes no step. If it is below, the policy changes.
#[test]
fn stop_kl_prevents_steps_far_from_the_reference() {
    for name in ["ppo", "grpo", "reinforce"] {
        for (stop_kl, moves) in [(1e-9, false), (1e9, true)] {
            let reference = ReferenceConfig { stop_kl, ..ReferenceConfig::default() };
            let mut agent: Box<dyn Agent> = match name {
                "ppo" => {
                    let config = PpoConfig { episodes_per_env: 1, ..PpoConfig::default() };
                    Box::new(Ppo::new(config, optimiser(), reference, 6).unwrap())
                }
                "grpo" => Box::new(Grpo::new(GrpoConfig { group_size: 3, ..GrpoConfig::default() }, optimiser(), reference, 6).unwrap()),
                _ => Box::new(Reinforce::new(ReinforceConfig::default(), optimiser(), reference, 6).unwrap()),
            };
            agent.begin(&transformer(1));
            let mut policy = transformer(2);
            let rollout = rollout(&mut policy, &completions());
            agent.update(&mut policy, &rollout, context(0)).unwrap();
            assert_eq!(policy.parameters() != transformer(2).parameters(), moves, "{name}, {stop_kl}");
        }
    }
}

/// The test computes the expected loss from the rewards minus beta times k1 of each token.
#[test]
fn ppo_subtracts_the_divergence_from_the_reward_of_each_token() {
    let loss = |coefficient, place| {
        let reference = ReferenceConfig { coefficient, place, measure: true, ..ReferenceConfig::default() };
        let config = PpoConfig {
            episodes_per_env: 1,
            minibatch_size: 99,
            epochs: 1,
            gamma: 1.0,
            gae_lambda: 1.0,
            normalise_advantages: false,
            value_coefficient: 0.0,
            ..PpoConfig::default()
        };
        let mut agent = Ppo::new(config, optimiser(), reference, 6).unwrap();
        agent.begin(&transformer(2));
        let mut policy = transformer(1);
        let rollout = rollout(&mut policy, &completions());
        let mut values = Vec::new();
        policy.values(&rollout.store, &mut values);
        let mut of_other = Vec::new();
        transformer(2).log_probs(&rollout.store, &mut of_other);
        // at ratio 1 and lambda 1 the loss is minus the mean of (return to go - value)
        let paid = |t: usize| f64::from(rollout.rewards[t]) - f64::from(coefficient) * f64::from(rollout.log_probs[t] - of_other[t]);
        let advantage = |t: usize| {
            let segment = rollout.segments.iter().find(|segment| segment.range.contains(&t)).unwrap();
            (t..segment.range.end).map(paid).sum::<f64>() - f64::from(values[t])
        };
        let expected = -(0..rollout.len()).map(advantage).sum::<f64>() / rollout.len() as f64;
        (metric(&agent.update(&mut policy, &rollout, context(0)).unwrap(), "train/policy_gradient_loss"), expected)
    };
    let (got, expected) = loss(2.0, KlPlace::Reward);
    assert!((got - expected).abs() < 1e-5, "expected {expected}, got {got}");
    let ((plain, _), (in_loss, _)) = (loss(0.0, KlPlace::Reward), loss(2.0, KlPlace::Loss));
    assert_eq!(plain, in_loss, "a penalty in the loss does not change the reward");
    assert!((plain - got).abs() > 1e-3);
}
