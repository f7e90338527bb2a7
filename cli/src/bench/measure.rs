//! End-to-end speed. Machines differ and their speed varies over time, so [`roofline`], `growth` and `seeds` also measure a reference
//! in alternation with the training.

use std::time::Instant;

use gradus::envs::random::{Purpose, Stream, unit_f32};
use gradus::envs::{Actions, EnvSpec, Space, VecEnv};
use gradus::nets::cpu::{Measured, Shape, multiply_rate};
use gradus::nets::threads;
use gradus::{Config, Error, Mode, Trainer, evaluate};

use super::arithmetic::Arithmetic;

/// Returns the median; NaN for an empty list.
///
/// ```
/// assert_eq!(gradus_cli::bench::measure::median(vec![3.0, 1.0, 2.0]), 2.0);
/// assert_eq!(gradus_cli::bench::measure::median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
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

/// Changes the number of environments, and the minibatch size in proportion, so that a rollout has the same number of minibatches.
///
/// ```
/// use gradus::Config;
/// use gradus_cli::bench::measure;
///
/// let config = measure::with_envs(Config::preset("ppo", "cartpole", Some("cleanrl"))?, 64);
/// assert_eq!(config, config.clone().with_setting("envs=64")?.with_setting("ppo.minibatch_size=2048")?);
/// # Ok::<(), gradus::Error>(())
/// ```
pub fn with_envs(mut config: Config, envs: usize) -> Config {
    let number = |config: &Config, key: &str| usize::try_from(config.algorithm.to_table().get(key)?.as_integer()?).ok();
    if let (Some(steps), Some(size)) = (number(&config, "rollout_steps"), number(&config, "minibatch_size")) {
        let minibatches = (config.envs * steps).div_ceil(size.max(1));
        let size = (envs * steps).div_ceil(minibatches.max(1));
        config = Config { envs, ..config };
        config = changed(config, "minibatch_size", size);
    }
    Config { envs, ..config }
}

/// Returns a configuration with another value of a setting that its agent has.
fn changed(config: Config, key: &str, value: impl std::fmt::Display) -> Config {
    let setting = format!("{}.{key}={value}", config.agent);
    config.with_setting(&setting).expect("a setting of the agent")
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
pub(super) fn multiply_peak() -> f64 {
    let rounds = (0..8).map(|_| threads::map(&mut vec![(); threads::count()], |_, ()| multiply_rate()).iter().sum::<f64>());
    rounds.fold(0.0, f64::max)
}

/// Trains for at least `seconds` and returns environment steps per second.
pub(super) fn slice(trainer: &mut Trainer, seconds: f64) -> Result<f64, Error> {
    let (began, before) = (Instant::now(), trainer.steps());
    while began.elapsed().as_secs_f64() < seconds {
        trainer.iterate()?;
    }
    Ok((trainer.steps() - before) as f64 / began.elapsed().as_secs_f64())
}

/// Returns `config` for a training that does not end, with the exploration of the end of a training: random actions need no network.
fn unending(config: &Config) -> Config {
    let config = Config { steps: 1 << 50, ..config.clone() };
    let explores = config.algorithm.to_table().contains_key("exploration_fraction");
    if explores { changed(config, "exploration_fraction", "0.0") } else { config }
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

/// Measures the share of a core's peak that products of each shape reach: the median of `rounds` ratios, each of a product and of a peak right before it.
pub fn products(shapes: &[Shape], rounds: usize) -> Vec<f64> {
    let mut products: Vec<Measured> = shapes.iter().copied().map(Measured::new).collect();
    for product in &mut products {
        product.rate(); // warms up
    }
    let mut ratios = vec![Vec::new(); shapes.len()];
    for _ in 0..rounds {
        for (product, ratios) in products.iter_mut().zip(&mut ratios) {
            let peak = multiply_rate();
            ratios.push(product.rate() / peak);
        }
    }
    ratios.into_iter().map(median).collect()
}

/// Measures the environment steps per second of a training with `config`, including rollouts and updates. Returns the median of `rounds`
/// measurements of half a second each.
pub fn training(config: &Config, rounds: usize) -> Result<f64, Error> {
    let mut trainer = Trainer::new(unending(config))?;
    slice(&mut trainer, 0.5)?; // warms up
    let rates = (0..rounds).map(|_| slice(&mut trainer, 0.5)).collect::<Result<_, _>>()?;
    Ok(median(rates))
}

/// Measures the steps per second of `envs` environments with random actions, shared among `threads` threads. Returns the median of `rounds`
/// measurements.
///
/// The time includes drawing the actions, autoreset, final observations and episode statistics.
pub fn random_actions(world: &EnvSpec, envs: usize, threads: usize, rounds: usize) -> Result<f64, Error> {
    let bytes = VecEnv::bytes_per_env(world.env().observation_space().width()) as f64;
    gradus::memory::expect("--envs", envs, "of this environment", |envs| envs * bytes)?;
    let threads = threads.min(envs);
    let mut vectors: Vec<_> = (0..threads)
        .map(|i| Ok((world.vec_env(i * envs / threads..(i + 1) * envs / threads, 1)?, Stream::new(1, Purpose::Action, i as u64))))
        .collect::<Result<_, Error>>()?;
    let mut rates = Vec::new();
    for _ in 0..rounds {
        let shares: Vec<_> = std::thread::scope(|scope| {
            let started: Vec<_> = vectors.iter_mut().map(|(vector, stream)| scope.spawn(|| random_steps(vector, stream))).collect();
            started.into_iter().map(|thread| thread.join().expect("a thread that does not panic")).collect()
        });
        rates.push(shares.into_iter().sum::<Result<f64, Error>>()?);
    }
    Ok(median(rates))
}

/// Steps environments with random actions for a fifth of a second. Returns the steps per second.
fn random_steps(vector: &mut VecEnv, stream: &mut Stream) -> Result<f64, Error> {
    let (space, envs) = (vector.action_space(), vector.len());
    let (mut words, mut actions, mut rows) = (Vec::new(), vec![0; envs], vec![0.0; envs * space.width()]);
    let (began, mut steps) = (Instant::now(), 0);
    while began.elapsed().as_secs_f64() < 0.2 {
        for _ in 0..16 {
            let actions = match &space {
                Space::Discrete(_) | Space::MultiDiscrete(_) => {
                    draw_discrete(space.elements().unwrap_or(1), stream, &mut words, &mut actions);
                    Actions::Discrete(&actions)
                }
                space => {
                    draw_rows(space, stream, &mut words, &mut rows);
                    Actions::Continuous { rows: &rows, width: space.width() }
                }
            };
            vector.step(actions)?;
            steps += envs;
        }
    }
    Ok(steps as f64 / began.elapsed().as_secs_f64())
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
