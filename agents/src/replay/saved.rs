//! A replay buffer in a checkpoint: its state, and pages of fixed size that hold the decisions.
//!
//! A page has the decisions in some slots of every environment. Its version, the number of decisions of an environment when the page was last
//! written, tells whether it has changed since an earlier checkpoint. A checkpoint therefore writes only the pages that new decisions went
//! to. The priorities change at random places, so they are part of the state and are written whole.

use std::ops::Range;

use super::{CONTINUES, Final, PAGE, Priorities, Replay, TRUNCATED};
use crate::replay::memory::Memory;
use crate::replay::sum_tree::SumTree;
use gradus_base::tensors::{Tensor, Tensors, TensorsError, get_f32, get_u64, named};
use gradus_nets::ActionRows;

/// The bits of a version above this one count interruptions.
const INTERRUPTIONS: u32 = 48;

/// A part of a replay buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Number of the page, counted from 0.
    pub number: usize,
    /// Decisions of each environment until the page was last written; in the highest 16 bits, the interruptions of episodes in it.
    pub version: u64,
}

/// Packs flags into words, from the lowest bit on.
fn packed(flags: &[bool]) -> Vec<u64> {
    flags.chunks(64).map(|flags| flags.iter().rev().fold(0, |word, flag| word << 1 | u64::from(*flag))).collect()
}

/// Returns rows of `width` numbers, at these positions.
fn picked(numbers: &[f32], positions: &[usize], width: usize) -> Tensor {
    let mut rows = Vec::with_capacity(positions.len() * width);
    for position in positions {
        rows.extend_from_slice(&numbers[position * width..(position + 1) * width]);
    }
    Tensor::f32(&[positions.len(), width], rows)
}

/// Returns the `n` flags in [packed] words.
fn unpacked(words: &[u64], n: usize) -> Result<Vec<bool>, TensorsError> {
    if words.len() != n.div_ceil(64) {
        return Err(TensorsError::State(format!("replay: expected {n} flags of action masks, got {} words", words.len())));
    }
    Ok((0..n).map(|i| words[i / 64] >> (i % 64) & 1 == 1).collect())
}

impl Replay {
    /// Actions with a mask; 0 without masks.
    pub(super) fn allowed(&self) -> usize {
        self.latest_masks.len() / self.envs
    }

    /// Slots of each environment in a page.
    fn page_slots(&self) -> usize {
        (PAGE / self.envs).max(1)
    }

    fn slots_of(&self, page: usize) -> Range<usize> {
        let n = self.page_slots();
        page * n..self.slots.min((page + 1) * n)
    }

    /// Returns the positions of a page's decisions: by environment, then by slot.
    fn slots_in(&self, page: Page) -> Vec<usize> {
        let mut slots = Vec::new();
        for env in 0..self.envs {
            slots.extend(self.slots_of(page.number).map(|slot| env * self.slots + slot));
        }
        slots
    }

    /// Returns the rows of a saved page of `rows` rows, each with its slot in this buffer. A buffer has no more room than a training collects,
    /// so the last page has other rows if the training was planned for another number of steps.
    fn slots_of_rows(&self, page: Page, rows: usize) -> Result<Vec<(usize, usize)>, TensorsError> {
        let Range { start, end } = self.slots_of(page.number);
        let (saved, own) = (rows / self.envs, end - start);
        let filled = self.steps.saturating_sub(start as u64);
        if !rows.is_multiple_of(self.envs) || saved != own && filled > saved.min(own) as u64 {
            let problem = format!(
                "replay: expected the size of the saved buffer, because decisions of it were replaced by later ones or find no room, got room for {} decisions",
                self.slots * self.envs
            );
            return Err(TensorsError::State(problem));
        }
        let of_env = |env: usize| (0..saved.min(own)).map(move |i| (env * saved + i, env * self.slots + start + i));
        Ok((0..self.envs).flat_map(of_env).collect())
    }

    /// Returns the pages that have decisions.
    pub fn pages(&self) -> Vec<Page> {
        let version = |page: usize| {
            let Range { start, end } = self.slots_of(page);
            let (round, slot) = (self.steps / self.slots as u64, (self.steps % self.slots as u64) as usize);
            match round {
                _ if slot > start => round * self.slots as u64 + slot.min(end) as u64,
                0 => 0,
                _ => (round - 1) * self.slots as u64 + end as u64,
            }
        };
        // a page is another one after an interruption, also if it has no more decisions
        let changes = |page: usize| {
            self.interrupted.iter().filter(|t| self.slots_of(page).contains(&((**t % self.slots as u64) as usize))).count() as u64
        };
        let version = |page: usize| version(page) + (changes(page) << INTERRUPTIONS);
        let pages = (0..self.slots.div_ceil(self.page_slots())).map(|number| Page { number, version: version(number) });
        pages.filter(|page| page.version > 0).collect()
    }

