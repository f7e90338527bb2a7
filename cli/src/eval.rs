//! `gradus eval`: evaluates trained policies, and compares policies that are evaluated on the same text problems.

use std::path::{Path, PathBuf};

use clap::Args;
use gradus::config::MOST;
use gradus::envs::EnvSpec;
use gradus::envs::text::{Split, TextOptions};
use gradus::evaluate::{Evaluation, Score, evaluate};
use gradus::numbers::{short, with_error};
use gradus::run::best_of::{BestOf, best_of};
use gradus::saved::load_behaviour_on;
use gradus::{Error, Mode, one_line};
use gradus_compare::statistics::{Bootstrap, Estimate, mean_paired_difference};
use serde_json::{Value, json};

use crate::arguments::{device, number, number_within};
use crate::folder::{expect_policy, with_runs_inside};
use crate::output::{complain, say};

#[derive(Args)]
pub(crate) struct Eval {
    /// Run folders, or folders of runs such as `runs`; runs on the same text task are also compared problem by problem.
    #[arg(required = true, value_name = "DIR")]
    dirs: Vec<PathBuf>,
    /// Number of episodes; on text tasks, number of problems from the test split (all of its problems if it has fewer).
    #[arg(long, default_value = "100", allow_hyphen_values = true)]
    episodes: String,
    /// Random seed of the episodes and of sampled actions; text tasks have the same problems for every seed.
    #[arg(long, default_value = "1", allow_hyphen_values = true)]
    seed: String,
    /// Sample actions, as in training, instead of taking the most probable one.
    #[arg(long)]
    sampled: bool,
    /// Device, which may differ from the one used in training: cpu, torch-cpu, cuda, cuda:N or mps.
    #[arg(long, default_value = "cpu")]
    device: String,
    /// Text tasks: sample this many completions of each problem and take the best, for every power of two up to this number, and for the number itself.
    #[arg(long, value_name = "N", allow_hyphen_values = true, conflicts_with_all = ["sampled", "device"])]
    best_of: Option<String>,
    /// Folder of the judge of --best-of: a reward model by its scores, or the policy of a run by its log-likelihoods [default: the run's
    /// reward model, or the task's verifier if it has none]
    #[arg(long, value_name = "DIR", requires = "best_of")]
    judge: Option<PathBuf>,
    /// Print a JSON object with every return; for several runs, or for a folder of runs, with all evaluations and differences.
    #[arg(long)]
    json: bool,
}

/// An evaluated run.
struct Evaluated<'a> {
    dir: &'a Path,
    world: EnvSpec,
    evaluation: Evaluation,
}

pub(crate) fn run(arguments: &Eval) -> Result<u8, Error> {
    let episodes = number_within("--episodes", &arguments.episodes, 1, MOST as u64)? as usize;
    let seed = number("--seed", &arguments.seed, 0)?;
    if let Some(most) = &arguments.best_of {
        let most = number_within("--best-of", most, 1, 1 << 20)? as usize;
        return best_of_n(arguments, episodes, most, seed);
    }
    let mode = if arguments.sampled { Mode::Sampled } else { Mode::Greedy };
    let device = device(&arguments.device)?;
    let evaluated = |dir: &Path| -> Result<(EnvSpec, Evaluation), Error> {
        expect_policy(dir)?;
        let (_, world, policy) = load_behaviour_on(dir, device)?;
        let world = world.on_split(Split::Test);
        Ok((world.clone(), evaluate(policy.as_ref(), &world, episodes, seed, mode)?))
    };
    // of the runs in a folder, those that act
    let mut dirs = with_runs_inside(arguments.dirs.clone());
    dirs.retain(|dir| arguments.dirs.contains(dir) || expect_policy(dir).is_ok());
    let is_alone = dirs == arguments.dirs && dirs.len() == 1;
    // what is no folder was hardly meant as one
    dirs.iter().find(|dir| !dir.exists()).map_or(Ok(()), |dir| evaluated(dir).map(drop))?;
    let (mut all, mut code) = (Vec::new(), 0);
    for dir in &dirs {
        match evaluated(dir) {
            Ok((world, evaluation)) => all.push(Evaluated { dir, world, evaluation }),
            Err(error) if is_alone => return Err(error),
            // the other runs are evaluated, too
            Err(error) => {
                complain(format!("error: {}", one_line(&error.to_string())));
                code = 2;
                continue;
            }
        }
        if let Some(run) = all.last().filter(|_| !is_alone && !arguments.json) {
            say(format!("{}: {}", dir.display(), in_words(run)));
        }
    }
    let differences = differences(&all)?;
    match (arguments.json, &all[..]) {
        (true, [alone]) if is_alone => say(to_json(&alone.evaluation)),
        (true, _) => say(in_json(&all, &differences)),
        (false, [alone]) if is_alone => {
            say(format!("evaluation: {}", in_words(alone)));
            say_scores(alone);
        }
        (false, _) => {
            differences.iter().for_each(|(a, b, estimate)| say_difference(&all[*a], &all[*b], estimate));
            if differences.len() > 1 {
                say(format!("each interval is for one pair, and not corrected for the {} pairs", differences.len()));
            }
        }
    }
    Ok(code)
}

