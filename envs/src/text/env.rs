//! The Markov decision process of a task: the state is the prompt and the tokens so far, the action is the next token.
//!
//! | | |
//! |---|---|
//! | actions | `Discrete(V)`: the next token; token V - 1 is EOS |
//! | observations | `Text`: the prompt and the tokens so far |
//! | reward | the last token gets the verdict: the verifier's reward for the completion, minus the penalties of the options; in a task with steps, the last token of each earlier step gets the step's reward, and these step rewards are subtracted from the verdict; all other tokens get 0 |
//! | start | the prompt of a random problem, or a fixed prompt |
//! | end | EOS or a stop token terminates the episode; token number `max_new_tokens` also terminates it, or truncates it with the option `length_bootstraps` |
//!
//! The dynamics are deterministic after the start.

use std::sync::Arc;

use super::{Finish, TextWorld};
use crate::{Action, Env, EnvError, Space, Step, text};

/// The environment of a text task, made by [`EnvSpec::text`](crate::EnvSpec::text).
#[derive(Clone)]
pub struct TextEnv {
    /// The world's name, and its task and options.
    world: Arc<(String, TextWorld)>,
    tokens: Vec<u32>,
    prompt_length: usize,
    /// Sum of the step rewards given so far.
    given: f64,
    ends_step: bool,
    scores: Vec<f64>,
    fault: Option<String>,
}

impl TextEnv {
    pub(super) fn new(world: Arc<(String, TextWorld)>) -> Self {
        Self { world, tokens: Vec::new(), prompt_length: 0, given: 0.0, ends_step: false, scores: Vec::new(), fault: None }
    }

    fn parts(&self) -> &TextWorld {
        &self.world.1
    }

    /// The prompt and the completion.
    fn text(&self) -> (&[u32], &[u32]) {
        self.tokens.split_at(self.prompt_length)
    }

    /// Returns the reward of the last token, or an error if the reward cannot be computed.
    fn reward(&mut self, finish: Option<Finish>) -> Result<f64, EnvError> {
        let (prompt, completion) = self.text();
        if finish.is_some() {
            let parts = self.parts();
            let (reward, scores) =
                if parts.defers { (0.0, vec![0.0; parts.score_names().len()]) } else { parts.verify(prompt, completion)? };
            (self.ends_step, self.scores) = (true, scores);
            return Ok(reward - self.given);
        }
        let parts = self.parts();
        let step = parts.guarded(prompt, completion, "the reward of the step", || parts.task.step_reward(prompt, completion))?;
        let reward = step.unwrap_or_default();
        if !reward.is_finite() {
            return Err(self.parts().complaint(prompt, completion, &format!("expected a finite reward of the step, got {reward}")));
        }
        self.ends_step = step.is_some();
        self.given += reward;
        Ok(reward)
    }

    fn complain(&mut self, error: EnvError) {
        let what = if let EnvError::Text(what) = error { what } else { error.to_string() };
        self.fault = Some(format!("task `{}`: {what}", self.world.0));
    }
}

impl Env for TextEnv {
    fn observation_space(&self) -> Space {
        self.parts().space()
    }

    fn action_space(&self) -> Space {
        Space::Discrete(self.parts().task.vocabulary().len() as u32)
    }

    fn reset(&mut self, seed: u64, observation: &mut [f32]) {
        self.tokens = match &self.parts().prompt {
            Some(prompt) => prompt.clone(),
            None => self.parts().problem(seed),
        };
        self.prompt_length = self.tokens.len();
        (self.given, self.ends_step, self.fault) = (0.0, false, None);
        self.scores.clear();
        match self.parts().check_prompt(&self.tokens) {
            Ok(()) => text::write(&self.tokens, observation),
            Err(error) => {
                self.complain(error);
                observation.fill(f32::NAN); // a reset has no reward that could signal the error
            }
        }
    }

    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        assert!(self.action_space().contains(action), "text: expected {}, got {action:?}", self.action_space());
        let Action::Discrete(token) = action else { unreachable!("a discrete space") };
        assert!(self.parts().finish(self.text().1).is_none(), "text: expected a reset after the end, got a token");
        self.tokens.push(token);
        text::write(&self.tokens, observation);
        let finish = self.parts().finish(self.text().1);
        let reward = self.reward(finish).unwrap_or_else(|error| {
            self.complain(error);
            f64::NAN
        });
        let truncated = finish == Some(Finish::Length) && self.parts().options.length_bootstraps;
        Step { reward, terminated: finish.is_some() && !truncated, truncated }
    }

    fn ends_step(&self) -> bool {
        self.ends_step
    }

    fn score_names(&self) -> Vec<String> {
        self.parts().score_names()
    }

    fn scores(&self, scores: &mut [f64]) {
        match self.scores.len() {
            0 => scores.fill(0.0), // the episode has not ended
            _ => scores.copy_from_slice(&self.scores),
        }
    }

    fn fault(&self) -> Option<String> {
        self.fault.clone()
    }

    fn ansi(&self) -> Option<String> {
        Some(self.parts().task.vocabulary().decode(&self.tokens))
    }

    /// Returns the length of the prompt, the sum of the step rewards given so far, the number of tokens, and the tokens.
    fn save(&self) -> Vec<u64> {
        let header = [self.prompt_length as u64, self.given.to_bits(), self.tokens.len() as u64];
        header.into_iter().chain(self.tokens.iter().map(|token| u64::from(*token))).collect()
    }

    fn load(&mut self, state: &[u64]) -> Result<(), EnvError> {
        let wrong = |what: String| EnvError::State(format!("text: {what}"));
        let [prompt_length, given, length, words @ ..] = state else {
            return Err(wrong(format!("expected a state of at least 3 numbers, got {}", state.len())));
        };
        let parts = self.parts();
        let (vocabulary, most) = (parts.task.vocabulary().len() as u64, parts.max_new_tokens());
        let fits = words.len() as u64 == *length && words.iter().all(|token| *token < vocabulary);
        let (prompt, count) = (*prompt_length as usize, words.len() as u64);
        if !fits || prompt == 0 || *prompt_length > count || prompt > parts.longest_prompt() || words.len() - prompt > most {
            let longest = parts.longest_prompt();
            return Err(wrong(format!(
                "expected 1 to {longest} tokens of a prompt and at most {most} of a completion, all below {vocabulary}, got the state {state:?}"
            )));
        }
        let given = f64::from_bits(*given);
        if !given.is_finite() {
            return Err(wrong(format!("sum of step rewards: expected a finite number, got {given}")));
        }
        self.tokens = words.iter().map(|token| *token as u32).collect();
        (self.prompt_length, self.given, self.ends_step, self.fault) = (prompt, given, false, None);
        self.scores.clear();
        Ok(())
    }
}
