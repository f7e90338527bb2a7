//! Compares advantages with hand-computed numbers and with other forms of the same formulas.

mod common;

use common::near;
use gradus_agents::gae::Gae;
use gradus_agents::returns::{discounted, gae, whiten};
use gradus_agents::{End, GroupId, Rollout, Segment, Truncated};
use gradus_nets::{ActionRows, Store};

fn assert_near(got: &[f32], expected: &[f32], tolerance: f32) {
    assert_eq!(got.len(), expected.len());
    let near = got.iter().zip(expected).all(|(g, e)| (g - e).abs() <= tolerance);
    assert!(near, "got {got:?}, expected {expected:?} within {tolerance}");
}

fn advantages(rewards: &[f32], values: &[f32], bootstrap: f32, gamma: f32, lambda: f32) -> Vec<f32> {
    let mut advantages = vec![f32::NAN; rewards.len()];
    gae(rewards, values, bootstrap, gamma, lambda, &mut advantages);
    advantages
}

/// A rollout of the given segments; the observation in row i is the number i.
fn rollout(rewards: &[f32], rows: usize, segments: &[(std::ops::Range<usize>, End)]) -> Rollout {
    let n = rewards.len();
    let store = Store::new(1, (0..rows).map(|i| i as f32).collect(), ActionRows::Discrete(vec![0; n]));
    let segments = segments.iter().cloned().map(|(range, end)| Segment { range, end, group: GroupId(0) }).collect();
    Rollout::new(store, rewards.into(), vec![0.0; n], segments)
}

/// Returns the advantages and the value targets of a rollout.
fn estimated(rollout: &Rollout, values: &[f32], gamma: f32, lambda: f32) -> (Vec<f32>, Vec<f32>) {
    // the vectors have the wrong length and hold NaN: the function must resize and overwrite them
    let (mut advantages, mut targets) = (vec![f32::NAN; 99], vec![f32::NAN; 99]);
    Gae { gamma, lambda, truncated: Truncated::Bootstraps }.of_rollout(rollout, values, &mut advantages, &mut targets);
    (advantages, targets)
}

/// delta_1 = .5 - .3 = .2, delta_0 = .99 x .3 - .25 = .047, A_0 = .047 + .99 x .95 x .2 = .2351.
#[test]
fn gae_gives_the_worked_example() {
    assert_near(&advantages(&[0.0, 0.5], &[0.25, 0.3], 0.0, 0.99, 0.95), &[0.2351, 0.2], 1e-7);
}

/// The rewards are 1 and 1, the values 2 and 3, the bootstrap value is 4, and gamma = lambda = 1/2. All results are exact in f32. If the
/// episode terminated: delta_1 = 1 - 3 = -2, delta_0 = 1 + 1.5 - 2 = .5, A_0 = .5 - .5 = 0. Otherwise: delta_1 = 1 + 2 - 3 = 0, A_0 = .5.
#[test]
fn truncated_episodes_bootstrap_and_terminated_ones_do_not() {
    let values = [2.0, 3.0, 4.0];
    for (end, expected) in [
        (End::Terminated, ([0.0, -2.0], [2.0, 1.0])),
        (End::Truncated { successor: 2 }, ([0.5, 0.0], [2.5, 3.0])),
        (End::Cut { successor: 2 }, ([0.5, 0.0], [2.5, 3.0])),
    ] {
        let (advantages, targets) = estimated(&rollout(&[1.0, 1.0], 3, &[(0..2, end)]), &values, 0.5, 0.5);
        assert_eq!((&advantages[..], &targets[..]), (&expected.0[..], &expected.1[..]), "{end:?}");
    }
}

/// The rollout of the previous test with `Truncated::Ends`: a truncated segment has the advantages of a terminated segment. Terminated and
/// cut segments have the same advantages as with `Truncated::Bootstraps`.
#[test]
fn truncated_ends_treats_truncation_as_termination() {
    let (values, mut advantages, mut targets) = ([2.0, 3.0, 4.0], Vec::new(), Vec::new());
    for (end, expected) in
        [(End::Terminated, [0.0, -2.0]), (End::Truncated { successor: 2 }, [0.0, -2.0]), (End::Cut { successor: 2 }, [0.5, 0.0])]
    {
        let rollout = rollout(&[1.0, 1.0], 3, &[(0..2, end)]);
        Gae { gamma: 0.5, lambda: 0.5, truncated: Truncated::Ends }.of_rollout(&rollout, &values, &mut advantages, &mut targets);
        assert_eq!(advantages, expected, "{end:?}");
    }
    assert_eq!(gradus_agents::PpoConfig::default().truncated, Truncated::Bootstraps);
}

