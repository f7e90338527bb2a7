//! End-to-end speed. Machines differ and their speed varies over time, so [`roofline`], [`growth`] and [`seeds`] also measure a reference
//! in alternation with the training.

pub mod busy;
pub mod device;
pub mod growth;
pub mod memory;
pub mod seeds;
pub mod text;

use std::time::Instant;

use gradus_agents::{DqnConfig, PpoConfig};
use gradus_envs::random::{Purpose, Stream, unit_f32};
use gradus_envs::{Actions, Space, VecEnv, World};
use gradus_nets::cpu::multiply_rate;
use gradus_nets::{Activation, NetworkConfig, threads};

use crate::config::Network;
use crate::{Config, Error, Mode, Trainer, evaluate};

/// Returns the median; NaN for an empty list.
///
/// ```
/// assert_eq!(gradus::bench::median(vec![3.0, 1.0, 2.0]), 2.0);
/// assert_eq!(gradus::bench::median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
/// ```
pub fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let n = numbers.len();
    if n == 0 { f64::NAN } else { (numbers[(n - 1) / 2] + numbers[n / 2]) / 2.0 }
}

/// The result of [`solve`].
pub struct Solve {
    /// The seed.
    pub seed: u64,
    /// Seconds of training.
    pub seconds: f64,
    /// Environment steps of training.
    pub steps: u64,
    /// Mean return of 100 greedy episodes after training.
    pub mean: f64,
}

/// Trains with `config` and `seed`, without a run folder, and evaluates the policy.
pub fn solve(config: &Config, seed: u64) -> Result<Solve, Error> {
    let began = Instant::now();
    let mut trainer = Trainer::new(Config { seed, ..config.clone() })?;
    trainer.finish()?;
    let seconds = began.elapsed().as_secs_f64();
    let evaluation = evaluate::evaluate(trainer.policy(), &trainer.evaluation_world(), 100, seed, Mode::Greedy)?;
    Ok(Solve { seed, seconds, steps: trainer.steps(), mean: evaluation.mean })
}

/// The cost of one environment step of PPO or DQN, including acting and learning.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arithmetic {
    /// Floating-point operations of the networks' matrix products; a multiply-add counts as two.
    pub products: f64,
    /// Evaluations of tanh.
    pub tanh: f64,
    /// Evaluations of exp: the softmax of discrete actions, and the probability ratio of the new to the old policy.
    pub exp: f64,
    /// Evaluations of ln, in the softmax.
    pub ln: f64,
    /// Parameters updated by the optimiser.
    pub moved: f64,
}

impl Arithmetic {
    /// Counts the operations that the formulas require for `config` in `world`. An engine may perform more.
    pub fn of(config: &Config, world: &World) -> Result<Self, Error> {
        let no = |got: &str| Error::Parse { what: "roofline".into(), expected: "ppo or dqn, with perceptrons".into(), got: got.into() };
        let Network::Perceptron(network) = &config.network else { return Err(no(&config.environment)) };
        let env = world.env();
        if let Some(dqn) = config.algorithm.get::<DqnConfig>() {
            return Ok(Self::of_dqn(
                dqn,
                network,
                (
                    env.observation_space().width(),
                    match env.action_space() {
                        Space::Discrete(n) => n as usize,
                        space => space.width(),
                    },
                ),
            ));
        }
        let Some(ppo) = config.algorithm.get::<PpoConfig>() else { return Err(no(&config.agent)) };
        // number of outputs of the actor's head per row, and how many of them go through a softmax
        let (actions, softmax) = match env.action_space() {
            Space::Discrete(n) => (n as usize, n as usize),
            space => (space.width(), 0),
        };
        let mut widths = vec![env.observation_space().width()];
        widths.extend(&network.hidden);
        let trunks = if network.shared { 1 } else { 2 };
        let hidden = trunks * network.hidden.iter().sum::<usize>();
        let weights = trunks * widths.windows(2).map(|pair| pair[0] * pair[1]).sum::<usize>() + widths[widths.len() - 1] * (actions + 1);
        let deviations = match softmax == 0 {
            true if network.gsde => widths[widths.len() - 1] * actions,
            true => actions,
            false => 0,
        };
        let parameters = weights + hidden + actions + 1 + deviations;
        let decisions = config.envs * ppo.rollout_steps;
        let steps = ppo.epochs * decisions.div_ceil(ppo.minibatch_size.max(1));
        // acting: one forward pass; every epoch: a forward pass and a backward pass, which costs as much as two forward passes
        let (epochs, passes) = (ppo.epochs as f64, 1.0 + ppo.epochs as f64);
        let is_tanh = network.activation == Activation::Tanh;
        Ok(Self {
            products: 2.0 * weights as f64 * (1.0 + 3.0 * epochs),
            tanh: if is_tanh { hidden as f64 * passes } else { 0.0 },
            exp: softmax as f64 * passes + epochs,
            ln: if softmax > 0 { passes } else { 0.0 },
            moved: parameters as f64 * steps as f64 / decisions.max(1) as f64,
        })
    }
}

