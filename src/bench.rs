//! Speed as users feel it. Machines differ and change by the minute, so every figure comes with what was measured beside it.

pub mod device;
pub mod text;

use std::time::Instant;

use gradus_envs::random::{Purpose, Stream, unit_f32};
use gradus_envs::{Actions, Space, World};
use gradus_nets::cpu::multiply_rate;
use gradus_nets::{NetworkConfig, threads};

use crate::config::{Algorithm, Network};
use crate::{Config, Error, Mode, Trainer, evaluate};

/// The middle one, or the mean of the middle two.
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

/// One seed's way to a solved task.
pub struct Solve {
    /// The seed.
    pub seed: u64,
    /// Seconds of training.
    pub seconds: f64,
    /// Environment steps of training.
    pub steps: u64,
    /// The mean return of 100 greedy episodes afterwards.
    pub mean: f64,
}

/// Trains with `config` and this seed, in memory, and evaluates the outcome.
pub fn solve(config: &Config, seed: u64) -> Result<Solve, Error> {
    let began = Instant::now();
    let mut trainer = Trainer::new(Config { seed, ..config.clone() })?;
    trainer.finish()?;
    let seconds = began.elapsed().as_secs_f64();
    let evaluation = evaluate::evaluate(trainer.policy(), &trainer.evaluation_world(), 100, seed, Mode::Greedy)?;
    Ok(Solve { seed, seconds, steps: trainer.steps(), mean: evaluation.mean })
}

/// What a training costs in multiplications, and what the machine can do.
pub struct Roofline {
    /// Threads used.
    pub threads: usize,
    /// Floating-point operations per second of all threads together, each multiplying in registers.
    pub peak: f64,
    /// Floating-point operations of the networks' products per environment step, to act and to learn.
    pub per_step: f64,
    /// Measured environment steps per second.
    pub rate: f64,
}

impl Roofline {
    /// Steps per second if everything but multiplying were free.
    pub fn floor(&self) -> f64 {
        self.peak / self.per_step
    }

    /// Measured speed over that.
    pub fn ratio(&self) -> f64 {
        self.rate / self.floor()
    }
}

/// Multiplications and additions of actor and critic for one row, forwards.
fn forward_cost(network: &NetworkConfig, world: &World) -> f64 {
    let env = world.env();
    let actions = match env.action_space() {
        gradus_envs::Space::Discrete(n) => n as usize,
        space => space.width(),
    };
    let mut widths = vec![env.observation_space().width()];
    widths.extend(&network.hidden);
    let hidden: usize = widths.windows(2).map(|pair| pair[0] * pair[1]).sum();
    let features = widths.last().copied().unwrap_or(0);
    let trunks = if network.shared { 1 } else { 2 };
    2.0 * (trunks * hidden + features * (actions + 1)) as f64
}

/// Measures the training speed of `config` against the machine's rate of multiplication, both in slices of time that alternate,
/// `rounds` times; medians.
pub fn roofline(config: &Config, rounds: usize) -> Result<Roofline, Error> {
    let count = threads::count();
    let mut trainer = Trainer::new(Config { steps: 1 << 50, ..config.clone() })?;
    while trainer.iteration() < 50 {
        trainer.iterate()?;
    }
    let (mut peaks, mut rates) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        // the best of a few milliseconds on all threads at once: a core's rate, not its neighbours' interruptions
        let rounds = (0..8).map(|_| threads::map(&mut vec![(); count], |_, ()| multiply_rate()).iter().sum::<f64>());
        peaks.push(rounds.fold(0.0, f64::max));
        let (began, before) = (Instant::now(), trainer.steps());
        while began.elapsed().as_secs_f64() < 0.2 {
            trainer.iterate()?;
        }
        rates.push((trainer.steps() - before) as f64 / began.elapsed().as_secs_f64());
    }
    // forwards once to act; forwards and twice backwards in every epoch to learn
    let (epochs, network) = match (&config.algorithm, &config.network) {
        (Algorithm::Ppo(ppo), Network::Perceptron(network)) => (ppo.epochs, network),
        (other, _) => return Err(Error::Parse { what: "roofline".into(), expected: "a preset of ppo".into(), got: format!("{other:?}") }),
    };
    let per_step = forward_cost(network, &trainer.world()) * (1.0 + 3.0 * epochs as f64);
    Ok(Roofline { threads: count, peak: median(peaks), per_step, rate: median(rates) })
}

/// Environment steps per second of a training as `config` has it, rollouts and updates: the median over `rounds` slices of time.
pub fn training(config: &Config, rounds: usize) -> Result<f64, Error> {
    let mut trainer = Trainer::new(Config { steps: 1 << 50, ..config.clone() })?;
    let mut rates = Vec::new();
    for round in 0..rounds + 1 {
        let (began, before) = (Instant::now(), trainer.steps());
        while began.elapsed().as_secs_f64() < 0.5 {
            trainer.iterate()?;
        }
        // the first slice warms up
        if round > 0 {
            rates.push((trainer.steps() - before) as f64 / began.elapsed().as_secs_f64());
        }
    }
    Ok(median(rates))
}

/// Steps per second of `envs` copies of `world` under random actions, on the calling thread; the median of `rounds`.
///
/// Drawing the actions, autoreset, final observations and episode statistics are part of the time.
pub fn random_actions(world: &World, envs: usize, rounds: usize) -> Result<f64, Error> {
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

/// Random actions below `n`: 32 from a word where there are two, else one, which favours some by n / 2^32 at most.
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

/// Random rows of a box; where it has no bound, from -10^6 or to 10^6.
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
