//! What a reproduction finds: claims, each with an interval that decides it, and a verdict on all of them.

use std::fmt::Write;

use crate::figure::Figure;
use crate::statistics::csv::quoted;
use crate::statistics::{Aggregate, Bootstrap, Estimate, Scores};

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

/// A claim of the publication, and our estimate of the quantity that it is about.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Claim {
    /// The claim in words; our number follows.
    pub(super) text: String,
    pub(super) estimate: Estimate,
    pub(super) test: Test,
}

impl Claim {
    pub(super) fn new(text: impl Into<String>, estimate: Estimate, test: Test) -> Self {
        Self { text: text.into(), estimate, test }
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
        [point, low, high].map(|number| crate::numbers::rounded(number, decimals))
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
    bootstrap.aggregates(&[&scores(numbers)], &[Aggregate::Mean])[0][0]
}

/// Returns the interval of the mean of `x` minus that of `y`, which are different runs.
pub(super) fn difference(bootstrap: Bootstrap, x: &[f64], y: &[f64]) -> Estimate {
    bootstrap.difference(&scores(x), &scores(y), Aggregate::Mean)
}

/// Returns the interval of the mean of the differences of pairs, such as runs with the same problems.
pub(super) fn paired(bootstrap: Bootstrap, x: &[f64], y: &[f64]) -> Estimate {
    bootstrap.paired_difference(&scores(x), &scores(y))
}

/// The verdict on all claims: it holds if all hold, holds partly if some do, and does not hold here if none does and at least one is on the other side.
pub(super) fn verdict(claims: &[Claim]) -> &'static str {
    let count = |wanted: Answer| claims.iter().filter(|claim| claim.answer() == wanted).count();
    match (count(Answer::Holds), count(Answer::Fails)) {
        (holds, _) if holds == claims.len() => "Holds",
        (0, 0) => "Undecided here",
        (0, _) => "Does not hold here",
        _ => "Holds partly",
    }
}

/// Returns the verdict in one sentence, with the number of every claim.
pub(super) fn sentence(claims: &[Claim]) -> String {
    let part = |claim: &Claim| match claim.answer() {
        Answer::Holds => format!("{}: {}", claim.text, claim.number()),
        other => format!("{} ({}): {}", claim.text, other.word(), claim.number()),
    };
    format!("{}: {}.", verdict(claims), claims.iter().map(part).collect::<Vec<_>>().join("; "))
}

/// Returns `verdict.csv`.
pub(super) fn verdict_csv(claims: &[Claim]) -> String {
    let mut text = String::from("claim,text,point,low,high,holds_if,answer\n");
    for (claim, number) in claims.iter().zip(1..) {
        let condition = match claim.test {
            Test::Above(least) => format!("above {least}"),
            Test::Below(most) => format!("below {most}"),
            Test::Within(least, most) => format!("from {least} to {most}"),
        };
        let Estimate { point, low, high } = claim.estimate;
        let answer = claim.answer().word();
        writeln!(text, "{number},{},{point},{low},{high},{condition},{answer}", quoted(&claim.text))
            .expect("writing to a string does not fail");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(low: f64, high: f64, test: Test) -> Claim {
        Claim::new("a", Estimate { point: (low + high) / 2.0, low, high }, test)
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

    #[test]
    fn a_verdict_says_no_more_than_its_claims() {
        let [holds, open, fails] = [(0.1, 0.2), (-0.1, 0.1), (-0.2, -0.1)].map(|(low, high)| claim(low, high, Test::Above(0.0)));
        let of = |claims: &[&Claim]| verdict(&claims.iter().map(|claim| (*claim).clone()).collect::<Vec<_>>());
        assert_eq!(of(&[&holds, &holds]), "Holds");
        assert_eq!(of(&[&holds, &open]), "Holds partly");
        assert_eq!(of(&[&holds, &fails]), "Holds partly");
        assert_eq!(of(&[&open, &open]), "Undecided here");
        assert_eq!(of(&[&open, &fails]), "Does not hold here");
        assert_eq!(sentence(&[holds, open]), "Holds partly: a: 0.15 [0.10, 0.20]; a (undecided): 0.00 [-0.10, 0.10].");
    }
}
