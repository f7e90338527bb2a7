//! `gradus pages`: checks the numbers that Markdown pages quote.

use std::path::PathBuf;

use clap::Args;
use gradus::Error;
pub use gradus_reproduce::pages::check;

use crate::output::say;

#[derive(Args)]
pub(crate) struct Pages {
    /// Markdown files with a query for each number; reproduce/src/pages/mod.rs describes the format.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Replace the numbers that differ by the numbers in the tables, and move queries from the page into the file beside it.
    #[arg(long)]
    write: bool,
}

pub(crate) fn run(arguments: &Pages) -> Result<u8, Error> {
    let (mut holds, mut faults) = (0, 0);
    for file in &arguments.files {
        let report = check(file, arguments.write)?;
        report.faults.iter().for_each(|fault| say(format!("{}:{}: {}", file.display(), fault.line, fault.what)));
        holds += report.holds;
        faults += report.faults.len();
    }
    say(format!("{holds} numbers and claims hold, {faults} do not"));
    Ok(u8::from(faults > 0))
}
