//! All completions of a small environment, with their probabilities and rewards.

use std::ops::Range;

use gradus::agents::{Agent, UpdateContext};
use gradus::envs::EnvSpec;
use gradus::envs::random::Stream;
use gradus::envs::text::{Finish, Problem, Split, TargetSum, Task, Verdict, Vocabulary};
use gradus::nets::cpu::Transformer;
use gradus::nets::tensors::Data;
use gradus::nets::{
    ActionRows, Batch, Behaviour, Critic, Evaluation, Listener, Network, Objective, Observations, OptimiserStep, Outputs, Policy, Store,
    Texts, TransformerConfig, Wrapped, threads,
};
use gradus::rollouts::Collector;

/// A listener that records the gradient at each step of the optimiser, and leaves the parameters as they are.
#[derive(Default)]
struct Gradients(Vec<Vec<f32>>);

impl Listener for Gradients {
    fn apply(&mut self, policy: &mut dyn Policy, _: &OptimiserStep) {
        self.0.push(policy.last_gradient().to_vec());
    }
}

/// Largest number of completions from which a mean gradient is computed.
const COMPLETIONS: usize = 14_400;
/// Largest number of rollouts, because small rollouts take longer per completion.
const ROLLOUTS: usize = 2_400;

/// One of the enumerated completions.
#[derive(Clone)]
pub struct Completion {
    /// The indices of its decisions in the store.
    pub range: Range<usize>,
    /// Its tokens.
    pub tokens: Vec<u32>,
    /// Its probability under the policy that collects.
    pub probability: f64,
    /// Its total reward.
    pub reward: f64,
}

impl Completion {
    /// Returns the number of tokens.
    pub fn length(&self) -> f64 {
        self.tokens.len() as f64
    }
}

/// An environment, a policy with its reference policy, and all completions.
pub struct Oracle {
    world: EnvSpec,
    /// The policy that learns.
    pub policy: Transformer,
    /// The policy that collects, if it differs from `policy`.
    earlier: Option<Box<dyn Policy>>,
    reference: Box<dyn Policy>,
    store: Store,
    /// All completions.
    pub completions: Vec<Completion>,
    log_probs: Vec<f32>,
    old_log_probs: Vec<f32>,
    reference_log_probs: Vec<f32>,
}

/// The loss: minus the sum of coefficient x log pi.
struct Weighted<'a>(&'a [f64]);

impl Objective for Weighted<'_> {
    fn decision(&self, i: usize, pi: Outputs) -> Evaluation {
        (-self.0[i] as f32 * pi.log_prob).into()
    }
}

/// Target sum in which even digits end steps. [`step_reward`] returns the reward of a step. The last step gets the rest of the reward.
struct Stepwise(TargetSum);

/// Returns the reward of the step that the last token ends, if this token is 0, 2 or 4. The reward is 0.5 if the sum of the digits is at
/// most the target, 4, and otherwise 0. Other tokens end no step.
pub fn step_reward(tokens: &[u32]) -> Option<f64> {
    [0, 2, 4].contains(tokens.last()?).then(|| if tokens.iter().sum::<u32>() <= 4 { 0.5 } else { 0.0 })
}

impl Task for Stepwise {
    fn vocabulary(&self) -> &Vocabulary {
        self.0.vocabulary()
    }
    fn max_new_tokens(&self) -> usize {
        self.0.max_new_tokens()
    }
    fn division(&self) -> gradus::envs::text::Division {
        self.0.division()
    }
    fn problem(&self, split: Split, stream: &mut Stream) -> Problem {
        self.0.problem(split, stream)
    }
    fn verify(&self, prompt: &[u32], completion: &[u32], finish: Finish) -> Result<Verdict, String> {
        self.0.verify(prompt, completion, finish)
    }
    fn step_reward(&self, _: &[u32], completion: &[u32]) -> Option<f64> {
        step_reward(completion)
    }
}

/// Returns a small transformer, far enough from its initialisation that no two tokens are equally probable.
fn policy(world: &EnvSpec, seed: u64) -> Transformer {
    let config = TransformerConfig {
        layers: 1,
        width: 16,
        heads: 1,
        feed_forward_width: 16,
        critic: Critic::Separate,
        ..TransformerConfig::default()
    };
    let env = world.env();
    let mut policy = Transformer::new(&config, &env.observation_space(), &env.action_space(), 7).unwrap();
    let other = Transformer::new(&config, &env.observation_space(), &env.action_space(), seed).unwrap();
    // initial embeddings are small, and so are the logits
    let moved: Vec<f32> = policy.parameters().iter().zip(other.parameters()).map(|(a, b)| 1.3 * a + 0.4 * b).collect();
    policy.set_parameters(&moved);
    let mut tensors = policy.save();
    for name in ["model.embed_tokens.weight", "critic.embed_tokens.weight"] {
        if let Data::F32(numbers) = &mut tensors.get_mut(name).unwrap().data {
            numbers.iter_mut().for_each(|x| *x *= 12.0);
        }
    }
    // the critic's values are wrong, but not 0
    if let Data::F32(numbers) = &mut tensors.get_mut("critic.value_head.weight").unwrap().data {
        numbers.iter_mut().enumerate().for_each(|(i, x)| *x = 0.01 * (i as f32 - 6.0));
    }
    policy.load(&tensors).unwrap();
    policy
}

