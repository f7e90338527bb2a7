//! The speed figures of the README: `cargo bench --bench speed`. The same as `gradus bench roofline` and `gradus bench cartpole`.

use gradus::nets::threads;
use gradus::{Config, bench};

fn main() -> Result<(), gradus::Error> {
    println!("CartPole, random actions, one core, 4096 environments: {:.1} million steps/s", bench::random_cartpole(4096, 15)? / 1e6);
    let config = Config::preset("ppo", "cartpole", Some("cleanrl"))?;
    let measured = threads::with_default(|| bench::roofline(&config, 15))?;
    println!(
        "PPO, preset cleanrl, {} threads: {:.0} steps/s, {:.2} of the {:.0} that {:.1} GFLOP/s allow",
        measured.threads,
        measured.rate,
        measured.ratio(),
        measured.floor(),
        measured.peak / 1e9
    );
    Ok(())
}
