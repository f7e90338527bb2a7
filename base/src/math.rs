//! exp, ln and tanh in f32, with the same bits on every machine.
//!
//! The platform's functions differ between systems and versions. The functions here evaluate polynomials by fused multiply-add, which every
//! processor rounds in the same way. They have no branches, so loops over slices vectorise.

use crate::simd::{Kernel, Level, Simd, dispatch};

/// exp is 0 below this range and infinity above it, because the true value is not a normal f32 there.
const EXP_RANGE: (f32, f32) = (-87.336_54, 88.722_83);

/// As [`exp`], for loops that vectorise, such as those of objectives of policies. For a single number it is slower than
/// `exp` if the program is compiled for processors without fused multiply-add. The coefficients are from Cephes (`expf.c`).
#[inline(always)]
pub fn exp_inline(x: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0; // 1.5 x 2^23: adding it leaves the nearest whole number in the low bits of the sum
    let n = x.mul_add(std::f32::consts::LOG2_E, ROUND);
    let whole = n.to_bits().wrapping_sub(ROUND.to_bits()) as i32;
    let n = n - ROUND;
    let r = n.mul_add(2.121_944_4e-4, n.mul_add(-0.693_359_4, x));
    let p = 1.987_569_2e-4_f32
        .mul_add(r, 1.398_199_9e-3)
        .mul_add(r, 8.333_452e-3)
        .mul_add(r, 4.166_579_6e-2)
        .mul_add(r, 1.666_666_5e-1)
        .mul_add(r, 0.5);
    // the scale 2^n is applied as two factors, because 2^128 is not an f32
    let half = whole >> 1;
    let power = |n: i32| f32::from_bits((n.wrapping_add(127) as u32) << 23);
    let y = (r * r).mul_add(p, r + 1.0) * power(half) * power(whole.wrapping_sub(half));
    let y = if x < EXP_RANGE.0 { 0.0 } else { y };
    let y = if x > EXP_RANGE.1 { f32::INFINITY } else { y };
    if x.is_nan() { x } else { y }
}

/// As [`ln`], for loops that vectorise; coefficients from Cephes (`logf.c`).
#[inline(always)]
pub fn ln_inline(x: f32) -> f32 {
    let tiny = x < f32::MIN_POSITIVE;
    let scaled = if tiny { x * 8_388_608.0 } else { x };
    let bits = scaled.to_bits();
    // the mantissa in [sqrt 1/2, sqrt 2) and the matching exponent
    let shifted = bits.wrapping_sub(0x3F35_04F3);
    let e = (shifted as i32 >> 23) as f32 - if tiny { 23.0 } else { 0.0 };
    let m = f32::from_bits((shifted & 0x007F_FFFF) + 0x3F35_04F3) - 1.0;
    let p = 7.037_683_6e-2_f32
        .mul_add(m, -1.151_461e-1)
        .mul_add(m, 1.167_699_9e-1)
        .mul_add(m, -1.242_014_1e-1)
        .mul_add(m, 1.424_932_3e-1)
        .mul_add(m, -1.666_805_8e-1)
        .mul_add(m, 2.000_071_5e-1)
        .mul_add(m, -2.499_999_4e-1)
        .mul_add(m, 0.333_333_3);
    let m2 = m * m;
    let y = e.mul_add(-2.121_944_4e-4, m2.mul_add(-0.5, m * m2 * p));
    let y = e.mul_add(0.693_359_4, m + y);
    let y = if x == 0.0 { f32::NEG_INFINITY } else { y };
    let y = if x == f32::INFINITY { x } else { y };
    if x.is_nan() || x < 0.0 { f32::NAN } else { y }
}

/// As [`tanh`], for loops that vectorise: a rational function of degree 9 over 8. Its coefficients minimise the largest relative error (2e-8) and were then
/// rounded to f32 and varied in the last places, so that the error of the f32 operations is small.
#[inline(always)]
pub fn tanh_inline(x: f32) -> f32 {
    const LIMIT: f32 = 9.0; // tanh 9 is 1, but for half a unit in the last place
    let z = if x > LIMIT { LIMIT } else { x };
    let z = if z < -LIMIT { -LIMIT } else { z };
    let z2 = z * z;
    let p = 0.017_181_223_f32.mul_add(z2, 26.489_069).mul_add(z2, 4_489.453).mul_add(z2, 171_784.06).mul_add(z2, 1_283_633.4);
    let q = (z2 + 422.126_98).mul_add(z2, 33_225.918).mul_add(z2, 599_661.44).mul_add(z2, 1_283_633.4);
    let y = z * (p / q); // P and Q have the same constant term, so y = x for small x
    // rounding may lead beyond 1
    let y = if y > 1.0 { 1.0 } else { y };
    if y < -1.0 { -1.0 } else { y }
}

struct Exp(f32);

impl Kernel for Exp {
    type Output = f32;
    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> f32 {
        exp_inline(self.0)
    }
}

struct Ln(f32);

impl Kernel for Ln {
    type Output = f32;
    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> f32 {
        ln_inline(self.0)
    }
}

struct Tanh(f32);

