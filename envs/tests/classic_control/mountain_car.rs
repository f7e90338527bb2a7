//! Both mountain cars stay on their road and terminate at the flag. The continuous one treats a force outside the box as Gymnasium does.

use gradus_envs::{Action, Env, MountainCar, MountainCarContinuous, Step};

use super::{after, assert_near, running};

/// cos(1.5) = 0.0707372017, so the slope at -0.5 pulls with 0.0025 cos(-1.5) = 0.000176843004.
#[test]
fn mountain_car_takes_the_hand_computed_step() {
    for (action, velocity) in [(0, 0.01 - 0.001_176_843_0), (1, 0.01 - 0.000_176_843_0), (2, 0.01 + 0.000_823_157_0)] {
        let (row, step) = after(&mut MountainCar::default(), &[-0.5, 0.01], Action::Discrete(action));
        assert_near(&row, &[-0.5 + velocity, velocity]);
        assert_eq!(step, running(-1.0));
    }
    for (force, velocity) in [(-1.0, 0.01 - 0.001_676_843_0), (0.5, 0.01 + 0.000_573_157_0)] {
        let (row, step) = after(&mut MountainCarContinuous::default(), &[-0.5, 0.01], Action::Continuous(&[force]));
        assert_near(&row, &[-0.5 + velocity, velocity]);
        assert_eq!(step, running(-0.1 * f64::from(force * force)));
    }
}

#[test]
fn mountain_cars_stay_on_their_road_and_limit_their_velocity() {
    let mut cars: [(Box<dyn Env>, Action<'_>); 2] = [
        (Box::new(MountainCar::default()), Action::Discrete(0)),
        (Box::new(MountainCarContinuous::default()), Action::Continuous(&[-1.0])),
    ];
    for (car, left) in &mut cars {
        let (row, step) = after(car, &[-1.19, -0.05], *left);
        assert_eq!((row, step.done()), (vec![-1.2, 0.0], false), "the velocity at the wall is 0");
        let (row, _) = after(car, &[-0.2, -0.07], *left);
        assert_eq!(row[1], -0.07, "no faster than 0.07");
        let (row, _) = after(car, &[-0.9, 0.07], *left);
        assert_eq!(row[1], 0.07, "no faster than 0.07, downhill");
        let (row, step) = after(car, &[0.59, 0.07], *left);
        assert_eq!((row[0], step.terminated), (0.6, true), "no further than 0.6");
    }
}

/// Takes a step from the state `words`. Returns the position after the step, and the result of the step.
fn after_words(env: &mut dyn Env, words: &[u64], action: Action<'_>) -> (f64, Step) {
    env.load(words).unwrap();
    let step = env.step(action, &mut [0.0; 2]);
    (f64::from_bits(env.save()[0]), step)
}

/// The goal is at 0.5, or at 0.45 in the continuous task, inclusive. A car that rolls back over the goal has not reached it. Both rules
/// hold for f64 and for f32 states of the continuous task.
#[test]
fn mountain_cars_terminate_at_the_flag() {
    let mut car = MountainCar::default();
    for (position, velocity, ends) in [(0.47, 0.04, true), (0.47, 0.02, false), (0.55, -0.01, false)] {
        let (_, step) = after(&mut car, &[position, velocity], Action::Discrete(1));
        assert_eq!(step, Step { reward: -1.0, terminated: ends, truncated: false }, "from {position}, {velocity}");
    }
    let mut continuous = MountainCarContinuous::default();
    for (position, velocity, ends) in [(0.42, 0.04, true), (0.42, 0.02, false), (0.5, -0.01, false)] {
        for later in [0, 1] {
            let numbers = [position, velocity].map(|number: f32| f64::from(number).to_bits());
            let (_, step) = after_words(&mut continuous, &[numbers[0], numbers[1], later], Action::Continuous(&[0.5]));
            let reward = if ends { 100.0 } else { 0.0 } - 0.025;
            assert_eq!(step, Step { reward, terminated: ends, truncated: false }, "from {position}, {velocity}, {later}");
        }
    }

    // the car starts 0.05 before the flag, with velocities around the one that leads exactly to the flag: some cars reach the flag, and
    // some the next smaller number
    let speed = |position: f64| 0.05 + 0.0025 * (3.0 * position).cos();
    let mut seen = Vec::new();
    for i in -50..50 {
        let velocity = speed(0.45) + f64::from(i) * 2e-17;
        let (position, step) = after_words(&mut car, &[0.45, velocity].map(f64::to_bits), Action::Discrete(1));
        assert_eq!(step.terminated, position >= 0.5, "at {position}");
        seen.push(position);
    }
    assert!(seen.contains(&0.5) && seen.contains(&0.5_f64.next_down()));
    seen.clear();
    for i in -50..50 {
        let velocity = speed(0.4) + f64::from(i) * 4e-9;
        let words = [0.4_f64.to_bits(), velocity.to_bits(), 1];
        let (position, step) = after_words(&mut continuous, &words, Action::Continuous(&[0.0]));
        assert_eq!(step.terminated, position >= f64::from(0.45_f32), "at {position}");
        seen.push(position);
    }
    assert!(seen.contains(&f64::from(0.45_f32)) && seen.contains(&f64::from(0.45_f32.next_down())));
}

/// The expected values were recorded from Gymnasium 1.4. A force outside the box is clipped, but its cost is that of the unclipped force. A
/// clipped force is a Python float, so its push is computed in f64; the push of any other force is computed in f32. The start state
/// (`later` = 0) is also f64.
#[test]
fn a_force_outside_the_box_is_treated_as_in_gymnasium() {
    let mut env = MountainCarContinuous::default();
    let numbers = [-0.762_921_45_f32, -0.003_398_171_9].map(f64::from);
    let mut row = [0.0; 2];
    for (later, force, expected) in [
        (1, 1.5, [-0.763175, -0.00025353255]),
        (1, 1.0, [-0.763175, -0.00025353231]),
        (0, 1.5, [-0.763175, -0.0002535327]),
        (0, 1.0, [-0.763175, -0.00025353278]),
    ] {
        env.load(&[numbers[0].to_bits(), numbers[1].to_bits(), later]).unwrap();
        let step = env.step(Action::Continuous(&[force]), &mut row);
        assert_eq!((row, step), (expected, running(-0.1 * f64::from(force * force))), "{later}, {force}");
    }
    let (row, step) = after(&mut env, &[-0.5, 0.01], Action::Continuous(&[-3.0]));
    assert_eq!((row, step), (vec![-0.49167684, 0.008323157], running(-0.9)));
}
