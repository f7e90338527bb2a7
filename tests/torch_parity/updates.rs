//! Ten updates of every agent end at the same parameters on the engines `cpu` and `torch`, and checkpoints can move between engines.

use gradus::Config;
use gradus::agents::UpdateContext;
use gradus::nets::{Batch, Evaluation, Network, Objective, Outputs, Policy, TorchConfig};
use gradus::rollouts::Collector;

use super::{assert_near, config, device, distance, policies, rollout};

/// Checks that ten updates of the same agent on the same rollouts end at the same parameters on both engines.
fn ten_updates(name: &str, config: &Config) {
    let [mut ours, mut theirs] = policies(config, &TorchConfig::default());
    let (mut agent, mut other) = (config.agent(&config.world().unwrap()).unwrap(), config.agent(&config.world().unwrap()).unwrap());
    agent.begin(ours.as_ref());
    other.begin(theirs.as_ref());
    let mut collector = Collector::new(&config.world().unwrap(), config.envs, config.seed, agent.collection()).unwrap();
    let before = ours.save();
    for iteration in 0..10 {
        let (rollout, _) = collector.collect(ours.as_ref()).unwrap();
        let context = UpdateContext { seed: config.seed, iteration, progress: iteration as f64 / 20.0 };
        let (a, b) = (agent.update(ours.as_mut(), &rollout, context).unwrap(), other.update(theirs.as_mut(), &rollout, context).unwrap());
        assert_eq!(theirs.fault(), None);
        for ((key, a), (_, b)) in a.iter().zip(&b).filter(|_| iteration == 0) {
            assert!((a - b).abs() <= 1e-3 * b.abs().max(0.1) || (a.is_nan() && b.is_nan()), "{name}: {key}: expected {a}, got {b}");
        }
    }
    let (moved, apart) = (distance(&before, &ours.save()), distance(&theirs.save(), &ours.save()));
    println!("{name:<40} moved {moved:.4}, apart {apart:.2e}");
    assert!(moved > 1e-3, "{name}: ten updates moved the parameters only by {moved}");
    assert!(apart < 1e-4, "{name}: after ten updates the parameters are {apart:.2e} apart");
}

#[test]
fn ten_updates_of_every_agent_end_at_the_same_parameters() {
    let table: [(&str, &str, &[&str]); 14] = [
        ("reinforce", "cartpole", &[]),
        ("a2c", "cartpole", &[]),
        ("trpo", "cartpole", &[]),
        ("ppo", "cartpole", &[]),
        ("ppo", "cartpole", &["network.shared=true", "network.activation=relu", "optimiser.rule=rmsprop"]),
        ("ppo", "cartpole", &["reference.coefficient=0.1", "reference.estimator=exact", "reference.place=loss"]),
        ("grpo", "cartpole", &["envs=8", "grpo.group_size=4"]),
        // 320 optimiser steps; with the preset's 3200 optimiser steps, on rewards that are not normalised, the parameters end 7e-4 apart
        ("ppo", "pendulum", &["ppo.rollout_steps=128", "ppo.epochs=4"]),
        ("a2c", "pendulum", &["optimiser.weight_decay=0.1"]),
        // on longer rollouts conjugate gradients amplify rounding: the parameters end 1e-5 to 2e-4 apart, depending on the seed
        ("trpo", "pendulum", &["trpo.rollout_steps=128"]),
        // few epochs: with more, it is more likely that the two engines have a ratio on different sides of a clip bound, where the gradient
        // jumps
        ("ppo", "mountain-car-continuous", &["network.gsde=true", "ppo.rollout_steps=128", "ppo.epochs=2"]),
        // 100 optimiser steps at 3e-3; with the preset's rollouts they are 400, and the parameters end 3e-3 apart
        (
            "ppo",
            "cartpole-masked",
            &["network.cell_width=20", "envs=8", "network.sequence_length=9", "ppo.rollout_steps=32", "ppo.minibatch_size=256"],
        ),
        ("a2c", "pendulum-masked", &["network.cell=lstm", "network.shared=true", "a2c.rollout_steps=16", "envs=8"]),
        ("reinforce", "cartpole-masked", &["network.cell=gru", "network.hidden=[]", "reinforce.episodes_per_env=4"]),
    ];
    for (agent, environment, settings) in table {
        ten_updates(&format!("{agent} on {environment} {settings:?}"), &config(agent, environment, settings));
    }
}

