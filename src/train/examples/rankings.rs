//! Preferences between completions: the task's verifier or another judge ranks the completions of each problem.

use gradus_agents::reward_model::{Preferences, Ranking};
use gradus_base::tensors::{Tensor, Tensors, TensorsError, get_u64};
use gradus_envs::EnvError;
use gradus_envs::text::{Split, TextWorld};
use gradus_nets::Behaviour;

use super::{Completions, Judge, Questions};

/// Two or more completions of a prompt, from the best to the worst. The judge prefers each of them to the next.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RankedTexts {
    /// The prompt; empty if the file of an older version does not tell where it ends.
    pub prompt: Vec<u32>,
    /// The texts, prompt included.
    pub texts: Vec<Vec<u32>>,
}

impl RankedTexts {
    /// Creates a ranking of completions, EOS included.
    pub fn new(prompt: &[u32], completions: &[Vec<u32>]) -> Self {
        Self { prompt: prompt.to_vec(), texts: completions.iter().map(|completion| [prompt, completion].concat()).collect() }
    }

    /// The completions, from the best to the worst.
    pub fn completions(&self) -> impl Iterator<Item = &[u32]> {
        self.texts.iter().map(|text| &text[self.prompt.len()..])
    }
}

/// Samples completions and ranks the completions of each problem by their worth to the judge. Of completions with the same worth only the
/// first is ranked. A problem whose completions all have the same worth has no ranking, so there may be fewer rankings than problems.
pub(super) fn draw(
    policy: &dyn Behaviour,
    world: &TextWorld,
    split: Split,
    questions: Questions,
    judge: &mut dyn Judge,
    seed: u64,
) -> Result<Vec<RankedTexts>, EnvError> {
    let Questions { problems, completions } = questions;
    let generated = Completions::sample(policy, world, split, questions, seed)?;
    let worth = judge.worth(&(0..generated.len()).map(|i| generated.get(i)).collect::<Vec<_>>())?;
    let rankings = (0..problems).map(|i| ranked(&worth[i * completions..(i + 1) * completions], i * completions));
    let texts = |ranking: Vec<usize>| RankedTexts {
        prompt: generated.get(ranking[0]).0.to_vec(),
        texts: ranking.into_iter().map(|i| generated.text(i)).collect(),
    };
    Ok(rankings.filter(|ranking| ranking.len() > 1).map(texts).collect())
}

/// Returns the share of all pairs of the rankings in which `judge` agrees with the order. A pair of equal worth counts as half; NaN without
/// pairs.
pub(super) fn agreement(rankings: &[RankedTexts], judge: &mut dyn Judge) -> Result<f64, EnvError> {
    let (mut right, mut pairs) = (0.0, 0.0);
    for ranking in rankings {
        let all: Vec<_> = ranking.completions().map(|completion| (&ranking.prompt[..], completion)).collect();
        let worth = judge.worth(&all)?;
        for (i, better) in worth.iter().enumerate() {
            for worse in &worth[i + 1..] {
                right += if better > worse { 1.0 } else { 0.5 * f64::from(u8::from(better == worse)) };
                pairs += 1.0;
            }
        }
    }
    Ok(right / pairs)
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
    let texts = rankings.iter().flat_map(|ranking| ranking.texts.iter().map(Vec::as_slice));
    let rows = rankings.iter().scan(0, |next: &mut u32, ranking| {
        let first = *next;
        *next += ranking.texts.len() as u32;
        Some(Ranking { rows: (first..*next).collect(), margin: 0.0 })
    });
    Preferences::of_texts(context, texts, rows.collect())
}

/// Names of the tensors with the rankings, and with the lengths of their prompts.
pub(super) const RANKINGS: &str = "rankings";
const PROMPTS: &str = "prompts";

/// Encodes rankings as integers: for each ranking, the number of its texts, their lengths, and their tokens; and the length of each prompt.
pub(super) fn save(rankings: &[RankedTexts]) -> Tensors {
    let words = |RankedTexts { texts, .. }: &RankedTexts| {
        let lengths = std::iter::once(texts.len()).chain(texts.iter().map(Vec::len)).map(|n| n as u64);
        lengths.chain(texts.iter().flatten().map(|token| u64::from(*token))).collect::<Vec<_>>()
    };
    let prompts = rankings.iter().map(|ranking| ranking.prompt.len() as u64).collect();
    let tensors = [(RANKINGS, rankings.iter().flat_map(words).collect()), (PROMPTS, prompts)];
    tensors.into_iter().map(|(name, words)| (name.into(), Tensor::u64(words))).collect()
}

/// Decodes rankings that [`save`] encoded.
pub(super) fn load(tensors: &Tensors, vocabulary: u32, context: usize) -> Result<Vec<RankedTexts>, TensorsError> {
    let damaged = || TensorsError::State("preferences: expected rankings of texts, got something else".into());
    let (mut words, mut rankings) = (get_u64(tensors, RANKINGS)?, Vec::new());
    while let Some((texts, rest)) = words.split_first() {
        let (ranking, rest) = load_one(*texts, rest, vocabulary, context).ok_or_else(damaged)?;
        rankings.push(ranking);
        words = rest;
    }
    if tensors.contains_key(PROMPTS) {
        let lengths = get_u64(tensors, PROMPTS)?;
        if lengths.len() != rankings.len() {
            return Err(damaged());
        }
        for (ranking, length) in rankings.iter_mut().zip(lengths) {
            let prompt = usize::try_from(*length).ok().and_then(|length| ranking.texts[0].get(..length)).ok_or_else(damaged)?;
            if !ranking.texts.iter().all(|text| text.starts_with(prompt)) {
                return Err(damaged());
            }
            ranking.prompt = prompt.to_vec();
        }
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
    Some((RankedTexts { prompt: Vec::new(), texts }, rest))
}
