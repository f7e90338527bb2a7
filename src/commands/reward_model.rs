//! `gradus reward-model`: trains a reward model from ranked completions or from labelled steps.

use std::path::PathBuf;

use clap::Args;
use gradus::agents::ConfigError;
use gradus::agents::reward_model::RewardModelConfig;
use gradus::config::{Labelling, MOST_COMPLETIONS, RewardConfig, StepLabels};
use gradus::envs::registry;
use gradus::envs::text::Division;
use gradus::run::reward_model::{Learnt, Wanted};
use gradus::train::Quality;
use gradus::{Config, Error};

use super::signals::Signals;
use super::{number, number_within, on_threads, say};

/// Train a reward model of a text task, and write a folder for `--set reward_model.folder=DIR`.
///
/// The model scores whole texts and learns from ranked completions. With --process it scores the steps of solutions and learns from labels
/// of steps; a run then also needs `--set reward_model.supervision=process`.
#[derive(Args)]
pub(super) struct RewardModel {
    /// Text task, such as preference.
    task: String,
    /// Run folder of the policy that generates the completions and initialises the reward model [default: a fresh policy]
    #[arg(long)]
    init: Option<PathBuf>,
    /// Number of problems whose completions are ranked or labelled.
    #[arg(long, default_value = "2000", allow_hyphen_values = true)]
    pairs: String,
    /// Completions per problem; for rankings, two make a pair.
    #[arg(long, default_value = "2", allow_hyphen_values = true)]
    completions: String,
    /// Number of held-out problems used to measure the model's accuracy.
    #[arg(long, default_value = "500", allow_hyphen_values = true)]
    held_out: String,
    /// Train a process reward model, which scores the steps of a solution instead of the whole text.
    #[arg(long)]
    process: bool,
    /// Labels of steps: hard (1 if one of the completions sampled from the end of the step succeeds), soft (the fraction of them that
    /// succeed) or verifier (1 if the task's reward of the step is above 0) [default: hard]
    #[arg(long, requires = "process")]
    labels: Option<String>,
    /// Completions sampled from the end of each step for its label [default: 8]
    #[arg(long, requires = "process", allow_hyphen_values = true)]
    rollouts: Option<String>,
    /// The task's score that is 1 for a completion that succeeds [default: exact]
    #[arg(long, requires = "process")]
    success: Option<String>,
    /// Epochs over the examples [default: 3]
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
    let is_ranked = RewardModelConfig { epochs: training.epochs, minibatch_size: training.minibatch_size, ..RewardModelConfig::default() };
    let expected = "only epochs and minibatch_size, because a process reward model learns from labels";
    ConfigError::unless(!arguments.process || training == is_ranked, "reward_model", expected, "other settings")?;
    let labelling = arguments.process.then(|| labelling(arguments)).transpose()?;
    let wanted = Wanted {
        labelling,
        pairs: number_within("--pairs", &arguments.pairs, 1, 1 << 24)? as usize,
        completions: number_within("--completions", &arguments.completions, 2, MOST_COMPLETIONS as u64)? as usize,
        held_out: number_within("--held-out", &arguments.held_out, 1, 1 << 24)? as usize,
        training: RewardModelConfig { epochs, ..training },
    };
    Signals::end_at_once();
    let name = format!("reward-model-{}", world.name);
    let work = || gradus::run::reward_model::run(&config, &wanted, arguments.out.as_deref(), &name);
    let (dir, learnt) = on_threads(arguments.threads.as_deref(), work)??;
    if !arguments.quiet {
        let has_splits = world.text.is_some_and(|text| text.task.division() == Division::Splits);
        let split = if has_splits { "of the test split" } else { "of new completions of the training problems" };
        say_quality(&wanted, &learnt, split, &dir.display().to_string());
    }
    Ok(0)
}

/// Reads how steps are labelled.
fn labelling(arguments: &RewardModel) -> Result<Labelling, Error> {
    let standard = Labelling::default();
    let labels = match arguments.labels.as_deref() {
        None => standard.labels,
        Some("hard") => StepLabels::Hard,
        Some("soft") => StepLabels::Soft,
        Some("verifier") => StepLabels::Verifier,
        Some(other) => {
            return Err(Error::Parse { what: "--labels".into(), expected: "hard, soft or verifier".into(), got: other.into() });
        }
    };
    let rollouts = arguments.rollouts.as_deref().map(|rollouts| number_within("--rollouts", rollouts, 1, MOST_COMPLETIONS as u64));
    Ok(Labelling {
        labels,
        rollouts: rollouts.transpose()?.map_or(standard.rollouts, |rollouts| rollouts as usize),
        success: arguments.success.clone().unwrap_or(standard.success),
    })
}

/// Prints the size of the training set, the folder, and the model's quality on examples of the split.
fn say_quality(wanted: &Wanted, learnt: &Learnt, split: &str, dir: &str) {
    let Learnt { examples, steps, held_out, loss, .. } = learnt;
    let percent = |fraction: f64| format!("{:.1} %", 100.0 * fraction);
    match &learnt.quality {
        Quality::Rankings(agreement) => {
            let (what, of) = if wanted.completions == 2 { ("pairs", "") } else { ("rankings", "the pairs in ") };
            say(format!("{examples} {what}, loss {loss:.3}"));
            say(dir);
            let (accuracy, margin) = (percent(agreement.accuracy()), agreement.margin());
            say(format!("accuracy: {accuracy} of {of}{held_out} {what} {split}, margin {margin:.3}"));
        }
        Quality::Steps(quality) => {
            say(format!("{} labelled steps of {examples} completions, loss {loss:.3}", steps.unwrap_or_default()));
            say(dir);
            say(format!("{held_out} completions {split}, {} of them wrong, with steps labelled by the verifier:", quality.wrong_solutions));
            say(format!("  accuracy: {} of {} steps up to the first wrong one", percent(quality.accuracy()), quality.steps));
            say(format!("  first wrong step found: in {} of the wrong completions", percent(quality.first_error())));
            say(format!("  no step rejected: in {} of the right completions", percent(quality.accepted())));
            say(format!("  calibration error {:.3}, Brier score {:.3}", quality.calibration_error(), quality.brier()));
        }
    }
}
