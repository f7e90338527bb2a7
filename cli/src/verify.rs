//! `gradus verify`: checks that files are as they were written.

use std::path::PathBuf;

use clap::Args;
use gradus::Error;
use gradus_compare::{Verdict, verify};

use crate::output::say;

#[derive(Args)]
pub(crate) struct Verify {
    /// Run folders, folders with a policy, comparisons, or tensor files.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Also list the files that are as they were written.
    #[arg(long)]
    all: bool,
}

pub(crate) fn run(arguments: &Verify) -> Result<u8, Error> {
    let mut damaged = 0;
    for path in &arguments.paths {
        let all = verify(path)?;
        for file in all.iter().filter(|file| arguments.all || file.verdict != Verdict::Intact) {
            let verdict = match file.verdict {
                Verdict::Intact => "ok     ",
                Verdict::Unknown => "-      ",
                Verdict::Damaged => "DAMAGED",
            };
            say(format!("{verdict}  {}", file.line));
        }
        let count = |verdict| all.iter().filter(|file| file.verdict == verdict).count();
        damaged += count(Verdict::Damaged);
        let unknown = match count(Verdict::Unknown) {
            0 => String::new(),
            n => format!(", {n} without a hash"),
        };
        say(format!("{}: {} intact, {} damaged{unknown}", path.display(), count(Verdict::Intact), count(Verdict::Damaged)));
    }
    Ok(u8::from(damaged > 0))
}
