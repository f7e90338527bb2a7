//! The program of a student who looks for bugs: the commands of `gradus`, and `bug`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use gradus::agents::AgentConfig;
use gradus_cli::App;

use crate::bug::Bug;
use crate::check::{Verdict, verdict};
use crate::{agents, variants, worlds};

const HELP: &str = "\
Whole agents with a planted bug each.

  bug list          the bugs, and which of them are found
  bug N             opens bug N: what one sees, and with which command to look
  bug N --hint      a hint; each call says more
  bug N --check     checks whether the bug is gone, and nothing else has changed
  bug N --reset     puts the file with the bug back

All other commands are those of gradus: `train bug-N cartpole`, `probe bug-N`, and so on. The agent without the bug is not among them.
";

/// How a command failed: one line.
type Told<T> = Result<T, String>;

/// Where a student's notes are: how many hints were read, and which bugs are found.
const NOTES: &str = ".course";

/// Begins the program of a student: `gradus_bugs::program().bug::<bug_1::Config>(1).run()`.
pub fn program() -> Program {
    let app = gradus_cli::app().with_world(worlds::short_pole());
    let app = app.agent::<agents::q_learning::Config>().agent::<agents::dqn::Config>().agent::<agents::sac::Config>();
    let app = app.agent::<agents::reinforce::Config>().agent::<agents::actor_critic::Config>().agent::<agents::ppo::Config>();
    let app = app.agent::<agents::grpo::Config>();
    Program { app, opened: Vec::new() }
}

/// A program with the agents of the bugs that were opened.
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
        let ["bug", ref rest @ ..] = words[..] else { return self.app.run() };
        match bug(rest, &self.opened) {
            Ok(code) => ExitCode::from(code),
            Err(problem) => {
                eprintln!("error: {problem}");
                ExitCode::from(2)
            }
        }
    }
}

fn bug(words: &[&str], opened: &[u32]) -> Told<u8> {
    let here = Path::new(".");
    match *words {
        [] | ["--help" | "-h"] => say(HELP.trim_end()),
        ["list"] => list(here, opened),
        ["variants", dir] => return variants::write(Path::new(dir)).map(|()| 0),
        ["test"] => return variants::test(),
        [number] => open(here, find(number)?, opened)?,
        [number, "--hint"] => hint(here, find(number)?)?,
        [number, "--check"] => return check(here, find(number)?, opened),
        [number, "--reset"] => {
            let bug = find(number)?;
            replace(&source(here, bug), &bug.file())?;
            say(&format!("{} is as it was", source(here, bug).display()));
        }
        _ => return Err(format!("expected bug list, bug N, or bug N with --hint, --check or --reset, got `bug {}`", words.join(" "))),
    }
    Ok(0)
}

fn find(number: &str) -> Told<&'static Bug> {
    let found = number.parse().ok().and_then(Bug::find);
    found.ok_or_else(|| format!("expected a bug from 1 to {}, got `{number}`", Bug::all().len()))
}

/// The file of a bug in the student's folder.
fn source(dir: &Path, bug: &Bug) -> PathBuf {
    dir.join(format!("src/bug_{}.rs", bug.number))
}

fn note(dir: &Path, bug: &Bug, what: &str) -> PathBuf {
    dir.join(NOTES).join(format!("{what}-{}", bug.number))
}

fn list(dir: &Path, opened: &[u32]) {
    for bug in Bug::all() {
        let state = if note(dir, bug, "found").exists() {
            "found"
        } else if opened.contains(&bug.number) {
            "open"
        } else {
            ""
        };
        say(&format!("{:>3}  {:<5}  {}", bug.number, state, first_sentence(&bug.symptom)));
    }
    let found = Bug::all().iter().filter(|bug| note(dir, bug, "found").exists()).count();
    say(&format!("{found} of {} found.", Bug::all().len()));
}

fn first_sentence(text: &str) -> &str {
    text.split_inclusive(". ").next().unwrap_or(text).trim()
}

/// Writes the file of a bug and the program that has it, unless they are there, and says what one sees.
fn open(dir: &Path, bug: &Bug, opened: &[u32]) -> Told<()> {
    let path = source(dir, bug);
    if !path.exists() {
        replace(&path, &bug.file())?;
    }
    if !opened.contains(&bug.number) {
        let all = Bug::all().iter().filter(|bug| source(dir, bug).exists()).map(|bug| bug.number);
        replace(&dir.join("src/main.rs"), &variants::main_file(&all.collect::<Vec<_>>()))?;
    }
    say(&format!("Bug {}, in {}", bug.number, path.display()));
    say("");
    say_wrapped(&bug.symptom);
    say("");
    let figure = format!("docs/course/bugs/bug-{}.svg", bug.number);
    say(&format!("Curves of twenty seeds, of this agent and of the right one: {figure}"));
    say(&format!("Look with: {}", bug.tool.replace("{}", &bug.name())));
    say(&format!("Then change {}, and: bug {} --check", path.display(), bug.number));
    Ok(())
}

fn hint(dir: &Path, bug: &Bug) -> Told<()> {
    let path = note(dir, bug, "hints");
    let read: usize = fs::read_to_string(&path).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    let number = (read + 1).min(bug.hints.len());
    replace(&path, &number.to_string())?;
    say_wrapped(&format!("{number}. {}", bug.hints[number - 1]));
    if number == bug.hints.len() {
        say("(the last hint)");
    }
    Ok(())
}

fn check(dir: &Path, bug: &Bug, opened: &[u32]) -> Told<u8> {
    let path = source(dir, bug);
    let text = fs::read_to_string(&path)
        .map_err(|_| format!("bug {}: expected {}, got none; `bug {}` writes it", bug.number, path.display(), bug.number))?;
    if !opened.contains(&bug.number) {
        return Err(format!("bug {}: expected an agent that is part of this program; `bug {}` adds it", bug.number, bug.number));
    }
    if text == bug.file() {
        say(&format!("{} is as it was: nothing has been changed yet", path.display()));
        return Ok(1);
    }
    match verdict(bug, &bug.name()).map_err(|error| error.to_string())? {
        Verdict::Right => {
            replace(&note(dir, bug, "found"), "")?;
            say(&format!("Bug {} is found: the agent now does what the right one does.", bug.number));
            say("");
            say_wrapped(&bug.source);
            Ok(0)
        }
        Verdict::Wrong { place, values: [expected, got] } => {
            say(&format!("Not yet. First difference from the right agent: {place}: expected {expected:.5}, got {got:.5}"));
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
    use std::io::Write;
    _ = writeln!(std::io::stdout(), "{line}");
}

/// Prints a text in lines of at most 80 characters.
fn say_wrapped(text: &str) {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > 80 {
            say(&line);
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line += word;
    }
    say(&line);
}
