//! A3C applies gradients that were computed at other parameters than those that they change.

use crate::common::identity::{identity_rollout, policy};
use crate::common::{context, metric, optimiser};
use gradus_agents::{A3c, A3cConfig, Agent};
use gradus_nets::cpu::ActorCritic;
use gradus_nets::{Behaviour, Network, Policy};

/// Two workers take turns. While the second one collects, the first one changes the shared parameters. The second one's gradient is that of
/// the parameters it acted with, so its step is the same wherever the shared parameters are.
#[test]
fn a_stale_gradient_is_that_of_the_workers_own_parameters() {
    let second_step = |elsewhere: f32| {
        let mut policy = policy(3);
        let config = A3cConfig { workers: 2, spread: 0.0, ..A3cConfig::default() };
        let mut agent = A3c::new(config, optimiser(), (2, 1)).unwrap();
        agent.begin(&policy);
        let first = policy.parameters().to_vec();
        let rollouts = [0, 1].map(|number| identity_rollout(&mut policy, 64, number));
        let acting = |agent: &A3c, policy: &ActorCritic| agent.acting(policy).save();

        assert_eq!(agent.next_worker(), 0);
        let report = agent.update(&mut policy, &rollouts[0], context(0)).unwrap();
        assert_eq!(metric(&report, "train/staleness"), 0.0);
        assert_ne!(policy.parameters(), first);
        assert_eq!(agent.next_worker(), 1);
        let mut unchanged = policy.snapshot();
        unchanged.set_parameters(&first);
        assert_eq!(acting(&agent, &policy), unchanged.save(), "the second worker acts with the parameters that it copied");

        let shared: Vec<f32> = policy.parameters().iter().map(|x| x + elsewhere).collect();
        policy.set_parameters(&shared);
        let report = agent.update(&mut policy, &rollouts[1], context(1)).unwrap();
        assert_eq!(metric(&report, "train/staleness"), 1.0);
        let step: Vec<f32> = policy.parameters().iter().zip(&shared).map(|(after, before)| after - before).collect();

        assert_eq!(agent.next_worker(), 0);
        // the first worker copied the shared parameters after its own update, before they were moved elsewhere
        assert_ne!(acting(&agent, &policy), policy.save());
        step
    };
    let (step, other) = (second_step(0.0), second_step(0.5));
    assert!(step.iter().any(|x| x.abs() > 1e-3), "{step:?}");
    let differs = step.iter().zip(&other).find(|(a, b)| (*a - *b).abs() > 1e-6);
    assert!(differs.is_none(), "the gradient depends on the shared parameters: {differs:?}");
}
