//! Grades the submissions in a folder, each in processes of its own.

mod report;
mod scan;

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value as Json;

use crate::exercise::About;
use crate::lessons::{Sheets, Told, file_of, find, in_words, of_lesson, replace};
use crate::run::{self, LIMIT};
use crate::terminal::say;

/// Largest submission.
const MOST_SOURCE: u64 = 1 << 20;
/// Longest time to compile a submission.
const COMPILES_WITHIN: Duration = Duration::from_secs(60);
/// Most bytes that a submission may print for an exercise.
const MOST_OUTPUT: usize = 1 << 20;

pub(crate) const HELP: &str = "\
Grades the submissions for a lesson (1) or a homework (h1). FOLDER has one file for
each student, NAME.rs or NAME/lesson_1.rs. Nothing else of a student is used: no manifest, no other file.

Usage: grade LESSON FOLDER [OPTIONS]

  --json FILE        everything that was found
  --csv FILE         a row for each student, a column for each exercise
  --gradescope DIR   DIR/NAME/results.json, as Gradescope reads it
  --seed N           seed of the inputs [default: 1]; each student has other numbers
";

/// What was found of an exercise of a student.
pub(crate) struct Mark {
    pub(crate) about: About,
    pub(crate) is_right: bool,
    /// What was found, in a line.
    pub(crate) says: String,
}

/// The grades of a student.
pub(crate) struct Graded {
    pub(crate) name: String,
    pub(crate) seed: u64,
    /// Why there are no marks, in a line.
    pub(crate) problem: Option<String>,
    pub(crate) marks: Vec<Mark>,
    pub(crate) is_isolated: bool,
}

struct Options<'a> {
    json: Option<&'a str>,
    csv: Option<&'a str>,
    gradescope: Option<&'a str>,
    seed: u64,
}

/// Grades all submissions for a lesson, and writes the files that the arguments ask for.
pub(crate) fn grade(arguments: &[&str]) -> Told<u8> {
    let (lesson, folder, options) = parse(arguments)?;
    let (sheets, None) = find(lesson)? else { return Err(format!("grade: expected the number of a lesson or a homework, got `{lesson}`")) };
    let submissions = submissions(sheets.number, Path::new(folder))?;
    let workshop = Workshop::new(sheets)?;
    let mut all = Vec::new();
    for (name, path) in submissions {
        let graded = workshop.grade(&name, &path, options.seed);
        say(&report::line(&graded));
        all.push(graded);
    }
    if all.iter().any(|graded| !graded.is_isolated && graded.problem.is_none()) {
        say("not isolated: on this computer a submission can read and write your files");
    }
    let write = |path: &Path, text: String| {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        folder.map_or(Ok(()), |folder| in_words(fs::create_dir_all(folder), "create", folder))?;
        replace(path, &text)
    };
    options.json.map_or(Ok(()), |path| write(Path::new(path), report::json(sheets, &all)))?;
    options.csv.map_or(Ok(()), |path| write(Path::new(path), report::csv(sheets, &all)))?;
    options.gradescope.map_or(Ok(()), |dir| {
        all.iter().try_for_each(|graded| write(&Path::new(dir).join(&graded.name).join("results.json"), report::gradescope(sheets, graded)))
    })?;
    Ok(0)
}

fn parse<'a>(arguments: &[&'a str]) -> Told<(&'a str, &'a str, Options<'a>)> {
    let mut options = Options { json: None, csv: None, gradescope: None, seed: 1 };
    let mut plain = Vec::new();
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        let mut value = || rest.next().copied().ok_or(format!("{word}: expected a value, got none"));
        match *word {
            "--json" => options.json = Some(value()?),
            "--csv" => options.csv = Some(value()?),
            "--gradescope" => options.gradescope = Some(value()?),
            "--seed" => {
                let text = value()?;
                options.seed = text.parse().map_err(|_| format!("--seed: expected a whole number, got `{text}`"))?;
            }
            option if option.starts_with('-') => {
                return Err(format!("grade: expected --json, --csv, --gradescope or --seed, got `{option}`"));
            }
            word => plain.push(word),
        }
    }
    match plain[..] {
        [lesson, folder] => Ok((lesson, folder, options)),
        _ => Err(format!("grade: expected LESSON FOLDER, got `{}`", plain.join(" "))),
    }
}

/// Returns the students' names and files, in the order of their names.
fn submissions(lesson: &str, folder: &Path) -> Told<Vec<(String, PathBuf)>> {
    let mut all = Vec::new();
    for entry in in_words(fs::read_dir(folder), "read", folder)? {
        let path = in_words(entry, "read", folder)?.path();
        let inside = path.join(format!("{}.rs", file_of(lesson)));
        let is_source = path.is_file() && path.extension().is_some_and(|end| end == "rs");
        let name = if is_source { path.file_stem() } else { path.file_name() };
        let name = name.unwrap_or_default().to_string_lossy().into_owned();
        if is_source {
            all.push((name, path));
        } else if path.is_dir() && !path.is_symlink() && !name.starts_with('.') {
            all.push((name, inside));
        }
    }
    all.sort();
    if all.is_empty() {
        return Err(format!("{}: expected submissions, NAME.rs or NAME/{}.rs, got none", folder.display(), file_of(lesson)));
    }
    if let Some(pair) = all.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(format!("{}: expected one submission of each student, got two of {}", folder.display(), pair[0].0));
    }
    Ok(all)
}

