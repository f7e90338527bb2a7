//! `gradus guide`: prints the pages of the documentation, which every installed program has.

use clap::Args;
use gradus::agents::registry as agents;
use gradus::envs::{names, registry};
use gradus::guide::PAGES;
use gradus::{Error, program_name};

use crate::output::{say, say_wrapped};

mod formulas;
mod lines;
mod links;

#[derive(Args)]
pub(crate) struct Guide {
    /// Page, such as metrics or ppo, or a section of a page, such as metrics#value-function [default: the list of pages]
    topic: Option<String>,
}

pub(crate) fn run(arguments: &Guide) -> Result<u8, Error> {
    let Some(topic) = &arguments.topic else {
        say(format!("pages, printed by `{} guide PAGE`, or `PAGE#SECTION`", program_name()));
        // lesson-2 before lesson-10
        let mut pages: Vec<_> = PAGES.iter().collect();
        pages.sort_by_key(|(name, _)| {
            let stem = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
            (stem, name[stem.len()..].parse().unwrap_or(0_u32))
        });
        for (name, text) in pages {
            say_wrapped(&format!("  {name:<22}"), headings(text, "# ").next().unwrap_or_default());
        }
        return Ok(0);
    };
    let (page, section) = topic.split_once('#').map_or((topic.as_str(), None), |(page, section)| (page, Some(section)));
    let page = page.rsplit('/').next().unwrap_or(page).trim_end_matches(".md");
    let found = PAGES.iter().find(|(name, _)| names::spelled(name) == names::spelled(page));
    // the tabular agents share a page, and so do bandits
    let of_family = || match agents::find(page) {
        Ok(entry) if entry.help.iter().any(|(setting, _)| *setting == "gamma") => PAGES.iter().find(|(name, _)| *name == "tabular"),
        _ => None,
    };
    let known: Vec<&str> = PAGES.iter().map(|(name, _)| *name).collect();
    let unknown = |what, name: &str, known: &[&str]| {
        let near = names::nearest(name, known.iter().copied()).filter(|_| registry::find(name).is_err());
        let listed = || match what {
            "page" => format!("`{} guide` lists them", program_name()),
            _ => format!("expected one of: {}", known.join(", ")),
        };
        let hint = near.map_or_else(listed, |near| format!("did you mean `{near}`?"));
        Error::Unknown { what, name: name.into(), hint }
    };
    let (_, text) = found.or_else(of_family).ok_or_else(|| unknown("page", page, &known))?;
    let is_page = |name: &str| PAGES.iter().any(|(page, _)| *page == name);
    let text = lines::broken(&formulas::shown(&links::shown(&without_comments(text), &is_page)));
    let text = text.replace("<details><summary>", "**").replace("</summary>", "**").replace("</details>\n", "");
    match section {
        None => say(text.trim()),
        Some(section) => {
            let parts: Vec<&str> = parts(&text);
            let heading = |part: &str| part.lines().next().unwrap_or_default().trim_start_matches('#').trim().to_owned();
            let is_meant = |part: &&&str| slug(&heading(part)) == slug(section);
            let slugs: Vec<String> = parts.iter().map(|part| slug(&heading(part))).collect();
            let known: Vec<&str> = slugs.iter().map(String::as_str).filter(|slug| !slug.is_empty()).collect();
            say(parts.iter().find(is_meant).ok_or_else(|| unknown("section", section, &known))?.trim());
        }
    }
    Ok(0)
}

/// Whether there is a page for `name`: one of its name or, of an agent with a table, the page that they share.
pub(crate) fn has_page(name: &str) -> bool {
    let is_tabular = || agents::find(name).is_ok_and(|entry| entry.help.iter().any(|(setting, _)| *setting == "gamma"));
    PAGES.iter().any(|(page, _)| names::spelled(page) == names::spelled(name)) || is_tabular()
}

fn headings<'a>(text: &'a str, level: &'a str) -> impl Iterator<Item = &'a str> {
    text.lines().filter_map(move |line| line.strip_prefix(level))
}

/// Returns the sections of the second level, each with its heading.
fn parts(text: &str) -> Vec<&str> {
    let starts: Vec<usize> = text.match_indices("\n## ").map(|(at, _)| at + 1).chain([text.len()]).collect();
    starts.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect()
}

/// Returns the name of a heading in links, as GitHub makes it.
fn slug(heading: &str) -> String {
    let lower = heading.to_lowercase().replace(' ', "-");
    lower.chars().filter(|letter| letter.is_alphanumeric() || *letter == '-').collect()
}

/// Returns a text without HTML comments, which are notes for the check of numbers.
fn without_comments(text: &str) -> String {
    let mut parts = text.split("<!--");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once("-->").map_or("", |(_, rest)| rest.trim_start_matches('\n')))
}
