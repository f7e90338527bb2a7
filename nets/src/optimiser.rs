//! Optimisers and schedules.

use serde::{Deserialize, Serialize};

use gradus_base::math::powi;
use gradus_base::trig::sin_cos;

/// The decay rates of the first and the second moment of Adam and RAdam.
pub(crate) const BETA1: f32 = 0.9;
pub(crate) const BETA2: f32 = 0.999;

/// An update rule, as PyTorch defines it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rule {
    /// Adam (Kingma and Ba, arXiv 1412.6980, algorithm 1), with beta1 = 0.9 and beta2 = 0.999.
    Adam,
    /// RMSprop (Tieleman and Hinton, 2012), not centred, with alpha = 0.99.
    RmsProp,
    /// Rectified Adam (Liu et al., arXiv 1908.03265, algorithm 2), with beta1 = 0.9 and beta2 = 0.999.
    RAdam,
}

/// The form of a step of RAdam, as in PyTorch. The first five steps have the form `Momentum`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Rectified {
    /// The denominator is still too uncertain: the step is learning rate x m / (1 - beta1^t).
    Momentum,
    /// The step is also multiplied by this factor, and divided by sqrt(v) + epsilon.
    Adaptive(f64),
}

impl Rectified {
    /// Returns the form of the step that moved a group's clock to `clock`, the bits of beta2^t.
    #[inline(never)] // it is not part of a kernel
    pub fn of(clock: f64) -> Self {
        const DECAY: f64 = 0.999; // the clock counts with the f32 next to it
        // from t = 745 000 on, the clock and t beta2^t are 0
        let t = if clock > 0.0 { (libm::log(clock) / libm::log(f64::from(BETA2))).round() } else { 0.0 };
        let power = if clock > 0.0 { powi(DECAY, t as u32) } else { 0.0 };
        let last = 2.0 / (1.0 - DECAY) - 1.0;
        let length = last - 2.0 * t * power / (1.0 - power);
        if length <= 5.0 {
            return Self::Momentum;
        }
        let rectification = ((length - 4.0) * (length - 2.0) * last / ((last - 4.0) * (last - 2.0) * length)).sqrt();
        Self::Adaptive(rectification * (1.0 - power).sqrt())
    }
}

/// One step of an optimiser. The engine keeps the moments, and counts the steps of each parameter group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OptimiserStep {
    /// The update rule.
    pub rule: Rule,
    /// Added to the denominator.
    pub epsilon: f32,
    /// The learning rate of the actor and of a shared trunk.
    pub learning_rate: f32,
    /// The learning rate of the critic.
    pub critic_learning_rate: f32,
    /// Decoupled weight decay, as in AdamW (Loshchilov and Hutter, arXiv 1711.05101): each step multiplies every parameter that it updates
    /// by 1 - learning rate x weight decay. 0: no decay.
    pub weight_decay: f32,
    /// Maximum Euclidean norm of the gradient. A longer gradient is scaled down to this norm. Infinity: no clipping.
    pub max_grad_norm: f32,
    /// Whether each parameter group is clipped by its own norm. If not, all are clipped by the norm of the whole gradient.
    pub clip_per_group: bool,
}

/// How a setting changes during training.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Schedule {
    /// It stays constant.
    Constant,
    /// It falls linearly, to zero at the end of training.
    Linear,
    /// It falls along half a cosine, to zero at the end of training.
    Cosine,
}

impl Schedule {
    /// Returns the factor that multiplies the setting when the fraction `progress` of the training is done.
    ///
    /// ```
    /// use gradus_nets::Schedule;
    /// assert_eq!((Schedule::Constant.factor(0.25), Schedule::Linear.factor(0.25)), (1.0, 0.75));
    /// let cosine = [0.0, 1.0 / 3.0, 1.0].map(|progress| Schedule::Cosine.factor(progress));
    /// assert!(cosine.iter().zip([1.0, 0.75, 0.0]).all(|(a, b)| (a - b).abs() < 1e-15));
    /// ```
    pub fn factor(self, progress: f64) -> f64 {
        match self {
            Schedule::Constant => 1.0,
            Schedule::Linear => (1.0 - progress).max(0.0),
            Schedule::Cosine => 0.5 * (1.0 + sin_cos(std::f64::consts::PI * progress.clamp(0.0, 1.0)).1),
        }
    }
}
