//! Finds comments, prose, words and numbers in the text of a page.

use std::ops::Range;

/// A number of the page.
pub(super) struct Number {
    /// Byte range, including the unit.
    pub(super) place: Range<usize>,
    /// Byte range of the digits and their sign, without the unit.
    pub(super) digits: Range<usize>,
    /// Value in the unit.
    pub(super) value: f64,
    /// Factor of the unit: 0.01 for `%`.
    pub(super) unit: f64,
    pub(super) decimals: usize,
    /// Number of zeros at the end of the digits; 0 if there are decimals.
    pub(super) zeros: usize,
    pub(super) in_words: bool,
    pub(super) has_source: bool,
}

/// A comment; `text` is without `<!--` and `-->`.
pub(super) struct Comment<'a> {
    pub(super) place: Range<usize>,
    pub(super) text: &'a str,
}

const WORDS: [&str; 13] = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];

/// Returns where `phrase` occurs as whole words, also across line breaks.
pub(super) fn occurrences(text: &str, phrase: &str) -> Vec<Range<usize>> {
    let wanted: Vec<&str> = phrase.split_whitespace().collect();
    let mut words = Vec::new();
    let mut start = None;
    for (at, letter) in text.char_indices().chain([(text.len(), ' ')]) {
        if !letter.is_whitespace() {
            start.get_or_insert(at);
        } else if let Some(from) = start.take() {
            words.push(from..at);
        }
    }
    let mark = |c: char| !c.is_alphanumeric() && !"-+−%".contains(c);
    let fits = |run: &&[Range<usize>]| {
        run.iter().zip(&wanted).all(|(word, wanted)| {
            let word = &text[word.clone()];
            word == *wanted || word.trim_matches(mark) == wanted.trim_matches(mark) && !wanted.trim_matches(mark).is_empty()
        })
    };
    words.windows(wanted.len().max(1)).filter(fits).map(|run| run[0].start..run[run.len() - 1].end).collect()
}

/// Writes `number` in the style of `old`: with the same minus sign, a plus sign if `old` has one, and spaces between thousands if
/// `old` has them.
pub(super) fn styled(number: &str, old: &str) -> String {
    let (sign, digits) = number.strip_prefix('-').map_or(("", number), |digits| ("-", digits));
    let sign = if sign == "-" && old.contains('−') {
        "−"
    } else if sign.is_empty() && old.starts_with('+') {
        "+"
    } else {
        sign
    };
    let (whole, rest) = digits.split_once('.').map_or((digits, String::new()), |(whole, rest)| (whole, format!(".{rest}")));
    if !old.contains(' ') {
        return format!("{sign}{whole}{rest}");
    }
    let groups: Vec<&str> = {
        let first = whole.len() % 3;
        let head = (first > 0).then(|| &whole[..first]);
        head.into_iter().chain((first..whole.len()).step_by(3).map(|at| &whole[at..at + 3])).collect()
    };
    format!("{sign}{}{rest}", groups.join(" "))
}

/// Returns all comments of a page.
pub(super) fn comments(text: &str) -> Vec<Comment<'_>> {
    let mut all = Vec::new();
    let mut at = 0;
    while let Some(start) = text[at..].find("<!--").map(|found| at + found) {
        let inside = start + 4;
        let end = text[inside..].find("-->").map_or(text.len(), |found| inside + found);
        all.push(Comment { place: start..(end + 3).min(text.len()), text: &text[inside..end] });
        at = (end + 3).min(text.len());
    }
    all
}

