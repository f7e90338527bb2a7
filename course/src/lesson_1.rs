//! Lesson 1: bandits.

use crate::exercise::{About, Check, Exercise, Mistake, Trial};
use crate::inputs::{normals, rounded, stream, whole};
use crate::lessons::lesson;
use crate::sheet::{Sheet, list};

/// Returns the new estimate of an arm from the old one, the number of rewards with the new one, and the new reward.
pub type SampleAverage = fn(f64, u32, f64) -> f64;
/// Returns the probability of each arm from the estimates and epsilon.
pub type EpsilonGreedy = fn(&[f64], f64) -> Vec<f64>;
/// Returns the arm from the estimates, the number of pulls of each arm, the step t, and c.
pub type Ucb = fn(&[f64], &[u32], u32, f64) -> usize;
/// Returns the probability of each arm from the preferences.
pub type Softmax = fn(&[f64]) -> Vec<f64>;
/// Changes the preferences after a reward: preferences, arm, reward, baseline, step size.
pub type GradientBandit = fn(&mut [f64], usize, f64, f64, f64);
/// Returns the regret after each step from the values of the arms and the arms that were pulled.
pub type Regret = fn(&[f64], &[usize]) -> Vec<f64>;

lesson!("1", "bandits", {
    sample_average: SampleAverage = SAMPLE_AVERAGE,
    epsilon_greedy: EpsilonGreedy = EPSILON_GREEDY,
    upper_confidence_bound: Ucb = UCB,
    softmax: Softmax = SOFTMAX,
    gradient_bandit: GradientBandit = GRADIENT_BANDIT,
    regret: Regret = REGRET,
});

/// Arms of the problems.
const ARMS: usize = 5;

/// Returns the first of the largest numbers.
fn largest(numbers: &[f64]) -> usize {
    (0..numbers.len()).fold(0, |best, arm| if numbers[arm] > numbers[best] { arm } else { best })
}

// 1.1

static SAMPLE_AVERAGE: Exercise<SampleAverage> = Exercise {
    about: About {
        number: "1.1",
        name: "sample_average",
        title: "the mean of the rewards, step by step",
        section: "the-value-of-an-arm",
        hints: &[
            "The new mean is the old mean plus a fraction of the difference between the new reward and the old mean.",
            "The fraction is 1 / n. The first reward has n = 1, so the first estimate is the reward itself, whatever the old estimate was.",
            "q + (reward - q) / n, with n as f64: in Rust, a u32 becomes an f64 with f64::from(n).",
        ],
    },
    right: |q, n, reward| q + (reward - q) / f64::from(n),
    checks: &[
        |Trial { function, .. }, sheet| {
            // rewards 3, 5, 10 and 2, whose means are 3, 4, 6 and 5
            for (q, n, reward, mean) in
                [(0.0, 1, 3.0, 3.0), (3.0, 2, 5.0, 4.0), (4.0, 3, 10.0, 6.0), (6.0, 4, 2.0, 5.0), (9.0, 1, 3.0, 3.0)]
            {
                sheet.row(format!("sample_average(q = {q}, n = {n}, reward = {reward})"), mean, || function(q, n, reward));
            }
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 11);
            let mut q = 0.0;
            for n in 1..=200 {
                let reward = rounded(f64::from(stream.normal()));
                let next = right(q, n, reward);
                sheet.row(format!("pull {n} of an arm: sample_average(q = {q:.4}, n = {n}, reward = {reward})"), next, || {
                    function(q, n, reward)
                });
                q = next;
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "the old mean counts as one reward: it is not multiplied by n - 1",
            section: "the-value-of-an-arm",
            function: |q, n, reward| (q + reward) / f64::from(n),
        },
        Mistake {
            says: "1 / n is computed with whole numbers: it is 0 from the second reward on",
            section: "the-value-of-an-arm",
            function: |q, n, reward| q + f64::from(1 / n) * (reward - q),
        },
        Mistake {
            says: "n is the number of rewards before this one: the fraction is then 1 / (n + 1)",
            section: "the-value-of-an-arm",
            function: |q, n, reward| q + (reward - q) / (f64::from(n) + 1.0),
        },
        Mistake {
            says: "the difference has the wrong sign, so that the estimate moves away from the reward",
            section: "the-value-of-an-arm",
            function: |q, n, reward| q + (q - reward) / f64::from(n),
        },
        Mistake {
            says: "the reward is added without subtracting the old estimate",
            section: "the-value-of-an-arm",
            function: |q, n, reward| q + reward / f64::from(n),
        },
        Mistake {
            says: "the step size is a constant 0.1, which suits arms whose values drift but is no mean",
            section: "arms-that-drift",
            function: |q, _, reward| q + 0.1 * (reward - q),
        },
        Mistake {
            says: "the mean of the old estimate and the reward is taken, as if the old estimate were one reward",
            section: "the-value-of-an-arm",
            function: |q, _, reward| 0.5 * (q + reward),
        },
    ],
};

