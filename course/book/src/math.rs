//! Mathematics: from TeX between dollar signs to MathML.

use anyhow::{Result, anyhow};
use pulldown_latex::config::DisplayMode;
use pulldown_latex::{Parser, RenderConfig, Storage, push_mathml};

use crate::map_prose;

/// Replaces `$$ ... $$` and `$ ... $` by MathML, except in code.
pub(crate) fn rendered(text: &str, page: &str) -> Result<String> {
    map_prose(text, |prose| {
        let blocks: Vec<&str> = prose.split("$$").collect();
        if blocks.len().is_multiple_of(2) {
            return Err(anyhow!("{page}: expected pairs of $$, got an odd number"));
        }
        let mut out = String::new();
        for (i, part) in blocks.into_iter().enumerate() {
            out += &if i % 2 == 1 { block(part, page)? } else { inline(part, page)? };
        }
        Ok(out)
    })
}

/// Returns an equation that stands alone, with its number at the right if it has one.
fn block(tex: &str, page: &str) -> Result<String> {
    let (tex, number) = match tex.split_once("\\tag{") {
        Some((tex, rest)) => (tex, rest.split('}').next()),
        None => (tex, None),
    };
    let number = number.map(|number| format!("<span class=\"number\">({number})</span>")).unwrap_or_default();
    Ok(format!("<div class=\"equation\">{}{number}</div>", mathml(tex, DisplayMode::Block, page)?))
}

/// A dollar sign opens a formula if no space follows it, and the next one closes it if no space comes before it.
fn inline(text: &str, page: &str) -> Result<String> {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(start) = rest.find('$') {
        let inside = &rest[start + 1..];
        let end = inside.find('$').filter(|end| {
            let formula = &inside[..*end];
            !formula.is_empty()
                && !formula.starts_with(char::is_whitespace)
                && !formula.ends_with(char::is_whitespace)
                && !formula.contains("\n\n")
        });
        let Some(end) = end else {
            out += &rest[..=start];
            rest = inside;
            continue;
        };
        out += &rest[..start];
        out += &mathml(&inside[..end], DisplayMode::Inline, page)?;
        rest = &inside[end + 1..];
    }
    Ok(out + rest)
}

/// Returns a formula with the words in its subscripts as text: `_{old}` becomes `_{\text{old}}`.
fn words_in_scripts(tex: &str) -> String {
    let mut parts = tex.split("_{");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |out, part| match part.split_once('}') {
        Some((word, rest)) if word.len() > 2 && word.chars().all(|letter| letter.is_ascii_alphabetic()) => {
            format!("{out}_{{\\text{{{word}}}}}{rest}")
        }
        _ => format!("{out}_{{{part}"),
    })
}

fn mathml(tex: &str, display_mode: DisplayMode, page: &str) -> Result<String> {
    // a word is no product of letters
    let tex = &words_in_scripts(tex);
    let storage = Storage::new();
    let events: Vec<_> = Parser::new(tex, &storage).collect();
    if let Some(error) = events.iter().find_map(|event| event.as_ref().err()) {
        return Err(anyhow!("{page}: {}: {error}", tex.trim()));
    }
    let mut out = String::new();
    push_mathml(&mut out, events.into_iter(), RenderConfig { display_mode, ..RenderConfig::default() })?;
    // the space before an operator such as max belongs before its scripts, which have an exact number of children
    const SPACE: &str = "<mspace width=\"0.1667em\" />";
    let out = ["munder", "munderover", "mover", "msub", "msup", "msubsup"]
        .iter()
        .fold(out, |out, tag| out.replace(&format!("<{tag}>{SPACE}"), &format!("{SPACE}<{tag}>")));
    // Markdown must find nothing in it
    let out = out.replace('\n', " ").replace('*', "&#42;").replace('_', "&#95;").replace('|', "&#124;").replace('[', "&#91;");
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_subscripts_are_text() {
        assert_eq!(words_in_scripts(r"\pi_{old} + x_{t+1} + y_{ij} + L_{CLIP}"), r"\pi_{\text{old}} + x_{t+1} + y_{ij} + L_{\text{CLIP}}");
    }

    #[test]
    fn scripts_have_as_many_children_as_they_need() {
        let text = mathml(r"\gamma \max_a Q", DisplayMode::Block, "page").unwrap();
        assert!(text.contains("<munder><mi>max</mi><mi>a</mi></munder>"), "{text}");
    }
}
