//! Rewards of one's own: functions of lists of prompts and completions, whose weighted sum is added to the task's own reward.
//!
//! [`PythonRewards`] are functions in a file of Python, in the form of TRL's `reward_funcs`: a function gets lists of equal lengths, of which it
//! names those that it needs, and returns a number for each completion, or `None` where it has nothing to say.
//!
//! ```python
//! def brevity(completions, **kwargs):
//!     return [-len(completion) / 100 for completion in completions]
//! ```
//!
//! | list | what it has for each completion |
//! |---|---|
//! | `completions` | the text of the completion |
//! | `prompts` | the prompt, as it is in the file of the problems; for other tasks, the text of its tokens |
//! | `completion_ids` | the tokens of the completion, EOS included |
//! | `answer` | the problem's `answer` in the file, any JSON; otherwise `None` |
//! | `finish` | how the completion ended: `eos`, `stop` or `length` |
//!
//! They run in a process of their own, with a limit of time for each call, and of memory. What they print is kept apart. The completions of a rollout
//! are rewarded by one call of each function.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use serde_json::{Value as Json, json};

use super::Finish;
use crate::EnvError;
use crate::python::{Process, Program, lock, python};
use gradus_base::files::expect_file;

/// A whole completion that is to be rewarded.
#[derive(Clone, Debug)]
pub struct Completed<'a> {
    /// The prompt.
    pub prompt: String,
    /// The completion, without EOS.
    pub completion: String,
    /// Its tokens, EOS included.
    pub tokens: &'a [u32],
    /// What the problem says of the right answer.
    pub answer: Json,
    /// How it ended.
    pub finish: Finish,
}

/// Functions that reward completions.
pub trait RewardFunctions: Send + Sync {
    /// The name of each function.
    fn names(&self) -> &[String];

    /// Returns one number for each function and each completion; `None` where a function has nothing to say. An error says in one line why a completion has no
    /// rewards. If `only_first`, those after the first error may be left out.
    fn rewards(&self, completions: &[Completed<'_>], only_first: bool) -> Vec<Result<Vec<Option<f64>>, String>>;

    /// Why no completion can be rewarded any more. The run ends, whatever happens with other errors.
    fn unusable(&self) -> Option<String> {
        None
    }
}

/// What happens if a completion cannot be rewarded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnError {
    /// The run ends.
    #[default]
    Stop,
    /// Every function gives it 0, and the score `rewards/errors` counts it.
    Zero,
}

/// Reward functions with their weights.
#[derive(Clone)]
pub struct Rewards {
    /// The functions.
    pub functions: Arc<dyn RewardFunctions>,
    /// The weight of each function.
    pub weights: Vec<f64>,
    /// The weight of the task's own reward.
    pub task_weight: f64,
    /// What happens if a completion cannot be rewarded.
    pub on_error: OnError,
}

impl Rewards {
    /// The names of the scores: `rewards/NAME` for each function, and `rewards/errors` if errors do not end the run.
    pub fn score_names(&self) -> Vec<String> {
        let errors = (self.on_error == OnError::Zero).then(|| "errors".to_string());
        self.functions.names().iter().cloned().chain(errors).map(|name| format!("rewards/{name}")).collect()
    }

