//! `gradus inspect`: estimators side by side.

use std::path::PathBuf;

use clap::Args;
use gradus::config::Algorithm;
use gradus::inspect::{Inspection, Looked, inspect};
use gradus::run::load_policy;
use gradus::{Config, Error};

use super::{number, number_within, say};

/// Shows the advantages and the gradient of every estimator on one set of rollouts.
#[derive(Args)]
pub(super) struct Inspect {
    /// A run folder.
    dir: PathBuf,
    /// Groups of episodes that begin alike.
    #[arg(long, default_value = "32", allow_hyphen_values = true)]
    groups: String,
    /// Episodes of each group.
    #[arg(long, default_value = "8", allow_hyphen_values = true)]
    group_size: String,
    /// The seed of the episodes.
    #[arg(long, default_value = "1", allow_hyphen_values = true)]
    seed: String,
    /// How many groups' advantages are shown, decision by decision.
    #[arg(long, default_value = "1", allow_hyphen_values = true)]
    show: String,
}

pub(super) fn run(arguments: &Inspect) -> Result<i32, Error> {
    let within = |what: &str, text: &str, least| Ok::<usize, Error>(number_within(what, text, least, 1 << 16)? as usize);
    let (groups, group_size) = (within("--groups", &arguments.groups, 1)?, within("--group-size", &arguments.group_size, 2)?);
    let (seed, show) = (number("--seed", &arguments.seed, 0)?, within("--show", &arguments.show, 0)?);
    let (config, world, mut policy) = load_policy(&arguments.dir)?;
    let (gamma, lambda) = discounts(&config);
    let found = inspect(policy.as_mut(), &world, &config, Looked { groups, group_size, seed, gamma, lambda })?;

    let symbol = |token: u32| world.text.as_ref().map_or_else(|| token.to_string(), |text| text.task.vocabulary().symbol(token));
    for group in 0..show.min(groups) {
        say_group(&found, group, &symbol);
    }
    say_gradients(&found);
    Ok(0)
}

/// As the run's own agent has them.
fn discounts(config: &Config) -> (f32, f32) {
    match &config.algorithm {
        Algorithm::Ppo(ppo) => (ppo.gamma, ppo.gae_lambda),
        _ => (1.0, 0.95),
    }
}

/// The advantages of one group, a line for each decision.
fn say_group(found: &Inspection, group: usize, symbol: &dyn Fn(u32) -> String) {
    let widths: Vec<usize> = found.estimates.iter().map(|estimate| estimate.name.len().max(8)).collect();
    let names: String = found.estimates.iter().zip(&widths).map(|(estimate, width)| format!("  {:>width$}", estimate.name)).collect();
    say(format!("group {}: advantages", group + 1));
    say(format!("  {:<8}  {:>8}  {:>8}{names}", "action", "reward", "value"));
    for segment in found.rollout.segments.iter().filter(|segment| segment.group.0 as usize == group) {
        for i in segment.range.clone() {
            let action = found.tokens().get(i).map_or_else(|| "-".into(), |token| symbol(*token));
            let numbers = found.estimates.iter().zip(&widths).map(|(estimate, width)| format!("  {:>width$.3}", estimate.advantages[i]));
            let (reward, value) = (found.rollout.rewards[i], found.values[i]);
            say(format!("  {action:<8}  {reward:>8.3}  {value:>8.3}{}", numbers.collect::<String>()));
        }
        say("");
    }
}

/// The gradients: how long each is, and the cosine of the angle between each two.
fn say_gradients(found: &Inspection) {
    let names: Vec<&str> = found.estimates.iter().map(|estimate| estimate.name).collect();
    let width = names.iter().map(|name| name.len()).max().unwrap_or_default();
    let numbers: String = (1..=names.len()).map(|i| format!("  {:>6}", format!("({i})"))).collect();
    say(format!("gradients of {} decisions: norm, and cosine with", found.rollout.len()));
    say(format!("  {:<width$}  {:>9}{numbers}", "", "norm"));
    for (i, name) in names.iter().enumerate() {
        let cosine = |x: &f64| if x.is_nan() { format!("  {:>6}", "-") } else { format!("  {x:>6.3}") };
        let cosines: String = found.comparison.cosines[i].iter().map(cosine).collect();
        say(format!("  {name:<width$}  {:>9.2e}{cosines}", found.comparison.norms[i]));
    }
}
