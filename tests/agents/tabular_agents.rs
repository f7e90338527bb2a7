//! Tabular agents approach exact values, which dynamic programming computes from the transition table of their world.

use gradus::agents::registry as agents;
use gradus::agents::tabular::{ActionValues, deterministic, look_ahead, policy_evaluation, reachable, value_iteration};
use gradus::envs::tabular::{Outcome, Table, TableEnv, Tabular};
use gradus::envs::{EnvSpec, registry};
use gradus::nets::tensors::{Data, Tensor, Tensors, get_f64};
use gradus::{Config, Trainer};

/// Trains an agent with settings of its own and returns the tensors of its policy.
fn train(agent: &str, world: &str, steps: u64, gamma: f64, settings: &[&str]) -> Tensors {
    let settings = settings.iter().map(|setting| format!("{agent}.{setting}")).chain([format!("{agent}.gamma={gamma}")]);
    let config =
        settings.into_iter().try_fold(Config::preset(agent, world, None).unwrap(), |config, setting| config.with_setting(&setting));
    let mut trainer = Trainer::new(Config { steps, seed: 3, ..config.unwrap() }).unwrap();
    trainer.finish().unwrap();
    trainer.policy().save()
}

fn action_values(tensors: &Tensors, table: &Table) -> Vec<f64> {
    get_f64(tensors, "action_values", &[table.states(), table.actions()]).unwrap().to_vec()
}

/// The action values that follow from state values.
fn from_state_values(table: &Table, values: &[f64], gamma: f64) -> ActionValues {
    let mut q = ActionValues::new(table.states(), table.actions(), 0.0);
    look_ahead(table, values, gamma, &mut q);
    q
}

fn optimal(table: &Table, gamma: f64) -> ActionValues {
    from_state_values(table, &value_iteration(table, gamma, 1e-12, 100_000).values, gamma)
}

/// Returns the root mean square error of all actions in the states that can be reached.
fn error(table: &Table, q: &[f64], exact: &ActionValues) -> f64 {
    let states = reachable(table);
    let squares = states.iter().flat_map(|state| {
        let own = &q[state * table.actions()..(state + 1) * table.actions()];
        own.iter().zip(exact.row(*state)).map(|(own, exact)| (own - exact).powi(2))
    });
    (squares.sum::<f64>() / (states.len() * table.actions()) as f64).sqrt()
}

const GAMMA: f64 = 0.9;

/// With random actions only, methods that learn off-policy find the values of the best policy.
#[test]
fn off_policy_methods_find_the_optimal_values() {
    const WORLD: &str = "grid:tests/golden/slippery.txt";
    let model = registry::find(WORLD).unwrap().model().unwrap();
    let table = model.table();
    let exact = optimal(table, GAMMA);
    let untrained = error(table, &vec![0.0; table.states() * table.actions()], &exact);
    assert!(untrained > 3.0, "{untrained}");
    for (agent, settings, within) in [
        ("q-learning", &["alpha=1", "alpha_decay=0.7", "epsilon=1"][..], 0.15),
        // each of two tables has half of the updates
        ("double-q-learning", &["alpha=1", "alpha_decay=0.7", "epsilon=1"], 0.2),
        ("dyna-q", &["alpha=1", "alpha_decay=0.7", "epsilon=1", "n=0"], 0.15),
        ("value-iteration", &[], 1e-9),
        ("policy-iteration", &[], 1e-9),
    ] {
        let found = error(table, &action_values(&train(agent, WORLD, 100_000, GAMMA, settings), table), &exact);
        assert!(found < within, "{agent}: {found}");
    }
}

/// In a deterministic maze a model is exact, and planning with it finds the values in few steps.
#[test]
fn planning_finds_the_optimal_values_of_a_maze() {
    let model = registry::find("dyna-maze").unwrap().model().unwrap();
    let table = model.table();
    let exact = optimal(table, GAMMA);
    let of = |agent, n| {
        let tensors = train(agent, "dyna-maze", 3_000, GAMMA, &["alpha=1", "epsilon=1", n]);
        error(table, &action_values(&tensors, table), &exact)
    };
    let (without, with, sweeping) = (of("dyna-q", "n=0"), of("dyna-q", "n=50"), of("prioritised-sweeping", "n=50"));
    // a step to the goal is worth 1; not all pairs are tried in 3000 steps
    assert!(with < 0.03 && sweeping < 0.03 && without > 3.0 * with.max(sweeping), "{without} {with} {sweeping}");
}

