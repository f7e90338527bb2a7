//! The gradient equals central differences for several shapes of hidden layers, both activations, and separate and shared networks.

use gradus_base::random::{Purpose, Stream};
use gradus_base::tensors::Data;
use gradus_nets::{Activation, Batch, Behaviour, Network, NetworkConfig, Policy};

use super::{Curved, batch, network, store};
use crate::reference::Reference;

/// Tolerance of a derivative's error. The error is relative to the largest derivative of the tensor, or to a twentieth of the largest
/// derivative of all tensors if that is larger, because terms of that size may cancel. f32 rounding causes a few 1e-7; the largest error
/// seen is 1.6e-6.
const TOLERANCE: f64 = 4e-6;

fn largest_of<'a>(numbers: impl Iterator<Item = &'a f64>) -> f64 {
    numbers.fold(0.0, |largest, x| largest.max(x.abs()))
}

fn check(shared: bool, activation: Activation, hidden: &[usize], actions: usize, rows: usize) {
    let case = format!("{activation:?}, shared {shared}, hidden {hidden:?}, {actions} actions, {rows} rows");
    let stream = &mut Stream::new(3, Purpose::Environment, (rows * 1000 + actions * 10 + hidden.len()) as u64);
    let config = NetworkConfig { hidden: hidden.to_vec(), activation, shared, ..Default::default() };
    let mut policy = network(&config, actions, stream);
    let decisions = (2 * rows).div_ceil(3);
    let store = store(decisions, actions, stream);
    let (indices, weights) = batch(rows, decisions, stream);
    let batch = Batch::new(&indices, &weights);

    let sums = policy.gradient(&store, batch, &Curved);
    let mut reference = Reference::new(activation, &policy.save(), &store, &indices, &weights);
    if activation == Activation::Relu {
        let distance = reference.distance_to_a_kink();
        assert!(distance > 1e-5, "{case}: {distance} from a kink: choose another seed");
    }
    let (loss, differences) = reference.differences();
    assert!((sums.loss - loss).abs() < 2e-6 * (1.0 + loss.abs()), "{case}: loss {} instead of {loss}", sums.loss);
    let total: f64 = weights.iter().map(|w| f64::from(*w)).sum();
    assert!((sums.diagnostics[3] - total).abs() < 1e-9, "{case}: diagnostics are summed with the weights");

    let gradients = policy.gradient_tensors();
    assert_eq!(gradients.len(), differences.len(), "{case}: number of tensors");
    let mut squares = 0.0;
    let mut worst = (0.0, String::new());
    let of_all = largest_of(differences.iter().flat_map(|(_, expected)| expected));
    for (name, expected) in differences {
        let Data::F32(got) = &gradients[&name].data else { panic!("gradients are f32") };
        assert_eq!(got.len(), expected.len(), "{case}: {name}");
        let largest = largest_of(expected.iter()).max(of_all / 20.0);
        for (got, expected) in got.iter().zip(&expected) {
            let error = (f64::from(*got) - expected).abs() / largest;
            if error.is_nan() || error > worst.0 {
                worst = (error, format!("{name}: {got} instead of {expected}"));
            }
        }
        squares += expected.iter().map(|x| x * x).sum::<f64>();
    }
    println!("{case}: worst {:.1e}", worst.0);
    assert!(worst.0 <= TOLERANCE, "{case}: {} ({:.1e})", worst.1, worst.0);
    let norm = f64::from(policy.gradient_norm());
    assert!((norm - squares.sqrt()).abs() < 2e-6 * norm, "{case}: norm {norm} instead of {}", squares.sqrt());

    let evaluated = policy.evaluate(&store, batch, &Curved);
    assert_eq!(evaluated, sums, "{case}: evaluate and gradient differ");
}

/// Checks every shape of hidden layers. The numbers of actions and of rows cycle with different periods, so that most pairs occur.
fn check_shapes(shared: bool, activation: Activation, start: usize) {
    let shapes: [&[usize]; 6] = [&[], &[5], &[16], &[17, 33], &[64, 64], &[130]];
    for (i, hidden) in shapes.into_iter().enumerate() {
        for turn in 0..if hidden == [64, 64] { 1 } else { 2 } {
            let i = start + i + 7 * turn;
            check(shared, activation, hidden, [3, 40, 2][i % 3], [33, 1, 100, 32, 31][i % 5]);
        }
    }
}

#[test]
fn gradients_of_separate_tanh_networks_match_central_differences() {
    check_shapes(false, Activation::Tanh, 0);
}

#[test]
fn gradients_of_separate_relu_networks_match_central_differences() {
    check_shapes(false, Activation::Relu, 1);
}

#[test]
fn gradients_of_shared_tanh_networks_match_central_differences() {
    check_shapes(true, Activation::Tanh, 2);
}

#[test]
fn gradients_of_shared_relu_networks_match_central_differences() {
    check_shapes(true, Activation::Relu, 3);
}

/// In large batches a lane has several tiles and must add up their gradients.
#[test]
fn the_gradient_of_a_batch_of_many_tiles_matches_central_differences() {
    check(true, Activation::Tanh, &[17], 3, 1200);
    check(false, Activation::Relu, &[5], 2, 700);
}
