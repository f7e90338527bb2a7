//! Arithmetic expressions: a recursive descent parser with exact values.
//!
//! ```text
//! sum     = product { ("+" | "-") product }
//! product = atom { ("*" | "/") atom }
//! atom    = number | "(" sum ")"
//! number  = "0" | a digit of 1 to 9 { digit }
//! ```
//! There are no signs, no spaces, and no numbers above 4294967295. Operators of the same precedence are left-associative.

/// Maximum nesting of parentheses, so that no answer can overflow the call stack.
const DEPTH: usize = 64;

/// A fraction in lowest terms with a positive denominator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fraction {
    numerator: i64,
    denominator: i64,
}

impl From<u32> for Fraction {
    fn from(number: u32) -> Self {
        Self { numerator: number.into(), denominator: 1 }
    }
}

impl Fraction {
    /// Computes `numerator / denominator` in lowest terms; `None` if the denominator is 0 or a number overflows.
    pub fn new(numerator: i64, denominator: i64) -> Option<Self> {
        let (mut a, mut b) = (numerator.unsigned_abs(), denominator.unsigned_abs());
        while b != 0 {
            (a, b) = (b, a % b);
        }
        // the divisor is 0 if the denominator is 0; the divisions below then return `None`
        let divisor = i64::try_from(a).ok()?.checked_mul(denominator.signum())?;
        Some(Self { numerator: numerator.checked_div(divisor)?, denominator: denominator.checked_div(divisor)? })
    }

    /// Computes `self operator other` exactly, for `+`, `-`, `*` or `/`; `None` on division by 0 or overflow.
    pub fn join(self, operator: u8, other: Self) -> Option<Self> {
        let (a, b, c, d) = (self.numerator, self.denominator, other.numerator, other.denominator);
        match operator {
            b'+' => Self::new(a.checked_mul(d)?.checked_add(c.checked_mul(b)?)?, b.checked_mul(d)?),
            b'-' => Self::new(a.checked_mul(d)?.checked_sub(c.checked_mul(b)?)?, b.checked_mul(d)?),
            b'*' => Self::new(a.checked_mul(c)?, b.checked_mul(d)?),
            _ => Self::new(a.checked_mul(d)?, b.checked_mul(c)?),
        }
    }
}

/// A parsed expression.
///
/// ```
/// use gradus_envs::text::expression::{Expression, Fraction};
///
/// let expression = Expression::parse("(3+5)/4/6").unwrap();
/// assert_eq!(expression.numbers, [3, 5, 4, 6]);
/// assert_eq!(expression.value, Fraction::new(1, 3));
/// assert_eq!(Expression::parse("1/(2-2)").unwrap().value, None);
/// assert_eq!(Expression::parse("4294967295*4294967295").unwrap().value, None);
/// assert_eq!((Expression::parse("4294967296"), Expression::parse("3+")), (None, None));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expression {
    /// The numbers of the expression, in order.
    pub numbers: Vec<u32>,
    /// The value; `None` after a division by 0, or if an intermediate fraction does not fit into 64-bit numbers.
    pub value: Option<Fraction>,
}

impl Expression {
    /// Parses an expression; `None` if `text` is not an expression or nests its parentheses too deeply.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parser = Parser { rest: text.as_bytes(), numbers: Vec::new(), depth: 0 };
        let value = parser.sum()?;
        parser.rest.is_empty().then_some(Self { numbers: parser.numbers, value })
    }
}

struct Parser<'a> {
    rest: &'a [u8],
    numbers: Vec<u32>,
    depth: usize,
}

/// Outer `None`: not an expression. Inner `None`: an expression without a value.
type Parsed = Option<Option<Fraction>>;

impl Parser<'_> {
    /// Consumes and returns the next character if it is one of `any_of`.
    fn take(&mut self, any_of: &[u8]) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        any_of.contains(first).then(|| {
            self.rest = rest;
            *first
        })
    }

    fn chain(&mut self, operators: &[u8], part: fn(&mut Self) -> Parsed) -> Parsed {
        let mut value = part(self)?;
        while let Some(operator) = self.take(operators) {
            let other = part(self)?;
            value = value.zip(other).and_then(|(value, other)| value.join(operator, other));
        }
        Some(value)
    }

    fn sum(&mut self) -> Parsed {
        self.chain(b"+-", Self::product)
    }

    fn product(&mut self) -> Parsed {
        self.chain(b"*/", Self::atom)
    }

    fn atom(&mut self) -> Parsed {
        if self.take(b"(").is_none() {
            return self.number();
        }
        self.depth += 1;
        if self.depth > DEPTH {
            return None;
        }
        let value = self.sum()?;
        self.depth -= 1;
        self.take(b")").map(|_| value)
    }

    fn number(&mut self) -> Parsed {
        let mut number = u32::from(self.take(b"0123456789")? - b'0');
        let is_zero = number == 0;
        while let Some(digit) = self.take(b"0123456789") {
            number = number.checked_mul(10)?.checked_add(u32::from(digit - b'0')).filter(|_| !is_zero)?;
        }
        self.numbers.push(number);
        Some(Some(number.into()))
    }
}
