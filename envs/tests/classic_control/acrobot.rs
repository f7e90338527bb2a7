//! Acrobot conserves the energy of its rods, terminates when its tip is above the line, and limits its velocities.

use gradus_base::random::{Purpose, Stream};
use gradus_envs::{Acrobot, Action, Env, Step};

use super::{after, running};

/// Potential and kinetic energy of two rods of mass 1 and length 1, each with moment of inertia 1 about its centre.
fn energy([theta1, theta2, dtheta1, dtheta2]: [f64; 4]) -> f64 {
    let (angle, spin) = (theta1 + theta2, dtheta1 + dtheta2);
    // velocities of the rods' centres: the second centre moves with the end of the first rod, and turns about that end
    let first = [0.5 * dtheta1 * theta1.cos(), 0.5 * dtheta1 * theta1.sin()];
    let second = [2.0 * first[0] + 0.5 * spin * angle.cos(), 2.0 * first[1] + 0.5 * spin * angle.sin()];
    let heights = [-0.5 * theta1.cos(), -theta1.cos() - 0.5 * angle.cos()];
    let square = |v: [f64; 2]| v[0] * v[0] + v[1] * v[1];
    0.5 * (square(first) + square(second) + dtheta1 * dtheta1 + spin * spin) + 9.8 * (heights[0] + heights[1])
}

fn acrobot_state(env: &Acrobot) -> [f64; 4] {
    env.save().iter().map(|word| f64::from_bits(*word)).collect::<Vec<_>>().try_into().unwrap()
}

/// The equations are those of two rods. Without torque the energy is constant; with torque it grows by the work, which is torque times the
/// change of the joint's angle. The tolerance allows for the error of one Runge-Kutta step of 0.2 s.
#[test]
fn acrobot_conserves_the_energy_of_its_rods() {
    let mut env = Acrobot::default();
    let mut stream = Stream::new(5, Purpose::Action, 0);
    for _ in 0..200 {
        let state: [f64; 4] = std::array::from_fn(|_| stream.uniform(-1.0, 1.0));
        for action in 0..3 {
            after(&mut env, &state, Action::Discrete(action));
            let next = acrobot_state(&env);
            let (gained, work) = (energy(next) - energy(state), (f64::from(action) - 1.0) * (next[1] - state[1]));
            assert!((gained - work).abs() < 0.01, "{state:?}, action {action}: gained {gained}, work {work}");
        }
    }
}

#[test]
fn acrobot_terminates_with_its_foot_above_the_line() {
    let mut env = Acrobot::default();
    // the links are stretched upwards at rest, with the tip at the height -cos 3 - cos 3 = 1.98; then they hang down at rest
    let (row, step) = after(&mut env, &[3.0, 0.0, 0.0, 0.0], Action::Discrete(1));
    assert_eq!((row.len(), step), (6, Step { reward: 0.0, terminated: true, truncated: false }));
    assert_eq!(after(&mut env, &[0.0; 4], Action::Discrete(1)).1, running(-1.0));
    // the joint is up and the tip hangs from it at about the height of the bar: -cos 3 - cos 6 = 0.03
    assert_eq!(after(&mut env, &[3.0, 3.0, 0.0, 0.0], Action::Discrete(1)).1, running(-1.0));
    // the first angle exceeds pi
    after(&mut env, &[3.1, 0.0, 4.0, 0.0], Action::Discrete(1));
    assert!(acrobot_state(&env)[0] < -2.0, "angles are wrapped: {:?}", acrobot_state(&env));
}

/// Both velocities begin below their maximum. Without the limits, both would exceed it after one step. The expected observations were
/// recorded from Gymnasium 1.4.
#[test]
fn acrobot_limits_its_velocities() {
    for (state, expected) in [
        ([0.82, -1.38, -11.48, -27.27], [-0.70332545, -0.710868, -0.7966826, 0.6043979, -12.566371, -28.274334]),
        ([-0.51, 1.41, 5.28, 24.37], [-0.5808335, -0.8140224, -0.9278667, -0.3729121, 12.566371, 28.274334]),
    ] {
        let (row, step) = after(&mut Acrobot::default(), &state, Action::Discrete(1));
        assert_eq!((row, step), (expected.to_vec(), running(-1.0)), "from {state:?}");
    }
}
