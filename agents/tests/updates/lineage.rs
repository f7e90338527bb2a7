//! Relations between the agents: the settings with which two agents are equal, a task that every agent learns, and the critic's parameters
//! under agents without a critic.

use crate::common::identity::{group, identity_rollout, learn, policy};
use crate::common::{context, optimiser};
use gradus_agents::reference::KlPlace;
use gradus_agents::reinforce::Baseline;
use gradus_agents::{
    A2c, A2cConfig, Agent, End, GroupId, Grpo, GrpoConfig, OptimiserConfig, Ppo, PpoConfig, ReferenceConfig, Reinforce, ReinforceConfig,
    Segment, Trpo, TrpoConfig,
};
use gradus_nets::{Network, Rule};

#[test]
fn every_agent_learns_the_identity() {
    let reinforce = |baseline, normalise_returns| {
        let config = ReinforceConfig { baseline, normalise_returns, ..ReinforceConfig::default() };
        Box::new(Reinforce::new(config, OptimiserConfig { learning_rate: 0.02, ..optimiser() }, ReferenceConfig::default(), 1).unwrap())
            as Box<dyn Agent>
    };
    let ppo = |config: PpoConfig| {
        let config = PpoConfig { rollout_steps: 128, minibatch_size: 64, ..config };
        Box::new(Ppo::new(config, optimiser(), ReferenceConfig::default(), 1).unwrap()) as Box<dyn Agent>
    };
    let grpo = |coefficient, place| {
        let reference = ReferenceConfig { coefficient, place, ..ReferenceConfig::default() };
        Box::new(Grpo::new(GrpoConfig::default(), optimiser(), reference, 128).unwrap()) as Box<dyn Agent>
    };
    let penalty = PpoConfig { clip: f32::INFINITY, kl_coefficient: 1.0, adaptive_kl_target: 0.02, ..PpoConfig::default() };
    let quick = OptimiserConfig { learning_rate: 0.02, ..optimiser() };
    let agents: Vec<(&str, Box<dyn Agent>)> = vec![
        ("reinforce", reinforce(Baseline::None, false)),
        ("reinforce, normalised", reinforce(Baseline::None, true)),
        ("reinforce, mean", reinforce(Baseline::Mean, false)),
        ("reinforce, value", reinforce(Baseline::Value, false)),
        ("a2c", Box::new(A2c::new(A2cConfig { rollout_steps: 128, ..A2cConfig::default() }, quick, 1).unwrap())),
        ("trpo", Box::new(Trpo::new(TrpoConfig { rollout_steps: 128, max_kl: 0.05, ..TrpoConfig::default() }, optimiser(), 1).unwrap())),
        ("ppo", ppo(PpoConfig::default())),
        ("ppo, dual clip", ppo(PpoConfig { dual_clip: 3.0, ..PpoConfig::default() })),
        ("ppo, penalty", ppo(penalty)),
        ("grpo", grpo(0.0, KlPlace::Loss)),
        ("grpo, KL penalty in the loss", grpo(0.001, KlPlace::Loss)),
        ("grpo, KL penalty in the reward", grpo(0.001, KlPlace::Reward)),
    ];
    for (name, mut agent) in agents {
        let paid = learn(&mut *agent, 100);
        assert!(paid > 0.8, "{name}: mean reward {paid} in the last rollout");
    }
}

/// With one epoch of one minibatch the ratio is 1 and nothing is clipped (Huang et al., arXiv 2205.09123).
#[test]
fn a2c_is_ppo_with_one_epoch_of_one_minibatch() {
    for rule in [Rule::Adam, Rule::RmsProp] {
        for normalise_advantages in [false, true] {
            let optimiser = OptimiserConfig { rule, ..optimiser() };
            let (gamma, gae_lambda, entropy_coefficient, value_coefficient) = (0.9, 0.8, 0.01, 0.7);
            let ppo = PpoConfig {
                rollout_steps: 64,
                minibatch_size: 64,
                epochs: 1,
                gamma,
                gae_lambda,
                entropy_coefficient,
                value_coefficient,
                normalise_advantages,
                ..PpoConfig::default()
            };
            let a2c = A2cConfig {
                rollout_steps: 64,
                gamma,
                gae_lambda,
                entropy_coefficient,
                value_coefficient,
                normalise_advantages,
                ..A2cConfig::default()
            };
            let run = |agent: &mut dyn Agent| {
                let mut policy = policy(5);
                for iteration in 0..10 {
                    let mut rollout = identity_rollout(&mut policy, 64, iteration);
                    // episodes of more than one step: terminated, truncated and cut
                    let successor = 63;
                    rollout.segments = vec![
                        Segment { range: 0..20, end: End::Terminated, group: GroupId(0) },
                        Segment { range: 20..45, end: End::Truncated { successor }, group: GroupId(0) },
                        Segment { range: 45..64, end: End::Cut { successor }, group: GroupId(0) },
                    ];
                    agent.update(&mut policy, &rollout, context(iteration)).unwrap();
                }
                policy.parameters().to_vec()
            };
            let of_ppo = run(&mut Ppo::new(ppo, optimiser.clone(), ReferenceConfig::default(), 1).unwrap());
            let of_a2c = run(&mut A2c::new(a2c, optimiser, 1).unwrap());
            let worst = of_ppo.iter().zip(&of_a2c).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            // PPO shuffles the decisions, so its sums have different rounding errors
            assert!(worst < 2e-5, "{rule:?}, normalised {normalise_advantages}: parameters differ by {worst}");
            assert!(of_ppo.iter().zip(policy(5).parameters()).any(|(a, b)| (a - b).abs() > 0.01), "no parameter changed");
        }
    }
}

/// An agent without a critic neither decays the critic's parameters nor counts optimiser steps for them.
#[test]
fn an_agent_without_a_critic_does_not_change_the_critics_parameters() {
    let optimiser = || OptimiserConfig { weight_decay: 0.1, ..optimiser() };
    let reinforce = |baseline| {
        let config = ReinforceConfig { baseline, ..ReinforceConfig::default() };
        Box::new(Reinforce::new(config, optimiser(), ReferenceConfig::default(), 1).unwrap()) as Box<dyn Agent>
    };
    let grpo = Grpo::new(GrpoConfig { group_size: 64, ..GrpoConfig::default() }, optimiser(), ReferenceConfig::default(), 64).unwrap();
    let agents = [(Box::new(grpo) as Box<dyn Agent>, 0.0), (reinforce(Baseline::None), 0.0), (reinforce(Baseline::Value), 1.0)];
    for (mut agent, steps) in agents {
        let mut policy = policy(1);
        agent.begin(&policy);
        let rollout = identity_rollout(&mut policy, 64, 0);
        let before = group(&policy, "critic");
        agent.update(&mut policy, &rollout, context(0)).unwrap();
        let after = group(&policy, "critic");
        assert_eq!((after.0 != before.0, after.1), (steps > 0.0, steps));
        assert!(group(&policy, "actor").1 >= 1.0);
    }
}
