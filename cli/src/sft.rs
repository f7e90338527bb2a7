//! `gradus sft`: supervised warm start.

use std::path::PathBuf;

use clap::Args;
use gradus::envs::registry;
use gradus::run::sft::{Progress, WarmStart, defaults};
use gradus::{Config, Error};

use crate::arguments::{number, number_within, on_threads};
use crate::output::say;
use crate::signals::Signals;

/// Train a fresh policy on the known answers of a text task, and write a folder for `eval`, `sample` and `--set init=DIR`.
#[derive(Args)]
pub(crate) struct Sft {
    /// Text task, such as addition.
    task: String,
    /// Maximum number of optimiser steps.
    #[arg(long, default_value = "1000", allow_hyphen_values = true)]
    steps: String,
    /// Answers per optimiser step.
    #[arg(long, default_value = "64", allow_hyphen_values = true)]
    batch: String,
    /// Stop when this fraction of the validation problems, 0 to 1, is answered exactly [default: never]
    #[arg(long, allow_hyphen_values = true)]
    until_exact: Option<String>,
    /// Optimiser steps between evaluations.
    #[arg(long, default_value = "10", allow_hyphen_values = true)]
    evaluate_every: String,
    /// Random seed.
    #[arg(long, default_value = "1", allow_hyphen_values = true)]
    seed: String,
    /// Number of threads; does not affect the results [default: all cores]
    #[arg(long, allow_hyphen_values = true)]
    threads: Option<String>,
    /// One setting of [transformer], [optimiser], [text] or [torch], device, or init; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    /// Output folder [default: the first free runs/sft-TASK-N]
    #[arg(long)]
    out: Option<PathBuf>,
    /// Print only errors.
    #[arg(long)]
    quiet: bool,
}

pub(crate) fn run(arguments: &Sft) -> Result<u8, Error> {
    let config = Config { seed: number("--seed", &arguments.seed, 0)?, ..defaults(Config::preset("ppo", &arguments.task, None)?) };
    let sections = ["transformer", "optimiser", "text", "torch", "device", "init"];
    let config = crate::train::within_sections(config, &arguments.settings, &sections)?;
    let world = registry::find(&arguments.task)?;
    crate::train::unchanged("environment", &world.name, &config.environment)?;
    let until_exact = arguments.until_exact.as_ref().map_or(Ok(f64::INFINITY), |text| {
        let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
        share.ok_or_else(|| Error::Parse { what: "--until-exact".into(), expected: "a fraction from 0 to 1".into(), got: text.clone() })
    })?;
    let wanted = WarmStart {
        steps: number("--steps", &arguments.steps, 1)?,
        batch: number_within("--batch", &arguments.batch, 1, 1 << 20)? as usize,
        until_exact,
        evaluate_every: number("--evaluate-every", &arguments.evaluate_every, 1)?,
        ..WarmStart::default()
    };
    Signals::end_at_once();
    let name = format!("sft-{}", world.name);
    let each = |Progress { step, loss, exact }| {
        if !arguments.quiet {
            say(format!("step {step}: loss {loss:.3}, validation exact {:.1} %", 100.0 * exact));
        }
    };
    let (dir, test) =
        on_threads(arguments.threads.as_deref(), || gradus::run::sft::run(&config, &wanted, arguments.out.as_deref(), &name, each))??;
    if !arguments.quiet {
        say(dir.display().to_string());
        let problems = test.problems.as_ref().map_or_else(String::new, ToString::to_string);
        match test.score("exact") {
            Some(exact) => say(format!("exact: {:.1} % of {problems}", 100.0 * exact)),
            None => say(format!("mean {:.3} over {problems}", test.mean)),
        }
    }
    Ok(0)
}
