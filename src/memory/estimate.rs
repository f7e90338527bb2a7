//! Estimates of the memory that a training needs, computed before anything is allocated.
//!
//! An estimate is the sum of what the parts say they need: the network ([`Footprint`]), the environments and the rollout
//! ([`RolloutBytes`]), and the update ([`Rollout::UPDATE_BYTES`]). Each counts only the large allocations that are certainly made, so
//! an estimate is rather too low than too high: what works is never refused. Numbers of bytes are `f64`, which cannot overflow.

use gradus_agents::{AgentKind, Collection, Kept, Replay, Rollout};
use gradus_base::random::Stream;
use gradus_envs::text::TextWorld;
use gradus_envs::{EnvSpec, Finished, Space, VecEnv};
use gradus_nets::{Device, Footprint, NetworkError};
use gradus_rollouts::RolloutBytes;

use super::{available, shown};
use crate::config::{Network, RewardConfig};
use crate::evaluate::sample::Token;
use crate::{Config, Error};

/// Copies of the parameters and the two moments while a checkpoint is written: the tensors and their bytes.
const CHECKPOINT: f64 = 6.0;

/// The parts of an estimate for one training.
#[derive(Clone, Copy)]
struct Parts {
    rollout: RolloutBytes,
    network: Footprint,
    /// Steps or whole episodes of each environment in a rollout, and the name of the setting.
    amount: f64,
    key: &'static str,
    /// Decisions in one of them.
    decisions: f64,
    /// Environments that act at once, if this is limited.
    acting: f64,
    /// Networks in addition to the policy: a reference, a reward model.
    others: f64,
    /// Bytes of the distributions over all actions that an update keeps of a decision.
    distributions: f64,
}

impl Parts {
    /// Returns the parts, or `None` if the memory is not known: with an agent that brings its own network, and on other devices.
    fn of(config: &Config, world: &EnvSpec) -> Result<Option<(Self, AgentKind)>, Error> {
        if !config.has_actor_critic() || config.device != Device::Cpu {
            return Ok(None);
        }
        let built = config.build(world)?;
        let AgentKind::ActorCritic(agent) = &built else { return Ok(None) };
        let (amount, key, decisions) = match agent.collection() {
            Collection::Steps(steps) => (steps as f64, "rollout_steps", 1.0),
            // an episode has an unknown number of steps, but at least one
            Collection::Episodes { per_env, .. } => (per_env as f64, "episodes_per_env", tokens(world).map_or(1.0, |(_, new)| new)),
        };
        let acting = if config.max_concurrent == 0 { f64::INFINITY } else { config.max_concurrent as f64 };
        let reward_models = usize::from(config.reward_model.as_ref().is_some_and(RewardConfig::is_on));
        let others = (agent.kept_policies() + reward_models) as f64;
        let distributions = (4 * agent.kept_distributions() * world.env().action_space().mask_width()) as f64;
        let (rollout, network) = (RolloutBytes::of(world, &config.wrappers), footprint(&config.network, world)?);
        Ok(Some((Self { rollout, network, amount, key, decisions, acting, others, distributions }, built)))
    }

    /// Returns the bytes of a training with `envs` environments that learns from `batch` decisions at once: in an iteration, and what a
    /// checkpoint needs in addition.
    fn bytes(&self, envs: f64, batch: impl Fn(f64) -> f64) -> [f64; 2] {
        let Self { rollout, network, amount, decisions, acting, others, distributions, .. } = *self;
        let all = envs * amount * decisions;
        let networks = network.learning(batch(all)) + others * (4.0 * network.parameters + network.transposed);
        let kept = networks + envs * rollout.env + all * rollout.decision;
        let update = envs * rollout.env_in_rollout
            + all * (rollout.decision_in_rollout + Rollout::UPDATE_BYTES as f64 + network.decision + distributions)
            + network.workspace;
        let checkpoint = envs * rollout.saved + CHECKPOINT * network.parameters;
        let iteration = update.max(envs.min(acting) * network.row);
        [kept + iteration, (checkpoint - iteration).max(0.0)]
    }
}

/// Returns the mean number of tokens in a text and in its completion, if observations are texts.
fn tokens(world: &EnvSpec) -> Option<(f64, f64)> {
    let Space::Text { vocabulary, context } = world.env().observation_space() else { return None };
    Some(world.text.as_ref().map_or_else(|| mean_tokens(0, context, vocabulary as usize), of_text))
}

/// Returns the memory of the network.
fn footprint(network: &Network, world: &EnvSpec) -> Result<Footprint, NetworkError> {
    let env = world.env();
    let (observations, actions) = (env.observation_space(), env.action_space());
    match network {
        Network::Perceptron(config) => config.footprint(&observations, &actions),
        Network::Transformer(config) => config.footprint(&observations, &actions, tokens(world).map_or(1.0, |(tokens, _)| tokens)),
    }
}

