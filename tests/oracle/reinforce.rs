//! REINFORCE is unbiased with every baseline, including those of RLOO and ReMax. REINFORCE++ has the bias of its whitening.

use gradus::agents::reference::{KlPlace, ReferenceConfig};
use gradus::agents::reinforce::{Baseline, Reinforce, ReinforceConfig};
use gradus::agents::{Agent, Aggregation};

use crate::enumeration::{Completion, Oracle};
use crate::statistics::{assert_mean_is, clipped, whitened};
use crate::{BATCH, GROUP, optimiser};

pub fn config(baseline: Baseline) -> ReinforceConfig {
    let group_size = if matches!(baseline, Baseline::LeaveOneOut | Baseline::Greedy) { GROUP } else { 1 };
    let aggregation = Aggregation::SequenceSum;
    ReinforceConfig { baseline, group_size, gamma: 1.0, aggregation, value_coefficient: 0.0, ..ReinforceConfig::default() }
}

pub fn agent(config: ReinforceConfig, reference: ReferenceConfig, batch: usize) -> impl Agent {
    Reinforce::new(config, optimiser(), reference, batch).unwrap()
}

#[test]
fn reinforce_is_unbiased_with_every_baseline() {
    let mut oracle = Oracle::new();
    let exact = oracle.policy_gradient();
    for baseline in [Baseline::None, Baseline::Mean, Baseline::Value, Baseline::Greedy, Baseline::LeaveOneOut] {
        let mut agent = agent(config(baseline), ReferenceConfig::default(), BATCH);
        let samples = oracle.agent_gradients(&mut agent, BATCH, |_| 1.0);
        assert_mean_is(&format!("REINFORCE, baseline {baseline:?}"), &samples, &exact);
    }
}

/// A completion of T tokens with the reward R has the discounted return gamma^(T-1) R. In ReMax, the advantage of every token is this
/// return minus that of the greedy completion. The mean over the tokens divides by the length, so even a constant baseline changes the
/// expected gradient.
#[test]
fn remax_discounts_its_baseline_like_its_returns() {
    let mut oracle = Oracle::new();
    let gamma = 0.3_f64;
    let discounted = |y: &Completion| gamma.powi(y.tokens.len() as i32 - 1) * y.reward;
    let baseline = discounted(oracle.greedy());
    assert!(oracle.greedy().tokens.len() > 1 && baseline > 0.0, "expected a greedy return that a discount changes");
    let completions = oracle.completions.clone();
    let expected = oracle.gradient(|y, _| {
        let y = &completions[y];
        y.probability * (discounted(y) - baseline) / y.length()
    });
    let config = ReinforceConfig { gamma: gamma as f32, aggregation: Aggregation::SequenceMean, ..config(Baseline::Greedy) };
    let samples = oracle.agent_gradients(&mut agent(config, ReferenceConfig::default(), BATCH), BATCH, |_| 1.0);
    assert_mean_is("ReMax, gamma 0.3", &samples, &expected);
}

/// The KL penalty is in the reward of each token. The discounted returns to go of all tokens of the batch are whitened, and the loss is a
/// mean over tokens. A batch has two completions, so all pairs are enumerated.
#[test]
fn reinforce_plus_plus_has_the_bias_of_its_whitening() {
    let mut oracle = Oracle::new();
    let (beta, gamma) = (0.2, 0.9);
    let d = oracle.against_reference();
    let returns = |y: &Completion| {
        let mut to_go: Vec<f64> = d[y.range.clone()].iter().map(|d| -f64::from(beta) * d).collect();
        *to_go.last_mut().unwrap() += y.reward;
        (0..to_go.len() - 1).rev().for_each(|t| to_go[t] += gamma * to_go[t + 1]);
        to_go
    };
    // the whitened returns of y in a batch with z, each divided by the mean length
    let advantages = |y: &Completion, z: &Completion| -> Vec<f64> {
        let (of_both, n) = ([returns(y), returns(z)].concat(), y.length() + z.length());
        whitened(&of_both)[..y.tokens.len()].iter().map(|a| 2.0 * a / n).collect()
    };
    let expected = oracle.gradient_in_pairs(advantages);
    let aggregation = Aggregation::TokenMean;
    let config = ReinforceConfig { gamma: gamma as f32, aggregation, normalise_returns: true, ..config(Baseline::None) };
    let reference = ReferenceConfig { coefficient: beta, place: KlPlace::Reward, ..ReferenceConfig::default() };
    let samples = oracle.agent_gradients(&mut agent(config.clone(), reference.clone(), 2), 2, |_| 1.0);
    assert_mean_is("REINFORCE++ in batches of two", &samples, &expected);

    // in a later step each token has its ratio and the clip of PPO
    oracle.move_on(0.25);
    let log_ratios = oracle.log_ratios();
    let expected = oracle.gradient_in_pairs(|y, z| {
        let ratios = log_ratios[y.range.clone()].iter().map(|l| l.exp());
        ratios.zip(advantages(y, z)).map(|(ratio, a)| clipped(ratio, a, (0.2, 0.2, f64::INFINITY))).collect()
    });
    let config = ReinforceConfig { clip: 0.2, ..config };
    let samples = oracle.agent_gradients(&mut agent(config, reference, 2), 2, |_| 1.0);
    assert_mean_is("REINFORCE++, later step", &samples, &expected);
}
