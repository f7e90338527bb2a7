//! Assembles a rollout from the trajectories of the environments.

use gradus_agents::{Completion, Rollout, Scaling};
use gradus_envs::Space;
use gradus_nets::{ActionRows, Observations, Sequence, Sequences, Store};

use super::Episode;
use super::plan::RolloutPlan;
use super::trajectory::Trajectory;
use crate::normaliser::Normaliser;

/// What a rollout must know of its environments.
#[derive(Clone)]
pub(crate) struct EnvShape {
    pub observations: Space,
    pub actions: Space,
    pub score_names: Vec<String>,
}

/// Concatenates trajectories, each with the number of its environment, into a rollout. Also returns the episodes that ended in it, in the order
/// in which they ended. Updates `normaliser` environment by environment, then scales the rewards, unless the rollout stays as the environment
/// gave it.
pub(super) fn assemble<'a>(
    numbered: impl Iterator<Item = (usize, &'a Trajectory)> + Clone,
    of: &EnvShape,
    normaliser: &mut Normaliser,
    plan: &RolloutPlan,
) -> (Rollout, Vec<Episode>) {
    let trajectories = || numbered.clone().map(|(_, trajectory)| trajectory);
    let n: usize = trajectories().map(Trajectory::len).sum();
    let rows = n + trajectories().map(|trajectory| trajectory.successors.len()).sum::<usize>();
    let mut observations = Observations::empty(&of.observations);
    observations.reserve(rows);
    let mut actions = ActionRows::empty(&of.actions);
    let (mut log_probs, mut rewards) = (Vec::with_capacity(n), Vec::with_capacity(n));
    let (mut masks, mut step_ends, mut segments, mut finished) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut first_successor = n;
    for (env, trajectory) in numbered.clone() {
        let first = rewards.len();
        observations.extend(&trajectory.observations);
        masks.extend_from_slice(&trajectory.masks);
        actions.extend(&trajectory.actions);
        log_probs.extend_from_slice(&trajectory.log_probs);
        rewards.extend_from_slice(&trajectory.rewards);
        step_ends.extend_from_slice(&trajectory.step_ends);
        segments.extend(trajectory.segments.iter().map(|segment| segment.moved(first, first_successor)));
        normaliser.learn(env, &trajectory.raw, &mut rewards[first..], &trajectory.endings);
        first_successor += trajectory.successors.len();
        finished.extend_from_slice(&trajectory.episodes);
    }
    // every segment is a whole episode, in the same order
    let whole = || finished.iter().map(|(_, episode)| Completion::of_scores(&of.score_names, &episode.scores));
    let completions = if finished.len() == segments.len() { whole().collect::<Option<_>>().unwrap_or_default() } else { Vec::new() };
    trajectories().for_each(|trajectory| observations.extend(&trajectory.successors));
    let scaling = if plan.is_raw { normaliser.scaling() } else { Scaling::default() };
    if !plan.is_raw {
        normaliser.scale_rewards(&mut rewards);
    }

    let episodes = in_order(finished, trajectories().map(|trajectory| trajectory.len() as u64).collect(), plan.before);
    let mut store = Store::of(observations, actions);
    if plan.memory > 0 {
        let mut sequences =
            Sequences { list: Vec::new(), memory: trajectories().flat_map(|trajectory| trajectory.memory.iter().copied()).collect() };
        for segment in &segments {
            for decisions in plan.sequences(segment.range.clone()) {
                let successor = segment.end.successor().filter(|_| decisions.end == segment.range.end);
                sequences.list.push(Sequence { decisions, successor });
            }
        }
        store = store.with_sequences(sequences);
    }
    if !masks.is_empty() {
        store = store.with_masks(masks);
        store.next_masks = Some(trajectories().flat_map(|trajectory| trajectory.next_masks.iter().copied()).collect());
    }
    (Rollout { step_ends, completions, scaling, ..Rollout::new(store, rewards, log_probs, segments) }, episodes)
}

/// Returns episodes in the order in which they ended, and sets their `step`. `finished` has each episode with the index of its last step in
/// its trajectory. `lengths` has the number of steps of each trajectory. `before` is the number of steps before the rollout.
pub(super) fn in_order(mut finished: Vec<(usize, Episode)>, mut lengths: Vec<u64>, before: u64) -> Vec<Episode> {
    // when an environment has taken t + 1 steps, every other environment has taken t + 1 steps, or all its steps if they are fewer
    lengths.sort_unstable();
    let sums: Vec<u64> = std::iter::once(0).chain(lengths.iter().scan(0, |sum, length| Some(add(sum, *length)))).collect();
    let steps_at = |t: usize| {
        let shorter = lengths.partition_point(|length| *length <= t as u64);
        sums[shorter] + (lengths.len() - shorter) as u64 * (t as u64 + 1)
    };
    finished.sort_by_key(|(t, episode)| (*t, episode.env));
    finished.into_iter().map(|(t, episode)| Episode { step: before + steps_at(t), ..episode }).collect()
}

fn add(sum: &mut u64, length: u64) -> u64 {
    *sum += length;
    *sum
}
