//! Compares dynamic programming with solved linear systems and the textbook's numbers, and learning updates with their fixed points.
//!
//! `scripts/golden/gymnasium_tabular.py` writes the golden file by policy iteration with NumPy on Gymnasium's transition tables.

use gradus_agents::tabular::{
    ActionValues, Experience, Transition, best_actions, deterministic, evaluate_within, mean_over_starts, policy_evaluation, q_learning,
    sarsa, td0, value_iteration,
};
use gradus_base::random::{Purpose, Stream};
use gradus_envs::tabular::{CliffWalking, FrozenLake, Outcome, Table, Tabular, Taxi, random_walk};
use serde_json::Value;

fn first_best(table: &Table, values: &[f64], gamma: f64) -> Vec<f64> {
    let chosen: Vec<usize> = best_actions(table, values, gamma).iter().map(|best| best[0]).collect();
    deterministic(&chosen, table.actions())
}

#[test]
fn value_iteration_agrees_with_solved_linear_systems() {
    let text = std::fs::read_to_string(gradus_testing::golden::path("tabular.json")).unwrap();
    let golden: Vec<Value> = serde_json::from_str(&text).unwrap();
    let lake = |map: &[&str], rate| FrozenLake::slippery(map, rate).unwrap();
    let worlds: [Box<dyn Tabular>; 8] = [
        Box::new(lake(&FrozenLake::MAP_4X4, FrozenLake::SUCCESS_RATE)),
        Box::new(lake(&FrozenLake::MAP_8X8, FrozenLake::SUCCESS_RATE)),
        Box::new(FrozenLake::deterministic(&FrozenLake::MAP_4X4).unwrap()),
        Box::new(lake(&FrozenLake::MAP_4X4, 0.7)),
        Box::new(CliffWalking::deterministic()),
        Box::new(CliffWalking::slippery()),
        Box::new(Taxi::dry()),
        Box::new(Taxi::rainy(Taxi::RAINY_PROBABILITY).unwrap()),
    ];
    assert_eq!(golden.len(), worlds.len());
    for (golden, world) in golden.iter().zip(worlds) {
        let (table, name) = (world.table(), format!("{} {}", golden["id"], golden["kwargs"]));
        let gamma = golden["gamma"].as_f64().unwrap();
        let found = value_iteration(table, gamma, 1e-11, 10_000);
        assert!(found.change <= 1e-11 && found.sweeps > 2, "{name}: {} sweeps", found.sweeps);
        for (state, (ours, theirs)) in found.values.iter().zip(golden["values"].as_array().unwrap()).enumerate() {
            let theirs = theirs.as_f64().unwrap();
            assert!((ours - theirs).abs() < 2e-9, "{name}: value of state {state}: expected {theirs}, got {ours}");
        }
        let policy = first_best(table, &found.values, gamma);
        let evaluated = policy_evaluation(table, &policy, gamma, 1e-11, 10_000);
        let off = evaluated.values.iter().zip(&found.values).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(off < 2e-9, "{name}: the values of the best policy differ from the optimal values by {off}");

        let horizon = golden["within"]["horizon"].as_u64().unwrap() as usize;
        let within = mean_over_starts(table, &evaluate_within(table, &policy, 1.0, horizon));
        let expected = golden["within"]["policy"].as_f64().unwrap();
        assert!((within - expected).abs() < 1e-9, "{name}: mean return within {horizon} steps: expected {expected}, got {within}");
        let forever = mean_over_starts(table, &policy_evaluation(table, &policy, 1.0, 1e-12, 20_000).values);
        let expected = golden["forever"].as_f64().unwrap();
        assert!((forever - expected).abs() < 1e-6, "{name}: mean return without a time limit: expected {expected}, got {forever}");
    }
}

