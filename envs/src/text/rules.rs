//! Rewards composed of rules. The reward is the weighted sum of the rules' scores, and each score is also reported separately.

use regex_lite::Regex;

use super::{Finish, Verdict, Vocabulary};
use crate::EnvError;

/// A completion with its prompt: the input of a rule.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// The prompt.
    pub prompt: &'a str,
    /// The completion, without EOS.
    pub completion: &'a str,
    /// How the completion ended.
    pub finish: Finish,
}

impl Answer<'_> {
    /// Whether the completion ended with EOS or a stop token.
    pub fn is_finished(&self) -> bool {
        self.finish != Finish::Length
    }
}

/// The scoring function of a rule (see [`Rule::new`]).
type Rate = Box<dyn Fn(&Answer<'_>) -> Result<f64, String> + Send + Sync>;

/// A rule with its name and weight.
pub struct Rule {
    name: String,
    weight: f64,
    rate: Rate,
}

impl Rule {
    /// Creates a custom rule. `rate` returns the score of an answer, usually from 0 to 1, or an error message if it cannot compute the
    /// score.
    pub fn new(name: &str, weight: f64, rate: impl Fn(&Answer<'_>) -> Result<f64, String> + Send + Sync + 'static) -> Self {
        Self { name: name.into(), weight, rate: Box::new(rate) }
    }

    /// Creates the rule `format`. Its score is 1 if the regular expression matches the completion, else 0. Without anchors, the expression
    /// may match any part of the completion.
    pub fn format(weight: f64, pattern: &str) -> Result<Self, EnvError> {
        let regex = Regex::new(pattern)
            .map_err(|error| EnvError::Text(format!("format: expected a regular expression, got `{pattern}`: {error}")))?;
        Ok(Self::new("format", weight, move |answer| Ok(f64::from(u8::from(regex.is_match(answer.completion))))))
    }

    /// Creates the rule `equality`. Its score is 1 if the completion equals the correct answer `right(prompt)` and was not cut, else 0.
    pub fn equality(weight: f64, right: impl Fn(&str) -> Result<String, String> + Send + Sync + 'static) -> Self {
        Self::new("equality", weight, move |answer| {
            let right = right(answer.prompt)?;
            Ok(f64::from(u8::from(answer.is_finished() && answer.completion == right)))
        })
    }

    /// Creates the rule `tests`. Its score is the fraction of unit tests that pass. `run` returns, for each test, whether it passed.
    pub fn tests(weight: f64, run: impl Fn(&Answer<'_>) -> Result<Vec<bool>, String> + Send + Sync + 'static) -> Self {
        Self::new("tests", weight, move |answer| {
            let passed = run(answer)?;
            let count = passed.iter().filter(|passed| **passed).count();
            if passed.is_empty() { Err("expected at least 1 unit test, got 0".into()) } else { Ok(count as f64 / passed.len() as f64) }
        })
    }

    /// Renames the rule.
    pub fn named(self, name: &str) -> Self {
        Self { name: name.into(), ..self }
    }
}

/// A list of rules. The reward is the sum of weight x score.
///
/// ```
/// use gradus_envs::text::{Finish, Rule, Rules, Vocabulary};
///
/// let doubled = |prompt: &str| prompt.parse().map(|n: u32| (2 * n).to_string()).map_err(|_| format!("expected a number, got {prompt}"));
/// let rules = Rules(vec![Rule::format(0.25, "^[0-9]+$")?, Rule::equality(0.75, doubled)]);
/// let vocabulary = Vocabulary::of_characters("0123456789.")?;
/// let verdict = |text: &str| rules.verdict(&vocabulary, &[2, 1], &vocabulary.encode(text).unwrap(), Finish::Eos).unwrap();
/// assert_eq!(rules.score_names(), ["exact", "reward/format", "reward/equality"]);
/// assert_eq!((verdict("42").reward, verdict("42").scores), (1.0, vec![1.0, 1.0, 1.0]));
/// assert_eq!((verdict("41").reward, verdict("41").scores), (0.25, vec![0.0, 1.0, 0.0]));
/// # Ok::<(), gradus_envs::EnvError>(())
/// ```
pub struct Rules(pub Vec<Rule>);

impl Rules {
    /// The names of the scores of [`verdict`](Rules::verdict): `exact`, then `reward/NAME` for each rule. If several rules share a name,
    /// the second one is `reward/NAME-2`, and so on.
    pub fn score_names(&self) -> Vec<String> {
        let mut names = vec!["exact".to_string()];
        for Rule { name, .. } in &self.0 {
            let numbered = (2..).map(|number| format!("reward/{name}-{number}"));
            let mut candidates = std::iter::once(format!("reward/{name}")).chain(numbered);
            names.push(candidates.find(|candidate| !names.contains(candidate)).expect("there are more numbers than rules"));
        }
        names
    }

    /// Evaluates a completion. The score `exact` is 1 if every rule gives the score 1. The rules' scores are reported without weights.
    pub fn verdict(&self, vocabulary: &Vocabulary, prompt: &[u32], completion: &[u32], finish: Finish) -> Result<Verdict, String> {
        let (prompt, completion) = (vocabulary.decode(prompt), vocabulary.decode(completion));
        let answer = Answer { prompt: &prompt, completion: &completion, finish };
        let mut verdict = Verdict::new(0.0, true);
        for rule in &self.0 {
            let score = (rule.rate)(&answer).map_err(|what| format!("{}: {what}", rule.name))?;
            verdict.reward += rule.weight * score;
            verdict.scores.push(score);
            if score != 1.0 {
                verdict.scores[0] = 0.0;
            }
        }
        Ok(verdict)
    }
}
