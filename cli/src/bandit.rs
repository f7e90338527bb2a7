//! `gradus bandit`: compares bandit rules on many problems.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use gradus::Error;
use gradus::agents::bandit::{Baseline, LinearRule, Rule, StepSize, bernoulli_kl, lai_robbins};
use gradus::envs::bandits::{Payout, Testbed};
use gradus::envs::names;
use gradus::figure::{self, Chart, Figure, Format, Lines, Panel, Series, dashed, solid};
use gradus::files::{expect_own, replace};
use gradus::nets::math::ln;
use gradus::textbook::contextual;
use gradus::textbook::testbed::{Average, Experiment, Problems, try_rule, try_rule_on};
use gradus_compare::statistics::student;

use crate::arguments::number_within;
use crate::output::{say, warn};
use crate::signals::Signals;

#[derive(Args)]
pub(crate) struct Bandit {
    /// Rules, such as epsilon-greedy=0.1, optimistic=5, ucb=2, gradient=0.1, thompson, kl-ucb, exp3=0.1 or constant-step=0.1
    /// (the step size of epsilon-greedy, whose epsilon is then 0.1); with --problems contextual, epsilon-greedy=0.1, lin-ucb=1 or lin-thompson=1 [default: one
    /// of each that suits the problems]
    rules: Vec<String>,
    /// Kind of the problems.
    #[arg(long, value_enum, default_value_t = Kind::Gaussian)]
    problems: Kind,
    /// Number of problems.
    #[arg(long, default_value = "500", allow_hyphen_values = true)]
    count: String,
    /// Pulls per problem.
    #[arg(long, default_value = "1000", allow_hyphen_values = true)]
    steps: String,
    /// Number of arms [default: 10; contextual: 5]
    #[arg(long, allow_hyphen_values = true)]
    arms: Option<String>,
    /// Values of the arms in all problems, such as 0.9,0.8,0.8; the regret is then compared with the bound of Lai and Robbins.
    #[arg(long, value_name = "LIST", value_delimiter = ',', allow_hyphen_values = true, conflicts_with = "arms")]
    values: Vec<String>,
    /// Random seed.
    #[arg(long, default_value = "1", allow_hyphen_values = true)]
    seed: String,
    /// Folder for curves.csv, summary.csv and the figure.
    #[arg(long, value_name = "DIR", default_value = "runs/bandit")]
    out: PathBuf,
}

/// A kind of problem.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Normal rewards with variance 1, and normal values: Sutton and Barto's testbed.
    Gaussian,
    /// Rewards of 0 or 1.
    Bernoulli,
    /// Normal rewards, and values that begin at 0 and drift by a standard deviation of 0.01: exercise 2.5.
    Drifting,
    /// Values that are linear functions of four observed numbers.
    Contextual,
}

