//! `gradus bench`: end-to-end speed.

mod arithmetic;
pub mod busy;
pub mod device;
pub mod growth;
pub mod measure;
pub mod memory;
pub mod seeds;
pub mod text;

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::{Args, Subcommand};
use gradus::agents::{self, ConfigError};
use gradus::config::{MOST, parse_steps};
use gradus::envs::registry;
use gradus::nets::cpu::Shape;
use gradus::nets::{Device, TorchConfig, TransformerConfig, engine, threads};
use gradus::{Config, Error, Trainer};

use crate::arguments::{number, number_within, on_threads};
use crate::output::{complain, say};
use crate::signals::Signals;
pub use arithmetic::Arithmetic;
use busy::{Busy, Situation};
use text::Workload;

#[derive(Subcommand)]
pub(crate) enum Bench {
    /// Time that PPO takes to solve CartPole.
    Solve {
        /// Number of seeds N; the seeds are 1 to N.
        #[arg(long, default_value = "20", allow_hyphen_values = true)]
        seeds: String,
        /// Preset [default: default]
        #[arg(long)]
        preset: Option<String>,
    },
    /// Training speed of an agent, relative to the machine's peak multiplication rate.
    Roofline {
        /// Agent: ppo, dqn, ddpg, td3 or sac.
        #[arg(long, default_value = "ppo")]
        agent: String,
        /// Environment [default: the first that the agent has presets for]
        #[arg(long)]
        env: Option<String>,
        /// Preset.
        #[arg(long, default_value = "cleanrl")]
        preset: String,
        /// Number of environments in lockstep [default: the preset's]; the minibatch size changes in proportion, which keeps the number
        /// of minibatches the same
        #[arg(long, allow_hyphen_values = true)]
        envs: Option<String>,
        /// One setting, applied last, such as network.hidden=[256]; may be repeated.
        #[arg(long = "set", value_name = "KEY=VALUE")]
        settings: Vec<String>,
        /// Number of threads [default: all cores]
        #[arg(long, allow_hyphen_values = true)]
        threads: Option<String>,
    },
    /// Environment steps per second of a training, including rollouts and updates.
    Train {
        /// Agent.
        agent: String,
        /// Environment.
        env: String,
        /// Preset [default: default]
        #[arg(long)]
        preset: Option<String>,
        /// One setting, applied after the preset, such as device=cuda; may be repeated.
        #[arg(long = "set", value_name = "KEY=VALUE")]
        settings: Vec<String>,
        /// Number of measurements, half a second each.
        #[arg(long, default_value = "9", allow_hyphen_values = true)]
        rounds: String,
        /// Number of threads [default: all cores]
        #[arg(long, allow_hyphen_values = true)]
        threads: Option<String>,
    },
    /// Time per step and memory use during one long run, written as a table and a figure.
    Growth {
        /// Environment steps of the run, at least 10k.
        #[arg(long, default_value = "100m", allow_hyphen_values = true)]
        steps: String,
        /// Agent.
        #[arg(long, default_value = "ppo")]
        agent: String,
        /// Environment [default: the first that the agent has presets for]
        #[arg(long)]
        env: Option<String>,
        /// Preset.
        #[arg(long, default_value = "cleanrl")]
        preset: String,
        /// One setting, applied after the preset, such as dqn.buffer_size=1000000; may be repeated.
        #[arg(long = "set", value_name = "KEY=VALUE")]
        settings: Vec<String>,
        /// Folder for growth.csv, growth.svg and growth.png; also holds the run folder until the run ends.
        #[arg(long = "out", alias = "to", value_name = "DIR")]
        to: PathBuf,
        /// Number of threads [default: all cores]
        #[arg(long, allow_hyphen_values = true)]
        threads: Option<String>,
    },
    /// Steps per second of several simultaneous single-threaded trainings, both in one process and with one process per training.
    Seeds {
        /// Number of simultaneous trainings [default: one per core]
        #[arg(long, allow_hyphen_values = true)]
        seeds: Option<String>,
        /// Preset.
        #[arg(long, default_value = "cleanrl")]
        preset: String,
        /// Number of measurements in one process, and as many in several processes; each takes half a second.
        #[arg(long, default_value = "11", allow_hyphen_values = true)]
        rounds: String,
        /// Run as one of the measured processes, with this seed.
        #[arg(long, hide = true)]
        serve: Option<String>,
        /// Threads of the measured process.
        #[arg(long, hide = true, default_value = "1")]
        threads: String,
    },
    /// Steps per second of trainings on all cores, relative to one thread, on a busy machine: next to a process that uses a core, and with
    /// two and four trainings at once.
    Busy {
        /// Preset.
        #[arg(long, default_value = "cleanrl")]
        preset: String,
        /// Number of measurements of each situation with all cores, and as many with one thread; each takes half a second.
        #[arg(long, default_value = "11", allow_hyphen_values = true)]
        rounds: String,
    },
    /// Completion tokens per second of GRPO with a transformer, generation and update together.
    Text(Text),
    /// Steps per second of PPO on CartPole or GRPO on a text task, including rollouts and updates. The policy is on one device, and the
    /// environments are on the same device or on the host.
    Device(OnDevice),
    /// Steps per second of an environment with random actions.
    Env {
        /// Environment.
        env: String,
        /// Number of environments in lockstep.
        #[arg(long, default_value = "4096", allow_hyphen_values = true)]
        envs: String,
        /// Number of threads, each with an equal share of the environments.
        #[arg(long, default_value = "1", allow_hyphen_values = true)]
        threads: String,
    },
    /// Share of one core's peak multiplication rate that matrix products reach, by shape: layers of perceptrons, and their gradients.
    Product {
        /// Number of measurements of each shape, two milliseconds each.
        #[arg(long, default_value = "101", allow_hyphen_values = true)]
        rounds: String,
    },
    /// Same as `env cartpole`.
    Cartpole {
        /// Number of environments in lockstep.
        #[arg(long, default_value = "4096", allow_hyphen_values = true)]
        envs: String,
    },
}