impl Arithmetic {
    /// Counts the operations of DQN. An update has a forward and a backward pass over the sample, and a forward pass of the target network
    /// over the next observations; with double Q-learning, also one of the network.
    fn of_dqn(dqn: &DqnConfig, network: &NetworkConfig, (width, actions): (usize, usize)) -> Self {
        let hidden = &network.hidden;
        let (own, shared) = match hidden.split_last() {
            Some((own, shared)) if dqn.dueling => (std::slice::from_ref(own), shared),
            _ => (&[][..], &hidden[..]),
        };
        let weights = |widths: &[usize]| widths.windows(2).map(|pair| pair[0] * pair[1]).sum::<usize>();
        let trunk = [&[width][..], shared].concat();
        let features = trunk[trunk.len() - 1];
        let head = |outputs: usize| weights(&[&[features][..], own, &[outputs]].concat());
        let weights = (weights(&trunk) + head(actions) + if dqn.dueling { head(1) } else { 0 }) as f64;
        let (learner, passes) = (&dqn.learner.off_policy, if dqn.double { 5.0 } else { 4.0 });
        let rows = learner.updates_per_step * learner.batch_size as f64;
        // the hidden layers of the dueling streams are counted twice
        let units = (hidden.iter().sum::<usize>() + own.iter().sum::<usize>()) as f64;
        let outputs = (actions + usize::from(dqn.dueling)) as f64;
        let is_tanh = network.activation == Activation::Tanh;
        Self {
            products: 2.0 * weights * (1.0 + passes * rows),
            tanh: if is_tanh { units * (1.0 + (passes - 2.0) * rows) } else { 0.0 },
            exp: 0.0,
            ln: 0.0,
            moved: (weights + units + outputs) * learner.updates_per_step,
        }
    }
}

/// Changes the number of environments, and the minibatch size in proportion, so that a rollout has the same number of minibatches.
///
/// ```
/// use gradus::{Config, bench};
///
/// let config = bench::with_envs(Config::preset("ppo", "cartpole", Some("cleanrl"))?, 64);
/// assert_eq!(config, config.clone().with_setting("envs=64")?.with_setting("ppo.minibatch_size=2048")?);
/// # Ok::<(), gradus::Error>(())
/// ```
pub fn with_envs(mut config: Config, envs: usize) -> Config {
    let envs_before = config.envs;
    if let Some(ppo) = config.algorithm.get_mut::<PpoConfig>() {
        let minibatches = (envs_before * ppo.rollout_steps).div_ceil(ppo.minibatch_size.max(1));
        ppo.minibatch_size = (envs * ppo.rollout_steps).div_ceil(minibatches.max(1));
    }
    Config { envs, ..config }
}

/// The measured speed of a training and its upper bound from the machine's multiplication rate.
pub struct Roofline {
    /// Number of threads.
    pub threads: usize,
    /// Peak floating-point operations per second of all threads together, multiplying in registers.
    pub peak: f64,
    /// The cost of a step.
    pub per_step: Arithmetic,
    /// Measured environment steps per second.
    pub rate: f64,
}

impl Roofline {
    /// Upper bound of the steps per second: the rate if only the matrix products took time.
    pub fn floor(&self) -> f64 {
        self.peak / self.per_step.products
    }

    /// The measured rate divided by [`floor`](Roofline::floor).
    pub fn ratio(&self) -> f64 {
        self.rate / self.floor()
    }
}

