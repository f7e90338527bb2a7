//! `gradus reward-model`: trains a reward model from preferences.

use std::path::PathBuf;

use clap::Args;
use gradus::agents::ConfigError;
use gradus::agents::reward_model::RewardModelConfig;
use gradus::config::{MOST_COMPLETIONS, RewardConfig};
use gradus::envs::registry;
use gradus::envs::text::Division;
use gradus::run::reward_model::{Learnt, Wanted};
use gradus::{Config, Error};

use super::signals::Signals;
use super::{number, number_within, on_threads, say};

/// Train a reward model of a text task from preferences, and write a folder for `--set reward_model.folder=DIR`.
#[derive(Args)]
pub(super) struct RewardModel {
    /// Text task, such as preference.
    task: String,
    /// Run folder of the policy that generates the completions and initialises the reward model [default: a fresh policy]
    #[arg(long)]
    init: Option<PathBuf>,
    /// Number of problems whose completions are ranked.
    #[arg(long, default_value = "2000", allow_hyphen_values = true)]
    pairs: String,
    /// Completions per problem: two make a pair, more make a ranking.
    #[arg(long, default_value = "2", allow_hyphen_values = true)]
    completions: String,
    /// Number of held-out problems used to measure the model's accuracy.
    #[arg(long, default_value = "500", allow_hyphen_values = true)]
    held_out: String,
    /// Epochs over the rankings [default: 3]
    #[arg(long, allow_hyphen_values = true)]
    epochs: Option<String>,
    /// Random seed.
    #[arg(long, default_value = "1", allow_hyphen_values = true)]
    seed: String,
    /// Number of threads; does not affect the results [default: all cores]
    #[arg(long, allow_hyphen_values = true)]
    threads: Option<String>,
    /// One setting of [transformer], [optimiser] or [text], or a training setting of [reward_model]; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    /// Output folder [default: the first free runs/reward-model-TASK-N]
    #[arg(long)]
    out: Option<PathBuf>,
    /// Print only errors.
    #[arg(long)]
    quiet: bool,
}

pub(super) fn run(arguments: &RewardModel) -> Result<u8, Error> {
    let config = gradus::run::sft::defaults(Config::preset("ppo", &arguments.task, None)?);
    let init = arguments.init.as_ref().map_or_else(String::new, |dir| dir.display().to_string());
    let config = Config { seed: number("--seed", &arguments.seed, 0)?, init, ..config };
    let config = arguments.settings.iter().try_fold(config, |config, setting| config.with_setting(setting))?;
    let world = registry::find(&arguments.task)?;
    super::unchanged("environment", &world.name, &config.environment)?;
    let learned = config.reward_model.clone().unwrap_or_default();
    let of_training = RewardConfig { training: learned.training.clone(), ..RewardConfig::default() };
    let expected = "only its training settings (epochs, minibatch_size, ranked, centring), because this command has options for the rest";
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
    Signals::end_at_once();
    let name = format!("reward-model-{}", world.name);
    let work = || gradus::run::reward_model::run(&config, &wanted, arguments.out.as_deref(), &name);
    let (dir, Learnt { pairs, held_out, loss, accuracy, margin }) = on_threads(arguments.threads.as_deref(), work)??;
    if !arguments.quiet {
        let (what, of) = if wanted.completions == 2 { ("pairs", "") } else { ("rankings", "the pairs in ") };
        say(format!("{pairs} {what}, loss {loss:.3}"));
        say(dir.display().to_string());
        let has_splits = world.text.is_some_and(|text| text.task.division() == Division::Splits);
        let split = if has_splits { "of the test split" } else { "of new completions of the training problems" };
        say(format!("accuracy: {:.1} % of {of}{held_out} {what} {split}, margin {margin:.3}", 100.0 * accuracy));
    }
    Ok(0)
}
