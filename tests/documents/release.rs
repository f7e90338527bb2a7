//! The descriptions of a release agree: the citation, the changelog, the manifests of the crates and their licence texts.

use std::fs;
use std::path::{Path, PathBuf};

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn path(file: &str) -> PathBuf {
    gradus_testing::root().join(file)
}

fn read(file: &str) -> String {
    fs::read_to_string(path(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn manifest(folder: &str) -> toml::Table {
    read(&join(folder, "Cargo.toml")).parse().unwrap()
}

fn join(folder: &str, file: &str) -> String {
    Path::new(folder).join(file).display().to_string()
}

/// Returns the folders of the crates that are packaged.
fn crates() -> Vec<String> {
    let members = manifest("")["workspace"]["members"].as_array().unwrap().clone();
    let folders = std::iter::once(String::new()).chain(members.iter().map(|folder| folder.as_str().unwrap().to_owned()));
    let published = |folder: &String| manifest(folder)["package"].get("publish") != Some(&toml::Value::Boolean(false));
    let found: Vec<String> = folders.filter(published).collect();
    assert!(found.len() >= 5, "expected at least 5 crates, got {found:?}");
    found
}

/// Returns the value of a key at the top of CITATION.cff.
fn cited(key: &str) -> String {
    let citation = read("CITATION.cff");
    let found = citation.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
    found.unwrap_or_else(|| panic!("CITATION.cff: expected a line {key}")).to_owned()
}

#[test]
fn the_citation_names_this_version() {
    assert_eq!(cited("version"), VERSION, "CITATION.cff: expected the version of the workspace");
}

#[test]
fn the_changelog_has_an_entry_for_this_version_with_the_date_of_the_citation() {
    let entry = format!("## {VERSION} - {}", cited("date-released"));
    assert!(read("CHANGELOG.md").lines().any(|line| line == entry), "CHANGELOG.md: expected a line '{entry}'");
}

#[test]
fn every_crate_describes_itself() {
    for folder in crates() {
        let (file, manifest) = (join(&folder, "Cargo.toml"), manifest(&folder));
        let package = &manifest["package"];
        assert!(package["description"].as_str().is_some_and(|text| text.len() > 40), "{file}: expected a description");
        assert_eq!(package["readme"].as_str(), Some("README.md"), "{file}");
        for (key, most) in [("keywords", 5), ("categories", 5)] {
            let words: Vec<&str> = package[key].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
            assert!((1..=most).contains(&words.len()), "{file}: expected 1 to {most} {key}, got {words:?}");
            // the registry refuses longer keywords
            assert!(
                key != "keywords" || words.iter().all(|word| word.len() <= 20),
                "{file}: expected keywords of at most 20 characters, got {words:?}"
            );
        }
        assert!(read(&join(&folder, "README.md")).starts_with("# "), "{file}: expected a README with a title");
    }
}

/// Each crate has a copy of the licence texts, because a clone on Windows turns symbolic links into files that contain a path.
#[test]
fn every_crate_has_the_licence_texts() {
    for text in ["LICENSE-MIT", "LICENSE-APACHE"] {
        for copy in crates().iter().map(|folder| join(folder, text)) {
            assert!(fs::symlink_metadata(path(&copy)).unwrap().is_file(), "{copy}: expected a file, not a link");
            assert_eq!(read(&copy), read(text), "{copy}: expected the text of {text}");
        }
    }
}
