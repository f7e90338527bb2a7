//! Tables as comma-separated values. Cells with a comma or a quotation mark are quoted.

use std::borrow::Cow;
use std::fmt::Write;

/// Quotes a cell that holds a comma or a quotation mark.
pub fn quoted(text: &str) -> String {
    if text.contains([',', '"']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

/// Returns the cells of a line; `None` if a quotation mark is not closed.
pub fn cells(line: &str) -> Option<Vec<Cow<'_, str>>> {
    if !line.contains('"') {
        return Some(line.split(',').map(Cow::Borrowed).collect());
    }
    let mut cells = vec![String::new()];
    let mut letters = line.chars().peekable();
    let mut inside = false;
    while let Some(letter) = letters.next() {
        let cell = cells.last_mut()?;
        match letter {
            '"' if inside && letters.peek() == Some(&'"') => {
                letters.next();
                cell.push('"');
            }
            '"' if inside => inside = false,
            '"' if cell.is_empty() => inside = true,
            ',' if !inside => cells.push(String::new()),
            other => cell.push(other),
        }
    }
    if inside { None } else { Some(cells.into_iter().map(Cow::Owned).collect()) }
}

/// Appends a row.
pub fn push_row(text: &mut String, cells: &[String]) {
    writeln!(text, "{}", cells.join(",")).expect("writing to a string cannot fail");
}
