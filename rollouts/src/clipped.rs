//! Clips actions to the bounds of an action space.

use gradus_envs::{Actions, Space};
use gradus_nets::ActionRows;

/// Actions for the environments. Continuous actions of a policy are unbounded and are clipped to the action space, as in Stable-Baselines3.
/// Agents learn from the unclipped actions.
pub(crate) struct Clipped {
    space: Space,
    rows: Vec<f32>,
}

impl Clipped {
    pub fn to(space: Space) -> Self {
        Self { space, rows: Vec::new() }
    }

    pub fn clip<'a>(&'a mut self, actions: &'a ActionRows) -> Actions<'a> {
        match actions {
            ActionRows::Continuous { rows, width } => {
                self.rows.clone_from(rows);
                self.space.clip(&mut self.rows);
                Actions::Continuous { rows: &self.rows, width: *width }
            }
            discrete => discrete.view(),
        }
    }
}
