//! Worlds of text: the state is a prompt and the tokens so far, an action is the next token.
//!
//! - [`Task`]: what a world asks and how it judges an answer, in four methods; [`Vocabulary`] its symbols.
//! - [`TextEnv`]: the Markov decision process that a task becomes; [`World::text`](crate::World::text) makes a world of it.
//! - Tasks, from the easiest: [`TargetSum`], [`Sequence`], [`Addition`], [`ChainSum`], [`Countdown`], [`Program`], [`Preference`].
//! - [`Rules`]: rewards that are composed of rules, such as a format and an equality, for tasks of your own.
//!
//! Each task has a ladder of difficulty: `addition-1`, `addition-2`, ... are its levels in the [registry](crate::registry), and
//! `addition` is the usual one.

mod env;
mod listed;
mod rules;
mod task;
mod tasks;
mod vocabulary;
mod world;

pub use env::TextEnv;
pub use listed::ProblemList;
pub use rules::{Answer, Rule, Rules};
pub use task::{Division, Finish, Problem, Split, Task, Verdict};
pub use tasks::{Addition, ChainSum, Countdown, Order, Preference, Program, Sequence, TargetSum};
pub(crate) use tasks::{find, worlds};
pub use vocabulary::Vocabulary;
pub use world::{TextOptions, TextWorld};

pub mod expression {
    //! Arithmetic expressions and their exact values.
    pub use super::tasks::expression::{Expression, Fraction};
}

pub mod machine {
    //! A small stack machine.
    pub use super::tasks::machine::{Halt, Machine, STEPS};
}

/// Writes a text as an observation of [`Space::Text`](crate::Space::Text): how many tokens, the tokens, and zeros.
///
/// # Panics
/// If the row is too short for it.
pub fn write(tokens: &[u32], row: &mut [f32]) {
    assert!(tokens.len() < row.len(), "text: expected at most {} tokens, got {}", row.len().saturating_sub(1), tokens.len());
    let (length, rest) = row.split_first_mut().expect("a row holds at least the number of tokens");
    *length = tokens.len() as f32;
    let (used, unused) = rest.split_at_mut(tokens.len());
    used.iter_mut().zip(tokens).for_each(|(number, token)| *number = *token as f32);
    unused.fill(0.0);
}

/// The tokens of an observation of [`Space::Text`](crate::Space::Text).
///
/// ```
/// use gradus_envs::text;
///
/// let mut row = [9.0; 5];
/// text::write(&[3, 0, 7], &mut row);
/// assert_eq!(row, [3.0, 3.0, 0.0, 7.0, 0.0]);
/// assert_eq!(text::tokens(&row).collect::<Vec<_>>(), [3, 0, 7]);
/// ```
///
/// # Panics
/// If the row says that it has more tokens than there is room for.
pub fn tokens(row: &[f32]) -> impl ExactSizeIterator<Item = u32> + Clone + '_ {
    row[1..=row[0] as usize].iter().map(|number| *number as u32)
}
