//! A small text environment and a policy without parameters for it.

use std::sync::atomic::{AtomicUsize, Ordering};

use gradus::envs::random::{Purpose, Stream};
use gradus::envs::{Action, Env, EnvError, EnvSpec, Space, Step, text};
use gradus::nets::tensors::{Tensors, TensorsError};
use gradus::nets::{ActionRows, Actor, Batch, Behaviour, Choice, Group, Network, Objective, OptimiserStep, Policy, Store, Sums};

pub const VOCABULARY: u32 = 6;
const END: u32 = 0;
const CONTEXT: usize = 12;

/// An environment whose prompt has two tokens. An action that is a token of the prompt gets the reward 1, any other action 0. Each reward
/// has a little noise. Token 0 ends the text, and token 1 ends a step.
#[derive(Default)]
pub struct Copycat {
    tokens: Vec<u32>,
    rng: Option<Stream>,
}

impl Copycat {
    pub fn world() -> EnvSpec {
        EnvSpec::new("copycat", Copycat::default)
    }
}

impl Env for Copycat {
    fn observation_space(&self) -> Space {
        Space::Text { vocabulary: VOCABULARY, context: CONTEXT }
    }

    fn action_space(&self) -> Space {
        Space::Discrete(VOCABULARY)
    }

    fn reset(&mut self, seed: u64, observation: &mut [f32]) {
        let mut stream = Stream::new(seed, Purpose::Environment, 0);
        self.tokens = (0..2).map(|_| 1 + stream.word() % (VOCABULARY - 1)).collect();
        self.rng = Some(stream);
        text::write(&self.tokens, observation);
    }

    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        let Action::Discrete(token) = action else { panic!("expected a token") };
        let rng = self.rng.as_mut().map_or(0.0, |stream| f64::from(stream.unit_f32())) / 16.0;
        let reward = f64::from(u8::from(self.tokens[..2].contains(&token))) + rng;
        self.tokens.push(token);
        text::write(&self.tokens, observation);
        Step { reward, terminated: token == END, truncated: token != END && self.tokens.len() == CONTEXT }
    }

    fn save(&self) -> Vec<u64> {
        let position = self.rng.as_ref().map_or(0, Stream::position);
        [position].into_iter().chain(self.tokens.iter().map(|token| u64::from(*token))).collect()
    }

    fn load(&mut self, _state: &[u64]) -> Result<(), EnvError> {
        Err(EnvError::State("copycat: expected no load, got one".into()))
    }

    fn reseed(&mut self, seed: u64) {
        self.rng = Some(Stream::new(seed, Purpose::Environment, 1));
    }

    fn ends_step(&self) -> bool {
        self.tokens.last() == Some(&1)
    }

    fn score_names(&self) -> Vec<String> {
        vec!["tokens".into()]
    }

    fn scores(&self, scores: &mut [f64]) {
        scores[0] = self.tokens.len() as f64;
    }
}

/// A policy that samples tokens at random. Its greedy choice is the prompt's first token until the text has seven tokens, then token 0.
#[derive(Default)]
pub struct Dice {
    /// Largest number of rows in one call of the actor.
    pub most_rows: AtomicUsize,
}

struct DiceActor<'a>(&'a Dice);

impl Actor for DiceActor<'_> {
    fn act(&mut self, observations: &[f32], _: Option<&[bool]>, choice: Choice<'_>, actions: &mut ActionRows, log_probs: &mut [f32]) {
        let rows: Vec<Vec<u32>> = observations.chunks_exact(CONTEXT + 1).map(|row| text::tokens(row).collect()).collect();
        self.0.most_rows.fetch_max(rows.len(), Ordering::Relaxed);
        let chosen = match choice {
            Choice::Greedy => rows.iter().map(|row| if row.len() < 7 { row[0] } else { END }).collect(),
            // longer texts are more likely to end, so lengths differ, and actions depend on the state
            Choice::Sample(streams) => {
                let token = |(row, stream): (&Vec<u32>, &mut Stream)| match stream.word() % 20 {
                    n if n < row.len() as u32 / 3 => END,
                    n => 1 + n % (VOCABULARY - 1),
                };
                assert_eq!(rows.len(), streams.len());
                rows.iter().zip(streams).map(token).collect()
            }
            Choice::Truncated(..) => unreachable!("a collector samples without truncation"),
        };
        *actions = ActionRows::Discrete(chosen);
        log_probs.iter_mut().zip(&rows).for_each(|(log_prob, row)| *log_prob = -(row.len() as f32));
    }
}

impl Behaviour for Dice {
    fn observation_width(&self) -> usize {
        CONTEXT + 1
    }

    fn actor(&self) -> Box<dyn Actor + '_> {
        Box::new(DiceActor(self))
    }

    fn save(&self) -> Tensors {
        Tensors::new()
    }

    fn load(&mut self, _: &Tensors) -> Result<(), TensorsError> {
        Ok(())
    }

    fn save_optimiser(&self) -> Tensors {
        Tensors::new()
    }

    fn load_optimiser(&mut self, _: &Tensors) -> Result<(), TensorsError> {
        Ok(())
    }
}

impl Network for Dice {
    fn gradient_norm(&self) -> f32 {
        unreachable!("a collector only uses the actor")
    }

    fn apply(&mut self, _: &OptimiserStep) {
        unreachable!("a collector only uses the actor")
    }

    fn groups(&self) -> Vec<Group> {
        Vec::new()
    }

    fn parameters(&self) -> &[f32] {
        &[]
    }

    fn set_parameters(&mut self, _: &[f32]) {}

    fn last_gradient(&self) -> &[f32] {
        &[]
    }
}

impl Policy for Dice {
    fn values(&mut self, _: &Store, _: &mut Vec<f32>) {
        unreachable!("a collector only uses the actor")
    }

    fn log_probs(&mut self, _: &Store, _: &mut Vec<f32>) {
        unreachable!("a collector only uses the actor")
    }

    fn distributions(&mut self, _: &Store, _: &mut Vec<f32>) {
        unreachable!("a collector only uses the actor")
    }

    fn distribution_width(&self) -> usize {
        VOCABULARY as usize
    }

    fn evaluate(&mut self, _: &Store, _: Batch<'_>, _: &dyn Objective) -> Sums {
        unreachable!("a collector only uses the actor")
    }

    fn gradient(&mut self, _: &Store, _: Batch<'_>, _: &dyn Objective) -> Sums {
        unreachable!("a collector only uses the actor")
    }

    fn fisher_vector_product(&mut self, _: &Store, _: Batch<'_>, _: &[f32], _: &mut Vec<f32>) {
        unreachable!("a collector only uses the actor")
    }

    fn supports_fisher(&self) -> bool {
        false
    }

    fn snapshot(&self) -> Box<dyn Policy> {
        Box::new(Dice::default())
    }
}
