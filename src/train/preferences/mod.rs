//! Preferences between completions. A policy generates several completions for each problem, and the task's verifier ranks them.

use gradus_agents::reward_model::{Preferences, Ranking};
use gradus_envs::EnvError;
use gradus_envs::random::{Purpose, Stream, episode_seed};
use gradus_envs::text::{Split, TextOptions, TextWorld};
use gradus_nets::tensors::{Tensor, Tensors, TensorsError};
use gradus_nets::{Behaviour, Sampling};
use gradus_rollouts::generate;

/// Two or more texts, prompt included, from the best to the worst. No two texts have the same reward.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RankedTexts(pub Vec<Vec<u32>>);

/// Number of problems, and number of completions per problem.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Questions {
    pub problems: usize,
    pub completions: usize,
}

/// Samples completions and ranks the completions of each problem by the task's reward. Of completions with the same reward only the first
/// is ranked. A problem whose completions all have the same reward has no ranking, so there may be fewer rankings than problems.
pub(crate) fn draw(
    policy: &dyn Behaviour,
    world: &TextWorld,
    split: Split,
    questions: Questions,
    seed: u64,
) -> Result<Vec<RankedTexts>, EnvError> {
    let Questions { problems, completions } = questions;
    let problem = |i: usize| {
        let seed = episode_seed(seed, 0, i as u64);
        world.task.problem(split, &mut Stream::new(seed, Purpose::Environment, 0)).prompt
    };
    let prompts: Vec<Vec<u32>> = (0..problems).flat_map(|i| vec![problem(i); completions]).collect();
    prompts.iter().try_for_each(|prompt| world.check_prompt(prompt))?;
    let stream = |i: usize| Stream::new(seed, Purpose::Action, i as u64);
    let generated = generate(policy, world, &prompts, &stream, &Sampling::default());
    // the ranking ignores penalties, because they are subtracted from the learned reward later
    let mut scorer = world.clone();
    scorer.options = TextOptions { max_new_tokens: Some(world.max_new_tokens()), ..TextOptions::default() };
    let worth = |(prompt, completion): (&Vec<u32>, &Vec<u32>)| scorer.verify(prompt, completion).map(|(reward, _)| reward);
    let worth: Vec<f64> = prompts.iter().zip(&generated).map(worth).collect::<Result<_, _>>()?;
    let text = |i: &usize| [&prompts[*i][..], &generated[*i]].concat();
    let rankings = (0..problems).map(|i| ranked(&worth[i * completions..(i + 1) * completions], i * completions));
    Ok(rankings.filter(|ranking| ranking.len() > 1).map(|ranking| RankedTexts(ranking.iter().map(text).collect())).collect())
}

/// Numbers completions `first`, `first` + 1, ... and returns their numbers in the order of falling reward, one for each distinct reward.
fn ranked(worth: &[f64], first: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..worth.len()).collect();
    order.sort_by(|a, b| worth[*b].total_cmp(&worth[*a])); // stable: of equal rewards the first sample comes first
    order.dedup_by(|b, a| worth[*a] == worth[*b]);
    order.into_iter().map(|i| first + i).collect()
}

/// Returns the rankings in the form that a reward model learns from.
pub(crate) fn preferences(rankings: &[RankedTexts], context: usize) -> Preferences {
    let texts = rankings.iter().flat_map(|ranking| ranking.0.iter().map(Vec::as_slice));
    let rows = rankings.iter().scan(0, |next: &mut u32, ranking| {
        let first = *next;
        *next += ranking.0.len() as u32;
        Some(Ranking { rows: (first..*next).collect(), margin: 0.0 })
    });
    Preferences::of_texts(context, texts, rows.collect())
}

/// Encodes rankings as integers: for each ranking, the number of its texts, their lengths, and their tokens.
pub(crate) fn save(rankings: &[RankedTexts]) -> Tensor {
    let words = |RankedTexts(texts): &RankedTexts| {
        let lengths = std::iter::once(texts.len()).chain(texts.iter().map(Vec::len)).map(|n| n as u64);
        lengths.chain(texts.iter().flatten().map(|token| u64::from(*token))).collect::<Vec<_>>()
    };
    Tensor::u64(rankings.iter().flat_map(words).collect())
}

/// Name of the tensor with the rankings.
pub(crate) const RANKINGS: &str = "rankings";

/// Returns the tensors of a file with these rankings.
pub(crate) fn to_file(rankings: &[RankedTexts]) -> Tensors {
    Tensors::from([(RANKINGS.into(), save(rankings))])
}

/// Decodes rankings that [`save`] encoded.
pub(crate) fn load(mut words: &[u64], vocabulary: u32, context: usize) -> Result<Vec<RankedTexts>, TensorsError> {
    let mut rankings = Vec::new();
    while let Some((texts, rest)) = words.split_first() {
        let (ranking, rest) = load_one(*texts, rest, vocabulary, context)
            .ok_or_else(|| TensorsError::State("preferences: expected rankings of texts, got something else".into()))?;
        rankings.push(ranking);
        words = rest;
    }
    Ok(rankings)
}

/// Decodes a ranking of `texts` texts. Returns the ranking and the words after it, or `None` if the ranking is damaged.
fn load_one(texts: u64, words: &[u64], vocabulary: u32, context: usize) -> Option<(RankedTexts, &[u64])> {
    let texts = usize::try_from(texts).ok().filter(|n| *n >= 2)?;
    let (lengths, mut rest) = words.split_at_checked(texts)?;
    let text = |length: &u64| {
        let length = usize::try_from(*length).ok().filter(|length| *length <= context)?;
        let (tokens, others) = rest.split_at_checked(length)?;
        rest = others;
        tokens.iter().map(|token| u32::try_from(*token).ok().filter(|token| *token < vocabulary)).collect()
    };
    let texts = lengths.iter().map(text).collect::<Option<_>>()?;
    Some((RankedTexts(texts), rest))
}

#[cfg(test)]
mod tests;
