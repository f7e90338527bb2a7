//! The trajectory of one environment in a rollout.

use gradus_agents::{Collection, End, GroupId, Segment};
use gradus_envs::{Ending, Finished, Space};
use gradus_nets::{ActionRows, Observations};

use super::Episode;
use super::plan::RolloutPlan;
use crate::{Decisions, Normaliser};

/// The trajectory of one environment in a rollout. Indices of decisions count from its first decision, and indices of successors from its
/// first successor.
pub(super) struct Trajectory {
    pub observations: Observations,
    /// Observations before normalisation, if they are normalised.
    pub raw: Vec<f32>,
    pub masks: Vec<bool>,
    /// What the policy remembered at the beginning of each sequence that it will read.
    pub memory: Vec<f32>,
    pub actions: ActionRows,
    pub log_probs: Vec<f32>,
    pub rewards: Vec<f32>,
    pub endings: Vec<Ending>,
    /// Empty unless observations are texts.
    pub step_ends: Vec<bool>,
    pub segments: Vec<Segment>,
    pub successors: Observations,
    /// Masks of the successors, if the environment has masks.
    pub next_masks: Vec<bool>,
    /// Finished episodes, each with the index of its last decision.
    pub episodes: Vec<(usize, Episode)>,
}

impl Trajectory {
    pub fn new(observations: &Space, actions: &Space) -> Self {
        Self {
            observations: Observations::empty(observations),
            raw: Vec::new(),
            masks: Vec::new(),
            memory: Vec::new(),
            actions: ActionRows::empty(actions),
            log_probs: Vec::new(),
            rewards: Vec::new(),
            endings: Vec::new(),
            step_ends: Vec::new(),
            segments: Vec::new(),
            successors: Observations::empty(observations),
            next_masks: Vec::new(),
            episodes: Vec::new(),
        }
    }

    pub fn len(&self) -> usize {
        self.rewards.len()
    }

    /// Returns whether the trajectory has the number of steps or episodes that `collection` requires.
    pub fn is_complete(&self, collection: Collection) -> bool {
        match collection {
            Collection::Steps(steps) => self.len() >= steps,
            Collection::Episodes { per_env, .. } => self.episodes.len() >= per_env,
        }
    }

    pub fn clear(&mut self) {
        self.observations.clear();
        self.raw.clear();
        self.masks.clear();
        self.memory.clear();
        self.actions.resize(0);
        self.log_probs.clear();
        self.rewards.clear();
        self.endings.clear();
        self.step_ends.clear();
        self.segments.clear();
        self.successors.clear();
        self.next_masks.clear();
        self.episodes.clear();
    }

    /// Records the observation of a step: as the environment gave it (`raw`), and as the policy sees it. The mask is empty without masks.
    pub fn saw(&mut self, (raw, seen): (&[f32], &[f32]), mask: &[bool], plan: &RolloutPlan, normaliser: &Normaliser) {
        self.observations.push(if plan.is_raw { raw } else { seen });
        if normaliser.wants_observations() {
            self.raw.extend_from_slice(raw);
        }
        self.masks.extend_from_slice(mask);
    }

    /// Records what the policy remembers before the step, if a sequence begins with it.
    pub fn remembered(&mut self, memory: &[f32], plan: &RolloutPlan) {
        if plan.begins_sequence(self.len() - self.segments.last().map_or(0, |segment| segment.range.end)) {
            self.memory.extend_from_slice(memory);
        }
    }

    /// Records the decision of the step, which is in row `row`.
    pub fn decided(&mut self, decisions: &Decisions<'_>, row: usize) {
        self.log_probs.push(decisions.log_probs[row]);
        self.actions.push(decisions.drawn, row);
    }

    /// Records what the step led to. `step_end`: `None` unless observations are texts.
    pub fn received(&mut self, reward: f32, ending: Ending, step_end: Option<&bool>) {
        self.rewards.push(reward);
        self.endings.push(ending);
        self.step_ends.extend(step_end);
    }

    /// Records that the episode of environment `env` has ended with the last step.
    pub fn finish(&mut self, env: usize, finished: Finished, plan: &RolloutPlan, normaliser: &Normaliser) {
        let Finished { seed, ending, episode_return, length, mut observation, mask, scores, .. } = finished;
        let end = if ending.terminated() {
            End::Terminated
        } else {
            if !plan.is_raw {
                normaliser.show(&mut observation);
            }
            End::Truncated { successor: self.successor(&observation, mask.as_deref().unwrap_or_default()) }
        };
        self.close(end, plan.group(env, self.episodes.len()));
        self.episodes.push((self.len() - 1, Episode { step: 0, env, seed, episode_return, length, ending, scores }));
    }

    /// Closes the open segment, if there is one, because the rollout ends before this observation. The mask is empty without masks.
    pub fn cut(&mut self, env: usize, observation: &[f32], mask: &[bool], plan: &RolloutPlan, normaliser: &Normaliser) {
        if !self.is_open() {
            return;
        }
        let mut row = observation.to_vec();
        if !plan.is_raw {
            normaliser.show(&mut row);
        }
        let successor = self.successor(&row, mask);
        self.close(End::Cut { successor }, plan.group(env, self.episodes.len()));
    }

    /// Records that the environment has taken steps after the end of the trajectory that are in no rollout. The next rollout then does not continue
    /// this one: its last segment ends as if it was truncated.
    pub fn interrupt(&mut self) {
        if let Some(Segment { end, .. }) = self.segments.last_mut()
            && let End::Cut { successor } = *end
        {
            *end = End::Truncated { successor };
        }
    }

    /// Returns whether there are decisions since the last closed segment.
    pub fn is_open(&self) -> bool {
        self.segments.last().map_or(0, |segment| segment.range.end) < self.len()
    }

    /// Closes the open segment.
    fn close(&mut self, end: End, group: usize) {
        let begin = self.segments.last().map_or(0, |segment| segment.range.end);
        self.segments.push(Segment { range: begin..self.len(), end, group: GroupId(group as u32) });
        self.observations.end_episode();
    }

    /// Adds the observation that follows a segment, and its mask (empty without masks). Returns its index.
    fn successor(&mut self, row: &[f32], mask: &[bool]) -> usize {
        self.successors.push(row);
        self.next_masks.extend_from_slice(mask);
        self.successors.end_episode();
        self.successors.len() - 1
    }
}
