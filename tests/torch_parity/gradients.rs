//! A policy's outputs, gradients and optimiser steps are the same on the engines `cpu` and `torch`.

use std::collections::BTreeSet;

use gradus::nets::tensors::Tensors;
use gradus::nets::{
    ActionRows, Batch, Behaviour as _, Choice, Device, Network as _, OptimiserStep, Policy, Rule, Store, TorchConfig, UpdatedGroups,
};

use gradus::config::Network;

use super::{Everything, answers, assert_near, config, device, distance, policies, policy, rollout, transformer, worlds};

/// Returns the distinct names of a policy's parameter groups. One engine may split a group in two where the other does not.
fn names(policy: &dyn Policy) -> BTreeSet<&'static str> {
    policy.groups().iter().map(|group| group.name).collect()
}

#[test]
fn outputs_gradients_and_steps_are_the_same() {
    for config in worlds() {
        let name = &config.environment;
        let [mut ours, mut theirs] = policies(&config, &TorchConfig::default());
        let store = rollout(&config, ours.as_ref(), 1).remove(0).store;
        let (a, b) = (answers(ours.as_mut(), &store), answers(theirs.as_mut(), &store));
        for (what, (a, b)) in ["values", "log_probs", "distributions"].iter().zip(a.iter().zip(&b)) {
            assert_near(&format!("{name}: {what}"), b, a, 1e-5);
        }
        let of_theirs = b;
        let mut others = Vec::new();
        policy(&config, 8, Device::Cpu, &TorchConfig::default()).distributions(&store, &mut others);
        let n = store.actions.len() as u32;
        let indices: Vec<u32> = match &store.sequences {
            None => (0..n).filter(|i| i % 3 != 1).map(|i| (i * 5) % n).collect(),
            // every second sequence, from the last to the first
            Some(sequences) => sequences.list.iter().rev().step_by(2).flat_map(|own| own.decisions.clone()).map(|i| i as u32).collect(),
        };
        let weights: Vec<f32> = indices.iter().map(|i| 1.0 / (3.0 + *i as f32)).collect();
        let batch = Batch { old: Some(&others), reference: Some(&others), ..Batch::new(&indices, &weights) };
        let sums_of = |policy: &mut dyn Policy| {
            let sums = policy.gradient(&store, batch, &Everything(UpdatedGroups::All));
            let evaluated = policy.evaluate(&store, batch, &Everything(UpdatedGroups::All));
            assert!(
                (sums.loss - evaluated.loss).abs() < 1e-4 * sums.loss.abs().max(1.0),
                "{name}: loss: expected {}, got {}",
                sums.loss,
                evaluated.loss
            );
            sums
        };
        let (a, b) = (sums_of(ours.as_mut()), sums_of(theirs.as_mut()));
        assert!((a.loss - b.loss).abs() < 1e-4 * a.loss.abs().max(1.0), "{name}: loss: expected {}, got {}", a.loss, b.loss);
        assert!((a.diagnostics[0] - b.diagnostics[0]).abs() < 1e-5, "{name}: expected {:?}, got {:?}", a.diagnostics, b.diagnostics);
        assert!((ours.gradient_norm() / theirs.gradient_norm() - 1.0).abs() < 1e-4, "{name}: gradient norm {}", theirs.gradient_norm());
        // the same gradient in micro-batches
        let parts = TorchConfig { micro_batch: 100, ..TorchConfig::default() };
        let mut cut = policy(&config, config.seed, device(), &parts);
        cut.load(&theirs.save()).unwrap();
        let c = sums_of(cut.as_mut());
        assert!((c.loss - b.loss).abs() < 1e-4 * b.loss.abs().max(1.0), "{name}: loss: expected {}, got {}", b.loss, c.loss);
        assert_near(&format!("{name}: gradient in parts"), cut.last_gradient(), theirs.last_gradient(), 2e-5);
        // and in segments: layers that are computed again, and heads in chunks of decisions
        if let Network::Transformer(_) = &config.network {
            for (gradient_checkpointing, micro_batch) in [(true, 0), (true, 100), (false, 0)] {
                let torch = TorchConfig { gradient_checkpointing, micro_batch, ..TorchConfig::default() };
                let mut cut = transformer(&config, &torch).with_chunk(if micro_batch == 0 { 7 } else { 1000 });
                cut.load(&theirs.save()).unwrap();
                let c = sums_of(&mut cut);
                assert_eq!(cut.fault(), None);
                assert!((c.loss - b.loss).abs() < 1e-4 * b.loss.abs().max(1.0), "{name}: loss: expected {}, got {}", b.loss, c.loss);
                let what = format!("{name}: gradient in segments, {torch:?}");
                assert_near(&what, cut.last_gradient(), theirs.last_gradient(), 2e-5);
                let mut log_probs = Vec::new();
                cut.log_probs(&store, &mut log_probs);
                assert_near(&what, &log_probs, &of_theirs[1], 1e-5);
            }
        }
        // an optimiser step with each rule
        for rule in [Rule::Adam, Rule::RmsProp] {
            let rates = (1e-2, 2e-2);
            let step = OptimiserStep {
                rule,
                epsilon: 1e-5,
                learning_rate: rates.0,
                critic_learning_rate: rates.1,
                weight_decay: 0.01,
                max_grad_norm: 0.5,
                clip_per_group: false,
            };
            ours.apply(&step);
            theirs.apply(&step);
            let apart = distance(&theirs.save(), &ours.save());
            assert!(apart < 1e-4, "{name}, {rule:?}: the parameters are {apart} apart");
            assert!(distance(&theirs.save_optimiser(), &ours.save_optimiser()) < 1e-4, "{name}");
        }
        // optimiser steps of the critic, the actor and both; the gradient is clipped per group except in the second step
        assert_eq!(names(theirs.as_ref()), names(ours.as_ref()), "{name}");
        for (i, moves) in [UpdatedGroups::Critic, UpdatedGroups::Critic, UpdatedGroups::Actor, UpdatedGroups::All].into_iter().enumerate() {
            // both engines begin with the same state, so only the arithmetic of this step can differ
            theirs.load(&ours.save()).unwrap();
            theirs.load_optimiser(&ours.save_optimiser()).unwrap();
            let before = theirs.save();
            for policy in [&mut ours, &mut theirs] {
                policy.gradient(&store, batch, &Everything(moves));
                policy.apply(&OptimiserStep {
                    rule: Rule::Adam,
                    epsilon: 1e-3,
                    learning_rate: 1e-2,
                    critic_learning_rate: 2e-2,
                    weight_decay: 0.01,
                    max_grad_norm: 0.1,
                    clip_per_group: i != 1,
                });
            }
            let apart = distance(&theirs.save(), &ours.save());
            assert!(apart < 1e-4, "{name}, {moves:?}: the parameters are {apart} apart");
            assert!(distance(&before, &theirs.save()) > 1e-3, "{name}, {moves:?}: nothing has moved");
            let clocks = |policy: &dyn Policy| {
                let optimiser = policy.save_optimiser();
                optimiser.into_iter().filter(|(name, _)| name.starts_with("powers.")).collect::<Tensors>()
            };
            assert_eq!(clocks(theirs.as_ref()), clocks(ours.as_ref()), "{name}, {moves:?}: expected the same number of steps");
        }
        // the gradient of an empty batch is 0
        theirs.gradient(&store, Batch::new(&[], &[]), &Everything(UpdatedGroups::All));
        assert_eq!((theirs.gradient_norm(), theirs.last_gradient().iter().all(|g| *g == 0.0)), (0.0, true), "{name}");
        assert_eq!(theirs.fault(), None);
    }
}

