//! Compares the transformer's gradients with central differences, and checks that a prefix's outputs depend only on the prefix.

use gradus_base::random::{Purpose, Stream};
use gradus_base::simd::Level;
use gradus_base::tensors::{Data, Tensors};
use gradus_base::threads;
use gradus_envs::{Space, text};
use gradus_nets::cpu::Transformer;
use gradus_nets::{
    ActionRows, Batch, Behaviour, Biases, Choice, Critic, Evaluation, FeedForward, LoraTargets, Network, Norm, Objective, Observations,
    Outputs, Policy, Positions, Store, Texts, TransformerConfig,
};

/// A running episode: its tokens, the choices with their log-probabilities, and its stream.
type Running = (Vec<u32>, Vec<(u32, f32)>, Stream);

const VOCABULARY: u32 = 11;
const CONTEXT: usize = 21;

fn spaces() -> (Space, Space) {
    (Space::Text { vocabulary: VOCABULARY, context: CONTEXT }, Space::Discrete(VOCABULARY))
}

fn configs() -> Vec<TransformerConfig> {
    let small = TransformerConfig { width: 32, heads: 2, feed_forward_width: 48, ..TransformerConfig::default() };
    vec![
        TransformerConfig { temperature: 0.7, ..small.clone() },
        TransformerConfig {
            layers: 1,
            positions: Positions::Learned,
            feed_forward: FeedForward::Gelu,
            critic: Critic::Separate,
            ..small.clone()
        },
        TransformerConfig { critic: Critic::Separate, shared_embeddings: true, ..small.clone() },
        // as Qwen2: shared keys and values, and biases of queries, keys and values
        TransformerConfig { heads: 4, width: 64, kv_heads: 2, biases: Biases::Qkv, rotary_base: 1e6, ..small.clone() },
        // as Qwen3: heads that are wider than the stream, norms of queries and keys, logits of their own
        TransformerConfig {
            heads: 3,
            kv_heads: 1,
            head_width: 16,
            qk_norm: true,
            tied: false,
            rotary_scaling: vec![8.0, 1.0, 4.0, 16.0],
            ..small.clone()
        },
        // as GPT-2
        TransformerConfig {
            positions: Positions::Learned,
            feed_forward: FeedForward::Gelu,
            norm: Norm::Layer,
            biases: Biases::All,
            critic: Critic::Separate,
            ..small.clone()
        },
        // adapters beside a model that is not trained
        TransformerConfig { lora_rank: 5, lora_alpha: 10.0, heads: 4, width: 64, kv_heads: 2, biases: Biases::Qkv, ..small.clone() },
        TransformerConfig {
            lora_rank: 16,
            lora_targets: LoraTargets::Attention,
            feed_forward: FeedForward::Gelu,
            tied: false,
            ..small.clone()
        },
        // and a critic with adapters of its own
        TransformerConfig { lora_rank: 3, critic: Critic::Separate, ..small },
    ]
}

/// A policy with larger parameters than the initial ones, so that it is far from linear.
fn policy(config: &TransformerConfig) -> Transformer {
    let (observations, actions) = spaces();
    let mut policy = Transformer::new(config, &observations, &actions, 5).unwrap();
    if config.lora_rank > 0 {
        policy.load_pretrained(&pretrained(config)).unwrap();
    }
    let mut stream = Stream::new(9, Purpose::Initialisation, 1);
    let parameters: Vec<f32> = policy.parameters().iter().map(|x| x * 1.5 + stream.uniform(-0.15, 0.15) as f32).collect();
    policy.set_parameters(&parameters);
    policy
}

/// The parameters of a model with this shape.
fn pretrained(config: &TransformerConfig) -> Tensors {
    let critic = if config.lora_rank > 0 { Critic::Head } else { config.critic };
    let mut tensors = policy(&TransformerConfig { lora_rank: 0, critic, ..config.clone() }).save();
    tensors.remove("value_head.weight");
    tensors
}

