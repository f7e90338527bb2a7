//! Tokens of texts.

use serde_json::{Value, json};
use tokenizers::{DecoderWrapper, Tokenizer};

/// A tokeniser, and the tokens that end an answer.
pub(crate) struct Tokens {
    tokenizer: Tokenizer,
    /// The same, for texts in which the names of special tokens are letters.
    plain: Tokenizer,
    ends: Vec<u32>,
}

impl Tokens {
    /// Reads the contents of `tokenizer.json`.
    pub fn new(json: &[u8], ends: Vec<u32>) -> Result<Self, String> {
        let tokenizer = Tokenizer::from_bytes(json).map_err(|error| format!("tokeniser: {error}"))?;
        let mut plain = tokenizer.clone();
        plain.set_encode_special_tokens(true);
        Self { tokenizer, plain, ends: Vec::new() }.with_ends(ends)
    }

    /// Sets the tokens that end an answer.
    pub fn with_ends(self, ends: Vec<u32>) -> Result<Self, String> {
        let count = self.len() as u32;
        match ends.iter().find(|end| **end >= count) {
            Some(end) => Err(format!("end of an answer: expected a token below {count}, got {end}")),
            None if ends.is_empty() => Err("expected a token that ends an answer (eos), got none".into()),
            None => Ok(Self { ends, ..self }),
        }
    }

    /// The largest token, and one.
    pub fn len(&self) -> usize {
        self.tokenizer.get_vocab(true).values().max().map_or(0, |largest| *largest as usize + 1)
    }

    pub fn ends(&self) -> &[u32] {
        &self.ends
    }

    /// Returns the tokens of a text. With `has_special`, the names of special tokens in it are these tokens.
    pub fn encode(&self, text: &str, has_special: bool) -> Result<Vec<u32>, String> {
        let tokenizer = if has_special { &self.tokenizer } else { &self.plain };
        tokenizer.encode_fast(text, false).map(|encoding| encoding.get_ids().to_vec()).map_err(|error| format!("tokeniser: {error}"))
    }

    /// Returns an error if the tokens of a text leave out some of it: a tokeniser of bytes may lack tokens for bytes that are rare.
    pub fn check_whole(&self, text: &str) -> Result<(), String> {
        let is_of_bytes = matches!(self.plain.get_decoder(), Some(DecoderWrapper::ByteLevel(_))) && self.plain.get_normalizer().is_none();
        let spelt = self.decode(&self.encode(text, false)?);
        if !is_of_bytes || spelt == text {
            return Ok(());
        }
        let lost = text
            .chars()
            .find(|letter| self.encode(&letter.to_string(), false).is_ok_and(|tokens| self.decode(&tokens) != letter.to_string()));
        Err(format!("tokeniser: expected a text of characters with tokens, got {:?}, which has none", lost.unwrap_or(' ')))
    }

    /// Returns the contents of a `tokenizer.json`.
    pub fn json(&self) -> Result<String, String> {
        self.tokenizer.to_string(false).map_err(|error| format!("tokeniser: {error}"))
    }

    pub fn decode(&self, tokens: &[u32]) -> String {
        self.tokenizer.decode(tokens, false).unwrap_or_default()
    }
}

/// What the tokeniser of a GGUF file consists of.
pub(crate) struct OfGguf<'a> {
    /// How a text is cut before tokens are merged.
    pub pre: &'a str,
    pub tokens: Vec<&'a str>,
    pub merges: Vec<&'a str>,
    /// For each token its kind; 3 and 4 are found as a whole.
    pub kinds: Vec<i64>,
}

/// Kinds of tokens in GGUF files: those that are not part of texts, and those that someone added.
const CONTROL: i64 = 3;
const USER_DEFINED: i64 = 4;

impl OfGguf<'_> {
    /// Returns the same tokeniser as the contents of a `tokenizer.json`.
    pub fn json(&self) -> Result<Vec<u8>, String> {
        let bytes = json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false });
        let gpt2 = json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true });
        let split = |pattern: &str| json!({ "type": "Split", "pattern": { "Regex": pattern }, "behavior": "Isolated", "invert": false });
        let (pieces, ignore_merges, normalizer) = match self.pre {
            "smollm" => (vec![json!({ "type": "Digits", "individual_digits": true }), gpt2], false, Value::Null),
            "gpt-2" | "gpt2" => (vec![gpt2], false, Value::Null),
            "qwen2" => (vec![split(QWEN2), bytes], false, json!({ "type": "NFC" })),
            "llama-bpe" | "llama3" => (vec![split(LLAMA3), bytes], true, Value::Null),
            other => return Err(format!("tokeniser: expected the rules smollm, gpt-2, qwen2 or llama-bpe, got {other}")),
        };
        let vocabulary: serde_json::Map<String, Value> =
            self.tokens.iter().enumerate().map(|(token, text)| ((*text).to_owned(), token.into())).collect();
        if vocabulary.len() != self.tokens.len() {
            return Err("tokeniser: expected every token once, got one twice".into());
        }
        let added: Vec<Value> = (self.tokens.iter().zip(&self.kinds).enumerate())
            .filter(|(_, (_, kind))| [CONTROL, USER_DEFINED].contains(kind))
            .map(|(id, (text, kind))| {
                json!({
                    "id": id, "content": text, "special": *kind == CONTROL,
                    "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
                })
            })
            .collect();
        let merges: Vec<Value> =
            self.merges.iter().map(|merge| merge.split_once(' ').map_or(Value::Null, |(a, b)| json!([a, b]))).collect();
        let whole = json!({
            "version": "1.0", "truncation": null, "padding": null, "added_tokens": added, "normalizer": normalizer,
            "pre_tokenizer": { "type": "Sequence", "pretokenizers": pieces },
            "post_processor": null,
            "decoder": { "type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true },
            "model": {
                "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null, "end_of_word_suffix": null,
                "fuse_unk": false, "byte_fallback": false, "ignore_merges": ignore_merges, "vocab": vocabulary, "merges": merges,
            },
        });
        Ok(whole.to_string().into_bytes())
    }
}

/// How Qwen2 and Llama 3 cut a text; they differ in the number of digits of a piece.
const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
