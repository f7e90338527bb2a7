//! Repeats the textbook's bandit experiments at full size: figures 2.1 to 2.6 of Sutton and Barto, second edition, 2018.
//!
//! `cargo run --example bandit_testbed` writes the figures, `curves.csv`, `problems.csv` and `parameters.csv` to `results/bandits/`.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::Instant;

use gradus::Error;
use gradus::agents::bandit::{Baseline, Rule, StepSize};
use gradus::envs::bandits::Testbed;
use gradus::figure::{self, Chart, Figure, Lines, Panel, Scale, Series, Violin, Violins};
use gradus::textbook::testbed::{Average, Experiment, Outcome, try_rule};

const OUT: &str = "results/bandits";
const NOTE: &str = "10 arms, 2000 problems; every rule meets the same problems and the same noise";

/// Colours of the curves of figures 2.2 to 2.5. All their lines are solid, because noisy dashed lines cannot be read. The name of a rule is
/// at the end of its curve.
const COLOURS: [usize; 4] = [0, 1, 2, 6];

/// The results of a rule, and the rule's name in a figure.
struct Curve {
    name: &'static str,
    outcome: Outcome,
}

fn curve(name: &'static str, rule: Rule, mean: f64) -> Curve {
    Curve { name, outcome: try_rule(rule, &Experiment { mean, ..Experiment::default() }) }
}

fn epsilon_greedy(epsilon: f64, initial: f64, step: StepSize) -> Rule {
    Rule::EpsilonGreedy { epsilon, initial, step }
}

fn lines(curves: &[Curve], y_label: &str, height: impl Fn(&Curve) -> Vec<f64>) -> Chart {
    let points = |curve: &Curve| height(curve).into_iter().enumerate().map(|(step, y)| ((step + 1) as f64, y)).collect();
    let line = |(curve, colour): (&Curve, _)| Series { style: Some(figure::solid(colour)), ..Series::new(curve.name, points(curve)) };
    let series = curves.iter().zip(COLOURS).map(line).collect();
    Chart::Lines(Lines { x_label: "steps".into(), y_label: y_label.into(), series, direct: true, ..Lines::default() })
}

fn rewards(curves: &[Curve]) -> Chart {
    lines(curves, "average reward", |curve| curve.outcome.rewards.iter().map(|average| average.mean).collect())
}

fn optimal(curves: &[Curve]) -> Chart {
    lines(curves, "optimal action, %", |curve| curve.outcome.optimal.iter().map(|average| 100.0 * average.mean).collect())
}

fn draw(name: &str, title: &str, charts: Vec<Chart>) -> Result<(), Error> {
    let panels = charts.into_iter().map(|chart| Panel { title: String::new(), chart }).collect();
    let figure = Figure { title: title.into(), note: NOTE.into(), columns: 1, panels };
    for extension in ["svg", "png"] {
        figure::write(&figure, &Path::new(OUT).join(format!("{name}.{extension}")))?;
    }
    println!("  {OUT}/{name}.svg and .png");
    Ok(())
}

fn save(name: &str, csv: &str) -> Result<(), Error> {
    let path = Path::new(OUT).join(name);
    fs::write(&path, csv).map_err(|source| Error::Io { action: "write", path, source })
}

/// Returns a table of the best arm's true value in each problem of figures 2.2 to 2.4 and 2.6.
fn problems() -> String {
    let Experiment { problems, arms, mean, seed, .. } = Experiment::default();
    let testbed = Testbed::new(0..problems, arms, mean, seed);
    let best = |problem| testbed.values(problem).iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let row = |problem| format!("{problem},{:.4}\n", best(problem));
    std::iter::once("problem,best_value\n".to_owned()).chain((0..problems).map(row)).collect()
}

/// Draws figure 2.1: the reward distributions of the arms of one problem.
fn reward_distributions() -> Result<(), Error> {
    let testbed = Testbed::new(0..1, 10, 0.0, 0);
    let violins = testbed.values(0).iter().zip(1..).map(|(value, arm): (_, u32)| Violin::normal(arm.to_string(), *value, 1.0, 3.0));
    let chart = Violins {
        x_label: "action".into(),
        y_label: "reward".into(),
        violins: violins.collect(),
        reference: Some(0.0),
        ..Violins::default()
    };
    let figure = Figure {
        title: "Figure 2.1: the reward distributions of one problem, with their means q*(a)".into(),
        ..Figure::of(Chart::Violins(chart))
    };
    for extension in ["svg", "png"] {
        figure::write(&figure, &Path::new(OUT).join(format!("figure-2.1.{extension}")))?;
    }
    println!("  {OUT}/figure-2.1.svg and .png");
    Ok(())
}