/// Episodes of random tokens: the prompt and every longer prefix are decisions. Up to four episodes in a row have the same prompt. The
/// first episode ends at the end of the context, and some episodes end with their first decision.
fn store(episodes: usize, seed: u64) -> Store {
    let mut stream = Stream::new(seed, Purpose::Problem, 0);
    let (mut texts, mut actions) = (Texts::new(CONTEXT), Vec::new());
    let mut prompt = Vec::new();
    for episode in 0..episodes {
        if episode % 4 == 0 || stream.below(4) == 0 {
            prompt = (0..1 + stream.below(4)).map(|_| stream.below(VOCABULARY)).collect();
        }
        let mut tokens: Vec<u32> = prompt.clone();
        let length = if episode == 0 { CONTEXT } else { tokens.len() + stream.below(7) as usize };
        loop {
            texts.push(tokens.iter().copied());
            let action = stream.below(VOCABULARY);
            actions.push(action);
            if tokens.len() >= length {
                break;
            }
            tokens.push(action);
        }
        texts.end_text();
    }
    Store::of(Observations::Texts(texts), ActionRows::Discrete(actions))
}

/// A loss that is nonlinear in all outputs, with different coefficients for each decision.
struct Curved;

impl Objective for Curved {
    fn decision(&self, index: usize, pi: Outputs) -> Evaluation {
        let a = 0.3 + 0.1 * (index % 5) as f32;
        let value_loss = 0.5 * (pi.value - a).squared();
        (a * pi.log_prob.squared() - 0.2 * pi.entropy + value_loss + 0.6 * pi.kl_old + a * pi.kl_ref).into()
    }
}

fn distributions(n: usize, seed: u64) -> Vec<f32> {
    let mut stream = Stream::new(seed, Purpose::Problem, 1);
    let mut rows = Vec::new();
    for _ in 0..n {
        let z: Vec<f64> = (0..VOCABULARY).map(|_| stream.uniform(0.2, 2.0)).collect();
        let sum: f64 = z.iter().sum();
        rows.extend(z.iter().map(|z| (z / sum).ln() as f32));
    }
    rows
}

#[test]
fn gradients_match_central_differences() {
    for (number, config) in configs().iter().chain(&configs()).enumerate() {
        let mut policy = policy(config);
        let store = store(6, 1);
        let n = store.actions.len();
        // all decisions or every second decision, in reverse order, followed by the last decision
        let mut indices: Vec<u32> = (0..n as u32).step_by(1 + number % 2).rev().collect();
        indices.push(n as u32 - 1);
        let weights: Vec<f32> = (0..indices.len()).map(|i| 0.02 + 0.01 * (i % 3) as f32).collect();
        let (old, reference) = (distributions(n, 3), distributions(n, 4));
        let batch = Batch { old: Some(&old), reference: Some(&reference), ..Batch::new(&indices, &weights) };
        policy.gradient(&store, batch, &Curved);
        let gradient = policy.last_gradient().to_vec();
        let parameters = policy.parameters().to_vec();
        let scale = f64::from(policy.gradient_norm()) / (parameters.len() as f64).sqrt();
        // slopes are compared along random directions, each of at most 64 parameters, in every part of the vector
        let mut stream = Stream::new(17, Purpose::Problem, 2);
        let (mut worst, mut checked) = (0.0_f64, 0);
        for begin in (0..parameters.len()).step_by(parameters.len() / 60) {
            let direction: Vec<(usize, f32)> = (0..64)
                .map(|_| (begin + stream.below((parameters.len() - begin).min(400) as u32) as usize, stream.uniform(-1.0, 1.0) as f32))
                .collect();
            let mut loss = |step: f32| {
                let mut moved = parameters.clone();
                direction.iter().for_each(|(i, d)| moved[*i] += step * d);
                policy.set_parameters(&moved);
                policy.evaluate(&store, batch, &Curved).loss
            };
            let h = 2e-3;
            let slope = (8.0 * (loss(h) - loss(-h)) - (loss(2.0 * h) - loss(-2.0 * h))) / (12.0 * f64::from(h));
            // the sum is over the entries of the direction, because a direction may contain a parameter twice; the tolerance covers the
            // rounding of the moved parameters
            let expected: f64 = direction.iter().map(|(i, d)| f64::from(gradient[*i]) * f64::from(*d)).sum();
            worst = worst.max((slope - expected).abs() / (expected.abs() + 8.0 * scale));
            checked += 1;
        }
        println!("configuration {number}: worst {worst:.2e} of {checked}, rms gradient {scale:.3e}");
        assert!(worst < 2e-3, "configuration {number}: {worst}");
    }
}

