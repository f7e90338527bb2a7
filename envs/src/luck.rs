//! The chance of one episode: a stream that an environment can save, continue and exchange.

use crate::EnvError;
use crate::random::{Purpose, Stream};

/// What an environment draws from: the stream of its episode's seed until [`Env::reseed`](crate::Env::reseed) names another one.
#[derive(Clone, Debug)]
pub(crate) struct Luck {
    seed: u64,
    pub(crate) stream: Stream,
}

impl Luck {
    /// How many words [`save`](Luck::save) writes.
    pub(crate) const WORDS: usize = 2;

    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, stream: Stream::new(seed, Purpose::Environment, 0) }
    }

    pub(crate) fn save(&self) -> [u64; Self::WORDS] {
        [self.seed, self.stream.position()]
    }

    pub(crate) fn load([seed, position]: [u64; Self::WORDS]) -> Self {
        let mut luck = Self::new(seed);
        luck.stream.seek(position);
        luck
    }
}

/// Cuts the saved words of an environment called `name` into its luck and `N` words of its own.
pub(crate) fn split_saved<const N: usize>(name: &str, words: &[u64]) -> Result<(Luck, [u64; N]), EnvError> {
    let wrong = || EnvError::State(format!("{name}: expected {} words, got {}", Luck::WORDS + N, words.len()));
    let (luck, own) = words.split_first_chunk::<{ Luck::WORDS }>().ok_or_else(wrong)?;
    Ok((Luck::load(*luck), own.try_into().map_err(|_| wrong())?))
}
