//! Worlds of text: the state is a prompt and the tokens so far, an action is the next token.
//!
//! - [`Task`]: what a world asks and how it verifies an answer, in four methods; [`Vocabulary`] its symbols.
//! - [`TextEnv`]: the Markov decision process that a task becomes; [`World::text`](crate::World::text) makes a world of it.
//! - Tasks, from the easiest: [`TargetSum`], [`Sequence`], [`Addition`], [`ChainSum`], [`Countdown`], [`Program`], [`Preference`].
//! - [`Rules`]: rewards that are composed of rules, such as a format and an equality, for tasks of your own.
//!
//! A token's way, once around:
//!
//! 1. [`Task::problem`] poses a problem; [`TextEnv`]'s `reset` writes its prompt as a row ([`write()`]). The environments of a group have one prompt.
//! 2. The acting loop (`src/act/acting.rs`) shows the rows of those that write to the policy, `max_concurrent` at a time.
//! 3. The policy's actor (`nets/src/cpu/transformer/act.rs`) finds what it remembers of each row, reads the rest, and draws a token by the
//!    environment's own stream; its log-probability is log pi_old. Where a GPU writes whole texts, they are read off a script instead.
//! 4. The collector (`src/train/collect/recording.rs`) records both, and [`TextEnv`]'s `step` appends the token. The completion ends with EOS, by the
//!    task's own rule, or at its greatest length ([`Finish`]); then the task verifies it ([`TextWorld::verify`]) and the last token is paid.
//! 5. `src/train/collect/assemble.rs` makes a rollout of it: each text once, a token is a decision, an episode a segment with its group.
//! 6. The agent computes advantages (`agents/src/rewards.rs` has the reward's way), and `agents/src/minibatches.rs` deals out whole texts.
//! 7. The engine (`nets/src/cpu/transformer/`) computes log pi of every token of a text in one pass, the objective returns loss and derivatives
//!    (`agents/src/grpo.rs`), and the engine goes back through the network.
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
