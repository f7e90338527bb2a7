//! Assertions and statistics for the oracle.

use gradus::envs::random::{Purpose, Stream};

/// Asserts that the mean of `samples` is `exact` within its sampling error: along the exact gradient and along twenty random directions (z
/// scores), and in total (the squared error over its expectation). Also asserts that the mean is not too noisy (the cosine).
pub fn assert_mean_is(name: &str, samples: &[Vec<f64>], exact: &[f64]) {
    // parameters after the last nonzero element of `exact` belong to the critic and are not compared
    let actor = exact.iter().rposition(|g| *g != 0.0).unwrap() + 1;
    let n = samples.len() as f64;
    let mean: Vec<f64> = (0..actor).map(|i| samples.iter().map(|s| s[i]).sum::<f64>() / n).collect();
    let norm = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
    let along = |v: &[f64], u: &[f64]| v.iter().zip(u).map(|(v, u)| v * u).sum::<f64>();
    let mut stream = Stream::new(3, Purpose::Bootstrap, 0);
    let mut directions = vec![exact[..actor].to_vec()];
    directions.extend((0..20).map(|_| (0..actor).map(|_| stream.uniform(-1.0, 1.0)).collect::<Vec<f64>>()));
    let mut worst = 0.0_f64;
    for direction in &directions {
        let projections: Vec<f64> = samples.iter().map(|s| along(&s[..actor], direction)).collect();
        let centre = projections.iter().sum::<f64>() / n;
        let variance = projections.iter().map(|p| (p - centre).powi(2)).sum::<f64>() / (n - 1.0);
        worst = worst.max((centre - along(exact, direction)).abs() / (variance / n).sqrt());
    }
    let error: Vec<f64> = mean.iter().zip(exact).map(|(m, e)| m - e).collect();
    let variance: f64 =
        samples.iter().map(|s| s[..actor].iter().zip(&mean).map(|(x, m)| (x - m).powi(2)).sum::<f64>()).sum::<f64>() / (n - 1.0);
    let ratio = norm(&error).powi(2) / (variance / n);
    let cosine = along(&mean, exact) / (norm(&mean) * norm(&exact[..actor]));
    println!(
        "{name:<44} |g| {:.4}, relative error {:.3}, cosine {cosine:.4}, worst z {worst:.1}, error/expected {ratio:.2}",
        norm(exact),
        norm(&error) / norm(exact)
    );
    assert!(worst < 4.0 && ratio < 3.0, "{name}: worst z {worst:.1}, squared error {ratio:.2} times the expected squared error");
    assert!(cosine > 0.97, "{name}: too noisy for a conclusion, cosine {cosine:.3}");
}

/// Returns the mean and the standard deviation, where the sum of squares is divided by n - `less`.
pub fn moments(numbers: &[f64], less: f64) -> (f64, f64) {
    let n = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / n;
    (mean, (numbers.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - less)).sqrt())
}

/// Returns the numbers minus their mean, divided by their sample standard deviation; 0 if all are equal.
pub fn whitened(numbers: &[f64]) -> Vec<f64> {
    let (mean, std) = moments(numbers, 1.0);
    numbers.iter().map(|x| if std > 1e-9 { (x - mean) / std } else { 0.0 }).collect()
}

/// Returns the derivative of min(rho A, clip(rho) A) with respect to log rho: 0 if rho is beyond the clip in the direction of A, or beyond
/// the dual clip `dual` while A is negative; otherwise rho A.
pub fn clipped(ratio: f64, a: f64, (low, high, dual): (f64, f64, f64)) -> f64 {
    let is_past = if a > 0.0 { ratio > 1.0 + high } else { ratio < 1.0 - low || ratio > dual };
    if is_past { 0.0 } else { ratio * a }
}
