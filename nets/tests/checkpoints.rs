//! Saving and loading a policy and its optimiser: the state is restored exactly, and tensors that do not fit change nothing.

use gradus_base::random::{Purpose, Stream};
use gradus_base::tensors::{Data, Tensor, Tensors, TensorsError, decode, encode};
use gradus_envs::Space;
use gradus_nets::cpu::ActorCritic;
use gradus_nets::{
    ActionRows, Activation, Batch, Behaviour, Choice, Evaluation, Network, NetworkConfig, Objective, OptimiserStep, Outputs, Policy, Rule,
    Store,
};

const WIDTH: usize = 4;
const ACTIONS: u32 = 3;

struct Pull;

impl Objective for Pull {
    fn decision(&self, index: usize, pi: Outputs) -> Evaluation {
        let (sign, error) = (if index.is_multiple_of(2) { 1.0 } else { -0.5 }, pi.value - index as f32 * 0.1);
        (sign * pi.log_prob + 0.5 * error.squared() - 0.01 * pi.entropy).into()
    }
}

fn config(hidden: &[usize], shared: bool) -> NetworkConfig {
    NetworkConfig { hidden: hidden.into(), activation: Activation::Tanh, shared, ..Default::default() }
}

fn policy(config: &NetworkConfig, seed: u64) -> ActorCritic {
    let observations = Space::Box { low: vec![-1.0; WIDTH], high: vec![1.0; WIDTH] };
    ActorCritic::new(config, &observations, &Space::Discrete(ACTIONS), seed).unwrap()
}

fn store() -> Store {
    let mut stream = Stream::new(2, Purpose::Environment, 0);
    let observations = (0..40 * WIDTH).map(|_| stream.uniform(-1.0, 1.0) as f32).collect();
    Store::new(WIDTH, observations, ActionRows::Discrete((0..40).map(|_| stream.below(ACTIONS)).collect()))
}

fn train(policy: &mut ActorCritic, rule: Rule, steps: usize) {
    let (store, indices) = (store(), (0..40).collect::<Vec<u32>>());
    for _ in 0..steps {
        policy.gradient(&store, Batch::new(&indices, &[0.025; 40]), &Pull);
        policy.apply(&OptimiserStep {
            rule,
            epsilon: 1e-5,
            learning_rate: 0.01,
            critic_learning_rate: 0.02,
            weight_decay: 0.0,
            max_grad_norm: 0.5,
            clip_per_group: false,
        });
    }
}

fn bits(numbers: &[f32]) -> Vec<u32> {
    numbers.iter().map(|x| x.to_bits()).collect()
}

/// Returns the bits of a policy's parameters, optimiser, greedy actions and their log-probabilities.
fn state(policy: &ActorCritic) -> (Vec<u32>, Vec<u8>, Vec<u32>, Vec<u32>) {
    let store = store();
    let observations: Vec<f32> = (0..40).flat_map(|row| store.observation(row).to_vec()).collect();
    let (mut actions, mut log_probs) = (ActionRows::Discrete(Vec::new()), vec![0.0; 40]);
    policy.actor().act(&observations, None, Choice::Greedy, &mut actions, &mut log_probs);
    let ActionRows::Discrete(actions) = actions else { panic!("expected discrete actions") };
    (bits(policy.parameters()), encode(&policy.save_optimiser(), ""), actions, bits(&log_probs))
}

/// Encodes the tensors as the bytes of a file and decodes them.
fn through_a_file(tensors: &Tensors) -> Tensors {
    let (read, note) = decode(&encode(tensors, "iteration 7")).unwrap();
    assert_eq!((&read, note.as_str()), (tensors, "iteration 7"));
    read
}

