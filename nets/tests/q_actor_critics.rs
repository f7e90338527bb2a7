//! Networks of continuous actions: gradients through the action, the same bits at every level and for any number of threads, acting, target
//! networks, checkpoints.

use gradus_base::random::{Purpose, Stream};
use gradus_base::simd::Level;
use gradus_base::threads;
use gradus_envs::Space;
use gradus_nets::cpu::QActorCritic;
use gradus_nets::loss::LogProb;
use gradus_nets::{
    ActionRows, Activation, ActorObjective, Batch, Behaviour, Choice, Evaluation, LogStdBounds, Network, NetworkConfig, Of, OptimiserStep,
    QActor, QActorCritic as _, QActorHead, QValues, Rule, Store, ValueObjective,
};

/// The squared errors of all critics to targets that depend on the decision.
struct Squared;

impl ValueObjective for Squared {
    fn decision(&self, index: usize, q: QValues<'_>) -> Evaluation {
        let first = q.values()[0];
        let loss = q.sum(|k, q| (q - ((index * 7 + k * 3) % 5) as f32).squared());
        loss.with_diagnostics([first, loss.value()]).with_error(first - index as f32)
    }
}

/// A smooth loss of log pi and of all Q_k that the loss reads.
struct Smooth {
    critics: usize,
}

impl ActorObjective for Smooth {
    fn critics(&self, _: usize) -> usize {
        self.critics
    }

    fn decision(&self, index: usize, log_prob: Of<LogProb>, q: QValues<'_>) -> Evaluation {
        let c = 0.1 + 0.05 * (index % 3) as f32;
        let loss = c * log_prob - q.sum(|k, q| (1.0 + k as f32) * (q + 0.5 * q.squared()));
        loss.with_diagnostics([log_prob.value()])
    }
}

/// Minus the smallest Q_k. The derivative with respect to the others is said to be `other`.
struct Least {
    other: f32,
}

impl ActorObjective for Least {
    fn decision(&self, index: usize, log_prob: Of<LogProb>, q: QValues<'_>) -> Evaluation {
        let (c, values) = (0.1 + 0.05 * (index % 3) as f32, q.values());
        let least = (1..values.len()).fold(0, |least, k| if values[k] < values[least] { k } else { least });
        (c * log_prob + q.sum(|k, q| if k == least { -q } else { q.function(0.0, self.other) })).into()
    }
}

const STEP: OptimiserStep = OptimiserStep {
    rule: Rule::Adam,
    epsilon: 1e-8,
    learning_rate: 0.003,
    critic_learning_rate: 0.01,
    weight_decay: 0.0,
    max_grad_norm: f32::INFINITY,
    clip_per_group: true,
};

const CLAMP: QActor = QActor::Squashed(LogStdBounds::Clamp);

fn configs() -> Vec<(NetworkConfig, QActorHead, usize)> {
    let config = |hidden: &[usize], activation, gsde| NetworkConfig {
        hidden: hidden.into(),
        activation,
        orthogonal: false,
        gsde,
        gsde_sample_every: 2,
        log_std_init: -1.0,
        ..NetworkConfig::default()
    };
    let head = |actor, critics| QActorHead { actor, critics };
    vec![
        (config(&[256, 256], Activation::Relu, false), head(CLAMP, 2), 1),
        (config(&[64, 40], Activation::Tanh, false), head(QActor::Deterministic, 2), 3),
        (config(&[20, 7], Activation::Tanh, false), head(QActor::Squashed(LogStdBounds::Tanh), 3), 2),
        (config(&[33, 34], Activation::Relu, true), head(CLAMP, 2), 2),
        (NetworkConfig { layer_norm: true, orthogonal: true, ..config(&[18], Activation::Relu, false) }, head(CLAMP, 1), 17),
        (config(&[], Activation::Tanh, true), head(CLAMP, 1), 2),
        (config(&[], Activation::Relu, false), head(QActor::Deterministic, 1), 1),
    ]
}

fn spaces(actions: usize) -> (Space, Space) {
    let low = (0..actions).map(|j| -2.0 - j as f32).collect();
    (Space::Box { low: vec![-3.0; 5], high: vec![3.0; 5] }, Space::Box { low, high: vec![1.0; actions] })
}

