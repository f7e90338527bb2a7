//! Rewards composed of rules: a weighted sum in which every rule is reported on its own.

use regex::Regex;

use super::{Finish, Verdict, Vocabulary};
use crate::EnvError;

/// What a rule judges.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// What was asked.
    pub prompt: &'a str,
    /// What was said; EOS is no part of it.
    pub completion: &'a str,
    /// How it ended.
    pub finish: Finish,
}

impl Answer<'_> {
    /// Whether it ended by itself.
    pub fn is_finished(&self) -> bool {
        self.finish != Finish::Length
    }
}

/// What an answer is worth by one rule, usually from 0 to 1, or why that cannot be told.
type Rate = Box<dyn Fn(&Answer<'_>) -> Result<f64, String> + Send + Sync>;

/// One rule, its name and its weight.
pub struct Rule {
    name: String,
    weight: f64,
    rate: Rate,
}

impl Rule {
    /// A rule of your own.
    pub fn new(name: &str, weight: f64, rate: impl Fn(&Answer<'_>) -> Result<f64, String> + Send + Sync + 'static) -> Self {
        Self { name: name.into(), weight, rate: Box::new(rate) }
    }

    /// `format`: 1 where the regular expression matches the completion, anywhere unless it is anchored, and 0 elsewhere.
    pub fn format(weight: f64, pattern: &str) -> Result<Self, EnvError> {
        let regex = Regex::new(pattern).map_err(|error| {
            let text = error.to_string(); // several lines, the last of which says what is wrong
            let what = text.lines().last().unwrap_or_default().trim_start_matches("error: ").trim();
            EnvError::Text(format!("format: expected a regular expression, got `{pattern}`: {what}"))
        })?;
        Ok(Self::new("format", weight, move |answer| Ok(f64::from(u8::from(regex.is_match(answer.completion))))))
    }

    /// `equality`: 1 where the completion ended and is the right answer to the prompt, and 0 elsewhere.
    pub fn equality(weight: f64, right: impl Fn(&str) -> Result<String, String> + Send + Sync + 'static) -> Self {
        Self::new("equality", weight, move |answer| {
            let right = right(answer.prompt)?;
            Ok(f64::from(u8::from(answer.is_finished() && answer.completion == right)))
        })
    }

    /// `tests`: the share of unit tests that pass.
    pub fn tests(weight: f64, run: impl Fn(&Answer<'_>) -> Result<Vec<bool>, String> + Send + Sync + 'static) -> Self {
        Self::new("tests", weight, move |answer| {
            let passed = run(answer)?;
            let count = passed.iter().filter(|passed| **passed).count();
            if passed.is_empty() { Err("expected at least 1 unit test, got 0".into()) } else { Ok(count as f64 / passed.len() as f64) }
        })
    }

    /// The same rule by another name.
    pub fn named(self, name: &str) -> Self {
        Self { name: name.into(), ..self }
    }
}

/// Rules that are rewarded together: the reward is the sum of weight x worth.
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
    /// The names of the scores of [`verdict`](Rules::verdict): `exact`, and each rule's. Of rules of one name the second is called
    /// `reward/NAME-2`, and so on: no two scores share a name.
    pub fn score_names(&self) -> Vec<String> {
        let mut names = vec!["exact".to_string()];
        for Rule { name, .. } in &self.0 {
            let numbered = (2..).map(|number| format!("reward/{name}-{number}"));
            let mut candidates = std::iter::once(format!("reward/{name}")).chain(numbered);
            names.push(candidates.find(|candidate| !names.contains(candidate)).expect("there are more numbers than rules"));
        }
        names
    }

    /// What a completion is worth. It is exact where it is worth 1 by every rule; what it is worth by each is reported without the weight.
    pub fn verdict(&self, vocabulary: &Vocabulary, prompt: &[u32], completion: &[u32], finish: Finish) -> Result<Verdict, String> {
        let (prompt, completion) = (vocabulary.decode(prompt), vocabulary.decode(completion));
        let answer = Answer { prompt: &prompt, completion: &completion, finish };
        let mut verdict = Verdict::new(0.0, true);
        for rule in &self.0 {
            let worth = (rule.rate)(&answer).map_err(|what| format!("{}: {what}", rule.name))?;
            verdict.reward += rule.weight * worth;
            verdict.scores.push(worth);
            if worth != 1.0 {
                verdict.scores[0] = 0.0;
            }
        }
        Ok(verdict)
    }
}
