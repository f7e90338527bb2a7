//! The clipped surrogate of decisions, of texts and of decisions with weight 0.

use crate::common::near;
use crate::common::texts::{completions, rollout, transformer};
use gradus_agents::grpo::SequenceObjective;
use gradus_agents::kl::KlCoefficients;
use gradus_agents::reference::KlPenalty;
use gradus_agents::reinforce::ReinforceObjective;
use gradus_agents::sequence_ratio::sequence_ratio;
use gradus_agents::surrogate::{Clip, Clipped};
use gradus_agents::{GrpoConfig, GrpoObjective};
use gradus_nets::{Batch, Network, Objective, Policy, PolicyOutput, Sums};

#[test]
fn the_surrogate_gives_the_hand_computed_numbers() {
    let surrogate = Clip { low: 0.2, high: 0.2, dual: f32::INFINITY }.surrogate(-1.8 - -2.1, 0.2);
    near(&[surrogate.ratio.into(), surrogate.loss.into(), surrogate.derivative.into()], &[1.349_858_8, -0.24, 0.0], "clipped");
    let free = Clip { low: 0.2, high: 0.28, dual: f32::INFINITY };
    near(&[free.surrogate(0.3, 0.2).loss.into()], &[-0.256], "clip-higher clips at 1.28 instead of 1.2");
    let unclipped = Clip { low: f32::INFINITY, high: f32::INFINITY, dual: f32::INFINITY }.surrogate(0.3, 0.2);
    near(&[unclipped.loss.into(), unclipped.derivative.into()], &[-0.269_971_8; 2], "unclipped");
    let dual = Clip { low: 0.2, high: 0.2, dual: 3.0 }.surrogate(5.0_f32.ln(), -1.0);
    near(&[dual.loss.into(), dual.derivative.into()], &[3.0, 0.0], "dual clip");
    assert!(free.surrogate(1e9, 1.0).ratio.is_finite(), "log-ratios are clamped to +-20");
}

/// CISPO's weight is clipped, its derivative is not removed, and within the clip range it is that of the surrogate.
#[test]
fn a_clipped_weight_keeps_the_derivative() {
    let clip = Clip { low: 0.2, high: 0.28, dual: f32::INFINITY };
    // ratio, A, clipped weight
    for (ratio, advantage, weight) in [(0.5_f32, -1.0, 0.8), (0.5, 1.0, 0.8), (1.5, 2.0, 1.28), (1.5, -1.0, 1.28), (1.25, 1.0, 1.25)] {
        let log_prob = -0.7;
        let cispo = clip.weighted(ratio.ln(), log_prob, advantage);
        let expected = [-weight * advantage * log_prob, -weight * advantage, ratio].map(f64::from);
        near(&[cispo.loss.into(), cispo.derivative.into(), cispo.ratio.into()], &expected, &format!("ratio {ratio}, A {advantage}"));
        if weight == ratio {
            assert!((cispo.derivative - clip.surrogate(ratio.ln(), advantage).derivative).abs() < 1e-6);
        }
    }
}

/// The lower clip is counted only if A < 0, and the upper clip only if A > 0. With the opposite sign of A the gradient is not 0.
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

/// If A < 0, the loss is at most c |A| (Ye et al., arXiv 1912.09729, equation 5).
#[test]
fn the_dual_clip_bounds_the_loss() {
    let objective = |dual| gradus_agents::ppo::PpoObjective {
        old_log_probs: &[0.0, 0.0],
        old_values: &[0.0, 0.0],
        advantages: &[-2.0, 2.0],
        targets: &[0.0, 0.0],
        advantage_mean: 0.0,
        advantage_std: 1.0,
        clip: Clip { low: 0.2, high: 0.2, dual },
        reference_kl: KlCoefficients::default(),
        kl_coefficient: 0.0,
        clip_value: f32::INFINITY,
        huber: f32::INFINITY,
        entropy_coefficient: 0.0,
        value_coefficient: 0.0,
    };
    // index, ratio, c, loss, derivative with respect to log pi
    for (i, ratio, c, loss, derivative) in [
        (0, 2.0, 3.0, 4.0, 4.0),
        (0, 2.9, 3.0, 5.8, 5.8),
        (0, 5.0, 3.0, 6.0, 0.0),
        (0, 5.0, f32::INFINITY, 10.0, 10.0),
        (0, 0.5, 3.0, 1.6, 0.0),
        (1, 5.0, 3.0, -2.4, 0.0),
        (1, 0.5, 3.0, -1.0, -1.0),
    ] {
        let decision = objective(c).decision(i, PolicyOutput { log_prob: f32::ln(ratio), ..PolicyOutput::default() });
        let got = (decision.loss, decision.derivative.log_prob);
        assert!((got.0 - loss).abs() < 1e-5 && (got.1 - derivative).abs() < 1e-5, "decision {i}, ratio {ratio}, c {c}: {got:?}");
    }
}

