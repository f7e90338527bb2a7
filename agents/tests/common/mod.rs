//! Texts made by hand, and a small transformer to judge them.

#![allow(dead_code)] // each test takes what it needs

use gradus_agents::{End, GroupId, OptimiserConfig, Report, Rollout, Segment, UpdateContext};
use gradus_envs::Space;
use gradus_nets::cpu::Transformer;
use gradus_nets::{ActionRows, FeedForward, Observations, Policy, Schedule, Store, Texts, TransformerConfig};

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

pub fn context(iteration: u64) -> UpdateContext {
    UpdateContext { seed: 1, iteration, progress: 0.0 }
}

pub fn optimiser() -> OptimiserConfig {
    OptimiserConfig { learning_rate: 0.01, schedule: Schedule::Constant, ..OptimiserConfig::default() }
}

pub fn figure(report: &Report, name: &str) -> f64 {
    report.iter().find(|(key, _)| *key == name).unwrap_or_else(|| panic!("no {name} in {report:?}")).1
}

/// A completion of the prompt `[4, group]`: its group, its tokens and their rewards.
pub type Completion = (u32, Vec<u32>, Vec<f32>);

/// What the policy would have collected, had it drawn these completions.
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
