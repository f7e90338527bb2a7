//! The work of the kernel benchmarks. Its inputs are the same numbers on every machine.

use gradus::agents::actor_learner::CriticObjective;
use gradus::agents::dqn::{DqnObjective, TdLoss};
use gradus::agents::kl::KlCoefficients;
use gradus::agents::ppo::{PpoConfig, PpoObjective};
use gradus::agents::sac::SacObjective;
use gradus::envs::random::{Purpose, Stream};
use gradus::envs::{Actions, Image, Space, VecEnv, registry, text};
use gradus::nets::cpu::{ActorCritic, QActorCritic, QNetwork, Transformer};
use gradus::nets::{
    ActionRows, Activation, Actor, Batch, Behaviour, Choice, Evaluation, LogStdBounds, Network, NetworkConfig, Objective, Observations,
    OptimiserStep, Outputs, Policy, QActor, QActorCritic as _, QActorHead, QHead, QNetwork as _, Rule, Store, Texts, TransformerConfig,
};

const STEP: OptimiserStep = OptimiserStep {
    rule: Rule::Adam,
    epsilon: 1e-5,
    learning_rate: 1e-5,
    critic_learning_rate: 1e-5,
    weight_decay: 0.0,
    max_grad_norm: 0.5,
    clip_per_group: false,
};

fn uniform(stream: &mut Stream, n: usize) -> Vec<f32> {
    (0..n).map(|_| stream.uniform(-1.0, 1.0) as f32).collect()
}

/// A network, and a minibatch of PPO with observations of CartPole's size, from a rollout of four minibatches.
pub struct Learning {
    policy: ActorCritic,
    config: PpoConfig,
    store: Store,
    indices: Vec<u32>,
    weights: Vec<f32>,
    figures: [Vec<f32>; 4],
    numbers: Vec<f32>,
}

impl Learning {
    /// Creates a network with two hidden layers of width `width` (0: no hidden layers), and a minibatch of `rows` rows.
    pub fn new(width: usize, actions: u32, rows: usize) -> Self {
        let mut stream = Stream::new(1, Purpose::Problem, 0);
        let hidden = if width == 0 { Vec::new() } else { vec![width; 2] };
        // initialising orthogonal weights would take longer than the measurement
        let config = NetworkConfig { hidden, orthogonal: false, ..NetworkConfig::default() };
        let observations = Space::Box { low: vec![-1.0; 4], high: vec![1.0; 4] };
        let policy = ActorCritic::new(&config, &observations, &Space::Discrete(actions), 1).expect("a network");
        let n = 4 * rows;
        let chosen = ActionRows::Discrete((0..n).map(|_| stream.below(actions)).collect());
        let store = Store::new(4, uniform(&mut stream, 4 * n), chosen);
        let mut indices: Vec<u32> = (0..n as u32).collect();
        stream.shuffle(&mut indices);
        indices.truncate(rows);
        let mut figures = [(); 4].map(|()| uniform(&mut stream, n));
        figures[0].iter_mut().for_each(|log_prob| *log_prob = 0.1 * *log_prob - (actions as f32).ln());
        let weights = vec![1.0 / rows as f32; rows];
        let config = PpoConfig { clip_value: 0.2, entropy_coefficient: 0.01, value_coefficient: 0.5, ..PpoConfig::default() };
        Self { policy, config, store, indices, weights, figures, numbers: Vec::new() }
    }

    /// Computes the loss and its gradient.
    pub fn gradient(&mut self) {
        let Self { policy, config, store, indices, weights, figures: [old_log_probs, old_values, advantages, targets], .. } = self;
        let objective = PpoObjective {
            config: config.clone(),
            old_log_probs,
            old_values,
            advantages,
            targets,
            advantage_mean: 0.0,
            advantage_std: 1.0,
            clip: 0.2,
            reference_kl: KlCoefficients::default(),
            kl_coefficient: 0.0,
        };
        policy.gradient(store, Batch::new(indices, weights), &objective);
    }

    /// Takes a step of Adam along the last gradient.
    pub fn apply(&mut self) {
        self.policy.apply(&STEP);
    }

    /// Computes the values of the whole rollout.
    pub fn values(&mut self) {
        self.policy.values(&self.store, &mut self.numbers);
    }

    /// Computes the log-probabilities of all actions over the whole rollout.
    pub fn distributions(&mut self) {
        self.policy.distributions(&self.store, &mut self.numbers);
    }

    /// Returns an actor with `rows` observations.
    pub fn acting(&self, rows: usize) -> Acting<'_> {
        let streams = (0..rows as u64).map(|row| Stream::new(1, Purpose::Action, row)).collect();
        let observations = uniform(&mut Stream::new(2, Purpose::Problem, 0), 4 * rows);
        let actions = ActionRows::Discrete(vec![0; rows]);
        Acting { actor: self.policy.actor(), streams, observations, actions, log_probs: vec![0.0; rows] }
    }
}