fn network(config: &NetworkConfig, head: QActorHead, actions: usize) -> QActorCritic {
    let (observations, actions) = spaces(actions);
    QActorCritic::new(config, head, &observations, &actions, 3).unwrap()
}

fn store(rows: usize, actions: usize) -> Store {
    let mut stream = Stream::new(8, Purpose::Environment, 0);
    let observations = (0..(rows + 3) * 5).map(|_| stream.uniform(-3.0, 3.0) as f32).collect();
    let actions = ActionRows::Continuous { rows: (0..rows * actions).map(|_| stream.uniform(-2.0, 1.0) as f32).collect(), width: actions };
    Store::new(5, observations, actions)
}

fn noise(number: u64) -> Stream {
    Stream::new(5, Purpose::Action, number)
}

/// Returns everything that three updates of a network compute.
fn updates(mut network: QActorCritic, rows: usize, actions: usize) -> Vec<u32> {
    let store = store(rows, actions);
    let indices: Vec<u32> = (0..rows as u32).rev().collect();
    let weights: Vec<f32> = (0..rows).map(|i| if i % 11 == 5 { 0.0 } else { (1 + i % 3) as f32 / rows as f32 }).collect();
    let batch = Batch::new(&indices, &weights);
    let (mut target, mut numbers) = (network.snapshot(), Vec::new());
    let (mut chosen, mut log_probs, mut q) = (Vec::new(), Vec::new(), Vec::new());
    for update in 0..3 {
        network.actions(&store, 1..rows + 3, Some(&mut noise(update)), &mut chosen, &mut log_probs);
        target.q_values(&store, 1..rows + 3, &chosen, &mut q);
        numbers.extend(chosen.iter().chain(&log_probs).chain(&q));
        let evaluated = network.critic_gradient(&store, batch, &Squared);
        numbers.extend([evaluated.sums.loss as f32, evaluated.sums.diagnostics[1] as f32, network.gradient_norm()]);
        numbers.extend_from_slice(&evaluated.errors);
        network.apply(&STEP);
        numbers.extend_from_slice(network.last_gradient());
        let critics = network.head().critics;
        let sums = network.actor_gradient(&store, batch, Some(&mut noise(10 + update)), &Smooth { critics });
        numbers.extend([sums.loss as f32, sums.diagnostics[0] as f32, network.gradient_norm()]);
        network.apply(&STEP);
        network.actor_gradient(&store, batch, None, &Least { other: 0.0 });
        network.apply(&STEP);
        target.track(&network, 0.3);
    }
    numbers.extend_from_slice(network.parameters());
    numbers.extend_from_slice(target.parameters());
    numbers.iter().map(|number| number.to_bits()).collect()
}

#[test]
fn every_level_and_every_number_of_threads_gives_the_same_bits() {
    for (config, head, actions) in configs() {
        // more rows than the tiles that are kept at once, but not with wide layers, which are slow without vector instructions
        let is_wide = config.hidden.iter().any(|width| *width > 20);
        for rows in if is_wide { [1, 37, 70] } else { [1, 37, 2100] } {
            let first = updates(network(&config, head, actions).with_level(Level::Portable), rows, actions);
            for level in Level::available() {
                for n in [1, 2, 5] {
                    let other = threads::with(n, || updates(network(&config, head, actions).with_level(level), rows, actions));
                    assert!(first == other, "{config:?}, {head:?}, {rows} rows: {level:?} with {n} threads differs");
                }
            }
        }
    }
}

/// Compares a gradient with central differences of `loss` in twelve random directions within `range`.
fn assert_is_gradient(network: &mut QActorCritic, range: std::ops::Range<usize>, loss: impl Fn(&mut QActorCritic) -> f64, case: &str) {
    loss(network);
    let (gradient, start) = (network.last_gradient().to_vec(), network.parameters().to_vec());
    for direction in 0..12 {
        // only real parameters move, because padding must stay 0
        let mut stream = Stream::new(direction, Purpose::Environment, 1);
        let moves: Vec<f32> = (0..gradient.len())
            .map(|i| if range.contains(&i) && gradient[i] != 0.0 { stream.uniform(-1.0, 1.0) as f32 } else { 0.0 })
            .collect();
        let step = 2e-3;
        let mut moved = |step: f32| {
            network.set_parameters(&start.iter().zip(&moves).map(|(p, m)| p + step * m).collect::<Vec<f32>>());
            loss(network)
        };
        let got = (moved(step) - moved(-step)) / (2.0 * f64::from(step));
        let expected: f64 = gradient.iter().zip(&moves).map(|(g, m)| f64::from(*g) * f64::from(*m)).sum();
        assert!((got - expected).abs() <= 2e-3 * expected.abs().max(1.0), "{case}: expected {expected}, got {got}");
    }
    network.set_parameters(&start);
}