#[test]
fn a_reloaded_policy_trains_to_the_same_bits_as_without_a_stop() {
    for (hidden, shared) in [(&[][..], false), (&[20, 7], false), (&[20, 7], true), (&[17], true)] {
        for rule in [Rule::Adam, Rule::RmsProp] {
            let mut unbroken = policy(&config(hidden, shared), 1);
            train(&mut unbroken, rule, 4);
            let (parameters, optimiser) = (through_a_file(&unbroken.save()), through_a_file(&unbroken.save_optimiser()));
            train(&mut unbroken, rule, 3);

            let mut resumed = policy(&config(hidden, shared), 99);
            train(&mut resumed, rule, 1);
            resumed.load(&parameters).unwrap();
            resumed.load_optimiser(&optimiser).unwrap();
            train(&mut resumed, rule, 3);
            assert_eq!(state(&unbroken), state(&resumed), "{hidden:?}, shared {shared}, {rule:?}");

            // without the optimiser's moments the numbers differ
            let mut forgetful = policy(&config(hidden, shared), 1);
            forgetful.load(&parameters).unwrap();
            train(&mut forgetful, rule, 3);
            assert_ne!(bits(unbroken.parameters()), bits(forgetful.parameters()));
        }
    }
}

#[test]
fn names_and_shapes_match_pytorchs_sequential() {
    let shapes = |config: &NetworkConfig| -> Vec<(String, Vec<usize>)> {
        policy(config, 1).save().into_iter().map(|(name, tensor)| (name, tensor.shape)).collect()
    };
    let expected = |names: &[(&str, &[usize])]| names.iter().map(|(name, shape)| (name.to_string(), shape.to_vec())).collect::<Vec<_>>();
    let separate = expected(&[
        ("actor.0.bias", &[20]),
        ("actor.0.weight", &[20, 4]),
        ("actor.2.bias", &[3]),
        ("actor.2.weight", &[3, 20]),
        ("critic.0.bias", &[20]),
        ("critic.0.weight", &[20, 4]),
        ("critic.2.bias", &[1]),
        ("critic.2.weight", &[1, 20]),
    ]);
    assert_eq!(shapes(&config(&[20], false)), separate);
    let shared = expected(&[
        ("actor.0.bias", &[3]),
        ("actor.0.weight", &[3, 6]),
        ("critic.0.bias", &[1]),
        ("critic.0.weight", &[1, 6]),
        ("trunk.0.bias", &[20]),
        ("trunk.0.weight", &[20, 4]),
        ("trunk.2.bias", &[6]),
        ("trunk.2.weight", &[6, 20]),
    ]);
    assert_eq!(shapes(&config(&[20, 6], true)), shared);
}

/// The name of a defect, a function that damages tensors with it, and whether an error is the expected one.
type Defect = (&'static str, fn(&mut Tensors), fn(&TensorsError) -> bool);

fn f32_of<'a>(tensors: &'a mut Tensors, name: &str) -> &'a mut Vec<f32> {
    match &mut tensors.get_mut(name).unwrap().data {
        Data::F32(data) => data,
        _ => panic!("{name}: expected f32"),
    }
}

fn is_shape(error: &TensorsError) -> bool {
    matches!(error, TensorsError::Shape { .. })
}

fn is_not_finite(error: &TensorsError) -> bool {
    matches!(error, TensorsError::NotFinite { .. })
}

#[test]
fn parameters_that_do_not_fit_are_an_error_and_change_nothing() {
    let defects: [Defect; 10] = [
        ("an empty file", |t| t.clear(), |e| *e == TensorsError::Missing("actor.0.weight".into())),
        ("a missing bias", |t| drop(t.remove("critic.2.bias")), |e| *e == TensorsError::Missing("critic.2.bias".into())),
        (
            "an extra tensor",
            |t| drop(t.insert("actor.4.weight".into(), Tensor::f32(&[1], vec![0.0]))),
            |e| *e == TensorsError::Unexpected("actor.4.weight".into()),
        ),
        ("a transposed matrix", |t| t.get_mut("actor.0.weight").unwrap().shape.reverse(), is_shape),
        ("a flat matrix", |t| t.get_mut("actor.0.weight").unwrap().shape = vec![80], is_shape),
        ("a bias too long", |t| drop(t.insert("actor.0.bias".into(), Tensor::f32(&[21], vec![0.0; 21]))), is_shape),
        ("whole numbers", |t| drop(t.insert("critic.2.bias".into(), Tensor::u64(vec![1]))), is_shape),
        ("NaN", |t| f32_of(t, "actor.2.weight")[5] = f32::NAN, is_not_finite),
        ("infinity", |t| f32_of(t, "critic.2.bias")[0] = f32::INFINITY, is_not_finite),
        ("minus infinity at the end", |t| *f32_of(t, "critic.2.weight").last_mut().unwrap() = f32::NEG_INFINITY, is_not_finite),
    ];
    let other = policy(&config(&[20], false), 5).save();
    let mut policy = policy(&config(&[20], false), 1);
    train(&mut policy, Rule::Adam, 2);
    for (defect, spoil, is_expected) in defects {
        let before = state(&policy);
        let mut tensors = other.clone();
        spoil(&mut tensors);
        let error = policy.load(&tensors).expect_err(defect);
        assert!(is_expected(&error), "{defect}: {error}");
        assert_eq!(state(&policy), before, "{defect} has changed the policy");
    }
    policy.load(&other).unwrap();
    assert_eq!(policy.save(), other);
}

