//! Each variant of GRPO has the bias that follows from its definition, in groups that can be enumerated.

use std::collections::BTreeMap;

use gradus::agents::groups::GroupStd;
use gradus::agents::grpo::{Grpo, GrpoConfig, Ratio, Supervision};
use gradus::agents::reference::ReferenceConfig;
use gradus::agents::{Agent, Aggregation};

use gradus::agents::surrogate::Clipped;

use crate::enumeration::{Completion, Oracle, step_reward};
use crate::statistics::{assert_mean_is, clipped, moments};
use crate::{BATCH, GROUP, optimiser};

/// The number that GRPO adds to a standard deviation.
const EPSILON: f64 = 1e-4;

pub fn config(group_std: GroupStd) -> GrpoConfig {
    GrpoConfig { group_size: GROUP, group_std, aggregation: Aggregation::SequenceSum, ..GrpoConfig::default() }
}

pub fn agent(config: GrpoConfig, reference: ReferenceConfig, batch: usize) -> impl Agent {
    Grpo::new(GrpoConfig { epochs: 1, minibatches: 1, ..config }, optimiser(), reference, batch).unwrap()
}

/// Asserts that the mean gradient with the settings `config` and groups of two is `expected`.
fn assert_pairs(name: &str, oracle: &Oracle, config: GrpoConfig, batch: usize, expected: &[f64]) {
    let mut agent = agent(GrpoConfig { group_size: 2, ..config }, ReferenceConfig::default(), batch);
    assert_mean_is(name, &oracle.agent_gradients(&mut agent, batch, |_| 1.0), expected);
}

/// Returns (r - mean) / (std + eps) of each number r; 0 if all are equal. `less` is 0 for the population's standard deviation, 1 for the
/// sample's.
fn normalised(numbers: &[f64], less: f64) -> Vec<f64> {
    let (mean, std) = moments(numbers, less);
    numbers.iter().map(|r| if std > 1e-9 { (r - mean) / (std + EPSILON) } else { 0.0 }).collect()
}

/// Returns the advantage of y in a pair with z.
fn advantage(y: &Completion, z: &Completion, less: f64) -> f64 {
    normalised(&[y.reward, z.reward], less)[0]
}

/// The subtracted mean includes the completion itself, which leaves (G - 1) / G of the gradient.
#[test]
fn grpo_without_std_is_shrunk() {
    let mut oracle = Oracle::new();
    let shrunk: Vec<f64> = oracle.policy_gradient().iter().map(|g| g * (GROUP - 1) as f64 / GROUP as f64).collect();
    let samples = oracle.agent_gradients(&mut agent(config(GroupStd::None), ReferenceConfig::default(), BATCH), BATCH, |_| 1.0);
    assert_mean_is("GRPO without std: (G - 1) / G", &samples, &shrunk);
}

#[test]
fn grpo_has_the_bias_of_its_deviation_and_of_its_aggregation() {
    let mut oracle = Oracle::new();
    for (std, less) in [(GroupStd::Population, 0.0), (GroupStd::Sample, 1.0)] {
        // sequence-sum is the mean over completions of the sum over tokens; sequence-mean also divides by the length, constant-length by
        // its constant, and token-mean by the mean length in a batch of two
        for (aggregation, batch) in [
            (Aggregation::SequenceSum, BATCH),
            (Aggregation::SequenceMean, BATCH),
            (Aggregation::ConstantLength, BATCH),
            (Aggregation::TokenMean, 2),
        ] {
            let share = |y: &Completion, z: &Completion| match aggregation {
                Aggregation::SequenceSum => 1.0,
                Aggregation::SequenceMean => 1.0 / y.length(),
                Aggregation::ConstantLength => 1.0 / 5.0,
                Aggregation::TokenMean => 2.0 / (y.length() + z.length()),
            };
            let expected = oracle.gradient_in_pairs(|y, z| vec![share(y, z) * advantage(y, z, less); y.tokens.len()]);
            let config = GrpoConfig { aggregation, constant_length: 5, ..config(std) };
            assert_pairs(&format!("GRPO in pairs, {std:?}, {aggregation:?}"), &oracle, config, batch, &expected);
        }
    }
}

/// The subtracted mean is the mean of the pair. The standard deviation is that of the four rewards in a batch of two pairs.
#[test]
fn grpo_has_the_bias_of_the_deviation_of_its_batch() {
    let mut oracle = Oracle::new();
    let mut probabilities: BTreeMap<u64, f64> = BTreeMap::new();
    for y in &oracle.completions {
        *probabilities.entry(y.reward.to_bits()).or_default() += y.probability;
    }
    let rewards: Vec<(f64, f64)> = probabilities.into_iter().map(|(bits, p)| (f64::from_bits(bits), p)).collect();
    let mean_advantage = |r: f64| {
        let mut sum = 0.0;
        for (other, p) in rewards.iter().filter(|(other, _)| *other != r) {
            for (third, q) in &rewards {
                for (fourth, s) in &rewards {
                    let (_, std) = moments(&[r, *other, *third, *fourth], 1.0);
                    sum += p * q * s * (r - 0.5 * (r + other)) / (std + EPSILON);
                }
            }
        }
        sum
    };
    let completions = oracle.completions.clone();
    let expected = oracle.gradient(|y, _| completions[y].probability * mean_advantage(completions[y].reward));
    assert_pairs("GRPO, deviation of a batch of two pairs", &oracle, config(GroupStd::Batch), 4, &expected);
}