#[test]
fn gradients_are_those_of_central_differences() {
    for (mut config, head, actions) in configs() {
        // the derivative of tanh is continuous
        config.activation = Activation::Tanh;
        config.hidden.iter_mut().for_each(|width| *width = (*width).min(33));
        let (mut network, store) = (network(&config, head, actions), store(40, actions));
        // far from the bounds of the means, where the derivative jumps
        let small: Vec<f32> = network.parameters().iter().map(|parameter| 0.5 * parameter).collect();
        network.set_parameters(&small);
        let (indices, weights): (Vec<u32>, Vec<f32>) = (0..40).map(|i| (i, 0.02 + 0.001 * i as f32)).unzip();
        let (batch, groups) = (Batch::new(&indices, &weights), network.groups());
        let [actor, critic] = &groups[..] else { panic!("two groups") };
        let case = |what: &str| format!("{what} of {config:?}, {head:?}");
        let of_critics = |network: &mut QActorCritic| network.critic_gradient(&store, batch, &Squared).sums.loss;
        assert_is_gradient(&mut network, critic.range.clone(), of_critics, &case("critics"));
        for critics in [1, head.critics] {
            let of_actor =
                |network: &mut QActorCritic| network.actor_gradient(&store, batch, Some(&mut noise(0)), &Smooth { critics }).loss;
            assert_is_gradient(&mut network, actor.range.clone(), of_actor, &case("actor"));
            let greedy = |network: &mut QActorCritic| network.actor_gradient(&store, batch, None, &Smooth { critics }).loss;
            assert_is_gradient(&mut network, actor.range.clone(), greedy, &case("actor without noise"));
        }
    }
}

/// The error of each decision is Q_1(s, a) less the number of the decision.
#[test]
fn errors_are_in_the_order_of_the_batch() {
    for (config, head, actions) in configs() {
        let (mut network, store, mut q) = (network(&config, head, actions), store(70, actions), Vec::new());
        let ActionRows::Continuous { rows, .. } = &store.actions else { panic!("expected rows") };
        // the network takes scaled actions: -1 and 1 are the bounds
        let scaled: Vec<f32> = rows
            .iter()
            .enumerate()
            .map(|(i, a)| {
                let low = -2.0 - (i % actions) as f32;
                2.0 * (a - low) / (1.0 - low) - 1.0
            })
            .collect();
        network.q_values(&store, 0..70, &scaled, &mut q);
        // not all decisions, and some of them twice
        let indices: Vec<u32> = (0..100).map(|i| i * 37 % 69).collect();
        let weights: Vec<f32> = (0..100).map(|i| if i % 9 == 4 { 0.0 } else { 0.01 }).collect();
        let errors = network.critic_gradient(&store, Batch::new(&indices, &weights), &Squared).errors;
        assert_eq!(errors.len(), 100);
        for ((got, i), weight) in errors.iter().zip(&indices).zip(&weights) {
            let expected = if *weight == 0.0 { 0.0 } else { q[*i as usize * head.critics] - *i as f32 };
            assert!((got - expected).abs() < 1e-4, "{config:?}, decision {i}: expected {expected}, got {got}");
        }
    }
}

/// The rows in which the loss does not depend on a critic are left out of its backward pass.
#[test]
fn rows_that_do_not_depend_on_a_critic_add_nothing() {
    for (config, head, actions) in configs() {
        let (mut network, store) = (network(&config, head, actions), store(70, actions));
        let (indices, weights): (Vec<u32>, Vec<f32>) = (0..70).map(|i| (69 - i, 0.01 + 0.001 * i as f32)).unzip();
        let mut gradient = |other: f32| {
            network.actor_gradient(&store, Batch::new(&indices, &weights), Some(&mut noise(0)), &Least { other });
            network.last_gradient().to_vec()
        };
        let (without, with) = (gradient(0.0), gradient(1e-30));
        assert!(without.iter().any(|d| *d != 0.0) && without == with, "{config:?}, {head:?}");
    }
}

