//! Worlds of text tasks: their options, and variants with another split, prompt or options.

use std::sync::Arc;

use super::listed::{Lists, ProblemList};
use super::rewards::{Completed, Rewards};
use super::{Division, Finish, Split, Task, TextEnv, Verdict};
use crate::{EnvError, EnvSpec, Space, TensorEnvSpec};
use gradus_base::panics;
use gradus_base::random::{Purpose, Stream, episode_seed};

/// Largest allowed number of tokens of a completion.
const MOST_TOKENS: usize = 1 << 16;

/// Options of a text environment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextOptions {
    /// Maximum number of tokens of a completion. `None` means the maximum of the task.
    pub max_new_tokens: Option<usize>,
    /// Number n of tokens by which a completion may be longer than `max_new_tokens`. The k-th of these tokens raises a penalty, which is
    /// subtracted from the reward, to k / n (Yu et al., arXiv 2503.14476, equation 13: "soft overlong punishment").
    pub overlong_buffer: usize,
    /// The penalty subtracted from the reward of a completion that is cut at the maximum length.
    pub missing_eos_penalty: f64,
    /// The penalty subtracted from the reward for every token of the completion.
    pub length_penalty: f64,
    /// Whether a completion that is cut counts as truncated, so that its return is bootstrapped. If not, it counts as terminated.
    pub length_bootstraps: bool,
}

/// One of the steps into which a task divides a completion.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SolutionStep {
    /// Number of tokens of the completion up to the end of the step.
    pub tokens: usize,
    /// The reward that the environment gives for the step.
    pub reward: f64,
}

/// The task, options, split and fixed prompt of a text environment.
#[derive(Clone)]
pub struct TextWorld {
    /// The task.
    pub task: Arc<dyn Task>,
    /// The options.
    pub options: TextOptions,
    /// The split that problems are drawn from.
    pub split: Split,
    /// A fixed prompt for every episode. `None` means that prompts are drawn.
    pub prompt: Option<Vec<u32>>,
    /// Rewards beside the task's own.
    pub rewards: Option<Rewards>,
    /// Whether a [`TextEnv`] leaves it to others to verify its completions: they get the reward 0.
    pub(super) defers: bool,
    longest_prompt: usize,
    lists: Lists,
}

impl TextWorld {
    fn new(task: Arc<dyn Task>) -> Self {
        let longest_prompt = task.longest_prompt();
        Self {
            task,
            options: TextOptions::default(),
            split: Split::Train,
            prompt: None,
            rewards: None,
            defers: false,
            longest_prompt,
            lists: Lists::default(),
        }
    }

    /// The length of the longest prompt.
    pub fn longest_prompt(&self) -> usize {
        self.longest_prompt
    }

    /// Maximum number of tokens of a completion, those of the overlong buffer included.
    pub fn max_new_tokens(&self) -> usize {
        self.options.max_new_tokens.unwrap_or_else(|| self.task.max_new_tokens()).saturating_add(self.options.overlong_buffer)
    }

    /// The observation space.
    pub fn space(&self) -> Space {
        Space::Text { vocabulary: self.task.vocabulary().len() as u32, context: self.longest_prompt + self.max_new_tokens() }
    }

    /// Returns how a completion, EOS included, ended; `None` if it has not ended.
    pub fn finish(&self, completion: &[u32]) -> Option<Finish> {
        match completion.last() {
            Some(token) if *token == self.task.vocabulary().eos() => Some(Finish::Eos),
            Some(token) if self.task.is_stop(*token) => Some(Finish::Stop),
            _ if completion.len() >= self.max_new_tokens() => Some(Finish::Length),
            _ => None,
        }
    }

    /// The names of the scores of a verdict: the task's scores, and those of the rewards beside its own.
    fn verdict_names(&self) -> Vec<String> {
        let mut names = self.task.score_names();
        names.extend(self.rewards.iter().flat_map(Rewards::score_names));
        names
    }

    /// The names of the scores of a completion: the task's scores, those of the rewards beside its own, whether it was cut, and the penalties that are
    /// not 0 in the options.
    pub fn score_names(&self) -> Vec<String> {
        let mut names = self.verdict_names();
        names.push("finish/length".into());
        if self.options.missing_eos_penalty != 0.0 {
            names.push("penalty/missing-eos".into());
        }
        if self.options.length_penalty != 0.0 {
            names.push("penalty/length".into());
        }
        if self.options.overlong_buffer != 0 {
            names.push("penalty/overlong".into());
        }
        names
    }

