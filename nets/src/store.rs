//! Where a rollout's observations and actions live: only policies look into it.

use gradus_envs::{Actions, Space};

/// The actions of many decisions.
#[derive(Clone, Debug, PartialEq)]
pub enum ActionRows {
    /// One number per decision.
    Discrete(Vec<u32>),
    /// One row of `width` numbers per decision, as the policy drew them: not clipped to any bounds.
    Continuous {
        /// The rows, concatenated.
        rows: Vec<f32>,
        /// Numbers per row.
        width: usize,
    },
}

impl ActionRows {
    /// No actions of this space.
    pub fn empty(space: &Space) -> Self {
        match space {
            Space::Discrete(_) => ActionRows::Discrete(Vec::new()),
            Space::Box { low, .. } => ActionRows::Continuous { rows: Vec::new(), width: low.len() },
        }
    }

    /// The actions, as environments take them.
    pub fn view(&self) -> Actions<'_> {
        match self {
            ActionRows::Discrete(actions) => Actions::Discrete(actions),
            ActionRows::Continuous { rows, width } => Actions::Continuous { rows, width: *width },
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

    /// Makes room for `n` actions; new ones are 0.
    pub fn resize(&mut self, n: usize) {
        match self {
            ActionRows::Discrete(actions) => actions.resize(n, 0),
            ActionRows::Continuous { rows, width } => rows.resize(n * *width, 0.0),
        }
    }

    /// Makes action number `row` equal to number `from_row` of `from`.
    ///
    /// # Panics
    /// If the two are not of one kind and width.
    pub fn set(&mut self, row: usize, from: &ActionRows, from_row: usize) {
        match (self, from) {
            (ActionRows::Discrete(to), ActionRows::Discrete(from)) => to[row] = from[from_row],
            (ActionRows::Continuous { rows: to, width }, ActionRows::Continuous { rows: from, width: same }) if *width == *same => {
                to[row * *width..(row + 1) * *width].copy_from_slice(&from[from_row * *width..(from_row + 1) * *width]);
            }
            (to, from) => panic!("actions: expected {}, got {}", to.kind(), from.kind()),
        }
    }

    /// Puts action number `row` of `from` behind these.
    ///
    /// # Panics
    /// If the two are not of one kind and width.
    #[inline]
    pub fn push(&mut self, from: &ActionRows, row: usize) {
        match (self, from) {
            (ActionRows::Discrete(to), ActionRows::Discrete(from)) => to.push(from[row]),
            (ActionRows::Continuous { rows: to, width }, ActionRows::Continuous { rows: from, width: same }) if *width == *same => {
                to.extend_from_slice(&from[row * *width..(row + 1) * *width]);
            }
            (to, from) => panic!("actions: expected {}, got {}", to.kind(), from.kind()),
        }
    }

    /// Puts the actions of `other` behind these.
    ///
    /// # Panics
    /// If the two are not of one kind and width.
    pub fn extend(&mut self, other: &ActionRows) {
        match (self, other) {
            (ActionRows::Discrete(to), ActionRows::Discrete(from)) => to.extend_from_slice(from),
            (ActionRows::Continuous { rows: to, width }, ActionRows::Continuous { rows: from, width: same }) if *width == *same => {
                to.extend_from_slice(from);
            }
            (to, from) => panic!("actions: expected {}, got {}", to.kind(), from.kind()),
        }
    }

    /// What kind of actions these are, for an error.
    pub(crate) fn kind(&self) -> String {
        match self {
            ActionRows::Discrete(_) => "discrete actions".into(),
            ActionRows::Continuous { width, .. } => format!("rows of {width} numbers"),
        }
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
    /// Which actions each decision could choose from, one row of the number of actions per decision, where some are ruled out.
    pub masks: Option<Vec<bool>>,
}

impl Store {
    /// A store of the given decisions, in which every action could be chosen.
    ///
    /// # Panics
    /// If the observations are not whole rows of `width` numbers, at least one per action.
    pub fn new(width: usize, observations: Vec<f32>, actions: ActionRows) -> Self {
        assert!(width > 0 && observations.len().is_multiple_of(width), "observations: expected rows of {width} numbers");
        assert!(observations.len() / width >= actions.len(), "observations: expected at least one row per action");
        Self { width, observations, actions, masks: None }
    }

    /// The same, where each decision could choose only from the actions that are true in its row of `masks`.
    ///
    /// # Panics
    /// If there are not equally many places for every decision, or if the actions are continuous.
    pub fn with_masks(self, masks: Vec<bool>) -> Self {
        assert!(matches!(self.actions, ActionRows::Discrete(_)), "masks: expected discrete actions, got {}", self.actions.kind());
        let n = self.actions.len();
        assert!(masks.len().is_multiple_of(n.max(1)), "masks: expected equally many places for each of {n} decisions, got {}", masks.len());
        Self { masks: Some(masks), ..self }
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
