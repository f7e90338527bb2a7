//! Program: write a program that computes a function given by examples.
//!
//! | | |
//! |---|---|
//! | prompt | a function's values at 0, 1 and 2: `0:1,1:3,2:5>` |
//! | answer | a program of the stack [`machine`](crate::text::machine), then EOS: `x2*1+` |
//! | reward | the fraction of five unit tests that the program passes: the three shown values, and the values at 3 and 4 |
//! | splits | by a hash of the prompt: one in eight is in the test split, one in eight in the validation split; level 1 has no splits: its 19 problems are one set |
//!
//! The functions are polynomials of degree at most 2, so the three shown values determine the other two: second differences are constant.
//! A test fails if the result is wrong or the program stops with an error ([`Halt`](crate::text::machine::Halt)). All tests fail if the
//! answer is not a program or has no EOS.

use crate::text::machine::Machine;
use crate::text::{Answer, Division, Finish, Problem, Rule, Rules, Split, Task, Verdict, Vocabulary};
use gradus_base::random::Stream;

/// Number of shown values.
const SHOWN: usize = 3;
/// Number of unit tests.
const TESTS: usize = 5;

/// Programs for polynomials with coefficients from 0 to 9.
pub struct Program {
    level: u32,
    vocabulary: Vocabulary,
    rules: Rules,
}

impl Program {
    /// Creates a level of the task: 1 with `x + b` and `a x`, 2 with `a x + b`, 3 with `a x^2 + b x + c`.
    ///
    /// # Panics
    /// Unless `level` is 1, 2 or 3.
    pub fn new(level: u32) -> Self {
        assert!((1..=3).contains(&level), "program: expected level 1 to 3, got {level}");
        let vocabulary = Vocabulary::of_characters("0123456789x+-*dsp[]:,>").expect("different characters");
        Self { level, vocabulary, rules: Rules(vec![Rule::tests(1.0, run)]) }
    }

    /// Draws the coefficients of 1, x and x^2, and returns them with a program that computes the polynomial.
    fn draw(&self, stream: &mut Stream) -> ([i64; 3], String) {
        let [a, b, c] = [(); 3].map(|()| i64::from(stream.below(10)));
        match self.level {
            1 if stream.below(2) == 0 => ([a, 1, 0], format!("x{a}+")),
            1 => ([0, a, 0], format!("x{a}*")),
            2 => ([b, a, 0], format!("x{a}*{b}+")),
            _ => ([c, b, a], format!("x{a}*{b}+x*{c}+")),
        }
    }
}

/// Computes the values at 0, 1, ... from the first three, which the prompt shows.
fn values(prompt: &str) -> Result<[i64; TESTS], String> {
    let wrong = || format!("expected a prompt such as `0:1,1:3,2:5>`, got `{prompt}`");
    let pairs = prompt.strip_suffix('>').ok_or_else(wrong)?.split(',').enumerate();
    let value = |(x, pair): (usize, &str)| {
        let (input, value) = pair.split_once(':')?;
        value.parse().ok().filter(|value: &i64| input == x.to_string() && *value < 1_000_000)
    };
    let shown: Option<Vec<i64>> = pairs.map(value).collect();
    let shown: [i64; SHOWN] = shown.and_then(|values| values.try_into().ok()).ok_or_else(wrong)?;
    let mut values = [0; TESTS];
    values[..SHOWN].copy_from_slice(&shown);
    for x in SHOWN..TESTS {
        values[x] = 3 * values[x - 1] - 3 * values[x - 2] + values[x - 3]; // third differences are 0
    }
    Ok(values)
}

/// Returns, for each unit test, whether it passes.
fn run(answer: &Answer<'_>) -> Result<Vec<bool>, String> {
    let values = values(answer.prompt)?;
    let program = answer.is_finished().then(|| Machine::new(answer.completion)).flatten();
    let passes = |(x, value): (i64, &i64)| program.as_ref().is_some_and(|program| program.run(x) == Ok(*value));
    Ok((0..).zip(&values).map(passes).collect())
}

impl Task for Program {
    fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// Two or three tokens more than the generated answers need.
    fn max_new_tokens(&self) -> usize {
        [3, 5, 8][self.level as usize - 1] + 4
    }

    fn longest_prompt(&self) -> usize {
        "0:9,1:99,2:99>".len()
    }

    /// Level 1 has ten functions of each kind, and x + 0 is the same as 1 x.
    fn division(&self) -> Division {
        if self.level == 1 { Division::OneSet { problems: 19 } } else { Division::Splits }
    }

    fn problem(&self, split: Split, stream: &mut Stream) -> Problem {
        let make = |stream: &mut Stream| {
            let ([c, b, a], program) = self.draw(stream);
            let shown: Vec<String> = (0..SHOWN as i64).map(|x| format!("{x}:{}", (a * x + b) * x + c)).collect();
            Problem::of(&self.vocabulary, &format!("{}>", shown.join(",")), &program)
        };
        if self.level == 1 { make(stream) } else { split.draw(stream, make) }
    }

    fn verify(&self, prompt: &[u32], completion: &[u32], finish: Finish) -> Result<Verdict, String> {
        self.rules.verdict(&self.vocabulary, prompt, completion, finish)
    }

    fn score_names(&self) -> Vec<String> {
        self.rules.score_names()
    }
}
