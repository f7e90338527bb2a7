//! Pages that quote numbers from tables. Each number carries, in a comment that readers do not see, the query that it is the answer of, and
//! `gradus pages` asks the tables again.
//!
//! ```text
//! A2C ends at 498.6<!--= mean return in results.csv where agent=A2C, last -->, and 5<!--= value value in summary.csv where
//! agent=A2C, statistic=fallen_runs --> of its seeds, 1, 3, 4, 7 and 9<!--= list text in summary.csv where agent=A2C,
//! statistic=fallen_runs -->, fall on the way.<!--? mean return in results.csv where agent=A2C, last < 500 -->
//! ```
//!
//! | comment | what is checked |
//! | --- | --- |
//! | `<!--= EXPRESSION -->` | the number before it, to its last digit. `80 %` is 0.8, `25 million` and `490k` are what they say, and `five` is 5 |
//! | `<!--= EXPRESSION; EXPRESSION; ... -->` | the last numbers before it that have no source yet, in their order: one comment for a paragraph. So is one expression on a line of its own |
//! | `<!--~ EXPRESSION -->` | the same, to its last digit that is not 0: about 25 000 |
//! | `<!--= list COLUMN in ... -->` | as many numbers before it as the list has, in its order |
//! | `<!--? EXPRESSION > EXPRESSION and ... -->` | a claim: `<`, `>`, `<=`, `>=`, `=` or `!=` |
//! | `<!--\| 3: EXPRESSION, EXPRESSION; 4: EXPRESSION -->` | below a table: the numbers in these columns of every row; `{1}` is the text of the row's first cell |
//! | `<!-- not data: 95 %; figure 2.1 -->` | phrases whose numbers come from no table |
//! | `<!-- unchecked: REASON -->` to `<!-- checked -->` | a part of the page whose numbers come from no table |
//!
//! A number in digits without any of these is an error, so that none is forgotten; a count in words is checked where a comment follows it. Code, links, pictures, and words that are not numbers alone
//! (`CartPole-v1`, `2026-11-21`, `64-64`) need nothing. An expression is a query, or arithmetic with `+ - * / ( )` on queries and numbers. A
//! query is `KIND COLUMN in FILE where CONDITION, CONDITION, ...`; the file lies beside the page.
//!
//! | kind | answer |
//! | --- | --- |
//! | `value` | the number in the only row that is left |
//! | `mean`, `median`, `iqm`, `std`, `min`, `max`, `sum` | of the column; `std` is the sample standard deviation |
//! | `count` (without a column), `distinct` | how many rows there are, how many different cells |
//! | `text` | the text in the only row, for claims |
//! | `list` | all numbers of the column; a cell may hold several |
//!
//! `KIND COLUMN by OTHER in FILE` takes the mean of the rows that agree in the column OTHER first, so that each of these groups counts once.
//!
//! A condition is `COLUMN = TEXT`, `!=`, `<`, `>`, `<=`, `>=`, or `last` or `first`: the last or first row of each run (agent, env, seed).
//! Capital letters do not count, an environment has any of its names, and a text with spaces stands in quotation marks.

mod page;
mod query;
mod text;

use std::path::Path;

use crate::Error;
use crate::files::{read, replace};
use query::Tables;

/// What is wrong with a page.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong, in one line.
    pub what: String,
}

/// How a page stands against its tables.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Numbers and claims that hold.
    pub holds: usize,
    /// What does not, in the order of the page.
    pub faults: Vec<Fault>,
}

/// Holds the page at `path` against the tables that it quotes. With `write`, numbers that differ are replaced by those of the tables, in the
/// page's own digits, and the report is of the page as it is then; claims and numbers in words are for a person to mend.
pub fn check(path: &Path, write: bool) -> Result<Report, Error> {
    let text = String::from_utf8(read(path)?).map_err(|_| Error::folder(path, "expected text in UTF-8, got other bytes"))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut tables = Tables::new(folder);
    let (report, mended) = page::check(&text, &mut tables);
    if !write || mended == text {
        return Ok(report);
    }
    replace(path, mended.as_bytes()).map_err(Error::io("write", path))?;
    Ok(page::check(&mended, &mut tables).0)
}