#[test]
fn an_optimiser_that_does_not_fit_is_an_error_and_changes_nothing() {
    let defects: [Defect; 11] = [
        (
            "a negative second moment",
            |t| f32_of(t, "second.actor.2.weight")[5] = -1e-3,
            |e| matches!(e, TensorsError::NotFinite { name, got, .. } if name == "second" && got.starts_with("-0.001")),
        ),
        ("a missing clock", |t| drop(t.remove("powers.critic")), |e| *e == TensorsError::Missing("powers.critic".into())),
        ("a clock of another length", |t| drop(t.insert("powers.actor".into(), Tensor::u64(vec![0; 3]))), is_shape),
        (
            "a clock of a group that does not exist",
            |t| drop(t.insert("powers.trunk".into(), Tensor::u64(vec![0; 2]))),
            |e| *e == TensorsError::Unexpected("powers.trunk".into()),
        ),
        ("a clock in f32", |t| drop(t.insert("powers.actor".into(), Tensor::f32(&[2], vec![0.5; 2]))), is_shape),
        ("a missing moment", |t| drop(t.remove("second.critic.2.bias")), |e| *e == TensorsError::Missing("second.critic.2.bias".into())),
        ("a transposed moment", |t| t.get_mut("first.actor.0.weight").unwrap().shape.reverse(), is_shape),
        ("NaN", |t| f32_of(t, "second.actor.2.weight")[5] = f32::NAN, is_not_finite),
        ("infinity", |t| f32_of(t, "first.critic.2.bias")[0] = f32::INFINITY, is_not_finite),
        (
            "an extra tensor",
            |t| drop(t.insert("first.actor.4.weight".into(), Tensor::f32(&[1], vec![0.0]))),
            |e| *e == TensorsError::Unexpected("first.actor.4.weight".into()),
        ),
        (
            "a clock of NaN",
            |t| drop(t.insert("powers.critic".into(), Tensor::u64(vec![f64::NAN.to_bits(); 2]))),
            |e| matches!(e, TensorsError::NotFinite { name, .. } if name == "powers.critic"),
        ),
    ];
    let mut other = policy(&config(&[20], false), 5);
    train(&mut other, Rule::Adam, 3);
    let other = other.save_optimiser();
    let mut policy = policy(&config(&[20], false), 1);
    train(&mut policy, Rule::Adam, 2);
    for (defect, spoil, is_expected) in defects {
        let before = state(&policy);
        let mut tensors = other.clone();
        spoil(&mut tensors);
        let error = policy.load_optimiser(&tensors).expect_err(defect);
        assert!(is_expected(&error), "{defect}: {error}");
        assert_eq!(state(&policy), before, "{defect} has changed the policy");
    }
    policy.load_optimiser(&other).unwrap();
    assert_eq!(policy.save_optimiser(), other);
}

