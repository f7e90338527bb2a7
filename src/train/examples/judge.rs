//! Judges of completions, which decide what is preferred.

use std::path::Path;

use gradus_envs::text::{TextOptions, TextWorld};
use gradus_envs::{EnvError, EnvSpec};
use gradus_nets::{ActionRows, Observations, Policy, Store, Texts};

use crate::saved::{EXAMPLES_FILE, load_policy};
use crate::{Config, Error, LearnedReward};

/// A judge gives completions a worth. Of two completions of a prompt it prefers the one of higher worth.
pub(crate) trait Judge {
    /// Returns the worth of completions, each with its prompt.
    fn worth(&mut self, completions: &[(&[u32], &[u32])]) -> Result<Vec<f64>, EnvError>;
}

/// The task's own reward, without penalties, because they are subtracted from the learned reward later.
pub(crate) struct Verifier(TextWorld);

impl Verifier {
    pub fn new(world: &TextWorld) -> Self {
        let mut world = world.clone();
        world.options = TextOptions { max_new_tokens: Some(world.max_new_tokens()), ..TextOptions::default() };
        Self(world)
    }
}

impl Judge for Verifier {
    fn worth(&mut self, completions: &[(&[u32], &[u32])]) -> Result<Vec<f64>, EnvError> {
        Ok(self.0.verify_all(completions)?.into_iter().map(|(reward, _)| reward).collect())
    }
}

/// The log-likelihood of the completion under another policy, log pi(completion | prompt).
struct Likelihood {
    policy: Box<dyn Policy>,
    context: usize,
}

/// Number of completions that a network scores at once.
const AT_ONCE: usize = 1024;

impl Judge for Likelihood {
    fn worth(&mut self, completions: &[(&[u32], &[u32])]) -> Result<Vec<f64>, EnvError> {
        let mut all = Vec::with_capacity(completions.len());
        for some in completions.chunks(AT_ONCE) {
            let (mut texts, mut actions, mut log_probs) = (Texts::new(self.context), Vec::new(), Vec::new());
            for (prompt, completion) in some {
                for t in 0..completion.len() {
                    texts.push([prompt, &completion[..t]].concat().into_iter());
                }
                texts.end_text();
                actions.extend_from_slice(completion);
            }
            self.policy.log_probs(&Store::of(Observations::Texts(texts), ActionRows::Discrete(actions)), &mut log_probs);
            let mut rest = &log_probs[..];
            for (_, completion) in some {
                let (own, others) = rest.split_at(completion.len());
                all.push(own.iter().map(|log_prob| f64::from(*log_prob)).sum());
                rest = others;
            }
        }
        Ok(all)
    }
}

impl Judge for LearnedReward {
    fn worth(&mut self, completions: &[(&[u32], &[u32])]) -> Result<Vec<f64>, EnvError> {
        let scored = completions.chunks(AT_ONCE).flat_map(|some| self.scores_of(some));
        Ok(scored.map(|scores| scores.iter().sum()).collect())
    }
}

/// Returns the judge in the folder `dir` for the texts of `world`: a reward model by its scores (a process reward model by the sum of its
/// probabilities), or the policy of a run by its log-likelihoods.
pub(crate) fn judge_in(dir: &Path, config: &Config, world: &EnvSpec) -> Result<Box<dyn Judge>, Error> {
    if dir.join(EXAMPLES_FILE).exists() {
        return Ok(Box::new(LearnedReward::of_folder(dir, config, world)?));
    }
    let (_, theirs, policy) = load_policy(dir)?;
    let problem = |expected: String, got: String| Error::folder(dir, format!("expected a judge with {expected}, got one with {got}"));
    let (Some(theirs), Some(ours)) = (&theirs.text, &world.text) else {
        return Err(Error::folder(dir, format!("expected a run on a text task, got one on {}", theirs.name)));
    };
    if theirs.task.vocabulary() != ours.task.vocabulary() {
        return Err(problem(format!("the vocabulary of {}", world.name), "another vocabulary".into()));
    }
    let [own, context] = [theirs, ours].map(|text| text.space().width() - 1);
    if own < context {
        return Err(problem(format!("a context of at least {context} tokens"), own.to_string()));
    }
    Ok(Box::new(Likelihood { policy, context: own }))
}
