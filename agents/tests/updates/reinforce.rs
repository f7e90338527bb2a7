//! The effect of REINFORCE's update, and the baselines.

use crate::common::identity::{identity_rollout, policy};
use crate::common::texts::{completions, rollout, transformer};
use crate::common::{context, metric, optimiser};
use gradus_agents::reinforce::Baseline;
use gradus_agents::{Agent, Aggregation, End, GroupId, OptimiserConfig, ReferenceConfig, Reinforce, ReinforceConfig, Rollout, Segment};
use gradus_base::tensors::Data;
use gradus_envs::Space;
use gradus_nets::cpu::ActorCritic;
use gradus_nets::{ActionRows, Behaviour, NetworkConfig, Policy, Store};

/// There is one state, in which the policy's action probabilities are 1/8, 2/8 and 5/8. The eight episodes contain the actions in exactly
/// these proportions, so the mean gradient equals the expected gradient, sum_a p(a) r(a) d log p(a).
#[test]
fn reinforce_follows_the_exact_gradient() {
    let probabilities = [0.125_f64, 0.25, 0.625];
    let rewards = [3.0_f64, -1.0, 0.5];
    let network = NetworkConfig { hidden: vec![], ..NetworkConfig::default() };
    let space = Space::Box { low: vec![0.0], high: vec![1.0] };
    let mut policy = ActorCritic::new(&network, &space, &Space::Discrete(3), 1).unwrap();
    let mut tensors = policy.save();
    for (name, numbers) in [("actor.0.weight", vec![0.0; 3]), ("actor.0.bias", probabilities.map(|p| p.ln() as f32).to_vec())] {
        let Data::F32(data) = &mut tensors.get_mut(name).unwrap().data else { panic!("expected f32") };
        data.copy_from_slice(&numbers);
    }
    policy.load(&tensors).unwrap();

    let actions: Vec<u32> = [0, 1, 1, 2, 2, 2, 2, 2].into();
    let returns = actions.iter().map(|a| rewards[*a as usize] as f32).collect();
    let log_probs = actions.iter().map(|a| probabilities[*a as usize].ln() as f32).collect();
    let segments = (0..8).map(|i| Segment { range: i..i + 1, end: End::Terminated, group: GroupId(0) }).collect();
    let rollout = Rollout::new(Store::new(1, vec![1.0; 8], ActionRows::Discrete(actions)), returns, log_probs, segments);
    let value: f64 = probabilities.iter().zip(rewards).map(|(p, r)| p * r).sum();
    // with the expected reward J and the logits z: d J / d z_j = p_j (r_j - J), for any baseline
    let exact = [0, 1, 2].map(|j| -probabilities[j] * (rewards[j] - value));
    for baseline in [Baseline::None, Baseline::Mean, Baseline::Value] {
        let config = ReinforceConfig { baseline, ..ReinforceConfig::default() };
        let still = OptimiserConfig { learning_rate: 1e-30, ..optimiser() };
        let mut agent = Reinforce::new(config, still, ReferenceConfig::default(), 1).unwrap();
        for update in 0..2 {
            agent.update(&mut policy, &rollout, context(update)).unwrap();
            let gradient = policy.gradient_tensors();
            let Data::F32(got) = &gradient["actor.0.bias"].data else { panic!("expected f32") };
            for (got, exact) in got.iter().zip(exact) {
                assert!((f64::from(*got) - exact).abs() < 2e-6, "{baseline:?}, update {update}: expected {exact}, got {got}");
            }
        }
    }
}

/// After the first update the running mean is the mean return of that update. Each later update moves it halfway to the new mean return.
#[test]
fn the_running_mean_follows_the_returns() {
    let config = ReinforceConfig { baseline: Baseline::Mean, baseline_step: 0.5, gamma: 1.0, ..ReinforceConfig::default() };
    let mut agent = Reinforce::new(config, optimiser(), ReferenceConfig::default(), 1).unwrap();
    let mut policy = policy(1);
    let mut rollout = identity_rollout(&mut policy, 8, 0);
    let mut baselines = Vec::new();
    for reward in [10.0, 20.0, 20.0, 20.0] {
        rollout.rewards.fill(reward);
        baselines.push(metric(&agent.update(&mut policy, &rollout, context(0)).unwrap(), "train/baseline"));
    }
    assert_eq!(baselines, [0.0, 10.0, 15.0, 17.5]);
    let state = agent.save();
    let mut other = Reinforce::new(
        ReinforceConfig { baseline: Baseline::Mean, ..ReinforceConfig::default() },
        optimiser(),
        ReferenceConfig::default(),
        1,
    )
    .unwrap();
    other.load(&policy, &state).unwrap();
    assert_eq!(other.save(), state);
}

