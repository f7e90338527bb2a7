//! Lesson 4: Q-learning, Sarsa and the cliff.

use gradus_base::random::{Purpose, Stream};
use gradus_envs::tabular::{CliffWalking, Tabular};

use crate::exercise::{About, Exercise, Mistake, Trial};
use crate::inputs::{distinct, number, numbers, one_of, share, stream};
use crate::lessons::lesson;
use crate::sheet::{Sheet, list, rows};
use crate::step::{End, Step, best, following, largest};

/// Returns the target from the reward, the values of the next state's actions, the next action, gamma, and how the episode goes on.
pub type SarsaTarget = fn(f64, &[f64], usize, f64, End) -> f64;
/// Returns the target from the reward, the values of the next state's actions, epsilon, gamma, and how the episode goes on.
pub type ExpectedSarsaTarget = fn(f64, &[f64], f64, f64, End) -> f64;
/// Changes the values after a step: values, step, step size, gamma.
pub type QLearning = fn(&mut [Vec<f64>], Step, f64, f64);
/// Changes the values of the table that learns: its values, those of the other table, step, step size, gamma.
pub type DoubleQLearning = fn(&mut [Vec<f64>], &[Vec<f64>], Step, f64, f64);

lesson!("4", "Q-learning, Sarsa and the cliff", {
    sarsa_target: SarsaTarget = SARSA_TARGET,
    expected_sarsa_target: ExpectedSarsaTarget = EXPECTED_SARSA_TARGET,
    q_learning: QLearning = Q_LEARNING,
    double_q_learning: DoubleQLearning = DOUBLE_Q_LEARNING,
});

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

// 4.1

static SARSA_TARGET: Exercise<SarsaTarget> = Exercise {
    about: About {
        number: "4.1",
        name: "sarsa_target",
        title: "the value of the action chosen next",
        section: "sarsa",
        hints: &[
            "The target is the reward plus gamma times the value of the next state with the action that was chosen there.",
            "next_values[next_action] is that value. After End::Terminated nothing follows; after End::Truncated the world would go on.",
        ],
    },
    right: |reward, next, action, gamma, end| reward + gamma * following(end, next[action]),
    checks: &[
        |Trial { function, .. }, sheet| {
            for (reward, next, action, gamma, end, expected) in [
                (1.0, &[2.0, 6.0][..], 0, 0.5, End::Running, 2.0),
                (1.0, &[2.0, 6.0], 1, 0.5, End::Running, 4.0),
                (1.0, &[2.0, 6.0], 1, 0.5, End::Terminated, 1.0),
                (1.0, &[2.0, 6.0], 0, 0.5, End::Truncated, 2.0),
                (-1.0, &[10.0], 0, 1.0, End::Running, 9.0),
                (2.0, &[-4.0, -8.0], 1, 0.5, End::Running, -2.0),
            ] {
                let place = format!(
                    "sarsa_target(reward = {reward}, next_values = {}, next_action = {action}, gamma = {gamma}, end = {end:?})",
                    list(next)
                );
                sheet.row(place, expected, || function(reward, next, action, gamma, end));
            }
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 41);
            for _ in 0..50 {
                let n = 2 + stream.below(3) as usize;
                let (reward, next, action) = (number(&mut stream), numbers(&mut stream, n), stream.below(n as u32) as usize);
                let (gamma, end) = (share(&mut stream), one_of(&mut stream, &End::ALL));
                let place = format!(
                    "sarsa_target(reward = {reward}, next_values = {}, next_action = {action}, gamma = {gamma}, end = {end:?})",
                    list(&next)
                );
                sheet.row(place, right(reward, &next, action, gamma, end), || function(reward, &next, action, gamma, end));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "the best next action counts instead of the one that was chosen: that is Q-learning",
            section: "q-learning",
            function: |reward, next, _, gamma, end| reward + gamma * following(end, largest(next)),
        },
        Mistake {
            says: "the value of the next state counts after the end of the episode",
            section: "sarsa",
            function: |reward, next, action, gamma, _| reward + gamma * next[action],
        },
        Mistake {
            says: "an episode that was cut off counts as one that ended in the world",
            section: "sarsa",
            function: |reward, next, action, gamma, end| reward + if end == End::Running { gamma * next[action] } else { 0.0 },
        },
        Mistake {
            says: "gamma is left out",
            section: "sarsa",
            function: |reward, next, action, _, end| reward + following(end, next[action]),
        },
        Mistake {
            says: "gamma multiplies the reward, too",
            section: "sarsa",
            function: |reward, next, action, gamma, end| gamma * (reward + following(end, next[action])),
        },
    ],
};

