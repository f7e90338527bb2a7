//! Compares PPO's loss with hand-computed numbers, and its derivatives with finite differences.

use gradus_agents::kl::KlCoefficients;
use gradus_agents::ppo::{PpoConfig, PpoObjective};
use gradus_nets::{Evaluation, Loss, Objective, PolicyOutput};

/// PPO's settings and one decision of a rollout.
#[derive(Clone, Copy, Debug)]
struct Row {
    old_log_prob: f32,
    old_value: f32,
    advantage: f32,
    target: f32,
    mean: f32,
    std: f32,
    clip: f32,
    clip_value: f32,
    entropy_coefficient: f32,
    value_coefficient: f32,
}

impl Row {
    /// Returns PPO's loss of this decision and its derivatives. The decision has index 1 in its rollout.
    fn decision(self, now: PolicyOutput) -> Evaluation {
        let config = PpoConfig {
            clip_value: self.clip_value,
            entropy_coefficient: self.entropy_coefficient,
            value_coefficient: self.value_coefficient,
            ..PpoConfig::default()
        };
        let objective = PpoObjective {
            config,
            old_log_probs: &[f32::NAN, self.old_log_prob],
            old_values: &[f32::NAN, self.old_value],
            advantages: &[f32::NAN, self.advantage],
            targets: &[f32::NAN, self.target],
            advantage_mean: self.mean,
            advantage_std: self.std,
            clip: self.clip,
            reference_kl: KlCoefficients::default(),
            kl_coefficient: 0.0,
        };
        objective.decision(1, now.into())
    }

    fn at_log_prob(self, log_prob: f32) -> Evaluation {
        self.decision(PolicyOutput { log_prob, ..Default::default() })
    }

    fn at_value(self, value: f32) -> Loss {
        let row = Row { value_coefficient: 1.0, advantage: 0.0, ..self };
        row.decision(PolicyOutput { log_prob: self.old_log_prob, value, ..Default::default() }).loss
    }

    /// Returns the loss in f64, written as in CleanRL: with maxima of losses instead of the paper's minima of objectives.
    fn loss(self, log_prob: f64, entropy: f64, value: f64) -> f64 {
        let [old_log_prob, old_value, advantage, target] = [self.old_log_prob, self.old_value, self.advantage, self.target].map(f64::from);
        let [mean, std, clip, clip_value] = [self.mean, self.std, self.clip, self.clip_value].map(f64::from);
        let advantage = (advantage - mean) / std;
        let ratio = (log_prob - old_log_prob).exp();
        let policy = (-advantage * ratio).max(-advantage * ratio.max(1.0 - clip).min(1.0 + clip));
        let clipped = if clip_value.is_finite() { old_value + (value - old_value).max(-clip_value).min(clip_value) } else { value };
        let critic = 0.5 * (value - target).powi(2).max((clipped - target).powi(2));
        policy + f64::from(self.value_coefficient) * critic - f64::from(self.entropy_coefficient) * entropy
    }
}

fn assert_near(got: &[f32], expected: &[f32], tolerance: f32) {
    assert_eq!(got.len(), expected.len());
    let near = got.iter().zip(expected).all(|(g, e)| (g - e).abs() <= tolerance);
    assert!(near, "got {got:?}, expected {expected:?} within {tolerance}");
}

/// A decision with advantage 1 and clip .2. Its loss is that of the surrogate alone.
const PLAIN: Row = Row {
    old_log_prob: -1.0,
    old_value: 0.0,
    advantage: 1.0,
    target: 0.0,
    mean: 0.0,
    std: 1.0,
    clip: 0.2,
    clip_value: f32::INFINITY,
    entropy_coefficient: 0.0,
    value_coefficient: 0.0,
};

/// With log pi_old = -2.1 and log pi = -1.8 the ratio is e^.3 = 1.349 858 8. This is beyond the clip at 1.2, so the paper's objective is
/// 1.2 x .2 = .24 and the gradient is 0.
#[test]
fn the_ratio_is_clipped_and_the_gradient_is_0_beyond_the_clip() {
    let row = Row { old_log_prob: -2.1, advantage: 0.2, ..PLAIN };
    let loss = row.at_log_prob(-1.8).loss;
    assert_near(&[loss.value, loss.slopes.log_prob], &[-0.24, 0.0], 1e-7);
    let unclipped = Row { clip: f32::INFINITY, ..row }.at_log_prob(-1.8).loss;
    assert_near(&[unclipped.value, unclipped.slopes.log_prob], &[-0.2 * 1.349_858_8; 2], 1e-7);
}

/// The six cases of figure 1 of the paper: ratios below, inside and above the clip range, for both signs of the advantage.
#[test]
fn the_clip_only_stops_moves_beyond_its_range() {
    let table = [
        // ratio, A, loss, derivative
        (0.5_f32, 1.0_f32, -0.5_f32, -0.5_f32),
        (1.1, 1.0, -1.1, -1.1),
        (1.5, 1.0, -1.2, 0.0),
        (0.5, -1.0, 0.8, 0.0),
        (0.9, -1.0, 0.9, 0.9),
        (1.5, -1.0, 1.5, 1.5),
    ];
    for (ratio, advantage, loss, derivative) in table {
        let decision = Row { advantage, ..PLAIN }.at_log_prob(-1.0 + ratio.ln());
        assert_near(&[decision.loss.value, decision.loss.slopes.log_prob], &[loss, derivative], 1e-6);
        // diagnostics 3 and 4: approx_kl and whether the ratio is outside the clip range
        let expected = [ratio - 1.0 - ratio.ln(), if (ratio - 1.0).abs() > 0.2 { 1.0 } else { 0.0 }];
        assert_near(&decision.diagnostics[3..5], &expected, 1e-6);
    }
}

