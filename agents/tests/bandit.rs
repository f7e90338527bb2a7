//! Compares the bandit rules with the textbook's equations and with finite differences.

use gradus_agents::bandit::{
    Baseline, Learner, LinearLearner, LinearRule, Ridge, Rule, StepSize, bernoulli_sample, epsilon_greedy, exp3_probabilities, exp3_step,
    gaussian_kl_ucb, gaussian_sample, gradient_step, greedy, moved_towards, sample, softmax, upper_confidence_bound,
};
use gradus_base::random::{Purpose, Stream};

fn stream() -> Stream {
    Stream::new(17, Purpose::Action, 0)
}

fn counts(draws: usize, arms: usize, mut draw: impl FnMut() -> usize) -> Vec<f64> {
    let mut counts = vec![0.0; arms];
    (0..draws).for_each(|_| counts[draw()] += 1.0);
    counts
}

/// Returns Pearson's chi-squared statistic for counts and the expected probabilities.
fn chi2(counts: &[f64], probabilities: &[f64]) -> f64 {
    let n: f64 = counts.iter().sum();
    counts.iter().zip(probabilities).map(|(count, p)| (count - n * p).powi(2) / (n * p)).sum()
}

/// With 2 degrees of freedom, the chi-squared statistic exceeds 13.8 with probability 0.001.
#[test]
fn ties_are_broken_at_random() {
    let mut stream = stream();
    let of = counts(30_000, 5, || greedy(&[1.0, 2.0, 0.0, 2.0, 2.0], &mut stream));
    assert_eq!((of[0], of[2]), (0.0, 0.0));
    let statistic = chi2(&[of[1], of[3], of[4]], &[1.0 / 3.0; 3]);
    assert!(statistic < 13.8, "counts {of:?}: chi-squared statistic {statistic}");
}

/// Exploration also chooses the greedy arm, so the probability of the greedy arm is 1 - epsilon + epsilon / k.
#[test]
fn epsilon_greedy_explores_every_arm() {
    let mut stream = stream();
    let of = counts(30_000, 3, || epsilon_greedy(&[0.0, 1.0, 0.5], 0.3, &mut stream));
    let statistic = chi2(&of, &[0.1, 0.8, 0.1]);
    assert!(statistic < 13.8, "counts {of:?}: chi-squared statistic {statistic}");
}

#[test]
fn samples_follow_the_probabilities() {
    let mut stream = stream();
    let of = counts(30_000, 3, || sample(&[0.2, 0.5, 0.3], &mut stream));
    assert!(chi2(&of, &[0.2, 0.5, 0.3]) < 13.8, "{of:?}");
    assert!((0..1000).all(|_| sample(&[0.0, 0.4, 0.0], &mut stream) == 1), "an arm of probability 0 is never chosen");
}

/// Computed by hand for t = 8, ln t = 2.07944: the bounds are 0.5 + c 0.72102, 0.9 + c 0.83255 and -0.2 + c 1.44203. The bound of the third
/// arm exceeds that of the second from c = 1.1 / 0.60948 = 1.80482 on.
#[test]
fn the_upper_confidence_bound_follows_equation_2_10() {
    let (values, pulled) = ([0.5, 0.9, -0.2], [4, 3, 1]);
    let choose = |c| upper_confidence_bound(&values, &pulled, 8, c, &mut stream());
    assert_eq!((choose(2.0), choose(1.0), choose(0.0)), (2, 1, 1));
    assert_eq!((choose(1.804), choose(1.8055)), (1, 2));
    let mut stream = stream();
    let of = counts(1000, 3, || upper_confidence_bound(&[9.0, 0.0, 0.0], &[5, 0, 0], 6, 2.0, &mut stream));
    assert!(of[0] == 0.0 && of[1] > 400.0 && of[2] > 400.0, "arms that were never pulled come first: {of:?}");
}

