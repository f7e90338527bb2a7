//! A task from a file with one problem per line, in JSON (JSON Lines).
//!
//! ```text
//! {"prompt": "3+4=", "answer": "7"}
//! {"prompt": "half of 3?", "answer": 1.5, "verifier": "number"}
//! {"prompt": "a word with a b", "answer": "^[a-z]*b[a-z]*$", "verifier": "regex", "example": "abc"}
//! {"prompt": "24 from 2 3 4", "answer": "2*3*4", "verifier": "expression"}
//! {"prompt": "doubles x", "answer": [[1, 2], [5, 10]], "verifier": "program", "example": "x2*"}
//! ```
//!
//! | verifier | answer | reward of a completion that is not cut |
//! |---|---|---|
//! | `equality` (the default) | a text | 1 if the completion equals it |
//! | `number` | a number, or a text that is one | 1 if the completion is the same whole number or, with a fraction, a decimal number that differs by at most 1e-9 times the larger of 1 and the number |
//! | `regex` | a regular expression | 1 if it matches; without anchors it may match any part |
//! | `expression` | an [arithmetic expression](crate::text::expression) | 1 if the completion is an expression with the same value, as an exact fraction |
//! | `none` | nothing, or any JSON for [rewards of one's own](crate::text::rewards) | 0 |
//! | `program` | pairs of an input and an output | the share of pairs for which the completion, a program of the [stack machine](crate::text::machine), computes the output |
//!
//! Optional keys of a line: `example` is a right completion for supervised fine-tuning, where the answer itself is not one; `split` is `train`,
//! `validation` or `test`. Either all lines have a split or none. Without splits, a hash of the prompt decides, as in the other tasks; if
//! this leaves a split empty, all problems are [one set](Division::OneSet). With `train` and `test` but no `validation`, the hash makes
//! one in eight of the training problems validation problems. No prompt may occur twice.
//!
//! With a pretrained model (`chat:PATH?model=MODEL`), a prompt is what a user says in the model's chat template. A line may have `messages` instead of a prompt, as
//! [`{"role": "user", "content": "..."}`], and the settings may have a `system` message, which begins every conversation.
//!
//! The first line may have settings instead of a problem: `{"symbols": "0123456789", "max_new_tokens": 8, "verifier": "number"}`; the verifier is that of the
//! lines without one. `{"step": ";"}` says what ends a step of a solution, for [rewards of steps](Task::step_reward) and for process reward models; a line may then have
//! `"steps": ["12", "24"]`, the right steps. Each that stands at its place, but for blanks around it, adds 1 / n to the reward of the answer, where n is their number. By default each character of
//! the file's prompts, answers and examples, and each character that its verifiers read, is a symbol, and completions may be as long as the
//! longest answer or example, and EOS.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;
use std::path::Path;
use std::sync::Arc;

use regex_lite::Regex;
use serde_json::{Map, Value};

use crate::EnvError;
use crate::text::expression::{Expression, Fraction};
use crate::text::json_lines::{self, at, known, short};
use crate::text::machine::Machine;
use crate::text::{Division, Finish, Language, Problem, Split, Task, Verdict, Vocabulary};
use gradus_base::random::Stream;

/// The verifier for which nothing is right.
const NOTHING: &str = "none";

/// The keys of a problem and of the settings.
const KEYS: [&str; 7] = ["prompt", "messages", "answer", "verifier", "example", "split", "steps"];
const SETTINGS: [&str; 5] = ["symbols", "max_new_tokens", "system", "verifier", "step"];

