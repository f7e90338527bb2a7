//! Every part of a loss that is not reported elsewhere has the value whose slope its derivative is, and the value of a table.

use gradus_agents::a2c::A2cObjective;
use gradus_agents::kl::KlCoefficients;
use gradus_agents::reference::Estimator;
use gradus_nets::{Objective, PolicyOutput};

/// A = 2, log pi = -0.5, V = 1.5, target 1, H = 0.7: the policy loss is 1, the value loss 0.125.
#[test]
fn a2cs_loss_is_that_of_a_table() {
    let objective = A2cObjective { advantages: &[9.0, 2.0], targets: &[9.0, 1.0], entropy_coefficient: 0.1, value_coefficient: 0.4 };
    let now = PolicyOutput { log_prob: -0.5, entropy: 0.7, value: 1.5, ..PolicyOutput::default() };
    let got = objective.decision(1, now);
    assert!((got.loss - (1.0 + 0.4 * 0.125 - 0.1 * 0.7)).abs() < 1e-6, "{got:?}");
    assert!(got.diagnostics[..3].iter().zip([1.0, 0.125, -0.7]).all(|(got, expected)| (got - expected).abs() < 1e-6), "{got:?}");
    let derivative = PolicyOutput { log_prob: -2.0, entropy: -0.1, value: 0.4 * 0.5, ..PolicyOutput::default() };
    assert_eq!(got.derivative, derivative);
}

#[test]
fn the_derivatives_of_the_kl_term_are_slopes_of_its_value() {
    for estimator in [Estimator::K1, Estimator::K2, Estimator::K3, Estimator::Exact] {
        let term = KlCoefficients::new(&[-1.2], 0.3, estimator);
        let at = |log_prob: f32, kl_ref: f32| term.term(-1.2, PolicyOutput { log_prob, kl_ref, ..PolicyOutput::default() });
        for log_prob in [-2.0, -1.2, -0.4] {
            let (here, h) = (at(log_prob, 0.5), 1e-2);
            let slope = (at(log_prob + h, 0.5).loss - at(log_prob - h, 0.5).loss) / (2.0 * h);
            assert!((slope - here.d_log_prob).abs() < 1e-4, "{estimator:?} at {log_prob}: {slope}, {here:?}");
            let slope = (at(log_prob, 0.5 + h).loss - at(log_prob, 0.5 - h).loss) / (2.0 * h);
            assert!((slope - here.d_kl_ref).abs() < 1e-5, "{estimator:?} at {log_prob}: {slope}, {here:?}");
        }
        // pi = pi_ref: no divergence; with the exact estimator it is measured by the policy
        let equal = at(-1.2, 0.0);
        assert_eq!((equal.loss, equal.divergence), (0.0, 0.0), "{estimator:?}");
    }
}
