//! Environments on a device match those on the host: they have the same random numbers, physics, rollouts and checkpoints. The device is
//! `torch-cpu`, unless the environment variable `GRADUS_TEST_DEVICE` names another.

mod physics;
mod rollouts;
mod texts;
mod training;

use gradus::Config;
use gradus::agents::Collection;
use gradus::envs::text::TextOptions;
use gradus::envs::{CartPole, EnvSpec, TensorEnvSpec, registry};
use gradus::nets::torch::{ActorCritic, Transformer};
use gradus::nets::{ActionRows, Device, NetworkConfig, Store, TorchConfig, TransformerConfig};
use gradus::rollouts::Collector;

fn device() -> Device {
    std::env::var("GRADUS_TEST_DEVICE").map_or(Device::TorchCpu, |name| name.parse().unwrap())
}

fn policy(world: &EnvSpec, seed: u64) -> ActorCritic {
    let env = world.env();
    let config = NetworkConfig { hidden: vec![16], ..NetworkConfig::default() };
    let spaces = (&env.observation_space(), &env.action_space());
    ActorCritic::new((&config, &TorchConfig::default()), spaces, seed, device()).unwrap()
}

/// Returns CartPole with another time limit.
fn short_cartpole(limit: u32) -> EnvSpec {
    let mut world = EnvSpec::limited("cartpole", limit, CartPole::default);
    world.tensor_spec = Some(TensorEnvSpec::CartPole { limit });
    world
}

fn collector(world: &EnvSpec, envs: usize, seed: u64, steps: usize, policy: &ActorCritic) -> Collector {
    let wrappers = Config::default().wrappers;
    Collector::on_device(world, envs, seed, (Collection::Steps(steps), &wrappers), policy).unwrap()
}

fn actions(store: &Store) -> &[u32] {
    let ActionRows::Discrete(actions) = &store.actions else { panic!("expected discrete actions") };
    actions
}

fn is_near(a: f32, b: f32) -> bool {
    (a - b).abs() <= 1e-5 * (1.0 + a.abs())
}

fn transformer(world: &EnvSpec) -> Transformer {
    let env = world.env();
    let config = TransformerConfig { layers: 2, width: 32, heads: 2, feed_forward_width: 48, ..TransformerConfig::default() };
    let spaces = (&env.observation_space(), &env.action_space());
    Transformer::new((&config, &TorchConfig::default()), spaces, 7, device()).unwrap()
}

/// Returns worlds of target sum at several levels. Together they use every text option.
fn target_sums() -> Vec<EnvSpec> {
    let of = |name: &str, options| registry::find(name).unwrap().with_text_options(options).unwrap();
    let free = TextOptions::default();
    let penalties = TextOptions { missing_eos_penalty: 0.3, length_penalty: 0.07, overlong_buffer: 2, ..free.clone() };
    let bootstraps = TextOptions { max_new_tokens: Some(3), length_bootstraps: true, ..penalties.clone() };
    vec![
        of("target-sum-1", free.clone()),
        of("target-sum-2", penalties),
        of("target-sum-3", TextOptions { max_new_tokens: Some(21), ..free }),
        of("target-sum-3", bootstraps),
    ]
}