/// A task from a file.
///
/// ```
/// use gradus_envs::text::{FileTask, Finish, Task};
///
/// let lines = r#"{"prompt": "3+4=", "answer": "7"}
///     {"prompt": "1/2=", "answer": 0.5, "verifier": "number"}"#;
/// let task = FileTask::parse(lines.as_bytes())?;
/// let encode = |text: &str| task.vocabulary().encode(text).unwrap();
/// let reward = |prompt: &str, answer: &str| task.verify(&encode(prompt), &encode(answer), Finish::Eos).unwrap().reward;
/// assert_eq!((reward("3+4=", "7"), reward("3+4=", "07"), reward("1/2=", ".50")), (1.0, 0.0, 1.0));
/// # Ok::<(), gradus_envs::EnvError>(())
/// ```
#[derive(Debug)]
pub struct FileTask {
    vocabulary: Vocabulary,
    max_new_tokens: usize,
    longest_prompt: usize,
    /// The problems of each split; the second and third are empty if the problems are one set.
    splits: [Vec<Problem>; 3],
    /// What is known of the problem with each prompt.
    known: BTreeMap<Vec<u32>, Known>,
    /// Hash of the lines (FNV-1a, 64 bits).
    hash: u64,
    /// What begins every conversation with a pretrained model.
    system: Option<Message>,
    /// What ends a step of a solution.
    step: Option<String>,
    /// Whether some problem has right steps.
    has_steps: bool,
}

/// What is known of a problem.
#[derive(Debug)]
struct Known {
    split: Split,
    right: Right,
    /// The prompt and the answer in the file.
    prompt: String,
    answer: Value,
    steps: Vec<String>,
}

/// What someone said in a conversation: a role and a text.
type Message = (String, String);

/// A right answer, in the form that its verifier needs.
#[derive(Debug)]
enum Right {
    Text(String),
    /// A number, and its digits if it is a whole one.
    Number(f64, Option<String>),
    Pattern(Regex),
    Value(Fraction),
    /// Inputs and outputs of a program.
    Tests(Vec<(i64, i64)>),
    /// Nothing is right. Has the answer if it is a text or a number: a reward function compares with it, so symbols must be able to write it.
    Nothing(String),
}

/// A line of the file.
struct Line {
    number: usize,
    prompt: String,
    /// The conversation, whose last text is the prompt; empty if there is only the prompt.
    messages: Vec<Message>,
    right: Right,
    answer: Value,
    /// A right completion; `None` if none is known.
    example: Option<String>,
    split: Option<Split>,
    /// The right steps.
    steps: Vec<String>,
}

impl FileTask {
    /// Reads a task from the file `path`. An error names the file and the line.
    pub fn read(path: &Path) -> Result<Self, EnvError> {
        json_lines::open(path, Self::parse)
    }

    /// Reads a task from lines of JSON.
    pub fn parse(lines: impl BufRead) -> Result<Self, EnvError> {
        Self::parse_in(lines, None)
    }

    /// Reads a task from the file `path`, whose problems are asked in a pretrained model's language.
    pub fn read_in(path: &Path, language: Arc<dyn Language>) -> Result<Self, EnvError> {
        json_lines::open(path, |lines| Self::parse_in(lines, Some(language)))
    }

