//! Homework 1: bandits and tables.

use gradus_envs::tabular::Table;

use crate::exercise::{About, Exercise, Mistake, Trial};
use crate::inputs::{number, numbers, one_of, share, stream};
use crate::lesson_2::{backup, outcomes};
use crate::lessons::lesson;
use crate::sheet::{Sheet, list};
use crate::step::{End, Step, following};
use crate::worlds;

/// Returns the mean and the standard deviation of the posterior from those of the prior, the rewards, and the noise.
pub type GaussianPosterior = fn(f64, f64, &[f64], f64) -> (f64, f64);
/// Returns the index of an arm from its mean reward, its number of pulls, and the level.
pub type KlUcb = fn(f64, f64, f64) -> f64;
/// Returns the best policy.
pub type PolicyIteration = fn(&Table, f64) -> Vec<usize>;
/// Changes the values along an episode: values, steps, step size, gamma, lambda.
pub type TdLambda = fn(&mut [f64], &[Step], f64, f64, f64);

lesson!("h1", "bandits and tables", {
    gaussian_posterior: GaussianPosterior = GAUSSIAN_POSTERIOR,
    kl_ucb: KlUcb = KL_UCB,
    policy_iteration: PolicyIteration = POLICY_ITERATION,
    td_lambda: TdLambda = TD_LAMBDA,
});

// h1.1

fn posterior(prior: (f64, f64), precision: f64, sum: f64) -> (f64, f64) {
    let own = 1.0 / (prior.1 * prior.1);
    ((own * prior.0 + sum) / (own + precision), (own + precision).recip().sqrt())
}

fn row_of_posterior(sheet: &mut Sheet, function: GaussianPosterior, prior: (f64, f64), rewards: &[f64], noise: f64, expected: (f64, f64)) {
    let place = format!("gaussian_posterior(mean = {}, std = {}, rewards = {}, noise = {noise})", prior.0, prior.1, list(rewards));
    sheet.row(place, vec![expected.0, expected.1], || {
        let (mean, std) = function(prior.0, prior.1, rewards, noise);
        vec![mean, std]
    });
}

static GAUSSIAN_POSTERIOR: Exercise<GaussianPosterior> = Exercise {
    about: About {
        number: "h1.1",
        name: "gaussian_posterior",
        title: "what Thompson sampling draws from",
        section: "thompson-sampling",
        hints: &[],
    },
    right: |mean, std, rewards, noise| {
        let precision = 1.0 / (noise * noise);
        posterior((mean, std), precision * rewards.len() as f64, precision * rewards.iter().sum::<f64>())
    },
    checks: &[
        |Trial { function, .. }, sheet| {
            row_of_posterior(sheet, function, (0.0, 1.0), &[2.0], 1.0, (1.0, 0.5_f64.sqrt()));
            row_of_posterior(sheet, function, (0.0, 1.0), &[], 1.0, (0.0, 1.0));
            row_of_posterior(sheet, function, (1.0, 1.0), &[4.0, 4.0, 4.0], 1.0, (3.25, 0.5));
            // the precisions 4 of the prior and 1/4 of each of the two rewards
            row_of_posterior(sheet, function, (1.0, 0.5), &[4.0, 6.0], 2.0, ((4.0 + 2.5) / 4.5, (1.0 / 4.5_f64).sqrt()));
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 1001);
            for _ in 0..40 {
                let n = stream.below(6) as usize;
                let (prior, rewards) = ((number(&mut stream), f64::from(1 + stream.below(20)) / 10.0), numbers(&mut stream, n));
                let noise = f64::from(1 + stream.below(20)) / 10.0;
                row_of_posterior(sheet, function, prior, &rewards, noise, right(prior.0, prior.1, &rewards, noise));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "the variance is returned and not its root",
            section: "thompson-sampling",
            function: |mean, std, rewards, noise| {
                let (mean, std) = (GAUSSIAN_POSTERIOR.right)(mean, std, rewards, noise);
                (mean, std * std)
            },
        },
        Mistake {
            says: "standard deviations are taken for variances",
            section: "thompson-sampling",
            function: |mean, std, rewards, noise| {
                let n = rewards.len() as f64;
                let precision = 1.0 / std + n / noise;
                ((mean / std + rewards.iter().sum::<f64>() / noise) / precision, precision.recip().sqrt())
            },
        },
        Mistake {
            says: "the prior is left out: it is the mean of the rewards, with its standard error",
            section: "thompson-sampling",
            function: |mean, std, rewards, noise| {
                let n = rewards.len() as f64;
                if rewards.is_empty() { (mean, std) } else { (rewards.iter().sum::<f64>() / n, noise / n.sqrt()) }
            },
        },
        Mistake {
            says: "the noise is taken to be 1",
            section: "thompson-sampling",
            function: |mean, std, rewards, _| (GAUSSIAN_POSTERIOR.right)(mean, std, rewards, 1.0),
        },
        Mistake {
            says: "the rewards count as one observation, their mean",
            section: "thompson-sampling",
            function: |mean, std, rewards, noise| {
                let n = rewards.len() as f64;
                if rewards.is_empty() {
                    (mean, std)
                } else {
                    (GAUSSIAN_POSTERIOR.right)(mean, std, &[rewards.iter().sum::<f64>() / n], noise)
                }
            },
        },
    ],
};

