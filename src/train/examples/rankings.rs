//! Preferences between completions: the task's verifier ranks the completions of each problem.

use gradus_agents::reward_model::{Preferences, Ranking};
use gradus_envs::EnvError;
use gradus_envs::text::{Split, TextOptions, TextWorld};
use gradus_nets::Behaviour;
use gradus_nets::tensors::{Tensor, TensorsError};

use super::{Completions, Questions};

/// Two or more texts, prompt included, from the best to the worst. No two texts have the same reward.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RankedTexts(pub Vec<Vec<u32>>);

/// Samples completions and ranks the completions of each problem by the task's reward. Of completions with the same reward only the first
/// is ranked. A problem whose completions all have the same reward has no ranking, so there may be fewer rankings than problems.
pub(super) fn draw(
    policy: &dyn Behaviour,
    world: &TextWorld,
    split: Split,
    questions: Questions,
    seed: u64,
) -> Result<Vec<RankedTexts>, EnvError> {
    let Questions { problems, completions } = questions;
    let generated = Completions::sample(policy, world, split, questions, seed)?;
    // the ranking ignores penalties, because they are subtracted from the learned reward later
    let mut scorer = world.clone();
    scorer.options = TextOptions { max_new_tokens: Some(world.max_new_tokens()), ..TextOptions::default() };
    let worth = |i| {
        let (prompt, completion) = generated.get(i);
        scorer.verify(prompt, completion).map(|(reward, _)| reward)
    };
    let worth: Vec<f64> = (0..generated.len()).map(worth).collect::<Result<_, _>>()?;
    let rankings = (0..problems).map(|i| ranked(&worth[i * completions..(i + 1) * completions], i * completions));
    let texts = |ranking: Vec<usize>| RankedTexts(ranking.into_iter().map(|i| generated.text(i)).collect());
    Ok(rankings.filter(|ranking| ranking.len() > 1).map(texts).collect())
}

/// Numbers completions `first`, `first` + 1, ... and returns their numbers in the order of falling reward, one for each distinct reward.
pub(super) fn ranked(worth: &[f64], first: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..worth.len()).collect();
    order.sort_by(|a, b| worth[*b].total_cmp(&worth[*a])); // stable: of equal rewards the first sample comes first
    order.dedup_by(|b, a| worth[*a] == worth[*b]);
    order.into_iter().map(|i| first + i).collect()
}

/// Returns the rankings in the form that a reward model learns from.
pub(super) fn preferences(rankings: &[RankedTexts], context: usize) -> Preferences {
    let texts = rankings.iter().flat_map(|ranking| ranking.0.iter().map(Vec::as_slice));
    let rows = rankings.iter().scan(0, |next: &mut u32, ranking| {
        let first = *next;
        *next += ranking.0.len() as u32;
        Some(Ranking { rows: (first..*next).collect(), margin: 0.0 })
    });
    Preferences::of_texts(context, texts, rows.collect())
}

/// Encodes rankings as integers: for each ranking, the number of its texts, their lengths, and their tokens.
pub(super) fn save(rankings: &[RankedTexts]) -> Tensor {
    let words = |RankedTexts(texts): &RankedTexts| {
        let lengths = std::iter::once(texts.len()).chain(texts.iter().map(Vec::len)).map(|n| n as u64);
        lengths.chain(texts.iter().flatten().map(|token| u64::from(*token))).collect::<Vec<_>>()
    };
    Tensor::u64(rankings.iter().flat_map(words).collect())
}

/// Name of the tensor with the rankings.
pub(super) const RANKINGS: &str = "rankings";

/// Decodes rankings that [`save`] encoded.
pub(super) fn load(mut words: &[u64], vocabulary: u32, context: usize) -> Result<Vec<RankedTexts>, TensorsError> {
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
