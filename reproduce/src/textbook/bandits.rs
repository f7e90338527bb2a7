//! Figures 2.2 to 2.6: the ten-armed testbed.

use std::fmt::Write;

use serde::Deserialize;

use super::super::experiment::Experiment;
use super::super::findings::{Claim, Findings, Test, bootstrap, paired};
use super::super::runs::each;
use super::{figure, lines, published};
use gradus::Error;
use gradus::agents::bandit::{Baseline, Rule, StepSize};
use gradus::envs::bandits::Testbed;
use gradus::figure::{Chart, Lines, Panel, Scale, Series, solid};
use gradus::textbook::testbed::{Average, Experiment as Problems, Outcome, try_rule};
use gradus_compare::statistics::Estimate;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    problems: usize,
    steps: usize,
}

fn epsilon_greedy(epsilon: f64, initial: f64, step: StepSize) -> Rule {
    Rule::EpsilonGreedy { epsilon, initial, step }
}

/// The half-width of a normal interval, in standard errors, so that `claims` intervals together have a confidence of 95 %.
fn width(claims: usize) -> f64 {
    // the quantiles of the normal distribution at 1 - 0.025 / claims
    [1.960, 2.241, 2.394, 2.498, 2.576, 2.638, 2.690, 2.734, 2.773, 2.807][claims - 1]
}