// 4.2

/// The mean of the values of the next state's actions, the best of which has the weight `greedy`, and all of them together `random`.
fn mixed(next: &[f64], greedy: f64, random: f64) -> f64 {
    greedy * largest(next) + random * mean(next)
}

static EXPECTED_SARSA_TARGET: Exercise<ExpectedSarsaTarget> = Exercise {
    about: About {
        number: "4.2",
        name: "expected_sarsa_target",
        title: "the mean over an epsilon-greedy policy",
        section: "expected-sarsa",
        hints: &[
            "The policy takes the best action with probability 1 - epsilon, and otherwise any of the k actions, the best one included.",
            "The mean is (1 - epsilon) times the largest value, plus epsilon times the mean of all values.",
            "The largest: next_values.iter().copied().fold(f64::NEG_INFINITY, f64::max).",
        ],
    },
    right: |reward, next, epsilon, gamma, end| reward + gamma * following(end, mixed(next, 1.0 - epsilon, epsilon)),
    checks: &[
        |Trial { function, .. }, sheet| {
            for (reward, next, epsilon, gamma, end, expected) in [
                (1.0, &[2.0, 6.0][..], 0.5, 0.5, End::Running, 3.5), // 1 + 1/2 (1/2 6 + 1/2 4)
                (1.0, &[2.0, 6.0], 0.0, 0.5, End::Running, 4.0),
                (1.0, &[2.0, 6.0], 1.0, 0.5, End::Running, 3.0),
                (0.0, &[3.0, 0.0, 0.0], 0.3, 1.0, End::Running, 2.4), // 0.7 3 + 0.3 1
                (0.0, &[-1.0, -3.0], 0.2, 1.0, End::Truncated, -1.2),
                (7.0, &[2.0, 6.0], 0.5, 0.5, End::Terminated, 7.0),
                (0.0, &[5.0, 5.0], 0.4, 1.0, End::Running, 5.0),
            ] {
                let place = format!(
                    "expected_sarsa_target(reward = {reward}, next_values = {}, epsilon = {epsilon}, gamma = {gamma}, end = {end:?})",
                    list(next)
                );
                sheet.row(place, expected, || function(reward, next, epsilon, gamma, end));
            }
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 42);
            for _ in 0..50 {
                let n = 2 + stream.below(3) as usize;
                let (reward, next, epsilon) = (number(&mut stream), numbers(&mut stream, n), f64::from(stream.below(11)) / 10.0);
                let (gamma, end) = (share(&mut stream), one_of(&mut stream, &End::ALL));
                let place = format!(
                    "expected_sarsa_target(reward = {reward}, next_values = {}, epsilon = {epsilon}, gamma = {gamma}, end = {end:?})",
                    list(&next)
                );
                sheet.row(place, right(reward, &next, epsilon, gamma, end), || function(reward, &next, epsilon, gamma, end));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "the best action is left out of the exploration: its probability is 1 - epsilon + epsilon / k",
            section: "expected-sarsa",
            function: |reward, next, epsilon, gamma, end| {
                let k = next.len() as f64;
                reward + gamma * following(end, mixed(next, 1.0 - epsilon - epsilon / k, epsilon))
            },
        },
        Mistake {
            says: "the random action is never the best one: its probability is shared by the k - 1 others only",
            section: "expected-sarsa",
            function: |reward, next, epsilon, gamma, end| {
                let others = (next.iter().sum::<f64>() - largest(next)) / (next.len() as f64 - 1.0);
                reward + gamma * following(end, (1.0 - epsilon) * largest(next) + epsilon * others)
            },
        },
        Mistake {
            says: "all actions are equally likely: the mean of a random policy",
            section: "expected-sarsa",
            function: |reward, next, _, gamma, end| reward + gamma * following(end, mean(next)),
        },
        Mistake {
            says: "only the best action counts: that is Q-learning",
            section: "q-learning",
            function: |reward, next, _, gamma, end| reward + gamma * following(end, largest(next)),
        },
        Mistake {
            says: "epsilon and 1 - epsilon are exchanged",
            section: "expected-sarsa",
            function: |reward, next, epsilon, gamma, end| reward + gamma * following(end, mixed(next, epsilon, 1.0 - epsilon)),
        },
        Mistake {
            says: "the value of the next state counts after the end of the episode",
            section: "sarsa",
            function: |reward, next, epsilon, gamma, _| reward + gamma * mixed(next, 1.0 - epsilon, epsilon),
        },
        Mistake {
            says: "an episode that was cut off counts as one that ended in the world",
            section: "sarsa",
            function: |reward, next, epsilon, gamma, end| {
                reward + if end == End::Running { gamma * mixed(next, 1.0 - epsilon, epsilon) } else { 0.0 }
            },
        },
    ],
};