#[derive(Args)]
pub(crate) struct OnDevice {
    /// Device: cpu, torch-cpu, cuda, cuda:N or mps.
    #[arg(long, default_value = "cuda")]
    device: String,
    /// Environment: cartpole, or a text task such as target-sum.
    #[arg(long, default_value = "cartpole")]
    env: String,
    /// Number of environments in lockstep.
    #[arg(long, default_value = "65536", allow_hyphen_values = true)]
    envs: String,
    /// Steps of each environment in a rollout; ignored on text tasks.
    #[arg(long, default_value = "32", allow_hyphen_values = true)]
    steps: String,
    /// Epochs per rollout.
    #[arg(long, default_value = "4", allow_hyphen_values = true)]
    epochs: String,
    /// Minibatches per epoch.
    #[arg(long, default_value = "4", allow_hyphen_values = true)]
    minibatches: String,
    /// Where the environments run: device, host or auto.
    #[arg(long, default_value = "auto")]
    worlds: String,
    /// Number of measured updates.
    #[arg(long, default_value = "10", allow_hyphen_values = true)]
    updates: String,
    /// Number of threads [default: all cores]
    #[arg(long, allow_hyphen_values = true)]
    threads: Option<String>,
}

#[derive(Args)]
pub(crate) struct Text {
    /// Number of transformer layers.
    #[arg(long, default_value = "2", allow_hyphen_values = true)]
    layers: String,
    /// Embedding width.
    #[arg(long, default_value = "64", allow_hyphen_values = true)]
    width: String,
    /// Attention heads per layer.
    #[arg(long, default_value = "4", allow_hyphen_values = true)]
    heads: String,
    /// Hidden width of the feed-forward layers.
    #[arg(long, default_value = "176", allow_hyphen_values = true)]
    feed_forward_width: String,
    /// Prompts per update.
    #[arg(long, default_value = "32", allow_hyphen_values = true)]
    prompts: String,
    /// Completions per prompt.
    #[arg(long, default_value = "8", allow_hyphen_values = true)]
    group: String,
    /// Tokens per prompt.
    #[arg(long, default_value = "6", allow_hyphen_values = true)]
    prompt_tokens: String,
    /// Tokens per completion.
    #[arg(long, default_value = "16", allow_hyphen_values = true)]
    new_tokens: String,
    /// Device: cpu, torch-cpu, cuda, cuda:N or mps.
    #[arg(long, default_value = "cpu")]
    device: String,
    /// Precision of libtorch's matrix products: f32, tf32 or bf16.
    #[arg(long, default_value = "f32")]
    precision: String,
    /// Tokens per micro-batch on libtorch; 0: all tokens of a minibatch.
    #[arg(long, default_value = "0", allow_hyphen_values = true)]
    micro_batch: String,
    /// Number of measured updates.
    #[arg(long, default_value = "15", allow_hyphen_values = true)]
    updates: String,
    /// Number of threads [default: all cores]
    #[arg(long, allow_hyphen_values = true)]
    threads: Option<String>,
}

