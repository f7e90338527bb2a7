//! Q-learning comes close to the optimal value that value iteration finds, and Sarsa learns a safe path along the cliff.

use std::sync::Arc;

use gradus::agents::tabular::{best_actions, deterministic, evaluate_within, mean_over_starts, policy_evaluation, value_iteration};
use gradus::envs::tabular::{CliffWalking, FrozenLake, Outcome, Table, TableEnv, Tabular, Taxi};
use gradus::envs::{EnvSpec, TimeLimit, registry};
use gradus::nets::threads;
use gradus::textbook::tabular::{Episode, Learner, Method, Settings, StepSize};

const SEEDS: usize = 10;

/// Returns the worst shortfalls over the seeds. A shortfall is how far the greedy policy's exact value is below the optimum of value
/// iteration, relative to the optimum. The first number uses the discount of the training. The second number has no discount and counts
/// only the steps within the time limit.
fn worst_shortfalls(world: &str, table: &Table, limit: usize, settings: Settings, steps: u64) -> [f64; 2] {
    let gamma = settings.gamma;
    let values = value_iteration(table, gamma, 1e-11, 20_000).values;
    let chosen: Vec<usize> = best_actions(table, &values, gamma).iter().map(|best| best[0]).collect();
    let within = |policy: &[f64]| mean_over_starts(table, &evaluate_within(table, policy, 1.0, limit));
    let optimum = [mean_over_starts(table, &values), within(&deterministic(&chosen, table.actions()))];
    let world = registry::find(world).unwrap();
    let mut seeds: Vec<u64> = (0..SEEDS as u64).collect();
    let reached = threads::with_default(|| {
        threads::map(&mut seeds, |_, seed| {
            let mut learner = Learner::new(&world, settings, *seed).unwrap();
            learner.advance(steps);
            let policy = deterministic(&learner.values().greedy(), table.actions());
            // without discount, a policy that never ends an episode has a finite value only within the time limit
            let discounted = match gamma < 1.0 {
                true => mean_over_starts(table, &policy_evaluation(table, &policy, gamma, 1e-10, 5000).values),
                false => within(&policy),
            };
            [discounted, within(&policy)]
        })
    });
    [0, 1].map(|i| reached.iter().map(|reached| (optimum[i] - reached[i]) / optimum[i].abs()).fold(f64::NEG_INFINITY, f64::max))
}

#[test]
fn q_learning_comes_within_two_percent_of_the_optimum() {
    let lake = FrozenLake::slippery(&FrozenLake::MAP_4X4, FrozenLake::SUCCESS_RATE).unwrap();
    let (cliff, taxi) = (CliffWalking::deterministic(), Taxi::dry());
    let slow = Settings { alpha: StepSize::Visits { power: 0.6 }, epsilon: 1.0, epsilon_steps: 200_000, ..Settings::default() };
    let undiscounted = Settings { gamma: 1.0, ..Settings::default() };
    let shortfalls = [
        ("frozen-lake", worst_shortfalls("frozen-lake", lake.table(), 100, slow, 200_000)),
        ("cliff-walking", worst_shortfalls("cliff-walking", cliff.table(), 1000, undiscounted, 10_000)),
        ("taxi", worst_shortfalls("taxi", taxi.table(), 200, Settings::default(), 200_000)),
    ];
    for (world, [discounted, within]) in shortfalls {
        println!("{world}: the worst of {SEEDS} seeds falls short by {discounted:.4} with discount, {within:.4} within the time limit");
        assert!(discounted <= 0.02 && within <= 0.02, "{world}: falls short by {discounted} with discount, {within} within the time limit");
    }
}

