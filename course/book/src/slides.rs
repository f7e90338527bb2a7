//! Slides of the lessons: what a lecturer shows of each section, with the whole text as notes.
//!
//! A slide has the heading, the first sentences of the section, the sentences that lead to an equation, and all equations, code, commands,
//! tables and lists; of a section of mere text, the first sentences. Each figure has a slide of its own. A page of slides is one file, which
//! opens from a disk.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use pulldown_cmark::{Event, Options, Parser, Tag, html};

use crate::{links, math, without_comments};

/// Lines that a slide has room for.
const ROOM: usize = 13;

/// Sections that are not shown.
const LEFT_OUT: [&str; 1] = ["Reading"];

/// A part of a page: a paragraph, a list, a figure, and so on.
struct Block<'a> {
    text: &'a str,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Heading(u8),
    Paragraph,
    Equation,
    Code,
    Figure,
    List,
    Table,
    Details,
}

/// A slide: its heading, its body, and the notes, as HTML.
#[derive(Default)]
struct Slide {
    heading: String,
    body: String,
    notes: String,
}

/// Writes the slides of the lessons among `pages` to the folder `slides` of the book. Returns their number.
pub(crate) fn write(root: &Path, out: &Path, pages: &[&str]) -> Result<usize> {
    let folder = out.join("slides");
    fs::create_dir_all(&folder)?;
    let mut written = 0;
    for page in pages.iter().filter(|page| page.starts_with("course/lesson-")) {
        let path = links::in_repository(page);
        let text = fs::read_to_string(root.join(&path)).with_context(|| (*page).to_owned())?;
        let text = math::rendered(&without_comments(&text), page)?;
        let all = slides(&text, &root.join(path.parent().context("a page has a folder")?))?;
        let title = all.first().map_or("", |slide| slide.heading.as_str());
        let sections: String = all.iter().map(section).collect();
        let html = include_str!("../slides.html").replace("{title}", title).replace("{slides}", &sections);
        fs::write(folder.join(PathBuf::from(page).with_extension("html").file_name().context("a page has a name")?), html)?;
        written += 1;
    }
    Ok(written)
}

fn section(slide: &Slide) -> String {
    let Slide { heading, body, notes } = slide;
    format!("<section><div class=\"slide\"><h2>{heading}</h2>\n{body}</div><aside>{notes}</aside></section>\n")
}

/// Returns the slides of a page in `folder`.
fn slides(text: &str, folder: &Path) -> Result<Vec<Slide>> {
    let mut all: Vec<Slide> = Vec::new();
    let blocks = blocks(text);
    let is_heading = |block: &Block| matches!(block.kind, Kind::Heading(_));
    let starts: Vec<usize> = (0..blocks.len()).filter(|i| is_heading(&blocks[*i])).chain([blocks.len()]).collect();
    for bounds in starts.windows(2) {
        let (heading, parts) = (&blocks[bounds[0]], &blocks[bounds[0] + 1..bounds[1]]);
        let title = heading.text.trim_start_matches('#').trim();
        if !LEFT_OUT.contains(&title) {
            of_section(title, parts, folder, &mut all)?;
        }
    }
    all.retain(|slide| !slide.body.is_empty());
    Ok(all)
}

