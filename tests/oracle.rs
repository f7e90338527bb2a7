//! The gradient oracle: where all that can be said can be enumerated, the expected return J and its gradient are known exactly, and the
//! average of an estimator over many rollouts must come to it, or to the bias that its definition has.
//!
//! The world is target sum with one prompt and answers of at most three tokens of seven: 259 completions. The gradient that an agent
//! follows is taken from it at the moment it would step, so that everything an agent does is in it.

use std::ops::Range;

use gradus::agents::groups::{EPSILON, GroupStd, group_advantages};
use gradus::agents::grpo::{Grpo, GrpoConfig};
use gradus::agents::ppo::{Over, Ppo, PpoConfig};
use gradus::agents::reference::{Estimator, KlPlace, ReferenceConfig};
use gradus::agents::reinforce::{Baseline, Reinforce, ReinforceConfig};
use gradus::agents::{Agent, Aggregation, Moment, OptimiserConfig};
use gradus::collect::Collector;
use gradus::envs::World;
use gradus::envs::text::TargetSum;
use gradus::nets::cpu::Transformer;
use gradus::nets::tensors::{Tensors, TensorsError};
use gradus::nets::{
    ActionRows, Actor, Batch, Critic, Decision, Group, Objective, Observations, OptimiserStep, Output, Policy, Store, Sums, Texts,
    TransformerConfig,
};

/// Completions of a rollout, and of a group.
const BATCH: usize = 48;
const GROUP: usize = 4;

/// A policy that is asked to step writes down along which gradient, and stays where it is.
struct Standing {
    policy: Box<dyn Policy>,
    followed: Vec<Vec<f32>>,
}

impl Policy for Standing {
    fn apply(&mut self, _: &OptimiserStep) {
        self.followed.push(self.policy.last_gradient().to_vec());
    }
    fn observation_width(&self) -> usize {
        self.policy.observation_width()
    }
    fn actor(&self) -> Box<dyn Actor + '_> {
        self.policy.actor()
    }
    fn values(&mut self, store: &Store, values: &mut Vec<f32>) {
        self.policy.values(store, values);
    }
    fn log_probs(&mut self, store: &Store, log_probs: &mut Vec<f32>) {
        self.policy.log_probs(store, log_probs);
    }
    fn distributions(&mut self, store: &Store, rows: &mut Vec<f32>) {
        self.policy.distributions(store, rows);
    }
    fn distribution_width(&self) -> usize {
        self.policy.distribution_width()
    }
    fn evaluate(&mut self, store: &Store, batch: Batch<'_>, objective: &dyn Objective) -> Sums {
        self.policy.evaluate(store, batch, objective)
    }
    fn gradient(&mut self, store: &Store, batch: Batch<'_>, objective: &dyn Objective) -> Sums {
        self.policy.gradient(store, batch, objective)
    }
    fn fisher_vector_product(&mut self, store: &Store, batch: Batch<'_>, vector: &[f32], product: &mut Vec<f32>) {
        self.policy.fisher_vector_product(store, batch, vector, product);
    }
    fn supports_fisher(&self) -> bool {
        self.policy.supports_fisher()
    }
    fn gradient_norm(&self) -> f32 {
        self.policy.gradient_norm()
    }
    fn groups(&self) -> Vec<Group> {
        self.policy.groups()
    }
    fn parameters(&self) -> &[f32] {
        self.policy.parameters()
    }
    fn set_parameters(&mut self, parameters: &[f32]) {
        self.policy.set_parameters(parameters);
    }
    fn last_gradient(&self) -> &[f32] {
        self.policy.last_gradient()
    }
    fn snapshot(&self) -> Box<dyn Policy> {
        self.policy.snapshot()
    }
    fn save(&self) -> Tensors {
        self.policy.save()
    }
    fn load(&mut self, tensors: &Tensors) -> Result<(), TensorsError> {
        self.policy.load(tensors)
    }
    fn save_optimiser(&self) -> Tensors {
        self.policy.save_optimiser()
    }
    fn load_optimiser(&mut self, tensors: &Tensors) -> Result<(), TensorsError> {
        self.policy.load_optimiser(tensors)
    }
}

