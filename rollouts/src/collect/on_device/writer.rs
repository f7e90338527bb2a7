//! Generates completions on the policy's device. The host receives whole completions and steps its environments with their tokens.
//!
//! Sampling does not wait for the host after each token. Every text task works, because prompts and rewards are computed on the host. All
//! environments, or as many as allowed, generate at the same time. The episodes of an environment are generated one after another.

use gradus_agents::Collection;
use gradus_base::random::episode_seed;
use gradus_base::threads;
use gradus_envs::text::{TextWorld, tokens};
use gradus_envs::{EnvSpec, TensorEnvSpec};
use gradus_nets::Behaviour;
use gradus_nets::torch::{StreamPosition, Transformer};

use super::{NotThere, Writer, as_type};
use crate::collect::shard::{Script, Shard};

/// Generates the scripts of a rollout: the tokens of all environments.
pub(super) struct OnLibtorch {
    world: EnvSpec,
    text: TextWorld,
    per_env: usize,
    /// For each token, whether it ends a completion.
    ends: Vec<bool>,
}

impl OnLibtorch {
    pub fn new(world: &EnvSpec, collection: Collection, policy: &dyn Behaviour) -> Result<Self, NotThere> {
        let Collection::Episodes { per_env, .. } = collection else { return Err(NotThere::Unsuited("this agent collects parts of texts")) };
        as_type::<Transformer>(policy).ok_or(NotThere::Unsuited("the policy is not a transformer on libtorch"))?;
        let (Some(TensorEnvSpec::Text | TensorEnvSpec::TargetSum(_)), Some(text)) = (&world.tensor_spec, &world.text) else {
            return Err(NotThere::Unsuited("this environment has wrappers"));
        };
        let vocabulary = text.task.vocabulary();
        let ends = (0..vocabulary.len() as u32).map(|token| token == vocabulary.eos() || text.task.is_stop(token)).collect();
        Ok(Self { world: world.clone(), text: text.clone(), per_env, ends })
    }

    /// Returns for each environment the prompt of the episode that is `after` episodes later than the current one (0: the current one).
    fn prompts(&self, shard: &Shard, after: u64) -> Vec<Vec<u32>> {
        let (starts, mut env) = (shard.envs.starts(), self.world.env());
        let mut row = vec![0.0; env.observation_space().width()];
        let prompt = |i: usize| {
            let episode = shard.envs.episodes_begun(i) - 1 + after;
            env.reset(episode_seed(starts.seed, starts.group_of(shard.ids.start + i) as u64, episode), &mut row);
            tokens(&row).collect()
        };
        (0..shard.envs.len()).map(prompt).collect()
    }
}

impl Writer for OnLibtorch {
    fn write(&self, policy: &dyn Behaviour, shards: &mut [Shard], max_concurrent: usize) -> Result<(), String> {
        let policy = as_type::<Transformer>(policy).expect("the policy that these environments were made for");
        shards.iter_mut().for_each(|shard| shard.scripts = vec![Script::default(); shard.envs.len()]);
        for episode in 0..self.per_env {
            let prompts = threads::map(shards, |_, shard| self.prompts(shard, episode as u64)).concat();
            let position = |(shard, env): (&Shard, usize)| {
                let position = shard.streams[env].position() + shard.scripts[env].tokens.len() as u64;
                StreamPosition { index: (shard.ids.start + env) as u64, position }
            };
            let of = |shard: &'_ Shard| (0..shard.envs.len()).map(|env| position((shard, env))).collect::<Vec<_>>();
            let positions: Vec<StreamPosition> = shards.iter().flat_map(of).collect();
            let n = if max_concurrent == 0 { positions.len() } else { max_concurrent };
            let seed = shards.first().map_or(0, |shard| shard.envs.starts().seed);
            let mut scripts = shards.iter_mut().flat_map(|shard| &mut shard.scripts);
            for (prompts, positions) in prompts.chunks(n).zip(positions.chunks(n)) {
                let written = policy.write(prompts, (seed, positions), self.text.max_new_tokens(), &self.ends)?;
                let completions = written.tokens.chunks_exact(written.length).zip(written.log_probs.chunks_exact(written.length));
                for ((tokens, log_probs), script) in completions.zip(&mut scripts) {
                    let end = (1..=tokens.len()).find(|length| self.text.finish(&tokens[..*length]).is_some()).unwrap_or(tokens.len());
                    script.tokens.extend_from_slice(&tokens[..end]);
                    script.log_probs.extend_from_slice(&log_probs[..end]);
                }
            }
        }
        Ok(())
    }
}
