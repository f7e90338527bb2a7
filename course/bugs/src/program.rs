//! The programs of a student who looks for bugs: `bug`, and the agents with the commands of `gradus`.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use gradus::agents::AgentConfig;
use gradus_cli::App;

use crate::bug::Bug;
use crate::check::{Verdict, shown, verdict};
use crate::{agents, curves, variants, worlds};

const HELP: &str = "\
Whole agents with a planted bug each, in a folder of their own, bugs.

  bug list          the bugs, and which of them are found
  bug N             opens bug N: what one sees, and with which commands to look
  bug N --hint      a hint; each call says more
  bug N --check     checks whether the bug is gone, and nothing else has changed
  bug N --reset     puts the file with the bug back
";

/// How a command failed: one line.
type Told<T> = Result<T, String>;

/// Where a student's notes are: how many hints were read, and which bugs are found.
const NOTES: &str = ".notes";

/// The folder with the figures, if this crate's source is that of the repository.
const FIGURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../results/bugs");

/// Runs the command that the arguments of the process name, apart from `--check`. Returns the exit code: 0, or 2 after an error, which is one
/// line on standard error.
pub fn manage() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let here = Path::new(".");
    exit_code(match words[..] {
        [] | ["--help" | "-h"] => {
            say(HELP.trim_end());
            Ok(0)
        }
        ["list"] => list(here),
        ["variants", dir] => variants::write(Path::new(dir)).map(|()| 0),
        [number] => find(number).and_then(|bug| open(here, bug)),
        [number, "--hint"] => find(number).and_then(|bug| hint(here, bug)),
        [number, "--reset"] => find(number).and_then(|bug| reset(here, bug)),
        _ => Err(format!("expected list, a number, or a number with --hint, --check or --reset, got `{}`", words.join(" "))),
    })
}

/// Begins the program of a student's agents: `gradus_bugs::program().bug::<bug_1::Config>(1).run()`.
pub fn program() -> Program {
    let app = gradus_cli::app().with_world(worlds::short_pole()).with_world(worlds::short_cliff());
    let app = app.agent::<agents::q_learning::Config>().agent::<agents::dqn::Config>().agent::<agents::sac::Config>();
    let app = app.agent::<agents::reinforce::Config>().agent::<agents::actor_critic::Config>().agent::<agents::ppo::Config>();
    let app = app.agent::<agents::grpo::Config>();
    Program { app, opened: Vec::new() }
}

/// A program with the agents of the bugs that were opened: the commands of `gradus`, and `check N`.
#[must_use = "the program does nothing until `run` is called"]
pub struct Program {
    app: App,
    opened: Vec<u32>,
}

impl Program {
    /// Adds the agent of a bug.
    pub fn bug<C: AgentConfig>(self, number: u32) -> Self {
        Self { app: self.app.agent::<C>(), opened: [self.opened, vec![number]].concat() }
    }

    /// Adds another agent, for the tests.
    pub fn agent<C: AgentConfig>(self) -> Self {
        Self { app: self.app.agent::<C>(), ..self }
    }

    /// Runs the command that the arguments of the process name. Returns the exit code: 0, 1 if a bug is not found, or 2 after an error.
    pub fn run(self) -> ExitCode {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        match words[..] {
            ["bug", "test"] => exit_code(variants::test()),
            ["bug", "curves", dir] => exit_code(curves::write(Path::new(dir)).map(|()| 0)),
            ["bug", number, "--check"] => exit_code(find(number).and_then(|bug| check(Path::new("."), bug, &self.opened))),
            _ => self.app.run(),
        }
    }
}

fn exit_code(result: Told<u8>) -> ExitCode {
    result.map_or_else(
        |problem| {
            _ = writeln!(io::stderr(), "error: {problem}");
            ExitCode::from(2)
        },
        ExitCode::from,
    )
}

fn find(number: &str) -> Told<&'static Bug> {
    let found = number.parse().ok().and_then(Bug::find);
    found.ok_or_else(|| format!("expected a bug from 1 to {}, got `{number}`", Bug::all().len()))
}

/// The file of a bug in the folder.
fn source(dir: &Path, bug: &Bug) -> PathBuf {
    dir.join(format!("src/bug_{}.rs", bug.number))
}

/// The file of a bug as a student calls it.
fn name_of(bug: &Bug) -> String {
    format!("bugs/src/bug_{}.rs", bug.number)
}

fn note(dir: &Path, bug: &Bug, what: &str) -> PathBuf {
    dir.join(NOTES).join(format!("{what}-{}", bug.number))
}

fn list(dir: &Path) -> Told<u8> {
    let is_found = |bug: &&Bug| note(dir, bug, "found").exists();
    for bug in Bug::all() {
        let state = match (is_found(&bug), source(dir, bug).exists()) {
            (true, _) => "found",
            (_, true) => "open",
            _ => "",
        };
        say(&format!("{:>3}  {state:<5}  {:<13} {}", bug.number, bug.agent_name(), bug.title));
    }
    say(&format!("{} of {} found.", Bug::all().iter().filter(is_found).count(), Bug::all().len()));
    Ok(0)
}

