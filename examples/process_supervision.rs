//! Compares outcome and process supervision on sums with their running totals: `cargo run --example process_supervision`.
//!
//! Both kinds of supervision have the same rewards: 1 for each correct running total and 1 for the sum. With outcome supervision, the
//! advantage of all tokens is computed from the return of the completion. With process supervision, the advantage of a token is computed
//! from the rewards of the steps that end at or after the token. With each seed, both runs have the same initial policy and the same number
//! of tokens. `results/text` has a larger comparison.

use gradus::run::sft::{self, WarmStart};
use gradus::{Config, Error, Mode, Trainer, evaluate};

const SEEDS: u64 = 3;

fn main() -> Result<(), Error> {
    println!("seed   outcome   process   (exact chain sums of the test split, in %)");
    let mut means = [0.0; 2];
    for seed in 1..=SEEDS {
        let config = Config { seed, steps: 200_000, ..Config::preset("grpo", "chain-sum", None)? };
        let wanted = WarmStart { until_exact: 0.1, evaluate_every: 5, ..WarmStart::default() };
        let (start, _) = sft::run(&sft::defaults(config.clone()), &wanted, None, "process_supervision-start", |_| ())?;
        let mut exact = [0.0; 2];
        for (exact, supervision) in exact.iter_mut().zip(["outcome", "process"]) {
            let config = config.clone().with_setting(&format!("grpo.supervision={supervision}"))?;
            let mut trainer = Trainer::new(Config { init: start.display().to_string(), ..config })?;
            trainer.finish()?;
            let evaluation = evaluate::evaluate(trainer.policy(), &trainer.evaluation_world(), 1000, seed, Mode::Greedy)?;
            *exact = 100.0 * evaluation.score("exact").unwrap_or(f64::NAN);
        }
        println!("{seed:>4}   {:>7.1}   {:>7.1}", exact[0], exact[1]);
        means.iter_mut().zip(exact).for_each(|(mean, exact)| *mean += exact / SEEDS as f64);
    }
    println!("mean   {:>7.1}   {:>7.1}", means[0], means[1]);
    Ok(())
}
