//! `gradus course`: makes the folder of a student of the course, and calls its program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Subcommand;
use gradus::{Error, program_name};

use crate::folder::{self, io};
use crate::new::{check_name, dependencies, source};
use crate::output::{quoted, say};

#[derive(Subcommand)]
pub(crate) enum Course {
    /// Make a folder with the exercises, which must be new or empty.
    New {
        /// The folder.
        dir: PathBuf,
        /// Folder of Gradus's source [default: the source that this program was built from]
        #[arg(long, value_name = "GRADUS")]
        path: Option<PathBuf>,
    },
    /// List the exercises, and which of them are right.
    List,
    /// Check the functions of a lesson, an exercise or a homework. Exit code 1 if one is not right.
    Check {
        /// Lesson (1), exercise (1.2) or homework (h1) [default: all lessons]
        number: Option<String>,
    },
    /// Give a hint. Each call says more.
    Hint {
        /// Exercise, such as 1.2
        number: String,
    },
    /// Show our answer to an exercise, once yours is right.
    Solution {
        /// Exercise, such as 1.2
        number: String,
    },
    /// Put the template of an exercise back.
    Reset {
        /// Exercise, such as 1.2
        number: String,
    },
    /// Grade the submissions in a folder: NAME.rs or NAME/lesson_1.rs for each student. Nothing else of a student is used: no manifest, no other file.
    Grade {
        /// Lesson (1) or homework (h1)
        number: String,
        /// Folder of the submissions
        folder: String,
        /// Write everything that was found
        #[arg(long, value_name = "FILE")]
        json: Option<String>,
        /// Write a row for each student, with a column for each exercise
        #[arg(long, value_name = "FILE")]
        csv: Option<String>,
        /// Write DIR/NAME/results.json, as Gradescope reads it
        #[arg(long, value_name = "DIR")]
        gradescope: Option<String>,
        /// Seed of the inputs [default: 1]; each student has other numbers
        #[arg(long, value_name = "N", allow_hyphen_values = true)]
        seed: Option<String>,
    },
    /// Write the files of an autograder for Gradescope: zip them, and upload the archive.
    Bundle {
        /// Lesson (1) or homework (h1)
        number: String,
        /// The folder, which must be new or empty
        dir: PathBuf,
        /// Where the autograder clones Gradus from
        #[arg(long, value_name = "ADDRESS")]
        repository: String,
        /// The commit that grades; without it, the newest one when the autograder's image is built
        #[arg(long, value_name = "COMMIT")]
        commit: Option<String>,
        /// Seed of the inputs, from which and from the student's number those of each student are made
        #[arg(long, default_value = "1", allow_hyphen_values = true)]
        seed: String,
    },
    /// Look for a bug in a whole agent: opens it, gives hints, and checks what you changed.
    Bug {
        /// Number of the bug, or `list`
        what: String,
        /// Give a hint; each call says more
        #[arg(long, conflicts_with_all = ["check", "reset"])]
        hint: bool,
        /// Check whether the bug is gone; exit code 1 if it is not
        #[arg(long, conflicts_with = "reset")]
        check: bool,
        /// Put the file with the bug back
        #[arg(long)]
        reset: bool,
    },
    /// Check again whenever a file is saved.
    Watch {
        /// Lesson (1) or exercise (1.2) [default: the lesson that was saved]
        number: Option<String>,
    },
}

/// The files of the folder; its program writes the others.
const FILES: [(&str, &str); 4] = [
    ("Cargo.toml", include_str!("course/manifest.toml")),
    (".gitignore", "/target\n/.course\n/runs\n"),
    ("README.md", include_str!("course/README.md")),
    ("src/main.rs", include_str!("course/main.rs")),
];

