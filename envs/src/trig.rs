//! Sine and cosine in f64, the same bits on every machine.
//!
//! Plain polynomials are not good enough here: CartPole replayed with fixed actions multiplies one unit in the last place by
//! 4e16 in 500 steps. These are compensated, so that nearly every result is the correctly rounded one. The coefficients are those
//! of Sun's fdlibm (`k_sin.c`, `k_cos.c`), good on |x| <= pi/4; larger arguments are reduced first.

const S: [f64; 6] = [
    -1.666_666_666_666_663_2e-1,
    8.333_333_333_322_49e-3,
    -1.984_126_982_985_795e-4,
    2.755_731_370_707_006_8e-6,
    -2.505_076_025_340_686_3e-8,
    1.589_690_995_211_55e-10,
];
const C: [f64; 6] = [
    4.166_666_666_666_66e-2,
    -1.388_888_888_887_411e-3,
    2.480_158_728_947_673e-5,
    -2.755_731_435_139_066_3e-7,
    2.087_572_321_298_175e-9,
    -1.135_964_755_778_819_5e-11,
];

/// (sin x, cos x) for |x| <= pi/4; the caller answers for the range.
#[inline(always)]
pub fn sin_cos_near_zero(x: f64) -> (f64, f64) {
    let x2 = x * x;
    let p = S[5].mul_add(x2, S[4]).mul_add(x2, S[3]).mul_add(x2, S[2]).mul_add(x2, S[1]).mul_add(x2, S[0]);
    let sin = (x * x2).mul_add(p, x);

    let p = C[5].mul_add(x2, C[4]).mul_add(x2, C[3]).mul_add(x2, C[2]).mul_add(x2, C[1]).mul_add(x2, C[0]);
    let half = 0.5 * x2;
    let w = 1.0 - half;
    let lost = x.mul_add(x, -x2); // what the rounding of x * x lost
    let cos = w + (((1.0 - w) - half) + (x2 * x2 * p - 0.5 * lost));
    (sin, cos)
}

/// (sin x, cos x) for |x| up to about a million, and NaN for what is not finite.
pub fn sin_cos(x: f64) -> (f64, f64) {
    if x.abs() <= std::f64::consts::FRAC_PI_4 {
        return sin_cos_near_zero(x);
    }
    // pi/2 in three parts (fdlibm's `e_rem_pio2.c`); the first two have 33 bits, so that n times each is exact
    const PI_2: [f64; 3] = [1.570_796_326_734_125_6, 6.077_100_506_303_966e-11, 2.022_266_248_795_950_6e-21];
    let n = (x * std::f64::consts::FRAC_2_PI).round_ties_even();
    let a = n.mul_add(-PI_2[0], x);
    let r = n.mul_add(-PI_2[2], n.mul_add(-PI_2[1], a));
    let (sin, cos) = sin_cos_near_zero(r);
    match (n as i64).rem_euclid(4) {
        0 => (sin, cos),
        1 => (cos, -sin),
        2 => (-sin, -cos),
        _ => (-cos, sin),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ulps(a: f64, b: f64) -> u64 {
        (a.to_bits() as i64).abs_diff(b.to_bits() as i64)
    }

    /// The platform's own sine and cosine are within one unit of the truth, so ours must be within two of theirs, and mostly equal.
    #[test]
    fn agrees_with_the_platform() {
        let (mut equal, n) = (0, 200_001);
        for i in 0..n {
            let x = (f64::from(i) / f64::from(n - 1) - 0.5) * 1.5;
            let (sin, cos) = sin_cos(x);
            assert!(ulps(sin, x.sin()) <= 1 && ulps(cos, x.cos()) <= 1, "x = {x}");
            equal += u32::from(sin == x.sin() && cos == x.cos());
        }
        assert!(f64::from(equal) > 0.9 * f64::from(n), "only {equal} of {n} equal");
    }

    #[test]
    fn large_arguments_are_reduced() {
        for i in -100_000..100_000 {
            let x = f64::from(i) * 0.0137;
            let (sin, cos) = sin_cos(x);
            assert!((sin - x.sin()).abs() < 4e-16 && (cos - x.cos()).abs() < 4e-16, "x = {x}");
        }
        assert!(sin_cos(f64::NAN).0.is_nan() && sin_cos(f64::INFINITY).1.is_nan());
    }
}
