//! The command line: its arguments, and the function that each command calls.

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use gradus::{Error, draw, one_line, program_name};

use crate::output::{complain, say, warn, wrapped, written};
use crate::{
    advice, bandit, bench, chat, check, course, doctor, eval, explain, export, guide, inspect, list, new, pages, play, plot, probe,
    reproduce, reward_model, sample, sft, signals, study, train, values, verify,
};

/// Reinforcement learning to teach with and to publish from: environments, agents and honest comparisons, in Rust.
#[derive(Parser)]
#[command(name = "gradus", version, arg_required_else_help = true)]
pub(crate) struct Arguments {
    /// Python interpreter for environments gym:ID and reward functions [default: the active virtual environment's, or python3]
    #[arg(long, global = true, value_name = "PATH")]
    python: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Train an agent and write a run folder.
    Train(Box<train::Train>),
    /// Evaluate trained policies.
    Eval(eval::Eval),
    /// Play an episode in the terminal, or write it as an animated GIF.
    Play(play::Play),
    /// Try an agent in probe worlds, the smallest ones there are, and say which properties it has. Exit code 1 if one is missing.
    Probe(probe::Probe),
    /// Draw the values and the greedy actions of a policy, in the terminal and as a figure.
    Values(values::Values),
    /// Say in words what looks sick in a run, and which page explains it.
    Explain(explain::Explain),
    /// Write a policy with a model card, its evaluation and an animation, to be published.
    Export(export::Export),
    /// Supervised warm start: train a fresh policy on the known answers of a text task.
    Sft(sft::Sft),
    /// Train a reward model of a text task from preferences.
    RewardModel(reward_model::RewardModel),
    /// Compare the advantages and gradients of all estimators on one set of rollouts.
    Inspect(inspect::Inspect),
    /// Complete a prompt and show every token's log-probability, entropy, value and advantage.
    Sample(sample::Sample),
    /// Talk to a pretrained language model as a run has trained it.
    Chat(chat::Talk),
    /// Compare agents on environments over several seeds, and write tables, figures and a report.
    Compare(study::Compare),
    /// Vary settings of agents, and draw what they do: response curves, effects, and a report.
    Sweep(study::Sweeping),
    /// Search for good settings of an agent, and test them with fresh seeds.
    Tune(study::Tune),
    /// Draw the learning curves or other metrics of run folders, or the figures of a comparison from its results.csv, except its sheet of episodes. Runs that differ only
    /// in their seed are drawn as one line with a band.
    Plot(plot::Draw),
    /// Compare bandit rules on many problems: rewards, regret and figures.
    Bandit(bandit::Bandit),
    /// Redraw a published figure and say whether it holds: `gradus reproduce list` lists them.
    Reproduce(reproduce::Reproduce),
    /// Make a folder with exercises that check themselves, and work in it: `gradus course new DIR`.
    #[command(subcommand)]
    Course(course::Course),
    /// Check the numbers quoted in Markdown pages against the tables they are from. Exit code 1 if a number differs.
    Pages(pages::Pages),
    /// Check that an environment implements its interface correctly. Exit code 1 if it does not.
    Check {
        /// Environment, such as cartpole.
        env: String,
        /// Instead, replay the episodes recorded in this file and compare the results with the recorded ones. The file has one JSON object
        /// per line, from `gradus play --record` or from Gymnasium.
        #[arg(long)]
        trace: Option<PathBuf>,
    },
    /// Create a crate with an environment and an agent of its own, and with all of these commands.
    New(new::New),
    /// Check that the files of runs, policies and comparisons are as they were written. Exit code 1 if one is damaged.
    Verify(verify::Verify),
    /// List agents, environments and presets.
    List {
        /// What to list: agents, environments, presets or settings, or the name of an agent or an environment [default: all names]
        what: Option<String>,
        /// List the key, default and meaning of every setting instead, or of the settings of one agent.
        #[arg(long, value_name = "AGENT", num_args = 0..=1)]
        settings: Option<Option<String>>,
        /// List the presets and where they are from instead.
        #[arg(long, conflicts_with = "settings")]
        presets: bool,
    },
    /// Write the completions of shells and the manual pages to a folder.
    #[cfg(feature = "shell")]
    #[command(hide = true)]
    Shell(crate::shell::Shell),
    /// Print a page of the documentation, such as metrics or ppo.
    Guide(guide::Guide),
    /// Show libtorch, CUDA, the available devices and Python, and how to fix what does not work.
    Doctor(doctor::Doctor),
    /// Measure speed.
    #[command(subcommand)]
    Bench(bench::Bench),
}

/// The commands as `--help` lists them, in groups.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Train and use", &["train", "eval", "play", "plot", "export"]),
    ("Many runs", &["compare", "sweep", "tune"]),
    ("Look and diagnose", &["explain", "probe", "values", "check", "verify"]),
    ("Text", &["sample", "chat", "inspect", "sft", "reward-model"]),
    ("Textbook", &["bandit", "reproduce", "course"]),
    ("More", &["list", "guide", "new", "doctor", "bench", "pages"]),
];

