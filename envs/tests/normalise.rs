//! Running statistics equal Gymnasium's for any grouping of the rows, and continue from checkpoints.
//!
//! The golden file is written by `scripts/golden/gymnasium_wrappers.py`.

use gradus_testing::golden;

use golden::numbers;
use gradus_base::random::{Purpose, Stream};
use gradus_envs::wrappers::{NormaliseObservation, ReturnStatistics, RunningStatistics};
use gradus_envs::{Actions, Ending, registry};
use serde_json::Value;

fn close(got: &[f64], expected: &[f64], tolerance: f64) -> bool {
    got.len() == expected.len() && got.iter().zip(expected).all(|(got, expected)| (got - expected).abs() <= tolerance * expected.abs())
}

#[test]
fn means_and_variances_match_gymnasium() {
    let golden = golden::read("wrappers.json");
    let mut statistics = RunningStatistics::new(3);
    for batch in golden["statistics"].as_array().unwrap() {
        statistics.update(&numbers(&batch["rows"]).into_iter().map(|x| x as f32).collect::<Vec<_>>());
        assert_eq!(statistics.count(), batch["count"].as_f64().unwrap());
        assert!(close(statistics.mean(), &numbers(&batch["mean"]), 1e-12), "{statistics:?}, {batch}");
        // the mean of the last dimension is 1000 times its deviation, so both computations lose six digits of the variance
        assert!(close(statistics.variance(), &numbers(&batch["variance"]), 1e-9), "{statistics:?}, {batch}");
    }
}

/// The expected values are computed from sums over all rows at once. Gymnasium's prior is 0.0001 observations with mean 0 and variance 1.
#[test]
fn statistics_do_not_depend_on_the_grouping_of_rows() {
    let mut stream = Stream::new(3, Purpose::Environment, 0);
    let rows: Vec<f32> = (0..2 * 100).map(|i| stream.uniform(-1.0, 1.0) as f32 * (1 + i % 2) as f32).collect();
    let mut whole = RunningStatistics::new(2);
    whole.update(&rows);
    for cut in [1, 7, 50, 99] {
        let mut grouped = RunningStatistics::new(2);
        let (left, right) = rows.split_at(2 * cut);
        let mut both = RunningStatistics::of(left, 2);
        both.merge(&RunningStatistics::of(right, 2));
        both.merge(&RunningStatistics::of::<f32>(&[], 2));
        grouped.merge(&both);
        assert!(close(&grouped.save(), &whole.save(), 1e-12), "{grouped:?}, {whole:?}");
    }
    for i in 0..2 {
        let column: Vec<f64> = rows.iter().skip(i).step_by(2).map(|x| f64::from(*x)).collect();
        let n = 100.0 + 1e-4;
        let mean = column.iter().sum::<f64>() / n;
        let variance = (column.iter().map(|x| x * x).sum::<f64>() + 1e-4) / n - mean * mean;
        assert!((whole.mean()[i] - mean).abs() < 1e-12 && (whole.variance()[i] - variance).abs() < 1e-12, "{whole:?}");
    }
}

#[test]
fn without_observations_nothing_changes() {
    let mut statistics = RunningStatistics::new(2);
    statistics.update(&[]);
    assert_eq!(statistics, RunningStatistics::new(2));
    assert_eq!((statistics.mean(), statistics.variance(), statistics.count()), ([0.0; 2].as_slice(), [1.0; 2].as_slice(), 1e-4));
    let mut nothing = RunningStatistics::of::<f32>(&[], 1);
    nothing.merge(&nothing.clone());
    assert_eq!(nothing.save(), [0.0, 0.0, 0.0]);
    nothing.merge(&RunningStatistics::of(&[1.0_f32, 3.0], 1));
    assert_eq!(nothing.save(), [2.0, 2.0, 1.0]);
}

/// Computed by hand: the first dimension is (x - 2) / sqrt(4), clipped at 3. A constant dimension is divided by sqrt(1e-8).
#[test]
fn rows_are_normalised_and_clipped() {
    let statistics = RunningStatistics::load(2, &[10.0, 2.0, 5.0, 4.0, 0.0]).unwrap();
    let mut out = [0.0; 2];
    statistics.normalise(&[5.0, 5.0], &mut out, 3.0);
    assert_eq!(out, [1.5, 0.0]);
    statistics.normalise(&[100.0, 5.0001], &mut out, 3.0);
    assert!(out[0] == 3.0 && (out[1] - 1.0).abs() < 1e-2, "{out:?}");
    let mut rows = [-100.0, 4.0, 0.0, 5.0];
    statistics.normalise_rows(&mut rows, 3.0);
    assert_eq!(rows, [-3.0, -3.0, -1.0, 0.0]);
    // the clip keeps NaN, so that later checks find it
    statistics.normalise(&[f32::NAN, 5.0], &mut out, 3.0);
    assert!(out[0].is_nan());
}

#[test]
fn a_checkpoint_continues_to_the_bit_and_a_bad_one_is_an_error() {
    let mut statistics = RunningStatistics::new(2);
    statistics.update(&[1.0, 2.0, 3.0, 5.0, 8.0, 13.0]);
    let saved = statistics.save();
    let mut later = RunningStatistics::load(2, &saved).unwrap();
    assert_eq!(later, statistics);
    statistics.update(&[0.1, 0.2]);
    later.update(&[0.1, 0.2]);
    assert_eq!(later, statistics);

    let error = |numbers: &[f64]| RunningStatistics::load(2, numbers).unwrap_err().to_string();
    let about = "state of the environment: running statistics: expected";
    assert_eq!(error(&saved[1..]), format!("{about} 5 numbers for rows of 2, got 4"));
    assert_eq!(error(&[1.0, 0.0, f64::NAN, 1.0, 1.0]), format!("{about} finite means, got NaN"));
    assert_eq!(error(&[1.0, 0.0, 0.0, 1.0, -0.5]), format!("{about} a count and variances of at least 0, got -0.5"));
    assert_eq!(error(&[f64::INFINITY, 0.0, 0.0, 1.0, 1.0]), format!("{about} a count and variances of at least 0, got inf"));
}