/// An actor with its observations and random streams.
pub struct Acting<'a> {
    actor: Box<dyn Actor + 'a>,
    streams: Vec<Stream>,
    observations: Vec<f32>,
    actions: ActionRows,
    log_probs: Vec<f32>,
}

impl Acting<'_> {
    /// Samples an action for every row.
    pub fn act(&mut self) {
        let choice = Choice::Sample(&mut self.streams);
        self.actor.act(&self.observations, None, choice, &mut self.actions, &mut self.log_probs);
    }
}

/// A network of the values of two actions, and a sample of decisions with observations of CartPole's size.
pub struct Valuing {
    network: QNetwork,
    store: Store,
    indices: Vec<u32>,
    weights: Vec<f32>,
    targets: Vec<f32>,
    numbers: Vec<f32>,
}

impl Valuing {
    /// Creates a network with two hidden layers of width `width`, and a sample of `rows` decisions.
    pub fn new(width: usize, rows: usize) -> Self {
        let mut stream = Stream::new(1, Purpose::Problem, 0);
        let config = NetworkConfig { hidden: vec![width; 2], orthogonal: false, ..NetworkConfig::default() };
        let observations = Space::Box { low: vec![-1.0; 4], high: vec![1.0; 4] };
        let network = QNetwork::new(&config, QHead::default(), &observations, &Space::Discrete(2), 1).expect("a network");
        let chosen = ActionRows::Discrete((0..rows).map(|_| stream.below(2)).collect());
        Self {
            network,
            store: Store::new(4, uniform(&mut stream, 4 * rows), chosen),
            indices: (0..rows as u32).collect(),
            weights: vec![1.0 / rows as f32; rows],
            targets: uniform(&mut stream, rows),
            numbers: Vec::new(),
        }
    }

    /// Creates a network with this trunk and a hidden layer of `width`, and a sample of `rows` decisions with images.
    pub fn seeing(trunk: &str, image: Image, width: usize, rows: usize) -> Self {
        let mut stream = Stream::new(1, Purpose::Problem, 0);
        let trunk = trunk.parse().expect("a trunk");
        let config =
            NetworkConfig { trunk, hidden: vec![width], activation: Activation::Relu, orthogonal: false, ..NetworkConfig::default() };
        let network = QNetwork::new(&config, QHead::default(), &Space::Image(image), &Space::Discrete(3), 1).expect("a network");
        let mut observations = Observations::empty(&Space::Image(image));
        for _ in 0..rows {
            let pixels: Vec<f32> = (0..image.len()).map(|_| stream.below(u32::from(image.largest) + 1) as f32).collect();
            observations.push(&pixels);
        }
        let chosen = ActionRows::Discrete((0..rows).map(|_| stream.below(3)).collect());
        let (indices, weights) = ((0..rows as u32).collect(), vec![1.0 / rows as f32; rows]);
        Self { network, store: Store::of(observations, chosen), indices, weights, targets: uniform(&mut stream, rows), numbers: Vec::new() }
    }

    /// Computes the loss and its gradient.
    pub fn gradient(&mut self) {
        let Self { network, store, indices, weights, targets, .. } = self;
        network.gradient(store, Batch::new(indices, weights), &DqnObjective { targets, loss: TdLoss::Huber });
    }

    /// Takes a step of Adam along the last gradient.
    pub fn apply(&mut self) {
        self.network.apply(&STEP);
    }

    /// Computes the values of all actions for the whole sample.
    pub fn values(&mut self) {
        self.network.q_values(&self.store, 0..self.store.rows(), &mut self.numbers);
    }
}

/// A squashed Gaussian actor and two critics, and a sample of observations and actions of Pendulum's size.
pub struct Controlling {
    network: QActorCritic,
    store: Store,
    indices: Vec<u32>,
    weights: Vec<f32>,
    targets: Vec<f32>,
    noise: Stream,
}

impl Controlling {
    /// Creates networks with two hidden layers of width `width`, and a sample of `rows` decisions.
    pub fn new(width: usize, rows: usize) -> Self {
        let mut stream = Stream::new(1, Purpose::Problem, 0);
        let config = NetworkConfig { hidden: vec![width; 2], activation: Activation::Relu, orthogonal: false, ..NetworkConfig::default() };
        let numbers = |n: usize, bound: f32| Space::Box { low: vec![-bound; n], high: vec![bound; n] };
        let head = QActorHead { actor: QActor::Squashed(LogStdBounds::Clamp), critics: 2 };
        let network = QActorCritic::new(&config, head, &numbers(3, 1.0), &numbers(1, 2.0), 1).expect("an actor and critics");
        let chosen = ActionRows::Continuous { rows: uniform(&mut stream, rows), width: 1 };
        Self {
            network,
            store: Store::new(3, uniform(&mut stream, 3 * rows), chosen),
            indices: (0..rows as u32).collect(),
            weights: vec![1.0 / rows as f32; rows],
            targets: uniform(&mut stream, rows),
            noise: stream,
        }
    }

