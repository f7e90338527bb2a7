//! Markov decision processes for the checks.

use gradus_base::random::Stream;
use gradus_envs::tabular::{FrozenLake, Outcome, Table, Tabular, gambler, random_walk};

/// An outcome that is certain.
pub(crate) fn certain(next: u32, reward: f64) -> Vec<Outcome> {
    vec![Outcome { probability: 1.0, next, reward, terminated: false }]
}

/// An outcome that is certain and ends the episode. The next state is one that has a value, which must not be used.
pub(crate) fn end(next: u32, reward: f64) -> Vec<Outcome> {
    vec![Outcome { probability: 1.0, next, reward, terminated: true }]
}

/// Two states, two actions: small enough for a calculation by hand. In state 0, action 0 leads to state 1 with reward 1; action 1 gives 2 and
/// stays, or gives 4 and ends, each with probability 1/2. In state 1, action 0 gives 10 and ends, action 1 costs 1 and stays.
pub(crate) fn two_states() -> Table {
    let half = |next, reward, terminated| Outcome { probability: 0.5, next, reward, terminated };
    let risky = vec![half(0, 2.0, false), half(1, 4.0, true)];
    table(2, vec![certain(1, 1.0), risky, end(0, 10.0), certain(1, -1.0)])
}

/// One state with one action, which stays there with reward 1.
pub(crate) fn staying() -> Table {
    table(1, vec![certain(0, 1.0)])
}

/// The 4 x 4 grid of Sutton and Barto's example 4.1: each step costs 1, and two corners are the end. States are the 14 other cells, row by
/// row; the actions are up, down, right and left.
pub(crate) fn grid() -> Table {
    let state = |cell: i32| u32::try_from(cell - 1).unwrap_or(0);
    let mut outcomes = Vec::new();
    for cell in 1..15_i32 {
        let (row, column) = (cell / 4, cell % 4);
        for (down, right) in [(-1, 0), (1, 0), (0, 1), (0, -1)] {
            let to = (row + down).clamp(0, 3) * 4 + (column + right).clamp(0, 3);
            outcomes.push(if to == 0 || to == 15 { end(3, -1.0) } else { certain(state(to), -1.0) });
        }
    }
    table(4, outcomes)
}

/// A corridor of 30 states, with the actions left and right. A step costs 1, and a step to the right from the last state gives 10 and ends. From the policy that always goes left,
/// policy iteration corrects one state in each round.
pub(crate) fn corridor() -> Table {
    let of = |state: u32| [certain(state.saturating_sub(1), -1.0), if state == 29 { end(0, 10.0) } else { certain(state + 1, -1.0) }];
    table(2, (0..30).flat_map(of).collect())
}

/// A world with random outcomes, some of which end the episode. Probabilities and rewards have two decimals.
pub(crate) fn random(stream: &mut Stream) -> Table {
    let (states, actions) = (3 + stream.below(3), 2 + stream.below(2));
    let mut one = || {
        let share = f64::from(1 + stream.below(9)) / 10.0;
        let mut outcome = |probability: f64| Outcome {
            probability,
            next: stream.below(states),
            reward: (200.0 * stream.unit_f64()).round() / 50.0 - 2.0,
            terminated: stream.below(4) == 0,
        };
        vec![outcome(share), outcome(1.0 - share)]
    };
    let outcomes = (0..states * actions).map(|_| one()).collect();
    // an episode begins in one of the first two states, more often in one of them
    let first = f64::from(1 + stream.below(10)) / 10.0;
    let starts = (0..states).map(|state| [first, 1.0 - first].get(state as usize).copied().unwrap_or(0.0)).collect();
    Table::new(actions as usize, outcomes, starts).expect("a sound table")
}

fn table(actions: usize, outcomes: Vec<Vec<Outcome>>) -> Table {
    let states = outcomes.len() / actions;
    Table::new(actions, outcomes, vec![1.0 / states as f64; states]).expect("a sound table")
}

/// Worlds of the textbook, with their names.
pub(crate) fn known() -> Vec<(&'static str, Table)> {
    let lake = FrozenLake::slippery(&["SFFF", "FHFH", "FFFH", "HFFG"], 1.0 / 3.0).expect("the map is sound");
    vec![
        ("the gambler's problem", gambler(0.4)),
        ("FrozenLake", lake.table().clone()),
        ("a random walk of 5 states", random_walk(5)),
        ("the 4 x 4 grid", grid()),
    ]
}
