//! Figures of Sutton and Barto, "Reinforcement Learning: An Introduction", second edition, 2018.

pub(super) mod bandits;
pub(super) mod blackjack;
pub(super) mod cliff;
pub(super) mod corridor;
pub(super) mod dynamic;
pub(super) mod importance;
pub(super) mod maximisation;
pub(super) mod maze;
pub(super) mod mountain_car;
pub(super) mod walks;

use gradus::agents::tabular::Trajectory;
use gradus::envs::random::Stream;
use gradus::envs::tabular::Table;

use super::draw::{banded, figure, lines, mean_of, published};

/// Plays an episode of a process that terminates, from `start`. `choose` gives the action in a state.
fn play(table: &Table, start: usize, stream: &mut Stream, mut choose: impl FnMut(usize, &mut Stream) -> usize) -> Trajectory {
    let (mut episode, mut state) = (Trajectory::default(), start);
    loop {
        let action = choose(state, stream);
        let outcome = table.sample(state, action, stream);
        episode.states.push(state);
        episode.actions.push(action);
        episode.rewards.push(outcome.reward);
        if outcome.terminated {
            return episode;
        }
        state = outcome.next as usize;
    }
}

/// Returns the root of the mean of the squared differences.
fn root_mean_square(values: &[f64], truth: &[f64]) -> f64 {
    let squares = values.iter().zip(truth).map(|(value, truth)| (value - truth) * (value - truth));
    (squares.sum::<f64>() / truth.len() as f64).sqrt()
}
