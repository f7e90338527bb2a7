//! Conversations with a pretrained model as a run has trained it.

use std::ops::ControlFlow;
use std::path::Path;

use gradus_base::random::{Purpose, Stream};
use gradus_envs::text::TextWorld;
use gradus_envs::{EnvError, Space};
use gradus_nets::{Policy, Sampling};
use gradus_rollouts::generate_aloud;

use crate::Error;
use crate::saved::load_talking;

/// A conversation: what both have said so far is read again before every answer.
pub struct Chat {
    policy: Box<dyn Policy>,
    world: TextWorld,
    messages: Vec<(String, String)>,
    sampling: Sampling,
    seed: u64,
    answers: u64,
}

/// How an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// As the model meant it.
    Said,
    /// At the largest number of tokens.
    Cut,
}

impl Chat {
    /// Loads the policy of the run folder `dir`, for conversations of at most `context` tokens. Answers are sampled with the seed `seed`.
    pub fn load(dir: impl AsRef<Path>, context: usize, sampling: Sampling, seed: u64) -> Result<Self, Error> {
        let (world, policy) = load_talking(dir.as_ref(), context)?;
        Ok(Self { policy, world, messages: Vec::new(), sampling, seed, answers: 0 })
    }

    /// Forgets what was said.
    pub fn restart(&mut self) {
        self.messages.clear();
    }

    /// Answers `text` with at most `most` tokens. Passes pieces of the answer to `each` as soon as they are known; if it breaks, the answer ends there.
    ///
    /// Returns an error, and forgets `text`, if the conversation leaves no room for an answer.
    pub fn say(&mut self, text: &str, most: usize, each: &mut dyn FnMut(&str) -> ControlFlow<()>) -> Result<Ended, Error> {
        let vocabulary = self.world.task.vocabulary();
        self.messages.push(("user".into(), text.into()));
        let Space::Text { context, .. } = self.world.space() else { unreachable!("a world of text") };
        let prompt = self.world.task.conversation(&self.messages).map_err(EnvError::Text).and_then(|prompt| match prompt.len() < context {
            true => Ok(prompt),
            false => Err(EnvError::Text(format!("conversation: expected at most {} tokens, got {}", context - 1, prompt.len()))),
        });
        let prompt = match prompt {
            Ok(prompt) => prompt,
            Err(error) => {
                self.messages.pop();
                return Err(error.into());
            }
        };
        let most = most.min(context - prompt.len());
        let (mut tokens, mut shown, mut ended) = (Vec::new(), 0, Ended::Said);
        let stream = Stream::new(self.seed, Purpose::Evaluation, self.answers);
        generate_aloud(self.policy.as_ref(), &self.world, &prompt, stream, &self.sampling, &mut |token| {
            tokens.push(token);
            let so_far = vocabulary.decode(&tokens);
            // the last letter may need another token
            let is_whole = !so_far.ends_with('\u{fffd}');
            let piece = if is_whole { so_far.get(shown..).unwrap_or_default() } else { "" };
            shown += piece.len();
            let wants_more = each(piece).is_continue();
            match self.world.finish(&tokens).is_some() || !wants_more {
                true => ControlFlow::Break(()),
                false if tokens.len() < most => ControlFlow::Continue(()),
                false => {
                    ended = Ended::Cut;
                    ControlFlow::Break(())
                }
            }
        });
        self.answers += 1;
        self.messages.push(("assistant".into(), vocabulary.decode(&tokens)));
        Ok(ended)
    }
}
