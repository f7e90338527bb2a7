//! The tabular environments equal Gymnasium's, to the last bit of every probability.
//!
//! The golden file is written by `scripts/golden/gymnasium_tabular.py`, which documents it.

use gradus_testing::golden;

use golden::numbers;
use gradus_envs::tabular::{CliffWalking, FickleTaxi, FrozenLake, Outcome, Table, TableEnv, Tabular, Taxi, random_walk};
use gradus_envs::{Action, Env, EnvError, Space, registry};
use serde_json::Value;

/// Returns our environment with the settings of the recorded environment.
fn ours(world: &Value) -> Box<dyn Tabular> {
    let kwargs = &world["kwargs"];
    let is = |key: &str| kwargs[key].as_bool();
    let rate = kwargs["success_rate"].as_f64().unwrap_or(FrozenLake::SUCCESS_RATE);
    match world["id"].as_str().unwrap() {
        "FrozenLake-v1" if is("is_slippery") == Some(false) => Box::new(FrozenLake::deterministic(&FrozenLake::MAP_4X4).unwrap()),
        "FrozenLake-v1" => Box::new(FrozenLake::slippery(&FrozenLake::MAP_4X4, rate).unwrap()),
        "FrozenLake8x8-v1" => Box::new(FrozenLake::slippery(&FrozenLake::MAP_8X8, rate).unwrap()),
        "CliffWalking-v1" => Box::new(CliffWalking::deterministic()),
        "CliffWalkingSlippery-v1" => Box::new(CliffWalking::slippery()),
        "Taxi-v4" if is("is_rainy") == Some(true) => Box::new(Taxi::rainy(Taxi::RAINY_PROBABILITY).unwrap()),
        "Taxi-v4" => Box::new(Taxi::dry()),
        other => panic!("{other}"),
    }
}

#[test]
fn transition_tables_match_gymnasium() {
    let golden = golden::cases("tabular.json");
    assert_eq!(golden.len(), 8);
    for world in golden {
        let (ours, name) = (ours(&world), format!("{} {}", world["id"], world["kwargs"]));
        let table = ours.table();
        let (states, actions) = (world["states"].as_u64().unwrap() as usize, world["actions"].as_u64().unwrap() as usize);
        assert_eq!((table.states(), table.actions()), (states, actions), "{name}");
        let (probabilities, rewards) = (numbers(&world["probabilities"]), numbers(&world["rewards"]));
        let unpacked = |number: &Value| {
            let (rest, terminated) = (number.as_u64().unwrap() as usize / 2, number.as_u64().unwrap() % 2 == 1);
            let (rest, probability) = (rest / probabilities.len(), probabilities[rest % probabilities.len()]);
            Outcome { probability, next: (rest / rewards.len()) as u32, reward: rewards[rest % rewards.len()], terminated }
        };
        for state in 0..states {
            for action in 0..actions {
                let expected: Vec<Outcome> = world["outcomes"][state][action].as_array().unwrap().iter().map(unpacked).collect();
                assert_eq!(table.outcomes(state, action), expected, "{name}: state {state}, action {action}");
            }
        }
        let mut starts = vec![0.0; states];
        for pair in world["starts"].as_array().unwrap() {
            starts[pair[0].as_u64().unwrap() as usize] = pair[1].as_f64().unwrap();
        }
        assert_eq!(table.starts(), starts, "{name}");
    }
}

#[test]
fn taxi_masks_match_gymnasium() {
    let golden = golden::cases("tabular.json");
    for world in golden.iter().filter(|world| world["id"] == "Taxi-v4") {
        let ours = ours(world);
        for (state, bits) in world["masks"].as_array().unwrap().iter().enumerate() {
            let mut mask = [false; 6];
            assert!(ours.action_mask(state as u32, &mut mask));
            let marked: u64 = mask.iter().enumerate().map(|(action, marked)| u64::from(*marked) << action).sum();
            assert_eq!(marked, bits.as_u64().unwrap(), "state {state}");
        }
    }
    assert!(!CliffWalking::slippery().action_mask(0, &mut [false; 4]), "CliffWalking has no mask");
}

