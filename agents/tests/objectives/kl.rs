//! Estimators of the divergence from the reference, the KL penalty in rewards and losses, and the adaptation of its coefficient beta.

use crate::common::{decisions, near};
use gradus_agents::GrpoConfig;
use gradus_agents::kl::{k1, k2, k3};
use gradus_agents::reference::{KlPenalty, next_coefficient};
use gradus_nets::loss::LogProb;
use gradus_nets::{Loss, Objective, Of, PolicyOutput};

#[test]
fn estimators_give_the_hand_computed_divergence() {
    let d = Of::<LogProb>::variable(0.3);
    let of_all = [k1(d), k2(d), k3(d)];
    near(&of_all.map(|k| k.value().into()), &[0.3, 0.045, 0.040_818], "d = 0.3");
    near(&of_all.map(|k| k.slope().into()), &[1.0, 0.3, 0.259_182], "the derivatives 1, d and 1 - e^-d");
}

/// Tests the table in the documentation of `kl`. For actions from pi, the expected gradient of k1 is 0, that of k2 is the gradient of
/// KL(pi || pi_ref), and that of k3 is the gradient of KL(pi_ref || pi). The term of the exact estimator has no derivative with respect to
/// log pi(a), only one with respect to the divergence.
#[test]
fn each_estimator_has_the_documented_gradient() {
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
        // sum_a p(a) x d term / d log pi(a) x d log pi(a) / d z_j
        let mut mean = vec![0.0; 3];
        for a in 0..3 {
            let term = kl_penalty.term(a, PolicyOutput { log_prob: p[a].ln() as f32, ..PolicyOutput::default() }.into());
            for (j, mean) in mean.iter_mut().enumerate() {
                *mean += p[a] * f64::from(term.loss.slopes.log_prob) * (f64::from(u8::from(a == j)) - p[j]);
            }
        }
        assert!(mean.iter().zip(&expected).all(|(m, e)| (m - e).abs() < 1e-6), "{estimator:?}: expected {expected:?}, got {mean:?}");
    }
    let kl_penalty = KlPenalty { log_probs: vec![-1.0], in_loss: 2.0, estimator: Some(Estimator::Exact), ..KlPenalty::default() };
    let term = kl_penalty.term(0, PolicyOutput { log_prob: -0.5, kl_ref: 0.25, ..PolicyOutput::default() }.into());
    assert_eq!(term.loss, Loss { value: 0.5, slopes: PolicyOutput { kl_ref: 2.0, ..PolicyOutput::default() }, q: 0.0 });
}

#[test]
fn the_penalty_is_subtracted_from_the_reward() {
    let mut rollout = decisions(&[0.8, 0.5], &[(0..2, 0)]);
    // log pi_old - log pi_ref = .05 and -.1
    rollout.log_probs = vec![-1.0, -1.0];
    let kl_penalty = KlPenalty { log_probs: vec![-1.05, -0.9], in_reward: 6.0, ..KlPenalty::default() };
    let rewards: Vec<f64> = kl_penalty.rewards(&rollout).into_iter().map(f64::from).collect();
    near(&rewards, &[0.5, 1.1], "0.8 - 6 x 0.05 and 0.5 + 6 x 0.1");
    let of_loss = KlPenalty { in_loss: 6.0, in_reward: 0.0, ..kl_penalty.clone() };
    assert_eq!(of_loss.rewards(&rollout), rollout.rewards, "a penalty in the loss is not also subtracted from the reward");
    let (by_decision, by_episode) = kl_penalty.measured(&rollout);
    near(&[by_decision, by_episode], &[-0.025, -0.05], "the mean over decisions, and over episodes");
}

#[test]
fn beta_adapts_to_the_divergence() {
    near(&[next_coefficient(1.0, 9.0, 6.0, 64, 10_000.0).into()], &[1.001_28], "divergence 9, target 6: error clipped to 0.2");
    near(&[next_coefficient(2.0, 5.7, 6.0, 100, 1000.0).into()], &[2.0 * (1.0 - 0.05 * 0.1)], "divergence 5.7, target 6: error -0.05");
    near(&[next_coefficient(1.0, -3.0, 6.0, 64, 10_000.0).into()], &[1.0 - 0.2 * 0.0064], "a negative estimate of the divergence");
    assert!(next_coefficient(1.0, 0.0, 6.0, 1 << 20, 1.0) > 0.0, "beta stays positive");
}

/// k3 and its derivative are computed by hand for pi_ref / pi = 2 and 1/2.
#[test]
fn k3_and_its_derivative_give_the_hand_computed_numbers() {
    let ln2 = std::f32::consts::LN_2;
    let objective = gradus_agents::grpo::GrpoObjective {
        config: &GrpoConfig::default(),
        old_log_probs: &[-1.0, -1.0],
        advantages: &[0.0, 0.0],
        kl_penalty: &KlPenalty { log_probs: vec![-1.0 + ln2, -1.0 - ln2], in_loss: 0.5, ..KlPenalty::default() },
    };
    for (i, k3, derivative) in [(0, 2.0 - ln2 - 1.0, -1.0), (1, 0.5 + ln2 - 1.0, 0.5)] {
        let loss = objective.decision(i, PolicyOutput { log_prob: -1.0, ..PolicyOutput::default() }.into()).loss;
        assert!((loss.value - 0.5 * k3).abs() < 1e-6 && (loss.slopes.log_prob - 0.5 * derivative).abs() < 1e-6, "{i}");
    }
}
