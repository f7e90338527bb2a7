//! Checks observations and action masks that come from outside.

use std::borrow::Cow;

use gradus_envs::{EnvSpec, Space};

use crate::WrapperConfig;

/// An observation or a mask is not one of the environment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}: expected {expected}, got {got}")]
pub struct InputError {
    /// What is wrong.
    pub what: String,
    /// What was expected.
    pub expected: String,
    /// What was given.
    pub got: String,
}

impl InputError {
    /// Creates an error.
    pub fn new(what: impl Into<String>, expected: impl Into<String>, got: impl ToString) -> Self {
        Self { what: what.into(), expected: expected.into(), got: got.to_string() }
    }
}

/// The observations and actions of an environment, with the configured wrappers.
pub struct Inputs {
    observations: Space,
    /// Numbers per observation.
    width: usize,
    /// The number of observations if the environment's own are discrete and the network gets nothing but their one-hot code.
    discrete: Option<usize>,
    actions: Space,
}

impl Inputs {
    /// `world` has these wrappers.
    pub fn of(world: &EnvSpec, wrappers: &WrapperConfig) -> Self {
        let env = world.env();
        let observations = env.observation_space();
        let width = observations.width();
        let is_plain = wrappers.frame_stack == 1 && !wrappers.time_aware;
        Self { observations, width, discrete: (is_plain && world.is_one_hot()).then_some(width), actions: env.action_space() }
    }

    /// Returns rows of `width` numbers as the network takes them: rows of finite numbers, or one-hot codes of whole numbers. The length of
    /// `rows` must be a multiple of `width`.
    pub fn rows<'a>(&self, rows: &'a [f32], width: usize) -> Result<Cow<'a, [f32]>, InputError> {
        let rows = match self.discrete {
            Some(n) if width == 1 && n > 1 => {
                let mut codes = vec![0.0; rows.len() * n];
                for (row, number) in codes.chunks_exact_mut(n).zip(rows) {
                    let index = *number as usize;
                    if index >= n || index as f32 != *number {
                        return Err(InputError::new("observation", format!("a whole number from 0 to {}", n - 1), number));
                    }
                    row[index] = 1.0;
                }
                Cow::Owned(codes)
            }
            _ if width != self.width => return Err(InputError::new("observation", format!("{} numbers", self.width), width)),
            _ => Cow::Borrowed(rows),
        };
        if let Some(i) = rows.iter().position(|number| !number.is_finite()) {
            let row = if rows.len() > self.width { format!("[{}]", i / self.width) } else { String::new() };
            return Err(InputError::new(format!("observation{row}[{}]", i % self.width), "a finite number", rows[i]));
        }
        if let Space::Image(image) = self.observations {
            // a pixel is kept as a byte, and one that is scaled to 0 to 1 would be lost
            let largest = f32::from(image.largest);
            if let Some(pixel) = rows.iter().find(|pixel| !(0.0..=largest).contains(*pixel) || pixel.fract() != 0.0) {
                return Err(InputError::new("observation", format!("pixels from 0 to {largest}, whole numbers"), pixel));
            }
        }
        if let Space::Text { vocabulary, context } = self.observations {
            for row in rows.chunks_exact(self.width) {
                let is_below = |number: f32, limit: usize| (0.0..limit as f32).contains(&number) && number.fract() == 0.0;
                if !is_below(row[0], context + 1) {
                    return Err(InputError::new(
                        "observation[0], the number of tokens",
                        format!("a whole number from 0 to {context}"),
                        row[0],
                    ));
                }
                let tokens = &row[1..=row[0] as usize];
                if let Some(token) = tokens.iter().find(|token| !is_below(**token, vocabulary as usize)) {
                    return Err(InputError::new("observation", format!("tokens below {vocabulary}"), token));
                }
            }
        }
        Ok(rows)
    }

    /// As [`rows`](Inputs::rows), for observations of `count` environments.
    pub fn rows_of<'a>(&self, count: usize, rows: &'a [f32]) -> Result<Cow<'a, [f32]>, InputError> {
        let width = rows.len() / count;
        let is_code = width == 1 && self.discrete.is_some_and(|n| n > 1);
        if !rows.len().is_multiple_of(count) || !(width == self.width || is_code) {
            let expected = format!("{count} x {} numbers, a row for each environment", self.width);
            return Err(InputError::new("observations", expected, rows.len()));
        }
        self.rows(rows, width)
    }

    /// Checks the action masks of `count` observations. Those of observations that are not followed by an action may allow none.
    pub fn check_masks(&self, masks: Option<&[bool]>, count: usize, is_followed: impl Fn(usize) -> bool) -> Result<(), InputError> {
        let Some(masks) = masks else { return Ok(()) };
        let n = self.actions.mask_width();
        if n == 0 {
            return Err(InputError::new("action mask", "none, because actions are continuous", "one"));
        }
        if masks.len() != count * n {
            return Err(InputError::new("action mask", format!("{count} x {n} entries"), masks.len()));
        }
        if masks.chunks(n).enumerate().any(|(row, mask)| is_followed(row) && !self.actions.is_possible(mask)) {
            return Err(InputError::new("action mask", "at least one allowed action", "none"));
        }
        Ok(())
    }
}