pub(crate) fn run(bench: Bench) -> Result<u8, Error> {
    // a process that `bench seeds` starts ends with its input
    if !matches!(bench, Bench::Growth { .. } | Bench::Seeds { serve: Some(_), .. }) {
        Signals::end_at_once();
    }
    match bench {
        Bench::Solve { seeds, preset } => solve(number("--seeds", &seeds, 1)?, preset.as_deref()),
        Bench::Roofline { agent, env, preset, envs, settings, threads } => {
            let mut config = Config::preset(&agent, &environment(env, &agent), Some(&preset))?;
            if let Some(envs) = envs {
                config = measure::with_envs(config, number_within("--envs", &envs, 1, MOST as u64)? as usize);
            }
            let config = crate::train::with_settings(config, &settings)?;
            roofline(&preset, &config, threads.as_deref())
        }
        Bench::Train { agent, env, preset, settings, rounds, threads } => {
            let config = Config::preset(&agent, &env, preset.as_deref())?;
            let config = crate::train::with_settings(config, &settings)?;
            let rounds = number_within("--rounds", &rounds, 1, 1 << 16)? as usize;
            on_threads(threads.as_deref(), || {
                let rate = measure::training(&config, rounds)?;
                say(format!("{agent} on {env}, {} environments, device {}", config.envs, config.device));
                say(format!("steps/s: {rate:.0}"));
                Ok(0)
            })?
        }
        Bench::Growth { steps, agent, env, preset, settings, to, threads } => {
            let env = environment(env, &agent);
            let config = Config::preset(&agent, &env, Some(&preset))?;
            let config = crate::train::with_settings(config, &settings)?;
            growth(&steps, &config, &format!("{} on {env}, preset {preset}", agent.to_uppercase()), &to, threads.as_deref())
        }
        Bench::Busy { preset, rounds } => busy(&preset, &rounds),
        Bench::Seeds { seeds, preset, rounds, serve: None, .. } => self::seeds(seeds.as_deref(), &preset, &rounds),
        Bench::Seeds { preset, serve: Some(seed), threads, .. } => {
            let config = Config::preset("ppo", "cartpole", Some(&preset))?;
            let _signals = Signals::handle(); // Ctrl-C also reaches this process, which ends with its input
            let (seed, count) = (number("--serve", &seed, 0)?, number_within("--threads", &threads, 1, 256)? as usize);
            seeds::serve(&config, seed, count, std::io::stdin().lock(), |rate| say(rate.to_string()))?;
            Ok(0)
        }
        Bench::Text(arguments) => text(&arguments),
        Bench::Device(arguments) => on_device(&arguments),
        Bench::Env { env, envs, threads } => random_actions(&env, &envs, &threads),
        Bench::Product { rounds } => products(number_within("--rounds", &rounds, 1, 1 << 16)? as usize),
        Bench::Cartpole { envs } => random_actions("cartpole", &envs, "1"),
    }
}

/// Returns the environment of a benchmark of `agent`.
fn environment(given: Option<String>, agent: &str) -> String {
    let first = || agents::registry::presets().into_iter().find(|preset| preset.agent == agent && preset.environment != "any");
    given.unwrap_or_else(|| first().map_or("cartpole", |preset| preset.environment).to_owned())
}

