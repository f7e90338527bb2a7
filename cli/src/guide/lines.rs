//! Breaks the prose of a page into lines that fit a terminal.

/// The widest line of prose.
const WIDTH: usize = 80;

/// Returns a page with its paragraphs and the items of its lists in lines of at most 80 characters. Code, formulas, tables, pictures and
/// headings stay as they are.
pub(super) fn broken(page: &str) -> String {
    let (mut out, mut paragraph, mut is_code) = (String::new(), String::new(), false);
    for line in page.lines() {
        let text = line.trim_start();
        let is_fence = text.starts_with("```");
        let stays = is_code || is_fence || text.is_empty() || text.starts_with(['#', '|', '<']) || text.starts_with("![");
        if stays || line.starts_with("    ") && paragraph.is_empty() {
            flush(&mut paragraph, &mut out);
            out += line;
            out.push('\n');
        } else {
            if mark(text) > 0 {
                flush(&mut paragraph, &mut out);
            }
            paragraph += line;
            paragraph.push('\n');
        }
        is_code ^= is_fence;
    }
    flush(&mut paragraph, &mut out);
    out
}

/// Returns the length of the mark with which an item of a list begins; 0 for other text.
fn mark(text: &str) -> usize {
    let digits = text.chars().take_while(char::is_ascii_digit).count();
    match () {
        () if text.starts_with("- ") || text.starts_with("> ") => 2,
        () if digits > 0 && text[digits..].starts_with(". ") => digits + 2,
        () => 0,
    }
}

fn flush(paragraph: &mut String, out: &mut String) {
    let text = paragraph.trim_start();
    let indentation = paragraph.len() - text.len() + mark(text);
    let (mut column, mut is_first) = (0, true);
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if is_first {
            *out += &paragraph[..paragraph.len() - text.len()];
            column = paragraph.len() - text.len();
        } else if column + 1 + length > WIDTH {
            out.push('\n');
            *out += &" ".repeat(indentation);
            column = indentation;
        } else {
            out.push(' ');
            column += 1;
        }
        *out += word;
        column += length;
        is_first = false;
    }
    if !is_first {
        out.push('\n');
    }
    paragraph.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_fits_and_everything_else_stays() {
        let long = "word ".repeat(30);
        let page = format!(
            "# A {long}\n\n{long}\nmore\n\n- {long}\n  end\n- b\n\n10. {long}\n\n    x = {long}\n\n```sh\n{long}\n```\n| {long} |\n"
        );
        let broken = broken(&page);
        let (sixteen, fifteen) = (["word"; 16].join(" "), ["word"; 15].join(" "));
        let fourteen = ["word"; 14].join(" ");
        let fits = format!(
            "{sixteen}\n{fourteen} more\n\n- {fifteen}\n  {fifteen} end\n- b\n\n10. {fifteen}\n    {fifteen}\n\n    x = {long}\n\n```sh\n{long}\n```\n"
        );
        assert_eq!(broken, format!("# A {long}\n\n{fits}| {long} |\n"));
    }
}
