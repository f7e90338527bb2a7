//! MountainCar, MountainCarContinuous, Acrobot and Pendulum: Gymnasium's spaces, steps and ends.
//!
//! The golden files are written by `scripts/golden/gymnasium_classic.py`, and `tests/gymnasium.rs` of the root replays them too.

use std::f64::consts::PI;

use gradus_envs::random::{Purpose, Stream};
use gradus_envs::{Acrobot, Action, Env, MountainCar, MountainCarContinuous, Pendulum, Scene, Shape, Space, Step, World, registry};
use serde_json::Value;

const NAMES: [&str; 4] = ["mountain-car", "mountain-car-continuous", "acrobot", "pendulum"];

fn worlds() -> impl Iterator<Item = World> {
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
            Space::Text { .. } => panic!("no classic task has texts for actions"),
        }
    }
}

fn bits(numbers: &[f32]) -> Vec<u32> {
    numbers.iter().map(|number| number.to_bits()).collect()
}

/// All that `env` shows in `steps` random steps, to the bit.
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

struct Golden {
    place: String,
    /// The state after the reset and after every step.
    states: Vec<Vec<f64>>,
    actions: Vec<Chosen>,
    observations: Vec<Vec<f32>>,
    rewards: Vec<f32>,
    terminated: bool,
    truncated: bool,
}

fn golden(name: &str) -> Vec<Golden> {
    let file = format!("{}/../tests/golden/{}.jsonl", env!("CARGO_MANIFEST_DIR"), name.replace('-', "_"));
    let text = std::fs::read_to_string(file).unwrap();
    let list = |value: &Value| value.as_array().unwrap().clone();
    let numbers = |value: &Value| -> Vec<f64> { list(value).iter().map(|x| x.as_f64().unwrap()).collect() };
    let singles = |value: &Value| -> Vec<f32> { numbers(value).into_iter().map(|x| x as f32).collect() };
    let action = |value: &Value| match value.as_u64() {
        Some(action) => Chosen::Discrete(action as u32),
        None => Chosen::Continuous(singles(value)),
    };
    let episode = |(i, line): (usize, &str)| {
        let episode: Value = serde_json::from_str(line).unwrap();
        Golden {
            place: format!("{name}, line {}", i + 1),
            states: [&episode["start"]].into_iter().chain(&list(&episode["states"])).map(numbers).collect(),
            actions: list(&episode["actions"]).iter().map(action).collect(),
            observations: list(&episode["observations"]).iter().map(singles).collect(),
            rewards: singles(&episode["rewards"]),
            terminated: episode["terminated"].as_bool().unwrap(),
            truncated: episode["truncated"].as_bool().unwrap(),
        }
    };
    text.lines().enumerate().map(episode).collect()
}

/// From the first state on, with nothing but the actions: observations, rewards and both flags, to the bit. Our arithmetic is the
/// same on every machine, so these recordings need no tolerance; others may, see `src/trace.rs`.
#[test]
fn whole_episodes_replay() {
    for world in worlds() {
        for episode in golden(&world.name) {
            let mut env = world.env();
            let mut row = vec![0.0; env.observation_space().width()];
            env.start_from(&episode.states[0], &mut row).unwrap();
            assert_eq!(bits(&row), bits(&episode.observations[0]), "{}, start", episode.place);
            for (t, action) in episode.actions.iter().enumerate() {
                let step = env.step(action.action(), &mut row);
                let place = format!("{}, step {}", episode.place, t + 1);
                let last = t + 1 == episode.actions.len();
                assert_eq!(bits(&row), bits(&episode.observations[t + 1]), "{place}");
                assert_eq!((step.reward as f32).to_bits(), episode.rewards[t].to_bits(), "{place}");
                let ends = (step.terminated, step.truncated);
                assert_eq!(ends, (last && episode.terminated, last && episode.truncated), "{place}");
            }
        }
    }
}

/// From every recorded state one step, in f64. What is left is the rounding of a sine, and of Python's square, which is a power.
#[test]
fn single_steps_agree_to_the_last_place_of_f64() {
    for (world, tolerance) in worlds().zip([2e-18, 0.0, 5e-16, 0.0]) {
        let (mut steps, mut equal) = (0, 0);
        for episode in golden(&world.name) {
            let mut env = world.env();
            let mut row = vec![0.0; env.observation_space().width()];
            for (t, action) in episode.actions.iter().enumerate() {
                let mut words: Vec<u64> = episode.states[t].iter().map(|number| number.to_bits()).collect();
                if world.name == "mountain-car-continuous" {
                    words.push(u64::from(t > 0)); // in f32 after the first step
                }
                words.push(0); // elapsed steps
                env.load(&words).unwrap();
                env.step(action.action(), &mut row);
                let expected = &episode.states[t + 1];
                let got: Vec<f64> = env.save()[..expected.len()].iter().map(|word| f64::from_bits(*word)).collect();
                let close = got.iter().zip(expected).all(|(got, expected)| (got - expected).abs() <= tolerance);
                assert!(close, "{}, step {}: expected {expected:?}, got {got:?}", episode.place, t + 1);
                steps += 1;
                equal += usize::from(got == *expected);
            }
        }
        assert!(steps > 3000 && steps - equal <= steps / 200, "{}: {equal} of {steps} equal", world.name);
    }
}