pub(crate) fn run(course: &Course) -> Result<u8, Error> {
    match course {
        Course::New { dir, path } => make(dir, path.as_deref()),
        Course::List => here(&["list"]),
        Course::Check { number } => here(&words("check", number.as_deref())),
        Course::Hint { number } => here(&["hint", number]),
        Course::Solution { number } => here(&["solution", number]),
        Course::Reset { number } => here(&["reset", number]),
        Course::Grade { number, folder, json, csv, gradescope, seed } => {
            let options = [("--json", json), ("--csv", csv), ("--gradescope", gradescope), ("--seed", seed)];
            let given = options.iter().filter_map(|(name, value)| Some([*name, value.as_deref()?]));
            here(&["grade", number, folder].into_iter().chain(given.flatten()).collect::<Vec<_>>())
        }
        Course::Bundle { number, dir, repository, commit, seed } => {
            bundle(number, dir, [repository, commit.as_deref().unwrap_or("HEAD")], crate::arguments::number("--seed", seed, 0)?)
        }
        Course::Bug { what, hint, check, reset } => {
            let option = [(hint, "--hint"), (check, "--check"), (reset, "--reset")].into_iter().find(|(is_given, _)| **is_given);
            bug(what, option.map(|(_, option)| option))
        }
        Course::Watch { number } => here(&words("watch", number.as_deref())),
    }
}

fn words<'a>(command: &'a str, number: Option<&'a str>) -> Vec<&'a str> {
    std::iter::once(command).chain(number).collect()
}

fn here(arguments: &[&str]) -> Result<u8, Error> {
    call(&student_folder()?, &["--bin", "course", "--"], arguments, false)
}

/// The folder of a student around the current folder.
fn student_folder() -> Result<PathBuf, Error> {
    let dir = std::env::current_dir().map_err(|source| io("find", Path::new("."), source))?;
    // also from a folder within it, such as src
    let found = dir.ancestors().find(|dir| is_course(dir)).map(Path::to_path_buf);
    found.ok_or_else(|| {
        let advice = format!("`{} course new DIR` makes one", program_name());
        let problem = format!("expected the folder of a course, got one without gradus-course in its Cargo.toml; {advice}");
        Error::Folder { path: dir, problem }
    })
}

/// Writes the autograder of a lesson or homework.
fn bundle(number: &str, dir: &Path, [repository, commit]: [&str; 2], seed: u64) -> Result<u8, Error> {
    let (kind, digits) = number.strip_prefix('h').map_or(("lesson", number), |digits| ("homework", digits));
    let most = if kind == "lesson" { 12 } else { 3 };
    if !digits.chars().all(|digit| digit.is_ascii_digit()) || !digits.parse().is_ok_and(|number: u32| (1..=most).contains(&number)) {
        return Err(Error::Parse {
            what: "bundle".into(),
            expected: "a lesson from 1 to 12, or a homework from h1 to h3".into(),
            got: format!("`{number}`"),
        });
    }
    for (what, expected, got) in
        [("--repository", "an address without quotes", repository), ("--commit", "a commit without quotes", commit)]
    {
        if got.contains(['\'', '\n']) || got.starts_with('-') {
            return Err(Error::Parse { what: what.into(), expected: expected.into(), got: got.into() });
        }
    }
    let run = include_str!("course/bundle/run_autograder").replace("SUBMITTED", &format!("{kind}_{digits}.rs"));
    let run = run.replace("NUMBER", number).replace("SEED", &seed.to_string());
    let setup = include_str!("course/bundle/setup.sh").replace("REPOSITORY", repository).replace("COMMIT", commit);
    folder::create(dir, |temporary| {
        for (file, text) in [("setup.sh", &setup), ("run_autograder", &run)] {
            let path = temporary.join(file);
            fs::write(&path, text).map_err(|source| io("write", &path, source))?;
        }
        Ok(())
    })?;
    say(format!(
        "{0}/setup.sh and {0}/run_autograder: zip both, and upload the archive as the autograder of the assignment",
        dir.display()
    ));
    Ok(0)
}

/// Calls a program of the folder `bugs` in a student's folder, which is made if it is not there.
fn bug(what: &str, option: Option<&str>) -> Result<u8, Error> {
    let student = student_folder()?;
    let dir = student.join("bugs");
    let is_new = !dir.join("Cargo.toml").exists();
    if is_new {
        let manifest = student.join("Cargo.toml");
        let text = fs::read_to_string(&manifest).map_err(|source| io("read", &manifest, source))?;
        make_bugs(&dir, &text)?;
        say("The agents are built once, which takes one to four minutes:");
    }
    let words: Vec<&str> = std::iter::once(what).chain(option).collect();
    match option {
        Some("--check") => call(&dir, &["--bin", "bugs", "--", "bug"], &words, is_new),
        _ => call(&dir, &["--bin", "bug", "--"], &words, is_new),
    }
}

