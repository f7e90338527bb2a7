//! Actors: actions follow the distribution, their log-probabilities are exact, and masked actions are never chosen.

use gradus_base::random::{Purpose, Stream};
use gradus_base::tensors::{Data, Tensor};
use gradus_envs::Space;
use gradus_nets::cpu::ActorCritic;
use gradus_nets::{ActionRows, Actor, Behaviour, Choice, NetworkConfig, Policy, Store};

const WIDTH: usize = 3;

fn a_box(width: usize) -> Space {
    Space::Box { low: vec![-1.0; width], high: vec![1.0; width] }
}

/// A network with parameters far from their initial values.
fn network(config: &NetworkConfig, actions: &Space) -> ActorCritic {
    let mut policy = ActorCritic::new(config, &a_box(WIDTH), actions, 0).unwrap();
    let mut tensors = policy.save();
    let stream = &mut Stream::new(5, Purpose::Environment, 0);
    for Tensor { shape, data } in tensors.values_mut() {
        let reach = 1.5 / (*shape.last().unwrap() as f64).sqrt();
        let Data::F32(data) = data else { panic!("parameters are f32") };
        data.iter_mut().for_each(|x| *x = stream.uniform(-reach, reach) as f32);
    }
    policy.load(&tensors).unwrap();
    policy
}

fn config(hidden: &[usize], gsde: bool) -> NetworkConfig {
    NetworkConfig { hidden: hidden.into(), gsde, ..Default::default() }
}

fn observations(rows: usize) -> Vec<f32> {
    let stream = &mut Stream::new(6, Purpose::Environment, 0);
    (0..rows * WIDTH).map(|_| stream.uniform(-2.0, 2.0) as f32).collect()
}

fn streams(rows: usize) -> Vec<Stream> {
    (0..rows as u64).map(|row| Stream::new(9, Purpose::Action, row)).collect()
}

fn rows(actions: &ActionRows) -> &[f32] {
    match actions {
        ActionRows::Continuous { rows, .. } => rows,
        other => panic!("expected rows of numbers, got {} of another kind", other.len()),
    }
}

fn bits(numbers: &[f32]) -> Vec<u32> {
    numbers.iter().map(|x| x.to_bits()).collect()
}

/// Calls the actor once and returns actions and log-probabilities.
fn act(actor: &mut dyn Actor, space: &Space, observations: &[f32], masks: Option<&[bool]>, choice: Choice<'_>) -> (ActionRows, Vec<f32>) {
    let (mut actions, mut log_probs) = (ActionRows::empty(space), vec![f32::NAN; observations.len() / WIDTH]);
    actor.act(observations, masks, choice, &mut actions, &mut log_probs);
    (actions, log_probs)
}

