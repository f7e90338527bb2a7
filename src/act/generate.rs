//! Completing prompts, outside of episodes: no reward is asked for.

use std::ops::Range;

use gradus_envs::random::Stream;
use gradus_envs::text::{self, TextWorld};
use gradus_nets::{ActionRows, Behaviour, Choice, Sampling, threads};

use crate::act::{Slots, actors, split};

/// Completions at once in each thread: what is kept of each takes memory.
pub(crate) const SLOTS: usize = 64;

/// The completion of each prompt, EOS included, drawn by the stream of its number. It is the same whoever is completed beside it.
pub(crate) fn generate(
    policy: &dyn Behaviour,
    world: &TextWorld,
    prompts: &[Vec<u32>],
    stream: &(dyn Fn(usize) -> Stream + Sync),
    sampling: &Sampling,
) -> Vec<Vec<u32>> {
    threads::with_default(|| {
        let mut shards: Vec<Range<usize>> = split(prompts.len(), actors(policy)).collect();
        threads::map(&mut shards, |_, ids| generate_some(policy, world, prompts, ids.clone(), stream, sampling)).concat()
    })
}

fn generate_some(
    policy: &dyn Behaviour,
    world: &TextWorld,
    prompts: &[Vec<u32>],
    ids: Range<usize>,
    stream: &(dyn Fn(usize) -> Stream + Sync),
    sampling: &Sampling,
) -> Vec<Vec<u32>> {
    let width = world.space().width();
    let mut texts: Vec<Vec<u32>> = prompts[ids.clone()].to_vec();
    let mut streams: Vec<Stream> = ids.clone().map(stream).collect();
    let mut actor = policy.actor();
    let mut slots = Slots::new(texts.len(), SLOTS);
    let mut actions = ActionRows::Discrete(Vec::new());
    while !slots.rows().is_empty() {
        let acting = slots.rows().to_vec();
        let mut rows = vec![0.0; acting.len() * width];
        acting.iter().zip(rows.chunks_mut(width)).for_each(|(id, row)| text::write(&texts[*id], row));
        let mut hands: Vec<Stream> = acting.iter().map(|id| streams[*id].clone()).collect();
        let choice = match sampling {
            sampling if sampling.temperature == 0.0 => Choice::Greedy,
            sampling if *sampling == Sampling::default() => Choice::Sample(&mut hands),
            sampling => Choice::Truncated(&mut hands, sampling),
        };
        actor.act(&rows, None, choice, &mut actions, &mut vec![0.0; acting.len()]);
        let ActionRows::Discrete(tokens) = &actions else { unreachable!("tokens are discrete") };
        for (row, id) in acting.into_iter().enumerate().rev() {
            texts[id].push(tokens[row]);
            streams[id] = hands[row].clone();
            let prompt = &prompts[ids.start + id];
            if world.finish(&texts[id][prompt.len()..]).is_some() || texts[id].len() + 1 == width {
                slots.release(row);
            }
        }
    }
    texts.iter().zip(&prompts[ids]).map(|(text, prompt)| text[prompt.len()..].to_vec()).collect()
}
