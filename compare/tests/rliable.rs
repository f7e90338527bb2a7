//! Compares our statistics with rliable's. Point estimates are equal apart from rounding, and the ends of intervals agree within
//! Monte-Carlo error. `scripts/golden/rliable_statistics.py` wrote rliable's numbers.

use gradus_testing::golden;

use std::time::Instant;

use golden::numbers;
use gradus_statistics::{
    Aggregate, Bootstrap, Estimate, Scores, holm, interquartile_mean, mann_whitney, mean, median, optimality_gap, paired,
    probability_of_improvement, profile, sign_flips,
};
use serde_json::Value;

fn scores(value: &Value) -> Scores {
    Scores::new(value.as_array().unwrap().iter().map(numbers).collect()).unwrap()
}

/// Returns whether two numbers are equal apart from rounding, which differs because rliable adds in another order.
fn same(ours: f64, theirs: f64) -> bool {
    (ours - theirs).abs() < 1e-12
}

/// Checks that two estimates agree. An end of an interval varies by about 0.3 % of the interval's width with 50 000 resamples, and by 0.5 %
/// with 20 000. If scores repeat, the statistic's values are `jump` apart, and an end may differ by one `jump`.
fn agree(ours: Estimate, theirs: &[f64], what: &str, jump: f64) {
    let &[point, low, high] = theirs else { panic!("{what}: expected three numbers") };
    let near = 0.02 * (high - low) + jump;
    assert!(same(ours.point, point), "{what}: expected {theirs:?}, got {ours:?}");
    assert!((ours.low - low).abs() <= near && (ours.high - high).abs() <= near, "{what}: expected {theirs:?}, got {ours:?}");
}

fn aggregates(scores: &Scores) -> [f64; 4] {
    [interquartile_mean(scores), median(scores), mean(scores), optimality_gap(scores, 1.0)]
}

#[test]
fn point_estimates_match_rliable() {
    for case in golden::cases("rliable.json") {
        let (name, x, y) = (&case["name"], scores(&case["x"]), scores(&case["y"]));
        for (ours, key) in aggregates(&x).into_iter().zip(["iqm", "median", "mean", "optimality_gap"]) {
            let theirs = numbers(&case["aggregates"][key])[0];
            assert!(same(ours, theirs), "{name} {key}: expected {theirs}, got {ours}");
        }
        let (ours, theirs) = (probability_of_improvement(&x, &y), numbers(&case["improvement"])[0]);
        assert!(same(ours, theirs), "{name}: improvement: expected {theirs}, got {ours}");
        let theirs: Vec<f64> = case["profile"].as_array().unwrap().iter().map(|point| numbers(point)[0]).collect();
        let ours = profile(&x, &numbers(&case["taus"]));
        assert!(ours.iter().zip(&theirs).all(|(ours, theirs)| same(*ours, *theirs)), "{name}: profile: expected {theirs:?}, got {ours:?}");
    }
}

#[test]
fn intervals_match_rliable() {
    let bootstrap = Bootstrap::default();
    for case in golden::cases("rliable.json") {
        let (name, x, y) = (case["name"].as_str().unwrap(), scores(&case["x"]), scores(&case["y"]));
        // scores have one decimal, so neighbouring values of a mean of at least 8 scores differ by at most 0.1 / 8
        let jump = if ["ties", "the_same"].contains(&name) { 0.1 / 8.0 } else { 0.0 };
        for (ours, key) in bootstrap.intervals(&x, aggregates).into_iter().zip(["iqm", "median", "mean", "optimality_gap"]) {
            agree(ours, &numbers(&case["aggregates"][key]), &format!("{name} {key}"), jump);
        }
        // the number of won pairs is a multiple of one half
        let pairs = (x.runs() * y.runs() * x.tasks().len()) as f64;
        agree(bootstrap.improvement(&x, &y), &numbers(&case["improvement"]), &format!("{name} improvement"), 0.5 / pairs);
    }
}