/// The return of a truncated episode includes the value of the final observation only with `Bootstraps` and a critic.
#[test]
fn a_truncated_return_bootstraps_from_the_critic() {
    let mut policy = policy(1);
    let mut values = Vec::new();
    let mut rollout = identity_rollout(&mut policy, 8, 0);
    rollout.rewards.fill(0.0);
    rollout.segments = vec![Segment { range: 0..8, end: End::Truncated { successor: 7 }, group: GroupId(0) }];
    policy.values(&rollout.store, &mut values);
    let mut value_loss = |baseline, truncated| {
        let config = ReinforceConfig { baseline, truncated, gamma: 1.0, ..ReinforceConfig::default() };
        let still = OptimiserConfig { learning_rate: 1e-30, ..optimiser() };
        metric(
            &Reinforce::new(config, still, ReferenceConfig::default(), 1).unwrap().update(&mut policy, &rollout, context(0)).unwrap(),
            "train/value_loss",
        )
    };
    let expected = |g: f32| values.iter().map(|v| f64::from(0.5 * (v - g) * (v - g))).sum::<f64>() / 8.0;
    use gradus_agents::Truncated::{Bootstraps, Ends};
    assert!((value_loss(Baseline::Value, Bootstraps) - expected(values[7])).abs() < 1e-7);
    assert!((value_loss(Baseline::Value, Ends) - expected(0.0)).abs() < 1e-7);
    assert!(value_loss(Baseline::None, Bootstraps).is_nan());
}

/// The loss is minus the sum of A log pi, divided by the number of tokens or of completions. The advantages A depend on the baseline.
#[test]
fn baselines_give_the_hand_computed_losses() {
    let mut policy = transformer(1);
    let mut rollout = rollout(&mut policy, &completions());
    // the greedy returns are 0.75 and 0.5 with gamma = 1, and 0.25 + 0.5 / 2 and 0.5 / 2 with gamma = 1/2
    rollout.greedy_rewards = vec![vec![0.25, 0.5], vec![0.0, 0.5]];
    // with gamma = 1 the returns are 1, .3, .5, .9, .25 and .3; the groups are 0, 1, 0, 1, 0 and 1, the lengths 3, 2, 4, 1, 1 and 5
    let greedy = [0.25, -0.2, -0.25, 0.4, -0.5, -0.2];
    let others = [1.0 - 0.375, 0.3 - 0.6, 0.5 - 0.625, 0.9 - 0.3, 0.25 - 0.75, 0.3 - 0.6];
    // with gamma = 1/2 the returns are 1/4, .3/2, .5/2, .9, .25 and .1 + .2/16
    let greedy_halved = [0.25 - 0.5, 0.15 - 0.25, 0.25 - 0.5, 0.9 - 0.25, 0.25 - 0.5, 0.1125 - 0.25];
    let others_halved = [0.0, 0.15 - 0.50625, 0.0, 0.9 - 0.13125, 0.0, 0.1125 - 0.525];
    let cases = [
        (Baseline::Greedy, 1.0, greedy),
        (Baseline::LeaveOneOut, 1.0, others),
        (Baseline::Greedy, 0.5, greedy_halved),
        (Baseline::LeaveOneOut, 0.5, others_halved),
    ];
    for (baseline, gamma, advantages) in cases {
        for (aggregation, divisor) in [(Aggregation::TokenMean, 16.0), (Aggregation::SequenceSum, 6.0)] {
            let config = ReinforceConfig { baseline, group_size: 3, gamma, aggregation, ..ReinforceConfig::default() };
            let mut agent = Reinforce::new(config, optimiser(), ReferenceConfig::default(), 6).unwrap();
            let wanted = gradus_agents::Collection::Episodes { per_env: 1, group: 3, greedy: baseline == Baseline::Greedy };
            assert_eq!(agent.collection(), wanted);
            let report = agent.update(&mut transformer(1), &rollout, context(0)).unwrap();
            let of_segment = |i: usize| rollout.segments[i].range.clone().map(|t| f64::from(rollout.log_probs[t])).sum::<f64>();
            let expected: f64 = (0..6).map(|i| -advantages[i] * of_segment(i)).sum::<f64>() / divisor;
            assert!(
                (metric(&report, "train/loss") - expected).abs() < 1e-5,
                "{baseline:?}, {gamma}, {aggregation:?}: {report:?}, {expected}"
            );
        }
    }
}
