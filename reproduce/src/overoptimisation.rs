//! Over-optimisation of a learned reward (Gao et al., 2023).

use std::fmt::Write;

use serde::Deserialize;

use super::draw::{figure, lines};
use super::experiment::Experiment;
use super::findings::{Claim, Findings, Test, bootstrap, mean};
use super::runs::each;
use gradus::envs::text::Split;
use gradus::figure::{Series, dashed, solid};
use gradus::nets::math::ln;
use gradus::run::best_of::best_of;
use gradus::run::reward_model::{Wanted, run as learn};
use gradus::run::sft::{self, WarmStart};
use gradus::{Config, Error, Trainer};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    seeds: u64,
    tokens: u64,
    envs: usize,
    problems: usize,
    most: usize,
    warm_start: u64,
}

/// The mean scores of an update's completions, and the root of the policy's divergence from the initial one.
#[derive(Clone, Copy)]
struct Point {
    d: f64,
    learned: f64,
    real: f64,
}

fn train(config: Config) -> Result<Vec<Point>, Error> {
    let mut trainer = Trainer::new(config)?;
    let mut points = Vec::new();
    while !trainer.is_finished() {
        let iteration = trainer.iterate()?;
        let metric = |name: &str| iteration.metrics.iter().find(|(key, _)| key == name).map_or(f64::NAN, |(_, number)| *number);
        let d = metric("kl/ref_sequence").max(0.0).sqrt();
        points.push(Point { d, learned: metric("reward/mean"), real: metric("reward/true") });
    }
    Ok(points)
}

/// Returns the mean of `number` over the updates of a run whose d is within `width` of `d`.
fn near(run: &[Point], d: f64, width: f64, number: fn(&Point) -> f64) -> Result<f64, Error> {
    let those: Vec<f64> = run.iter().filter(|point| (point.d - d).abs() <= width).map(number).collect();
    if those.is_empty() {
        let (what, expected) = ("overoptimisation".into(), format!("updates with d within {width} of {d} in every run"));
        return Err(Error::Parse { what, expected, got: "none".into() });
    }
    Ok(those.iter().sum::<f64>() / those.len() as f64)
}

/// Fits R(d) = R(0) + d (alpha - beta ln d) by least squares, where R(0) is given. Returns alpha and beta.
fn fit(points: &[(f64, f64)], at_0: f64) -> (f64, f64) {
    let [mut aa, mut ab, mut bb, mut ay, mut by] = [0.0; 5];
    for (d, y) in points.iter().filter(|(d, _)| *d > 0.05) {
        let (a, b) = (*d, -d * f64::from(ln(*d as f32)));
        (aa, ab, bb) = (aa + a * a, ab + a * b, bb + b * b);
        (ay, by) = (ay + a * (y - at_0), by + b * (y - at_0));
    }
    let determinant = aa * bb - ab * ab;
    ((ay * bb - by * ab) / determinant, (by * aa - ay * ab) / determinant)
}