/// Measures the peak floating-point operations per second of all threads together. Takes the best of several rounds, to exclude
/// interruptions by other processes.
fn multiply_peak() -> f64 {
    let rounds = (0..8).map(|_| threads::map(&mut vec![(); threads::count()], |_, ()| multiply_rate()).iter().sum::<f64>());
    rounds.fold(0.0, f64::max)
}

/// Trains for at least `seconds` and returns environment steps per second.
fn slice(trainer: &mut Trainer, seconds: f64) -> Result<f64, Error> {
    let (began, before) = (Instant::now(), trainer.steps());
    while began.elapsed().as_secs_f64() < seconds {
        trainer.iterate()?;
    }
    Ok((trainer.steps() - before) as f64 / began.elapsed().as_secs_f64())
}

/// Returns `config` for a training that does not end, with the exploration of the end of a training: random actions need no network.
fn unending(config: &Config) -> Config {
    let mut config = Config { steps: 1 << 50, ..config.clone() };
    if let Some(dqn) = config.algorithm.get_mut::<DqnConfig>() {
        dqn.learner.exploration_fraction = 0.0;
    }
    config
}

/// Measures the training speed of `config` and the machine's peak multiplication rate, alternating `rounds` times. Returns medians.
pub fn roofline(config: &Config, rounds: usize) -> Result<Roofline, Error> {
    let mut trainer = Trainer::new(unending(config))?;
    let per_step = Arithmetic::of(config, &trainer.world())?;
    slice(&mut trainer, 0.3)?; // warms up
    let (mut peaks, mut rates) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        peaks.push(multiply_peak());
        rates.push(slice(&mut trainer, 0.2)?);
    }
    Ok(Roofline { threads: threads::count(), peak: median(peaks), per_step, rate: median(rates) })
}

/// Measures the environment steps per second of a training with `config`, including rollouts and updates. Returns the median of `rounds`
/// measurements of half a second each.
pub fn training(config: &Config, rounds: usize) -> Result<f64, Error> {
    let mut trainer = Trainer::new(unending(config))?;
    slice(&mut trainer, 0.5)?; // warms up
    let rates = (0..rounds).map(|_| slice(&mut trainer, 0.5)).collect::<Result<_, _>>()?;
    Ok(median(rates))
}

/// Measures the steps per second of `envs` environments with random actions, on the calling thread. Returns the median of `rounds`
/// measurements.
///
/// The time includes drawing the actions, autoreset, final observations and episode statistics.
pub fn random_actions(world: &World, envs: usize, rounds: usize) -> Result<f64, Error> {
    let bytes = VecEnv::bytes_per_env(world.env().observation_space().width()) as f64;
    crate::memory::expect("--envs", envs, "of this environment", |envs| envs * bytes)?;
    let mut vector = world.vec_env(0..envs, 1)?;
    let space = vector.action_space();
    let mut stream = Stream::new(1, Purpose::Action, 0);
    let (mut words, mut actions, mut rows) = (Vec::new(), vec![0; envs], vec![0.0; envs * space.width()]);
    let mut rates = Vec::new();
    for _ in 0..rounds {
        let (began, mut steps) = (Instant::now(), 0);
        while began.elapsed().as_secs_f64() < 0.2 {
            for _ in 0..16 {
                let actions = match &space {
                    Space::Discrete(n) => {
                        draw_discrete(*n, &mut stream, &mut words, &mut actions);
                        Actions::Discrete(&actions)
                    }
                    space => {
                        draw_rows(space, &mut stream, &mut words, &mut rows);
                        Actions::Continuous { rows: &rows, width: space.width() }
                    }
                };
                vector.step(actions)?;
                steps += envs;
            }
        }
        rates.push(steps as f64 / began.elapsed().as_secs_f64());
    }
    Ok(median(rates))
}

