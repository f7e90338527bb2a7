//! Initial parameters.

use gradus_base::random::Stream;
use rand_distr::{Distribution, StandardNormal};

/// Returns `gain` times an `outputs` x `inputs` matrix, row by row. The matrix has orthonormal rows, or orthonormal columns if it has fewer
/// columns than rows.
///
/// As in PyTorch's `orthogonal_` (Saxe, McClelland, Ganguli, arXiv 1312.6120), the matrix is the Q of the QR decomposition of a Gaussian
/// matrix, with a positive diagonal in R. Gram-Schmidt in f64 computes Q; two passes keep the vectors orthogonal.
pub(crate) fn orthogonal(outputs: usize, inputs: usize, gain: f64, stream: &mut Stream) -> Vec<f32> {
    let (vectors, length) = (outputs.min(inputs), outputs.max(inputs));
    let mut basis: Vec<Vec<f64>> = Vec::with_capacity(vectors);
    while basis.len() < vectors {
        let mut v: Vec<f64> = (0..length).map(|_| StandardNormal.sample(stream)).collect();
        for u in basis.iter().chain(&basis) {
            let along = dot(u, &v);
            v.iter_mut().zip(u).for_each(|(v, u)| *v -= along * u);
        }
        let norm = dot(&v, &v).sqrt();
        if norm > 1e-6 {
            v.iter_mut().for_each(|v| *v /= norm);
            basis.push(v);
        }
    }
    let element = |output: usize, input: usize| if outputs <= inputs { basis[output][input] } else { basis[input][output] };
    (0..outputs * inputs).map(|i| (gain * element(i / inputs, i % inputs)) as f32).collect()
}

/// Returns `n` uniform random numbers in [-reach, reach].
pub(crate) fn uniform(n: usize, reach: f64, stream: &mut Stream) -> Vec<f32> {
    (0..n).map(|_| stream.uniform(-reach, reach) as f32).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_base::random::Purpose;

    #[test]
    fn the_smaller_side_is_orthonormal() {
        for (outputs, inputs) in [(64, 4), (64, 64), (2, 64), (1, 7), (300, 200)] {
            let w = orthogonal(outputs, inputs, 1.5, &mut Stream::new(3, Purpose::Initialisation, 0));
            let n = outputs.min(inputs);
            for i in 0..n {
                for j in 0..=i {
                    let product: f64 = if outputs <= inputs {
                        (0..inputs).map(|k| f64::from(w[i * inputs + k]) * f64::from(w[j * inputs + k])).sum()
                    } else {
                        (0..outputs).map(|k| f64::from(w[k * inputs + i]) * f64::from(w[k * inputs + j])).sum()
                    };
                    let expected = if i == j { 2.25 } else { 0.0 };
                    assert!((product - expected).abs() < 1e-5, "{outputs} x {inputs}, ({i}, {j}): expected {expected}, got {product}");
                }
            }
        }
    }

    #[test]
    fn uniform_numbers_stay_within_their_reach_and_fill_it() {
        let x = uniform(20_000, 0.25, &mut Stream::new(3, Purpose::Initialisation, 0));
        assert!(x.iter().all(|x| x.abs() <= 0.25));
        let moment = |power: i32| x.iter().map(|x| f64::from(*x).powi(power)).sum::<f64>() / 20_000.0;
        // mean 0 and variance reach^2 / 3, within four standard errors
        assert!(moment(1).abs() < 4.1e-3 && (moment(2) - 0.0625 / 3.0).abs() < 5.3e-4, "mean {}, mean square {}", moment(1), moment(2));
    }
}