    /// The indices of the scores that are penalties, which are subtracted from the reward.
    pub fn penalties(&self) -> std::ops::Range<usize> {
        let first = self.verdict_names().len() + 1;
        first..self.score_names().len()
    }

    /// Returns the penalties of a whole completion, EOS included: for a missing EOS, for the length, and for tokens in the overlong buffer.
    pub fn charges(&self, completion: &[u32]) -> [f64; 3] {
        self.charges_of(matches!(self.finish(completion), Some(Finish::Length) | None), completion.len())
    }

    /// As [`charges`](TextWorld::charges), for a completion of `length` tokens that was cut if `is_cut`.
    fn charges_of(&self, is_cut: bool, length: usize) -> [f64; 3] {
        let missing_eos = if is_cut { self.options.missing_eos_penalty } else { 0.0 };
        let buffer = self.options.overlong_buffer;
        let overlong = length.saturating_sub(self.max_new_tokens() - buffer) as f64 / buffer.max(1) as f64;
        [missing_eos, length as f64 * self.options.length_penalty, overlong]
    }

    /// Returns the scores of a whole completion, one for each of [`score_names`](TextWorld::score_names). `length` counts EOS.
    pub fn scores(&self, verdict: Vec<f64>, is_cut: bool, length: usize) -> Vec<f64> {
        let (mut scores, [missing_eos, length, overlong]) = (verdict, self.charges_of(is_cut, length));
        scores.push(f64::from(u8::from(is_cut)));
        scores.extend((self.options.missing_eos_penalty != 0.0).then_some(missing_eos));
        scores.extend((self.options.length_penalty != 0.0).then_some(length));
        scores.extend((self.options.overlong_buffer != 0).then_some(overlong));
        scores
    }

    /// Verifies a whole completion, EOS included. Returns its reward minus penalties, and its scores. A completion that has not ended
    /// counts as cut.
    pub fn verify(&self, prompt: &[u32], completion: &[u32]) -> Result<(f64, Vec<f64>), EnvError> {
        Ok(self.verify_all(&[(prompt, completion)])?.remove(0))
    }

    /// As [`verify`](TextWorld::verify), for several completions, each with its prompt. Every function of [`rewards`](TextWorld::rewards) is called once.
    pub fn verify_all(&self, completions: &[(&[u32], &[u32])]) -> Result<Vec<(f64, Vec<f64>)>, EnvError> {
        let whole = |((prompt, completion), verdict): (&(&[u32], &[u32]), Verdict)| {
            let is_cut = self.finish(completion).is_none_or(|finish| finish == Finish::Length);
            let scores = self.scores(verdict.scores, is_cut, completion.len());
            let reward = self.charges(completion).iter().fold(verdict.reward, |reward, charge| reward - charge);
            self.unless_finite(prompt, completion, std::iter::once(&reward).chain(&scores))?;
            Ok((reward, scores))
        };
        completions.iter().zip(self.verdicts(completions)?).map(whole).collect()
    }

    /// Returns the verifier's results for whole completions, EOS included, without penalties.
    fn verdicts(&self, completions: &[(&[u32], &[u32])]) -> Result<Vec<Verdict>, EnvError> {
        let mut verdicts = completions.iter().map(|text| self.own_verdict(*text)).collect::<Result<Vec<_>, _>>()?;
        let Some(rewards) = self.rewards.as_ref().filter(|_| !completions.is_empty()) else { return Ok(verdicts) };
        let vocabulary = self.task.vocabulary();
        let completed = |(prompt, tokens): &(&[u32], &'_ [u32])| {
            let (prompt, answer) = match self.task.question(prompt) {
                Some((prompt, answer)) => (prompt.to_owned(), answer.clone()),
                None => (vocabulary.decode(prompt), serde_json::Value::Null),
            };
            let finish = self.finish(tokens).unwrap_or(Finish::Length);
            (prompt, vocabulary.decode(tokens), answer, finish)
        };
        let completed: Vec<Completed<'_>> = completions
            .iter()
            .map(|text| {
                let (prompt, completion, answer, finish) = completed(text);
                Completed { prompt, completion, tokens: text.1, answer, finish }
            })
            .collect();
        for ((verdict, reward), (prompt, completion)) in verdicts.iter_mut().zip(rewards.of(&completed)).zip(completions) {
            let (reward, scores) = reward.map_err(|problem| self.complaint(prompt, self.answer(completion), &problem))?;
            verdict.reward = rewards.task_weight * verdict.reward + reward;
            verdict.scores.extend(scores);
        }
        Ok(verdicts)
    }

