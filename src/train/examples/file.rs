//! Preferences from a file with one JSON object per line:
//!
//! ```text
//! {"prompt": "3+4=", "chosen": "7", "rejected": "8"}
//! {"prompt": "5+4=", "ranking": ["9", "8", "2"]}
//! ```
//!
//! A ranking is ordered from the best to the worst. The optional key `split` is `train` or `test`; either all lines have one or none. Without
//! it the task decides: prompts of its validation and test splits are held out, and of a task without splits one prompt in eight, by a hash.

use std::collections::BTreeSet;
use std::io::BufRead;
use std::path::Path;

use gradus_agents::dpo::Pair;
use gradus_envs::EnvError;
use gradus_envs::text::json_lines::{self, at, known, short};
use gradus_envs::text::{Split, TextWorld};
use serde_json::{Map, Value};

use super::rankings::RankedTexts;
use crate::{Error, memory};

const KEYS: [&str; 5] = ["prompt", "chosen", "rejected", "ranking", "split"];

/// Reads preferences between completions of `world` from the file `path`: those for training and those for the evaluation.
pub(crate) fn read(path: &Path, world: &TextWorld) -> Result<[Vec<RankedTexts>; 2], EnvError> {
    json_lines::open(path, |lines| parse(lines, world))
}

/// As [`read`], from lines.
pub(super) fn parse(lines: impl BufRead, world: &TextWorld) -> Result<[Vec<RankedTexts>; 2], EnvError> {
    let mut found: Vec<(usize, RankedTexts, Option<Split>)> = Vec::new();
    json_lines::objects(lines, &mut |number, _, fields| {
        let (ranking, split) = line(&fields, world)?;
        found.push((number, ranking, split));
        Ok(())
    })?;
    let has_splits = found.iter().any(|(_, _, split)| split.is_some());
    let mut parts = [Vec::new(), Vec::new()];
    for (number, ranking, split) in found {
        let is_test = match split {
            Some(split) => split == Split::Test,
            None if has_splits => return Err(at(number, "expected a split, because other lines have one, got none".into())),
            None => world.task.split_of(&ranking.prompt).map_or_else(|| Split::Test.has(&ranking.prompt), |split| split != Split::Train),
        };
        parts[usize::from(is_test)].push(ranking);
    }
    if parts[0].is_empty() {
        let got = if parts[1].is_empty() { "an empty file" } else { "held-out prompts only" };
        return Err(EnvError::Text(format!("expected at least one preference for training, got {got}")));
    }
    Ok(parts)
}

/// Reads one line.
fn line(fields: &Map<String, Value>, world: &TextWorld) -> Result<(RankedTexts, Option<Split>), String> {
    known(fields, &KEYS)?;
    let text = |key: &str, value: &Value| {
        value.as_str().map(String::from).ok_or_else(|| format!("{key}: expected a text, got {}", short(&value.to_string())))
    };
    let of = |key: &str| fields.get(key).map(|value| text(key, value)).transpose();
    let prompt = of("prompt")?.ok_or("expected a prompt, got none")?;
    let texts = match (of("chosen")?, of("rejected")?, fields.get("ranking")) {
        (Some(chosen), Some(rejected), None) => vec![chosen, rejected],
        (None, None, Some(Value::Array(ranking))) => ranking.iter().map(|value| text("ranking", value)).collect::<Result<_, _>>()?,
        (None, None, Some(other)) => return Err(format!("ranking: expected a list of texts, got {}", short(&other.to_string()))),
        _ => {
            let given: Vec<&str> = KEYS[1..4].iter().copied().filter(|key| fields.contains_key(*key)).collect();
            let given = if given.is_empty() { "none of them".into() } else { given.join(" and ") };
            return Err(format!("expected either chosen and rejected, or a ranking, got {given}"));
        }
    };
    if texts.len() < 2 {
        return Err(format!("ranking: expected at least 2 texts, got {}", texts.len()));
    }
    let prompt = world.task.prompt_of(&prompt).map_err(|problem| format!("prompt: {problem}"))?;
    if prompt.len() > world.longest_prompt() {
        let (most, got) = (world.longest_prompt(), prompt.len());
        return Err(format!("prompt: expected at most {most} tokens, as many as the longest prompt of the problems has, got {got}"));
    }
    world.check_prompt(&prompt).map_err(said)?;
    let completions = texts.iter().map(|text| completion(text, world)).collect::<Result<Vec<_>, _>>()?;
    let mut seen = BTreeSet::new();
    if let Some((_, text)) = completions.iter().zip(&texts).find(|(completion, _)| !seen.insert(*completion)) {
        return Err(format!("expected different completions, got `{}` twice", short(text)));
    }
    let split = of("split")?.map(|name| {
        let found = [Split::Train, Split::Test].into_iter().find(|split| split.name() == name);
        found.ok_or_else(|| format!("split: expected train or test, got `{}`", short(&name)))
    });
    Ok((RankedTexts::new(&prompt, &completions), split.transpose()?))
}

/// Encodes a completion. EOS is added unless the completion ends with a stop token or has the maximum length, at which it counts as cut.
fn completion(text: &str, world: &TextWorld) -> Result<Vec<u32>, String> {
    let encoded = world.task.vocabulary().encode(text);
    let mut tokens = encoded.map_err(|error| format!("completion `{}`: {}", short(text), said(error)))?;
    if world.finish(&tokens).is_none() {
        tokens.push(world.task.vocabulary().eos());
    }
    let most = world.max_new_tokens();
    if tokens.len() > most {
        return Err(format!("completion `{}`: expected at most {most} tokens, EOS included, got {}", short(text), tokens.len()));
    }
    match (1..tokens.len()).find(|n| world.finish(&tokens[..*n]).is_some()) {
        Some(n) => Err(format!("completion `{}`: expected one that ends once, got one that ends after {n} tokens", short(text))),
        None => Ok(tokens),
    }
}

/// Returns the message of an error without what it is about.
fn said(error: EnvError) -> String {
    match error {
        EnvError::Text(what) => what,
        error => error.to_string(),
    }
}

/// Whether a completion, EOS included, has ended, and not before its last token.
pub(super) fn is_whole(completion: &[u32], world: &TextWorld) -> bool {
    let ends = |n: usize| world.finish(&completion[..n]).is_some();
    !completion.is_empty() && ends(completion.len()) && !(1..completion.len()).any(ends)
}

/// Returns the pairs of rankings: every completion with each worse one. Returns an error if they do not fit into the memory.
pub(crate) fn pairs(rankings: &[RankedTexts]) -> Result<Vec<Pair>, Error> {
    let of_ranking = |ranking: &RankedTexts| ranking.texts.len() * (ranking.texts.len() - 1) / 2;
    let count: usize = rankings.iter().map(of_ranking).sum();
    let tokens = rankings.iter().flat_map(|ranking| &ranking.texts).map(Vec::len).max().unwrap_or_default();
    let bytes = (size_of::<Pair>() + 2 * tokens * size_of::<u32>()) as f64;
    memory::expect("dpo.pairs", count, "of completions", |count| count * bytes)?;
    let of = |ranking: &RankedTexts| {
        let completions: Vec<Vec<u32>> = ranking.completions().map(<[u32]>::to_vec).collect();
        let mut pairs = Vec::new();
        for (i, chosen) in completions.iter().enumerate() {
            let pair = |rejected: &Vec<u32>| Pair { prompt: ranking.prompt.clone(), chosen: chosen.clone(), rejected: rejected.clone() };
            pairs.extend(completions[i + 1..].iter().map(pair));
        }
        pairs
    };
    Ok(rankings.iter().flat_map(of).collect())
}