/// Writes the program with the agents whose files are there.
fn write_program(dir: &Path) -> Told<()> {
    let all: Vec<u32> = Bug::all().iter().filter(|bug| source(dir, bug).exists()).map(|bug| bug.number).collect();
    replace(&dir.join("src/main.rs"), &variants::main_file(&all))
}

/// Writes the file of a bug, unless it is there, and the program that has its agent, and says what one sees.
fn open(dir: &Path, bug: &Bug) -> Told<u8> {
    let path = source(dir, bug);
    if !path.exists() {
        replace(&path, &bug.file())?;
    }
    write_program(dir)?;
    say(&format!("Bug {}, {}: {}, in {}", bug.number, bug.agent_name(), bug.title, name_of(bug)));
    say("");
    say_wrapped("", &bug.symptom);
    say("");
    let figure = Path::new(FIGURES).join(format!("bug-{}.svg", bug.number));
    if figure.exists() {
        say(&format!("Twenty seeds, beside those of the right agent: {}", figure.canonicalize().unwrap_or(figure).display()));
    }
    say("Look, in the folder bugs, with:");
    for command in bug.tool.replace("{}", &bug.name()).split(", then ") {
        say(&format!("    {command}"));
    }
    let settings: String = bug.settings.iter().map(|setting| format!(" --set {setting}")).collect();
    say("The right agent is in the same program:");
    say(&format!("    cargo run -- train {0} {1}{settings} --out runs/{2}-right", bug.right_name(), bug.world, bug.number));
    say(&format!("    cargo run -- plot runs/{0} runs/{0}-right", bug.number));
    say(&format!("Then change the file, and: {} {} --check", command(), bug.number));
    Ok(0)
}

/// How the command is called.
fn command() -> String {
    std::env::var("GRADUS_COURSE").map_or_else(|_| "cargo run --bin bug --".into(), |course| format!("{course} bug"))
}

fn reset(dir: &Path, bug: &Bug) -> Told<u8> {
    replace(&source(dir, bug), &bug.file())?;
    write_program(dir)?;
    // it is to be found again
    _ = fs::remove_file(note(dir, bug, "found"));
    say(&format!("{} is as it was", name_of(bug)));
    Ok(0)
}

fn hint(dir: &Path, bug: &Bug) -> Told<u8> {
    if !source(dir, bug).exists() {
        return Err(format!("bug {0}: expected {1}, got none; `{2} {0}` opens it", bug.number, name_of(bug), command()));
    }
    let path = note(dir, bug, "hints");
    let read: usize = fs::read_to_string(&path).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    let number = (read + 1).min(bug.hints.len());
    replace(&path, &number.to_string())?;
    say_wrapped(&format!("{number}. "), &bug.hints[number - 1]);
    if number == bug.hints.len() {
        say("(the last hint)");
    }
    Ok(0)
}

fn check(dir: &Path, bug: &Bug, opened: &[u32]) -> Told<u8> {
    let Bug { number, .. } = bug;
    let path = source(dir, bug);
    let is_there = opened.contains(number);
    let text = fs::read_to_string(&path).ok().filter(|_| is_there);
    let text = text
        .ok_or_else(|| format!("bug {number}: expected {} in this program, got none; `{} {number}` opens it", name_of(bug), command()))?;
    if text == bug.file() {
        say(&format!("{} is as it was: nothing has been changed yet", name_of(bug)));
        return Ok(1);
    }
    match verdict(bug, &bug.name()).map_err(|error| error.to_string())? {
        Verdict::Right => {
            replace(&note(dir, bug, "found"), "")?;
            say(&format!("Bug {number} is found: the agent now does what the right one does."));
            say("");
            say_wrapped("", &bug.source);
            Ok(0)
        }
        Verdict::Wrong { place, values } => {
            let [expected, got] = values.map(shown);
            say_wrapped("", &format!("Not yet. The first difference from the right agent: {place}: expected {expected}, got {got}"));
            Ok(1)
        }
        Verdict::Failed { place, problem } => {
            say_wrapped("", &format!("Not yet. {place}: {problem}"));
            Ok(1)
        }
    }
}

/// Writes a file as a whole, and its folder.
pub(crate) fn replace(path: &Path, text: &str) -> Told<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let new = path.with_extension("new");
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(&new, text)).and_then(|()| fs::rename(&new, path));
    written.map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// Prints a line. A closed pipe is ignored.
pub(crate) fn say(line: &str) {
    _ = writeln!(io::stdout(), "{line}");
}

/// Prints a text after `start`, in lines of at most 80 characters.
fn say_wrapped(start: &str, text: &str) {
    let (indent, mut line) = (" ".repeat(start.len()), start.to_owned());
    let mut is_empty = true;
    for word in text.split_whitespace() {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > 80 {
            say(&line);
            (line, is_empty) = (indent.clone(), true);
        }
        if !is_empty {
            line.push(' ');
        }
        line += word;
        is_empty = false;
    }
    say(line.trim_end());
}