    /// Returns a completion without EOS.
    fn answer<'a>(&self, completion: &'a [u32]) -> &'a [u32] {
        completion.strip_suffix(&[self.task.vocabulary().eos()]).unwrap_or(completion)
    }

    /// Returns the result of the task's own verifier.
    fn own_verdict(&self, (prompt, completion): (&[u32], &[u32])) -> Result<Verdict, EnvError> {
        let finish = self.finish(completion).unwrap_or(Finish::Length);
        let answer = self.answer(completion);
        let verdict = self.guarded(prompt, answer, "the verifier", || self.task.verify(prompt, answer, finish))?;
        let verdict = verdict.map_err(|error| self.complaint(prompt, answer, &error))?;
        let names = self.task.score_names();
        if verdict.scores.len() != names.len() {
            let what = format!("expected {} scores ({}), got {}", names.len(), names.join(", "), verdict.scores.len());
            return Err(self.complaint(prompt, answer, &what));
        }
        self.unless_finite(prompt, completion, std::iter::once(&verdict.reward).chain(&verdict.scores))?;
        Ok(verdict)
    }

    fn unless_finite<'a>(&self, prompt: &[u32], completion: &[u32], mut numbers: impl Iterator<Item = &'a f64>) -> Result<(), EnvError> {
        let complain =
            |number| self.complaint(prompt, self.answer(completion), &format!("expected a finite reward and finite scores, got {number}"));
        numbers.find(|number| !number.is_finite()).map_or(Ok(()), |number| Err(complain(number)))
    }

    /// Returns the steps of a whole completion, EOS included, with their rewards before penalties. The last step ends with the last token,
    /// and its reward is the verifier's reward minus the rewards of the earlier steps.
    pub fn steps(&self, prompt: &[u32], completion: &[u32]) -> Result<Vec<SolutionStep>, EnvError> {
        let (mut steps, mut left) = (Vec::new(), self.verdicts(&[(prompt, completion)])?.remove(0).reward);
        for tokens in 1..completion.len() {
            let so_far = &completion[..tokens];
            let step = self.guarded(prompt, so_far, "the reward of the step", || self.task.step_reward(prompt, so_far))?;
            if let Some(reward) = step {
                left -= reward;
                steps.push(SolutionStep { tokens, reward });
            }
        }
        steps.push(SolutionStep { tokens: completion.len(), reward: left });
        Ok(steps)
    }

    /// Calls `work`, the function `what` of the task. A panic is an error that shows the prompt and the completion.
    pub(super) fn guarded<T>(&self, prompt: &[u32], completion: &[u32], what: &str, work: impl FnOnce() -> T) -> Result<T, EnvError> {
        panics::catch(work).map_err(|panic| self.complaint(prompt, completion, &format!("{what} panicked: {}", panic.message())))
    }

    /// The error of a completion that could not be verified.
    pub(super) fn complaint(&self, prompt: &[u32], completion: &[u32], what: &str) -> EnvError {
        let vocabulary = self.task.vocabulary();
        let (prompt, completion) = (vocabulary.decode(prompt), vocabulary.decode(completion));
        EnvError::Text(format!("prompt `{prompt}`, completion `{completion}`: {what}").replace('\n', " "))
    }

    /// Returns an error unless `prompt` has a valid length and valid tokens.
    pub fn check_prompt(&self, prompt: &[u32]) -> Result<(), EnvError> {
        let vocabulary = self.task.vocabulary();
        vocabulary.check(prompt)?;
        let most = self.longest_prompt;
        match prompt.len() {
            0 => Err(EnvError::Text(format!("prompt: expected 1 to {most} tokens, got none"))),
            length if length > most => {
                Err(EnvError::Text(format!("prompt `{}`: expected at most {most} tokens, got {length}", vocabulary.decode(prompt))))
            }
            _ => Ok(()),
        }
    }

    /// Returns the first `n` evaluation problems of this world's split, or all of them if there are fewer. The list depends only on the
    /// task and the split. A world with a fixed prompt has one problem.
    pub fn listed(&self, n: usize) -> ProblemList {
        match self.prompt {
            Some(_) => ProblemList { seeds: (0..n.min(1) as u64).map(|i| episode_seed(0, 0, i)).collect(), is_whole: n > 0 },
            None => self.lists.first(self.task.as_ref(), self.split, n),
        }
    }

    /// Returns the prompts of a list of problems.
    pub fn prompts(&self, list: &ProblemList) -> Vec<Vec<u32>> {
        list.seeds.iter().map(|seed| self.prompt.clone().unwrap_or_else(|| self.problem(*seed))).collect()
    }

    /// Draws the prompt of the episode with seed `seed`. A fixed prompt is ignored.
    pub(super) fn problem(&self, seed: u64) -> Vec<u32> {
        self.task.problem(self.split, &mut Stream::new(seed, Purpose::Environment, 0)).prompt
    }
}