/// Returns an error if a training in `world`, to which the wrappers are already applied, needs more memory than there is. The error names
/// the setting that is too large, and the largest value that fits.
pub fn check_training(config: &Config, world: &EnvSpec) -> Result<(), Error> {
    if let Some((bytes, buffer)) = of_values(config, world)? {
        let Some(available) = available() else { return Ok(()) };
        return match buffer {
            Some(kept) if bytes(0.0) <= available as f64 => {
                expect(&format!("{}.buffer_size", config.agent), kept, "with this network", bytes)
            }
            _ if bytes(0.0) > available as f64 => Err(too_large(config, bytes(0.0), available)),
            _ => Ok(()),
        };
    }
    let Some((parts, built)) = Parts::of(config, world)? else { return Ok(()) };
    let AgentKind::ActorCritic(agent) = &built else { return Ok(()) };
    let batch = |decisions: f64| agent.batch(decisions as usize) as f64;
    let whole = |[iteration, checkpoint]: [f64; 2]| iteration + checkpoint;
    let with_envs = |envs: f64| whole(parts.bytes(envs, batch));
    let with_rollout = |amount: f64| whole(Parts { amount, ..parts }.bytes(1.0, batch));
    let Some(available) = available() else { return Ok(()) };
    if with_envs(1.0) <= available as f64 {
        return expect("envs", config.envs, "with this network and this rollout", with_envs);
    }
    if with_rollout(1.0) <= available as f64 {
        let key = format!("{}.{}", config.agent, parts.key);
        return expect(&key, parts.amount as usize, "with this network and one environment", with_rollout);
    }
    Err(too_large(config, with_rollout(1.0), available))
}

/// For an agent that learns with a network of action values on the CPU, returns the bytes of a training as a function of the decisions in the
/// replay buffer, and the number of these decisions, if there is a buffer.
#[allow(clippy::type_complexity)]
fn of_values(config: &Config, world: &EnvSpec) -> Result<Option<(impl Fn(f64) -> f64, Option<usize>)>, Error> {
    let Network::Perceptron(network) = &config.network else { return Ok(None) };
    if config.has_actor_critic() || config.device != Device::Cpu {
        return Ok(None);
    }
    let env = world.env();
    let (observations, actions) = (env.observation_space(), env.action_space());
    let (footprint, replay) = match config.build(world)? {
        AgentKind::ActionValues { head, replay, .. } => (network.q_footprint(head, &observations, &actions)?, replay),
        AgentKind::ActorAndCritics { head, replay, .. } => (network.q_actor_footprint(head, &observations, &actions)?, replay),
        _ => return Ok(None),
    };
    let (rollout, envs) = (RolloutBytes::of(world, &config.wrappers), config.envs as f64);
    // a sample has up to n decisions of each segment, and the observation after it
    let number = |name: &str| config.number(&format!("{}.{name}", config.agent)).unwrap_or(0.0);
    let (batch, horizon) = (number("batch_size"), number("n_step").max(1.0));
    let per_decision = (4 * observations.width() + 4 * actions.width() + 4) as f64;
    let kept = Kept::of(world);
    let is_prioritised = replay.is_some_and(|(_, is_prioritised)| is_prioritised);
    // the target network is a whole copy, with moments
    let networks = (if replay.is_some() { 2.0 } else { 1.0 }) * footprint.learning(0.0);
    let bytes = move |decisions: f64| {
        let sample = batch * (horizon.min(decisions / envs) + 1.0) * per_decision;
        let buffer = Replay::bytes(decisions as usize, kept.bytes(observations.width()), actions.width(), is_prioritised);
        networks + envs * rollout.env + buffer + if replay.is_some() { sample } else { 0.0 }
    };
    Ok(Some((bytes, replay.map(|(kept, _)| kept))))
}

/// Returns an error if the network of `config`, which learns, needs more memory than there is.
pub(crate) fn check_network(config: &Config, world: &EnvSpec) -> Result<(), Error> {
    let needed = if config.device == Device::Cpu { footprint(&config.network, world)?.learning(1.0) } else { 0.0 };
    match available() {
        Some(available) if needed > available as f64 => Err(too_large(config, needed, available)),
        _ => Ok(()),
    }
}

fn too_large(config: &Config, needed: f64, available: u64) -> Error {
    let expected = format!("one that fits into {}, the available memory", shown(available));
    Error::Parse { what: config.network.name().into(), expected, got: format!("one that needs {}", shown(needed as u64)) }
}

