//! What a reproduction finds: claims, each with an interval that decides it, and a verdict on all of them.

use super::experiment::Evidence;
use gradus::figure::Figure;
use gradus::nets::math::ln;
use gradus_compare::statistics::csv::{cells, quoted};
use gradus_compare::statistics::{Aggregate, Bootstrap, Estimate, Scores};

/// What makes a claim hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Test {
    /// The whole interval is above this number.
    Above(f64),
    /// The whole interval is below this number.
    Below(f64),
    /// The whole interval is between these numbers.
    Within(f64, f64),
}

impl Test {
    /// Returns the condition in words, such as `above 0`.
    pub(super) fn condition(&self) -> String {
        let short = |number: &f64| if *number != 0.0 && number.abs() < 1e-4 { format!("{number:e}") } else { number.to_string() };
        match self {
            Test::Above(least) => format!("above {}", short(least)),
            Test::Below(most) => format!("below {}", short(most)),
            Test::Within(least, most) => format!("from {} to {}", short(least), short(most)),
        }
    }

    /// Reads what [`condition`](Test::condition) returns.
    fn of(condition: &str) -> Option<Self> {
        let number = |text: &str| text.parse::<f64>().ok();
        match condition.split_once(' ')? {
            ("above", least) => Some(Test::Above(number(least)?)),
            ("below", most) => Some(Test::Below(number(most)?)),
            ("from", ends) => ends.split_once(" to ").and_then(|(least, most)| Some(Test::Within(number(least)?, number(most)?))),
            _ => None,
        }
    }
}

/// The answer to a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The interval is on the side of the claim.
    Holds,
    /// The interval contains numbers of both sides.
    Undecided,
    /// The interval is on the other side.
    Fails,
}

impl Answer {
    pub(super) fn word(self) -> &'static str {
        match self {
            Answer::Holds => "holds",
            Answer::Undecided => "undecided",
            Answer::Fails => "does not hold",
        }
    }
}

/// A claim, and our estimate of the quantity that it is about.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Claim {
    /// The claim in words; our number follows.
    pub(super) text: String,
    pub(super) estimate: Estimate,
    pub(super) test: Test,
    /// Where the claim comes from; the file of the experiment says it.
    pub(super) evidence: Evidence,
}

impl Claim {
    pub(super) fn new(text: impl Into<String>, estimate: Estimate, test: Test) -> Self {
        Self { text: text.into(), estimate, test, evidence: Evidence::Ours }
    }

    /// A claim about a number without an error, such as one that is computed from a model.
    pub(super) fn exact(text: impl Into<String>, number: f64, test: Test) -> Self {
        Self::new(text, Estimate { point: number, low: number, high: number }, test)
    }

    pub(super) fn answer(&self) -> Answer {
        let Estimate { low, high, .. } = self.estimate;
        let (is_in, is_out) = match self.test {
            Test::Above(least) => (low > least, high < least),
            Test::Below(most) => (high < most, low > most),
            Test::Within(least, most) => (low > least && high < most, high < least || low > most),
        };
        match (is_in, is_out) {
            (true, _) => Answer::Holds,
            (_, true) => Answer::Fails,
            _ => Answer::Undecided,
        }
    }

    /// Returns the estimate and the ends of its interval, with the digits that the interval's width gives a meaning.
    pub(super) fn numbers(&self) -> [String; 3] {
        let Estimate { point, low, high } = self.estimate;
        let decimals = match high - low {
            width if width > 0.0 => (1.0 - width.log10().floor()).clamp(0.0, 6.0) as usize,
            _ if point.fract() == 0.0 => 0,
            _ => 5,
        };
        [point, low, high].map(|number| gradus::numbers::rounded(number, decimals))
    }

    /// Returns the number with its interval, such as `1.25 [1.12, 1.38]`.
    pub(super) fn number(&self) -> String {
        let [point, low, high] = self.numbers();
        if low == high { point } else { format!("{point} [{low}, {high}]") }
    }
}

