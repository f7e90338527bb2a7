//! Generates completions of prompts without computing rewards.

use std::ops::{ControlFlow, Range};

use gradus_base::random::Stream;
use gradus_base::threads;
use gradus_envs::text::{self, TextWorld};
use gradus_envs::{EnvError, Space};
use gradus_nets::{ActionRows, Behaviour, Sampling};

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
    let starts: Vec<Start<'_>> = prompts.iter().map(|prompt| Start { prompt, completion: &[] }).collect();
    continue_from(policy, world, &starts, stream, sampling)
}

/// A prompt and the beginning of a completion, which must not have ended.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// The prompt.
    pub prompt: &'a [u32],
    /// The first tokens of the completion.
    pub completion: &'a [u32],
}

/// As [`generate`], but each completion continues a given beginning, which is part of the returned completion.
pub fn continue_from(
    policy: &dyn Behaviour,
    world: &TextWorld,
    starts: &[Start<'_>],
    stream: &(dyn Fn(usize) -> Stream + Sync),
    sampling: &Sampling,
) -> Vec<Vec<u32>> {
    threads::with_default(|| {
        let mut shards: Vec<Range<usize>> = split(starts.len(), actors(policy)).collect();
        let generate = |_, ids: &mut Range<usize>| {
            let starts = &starts[ids.clone()];
            let mut streams: Vec<Stream> = ids.clone().map(stream).collect();
            let begun = starts.iter().map(|start| [start.prompt, start.completion].concat()).collect();
            let mut texts = Completions { world, starts, texts: begun, observations: Vec::new() };
            let active = ActiveRows::concurrent(&mut streams, MAX_CONCURRENT);
            act(policy, &mut texts, active, sampling).expect("generation has no environment that can fail");
            texts.texts.iter().zip(starts).map(|(text, start)| text[start.prompt.len()..].to_vec()).collect()
        };
        threads::map(&mut shards, generate).into_iter().flat_map(|completions: Vec<_>| completions).collect()
    })
}

/// Generates a completion of `prompt`, and passes every token to `each` as soon as it is known. Ends with EOS or a stop token, at the end of the context, or when `each` says so.
pub fn generate_aloud(
    policy: &dyn Behaviour,
    world: &TextWorld,
    prompt: &[u32],
    stream: Stream,
    sampling: &Sampling,
    each: &mut dyn FnMut(u32) -> ControlFlow<()>,
) {
    let mut spoken = Spoken { world, prompt: prompt.len(), text: prompt.to_vec(), observation: Vec::new(), each };
    let mut streams = [stream];
    let active = ActiveRows::concurrent(&mut streams, 1);
    threads::with_default(|| act(policy, &mut spoken, active, sampling)).expect("generation has no environment that can fail");
}

/// A text whose tokens someone waits for.
struct Spoken<'a> {
    world: &'a TextWorld,
    prompt: usize,
    text: Vec<u32>,
    observation: Vec<f32>,
    each: &'a mut dyn FnMut(u32) -> ControlFlow<()>,
}

impl Environments for Spoken<'_> {
    fn action_space(&self) -> Space {
        Space::Discrete(self.world.task.vocabulary().len() as u32)
    }

    fn observe(&mut self, _: &[usize]) -> (&[f32], Option<&[bool]>) {
        self.observation.resize(self.world.space().width(), 0.0);
        text::write(&self.text, &mut self.observation);
        (&self.observation, None)
    }

    fn step(&mut self, _: &[usize], decisions: &Decisions<'_>, done: &mut Vec<usize>) -> Result<(), EnvError> {
        let ActionRows::Discrete(tokens) = decisions.drawn else { unreachable!("tokens are discrete") };
        self.text.push(tokens[0]);
        let is_enough = (self.each)(tokens[0]).is_break();
        let has_ended = self.world.finish(&self.text[self.prompt..]).is_some() || self.text.len() + 1 == self.world.space().width();
        done.extend((is_enough || has_ended).then_some(0));
        Ok(())
    }
}

/// Texts that are being generated.
struct Completions<'a> {
    world: &'a TextWorld,
    starts: &'a [Start<'a>],
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
            let completion = &text[self.starts[*id].prompt.len()..];
            if self.world.finish(completion).is_some() || text.len() + 1 == self.world.space().width() {
                done.push(row);
            }
        }
        Ok(())
    }
}
