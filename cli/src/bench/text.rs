//! Speed of generation and learning on texts: GRPO as in `gradus train`, on completions of a fixed length.

use std::time::Instant;

use gradus::agents::{GrpoConfig, OptimiserConfig, UpdateContext};
use gradus::envs::random::{Purpose, Stream};
use gradus::envs::{Action, Env, EnvError, EnvSpec, Space, Step, text};
use gradus::nets::{Device, FeedForward, Schedule, TorchConfig, TransformerConfig, threads};
use gradus::rollouts::Collector;

use super::measure::median;
use gradus::config::Network;
use gradus::{Config, Error, memory};

/// Vocabulary size, as in the scripts of `benches/peers`.
const VOCABULARY: u32 = 15;

/// The sizes of an update, and the device that computes it.
#[derive(Clone, Debug)]
pub struct Workload {
    /// The transformer.
    pub transformer: TransformerConfig,
    /// Prompts per update.
    pub prompts: usize,
    /// Completions per prompt.
    pub group: usize,
    /// Tokens per prompt.
    pub prompt_tokens: usize,
    /// Exact number of tokens per completion; no completion ends early.
    pub new_tokens: usize,
    /// Device.
    pub device: Device,
    /// Settings of libtorch, for every device except cpu.
    pub torch: TorchConfig,
}

impl Workload {
    /// Floating-point operations of one update's forward and backward passes: the layers for every input token, causal attention, and the
    /// logits of completion tokens. A prompt counts once for all its completions; an engine may compute it for each of them. Excludes softmax, norms and activations.
    pub fn update_cost(&self) -> f64 {
        let TransformerConfig { layers, width, feed_forward_width: hidden, feed_forward, .. } = self.transformer;
        let parts = if feed_forward == FeedForward::Swiglu { 3 } else { 2 };
        // the last token of a completion is no input
        let (prompt, new) = (self.prompt_tokens, self.new_tokens - 1);
        let inputs = prompt + self.group * new;
        let pairs = prompt * (prompt + 1) / 2 + self.group * (new * prompt + new * (new + 1) / 2);
        let of_layer = inputs * (4 * width * width + parts * width * hidden) + 2 * pairs * width;
        let of_group = layers * of_layer + self.group * self.new_tokens * width * VOCABULARY as usize;
        // a multiply-add is 2 operations; the forward pass counts once, the backward pass twice
        6.0 * (of_group * self.prompts) as f64
    }
}

/// The measured speed.
#[derive(Clone, Copy, Debug)]
pub struct Throughput {
    /// Completion tokens per second, including generation and update; median over the updates.
    pub rate: f64,
    /// Seconds of generation and of learning, medians over the updates.
    pub seconds: [f64; 2],
    /// Number of parameters of the policy.
    pub parameters: usize,
}

/// A text environment with random prompts. The reward of a completion is the fraction of its tokens that equal the prompt's first token.
struct Babble {
    tokens: Vec<u32>,
    hits: u32,
    prompt: usize,
    new: usize,
}

impl Env for Babble {
    fn observation_space(&self) -> Space {
        Space::Text { vocabulary: VOCABULARY, context: self.prompt + self.new }
    }

    fn action_space(&self) -> Space {
        Space::Discrete(VOCABULARY)
    }

    fn reset(&mut self, seed: u64, observation: &mut [f32]) {
        let mut stream = Stream::new(seed, Purpose::Environment, 0);
        self.tokens = (0..self.prompt).map(|_| stream.below(VOCABULARY)).collect();
        self.hits = 0;
        text::write(&self.tokens, observation);
    }

    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        let Action::Discrete(token) = action else { panic!("expected a token, got {action:?}") };
        self.hits += u32::from(token == self.tokens[0]);
        self.tokens.push(token);
        text::write(&self.tokens, observation);
        let terminated = self.tokens.len() == self.prompt + self.new;
        let reward = if terminated { f64::from(self.hits) / self.new as f64 } else { 0.0 };
        Step { reward, terminated, truncated: false }
    }

    fn save(&self) -> Vec<u64> {
        std::iter::once(u64::from(self.hits)).chain(self.tokens.iter().map(|token| u64::from(*token))).collect()
    }

    fn load(&mut self, state: &[u64]) -> Result<(), EnvError> {
        let words: Option<Vec<u32>> = state.iter().map(|word| u32::try_from(*word).ok()).collect();
        let words = words.filter(|words| !words.is_empty()).ok_or_else(|| EnvError::State("expected hits and tokens".into()))?;
        (self.hits, self.tokens) = (words[0], words[1..].to_vec());
        Ok(())
    }
}

