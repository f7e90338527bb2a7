//! Reinforcement learning and fine-tuning of a small transformer on texts: the learned behaviour and the reports. Also fine-tuning without
//! texts, and the comparison of estimators.

mod common;

use common::texts::{Completion, completions, learn, rollout, transformer};
use common::{context, metric, optimiser};
use gradus_agents::estimators::{compare, side_by_side};
use gradus_agents::groups::Supervision;
use gradus_agents::grpo::Ratio;
use gradus_agents::reference::KlPlace;
use gradus_agents::reinforce::Baseline;
use gradus_agents::returns::NormaliseOver;
use gradus_agents::sft::{SftConfig, demonstrations, fine_tune};
use gradus_agents::{Agent, Aggregation, Grpo, GrpoConfig, OptimiserConfig, Ppo, PpoConfig, ReferenceConfig, Reinforce, ReinforceConfig};
use gradus_base::random::{Purpose, Stream};
use gradus_envs::Space;
use gradus_nets::cpu::ActorCritic;
use gradus_nets::{ActionRows, Network, NetworkConfig, Policy};

/// Tests the mean return of six policies, because a single policy sometimes converges to half of the largest return, with any agent.
#[test]
fn every_agent_learns_to_produce_the_rewarded_token() {
    let none = ReferenceConfig::default;
    let optimiser = || OptimiserConfig { learning_rate: 0.005, ..optimiser() };
    let grpo = |config: GrpoConfig| {
        Box::new(Grpo::new(GrpoConfig { entropy_coefficient: 0.02, ..config }, optimiser(), none(), 24).unwrap()) as Box<dyn Agent>
    };
    let reinforce = |baseline| {
        let config = ReinforceConfig {
            baseline,
            entropy_coefficient: 0.02,
            group_size: 8,
            gamma: 1.0,
            aggregation: Aggregation::SequenceSum,
            ..ReinforceConfig::default()
        };
        Box::new(Reinforce::new(config, optimiser(), none(), 24).unwrap()) as Box<dyn Agent>
    };
    let ppo = PpoConfig {
        episodes_per_env: 1,
        minibatch_size: 32,
        gamma: 1.0,
        entropy_coefficient: 0.02,
        normalise_over: NormaliseOver::Rollout,
        huber: 1.0,
        ..PpoConfig::default()
    };
    let kl_penalty = ReferenceConfig { coefficient: 0.01, place: KlPlace::Reward, ..ReferenceConfig::default() };
    let agents = || -> Vec<(&str, Box<dyn Agent>)> {
        vec![
            ("ppo", Box::new(Ppo::new(ppo.clone(), optimiser(), none(), 24).unwrap())),
            ("ppo, KL penalty", Box::new(Ppo::new(ppo.clone(), optimiser(), kl_penalty.clone(), 24).unwrap())),
            ("grpo", grpo(GrpoConfig::default())),
            ("grpo, process", grpo(GrpoConfig { supervision: gradus_agents::grpo::Supervision::Process, ..GrpoConfig::default() })),
            ("gspo", grpo(GrpoConfig { ratio: Ratio::Sequence, aggregation: Aggregation::SequenceMean, ..GrpoConfig::default() })),
            ("reinforce, greedy", reinforce(Baseline::Greedy)),
            ("reinforce, leave-one-out", reinforce(Baseline::LeaveOneOut)),
            ("reinforce, value", reinforce(Baseline::Value)),
        ]
    };
    let (mut first, mut last) = ([0.0; 8], [0.0; 8]);
    for seed in 0..6 {
        for (i, (_, mut agent)) in agents().into_iter().enumerate() {
            first[i] += learn(&mut *agent, 1, seed) / 6.0;
            last[i] += learn(&mut *agent, 80, seed) / 6.0;
        }
    }
    for ((name, _), (first, last)) in agents().iter().zip(first.into_iter().zip(last)) {
        assert!(first < 0.4 && last > 0.7, "{name}: the mean return changed from {first} to {last}");
    }
}

