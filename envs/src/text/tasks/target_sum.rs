//! Target sum: digits that add up to a number. The task is small enough to enumerate all completions.
//!
//! | | |
//! |---|---|
//! | prompt | a number n and `>`: `7>` |
//! | answer | digits from 0 to 4 with the sum n, then EOS: `403` |
//! | reward | 1 - abs(sum - n)/max(n, sum); 0 if EOS is missing, or if the answer contains a symbol other than the digits 0 to 4 |
//! | splits | none: training and evaluation use all numbers |
//!
//! There are no splits because a one-digit number is a single symbol: a policy cannot generalise to a symbol that it has never seen.

use crate::TensorEnvSpec;
use crate::text::{Division, Finish, Problem, Split, Task, Verdict, Vocabulary};
use gradus_base::random::Stream;

/// Target sum with numbers from 1 to a maximum.
///
/// ```
/// use gradus_envs::text::{Finish, TargetSum, Task};
///
/// let task = TargetSum::new(7, 3);
/// let reward = |answer: &str| {
///     let encode = |text: &str| task.vocabulary().encode(text).unwrap();
///     task.verify(&encode("7 >"), &encode(answer), Finish::Eos).unwrap().reward
/// };
/// assert_eq!((reward("43"), reward("4"), reward("444")), (1.0, 1.0 - 3.0 / 7.0, 1.0 - 5.0 / 12.0));
/// ```
#[derive(Clone, Debug)]
pub struct TargetSum {
    vocabulary: Vocabulary,
    largest: u32,
    digits: usize,
}

impl TargetSum {
    /// The largest digit of an answer. The token of a digit is the digit.
    pub const DIGIT: u32 = 4;

    /// Creates the task with numbers from 1 to `largest` and answers of at most `digits` digits. The vocabulary consists of the digits
    /// that prompts and answers need, `>` and EOS. It has 7 tokens if `largest` is at most 4.
    ///
    /// # Panics
    /// Unless `largest` is from 1 to 4 x `digits`, so that every sum is possible.
    pub fn new(largest: u32, digits: usize) -> Self {
        let most = Self::DIGIT as usize * digits;
        assert!((1..=most).contains(&(largest as usize)), "target sum: expected a largest number of 1 to {most}, got {largest}");
        let symbols = (0..=largest.clamp(Self::DIGIT, 9)).map(|digit| digit.to_string()).chain([">".into()]);
        let vocabulary = Vocabulary::new(symbols).expect("different symbols");
        Self { vocabulary, largest, digits }
    }

    /// The largest number in a prompt.
    pub fn largest(&self) -> u32 {
        self.largest
    }

    /// Encodes the prompt of a number.
    pub fn prompt(&self, number: u32) -> Vec<u32> {
        self.vocabulary.encode(&format!("{number}>")).expect("the digits of a number that is not too large")
    }

    /// Parses the number of a prompt.
    fn target(&self, prompt: &[u32]) -> Result<u32, String> {
        let text = self.vocabulary.decode(prompt);
        let number = text.strip_suffix('>').and_then(|number| number.parse().ok()).filter(|number| *number > 0);
        number.ok_or_else(|| format!("expected a prompt such as `{}>`, got `{text}`", self.largest))
    }
}

impl Task for TargetSum {
    fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    fn max_new_tokens(&self) -> usize {
        self.digits + 1
    }

    fn longest_prompt(&self) -> usize {
        self.largest.to_string().len() + 1
    }

    fn division(&self) -> Division {
        Division::OneSet { problems: self.largest as usize }
    }

    fn problem(&self, _: Split, stream: &mut Stream) -> Problem {
        let number = 1 + stream.below(self.largest);
        // the sum is spread over all allowed digits; each digit is drawn so that the remaining digits can add up to the rest
        let (mut rest, mut answer) = (number, String::new());
        for left in (0..self.digits as u32).rev() {
            let (low, high) = (rest.saturating_sub(Self::DIGIT * left), rest.min(Self::DIGIT));
            let digit = low + stream.below(high - low + 1);
            answer.push_str(&digit.to_string());
            rest -= digit;
        }
        Problem { prompt: self.prompt(number), ..Problem::of(&self.vocabulary, "", &answer) }
    }

    fn verify(&self, prompt: &[u32], completion: &[u32], finish: Finish) -> Result<Verdict, String> {
        let target = f64::from(self.target(prompt)?);
        if finish == Finish::Length || completion.iter().any(|digit| *digit > Self::DIGIT) {
            return Ok(Verdict::new(0.0, false));
        }
        let sum = f64::from(completion.iter().sum::<u32>()); // the tokens of digits are the digits
        let reward = 1.0 - (sum - target).abs() / target.max(sum);
        Ok(Verdict::new(reward, sum == target))
    }

    fn tensor_spec(&self) -> TensorEnvSpec {
        TensorEnvSpec::TargetSum(self.clone())
    }
}