/// The seed of a student: other numbers for each name.
fn seed_of(name: &str, seed: u64) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325 ^ seed, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The crate in which submissions are compiled, one after the other.
struct Workshop {
    sheets: &'static Sheets,
    dir: PathBuf,
    target: PathBuf,
}

impl Workshop {
    /// Makes the crate from the manifest of the folder of the course in which this program runs.
    fn new(sheets: &'static Sheets) -> Told<Self> {
        let here = in_words(std::env::current_dir(), "find", Path::new("."))?;
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| here.join("target"), PathBuf::from);
        let dir = target.join("grading");
        let manifest = in_words(fs::read_to_string("Cargo.toml"), "read", Path::new("Cargo.toml"))?;
        let made = || {
            fs::create_dir_all(dir.join("src"))?;
            fs::create_dir_all(dir.join("empty"))?;
            fs::write(dir.join("Cargo.toml"), graded_manifest(&manifest, &here))?;
            if Path::new("Cargo.lock").exists() {
                fs::copy("Cargo.lock", dir.join("Cargo.lock"))?;
            }
            Ok(())
        };
        in_words(made(), "make", &dir)?;
        Ok(Self { sheets, dir, target })
    }

    fn grade(&self, name: &str, path: &Path, seed: u64) -> Graded {
        let seed = seed_of(name, seed);
        let mut graded = Graded { name: name.into(), seed, problem: None, marks: Vec::new(), is_isolated: true };
        match self.compiled(path) {
            Err(problem) => graded.problem = Some(problem),
            Ok(program) => {
                for about in of_lesson(self.sheets.number) {
                    let (mark, is_isolated) = self.mark(&program, about, seed);
                    graded.is_isolated &= is_isolated;
                    graded.marks.push(mark);
                }
            }
        }
        graded
    }

    /// Compiles a submission and returns its program.
    fn compiled(&self, path: &Path) -> Told<PathBuf> {
        let own = file_of(self.sheets.number) + ".rs";
        // a link could lead to another student's file, or to a device
        let about = fs::symlink_metadata(path).map_err(|_| format!("expected the file {own}, got none"))?;
        let size = about.len();
        if !about.is_file() {
            return Err("expected a file, got a link or something else".into());
        }
        if size > MOST_SOURCE {
            return Err(format!("expected at most {MOST_SOURCE} bytes, got {size}"));
        }
        let bytes = fs::read(path).map_err(|error| format!("cannot read: {error}"))?;
        let text = String::from_utf8(bytes).map_err(|_| "expected text in UTF-8, got other bytes".to_owned())?;
        if let Some(what) = scan::refused(&text) {
            return Err(what);
        }
        // a check is the program that a student calls, with another last call
        let check = self.sheets.check.replace("gradus_course::check(", "gradus_course::check_graded(");
        let check = check.replace("#[path = \"../", "#[forbid(unsafe_code)]\n#[path = \"");
        let file = |name: String| self.dir.join("src").join(name);
        let written = fs::write(file(own), text).and_then(|()| fs::write(file("main.rs".into()), check));
        in_words(written, "write", &self.dir)?;
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = Command::new(cargo);
        build.args(["build", "--quiet", "--offline", "--target-dir"]).arg(&self.target).current_dir(&self.dir);
        let output = within(&mut build, COMPILES_WITHIN, MOST_OUTPUT, &[]).map_err(|error| format!("cannot run cargo: {error}"))?;
        match output.end {
            End::Code(0) => Ok(self.target.join("debug").join(format!("graded{}", std::env::consts::EXE_SUFFIX))),
            End::Late => Err(format!("does not compile within {} seconds", COMPILES_WITHIN.as_secs())),
            _ => Err(format!("does not compile: {}", first_error(&output.errors))),
        }
    }

    /// Checks an exercise of the program of a submission.
    fn mark(&self, program: &Path, about: About, seed: u64) -> (Mark, bool) {
        // a word that the submission does not know, and so cannot print; the code of a submission has no way to read it
        let word = format!("{:016x}", secret());
        let mut command = Command::new(program);
        command.arg(about.number).arg(seed.to_string()).env_clear().env("RUST_BACKTRACE", "0").current_dir(self.dir.join("empty"));
        if let Some(tunables) = std::env::var_os("GLIBC_TUNABLES") {
            command.env("GLIBC_TUNABLES", tunables); // which vector instructions the C library uses
        }
        let ran = within(&mut command, LIMIT + Duration::from_secs(5), MOST_OUTPUT, format!("{word}\n").as_bytes());
        let (mut is_right, mut is_isolated, says) = match ran {
            Err(error) => (false, true, format!("cannot run: {error}")),
            Ok(output) => {
                let said = output
                    .text
                    .lines()
                    .filter_map(|line| line.strip_prefix(&word))
                    .filter_map(|json| serde_json::from_str::<Json>(json).ok());
                let said: Vec<Json> = said.collect();
                let is_isolated = said.first().is_some_and(|json| json["isolated"] == true);
                let verdict = said.iter().find(|json| json["right"].is_boolean());
                let says = match (verdict, &output.end) {
                    (Some(json), _) => json["says"].as_str().unwrap_or_default().to_owned(),
                    (None, End::Late) => format!("has not returned within {} seconds", LIMIT.as_secs()),
                    (None, End::Printed) => format!("printed more than {MOST_OUTPUT} bytes"),
                    (None, End::Code(code)) => format!("ended the program, with code {code}"),
                    (None, End::Signal(how)) if output.errors.contains("memory allocation") => {
                        format!("needs more memory than 1 GiB ({how})")
                    }
                    (None, End::Signal(how)) if output.errors.contains("overflowed its stack") => {
                        format!("recursion without an end ({how})")
                    }
                    (None, End::Signal(how)) => format!("ended the program ({how})"),
                };
                (verdict.is_some_and(|json| json["right"] == true) && matches!(output.end, End::Code(0)), is_isolated, says)
            }
        };
        is_right &= says == run::RIGHT_WORD;
        is_isolated |= !is_right && says.starts_with("cannot run");
        (Mark { about, is_right, says }, is_isolated)
    }
}

