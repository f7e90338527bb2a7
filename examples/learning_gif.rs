//! Draws a pole being learnt: trains PPO on CartPole, stops on the way to play an episode, and writes one animation of all of them:
//! `cargo run --example learning_gif [FILE.gif]`. The README begins with it.

use std::path::PathBuf;
use std::process::ExitCode;

use gradus::draw::{Animation, write_gif};
use gradus::evaluate::play::play;
use gradus::{Config, Trainer, program};

/// Environment steps after which an episode is played.
const STEPS: [u64; 3] = [0, 1_000, 8_000];
/// Steps that are shown of an episode, of which every second one is drawn.
const SHOWN: usize = 250;

fn main() -> ExitCode {
    program(|| {
        let path = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("runs/learning.gif"), PathBuf::from);
        let mut trainer = Trainer::new(Config { seed: 3, ..Config::preset("ppo", "cartpole", None)? })?;
        let (mut frames, mut chapters) = (Vec::new(), Vec::new());
        for steps in STEPS {
            while trainer.steps() < steps {
                trainer.iterate()?;
            }
            let played = play(trainer.policy(), &trainer.evaluation_world(), 8)?;
            chapters.push((frames.len(), format!("PPO after {} steps", trainer.steps())));
            println!("after {} steps of training: a return of {}", trainer.steps(), played.episode_return);
            let last = played.frames.len().min(SHOWN) - 1;
            frames.extend(played.frames.iter().take(last).step_by(2).cloned());
            // the end of an episode stands still for a moment
            frames.extend(std::iter::repeat_n(&played.frames[last], 15).cloned());
        }
        let animation = Animation { title: "CartPole-v1".into(), chapters: &chapters, frames: &frames, frames_per_second: 25 };
        write_gif(&animation, &path)?;
        println!("{}", path.display());
        Ok(())
    })
}
