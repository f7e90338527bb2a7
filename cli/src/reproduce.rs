//! `gradus reproduce`: redraws published figures.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use gradus::Error;
use gradus_reproduce::{ALL, find, gallery};

use crate::output::{say, say_wrapped};
use crate::signals::Signals;

#[derive(Args)]
pub(crate) struct Reproduce {
    /// Figure to redraw; `list` lists all, and `gallery` writes a page of all that are in the folder --out.
    name: String,
    /// Folder for the results [default: runs/reproductions/NAME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Only try it out: fewer runs, and a verdict that means nothing.
    #[arg(long)]
    quick: bool,
}

pub(crate) fn run(arguments: &Reproduce) -> Result<u8, Error> {
    let folder = Path::new("runs/reproductions");
    match arguments.name.as_str() {
        "list" => {
            for reproduction in ALL {
                let (title, source) = reproduction.about()?;
                say(reproduction.name);
                say_wrapped("    ", &format!("{title}: {source}"));
            }
        }
        "gallery" => say(gallery(arguments.out.as_deref().unwrap_or(folder))?.display().to_string()),
        name => {
            let (reproduction, began) = (find(name)?, Instant::now());
            let (title, source) = reproduction.about()?;
            say(format!("{title}: {source}"));
            Signals::end_at_once();
            let written = reproduction.run(&arguments.out.clone().unwrap_or_else(|| folder.join(reproduction.name)), arguments.quick)?;
            say_wrapped("what differs: ", &written.differs);
            say("");
            say_wrapped("", &written.verdict);
            for (answer, claim) in &written.claims {
                say_wrapped(&answer.map_or("  - ".into(), |answer| format!("  {answer:<15}")), claim);
            }
            say("");
            say(format!("{:.0} s, {}", began.elapsed().as_secs_f64(), written.figure.display()));
        }
    }
    Ok(0)
}
