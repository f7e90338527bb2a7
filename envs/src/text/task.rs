//! What a world of text asks, and how it judges what it is told.

use super::Vocabulary;
use crate::TensorEnvSpec;
use crate::random::Stream;

/// How a completion ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// By the token EOS.
    Eos,
    /// By a stop token.
    Stop,
    /// It was cut: there were as many tokens as there may be.
    Length,
}

/// A part of a task's problems. The three splits are disjoint and depend on the task alone, not on any seed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Split {
    /// The problems to learn from: about six in eight.
    #[default]
    Train,
    /// The problems that decide, such as when to stop: about one in eight.
    Validation,
    /// The problems that are reported: about one in eight. Nothing is decided by them.
    Test,
}

/// How the problems of a task are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Division {
    /// Into the three disjoint splits.
    Splits,
    /// Not at all, because there are too few: all problems are one set, which is both trained on and evaluated on.
    OneSet {
        /// The number of different prompts.
        problems: usize,
    },
}

/// Of how many keys one is of the validation split, and one of the test split.
const ONE_IN: u64 = 8;
/// So many draws without a problem of the split: there is none.
const PATIENCE: usize = 10_000;

impl Split {
    /// All splits.
    pub const ALL: [Split; 3] = [Split::Train, Split::Validation, Split::Test];

    /// The split of the problem with this key, usually its prompt. A hash of the key decides: one key in eight is of the test split, another
    /// one in eight of the validation split.
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

    /// Whether the problem with this key is of this split.
    pub fn has(self, key: &[u32]) -> bool {
        Split::of(key) == self
    }

    /// `train`, `validation` or `test`.
    pub fn name(self) -> &'static str {
        match self {
            Split::Train => "train",
            Split::Validation => "validation",
            Split::Test => "test",
        }
    }

    /// Draws problems until one comes whose prompt is of this split. An empty problem where none does.
    pub fn draw(self, stream: &mut Stream, make: impl FnMut(&mut Stream) -> Problem) -> Problem {
        self.draw_where(stream, make, |problem| self.has(&problem.prompt))
    }

    /// As [`draw`](Split::draw), by another rule.
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

/// A problem and a way to solve it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problem {
    /// What is asked.
    pub prompt: Vec<u32>,
    /// A right completion with its EOS, for supervised learning; empty where none is known.
    pub answer: Vec<u32>,
}

impl Problem {
    /// The problem of two texts; EOS is added to the answer.
    ///
    /// # Panics
    /// If there is a character that the vocabulary does not have.
    pub fn of(vocabulary: &Vocabulary, prompt: &str, answer: &str) -> Self {
        let encode = |text: &str| vocabulary.encode(text).unwrap_or_else(|error| panic!("{error}"));
        let mut answer = encode(answer);
        answer.push(vocabulary.eos());
        Self { prompt: encode(prompt), answer }
    }
}

/// What a completion is worth.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The reward of the whole completion.
    pub reward: f64,
    /// What it is made of, or what else there is to say, one number for each of [`Task::score_names`].
    pub scores: Vec<f64>,
}

impl Verdict {
    /// A reward, and whether the completion is right in full: the score `exact`.
    pub fn new(reward: f64, exact: bool) -> Self {
        Self { reward, scores: vec![f64::from(u8::from(exact))] }
    }
}

/// A task: a generator of problems and a verifier of answers. Four methods have to be written.
///
/// Both are pure functions: a problem of the split and of the stream, a verdict of the prompt and of the completion.
pub trait Task: Send + Sync {
    /// The symbols of prompts and answers.
    fn vocabulary(&self) -> &Vocabulary;

    /// After how many tokens a completion is cut, EOS included.
    fn max_new_tokens(&self) -> usize;

    /// A random problem of the split. A task whose problems are [one set](Division::OneSet) ignores the split; a split without any problem
    /// returns an empty one.
    fn problem(&self, split: Split, stream: &mut Stream) -> Problem;

    /// What a completion is worth. EOS is no part of it, a stop token is. An error, one line, says why this cannot be told; it ends the
    /// run.
    fn verify(&self, prompt: &[u32], completion: &[u32], finish: Finish) -> Result<Verdict, String>;

    /// How the problems are divided: into splits, unless the task has too few of them and says so.
    fn division(&self) -> Division {
        Division::Splits
    }

    /// The length of the longest prompt. Unless it is given, the longest of a thousand problems; a longer one ends the run.
    fn longest_prompt(&self) -> usize {
        const LOOKS: u64 = 500;
        let length = |split, seed| self.problem(split, &mut Stream::new(seed, crate::random::Purpose::Problem, 0)).prompt.len();
        let lengths = (0..LOOKS).flat_map(|seed| Split::ALL.map(|split| length(split, seed)));
        lengths.max().unwrap_or_default()
    }

    /// The names of a verdict's scores. Those of parts of the reward are like `reward/format`.
    fn score_names(&self) -> Vec<String> {
        vec!["exact".into()]
    }

    /// Whether a token ends the completion as EOS does.
    fn is_stop(&self, token: u32) -> bool {
        let _ = token;
        false
    }

    /// The reward of the step that the last token of `completion` ends; nothing where it ends none. It is given at once, and at the end what
    /// then remains of the verdict's reward.
    fn step_reward(&self, prompt: &[u32], completion: &[u32]) -> Option<f64> {
        let _ = (prompt, completion);
        None
    }

    /// What an engine has to know in order to ask and to judge by itself, on its own device. Unless it is given, the task does both on the host.
    fn tensor_spec(&self) -> TensorEnvSpec {
        TensorEnvSpec::Text
    }
}
