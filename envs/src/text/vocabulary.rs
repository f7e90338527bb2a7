//! The symbols of a task, one token each, or the tokens of a pretrained model.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

use crate::EnvError;

/// The symbol shown for EOS.
const EOS: &str = "<eos>";

/// The tokens of a pretrained model.
pub trait Language: Send + Sync {
    /// Number of tokens.
    fn tokens(&self) -> usize;

    /// Largest number of tokens of a text.
    fn context(&self) -> usize;

    /// The tokens that end an answer; EOS is the first of them.
    fn ends(&self) -> &[u32];

    /// Returns the tokens of a text.
    fn encode(&self, text: &str) -> Result<Vec<u32>, String>;

    /// Returns the text of tokens.
    fn decode(&self, tokens: &[u32]) -> String;

    /// Returns the tokens of a conversation, a list of a role (`system`, `user` or `assistant`) and a text each, up to the beginning of the next answer.
    fn conversation(&self, messages: &[(String, String)]) -> Result<Vec<u32>, String>;

    /// What tells this language from others, such as the path of its model.
    fn name(&self) -> String;

    /// As the concrete type, for those who need more than tokens.
    fn as_any(&self) -> &dyn std::any::Any;
}

/// Symbols of one or more characters, numbered from 0. The last token is EOS, which ends a text. The vocabulary of a task for a pretrained model is the model's
/// [`Language`], in which EOS may be any token.
///
/// ```
/// use gradus_envs::text::Vocabulary;
///
/// let vocabulary = Vocabulary::new(["0", "1", "10", ">"])?;
/// assert_eq!(vocabulary.encode("101 >")?, [2, 1, 3]);
/// assert_eq!((vocabulary.len(), vocabulary.eos()), (5, 4));
/// assert_eq!(vocabulary.decode(&[2, 1, 3, vocabulary.eos()]), "101>");
/// let error = vocabulary.encode("12").unwrap_err();
/// assert_eq!(error.to_string(), "text: character `2` of `12`: expected one of the symbols 0 1 10 >");
/// # Ok::<(), gradus_envs::EnvError>(())
/// ```
#[derive(Clone)]
pub struct Vocabulary {
    /// Empty with a language.
    symbols: Vec<String>,
    /// The token of each symbol.
    numbers: HashMap<String, u32>,
    /// The lengths in bytes that symbols have, the largest first.
    lengths: Vec<usize>,
    language: Option<Arc<dyn Language>>,
}

impl PartialEq for Vocabulary {
    fn eq(&self, other: &Self) -> bool {
        let name = |vocabulary: &Self| vocabulary.language.as_ref().map(|language| language.name());
        self.symbols == other.symbols && name(self) == name(other)
    }
}

impl fmt::Debug for Vocabulary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.language {
            Some(language) => write!(f, "Vocabulary of {}", language.name()),
            None => f.debug_tuple("Vocabulary").field(&self.symbols).finish(),
        }
    }
}

impl Vocabulary {
    /// Creates a vocabulary of the given symbols, numbered in the given order, and EOS.
    pub fn new<S: Into<String>>(symbols: impl IntoIterator<Item = S>) -> Result<Self, EnvError> {
        Self::of_symbols(symbols.into_iter().map(Into::into).collect())
    }

    fn of_symbols(symbols: Vec<String>) -> Result<Self, EnvError> {
        let wrong = |what: String| Err(EnvError::Text(format!("vocabulary: {what}")));
        if symbols.is_empty() {
            return wrong("expected at least 1 symbol, got 0".into());
        }
        let mut numbers = HashMap::with_capacity(symbols.len());
        for (token, symbol) in symbols.iter().enumerate() {
            if symbol.is_empty() || symbol == EOS {
                return wrong(format!("symbol {token}: expected at least 1 character, and not {EOS}, got `{symbol}`"));
            }
            if let Some(first) = numbers.insert(symbol.clone(), token as u32) {
                return wrong(format!("expected every symbol once, got `{symbol}` as symbols {first} and {token}"));
            }
        }
        let lengths: BTreeSet<Reverse<usize>> = symbols.iter().map(|symbol| Reverse(symbol.len())).collect();
        let lengths = lengths.into_iter().map(|Reverse(length)| length).collect();
        Ok(Self { symbols, numbers, lengths, language: None })
    }

    /// The tokens of a pretrained model.
    pub fn of_language(language: Arc<dyn Language>) -> Self {
        Self { symbols: Vec::new(), numbers: HashMap::new(), lengths: Vec::new(), language: Some(language) }
    }

    /// The pretrained model's language, if the vocabulary is one.
    pub fn language(&self) -> Option<&dyn Language> {
        self.language.as_deref()
    }

    /// Creates a vocabulary with one symbol for each character of a text.
    pub fn of_characters(characters: &str) -> Result<Self, EnvError> {
        Self::new(characters.chars())
    }

    /// Number of tokens, EOS included.
    #[allow(clippy::len_without_is_empty)] // it always contains EOS
    pub fn len(&self) -> usize {
        self.language.as_ref().map_or(self.symbols.len() + 1, |language| language.tokens())
    }

    /// The token that ends a text: the last one, or in a language its first end.
    pub fn eos(&self) -> u32 {
        self.language.as_ref().map_or(self.symbols.len() as u32, |language| language.ends()[0])
    }

    /// Returns the symbol of a token, `<eos>` for EOS, or the number in angle brackets if there is no such token.
    pub fn symbol(&self, token: u32) -> String {
        if let Some(language) = &self.language {
            return if token == self.eos() { EOS.into() } else { language.decode(&[token]) };
        }
        match self.symbols.get(token as usize) {
            Some(symbol) => symbol.clone(),
            None if token == self.eos() => EOS.into(),
            None => format!("<{token}>"),
        }
    }

    /// Encodes a text. At each position, the longest matching symbol is taken. Spaces that do not begin a symbol are skipped, so prompts
    /// can be typed with spaces.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, EnvError> {
        if let Some(language) = &self.language {
            return language.encode(text).map_err(EnvError::Text);
        }
        let (mut tokens, mut rest) = (Vec::new(), text);
        while let Some(character) = rest.chars().next() {
            let fitting = |length: &usize| Some((*length, *self.numbers.get(rest.get(..*length)?)?));
            if let Some((length, token)) = self.lengths.iter().find_map(fitting) {
                tokens.push(token);
                rest = &rest[length..];
            } else if character == ' ' {
                rest = &rest[1..];
            } else {
                let symbols = self.symbols.join(" ");
                return Err(EnvError::Text(format!("character `{character}` of `{text}`: expected one of the symbols {symbols}")));
            }
        }
        Ok(tokens)
    }

    /// Decodes tokens to a text, without EOS and, in a pretrained model's language, without any other token that ends an answer.
    pub fn decode(&self, tokens: &[u32]) -> String {
        if let Some(language) = &self.language {
            let text: Vec<u32> = tokens.iter().copied().filter(|token| !language.ends().contains(token)).collect();
            return language.decode(&text);
        }
        tokens.iter().filter(|token| **token != self.eos()).map(|token| self.symbol(*token)).collect()
    }

    /// Returns an error unless all tokens belong to this vocabulary.
    pub fn check(&self, tokens: &[u32]) -> Result<(), EnvError> {
        let last = self.len() as u32 - 1;
        match tokens.iter().find(|token| **token > last) {
            Some(token) => Err(EnvError::Text(format!("expected tokens of 0 to {last}, got {token}"))),
            None => Ok(()),
        }
    }
}