/// Evaluates the best of n completions.
fn best_of_n(arguments: &Eval, problems: usize, most: usize, seed: u64) -> Result<u8, Error> {
    let [dir] = &arguments.dirs[..] else {
        let got = format!("{} folders", arguments.dirs.len());
        return Err(Error::Parse { what: "--best-of".into(), expected: "one run folder".into(), got });
    };
    let found = best_of(dir, arguments.judge.as_deref(), Split::Test, problems, most, seed)?;
    if arguments.json {
        say(serde_json::to_string(&found).expect("numbers and names are JSON"));
        return Ok(0);
    }
    say(format!("best of n by {}, {}", found.judge, found.problems));
    say(format!("{:>6}  {:>9}  {:>12}  {:>10}", "n", "KL below", "judge's mean", "reward"));
    for BestOf { n, kl_bound, worth, reward, error } in &found.best_of {
        say(format!("{n:>6}  {kl_bound:>9.3}  {worth:>12.3}  {:>10}", with_error(*reward, *error)));
    }
    Ok(0)
}

/// Describes the number of episodes and their returns in one line.
fn in_words(run: &Evaluated<'_>) -> String {
    let Evaluation { mean, std, min, max, returns, problems, .. } = &run.evaluation;
    if let Some(problems) = problems {
        let spread = if problems.distinct > 1 { format!(", std {std:.3}, min {min:.3}, max {max:.3}") } else { String::new() };
        return format!("mean {mean:.3} over {problems}{spread}");
    }
    let error = std / (returns.len() as f64).sqrt();
    let [std, min, max, error] = [*std, *min, *max, error].map(short);
    match returns.len() {
        1 => format!("return {min} in 1 episode"),
        episodes => format!(
            "mean {} over {episodes} episodes (standard error {error}, std {std}, min {min}, max {max})",
            run.evaluation.mean_shown()
        ),
    }
}

/// Prints the mean scores of the episodes, and whether a greedy policy went in circles in all of them. On text tasks, `exact` comes last, in percent.
fn say_scores(run: &Evaluated<'_>) {
    let (world, evaluation) = (&run.world, &run.evaluation);
    if let Some(limit) = world.max_episode_steps.filter(|limit| evaluation.lengths.iter().all(|length| length >= limit))
        && world.model().is_some()
    {
        say(format!("no episode ended: each was cut off after {limit} steps"));
    }
    for Score { name, mean } in evaluation.scores.iter().filter(|score| world.text.is_none() || score.name != "exact") {
        say(format!("{name}: {mean:.3}"));
    }
    if let Some(exact) = evaluation.score("exact").filter(|_| world.text.is_some()) {
        say(format!("exact: {:.1} %", 100.0 * exact));
    }
}

/// Returns the mean paired difference for every two runs with the same problems and the same text options.
fn differences(all: &[Evaluated<'_>]) -> Result<Vec<(usize, usize, Estimate)>, Error> {
    let options = |run: &Evaluated<'_>| -> Option<TextOptions> { run.world.text.as_ref().map(|text| text.options.clone()) };
    let is_comparable = |a: &Evaluated<'_>, b: &Evaluated<'_>| {
        let problems = a.evaluation.problems.as_ref().zip(b.evaluation.problems.as_ref());
        problems.is_some_and(|(a, b)| a.are_those_of(b)) && options(a) == options(b)
    };
    let pairs = (0..all.len()).flat_map(|a| (a + 1..all.len()).map(move |b| (a, b)));
    let difference = |(a, b): (usize, usize)| {
        let [x, y] = [a, b].map(|run| &all[run].evaluation.returns);
        let estimate = mean_paired_difference(x, y, &Bootstrap::default());
        let named = |error: gradus_compare::statistics::ScoresError| Error::Parse {
            what: format!("{} and {}", all[a].dir.display(), all[b].dir.display()),
            expected: "returns that can be compared".into(),
            got: error.to_string(),
        };
        Ok((a, b, estimate.map_err(named)?))
    };
    pairs.filter(|(a, b)| is_comparable(&all[*a], &all[*b])).map(difference).collect()
}

fn say_difference(a: &Evaluated<'_>, b: &Evaluated<'_>, estimate: &Estimate) {
    let Estimate { point, low, high } = estimate;
    let (a, b, problems) = (a.dir.display(), b.dir.display(), a.evaluation.returns.len());
    say(format!("{a} - {b}: {point:+.3}, 95 % interval {low:+.3} to {high:+.3}, paired over the same {problems} problems"));
}

pub(crate) fn to_json(evaluation: &Evaluation) -> String {
    serde_json::to_string(evaluation).expect("numbers and names are JSON")
}

fn in_json(all: &[Evaluated<'_>], differences: &[(usize, usize, Estimate)]) -> String {
    let name = |run: &Evaluated<'_>| run.dir.display().to_string();
    let evaluations: Vec<Value> = all.iter().map(|run| json!({ "run": name(run), "evaluation": run.evaluation })).collect();
    let difference = |(a, b, estimate): &(usize, usize, Estimate)| {
        let Estimate { point, low, high } = estimate;
        json!({ "runs": [name(&all[*a]), name(&all[*b])], "mean": point, "low": low, "high": high })
    };
    let differences: Vec<Value> = differences.iter().map(difference).collect();
    json!({ "evaluations": evaluations, "differences": differences }).to_string()
}