/// Figures 2.2 to 2.6.
pub(crate) fn testbed(experiment: &Experiment) -> Result<Findings, Error> {
    let Settings { problems, steps } = experiment.settings()?;
    let problems = |mean: f64| Problems { problems, steps, mean, ..Problems::default() };
    let (averages, constant) = (StepSize::SampleAverage, StepSize::Constant(0.1));
    let gradient = |alpha: f64, baseline| Rule::Gradient { alpha, baseline };
    let rules: [(&str, Rule, f64); 10] = [
        ("ε = 0 (greedy)", epsilon_greedy(0.0, 0.0, averages), 0.0),
        ("ε = 0.01", epsilon_greedy(0.01, 0.0, averages), 0.0),
        ("ε = 0.1", epsilon_greedy(0.1, 0.0, averages), 0.0),
        ("optimistic, Q1 = 5, ε = 0", epsilon_greedy(0.0, 5.0, constant), 0.0),
        ("realistic, Q1 = 0, ε = 0.1", epsilon_greedy(0.1, 0.0, constant), 0.0),
        ("UCB, c = 2", Rule::Ucb { c: 2.0 }, 0.0),
        ("α = 0.1", gradient(0.1, Baseline::MeanReward), 4.0),
        ("α = 0.4", gradient(0.4, Baseline::MeanReward), 4.0),
        ("α = 0.1, no baseline", gradient(0.1, Baseline::None), 4.0),
        ("α = 0.4, no baseline", gradient(0.4, Baseline::None), 4.0),
    ];
    let outcomes: Vec<Outcome> = each(&rules, |(_, rule, mean)| Ok(try_rule(*rule, &problems(*mean))))?;
    // the study of figure 2.6
    type Family = (&'static str, std::ops::RangeInclusive<i32>, fn(f64) -> Rule);
    let families: [Family; 4] = [
        ("ε-greedy", -7..=-2, |epsilon| epsilon_greedy(epsilon, 0.0, StepSize::SampleAverage)),
        ("gradient bandit", -5..=2, |alpha| Rule::Gradient { alpha, baseline: Baseline::MeanReward }),
        ("UCB", -4..=2, |c| Rule::Ucb { c }),
        ("greedy, optimistic", -2..=2, |initial| epsilon_greedy(0.0, initial, StepSize::Constant(0.1))),
    ];
    let points: Vec<(usize, f64)> = families
        .iter()
        .enumerate()
        .flat_map(|(family, (_, powers, _))| powers.clone().map(move |power| (family, 2.0_f64.powi(power))))
        .collect();
    let study: Vec<Outcome> = each(&points, |(family, value)| Ok(try_rule(families[*family].2(*value), &problems(0.0))))?;
    let of_family =
        |family: usize| points.iter().zip(&study).filter(move |((of, _), _)| *of == family).map(|((_, value), outcome)| (*value, outcome));
    // the rewards of a family on every other problem, with the parameter that is best on the problems between them, and their mean on those
    let highest = |family: usize| -> (Vec<f64>, f64) {
        let half = |outcome: &Outcome, first: usize| outcome.of_problems.iter().copied().skip(first).step_by(2).collect::<Vec<f64>>();
        let mean = |numbers: &[f64]| numbers.iter().sum::<f64>() / numbers.len() as f64;
        let chosen = of_family(family).map(|(_, outcome)| (mean(&half(outcome, 0)), outcome)).max_by(|a, b| a.0.total_cmp(&b.0));
        chosen.map(|(mean, outcome)| (half(outcome, 1), mean)).unwrap_or_default()
    };

    let best = {
        let Problems { problems, arms, mean, seed, .. } = problems(0.0);
        let testbed = Testbed::new(0..problems, arms, mean, seed);
        let best: Vec<f64> =
            (0..problems).map(|problem| testbed.values(problem).iter().copied().fold(f64::NEG_INFINITY, f64::max)).collect();
        super::super::findings::mean(bootstrap(10), &best)
    };
    // the mean over the last hundred steps; its error is at most that of a single step
    let late = |averages: &[Average]| {
        let last = &averages[steps - 100..];
        let mean = |number: &dyn Fn(&Average) -> f64| last.iter().map(number).sum::<f64>() / 100.0;
        (mean(&|average| average.mean), mean(&|average| average.error))
    };
    let interval = |(point, error): (f64, f64)| Estimate { point, low: point - width(10) * error, high: point + width(10) * error };
    let percent = |(share, error): (f64, f64)| (100.0 * share, 100.0 * error);
    let minus = |a: &Outcome, b: &Outcome| paired(bootstrap(10), &a.of_problems, &b.of_problems);
    let claims = vec![
        Claim::new("the best possible reward is about 1.54", best, Test::Within(1.48, 1.60)),
        Claim::new(
            "ε = 0.1 earns more than the greedy method: difference over all steps",
            minus(&outcomes[2], &outcomes[0]),
            Test::Above(0.0),
        ),
        Claim::new("so does ε = 0.01", minus(&outcomes[1], &outcomes[0]), Test::Above(0.0)),
        Claim::new(
            "the greedy method is often stuck: share of the problems in which it does not select the optimal action, last 100 steps, in percent",
            {
                let (share, error) = late(&outcomes[0].optimal);
                interval(percent((1.0 - share, error)))
            },
            Test::Above(50.0),
        ),
        Claim::new(
            "the greedy method levels off at a reward of about 1: last 100 steps",
            interval(late(&outcomes[0].rewards)),
            Test::Within(0.9, 1.15),
        ),
        Claim::new(
            "it finds the optimal action in only about a third of the problems, in percent",
            interval(percent(late(&outcomes[0].optimal))),
            Test::Within(28.0, 40.0),
        ),
        Claim::new(
            "ε = 0.1 never selects it more than 91 % of the time: last 100 steps, in percent",
            interval(percent(late(&outcomes[2].optimal))),
            Test::Below(91.0),
        ),
        Claim::new(
            "UCB earns more than ε-greedy with ε = 0.1: difference over all steps",
            minus(&outcomes[5], &outcomes[2]),
            Test::Above(0.0),
        ),
        Claim::new(
            "without a baseline the gradient bandit is worse: reward with α = 0.4 minus that without a baseline",
            minus(&outcomes[7], &outcomes[9]),
            Test::Above(0.0),
        ),
        Claim::new(
            "UCB is the best in the study of figure 2.6: its reward minus that of the next best, with parameters chosen on the other half of the problems",
            {
                let (next, _) = [0, 1, 3].map(highest).into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or_default();
                paired(bootstrap(10), &highest(2).0, &next)
            },
            Test::Above(0.0),
        ),
    ];
    let curve = |place: usize, colour: usize, of: &dyn Fn(&Outcome) -> Vec<f64>| {
        let points = of(&outcomes[place]).into_iter().enumerate().map(|(step, y)| ((step + 1) as f64, y)).collect();
        Series { style: Some(solid(colour)), ..Series::new(rules[place].0, points) }
    };
    let rewards = |outcome: &Outcome| outcome.rewards.iter().map(|average| average.mean).collect::<Vec<f64>>();
    let optimal = |outcome: &Outcome| outcome.optimal.iter().map(|average| 100.0 * average.mean).collect::<Vec<f64>>();
    let panel = |title: &str, y_label: &str, places: &[usize], of: &dyn Fn(&Outcome) -> Vec<f64>| {
        lines(title, "steps", y_label, places.iter().enumerate().map(|(colour, place)| curve(*place, colour, of)).collect())
    };
    let mut panels = vec![
        panel("2.2: ε-greedy", "average reward", &[0, 1, 2], &rewards),
        panel("2.2: ε-greedy", "optimal action, %", &[0, 1, 2], &optimal),
        panel("2.3: optimistic initial values", "optimal action, %", &[3, 4], &optimal),
        panel("2.4: upper confidence bounds", "average reward", &[5, 2], &rewards),
        panel("2.5: gradient bandit, values around 4", "optimal action, %", &[6, 7, 8, 9], &optimal),
    ];
    for (panel, value, label) in [(0, 1.54, "best possible, published"), (1, 91.0, "most of ε = 0.1, published")] {
        if let Chart::Lines(Lines { series, .. }) = &mut panels[panel].chart {
            series.push(published(label, value, steps as f64));
        }
    }
    let family = |(number, (name, ..)): (usize, &Family)| Series {
        points: of_family(number).map(|(value, outcome)| (value, outcome.overall.mean)).collect(),
        band: of_family(number)
            .map(|(value, Outcome { overall, .. })| (value, overall.mean - 1.96 * overall.error, overall.mean + 1.96 * overall.error))
            .collect(),
        style: Some(solid(number)),
        ..Series::new(*name, Vec::new())
    };
    let chart = Lines {
        x_label: "ε, α, c or Q1".into(),
        y_label: "average reward, first 1000 steps".into(),
        x_scale: Scale::Log2,
        series: families.iter().enumerate().map(family).collect(),
        direct: true,
        ..Lines::default()
    };
    panels.push(Panel { title: "2.6: a parameter study".into(), chart: Chart::Lines(chart) });
    let mut csv = String::from("rule,step,mean_reward,optimal_share\n");
    for ((name, ..), outcome) in rules.iter().zip(&outcomes) {
        for (step, (reward, optimal)) in outcome.rewards.iter().zip(&outcome.optimal).enumerate().filter(|(step, _)| (step + 1) % 10 == 0) {
            writeln!(csv, "\"{name}\",{},{:.4},{:.4}", step + 1, reward.mean, optimal.mean).expect("a string");
        }
    }
    let note = format!("{} problems with ten arms; every rule meets the same problems", problems(0.0).problems);
    // the rules of figures 2.3 to 2.5 have a figure of their own
    let rules = panels.drain(2..5).collect();
    let figures = vec![
        ("figure", figure(&experiment.title, &note, 1, panels)),
        ("rules", figure("Figures 2.3 to 2.5: other rules", &note, 1, rules)),
    ];
    Ok(Findings { claims, figures, tables: vec![("curves.csv", csv)] })
}
