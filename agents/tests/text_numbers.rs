//! The worked numbers and the decided edge cases of reinforcement learning on tokens, each computed by hand.

mod common;

use common::{completions, context, figure, optimiser, rollout, transformer};
use gradus_agents::groups::{self, EPSILON, GroupStd, group_advantages, leave_one_out, process_advantages};
use gradus_agents::grpo::{GrpoObjective, SequenceObjective, Supervision};
use gradus_agents::kl::{k1, k2, k3};
use gradus_agents::reference::{KlPenalty, adapted};
use gradus_agents::reinforce::{Baseline, ReinforceObjective};
use gradus_agents::returns::{gae, whiten};
use gradus_agents::reward_model::{bradley_terry, plackett_luce};
use gradus_agents::sequence_ratio::sequence_ratio;
use gradus_agents::surrogate::Clip;
use gradus_agents::{
    Agent, Aggregation, End, GroupId, Grpo, GrpoConfig, Minibatches, Ppo, PpoConfig, ReferenceConfig, Reinforce, ReinforceConfig, Rollout,
    Segment,
};
use gradus_envs::random::{Purpose, Stream};
use gradus_nets::{ActionRows, Batch, Objective, Policy, PolicyOutput, Store, Sums};

fn near(got: &[f64], expected: &[f64], what: &str) {
    assert_eq!(got.len(), expected.len(), "{what}");
    assert!(got.iter().zip(expected).all(|(g, e)| (g - e).abs() <= 1e-6), "{what}: got {got:?}, expected {expected:?}");
}

/// Decisions without texts: `rewards` cut into episodes, each with its group.
fn decisions(rewards: &[f32], episodes: &[(std::ops::Range<usize>, u32)]) -> Rollout {
    let n = rewards.len();
    let segment =
        |(range, group): &(std::ops::Range<usize>, u32)| Segment { range: range.clone(), end: End::Terminated, group: GroupId(*group) };
    let store = Store::new(1, vec![0.0; n], ActionRows::Discrete(vec![0; n]));
    Rollout::new(store, rewards.into(), vec![-1.0; n], episodes.iter().map(segment).collect())
}

#[test]
fn the_divergence_is_taken_from_the_reward() {
    let mut rollout = decisions(&[0.8, 0.5], &[(0..2, 0)]);
    // log pi_old - log pi_ref = .05 and -.1
    rollout.log_probs = vec![-1.0, -1.0];
    let kl_penalty = KlPenalty { log_probs: vec![-1.05, -0.9], in_reward: 6.0, ..KlPenalty::default() };
    let rewards: Vec<f64> = kl_penalty.rewards(&rollout).into_iter().map(f64::from).collect();
    near(&rewards, &[0.5, 1.1], "0.8 - 6 x 0.05 and 0.5 + 6 x 0.1");
    let of_loss = KlPenalty { in_loss: 6.0, in_reward: 0.0, ..kl_penalty.clone() };
    assert_eq!(of_loss.rewards(&rollout), rollout.rewards, "a penalty in the loss is not subtracted twice");
    let (by_decision, by_episode) = kl_penalty.measured(&rollout);
    near(&[by_decision, by_episode], &[-0.025, -0.05], "the mean over decisions, and over episodes");
}

#[test]
fn the_ratio_and_its_clip() {
    let surrogate = Clip { low: 0.2, high: 0.2, dual: f32::INFINITY }.surrogate(-1.8 - -2.1, 0.2);
    near(&[surrogate.ratio.into(), surrogate.loss.into(), surrogate.derivative.into()], &[1.349_858_8, -0.24, 0.0], "clipped");
    let free = Clip { low: 0.2, high: 0.28, dual: f32::INFINITY };
    near(&[free.surrogate(0.3, 0.2).loss.into()], &[-0.256], "clip-higher lets 1.28 through");
    let unclipped = Clip { low: f32::INFINITY, high: f32::INFINITY, dual: f32::INFINITY }.surrogate(0.3, 0.2);
    near(&[unclipped.loss.into(), unclipped.derivative.into()], &[-0.269_971_8; 2], "unclipped");
    let dual = Clip { low: 0.2, high: 0.2, dual: 3.0 }.surrogate(5.0_f32.ln(), -1.0);
    near(&[dual.loss.into(), dual.derivative.into()], &[3.0, 0.0], "dual clip");
    assert!(free.surrogate(1e9, 1.0).ratio.is_finite(), "log-ratios are held within +-20");
}

