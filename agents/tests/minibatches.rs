//! Minibatches: the decisions that they hold, and the weights of the decisions.

mod common;

use common::texts::{completions, rollout, transformer};
use common::{decisions, near};
use gradus_agents::reference::KlPenalty;
use gradus_agents::reinforce::ReinforceObjective;
use gradus_agents::returns::{self, Truncated};
use gradus_agents::{Aggregation, Gae, Minibatches};
use gradus_base::random::{Purpose, Stream};
use gradus_nets::{Batch, Network, Policy, Sequence, Sequences, Sums};

#[test]
fn aggregations_give_the_worked_losses() {
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
        // minibatches of single decisions give the same losses
        let minibatches = Minibatches::new(&decisions(&[0.0; 6], &[(0..2, 0), (2..6, 0)]), &[], how, 8);
        let flat = [1.0, 3.0, 2.0, 2.0, 2.0, 6.0];
        let all = minibatches.all();
        let loss: f64 = all.indices.iter().zip(&all.weights).map(|(i, w)| flat[*i as usize] * f64::from(*w)).sum();
        near(&[loss], &[expected], &format!("{how:?}, by minibatches"));
    }
}

/// The loss and the gradient do not depend on how a minibatch is split into micro-batches, except for rounding errors.
#[test]
fn micro_batches_give_the_same_loss_and_gradient() {
    let mut policy = transformer(1);
    let rollout = rollout(&mut policy, &completions());
    for how in [Aggregation::TokenMean, Aggregation::SequenceMean, Aggregation::SequenceSum, Aggregation::ConstantLength] {
        let minibatches = Minibatches::new(&rollout, &[], how, 6);
        let all = minibatches.all();
        let advantages: Vec<f32> = (0..rollout.len()).map(|i| (i as f32 * 0.7).sin()).collect();
        let zeros = vec![0.0; rollout.len()];
        let objective = ReinforceObjective {
            clip: None,
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
            assert!((sums.loss - whole.loss).abs() < 1e-6, "{how:?}, {cut}: expected {}, got {}", whole.loss, sums.loss);
            let worst = gradient.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(worst < 1e-5, "{how:?}, {cut}: gradients differ by {worst}");
        }
    }
}

/// Texts are not split. Every text for which `keep` is true is used once per pass, and no other text is used. On numeric observations,
/// minibatches hold single decisions.
#[test]
fn minibatches_of_texts_hold_whole_texts() {
    let mut policy = transformer(1);
    let rollout = rollout(&mut policy, &completions());
    let mut stream = gradus_base::random::Stream::new(1, gradus_base::random::Purpose::Shuffle, 0);
    let keep = [true, true, false, true, true, true];
    let mut minibatches = Minibatches::new(&rollout, &keep, Aggregation::SequenceMean, 0);
    for _ in 0..20 {
        minibatches.shuffle(&mut stream);
        for parts in [minibatches.parts(2), minibatches.of_size(6), minibatches.of_size(1), minibatches.parts(99)] {
            let mut seen = vec![0; rollout.segments.len()];
            for minibatch in &parts {
                let mut inside = 0.0;
                for (i, segment) in rollout.segments.iter().enumerate() {
                    let held: Vec<usize> =
                        (0..minibatch.indices.len()).filter(|k| segment.range.contains(&(minibatch.indices[*k] as usize))).collect();
                    assert!(held.is_empty() || held.len() == segment.range.len(), "text {i} is split");
                    seen[i] += usize::from(!held.is_empty());
                    inside += f64::from(u8::from(!held.is_empty()));
                }
                let sum: f64 = minibatch.weights.iter().map(|w| f64::from(*w)).sum();
                assert!((sum - 1.0).abs() < 1e-6, "the weights of {inside} texts sum to {sum}");
            }
            assert_eq!(seen, keep.map(usize::from), "every text for which `keep` is true is used once");
        }
        assert!(minibatches.of_size(6).iter().all(|minibatch| minibatch.indices.len() <= 6));
    }
    let of_decisions = Minibatches::new(&decisions(&[0.0; 6], &[(0..2, 0), (2..6, 0)]), &[], Aggregation::TokenMean, 0);
    assert_eq!(of_decisions.of_size(4).iter().map(|m| m.indices.len()).collect::<Vec<_>>(), [4, 2]);
    // as many as were asked for, where there are so many decisions
    for (parts, sizes) in [(4, vec![1, 2, 1, 2]), (5, vec![1, 1, 1, 1, 2]), (9, vec![1; 6])] {
        assert_eq!(of_decisions.parts(parts).iter().map(|m| m.indices.len()).collect::<Vec<_>>(), sizes);
    }
}

