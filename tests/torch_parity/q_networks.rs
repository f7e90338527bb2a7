//! Networks of action values: ten updates give the same parameters with libtorch as with the engine `cpu`.

use gradus::envs::random::{Purpose, Stream};
use gradus::envs::{Image, Space};
use gradus::nets::tensors::Data;
use gradus::nets::{
    ActionRows, Activation, Batch, Behaviour, Cell, Choice, Evaluated, Evaluation, Network, NetworkConfig, Observations, OptimiserStep,
    QHead, QNetwork, QValues, Rule, Sequence, Sequences, Store, TorchConfig, ValueObjective, cpu, torch,
};

use crate::device;

struct Squared;

impl ValueObjective for Squared {
    fn decision(&self, index: usize, q: QValues<'_>) -> Evaluation {
        let first = q.values()[0];
        let loss = 0.5 * q.sum(|k, q| (q - ((index * 7 + k * 3) % 5) as f32).squared());
        Evaluation::from(loss).with_error(first - index as f32)
    }
}

/// Asserts that numbers agree to 1e-4.
pub fn near(ours: &[f32], theirs: &[f32], what: &str) {
    assert_eq!(ours.len(), theirs.len(), "{what}");
    for (i, (a, b)) in ours.iter().zip(theirs).enumerate() {
        assert!((a - b).abs() <= 1e-4 * b.abs().max(1.0), "{what}, number {i}: expected {a}, got {b}");
    }
}

/// Returns all parameters of a network.
pub fn saved(network: &(impl Behaviour + ?Sized)) -> Vec<f32> {
    let of = |data| match data {
        Data::F32(numbers) => numbers,
        _ => panic!("expected f32"),
    };
    network.save().into_values().flat_map(|tensor| of(tensor.data)).collect()
}

#[test]
fn ten_updates_agree() {
    let observations = Space::Box { low: vec![-3.0; 5], high: vec![3.0; 5] };
    let mut stream = Stream::new(8, Purpose::Environment, 0);
    let rows: Vec<f32> = (0..73 * 5).map(|_| stream.uniform(-3.0, 3.0) as f32).collect();
    for (hidden, layer_norm, head, rule) in [
        (vec![40, 17], false, QHead::default(), Rule::Adam),
        (vec![20, 33], true, QHead { atoms: 3, dueling: true }, Rule::RAdam),
        (vec![18], false, QHead { atoms: 1, dueling: true }, Rule::RmsProp),
        (vec![], false, QHead { atoms: 2, dueling: false }, Rule::Adam),
    ] {
        let config = NetworkConfig { hidden, layer_norm, activation: Activation::Tanh, ..NetworkConfig::default() };
        assert_they_agree(&config, head, rule, &observations, &rows);
    }
}

#[test]
fn ten_updates_of_networks_that_see_images_agree() {
    let image = |frames, height, width, channels, largest| Image { frames, height, width, channels, largest };
    let cases = [
        ("none", image(2, 3, 4, 2, 255), false, QHead::default()),
        ("arcade", image(1, 10, 10, 4, 1), true, QHead::default()),
        ("18x4/2,7x3+1,max2/2", image(2, 14, 12, 1, 255), false, QHead { atoms: 2, dueling: true }),
        ("section4,section17,3x2", image(1, 9, 8, 3, 255), false, QHead::default()),
        ("max3/2+1,6x3+2", image(1, 11, 9, 3, 255), true, QHead::default()),
    ];
    for (trunk, image, layer_norm, head) in cases {
        let mut stream = Stream::new(8, Purpose::Environment, 1);
        let rows: Vec<f32> = (0..73 * image.len()).map(|_| stream.below(u32::from(image.largest) + 1) as f32).collect();
        let (trunk, hidden) = (trunk.parse().unwrap(), vec![20]);
        let config = NetworkConfig { trunk, hidden, layer_norm, activation: Activation::Tanh, ..NetworkConfig::default() };
        assert_they_agree(&config, head, Rule::Adam, &Space::Image(image), &rows);
    }
}

#[test]
fn ten_updates_of_networks_with_a_memory_agree() {
    let observations = Space::Box { low: vec![-3.0; 5], high: vec![3.0; 5] };
    let mut stream = Stream::new(8, Purpose::Environment, 0);
    let rows: Vec<f32> = (0..73 * 5).map(|_| stream.uniform(-3.0, 3.0) as f32).collect();
    let dueling = QHead { atoms: 1, dueling: true };
    for (cell, hidden, layer_norm, head) in [
        (Cell::Gru, vec![40, 17], false, QHead::default()),
        (Cell::Lstm, vec![20], true, QHead::default()),
        (Cell::Gru, vec![12, 9], true, dueling),
        (Cell::Lstm, vec![], false, QHead { atoms: 2, dueling: false }),
    ] {
        let config = NetworkConfig { cell, cell_width: 19, hidden, layer_norm, ..NetworkConfig::default() };
        assert_they_agree(&config, head, Rule::Adam, &observations, &rows);
    }
}

