//! Lesson 5: function approximation and DQN.

use crate::exercise::{About, Exercise, Mistake, Trial};
use crate::inputs::{distinct, number, numbers, one_of, share, stream};
use crate::lessons::lesson;
use crate::sheet::{Sheet, list};
use crate::step::{End, best, following, largest};

/// Changes the weights after a step: weights, features, reward, features of the next state, gamma, how the episode goes on, step size.
pub type SemiGradientTd = fn(&mut [f64], &[f64], f64, &[f64], f64, End, f64);
/// Returns the targets of a minibatch from the rewards, the next states' values, how the episodes go on, and gamma.
pub type DqnTargets = fn(&[f64], &[Vec<f64>], &[End], f64) -> Vec<f64>;
/// Returns the target from the reward, the next state's values in the network that learns and in the old one, gamma, and how the episode
/// goes on.
pub type DoubleDqnTarget = fn(f64, &[f64], &[f64], f64, End) -> f64;
/// Returns the derivative of the Huber loss from the error and the threshold.
pub type HuberSlope = fn(f64, f64) -> f64;
/// Moves the weights of a target network: its weights, those of the network that learns, tau.
pub type MovedTarget = fn(&mut [f64], &[f64], f64);

lesson!("5", "function approximation and DQN", {
    semi_gradient_td: SemiGradientTd = SEMI_GRADIENT_TD,
    dqn_targets: DqnTargets = DQN_TARGETS,
    double_dqn_target: DoubleDqnTarget = DOUBLE_DQN_TARGET,
    huber_slope: HuberSlope = HUBER_SLOPE,
    moved_target: MovedTarget = MOVED_TARGET,
});

// 5.1

fn dot(weights: &[f64], features: &[f64]) -> f64 {
    weights.iter().zip(features).map(|(w, x)| w * x).sum()
}

/// Adds `size` times `direction` to the weights.
fn stepped(weights: &mut [f64], direction: &[f64], size: f64) {
    weights.iter_mut().zip(direction).for_each(|(w, x)| *w += size * x);
}

/// What a step was, for the functions of exercise 5.1.
#[derive(Clone)]
struct Seen {
    weights: Vec<f64>,
    features: Vec<f64>,
    reward: f64,
    next: Vec<f64>,
    gamma: f64,
    end: End,
    alpha: f64,
}

impl Seen {
    fn row(&self, sheet: &mut Sheet, function: SemiGradientTd, expected: Vec<f64>) {
        let Self { weights, features, reward, next, gamma, end, alpha } = self;
        let place = format!(
            "weights after semi_gradient_td(weights = {}, features = {}, reward = {reward}, next_features = {}, gamma = {gamma}, end = {end:?}, \
             alpha = {alpha})",
            list(weights),
            list(features),
            list(next)
        );
        sheet.row(place, expected, || self.after(function));
    }

    fn after(&self, function: SemiGradientTd) -> Vec<f64> {
        let mut weights = self.weights.clone();
        function(&mut weights, &self.features, self.reward, &self.next, self.gamma, self.end, self.alpha);
        weights
    }
}

fn td_error(weights: &[f64], features: &[f64], reward: f64, next: &[f64], gamma: f64, end: End) -> f64 {
    reward + gamma * following(end, dot(weights, next)) - dot(weights, features)
}

