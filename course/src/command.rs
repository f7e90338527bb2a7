//! The command of a course: what `gradus course` calls in the folder of a student.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, SystemTime};

use crate::exercise::About;
use crate::grade;
use crate::lessons::{self, HOMEWORKS, LESSONS, Sheets, Told, file_of, find, in_words, is_homework, of_lesson, page_of, replace};
use crate::run::{self, OPEN, RIGHT, TOO_SLOW, command};
use crate::terminal::{Style, say, wrapped};

/// The folder of the course's own notes in a student's folder: how many hints were read, and what `reset` replaced.
const NOTES: &str = ".course";

const HELP: &str = "\
A course in reinforcement learning whose exercises check themselves.

  list             the exercises, and which of them are right
  check [N]        checks lesson N (1), exercise N (1.2), homework N (h1), or all lessons
  hint N           a hint for exercise N; each call says more
  solution N       our answer to exercise N, once yours is right
  reset N          puts the template of exercise N back
  watch [N]        checks again whenever a file is saved
  grade N FOLDER   grades the submissions for lesson N; grade --help says more
";

/// Runs the command of a course with the arguments of the process.
pub fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = renew(&words).and_then(|()| match words[..] {
        [] | ["help" | "--help" | "-h"] => {
            say(HELP.replace("  list ", &format!("Usage: {} COMMAND\n\n  list ", command())).trim_end());
            Ok(0)
        }
        ["begin"] => begin(Path::new(".")),
        ["list"] => list(),
        ["check"] => check_all(),
        ["check", number] => check(number),
        ["hint", number] => hint(number),
        ["solution", number] => solution(number),
        ["reset", number] => reset(number),
        ["grade", "--help" | "-h"] => {
            say(grade::HELP.replace("Usage: grade", &format!("Usage: {} grade", command())).trim_end());
            Ok(0)
        }
        ["grade", ref rest @ ..] => grade::grade(rest),
        ["watch"] => watch(None),
        ["watch", number] => watch(Some(number)),
        ["check" | "watch" | "hint" | "solution" | "reset", first, ..] if words.len() > 2 => {
            Err(format!("{}: expected one number, got `{}`", words[0], [first, &words[2..].join(" ")].join(" ")))
        }
        ["hint" | "solution" | "reset"] => Err(format!("{}: expected the number of an exercise, such as 1.2, got none", words[0])),
        _ => Err(format!("expected list, check, hint, solution, reset, watch or grade, got `{}`", words.join(" "))),
    });
    match result {
        Ok(code) => ExitCode::from(code),
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::from(2)
        }
    }
}

/// Writes the files of a new folder.
fn begin(dir: &Path) -> Told<u8> {
    add_lessons(dir)?;
    say(&format!("{} exercises; begin with src/lesson_1.rs and `{} check 1`", lessons::all().len(), command()));
    Ok(0)
}

/// Writes the files of the lessons that have none in the folder: of all, or of those that a newer version has. Returns their numbers. A
/// lesson of which one file is there is left alone.
fn add_lessons(dir: &Path) -> Told<Vec<&'static str>> {
    let mut added = Vec::new();
    for Sheets { number, template, check, .. } in LESSONS.iter().chain(HOMEWORKS) {
        let (own, program) = (dir.join(format!("src/{}.rs", file_of(number))), dir.join(format!("src/bin/{}.rs", page_of(number))));
        if own.exists() || program.exists() {
            continue;
        }
        let folder = program.parent().unwrap_or(dir);
        in_words(fs::create_dir_all(folder), "create", folder)?;
        in_words(fs::write(&own, template), "write", &own)?;
        in_words(fs::write(&program, check), "write", &program)?;
        added.push(*number);
    }
    Ok(added)
}

/// Adds the lessons of a newer version to a folder of an older one, and says so.
fn renew(words: &[&str]) -> Told<()> {
    // also one whose making was interrupted
    let is_folder = fs::read_to_string("Cargo.toml").is_ok_and(|text| text.contains("gradus-course ="));
    if is_folder && ["list", "check", "watch"].iter().any(|word| words.first() == Some(word)) {
        for number in add_lessons(Path::new("."))? {
            say(&format!("new: src/{}.rs", file_of(number)));
        }
    }
    Ok(())
}

