//! Checks the text of a page against its CSV tables.

use std::ops::Range;

use super::query::{Answer, Tables};
use super::text::{Comment, Number, comments, numbers, occurrences, styled, visible};
use super::{Fault, Report};

/// Checks a page against its CSV tables; returns the report, and the page with corrected numbers.
pub(super) fn check(text: &str, tables: &mut Tables) -> (Report, String) {
    let comments = comments(text);
    let visible = visible(text, &comments);
    let mut page = Page { text, numbers: numbers(text, &visible), report: Report::default(), changes: Vec::new() };
    for (comment, phrases) in comments.iter().filter_map(|comment| Some((comment, comment.text.trim().strip_prefix("not data:")?))) {
        for phrase in phrases.split(';').map(one_line).filter(|phrase| !phrase.is_empty()) {
            if !page.exempt_phrase(&phrase, &visible) {
                page.fault(comment.place.start, format!("not data: expected `{phrase}` on the page, got none"));
            }
        }
    }
    let mut unchecked: Option<usize> = None;
    for comment in &comments {
        let (kind, body) = comment.text.split_at(comment.text.chars().next().map_or(0, char::len_utf8));
        if let Some(since) = unchecked {
            if comment.text.trim() == "checked" {
                page.exempt(since..comment.place.start);
                unchecked = None;
            }
            continue;
        }
        let body = &one_line(body);
        match kind {
            "=" => page.numbers(comment, body, tables, false),
            "~" => page.numbers(comment, body, tables, true),
            "?" => match tables.holds(body) {
                Ok(true) => page.report.holds += 1,
                Ok(false) => page.fault(comment.place.start, format!("the claim does not hold: {body}")),
                Err(problem) => page.fault(comment.place.start, problem),
            },
            "|" => page.table(comment, body, tables),
            _ if comment.text.parse::<usize>().is_ok() => {
                page.fault(comment.place.start, format!("expected a query that begins with `{}` in the sources, got none", comment.text));
            }
            _ if comment.text.trim().starts_with("unchecked:") => unchecked = Some(comment.place.end),
            _ => {
                let known = ["not data:", "checked"].iter().any(|word| comment.text.trim().starts_with(word));
                let looks_like = comment.text.trim_start().starts_with(['=', '~', '?', '|'])
                    || ["not data", "not-data", "unchecked"].iter().any(|word| comment.text.trim_start().to_lowercase().starts_with(word));
                if looks_like && !known {
                    let what = "expected `<!--=`, `<!--~`, `<!--?`, `<!--|`, `<!-- not data: ...` or `<!-- unchecked: ...`, got";
                    page.fault(
                        comment.place.start,
                        format!("{what} `<!--{}`", one_line(comment.text).chars().take(30).collect::<String>()),
                    );
                }
            }
        }
    }
    if let Some(since) = unchecked {
        page.fault(since, "expected `<!-- checked -->` after `<!-- unchecked: ... -->`, got the end of the page".into());
    }
    page.finish()
}

struct Page<'a> {
    text: &'a str,
    numbers: Vec<Number>,
    report: Report,
    changes: Vec<(Range<usize>, String)>,
}

