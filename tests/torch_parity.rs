//! The engine `torch` against the engine `cpu`: the same parameters, rollouts and seeds give the same numbers, but for rounding.
//!
//! `GRADUS_TEST_DEVICE` names another device than `torch-cpu`, such as `cuda`.

use std::collections::BTreeSet;

use gradus::Config;
use gradus::agents::{Rollout, UpdateContext};
use gradus::nets::tensors::{Data, Tensors};
use gradus::nets::{
    ActionRows, Batch, Choice, Device, LossGrad, Moves, Network, Objective, OptimiserStep, Policy, PolicyOutput, Precision, Rule, Store,
    TorchConfig,
};
use gradus::train::collect::Collector;

fn device() -> Device {
    std::env::var("GRADUS_TEST_DEVICE").map_or(Device::TorchCpu, |name| name.parse().unwrap())
}

fn config(agent: &str, environment: &str, settings: &[&str]) -> Config {
    let config = Config::preset(agent, environment, None).unwrap();
    settings.iter().fold(config, |config, setting| config.with_setting(setting).unwrap())
}

/// The same policy on both engines, away from where it begins.
fn policies(config: &Config, torch: &TorchConfig) -> [Box<dyn Policy>; 2] {
    let world = config.world().unwrap();
    let mut ours = config.network.policy(&world, config.seed).unwrap();
    let mut theirs = config.network.policy_on(&world, config.seed, device(), torch).unwrap();
    assert_eq!(ours.save(), theirs.save(), "the same beginning");
    let mut tensors = ours.save();
    let mut stream = gradus::envs::random::Stream::new(5, gradus::envs::random::Purpose::Initialisation, 9);
    for tensor in tensors.values_mut() {
        if let Data::F32(numbers) = &mut tensor.data {
            numbers.iter_mut().for_each(|x| *x += stream.uniform(-0.1, 0.1) as f32);
        }
    }
    ours.load(&tensors).unwrap();
    theirs.load(&tensors).unwrap();
    [ours, theirs]
}

fn rollout(config: &Config, policy: &dyn Policy, rollouts: usize) -> Vec<Rollout> {
    let agent = config.agent().unwrap();
    let collector = Collector::new(&config.world().unwrap(), config.envs, config.seed, agent.collection()).unwrap();
    let mut collector = collector.with_max_concurrent(config.slots);
    (0..rollouts).map(|_| collector.collect(policy).unwrap().0).collect()
}

/// ||a - b|| / ||b|| over all tensors.
fn distance(a: &Tensors, b: &Tensors) -> f64 {
    let (mut difference, mut norm) = (0.0, 0.0);
    for (name, theirs) in b {
        if let (Data::F32(a), Data::F32(b)) = (&a[name].data, &theirs.data) {
            difference += a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>();
            norm += b.iter().map(|b| f64::from(*b).powi(2)).sum::<f64>();
        }
    }
    (difference / norm).sqrt()
}

fn assert_near(what: &str, a: &[f32], b: &[f32], tolerance: f32) {
    assert_eq!(a.len(), b.len(), "{what}");
    for (i, (a, b)) in a.iter().zip(b).enumerate() {
        assert!(a == b || (a - b).abs() <= tolerance * b.abs().max(1.0), "{what} {i}: {a} and {b}");
    }
}

/// Ten updates by the same agent on the same rollouts.
fn ten_updates(name: &str, config: &Config) {
    let [mut ours, mut theirs] = policies(config, &TorchConfig::default());
    let (mut agent, mut other) = (config.agent().unwrap(), config.agent().unwrap());
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
            assert!((a - b).abs() <= 1e-3 * b.abs().max(0.1) || (a.is_nan() && b.is_nan()), "{name}: {key} is {a} and {b}");
        }
    }
    let (moved, apart) = (distance(&before, &ours.save()), distance(&theirs.save(), &ours.save()));
    println!("{name:<40} moved {moved:.4}, apart {apart:.2e}");
    assert!(moved > 1e-3, "{name}: ten updates moved nothing, {moved}");
    assert!(apart < 1e-4, "{name}: ten updates end {apart:.2e} apart");
}

