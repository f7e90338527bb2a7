//! Same seed, same numbers: bit for bit, whatever the instruction set and whatever the number of threads.

use gradus_envs::Space;
use gradus_envs::random::{Purpose, Stream};
use gradus_nets::cpu::ActorCritic;
use gradus_nets::cpu::simd::Level;
use gradus_nets::tensors::{Data, Tensors};
use gradus_nets::{
    ActionRows, Activation, Batch, Behaviour, Choice, LossGrad, Network, NetworkConfig, Objective, OptimiserStep, Policy, PolicyOutput,
    Rule, Store, threads,
};

const WIDTH: usize = 5;

/// A loss of sums and products only, which every machine rounds alike.
struct Quadratic;

impl Objective for Quadratic {
    fn decision(&self, index: usize, now: PolicyOutput) -> LossGrad {
        let (a, target) = (0.5 + 0.25 * (index % 4) as f32, (index % 7) as f32 - 3.0);
        let error = now.value - target;
        let mut decision = LossGrad {
            loss: a * now.log_prob * now.log_prob + now.log_prob * now.value - 0.1 * now.entropy + 0.5 * error * error + 0.5 * now.kl_old,
            derivative: PolicyOutput {
                log_prob: 2.0 * a * now.log_prob + now.value,
                entropy: -0.1,
                value: now.log_prob + error,
                kl_old: 0.5,
                ..PolicyOutput::default()
            },
            ..Default::default()
        };
        decision.diagnostics[0] = now.entropy;
        decision
    }
}

fn a_box(width: usize) -> Space {
    Space::Box { low: vec![-1.0; width], high: vec![1.0; width] }
}

fn policy(config: &NetworkConfig, actions: &Space, level: Level) -> ActorCritic {
    ActorCritic::new(config, &a_box(WIDTH), actions, 1).unwrap().with_level(level)
}

/// So many decisions, and one row behind them; any two calls give the same.
fn store(rows: usize, space: &Space) -> Store {
    let mut stream = Stream::new(1, Purpose::Environment, rows as u64);
    let observations = (0..(rows + 1) * WIDTH).map(|_| stream.uniform(-1.0, 1.0) as f32).collect();
    let mut actions = ActionRows::empty(space);
    actions.resize(rows);
    match (&mut actions, space) {
        (ActionRows::Discrete(actions), Space::Discrete(n)) => actions.iter_mut().for_each(|a| *a = stream.below(*n)),
        (ActionRows::Continuous { rows, .. }, _) => rows.iter_mut().for_each(|a| *a = stream.uniform(-2.0, 2.0) as f32),
        _ => panic!("{space} has other actions"),
    }
    let store = Store::new(WIDTH, observations, actions);
    match (&store.actions, space) {
        // where there are many, some are ruled out
        (ActionRows::Discrete(actions), Space::Discrete(n @ 4..)) => {
            let masks = actions.iter().flat_map(|a| (0..*n).map(move |j| j == *a || (3 * j + a) % 4 != 0)).collect();
            store.with_masks(masks)
        }
        _ => store,
    }
}

fn step(rule: Rule) -> OptimiserStep {
    OptimiserStep {
        rule,
        epsilon: 1e-5,
        learning_rate: 0.01,
        critic_learning_rate: 0.02,
        weight_decay: 0.0,
        max_grad_norm: 0.5,
        clip_per_group: false,
    }
}

fn bits(numbers: &[f32]) -> Vec<u64> {
    numbers.iter().map(|x| u64::from(x.to_bits())).collect()
}

/// What a small training computes, by name: the bits of every number that it leaves behind.
type History = Vec<(String, Vec<u64>)>;

