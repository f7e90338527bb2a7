//! What MountainCar, MountainCarContinuous, Acrobot and Pendulum have in common: spaces, starts, seeds, saved states, errors and scenes.

use std::f64::consts::PI;

use gradus_base::random::{Purpose, Stream};
use gradus_envs::{Action, Env, MountainCarContinuous, Scene, Shape, Space, registry};

use super::{bits, play, worlds};
use crate::recordings::golden;

#[test]
fn spaces_match_gymnasium() {
    let symmetric = |high: Vec<f32>| Space::Box { low: high.iter().map(|bound| -bound).collect(), high };
    let road = Space::Box { low: vec![-1.2, -0.07], high: vec![0.6, 0.07] };
    let links = symmetric(vec![1.0, 1.0, 1.0, 1.0, 12.566371, 28.274334]);
    let expected = [
        ("MountainCar-v0", Some(-110.0), road.clone(), Space::Discrete(3)),
        ("MountainCarContinuous-v0", Some(90.0), road, symmetric(vec![1.0])),
        ("Acrobot-v1", Some(-100.0), links, Space::Discrete(3)),
        ("Pendulum-v1", None, symmetric(vec![1.0, 1.0, 8.0]), symmetric(vec![2.0])),
    ];
    for (world, (id, solved_at, observations, actions)) in worlds().zip(expected) {
        assert_eq!((world.gymnasium_id.as_deref(), world.solved_at), (Some(id), solved_at));
        assert_eq!(registry::find(id).unwrap().name, world.name);
        assert_eq!((world.env().observation_space(), world.env().action_space()), (observations, actions), "{id}");
    }
}

#[test]
fn start_states_match_gymnasium() {
    let valley: &[(f64, f64)] = &[(-0.6, -0.4), (0.0, 0.0)];
    let ranges: [&[(f64, f64)]; 4] = [valley, valley, &[(-0.1, 0.1); 4], &[(-PI, PI), (-1.0, 1.0)]];
    for (world, ranges) in worlds().zip(ranges) {
        let mut env = world.env();
        let mut row = vec![0.0; env.observation_space().width()];
        let states: Vec<Vec<f64>> = (0..2000)
            .map(|seed| {
                env.reset(seed, &mut row);
                env.save().into_iter().map(f64::from_bits).collect()
            })
            .collect();
        for (i, (low, high)) in ranges.iter().enumerate() {
            let size = high - low;
            let (least, greatest) = states.iter().fold((f64::MAX, f64::MIN), |(l, g), state| (l.min(state[i]), g.max(state[i])));
            let mean = states.iter().map(|state| state[i]).sum::<f64>() / 2000.0;
            assert!(*low <= least && least <= low + 0.01 * size, "{}: number {i}: from {least}", world.name);
            assert!(high - 0.01 * size <= greatest && greatest <= *high, "{}: number {i}: to {greatest}", world.name);
            assert!((mean - (low + high) / 2.0).abs() <= 0.03 * size, "{}: number {i}: mean {mean}", world.name); // 4.6 standard errors
        }
        let in_f32 = states.iter().filter(|state| f64::from(state[0] as f32) == state[0]).count();
        assert!(if world.name == "acrobot" { in_f32 == 2000 } else { in_f32 < 20 }, "{}: {in_f32} starts are f32 numbers", world.name);
    }
}

#[test]
fn an_episode_is_determined_by_its_seed() {
    for world in worlds() {
        let episode = |env: &mut dyn Env, seed| {
            let mut row = vec![0.0; env.observation_space().width()];
            env.reset(seed, &mut row);
            (bits(&row), play(env, &mut Stream::new(1, Purpose::Action, 0), 60))
        };
        let (mut used, mut fresh) = (world.env(), world.env());
        episode(used.as_mut(), 8);
        assert_eq!(episode(used.as_mut(), 7), episode(fresh.as_mut(), 7), "{}", world.name);
        assert_ne!(episode(used.as_mut(), 7).0, episode(fresh.as_mut(), 8).0, "{}", world.name);
    }
}

#[test]
fn a_saved_episode_continues_identically() {
    for world in worlds() {
        for steps in [0, 1, 40] {
            let mut env = world.env();
            let mut stream = Stream::new(3, Purpose::Action, 0);
            env.reset(9, &mut vec![0.0; env.observation_space().width()]);
            play(env.as_mut(), &mut stream, steps);
            let words = env.save();
            let scene = env.render();
            let expected = play(env.as_mut(), &mut stream.clone(), 170);
            let mut later = world.env();
            later.load(&words).unwrap();
            assert_eq!((later.save(), later.render()), (words, scene));
            assert_eq!(play(later.as_mut(), &mut stream, 170), expected, "{}, after {steps} steps", world.name);
        }
    }
}

