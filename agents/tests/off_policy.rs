//! The mechanisms around the formulas of the agents with a replay buffer: when they update, when the target network moves, which priorities
//! and importance weights samples have, what masks forbid.
//!
//! Every network is linear in a single number, so that all expected values are computed here from its saved parameters.

#[path = "common/mod.rs"]
mod common;

use common::{metric, optimiser};
use gradus_agents::ddpg::DdpgConfig;
use gradus_agents::off_policy::OffPolicyConfig;
use gradus_agents::q_learner::QLearnerConfig;
use gradus_agents::{
    ActorLearnerConfig, AgentConfig, AgentKind, Algorithm, DqnConfig, End, Exploration, GroupId, OptimiserConfig, PqnConfig, QrDqnConfig,
    ReferenceConfig, Rollout, SacConfig, Segment, Setup, Td3Config, UpdateContext,
};
use gradus_base::random::{Purpose, Stream};
use gradus_base::tensors::{Data, Tensors};
use gradus_envs::{Space, registry};
use gradus_nets::cpu::{QActorCritic, QNetwork};
use gradus_nets::{ActionRows, NetworkConfig, QHead, Store};

const VALUE_BASED: [&str; 2] = ["dqn", "qr-dqn"];
const ACTOR_CRITIC: [&str; 3] = ["ddpg", "td3", "sac"];
const ENVS: usize = 2;
const ROLLOUT_STEPS: usize = 4;
/// Decisions of a rollout.
const ROLLOUT: usize = ENVS * ROLLOUT_STEPS;
const GAMMA: f32 = 0.9;
const TAU: f32 = 0.25;
const TARGET_UPDATE_INTERVAL: u64 = 20;
const QUANTILES: usize = 3;

fn every_agent() -> impl Iterator<Item = &'static str> {
    VALUE_BASED.into_iter().chain(ACTOR_CRITIC)
}

fn settings() -> OffPolicyConfig {
    OffPolicyConfig { rollout_steps: ROLLOUT_STEPS, learning_starts: 0, buffer_size: 64, batch_size: 4, gamma: GAMMA, ..Default::default() }
}

fn linear() -> NetworkConfig {
    NetworkConfig { hidden: Vec::new(), orthogonal: false, ..NetworkConfig::default() }
}

/// Returns the algorithm that `config` builds for a training of 10,000 steps, with linear networks.
fn built(config: &impl AgentConfig) -> Box<dyn Algorithm> {
    built_with(config, OptimiserConfig { learning_rate: 0.1, ..optimiser() })
}

fn built_with(config: &impl AgentConfig, optimiser: OptimiserConfig) -> Box<dyn Algorithm> {
    let built = with_setup(&optimiser, |setup| config.build(setup)).unwrap();
    let interval = |width: usize| Space::Box { low: vec![-1.0; width], high: vec![1.0; width] };
    match built {
        AgentKind::ActionValues { head, make, .. } => {
            make(Box::new(QNetwork::new(&linear(), head, &interval(1), &Space::Discrete(2), 1).unwrap()))
        }
        AgentKind::ActorAndCritics { head, make, .. } => {
            make(Box::new(QActorCritic::new(&linear(), head, &interval(1), &interval(1), 1).unwrap()))
        }
        _ => panic!("expected an agent with a network of action values"),
    }
}