impl EnvSpec {
    /// Creates a world from a text task.
    ///
    /// # Errors
    /// [`EnvError::Text`] if one draw from each split finds no problem, an invalid prompt, or the same prompt in two splits, or if the
    /// maximum number of tokens is not valid.
    pub fn text(name: &str, task: impl Task + 'static) -> Result<Self, EnvError> {
        Self::of_task(name, Arc::new(task))
    }

    fn of_task(name: &str, task: Arc<dyn Task>) -> Result<Self, EnvError> {
        let named = |error: EnvError| match error {
            EnvError::Text(what) => EnvError::Text(format!("task `{name}`: {what}")),
            error => error,
        };
        let panicked = |panic: panics::Panic| named(EnvError::Text(format!("panicked when it drew a problem: {}", panic.message())));
        let text = panics::catch(|| TextWorld::new(task)).map_err(panicked)?;
        let splits = match text.task.division() {
            Division::Splits => &Split::ALL[..],
            Division::OneSet { .. } => &[Split::Train],
        };
        // all splits use the same stream, so a task that ignores the split returns the same prompt for each
        let mut prompts: Vec<Vec<u32>> = Vec::new();
        for split in splits {
            let prompt = panics::catch(|| TextWorld { split: *split, ..text.clone() }.problem(0));
            let prompt = prompt.map_err(panicked)?;
            if prompt.is_empty() {
                let problem = format!("expected problems of the {} split, got none (an empty prompt)", split.name());
                return Err(named(EnvError::Text(problem)));
            }
            text.check_prompt(&prompt).map_err(named)?;
            if prompts.contains(&prompt) {
                let prompt = text.task.vocabulary().decode(&prompt);
                let advice = "a task without splits declares one set in `Task::division`";
                return Err(named(EnvError::Text(format!("expected disjoint splits, got the prompt `{prompt}` in two of them; {advice}"))));
            }
            prompts.push(prompt);
        }
        Self::of_text(name, text)
    }

    fn of_text(name: &str, text: TextWorld) -> Result<Self, EnvError> {
        let options = &text.options;
        let wrong =
            |what: &str, expected: &str, got: String| Err(EnvError::Text(format!("`{name}`: {what}: expected {expected}, got {got}")));
        if !(1..=MOST_TOKENS).contains(&text.max_new_tokens()) {
            let what = if options.overlong_buffer > 0 { "max_new_tokens + overlong_buffer" } else { "max_new_tokens" };
            return wrong(what, &format!("1 to {MOST_TOKENS}"), text.max_new_tokens().to_string());
        }
        if let Some(language) = text.task.vocabulary().language()
            && text.longest_prompt + text.max_new_tokens() > language.context()
        {
            let (most, new) = (language.context(), text.max_new_tokens());
            let expected =
                format!("at most {} tokens beside {new} of a completion, for the model's context of {most}", most.saturating_sub(new));
            return wrong("longest prompt", &expected, text.longest_prompt.to_string());
        }
        for (what, penalty) in [("missing_eos_penalty", options.missing_eos_penalty), ("length_penalty", options.length_penalty)] {
            if !(penalty.is_finite() && penalty >= 0.0) {
                return wrong(what, "a finite number of at least 0", penalty.to_string());
            }
        }
        let max_episode_steps = options.length_bootstraps.then_some(text.max_new_tokens() as u32);
        let shared = Arc::new((name.to_string(), text.clone()));
        Ok(Self {
            max_episode_steps,
            // a device cannot call functions
            tensor_spec: Some(if text.rewards.is_some() { TensorEnvSpec::Text } else { text.task.tensor_spec() }),
            text: Some(text),
            ..EnvSpec::new(name, move || TextEnv::new(shared.clone()))
        })
    }

