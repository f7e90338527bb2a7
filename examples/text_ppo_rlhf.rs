//! Reinforcement learning from preferences with PPO and its four models: `cargo run --example text_ppo_rlhf`.
//!
//! | model | in this example |
//! | --- | --- |
//! | policy | a transformer, first trained by supervised learning |
//! | reference policy | the supervised policy, frozen; a KL penalty in the reward of each token keeps the policy near it |
//! | reward model | trained on pairs of completions that a hidden scorer ranks; its score is the reward |
//! | value model | a head on the policy's trunk |
//!
//! The hidden scorer's score is not used as a reward. It is logged as `reward/true` in the run's `metrics.csv`; `reward/mean` is the
//! learned score.

use gradus::run::sft::{self, WarmStart};
use gradus::{Config, Error, Run, Show, run::reward_model};

fn main() -> Result<(), Error> {
    let mut config = Config::preset("ppo", "preference", None)?;
    config.steps = 300_000;

    // supervised learning: a few steps are enough
    let wanted = WarmStart { steps: 30, ..WarmStart::default() };
    let (start, _) = sft::run(&sft::defaults(config.clone()), &wanted, None, "text_ppo_rlhf-start", |_| ())?;
    config.init = start.display().to_string();

    // the reward model, from pairs of the supervised policy's completions
    let wanted = reward_model::Wanted::default();
    let (folder, learnt) = reward_model::run(&sft::defaults(config.clone()), &wanted, None, "text_ppo_rlhf-reward")?;
    println!("reward model: {:.1} % of {} test pairs ranked correctly", 100.0 * learnt.quality.accuracy(), learnt.held_out);

    let reward_model = format!("reward_model.folder={}", folder.display());
    config = config.with_setting(&reward_model)?;
    for setting in ["reference.coefficient=0.05", "reference.place=reward"] {
        config = config.with_setting(setting)?;
    }
    let mut run = Run::create_numbered(config, "text_ppo_rlhf")?;
    let before = run.evaluate(500)?.mean;
    run.train(Show::Progress)?;
    println!("learning curve: {}", run.dir().join("curve.png").display());
    println!("true score: {before:.2} before, {:.2} after (1 is the maximum)", run.evaluate(500)?.mean);
    Ok(())
}
