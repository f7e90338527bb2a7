//! A replay buffer (Lin 1992; Mnih et al. 2015): the latest decisions of all environments, from which an agent samples.
//!
//! A sample is a [`Rollout`] of short segments. Each segment begins at a decision that was drawn at random, has up to `horizon` decisions,
//! and ends as [`End`] says: the episode terminated, it was truncated, or the segment was cut. A truncated or cut segment has its own next
//! observation, so [`Segment::bootstrap`] and [`discounted`](crate::parts::returns::discounted) give n-step returns that are right at every end.
//!
//! Every observation is stored once: the next observation of a decision is the observation of the next decision. Only the final observation
//! of a truncated episode is stored beside it. Of images, each frame is stored once, as bytes, and a one-hot code as its number ([`Kept`]). Observations and rewards are stored as the environment gave them, rewards scaled and clipped, and
//! normalised when they are sampled, with the statistics of that moment.
//!
//! With priorities, decision i is drawn with probability P(i) = p_i^alpha / sum_j p_j^alpha, and has the importance weight
//! (N P(i))^-beta, divided by the largest weight of the sample (Schaul et al., arXiv 1511.05952, equation 1 and section 3.4). A new decision gets the
//! greatest priority so far.

mod memory;
pub mod off_policy;
mod saved;
mod sum_tree;

use std::collections::VecDeque;

use gradus_base::math;
use gradus_base::random::Stream;
use gradus_nets::{ActionRows, Observations, Store};

use crate::replay::memory::Memory;
use crate::replay::sum_tree::SumTree;
use crate::rollout::{End, GroupId, Rollout, Scaling, Segment};
pub use memory::Kept;
pub use saved::Page;

/// Before the names of the buffer's tensors in the state of an agent.
pub const REPLAY: &str = "replay.";

/// Approximate number of decisions in a page.
const PAGE: usize = 16_384;

/// What follows a decision.
const CONTINUES: u8 = 0;
const TERMINATED: u8 = 1;
const TRUNCATED: u8 = 2;

/// The latest decisions of all environments.
///
/// ```
/// use gradus_agents::{End, GroupId, Replay, Rollout, Segment};
/// use gradus_base::random::{Purpose, Stream};
/// use gradus_nets::{ActionRows, Observations, Store};
///
/// // one environment takes the decisions 0 and 1 and then observes 0.2
/// let store = Store::new(1, vec![0.0, 0.1, 0.2], ActionRows::Discrete(vec![1, 0]));
/// let segment = Segment { range: 0..2, end: End::Cut { successor: 2 }, group: GroupId(0) };
/// let mut replay = Replay::new(100, 1);
/// replay.extend(&Rollout::new(store, vec![1.0, 2.0], vec![0.0; 2], vec![segment]));
///
/// let sample = replay.sample(32, 1, &mut Stream::new(7, Purpose::Replay, 0));
/// assert_eq!((replay.len(), sample.rollout.len()), (2, 32));
/// for segment in &sample.rollout.segments {
///     let End::Cut { successor } = segment.end else { panic!("the episode goes on") };
///     let (now, next) = (sample.rollout.store.observation(segment.range.start)[0], sample.rollout.store.observation(successor)[0]);
///     assert!((next - now - 0.1).abs() < 1e-6);
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Replay {
    envs: usize,
    /// Decisions that are kept of each environment.
    slots: usize,
    /// Decisions so far of each environment.
    steps: u64,
    kept: Kept,
    /// Observations, actions, rewards and what follows, by environment, then by slot. Decision t of an environment is in slot t modulo `slots`.
    /// All are empty before the first rollout.
    observations: Memory,
    actions: ActionRows,
    rewards: Vec<f32>,
    endings: Vec<u8>,
    /// Which actions were allowed in each slot; empty without masks.
    masks: Vec<bool>,
    /// For each environment, the truncated decisions and their final observations, in the order of time.
    finals: Vec<VecDeque<Final>>,
    /// The decisions after which all episodes were [interrupted](Replay::interrupt).
    interrupted: Vec<u64>,
    /// The observation of each environment after its latest decision, and its mask.
    latest: Memory,
    latest_masks: Vec<bool>,
    scaling: Scaling,
    priorities: Option<Priorities>,
}