// 1.2

fn greedy_share(values: &[f64], epsilon: f64) -> Vec<f64> {
    let best = values[largest(values)];
    let ties = values.iter().filter(|value| **value == best).count() as f64;
    let explored = epsilon / values.len() as f64;
    values.iter().map(|value| if *value == best { explored + (1.0 - epsilon) / ties } else { explored }).collect()
}

fn probabilities_of_estimates(function: EpsilonGreedy, right: EpsilonGreedy, values: &[f64], epsilon: f64, sheet: &mut Sheet) {
    let place = format!("epsilon_greedy(values = {}, epsilon = {epsilon})", list(values));
    sheet.row(place, right(values, epsilon), || function(values, epsilon));
}

static EPSILON_GREEDY: Exercise<EpsilonGreedy> = Exercise {
    about: About {
        number: "1.2",
        name: "epsilon_greedy",
        title: "the probability of each arm",
        section: "exploration",
        hints: &[
            "With probability epsilon any of the k arms is pulled, each with the same probability: also the best one.",
            "The best arm has 1 - epsilon + epsilon / k, every other arm has epsilon / k. The sum is 1.",
            "If m arms share the highest value, each of them has (1 - epsilon) / m + epsilon / k.",
        ],
    },
    right: greedy_share,
    checks: &[
        |Trial { function, .. }, sheet| {
            for (values, epsilon, expected) in [
                (&[1.0, 3.0, 2.0, 0.0][..], 0.2, &[0.05, 0.85, 0.05, 0.05][..]),
                (&[-1.0, -2.0], 0.5, &[0.75, 0.25]),
                (&[4.0, 1.0, 2.0], 0.0, &[1.0, 0.0, 0.0]),
                (&[4.0, 1.0, 2.0, 0.0], 1.0, &[0.25, 0.25, 0.25, 0.25]),
                (&[2.0, 5.0, 5.0, 1.0], 0.4, &[0.1, 0.4, 0.4, 0.1]),
            ] {
                let place = format!("epsilon_greedy(values = {}, epsilon = {epsilon})", list(values));
                sheet.row(place, expected, || function(values, epsilon));
            }
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 12);
            for _ in 0..50 {
                let arms = 2 + stream.below(8) as usize;
                let (values, epsilon) = (normals(&mut stream, arms), rounded(stream.unit_f64()));
                probabilities_of_estimates(function, right, &values, epsilon, sheet);
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "exploration leaves out the best arm: epsilon is shared by the other arms only",
            section: "exploration",
            function: |values, epsilon| {
                let best = largest(values);
                let others = epsilon / (values.len() as f64 - 1.0);
                (0..values.len()).map(|arm| if arm == best { 1.0 - epsilon } else { others }).collect()
            },
        },
        Mistake {
            says: "the best arm has 1 - epsilon and every other arm epsilon / k, so that the sum is below 1",
            section: "exploration",
            function: |values, epsilon| {
                let best = largest(values);
                let explored = epsilon / values.len() as f64;
                (0..values.len()).map(|arm| if arm == best { 1.0 - epsilon } else { explored }).collect()
            },
        },
        Mistake {
            says: "of several arms with the highest value only the first is greedy",
            section: "ties",
            function: |values, epsilon| {
                let best = largest(values);
                let explored = epsilon / values.len() as f64;
                (0..values.len()).map(|arm| if arm == best { explored + 1.0 - epsilon } else { explored }).collect()
            },
        },
        Mistake {
            says: "each of several arms with the highest value has the whole 1 - epsilon, so that the sum is above 1",
            section: "ties",
            function: |values, epsilon| {
                let best = values[largest(values)];
                let explored = epsilon / values.len() as f64;
                values.iter().map(|value| if *value == best { explored + 1.0 - epsilon } else { explored }).collect()
            },
        },
        Mistake {
            says: "epsilon and 1 - epsilon are exchanged: epsilon is the probability of exploring",
            section: "exploration",
            function: |values, epsilon| greedy_share(values, 1.0 - epsilon),
        },
    ],
};