/// Equation 2.6: with a constant step size, Q_{n+1} = (1 - alpha)^n Q_1 + sum_i alpha (1 - alpha)^{n - i} R_i.
#[test]
fn a_constant_step_size_weighs_recent_rewards_more() {
    let (rewards, alpha, initial) = ([2.0, -1.0, 4.0, 0.5], 0.1_f64, 5.0);
    let q = rewards.iter().fold(initial, |q, reward| moved_towards(q, *reward, alpha));
    let weight = |i: usize| alpha * (1.0 - alpha).powi(3 - i as i32);
    let expected = (1.0 - alpha).powi(4) * initial + rewards.iter().enumerate().map(|(i, r)| weight(i) * r).sum::<f64>();
    assert!((q - expected).abs() < 1e-12, "expected {expected}, got {q}");
}

/// The expected update is alpha times the gradient of the expected reward, for any baseline (the box in section 2.8). The test computes
/// the gradient by central differences.
#[test]
fn the_gradient_bandit_follows_the_gradient_of_the_expected_reward() {
    let (preferences, values) = ([0.3, -0.6, 1.1, 0.0], [1.0, 2.5, -0.5, 0.25]);
    let probabilities = |preferences: &[f64]| {
        let highest = preferences.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = preferences.iter().map(|h| (h - highest).exp()).collect();
        weights.iter().map(|w| w / weights.iter().sum::<f64>()).collect::<Vec<_>>()
    };
    let expected_reward = |preferences: &[f64]| probabilities(preferences).iter().zip(values).map(|(p, q)| p * q).sum::<f64>();
    let pi = probabilities(&preferences);
    let mut ours = [0.0; 4];
    softmax(&preferences, &mut ours);
    assert!(ours.iter().zip(&pi).all(|(ours, p)| (ours - p).abs() < 1e-6), "softmax: expected {pi:?}, got {ours:?}");

    for baseline in [0.0, 0.7, -3.0] {
        let mut update = [0.0; 4];
        for action in 0..4 {
            let mut moved = preferences;
            gradient_step(&mut moved, &pi, action, values[action], baseline, 0.1);
            update.iter_mut().zip(moved.iter().zip(&preferences)).for_each(|(sum, (new, old))| *sum += pi[action] * (new - old));
        }
        for arm in 0..4 {
            let nudged = |by: f64| {
                let mut nudged = preferences;
                nudged[arm] += by;
                expected_reward(&nudged)
            };
            let slope = (nudged(1e-5) - nudged(-1e-5)) / 2e-5;
            assert!((update[arm] - 0.1 * slope).abs() < 1e-9, "baseline {baseline}, arm {arm}: {} is not 0.1 x {slope}", update[arm]);
        }
    }
}

#[test]
fn learners_track_estimates_counts_and_baselines() {
    let greedy = |step| Rule::EpsilonGreedy { epsilon: 0.0, initial: 5.0, step };
    let mut means = Learner::new(greedy(StepSize::SampleAverage), 2);
    let mut optimist = Learner::new(greedy(StepSize::Constant(0.1)), 2);
    for (arm, reward) in [(0, 1.0), (1, 3.0), (0, 2.0)] {
        means.learn(arm, reward);
        optimist.learn(arm, reward);
    }
    assert_eq!(means.estimates(), [1.5, 3.0]);
    let expected = [0.9 * (0.9 * 5.0 + 0.1) + 0.2, 0.9 * 5.0 + 0.3];
    assert!(optimist.estimates().iter().zip(expected).all(|(q, e)| (q - e).abs() < 1e-12), "{:?}", optimist.estimates());

    // while both arms have probability 1/2, the preference of the chosen arm changes by alpha (R - b) / 2, and that of the other arm by
    // minus this amount
    let preferences = |baseline| {
        let mut learner = Learner::new(Rule::Gradient { alpha: 0.5, baseline }, 2);
        learner.choose(&mut stream());
        learner.learn(0, 4.0);
        learner.learn(0, 6.0);
        learner.estimates().to_vec()
    };
    assert_eq!(preferences(Baseline::None), [2.5, -2.5]);
    // the baseline of the first reward is that reward itself; the baseline of the second reward is the first reward
    assert_eq!(preferences(Baseline::MeanReward), [0.5, -0.5]);
}

