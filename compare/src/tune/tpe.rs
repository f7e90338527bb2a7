//! The tree-structured Parzen estimator: Bergstra, Bardenet, Bengio & Kégl, "Algorithms for Hyper-Parameter Optimization", 2011, section 4.
//!
//! Points with good scores have the density l, the others g. Of some points drawn from l, the one with the largest l(x) / g(x) is proposed. The densities are products over
//! the settings of the space, each over the points that have it.

use gradus_base::math::{exp_f64, ln_f64};
use gradus_base::random::Stream;
use toml::Value;

use crate::sweep::space::{Dimension, Domain, Settings, Space};

/// Points that are drawn from l for each proposal, as in the paper's experiments with about this many.
const CANDIDATES: usize = 24;
/// Least bandwidth of a kernel, as a share of the range.
const NARROWEST: f64 = 0.03;

/// The density of one setting, of points that have it: a mixture of a kernel at each of their values and, with the weight of one point, the uniform distribution.
enum Density<'a> {
    /// Places in a range from 0 to 1, and the bandwidth of the kernels, which are normal and reflected at the ends.
    Kernels { places: Vec<f64>, bandwidth: f64 },
    /// How many points have each value of a list.
    Counts { values: &'a [Value], counts: Vec<f64> },
}

impl<'a> Density<'a> {
    fn of(dimension: &'a Dimension, points: &[&Settings]) -> Self {
        let value_of = |point: &&Settings| point.iter().find(|(key, _)| *key == dimension.key).map(|(_, value)| value.clone());
        let own: Vec<Value> = points.iter().filter_map(value_of).collect();
        match &dimension.domain {
            Domain::List(values) => {
                let count = |value: &Value| own.iter().filter(|other| *other == value).count() as f64;
                Self::Counts { values, counts: values.iter().map(count).collect() }
            }
            range => {
                let places: Vec<f64> = own.iter().map(|value| range.position(value)).collect();
                let n = places.len().max(1) as f64;
                let mean = places.iter().sum::<f64>() / n;
                let deviation = (places.iter().map(|place| (place - mean).powi(2)).sum::<f64>() / n).sqrt();
                // Scott's rule: n^(-1/5)
                let bandwidth = (1.06 * deviation * exp_f64(-0.2 * ln_f64(n))).max(NARROWEST);
                Self::Kernels { places, bandwidth }
            }
        }
    }

    /// Draws a value: of the uniform distribution with the probability 1 / (n + 1).
    fn draw(&self, dimension: &Dimension, stream: &mut Stream) -> Value {
        let (which, unit) = (stream.unit_f64(), stream.unit_f64());
        match self {
            Self::Kernels { places, bandwidth } => {
                let kernel = (which * (places.len() + 1) as f64) as usize;
                let noise = f64::from(stream.normal());
                dimension.domain.at(places.get(kernel).map_or(unit, |place| reflected(place + bandwidth * noise)))
            }
            Self::Counts { values, counts } => {
                let share = |count: &f64| (count + 1.0 / values.len() as f64) / (counts.iter().sum::<f64>() + 1.0);
                let mut left = unit;
                let chosen = counts.iter().position(|count| {
                    left -= share(count);
                    left < 0.0
                });
                values[chosen.unwrap_or(values.len() - 1)].clone()
            }
        }
    }

    /// The logarithm of the density at a value.
    fn ln(&self, dimension: &Dimension, value: &Value) -> f64 {
        match self {
            Self::Kernels { places, bandwidth } => {
                let x = dimension.domain.position(value);
                let kernel = |at: f64| exp_f64(-0.5 * ((x - at) / bandwidth).powi(2)) / (bandwidth * std::f64::consts::TAU.sqrt());
                // the images of a place in both ends, and in their images; no bandwidth is above 0.53
                let images = |place: f64| {
                    [-4.0, -2.0, 0.0, 2.0, 4.0].into_iter().map(move |at| kernel(at + place) + kernel(at - place)).sum::<f64>()
                };
                let all: f64 = places.iter().map(|place| images(*place)).sum();
                ln_f64((all + 1.0) / (places.len() + 1) as f64)
            }
            Self::Counts { values, counts } => {
                let count = values.iter().zip(counts).find(|(other, _)| *other == value).map_or(0.0, |(_, count)| *count);
                ln_f64((count + 1.0 / values.len() as f64) / (counts.iter().sum::<f64>() + 1.0))
            }
        }
    }
}

