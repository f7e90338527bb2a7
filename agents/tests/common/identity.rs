//! The identity task: the action must be the state.

use gradus_agents::{Agent, End, GroupId, Rollout, Segment};
use gradus_base::random::{Purpose, Stream};
use gradus_base::tensors::Data;
use gradus_envs::Space;
use gradus_nets::cpu::ActorCritic;
use gradus_nets::{ActionRows, Activation, Behaviour, Choice, Network, NetworkConfig, Store};

use super::context;

/// Number of states, which are observed as one-hot vectors, and number of actions.
pub const N: usize = 4;

pub fn policy(seed: u64) -> ActorCritic {
    let network = NetworkConfig { hidden: vec![16], activation: Activation::Tanh, ..NetworkConfig::default() };
    let observations = Space::Box { low: vec![0.0; N], high: vec![1.0; N] };
    ActorCritic::new(&network, &observations, &Space::Discrete(N as u32), seed).unwrap()
}

/// Samples a rollout from the policy, with one decision per segment. The eight segments of a group have the same state. The reward is 1 if
/// the action equals the state.
pub fn identity_rollout(policy: &mut ActorCritic, decisions: usize, iteration: u64) -> Rollout {
    let mut stream = Stream::new(1, Purpose::Environment, iteration);
    let of_group: Vec<usize> = (0..decisions.div_ceil(8)).map(|_| stream.below(N as u32) as usize).collect();
    let states: Vec<usize> = (0..decisions).map(|i| of_group[i / 8]).collect();
    let observations: Vec<f32> = states.iter().flat_map(|s| (0..N).map(move |i| if i == *s { 1.0 } else { 0.0 })).collect();
    let mut streams: Vec<Stream> = (0..decisions).map(|i| Stream::new(1, Purpose::Action, iteration * 10_000 + i as u64)).collect();
    let (mut actions, mut log_probs) = (ActionRows::empty(&Space::Discrete(N as u32)), vec![0.0; decisions]);
    policy.actor().act(&observations, None, Choice::Sample(&mut streams), &mut actions, &mut log_probs);
    let ActionRows::Discrete(chosen) = &actions else { panic!("expected discrete actions") };
    let rewards = states.iter().zip(chosen).map(|(s, a)| if *s == *a as usize { 1.0 } else { 0.0 }).collect();
    let segments = (0..decisions).map(|i| Segment { range: i..i + 1, end: End::Terminated, group: GroupId(i as u32 / 8) }).collect();
    Rollout::new(Store::new(N, observations, actions), rewards, log_probs, segments)
}

/// Trains for `updates` updates and returns the mean reward of the last rollout.
pub fn learn(agent: &mut dyn Agent, updates: u64) -> f32 {
    let mut policy = policy(3);
    agent.begin(&policy);
    let mut paid = 0.0;
    for iteration in 0..updates {
        let rollout = identity_rollout(&mut policy, 128, iteration);
        paid = rollout.rewards.iter().sum::<f32>() / 128.0;
        agent.update(&mut policy, &rollout, context(iteration)).unwrap();
    }
    paid
}

/// Returns the bits of the parameters of a parameter group, and the number of optimiser steps that the group's clock counted.
pub fn group(policy: &ActorCritic, name: &str) -> (Vec<u32>, f64) {
    let range = policy.groups().into_iter().find(|group| group.name == name).unwrap().range;
    let Data::U64(clock) = &policy.save_optimiser()[&format!("powers.{name}")].data else { panic!("the clock must be the bits of an f64") };
    (policy.parameters()[range].iter().map(|x| x.to_bits()).collect(), (f64::from_bits(clock[0]).ln() / 0.9_f64.ln()).round())
}