// 1.3

fn ucb_with(values: &[f64], counts: &[u32], bonus: impl Fn(f64) -> f64) -> usize {
    let score = |arm: usize| if counts[arm] == 0 { f64::INFINITY } else { values[arm] + bonus(f64::from(counts[arm])) };
    largest(&(0..values.len()).map(score).collect::<Vec<_>>())
}

static UCB: Exercise<Ucb> = Exercise {
    about: About {
        number: "1.3",
        name: "upper_confidence_bound",
        title: "the arm with the highest upper bound",
        section: "optimism",
        hints: &[
            "The bound of an arm is its value plus c times the square root of ln t / N. An arm that was never pulled comes first.",
            "Treat the bound of an arm with N = 0 as infinite. Among equal bounds, return the first arm.",
            "f64::from(t).ln() is the natural logarithm; divide it by f64::from(counts[arm]) before you take .sqrt().",
        ],
    },
    right: |values, counts, t, c| ucb_with(values, counts, |n| c * (f64::from(t).ln() / n).sqrt()),
    checks: &[
        |Trial { function, .. }, sheet| {
            // bounds of the first row: 1 + 2 sqrt(ln 10 / 8) = 2.073, 0.5 + 2 sqrt(ln 10 / 2) = 2.646
            for (values, numbers, t, c, expected) in [
                (&[1.0, 0.5][..], &[8, 2][..], 10, 2.0, 1_usize),
                (&[1.0, 0.5], &[8, 2], 10, 0.1, 0),
                (&[0.2, 0.9, -3.0], &[4, 1, 0], 5, 1.0, 2),
                (&[0.0, 0.0, 0.0], &[0, 0, 0], 0, 1.0, 0),
                (&[0.3, 0.7, 0.7], &[3, 3, 3], 9, 0.0, 1),
                (&[-3.0, -1.0], &[5, 5], 10, 0.1, 1),
                (&[-1.0, 2.0], &[4, 0], 4, 0.0, 1),
            ] {
                let place = format!("upper_confidence_bound(values = {}, counts = {}, t = {t}, c = {c})", list(values), whole(numbers));
                sheet.row(place, expected, || function(values, numbers, t, c));
            }
        },
        |Trial { function, right, seed }, sheet| {
            // a run of the rule on a problem: each call gets the estimates and counts of the right rule
            for problem in 0..4 {
                let mut stream = stream(seed, 130 + problem);
                let means = normals(&mut stream, ARMS);
                let (mut values, mut numbers) = (vec![0.0; ARMS], vec![0; ARMS]);
                let c = rounded(stream.uniform(0.2, 2.0));
                for t in 1..=200 {
                    let arm = right(&values, &numbers, t, c);
                    let place = format!(
                        "problem {}, step {t}: upper_confidence_bound(values = {}, counts = {}, t = {t}, c = {c})",
                        problem + 1,
                        list(&values),
                        whole(&numbers)
                    );
                    sheet.row(place, arm, || function(&values, &numbers, t, c));
                    numbers[arm] += 1;
                    let reward = means[arm] + f64::from(stream.normal());
                    values[arm] += (reward - values[arm]) / f64::from(numbers[arm]);
                }
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "the largest bound begins at 0, so that no bound can be below it",
            section: "optimism",
            function: |values, counts, t, c| {
                let (mut best, mut largest) = (0, 0.0);
                for (arm, n) in counts.iter().enumerate() {
                    let n = f64::from(*n);
                    let bound = if n == 0.0 { f64::INFINITY } else { values[arm] + c * (f64::from(t).ln() / n).sqrt() };
                    if bound > largest {
                        (best, largest) = (arm, bound);
                    }
                }
                best
            },
        },
        Mistake {
            says: "the logarithm is outside of the root: ln t times sqrt(1 / N)",
            section: "optimism",
            function: |values, counts, t, c| ucb_with(values, counts, |n| c * f64::from(t).ln() / n.sqrt()),
        },
        Mistake {
            says: "the root is missing: c ln t / N",
            section: "optimism",
            function: |values, counts, t, c| ucb_with(values, counts, |n| c * f64::from(t).ln() / n),
        },
        Mistake {
            says: "the value of the arm is left out, so that the arm with the fewest pulls is pulled",
            section: "optimism",
            function: |values, counts, t, c| ucb_with(&vec![0.0; values.len()], counts, |n| c * (f64::from(t).ln() / n).sqrt()),
        },
        Mistake {
            says: "an arm that was never pulled has only its value, and is not pulled before the others",
            section: "optimism",
            function: |values, counts, t, c| {
                let bonus = |n: u32| if n == 0 { 0.0 } else { c * (f64::from(t).ln() / f64::from(n)).sqrt() };
                largest(&(0..values.len()).map(|arm| values[arm] + bonus(counts[arm])).collect::<Vec<_>>())
            },
        },
        Mistake {
            says: "the last of several arms with the highest bound is returned, instead of the first",
            section: "optimism",
            function: |values, counts, t, c| {
                let score = |arm: usize| match counts[arm] {
                    0 => f64::INFINITY,
                    n => values[arm] + c * (f64::from(t).ln() / f64::from(n)).sqrt(),
                };
                (0..values.len()).fold(0, |best, arm| if score(arm) >= score(best) { arm } else { best })
            },
        },
        Mistake {
            says: "the logarithm has the base 10",
            section: "optimism",
            function: |values, counts, t, c| ucb_with(values, counts, |n| c * (f64::from(t).log10() / n).sqrt()),
        },
    ],
};

// 1.4

fn stable_softmax(preferences: &[f64]) -> Vec<f64> {
    let highest = preferences[largest(preferences)];
    let weights: Vec<f64> = preferences.iter().map(|preference| (preference - highest).exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / sum).collect()
}

static SOFTMAX: Exercise<Softmax> = Exercise {
    about: About {
        number: "1.4",
        name: "softmax",
        title: "preferences become probabilities",
        section: "preferences",
        hints: &[
            "Each probability is e to the preference, divided by the sum of these numbers over all arms.",
            "e to the 1000 is infinite. A constant that is subtracted from all preferences does not change the result: subtract the largest.",
            "Compute the largest preference h, the weights (p - h).exp(), their sum, and divide.",
        ],
    },
    right: stable_softmax,
    checks: &[
        |Trial { function, .. }, sheet| {
            let (e, e2) = (1f64.exp(), 2f64.exp());
            for (preferences, expected) in [
                (&[0.0, 0.0][..], vec![0.5, 0.5]),
                (&[0.0, 1.0, 2.0], vec![1.0 / (1.0 + e + e2), e / (1.0 + e + e2), e2 / (1.0 + e + e2)]),
                (&[-1.0, 0.0], vec![1.0 / (1.0 + e), e / (1.0 + e)]),
                (&[5.0], vec![1.0]),
                (&[1000.0, 1000.0, 0.0], vec![0.5, 0.5, 0.0]),
                (&[-1000.0, -1001.0], vec![e / (1.0 + e), 1.0 / (1.0 + e)]),
                (&[0.0, 1000.0], vec![0.0, 1.0]),
                (&[0.0, 1000.0, 0.0], vec![0.0, 1.0, 0.0]),
            ] {
                sheet.row(format!("softmax({})", list(preferences)), expected, || function(preferences));
            }
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 14);
            for _ in 0..50 {
                let arms = 2 + stream.below(8) as usize;
                let preferences = normals(&mut stream, arms);
                sheet.row(format!("softmax({})", list(&preferences)), right(&preferences), || function(&preferences));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "the first preference is subtracted and not the largest",
            section: "preferences",
            function: |preferences| {
                let first = preferences.first().copied().unwrap_or(0.0);
                let sum: f64 = preferences.iter().map(|h| (h - first).exp()).sum();
                preferences.iter().map(|h| (h - first).exp() / sum).collect()
            },
        },
        Mistake {
            says: "the largest preference begins at 0: where all are far below it, all exponentials are 0",
            section: "preferences",
            function: |preferences| {
                let largest = preferences.iter().copied().fold(0.0, f64::max);
                let sum: f64 = preferences.iter().map(|h| (h - largest).exp()).sum();
                preferences.iter().map(|h| (h - largest).exp() / sum).collect()
            },
        },
        Mistake {
            says: "e to the preference overflows or vanishes because the largest preference is not subtracted first",
            section: "preferences",
            function: |preferences| {
                let sum: f64 = preferences.iter().map(|preference| preference.exp()).sum();
                preferences.iter().map(|preference| preference.exp() / sum).collect()
            },
        },
        Mistake {
            says: "the preferences themselves are divided by their sum",
            section: "preferences",
            function: |preferences| preferences.iter().map(|preference| preference / preferences.iter().sum::<f64>()).collect(),
        },
        Mistake {
            says: "the weights are not divided by their sum",
            section: "preferences",
            function: |preferences| preferences.iter().map(|preference| (preference - preferences[largest(preferences)]).exp()).collect(),
        },
        Mistake {
            says: "the sign is wrong: the highest preference has the lowest probability",
            section: "preferences",
            function: |preferences| stable_softmax(&preferences.iter().map(|preference| -preference).collect::<Vec<_>>()),
        },
        Mistake {
            says: "the whole probability goes to the highest preference, which is the greedy choice",
            section: "preferences",
            function: |preferences| (0..preferences.len()).map(|arm| f64::from(u8::from(arm == largest(preferences)))).collect(),
        },
    ],
};

// 1.5

fn moved_preferences(preferences: &mut [f64], arm: usize, step: f64) {
    let probabilities = stable_softmax(preferences);
    for (other, preference) in preferences.iter_mut().enumerate() {
        *preference += step * (f64::from(u8::from(other == arm)) - probabilities[other]);
    }
}

/// Returns the preferences after a change, or those before it with one left out if the function changes their number, which it cannot.
fn after(function: GradientBandit, preferences: &[f64], arm: usize, reward: f64, baseline: f64, alpha: f64) -> Vec<f64> {
    let mut changed = preferences.to_vec();
    function(&mut changed, arm, reward, baseline, alpha);
    changed
}

/// The mean change over the arms, with their probabilities, is the gradient of the expected reward times alpha. The gradient is computed
/// from differences.
fn mean_change_is_the_gradient(Trial { function, seed, .. }: Trial<GradientBandit>, sheet: &mut Sheet) {
    let mut stream = stream(seed, 151);
    for _ in 0..10 {
        let (means, preferences) = (normals(&mut stream, ARMS), normals(&mut stream, ARMS));
        let baseline = rounded(f64::from(stream.normal()));
        let expected_reward =
            |preferences: &[f64]| -> f64 { stable_softmax(preferences).iter().zip(&means).map(|(p, mean)| p * mean).sum() };
        let alpha = 0.1;
        let slope = |arm: usize| {
            let at = |by: f64| {
                let mut moved = preferences.clone();
                moved[arm] += by;
                expected_reward(&moved)
            };
            alpha * (at(1e-5) - at(-1e-5)) / 2e-5
        };
        let gradient: Vec<f64> = (0..ARMS).map(slope).collect();
        let place = format!(
            "the mean of the change of all preferences, over the arms of values {} with the probabilities softmax({}), baseline {baseline}",
            list(&means),
            list(&preferences)
        );
        sheet.row(place, gradient, || {
            let probabilities = stable_softmax(&preferences);
            let mut mean = vec![0.0; ARMS];
            for arm in 0..ARMS {
                let changed = after(function, &preferences, arm, means[arm], baseline, alpha);
                (0..ARMS).for_each(|other| mean[other] += probabilities[arm] * (changed[other] - preferences[other]));
            }
            mean
        });
    }
}

static GRADIENT_BANDIT: Exercise<GradientBandit> = Exercise {
    about: About {
        number: "1.5",
        name: "gradient_bandit",
        title: "a step up the expected reward",
        section: "gradient-bandits",
        hints: &[
            "Every preference changes, not only that of the arm that was pulled.",
            "The preference of the arm that was pulled changes by alpha (reward - baseline) (1 - its probability), that of every other arm by \
             alpha (reward - baseline) (0 - its probability).",
            "Compute the probabilities from the old preferences before you change any of them.",
        ],
    },
    right: |preferences, arm, reward, baseline, alpha| moved_preferences(preferences, arm, alpha * (reward - baseline)),
    checks: &[
        |Trial { function, .. }, sheet| {
            // both probabilities are 1/2; then 1/4 and 3/4, because e^(ln 3) = 3
            let ln_3 = 3f64.ln();
            for (preferences, arm, reward, baseline, alpha, expected) in [
                (&[0.0, 0.0][..], 0, 1.0, 0.0, 0.4, vec![0.2, -0.2]),
                (&[0.0, 0.0], 1, 3.0, 1.0, 0.1, vec![-0.1, 0.1]),
                (&[0.0, ln_3], 1, 2.0, 0.0, 0.5, vec![-0.25, ln_3 + 0.25]),
                (&[0.0, ln_3], 0, -1.0, 1.0, 0.5, vec![-0.75, ln_3 + 0.75]),
                (&[1.0, 2.0], 0, 5.0, 5.0, 0.5, vec![1.0, 2.0]),
            ] {
                let place = format!(
                    "gradient_bandit(preferences = {}, arm = {arm}, reward = {reward}, baseline = {baseline}, alpha = {alpha})",
                    list(preferences)
                );
                sheet.row(place, expected, || after(function, preferences, arm, reward, baseline, alpha));
            }
        },
        mean_change_is_the_gradient,
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 15);
            let means = normals(&mut stream, ARMS);
            let (mut preferences, mut baseline) = (vec![0.0; ARMS], 0.0);
            for t in 1..=100 {
                let arm = stream.below(ARMS as u32) as usize;
                let reward = rounded(means[arm] + f64::from(stream.normal()));
                let next = after(right, &preferences, arm, reward, baseline, 0.1);
                let place = format!(
                    "step {t}: gradient_bandit(preferences = {}, arm = {arm}, reward = {reward}, baseline = {baseline:.4}, alpha = 0.1)",
                    list(&preferences)
                );
                sheet.row(place, next.clone(), || after(function, &preferences, arm, reward, baseline, 0.1));
                preferences = next;
                baseline += (reward - baseline) / f64::from(t);
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "only the preference of the arm that was pulled changes",
            section: "gradient-bandits",
            function: |preferences, arm, reward, baseline, alpha| {
                preferences[arm] += alpha * (reward - baseline) * (1.0 - stable_softmax(preferences)[arm]);
            },
        },
        Mistake {
            says: "the baseline is left out",
            section: "baselines",
            function: |preferences, arm, reward, _, alpha| moved_preferences(preferences, arm, alpha * reward),
        },
        Mistake {
            says: "the baseline is added instead of subtracted",
            section: "baselines",
            function: |preferences, arm, reward, baseline, alpha| moved_preferences(preferences, arm, alpha * (reward + baseline)),
        },
        Mistake {
            says: "the step goes down instead of up the gradient",
            section: "gradient-bandits",
            function: |preferences, arm, reward, baseline, alpha| moved_preferences(preferences, arm, -alpha * (reward - baseline)),
        },
        Mistake {
            says: "the other arms change as much as the arm that was pulled, in the other direction, whatever their probabilities",
            section: "gradient-bandits",
            function: |preferences, arm, reward, baseline, alpha| {
                let step = alpha * (reward - baseline) * (1.0 - stable_softmax(preferences)[arm]);
                preferences.iter_mut().enumerate().for_each(|(other, p)| *p += if other == arm { step } else { -step });
            },
        },
        Mistake {
            says: "the probabilities are computed again after each preference that was changed",
            section: "gradient-bandits",
            function: |preferences, arm, reward, baseline, alpha| {
                for other in 0..preferences.len() {
                    let probability = stable_softmax(preferences)[other];
                    preferences[other] += alpha * (reward - baseline) * (f64::from(u8::from(other == arm)) - probability);
                }
            },
        },
        Mistake {
            says: "1 is missing: the arm that was pulled changes like the others",
            section: "gradient-bandits",
            function: |preferences, _, reward, baseline, alpha| {
                let probabilities = stable_softmax(preferences);
                preferences.iter_mut().zip(probabilities).for_each(|(p, probability)| *p -= alpha * (reward - baseline) * probability);
            },
        },
    ],
};

