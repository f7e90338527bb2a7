//! The optimiser: adds up the lanes' gradients and applies the update rules.

use super::aligned::Aligned;
use crate::Rule;
use crate::optimiser::{BETA1, BETA2, Rectified};
use gradus_base::simd::sum16;
use gradus_base::simd::{Kernel, Level, Simd, dispatch};
use gradus_base::threads;

/// RMSprop's decay rate of the second moment.
const ALPHA: f32 = 0.99;
/// Number of a target network's parameters that are moved in one piece of work.
const TRACKED: usize = 16_384;

/// The state of the optimiser.
#[derive(Clone)]
pub(super) struct Moments {
    pub first: Aligned,
    pub second: Aligned,
    /// The clock of each group, in the order of the groups: beta1^t and beta2^t after t steps.
    pub clocks: Vec<[f64; 2]>,
}

/// Computes the sum of squares of some numbers.
pub(super) struct Squares<'a>(pub &'a [f32]);

impl Kernel for Squares<'_> {
    type Output = f32;

    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> f32 {
        squares(self.0)
    }
}

/// Adds up a chunk of the lanes' gradients. Returns the sum of squares of the result.
pub(super) struct Reduce<'a> {
    pub lanes: &'a [&'a [f32]],
    pub first: usize,
    pub gradient: &'a mut [f32],
}

impl Kernel for Reduce<'_> {
    type Output = f32;

    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> f32 {
        let n = self.gradient.len();
        let Some((first, others)) = self.lanes.split_first() else {
            self.gradient.fill(0.0);
            return 0.0;
        };
        self.gradient.copy_from_slice(&first[self.first..self.first + n]);
        for lane in others {
            self.gradient.iter_mut().zip(&lane[self.first..self.first + n]).for_each(|(sum, part)| *sum += part);
        }
        squares(self.gradient)
    }
}

/// Returns the sum of squares of all whole groups of sixteen numbers. A shorter last group is ignored.
#[inline(always)]
pub(super) fn squares(numbers: &[f32]) -> f32 {
    let mut squares = [0.0_f32; 16];
    for group in numbers.as_chunks::<16>().0 {
        for j in 0..16 {
            squares[j] = group[j].mul_add(group[j], squares[j]);
        }
    }
    sum16(squares)
}

/// Returns x, or 0 if x is subnormal, that is closer to 0 than 1.2e-38. The moments of a dead unit's weights decay to such numbers, and a
/// vector that has one of them is divided at half the speed on some processors. No parameter above 1e-20 changes by a bit.
#[inline(always)]
fn normal(x: f32) -> f32 {
    if x.abs() < f32::MIN_POSITIVE { 0.0 } else { x }
}

/// Updates some parameters of a group element by element.
pub(super) struct Update<'a> {
    pub rule: Rule,
    pub learning_rate: f32,
    pub epsilon: f32,
    pub weight_decay: f32,
    pub scale: f32,
    pub powers: [f64; 2],
    pub parameters: &'a mut [f32],
    pub gradient: &'a [f32],
    pub first: &'a mut [f32],
    pub second: &'a mut [f32],
}

impl Kernel for Update<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self { rule, learning_rate, epsilon, weight_decay, scale, powers, parameters, gradient, first, second } = self;
        if weight_decay > 0.0 {
            let left = 1.0 - learning_rate * weight_decay;
            parameters.iter_mut().for_each(|p| *p *= left);
        }
        let moments = first.iter_mut().zip(second);
        let elements = parameters.iter_mut().zip(gradient).zip(moments);
        match rule {
            Rule::Adam | Rule::RAdam => {
                let step = f64::from(learning_rate) / (1.0 - powers[0]);
                let (step, correction, epsilon) = match (rule == Rule::RAdam).then(|| Rectified::of(powers[1])) {
                    None => (step as f32, (1.0 / (1.0 - powers[1]).sqrt()) as f32, epsilon),
                    Some(Rectified::Momentum) => (step as f32, 0.0, 1.0), // divided by 1
                    Some(Rectified::Adaptive(factor)) => ((step * factor) as f32, 1.0, epsilon),
                };
                for ((p, g), (m, v)) in elements {
                    let g = g * scale;
                    // numbers of their own: the compiler does not know that the slices lie apart, and would read them again
                    let first = normal(BETA1 * *m + (1.0 - BETA1) * g);
                    let second = normal(BETA2 * *v + (1.0 - BETA2) * (g * g));
                    (*m, *v) = (first, second);
                    *p -= step * first / (second.sqrt() * correction + epsilon);
                }
            }
            Rule::RmsProp => {
                for ((p, g), (_, v)) in elements {
                    let g = g * scale;
                    let second = ALPHA * *v + (1.0 - ALPHA) * (g * g);
                    *v = second;
                    *p -= learning_rate * g / (second.sqrt() + epsilon);
                }
            }
        }
    }
}

/// Moves a target network's parameters: p' <- tau p + (1 - tau) p'.
pub(super) fn track(level: Level, target: &mut [f32], online: &[f32], tau: f32) {
    assert_eq!(target.len(), online.len(), "target network: expected {} parameters, got {}", target.len(), online.len());
    let mut chunks: Vec<_> = target.chunks_mut(TRACKED).zip(online.chunks(TRACKED)).collect();
    threads::for_each(&mut chunks, |_, (target, online)| dispatch(level, Track { target, online, tau }));
}

/// Moves some of a target network's parameters.
struct Track<'a> {
    target: &'a mut [f32],
    online: &'a [f32],
    tau: f32,
}

impl Kernel for Track<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self { target, online, tau } = self;
        if tau == 1.0 {
            target.copy_from_slice(online);
            return;
        }
        // as PyTorch computes it: first (1 - tau) p', then + tau p
        let keep = 1.0 - tau;
        target.iter_mut().zip(online).for_each(|(target, online)| *target = tau.mul_add(*online, keep * *target));
    }
}