#[test]
fn the_sequence_ratio_is_the_geometric_mean() {
    near(&[f64::from(sequence_ratio(&[0.1, -0.05, 0.2]))], &[1.086_904], "the plain product is 1.284025");
}

/// The derivative with respect to each log-probability equals central differences of the loss. The KL penalty and the entropy are computed
/// per token.
#[test]
fn a_sequence_shares_one_ratio_and_its_derivative() {
    let kl_penalty = KlPenalty { log_probs: vec![-1.2, -0.7, -2.0], in_loss: 0.3, ..KlPenalty::default() };
    for advantage in [-1.5, 0.8] {
        let token = GrpoObjective {
            old_log_probs: &[-1.0, -0.9, -1.8],
            advantages: &[advantage; 3],
            clip: Clip { low: 0.2, high: 0.2, dual: f32::INFINITY },
            clipped: Clipped::Objective,
            kl_penalty: &kl_penalty,
            entropy_coefficient: 0.05,
        };
        let objective = SequenceObjective(&token);
        let evaluate = |now: [f32; 3]| {
            let mut outputs = now.map(|log_prob| PolicyOutput { log_prob, entropy: 0.4, ..PolicyOutput::default() });
            let mut sums = Sums::default();
            objective.slice(&[0, 1, 2], &[0.2, 0.3, 0.5], &mut outputs, &mut sums);
            (sums, outputs)
        };
        let now = [-0.9, -0.95, -1.6];
        let (sums, outputs) = evaluate(now);
        // mean log-ratio (.1 - .05 + .2) / 3
        near(&[sums.diagnostics[0]], &[-1.086_904 * f64::from(advantage)], "the policy's loss");
        for t in 0..3 {
            let at = |by: f32| {
                let mut moved = now;
                moved[t] += by;
                evaluate(moved).0.loss
            };
            let slope = (at(1e-2) - at(-1e-2)) / 2e-2;
            assert!((f64::from(outputs[t].log_prob) - slope).abs() < 1e-4, "A {advantage}, token {t}: expected {slope}, got {outputs:?}");
            assert!((outputs[t].entropy + 0.05 * [0.2, 0.3, 0.5][t]).abs() < 1e-7);
        }
        // the ratio is above the clip range: if A > 0, only the KL penalty has a derivative with respect to log pi
        let (sums, outputs) = evaluate([0.0, 0.0, -0.1]);
        let clipped = advantage > 0.0;
        assert_eq!(sums.diagnostics[5] > 0.9, clipped, "clip/high");
        let pull = outputs[0].log_prob - 0.2 * kl_penalty.term(0, PolicyOutput { log_prob: 0.0, ..PolicyOutput::default() }).d_log_prob;
        assert_eq!(pull.abs() < 1e-7, clipped);
        // a decision of weight 0 is ignored, even if its log-probability is NaN
        let mut with_nan =
            [now[0], now[1], now[2], f32::NAN].map(|log_prob| PolicyOutput { log_prob, entropy: 0.4, ..PolicyOutput::default() });
        let mut again = Sums::default();
        objective.slice(&[0, 1, 2, 0], &[0.2, 0.3, 0.5, 0.0], &mut with_nan, &mut again);
        assert_eq!((again, with_nan[3]), (evaluate(now).0, PolicyOutput::default()));
        assert_eq!(with_nan[..3], evaluate(now).1);
    }
}

/// 0 times NaN is NaN, so decisions of weight 0 must be left out of the sums.
#[test]
fn decisions_of_weight_0_are_ignored() {
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
        clipped: Clipped::Objective,
        kl_penalty: &kl_penalty,
        entropy_coefficient: 0.1,
    };
    for objective in [&token as &dyn Objective, &SequenceObjective(&token)] {
        let sums = policy.gradient(&rollout.store, Batch::new(&indices, &zeros), objective);
        assert_eq!(sums, Sums::default(), "a batch in which every weight is 0 has loss 0");
        assert!(policy.last_gradient().iter().all(|g| *g == 0.0));
        assert_eq!(policy.gradient(&rollout.store, Batch::new(&[], &[]), objective), Sums::default(), "an empty batch has loss 0");
    }
    // one decision of weight 0 with a NaN advantage, among valid decisions
    let mut weights = vec![0.1; n];
    weights[4] = 0.0;
    let good = ReinforceObjective {
        clip: None,
        advantages: &advantages,
        returns: &zeros,
        kl_penalty: &KlPenalty::default(),
        entropy_coefficient: 0.1,
        value_coefficient: Some(0.5),
    };
    let sums = policy.gradient(&rollout.store, Batch::new(&indices, &weights), &good);
    assert!(sums.loss.is_finite() && policy.last_gradient().iter().all(|g| g.is_finite()));
}
