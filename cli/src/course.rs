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
    /// Check the functions of a lesson or of an exercise. Exit code 1 if one is not right.
    Check {
        /// Lesson (1) or exercise (1.2) [default: all]
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
    /// Grade the submissions for a lesson: LESSON FOLDER [--json FILE] [--csv FILE] [--gradescope DIR] [--seed N].
    #[command(disable_help_flag = true)]
    Grade {
        /// Lesson, folder and options; --help says more
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        arguments: Vec<String>,
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
    (".gitignore", "/target\n/.course\n"),
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
        Course::Grade { arguments } => {
            let words: Vec<&str> = std::iter::once("grade").chain(arguments.iter().map(String::as_str)).collect();
            here(&words)
        }
        Course::Watch { number } => here(&words("watch", number.as_deref())),
    }
}

fn words<'a>(command: &'a str, number: Option<&'a str>) -> Vec<&'a str> {
    std::iter::once(command).chain(number).collect()
}

fn here(arguments: &[&str]) -> Result<u8, Error> {
    let dir = std::env::current_dir().map_err(|source| io("find", Path::new("."), source))?;
    // also from a folder within it, such as src
    call(dir.ancestors().find(|dir| is_course(dir)).unwrap_or(&dir), arguments, false)
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
    let code = call(dir, &["begin"], true)?;
    if code == 0 {
        say(format!("cd {} && cargo run -- check 1", quoted(&dir.display().to_string())));
    }
    Ok(code)
}

fn is_course(dir: &Path) -> bool {
    fs::read_to_string(dir.join("Cargo.toml")).is_ok_and(|text| text.contains("gradus-course ="))
}

/// Calls the program of the student's folder `dir`; with `shows_build`, cargo says what it builds.
fn call(dir: &Path, arguments: &[&str], shows_build: bool) -> Result<u8, Error> {
    if !is_course(dir) {
        let advice = format!("`{} course new DIR` makes one", program_name());
        let problem = format!("expected the folder of a course, got one without gradus-course in its Cargo.toml; {advice}");
        return Err(Error::Folder { path: dir.into(), problem });
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(dir).arg("run").args((!shows_build).then_some("--quiet")).args(["--bin", "course", "--"]).args(arguments);
    let status = command.env("GRADUS_COURSE", format!("{} course", program_name())).stdin(Stdio::inherit()).status();
    let status = status.map_err(|source| io("run", Path::new("cargo"), source))?;
    Ok(status.code().map_or(1, |code| u8::try_from(code).unwrap_or(1)))
}