/// One environment has three episodes: truncated, terminated and cut. Row 6 holds the final observation of the truncated episode, and row 2
/// holds the first observation of the next episode. gamma = lambda = 1/2.
#[test]
fn truncated_episodes_bootstrap_from_their_final_observation_not_from_the_next_episode() {
    let values = [1.0, 2.0, 100.0, 4.0, -100.0, 6.0, 8.0, 16.0];
    let segments = [(0..2, End::Truncated { successor: 6 }), (2..4, End::Terminated), (4..6, End::Cut { successor: 7 })];
    let (advantages, targets) = estimated(&rollout(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 8, &segments), &values, 0.5, 0.5);
    // deltas by episode: 1 + 1 - 1 = 1 and 2 + 4 - 2 = 4; 3 + 2 - 100 = -95 and 4 - 4 = 0; 5 + 3 + 100 = 108 and 6 + 8 - 6 = 8
    assert_eq!(advantages, [2.0, 4.0, -95.0, 0.0, 110.0, 8.0]);
    assert_eq!(targets, [3.0, 6.0, 5.0, 4.0, 10.0, 14.0]);
}

const REWARDS: [f32; 6] = [0.5, -1.0, 2.0, 0.0, 0.25, 1.0];

const VALUES: [f32; 6] = [0.3, 0.1, -0.7, 1.2, 0.4, -0.2];

#[test]
fn with_lambda_1_gae_is_the_return_minus_the_value() {
    for bootstrap in [0.0, 1.5] {
        let mut returns = [0.0; 6];
        discounted(&REWARDS, bootstrap, 0.9, &mut returns);
        let expected: Vec<f32> = returns.iter().zip(VALUES).map(|(g, v)| g - v).collect();
        assert_near(&advantages(&REWARDS, &VALUES, bootstrap, 0.9, 1.0), &expected, 1e-6);
    }
}

#[test]
fn with_lambda_0_gae_is_the_td_error() {
    for bootstrap in [0.0, 1.5] {
        let next = VALUES[1..].iter().chain([&bootstrap]);
        let expected: Vec<f32> = REWARDS.iter().zip(VALUES).zip(next).map(|((r, v), next)| r + 0.9 * next - v).collect();
        assert_near(&advantages(&REWARDS, &VALUES, bootstrap, 0.9, 0.0), &expected, 1e-6);
    }
}

/// Equation 16 as a sum: A_t = sum over k of (gamma lambda)^k delta_{t+k}.
#[test]
fn gae_is_the_discounted_sum_of_td_errors() {
    let (gamma, lambda, bootstrap) = (0.97_f64, 0.8_f64, 1.5_f64);
    let [r, v] = [REWARDS, VALUES].map(|x| x.map(f64::from));
    let delta = |t: usize| r[t] + gamma * v.get(t + 1).copied().unwrap_or(bootstrap) - v[t];
    let expected: Vec<f32> = (0..6).map(|t| (t..6).map(|k| (gamma * lambda).powi((k - t) as i32) * delta(k)).sum::<f64>() as f32).collect();
    assert_near(&advantages(&REWARDS, &VALUES, 1.5, 0.97, 0.8), &expected, 1e-6);
}

/// As in a test of Stable-Baselines3, every state has the value `value`, and the last of 8 steps of an episode has reward 1. GAE is then a
/// geometric series.
#[test]
fn a_constant_critic_gives_the_closed_form() {
    let (gamma, lambda) = (0.98_f64, 0.9_f64);
    for value in [0.0, 1.0, -2.5_f64] {
        let rewards: [f32; 24] = std::array::from_fn(|t| if t % 8 == 7 { 1.0 } else { 0.0 });
        let rollout = rollout(&rewards, 24, &[(0..8, End::Terminated), (8..16, End::Terminated), (16..24, End::Terminated)]);
        let (advantages, _) = estimated(&rollout, &[value as f32; 24], gamma as f32, lambda as f32);
        let expected: Vec<f32> = (0..24)
            .map(|t| {
                let (left, decay) = (7 - t % 8, gamma * lambda);
                let within = (gamma * value - value) * (1.0 - decay.powi(left)) / (1.0 - decay);
                (within + decay.powi(left) * (1.0 - value)) as f32
            })
            .collect();
        assert_near(&advantages, &expected, 2e-6);
    }
}

#[test]
fn gae_spreads_a_reward_on_the_last_token() {
    let mut advantages = [0.0; 2];
    gae(&[0.0, 0.5], &[0.25, 0.3], 0.0, 0.99, 0.95, &mut advantages);
    let targets = [advantages[0] + 0.25, advantages[1] + 0.3].map(f64::from);
    near(&advantages.map(f64::from), &[0.2351, 0.2], "advantages");
    near(&targets, &[0.4851, 0.5], "value targets");
}

/// Whitened numbers have mean 0 and sample standard deviation 1, as in REINFORCE++. With `keeps_mean` they keep their mean.
#[test]
fn whitening_gives_the_hand_computed_numbers() {
    let mut numbers = [1.0, 2.0, 6.0];
    whiten(&mut numbers, false);
    let std = 7.0_f64.sqrt();
    near(&numbers.map(f64::from), &[-2.0 / std, -1.0 / std, 3.0 / std], "mean 3, variance 14 / 2");
    let mut rewards = [1.0, 2.0, 6.0];
    whiten(&mut rewards, true);
    near(&rewards.map(f64::from), &[3.0 - 2.0 / std, 3.0 - 1.0 / std, 3.0 + 3.0 / std], "the mean is kept");
    let (mut one, mut none) = ([5.0], []);
    whiten(&mut one, false);
    whiten(&mut none, false);
    assert_eq!(one, [5.0]);
}
