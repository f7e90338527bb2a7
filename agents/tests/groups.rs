//! Advantages of groups of episodes with the same start, and GRPO's updates with these advantages.

mod common;

use common::identity::{identity_rollout, policy};
use common::texts::{completions, rollout, transformer};
use common::{context, decisions, metric, near, optimiser};
use gradus_agents::groups::{self, EPSILON, GroupFilter, GroupStd, group_advantages, leave_one_out, process_advantages};
use gradus_agents::{Agent, Aggregation, Collection, Completion, End, GroupId, Grpo, GrpoConfig, ReferenceConfig, Rollout, Segment};
use gradus_nets::{Network, Policy};

const GROUP: [f64; 4] = [1.0, 0.8, 0.4, 0.2];

#[test]
fn group_advantages_give_the_worked_example() {
    let mirrored = |a: f64, b: f64| [a, b, -b, -a];
    for (std, epsilon, expected) in [
        (GroupStd::Population, 0.0, mirrored(1.264_911, 0.632_456)),
        (GroupStd::Population, EPSILON, mirrored(1.264_511, 0.632_256)),
        (GroupStd::Sample, 0.0, mirrored(1.095_445, 0.547_723)),
        (GroupStd::Sample, EPSILON, mirrored(1.095_145, 0.547_573)),
        (GroupStd::None, EPSILON, mirrored(0.4, 0.2)),
        (GroupStd::Batch, 0.0, mirrored(0.8, 0.4)),
    ] {
        near(&group_advantages(&GROUP, std, 0.5, epsilon), &expected, &format!("{std:?}, epsilon {epsilon}"));
    }
    near(&leave_one_out(&GROUP), &mirrored(0.533_333, 0.266_667), "leave-one-out");
    near(&[groups::batch_std(&GROUP)], &[0.365_148_4], "sample standard deviation");
}

/// One success among failures has the largest possible advantage: sqrt(G - 1) with the population standard deviation, and
/// (G - 1) / sqrt(G) with the sample standard deviation.
#[test]
fn one_success_among_failures_has_the_largest_advantage() {
    for g in 2..40 {
        let mut returns = vec![0.25; g];
        returns[g / 2] = 1.0;
        let most = |std| group_advantages(&returns, std, f64::NAN, 0.0).into_iter().fold(0.0, |most: f64, a| most.max(a.abs()));
        let n = g as f64;
        near(&[most(GroupStd::Population), most(GroupStd::Sample)], &[(n - 1.0).sqrt(), (n - 1.0) / n.sqrt()], &format!("G = {g}"));
        // other returns do not give a larger advantage
        let uneven: Vec<f64> = (0..g).map(|i| (i as f64 * 0.77).sin()).collect();
        let largest =
            group_advantages(&uneven, GroupStd::Population, f64::NAN, 0.0).into_iter().fold(0.0, |most: f64, a| most.max(a.abs()));
        assert!(largest <= (n - 1.0).sqrt() + 1e-12, "G = {g}: {largest}");
    }
}

#[test]
fn groups_without_spread_and_unscored_episodes_have_advantage_0() {
    for std in [GroupStd::Population, GroupStd::Sample, GroupStd::Batch, GroupStd::None] {
        assert_eq!(group_advantages(&[0.1 + 0.2, 0.3], std, 0.5, 0.0), [0.0; 2], "{std:?}: a rounding error is not spread");
        let with_nan = group_advantages(&[1.0, f64::NAN, 0.8, 0.4, 0.2], std, 0.5, EPSILON);
        let without = group_advantages(&GROUP, std, 0.5, EPSILON);
        assert_eq!([with_nan[0], with_nan[2], with_nan[3], with_nan[4]], *without, "{std:?}: NaN does not affect the other advantages");
        assert_eq!(with_nan[1], 0.0, "{std:?}");
        assert_eq!(group_advantages(&[f64::NAN, f64::NAN], std, 0.5, EPSILON), [0.0; 2], "{std:?}");
        assert!(group_advantages(&[], std, 0.5, EPSILON).is_empty());
        let infinite = group_advantages(&[f64::INFINITY, 0.0, 1.0], std, 0.5, EPSILON);
        assert!(infinite.iter().any(|a| !a.is_finite()), "{std:?}: an infinite reward must not give finite advantages: {infinite:?}");
    }
    assert_eq!(leave_one_out(&[3.0]), [0.0]);
    assert_eq!(leave_one_out(&[3.0, f64::NAN, 1.0]), [2.0, 0.0, -2.0]);
}