#[test]
fn an_unscored_completion_is_reported_and_leaves_the_update_finite() {
    let mut with_unscored = completions();
    with_unscored[3].2 = vec![f32::NAN];
    for supervision in [Supervision::Outcome, Supervision::Process] {
        let update = |completions: &[Completion]| {
            let mut policy = transformer(1);
            let mut rollout = rollout(&mut policy, completions);
            rollout.step_ends = rollout.segments.iter().flat_map(|s| (s.range.clone()).map(|i| i + 1 == s.range.end)).collect();
            let report = grpo(GrpoConfig { supervision, ..GrpoConfig::default() }, ReferenceConfig::default())
                .update(&mut policy, &rollout, context(0))
                .unwrap();
            (report, policy.parameters().to_vec())
        };
        let (report, parameters) = update(&with_unscored);
        assert!((metric(&report, "train/frac_unscored") - 1.0 / 6.0).abs() < 1e-12, "{report:?}");
        assert!(parameters.iter().all(|p| p.is_finite()));
        let (plain, _) = update(&completions());
        assert_eq!(metric(&plain, "train/frac_unscored"), 0.0);
    }
    // PPO and REINFORCE leave the unscored completion out of the loss
    let mut policy = transformer(1);
    let rollout = rollout(&mut policy, &with_unscored);
    let ppo = PpoConfig { episodes_per_env: 1, ..PpoConfig::default() };
    let report = Ppo::new(ppo, optimiser(), ReferenceConfig::default(), 6).unwrap().update(&mut policy, &rollout, context(0)).unwrap();
    assert!((metric(&report, "train/frac_unscored") - 1.0 / 6.0).abs() < 1e-12 && metric(&report, "train/loss").is_finite());
    for baseline in [Baseline::None, Baseline::Mean, Baseline::Value, Baseline::LeaveOneOut] {
        let config = ReinforceConfig { baseline, group_size: 3, normalise_returns: true, ..ReinforceConfig::default() };
        let mut agent = Reinforce::new(config, optimiser(), ReferenceConfig::default(), 6).unwrap();
        let report = agent.update(&mut policy, &rollout, context(0)).unwrap();
        assert!((metric(&report, "train/frac_unscored") - 1.0 / 6.0).abs() < 1e-12, "{baseline:?}");
        assert!(metric(&report, "train/loss").is_finite() && policy.parameters().iter().all(|p| p.is_finite()), "{baseline:?}");
    }
}

fn grpo(config: GrpoConfig, reference: ReferenceConfig) -> Grpo {
    Grpo::new(GrpoConfig { group_size: 3, epochs: 1, minibatches: 1, ..config }, optimiser(), reference, 6).unwrap()
}

#[test]
fn fine_tuning_learns_demonstrations() {
    let wanted = vec![(0, vec![3, 1, 0], vec![0.0; 3]), (1, vec![2, 0], vec![0.0; 2]), (2, vec![1, 1, 1, 0], vec![0.0; 4])];
    for (minibatch_size, aggregation) in [(3, Aggregation::TokenMean), (99, Aggregation::SequenceSum)] {
        let mut policy = transformer(1);
        let shown = rollout(&mut policy, &wanted);
        let shown = demonstrations(shown.store.clone(), shown.segments.iter().map(|segment| segment.range.clone()).collect());
        let config = SftConfig { epochs: 60, minibatch_size, aggregation };
        let first = fine_tune(&mut policy, &shown, &SftConfig { epochs: 1, ..config.clone() }, &optimiser(), context(0)).unwrap();
        fine_tune(&mut policy, &shown, &config, &optimiser(), context(1)).unwrap();
        let last = fine_tune(&mut policy, &shown, &SftConfig { epochs: 1, ..config }, &optimiser(), context(2)).unwrap();
        assert!(metric(&first, "sft/loss") > 1.0 && metric(&last, "sft/loss") < 0.1, "{first:?}, {last:?}");
        assert!((metric(&last, "sft/likely") - 1.0).abs() < 1e-6);
    }
    let error = SftConfig { minibatch_size: 0, ..SftConfig::default() }.check().unwrap_err();
    assert_eq!(error.to_string(), "sft.minibatch_size: expected at least 1, got 0");
}

