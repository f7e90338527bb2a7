//! The losses and gradients of a batch's parts add up, an empty batch has loss and gradient 0, and `values` agrees with the values
//! that an objective receives. Declaring that an objective depends on values alone does not change the results.

use gradus_base::random::{Purpose, Stream};
use gradus_nets::{ActionRows, Batch, Evaluation, Network, NetworkConfig, Objective, Outputs, Policy, Store, Sums, UpdatedGroups};

use super::{Curved, WIDTH, batch, network, outputs, small_networks, store};

#[test]
fn the_parts_of_a_batch_add_up_to_the_whole() {
    for (config, actions) in small_networks() {
        let stream = &mut Stream::new(4, Purpose::Environment, 0);
        let mut policy = network(&config, actions, stream);
        let store = store(900, actions, stream);
        let (indices, weights) = batch(1300, 900, stream);
        let mut part = |range: std::ops::Range<usize>| {
            let batch = Batch::new(&indices[range.clone()], &weights[range]);
            (policy.gradient(&store, batch, &Curved), policy.last_gradient().to_vec())
        };
        let (whole, gradient) = part(0..1300);
        let largest = gradient.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
        for cut in [0, 1, 32, 477, 1300] {
            let ((mut sums, first), (rest, second)) = (part(0..cut), part(cut..1300));
            sums.add(&rest);
            assert!((sums.loss - whole.loss).abs() < 1e-12, "cut at {cut}: {} instead of {}", sums.loss, whole.loss);
            for ((a, b), whole) in first.iter().zip(&second).zip(&gradient) {
                assert!((a + b - whole).abs() < 2e-6 * largest, "cut at {cut}: {a} + {b} instead of {whole}");
            }
        }
    }
}

#[test]
fn an_empty_batch_has_no_loss_and_no_gradient() {
    let (config, actions) = small_networks()[0].clone();
    let stream = &mut Stream::new(4, Purpose::Environment, 1);
    let mut policy = network(&config, actions, stream);
    let store = store(3, actions, stream);
    policy.gradient(&store, Batch::new(&[0, 1], &[1.0, 1.0]), &Curved);
    assert!(policy.gradient_norm() > 0.0);
    assert_eq!(policy.gradient(&store, Batch::new(&[], &[]), &Curved), Sums::default());
    assert_eq!((policy.gradient_norm(), policy.last_gradient().iter().all(|g| *g == 0.0)), (0.0, true));
}

/// A loss of the value alone; `updates` declares this if `says_so` is true.
struct OfValues {
    says_so: bool,
}

impl Objective for OfValues {
    fn decision(&self, index: usize, pi: Outputs) -> Evaluation {
        (0.5 * (pi.value - 0.1 * (index % 7) as f32).squared()).into()
    }

    fn updates(&self) -> UpdatedGroups {
        if self.says_so { UpdatedGroups::Critic } else { UpdatedGroups::All }
    }
}

/// An objective of the value alone gets the same numbers whether or not it declares this, before and after other objectives.
#[test]
fn declaring_an_objective_of_values_alone_does_not_change_its_numbers() {
    // a network with wide second layers, whose weights have transposed copies
    let wide = (NetworkConfig { hidden: vec![20, 24], ..NetworkConfig::default() }, 3);
    for (config, actions) in small_networks().into_iter().chain([wide]) {
        for rows in [1, 64, 100, 1300] {
            let numbers = |says_so: bool| {
                let stream = &mut Stream::new(8, Purpose::Environment, 0);
                let mut policy = network(&config, actions, stream);
                let store = store(900, actions, stream);
                let (indices, weights) = batch(rows, 900, stream);
                let batch = Batch::new(&indices, &weights);
                let mut numbers = Vec::new();
                let of_values = OfValues { says_so };
                for objective in [&Curved as &dyn Objective, &of_values, &Curved, &of_values] {
                    let moved: Vec<f32> = policy.parameters().iter().map(|x| 0.9 * x).collect();
                    policy.set_parameters(&moved);
                    for _ in 0..2 {
                        let sums = policy.gradient(&store, batch, objective);
                        numbers.push((sums, policy.gradient_norm(), policy.last_gradient().to_vec()));
                        numbers.push((policy.evaluate(&store, batch, objective), 0.0, Vec::new()));
                    }
                    // this gradient uses transposed copies of parameters that have not changed
                    numbers.push((policy.gradient(&store, batch, &Curved), policy.gradient_norm(), policy.last_gradient().to_vec()));
                }
                numbers
            };
            assert!(numbers(true) == numbers(false), "{rows} rows");
        }
    }
}

#[test]
fn values_agree_with_the_objectives_values() {
    for (config, actions) in small_networks() {
        for decisions in [1, 31, 33, 600] {
            let stream = &mut Stream::new(5, Purpose::Environment, 0);
            let mut policy = network(&config, actions, stream);
            let store = store(decisions, actions, stream);
            let mut values = vec![f32::NAN; 7];
            policy.values(&store, &mut values);
            assert_eq!(values.len(), store.rows(), "one value per row, including rows without actions");
            for (i, (value, seen)) in values.iter().zip(outputs(&mut policy, &store)).enumerate() {
                assert_eq!(value.to_bits(), seen.value.to_bits(), "row {i} of {decisions}");
            }
            // the observations after the decisions have the same values in a store where they have an action
            let n = store.rows();
            let behind = (n - 2..n).flat_map(|row| store.observation(row).to_vec()).collect();
            let moved = Store::new(WIDTH, behind, ActionRows::Discrete(vec![0; 2]));
            let seen: Vec<u32> = outputs(&mut policy, &moved).iter().map(|output| output.value.to_bits()).collect();
            assert_eq!(seen, [values[n - 2].to_bits(), values[n - 1].to_bits()]);
        }
    }
}