/// A policy with a memory reads sequences, which minibatches hold whole and in order, each once in a pass. Those of a segment that is left out are left out.
#[test]
fn minibatches_of_sequences_hold_whole_sequences() {
    let mut rollout = decisions(&[0.0; 12], &[(0..5, 0), (5..12, 1)]);
    let list = [(0..3), (3..5), (5..8), (8..11), (11..12)].map(|decisions| Sequence { decisions, successor: None });
    rollout.store = rollout.store.with_sequences(Sequences { list: list.to_vec(), memory: vec![0.0; 5] });
    let mut stream = Stream::new(1, Purpose::Shuffle, 0);
    for (keep, used) in [(vec![], 0..5), (vec![false, true], 2..5)] {
        let mut minibatches = Minibatches::new(&rollout, &keep, Aggregation::TokenMean, 0);
        let mut orders = Vec::new();
        for _ in 0..20 {
            minibatches.shuffle(&mut stream);
            for parts in [minibatches.of_size(4), minibatches.of_size(1), minibatches.parts(2), minibatches.parts(99)] {
                let mut held = Vec::new();
                for minibatch in &parts {
                    let mut rest = &minibatch.indices[..];
                    while let Some(first) = rest.first() {
                        let number =
                            list.iter().position(|sequence| sequence.decisions.start == *first as usize).expect("a first decision");
                        let (own, others) = rest.split_at(list[number].decisions.len());
                        assert!(own.iter().zip(list[number].decisions.clone()).all(|(i, decision)| *i as usize == decision), "{own:?}");
                        held.push(number);
                        rest = others;
                    }
                }
                orders.push(held.clone());
                held.sort_unstable();
                assert!(held.into_iter().eq(used.clone()), "each once");
            }
            assert!(minibatches.of_size(4).iter().all(|minibatch| minibatch.indices.len() <= 4));
        }
        assert!(orders.iter().any(|order| *order != orders[0]), "shuffled");
    }
}