/// Fine-tuning also works on an actor-critic network with numeric observations.
#[test]
fn behaviour_cloning_does_not_need_texts() {
    let space = Space::Box { low: vec![-1.0; 2], high: vec![1.0; 2] };
    let mut policy =
        ActorCritic::new(&NetworkConfig { hidden: vec![8], ..NetworkConfig::default() }, &space, &Space::Discrete(3), 1).unwrap();
    let mut stream = Stream::new(1, Purpose::Environment, 0);
    let observations: Vec<f32> = (0..120).map(|_| stream.uniform(-1.0, 1.0) as f32).collect();
    let actions = observations.chunks(2).map(|o| if o[0] > 0.3 { 0 } else { 1 + u32::from(o[1] > 0.0) }).collect();
    let store = gradus_nets::Store::new(2, observations, ActionRows::Discrete(actions));
    let shown = demonstrations(store, (0..6).map(|i| 10 * i..10 * (i + 1)).collect());
    let config = SftConfig { epochs: 200, minibatch_size: 20, ..SftConfig::default() };
    fine_tune(&mut policy, &shown, &config, &optimiser(), context(0)).unwrap();
    let last = fine_tune(&mut policy, &shown, &SftConfig { epochs: 1, ..config }, &optimiser(), context(1)).unwrap();
    assert!(metric(&last, "sft/likely") > 0.9, "{last:?}");
}

/// On the same rollout, RLOO's advantages are G / (G - 1) times those of Dr. GRPO, so the two gradients have the same direction.
#[test]
fn estimators_and_their_gradients_are_consistent() {
    let mut policy = transformer(1);
    let mut rollout = rollout(&mut policy, &completions());
    rollout.greedy_rewards = vec![vec![0.5]; 2];
    rollout.step_ends = rollout.segments.iter().flat_map(|s| s.range.clone().map(|i| i + 1 == s.range.end)).collect();
    let mut values = Vec::new();
    policy.values(&rollout.store, &mut values);
    let estimates = side_by_side(&rollout, Some(&values), 1.0, 0.95);
    let names: Vec<&str> = estimates.iter().map(|estimate| estimate.name).collect();
    assert_eq!(names, ["reinforce", "reinforce++", "remax", "rloo", "grpo", "grpo, batch std", "dr. grpo", "grpo, process", "gae"]);
    let of = |name: &str| estimates.iter().position(|estimate| estimate.name == name).unwrap();
    for (a, b) in estimates[of("rloo")].advantages.iter().zip(&estimates[of("dr. grpo")].advantages) {
        assert!((a - 1.5 * b).abs() < 1e-6, "{a} and {b}");
    }
    // the comparison does not change the policy
    let before = policy.parameters().to_vec();
    let comparison = compare(&mut policy, &rollout, &estimates, Aggregation::SequenceSum, context(0)).unwrap();
    assert_eq!(policy.parameters(), before);
    assert!((comparison.cosines[of("rloo")][of("dr. grpo")] - 1.0).abs() < 1e-6);
    assert!((comparison.norms[of("rloo")] / comparison.norms[of("dr. grpo")] - 1.5).abs() < 1e-5);
    for (i, row) in comparison.cosines.iter().enumerate() {
        assert!((row[i] - 1.0).abs() < 1e-6 && row.iter().zip(0..).all(|(c, j)| *c == comparison.cosines[j][i] && c.abs() < 1.0 + 1e-6));
    }
    // at ratio 1, GRPO's update has the same gradient norm as in the comparison
    let config = GrpoConfig { group_size: 3, epochs: 1, minibatches: 1, aggregation: Aggregation::SequenceSum, ..GrpoConfig::default() };
    let report = Grpo::new(config, optimiser(), ReferenceConfig::default(), 6).unwrap().update(&mut policy, &rollout, context(0)).unwrap();
    assert!((metric(&report, "train/grad_norm") - comparison.norms[of("grpo")]).abs() < 1e-5, "{report:?}, {comparison:?}");
    // estimators are left out if the rollout lacks their inputs
    rollout.greedy_rewards.clear();
    rollout.step_ends.clear();
    assert_eq!(side_by_side(&rollout, None, 1.0, 0.95).len(), 6);
}