/// Texts with a common prompt are computed together. Their gradient is the sum of the gradients of the single texts.
#[test]
fn sharing_a_prompt_does_not_change_the_gradient() {
    let store = store(40, 6);
    let n = store.actions.len();
    let text = |i: usize| store.texts().prefixes()[i].text;
    let shares =
        |i: usize| i > 0 && text(i) == text(i - 1) + 1 && store.texts().prefix(i) == store.texts().prefix(first(&store, text(i) - 1));
    assert!((0..n).filter(|i| shares(*i)).count() > 15, "too few prompts are shared");
    for config in configs() {
        let mut policy = policy(&config);
        let mut gradient = |indices: &[u32]| {
            policy.gradient(&store, Batch::new(indices, &vec![0.01; indices.len()]), &Curved);
            policy.last_gradient().to_vec()
        };
        let together = gradient(&(0..n as u32).collect::<Vec<_>>());
        let mut sum = vec![0.0_f64; together.len()];
        for alone in (0..n as u32).collect::<Vec<_>>().chunk_by(|a, b| text(*a as usize) == text(*b as usize)) {
            sum.iter_mut().zip(gradient(alone)).for_each(|(sum, g)| *sum += f64::from(g));
        }
        let norm = sum.iter().map(|g| g * g).sum::<f64>().sqrt();
        let apart = sum.iter().zip(&together).map(|(a, b)| (a - f64::from(*b)).powi(2)).sum::<f64>().sqrt();
        assert!(apart < 1e-6 * norm, "the gradients are {apart} apart, their norm is {norm}");
    }
}

/// The log-probabilities of a tile's decisions may be held in parts: the outputs are the same bits.
#[test]
fn the_heads_may_be_computed_in_chunks() {
    let store = store(40, 8);
    let n = store.actions.len();
    let indices: Vec<u32> = (0..n as u32).collect();
    let old = distributions(n, 4);
    let weights = vec![1.0 / n as f32; n];
    let batch = Batch { old: Some(&old), reference: Some(&old), ..Batch::new(&indices, &weights) };
    for config in configs() {
        let (mut whole, mut parts) = (policy(&config), policy(&config).with_chunk(3));
        assert_eq!(said(&mut whole, &store), said(&mut parts, &store));
        assert_eq!(whole.gradient(&store, batch, &Curved), parts.gradient(&store, batch, &Curved));
        let (a, b) = (whole.last_gradient(), parts.last_gradient());
        let norm = a.iter().map(|g| g * g).sum::<f32>().sqrt();
        let apart = a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f32>().sqrt();
        assert!(apart < 1e-6 * norm, "the gradients are {apart} apart, their norm is {norm}");
    }
}

/// Returns the index of a text's first decision.
fn first(store: &Store, text: u32) -> usize {
    store.texts().prefixes().iter().position(|prefix| prefix.text == text).unwrap()
}

/// Returns a policy's log-probabilities, values and distributions for a store.
fn said(policy: &mut Transformer, store: &Store) -> (Vec<f32>, Vec<f32>, Vec<f32>) {
    let (mut log_probs, mut values, mut distributions) = (Vec::new(), Vec::new(), Vec::new());
    policy.log_probs(store, &mut log_probs);
    policy.values(store, &mut values);
    policy.distributions(store, &mut distributions);
    (log_probs, values, distributions)
}

#[test]
fn a_prefix_has_the_same_bits_alone_and_in_a_batch() {
    for config in configs() {
        let mut policy = policy(&config);
        let store = store(60, 2);
        let (log_probs, values, distributions) = said(&mut policy, &store);
        let ActionRows::Discrete(actions) = &store.actions else { unreachable!() };
        for i in (0..actions.len()).step_by(7) {
            let mut texts = Texts::new(CONTEXT);
            texts.push(store.texts().prefix(i).iter().copied());
            let alone = Store::of(Observations::Texts(texts), ActionRows::Discrete(vec![actions[i]]));
            let n = VOCABULARY as usize;
            assert_eq!(said(&mut policy, &alone), (vec![log_probs[i]], vec![values[i]], distributions[i * n..(i + 1) * n].to_vec()));
        }
    }
}

#[test]
fn results_do_not_depend_on_threads_and_instruction_sets() {
    let store = store(200, 3);
    let indices: Vec<u32> = (0..store.actions.len() as u32).collect();
    let weights = vec![1.0 / indices.len() as f32; indices.len()];
    for config in configs() {
        let run = |level: Level, n: usize| {
            threads::with(n, || {
                let mut policy = policy(&config).with_level(level);
                let sums = policy.gradient(&store, Batch::new(&indices, &weights), &Curved);
                (sums, policy.last_gradient().to_vec(), said(&mut policy, &store))
            })
        };
        let expected = run(Level::best(), 1);
        for n in [2, 5] {
            assert_eq!(run(Level::best(), n), expected, "{n} threads");
        }
        for level in Level::available() {
            assert_eq!(run(level, 2), expected, "{level:?}");
        }
    }
}