/// Returns the policy's log-probability of every decision.
fn log_probs(policy: &mut dyn Policy, store: &Store) -> Vec<f32> {
    let mut log_probs = Vec::new();
    policy.log_probs(store, &mut log_probs);
    log_probs
}

impl Oracle {
    /// Creates the oracle of target sum.
    pub fn new() -> Self {
        Self::within(EnvSpec::text("target-sum", TargetSum::new(4, 2)).unwrap())
    }

    /// Creates the oracle of target sum with steps.
    pub fn stepwise() -> Self {
        Self::within(EnvSpec::text("stepwise", Stepwise(TargetSum::new(4, 2))).unwrap())
    }

    fn within(world: EnvSpec) -> Self {
        let text = world.text.clone().unwrap();
        let vocabulary = text.task.vocabulary();
        let prompt = vocabulary.encode("4>").unwrap();
        let world = world.with_prompt(&prompt).unwrap();
        let (policy, mut reference) = (policy(&world, 17), policy(&world, 3));
        let mut texts = Texts::new(prompt.len() + text.max_new_tokens());
        let (mut actions, mut completions) = (Vec::new(), Vec::new());
        let mut open: Vec<Vec<u32>> = vec![Vec::new()];
        while let Some(tokens) = open.pop() {
            for token in 0..vocabulary.len() as u32 {
                let tokens = [&tokens[..], &[token]].concat();
                if text.finish(&tokens).is_none() {
                    open.push(tokens);
                    continue;
                }
                let begin = actions.len();
                for (t, token) in tokens.iter().enumerate() {
                    texts.push([&prompt[..], &tokens[..t]].concat().into_iter());
                    actions.push(*token);
                }
                texts.end_text();
                let reward = text.verify(&prompt, &tokens).unwrap().0;
                completions.push(Completion { range: begin..actions.len(), tokens, probability: f64::NAN, reward });
            }
        }
        let store = Store::of(Observations::Texts(texts), ActionRows::Discrete(actions));
        let reference_log_probs = log_probs(&mut reference, &store);
        let (log_probs, old_log_probs, earlier) = (Vec::new(), Vec::new(), None);
        let reference = Box::new(reference);
        let mut oracle = Self { world, policy, earlier, reference, store, completions, log_probs, old_log_probs, reference_log_probs };
        // trains the policy to an expected return of 0.35, so that its greedy answer has a reward above 0
        oracle.update_log_probs();
        while oracle.expected_return() < 0.35 {
            let gradient = oracle.policy_gradient();
            let norm = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
            let moved: Vec<f32> = oracle.policy.parameters().iter().zip(&gradient).map(|(x, g)| x - (0.02 * g / norm) as f32).collect();
            oracle.policy.set_parameters(&moved);
            oracle.update_log_probs();
        }
        oracle
    }

    /// Moves the policy's parameters a fraction of the way to those of the reference policy. The policy from before the move still collects
    /// the rollouts.
    pub fn move_on(&mut self, fraction: f32) {
        self.earlier = Some(self.policy.snapshot());
        let moved =
            self.policy.parameters().iter().zip(self.reference.parameters()).map(|(x, r)| x + fraction * (r - x)).collect::<Vec<f32>>();
        self.policy.set_parameters(&moved);
        self.update_log_probs();
    }

    /// Recomputes the log-probabilities of all completions.
    pub fn update_log_probs(&mut self) {
        self.log_probs = log_probs(&mut self.policy, &self.store);
        self.old_log_probs = self.earlier.as_mut().map_or_else(|| self.log_probs.clone(), |old| log_probs(old.as_mut(), &self.store));
        for Completion { range, probability, .. } in &mut self.completions {
            *probability = self.old_log_probs[range.clone()].iter().map(|l| f64::from(*l)).sum::<f64>().exp();
        }
    }

    /// Returns the expected return J of the policy that collects.
    pub fn expected_return(&self) -> f64 {
        self.completions.iter().map(|y| y.probability * y.reward).sum()
    }

