//! Generates completions of prompts without computing rewards.

use std::ops::Range;

use gradus_envs::random::Stream;
use gradus_envs::text::{self, TextWorld};
use gradus_envs::{EnvError, Space};
use gradus_nets::{ActionRows, Behaviour, Sampling, threads};

use crate::{ActiveRows, Decisions, Environments, act, actors, split};

/// Number of texts that each thread generates at once. A larger number needs more memory.
pub const MAX_CONCURRENT: usize = 64;

/// Returns the completion of each prompt, with its EOS if it has one. Completion i is sampled from `stream(i)` and does not depend on the
/// other prompts.
pub fn generate(
    policy: &dyn Behaviour,
    world: &TextWorld,
    prompts: &[Vec<u32>],
    stream: &(dyn Fn(usize) -> Stream + Sync),
    sampling: &Sampling,
) -> Vec<Vec<u32>> {
    threads::with_default(|| {
        let mut shards: Vec<Range<usize>> = split(prompts.len(), actors(policy)).collect();
        let generate = |_, ids: &mut Range<usize>| {
            let prompts = &prompts[ids.clone()];
            let mut streams: Vec<Stream> = ids.clone().map(stream).collect();
            let mut texts = Completions { world, prompts, texts: prompts.to_vec(), observations: Vec::new() };
            let active = ActiveRows::concurrent(&mut streams, MAX_CONCURRENT);
            act(policy, &mut texts, active, sampling).expect("generation has no environment that can fail");
            texts.texts.iter().zip(prompts).map(|(text, prompt)| text[prompt.len()..].to_vec()).collect()
        };
        threads::map(&mut shards, generate).into_iter().flat_map(|completions: Vec<_>| completions).collect()
    })
}

/// Texts that are being generated.
struct Completions<'a> {
    world: &'a TextWorld,
    prompts: &'a [Vec<u32>],
    /// The texts so far. Each text starts with its prompt.
    texts: Vec<Vec<u32>>,
    observations: Vec<f32>,
}

impl Environments for Completions<'_> {
    fn action_space(&self) -> Space {
        Space::Discrete(self.world.task.vocabulary().len() as u32)
    }

    fn observe(&mut self, rows: &[usize]) -> (&[f32], Option<&[bool]>) {
        let width = self.world.space().width();
        self.observations.clear();
        self.observations.resize(rows.len() * width, 0.0);
        rows.iter().zip(self.observations.chunks_mut(width)).for_each(|(id, row)| text::write(&self.texts[*id], row));
        (&self.observations, None)
    }

    fn step(&mut self, rows: &[usize], decisions: &Decisions<'_>, done: &mut Vec<usize>) -> Result<(), EnvError> {
        let ActionRows::Discrete(tokens) = decisions.drawn else { unreachable!("tokens are discrete") };
        for (row, (id, token)) in rows.iter().zip(tokens).enumerate() {
            let text = &mut self.texts[*id];
            text.push(*token);
            let completion = &text[self.prompts[*id].len()..];
            if self.world.finish(completion).is_some() || text.len() + 1 == self.world.space().width() {
                done.push(row);
            }
        }
        Ok(())
    }
}