/// Compares reward thresholds and time limits. Only CliffWalking has a time limit that Gymnasium lacks.
#[test]
fn registered_environments_match_gymnasium() {
    for world in golden::cases("tabular.json").iter().filter(|world| world["kwargs"].as_object().unwrap().is_empty()) {
        let found = registry::find(world["id"].as_str().unwrap()).unwrap();
        assert_eq!(found.solved_at, world["threshold"].as_f64(), "{}", found.name);
        let mut env = found.env();
        let limit = world["limit"].as_u64().unwrap_or(1000);
        // the action is left on the lake and at the cliff, and pick-up in the taxi; on ice several seeds may be needed to reach the limit
        let mut observation = [0.0];
        let (mut steps, mut seed) = (0, 0);
        while steps < limit {
            (steps, seed) = (0, seed + 1);
            env.reset(seed, &mut observation);
            loop {
                let action = if found.name == "taxi" { 4 } else { [0, 3][usize::from(found.name.starts_with("cliff"))] };
                let step = env.step(Action::Discrete(action), &mut observation);
                steps += 1;
                assert_eq!(step.truncated, steps == limit, "{}: step {steps}", found.name);
                if step.done() {
                    break;
                }
            }
        }
    }
}

/// 20 000 outcomes and 30 000 starts are drawn. Chi-squared exceeds 13.8 with 2 degrees of freedom, and 379 with 299 degrees of freedom,
/// once in a thousand tests.
#[test]
fn outcomes_have_the_probabilities_of_the_table() {
    let mut lake = TableEnv::new(FrozenLake::slippery(&FrozenLake::MAP_4X4, 0.7).unwrap());
    let (mut counts, mut observation) = ([0.0; 16], [0.0]);
    for seed in 0..20_000 {
        lake.reset(seed, &mut observation);
        lake.start_from(&[9.0], &mut observation).unwrap();
        lake.reseed(seed);
        lake.step(Action::Discrete(2), &mut observation);
        counts[observation[0] as usize] += 1.0;
    }
    let chi2: f64 =
        [(10, 0.7), (13, 0.15), (5, 0.15)].iter().map(|(s, p): &(usize, f64)| (counts[*s] - 20_000.0 * p).powi(2) / (20_000.0 * p)).sum();
    assert!(chi2 < 13.8 && counts[10] + counts[13] + counts[5] == 20_000.0, "{counts:?}: {chi2}");

    let mut taxi = TableEnv::new(Taxi::dry());
    let mut counts = vec![0.0_f64; 500];
    for seed in 0..30_000 {
        taxi.reset(seed, &mut observation);
        counts[observation[0] as usize] += 1.0;
    }
    assert_eq!(counts.iter().filter(|count| **count > 0.0).count(), 300);
    let chi2: f64 = counts.iter().filter(|count| **count > 0.0).map(|count| (count - 100.0).powi(2) / 100.0).sum();
    assert!(chi2 < 379.0, "{chi2}");
}

#[test]
fn saved_episodes_continue_identically_and_reseeding_changes_the_outcomes() {
    for name in ["frozen-lake", "cliff-walking-slippery", "taxi-rainy", "taxi-fickle"] {
        let world = registry::find(name).unwrap();
        let play = |env: &mut dyn Env, steps: u32| {
            let mut seen = [0.0];
            let row = |t| (env.step(Action::Discrete((t * 7) % 4), &mut seen), seen[0]);
            (0..steps).map(row).collect::<Vec<_>>()
        };
        let (mut env, mut other, mut observation) = (world.env(), world.env(), [0.0]);
        let mut differs = false;
        for seed in 0..20 {
            env.reset(seed, &mut observation);
            play(&mut *env, 2);
            let state = env.save();
            other.load(&state).unwrap();
            let expected = play(&mut *env, 12);
            assert_eq!(play(&mut *other, 12), expected, "{name}, seed {seed}");

            let start = {
                env.reset(seed, &mut observation);
                observation
            };
            env.reseed(seed + 100);
            let reseeded = play(&mut *env, 14);
            env.reset(seed, &mut observation);
            assert_eq!(observation, start);
            env.reseed(seed + 100);
            assert_eq!(play(&mut *env, 14), reseeded);
            env.reset(seed, &mut observation);
            differs |= play(&mut *env, 14) != reseeded;
        }
        // a fickle taxi without rain has no randomness before the passenger is picked up
        assert_eq!(differs, name != "taxi-fickle", "{name}: whether reseeding changes the outcomes");
        let mut words = env.save();
        words.pop();
        assert!(matches!(env.load(&words), Err(EnvError::State(_))), "{name}");
    }
}

