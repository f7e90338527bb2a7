//! Compares code that a page quotes with the file that it is from.

use std::ops::Range;
use std::path::Path;

use gradus::files::read_named_to_string;

use super::text::comments;
use super::{Fault, Report};

/// Checks the code that a page in `folder` quotes; returns the report, and the page with the code as it is in the files.
pub(super) fn check(text: &str, folder: &Path) -> (Report, String) {
    let (mut report, mut corrected, mut at) = (Report::default(), String::new(), 0);
    for comment in comments(text) {
        let Some(source) = comment.text.trim().strip_prefix("code:") else { continue };
        let expected = source.trim().split_once(": ").ok_or_else(|| format!("expected `code: FILE: LINE`, got `code:{source}`"));
        let expected = expected.and_then(|(file, path)| {
            let code = read_named_to_string(&folder.join(file)).map_err(|error| error.to_string())?;
            item(&code, path).map_err(|part| format!("{file}: expected a line with `{part}`, got none"))
        });
        let what = match (expected, block(text, comment.place.end)) {
            (Err(problem), _) => problem,
            (_, None) => "expected a block of code below the comment, got none".into(),
            (Ok(expected), Some(place)) => {
                if text[place.clone()] == expected {
                    report.holds += 1;
                    continue;
                }
                corrected += &text[at..place.start];
                corrected += &expected;
                at = place.end;
                format!("expected the code of{source}, got other code")
            }
        };
        report.faults.push(Fault { line: 1 + text[..comment.place.start].matches('\n').count(), what });
    }
    corrected += &text[at..];
    (report, corrected)
}

/// Returns the place of the lines between the fences that begin directly after `from`.
fn block(text: &str, from: usize) -> Option<Range<usize>> {
    let open = text[from..].strip_prefix("\n```")?;
    let start = from + "\n```".len() + open.find('\n')? + 1;
    Some(start..start + text[start - 1..].find("\n```")?)
}

/// Returns an item of a file of code, from the line that contains `path` to the closing brace with the same indentation, without that
/// indentation. In `A > B`, the line is the first one with B after the first one with A. Returns the part of `path` that no line contains.
fn item<'a>(code: &str, path: &'a str) -> Result<String, &'a str> {
    let lines: Vec<&str> = code.lines().collect();
    let mut first = 0;
    for part in path.split(" > ") {
        let is_meant = |line: &&str| line.contains(part) && !line.trim_start().starts_with("//");
        first += lines[first..].iter().position(is_meant).ok_or(part)?;
    }
    let indentation = lines[first].len() - lines[first].trim_start().len();
    let is_end = |line: &&str| line.len() > indentation && line[..indentation].trim().is_empty() && line[indentation..].starts_with('}');
    let rest = if lines[first].ends_with([';', '}']) { 0 } else { 1 + lines[first + 1..].iter().position(is_end).ok_or(path)? };
    Ok(lines[first..=first + rest].iter().map(|line| format!("{}\n", line.get(indentation..).unwrap_or_default())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "/// fn b\nimpl A {\n    fn b() {\n        if c {\n            1\n        }\n\n        2\n    }\n}\nimpl D {\n    fn b() {\n        3\n    }\n}\nconst E: u8 = 1;\n";

    #[test]
    fn an_item_ends_at_its_brace() {
        assert_eq!(item(CODE, "fn b").unwrap(), "fn b() {\n    if c {\n        1\n    }\n\n    2\n}\n");
        assert_eq!(item(CODE, "impl D > fn b").unwrap(), "fn b() {\n    3\n}\n");
        assert_eq!(item(CODE, "const E").unwrap(), "const E: u8 = 1;\n");
        assert_eq!(item(CODE, "impl D > fn c"), Err("fn c"));
    }

    #[test]
    fn quoted_code_is_that_of_its_file() {
        let folder = gradus_testing::tempdir().unwrap();
        std::fs::write(folder.path().join("a.rs"), CODE).unwrap();
        let page = |block: &str| format!("text\n<!-- code: a.rs: impl D > fn b -->\n```rust,ignore\n{block}```\nmore\n");
        let right = page("fn b() {\n    3\n}\n");
        assert_eq!(check(&right, folder.path()), (Report { holds: 1, faults: vec![] }, right.clone()));
        for wrong in ["fn b() {\n    4\n}\n", ""] {
            let (report, corrected) = check(&page(wrong), folder.path());
            let what = "expected the code of a.rs: impl D > fn b, got other code".into();
            assert_eq!(report, Report { holds: 0, faults: vec![Fault { line: 2, what }] });
            assert_eq!(corrected, right);
        }
        for (page, what) in [
            ("<!-- code: a.rs -->\n```\n```\n", "expected `code: FILE: LINE`, got `code: a.rs`"),
            ("<!-- code: a.rs: fn c -->\n```\n```\n", "a.rs: expected a line with `fn c`, got none"),
            ("<!-- code: a.rs: fn b -->\ntext\n", "expected a block of code below the comment, got none"),
        ] {
            let (report, corrected) = check(page, folder.path());
            assert_eq!((report.faults[0].what.as_str(), corrected.as_str()), (what, page));
        }
    }
}