#[test]
fn bands_match_rliable() {
    let bootstrap = Bootstrap::default();
    for case in golden::cases("rliable.json") {
        let name = case["name"].as_str().unwrap();
        if let Some(curve) = case.get("curve") {
            let points: Vec<Scores> = curve.as_array().unwrap().iter().map(scores).collect();
            let theirs = case["curve_iqm"].as_array().unwrap();
            assert_eq!(theirs.len(), points.len());
            let curve = bootstrap.aggregates(&points.iter().collect::<Vec<_>>(), &[Aggregate::InterquartileMean]);
            for (number, (ours, theirs)) in curve.into_iter().flatten().zip(theirs).enumerate() {
                agree(ours, &numbers(theirs), &format!("{name} evaluation {number}"), 0.0);
            }
        }
        if name == "ten_by_ten" {
            let x = scores(&case["x"]);
            let ours = bootstrap.profile(&x, &numbers(&case["taus"]));
            for (number, (ours, theirs)) in ours.into_iter().zip(case["profile"].as_array().unwrap()).enumerate() {
                agree(ours, &numbers(theirs), &format!("{name} tau {number}"), 0.01);
            }
        }
    }
}

/// The goal is one second for 50 000 resamples of 10 runs x 10 tasks. An idle machine takes a fraction of a second (see `cargo bench`).
#[test]
fn fifty_thousand_resamples_are_fast() {
    let x = scores(&golden::cases("rliable.json")[0]["x"]);
    let began = Instant::now();
    Bootstrap::default().intervals(&x, aggregates);
    let seconds = began.elapsed().as_secs_f64();
    assert!(seconds < 5.0, "{seconds} s");
    println!("50 000 resamples of four aggregates: {seconds:.3} s");
}

/// `scripts/golden/scipy_pairs.py` computed the expected numbers with scipy and statsmodels.
#[test]
fn tests_of_pairs_match_scipy() {
    let (mut ranked, mut flipped) = (0, 0);
    for case in golden::cases("pairs.json").iter().filter(|case| case.get("x").is_some()) {
        let (name, x, y) = (case["name"].as_str().unwrap(), scores(&case["x"]), scores(&case["y"]));
        if let Some(theirs) = case.get("mann_whitney").and_then(Value::as_f64) {
            // above 60 runs, our p-value and scipy's are normal approximations
            let (ours, near) = (mann_whitney(&x, &y), if x.runs() + y.runs() > 60 { 1e-6 } else { 1e-12 });
            assert!((ours - theirs).abs() < near, "{name}: expected {theirs}, got {ours}");
            ranked += 1;
        }
        if let Some(theirs) = case.get("sign_flips").and_then(Value::as_f64) {
            let ours = sign_flips(&paired(&x, &y));
            assert!(same(ours, theirs), "{name}: sign flips: expected {theirs}, got {ours}");
            // means of few differences, or of differences with one decimal, take few values
            let jump = [("five_and_five", 0.05), ("ties", 0.1 / 7.0)].iter().find(|(few, _)| *few == name).map_or(0.0, |(_, jump)| *jump);
            agree(Bootstrap::default().paired_difference(&x, &y), &numbers(&case["paired"]), name, jump);
            flipped += 1;
        }
    }
    assert_eq!((ranked, flipped), (9, 3));
    let all = golden::cases("pairs.json");
    let holms = all.iter().find(|case| case["name"] == "holm").unwrap();
    assert!(holm(&numbers(&holms["p"])).iter().zip(numbers(&holms["holm"])).all(|(ours, theirs)| same(*ours, theirs)));
}

#[test]
fn intervals_over_tasks_match_rliable() {
    let all = golden::cases("pairs.json");
    let case = all.iter().find(|case| case["name"] == "tasks_resampled").unwrap();
    let bootstrap = Bootstrap { tasks: true, ..Bootstrap::default() };
    let ours = bootstrap.intervals(&scores(&case["x"]), |scores| [interquartile_mean(scores), median(scores), mean(scores)]);
    for (ours, theirs) in ours.into_iter().zip(case["task_bootstrap"].as_array().unwrap()) {
        agree(ours, &numbers(theirs), "task bootstrap", 0.0);
    }
}