/// Calls `build` for a training of 10,000 steps.
fn with_setup<T>(optimiser: &OptimiserConfig, build: impl FnOnce(&Setup<'_>) -> T) -> T {
    let (world, reference) = (registry::find("cartpole").unwrap(), ReferenceConfig::default());
    build(&Setup {
        world: &world,
        envs: ENVS,
        seed: 1,
        steps: 10_000,
        optimiser,
        reference: &reference,
        perceptron: None,
        scores_whole_texts: false,
        reward_scale: Some(1.0),
        normalises_observations: false,
        pairs: &[],
    })
}

/// Returns an agent whose target network moves by `tau`.
fn agent(name: &str, off_policy: OffPolicyConfig, tau: f32) -> Box<dyn Algorithm> {
    let of_values = || QLearnerConfig {
        off_policy: off_policy.clone(),
        tau,
        target_update_interval: TARGET_UPDATE_INTERVAL,
        ..QLearnerConfig::default()
    };
    let of_actor = || ActorLearnerConfig { off_policy: off_policy.clone(), tau };
    match name {
        "dqn" => built(&DqnConfig { learner: of_values(), ..DqnConfig::default() }),
        "qr-dqn" => built(&QrDqnConfig { learner: of_values(), quantiles: QUANTILES, ..QrDqnConfig::default() }),
        "ddpg" => built(&DdpgConfig { learner: of_actor(), ..DdpgConfig::default() }),
        "td3" => built(&Td3Config { learner: of_actor(), ..Td3Config::default() }),
        _ => built(&SacConfig { learner: of_actor(), ..SacConfig::default() }),
    }
}

/// Returns a rollout of random numbers. `ends`: every decision terminates its episode; otherwise no episode ends.
fn rollout(is_continuous: bool, ends: bool, number: u64) -> Rollout {
    let mut stream = Stream::new(3, Purpose::Environment, number);
    let mut numbers = |n: usize| (0..n).map(|_| stream.uniform(-1.0, 1.0) as f32).collect::<Vec<_>>();
    let (mut observations, rewards, rows) = (numbers(ROLLOUT), numbers(ROLLOUT), numbers(ROLLOUT));
    let group = |env: usize| GroupId(env as u32);
    let segments = if ends {
        (0..ROLLOUT).map(|i| Segment { range: i..i + 1, end: End::Terminated, group: group(i / ROLLOUT_STEPS) }).collect()
    } else {
        observations.extend(numbers(ENVS));
        let range = |env: usize| env * ROLLOUT_STEPS..(env + 1) * ROLLOUT_STEPS;
        (0..ENVS).map(|env| Segment { range: range(env), end: End::Cut { successor: ROLLOUT + env }, group: group(env) }).collect()
    };
    let actions = if is_continuous {
        ActionRows::Continuous { rows, width: 1 }
    } else {
        ActionRows::Discrete(rows.iter().map(|x| u32::from(*x > 0.0)).collect())
    };
    Rollout::new(Store::new(1, observations, actions), rewards, vec![0.0; ROLLOUT], segments)
}

fn context(iteration: u64, progress: f64) -> UpdateContext {
    UpdateContext { seed: 1, iteration, progress }
}

fn numbers<'a>(tensors: &'a Tensors, name: &str) -> &'a [f32] {
    match &tensors[name].data {
        Data::F32(numbers) => numbers,
        _ => panic!("{name}: expected f32"),
    }
}

/// Returns the number of updates so far, from the report of an update.
fn update(algorithm: &mut dyn Algorithm, rollout: &Rollout, iteration: u64) -> f64 {
    metric(&algorithm.update(rollout, context(iteration, 0.0)).unwrap(), "train/n_updates")
}

/// Returns the parameters of the network and those of the target network, by name.
fn parameters(algorithm: &dyn Algorithm) -> (Tensors, Tensors) {
    let state = algorithm.save();
    let target = state.iter().filter_map(|(name, tensor)| Some((name.strip_prefix("target.")?.into(), tensor.clone()))).collect();
    (algorithm.behaviour().save(), target)
}

/// Checks that every parameter of `target` is tau of that of `network` and 1 - tau of that of `before`.
fn assert_moved(target: &Tensors, (network, before): (&Tensors, &Tensors), tau: f32, what: &str) {
    assert_eq!(target.len(), network.len(), "{what}");
    for name in target.keys() {
        for ((got, new), old) in numbers(target, name).iter().zip(numbers(network, name)).zip(numbers(before, name)) {
            assert!((got - (tau * new + (1.0 - tau) * old)).abs() < 1e-6, "{what}, {name}: {got} from {old} towards {new}");
        }
    }
}

