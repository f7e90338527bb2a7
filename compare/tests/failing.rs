//! An environment that fails in a chosen way.

use gradus::envs::{Action, Env, EnvError, EnvSpec, Space, Step};

/// What fails.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// Nothing.
    None,
    /// `step` panics.
    Step,
    /// `step` writes a row that is too long, with `copy_from_slice`.
    LongRow,
    /// `step` leaves the last number unwritten.
    ShortRow,
    /// `reset` leaves the last number unwritten.
    ShortReset,
    /// `reset` panics.
    Reset,
    /// `action_mask` panics.
    Mask,
    /// `scores` panics.
    Scores,
    /// `save` panics.
    Save,
    /// The observation is NaN.
    NotANumber,
    /// Episodes do not end.
    Endless,
    /// The environment panics when it is made.
    Make,
    /// The action space has more lower than upper bounds.
    Spaces,
    /// An assertion with a message of several lines fails.
    Lines,
}

/// Episodes of seven steps, in which the agent observes the step, the last action and the seed. The fault happens in step `at` (the reset is
/// step 0) of every episode whose number is at least `from`. The environment counts steps and episodes itself.
#[derive(Clone)]
pub struct Failing {
    fault: Fault,
    from: u64,
    at: u64,
    episode: u64,
    step: u64,
    seed: u64,
}

/// Makes the world, with the name `failing`.
pub fn world(fault: Fault, from: u64, at: u64) -> EnvSpec {
    EnvSpec::new("failing", move || {
        assert!(fault != Fault::Make, "no licence");
        Failing { fault, from, at, episode: 0, step: 0, seed: 0 }
    })
}

impl Failing {
    fn fails(&self, fault: Fault) -> bool {
        self.fault == fault && self.episode >= self.from && self.step == self.at
    }

    /// Panics if `fault` is due. The message has the place.
    fn panic_if(&self, fault: Fault) {
        let Self { step, episode, seed, .. } = self;
        assert!(!self.fails(fault), "in step {step} of episode {episode} with seed {seed}");
    }
}

impl Env for Failing {
    fn observation_space(&self) -> Space {
        Space::Box { low: vec![0.0; 3], high: vec![10.0; 3] }
    }
    fn action_space(&self) -> Space {
        if self.fault == Fault::Spaces { Space::Box { low: vec![0.0; 2], high: vec![1.0] } } else { Space::Discrete(2) }
    }
    fn reset(&mut self, seed: u64, observation: &mut [f32]) {
        (self.episode, self.step, self.seed) = (self.episode + 1, 0, seed);
        self.panic_if(Fault::Reset);
        observation[..2].copy_from_slice(&[0.0, 0.0]);
        if !self.fails(Fault::ShortReset) {
            observation[2] = (seed % 10) as f32;
        }
    }
    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        let Action::Discrete(action) = action else { panic!("expected a discrete action, got {action:?}") };
        self.step += 1;
        self.panic_if(Fault::Step);
        if self.fails(Fault::Lines) {
            assert_eq!(self.step, 0, "steps");
        }
        observation[..2].copy_from_slice(&[self.step.min(10) as f32, action as f32]);
        if self.fails(Fault::LongRow) {
            observation.copy_from_slice(&[1.0; 4]);
        }
        if !self.fails(Fault::ShortRow) {
            observation[2] = if self.fails(Fault::NotANumber) { f32::NAN } else { (self.seed % 10) as f32 };
        }
        let terminated = self.step >= 7 && (self.fault != Fault::Endless || self.episode < self.from);
        Step { reward: f64::from(action), terminated, truncated: false }
    }
    fn action_mask(&self, _mask: &mut [bool]) -> bool {
        self.panic_if(Fault::Mask);
        self.fault == Fault::Mask
    }
    fn score_names(&self) -> Vec<String> {
        if self.fault == Fault::Scores { vec!["score".into()] } else { Vec::new() }
    }
    fn scores(&self, _scores: &mut [f64]) {
        self.panic_if(Fault::Scores);
    }
    fn save(&self) -> Vec<u64> {
        self.panic_if(Fault::Save);
        vec![self.episode, self.step, self.seed]
    }
    fn load(&mut self, state: &[u64]) -> Result<(), EnvError> {
        let [episode, step, seed] = *state else { return Err(EnvError::State(format!("expected 3 words, got {state:?}"))) };
        (self.episode, self.step, self.seed) = (episode, step, seed);
        Ok(())
    }
}