fn history(config: &NetworkConfig, actions: &Space, rows: usize, rule: Rule, level: Level) -> History {
    let mut policy = policy(config, actions, level);
    let store = store(rows, actions);
    let indices: Vec<u32> = (0..rows as u32).rev().collect();
    let weights: Vec<f32> = (0..rows).map(|i| (1 + i % 3) as f32 / rows as f32).collect();
    let mut history = History::new();
    let (mut old, mut product) = (Vec::new(), Vec::new());
    policy.distributions(&store, &mut old);
    for i in 0..5 {
        let batch = Batch { old: Some(&old), ..Batch::new(&indices, &weights) };
        let sums = policy.gradient(&store, batch, &Quadratic);
        history.push((format!("sums {i}"), std::iter::once(sums.loss).chain(sums.diagnostics).map(f64::to_bits).collect()));
        history.push((format!("gradient {i}"), bits(policy.last_gradient())));
        history.push((format!("gradient norm {i}"), bits(&[policy.gradient_norm()])));
        if policy.supports_fisher() {
            let vector = policy.last_gradient().to_vec();
            policy.fisher_vector_product(&store, batch, &vector, &mut product);
            history.push((format!("Fisher-vector product {i}"), bits(&product)));
        }
        policy.apply(&step(rule));
        history.push((format!("parameters {i}"), bits(policy.parameters())));
    }
    let mut numbers = Vec::new();
    policy.values(&store, &mut numbers);
    history.push(("values".into(), bits(&numbers)));
    policy.distributions(&store, &mut numbers);
    history.push(("distributions".into(), bits(&numbers)));
    policy.log_probs(&store, &mut numbers);
    history.push(("log-probabilities of the store".into(), bits(&numbers)));
    let mut streams: Vec<Stream> = (0..rows as u64).map(|row| Stream::new(1, Purpose::Action, row)).collect();
    let observations: Vec<f32> = (0..rows).flat_map(|row| store.observation(row).to_vec()).collect();
    let (mut actions, mut log_probs) = (ActionRows::empty(actions), vec![0.0; rows]);
    policy.actor().act(&observations, None, Choice::Sample(&mut streams), &mut actions, &mut log_probs);
    let actions = match actions {
        ActionRows::Discrete(actions) => actions.into_iter().map(u64::from).collect(),
        ActionRows::Continuous { rows, .. } => bits(&rows),
        ActionRows::OnDevice(_) => unreachable!("this engine has no device"),
    };
    history.push(("actions".into(), actions));
    history.push(("log-probabilities".into(), bits(&log_probs)));
    history
}

fn assert_same(expected: &History, got: &History, case: &str) {
    for ((name, expected), (_, got)) in expected.iter().zip(got) {
        let differing = expected.iter().zip(got).position(|(a, b)| a != b);
        assert!(differing.is_none() && expected.len() == got.len(), "{case}: {name} differ at position {differing:?}");
    }
    assert_eq!(expected.len(), got.len());
}

/// Wide and narrow layers, whole vectors and rests, both activations, both layouts, every head.
fn shapes() -> [(NetworkConfig, Space); 10] {
    let config = |hidden: &[usize], activation, shared| NetworkConfig { hidden: hidden.into(), activation, shared, ..Default::default() };
    [
        (config(&[], Activation::Tanh, false), Space::Discrete(3)),
        (config(&[7], Activation::Tanh, true), Space::Discrete(17)),
        (config(&[16, 33], Activation::Relu, false), Space::Discrete(2)),
        (config(&[70, 20], Activation::Tanh, true), Space::Discrete(4)),
        (config(&[64, 64], Activation::Tanh, false), Space::Discrete(2)),
        (config(&[], Activation::Tanh, false), a_box(3)),
        (config(&[20, 7], Activation::Relu, true), a_box(17)),
        (config(&[64, 64], Activation::Tanh, false), a_box(1)),
        (NetworkConfig { gsde: true, ..config(&[16, 33], Activation::Tanh, false) }, a_box(2)),
        (NetworkConfig { gsde: true, ..config(&[7], Activation::Relu, true) }, a_box(18)),
    ]
}

#[test]
fn instruction_sets_do_not_show() {
    let levels = Level::available();
    assert_eq!((levels[0], levels.last().copied()), (Level::Portable, Some(Level::best())));
    for (config, actions) in &shapes() {
        for (rows, rule) in [(1, Rule::Adam), (37, Rule::RmsProp), (130, Rule::Adam), (300, Rule::Adam)] {
            let portable = history(config, actions, rows, rule, Level::Portable);
            for level in &levels[1..] {
                let case = format!("{level:?} and Portable, {config:?}, {rows} rows, {rule:?}");
                assert_same(&portable, &history(config, actions, rows, rule, *level), &case);
            }
        }
    }
}

