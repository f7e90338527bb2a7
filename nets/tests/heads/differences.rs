//! Compares the outputs of every head with its definition, and its gradients with central differences.

use gradus_nets::{Batch, Behaviour, Network, Objective, Policy};

use super::{Case, Curved, Divergence, FromReference, KINDS, cases, loss};
use crate::reference::{Parameters, Reference, parameters};

#[test]
fn outputs_match_the_definitions() {
    for kind in KINDS {
        for mut case in cases(kind) {
            let outputs = case.outputs();
            let mut log_probs = vec![f32::NAN; 3];
            case.policy.log_probs(&case.store, &mut log_probs);
            let bits = |numbers: Vec<f32>| numbers.into_iter().map(f32::to_bits).collect::<Vec<_>>();
            assert_eq!(bits(log_probs), bits(outputs.iter().map(|output| output.log_prob).collect()), "{}: log_probs", case.name);
            let parameters = parameters(&case.policy.save());
            let mut reference = Reference { kind, store: &case.store, old: &case.old, reference: &case.reference, phi: Vec::new() };
            reference.phi = (0..outputs.len()).map(|i| reference.forward(&parameters, i).0).collect();
            for (i, output) in outputs.iter().enumerate() {
                let expected = reference.outputs(&parameters, i);
                for (got, expected) in
                    [output.log_prob, output.entropy, output.value, output.kl_old, output.kl_ref].into_iter().zip(expected)
                {
                    let error = (f64::from(got) - expected).abs() / (1.0 + expected.abs());
                    assert!(error < 2e-6, "{}, decision {i}: {output:?}, {got} instead of {expected}", case.name);
                }
            }
        }
    }
}

/// Step of the central differences.
const STEP: f64 = 1e-6;
/// Tolerance of a derivative's error, relative to the largest derivative.
const TOLERANCE: f64 = 2e-6;

#[test]
fn gradients_of_every_head_match_central_differences() {
    for kind in KINDS {
        for case in cases(kind) {
            let Case { name, mut policy, store, indices, weights, old, reference: other, .. } = case;
            let batch = Batch { old: Some(&old), reference: Some(&other), ..Batch::new(&indices, &weights) };
            let sums = policy.gradient(&store, batch, &Curved);
            let gradients = parameters(&policy.gradient_tensors());
            let mut parameters = parameters(&policy.save());
            let mut reference = Reference { kind, store: &store, old: &old, reference: &other, phi: Vec::new() };
            reference.phi = (0..store.actions.len()).map(|i| reference.forward(&parameters, i).0).collect();
            let total = |parameters: &Parameters| {
                let of_all: Vec<f64> = (0..store.actions.len()).map(|i| loss(i, reference.outputs(parameters, i))).collect();
                indices.iter().zip(&weights).map(|(i, w)| f64::from(*w) * of_all[*i as usize]).sum::<f64>()
            };
            let expected = total(&parameters);
            assert!((sums.loss - expected).abs() < 2e-6 * (1.0 + expected.abs()), "{name}: loss {} instead of {expected}", sums.loss);

            let names: Vec<String> = parameters.keys().cloned().collect();
            assert_eq!(names, gradients.keys().cloned().collect::<Vec<_>>(), "{name}");
            let largest = gradients.values().flatten().fold(0.0_f64, |largest, g| largest.max(g.abs()));
            let mut worst = (0.0, String::new());
            for tensor in names {
                for i in 0..parameters[&tensor].len() {
                    let before = parameters[&tensor][i];
                    let mut at = |by: f64| {
                        parameters.get_mut(&tensor).unwrap()[i] = before + by;
                        total(&parameters)
                    };
                    let expected = (at(STEP) - at(-STEP)) / (2.0 * STEP);
                    at(0.0);
                    let got = gradients[&tensor][i];
                    let error = (got - expected).abs() / largest;
                    if error.is_nan() || error > worst.0 {
                        worst = (error, format!("{tensor}[{i}]: {got} instead of {expected}"));
                    }
                }
            }
            println!("{:.1e} {name}", worst.0);
            assert!(worst.0 <= TOLERANCE, "{name}: {} ({:.1e})", worst.1, worst.0);
            assert_eq!(policy.evaluate(&store, batch, &Curved), sums, "{name}: evaluate and gradient differ");
        }
    }
}

#[test]
fn a_policys_divergence_from_itself_and_its_gradient_are_exactly_0() {
    for kind in KINDS {
        for case in cases(kind) {
            let Case { name, mut policy, store, indices, weights, mut old, .. } = case;
            policy.distributions(&store, &mut old);
            for objective in [&Divergence as &dyn Objective, &FromReference] {
                let batch = Batch { old: Some(&old), reference: Some(&old), ..Batch::new(&indices, &weights) };
                assert_eq!(policy.gradient(&store, batch, objective).loss, 0.0, "{name}");
                assert!(policy.last_gradient().iter().all(|g| *g == 0.0), "{name}");
            }
        }
    }
}
