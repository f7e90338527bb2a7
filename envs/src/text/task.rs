//! Text tasks: drawing problems and verifying answers.

use super::Vocabulary;
use crate::{EnvError, TensorEnvSpec};
use gradus_base::random::Stream;

/// How a completion ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// It ended with the token EOS.
    Eos,
    /// It ended with a stop token.
    Stop,
    /// It was cut at its maximum length.
    Length,
}

/// A part of a task's problems. The three splits depend only on the task, not on any seed, and are disjoint unless the task has
/// [one set](Division::OneSet) of problems.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Split {
    /// The problems for training: about six in eight.
    #[default]
    Train,
    /// The problems for decisions such as early stopping: about one in eight.
    Validation,
    /// The problems for reported results: about one in eight. They are not used for any decision.
    Test,
}

/// How the problems of a task are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Division {
    /// The problems are divided into the three disjoint splits.
    Splits,
    /// There are too few problems to divide. Training and evaluation use the same set of problems.
    OneSet {
        /// Number of different prompts.
        problems: usize,
    },
}

/// One problem in this many belongs to the validation split, and one in this many to the test split.
const ONE_IN: u64 = 8;
/// After this many draws without a problem of the split, the split counts as empty.
const PATIENCE: usize = 10_000;

impl Split {
    /// All splits.
    pub const ALL: [Split; 3] = [Split::Train, Split::Validation, Split::Test];

    /// Returns the split of the problem with this key, usually its prompt. A hash of the key selects the split: one key in eight belongs to
    /// the test split, and one in eight to the validation split.
    ///
    /// ```
    /// use gradus_envs::text::Split;
    ///
    /// let test = (0..8000).filter(|key| Split::of(&[*key]) == Split::Test).count();
    /// assert!((900..1100).contains(&test));
    /// ```
    pub fn of(key: &[u32]) -> Self {
        let hash = key.iter().fold(0, |hash: u64, token| mix(hash ^ u64::from(*token)));
        match hash % ONE_IN {
            0 => Split::Test,
            1 => Split::Validation,
            _ => Split::Train,
        }
    }

    /// Whether the problem with this key belongs to this split.
    pub fn has(self, key: &[u32]) -> bool {
        Split::of(key) == self
    }

    /// Returns `train`, `validation` or `test`.
    pub fn name(self) -> &'static str {
        match self {
            Split::Train => "train",
            Split::Validation => "validation",
            Split::Test => "test",
        }
    }

    /// Draws problems with `make` until the prompt of a problem belongs to this split. Returns an empty problem if none of 10,000 does.
    pub fn draw(self, stream: &mut Stream, make: impl FnMut(&mut Stream) -> Problem) -> Problem {
        self.draw_where(stream, make, |problem| self.has(&problem.prompt))
    }

    /// As [`draw`](Split::draw), but `is_mine` decides whether a problem belongs to this split.
    pub fn draw_where(
        self,
        stream: &mut Stream,
        mut make: impl FnMut(&mut Stream) -> Problem,
        is_mine: impl Fn(&Problem) -> bool,
    ) -> Problem {
        let mut drawn = (0..PATIENCE).map(|_| make(stream));
        drawn.find(is_mine).unwrap_or_default()
    }
}

/// One step of the generator SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
fn mix(number: u64) -> u64 {
    let z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A problem and a correct answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problem {
    /// The prompt.
    pub prompt: Vec<u32>,
    /// A correct completion, EOS included, for supervised learning. Empty if no correct completion is known.
    pub answer: Vec<u32>,
}

impl Problem {
    /// Encodes a problem from two texts, and appends EOS to the answer.
    ///
    /// # Panics
    /// If a text contains a character that is not in the vocabulary.
    pub fn of(vocabulary: &Vocabulary, prompt: &str, answer: &str) -> Self {
        let encode = |text: &str| vocabulary.encode(text).unwrap_or_else(|error| panic!("{error}"));
        let mut answer = encode(answer);
        answer.push(vocabulary.eos());
        Self { prompt: encode(prompt), answer }
    }
}

/// The verifier's result for a completion.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The reward of the whole completion.
    pub reward: f64,
    /// The components of the reward and other measures, one number for each of [`Task::score_names`].
    pub scores: Vec<f64>,
}

impl Verdict {
    /// Creates a verdict with one score, `exact`: whether the completion is fully correct.
    pub fn new(reward: f64, exact: bool) -> Self {
        Self { reward, scores: vec![f64::from(u8::from(exact))] }
    }
}

