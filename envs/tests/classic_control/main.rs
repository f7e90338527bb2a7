//! MountainCar, MountainCarContinuous, Acrobot and Pendulum have Gymnasium's spaces, steps and endings.
//!
//! The golden files are written by `scripts/golden/gymnasium_classic.py`.

mod acrobot;
mod every_task;
mod mountain_car;
mod pendulum;
mod recordings;

use gradus_base::random::Stream;
use gradus_envs::{Action, Env, EnvSpec, Space, Step, registry};

const NAMES: [&str; 4] = ["mountain-car", "mountain-car-continuous", "acrobot", "pendulum"];

fn worlds() -> impl Iterator<Item = EnvSpec> {
    NAMES.into_iter().map(|name| registry::find(name).unwrap())
}

/// An action of either kind that owns its numbers.
#[derive(Clone, Debug)]
enum Chosen {
    Discrete(u32),
    Continuous(Vec<f32>),
}

impl Chosen {
    fn action(&self) -> Action<'_> {
        match self {
            Chosen::Discrete(action) => Action::Discrete(*action),
            Chosen::Continuous(row) => Action::Continuous(row),
        }
    }

    fn random(space: &Space, stream: &mut Stream) -> Self {
        match space {
            Space::Discrete(n) => Chosen::Discrete(stream.below(*n)),
            Space::Box { low, high } => {
                let number = |(low, high): (&f32, &f32)| stream.uniform(f64::from(*low), f64::from(*high)) as f32;
                Chosen::Continuous(low.iter().zip(high).map(number).collect())
            }
            space => panic!("no classic task has actions in {space}"),
        }
    }
}

fn bits(numbers: &[f32]) -> Vec<u32> {
    numbers.iter().map(|number| number.to_bits()).collect()
}

/// Takes `steps` random steps. Returns the bits of each observation, and the result of each step.
fn play(env: &mut dyn Env, stream: &mut Stream, steps: usize) -> Vec<(Vec<u32>, Step)> {
    let space = env.action_space();
    let mut row = vec![0.0; env.observation_space().width()];
    (0..steps)
        .map(|_| {
            let step = env.step(Chosen::random(&space, stream).action(), &mut row);
            (bits(&row), step)
        })
        .collect()
}

fn after(env: &mut dyn Env, state: &[f64], action: Action<'_>) -> (Vec<f32>, Step) {
    let mut row = vec![0.0; env.observation_space().width()];
    env.start_from(state, &mut row).unwrap();
    let step = env.step(action, &mut row);
    (row, step)
}

fn assert_near(row: &[f32], expected: &[f64]) {
    assert_eq!(row.len(), expected.len());
    let near = row.iter().zip(expected).all(|(got, expected)| (f64::from(*got) - expected).abs() <= 2e-7 * expected.abs().max(1e-2));
    assert!(near, "expected {expected:?}, got {row:?}");
}

fn running(reward: f64) -> Step {
    Step { reward, terminated: false, truncated: false }
}