/// In 30 % of the episodes the destination changes once, to each of the other three with equal probability.
#[test]
fn fickle_passengers_change_their_destination_at_most_once() {
    let mut env = FickleTaxi::new(Taxi::dry(), FickleTaxi::PROBABILITY).unwrap();
    let mut observation = [0.0];
    let (mut changed, mut to) = (0.0_f64, [0.0_f64; 4]);
    for seed in 0..10_000 {
        env.reset(seed, &mut observation);
        let fickle = *env.save().last().unwrap();
        // the taxi is in the upper left corner with the passenger in it, and the destination is blue
        let mut words = env.save();
        words[2] = (4 * 4) + 3;
        env.load(&words).unwrap();
        env.step(Action::Discrete(1), &mut observation);
        assert_eq!(observation[0], 19.0, "a move against the wall changes nothing");
        env.step(Action::Discrete(0), &mut observation);
        let first = observation[0] as usize % 4;
        assert_eq!(u64::from(first != 3), fickle);
        changed += f64::from(u8::from(first != 3));
        to[first] += 1.0;
        env.step(Action::Discrete(0), &mut observation);
        assert_eq!(observation[0] as usize % 4, first, "the destination changes at most once");
    }
    // the standard deviation is 46 for the 3000 changes, and 26 for the changes to each of the three destinations
    assert!((changed - 3000.0).abs() < 185.0, "{changed}");
    assert!(to[..3].iter().all(|count| (count - changed / 3.0).abs() < 104.0), "{to:?}");
}

#[test]
fn observations_are_the_numbers_of_the_states() {
    let mut env = registry::find("taxi").unwrap().env();
    assert_eq!((env.observation_space(), env.action_space()), (Space::Discrete(500), Space::Discrete(6)));
    let mut observation = [0.0];
    for (name, start) in [("frozen-lake", 0.0), ("frozen-lake-8x8", 0.0), ("cliff-walking", 36.0)] {
        registry::find(name).unwrap().env().reset(5, &mut observation);
        assert_eq!(observation, [start], "{name}");
    }
    env.start_from(&[479.0], &mut observation).unwrap();
    assert_eq!(observation, [479.0], "the taxi one cell left of the lower right corner, the passenger in it, destination blue");
    let step = env.step(Action::Discrete(5), &mut observation);
    assert_eq!((step.reward, step.terminated, observation), (20.0, true, [475.0]));
    for bad in [500.0, -1.0, 0.5, f64::NAN] {
        assert!(matches!(env.start_from(&[bad], &mut observation), Err(EnvError::State(text)) if text.contains("below 500")), "{bad}");
    }
}

#[test]
fn the_random_walk_terminates_at_both_ends() {
    let table = random_walk(5);
    assert_eq!((table.states(), table.actions(), table.starts()), (5, 1, &[0.0, 0.0, 1.0, 0.0, 0.0][..]));
    let of = |state: usize| table.outcomes(state, 0).iter().map(|o| (o.next, o.reward, o.terminated)).collect::<Vec<_>>();
    assert_eq!(of(0), [(0, 0.0, true), (1, 0.0, false)]);
    assert_eq!(of(3), [(2, 0.0, false), (4, 0.0, false)]);
    assert_eq!(of(4), [(3, 0.0, false), (4, 1.0, true)]);
}

#[test]
fn bad_tables_and_maps_are_errors() {
    let good = Outcome { probability: 1.0, next: 0, reward: 0.0, terminated: false };
    let message = |outcomes: Vec<Vec<Outcome>>, starts: Vec<f64>| Table::new(1, outcomes, starts).unwrap_err().to_string();
    let cases = [
        (message(vec![vec![good]], vec![]), "expected one list of outcomes per state and action, got 1 for 0 states"),
        (message(vec![vec![good]], vec![0.5]), "first state: expected probabilities that sum to 1, got a sum of 0.5"),
        (message(vec![vec![]], vec![1.0]), "state 0, action 0: expected probabilities that sum to 1, got a sum of 0"),
        (message(vec![vec![Outcome { next: 7, ..good }]], vec![1.0]), "state 0, action 0: expected a next state below 1, got 7"),
        (message(vec![vec![Outcome { reward: f64::NAN, ..good }]], vec![1.0]), "state 0, action 0: expected a finite reward, got NaN"),
        (FrozenLake::deterministic(&["SF", "G"]).unwrap_err().to_string(), "expected equally long rows of S, F, H and G with an S"),
        (FrozenLake::deterministic(&["FG"]).unwrap_err().to_string(), "with an S"),
        (FrozenLake::slippery(&["SG"], 1.5).unwrap_err().to_string(), "success rate of FrozenLake: expected a probability, got 1.5"),
        (Taxi::rainy(-0.1).unwrap_err().to_string(), "rain of Taxi: expected a probability, got -0.1"),
    ];
    for (got, expected) in cases {
        assert!(got.starts_with("tabular world: ") && got.contains(expected), "expected {expected}, got {got}");
    }
}
