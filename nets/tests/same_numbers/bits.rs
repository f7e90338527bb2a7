//! Results do not depend on instruction sets, threads, batch sizes or earlier computations.

use gradus_base::simd::Level;
use gradus_base::threads;
use gradus_nets::cpu::ActorCritic;
use gradus_nets::{Batch, Network, Policy, Rule, Store};

use super::{Quadratic, WIDTH, assert_same, bits, history, policy, shapes, store};

#[test]
fn results_do_not_depend_on_the_instruction_set() {
    let levels = Level::available();
    assert_eq!((levels[0], levels.last().copied()), (Level::Portable, Some(Level::best())));
    for (config, actions) in &shapes() {
        for (rows, rule) in [(1, Rule::Adam), (37, Rule::RmsProp), (130, Rule::Adam), (300, Rule::Adam)] {
            let portable = history(config, actions, rows, rule, Level::Portable);
            for level in &levels[1..] {
                let case = format!("{level:?} and Portable, {config:?}, {rows} rows, {rule:?}");
                assert_same(&portable, &history(config, actions, rows, rule, *level), &case);
            }
        }
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    for (config, actions) in &shapes() {
        for (rows, rule) in [(1, Rule::RmsProp), (33, Rule::Adam), (128, Rule::RmsProp), (1000, Rule::Adam)] {
            let run = |count| threads::with(count, || history(config, actions, rows, rule, Level::best()));
            let alone = run(1);
            for count in [2, 5] {
                assert_same(&alone, &run(count), &format!("{count} threads and 1, {config:?}, {rows} rows, {rule:?}"));
            }
        }
    }
}

/// Small batches are computed network by network, and large batches in lanes of rows. Adding decisions of weight 0 turns a small batch into
/// a large one.
#[test]
fn decisions_of_weight_0_do_not_change_the_gradient_of_a_small_batch() {
    for (config, actions) in &shapes() {
        let store = store(300, actions);
        let indices: Vec<u32> = (0..300).collect();
        let weights: Vec<f32> = (0..300).map(|i| if i < 200 { (1 + i % 3) as f32 / 400.0 } else { 0.0 }).collect();
        let gradient = |rows: usize| {
            let mut policy = policy(config, actions, Level::best());
            let sums = policy.gradient(&store, Batch::new(&indices[..rows], &weights[..rows]), &Quadratic);
            (sums.loss, policy.gradient_norm(), policy.last_gradient().to_vec())
        };
        let ((loss, norm, small), (large_loss, large_norm, large)) = (gradient(200), gradient(300));
        assert!((loss - large_loss).abs() < 1e-5 * loss.abs(), "{config:?}: {loss} and {large_loss}");
        assert!((norm - large_norm).abs() < 1e-5 * norm, "{config:?}: {norm} and {large_norm}");
        let distance = small.iter().zip(&large).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>().sqrt();
        assert!(distance < 1e-5 * f64::from(norm), "{config:?}: the gradients are {distance} apart, their norm is {norm}");
    }
}

#[test]
fn results_do_not_depend_on_earlier_computations() {
    for (config, actions) in &shapes() {
        let mut used = policy(config, actions, Level::best());
        let (large, small) = (store(700, actions), store(33, actions));
        let gradient = |policy: &mut ActorCritic, store: &Store| {
            let indices: Vec<u32> = (0..store.actions.len() as u32).collect();
            let sums = policy.gradient(store, Batch::new(&indices, &vec![0.01; indices.len()]), &Quadratic);
            let (mut values, mut product) = (Vec::new(), Vec::new());
            policy.values(store, &mut values);
            if policy.supports_fisher() {
                let vector = policy.parameters().to_vec();
                policy.fisher_vector_product(store, Batch::new(&indices, &vec![0.01; indices.len()]), &vector, &mut product);
            }
            (sums, bits(policy.last_gradient()), bits(&values), bits(&product))
        };
        let fresh = gradient(&mut policy(config, actions, Level::best()), &small);
        gradient(&mut used, &large);
        assert_eq!(gradient(&mut used, &small), fresh, "{config:?}, after a larger batch");
        // a store that makes every number of a network NaN
        let broken = Store::new(WIDTH, vec![f32::NAN; 64 * WIDTH], store(64, actions).actions);
        assert!(gradient(&mut used, &broken).0.loss.is_nan());
        assert_eq!(gradient(&mut used, &small), fresh, "{config:?}, after a batch of NaN");
    }
}