/// Returns the page with every byte blanked that is not prose: comments, code, pictures and link targets.
pub(super) fn visible(text: &str, comments: &[Comment]) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let mut blank = |part: Range<usize>| bytes[part].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
    comments.iter().for_each(|comment| blank(comment.place.clone()));
    let is_comment = |at: usize| comments.iter().any(|comment| comment.place.contains(&at));
    let (mut at, mut in_fence) = (0, false);
    for line in text.split_inclusive('\n') {
        let is_fence = line.trim_start().starts_with("```");
        if in_fence || is_fence || line.starts_with("    ") {
            blank(at..at + line.len());
        } else {
            let marks: Vec<usize> = line.match_indices('`').map(|(mark, _)| at + mark).filter(|mark| !is_comment(*mark)).collect();
            marks.as_chunks::<2>().0.iter().for_each(|[from, to]| blank(*from..to + 1));
            for (target, _) in line.match_indices("](") {
                let end = line[target..].find(')').map_or(line.len(), |end| target + end);
                blank(at + target + 1..at + end);
            }
            for (picture, _) in line.match_indices("![") {
                let end = line[picture..].find(']').map_or(line.len(), |end| picture + end);
                blank(at + picture..at + end);
            }
        }
        in_fence ^= is_fence;
        at += line.len();
    }
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Returns the byte ranges of the words of a text, without the punctuation around them.
fn words(text: &str) -> Vec<Range<usize>> {
    let mut all = Vec::new();
    let mut start = None;
    for (at, letter) in text.char_indices().chain([(text.len(), ' ')]) {
        if !(letter.is_whitespace() || letter == '|') {
            start.get_or_insert(at);
        } else if let Some(from) = start.take() {
            let word = &text[from..at];
            let front = word.len() - word.trim_start_matches(|c: char| "([{*_\"'“".contains(c)).len();
            let back = word.trim_end_matches(|c: char| ")]}*_\"'”,;:.!?".contains(c)).len();
            if front < back {
                all.push(from + front..from + back);
            }
        }
    }
    all
}

/// Parses digits with at most one point and an optional sign; returns the value and the number of decimals.
fn parse(word: &str) -> Option<(f64, usize)> {
    let (minus, digits) = match word.chars().next()? {
        '-' | '−' => (true, word.trim_start_matches(['-', '−'])),
        '+' => (false, &word[1..]),
        _ => (false, word),
    };
    let is_number = digits.starts_with(|c: char| c.is_ascii_digit()) && digits.chars().all(|c| c.is_ascii_digit() || c == '.');
    let value: f64 = is_number.then(|| digits.parse().ok()).flatten()?;
    Some((if minus { -value } else { value }, digits.split_once('.').map_or(0, |(_, decimals)| decimals.len())))
}

pub(super) fn numbers(text: &str, visible: &str) -> Vec<Number> {
    let words = words(visible);
    let mut all = Vec::new();
    let mut next = 0;
    while let Some(word) = words.get(next).cloned() {
        next += 1;
        let written = &visible[word.clone()];
        if let Some(number) = WORDS.iter().position(|known| written.eq_ignore_ascii_case(known)) {
            all.push(Number {
                place: word.clone(),
                digits: word,
                value: number as f64,
                unit: 1.0,
                decimals: 0,
                zeros: 0,
                in_words: true,
                has_source: false,
            });
            continue;
        }
        let (bare, mut unit) = match written.char_indices().next_back() {
            Some((at, '%')) => (&written[..at], 0.01),
            Some((at, 'k')) => (&written[..at], 1e3),
            Some((at, 'M')) => (&written[..at], 1e6),
            _ => (written, 1.0),
        };
        let Some((mut value, decimals)) = parse(bare) else { continue };
        let mut digits = word.start..word.start + bare.len();
        let mut place = word;
        let follows = |word: &Range<usize>, end: usize| visible[end..word.start] == *" ";
        // spaces between thousands, as in 490 000
        if unit == 1.0 && decimals == 0 && value.abs() < 1000.0 {
            while let Some(more) = words.get(next).filter(|more| {
                follows(more, digits.end) && more.len() == 3 && visible[(*more).clone()].bytes().all(|byte| byte.is_ascii_digit())
            }) {
                let group: f64 = visible[more.clone()].parse().unwrap_or(0.0);
                value = value * 1000.0 + group.copysign(value);
                (digits.end, place.end) = (more.end, more.end);
                next += 1;
            }
        }
        if let Some(word) = words.get(next).filter(|word| follows(word, place.end)) {
            let of_word = match &visible[word.clone()] {
                "%" => 0.01,
                "million" => 1e6,
                "billion" => 1e9,
                _ => 0.0,
            };
            if of_word != 0.0 {
                (unit, place.end) = (of_word, word.end);
                next += 1;
            }
        }
        let written: String = text[digits.clone()].chars().filter(char::is_ascii_digit).collect();
        let zeros = if decimals == 0 { written.len() - written.trim_end_matches('0').len() } else { 0 };
        all.push(Number { place, digits, value, unit, decimals, zeros, in_words: false, has_source: false });
    }
    all
}