/// Low only for A < 0, high only for A > 0: with the other sign the gradient is not taken away.
#[test]
fn clips_are_counted_by_their_sign() {
    let clip = Clip { low: 0.2, high: 0.28, dual: f32::INFINITY };
    for (ratio, advantage, expected) in [
        (0.5_f32, -1.0, (true, false)),
        (0.5, 1.0, (false, false)),
        (1.5, 1.0, (false, true)),
        (1.5, -1.0, (false, false)),
        (1.25, 1.0, (false, false)),
        (1.0, 1.0, (false, false)),
    ] {
        assert_eq!(clip.clips(ratio, advantage), expected, "ratio {ratio}, A {advantage}");
        let (low, high) = expected;
        assert_eq!(clip.surrogate(ratio.ln(), advantage).derivative == 0.0, low || high, "ratio {ratio}, A {advantage}");
    }
}

#[test]
fn gae_with_the_score_on_the_last_token() {
    let mut advantages = [0.0; 2];
    gae(&[0.0, 0.5], &[0.25, 0.3], 0.0, 0.99, 0.95, &mut advantages);
    let targets = [advantages[0] + 0.25, advantages[1] + 0.3].map(f64::from);
    near(&advantages.map(f64::from), &[0.2351, 0.2], "advantages");
    near(&targets, &[0.4851, 0.5], "value targets");
}

const GROUP: [f64; 4] = [1.0, 0.8, 0.4, 0.2];