/// The parser of the arguments, with its commands in groups.
fn parser() -> clap::Command {
    let command = Arguments::command();
    let about = |name: &str| {
        let about = command.find_subcommand(name).and_then(clap::Command::get_about).map(ToString::to_string).unwrap_or_default();
        about.split(". ").next().unwrap_or_default().to_owned() // `gradus COMMAND --help` has the other sentences
    };
    let mut template = String::from("{about-with-newline}\n{usage-heading} {usage}\n");
    for (title, names) in GROUPS {
        template += &format!("\n{title}:\n");
        names.iter().for_each(|name| template += &format!("  {name:<13} {}\n", about(name)));
    }
    template += "\nOptions:\n{options}";
    command.help_template(template)
}

/// Runs the command that the words name, of which the first is the program, unless `prepared` is an error. Returns the exit code.
pub(crate) fn main(words: &[OsString], prepared: Result<(), Error>, presets: Result<(), Error>) -> u8 {
    let parsed = parser().try_get_matches_from(words).and_then(|matches| Arguments::from_arg_matches(&matches));
    let arguments = parsed.unwrap_or_else(|error| {
        if error.kind() == ErrorKind::DisplayVersion && program_name() != "gradus" {
            say(format!("{}, with gradus {}", program_name(), env!("CARGO_PKG_VERSION")));
            std::process::exit(0);
        }
        let styled = |is_styled: bool| if is_styled { error.render().ansi().to_string() } else { error.render().to_string() };
        if !error.use_stderr() {
            match draw::columns() {
                Some(width) => written(write!(std::io::stdout(), "{}", wrapped(&styled(draw::has_colours()), width))),
                None => written(error.print()),
            }
            std::process::exit(0);
        }
        if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
            match draw::columns().filter(|_| std::io::stderr().is_terminal()) {
                Some(width) => {
                    // standard error may be closed
                    let _ = write!(std::io::stderr(), "{}", wrapped(&styled(draw::has_colours()), width));
                }
                None => written(error.print()),
            }
            std::process::exit(error.exit_code());
        }
        let words: Vec<String> = words.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
        let message = one_line(&in_one_line(&error.to_string()));
        let message = match advice::advice(&error, &words) {
            // the parser's own tip is a guess from letters
            Some(advice) => format!("{}; {advice}", message.split("; tip:").next().unwrap_or(&message)),
            None => message,
        };
        complain(message);
        std::process::exit(2);
    });
    signals::survive_large_files();
    if let Some(python) = &arguments.python {
        gradus::envs::gym::set_python(python);
    }
    let code = gradus::reported(|| {
        prepared?;
        let reads_presets = matches!(
            arguments.command,
            Command::Train(_) | Command::Compare(_) | Command::Sweep(_) | Command::Tune(_) | Command::List { .. } | Command::Bench(_)
        );
        match presets {
            Err(error) if !reads_presets => warn(&error.to_string()),
            result => result?,
        }
        run(arguments)
    });
    code.unwrap_or(2)
}

/// Runs a command and returns the exit code.
fn run(arguments: Arguments) -> Result<u8, Error> {
    let is_python_chosen = arguments.python.is_some();
    match arguments.command {
        Command::Train(arguments) => train::run(&arguments),
        Command::Eval(arguments) => eval::run(&arguments),
        Command::Probe(arguments) => probe::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Values(arguments) => values::run(&arguments),
        Command::Play(arguments) => play::run(&arguments),
        Command::Export(arguments) => export::run(&arguments),
        Command::Sft(arguments) => sft::run(&arguments),
        Command::RewardModel(arguments) => reward_model::run(&arguments),
        Command::Inspect(arguments) => inspect::run(&arguments),
        Command::Sample(arguments) => sample::run(&arguments),
        Command::Chat(arguments) => chat::run(&arguments),
        Command::Compare(arguments) => study::run_comparison(&arguments),
        Command::Sweep(arguments) => study::run_sweep(&arguments),
        Command::Tune(arguments) => study::run_tuning(&arguments),
        Command::Bandit(arguments) => bandit::run(&arguments),
        Command::Reproduce(arguments) => reproduce::run(&arguments),
        Command::Course(arguments) => course::run(&arguments),
        Command::Pages(arguments) => pages::run(&arguments),
        Command::Plot(arguments) => plot::run(arguments),
        Command::Check { env, trace: Some(path) } => check::replay(&env, &path),
        Command::Check { env, trace: None } => check::check(&env),
        Command::New(arguments) => new::run(&arguments),
        Command::Verify(arguments) => verify::run(&arguments),
        Command::List { what, settings: Some(agent), .. } => list::settings(agent.or(what).as_deref()),
        Command::List { what, presets: true, .. } => list::presets(what.as_deref()),
        Command::List { what, .. } => list::run(what.as_deref()),
        #[cfg(feature = "shell")]
        Command::Shell(to) => crate::shell::run(&to, &Arguments::command()),
        Command::Guide(arguments) => guide::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments, is_python_chosen),
        Command::Bench(arguments) => bench::run(arguments),
    }
}

/// Returns an error message of the argument parser as one line, without the usage text.
fn in_one_line(error: &str) -> String {
    let lines = error.lines().take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    // the parser's tip to give an unknown option as a value helps nobody here
    let lines = lines.filter(|line| !line.trim().starts_with("tip: to pass"));
    let parts: Vec<&str> = lines.map(str::trim).filter(|line| !line.is_empty()).collect();
    parts.join("; ").replace(":; ", ": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let command = Arguments::command();
        let all = command.get_subcommands().filter(|command| !command.is_hide_set());
        let mut names: Vec<&str> = all.map(clap::Command::get_name).collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        names.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(names, grouped);
    }
}
