//! Sine and cosine in f64, with the same bits on every machine.
//!
//! Plain polynomials are not accurate enough here: in CartPole replayed with fixed actions, an error of one unit in the last place
//! grows by a factor of 4e16 in 500 steps. These functions compensate rounding errors, so nearly every result is correctly rounded.
//!
//! [`sin_cos_near_zero`] is the faster function. One or two of its results in a hundred are not correctly rounded. [`sin_cos`] takes
//! angles up to [`LARGEST`]. About one of its results in two thousand is not correctly rounded. Acrobot needs this accuracy because it
//! computes 16 sines and cosines in a Runge-Kutta step. Pendulum needs it because an upright pendulum is as unstable as CartPole's pole.

/// Coefficients of Sun's fdlibm (`k_sin.c`, `k_cos.c`), for |x| <= pi/4.
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

/// Computes (sin x, cos x) for |x| <= pi/4. The range is not checked.
#[inline(always)]
pub fn sin_cos_near_zero(x: f64) -> (f64, f64) {
    let x2 = x * x;
    let p = S[5].mul_add(x2, S[4]).mul_add(x2, S[3]).mul_add(x2, S[2]).mul_add(x2, S[1]).mul_add(x2, S[0]);
    let sin = (x * x2).mul_add(p, x);

    let p = C[5].mul_add(x2, C[4]).mul_add(x2, C[3]).mul_add(x2, C[2]).mul_add(x2, C[1]).mul_add(x2, C[0]);
    let half = 0.5 * x2;
    let w = 1.0 - half;
    let lost = x.mul_add(x, -x2); // the rounding error of x * x
    let cos = w + (((1.0 - w) - half) + (x2 * x2 * p - 0.5 * lost));
    (sin, cos)
}

/// Coefficients 1/n! with alternating signs: [`SINE`] for the terms of the Taylor series from x^5/5! on, [`COSINE`] for those from x^6/6!
/// on. The omitted terms are below 2^-62.
const SINE: [f64; 7] = series(5);
const COSINE: [f64; 7] = series(6);

/// Returns 1/n!, -1/(n + 2)!, ...
const fn series(n: u64) -> [f64; 7] {
    let (mut terms, mut factorial, mut k) = ([0.0; 7], 1, 1);
    while k < n + 14 {
        factorial *= k; // the largest one used is 18!, which has 53 bits
        if k >= n && (k - n).is_multiple_of(2) {
            let i = ((k - n) / 2) as usize;
            terms[i] = if i.is_multiple_of(2) { 1.0 } else { -1.0 } / factorial as f64;
        }
        k += 1;
    }
    terms
}

#[inline(always)]
fn polynomial(c: &[f64; 7], x: f64) -> f64 {
    c[6].mul_add(x, c[5]).mul_add(x, c[4]).mul_add(x, c[3]).mul_add(x, c[2]).mul_add(x, c[1]).mul_add(x, c[0])
}

/// A number with twice the precision of f64: the rounded number and its rounding error.
type Double = (f64, f64);

/// Computes a x b, without the product of the two rounding errors.
#[inline(always)]
fn product(a: Double, b: Double) -> Double {
    let high = a.0 * b.0;
    (high, a.0.mul_add(b.0, -high) + (a.1 * b.0 + a.0 * b.1))
}

/// Computes a + b for |a| > |b|.
#[inline(always)]
fn sum(a: f64, b: f64) -> Double {
    let high = a + b;
    (high, (a - high) + b)
}

