//! Teaches a pretrained language model to be brief: `cargo run --release --features language --example pretrained_grpo`.
//!
//! The model is SmolLM2-135M-Instruct, which `scripts/models.sh` fetches, or another one: `... --example pretrained_grpo -- MODEL`. GRPO trains
//! adapters beside its matrices. A completion of four to ten words has a reward of 1.

use gradus::{Config, Error, Run, Show};

const PROBLEMS: &str = "language/tasks/four-to-ten-words.jsonl";

fn main() -> Result<(), Error> {
    let model = std::env::args().nth(1).unwrap_or_else(|| "models/SmolLM2-135M-Instruct.Q4_1.gguf".into());
    let mut config = Config::preset("grpo", &format!("chat:{PROBLEMS}?model={model}"), None)?;
    config.steps = 20_000; // generated tokens

    let mut run = Run::create_numbered(config, "pretrained_grpo")?;
    run.train(Show::Progress)?;

    println!("trained for {:.0} s on {} generated tokens", run.seconds(), run.trainer().steps());
    println!("learning curve: {}", run.dir().join("curve.png").display());
    let evaluation = run.evaluate(100)?;
    println!("right answers of held-out questions, greedy: {:.0} %", 100.0 * evaluation.mean);
    println!("talk to it: gradus chat {}", run.dir().display());
    Ok(())
}