    fn parse_in(lines: impl BufRead, language: Option<Arc<dyn Language>>) -> Result<Self, EnvError> {
        let (mut settings, mut problems) = (Map::new(), Vec::new());
        let mut hash = 0xcbf2_9ce4_8422_2325;
        let mut read = |number, text: &str, fields: Map<String, Value>| {
            hash = text.bytes().fold(hash, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
            let is_problem = ["prompt", "messages"].iter().any(|key| fields.contains_key(*key));
            if number == 1 && !is_problem && SETTINGS.iter().any(|key| fields.contains_key(*key)) {
                known(&fields, &SETTINGS)?;
                if let Some(verifier) = fields.get("verifier").filter(|verifier| !verifier.is_string()) {
                    return Err(format!("verifier: expected a text, got {}", short(&verifier.to_string())));
                }
                settings = fields;
            } else {
                problems.push(Line::of(number, &fields, settings.get("verifier"))?);
            }
            Ok(())
        };
        json_lines::objects(lines, &mut read)?;
        Ok(Self { hash, ..Self::of(&settings, problems, language)? })
    }

    /// Creates the task, with the hash 0.
    fn of(settings: &Map<String, Value>, lines: Vec<Line>, language: Option<Arc<dyn Language>>) -> Result<Self, EnvError> {
        if lines.is_empty() {
            return Err(EnvError::Text("expected at least one problem, got an empty file".into()));
        }
        let system = match settings.get("system") {
            None => None,
            Some(Value::String(text)) if language.is_some() => Some(("system".to_owned(), text.clone())),
            Some(_) => return Err(at(1, "system: expected a text, and a world chat: with a model, got another".into())),
        };
        let step = match settings.get("step") {
            None => None,
            Some(Value::String(text)) if !text.is_empty() => Some(text.clone()),
            Some(other) => return Err(at(1, format!("step: expected a text that ends a step, got {}", short(&other.to_string())))),
        };
        let with_steps = lines.iter().find(|line| !line.steps.is_empty());
        if let (Some(line), None) = (with_steps, &step) {
            return Err(at(line.number, "steps: expected a first line with what ends them, such as {\"step\": \";\"}, got none".into()));
        }
        let has_steps = with_steps.is_some();
        let vocabulary = match settings.get("symbols") {
            _ if let Some(language) = &language => Vocabulary::of_language(language.clone()),
            Some(symbols) => Vocabulary::new(symbols_of(symbols).map_err(|what| at(1, what))?)?,
            None => Vocabulary::new(characters(&lines, step.as_deref()))?,
        };
        let encode = |line: &Line, what: &str, text: &str| {
            let tokens = vocabulary.encode(text).map_err(|error| match error {
                EnvError::Text(problem) => at(line.number, format!("{what}: {problem}")),
                error => error,
            })?;
            if tokens.is_empty() { Err(at(line.number, format!("{what}: expected at least one symbol, got `{text}`"))) } else { Ok(tokens) }
        };
        let has_splits = lines.iter().any(|line| line.split.is_some());
        let has = |split| lines.iter().any(|line| line.split == Some(split));
        let needs_validation = has(Split::Test) && !has(Split::Validation);
        let mut task = Self {
            vocabulary: vocabulary.clone(),
            max_new_tokens: 0,
            longest_prompt: 0,
            splits: Default::default(),
            known: BTreeMap::new(),
            hash: 0,
            system: system.clone(),
            step,
            has_steps,
        };
        let mut first: BTreeMap<Vec<u32>, (usize, Split)> = BTreeMap::new();
        for line in lines {
            let prompt = match vocabulary.language() {
                None if line.messages.is_empty() => encode(&line, "prompt", &line.prompt)?,
                None => {
                    return Err(at(line.number, "messages: expected a prompt, or a world chat: with a model, got a conversation".into()));
                }
                Some(language) => {
                    let asked = if line.messages.is_empty() { vec![("user".into(), line.prompt.clone())] } else { line.messages.clone() };
                    conversation(language, &system, asked).map_err(|problem| at(line.number, format!("prompt: {problem}")))?
                }
            };
            let split = match line.split {
                Some(Split::Train) if needs_validation && Split::Validation.has(&prompt) => Split::Validation,
                Some(split) => split,
                None if has_splits => {
                    return Err(at(line.number, "expected a split, because other lines have one, got none".into()));
                }
                None => Split::of(&prompt),
            };
            if let Some((before, of)) = first.insert(prompt.clone(), (line.number, split)) {
                let what =
                    format!("prompt: expected every prompt once, got `{}` again (line {before}, {} split)", short(&line.prompt), of.name());
                return Err(at(line.number, what));
            }
            let mut answer = Vec::new();
            if let Some(example) = &line.example {
                if !line.right.accepts(example) {
                    return Err(at(line.number, format!("example: expected a right completion, got `{}`", short(example))));
                }
                answer = encode(&line, "answer", example)?;
                // the verifier reads what the symbols spell, which may lack the blanks between them
                let spelt = vocabulary.decode(&answer);
                if !line.right.accepts(&spelt) {
                    let what = format!(
                        "answer: expected one that the symbols can spell, got `{}`, of which they make `{}`",
                        short(example),
                        short(&spelt)
                    );
                    return Err(at(line.number, what));
                }
                answer.push(vocabulary.eos());
            }
            task.max_new_tokens = task.max_new_tokens.max(answer.len());
            task.longest_prompt = task.longest_prompt.max(prompt.len());
            let Line { right, answer: said, prompt: question, steps, .. } = line;
            task.known.insert(prompt.clone(), Known { split, right, prompt: question, answer: said, steps });
            task.splits[split as usize].push(Problem { prompt, answer });
        }
        if let Some(length) = settings.get("max_new_tokens") {
            let length = length.as_u64().filter(|n| (1..=1 << 16).contains(n));
            let wrong = || at(1, format!("max_new_tokens: expected 1 to 65536, got {}", settings["max_new_tokens"]));
            task.max_new_tokens = length.ok_or_else(wrong)? as usize;
        } else if task.max_new_tokens == 0 {
            let expected = "an `example` in some line, or a first line such as {\"max_new_tokens\": 16}";
            return Err(EnvError::Text(format!("length of completions: expected {expected}, got neither")));
        }
        if !has_splits && task.splits.iter().any(Vec::is_empty) {
            let [all, others @ ..] = &mut task.splits;
            others.iter_mut().for_each(|other| all.append(other));
        }
        Ok(task)
    }
}

impl FileTask {
    /// Returns the share of a problem's right steps that stand at their place in a text.
    fn right_steps(&self, known: &Known, text: &str) -> f64 {
        let Some((steps, end)) = self.step.as_deref().and_then(|end| Some((text.rsplit_once(end)?.0, end))) else { return 0.0 };
        let right = steps.split(end).zip(&known.steps).filter(|(step, right)| step.trim() == right.as_str()).count();
        right as f64 / known.steps.len().max(1) as f64
    }
}

/// Returns the tokens of a conversation behind the system's message.
fn conversation(language: &dyn Language, system: &Option<Message>, messages: Vec<Message>) -> Result<Vec<u32>, String> {
    let whole: Vec<Message> = system.iter().cloned().chain(messages).collect();
    language.conversation(&whole)
}

/// Returns a whole number of an answer that was too large to be read exactly.
fn rounded(answer: &Value) -> Option<&serde_json::Number> {
    match answer {
        Value::Number(number) => Some(number).filter(|_| number.is_f64() && number.as_f64().is_some_and(|x| x.abs() >= 9.2e18)),
        Value::Array(list) => list.iter().find_map(rounded),
        Value::Object(fields) => fields.values().find_map(rounded),
        _ => None,
    }
}

/// Reads the messages of a conversation.
fn messages_of(value: &Value) -> Result<Vec<Message>, String> {
    const KEYS: [&str; 2] = ["role", "content"];
    let fields = value.as_array().into_iter().flatten().filter_map(Value::as_object).flat_map(|message| message.keys());
    if let Some(key) = fields.into_iter().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(format!("messages: expected the keys role and content, got {key}"));
    }
    let message = |message: &Value| Some((message["role"].as_str()?.to_owned(), message["content"].as_str()?.to_owned()));
    let all: Option<Vec<Message>> = value.as_array().and_then(|list| list.iter().map(message).collect());
    let all = all
        .filter(|all| !all.is_empty())
        .ok_or_else(|| format!("messages: expected a list of {{\"role\": TEXT, \"content\": TEXT}}, got {}", short(&value.to_string())))?;
    match all.last() {
        Some((role, content)) if role == "assistant" => Err(format!(
            "messages: expected a last message that the model answers, got the assistant's `{}` (an answer to learn from is `example`)",
            short(content)
        )),
        _ => Ok(all),
    }
}