static SEMI_GRADIENT_TD: Exercise<SemiGradientTd> = Exercise {
    about: About {
        number: "5.1",
        name: "semi_gradient_td",
        title: "a step on weights",
        section: "semi-gradient-td",
        hints: &[
            "The value of a state is the sum of weight times feature. Compute those of the state and of the next state, and the TD error.",
            "Each weight changes by alpha times the TD error times its own feature of the state.",
            "Compute the error before you change any weight: it depends on all of them.",
        ],
    },
    right: |weights, features, reward, next, gamma, end, alpha| {
        let error = td_error(weights, features, reward, next, gamma, end);
        stepped(weights, features, alpha * error);
    },
    checks: &[
        |Trial { function, .. }, sheet| {
            // the values are 1 and 2, the error 1 + 1/2 2 - 1 = 1
            let first = Seen {
                weights: vec![1.0, 2.0],
                features: vec![1.0, 0.0],
                reward: 1.0,
                next: vec![0.0, 1.0],
                gamma: 0.5,
                end: End::Running,
                alpha: 0.1,
            };
            first.row(sheet, function, vec![1.1, 2.0]);
            // the values are 3 and 2, the error -1
            let both = Seen { features: vec![1.0, 1.0], reward: 0.0, next: vec![2.0, 0.0], gamma: 1.0, alpha: 0.5, ..first.clone() };
            both.row(sheet, function, vec![0.5, 1.5]);
            // the value is 4, the error 1 - 4 = -3
            let last = Seen { features: vec![0.0, 2.0], next: vec![5.0, 5.0], end: End::Terminated, ..first.clone() };
            last.row(sheet, function, vec![1.0, 1.4]);
            Seen { end: End::Truncated, ..first }.row(sheet, function, vec![1.1, 2.0]);
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 51);
            for _ in 0..50 {
                let n = 2 + stream.below(3) as usize;
                let seen = Seen {
                    weights: numbers(&mut stream, n),
                    features: numbers(&mut stream, n),
                    reward: number(&mut stream),
                    next: numbers(&mut stream, n),
                    gamma: share(&mut stream),
                    end: one_of(&mut stream, &End::ALL),
                    alpha: share(&mut stream),
                };
                let expected = seen.after(right);
                seen.row(sheet, function, expected);
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "the derivative of the target is taken, too: the step is along features minus gamma times next features",
            section: "semi-gradient-td",
            function: |weights, features, reward, next, gamma, end, alpha| {
                let error = td_error(weights, features, reward, next, gamma, end);
                stepped(weights, features, alpha * error);
                stepped(weights, next, -alpha * error * following(end, gamma));
            },
        },
        Mistake {
            says: "every weight changes by the same amount, whatever its feature is",
            section: "semi-gradient-td",
            function: |weights, features, reward, next, gamma, end, alpha| {
                let error = td_error(weights, features, reward, next, gamma, end);
                weights.iter_mut().for_each(|w| *w += alpha * error);
            },
        },
        Mistake {
            says: "the step is along the features of the next state",
            section: "semi-gradient-td",
            function: |weights, features, reward, next, gamma, end, alpha| {
                let error = td_error(weights, features, reward, next, gamma, end);
                stepped(weights, next, alpha * error);
            },
        },
        Mistake {
            says: "each weight is changed before the next one's error is computed: the error then belongs to other weights",
            section: "semi-gradient-td",
            function: |weights, features, reward, next, gamma, end, alpha| {
                for i in 0..weights.len() {
                    let error = td_error(weights, features, reward, next, gamma, end);
                    weights[i] += alpha * error * features[i];
                }
            },
        },
        Mistake {
            says: "the sign is wrong: the weights move away from the target",
            section: "semi-gradient-td",
            function: |weights, features, reward, next, gamma, end, alpha| {
                let error = td_error(weights, features, reward, next, gamma, end);
                stepped(weights, features, -alpha * error);
            },
        },
        Mistake {
            says: "the value of the next state counts after the end of the episode",
            section: "dqn",
            function: |weights, features, reward, next, gamma, _, alpha| {
                let error = td_error(weights, features, reward, next, gamma, End::Running);
                stepped(weights, features, alpha * error);
            },
        },
        Mistake {
            says: "an episode that was cut off counts as one that ended in the world",
            section: "what-is-often-got-wrong",
            function: |weights, features, reward, next, gamma, end, alpha| {
                let end = if end == End::Truncated { End::Terminated } else { end };
                let error = td_error(weights, features, reward, next, gamma, end);
                stepped(weights, features, alpha * error);
            },
        },
    ],
};

// 5.2

fn targets(rewards: &[f64], ends: &[End], gamma: f64, value: impl Fn(usize) -> f64) -> Vec<f64> {
    (0..rewards.len()).map(|i| rewards[i] + gamma * following(ends[i], value(i))).collect()
}

fn batch(rewards: &[f64], next: &[Vec<f64>], ends: &[End], gamma: f64) -> String {
    let rows = next.iter().map(|row| list(row)).collect::<Vec<_>>().join(", ");
    format!("dqn_targets(rewards = {}, next_values = [{rows}], ends = {ends:?}, gamma = {gamma})", list(rewards))
}