// 1.6

fn regret_with(gaps: impl Iterator<Item = f64>) -> Vec<f64> {
    gaps.scan(0.0, |sum, gap| {
        *sum += gap;
        Some(*sum)
    })
    .collect()
}

const REGRETS: &[Check<Regret>] = &[
    |Trial { function, .. }, sheet| {
        for (means, arms, expected) in [
            (&[1.0, 3.0, 2.0][..], &[0, 1, 2, 1][..], &[2.0, 2.0, 3.0, 3.0][..]),
            (&[-1.0, -4.0], &[1, 1, 0], &[3.0, 6.0, 6.0]),
            (&[1.0, 3.0, 2.0], &[0, 2], &[2.0, 3.0]),
            (&[0.5], &[0, 0], &[0.0, 0.0]),
            (&[1.0, 2.0], &[], &[]),
        ] {
            let pulled = list(&arms.iter().map(|arm| *arm as f64).collect::<Vec<_>>());
            sheet.row(format!("regret(values = {}, arms = {pulled})", list(means)), expected, || function(means, arms));
        }
    },
    |Trial { function, right, seed }, sheet| {
        let mut stream = stream(seed, 16);
        for _ in 0..20 {
            let means = normals(&mut stream, ARMS);
            let arms: Vec<usize> = (0..30).map(|_| stream.below(ARMS as u32) as usize).collect();
            let pulled = list(&arms.iter().map(|arm| *arm as f64).collect::<Vec<_>>());
            sheet.row(format!("regret(values = {}, arms = {pulled})", list(&means)), right(&means, &arms), || function(&means, &arms));
        }
    },
];

