//! Figure 5.4: ordinary importance sampling with an infinite variance.

use std::fmt::Write;

use serde::Deserialize;

use super::super::experiment::Experiment;
use super::super::findings::{Claim, Findings, Test, share};
use super::super::runs::each;
use super::{figure, lines, published};
use gradus::Error;
use gradus::agents::tabular::ImportanceSampling;
use gradus::envs::random::{Purpose, Stream};
use gradus::figure::{Chart, Lines, Scale, Series};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    runs: u64,
    shown: usize,
    episodes: u64,
}

/// Plays an episode of the behaviour policy, which goes left or right with equal probability: right ends the episode with reward 0, left ends it with reward 1 in one of ten
/// cases and otherwise leads back. Returns the return and the ratio for the target policy, which always goes left.
fn play(stream: &mut Stream) -> (f64, f64) {
    let mut ratio = 1.0;
    loop {
        if stream.below(2) == 1 {
            return (0.0, 0.0);
        }
        ratio *= 2.0;
        if stream.below(10) == 0 {
            return (1.0, ratio);
        }
    }
}

/// Figure 5.4.
pub(crate) fn infinite_variance(experiment: &Experiment) -> Result<Findings, Error> {
    let Settings { runs, shown, episodes } = experiment.settings()?;
    let mut places: Vec<u64> = (0..=120).map(|i| (episodes as f64).powf(f64::from(i) / 120.0).round() as u64).collect();
    places.dedup();
    let seeds: Vec<u64> = (1..=runs).collect();
    let found = each(&seeds, |seed| {
        let (mut stream, mut estimate) = (Stream::new(*seed, Purpose::Environment, 0), ImportanceSampling::default());
        let (mut ordinary, mut weighted) = (Vec::new(), 0.0);
        for number in 1..=episodes {
            let (value, ratio) = play(&mut stream);
            estimate.add(value, ratio);
            if places.contains(&number) {
                ordinary.push(estimate.ordinary());
                weighted = estimate.weighted();
            }
        }
        Ok((ordinary, weighted))
    })?;
    let far = found.iter().filter(|(ordinary, _)| (ordinary[ordinary.len() - 1] - 1.0).abs() > 0.1).count();
    let weighted = found.iter().map(|(_, weighted)| (weighted - 1.0).abs()).fold(0.0, f64::max);
    let claims = vec![
        Claim::new(
            format!("after {episodes} episodes most estimates are still wrong by more than 0.1: share of {runs} runs"),
            share(1, far, found.len()),
            Test::Above(0.5),
        ),
        Claim::exact("weighted importance sampling gives exactly 1: largest error", weighted, Test::Below(1e-12)),
        Claim::exact(
            "the variance is infinite: the terms of its sum, for episodes of k steps, grow by this factor with every step, 0.9 x 2",
            0.9 * 2.0,
            Test::Above(1.0),
        ),
    ];
    let series = |(number, (ordinary, _)): (usize, &(Vec<f64>, f64))| Series {
        ..Series::new(format!("run {}", number + 1), places.iter().zip(ordinary).map(|(x, y)| (*x as f64, *y)).collect())
    };
    let mut all: Vec<Series> = found.iter().take(shown).enumerate().map(series).collect();
    all.push(published("exact value", 1.0, episodes as f64));
    if let Some((_, exact)) = all.split_first_mut().map(|(_, rest)| ((), &mut rest[shown - 1])) {
        exact.points[0].0 = 1.0; // the axis is logarithmic
    }
    let mut csv = String::from("run,episodes,estimate\n");
    for (seed, (ordinary, _)) in seeds.iter().zip(&found).take(shown) {
        places.iter().zip(ordinary).for_each(|(x, y)| writeln!(csv, "{seed},{x},{y:.5}").expect("a string"));
    }
    let mut panel = lines("", "episodes, logarithmic", "estimate by ordinary importance sampling", all);
    if let Chart::Lines(Lines { x_scale, y_range, .. }) = &mut panel.chart {
        (*x_scale, *y_range) = (Scale::Log10, Some((0.0, 3.0)));
    }
    let note = format!("{shown} of {runs} runs; the exact value is 1");
    Ok(Findings {
        claims,
        figures: vec![("figure", figure(&experiment.title, &note, 1, vec![panel]))],
        tables: vec![("estimates.csv", csv)],
    })
}