#[test]
fn process_supervision_gives_the_worked_example() {
    // two steps of two tokens each, and one token after the last step
    let ends = [false, true, false, true, false];
    let first = groups::steps(&[0.0, 0.0, 0.5, 0.5, 0.0], &ends);
    let second = groups::steps(&[0.0; 5], &ends);
    let advantages = process_advantages(&[(first.clone(), 5), (second, 5)], GroupStd::Population, f64::NAN, 0.0);
    near(&advantages[0], &[1.154_701, 1.154_701, 1.732_051, 1.732_051, 0.0], "the first output");
    near(&advantages[1], &[-1.154_701, -1.154_701, -0.577_350, -0.577_350, 0.0], "the second output");
    let same = process_advantages(&vec![(groups::steps(&[0.5; 2], &[true; 2]), 2); 2], GroupStd::Population, f64::NAN, 0.0);
    assert_eq!(same, [[0.0; 2]; 2], "no spread");
    let unscored = process_advantages(
        &[(first.clone(), 5), (groups::steps(&[f64::NAN as f32; 5], &ends), 5), (Vec::new(), 3), (Vec::new(), 0)],
        GroupStd::None,
        f64::NAN,
        0.0,
    );
    assert_eq!(unscored, [vec![0.0, 0.0, 0.5, 0.5, 0.0], vec![0.0; 5], vec![0.0; 3], vec![]]);
}

/// The episodes of two groups, of sizes three and two, alternate. Only the group ids determine the groups.
#[test]
fn groups_are_identified_by_their_id() {
    let rollout = decisions(&[1.0, 5.0, 3.0, 9.0, 5.0], &[(0..1, 7), (1..2, 2), (2..3, 7), (3..4, 2), (4..5, 7)]);
    assert_eq!(groups::by_id(&rollout.segments), [vec![1, 3], vec![0, 2, 4]]);
    let against = groups::against_others(&rollout, &rollout.rewards);
    assert_eq!(against, [-3.0, -4.0, 0.0, 4.0, 3.0]);
}

fn grpo(config: GrpoConfig, reference: ReferenceConfig) -> Grpo {
    Grpo::new(GrpoConfig { group_size: 3, epochs: 1, minibatches: 1, ..config }, optimiser(), reference, 6).unwrap()
}

/// All decisions of an episode have the same advantage, and groups are identified by their ids.
#[test]
fn grpo_compares_episodes_only_within_their_group() {
    let mut policy = policy(1);
    let mut rollout = identity_rollout(&mut policy, 8, 0);
    // two groups of two episodes, which alternate: the returns are 1 and 3 in group 0, and 10 and 10 in group 1
    let segment = |range, group| Segment { range, end: End::Terminated, group: GroupId(group) };
    rollout.segments = vec![segment(0..2, 0), segment(2..3, 1), segment(3..6, 0), segment(6..8, 1)];
    rollout.rewards = vec![0.5, 0.5, 10.0, 1.0, 1.0, 1.0, 5.0, 5.0];
    let config = GrpoConfig { group_size: 2, epochs: 1, minibatches: 1, group_std: GroupStd::None, ..GrpoConfig::default() };
    let mut agent = Grpo::new(config, optimiser(), ReferenceConfig::default(), 4).unwrap();
    agent.begin(&policy);
    assert_eq!(agent.collection(), Collection::Episodes { per_env: 1, group: 2, greedy: false });
    let report = agent.update(&mut policy, &rollout, context(0)).unwrap();
    assert_eq!(metric(&report, "train/frac_zero_std"), 0.5);
    // at ratio 1 the loss is minus the mean advantage: (2 x -1 + 3 x 1) / 8
    assert!((metric(&report, "train/policy_gradient_loss") + 0.125).abs() < 1e-6, "{report:?}");
}

