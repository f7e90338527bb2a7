//! Losses as formulas: values and slopes against functions in f64 and their central differences, ties and bounds, infinite numbers and NaN,
//! the places of slopes in a sum, and functions of several numbers.

use gradus_nets::loss::{Entropy, KlOld, KlRef, LogProb, Q, Value};
use gradus_nets::{Evaluation, Loss, Objective, Of, Outputs, Pointwise, PolicyOutput, QValues, Sums};

const INF: f32 = f32::INFINITY;

fn x(value: f32) -> Of<Value> {
    Of::variable(value)
}

fn pair<O: Copy>(of: Of<O>) -> (f32, f32) {
    (of.value(), of.slope())
}

fn difference(f: &dyn Fn(f64) -> f64, at: f64) -> f64 {
    let step = 1e-5;
    (f(at + step) - f(at - step)) / (2.0 * step)
}

fn assert_near(got: f32, expected: f64, what: &str) {
    assert!((f64::from(got) - expected).abs() <= 4e-6 * expected.abs().max(1.0), "{what}: expected {expected}, got {got}");
}

fn log_sigmoid(x: f64) -> f64 {
    -(1.0 + (-x).exp()).ln()
}

fn huber(x: f64, delta: f64) -> f64 {
    if x.abs() <= delta { x * x / 2.0 } else { delta * (x.abs() - delta / 2.0) }
}