    /// Rebuilds the world from `text`, with the same wrappers.
    fn with_text(self, text: TextWorld) -> Result<Self, EnvError> {
        let made = self.wrapped_as(Self::of_text(&self.name, text)?);
        Ok(Self { about: self.about, gymnasium_id: self.gymnasium_id, solved_at: self.solved_at, ..made })
    }

    /// Returns the task and its options, or an error about `what` if this is not a text environment.
    fn parts(&self, what: &str) -> Result<&TextWorld, EnvError> {
        self.text.as_ref().ok_or_else(|| EnvError::Text(format!("{what}: expected a text environment, got `{}`", self.name)))
    }

    /// Applies the wrappers of this world to another one.
    fn wrapped_as(&self, other: Self) -> Self {
        self.wrappers.iter().fold(other, |world, wrap_again| wrap_again(world))
    }

    /// Changes the split that problems are drawn from. A world that is not a text environment, or whose task has a single set of problems,
    /// is returned unchanged; but if its episodes are lives of a game, they are whole games on the splits for evaluation.
    pub fn on_split(self, split: Split) -> Self {
        match self.text.clone() {
            None if split != Split::Train => self.whole.clone().map_or_else(|| self.clone(), |whole| self.wrapped_as((*whole).clone())),
            Some(text) if text.task.division() == Division::Splits && text.split != split => {
                self.with_text(TextWorld { split, ..text }).expect("options that were checked")
            }
            _ => self,
        }
    }

    /// Fixes the prompt of every episode.
    pub fn with_prompt(self, prompt: &[u32]) -> Result<Self, EnvError> {
        let text = self.parts("prompt")?.clone();
        text.check_prompt(prompt)?;
        text.own_verdict((prompt, &[text.task.vocabulary().eos()]))?; // rejects a prompt that the verifier cannot read
        self.with_text(TextWorld { prompt: Some(prompt.to_vec()), ..text })
    }

    /// Adds rewards to those of a text environment's task.
    ///
    /// # Errors
    /// If this is not a text environment, or if there is not one finite weight for each function.
    pub fn with_rewards(self, rewards: Rewards) -> Result<Self, EnvError> {
        let text = self.parts("rewards")?.clone();
        let (names, weights) = (rewards.functions.names(), &rewards.weights);
        let fits = weights.len() == names.len() && weights.iter().all(|weight| weight.is_finite());
        if !fits {
            let expected = format!("{} finite weights, for {}", names.len(), names.join(", "));
            return Err(EnvError::Text(format!("text.reward_weights: expected {expected}, got {weights:?}")));
        }
        if !rewards.task_weight.is_finite() {
            return Err(EnvError::Text(format!("text.task_weight: expected a finite number, got {}", rewards.task_weight)));
        }
        self.with_text(TextWorld { rewards: Some(rewards), ..text })
    }

    /// Lets the environments of a text world with [rewards beside the task's own](EnvSpec::with_rewards) leave it to others to verify their completions:
    /// all those of a rollout together. Their rewards and scores are 0. Other worlds are returned unchanged.
    pub fn deferred(&self) -> Self {
        match &self.text {
            Some(text) if text.rewards.is_some() => {
                self.clone().with_text(TextWorld { defers: true, ..text.clone() }).expect("options that were checked")
            }
            _ => self.clone(),
        }
    }

    /// Changes the options of a text environment.
    pub fn with_text_options(self, options: TextOptions) -> Result<Self, EnvError> {
        let text = self.parts("options")?.clone();
        self.with_text(TextWorld { options, ..text })
    }
}