/// Draws figure 2.6: the mean reward of each rule over 1000 steps, for several values of the rule's parameter. Writes `parameters.csv`.
fn parameter_study() -> Result<(), Error> {
    type Family = (&'static str, &'static str, std::ops::RangeInclusive<i32>, fn(f64) -> Rule);
    let families: [Family; 4] = [
        ("ε-greedy", "epsilon", -7..=-2, |epsilon| epsilon_greedy(epsilon, 0.0, StepSize::SampleAverage)),
        ("gradient bandit", "alpha", -5..=2, |alpha| Rule::Gradient { alpha, baseline: Baseline::MeanReward }),
        ("UCB", "c", -4..=2, |c| Rule::Ucb { c }),
        ("greedy, optimistic, α = 0.1", "Q1", -2..=2, |initial| epsilon_greedy(0.0, initial, StepSize::Constant(0.1))),
    ];
    let mut csv = String::from("rule,parameter,value,mean_reward,standard_error\n");
    let mut series = Vec::new();
    for (name, parameter, powers, rule) in families {
        let mut line = Series::new(name, Vec::new());
        for power in powers {
            let value = 2_f64.powi(power);
            let Average { mean, error } = try_rule(rule(value), &Experiment::default()).overall;
            line.points.push((value, mean));
            line.band.push((value, mean - 1.96 * error, mean + 1.96 * error));
            writeln!(csv, "\"{name}\",{parameter},{value},{mean:.5},{error:.5}").expect("writing to a string cannot fail");
        }
        let best = line.points.iter().copied().fold((0.0, f64::NEG_INFINITY), |best, point| if point.1 > best.1 { point } else { best });
        println!("  {name}: the best {parameter} is {}, with mean reward {:.3}", best.0, best.1);
        series.push(line);
    }
    save("parameters.csv", &csv)?;
    let chart = Lines {
        x_label: "ε, α, c or Q1".into(),
        y_label: "average reward over the first 1000 steps".into(),
        x_scale: Scale::Log2,
        series,
        ..Lines::default()
    };
    draw("figure-2.6", "Figure 2.6: a parameter study, with 95 % intervals", vec![Chart::Lines(chart)])
}

fn main() -> Result<(), Error> {
    let began = Instant::now();
    fs::create_dir_all(OUT).map_err(|source| Error::Io { action: "create", path: OUT.into(), source })?;
    let (averages, constant) = (StepSize::SampleAverage, StepSize::Constant(0.1));
    let gradient = |alpha, baseline| Rule::Gradient { alpha, baseline };

    reward_distributions()?;
    let figures = [
        (
            "2.2",
            "ε-greedy action-value methods",
            vec![
                curve("ε = 0 (greedy)", epsilon_greedy(0.0, 0.0, averages), 0.0),
                curve("ε = 0.01", epsilon_greedy(0.01, 0.0, averages), 0.0),
                curve("ε = 0.1", epsilon_greedy(0.1, 0.0, averages), 0.0),
            ],
        ),
        (
            "2.3",
            "optimistic initial values, α = 0.1",
            vec![
                curve("Q1 = 5, ε = 0", epsilon_greedy(0.0, 5.0, constant), 0.0),
                curve("Q1 = 0, ε = 0.1", epsilon_greedy(0.1, 0.0, constant), 0.0),
            ],
        ),
        (
            "2.4",
            "upper-confidence-bound action selection",
            vec![curve("UCB, c = 2", Rule::Ucb { c: 2.0 }, 0.0), curve("ε = 0.1", epsilon_greedy(0.1, 0.0, averages), 0.0)],
        ),
        (
            "2.5",
            "gradient bandit, true values around 4",
            vec![
                curve("α = 0.1", gradient(0.1, Baseline::MeanReward), 4.0),
                curve("α = 0.4", gradient(0.4, Baseline::MeanReward), 4.0),
                curve("α = 0.1, no baseline", gradient(0.1, Baseline::None), 4.0),
                curve("α = 0.4, no baseline", gradient(0.4, Baseline::None), 4.0),
            ],
        ),
    ];
    let mut csv = String::from("figure,rule,step,mean_reward,standard_error,optimal_share\n");
    for (number, title, curves) in figures {
        let charts = match number {
            "2.2" => vec![rewards(&curves), optimal(&curves)],
            "2.4" => vec![rewards(&curves)],
            _ => vec![optimal(&curves)],
        };
        draw(&format!("figure-{number}"), &format!("Figure {number}: {title}"), charts)?;
        for Curve { name, outcome } in &curves {
            for (step, (reward, optimal)) in outcome.rewards.iter().zip(&outcome.optimal).enumerate() {
                let Average { mean, error } = reward;
                writeln!(csv, "{number},\"{name}\",{},{mean:.4},{error:.4},{:.4}", step + 1, optimal.mean)
                    .expect("writing to a string cannot fail");
            }
            let late = |curve: &[Average]| curve[900..].iter().map(|average| average.mean).sum::<f64>() / 100.0;
            let (reward, share) = (late(&outcome.rewards), 100.0 * late(&outcome.optimal));
            println!("  {name}, last 100 steps: mean reward {reward:.2}, optimal action {share:.0} %");
        }
    }
    save("curves.csv", &csv)?;
    save("problems.csv", &problems())?;
    parameter_study()?;
    println!("wrote six figures in {:.1} s", began.elapsed().as_secs_f64());
    Ok(())
}
