//! The random stream of one episode, which an environment can save, restore and replace, and the numbers of a state.

use std::ops::RangeInclusive;

use crate::EnvError;
use gradus_base::random::{Purpose, Stream};

/// The random stream of an episode. Its seed is the episode's seed until [`Env::reseed`](crate::Env::reseed) replaces it.
#[derive(Clone, Debug)]
pub(crate) struct EpisodeRng {
    seed: u64,
    pub(crate) stream: Stream,
}

impl EpisodeRng {
    /// Number of words that [`save`](EpisodeRng::save) writes.
    pub(crate) const WORDS: usize = 2;

    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, stream: Stream::new(seed, Purpose::Environment, 0) }
    }

    pub(crate) fn save(&self) -> [u64; Self::WORDS] {
        [self.seed, self.stream.position()]
    }

    pub(crate) fn load([seed, position]: [u64; Self::WORDS]) -> Self {
        let mut rng = Self::new(seed);
        rng.stream.seek(position);
        rng
    }
}

/// Splits the saved words of the environment `name` into its random stream and `N` further words.
pub(crate) fn split_saved<const N: usize>(name: &str, words: &[u64]) -> Result<(EpisodeRng, [u64; N]), EnvError> {
    let wrong = || EnvError::State(format!("{name}: expected {} words, got {}", EpisodeRng::WORDS + N, words.len()));
    let (rng, own) = words.split_first_chunk::<{ EpisodeRng::WORDS }>().ok_or_else(wrong)?;
    Ok((EpisodeRng::load(*rng), own.try_into().map_err(|_| wrong())?))
}

/// What is called with every number of a state and the values that it may have.
pub type Each<'a> = &'a mut dyn FnMut(&mut i32, RangeInclusive<i32>);

/// Sets the numbers of a state, which `visit` visits, to saved words.
pub(crate) fn set_numbers(visit: &mut dyn FnMut(Each<'_>), words: &[u64]) -> Result<(), String> {
    let (mut rest, mut problem) = (words.iter(), None);
    visit(&mut |number, range| match rest.next().map(|word| *word as i64) {
        Some(word) if i32::try_from(word).is_ok_and(|word| range.contains(&word)) => *number = word as i32,
        got => problem = problem.take().or(Some(format!("expected a number from {} to {}, got {got:?}", range.start(), range.end()))),
    });
    problem.or(rest.next().map(|word| format!("expected fewer numbers, then got {word}"))).map_or(Ok(()), Err)
}