/// The final observation of a truncated episode.
#[derive(Clone, Debug)]
struct Final {
    /// Number of the truncated decision.
    t: u64,
    /// One observation.
    observation: Memory,
    /// Empty without masks.
    mask: Vec<bool>,
}

/// The priorities of prioritised replay.
#[derive(Clone, Debug)]
struct Priorities {
    /// Alpha.
    exponent: f32,
    /// p^alpha of every slot.
    tree: SumTree,
    /// The greatest p^alpha so far.
    greatest: f32,
}

/// Decisions that were sampled from a [`Replay`].
#[derive(Clone, Debug)]
pub struct Sample {
    /// The segments. The decision that was drawn is the first of its segment.
    pub rollout: Rollout,
    /// Index of the first decision of each segment.
    pub first: Vec<u32>,
    /// Importance weight of each segment: 1 without priorities, at most 1 with them.
    pub weights: Vec<f32>,
    /// Position of each drawn decision in the buffer, for [`Replay::set_priorities`].
    pub slots: Vec<usize>,
}

impl Sample {
    /// Returns the targets of the drawn decisions, each at the index of its decision. `backup(t, v)` is the target of decision t if the value
    /// after it is v, usually r\[t\] + gamma v. It is applied to the decisions of the segment, from the last to the first, so that a segment of n
    /// rewards gives r + gamma r' + ... + gamma^n v. `values` has `atoms` values v for each observation after a segment, in the order of the
    /// store. After a termination, v is 0. A decision has `atoms` targets.
    pub fn targets(&self, values: &[f32], atoms: usize, backup: impl Fn(usize, f32) -> f32) -> Vec<f32> {
        let Rollout { segments, rewards, .. } = &self.rollout;
        let mut targets = vec![0.0; rewards.len() * atoms];
        for segment in segments {
            let own = &mut targets[segment.range.start * atoms..(segment.range.start + 1) * atoms];
            if let End::Truncated { successor } | End::Cut { successor } = segment.end {
                own.copy_from_slice(&values[(successor - rewards.len()) * atoms..][..atoms]);
            }
            for t in segment.range.clone().rev() {
                own.iter_mut().for_each(|target| *target = backup(t, *target));
            }
        }
        targets
    }

    /// Returns the action of decision `t`.
    ///
    /// # Panics
    /// If the actions are not discrete.
    pub fn action(&self, t: usize) -> usize {
        let ActionRows::Discrete(actions) = &self.rollout.store.actions else { panic!("actions: expected discrete actions") };
        actions[t] as usize
    }

    /// Returns which actions were allowed at decision `t`; `None` without masks.
    pub fn mask(&self, t: usize) -> Option<&[bool]> {
        let masks = self.rollout.store.masks.as_ref()?;
        let actions = masks.len() / self.rollout.len();
        Some(&masks[t * actions..(t + 1) * actions])
    }

    /// Returns which actions are allowed in the observation number `i` of those that follow a segment; `None` without masks.
    pub fn next_mask(&self, i: usize) -> Option<&[bool]> {
        let masks = self.rollout.store.next_masks.as_ref()?;
        let actions = masks.len() / (self.rollout.store.rows() - self.rollout.len());
        Some(&masks[i * actions..(i + 1) * actions])
    }
}

impl Replay {
    /// Creates a buffer for at most `capacity` decisions of `envs` environments, the same number for each environment.
    ///
    /// # Panics
    /// If `capacity` is less than `envs`.
    pub fn new(capacity: usize, envs: usize) -> Self {
        assert!(envs > 0 && capacity >= envs, "replay: expected room for a decision of each of {envs} environments, got {capacity}");
        Self {
            envs,
            slots: capacity / envs,
            steps: 0,
            kept: Kept::Rows,
            observations: Memory::new(Kept::Rows, 0, 0),
            actions: ActionRows::Discrete(Vec::new()),
            rewards: Vec::new(),
            endings: Vec::new(),
            masks: Vec::new(),
            finals: vec![VecDeque::new(); envs],
            interrupted: Vec::new(),
            latest: Memory::new(Kept::Rows, 0, 0),
            latest_masks: Vec::new(),
            scaling: Scaling::default(),
            priorities: None,
        }
    }