#[test]
fn advantages_are_normalised_by_the_given_mean_and_deviation() {
    // (3 - 1) / 4 = .5
    let loss = Row { advantage: 3.0, mean: 1.0, std: 4.0, ..PLAIN }.at_log_prob(-1.0).loss;
    assert_eq!((loss.value, loss.slopes.log_prob), (-0.5, -0.5));
}

#[test]
fn more_entropy_lowers_the_loss() {
    let row = Row { entropy_coefficient: 0.25, advantage: 0.0, ..PLAIN };
    let at = |entropy| row.decision(PolicyOutput { log_prob: -1.0, entropy, ..Default::default() }).loss;
    assert_eq!((at(0.0).value, at(2.0).value), (0.0, -0.5));
    assert_eq!(at(2.0).slopes, PolicyOutput { entropy: -0.25, ..Default::default() });
}

/// The old value is 1, so values are clipped to .5 .. 1.5. The loss is the larger of two squared errors, halved: that of the value and that
/// of the clipped value.
#[test]
fn the_value_loss_is_the_larger_of_the_plain_and_the_clipped_one() {
    let table = [
        // value, target, loss, derivative
        (1.25_f32, 2.0_f32, 0.28125_f32, -0.75_f32), // inside: (1.25 - 2)^2 / 2
        (3.0, 2.0, 0.5, 1.0),                        // clipped to 1.5, nearer to the target: the plain error counts
        (2.0, 2.0, 0.125, 0.0),                      // clipped to 1.5, farther: the clipped error counts, with derivative 0
        (0.0, 0.0, 0.125, 0.0),                      // clipped to .5, farther: the clipped error counts
        (-1.0, 0.0, 0.5, -1.0),                      // clipped to .5, nearer: the plain error counts
    ];
    for (value, target, loss, derivative) in table {
        let got = Row { old_value: 1.0, clip_value: 0.5, target, ..PLAIN }.at_value(value);
        assert_eq!((got.value, got.slopes.value), (loss, derivative), "value {value}, target {target}");
    }
}

/// In floating point, old + (new - old) can differ from new. This difference must not count as clipping.
#[test]
fn an_unclipped_value_always_moves_the_critic() {
    for clip_value in [f32::INFINITY, 10.0] {
        for i in 0..200 {
            let x = i as f32;
            let (old_value, value, target) = ((0.37 * x).sin(), (0.53 * x).cos(), (0.71 * x).sin() * 2.0);
            let loss = Row { old_value, clip_value, target, ..PLAIN }.at_value(value);
            let error = value - target;
            let case = format!("value {value} after {old_value}, target {target}, clip {clip_value}");
            assert_eq!((loss.slopes.value, loss.value), (error, 0.5 * error * error), "{case}");
        }
    }
}

/// Compares the derivatives with central differences in f64, for several clip ranges. Points near a kink of the loss are skipped.
#[test]
fn the_derivatives_match_central_differences_of_the_loss() {
    let mut rows = 0;
    for (clip, clip_value) in [(0.2, 0.3), (0.1, f32::INFINITY), (f32::INFINITY, 0.5), (1.5, 0.05)] {
        for i in 0..300 {
            let cycle = |n: i32, step: f32| step * ((i % n) as f32 - (n - 1) as f32 / 2.0);
            let row = Row {
                old_log_prob: -1.3,
                old_value: 0.2,
                advantage: 0.3 + cycle(6, 0.7),
                target: cycle(5, 0.83),
                mean: 0.1,
                std: 0.9,
                clip,
                clip_value,
                entropy_coefficient: 0.03,
                value_coefficient: 0.7,
            };
            let now = PolicyOutput {
                log_prob: -1.31 + cycle(11, 0.09),
                entropy: 0.4,
                value: 0.21 + cycle(7, 0.23),
                kl_old: 0.0,
                ..PolicyOutput::default()
            };
            let [l, h, v] = [now.log_prob, now.entropy, now.value].map(f64::from);
            let step = 1e-4;
            let slope = |f: &dyn Fn(f64) -> f64| (f(step) - f(-step)) / (2.0 * step);
            // at a kink the slopes on the two sides differ; the slope of a smooth loss changes by less than 1e-3 over the step
            let bend = |f: &dyn Fn(f64) -> f64| ((f(step) - f(0.0)) / step - (f(0.0) - f(-step)) / step).abs() > 2e-3;
            let by: [&dyn Fn(f64) -> f64; 3] = [&|d| row.loss(l + d, h, v), &|d| row.loss(l, h + d, v), &|d| row.loss(l, h, v + d)];
            if by.iter().any(|f| bend(f)) {
                continue;
            }
            let Loss { value: loss, slopes, .. } = row.decision(now).loss;
            assert!((f64::from(loss) - row.loss(l, h, v)).abs() < 1e-6, "{row:?} at {now:?}: loss {loss}");
            for (got, f) in [slopes.log_prob, slopes.entropy, slopes.value].into_iter().zip(by) {
                assert!((f64::from(got) - slope(f)).abs() < 2e-6, "{row:?} at {now:?}: {slopes:?}, expected {}", slope(f));
            }
            rows += 1;
        }
    }
    assert!(rows > 1000, "only {rows} rows were away from a kink");
}