/// Returns the mean and the variance of some draws.
fn moments(mut draw: impl FnMut(&mut Stream) -> f64) -> [f64; 2] {
    let (mut stream, n) = (Stream::new(3, Purpose::Action, 0), 40_000);
    let draws: Vec<f64> = (0..n).map(|_| draw(&mut stream)).collect();
    let mean = draws.iter().sum::<f64>() / f64::from(n);
    [mean, draws.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / f64::from(n - 1)]
}

fn assert_near(found: [f64; 2], expected: [f64; 2], what: &str) {
    // a standard error of the mean is the root of the variance over 200; the variance has one of about a hundredth of itself
    let error = expected[1].sqrt() / 200.0;
    let is_near = (found[0] - expected[0]).abs() < 4.0 * error && (found[1] / expected[1] - 1.0).abs() < 0.04;
    assert!(is_near, "{what}: expected mean and variance {expected:?}, got {found:?}");
}

#[test]
fn posteriors_have_their_moments() {
    // four rewards with the mean 2, and a prior N(0, 1): precision 5, mean 8/5
    assert_near(moments(|stream| gaussian_sample(2.0, 4, 1.0, stream)), [1.6, 0.2], "normal");
    // without rewards, the prior N(0, 3^2)
    assert_near(moments(|stream| gaussian_sample(0.0, 0, 3.0, stream)), [0.0, 9.0], "prior");
    // Beta(a, b): a / (a + b) and a b / ((a + b)^2 (a + b + 1)); two successes and four failures
    assert_near(moments(|stream| bernoulli_sample(2.0, 4.0, stream)), [3.0 / 8.0, 15.0 / (64.0 * 9.0)], "Beta(3, 5)");
    assert_near(moments(|stream| bernoulli_sample(0.0, 0.0, stream)), [0.5, 1.0 / 12.0], "uniform");
    let mut ridge = Ridge::new(2);
    ridge.learn(&[1.0, 0.0], 3.0);
    // A = diag(2, 1), theta = (3/2, 0), x = (1, 2): variance 1/2 + 4, times v^2
    assert_near(moments(|stream| ridge.sample(&[1.0, 2.0], 0.5, stream)), [1.5, 0.25 * 4.5], "linear");
}

/// The chosen arm's weight grows by an estimate that is right on average: p times the growth is gamma R / K, whatever p is.
#[test]
fn exp3_weighs_rewards_by_their_probability() {
    let mut probabilities = [0.0; 2];
    exp3_probabilities(&[3.0_f64.ln(), 0.0], 0.2, &mut probabilities);
    assert!((probabilities[0] - 0.7).abs() < 1e-6 && (probabilities[1] - 0.3).abs() < 1e-6, "{probabilities:?}");
    for p in [0.1, 0.5, 0.9] {
        assert!((p * exp3_step(0.8, p, 0.3, 4) - 0.3 * 0.8 / 4.0).abs() < 1e-15);
    }
}

#[test]
fn a_larger_bonus_makes_linucb_choose_what_it_does_not_know() {
    let chosen = |alpha: f64| {
        let mut learner = LinearLearner::new(LinearRule::Ucb { alpha }, 2, 2);
        learner.learn(&[1.0, 0.0], 0, 1.0);
        learner.choose(&[1.0, 0.0], &mut Stream::new(1, Purpose::Action, 0))
    };
    // 1/2 + alpha sqrt(1/2) against alpha
    assert_eq!([1.0, 1.5, 2.0, 3.0].map(chosen), [0, 0, 1, 1]);
}

#[test]
fn bounds_of_normal_rewards_are_those_of_the_divergence() {
    assert!((gaussian_kl_ucb(1.0, 2, 8) - (1.0 + 8.0_f64.ln().sqrt())).abs() < 1e-6);
}
