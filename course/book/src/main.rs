//! Renders the lessons and the guides of `docs/` as one book: `cargo run --manifest-path course/book/Cargo.toml -- OUT`.
//!
//! Mathematics becomes MathML here, so that a browser needs neither a script nor a font nor another host for it. A linked file of the
//! repository becomes a page of its own. The folder `slides` has slides of each lesson. At the end every link of every page is followed.

mod check;
mod links;
mod math;
mod slides;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use mdbook_driver::MDBook;
use mdbook_driver::config::Config;

/// The parts of the book: a title, and the pages, in `docs/` or in `results/`, with their titles in the table of contents.
const PARTS: [(&str, &[(&str, &str)]); 6] = [
    (
        "The course",
        &[
            ("course/lesson-1.md", "1 Bandits"),
            ("course/lesson-2.md", "2 Dynamic programming"),
            ("course/lesson-3.md", "3 Monte Carlo and TD"),
            ("course/lesson-4.md", "4 Q-learning and Sarsa"),
            ("course/lesson-5.md", "5 DQN"),
            ("course/lesson-6.md", "6 REINFORCE"),
            ("course/lesson-7.md", "7 The exact gradient"),
            ("course/lesson-8.md", "8 Actor-critic and GAE"),
            ("course/lesson-9.md", "9 Trust regions and PPO"),
            ("course/lesson-10.md", "10 Comparing algorithms"),
            ("course/lesson-11.md", "11 A text is an MDP"),
            ("course/lesson-12.md", "12 Preferences"),
            ("memory.md", "Partial observability"),
            ("course/rust-for-python.md", "Rust for those who know Python"),
            ("course/bugs.md", "The failure set"),
            ("course/homework-1.md", "Homework 1"),
            ("course/homework-2.md", "Homework 2"),
            ("course/homework-3.md", "Homework 3"),
            ("course/report.md", "A report"),
            ("course/projects.md", "Twelve projects"),
            ("course/lecturer.md", "For the lecturer"),
        ],
    ),
    (
        "Guides",
        &[
            ("gymnasium.md", "Environments of Gymnasium"),
            ("language-models.md", "Pretrained language models"),
            ("python.md", "Gradus in Python"),
            ("gym-protocol.md", "The protocol of gym: workers"),
            ("your-own-environment.md", "Your own environment"),
            ("your-own-agent.md", "Your own agent"),
            ("troubleshooting.md", "When a run does not learn"),
            ("debugger.md", "An update in a debugger"),
            ("coming-from-sb3.md", "Coming from Stable-Baselines3"),
            ("coming-from-trl.md", "Coming from TRL"),
            ("gpu.md", "A GPU"),
        ],
    ),
    (
        "Agents",
        &[
            ("agents/README.md", "All agents"),
            ("agents/bandits.md", "Bandit rules"),
            ("agents/tabular.md", "Tabular agents"),
            ("agents/reinforce.md", "REINFORCE"),
            ("agents/a2c.md", "A2C"),
            ("agents/a3c.md", "A3C"),
            ("agents/trpo.md", "TRPO"),
            ("agents/ppo.md", "PPO"),
            ("agents/grpo.md", "GRPO"),
            ("agents/dqn.md", "DQN"),
            ("agents/munchausen-dqn.md", "Munchausen-DQN"),
            ("agents/qr-dqn.md", "QR-DQN"),
            ("agents/pqn.md", "PQN"),
            ("agents/ddpg.md", "DDPG"),
            ("agents/td3.md", "TD3"),
            ("agents/sac.md", "SAC"),
            ("agents/sft.md", "Supervised fine-tuning"),
            ("agents/reward-model.md", "Reward models"),
            ("agents/dpo.md", "DPO"),
            ("agents/shared.md", "What agents share"),
        ],
    ),
    (
        "Reference",
        &[
            ("glossary.md", "Glossary"),
            ("commands.md", "Commands and files"),
            ("metrics.md", "Metrics"),
            ("metrics-text.md", "Metrics on texts"),
            ("policy-file.md", "The policy file"),
        ],
    ),
    (
        "Evidence",
        &[
            ("results/reproductions/README.md", "Published figures, redrawn"),
            ("results/bandits/README.md", "Bandits"),
            ("results/tabular/README.md", "Tables"),
            ("results/cartpole/README.md", "CartPole"),
            ("results/classic-control/README.md", "Classic control"),
            ("results/off-policy/README.md", "Off-policy agents"),
            ("results/text/README.md", "Texts"),
            ("results/defaults/README.md", "What the defaults reach"),
            ("results/speed/README.md", "Speed"),
            ("results/gpu/README.md", "On a GPU"),
        ],
    ),
    ("Inside", &[("architecture.md", "Architecture"), ("determinism.md", "Determinism"), ("reliability.md", "Reliability")]),
];