/// Adds the slides of a section.
fn of_section(title: &str, parts: &[Block], folder: &Path, all: &mut Vec<Slide>) -> Result<()> {
    let mut heading = inner(title);
    let is_text = parts.iter().all(|block| block.kind == Kind::Paragraph);
    let (mut lines, mut is_first) = (0, true);
    all.push(Slide { heading: heading.clone(), ..Slide::default() });
    for (i, block) in parts.iter().enumerate() {
        let leads = block.text.trim_end().ends_with(':');
        let shown = match block.kind {
            Kind::Paragraph if block.text.starts_with("**") => rendered(block.text),
            Kind::Paragraph if is_text => {
                sentences(block.text).into_iter().take(3).map(|sentence| rendered(&format!("- {sentence}"))).collect()
            }
            // an experiment is a question
            Kind::Paragraph if title.contains("xperiment") => {
                sentences(block.text).into_iter().filter(|sentence| sentence.contains('?')).map(rendered).collect()
            }
            Kind::Paragraph if leads => rendered(&lead(block.text)),
            Kind::Paragraph if is_first => rendered(&sentences(block.text).into_iter().take(2).collect::<Vec<_>>().join(" ")),
            // the end of a sentence that an equation interrupts
            Kind::Paragraph if block.text.starts_with(char::is_lowercase) => rendered(first_sentence(block.text)),
            Kind::Paragraph => String::new(),
            // questions need all their words
            Kind::List if title == "Quiz" => rendered(block.text),
            Kind::List => rendered(&firsts(block.text)),
            Kind::Code => rendered(&without_hidden(block.text)),
            Kind::Figure => figure(block.text, folder)?,
            Kind::Details if block.text.contains("<summary>") => {
                // the answers to a quiz, which follow, stand on a slide of their own
                heading = block.text.split(['<', '>']).nth(4).unwrap_or_default().to_owned();
                lines = ROOM;
                continue;
            }
            Kind::Details => continue,
            Kind::Heading(_) | Kind::Equation | Kind::Table => rendered(block.text),
        };
        is_first &= block.kind != Kind::Paragraph;
        let more = match block.kind {
            Kind::Code | Kind::List | Kind::Table => block.text.lines().count() + 1,
            Kind::Figure => ROOM,
            _ => 2,
        };
        // what leads to something stands on its slide
        let with_next = if leads { parts.get(i + 1).map_or(0, |next| next.text.lines().count().min(ROOM)) } else { 0 };
        // a single sentence is no slide
        if !shown.is_empty() && lines > 2 && lines + more + with_next > ROOM {
            all.push(Slide { heading: heading.clone(), ..Slide::default() });
            lines = 0;
        }
        let slide = all.last_mut().context("there is a slide")?;
        if block.kind != Kind::Figure {
            slide.notes += &rendered(block.text);
        }
        if !shown.is_empty() {
            slide.body += &shown;
            lines += more;
        }
    }
    Ok(())
}

/// Returns the parts of a page.
fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut all = Vec::new();
    let (mut depth, mut kind) = (0, Kind::Paragraph);
    for (event, Range { start, end }) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        match event {
            Event::Start(tag) => {
                if depth == 0 {
                    kind = match tag {
                        Tag::Heading { level, .. } => Kind::Heading(level as u8),
                        Tag::CodeBlock(_) => Kind::Code,
                        Tag::List(_) => Kind::List,
                        Tag::Table(_) => Kind::Table,
                        Tag::HtmlBlock if text[start..].starts_with("<div class=\"equation\"") => Kind::Equation,
                        Tag::HtmlBlock => Kind::Details,
                        _ if text[start..].starts_with("![") => Kind::Figure,
                        _ => Kind::Paragraph,
                    };
                }
                depth += 1;
            }
            Event::End(_) => {
                depth -= 1;
                if depth == 0 {
                    all.push(Block { text: &text[start..end], kind });
                }
            }
            _ => {}
        }
    }
    all
}

/// Renders Markdown. Links become their text: a slide leads nowhere.
fn rendered(markdown: &str) -> String {
    let events = Parser::new_ext(markdown, Options::ENABLE_TABLES)
        .filter(|event| !matches!(event, Event::Start(Tag::Link { .. }) | Event::End(pulldown_cmark::TagEnd::Link)));
    let mut out = String::new();
    html::push_html(&mut out, events);
    out
}

/// Renders a line without the paragraph around it.
fn inner(markdown: &str) -> String {
    rendered(markdown).trim().trim_start_matches("<p>").trim_end_matches("</p>").to_owned()
}

/// Where a sentence ends: a mark, and a space or a line's end behind it.
fn ends(text: &str) -> impl Iterator<Item = usize> + '_ {
    text.char_indices()
        .filter(|(at, letter)| ['.', '?', '!'].contains(letter) && text[at + 1..].starts_with([' ', '\n']))
        .map(|(at, _)| at + 1)
}

fn sentences(text: &str) -> Vec<&str> {
    let bounds: Vec<usize> = std::iter::once(0).chain(ends(text)).chain([text.len()]).collect();
    bounds.windows(2).map(|pair| text[pair[0]..pair[1]].trim()).filter(|sentence| !sentence.is_empty()).collect()
}

