//! Direct preference optimisation: its pairs, and the policy that it converges to.

mod common;

use common::texts::{CONTEXT, rollout, transformer};
use common::{context, metric, near};
use gradus_agents::dpo::{Dpo, DpoConfig, Pair, best_and_worst, rollout_of};
use gradus_agents::reference::ReferenceConfig;
use gradus_agents::{Agent, ConfigError, OptimiserConfig, UpdateContext};
use gradus_nets::{Behaviour, Policy};

/// Of each group, the pair has the highest and the lowest return. Groups without a difference have none, and completions without a score
/// are left out.
#[test]
fn pairs_are_the_best_and_the_worst_of_a_group() {
    let mut policy = transformer(1);
    let of = |rewards: &[&[f32]]| -> Vec<(u32, Vec<u32>, Vec<f32>)> {
        rewards.iter().map(|rewards| (0, vec![1; rewards.len()], rewards.to_vec())).collect()
    };
    let mut completions = of(&[&[0.0, 0.5], &[2.0, -1.0], &[0.25], &[1.0], &[0.25]]);
    completions.extend(of(&[&[1.0], &[0.5, 0.5]]).into_iter().map(|(_, tokens, rewards)| (1, tokens, rewards)));
    // two returns that differ by a rounding error
    completions.extend(of(&[&[1.0, 1.0, -0.6], &[1.0, 0.0, 0.4]]).into_iter().map(|(_, tokens, rewards)| (3, tokens, rewards)));
    completions.extend(of(&[&[0.0], &[f32::NAN], &[-3.0]]).into_iter().map(|(_, tokens, rewards)| (2, tokens, rewards)));
    let rollout = rollout(&mut policy, &completions);
    assert_eq!(best_and_worst(&rollout), [[1, 2], [9, 11]]); // of equal returns the first
}

/// Pairs as a rollout: each completion after its prompt, and a reward of 1 for the chosen one.
#[test]
fn pairs_become_episodes() {
    let pairs = [
        Pair { prompt: vec![4, 0], chosen: vec![1, 2, 3], rejected: vec![2] },
        Pair { prompt: vec![3], chosen: vec![0], rejected: vec![1, 1] },
    ];
    let rollout = rollout_of(&pairs, CONTEXT);
    let texts = rollout.store.texts();
    let prefixes: Vec<Vec<u32>> = (0..rollout.len()).map(|row| texts.prefix(row).to_vec()).collect();
    let expected: [&[u32]; 7] = [&[4, 0], &[4, 0, 1], &[4, 0, 1, 2], &[4, 0], &[3], &[3], &[3, 1]];
    assert_eq!(prefixes, expected);
    assert_eq!(rollout.rewards, [0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0]);
    assert_eq!(best_and_worst(&rollout), [[0, 1], [2, 3]]);
}

