//! Where a rollout's observations and actions live: only policies look into it.

use gradus_envs::Actions;

/// The actions of many decisions.
#[derive(Clone, Debug, PartialEq)]
pub enum ActionRows {
    /// One number per decision.
    Discrete(Vec<u32>),
}

impl ActionRows {
    /// The actions, as environments take them.
    pub fn view(&self) -> Actions<'_> {
        match self {
            ActionRows::Discrete(actions) => Actions::Discrete(actions),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.view().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Observations and actions of a rollout, addressed by index.
///
/// The rows of the decisions come first; behind them stand the observations that end a segment, which nobody acted on.
#[derive(Clone, Debug, PartialEq)]
pub struct Store {
    width: usize,
    observations: Vec<f32>,
    /// The actions, one per decision.
    pub actions: ActionRows,
}

impl Store {
    /// A store of the given decisions.
    ///
    /// # Panics
    /// If the observations are not whole rows of `width` numbers, at least one per action.
    pub fn new(width: usize, observations: Vec<f32>, actions: ActionRows) -> Self {
        assert!(width > 0 && observations.len().is_multiple_of(width), "observations: expected rows of {width} numbers");
        assert!(observations.len() / width >= actions.len(), "observations: expected at least one row per action");
        Self { width, observations, actions }
    }

    /// Numbers per observation.
    pub fn width(&self) -> usize {
        self.width
    }

    /// How many observations there are, those that end segments included.
    pub fn rows(&self) -> usize {
        self.observations.len() / self.width
    }

    /// Observation number `row`.
    #[inline]
    pub fn observation(&self, row: usize) -> &[f32] {
        &self.observations[row * self.width..(row + 1) * self.width]
    }
}