#[test]
fn ten_updates_of_every_agent_end_at_the_same_parameters() {
    let table: [(&str, &str, &[&str]); 11] = [
        ("reinforce", "cartpole", &[]),
        ("a2c", "cartpole", &[]),
        ("trpo", "cartpole", &[]),
        ("ppo", "cartpole", &[]),
        ("ppo", "cartpole", &["network.shared=true", "network.activation=relu", "optimiser.rule=rmsprop"]),
        ("ppo", "cartpole", &["reference.coefficient=0.1", "reference.estimator=exact", "reference.place=loss"]),
        ("grpo", "cartpole", &["envs=8", "grpo.group_size=4"]),
        // 320 steps of the optimiser; the preset's 3200 on rewards that nothing normalises end 7e-4 apart
        ("ppo", "pendulum", &["ppo.rollout_steps=128", "ppo.epochs=4"]),
        ("a2c", "pendulum", &["optimiser.weight_decay=0.1"]),
        // on longer rollouts the conjugate gradients make much of a rounding: 1e-5 to 2e-4 apart, by the seed
        ("trpo", "pendulum", &["trpo.rollout_steps=128"]),
        // few passes: the more of them, the likelier that a ratio falls on either side of a clip range's edge, which is a jump
        ("ppo", "mountain-car-continuous", &["network.gsde=true", "ppo.rollout_steps=128", "ppo.epochs=2"]),
    ];
    for (agent, environment, settings) in table {
        ten_updates(&format!("{agent} on {environment} {settings:?}"), &config(agent, environment, settings));
    }
}

#[test]
fn ten_updates_on_texts_end_at_the_same_parameters() {
    let table: [(&str, &str, &[&str]); 6] = [
        ("grpo", "addition", &["envs=32"]),
        ("grpo", "chain-sum", &["envs=32", "grpo.supervision=process", "grpo.group_std=none", "grpo.aggregation=sequence-mean"]),
        ("grpo", "copy", &["envs=32", "grpo.ratio=sequence", "transformer.positions=learned", "transformer.feed_forward=gelu"]),
        ("ppo", "addition", &["envs=32", "transformer.critic=separate"]),
        (
            "ppo",
            "reverse",
            &["envs=32", "transformer.critic=separate", "transformer.shared_embeddings=true", "transformer.temperature=0.8"],
        ),
        ("reinforce", "target-sum", &["envs=32", "reference.coefficient=0.1", "reference.estimator=exact", "reference.place=loss"]),
    ];
    for (agent, environment, settings) in table {
        ten_updates(&format!("{agent} on {environment} {settings:?}"), &config(agent, environment, settings));
    }
}

/// All an objective can ask for, with derivatives that differ from decision to decision; of the policy, of the values, or of both.
struct Everything(Moves);

impl Objective for Everything {
    fn decision(&self, i: usize, now: PolicyOutput) -> LossGrad {
        let is_left_out = |k: usize| self.0 == if k == 2 { Moves::Actor } else { Moves::Critic };
        let c = |k: usize| if is_left_out(k) { 0.0 } else { ((i * 7 + k * 3) % 11) as f32 / 11.0 - 0.4 };
        let loss = c(0) * now.log_prob + c(1) * now.entropy + c(2) * now.value + c(3) * now.kl_old + c(4) * now.kl_ref;
        let derivative = PolicyOutput { log_prob: c(0), entropy: c(1), value: c(2), kl_old: c(3), kl_ref: c(4) };
        let mut diagnostics = [0.0; gradus::nets::DIAGNOSTICS];
        diagnostics[0] = now.kl_ref;
        LossGrad { loss, derivative, diagnostics }
    }

    fn moves(&self) -> Moves {
        self.0
    }
}

fn answers(policy: &mut dyn Policy, store: &Store) -> [Vec<f32>; 3] {
    let mut all = [const { Vec::new() }; 3];
    policy.values(store, &mut all[0]);
    policy.log_probs(store, &mut all[1]);
    policy.distributions(store, &mut all[2]);
    all
}