/// The rewards of the steps of a pair are normalised together. A token's advantage is the sum of the normalised rewards of the steps that
/// end at this token or later.
#[test]
fn process_supervision_sums_the_steps_that_end_at_a_token_or_later() {
    let mut oracle = Oracle::stepwise();
    // the end and the reward of each step of a completion; the last step gets the rest of the reward
    let steps = |y: &Completion| {
        let last = y.tokens.len() - 1;
        let mut steps: Vec<(usize, f64)> = (0..last).filter_map(|t| Some((t, step_reward(&y.tokens[..=t])?))).collect();
        let given: f64 = steps.iter().map(|(_, reward)| reward).sum();
        steps.push((last, y.reward - given));
        steps
    };
    for (std, less) in [(GroupStd::Population, 0.0), (GroupStd::Sample, 1.0)] {
        let expected = oracle.gradient_in_pairs(|y, z| {
            let (of_y, of_z) = (steps(y), steps(z));
            let pool: Vec<f64> = of_y.iter().chain(&of_z).map(|(_, reward)| *reward).collect();
            let normalised = normalised(&pool, less);
            let to_come = |t: usize| of_y.iter().zip(&normalised).filter(|((end, _), _)| *end >= t).map(|(_, a)| a).sum();
            (0..y.tokens.len()).map(to_come).collect()
        });
        let config = GrpoConfig { supervision: Supervision::Process, ..config(std) };
        assert_pairs(&format!("GRPO in pairs, process, {std:?}"), &oracle, config, BATCH, &expected);
    }
    // outcome supervision ignores the steps
    let expected = oracle.gradient_in_pairs(|y, z| vec![advantage(y, z, 0.0); y.tokens.len()]);
    assert_pairs("GRPO in pairs, outcome, in a world of steps", &oracle, config(GroupStd::Population), BATCH, &expected);
}

/// In the first optimiser step, the ratio s of a completion is 1. If A is its advantage and T its number of tokens, the gradient of A s is
/// then A / T times the sum of grad log pi, as in GRPO with sequence-mean. In a later step, each completion has one ratio, the geometric
/// mean of its tokens' ratios, and one clip. With token ratios, each token has its own ratio and clip.
#[test]
fn gspo_has_one_ratio_for_a_completion() {
    let mut oracle = Oracle::new();
    let gspo = GrpoConfig { ratio: Ratio::Sequence, aggregation: Aggregation::SequenceMean, ..config(GroupStd::Population) };
    let expected = oracle.gradient_in_pairs(|y, z| vec![advantage(y, z, 0.0) / y.length(); y.tokens.len()]);
    assert_pairs("GSPO, first step", &oracle, gspo.clone(), BATCH, &expected);

    oracle.move_on(0.25);
    let log_ratios = oracle.log_ratios();
    let ranges = (0.2, 1.0, 1.3);
    let clips = GrpoConfig { clip: 0.2, clip_high: 1.0, dual_clip: 1.3, ..gspo };
    let expected = oracle.gradient_in_pairs(|y, z| {
        let ratio = (log_ratios[y.range.clone()].iter().sum::<f64>() / y.length()).exp();
        vec![clipped(ratio, advantage(y, z, 0.0), ranges) / y.length(); y.tokens.len()]
    });
    assert_pairs("GSPO, later step", &oracle, clips.clone(), BATCH, &expected);

    let expected = oracle.gradient_in_pairs(|y, z| {
        let ratios = log_ratios[y.range.clone()].iter().map(|l| l.exp());
        ratios.map(|ratio| clipped(ratio, advantage(y, z, 0.0), ranges) / y.length()).collect()
    });
    assert_pairs("GRPO, later step", &oracle, GrpoConfig { ratio: Ratio::Token, ..clips }, BATCH, &expected);
}

/// In a later step, the weight of a token is its clipped ratio, and tokens beyond the clip range keep their gradient.
#[test]
fn cispo_clips_the_weight_of_a_token() {
    let mut oracle = Oracle::new();
    oracle.move_on(0.25);
    let log_ratios = oracle.log_ratios();
    let weight = |l: &f64| l.exp().clamp(1.0 - 0.2, 1.0 + 0.1);
    assert!(log_ratios.iter().any(|l| weight(l) == 1.1) && log_ratios.iter().any(|l| weight(l) == 0.8), "expected both clips");
    let expected = oracle.gradient_in_pairs(|y, z| log_ratios[y.range.clone()].iter().map(|l| weight(l) * advantage(y, z, 0.0)).collect());
    let config = GrpoConfig { clipped: Clipped::Weight, clip: 0.2, clip_high: 0.1, ..config(GroupStd::Population) };
    assert_pairs("CISPO, later step", &oracle, config, BATCH, &expected);
}