/// Makes the folder of the bugs for a student whose manifest is `manifest`.
fn make_bugs(dir: &Path, manifest: &str) -> Result<(), Error> {
    let course = manifest.lines().find_map(|line| line.trim().strip_prefix("gradus-course = {")).unwrap_or_default();
    let course = course.trim().trim_end_matches('}').trim();
    // the crates beside that of the course, or of the same version
    let beside = |from: &str, to: &str| course.replace(from, to);
    let root = course.strip_prefix("path = \"").and_then(|path| path.strip_suffix("/course\""));
    let lock = root.and_then(|root| fs::read(Path::new(root).join("Cargo.lock")).ok());
    let profile = include_str!("new/manifest.toml").split_once("# Cargo ignores").map_or("", |(_, profile)| profile);
    let text = include_str!("course/bugs/manifest.toml")
        .replace(r#"path = "../../..""#, &beside("/course\"", "\""))
        .replace(r#"path = "../../../course/bugs""#, &beside("/course\"", "/course/bugs\""));
    folder::create(dir, |temporary| {
        let files = [
            ("Cargo.toml", format!("{text}\n# Cargo ignores{profile}")),
            (".gitignore", "/target\n/runs\n/.notes\n".into()),
            ("src/main.rs", include_str!("course/bugs/main.rs").into()),
            ("src/bin/bug.rs", include_str!("course/bugs/bug.rs").into()),
        ];
        for (file, text) in files {
            let path = temporary.join(file);
            let folder = path.parent().unwrap_or(temporary);
            fs::create_dir_all(folder).map_err(|source| io("create", folder, source))?;
            fs::write(&path, text).map_err(|source| io("write", &path, source))?;
        }
        let path = temporary.join("Cargo.lock");
        lock.as_ref().map_or(Ok(()), |lock| fs::write(&path, lock).map_err(|source| io("write", &path, source)))
    })
}

fn make(dir: &Path, path: Option<&Path>) -> Result<u8, Error> {
    let whole = std::path::absolute(dir).map_err(|source| io("find", dir, source))?;
    let name = whole.file_name().unwrap_or_default().display().to_string();
    // the name of the crate shows nowhere
    let name = if check_name(&name).is_ok() { name } else { "my-course".into() };
    let [dependency] = dependencies(path, ["course"])?;
    // with the versions of Gradus's own build, which are on this computer already
    let lock = source(path)?.and_then(|folder| fs::read(folder.join("Cargo.lock")).ok());
    folder::create(dir, |temporary| {
        for (file, text) in FILES {
            let path = temporary.join(file);
            let folder = path.parent().unwrap_or(temporary);
            fs::create_dir_all(folder).map_err(|source| io("create", folder, source))?;
            let text = text.replace("my-course", &name).replace(r#"path = "../course""#, &dependency);
            fs::write(&path, text).map_err(|source| io("write", &path, source))?;
        }
        let path = temporary.join("Cargo.lock");
        lock.as_ref().map_or(Ok(()), |lock| fs::write(&path, lock).map_err(|source| io("write", &path, source)))
    })?;
    say("The course is built once:");
    let code = call(dir, &["--bin", "course", "--"], &["begin"], true)?;
    if code == 0 {
        say(format!("now: cd {}, and then: cargo run -- check 1", quoted(&dir.display().to_string())));
    }
    Ok(code)
}

fn is_course(dir: &Path) -> bool {
    fs::read_to_string(dir.join("Cargo.toml")).is_ok_and(|text| text.contains("gradus-course ="))
}

/// Calls a program of the folder `dir`, which `which` names; with `shows_build`, cargo says what it builds.
fn call(dir: &Path, which: &[&str], arguments: &[&str], shows_build: bool) -> Result<u8, Error> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(dir).arg("run").args((!shows_build).then_some("--quiet")).args(which).args(arguments);
    let status = command.env("GRADUS_COURSE", format!("{} course", program_name())).stdin(Stdio::inherit()).status();
    let status = status.map_err(|source| io("run", Path::new("cargo"), source))?;
    Ok(status.code().map_or(1, |code| u8::try_from(code).unwrap_or(1)))
}
