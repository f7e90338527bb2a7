//! Text environments: the state is the prompt and the tokens so far, and an action is the next token.
//!
//! - [`Task`]: draws problems and verifies answers. Four methods are required.
//! - [`Vocabulary`]: the symbols of a task, one token each.
//! - [`TextEnv`]: the Markov decision process of a task. [`EnvSpec::text`](crate::EnvSpec::text) makes a world from a task.
//! - Tasks, easiest first: [`TargetSum`], [`Sequence`], [`Addition`], [`ChainSum`], [`Countdown`], [`Program`], [`Preference`].
//! - [`FileTask`]: problems, answers and verifiers from a file. The world is called `file:PATH`.
//! - [`Rules`]: rewards composed of rules, such as a format and an equality, for custom tasks.
//! - [`rewards`]: functions of one's own, in Python, that add to a task's rewards.
//!
//! The path of a token through training:
//!
//! 1. [`Task::problem`] draws a problem, and [`TextEnv`]'s `reset` writes its prompt as a row ([`write()`]). The environments of a group
//!    share a prompt.
//! 2. The acting loop (`rollouts/src/acting.rs`) passes the rows of the active environments to the policy. The setting `max_concurrent`
//!    limits the number of active environments.
//! 3. The policy's actor (`nets/src/cpu/transformer/act.rs`) looks up the cached keys and values of each row, computes those of the
//!    remaining tokens, and samples the next token from the environment's own random stream. The token's log-probability is log pi_old. If
//!    a GPU has generated whole completions, their tokens and log-probabilities are used instead.
//! 4. The collector (`rollouts/src/collect/recording.rs`) records the token and its log-probability, and [`TextEnv`]'s `step` appends the
//!    token. The completion ends with EOS, with a stop token, or at its maximum length ([`Finish`]). Then the task verifies the completion
//!    ([`TextWorld::verify`]), and the last token gets the reward, except the part that was given as step rewards before.
//! 5. `rollouts/src/collect/assemble.rs` builds the rollout. Each text is stored once, each token of a completion is an action, and each
//!    episode is a segment: a range of decisions with the index of its group.
//! 6. The agent computes advantages (`agents/src/parts/rewards.rs` lists the operations on the reward), and `agents/src/parts/minibatches.rs` forms
//!    minibatches of whole texts.
//! 7. The engine (`nets/src/cpu/transformer/`) computes log pi of every token of a text in one forward pass. The objective (such as
//!    `agents/src/policy_gradient/grpo.rs`) returns the loss and its derivatives, and the engine runs the backward pass.
//!
//! Each task has several levels of difficulty. Their names in the [registry](crate::registry) are `addition-1`, `addition-2`, and so on.
//! The name `addition` is the default level.

mod env;
pub mod json_lines;
pub mod language;
mod listed;
pub mod rewards;
mod rules;
mod task;
mod tasks;
mod vocabulary;
mod world;

pub use env::TextEnv;
pub use listed::ProblemList;
pub use rules::{Answer, Rule, Rules};
pub use task::{Division, Finish, Problem, Split, Task, Verdict};
pub use tasks::{Addition, ChainSum, Countdown, FileTask, Order, Preference, Program, Sequence, TargetSum};
pub(crate) use tasks::{find, worlds};
pub use vocabulary::{Language, Vocabulary};
pub use world::{SolutionStep, TextOptions, TextWorld};

pub mod expression {
    //! Arithmetic expressions and their exact values.
    pub use super::tasks::expression::{Expression, Fraction};
}

pub mod machine {
    //! A small stack machine.
    pub use super::tasks::machine::{Halt, Machine, STEPS};
}

/// Writes a text as an observation of [`Space::Text`](crate::Space::Text): the number of tokens, the tokens, and zeros.
///
/// # Panics
/// If the row is too short.
pub fn write(tokens: &[u32], row: &mut [f32]) {
    assert!(tokens.len() < row.len(), "text: expected at most {} tokens, got {}", row.len().saturating_sub(1), tokens.len());
    let (length, rest) = row.split_first_mut().expect("a row holds at least the number of tokens");
    *length = tokens.len() as f32;
    let (used, unused) = rest.split_at_mut(tokens.len());
    used.iter_mut().zip(tokens).for_each(|(number, token)| *number = *token as f32);
    unused.fill(0.0);
}

/// Returns the tokens of an observation of [`Space::Text`](crate::Space::Text).
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
/// If the row is empty, or holds fewer tokens than its first number says.
pub fn tokens(row: &[f32]) -> impl ExactSizeIterator<Item = u32> + Clone + '_ {
    row[1..=row[0] as usize].iter().map(|number| *number as u32)
}