    /// Returns the reward of each completion, without the task's, and its scores. A number that a function does not give counts as 0.
    pub fn of(&self, completions: &[Completed<'_>]) -> Vec<Result<(f64, Vec<f64>), String>> {
        let counts = self.on_error == OnError::Zero;
        let all = self.functions.rewards(completions, !counts);
        if let Some(problem) = self.functions.unusable() {
            return completions.iter().map(|_| Err(problem.clone())).collect();
        }
        let scored = |rewards: Result<Vec<Option<f64>>, String>| match rewards {
            Ok(rewards) => {
                let mut scores: Vec<f64> = rewards.into_iter().map(Option::unwrap_or_default).collect();
                let reward = scores.iter().zip(&self.weights).map(|(reward, weight)| reward * weight).sum();
                scores.extend(counts.then_some(0.0));
                Ok((reward, scores))
            }
            Err(_) if counts => {
                let mut scores = vec![0.0; self.functions.names().len()];
                scores.push(1.0);
                Ok((0.0, scores))
            }
            Err(problem) => Err(problem),
        };
        all.into_iter().map(scored).collect()
    }
}

/// The limits of a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Seconds of a call.
    pub seconds: u64,
    /// Megabytes of the process's data, where the system can limit them; 0: any.
    pub megabytes: u64,
}

/// The functions of a file of Python.
pub struct PythonRewards {
    file: PathBuf,
    /// The functions that were asked for; empty: all that take completions.
    wanted: Vec<String>,
    names: Vec<String>,
    /// What the file contained when it was loaded.
    contents: Option<Vec<u8>>,
    limits: Limits,
    process: Mutex<Option<Process>>,
    /// Why the process could not be started again.
    unusable: Mutex<Option<String>>,
}

/// The interpreter, the name, the limits, and the time of the file's last change.
type Key = (PathBuf, String, Limits, Option<SystemTime>);

/// Files that are loaded.
static OPEN: Mutex<Vec<(Key, Arc<PythonRewards>)>> = Mutex::new(Vec::new());

/// What names of reward functions begin with.
const PREFIX: &str = "python:";

/// Returns the path in the name of reward functions, and their names if it has some.
fn parts(name: &str) -> Option<(&str, Option<&str>)> {
    let rest = name.strip_prefix(PREFIX).filter(|rest| !rest.is_empty())?;
    // a path may have a colon, as C:\rewards.py
    match rest.rfind(".py:") {
        Some(at) => Some((&rest[..at + 3], Some(&rest[at + 4..]))),
        None => Some((rest, None)),
    }
}

/// Returns the path in the name of reward functions, `python:FILE:NAME,NAME`.
pub fn path_of(name: &str) -> Option<&str> {
    parts(name).map(|(path, _)| path)
}

/// Returns the name of the same reward functions in another file.
pub fn with_path(name: &str, path: &str) -> String {
    let names = parts(name).and_then(|(_, names)| names).map(|names| format!(":{names}"));
    format!("{PREFIX}{path}{}", names.unwrap_or_default())
}

/// What was wrong with a call: with one of its completions, or with the call as a whole.
enum Wrong {
    Some(Vec<(usize, String)>, Vec<Vec<Option<f64>>>),
    Whole(String),
}

impl PythonRewards {
    /// Loads the functions `python:FILE`, which are all functions of the file with a parameter `completions`, or `python:FILE:NAME,NAME`. The same functions are
    /// loaded once, as long as the file does not change.
    pub fn open(name: &str, limits: Limits) -> Result<Arc<Self>, EnvError> {
        let expected = "expected python:FILE or python:FILE:FUNCTION,FUNCTION";
        let (file, wanted) = parts(name).ok_or_else(|| EnvError::Text(format!("text.rewards: {expected}, got `{name}`")))?;
        let wanted = wanted.into_iter().flat_map(|names| names.split(',')).map(|name| name.trim().to_owned()).collect();
        if let Err(problem) = expect_file(Path::new(file)) {
            return Err(EnvError::Text(format!("cannot read {file}: {problem}")));
        }
        let changed = Path::new(file).metadata().and_then(|about| about.modified()).ok();
        let key = (python(), name.to_owned(), limits, changed);
        let mut open = lock(&OPEN);
        // what could not be started again may be now
        open.retain(|(of, known)| *of != key || known.unusable().is_none());
        if let Some((_, known)) = open.iter().find(|(of, _)| *of == key) {
            return Ok(known.clone());
        }
        let contents = fs::read(file).ok();
        let mut rewards =
            Self { file: file.into(), wanted, names: Vec::new(), contents, limits, process: Mutex::new(None), unusable: Mutex::new(None) };
        let (process, names) = rewards.start().map_err(|problem| EnvError::Text(rewards.named(&problem)))?;
        (rewards.process, rewards.names) = (Mutex::new(Some(process)), names);
        let rewards = Arc::new(rewards);
        open.push((key, rewards.clone()));
        Ok(rewards)
    }

    fn named(&self, problem: &str) -> String {
        format!("{}: {problem}", self.file.display())
    }

    /// Starts Python, and loads the file. Returns the names of the functions.
    fn start(&self) -> Result<(Process, Vec<String>), String> {
        let program = Program {
            source: include_str!("rewards.py"),
            name: "gradus-rewards",
            advice: "expected a Python interpreter; --python PATH or the variable GRADUS_PYTHON names it",
            limit: "text.reward_seconds",
        };
        let mut process = Process::start(&python(), program)?;
        // modules may take long to load
        let seconds = self.limits.seconds.max(60);
        let request = json!({ "file": self.file, "functions": self.wanted, "megabytes": self.limits.megabytes, "seconds": seconds });
        let answer = process.ask_json(b'f', &request, seconds).map_err(|failure| failure.problem)?;
        if let Some(problem) = answer["problem"].as_str() {
            return Err(problem.to_owned());
        }
        let names = answer["names"].as_array().into_iter().flatten().filter_map(|name| name.as_str().map(Into::into)).collect();
        Ok((process, names))
    }