// 4.3

/// Moves the value of the step's action to `target`.
fn moved(values: &mut [Vec<f64>], step: Step, alpha: f64, target: f64) {
    let value = &mut values[step.state][step.action];
    *value += alpha * (target - *value);
}

fn after_step(function: QLearning, values: &[Vec<f64>], step: Step, alpha: f64, gamma: f64) -> Vec<Vec<f64>> {
    let mut values = values.to_vec();
    function(&mut values, step, alpha, gamma);
    values
}

fn row_of_step(sheet: &mut Sheet, function: QLearning, values: &[Vec<f64>], step: Step, alpha: f64, gamma: f64, expected: Vec<Vec<f64>>) {
    let place = format!("the values after q_learning(values = {}, {step:?}, alpha = {alpha}, gamma = {gamma})", rows(values));
    sheet.row(place, expected, || after_step(function, values, step, alpha, gamma));
}

/// Draws a step in a world with three states.
fn any_step(stream: &mut Stream, actions: usize) -> Step {
    let state = stream.below(3) as usize;
    let next = (state + 1 + stream.below(2) as usize) % 3;
    let (action, reward) = (stream.below(actions as u32) as usize, number(stream));
    Step { state, action, reward, next, end: one_of(stream, &End::ALL) }
}

/// Trains on CliffWalking with epsilon 0.1. Returns the value of the best action at the start, whose exact value is -13.
fn value_of_the_start(function: QLearning, seed: u64) -> f64 {
    let cliff = CliffWalking::deterministic();
    let mut random = Stream::new(seed, Purpose::Action, 43);
    let mut values = vec![vec![0.0; 4]; 48];
    for _ in 0..300 {
        let mut state = 36;
        // a wrong function may never find the goal
        for _ in 0..1000 {
            let action = if random.unit_f64() < 0.1 { random.below(4) as usize } else { best(&values[state]) };
            let outcome = cliff.table().sample(state, action, &mut random);
            let end = if outcome.terminated { End::Terminated } else { End::Running };
            let next = outcome.next as usize;
            function(&mut values, Step { state, action, reward: outcome.reward, next, end }, 0.5, 1.0);
            state = next;
            if outcome.terminated {
                break;
            }
        }
    }
    largest(&values[36])
}

