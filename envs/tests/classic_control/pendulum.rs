//! The pendulum takes the hand-computed steps, and its torque is clipped to the box.

use std::f64::consts::PI;

use gradus_envs::{Action, Pendulum};

use super::{after, assert_near};

/// The pendulum starts at rest. If it is upright, only the torque u changes its velocity, by 3 u dt. If it is horizontal, gravity changes
/// the velocity by (3 g / 2) dt = 0.75. If it hangs, nothing changes it.
#[test]
fn pendulum_takes_the_hand_computed_steps() {
    let mut env = Pendulum::default();
    let torque = |u: &'static [f32]| Action::Continuous(u);
    let (row, step) = after(&mut env, &[0.0, 0.0], torque(&[1.0]));
    assert_near(&row, &[0.0075_f64.cos(), 0.0075_f64.sin(), 0.15]);
    assert_near(&[step.reward as f32], &[-0.001]);
    let (row, step) = after(&mut env, &[PI / 2.0, 0.0], torque(&[0.0]));
    assert_near(&row, &[-(0.0375_f64.sin()), 0.0375_f64.cos(), 0.75]);
    assert_near(&[step.reward as f32], &[-2.467_401_1]);
    let (row, step) = after(&mut env, &[-PI, 0.0], torque(&[0.0]));
    assert_near(&row, &[-1.0, 0.0, 0.0]);
    assert_near(&[step.reward as f32], &[-9.869_604_4]);
    // one radian minus two turns has the cost of one radian; the whole cost is 1^2 + 0.1 x 0.5^2 + 0.001 x 0.7^2
    let (row, step) = after(&mut env, &[1.0 - 4.0 * PI, 0.5], torque(&[0.7]));
    assert_near(&row, &[0.487_296_55, 0.873_236_54, 1.236_103_2]);
    assert_near(&[step.reward as f32], &[-1.02549]);
    let (row, _) = after(&mut env, &[1.0, 7.9], torque(&[2.0]));
    assert_eq!(row[2], 8.0, "no faster than 8");
    let (row, _) = after(&mut Pendulum::with_gravity(5.0), &[PI / 2.0, 0.0], torque(&[0.0]));
    assert_near(&row[2..], &[0.375]);
}

/// A torque beyond a bound has the effect and the cost of the bound.
#[test]
fn a_torque_outside_the_box_is_clipped() {
    let mut env = Pendulum::default();
    for (far, bound) in [(5.0, 2.0), (-1e30, -2.0)] {
        let expected = after(&mut env, &[1.0, 0.5], Action::Continuous(&[bound]));
        assert_eq!(after(&mut env, &[1.0, 0.5], Action::Continuous(&[far])), expected);
        assert_near(&[expected.1.reward as f32], &[-1.029]);
    }
}
