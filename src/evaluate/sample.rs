//! Completions of a prompt, token by token: how probable each token was, how open the choice, what the critic expected, and by how much
//! the completion did better.

use gradus_agents::groups::{EPSILON, GroupStd, group_advantages, leave_one_out};
use gradus_agents::returns::{discounted, gae};
use gradus_envs::random::{Purpose, Stream};
use gradus_envs::text::{Finish, TextWorld};
use gradus_envs::{EnvError, Space, text};
use gradus_nets::math::exp;
use gradus_nets::{ActionRows, Observations, Policy, Sampling, Store};

use crate::LearnedReward;
use crate::act::generate::generate;

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
    /// What a reward model says of it, penalties taken off, where that is what the run learns from.
    pub learned: Option<f64>,
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
    /// With nothing: G, with this discount. REINFORCE's running mean is not kept with a policy, so this stands for it too.
    Nothing {
        /// The discount.
        gamma: f32,
    },
    /// With the mean of the other completions, as in RLOO: G_0 - mean G_0, with this discount.
    Others {
        /// The discount.
        gamma: f32,
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

/// Draws completions of `prompt` and says of each token what there is to say. Advantages are by the learned reward where there is one, else by
/// the world's own.
///
/// An error where the prompt is empty, holds no tokens of the vocabulary or leaves no room for a token in the context.
pub fn sample(
    policy: &mut dyn Policy,
    world: &TextWorld,
    prompt: &[u32],
    drawn: Drawn,
    compared: Compared,
    mut learned: Option<&mut LearnedReward>,
) -> Result<Vec<Completion>, EnvError> {
    let Space::Text { context, vocabulary } = world.space() else { unreachable!("a world of text") };
    if prompt.is_empty() || prompt.len() >= context {
        return Err(EnvError::Text(format!("prompt: expected 1 to {} tokens, got {}", context - 1, prompt.len())));
    }
    if let Some(token) = prompt.iter().find(|token| **token >= vocabulary) {
        return Err(EnvError::Text(format!("prompt: expected tokens below {vocabulary}, got {token}")));
    }
    let stream = |i: usize| Stream::new(drawn.seed, Purpose::Evaluation, 1 + i as u64);
    let said = generate(policy, world, &vec![prompt.to_vec(); drawn.n], &stream, &drawn.sampling);

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
            verdict: world.verify(prompt, completion).map_err(|error| error.to_string()),
            learned: None,
        });
        first += completion.len();
    }
    for completion in &mut completions {
        let said = completion.said();
        completion.learned = learned.as_deref_mut().map(|learned| learned.reward(prompt, &said));
    }
    let rewards: Vec<Option<Vec<f32>>> = completions.iter().map(|it| it.rewards(world, prompt)).collect();
    // G of every token, where it is known
    let returns = |gamma: f32| -> Vec<Option<Vec<f32>>> {
        let of = |rewards: &Vec<f32>| {
            let mut returns = vec![0.0; rewards.len()];
            discounted(rewards, 0.0, gamma, &mut returns);
            returns
        };
        rewards.iter().map(|rewards| rewards.as_ref().map(of)).collect()
    };
    match compared {
        Compared::Values { gamma, lambda } => {
            for (completion, rewards) in completions.iter_mut().zip(&rewards) {
                let Some(rewards) = rewards else { continue };
                let values: Vec<f32> = completion.tokens.iter().map(|token| token.value).collect();
                let mut advantages = vec![0.0; rewards.len()];
                gae(rewards, &values, 0.0, gamma, lambda, &mut advantages);
                completion.tokens.iter_mut().zip(advantages).for_each(|(token, advantage)| token.advantage = Some(advantage));
            }
        }
        Compared::Nothing { gamma } => {
            for (completion, returns) in completions.iter_mut().zip(returns(gamma)) {
                let Some(returns) = returns else { continue };
                completion.tokens.iter_mut().zip(returns).for_each(|(token, g)| token.advantage = Some(g));
            }
        }
        Compared::Others { gamma } => with_each_other(&mut completions, &whole(&returns(gamma)), leave_one_out),
        Compared::Group(std) => {
            // this group is the whole batch
            let std = if std == GroupStd::Batch { GroupStd::Population } else { std };
            with_each_other(&mut completions, &whole(&returns(1.0)), |of_group| group_advantages(of_group, std, f64::NAN, EPSILON));
        }
    }
    Ok(completions)
}

impl Completion {
    /// What was said.
    fn said(&self) -> Vec<u32> {
        self.tokens.iter().map(|token| token.token).collect()
    }

    /// What is paid for each token: the learned reward at the last; or that of steps where they end, and at the last what then remains.
    fn rewards(&self, world: &TextWorld, prompt: &[u32]) -> Option<Vec<f32>> {
        let (said, n) = (self.said(), self.tokens.len());
        let step = |length: usize| world.task.step_reward(prompt, &said[..length]).unwrap_or_default();
        let (whole, mut rewards) = match (self.learned, &self.verdict) {
            (Some(learned), _) => (learned, vec![0.0; n.saturating_sub(1)]),
            (None, Ok((reward, _))) => (*reward, (1..n).map(step).collect()),
            (None, Err(_)) => return None,
        };
        rewards.push(whole - rewards.iter().sum::<f64>());
        Some(rewards.into_iter().map(|reward| reward as f32).collect())
    }
}

/// G_0 of all completions, if all are known.
fn whole(returns: &[Option<Vec<f32>>]) -> Option<Vec<f64>> {
    returns.iter().map(|returns| returns.as_ref().map(|returns| returns.first().map_or(0.0, |g| f64::from(*g)))).collect()
}

/// Every token has the advantage of its completion; there is none without another completion.
fn with_each_other(completions: &mut [Completion], returns: &Option<Vec<f64>>, advantages: impl Fn(&[f64]) -> Vec<f64>) {
    let Some(returns) = returns.as_ref().filter(|returns| returns.len() > 1) else { return };
    for (completion, advantage) in completions.iter_mut().zip(advantages(returns)) {
        completion.tokens.iter_mut().for_each(|token| token.advantage = Some(advantage as f32));
    }
}