    /// Keeps observations in this form.
    pub fn keeping(self, kept: Kept) -> Self {
        let none = || Memory::new(kept, 0, 0);
        Self { kept, observations: none(), latest: none(), ..self }
    }

    /// Draws decisions in proportion to their priority to the power of `exponent` (alpha).
    pub fn with_priorities(self, exponent: f32) -> Self {
        let tree = SumTree::new(self.envs * self.slots);
        Self { priorities: Some(Priorities { exponent, tree, greatest: 1.0 }), ..self }
    }

    /// Returns the bytes of a buffer of `capacity` decisions with observations of so many bytes and actions of this width.
    pub fn bytes(capacity: usize, observation: f64, action_width: usize, is_prioritised: bool) -> f64 {
        // a reward has four bytes, what follows one; a priority has four, and its share of the sums half a byte
        capacity as f64 * (observation + (4 * action_width + 5) as f64 + if is_prioritised { 4.5 } else { 0.0 })
    }

    /// Number of decisions in the buffer.
    pub fn len(&self) -> usize {
        self.envs * self.kept()
    }

    /// Whether the decisions have action masks; `None` if there are no decisions.
    pub fn has_masks(&self) -> Option<bool> {
        (!self.is_empty()).then(|| self.allowed() > 0)
    }

    /// Whether the buffer has no decisions.
    pub fn is_empty(&self) -> bool {
        self.steps == 0
    }

    /// Decisions in the buffer of each environment.
    fn kept(&self) -> usize {
        self.steps.min(self.slots as u64) as usize
    }

    /// Number of the oldest decision in the buffer.
    fn oldest(&self) -> u64 {
        self.steps - self.kept() as u64
    }

    fn slot(&self, env: usize, t: u64) -> usize {
        env * self.slots + (t % self.slots as u64) as usize
    }

    /// Adds the decisions of a rollout, which replace the oldest ones if the buffer is full.
    ///
    /// # Panics
    /// If the rollout does not have the same number of decisions of each environment, one environment after another, or if its observations
    /// are not of the kind that is kept.
    pub fn extend(&mut self, rollout: &Rollout) {
        let n = rollout.len();
        assert!(n.is_multiple_of(self.envs), "replay: expected as many decisions of each of {} environments, got {n} in all", self.envs);
        let store = &rollout.store;
        // actions with a mask; 0 without masks
        let allowed = store.masks.as_ref().map_or(0, |masks| masks.len() / n.max(1));
        if self.rewards.is_empty() {
            self.allocate(store.width(), &store.actions, allowed);
        }
        let next_mask = |successor: usize| match &store.next_masks {
            Some(masks) if allowed > 0 => &masks[(successor - n) * allowed..(successor - n + 1) * allowed],
            _ => &[][..],
        };
        self.scaling = rollout.scaling.clone();
        let per_env = n / self.envs;
        let greatest = self.priorities.as_ref().map(|priorities| priorities.greatest);
        for Segment { range, end, .. } in &rollout.segments {
            let env = range.start / per_env;
            for i in range.clone() {
                let slot = self.slot(env, self.steps + (i - env * per_env) as u64);
                self.put(slot, store, i);
                self.actions.set(slot, &store.actions, i);
                self.rewards[slot] = rollout.rewards[i];
                self.endings[slot] = CONTINUES;
                if let Some(masks) = &store.masks {
                    self.masks[slot * allowed..(slot + 1) * allowed].copy_from_slice(&masks[i * allowed..(i + 1) * allowed]);
                }
                if let (Some(priorities), Some(greatest)) = (&mut self.priorities, greatest) {
                    priorities.tree.set(slot, greatest);
                }
            }
            let Some(last) = range.end.checked_sub(1) else { continue };
            let t = self.steps + (last - env * per_env) as u64;
            let slot = self.slot(env, t);
            match *end {
                End::Terminated => self.endings[slot] = TERMINATED,
                End::Truncated { successor } => {
                    self.endings[slot] = TRUNCATED;
                    let (mut observation, mask) = (self.observations.like(1), next_mask(successor).to_vec());
                    observation.put(0, store, successor, Some((&self.observations, slot)));
                    self.finals[env].push_back(Final { t, observation, mask });
                }
                End::Cut { successor } => {
                    self.latest.put(env, store, successor, Some((&self.observations, slot)));
                    self.latest_masks[env * allowed..(env + 1) * allowed].copy_from_slice(next_mask(successor));
                }
            }
        }
        self.steps += per_env as u64;
        let oldest = self.oldest();
        self.interrupted.retain(|t| *t >= oldest);
        for finals in &mut self.finals {
            while finals.front().is_some_and(|end| end.t < oldest) {
                finals.pop_front();
            }
        }
    }