/// The completions A, B and C have the rewards 0, log 2 and log 6. In pairs drawn from the model of Bradley and Terry, B beats A in 2 of 3, C
/// beats B in 3 of 4, and C beats A in 6 of 7. The policy that fits them is pi_ref e^{r / beta} / Z, so beta log(pi / pi_ref) differs by the
/// differences of the rewards.
#[test]
fn the_implicit_reward_becomes_the_reward_of_the_preferences() {
    let completions = [vec![0, 1], vec![2, 2, 3], vec![1, 3, 0, 2]];
    let rewards = [0.0, 2.0_f64.ln(), 6.0_f64.ln()];
    let times = |chosen: usize, rejected: usize, n: usize| {
        let of = |i: usize| completions[i].clone();
        vec![Pair { prompt: vec![4], chosen: of(chosen), rejected: of(rejected) }; n]
    };
    let pairs = [times(1, 0, 2), times(0, 1, 1), times(2, 1, 3), times(1, 2, 1), times(2, 0, 6), times(0, 2, 1)].concat();
    for beta in [0.25, 1.0] {
        let config = DpoConfig { group_size: 2, beta, ..DpoConfig::default() };
        let optimiser = OptimiserConfig { learning_rate: 3e-3, ..OptimiserConfig::default() };
        // 28 environments in groups of two: every update has each of the 14 pairs once
        let mut dpo = Dpo::new(config, pairs.clone(), optimiser, ReferenceConfig::default(), 28).unwrap();
        let mut policy = transformer(3);
        let start = policy.snapshot();
        dpo.begin(&policy);
        let sampled = rollout(&mut policy, &[(0, vec![1], vec![0.0])]);
        let mut report = Vec::new();
        for iteration in 0..400 {
            report = dpo.update(&mut policy, &sampled, UpdateContext { iteration, ..context(0) }).unwrap();
        }
        let log_ratio = |completion: &Vec<u32>| {
            let one = rollout_of(&[Pair { prompt: vec![4], chosen: completion.clone(), rejected: vec![0] }], CONTEXT);
            let of = |policy: &mut dyn Policy| {
                let mut log_probs = Vec::new();
                policy.log_probs(&one.store, &mut log_probs);
                log_probs[..completion.len()].iter().map(|x| f64::from(*x)).sum::<f64>()
            };
            f64::from(beta) * (of(policy.snapshot().as_mut()) - of(start.snapshot().as_mut()))
        };
        let implicit: Vec<f64> = completions.iter().map(log_ratio).collect();
        for i in 1..3 {
            let (found, expected) = (implicit[i] - implicit[0], rewards[i]);
            assert!((found - expected).abs() < 0.03, "beta {beta}: expected {expected}, got {found}");
        }
        // the loss is the entropy of the labels
        let entropy = |p: f64| -p * p.ln() - (1.0 - p) * (1.0 - p).ln();
        let expected = (3.0 * entropy(2.0 / 3.0) + 4.0 * entropy(0.75) + 7.0 * entropy(6.0 / 7.0)) / 14.0;
        assert!((metric(&report, "train/loss") - expected).abs() < 2e-3, "{report:?}");
        near(&[metric(&report, "rewards/accuracies")], &[11.0 / 14.0], "share of the pairs whose chosen completion is more likely");
        assert!(metric(&report, "rewards/margins") > 0.0 && metric(&report, "train/kl_reference_sequence").is_finite());
    }
}

/// A group without a pair takes no step. A second penalty would count twice.
#[test]
fn settings_without_meaning_are_refused() {
    let new = |config: DpoConfig, reference, envs| Dpo::new(config, Vec::new(), OptimiserConfig::default(), reference, envs).map(|_| ());
    let default = DpoConfig::default;
    let refused = |result: Result<(), ConfigError>, expected: &str| {
        let error = result.unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    };
    let none = ReferenceConfig::default;
    refused(
        new(default(), ReferenceConfig { coefficient: 0.1, ..none() }, 8),
        "reference.coefficient: expected 0, because DPO has dpo.beta",
    );
    let in_reward = ReferenceConfig { place: gradus_agents::reference::KlPlace::Reward, ..none() };
    refused(new(default(), in_reward, 8), "reference.place: expected loss");
    refused(new(DpoConfig { beta: 0.0, ..default() }, none(), 8), "dpo.beta");
    refused(new(DpoConfig { group_size: 1, ..default() }, none(), 8), "dpo.group_size: expected at least 2");
    refused(new(DpoConfig { group_size: 3, ..default() }, none(), 8), "dpo.group_size: expected a divisor of 8");
    refused(new(DpoConfig { label_smoothing: 0.5, ..default() }, none(), 8), "dpo.label_smoothing: expected a number from 0");
    let ipo = DpoConfig { loss: gradus_agents::dpo::PairLoss::Ipo, label_smoothing: 0.1, ..default() };
    refused(new(ipo, none(), 8), "dpo.label_smoothing: expected 0 with loss = \"ipo\"");

    let mut dpo = Dpo::new(DpoConfig { group_size: 2, ..default() }, Vec::new(), OptimiserConfig::default(), none(), 4).unwrap();
    let mut policy = transformer(1);
    dpo.begin(&policy);
    let before = policy.save();
    let equal = rollout(&mut policy, &[(0, vec![1, 2], vec![0.0, 1.0]), (0, vec![3], vec![1.0])]);
    let report = dpo.update(&mut policy, &equal, context(0)).unwrap();
    assert!(policy.save() == before && metric(&report, "train/loss").is_nan());
    near(&[metric(&report, "train/frac_zero_std")], &[1.0], "groups without a pair");
}