/// Groups of four episodes share a prompt, and a finished episode's slot is reused. The log-probabilities of an actor during generation
/// equal those of the policy on the complete texts.
#[test]
fn a_prefix_has_the_same_bits_during_generation_and_afterwards() {
    for config in configs() {
        let mut policy = policy(&config);
        for slots in [1, 3, 8] {
            let (mut texts, mut actions, mut said_on_the_way) = (Texts::new(CONTEXT), Vec::new(), Vec::new());
            let mut finished = Vec::new();
            {
                let mut actor = policy.actor();
                let mut next = 0;
                let mut running: Vec<Running> = Vec::new();
                let begin = |episode: u32| {
                    let prompt: Vec<u32> = (0..3).map(|i| (episode / 4 * 5 + i) % VOCABULARY).collect();
                    (prompt, Vec::new(), Stream::new(1, Purpose::Action, u64::from(episode)))
                };
                loop {
                    while running.len() < slots && next < 16 {
                        running.push(begin(next));
                        next += 1;
                    }
                    if running.is_empty() {
                        break;
                    }
                    let mut rows = vec![0.0; running.len() * (CONTEXT + 1)];
                    for (row, (tokens, ..)) in rows.chunks_exact_mut(CONTEXT + 1).zip(&running) {
                        text::write(tokens, row);
                    }
                    let mut streams: Vec<Stream> = running.iter().map(|(.., stream)| stream.clone()).collect();
                    let mut chosen = ActionRows::Discrete(Vec::new());
                    let mut log_probs = vec![0.0; running.len()];
                    actor.act(&rows, None, Choice::Sample(&mut streams), &mut chosen, &mut log_probs);
                    let ActionRows::Discrete(chosen) = chosen else { unreachable!() };
                    for (i, stream) in streams.into_iter().enumerate() {
                        let (tokens, said, own) = &mut running[i];
                        *own = stream;
                        said.push((chosen[i], log_probs[i]));
                        tokens.push(chosen[i]);
                    }
                    // the rows after a finished episode's row move up
                    let (over, going): (Vec<_>, Vec<_>) =
                        running.into_iter().partition(|(tokens, said, _)| said.last().unwrap().0 == 0 || tokens.len() > CONTEXT - 2);
                    finished.extend(over);
                    running = going;
                }
            }
            for (tokens, said, _) in finished {
                let prompt = tokens.len() - said.len();
                for (i, (action, log_prob)) in said.into_iter().enumerate() {
                    texts.push(tokens[..prompt + i].iter().copied());
                    actions.push(action);
                    said_on_the_way.push(log_prob);
                }
                texts.end_text();
            }
            let store = Store::of(Observations::Texts(texts), ActionRows::Discrete(actions));
            let mut read_again = Vec::new();
            policy.log_probs(&store, &mut read_again);
            assert_eq!(read_again, said_on_the_way, "{slots} slots");
        }
    }
}