/// The actor's gradient leaves the critics as they are, and the other way round.
#[test]
fn an_optimiser_step_moves_one_group() {
    let (config, head, actions) = configs().swap_remove(0);
    let (mut network, store) = (network(&config, head, actions), store(40, actions));
    let (indices, weights) = ((0..40).collect::<Vec<u32>>(), vec![0.025; 40]);
    let of_actor = network.groups()[0].range.clone();
    for is_actor in [true, false] {
        let before = network.parameters().to_vec();
        if is_actor {
            network.actor_gradient(&store, Batch::new(&indices, &weights), Some(&mut noise(0)), &Smooth { critics: 2 });
        } else {
            network.critic_gradient(&store, Batch::new(&indices, &weights), &Squared);
        }
        network.apply(&STEP);
        let has_moved = |range: std::ops::Range<usize>| before[range.clone()] != network.parameters()[range];
        assert_eq!((has_moved(of_actor.clone()), has_moved(of_actor.end..before.len())), (is_actor, !is_actor));
    }
}

/// What the actor does in the environment is what the network computes of the same noise, scaled to the bounds.
#[test]
fn actions_are_scaled_to_the_bounds() {
    for (config, head, actions) in configs() {
        let (mut network, store) = (network(&config, head, actions), store(40, actions));
        let observations: Vec<f32> = (0..40).flat_map(|row| store.observation(row).to_vec()).collect();
        let (mut scaled, mut of_scaled) = (Vec::new(), Vec::new());
        network.actions(&store, 0..40, None, &mut scaled, &mut of_scaled);
        let (mut chosen, mut log_probs) = (ActionRows::empty(&spaces(actions).1), vec![f32::NAN; 40]);
        network.actor().act(&observations, None, Choice::Greedy, &mut chosen, &mut log_probs);
        let ActionRows::Continuous { rows, .. } = chosen else { panic!("expected rows") };
        for (row, (chosen, scaled)) in rows.chunks(actions).zip(scaled.chunks(actions)).enumerate() {
            let mut log_scale = 0.0;
            for (j, (a, scaled)) in chosen.iter().zip(scaled).enumerate() {
                let (low, high) = (-2.0 - j as f32, 1.0_f32);
                log_scale += ((high - low) / 2.0).ln();
                assert!((a - (low + (scaled + 1.0) / 2.0 * (high - low))).abs() < 1e-5 && (low..=high).contains(a), "row {row}: {a}");
            }
            let expected = if head.actor == QActor::Deterministic { 0.0 } else { of_scaled[row] - log_scale };
            assert!((log_probs[row] - expected).abs() < 1e-4, "row {row}: expected {expected}, got {}", log_probs[row]);
        }
    }
}

/// What is shown of an observation is the smallest estimate for the action that the actor takes in the environment.
#[test]
fn the_value_is_the_smallest_estimate_for_the_greedy_action() {
    for (config, head, actions) in configs() {
        let (mut network, store) = (network(&config, head, actions), store(70, actions));
        let observations: Vec<f32> = (0..70).flat_map(|row| store.observation(row).to_vec()).collect();
        let (mut chosen, mut values) = (ActionRows::empty(&spaces(actions).1), Vec::new());
        network.actor().act(&observations, None, Choice::Greedy, &mut chosen, &mut [0.0; 70]);
        let ActionRows::Continuous { rows, .. } = chosen else { panic!("expected rows") };
        let scaled: Vec<f32> =
            rows.iter().enumerate().map(|(i, a)| 2.0 * (a + 2.0 + (i % actions) as f32) / (3.0 + (i % actions) as f32) - 1.0).collect();
        network.q_values(&store, 0..70, &scaled, &mut values);
        let looks = network.inspect(&observations);
        assert_eq!(looks.len(), 70);
        for (row, look) in looks.iter().enumerate() {
            let q = &values[row * head.critics..(row + 1) * head.critics];
            let expected = f64::from(q.iter().copied().fold(f32::INFINITY, f32::min));
            assert!((look.value.unwrap() - expected).abs() < 1e-4, "row {row}: expected the smallest of {q:?}, got {look:?}");
        }
    }
}

