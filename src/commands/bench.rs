//! `gradus bench`: speed as users feel it.

use clap::Subcommand;
use gradus::config::MOST;
use gradus::nets::threads;
use gradus::{Config, Error, bench};

use super::{number, number_within, on_threads, say};

#[derive(Subcommand)]
pub(super) enum Bench {
    /// How long the default preset takes to solve CartPole.
    Solve {
        /// Seeds 1 to this.
        #[arg(long, default_value = "20", allow_hyphen_values = true)]
        seeds: String,
        /// Another preset.
        #[arg(long)]
        preset: Option<String>,
    },
    /// Training speed against what the machine can multiply.
    Roofline {
        /// A preset.
        #[arg(long, default_value = "cleanrl")]
        preset: String,
        /// Threads [default: all cores]
        #[arg(long, allow_hyphen_values = true)]
        threads: Option<String>,
    },
    /// CartPole under random actions, on one core.
    Cartpole {
        /// Environments in lockstep.
        #[arg(long, default_value = "4096", allow_hyphen_values = true)]
        envs: String,
    },
}

pub(super) fn run(bench: Bench) -> Result<i32, Error> {
    match bench {
        Bench::Solve { seeds, preset } => solve(number("--seeds", &seeds, 1)?, preset.as_deref()),
        Bench::Roofline { preset, threads } => roofline(&preset, threads.as_deref()),
        Bench::Cartpole { envs } => cartpole(number_within("--envs", &envs, 1, MOST as u64)? as usize),
    }
}

fn solve(seeds: u64, preset: Option<&str>) -> Result<i32, Error> {
    let config = Config::preset("ppo", "cartpole", preset)?;
    on_threads(None, || {
        say("seed   seconds     steps   greedy mean of 100 episodes");
        let (mut seconds, mut solved) = (Vec::new(), 0);
        for seed in 1..=seeds {
            let result = bench::solve(&config, seed)?;
            say(format!("{seed:>4}  {:>8.3}  {:>8}   {:.1}", result.seconds, result.steps, result.mean));
            seconds.push(result.seconds);
            solved += u64::from(result.mean >= 475.0);
        }
        let median = bench::median(seconds);
        say(format!("solved (475 or more): {solved} of {seeds}, median {median:.3} s on {} threads", threads::count()));
        Ok(0)
    })?
}

fn roofline(preset: &str, threads: Option<&str>) -> Result<i32, Error> {
    let config = Config::preset("ppo", "cartpole", Some(preset))?;
    on_threads(threads, || {
        let measured = bench::roofline(&config, 15)?;
        say(format!("preset {preset}, {} threads", measured.threads));
        say(format!("multiply peak   {:>10.1} GFLOP/s in f32, all threads, in registers", measured.peak / 1e9));
        say(format!("arithmetic      {:>10.1} kFLOP per step to act and to learn, products only", measured.per_step / 1e3));
        say(format!("floor           {:>10.0} steps/s if all else were free", measured.floor()));
        say(format!("measured        {:>10.0} steps/s", measured.rate));
        say(format!("ratio: {:.2}", measured.ratio()));
        Ok(0)
    })?
}

fn cartpole(envs: usize) -> Result<i32, Error> {
    let rate = bench::random_cartpole(envs, 15)?;
    say(format!("CartPole, random actions, {envs} environments, one core: {:.1} million steps/s", rate / 1e6));
    Ok(0)
}
