//! `gradus shell`: writes the completions of shells and the manual pages, which are also in the folder `docs/shell`.

use std::fs;
use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;
use clap::{Arg, Args, Command};
use clap_complete::{Shell as Kind, generate_to};
use gradus::agents::registry as agents;
use gradus::envs::registry;
use gradus::{Error, program_name};

use crate::output::say;

#[derive(Args)]
pub(crate) struct Shell {
    /// Folder for the files.
    dir: PathBuf,
}

/// Adds the names of agents and environments to the completions of the commands that take one.
fn with_names(command: Command) -> Command {
    let agents = || PossibleValuesParser::new(agents::all().into_iter().map(|agent| agent.name));
    let names = |only_texts: bool| registry::all().into_iter().filter(move |world| world.text.is_some() || !only_texts);
    let parser = |only_texts| PossibleValuesParser::new(names(only_texts).map(|world| -> &'static str { world.name.leak() }));
    let (worlds, tasks) = (|| parser(false), || parser(true));
    let listed = |arg: Arg, names: PossibleValuesParser| arg.value_parser(names).hide_possible_values(true);
    match command.get_name() {
        "train" => command.mut_arg("agent", |arg| listed(arg, agents())).mut_arg("env", |arg| listed(arg, worlds())),
        "list" => command.mut_arg("settings", |arg| listed(arg, agents())),
        "check" => command.mut_arg("env", |arg| listed(arg, worlds())),
        "sft" | "reward-model" => command.mut_arg("task", |arg| listed(arg, tasks())),
        _ => command,
    }
}

pub(crate) fn run(arguments: &Shell, all: &Command) -> Result<u8, Error> {
    let dir = &arguments.dir;
    let io = |path: &Path| {
        let path = path.to_path_buf();
        move |source| Error::Io { action: "write", path, source }
    };
    fs::create_dir_all(dir).map_err(io(dir))?;
    // without this command, which most builds do not have
    let others = all.get_subcommands().filter(|command| command.get_name() != "shell").cloned().map(with_names);
    let about = all.get_about().cloned().unwrap_or_default();
    let version = env!("CARGO_PKG_VERSION");
    let global: Vec<Arg> = all.get_arguments().filter(|argument| argument.is_global_set()).cloned().collect();
    let others: Vec<Command> = others.collect();
    // clap's own would repeat the arguments of every command
    let names: Vec<&'static str> = others.iter().map(|command| -> &'static str { command.get_name().to_owned().leak() }).collect();
    let named = Arg::new("command").value_parser(PossibleValuesParser::new(names)).hide_possible_values(true).help("Command");
    let help = Command::new("help").about("Print the help of a command").arg(named);
    let command = Command::new(program_name()).version(version).about(about).args(global).subcommands(others).disable_help_subcommand(true);
    let mut completed = command.clone().subcommand(help);
    for kind in [Kind::Bash, Kind::Zsh, Kind::Fish, Kind::PowerShell] {
        let path = generate_to(kind, &mut completed, program_name(), dir).map_err(io(dir))?;
        say(path.display().to_string());
    }
    let pages = dir.join("man");
    fs::create_dir_all(&pages).map_err(io(&pages))?;
    clap_mangen::generate_to(command, &pages).map_err(io(&pages))?;
    say(pages.display().to_string());
    Ok(0)
}
