//! Preferences between completions: pairs drawn from a policy, of which the task's own verifier says which is better.

use gradus_agents::reward_model::{Preferences, Ranking};
use gradus_envs::EnvError;
use gradus_envs::random::{Purpose, Stream, episode_seed};
use gradus_envs::text::{Split, TextWorld};
use gradus_nets::tensors::{Tensor, TensorsError};
use gradus_nets::{Policy, Sampling};

use crate::complete::complete;

/// Two texts, prompt included: the better one and the other.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pair {
    pub chosen: Vec<u32>,
    pub rejected: Vec<u32>,
}

/// Draws two completions of each of `n` problems and compares them. Where both are worth the same there is no preference, so that there
/// may be fewer pairs than problems.
pub(crate) fn draw(policy: &dyn Policy, world: &TextWorld, split: Split, n: usize, seed: u64) -> Result<Vec<Pair>, EnvError> {
    let problem = |i: usize| {
        let seed = episode_seed(seed, 0, i as u64);
        world.task.problem(split, &mut Stream::new(seed, Purpose::Environment, 0)).prompt
    };
    let prompts: Vec<Vec<u32>> = (0..2 * n).map(|i| problem(i / 2)).collect();
    prompts.iter().try_for_each(|prompt| world.check_prompt(prompt))?;
    let stream = |i: usize| Stream::new(seed, Purpose::Action, i as u64);
    let said = complete(policy, world, &prompts, &stream, &Sampling::default());
    // penalties are not the scorer's: a learned reward has them taken off it once more
    let worth = |(prompt, completion): (&Vec<u32>, &Vec<u32>)| {
        world.judge(prompt, completion).map(|(reward, scores)| reward + world.penalties().map(|i| scores[i]).sum::<f64>())
    };
    let worth: Vec<f64> = prompts.iter().zip(&said).map(worth).collect::<Result<_, _>>()?;
    let text = |i: usize| [&prompts[i][..], &said[i]].concat();
    let pair = |i: usize| {
        let (a, b) = (2 * i, 2 * i + 1);
        match worth[a].total_cmp(&worth[b]) {
            std::cmp::Ordering::Greater => Some(Pair { chosen: text(a), rejected: text(b) }),
            std::cmp::Ordering::Less => Some(Pair { chosen: text(b), rejected: text(a) }),
            std::cmp::Ordering::Equal => None,
        }
    };
    Ok((0..n).filter_map(pair).collect())
}

/// The pairs as a reward model learns from them.
pub(crate) fn preferences(pairs: &[Pair], context: usize) -> Preferences {
    let texts = pairs.iter().flat_map(|pair| [&pair.chosen[..], &pair.rejected]);
    let ranking = |i: usize| Ranking { rows: vec![2 * i as u32, 2 * i as u32 + 1], margin: 0.0 };
    Preferences::of_texts(context, texts, (0..pairs.len()).map(ranking).collect())
}

/// The pairs as whole numbers: two lengths and the tokens of each.
pub(crate) fn save(pairs: &[Pair]) -> Tensor {
    let words = |Pair { chosen, rejected }: &Pair| {
        let lengths = [chosen.len() as u64, rejected.len() as u64];
        lengths.into_iter().chain(chosen.iter().chain(rejected).map(|token| u64::from(*token))).collect::<Vec<_>>()
    };
    Tensor::u64(pairs.iter().flat_map(words).collect())
}

/// Reads what [`save`] wrote.
pub(crate) fn load(mut words: &[u64], vocabulary: u32, context: usize) -> Result<Vec<Pair>, TensorsError> {
    let mut pairs = Vec::new();
    let wrong = || TensorsError::State("preferences: expected pairs of texts, got something else".into());
    while let [chosen, rejected, rest @ ..] = words {
        let [chosen, rejected] = [*chosen, *rejected].map(|length| usize::try_from(length).unwrap_or(usize::MAX));
        if chosen > context || rejected > context || chosen + rejected > rest.len() {
            return Err(wrong());
        }
        let (texts, others) = rest.split_at(chosen + rejected);
        if texts.iter().any(|token| *token >= u64::from(vocabulary)) {
            return Err(wrong());
        }
        let text = |words: &[u64]| words.iter().map(|token| *token as u32).collect();
        pairs.push(Pair { chosen: text(&texts[..chosen]), rejected: text(&texts[chosen..]) });
        words = others;
    }
    if words.is_empty() { Ok(pairs) } else { Err(wrong()) }
}
