//! What rules remember between steps: the last steps, and eligibility traces.

use std::collections::{BTreeMap, VecDeque};

use super::Experience;
use super::agent::{Seen, Sizes, fits};

/// The words of lists of steps, one list for each environment.
pub(super) struct Steps;

impl Steps {
    pub(super) fn save(lists: &[VecDeque<Seen>]) -> Vec<u64> {
        let words = |seen: &Seen| {
            let Seen { step, next_action, probability, .. } = *seen;
            [step.state as u64, step.action as u64, step.reward.to_bits(), step.next as u64, next_action as u64, probability.to_bits()]
        };
        lists.iter().flat_map(|list| std::iter::once(list.len() as u64).chain(list.iter().flat_map(words))).collect()
    }

    /// Steps that are remembered did not end their episode.
    pub(super) fn load(lists: &mut [VecDeque<Seen>], mut words: &[u64], sizes: Sizes) -> Option<()> {
        for (env, list) in lists.iter_mut().enumerate() {
            let (count, rest) = words.split_first()?;
            let (own, rest) = rest.split_at_checked((*count as usize).checked_mul(6)?)?;
            list.clear();
            for word in own.as_chunks::<6>().0 {
                let [state, action, reward, next, next_action, probability] = *word;
                let reward = f64::from_bits(reward);
                let step = Experience { state: state as usize, action: action as usize, reward, next: next as usize, terminated: false };
                let probability = f64::from_bits(probability);
                if !fits(&step, sizes) || next_action as usize >= sizes.1 {
                    return None;
                }
                list.push_back(Seen { env, step, next_action: next_action as usize, probability, is_last: false });
            }
            words = rest;
        }
        words.is_empty().then_some(())
    }
}

/// Eligibility traces z of the values of a table, by place. Only those above a ten-thousandth are kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Traces(BTreeMap<usize, f64>);

impl Traces {
    /// Sets a trace to 1, or adds 1 to it.
    pub(super) fn visit(&mut self, place: usize, replace: bool) {
        let trace = self.0.entry(place).or_default();
        *trace = if replace { 1.0 } else { *trace + 1.0 };
    }

    pub(super) fn decay(&mut self, factor: f64) {
        self.0.retain(|_, trace| {
            *trace *= factor;
            *trace > 1e-4
        });
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, f64)> {
        self.0.iter().map(|(place, trace)| (*place, *trace))
    }

    pub(super) fn save(all: &[Self]) -> Vec<u64> {
        let words = |traces: &Self| {
            let each = traces.iter().flat_map(|(place, trace)| [place as u64, trace.to_bits()]);
            std::iter::once(traces.0.len() as u64).chain(each).collect::<Vec<u64>>()
        };
        all.iter().flat_map(words).collect()
    }

    pub(super) fn load(all: &mut [Self], mut words: &[u64], most: usize) -> Option<()> {
        for traces in all {
            let (count, rest) = words.split_first()?;
            let (own, rest) = rest.split_at_checked((*count as usize).checked_mul(2)?)?;
            traces.0 = own.as_chunks::<2>().0.iter().map(|[place, trace]| (*place as usize, f64::from_bits(*trace))).collect();
            if traces.0.keys().any(|place| *place >= most) {
                return None;
            }
            words = rest;
        }
        words.is_empty().then_some(())
    }
}
