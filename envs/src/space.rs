//! Observation and action spaces.

use crate::Action;

/// A set of observations or of actions.
#[derive(Clone, Debug, PartialEq)]
pub enum Space {
    /// The numbers 0, 1, ..., n - 1.
    Discrete(u32),
    /// Several choices at once: choice i is one of 0, 1, ..., `sizes[i]` - 1. Actions only. An action is still one number, whose digits are
    /// the choices, the last one lowest: of the sizes \[3, 2\], the choices (2, 1) are the action 2 * 2 + 1 (NumPy's
    /// `ravel_multi_index`). [`choices`] returns them.
    MultiDiscrete(Vec<u32>),
    /// A box: one closed interval per dimension, possibly unbounded.
    Box {
        /// Lower bounds.
        low: Vec<f32>,
        /// Upper bounds.
        high: Vec<f32>,
    },
    /// Pictures. Observations only.
    Image(Image),
    /// Texts of at most `context` tokens, each from 0 to `vocabulary` - 1. An observation holds the number of tokens, then the tokens, then
    /// zeros. [`text::tokens`](crate::text::tokens) returns the tokens of an observation.
    Text {
        /// Number of different tokens.
        vocabulary: u32,
        /// Maximum number of tokens in a text.
        context: usize,
    },
}

/// The shape of a picture, or of several that were taken one after another: `frames` x `height` x `width` x `channels` whole numbers from 0
/// to `largest`, in this order. Networks read them divided by `largest`, with frames x channels planes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Image {
    /// Number of pictures; the last one is the newest.
    pub frames: usize,
    /// Rows of pixels.
    pub height: usize,
    /// Pixels of a row.
    pub width: usize,
    /// Numbers of a pixel.
    pub channels: usize,
    /// The largest number: 255, or 1 for planes of things that are there or not.
    pub largest: u8,
}

impl Image {
    /// Numbers in all.
    pub fn len(&self) -> usize {
        self.frames * self.frame_len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Numbers of one frame.
    pub fn frame_len(&self) -> usize {
        self.height * self.width * self.channels
    }

    /// Numbers of a pixel, of all frames.
    pub fn planes(&self) -> usize {
        self.frames * self.channels
    }
}

impl std::fmt::Display for Image {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Image { frames, height, width, channels, largest } = self;
        write!(f, "Image({frames} x {height} x {width} x {channels}, 0 to {largest})")
    }
}

impl Space {
    /// Length of the row of numbers that holds an observation or action: the dimensions of a box, 1 for a discrete space, the numbers of an
    /// image, `context` + 1 for texts.
    pub fn width(&self) -> usize {
        match self {
            Space::Discrete(_) | Space::MultiDiscrete(_) => 1,
            Space::Box { low, .. } => low.len(),
            Space::Image(image) => image.len(),
            Space::Text { context, .. } => context + 1,
        }
    }

    /// Returns how many values each choice has: one choice of a discrete space, several of a multi-discrete one, none of others.
    pub fn sizes(&self) -> &[u32] {
        match self {
            Space::Discrete(n) => std::slice::from_ref(n),
            Space::MultiDiscrete(sizes) => sizes,
            Space::Box { .. } | Space::Image(_) | Space::Text { .. } => &[],
        }
    }

    /// Returns the number of elements, of a discrete or a multi-discrete space.
    pub fn elements(&self) -> Option<u32> {
        let sizes = self.sizes();
        (!sizes.is_empty()).then(|| sizes.iter().product())
    }

    /// Entries of an action mask: one for each value of each choice. A box has none.
    pub fn mask_width(&self) -> usize {
        self.sizes().iter().map(|size| *size as usize).sum()
    }

    /// Whether an action mask leaves at least one value of each choice.
    pub fn is_possible(&self, mask: &[bool]) -> bool {
        let mut rest = mask;
        self.sizes().iter().all(|size| {
            let (own, others) = rest.split_at(*size as usize);
            rest = others;
            own.contains(&true)
        })
    }

    /// Returns an error about `what`, such as `action space`, unless this space is valid: it has an element, and a box has as many lower as
    /// upper bounds, in order.
    pub fn check(&self, what: &str) -> Result<(), String> {
        let unless = |holds, problem: &dyn Fn() -> String| if holds { Ok(()) } else { Err(format!("{what}{}", problem())) };
        match self {
            Space::Discrete(n) => unless(*n > 0, &|| ": expected at least 1 element, got Discrete(0)".into()),
            Space::MultiDiscrete(sizes) => {
                unless(!sizes.is_empty(), &|| ": expected at least 1 choice, got MultiDiscrete([])".into())?;
                unless(!sizes.contains(&0), &|| format!(": expected at least 1 value of each choice, got MultiDiscrete({sizes:?})"))?;
                let fits = sizes.iter().try_fold(1_u32, |product, size| product.checked_mul(*size)).is_some();
                unless(fits, &|| format!(": expected fewer than 2^32 combinations of choices, got MultiDiscrete({sizes:?})"))
            }
            Space::Box { low, high } => {
                unless(!low.is_empty(), &|| ": expected at least 1 dimension, got 0".into())?;
                unless(low.len() == high.len(), &|| format!(": expected {} upper bounds, got {}", low.len(), high.len()))?;
                low.iter().zip(high).enumerate().try_for_each(|(i, (low, high))| {
                    // false if a bound is NaN
                    let ordered = low <= high && *low < f32::INFINITY && *high > f32::NEG_INFINITY;
                    unless(ordered, &|| format!(", dimension {i}: expected low <= high, got low {low:?} and high {high:?}"))
                })
            }
            Space::Image(Image { frames, height, width, channels, largest }) => {
                let sizes = [frames, height, width, channels];
                let numbers = sizes.iter().try_fold(1_usize, |product, size| product.checked_mul(**size)).unwrap_or(usize::MAX);
                let fits = (1..=1 << 24).contains(&numbers) && *largest > 0;
                unless(fits, &|| format!(": expected 1 to 2^24 numbers from 0 to 1 or more, got {self}"))
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
            (Space::MultiDiscrete(sizes), Action::Discrete(a)) => a < sizes.iter().product(),
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
            Space::MultiDiscrete(sizes) => write!(f, "MultiDiscrete({sizes:?})"),
            Space::Box { low, high } => write!(f, "Box({} dimensions, low {low:?}, high {high:?})", low.len()),
            Space::Image(image) => image.fmt(f),
            Space::Text { vocabulary, context } => write!(f, "Text(at most {context} tokens, vocabulary {vocabulary})"),
        }
    }
}

/// Returns the choices that an action of a [multi-discrete](Space::MultiDiscrete) space consists of, in order.
///
/// ```
/// assert_eq!(gradus_envs::choices(&[3, 2], 5).collect::<Vec<_>>(), [2, 1]);
/// ```
pub fn choices(sizes: &[u32], action: u32) -> impl Iterator<Item = u32> + '_ {
    let mut weight: u32 = sizes.iter().product();
    sizes.iter().map(move |size| {
        weight /= size;
        action / weight % size
    })
}
