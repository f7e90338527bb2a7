//! Lesson 8: actor-critic and GAE.

use gradus_base::random::Stream;

use crate::exercise::{About, Exercise, Mistake, Trial};
use crate::inputs::{normals, number, numbers, one_of, rounded, share, stream};
use crate::lesson_6::{differences, entropy, log_softmax, softmax};
use crate::lessons::lesson;
use crate::sheet::{Sheet, list};
use crate::step::End;

/// Returns the advantage of each step from the rewards, the values of the states, those of the next states, how the episodes go on, gamma
/// and lambda.
pub type Gae = fn(&[f64], &[f64], &[f64], &[End], f64, f64) -> Vec<f64>;
/// Returns the explained variance from the values and the targets.
pub type ExplainedVariance = fn(&[f64], &[f64]) -> f64;
/// Returns the loss from the logits, the action, the advantage, the value, the target, and the coefficients of the value and of the entropy.
pub type Loss = fn(&[f64], usize, f64, f64, f64, f64, f64) -> f64;
/// Returns the derivatives of the loss for the logits and for the value, from the same.
pub type LossSlopes = fn(&[f64], usize, f64, f64, f64, f64, f64) -> (Vec<f64>, f64);
/// Returns the log-probability from the means, the logarithms of the standard deviations, and the action.
pub type GaussianLogProb = fn(&[f64], &[f64], &[f64]) -> f64;

lesson!("8", "actor-critic and GAE", {
    gae: Gae = GAE,
    explained_variance: ExplainedVariance = EXPLAINED_VARIANCE,
    loss: Loss = LOSS,
    loss_slopes: LossSlopes = LOSS_SLOPES,
    gaussian_log_prob: GaussianLogProb = GAUSSIAN_LOG_PROB,
});

// 8.1

/// A rollout, for the functions of exercise 8.1.
struct Rollout {
    rewards: Vec<f64>,
    values: Vec<f64>,
    next: Vec<f64>,
    ends: Vec<End>,
    gamma: f64,
    lambda: f64,
}

impl Rollout {
    fn any(stream: &mut Stream) -> Self {
        let n = 2 + stream.below(7) as usize;
        let mut ends: Vec<End> = (0..n).map(|_| if stream.below(2) == 0 { End::Running } else { one_of(stream, &End::ALL) }).collect();
        ends[n - 1] = one_of(stream, &End::ALL);
        let (rewards, values) = (numbers(stream, n), numbers(stream, n));
        // within an episode the next state is that of the next step
        let next = (0..n).map(|t| if t + 1 < n && ends[t] == End::Running { values[t + 1] } else { number(stream) }).collect();
        Self { rewards, values, next, ends, gamma: share(stream), lambda: share(stream) }
    }

    fn of(&self, function: Gae) -> Vec<f64> {
        function(&self.rewards, &self.values, &self.next, &self.ends, self.gamma, self.lambda)
    }

    fn row(&self, sheet: &mut Sheet, function: Gae, expected: Vec<f64>) {
        let Self { rewards, values, next, ends, gamma, lambda } = self;
        let place = format!(
            "gae(rewards = {}, values = {}, next_values = {}, ends = {ends:?}, gamma = {gamma}, lambda = {lambda})",
            list(rewards),
            list(values),
            list(next)
        );
        sheet.row(place, expected, || self.of(function));
    }
}

/// The advantages from the back. `bootstraps` says after which end the value of the next state counts, `continues` after which the next
/// step's advantage does.
fn advantages(
    (rewards, values, next, ends): (&[f64], &[f64], &[f64], &[End]),
    gamma: f64,
    decay: f64,
    bootstraps: fn(End) -> bool,
    continues: fn(End) -> bool,
) -> Vec<f64> {
    let mut all = vec![0.0; rewards.len()];
    let mut following = 0.0;
    for t in (0..rewards.len()).rev() {
        let error = rewards[t] + if bootstraps(ends[t]) { gamma * next[t] } else { 0.0 } - values[t];
        following = error + if continues(ends[t]) { decay * following } else { 0.0 };
        all[t] = following;
    }
    all
}

