//! The clipped surrogate of decisions, of texts and of decisions with weight 0.

use crate::common::near;
use crate::common::texts::{completions, rollout, transformer};
use gradus_agents::grpo::SequenceObjective;
use gradus_agents::kl::KlCoefficients;
use gradus_agents::ppo::PpoObjective;
use gradus_agents::reference::KlPenalty;
use gradus_agents::reinforce::ReinforceObjective;
use gradus_agents::sequence_ratio::MeanLogRatio;
use gradus_agents::surrogate::{Clip, Clipped};
use gradus_agents::{GrpoConfig, GrpoObjective, PpoConfig};
use gradus_nets::{Batch, Evaluation, Network, Objective, Policy, PolicyOutput, Sums};

/// Settings of GRPO with this clip range. The loss of a decision is that of the surrogate alone.
fn clipped(clip: f32, clip_high: f32) -> GrpoConfig {
    GrpoConfig { clip, clip_high, ..GrpoConfig::default() }
}

/// Returns GRPO's loss of a decision with these log pi and log pi_old.
fn grpo(config: &GrpoConfig, (log_prob, old_log_prob): (f32, f32), advantage: f32) -> Evaluation {
    let (kl_penalty, old_log_probs, advantages) = (KlPenalty::default(), &[old_log_prob], &[advantage]);
    let objective = GrpoObjective { config, old_log_probs, advantages, kl_penalty: &kl_penalty };
    objective.decision(0, PolicyOutput { log_prob, ..PolicyOutput::default() }.into())
}

/// Returns the loss, its derivative with respect to log pi, and the reported approx_kl, which is rho - 1 - ln rho.
fn numbers(evaluation: &Evaluation) -> [f64; 3] {
    [evaluation.loss.value, evaluation.loss.slopes.log_prob, evaluation.diagnostics[2]].map(f64::from)
}

#[test]
fn the_surrogate_gives_the_hand_computed_numbers() {
    // the ratio e^.3 is 1.349 858 8
    let log_probs = (-1.8, -2.1);
    near(&numbers(&grpo(&clipped(0.2, 0.0), log_probs, 0.2)), &[-0.24, 0.0, 0.049_858_8], "clipped");
    let free = clipped(0.2, 0.28);
    near(&numbers(&grpo(&free, log_probs, 0.2))[..2], &[-0.256, 0.0], "clip-higher clips at 1.28 instead of 1.2");
    let unclipped = grpo(&clipped(f32::INFINITY, 0.0), log_probs, 0.2);
    near(&numbers(&unclipped), &[-0.269_971_8, -0.269_971_8, 0.049_858_8], "unclipped");
    let dual = grpo(&GrpoConfig { dual_clip: 3.0, ..clipped(0.2, 0.0) }, (5.0_f32.ln(), 0.0), -1.0);
    near(&numbers(&dual)[..2], &[3.0, 0.0], "dual clip");
    // log-ratios are limited to +-20: e^20 = 485 165 195, and beyond the limit there is no derivative
    let far = grpo(&clipped(f32::INFINITY, 0.0), (1e9, 0.0), 1.0);
    assert!(numbers(&far).iter().all(|x| x.is_finite()) && far.loss.slopes.log_prob == 0.0, "{far:?}");
    assert!((far.loss.value / -4.851_652e8 - 1.0).abs() < 1e-6 && (far.diagnostics[2] / 4.851_652e8 - 1.0).abs() < 1e-6, "{far:?}");
}

/// CISPO's weight is clipped, its derivative is not removed, and within the clip range it is that of the surrogate.
#[test]
fn a_clipped_weight_keeps_the_derivative() {
    let surrogate = clipped(0.2, 0.28);
    let weighted = GrpoConfig { clipped: Clipped::Weight, ..surrogate.clone() };
    // the ratio e^.3 = 1.35 is clipped to 1.2; the surrogate has no derivative there
    let cispo = grpo(&GrpoConfig { clip_high: 0.2, ..weighted.clone() }, (-1.8, -2.1), 0.5);
    near(&numbers(&cispo), &[1.2 * 0.5 * 1.8, -1.2 * 0.5, 0.049_858_8], "a clipped weight");
    // ratio, A, clipped weight
    for (ratio, advantage, weight) in [(0.5_f32, -1.0, 0.8), (0.5, 1.0, 0.8), (1.5, 2.0, 1.28), (1.5, -1.0, 1.28), (1.25, 1.0, 1.25)] {
        let log_probs = (-0.7, -0.7 - ratio.ln());
        let cispo = grpo(&weighted, log_probs, advantage);
        let expected = [-weight * advantage * -0.7, -weight * advantage, ratio - 1.0 - ratio.ln()].map(f64::from);
        near(&numbers(&cispo), &expected, &format!("ratio {ratio}, A {advantage}"));
        if weight == ratio {
            let of_surrogate = grpo(&surrogate, log_probs, advantage).loss.slopes.log_prob;
            assert!((cispo.loss.slopes.log_prob - of_surrogate).abs() < 1e-6);
        }
    }
}