    /// Returns the gradient of minus the sum of coefficient x log pi. `coefficient` takes the indices of a completion and of a decision.
    pub fn gradient(&mut self, coefficient: impl Fn(usize, usize) -> f64) -> Vec<f64> {
        let mut coefficients = vec![0.0; self.store.actions.len()];
        for (y, Completion { range, .. }) in self.completions.iter().enumerate() {
            range.clone().for_each(|i| coefficients[i] = coefficient(y, i));
        }
        let indices: Vec<u32> = (0..coefficients.len() as u32).collect();
        let ones = vec![1.0; coefficients.len()];
        self.policy.gradient(&self.store, Batch::new(&indices, &ones), &Weighted(&coefficients));
        self.policy.last_gradient().iter().map(|g| f64::from(*g)).collect()
    }

    /// Returns the expected [`gradient`](Self::gradient) over all pairs of completions. `coefficients` takes a pair and returns the
    /// coefficients of the first completion's decisions.
    pub fn gradient_in_pairs(&mut self, coefficients: impl Fn(&Completion, &Completion) -> Vec<f64>) -> Vec<f64> {
        let mut sums = vec![0.0; self.store.actions.len()];
        for y in &self.completions {
            for z in &self.completions {
                let probability = y.probability * z.probability;
                y.range.clone().zip(coefficients(y, z)).for_each(|(i, c)| sums[i] += probability * c);
            }
        }
        self.gradient(|_, i| sums[i])
    }

    /// Returns minus the gradient of the expected return.
    pub fn policy_gradient(&mut self) -> Vec<f64> {
        let completions = self.completions.clone();
        self.gradient(|y, _| completions[y].probability * completions[y].reward)
    }

    /// Returns the greedy completion of the policy that collects.
    pub fn greedy(&self) -> &Completion {
        let mut tokens: Vec<u32> = Vec::new();
        loop {
            let t = tokens.len();
            let continues = |y: &&Completion| y.tokens.len() > t && y.tokens.starts_with(&tokens);
            let log_prob = |y: &Completion| self.old_log_probs[y.range.start + t];
            let likeliest = self.completions.iter().filter(continues).max_by(|y, z| log_prob(y).total_cmp(&log_prob(z)));
            let Some(likeliest) = likeliest else { break };
            tokens.push(likeliest.tokens[t]);
        }
        self.completions.iter().find(|y| y.tokens == tokens).unwrap()
    }

    /// Returns log pi_old - log pi_ref of every decision, where pi_old is the policy that collects.
    pub fn against_reference(&self) -> Vec<f64> {
        self.old_log_probs.iter().zip(&self.reference_log_probs).map(|(old, reference)| f64::from(old - reference)).collect()
    }

    /// Returns log pi - log pi_old of every decision, where pi_old is the policy that collects.
    pub fn log_ratios(&self) -> Vec<f64> {
        self.log_probs.iter().zip(&self.old_log_probs).map(|(now, old)| f64::from(now - old)).collect()
    }

    /// Returns the critic's value of every decision's prefix.
    pub fn values(&mut self) -> Vec<f64> {
        let mut values = Vec::new();
        self.policy.values(&self.store, &mut values);
        values.into_iter().map(f64::from).collect()
    }

    /// Returns the gradients of an agent's updates on rollouts of `batch` completions. Each gradient is multiplied by the value of `scale`
    /// for the rollout's number of decisions.
    pub fn agent_gradients(&self, agent: &mut dyn Agent, batch: usize, scale: impl Fn(usize) -> f64) -> Vec<Vec<f64>> {
        agent.begin(self.reference.as_ref());
        let mut recorder = Wrapped { policy: self.policy.snapshot(), listener: Gradients::default() };
        let sampler = self.earlier.as_deref().unwrap_or(&self.policy);
        let mut collector = Collector::new(&self.world, batch, 11, agent.collection()).unwrap();
        let mut all = Vec::new();
        for iteration in 0..(COMPLETIONS / batch).min(ROLLOUTS) as u64 {
            // this is faster on one thread, because there is little work
            let rollout = threads::with(1, || {
                let (rollout, _) = collector.collect(sampler).unwrap();
                recorder.listener.0.clear();
                agent.update(&mut recorder, &rollout, UpdateContext { seed: 5, iteration, progress: 0.0 }).unwrap();
                rollout
            });
            assert_eq!(recorder.listener.0.len(), 1, "expected one optimiser step per rollout");
            assert!(rollout.greedy_rewards.iter().all(|r| r.iter().sum::<f32>() > 0.0), "expected greedy returns above 0");
            let scale = scale(rollout.len());
            all.push(recorder.listener.0[0].iter().map(|g| f64::from(*g) * scale).collect());
        }
        all
    }
}