static GAE: Exercise<Gae> = Exercise {
    about: About {
        number: "8.1",
        name: "gae",
        title: "advantages of a rollout",
        section: "gae",
        hints: &[
            "From the back: the TD error of the step, plus gamma times lambda times the advantage of the next step.",
            "After a step that ends an episode, in either way, the advantage of the next step in the list belongs to another episode.",
            "The TD error has gamma * next_values[t], except after End::Terminated.",
        ],
    },
    right: |rewards, values, next, ends, gamma, lambda| {
        advantages((rewards, values, next, ends), gamma, gamma * lambda, |end| end != End::Terminated, |end| end == End::Running)
    },
    checks: &[
        |Trial { function, .. }, sheet| {
            let of = |ends: [End; 3], gamma, lambda| Rollout {
                rewards: vec![1.0, 2.0, 4.0],
                values: vec![2.0, 4.0, 6.0],
                next: vec![4.0, 6.0, 8.0],
                ends: ends.to_vec(),
                gamma,
                lambda,
            };
            // the errors are 1 + 1/2 4 - 2 = 1, 2 + 1/2 6 - 4 = 1, 4 + 1/2 8 - 6 = 2
            let running = [End::Running; 3];
            of(running, 0.5, 0.0).row(sheet, function, vec![1.0, 1.0, 2.0]);
            of(running, 0.5, 1.0).row(sheet, function, vec![2.0, 2.0, 2.0]);
            of(running, 0.5, 0.5).row(sheet, function, vec![1.375, 1.5, 2.0]);
            of([End::Running, End::Running, End::Terminated], 0.5, 1.0).row(sheet, function, vec![1.0, 0.0, -2.0]);
            of([End::Running, End::Truncated, End::Running], 0.5, 1.0).row(sheet, function, vec![1.5, 1.0, 2.0]);
            of([End::Terminated, End::Running, End::Running], 0.5, 1.0).row(sheet, function, vec![-1.0, 2.0, 2.0]);
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 81);
            for _ in 0..40 {
                let rollout = Rollout::any(&mut stream);
                rollout.row(sheet, function, rollout.of(right));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "the advantages of the next episode are passed on to the one before",
            section: "rollouts",
            function: |rewards, values, next, ends, gamma, lambda| {
                advantages((rewards, values, next, ends), gamma, gamma * lambda, |end| end != End::Terminated, |_| true)
            },
        },
        Mistake {
            says: "a truncated episode goes on in the next one: only a termination stops the sum",
            section: "rollouts",
            function: |rewards, values, next, ends, gamma, lambda| {
                let goes_on = |end| end != End::Terminated;
                advantages((rewards, values, next, ends), gamma, gamma * lambda, goes_on, goes_on)
            },
        },
        Mistake {
            says: "an episode that was cut off counts as one that ended in the world",
            section: "rollouts",
            function: |rewards, values, next, ends, gamma, lambda| {
                let goes_on = |end| end == End::Running;
                advantages((rewards, values, next, ends), gamma, gamma * lambda, goes_on, goes_on)
            },
        },
        Mistake {
            says: "the value of the next state counts after the end of an episode",
            section: "rollouts",
            function: |rewards, values, next, ends, gamma, lambda| {
                advantages((rewards, values, next, ends), gamma, gamma * lambda, |_| true, |end| end == End::Running)
            },
        },
        Mistake {
            says: "lambda is left out: the return less the value",
            section: "gae",
            function: |rewards, values, next, ends, gamma, _| {
                advantages((rewards, values, next, ends), gamma, gamma, |end| end != End::Terminated, |end| end == End::Running)
            },
        },
        Mistake {
            says: "the next advantage is multiplied by lambda only, and not by gamma",
            section: "gae",
            function: |rewards, values, next, ends, gamma, lambda| {
                advantages((rewards, values, next, ends), gamma, lambda, |end| end != End::Terminated, |end| end == End::Running)
            },
        },
        Mistake {
            says: "the value is not subtracted: these are the targets of the critic",
            section: "gae",
            function: |rewards, values, next, ends, gamma, lambda| {
                let all = advantages(
                    (rewards, values, next, ends),
                    gamma,
                    gamma * lambda,
                    |end| end != End::Terminated,
                    |end| end == End::Running,
                );
                all.iter().zip(values).map(|(advantage, value)| advantage + value).collect()
            },
        },
    ],
};

// 8.2

fn variance(numbers: impl Iterator<Item = f64>) -> f64 {
    let all: Vec<f64> = numbers.collect();
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    all.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / all.len() as f64
}

fn errors<'a>(values: &'a [f64], targets: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
    values.iter().zip(targets).map(|(value, target)| target - value)
}

fn of(numbers: &[f64]) -> f64 {
    variance(numbers.iter().copied())
}