/// Figure 1.
pub(super) fn reproduce(experiment: &Experiment) -> Result<Findings, Error> {
    let Settings { seeds, tokens, envs, problems, most, warm_start } = experiment.settings()?;
    let folder = std::env::temp_dir().join(format!("gradus-reproduce-{}", std::process::id()));
    let base = sft::defaults(Config::preset("grpo", "preference", None)?);
    let (start, _) =
        sft::run(&base, &WarmStart { steps: warm_start, ..WarmStart::default() }, Some(&folder.join("start")), "start", |_| ())?;
    let from_start = base.with_setting(&format!("init={}", start.display()))?;
    let (model, _) = learn(&from_start, &Wanted::default(), Some(&folder.join("reward")), "reward")?;
    let changes = [
        format!("envs={envs}"),
        "reference.measure=true".into(),
        format!("init={}", start.display()),
        format!("reward_model.folder={}", model.display()),
    ];
    let config = Config { steps: tokens, ..Config::preset("grpo", "preference", None)? };
    let config = changes.iter().try_fold(config, |config, change| config.with_setting(change))?;
    let all: Vec<u64> = (1..=seeds).collect();
    let runs = each(&all, |seed| train(Config { seed: *seed, ..config.clone() }))?;
    let best = best_of(&start, Some(&model), Split::Train, problems, most, 1)?.best_of;
    // the folder is temporary; a part that remains is harmless
    let _ = std::fs::remove_dir_all(&folder);

    let of = |number: fn(&Point) -> f64| runs.iter().map(|run| near(run, 1.0, 0.25, number)).collect::<Result<Vec<f64>, Error>>();
    let last = |number: fn(&Point) -> f64| {
        let end =
            |run: &Vec<Point>| run[run.len() - (run.len() / 10).max(1)..].iter().map(number).sum::<f64>() / (run.len() / 10).max(1) as f64;
        runs.iter().map(end).collect::<Vec<f64>>()
    };
    let minus = |x: Vec<f64>, y: Vec<f64>| x.iter().zip(&y).map(|(x, y)| x - y).collect::<Vec<f64>>();
    let real: fn(&Point) -> f64 = |point| point.real;
    let learned: fn(&Point) -> f64 = |point| point.learned;
    // the first rollout is made by the initial policy
    let at_0: Vec<f64> = runs.iter().map(|run| run.first().map_or(f64::NAN, real)).collect();
    let beta_of = |(run, at_0): (&Vec<Point>, &f64)| fit(&run.iter().map(|point| (point.d, point.real)).collect::<Vec<_>>(), *at_0).1;
    let betas: Vec<f64> = runs.iter().zip(&at_0).map(beta_of).collect();
    // the divergence at which a run first reaches the learned score of best of n; a run that never does has spent at least what it has at its end
    let middle = best[best.len() / 2];
    let spent: Vec<f64> = runs
        .iter()
        .map(|run| {
            run.iter()
                .find(|point| point.learned >= middle.worth)
                .or(run.last())
                .map_or(f64::NAN, |point| point.d * point.d - middle.kl_bound)
        })
        .collect();
    let bootstrap = bootstrap(5);
    let claims = vec![
        Claim::new(
            "the true score first rises: at d = 1 minus that of the initial policy",
            mean(bootstrap, &minus(of(real)?, at_0.clone())),
            Test::Above(0.0),
        ),
        Claim::new("then it falls: at the end minus that at d = 1", mean(bootstrap, &minus(last(real), of(real)?)), Test::Below(0.0)),
        Claim::new(
            "meanwhile the learned score rises: at the end minus that at d = 1",
            mean(bootstrap, &minus(last(learned), of(learned)?)),
            Test::Above(0.0),
        ),
        Claim::new("the true score bends down, as d (α − β log d) does: β of the fit", mean(bootstrap, &betas), Test::Above(0.0)),
        Claim::new(
            format!("reinforcement learning spends more divergence than best of {} for its learned score: difference in nats", middle.n),
            mean(bootstrap, &spent),
            Test::Above(0.0),
        ),
    ];
    let mut csv = String::from("method,seed,d,learned,true\n");
    for (seed, run) in all.iter().zip(&runs) {
        run.iter().for_each(|Point { d, learned, real }| writeln!(csv, "GRPO,{seed},{d},{learned},{real}").expect("a string"));
    }
    best.iter()
        .for_each(|best| writeln!(csv, "best of {},,{},{},{}", best.n, best.kl_bound.sqrt(), best.worth, best.reward).expect("a string"));
    // means over all runs in equal parts of d
    let most_d = runs.iter().flatten().map(|point| point.d).fold(0.0, f64::max);
    let parts = 25;
    let curve = |number: fn(&Point) -> f64| -> Vec<(f64, f64)> {
        let part = |part: usize| {
            let (from, to) = (part as f64 * most_d / parts as f64, (part + 1) as f64 * most_d / parts as f64);
            let those: Vec<f64> = runs.iter().flatten().filter(|point| (from..to).contains(&point.d)).map(number).collect();
            (!those.is_empty()).then(|| ((from + to) / 2.0, those.iter().sum::<f64>() / those.len() as f64))
        };
        (0..parts).filter_map(part).collect()
    };
    let true_curve = curve(real);
    let at_0 = at_0.iter().sum::<f64>() / at_0.len() as f64;
    let (alpha, beta) = fit(&true_curve, at_0);
    let fitted = true_curve.iter().map(|(d, _)| (*d, at_0 + d * (alpha - beta * f64::from(ln(*d as f32))))).collect();
    let of_best = |number: &dyn Fn(&gradus::run::best_of::BestOf) -> f64| {
        best.iter().map(|best| (best.kl_bound.sqrt(), number(best))).collect::<Vec<_>>()
    };
    let line = |label: &str, style: usize, points: Vec<(f64, f64)>| Series { style: Some(style), ..Series::new(label, points) };
    let x = "d, the root of the KL divergence in nats";
    let panels = vec![
        lines(
            "true score",
            x,
            "true score",
            vec![
                line("GRPO", solid(0), true_curve),
                line("fit of d (α − β log d)", dashed(10, 1), fitted),
                line("best of n", solid(1), of_best(&|best| best.reward)),
            ],
        ),
        lines(
            "learned score",
            x,
            "learned score",
            vec![line("GRPO", solid(0), curve(learned)), line("best of n", solid(1), of_best(&|best| best.worth))],
        ),
    ];
    let note = format!("task preference; mean of {seeds} seeds, best of 1 to {most}");
    Ok(Findings { claims, figures: vec![("figure", figure(&experiment.title, &note, 1, panels))], tables: vec![("scores.csv", csv)] })
}