static REGRET: Exercise<Regret> = Exercise {
    about: About {
        number: "1.6",
        name: "regret",
        title: "what exploring has cost",
        section: "regret",
        hints: &[
            "A pull costs the difference between the highest value and the value of the arm that was pulled.",
            "The regret after step t is the sum of the costs of the steps 1 to t. There is one number for each step.",
            "Keep a running sum, and push it after each pull.",
        ],
    },
    right: |means, arms| regret_with(arms.iter().map(|arm| means[largest(means)] - means[*arm])),
    checks: REGRETS,
    mistakes: &[
        Mistake {
            says: "each number is the cost of one step, and is not added to those before",
            section: "regret",
            function: |means, arms| arms.iter().map(|arm| means[largest(means)] - means[*arm]).collect(),
        },
        Mistake {
            says: "the sign is wrong: the regret falls below 0",
            section: "regret",
            function: |means, arms| regret_with(arms.iter().map(|arm| means[*arm] - means[largest(means)])),
        },
        Mistake {
            says: "the best arm is the best one among those that were pulled",
            section: "regret",
            function: |means, arms| {
                let best = arms.iter().map(|arm| means[*arm]).fold(f64::NEG_INFINITY, f64::max);
                regret_with(arms.iter().map(|arm| best - means[*arm]))
            },
        },
        Mistake {
            says: "the values of the arms are added up, not their distances to the best value",
            section: "regret",
            function: |means, arms| regret_with(arms.iter().map(|arm| means[*arm])),
        },
        Mistake {
            says: "the sum is divided by the number of steps: the mean regret",
            section: "regret",
            function: |means, arms| {
                let sums = regret_with(arms.iter().map(|arm| means[largest(means)] - means[*arm]));
                sums.iter().zip(1..).map(|(sum, t)| sum / f64::from(t)).collect()
            },
        },
    ],
};