    /// Ends the episodes that are going on, as if they had been truncated: what is added next belongs to new ones.
    pub fn interrupt(&mut self) {
        let Some(t) = self.steps.checked_sub(1) else { return };
        let mut is_changed = false;
        for env in 0..self.envs {
            let slot = self.slot(env, t);
            if self.endings[slot] == CONTINUES {
                self.endings[slot] = TRUNCATED;
                is_changed = true;
                let (mut observation, mask) = (self.latest.like(1), row_of(&self.latest_masks, self.envs, env).to_vec());
                observation.set(0, &self.latest, env);
                self.finals[env].push_back(Final { t, observation, mask });
            }
        }
        self.interrupted.extend(is_changed.then_some(t));
    }

    /// Sets the observation of a slot to number `row` of a store.
    fn put(&mut self, slot: usize, store: &Store, row: usize) {
        let Self { observations, slots, .. } = self;
        // the observation before is in the slot before
        let first = slot / *slots * *slots;
        let before = first + (slot - first + *slots - 1) % *slots;
        let before = observations.of_one(before);
        observations.put(slot, store, row, before.as_ref().map(|memory| (memory, 0)));
    }

    fn allocate(&mut self, width: usize, like: &ActionRows, allowed: usize) {
        let n = self.envs * self.slots;
        self.observations = Memory::new(self.kept, width, n);
        self.rewards = vec![0.0; n];
        self.endings = vec![CONTINUES; n];
        self.latest = self.observations.like(self.envs);
        self.masks = vec![true; n * allowed];
        self.latest_masks = vec![true; self.envs * allowed];
        self.actions = match like {
            ActionRows::Continuous { width, .. } => ActionRows::Continuous { rows: vec![0.0; n * width], width: *width },
            _ => ActionRows::Discrete(vec![0; n]),
        };
    }

    /// Samples `n` decisions, with replacement. The segment of each has up to `horizon` decisions, at least one.
    ///
    /// # Panics
    /// If the buffer is empty.
    pub fn sample(&self, n: usize, horizon: usize, stream: &mut Stream) -> Sample {
        assert!(!self.is_empty(), "replay: expected decisions to sample from, got an empty buffer");
        let (kept, oldest) = (self.kept(), self.oldest());
        let horizon = horizon.clamp(1, kept);
        let draw = |i: usize, stream: &mut Stream| match &self.priorities {
            None => {
                let number = stream.below(self.len() as u32) as usize;
                self.slot(number / kept, oldest + (number % kept) as u64)
            }
            // one draw from each of n ranges of equal mass
            Some(Priorities { tree, .. }) => tree.find((i as f64 + stream.unit_f64()) / n as f64 * tree.total()),
        };
        let slots: Vec<usize> = (0..n).map(|i| draw(i, stream)).collect();
        let decisions = n * horizon;
        let (mut observations, mut successors) = (self.observations.empty(), self.observations.empty());
        observations.reserve(decisions + n);
        let (mut masks, mut next_masks) = (Vec::new(), Vec::new());
        let mut actions = self.actions_with_capacity(decisions);
        let (mut rewards, mut segments, mut first) = (Vec::with_capacity(decisions), Vec::with_capacity(n), Vec::with_capacity(n));
        for (i, slot) in slots.iter().enumerate() {
            let (env, begin) = (slot / self.slots, rewards.len());
            let mut slot = *slot;
            let mut t = self.time_of(slot % self.slots);
            let (successor, mask) = loop {
                self.observations.read(slot, &mut observations);
                actions.push(&self.actions, slot);
                rewards.push(self.rewards[slot]);
                masks.extend_from_slice(row_of(&self.masks, self.envs * self.slots, slot));
                t += 1;
                let next = self.slot(env, t);
                match self.endings[slot] {
                    TERMINATED => break (None, &[][..]),
                    TRUNCATED => break self.final_observation(env, t - 1),
                    _ if t == self.steps => break (Some((&self.latest, env)), row_of(&self.latest_masks, self.envs, env)),
                    _ if rewards.len() - begin == horizon => {
                        break (Some((&self.observations, next)), row_of(&self.masks, self.envs * self.slots, next));
                    }
                    _ => slot = next,
                }
            };
            let row = successors.len(); // later moved behind all decisions
            successor.into_iter().for_each(|(memory, i)| memory.read(i, &mut successors));
            next_masks.extend_from_slice(mask);
            let end = match self.endings[slot] {
                TERMINATED => End::Terminated,
                TRUNCATED => End::Truncated { successor: row },
                _ => End::Cut { successor: row },
            };
            first.push(begin as u32);
            segments.push(Segment { range: begin..rewards.len(), end, group: GroupId(i as u32) });
        }
        let decisions = rewards.len();
        segments.iter_mut().for_each(|segment| *segment = segment.moved(0, decisions));
        observations.extend(&successors);
        let rows = if let Observations::Rows { rows, .. } = &mut observations { &mut rows[..] } else { &mut [] };
        self.scaling.apply(rows, &mut rewards);
        let mut store = Store::of(observations, actions);
        if !self.masks.is_empty() {
            (store.masks, store.next_masks) = (Some(masks), Some(next_masks));
        }
        let weights = vec![1.0; n];
        Sample { rollout: Rollout::new(store, rewards, vec![0.0; decisions], segments), first, weights, slots }
    }

