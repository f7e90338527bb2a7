//! The queries of a page in a file beside it.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use gradus::Error;
use gradus::files::{read_named_to_string, read_to_string, replace};

use super::Fault;
use super::text::comments;

/// Returns the path of the file with the queries of a page.
fn beside(page: &Path) -> PathBuf {
    page.with_extension("sources")
}

/// Returns the text of a page with each query in a comment where its number stands, and the faults of the file with the queries.
pub(crate) fn read(page: &Path) -> Result<(String, Vec<Fault>), Error> {
    let text = read_named_to_string(page)?;
    match read_to_string(&beside(page)) {
        Ok(sources) => Ok(join(&text, &sources)),
        Err(Error::Io { source, .. }) if matches!(source.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok((text, Vec::new())),
        Err(error) => Err(error),
    }
}

/// Writes a page that has each query in a comment: the page, with a number for each query, and the file with the queries. If it is
/// interrupted, the page still has its queries.
pub(crate) fn write(page: &Path, text: &str) -> Result<(), Error> {
    let (short, sources) = split(text, &page.file_name().unwrap_or_default().to_string_lossy());
    let to = |path: &Path, text: &str| {
        let is_same = read_to_string(path).is_ok_and(|old| old == text);
        if is_same { Ok(()) } else { replace(path, text.as_bytes()).map_err(Error::io("write", path)) }
    };
    if short == text {
        return to(page, text);
    }
    if !(read_to_string(&beside(page)).is_ok_and(|old| old == sources)) {
        to(page, text)?;
        to(&beside(page), &sources)?;
    }
    to(page, &short)
}

/// Returns whether a comment is for the check of numbers, other than the ends of an unchecked part.
fn is_query(comment: &str) -> bool {
    comment.starts_with(['=', '~', '?', '|'])
}

fn exception(comment: &str) -> Option<&str> {
    Some(comment.trim().strip_prefix("not data:")?.trim())
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Begins a line after each semicolon and before each `and`.
fn folded(text: &str) -> String {
    one_line(text).replace("; ", ";\n    ").replace(" and ", "\n    and ")
}

/// Puts the queries of `sources` where their numbers stand in `text`, and the exceptions at its end.
fn join(text: &str, sources: &str) -> (String, Vec<Fault>) {
    let mut entries: Vec<String> = Vec::new();
    for line in sources.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match entries.last_mut() {
            Some(entry) if line.starts_with(' ') => *entry = format!("{entry} {}", line.trim()),
            _ => entries.push(line.to_owned()),
        }
    }
    let (exceptions, queries): (Vec<String>, Vec<String>) = entries.into_iter().partition(|entry| exception(entry).is_some());
    let mut faults = Vec::new();
    let mut known = BTreeMap::new();
    for query in &queries {
        match query.split_once(' ').map(|(number, query)| (number.parse::<usize>(), query)) {
            Some((Ok(number), query)) if is_query(query) => _ = known.insert(number, (query, false)),
            _ => faults.push(format!("expected a number and a query, or `not data: ...`, in the sources, got `{query}`")),
        }
    }
    let mut joined = String::new();
    let mut at = 0;
    for comment in comments(text) {
        if let Some((query, used)) = comment.text.parse().ok().and_then(|number: usize| known.get_mut(&number)) {
            joined += &text[at..comment.place.start];
            joined += &format!("<!--{query} -->");
            at = comment.place.end;
            *used = true;
        }
    }
    joined += &text[at..];
    exceptions.iter().for_each(|phrases| joined += &format!("<!-- {phrases} -->"));
    let unused = known.iter().filter(|(_, (_, used))| !used).map(|(number, _)| format!("expected `<!--{number}-->`, got none"));
    faults.extend(unused);
    (joined, faults.into_iter().map(|what| Fault { line: 1, what }).collect())
}

/// Takes the queries and the exceptions out of a page; returns the page with a number in place of each query, and the text of the file
/// with the queries.
fn split(text: &str, name: &str) -> (String, String) {
    let mut short = String::new();
    let (mut exceptions, mut queries) = (Vec::new(), Vec::new());
    let (mut at, mut is_unchecked) = (0, false);
    for comment in comments(text) {
        if let Some(phrases) = exception(comment.text) {
            short += &text[at..comment.place.start];
            at = comment.place.end;
            let begins_line = short.is_empty() || short.ends_with('\n');
            if begins_line && text[at..].starts_with('\n') {
                at += 1;
            } else if text[at..].starts_with(['\n', ' ']) || at == text.len() {
                short.truncate(short.trim_end_matches(' ').len());
            }
            let line = format!("not data: {}\n", one_line(phrases));
            if !exceptions.contains(&line) {
                exceptions.push(line);
            }
        } else if is_query(comment.text) && !is_unchecked {
            let (kind, query) = comment.text.split_at(1);
            queries.push(format!("{} {kind} {}\n", queries.len() + 1, folded(query)));
            short += &text[at..comment.place.start];
            short += &format!("<!--{}-->", queries.len());
            at = comment.place.end;
        }
        let word = comment.text.trim();
        is_unchecked = word.starts_with("unchecked:") || is_unchecked && word != "checked";
    }
    short += &text[at..];
    let head = format!("# Where the numbers of {name} come from: `gradus pages {name}` reads the tables again and compares.\n");
    (short, head + &exceptions.concat() + &queries.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# Page 2 of 3 <!-- not data: 2 of 3; 95 % -->\n\
        A ends at 498.6<!--= value return in t.csv where agent=A,\n last --> and B, <!-- a note -->\n\
        | 5 |\n<!--| 1: count in t.csv;\n     2: 7 -->\nmore.<!--? 1 < 2 and 2 < 3 --> 95 %\n\
        <!-- unchecked: by hand -->17<!--= 17 --><!-- checked -->\n<!-- not data: B, 4 -->\nend\n";

    #[test]
    fn queries_move_beside_the_page_and_back() {
        let (short, sources) = split(PAGE, "p.md");
        assert_eq!(
            short,
            "# Page 2 of 3\nA ends at 498.6<!--1--> and B, <!-- a note -->\n| 5 |\n<!--2-->\nmore.<!--3--> 95 %\n\
             <!-- unchecked: by hand -->17<!--= 17 --><!-- checked -->\nend\n"
        );
        let lines: Vec<&str> = sources.lines().skip(1).collect();
        assert_eq!(
            lines,
            [
                "not data: 2 of 3; 95 %",
                "not data: B, 4",
                "1 = value return in t.csv where agent=A, last",
                "2 | 1: count in t.csv;",
                "    2: 7",
                "3 ? 1 < 2",
                "    and 2 < 3"
            ]
        );
        let (joined, faults) = join(&short, &sources);
        assert_eq!(faults, []);
        assert!(joined.contains("498.6<!--= value return in t.csv where agent=A, last --> and B"), "{joined}");
        assert!(joined.ends_with("end\n<!-- not data: 2 of 3; 95 % --><!-- not data: B, 4 -->"), "{joined}");
        assert_eq!(split(&joined, "p.md"), (short, sources));
    }

    #[test]
    fn a_number_without_a_query_and_a_query_without_a_number_are_found() {
        let found = |sources: &str| join("a 5<!--1-->", sources).1.into_iter().map(|fault| fault.what).collect::<Vec<_>>();
        assert_eq!(found("1 = 5"), Vec::<String>::new());
        assert_eq!(found("1 = 5\n2 = 6"), ["expected `<!--2-->`, got none"]);
        assert_eq!(found("1 = 5\nx"), ["expected a number and a query, or `not data: ...`, in the sources, got `x`"]);
        assert_eq!(join("a 5<!--1-->", "").0, "a 5<!--1-->");
    }

    /// Whatever moment an interruption comes, the page and the file give the whole page again.
    #[test]
    fn a_page_half_written_is_whole() {
        let folder = gradus_testing::tempdir().unwrap();
        let page = folder.path().join("p.md");
        write(&page, "1<!--= 1 -->").unwrap();
        std::fs::write(&page, "1<!--= 1 --> 2<!--= 2 -->").unwrap();
        write(&page, &read(&page).unwrap().0).unwrap();
        assert_eq!(std::fs::read_to_string(&page).unwrap(), "1<!--1--> 2<!--2-->");
        assert_eq!(read(&page).unwrap(), ("1<!--= 1 --> 2<!--= 2 -->".into(), vec![]));
    }
}