#[test]
fn the_number_of_threads_does_not_show() {
    for (config, actions) in &shapes() {
        for (rows, rule) in [(1, Rule::RmsProp), (33, Rule::Adam), (128, Rule::RmsProp), (1000, Rule::Adam)] {
            let run = |count| threads::with(count, || history(config, actions, rows, rule, Level::best()));
            let alone = run(1);
            for count in [2, 5] {
                assert_same(&alone, &run(count), &format!("{count} threads and 1, {config:?}, {rows} rows, {rule:?}"));
            }
        }
    }
}

/// Small batches are computed network by network and larger ones in lanes of rows: decisions of weight 0 make one of the other.
#[test]
fn a_small_batch_has_the_gradient_of_a_large_one_with_nothing_more_in_it() {
    for (config, actions) in &shapes() {
        let store = store(300, actions);
        let indices: Vec<u32> = (0..300).collect();
        let weights: Vec<f32> = (0..300).map(|i| if i < 200 { (1 + i % 3) as f32 / 400.0 } else { 0.0 }).collect();
        let gradient = |rows: usize| {
            let mut policy = policy(config, actions, Level::best());
            let sums = policy.gradient(&store, Batch::new(&indices[..rows], &weights[..rows]), &Quadratic);
            (sums.loss, policy.gradient_norm(), policy.last_gradient().to_vec())
        };
        let ((loss, norm, small), (large_loss, large_norm, large)) = (gradient(200), gradient(300));
        assert!((loss - large_loss).abs() < 1e-5 * loss.abs(), "{config:?}: {loss} and {large_loss}");
        assert!((norm - large_norm).abs() < 1e-5 * norm, "{config:?}: {norm} and {large_norm}");
        let distance = small.iter().zip(&large).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>().sqrt();
        assert!(distance < 1e-5 * f64::from(norm), "{config:?}: the gradients are {distance} apart, of {norm}");
    }
}

#[test]
fn what_was_computed_before_does_not_show() {
    for (config, actions) in &shapes() {
        let mut used = policy(config, actions, Level::best());
        let (large, small) = (store(700, actions), store(33, actions));
        let gradient = |policy: &mut ActorCritic, store: &Store| {
            let indices: Vec<u32> = (0..store.actions.len() as u32).collect();
            let sums = policy.gradient(store, Batch::new(&indices, &vec![0.01; indices.len()]), &Quadratic);
            let (mut values, mut product) = (Vec::new(), Vec::new());
            policy.values(store, &mut values);
            if policy.supports_fisher() {
                let vector = policy.parameters().to_vec();
                policy.fisher_vector_product(store, Batch::new(&indices, &vec![0.01; indices.len()]), &vector, &mut product);
            }
            (sums, bits(policy.last_gradient()), bits(&values), bits(&product))
        };
        let fresh = gradient(&mut policy(config, actions, Level::best()), &small);
        gradient(&mut used, &large);
        assert_eq!(gradient(&mut used, &small), fresh, "{config:?}, after a larger batch");
        // a store whose numbers no network survives
        let broken = Store::new(WIDTH, vec![f32::NAN; 64 * WIDTH], store(64, actions).actions);
        assert!(gradient(&mut used, &broken).0.loss.is_nan());
        assert_eq!(gradient(&mut used, &small), fresh, "{config:?}, after a batch of NaN");
    }
}

