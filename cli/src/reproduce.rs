//! `gradus reproduce`: redraws published figures.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use gradus::Error;
use gradus::agents::ConfigError;
use gradus_compare::Script;
use gradus_reproduce::{ALL, find, gallery};

use crate::output::{say, say_wrapped};
use crate::signals::Signals;
use crate::study::{Sharing, on_cluster};

#[derive(Args)]
#[command(
    mut_arg("merge", |merge| merge.hide(true)),
    mut_arg("list", |list| list.help("With `all`: instead, print a table of all figures with their numbers, and whether they are made")),
    mut_arg("task", |task| task.help("With `all`: make only these figures, by their numbers in the list, such as 7 or 1-5,9")),
    mut_arg("shard", |shard| shard.help("With `all`: make only part I of N of the figures, from 1")),
    mut_arg("emit", |emit| emit.help("With `all`: instead, print a script that makes the figures on a cluster")),
)]
pub(crate) struct Reproduce {
    /// Figure to redraw; `list` lists all, `all` redraws all, and `gallery` writes a page of all that are in the folder --out.
    name: String,
    /// Folder for the results [default: runs/reproductions/NAME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Only try it out: fewer runs, and a verdict that means nothing.
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    sharing: Sharing,
}

/// Redraws all figures, or some of them. Their numbers are those of the list.
fn all(arguments: &Reproduce, folder: &Path) -> Result<u8, Error> {
    let Reproduce { sharing, quick, .. } = arguments;
    if sharing.list {
        say("task,name,state");
        for (place, reproduction) in ALL.iter().enumerate() {
            let state = if folder.join(reproduction.name).join("README.md").exists() { "made" } else { "missing" };
            say(format!("{},{},{state}", place + 1, reproduction.name));
        }
        return Ok(0);
    }
    let options = if *quick { " --quick" } else { "" };
    if let Some(cluster) = sharing.emit {
        let [command, finish] = ["all", "gallery"].map(|what| on_cluster(&format!("reproduce {what}"), folder));
        let script = Script { name: "reproductions", command: &command, options, finish: &finish, runs: ALL.len(), is_shared: false };
        say(script.text(cluster.into()).trim_end());
        return Ok(0);
    }
    let places = match sharing.share()? {
        Some(share) => share.places(ALL.len())?,
        None => (0..ALL.len()).collect(),
    };
    for place in places {
        let began = Instant::now();
        let written = ALL[place].run(&folder.join(ALL[place].name), *quick)?;
        say(format!("[{}] {}: {:.0} s, {}", place + 1, ALL[place].name, began.elapsed().as_secs_f64(), written.figure.display()));
    }
    Ok(0)
}

pub(crate) fn run(arguments: &Reproduce) -> Result<u8, Error> {
    let folder = Path::new("runs/reproductions");
    let Sharing { list, emit, merge, .. } = &arguments.sharing;
    let is_part = *list || emit.is_some() || arguments.sharing.share()?.is_some();
    ConfigError::unless(
        !is_part || arguments.name == "all",
        "reproduce",
        "`all` with --list, --task, --shard and --emit",
        &arguments.name,
    )?;
    ConfigError::unless(merge.is_empty(), "--merge", "none, because `reproduce gallery` joins the figures of a folder", "a folder")?;
    match arguments.name.as_str() {
        "list" => {
            for reproduction in ALL {
                let (title, source) = reproduction.about()?;
                say(reproduction.name);
                say_wrapped("    ", &format!("{title}: {source}"));
            }
        }
        "all" => {
            Signals::end_at_once();
            return all(arguments, arguments.out.as_deref().unwrap_or(folder));
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
