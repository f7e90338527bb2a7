//! The fixed list of problems that evaluations ask: the same for all policies, seeds and machines.
//!
//! The problems of a split are drawn one after the other with a fixed key, and a prompt that was drawn before is left out. So the list is in
//! the order of a sample without replacement from the task's own distribution, and a shorter list is the beginning of a longer one. A
//! split counts as exhausted when [`patience`] draws in a row were repeats, a set of known size when it is complete.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Division, Split, Task};
use crate::random::{Purpose, Stream, episode_seed};

/// The seed that all problems of evaluations are drawn with.
const KEY: u64 = 0x6772_6164_7573;

/// After how many repeats in a row the split counts as exhausted, when `found` problems are known. Where all are equally likely and one is
/// missing, so many draws miss it with a probability of e^-30.
fn patience(found: usize) -> usize {
    1000 + 30 * found
}

/// The first problems of a split's fixed list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProblemList {
    /// The seeds of the episodes that ask them, one for each. Their prompts are all different.
    pub seeds: Vec<u64>,
    /// Whether these are all problems there are.
    pub is_whole: bool,
}

/// What is known of the lists so far, by split. Copies share it.
#[derive(Clone, Default)]
pub(super) struct Lists(Arc<[Mutex<Listed>; Split::ALL.len()]>);

#[derive(Default)]
struct Listed {
    seeds: Vec<u64>,
    prompts: BTreeSet<Vec<u32>>,
    draws: u64,
    repeats: usize,
    is_exhausted: bool,
}

impl Lists {
    /// The first `n` problems of a split, or all of them where there are fewer.
    pub fn first(&self, task: &dyn Task, split: Split, n: usize) -> ProblemList {
        let mut listed = self.0[split as usize].lock().unwrap_or_else(PoisonError::into_inner);
        // one more than asked for: it tells whether these are all
        while listed.seeds.len() <= n && !listed.is_exhausted {
            listed.draw(task, split);
        }
        let seeds: Vec<u64> = listed.seeds.iter().take(n).copied().collect();
        ProblemList { is_whole: seeds.len() == listed.seeds.len(), seeds }
    }
}

impl Listed {
    fn draw(&mut self, task: &dyn Task, split: Split) {
        let seed = episode_seed(KEY, 0, self.draws);
        self.draws += 1;
        let prompt = task.problem(split, &mut Stream::new(seed, Purpose::Environment, 0)).prompt;
        if !prompt.is_empty() && self.prompts.insert(prompt) {
            self.seeds.push(seed);
            self.repeats = 0;
        } else {
            self.repeats += 1;
        }
        let is_complete = matches!(task.division(), Division::OneSet { problems } if self.seeds.len() == problems);
        self.is_exhausted = is_complete || self.repeats >= patience(self.seeds.len());
    }
}