static DQN_TARGETS: Exercise<DqnTargets> = Exercise {
    about: About {
        number: "5.2",
        name: "dqn_targets",
        title: "the targets of a minibatch",
        section: "dqn",
        hints: &[
            "A target for each step of the minibatch: its reward plus gamma times the largest value of its next state.",
            "next_values[i] has a value for each action. The maximum is within this row, not over the steps.",
            "After End::Terminated the target is the reward; after End::Truncated the value of the next state counts.",
        ],
    },
    right: |rewards, next, ends, gamma| targets(rewards, ends, gamma, |i| largest(&next[i])),
    checks: &[
        |Trial { function, .. }, sheet| {
            let (rewards, next) = ([1.0, 2.0, 3.0], [vec![4.0, 6.0], vec![-2.0, -8.0], vec![10.0, 0.0]]);
            let ends = [End::Truncated, End::Running, End::Terminated];
            sheet.row(batch(&rewards, &next, &ends, 0.5), vec![4.0, 1.0, 3.0], || function(&rewards, &next, &ends, 0.5));
            sheet.row(batch(&rewards, &next, &ends, 1.0), vec![7.0, 0.0, 3.0], || function(&rewards, &next, &ends, 1.0));
            let (rewards, next, ends) = ([0.0], [vec![1.0, 2.0, 4.0]], [End::Running]);
            sheet.row(batch(&rewards, &next, &ends, 0.25), vec![1.0], || function(&rewards, &next, &ends, 0.25));
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 52);
            for _ in 0..30 {
                let (n, actions) = (1 + stream.below(5) as usize, 2 + stream.below(3) as usize);
                let rewards = numbers(&mut stream, n);
                let next: Vec<Vec<f64>> = (0..n).map(|_| numbers(&mut stream, actions)).collect();
                let ends: Vec<End> = (0..n).map(|_| one_of(&mut stream, &End::ALL)).collect();
                let gamma = share(&mut stream);
                sheet.row(batch(&rewards, &next, &ends, gamma), right(&rewards, &next, &ends, gamma), || {
                    function(&rewards, &next, &ends, gamma)
                });
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "the maximum is over the whole minibatch, not over the actions of each step",
            section: "dqn",
            function: |rewards, next, ends, gamma| {
                let all = next.iter().map(|row| largest(row)).fold(f64::NEG_INFINITY, f64::max);
                targets(rewards, ends, gamma, |_| all)
            },
        },
        Mistake {
            says: "the mean over the actions is taken instead of the maximum",
            section: "dqn",
            function: |rewards, next, ends, gamma| targets(rewards, ends, gamma, |i| next[i].iter().sum::<f64>() / next[i].len() as f64),
        },
        Mistake {
            says: "the value of the next state counts after the end of an episode",
            section: "dqn",
            function: |rewards, next, _, gamma| (0..rewards.len()).map(|i| rewards[i] + gamma * largest(&next[i])).collect(),
        },
        Mistake {
            says: "an episode that was cut off counts as one that ended in the world",
            section: "what-is-often-got-wrong",
            function: |rewards, next, ends, gamma| {
                targets(rewards, ends, gamma, |i| if ends[i] == End::Running { largest(&next[i]) } else { 0.0 })
            },
        },
        Mistake {
            says: "gamma is left out",
            section: "dqn",
            function: |rewards, next, ends, _| targets(rewards, ends, 1.0, |i| largest(&next[i])),
        },
        Mistake {
            says: "a maximum that begins at 0 is never negative",
            section: "dqn",
            function: |rewards, next, ends, gamma| targets(rewards, ends, gamma, |i| largest(&next[i]).max(0.0)),
        },
    ],
};

// 5.3

fn call_of_double(reward: f64, online: &[f64], old: &[f64], gamma: f64, end: End) -> String {
    let (online, old) = (list(online), list(old));
    format!("double_dqn_target(reward = {reward}, online = {online}, target = {old}, gamma = {gamma}, end = {end:?})")
}