#[test]
fn an_invalid_state_is_an_error() {
    let mut row = [0.0; 6];
    let mut message = |world: &str, state: &[f64]| {
        let mut env = registry::find(world).unwrap().env();
        let width = env.observation_space().width();
        env.start_from(state, &mut row[..width]).unwrap_err().to_string().replace("state of the environment: ", "")
    };
    assert_eq!(message("mountain-car", &[0.0]), "MountainCar: expected 2 numbers, got 1");
    assert_eq!(message("mountain-car", &[f64::NAN, 0.0]), "MountainCar: expected finite numbers, got NaN");
    assert_eq!(message("mountain-car", &[-1.3, 0.0]), "MountainCar: position: expected -1.2 to 0.6, got -1.3");
    assert_eq!(message("mountain-car", &[0.0, 0.08]), "MountainCar: velocity: expected -0.07 to 0.07, got 0.08");
    assert!(message("mountain-car-continuous", &[0.61, 0.0]).starts_with("MountainCarContinuous: position: expected"));
    assert_eq!(message("acrobot", &[0.0, -4.0, 0.0, 0.0]), format!("Acrobot: angle 2: expected {} to {PI}, got -4", -PI));
    assert!(message("acrobot", &[0.0, 0.0, 13.0, 0.0]).starts_with("Acrobot: velocity 1: expected"));
    assert!(message("acrobot", &[0.0, 0.0, 0.0, 29.0]).starts_with("Acrobot: velocity 2: expected"));
    assert_eq!(message("pendulum", &[2e6, 0.0]), "Pendulum: angle: expected -1000000 to 1000000, got 2000000");
    assert_eq!(message("pendulum", &[0.0, f64::INFINITY]), "Pendulum: expected finite numbers, got inf");

    for world in worlds() {
        let mut env = world.env();
        let good = env.save();
        let mut nan = good.clone();
        nan[1] = f64::NAN.to_bits();
        for words in [vec![], vec![0], good[..good.len() - 2].to_vec(), nan] {
            assert!(env.load(&words).is_err(), "{}: {words:?}", world.name);
        }
        assert_eq!(env.save(), good, "{}: a state that is refused changes nothing", world.name);
    }
    let error = MountainCarContinuous::default().load(&[0, 0, 2]).unwrap_err().to_string();
    assert!(error.ends_with("MountainCarContinuous: expected 0 or 1 for the precision, got 2"), "{error}");
}

#[test]
fn an_action_of_another_kind_panics() {
    let panics = |env: &mut dyn Env, action: Action<'_>| {
        let mut row = [0.0; 6];
        let row = &mut row[..env.observation_space().width()];
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| env.step(action, row))).is_err()
    };
    let (none, nan) = (Action::Continuous(&[]), Action::Continuous(&[f32::NAN]));
    for world in worlds() {
        let bad = match world.env().action_space() {
            Space::Discrete(n) => [Action::Discrete(n), Action::Continuous(&[0.0]), none],
            _ => [Action::Discrete(0), none, nan],
        };
        assert!(bad.iter().all(|action| panics(world.env().as_mut(), *action)), "{}", world.name);
    }
}

/// All shapes are inside the frame in every seventh state of the recorded episodes.
#[test]
fn scenes_fit_their_frame() {
    for world in worlds() {
        for episode in golden(&world.name) {
            let mut env = world.env();
            let mut row = vec![0.0; env.observation_space().width()];
            for state in episode.states.iter().step_by(7) {
                env.start_from(state, &mut row).unwrap();
                let Scene { x, y, shapes } = env.render().expect("a scene");
                let points = shapes.into_iter().flat_map(|shape| match shape {
                    Shape::Line { from, to, .. } => vec![from, to],
                    Shape::Polygon { corners, .. } => corners,
                    Shape::Disc { centre: [x, y], radius, .. } => vec![[x - radius, y - radius], [x + radius, y + radius]],
                    Shape::Picture(_) => Vec::new(),
                });
                let inside = |point: [f64; 2]| x[0] <= point[0] && point[0] <= x[1] && y[0] <= point[1] && point[1] <= y[1];
                assert!(points.into_iter().all(inside), "{}: {state:?}", world.name);
            }
        }
    }
}