/// Returns what stands above the exercises of a lesson or homework.
fn headline(sheets: &Sheets) -> String {
    let word = if is_homework(sheets.number) { "Homework" } else { "Lesson" };
    format!("{word} {}: {}", sheets.number.trim_start_matches('h'), sheets.title)
}

/// Refuses what there is for lessons only.
fn refuse_homework(what: &str, number: &str) -> Told<()> {
    if is_homework(number) { Err(format!("{what} {number}: expected an exercise of a lesson, got one of a homework")) } else { Ok(()) }
}

fn exercise(number: &str) -> Told<(&'static Sheets, About)> {
    match find(number)? {
        (sheets, Some(about)) => Ok((sheets, about)),
        (_, None) => Err(format!("expected the number of an exercise, such as {number}.1, got `{number}`")),
    }
}

/// Compiles the program of a lesson, and shows the compiler's messages if `shows`. Returns whether it compiles.
fn compile(lesson: &str, shows: bool) -> Told<bool> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--bin", &page_of(lesson)]);
    let status = if shows { command.status() } else { command.stderr(Stdio::null()).status() };
    Ok(status.map_err(|error| format!("cannot run cargo: {error}"))?.success())
}

/// What the program of a lesson said of an exercise.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Right,
    Wrong,
    Open,
}

/// Checks an exercise in a process of its own, because a function may end the process or never return.
fn checked(lesson: &str, about: About, is_quiet: bool) -> Told<State> {
    // beside this program
    let own = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let mut program = Command::new(own.with_file_name(page_of(lesson) + std::env::consts::EXE_SUFFIX));
    program.arg(about.number).env("RUST_BACKTRACE", "0");
    if is_quiet {
        program.arg("--quiet").stdout(Stdio::null()).stderr(Stdio::null());
    }
    let status = program.status().map_err(|error| format!("cannot run the lesson: {error}"))?;
    match status.code().and_then(|code| u8::try_from(code).ok()) {
        Some(RIGHT) => Ok(State::Right),
        Some(OPEN) => Ok(State::Open),
        Some(1 | TOO_SLOW) => Ok(State::Wrong),
        _ => {
            if !is_quiet {
                say(&run::crashed(about, &status, Style::of_terminal()));
            }
            Ok(State::Wrong)
        }
    }
}

fn check_all() -> Told<u8> {
    LESSONS.iter().try_fold(0, |code, sheets| Ok(code.max(check(sheets.number)?)))
}

fn check(number: &str) -> Told<u8> {
    let (sheets, about) = find(number)?;
    if !compile(sheets.number, true)? {
        let file = format!("src/{}.rs", file_of(sheets.number));
        say(&wrapped(
            "",
            0,
            &format!(
                "{file} does not compile: the first message above names the line. Numbers of different types are converted by hand, for example \
                 `f64::from(n)` (`gradus guide rust-for-python`). What a function takes and returns must stay as in the template; `{} reset N` \
                 puts that of exercise N back.",
                command()
            ),
        ));
        return Ok(1);
    }
    say(&format!("{}\n", Style::of_terminal().bold(&headline(sheets))));
    let wanted = about.map_or_else(|| of_lesson(sheets.number), |about| vec![about]);
    let states: Vec<State> = wanted.iter().map(|about| checked(sheets.number, *about, false)).collect::<Told<_>>()?;
    let right = states.iter().filter(|state| **state == State::Right).count();
    let next = wanted.iter().zip(&states).find(|(_, state)| **state != State::Right);
    let hint = next.map(|(about, _)| format!(" For a hint: {} hint {}", command(), about.number)).unwrap_or_default();
    if is_homework(sheets.number) {
        say(&format!("\n{right} of {} agree with the examples. The grade is decided by other numbers.", wanted.len()));
    } else {
        say(&format!("\n{right} of {} right.{hint}", wanted.len()));
    }
    Ok(u8::from(right < wanted.len()))
}