fn worlds() -> Vec<Config> {
    let small = ["envs=16", "slots=5"];
    vec![
        config("ppo", "cartpole", &[]),
        config("ppo", "pendulum", &[]),
        config("ppo", "mountain-car-continuous", &["network.gsde=true", "ppo.rollout_steps=128"]),
        config("ppo", "addition", &[&small[..], &["transformer.critic=separate"]].concat()),
        config("grpo", "chain-sum", &[&small[..], &["transformer.positions=learned", "transformer.temperature=1.3"]].concat()),
        // groups of shared parameters: a trunk, and embeddings that do not lie beside one another in both engines
        config("ppo", "cartpole", &["network.shared=true"]),
        config(
            "ppo",
            "reverse",
            &[&small[..], &["transformer.critic=separate", "transformer.shared_embeddings=true", "transformer.positions=learned"]].concat(),
        ),
    ]
}

/// The names of a policy's groups, each once: one engine may cut a group in two.
fn names(policy: &dyn Policy) -> BTreeSet<&'static str> {
    policy.groups().iter().map(|group| group.name).collect()
}

#[test]
fn what_is_said_and_the_gradients_are_the_same() {
    for config in worlds() {
        let name = &config.environment;
        let [mut ours, mut theirs] = policies(&config, &TorchConfig::default());
        let store = rollout(&config, ours.as_ref(), 1).remove(0).store;
        let (a, b) = (answers(ours.as_mut(), &store), answers(theirs.as_mut(), &store));
        for (what, (a, b)) in ["values", "log_probs", "distributions"].iter().zip(a.iter().zip(&b)) {
            assert_near(&format!("{name}: {what}"), b, a, 1e-5);
        }
        let mut others = Vec::new();
        config.network.policy(&config.world().unwrap(), 8).unwrap().distributions(&store, &mut others);
        let n = store.actions.len() as u32;
        let indices: Vec<u32> = (0..n).filter(|i| i % 3 != 1).map(|i| (i * 5) % n).collect();
        let weights: Vec<f32> = indices.iter().map(|i| 1.0 / (3.0 + *i as f32)).collect();
        let batch = Batch { old: Some(&others), reference: Some(&others), ..Batch::new(&indices, &weights) };
        let said = |policy: &mut dyn Policy| {
            let sums = policy.gradient(&store, batch, &Everything(Moves::All));
            let evaluated = policy.evaluate(&store, batch, &Everything(Moves::All));
            assert!((sums.loss - evaluated.loss).abs() < 1e-4 * sums.loss.abs().max(1.0), "{name}: {} and {}", sums.loss, evaluated.loss);
            sums
        };
        let (a, b) = (said(ours.as_mut()), said(theirs.as_mut()));
        assert!((a.loss - b.loss).abs() < 1e-4 * a.loss.abs().max(1.0), "{name}: {} and {}", a.loss, b.loss);
        assert!((a.diagnostics[0] - b.diagnostics[0]).abs() < 1e-5, "{name}: {:?} and {:?}", a.diagnostics, b.diagnostics);
        assert!((ours.gradient_norm() / theirs.gradient_norm() - 1.0).abs() < 1e-4, "{name}: {}", theirs.gradient_norm());
        // in parts
        let parts = TorchConfig { micro_batch: 100, ..TorchConfig::default() };
        let mut cut = config.network.policy_on(&config.world().unwrap(), config.seed, device(), &parts).unwrap();
        cut.load(&theirs.save()).unwrap();
        let c = said(cut.as_mut());
        assert!((c.loss - b.loss).abs() < 1e-4 * b.loss.abs().max(1.0), "{name}: {} and {}", c.loss, b.loss);
        assert_near(&format!("{name}: gradient in parts"), cut.last_gradient(), theirs.last_gradient(), 2e-5);
        // two steps along it, by each rule's arithmetic
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
            assert!(apart < 1e-4, "{name}, {rule:?}: {apart}");
            assert!(distance(&theirs.save_optimiser(), &ours.save_optimiser()) < 1e-4, "{name}");
        }
        // gradients of some groups, clipped apart
        assert_eq!(names(theirs.as_ref()), names(ours.as_ref()), "{name}");
        for (i, moves) in [Moves::Critic, Moves::Critic, Moves::Actor, Moves::All].into_iter().enumerate() {
            // the same gradient, so that what follows differs by the arithmetic of a step alone
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
            assert!(apart < 1e-4, "{name}, {moves:?}: {apart}");
            assert!(distance(&before, &theirs.save()) > 1e-3, "{name}, {moves:?}: nothing has moved");
            let clocks = |policy: &dyn Policy| {
                let optimiser = policy.save_optimiser();
                optimiser.into_iter().filter(|(name, _)| name.starts_with("powers.")).collect::<Tensors>()
            };
            assert_eq!(clocks(theirs.as_ref()), clocks(ours.as_ref()), "{name}, {moves:?}: how many steps there were");
        }
        // over nothing the gradient is nothing
        theirs.gradient(&store, Batch::new(&[], &[]), &Everything(Moves::All));
        assert_eq!((theirs.gradient_norm(), theirs.last_gradient().iter().all(|g| *g == 0.0)), (0.0, true), "{name}");
        assert_eq!(theirs.fault(), None);
    }
}

