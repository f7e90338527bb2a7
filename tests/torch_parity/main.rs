//! Compares the engines `torch` and `cpu`: the same parameters, rollouts and seeds give the same numbers apart from rounding.
//!
//! The engine `torch` runs on `torch-cpu`, or on the device in the environment variable `GRADUS_TEST_DEVICE`, such as `cuda`.

mod actions;
mod choices;
mod gradients;
mod precision;
mod q_actor_critics;
mod q_networks;
mod updates;

use gradus::Config;
use gradus::agents::Rollout;
use gradus::config::Network;
use gradus::nets::tensors::{Data, Tensors};
use gradus::nets::torch::Transformer;
use gradus::nets::{
    Behaviour, Critic, Device, Evaluation, Objective, Outputs, Policy, Store, TorchConfig, TransformerConfig, UpdatedGroups,
};
use gradus::rollouts::Collector;

fn device() -> Device {
    std::env::var("GRADUS_TEST_DEVICE").map_or(Device::TorchCpu, |name| name.parse().unwrap())
}

fn config(agent: &str, environment: &str, settings: &[&str]) -> Config {
    let config = Config::preset(agent, environment, None).unwrap();
    settings.iter().fold(config, |config, setting| config.with_setting(setting).unwrap())
}

/// Returns a policy of the configured network; adapters are beside the same model, whatever the seed is.
fn policy(config: &Config, seed: u64, device: Device, torch: &TorchConfig) -> Box<dyn Policy> {
    let mut policy = config.network.policy_on(&config.world().unwrap(), seed, device, torch).unwrap();
    load_model(config, policy.as_mut());
    policy
}

/// As above, the transformer itself on libtorch.
fn transformer(config: &Config, torch: &TorchConfig) -> Transformer {
    let Network::Transformer(network) = &config.network else { panic!("a transformer") };
    let env = config.world().unwrap().env();
    let mut policy = Transformer::new((network, torch), (&env.observation_space(), &env.action_space()), config.seed, device()).unwrap();
    load_model(config, &mut policy);
    policy
}

fn load_model(config: &Config, policy: &mut dyn Behaviour) {
    if let Network::Transformer(network) = &config.network
        && network.lora_rank > 0
    {
        let whole = TransformerConfig { lora_rank: 0, critic: Critic::Head, ..network.clone() };
        let model = Network::Transformer(whole).policy(&config.world().unwrap(), 7).unwrap().merged().unwrap();
        policy.load_pretrained(&model).unwrap();
    }
}

/// Returns the same policy on both engines, with random numbers added to its initial parameters.
fn policies(config: &Config, torch: &TorchConfig) -> [Box<dyn Policy>; 2] {
    let mut ours = policy(config, config.seed, Device::Cpu, torch);
    let mut theirs = policy(config, config.seed, device(), torch);
    assert_eq!(ours.save(), theirs.save(), "expected the same initialisation");
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
    let agent = config.agent(&config.world().unwrap()).unwrap();
    let collector = Collector::new(&config.world().unwrap(), config.envs, config.seed, agent.collection()).unwrap();
    let mut collector = collector.with_max_concurrent(config.max_concurrent);
    (0..rollouts).map(|_| collector.collect(policy).unwrap().0).collect()
}

/// Returns the relative distance ||a - b|| / ||b|| over all f32 tensors.
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
        assert!(a == b || (a - b).abs() <= tolerance * b.abs().max(1.0), "{what} {i}: expected {b}, got {a}");
    }
}

/// An objective that uses every output, with derivatives that differ between decisions. It updates the actor, the critic, or both.
struct Everything(UpdatedGroups);

impl Objective for Everything {
    fn decision(&self, i: usize, pi: Outputs) -> Evaluation {
        let is_left_out = |k: usize| self.0 == if k == 2 { UpdatedGroups::Actor } else { UpdatedGroups::Critic };
        let c = |k: usize| if is_left_out(k) { 0.0 } else { ((i * 7 + k * 3) % 11) as f32 / 11.0 - 0.4 };
        let loss = c(0) * pi.log_prob + c(1) * pi.entropy + c(2) * pi.value + c(3) * pi.kl_old + c(4) * pi.kl_ref;
        loss.with_diagnostics([pi.kl_ref.value()])
    }

    fn updates(&self) -> UpdatedGroups {
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
    let small = ["envs=16", "max_concurrent=5"];
    vec![
        config("ppo", "cartpole", &[]),
        config("ppo", "pendulum", &[]),
        config("ppo", "mountain-car-continuous", &["network.gsde=true", "ppo.rollout_steps=128"]),
        config("ppo", "breakout", &["envs=8", "ppo.rollout_steps=32", "ppo.minibatch_size=64"]),
        config("ppo", "door-key", &["envs=8", "ppo.rollout_steps=32", "network.shared=false", "network.trunk=section4,5x2"]),
        config("ppo", "addition", &[&small[..], &["transformer.critic=separate"]].concat()),
        config("grpo", "chain-sum", &[&small[..], &["transformer.positions=learned", "transformer.temperature=1.3"]].concat()),
        config("ppo", "copy", &[&small[..], &["transformer.lora_rank=4", "transformer.critic=separate"]].concat()),
        config("grpo", "reverse", &[&small[..], &["transformer.lora_rank=8", "transformer.lora_targets=attention"]].concat()),
        // policies whose actor and critic share a trunk or embeddings; shared embeddings split the actor's parameters into two ranges in
        // one of the engines
        config("ppo", "cartpole", &["network.shared=true"]),
        config("ppo", "cartpole-masked", &["network.cell=gru", "envs=8"]),
        config("ppo", "pendulum-masked", &["network.cell=lstm", "network.shared=true", "ppo.rollout_steps=64", "network.gsde=true"]),
        config(
            "ppo",
            "reverse",
            &[&small[..], &["transformer.critic=separate", "transformer.shared_embeddings=true", "transformer.positions=learned"]].concat(),
        ),
    ]
}