impl Kind {
    fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// Pulls of a contextual experiment, at most: half a gigabyte.
const MOST_CONTEXTS: usize = 20_000_000;

/// The means of a rule over all problems.
struct Row {
    rule: String,
    rewards: Vec<Average>,
    optimal: Vec<Average>,
    regret: Vec<Average>,
}

/// A rule's name on the command line, whether it has a number, its range, and an example.
const RULES: [(&str, &str); 8] = [
    ("epsilon-greedy", "0.1"),
    ("constant-step", "0.1"),
    ("optimistic", "5"),
    ("ucb", "2"),
    ("gradient", "0.1"),
    ("thompson", ""),
    ("kl-ucb", ""),
    ("exp3", "0.1"),
];
const LINEAR: [(&str, &str); 3] = [("epsilon-greedy", "0.1"), ("lin-ucb", "1"), ("lin-thompson", "1")];

/// Splits `NAME=NUMBER`. Without a number, it is that of `known`.
fn parse(text: &str, known: &[(&'static str, &str)]) -> Result<(&'static str, f64), Error> {
    let (name, number) = text.split_once('=').map_or((text, None), |(name, number)| (name, Some(number)));
    let Some((name, usual)) = known.iter().find(|(known, _)| *known == name) else {
        let known: Vec<&str> = known.iter().map(|(known, _)| *known).collect();
        return Err(Error::Unknown { what: "bandit rule", name: name.into(), hint: names::hint(name, &known) });
    };
    let wrong =
        |expected: &str, got: &str| Error::Parse { what: format!("bandit rule {name}"), expected: expected.into(), got: got.into() };
    match (usual.is_empty(), number) {
        (true, Some(number)) => Err(wrong("no number", number)),
        (true, None) => Ok((name, 0.0)),
        (false, number) => {
            let text = number.unwrap_or(usual);
            let (least, most) = match *name {
                "epsilon-greedy" | "constant-step" | "exp3" => (0.0, 1.0),
                "optimistic" => (-1e6, 1e6),
                _ => (0.0, 1e6),
            };
            // with a step of 0 a rule would not learn
            let is_step = matches!(*name, "constant-step" | "exp3" | "gradient");
            let expected =
                if is_step { format!("a number above {least}, at most {most}") } else { format!("a number from {least} to {most}") };
            let fits = |x: &f64| (least..=most).contains(x) && !(is_step && *x == 0.0);
            text.parse().ok().filter(fits).map(|x| (*name, x)).ok_or_else(|| wrong(&expected, text))
        }
    }
}

/// Returns the rule for a kind of problems.
fn rule(text: &str, kind: Kind) -> Result<Rule, Error> {
    let (name, x) = parse(text, &RULES)?;
    let is_bernoulli = kind == Kind::Bernoulli;
    Ok(match name {
        "epsilon-greedy" => Rule::EpsilonGreedy { epsilon: x, initial: 0.0, step: StepSize::SampleAverage },
        "constant-step" => Rule::EpsilonGreedy { epsilon: 0.1, initial: 0.0, step: StepSize::Constant(x) },
        "optimistic" => Rule::EpsilonGreedy { epsilon: 0.0, initial: x, step: StepSize::Constant(0.1) },
        "ucb" => Rule::Ucb { c: x },
        "gradient" => Rule::Gradient { alpha: x, baseline: Baseline::MeanReward },
        "thompson" if is_bernoulli => Rule::BernoulliThompson,
        "thompson" => Rule::GaussianThompson { prior: 1.0 },
        "kl-ucb" if is_bernoulli => Rule::KlUcb,
        "kl-ucb" => Rule::GaussianKlUcb,
        _ if is_bernoulli => Rule::Exp3 { gamma: x },
        _ => {
            let (what, expected) = ("bandit rule exp3".into(), "--problems bernoulli, because its rewards must be between 0 and 1".into());
            return Err(Error::Parse { what, expected, got: kind.name() });
        }
    })
}

fn linear(text: &str) -> Result<LinearRule, Error> {
    Ok(match parse(text, &LINEAR)? {
        ("epsilon-greedy", epsilon) => LinearRule::EpsilonGreedy { epsilon },
        ("lin-ucb", alpha) => LinearRule::Ucb { alpha },
        (_, v) => LinearRule::Thompson { v },
    })
}

/// Says that a rule begins with values that do not suit those of the arms: then it may never try the others.
fn unsuited(name: &str, rule: Rule, values: &[f64]) -> Option<String> {
    let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let furthest = values.iter().fold(0.0_f64, |furthest, value| furthest.max(value.abs()));
    match rule {
        Rule::GaussianThompson { prior } if furthest > 4.0 * prior => Some(format!(
            "thompson expects values of mean 0 and standard deviation {prior}, and one is {furthest} away from 0: it may try few of the arms"
        )),
        Rule::EpsilonGreedy { epsilon: 0.0, initial, .. } if largest >= initial => {
            Some(format!("{name} begins with {initial}, which is not above the largest value, {largest}: it may try few of the arms"))
        }
        _ => None,
    }
}

/// Returns the mean over problems, and its error.
fn average(numbers: impl Iterator<Item = f64> + Clone) -> Average {
    let n = numbers.clone().count() as f64;
    let mean = numbers.clone().sum::<f64>() / n;
    let variance = numbers.map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0).max(1.0);
    Average { mean, error: (variance / n).sqrt() }
}

pub(crate) fn run(arguments: &Bandit) -> Result<u8, Error> {
    let Bandit { rules, problems: kind, count, steps, arms, values, seed, out } = arguments;
    let is_contextual = *kind == Kind::Contextual;
    let problems = number_within("--count", count, 2, 100_000)? as usize;
    let steps = number_within("--steps", steps, 1, 1_000_000)? as usize;
    if is_contextual && problems * steps > MOST_CONTEXTS {
        let expected = format!("at most {MOST_CONTEXTS} pulls in all with --problems contextual, which keeps each of them");
        return Err(Error::Parse { what: "--count times --steps".into(), expected, got: (problems * steps).to_string() });
    }
    let usual = if is_contextual { "5" } else { "10" };
    let arms = number_within("--arms", arms.as_deref().unwrap_or(usual), 2, 1000)? as usize;
    let values: Vec<f64> = values.iter().map(|text| value(text, *kind)).collect::<Result<_, _>>()?;
    let arms = if values.is_empty() { arms } else { values.len() };
    number_within("number of --values", &arms.to_string(), 2, 1000)?;
    let seed = number_within("--seed", seed, 0, i64::MAX as u64)?;
    let known = if is_contextual { &LINEAR[..] } else { &RULES[..] };
    let suits = |name: &str| match name {
        "exp3" => *kind == Kind::Bernoulli,
        "constant-step" => *kind == Kind::Drifting,
        _ => true,
    };
    let all = known.iter().filter(|(name, _)| suits(name));
    let usual = all.map(|(name, number)| if number.is_empty() { (*name).into() } else { format!("{name}={number}") });
    let rules: Vec<String> = if rules.is_empty() { usual.collect() } else { rules.clone() };
    let experiment = Experiment {
        kind: match kind {
            Kind::Bernoulli => Problems::Bernoulli,
            Kind::Drifting => Problems::Drifting(0.01),
            Kind::Gaussian | Kind::Contextual => Problems::Gaussian,
        },
        problems,
        steps,
        arms,
        seed,
        mean: 0.0,
    };
    // all rules are read before the first one runs
    let makes: Vec<Box<dyn Fn() -> Row>> = rules
        .iter()
        .map(|text| -> Result<Box<dyn Fn() -> Row>, Error> {
            let name = text.clone();
            if is_contextual {
                let (rule, experiment) = (linear(text)?, contextual::Experiment { problems, steps, arms, width: 4, seed });
                return Ok(Box::new(move || contextual_row(&name, &contextual::try_rule(rule, &experiment))));
            }
            let (rule, values) = (rule(text, *kind)?, values.clone());
            unsuited(text, rule, &values).iter().for_each(|text| warn(text));
            let payout = if *kind == Kind::Bernoulli { Payout::Bernoulli } else { Payout::Gaussian };
            Ok(Box::new(move || {
                let outcome = match &values[..] {
                    [] => try_rule(rule, &experiment),
                    values => try_rule_on(rule, &experiment, &|range| Testbed::with_values(range, payout, values, seed)),
                };
                Row { rule: name.clone(), rewards: outcome.rewards, optimal: outcome.optimal, regret: outcome.regret }
            }))
        })
        .collect::<Result<_, _>>()?;
    expect_own(out, (&OUTPUTS, OUTPUTS[0]), "a new folder, or one of `bandit`")?;
    Signals::end_at_once();
    fs::create_dir_all(out).map_err(|source| Error::Io { action: "create", path: out.clone(), source })?;
    let rows: Vec<Row> = makes.iter().map(|make| make()).collect();
    let bound = bound(*kind, &values);
    let kind_name = kind.name();
    say(format!("{problems} {kind_name} problems, {arms} arms, {steps} steps; means with 95 % intervals"));
    say(format!("{:<24}  {:>17}  {:>19}  {:>18}", "rule", "reward at the end", "best arm at the end", "regret"));
    let mut has_agreed = false;
    let mut summary = String::from("rule,reward,reward_error,best_share,best_share_error,regret,regret_error\n");
    for row in &rows {
        let at_end = |all: &[Average]| all.last().copied().unwrap_or_default();
        // over the last tenth of the steps; its error is at most that of a single step
        let late = |all: &[Average]| {
            let last = &all[all.len() - all.len().div_ceil(10)..];
            let mean = |number: fn(&Average) -> f64| last.iter().map(number).sum::<f64>() / last.len() as f64;
            Average { mean: mean(|average| average.mean), error: mean(|average| average.error) }
        };
        let (reward, best, regret) = (late(&row.rewards), late(&row.optimal), at_end(&row.regret));
        let interval =
            |Average { mean, error }: Average, decimals: usize| format!("{mean:.decimals$} ± {:.decimals$}", student(problems) * error);
        has_agreed |= best.error == 0.0;
        let percent = Average { mean: 100.0 * best.mean, error: 100.0 * best.error };
        say(format!("{:<24}  {:>17}  {:>17} %  {:>18}", row.rule, interval(reward, 3), interval(percent, 1), interval(regret, 1)));
        let numbers = [reward, best, regret].map(|Average { mean, error }| format!("{mean},{error}"));
        writeln!(summary, "{},{}", row.rule, numbers.join(",")).expect("a string");
    }
    if steps > 10 {
        say(
            "at the end: over the last tenth of the steps; the intervals are those of one step, and wider than those of the mean over them",
        );
    }
    // where all arms are equally good, every problem agrees
    let are_alike = !values.is_empty() && values.iter().all(|value| *value == values[0]);
    if has_agreed && !are_alike {
        say(format!("where all problems agree (no error at all), up to {:.1} % of others may not", (300.0 / problems as f64).min(100.0)));
    }
    if let Some(constant) = bound {
        let least = constant * f64::from(ln(steps as f32));
        say(format!("regret of a rule that is good on all problems, asymptotically, at least {least:.1} (Lai and Robbins)"));
    }
    write(&rows, &summary, bound, steps, out)?;
    let note = format!("{problems} {kind_name} problems, {arms} arms; bands: 95 % intervals");
    for format in Format::USUAL {
        figure::write(&draw(&rows, &note, bound, (problems, steps)), &out.join(format!("bandit.{}", format.ending())))?;
    }
    say(out.join("bandit.png").display().to_string());
    Ok(0)
}

fn contextual_row(name: &str, outcomes: &[contextual::Outcome]) -> Row {
    let averages = |of: fn(&contextual::Outcome) -> &Vec<f64>| {
        (0..of(&outcomes[0]).len()).map(|step| average(outcomes.iter().map(|outcome| of(outcome)[step]))).collect()
    };
    Row {
        rule: name.into(),
        rewards: averages(|outcome| &outcome.rewards),
        optimal: averages(|outcome| &outcome.optimal),
        regret: averages(|outcome| &outcome.regret),
    }
}

/// Reads the value of an arm.
fn value(text: &str, kind: Kind) -> Result<f64, Error> {
    let range = match kind {
        Kind::Gaussian => -1e6..=1e6,
        Kind::Bernoulli => 0.0..=1.0,
        Kind::Drifting | Kind::Contextual => {
            let (what, expected) = ("--values".into(), "--problems gaussian or bernoulli".into());
            return Err(Error::Parse { what, expected, got: kind.name() });
        }
    };
    let expected = format!("a number from {} to {}", range.start(), range.end());
    let parsed = text.trim().parse().ok().filter(|value| range.contains(value));
    parsed.ok_or_else(|| Error::Parse { what: "--values".into(), expected, got: text.into() })
}

/// Returns the constant of the bound of Lai and Robbins, if the values are given. (For values that are drawn it has no mean: the best two can be arbitrarily close.)
fn bound(kind: Kind, values: &[f64]) -> Option<f64> {
    let kl: fn(f64, f64) -> f64 = match kind {
        Kind::Gaussian => |x, y| 0.5 * (x - y) * (x - y),
        Kind::Bernoulli => bernoulli_kl,
        Kind::Drifting | Kind::Contextual => return None,
    };
    // arms that are all equal have no regret
    (!values.is_empty()).then(|| lai_robbins(values, kl)).filter(|constant| *constant > 0.0)
}

/// The steps that are drawn and written: at most 200.
fn shown(steps: usize) -> impl Iterator<Item = usize> + Clone {
    let every = steps.div_ceil(200);
    (0..steps).filter(move |step| (step + 1) % every == 0 || step + 1 == steps)
}

/// The tables of the folder.
const OUTPUTS: [&str; 3] = ["summary.csv", "curves.csv", "lai-robbins.csv"];

fn write(rows: &[Row], summary: &str, bound: Option<f64>, steps: usize, out: &Path) -> Result<(), Error> {
    let mut curves = String::from("rule,step,reward,reward_error,best_share,best_share_error,regret,regret_error\n");
    for row in rows {
        for step in shown(steps) {
            let numbers = [row.rewards[step], row.optimal[step], row.regret[step]].map(|Average { mean, error }| format!("{mean},{error}"));
            writeln!(curves, "{},{},{}", row.rule, step + 1, numbers.join(",")).expect("a string");
        }
    }
    // the summary first: it shows whose folder this is
    let of_bound = bound.map_or_else(String::new, |constant| format!("constant\n{constant}\n"));
    let texts = [summary.to_owned(), curves, of_bound];
    for (name, text) in OUTPUTS.into_iter().zip(texts).filter(|(_, text)| !text.is_empty()) {
        let path = out.join(name);
        replace(&path, text.as_bytes()).map_err(|source| Error::Io { action: "write", path, source })?;
    }
    Ok(())
}

fn draw(rows: &[Row], note: &str, bound: Option<f64>, (problems, steps): (usize, usize)) -> Figure {
    let z = student(problems);
    // rewards and shares are means over the steps since the last point; their error is at most that of a single step
    let every = steps.div_ceil(200);
    let panel = |y_label: &str, of: fn(&Row) -> &Vec<Average>, scale: f64, bound: Option<f64>| {
        let line = |(colour, row): (usize, &Row)| {
            let at = |step: usize| {
                let last = if y_label == "regret" { &of(row)[step..=step] } else { &of(row)[step + 1 - every.min(step + 1)..=step] };
                let mean = |number: fn(&Average) -> f64| last.iter().map(number).sum::<f64>() / last.len() as f64;
                ((step + 1) as f64, Average { mean: mean(|average| average.mean), error: mean(|average| average.error) })
            };
            let band = |(x, Average { mean, error }): (f64, Average)| (x, scale * (mean - z * error), scale * (mean + z * error));
            Series {
                style: Some(solid(colour)),
                band: shown(steps).map(at).map(band).collect(),
                ..Series::new(row.rule.as_str(), shown(steps).map(at).map(|(x, average)| (x, scale * average.mean)).collect())
            }
        };
        let mut series: Vec<Series> = rows.iter().enumerate().map(line).collect();
        let logarithm = |constant: f64| shown(steps).map(|step| ((step + 1) as f64, constant * f64::from(ln((step + 1) as f32)))).collect();
        series.extend(bound.map(|constant| Series { style: Some(dashed(10, 1)), ..Series::new("Lai and Robbins", logarithm(constant)) }));
        let lines = Lines { x_label: "steps".into(), y_label: y_label.into(), series, direct: true, ..Lines::default() };
        Panel { title: String::new(), chart: Chart::Lines(lines) }
    };
    let panels = vec![
        panel("mean reward", |row| &row.rewards, 1.0, None),
        panel("best arm, %", |row| &row.optimal, 100.0, None),
        panel("regret", |row| &row.regret, 1.0, bound),
    ];
    Figure { title: "Bandit rules".into(), note: note.into(), columns: 1, panels }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_rule_is_what_its_help_says() {
        let of = |text: &str| format!("{:?}", rule(text, Kind::Gaussian).unwrap());
        for (text, expected) in [
            ("constant-step=0.25", Rule::EpsilonGreedy { epsilon: 0.1, initial: 0.0, step: StepSize::Constant(0.25) }),
            ("epsilon-greedy=0.25", Rule::EpsilonGreedy { epsilon: 0.25, initial: 0.0, step: StepSize::SampleAverage }),
            ("optimistic=3", Rule::EpsilonGreedy { epsilon: 0.0, initial: 3.0, step: StepSize::Constant(0.1) }),
        ] {
            assert_eq!(of(text), format!("{expected:?}"));
        }
    }
}