/// The values of random actions in figure 4.1, the limit for k to infinity.
const FIGURE_4_1: [f64; 16] = [0.0, -14.0, -20.0, -22.0, -14.0, -18.0, -20.0, -20.0, -20.0, -20.0, -18.0, -14.0, -22.0, -20.0, -14.0, 0.0];

/// With random actions only, methods that learn on-policy find the values of random actions.
#[test]
fn on_policy_methods_find_the_values_of_their_own_actions() {
    const WORLD: &str = "grid:tests/golden/figure-4.1.txt";
    let model = registry::find(WORLD).unwrap().model().unwrap();
    let table = model.table();
    let exact = from_state_values(table, &FIGURE_4_1, 1.0);
    for (agent, settings, within) in [
        ("sarsa", &["alpha=0.03", "epsilon=1"][..], 1.0),
        ("expected-sarsa", &["alpha=0.03", "epsilon=1"], 1.0),
        ("n-step-sarsa", &["alpha=0.01", "epsilon=1", "n=3"], 1.0),
        ("sarsa-lambda", &["alpha=0.02", "epsilon=1", "lambda=0.5", "replace=false"], 1.0),
        ("sarsa-lambda", &["alpha=0.02", "epsilon=1", "lambda=0.8", "replace=true"], 1.0),
        ("monte-carlo", &["alpha=1", "alpha_decay=1", "epsilon=1", "visits=first"], 0.5),
        ("monte-carlo", &["alpha=1", "alpha_decay=1", "epsilon=1", "visits=every"], 0.5),
    ] {
        let q = action_values(&train(agent, WORLD, 150_000, 1.0, settings), table);
        let found = error(table, &q, &exact);
        assert!(found < within, "{agent} {settings:?}: {found}");
    }
}

/// The random walk over five states has the values 1/6 to 5/6 (Sutton and Barto, example 6.2).
#[test]
fn predictions_find_the_values_of_the_random_walk() {
    for (agent, settings, within) in [
        ("td-lambda", &["alpha=0.5", "alpha_decay=0.7", "lambda=0"][..], 0.02),
        ("td-lambda", &["alpha=0.5", "alpha_decay=0.7", "lambda=0.6"], 0.03),
        ("n-step-td", &["alpha=0.5", "alpha_decay=0.7", "n=3"], 0.03),
        ("monte-carlo-prediction", &["alpha=1", "alpha_decay=1", "visits=first"], 0.02),
        ("monte-carlo-prediction", &["alpha=1", "alpha_decay=1", "visits=every"], 0.02),
        ("policy-evaluation", &[], 1e-9),
    ] {
        let tensors = train(agent, "random-walk", 100_000, 1.0, settings);
        let values = get_f64(&tensors, "state_values", &[5]).unwrap();
        for (value, exact) in values.iter().zip([1.0, 2.0, 3.0, 4.0, 5.0]) {
            assert!((value - exact / 6.0).abs() < within, "{agent} {settings:?}: {values:?}");
        }
    }
}

/// In Blackjack, exploring starts find the best policy almost everywhere (Sutton and Barto, figure 5.2), and so does off-policy control for the states that it visits often.
#[test]
fn monte_carlo_control_finds_the_best_policy_of_blackjack() {
    let model = registry::find("blackjack").unwrap().model().unwrap();
    let table = model.table();
    let best = value_iteration(table, 1.0, 1e-12, 1000).values;
    let start = |values: &[f64]| table.starts().iter().zip(values).map(|(p, value)| p * value).sum::<f64>();
    let exact = start(&best);
    for (agent, settings, steps) in [
        ("monte-carlo", &["exploring_starts=true", "alpha=1", "alpha_decay=1"][..], 300_000),
        ("off-policy-monte-carlo", &["epsilon=0.5"], 300_000),
    ] {
        let q = action_values(&train(agent, "blackjack", steps, 1.0, settings), table);
        let chosen: Vec<usize> = q.chunks(2).map(|row| usize::from(row[1] > row[0])).collect();
        let worth = start(&policy_evaluation(table, &deterministic(&chosen, 2), 1.0, 1e-12, 1000).values);
        assert!(exact - worth < 0.02, "{agent}: {worth} of {exact}");
    }
}

