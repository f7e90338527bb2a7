//! Completions of a prompt with the log-probability, entropy, value, reward and advantage of each token.

use gradus_agents::Advantages;
use gradus_agents::groups::{EPSILON, GroupStd, Supervision, group_advantages, leave_one_out, process_advantages, steps};
use gradus_agents::returns::{discounted, gae};
use gradus_base::math::exp;
use gradus_base::random::{Purpose, Stream};
use gradus_envs::text::{Finish, TextWorld};
use gradus_envs::{EnvError, Space, text};
use gradus_nets::{ActionRows, Observations, Policy, Sampling, Store};
use gradus_rollouts::generate;

use crate::{LearnedReward, memory};

/// One token of a completion.
#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    /// The token's number in the vocabulary.
    pub token: u32,
    /// log pi(a|s) under the policy's full distribution; the sampling options do not affect it.
    pub log_prob: f32,
    /// Entropy H(pi(.|s)).
    pub entropy: f32,
    /// KL(pi(.|s) || pi_0(.|s)) from the policy at the beginning of the training; `None` if that is unknown.
    pub kl: Option<f32>,
    /// Value V(s) before the token.
    pub value: f32,
    /// Reward of the token, from which the advantage is computed: of the reward model if there is one, otherwise the environment's. `None`
    /// if it is unknown.
    pub reward: Option<f32>,
    /// The environment's reward of the token; `None` if the verifier failed.
    pub true_reward: Option<f32>,
    /// Advantage A(s, a); `None` if a reward is unknown, or if the baseline needs more completions.
    pub advantage: Option<f32>,
}

/// A completion.
#[derive(Clone, Debug, PartialEq)]
pub struct Completion {
    /// The tokens, with EOS if the completion has one.
    pub tokens: Vec<Token>,
    /// How the completion ended.
    pub finish: Finish,
    /// Reward and scores of the verifier, or the reason why there are none.
    pub verdict: Result<(f64, Vec<f64>), String>,
    /// Sum of the rewards of the reward model, penalties subtracted; `None` without a reward model.
    pub learned: Option<f64>,
}

/// How completions are sampled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drawn {
    /// Number of completions.
    pub n: usize,
    /// Temperature and truncation of the distributions.
    pub sampling: Sampling,
    /// Seed; each completion has its own random stream.
    pub seed: u64,
}