/// Returns the symbols of the settings: a text, whose characters are the symbols, or a list of texts.
fn symbols_of(value: &Value) -> Result<Vec<String>, String> {
    let wrong = || format!("symbols: expected a text or a list of texts, got {}", short(&value.to_string()));
    match value {
        Value::String(text) => Ok(text.chars().map(String::from).collect()),
        Value::Array(symbols) => symbols.iter().map(|symbol| symbol.as_str().map(String::from).ok_or_else(wrong)).collect(),
        _ => Err(wrong()),
    }
}

/// Returns the characters that the problems need, each once.
fn characters(lines: &[Line], step: Option<&str>) -> Vec<String> {
    let mut all: BTreeSet<char> = step.into_iter().flat_map(str::chars).collect();
    for Line { prompt, right, example, steps, .. } in lines {
        all.extend(steps.iter().flat_map(|step| step.chars()));
        all.extend(prompt.chars());
        all.extend(example.iter().flat_map(|example| example.chars()));
        all.extend(right.alphabet().chars());
    }
    all.into_iter().map(String::from).collect()
}

impl Line {
    /// Reads a line; `verifier` is that of lines without one.
    fn of(number: usize, fields: &Map<String, Value>, verifier: Option<&Value>) -> Result<Self, String> {
        known(fields, &KEYS)?;
        let text = |key: &str| -> Result<Option<String>, String> {
            match fields.get(key) {
                None => Ok(None),
                Some(Value::String(text)) => Ok(Some(text.clone())),
                Some(other) => Err(format!("{key}: expected a text, got {}", short(&other.to_string()))),
            }
        };
        let messages = fields.get("messages").map_or(Ok(Vec::new()), messages_of)?;
        let prompt = match (text("prompt")?, messages.last()) {
            (Some(prompt), None) => prompt,
            (None, Some((_, last))) => last.clone(),
            (None, None) => return Err("expected a prompt, got none".into()),
            (Some(_), Some(_)) => return Err("expected a prompt or messages, got both".into()),
        };
        let verifier = text("verifier")?.or_else(|| verifier.and_then(Value::as_str).map(Into::into));
        let verifier = verifier.as_deref().unwrap_or("equality");
        let answer = fields.get("answer").cloned().unwrap_or_default();
        if answer.is_null() && verifier != NOTHING {
            return Err("expected an answer, got none".into());
        }
        if let Some(number) = rounded(&answer) {
            return Err(format!(
                "answer: expected numbers below 9.2e18, or texts, because larger ones may be rounded, got one that is read as {number}"
            ));
        }
        let (right, itself) = Right::of(verifier, &answer)?;
        let split = text("split")?.map(|name| {
            let found = Split::ALL.into_iter().find(|split| split.name() == name);
            found.ok_or_else(|| format!("split: expected train, validation or test, got `{}`", short(&name)))
        });
        let steps = fields.get("steps").map_or(Ok(Vec::new()), |value| {
            let all = value.as_array().and_then(|list| list.iter().map(|step| step.as_str().map(|step| step.trim().to_owned())).collect());
            all.ok_or_else(|| format!("steps: expected a list of texts, got {}", short(&value.to_string())))
        })?;
        let example = text("example")?.or(itself);
        Ok(Self { number, prompt, messages, right, answer, example, split: split.transpose()?, steps })
    }
}