fn main() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let out = std::env::args_os().nth(1).map_or_else(|| root.join("target/book"), PathBuf::from);
    let out = std::path::absolute(out)?;
    if out.exists() && !out.join("index.html").exists() && fs::read_dir(&out)?.next().is_some() {
        bail!("{}: expected a new folder, or one with a book, got one with other files", out.display());
    }
    let work = std::env::temp_dir().join(format!("gradus-book-{}", std::process::id()));
    write_sources(&root, &work)?;
    let mut config: Config = CONFIG.parse()?;
    config.build.build_dir = out.clone();
    MDBook::load_with_config(&work, config)?.build()?;
    fs::remove_dir_all(&work)?;
    let pages: Vec<&str> = PARTS.iter().flat_map(|(_, own)| own.iter().map(|(page, _)| *page)).collect();
    let slides = slides::write(&root, &out, &pages)?;
    let (pages, followed) = check::check(&out)?;
    println!("{}: {pages} pages, {followed} links followed; slides of {slides} lessons", out.join("index.html").display());
    Ok(())
}

const CONFIG: &str = r#"
[book]
title = "Gradus"
language = "en"
description = "Reinforcement learning: a course that checks itself, and the guides of a toolkit"
src = "src"

[build]
use-default-preprocessors = false # README.md stays README.html

[output.html]
no-section-label = true
preferred-dark-theme = "navy"
additional-css = ["src/book.css"]
smart-punctuation = false
print = { enable = false }
fold = { enable = true, level = 0 }
playground = { runnable = false }
"#;

/// The page that lists all redrawn figures, each of which has a page of its own.
const GALLERY: &str = "results/reproductions/README.md";

/// Returns the pages of the redrawn figures, with their titles.
fn reproductions(root: &Path) -> Result<Vec<(String, String)>> {
    let folder = root.join("results/reproductions");
    let mut names: Vec<String> =
        fs::read_dir(&folder)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect::<Result<_>>()?;
    // a long reproduction that is still being made has no page yet
    names.retain(|name| folder.join(name).join("README.md").exists());
    names.sort();
    let page = |name: String| {
        let text = fs::read_to_string(folder.join(&name).join("README.md"))?;
        let title = text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or(&name).to_owned();
        Ok((format!("results/reproductions/{name}/README.md"), title))
    };
    names.into_iter().map(page).collect()
}

/// Writes the pages of the book, and what they link to, to the folder `work`.
fn write_sources(root: &Path, work: &Path) -> Result<()> {
    let src = work.join("src");
    let figures = reproductions(root)?;
    let mut contents = String::from("# Summary\n\n[Gradus](index.md)\n");
    let mut pages: Vec<&str> = Vec::new();
    for (title, own) in PARTS {
        contents += &format!("\n# {title}\n\n");
        for (page, name) in own {
            contents += &format!("- [{name}]({page})\n");
            pages.push(page);
            if *page == GALLERY {
                for (page, name) in &figures {
                    contents += &format!("  - [{name}]({page})\n");
                    pages.push(page);
                }
            }
        }
    }
    let mut linked = links::Linked::new(root, &src, &pages);
    for page in &pages {
        let text = fs::read_to_string(root.join(links::in_repository(page))).with_context(|| (*page).to_owned())?;
        let text = linked.rewritten(&without_links_in_headings(&without_comments(&text)), page)?;
        let path = src.join(page);
        fs::create_dir_all(path.parent().context("a page has a folder")?)?;
        fs::write(path, math::rendered(&text, page)?)?;
    }
    fs::write(src.join("index.md"), include_str!("../index.md"))?;
    fs::write(src.join("SUMMARY.md"), contents)?;
    fs::write(src.join("book.css"), include_str!("../book.css"))?;
    linked.write_files()
}

/// Moves a link that is a whole heading below it: the list of headings in the sidebar shows no links.
fn without_links_in_headings(text: &str) -> String {
    let parts = |line: &str| -> Option<String> {
        let (marks, rest) = line.split_once(" [").filter(|(marks, _)| ["##", "###"].contains(marks))?;
        let (title, target) = rest.strip_suffix(')')?.split_once("](")?;
        Some(format!("{marks} {title}\n\n[The page]({target})\n"))
    };
    let line = |line: &str| parts(line).unwrap_or_else(|| format!("{line}\n"));
    text.lines().map(line).collect()
}

/// Returns a text without HTML comments, which are notes for the check of numbers.
fn without_comments(text: &str) -> String {
    let mut parts = text.split("<!--");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once("-->").map_or("", |(_, rest)| rest))
}

/// Calls `of_code` for the lines of code blocks, and `of_prose` for the parts of the others that are no code.
fn map_prose(text: &str, mut of_prose: impl FnMut(&str) -> Result<String>) -> Result<String> {
    let (mut out, mut is_code, mut prose) = (String::new(), false, String::new());
    let mut flush = |prose: &mut String, out: &mut String| -> Result<()> {
        // code in a line stays as it is
        for (i, part) in prose.split('`').enumerate() {
            if i > 0 {
                out.push('`');
            }
            *out += &if i % 2 == 0 { of_prose(part)? } else { part.to_owned() };
        }
        prose.clear();
        Ok(())
    };
    for line in text.split_inclusive('\n') {
        let is_fence = line.trim_start().starts_with("```");
        if is_fence || is_code || line.starts_with("    ") && !line.trim_start().starts_with(['-', '|']) {
            flush(&mut prose, &mut out)?;
            out += line;
        } else {
            prose += line;
        }
        is_code ^= is_fence;
    }
    flush(&mut prose, &mut out)?;
    Ok(out)
}
