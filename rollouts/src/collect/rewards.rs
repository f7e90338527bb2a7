//! Completions that are rewarded together, after a rollout was recorded.

use gradus_envs::{EnvError, EnvSpec};
use gradus_nets::{ActionRows, Observations};

use super::shard::Shard;

/// Verifies the completions of the shards' trajectories, if `world` has [rewards beside the task's own](EnvSpec::with_rewards): the environments have left it
/// to others, and given no reward for them. The functions are called once, with the completions in the order of the environments, whatever the shards are.
pub(super) fn reward_together(world: &EnvSpec, shards: &mut [Shard]) -> Result<(), EnvError> {
    let Some(text) = world.text.as_ref().filter(|text| text.rewards.is_some()) else { return Ok(()) };
    let trajectories = || shards.iter().flat_map(|shard| &shard.trajectories);
    // each with the length of its completion
    let mut whole: Vec<(Vec<u32>, usize)> = Vec::new();
    for trajectory in trajectories() {
        let (Observations::Texts(texts), ActionRows::Discrete(actions)) = (&trajectory.observations, &trajectory.actions) else {
            unreachable!("a text environment has texts and tokens")
        };
        for (last, episode) in &trajectory.episodes {
            whole.push(([texts.prefix(*last), &actions[*last..=*last]].concat(), episode.length as usize));
        }
    }
    let completions: Vec<(&[u32], &[u32])> = whole.iter().map(|(tokens, length)| tokens.split_at(tokens.len() - length)).collect();
    let mut verified = text.verify_all(&completions)?.into_iter();
    for trajectory in shards.iter_mut().flat_map(|shard| &mut shard.trajectories) {
        for (last, episode) in &mut trajectory.episodes {
            let (reward, scores) = verified.next().expect("one for each completion");
            trajectory.rewards[*last] += reward as f32;
            episode.episode_return += reward;
            episode.scores = scores;
        }
    }
    Ok(())
}