/// Actions are drawn by the host's streams on both engines: they are the same but where a probability lies on the edge of rounding.
#[test]
fn the_same_streams_draw_the_same_actions() {
    for config in worlds() {
        let [ours, mut theirs] = policies(&config, &TorchConfig::default());
        let (a, b) = (rollout(&config, ours.as_ref(), 1).remove(0), rollout(&config, theirs.as_ref(), 1).remove(0));
        match (&a.store.actions, &b.store.actions) {
            (ActionRows::Discrete(a), ActionRows::Discrete(b)) => {
                let same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
                assert!(same as f64 >= 0.99 * a.len() as f64, "{}: {same} of {} actions are the same", config.environment, a.len());
            }
            (ActionRows::Continuous { rows: a, .. }, ActionRows::Continuous { rows: b, .. }) => {
                assert_near("actions", &b[..64], &a[..64], 1e-4)
            }
            _ => unreachable!("one world has one kind of actions"),
        }
        // what was remembered of earlier tokens is what a fresh look says
        let mut again = Vec::new();
        theirs.log_probs(&b.store, &mut again);
        assert_near(&format!("{}: log_probs", config.environment), &b.log_probs, &again, 2e-5);
        assert_eq!(theirs.fault(), None);
    }
}

#[test]
fn greedy_and_truncated_choices_are_the_same() {
    let config = config("grpo", "addition", &["envs=32"]);
    let [ours, theirs] = policies(&config, &TorchConfig::default());
    let world = config.world().unwrap();
    let mut envs = world.vec_env(0..24, 3).unwrap();
    let sampling = gradus::nets::Sampling { top_k: 3, temperature: 0.7, ..Default::default() };
    let streams = || (0..24).map(|i| gradus::envs::random::Stream::new(8, gradus::envs::random::Purpose::Action, i)).collect::<Vec<_>>();
    let (mut one, mut two) = (ours.actor(), theirs.actor());
    for step in 0..12 {
        let rows = envs.observation_rows().to_vec();
        let (mut a, mut b) = (ActionRows::Discrete(Vec::new()), ActionRows::Discrete(Vec::new()));
        let (mut a_log_probs, mut b_log_probs) = (vec![0.0; 24], vec![0.0; 24]);
        let (mut left, mut right) = (streams(), streams());
        match step % 2 {
            0 => {
                one.act(&rows, None, Choice::Greedy, &mut a, &mut a_log_probs);
                two.act(&rows, None, Choice::Greedy, &mut b, &mut b_log_probs);
            }
            _ => {
                one.act(&rows, None, Choice::Truncated(&mut left, &sampling), &mut a, &mut a_log_probs);
                two.act(&rows, None, Choice::Truncated(&mut right, &sampling), &mut b, &mut b_log_probs);
            }
        }
        assert_eq!(a, b);
        assert_near("log_probs", &b_log_probs, &a_log_probs, 1e-5);
        envs.step(a.view()).unwrap();
    }
    drop((one, two));
    assert_eq!(theirs.fault(), None);
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
    ours.gradient(&store, batch, &Everything(Moves::All));
    theirs.gradient(&store, batch, &Everything(Moves::All));
    assert!((ours.gradient_norm() - theirs.gradient_norm()).abs() < 1e-5 * ours.gradient_norm(), "{}", theirs.gradient_norm());
    assert_eq!(theirs.fault(), None);
}