fn solve(seeds: u64, preset: Option<&str>) -> Result<u8, Error> {
    let config = Config::preset("ppo", "cartpole", preset)?;
    on_threads(None, || {
        say("seed   seconds     steps   greedy mean of 100 episodes");
        let (mut seconds, mut solved) = (Vec::new(), 0);
        for seed in 1..=seeds {
            let result = measure::solve(&config, seed)?;
            say(format!("{seed:>4}  {:>8.3}  {:>8}   {:.1}", result.seconds, result.steps, result.mean));
            seconds.push(result.seconds);
            solved += u64::from(result.mean >= 475.0);
        }
        let median = measure::median(seconds);
        say(format!("solved (475 or more): {solved} of {seeds}, median {median:.3} s on {} threads", threads::count()));
        Ok(0)
    })?
}

fn roofline(preset: &str, config: &Config, threads: Option<&str>) -> Result<u8, Error> {
    ConfigError::unless(config.device == Device::Cpu, "device", "cpu, because the roofline measures the processor", config.device)?;
    on_threads(threads, || {
        let measured = measure::roofline(config, 15)?;
        let Arithmetic { products, tanh, exp, ln, moved } = measured.per_step;
        let (environment, envs) = (&config.environment, config.envs);
        let agent = config.agent.to_uppercase();
        say(format!("{agent} on {environment}, preset {preset}, {envs} environments, {} threads", measured.threads));
        say(format!("multiply peak   {:>10.1} GFLOP/s in f32, all threads, in registers", measured.peak / 1e9));
        say(format!("arithmetic      {:>10.1} kFLOP per step of acting and learning, products only", products / 1e3));
        say(format!(
            "not included    {tanh:>10.0} tanh, {exp:.0} exp, {ln:.0} ln and {moved:.1} parameters moved by the optimiser per step"
        ));
        say(format!("roofline        {:>10.0} steps/s if only these products took time", measured.floor()));
        say(format!("measured        {:>10.0} steps/s", measured.rate));
        say(format!("ratio: {:.2}", measured.ratio()));
        Ok(0)
    })?
}

fn products(rounds: usize) -> Result<u8, Error> {
    const LAYERS: [[usize; 2]; 9] = [[32, 32], [64, 64], [128, 64], [112, 128], [128, 128], [256, 256], [304, 400], [400, 304], [512, 512]];
    const ROWS: [usize; 3] = [32, 64, 128];
    let shapes: Vec<Shape> = LAYERS
        .iter()
        .flat_map(|&[k, n]| ROWS.map(|m| [Shape { m, n, k, transposed: false }, Shape { m: k, n, k: m, transposed: true }]))
        .flatten()
        .collect();
    let shares = measure::products(&shapes, rounds);
    say("layer (inputs x outputs)    rows: layer, gradient of weights, as shares of the peak");
    for ([k, n], shares) in LAYERS.iter().zip(shares.chunks(2 * ROWS.len())) {
        let part = |(rows, shares): (usize, &[f64])| format!("{rows:>5}: {:.2} {:.2}", shares[0], shares[1]);
        let parts: Vec<String> = ROWS.into_iter().zip(shares.chunks(2)).map(part).collect();
        say(format!("{k:>4} x {n:<4}   {}", parts.join("   ")));
    }
    let least = shares.iter().copied().fold(f64::INFINITY, f64::min);
    say(format!(
        "lowest: {least:.2}, median: {:.2}; {:.1} GFLOP/s a core",
        measure::median(shares),
        gradus::nets::cpu::multiply_rate() / 1e9
    ));
    Ok(0)
}

