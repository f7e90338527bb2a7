//! `gradus new` writes the crate in `examples/own_crate`, which `scripts/own-crate.sh` builds and uses.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn gradus(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gradus")).args(arguments).current_dir(folder).output().unwrap()
}

/// Returns the files below a folder, with paths relative to it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = PathBuf::from(path.file_name().unwrap());
        match path.is_dir() {
            true => all.extend(files(&path).iter().map(|inner| name.join(inner))),
            false => all.push(name),
        }
    }
    all.sort();
    all
}

#[test]
fn the_written_crate_is_that_of_the_examples() {
    let (folder, source) = (gradus_testing::tempdir().unwrap(), gradus_testing::root().to_str().unwrap());
    for path in [&[][..], &["--path", source]] {
        let _ = fs::remove_dir_all(folder.path().join("own_crate"));
        let output = gradus(folder.path(), &[&["new", "own_crate"], path].concat());
        assert!(output.status.success(), "{output:?}");
        let (written, expected) = (folder.path().join("own_crate"), Path::new(source).join("examples/own_crate"));
        let mut names = files(&expected);
        names.retain(|name| !["Cargo.lock", "target", "runs"].iter().any(|other| name.starts_with(other)));
        assert_eq!(files(&written), names);
        for name in names {
            let [written, expected] = [&written, &expected].map(|folder| fs::read_to_string(folder.join(&name)).unwrap());
            let path = |folder: &Path| format!("path = \"{}\"", folder.display().to_string().replace('\\', "\\\\"));
            let written = written.replace(&path(Path::new(source)), "path = \"../..\"");
            let written = written.replace(&path(&Path::new(source).join("cli")), "path = \"../../cli\"");
            assert_eq!(written, expected, "{} differs", name.display());
        }
    }
}

#[test]
fn the_crate_has_the_name_that_was_asked_for_and_nothing_is_overwritten() {
    let folder = gradus_testing::tempdir().unwrap();
    let message = |arguments: &[&str]| {
        let output = gradus(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(gradus(folder.path(), &["new", "deep/in 1", "--name", "mine"]).status.success());
    let crate_folder = folder.path().join("deep/in 1");
    assert!(fs::read_to_string(crate_folder.join("Cargo.toml")).unwrap().starts_with("[package]\nname = \"mine\"\n"));
    assert!(fs::read_to_string(crate_folder.join("README.md")).unwrap().starts_with("# mine\n"));
    let again = message(&["new", "deep/in 1", "--name", "mine"]);
    assert_eq!(again, "error: deep/in 1: expected a folder that is new or empty, got a folder with other files\n");
    fs::write(folder.path().join("file"), "").unwrap();
    assert!(message(&["new", "file"]).ends_with("got a file\n"));
    for name in ["9lives", "gradus", "fn", "a.b", ""] {
        let problem = message(&["new", "new", "--name", name]);
        assert!(problem.starts_with("error: name of the crate: expected letters, digits, - and _") && problem.lines().count() == 1);
    }
    let missing = message(&["new", "new", "--path", "deep"]);
    assert_eq!(missing, "error: deep: expected the folder of Gradus's source, got one without its Cargo.toml\n");
    assert_eq!(files(folder.path()).iter().filter(|path| !path.starts_with("deep")).count(), 1, "only `file`");
}