/// A training that goes on elsewhere: parameters and what the optimiser remembers cross over, both ways.
#[test]
fn checkpoints_cross_over() {
    for config in [config("ppo", "pendulum", &[]), config("grpo", "addition", &["envs=32"])] {
        let [mut ours, mut theirs] = policies(&config, &TorchConfig::default());
        let rollouts = rollout(&config, ours.as_ref(), 3);
        let update = |policy: &mut dyn Policy, i: usize| {
            let mut agent = config.agent().unwrap();
            agent.begin(policy);
            agent.update(policy, &rollouts[i], UpdateContext { seed: 1, iteration: i as u64, progress: 0.0 }).unwrap();
        };
        update(ours.as_mut(), 0);
        theirs.load(&ours.save()).unwrap();
        theirs.load_optimiser(&ours.save_optimiser()).unwrap();
        assert_eq!((theirs.save(), theirs.save_optimiser()), (ours.save(), ours.save_optimiser()), "nothing is lost");
        update(theirs.as_mut(), 1);
        let mut copy = theirs.snapshot();
        ours.load(&theirs.save()).unwrap();
        ours.load_optimiser(&theirs.save_optimiser()).unwrap();
        for policy in [&mut ours, &mut theirs] {
            update(policy.as_mut(), 2);
        }
        assert!(distance(&ours.save(), &theirs.save()) < 1e-5, "{}", distance(&ours.save(), &theirs.save()));
        assert!(distance(&copy.save(), &theirs.save()) > 1e-4, "a snapshot stays as it was");
        update(copy.as_mut(), 2);
        assert_eq!(copy.save(), theirs.save(), "and remembers what the optimiser does");
        // another shape is refused, and nothing has changed
        let mut wrong = theirs.save();
        let before = theirs.save();
        wrong.pop_first();
        assert!(theirs.load(&wrong).unwrap_err().to_string().contains("is missing"));
        assert_eq!(theirs.save(), before);
    }
}

/// bf16 has 8 bits: answers are near, and an update leads the same way.
#[test]
fn bf16_is_near() {
    let config = config("grpo", "addition", &["envs=64"]);
    let torch = TorchConfig { precision: Precision::Bf16, ..TorchConfig::default() };
    let [mut ours, mut theirs] = policies(&config, &torch);
    let store = rollout(&config, ours.as_ref(), 1).remove(0).store;
    let (a, b) = (answers(ours.as_mut(), &store), answers(theirs.as_mut(), &store));
    assert_near("log_probs", &b[1], &a[1], 0.03);
    assert_ne!(a[1], b[1]);
    let n = store.actions.len();
    let (indices, weights): (Vec<u32>, Vec<f32>) = (0..n as u32).map(|i| (i, 1.0 / n as f32)).unzip();
    for policy in [&mut ours, &mut theirs] {
        policy.gradient(&store, Batch::new(&indices, &weights), &Everything(Moves::All));
    }
    // each engine's own order of the parameters: by name
    let by_name = |policy: &dyn Policy| {
        let mut copy = policy.snapshot();
        copy.set_parameters(policy.last_gradient());
        copy.save()
    };
    let apart = distance(&by_name(theirs.as_ref()), &by_name(ours.as_ref()));
    assert!(apart > 1e-6 && apart < 0.05, "gradients are {apart} apart");
    // what was remembered in bf16 is what a fresh look in bf16 says, nearly
    let drawn = rollout(&config, theirs.as_ref(), 1).remove(0);
    let mut again = Vec::new();
    theirs.log_probs(&drawn.store, &mut again);
    assert_near("sampled in bf16", &drawn.log_probs, &again, 0.03);
    assert!(matches!(&theirs.save()["model.embed_tokens.weight"].data, Data::F32(_)));
    assert_eq!(theirs.fault(), None);
}

