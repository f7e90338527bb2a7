//! The parts of a network of continuous actions and the positions of their parameters.

use std::ops::Range;

use super::super::layer::padded;
use super::super::perceptron::Perceptron;
use super::super::weights::{Named, Visit};
use crate::{ActionScale, Group, NetworkConfig, QActor, QActorHead};

/// The actor, then the critics.
#[derive(Clone, Debug)]
pub(super) struct QActorLayout {
    /// Reads observations. Its last layer has the means and, for a squashed Gaussian without gSDE, the log standard deviations.
    pub actor: Perceptron,
    /// With gSDE: the log standard deviations of the noise matrix, features x padded actions.
    pub log_stds: Option<Range<usize>>,
    /// Each reads observations and actions.
    pub critics: Vec<Perceptron>,
    pub head: QActorHead,
    pub scale: ActionScale,
}

impl QActorLayout {
    pub fn new(config: &NetworkConfig, head: QActorHead, width: usize, scale: ActionScale) -> Self {
        let d = scale.width();
        let has_log_stds = matches!(head.actor, QActor::Squashed(_)) && !config.gsde;
        let mut actor = Perceptron::new(config.activation, width, 0);
        actor.chain(config, "actor", None, (&config.hidden, false), Some(if has_log_stds { 2 * d } else { d }));
        let features = config.hidden.last().copied().unwrap_or(width);
        let log_stds = config.gsde.then(|| actor.range.end..actor.range.end + features * padded(d));
        let mut begin = log_stds.as_ref().map_or(actor.range.end, |range| range.end);
        let critics = (0..head.critics).map(|k| {
            let mut critic = Perceptron::new(config.activation, width + d, begin);
            critic.chain(config, &format!("critic.{k}"), None, (&config.hidden, false), Some(1));
            begin = critic.range.end;
            critic
        });
        let critics = critics.collect();
        Self { actor, log_stds, critics, head, scale }
    }

    /// Numbers per observation.
    pub fn width(&self) -> usize {
        self.actor.width
    }

    /// Numbers per action.
    pub fn actions(&self) -> usize {
        self.scale.width()
    }

    /// Numbers of the layer that the actor's last layer reads.
    pub fn features(&self) -> usize {
        self.actor.layers.last().map_or(self.width(), |dense| dense.layer.inputs)
    }

    /// The distance between the features of two rows.
    pub fn feature_stride(&self) -> usize {
        self.actor.layers.last().map_or(padded(self.width()), |dense| dense.layer.x_stride)
    }

    /// Number of parameters.
    pub fn parameters(&self) -> usize {
        self.critics.last().unwrap_or(&self.actor).range.end
    }

    /// Range of the parameters of the actor.
    pub fn of_actor(&self) -> Range<usize> {
        0..self.log_stds.as_ref().map_or(self.actor.range.end, |range| range.end)
    }

    /// Range of the parameters of all critics.
    pub fn of_critics(&self) -> Range<usize> {
        self.of_actor().end..self.parameters()
    }

    pub fn groups(&self) -> Vec<Group> {
        vec![Group { name: "actor", range: self.of_actor() }, Group { name: "critic", range: self.of_critics() }]
    }
}

impl Named for QActorLayout {
    fn for_each_tensor(&self, visit: Visit<'_>) {
        self.actor.for_each_tensor(visit);
        if let Some(range) = &self.log_stds {
            let (d, stride) = (self.actions(), padded(self.actions()));
            visit("actor.log_std".into(), &[self.features(), d], &|i| range.start + i / d * stride + i % d);
        }
        self.critics.iter().for_each(|critic| critic.for_each_tensor(visit));
    }
}