/// Whatever an engine derives from its parameters, such as transposed weights, must follow them.
#[test]
fn after_a_step_the_gradient_is_that_of_the_new_parameters() {
    for (config, actions) in &shapes() {
        let store = store(40, actions);
        let (indices, weights): (Vec<u32>, Vec<f32>) = ((0..40).collect(), vec![0.025; 40]);
        let batch = Batch::new(&indices, &weights);
        let (mut stepped, mut loaded) = (policy(config, actions, Level::best()), policy(config, actions, Level::best()));
        stepped.gradient(&store, batch, &Quadratic);
        stepped.apply(&step(Rule::Adam));
        loaded.load(&stepped.save()).unwrap();
        stepped.gradient(&store, batch, &Quadratic);
        loaded.gradient(&store, batch, &Quadratic);
        assert_eq!(bits(stepped.last_gradient()), bits(loaded.last_gradient()), "{config:?}");
    }
}

#[test]
fn a_snapshot_keeps_its_numbers_while_the_original_moves_on() {
    let (config, actions) = &shapes()[3];
    let mut original = policy(config, actions, Level::best());
    let store = store(50, actions);
    let (indices, weights): (Vec<u32>, Vec<f32>) = ((0..50).collect(), vec![0.02; 50]);
    let batch = Batch::new(&indices, &weights);
    let train = |policy: &mut dyn Policy| {
        policy.gradient(&store, batch, &Quadratic);
        policy.apply(&step(Rule::Adam));
        bits(policy.parameters())
    };
    train(&mut original);
    let mut snapshot = original.snapshot();
    let before = bits(snapshot.parameters());
    let after = train(&mut original);
    assert_ne!(before, after);
    assert_eq!(bits(snapshot.parameters()), before);
    assert_eq!(train(snapshot.as_mut()), after, "a snapshot trains as the original did");
}

#[test]
fn padding_stays_zero() {
    for (config, actions) in &shapes() {
        for rule in [Rule::Adam, Rule::RmsProp] {
            let mut policy = policy(config, actions, Level::best());
            let start = policy.save();
            // where ones do not arrive is padding
            let mut ones: Tensors = start.clone();
            for tensor in ones.values_mut() {
                let Data::F32(data) = &mut tensor.data else { panic!("parameters are f32") };
                data.fill(1.0);
            }
            policy.load(&ones).unwrap();
            let padding: Vec<usize> = (0..policy.parameters().len()).filter(|i| policy.parameters()[*i] == 0.0).collect();
            let named: usize = start.values().map(|tensor| tensor.shape.iter().product::<usize>()).sum();
            assert_eq!(padding.len() + named, policy.parameters().len(), "every parameter is named or padding");
            policy.load(&start).unwrap();

            let store = store(70, actions);
            let indices: Vec<u32> = (0..70).collect();
            for _ in 0..5 {
                policy.gradient(&store, Batch::new(&indices, &[0.1; 70]), &Quadratic);
                assert!(padding.iter().all(|i| policy.last_gradient()[*i] == 0.0), "{config:?}: padding has a gradient");
                if policy.supports_fisher() {
                    let (vector, mut product) = (policy.last_gradient().to_vec(), Vec::new());
                    policy.fisher_vector_product(&store, Batch::new(&indices, &[0.1; 70]), &vector, &mut product);
                    assert!(padding.iter().all(|i| product[*i] == 0.0), "{config:?}: padding has a Fisher-vector product");
                }
                policy.apply(&step(rule));
                assert!(padding.iter().all(|i| policy.parameters()[*i] == 0.0), "{config:?}: padding has moved");
            }
        }
    }
}

#[test]
fn groups_cover_the_parameters_and_have_their_own_learning_rates() {
    for (config, actions) in &shapes() {
        let mut policy = policy(config, actions, Level::best());
        let groups = policy.groups();
        let trunk = config.shared && !config.hidden.is_empty();
        let names: Vec<&str> = groups.iter().map(|group| group.name).collect();
        assert_eq!(names, if trunk { vec!["trunk", "actor", "critic"] } else { vec!["actor", "critic"] }, "{config:?}");
        let end = groups.iter().fold(0, |end, group| {
            assert_eq!(group.range.start, end, "{config:?}: groups follow each other");
            group.range.end
        });
        assert_eq!(end, policy.parameters().len(), "{config:?}");

        for moving in ["critic", "the others"] {
            let before = bits(policy.parameters());
            policy.gradient(&store(40, actions), Batch::new(&[3, 17], &[0.5, 0.5]), &Quadratic);
            let (learning_rate, critic_learning_rate) = if moving == "critic" { (0.0, 0.01) } else { (0.01, 0.0) };
            policy.apply(&OptimiserStep { learning_rate, critic_learning_rate, ..step(Rule::Adam) });
            let after = bits(policy.parameters());
            for group in &groups {
                let stays = before[group.range.clone()] == after[group.range.clone()];
                assert_eq!(
                    stays,
                    (group.name == "critic") != (moving == "critic"),
                    "{config:?}: {} when only {moving} may move",
                    group.name
                );
            }
        }
    }
}

