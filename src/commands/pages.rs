//! `gradus pages`: checks the numbers quoted in Markdown pages against the tables they are from.

use std::path::PathBuf;

use crate::{Error, pages};
use clap::Args;

use super::say;

#[derive(Args)]
pub(super) struct Pages {
    /// Markdown files with a query for each number; src/pages/mod.rs describes the format.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Replace the numbers that differ by the numbers in the tables.
    #[arg(long)]
    write: bool,
}

pub(super) fn run(arguments: &Pages) -> Result<u8, Error> {
    let (mut holds, mut faults) = (0, 0);
    for file in &arguments.files {
        let report = pages::check(file, arguments.write)?;
        report.faults.iter().for_each(|fault| say(format!("{}:{}: {}", file.display(), fault.line, fault.what)));
        holds += report.holds;
        faults += report.faults.len();
    }
    say(format!("{holds} numbers and claims hold, {faults} do not"));
    Ok(u8::from(faults > 0))
}