    /// Returns the rewards of completions, each with one of every function. If the run ends with a problem (`is_last`), what the process has printed is kept in a file.
    fn call(&self, completions: &[Completed<'_>], is_last: bool) -> Result<Vec<Vec<Option<f64>>>, Wrong> {
        let whole = |problem: &str| Wrong::Whole(self.named(problem));
        let mut running = lock(&self.process);
        let mut process = match running.take() {
            Some(process) => process,
            None => {
                let is_same = |names: &[String]| fs::read(&self.file).ok() == self.contents && names == self.names;
                let changed = || "expected the contents with which it was loaded, got others".to_owned();
                let started = self.start().and_then(|(process, names)| if is_same(&names) { Ok(process) } else { Err(changed()) });
                started.map_err(|problem| {
                    *lock(&self.unusable) = Some(self.named(&problem));
                    whole(&problem)
                })?
            }
        };
        let finish = |finish: Finish| match finish {
            Finish::Eos => "eos",
            Finish::Stop => "stop",
            Finish::Length => "length",
        };
        let request = json!({
            "prompts": completions.iter().map(|completed| &completed.prompt).collect::<Vec<_>>(),
            "completions": completions.iter().map(|completed| &completed.completion).collect::<Vec<_>>(),
            "completion_ids": completions.iter().map(|completed| completed.tokens).collect::<Vec<_>>(),
            "answer": completions.iter().map(|completed| &completed.answer).collect::<Vec<_>>(),
            "finish": completions.iter().map(|completed| finish(completed.finish)).collect::<Vec<_>>(),
            "seconds": self.limits.seconds,
        });
        // a process that did not answer is not used again
        let answer = process.ask_json(b'r', &request, self.limits.seconds).map_err(|failure| whole(&failure.problem))?;
        if let Some(problem) = answer["problem"].as_str() {
            let kept = if is_last { process.kept_messages() } else { String::new() };
            let problem = whole(&format!("{problem}{kept}"));
            *running = Some(process);
            return Err(problem);
        }
        *running = Some(process);
        let numbers = |f: usize, i: usize| answer["rewards"][f][i].as_f64();
        let rewards = (0..completions.len()).map(|i| (0..self.names.len()).map(|f| numbers(f, i)).collect()).collect();
        let problem = |problem: &Json| Some((problem[0].as_u64()? as usize, self.named(problem[1].as_str()?)));
        let problems: Vec<_> = answer["problems"].as_array().into_iter().flatten().filter_map(problem).collect();
        if problems.is_empty() { Ok(rewards) } else { Err(Wrong::Some(problems, rewards)) }
    }
}

impl RewardFunctions for PythonRewards {
    fn names(&self) -> &[String] {
        &self.names
    }

    fn rewards(&self, completions: &[Completed<'_>], only_first: bool) -> Vec<Result<Vec<Option<f64>>, String>> {
        let problem = match self.call(completions, only_first) {
            Ok(rewards) => return rewards.into_iter().map(Ok).collect(),
            Err(Wrong::Some(problems, rewards)) => {
                let mut all: Vec<_> = rewards.into_iter().map(Ok).collect();
                problems.into_iter().rev().for_each(|(i, problem)| all[i] = Err(problem));
                return all;
            }
            Err(Wrong::Whole(problem)) => problem,
        };
        if completions.len() == 1 || self.unusable().is_some() {
            return completions.iter().map(|_| Err(problem.clone())).collect();
        }
        // which of them is to blame
        let mut alone = Vec::new();
        for completed in completions {
            alone.extend(self.rewards(std::slice::from_ref(completed), only_first));
            if only_first && alone.last().is_some_and(Result::is_err) {
                return alone;
            }
            if let Some(problem) = self.unusable() {
                return completions.iter().map(|_| Err(problem.clone())).collect();
            }
        }
        if alone.iter().all(Result::is_ok) {
            let problem = format!("{problem} ({} completions at once; none of them fails by itself)", completions.len());
            return completions.iter().map(|_| Err(problem.clone())).collect();
        }
        alone
    }

    fn unusable(&self) -> Option<String> {
        lock(&self.unusable).clone()
    }
}
