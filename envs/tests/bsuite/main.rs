//! The problems against records of the package `bsuite`, which `scripts/bsuite_traces.py` has written: every observation, reward and end of 10,000 steps of five seeds.

#[path = "../arcade/numpy.rs"]
mod numpy;

use gradus_envs::bsuite::{Catch, DeepSea, DiscountingChain, Draws, Experiment, MemoryChain, UmbrellaChain};
use gradus_envs::{Action, Shape, arcade, registry};

use numpy::RandomState;

const TRACES: &str = include_str!("traces.txt");
/// Steps between two hashes.
const EVERY: usize = 250;

/// NumPy's numbers, and the second one of the last pair of normal numbers.
struct Random(RandomState, Option<f64>);

impl Draws for Random {
    fn unit(&mut self) -> f64 {
        arcade::Draws::unit(&mut self.0)
    }

    fn below(&mut self, n: u32) -> u32 {
        arcade::Draws::below(&mut self.0, n)
    }

    /// The polar method (Marsaglia and Bray, 1964), as NumPy has it.
    fn normal(&mut self) -> f64 {
        if let Some(number) = self.1.take() {
            return number;
        }
        loop {
            let [x, y] = [(); 2].map(|()| 2.0 * self.unit() - 1.0);
            let square = x * x + y * y;
            if square < 1.0 && square != 0.0 {
                let scale = (-2.0 * square.ln() / square).sqrt();
                self.1 = Some(scale * x);
                return scale * y;
            }
        }
    }
}

#[test]
fn normal_numbers_are_those_of_numpy() {
    let mut random = Random(RandomState::new(1), None);
    // numpy.random.RandomState(1).randn(3)
    let expected = [1.624_345_363_663_241_7, -0.611_756_413_650_075_4, -0.528_171_752_263_455_7];
    expected.iter().for_each(|expected| assert!((random.normal() - expected).abs() < 1e-15));
}

/// The actions to the right in the deep sea, which the package draws with the seed 42.
fn to_the_right(size: usize) -> Vec<i32> {
    let mut random = Random(RandomState::new(42), None);
    (0..size * size).map(|_| random.coin()).collect()
}

fn made(name: &str, size: usize) -> Box<dyn Experiment> {
    match name {
        "memory-len" => Box::new(MemoryChain::new(size, 1)),
        "memory-size" => Box::new(MemoryChain::new(2, size)),
        "deep-sea" => Box::new(DeepSea::with_actions(size, false, to_the_right(size))),
        "deep-sea-stochastic" => Box::new(DeepSea::with_actions(size, true, to_the_right(size))),
        "discounting-chain" => Box::new(DiscountingChain::new(size)),
        "umbrella-length" => Box::new(UmbrellaChain::new(size, 20)),
        "umbrella-distract" => Box::new(UmbrellaChain::new(20, size)),
        _ => Box::new(Catch::default()),
    }
}

/// FNV-1a of what is seen.
struct Hash(u64);

impl Hash {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }

    fn show(&mut self, experiment: &dyn Experiment) -> Vec<f32> {
        let mut observation = vec![0.0; experiment.observations().0.len()];
        experiment.show(&mut observation);
        observation.iter().for_each(|number: &f32| self.add(&number.to_le_bytes()));
        observation
    }
}

#[test]
fn problems_are_those_of_the_package() {
    let mut lines = 0;
    for line in TRACES.lines() {
        let [name, size, seed, hashes] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let hashes: Vec<&str> = hashes.split(',').collect();
        assert_eq!(hashes.len(), 10_000 / EVERY);
        let (size, seed) = (size.parse().unwrap(), seed.parse().unwrap());
        let (mut random, mut chance) = (Random(RandomState::new(seed), None), u64::from(seed));
        let (mut experiment, right) = (made(name, size), to_the_right(size));
        let mut hash = Hash(0xcbf2_9ce4_8422_2325);
        let mut ends = 0;
        experiment.start(&mut random);
        let mut seen = hash.show(&*experiment);
        for step in 0..10_000 {
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let mut action = ((chance >> 33) % u64::from(experiment.actions())) as i32;
            if name.starts_with("deep-sea") && !(chance >> 50).is_multiple_of(10) {
                action = right[seen.iter().position(|number| *number == 1.0).unwrap()];
            }
            let (reward, is_over) = experiment.act(action, &mut random);
            seen = hash.show(&*experiment);
            hash.add(&reward.to_le_bytes());
            hash.add(&[is_over.into()]);
            if is_over {
                ends += 1;
                experiment.start(&mut random);
                seen = hash.show(&*experiment);
            }
            if (step + 1) % EVERY == 0 {
                assert_eq!(format!("{:016x}", hash.0), hashes[step / EVERY], "{name}-{size}, seed {seed}: before step {}", step + 1);
            }
        }
        assert!(ends >= 100, "{name}: {ends} ends");
        lines += 1;
    }
    assert_eq!(lines, 55);
}