#[test]
fn ten_updates_on_texts_end_at_the_same_parameters() {
    let table: [(&str, &str, &[&str]); 11] = [
        ("grpo", "addition", &["envs=32"]),
        ("dpo", "preference", &["envs=32", "dpo.group_size=4"]),
        ("grpo", "chain-sum", &["envs=32", "grpo.supervision=process", "grpo.group_std=none", "grpo.aggregation=sequence-mean"]),
        ("grpo", "copy", &["envs=32", "grpo.ratio=sequence", "transformer.positions=learned", "transformer.feed_forward=gelu"]),
        ("ppo", "addition", &["envs=32", "transformer.critic=separate"]),
        (
            "ppo",
            "copy",
            &["envs=32", "transformer.kv_heads=2", "transformer.biases=qkv", "transformer.qk_norm=true", "transformer.tied=false"],
        ),
        (
            "grpo",
            "copy",
            &["envs=32", "transformer.norm=layer", "transformer.biases=all", "transformer.feed_forward=gelu", "transformer.head_width=32"],
        ),
        (
            "ppo",
            "reverse",
            &["envs=32", "transformer.critic=separate", "transformer.shared_embeddings=true", "transformer.temperature=0.8"],
        ),
        (
            "ppo",
            "addition",
            &["envs=32", "transformer.lora_rank=8", "transformer.critic=separate", "transformer.kv_heads=2", "transformer.biases=qkv"],
        ),
        (
            "grpo",
            "copy",
            &[
                "envs=32",
                "transformer.lora_rank=4",
                "transformer.lora_targets=attention",
                "transformer.tied=false",
                "transformer.qk_norm=true",
            ],
        ),
        ("reinforce", "target-sum", &["envs=32", "reference.coefficient=0.1", "reference.estimator=exact", "reference.place=loss"]),
    ];
    for (agent, environment, settings) in table {
        ten_updates(&format!("{agent} on {environment} {settings:?}"), &config(agent, environment, settings));
    }
}

/// Parameters and the optimiser's state move between the engines in both directions.
#[test]
fn checkpoints_move_between_engines() {
    for config in [config("ppo", "pendulum", &[]), config("grpo", "addition", &["envs=32"])] {
        let [mut ours, mut theirs] = policies(&config, &TorchConfig::default());
        let rollouts = rollout(&config, ours.as_ref(), 3);
        let update = |policy: &mut dyn Policy, i: usize| {
            let mut agent = config.agent(&config.world().unwrap()).unwrap();
            agent.begin(policy);
            agent.update(policy, &rollouts[i], UpdateContext { seed: 1, iteration: i as u64, progress: 0.0 }).unwrap();
        };
        update(ours.as_mut(), 0);
        theirs.load(&ours.save()).unwrap();
        theirs.load_optimiser(&ours.save_optimiser()).unwrap();
        assert_eq!((theirs.save(), theirs.save_optimiser()), (ours.save(), ours.save_optimiser()), "expected the state that was loaded");
        update(theirs.as_mut(), 1);
        let mut copy = theirs.snapshot();
        ours.load(&theirs.save()).unwrap();
        ours.load_optimiser(&theirs.save_optimiser()).unwrap();
        for policy in [&mut ours, &mut theirs] {
            update(policy.as_mut(), 2);
        }
        assert!(distance(&ours.save(), &theirs.save()) < 1e-5, "{}", distance(&ours.save(), &theirs.save()));
        assert!(distance(&copy.save(), &theirs.save()) > 1e-4, "expected the update to leave the snapshot unchanged");
        update(copy.as_mut(), 2);
        assert_eq!(copy.save(), theirs.save(), "expected the snapshot to have the optimiser's state");
        // a checkpoint without one of the tensors is refused, and the parameters are unchanged
        let mut wrong = theirs.save();
        let before = theirs.save();
        wrong.pop_first();
        assert!(theirs.load(&wrong).unwrap_err().to_string().contains("is missing"));
        assert_eq!(theirs.save(), before);
    }
}

/// Compares the gradient of REINFORCE's loss, written with libtorch's tensors, with the gradient of the same loss as an `Objective`.
#[test]
fn a_loss_in_tensors_has_the_same_gradient() {
    use gradus::nets::torch::{ActorCritic, tch};

    struct Reinforce<'a>(&'a [f32]);
    impl Objective for Reinforce<'_> {
        fn decision(&self, i: usize, pi: Outputs) -> Evaluation {
            (-self.0[i] * pi.log_prob - 0.01 * pi.entropy).into()
        }
    }

    let config = config("ppo", "cartpole", &[]);
    let env = config.world().unwrap().env();
    let gradus::config::Network::Perceptron(network) = &config.network else { unreachable!("CartPole's observations are rows of numbers") };
    let spaces = (&env.observation_space(), &env.action_space());
    let mut policy = ActorCritic::new((network, &TorchConfig::default()), spaces, 1, device()).unwrap();
    let rollout = rollout(&config, &policy, 1).remove(0);
    let n = rollout.len();
    let returns: Vec<f32> = (0..n).map(|i| (i % 13) as f32 - 5.0).collect();
    let (indices, weights): (Vec<u32>, Vec<f32>) = (0..n as u32).map(|i| (i, 1.0 / n as f32)).unzip();
    let batch = Batch::new(&indices, &weights);
    policy.gradient(&rollout.store, batch, &Reinforce(&returns));
    let expected = policy.last_gradient().to_vec();

    let outputs = policy.said(&rollout.store, batch).unwrap();
    let returns = tch::Tensor::from_slice(&returns).to(outputs.log_prob.device());
    policy.differentiate(&-(outputs.log_prob * returns + outputs.entropy * 0.01).mean(tch::Kind::Float)).unwrap();
    assert_near("gradient", policy.last_gradient(), &expected, 1e-6);
}