/// A task: a generator of problems and a verifier of answers. Four methods are required.
///
/// The generator and the verifier are pure functions. A problem depends only on the split and the stream. A verdict depends only on the
/// prompt, the completion, and how the completion ended.
pub trait Task: Send + Sync {
    /// The symbols of prompts and answers.
    fn vocabulary(&self) -> &Vocabulary;

    /// Maximum number of tokens of a completion, EOS included.
    fn max_new_tokens(&self) -> usize;

    /// Returns the tokens of a prompt as someone types it. Default: those of the vocabulary.
    fn prompt_of(&self, text: &str) -> Result<Vec<u32>, String> {
        self.vocabulary().encode(text).map_err(|error| match error {
            EnvError::Text(problem) => problem,
            error => error.to_string(),
        })
    }

    /// Returns the tokens of a conversation, a list of a role and a text each, up to the beginning of the next answer. Default: an error, because only
    /// pretrained models talk.
    fn conversation(&self, messages: &[(String, String)]) -> Result<Vec<u32>, String> {
        Err(format!("expected a pretrained model for a conversation of {} messages, got a task with symbols of its own", messages.len()))
    }

    /// Draws a random problem of the split. A task with [one set](Division::OneSet) of problems ignores the split. If the split has no
    /// problems, the returned problem is empty.
    fn problem(&self, split: Split, stream: &mut Stream) -> Problem;

    /// Verifies a completion. `completion` may end with a stop token, but does not contain EOS. An error ends the run. Its message is one
    /// line that says why the completion cannot be verified.
    fn verify(&self, prompt: &[u32], completion: &[u32], finish: Finish) -> Result<Verdict, String>;

    /// How the problems are divided. Default: into splits.
    fn division(&self) -> Division {
        Division::Splits
    }

    /// Returns the split of the problem with this prompt; `None` if the task has one set of problems, or if it cannot read the prompt. Tasks
    /// whose [`problem`](Task::problem) divides the problems by something else than [`Split::of`] the prompt override it.
    fn split_of(&self, prompt: &[u32]) -> Option<Split> {
        (self.division() == Division::Splits).then(|| Split::of(prompt))
    }

    /// Maximum number of tokens of a prompt. A longer prompt ends the run. Default: the maximum over 500 sampled problems of each split.
    fn longest_prompt(&self) -> usize {
        const SAMPLES: u64 = 500;
        let length = |split, seed| self.problem(split, &mut Stream::new(seed, gradus_base::random::Purpose::Problem, 0)).prompt.len();
        let lengths = (0..SAMPLES).flat_map(|seed| Split::ALL.map(|split| length(split, seed)));
        lengths.max().unwrap_or_default()
    }

    /// Returns the text of the problem with this prompt, and what its source says of the right answer, for [rewards of one's own](super::rewards). Default:
    /// none.
    fn question(&self, prompt: &[u32]) -> Option<(&str, &serde_json::Value)> {
        let _ = prompt;
        None
    }

    /// Whether completions can be exactly right: there is a verifier, and not only [rewards of one's own](super::rewards).
    fn has_answers(&self) -> bool {
        true
    }

    /// Whether verdicts have rewards other than 0, without [rewards of one's own](super::rewards).
    fn has_rewards(&self) -> bool {
        true
    }

    /// The names of a verdict's scores. Components of the reward are named like `reward/format`.
    fn score_names(&self) -> Vec<String> {
        vec!["exact".into()]
    }

    /// Whether a token is a stop token, which ends the completion like EOS.
    fn is_stop(&self, token: u32) -> bool {
        let _ = token;
        false
    }

    /// Returns the reward of the step that ends with the last token of `completion`, or `None` if no step ends there. That token gets the
    /// step reward. The last token of the whole completion gets the verdict's reward minus the step rewards.
    fn step_reward(&self, prompt: &[u32], completion: &[u32]) -> Option<f64> {
        let _ = (prompt, completion);
        None
    }

    /// Returns a hash of the problems, if they come from outside of the program, for example from a file. A run stores it, so that it is
    /// never continued or evaluated with other problems. Default: none.
    fn fingerprint(&self) -> Option<String> {
        None
    }

    /// The description for engines that draw problems and verify answers on a device. Default: the task does both on the host.
    fn tensor_spec(&self) -> TensorEnvSpec {
        TensorEnvSpec::Text
    }
}