/// Computes (sin, cos) of x + tail, for |x| <= pi/4 and a tail below one unit in the last place of x.
#[inline(always)]
fn precise((x, tail): Double) -> (f64, f64) {
    const MINUS_SIXTH: Double = (-1.0 / 6.0, -9.251_858_538_542_97e-18);
    const TWENTY_FOURTH: Double = (1.0 / 24.0, 2.312_964_634_635_742_7e-18);
    let x2 = product((x, 0.0), (x, 0.0));
    let (half, half_lost) = (0.5 * x2.0, 0.5 * x2.1);

    // x - x^3/6 + ..., and the tail times the derivative
    let cubic = product(product((x, 0.0), x2), MINUS_SIXTH);
    let rest = x * x2.0 * x2.0 * polynomial(&SINE, x2.0);
    let near_cos = 1.0 - half + x2.0 * x2.0 * (1.0 / 24.0);
    let (high, low) = sum(x, cubic.0);
    let sin = high + (low + (cubic.1 + rest + tail * near_cos));

    // 1 - x^2/2 + x^4/24 - ...
    let quartic = product(product(x2, x2), TWENTY_FOURTH);
    let rest = x2.0 * x2.0 * x2.0 * polynomial(&COSINE, x2.0);
    let (w, w_lost) = sum(1.0, -half);
    let (high, low) = sum(w, quartic.0);
    let cos = high + (low + (w_lost - half_lost + quartic.1 - rest - tail * sin));
    (sin, cos)
}

/// The largest argument of [`sin_cos`].
pub const LARGEST: f64 = 1e6;

/// Computes (sin x, cos x) for |x| up to [`LARGEST`]. Beyond it, the error grows with |x|. NaN and infinities give NaN.
pub fn sin_cos(x: f64) -> (f64, f64) {
    sin_cos_inline(x)
}

/// As [`sin_cos`], for vectorised loops: it has no branch.
#[inline(always)]
pub fn sin_cos_inline(x: f64) -> (f64, f64) {
    // pi/2 in three parts (fdlibm's `e_rem_pio2.c`); the first two have 33 bits, so n times each is exact
    const PI_2: [f64; 3] = [1.570_796_326_734_125_6, 6.077_100_506_303_966e-11, 2.022_266_248_795_950_6e-21];
    let (n, quarter) = nearest(x * std::f64::consts::FRAC_2_PI);
    let a = n.mul_add(-PI_2[0], x); // exact
    let b = n * PI_2[1];
    let r = a - b;
    let undone = r - a;
    let lost = (a - (r - undone)) - (b + undone); // the rounding error of a - b (Knuth's two-sum)
    let reduced = sum(r, n.mul_add(-PI_2[2], lost)); // if n is 0, this is x with a tail of 0
    let (sin, cos) = precise(reduced);
    // the result for each quarter turn: (sin, cos), (cos, -sin), (-sin, -cos), (-cos, sin)
    let (a, b) = if quarter & 1 == 0 { (sin, cos) } else { (cos, sin) };
    let signed = |number: f64, negative: u64| f64::from_bits(number.to_bits() ^ (negative & 1) << 63);
    (signed(a, quarter >> 1), signed(b, quarter >> 1 ^ quarter))
}

/// Rounds `x` to the nearest integer, ties to even. Also returns the integer's low bits in two's complement. |x| must be below 2^51.
#[inline(always)]
pub fn nearest(x: f64) -> (f64, u64) {
    const ROUND: f64 = 6_755_399_441_055_744.0; // 1.5 x 2^52: adding it leaves the integer in the low bits
    let shifted = x + ROUND;
    (shifted - ROUND, shifted.to_bits())
}

#[cfg(test)]
mod tests {
    use std::f64::consts::{FRAC_PI_2, PI};

    use super::*;

    fn ulps(a: f64, b: f64) -> u64 {
        (a.to_bits() as i64).abs_diff(b.to_bits() as i64)
    }

    /// The results are within one unit in the last place of the platform's results, and more than 90 % of them are equal.
    #[test]
    fn sin_cos_near_zero_agrees_with_the_platform() {
        let (mut equal, n) = (0, 200_001);
        for i in 0..n {
            let x = (f64::from(i) / f64::from(n - 1) - 0.5) * 1.5;
            let (sin, cos) = sin_cos_near_zero(x);
            assert!(ulps(sin, x.sin()) <= 1 && ulps(cos, x.cos()) <= 1, "x = {x}");
            equal += u32::from(sin == x.sin() && cos == x.cos());
        }
        assert!(f64::from(equal) > 0.9 * f64::from(n), "only {equal} of {n} equal");
    }

