//! Countdown: combine given numbers into an expression with a given value.
//!
//! | | |
//! |---|---|
//! | prompt | numbers and a target: `3 5 7 -> 26` |
//! | answer | an expression with `+ - * /` and parentheses that uses each number once, then EOS: `3*7+5` |
//! | reward | 0 if the answer does not parse or has no EOS, 0.1 if it parses, 0.2 if it also uses each number once, 1 if it also reaches the target |
//! | splits | by a hash of the target and the sorted numbers: one in eight is in the test split, one in eight in the validation split |
//!
//! Values are exact fractions: `7/2*4` is 14. An expression with a division by 0, or with an intermediate value beyond 64 bits, does not
//! reach the target. A number above 4294967295 does not parse.

use crate::text::expression::{Expression, Fraction};
use crate::text::{Finish, Problem, Split, Task, Verdict, Vocabulary};
use gradus_base::random::Stream;

/// The largest target of generated problems.
const TARGET: u32 = 99;

/// Countdown with a fixed count of numbers, each from 1 to a maximum.
///
/// ```
/// use gradus_envs::text::{Countdown, Finish, Task};
///
/// let task = Countdown::new(3, 9);
/// let reward = |answer: &str| {
///     let encode = |text: &str| task.vocabulary().encode(text).unwrap();
///     task.verify(&encode("3 5 7 -> 26"), &encode(answer), Finish::Eos).unwrap().reward
/// };
/// assert_eq!((reward("3*7+5"), reward("3*5+7"), reward("3*7"), reward("3*7+")), (1.0, 0.2, 0.1, 0.0));
/// ```
#[derive(Clone, Debug)]
pub struct Countdown {
    vocabulary: Vocabulary,
    count: usize,
    largest: u32,
}

/// Part of an expression.
#[derive(Clone)]
struct Part {
    text: String,
    value: u32,
    /// Whether it is a sum or difference, which needs parentheses inside a product.
    is_sum: bool,
    is_number: bool,
}

impl Part {
    /// Joins two parts; `None` unless the value is a positive 32-bit integer.
    fn join(&self, operator: char, other: &Part) -> Option<Part> {
        let value = match operator {
            '+' => self.value.checked_add(other.value)?,
            '-' => self.value.checked_sub(other.value)?,
            '*' => self.value.checked_mul(other.value)?,
            _ => self.value.is_multiple_of(other.value).then(|| self.value / other.value)?,
        };
        let is_sum = matches!(operator, '+' | '-');
        let wrapped = |part: &Part, needs: bool| if needs { format!("({})", part.text) } else { part.text.clone() };
        let left = wrapped(self, !is_sum && self.is_sum);
        let right = wrapped(other, (!is_sum && other.is_sum) || (matches!(operator, '-' | '/') && !other.is_number));
        (value > 0).then(|| Part { text: format!("{left}{operator}{right}"), value, is_sum, is_number: false })
    }
}

impl Countdown {
    /// Creates the task with `count` numbers from 1 to `largest`, and targets up to 99.
    ///
    /// # Panics
    /// If `count` is below 2, or if `largest` is below 2 or above 99.
    pub fn new(count: usize, largest: u32) -> Self {
        assert!(count >= 2, "countdown: expected at least 2 numbers, got {count}");
        assert!((2..=99).contains(&largest), "countdown: expected a largest number of 2 to 99, got {largest}");
        let symbols = "0123456789+-*/() ".chars().map(String::from).chain([" -> ".to_string()]);
        Self { vocabulary: Vocabulary::new(symbols).expect("different symbols"), count, largest }
    }

    /// Maximum number of digits of a number.
    fn width(&self) -> usize {
        self.largest.to_string().len()
    }

    /// Draws random numbers and a random expression of them.
    fn draw(&self, stream: &mut Stream) -> (Vec<u32>, Part) {
        loop {
            let numbers: Vec<u32> = (0..self.count).map(|_| 1 + stream.below(self.largest)).collect();
            let part = |value: &u32| Part { text: value.to_string(), value: *value, is_sum: false, is_number: true };
            let mut parts: Vec<Part> = numbers.iter().map(part).collect();
            stream.shuffle(&mut parts);
            while parts.len() > 1 {
                let first = stream.below(parts.len() as u32 - 1) as usize;
                let operator = ['+', '-', '*', '/'][stream.below(4) as usize];
                let Some(joined) = parts[first].join(operator, &parts[first + 1]) else { break };
                parts.splice(first..first + 2, [joined]);
            }
            if let [part] = parts.as_slice()
                && part.value <= TARGET
            {
                return (numbers, part.clone());
            }
        }
    }

    /// Parses a prompt into the sorted numbers and the target.
    fn read(&self, prompt: &[u32]) -> Result<(Vec<u32>, u32), String> {
        let text = self.vocabulary.decode(prompt);
        let read = |(numbers, target): (&str, &str)| {
            let numbers: Option<Vec<u32>> = numbers.split(' ').map(|number| number.parse().ok()).collect();
            Some((numbers?, target.parse().ok()?))
        };
        let (mut numbers, target) =
            text.split_once(" -> ").and_then(read).ok_or_else(|| format!("expected a prompt such as `3 5 7 -> 26`, got `{text}`"))?;
        numbers.sort_unstable();
        Ok((numbers, target))
    }
}

impl Task for Countdown {
    fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// Counts the digits of the numbers, the operators, a pair of parentheses for each operator except the outermost, and EOS.
    fn max_new_tokens(&self) -> usize {
        self.count * self.width() + (self.count - 1) + 2 * (self.count - 2) + 1
    }

    fn longest_prompt(&self) -> usize {
        self.count * (self.width() + 1) + TARGET.to_string().len()
    }

    fn problem(&self, split: Split, stream: &mut Stream) -> Problem {
        let make = |stream: &mut Stream| {
            let (numbers, part) = self.draw(stream);
            let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
            Problem::of(&self.vocabulary, &format!("{} -> {}", numbers.join(" "), part.value), &part.text)
        };
        split.draw_where(stream, make, |problem| self.split_of(&problem.prompt) == Some(split))
    }

    /// The order of the numbers does not matter.
    fn split_of(&self, prompt: &[u32]) -> Option<Split> {
        let (mut key, target) = self.read(prompt).ok()?;
        key.push(target);
        Some(Split::of(&key))
    }

    fn verify(&self, prompt: &[u32], completion: &[u32], finish: Finish) -> Result<Verdict, String> {
        let (numbers, target) = self.read(prompt)?;
        let expression = (finish != Finish::Length).then(|| Expression::parse(&self.vocabulary.decode(completion))).flatten();
        let Some(expression) = expression else { return Ok(Verdict { reward: 0.0, scores: vec![0.0; 3] }) };
        let mut used = expression.numbers;
        used.sort_unstable();
        let uses_each_once = used == numbers;
        let solves = uses_each_once && expression.value == Some(Fraction::from(target));
        let reward = if solves {
            1.0
        } else if uses_each_once {
            0.2
        } else {
            0.1
        };
        Ok(Verdict { reward, scores: vec![f64::from(u8::from(solves)), 1.0, f64::from(u8::from(uses_each_once))] })
    }

    /// The scores: whether the answer reaches the target, whether it parses, and whether it uses each number once.
    fn score_names(&self) -> Vec<String> {
        ["exact", "reward/parses", "reward/numbers"].map(String::from).to_vec()
    }
}