/// An empty completion belongs to its group, but it has no tokens and therefore no loss.
#[test]
fn an_empty_completion_counts_in_its_group_without_loss() {
    let mut with_empty = completions();
    with_empty[4] = (0, vec![], vec![]);
    let mut policy = transformer(1);
    let rollout = rollout(&mut policy, &with_empty);
    assert_eq!(rollout.segments.len(), 6);
    for aggregation in [Aggregation::TokenMean, Aggregation::SequenceMean, Aggregation::SequenceSum] {
        let config = GrpoConfig { aggregation, group_std: GroupStd::None, ..GrpoConfig::default() };
        let report = grpo(config, ReferenceConfig::default()).update(&mut transformer(1), &rollout, context(0)).unwrap();
        assert!(report.iter().all(|(name, x)| x.is_finite() || name.contains("reference")), "{report:?}");
        // the mean of group 0 includes the return 0 of the empty completion: (1 + .5 + 0) / 3 = .5; so 3 tokens have advantage .5, and 4
        // tokens have advantage 0
        let of_group = [0.5 * 3.0, 0.0];
        let of_other = [-0.2 * 2.0, 0.4, -0.2 * 5.0]; // the returns are .3, .9 and .3, with mean .5
        if aggregation == Aggregation::TokenMean {
            let mean = (of_group.iter().sum::<f64>() + of_other.iter().sum::<f64>()) / 15.0;
            near(&[metric(&report, "train/policy_gradient_loss")], &[-mean], "at ratio 1");
        }
    }
}

/// With dynamic sampling, groups without spread are dropped. If all groups are dropped, no parameter changes.
#[test]
fn a_batch_without_spread_moves_no_parameter() {
    let mut same = completions();
    same.iter_mut().for_each(|(_, tokens, rewards)| {
        rewards.fill(0.0);
        rewards[tokens.len() - 1] = 0.7;
    });
    for sampling_rounds in [1, 3] {
        let mut policy = transformer(1);
        let rollout = rollout(&mut policy, &same);
        let before = policy.parameters().to_vec();
        let mut agent = grpo(GrpoConfig { sampling_rounds, ..GrpoConfig::default() }, ReferenceConfig::default());
        assert_eq!(agent.wants_more(&rollout), sampling_rounds > 1);
        let report = agent.update(&mut policy, &rollout, context(0)).unwrap();
        // with dynamic sampling there is no minibatch, and so no loss
        let loss = metric(&report, "train/loss");
        assert!(if sampling_rounds > 1 { loss.is_nan() } else { loss == 0.0 }, "{loss}");
        assert_eq!(metric(&report, "train/frac_zero_std"), 1.0);
        assert_eq!(policy.parameters(), before);
    }
}

#[test]
fn dynamic_sampling_collects_until_one_rounds_number_of_groups_has_spread() {
    let mut half = completions();
    for i in [1, 3, 5] {
        half[i].2.fill(0.0);
    }
    let mut policy = transformer(1);
    let once = rollout(&mut policy, &half);
    let agent = grpo(GrpoConfig { sampling_rounds: 3, ..GrpoConfig::default() }, ReferenceConfig::default());
    assert!(agent.wants_more(&once), "one of two groups has spread");
    let mut twice = once.clone();
    twice.append(once.clone());
    assert!(!agent.wants_more(&twice), "two of four groups have spread, which is enough");
    let nothing = rollout(&mut policy, &completions().into_iter().map(|(g, t, r)| (g, t, vec![0.0; r.len()])).collect::<Vec<_>>());
    let mut rounds = nothing.clone();
    rounds.append(nothing.clone());
    assert!(agent.wants_more(&rounds), "two of three rounds are done");
    rounds.append(nothing);
    assert!(!agent.wants_more(&rounds), "three rounds are the limit");
    assert!(!grpo(GrpoConfig::default(), ReferenceConfig::default()).wants_more(&once));
    // the loss is the mean over the tokens of the group with spread
    let mut agent = grpo(GrpoConfig { sampling_rounds: 2, group_std: GroupStd::None, ..GrpoConfig::default() }, ReferenceConfig::default());
    let report = agent.update(&mut policy, &once, context(0)).unwrap();
    // in this group the returns are 1, .5 and .25, and the lengths are 3, 4 and 1
    let mean = (3.0 * (1.0 - 1.75 / 3.0) + 4.0 * (0.5 - 1.75 / 3.0) + (0.25 - 1.75 / 3.0)) / 8.0;
    near(&[metric(&report, "train/policy_gradient_loss")], &[-mean], "at ratio 1");
}

/// The six completions of [`completions`] with these marks of correctness, in the order of the list.
fn marked(policy: &mut dyn Policy, correct: [bool; 6], truncated: [bool; 6]) -> Rollout {
    let mark = |(is_correct, is_truncated)| Completion { is_correct: Some(is_correct), is_truncated };
    Rollout { completions: correct.into_iter().zip(truncated).map(mark).collect(), ..rollout(policy, &completions()) }
}