struct Rollout {
    discount: f64,
    rewards: Vec<Vec<f32>>,
    endings: Vec<Vec<Ending>>,
}

fn rollout(golden: &Value) -> Rollout {
    let flags = |value: &Value| -> Vec<bool> { value.as_array().unwrap().iter().map(|flag| flag.as_bool().unwrap()).collect() };
    let envs = golden["rewards"].as_array().unwrap().len();
    let endings = |env: usize| {
        let flags = flags(&golden["terminated"][env]).into_iter().zip(flags(&golden["truncated"][env]));
        flags.map(|(terminated, truncated)| Ending::new(terminated, truncated)).collect()
    };
    Rollout {
        discount: golden["discount"].as_f64().unwrap(),
        rewards: (0..envs).map(|env| numbers(&golden["rewards"][env]).into_iter().map(|x| x as f32).collect()).collect(),
        endings: (0..envs).map(endings).collect(),
    }
}

/// A tolerance is needed because Gymnasium sums returns in f32.
#[test]
fn the_deviation_of_returns_matches_gymnasium() {
    let golden = &golden::read("wrappers.json")["rewards"];
    let Rollout { discount, rewards, endings } = rollout(golden);
    assert!([Ending::Terminated, Ending::Truncated, Ending::Both].iter().all(|end| endings.iter().flatten().any(|ending| ending == end)));
    let mut known = ReturnStatistics::new(3, discount);
    for env in 0..3 {
        known.update(env, &rewards[env], &endings[env]);
    }
    let expected: Vec<f64> = ["count", "mean", "variance"].map(|key| golden[key].as_f64().unwrap()).to_vec();
    assert!(close(&known.statistics().save(), &expected, 1e-6), "{known:?}, {expected:?}");
    for (env, expected) in numbers(&golden["last_normalised"]).into_iter().enumerate() {
        let got = known.normalise(rewards[env][59], f32::INFINITY);
        assert!((f64::from(got) - expected).abs() < 1e-6, "environment {env}: {got}, {expected}");
    }
}

/// Returns continue across rollouts and checkpoints.
#[test]
fn returns_continue_across_rollouts() {
    let Rollout { discount, rewards, endings } = rollout(&golden::read("wrappers.json")["rewards"]);
    let (mut whole, mut cut) = (ReturnStatistics::new(3, discount), ReturnStatistics::new(3, discount));
    for env in 0..3 {
        whole.update(env, &rewards[env], &endings[env]);
    }
    for steps in [0..23, 23..24, 24..60] {
        for env in 0..3 {
            cut.update(env, &rewards[env][steps.clone()], &endings[env][steps.clone()]);
        }
        let mut later = ReturnStatistics::new(3, discount);
        later.load(&cut.save()).unwrap();
        assert_eq!(later, cut);
        cut = later;
    }
    assert!(close(&cut.save(), &whole.save(), 1e-12), "{cut:?}, {whole:?}");
    assert!(ReturnStatistics::new(2, discount).load(&cut.save()).is_err());
}

#[test]
fn rewards_are_divided_and_clipped_but_not_shifted() {
    let mut known = ReturnStatistics::new(1, 0.99);
    known.load(&[100.0, 7.0, 0.25, 0.0]).unwrap();
    assert!((known.normalise(3.0, 10.0) - 6.0).abs() < 1e-6);
    assert_eq!((known.normalise(0.0, 10.0), known.normalise(30.0, 10.0), known.normalise(-30.0, 10.0)), (0.0, 10.0, -10.0));
}

/// Vectors that step together give the numbers of the wrapper around each environment, in ended episodes too.
#[test]
fn vectors_are_normalised_as_single_environments_are() {
    let mut statistics = RunningStatistics::new(4);
    statistics.update(&[0.1, 1.0, -0.05, -0.7, 0.3, -1.5, 0.1, 0.9, -0.2, 0.2, 0.02, 1.1]);
    let statistics = std::sync::Arc::new(statistics);
    let (plain, of_each) = (registry::find("cartpole").unwrap(), statistics.clone());
    let each = plain.clone().wrapped(move |env| NormaliseObservation::new(env, of_each.clone(), 2.0));
    let [mut together, mut alone] = [plain.normalised(statistics, 2.0), each].map(|world| world.vec_env(3..10, 5).unwrap());
    assert_eq!(together.observation_space(), alone.observation_space());
    let mut ended = 0;
    for t in 0..200 {
        assert_eq!(together.observation_rows(), alone.observation_rows(), "step {t}");
        let actions: Vec<u32> = (0..7).map(|i| u32::from((t * 5 + i * 3) % 7 < 3)).collect();
        let (a, b) =
            (together.step(Actions::Discrete(&actions)).unwrap().clone(), alone.step(Actions::Discrete(&actions)).unwrap().clone());
        ended += a.finished.len();
        assert_eq!(format!("{a:?}"), format!("{b:?}"), "step {t}");
    }
    assert!(ended > 10, "{ended} episodes");
}
