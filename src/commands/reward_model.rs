//! `gradus reward-model`: a reward model, learnt from preferences.

use std::path::PathBuf;

use clap::Args;
use gradus::agents::ConfigError;
use gradus::agents::reward_model::RewardModelConfig;
use gradus::config::{MOST_COMPLETIONS, RewardConfig};
use gradus::envs::registry;
use gradus::envs::text::Division;
use gradus::run::reward_model::{Learnt, Wanted};
use gradus::{Config, Error};

use super::{number, number_within, on_threads, say};

/// Learns a reward model of a task of text from preferences, and leaves a folder for `--set reward_model.folder=DIR`.
#[derive(Args)]
pub(super) struct RewardModel {
    /// The task, such as preference.
    task: String,
    /// A run folder with the policy that completions are drawn from, and that the model begins as [default: a fresh one]
    #[arg(long)]
    init: Option<PathBuf>,
    /// Problems of which completions are ranked.
    #[arg(long, default_value = "2000", allow_hyphen_values = true)]
    pairs: String,
    /// Completions of each problem: two make a pair, more a ranking.
    #[arg(long, default_value = "2", allow_hyphen_values = true)]
    completions: String,
    /// Problems of the test split, likewise, to measure the model by.
    #[arg(long, default_value = "500", allow_hyphen_values = true)]
    held_out: String,
    /// Passes over the rankings [default: 3]
    #[arg(long, allow_hyphen_values = true)]
    epochs: Option<String>,
    /// The seed of all that is random.
    #[arg(long, default_value = "1", allow_hyphen_values = true)]
    seed: String,
    /// Threads; they change nothing but the time [default: all cores]
    #[arg(long, allow_hyphen_values = true)]
    threads: Option<String>,
    /// A setting of [transformer], [optimiser] or [text], or of how a [reward_model] is trained; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    /// The folder [default: the first free runs/reward-model-TASK-N]
    #[arg(long)]
    out: Option<PathBuf>,
    /// Shows nothing but errors.
    #[arg(long)]
    quiet: bool,
}

pub(super) fn run(arguments: &RewardModel) -> Result<i32, Error> {
    let config = gradus::run::sft::defaults(Config::preset("ppo", &arguments.task, None)?);
    let init = arguments.init.as_ref().map_or_else(String::new, |dir| dir.display().to_string());
    let config = Config { seed: number("--seed", &arguments.seed, 0)?, init, ..config };
    let config = arguments.settings.iter().try_fold(config, |config, setting| config.with_setting(setting))?;
    let world = registry::find(&arguments.task)?;
    super::unchanged("environment", &world.name, &config.environment)?;
    let learned = config.reward_model.clone().unwrap_or_default();
    let of_training = RewardConfig { training: learned.training.clone(), ..RewardConfig::default() };
    let expected = "nothing but how it is trained (epochs, minibatch_size, ranked, centring): the rest is this command's own options";
    ConfigError::unless(learned == of_training, "reward_model", expected, "other settings")?;
    let is_set = arguments.settings.iter().any(|setting| setting.starts_with("reward_model.epochs"));
    let epochs = match &arguments.epochs {
        Some(epochs) => number_within("--epochs", epochs, 1, 1 << 20)? as usize,
        None if is_set => learned.training.epochs,
        None => 3,
    };
    let training = learned.training;
    let wanted = Wanted {
        pairs: number_within("--pairs", &arguments.pairs, 1, 1 << 24)? as usize,
        completions: number_within("--completions", &arguments.completions, 2, MOST_COMPLETIONS as u64)? as usize,
        held_out: number_within("--held-out", &arguments.held_out, 1, 1 << 24)? as usize,
        training: RewardModelConfig { epochs, ..training },
    };
    let name = format!("reward-model-{}", world.name);
    let work = || gradus::run::reward_model::run(&config, &wanted, arguments.out.as_deref(), &name);
    let (dir, Learnt { pairs, held_out, loss, accuracy, margin }) = on_threads(arguments.threads.as_deref(), work)??;
    if !arguments.quiet {
        let (what, of) = if wanted.completions == 2 { ("pairs", "") } else { ("rankings", "the pairs of ") };
        say(format!("{pairs} {what}, loss {loss:.3}"));
        say(dir.display().to_string());
        let has_splits = world.text.is_some_and(|text| text.task.division() == Division::Splits);
        let split = if has_splits { "of the test split" } else { "of new completions of the problems trained on" };
        say(format!("accuracy: {:.1} % of {of}{held_out} {what} {split}, margin {margin:.3}", 100.0 * accuracy));
    }
    Ok(0)
}
