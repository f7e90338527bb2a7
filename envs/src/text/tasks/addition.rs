//! Addition with reversed digits, the order of addition on paper.
//!
//! | | |
//! |---|---|
//! | prompt | two numbers: `37+45=` |
//! | answer | their sum, least significant digit first, then EOS: `28` |
//! | reward | the fraction of correct digits, from the least significant digit until the first error |
//! | splits | by a hash of the unordered pair of numbers: one in eight is in the test split, one in eight in the validation split |
//!
//! The denominator of the fraction is the length of the sum or of the answer, whichever is longer. An answer without EOS counts as one
//! digit longer. So only a correct answer with EOS gets reward 1.

use crate::text::{Finish, Problem, Split, Task, Verdict, Vocabulary};
use gradus_base::random::Stream;

/// Addition of two numbers with the same number of digits.
///
/// ```
/// use gradus_envs::text::{Addition, Finish, Task};
///
/// let task = Addition::new(2);
/// let reward = |answer: &str| {
///     let encode = |text: &str| task.vocabulary().encode(text).unwrap();
///     task.verify(&encode("37+45="), &encode(answer), Finish::Eos).unwrap().reward
/// };
/// assert_eq!((reward("28"), reward("29"), reward("38"), reward("2")), (1.0, 0.5, 0.0, 0.5));
/// ```
#[derive(Clone, Debug)]
pub struct Addition {
    vocabulary: Vocabulary,
    digits: u32,
}

impl Addition {
    /// Creates the task with numbers of `digits` digits.
    ///
    /// # Panics
    /// Unless `digits` is 1 to 9.
    pub fn new(digits: u32) -> Self {
        assert!((1..=9).contains(&digits), "addition: expected 1 to 9 digits, got {digits}");
        Self { vocabulary: Vocabulary::of_characters("0123456789+=").expect("different characters"), digits }
    }

    /// Draws a number of `digits` digits. The first digit is not 0, unless it is the only one.
    fn number(&self, stream: &mut Stream) -> u32 {
        let low = if self.digits == 1 { 0 } else { 10_u32.pow(self.digits - 1) };
        low + stream.below(10_u32.pow(self.digits) - low)
    }

    /// Parses a prompt into its two numbers.
    fn numbers(&self, prompt: &[u32]) -> Option<(u64, u64)> {
        let text = self.vocabulary.decode(prompt);
        let (a, b) = text.strip_suffix('=')?.split_once('+')?;
        Some((a.parse().ok()?, b.parse().ok()?))
    }

    /// Computes the correct answer to a prompt: the digits of the sum, least significant first.
    fn sum(&self, prompt: &[u32]) -> Result<String, String> {
        let sum = self.numbers(prompt).and_then(|(a, b)| a.checked_add(b));
        let sum = sum.ok_or_else(|| format!("expected a prompt such as `37+45=`, got `{}`", self.vocabulary.decode(prompt)))?;
        Ok(sum.to_string().chars().rev().collect())
    }

    /// The sums of two numbers in either order belong to the same split.
    fn split(a: u32, b: u32) -> Split {
        Split::of(&[a.min(b), a.max(b)])
    }
}

impl Task for Addition {
    fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    fn max_new_tokens(&self) -> usize {
        self.digits as usize + 2
    }

    fn longest_prompt(&self) -> usize {
        2 * self.digits as usize + 2
    }

    fn problem(&self, split: Split, stream: &mut Stream) -> Problem {
        let (mut a, mut b) = (self.number(stream), self.number(stream));
        while Self::split(a, b) != split {
            (a, b) = (self.number(stream), self.number(stream));
        }
        let sum: String = (u64::from(a) + u64::from(b)).to_string().chars().rev().collect();
        Problem::of(&self.vocabulary, &format!("{a}+{b}="), &sum)
    }

    fn split_of(&self, prompt: &[u32]) -> Option<Split> {
        let (a, b) = self.numbers(prompt)?;
        Some(Self::split(a.try_into().ok()?, b.try_into().ok()?))
    }

    fn verify(&self, prompt: &[u32], completion: &[u32], finish: Finish) -> Result<Verdict, String> {
        let (sum, answer) = (self.sum(prompt)?, self.vocabulary.decode(completion));
        let right = sum.chars().zip(answer.chars()).take_while(|(expected, got)| expected == got).count();
        let of = sum.len().max(answer.len() + usize::from(finish == Finish::Length));
        Ok(Verdict::new(right as f64 / of as f64, right == of))
    }
}
