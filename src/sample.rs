//! Completions of a prompt, token by token: how probable each token was, how open the choice, what the critic expected, and by how much
//! the completion did better.

use gradus_agents::groups::{EPSILON, GroupStd, group_advantages};
use gradus_agents::returns::gae;
use gradus_envs::random::{Purpose, Stream};
use gradus_envs::text::{Finish, TextWorld};
use gradus_envs::{EnvError, Space, text};
use gradus_nets::math::exp;
use gradus_nets::{ActionRows, Observations, Policy, Sampling, Store};

use crate::complete::complete;

/// One token of a completion.
#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    /// Which.
    pub token: u32,
    /// log pi(a|s), of the whole distribution, whatever sampling left of it.
    pub log_prob: f32,
    /// H(pi(.|s)).
    pub entropy: f32,
    /// V(s), before the token.
    pub value: f32,
    /// A(s, a), where there is a reward to be compared with something.
    pub advantage: Option<f32>,
}

/// A completion.
#[derive(Clone, Debug, PartialEq)]
pub struct Completion {
    /// Its tokens, EOS included.
    pub tokens: Vec<Token>,
    /// How it ended.
    pub finish: Finish,
    /// What the verifier says of it: reward and scores, or why it cannot tell.
    pub verdict: Result<(f64, Vec<f64>), String>,
}

/// With what a reward is compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Compared {
    /// With what the critic expected: GAE with this gamma and lambda.
    Values {
        /// The discount.
        gamma: f32,
        /// Lambda.
        lambda: f32,
    },
    /// With the other completions: (R - mean R) / (std R + 1e-4), as in GRPO, with this standard deviation.
    Group(GroupStd),
}

/// How completions are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drawn {
    /// How many.
    pub n: usize,
    /// What is left of each distribution.
    pub sampling: Sampling,
    /// The seed; each completion has a stream of its own.
    pub seed: u64,
}

/// Draws completions of `prompt` and says of each token what there is to say.
///
/// An error where the prompt is empty, holds no tokens of the vocabulary or leaves no room for a token in the context.
pub fn sample(
    policy: &mut dyn Policy,
    world: &TextWorld,
    prompt: &[u32],
    drawn: Drawn,
    compared: Compared,
) -> Result<Vec<Completion>, EnvError> {
    let Space::Text { context, vocabulary } = world.space() else { unreachable!("a world of text") };
    if prompt.is_empty() || prompt.len() >= context {
        return Err(EnvError::Text(format!("prompt: expected 1 to {} tokens, got {}", context - 1, prompt.len())));
    }
    if let Some(token) = prompt.iter().find(|token| **token >= vocabulary) {
        return Err(EnvError::Text(format!("prompt: expected tokens below {vocabulary}, got {token}")));
    }
    let stream = |i: usize| Stream::new(drawn.seed, Purpose::Evaluation, 1 + i as u64);
    let said = complete(policy, world, &vec![prompt.to_vec(); drawn.n], &stream, &drawn.sampling);

    // what the policy says of every decision
    let mut observations = Observations::empty(&world.space());
    let mut row = vec![0.0; context + 1];
    for completion in &said {
        let whole = [prompt, completion].concat();
        for length in prompt.len()..whole.len() {
            text::write(&whole[..length], &mut row);
            observations.push(&row);
        }
        observations.end_episode();
    }
    let store = Store::of(observations, ActionRows::Discrete(said.concat()));
    let (mut log_probs, mut values, mut distributions) = (Vec::new(), Vec::new(), Vec::new());
    policy.log_probs(&store, &mut log_probs);
    policy.values(&store, &mut values);
    policy.distributions(&store, &mut distributions);
    let entropy = |row: &[f32]| -row.iter().filter(|l| l.is_finite()).map(|l| exp(*l) * l).sum::<f32>();
    let entropies: Vec<f32> = distributions.chunks_exact(vocabulary as usize).map(entropy).collect();

    let mut completions = Vec::new();
    let mut first = 0;
    for completion in &said {
        let token = |(i, token): (usize, &u32)| Token {
            token: *token,
            log_prob: log_probs[first + i],
            entropy: entropies[first + i],
            value: values[first + i],
            advantage: None,
        };
        completions.push(Completion {
            tokens: completion.iter().enumerate().map(token).collect(),
            finish: world.finish(completion).unwrap_or(Finish::Length),
            verdict: world.judge(prompt, completion).map_err(|error| error.to_string()),
        });
        first += completion.len();
    }
    match compared {
        Compared::Values { gamma, lambda } => completions.iter_mut().for_each(|it| compare_with_values(it, world, prompt, gamma, lambda)),
        Compared::Group(std) => compare_with_each_other(&mut completions, std),
    }
    Ok(completions)
}

/// Advantages by GAE: the rewards of the steps where they end, and at the last token what then remains.
fn compare_with_values(completion: &mut Completion, world: &TextWorld, prompt: &[u32], gamma: f32, lambda: f32) {
    let (Ok((reward, _)), n) = (&completion.verdict, completion.tokens.len()) else { return };
    let said: Vec<u32> = completion.tokens.iter().map(|token| token.token).collect();
    let mut rewards: Vec<f64> = (1..n).map(|length| world.task.step_reward(prompt, &said[..length]).unwrap_or_default()).collect();
    rewards.push(reward - rewards.iter().sum::<f64>());
    let rewards: Vec<f32> = rewards.iter().map(|reward| *reward as f32).collect();
    let values: Vec<f32> = completion.tokens.iter().map(|token| token.value).collect();
    let mut advantages = vec![0.0; n];
    gae(&rewards, &values, 0.0, gamma, lambda, &mut advantages);
    completion.tokens.iter_mut().zip(advantages).for_each(|(token, advantage)| token.advantage = Some(advantage));
}

/// Every token has the advantage of its completion; there is none without another completion.
fn compare_with_each_other(completions: &mut [Completion], std: GroupStd) {
    let returns: Option<Vec<f64>> = completions.iter().map(|it| it.verdict.as_ref().ok().map(|(reward, _)| *reward)).collect();
    let Some(returns) = returns.filter(|returns| returns.len() > 1) else { return };
    // this group is the whole batch
    let std = if std == GroupStd::Batch { GroupStd::Population } else { std };
    let advantages = group_advantages(&returns, std, f64::NAN, EPSILON);
    for (completion, advantage) in completions.iter_mut().zip(advantages) {
        completion.tokens.iter_mut().for_each(|token| token.advantage = Some(advantage as f32));
    }
}
