//! Batches of every classic task give the same bits as single environments, with every instruction set.

use super::*;
use crate::{Acrobot, Autoreset, CartPole, MountainCar, MountainCarContinuous, Pendulum, ScalarBatch, VecEnv};
use gradus_base::random::{Purpose, Stream};

/// Returns an action of environment `env`, as a number in [0, 1). It is random in even environments. In odd environments it pushes in the
/// direction of `row[velocity]`, because this ends episodes that random actions do not end.
fn push(env: usize, row: &[f32], velocity: usize, stream: &mut Stream) -> f32 {
    let random = stream.unit_f32();
    match env.is_multiple_of(2) {
        true => random,
        false if row[velocity] > 0.0 => 0.999,
        false => 0.0,
    }
}

/// Returns the bits of a vector's observations, its saved state, and the printed transition.
fn seen(envs: &VecEnv, step: Option<&crate::Transition>) -> (Vec<u32>, Vec<u64>, String) {
    let rows = envs.observation_rows().iter().map(|number| number.to_bits()).collect();
    (rows, envs.save(), step.map(|step| format!("{step:?}")).unwrap_or_default())
}

fn take_step(envs: &mut VecEnv, pushes: &[f32]) -> (Vec<u32>, Vec<u64>, String) {
    let step = match envs.action_space() {
        Space::Discrete(n) => {
            let actions: Vec<u32> = pushes.iter().map(|push| (push * n as f32) as u32).collect();
            envs.step_unfinished(Actions::Discrete(&actions)).unwrap().clone()
        }
        Space::Box { low, high } => {
            let rows: Vec<f32> = pushes.iter().map(|push| low[0] + (high[0] - low[0]) * push).collect();
            envs.step_unfinished(Actions::Continuous { rows: &rows, width: 1 }).unwrap().clone()
        }
        space => panic!("no classic task has actions in {space}"),
    };
    seen(envs, Some(&step))
}

/// Compares a batch with single environments after each of `steps` steps. Returns the numbers of terminated and of truncated episodes.
fn compare<T, const N: usize, const W: usize>(
    len: usize,
    limit: u32,
    velocity: usize,
    steps: u32,
    autoreset: Autoreset,
    level: Level,
) -> [u32; 2]
where
    T: Columnar<N, W> + Default + 'static,
{
    let many = || {
        let batch = ColumnBatch::<T, N, W> { level, ..ColumnBatch::new(len, limit) };
        VecEnv::new(Box::new(batch), 3..3 + len, 11, autoreset).unwrap()
    };
    let lone = || {
        let envs = (0..len).map(|_| TimeLimit::new(T::default(), limit)).collect();
        VecEnv::new(Box::new(ScalarBatch::new(envs)), 3..3 + len, 11, autoreset).unwrap()
    };
    let (mut a, mut b, mut ended) = (many(), lone(), [0, 0]);
    let mut stream = Stream::new(5, Purpose::Action, 0);
    let place = |t| format!("{}, {len} environments, {autoreset:?}, {level:?}, step {t}", std::any::type_name::<T>());
    assert_eq!(seen(&a, None), seen(&b, None), "{}", place(0));
    for t in 1..=steps {
        let rows = a.observation_rows().chunks_exact(W).enumerate();
        let pushes: Vec<f32> = rows.map(|(env, row)| push(env, row, velocity, &mut stream)).collect();
        let seen = take_step(&mut a, &pushes);
        assert!(seen == take_step(&mut b, &pushes), "{}", place(t));
        ended[0] += seen.2.matches("ending: Terminated").count() as u32 + seen.2.matches("ending: Both").count() as u32;
        ended[1] += seen.2.matches("ending: Truncated").count() as u32;
        if autoreset == Autoreset::Disabled && t % 50 == 0 {
            a.reset_finished().unwrap();
            b.reset_finished().unwrap();
        }
        if t % 37 == 0 {
            // both continue from the batch's saved state
            let words = a.save();
            (a, b) = (many(), lone());
            assert!(a.load(&words).unwrap().is_empty() && b.load(&words).unwrap().is_empty());
        }
    }
    ended
}

fn compare_all<T: Columnar<N, W> + Default + 'static, const N: usize, const W: usize>(limit: u32, velocity: usize, terminates: bool) {
    for level in Level::available() {
        for (len, autoreset) in [(1, Autoreset::SameStep), (8, Autoreset::NextStep), (64, Autoreset::Disabled), (75, Autoreset::SameStep)] {
            compare::<T, N, W>(len, 40, velocity, 130, autoreset, level);
        }
        let ended = compare::<T, N, W>(9, limit, velocity, 3 * limit + 5, Autoreset::SameStep, level);
        assert!((ended[0] > 0) == terminates && ended[1] > 0, "{level:?}: {ended:?}");
    }
}

#[test]
fn cartpole_batches_equal_single_environments() {
    compare_all::<CartPole, 4, 4>(50, 3, true);
}

#[test]
fn mountain_car_batches_equal_single_environments() {
    compare_all::<MountainCar, 2, 2>(200, 1, true);
}

#[test]
fn continuous_mountain_car_batches_equal_single_environments() {
    compare_all::<MountainCarContinuous, 3, 2>(300, 1, true);
}

#[test]
fn pendulum_batches_equal_single_environments() {
    compare_all::<Pendulum, 4, 3>(200, 2, false);
}

#[test]
fn acrobot_batches_equal_single_environments() {
    compare_all::<Acrobot, 4, 6>(500, 5, true);
}

/// Some of the start angles have many turns. The computation of the reward reduces them to one turn.
#[test]
fn pendulums_with_many_turns_equal_single_environments() {
    for level in Level::available() {
        let mut batch = ColumnBatch::<Pendulum, 4, 3> { level, ..ColumnBatch::new(70, 1000) };
        let mut lone: Vec<_> = (0..70).map(|_| TimeLimit::new(Pendulum::default(), 1000)).collect();
        for (env, lone) in lone.iter_mut().enumerate() {
            let angle = [1e6, -1e6, 3.0, -3.0, 1e5, 0.0, -0.0][env % 7] * (1.0 - env as f64 * 0.01);
            let words = [angle.to_bits(), (env as f64 * 0.1 - 3.5).to_bits(), 7];
            lone.load(&words).unwrap();
            batch.load(env, &words).unwrap();
            assert_eq!(batch.save(env), words);
        }
        let (mut rows, mut rewards, mut endings) = (vec![0.0; 210], vec![0.0; 70], vec![Ending::Running; 70]);
        batch.step(Actions::Continuous { rows: &[0.7; 70], width: 1 }, &[false; 70], &mut rows, &mut rewards, &mut endings);
        for (env, lone) in lone.iter_mut().enumerate() {
            let mut row = [0.0; 3];
            let step = lone.step(crate::Action::Continuous(&[0.7]), &mut row);
            assert_eq!((row.as_slice(), step.reward as f32), (&rows[3 * env..3 * env + 3], rewards[env]), "{level:?}, {env}");
            assert_eq!(batch.save(env), lone.save(), "{level:?}, {env}");
        }
    }
}