fn first_sentence(text: &str) -> &str {
    // words in bold at the beginning are a title
    let from = text.strip_prefix("**").and_then(|rest| rest.find("**")).map_or(0, |at| at + 4);
    ends(&text[from..]).next().map_or(text, |end| &text[..from + end])
}

/// Returns the end of a paragraph that leads to something: as many of its last sentences as are read at a glance.
fn lead(text: &str) -> String {
    let all = sentences(text);
    let fits = |from: &usize| all[*from..].iter().map(|sentence| length(sentence)).sum::<usize>() <= 260;
    let from = (0..all.len()).find(fits).unwrap_or(all.len() - 1);
    all[from..].join(" ")
}

/// Returns the number of characters of a text without its tags.
fn length(text: &str) -> usize {
    text.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text).chars().count()).sum()
}

/// Returns a list with the first sentences of each item.
fn firsts(list: &str) -> String {
    let mut items: Vec<String> = Vec::new();
    for line in list.lines() {
        match items.last_mut() {
            Some(item) if line.starts_with(' ') => *item += &format!(" {}", line.trim()),
            _ => items.push(line.to_owned()),
        }
    }
    let item = |item: String| {
        let mark = item.find(' ').map_or(0, |at| at + 1);
        // a title does not say what is wrong
        let (first, all) = (first_sentence(&item[mark..]), sentences(&item[mark..]));
        let short = if length(first) < 60 { all[..all.len().min(3)].join(" ") } else { first.to_owned() };
        format!("{}{short}\n", &item[..mark])
    };
    items.into_iter().map(item).collect()
}

/// Returns a block of code without the lines that only doc-tests see.
fn without_hidden(code: &str) -> String {
    code.lines().filter(|line| !line.starts_with("# ")).map(|line| format!("{line}\n")).collect()
}

/// Returns a figure with its picture inside, so that the page is one file.
fn figure(markdown: &str, folder: &Path) -> Result<String> {
    let (alt, target) = markdown.trim().trim_start_matches("![").split_once("](").context("a figure has a target")?;
    let path = folder.join(target.trim_end_matches(')'));
    let svg = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let encoded: String = svg
        .chars()
        .map(|letter| match letter {
            '%' | '#' | '"' | '<' | '>' | '&' => format!("%{:02X}", letter as u32),
            '\n' => " ".into(),
            letter => letter.to_string(),
        })
        .collect();
    Ok(format!("<img alt=\"{}\" src=\"data:image/svg+xml,{encoded}\">", alt.replace('"', "&quot;")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# Lesson 9: *a* title\n\n**The question.** What is it? And why?\n\n## One [link](x.md)\n\nFirst. Second.\n\nThird. It is:\n\n\
        <div class=\"equation\"><math></math></div>\n\n```rust\nlet a = 1;\n# Ok::<(), ()>(())\n```\n\n## List\n\n- **Bold.** More. And more.\n  Even more.\n- b\n\n## Reading\n\n- x\n";

    #[test]
    fn a_section_becomes_slides() {
        let all = slides(PAGE, Path::new(".")).unwrap();
        let headings: Vec<&str> = all.iter().map(|slide| slide.heading.as_str()).collect();
        assert_eq!(headings, ["Lesson 9: <em>a</em> title", "One link", "List"]);
        assert_eq!(all[0].body, "<p><strong>The question.</strong> What is it? And why?</p>\n");
        assert!(all[0].notes.contains("And why?"));
        let body = &all[1].body;
        assert!(body.contains("<p>First. Second.</p>") && body.contains("<p>Third. It is:</p>") && body.contains("<math>"), "{body}");
        assert!(body.contains("let a = 1;") && !body.contains("Ok::"), "{body}");
        assert_eq!(all[2].body, "<ul>\n<li><strong>Bold.</strong> More. And more. Even more.</li>\n<li>b</li>\n</ul>\n");
    }

    #[test]
    fn a_slide_that_is_full_goes_on_in_another_one() {
        let code = format!("```sh\n{}```\n", "x\n".repeat(9));
        let all = slides(&format!("## A\n\nText.\n\n{code}\n{code}"), Path::new(".")).unwrap();
        assert_eq!(all.iter().map(|slide| slide.heading.as_str()).collect::<Vec<_>>(), ["A", "A"]);
    }
}