impl Kernel for Tanh {
    type Output = f32;
    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> f32 {
        tanh_inline(self.0)
    }
}

/// e^x, within 2 units in the last place; 0 below -87.34 and infinity above 88.72.
///
/// ```
/// assert_eq!(gradus_base::math::exp(0.0), 1.0);
/// assert!((gradus_base::math::exp(0.3) - 1.349_858_8).abs() < 2e-7);
/// ```
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    dispatch(Level::best(), Exp(x))
}

/// The natural logarithm, within 2 units in the last place; NaN below 0.
#[inline(always)]
pub fn ln(x: f32) -> f32 {
    dispatch(Level::best(), Ln(x))
}

/// x^y of f64 numbers, computed in software: the same on every platform, which the standard library's `powf` is not.
///
/// ```
/// assert_eq!(gradus_base::math::pow(2.0, 0.5), std::f64::consts::SQRT_2);
/// ```
pub fn pow(x: f64, y: f64) -> f64 {
    libm::pow(x, y)
}

/// The natural logarithm of an f64, computed in software: the same on every platform.
pub fn ln_f64(x: f64) -> f64 {
    libm::log(x)
}

/// e^x of an f64, computed in software: the same on every platform.
pub fn exp_f64(x: f64) -> f64 {
    libm::exp(x)
}

/// x^n by repeated squaring, with the same roundings on every platform, which the standard library's `powi` does not promise.
///
/// ```
/// assert_eq!([0, 1, 5].map(|n| gradus_base::math::powi(-3.0, n)), [1.0, -3.0, -243.0]);
/// ```
pub fn powi(mut x: f64, mut n: u32) -> f64 {
    let mut result = 1.0;
    loop {
        if n % 2 == 1 {
            result *= x;
        }
        n /= 2;
        if n == 0 {
            return result;
        }
        x *= x;
    }
}

/// tanh x, within 6 units in the last place.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    dispatch(Level::best(), Tanh(x))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Distance from the true value in units in the last place of f32.
    fn ulps(got: f32, truth: f64) -> f64 {
        let rounded = truth as f32;
        let unit = f64::from(f32::from_bits(rounded.abs().to_bits() + 1)) - f64::from(rounded.abs());
        (f64::from(got) - truth).abs() / unit
    }

    /// Finds the largest error over every 9973rd f32 within the bounds, of either sign; this covers all exponents.
    fn worst(f: fn(f32) -> f32, truth: fn(f64) -> f64, low: f32, high: f32) -> (f64, f32) {
        let mut worst = (0.0, 0.0);
        for bits in (0..=0x7F7F_FFFF_u32).step_by(9_973) {
            for x in [f32::from_bits(bits), -f32::from_bits(bits)] {
                if (low..=high).contains(&x) {
                    let error = ulps(f(x), truth(f64::from(x)));
                    if error > worst.0 {
                        worst = (error, x);
                    }
                }
            }
        }
        worst
    }

    #[test]
    #[allow(clippy::print_stdout)] // shown with `--nocapture`
    fn errors_stay_within_the_stated_bounds() {
        let exp = worst(super::exp, f64::exp, -87.3, 88.7);
        let ln = worst(super::ln, f64::ln, f32::MIN_POSITIVE, f32::MAX);
        let tanh = worst(super::tanh, f64::tanh, -20.0, 20.0);
        println!("worst errors (ulp, at): exp {exp:?}, ln {ln:?}, tanh {tanh:?}");
        assert!(exp.0 <= 2.0 && ln.0 <= 2.0 && tanh.0 <= 6.0, "exp {exp:?}, ln {ln:?}, tanh {tanh:?}");
    }

    #[test]
    fn tanh_is_odd_stays_within_1_and_keeps_small_numbers() {
        for bits in (0..=0x7F7F_FFFF_u32).step_by(997) {
            let x = f32::from_bits(bits);
            let y = tanh(x);
            assert!((0.0..=1.0).contains(&y) && tanh(-x).to_bits() == (-y).to_bits(), "tanh({x}) = {y}, tanh({}) = {}", -x, tanh(-x));
            assert!(y == x || x > 1e-4, "tanh({x}) = {y}");
            assert!(y == 1.0 || x < 9.0, "tanh({x}) = {y}");
        }
    }

    #[test]
    fn special_values() {
        assert_eq!((exp(-1e9), exp(f32::NEG_INFINITY)), (0.0, 0.0));
        assert_eq!((exp(89.0), exp(f32::INFINITY)), (f32::INFINITY, f32::INFINITY));
        assert!(exp(88.72) < f32::INFINITY && exp(-87.3) > 0.0);
        assert_eq!((ln(1.0), ln(0.0), ln(f32::INFINITY)), (0.0, f32::NEG_INFINITY, f32::INFINITY));
        assert!((ln(1e-40) - (1e-40_f32 as f64).ln() as f32).abs() < 1e-4);
        assert_eq!((tanh(0.0), tanh(100.0), tanh(f32::NEG_INFINITY)), (0.0, 1.0, -1.0));
        assert!(exp(f32::NAN).is_nan() && ln(f32::NAN).is_nan() && ln(-1.0).is_nan() && tanh(f32::NAN).is_nan());
    }
}
