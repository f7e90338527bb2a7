//! The check of the numbers and the code that Markdown pages quote (`gradus pages`). After a number, an HTML comment, which readers do not see, has the
//! query that gives the number. `gradus pages` runs the queries again.
//!
//! ```text
//! A2C ends at 498.6<!--= mean return in results.csv where agent=A2C, last -->, and 5<!--= value value in summary.csv where
//! agent=A2C, statistic=fallen_runs --> of its seeds, 1, 3, 4, 7 and 9<!--= list text in summary.csv where agent=A2C,
//! statistic=fallen_runs -->, fall on the way.<!--? mean return in results.csv where agent=A2C, last < 500 -->
//! ```
//!
//! | comment | what is checked |
//! | --- | --- |
//! | `<!--= EXPRESSION -->` | the number before the comment, to its last digit. `80 %` is 0.8, `490k` is 490 000, `25 million` is 25 000 000, `five` is 5 |
//! | `<!--= EXPRESSION; EXPRESSION; ... -->` | the last numbers before the comment that no earlier comment and no `not data` covers, one per expression, in order; one comment is then enough for a paragraph. A comment on its own line may also have a single expression |
//! | `<!--~ EXPRESSION -->` | like `<!--=`, but the number is compared only to its last digit that is not 0, as in "about 25 000" |
//! | `<!--= list COLUMN in ... -->` | the last numbers before the comment, one for each number of the list, in order |
//! | `<!--? EXPRESSION > EXPRESSION and ... -->` | a claim with `<`, `>`, `<=`, `>=`, `=` or `!=` |
//! | `<!--\| 3: EXPRESSION, EXPRESSION; 4: EXPRESSION -->` | below a table: the numbers in these columns of every row; `{1}` is the text of the row's first cell. A cell `never` stands for an empty cell of the table |
//! | `<!-- not data: 95 %; figure 2.1 -->` | nothing in these phrases, because their numbers do not come from a table |
//! | `<!-- unchecked: REASON -->` to `<!-- checked -->` | nothing in this part of the page, because its numbers do not come from a table |
//!
//! A number in digits that none of these comments covers is an error. A number in words is checked only if a comment follows it. Code, link
//! targets, images, and words that contain more than a number (`CartPole-v1`, `2026-11-21`, `64-64`) are ignored. An expression is a query,
//! a text in quotation marks, or arithmetic with `+ - * / ( )` on queries and numbers. A query is
//! `KIND COLUMN in FILE where CONDITION, CONDITION, ...`; FILE is relative to the folder of the page.
//!
//! | kind | answer |
//! | --- | --- |
//! | `value` | the number in the only row that matches |
//! | `mean`, `median`, `iqm`, `std`, `min`, `max`, `sum` | this statistic of the column; `std` is the sample standard deviation |
//! | `count` | the number of rows; this kind has no COLUMN |
//! | `distinct` | the number of distinct cells |
//! | `text` | the text in the only row that matches, for claims |
//! | `list` | all numbers of the column; a cell may hold several |
//!
//! `KIND COLUMN by OTHER in FILE` first takes the mean of COLUMN over each group of rows that have the same cell in the column OTHER. The
//! statistic is then computed from these means, so each group counts once.
//!
//! A condition is `COLUMN = TEXT`, also with `!=`, `<`, `>`, `<=` or `>=`. The conditions `last` and `first` keep the last or first row of
//! each run (agent, env, seed). Case is ignored, and an environment matches any of its names. A text with spaces or one of
//! `,;()=<>!` needs quotation marks.
//!
//! With `--write`, queries move from the page into a file beside it, `README.sources` for `README.md`. A number in the comment is left in
//! their place: `498.6<!--7-->` stands for the query in the line of the file that begins with `7 =`. Lines that begin with a space continue
//! the line above. Exceptions (`not data: 95 %`) have no number. A page may have queries of both forms.
//!
//! Code may be quoted as well. The block below `<!-- code: FILE: LINE -->` is the code of FILE from the first line that contains LINE to the
//! brace that closes it; in `A > B` the line is the first one with B below A. `--write` replaces other code by that of the file.

mod check;
mod code;
mod query;
mod sources;
mod text;

use std::path::Path;

use gradus::Error;

use query::Tables;
pub(crate) use sources::{read, write};

/// An error on a page.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// Line, counted from 1.
    pub line: usize,
    /// What is wrong, in one line.
    pub what: String,
}

/// The result of checking a page against its tables.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Number of correct numbers and claims.
    pub holds: usize,
    /// The errors, in the order of the page.
    pub faults: Vec<Fault>,
}

/// Checks the page at `path` against the tables that it quotes. With `write`, also replaces wrong numbers by the numbers in the tables,
/// with the same number of decimals, and reports on the corrected page. Claims and numbers in words are not corrected.
pub fn check(path: &Path, write: bool) -> Result<Report, Error> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut tables = Tables::new(folder);
    let mut checked = || {
        let (text, faults) = sources::read(path)?;
        let (mut report, corrected) = check::check(&text, &mut tables);
        let (code, corrected) = code::check(&corrected, folder);
        report.holds += code.holds;
        report.faults.splice(0..0, faults.into_iter().chain(code.faults));
        Ok::<_, Error>((report, corrected))
    };
    let (report, corrected) = checked()?;
    if !write {
        return Ok(report);
    }
    sources::write(path, &corrected)?;
    Ok(checked()?.0)
}
