//! The operators of formulas: within a function of one output, with constants, and between terms of a loss.

use std::ops::{Add, Div, Mul, Neg, Sub};

use super::{Entropy, KlOld, KlRef, LogProb, Loss, Of, Output, Q, Value};
use crate::PolicyOutput;

impl<O: Copy> From<f32> for Of<O> {
    /// Returns a constant.
    #[inline(always)]
    fn from(value: f32) -> Self {
        Self::constant(value)
    }
}

impl<O: Copy> Neg for Of<O> {
    type Output = Self;

    #[inline(always)]
    fn neg(self) -> Self {
        Self::new(-self.value, -self.slope)
    }
}

impl<O: Copy> Add for Of<O> {
    type Output = Self;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self::new(self.value + other.value, self.slope + other.slope)
    }
}

impl<O: Copy> Sub for Of<O> {
    type Output = Self;

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self::new(self.value - other.value, self.slope - other.slope)
    }
}

impl<O: Copy> Mul for Of<O> {
    type Output = Self;

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        Self::new(self.value * other.value, self.slope * other.value + self.value * other.slope)
    }
}

impl<O: Copy> Add<f32> for Of<O> {
    type Output = Self;

    #[inline(always)]
    fn add(self, constant: f32) -> Self {
        Self::new(self.value + constant, self.slope)
    }
}

impl<O: Copy> Sub<f32> for Of<O> {
    type Output = Self;

    #[inline(always)]
    fn sub(self, constant: f32) -> Self {
        Self::new(self.value - constant, self.slope)
    }
}

impl<O: Copy> Mul<f32> for Of<O> {
    type Output = Self;

    #[inline(always)]
    fn mul(self, factor: f32) -> Self {
        Self::new(self.value * factor, self.slope * factor)
    }
}

impl<O: Copy> Div<f32> for Of<O> {
    type Output = Self;

    #[inline(always)]
    fn div(self, divisor: f32) -> Self {
        Self::new(self.value / divisor, self.slope / divisor)
    }
}

impl<O: Copy> Div for Of<O> {
    type Output = Self;

    #[inline(always)]
    fn div(self, other: Self) -> Self {
        let value = self.value / other.value;
        Self::new(value, (self.slope - value * other.slope) / other.value)
    }
}

impl<O: Copy> Div<Of<O>> for f32 {
    type Output = Of<O>;

    #[inline(always)]
    fn div(self, other: Of<O>) -> Of<O> {
        Of::constant(self) / other
    }
}

impl<O: Copy> Add<Of<O>> for f32 {
    type Output = Of<O>;

    #[inline(always)]
    fn add(self, other: Of<O>) -> Of<O> {
        other + self
    }
}

impl<O: Copy> Sub<Of<O>> for f32 {
    type Output = Of<O>;

    #[inline(always)]
    fn sub(self, other: Of<O>) -> Of<O> {
        Of::new(self - other.value, -other.slope)
    }
}

impl<O: Copy> Mul<Of<O>> for f32 {
    type Output = Of<O>;

    #[inline(always)]
    fn mul(self, other: Of<O>) -> Of<O> {
        other * self
    }
}

/// One term of a sum.
impl<O: Copy> IntoIterator for Of<O> {
    type Item = Self;
    type IntoIter = std::iter::Once<Self>;

    fn into_iter(self) -> Self::IntoIter {
        std::iter::once(self)
    }
}

impl<O: Output> From<Of<O>> for Loss {
    #[inline(always)]
    fn from(of: Of<O>) -> Self {
        let mut loss = Loss { value: of.value, ..Loss::default() };
        *O::slope(&mut loss) = of.slope;
        loss
    }
}

impl<O: Output> Add<Of<O>> for Loss {
    type Output = Self;

    #[inline(always)]
    fn add(mut self, of: Of<O>) -> Self {
        self.value += of.value;
        *O::slope(&mut self) += of.slope;
        self
    }
}

impl<O: Output> Sub<Of<O>> for Loss {
    type Output = Self;

    #[inline(always)]
    fn sub(mut self, of: Of<O>) -> Self {
        self.value -= of.value;
        *O::slope(&mut self) -= of.slope;
        self
    }
}

impl<O: Output> Add<Loss> for Of<O> {
    type Output = Loss;

    #[inline(always)]
    fn add(self, loss: Loss) -> Loss {
        Loss::from(self) + loss
    }
}

impl Add for Loss {
    type Output = Self;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        let (a, b) = (self.slopes, other.slopes);
        let slopes = PolicyOutput {
            log_prob: a.log_prob + b.log_prob,
            entropy: a.entropy + b.entropy,
            value: a.value + b.value,
            kl_old: a.kl_old + b.kl_old,
            kl_ref: a.kl_ref + b.kl_ref,
        };
        Self { value: self.value + other.value, slopes, q: self.q + other.q }
    }
}

impl<O: Output> Sub<Loss> for Of<O> {
    type Output = Loss;

    #[inline(always)]
    fn sub(self, loss: Loss) -> Loss {
        Loss::from(self) - loss
    }
}

impl Neg for Loss {
    type Output = Self;

    #[inline(always)]
    fn neg(self) -> Self {
        -1.0 * self
    }
}

impl Sub for Loss {
    type Output = Self;

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Mul<f32> for Loss {
    type Output = Self;

    #[inline(always)]
    fn mul(self, factor: f32) -> Self {
        factor * self
    }
}

impl Mul<Loss> for f32 {
    type Output = Loss;

    #[inline(always)]
    fn mul(self, loss: Loss) -> Loss {
        let PolicyOutput { log_prob, entropy, value, kl_old, kl_ref } = loss.slopes;
        let slopes = PolicyOutput {
            log_prob: self * log_prob,
            entropy: self * entropy,
            value: self * value,
            kl_old: self * kl_old,
            kl_ref: self * kl_ref,
        };
        Loss { value: self * loss.value, slopes, q: self * loss.q }
    }
}

/// Sums and differences of functions of two different outputs.
macro_rules! sums {
    ($($a:ident $b:ident),+ $(,)?) => {
        $(sums!(@one $a $b); sums!(@one $b $a);)+
    };
    (@one $a:ident $b:ident) => {
        impl Add<Of<$b>> for Of<$a> {
            type Output = Loss;

            #[inline(always)]
            fn add(self, other: Of<$b>) -> Loss {
                Loss::from(self) + other
            }
        }

        impl Sub<Of<$b>> for Of<$a> {
            type Output = Loss;

            #[inline(always)]
            fn sub(self, other: Of<$b>) -> Loss {
                Loss::from(self) - other
            }
        }
    };
}

sums! {
    LogProb Entropy, LogProb Value, LogProb KlOld, LogProb KlRef, LogProb Q, Entropy Value, Entropy KlOld, Entropy KlRef, Entropy Q,
    Value KlOld, Value KlRef, Value Q, KlOld KlRef, KlOld Q, KlRef Q,
}
