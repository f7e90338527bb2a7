//! Actions of several choices: the engines `cpu` and `torch` give the same numbers.

use gradus::envs::random::{Purpose, Stream};
use gradus::envs::{EnvSpec, Space};
use gradus::nets::{ActionRows, Batch, Choice, OptimiserStep, Policy, Rule, Store, TorchConfig, UpdatedGroups};

use super::{Everything, answers, assert_near, config, device, distance};

#[test]
fn ten_updates_agree() {
    let actions = Space::MultiDiscrete(vec![3, 1, 4]);
    let world = EnvSpec::of_spaces("choices", Space::Box { low: vec![-3.0; 5], high: vec![3.0; 5] }, actions.clone());
    let network = config("ppo", "cartpole", &["network.hidden=[24, 18]"]).network;
    let mut ours = network.policy(&world, 1).unwrap();
    let mut theirs = network.policy_on(&world, 1, device(), &TorchConfig::default()).unwrap();
    let stream = &mut Stream::new(3, Purpose::Environment, 0);
    let (rows, n) = (200, actions.mask_width());
    let observations: Vec<f32> = (0..rows * 5).map(|_| stream.uniform(-2.0, 2.0) as f32).collect();
    let masks: Vec<bool> = (0..rows * n).map(|i| i % n == 0 || i % n == 3 || i % n == 4 || i % 3 > 0).collect();
    let act = |policy: &dyn Policy| {
        let mut streams: Vec<Stream> = (0..rows as u64).map(|row| Stream::new(9, Purpose::Action, row)).collect();
        let (mut actions, mut log_probs) = (ActionRows::Discrete(Vec::new()), vec![0.0; rows]);
        policy.actor().act(&observations, Some(&masks), Choice::Sample(&mut streams), &mut actions, &mut log_probs);
        (actions, log_probs)
    };
    let ((chosen, log_probs), (same, near)) = (act(ours.as_ref()), act(theirs.as_ref()));
    assert_eq!(chosen, same);
    assert_near("log_probs", &near, &log_probs, 1e-5);
    let store = Store::new(5, observations.clone(), chosen).with_masks(masks.clone());
    let mut others = Vec::new();
    network.policy(&world, 8).unwrap().distributions(&store, &mut others);
    let indices: Vec<u32> = (0..rows as u32).collect();
    let weights = vec![1.0 / rows as f32; rows];
    let batch = Batch { old: Some(&others), reference: Some(&others), ..Batch::new(&indices, &weights) };
    for update in 0..10 {
        for (what, (a, b)) in ["values", "log_probs", "distributions"]
            .iter()
            .zip(answers(ours.as_mut(), &store).iter().zip(&answers(theirs.as_mut(), &store)))
        {
            assert_near(&format!("update {update}: {what}"), b, a, 1e-4);
        }
        let (a, b) = (
            ours.gradient(&store, batch, &Everything(UpdatedGroups::All)),
            theirs.gradient(&store, batch, &Everything(UpdatedGroups::All)),
        );
        assert!((a.loss - b.loss).abs() < 1e-4 * a.loss.abs().max(1.0), "update {update}: loss {} and {}", a.loss, b.loss);
        let step = OptimiserStep {
            rule: Rule::Adam,
            epsilon: 1e-5,
            learning_rate: 1e-2,
            critic_learning_rate: 1e-2,
            weight_decay: 0.0,
            max_grad_norm: 0.5,
            clip_per_group: false,
        };
        ours.apply(&step);
        theirs.apply(&step);
    }
    assert!(distance(&theirs.save(), &ours.save()) < 1e-4);
    assert_eq!(theirs.fault(), None);
}