    /// Tests the whole range and multiples of pi/2. At these multiples, the sine or cosine is near zero, and only the tail makes it
    /// accurate.
    #[test]
    fn sin_cos_agrees_with_the_platform() {
        for (limit, n) in [(0.75, 100_000), (4.0, 100_000), (100.0, 100_000), (LARGEST, 100_000)] {
            let mut equal = 0;
            for i in -n..n {
                let x = f64::from(i) / f64::from(n) * limit;
                let (sin, cos) = sin_cos(x);
                assert!(ulps(sin, x.sin()) <= 1 && ulps(cos, x.cos()) <= 1, "x = {x}: {sin}, {cos}");
                equal += u32::from(sin == x.sin() && cos == x.cos());
            }
            assert!(f64::from(equal) > 0.9 * f64::from(2 * n), "up to {limit}: only {equal} of {} equal", 2 * n);
        }
        for quarter in 1..600_000 {
            let x = f64::from(quarter) * FRAC_PI_2;
            let (sin, cos) = sin_cos(x);
            assert!(ulps(sin, x.sin()) <= 1 && ulps(cos, x.cos()) <= 1, "x = {x}: {sin}, {cos}");
        }
    }

    /// The table holds (x, sin x, cos x), correctly rounded, computed with 300 bits. All rows but the multiples of pi/2 are hard cases:
    /// the exact sine or cosine lies within 0.03 units in the last place of the point where the rounding changes.
    #[test]
    fn hard_cases_are_rounded_correctly() {
        let table = [
            (-0.19187089412287317, -0.19069578933074022, 0.9816491816996161),
            (-0.32664966133323126, -0.3208716534281439, 0.9471226858365759),
            (-0.2326086405913459, -0.23051669064116803, 0.9730683713572464),
            (-0.15658817410848502, -0.15594903826737702, 0.9877651023717533),
            (0.24190304310936483, 0.2395506929227101, 0.970883857894573),
            (-0.5550402841012909, -0.526977537251151, 0.8498792121429444),
            (-0.08757107931993502, -0.08745919626094763, 0.9961681027765289),
            (-0.4335602309370709, -0.42010428160864755, 0.9074758358072583),
            (0.22353633030216769, 0.2216793470614701, 0.9751196168093432),
            (0.36558672007283544, 0.35749730216846465, 0.9339141710790503),
            (2.1086199608157967, 0.8588255972640396, -0.5122680875128428),
            (0.22935180763517016, 0.22734635256349175, 0.9738139637405476),
            (-1.5985667985273275, -0.9996144252304109, -0.027766902442929772),
            (-1.9200342780367032, -0.939633744914993, -0.3421818601519168),
            (2.3665841161016976, 0.6997221746821762, -0.7144150602122312),
            (-1.1317477008707093, -0.9051564814727145, 0.42507851515683015),
            (-28.312035348256643, 0.037692535102600046, -0.9992893839111567),
            (-43.52151835753006, 0.44464581143182197, 0.8957064822675656),
            (55.481854515087775, -0.8756660166032983, 0.4829172054981186),
            (-23.195087594947168, 0.9334591859598638, -0.3586836323937134),
            (-155794.37268734758, -0.3415793649388116, -0.939852933946582),
            (9803.633822172764, 0.9571078634902861, -0.2897318374722733),
            (768701.3399688499, -0.6754134622772893, -0.7374392551082459),
            (36478.72397825157, -0.9927027728261982, 0.12058691812621113),
            (FRAC_PI_2, 1.0, 6.123233995736766e-17),
            (PI, 1.2246467991473532e-16, -1.0),
            (4.71238898038469, -1.0, -1.8369701987210297e-16),
            (557.6326960121883, -1.0, -3.7724692239467775e-14),
            (1570.7963267948965, -1.6070832296378168e-13, 1.0),
            (999026.4638415542, -6.713549718807686e-12, 1.0),
        ];
        for (x, sin, cos) in table {
            assert_eq!(sin_cos(x), (sin, cos), "x = {x}");
            assert_eq!(sin_cos(-x), (-sin, cos), "x = {}", -x);
        }
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