static Q_LEARNING: Exercise<QLearning> = Exercise {
    about: About {
        number: "4.3",
        name: "q_learning",
        title: "an update of the table",
        section: "q-learning",
        hints: &[
            "The target is the reward plus gamma times the largest value of the next state's actions, values[step.next].",
            "Only one number changes: values[step.state][step.action] moves towards the target by the share alpha of the difference.",
            "After End::Terminated the target is the reward alone, whatever the row of the next state says.",
        ],
    },
    right: |values, step, alpha, gamma| {
        let target = step.reward + gamma * following(step.end, largest(&values[step.next]));
        moved(values, step, alpha, target);
    },
    checks: &[
        |Trial { function, .. }, sheet| {
            let values = [vec![4.0, 8.0], vec![2.0, 6.0]];
            let step = Step { state: 0, action: 0, reward: 1.0, next: 1, end: End::Running };
            // the target is 1 + 1/2 6 = 4; then 1 + 6 = 7
            row_of_step(sheet, function, &values, Step { action: 1, ..step }, 0.5, 0.5, vec![vec![4.0, 6.0], vec![2.0, 6.0]]);
            row_of_step(sheet, function, &values, step, 0.5, 1.0, vec![vec![5.5, 8.0], vec![2.0, 6.0]]);
            row_of_step(sheet, function, &values, step, 1.0, 1.0, vec![vec![7.0, 8.0], vec![2.0, 6.0]]);
            row_of_step(sheet, function, &values, Step { end: End::Terminated, ..step }, 0.5, 1.0, vec![vec![2.5, 8.0], vec![2.0, 6.0]]);
            row_of_step(sheet, function, &values, Step { end: End::Truncated, ..step }, 0.5, 1.0, vec![vec![5.5, 8.0], vec![2.0, 6.0]]);
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 43);
            let actions = 2 + stream.below(2) as usize;
            let mut values: Vec<Vec<f64>> = (0..3).map(|_| numbers(&mut stream, actions)).collect();
            for _ in 0..40 {
                let step = any_step(&mut stream, actions);
                let (alpha, gamma) = (share(&mut stream), share(&mut stream));
                let expected = after_step(right, &values, step, alpha, gamma);
                row_of_step(sheet, function, &values, step, alpha, gamma, expected);
                right(&mut values, step, alpha, gamma);
            }
        },
        |Trial { function, seed, .. }, sheet| {
            let place = "20 trainings on CliffWalking, 300 episodes each: the mean value of the best action at the start";
            let expected = "between -13.1 and -12.9, for the way takes 13 steps";
            let mean = (0..20).map(|n| value_of_the_start(function, seed.wrapping_add(n))).sum::<f64>() / 20.0;
            sheet.claim(place, expected, (mean + 13.0).abs() < 0.1, format!("{mean:.3}"));
        },
    ],
    mistakes: &[
        Mistake {
            says: "the maximum is over the actions of the state itself, not of the next one",
            section: "q-learning",
            function: |values, step, alpha, gamma| {
                let target = step.reward + gamma * following(step.end, largest(&values[step.state]));
                moved(values, step, alpha, target);
            },
        },
        Mistake {
            says: "the mean of the next state's values is taken instead of the largest",
            section: "q-learning",
            function: |values, step, alpha, gamma| {
                let target = step.reward + gamma * following(step.end, mean(&values[step.next]));
                moved(values, step, alpha, target);
            },
        },
        Mistake {
            says: "the next state is valued by the action that was just taken",
            section: "q-learning",
            function: |values, step, alpha, gamma| {
                let target = step.reward + gamma * following(step.end, values[step.next][step.action]);
                moved(values, step, alpha, target);
            },
        },
        Mistake {
            says: "the value of the next state counts after the end of the episode",
            section: "q-learning",
            function: |values, step, alpha, gamma| {
                let target = step.reward + gamma * largest(&values[step.next]);
                moved(values, step, alpha, target);
            },
        },
        Mistake {
            says: "an episode that was cut off counts as one that ended in the world",
            section: "q-learning",
            function: |values, step, alpha, gamma| {
                let after = if step.end == End::Running { largest(&values[step.next]) } else { 0.0 };
                moved(values, step, alpha, step.reward + gamma * after);
            },
        },
        Mistake {
            says: "the value is replaced by the target: the step size is left out",
            section: "q-learning",
            function: |values, step, _, gamma| {
                let target = step.reward + gamma * following(step.end, largest(&values[step.next]));
                moved(values, step, 1.0, target);
            },
        },
        Mistake {
            says: "a share of the target is added, and the old value is not subtracted",
            section: "q-learning",
            function: |values, step, alpha, gamma| {
                let target = step.reward + gamma * following(step.end, largest(&values[step.next]));
                values[step.state][step.action] += alpha * target;
            },
        },
        Mistake {
            says: "gamma is left out",
            section: "q-learning",
            function: |values, step, alpha, _| {
                let target = step.reward + following(step.end, largest(&values[step.next]));
                moved(values, step, alpha, target);
            },
        },
    ],
};

// 4.4

fn row_of_double(
    sheet: &mut Sheet,
    function: DoubleQLearning,
    [learning, other]: [&[Vec<f64>]; 2],
    (step, alpha, gamma): (Step, f64, f64),
    expected: Vec<Vec<f64>>,
) {
    let place = format!(
        "learning after double_q_learning(learning = {}, other = {}, {step:?}, alpha = {alpha}, gamma = {gamma})",
        rows(learning),
        rows(other)
    );
    sheet.row(place, expected, || after_double(function, [learning, other], (step, alpha, gamma)));
}

fn after_double(function: DoubleQLearning, [learning, other]: [&[Vec<f64>]; 2], (step, alpha, gamma): (Step, f64, f64)) -> Vec<Vec<f64>> {
    let mut learning = learning.to_vec();
    function(&mut learning, other, step, alpha, gamma);
    learning
}