/// The standard normal distribution function: 1/2 + density(x) * (x + x^3/3 + x^5/(3 * 5) + ...).
fn normal_cdf(x: f64) -> f64 {
    let (mut term, mut sum) = (x, 0.0);
    for k in 1..200 {
        sum += term;
        term *= x * x / (2 * k + 1) as f64;
    }
    0.5 + sum * (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt()
}

/// The Kolmogorov-Smirnov statistic of a sample against the standard normal distribution, times the square root of the sample size. It
/// exceeds 1.95 with probability 1/1000.
fn kolmogorov_smirnov(mut sample: Vec<f64>) -> f64 {
    sample.sort_by(f64::total_cmp);
    let n = sample.len() as f64;
    let distance = |(i, x): (usize, &f64)| {
        let cdf = normal_cdf(*x);
        ((i as f64 + 1.0) / n - cdf).max(cdf - i as f64 / n)
    };
    sample.iter().enumerate().map(distance).fold(0.0, f64::max) * n.sqrt()
}

#[test]
fn the_reference_normal_cdf_is_correct() {
    for (x, expected) in [(0.0, 0.5), (1.0, 0.841_344_746), (-1.959_963_985, 0.025), (3.0, 0.998_650_102)] {
        assert!((normal_cdf(x) - expected).abs() < 1e-8, "{x}");
    }
}

/// Many rows have the same observation. Each action dimension is standardised with the policy's mean and standard deviation.
#[test]
fn continuous_actions_follow_the_policys_distribution() {
    const N: usize = 100_000; // enough to detect a standard deviation that is wrong by 3 %
    for gsde in [false, true] {
        let space = a_box(2);
        let mut policy = network(&config(&[8], gsde), &space);
        let observations = observations(1).repeat(N);
        let (actions, _) = act(policy.actor().as_mut(), &space, &observations, None, Choice::Sample(&mut streams(N)));
        let mut distributions = Vec::new();
        policy.distributions(&Store::new(WIDTH, observations, actions.clone()), &mut distributions);
        let standard = |k: usize| -> Vec<f64> {
            let of_row = |(a, d): (&[f32], &[f32])| f64::from(a[k] - d[k]) / f64::from(d[2 + k]).exp();
            rows(&actions).chunks(2).zip(distributions.chunks(4)).map(of_row).collect()
        };
        let (first, second) = (standard(0), standard(1));
        let correlation = first.iter().zip(&second).map(|(a, b)| a * b).sum::<f64>() / (N as f64).sqrt();
        let statistics = [kolmogorov_smirnov(first), kolmogorov_smirnov(second)];
        println!("gsde {gsde}: {statistics:?}, {correlation}");
        assert!(statistics.iter().all(|statistic| *statistic < 1.95), "gsde {gsde}: {statistics:?}");
        assert!(correlation.abs() < 3.3, "gsde {gsde}: dimensions are correlated by {correlation} standard errors");
    }
}

#[test]
fn greedy_takes_the_mean_and_uses_no_random_numbers() {
    for gsde in [false, true] {
        let space = a_box(3);
        let mut policy = network(&config(&[8], gsde), &space);
        let observations = observations(40);
        let (actions, log_probs) = act(policy.actor().as_mut(), &space, &observations, None, Choice::Greedy);
        let (mut distributions, mut recomputed) = (Vec::new(), Vec::new());
        let store = Store::new(WIDTH, observations, actions.clone());
        policy.distributions(&store, &mut distributions);
        let means: Vec<f32> = distributions.chunks(6).flat_map(|row| row[..3].to_vec()).collect();
        assert_eq!(rows(&actions), means, "gsde {gsde}");
        policy.log_probs(&store, &mut recomputed);
        assert_eq!(bits(&log_probs), bits(&recomputed), "gsde {gsde}");
    }
}

/// Every group of rows has its own actor, as when a collector splits the environments between threads.
#[test]
fn the_ratio_of_a_new_continuous_action_is_exactly_1_for_any_grouping_of_rows() {
    for (config, width) in [(config(&[20, 7], false), 3), (config(&[], false), 17), (config(&[18], true), 1), (config(&[], true), 4)] {
        let space = a_box(width);
        let mut policy = network(&config, &space);
        let observations = observations(100);
        let grouped = |group: usize| {
            let (mut actions, mut log_probs, mut streams) = (ActionRows::empty(&space), Vec::new(), streams(100));
            for (observations, streams) in observations.chunks(group * WIDTH).zip(streams.chunks_mut(group)) {
                let mut actor = policy.actor();
                let (chosen, log_prob) = act(actor.as_mut(), &space, observations, None, Choice::Sample(streams));
                actions.extend(&chosen);
                log_probs.extend(log_prob);
            }
            (bits(rows(&actions)), bits(&log_probs), actions)
        };
        let whole = grouped(100);
        for group in [1, 7, 32, 33] {
            assert_eq!(grouped(group), whole, "{config:?}, groups of {group}");
        }
        let mut recomputed = Vec::new();
        policy.log_probs(&Store::new(WIDTH, observations.clone(), whole.2), &mut recomputed);
        assert_eq!(bits(&recomputed), whole.1, "{config:?}");
    }
}

/// Without hidden layers, the features are the observation, so the noise is a linear function of the observation.
#[test]
fn gsde_noise_is_a_linear_function_of_the_features_until_it_is_resampled() {
    let space = a_box(2);
    for every in [0, 3] {
        let policy = network(&NetworkConfig { gsde_sample_every: every, ..config(&[], true) }, &space);
        let (a, b) = (observations(4), observations(8)[4 * WIDTH..].to_vec());
        let sum: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
        let mut actor = policy.actor();
        let mut streams = streams(4);
        let mut noise = |actor: &mut dyn Actor, observations: &[f32]| -> Vec<f32> {
            let (means, _) = act(actor, &space, observations, None, Choice::Greedy);
            let (actions, _) = act(actor, &space, observations, None, Choice::Sample(&mut streams));
            rows(&actions).iter().zip(rows(&means)).map(|(a, mean)| a - mean).collect()
        };
        let [of_a, of_b, of_sum] = [&a, &b, &sum].map(|x| noise(actor.as_mut(), x));
        for ((a, b), sum) in of_a.iter().zip(&of_b).zip(&of_sum) {
            assert!((a + b - sum).abs() < 2e-6 && a.abs() > 1e-3, "noise of a: {a}, of b: {b}, of a + b: {sum}");
        }
        // whether the noise of calls 3 to 6, counted from 0, is still that of call 0
        let later: Vec<bool> = (3..7).map(|_| noise(actor.as_mut(), &a) == of_a).collect();
        assert_eq!(later, [every == 0; 4], "every {every}");
        assert_ne!(noise(policy.actor().as_mut(), &a), of_a, "a new actor samples new noise");
    }
}

#[test]
fn masked_actions_are_never_chosen() {
    let (n, space) = (5, Space::Discrete(5));
    let mut policy = network(&config(&[8], false), &space);
    let observations = observations(500);
    let masks: Vec<bool> = (0..500 * n).map(|i| (i / n + 2 * i) % 5 < 2 || i % n == (i / n) % 4).collect();
    assert!(masks.chunks(n).all(|row| row.contains(&true)) && masks.contains(&false));
    for sampled in [false, true] {
        let mut streams = streams(500);
        let choice = if sampled { Choice::Sample(&mut streams) } else { Choice::Greedy };
        let (actions, log_probs) = act(policy.actor().as_mut(), &space, &observations, Some(&masks), choice);
        let ActionRows::Discrete(chosen) = &actions else { panic!("expected discrete actions") };
        assert!(chosen.iter().enumerate().all(|(row, a)| masks[row * n + *a as usize]), "sampled {sampled}");
        let store = Store::new(WIDTH, observations.clone(), actions.clone()).with_masks(masks.clone());
        let (mut recomputed, mut distributions) = (Vec::new(), Vec::new());
        policy.log_probs(&store, &mut recomputed);
        assert_eq!(bits(&log_probs), bits(&recomputed), "sampled {sampled}");
        policy.distributions(&store, &mut distributions);
        for (row, (distribution, mask)) in distributions.chunks(n).zip(masks.chunks(n)).enumerate() {
            let total: f32 = distribution.iter().map(|l| l.exp()).sum();
            assert!((total - 1.0).abs() < 1e-5, "row {row}: {distribution:?}");
            assert!(distribution.iter().zip(mask).all(|(l, allowed)| *allowed == (*l > f32::NEG_INFINITY)), "row {row}: {distribution:?}");
            let best = distribution.iter().fold(f32::NEG_INFINITY, |best, l| best.max(*l));
            assert!(sampled || log_probs[row] == best, "row {row}");
        }
    }
}

/// Few and many logits take different paths. An action has the same bits for any grouping of rows, and its log-probability is the
/// recomputed one.
#[test]
fn actions_of_several_choices_follow_their_probabilities_and_masks() {
    for sizes in [vec![3, 1, 4], vec![5, 2, 30]] {
        let space = Space::MultiDiscrete(sizes.clone());
        let (n, all) = (space.mask_width(), space.elements().unwrap());
        let mut policy = network(&config(&[8], false), &space);
        let observations = observations(200);
        // the first value of each choice, and about half of the others
        let is_allowed =
            |i: usize| i.is_multiple_of(n) || i % n == sizes[0] as usize || i % n == (sizes[0] + sizes[1]) as usize || (i * 7) % 5 < 2;
        let masks: Vec<bool> = (0..200 * n).map(is_allowed).collect();
        for masks in [None, Some(masks)] {
            let row_of = |row: usize| masks.as_ref().map(|masks| &masks[row * n..(row + 1) * n]);
            let of_group = |group: usize| {
                let (mut actions, mut log_probs, mut streams) = (Vec::new(), Vec::new(), streams(200));
                for (part, streams) in streams.chunks_mut(group).enumerate() {
                    let rows = part * group..part * group + streams.len();
                    let seen = &observations[rows.start * WIDTH..rows.end * WIDTH];
                    let own = masks.as_ref().map(|masks| &masks[rows.start * n..rows.end * n]);
                    let (chosen, log_prob) = act(policy.actor().as_mut(), &space, seen, own, Choice::Sample(streams));
                    let ActionRows::Discrete(chosen) = chosen else { panic!("expected discrete actions") };
                    actions.extend(chosen);
                    log_probs.extend(log_prob);
                }
                (actions, bits(&log_probs))
            };
            let (actions, log_probs) = of_group(200);
            assert!([1, 7, 33].into_iter().all(|group| of_group(group) == (actions.clone(), log_probs.clone())), "{sizes:?}");
            for (row, action) in actions.iter().enumerate() {
                let mut begin = 0;
                for (size, value) in sizes.iter().zip(gradus_envs::choices(&sizes, *action)) {
                    assert!(row_of(row).is_none_or(|mask| mask[begin + value as usize]), "{sizes:?}, row {row}: action {action}");
                    begin += *size as usize;
                }
            }
            let store = Store::new(WIDTH, observations.clone(), ActionRows::Discrete(actions));
            let store = if let Some(masks) = &masks { store.with_masks(masks.clone()) } else { store };
            let mut recomputed = Vec::new();
            policy.log_probs(&store, &mut recomputed);
            assert_eq!(log_probs, bits(&recomputed), "{sizes:?}");
        }
        // frequencies
        const N: usize = 20_000;
        let one = &observations[..WIDTH];
        let every = Store::new(WIDTH, one.repeat(all as usize), ActionRows::Discrete((0..all).collect()));
        let mut log_probs = Vec::new();
        policy.log_probs(&every, &mut log_probs);
        let (actions, _) = act(policy.actor().as_mut(), &space, &one.repeat(N), None, Choice::Sample(&mut streams(N)));
        let ActionRows::Discrete(actions) = actions else { panic!("expected discrete actions") };
        let total: f64 = log_probs.iter().map(|log_prob| f64::from(*log_prob).exp()).sum();
        assert!((total - 1.0).abs() < 1e-5, "{sizes:?}: {total}");
        for (action, log_prob) in log_probs.iter().enumerate() {
            let p = f64::from(*log_prob).exp();
            let count = actions.iter().filter(|chosen| **chosen as usize == action).count() as f64;
            let deviation = (count - N as f64 * p) / (N as f64 * p * (1.0 - p)).sqrt();
            assert!(deviation.abs() < 4.5, "{sizes:?}, action {action}: {count} of {N} at probability {p}");
        }
    }
}

#[test]
fn a_mask_that_allows_all_actions_changes_nothing() {
    let space = Space::Discrete(4);
    let policy = network(&config(&[8], false), &space);
    let observations = observations(50);
    let run = |masks: Option<&[bool]>| {
        let (actions, log_probs) = act(policy.actor().as_mut(), &space, &observations, masks, Choice::Sample(&mut streams(50)));
        (actions, bits(&log_probs))
    };
    assert_eq!(run(None), run(Some(&[true; 200])));
}

/// Checks the panic message of each violation.
#[test]
fn invalid_arguments_panic_with_a_message() {
    let discrete = network(&config(&[8], false), &Space::Discrete(2));
    let continuous = network(&config(&[8], false), &a_box(2));
    let panic = |policy: &ActorCritic, space: &Space, masks: Option<&[bool]>| {
        let attempt = std::panic::AssertUnwindSafe(|| act(policy.actor().as_mut(), space, &[0.0; 2 * WIDTH], masks, Choice::Greedy));
        let panic = std::panic::catch_unwind(attempt).expect_err("a panic");
        panic.downcast_ref::<String>().cloned().or(panic.downcast_ref::<&str>().map(|text| text.to_string())).unwrap_or_default()
    };
    assert_eq!(panic(&discrete, &a_box(2), None), "actions: expected discrete actions, got rows of 2 numbers");
    assert_eq!(panic(&continuous, &a_box(3), None), "actions: expected rows of 2 numbers, got rows of 3 numbers");
    assert_eq!(panic(&continuous, &Space::Discrete(2), None), "actions: expected rows of 2 numbers, got discrete actions");
    let nothing = panic(&discrete, &Space::Discrete(2), Some(&[true, false, false, false]));
    assert_eq!(nothing, "masks: expected at least one action in every row, got none in row 1");
    assert!(panic(&discrete, &Space::Discrete(2), Some(&[true])).contains("masks: expected 2 entries for each of 2 rows"));
    assert!(panic(&continuous, &a_box(2), Some(&[true; 4])).contains("masks: expected none for continuous actions"));
}

#[test]
fn non_orthogonal_weights_are_initialised_like_pytorchs_linear_layers() {
    let config = NetworkConfig { orthogonal: false, log_std_init: -2.0, ..config(&[100, 16], false) };
    let tensors = ActorCritic::new(&config, &a_box(WIDTH), &a_box(2), 1).unwrap().save();
    let inputs = |name: &str| match name.split('.').nth(1) {
        Some("0") => WIDTH,
        Some("2") => 100,
        _ => 16,
    };
    for (name, tensor) in tensors {
        let Data::F32(data) = &tensor.data else { panic!("parameters are f32") };
        if name == "actor.log_std" {
            assert_eq!(data, &[-2.0; 2]);
            continue;
        }
        let reach = 1.0 / (inputs(&name) as f32).sqrt();
        let largest = data.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
        assert!(
            largest <= reach && (data.len() < 100 || largest > 0.95 * reach),
            "{name}: expected numbers up to {reach}, got up to {largest}"
        );
        assert!(data.iter().all(|x| *x != 0.0), "{name}: expected no 0, even in biases");
    }
}

#[test]
fn gathered_rows_of_actions_keep_their_order() {
    let space = a_box(2);
    let (mut all, mut part) = (ActionRows::empty(&space), ActionRows::empty(&space));
    assert!(all.is_empty());
    all.resize(3);
    part.resize(1);
    part.set(0, &ActionRows::Continuous { rows: vec![1.0, 2.0, 3.0, 4.0], width: 2 }, 1);
    all.set(2, &part, 0);
    all.extend(&part);
    assert_eq!((all.len(), rows(&all)), (4, &[0.0, 0.0, 0.0, 0.0, 3.0, 4.0, 3.0, 4.0][..]));
    let (mut all, mut part) = (ActionRows::empty(&Space::Discrete(9)), ActionRows::Discrete(vec![5, 7]));
    all.resize(2);
    all.set(0, &part, 1);
    part.extend(&all);
    assert_eq!(part, ActionRows::Discrete(vec![5, 7, 7, 0]));
}