/// Draws random actions below `n`. If n = 2, a 32-bit word gives 32 actions. Otherwise it gives one action, with a bias of at most
/// n / 2^32.
fn draw_discrete(n: u32, stream: &mut Stream, words: &mut Vec<u32>, actions: &mut [u32]) {
    let from_a_word = if n == 2 { 32 } else { 1 };
    words.resize(actions.len().div_ceil(from_a_word), 0);
    stream.fill(words);
    if n == 2 {
        for (chunk, word) in actions.chunks_mut(32).zip(words) {
            chunk.iter_mut().enumerate().for_each(|(i, action)| *action = *word >> i & 1);
        }
    } else {
        let scaled = |word: u32| ((u64::from(word) * u64::from(n)) >> 32) as u32;
        actions.iter_mut().zip(words).for_each(|(action, word)| *action = scaled(*word));
    }
}

/// Draws uniform rows of a box. Bounds below -10^6 or above 10^6 are replaced by these numbers.
fn draw_rows(space: &Space, stream: &mut Stream, words: &mut Vec<u32>, rows: &mut [f32]) {
    let Space::Box { low, high } = space else { return };
    words.resize(rows.len(), 0);
    stream.fill(words);
    for (i, (low, high)) in low.iter().zip(high).enumerate() {
        let (low, high) = (low.max(-1e6), high.min(1e6));
        for (number, word) in rows.iter_mut().zip(words.iter()).skip(i).step_by(space.width()) {
            *number = (low + (high - low) * unit_f32(*word)).min(high);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arithmetic(agent: &str, environment: &str, settings: &[&str]) -> Result<Arithmetic, Error> {
        let config = Config::preset(agent, environment, None)?.with_setting("envs=4")?;
        let config = settings.iter().try_fold(config, |config, setting| config.with_setting(setting))?;
        Arithmetic::of(&config, &config.world()?)
    }

    #[test]
    fn the_arithmetic_of_cleanrls_configuration_matches_a_count_by_hand() {
        let config = Config::preset("ppo", "cartpole", Some("cleanrl")).unwrap();
        // 2 x (4 x 64 + 64 x 64) + 64 x 3 = 8896 weights, 9155 parameters; 16 minibatches for 512 decisions
        let expected = Arithmetic { products: 13.0 * 2.0 * 8896.0, tanh: 5.0 * 256.0, exp: 14.0, ln: 5.0, moved: 9155.0 / 32.0 };
        for envs in [4, 64, 2048] {
            let config = with_envs(config.clone(), envs);
            let found = Arithmetic::of(&config, &config.world().unwrap()).unwrap();
            // the number of minibatches is constant, so the optimiser's work per step falls as 1 / number of environments
            assert_eq!(found, Arithmetic { moved: expected.moved * 4.0 / envs as f64, ..expected });
        }
    }

    #[test]
    fn the_parameter_count_matches_the_policy() {
        // one minibatch, one epoch, one decision of one environment: every parameter is updated once per step
        let plain = ["envs=1", "ppo.rollout_steps=1", "ppo.minibatch_size=1", "ppo.epochs=1"];
        let networks: [&[&str]; 4] =
            [&[], &["network.hidden=[]"], &["network.shared=true", "network.hidden=[8,24]"], &["network.gsde=true", "network.hidden=[40]"]];
        for (environment, networks) in [("cartpole", &networks[..3]), ("pendulum", &networks[..])] {
            for network in networks {
                let settings = [&plain[..], network].concat();
                let config = Config::preset("ppo", environment, None).unwrap();
                let config = settings.iter().try_fold(config, |config, setting| config.with_setting(setting)).unwrap();
                let policy = config.policy(&config.world().unwrap()).unwrap();
                let parameters: usize = policy.save().values().map(|tensor| tensor.shape.iter().product::<usize>()).sum();
                let found = Arithmetic::of(&config, &config.world().unwrap()).unwrap();
                assert_eq!(found.moved, parameters as f64, "{environment} {network:?}");
            }
        }
    }

    #[test]
    fn functions_that_a_network_does_not_use_are_not_counted() {
        let relu = arithmetic("ppo", "pendulum", &["network.activation=relu", "ppo.epochs=3"]).unwrap();
        assert_eq!((relu.tanh, relu.exp, relu.ln), (0.0, 3.0, 0.0));
        let error = arithmetic("a2c", "cartpole", &[]).unwrap_err();
        assert_eq!(error.to_string(), "roofline: expected ppo or dqn, with perceptrons, got a2c");
        assert!(arithmetic("ppo", "sort", &[]).is_err());
    }
}