/// Everything that a reproduction writes.
pub(super) struct Findings {
    pub(super) claims: Vec<Claim>,
    /// Names of files without their extension, and the figures; the first is `figure`.
    pub(super) figures: Vec<(&'static str, Figure)>,
    /// Names of files, and their texts.
    pub(super) tables: Vec<(&'static str, String)>,
}

/// Returns the bootstrap for the intervals of `claims` claims: together they have a confidence of 95 % (Bonferroni), so that a verdict may use all of them.
pub(super) fn bootstrap(claims: usize) -> Bootstrap {
    Bootstrap { resamples: 20_000, level: 1.0 - 0.05 / claims as f64, ..Bootstrap::default() }
}

/// Returns the runs of one group as scores.
pub(super) fn scores(numbers: &[f64]) -> Scores {
    Scores::new(vec![numbers.to_vec()]).expect("finite numbers")
}

/// Returns the interval of a mean over runs.
pub(super) fn mean(bootstrap: Bootstrap, numbers: &[f64]) -> Estimate {
    widened(bootstrap.aggregates(&[&scores(numbers)], &[Aggregate::Mean])[0][0], bootstrap.level, numbers.len())
}

/// Returns the interval of the mean of `x` minus that of `y`, which are different runs.
pub(super) fn difference(bootstrap: Bootstrap, x: &[f64], y: &[f64]) -> Estimate {
    widened(bootstrap.difference(&scores(x), &scores(y), Aggregate::Mean), bootstrap.level, x.len().min(y.len()))
}

/// Returns the interval of the mean of the differences of pairs, such as runs with the same problems.
pub(super) fn paired(bootstrap: Bootstrap, x: &[f64], y: &[f64]) -> Estimate {
    widened(bootstrap.paired_difference(&scores(x), &scores(y)), bootstrap.level, x.len())
}

/// Returns the share of `hits` among `n` runs, with the exact interval of Clopper and Pearson for one of `claims` claims.
pub(super) fn share(claims: usize, hits: usize, n: usize) -> Estimate {
    let tail = 0.025 / claims as f64;
    // P(at most k hits) with probability p of a hit
    let at_most = |k: usize, p: f64| {
        let mut chance = (1.0 - p).powi(n as i32);
        let mut sum = chance;
        for hit in 0..k {
            chance *= (n - hit) as f64 / (hit + 1) as f64 * p / (1.0 - p);
            sum += chance;
        }
        sum
    };
    let solve = |is_above: &dyn Fn(f64) -> bool| {
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if is_above(middle) { high = middle } else { low = middle }
        }
        0.5 * (low + high)
    };
    let low = if hits == 0 { 0.0 } else { solve(&|p| 1.0 - at_most(hits - 1, p) > tail) };
    let high = if hits == n { 1.0 } else { solve(&|p| at_most(hits, p) < tail) };
    Estimate { point: hits as f64 / n as f64, low, high }
}

/// Widens a percentile interval of `n` runs, which is too narrow if there are few: it is about z sqrt((n - 1) / n) standard errors to either side, where
/// Student's interval has the quantile t of n - 1 degrees of freedom (Hesterberg, The American Statistician 69, 2015, section 3.2).
fn widened(Estimate { point, low, high }: Estimate, level: f64, n: usize) -> Estimate {
    let z = normal_quantile((1.0 - level) / 2.0);
    let factor = match n {
        // one run has no interval
        0 | 1 => 1.0,
        n => student_quantile(z, (n - 1) as f64) / z * (n as f64 / (n as f64 - 1.0)).sqrt(),
    };
    Estimate { point, low: point - factor * (point - low), high: point + factor * (high - point) }
}

/// Returns z with P(Z > z) = `tail` for a standard normal Z and a tail below 0.025, by Acklam's rational approximation (relative error 1.2e-9).
pub(super) fn normal_quantile(tail: f64) -> f64 {
    let q = (-2.0 * f64::from(ln(tail as f32))).sqrt();
    let above = [
        -7.784_894_002_430_293e-3,
        -0.322_396_458_041_136_5,
        -2.400_758_277_161_838,
        -2.549_732_539_343_734,
        4.374_664_141_464_968,
        2.938_163_982_698_783,
    ];
    let below = [7.784_695_709_041_462e-3, 0.322_467_129_070_039_8, 2.445_134_137_142_996, 3.754_408_661_907_416, 1.0];
    let polynomial = |coefficients: &[f64]| coefficients.iter().fold(0.0, |sum, c| sum * q + c);
    -polynomial(&above) / polynomial(&below)
}

/// Returns the quantile of Student's distribution with `nu` degrees of freedom at the same tail as the normal quantile `z`, by the expansion of Cornish and Fisher
/// (Abramowitz and Stegun, 26.7.5).
fn student_quantile(z: f64, nu: f64) -> f64 {
    let terms = [
        (z.powi(3) + z) / 4.0,
        (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0,
        (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0,
        (79.0 * z.powi(9) + 776.0 * z.powi(7) + 1482.0 * z.powi(5) - 1920.0 * z.powi(3) - 945.0 * z) / 92_160.0,
    ];
    terms.iter().rev().fold(0.0, |sum, term| (sum + term) / nu) + z
}

/// Returns how many claims of the publication's main sentence hold, are undecided, and do not hold.
pub(super) fn counts(claims: &[Claim]) -> [usize; 3] {
    let main = || claims.iter().filter(|claim| matches!(claim.evidence, Evidence::Main(_)));
    [Answer::Holds, Answer::Undecided, Answer::Fails].map(|wanted| main().filter(|claim| claim.answer() == wanted).count())
}

/// The verdict on the publication's main sentence: it holds if all of its claims hold, and holds partly if some do. If none does, it does not hold here if one is on the other
/// side, and is undecided otherwise. No other claim has a say.
pub(super) fn verdict(claims: &[Claim]) -> &'static str {
    match counts(claims) {
        [0, 0, 0] => "Not tested here",
        [0, _, fail] if fail > 0 => "Does not hold here",
        [0, ..] => "Undecided here",
        [_, 0, 0] => "Holds",
        [_, _, 0] => "Holds partly, the rest is undecided",
        _ => "Holds partly, a part does not",
    }
}

/// Returns how many claims of the main sentence have each answer, in words.
pub(super) fn counted(claims: &[Claim]) -> String {
    let [hold, open, fail] = counts(claims);
    let verb = |n: usize, one: &'static str, more: &'static str| if n == 1 { one } else { more };
    format!(
        "{hold} {}, {open} {} undecided, and {fail} {} not hold",
        verb(hold, "holds", "hold"),
        verb(open, "is", "are"),
        verb(fail, "does", "do")
    )
}

/// Returns a claim with its numbers.
pub(super) fn told(claim: &Claim) -> String {
    format!("{} ({}): {}", claim.text, claim.evidence.kind(), claim.number())
}

/// Returns `verdict.csv`.
pub(super) fn verdict_csv(claims: &[Claim]) -> String {
    let mut text = String::from("claim,text,point,low,high,holds_if,answer,holds,undecided,fails,evidence,place\n");
    for (claim, number) in claims.iter().zip(1..) {
        let condition = claim.test.condition();
        let Estimate { point, low, high } = claim.estimate;
        let answer = claim.answer();
        // the last columns count
        let is = |other: Answer| u8::from(answer == other);
        let (holds, undecided, fails) = (is(Answer::Holds), is(Answer::Undecided), is(Answer::Fails));
        let (kind, place) = (claim.evidence.kind(), quoted(claim.evidence.place()));
        let cells = format!(
            "{number},{},{point},{low},{high},{condition},{},{holds},{undecided},{fails},{kind},{place}",
            quoted(&claim.text),
            answer.word()
        );
        text += &(cells + "\n");
    }
    text
}

/// Reads `verdict.csv`, except where the claims come from. `None` if it is damaged.
pub(super) fn read_verdict(text: &str) -> Option<Vec<Claim>> {
    let claim = |line: &str| {
        let cells = cells(line)?;
        let number = |place: usize| cells.get(place)?.parse::<f64>().ok();
        let estimate = Estimate { point: number(2)?, low: number(3)?, high: number(4)? };
        Some(Claim::new(cells.get(1)?.as_ref(), estimate, Test::of(cells.get(5)?)?))
    };
    text.lines().skip(1).map(claim).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(low: f64, high: f64, test: Test) -> Claim {
        Claim { evidence: Evidence::Main("p. 1".into()), ..Claim::new("a", Estimate { point: (low + high) / 2.0, low, high }, test) }
    }

    #[test]
    fn an_interval_decides_a_claim() {
        for (low, high, test, expected) in [
            (0.1, 0.2, Test::Above(0.0), Answer::Holds),
            (-0.1, 0.2, Test::Above(0.0), Answer::Undecided),
            (-0.2, -0.1, Test::Above(0.0), Answer::Fails),
            (-0.2, -0.1, Test::Below(0.0), Answer::Holds),
            (0.1, 0.2, Test::Below(0.0), Answer::Fails),
            (0.4, 0.6, Test::Within(0.3, 0.7), Answer::Holds),
            (0.6, 0.8, Test::Within(0.3, 0.7), Answer::Undecided),
            (0.8, 0.9, Test::Within(0.3, 0.7), Answer::Fails),
        ] {
            assert_eq!(claim(low, high, test).answer(), expected, "{low} to {high}, {test:?}");
        }
    }

    /// Quantiles from tables.
    #[test]
    fn quantiles_are_the_known_ones() {
        for (tail, z) in [(0.025, 1.959_964), (0.005, 2.575_829), (0.0025, 2.807_034)] {
            assert!((normal_quantile(tail) - z).abs() < 1e-5, "{tail}: {}", normal_quantile(tail));
        }
        for (nu, t) in [(9.0, 2.262_157), (19.0, 2.093_024), (4.0, 2.776_445)] {
            assert!((student_quantile(1.959_964, nu) - t).abs() < 3e-3, "{nu}: {}", student_quantile(1.959_964, nu));
        }
    }

    /// The interval of no hit is known in closed form; the others are from tables (Clopper and Pearson, 1934, and R's `binom.test`).
    #[test]
    fn shares_have_exact_intervals() {
        let none = share(1, 0, 100);
        assert!((none.high - (1.0 - 0.025_f64.powf(0.01))).abs() < 1e-9 && none.low == 0.0, "{none:?}");
        let some = share(1, 9, 10);
        assert!((some.low - 0.554_984).abs() < 1e-5 && (some.high - 0.997_471).abs() < 1e-5, "{some:?}");
        assert_eq!(share(2, 10, 10).high, 1.0);
        assert!(share(5, 9, 10).low < some.low, "wider for more claims");
    }

    /// The intervals of means of ten normal numbers contain the truth as often as they promise.
    #[test]
    fn intervals_of_few_runs_are_wide_enough() {
        let (mut stream, mut misses) = (gradus::envs::random::Stream::new(1, gradus::envs::random::Purpose::Shuffle, 0), 0);
        let quick = Bootstrap { resamples: 2_000, ..bootstrap(1) };
        for _ in 0..400 {
            let numbers: Vec<f64> = (0..10).map(|_| f64::from(stream.normal())).collect();
            let Estimate { low, high, .. } = mean(quick, &numbers);
            misses += usize::from(low > 0.0 || high < 0.0);
        }
        // 20 are expected, with a standard deviation of 4.4; without the widening there are about 40
        assert!((8..=32).contains(&misses), "{misses} of 400");
    }

    #[test]
    fn a_verdict_says_no_more_than_its_claims() {
        let [holds, open, fails] = [(0.1, 0.2), (-0.1, 0.1), (-0.2, -0.1)].map(|(low, high)| claim(low, high, Test::Above(0.0)));
        let of = |claims: &[&Claim]| verdict(&claims.iter().map(|claim| (*claim).clone()).collect::<Vec<_>>());
        assert_eq!(of(&[&holds, &holds]), "Holds");
        assert_eq!(of(&[&holds, &open]), "Holds partly, the rest is undecided");
        assert_eq!(of(&[&holds, &open, &fails]), "Holds partly, a part does not");
        assert_eq!(of(&[&open, &open]), "Undecided here");
        assert_eq!(of(&[&fails, &fails]), "Does not hold here");
        assert_eq!(of(&[&open, &fails]), "Does not hold here");
        let other = Claim { evidence: Evidence::Ours, ..fails };
        assert_eq!((of(&[&holds, &other]), of(&[&open, &other])), ("Holds", "Undecided here"), "only the main sentence decides");
        assert_eq!(of(&[&other]), "Not tested here");
        let all = [holds.clone(), Claim { text: "b, c".into(), test: Test::Within(-1.0, 0.5), ..open.clone() }];
        let read = read_verdict(&verdict_csv(&all)).expect("a table");
        assert_eq!(
            read.iter().map(|claim| (&claim.text, claim.estimate, claim.test)).collect::<Vec<_>>(),
            all.iter().map(|claim| (&claim.text, claim.estimate, claim.test)).collect::<Vec<_>>()
        );
        assert_eq!(read_verdict("claim\n1,a,0,0"), None);
        assert_eq!(counted(&[holds.clone(), open]), "1 holds, 1 is undecided, and 0 do not hold");
        assert_eq!(told(&holds), "a (main): 0.15 [0.10, 0.20]");
    }
}
