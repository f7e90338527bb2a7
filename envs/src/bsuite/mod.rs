//! Small problems that each ask for one ability, after those of bsuite (Osband et al., arXiv 1908.03568), and a T-maze.
//!
//! | environment | what it asks for | end of an episode |
//! |---|---|---|
//! | [`MemoryChain`]: `memory-len-10`, `memory-size-3` | to remember what was seen first | a right or wrong answer: 1 or -1 |
//! | [`DeepSea`]: `deep-sea-10`, `deep-sea-stochastic-10` | to explore against small costs | after as many steps as the sea is deep |
//! | [`DiscountingChain`]: `discounting-chain-4` | to prefer a larger reward that is far away | after 100 steps |
//! | [`UmbrellaChain`]: `umbrella-length-10`, `umbrella-distract-10` | to find the action that a late reward depends on | a dry or a wet walk: 1 or -1 |
//! | [`Catch`]: `catch` | to move a paddle under a ball | a caught or a lost ball: 1 or -1 |
//! | [`TMaze`]: `t-maze-10` | to remember a sign at the beginning of a corridor | the right or the wrong turn: 4 or -0.1 |
//!
//! The number in a name is the length, size or number of bits, and may be another one. The tests compare 10,000 steps of five seeds of each problem but the T-maze with the
//! package `bsuite`, fed with the same random numbers. There, the actions that go to the right in the deep sea come from NumPy's generator, and here from ours.

mod catch;
mod deep_sea;
mod discounting_chain;
mod memory_chain;
mod scenes;
mod t_maze;
mod umbrella_chain;

use std::sync::Arc;

use crate::episode_rng::{EpisodeRng, set_numbers};
use crate::{Action, Env, EnvError, EnvSpec, Scene, Space, Step};
use gradus_base::random::Stream;

pub use crate::episode_rng::Each;
pub use catch::Catch;
pub use deep_sea::DeepSea;
pub use discounting_chain::DiscountingChain;
pub use memory_chain::MemoryChain;
pub use t_maze::TMaze;
pub use umbrella_chain::UmbrellaChain;

/// Random numbers, in the order in which a problem asks for them.
pub trait Draws {
    /// A number from 0 to 1, without 1.
    fn unit(&mut self) -> f64;

    /// A whole number below `n`.
    fn below(&mut self, n: u32) -> u32;

    /// A number of the standard normal distribution.
    fn normal(&mut self) -> f64;

    /// 0 or 1.
    fn coin(&mut self) -> i32 {
        (self.unit() > 0.5).into()
    }
}

impl Draws for Stream {
    fn unit(&mut self) -> f64 {
        self.unit_f64()
    }

    fn below(&mut self, n: u32) -> u32 {
        Stream::below(self, n)
    }

    fn normal(&mut self) -> f64 {
        Stream::normal(self).into()
    }
}

/// A problem, without its random stream.
pub trait Experiment: Send {
    /// Numbers of an observation, with their bounds.
    fn observations(&self) -> (Vec<f32>, Vec<f32>);

    /// Number of actions.
    fn actions(&self) -> u32;

    /// Begins an episode.
    fn start(&mut self, draws: &mut dyn Draws);

    /// Takes a step. Returns the reward, and whether the episode is over.
    fn act(&mut self, action: i32, draws: &mut dyn Draws) -> (f64, bool);

    /// Writes the observation; all numbers are 0 before.
    fn show(&self, observation: &mut [f32]);

    /// Visits every number of the state.
    fn visit(&mut self, each: Each<'_>);

    /// A picture of the state, with what the agent must remember.
    fn draw(&self) -> Scene;

    /// A copy with the same state.
    fn copy(&self) -> Box<dyn Experiment>;
}

/// A problem as an environment.
pub struct Problem {
    name: Arc<str>,
    experiment: Box<dyn Experiment>,
    width: usize,
    rng: EpisodeRng,
}

impl Problem {
    fn new(name: &Arc<str>, experiment: Box<dyn Experiment>) -> Self {
        let width = experiment.observations().0.len();
        let mut problem = Self { name: name.clone(), experiment, width, rng: EpisodeRng::new(0) };
        problem.experiment.start(&mut problem.rng.stream);
        problem
    }

    fn show(&self, observation: &mut [f32]) {
        observation.fill(0.0);
        self.experiment.show(&mut observation[..self.width]);
    }
}

impl Env for Problem {
    fn observation_space(&self) -> Space {
        let (low, high) = self.experiment.observations();
        Space::Box { low, high }
    }

    fn action_space(&self) -> Space {
        Space::Discrete(self.experiment.actions())
    }

    fn reset(&mut self, seed: u64, observation: &mut [f32]) {
        self.rng = EpisodeRng::new(seed);
        self.experiment.start(&mut self.rng.stream);
        self.show(observation);
    }

    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        let most = self.experiment.actions() - 1;
        let action = match action {
            Action::Discrete(action) if action <= most => action as i32,
            _ => panic!("{}: expected an action from 0 to {most}, got {action:?}", self.name),
        };
        let (reward, terminated) = self.experiment.act(action, &mut self.rng.stream);
        self.show(observation);
        Step { reward, terminated, truncated: false }
    }

    fn save(&self) -> Vec<u64> {
        let mut words = self.rng.save().to_vec();
        self.experiment.copy().visit(&mut |number, _| words.push(i64::from(*number) as u64));
        words
    }

