//! PPO's gradient is unbiased with lambda 1, and has GAE's bias below lambda 1. Whitening adds a bias of its own. In later optimiser steps,
//! ratios and clips change the gradient.

use gradus::agents::ppo::{Ppo, PpoConfig};
use gradus::agents::reference::{KlPlace, ReferenceConfig};
use gradus::agents::returns::NormaliseOver;

use crate::enumeration::{Completion, Oracle};
use crate::statistics::{assert_mean_is, clipped, moments, whitened};
use crate::{BATCH, optimiser};

/// Returns the settings of one optimiser step on a rollout of whole episodes.
fn config() -> PpoConfig {
    PpoConfig {
        episodes_per_env: 1,
        epochs: 1,
        minibatch_size: BATCH * 3,
        gamma: 1.0,
        gae_lambda: 1.0,
        value_coefficient: 0.0,
        normalise_advantages: false,
        normalise_over: NormaliseOver::Rollout,
        ..PpoConfig::default()
    }
}

fn agent(config: PpoConfig, reference: ReferenceConfig, batch: usize) -> Ppo {
    Ppo::new(config, optimiser(), reference, batch).unwrap()
}

/// Returns the factor that turns a mean over decisions into a mean over completions of a sum over tokens.
fn as_sum(decisions: usize) -> f64 {
    decisions as f64 / BATCH as f64
}

/// Returns GAE by its definition: A_t is the sum over l of (gamma lambda)^l delta_{t+l}, where delta_t = r_t + gamma V_{t+1} - V_t.
fn advantages(rewards: &[f64], values: &[f64], gamma: f64, lambda: f64) -> Vec<f64> {
    let delta = |t: usize| rewards[t] + gamma * values.get(t + 1).unwrap_or(&0.0) - values[t];
    let from = |t: usize| (t..rewards.len()).map(|s| (gamma * lambda).powi((s - t) as i32) * delta(s)).sum();
    (0..rewards.len()).map(from).collect()
}

/// Returns the rewards of a completion's tokens: the last token has the whole reward, the others 0.
fn at_the_end(y: &Completion) -> Vec<f64> {
    let mut rewards = vec![0.0; y.tokens.len()];
    *rewards.last_mut().unwrap() = y.reward;
    rewards
}

#[test]
fn ppo_with_lambda_1_is_unbiased_for_any_values() {
    let mut oracle = Oracle::new();
    let exact = oracle.policy_gradient();
    let samples = oracle.agent_gradients(&mut agent(config(), ReferenceConfig::default(), BATCH), BATCH, as_sum);
    assert_mean_is("PPO, lambda 1, first step", &samples, &exact);
}

#[test]
fn gae_has_the_bias_of_its_values() {
    let mut oracle = Oracle::new();
    let (completions, values) = (oracle.completions.clone(), oracle.values());
    let of = |y: &Completion| advantages(&at_the_end(y), &values[y.range.clone()], 0.5, 0.9);
    let expected = oracle.gradient(|y, i| completions[y].probability * of(&completions[y])[i - completions[y].range.start]);
    let config = PpoConfig { gamma: 0.5, gae_lambda: 0.9, ..config() };
    let samples = oracle.agent_gradients(&mut agent(config, ReferenceConfig::default(), BATCH), BATCH, as_sum);
    assert_mean_is("PPO, gamma 0.5, lambda 0.9", &samples, &expected);
}

/// Advantages are whitened over the tokens of the rollout. Whitened rewards keep their mean. A batch has two completions, so all pairs are
/// enumerated. The KL penalty in the rewards makes the tokens' rewards differ.
#[test]
fn whitening_has_the_bias_of_its_batch() {
    let mut oracle = Oracle::new();
    let beta = 0.2;
    let (d, values) = (oracle.against_reference(), oracle.values());
    let reference = ReferenceConfig { coefficient: beta, place: KlPlace::Reward, ..ReferenceConfig::default() };
    let rewards = |y: &Completion| {
        let charged = at_the_end(y).into_iter().zip(&d[y.range.clone()]).map(|(r, d)| r - f64::from(beta) * d);
        charged.collect::<Vec<f64>>()
    };
    let of = |y: &Completion, rewards: &[f64]| advantages(rewards, &values[y.range.clone()], 1.0, 0.95);
    let share = |y: &Completion, z: &Completion| 2.0 / (y.length() + z.length());

    let expected = oracle.gradient_in_pairs(|y, z| {
        let both = whitened(&[of(y, &rewards(y)), of(z, &rewards(z))].concat());
        both[..y.tokens.len()].iter().map(|a| a * share(y, z)).collect()
    });
    let normalised = PpoConfig { gae_lambda: 0.95, normalise_advantages: true, ..config() };
    let samples = oracle.agent_gradients(&mut agent(normalised.clone(), reference.clone(), 2), 2, |_| 1.0);
    assert_mean_is("PPO, advantages whitened in batches of two", &samples, &expected);

    let expected = oracle.gradient_in_pairs(|y, z| {
        let both = [rewards(y), rewards(z)].concat();
        let (mean, _) = moments(&both, 1.0);
        let kept: Vec<f64> = whitened(&both).iter().map(|r| r + mean).collect();
        of(y, &kept[..y.tokens.len()]).iter().map(|a| a * share(y, z)).collect()
    });
    let config = PpoConfig { whiten_rewards: true, normalise_advantages: false, ..normalised };
    let samples = oracle.agent_gradients(&mut agent(config, reference, 2), 2, |_| 1.0);
    assert_mean_is("PPO, rewards whitened in batches of two", &samples, &expected);
}

/// On a rollout of an earlier policy, each decision has the weight of its ratio, or 0 beyond the clip.
#[test]
fn a_later_step_is_clipped_decision_by_decision() {
    let mut oracle = Oracle::new();
    oracle.move_on(0.25);
    let (completions, values, log_ratios) = (oracle.completions.clone(), oracle.values(), oracle.log_ratios());
    let ranges = (0.1, 0.1, 1.2);
    let expected = oracle.gradient(|y, i| {
        let y = &completions[y];
        y.probability * clipped(log_ratios[i].exp(), y.reward - values[i], ranges)
    });
    let config = PpoConfig { clip: 0.1, dual_clip: 1.2, ..config() };
    let samples = oracle.agent_gradients(&mut agent(config, ReferenceConfig::default(), BATCH), BATCH, as_sum);
    assert_mean_is("PPO, later step", &samples, &expected);
}