/// Returns the manifest of the crate for submissions: that of the folder of the course, with another name and one program.
fn graded_manifest(manifest: &str, here: &Path) -> String {
    let mut table: Vec<String> = Vec::new();
    let mut is_program = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            is_program = line.trim() == "[[bin]]";
        }
        if is_program || line.trim_start().starts_with("default-run") {
            continue;
        }
        let line = match line.split_once('=') {
            Some((key, _)) if key.trim() == "name" => "name = \"graded\"".to_owned(),
            Some((key, rest)) if key.trim() == "gradus-course" => match rest.split_once("path = \"") {
                // the crate stands in another folder
                Some((before, path)) if !Path::new(path.split('"').next().unwrap_or_default()).is_absolute() => {
                    format!("{key}={before}path = \"{}/{path}", here.display().to_string().replace('\\', "/"))
                }
                _ => line.to_owned(),
            },
            _ => line.to_owned(),
        };
        table.push(line);
    }
    table.join("\n") + "\n"
}

/// Returns the first error of the compiler with its place, in a line.
fn first_error(text: &str) -> String {
    let mut lines = text.lines().skip_while(|line| !line.starts_with("error"));
    let error = lines.next().unwrap_or("the compiler gives no reason");
    let place = lines.next().and_then(|line| line.split_once("--> ")).map(|(_, place)| place.trim());
    let place = place.and_then(|place| place.rsplit(['/', '\\']).next());
    place.map_or(error.to_owned(), |place| format!("{error} ({place})"))
}

/// Returns a number that differs from call to call and is not easily guessed.
fn secret() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(Instant::now())
}

/// How a process ended.
#[derive(Debug)]
enum End {
    Code(i32),
    /// By a signal, in words.
    Signal(String),
    /// It was ended because it took too long.
    Late,
    /// It was ended because it printed too much.
    Printed,
}

struct Output {
    text: String,
    errors: String,
    end: End,
}

/// Runs a command, gives it `input`, and ends it after `limit`, or when it has printed `most` bytes.
fn within(command: &mut Command, limit: Duration, most: usize, input: &[u8]) -> std::io::Result<Output> {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        let _ = stdin.write_all(input);
    }
    let (sender, receiver) = mpsc::channel();
    let read = |from: Option<Box<dyn Read + Send>>, number: usize| {
        let sender = sender.clone();
        thread::spawn(move || {
            let mut bytes = Vec::new();
            let is_whole = from.is_none_or(|from| from.take(most as u64 + 1).read_to_end(&mut bytes).is_ok());
            let _ = sender.send((number, bytes, is_whole));
        });
    };
    read(child.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>), 0);
    read(child.stderr.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>), 1);
    let deadline = Instant::now() + limit;
    let (mut texts, mut end) = ([const { Vec::new() }; 2], None);
    for _ in 0..2 {
        match receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok((number, bytes, _)) => {
                if bytes.len() > most {
                    end = end.or(Some(End::Printed));
                    kill(&mut child);
                }
                texts[number] = bytes;
            }
            Err(_) => {
                end = end.or(Some(End::Late));
                kill(&mut child);
            }
        }
    }
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if Instant::now() > deadline {
            end = end.or(Some(End::Late));
            kill(&mut child);
        }
        thread::sleep(Duration::from_millis(2));
    };
    let [text, errors] = texts.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let end = end.unwrap_or_else(|| status.code().map_or_else(|| End::Signal(status.to_string()), End::Code));
    Ok(Output { text, errors, end })
}

/// Ends a process and those that it began.
fn kill(child: &mut Child) {
    #[cfg(target_os = "linux")]
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
    }
    let _ = child.kill();
}