/// In FrozenLake, the tested policy reaches the goal within 100 steps in a fraction of 0.7402 of the episodes, and without a time limit in
/// 14/17 = 0.8235. In CliffWalking, the shortest path has 13 steps. In Taxi, the highest mean return is 7.93.
#[test]
fn known_optima_are_found() {
    let lake = FrozenLake::slippery(&FrozenLake::MAP_4X4, FrozenLake::SUCCESS_RATE).unwrap();
    let table = lake.table();
    let policy = first_best(table, &value_iteration(table, 0.99, 1e-12, 10_000).values, 0.99);
    let limited = evaluate_within(table, &policy, 1.0, 100)[0];
    let forever = policy_evaluation(table, &policy, 1.0, 1e-14, 100_000).values[0];
    assert!((limited - 0.74016).abs() < 1e-5 && (forever - 14.0 / 17.0).abs() < 1e-9, "{limited}, {forever}");
    // this policy, which is optimal for gamma 0.99, is also optimal for gamma 1
    assert!(value_iteration(table, 1.0, 1e-14, 100_000).values[0] - forever < 1e-9);

    let cliff = CliffWalking::deterministic();
    let best = value_iteration(cliff.table(), 1.0, 0.0, 100);
    assert_eq!((best.values[36], best.values[24], best.values[0], best.change), (-13.0, -12.0, -14.0, 0.0));
    assert_eq!(best_actions(cliff.table(), &best.values, 1.0)[30], [1], "right, one row above the cliff");
    assert_eq!(best_actions(cliff.table(), &best.values, 1.0)[12], [1, 2], "right or down, two rows above the cliff");

    let taxi = Taxi::dry();
    let best = value_iteration(taxi.table(), 1.0, 0.0, 1000);
    let mean = mean_over_starts(taxi.table(), &best.values);
    assert!((mean - 7.93).abs() < 1e-9 && best.change == 0.0, "{mean}");
}

/// The textbook's example 4.1: the equiprobable random policy on a 4 x 4 grid, with reward -1 per step until the first or the last
/// cell is reached.
#[test]
fn policy_evaluation_gives_the_textbooks_gridworld() {
    let moved = |cell: usize, action: usize| match action {
        0 if cell >= 4 => cell - 4,
        1 if cell % 4 < 3 => cell + 1,
        2 if cell < 12 => cell + 4,
        3 if !cell.is_multiple_of(4) => cell - 1,
        _ => cell,
    };
    let is_corner = |cell: usize| cell == 0 || cell == 15;
    let outcome = |cell: usize, action: usize| {
        let next = if is_corner(cell) { cell } else { moved(cell, action) };
        let reward = if is_corner(cell) { 0.0 } else { -1.0 };
        vec![Outcome { probability: 1.0, next: next as u32, reward, terminated: is_corner(next) }]
    };
    let outcomes = (0..64).map(|pair| outcome(pair / 4, pair % 4)).collect();
    let table = Table::new(4, outcomes, (0..16).map(|cell| f64::from(u8::from(cell == 5))).collect()).unwrap();
    let random = vec![0.25; 64];
    let found = policy_evaluation(&table, &random, 1.0, 1e-12, 10_000);
    let expected = [0, -14, -20, -22, -14, -18, -20, -20, -20, -20, -18, -14, -22, -20, -14, 0];
    assert!(found.values.iter().zip(expected).all(|(v, e)| (v - f64::from(e)).abs() < 1e-8), "{:?}", found.values);
    // figure 4.1, k = 2 and k = 3: each sweep uses the values of the previous sweep
    let (two, three) = (evaluate_within(&table, &random, 1.0, 2), evaluate_within(&table, &random, 1.0, 3));
    assert_eq!((two[1], two[2], two[5]), (-1.75, -2.0, -2.0));
    assert_eq!((three[1], three[2], three[5]), (-2.4375, -2.9375, -2.875));
    assert_eq!(policy_evaluation(&table, &random, 1.0, 0.0, 3).sweeps, 3, "at most the given number of sweeps");
}

