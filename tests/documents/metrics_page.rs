//! docs/metrics.md and docs/metrics-text.md name every column that a run can log. They and docs/troubleshooting.md name no other column.

use std::collections::BTreeSet;
use std::fs;

use gradus::agents::registry as agents;
use gradus::envs::registry;
use gradus::{Config, Run, Show};

/// The columns that only `gradus sft` or `gradus reward-model` writes. This test does not run these commands.
const OF_COMMANDS: [&str; 4] = ["step", "loss/sft", "pairs", "held_out"];

/// The prefixes by which a name on a page is recognised as a column.
const GROUPS: [&str; 15] = [
    "rollout/",
    "eval/",
    "train/",
    "time/",
    "reward/",
    "completions/",
    "scores/",
    "loss/",
    "kl/",
    "clip/",
    "value/",
    "sampling/",
    "reward_model/",
    "rewards/",
    "penalty/",
];

fn pages(names: &[&str]) -> String {
    names.iter().map(|name| fs::read_to_string(gradus_testing::root().join("docs").join(name)).unwrap()).collect()
}

/// Returns the texts in backticks on the pages, outside of code blocks.
fn quoted(pages: &str) -> BTreeSet<&str> {
    let prose = pages.split("```").step_by(2);
    prose.flat_map(|part| part.split('`').skip(1).step_by(2)).collect()
}

/// Trains for a few steps. Returns the columns of all logs, or `None` if the agent does not accept this environment.
fn columns(agent: &str, environment: &str, settings: &[&str]) -> Option<BTreeSet<String>> {
    let is_text = registry::find(environment).unwrap().text.is_some();
    let small = ["transformer.layers=1", "transformer.width=16", "transformer.heads=1", "transformer.feed_forward_width=16"];
    let small = if is_text { &small[..] } else { &[] };
    let config = Config::preset(agent, environment, None).unwrap();
    let config = small.iter().chain(settings).fold(config, |config, setting| config.with_setting(setting).unwrap());
    let config = Config { steps: 60, envs: 16, ..config };
    let folder = gradus_testing::tempdir().unwrap();
    let dir = folder.path().join("run");
    Run::create(config, &dir).ok()?.train(Show::Nothing).unwrap();
    let header = |file: &str| fs::read_to_string(dir.join(file)).unwrap().lines().next().unwrap_or_default().to_owned();
    let headers = ["metrics.csv", "episodes.csv", "timing.csv"].map(header);
    Some(headers.iter().flat_map(|header| header.split(',')).filter(|name| !name.is_empty()).map(String::from).collect())
}

/// Returns the columns of all agents on a control task and on a text task, and of runs with settings that add columns.
fn logged() -> BTreeSet<String> {
    let mut logged = BTreeSet::new();
    for agent in agents::all() {
        let of_agent: Vec<_> = ["cartpole", "pendulum", "frozen-lake", "mountain-car", "target-sum"]
            .iter()
            .filter_map(|world| columns(agent.name, world, &[]))
            .collect();
        assert!(
            !of_agent.is_empty(),
            "{} trains neither on cartpole, nor on pendulum, nor on frozen-lake, nor on mountain-car, nor on target-sum",
            agent.name
        );
        logged.extend(of_agent.into_iter().flatten());
    }
    let penalties = ["text.missing_eos_penalty=0.1", "text.length_penalty=0.1", "text.overlong_buffer=2"];
    let learned = ["reward_model.pairs=20", "reference.coefficient=0.1"];
    logged.extend(columns("ppo", "target-sum", &penalties).unwrap());
    logged.extend(columns("grpo", "preference", &learned).unwrap());
    logged.extend(columns("grpo", "cartpole", &["grpo.sampling_rounds=2"]).unwrap());
    logged.extend(columns("grpo", "target-sum", &["grpo.sampling_rounds=2", "grpo.mask_truncated_completions=true"]).unwrap());
    logged.extend(columns("grpo", "chain-sum", &["reward_model.pairs=20", "reward_model.supervision=process"]).unwrap());
    logged.insert("scores/rewards/errors".into()); // of functions in Python, see tests/texts/rewards.rs
    for world in registry::all() {
        if let Some(text) = &world.text {
            // the score of a cut completion is reported as completions/clipped_ratio
            let scores = text.score_names().into_iter().filter(|name| name != "finish/length");
            logged.extend(scores.flat_map(|name| [format!("scores/{name}"), name]));
        }
    }
    logged
}

#[test]
fn the_pages_name_every_column_and_no_other() {
    let (metrics, curves, logged) = (pages(&["metrics.md", "metrics-text.md"]), pages(&["troubleshooting.md"]), logged());
    let (explained, shown) = (quoted(&metrics), quoted(&curves));
    let missing: Vec<&String> = logged.iter().filter(|name| !explained.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "docs/metrics.md and docs/metrics-text.md do not name {missing:?}");

    let is_column = |name: &&str| GROUPS.iter().any(|group| name.starts_with(group)) && !name.contains(['N', '*', ' ', '.']);
    let known = |name: &str| logged.contains(name) || OF_COMMANDS.contains(&name);
    let stale: Vec<&&str> = explained.union(&shown).filter(|name| is_column(name) && !known(name)).collect();
    assert!(stale.is_empty(), "docs/metrics.md, metrics-text.md or troubleshooting.md names columns that no run logs: {stale:?}");
}
