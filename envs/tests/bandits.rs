//! Bandits pay the documented rewards, and reseeding changes their noise but not the observation.

use gradus_envs::bandits::{Bandit, ContextualBandit, Payout, Testbed};
use gradus_envs::{Action, Env, EnvError, registry};

/// Returns mean and variance of some numbers.
fn moments(numbers: &[f64]) -> (f64, f64) {
    let n = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / n;
    (mean, numbers.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0))
}

/// Returns the rewards of one arm in the episodes with seeds 0, 1, ...
fn pulls(env: &mut dyn Env, arm: u32, episodes: u64) -> Vec<f64> {
    let mut observation = vec![0.0; env.observation_space().width()];
    let pull = |seed| {
        env.reset(seed, &mut observation);
        let step = env.step(Action::Discrete(arm), &mut observation);
        assert!(step.terminated && !step.truncated, "an episode is one pull");
        step.reward
    };
    (0..episodes).map(pull).collect()
}

/// For 20 000 Gaussian rewards of variance 1, four standard errors are 0.028 for the mean and 0.04 for the variance.
#[test]
fn arms_pay_their_values() {
    let mut gaussian = Bandit::gaussian(10, 3);
    for arm in [0, 9] {
        let value = gaussian.values()[arm as usize];
        let (mean, variance) = moments(&pulls(&mut gaussian, arm, 20_000));
        assert!((mean - value).abs() < 0.029 && (variance - 1.0).abs() < 0.04, "arm {arm}: value {value}, got {mean} and {variance}");
    }
    let mut bernoulli = Bandit::bernoulli(10, 3);
    for arm in [0, 9] {
        let p = bernoulli.values()[arm as usize];
        let rewards = pulls(&mut bernoulli, arm, 20_000);
        let bound = 4.0 * (p * (1.0 - p) / 20_000.0).sqrt();
        assert!(rewards.iter().all(|r| *r == 0.0 || *r == 1.0) && (moments(&rewards).0 - p).abs() < bound, "arm {arm}: probability {p}");
    }
}

#[test]
fn a_contextual_arms_value_is_linear_in_the_context() {
    let mut env = ContextualBandit::new(3, 2, 5);
    let at = |context: &[f32]| env.values(context);
    let (x, y, sum) = (at(&[1.0, 0.0]), at(&[0.0, 1.0]), at(&[0.5, -1.0]));
    for arm in 0..3 {
        assert!((sum[arm] - (0.5 * x[arm] - y[arm])).abs() < 1e-12, "the value must be linear in the context");
    }
    let mut observation = [0.0; 2];
    let mut noise = Vec::new();
    for seed in 0..20_000 {
        env.reset(seed, &mut observation);
        assert!(observation.iter().all(|x| (-1.0..1.0).contains(x)));
        let value = env.values(&observation)[1];
        noise.push(env.step(Action::Discrete(1), &mut observation).reward - value);
    }
    let (mean, variance) = moments(&noise);
    assert!(mean.abs() < 0.029 && (variance - 1.0).abs() < 0.04, "noise of mean {mean} and variance {variance}");
    let (arm, value) = env.best(&[0.5, -1.0]);
    assert!(sum.iter().all(|other| *other <= value) && sum[arm] == value);
}

/// GRPO needs episodes with the same start and different noise.
#[test]
fn reseeding_changes_the_noise_but_not_the_context() {
    for name in ["bandit", "bernoulli-bandit", "contextual-bandit"] {
        let mut env = registry::find(name).unwrap().env();
        let mut seen = vec![0.0; env.observation_space().width()];
        let mut rewards = Vec::new();
        for rng in 0..20 {
            let mut observation = seen.clone();
            env.reset(11, &mut observation);
            env.reseed(rng);
            assert!(rng == 0 || observation == seen, "{name}: the context depends on the episode seed only");
            seen = observation;
            rewards.push(env.step(Action::Discrete(0), &mut seen).reward);
            env.reset(11, &mut seen);
            env.reseed(rng);
            assert_eq!(env.step(Action::Discrete(0), &mut seen).reward, rewards[rng as usize], "{name}: rng {rng} repeats its reward");
        }
        assert!(rewards.iter().any(|reward| *reward != rewards[0]), "{name}: {rewards:?}");
    }
}

