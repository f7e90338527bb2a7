//! What `train` says at its end: what the policy is worth.

use gradus::agents::{Reached, reached};
use gradus::config::effect::predicts;
use gradus::envs::EnvError;
use gradus::envs::text::Split;
use gradus::evaluate::levels::Levels;
use gradus::evaluate::{Evaluation, evaluate};
use gradus::numbers::{short, with_error};
use gradus::saved::load_behaviour_on;
use gradus::{Config, Error, Mode, Run, program_name};

use crate::output::{quoted, say_sentence};

/// Episodes and seed of the evaluation: those of `gradus eval`.
pub(crate) const EPISODES: usize = 100;
pub(crate) const SEED: u64 = 1;

/// Evaluates the final policy and says whether the environment is solved. If evaluations kept a better policy, evaluates it on the same new starts.
pub(crate) fn report(run: &Run) -> Result<(), Error> {
    let trainer = run.trainer();
    let config = trainer.config();
    // its policy is that of random actions
    if predicts(&config.agent) {
        return Ok(());
    }
    let world = trainer.evaluation_world();
    let last = match evaluate(trainer.policy(), &world, EPISODES, SEED, Mode::Greedy) {
        // without a time limit, a policy may never come to an end
        Err(Error::Env(EnvError::Endless { step, .. })) => {
            say_sentence(&format!(
                "no evaluation: an episode of the policy has not ended after {step} steps, and the environment has no time limit"
            ));
            return Ok(());
        }
        result => result?,
    };
    let levels = Levels::of(config, &world)?;
    say_sentence(&format!("evaluation: {}, greedy: {}", in_words(&last), verdict(&last, &levels)));
    if let Some(Reached { level, reached, seeds, measure, .. }) = of_preset(config) {
        say_sentence(&format!("of {seeds} seeds with these settings {reached} end with a {measure} of {} or more", short(level)));
    }
    let taken = trainer.steps();
    // whole rollouts may take more steps than planned
    if let Some(starts) = config.starts_after_the_end().filter(|starts| *starts >= taken) {
        say_sentence(&format!("no update was made: updates begin after step {starts}, and the run has {taken} steps"));
    }
    let path = run.dir().join("best_policy.safetensors");
    if config.evaluate_every > 0 && path.exists() {
        let (_, world, policy) = load_behaviour_on(&path, config.device)?;
        let best = evaluate(policy.as_ref(), &world.on_split(Split::Test), EPISODES, SEED, Mode::Greedy)?;
        if best.mean > last.mean {
            let play = format!("{} play {}", program_name(), quoted(&path.display().to_string()));
            say_sentence(&format!("the best policy of the evaluations has {} in the same episodes: {play}", in_words(&best)));
        }
    }
    Ok(())
}

/// Returns what the default preset has reached, if these are its settings.
fn of_preset(config: &Config) -> Option<Reached> {
    let base = Config::preset(&config.agent, &config.environment, None).ok()?;
    let free = ["seed", "device", "evaluate_every", "evaluate_episodes", "max_concurrent"];
    let settings = |config: &Config| config.settings().into_iter().filter(|(key, _)| !free.contains(&key.as_str())).collect::<Vec<_>>();
    (settings(&base) == settings(config)).then(|| reached(&config.agent, &config.environment, "default"))?
}

pub(crate) fn in_words(evaluation: &Evaluation) -> String {
    match &evaluation.problems {
        Some(problems) => {
            let exact = evaluation.score("exact").map_or_else(String::new, |exact| format!(", {:.1} % exact", 100.0 * exact));
            format!("mean {:.3} over {problems}{exact}", evaluation.mean)
        }
        None => format!("mean {} over {} episodes", evaluation.mean_shown(), evaluation.returns.len()),
    }
}

/// Whose return is the level that a policy must be better than.
pub(crate) fn baseline(is_text: bool, levels: &Levels) -> &'static str {
    match is_text {
        true if levels.has_begun_trained => "the model before the training",
        true => "an untrained policy",
        false => "random actions",
    }
}

/// Says whether the environment is solved, and whether the policy is better than random actions.
pub(crate) fn verdict(last: &Evaluation, levels: &Levels) -> String {
    let error = last.error();
    let who = baseline(last.problems.is_some(), levels);
    let has = if last.problems.is_some() { "has" } else { "have" };
    let about = if levels.random.1 > 0.0 { "about " } else { "" };
    let value = format!("{about}{}", with_error(levels.random.0, levels.random.1));
    let (random, no_better) = (format!("{who} {has} {value}"), format!("not measurably better than {who} ({value})"));
    let is_random = levels.is_random(last.mean, error);
    if let Some(optimum) = levels.optimum {
        let shown = short((optimum * 100.0).round() / 100.0);
        let is_best = last.mean >= optimum - 2.0 * error - 1e-9;
        return match (is_best, is_random) {
            (true, _) if error == 0.0 => format!("the optimum, {shown}; {random}"),
            (true, _) => format!("within two standard errors of the optimum, {shown}; {random}"),
            (false, true) => format!("{no_better}, and the optimum is {shown}"),
            (false, false) => format!("below the optimum, {shown}; {random}"),
        };
    }
    match levels.solved {
        Some(solved) if last.mean >= solved => format!("solved, which is {} or more", short(solved)),
        Some(solved) if is_random => format!("{no_better}, and solved is {}", short(solved)),
        Some(solved) => format!("not solved, {} short of {}; {random}", short(solved - last.mean), short(solved)),
        None => {
            let best =
                levels.best.map_or_else(String::new, |best| format!(", and the best default preset has a median of {}", short(best)));
            format!("{}{best}", if is_random { no_better } else { random })
        }
    }
}
