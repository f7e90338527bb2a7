//! The bandit experiments match the textbook and an independent NumPy program, and do not depend on the number of threads.
//!
//! The golden file is written by `scripts/golden/numpy_testbed.py`.

use gradus::agents::bandit::{Baseline, Rule, StepSize};
use gradus::nets::threads;
use gradus::textbook::testbed::{Average, Experiment, Outcome, try_rule};
use serde_json::Value;

const EPSILON_GREEDY: fn(f64) -> Rule = |epsilon| Rule::EpsilonGreedy { epsilon, initial: 0.0, step: StepSize::SampleAverage };

/// Returns the mean over the last tenth of the steps. Its error is the mean of the steps' standard errors, which is an upper bound.
fn late(curve: &[Average]) -> Average {
    let last = &curve[curve.len() - curve.len() / 10..];
    let n = last.len() as f64;
    Average { mean: last.iter().map(|a| a.mean).sum::<f64>() / n, error: last.iter().map(|a| a.error).sum::<f64>() / n }
}

/// Fails if two means differ by more than four standard errors of their difference.
fn assert_agree(ours: Average, theirs: &Value, what: &str) {
    let (mean, error) = (theirs[0].as_f64().unwrap(), theirs[1].as_f64().unwrap());
    let bound = 4.0 * ours.error.hypot(error);
    assert!((ours.mean - mean).abs() < bound, "{what}: expected {mean} within {bound}, got {}", ours.mean);
}

/// Reads a rule and the mean of the arms' values from the golden file.
fn read(settings: &Value) -> (Rule, f64) {
    let number = |key: &str| settings[key].as_f64();
    let rule = if let Some(alpha) = number("alpha") {
        let baseline = if settings["baseline"].as_bool().unwrap() { Baseline::MeanReward } else { Baseline::None };
        Rule::Gradient { alpha, baseline }
    } else if let Some(c) = number("c") {
        Rule::Ucb { c }
    } else {
        Rule::EpsilonGreedy {
            epsilon: number("epsilon").unwrap_or(0.0),
            initial: number("initial").unwrap_or(0.0),
            step: number("step").map_or(StepSize::SampleAverage, StepSize::Constant),
        }
    };
    (rule, number("mean").unwrap_or(0.0))
}

#[test]
fn rewards_of_every_rule_match_numpy() {
    let text = std::fs::read_to_string(gradus_testing::golden::path("testbed.json")).unwrap();
    let golden: Vec<Value> = serde_json::from_str(&text).unwrap();
    assert!(golden.len() >= 16);
    for line in golden {
        let (rule, mean) = read(&line["settings"]);
        let Outcome { rewards, optimal, overall, .. } = try_rule(rule, &Experiment { mean, seed: 1, ..Experiment::default() });
        assert_agree(overall, &line["overall"], &format!("{rule:?}, all steps"));
        let error = line["overall"][1].as_f64().unwrap();
        assert!((overall.error / error - 1.0).abs() < 0.1, "{rule:?}: expected a standard error of {error}, got {}", overall.error);
        assert_agree(late(&rewards), &line["late"], &format!("{rule:?}, last tenth"));
        assert_agree(late(&optimal), &line["optimal"], &format!("{rule:?}, best arm"));
    }
}

/// The textbook describes figure 2.2 as follows. The greedy rule gets a reward of about 1 of the possible 1.54 and finds the best arm in a
/// third of the problems. Epsilon 0.1 finds the best arm most often but pulls it at most 91 % of the time. Epsilon 0.01 improves more
/// slowly.
#[test]
fn figure_2_2_matches_the_textbook() {
    let [greedy, slow, fast] = [0.0, 0.01, 0.1].map(|epsilon| try_rule(EPSILON_GREEDY(epsilon), &Experiment::default()));
    let levels = |outcome: &Outcome| (late(&outcome.rewards).mean, late(&outcome.optimal).mean);
    let ((r0, o0), (r1, o1), (r2, o2)) = (levels(&greedy), levels(&slow), levels(&fast));
    assert!((r0 - 1.0).abs() < 0.1 && (o0 - 1.0 / 3.0).abs() < 0.05, "greedy: reward {r0}, best arm {o0}");
    assert!((1.25..1.36).contains(&r1) && (0.55..0.65).contains(&o1), "epsilon 0.01: reward {r1}, best arm {o1}");
    assert!((1.33..1.43).contains(&r2) && (0.78..0.84).contains(&o2), "epsilon 0.1: reward {r2}, best arm {o2}");
    assert!(fast.optimal.iter().all(|share| share.mean < 0.91));
    assert!(slow.overall.mean < fast.overall.mean);
}

/// The exercise of section 2.7: in the first ten steps UCB pulls every arm once, and on the eleventh it pulls the arm with the highest
/// reward so far.
#[test]
fn upper_confidence_bounds_spike_on_step_eleven() {
    let rewards = try_rule(Rule::Ucb { c: 2.0 }, &Experiment { steps: 20, ..Experiment::default() }).rewards;
    let mean = |step: usize| rewards[step - 1].mean;
    assert!((1..=10).all(|step| mean(step).abs() < 0.15), "expected a mean reward of 0, the mean value of the arms");
    let later = (12..=20).map(mean).fold(f64::INFINITY, f64::min);
    assert!(
        mean(11) > 0.9 && (12..=20).all(|step| mean(step) < mean(11)) && later < mean(11) - 0.25,
        "step 11: {}, then {later}",
        mean(11)
    );
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let experiment = Experiment { problems: 230, steps: 40, arms: 4, mean: 1.0, seed: 5, ..Experiment::default() };
    for rule in [EPSILON_GREEDY(0.1), Rule::Ucb { c: 1.0 }, Rule::Gradient { alpha: 0.2, baseline: Baseline::MeanReward }] {
        let [one, two, three] = [1, 2, 3].map(|n| threads::with(n, || try_rule(rule, &experiment)));
        assert!(one == two && two == three, "{rule:?}");
    }
}

/// A seed must always give the same numbers; a change must be in the changelog.
#[test]
fn a_seed_gives_the_same_experiment_on_every_machine() {
    let experiment = Experiment { problems: 60, steps: 50, ..Experiment::default() };
    let bits = [EPSILON_GREEDY(0.1), Rule::Ucb { c: 2.0 }, Rule::Gradient { alpha: 0.4, baseline: Baseline::MeanReward }]
        .map(|rule| try_rule(rule, &experiment).overall.mean.to_bits());
    assert_eq!(bits.map(|bits| format!("{bits:016x}")), ["3fed7ac706d2c16f", "3fe9904e366440ac", "3fe82550e5fb6c19"]);
}