/// The world, a policy in it with its reference, and all that can be said.
struct Oracle {
    world: World,
    policy: Transformer,
    reference: Box<dyn Policy>,
    store: Store,
    /// The decisions of each completion, its probability and its reward.
    completions: Vec<(Range<usize>, f64, f64)>,
    log_probs: Vec<f32>,
    reference_log_probs: Vec<f32>,
}

/// Minus the sum of coefficient x log pi.
struct Weighted<'a>(&'a [f64]);

impl Objective for Weighted<'_> {
    fn decision(&self, i: usize, now: Output) -> Decision {
        let c = -self.0[i] as f32;
        Decision { loss: c * now.log_prob, derivative: Output { log_prob: c, ..Output::default() }, ..Decision::default() }
    }
}

fn world() -> World {
    let world = World::text("target-sum", TargetSum::new(4, 2)).unwrap();
    let prompt = world.text.as_ref().unwrap().task.vocabulary().encode("4>").unwrap();
    world.with_prompt(&prompt).unwrap()
}

/// A small transformer, far enough from where it begins that no token is as probable as another.
fn policy(world: &World, seed: u64) -> Transformer {
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
    // embeddings begin small, and with them the logits
    let moved: Vec<f32> = policy.parameters().iter().zip(other.parameters()).map(|(a, b)| 1.3 * a + 0.4 * b).collect();
    policy.set_parameters(&moved);
    let mut tensors = policy.save();
    for name in ["model.embed_tokens.weight", "critic.embed_tokens.weight"] {
        if let gradus::nets::tensors::Data::F32(numbers) = &mut tensors.get_mut(name).unwrap().data {
            numbers.iter_mut().for_each(|x| *x *= 12.0);
        }
    }
    policy.load(&tensors).unwrap();
    policy
}

impl Oracle {
    fn new() -> Self {
        let world = world();
        let (mut policy, mut reference) = (policy(&world, 1), policy(&world, 3));
        let text = world.text.clone().unwrap();
        let prompt = text.prompt.clone().unwrap();
        let vocabulary = text.task.vocabulary();
        let mut texts = Texts::new(prompt.len() + text.max_new_tokens());
        let (mut actions, mut ranges, mut rewards) = (Vec::new(), Vec::new(), Vec::new());
        let mut open: Vec<Vec<u32>> = vec![Vec::new()];
        while let Some(said) = open.pop() {
            for token in 0..vocabulary.len() as u32 {
                let said = [&said[..], &[token]].concat();
                if text.finish(&said).is_none() {
                    open.push(said);
                    continue;
                }
                let begin = actions.len();
                for (t, token) in said.iter().enumerate() {
                    texts.push([&prompt[..], &said[..t]].concat().into_iter());
                    actions.push(*token);
                }
                texts.end_text();
                ranges.push(begin..actions.len());
                rewards.push(text.judge(&prompt, &said).unwrap().0);
            }
        }
        let store = Store::of(Observations::Texts(texts), ActionRows::Discrete(actions));
        let (mut log_probs, mut reference_log_probs) = (Vec::new(), Vec::new());
        policy.log_probs(&store, &mut log_probs);
        reference.log_probs(&store, &mut reference_log_probs);
        let probability = |range: &Range<usize>| log_probs[range.clone()].iter().map(|l| f64::from(*l)).sum::<f64>().exp();
        let completions = ranges.iter().zip(rewards).map(|(range, reward)| (range.clone(), probability(range), reward)).collect();
        Self { world, policy, reference: Box::new(reference), store, completions, log_probs, reference_log_probs }
    }

    /// The gradient of minus the sum of coefficient x log pi, where `coefficient` is of a completion and a decision.
    fn gradient(&mut self, coefficient: impl Fn(usize, usize) -> f64) -> Vec<f64> {
        let mut coefficients = vec![0.0; self.store.actions.len()];
        for (y, (range, ..)) in self.completions.iter().enumerate() {
            range.clone().for_each(|i| coefficients[i] = coefficient(y, i));
        }
        let indices: Vec<u32> = (0..coefficients.len() as u32).collect();
        let ones = vec![1.0; coefficients.len()];
        self.policy.gradient(&self.store, Batch::new(&indices, &ones), &Weighted(&coefficients));
        self.policy.last_gradient().iter().map(|g| f64::from(*g)).collect()
    }