#[test]
fn a_saved_episode_continues_identically() {
    for name in ["bandit", "bernoulli-bandit", "contextual-bandit"] {
        let world = registry::find(name).unwrap();
        let (mut env, mut other) = (world.env(), world.env());
        let mut observation = vec![0.0; env.observation_space().width()];
        for seed in 0..30 {
            env.reset(seed, &mut observation);
            if seed % 2 == 1 {
                env.reseed(seed + 1000);
            }
            let state = env.save();
            other.load(&state).unwrap();
            let mut seen = observation.clone();
            let expected = env.step(Action::Discrete(2), &mut observation);
            assert_eq!(other.step(Action::Discrete(2), &mut seen), expected, "{name}, seed {seed}");
            assert_eq!(seen, observation);
            let error = other.load(&state[1..]).unwrap_err();
            assert!(matches!(&error, EnvError::State(text) if text.contains("expected") && text.contains("got")), "{error}");
        }
    }
}

#[test]
fn the_registered_problems_are_fixed() {
    assert_eq!(Bandit::gaussian(10, 0).values(), Testbed::new(0..1, 10, 0.0, 0).values(0));
    let best = |problem| Bandit::gaussian(10, problem).best();
    assert_eq!(best(0), best(0));
    assert_ne!(best(0).1, best(1).1);
    let own = Bandit::with_values(Payout::Bernoulli, vec![0.25, 0.75, 0.5]);
    assert_eq!(own.best(), (1, 0.75));
}

#[test]
fn problems_do_not_depend_on_how_the_testbed_is_split() {
    let (mut whole, mut part) = (Testbed::new(0..9, 4, 1.5, 2), Testbed::new(5..8, 4, 1.5, 2));
    for n in 0..20 {
        let (mut rewards, mut of_part) = ([0.0; 9], [0.0; 3]);
        whole.pull(&[n % 4; 9], &mut rewards);
        part.pull(&[n % 4; 3], &mut of_part);
        assert_eq!(rewards[5..8], of_part);
        let noise = |problem: usize| rewards[problem] - whole.values(problem)[n as usize % 4];
        assert!((noise(0) - noise(1)).abs() > 1e-9, "problems must differ in their noise");
    }
    assert_eq!((whole.values(6), whole.best(6)), (part.values(1), part.best(1)));
}

/// The tolerances are four standard errors. One standard error is 0.005 for the mean and 0.007 for the variance of 40 000 values. The
/// highest of ten standard normal numbers has the mean 1.53875 (order statistics) and the standard deviation 0.587.
#[test]
fn true_values_have_the_textbooks_distribution() {
    let testbed = Testbed::new(0..4000, 10, 4.0, 1);
    let all: Vec<f64> = (0..4000).flat_map(|problem| testbed.values(problem).to_vec()).collect();
    let (mean, variance) = moments(&all);
    assert!((mean - 4.0).abs() < 0.02 && (variance - 1.0).abs() < 0.029, "{mean}, {variance}");
    let highest: Vec<f64> = (0..4000).map(|problem| testbed.values(problem)[testbed.best(problem)]).collect();
    assert!((moments(&highest).0 - 5.53875).abs() < 4.0 * 0.587 / 4000_f64.sqrt(), "{}", moments(&highest).0);
}

#[test]
fn bernoulli_problems_pay_with_their_probabilities_and_drifting_ones_walk() {
    let mut testbed = Testbed::bernoulli(0..1000, 3, 7);
    let (mut rewards, mut total) = (vec![0.0; 1000], 0.0);
    for _ in 0..20 {
        testbed.pull(&[1; 1000], &mut rewards);
        assert!(rewards.iter().all(|reward| [0.0, 1.0].contains(reward)));
        total += rewards.iter().sum::<f64>();
    }
    let expected = (0..1000).map(|problem| testbed.values(problem)[1]).sum::<f64>() / 1000.0;
    assert!((total / 20_000.0 - expected).abs() < 0.012, "{} {expected}", total / 20_000.0); // a standard error is 0.003
    assert!((expected - 0.5).abs() < 0.04, "{expected}");

    // values begin at 0, and have the variance n std^2 after n pulls
    let mut testbed = Testbed::drifting(0..2000, 2, 0.1, 7);
    assert_eq!(testbed.values(5), [0.0, 0.0]);
    let mut rewards = vec![0.0; 2000];
    (0..50).for_each(|_| testbed.pull(&[0; 2000], &mut rewards));
    let squares: f64 = (0..2000).flat_map(|problem| testbed.values(problem).to_vec()).map(|value| value * value).sum();
    assert!((squares / 4000.0 - 0.5).abs() < 0.05, "{}", squares / 4000.0);
    assert!((0..2000).all(|problem| testbed.best(problem) == usize::from(testbed.values(problem)[1] > testbed.values(problem)[0])));

    let testbed = Testbed::with_values(0..3, Payout::Gaussian, &[0.2, 0.9], 7);
    assert_eq!((testbed.values(2), testbed.best(2), testbed.len()), (&[0.2, 0.9][..], 1, 3));
}