/// In a large rollout, each minibatch is sorted and holds the decisions that the shuffled order assigns to it.
#[test]
fn large_minibatches_are_sorted_and_hold_the_same_decisions() {
    let n = 20_000;
    let mut minibatches = Minibatches::new(&decisions(&vec![0.0; n], &[(0..n, 0)]), &[], Aggregation::TokenMean, 0);
    minibatches.shuffle(&mut Stream::new(1, Purpose::Shuffle, 0));
    let dealt = minibatches.of_size(6000);
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

/// In a very large rollout, the minibatches hold the decisions with the smallest random keys, the next ones, and so on, for any number of threads.
#[test]
fn drawn_minibatches_are_those_of_the_sorted_keys() {
    let n = 140_001;
    let mut keys = vec![0; n];
    Stream::new(1, Purpose::Shuffle, 0).fill(&mut keys);
    let mut order: Vec<u32> = (0..n as u32).collect();
    order.sort_by_key(|i| keys[*i as usize]);
    for size in [1000, 35_000, 46_667, 200_000] {
        let expected = order.chunks(size).map(|part| {
            let mut part = part.to_vec();
            part.sort_unstable();
            part
        });
        let expected: Vec<Vec<u32>> = expected.collect();
        for threads in [1, 3] {
            let drawn = gradus_base::threads::with(threads, || {
                let mut minibatches = Minibatches::new(&decisions(&vec![0.0; n], &[(0..n, 0)]), &[], Aggregation::TokenMean, 0);
                let mut stream = Stream::new(1, Purpose::Shuffle, 0);
                minibatches.shuffle(&mut stream);
                assert_eq!(stream.position(), n as u64, "every pass has its own random numbers");
                // as many as were asked for, of nearly equal sizes, in the same order
                let parts = minibatches.parts(500);
                let sizes = parts.iter().map(|part| part.indices.len());
                assert!(parts.len() == 500 && sizes.clone().all(|size| size == n / 500 || size == n / 500 + 1));
                assert_eq!(sizes.sum::<usize>(), n);
                let mut first: Vec<u32> = parts[..100].iter().flat_map(|part| part.indices.clone()).collect();
                let mut smallest = order[..100 * n / 500].to_vec();
                first.sort_unstable();
                smallest.sort_unstable();
                assert_eq!(first, smallest);
                minibatches.of_size(size)
            });
            let indices: Vec<Vec<u32>> = drawn.iter().map(|minibatch| minibatch.indices.clone()).collect();
            assert_eq!(indices, expected, "{size}, {threads} threads");
            assert!(drawn.iter().all(|m| (m.weights.iter().map(|w| f64::from(*w)).sum::<f64>() - 1.0).abs() < 1e-3));
        }
    }
}

/// In a very large rollout all threads estimate advantages and their moments; the numbers are those of the formulas.
#[test]
fn large_rollouts_have_the_advantages_of_their_segments() {
    let (n, length) = (140_000, 70);
    let segments: Vec<_> = (0..n / length).map(|i| (i * length..(i + 1) * length, 0)).collect();
    let rewards: Vec<f32> = (0..n).map(|i| (i as f32 * 0.37).sin()).collect();
    let values: Vec<f32> = (0..n).map(|i| (i as f32 * 0.11).cos()).collect();
    let rollout = decisions(&rewards, &segments);
    let gae = Gae { gamma: 0.9, lambda: 0.8, truncated: Truncated::Bootstraps };
    let (mut advantages, mut targets) = (Vec::new(), Vec::new());
    gradus_base::threads::with(3, || gae.of_rollout(&rollout, &values, &mut advantages, &mut targets));
    let mut expected = vec![0.0; n];
    for segment in &rollout.segments {
        let range = segment.range.clone();
        let bootstrap = segment.bootstrap(&values);
        returns::gae(&rewards[range.clone()], &values[range.clone()], bootstrap, 0.9, 0.8, &mut expected[range]);
    }
    assert_eq!(advantages, expected);
    assert!(targets.iter().zip(&expected).zip(&values).all(|((target, advantage), value)| *target == advantage + value));

    let explained = gradus_base::threads::with(3, || returns::explained_variance(&values, &targets));
    let variance = |x: &dyn Fn(usize) -> f64| {
        let mean = (0..n).map(x).sum::<f64>() / n as f64;
        (0..n).map(|i| (x(i) - mean).powi(2)).sum::<f64>() / n as f64
    };
    let of_errors = variance(&|i| f64::from(targets[i]) - f64::from(values[i]));
    near(&[explained], &[1.0 - of_errors / variance(&|i| f64::from(targets[i]))], "explained variance");

    let some: Vec<u32> = (0..n as u32).rev().collect();
    let (mean, std) = gradus_base::threads::with(3, || returns::standardisation_of(&expected, &some));
    let (expected_mean, expected_std) = returns::standardisation(expected.iter().copied());
    near(&[f64::from(mean), f64::from(std)], &[f64::from(expected_mean), f64::from(expected_std)], "moments");
}
