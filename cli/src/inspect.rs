//! `gradus inspect`: compares estimators on one set of rollouts.

use std::path::PathBuf;

use clap::Args;
use gradus::Error;
use gradus::evaluate::inspect::{Inspection, Looked, inspect};
use gradus::nets::Observations;
use gradus::saved::load_policy;

use crate::arguments::{number, number_within};
use crate::output::say;
use crate::sample::reward_of;

mod minibatch;

/// Show the advantages and the gradient of every estimator on one set of rollouts.
#[derive(Args)]
pub(crate) struct Inspect {
    /// Run folder.
    dir: PathBuf,
    /// Number of groups; the episodes of a group have the same start.
    #[arg(long, default_value = "32", allow_hyphen_values = true)]
    groups: String,
    /// Episodes per group.
    #[arg(long, default_value = "8", allow_hyphen_values = true)]
    group_size: String,
    /// Random seed of the episodes.
    #[arg(long, default_value = "1", allow_hyphen_values = true)]
    seed: String,
    /// Number of groups whose advantages are listed, one line per decision; of a longer episode, the first 40.
    #[arg(long, default_value = "1", allow_hyphen_values = true)]
    show: String,
    /// Folder written by `gradus reward-model`, whose model gives the rewards [default: the run's reward model, if it has one]
    #[arg(long, value_name = "DIR")]
    reward_model: Option<PathBuf>,
    /// Instead, make one update from the run's policy and show what it does to some decisions: ratio, clip, advantage [default: 10 of them]
    #[arg(long, value_name = "DECISIONS", num_args = 0..=1, default_missing_value = "10", allow_negative_numbers = true, conflicts_with_all = ["groups", "group_size", "seed", "show", "reward_model"])]
    minibatch: Option<String>,
}

pub(crate) fn run(arguments: &Inspect) -> Result<u8, Error> {
    let within = |what: &str, text: &str, least| Ok::<usize, Error>(number_within(what, text, least, 1 << 16)? as usize);
    if let Some(shown) = &arguments.minibatch {
        minibatch::look_into(&arguments.dir, within("--minibatch", shown, 1)?)?;
        return Ok(0);
    }
    let (groups, group_size) = (within("--groups", &arguments.groups, 1)?, within("--group-size", &arguments.group_size, 2)?);
    let (seed, show) = (number("--seed", &arguments.seed, 0)?, within("--show", &arguments.show, 0)?);
    let (config, world, mut policy) = load_policy(&arguments.dir)?;
    let mut learned = reward_of(arguments.reward_model.as_deref(), &arguments.dir)?;
    let (gamma, lambda) = config.algorithm.discounts();
    let looked = Looked { groups, group_size, seed, gamma, lambda };
    let found = inspect(policy.as_mut(), &world, &config, looked, learned.as_mut())?;
    if found.true_rewards.is_some() {
        let kind = if learned.is_some_and(|learned| learned.is_process()) { "process reward model" } else { "reward model" };
        let whose = if arguments.reward_model.is_some() { "a" } else { "the run's" };
        say(format!("rewards are from {whose} {kind}; the column `true` has the environment's rewards\n"));
    }

    let symbol = |token: u32| world.text.as_ref().map_or_else(|| token.to_string(), |text| text.task.vocabulary().symbol(token));
    let mut order: Vec<usize> = (0..groups).collect();
    // groups whose episodes have equal returns come last: their group advantages are zero
    order.sort_by_key(|group| !has_spread(&found, *group));
    for group in order.into_iter().take(show) {
        say_group(&found, group, &symbol);
    }
    say_gradients(&found);
    let differ = if found.mismatch == 0.0 { "are equal".into() } else { format!("differ by at most {:.1e}", found.mismatch) };
    say(format!("\nlog-probabilities at sampling and at the update {differ}"));
    Ok(0)
}

/// Whether the returns of a group's episodes differ.
fn has_spread(found: &Inspection, group: usize) -> bool {
    let segments = found.rollout.segments.iter().filter(|segment| segment.group.0 as usize == group);
    let mut returns = segments.map(|segment| found.rollout.rewards[segment.range.clone()].iter().sum::<f32>());
    let first = returns.next();
    returns.any(|other| Some(other) != first)
}

/// Of a longer episode, only this many decisions are printed.
const SHOWN: usize = 40;

/// Prints the advantages of one group, one line per decision.
fn say_group(found: &Inspection, group: usize, symbol: &dyn Fn(u32) -> String) {
    let widths: Vec<usize> = found.estimates.iter().map(|estimate| estimate.name.len().max(8)).collect();
    let names: String = found.estimates.iter().zip(&widths).map(|(estimate, width)| format!("  {:>width$}", estimate.name)).collect();
    let mut segments = found.rollout.segments.iter().filter(|segment| segment.group.0 as usize == group).peekable();
    let prompt = match (found.rollout.store.observations(), segments.peek()) {
        (Observations::Texts(texts), Some(segment)) => texts.prefix(segment.range.start).iter().map(|token| symbol(*token)).collect(),
        _ => String::new(),
    };
    say(format!("group {} {prompt} advantages", group + 1));
    let true_column = if found.true_rewards.is_some() { format!("  {:>8}", "true") } else { String::new() };
    say(format!("  {:<8}  {:>8}{true_column}  {:>8}{names}", "action", "reward", "value"));
    for segment in segments {
        let (steps, hidden) = (segment.range.len(), segment.range.len().saturating_sub(SHOWN));
        for i in segment.range.clone().take(SHOWN) {
            let action = found.tokens().get(i).map_or_else(|| "-".into(), |token| symbol(*token));
            let numbers = found.estimates.iter().zip(&widths).map(|(estimate, width)| format!("  {:>width$.3}", estimate.advantages[i]));
            let (reward, value) = (found.rollout.rewards[i], found.values[i]);
            let true_reward = found.true_rewards.as_ref().map_or_else(String::new, |rewards| format!("  {:>8.3}", rewards[i]));
            say(format!("  {action:<8}  {reward:>8.3}{true_reward}  {value:>8.3}{}", numbers.collect::<String>()));
        }
        if hidden > 0 {
            say(format!("  ... and {hidden} more of its {steps} steps"));
        }
        say("");
    }
}

/// Prints the norm of each gradient and the cosine similarity of each pair.
fn say_gradients(found: &Inspection) {
    let names: Vec<&str> = found.estimates.iter().map(|estimate| estimate.name).collect();
    let width = names.iter().map(|name| name.len()).max().unwrap_or_default();
    let numbers: String = (1..=names.len()).map(|i| format!("  {:>6}", format!("({i})"))).collect();
    say(format!("gradients of {} decisions: norm, and cosine similarity with row (1), (2), ...", found.rollout.len()));
    say(format!("  {:<width$}  {:>9}{numbers}", "", "norm"));
    for (i, name) in names.iter().enumerate() {
        let cosine = |x: &f64| if x.is_nan() { format!("  {:>6}", "-") } else { format!("  {x:>6.3}") };
        let cosines: String = found.comparison.cosines[i].iter().map(cosine).collect();
        say(format!("  {name:<width$}  {:>9.2e}{cosines}", found.comparison.norms[i]));
    }
}