static EXPLAINED_VARIANCE: Exercise<ExplainedVariance> = Exercise {
    about: About {
        number: "8.2",
        name: "explained_variance",
        title: "is the critic any good?",
        section: "is-the-critic-any-good",
        hints: &[
            "1 minus the variance of the errors, divided by the variance of the targets.",
            "A variance is the mean of the squared distances from the mean: an error that is the same everywhere has none.",
        ],
    },
    right: |values, targets| 1.0 - variance(errors(values, targets)) / of(targets),
    checks: &[
        |Trial { function, .. }, sheet| {
            let targets = [1.0, 2.0, 3.0];
            for (values, expected) in [
                ([1.0, 2.0, 3.0], 1.0),
                ([2.0, 2.0, 2.0], 0.0),
                ([101.0, 102.0, 103.0], 1.0),
                ([3.0, 2.0, 1.0], -3.0), // the errors are -2, 0 and 2: four times the variance
                ([1.0, 1.0, 1.0], 0.0),
                ([0.5, 1.0, 1.5], 0.75),
            ] {
                let place = format!("explained_variance(values = {}, targets = {})", list(&values), list(&targets));
                sheet.row(place, expected, || function(&values, &targets));
            }
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 82);
            for _ in 0..40 {
                let n = 2 + stream.below(6) as usize;
                // at least two targets differ
                let targets: Vec<f64> = numbers(&mut stream, n).into_iter().chain([-5.5]).collect();
                let values: Vec<f64> = targets.iter().map(|target| rounded(target + f64::from(stream.normal()))).collect();
                let place = format!("explained_variance(values = {}, targets = {})", list(&values), list(&targets));
                sheet.row(place, right(&values, &targets), || function(&values, &targets));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "the mean squared error is taken and not the variance of the errors: an offset should not count",
            section: "is-the-critic-any-good",
            function: |values, targets| 1.0 - errors(values, targets).map(|e| e * e).sum::<f64>() / values.len() as f64 / of(targets),
        },
        Mistake {
            says: "it is divided by the variance of the values and not of the targets",
            section: "is-the-critic-any-good",
            function: |values, targets| 1.0 - variance(errors(values, targets)) / of(values),
        },
        Mistake {
            says: "it is the share that is not explained: 1 minus it is missing",
            section: "is-the-critic-any-good",
            function: |values, targets| variance(errors(values, targets)) / of(targets),
        },
        Mistake {
            says: "the variance of the values is divided by that of the targets: it does not say whether they agree",
            section: "is-the-critic-any-good",
            function: |values, targets| of(values) / of(targets),
        },
        Mistake {
            says: "it is held above 0: a critic that is worse than a constant is not seen",
            section: "is-the-critic-any-good",
            function: |values, targets| (1.0 - variance(errors(values, targets)) / of(targets)).max(0.0),
        },
    ],
};

// 8.3

/// The arguments of the functions of exercises 8.3 and 8.4.
struct Decision {
    logits: Vec<f64>,
    action: usize,
    advantage: f64,
    value: f64,
    target: f64,
    c_v: f64,
    c_e: f64,
}

impl Decision {
    fn any(stream: &mut Stream) -> Self {
        let n = 2 + stream.below(3) as usize;
        Self {
            logits: normals(stream, n),
            action: stream.below(n as u32) as usize,
            advantage: number(stream),
            value: number(stream),
            target: number(stream),
            c_v: f64::from(1 + stream.below(9)) / 10.0,
            c_e: f64::from(1 + stream.below(9)) / 10.0,
        }
    }

    fn arguments(&self) -> String {
        let Self { logits, action, advantage, value, target, c_v, c_e } = self;
        format!(
            "(logits = {}, action = {action}, advantage = {advantage}, value = {value}, target = {target}, value_coefficient = {c_v}, \
             entropy_coefficient = {c_e})",
            list(logits)
        )
    }

    fn loss(&self, function: Loss) -> f64 {
        function(&self.logits, self.action, self.advantage, self.value, self.target, self.c_v, self.c_e)
    }

    fn slopes(&self, function: LossSlopes) -> Vec<f64> {
        let (mut slopes, of_value) = function(&self.logits, self.action, self.advantage, self.value, self.target, self.c_v, self.c_e);
        slopes.push(of_value);
        slopes
    }
}

/// Decisions for a calculation by hand: logits 0 and ln 3 have the probabilities 1/4 and 3/4; e to the 1000 is infinite.
fn by_hand() -> [Decision; 4] {
    let open = |c_v, c_e| Decision { logits: vec![0.0, 0.0], action: 0, advantage: 2.0, value: 1.0, target: 4.0, c_v, c_e };
    let unequal = Decision { logits: vec![0.0, 3_f64.ln()], advantage: -2.0, ..open(1.0, 0.5) };
    [open(0.5, 0.0), open(0.0, 0.1), unequal, Decision { logits: vec![1000.0; 2], ..open(0.0, 0.1) }]
}