    /// Computes the critics' loss and its gradient.
    pub fn critic_gradient(&mut self) {
        let Self { network, store, indices, weights, targets, .. } = self;
        network.critic_gradient(store, Batch::new(indices, weights), &CriticObjective { targets, factor: 0.5 });
    }

    /// Computes the actor's loss and its gradient, through the critics.
    pub fn actor_gradient(&mut self) {
        let Self { network, store, indices, weights, noise, .. } = self;
        network.actor_gradient(store, Batch::new(indices, weights), Some(noise), &SacObjective { alpha: 0.1 });
    }
}

/// The objective of REINFORCE, with a return of 1 for every decision.
struct LogProb;

impl Objective for LogProb {
    fn decision(&self, _: usize, pi: Outputs) -> Evaluation {
        (-pi.log_prob).into()
    }
}

const VOCABULARY: u32 = 15;
const PROMPT: usize = 6;
const NEW: usize = 16;

/// A transformer of 0.1 million parameters, with prompts of 6 tokens and completions of 16.
pub struct Writing {
    policy: Transformer,
    prompts: Vec<Vec<u32>>,
    store: Store,
    indices: Vec<u32>,
    weights: Vec<f32>,
}

impl Writing {
    /// Creates the transformer and `texts` texts.
    pub fn new(texts: usize) -> Self {
        let context = PROMPT + NEW;
        let observations = Space::Text { vocabulary: VOCABULARY, context };
        let config = TransformerConfig { layers: 2, width: 64, heads: 4, feed_forward_width: 176, ..TransformerConfig::default() };
        let policy = Transformer::new(&config, &observations, &Space::Discrete(VOCABULARY), 1).expect("a transformer");
        let mut stream = Stream::new(1, Purpose::Problem, 0);
        let (mut rows, mut actions, mut prompts) = (Texts::new(context), Vec::new(), Vec::new());
        for _ in 0..texts {
            let tokens: Vec<u32> = (0..context).map(|_| stream.below(VOCABULARY)).collect();
            for length in PROMPT..context {
                rows.push(tokens[..length].iter().copied());
                actions.push(tokens[length]);
            }
            rows.end_text();
            prompts.push(tokens[..PROMPT].into());
        }
        let n = actions.len();
        let store = Store::of(Observations::Texts(rows), ActionRows::Discrete(actions));
        Self { policy, prompts, store, indices: (0..n as u32).collect(), weights: vec![1.0 / n as f32; n] }
    }

    /// Computes the gradient of minus the mean log-probability of all completion tokens.
    pub fn gradient(&mut self) {
        self.policy.gradient(&self.store, Batch::new(&self.indices, &self.weights), &LogProb);
    }

    /// Generates a completion for every prompt.
    pub fn generate(&self) {
        let mut actor = self.policy.actor();
        let n = self.prompts.len();
        let mut texts = self.prompts.clone();
        let mut streams: Vec<Stream> = (0..n as u64).map(|text| Stream::new(1, Purpose::Action, text)).collect();
        let mut actions = ActionRows::Discrete(vec![0; n]);
        let (mut observations, mut log_probs) = (Vec::new(), vec![0.0; n]);
        for _ in 0..NEW {
            let width = 1 + PROMPT + NEW;
            observations.resize(n * width, 0.0);
            texts.iter().zip(observations.chunks_exact_mut(width)).for_each(|(tokens, row)| text::write(tokens, row));
            actor.act(&observations, None, Choice::Sample(&mut streams), &mut actions, &mut log_probs);
            let ActionRows::Discrete(tokens) = &actions else { unreachable!("tokens are discrete") };
            texts.iter_mut().zip(tokens).for_each(|(text, token)| text.push(*token));
        }
    }
}

/// Environments, with random actions for 16 steps that every run repeats.
pub struct Worlds {
    vector: VecEnv,
    discrete: Vec<u32>,
    continuous: Vec<f32>,
}

impl Worlds {
    /// Creates `envs` copies of the environment `name`.
    pub fn new(name: &str, envs: usize) -> Self {
        let vector = registry::find(name).and_then(|world| world.vec_env(0..envs, 1)).expect("environments");
        let mut stream = Stream::new(1, Purpose::Action, 0);
        let choices = if let Space::Discrete(n) = vector.action_space() { n } else { 1 };
        let discrete = (0..16 * envs).map(|_| stream.below(choices)).collect();
        Self { vector, discrete, continuous: uniform(&mut stream, 16 * envs) }
    }

    /// Takes sixteen steps in each environment.
    pub fn run(&mut self) {
        let envs = self.vector.len();
        for (discrete, rows) in self.discrete.chunks(envs).zip(self.continuous.chunks(envs)) {
            let actions = match self.vector.action_space() {
                Space::Discrete(_) => Actions::Discrete(discrete),
                _ => Actions::Continuous { rows, width: 1 },
            };
            self.vector.step(actions).expect("actions that fit");
        }
    }
}