static DOUBLE_DQN_TARGET: Exercise<DoubleDqnTarget> = Exercise {
    about: About {
        number: "5.3",
        name: "double_dqn_target",
        title: "one network chooses, the other values",
        section: "overestimation",
        hints: &[
            "`online` are the values of the next state in the network that learns. It chooses the action: the index of its largest value.",
            "`target` are the values in the old network. Take its value of the action that was chosen, not its largest.",
        ],
    },
    right: |reward, online, old, gamma, end| reward + gamma * following(end, old[best(online)]),
    checks: &[
        |Trial { function, .. }, sheet| {
            for (reward, online, old, gamma, end, expected) in [
                (1.0, &[2.0, 6.0][..], &[8.0, 4.0][..], 0.5, End::Running, 3.0),
                (1.0, &[6.0, 2.0], &[8.0, 4.0], 0.5, End::Running, 5.0),
                (0.0, &[9.0, 1.0], &[3.0, 5.0], 1.0, End::Running, 3.0),
                (0.0, &[-1.0, -3.0, -2.0], &[-9.0, 5.0, 1.0], 1.0, End::Truncated, -9.0),
                (1.0, &[2.0, 6.0], &[8.0, 4.0], 0.5, End::Terminated, 1.0),
            ] {
                sheet.row(call_of_double(reward, online, old, gamma, end), expected, || function(reward, online, old, gamma, end));
            }
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 53);
            for _ in 0..50 {
                let n = 2 + stream.below(3) as usize;
                let (reward, online, old) = (number(&mut stream), distinct(&mut stream, n), distinct(&mut stream, n));
                let (gamma, end) = (share(&mut stream), one_of(&mut stream, &End::ALL));
                let place = call_of_double(reward, &online, &old, gamma, end);
                sheet.row(place, right(reward, &online, &old, gamma, end), || function(reward, &online, &old, gamma, end));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "the old network chooses, too: that is DQN's target",
            section: "overestimation",
            function: |reward, _, old, gamma, end| reward + gamma * following(end, largest(old)),
        },
        Mistake {
            says: "the network that learns values its own choice: there is no target network",
            section: "overestimation",
            function: |reward, online, _, gamma, end| reward + gamma * following(end, largest(online)),
        },
        Mistake {
            says: "the networks are exchanged: the old one chooses, and the one that learns values",
            section: "overestimation",
            function: |reward, online, old, gamma, end| reward + gamma * following(end, online[best(old)]),
        },
        Mistake {
            says: "the smaller of the two networks' values is taken: that is the target of TD3",
            section: "overestimation",
            function: |reward, online, old, gamma, end| reward + gamma * following(end, largest(online).min(largest(old))),
        },
        Mistake {
            says: "the value of the next state counts after the end of the episode",
            section: "dqn",
            function: |reward, online, old, gamma, _| reward + gamma * old[best(online)],
        },
        Mistake {
            says: "an episode that was cut off counts as one that ended in the world",
            section: "what-is-often-got-wrong",
            function: |reward, online, old, gamma, end| reward + if end == End::Running { gamma * old[best(online)] } else { 0.0 },
        },
    ],
};

// 5.4

fn huber(error: f64, threshold: f64) -> f64 {
    if error.abs() <= threshold { error * error / 2.0 } else { threshold * (error.abs() - threshold / 2.0) }
}