/// No update until more than `learning_starts` steps are done; then every rollout of eight decisions adds 0.8 updates.
#[test]
fn updates_begin_after_the_first_steps_and_no_fraction_is_lost() {
    for name in every_agent() {
        let mut algorithm = agent(name, OffPolicyConfig { learning_starts: 20, updates_per_step: 0.1, ..settings() }, 1.0);
        algorithm.begin();
        for number in 1..=50 {
            let rollout = rollout(ACTOR_CRITIC.contains(&name), false, number);
            let expected = (8 * number.saturating_sub(2) / 10) as f64; // 8, 16, then 24 steps
            assert_eq!(update(algorithm.as_mut(), &rollout, number), expected, "{name}, rollout {number}");
        }
    }
}

#[test]
fn the_first_actions_are_random() {
    for name in every_agent() {
        match agent(name, OffPolicyConfig { learning_starts: 20, ..settings() }, 1.0).exploration() {
            Exploration::Noisy(noisy) => assert_eq!(noisy.random_steps, 20, "{name}"),
            Exploration::EpsilonGreedy(greedy) => {
                assert!(greedy.epsilon(19) == 1.0 && greedy.epsilon(20) < 1.0, "{name}: {greedy:?}");
            }
            Exploration::Sampled => panic!("{name}: expected random actions at the beginning"),
        }
    }
}

/// The target network is copied once every 20 steps, whatever the length of a rollout, and before the updates that follow the rollout.
#[test]
fn the_target_network_of_action_values_moves_after_each_interval() {
    for (name, tau) in VALUE_BASED.into_iter().flat_map(|name| [(name, 1.0), (name, TAU)]) {
        let mut algorithm = agent(name, OffPolicyConfig { updates_per_step: 0.125, ..settings() }, tau);
        algorithm.begin();
        let mut moves = 0;
        for number in 1..=20 {
            let (network, before) = parameters(algorithm.as_ref());
            assert_eq!(update(algorithm.as_mut(), &rollout(false, false, number), number), number as f64, "one update a rollout");
            let (learned, target) = parameters(algorithm.as_ref());
            assert_ne!(learned, network);
            let interval = |steps: u64| steps / TARGET_UPDATE_INTERVAL;
            let is_due = interval(8 * number) > interval(8 * (number - 1));
            moves += u64::from(is_due);
            assert_moved(&target, (&network, &before), if is_due { tau } else { 0.0 }, &format!("{name}, tau {tau}, rollout {number}"));
        }
        assert_eq!(moves, 8);
    }
}

/// DDPG and SAC move their target networks, and update the actor, after every update of the critics; TD3 after every second one.
#[test]
fn the_target_networks_of_actor_and_critics_move_after_each_update() {
    for (name, delay) in [("ddpg", 1), ("td3", 2), ("sac", 1)] {
        let mut algorithm = agent(name, OffPolicyConfig { updates_per_step: 0.125, ..settings() }, TAU);
        algorithm.begin();
        for number in 1..=6 {
            let (network, before) = parameters(algorithm.as_ref());
            update(algorithm.as_mut(), &rollout(true, false, number), number);
            let (learned, target) = parameters(algorithm.as_ref());
            let is_due = number % delay == 0;
            assert_moved(&target, (&learned, &before), if is_due { TAU } else { 0.0 }, &format!("{name}, update {number}"));
            let of_actor = network.keys().find(|key| key.starts_with("actor.")).expect("the actor has parameters");
            assert_eq!(learned[of_actor] != network[of_actor], is_due, "{name}, update {number}, {of_actor}");
        }
    }
}

/// A training that begins from a policy begins with that policy as its target network.
#[test]
fn the_target_network_begins_as_a_copy_of_loaded_parameters() {
    for name in every_agent() {
        let mut algorithm = agent(name, settings(), TAU);
        let mut loaded = algorithm.behaviour().save();
        for tensor in loaded.values_mut() {
            let Data::F32(numbers) = &mut tensor.data else { continue };
            numbers.iter_mut().for_each(|x| *x += 0.5);
        }
        algorithm.behaviour_mut().load(&loaded).unwrap();
        assert_ne!(parameters(algorithm.as_ref()).1, loaded, "{name}");
        algorithm.begin();
        assert_eq!(parameters(algorithm.as_ref()).1, loaded, "{name}");
    }
}

