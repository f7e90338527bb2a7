//! Reinforcement learning from preferences with all four roles: `cargo run --example text_ppo_rlhf`.
//!
//! | role | here |
//! | --- | --- |
//! | policy | a transformer that begins as supervised learning leaves it |
//! | reference | that start, frozen: leaving it is charged, token by token |
//! | reward model | learns from pairs of completions which one a hidden scorer prefers; its score is the reward |
//! | value model | a head on the policy's trunk |
//!
//! The hidden scorer's own word is never learnt from, only looked at: `reward/true` beside `reward/mean` in the run's `metrics.csv`.

use gradus::run::sft::{self, WarmStart};
use gradus::{Config, Error, Run, Show, run::reward_model};

fn main() -> Result<(), Error> {
    let mut config = Config::preset("ppo", "preference", None)?;
    config.steps = 300_000;

    // the start: a few steps are enough to say something
    let wanted = WarmStart { steps: 30, ..WarmStart::default() };
    let (start, _) = sft::run(&sft::defaults(config.clone()), &wanted, None, "text_ppo_rlhf-start", |_| ())?;
    config.init = start.display().to_string();

    // the reward model, from pairs of what the start says
    let wanted = reward_model::Wanted::default();
    let (folder, learnt) = reward_model::run(&sft::defaults(config.clone()), &wanted, None, "text_ppo_rlhf-reward")?;
    println!(
        "reward model: {:.1} % of {} pairs of the test split right, margin {:.2}",
        100.0 * learnt.accuracy,
        learnt.held_out,
        learnt.margin
    );

    let reward_model = format!("reward_model.folder={}", folder.display());
    config = config.with_setting(&reward_model)?;
    for setting in ["reference.coefficient=0.05", "reference.place=reward"] {
        config = config.with_setting(setting)?;
    }
    let mut run = Run::create_numbered(config, "text_ppo_rlhf")?;
    let before = run.evaluate(500)?.mean;
    run.train(Show::Progress)?;
    println!("learning curve: {}", run.dir().join("curve.png").display());
    println!("true score: {before:.2} before, {:.2} after (1 is the best there is)", run.evaluate(500)?.mean);
    Ok(())
}
