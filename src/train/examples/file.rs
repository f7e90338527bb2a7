//! Preferences from a file with one JSON object per line:
//!
//! ```text
//! {"prompt": "3+4=", "chosen": "7", "rejected": "8"}
//! {"prompt": "5+4=", "ranking": ["9", "8", "2"]}
//! ```
//!
//! A ranking is ordered from the best to the worst. The optional key `split` is `train` or `test`; either all lines have one or none. Without
//! it a hash of the prompt makes one prompt in eight a test prompt.

use std::io::BufRead;
use std::path::Path;

use gradus_agents::dpo::Pair;
use gradus_envs::EnvError;
use gradus_envs::text::json_lines::{self, at, known, short};
use gradus_envs::text::{Split, TextWorld};
use serde_json::{Map, Value};

use super::rankings::RankedTexts;

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
            None => Split::Test.has(&ranking.prompt),
        };
        parts[usize::from(is_test)].push(ranking);
    }
    if parts[0].is_empty() {
        return Err(EnvError::Text("expected at least one preference for training, got none".into()));
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
        _ => return Err("expected either chosen and rejected, or a ranking".into()),
    };
    if texts.len() < 2 {
        return Err(format!("ranking: expected at least 2 texts, got {}", texts.len()));
    }
    let vocabulary = world.task.vocabulary();
    let said = |error: EnvError| match error {
        EnvError::Text(what) => what,
        error => error.to_string(),
    };
    let prompt = vocabulary.encode(&prompt).map_err(|error| format!("prompt: {}", said(error)))?;
    world.check_prompt(&prompt).map_err(said)?;
    let completions = texts.iter().map(|text| completion(text, world)).collect::<Result<Vec<_>, _>>()?;
    for (i, completion) in completions.iter().enumerate() {
        if completions[..i].contains(completion) {
            return Err(format!("expected different completions, got `{}` twice", short(&texts[i])));
        }
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
    let mut tokens = encoded.map_err(|error| format!("completion `{}`: {error}", short(text)))?;
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

/// Returns the pairs of rankings: every completion with each worse one.
pub(crate) fn pairs(rankings: &[RankedTexts]) -> Vec<Pair> {
    let of = |ranking: &RankedTexts| {
        let completions: Vec<Vec<u32>> = ranking.completions().map(<[u32]>::to_vec).collect();
        let mut pairs = Vec::new();
        for (i, chosen) in completions.iter().enumerate() {
            let pair = |rejected: &Vec<u32>| Pair { prompt: ranking.prompt.clone(), chosen: chosen.clone(), rejected: rejected.clone() };
            pairs.extend(completions[i + 1..].iter().map(pair));
        }
        pairs
    };
    rankings.iter().flat_map(of).collect()
}