/// What the recordings must hold to be worth replaying.
#[test]
fn the_recordings_visit_every_corner() {
    for world in worlds() {
        let episodes = golden(&world.name);
        let count = |terminated, truncated| {
            episodes.iter().filter(|episode| (episode.terminated, episode.truncated) == (terminated, truncated)).count()
        };
        let ends = (count(true, false), count(false, true), count(true, true), count(false, false));
        match world.name.as_str() {
            "pendulum" => assert!(ends.1 >= 12 && (ends.0, ends.2, ends.3) == (0, 0, 0), "{ends:?}"),
            _ => assert!(ends.0 >= 10 && ends.1 >= 3 && ends.2 >= 1 && ends.3 == 0, "{}: {ends:?}", world.name),
        }
    }
    let steps_where = |name: &str, is: &dyn Fn(&[f64], &[f64]) -> bool| {
        golden(name).iter().flat_map(|episode| episode.states.windows(2)).filter(|pair| is(&pair[0], &pair[1])).count()
    };
    for name in ["mountain-car", "mountain-car-continuous"] {
        let stopped = steps_where(name, &|_, after| after[0] <= -1.2 && after[1] == 0.0);
        assert!(stopped >= 2, "{name}: {stopped} steps end at the wall");
    }
    let turns = steps_where("acrobot", &|before, after| (before[0] - after[0]).abs() > 4.0 || (before[1] - after[1]).abs() > 4.0);
    assert!(turns >= 5, "acrobot: {turns} angles are wrapped");
    let (fast, far) = (steps_where("pendulum", &|_, s| s[1].abs() == 8.0), steps_where("pendulum", &|_, s| s[0].abs() > 9.5));
    assert!(fast >= 5 && far >= 20, "pendulum: {fast} at the greatest speed, {far} past a whole turn");
    let held = golden("pendulum").iter().filter(|episode| episode.observations[100..].iter().all(|row| row[0] > 0.99)).count();
    assert!(held >= 4, "pendulum: {held} episodes balance in their second half");
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

/// cos(1.5) = 0.0707372017, so the slope at -0.5 pulls with 0.0025 cos(-1.5) = 0.000176843004.
#[test]
fn mountain_car_by_hand() {
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
fn a_mountain_car_keeps_to_its_road() {
    let mut cars: [(Box<dyn Env>, Action<'_>); 2] = [
        (Box::new(MountainCar::default()), Action::Discrete(0)),
        (Box::new(MountainCarContinuous::default()), Action::Continuous(&[-1.0])),
    ];
    for (car, left) in &mut cars {
        let (row, step) = after(car, &[-1.19, -0.05], *left);
        assert_eq!((row, step.done()), (vec![-1.2, 0.0], false), "the wall takes all speed");
        let (row, _) = after(car, &[-0.2, -0.07], *left);
        assert_eq!(row[1], -0.07, "no faster than 0.07");
        let (row, _) = after(car, &[-0.9, 0.07], *left);
        assert_eq!(row[1], 0.07, "no faster than 0.07, downhill");
        let (row, step) = after(car, &[0.59, 0.07], *left);
        assert_eq!((row[0], step.terminated), (0.6, true), "no further than 0.6");
    }
}

/// Where the step from `words` leads, and how it ends: the first numbers that `save` gives, and the step.
fn after_words(env: &mut dyn Env, words: &[u64], action: Action<'_>) -> (f64, Step) {
    env.load(words).unwrap();
    let step = env.step(action, &mut [0.0; 2]);
    (f64::from_bits(env.save()[0]), step)
}

/// The goal is at 0.5 or at 0.45, itself included, and a car that rolls back over it has not reached it. In both precisions of the
/// continuous one.
#[test]
fn a_mountain_car_ends_at_the_flag() {
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

    // speeds around the one that leads to the flag from 0.05 before it: some reach it exactly, some the number below
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

/// Recorded from Gymnasium 1.4: outside the box the force is cut off and its price is not, and a Python float takes another way
/// through the rounding than an f32 number, from the f64 state of the start another one again.
#[test]
fn a_force_outside_the_box_is_gymnasiums() {
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

/// Upright and at rest only the torque acts, 3 u dt; level and at rest gravity, 3 g / 2 dt = 0.75; hanging at rest nothing.
#[test]
fn pendulum_by_hand() {
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
    // a turn and a radian further on the price is that of a radian, 1 + 0.1 0.5^2 + 0.001 0.7^2
    let (row, step) = after(&mut env, &[1.0 - 4.0 * PI, 0.5], torque(&[0.7]));
    assert_near(&row, &[0.487_296_55, 0.873_236_54, 1.236_103_2]);
    assert_near(&[step.reward as f32], &[-1.02549]);
    let (row, _) = after(&mut env, &[1.0, 7.9], torque(&[2.0]));
    assert_eq!(row[2], 8.0, "no faster than 8");
    let (row, _) = after(&mut Pendulum::with_gravity(5.0), &[PI / 2.0, 0.0], torque(&[0.0]));
    assert_near(&row[2..], &[0.375]);
}

/// The torque counts as 2, in the motion and in the price.
#[test]
fn a_torque_outside_the_box_is_cut_off() {
    let mut env = Pendulum::default();
    for (far, bound) in [(5.0, 2.0), (-1e30, -2.0)] {
        let expected = after(&mut env, &[1.0, 0.5], Action::Continuous(&[bound]));
        assert_eq!(after(&mut env, &[1.0, 0.5], Action::Continuous(&[far])), expected);
        assert_near(&[expected.1.reward as f32], &[-1.029]);
    }
}

/// Potential and kinetic energy of two rods of mass 1 and length 1, each with moment of inertia 1 about its centre.
fn energy([theta1, theta2, dtheta1, dtheta2]: [f64; 4]) -> f64 {
    let (angle, spin) = (theta1 + theta2, dtheta1 + dtheta2);
    // velocities of the centres: half way down the first link, and the whole first link and half of the second
    let first = [0.5 * dtheta1 * theta1.cos(), 0.5 * dtheta1 * theta1.sin()];
    let second = [2.0 * first[0] + 0.5 * spin * angle.cos(), 2.0 * first[1] + 0.5 * spin * angle.sin()];
    let heights = [-0.5 * theta1.cos(), -theta1.cos() - 0.5 * angle.cos()];
    let square = |v: [f64; 2]| v[0] * v[0] + v[1] * v[1];
    0.5 * (square(first) + square(second) + dtheta1 * dtheta1 + spin * spin) + 9.8 * (heights[0] + heights[1])
}

fn acrobot_state(env: &Acrobot) -> [f64; 4] {
    env.save().iter().map(|word| f64::from_bits(*word)).collect::<Vec<_>>().try_into().unwrap()
}

/// The equations are those of two rods: without torque the energy stays, with torque it grows by the work, torque times the angle
/// of the joint. As far as one Runge-Kutta step of 0.2 s is exact.
#[test]
fn an_acrobot_has_the_energy_of_its_rods() {
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
fn an_acrobot_ends_with_its_foot_above_the_line() {
    let mut env = Acrobot::default();
    // stretched upwards at rest, the foot at -cos 3 - cos 3 = 1.98; and hanging
    let (row, step) = after(&mut env, &[3.0, 0.0, 0.0, 0.0], Action::Discrete(1));
    assert_eq!((row.len(), step), (6, Step { reward: 0.0, terminated: true, truncated: false }));
    assert_eq!(after(&mut env, &[0.0; 4], Action::Discrete(1)).1, running(-1.0));
    // the knee up, the foot hanging from it to the bar: -cos 3 - cos 6 = 0.03
    assert_eq!(after(&mut env, &[3.0, 3.0, 0.0, 0.0], Action::Discrete(1)).1, running(-1.0));
    // half a turn further on
    after(&mut env, &[3.1, 0.0, 4.0, 0.0], Action::Discrete(1));
    assert!(acrobot_state(&env)[0] < -2.0, "angles are wrapped: {:?}", acrobot_state(&env));
}

/// Recorded from Gymnasium 1.4: joints that spin faster than they may.
#[test]
fn an_acrobot_keeps_to_its_speeds() {
    for (state, expected) in [
        ([0.82, -1.38, -11.48, -27.27], [-0.70332545, -0.710868, -0.7966826, 0.6043979, -12.566371, -28.274334]),
        ([-0.51, 1.41, 5.28, 24.37], [-0.5808335, -0.8140224, -0.9278667, -0.3729121, 12.566371, 28.274334]),
    ] {
        let (row, step) = after(&mut Acrobot::default(), &state, Action::Discrete(1));
        assert_eq!((row, step), (expected.to_vec(), running(-1.0)), "from {state:?}");
    }
}

#[test]
fn the_spaces_are_gymnasiums() {
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
fn episodes_start_where_gymnasiums_do() {
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
fn an_episode_belongs_to_its_seed() {
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
fn a_saved_episode_continues() {
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
fn a_state_that_is_none_is_refused() {
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
fn an_action_of_another_kind_is_a_panic() {
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

/// Nothing sticks out of the picture, wherever the episode goes.
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
                });
                let inside = |point: [f64; 2]| x[0] <= point[0] && point[0] <= x[1] && y[0] <= point[1] && point[1] <= y[1];
                assert!(points.into_iter().all(inside), "{}: {state:?}", world.name);
            }
        }
    }
}
