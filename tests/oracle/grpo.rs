//! GRPO: the bias that each of its definitions has, in groups that can be enumerated.

use std::collections::BTreeMap;

use gradus::agents::groups::GroupStd;
use gradus::agents::grpo::{Grpo, GrpoConfig, Ratio, Supervision};
use gradus::agents::reference::ReferenceConfig;
use gradus::agents::{Agent, Aggregation};

use crate::enumeration::{Completion, Oracle, step_reward};
use crate::statistics::{assert_mean_is, clipped, moments};
use crate::{BATCH, GROUP, optimiser};

/// What is added to a deviation.
const EPSILON: f64 = 1e-4;

pub fn config(group_std: GroupStd) -> GrpoConfig {
    GrpoConfig { group_size: GROUP, group_std, aggregation: Aggregation::SequenceSum, ..GrpoConfig::default() }
}

pub fn agent(config: GrpoConfig, reference: ReferenceConfig, batch: usize) -> impl Agent {
    Grpo::new(GrpoConfig { epochs: 1, minibatches: 1, ..config }, optimiser(), reference, batch).unwrap()
}

/// That the mean gradient of these settings in pairs is `expected`.
fn assert_pairs(name: &str, oracle: &Oracle, config: GrpoConfig, batch: usize, expected: &[f64]) {
    let mut agent = agent(GrpoConfig { group_size: 2, ..config }, ReferenceConfig::default(), batch);
    assert_mean_is(name, &oracle.followed(&mut agent, batch, |_| 1.0), expected);
}

/// (r - mean) / (std + eps) of each of some numbers; 0 where all are one. `less` is 0 for the population's deviation, 1 for the sample's.
fn normalised(numbers: &[f64], less: f64) -> Vec<f64> {
    let (mean, std) = moments(numbers, less);
    numbers.iter().map(|r| if std > 1e-9 { (r - mean) / (std + EPSILON) } else { 0.0 }).collect()
}

/// The advantage of y in a pair with z.
fn advantage(y: &Completion, z: &Completion, less: f64) -> f64 {
    normalised(&[y.reward, z.reward], less)[0]
}

/// The mean that is subtracted contains the completion itself: (G - 1) / G of the gradient.
#[test]
fn grpo_without_std_is_shrunk() {
    let mut oracle = Oracle::new();
    let shrunk: Vec<f64> = oracle.policy_gradient().iter().map(|g| g * (GROUP - 1) as f64 / GROUP as f64).collect();
    let samples = oracle.followed(&mut agent(config(GroupStd::None), ReferenceConfig::default(), BATCH), BATCH, |_| 1.0);
    assert_mean_is("GRPO without std: (G - 1) / G", &samples, &shrunk);
}

#[test]
fn grpo_has_the_bias_of_its_deviation_and_of_its_aggregation() {
    let mut oracle = Oracle::new();
    for (std, less) in [(GroupStd::Population, 0.0), (GroupStd::Sample, 1.0)] {
        // the mean over completions of the sum over tokens; with sequence-mean each counts by one over its length, too, and with
        // constant-length by one over that constant. The number of tokens, by which token-mean divides, is that of a batch of two
        for (how, batch) in [
            (Aggregation::SequenceSum, BATCH),
            (Aggregation::SequenceMean, BATCH),
            (Aggregation::ConstantLength, BATCH),
            (Aggregation::TokenMean, 2),
        ] {
            let share = |y: &Completion, z: &Completion| match how {
                Aggregation::SequenceSum => 1.0,
                Aggregation::SequenceMean => 1.0 / y.length(),
                Aggregation::ConstantLength => 1.0 / 5.0,
                Aggregation::TokenMean => 2.0 / (y.length() + z.length()),
            };
            let expected = oracle.gradient_in_pairs(|y, z| vec![share(y, z) * advantage(y, z, less); y.said.len()]);
            let config = GrpoConfig { aggregation: how, constant_length: 5, ..config(std) };
            assert_pairs(&format!("GRPO in pairs, {std:?}, {how:?}"), &oracle, config, batch, &expected);
        }
    }
}

/// The mean is the pair's, the deviation that of a batch of two pairs: of its four rewards.
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

/// The rewards of the steps of a pair are normalised together, and a token has the sum of those of the steps that end at it or later.
#[test]
fn process_supervision_pays_tokens_by_the_steps_to_come() {
    let mut oracle = Oracle::stepwise();
    // where each step of a completion ends, and what it is paid: its end pays what the steps before it have left
    let steps = |y: &Completion| {
        let last = y.said.len() - 1;
        let mut steps: Vec<(usize, f64)> = (0..last).filter_map(|t| Some((t, step_reward(&y.said[..=t])?))).collect();
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
            (0..y.said.len()).map(to_come).collect()
        });
        let config = GrpoConfig { supervision: Supervision::Process, ..config(std) };
        assert_pairs(&format!("GRPO in pairs, process, {std:?}"), &oracle, config, BATCH, &expected);
    }
    // outcome supervision does not see the steps
    let expected = oracle.gradient_in_pairs(|y, z| vec![advantage(y, z, 0.0); y.said.len()]);
    assert_pairs("GRPO in pairs, outcome, in a world of steps", &oracle, config(GroupStd::Population), BATCH, &expected);
}

/// In its first step the ratio is 1, and what is left of A s is A / T times the sum of grad log pi: GRPO with sequence-mean. Later each
/// completion has one ratio, the geometric mean of its tokens', and one clip; with the ratio of tokens each of these has its own.
#[test]
fn gspo_has_one_ratio_for_a_completion() {
    let mut oracle = Oracle::new();
    let gspo = GrpoConfig { ratio: Ratio::Sequence, aggregation: Aggregation::SequenceMean, ..config(GroupStd::Population) };
    let expected = oracle.gradient_in_pairs(|y, z| vec![advantage(y, z, 0.0) / y.length(); y.said.len()]);
    assert_pairs("GSPO, first step", &oracle, gspo.clone(), BATCH, &expected);

    oracle.move_on(0.25);
    let log_ratios = oracle.log_ratios();
    let ranges = (0.2, 1.0, 1.3);
    let clips = GrpoConfig { clip: 0.2, clip_high: 1.0, dual_clip: 1.3, ..gspo };
    let expected = oracle.gradient_in_pairs(|y, z| {
        let ratio = (log_ratios[y.range.clone()].iter().sum::<f64>() / y.length()).exp();
        vec![clipped(ratio, advantage(y, z, 0.0), ranges) / y.length(); y.said.len()]
    });
    assert_pairs("GSPO, later step", &oracle, clips.clone(), BATCH, &expected);

    let expected = oracle.gradient_in_pairs(|y, z| {
        let ratios = log_ratios[y.range.clone()].iter().map(|l| l.exp());
        ratios.map(|ratio| clipped(ratio, advantage(y, z, 0.0), ranges) / y.length()).collect()
    });
    assert_pairs("GRPO, later step", &oracle, GrpoConfig { ratio: Ratio::Token, ..clips }, BATCH, &expected);
}