fn growth(steps: &str, config: &Config, what: &str, to: &Path, threads: Option<&str>) -> Result<u8, Error> {
    let expected = || Error::Parse {
        what: "--steps".into(),
        expected: format!("{} steps or more, such as 10k or 100m", growth::FIRST),
        got: steps.into(),
    };
    let steps = parse_steps(steps).ok().filter(|steps| *steps >= growth::FIRST).ok_or_else(expected)?;
    on_threads(threads, || {
        let signals = Signals::handle();
        say("    steps   microseconds per step: mean, median   resident MB   multiply peak GFLOP/s");
        let stretches = match growth::growth(config, steps, to, &signals.stop, |at| {
            let resident = at.resident.map_or_else(|| "-".into(), |bytes| format!("{:.1}", bytes as f64 / 1e6));
            let [mean, median] = [at.per_step, at.median_per_step].map(|seconds| 1e6 * seconds);
            say(format!("{:>9}  {mean:>27.3}  {median:>8.3}  {resident:>12}  {:>22.1}", at.steps, at.peak / 1e9));
        }) {
            Err(stopped @ Error::Stopped(_)) => {
                complain(format!("{stopped}; no result was written"));
                return Ok(signals.exit_code());
            }
            stretches => stretches?,
        };
        let threads = threads::count();
        let note = format!("{what}, {threads} threads, with logs and checkpoints");
        growth::write(&stretches, &note, to)?.iter().for_each(|file| say(file.display().to_string()));
        Ok(0)
    })?
}

fn busy(preset: &str, rounds: &str) -> Result<u8, Error> {
    let rounds = number_within("--rounds", rounds, 1, 1 << 16)? as usize;
    Trainer::new(Config::preset("ppo", "cartpole", Some(preset))?)?; // reports invalid settings before any process starts
    let program = std::env::current_exe().map_err(|source| Error::Io { action: "find", path: "gradus".into(), source })?;
    let command = |seed: u64, threads: usize| {
        let mut command = Command::new(&program);
        command.args(["bench", "seeds", "--preset", preset, "--serve", &seed.to_string(), "--threads", &threads.to_string()]);
        command
    };
    let cores = threads::cores();
    let measured = busy::busy(cores, rounds, command)?;
    say(format!("PPO on cartpole, preset {preset}, {cores} cores: steps/s of all trainings together, medians of {rounds} measurements"));
    say(format!("{:<28} {:>12} {:>12} {:>7}", "", format!("{cores} threads"), "1 thread", "ratio"));
    for Busy { situation, all, one, ratio } in measured {
        let Situation { trainings, neighbours } = situation;
        let trainings = if trainings == 1 { "1 training".into() } else { format!("{trainings} trainings") };
        let neighbours = if neighbours == 0 { "" } else { ", 1 busy neighbour" };
        say(format!("{:<28} {all:>12.0} {one:>12.0} {ratio:>7.2}", format!("{trainings}{neighbours}")));
    }
    Ok(0)
}

fn seeds(seeds: Option<&str>, preset: &str, rounds: &str) -> Result<u8, Error> {
    let count = seeds.map(|text| number_within("--seeds", text, 1, 256)).transpose()?.unwrap_or(threads::cores() as u64);
    let rounds = number_within("--rounds", rounds, 1, 1 << 16)? as usize;
    let config = Config::preset("ppo", "cartpole", Some(preset))?;
    let program = std::env::current_exe().map_err(|source| Error::Io { action: "find", path: "gradus".into(), source })?;
    let command = |seed: u64| {
        let mut command = Command::new(&program);
        command.args(["bench", "seeds", "--preset", preset, "--serve", &seed.to_string()]);
        command
    };
    let measured = seeds::throughput(&config, count as usize, rounds, command)?;
    say(format!("PPO on cartpole, preset {preset}: {count} trainings at once, one thread each, on {} cores", threads::cores()));
    say(format!("in one process    {:>10.0} steps/s together", measured.together));
    say(format!("in {:<14} {:>10.0} steps/s together", format!("{count} processes"), measured.apart));
    say(format!("ratio: {:.2}", measured.ratio));
    Ok(0)
}