    fn load(&mut self, state: &[u64]) -> Result<(), EnvError> {
        let wrong = |problem: String| EnvError::State(format!("{}: {problem}", self.name));
        let (rng, own) = state
            .split_first_chunk::<{ EpisodeRng::WORDS }>()
            .ok_or_else(|| wrong(format!("expected at least {} words, got {}", EpisodeRng::WORDS, state.len())))?;
        let mut loaded = self.experiment.copy();
        set_numbers(&mut |each| loaded.visit(each), own).map_err(wrong)?;
        (self.experiment, self.rng) = (loaded, EpisodeRng::load(*rng));
        Ok(())
    }

    fn reseed(&mut self, seed: u64) {
        self.rng = EpisodeRng::new(seed);
    }

    fn render(&self) -> Option<Scene> {
        Some(self.experiment.draw())
    }
}

/// A family of problems: its name, the sizes that it may have, what they are, the size that is listed, and how to make one.
struct Family {
    name: &'static str,
    sizes: std::ops::RangeInclusive<usize>,
    about: fn(usize) -> String,
    listed: usize,
    limit: fn(usize) -> u32,
    make: fn(usize) -> Box<dyn Experiment>,
}

const FAMILIES: [Family; 8] = [
    Family {
        name: "memory-len",
        sizes: 1..=10_000,
        about: |n| format!("remember a bit for {n} steps"),
        listed: 10,
        limit: |n| n as u32 + 1,
        make: |n| Box::new(MemoryChain::new(n, 1)),
    },
    Family {
        name: "memory-size",
        sizes: 1..=1000,
        about: |n| format!("remember {n} bits for two steps, of which one is asked for"),
        listed: 3,
        limit: |_| 3,
        make: |n| Box::new(MemoryChain::new(2, n)),
    },
    Family {
        name: "deep-sea",
        sizes: 2..=200,
        about: |n| format!("dive {n} steps to the right, against small costs, to find the treasure"),
        listed: 10,
        limit: |n| n as u32,
        make: |n| Box::new(DeepSea::new(n, false)),
    },
    Family {
        name: "deep-sea-stochastic",
        sizes: 2..=200,
        about: |n| format!("the deep sea of {n} steps, with a current and noise"),
        listed: 10,
        limit: |n| n as u32,
        make: |n| Box::new(DeepSea::new(n, true)),
    },
    Family {
        name: "umbrella-length",
        sizes: 1..=10_000,
        about: |n| format!("take an umbrella or not, and know {n} steps later, among noise, whether that was right"),
        listed: 10,
        limit: |n| n as u32,
        make: |n| Box::new(UmbrellaChain::new(n, 20)),
    },
    Family {
        name: "umbrella-distract",
        sizes: 0..=1000,
        about: |n| format!("take an umbrella or not, and know 20 steps later, among {n} numbers without meaning, whether that was right"),
        listed: 10,
        limit: |_| 20,
        make: |n| Box::new(UmbrellaChain::new(20, n)),
    },
    Family {
        name: "discounting-chain",
        sizes: 0..=4,
        about: |n| {
            format!(
                "choose one of five rewards of 1, which come after 1 to 100 steps; the one after {} is 1.1",
                discounting_chain::AFTER[n]
            )
        },
        listed: 4,
        limit: |_| 100,
        make: |n| Box::new(DiscountingChain::new(n)),
    },
    Family {
        name: "t-maze",
        sizes: 1..=10_000,
        about: |n| format!("remember a sign, walk {n} steps along a corridor, and turn as it said"),
        listed: 10,
        limit: |n| 10 * n as u32 + 10,
        make: |n| Box::new(TMaze::new(n)),
    },
];

impl Family {
    fn spec(&self, size: usize) -> EnvSpec {
        let name = format!("{}-{size}", self.name);
        spec(&name, (self.about)(size), (self.limit)(size), size, self.make)
    }
}

fn spec(name: &str, about: String, limit: u32, size: usize, make: fn(usize) -> Box<dyn Experiment>) -> EnvSpec {
    let shown: Arc<str> = name.into();
    EnvSpec { about, ..EnvSpec::limited(name, limit, move || Problem::new(&shown, make(size))) }
}

/// The problems that are listed, one of each family.
pub(crate) fn worlds() -> Vec<EnvSpec> {
    let catch = spec("catch", "move a paddle under a falling ball, 9 steps".into(), 9, 0, |_| Box::new(Catch::default()));
    FAMILIES.iter().map(|family| family.spec(family.listed)).chain([catch]).collect()
}

/// Returns the problem of this name, if it is a family's with a number; an error if the family has none of this size.
pub(crate) fn find(name: &str) -> Option<Result<EnvSpec, EnvError>> {
    let find = |name: &str| FAMILIES.iter().find(|known| known.name == name);
    // the name of a family may begin with that of another one
    let (family, size) = match find(name) {
        Some(family) => (family, ""),
        None => name.rsplit_once('-').and_then(|(family, size)| Some((find(family)?, size)))?,
    };
    let wrong = || EnvError::Unknown {
        name: name.into(),
        hint: format!("expected {}-N with N from {} to {}", family.name, family.sizes.start(), family.sizes.end()),
    };
    Some(size.parse().ok().filter(|size| family.sizes.contains(size)).map(|size| family.spec(size)).ok_or_else(wrong))
}