#[test]
fn masks_rule_out_actions() {
    let config = config("ppo", "cartpole", &[]);
    let [mut ours, mut theirs] = policies(&config, &TorchConfig::default());
    let observations: Vec<f32> = (0..40).map(|i| (i as f32 * 0.7).sin()).collect();
    let masks: Vec<bool> = (0..10).flat_map(|i| [i % 3 != 0, i % 3 != 1]).collect();
    let mut streams: Vec<_> = (0..10).map(|i| gradus::envs::random::Stream::new(1, gradus::envs::random::Purpose::Action, i)).collect();
    let (mut actions, mut log_probs) = (ActionRows::Discrete(Vec::new()), vec![0.0; 10]);
    theirs.actor().act(&observations, Some(&masks), Choice::Sample(&mut streams), &mut actions, &mut log_probs);
    let ActionRows::Discrete(chosen) = &actions else { unreachable!("CartPole's actions are numbers") };
    assert!(chosen.iter().zip(masks.chunks_exact(2)).all(|(action, mask)| mask[*action as usize]));
    let store = Store::new(4, observations, actions).with_masks(masks);
    let (a, b) = (answers(ours.as_mut(), &store), answers(theirs.as_mut(), &store));
    assert_near("log_probs", &b[1], &a[1], 1e-5);
    let indices: Vec<u32> = (0..10).collect();
    let batch = Batch { old: Some(&a[2]), reference: Some(&a[2]), ..Batch::new(&indices, &[0.1; 10]) };
    ours.gradient(&store, batch, &Everything(UpdatedGroups::All));
    theirs.gradient(&store, batch, &Everything(UpdatedGroups::All));
    assert!((ours.gradient_norm() - theirs.gradient_norm()).abs() < 1e-5 * ours.gradient_norm(), "{}", theirs.gradient_norm());
    assert_eq!(theirs.fault(), None);
}