impl Right {
    /// Reads the answer for the verifier `name`. Also returns the answer as a completion, if it is one.
    fn of(name: &str, answer: &Value) -> Result<(Self, Option<String>), String> {
        let wrong = |expected: &str| format!("answer: expected {expected}, got {}", short(&answer.to_string()));
        let text = |expected: &str| answer.as_str().map(String::from).ok_or_else(|| wrong(expected));
        match name {
            "equality" => text("a text").map(|text| (Right::Text(text.clone()), Some(text))),
            "number" => {
                let text = if answer.is_number() { answer.to_string() } else { text("a number")? };
                let number = number(&text).ok_or_else(|| wrong("a decimal number"))?;
                Ok((Right::Number(number, whole(&text)), Some(text)))
            }
            "regex" => {
                let pattern = Regex::new(&text("a regular expression")?);
                pattern
                    .map(|pattern| (Right::Pattern(pattern), None))
                    .map_err(|error| format!("{}: {error}", wrong("a regular expression")))
            }
            "expression" => {
                let text = text("an arithmetic expression")?;
                let value = Expression::parse(&text).and_then(|expression| expression.value);
                Ok((Right::Value(value.ok_or_else(|| wrong("an arithmetic expression with a value"))?), Some(text)))
            }
            "program" => {
                let expected = "pairs of an input and an output, such as [[1, 2], [5, 10]]";
                let pair = |pair: &Value| match pair.as_array()?.as_slice() {
                    [input, output] => input.as_i64().zip(output.as_i64()),
                    _ => None,
                };
                let tests: Option<Vec<(i64, i64)>> = answer.as_array().and_then(|pairs| pairs.iter().map(pair).collect());
                let tests = tests.filter(|tests| !tests.is_empty()).ok_or_else(|| wrong(expected))?;
                Ok((Right::Tests(tests), None))
            }
            NOTHING => {
                let number = || answer.as_number().map(ToString::to_string).unwrap_or_default();
                Ok((Right::Nothing(answer.as_str().map_or_else(number, String::from)), None))
            }
            other => Err(format!("verifier: expected equality, number, regex, expression, program or none, got `{}`", short(other))),
        }
    }