static HUBER_SLOPE: Exercise<HuberSlope> = Exercise {
    about: About {
        number: "5.4",
        name: "huber_slope",
        title: "the derivative of the Huber loss",
        section: "hubers-loss",
        hints: &[
            "Near 0 the loss is half the square of the error, and its derivative is the error.",
            "Beyond the threshold the loss is a straight line with the slope threshold, or minus threshold on the negative side.",
            "So the derivative is the error, held between -threshold and threshold: f64::clamp.",
        ],
    },
    right: |error, threshold| error.clamp(-threshold, threshold),
    checks: &[
        |Trial { function, .. }, sheet| {
            for (error, threshold, expected) in
                [(0.5, 1.0, 0.5), (3.0, 1.0, 1.0), (-3.0, 1.0, -1.0), (3.0, 2.0, 2.0), (1.5, 2.0, 1.5), (-0.5, 0.2, -0.2), (0.0, 1.0, 0.0)]
            {
                sheet.row(format!("huber_slope(error = {error}, threshold = {threshold})"), expected, || function(error, threshold));
            }
        },
        |Trial { function, seed, .. }, sheet| {
            let mut stream = stream(seed, 54);
            for _ in 0..50 {
                let (error, threshold) = (number(&mut stream) + 0.05, f64::from(1 + stream.below(30)) / 10.0);
                let small = 1e-5;
                let difference = (huber(error + small, threshold) - huber(error - small, threshold)) / (2.0 * small);
                let place = format!("huber_slope(error = {error:.2}, threshold = {threshold}), beside the difference of the loss");
                sheet.row(place, difference, || function(error, threshold));
            }
        },
    ],
    mistakes: &[
        Mistake { says: "it is the loss itself and not its derivative", section: "hubers-loss", function: huber },
        Mistake { says: "the slope grows without bound: that of the squared error", section: "hubers-loss", function: |error, _| error },
        Mistake {
            says: "only the sign of the error counts: the slope of the absolute error",
            section: "hubers-loss",
            function: |error, threshold| if error == 0.0 { 0.0 } else { threshold * error.signum() },
        },
        Mistake { says: "the threshold is always 1", section: "hubers-loss", function: |error, _| error.clamp(-1.0, 1.0) },
        Mistake {
            says: "the slope beyond the threshold is 1 and not the threshold: the loss has a kink there",
            section: "hubers-loss",
            function: |error, threshold| if error.abs() <= threshold { error } else { error.signum() },
        },
        Mistake {
            says: "the sign is lost on the negative side",
            section: "hubers-loss",
            function: |error, threshold| error.abs().min(threshold),
        },
    ],
};

// 5.5

fn after_move(function: MovedTarget, target: &[f64], online: &[f64], tau: f64) -> Vec<f64> {
    let mut target = target.to_vec();
    function(&mut target, online, tau);
    target
}

fn call_of_move(target: &[f64], online: &[f64], tau: f64) -> String {
    format!("target after moved_target(target = {}, online = {}, tau = {tau})", list(target), list(online))
}

fn each(target: &mut [f64], online: &[f64], new: impl Fn(f64, f64) -> f64) {
    target.iter_mut().zip(online).for_each(|(old, online)| *old = new(*old, *online));
}

static MOVED_TARGET: Exercise<MovedTarget> = Exercise {
    about: About {
        number: "5.5",
        name: "moved_target",
        title: "a target network that follows slowly",
        section: "target-networks",
        hints: &[
            "Each weight of the target network becomes tau times that of the network that learns, plus 1 - tau times itself.",
            "With tau = 1 the target is a copy, with tau = 0 it stays.",
        ],
    },
    right: |target, online, tau| each(target, online, |old, online| tau * online + (1.0 - tau) * old),
    checks: &[
        |Trial { function, .. }, sheet| {
            let (target, online) = ([1.0, 4.0, -2.0], [3.0, 8.0, 2.0]);
            for (tau, expected) in [(0.5, [2.0, 6.0, 0.0]), (0.25, [1.5, 5.0, -1.0]), (1.0, online), (0.0, target)] {
                sheet.row(call_of_move(&target, &online, tau), &expected[..], || after_move(function, &target, &online, tau));
            }
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 55);
            let mut target = numbers(&mut stream, 3);
            for _ in 0..30 {
                let (online, tau) = (numbers(&mut stream, 3), share(&mut stream));
                let expected = after_move(right, &target, &online, tau);
                sheet.row(call_of_move(&target, &online, tau), expected.clone(), || after_move(function, &target, &online, tau));
                target = expected.into_iter().map(crate::inputs::rounded).collect();
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "tau and 1 - tau are exchanged",
            section: "target-networks",
            function: |target, online, tau| each(target, online, |old, online| tau * old + (1.0 - tau) * online),
        },
        Mistake {
            says: "the target is copied, whatever tau is",
            section: "target-networks",
            function: |target, online, _| target.copy_from_slice(online),
        },
        Mistake {
            says: "a share of the other weights is added, and nothing is taken away: the weights grow",
            section: "target-networks",
            function: |target, online, tau| each(target, online, |old, online| old + tau * online),
        },
        Mistake {
            says: "the sign is wrong: the target moves away",
            section: "target-networks",
            function: |target, online, tau| each(target, online, |old, online| old - tau * (online - old)),
        },
    ],
};