/// Example 6.2: the true values are 1/6 to 5/6, and TD(0) with step size 1/n^0.7 at a state's n-th visit converges to them.
#[test]
fn td0_predicts_the_random_walk() {
    let table = random_walk(5);
    let truth: Vec<f64> = (1..=5).map(|i| f64::from(i) / 6.0).collect();
    let exact = policy_evaluation(&table, &[1.0; 5], 1.0, 1e-13, 10_000).values;
    assert!(exact.iter().zip(&truth).all(|(v, t)| (v - t).abs() < 1e-9), "{exact:?}");

    let (mut values, mut visits) = ([0.5; 5], [0_u32; 5]);
    let mut stream = Stream::new(3, Purpose::Environment, 0);
    for _ in 0..50_000 {
        let mut state = table.sample_start(&mut stream) as usize;
        loop {
            let o = table.sample(state, 0, &mut stream);
            visits[state] += 1;
            let step = Transition { state, reward: o.reward, next: o.next as usize, terminated: o.terminated };
            td0(&mut values, step, f64::from(visits[state]).powf(-0.7), 1.0);
            state = o.next as usize;
            if o.terminated {
                break;
            }
        }
    }
    assert!(values.iter().zip(&truth).all(|(v, t)| (v - t).abs() < 0.02), "{values:?}");
}

/// If the environment is deterministic, the step size is 1, and all states and actions are visited in turn, Q-learning reaches the values
/// of value iteration.
#[test]
fn q_learning_converges_to_the_optimal_values() {
    let cliff = CliffWalking::deterministic();
    let table = cliff.table();
    let (mut q, best) = (ActionValues::new(48, 4, 0.0), value_iteration(table, 0.9, 1e-13, 1000).values);
    for _ in 0..60 {
        for (state, action) in (0..48).flat_map(|s| (0..4).map(move |a| (s, a))) {
            let Outcome { next, reward, terminated, .. } = table.outcomes(state, action)[0];
            q_learning(&mut q, Experience { state, action, reward, next: next as usize, terminated }, 1.0, 0.9);
        }
    }
    assert!((0..48).all(|state| (q.best(state) - best[state]).abs() < 1e-9));
    let policy = deterministic(&q.greedy(), 4);
    assert_eq!(evaluate_within(table, &policy, 1.0, 100)[36], -13.0);
}

/// For a fixed policy, Sarsa gives the same values as policy evaluation.
#[test]
fn sarsa_converges_to_its_policys_values() {
    let cliff = CliffWalking::deterministic();
    let table = cliff.table();
    let up_and_around: Vec<usize> = (0..48)
        .map(|cell| {
            if cell % 12 == 11 {
                2
            } else if cell >= 24 {
                0
            } else {
                1
            }
        })
        .collect();
    let values = policy_evaluation(table, &deterministic(&up_and_around, 4), 0.9, 1e-13, 1000).values;
    let mut q = ActionValues::new(48, 4, 0.0);
    for _ in 0..60 {
        for (state, action) in (0..48).flat_map(|s| (0..4).map(move |a| (s, a))) {
            let Outcome { next, reward, terminated, .. } = table.outcomes(state, action)[0];
            let step = Experience { state, action, reward, next: next as usize, terminated };
            sarsa(&mut q, step, up_and_around[next as usize], 1.0, 0.9);
        }
    }
    assert!((0..48).all(|state| (q.row(state)[up_and_around[state]] - values[state]).abs() < 1e-9));
    assert!(q.best(36) >= values[36]);
}

/// In f64, 0.5 x 0.2 + 0.5 x 0.4 differs from 0.3 by a rounding error, but the first two actions are equally good.
#[test]
fn rounding_does_not_break_ties() {
    let end = |probability, reward| Outcome { probability, next: 0, reward, terminated: true };
    let outcomes = vec![vec![end(0.5, 0.2), end(0.5, 0.4)], vec![end(1.0, 0.3)], vec![end(1.0, 0.3 - 1e-6)]];
    let table = Table::new(3, outcomes, vec![1.0]).unwrap();
    assert_eq!(best_actions(&table, &[0.0], 1.0), [[0, 1]]);
}

#[test]
fn greedy_takes_the_first_of_equal_actions() {
    let mut q = ActionValues::new(3, 3, 1.0);
    (*q.at_mut(1, 2), *q.at_mut(2, 0)) = (2.0, -1.0);
    assert_eq!((q.greedy(), q.best(1), q.states(), q.actions()), (vec![0, 2, 1], 2.0, 3, 3));
}