/// An older checkpoint has one clock for all groups. Training after loading it gives the same bits.
#[test]
fn the_one_clock_of_an_older_checkpoint_applies_to_every_group() {
    for shared in [false, true] {
        let config = config(&[20], shared);
        let mut unbroken = policy(&config, 1);
        train(&mut unbroken, Rule::Adam, 3);
        let mut old = unbroken.save_optimiser();
        let clocks: Vec<Tensor> = unbroken.groups().iter().map(|group| old.remove(&format!("powers.{}", group.name)).unwrap()).collect();
        assert!(clocks.iter().all(|clock| *clock == clocks[0]), "every step moves all groups");
        old.insert("powers".into(), clocks[0].clone());
        let mut resumed = policy(&config, 2);
        resumed.load(&unbroken.save()).unwrap();
        resumed.load_optimiser(&through_a_file(&old)).unwrap();
        assert_eq!(state(&resumed), state(&unbroken));
        train(&mut unbroken, Rule::Adam, 2);
        train(&mut resumed, Rule::Adam, 2);
        assert_eq!(state(&resumed), state(&unbroken));
    }
}

#[test]
fn parameters_of_another_architecture_are_an_error() {
    let shapes = [config(&[20], false), config(&[20], true), config(&[21], false), config(&[20, 20], false), config(&[], false)];
    for (i, from) in shapes.iter().enumerate() {
        for (j, into) in shapes.iter().enumerate() {
            let (source, mut target) = (policy(from, 1), policy(into, 2));
            let before = state(&target);
            let results = [target.load(&source.save()), target.load_optimiser(&source.save_optimiser())];
            for (result, what) in results.iter().zip(["parameters", "optimiser"]) {
                assert_eq!(result.is_ok(), i == j, "{what} of {from:?} into {into:?}: {result:?}");
            }
            assert!(i == j || state(&target) == before, "{from:?} into {into:?} has changed the policy");
        }
    }
}

#[test]
fn log_standard_deviations_are_saved_and_belong_to_the_actor() {
    let observations = Space::Box { low: vec![-1.0; WIDTH], high: vec![1.0; WIDTH] };
    let actions = Space::Box { low: vec![-1.0; 2], high: vec![1.0; 2] };
    let rows = (0..80).map(|i| (i % 7) as f32 * 0.2 - 0.5).collect();
    let mut continuous = store();
    continuous.actions = ActionRows::Continuous { rows, width: 2 };
    for (gsde, shape) in [(false, vec![2]), (true, vec![20, 2])] {
        let config = NetworkConfig { gsde, log_std_init: -1.0, ..config(&[20], false) };
        let policy = |seed| ActorCritic::new(&config, &observations, &actions, seed).unwrap();
        let train = |policy: &mut ActorCritic| {
            let indices: Vec<u32> = (0..40).collect();
            policy.gradient(&continuous, Batch::new(&indices, &[0.025; 40]), &Pull);
            policy.apply(&OptimiserStep {
                rule: Rule::Adam,
                epsilon: 1e-5,
                learning_rate: 0.01,
                critic_learning_rate: 0.0,
                weight_decay: 0.0,
                max_grad_norm: 0.5,
                clip_per_group: false,
            });
        };
        let (mut unbroken, mut resumed) = (policy(1), policy(2));
        assert_eq!(unbroken.save()["actor.log_std"], Tensor::f32(&shape, vec![-1.0; shape.iter().product()]));
        train(&mut unbroken);
        let saved = through_a_file(&unbroken.save());
        let Data::F32(log_std) = &saved["actor.log_std"].data else { panic!("parameters are f32") };
        assert!(log_std.iter().all(|x| *x != -1.0), "expected training to change the log standard deviations, got {log_std:?}");
        resumed.load(&saved).unwrap();
        resumed.load_optimiser(&through_a_file(&unbroken.save_optimiser())).unwrap();
        train(&mut unbroken);
        train(&mut resumed);
        assert_eq!(bits(unbroken.parameters()), bits(resumed.parameters()), "gsde {gsde}");

        let mut incomplete = saved.clone();
        incomplete.remove("actor.log_std");
        assert_eq!(resumed.load(&incomplete), Err(TensorsError::Missing("actor.log_std".into())));
        let other = NetworkConfig { gsde: !gsde, ..config.clone() };
        assert!(is_shape(&ActorCritic::new(&other, &observations, &actions, 1).unwrap().load(&saved).unwrap_err()));
    }
}