/// Returns |Q(s, a) - y| of a decision, as a mean over the critics; for QR-DQN, of the mean of the quantiles.
fn error(network: &Tensors, rollout: &Rollout, i: usize, y: f32) -> f32 {
    let s = rollout.store.observation(i)[0];
    let linear = |name: &str, output: usize, inputs: &[f32]| {
        let (weights, biases) = (numbers(network, &format!("{name}.weight")), numbers(network, &format!("{name}.bias")));
        let weights = &weights[output * inputs.len()..][..inputs.len()];
        biases[output] + weights.iter().zip(inputs).map(|(w, x)| w * x).sum::<f32>()
    };
    let mean = |numbers: &[f32]| numbers.iter().sum::<f32>() / numbers.len() as f32;
    match &rollout.store.actions {
        ActionRows::Discrete(actions) => {
            let atoms = numbers(network, "q.0.bias").len() / 2;
            let quantiles: Vec<f32> = (0..atoms).map(|k| linear("q.0", actions[i] as usize * atoms + k, &[s])).collect();
            (mean(&quantiles) - y).abs()
        }
        ActionRows::Continuous { rows, .. } => {
            let critics = (0..).take_while(|k| network.contains_key(&format!("critic.{k}.0.bias")));
            let errors: Vec<f32> = critics.map(|k| (linear(&format!("critic.{k}.0"), 0, &[s, rows[i]]) - y).abs()).collect();
            mean(&errors)
        }
        ActionRows::OnDevice(_) => panic!("expected actions on the host"),
    }
}

/// Returns the priorities p^alpha of the decisions of a rollout, in its order.
fn priorities(algorithm: &dyn Algorithm) -> Vec<f32> {
    let state = algorithm.replay().unwrap().save();
    let leaves = numbers(&state, "priorities");
    let slots = leaves.len() / ENVS;
    (0..ROLLOUT).map(|i| leaves[i / ROLLOUT_STEPS * slots + i % ROLLOUT_STEPS]).collect()
}

/// Every episode ends after one decision, so y is the reward. A decision that was drawn has the priority (|Q(s, a) - r| + 1e-6)^alpha, the
/// others keep that of new decisions, 1.
#[test]
fn the_errors_of_an_update_become_the_priorities() {
    let exponent = 0.6;
    for name in every_agent() {
        let off_policy = OffPolicyConfig { updates_per_step: 0.125, priority_exponent: exponent, ..settings() };
        let mut algorithm = agent(name, off_policy, 1.0);
        algorithm.begin();
        let (network, rollout) = (algorithm.behaviour().save(), rollout(ACTOR_CRITIC.contains(&name), true, 1));
        assert_eq!(update(algorithm.as_mut(), &rollout, 0), 1.0);
        let (mut drawn, priorities) = (0, priorities(algorithm.as_ref()));
        for (i, priority) in priorities.iter().enumerate() {
            let expected = (error(&network, &rollout, i, rollout.rewards[i]) + 1e-6).powf(exponent);
            let is_drawn = (priority - expected).abs() < 1e-5;
            assert!(is_drawn || *priority == 1.0, "{name}, decision {i}: expected {expected} or 1, got {priority}");
            drawn += usize::from(is_drawn);
        }
        // four draws, each from a quarter of the mass
        assert_eq!(drawn, 4, "{name}: {priorities:?}");
    }
}