#[test]
fn all_problems_keep_the_contract_of_an_environment() {
    let names = [
        "memory-len-1",
        "memory-len-7",
        "memory-size-4",
        "deep-sea-10",
        "deep-sea-stochastic-11",
        "discounting-chain-2",
        "umbrella-length-1",
    ];
    for name in names.into_iter().chain(["umbrella-length-9", "umbrella-distract-0", "catch", "t-maze-1", "t-maze-5"]) {
        let world = registry::find(name).unwrap();
        let findings = gradus_checker::check_world(&world);
        let faults: Vec<_> = findings.iter().filter(|finding| finding.severity == gradus_checker::Severity::Fault).collect();
        assert!(faults.is_empty(), "{name}: {faults:?}");
        a_picture_shows_every_state(name);
        // words that are no state are refused, and change nothing
        let mut env = world.env();
        let mut row = vec![0.0; env.observation_space().width()];
        env.reset(3, &mut row);
        env.step(Action::Discrete(1), &mut row);
        let saved = env.save();
        for i in 2..saved.len() {
            let mut words = saved.clone();
            words[i] = 1 << 40;
            let problem = env.load(&words).unwrap_err().to_string();
            assert!(problem.contains("expected a number from") || problem.contains("elapsed steps"), "{name}: {problem}");
            assert_eq!(env.save(), saved, "{name}");
        }
    }
}

/// Every state of an episode has a picture of its own, whose points lie within it.
fn a_picture_shows_every_state(name: &str) {
    let mut env = registry::find(name).unwrap().env();
    let mut row = vec![0.0; env.observation_space().width()];
    env.reset(5, &mut row);
    // at the turn of the maze, a step to the right hits the wall
    let wall = name.strip_prefix("t-maze-").map(|length| length.parse::<u32>().unwrap());
    let mut before = None;
    for step in 0..200 {
        let scene = env.render().expect("a picture");
        let points = scene.shapes.iter().flat_map(|shape| match shape {
            Shape::Line { from, to, .. } => vec![*from, *to],
            Shape::Polygon { corners, .. } => corners.clone(),
            Shape::Disc { centre: [x, y], radius, .. } => vec![[x - radius, y - radius], [x + radius, y + radius]],
            Shape::Picture(_) => Vec::new(),
        });
        let is_inside = |[x, y]: [f64; 2]| (scene.x[0]..=scene.x[1]).contains(&x) && (scene.y[0]..=scene.y[1]).contains(&y);
        points.for_each(|point| assert!(is_inside(point), "{name}, step {step}: {point:?} in {:?} x {:?}", scene.x, scene.y));
        assert_ne!(before, Some(scene.clone()), "{name}, step {step}");
        before = Some(scene);
        if Some(step) == wall {
            return;
        }
        let taken = env.step(Action::Discrete(1), &mut row);
        if taken.terminated || taken.truncated {
            return;
        }
    }
    panic!("{name}: expected an end");
}

#[test]
fn sizes_that_no_problem_has_are_refused() {
    for (name, expected) in [
        ("memory-len-0", "expected memory-len-N with N from 1 to 10000"),
        ("deep-sea-1", "expected deep-sea-N with N from 2 to 200"),
        ("deep-sea-x", "expected deep-sea-N with N from 2 to 200"),
        ("deep-sea-stochastic", "expected deep-sea-stochastic-N with N from 2 to 200"),
        ("discounting-chain-5", "expected discounting-chain-N with N from 0 to 4"),
        ("t-maze--3", "t-maze"),
    ] {
        let error = registry::find(name).err().unwrap().to_string();
        assert!(error.contains(expected) && !error.contains('\n'), "{name}: {error}");
    }
}