fn list() -> Told<u8> {
    let style = Style::of_terminal();
    let mut right = 0;
    for sheets in LESSONS {
        let lesson = &sheets.number;
        say(&style.bold(&headline(sheets)));
        let compiles = compile(lesson, false)?;
        if !compiles {
            say(&format!(
                "  {}",
                style.bad(&format!("src/{}.rs does not compile; `{} check {lesson}` says why", file_of(lesson), command()))
            ));
        }
        for about in of_lesson(lesson) {
            let state = if compiles { checked(lesson, about, true)? } else { State::Open };
            let mark = match state {
                State::Right => style.good("right"),
                State::Wrong => style.bad("wrong"),
                State::Open => style.faint("open "),
            };
            right += u32::from(state == State::Right);
            say(&format!("  {}  {mark}  {:<24}{}", style.bold(about.number), about.name, style.faint(about.title)));
        }
        say("");
    }
    say(&format!("{right} of {} right.", lessons::all().len()));
    Ok(0)
}

fn hint(number: &str) -> Told<u8> {
    let (_, about) = exercise(number)?;
    refuse_homework("hint", number)?;
    let path = Path::new(NOTES).join(format!("hints-{number}"));
    let read: usize = fs::read_to_string(&path).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    let shown = (read + 1).min(about.hints.len());
    for (number, hint) in (1..).zip(&about.hints[..shown]) {
        say(&wrapped(&format!("{number}."), 4, hint));
    }
    if shown == about.hints.len() {
        say(&format!("\nThese are all hints. The lesson says more: gradus guide {}#{}", page_of(number), about.section));
    } else {
        say(&format!("\nFor the next hint, type the same again ({shown} of {}).", about.hints.len()));
    }
    in_words(fs::create_dir_all(NOTES), "create", Path::new(NOTES))?;
    in_words(fs::write(&path, shown.to_string()), "write", &path)?;
    Ok(0)
}

/// Returns the text of an exercise in a file: from the line `/// 1.2 ...` to the one of the next exercise.
pub(crate) fn part(text: &str, number: &str) -> Option<Range<usize>> {
    let is_head = |line: &str| {
        let word = line.strip_prefix("/// ")?.split_whitespace().next()?;
        let (lesson, exercise) = word.split_once('.')?;
        (lesson.trim_start_matches('h').parse::<u32>().is_ok() && exercise.parse::<u32>().is_ok()).then(|| word.to_owned())
    };
    let mut at = 0;
    let mut start = None;
    for line in text.split_inclusive('\n') {
        match (is_head(line), start) {
            (Some(_), Some(from)) => return Some(from..at),
            (Some(word), None) if word == number => start = Some(at),
            _ => {}
        }
        at += line.len();
    }
    start.map(|from| from..text.len())
}

fn solution(number: &str) -> Told<u8> {
    let (sheets, about) = exercise(number)?;
    refuse_homework("solution", number)?;
    if !compile(sheets.number, false)? || checked(sheets.number, about, true)? != State::Right {
        return Err(format!(
            "solution {number}: expected an exercise that is right, got one that is not yet; `{} hint {number}` helps",
            command()
        ));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("answers/{}.rs", file_of(sheets.number)));
    let Ok(text) = fs::read_to_string(&path) else {
        say("Yours is right. Our answers are not part of this download; your lecturer has them.");
        return Ok(0);
    };
    let own = part(&text, about.number).map_or("", |place| &text[place]);
    say(own.lines().skip(1).collect::<Vec<_>>().join("\n").trim_end());
    Ok(0)
}

fn reset(number: &str) -> Told<u8> {
    let (sheets, about) = exercise(number)?;
    let path = PathBuf::from(format!("src/{}.rs", file_of(sheets.number)));
    if !path.exists() {
        replace(&path, sheets.template)?;
        say(&format!("{} was not there; it is the template again", path.display()));
        return Ok(0);
    }
    let text = in_words(fs::read_to_string(&path), "read", &path)?;
    let template = part(sheets.template, about.number).map_or("", |place| &sheets.template[place]);
    // what stands behind the function stays: it may be what others call
    let function = |text: &str, place: Range<usize>| {
        let end = text[place.clone()].find("\n}").map_or(place.end, |at| place.start + at + 2);
        place.start..end
    };
    let template = &template[function(template, 0..template.len())];
    let Some(place) = part(&text, about.number).map(|place| function(&text, place)) else {
        return Err(format!("{}: expected a line that begins with `/// {number} `, above the function, got none", path.display()));
    };
    in_words(fs::create_dir_all(NOTES), "create", Path::new(NOTES))?;
    let kept = (1..).map(|n| Path::new(NOTES).join(format!("{}-{n}.rs", file_of(sheets.number)))).find(|path| !path.exists());
    let kept = kept.unwrap_or_default();
    in_words(fs::write(&kept, &text), "write", &kept)?;
    let mut new = text.clone();
    new.replace_range(place, template);
    replace(&path, &new)?;
    say(&format!("{} is the template again; the file as it was: {}", about.name, kept.display()));
    Ok(0)
}