    /// Minus the gradient of the expected return.
    fn policy_gradient(&mut self) -> Vec<f64> {
        let completions = self.completions.clone();
        self.gradient(|y, _| completions[y].1 * completions[y].2)
    }

    /// log pi - log pi_ref of a decision.
    fn d(&self, i: usize) -> f64 {
        f64::from(self.log_probs[i] - self.reference_log_probs[i])
    }

    /// The gradients that an agent follows in `n` rollouts, each times `scale` of the rollout's decisions.
    fn followed(&self, agent: &mut dyn Agent, n: u64, scale: impl Fn(usize) -> f64) -> Vec<Vec<f64>> {
        agent.begin(self.reference.as_ref());
        let mut standing = Standing { policy: self.policy.snapshot(), followed: Vec::new() };
        let mut collector = Collector::new(&self.world, BATCH, 11, agent.collection()).unwrap();
        let mut all = Vec::new();
        for iteration in 0..n {
            let (rollout, _) = collector.collect(standing.policy.as_ref()).unwrap();
            standing.followed.clear();
            agent.update(&mut standing, &rollout, Moment { seed: 5, iteration, progress: 0.0 }).unwrap();
            assert_eq!(standing.followed.len(), 1, "one step a rollout");
            let scale = scale(rollout.len());
            all.push(standing.followed[0].iter().map(|g| f64::from(*g) * scale).collect());
        }
        all
    }
}

/// That the mean of `samples` is `exact` within what their spread allows, and that they say something: along the exact gradient and along
/// twenty random directions (z scores), and in all (the squared error over its expectation).
fn assert_mean_is(name: &str, samples: &[Vec<f64>], exact: &[f64]) {
    // the critic's own parameters have other gradients
    let actor = exact.iter().rposition(|g| *g != 0.0).unwrap() + 1;
    let n = samples.len() as f64;
    let mean: Vec<f64> = (0..actor).map(|i| samples.iter().map(|s| s[i]).sum::<f64>() / n).collect();
    let norm = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
    let along = |v: &[f64], u: &[f64]| v.iter().zip(u).map(|(v, u)| v * u).sum::<f64>();
    let mut stream = gradus::envs::random::Stream::new(3, gradus::envs::random::Purpose::Bootstrap, 0);
    let mut directions = vec![exact[..actor].to_vec()];
    directions.extend((0..20).map(|_| (0..actor).map(|_| stream.uniform(-1.0, 1.0)).collect::<Vec<f64>>()));
    let mut worst = 0.0_f64;
    for direction in &directions {
        let projections: Vec<f64> = samples.iter().map(|s| along(&s[..actor], direction)).collect();
        let centre = projections.iter().sum::<f64>() / n;
        let variance = projections.iter().map(|p| (p - centre).powi(2)).sum::<f64>() / (n - 1.0);
        worst = worst.max((centre - along(exact, direction)).abs() / (variance / n).sqrt());
    }
    let error: Vec<f64> = mean.iter().zip(exact).map(|(m, e)| m - e).collect();
    let variance: f64 =
        samples.iter().map(|s| s[..actor].iter().zip(&mean).map(|(x, m)| (x - m).powi(2)).sum::<f64>()).sum::<f64>() / (n - 1.0);
    let ratio = norm(&error).powi(2) / (variance / n);
    let cosine = along(&mean, exact) / (norm(&mean) * norm(&exact[..actor]));
    println!(
        "{name:<44} |g| {:.4}, relative error {:.3}, cosine {cosine:.4}, worst z {worst:.1}, error/expected {ratio:.2}",
        norm(exact),
        norm(&error) / norm(exact)
    );
    assert!(worst < 4.0 && ratio < 3.0, "{name}: worst z {worst:.1}, squared error {ratio:.2} times what is expected");
    assert!(cosine > 0.97, "{name}: too noisy to say anything, cosine {cosine:.3}");
}

const ROLLOUTS: u64 = 600;

