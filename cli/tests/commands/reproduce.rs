//! `gradus reproduce` redraws published figures: two calls write the same bytes, the page's numbers are those of the tables, and bad input is refused.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use gradus_testing::command::{contents, error_of};

fn gradus(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gradus")).args(arguments).current_dir(folder).output().unwrap()
}

/// The quick versions of the fastest reproductions; `scripts/reproductions.sh --quick` makes all of them.
#[test]
fn two_calls_write_the_same_bytes_and_pages_hold() {
    let folder = gradus_testing::tempdir().unwrap();
    for name in ["sutton-barto-6.2", "sutton-barto-13.1", "a2c-is-ppo", "overestimation"] {
        let make = |out: &str| {
            let output = gradus(folder.path(), &["reproduce", name, "--quick", "--out", out]);
            assert!(output.status.success(), "{name}: {output:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        let told = make("a");
        assert!(told.contains("what differs: ") && told.contains("figure.png"), "{told}");
        make("b");
        let [a, b] = ["a", "b"].map(|out| contents(&folder.path().join(out)));
        assert_eq!(a.iter().map(|(_, bytes)| bytes).collect::<Vec<_>>(), b.iter().map(|(_, bytes)| bytes).collect::<Vec<_>>(), "{name}");
        for file in ["experiment.toml", "verdict.csv", "README.md", "figure.svg", "figure.png"] {
            assert!(folder.path().join("a").join(file).exists(), "{name}: {file}");
        }
        let output = gradus(folder.path(), &["pages", "a/README.md"]);
        assert!(output.status.success(), "{name}: {output:?}");
        // a number that was changed is found
        let page = folder.path().join("a/README.md");
        let text = fs::read_to_string(&page).unwrap();
        let at = text.find("<!--1-->").unwrap();
        let digit = text[..at].rfind(|c: char| c.is_ascii_digit()).unwrap();
        let other = if &text[digit..=digit] == "7" { "3" } else { "7" };
        fs::write(&page, format!("{}{other}{}", &text[..digit], &text[digit + 1..])).unwrap();
        assert_eq!(gradus(folder.path(), &["pages", "a/README.md"]).status.code(), Some(1), "{name}");
    }
}

/// The gallery writes pages again from their tables: a page as it was made stays the same, words that were changed become those of the experiment, and a quick version stays.
#[test]
fn the_gallery_writes_pages_with_the_words_of_now() {
    let folder = gradus_testing::tempdir().unwrap();
    for arguments in
        [&["sutton-barto-8.4", "--out", "all/sutton-barto-8.4"][..], &["sutton-barto-13.1", "--quick", "--out", "all/sutton-barto-13.1"]]
    {
        let output = gradus(folder.path(), &[&["reproduce"], arguments].concat());
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    }
    let all = folder.path().join("all");
    let write_gallery = || assert!(gradus(folder.path(), &["reproduce", "gallery", "--out", "all"]).status.success());
    let of = |name: &str| contents(&all.join(name));
    let before = ["sutton-barto-8.4", "sutton-barto-13.1"].map(of);
    write_gallery();
    assert_eq!(["sutton-barto-8.4", "sutton-barto-13.1"].map(of), before);
    let [page, words, sources] = ["README.md", "experiment.toml", "README.sources"].map(|name| all.join("sutton-barto-8.4").join(name));
    let replace = |path: &Path, from: &str, to: &str| fs::write(path, fs::read_to_string(path).unwrap().replace(from, to)).unwrap();
    [&words, &page, &sources].into_iter().for_each(|path| replace(path, "wander", "stroll"));
    write_gallery();
    assert_eq!(of("sutton-barto-8.4"), before[0]);
    // a page of other settings is not that of this experiment
    replace(&words, "planning = 10", "planning = 11");
    [&page, &sources].into_iter().for_each(|path| replace(path, "wander", "stroll"));
    write_gallery();
    assert!(fs::read_to_string(&page).unwrap().contains("stroll"));
    assert!(gradus(folder.path(), &["pages", "all/README.md", "all/sutton-barto-8.4/README.md"]).status.success());
}

#[test]
fn every_reproduction_is_listed() {
    let output = gradus(Path::new("."), &["reproduce", "list"]);
    let list = String::from_utf8(output.stdout).unwrap();
    for name in
        ["gae", "ppo-objectives", "ppo-details", "a2c-is-ppo", "trust-region", "overestimation", "pqn", "sac-temperature", "how-many-seeds"]
    {
        assert!(list.lines().any(|line| line == name), "{name}: {list}");
    }
    assert!(list.lines().all(|line| line.chars().count() <= 80), "{list}");
}

#[test]
fn bad_input_is_refused_in_one_line() {
    let folder = gradus_testing::tempdir().unwrap();
    fs::create_dir(folder.path().join("other")).unwrap();
    fs::write(folder.path().join("other/notes.txt"), "mine").unwrap();
    for (arguments, expected) in [
        (vec!["ppo-objective"], "unknown reproduction `ppo-objective`; did you mean `ppo-objectives`?"),
        (vec!["figure"], "unknown reproduction `figure`; `gradus reproduce list` shows all 31"),
        (vec![], "the following required arguments were not provided: <NAME>"),
        (
            vec!["a2c-is-ppo", "--quick", "--out", "other"],
            "other: expected a new folder, or one of a reproduction, got a folder with other files",
        ),
        (
            vec!["a2c-is-ppo", "--quick", "--out", "other/notes.txt"],
            "other/notes.txt: expected a new folder, or one of a reproduction, got a file",
        ),
        (vec!["gallery", "--out", "nowhere"], "nowhere: expected a folder with reproductions, got none"),
    ] {
        let error = error_of(&gradus(folder.path(), &[&["reproduce"], &arguments[..]].concat()));
        assert_eq!(error, expected, "{arguments:?}");
    }
    assert_eq!(contents(folder.path()).len(), 1, "nothing is written or lost");
}
