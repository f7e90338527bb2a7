//! How parameters follow gradients.

use serde::{Deserialize, Serialize};

/// An update rule, as PyTorch defines it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rule {
    /// Adam (Kingma and Ba, arXiv 1412.6980, algorithm 1), with beta1 = 0.9 and beta2 = 0.999.
    Adam,
    /// RMSprop (Tieleman and Hinton, 2012), not centred, with alpha = 0.99.
    RmsProp,
}

/// One step of an optimiser; the engine keeps the moments, and a clock for each parameter group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OptimiserStep {
    /// The rule.
    pub rule: Rule,
    /// Added to the denominator.
    pub epsilon: f32,
    /// The learning rate of the actor and of a shared trunk.
    pub learning_rate: f32,
    /// The learning rate of the critic.
    pub critic_learning_rate: f32,
    /// How fast parameters decay beside their gradient, as in AdamW (Loshchilov and Hutter, arXiv 1711.05101): each step takes the learning
    /// rate times this away of every one; 0: they do not.
    pub weight_decay: f32,
    /// The gradient is scaled down to this Euclidean norm when it is longer; infinity never does.
    pub max_grad_norm: f32,
    /// Whether each parameter group has a norm of its own to clip; if not, all of them share one.
    pub clip_per_group: bool,
}

/// How a setting moves as training goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Schedule {
    /// It stays.
    Constant,
    /// It falls linearly, to zero at the end of training.
    Linear,
}

impl Schedule {
    /// The factor on the setting when the fraction `progress` of the training is done.
    ///
    /// ```
    /// use gradus_nets::Schedule;
    /// assert_eq!((Schedule::Constant.factor(0.25), Schedule::Linear.factor(0.25)), (1.0, 0.75));
    /// ```
    pub fn factor(self, progress: f64) -> f64 {
        match self {
            Schedule::Constant => 1.0,
            Schedule::Linear => (1.0 - progress).max(0.0),
        }
    }
}