/// Gains of the "37 details" study: the rows or columns of a matrix, whichever are fewer, have this length.
#[test]
fn the_start_has_gain_sqrt_2_in_hidden_layers_and_less_in_the_heads() {
    for (config, actions) in &shapes() {
        let config = &NetworkConfig { log_std_init: -0.5, ..config.clone() };
        for (name, tensor) in policy(config, actions, Level::best()).save() {
            let Data::F32(data) = &tensor.data else { panic!("parameters are f32") };
            if name == "actor.log_std" {
                assert!(data.iter().all(|x| *x == -0.5), "{config:?}: {name}");
            } else if let [outputs, inputs] = tensor.shape[..] {
                let head = if config.shared { 0 } else { 2 * config.hidden.len() };
                let gain = match name.split('.').collect::<Vec<_>>()[..] {
                    ["actor", layer, _] if layer == head.to_string() => 0.01,
                    ["critic", layer, _] if layer == head.to_string() => 1.0,
                    _ => 2.0_f64.sqrt(),
                };
                let squares: f64 = data.iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
                let expected = gain * gain * outputs.min(inputs) as f64;
                assert!((squares / expected - 1.0).abs() < 1e-5, "{config:?}: {name} has squares {squares} instead of {expected}");
            } else {
                assert!(data.iter().all(|x| *x == 0.0), "{config:?}: {name}");
            }
        }
    }
}

/// A change of these numbers changes every published result: it belongs in the changelog.
#[test]
fn seed_1_gives_the_pinned_numbers() {
    let config = NetworkConfig { hidden: vec![20, 7], ..Default::default() };
    let mut policy = policy(&config, &Space::Discrete(3), Level::best());
    let tensor = |name: &str| {
        let Data::F32(data) = policy.save()[name].data.clone() else { panic!("parameters are f32") };
        data[..2].iter().map(|x| x.to_bits()).collect::<Vec<u32>>()
    };
    let start: Vec<Vec<u32>> =
        ["actor.0.weight", "actor.2.weight", "actor.4.weight", "critic.0.weight"].iter().map(|n| tensor(n)).collect();

    let store = store(3, &Space::Discrete(3));
    let mut numbers = Vec::new();
    for _ in 0..2 {
        let sums = policy.gradient(&store, Batch::new(&[0, 1, 2], &[0.5, 0.25, 0.25]), &Quadratic);
        numbers.extend([(sums.loss as f32).to_bits(), policy.gradient_norm().to_bits()]);
        policy.apply(&step(Rule::Adam));
    }
    let mut values = Vec::new();
    policy.values(&store, &mut values);
    numbers.extend(values.iter().map(|x| x.to_bits()));
    assert_eq!(start, PINNED_START, "got {start:08x?}");
    assert_eq!(numbers, PINNED_NUMBERS, "got {numbers:08x?}");
}

/// Two weights each of four layers.
const PINNED_START: [[u32; 2]; 4] =
    [[0x3eafe263, 0xbf3714b2], [0xbe267cb9, 0xbe074d46], [0x3b5e08ca, 0xbad8517b], [0xbb117717, 0xbdd36362]];

/// Loss and gradient norm of two steps, then the values of four rows.
const PINNED_NUMBERS: [u32; 8] = [0x4063ddf8, 0x4054711f, 0x403e9078, 0x401f8c1e, 0xbf938181, 0xbf35cdc4, 0xbe1d8a5a, 0xbe6c388e];