fn reinforce(baseline: Baseline) -> ReinforceConfig {
    let group_size = if matches!(baseline, Baseline::LeaveOneOut | Baseline::Greedy) { GROUP } else { 1 };
    let aggregation = Aggregation::SequenceSum;
    ReinforceConfig { baseline, group_size, gamma: 1.0, aggregation, value_coefficient: 0.0, ..ReinforceConfig::default() }
}

fn optimiser() -> OptimiserConfig {
    OptimiserConfig { max_grad_norm: f32::INFINITY, ..OptimiserConfig::default() }
}

fn reinforce_agent(config: ReinforceConfig, reference: ReferenceConfig) -> Reinforce {
    Reinforce::new(config, optimiser(), reference, BATCH).unwrap()
}

fn grpo_agent(config: GrpoConfig, reference: ReferenceConfig) -> Grpo {
    Grpo::new(GrpoConfig { epochs: 1, minibatches: 1, ..config }, optimiser(), reference, BATCH).unwrap()
}

fn grpo(group_std: GroupStd) -> GrpoConfig {
    GrpoConfig { group_size: GROUP, group_std, aggregation: Aggregation::SequenceSum, ..GrpoConfig::default() }
}

/// The probabilities of all completions add up to 1, and the enumerated gradient is the slope of J.
#[test]
fn the_oracle_is_right() {
    let mut oracle = Oracle::new();
    assert_eq!(oracle.completions.len(), 43 + 216);
    let sum: f64 = oracle.completions.iter().map(|(_, p, _)| p).sum();
    assert!((sum - 1.0).abs() < 1e-5, "{sum}");
    let j = |oracle: &mut Oracle| {
        let mut log_probs = Vec::new();
        oracle.policy.log_probs(&oracle.store, &mut log_probs);
        let probability = |range: &Range<usize>| log_probs[range.clone()].iter().map(|l| f64::from(*l)).sum::<f64>().exp();
        oracle.completions.iter().map(|(range, _, reward)| probability(range) * reward).sum::<f64>()
    };
    let gradient = oracle.policy_gradient();
    let at = oracle.policy.parameters().to_vec();
    let norm = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
    let mut moved = |h: f64| {
        let parameters: Vec<f32> = at.iter().zip(&gradient).map(|(x, g)| x - (h * g / norm) as f32).collect();
        oracle.policy.set_parameters(&parameters);
        j(&mut oracle)
    };
    let slope = (moved(0.01) - moved(-0.01)) / 0.02;
    assert!((slope / norm - 1.0).abs() < 1e-3, "slope {slope}, norm of the gradient {norm}");
}

#[test]
fn reinforce_is_unbiased_with_every_baseline() {
    let mut oracle = Oracle::new();
    let exact = oracle.policy_gradient();
    let none = ReferenceConfig::default();
    for baseline in [Baseline::None, Baseline::Mean, Baseline::Value, Baseline::Greedy, Baseline::LeaveOneOut] {
        let mut agent = reinforce_agent(reinforce(baseline), none.clone());
        let samples = oracle.followed(&mut agent, ROLLOUTS, |_| 1.0);
        assert_mean_is(&format!("REINFORCE, baseline {baseline:?}"), &samples, &exact);
    }
}

#[test]
fn grpo_has_the_bias_that_its_definition_has() {
    let mut oracle = Oracle::new();
    let (exact, none) = (oracle.policy_gradient(), ReferenceConfig::default());
    // the mean that is subtracted contains the completion itself: (G - 1) / G of the gradient
    let shrunk: Vec<f64> = exact.iter().map(|g| g * (GROUP - 1) as f64 / GROUP as f64).collect();
    let samples = oracle.followed(&mut grpo_agent(grpo(GroupStd::None), none.clone()), ROLLOUTS, |_| 1.0);
    assert_mean_is("GRPO without std: (G - 1) / G", &samples, &shrunk);

    // groups of two can be enumerated: every advantage of every pair
    let completions = oracle.completions.clone();
    for std in [GroupStd::Population, GroupStd::Sample] {
        let weight = |y: usize| {
            let (_, p, reward) = &completions[y];
            let others = completions.iter().map(|(_, q, other)| q * group_advantages(&[*reward, *other], std, f64::NAN, EPSILON)[0]);
            p * others.sum::<f64>()
        };
        let weights: Vec<f64> = (0..completions.len()).map(weight).collect();
        let expected = oracle.gradient(|y, _| weights[y]);
        let config = GrpoConfig { group_size: 2, ..grpo(std) };
        let samples = oracle.followed(&mut grpo_agent(config.clone(), none.clone()), ROLLOUTS, |_| 1.0);
        assert_mean_is(&format!("GRPO in pairs, {std:?}"), &samples, &expected);

        // with sequence-mean each completion counts by one over its length, too
        let expected = oracle.gradient(|y, _| weights[y] / completions[y].0.len() as f64);
        let config = GrpoConfig { aggregation: Aggregation::SequenceMean, ..config };
        let samples = oracle.followed(&mut grpo_agent(config, none.clone()), ROLLOUTS, |_| 1.0);
        assert_mean_is(&format!("GRPO in pairs, {std:?}, sequence-mean"), &samples, &expected);
    }
}

