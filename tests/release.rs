//! What a release says about itself agrees: the citation, the changelog, the manifests of the crates and their licence texts.

use std::fs;
use std::path::{Path, PathBuf};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Folders of the crates that are packaged.
const CRATES: [&str; 4] = ["", "agents", "envs", "nets"];

fn path(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(file)
}

fn read(file: &str) -> String {
    fs::read_to_string(path(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
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
    for folder in CRATES {
        let file = Path::new(folder).join("Cargo.toml").display().to_string();
        let manifest: toml::Table = read(&file).parse().unwrap();
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
        assert!(
            read(&Path::new(folder).join("README.md").display().to_string()).starts_with("# "),
            "{file}: expected a README with a title"
        );
    }
}

/// They are copies because a clone on Windows turns symbolic links into files that hold a path.
#[test]
fn every_crate_has_the_licence_texts() {
    for text in ["LICENSE-MIT", "LICENSE-APACHE"] {
        for copy in CRATES.map(|folder| Path::new(folder).join(text).display().to_string()) {
            assert!(fs::symlink_metadata(path(&copy)).unwrap().is_file(), "{copy}: expected a file, not a link");
            assert_eq!(read(&copy), read(text), "{copy}: expected the text of {text}");
        }
    }
}
