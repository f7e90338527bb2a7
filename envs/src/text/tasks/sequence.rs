//! Copy, reverse, sort: repeat letters in some order.
//!
//! | | |
//! |---|---|
//! | prompt | `C`, `R` or `S`, letters of `a` to `h`, and `>`: `R a b c d >` |
//! | answer | the letters in the requested order, then EOS: `d c b a` |
//! | reward | 0.5 x share + 0.5 x equality |
//! | splits | by a hash of the prompt: one in eight is in the test split, one in eight in the validation split |
//!
//! For copy and reverse, the share is the fraction of correct positions. For sort, it is the mean of two fractions: the fraction of
//! correct letters regardless of their order, and the fraction of letters that do not precede their left neighbour in the alphabet. The
//! denominator of each fraction is the length of the correct or of the given answer, whichever is longer. An answer without EOS counts as
//! one letter longer. The equality is 1 for the correct answer with EOS, and 0 for any other answer.

use crate::text::{Answer, Finish, Problem, Rule, Rules, Split, Task, Verdict, Vocabulary};
use gradus_base::random::Stream;

const LETTERS: &str = "abcdefgh";

/// The order of the letters in the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Unchanged.
    Copy,
    /// Last to first.
    Reverse,
    /// Alphabetical.
    Sort,
}

impl Order {
    /// The first letter of prompts with this order.
    pub fn mark(self) -> char {
        match self {
            Order::Copy => 'C',
            Order::Reverse => 'R',
            Order::Sort => 'S',
        }
    }

    fn apply(self, letters: &str) -> String {
        let mut answer: Vec<char> = letters.chars().collect();
        match self {
            Order::Copy => {}
            Order::Reverse => answer.reverse(),
            Order::Sort => answer.sort_unstable(),
        }
        answer.into_iter().collect()
    }

    /// Returns the correct answer to a prompt.
    fn answer(self, prompt: &str) -> Result<String, String> {
        let letters = prompt.strip_prefix(self.mark()).and_then(|rest| rest.strip_suffix('>'));
        let letters = letters.filter(|letters| !letters.is_empty() && letters.chars().all(|letter| LETTERS.contains(letter)));
        letters.map(|letters| self.apply(letters)).ok_or_else(|| format!("expected a prompt such as `{}abc>`, got `{prompt}`", self.mark()))
    }

    /// Computes the correct share of an answer, as defined in the module documentation.
    fn share(self, answer: &Answer<'_>) -> Result<f64, String> {
        let (right, given) = (self.answer(answer.prompt)?, answer.completion);
        let of = right.len().max(given.len() + usize::from(!answer.is_finished()));
        Ok(match self {
            Order::Copy | Order::Reverse => right.bytes().zip(given.bytes()).filter(|(a, b)| a == b).count() as f64 / of as f64,
            Order::Sort => {
                let count = |text: &str, letter: char| text.chars().filter(|other| *other == letter).count();
                let found: usize = LETTERS.chars().map(|letter| count(&right, letter).min(count(given, letter))).sum();
                let is_ordered = |pair: &[u8]| pair[0].is_ascii_lowercase() && pair[0] <= pair[1];
                // the first letter has no predecessor and counts as in order
                let starts = given.starts_with(|first: char| first.is_ascii_lowercase());
                let ordered = usize::from(starts) + given.as_bytes().windows(2).filter(|pair| is_ordered(pair)).count();
                0.5 * found as f64 / of as f64 + 0.5 * ordered as f64 / of as f64
            }
        })
    }
}

/// Copy, reverse or sort, with lists of 2 letters or more.
///
/// ```
/// use gradus_envs::text::{Finish, Order, Sequence, Task};
///
/// let task = Sequence::new(Order::Reverse, 4);
/// let reward = |answer: &str| {
///     let encode = |text: &str| task.vocabulary().encode(text).unwrap();
///     task.verify(&encode("R a b c d >"), &encode(answer), Finish::Eos).unwrap().reward
/// };
/// assert_eq!((reward("d c b a"), reward("d c b"), reward("a b c d")), (1.0, 0.375, 0.0));
/// ```
pub struct Sequence {
    order: Order,
    longest: usize,
    vocabulary: Vocabulary,
    rules: Rules,
}

impl Sequence {
    /// Creates the task with lists of 2 to `longest` letters.
    ///
    /// # Panics
    /// If `longest` is below 2.
    pub fn new(order: Order, longest: usize) -> Self {
        assert!(longest >= 2, "sequence: expected lists of at least 2 letters, got {longest}");
        let vocabulary = Vocabulary::of_characters(&format!("{LETTERS}{}>", order.mark())).expect("different characters");
        let share = Rule::new("share", 0.5, move |answer| order.share(answer));
        Self { order, longest, vocabulary, rules: Rules(vec![share, Rule::equality(0.5, move |prompt| order.answer(prompt))]) }
    }
}

impl Task for Sequence {
    fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    fn max_new_tokens(&self) -> usize {
        self.longest + 1
    }

    fn longest_prompt(&self) -> usize {
        self.longest + 2
    }

    fn problem(&self, split: Split, stream: &mut Stream) -> Problem {
        split.draw(stream, |stream| {
            let length = 2 + stream.below(self.longest as u32 - 1);
            let letters: String = (0..length).map(|_| LETTERS.as_bytes()[stream.below(LETTERS.len() as u32) as usize] as char).collect();
            Problem::of(&self.vocabulary, &format!("{}{letters}>", self.order.mark()), &self.order.apply(&letters))
        })
    }

    fn verify(&self, prompt: &[u32], completion: &[u32], finish: Finish) -> Result<Verdict, String> {
        self.rules.verdict(&self.vocabulary, prompt, completion, finish)
    }

    fn score_names(&self) -> Vec<String> {
        self.rules.score_names()
    }
}
