//! A crate with all agents, right and wrong in every way, for the tests and for the figures.

use std::fmt::Write;
use std::path::Path;

use crate::bug::Bug;
use crate::check::{Verdict, shown, verdict};
use crate::program::{replace, say};

/// Returns the program of a student with these bugs.
pub(crate) fn main_file(numbers: &[u32]) -> String {
    let mut modules = String::new();
    let mut calls = String::new();
    for number in numbers {
        _ = writeln!(
            modules,
            "#[allow(unused)] // a bug may leave something unused, which the compiler would give away\nmod bug_{number};"
        );
        _ = write!(calls, ".bug::<bug_{number}::Config>({number})");
    }
    format!(
        "//! The agents with the bugs that you opened. `gradus course bug N` writes this file.\n\nuse std::process::ExitCode;\n\n{modules}\n\
         fn main() -> ExitCode {{\n    gradus_bugs::program(){calls}.run()\n}}\n"
    )
}

/// The names of the variants of a bug: with the bug, a fix that is written anew, and wrong fixes.
fn texts(bug: &Bug) -> Vec<(String, &str)> {
    let fixed =
        [("fixed", &bug.right), ("fixed-too", &bug.also_right)].map(|(what, text)| (format!("bug-{}-{what}", bug.number), text.as_str()));
    let wrong = bug.wrong.iter().zip(1..).map(|(text, number)| (format!("bug-{}-wrong-{number}", bug.number), text.as_str()));
    std::iter::once((bug.name(), bug.bug.as_str())).chain(fixed).chain(wrong).collect()
}

/// Writes the sources of the crate to a folder.
pub(crate) fn write(dir: &Path) -> Result<(), String> {
    let (mut modules, mut calls) = (String::new(), String::new());
    for (name, bug, text) in Bug::all().iter().flat_map(|bug| texts(bug).into_iter().map(move |(name, text)| (name, bug, text))) {
        let module = name.replace('-', "_");
        replace(&dir.join(format!("src/{module}.rs")), &bug.file_with(&name, text))?;
        _ = writeln!(modules, "#[allow(unused)] // as in the program of a student\nmod {module};");
        _ = write!(calls, "\n        .agent::<{module}::Config>()");
    }
    let main = format!(
        "use std::process::ExitCode;\n\n{modules}\nfn main() -> ExitCode {{\n    gradus_bugs::program(){calls}\n        .run()\n}}\n"
    );
    replace(&dir.join("src/main.rs"), &main)
}

/// Checks every variant. Returns 1 if one was judged wrongly.
pub(crate) fn test() -> Result<u8, String> {
    let mut is_wrong = false;
    for (name, bug) in Bug::all().iter().flat_map(|bug| texts(bug).into_iter().map(move |(name, _)| (name, bug))) {
        let began = std::time::Instant::now();
        let verdict = verdict(bug, &name).map_err(|error| format!("{name}: {error}"))?;
        let seconds = began.elapsed().as_secs_f64();
        match &verdict {
            Verdict::Right => say(&format!("{name}: right ({seconds:.1} s)")),
            Verdict::Wrong { place, values } => say(&format!("{name}: {place}: {} ({seconds:.1} s)", values.map(shown).join(", "))),
            Verdict::Failed { place, problem } => say(&format!("{name}: {place}: {problem} ({seconds:.1} s)")),
        }
        let expected = name.contains("-fixed");
        if (verdict == Verdict::Right) != expected {
            say(&format!("{name}: EXPECTED {}", if expected { "right" } else { "a difference" }));
            is_wrong = true;
        }
    }
    Ok(u8::from(is_wrong))
}
