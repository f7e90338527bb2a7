//! Thompson sampling: an arm is pulled with the probability that it is the best one (Thompson, 1933; Chapelle and Li, 2011).

use gradus_base::math::ln;
use gradus_base::random::Stream;

/// Draws a value of an arm from its posterior, if rewards are normal with variance 1 and values were drawn from N(0, prior^2): a normal distribution with the precision
/// n + 1 / prior^2 and the mean (sum of rewards) / precision.
pub fn gaussian_sample(mean: f64, n: u32, prior: f64, stream: &mut Stream) -> f64 {
    let precision = f64::from(n) + 1.0 / (prior * prior);
    mean * f64::from(n) / precision + f64::from(stream.normal()) / precision.sqrt()
}

/// Draws a probability of an arm from its posterior, if rewards are 0 or 1 and values were drawn uniformly: Beta(1 + successes, 1 + failures).
pub fn bernoulli_sample(successes: f64, failures: f64, stream: &mut Stream) -> f64 {
    beta(1.0 + successes, 1.0 + failures, stream)
}

/// Draws from Beta(a, b), for parameters of at least 1.
pub fn beta(a: f64, b: f64, stream: &mut Stream) -> f64 {
    let (x, y) = (gamma(a, stream), gamma(b, stream));
    x / (x + y)
}

/// Draws from a gamma distribution with the shape `shape`, at least 1, and scale 1 (Marsaglia and Tsang, ACM TOMS 26, 2000).
fn gamma(shape: f64, stream: &mut Stream) -> f64 {
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = f64::from(stream.normal());
        let v = (1.0 + c * x) * (1.0 + c * x) * (1.0 + c * x);
        let u = 1.0 - stream.unit_f64();
        if v > 0.0 && f64::from(ln(u as f32)) < 0.5 * x * x + d - d * v + d * f64::from(ln(v as f32)) {
            return d * v;
        }
    }
}