// h1.2

/// The divergence of two coins.
fn bernoulli_kl(p: f64, q: f64) -> f64 {
    let part = |p: f64, q: f64| if p == 0.0 { 0.0 } else { p * (p / q).ln() };
    part(p, q) + part(1.0 - p, 1.0 - q)
}

/// The largest q from `mean` to 1 with a divergence of at most `bound`.
fn largest_q(mean: f64, bound: f64, kl: fn(f64, f64) -> f64) -> f64 {
    let (mut low, mut high) = (mean, 1.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if kl(mean, middle) <= bound { low = middle } else { high = middle }
    }
    low
}

static KL_UCB: Exercise<KlUcb> = Exercise {
    about: About { number: "h1.2", name: "kl_ucb", title: "a bound that fits coins", section: "kl-ucb", hints: &[] },
    right: |mean, pulls, level| largest_q(mean, level / pulls, bernoulli_kl),
    checks: &[
        |Trial { function, .. }, sheet| {
            // the divergence from 0 to q is -ln(1 - q)
            for (mean, pulls, level, expected) in [
                (0.0, 1.0, 2.0_f64.ln(), 0.5),
                (0.0, 2.0, 0.2, 0.095_163), // 1 - e^-0.1
                (0.0, 4.0, 4.0 * 10.0_f64.ln(), 0.9),
                (1.0, 3.0, 1.0, 1.0),
                (0.5, 1.0, 0.5 * (25.0_f64 / 9.0).ln(), 0.9), // 1/2 ln(1/4 / 0.09)
            ] {
                let place = format!("kl_ucb(mean = {mean}, pulls = {pulls}, level = {level:.6})");
                sheet.row(place, expected, || function(mean, pulls, level));
            }
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 1002);
            for _ in 0..40 {
                let (mean, pulls) = (f64::from(stream.below(21)) / 20.0, f64::from(1 + stream.below(50)));
                let level = f64::from(1 + stream.below(70)) / 10.0;
                let place = format!("kl_ucb(mean = {mean}, pulls = {pulls}, level = {level})");
                sheet.row(place, right(mean, pulls, level), || function(mean, pulls, level));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "the bound is that of UCB, with the square root: Pinsker's inequality, which is wider",
            section: "kl-ucb",
            function: |mean, pulls, level| (mean + (level / (2.0 * pulls)).sqrt()).min(1.0),
        },
        Mistake {
            says: "the divergence is the wrong way round: from q to the mean",
            section: "kl-ucb",
            function: |mean, pulls, level| largest_q(mean, level / pulls, |p, q| bernoulli_kl(q, p)),
        },
        Mistake {
            says: "the number of pulls is left out",
            section: "kl-ucb",
            function: |mean, _, level| largest_q(mean, level, bernoulli_kl),
        },
        Mistake {
            says: "the number of pulls multiplies the level",
            section: "kl-ucb",
            function: |mean, pulls, level| largest_q(mean, level * pulls, bernoulli_kl),
        },
        Mistake {
            says: "the second term of the divergence, that of the other side of the coin, is missing",
            section: "kl-ucb",
            function: |mean, pulls, level| largest_q(mean, level / pulls, |p, q| if p == 0.0 { 0.0 } else { p * (p / q).ln() }),
        },
    ],
};