/// Its loss is a mean over decisions; times their number over that of completions it is the policy gradient.
#[test]
fn ppo_with_lambda_1_is_unbiased_whatever_the_values() {
    let mut oracle = Oracle::new();
    let exact = oracle.policy_gradient();
    let config = PpoConfig {
        episodes_per_env: 1,
        epochs: 1,
        minibatch_size: BATCH * 3,
        gamma: 1.0,
        gae_lambda: 1.0,
        value_coefficient: 0.0,
        normalise_advantages: false,
        normalise_over: Over::Rollout,
        ..PpoConfig::default()
    };
    let mut agent = Ppo::new(config, optimiser(), ReferenceConfig::default(), BATCH).unwrap();
    let samples = oracle.followed(&mut agent, ROLLOUTS, |decisions| decisions as f64 / BATCH as f64);
    assert_mean_is("PPO, lambda 1, first step", &samples, &exact);
}

/// In the reward the divergence is that of whole completions; in the loss it is each state's, by estimator.
#[test]
fn the_leash_pulls_where_it_says() {
    let mut oracle = Oracle::new();
    let beta = 0.2;
    let completions = oracle.completions.clone();
    let d: Vec<f64> = (0..oracle.log_probs.len()).map(|i| oracle.d(i)).collect();
    let in_reward = oracle.gradient(|y, _| {
        let (range, p, reward) = &completions[y];
        p * (reward - f64::from(beta) * d[range.clone()].iter().sum::<f64>())
    });
    let reference = ReferenceConfig { coefficient: beta, place: KlPlace::Reward, ..ReferenceConfig::default() };
    let samples = oracle.followed(&mut reinforce_agent(reinforce(Baseline::None), reference.clone()), ROLLOUTS, |_| 1.0);
    assert_mean_is("REINFORCE, k1 in the reward", &samples, &in_reward);
    let samples = oracle.followed(&mut reinforce_agent(reinforce(Baseline::LeaveOneOut), reference), ROLLOUTS, |_| 1.0);
    assert_mean_is("RLOO, k1 in the reward", &samples, &in_reward);

    let slope = |estimator: Estimator, d: f64| match estimator {
        Estimator::K1 => 1.0,
        Estimator::K3 => 1.0 - (-d).exp(),
        // over pi's actions, d grad log pi has the mean of the exact divergence's gradient
        Estimator::K2 | Estimator::Exact => d,
    };
    for estimator in [Estimator::K1, Estimator::K2, Estimator::K3, Estimator::Exact] {
        let shrink = (GROUP - 1) as f64 / GROUP as f64;
        let in_loss = oracle.gradient(|y, i| {
            let (_, p, reward) = &completions[y];
            p * (shrink * reward - f64::from(beta) * slope(estimator, d[i]))
        });
        let reference = ReferenceConfig { coefficient: beta, place: KlPlace::Loss, estimator, ..ReferenceConfig::default() };
        let samples = oracle.followed(&mut grpo_agent(grpo(GroupStd::None), reference), ROLLOUTS, |_| 1.0);
        assert_mean_is(&format!("GRPO, {estimator:?} in the loss"), &samples, &in_loss);
    }
}
