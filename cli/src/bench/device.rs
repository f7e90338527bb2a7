//! Speed of rollouts and updates with policy and environments on one device: PPO on CartPole and GRPO on text tasks.

use std::time::Instant;

use gradus::agents::UpdateContext;
use gradus::nets::Device;

use super::measure::median;
use gradus::train::collector;
use gradus::{Config, Error, memory};

/// The measured training: PPO with CleanRL's settings on CartPole, or GRPO's preset on a text task.
#[derive(Clone, Debug)]
pub struct Workload {
    /// `cartpole`, or a text task such as `target-sum`.
    pub environment: String,
    /// Number of environments.
    pub envs: usize,
    /// Steps of each environment in a rollout; ignored on text tasks.
    pub steps: usize,
    /// Epochs per rollout.
    pub epochs: usize,
    /// Minibatches per epoch.
    pub minibatches: usize,
    /// Device.
    pub device: Device,
    /// The setting `torch.worlds`.
    pub worlds: String,
}

/// Medians over the measured updates.
pub struct Throughput {
    /// Environment steps per second; on text tasks, tokens per second.
    pub rate: f64,
    /// Seconds of a rollout.
    pub collect: f64,
    /// Seconds of an update.
    pub update: f64,
    /// Whether the environments run on the device, or the device generates their completions.
    pub is_on_device: bool,
    /// Whether the environment is a text task.
    pub is_text: bool,
}

/// Measures `updates` updates, each with its rollout, after three warm-up updates.
pub fn throughput(workload: &Workload, updates: usize) -> Result<Throughput, Error> {
    let Workload { ref environment, envs, steps, epochs, minibatches, device, ref worlds } = *workload;
    let (agent, preset, settings) = if gradus::envs::registry::find(environment)?.text.is_some() {
        ("grpo", None, vec![format!("grpo.epochs={epochs}"), format!("grpo.minibatches={minibatches}")])
    } else {
        let size = (envs * steps).div_ceil(minibatches);
        let settings = [format!("ppo.rollout_steps={steps}"), format!("ppo.epochs={epochs}"), format!("ppo.minibatch_size={size}")];
        ("ppo", Some("cleanrl"), settings.into())
    };
    let config = Config { envs, device, ..Config::preset(agent, environment, preset)? };
    let config = settings.iter().try_fold(config, |config, setting| config.with_setting(setting))?;
    let config = config.with_setting(&format!("torch.worlds={worlds}"))?;
    let world = config.world()?;
    memory::check_training(&config, &world)?;
    let mut algorithm = config.algorithm(&world)?;
    let mut collector = collector(&config, &world, algorithm.as_ref())?;
    algorithm.begin();
    let (mut rates, mut collects, mut learns) = (Vec::new(), Vec::new(), Vec::new());
    for update in 0..updates + 3 {
        let began = Instant::now();
        let collected = collector.collect(algorithm.behaviour());
        Error::unless_sound(algorithm.behaviour())?;
        let (rollout, _) = collected?;
        let collect = began.elapsed().as_secs_f64();
        let context = UpdateContext { seed: config.seed, iteration: update as u64, progress: 0.0 };
        let report = algorithm.update(&rollout, context);
        Error::unless_sound(algorithm.behaviour())?;
        report?;
        let all = began.elapsed().as_secs_f64();
        if update >= 3 {
            rates.push(rollout.len() as f64 / all);
            collects.push(collect);
            learns.push(all - collect);
        }
    }
    let (is_on_device, is_text) = (collector.is_on_device(), world.text.is_some());
    Ok(Throughput { rate: median(rates), collect: median(collects), update: median(learns), is_on_device, is_text })
}