/// Sampled actions have noise of their own in each row, and a deterministic actor has none. With gSDE and two calls per draw, the noise of a
/// row stays the same for two calls.
#[test]
fn rows_have_noise_of_their_own() {
    for (config, head, actions) in configs() {
        let (network, observations) = (network(&config, head, actions), [0.5; 10]);
        let mut streams = [noise(1), noise(2)];
        let mut actor = network.actor();
        let mut act = |choice: Choice<'_>| {
            let (mut chosen, mut log_probs) = (ActionRows::empty(&spaces(actions).1), [0.0; 2]);
            actor.act(&observations, None, choice, &mut chosen, &mut log_probs);
            let ActionRows::Continuous { rows, .. } = chosen else { panic!("expected rows") };
            rows
        };
        let calls: Vec<_> = (0..3).map(|_| act(Choice::Sample(&mut streams))).collect();
        let is_deterministic = head.actor == QActor::Deterministic;
        assert_eq!(calls[0][..actions] == calls[0][actions..], is_deterministic, "{config:?}");
        assert_eq!(calls[0] == calls[1], is_deterministic || config.gsde, "{config:?}");
        assert_eq!(calls[1] == calls[2], is_deterministic, "{config:?}");
        assert_eq!(act(Choice::Greedy)[..actions], act(Choice::Greedy)[actions..]);
    }
}

#[test]
fn a_saved_network_continues_alike() {
    for (config, head, actions) in configs() {
        let (store, indices, weights) = (store(30, actions), (0..30).collect::<Vec<u32>>(), vec![0.1; 30]);
        let batch = Batch::new(&indices, &weights);
        let mut first = network(&config, head, actions);
        let train = |network: &mut QActorCritic| {
            network.critic_gradient(&store, batch, &Squared);
            network.apply(&STEP);
            network.actor_gradient(&store, batch, Some(&mut noise(1)), &Smooth { critics: 1 });
            network.apply(&STEP);
        };
        train(&mut first);
        let mut second = QActorCritic::new(&config, head, &spaces(actions).0, &spaces(actions).1, 99).unwrap();
        assert_ne!(first.parameters(), second.parameters());
        second.load(&first.save()).unwrap();
        second.load_optimiser(&first.save_optimiser()).unwrap();
        (0..2).for_each(|_| [&mut first, &mut second].into_iter().for_each(train));
        assert_eq!(first.parameters(), second.parameters());
        // a snapshot has its own memory
        let copy = first.snapshot();
        train(&mut first);
        assert!(copy.parameters() == second.parameters() && copy.parameters() != first.parameters());
    }
}

#[test]
fn settings_that_do_not_fit_are_named_in_one_line() {
    let message = |config: NetworkConfig, actor: QActor, actions: &Space| {
        let head = QActorHead { actor, critics: 2 };
        QActorCritic::new(&config, head, &spaces(1).0, actions, 1).err().unwrap().to_string()
    };
    let (config, actions) = (NetworkConfig::default, spaces(1).1);
    let shared = message(NetworkConfig { shared: true, ..config() }, CLAMP, &actions);
    assert_eq!(shared, "network.shared: expected false, because each critic of actions is a network of its own, got true");
    let gsde = message(NetworkConfig { gsde: true, ..config() }, QActor::Deterministic, &actions);
    assert_eq!(gsde, "network.gsde: expected false, because the actor is deterministic, got true");
    for space in
        [Space::Discrete(2), Space::Box { low: vec![f32::NEG_INFINITY], high: vec![1.0] }, Space::Box { low: vec![1.0], high: vec![1.0] }]
    {
        let unbounded = message(config(), CLAMP, &space);
        assert!(unbounded.starts_with("an actor of scaled actions needs a box with finite bounds, got "), "{unbounded}");
    }
    assert_eq!(
        message(NetworkConfig { hidden: vec![0], ..config() }, CLAMP, &actions),
        "network.hidden: expected widths from 1 to 65536, got 0"
    );
}