/// Samples completions of `prompt` and computes the log-probability, entropy, value, reward and advantage of each token. Advantages use the
/// learned reward if there is one, otherwise the environment's reward. `first` is the policy at the beginning of the training.
///
/// Returns an error if the prompt is empty, has a token outside of the vocabulary, or leaves no room for a token in the context.
pub fn sample(
    (policy, first): (&mut dyn Policy, Option<&mut dyn Policy>),
    world: &TextWorld,
    prompt: &[u32],
    drawn: Drawn,
    compared: Advantages,
    mut learned: Option<&mut LearnedReward>,
) -> Result<Vec<Completion>, EnvError> {
    let Space::Text { context, vocabulary } = world.space() else { unreachable!("a world of text") };
    if prompt.is_empty() || prompt.len() >= context {
        return Err(EnvError::Text(format!("prompt: expected 1 to {} tokens, got {}", context - 1, prompt.len())));
    }
    if let Some(token) = prompt.iter().find(|token| **token >= vocabulary) {
        return Err(EnvError::Text(format!("prompt: expected tokens below {vocabulary}, got {token}")));
    }
    let bytes = memory::of_sample(world);
    memory::expect("-n", drawn.n, "completions of this task", |n| n * bytes).map_err(|error| EnvError::Text(error.to_string()))?;
    let stream = |i: usize| Stream::new(drawn.seed, Purpose::Evaluation, 1 + i as u64);
    let generated = generate(policy, world, &vec![prompt.to_vec(); drawn.n], &stream, &drawn.sampling);

    // the policy's outputs for every decision
    let mut observations = Observations::empty(&world.space());
    let mut row = vec![0.0; context + 1];
    for completion in &generated {
        let whole = [prompt, completion].concat();
        for length in prompt.len()..whole.len() {
            text::write(&whole[..length], &mut row);
            observations.push(&row);
        }
        observations.end_episode();
    }
    let store = Store::of(observations, ActionRows::Discrete(generated.concat()));
    let (mut log_probs, mut values, mut distributions) = (Vec::new(), Vec::new(), Vec::new());
    policy.log_probs(&store, &mut log_probs);
    policy.values(&store, &mut values);
    policy.distributions(&store, &mut distributions);
    let entropy = |row: &[f32]| -row.iter().filter(|l| l.is_finite()).map(|l| exp(*l) * l).sum::<f32>();
    let rows = || distributions.chunks_exact(vocabulary as usize);
    let entropies: Vec<f32> = rows().map(entropy).collect();
    let kl = |(row, before): (&[f32], &[f32])| -> f32 {
        row.iter().zip(before).filter(|(l, _)| l.is_finite()).map(|(l, before)| exp(*l) * (l - before)).sum()
    };
    let kls: Option<Vec<f32>> = first.map(|first| {
        let mut before = Vec::new();
        first.distributions(&store, &mut before);
        rows().zip(before.chunks_exact(vocabulary as usize)).map(kl).collect()
    });

    let mut completions = Vec::new();
    let mut first = 0;
    for completion in &generated {
        let token = |(i, token): (usize, &u32)| Token {
            token: *token,
            log_prob: log_probs[first + i],
            entropy: entropies[first + i],
            kl: kls.as_ref().map(|kls| kls[first + i]),
            value: values[first + i],
            reward: None,
            true_reward: None,
            advantage: None,
        };
        completions.push(Completion {
            tokens: completion.iter().enumerate().map(token).collect(),
            finish: world.finish(completion).unwrap_or(Finish::Length),
            verdict: world.verify(prompt, completion).map_err(|error| error.to_string()),
            learned: None,
        });
        first += completion.len();
    }
    for completion in &mut completions {
        let tokens = completion.token_ids();
        let of_world = completion.verdict.as_ref().ok().map(|(reward, _)| true_rewards(world, prompt, &tokens, *reward));
        let of_model = learned.as_deref_mut().map(|learned| learned.rewards(prompt, &tokens));
        completion.learned = of_model.as_ref().map(|rewards| rewards.iter().sum());
        let paid = of_model.as_ref().or(of_world.as_ref());
        for (i, token) in completion.tokens.iter_mut().enumerate() {
            token.reward = paid.map(|rewards| rewards[i] as f32);
            token.true_reward = of_world.as_ref().map(|rewards| rewards[i] as f32);
        }
    }
    let rewards: Vec<Option<Vec<f32>>> =
        completions.iter().map(|completion| completion.tokens.iter().map(|token| token.reward).collect()).collect();
    // the return G of every token, if it is known
    let returns = |gamma: f32| -> Vec<Option<Vec<f32>>> {
        let of = |rewards: &Vec<f32>| {
            let mut returns = vec![0.0; rewards.len()];
            discounted(rewards, 0.0, gamma, &mut returns);
            returns
        };
        rewards.iter().map(|rewards| rewards.as_ref().map(of)).collect()
    };
    match compared {
        Advantages::OfValues { gamma, lambda } => {
            for (completion, rewards) in completions.iter_mut().zip(&rewards) {
                let Some(rewards) = rewards else { continue };
                let values: Vec<f32> = completion.tokens.iter().map(|token| token.value).collect();
                let mut advantages = vec![0.0; rewards.len()];
                gae(rewards, &values, 0.0, gamma, lambda, &mut advantages);
                completion.tokens.iter_mut().zip(advantages).for_each(|(token, advantage)| token.advantage = Some(advantage));
            }
        }
        Advantages::OfReturns { gamma } => {
            for (completion, returns) in completions.iter_mut().zip(returns(gamma)) {
                let Some(returns) = returns else { continue };
                completion.tokens.iter_mut().zip(returns).for_each(|(token, g)| token.advantage = Some(g));
            }
        }
        Advantages::AgainstOthers { gamma } => with_each_other(&mut completions, &whole(&returns(gamma)), leave_one_out),
        Advantages::OfGroup(std, supervision) => {
            // the batch has only one group
            let std = if std == GroupStd::Batch { GroupStd::Population } else { std };
            // a model that scores whole texts has no rewards of steps
            let has_steps = learned.is_none_or(|learned| learned.is_process());
            let ends = |completion: &[u32]| {
                let ends = |i: usize| i == completion.len() || world.task.step_reward(prompt, &completion[..i]).is_some();
                (1..=completion.len()).map(ends).collect::<Vec<bool>>()
            };
            if supervision == Supervision::Outcome || !has_steps {
                with_each_other(&mut completions, &whole(&returns(1.0)), |of_group| group_advantages(of_group, std, f64::NAN, EPSILON));
            } else if let Some(rewards) = rewards.into_iter().collect::<Option<Vec<_>>>().filter(|rewards| rewards.len() > 1) {
                let of_group: Vec<_> =
                    rewards.iter().zip(&generated).map(|(rewards, text)| (steps(rewards, &ends(text)), text.len())).collect();
                for (completion, advantages) in completions.iter_mut().zip(process_advantages(&of_group, std, f64::NAN, EPSILON)) {
                    let tokens = completion.tokens.iter_mut().zip(advantages);
                    tokens.for_each(|(token, advantage)| token.advantage = Some(advantage as f32));
                }
            }
        }
    }
    Ok(completions)
}

/// Returns the environment's reward of each token: each step reward at the last token of its step, and the rest of the reward of the
/// completion, `whole`, at its last token.
fn true_rewards(world: &TextWorld, prompt: &[u32], completion: &[u32], whole: f64) -> Vec<f64> {
    let step = |length: usize| world.task.step_reward(prompt, &completion[..length]).unwrap_or_default();
    let mut rewards: Vec<f64> = (1..completion.len()).map(step).collect();
    rewards.push(whole - rewards.iter().sum::<f64>());
    rewards
}

impl Completion {
    /// Returns the token numbers.
    fn token_ids(&self) -> Vec<u32> {
        self.tokens.iter().map(|token| token.token).collect()
    }
}

/// Returns G_0 of all completions, if all are known.
fn whole(returns: &[Option<Vec<f32>>]) -> Option<Vec<f64>> {
    returns.iter().map(|returns| returns.as_ref().map(|returns| returns.first().map_or(0.0, |g| f64::from(*g)))).collect()
}

/// Sets the advantage of every token to the advantage of its completion. A single completion has no advantage.
fn with_each_other(completions: &mut [Completion], returns: &Option<Vec<f64>>, advantages: impl Fn(&[f64]) -> Vec<f64>) {
    let Some(returns) = returns.as_ref().filter(|returns| returns.len() > 1) else { return };
    for (completion, advantage) in completions.iter_mut().zip(advantages(returns)) {
        completion.tokens.iter_mut().for_each(|token| token.advantage = Some(advantage as f32));
    }
}