/// Reflects a number at 0 and 1 until it lies between them.
fn reflected(x: f64) -> f64 {
    let folded = x.rem_euclid(2.0);
    if folded > 1.0 { 2.0 - folded } else { folded }
}

/// Proposes a point, from the points with good scores and the others.
pub(super) fn propose(space: &Space, good: &[&Settings], bad: &[&Settings], stream: &mut Stream) -> Settings {
    let densities: Vec<(&Dimension, Density, Density)> =
        space.0.iter().map(|dimension| (dimension, Density::of(dimension, good), Density::of(dimension, bad))).collect();
    let mut best: Option<(f64, Settings)> = None;
    for _ in 0..CANDIDATES {
        let (mut point, mut ratio) = (Settings::new(), 0.0);
        for (dimension, l, g) in &densities {
            if dimension.holds(&point) {
                let value = l.draw(dimension, stream);
                ratio += l.ln(dimension, &value) - g.ln(dimension, &value);
                point.push((dimension.key.clone(), value));
            }
        }
        if best.as_ref().is_none_or(|(most, _)| ratio > *most) {
            best = Some((ratio, point));
        }
    }
    best.map(|(_, point)| point).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_base::random::Purpose;

    fn space(text: &str) -> Space {
        Space::parse(&text.parse().unwrap()).unwrap()
    }

    /// The density of a range integrates to 1, and draws follow it.
    #[test]
    fn draws_follow_the_density() {
        let space = space("a = { uniform = [0, 1] }");
        for places in [&[0.02, 0.1, 0.9][..], &[0.0, 1.0], &[0.3]] {
            let points: Vec<Settings> = places.iter().map(|x| vec![("a".into(), Value::Float(*x))]).collect();
            let density = Density::of(&space.0[0], &points.iter().collect::<Vec<_>>());
            let at = |x: f64| exp_f64(density.ln(&space.0[0], &Value::Float(x)));
            let (n, mut stream) = (20, Stream::new(1, Purpose::Design, 0));
            let mut counts = vec![0.0; n];
            for _ in 0..20_000 {
                let value = density.draw(&space.0[0], &mut stream).as_float().unwrap();
                counts[((value * n as f64) as usize).min(n - 1)] += 1.0 / 20_000.0;
            }
            let mut total = 0.0;
            for (bin, share) in counts.iter().enumerate() {
                let mass: f64 = (0..50).map(|i| at((bin as f64 + (i as f64 + 0.5) / 50.0) / n as f64) / (50 * n) as f64).sum();
                total += mass;
                assert!((mass - share).abs() < 0.01, "bin {bin}: {mass}, drawn {share}");
            }
            assert!((total - 1.0).abs() < 1e-4, "{places:?}: {total}");
        }
    }

    #[test]
    fn proposals_lie_where_good_points_are_and_bad_ones_are_not() {
        let space = space("a = { uniform = [0, 1] }\nrule = [\"x\", \"y\"]\nb = { values = [1, 2], if = { rule = \"x\" } }");
        let point = |a: f64, rule: &str, b: Option<i64>| -> Settings {
            let first = vec![("a".into(), Value::Float(a)), ("rule".into(), Value::String(rule.into()))];
            first.into_iter().chain(b.map(|b| ("b".into(), Value::Integer(b)))).collect()
        };
        let good: Vec<Settings> = (0..5).map(|i| point(0.2 + 0.01 * f64::from(i), "x", Some(2))).collect();
        let bad: Vec<Settings> = (0..20).map(|i| point(f64::from(i) / 20.0, "y", None)).collect();
        let proposals: Vec<Settings> = (0..50)
            .map(|i| {
                propose(&space, &good.iter().collect::<Vec<_>>(), &bad.iter().collect::<Vec<_>>(), &mut Stream::new(1, Purpose::Design, i))
            })
            .collect();
        let near = proposals.iter().filter(|point| (0.1..0.35).contains(&point[0].1.as_float().unwrap())).count();
        let x = proposals.iter().filter(|point| point[1].1.as_str() == Some("x")).count();
        assert!(near > 40 && x > 45, "{near}, {x}");
        assert!(proposals.iter().all(|point| (point.len() == 3) == (point[1].1.as_str() == Some("x"))));
    }
}
