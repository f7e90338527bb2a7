//! Sequences of decisions, and the order in which a recurrent network reads them: all first steps, then all second steps, and so on.

use std::borrow::Cow;
use std::ops::Range;

use crate::{Batch, Store};

/// Consecutive decisions of an episode, which a policy with a memory reads in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sequence {
    /// The decisions.
    pub decisions: Range<usize>,
    /// Row of the store with the observation that follows the last decision, if it belongs to the sequence.
    pub successor: Option<usize>,
}

/// The sequences of a rollout, and what the policy remembered at the beginning of each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sequences {
    /// The sequences, in the order of their decisions. Every decision belongs to exactly one.
    pub list: Vec<Sequence>,
    /// The policy's memory before the first decision of each sequence, [`Behaviour::memory_width`](crate::Behaviour::memory_width) numbers each.
    pub memory: Vec<f32>,
}

impl Sequences {
    /// The memory at the beginning of sequence number `i`.
    pub fn memory(&self, i: usize) -> &[f32] {
        let width = self.memory.len() / self.list.len();
        &self.memory[i * width..(i + 1) * width]
    }

    /// Returns the numbers of the sequences whose decisions `indices` are.
    ///
    /// # Panics
    /// If they are not the decisions of whole sequences, one sequence after another.
    pub fn of_decisions(&self, indices: &[u32]) -> Vec<usize> {
        let (mut chosen, mut rest) = (Vec::new(), indices);
        while let Some(first) = rest.first().map(|index| *index as usize) {
            let number = self.list.partition_point(|sequence| sequence.decisions.end <= first);
            let decisions = self.list[number].decisions.clone();
            let own = rest.get(..decisions.len()).unwrap_or_default();
            assert!(own.iter().map(|index| *index as usize).eq(decisions), "batch: expected whole sequences, got a part of one");
            rest = &rest[own.len()..];
            chosen.push(number);
        }
        chosen
    }
}

/// A plan has at least this number of sequences, if there are so many: the product of a step with the weights has few rows otherwise.
const LEAST: usize = 8;
/// The largest number of plans, and so of the cores that share a batch.
pub(crate) const MOST: usize = 16;

/// Some sequences, side by side. The longest come first, so that those that go on at a step are the first of those that went on before.
///
/// ```text
/// sequences of 3, 2 and 2 steps:    rows  a0 b0 c0  a1 b1 c1  a2      steps  3 3 1
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Plan {
    /// Row of the store for each row of the plan.
    pub rows: Vec<u32>,
    /// Where the answer for each row of the plan belongs: the row's place in the batch.
    pub places: Vec<u32>,
    /// How many sequences go on at each step.
    pub steps: Vec<usize>,
    /// The memory at the beginning of each sequence.
    pub memory: Vec<f32>,
}

impl Plan {
    /// Plans the sequences with these numbers. The decisions of each begin at this place of the batch. A successor is read after the decisions
    /// if `place` gives it a place.
    pub fn new(sequences: &Sequences, chosen: &[(usize, usize)], place: impl Fn(usize) -> Option<usize>) -> Self {
        let successor = |sequence: &Sequence| sequence.successor.and_then(|row| Some((row, place(row)?)));
        let mut order: Vec<(usize, usize, usize)> = Vec::new();
        for (number, first) in chosen.iter().copied() {
            let sequence = &sequences.list[number];
            order.push((sequence.decisions.len() + usize::from(successor(sequence).is_some()), number, first));
        }
        order.sort_by_key(|(length, ..)| std::cmp::Reverse(*length));
        let mut plan = Plan::default();
        for (_, number, _) in &order {
            plan.memory.extend_from_slice(sequences.memory(*number));
        }
        for step in 0..order.first().map_or(0, |(length, ..)| *length) {
            let going = order.iter().take_while(|(length, ..)| *length > step);
            for (_, number, first) in going {
                let sequence = &sequences.list[*number];
                let (row, place) = match sequence.decisions.len() {
                    n if step < n => (sequence.decisions.start + step, first + step),
                    _ => successor(sequence).expect("a successor is the last step"),
                };
                plan.rows.push(row as u32);
                plan.places.push(place as u32);
            }
            plan.steps.push(plan.rows.len() - plan.steps.iter().sum::<usize>());
        }
        plan
    }
}