/// Every function of [`Of`] and the same function in f64. At the points below, none has a kink.
type Function = (&'static str, fn(Of<Value>) -> Of<Value>, fn(f64) -> f64);

const FUNCTIONS: &[Function] = &[
    ("x", |x| x, |x| x),
    ("-x", |x| -x, |x| -x),
    ("x + c", |x| x + 0.75, |x| x + 0.75),
    ("c + x", |x| 0.75 + x, |x| x + 0.75),
    ("x - c", |x| x - 0.75, |x| x - 0.75),
    ("c - x", |x| 0.75 - x, |x| 0.75 - x),
    ("c x", |x| -3.5 * x, |x| -3.5 * x),
    ("x c", |x| x * -3.5, |x| -3.5 * x),
    ("x / c", |x| x / -3.5, |x| x / -3.5),
    ("f + g", |x| x.squared() + 2.5 * x, |x| x * x + 2.5 * x),
    ("f - g", |x| x.squared() - x.exp(), |x| x * x - x.exp()),
    ("f g", |x| (x + 0.5) * x.exp(), |x| (x + 0.5) * x.exp()),
    ("f f f", |x| x * x * x, |x| x * x * x),
    ("exp", |x| x.exp(), f64::exp),
    ("exp of a negative number", |x| (-x).exp(), |x| (-x).exp()),
    ("squared", |x| x.squared(), |x| x * x),
    ("abs", |x| x.abs(), f64::abs),
    ("min of a constant", |x| x.min(0.5), |x| x.min(0.5)),
    ("max of a constant", |x| x.max(0.5), |x| x.max(0.5)),
    ("min of a function", |x| x.min(0.25 * x.squared()), |x| x.min(0.25 * x * x)),
    ("max of a function", |x| x.max(0.25 * x.squared()), |x| x.max(0.25 * x * x)),
    ("clamp", |x| x.clamp(-1.0, 1.5), |x| x.clamp(-1.0, 1.5)),
    ("clamp of a function", |x| x.exp().clamp(0.5, 2.0), |x| x.exp().clamp(0.5, 2.0)),
    ("near", |x| x.near(0.4, 0.7), |x| x.clamp(-0.3, 1.1)),
    ("huber", |x| x.huber(0.8), |x| huber(x, 0.8)),
    ("huber of an infinite delta", |x| x.huber(INF), |x| x * x / 2.0),
    ("log_sigmoid", |x| x.log_sigmoid(), log_sigmoid),
    ("softplus", |x| x.softplus(), |x| (1.0 + x.exp()).ln()),
    ("cross_entropy 0", |x| x.cross_entropy(0.0), |x| -log_sigmoid(-x)),
    ("cross_entropy 1", |x| x.cross_entropy(1.0), |x| -log_sigmoid(x)),
    ("cross_entropy 0.3", |x| x.cross_entropy(0.3), |x| -0.3 * log_sigmoid(x) - 0.7 * log_sigmoid(-x)),
    ("function", |x| x.function(x.value().sin(), x.value().cos()), f64::sin),
];

/// With an inner function a x + b, a slope is multiplied by a.
#[test]
fn slopes_are_central_differences() {
    for (name, of, in_f64) in FUNCTIONS {
        for (a, b) in [(1.0_f32, 0.0_f32), (-1.75, 0.25), (0.5, -1.0)] {
            for at in [-2.3_f32, -0.6, 0.2, 0.9, 2.7] {
                let (got, what) = (of(a * x(at) + b), format!("{name} of {a} x + {b} at {at}"));
                let expected = |at: f64| in_f64(f64::from(a) * at + f64::from(b));
                assert_near(got.value(), expected(at.into()), &what);
                assert_near(got.slope(), difference(&expected, at.into()), &format!("slope of {what}"));
            }
        }
    }
}

/// The value of `bounded` is that of `clamp`, but its slope is that of its argument.
#[test]
fn a_bounded_number_keeps_its_slope() {
    for (at, value) in [(-3.0, -1.0), (-1.0, -1.0), (0.25, 0.25), (1.5, 1.5), (7.0, 1.5), (-INF, -1.0), (INF, 1.5)] {
        assert_eq!(pair(x(at).bounded(-1.0, 1.5)), (value, 1.0), "{at}");
        assert_eq!((-2.0 * x(at)).bounded(-1.0, 1.5).slope(), -2.0, "{at}");
    }
    // y^2 with y = -2 x bounded to 1.5: the slope is 2 y times -2
    assert_eq!(pair((-2.0 * x(-3.0)).bounded(-1.0, 1.5).squared()), (2.25, -6.0));
}

#[test]
fn of_equal_arguments_the_first_is_selected() {
    let (one, other) = (x(2.0), 3.0 * x(2.0) - 4.0);
    assert_eq!(one.value(), other.value());
    assert_eq!([one.min(other).slope(), other.min(one).slope(), one.max(other).slope(), other.max(one).slope()], [1.0, 3.0, 1.0, 3.0]);
    // a constant counts as the second argument, with slope 0
    assert_eq!([one.min(2.0).slope(), one.max(2.0).slope()], [1.0, 1.0]);
    let constant = Of::<Value>::constant(2.0);
    assert_eq!([constant.min(one).slope(), constant.max(one).slope()], [0.0, 0.0]);
    // 0 and -0 are equal
    assert_eq!([x(0.0).min(-0.0).slope(), x(-0.0).max(0.0).slope()], [1.0, 1.0]);
}

#[test]
fn on_a_bound_the_slope_is_kept_and_beyond_it_is_0() {
    let (below, above) = (|y: f32| f32::from_bits(y.to_bits() - 1), |y: f32| f32::from_bits(y.to_bits() + 1));
    for (low, high) in [(0.8, 1.2), (0.5, 0.5)] {
        let clamped = |at: f32| pair((2.0 * x(0.5 * at)).clamp(low, high));
        assert_eq!([clamped(low), clamped(high)], [(low, 2.0), (high, 2.0)]);
        assert_eq!([clamped(below(low)), clamped(above(high))], [(low, 0.0), (high, 0.0)]);
    }
    assert_eq!(pair(x(1.5).near(1.0, 0.5)), (1.5, 1.0), "at the distance");
    assert_eq!(pair(x(above(1.5)).near(1.0, 0.5)), (1.5, 0.0), "beyond the distance");
    assert_eq!(pair(x(-0.5).huber(0.5)), (0.125, -0.5), "the parabola and the line meet");
    assert_eq!([pair(x(0.0).abs()), pair(x(-0.0).abs())], [(0.0, 0.0); 2], "between the slopes -1 and 1");
}

/// A value within the distance has the bits that it had: centre + (value - centre) may differ.
#[test]
fn a_near_number_is_not_rounded() {
    let mut rounded = 0;
    for i in 0..200 {
        let (value, centre) = ((0.53 * i as f32).cos(), (0.37 * i as f32).sin());
        rounded += u32::from(centre + (value - centre) != value);
        assert_eq!(pair(x(value).near(centre, 10.0)), (value, 1.0));
    }
    assert!(rounded > 20, "{rounded}");
}

#[test]
fn infinite_settings_limit_nothing() {
    for at in [-1e30_f32, -2.5, 0.0, 0.3, 1e30] {
        let y = 2.0 * x(at);
        let same = [y.clamp(-INF, INF), y.bounded(-INF, INF), y.near(0.7, INF), y.near(-1e30, INF), y.max(-INF), y.min(INF)];
        assert!(same.iter().all(|of| *of == y), "{at}: {same:?}");
        assert_eq!((y.clamp(-INF, 1.0), y.clamp(-1.0, INF)), (y.min(1.0), y.max(-1.0)), "{at}");
    }
    assert_eq!(pair(x(-3.0).huber(INF)), (4.5, -3.0));
    assert_eq!(pair((2.0 * x(-1.5)).huber(INF)), (4.5, -6.0));
    assert_eq!(pair(x(-3.0).huber(f32::MIN_POSITIVE)).1, -f32::MIN_POSITIVE);
}

#[test]
fn an_infinite_argument_that_is_not_selected_does_no_harm() {
    let y = 3.0 * x(2.0);
    let infinite = x(2.0) * INF; // the slope is infinite, too
    assert_eq!(pair(infinite), (INF, INF));
    assert_eq!([y.min(infinite), infinite.min(y), y.max(-infinite), (-infinite).max(y)], [y; 4]);
    assert_eq!(pair(infinite.clamp(0.0, 1.5)), (1.5, 0.0));
    assert_eq!(pair((-infinite).clamp(0.5, 1.5)), (0.5, 0.0));
    // 0 times infinity is NaN, also if it is not selected
    let nan = x(0.0) * INF;
    assert!(nan.value().is_nan());
    assert_eq!([y.min(nan), y.max(nan)], [y; 2]);
}

/// The ratio of two policies that are far apart, and an exponential that overflows.
#[test]
fn exponentials_of_large_numbers_are_clamped() {
    let e20 = 20.0_f64.exp();
    for (log_ratio, clamped, ratio) in [(25.0, 1.2, e20), (-25.0, 0.8, 1.0 / e20)] {
        let limited = x(log_ratio).clamp(-20.0, 20.0).exp();
        assert!((f64::from(limited.value()) / ratio - 1.0).abs() < 1e-6, "{limited:?}");
        assert_eq!(limited.slope(), 0.0, "beyond the limit of the log-ratio");
        assert_eq!(pair(limited.clamp(0.8, 1.2)), (clamped, 0.0));
        assert_eq!(pair(x(log_ratio).exp().clamp(0.8, 1.2)), (clamped, 0.0));
    }
    for at in [200.0_f32, 1e9, INF] {
        assert_eq!(pair(x(at).exp()), (INF, INF), "e^{at} overflows");
        assert_eq!(pair(x(at).exp().clamp(0.8, 1.2)), (1.2, 0.0), "e^{at}");
        assert_eq!(pair((-5.0 * x(at)).exp()), (0.0, 0.0), "e^(-5 {at})");
    }
}

/// Log-probabilities do not overflow, and their slopes are probabilities.
#[test]
fn functions_of_logits_do_not_overflow() {
    for at in [90.0_f32, 1e4, 1e30] {
        assert_eq!([pair(x(at).log_sigmoid()), pair(x(-at).log_sigmoid())], [(0.0, 0.0), (-at, 1.0)], "{at}");
        assert_eq!([pair(x(at).softplus()), pair(x(-at).softplus())], [(at, 1.0), (0.0, 0.0)], "{at}");
        let entropy = |at, label| pair(x(at).cross_entropy(label));
        assert_eq!([entropy(at, 0.0), entropy(at, 1.0)], [(at, 1.0), (0.0, 0.0)], "{at}");
        assert_eq!([entropy(-at, 0.0), entropy(-at, 1.0)], [(0.0, 0.0), (at, -1.0)], "{at}");
    }
    assert_eq!([x(0.0).log_sigmoid().slope(), x(0.0).softplus().slope(), x(0.0).cross_entropy(1.0).slope()], [0.5, 0.5, -0.5]);
}

#[test]
fn nan_stays_visible() {
    for (name, of, _) in FUNCTIONS.iter().filter(|(name, ..)| *name != "function") {
        assert!(of(x(f32::NAN)).value().is_nan(), "{name}");
    }
    let nan = x(f32::NAN);
    let selected =
        [nan.min(1.0), nan.max(1.0), nan.min(INF), nan.max(-INF), nan.clamp(0.0, 1.0), nan.clamp(-INF, INF), nan.bounded(0.0, 1.0)];
    assert!(selected.iter().all(|of| of.value().is_nan()), "{selected:?}");
    assert!(nan.min(x(1.0)).value().is_nan() && nan.max(x(1.0)).value().is_nan() && nan.near(0.0, INF).value().is_nan());
    // in a sum of kinds, and times a coefficient of 0
    let loss = 0.0 * nan + Of::<LogProb>::variable(1.0);
    assert!(loss.value.is_nan() && (loss + Loss::default()).value.is_nan() && (0.5 * loss).value.is_nan());
    assert!(QValues::new(&[1.0, f32::NAN], &mut [0.0; 2]).mean().value().is_nan());
    assert!(QValues::new(&[1.0, f32::NAN], &mut [0.0; 2]).log_softmax(0).value().is_nan());
    assert!(QValues::new(&[1.0, f32::NAN], &mut [0.0; 2]).cross_entropy(&[1.0, 0.0]).value().is_nan());
}

/// A loss whose value is NaN for a value of NaN.
struct Squared;

impl Pointwise for Squared {
    type Known = [f32; 1];

    fn known(&self, _: usize) -> [f32; 1] {
        [1.0]
    }

    fn loss(&self, [target]: [f32; 1], pi: Outputs) -> Evaluation {
        (pi.value - target).huber(0.5).max(0.0).into()
    }
}

/// The same loss, evaluated one decision at a time.
struct OneByOne;

impl Objective for OneByOne {
    fn decision(&self, index: usize, pi: Outputs) -> Evaluation {
        Squared.decision(index, pi)
    }
}

/// The sum of a batch is NaN if the loss of a decision is, unless the decision has weight 0.
#[test]
fn the_loss_of_a_batch_shows_nan() {
    for objective in [&Squared as &dyn Objective, &OneByOne] {
        for (weight, is_nan) in [(0.5, true), (0.0, false)] {
            let mut outputs = [0.25, f32::NAN, 0.5].map(|value| PolicyOutput { value, ..PolicyOutput::default() });
            let mut sums = Sums::default();
            objective.slice(&[0, 1, 2], &[0.5, weight, 0.5], &mut outputs, &mut sums);
            assert_eq!(sums.loss.is_nan(), is_nan);
            // the other decisions: a large error, whose slope is limited to 0.5, and one of 0.5
            assert_eq!([outputs[0].value, outputs[2].value], [-0.25; 2]);
            assert!(is_nan || outputs[1] == PolicyOutput::default());
        }
    }
}

#[test]
fn a_stopped_factor_has_no_derivative() {
    let y = x(3.0);
    assert_eq!(pair(y.stop() * y), (9.0, 3.0), "d/dx of stop(x) x is x");
    assert_eq!(pair(y * y), (9.0, 6.0));
    let weight = (2.0 * y).exp().clamp(0.0, 5.0).stop();
    assert_eq!(pair(weight * y), (15.0, 5.0));
    assert_eq!(pair(Of::<Value>::constant(y.stop())), (3.0, 0.0));
    assert_eq!(pair(y - y.stop()), (0.0, 1.0));
}

fn outputs() -> Outputs {
    PolicyOutput { log_prob: 2.0, entropy: 3.0, value: 5.0, kl_old: 7.0, kl_ref: 11.0 }.into()
}

fn slopes(loss: Loss) -> [f32; 6] {
    let PolicyOutput { log_prob, entropy, value, kl_old, kl_ref } = loss.slopes;
    [log_prob, entropy, value, kl_old, kl_ref, loss.q]
}

#[test]
fn each_slope_of_a_sum_ends_at_its_own_place() {
    let Outputs { log_prob, entropy, value, kl_old, kl_ref } = outputs();
    let q = Of::<Q>::variable(13.0);
    // one kind
    let alone: [Loss; 6] = [
        (2.0 * log_prob).into(),
        (2.0 * entropy).into(),
        (2.0 * value).into(),
        (2.0 * kl_old).into(),
        (2.0 * kl_ref).into(),
        (2.0 * q).into(),
    ];
    for (place, (loss, number)) in alone.into_iter().zip([2.0, 3.0, 5.0, 7.0, 11.0, 13.0]).enumerate() {
        let mut expected = [0.0; 6];
        expected[place] = 2.0;
        assert_eq!((loss.value, slopes(loss)), (2.0 * number, expected));
    }
    // all kinds; what comes later is added to what comes first, also of the same kind
    let loss = 10.0 * log_prob + 20.0 * entropy + 30.0 * value - 40.0 * kl_old + 50.0 * kl_ref + 60.0 * q;
    assert_eq!((loss.value, slopes(loss)), (20.0 + 60.0 + 150.0 - 280.0 + 550.0 + 780.0, [10.0, 20.0, 30.0, -40.0, 50.0, 60.0]));
    let again = loss + log_prob.squared() - 2.0 * value + entropy - kl_ref + kl_old - q;
    assert_eq!((again.value, slopes(again)), (1280.0 + 4.0 - 10.0 + 3.0 - 11.0 + 7.0 - 13.0, [14.0, 21.0, 28.0, -39.0, 49.0, 59.0]));
    assert_eq!(again, log_prob.squared() + (loss - 2.0 * value + entropy - kl_ref + kl_old - q), "a function plus a sum");
    // sums of sums, and their multiples
    let twice = loss + again;
    assert_eq!((twice.value, slopes(twice)), (1280.0 + 1260.0, [24.0, 41.0, 58.0, -79.0, 99.0, 119.0]));
    let half = -0.5 * twice;
    assert_eq!((half.value, slopes(half)), (-1270.0, [-12.0, -20.5, -29.0, 39.5, -49.5, -59.5]));
}

/// Checks the sum and the difference of two kinds, in both orders.
macro_rules! check_pairs {
    ($($a:ident $b:ident),+ $(,)?) => {
        $({
            let (a, b) = (3.0 * Of::<$a>::variable(2.0), -2.0 * Of::<$b>::variable(0.5));
            let (of_a, of_b) = (Loss::from(a), Loss::from(b));
            for (sum, sign) in [(a + b, 1.0), (b + a, 1.0), (a - b, -1.0)] {
                assert_eq!((sum.value, slopes(sum)), (6.0 - sign, slopes(of_a + sign * of_b)));
            }
            let difference = b - a;
            assert_eq!((difference.value, slopes(difference)), (-7.0, slopes(of_b + -1.0 * of_a)));
        })+
    };
}

#[test]
fn any_two_kinds_of_a_policy_can_be_added() {
    check_pairs! {
        LogProb Entropy, LogProb Value, LogProb KlOld, LogProb KlRef, LogProb Q, Entropy Value, Entropy KlOld, Entropy KlRef, Value KlOld,
        Value KlRef, KlOld KlRef,
    }
}

#[test]
fn diagnostics_and_the_error_are_kept() {
    let pi = outputs();
    let evaluation = (2.0 * pi.value).with_diagnostics([1.0, 2.0]).with_error(0.5);
    assert_eq!((evaluation.loss, evaluation.error), ((2.0 * pi.value).into(), 0.5));
    assert_eq!((&evaluation.diagnostics[..2], evaluation.diagnostics[2..].iter().all(|d| *d == 0.0)), (&[1.0, 2.0][..], true));
    let of_sum = (pi.value + pi.log_prob).with_diagnostics([3.0]);
    assert_eq!((of_sum.loss, of_sum.diagnostics[0], of_sum.error), (pi.value + pi.log_prob, 3.0, 0.0));
    assert_eq!(Evaluation::from(pi.value), Evaluation { loss: pi.value.into(), ..Evaluation::default() });
}

/// Returns the value and the derivatives of 3 f(q) with respect to the numbers. The direction is not 0 beforehand.
fn of_values(q: &[f32], f: impl Fn(QValues<'_>) -> Of<Q>) -> (f32, Vec<f32>) {
    let mut direction = vec![7.0; q.len()];
    let loss = Loss::from(3.0 * f(QValues::new(q, &mut direction)));
    assert_eq!(loss.slopes, PolicyOutput::default());
    (loss.value, direction.iter().map(|d| loss.q * d).collect())
}

/// Compares 3 f(q) and its derivatives with the same function in f64.
fn check_values(q: &[f32], f: impl Fn(QValues<'_>) -> Of<Q>, in_f64: impl Fn(&[f64]) -> f64, what: &str) {
    let (value, derivatives) = of_values(q, f);
    let numbers: Vec<f64> = q.iter().map(|q| f64::from(*q)).collect();
    assert_near(value, 3.0 * in_f64(&numbers), what);
    for (k, got) in derivatives.into_iter().enumerate() {
        let by = |x: f64| {
            let mut moved = numbers.clone();
            moved[k] = x;
            3.0 * in_f64(&moved)
        };
        assert_near(got, difference(&by, numbers[k]), &format!("{what}, d/d q_{k} at {q:?}"));
    }
}

fn log_softmax(q: &[f64], k: usize) -> f64 {
    let highest = q.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    q[k] - highest - q.iter().map(|q| (q - highest).exp()).sum::<f64>().ln()
}

#[test]
fn functions_of_several_numbers_have_the_slopes_of_central_differences() {
    let p = [0.15_f32, 0.0, 0.6, 0.25];
    for q in [[0.3_f32, -1.2, 2.5, 0.9], [-4.0, 3.0, 0.1, 0.2], [12.0, -9.0, 0.0, 1.0]] {
        for k in 0..4 {
            check_values(&q, |q| q.at(k), |q| q[k], "at");
            check_values(&q, |q| q.log_softmax(k), |q| log_softmax(q, k), "log_softmax");
            check_values(&q, |q| q.log_softmax(k).squared(), |q| log_softmax(q, k).powi(2), "a function of log_softmax");
        }
        check_values(&q, |q| q.min(), |q| q.iter().copied().fold(f64::INFINITY, f64::min), "min");
        check_values(&q, |q| q.min().squared(), |q| q.iter().copied().fold(f64::INFINITY, f64::min).powi(2), "a function of min");
        check_values(&q, |q| q.mean(), |q| q.iter().sum::<f64>() / 4.0, "mean");
        check_values(&q, |q| q.mean().exp(), |q| (q.iter().sum::<f64>() / 4.0).exp(), "a function of mean");
        let weighted = |q: &[f64]| q.iter().enumerate().map(|(k, q)| (k as f64 + 1.0) * (q - 0.5).powi(2)).sum::<f64>();
        check_values(&q, |q| q.sum(|k, q| (k as f32 + 1.0) * (q - 0.5).squared()), weighted, "sum");
        let targets = [-0.75_f32, 1.85, 0.35];
        let errors = |q: &[f64]| q.iter().flat_map(|q| targets.map(|y| huber(q - f64::from(y), 1.0))).sum::<f64>();
        check_values(&q, |q| q.sum(|_, q| targets.map(|y| (q - y).huber(1.0))), errors, "several terms");
        let some = |q: &[f64]| q[1] * q[1] + q[3] * q[3];
        check_values(&q, |q| q.sum(|k, q| (k % 2 == 1).then(|| q.squared())), some, "no term for some numbers");
        let entropy = |q: &[f64]| (0..4).map(|k| -f64::from(p[k]) * log_softmax(q, k)).sum::<f64>();
        check_values(&q, |q| q.cross_entropy(&p), entropy, "cross_entropy");
        check_values(&q, |q| q.cross_entropy(&p).squared(), |q| entropy(q).powi(2), "a function of cross_entropy");
    }
}

#[test]
fn functions_of_one_number_and_ties() {
    assert_eq!(of_values(&[2.5], |q| q.mean()), (7.5, vec![3.0]));
    assert_eq!(of_values(&[2.5], |q| q.min()), (7.5, vec![3.0]));
    assert_eq!(of_values(&[2.5], |q| q.log_softmax(0)), (0.0, vec![0.0]));
    assert_eq!(of_values(&[2.5], |q| q.cross_entropy(&[1.0])), (0.0, vec![0.0]));
    assert_eq!(of_values(&[2.0, 1.0, 1.0, 3.0], |q| q.min()), (3.0, vec![0.0, 3.0, 0.0, 0.0]), "of equal numbers the first");
    assert_eq!(of_values(&[1.0, 1.0], |q| q.at(1)), (3.0, vec![0.0, 3.0]));
    let mut direction = [7.0; 3];
    assert_eq!(QValues::new(&[1.0, 2.0, 3.0], &mut direction).values(), [1.0, 2.0, 3.0]);
    assert_eq!(direction, [0.0; 3], "a loss that uses no number has no derivative");
}

/// Logits that differ by a constant have the same probabilities.
#[test]
fn large_logits_do_not_overflow() {
    let (near_0, p) = ([0.0_f32, 1.0, -1.5, 0.25], [0.1_f32, 0.2, 0.4, 0.3]);
    for shift in [1000.0_f32, -1000.0] {
        let q = near_0.map(|q| q + shift);
        for k in 0..4 {
            assert_eq!(of_values(&q, |q| q.log_softmax(k)), of_values(&near_0, |q| q.log_softmax(k)));
        }
        assert_eq!(of_values(&q, |q| q.cross_entropy(&p)), of_values(&near_0, |q| q.cross_entropy(&p)));
    }
    // far apart: the probabilities are 0 and 1
    assert_eq!(of_values(&[1000.0, -1000.0], |q| q.log_softmax(1)), (-6000.0, vec![-3.0, 3.0]));
    assert_eq!(of_values(&[1000.0, -1000.0], |q| q.log_softmax(0)), (0.0, vec![0.0, 0.0]));
    assert_eq!(of_values(&[1000.0, -1000.0], |q| q.cross_entropy(&[0.25, 0.75])), (4500.0, vec![2.25, -2.25]));
    // a logit of minus infinity, whose probability is 0
    let (value, derivatives) = of_values(&[1.0, -INF, 1.0], |q| q.cross_entropy(&[0.5, 0.0, 0.5]));
    assert_near(value, 3.0 * std::f64::consts::LN_2, "a logit that is left out");
    assert_eq!(derivatives, [0.0; 3]);
}
