//! The fixed list of evaluation problems. It is the same for all policies, seeds and machines.
//!
//! The problems of a split are drawn one after the other with a fixed seed, and repeated prompts are skipped. So the list is a sample
//! without replacement from the task's distribution, and a shorter list is a prefix of a longer one. A split counts as exhausted
//! after [`patience`] repeats in a row, or when a set of known size is complete.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Division, Split, Task};
use gradus_base::random::{Purpose, Stream, episode_seed};

/// The seed of all evaluation problems.
const KEY: u64 = 0x6772_6164_7573;

/// Returns the number of repeats in a row after which the split counts as exhausted, if `found` problems are listed. If all problems are
/// equally likely and one is not listed, this many draws miss it with a probability below e^-30.
fn patience(found: usize) -> usize {
    1000 + 30 * found
}

/// The first problems of a split's fixed list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProblemList {
    /// One episode seed per problem. The prompts are all different.
    pub seeds: Vec<u64>,
    /// Whether the list contains all problems of the split.
    pub is_whole: bool,
}

/// The lists drawn so far, by split. Clones share them.
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
    /// Returns the first `n` problems of a split, or all of them if there are fewer.
    pub fn first(&self, task: &dyn Task, split: Split, n: usize) -> ProblemList {
        let mut listed = self.0[split as usize].lock().unwrap_or_else(PoisonError::into_inner);
        // draw one problem more than requested, to know whether the list is complete
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