impl Page<'_> {
    fn fault(&mut self, at: usize, what: String) {
        let line = 1 + self.text[..at].matches('\n').count();
        self.report.faults.push(Fault { line, what });
    }

    fn exempt(&mut self, part: Range<usize>) {
        self.numbers.iter_mut().filter(|number| part.contains(&number.place.start)).for_each(|number| number.has_source = true);
    }

    /// Marks the numbers of a phrase as numbers that need no source, everywhere on the page, also if the phrase is broken across lines.
    /// Returns whether the phrase was found.
    fn exempt_phrase(&mut self, phrase: &str, visible: &str) -> bool {
        let places: Vec<Range<usize>> = occurrences(visible, phrase);
        for place in &places {
            self.exempt(place.clone());
        }
        !places.is_empty()
    }

    /// Returns the index of the number directly before the comment at `at`.
    fn before(&self, at: usize) -> Option<usize> {
        let number = self.numbers.iter().rposition(|number| number.place.end <= at)?;
        self.text[self.numbers[number].place.end..at].trim_matches(|c: char| c.is_whitespace() || c == '*').is_empty().then_some(number)
    }

    /// Returns the indices of the numbers before `at` that are written in digits and have no source yet.
    fn without_source(&self, at: usize) -> Vec<usize> {
        let is_free = |number: &usize| {
            let Number { place, in_words, has_source, .. } = &self.numbers[*number];
            place.end <= at && !in_words && !has_source
        };
        (0..self.numbers.len()).filter(is_free).collect()
    }

    /// Checks the numbers that a comment covers. A comment with several expressions, or on its own line, covers the last numbers in digits
    /// before it that have no source yet, one for each expression.
    fn numbers(&mut self, comment: &Comment, questions: &str, tables: &mut Tables, about: bool) {
        let at = comment.place.start;
        let questions: Vec<&str> = questions.split(';').map(str::trim).filter(|question| !question.is_empty()).collect();
        // a comment on its own line covers the last number without a source, even if other words follow the number
        let begins_line = self.text[..at].rsplit('\n').next().is_some_and(|line| line.trim().is_empty());
        if let [question] = questions.as_slice()
            && (!begins_line || question.starts_with("list "))
        {
            return self.number(comment, question, tables, about);
        }
        let before = self.without_source(at);
        let Some(first) = before.len().checked_sub(questions.len()) else {
            let what = format!("expected {} numbers without a source before the comment, got {}", questions.len(), before.len());
            return self.fault(at, what);
        };
        for (number, question) in before[first..].iter().zip(questions) {
            match tables.answer(question) {
                Ok(Answer::Number(value)) => self.compare(*number, value, question, about),
                Ok(other) => self.fault(at, format!("expected a query for a number, got {other:?}: {question}")),
                Err(problem) => self.fault(at, format!("{problem}: {question}")),
            }
        }
    }

    fn number(&mut self, comment: &Comment, question: &str, tables: &mut Tables, about: bool) {
        let at = comment.place.start;
        match tables.answer(question) {
            Err(problem) => self.fault(at, problem),
            Ok(Answer::Text(text)) => self.fault(at, format!("expected a query for a number, got one for \"{text}\"")),
            Ok(Answer::Number(value)) => match self.before(at) {
                Some(number) => self.compare(number, value, question, about),
                None => self.fault(at, format!("expected a number before the comment for {}, got none", one_line(question))),
            },
            Ok(Answer::List(values)) => {
                let before = self.without_source(at);
                let Some(first) = before.len().checked_sub(values.len()).filter(|_| self.before(at).is_some()) else {
                    return self.fault(at, format!("expected {} numbers before the comment for {}", values.len(), one_line(question)));
                };
                values.into_iter().zip(&before[first..]).for_each(|(value, number)| self.compare(*number, value, question, about));
            }
        }
    }

    /// Checks whether the number with this index is `value`, rounded. If not, notes a fault and, for a number in digits, a correction.
    fn compare(&mut self, number: usize, value: f64, question: &str, about: bool) {
        let Number { place, digits, value: says, unit, decimals, zeros, in_words, has_source } = &mut self.numbers[number];
        *has_source = true;
        let expected = value / *unit;
        let last = if about { 10f64.powi(*zeros as i32 - *decimals as i32) } else { 10f64.powi(-(*decimals as i32)) };
        if (expected - *says).abs() <= 0.5 * last * (1.0 + 1e-9) {
            self.report.holds += 1;
            return;
        }
        let shown = format!("{:.*}", (*decimals).min(300), (expected / last).round() * last);
        let old = self.text[digits.clone()].to_owned();
        let (at, digits, in_words) = (place.start, digits.clone(), *in_words);
        if !in_words {
            self.changes.push((digits, styled(&shown, &old)));
        }
        self.fault(at, format!("says {old}, the tables say {shown}: {}", one_line(question)));
    }

    /// Checks the table above a comment, row by row.
    fn table(&mut self, comment: &Comment, body: &str, tables: &mut Tables) {
        let at = comment.place.start;
        let mut columns = Vec::new();
        for part in body.split(';').map(str::trim).filter(|part| !part.is_empty()) {
            let parsed = part.split_once(':').and_then(|(number, questions)| Some((number.trim().parse::<usize>().ok()?, questions)));
            let Some((column, questions)) = parsed.filter(|(column, _)| *column > 0) else {
                return self.fault(at, format!("expected `COLUMN: EXPRESSION, ...`, got `{}`", one_line(part)));
            };
            columns.push((column, split_questions(questions)));
        }
        let rows = rows_above(self.text, at);
        if rows.is_empty() {
            return self.fault(at, "expected a table above the comment, got none".into());
        }
        for row in rows {
            let cells = cells(self.text, row);
            for (column, questions) in &columns {
                let Some(cell) = cells.get(*column - 1).cloned() else {
                    let what = format!("expected at least {column} columns in the table above, got {}", cells.len());
                    return self.fault(at, what);
                };
                let filled = |question: &String| {
                    (1..=cells.len()).fold(question.clone(), |question, n| {
                        question.replace(&format!("{{{n}}}"), &plain(&self.text[cells[n - 1].clone()]))
                    })
                };
                let questions: Vec<String> = questions.iter().map(filled).collect();
                if let ("never" | "", [question]) = (self.text[cell.clone()].trim(), &questions[..]) {
                    // an empty cell of the table says the same
                    match tables.answer(&question.replacen("value", "text", 1)) {
                        Ok(Answer::Text(text)) if text.is_empty() => self.report.holds += 1,
                        Ok(Answer::Text(text)) => {
                            self.fault(cells[0].start, format!("says nothing or never, the tables say {text}: {}", one_line(question)))
                        }
                        Ok(other) => self.fault(cells[0].start, format!("expected a query for a number, got {other:?}")),
                        Err(problem) => self.fault(cells[0].start, format!("{problem} ({})", one_line(question))),
                    }
                    continue;
                }
                let inside: Vec<usize> = (0..self.numbers.len()).filter(|n| cell.contains(&self.numbers[*n].place.start)).collect();
                if inside.len() != questions.len() {
                    let (got, cell) = (inside.len(), self.text[cell.clone()].trim().to_owned());
                    self.fault(cells[0].start, format!("column {column}: expected {} numbers, got {got} in `{cell}`", questions.len()));
                    continue;
                }
                for (number, question) in inside.into_iter().zip(&questions) {
                    match tables.answer(question) {
                        Ok(Answer::Number(value)) => self.compare(number, value, question, false),
                        Ok(other) => self.fault(cells[0].start, format!("expected a query for a number, got {other:?}")),
                        Err(problem) => self.fault(cells[0].start, format!("{problem} ({})", one_line(question))),
                    }
                }
            }
        }
    }

    fn finish(mut self) -> (Report, String) {
        for number in self.numbers.iter().filter(|number| !number.has_source && !number.in_words) {
            let line = 1 + self.text[..number.place.start].matches('\n').count();
            let what = format!("{} has no source: neither `<!--= ... -->` nor `<!-- not data: ... -->`", &self.text[number.place.clone()]);
            self.report.faults.push(Fault { line, what });
        }
        self.report.faults.sort_by_key(|fault| fault.line);
        let mut corrected = self.text.to_owned();
        self.changes.sort_by_key(|(place, _)| place.start);
        self.changes.iter().rev().for_each(|(place, text)| corrected.replace_range(place.clone(), text));
        (self.report, corrected)
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the text of a cell without Markdown marks.
fn plain(cell: &str) -> String {
    cell.replace(['`', '*'], "").trim().to_owned()
}

/// Splits the expressions of a column. A comma separates expressions if an opening parenthesis, or a kind of query that gives a number,
/// follows it; otherwise it belongs to the conditions of a query.
fn split_questions(text: &str) -> Vec<String> {
    let kinds = ["value ", "mean ", "median ", "iqm ", "std ", "min ", "max ", "sum ", "count ", "distinct ", "("];
    let mut all: Vec<String> = Vec::new();
    for part in text.split(',') {
        let begins = kinds.iter().any(|kind| part.trim_start().starts_with(kind));
        match all.last_mut() {
            Some(last) if !begins => {
                last.push(',');
                last.push_str(part);
            }
            _ => all.push(part.to_owned()),
        }
    }
    all
}

/// Returns the rows of the table that ends above `at`, without its header and the line of dashes.
fn rows_above(text: &str, at: usize) -> Vec<Range<usize>> {
    let mut rows = Vec::new();
    let mut end = text[..at].trim_end().len();
    while end > 0 {
        let start = text[..end].rfind('\n').map_or(0, |newline| newline + 1);
        if !text[start..end].trim_start().starts_with('|') {
            break;
        }
        rows.push(start..end);
        end = start.saturating_sub(1);
    }
    rows.reverse();
    if rows.len() > 2 { rows.split_off(2) } else { Vec::new() }
}

fn cells(text: &str, row: Range<usize>) -> Vec<Range<usize>> {
    let bars: Vec<usize> = text[row.clone()].match_indices('|').map(|(at, _)| row.start + at).collect();
    bars.windows(2).map(|pair| pair[0] + 1..pair[1]).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn checked(text: &str) -> (Report, String) {
        let dir = gradus_testing::tempdir().unwrap();
        let table = "agent,env,seed,step,return\nA,cartpole,1,0,9\nA,cartpole,1,25600,498.64\nB,cartpole,2,0,9\nB,cartpole,2,25600,-0.85\n";
        fs::write(dir.path().join("t.csv"), table).unwrap();
        check(text, &mut Tables::new(dir.path()))
    }

    fn faults(text: &str) -> Vec<String> {
        checked(text).0.faults.into_iter().map(|fault| format!("{}: {}", fault.line, fault.what)).collect()
    }

    const A: &str = "<!--= value return in t.csv where agent=A, last -->";

    #[test]
    fn a_correct_page_has_no_faults() {
        let page = "# Page 2 of 3 <!-- not data: 2 of 3; 95 % -->\n\
            A ends at 498.6<!--= value return in t.csv where agent=A, last -->, or **498.64**<!--= value return in t.csv where agent=A, last -->,\n\
            B at −85 %<!--= value return in t.csv where agent=B, last --> after 25 600<!--= max step in t.csv --> steps, about 26k<!--~ max step in t.csv -->\n\
            or 26 000<!--~ max step in t.csv -->. Two<!--= distinct agent in t.csv --> agents, seeds 1 and 2<!--= list seed in t.csv where last -->.\n\
            In CartPole-v1 of 2026-11-21 `x = 7` [eighth](9.md) 64-64 a 95 % interval.<!--? 1 < 2\nand\n2 < 3 -->\n\
            \n    cargo run 12\n\n![Figure 3](a.png)\n```\n13\n```\n<!-- unchecked: by hand -->17 and 18.5<!-- checked -->\n";
        let (report, corrected) = checked(page);
        assert_eq!(report, Report { holds: 10, faults: Vec::new() });
        assert_eq!(corrected, page);
    }

    /// The faults are wrong numbers (one in words, one in a list and one compared by `<!--~`), a comment without a number directly before
    /// it, a wrong claim, a number without a source and an unknown column.
    #[test]
    fn faults_are_found_with_their_line() {
        assert_eq!(
            faults(&format!("\nends at 498.7{A}")),
            ["2: says 498.7, the tables say 498.6: value return in t.csv where agent=A, last"]
        );
        assert_eq!(faults("Three<!--= distinct agent in t.csv --> agents"), ["1: says Three, the tables say 2: distinct agent in t.csv"]);
        assert_eq!(
            faults("3 agents<!--= distinct agent in t.csv -->")[0],
            "1: expected a number before the comment for distinct agent in t.csv, got none"
        );
        assert_eq!(
            faults("seeds 1 and 3<!--= list seed in t.csv where last -->"),
            ["1: says 3, the tables say 2: list seed in t.csv where last"]
        );
        assert_eq!(
            faults("B wins.<!--? value return in t.csv where agent=A, last < 0 -->"),
            ["1: the claim does not hold: value return in t.csv where agent=A, last < 0"]
        );
        assert_eq!(faults("it fell to 71."), ["1: 71 has no source: neither `<!--= ... -->` nor `<!-- not data: ... -->`"]);
        assert_eq!(faults("about 25 000<!--~ max step in t.csv -->"), ["1: says 25 000, the tables say 26000: max step in t.csv"]);
        assert_eq!(faults("5<!--= mean reward in t.csv -->")[0], "1: t.csv: expected one of agent, env, seed, step, return, got `reward`");
    }

    /// Mistyped comments are not ignored, and the phrase `seed 5` does not exempt the number in `seed 500`.
    #[test]
    fn mistyped_comments_are_found() {
        assert_eq!(faults("x <!--> y <!---> z"), Vec::<String>::new());
        assert_eq!(faults("B wins.<!-- ? 1 > 2 -->").len(), 1);
        assert_eq!(faults("a <!-- not-data: b -->").len(), 1);
        assert_eq!(faults("a <!-- note: nothing of ours --> <!-- dates are UTC -->"), Vec::<String>::new());
        assert_eq!(
            faults("a <!-- unchecked: why -->17")[0],
            "1: expected `<!-- checked -->` after `<!-- unchecked: ... -->`, got the end of the page"
        );
        assert_eq!(faults("a = 0.1 <!-- not data: a = 0 -->").len(), 2, "0.1 has no source, and the phrase is not found");
        assert_eq!(faults("seed 500 <!-- not data: seed 5 -->").len(), 2);
        assert_eq!(faults("the\n95 % interval (a = 0), <!-- not data: 95 % interval; a = 0 -->"), Vec::<String>::new());
    }

    #[test]
    fn tables_are_checked_row_by_row() {
        let page = |a: &str| {
            format!(
                "| agent | steps | return (first) |\n|---|---|---|\n| A | 25 600 | {a} (9) |\n| `B` | 25 600 | −0.85 (9) |\n\n\
                 <!--| 2: value step in t.csv where agent={{1}}, last; 3: value return in t.csv where agent={{1}}, last,\n\
                 value return in t.csv where agent={{1}}, first -->\n"
            )
        };
        assert_eq!(checked(&page("498.6")).0, Report { holds: 6, faults: Vec::new() });
        assert_eq!(faults(&page("499.6")), ["3: says 499.6, the tables say 498.6: value return in t.csv where agent=A, last"]);
        assert_eq!(faults(&page("498.6 1"))[0], "3: column 3: expected 2 numbers, got 3 in `498.6 1 (9)`");
        assert_eq!(faults("<!--| 2: 5 -->"), ["1: expected a table above the comment, got none"]);
    }

    #[test]
    fn a_cell_is_empty_or_says_never_where_the_table_has_an_empty_cell() {
        let table = "agent,statistic,value\nA,solved,\nB,solved,7\n";
        let checked = |row: &str| {
            let dir = gradus_testing::tempdir().unwrap();
            fs::write(dir.path().join("t.csv"), table).unwrap();
            let page = format!("| agent | solved |\n|---|---|\n{row}\n\n<!--| 2: value value in t.csv where agent={{1}} -->\n");
            check(&page, &mut Tables::new(dir.path())).0
        };
        assert_eq!(checked("| A | never |"), Report { holds: 1, faults: Vec::new() });
        assert_eq!(checked("| A |  |"), Report { holds: 1, faults: Vec::new() });
        for cell in ["never", ""] {
            let problem = "says nothing or never, the tables say 7: value value in t.csv where agent=B";
            assert_eq!(checked(&format!("| B | {cell} |")).faults[0].what, problem);
        }
        assert_eq!(checked("| A | 7 |").faults[0].what, "t.csv: expected a number, got `` (value value in t.csv where agent=A)");
    }

    /// One comment after a paragraph gives the sources of all its numbers, in order.
    #[test]
    fn a_paragraph_may_have_one_comment() {
        let page = |b: &str| {
            format!(
                "A, number 1, ends at 498.6,\nB at {b} after 25 600 steps.\n<!--= value return in t.csv where agent=A, last;\n\
                     value return in t.csv where agent=B, last; max step in t.csv -->\n<!-- not data: number 1 -->"
            )
        };
        assert_eq!(checked(&page("-0.85")).0, Report { holds: 3, faults: Vec::new() });
        assert_eq!(faults(&page("-0.95")), ["2: says -0.95, the tables say -0.85: value return in t.csv where agent=B, last"]);
        assert_eq!(checked("after 25 600 steps of both\n<!--= max step in t.csv -->").0.holds, 1);
        assert_eq!(faults("5 <!--= 5; 6 -->")[0], "1: expected 2 numbers without a source before the comment, got 1");
    }

    #[test]
    fn corrected_numbers_keep_their_style() {
        let (_, corrected) =
            checked("a 1<!--= max step in t.csv --> b 24 000<!--= max step in t.csv --> c −1.2<!--= min return in t.csv -->");
        assert_eq!(corrected, "a 25600<!--= max step in t.csv --> b 25 600<!--= max step in t.csv --> c −0.9<!--= min return in t.csv -->");
    }
}