/// Returns an error if `jobs` simultaneous trainings need more memory than there is. They begin in the order of `configs`, so neighbours run
/// at the same time.
pub fn check_jobs(jobs: usize, configs: &[&Config]) -> Result<(), Error> {
    let (mut iterations, mut checkpoint) = (Vec::new(), 0.0_f64);
    for config in configs {
        let world = config.world()?;
        if let Some((bytes, kept)) = of_values(config, &world)? {
            iterations.push(bytes(kept.unwrap_or(0) as f64));
            continue;
        }
        let needed = match Parts::of(config, &world)? {
            Some((parts, AgentKind::ActorCritic(agent))) => {
                parts.bytes(config.envs as f64, |decisions| agent.batch(decisions as usize) as f64)
            }
            _ => [0.0; 2],
        };
        iterations.push(needed[0]);
        checkpoint = checkpoint.max(needed[1]); // checkpoints are rare, so only one is written at a time
    }
    let largest = |jobs: usize| {
        let together = iterations.windows(jobs.clamp(1, iterations.len().max(1)));
        together.map(|trainings| trainings.iter().sum::<f64>()).fold(0.0, f64::max)
    };
    expect("--jobs", jobs, "with these settings", |jobs| largest(jobs as usize) + checkpoint)
}

/// Returns a function of a number of environments of `world`: the bytes of a rollout with one episode in each, and of what an update
/// computes for each decision.
pub(crate) fn of_episodes(config: &Config, world: &EnvSpec) -> Result<impl Fn(f64) -> f64, Error> {
    let (rollout, network) = (RolloutBytes::of(world, &config.wrappers), footprint(&config.network, world)?);
    let acting = if config.max_concurrent == 0 { f64::INFINITY } else { config.max_concurrent as f64 };
    let decisions = tokens(world).map_or(1.0, |(_, new)| new);
    let of_episode = decisions * (rollout.decision + rollout.decision_in_rollout + Rollout::UPDATE_BYTES as f64);
    Ok(move |envs: f64| envs * (rollout.env + rollout.env_in_rollout + of_episode) + envs.min(acting) * network.row)
}

/// Returns the bytes of the evaluation of one episode in `world`, whose observations are rows of numbers.
pub(crate) fn of_evaluation(world: &EnvSpec) -> usize {
    let width = world.env().observation_space().width();
    // the environment with its stream, which is copied to its row, and its finished episode, also in the list of all episodes
    VecEnv::bytes_per_env(width) + 2 * (size_of::<Stream>() + size_of::<Finished>() + 4 * width)
}

/// Returns the bytes of a generated completion in `world`, without what is computed for its tokens.
pub(crate) fn of_completion(world: &TextWorld) -> f64 {
    // the prompt, the text while it is generated, and the completion; each is a vector of tokens
    (3 * size_of::<Vec<u32>>() + size_of::<Stream>()) as f64 + 8.0 * of_text(world).0
}

/// Returns the bytes of a completion of `gradus sample`, with the numbers that describe each token.
pub(crate) fn of_sample(world: &TextWorld) -> f64 {
    let (_, new) = of_text(world);
    // two distributions and the description of each token
    of_completion(world) + new * (8 * world.task.vocabulary().len() + size_of::<Token>()) as f64
}

/// Returns the mean number of tokens in a text and in its completion if a fresh policy writes it. Such a policy chooses EOS about as often
/// as any other token, so most completions are shorter than the longest.
fn of_text(world: &TextWorld) -> (f64, f64) {
    mean_tokens(world.longest_prompt(), world.max_new_tokens(), world.task.vocabulary().len())
}

fn mean_tokens(prompt: usize, most: usize, vocabulary: usize) -> (f64, f64) {
    let n = vocabulary as f64;
    let new = n * (1.0 - (1.0 - 1.0 / n).powf(most as f64));
    (prompt as f64 + new, new)
}

/// Returns an error if `bytes(got)` is more than the available memory. `what` is the name of the number `got`; the error tells the largest
/// number that fits, other things being equal. `bytes` must not fall if its argument grows.
pub fn expect(what: &str, got: usize, equal: &str, bytes: impl Fn(f64) -> f64) -> Result<(), Error> {
    match available() {
        Some(available) if bytes(got as f64) > available as f64 => {
            let (mut fits, mut too_many) = (0, got);
            while too_many - fits > 1 {
                let middle = fits + (too_many - fits) / 2;
                if bytes(middle as f64) <= available as f64 { fits = middle } else { too_many = middle }
            }
            let expected = format!("at most {fits} {equal} ({} available)", shown(available));
            Err(Error::Parse { what: what.into(), expected, got: format!("{got}, which needs {}", shown(bytes(got as f64) as u64)) })
        }
        _ => Ok(()),
    }
}
