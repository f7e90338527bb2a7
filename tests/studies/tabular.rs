//! Q-learning comes close to the optimal value that value iteration finds, and Sarsa learns a safe path along the cliff.

use std::any::Any;
use std::sync::Arc;

use gradus::agents::tabular::{
    ActionValues, ValueTable, best_actions, deterministic, evaluate_within, mean_over_starts, policy_evaluation, value_iteration,
};
use gradus::envs::tabular::{CliffWalking, FrozenLake, Outcome, Table, TableEnv, Tabular, Taxi};
use gradus::envs::{EnvSpec, TimeLimit, registry};
use gradus::nets::threads;
use gradus::{Agent, Config};

const SEEDS: usize = 10;

/// Trains an agent in the given environment until `is_done` says so of its steps and its episodes. Returns the values, and the return and the
/// length of every episode. `settings` are settings of the agent, without its name.
fn learn(
    world: &EnvSpec,
    (method, settings): (&str, &[&str]),
    (steps, seed): (u64, u64),
    is_done: impl Fn(u64, usize) -> bool,
) -> (ActionValues, Vec<(f64, u32)>) {
    let config = Config { seed, steps, envs: 1, environment: world.name.clone(), ..Config::default() };
    let config = config.with_toml(&format!("agent = \"{method}\"")).unwrap();
    let config = settings.iter().fold(config, |config, setting| config.with_setting(&format!("{method}.{setting}")).unwrap());
    let mut agent = Agent::in_world(config, world).unwrap();
    let mut env = agent.world().single(seed).unwrap();
    let mut episodes = Vec::new();
    while !is_done(agent.steps(), episodes.len()) {
        env.step(agent.act(env.observation(), env.action_mask()).unwrap().get(0)).unwrap();
        agent.observe(&env.outcome()).unwrap();
        agent.update().unwrap();
        episodes.extend(agent.episodes().iter().map(|episode| (episode.episode_return, episode.length)));
    }
    let table: &dyn Any = agent.behaviour();
    (table.downcast_ref::<ValueTable>().unwrap().q.clone(), episodes)
}

/// Returns the worst shortfalls over the seeds. A shortfall is how far the greedy policy's exact value is below the optimum of value
/// iteration, relative to the optimum. The first number uses the discount of the training. The second number has no discount and counts
/// only the steps within the time limit.
fn worst_shortfalls(world: &str, table: &Table, limit: usize, (gamma, settings): (f64, &[&str]), steps: u64) -> [f64; 2] {
    let values = value_iteration(table, gamma, 1e-11, 20_000).values;
    let chosen: Vec<usize> = best_actions(table, &values, gamma).iter().map(|best| best[0]).collect();
    let within = |policy: &[f64]| mean_over_starts(table, &evaluate_within(table, policy, 1.0, limit));
    let optimum = [mean_over_starts(table, &values), within(&deterministic(&chosen, table.actions()))];
    let world = registry::find(world).unwrap();
    let mut seeds: Vec<u64> = (0..SEEDS as u64).collect();
    let reached = threads::with_default(|| {
        threads::map(&mut seeds, |_, seed| {
            let (values, _) = learn(&world, ("q-learning", settings), (steps, *seed), |done, _| done == steps);
            let policy = deterministic(&values.greedy(), table.actions());
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
    let slow = ["alpha=1.0", "alpha_decay=0.6", "epsilon_fraction=1.0"];
    let shortfalls = [
        ("frozen-lake", worst_shortfalls("frozen-lake", lake.table(), 100, (0.99, &slow), 200_000)),
        ("cliff-walking", worst_shortfalls("cliff-walking", cliff.table(), 1000, (1.0, &["alpha=0.5", "gamma=1.0"]), 10_000)),
        ("taxi", worst_shortfalls("taxi", taxi.table(), 200, (0.99, &["alpha=0.5"]), 200_000)),
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
        let (mut online, mut greedy) = (0.0, Vec::new());
        for seed in 0..40 {
            let settings = ["gamma=1.0", "alpha=0.5", "epsilon=0.1"];
            let (values, episodes) = learn(&world, (method, &settings), (1 << 32, seed), |_, episodes| episodes == 500);
            let late = &episodes[300..];
            online += late.iter().map(|(episode_return, _)| episode_return).sum::<f64>() / (40 * late.len()) as f64;
            greedy.push(evaluate_within(cliff.table(), &deterministic(&values.greedy(), 4), 1.0, 1000)[36]);
        }
        greedy.sort_by(f64::total_cmp);
        (online, greedy[20])
    };
    let ((sarsa, safe), (q, short)) = (outcome("sarsa"), outcome("q-learning"));
    println!("online: Sarsa {sarsa:.1}, Q-learning {q:.1}; greedy: Sarsa {safe}, Q-learning {short}");
    assert!((-32.0..-20.0).contains(&sarsa) && (-60.0..-40.0).contains(&q), "online: Sarsa {sarsa}, Q-learning {q}");
    assert!(short == -13.0 && (-20.0..=-15.0).contains(&safe), "greedy: Sarsa {safe}, Q-learning {short}");
}

/// A state with a reward of 1 at every step has the value 1/(1 - gamma), even if episodes are truncated early.
#[test]
fn truncated_episodes_bootstrap_from_the_next_state() {
    let on = Outcome { probability: 1.0, next: 0, reward: 1.0, terminated: false };
    let table = Arc::new(Table::new(1, vec![vec![on]], vec![1.0]).unwrap());
    let endless = EnvSpec::new("endless", move || TimeLimit::new(TableEnv::<Table>::new(table.clone()), 4));
    for method in ["q-learning", "sarsa"] {
        let (values, episodes) = learn(&endless, (method, &["gamma=0.5", "alpha=0.5"]), (400, 0), |steps, _| steps == 400);
        assert!((values.best(0) - 2.0).abs() < 1e-9, "{method}: {}", values.best(0));
        assert_eq!(episodes, [(4.0, 4); 100], "{method}");
    }
}