fn text(arguments: &Text) -> Result<u8, Error> {
    let whole = |what, text: &String, most| number_within(what, text, 1, most).map(|number| number as usize);
    let transformer = TransformerConfig {
        layers: whole("--layers", &arguments.layers, 64)?,
        width: whole("--width", &arguments.width, 8192)?,
        heads: whole("--heads", &arguments.heads, 64)?,
        feed_forward_width: whole("--feed-forward-width", &arguments.feed_forward_width, 32_768)?,
        ..TransformerConfig::default()
    };
    let torch = Config::default().with_setting(&format!("torch.precision={}", arguments.precision))?.torch;
    let micro_batch = number_within("--micro-batch", &arguments.micro_batch, 0, 1 << 40)? as usize;
    let device = crate::arguments::device(&arguments.device)?;
    let workload = Workload {
        device,
        torch: TorchConfig { micro_batch, ..torch },
        transformer,
        prompts: whole("--prompts", &arguments.prompts, 1 << 16)?,
        group: whole("--group", &arguments.group, 1 << 16)?,
        prompt_tokens: whole("--prompt-tokens", &arguments.prompt_tokens, 1 << 16)?,
        new_tokens: whole("--new-tokens", &arguments.new_tokens, 1 << 16)?,
    };
    let updates = whole("--updates", &arguments.updates, 1 << 16)?;
    on_threads(arguments.threads.as_deref(), || {
        let measured = text::throughput(&workload, updates)?;
        let cost = workload.update_cost();
        let Workload { prompts, group, prompt_tokens, new_tokens, .. } = workload;
        let (parameters, threads) = (measured.parameters, threads::count());
        say(format!(
            "GRPO, {parameters} parameters, {prompts} prompts x {group} completions, {prompt_tokens} + {new_tokens} tokens, {threads} threads"
        ));
        if let Some(bytes) = memory::peak() {
            say(format!("peak memory: {:.0} MB", bytes as f64 / 1e6));
        }
        let [generating, learning] = measured.seconds;
        let rate = cost / learning;
        say(format!("generating {generating:.4} s, learning {learning:.4} s per update, {:.1} GFLOP/s", rate / 1e9));
        if let Some(peak) = engine(workload.device, &workload.torch)?.multiply_rate().map_err(Error::Device)? {
            say(format!("ratio to {:.1} GFLOP/s, the device's rate in large matrix products: {:.2}", peak / 1e9, rate / peak));
        }
        say(format!("tokens/s: {:.0}", measured.rate));
        Ok(0)
    })?
}

fn on_device(arguments: &OnDevice) -> Result<u8, Error> {
    let whole = |what, text: &String, most| number_within(what, text, 1, most).map(|number| number as usize);
    let workload = device::Workload {
        environment: arguments.env.clone(),
        envs: whole("--envs", &arguments.envs, MOST as u64)?,
        steps: whole("--steps", &arguments.steps, 1 << 16)?,
        epochs: whole("--epochs", &arguments.epochs, 1 << 10)?,
        minibatches: whole("--minibatches", &arguments.minibatches, 1 << 16)?,
        device: crate::arguments::device(&arguments.device)?,
        worlds: arguments.worlds.clone(),
    };
    let updates = whole("--updates", &arguments.updates, 1 << 16)?;
    on_threads(arguments.threads.as_deref(), || {
        let measured = device::throughput(&workload, updates)?;
        let device::Workload { environment, envs, steps, epochs, minibatches, device, .. } = workload;
        let (place, threads) = (if measured.is_on_device { "device" } else { "host" }, threads::count());
        let (what, per_env, networks, unit) = match measured.is_text {
            true => (format!("GRPO on {environment}"), "one completion".into(), "a transformer", "tokens"),
            false => (format!("PPO on {environment}"), format!("{steps} steps"), "two 64-64 networks", "steps"),
        };
        say(format!("{what}, {envs} environments on the {place} x {per_env}, {epochs} x {minibatches} minibatches"));
        say(format!("{networks} on {device}, {threads} threads"));
        say(format!("collect  {:>10.2} ms", 1e3 * measured.collect));
        say(format!("update   {:>10.2} ms", 1e3 * measured.update));
        say(format!("{unit}/s: {:.0}", measured.rate));
        Ok(0)
    })?
}

fn random_actions(name: &str, envs: &str, threads: &str) -> Result<u8, Error> {
    let (world, envs) = (registry::find(name)?, number_within("--envs", envs, 1, MOST as u64)? as usize);
    let threads = (number_within("--threads", threads, 1, 256)? as usize).min(envs);
    let rate = measure::random_actions(&world, envs, threads, 15)?;
    let cores = if threads == 1 { "one core".into() } else { format!("{threads} threads") };
    say(format!("{}, random actions, {envs} environments, {cores}: {:.4} million steps/s", world.title(), rate / 1e6));
    Ok(0)
}