/// The logarithms of softmax without the subtraction of the largest logit, and the entropy.
fn overflowing(logits: &[f64]) -> (Vec<f64>, f64) {
    let sum: f64 = logits.iter().map(|z| z.exp()).sum();
    let log_p: Vec<f64> = logits.iter().map(|z| (z.exp() / sum).ln()).collect();
    let entropy = -log_p.iter().map(|log_p| log_p.exp() * log_p).sum::<f64>();
    (log_p, entropy)
}

fn whole_loss(d: (&[f64], usize, f64, f64, f64), c_v: f64, c_e: f64) -> f64 {
    let (logits, action, advantage, value, target) = d;
    -advantage * log_softmax(logits)[action] + c_v * (value - target).powi(2) / 2.0 - c_e * entropy(logits)
}

static LOSS: Exercise<Loss> = Exercise {
    about: About {
        number: "8.3",
        name: "loss",
        title: "three terms",
        section: "the-loss",
        hints: &[
            "Minus the advantage times the log-probability of the action; plus c_v times half the squared error; minus c_e times the entropy.",
            "The logarithm of the probability: exercise 6.1 says how to compute it without overflow.",
        ],
    },
    right: |logits, action, advantage, value, target, c_v, c_e| whole_loss((logits, action, advantage, value, target), c_v, c_e),
    checks: &[
        |Trial { function, .. }, sheet| {
            let ln_2 = std::f64::consts::LN_2;
            // 2 ln 2 + 1/2 9/2; 2 ln 2 - ln 2 / 10; -2 ln 4 + 9/2 - H / 2 with H = 0.56234
            let expected = [2.0 * ln_2 + 2.25, 1.9 * ln_2, -4.0 * ln_2 + 4.5 - 0.281_167_6, 1.9 * ln_2];
            for (decision, expected) in by_hand().iter().zip(expected) {
                sheet.row(format!("loss{}", decision.arguments()), expected, || decision.loss(function));
            }
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 83);
            for _ in 0..40 {
                let decision = Decision::any(&mut stream);
                sheet.row(format!("loss{}", decision.arguments()), decision.loss(right), || decision.loss(function));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "the sign of the actor's term is wrong: a loss is minimised",
            section: "the-loss",
            function: |logits, action, advantage, value, target, c_v, c_e| {
                whole_loss((logits, action, -advantage, value, target), c_v, c_e)
            },
        },
        Mistake {
            says: "the sign of the entropy is wrong: what is to be large is subtracted from a loss",
            section: "the-loss",
            function: |logits, action, advantage, value, target, c_v, c_e| {
                whole_loss((logits, action, advantage, value, target), c_v, -c_e)
            },
        },
        Mistake {
            says: "the squared error is not halved",
            section: "the-loss",
            function: |logits, action, advantage, value, target, c_v, c_e| {
                whole_loss((logits, action, advantage, value, target), 2.0 * c_v, c_e)
            },
        },
        Mistake {
            says: "the coefficient of the critic's term is left out",
            section: "the-loss",
            function: |logits, action, advantage, value, target, _, c_e| whole_loss((logits, action, advantage, value, target), 1.0, c_e),
        },
        Mistake {
            says: "the entropy is left out",
            section: "the-loss",
            function: |logits, action, advantage, value, target, c_v, _| whole_loss((logits, action, advantage, value, target), c_v, 0.0),
        },
        Mistake {
            says: "the probability of the action is taken and not its logarithm",
            section: "the-loss",
            function: |logits, action, advantage, value, target, c_v, c_e| {
                let (log_p, p) = (log_softmax(logits)[action], softmax(logits)[action]);
                whole_loss((logits, action, advantage, value, target), c_v, c_e) + advantage * (log_p - p)
            },
        },
        Mistake {
            says: "e to the logit overflows because the largest logit is not subtracted first (exercise 6.1)",
            section: "the-loss",
            function: |logits, action, advantage, value, target, c_v, c_e| {
                let (log_p, entropy) = overflowing(logits);
                -advantage * log_p[action] + c_v * (value - target).powi(2) / 2.0 - c_e * entropy
            },
        },
    ],
};

// 8.4

