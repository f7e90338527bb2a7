//! The symbols of a task, one token each.

use crate::EnvError;

/// The symbol shown for EOS.
const EOS: &str = "<eos>";

/// Symbols of one or more characters, numbered from 0. The last token is EOS, which ends a text.
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
#[derive(Clone, Debug, PartialEq)]
pub struct Vocabulary {
    symbols: Vec<String>,
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
        for (token, symbol) in symbols.iter().enumerate() {
            if symbol.is_empty() || symbol == EOS {
                return wrong(format!("symbol {token}: expected at least 1 character, and not {EOS}, got `{symbol}`"));
            }
            if let Some(first) = symbols[..token].iter().position(|other| other == symbol) {
                return wrong(format!("expected every symbol once, got `{symbol}` as symbols {first} and {token}"));
            }
        }
        Ok(Self { symbols })
    }

    /// Creates a vocabulary with one symbol for each character of a text.
    pub fn of_characters(characters: &str) -> Result<Self, EnvError> {
        Self::new(characters.chars())
    }

    /// Number of tokens, EOS included.
    #[allow(clippy::len_without_is_empty)] // it always contains EOS
    pub fn len(&self) -> usize {
        self.symbols.len() + 1
    }

    /// The token that ends a text: the last one.
    pub fn eos(&self) -> u32 {
        self.symbols.len() as u32
    }

    /// Returns the symbol of a token, `<eos>` for EOS, or the number in angle brackets if there is no such token.
    pub fn symbol(&self, token: u32) -> String {
        match self.symbols.get(token as usize) {
            Some(symbol) => symbol.clone(),
            None if token == self.eos() => EOS.into(),
            None => format!("<{token}>"),
        }
    }

    /// Encodes a text. At each position, the longest matching symbol is taken. Spaces that do not begin a symbol are skipped, so prompts
    /// can be typed with spaces.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, EnvError> {
        let (mut tokens, mut rest) = (Vec::new(), text);
        while let Some(character) = rest.chars().next() {
            let fitting = self.symbols.iter().enumerate().filter(|(_, symbol)| rest.starts_with(symbol.as_str()));
            if let Some((token, symbol)) = fitting.max_by_key(|(_, symbol)| symbol.len()) {
                tokens.push(token as u32);
                rest = &rest[symbol.len()..];
            } else if character == ' ' {
                rest = &rest[1..];
            } else {
                let symbols = self.symbols.join(" ");
                return Err(EnvError::Text(format!("character `{character}` of `{text}`: expected one of the symbols {symbols}")));
            }
        }
        Ok(tokens)
    }

    /// Decodes tokens to a text, without EOS.
    pub fn decode(&self, tokens: &[u32]) -> String {
        tokens.iter().filter(|token| **token != self.eos()).map(|token| self.symbol(*token)).collect()
    }

    /// Returns an error unless all tokens belong to this vocabulary.
    pub fn check(&self, tokens: &[u32]) -> Result<(), EnvError> {
        match tokens.iter().find(|token| **token > self.eos()) {
            Some(token) => Err(EnvError::Text(format!("expected tokens of 0 to {}, got {token}", self.eos()))),
            None => Ok(()),
        }
    }
}
