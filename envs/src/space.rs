//! Observation and action spaces.

use crate::Action;

/// A set of observations or of actions.
#[derive(Clone, Debug, PartialEq)]
pub enum Space {
    /// The numbers 0, 1, ..., n - 1.
    Discrete(u32),
    /// A box: one closed interval per dimension, possibly unbounded.
    Box {
        /// Lower bounds.
        low: Vec<f32>,
        /// Upper bounds.
        high: Vec<f32>,
    },
    /// Texts of at most `context` tokens, each from 0 to `vocabulary` - 1. An observation holds the number of tokens, then the tokens, then
    /// zeros. [`text::tokens`](crate::text::tokens) returns the tokens of an observation.
    Text {
        /// Number of different tokens.
        vocabulary: u32,
        /// Maximum number of tokens in a text.
        context: usize,
    },
}

impl Space {
    /// Length of the row of numbers that holds an observation or action: the dimensions of a box, 1 for a discrete space, `context` + 1 for
    /// texts.
    pub fn width(&self) -> usize {
        match self {
            Space::Discrete(_) => 1,
            Space::Box { low, .. } => low.len(),
            Space::Text { context, .. } => context + 1,
        }
    }

    /// Returns an error about `what`, such as `action space`, unless this space is valid: it has an element, and a box has as many lower as
    /// upper bounds, in order.
    pub fn check(&self, what: &str) -> Result<(), String> {
        let unless = |holds, problem: &dyn Fn() -> String| if holds { Ok(()) } else { Err(format!("{what}{}", problem())) };
        match self {
            Space::Discrete(n) => unless(*n > 0, &|| ": expected at least 1 element, got Discrete(0)".into()),
            Space::Box { low, high } => {
                unless(!low.is_empty(), &|| ": expected at least 1 dimension, got 0".into())?;
                unless(low.len() == high.len(), &|| format!(": expected {} upper bounds, got {}", low.len(), high.len()))?;
                low.iter().zip(high).enumerate().try_for_each(|(i, (low, high))| {
                    // false if a bound is NaN
                    let ordered = low <= high && *low < f32::INFINITY && *high > f32::NEG_INFINITY;
                    unless(ordered, &|| format!(", dimension {i}: expected low <= high, got low {low:?} and high {high:?}"))
                })
            }
            Space::Text { vocabulary, context } => {
                let most = 1 << f32::MANTISSA_DIGITS; // observations are f32
                let fits = (1..=most).contains(vocabulary) && (1..=most as usize).contains(context);
                unless(fits, &|| format!(": expected a vocabulary and a context of 1 to {most}, got {self}"))
            }
        }
    }

    /// Clips each number of `rows` to the bounds of a box. Other spaces leave the rows unchanged.
    pub fn clip(&self, rows: &mut [f32]) {
        if let Space::Box { low, high } = self {
            for row in rows.chunks_exact_mut(low.len().max(1)) {
                for (x, (low, high)) in row.iter_mut().zip(low.iter().zip(high)) {
                    // not `clamp`, which panics if low > high
                    *x = if *x < *low {
                        *low
                    } else if *x > *high {
                        *high
                    } else {
                        *x
                    };
                }
            }
        }
    }

    /// Whether `action` belongs to this space.
    pub fn contains(&self, action: Action<'_>) -> bool {
        match (self, action) {
            (Space::Discrete(n), Action::Discrete(a)) => a < *n,
            (Space::Box { low, high }, Action::Continuous(a)) => {
                a.len() == low.len() && a.iter().zip(low).zip(high).all(|((a, low), high)| low <= a && a <= high)
            }
            _ => false,
        }
    }
}

impl std::fmt::Display for Space {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Space::Discrete(0) => write!(f, "Discrete(0), that is nothing"),
            Space::Discrete(n) => write!(f, "Discrete({n}), that is 0 to {}", n - 1),
            Space::Box { low, high } => write!(f, "Box({} dimensions, low {low:?}, high {high:?})", low.len()),
            Space::Text { vocabulary, context } => write!(f, "Text(at most {context} tokens, vocabulary {vocabulary})"),
        }
    }
}