    /// Returns the decisions of a page.
    pub fn page(&self, page: Page) -> Tensors {
        let slots = self.slots_in(page);
        let n = slots.len();
        let actions = match &self.actions {
            ActionRows::Continuous { rows, width } => picked(rows, &slots, *width),
            ActionRows::Discrete(actions) => Tensor::u64(slots.iter().map(|slot| u64::from(actions[*slot])).collect()),
            ActionRows::OnDevice(_) => Tensor::u64(Vec::new()),
        };
        let (allowed, mut words) = (self.allowed(), vec![0; n.div_ceil(8)]);
        let mut masks = Vec::with_capacity(n * allowed);
        for (i, slot) in slots.iter().enumerate() {
            words[i / 8] |= u64::from(self.endings[*slot]) << (8 * (i % 8));
            masks.extend_from_slice(&self.masks[slot * allowed..(slot + 1) * allowed]);
        }
        let (mut ends, mut final_rows, mut final_masks) = (Vec::new(), Vec::new(), Vec::new());
        for (env, finals) in self.finals.iter().enumerate() {
            for Final { t, observation, mask } in finals {
                if self.slots_of(page.number).contains(&(self.slot(env, *t) - env * self.slots)) {
                    ends.extend([env as u64, *t]);
                    final_rows.push(observation);
                    final_masks.extend_from_slice(mask);
                }
            }
        }
        let mut tensors = named(vec![
            ("actions".into(), actions),
            ("rewards".into(), picked(&self.rewards, &slots, 1)),
            ("endings".into(), Tensor::u64(words)),
            ("truncated".into(), Tensor::u64(ends)),
            ("masks".into(), Tensor::u64(packed(&masks))),
            ("final_masks".into(), Tensor::u64(packed(&final_masks))),
        ]);
        let all = (0..final_rows.len()).collect::<Vec<_>>();
        let mut finals = self.observations.like(final_rows.len());
        final_rows.into_iter().enumerate().for_each(|(i, observation)| finals.set(i, observation, 0));
        tensors.extend(self.observations.save("observations", &slots));
        tensors.extend(finals.save("final_observations", &all));
        tensors
    }

    /// Restores the decisions of a page. Call it after [`load`](Replay::load), for the pages in the order of their numbers.
    pub fn load_page(&mut self, page: Page, tensors: &Tensors) -> Result<(), TensorsError> {
        if !self.pages().contains(&page) {
            let problem = format!(
                "replay: expected a page of the last {} decisions, got page {} of version {}",
                self.len(),
                page.number,
                page.version
            );
            return Err(TensorsError::State(problem));
        }
        let n = self.observations.saved_len("observations", tensors);
        let slots = self.slots_of_rows(page, n)?;
        let observations = self.observations.load("observations", n, tensors)?;
        let rewards = get_f32(tensors, "rewards", &[n, 1])?;
        let endings: Vec<u8> = get_u64(tensors, "endings")?.iter().flat_map(|word| word.to_le_bytes()).take(n).collect();
        let (ends, rest) = get_u64(tensors, "truncated")?.as_chunks::<2>();
        let finals = self.observations.load("final_observations", ends.len(), tensors)?;
        let allowed = self.allowed();
        let masks = unpacked(get_u64(tensors, "masks")?, n * allowed)?;
        let final_masks = unpacked(get_u64(tensors, "final_masks")?, ends.len() * allowed)?;
        if endings.len() != n || !rest.is_empty() || endings.iter().any(|ending| *ending > TRUNCATED) {
            return Err(TensorsError::State("replay: a page has other decisions than its size says".into()));
        }
        match &mut self.actions {
            ActionRows::Continuous { rows, width } => {
                let saved = get_f32(tensors, "actions", &[n, *width])?;
                for (row, slot) in &slots {
                    rows[slot * *width..(slot + 1) * *width].copy_from_slice(&saved[row * *width..(row + 1) * *width]);
                }
            }
            ActionRows::Discrete(actions) => {
                let saved = get_u64(tensors, "actions")?;
                if saved.len() != n {
                    return Err(TensorsError::State(format!("replay: expected {n} actions in a page, got {}", saved.len())));
                }
                slots.iter().for_each(|(row, slot)| actions[*slot] = saved[*row] as u32);
            }
            ActionRows::OnDevice(_) => {}
        }
        for (i, slot) in slots {
            self.observations.set(slot, &observations, i);
            self.rewards[slot] = rewards[i];
            self.endings[slot] = endings[i];
            self.masks[slot * allowed..(slot + 1) * allowed].copy_from_slice(&masks[i * allowed..(i + 1) * allowed]);
        }
        for (i, [env, t]) in ends.iter().enumerate() {
            let env = *env as usize;
            if env >= self.envs || !(self.oldest()..self.steps).contains(t) || self.endings[self.slot(env, *t)] != TRUNCATED {
                return Err(TensorsError::State("replay: a page has the final observation of a decision that was not truncated".into()));
            }
            let mask = final_masks[i * allowed..(i + 1) * allowed].to_vec();
            let mut observation = self.observations.like(1);
            observation.set(0, &finals, i);
            self.finals[env].push_back(Final { t: *t, observation, mask });
        }
        Ok(())
    }