    /// Returns the score of a completion, from 0 to 1.
    /// Whether a completion may be an example: it is right, or nothing is.
    fn accepts(&self, completion: &str) -> bool {
        matches!(self, Right::Nothing(_)) || self.score(completion) == 1.0
    }

    /// Returns the score of a completion, from 0 to 1.
    fn score(&self, completion: &str) -> f64 {
        let is_right = match self {
            Right::Text(text) => completion == text,
            Right::Number(right, digits) => {
                let is_near = |x: f64| (x - right).abs() <= 1e-9 * right.abs().max(1.0);
                // whole numbers may have more digits than a f64
                match digits {
                    Some(digits) => whole(completion).as_ref() == Some(digits),
                    None => number(completion).is_some_and(is_near),
                }
            }
            Right::Pattern(pattern) => pattern.is_match(completion),
            Right::Nothing(_) => false,
            Right::Value(value) => Expression::parse(completion).and_then(|expression| expression.value) == Some(*value),
            Right::Tests(tests) => {
                let Some(program) = Machine::new(completion) else { return 0.0 };
                return tests.iter().filter(|(input, output)| program.run(*input) == Ok(*output)).count() as f64 / tests.len() as f64;
            }
        };
        f64::from(u8::from(is_right))
    }

    /// Returns characters that completions need, beside those of a right one: all that the verifier can read, or none if it can read any; without a verifier, those of the answer.
    fn alphabet(&self) -> &str {
        match self {
            Right::Text(_) | Right::Pattern(_) => "",
            Right::Nothing(answer) => answer,
            Right::Number(..) => "0123456789-.",
            Right::Value(_) => "0123456789+-*/()",
            Right::Tests(_) => "0123456789x+-*dsp[]",
        }
    }
}

/// Returns the digits of a whole number, with its sign and without zeros at its beginning or behind its point; `None` for another text.
fn whole(text: &str) -> Option<String> {
    number(text)?;
    let (sign, rest) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (digits, fraction) = rest.split_once('.').unwrap_or((rest, ""));
    let digits = digits.trim_start_matches('0');
    fraction.chars().all(|digit| digit == '0').then(|| if digits.is_empty() { "0".into() } else { format!("{sign}{digits}") })
}

