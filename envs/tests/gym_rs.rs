//! Environments of gym-rs with our interface, and the errors of its CartPole. Needs the feature `gym-rs`.

use gradus_checker::check_world;
use gradus_envs::gym_rs::GymRs;
use gradus_envs::gym_rs::core::Env as _;
use gradus_envs::gym_rs::envs::classical_control::cartpole::{CartPoleEnv, CartPoleObservation};
use gradus_envs::gym_rs::envs::classical_control::mountain_car::MountainCarEnv;
use gradus_envs::gym_rs::spaces::BoxR;
use gradus_envs::gym_rs::utils::renderer::RenderMode;
use gradus_envs::{Action, CartPole, Env, EnvSpec, MountainCar, Space, TimeLimit};

/// Start states as in CartPole-v1.
fn near_upright() -> BoxR<CartPoleObservation> {
    let near = |bound: f64| CartPoleObservation::new(bound.into(), bound.into(), bound.into(), bound.into());
    BoxR::new(near(-0.05), near(0.05))
}

fn cartpole() -> GymRs {
    GymRs::starting_between(|| CartPoleEnv::new(RenderMode::None), near_upright)
}

fn mountain_car() -> GymRs {
    GymRs::new(|| MountainCarEnv::new(RenderMode::None))
}

#[test]
fn gym_rs_environments_pass_the_checker_with_a_time_limit() {
    assert_eq!(check_world(&EnvSpec::new("gym-rs-cartpole", || TimeLimit::new(cartpole(), 500))), []);
    assert_eq!(check_world(&EnvSpec::new("gym-rs-mountain-car", || TimeLimit::new(mountain_car(), 200))), []);
    let angle = (12.0 * std::f64::consts::PI / 180.0 * 2.0) as f32;
    let high = vec![4.8, f32::INFINITY, angle, f32::INFINITY];
    assert_eq!(cartpole().observation_space(), Space::Box { low: high.iter().map(|bound| -bound).collect(), high });
}

/// MountainCar of gym-rs equals Gymnasium's, and so does ours. So this test shows that the adapter changes nothing.
#[test]
fn mountain_car_of_gym_rs_equals_ours() {
    for seed in 0..5 {
        let (mut theirs, mut ours) = (mountain_car(), MountainCar::default());
        let (mut row, mut our_row) = ([0.0; 2], [0.0; 2]);
        theirs.reset(seed, &mut row);
        ours.start_from(&row.map(f64::from), &mut our_row).unwrap();
        for t in 0..200 {
            let action = Action::Discrete(if t / 20 % 2 == 0 { 2 } else { 0 });
            let (step, our_step) = (theirs.step(action, &mut row), ours.step(action, &mut our_row));
            let apart = (row[0] - our_row[0]).abs().max((row[1] - our_row[1]).abs());
            assert!(apart < 1e-5, "seed {seed}, step {t}: {row:?}, {our_row:?}");
            assert_eq!(step, our_step, "seed {seed}, step {t}");
            if step.done() {
                break;
            }
        }
    }
}

#[test]
fn an_invalid_state_is_an_error() {
    let mut env = cartpole();
    for (state, expected) in [
        (vec![], "expected a seed, a number of actions and the actions, got 0 words"),
        (vec![1, 3, 0, 1], "expected a seed, a number of actions and the actions, got 4 words"),
        (vec![1, 2, 0, 2], "expected Discrete(2), that is 0 to 1, got 2"),
    ] {
        assert_eq!(env.load(&state).unwrap_err().to_string(), format!("state of the environment: gym-rs: {expected}"));
    }
}

/// CartPole's equations, with the product of the pole's mass and half length as a parameter.
fn euler([x, x_dot, theta, theta_dot]: [f64; 4], push_right: bool, pole_mass_length: f64) -> [f64; 4] {
    let (sin, cos) = theta.sin_cos();
    let force = if push_right { 10.0 } else { -10.0 };
    let temp = (force + pole_mass_length * theta_dot * theta_dot * sin) / 1.1;
    let theta_acc = (9.8 * sin - cos * temp) / (0.5 * (4.0 / 3.0 - 0.1 * cos * cos / 1.1));
    let x_acc = temp - pole_mass_length * theta_acc * cos / 1.1;
    [x + 0.02 * x_dot, x_dot + 0.02 * x_acc, theta + 0.02 * theta_dot, theta_dot + 0.02 * theta_acc]
}

fn distance(a: [f64; 4], b: [f64; 4]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// With the same start and the same actions, poles of gym-rs fall differently from ours and Gymnasium's. With the sum of mass and half
/// length instead of their product, our equations give the states of gym-rs.
#[test]
fn cartpole_of_gym_rs_uses_the_sum_of_mass_and_length_instead_of_the_product() {
    for seed in 0..20 {
        let mut theirs = CartPoleEnv::new(RenderMode::None);
        let (start, _) = theirs.reset(Some(seed), false, Some(near_upright()));
        let start: [f64; 4] = Vec::from(start).try_into().unwrap();
        let (mut with_sum, mut with_product) = (start, start);
        let (mut ours, mut row) = (CartPole::default(), [0.0; 4]);
        ours.start_from(&start, &mut row).unwrap();
        for t in 1..=8 {
            let action = usize::from(t % 3 == 0);
            let step = theirs.step(action);
            let state: [f64; 4] = Vec::from(step.observation).try_into().unwrap();
            ours.step(Action::Discrete(action as u32), &mut row);
            with_sum = euler(with_sum, action == 1, 0.1 + 0.5);
            with_product = euler(with_product, action == 1, 0.1 * 0.5);
            assert!(distance(with_sum, state) < 1e-9, "seed {seed}, step {t}: {with_sum:?}, {state:?}");
            assert!(distance(with_product, row.map(f64::from)) < 1e-6, "seed {seed}, step {t}: {with_product:?}, {row:?}");
            assert!(distance(row.map(f64::from), state) > 0.1, "seed {seed}, step {t}: {row:?}, {state:?}");
        }
    }
}

/// Start states of gym-rs are ten times as large as Gymnasium's. Most have an angle at which an episode ends, and some are outside of the
/// environment's own observation space.
#[test]
fn most_episodes_of_cartpole_of_gym_rs_end_with_their_first_step() {
    let mut env = GymRs::new(|| CartPoleEnv::new(RenderMode::None));
    let Space::Box { high, .. } = env.observation_space() else { panic!("expected a box") };
    let (mut row, mut over, mut outside) = ([0.0_f32; 4], 0, 0);
    for seed in 0..400 {
        env.reset(seed, &mut row);
        assert!(row.iter().all(|number| number.abs() < 0.5), "{row:?}");
        outside += u32::from(row[2].abs() > high[2]);
        over += u32::from(env.step(Action::Discrete(1), &mut row).terminated);
    }
    // 1 - 0.2094 / 0.5 = 58 % start beyond the angle limit, and some others exceed it in the first step
    assert!((210..280).contains(&over), "{over} of 400");
    // 1 - 0.4189 / 0.5 = 16 % start outside of the space
    assert!((45..85).contains(&outside), "{outside} of 400");
}