/// What it does shows on CUDA alone; that libtorch has it, everywhere.
#[test]
#[cfg(target_os = "linux")]
fn tf32_can_be_switched() {
    assert_eq!((gradus::nets::torch::allow_tf32(true), gradus::nets::torch::allow_tf32(false)), (Ok(()), Ok(())));
    let world = config("ppo", "cartpole", &[]).world().unwrap();
    let tf32 = TorchConfig { precision: Precision::Tf32, ..TorchConfig::default() };
    let problem = gradus::config::Network::default().policy_on(&world, 1, Device::TorchCpu, &tf32).err().unwrap().to_string();
    assert_eq!(problem, "torch.precision: expected f32 or bf16 on torch-cpu, got tf32, which CUDA alone has");
}

/// REINFORCE as tensors say it, and as an objective does.
#[test]
fn a_loss_in_tensors_has_the_same_gradient() {
    use gradus::nets::torch::{ActorCritic, tch};

    struct Reinforce<'a>(&'a [f32]);
    impl Objective for Reinforce<'_> {
        fn decision(&self, i: usize, now: PolicyOutput) -> LossGrad {
            let derivative = PolicyOutput { log_prob: -self.0[i], entropy: -0.01, ..PolicyOutput::default() };
            LossGrad { loss: -self.0[i] * now.log_prob - 0.01 * now.entropy, derivative, ..LossGrad::default() }
        }
    }

    let config = config("ppo", "cartpole", &[]);
    let env = config.world().unwrap().env();
    let gradus::config::Network::Perceptron(network) = &config.network else { unreachable!("CartPole has rows of numbers") };
    let spaces = (&env.observation_space(), &env.action_space());
    let mut policy = ActorCritic::new((network, &TorchConfig::default()), spaces, 1, device()).unwrap();
    let rollout = rollout(&config, &policy, 1).remove(0);
    let n = rollout.len();
    let returns: Vec<f32> = (0..n).map(|i| (i % 13) as f32 - 5.0).collect();
    let (indices, weights): (Vec<u32>, Vec<f32>) = (0..n as u32).map(|i| (i, 1.0 / n as f32)).unzip();
    let batch = Batch::new(&indices, &weights);
    policy.gradient(&rollout.store, batch, &Reinforce(&returns));
    let expected = policy.last_gradient().to_vec();

    let said = policy.said(&rollout.store, batch).unwrap();
    let returns = tch::Tensor::from_slice(&returns).to(said.log_prob.device());
    policy.differentiate(&-(said.log_prob * returns + said.entropy * 0.01).mean(tch::Kind::Float)).unwrap();
    assert_near("gradient", policy.last_gradient(), &expected, 1e-6);
}

/// An actor of gSDE keeps the noise of every row, and may be asked about fewer.
#[test]
fn an_actor_may_be_asked_about_fewer_rows() {
    let config = config("ppo", "mountain-car-continuous", &["network.gsde=true"]);
    let [_, theirs] = policies(&config, &TorchConfig::default());
    let mut actor = theirs.actor();
    for rows in [8, 3, 8] {
        let mut streams: Vec<_> =
            (0..rows).map(|i| gradus::envs::random::Stream::new(1, gradus::envs::random::Purpose::Action, i as u64)).collect();
        let (mut actions, mut log_probs) = (ActionRows::Continuous { rows: Vec::new(), width: 1 }, vec![f32::NAN; rows]);
        actor.act(&vec![0.1; 2 * rows], None, Choice::Sample(&mut streams), &mut actions, &mut log_probs);
        assert!(log_probs.iter().all(|log_prob| log_prob.is_finite()), "{log_probs:?}");
    }
    drop(actor);
    assert_eq!(theirs.fault(), None);
}

#[test]
fn a_precision_that_does_not_belong_is_refused() {
    let bf16 = TorchConfig { precision: Precision::Bf16, ..TorchConfig::default() };
    let world = config("ppo", "cartpole", &[]).world().unwrap();
    let problem = gradus::config::Network::default().policy_on(&world, 1, Device::TorchCpu, &bf16).err().unwrap().to_string();
    assert_eq!(problem, "torch.precision: expected f32 or tf32 for a multilayer perceptron, got bf16");
    let problem = config("grpo", "addition", &["torch.precision=bf16"]).agent().err().unwrap().to_string();
    assert_eq!(problem, "torch.precision: expected f32 on cpu, for libtorch alone knows others, got bf16");
}
