//! Chain sum: a sum with its running totals, so that single steps can be rewarded.
//!
//! | | |
//! |---|---|
//! | prompt | digits to add: `3+4+2=` |
//! | answer | the running totals, separated by `;`, then `#`, the sum and EOS: `7;9#9` |
//! | reward | 1 for each correct running total, 1 for the sum |
//! | steps | the reward of a running total is given at the `;` or `#` that ends the total; the reward of the sum is given at EOS |
//! | splits | by a hash of the prompt: one in eight is in the test split, one in eight in the validation split |
//!
//! A running total is correct if it equals the expected total at its position and ends with `;` or `#`. A total cut off by EOS or by the
//! maximum length gets no reward, so stopping early does not pay. An extra total is a step with reward 0.

use crate::text::{Finish, Problem, Split, Task, Verdict, Vocabulary};
use gradus_base::random::Stream;

/// Chain sums of a fixed number of digits.
///
/// ```
/// use gradus_envs::text::{ChainSum, Finish, Task};
///
/// let task = ChainSum::new(3);
/// let reward = |answer: &str| {
///     let encode = |text: &str| task.vocabulary().encode(text).unwrap();
///     task.verify(&encode("3+4+2="), &encode(answer), Finish::Eos).unwrap().reward
/// };
/// assert_eq!((reward("7;9#9"), reward("7;8#8"), reward("6;9#9"), reward("#9")), (3.0, 1.0, 2.0, 1.0));
/// ```
#[derive(Clone, Debug)]
pub struct ChainSum {
    vocabulary: Vocabulary,
    terms: usize,
}

impl ChainSum {
    /// Creates the task with sums of `terms` digits from 0 to 9.
    ///
    /// # Panics
    /// Unless `terms` is 2 to 11, which limits totals to two digits.
    pub fn new(terms: usize) -> Self {
        assert!((2..=11).contains(&terms), "chain sum: expected 2 to 11 terms, got {terms}");
        Self { vocabulary: Vocabulary::of_characters("0123456789+=;#").expect("different characters"), terms }
    }

    /// Computes the running totals of a prompt, from the sum of the first two terms on.
    fn totals(&self, prompt: &[u32]) -> Result<Vec<String>, String> {
        let text = self.vocabulary.decode(prompt);
        let terms: Option<Vec<u32>> = text.strip_suffix('=').and_then(|sum| sum.split('+').map(|term| term.parse().ok()).collect());
        let terms = terms.filter(|terms| terms.len() >= 2 && terms.iter().all(|term| *term < 1000));
        let terms = terms.ok_or_else(|| format!("expected a prompt such as `3+4+2=`, got `{text}`"))?;
        Ok(totals(&terms))
    }
}

fn totals(terms: &[u32]) -> Vec<String> {
    let running = terms.iter().scan(0, |total, term| {
        *total += term;
        Some(total.to_string())
    });
    running.skip(1).collect()
}

impl Task for ChainSum {
    fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    fn max_new_tokens(&self) -> usize {
        3 * (self.terms - 1) + 3
    }

    fn longest_prompt(&self) -> usize {
        2 * self.terms
    }

    fn problem(&self, split: Split, stream: &mut Stream) -> Problem {
        split.draw(stream, |stream| {
            let terms: Vec<u32> = (0..self.terms).map(|_| stream.below(10)).collect();
            let prompt: Vec<String> = terms.iter().map(u32::to_string).collect();
            let totals = totals(&terms);
            let answer = format!("{}#{}", totals.join(";"), totals[totals.len() - 1]);
            Problem::of(&self.vocabulary, &format!("{}=", prompt.join("+")), &answer)
        })
    }

    fn verify(&self, prompt: &[u32], completion: &[u32], finish: Finish) -> Result<Verdict, String> {
        let (totals, text) = (self.totals(prompt)?, self.vocabulary.decode(completion));
        let (steps, answer) = text.split_once('#').map_or((text.as_str(), None), |(steps, answer)| (steps, Some(answer)));
        let mut steps: Vec<&str> = steps.split(';').collect();
        if answer.is_none() {
            steps.pop(); // not ended by `;` or `#`
        }
        let right = steps.iter().zip(&totals).filter(|(step, total)| step == total).count();
        let has_answer = finish != Finish::Length && answer == totals.last().map(String::as_str);
        let is_exact = has_answer && right == totals.len() && right == steps.len();
        let flag = |condition: bool| f64::from(u8::from(condition));
        Ok(Verdict {
            reward: right as f64 + flag(has_answer),
            scores: vec![flag(is_exact), right as f64 / totals.len() as f64, flag(has_answer)],
        })
    }

    /// The scores: whether the whole completion is correct, the fraction of correct running totals, and whether the sum is correct.
    fn score_names(&self) -> Vec<String> {
        ["exact", "reward/steps", "reward/answer"].map(String::from).to_vec()
    }

    fn step_reward(&self, prompt: &[u32], completion: &[u32]) -> Option<f64> {
        let [semicolon, hash] = [12, 13]; // their tokens
        let (last, before) = completion.split_last()?;
        if (*last != semicolon && *last != hash) || before.contains(&hash) {
            return None;
        }
        let place = before.iter().filter(|token| **token == semicolon).count();
        let step = before.rsplit(|token| *token == semicolon).next()?;
        let is_right = self.totals(prompt).ok()?.get(place) == Some(&self.vocabulary.decode(step));
        Some(f64::from(u8::from(is_right)))
    }
}
