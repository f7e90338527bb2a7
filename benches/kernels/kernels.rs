//! Measures the kernels of the CPU engine and of the environments with criterion: `cargo bench -p gradus-benches`. With `-- gradient/64`,
//! measures only the kernels whose names match.
//!
//! Every kernel except `fork_join` runs on one thread. Throughputs count rows, numbers, steps or completion tokens.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput};
use gradus::envs::Image;
use gradus::nets::{math, threads};
use work::{Controlling, Learning, Valuing, Worlds, Writing};

#[path = "../work/mod.rs"]
mod work;

const WIDTHS: [usize; 5] = [32, 64, 128, 256, 512];
const ROWS: [usize; 5] = [1, 16, 128, 512, 2048];

/// Measures the gradient of PPO's loss, the values, acting and Adam's step, for two hidden layers of each width.
fn networks(criterion: &mut Criterion) {
    threads::with(1, || {
        for width in WIDTHS {
            for rows in ROWS {
                let mut learning = Learning::new(width, 2, rows);
                let id = || BenchmarkId::new(width.to_string(), rows);
                let mut group = |name: &str, elements: usize, work: &mut dyn FnMut()| {
                    let mut group = criterion.benchmark_group(name);
                    group.throughput(Throughput::Elements(elements as u64));
                    group.bench_function(id(), |bencher| bencher.iter(&mut *work));
                    group.finish();
                };
                group("gradient", rows, &mut || learning.gradient());
                // the rollout has four minibatches
                group("values", 4 * rows, &mut || learning.values());
                let mut acting = learning.acting(rows);
                group("act", rows, &mut || acting.act());
            }
            let mut learning = Learning::new(width, 2, 128);
            learning.gradient();
            criterion.bench_function(&format!("adam/{width}"), |bencher| bencher.iter(|| learning.apply()));
        }
    });
}

/// Measures the gradient of DQN's loss, the values of all actions and Adam's step, for two hidden layers of each width and samples of 64, and for images.
fn action_values(criterion: &mut Criterion) {
    threads::with(1, || {
        for width in WIDTHS {
            let mut valuing = Valuing::new(width, 64);
            let mut group = criterion.benchmark_group("action_values");
            group.bench_function(format!("gradient/{width}"), |bencher| bencher.iter(|| valuing.gradient()));
            group.bench_function(format!("values/{width}"), |bencher| bencher.iter(|| valuing.values()));
            group.bench_function(format!("adam/{width}"), |bencher| bencher.iter(|| valuing.apply()));
            group.finish();
        }
        let game = Image { frames: 1, height: 10, width: 10, channels: 4, largest: 1 };
        let screens = Image { frames: 4, height: 84, width: 84, channels: 1, largest: 255 };
        for (trunk, image, width, rows) in [("arcade", game, 128, 128), ("nature", screens, 512, 32), ("impala-small", screens, 256, 32)] {
            let mut valuing = Valuing::seeing(trunk, image, width, rows);
            let mut group = criterion.benchmark_group("images");
            group.bench_function(format!("gradient/{trunk}"), |bencher| bencher.iter(|| valuing.gradient()));
            group.bench_function(format!("values/{trunk}"), |bencher| bencher.iter(|| valuing.values()));
            group.finish();
        }
    });
}

/// Measures the gradients of SAC's losses for two hidden layers of each width and samples of 64.
fn actor_critics(criterion: &mut Criterion) {
    threads::with(1, || {
        for width in WIDTHS {
            let mut controlling = Controlling::new(width, 64);
            let mut group = criterion.benchmark_group("actor_critics");
            group.bench_function(format!("critic_gradient/{width}"), |bencher| bencher.iter(|| controlling.critic_gradient()));
            group.bench_function(format!("actor_gradient/{width}"), |bencher| bencher.iter(|| controlling.actor_gradient()));
            group.finish();
        }
    });
}

/// Measures exp, ln and tanh, applied to 4096 numbers one by one, and the log-softmax over 16 actions.
fn functions(criterion: &mut Criterion) {
    let numbers: Vec<f32> = (0..4096).map(|i| 0.001 + i as f32 / 1024.0).collect();
    let mut group = criterion.benchmark_group("math");
    group.throughput(Throughput::Elements(numbers.len() as u64));
    for (name, function) in [("exp", math::exp as fn(f32) -> f32), ("ln", math::ln), ("tanh", math::tanh)] {
        group.bench_function(name, |bencher| bencher.iter(|| black_box(&numbers).iter().map(|x| function(*x)).sum::<f32>()));
    }
    group.finish();
    let mut learning = Learning::new(0, 16, 512);
    let mut group = criterion.benchmark_group("log_softmax");
    group.throughput(Throughput::Elements(2048));
    group.bench_function("16", |bencher| threads::with(1, || bencher.iter(|| learning.distributions())));
    group.finish();
}

/// A chain of additions that takes a few microseconds, long enough for another core to take an item.
fn chain(item: &mut f64) {
    (0..4_000).for_each(|i| *item += f64::from(black_box(i)));
}

/// Measures one item of the same work per thread. The time with all cores minus the time with one core is the cost of waking the threads
/// and of waiting for them.
fn fork_join(criterion: &mut Criterion) {
    for count in [1, threads::cores()] {
        let mut items = vec![0.0; count];
        criterion.bench_function(&format!("fork_join/{count}"), |bencher| {
            threads::with(count, || bencher.iter(|| threads::for_each(&mut items, |_, item| chain(item))));
        });
    }
}

/// Measures environments with random actions.
fn environments(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("environments");
    for (name, envs) in [("cartpole", 4096), ("cartpole", 4), ("mountain-car", 1024), ("acrobot", 256), ("pendulum", 1024)] {
        let mut worlds = Worlds::new(name, envs);
        group.throughput(Throughput::Elements(16 * envs as u64));
        group.bench_function(BenchmarkId::new(name, envs), |bencher| threads::with(1, || bencher.iter(|| worlds.run())));
    }
    group.finish();
}

/// Measures a transformer of 0.1 million parameters with prompts of 6 tokens and completions of 16 tokens.
fn texts(criterion: &mut Criterion) {
    for count in [8, 64, 256] {
        let mut writing = Writing::new(count);
        let mut group = criterion.benchmark_group("text");
        group.sample_size(20);
        group.throughput(Throughput::Elements(16 * count as u64));
        group.bench_function(BenchmarkId::new("gradient", count), |bencher| threads::with(1, || bencher.iter(|| writing.gradient())));
        group.bench_function(BenchmarkId::new("generate", count), |bencher| threads::with(1, || bencher.iter(|| writing.generate())));
        group.finish();
    }
}

fn main() {
    let criterion = Criterion::default().warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_secs(1)).sample_size(50);
    let mut criterion = criterion.configure_from_args();
    for bench in [networks, action_values, actor_critics, functions, fork_join, environments, texts] {
        bench(&mut criterion);
    }
    criterion.final_summary();
}
