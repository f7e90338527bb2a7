//! Trains a small transformer to add, first by supervised learning and then by GRPO: `cargo run --example text_grpo`.
//!
//! Supervised learning stops when the answers to a quarter of the validation problems are correct. GRPO then learns only from the
//! verifier's rewards for the answers that the transformer generates.

use gradus::run::sft::{self, WarmStart};
use gradus::{Config, Error, Evaluation, Run, Show};

fn main() -> Result<(), Error> {
    let mut config = Config::preset("grpo", "addition", None)?;
    config.steps = 500_000; // generated tokens

    let wanted = WarmStart { until_exact: 0.25, evaluate_every: 5, ..WarmStart::default() };
    let (start, test) = sft::run(&sft::defaults(config.clone()), &wanted, None, "text_grpo-start", |_| ())?;
    let exact = |evaluation: &Evaluation| 100.0 * evaluation.score("exact").unwrap_or(f64::NAN);
    println!("supervised start: {:.1} % of held-out sums exact, folder {}", exact(&test), start.display());

    config.init = start.display().to_string();
    let mut run = Run::create_numbered(config, "text_grpo")?;
    run.train(Show::Progress)?;

    let evaluation = run.evaluate(1000)?;
    println!("trained for {:.1} s on {} generated tokens", run.seconds(), run.trainer().steps());
    println!("learning curve: {}", run.dir().join("curve.png").display());
    println!("sample answers: gradus sample {} --prompt \"37+45=\"", run.dir().display());
    println!("held-out exact: {:.1} %", exact(&evaluation));
    Ok(())
}