/// The lower clip is counted only if A < 0, and the upper clip only if A > 0. With the opposite sign of A the gradient is not 0.
#[test]
fn clips_are_counted_by_their_sign() {
    let (clip, config) = (Clip { low: 0.2, high: 0.28 }, clipped(0.2, 0.28));
    assert_eq!(config.clip(), clip);
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
        let decision = grpo(&config, (ratio.ln(), 0.0), advantage);
        assert_eq!(decision.loss.slopes.log_prob == 0.0, low || high, "ratio {ratio}, A {advantage}");
        // diagnostics 4 and 5: the lower and the upper clip
        assert_eq!([decision.diagnostics[4] == 1.0, decision.diagnostics[5] == 1.0], [low, high], "ratio {ratio}, A {advantage}");
    }
}

/// If A < 0, the loss is at most c |A| (Ye et al., arXiv 1912.09729, equation 5).
#[test]
fn the_dual_clip_bounds_the_loss() {
    let ppo = |dual_clip, i: usize, now: PolicyOutput| {
        PpoObjective {
            config: PpoConfig { dual_clip, value_coefficient: 0.0, ..PpoConfig::default() },
            old_log_probs: &[0.0, 0.0],
            old_values: &[0.0, 0.0],
            advantages: &[-2.0, 2.0],
            targets: &[0.0, 0.0],
            advantage_mean: 0.0,
            advantage_std: 1.0,
            clip: 0.2,
            reference_kl: KlCoefficients::default(),
            kl_coefficient: 0.0,
        }
        .decision(i, now.into())
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
        let now = PolicyOutput { log_prob: f32::ln(ratio), ..PolicyOutput::default() };
        let of_grpo = GrpoConfig { dual_clip: c, ..clipped(0.2, 0.0) };
        let losses = [ppo(c, i, now).loss, grpo(&of_grpo, (now.log_prob, 0.0), [-2.0, 2.0][i]).loss];
        for got in losses.map(|loss| (loss.value, loss.slopes.log_prob)) {
            assert!((got.0 - loss).abs() < 1e-5 && (got.1 - derivative).abs() < 1e-5, "decision {i}, ratio {ratio}, c {c}: {got:?}");
        }
    }
}

#[test]
fn the_sequence_ratio_is_the_geometric_mean() {
    let now = [0.1, -0.05, 0.2].map(|log_prob| PolicyOutput { log_prob, ..PolicyOutput::default() });
    let (indices, weights) = ([0, 1, 2], [1.0 / 3.0; 3]);
    let log_ratio = MeanLogRatio::new(&[0.0; 3], &indices, &weights, &now).log_ratio();
    near(&[f64::from(log_ratio.exp().value())], &[1.086_904], "the plain product is 1.284025");
    assert_eq!(log_ratio.slope(), 1.0, "the loss of the text is a function of the mean log-ratio");
    let token = GrpoObjective {
        config: &clipped(f32::INFINITY, 0.0),
        old_log_probs: &[0.0; 3],
        advantages: &[1.0; 3],
        kl_penalty: &KlPenalty::default(),
    };
    let (mut outputs, mut sums) = (now, Sums::default());
    SequenceObjective(&token).slice(&indices, &weights, &mut outputs, &mut sums);
    near(&[sums.loss, sums.diagnostics[0], sums.diagnostics[2]], &[-1.086_904, -1.086_904, 0.003_571], "s - 1 - ln s");
    near(&outputs.map(|output| output.log_prob.into()), &[-1.086_904 / 3.0; 3], "- s / T");
}

/// The derivative with respect to each log-probability equals central differences of the loss. The KL penalty and the entropy are computed
/// per token.
#[test]
fn a_sequence_shares_one_ratio_and_its_derivative() {
    let kl_penalty = KlPenalty { log_probs: vec![-1.2, -0.7, -2.0], in_loss: 0.3, ..KlPenalty::default() };
    for advantage in [-1.5, 0.8] {
        let config = GrpoConfig { entropy_coefficient: 0.05, ..clipped(0.2, 0.0) };
        let (old_log_probs, advantages) = (&[-1.0, -0.9, -1.8], &[advantage; 3]);
        let token = GrpoObjective { config: &config, old_log_probs, advantages, kl_penalty: &kl_penalty };
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
        let is_clipped = advantage > 0.0;
        assert_eq!(sums.diagnostics[5] > 0.9, is_clipped, "clip/high");
        let of_penalty = kl_penalty.term(0, PolicyOutput { log_prob: 0.0, ..PolicyOutput::default() }.into()).loss.slopes.log_prob;
        let pull = outputs[0].log_prob - 0.2 * of_penalty;
        assert_eq!(pull.abs() < 1e-7, is_clipped);
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
        config: &GrpoConfig { entropy_coefficient: 0.1, ..GrpoConfig::default() },
        old_log_probs: &vec![f32::NAN; n],
        advantages: &advantages,
        kl_penalty: &kl_penalty,
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
