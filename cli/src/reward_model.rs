//! `gradus reward-model`: trains a reward model from ranked completions or from labelled steps.

use std::path::{Path, PathBuf};

use clap::Args;
use gradus::agents::ConfigError;
use gradus::agents::reward_model::RewardModelConfig;
use gradus::config::{Labelling, MOST_COMPLETIONS, RewardConfig, StepLabels};
use gradus::envs::registry;
use gradus::envs::text::Division;
use gradus::run::reward_model::{Learnt, Source, Wanted};
use gradus::train::Quality;
use gradus::{Config, Error};

use crate::arguments::{number, number_within, on_threads};
use crate::output::say;
use crate::signals::Signals;

/// Train a reward model of a text task, and write a folder for `--set reward_model.folder=DIR`.
///
/// The model scores whole texts and learns from ranked completions: of a policy, ranked by the task's verifier or by a judge, or from a
/// file. With --process it scores the steps of solutions and learns from labels of steps; a run then also needs `--set
/// reward_model.supervision=process`.
#[derive(Args)]
pub(crate) struct RewardModel {
    /// Text task, such as preference.
    task: String,
    /// Run folder of the policy that generates the completions and initialises the reward model [default: a fresh policy]
    #[arg(long)]
    init: Option<PathBuf>,
    /// Number of problems whose completions are ranked or labelled, or a file of preferences, one JSON object per line: {"prompt": "3+4=",
    /// "chosen": "7", "rejected": "8"}, or {"prompt": "3+4=", "ranking": ["7", "8", "9"]} from the best to the worst.
    #[arg(long, value_name = "N|FILE", default_value = "2000", allow_hyphen_values = true)]
    pairs: String,
    /// Folder of a judge that ranks the completions instead of the task's verifier: a reward model by its scores, or the policy of a run by
    /// its log-likelihoods.
    #[arg(long, value_name = "DIR", conflicts_with = "process")]
    judge: Option<PathBuf>,
    /// Completions per problem; for rankings, two make a pair [default: 2]
    #[arg(long, allow_hyphen_values = true)]
    completions: Option<String>,
    /// Number of held-out problems used to measure the model's accuracy [default: 500]
    #[arg(long, allow_hyphen_values = true)]
    held_out: Option<String>,
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
    /// One setting of [transformer], [optimiser], [text] or [torch], device, or a training setting of [reward_model]; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    /// Output folder [default: the first free runs/reward-model-TASK-N]
    #[arg(long)]
    out: Option<PathBuf>,
    /// Print only errors.
    #[arg(long)]
    quiet: bool,
}

pub(crate) fn run(arguments: &RewardModel) -> Result<u8, Error> {
    let config = gradus::run::sft::defaults(Config::preset("ppo", &arguments.task, None)?);
    let init = arguments.init.as_ref().map_or_else(String::new, |dir| dir.display().to_string());
    let config = Config { seed: number("--seed", &arguments.seed, 0)?, init, ..config };
    let sections = ["transformer", "optimiser", "text", "reward_model", "torch", "device"];
    let config = crate::train::within_sections(config, &arguments.settings, &sections)?;
    let world = registry::find(&arguments.task)?;
    crate::train::unchanged("environment", &world.name, &config.environment)?;
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
    let epochs = RewardModelConfig { epochs, ..training };
    let wanted = wanted(arguments, epochs)?;
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

/// Reads where the examples come from, and how many there are.
fn wanted(arguments: &RewardModel, training: RewardModelConfig) -> Result<Wanted, Error> {
    let is_number = !Path::new(&arguments.pairs).exists() && !arguments.pairs.contains(['.', '/']);
    let count = |what: &str, text: &Option<String>, least, most, standard| match text {
        Some(text) => Ok(number_within(what, text, least, most)? as usize),
        None => Ok::<usize, Error>(standard),
    };
    let Wanted { completions, held_out, .. } = Wanted::default();
    let wanted = Wanted {
        source: Source::Verifier,
        pairs: if is_number { number_within("--pairs", &arguments.pairs, 1, 1 << 24)? as usize } else { 0 },
        completions: count("--completions", &arguments.completions, 2, MOST_COMPLETIONS as u64, completions)?,
        held_out: count("--held-out", &arguments.held_out, 1, 1 << 24, held_out)?,
        training,
    };
    let source = match (&arguments.judge, arguments.process) {
        _ if !is_number => {
            let others = [
                ("--judge", arguments.judge.is_some()),
                ("--process", arguments.process),
                ("--completions", arguments.completions.is_some()),
                ("--held-out", arguments.held_out.is_some()),
            ];
            if let Some((other, _)) = others.into_iter().find(|(_, is_given)| *is_given) {
                let (what, expected) = (other.into(), "no such option, because --pairs names a file of preferences".into());
                return Err(Error::Parse { what, expected, got: "it".into() });
            }
            Source::File(PathBuf::from(&arguments.pairs))
        }
        (Some(judge), _) => Source::Judge(judge.clone()),
        (None, true) => Source::Steps(labelling(arguments)?),
        (None, false) => Source::Verifier,
    };
    Ok(Wanted { source, ..wanted })
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
    let given = [("--rollouts", arguments.rollouts.is_some()), ("--success", arguments.success.is_some())];
    if let (StepLabels::Verifier, Some((option, _))) = (labels, given.into_iter().find(|(_, is_given)| *is_given)) {
        let (what, expected) = (option.into(), "no such option, because the verifier's labels need no rollouts".into());
        return Err(Error::Parse { what, expected, got: "it".into() });
    }
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
            let (what, of) = match (&wanted.source, wanted.completions) {
                (Source::File(_), _) => ("rankings", "the pairs in "),
                (_, 2) => ("pairs", ""),
                _ => ("rankings", "the pairs in "),
            };
            say(format!("{examples} {what}, loss {loss:.3}"));
            say(dir);
            if let Some(agreement) = learnt.agreement {
                say(format!("the judge agrees with the verifier in {} of the training pairs", percent(agreement)));
            }
            let (accuracy, margin) = (percent(agreement.accuracy()), agreement.margin());
            let split = if matches!(wanted.source, Source::File(_)) { "of the file's held-out prompts" } else { split };
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
