//! The reports of REINFORCE, PPO and GRPO on texts compare the sampler's log-probabilities with those of the policy in training.

mod common;

use common::texts::{completions, rollout, transformer};
use common::{context, metric, optimiser};
use gradus_agents::grpo::Ratio;
use gradus_agents::reinforce::Baseline;
use gradus_agents::{Agent, Grpo, GrpoConfig, Ppo, PpoConfig, ReferenceConfig, Reinforce, ReinforceConfig, Report};
use gradus_nets::Policy;

fn grpo(config: GrpoConfig) -> Box<dyn Agent> {
    Box::new(Grpo::new(GrpoConfig { group_size: 3, ..config }, optimiser(), ReferenceConfig::default(), 6).unwrap())
}

fn ppo(config: PpoConfig) -> Box<dyn Agent> {
    Box::new(Ppo::new(PpoConfig { episodes_per_env: 1, ..config }, optimiser(), ReferenceConfig::default(), 6).unwrap())
}

/// Returns agents with `epochs` epochs of one minibatch each.
fn agents(epochs: usize) -> [(&'static str, Box<dyn Agent>); 3] {
    let whole = GrpoConfig { epochs, minibatches: 1, ..GrpoConfig::default() };
    [
        ("grpo", grpo(whole.clone())),
        ("gspo", grpo(GrpoConfig { ratio: Ratio::Sequence, ..whole })),
        ("ppo", ppo(PpoConfig { epochs, minibatch_size: 16, ..PpoConfig::default() })),
    ]
}

/// Returns the mean and the maximum of abs(log pi_old - log pi) in the first minibatch, and the mean of k1 over all minibatches.
fn metrics(report: &Report) -> [f64; 3] {
    ["sampling/sampling_logp_difference/mean", "sampling/sampling_logp_difference/max", "train/old_approx_kl"].map(|n| metric(report, n))
}

#[test]
fn reports_show_a_sampler_with_wrong_log_probabilities() {
    let config = ReinforceConfig { baseline: Baseline::None, ..ReinforceConfig::default() };
    let reinforce: Box<dyn Agent> = Box::new(Reinforce::new(config, optimiser(), ReferenceConfig::default(), 6).unwrap());
    for (name, mut agent) in agents(1).into_iter().chain([("reinforce", reinforce)]) {
        let mut rollout = rollout(&mut transformer(1), &completions());
        let right = metrics(&agent.update(&mut transformer(1), &rollout, context(0)).unwrap());
        assert!(right.iter().all(|x| x.abs() < 1e-6), "{name}: {right:?}");
        // makes the recorded log-probabilities of two of the sixteen tokens wrong
        assert_eq!(rollout.len(), 16);
        rollout.log_probs[3] += 0.1;
        rollout.log_probs[9] -= 0.3;
        let wrong = metrics(&agent.update(&mut transformer(1), &rollout, context(0)).unwrap());
        let expected = [0.4 / 16.0, 0.3, -0.2 / 16.0];
        assert!(wrong.iter().zip(expected).all(|(got, expected)| (got - expected).abs() < 1e-6), "{name}: {wrong:?}");
    }
}

/// In later minibatches the optimiser steps make the policy differ from the sampler. This difference is not a mismatch; k1 reports it.
#[test]
fn the_mismatch_is_measured_in_the_first_minibatch_only() {
    for ((name, mut once), (_, mut twice)) in agents(1).into_iter().zip(agents(2)) {
        let rollout = rollout(&mut transformer(1), &completions());
        let mut policy = transformer(1);
        once.update(&mut policy, &rollout, context(0)).unwrap();
        let mut now = Vec::new();
        policy.log_probs(&rollout.store, &mut now);
        let k1 = rollout.log_probs.iter().zip(&now).map(|(old, now)| f64::from(old - now)).sum::<f64>() / 16.0;
        let [mean, largest, reported] = metrics(&twice.update(&mut transformer(1), &rollout, context(0)).unwrap());
        assert!(k1.abs() > 1e-3 && (reported - k1 / 2.0).abs() < 1e-6, "{name}: expected half of {k1}, got {reported}");
        assert!(mean < 1e-6 && largest < 1e-6, "{name}: {mean}, {largest}");
    }
}