/// Divides sequences among at most `most` plans, of at least [`LEAST`] sequences each if there are so many. The number of plans depends only on
/// that of the sequences.
fn divide(chosen: &[(usize, usize)], most: usize) -> impl Iterator<Item = &[(usize, usize)]> {
    let parts = (chosen.len() / LEAST).clamp(1, most);
    (0..parts).map(move |part| &chosen[part * chosen.len() / parts..(part + 1) * chosen.len() / parts])
}

/// Returns the sequences of a store; without some, every row is a sequence of its own, at the beginning of an episode.
fn sequences(store: &Store, width: usize) -> Cow<'_, Sequences> {
    match &store.sequences {
        Some(sequences) => Cow::Borrowed(sequences),
        None => {
            let rows = store.rows();
            let list = (0..rows).map(|row| Sequence { decisions: row..row + 1, successor: None }).collect();
            Cow::Owned(Sequences { list, memory: vec![0.0; rows * width] })
        }
    }
}

/// Plans how a network that remembers `width` numbers learns from a batch of whole sequences. Returns at most `most` plans, each with the weights
/// of its rows.
pub(crate) fn plans_of_batch(store: &Store, width: usize, batch: Batch<'_>, most: usize) -> Vec<(Plan, Vec<f32>)> {
    let (sequences, mut place) = (sequences(store, width), 0);
    let with_place = |number: usize| {
        let first = place;
        place += sequences.list[number].decisions.len();
        (number, first)
    };
    let chosen: Vec<(usize, usize)> = sequences.of_decisions(batch.indices).into_iter().map(with_place).collect();
    let with_weights = |part: &[(usize, usize)]| {
        let plan = Plan::new(&sequences, part, |_| None);
        let weights = plan.places.iter().map(|place| batch.weights[*place as usize]).collect();
        (plan, weights)
    };
    divide(&chosen, most).map(with_weights).collect()
}

/// Plans how such a network reads the first `rows` rows of a store. The places are the rows themselves.
pub(crate) fn plans_of_rows(store: &Store, width: usize, rows: usize, most: usize) -> Vec<Plan> {
    let sequences = sequences(store, width);
    let begins = sequences.list.iter().map(|sequence| sequence.decisions.start).enumerate();
    let chosen: Vec<(usize, usize)> = begins.filter(|(_, first)| *first < rows).collect();
    divide(&chosen, most).map(|part| Plan::new(&sequences, part, |row| (row < rows).then_some(row))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_are_read_side_by_side() {
        let sequence = |decisions, successor| Sequence { decisions, successor };
        let list = vec![sequence(0..2, Some(8)), sequence(2..5, None), sequence(5..7, None), sequence(7..8, Some(9))];
        let sequences = Sequences { list, memory: vec![0.1, 0.2, 0.3, 0.4] };
        // sequences 3, 1 and 0, whose decisions have the places 0, 1 to 3, and 4 and 5 of the batch
        let plan = Plan::new(&sequences, &[(3, 0), (1, 1), (0, 4)], |_| None);
        let expected =
            Plan { rows: vec![2, 0, 7, 3, 1, 4], places: vec![1, 4, 0, 2, 5, 3], steps: vec![3, 2, 1], memory: vec![0.2, 0.1, 0.4] };
        assert_eq!(plan, expected);
        let whole = Plan::new(&sequences, &[(0, 0), (3, 7)], Some);
        assert_eq!((whole.rows, whole.places), (vec![0, 7, 1, 9, 8], vec![0, 7, 1, 9, 8]));
        assert_eq!(sequences.of_decisions(&[7, 2, 3, 4, 0, 1]), [3, 1, 0]);
    }

    #[test]
    fn a_plan_has_enough_sequences_if_there_are_enough() {
        let lengths = |n: usize| divide(&vec![(0, 0); n], MOST).map(<[_]>::len).collect::<Vec<_>>();
        assert_eq!([lengths(1), lengths(15), lengths(16), lengths(26)], [vec![1], vec![15], vec![8, 8], vec![8, 9, 9]]);
        assert_eq!(lengths(1000).len(), MOST);
    }
}