    /// Replaces the importance weights of `sample` by (N P(i))^-beta, divided by their maximum. Without priorities, changes nothing.
    pub fn weigh(&self, sample: &mut Sample, beta: f32) {
        let Some(Priorities { tree, .. }) = &self.priorities else { return };
        let scale = self.len() as f64 / tree.total();
        let weight = |slot: &usize| math::pow(scale * f64::from(tree.leaves()[*slot]), -f64::from(beta));
        let weights: Vec<f64> = sample.slots.iter().map(weight).collect();
        let greatest = weights.iter().fold(0.0, |a: f64, b| a.max(*b));
        sample.weights.iter_mut().zip(weights).for_each(|(to, weight)| *to = (weight / greatest) as f32);
    }

    /// Sets the priorities p of the decisions that were drawn for `sample`. Without priorities, changes nothing.
    ///
    /// # Panics
    /// If there is not one priority for each decision that was drawn.
    pub fn set_priorities(&mut self, sample: &Sample, priorities: &[f32]) {
        assert_eq!(sample.slots.len(), priorities.len(), "priorities: expected one for each decision");
        let Some(Priorities { exponent, tree, greatest }) = &mut self.priorities else { return };
        for (slot, priority) in sample.slots.iter().zip(priorities) {
            // not `powf`, which differs between platforms
            let mass = math::pow(f64::from(*priority), f64::from(*exponent)) as f32;
            *greatest = greatest.max(mass);
            tree.set(*slot, mass);
        }
    }

    fn actions_with_capacity(&self, n: usize) -> ActionRows {
        match &self.actions {
            ActionRows::Continuous { width, .. } => ActionRows::Continuous { rows: Vec::with_capacity(n * width), width: *width },
            _ => ActionRows::Discrete(Vec::with_capacity(n)),
        }
    }

    /// Returns the number of the decision in a slot of an environment.
    fn time_of(&self, slot: usize) -> u64 {
        let oldest = self.oldest();
        let (oldest_slot, slots) = (oldest % self.slots as u64, self.slots as u64);
        oldest + (slot as u64 + slots - oldest_slot) % slots
    }

    /// Returns the observation after the truncated decision `t` of an environment, and its mask.
    fn final_observation(&self, env: usize, t: u64) -> (Option<(&Memory, usize)>, &[bool]) {
        let finals = &self.finals[env];
        let Final { observation, mask, .. } = &finals[finals.partition_point(|end| end.t < t)];
        (Some((observation, 0)), mask)
    }
}

/// Returns row number `row` of `rows` rows of equal length.
fn row_of<T>(numbers: &[T], rows: usize, row: usize) -> &[T] {
    let width = numbers.len() / rows;
    &numbers[row * width..(row + 1) * width]
}