/// Compares what the engines compute in ten updates; `rows` are 73 observations.
fn assert_they_agree(config: &NetworkConfig, head: QHead, rule: Rule, observations: &Space, rows: &[f32]) {
    let (actions, what) = (Space::Discrete(4), format!("{config:?}, {head:?}, {rule:?}"));
    let ours = cpu::QNetwork::new(config, head, observations, &actions, 3).unwrap();
    let torch = TorchConfig::default();
    let theirs = torch::QNetwork::new((config, &torch), head, (observations, &actions), 3, device()).unwrap();
    let mut networks: [Box<dyn QNetwork>; 2] = [Box::new(ours), Box::new(theirs)];
    let mut targets = networks.each_ref().map(|network| network.snapshot());
    let mut stream = Stream::new(8, Purpose::Environment, 2);
    let mut seen = Observations::empty(observations);
    rows.chunks(observations.width()).for_each(|row| seen.push(row));
    let store = Store::of(seen, ActionRows::Discrete((0..70).map(|_| stream.below(4)).collect()));
    let (mut indices, weights): (Vec<u32>, Vec<f32>) = (0..70).map(|i| (69 - i, if i % 9 == 4 { 0.0 } else { 0.01 })).unzip();
    let remembered = networks[0].memory_width();
    let store = if remembered == 0 {
        store
    } else {
        let ends = [0, 3, 20, 21, 40, 70];
        let successor = |i: usize| (i < 3).then_some(70 + i);
        let list = ends.windows(2).enumerate().map(|(i, ends)| Sequence { decisions: ends[0]..ends[1], successor: successor(i) }).collect();
        let memory = (0..5 * remembered).map(|_| stream.uniform(-1.0, 1.0) as f32).collect();
        indices = (21..40).chain(0..3).chain(40..70).chain(3..21).collect();
        store.with_sequences(Sequences { list, memory })
    };
    let (learning_rate, critic_learning_rate) = (0.01, 0.01);
    let step = OptimiserStep {
        rule,
        epsilon: 1e-5,
        learning_rate,
        critic_learning_rate,
        weight_decay: 0.001,
        max_grad_norm: 0.5,
        clip_per_group: true,
    };
    for update in 0..10 {
        let losses = networks.each_mut().map(|network| {
            let Evaluated { sums, errors } = network.gradient(&store, Batch::new(&indices, &weights), &Squared);
            let norm = network.gradient_norm();
            network.apply(&step);
            [&[sums.loss as f32, norm], &errors[..]].concat()
        });
        near(&losses[0], &losses[1], &format!("{what}, loss, norm and errors of update {update}"));
        targets.iter_mut().zip(&networks).for_each(|(target, network)| target.track(network.as_ref(), 0.25));
    }
    near(&saved(networks[0].as_ref()), &saved(networks[1].as_ref()), &format!("{what}, parameters"));
    near(&saved(targets[0].as_ref()), &saved(targets[1].as_ref()), &format!("{what}, target"));
    let values = networks.each_mut().map(|network| {
        let mut values = Vec::new();
        network.q_values(&store, 1..73, &mut values);
        values
    });
    near(&values[0], &values[1], &format!("{what}, values"));
    let chosen = networks.each_ref().map(|network| {
        let rows = &rows[..70 * observations.width()];
        let (mut actions, mut log_probs) = (ActionRows::Discrete(Vec::new()), vec![0.0; 70]);
        let masks: Vec<bool> = (0..280).map(|i| i % 4 == 1 || i % 3 > 0).collect();
        network.actor().act(rows, Some(&masks), Choice::Greedy, &mut actions, &mut log_probs);
        actions
    });
    assert_eq!(chosen[0], chosen[1], "{what}");
    // a checkpoint of one engine can be loaded by the other
    let [ours, theirs] = &mut networks;
    theirs.load(&ours.save()).unwrap();
    theirs.load_optimiser(&ours.save_optimiser()).unwrap();
    ours.load_optimiser(&theirs.save_optimiser()).unwrap();
    assert!(theirs.fault().is_none() && saved(ours.as_ref()) == saved(theirs.as_ref()), "{what}");
}

/// After a fault of the device all results are 0 or NaN, and every decision still has an error.
#[test]
fn decisions_have_errors_after_a_fault() {
    let (observations, actions) = (Space::Box { low: vec![-3.0; 5], high: vec![3.0; 5] }, Space::Discrete(4));
    let (config, torch) = (NetworkConfig::default(), TorchConfig::default());
    let mut network = torch::QNetwork::new((&config, &torch), QHead::default(), (&observations, &actions), 3, device()).unwrap();
    let store = Store::new(5, vec![0.5; 40], ActionRows::Discrete(vec![0; 8]));
    let (indices, weights): (Vec<u32>, Vec<f32>) = (0..8).map(|i| (i, 0.125)).unzip();
    let mut values = Vec::new();
    network.q_values(&store, 4..12, &mut values); // there are 8 rows
    assert!(network.fault().is_some() && values.len() == 32 && values.iter().all(|value| value.is_nan()));
    let batch = Batch::new(&indices, &weights);
    let expected = Evaluated { errors: vec![0.0; 8], ..Evaluated::default() };
    assert_eq!([network.gradient(&store, batch, &Squared), network.evaluate(&store, batch, &Squared)], [expected.clone(), expected]);
    assert_eq!(network.gradient_norm(), 0.0);
}
