//! Hand-made completions, and a small transformer that samples others.

use gradus_agents::{Agent, End, GroupId, Rollout, Segment};
use gradus_base::random::{Purpose, Stream};
use gradus_envs::Space;
use gradus_envs::text;
use gradus_nets::cpu::Transformer;
use gradus_nets::{ActionRows, Behaviour, Choice, FeedForward, Observations, Policy, Store, Texts, TransformerConfig};

use super::context;

pub const VOCABULARY: u32 = 5;
pub const CONTEXT: usize = 8;

pub fn transformer(seed: u64) -> Transformer {
    let config = TransformerConfig {
        layers: 1,
        width: 16,
        heads: 1,
        feed_forward: FeedForward::Gelu,
        feed_forward_width: 16,
        ..TransformerConfig::default()
    };
    let observations = Space::Text { vocabulary: VOCABULARY, context: CONTEXT };
    Transformer::new(&config, &observations, &Space::Discrete(VOCABULARY), seed).unwrap()
}

/// A completion of the prompt `[4, group]`: its group, its tokens and their rewards.
pub type Completion = (u32, Vec<u32>, Vec<f32>);

/// Returns the rollout that the policy would have collected by sampling these completions.
pub fn rollout(policy: &mut dyn Policy, completions: &[Completion]) -> Rollout {
    let (mut texts, mut actions, mut rewards, mut segments) = (Texts::new(CONTEXT), Vec::new(), Vec::new(), Vec::new());
    for (group, tokens, paid) in completions {
        assert_eq!(tokens.len(), paid.len());
        let begin = actions.len();
        for t in 0..tokens.len() {
            texts.push([4, *group].iter().chain(&tokens[..t]).copied().collect::<Vec<u32>>().into_iter());
        }
        texts.end_text();
        actions.extend(tokens);
        rewards.extend(paid);
        segments.push(Segment { range: begin..actions.len(), end: End::Terminated, group: GroupId(*group) });
    }
    let store = Store::of(Observations::Texts(texts), ActionRows::Discrete(actions));
    let mut log_probs = Vec::new();
    policy.log_probs(&store, &mut log_probs);
    Rollout::new(store, rewards, log_probs, segments)
}

/// Six completions of two prompts, of different lengths and returns.
pub fn completions() -> Vec<Completion> {
    vec![
        (0, vec![1, 2, 0], vec![0.0, 0.0, 1.0]),
        (1, vec![2, 0], vec![0.0, 0.3]),
        (0, vec![3, 3, 1, 0], vec![0.0, 0.5, 0.0, 0.0]),
        (1, vec![0], vec![0.9]),
        (0, vec![0], vec![0.25]),
        (1, vec![1, 1, 1, 1, 0], vec![0.1, 0.0, 0.0, 0.0, 0.2]),
    ]
}

/// Samples completions of at most four tokens. Token 0 ends a completion. Each token 1 + group % 3 has reward 0.25.
pub fn sampled(policy: &mut Transformer, iteration: u64, groups: u32, size: u32) -> Rollout {
    let mut drawn: Vec<Completion> = Vec::new();
    for episode in 0..groups * size {
        let group = episode / size;
        let (mut tokens, mut rewards) = (Vec::new(), Vec::new());
        let mut streams = [Stream::new(iteration, Purpose::Action, u64::from(episode))];
        while tokens.len() < 4 && tokens.last() != Some(&0) {
            let mut row = vec![0.0; CONTEXT + 1];
            text::write(&[&[4, group % 4][..], &tokens[..]].concat(), &mut row);
            let (mut actions, mut log_probs) = (ActionRows::Discrete(vec![]), [0.0]);
            policy.actor().act(&row, None, Choice::Sample(&mut streams), &mut actions, &mut log_probs);
            let ActionRows::Discrete(chosen) = actions else { panic!("expected discrete actions") };
            tokens.push(chosen[0]);
            rewards.push(if chosen[0] == 1 + group % 3 { 0.25 } else { 0.0 });
        }
        drawn.push((group % 4, tokens, rewards));
    }
    rollout(policy, &drawn)
}

/// Trains for `updates` updates and returns the mean return of the completions in the last update.
pub fn learn(agent: &mut dyn Agent, updates: u64, seed: u64) -> f32 {
    let mut policy = transformer(seed);
    agent.begin(&policy);
    let mut paid = 0.0;
    for iteration in 0..updates {
        let mut rollout = sampled(&mut policy, iteration, 3, 8);
        rollout.greedy_rewards = vec![vec![0.5]; 3];
        rollout.step_ends = vec![true; rollout.len()];
        paid = rollout.rewards.iter().sum::<f32>() / 24.0;
        agent.update(&mut policy, &rollout, context(iteration)).unwrap();
    }
    paid
}
