//! Measures two speeds that the README quotes, as `gradus bench roofline` and `gradus bench env cartpole` do, and the time of a
//! comparison's bootstrap: `cargo bench --bench speed`.

use std::time::Instant;

use gradus::Config;
use gradus::envs::random::{Purpose, Stream};
use gradus::envs::registry;
use gradus::nets::threads;
use gradus_cli::bench::measure;
use gradus_compare::statistics::{Bootstrap, Scores, interquartile_mean};

fn main() -> Result<(), gradus::Error> {
    println!(
        "CartPole, random actions, one core, 4096 environments: {:.1} million steps/s",
        measure::random_actions(&registry::find("cartpole")?, 4096, 1, 15)? / 1e6
    );
    let config = Config::preset("ppo", "cartpole", Some("cleanrl"))?;
    let measured = threads::with_default(|| measure::roofline(&config, 15))?;
    println!(
        "PPO, preset cleanrl, {} threads: {:.0} steps/s, {:.2} of the roofline of {:.0} steps/s at {:.1} GFLOP/s",
        measured.threads,
        measured.rate,
        measured.ratio(),
        measured.floor(),
        measured.peak / 1e9
    );
    bootstrap();
    Ok(())
}

/// Measures the time to compute the bootstrap interval of an interquartile mean, with 50 000 resamples of 10 runs x 10 tasks.
fn bootstrap() {
    let mut stream = Stream::new(1, Purpose::Problem, 0);
    let tasks = (0..10).map(|_| (0..10).map(|_| stream.unit_f64()).collect()).collect();
    let scores = Scores::new(tasks).expect("ten runs of ten tasks");
    for threads in [1, threads::cores()] {
        let mut seconds: Vec<f64> = (0..5)
            .map(|_| {
                let began = Instant::now();
                threads::with(threads, || Bootstrap::default().interval(&scores, interquartile_mean));
                began.elapsed().as_secs_f64()
            })
            .collect();
        seconds.sort_by(f64::total_cmp);
        println!("interquartile mean, 50 000 resamples of 10 runs x 10 tasks, {threads} threads: {:.3} s", seconds[2]);
    }
}