/// Parses a decimal number: an optional sign, digits, and a point if there is a fraction.
fn number(text: &str) -> Option<f64> {
    let is_decimal = text.chars().all(|character| character.is_ascii_digit() || matches!(character, '.' | '-'));
    // a number with hundreds of digits is infinite, and everything would be near it
    if is_decimal { text.parse().ok().filter(|number: &f64| number.is_finite()) } else { None }
}

impl Task for FileTask {
    fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// In a pretrained model's language, what a user says.
    fn prompt_of(&self, text: &str) -> Result<Vec<u32>, String> {
        match self.vocabulary.language() {
            Some(_) => self.conversation(&[("user".into(), text.into())]),
            None => self.vocabulary.encode(text).map_err(|error| error.to_string().trim_start_matches("text: ").to_owned()),
        }
    }

    fn conversation(&self, messages: &[Message]) -> Result<Vec<u32>, String> {
        let language = self.vocabulary.language().ok_or("expected a world chat: with a model, got one with symbols of its own")?;
        conversation(language, &self.system, messages.to_vec())
    }

    fn max_new_tokens(&self) -> usize {
        self.max_new_tokens
    }

    fn longest_prompt(&self) -> usize {
        self.longest_prompt
    }

    fn division(&self) -> Division {
        match &self.splits {
            [all, validation, test] if validation.is_empty() && test.is_empty() => Division::OneSet { problems: all.len() },
            _ => Division::Splits,
        }
    }

    fn split_of(&self, prompt: &[u32]) -> Option<Split> {
        let has_splits = self.division() == Division::Splits;
        self.known.get(prompt).filter(|_| has_splits).map(|known| known.split)
    }

    fn question(&self, prompt: &[u32]) -> Option<(&str, &Value)> {
        self.known.get(prompt).map(|known| (&known.prompt[..], &known.answer))
    }

    fn is_stop(&self, token: u32) -> bool {
        self.vocabulary.language().is_some_and(|language| language.ends()[1..].contains(&token))
    }

    fn fingerprint(&self) -> Option<String> {
        Some(format!("{:016x}", self.hash))
    }

    fn problem(&self, split: Split, stream: &mut Stream) -> Problem {
        let problems = match self.division() {
            Division::OneSet { .. } => &self.splits[0],
            Division::Splits => &self.splits[split as usize],
        };
        if problems.is_empty() { Problem::default() } else { problems[stream.below(problems.len() as u32) as usize].clone() }
    }

    fn verify(&self, prompt: &[u32], completion: &[u32], finish: Finish) -> Result<Verdict, String> {
        let known = self.known.get(prompt).ok_or("expected a prompt of the file, got another one")?;
        let text = self.vocabulary.decode(completion);
        let score = if finish == Finish::Length { 0.0 } else { known.right.score(&text) };
        if !self.has_steps {
            return Ok(Verdict::new(score, score == 1.0));
        }
        let steps = self.right_steps(known, &text);
        Ok(Verdict { reward: score + steps, scores: vec![f64::from(u8::from(score == 1.0)), steps, score] })
    }

    /// With right steps, also what these and the answer give.
    fn has_answers(&self) -> bool {
        self.known.values().any(|known| !matches!(known.right, Right::Nothing(_)))
    }

    fn has_rewards(&self) -> bool {
        self.has_steps || self.has_answers()
    }

    fn score_names(&self) -> Vec<String> {
        let all = ["exact", "reward/steps", "reward/answer"];
        all.iter().take(if self.has_steps { 3 } else { 1 }).map(|name| (*name).into()).collect()
    }

    fn step_reward(&self, prompt: &[u32], completion: &[u32]) -> Option<f64> {
        let end = self.step.as_deref()?;
        let [text, before] = [completion, completion.split_last()?.1].map(|tokens| self.vocabulary.decode(tokens));
        // a token of a language may end several steps
        if text.matches(end).count() == before.matches(end).count() {
            return None;
        }
        let known = self.known.get(prompt)?;
        Some(self.right_steps(known, &text) - self.right_steps(known, &before))
    }
}