#[test]
fn advantages_of_the_worked_group() {
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

/// The largest advantage is that of one against all others: sqrt(G - 1) or (G - 1) / sqrt(G).
#[test]
fn no_advantage_is_larger_than_that_of_one_against_all() {
    for g in 2..40 {
        let mut returns = vec![0.25; g];
        returns[g / 2] = 1.0;
        let most = |std| group_advantages(&returns, std, f64::NAN, 0.0).into_iter().fold(0.0, |most: f64, a| most.max(a.abs()));
        let n = g as f64;
        near(&[most(GroupStd::Population), most(GroupStd::Sample)], &[(n - 1.0).sqrt(), (n - 1.0) / n.sqrt()], &format!("G = {g}"));
        // and of no group of other returns
        let uneven: Vec<f64> = (0..g).map(|i| (i as f64 * 0.77).sin()).collect();
        let largest =
            group_advantages(&uneven, GroupStd::Population, f64::NAN, 0.0).into_iter().fold(0.0, |most: f64, a| most.max(a.abs()));
        assert!(largest <= (n - 1.0).sqrt() + 1e-12, "G = {g}: {largest}");
    }
}

#[test]
fn nothing_to_choose_between_is_0_and_so_is_what_could_not_be_scored() {
    for std in [GroupStd::Population, GroupStd::Sample, GroupStd::Batch, GroupStd::None] {
        assert_eq!(group_advantages(&[0.1 + 0.2, 0.3], std, 0.5, 0.0), [0.0; 2], "{std:?}: rounding is no spread");
        let with_nan = group_advantages(&[1.0, f64::NAN, 0.8, 0.4, 0.2], std, 0.5, EPSILON);
        let without = group_advantages(&GROUP, std, 0.5, EPSILON);
        assert_eq!([with_nan[0], with_nan[2], with_nan[3], with_nan[4]], *without, "{std:?}: the others do not see it");
        assert_eq!(with_nan[1], 0.0, "{std:?}");
        assert_eq!(group_advantages(&[f64::NAN, f64::NAN], std, 0.5, EPSILON), [0.0; 2], "{std:?}");
        assert!(group_advantages(&[], std, 0.5, EPSILON).is_empty());
        let infinite = group_advantages(&[f64::INFINITY, 0.0, 1.0], std, 0.5, EPSILON);
        assert!(infinite.iter().any(|a| !a.is_finite()), "{std:?}: an infinite reward is an error, not 0: {infinite:?}");
    }
    assert_eq!(leave_one_out(&[3.0]), [0.0]);
    assert_eq!(leave_one_out(&[3.0, f64::NAN, 1.0]), [2.0, 0.0, -2.0]);
}

#[test]
fn estimators_of_the_divergence() {
    near(&[k1(0.3), k2(0.3), k3(0.3)].map(f64::from), &[0.3, 0.045, 0.040_818], "d = 0.3");
}

/// The table of the documentation: on average over pi, k1 in the loss goes nowhere, k2 goes where KL(pi || pi_ref) does, k3 where
/// KL(pi_ref || pi) does.
#[test]
fn each_estimator_has_the_gradient_that_is_said() {
    use gradus_agents::reference::Estimator;
    let (logits, other) = ([0.3_f64, -0.4, 1.1], [-0.2_f64, 0.5, 0.1]);
    let softmax = |z: [f64; 3]| {
        let sum: f64 = z.iter().map(|z| z.exp()).sum();
        z.map(|z| z.exp() / sum)
    };
    let (p, r) = (softmax(logits), softmax(other));
    let kl = |p: [f64; 3], q: [f64; 3]| (0..3).map(|i| p[i] * (p[i] / q[i]).ln()).sum::<f64>();
    let slope = |f: &dyn Fn([f64; 3]) -> f64| -> Vec<f64> {
        let at = |j: usize, by: f64| {
            let mut moved = logits;
            moved[j] += by;
            f(softmax(moved))
        };
        (0..3).map(|j| (at(j, 1e-5) - at(j, -1e-5)) / 2e-5).collect()
    };
    for (estimator, expected) in
        [(Estimator::K1, vec![0.0; 3]), (Estimator::K2, slope(&|p| kl(p, r))), (Estimator::K3, slope(&|p| kl(r, p)))]
    {
        let kl_penalty =
            KlPenalty { log_probs: r.map(|r| r.ln() as f32).into(), in_loss: 1.0, estimator: Some(estimator), ..KlPenalty::default() };
        // sum_a p(a) x derivative x d log pi(a) / d z_j
        let mut mean = vec![0.0; 3];
        for a in 0..3 {
            let term = kl_penalty.term(a, PolicyOutput { log_prob: p[a].ln() as f32, ..PolicyOutput::default() });
            for (j, mean) in mean.iter_mut().enumerate() {
                *mean += p[a] * f64::from(term.d_log_prob) * (f64::from(u8::from(a == j)) - p[j]);
            }
        }
        assert!(mean.iter().zip(&expected).all(|(m, e)| (m - e).abs() < 1e-6), "{estimator:?}: {mean:?} instead of {expected:?}");
    }
    let kl_penalty = KlPenalty { log_probs: vec![-1.0], in_loss: 2.0, estimator: Some(Estimator::Exact), ..KlPenalty::default() };
    let term = kl_penalty.term(0, PolicyOutput { log_prob: -0.5, kl_ref: 0.25, ..PolicyOutput::default() });
    assert_eq!((term.loss, term.d_log_prob, term.d_kl_ref), (0.5, 0.0, 2.0));
}

#[test]
fn aggregations_of_the_worked_losses() {
    let lengths = [2_usize, 4];
    for (how, expected) in [
        (Aggregation::SequenceMean, 2.5),
        (Aggregation::TokenMean, 2.666_667),
        (Aggregation::SequenceSum, 8.0),
        (Aggregation::ConstantLength, 1.0),
    ] {
        let losses = [[1.0, 3.0, 0.0, 0.0], [2.0, 2.0, 2.0, 6.0]];
        let weight = |i: usize| f64::from(how.weight(lengths[i], 6, 2.0, 8));
        let loss: f64 = (0..2).map(|i| weight(i) * losses[i].iter().sum::<f64>()).sum();
        near(&[loss], &[expected], &format!("{how:?}"));
        // and the weights of a deck are these, whether or not episodes stay whole
        let deck = Minibatches::new(&decisions(&[0.0; 6], &[(0..2, 0), (2..6, 0)]), &[], how, 8);
        let flat = [1.0, 3.0, 2.0, 2.0, 2.0, 6.0];
        let all = deck.all();
        let loss: f64 = all.indices.iter().zip(&all.weights).map(|(i, w)| flat[*i as usize] * f64::from(*w)).sum();
        near(&[loss], &[expected], &format!("{how:?}, by a deck"));
    }
}

#[test]
fn the_ratio_of_a_sequence() {
    near(&[f64::from(sequence_ratio(&[0.1, -0.05, 0.2]))], &[1.086_904], "the plain product is 1.284025");
}

#[test]
fn bradley_terry_and_plackett_luce() {
    for (margin, expected) in [(0.0, std::f64::consts::LN_2), (1.0, 0.313_262), (2.0, 0.126_928), (-1.0, 1.313_262)] {
        near(&[bradley_terry(0.3 + margin, 0.3, 0.0, 0.0).0.into()], &[expected], "by the scores");
        near(&[bradley_terry(0.3, 0.3, -margin, 0.0).0.into()], &[expected], "by the margin that was asked for");
        let (loss, derivatives) = plackett_luce(&[margin, 0.0]);
        let (same, slopes) = bradley_terry(margin, 0.0, 0.0, 0.0);
        near(&[loss.into(), derivatives[0].into(), derivatives[1].into()], &[same, slopes[0], slopes[1]].map(f64::from), "two ranked");
    }
    // scores of any size
    for margin in [-1e4_f32, -100.0, 100.0, 1e4] {
        let (loss, slopes) = bradley_terry(margin, 0.0, 0.0, 0.0);
        assert_eq!((loss, slopes[0]), (if margin < 0.0 { -margin } else { 0.0 }, if margin < 0.0 { -1.0 } else { 0.0 }), "{margin}");
    }
    // derivatives by central differences
    let slope = |f: &dyn Fn(f32) -> f32, x: f32| f64::from((f(x + 1e-2) - f(x - 1e-2)) / 2e-2);
    let (c, r) = (0.4_f32, -0.3_f32);
    let (_, d) = bradley_terry(c, r, 0.2, 0.1);
    let by_hand = [slope(&|c| bradley_terry(c, r, 0.2, 0.1).0, c), slope(&|r| bradley_terry(c, r, 0.2, 0.1).0, r)];
    assert!(d.iter().zip(by_hand).all(|(d, e)| (f64::from(*d) - e).abs() < 1e-4), "{d:?} instead of {by_hand:?}");
    let scores = [0.4, -0.3, 1.2, 0.1];
    let (_, derivatives) = plackett_luce(&scores);
    for i in 0..4 {
        let at = |x: f32| {
            let mut moved = scores;
            moved[i] = x;
            plackett_luce(&moved).0
        };
        assert!((f64::from(derivatives[i]) - slope(&at, scores[i])).abs() < 1e-4, "{i}: {derivatives:?}");
    }
}

#[test]
fn process_supervision_of_the_worked_example() {
    // two tokens a step, and one after the last step
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

#[test]
fn beta_follows_the_divergence() {
    near(&[adapted(1.0, 9.0, 6.0, 64, 10_000.0).into()], &[1.001_28], "9 for 6: a fifth at most");
    near(&[adapted(2.0, 5.7, 6.0, 100, 1000.0).into()], &[2.0 * (1.0 - 0.05 * 0.1)], "a little too low");
    near(&[adapted(1.0, -3.0, 6.0, 64, 10_000.0).into()], &[1.0 - 0.2 * 0.0064], "an estimate below 0");
    assert!(adapted(1.0, 0.0, 6.0, 1 << 20, 1.0) > 0.0, "beta never turns over");
}

/// Two groups, interleaved, one of three and one of two: neither reshaping nor order can find them.
#[test]
fn groups_are_known_by_their_id() {
    let rollout = decisions(&[1.0, 5.0, 3.0, 9.0, 5.0], &[(0..1, 7), (1..2, 2), (2..3, 7), (3..4, 2), (4..5, 7)]);
    assert_eq!(groups::by_id(&rollout.segments), [vec![1, 3], vec![0, 2, 4]]);
    let against = groups::against_others(&rollout, &rollout.rewards);
    assert_eq!(against, [-3.0, -4.0, 0.0, 4.0, 3.0]);
}

/// However a minibatch is cut, and in whatever order its parts come, the loss and the gradient are the same but for rounding.
#[test]
fn micro_batches_do_not_show() {
    let mut policy = transformer(1);
    let rollout = rollout(&mut policy, &completions());
    for how in [Aggregation::TokenMean, Aggregation::SequenceMean, Aggregation::SequenceSum, Aggregation::ConstantLength] {
        let deck = Minibatches::new(&rollout, &[], how, 6);
        let all = deck.all();
        let advantages: Vec<f32> = (0..rollout.len()).map(|i| (i as f32 * 0.7).sin()).collect();
        let zeros = vec![0.0; rollout.len()];
        let objective = ReinforceObjective {
            advantages: &advantages,
            returns: &zeros,
            kl_penalty: &KlPenalty::default(),
            entropy_coefficient: 0.01,
            value_coefficient: Some(0.5),
        };
        let whole = policy.gradient(&rollout.store, Batch::new(&all.indices, &all.weights), &objective);
        let expected = policy.last_gradient().to_vec();
        for cut in [1, 3, 7] {
            let (mut sums, mut gradient) = (Sums::default(), vec![0.0; expected.len()]);
            for (indices, weights) in all.indices.chunks(cut).zip(all.weights.chunks(cut)) {
                sums.add(&policy.gradient(&rollout.store, Batch::new(indices, weights), &objective));
                gradient.iter_mut().zip(policy.last_gradient()).for_each(|(sum, g)| *sum += g);
            }
            assert!((sums.loss - whole.loss).abs() < 1e-6, "{how:?}, {cut}: {} instead of {}", sums.loss, whole.loss);
            let worst = gradient.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(worst < 1e-5, "{how:?}, {cut}: gradients differ by {worst}");
        }
    }
}

/// Texts are never cut, each is dealt once per pass, and what is not kept is not dealt; single decisions are dealt elsewhere.
#[test]
fn texts_are_dealt_whole() {
    let mut policy = transformer(1);
    let rollout = rollout(&mut policy, &completions());
    let mut stream = gradus_envs::random::Stream::new(1, gradus_envs::random::Purpose::Shuffle, 0);
    let keep = [true, true, false, true, true, true];
    let mut deck = Minibatches::new(&rollout, &keep, Aggregation::SequenceMean, 0);
    for _ in 0..20 {
        deck.shuffle(&mut stream);
        for minibatches in [deck.parts(2), deck.of_size(6), deck.of_size(1), deck.parts(99)] {
            let mut seen = vec![0; rollout.segments.len()];
            for minibatch in &minibatches {
                let mut inside = 0.0;
                for (i, segment) in rollout.segments.iter().enumerate() {
                    let held: Vec<usize> =
                        (0..minibatch.indices.len()).filter(|k| segment.range.contains(&(minibatch.indices[*k] as usize))).collect();
                    assert!(held.is_empty() || held.len() == segment.range.len(), "text {i} is cut");
                    seen[i] += usize::from(!held.is_empty());
                    inside += f64::from(u8::from(!held.is_empty()));
                }
                let sum: f64 = minibatch.weights.iter().map(|w| f64::from(*w)).sum();
                assert!((sum - 1.0).abs() < 1e-6, "a mean over {inside} texts");
            }
            assert_eq!(seen, keep.map(usize::from), "each once");
        }
        assert!(deck.of_size(6).iter().all(|minibatch| minibatch.indices.len() <= 6));
    }
    let of_decisions = Minibatches::new(&decisions(&[0.0; 6], &[(0..2, 0), (2..6, 0)]), &[], Aggregation::TokenMean, 0);
    assert_eq!(of_decisions.of_size(4).iter().map(|m| m.indices.len()).collect::<Vec<_>>(), [4, 2]);
}

/// The shared ratio's derivative, by central differences of the loss; the KL penalty and the entropy stay with each token.
#[test]
fn a_sequence_moves_as_one() {
    let kl_penalty = KlPenalty { log_probs: vec![-1.2, -0.7, -2.0], in_loss: 0.3, ..KlPenalty::default() };
    for advantage in [-1.5, 0.8] {
        let token = GrpoObjective {
            old_log_probs: &[-1.0, -0.9, -1.8],
            advantages: &[advantage; 3],
            clip: Clip { low: 0.2, high: 0.2, dual: f32::INFINITY },
            kl_penalty: &kl_penalty,
            entropy_coefficient: 0.05,
        };
        let objective = SequenceObjective(&token);
        let judge = |now: [f32; 3]| {
            let mut outputs = now.map(|log_prob| PolicyOutput { log_prob, entropy: 0.4, ..PolicyOutput::default() });
            let mut sums = Sums::default();
            objective.slice(&[0, 1, 2], &[0.2, 0.3, 0.5], &mut outputs, &mut sums);
            (sums, outputs)
        };
        let now = [-0.9, -0.95, -1.6];
        let (sums, outputs) = judge(now);
        // mean log-ratio (.1 - .05 + .2) / 3
        near(&[sums.diagnostics[0]], &[-1.086_904 * f64::from(advantage)], "the policy's loss");
        for t in 0..3 {
            let at = |by: f32| {
                let mut moved = now;
                moved[t] += by;
                judge(moved).0.loss
            };
            let slope = (at(1e-2) - at(-1e-2)) / 2e-2;
            assert!((f64::from(outputs[t].log_prob) - slope).abs() < 1e-4, "A {advantage}, token {t}: {outputs:?} instead of {slope}");
            assert!((outputs[t].entropy + 0.05 * [0.2, 0.3, 0.5][t]).abs() < 1e-7);
        }
        // all ratios far off: nothing pulls but the KL penalty
        let (sums, outputs) = judge([0.0, 0.0, -0.1]);
        let clipped = advantage > 0.0;
        assert_eq!(sums.diagnostics[5] > 0.9, clipped, "clip/high");
        let pull = outputs[0].log_prob - 0.2 * kl_penalty.term(0, PolicyOutput { log_prob: 0.0, ..PolicyOutput::default() }).d_log_prob;
        assert_eq!(pull.abs() < 1e-7, clipped);
        // a slot of weight 0 is not there, whatever it holds
        let mut with_nan =
            [now[0], now[1], now[2], f32::NAN].map(|log_prob| PolicyOutput { log_prob, entropy: 0.4, ..PolicyOutput::default() });
        let mut again = Sums::default();
        objective.slice(&[0, 1, 2, 0], &[0.2, 0.3, 0.5, 0.0], &mut with_nan, &mut again);
        assert_eq!((again, with_nan[3]), (judge(now).0, PolicyOutput::default()));
        assert_eq!(with_nan[..3], judge(now).1);
    }
}

/// 0 times NaN is not 0: decisions of weight 0 are left out.
#[test]
fn nothing_leaks_from_a_slot_of_weight_0() {
    let mut policy = transformer(1);
    let rollout = rollout(&mut policy, &completions());
    let n = rollout.len();
    let (indices, zeros): (Vec<u32>, Vec<f32>) = ((0..n as u32).collect(), vec![0.0; n]);
    let mut advantages = vec![1.0; n];
    advantages[4] = f32::NAN;
    let kl_penalty = KlPenalty { log_probs: vec![f32::NAN; n], in_loss: 1.0, ..KlPenalty::default() };
    let token = GrpoObjective {
        old_log_probs: &vec![f32::NAN; n],
        advantages: &advantages,
        clip: GrpoConfig::default().clip(),
        kl_penalty: &kl_penalty,
        entropy_coefficient: 0.1,
    };
    for objective in [&token as &dyn Objective, &SequenceObjective(&token)] {
        let sums = policy.gradient(&rollout.store, Batch::new(&indices, &zeros), objective);
        assert_eq!(sums, Sums::default(), "a batch that is masked as a whole has loss 0");
        assert!(policy.last_gradient().iter().all(|g| *g == 0.0));
        assert_eq!(policy.gradient(&rollout.store, Batch::new(&[], &[]), objective), Sums::default(), "and so has an empty one");
    }
    // one bad slot among good ones
    let mut weights = vec![0.1; n];
    weights[4] = 0.0;
    let good = ReinforceObjective {
        advantages: &advantages,
        returns: &zeros,
        kl_penalty: &KlPenalty::default(),
        entropy_coefficient: 0.1,
        value_coefficient: Some(0.5),
    };
    let sums = policy.gradient(&rollout.store, Batch::new(&indices, &weights), &good);
    assert!(sums.loss.is_finite() && policy.last_gradient().iter().all(|g| g.is_finite()));
}

fn grpo(config: GrpoConfig, reference: ReferenceConfig) -> Grpo {
    Grpo::new(GrpoConfig { group_size: 3, epochs: 1, minibatches: 1, ..config }, optimiser(), reference, 6).unwrap()
}

#[test]
fn a_completion_that_could_not_be_scored_has_advantage_0_and_is_counted() {
    let mut paid = completions();
    paid[3].2 = vec![f32::NAN];
    for supervision in [Supervision::Outcome, Supervision::Process] {
        let update = |completions: &[common::Completion]| {
            let mut policy = transformer(1);
            let mut rollout = rollout(&mut policy, completions);
            rollout.step_ends = rollout.segments.iter().flat_map(|s| (s.range.clone()).map(|i| i + 1 == s.range.end)).collect();
            let report = grpo(GrpoConfig { supervision, ..GrpoConfig::default() }, ReferenceConfig::default())
                .update(&mut policy, &rollout, context(0))
                .unwrap();
            (report, policy.parameters().to_vec())
        };
        let (report, parameters) = update(&paid);
        assert!((figure(&report, "train/frac_unscored") - 1.0 / 6.0).abs() < 1e-12, "{report:?}");
        assert!(parameters.iter().all(|p| p.is_finite()));
        let (plain, _) = update(&completions());
        assert_eq!(figure(&plain, "train/frac_unscored"), 0.0);
    }
    // the other agents leave it out
    let mut policy = transformer(1);
    let rollout = rollout(&mut policy, &paid);
    let ppo = PpoConfig { episodes_per_env: 1, ..PpoConfig::default() };
    let report = Ppo::new(ppo, optimiser(), ReferenceConfig::default(), 6).unwrap().update(&mut policy, &rollout, context(0)).unwrap();
    assert!((figure(&report, "train/frac_unscored") - 1.0 / 6.0).abs() < 1e-12 && figure(&report, "train/loss").is_finite());
    for baseline in [Baseline::None, Baseline::Mean, Baseline::Value, Baseline::LeaveOneOut] {
        let config = ReinforceConfig { baseline, group_size: 3, normalise_returns: true, ..ReinforceConfig::default() };
        let mut agent = Reinforce::new(config, optimiser(), ReferenceConfig::default(), 6).unwrap();
        let report = agent.update(&mut policy, &rollout, context(0)).unwrap();
        assert!((figure(&report, "train/frac_unscored") - 1.0 / 6.0).abs() < 1e-12, "{baseline:?}");
        assert!(figure(&report, "train/loss").is_finite() && policy.parameters().iter().all(|p| p.is_finite()), "{baseline:?}");
    }
}

/// It is a member of its group, has no tokens and no loss.
#[test]
fn an_empty_completion_is_valid() {
    let mut with_empty = completions();
    with_empty[4] = (0, vec![], vec![]);
    let mut policy = transformer(1);
    let rollout = rollout(&mut policy, &with_empty);
    assert_eq!(rollout.segments.len(), 6);
    for aggregation in [Aggregation::TokenMean, Aggregation::SequenceMean, Aggregation::SequenceSum] {
        let config = GrpoConfig { aggregation, group_std: GroupStd::None, ..GrpoConfig::default() };
        let report = grpo(config, ReferenceConfig::default()).update(&mut transformer(1), &rollout, context(0)).unwrap();
        assert!(report.iter().all(|(name, x)| x.is_finite() || name.contains("reference")), "{report:?}");
        // its return 0 counts in the mean of group 0: (1 + .5 + 0) / 3 = .5, so 3 tokens have .5 and 4 have 0
        let of_group = [0.5 * 3.0, 0.0];
        let of_other = [-0.2 * 2.0, 0.4, -0.2 * 5.0]; // .3, .9, .3 against .5
        if aggregation == Aggregation::TokenMean {
            let mean = (of_group.iter().sum::<f64>() + of_other.iter().sum::<f64>()) / 15.0;
            near(&[figure(&report, "train/policy_gradient_loss")], &[-mean], "at ratio 1");
        }
    }
}

/// Groups without spread teach nothing: with dynamic sampling they are dropped, and where all are, nothing moves.
#[test]
fn a_batch_without_spread_is_loss_0_and_stays() {
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
        assert_eq!((figure(&report, "train/loss"), figure(&report, "train/frac_zero_std")), (0.0, 1.0));
        assert_eq!(policy.parameters(), before);
    }
}

#[test]
fn dynamic_sampling_wants_as_many_groups_with_spread_as_a_round_has() {
    let mut half = completions();
    for i in [1, 3, 5] {
        half[i].2.fill(0.0);
    }
    let mut policy = transformer(1);
    let once = rollout(&mut policy, &half);
    let agent = grpo(GrpoConfig { sampling_rounds: 3, ..GrpoConfig::default() }, ReferenceConfig::default());
    assert!(agent.wants_more(&once), "one of two groups");
    let mut twice = once.clone();
    twice.append(once.clone());
    assert!(!agent.wants_more(&twice), "two of four: enough");
    let nothing = rollout(&mut policy, &completions().into_iter().map(|(g, t, r)| (g, t, vec![0.0; r.len()])).collect::<Vec<_>>());
    let mut rounds = nothing.clone();
    rounds.append(nothing.clone());
    assert!(agent.wants_more(&rounds), "two rounds of three");
    rounds.append(nothing);
    assert!(!agent.wants_more(&rounds), "three rounds are all there are");
    assert!(!grpo(GrpoConfig::default(), ReferenceConfig::default()).wants_more(&once));
    // only the group with spread is learnt from: the others' texts are not in the mean
    let mut agent = grpo(GrpoConfig { sampling_rounds: 2, group_std: GroupStd::None, ..GrpoConfig::default() }, ReferenceConfig::default());
    let report = agent.update(&mut policy, &once, context(0)).unwrap();
    // returns 1, .5, .25, lengths 3, 4, 1
    let mean = (3.0 * (1.0 - 1.75 / 3.0) + 4.0 * (0.5 - 1.75 / 3.0) + (0.25 - 1.75 / 3.0)) / 8.0;
    near(&[figure(&report, "train/policy_gradient_loss")], &[-mean], "at ratio 1");
}

#[test]
fn what_does_not_fit_the_rollout_is_refused_in_a_line() {
    let mut policy = transformer(1);
    let texts = rollout(&mut policy, &completions());
    let numbers = decisions(&[1.0; 6], &[(0..2, 0), (2..4, 0), (4..6, 0)]);
    let message = |config: GrpoConfig, rollout: &Rollout| {
        grpo(config, ReferenceConfig::default()).update(&mut transformer(1), rollout, context(0)).unwrap_err().to_string()
    };
    assert_eq!(
        message(GrpoConfig { supervision: Supervision::Process, ..GrpoConfig::default() }, &texts),
        "grpo.supervision: expected outcome, for this world does not say where steps end, got process"
    );
    assert_eq!(
        message(GrpoConfig { ratio: gradus_agents::grpo::Ratio::Sequence, ..GrpoConfig::default() }, &numbers),
        "grpo.ratio: expected token, for observations are no texts, got sequence"
    );
    let greedy = ReinforceConfig { baseline: Baseline::Greedy, ..ReinforceConfig::default() };
    let error =
        Reinforce::new(greedy, optimiser(), ReferenceConfig::default(), 1).unwrap().update(&mut policy, &texts, context(0)).unwrap_err();
    assert_eq!(error.to_string(), "reinforce.baseline: expected a greedy episode of every group in the rollout, got 0");
    let alone = ReinforceConfig { baseline: Baseline::LeaveOneOut, ..ReinforceConfig::default() }.check(4).unwrap_err().to_string();
    assert_eq!(alone, "reinforce.group_size: expected at least 2, for leave-one-out leaves none of one, got 1");
    let no_length = GrpoConfig { aggregation: Aggregation::ConstantLength, ..GrpoConfig::default() }.check(8).unwrap_err().to_string();
    assert_eq!(no_length, "grpo.constant_length: expected at least 1 for constant-length, got 0");
    let unmoved = ReferenceConfig { adaptive_target: 6.0, ..ReferenceConfig::default() }.check().unwrap_err().to_string();
    assert_eq!(unmoved, "reference.coefficient: expected a number above 0, from where adaptive_target moves it, got 0");
}

/// REINFORCE++: the mean 0 and the sample standard deviation 1 over all tokens; rewards keep their mean.
#[test]
fn whitening_by_hand() {
    let mut numbers = [1.0, 2.0, 6.0];
    whiten(&mut numbers, false);
    let std = 7.0_f64.sqrt();
    near(&numbers.map(f64::from), &[-2.0 / std, -1.0 / std, 3.0 / std], "mean 3, variance 14 / 2");
    let mut rewards = [1.0, 2.0, 6.0];
    whiten(&mut rewards, true);
    near(&rewards.map(f64::from), &[3.0 - 2.0 / std, 3.0 - 1.0 / std, 3.0 + 3.0 / std], "the mean stays");
    let (mut one, mut none) = ([5.0], []);
    whiten(&mut one, false);
    whiten(&mut none, false);
    assert_eq!(one, [5.0]);
}

/// The advantages of REINFORCE's baselines, seen through its loss at weight 1: minus the mean of A log pi.
#[test]
fn baselines_of_reinforce() {
    let mut policy = transformer(1);
    let mut rollout = rollout(&mut policy, &completions());
    // with gamma = 1 the greedy returns are 0.75 and 0.5, with gamma = 1/2 they are 0.25 + 0.5 / 2 and 0.5 / 2
    rollout.greedy_rewards = vec![vec![0.25, 0.5], vec![0.0, 0.5]];
    // with gamma = 1: returns 1, .3, .5, .9, .25, .3 of groups 0, 1, 0, 1, 0, 1; lengths 3, 2, 4, 1, 1, 5
    let greedy = [0.25, -0.2, -0.25, 0.4, -0.5, -0.2];
    let others = [1.0 - 0.375, 0.3 - 0.6, 0.5 - 0.625, 0.9 - 0.3, 0.25 - 0.75, 0.3 - 0.6];
    // with gamma = 1/2: returns 1/4, .3/2, .5/2, .9, .25, .1 + .2/16
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
                (figure(&report, "train/loss") - expected).abs() < 1e-5,
                "{baseline:?}, {gamma}, {aggregation:?}: {report:?}, {expected}"
            );
        }
    }
}

/// Many decisions: minibatches are sorted, and hold whom the shuffled order deals them.
#[test]
fn large_minibatches_are_sorted_and_hold_whom_they_would_hold_anyway() {
    let n = 20_000;
    let mut deck = Minibatches::new(&decisions(&vec![0.0; n], &[(0..n, 0)]), &[], Aggregation::TokenMean, 0);
    deck.shuffle(&mut Stream::new(1, Purpose::Shuffle, 0));
    let dealt = deck.of_size(6000);
    assert_eq!(dealt.iter().map(|minibatch| minibatch.indices.len()).collect::<Vec<_>>(), [6000, 6000, 6000, 2000]);
    assert!(dealt.iter().all(|minibatch| minibatch.indices.is_sorted()));
    let mut order: Vec<u32> = (0..n as u32).collect();
    Stream::new(1, Purpose::Shuffle, 0).shuffle(&mut order);
    for (minibatch, part) in dealt.iter().zip(order.chunks(6000)) {
        let mut part = part.to_vec();
        part.sort_unstable();
        assert_eq!(minibatch.indices, part);
    }
}