/// DAPO keeps groups with 0 < correct < G: neither group 0, whose answers are all wrong although their returns differ, nor one that is all right.
#[test]
fn a_filter_for_correctness_drops_groups_that_are_all_wrong_or_all_right() {
    let config =
        || GrpoConfig { sampling_rounds: 3, group_filter: GroupFilter::Correct, group_std: GroupStd::None, ..GrpoConfig::default() };
    let agent = || grpo(config(), ReferenceConfig::default());
    let mut policy = transformer(1);
    // completions 0, 2 and 4 are of group 0, completions 1, 3 and 5 of group 1
    let none = marked(&mut policy, [false; 6], [false; 6]);
    let all = marked(&mut policy, [true; 6], [false; 6]);
    let one = marked(&mut policy, [false, true, false, false, false, false], [false; 6]);
    for (rollout, filtered) in [(&none, 1.0), (&all, 1.0), (&one, 0.5)] {
        let before = policy.parameters().to_vec();
        assert!(agent().wants_more(rollout));
        let report = agent().update(&mut policy, rollout, context(0)).unwrap();
        assert_eq!((metric(&report, "train/frac_filtered"), metric(&report, "train/frac_zero_std")), (filtered, 0.0));
        assert_eq!(policy.parameters() == before, filtered == 1.0, "dropped groups move no parameter");
    }
    // the loss is that of group 1 alone, whose returns are 0.3, 0.9 and 0.3 with lengths 2, 1 and 5
    let report = agent()
        .update(&mut transformer(1), &marked(&mut transformer(1), [false, true, false, false, false, false], [false; 6]), context(0))
        .unwrap();
    near(&[metric(&report, "train/policy_gradient_loss")], &[-(-0.2 * 2.0 + 0.4 - 0.2 * 5.0) / 8.0], "at ratio 1");
    // without marks, nothing can be filtered
    let error = agent().update(&mut policy, &rollout(&mut transformer(1), &completions()), context(0)).unwrap_err();
    assert!(error.to_string().contains("grpo.group_filter: expected spread"), "{error}");
}

/// More groups than one round collects are not used: the first ones are, in the order of collection.
#[test]
fn dynamic_sampling_trains_on_as_many_groups_as_one_round_collects() {
    let config = GrpoConfig { sampling_rounds: 3, ..GrpoConfig::default() };
    let loss = |rollout: &Rollout| {
        let mut policy = transformer(1);
        let report = grpo(config.clone(), ReferenceConfig::default()).update(&mut policy, rollout, context(0)).unwrap();
        (metric(&report, "train/loss"), policy.parameters().to_vec())
    };
    let mut policy = transformer(1);
    let once = rollout(&mut policy, &completions());
    // a second round whose rewards are a hundred times as large
    let more: Vec<_> = completions().into_iter().map(|(g, t, r)| (g, t, r.iter().map(|r| 100.0 * r).collect())).collect();
    let mut twice = once.clone();
    twice.append(rollout(&mut policy, &more));
    assert_eq!(loss(&twice), loss(&once));
}

/// Overlong filtering: a truncated completion has no loss, but its return counts in the mean of its group.
#[test]
fn truncated_completions_can_be_masked() {
    let config =
        GrpoConfig { mask_truncated_completions: true, group_std: GroupStd::None, epochs: 1, minibatches: 1, ..GrpoConfig::default() };
    let mut policy = transformer(1);
    let rollout = marked(&mut policy, [false; 6], [false, false, true, false, true, true]);
    let report = grpo(config, ReferenceConfig::default()).update(&mut policy, &rollout, context(0)).unwrap();
    // left are the completions of 3 tokens with return 1 in a group of mean 1.75 / 3, and those of 2 tokens and 1 token with 0.3 and 0.9 in one of mean 0.5
    let mean = (3.0 * (1.0 - 1.75 / 3.0) + 2.0 * -0.2 + 0.4) / 6.0;
    near(&[metric(&report, "train/policy_gradient_loss")], &[-mean], "at ratio 1");
    assert_eq!(metric(&report, "train/frac_masked"), 0.5);
    let all = Rollout { completions: vec![Completion { is_correct: Some(true), is_truncated: true }; 6], ..rollout };
    let before = policy.parameters().to_vec();
    let masked = GrpoConfig { mask_truncated_completions: true, ..GrpoConfig::default() };
    grpo(masked, ReferenceConfig::default()).update(&mut policy, &all, context(0)).unwrap();
    assert_eq!(policy.parameters(), before, "if all are masked, no parameter moves");
}