/// Measures `updates` updates, each with its rollout, after three warm-up updates.
pub fn throughput(workload: &Workload, updates: usize) -> Result<Throughput, Error> {
    let Workload { transformer, prompts, group, prompt_tokens, new_tokens, device, torch } = workload.clone();
    let world = EnvSpec::new("babble", move || Babble { tokens: Vec::new(), hits: 0, prompt: prompt_tokens, new: new_tokens });
    let config = Config {
        agent: "grpo".into(),
        environment: "babble".into(),
        envs: prompts * group,
        network: Network::Transformer(transformer),
        optimiser: OptimiserConfig { learning_rate: 1e-4, schedule: Schedule::Constant, ..OptimiserConfig::default() },
        algorithm: GrpoConfig { group_size: group, epochs: 1, minibatches: 1, ..GrpoConfig::default() }.into(),
        device,
        torch,
        ..Config::default()
    };
    memory::check_training(&config, &world)?;
    let (mut agent, mut policy) = (config.agent(&world)?, config.policy(&world)?);
    agent.begin(policy.as_ref());
    let collector = || Collector::new(&world, config.envs, config.seed, agent.collection());
    let mut collector = if policy.wants_one_actor() { threads::with(1, collector) } else { collector() }?;
    let (mut rates, mut seconds) = (Vec::new(), [Vec::new(), Vec::new()]);
    for update in 0..updates as u64 + 3 {
        let began = Instant::now();
        let (rollout, _) = collector.collect(policy.as_ref())?;
        let generated = began.elapsed().as_secs_f64();
        let updated = agent.update(policy.as_mut(), &rollout, UpdateContext { seed: 1, iteration: update, progress: 0.0 });
        Error::unless_sound(policy.as_ref())?;
        updated?;
        // reading the gradient norm waits until the device has completed the update
        if !policy.gradient_norm().is_finite() {
            return Err(Error::Device(format!("device {device}: expected a finite gradient, got none")));
        }
        Error::unless_sound(policy.as_ref())?;
        let all = began.elapsed().as_secs_f64();
        if update >= 3 {
            rates.push(rollout.len() as f64 / all);
            seconds[0].push(generated);
            seconds[1].push(all - generated);
        }
    }
    Ok(Throughput { rate: median(rates), seconds: seconds.map(median), parameters: policy.parameters().len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_prompt_counts_once() {
        let transformer = TransformerConfig { layers: 1, width: 2, heads: 1, feed_forward_width: 2, ..TransformerConfig::default() };
        assert_eq!(transformer.feed_forward, FeedForward::Swiglu);
        let cost = |prompts, group| {
            let (device, torch) = (Device::Cpu, TorchConfig::default());
            let transformer = transformer.clone();
            Workload { transformer, prompts, group, prompt_tokens: 2, new_tokens: 2, device, torch }.update_cost()
        };
        // three inputs with 4 x 4 + 3 x 4 weights, six pairs of positions, and two tokens with 15 logits
        assert_eq!(cost(1, 1), 6.0 * (3.0 * 28.0 + 2.0 * 6.0 * 2.0 + 2.0 * 2.0 * 15.0));
        // another input, which sees two tokens and itself, and two tokens with logits
        assert_eq!(cost(1, 2), cost(1, 1) + 6.0 * (28.0 + 2.0 * 3.0 * 2.0 + 2.0 * 2.0 * 15.0));
        assert_eq!(cost(3, 2), 3.0 * cost(1, 2));
    }
}
