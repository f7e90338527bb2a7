//! How much of a training's time is that of the environment: `cargo run --example gym_replay -- gym:LunarLander-v3 4 5`.
//!
//! Records the actions of a training with PPO (NAME, UPDATES, ROUNDS), then measures in turn the same training, and the same worker processes
//! taking the recorded actions without a policy and without updates. `benches/peers/gym_bridge.py` runs it.

use std::ops::Range;
use std::process::ExitCode;
use std::time::Instant;

use gradus::envs::{Actions, EnvSpec};
use gradus::{Agent, Config, Error, Trainer};

/// The environments of a vector, and their actions of every step, one row after the other.
struct Part {
    ids: Range<usize>,
    discrete: Vec<u32>,
    continuous: Vec<f32>,
}

/// Plays the recorded actions, each part in its own thread and worker process. Returns the seconds without the start of the processes.
fn replay(world: &EnvSpec, seed: u64, steps: usize, parts: &[Part]) -> Result<f64, Error> {
    let mut vectors = parts.iter().map(|part| world.vec_env(part.ids.clone(), seed)).collect::<Result<Vec<_>, _>>()?;
    let width = world.env().action_space().width();
    let began = Instant::now();
    std::thread::scope(|scope| {
        let play = |(envs, part): (&mut gradus::envs::VecEnv, &Part)| {
            let n = part.ids.len();
            for t in 0..steps {
                envs.step(match part.continuous.is_empty() {
                    true => Actions::Discrete(&part.discrete[t * n..(t + 1) * n]),
                    false => Actions::Continuous { rows: &part.continuous[t * n * width..(t + 1) * n * width], width },
                })?;
            }
            Ok::<(), gradus::envs::EnvError>(())
        };
        let threads: Vec<_> = vectors.iter_mut().zip(parts).map(|pair| scope.spawn(move || play(pair))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
    })?;
    Ok(began.elapsed().as_secs_f64())
}

fn run() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let text = |i: usize, default: &str| arguments.get(i).cloned().unwrap_or_else(|| default.into());
    let number = |i: usize, default: u64| arguments.get(i).and_then(|text| text.parse().ok()).unwrap_or(default);
    let (name, updates, rounds) = (text(0, "gym:LunarLander-v3"), number(1, 4), number(2, 5) as usize);

    let preset = Config::preset("ppo", &name, None)?;
    let rollout = (preset.envs as u64)
        * preset.settings().iter().find(|(key, _)| key == "ppo.rollout_steps").map_or(1, |(_, steps)| steps.parse().unwrap_or(1));
    let preset = Config { steps: updates * rollout, ..preset };
    let mut agent = Agent::new(preset.clone())?;
    let n = agent.environments().len();
    let half = n.div_ceil(2);
    let mut parts = [0..half, half..n].map(|ids| Part { ids, discrete: Vec::new(), continuous: Vec::new() });
    let (mut envs, mut steps) = (agent.vec_env(0..n)?, 0);
    while !agent.is_finished() {
        let actions = agent.act(envs.observation_rows(), envs.action_masks())?;
        for part in &mut parts {
            match actions {
                Actions::Discrete(actions) => part.discrete.extend(&actions[part.ids.clone()]),
                Actions::Continuous { rows, width } => part.continuous.extend(&rows[part.ids.start * width..part.ids.end * width]),
            }
        }
        envs.step(actions)?;
        steps += 1;
        agent.observe(&envs.outcome())?;
        agent.update()?;
    }
    drop(envs);

    println!("{name}, {} steps of PPO, two threads", steps * n);
    println!("round, training (s), environment alone (s)");
    let mut seconds = [Vec::new(), Vec::new()];
    for round in 1..=rounds {
        let mut trainer = Trainer::new(preset.clone())?;
        let began = Instant::now();
        trainer.finish()?;
        seconds[0].push(began.elapsed().as_secs_f64());
        drop(trainer);
        seconds[1].push(replay(&preset.world()?, preset.seed, steps, &parts)?);
        println!("{round}, {:.3}, {:.3}", seconds[0][round - 1], seconds[1][round - 1]);
    }
    let [training, alone] = seconds.map(|mut all| {
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    });
    println!("medians: training {training:.3} s, environment alone {alone:.3} s, ratio {:.3}", training / alone);
    Ok(())
}

fn main() -> ExitCode {
    gradus::program(run)
}