/// The exact values are those of the rewards that the agent learns from.
#[test]
fn the_error_of_values_follows_the_scale_of_the_rewards() {
    let error = |agent: &str, setting: &str| {
        let config = Config { steps: 2_000, ..Config::preset(agent, "cliff-walking", None).unwrap() };
        let config = config.with_setting(&format!("{agent}.epsilon=1")).unwrap().with_setting(setting).unwrap();
        let mut trainer = Trainer::new(config).unwrap();
        let mut last = f64::NAN;
        while !trainer.is_finished() {
            last = trainer.iterate().unwrap().metrics.iter().find(|(name, _)| name == "train/value_error").unwrap().1;
        }
        last
    };
    let plain = error("q-learning", "wrappers.reward_scale=1");
    assert!(plain > 1.0, "{plain}");
    assert!((error("q-learning", "wrappers.reward_scale=0.25") - 0.25 * plain).abs() < 1e-9 * plain);
    assert!(error("q-learning", "wrappers.clip_reward=0.5").is_nan());
    assert_eq!(error("value-iteration", "wrappers.reward_scale=0.25"), error("value-iteration", "wrappers.reward_scale=1"));
}

/// Where rewards are scaled, the values of exploring starts are scaled alike, and a prediction's policy is that of its values.
#[test]
fn scaled_rewards_scale_what_is_read_from_the_table() {
    let starts = ["monte-carlo.exploring_starts=true", "monte-carlo.alpha=1", "monte-carlo.alpha_decay=1"];
    for (agent, world, settings) in [("monte-carlo", "frozen-lake", &starts[..]), ("td-lambda", "frozen-lake-deterministic", &[])] {
        let config = Config { steps: 4_000, ..Config::preset(agent, world, None).unwrap() };
        let config = settings.iter().fold(config, |config, setting| config.with_setting(setting).unwrap());
        let values = |config: Config| {
            let mut trainer = Trainer::new(config).unwrap();
            trainer.finish().unwrap();
            let states = trainer.world().one_hot_states().unwrap();
            let codes: Vec<f32> = (0..states * states).map(|i| f32::from(i / states == i % states)).collect();
            let seen = trainer.into_policy().inspect(&codes).unwrap();
            seen.into_iter().flat_map(|state| state.action_values).collect::<Vec<_>>()
        };
        let (plain, scaled) = (values(config.clone()), values(config.clone().with_setting("wrappers.reward_scale=4").unwrap()));
        assert!(plain.iter().any(|value| *value > 0.1));
        plain.iter().zip(&scaled).for_each(|(plain, scaled)| assert_eq!(4.0 * plain, *scaled, "{agent}"));
        let refused = Trainer::new(config.clone().with_setting("wrappers.clip_reward=0.5").unwrap()).err().unwrap().to_string();
        assert!(refused.contains("neither clip_reward nor normalise_rewards"), "{refused}");
    }
}

/// A training that was interrupted has the same values as one that was not.
#[test]
fn a_resumed_training_is_the_same() {
    for agent in gradus::agents::registry::all().iter().map(|entry| entry.name) {
        let is_tabular = gradus::agents::registry::find(agent).unwrap().help.iter().any(|(name, _)| *name == "alpha_decay");
        if !is_tabular {
            continue;
        }
        let config = || Config { steps: 4_000, seed: 1, envs: 2, ..Config::preset(agent, "cliff-walking", None).unwrap() };
        let mut whole = Trainer::new(config()).unwrap();
        whole.iterate().unwrap();
        let state = whole.save();
        whole.finish().unwrap();
        let mut resumed = Trainer::new(config()).unwrap();
        resumed.load(&state).unwrap();
        resumed.finish().unwrap();
        assert_eq!(whole.save(), resumed.save(), "{agent}");
    }
}

/// A seed must always give the same numbers, on every processor; a change must be in the changelog.
#[test]
fn a_seed_gives_the_same_values_on_every_machine() {
    let digest = |agent: &str, world: &str, settings: &[&str]| {
        let tensors = train(agent, world, 3_000, 0.95, settings);
        let model = registry::find(world).unwrap().model().unwrap();
        let bits = action_values(&tensors, model.table()).into_iter().map(f64::to_bits);
        format!("{:016x}", bits.fold(0_u64, |sum, bits| sum.rotate_left(7) ^ bits))
    };
    let found = [
        digest("q-learning", "taxi", &["alpha=1", "alpha_decay=0.7"]),
        digest("sarsa-lambda", "windy-grid", &[]),
        digest("dyna-q", "dyna-maze", &["kappa=1e-3"]),
        digest("prioritised-sweeping", "dyna-maze", &[]),
        digest("off-policy-monte-carlo", "blackjack", &["epsilon=0.5"]),
        digest("value-iteration", "car-rental", &[]),
    ];
    let expected = ["06d683bb9ab1ade3", "fa40c723f30fe88d", "b2ddedd926b8df0e", "14d3c1dd30d191da", "8ff170d80fcc53b6", "f2eda1a8113c2f39"];
    assert_eq!(found, expected);
}