// h1.3

fn actions_of(table: &Table, values: &[f64], state: usize, gamma: f64) -> Vec<f64> {
    (0..table.actions()).map(|action| backup(table, values, state, action, gamma)).collect()
}

fn best(values: &[f64]) -> usize {
    (0..values.len()).fold(0, |best, i| if values[i] > values[best] + 1e-9 { i } else { best })
}

/// The values of the best policy, by many sweeps.
fn best_values(table: &Table, gamma: f64) -> Vec<f64> {
    let mut values = vec![0.0; table.states()];
    for _ in 0..3000 {
        values = (0..table.states()).map(|s| actions_of(table, &values, s, gamma).into_iter().fold(f64::NEG_INFINITY, f64::max)).collect();
    }
    values
}

fn greedy(table: &Table, values: &[f64], gamma: f64) -> Vec<usize> {
    (0..table.states()).map(|s| best(&actions_of(table, values, s, gamma))).collect()
}

/// Whether the best action of every state is better than the others by more than rounding.
fn is_clear(table: &Table, gamma: f64) -> bool {
    let values = best_values(table, gamma);
    (0..table.states()).all(|s| {
        let all = actions_of(table, &values, s, gamma);
        let first = best(&all);
        all.iter().enumerate().all(|(action, value)| action == first || all[first] - value > 1e-3)
    })
}

fn row_of_policy(sheet: &mut Sheet, function: PolicyIteration, (what, table): (&str, &Table), gamma: f64, expected: &[usize]) {
    let numbers = |policy: &[usize]| -> Vec<f64> { policy.iter().map(|a| *a as f64).collect() };
    sheet.row(format!("policy_iteration(table of {what}, gamma = {gamma})"), numbers(expected), || numbers(&function(table, gamma)));
}