/// The test repeats example 6.6 of the textbook and its figure. With a constant epsilon of 0.1, Q-learning learns the shortest path and
/// sometimes falls off the cliff. Sarsa learns a safer path and has higher returns during training.
#[test]
fn on_the_cliff_sarsa_has_higher_training_returns_and_q_learning_the_shorter_path() {
    let (world, cliff) = (registry::find("cliff-walking").unwrap(), CliffWalking::deterministic());
    let outcome = |method| {
        let settings = Settings { method, gamma: 1.0, ..Settings::default() };
        let (mut online, mut greedy) = (0.0, Vec::new());
        for seed in 0..40 {
            let mut learner = Learner::new(&world, settings, seed).unwrap();
            learner.advance_to_episode(500);
            assert_eq!(learner.steps(), learner.episodes().iter().map(|episode| episode.length).sum::<u64>());
            let late = &learner.episodes()[300..];
            online += late.iter().map(|episode| episode.episode_return).sum::<f64>() / (40 * late.len()) as f64;
            greedy.push(evaluate_within(cliff.table(), &deterministic(&learner.values().greedy(), 4), 1.0, 1000)[36]);
        }
        greedy.sort_by(f64::total_cmp);
        (online, greedy[20])
    };
    let ((sarsa, safe), (q, short)) = (outcome(Method::Sarsa), outcome(Method::QLearning));
    println!("online: Sarsa {sarsa:.1}, Q-learning {q:.1}; greedy: Sarsa {safe}, Q-learning {short}");
    assert!((-32.0..-20.0).contains(&sarsa) && (-60.0..-40.0).contains(&q), "online: Sarsa {sarsa}, Q-learning {q}");
    assert!(short == -13.0 && (-20.0..=-15.0).contains(&safe), "greedy: Sarsa {safe}, Q-learning {short}");
}

#[test]
fn training_is_reproducible_and_epsilon_changes_linearly() {
    let settings = Settings { epsilon: 0.9, final_epsilon: 0.1, epsilon_steps: 400, ..Settings::default() };
    let at = [0, 100, 200, 400, 9000].map(|step| settings.epsilon_at(step));
    assert!(at.iter().zip([0.9, 0.7, 0.5, 0.1, 0.1]).all(|(got, expected)| (got - expected).abs() < 1e-12), "{at:?}");
    let world = registry::find("frozen-lake").unwrap();
    let run = |seed, parts: &[u64]| {
        let mut learner = Learner::new(&world, settings, seed).unwrap();
        parts.iter().for_each(|steps| learner.advance(*steps));
        (learner.values().clone(), learner.episodes().to_vec())
    };
    assert_eq!(run(1, &[3000]), run(1, &[17, 1000, 1983]));
    assert_ne!(run(1, &[3000]).1, run(2, &[3000]).1);
}

/// A state with a reward of 1 at every step has the value 1/(1 - gamma), even if episodes are truncated early.
#[test]
fn truncated_episodes_bootstrap_from_the_next_state() {
    let on = Outcome { probability: 1.0, next: 0, reward: 1.0, terminated: false };
    let table = Arc::new(Table::new(1, vec![vec![on]], vec![1.0]).unwrap());
    let endless = EnvSpec::new("endless", move || TimeLimit::new(TableEnv::<Table>::new(table.clone()), 4));
    for method in [Method::QLearning, Method::Sarsa] {
        let mut learner = Learner::new(&endless, Settings { method, gamma: 0.5, ..Settings::default() }, 0).unwrap();
        learner.advance(400);
        assert!((learner.values().best(0) - 2.0).abs() < 1e-9, "{method:?}: {}", learner.values().best(0));
        let expected = (1..=100).map(|n| Episode { step: 4 * n, episode_return: 4.0, length: 4 });
        assert!(learner.episodes().iter().copied().eq(expected), "{method:?}");
    }
}

#[test]
fn unsuitable_environments_and_settings_are_refused() {
    let error = |world: &str, settings: Settings| match Learner::new(&registry::find(world).unwrap(), settings, 0) {
        Ok(_) => panic!("{world}: expected an error"),
        Err(error) => error.to_string(),
    };
    let text = error("cartpole", Settings::default());
    assert!(text.starts_with("cartpole: expected discrete observations and actions, got observations in Box("), "{text}");
    let text = error("taxi", Settings { gamma: 1.1, ..Settings::default() });
    assert_eq!(text, "gamma: expected a number from 0 to 1, got 1.1");
    let text = error("taxi", Settings { alpha: StepSize::Constant(f64::NAN), ..Settings::default() });
    assert_eq!(text, "alpha: expected a number from 0 to 1, got NaN");
}