static DOUBLE_Q_LEARNING: Exercise<DoubleQLearning> = Exercise {
    about: About {
        number: "4.4",
        name: "double_q_learning",
        title: "two tables: one chooses, one values",
        section: "double-q-learning",
        hints: &[
            "The table that learns chooses the best action of the next state. The other table says what that action is worth.",
            "The target is reward + gamma * other[next][a], where a is the index of the largest number in learning[next].",
            "learning[step.state][step.action] moves towards the target by the share alpha of the difference; the other table stays.",
        ],
    },
    right: |learning, other, step, alpha, gamma| {
        let target = step.reward + gamma * following(step.end, other[step.next][best(&learning[step.next])]);
        moved(learning, step, alpha, target);
    },
    checks: &[
        |Trial { function, .. }, sheet| {
            let (learning, other) = ([vec![4.0, 8.0], vec![2.0, 6.0]], [vec![0.0, 1.0], vec![9.0, -2.0]]);
            let tables: [&[Vec<f64>]; 2] = [&learning, &other];
            let step = Step { state: 0, action: 0, reward: 1.0, next: 1, end: End::Running };
            // the best action is 1, its value in the other table -2, the target 1 - 2 = -1
            row_of_double(sheet, function, tables, (step, 0.5, 1.0), vec![vec![1.5, 8.0], vec![2.0, 6.0]]);
            row_of_double(sheet, function, tables, (Step { action: 1, ..step }, 0.5, 0.5), vec![vec![4.0, 4.0], vec![2.0, 6.0]]);
            row_of_double(sheet, function, tables, (Step { end: End::Terminated, ..step }, 0.5, 1.0), vec![vec![2.5, 8.0], vec![2.0, 6.0]]);
            row_of_double(sheet, function, tables, (Step { end: End::Truncated, ..step }, 0.5, 1.0), vec![vec![1.5, 8.0], vec![2.0, 6.0]]);
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 44);
            for _ in 0..40 {
                let mut table = || -> Vec<Vec<f64>> { (0..3).map(|_| distinct(&mut stream, 3)).collect() };
                let (learning, other) = (table(), table());
                let step = any_step(&mut stream, 3);
                let how = (step, share(&mut stream), share(&mut stream));
                row_of_double(sheet, function, [&learning, &other], how, after_double(right, [&learning, &other], how));
            }
        },
        |Trial { function, seed, .. }, sheet| {
            let mut stream = stream(seed, 45);
            let step = Step { state: 0, action: 0, reward: 0.0, next: 1, end: End::Running };
            let mut noise = || vec![vec![0.0; 10], (0..10).map(|_| f64::from(stream.normal())).collect()];
            let mut changed = 0.0;
            for _ in 0..5000 {
                let (mut learning, other) = (noise(), noise());
                function(&mut learning, &other, step, 1.0, 1.0);
                changed += learning[0][0] / 5000.0;
            }
            let place = "5000 targets with ten actions whose values are 0 and whose estimates have a noise of variance 1: their mean";
            sheet.claim(place, "between -0.1 and 0.1: no bias", changed.abs() < 0.1, format!("{changed:.3}"));
        },
    ],
    mistakes: &[
        Mistake {
            says: "the table that learns also values its own choice: that is Q-learning, with its bias",
            section: "double-q-learning",
            function: |learning, _, step, alpha, gamma| {
                let target = step.reward + gamma * following(step.end, largest(&learning[step.next]));
                moved(learning, step, alpha, target);
            },
        },
        Mistake {
            says: "the other table chooses, too: its largest value is taken",
            section: "double-q-learning",
            function: |learning, other, step, alpha, gamma| {
                let target = step.reward + gamma * following(step.end, largest(&other[step.next]));
                moved(learning, step, alpha, target);
            },
        },
        Mistake {
            says: "the tables are exchanged: the other one chooses, and the one that learns values",
            section: "double-q-learning",
            function: |learning, other, step, alpha, gamma| {
                let target = step.reward + gamma * following(step.end, learning[step.next][best(&other[step.next])]);
                moved(learning, step, alpha, target);
            },
        },
        Mistake {
            says: "the difference is to the other table's value of the pair, not to the value that moves",
            section: "double-q-learning",
            function: |learning, other, step, alpha, gamma| {
                let target = step.reward + gamma * following(step.end, other[step.next][best(&learning[step.next])]);
                learning[step.state][step.action] += alpha * (target - other[step.state][step.action]);
            },
        },
        Mistake {
            says: "the value of the next state counts after the end of the episode",
            section: "q-learning",
            function: |learning, other, step, alpha, gamma| {
                let target = step.reward + gamma * other[step.next][best(&learning[step.next])];
                moved(learning, step, alpha, target);
            },
        },
        Mistake {
            says: "an episode that was cut off counts as one that ended in the world",
            section: "q-learning",
            function: |learning, other, step, alpha, gamma| {
                let after = if step.end == End::Running { other[step.next][best(&learning[step.next])] } else { 0.0 };
                moved(learning, step, alpha, step.reward + gamma * after);
            },
        },
    ],
};