/// In every observation only action 0 is allowed, whose value is 0.5; that of action 1 is 5. So y = r + gamma 0.5.
#[test]
fn targets_use_allowed_actions_only() {
    let masked = |number| {
        let mut rollout = rollout(false, false, number);
        let mask = |rows: usize| [true, false].repeat(rows);
        (rollout.store.masks, rollout.store.next_masks) = (Some(mask(ROLLOUT)), Some(mask(ENVS)));
        if let ActionRows::Discrete(actions) = &mut rollout.store.actions {
            actions.fill(0);
        }
        rollout
    };
    let load = |algorithm: &mut dyn Algorithm| {
        let mut tensors = algorithm.behaviour().save();
        let atoms = numbers(&tensors, "q.0.bias").len() / 2;
        for (name, values) in [("q.0.weight", [0.0, 0.0]), ("q.0.bias", [0.5, 5.0])] {
            let Data::F32(numbers) = &mut tensors.get_mut(name).unwrap().data else { panic!("expected f32") };
            *numbers = values.into_iter().flat_map(|x| vec![x; atoms]).collect();
        }
        algorithm.behaviour_mut().load(&tensors).unwrap();
        algorithm.begin();
    };
    let (rollout, of_value) = (masked(1), |r: &f32| (0.5 - (r + GAMMA * 0.5)).abs());
    for (name, double) in VALUE_BASED.into_iter().flat_map(|name| [(name, false), (name, true)]) {
        let off_policy = OffPolicyConfig { updates_per_step: 0.125, priority_exponent: 1.0, batch_size: ROLLOUT, ..settings() };
        let learner = QLearnerConfig { off_policy, ..QLearnerConfig::default() };
        let mut algorithm = match name {
            "dqn" => built(&DqnConfig { learner, double, ..DqnConfig::default() }),
            _ => built(&QrDqnConfig { learner, double, quantiles: QUANTILES, ..QrDqnConfig::default() }),
        };
        load(algorithm.as_mut());
        update(algorithm.as_mut(), &rollout, 0);
        for (reward, priority) in rollout.rewards.iter().zip(priorities(algorithm.as_ref())) {
            assert!((priority - of_value(reward)).abs() < 1e-5, "{name}, double {double}, reward {reward}: the error is {priority}");
        }
    }
    // without replay: the mean error before the first step of the optimiser
    let mut pqn = built(&PqnConfig { epochs: 1, minibatches: 1, gamma: GAMMA, q_lambda: 0.0, ..PqnConfig::default() });
    load(pqn.as_mut());
    let got = metric(&pqn.update(&rollout, context(0, 0.0)).unwrap(), "train/td_error");
    let expected = rollout.rewards.iter().map(|r| f64::from(of_value(r))).sum::<f64>() / ROLLOUT as f64;
    assert!((got - expected).abs() < 1e-5, "pqn: expected the error {expected}, got {got}");
}

/// Beta rises linearly from `importance_exponent` to 1; with the probabilities 0.1 to 0.4 of four decisions the weights are (4 P)^-beta divided
/// by the greatest of them.
#[test]
fn the_importance_weights_are_corrected_fully_at_the_end() {
    let off_policy = OffPolicyConfig { priority_exponent: 1.0, importance_exponent: 0.4, rollout_steps: 2, ..settings() };
    let config = QLearnerConfig { off_policy, ..QLearnerConfig::default() };
    let network = QNetwork::new(&linear(), QHead::default(), &Space::Box { low: vec![-1.0], high: vec![1.0] }, &Space::Discrete(2), 1);
    let mut learner = config.learner(optimiser(), (1, 10_000), Box::new(network.unwrap()));
    let segments = (0..4).map(|i| Segment { range: i..i + 1, end: End::Terminated, group: GroupId(0) }).collect();
    let store = Store::new(1, vec![0.0; 4], ActionRows::Discrete(vec![0; 4]));
    learner.replay.extend(&Rollout::new(store, vec![0.0; 4], vec![0.0; 4], segments));
    let all = learner.sample(context(0, 0.0));
    assert_eq!(all.slots, [0, 1, 2, 3], "one draw from each quarter of the mass");
    learner.replay.set_priorities(&all, &[1.0, 2.0, 3.0, 4.0]);
    for (progress, beta) in [(0.0, 0.4), (0.5, 0.7), (1.0, 1.0)] {
        let sample = learner.sample(context(0, progress));
        let weight = |slot: usize| (4.0 * (slot + 1) as f64 / 10.0).powf(-beta);
        let greatest = sample.slots.iter().map(|slot| weight(*slot)).fold(0.0, f64::max);
        for (slot, got) in sample.slots.iter().zip(&sample.weights) {
            let expected = weight(*slot) / greatest;
            assert!((f64::from(*got) - expected).abs() < 1e-6, "progress {progress}, slot {slot}: expected {expected}, got {got}");
        }
        assert!(sample.slots.iter().any(|slot| *slot != sample.slots[0]), "all weights are 1");
    }
}