/// Before their training, adapters change nothing: a model with them is the model without. Afterwards, a model whose matrices have taken in scale B A is the same.
#[test]
fn adapters_add_a_product_of_two_small_matrices() {
    let (observations, actions) = spaces();
    for config in configs().into_iter().filter(|config| config.lora_rank > 0) {
        let store = store(12, 3);
        let of = |policy: &mut Transformer| {
            let mut log_probs = Vec::new();
            policy.log_probs(&store, &mut log_probs);
            log_probs
        };
        let model = pretrained(&config);
        let plain = TransformerConfig { lora_rank: 0, critic: Critic::Head, ..config.clone() };
        let mut alone = Transformer::new(&plain, &observations, &actions, 1).unwrap();
        alone.load_pretrained(&model).unwrap();
        let mut fresh = Transformer::new(&config, &observations, &actions, 1).unwrap();
        fresh.load_pretrained(&model).unwrap();
        assert_eq!(of(&mut fresh), of(&mut alone));

        let mut adapted = policy(&config);
        let saved = adapted.save();
        assert!(saved.keys().all(|name| name.contains(".lora_") || name.ends_with("value_head.weight")), "{:?}", saved.keys());
        // what is not saved is not trained: the numbers beyond the rank are 0
        adapted.load(&saved).unwrap();
        let mut merged = model.clone();
        for (name, b) in saved.iter().filter(|(name, _)| name.starts_with("model.") && name.ends_with("lora_B.weight")) {
            let a = &saved[&name.replace("lora_B", "lora_A")];
            let matrix = merged.get_mut(&name.replace("lora_B.", "")).unwrap();
            let (outputs, rank, inputs) = (b.shape[0], b.shape[1], a.shape[1]);
            let (Data::F32(b), Data::F32(a), Data::F32(matrix)) = (&b.data, &a.data, &mut matrix.data) else { panic!("numbers of f32") };
            assert_eq!(rank, config.lora_rank);
            for output in 0..outputs {
                for input in 0..inputs {
                    let sum: f64 = (0..rank).map(|i| f64::from(b[output * rank + i]) * f64::from(a[i * inputs + input])).sum();
                    matrix[output * inputs + input] += config.lora_alpha / rank as f32 * sum as f32;
                }
            }
        }
        for (name, tensor) in adapted.merged().unwrap() {
            let (Data::F32(ours), Data::F32(expected)) = (&tensor.data, &merged[&name].data) else { panic!("{name}") };
            assert!(ours.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-5), "{name}");
        }
        let mut whole = Transformer::new(&plain, &observations, &actions, 1).unwrap();
        whole.load_pretrained(&merged).unwrap();
        let worst = of(&mut adapted).iter().zip(of(&mut whole)).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(worst < 1e-4, "{worst}");
        assert!(of(&mut adapted) != of(&mut alone));
    }
}

/// A critic with layers of its own begins as a copy of the model, too.
#[test]
fn a_separate_critic_begins_as_the_model() {
    let (observations, actions) = spaces();
    for config in configs().into_iter().filter(|config| config.critic == Critic::Separate && config.lora_rank == 0) {
        let mut model = pretrained(&config);
        model.retain(|name, _| !name.starts_with("critic."));
        let mut policy = Transformer::new(&config, &observations, &actions, 1).unwrap();
        policy.load_pretrained(&model).unwrap();
        let saved = policy.save();
        for (name, tensor) in saved.iter().filter(|(name, _)| !name.ends_with("value_head.weight")) {
            assert_eq!(tensor, &model[&name.replace("critic.", "model.")], "{name}");
        }
        assert!(saved.keys().any(|name| name.starts_with("critic.layers.0")));
    }
}

/// With adapters, policy and critic are the same model, each beside adapters of its own.
#[test]
fn a_separate_critic_has_adapters_of_its_own() {
    let (observations, actions) = spaces();
    let with_head = TransformerConfig { lora_rank: 3, width: 32, heads: 2, feed_forward_width: 48, ..TransformerConfig::default() };
    let with_two = TransformerConfig { critic: Critic::Separate, ..with_head.clone() };
    let (model, store) = (pretrained(&with_two), store(12, 3));
    let both = |policy: &mut Transformer| {
        let (mut log_probs, mut values) = (Vec::new(), Vec::new());
        policy.log_probs(&store, &mut log_probs);
        policy.values(&store, &mut values);
        (log_probs, values)
    };
    let mut two = policy(&with_two);
    let saved = two.save();
    // the numbers beyond the rank are 0
    two.load(&saved).unwrap();
    let (log_probs, values) = both(&mut two);
    let of = |prefix: &str| {
        let own = saved.iter().filter(|(name, _)| name.starts_with(prefix));
        let mut own: Tensors = own.map(|(name, tensor)| (name.replace(prefix, "model."), tensor.clone())).collect();
        own.remove("model.value_head.weight");
        own.insert("value_head.weight".into(), saved["critic.value_head.weight"].clone());
        let mut one = Transformer::new(&with_head, &observations, &actions, 1).unwrap();
        one.load_pretrained(&model).unwrap();
        one.load(&own).unwrap();
        both(&mut one)
    };
    let (as_policy, as_critic) = (of("model."), of("critic."));
    assert_eq!((log_probs, values), (as_policy.0.clone(), as_critic.1.clone()));
    assert!(as_policy.0 != as_critic.0 && as_policy.1 != as_critic.1);
    let names: Vec<&str> = two.groups().iter().map(|group| group.name).collect();
    assert_eq!(names, ["actor", "critic"]);
}