/// Checks again whenever a file of the lessons is saved, until the process is ended.
fn watch(number: Option<&str>) -> Told<u8> {
    let watched: Vec<&Sheets> = match number {
        Some(number) => vec![find(number)?.0],
        None => LESSONS.iter().collect(),
    };
    let changed =
        |sheets: &Sheets| -> Option<SystemTime> { fs::metadata(format!("src/{}.rs", file_of(sheets.number))).ok()?.modified().ok() };
    let mut times: Vec<Option<SystemTime>> = watched.iter().map(|sheets| changed(sheets)).collect();
    // at first the lesson that was saved last
    let mut now = (0..watched.len()).max_by_key(|i| times[*i]);
    let style = Style::of_terminal();
    loop {
        if let Some(i) = now {
            say(style.cleared());
            let lesson = watched[i].number;
            check(number.unwrap_or(lesson))?;
            say(&format!("\n{}", style.faint(&format!("Waiting for src/{}.rs to be saved; Ctrl-C ends.", file_of(lesson)))));
        }
        thread::sleep(Duration::from_millis(200));
        now = (0..watched.len()).find(|i| changed(watched[*i]) != times[*i]);
        if let Some(i) = now {
            times[i] = changed(watched[i]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_of_an_exercise_ends_at_the_next_one() {
        let text = "//! a\n\n/// 1.1 A\n///\n/// 2 b\nfn a() {}\n\n/// 1.2 B\nfn b() {}\n";
        assert_eq!(part(text, "1.1").map(|place| &text[place]), Some("/// 1.1 A\n///\n/// 2 b\nfn a() {}\n\n"));
        assert_eq!(part(text, "1.2").map(|place| &text[place]), Some("/// 1.2 B\nfn b() {}\n"));
        assert_eq!(part(text, "1.3"), None);
    }

    #[test]
    fn a_folder_gets_the_lessons_that_it_does_not_have() {
        let dir = std::env::temp_dir().join(format!("gradus-course-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        assert_eq!(add_lessons(&dir).unwrap().len(), LESSONS.len() + HOMEWORKS.len());
        let path = |name: &str| dir.join("src").join(name);
        fs::write(path("lesson_1.rs"), "mine").unwrap();
        fs::remove_file(path("lesson_2.rs")).unwrap();
        fs::remove_file(path("lesson_3.rs")).unwrap();
        fs::remove_file(path("bin/lesson-3.rs")).unwrap();
        assert_eq!(add_lessons(&dir).unwrap(), ["3"], "a file that a student deleted stays deleted");
        assert_eq!(fs::read_to_string(path("lesson_1.rs")).unwrap(), "mine");
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn every_exercise_has_its_part_in_the_template() {
        let homeworks = HOMEWORKS.iter().flat_map(|sheets| of_lesson(sheets.number));
        for about in lessons::all().into_iter().chain(homeworks) {
            let (sheets, _) = find(about.number).unwrap();
            let place = part(sheets.template, about.number).unwrap_or_else(|| panic!("{}", about.number));
            assert!(sheets.template[place].contains(&format!("pub fn {}(", about.name)), "{}", about.number);
            assert!(sheets.check.contains(about.name), "{}", about.number);
            assert!(about.hints.len() >= 2 || is_homework(about.number), "{}", about.number);
        }
    }

    #[test]
    fn a_number_that_is_no_exercise_is_refused() {
        assert_eq!(
            find("99").unwrap_err(),
            format!("expected a lesson from 1 to {}, a homework from h1 to h3, or an exercise such as 1.2, got `99`", LESSONS.len())
        );
        assert_eq!(find("1.9").unwrap_err(), "expected an exercise from 1.1 to 1.6, got `1.9`");
        assert_eq!(exercise("1").unwrap_err(), "expected the number of an exercise, such as 1.1, got `1`");
    }
}