static POLICY_ITERATION: Exercise<PolicyIteration> = Exercise {
    about: About { number: "h1.3", name: "policy_iteration", title: "evaluate, improve, repeat", section: "policy-iteration", hints: &[] },
    right: |table, gamma| greedy(table, &best_values(table, gamma), gamma),
    checks: &[
        |Trial { function, .. }, sheet| {
            let table = worlds::two_states();
            let pairs = [(0, 0), (0, 1), (1, 0), (1, 1)];
            let what = pairs.map(|(s, a)| format!("state {s}, action {a}: {}", outcomes(&table, s, a))).join("; ");
            let what = format!("two states: {what}");
            row_of_policy(sheet, function, (&what, &table), 0.5, &[0, 0]);
            row_of_policy(sheet, function, (&what, &table), 0.9, &[0, 0]);
            // the next reward alone: 3 against 1
            row_of_policy(sheet, function, (&what, &table), 0.0, &[1, 0]);
            let what = "a corridor of 30 states, actions left and right: a step costs 1, and right in the last state gives 10 and ends";
            row_of_policy(sheet, function, (what, &worlds::corridor()), 0.95, &[1; 30]);
        },
        |Trial { function, seed, .. }, sheet| {
            let mut stream = stream(seed, 1003);
            let mut found = 0;
            while found < 8 {
                let (table, gamma) = (worlds::random(&mut stream), f64::from(1 + stream.below(18)) / 20.0);
                if is_clear(&table, gamma) {
                    found += 1;
                    let expected = (POLICY_ITERATION.right)(&table, gamma);
                    row_of_policy(sheet, function, ("a random world", &table), gamma, &expected);
                }
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "it is the policy that is greedy for the values of the first policy: one round, and no repetition",
            section: "policy-iteration",
            function: |table, gamma| {
                let mut values = vec![0.0; table.states()];
                for _ in 0..3000 {
                    values = (0..table.states()).map(|s| backup(table, &values, s, 0, gamma)).collect();
                }
                greedy(table, &values, gamma)
            },
        },
        Mistake {
            says: "it stops after a number of rounds, although policies still change",
            section: "policy-iteration",
            function: |table, gamma| {
                let mut policy = vec![0; table.states()];
                for _ in 0..4 {
                    let mut values = vec![0.0; table.states()];
                    for _ in 0..3000 {
                        values = (0..table.states()).map(|s| backup(table, &values, s, policy[s], gamma)).collect();
                    }
                    policy = greedy(table, &values, gamma);
                }
                policy
            },
        },
        Mistake {
            says: "it is greedy for the next reward alone",
            section: "policy-iteration",
            function: |table, _| greedy(table, &vec![0.0; table.states()], 0.0),
        },
        Mistake {
            says: "the worst action is chosen",
            section: "policy-iteration",
            function: |table, gamma| {
                let values = best_values(table, gamma);
                let worst = |s: usize| actions_of(table, &values, s, gamma).iter().map(|v| -v).collect::<Vec<_>>();
                (0..table.states()).map(|s| best(&worst(s))).collect()
            },
        },
        Mistake {
            says: "the value of the next state counts after the end of the episode",
            section: "policy-iteration",
            function: |table, gamma| {
                let of = |values: &[f64], s: usize, a: usize| -> f64 {
                    table.outcomes(s, a).iter().map(|o| o.probability * (o.reward + gamma * values[o.next as usize])).sum()
                };
                let all = |values: &[f64], s: usize| -> Vec<f64> { (0..table.actions()).map(|a| of(values, s, a)).collect() };
                let mut values = vec![0.0; table.states()];
                for _ in 0..1000 {
                    values = (0..table.states()).map(|s| all(&values, s).into_iter().fold(f64::NEG_INFINITY, f64::max)).collect();
                }
                (0..table.states()).map(|s| best(&all(&values, s))).collect()
            },
        },
    ],
};

// h1.4

/// TD(lambda) with traces: `trace` gives the new trace of a state from the old one and whether the state is visited now.
fn traced(
    values: &mut [f64],
    steps: &[Step],
    (alpha, gamma): (f64, f64),
    trace: impl Fn(f64, bool) -> f64,
    value_after: fn(End, f64) -> f64,
) {
    let mut traces = vec![0.0; values.len()];
    for step in steps {
        let error = step.reward + gamma * value_after(step.end, values[step.next]) - values[step.state];
        for (state, e) in traces.iter_mut().enumerate() {
            *e = trace(*e, state == step.state);
            values[state] += alpha * error * *e;
        }
    }
}

fn one(condition: bool) -> f64 {
    f64::from(u8::from(condition))
}

fn after(function: TdLambda, values: &[f64], steps: &[Step], [alpha, gamma, lambda]: [f64; 3]) -> Vec<f64> {
    let mut values = values.to_vec();
    function(&mut values, steps, alpha, gamma, lambda);
    values
}

fn row_of_episode(sheet: &mut Sheet, function: TdLambda, values: &[f64], steps: &[Step], how: [f64; 3], expected: Vec<f64>) {
    let [alpha, gamma, lambda] = how;
    let shown: Vec<String> =
        steps.iter().map(|step| format!("{} -> {} with {}, {:?}", step.state, step.next, step.reward, step.end)).collect();
    let place = format!(
        "the values after td_lambda(values = {}, steps = [{}], alpha = {alpha}, gamma = {gamma}, lambda = {lambda})",
        list(values),
        shown.join("; ")
    );
    sheet.row(place, expected, || after(function, values, steps, how));
}

static TD_LAMBDA: Exercise<TdLambda> = Exercise {
    about: About { number: "h1.4", name: "td_lambda", title: "eligibility traces", section: "eligibility-traces", hints: &[] },
    right: |values, steps, alpha, gamma, lambda| {
        traced(values, steps, (alpha, gamma), |e, now| gamma * lambda * e + one(now), following);
    },
    checks: &[
        |Trial { function, .. }, sheet| {
            let step = |state, next, reward, end| Step { state, action: 0, reward, next, end };
            let walk = [step(0, 1, 0.0, End::Running), step(1, 2, 4.0, End::Terminated)];
            row_of_episode(sheet, function, &[0.0; 3], &walk, [0.5, 1.0, 1.0], vec![2.0, 2.0, 0.0]);
            row_of_episode(sheet, function, &[0.0; 3], &walk, [0.5, 1.0, 0.5], vec![1.0, 2.0, 0.0]);
            row_of_episode(sheet, function, &[0.0; 3], &walk, [0.5, 0.5, 0.5], vec![0.5, 2.0, 0.0]);
            // the error of the first step is 6 - 2 = 4, that of the second -6
            row_of_episode(
                sheet,
                function,
                &[2.0, 6.0, 8.0],
                &[step(0, 1, 0.0, End::Running), step(1, 2, 0.0, End::Terminated)],
                [0.5, 1.0, 0.0],
                vec![4.0, 3.0, 8.0],
            );
            // a state that is visited twice has the trace 1 + 1/2
            let twice = [step(0, 0, 0.0, End::Running), step(0, 1, 4.0, End::Truncated)];
            row_of_episode(sheet, function, &[0.0, 0.0], &twice, [0.5, 1.0, 0.5], vec![3.0, 0.0]);
        },
        |Trial { function, right, seed }, sheet| {
            let mut stream = stream(seed, 1004);
            for _ in 0..30 {
                let values = numbers(&mut stream, 3);
                let n = 1 + stream.below(6) as usize;
                let mut state = stream.below(3) as usize;
                let mut steps = Vec::new();
                for t in 0..n {
                    let next = stream.below(3) as usize;
                    let end = if t + 1 == n { one_of(&mut stream, &[End::Terminated, End::Truncated]) } else { End::Running };
                    steps.push(Step { state, action: 0, reward: number(&mut stream), next, end });
                    state = next;
                }
                let how = [share(&mut stream) / 2.0, share(&mut stream), share(&mut stream)];
                row_of_episode(sheet, function, &values, &steps, how, after(right, &values, &steps, how));
            }
        },
    ],
    mistakes: &[
        Mistake {
            says: "traces replace: a state that is visited again has the trace 1, and does not add 1 to it",
            section: "eligibility-traces",
            function: |values, steps, alpha, gamma, lambda| {
                traced(values, steps, (alpha, gamma), |e, now| if now { 1.0 } else { gamma * lambda * e }, following);
            },
        },
        Mistake {
            says: "traces fade by lambda alone, without gamma",
            section: "eligibility-traces",
            function: |values, steps, alpha, gamma, lambda| {
                traced(values, steps, (alpha, gamma), |e, now| lambda * e + one(now), following);
            },
        },
        Mistake {
            says: "there are no traces: it is TD(0)",
            section: "eligibility-traces",
            function: |values, steps, alpha, gamma, _| traced(values, steps, (alpha, gamma), |_, now| one(now), following),
        },
        Mistake {
            says: "the value of the next state counts after the end of the episode",
            section: "eligibility-traces",
            function: |values, steps, alpha, gamma, lambda| {
                traced(values, steps, (alpha, gamma), |e, now| gamma * lambda * e + one(now), |_, value| value);
            },
        },
        Mistake {
            says: "a truncated episode counts as one that ended",
            section: "eligibility-traces",
            function: |values, steps, alpha, gamma, lambda| {
                let value_after = |end: End, value: f64| if end == End::Running { value } else { 0.0 };
                traced(values, steps, (alpha, gamma), |e, now| gamma * lambda * e + one(now), value_after);
            },
        },
        Mistake {
            says: "the trace of the state is raised only after its value was changed",
            section: "eligibility-traces",
            function: |values, steps, alpha, gamma, lambda| {
                let mut traces = vec![0.0; values.len()];
                for step in steps {
                    let error = step.reward + gamma * following(step.end, values[step.next]) - values[step.state];
                    for (state, e) in traces.iter_mut().enumerate() {
                        values[state] += alpha * error * *e;
                        *e = gamma * lambda * *e + one(state == step.state);
                    }
                }
            },
        },
    ],
};