/// The derivatives of the three terms.
fn slopes(d: (&[f64], usize, f64, f64, f64), c_v: f64, c_e: f64) -> (Vec<f64>, f64) {
    let (logits, action, advantage, value, target) = d;
    let h = entropy(logits);
    let of_logit = |(b, log_p): (usize, f64)| {
        let p = log_p.exp();
        -advantage * (f64::from(u8::from(b == action)) - p) + c_e * p * (log_p + h)
    };
    (log_softmax(logits).into_iter().enumerate().map(of_logit).collect(), c_v * (value - target))
}

static LOSS_SLOPES: Exercise<LossSlopes> = Exercise {
    about: About {
        number: "8.4",
        name: "loss_slopes",
        title: "their derivatives",
        section: "the-loss",
        hints: &[
            "For logit b: minus the advantage times (1 if b is the action, else 0, minus p), plus c_e times p times (log p + H).",
            "For the value: c_v times (value - target). The advantage is a number: nothing is derived through it.",
            "Return the derivatives for the logits, and the one for the value: (slopes, slope).",
        ],
    },
    right: |logits, action, advantage, value, target, c_v, c_e| slopes((logits, action, advantage, value, target), c_v, c_e),
    checks: &[
        |Trial { function, .. }, sheet| {
            // the entropy's derivative is 3/16 ln 3 = 0.20599 for the first logit; 0 where the logits are equal
            let equal = [-1.0, 1.0, 0.0];
            let expected = [[-1.0, 1.0, -1.5], equal, [1.5 - 0.102_995, -1.5 + 0.102_995, -3.0], equal];
            for (decision, expected) in by_hand().iter().zip(expected) {
                let place = format!("the derivatives for each logit and then for the value, of loss_slopes{}", decision.arguments());
                sheet.row(place, &expected[..], || decision.slopes(function));
            }
        },
        |Trial { function, seed, .. }, sheet| {
            let mut stream = stream(seed, 84);
            for _ in 0..40 {
                let Decision { logits, action, advantage, value, target, c_v, c_e } = &Decision::any(&mut stream);
                let loss = |logits: &[f64], value: f64| whole_loss((logits, *action, *advantage, value, *target), *c_v, *c_e);
                let mut expected = differences(logits, |z| loss(z, *value));
                expected.extend(differences(&[*value], |v| loss(logits, v[0])));
                let decision = Decision {
                    logits: logits.clone(),
                    action: *action,
                    advantage: *advantage,
                    value: *value,
                    target: *target,
                    c_v: *c_v,
                    c_e: *c_e,
                };
                let place = format!("the derivatives for each logit and then for the value, of loss_slopes{}", decision.arguments());
                sheet.row(place, expected, || decision.slopes(function));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "the advantage is derived, too: the critic's slope has the log-probability of the action in it",
            section: "the-loss",
            function: |logits, action, advantage, value, target, c_v, c_e| {
                let (of_logits, of_value) = slopes((logits, action, advantage, value, target), c_v, c_e);
                (of_logits, of_value + log_softmax(logits)[action])
            },
        },
        Mistake {
            says: "the sign of the actor's term is wrong",
            section: "the-loss",
            function: |logits, action, advantage, value, target, c_v, c_e| slopes((logits, action, -advantage, value, target), c_v, c_e),
        },
        Mistake {
            says: "the sign of the entropy is wrong: it would make the policy more certain",
            section: "the-loss",
            function: |logits, action, advantage, value, target, c_v, c_e| slopes((logits, action, advantage, value, target), c_v, -c_e),
        },
        Mistake {
            says: "the entropy is left out",
            section: "the-loss",
            function: |logits, action, advantage, value, target, c_v, _| slopes((logits, action, advantage, value, target), c_v, 0.0),
        },
        Mistake {
            says: "the slope of the value has a factor 2: the square is halved in this loss",
            section: "the-loss",
            function: |logits, action, advantage, value, target, c_v, c_e| {
                slopes((logits, action, advantage, value, target), 2.0 * c_v, c_e)
            },
        },
        Mistake {
            says: "e to the logit overflows because the largest logit is not subtracted first (exercise 6.1)",
            section: "the-loss",
            function: |logits, action, advantage, value, target, c_v, c_e| {
                let (log_p, entropy) = overflowing(logits);
                let of_logit = |b: usize| {
                    let (p, taken) = (log_p[b].exp(), f64::from(u8::from(b == action)));
                    -advantage * (taken - p) + c_e * p * (log_p[b] + entropy)
                };
                ((0..logits.len()).map(of_logit).collect(), c_v * (value - target))
            },
        },
        Mistake {
            says: "the slope of the value has the wrong sign: the critic moves away from its target",
            section: "the-loss",
            function: |logits, action, advantage, value, target, c_v, c_e| slopes((logits, action, advantage, value, target), -c_v, c_e),
        },
    ],
};

// 8.5

fn density(mean: &[f64], log_std: &[f64], action: &[f64], of: impl Fn(f64, f64) -> f64) -> f64 {
    (0..mean.len()).map(|j| of(action[j] - mean[j], log_std[j])).sum()
}

/// ln(2 pi) / 2.
fn half_log_two_pi() -> f64 {
    0.5 * (2.0 * std::f64::consts::PI).ln()
}

fn call_of_gaussian(mean: &[f64], log_std: &[f64], action: &[f64]) -> String {
    format!("gaussian_log_prob(mean = {}, log_std = {}, action = {})", list(mean), list(log_std), list(action))
}

static GAUSSIAN_LOG_PROB: Exercise<GaussianLogProb> = Exercise {
    about: About {
        number: "8.5",
        name: "gaussian_log_prob",
        title: "continuous actions",
        section: "continuous-actions",
        hints: &[
            "For each dimension: minus the squared distance from the mean, divided by twice the variance; minus log_std; minus half the logarithm of 2 pi.",
            "The standard deviation is e to the log_std. The sum over the dimensions is the logarithm of their product.",
        ],
    },
    right: |mean, log_std, action| density(mean, log_std, action, |e, s| -e * e / (2.0 * (2.0 * s).exp()) - s - half_log_two_pi()),
    checks: &[
        |Trial { function, .. }, sheet| {
            let c = half_log_two_pi();
            let ln_2 = std::f64::consts::LN_2;
            for (mean, log_std, action, expected) in [
                (&[0.0][..], &[0.0][..], &[0.0][..], -c),
                (&[0.0], &[0.0], &[2.0], -2.0 - c),
                (&[1.0], &[ln_2], &[5.0], -2.0 - ln_2 - c),  // 4 away, deviation 2
                (&[1.0], &[-ln_2], &[1.5], -0.5 + ln_2 - c), // 1/2 away, deviation 1/2
                (&[0.0, 1.0], &[0.0, ln_2], &[2.0, 5.0], -4.0 - ln_2 - 2.0 * c),
            ] {
                sheet.row(call_of_gaussian(mean, log_std, action), expected, || function(mean, log_std, action));
            }
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 85);
            for _ in 0..40 {
                let n = 1 + stream.below(3) as usize;
                let (mean, log_std, action) = (normals(&mut stream, n), normals(&mut stream, n), normals(&mut stream, n));
                let place = call_of_gaussian(&mean, &log_std, &action);
                sheet.row(place, right(&mean, &log_std, &action), || function(&mean, &log_std, &action));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "the logarithm of the standard deviation is not subtracted: a wide distribution then looks as dense as a narrow one",
            section: "continuous-actions",
            function: |mean, log_std, action| density(mean, log_std, action, |e, s| -e * e / (2.0 * (2.0 * s).exp()) - half_log_two_pi()),
        },
        Mistake {
            says: "the logarithm of 2 pi is left out",
            section: "continuous-actions",
            function: |mean, log_std, action| density(mean, log_std, action, |e, s| -e * e / (2.0 * (2.0 * s).exp()) - s),
        },
        Mistake {
            says: "it is divided by the standard deviation and not by its square",
            section: "continuous-actions",
            function: |mean, log_std, action| density(mean, log_std, action, |e, s| -e * e / (2.0 * s.exp()) - s - half_log_two_pi()),
        },
        Mistake {
            says: "the squared distance is not halved",
            section: "continuous-actions",
            function: |mean, log_std, action| density(mean, log_std, action, |e, s| -e * e / (2.0 * s).exp() - s - half_log_two_pi()),
        },
        Mistake {
            says: "log_std is taken for the standard deviation itself",
            section: "continuous-actions",
            function: |mean, log_std, action| density(mean, log_std, action, |e, s| -e * e / (2.0 * s * s) - s.ln() - half_log_two_pi()),
        },
        Mistake {
            says: "it is the mean over the dimensions and not the sum",
            section: "continuous-actions",
            function: |mean, log_std, action| {
                density(mean, log_std, action, |e, s| -e * e / (2.0 * (2.0 * s).exp()) - s - half_log_two_pi()) / mean.len() as f64
            },
        },
    ],
};
