//! The pages of `docs/` refer to files, sections and names that exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns all files below `folder` whose names end with one of `ends`.
fn files(folder: &Path, ends: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            found.extend(files(&path, ends));
        } else if ends.iter().any(|end| path.to_string_lossy().ends_with(end)) {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn root() -> &'static Path {
    gradus_testing::root()
}

/// Returns the pages with their texts, without code blocks.
fn pages() -> Vec<(PathBuf, String)> {
    let pages = [files(&root().join("docs"), &[".md"]), vec![root().join("README.md"), root().join("CONTRIBUTING.md")]].concat();
    let prose = |text: String| text.split("```").step_by(2).collect::<String>();
    pages.into_iter().map(|path| (path.clone(), prose(fs::read_to_string(path).unwrap()))).collect()
}

/// Returns the id that GitHub and rustdoc give a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    kept.chars().filter(|c| c.is_alphanumeric() || "-_ ".contains(*c)).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn links_lead_to_files_and_sections_that_exist() {
    let (mut checked, mut dead) = (0, Vec::new());
    for (page, text) in pages() {
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.contains(':') {
                continue; // another site
            }
            let (file, section) = link.split_once('#').unwrap_or((link, ""));
            let path = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            let has_section = || {
                let text = fs::read_to_string(&path).unwrap_or_default();
                text.lines().any(|line| line.starts_with('#') && anchor(line.trim_start_matches('#')) == section)
            };
            checked += 1;
            if !path.exists() || !(section.is_empty() || has_section()) {
                dead.push(format!("{}: {link}", page.strip_prefix(root()).unwrap().display()));
            }
        }
    }
    assert!(dead.is_empty(), "{}", dead.join("\n"));
    assert!(checked > 300, "only {checked} links were checked");
}

/// The sources contain the last part of each path, such as `Learner::gradient`, and each name with more than three underscores, such as the
/// name of a test.
#[test]
fn names_in_the_code_exist() {
    let folders = ["src", "cli", "reproduce", "agents", "nets", "envs", "base", "rollouts", "drawing", "statistics", "tests", "examples"];
    let sources = folders.iter().flat_map(|folder| files(&root().join(folder), &[".rs", ".toml"]));
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut words = BTreeSet::new();
    for source in sources {
        words.extend(fs::read_to_string(source).unwrap().split(|c| !is_word(c)).map(String::from));
    }
    let (mut checked, mut unknown) = (0, Vec::new());
    for (page, text) in pages() {
        let code = text.split('`').skip(1).step_by(2);
        for name in code.filter(|name| name.contains("::") || name.matches('_').count() > 3) {
            let Some(last) = name.split("::").last().filter(|last| !last.is_empty() && last.chars().all(is_word)) else { continue };
            checked += 1;
            if !words.contains(last) {
                unknown.push(format!("{}: {name}", page.strip_prefix(root()).unwrap().display()));
            }
        }
    }
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
    assert!(checked > 100, "only {checked} names were checked");
}

/// The number of agents and of redrawn figures in the README.
#[test]
fn the_readme_counts_the_agents() {
    let text = fs::read_to_string(root().join("README.md")).unwrap();
    let agents = gradus::agents::registry::all().len();
    assert!(text.contains(&format!("{agents} agents")), "there are {agents} agents");
    let figures = fs::read_dir(root().join("results/reproductions"))
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().path().join("README.md").exists())
        .count();
    assert!(text.contains(&format!("{figures} published figures")), "there are {figures} figures");
}

/// The lines of `ppo.rs` that the page on debuggers shows are where it says. `scripts/debugger-check.sh` stops there.
#[test]
fn the_debugger_stops_at_the_lines_of_its_page() {
    let source = fs::read_to_string(root().join("agents/src/policy_gradient/ppo.rs")).unwrap();
    let page = fs::read_to_string(root().join("docs/debugger.md")).unwrap();
    let shown: Vec<(usize, &str)> =
        page.lines().filter_map(|line| line.split_once('\t')).filter_map(|(number, code)| Some((number.parse().ok()?, code))).collect();
    assert_eq!(shown.len(), 2);
    for (number, code) in shown {
        assert_eq!(source.lines().nth(number - 1), Some(code), "line {number}");
        assert!(page.contains(&format!("(gdb) break ppo.rs:{number}\n")), "line {number}");
    }
}