/// The taxi forbids actions in most states. Their values do not count: with optimistic ones that are never tried, an agent would learn nothing.
#[test]
fn forbidden_actions_have_no_say() {
    let model = registry::find("taxi").unwrap().model().unwrap();
    let table = model.table();
    for (agent, steps) in [("q-learning", 150_000), ("double-q-learning", 300_000)] {
        let tensors = train(agent, "taxi", steps, 0.99, &["alpha=0.5", "initial=20", "epsilon=0.05"]);
        let q = action_values(&tensors, table);
        let chosen: Vec<usize> = (0..table.states())
            .map(|state| {
                let mut mask = vec![true; table.actions()];
                model.action_mask(state as u32, &mut mask);
                let allowed = (0..table.actions()).filter(|action| mask[*action]);
                allowed.max_by(|a, b| q[state * table.actions() + a].total_cmp(&q[state * table.actions() + b])).unwrap()
            })
            .collect();
        let values = policy_evaluation(table, &deterministic(&chosen, table.actions()), 0.99, 1e-9, 2000).values;
        let worth = table.starts().iter().zip(&values).map(|(p, value)| p * value).sum::<f64>();
        // the optimum is 6.3
        assert!(worth > 4.0, "{agent}: {worth}");
    }
}

/// State 0 leads to state 1, where the forbidden action 0 would be rewarded and the allowed action 1 is punished.
struct Tempting(Table);

impl Tempting {
    fn new() -> Self {
        let to = |next, reward, terminated| vec![Outcome { probability: 1.0, next, reward, terminated }];
        let outcomes = vec![to(1, 0.0, false), to(1, 0.0, false), to(0, 1.0, true), to(0, -1.0, true)];
        Self(Table::new(2, outcomes, vec![1.0, 0.0]).unwrap())
    }
}

impl Tabular for Tempting {
    fn table(&self) -> &Table {
        &self.0
    }

    fn action_mask(&self, state: u32, mask: &mut [bool]) -> bool {
        mask.copy_from_slice(&[state == 0, true]);
        true
    }
}

/// Every agent values state 0 by the allowed action, whether it knows the transition table or learns the masks on its way. Nothing is learned of the
/// forbidden one.
#[test]
fn values_are_those_of_allowed_actions() {
    registry::register(EnvSpec::of_table("tempting", 10, Tempting::new)).unwrap();
    registry::register(EnvSpec::limited("tempting-unknown", 10, || TableEnv::new(Tempting::new()))).unwrap();
    let needs_table = ["value-iteration", "policy-iteration", "policy-evaluation"];
    let is_table = |entry: &agents::Entry| entry.help.iter().any(|(setting, _)| *setting == "alpha_decay");
    for agent in agents::all().iter().filter(|entry| is_table(entry)).map(|entry| entry.name) {
        for world in ["tempting", "tempting-unknown"].into_iter().filter(|world| *world == "tempting" || !needs_table.contains(&agent)) {
            let explores = agent == "monte-carlo" && world == "tempting";
            let settings: &[&str] = if explores { &["exploring_starts=true"] } else { &[] };
            let tensors = train(agent, world, 4_000, 0.5, settings);
            let q = get_f64(&tensors, "action_values", &[2, 2]).unwrap();
            let value = get_f64(&tensors, "state_values", &[2]).map_or(q[0].max(q[1]), |values| values[0]);
            assert!((value + 0.5).abs() < 0.02, "{agent} on {world}: {value}");
            let plans = needs_table.contains(&agent) || tensors.contains_key("state_values");
            assert!(plans || q[2] == 0.0, "{agent} on {world}: {q:?}");
        }
    }
}

/// Both tables of double Q-learning begin with the values of the policy that training begins with.
#[test]
fn double_q_learning_begins_with_given_values() {
    let config = Config::preset("double-q-learning", "cliff-walking", None).unwrap().with_setting("alpha=1e-9").unwrap();
    let values =
        Tensors::from([("action_values".into(), Tensor::f64(&[48, 4], vec![7.0; 192])), ("epsilon".into(), Tensor::f64(&[1], vec![0.1]))]);
    let mut trainer = Trainer::with_parameters(config.clone(), registry::find("cliff-walking").unwrap(), &values).unwrap();
    trainer.iterate().unwrap();
    let saved = trainer.save();
    let Some(Tensor { data: Data::F64(values), .. }) = saved.get("policy.action_values") else { panic!("{:?}", saved.keys()) };
    assert!(values.iter().all(|value| (value - 7.0).abs() < 1e-3), "{values:?}");
}