    /// Checks a buffer whose pages are all loaded: every truncated decision has a final observation.
    pub fn finish_loading(&mut self) -> Result<(), TensorsError> {
        let oldest = self.oldest();
        for env in 0..self.envs {
            self.finals[env].make_contiguous().sort_unstable_by_key(|end| end.t);
            let truncated = (oldest..self.steps).filter(|t| self.endings[self.slot(env, *t)] == TRUNCATED);
            if !truncated.eq(self.finals[env].iter().map(|end| end.t)) {
                return Err(TensorsError::State("replay: a truncated decision lacks its final observation".into()));
            }
        }
        Ok(())
    }

    /// Returns the state without the pages.
    pub fn save(&self) -> Tensors {
        let action_width = match &self.actions {
            ActionRows::Continuous { width, .. } => *width,
            _ => 0, // discrete
        };
        let mut tensors = named(vec![
            ("steps".into(), Tensor::u64(vec![self.steps, self.observations.width() as u64, action_width as u64, self.allowed() as u64])),
            ("latest_masks".into(), Tensor::u64(packed(&self.latest_masks))),
        ]);
        if !self.interrupted.is_empty() {
            tensors.insert("interrupted".into(), Tensor::u64(self.interrupted.clone()));
        }
        let all: Vec<usize> = if self.rewards.is_empty() { Vec::new() } else { (0..self.envs).collect() };
        tensors.extend(self.latest.save("latest", &all));
        if let Some(Priorities { tree, greatest, .. }) = &self.priorities {
            tensors.insert("priorities".into(), Tensor::f32(&[tree.leaves().len()], tree.leaves().to_vec()));
            tensors.insert("greatest_priority".into(), Tensor::f32(&[1], vec![*greatest]));
        }
        tensors
    }

    /// Restores the state that [`save`](Replay::save) returned. The pages must then be loaded.
    pub fn load(&mut self, tensors: &Tensors) -> Result<(), TensorsError> {
        let [steps, width, action_width, allowed] = *get_u64(tensors, "steps")? else {
            return Err(TensorsError::State("replay: expected a number of steps and three widths".into()));
        };
        let (width, action_width, allowed) = (width as usize, action_width as usize, allowed as usize);
        let latest_masks = unpacked(get_u64(tensors, "latest_masks")?, self.envs * allowed)?;
        let n = if steps > 0 { self.envs } else { 0 };
        let latest = Memory::new(self.kept, width, 0).load("latest", n, tensors)?;
        if let Some(priorities) = &mut self.priorities {
            let n = tensors.get("priorities").and_then(|tensor| tensor.shape.first()).copied().unwrap_or_default();
            let saved = get_f32(tensors, "priorities", &[n])?;
            let (saved_slots, slots) = (n / self.envs, self.slots);
            // a training that was planned for another number of steps, and whose buffer has not begun to forget
            if !n.is_multiple_of(self.envs) || saved_slots != slots && steps > saved_slots.min(slots) as u64 {
                let problem = format!("replay: expected the size of the saved buffer, {n} decisions, got room for {}", self.envs * slots);
                return Err(TensorsError::State(problem));
            }
            let of_slot = |i: usize| if i % slots < saved_slots { saved[i / slots * saved_slots + i % slots] } else { 0.0 };
            let leaves: Vec<f32> = (0..self.envs * slots).map(of_slot).collect();
            let greatest = get_f32(tensors, "greatest_priority", &[1])?[0];
            if leaves.iter().chain([&greatest]).any(|priority| !(priority.is_finite() && *priority >= 0.0)) {
                return Err(TensorsError::State("replay: expected priorities of at least 0".into()));
            }
            (priorities.tree, priorities.greatest) = (SumTree::of(&leaves), greatest);
        }
        self.interrupted = if tensors.contains_key("interrupted") { get_u64(tensors, "interrupted")?.to_vec() } else { Vec::new() };
        let known = self.save();
        if let Some(name) = tensors.keys().find(|name| !known.contains_key(*name)) {
            return Err(TensorsError::Unexpected(name.clone()));
        }
        if steps > 0 {
            let like = if action_width > 0 {
                ActionRows::Continuous { rows: Vec::new(), width: action_width }
            } else {
                ActionRows::Discrete(Vec::new())
            };
            self.allocate(width, &like, allowed);
            self.latest = latest;
            self.latest_masks = latest_masks;
        }
        self.steps = steps;
        self.endings.fill(CONTINUES);
        self.finals.iter_mut().for_each(std::collections::VecDeque::clear);
        Ok(())
    }
}