/// The only update of an iteration makes parameters infinite. Nothing but the check at the end of the iteration finds them.
#[test]
fn parameters_are_checked_at_the_end_of_an_iteration() {
    // the agents with an actor step it after the critics, and find them there
    for name in VALUE_BASED {
        let rollouts = agent(name, settings(), 1.0).rollouts_per_iteration() as u64;
        let learning_starts = (rollouts - 1) * ROLLOUT as u64;
        let off_policy = OffPolicyConfig { learning_starts, updates_per_step: 0.125, ..settings() };
        let wild = OptimiserConfig { learning_rate: 1e30, weight_decay: 1e10, ..optimiser() };
        let mut algorithm = match name {
            "dqn" => built_with(&DqnConfig { learner: QLearnerConfig { off_policy, ..Default::default() }, ..Default::default() }, wild),
            _ => built_with(&QrDqnConfig { learner: QLearnerConfig { off_policy, ..Default::default() }, ..Default::default() }, wild),
        };
        algorithm.begin();
        for number in 1..=rollouts {
            let result = algorithm.update(&rollout(false, false, number), context(0, 0.0));
            assert_eq!(result.is_ok(), number < rollouts, "{name}, rollout {number} of {rollouts}: {result:?}");
            assert!(result.err().is_none_or(|error| error.to_string().contains("parameter")), "{name}");
        }
    }
}

#[test]
fn shared_settings_are_checked() {
    let error = |config: ActorLearnerConfig| {
        let config = SacConfig { learner: config, ..SacConfig::default() };
        with_setup(&optimiser(), |setup| config.build(setup)).err().unwrap().to_string()
    };
    for tau in [0.0, 1.5, f32::NAN] {
        let config = ActorLearnerConfig { tau, ..ActorLearnerConfig::default() };
        assert_eq!(error(config), format!("sac.tau: expected a number above 0 and at most 1, got {tau}"));
    }
    let off_policy = OffPolicyConfig { importance_exponent: 1.5, ..OffPolicyConfig::default() };
    let config = ActorLearnerConfig { off_policy, ..ActorLearnerConfig::default() };
    assert_eq!(error(config), "sac.importance_exponent: expected a number from 0 to 1, got 1.5");
}

/// What a resumed training says about schedules: epsilon falls from 1 to 0.2 over half of the steps, beta rises from 0.4 to 1.
#[test]
fn scheduled_quantities_follow_the_number_of_steps() {
    let off_policy = OffPolicyConfig { priority_exponent: 0.5, ..settings() };
    let learner = QLearnerConfig { off_policy, exploration_fraction: 0.5, exploration_final_eps: 0.2, ..QLearnerConfig::default() };
    let config = DqnConfig { learner, ..DqnConfig::default() };
    let values = |steps, done| config.scheduled(steps, done).into_iter().map(|(_, value)| (100.0 * value).round()).collect::<Vec<_>>();
    assert_eq!(
        [values(1000, 0), values(1000, 250), values(1000, 1000), values(4000, 1000)],
        [vec![100.0, 40.0], vec![60.0, 55.0], vec![20.0, 100.0], vec![60.0, 55.0]]
    );
    assert_eq!(config.scheduled(1000, 0).iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["epsilon", "importance_exponent"]);
}
