//! `gradus compare` and `gradus plot RESULTS.csv`: results are reproducible, only changed runs are repeated, and bad input gives an error
//! of one line.
#![cfg(unix)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A comparison of two agents with two seeds each, and three evaluations after the initial one. It takes a fraction of a second.
const SMALL: &str = r#"
name = "small & <simple>"
environments = ["cartpole"]
seeds = 2
steps = "2k"
evaluations = 3
evaluation_episodes = 4
score = { cartpole = [0, 500] }

[[agents]]
name = "PPO, clip"
agent = "ppo"
preset = "cleanrl"

[[agents]]
name = "PPO, no clip"
agent = "ppo"
preset = "cleanrl"
settings = { "ppo.clip" = 0.9 }
"#;

fn command(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gradus"));
    command.current_dir(dir).args(arguments);
    command
}

fn gradus(dir: &Path, arguments: &[&str]) -> Output {
    command(dir, arguments).output().unwrap()
}

/// Returns the lines of standard output of a command that must succeed.
fn lines(dir: &Path, arguments: &[&str]) -> Vec<String> {
    let output = gradus(dir, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(String::from).collect()
}

/// Returns the one line of the error of a command that must fail with exit code 2.
fn error(dir: &Path, arguments: &[&str]) -> String {
    let output = gradus(dir, arguments);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert_eq!(text.lines().count(), 1, "expected one line: {text}");
    text.trim_end().strip_prefix("error: ").expect("an error begins with `error: `").to_string()
}

/// Returns the contents of the files that must be reproduced byte for byte, by file name.
fn repeating(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    let named = entries.map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), path));
    let clock = |name: &str| name == "timing.csv" || name == "report.html" || name.starts_with("wall_clock.");
    let mut files: BTreeMap<String, Vec<u8>> =
        named.filter(|(name, _)| !clock(name)).map(|(name, path)| (name, fs::read(path).unwrap())).collect();
    // the last line has the hash of timing.csv
    if let Some(sums) = files.get_mut("SHA256SUMS") {
        let end = sums[..sums.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap();
        assert!(sums.ends_with(b"  timing.csv\n"));
        sums.truncate(end);
    }
    files
}

fn folder(text: &str) -> gradus_testing::TempDir {
    let dir = gradus_testing::tempdir().unwrap();
    fs::write(dir.path().join("small.toml"), text).unwrap();
    dir
}

#[test]
fn a_comparison_writes_tables_figures_and_a_report() {
    let dir = folder(SMALL);
    let printed = lines(dir.path(), &["compare", "small.toml"]);
    let out = dir.path().join("runs/small");
    let files: Vec<&String> = printed.iter().filter(|line| line.starts_with("runs/")).collect();
    assert!(files.len() >= 15 && files.iter().all(|file| dir.path().join(file).is_file()), "{printed:?}");

    let results = fs::read_to_string(out.join("results.csv")).unwrap();
    let rows: Vec<&str> = results.lines().collect();
    assert_eq!(rows[0], "agent,env,seed,step,return,score,std,min,max,length");
    assert_eq!(rows.len(), 1 + 2 * 2 * 4, "expected a header, and a row for each agent, seed and evaluation");
    for (row, start) in
        [(1, "\"PPO, clip\",cartpole,1,0,"), (4, "\"PPO, clip\",cartpole,1,2048,"), (16, "\"PPO, no clip\",cartpole,2,2048,")]
    {
        assert!(rows[row].starts_with(start), "{}", rows[row]);
    }
    let timing = fs::read_to_string(out.join("timing.csv")).unwrap();
    assert_eq!((timing.lines().next(), timing.lines().count()), (Some("agent,env,seed,step,seconds"), 17));

    let report = fs::read_to_string(out.join("report.html")).unwrap();
    let figures = "expected curves over steps and seconds, final scores, profile, improvement, episodes";
    assert_eq!(report.matches("<svg ").count(), 6, "{figures}");
    for part in
        ["<h1>small &amp; &lt;simple&gt;</h1>", "gradus compare small.toml", "ppo.clip", "2 agents x 1 environment x 2 seeds = 4 runs"]
    {
        assert!(report.contains(part), "{part}");
    }
    for part in ["<script", "src=", "href=", "@import", "url("] {
        assert!(!report.contains(part), "the report refers to other files: {part}");
    }
    // XML namespaces are not addresses
    assert_eq!(report.matches("http").count(), report.matches("xmlns=\"http://www.w3.org/2000/svg\"").count());
    let summary = fs::read_to_string(out.join("summary.md")).unwrap();
    assert!(summary.contains("| PPO, clip | 2 |") && summary.contains("| PPO, clip | PPO, no clip |"), "{summary}");
    // one table of agents by environments in LaTeX
    let latex = fs::read_to_string(out.join("summary.tex")).unwrap();
    for part in ["\\begin{table}", "\\label{tab:small-simple}", "\\toprule", "\\midrule", "\\bottomrule", "\\end{tabular}"] {
        assert_eq!(latex.matches(part).count(), 1, "{part}");
    }
    assert!(latex.contains("\\begin{tabular}{lr}") && latex.contains("    agent & CartPole-v1 \\\\\n"), "{latex}");
    assert!(latex.contains("    PPO, clip & \\textbf{") && latex.contains("    PPO, no clip & \\textbf{"), "{latex}");
    assert_eq!(latex.matches('{').count(), latex.matches('}').count());
}

/// The policy in the folder `policies` gives the return that the table has for the last evaluation of its run.
#[test]
fn the_final_policies_are_kept() {
    let dir = folder(SMALL);
    lines(dir.path(), &["compare", "small.toml"]);
    let out = dir.path().join("runs/small");
    let names = || {
        let entries = fs::read_dir(out.join("policies")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.ends_with(".safetensors")).collect::<std::collections::BTreeSet<String>>()
    };
    let name = |agent: &str, seed: u64| format!("{agent}-cartpole-{seed}.safetensors");
    let all = [("ppo-clip", 1), ("ppo-clip", 2), ("ppo-no-clip", 1), ("ppo-no-clip", 2)].map(|(agent, seed)| name(agent, seed));
    assert_eq!(names(), all.clone().into());
    let results = fs::read_to_string(out.join("results.csv")).unwrap();
    for (file, row) in all.iter().zip([4, 8, 12, 16]) {
        let policy = gradus::Policy::load(out.join("policies").join(file)).unwrap();
        let mean = policy.evaluate(4, gradus::Mode::Greedy).unwrap().mean.to_string();
        let row = results.lines().nth(row).unwrap();
        let cells: Vec<&str> = row.split(',').collect();
        assert_eq!(cells[5], mean, "{file}: {row}");
    }
    let played = lines(dir.path(), &["play", "runs/small/policies/ppo-clip-cartpole-1.safetensors", "--gif", "a.gif"]);
    assert!(played[0].starts_with("ppo on CartPole-v1: return "), "{played:?}");

    // a kept run without a policy is told, and the policies of an agent that the study no longer has are removed
    let of = |agent: &str| out.join("policies").join(name(agent, 1));
    let bytes = fs::read(of("ppo-clip")).unwrap();
    let stored = fs::read_dir(out.join("runs")).unwrap().map(|entry| entry.unwrap().path());
    let stored = stored.filter(|path| path.extension().is_some_and(|ending| ending == "safetensors"));
    stored.filter(|path| fs::read(path).unwrap() == bytes).for_each(|path| fs::remove_file(path).unwrap());
    fs::remove_file(of("ppo-clip")).unwrap();
    fs::write(dir.path().join("small.toml"), &SMALL[..SMALL.rfind("[[agents]]").unwrap()]).unwrap();
    let printed = lines(dir.path(), &["compare", "small.toml"]);
    assert!(printed.iter().any(|line| line == "1 of 2 kept runs have no policy, because an older version made them"), "{printed:?}");
    assert_eq!(names(), [name("ppo-clip", 2)].into());
}

#[test]
fn figures_are_reproduced_from_the_table() {
    let dir = folder(SMALL);
    lines(dir.path(), &["compare", "small.toml", "--out", "out", "--quiet"]);
    lines(dir.path(), &["plot", "out/results.csv", "--out", "again"]);
    let pictures = |name: &str| -> BTreeMap<String, Vec<u8>> {
        let entries = fs::read_dir(dir.path().join(name)).unwrap().map(|entry| entry.unwrap().path());
        let pictures = entries.filter(|path| path.extension().is_some_and(|ending| ending == "svg" || ending == "png"));
        // the episodes are from the policies, not from the table
        let pictures = pictures.filter(|path| path.file_stem().is_none_or(|name| name != "episodes"));
        pictures.map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(path).unwrap())).collect()
    };
    assert_eq!(pictures("out").len(), 10);
    assert!(pictures("out") == pictures("again"), "expected the same bytes");
    // so are those of another statistic, which the file beside the table names
    let interquartile = pictures("out");
    fs::write(dir.path().join("small.toml"), format!("statistic = \"mean\"\n{SMALL}")).unwrap();
    lines(dir.path(), &["compare", "small.toml", "--out", "out", "--quiet"]);
    lines(dir.path(), &["plot", "out", "--out", "again"]);
    assert!(pictures("out") != interquartile && pictures("out") == pictures("again"), "expected those of the mean");
    fs::write(dir.path().join("small.toml"), SMALL).unwrap();
    lines(dir.path(), &["compare", "small.toml", "--out", "out", "--quiet"]);
    // without timing.csv there is no figure over seconds
    fs::create_dir(dir.path().join("alone")).unwrap();
    fs::copy(dir.path().join("out/results.csv"), dir.path().join("alone/results.csv")).unwrap();
    lines(dir.path(), &["plot", "alone/results.csv", "--mean"]);
    assert!(pictures("alone").len() == 8 && !pictures("alone").contains_key("wall_clock.svg"));
    assert!(pictures("alone")["sample_efficiency.svg"] != pictures("out")["sample_efficiency.svg"], "expected another curve with --mean");
}

#[test]
fn results_do_not_depend_on_the_number_of_jobs() {
    let dir = folder(SMALL);
    for jobs in ["1", "2", "3"] {
        lines(dir.path(), &["compare", "small.toml", "--out", &format!("out{jobs}"), "--jobs", jobs]);
    }
    let one = repeating(&dir.path().join("out1"));
    assert!(one.contains_key("results.csv") && one.contains_key("performance_profile.png"));
    assert!(one == repeating(&dir.path().join("out2")) && one == repeating(&dir.path().join("out3")));
}

/// If the files at the path `init` have new contents, the runs that use them are repeated, although the setting is the same. If the code
/// has changed, all runs are repeated.
#[test]
fn runs_are_repeated_if_the_contents_of_init_change() {
    let dir = folder(&SMALL.replace("settings = { ", "settings = { init = \"start\", "));
    let start = |seed: &str| {
        let _ = fs::remove_dir_all(dir.path().join("start"));
        lines(
            dir.path(),
            &["train", "ppo", "cartpole", "--preset", "cleanrl", "--steps", "512", "--seed", seed, "--out", "start", "--quiet"],
        );
    };
    let compare = || lines(dir.path(), &["compare", "small.toml", "--out", "out", "--jobs", "1"]);
    let results = || fs::read(dir.path().join("out/results.csv")).unwrap();
    start("7");
    let first = compare();
    assert!(first.iter().any(|line| line == "4 runs: 0 kept (same settings, code and files), 4 made"), "{first:?}");
    let before = results();
    start("7");
    let again = compare();
    assert!(again.iter().any(|line| line == "4 runs: 4 kept (same settings, code and files), 0 made"), "{again:?}");
    start("8");
    let other = compare();
    let said = "4 runs: 2 kept (same settings, code and files), 2 made, 2 of them again because init has changed";
    assert!(other.iter().any(|line| line == said), "{other:?}");
    assert!(other.iter().any(|line| line.contains("PPO, no clip on cartpole, seed 1: ") && line.ends_with("made again: init has changed")));
    assert!(before != results());
    // runs of another version of the code are repeated, too
    for entry in fs::read_dir(dir.path().join("out/runs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "csv") {
            let text = fs::read_to_string(&path).unwrap();
            let (_, text) = text.split_once('\n').unwrap();
            let (line, _) = text.split_once('\n').unwrap();
            assert!(line.starts_with("# code: gradus ") && line.contains(", sources "), "{line}");
            let text = text.replacen(line, "# code: gradus 0.1.0, sources 0000000000000000", 1);
            let hash: String = hmac_sha256::Hash::hash(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
            fs::write(&path, format!("# sha256 {hash}\n{text}")).unwrap();
        }
    }
    let said = "4 runs: 0 kept (same settings, code and files), 4 made, 4 of them again because code has changed";
    assert!(compare().iter().any(|line| line == said));
}

#[test]
fn runs_and_other_comparisons_are_not_overwritten() {
    let dir = folder(SMALL);
    let everything = |name: &str| -> BTreeMap<String, Vec<u8>> {
        let entries = fs::read_dir(dir.path().join(name)).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
        entries.map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(path).unwrap())).collect()
    };
    lines(dir.path(), &["train", "ppo", "cartpole", "--preset", "cleanrl", "--steps", "512", "--out", "run", "--quiet"]);
    let before = everything("run");
    let message = error(dir.path(), &["compare", "small.toml", "--out", "run"]);
    assert_eq!(message, "run: expected a new folder or the folder of \"small & <simple>\", got a run folder (with config.toml)");
    assert!(before == everything("run") && !dir.path().join("run/runs").exists());

    lines(dir.path(), &["compare", "small.toml", "--out", "out", "--quiet"]);
    let before = everything("out");
    fs::write(dir.path().join("other.toml"), SMALL.replace("small & <simple>", "other")).unwrap();
    let message = error(dir.path(), &["compare", "other.toml", "--out", "out"]);
    assert_eq!(message, "out: expected a new folder or the folder of \"other\", got the folder of \"small & <simple>\"");
    assert!(before == everything("out"));

    // if the same comparison is changed so that it draws fewer figures, outdated figures are removed
    assert!(before.contains_key("probability_of_improvement.svg"));
    let (alone, _) = SMALL.rsplit_once("[[agents]]").unwrap();
    fs::write(dir.path().join("small.toml"), alone).unwrap();
    lines(dir.path(), &["compare", "small.toml", "--out", "out", "--quiet"]);
    let after = everything("out");
    assert!(!after.contains_key("probability_of_improvement.svg") && after.contains_key("sample_efficiency.svg"));
    assert_eq!(String::from_utf8(after["results.csv"].clone()).unwrap().lines().count(), 9);
}

#[test]
fn changing_one_agent_reruns_only_that_one() {
    let dir = folder(SMALL);
    let kept = |printed: &[String], agent: &str| {
        let of = |line: &&String| line.contains(&format!("{agent} on"));
        printed.iter().filter(of).map(|line| line.contains("kept from before")).collect::<Vec<_>>()
    };
    let compare = |text: &str| {
        fs::write(dir.path().join("small.toml"), text).unwrap();
        lines(dir.path(), &["compare", "small.toml", "--out", "out", "--jobs", "1"])
    };
    let first = compare(SMALL);
    assert_eq!((kept(&first, "PPO, clip"), kept(&first, "PPO, no clip")), (vec![false; 2], vec![false; 2]));
    let before = repeating(&dir.path().join("out"));
    let again = compare(SMALL);
    assert_eq!((kept(&again, "PPO, clip"), kept(&again, "PPO, no clip")), (vec![true; 2], vec![true; 2]));
    assert!(before == repeating(&dir.path().join("out")));
    let changed = compare(&SMALL.replace("\"ppo.clip\" = 0.9", "\"ppo.clip\" = 0.8"));
    assert_eq!((kept(&changed, "PPO, clip"), kept(&changed, "PPO, no clip")), (vec![true; 2], vec![false; 2]));
    // a new name repeats no run, a third seed adds one run per agent, and undoing both changes repeats no run
    let named = compare(&SMALL.replace("PPO, no clip", "wild").replace("seeds = 2", "seeds = 3"));
    assert_eq!((kept(&named, "PPO, clip"), kept(&named, "wild")), (vec![true, true, false], vec![true, true, false]));
    compare(SMALL);
    assert!(before == repeating(&dir.path().join("out")));
    // a change of the number of evaluations repeats every run
    let fewer = compare(&SMALL.replace("evaluations = 3", "evaluations = 2"));
    assert!(fewer.iter().all(|line| !line.contains("kept from before")), "{fewer:?}");
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_killed_comparison_resumes_with_the_same_bytes() {
    let text = SMALL.replace("seeds = 2", "seeds = 4").replace("\"2k\"", "\"12k\"");
    let dir = folder(&text);
    lines(dir.path(), &["compare", "small.toml", "--out", "whole"]);
    let whole = repeating(&dir.path().join("whole"));
    let runs = dir.path().join("out/runs");
    let finished = || {
        let entries = fs::read_dir(&runs).into_iter().flatten().flatten();
        entries.filter(|entry| entry.path().extension().is_some_and(|ending| ending == "csv")).count()
    };
    // kill the comparison three times before it ends
    let mut kept = 0;
    for more in [1, 1, 2] {
        let mut child = command(dir.path(), &["compare", "small.toml", "--out", "out", "--jobs", "2"]);
        let mut child = Killed(child.stdout(Stdio::null()).spawn().unwrap());
        let began = Instant::now();
        while finished() < kept + more && child.0.try_wait().unwrap().is_none() && began.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(2));
        }
        drop(child); // SIGKILL
        kept = finished();
    }
    assert!(!dir.path().join("out/results.csv").exists() && kept < 8, "the kills came too late: {kept} of 8 runs");
    let printed = lines(dir.path(), &["compare", "small.toml", "--out", "out"]);
    assert_eq!(printed.iter().filter(|line| line.contains("kept from before")).count(), kept);
    assert!(whole == repeating(&dir.path().join("out")), "expected the same bytes as without kills");
    let left = fs::read_dir(&runs).unwrap().filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().contains("tmp"));
    assert_eq!(left.count(), 0, "expected no temporary files");
}

#[test]
fn a_failed_run_does_not_discard_the_others() {
    let dir = folder(&SMALL.replace("\"ppo.clip\" = 0.9", "\"optimiser.learning_rate\" = 1e30"));
    let message = error(dir.path(), &["compare", "small.toml", "--out", "out", "--jobs", "1"]);
    let expected = "out/runs: 2 of 4 runs failed, the others are kept; the first failure: PPO, no clip on cartpole, seed 1: ";
    assert!(message.starts_with(expected), "{message}");
    assert!(message.ends_with("; the tables and figures leave out PPO, no clip"), "{message}");
    let results = fs::read_to_string(dir.path().join("out/results.csv")).unwrap();
    assert!(results.contains("\"PPO, clip\",") && !results.contains("no clip"), "{results}");
    let (summary, report) = ("out/summary.md", "out/report.html");
    let [summary, report] = [summary, report].map(|name| fs::read_to_string(dir.path().join(name)).unwrap());
    assert!(summary.ends_with("\nLeft out, because runs failed: PPO, no clip.\n"), "{summary}");
    assert!(report.contains("<th>left out, because runs failed</th><td>PPO, no clip</td>"));
    fs::write(dir.path().join("small.toml"), SMALL).unwrap();
    let printed = lines(dir.path(), &["compare", "small.toml", "--out", "out"]);
    assert_eq!(printed.iter().filter(|line| line.contains("kept from before")).count(), 2);
}

#[test]
fn bad_files_are_refused_before_anything_is_written() {
    let dir = folder(SMALL);
    let cases = [
        ("seeds = 2", "seeds = 0", "small.toml: seeds: expected 1 to 100000, got 0"),
        ("evaluations = 3", "evaluations = 0", "small.toml: evaluations: expected 1 to 10000, got 0"),
        ("seeds = 2", "seeds = 2\nsteps_ = 3", "small.toml: line 5: unknown key `steps_`; did you mean `steps`?"),
        ("\"cartpole\"]", "\"cartpole\", \"lunar\"]", "small.toml: environments: unknown environment `lunar`; "),
        ("\"PPO, no clip\"", "\"PPO, clip\"", "small.toml: agents: expected names that differ, got \"PPO, clip\" twice"),
        ("agent = \"ppo\"", "agent = \"alphazero\"", "small.toml: agent \"PPO, clip\" on cartpole: unknown agent `alphazero`; "),
        (
            "\"ppo.clip\"",
            "\"ppo.clib\"",
            "small.toml: agent \"PPO, no clip\" on cartpole: unknown setting `ppo.clib`; did you mean `ppo.clip`?",
        ),
        ("\"ppo.clip\" = 0.9", "\"ppo.clip\" = 0", "small.toml: agent \"PPO, no clip\" on cartpole: ppo.clip: expected "),
        ("\"cleanrl\"", "\"clean\"", "small.toml: agent \"PPO, clip\" on cartpole: unknown preset `clean`; did you mean `cleanrl`?"),
    ];
    for (from, to, expected) in cases {
        assert!(SMALL.contains(from));
        fs::write(dir.path().join("small.toml"), SMALL.replacen(from, to, 1)).unwrap();
        let message = error(dir.path(), &["compare", "small.toml", "--out", "out"]);
        assert!(message.starts_with(expected), "expected {expected}\ngot      {message}");
    }
    assert!(error(dir.path(), &["compare", "none.toml"]).starts_with("cannot read none.toml: "));
    assert_eq!(error(dir.path(), &["compare", "small.toml", "--jobs", "0"]), "--jobs: expected a whole number from 1 up, got 0");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "expected no new files");
}

/// The second agent has half of the steps of the first and two of its four evaluations.
#[test]
fn agents_with_different_numbers_of_steps_are_compared_after_the_fewest() {
    let budgets = SMALL.replace("steps = \"2k\"\nevaluations = 3", "steps = 4096\nevaluations = 4");
    let dir = folder(&budgets.replace("name = \"PPO, no clip\"", "name = \"PPO, no clip\"\nsteps = 2048"));
    lines(dir.path(), &["compare", "small.toml"]);
    let out = dir.path().join("runs/small");
    let results = fs::read_to_string(out.join("results.csv")).unwrap();
    let returns = |agent: &str, step: u64| -> Vec<f64> {
        let rows = results.lines().filter_map(|row| row.strip_prefix(agent)?.strip_prefix(",cartpole,"));
        let cells = rows.map(|row| row.split(',').collect::<Vec<_>>());
        cells.filter(|cells| cells[1] == step.to_string()).map(|cells| cells[2].parse().unwrap()).collect()
    };
    assert_eq!(results.lines().count(), 1 + 2 * 5 + 2 * 3);
    assert!(returns("\"PPO, no clip\"", 3072).is_empty());

    // with two runs, the interquartile mean is the mean
    let summary = fs::read_to_string(out.join("summary.csv")).unwrap();
    let value = |agent: &str, statistic: &str| -> f64 {
        let row = summary.lines().find(|row| row.starts_with(&format!("cartpole,{agent},2,{statistic},"))).unwrap();
        row.rsplit(',').nth(3).unwrap().parse().unwrap()
    };
    for (agent, last) in [("\"PPO, clip\"", 4096), ("\"PPO, no clip\"", 2048)] {
        for (statistic, step) in [("iqm", 2048), ("own_steps_iqm", last)] {
            let runs = returns(agent, step);
            assert_eq!(value(agent, statistic), (runs[0] + runs[1]) / 2.0, "{agent}: {statistic}");
        }
    }
    let page = fs::read_to_string(out.join("summary.md")).unwrap();
    assert!(page.contains("CartPole-v1: return after 2048 environment steps"), "{page}");
    assert!(page.contains("return after equal steps of a run of X is higher"), "{page}");
    assert!(fs::read_to_string(out.join("report.html")).unwrap().contains("2 to 4 greedy evaluations"));
    lines(dir.path(), &["plot", "runs/small/results.csv", "--out", "figures"]);
    let drawn = |folder: &Path| fs::read(folder.join("final_scores.svg")).unwrap();
    assert_eq!(drawn(&dir.path().join("figures")), drawn(&out));
}

#[test]
fn errors_in_tables_name_the_place() {
    let dir = gradus_testing::tempdir().unwrap();
    let good = "agent,env,seed,step,return\nA,cartpole,1,0,9\nA,cartpole,1,50,90\nA,cartpole,2,0,9\nA,cartpole,2,50,80\n";
    let message = |text: &str| {
        fs::write(dir.path().join("results.csv"), text).unwrap();
        error(dir.path(), &["plot", "results.csv", "--out", "out"])
    };
    for (text, expected) in [
        ("".to_string(), "results.csv: expected a table, got an empty file"),
        (
            good.replace("return", "reward"),
            "results.csv: line 1: expected the columns agent, env, seed, step, return, got a table without return",
        ),
        (good.replace("90", "NaN"), "results.csv: line 3: return: expected a finite number, got NaN"),
        (good.replace("90", "good"), "results.csv: line 3: return: expected a finite number, got good"),
        (
            good.replace("A,cartpole,2,50,80\n", ""),
            "results.csv: agent \"A\" on cartpole, seed 2: expected 2 evaluations, as for agent \"A\" on cartpole, seed 1, got 1",
        ),
    ] {
        assert_eq!(message(&text), expected);
    }
    assert!(error(dir.path(), &["plot", "none.csv"]).starts_with("cannot read none.csv: "));
    fs::write(dir.path().join("results.csv"), good).unwrap();
    fs::write(dir.path().join("timing.csv"), "agent,env,seed,step,seconds\nA,cartpole,1,0,0\n").unwrap();
    let expected = "timing.csv: agent \"A\" on cartpole, seed 1: expected 2 rows, as in the results, got 1";
    assert_eq!(error(dir.path(), &["plot", "results.csv"]), expected);
    let expected = "plot: expected one table of results, or only run folders, got results.csv and others";
    assert_eq!(error(dir.path(), &["plot", "results.csv", "run"]), expected);
    for option in [&["--label", "A"][..], &["--window", "3"], &["--x", "time"], &["--each"]] {
        let expected =
            format!("{}: expected run folders, because the comparison's file determines its figures, got results.csv", option[0]);
        assert_eq!(error(dir.path(), &[&["plot", "results.csv"], option].concat()), expected);
    }
    let expected = "--metric: expected run folders, because a table of results has no metrics, got results.csv";
    assert_eq!(error(dir.path(), &["plot", "results.csv", "--metric", "train/loss"]), expected);
    assert!(!dir.path().join("out").exists(), "expected no figures");
}

/// Two processes share the runs of a comparison: each run is made once, and both write the same outputs, which are those of a single process.
#[test]
fn two_processes_share_a_comparison() {
    let dir = folder(&SMALL.replace("seeds = 2", "seeds = 4").replace("\"2k\"", "\"40k\""));
    let start = |out: &str| {
        let mut child = command(dir.path(), &["compare", "small.toml", "--out", out, "--jobs", "1"]);
        child.stdout(std::process::Stdio::piped()).spawn().unwrap()
    };
    let both = [start("out"), start("out")].map(|child| child.wait_with_output().unwrap());
    let said = both.map(|output| {
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    });
    // runs that the other process has made are kept
    let made = said.iter().map(|text| text.lines().filter(|line| line.contains(": return ") && line.ends_with(" s")).count());
    assert_eq!(made.sum::<usize>(), 8, "{said:?}");
    assert!(start("alone").wait().unwrap().success());
    for name in ["results.csv", "summary.csv", "summary.md", "SHA256SUMS"] {
        let read = |out: &str| fs::read_to_string(dir.path().join(out).join(name)).unwrap();
        assert!(name == "SHA256SUMS" || read("out") == read("alone"), "{name}");
    }
    let left: Vec<_> = fs::read_dir(dir.path().join("out/runs")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().ends_with(".lock")), "{left:?}");
    let verified = command(dir.path(), &["verify", "out"]).output().unwrap();
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
}

/// A single run has no interval and no test; two or three decide nothing.
#[test]
fn few_runs_decide_nothing() {
    let dir = folder(&SMALL.replace("seeds = 2", "seeds = 1"));
    lines(dir.path(), &["compare", "small.toml", "--out", "out"]);
    let read = |name: &str| fs::read_to_string(dir.path().join("out").join(name)).unwrap();
    let summary = read("summary.md");
    let row = summary.lines().find(|line| line.starts_with("| PPO, clip | 1 |")).unwrap();
    assert!(!row.contains('['), "expected no interval: {row}");
    assert!(summary.contains("| undecided: one run |") && summary.contains("An agent with one run has no interval"), "{summary}");
    for row in read("summary.csv").lines().skip(1).filter(|row| row.contains(",probability_of_improvement,")) {
        assert!(row.ends_with(",,,undecided"), "{row}");
    }
    assert!(!read("summary.tex").contains('['));
    let dir = folder(&SMALL.replace("seeds = 2", "seeds = 3"));
    lines(dir.path(), &["compare", "small.toml", "--out", "out"]);
    let summary = fs::read_to_string(dir.path().join("out/summary.md")).unwrap();
    assert!(summary.contains("With 3 runs an interval is little more than their range, and no p-value can be below 0.1"), "{summary}");
    assert!(!summary.contains("| higher |") && !summary.contains("| lower |"), "{summary}");
}

/// PPO plays two environments and DQN one of them: each environment compares its own agents, and nothing over both environments has DQN.
#[test]
fn agents_can_be_limited_to_environments() {
    let file = "environments = [\"cartpole\", \"acrobot\"]\nx = \"log\"\nfinding = \"Two of three agents play both\"\nsteps = { cartpole = 2000, acrobot = 1024 }\nevaluations = 2\nevaluation_episodes = 2\nseeds = 2\n\
                score = { cartpole = [0, 500], acrobot = [-500, 0] }\n[[agents]]\nname = \"DQN\"\nagent = \"dqn\"\nsteps = 1000\nonly = [\"cartpole\"]\n\
                settings = { learning_starts = 100 }\n[[agents]]\nname = \"PPO\"\nagent = \"ppo\"\n[[agents]]\nname = \"A2C\"\nagent = \"a2c\"\n";
    let dir = folder(file);
    assert!(lines(dir.path(), &["compare", "small.toml", "--out", "out"]).iter().any(|line| line.starts_with("10 runs: ")));
    let read = |name: &str| fs::read_to_string(dir.path().join("out").join(name)).unwrap();
    let summary = read("summary.csv");
    let pairs = |environment: &str| -> Vec<String> {
        let rows = summary.lines().filter(|row| row.starts_with(environment) && row.contains(",probability_of_improvement,"));
        rows.map(|row| row.split(',').nth(1).unwrap().to_owned()).collect()
    };
    assert_eq!(pairs("cartpole"), ["DQN > PPO", "DQN > A2C", "PPO > A2C"]);
    assert_eq!((pairs("acrobot"), pairs("all")), (vec!["PPO > A2C".to_string()], vec!["PPO > A2C".to_string()]));
    assert!(!summary.lines().any(|row| row.starts_with("acrobot,DQN") || row.starts_with("all,DQN")));
    let page = read("summary.md");
    assert_eq!(page.matches("Without DQN, not run in every environment.").count(), 2, "{page}");
    let row = |agent: &str| read("summary.tex").lines().find(|line| line.trim_start().starts_with(agent)).unwrap().to_owned();
    assert!(row("DQN").ends_with(" & -- & -- \\\\") && !row("PPO").contains("--"), "{}", row("DQN"));
    assert!(read("report.html").contains("3 agents x 2 environments x 2 seeds, not every agent in every environment: 10 runs;"));
    let curves = read("sample_efficiency.svg");
    assert!(curves.contains("DQN") && curves.contains("Two of three agents play both"));
    lines(dir.path(), &["verify", "out"]);
    lines(dir.path(), &["plot", "out/results.csv", "--out", "figures"]);
    assert_eq!(
        fs::read_to_string(dir.path().join("figures/sample_efficiency.svg")).unwrap(),
        curves,
        "the axis and the title are those of the file"
    );
    let with = |only: &str| {
        fs::write(dir.path().join("bad.toml"), file.replace("only = [\"cartpole\"]", only)).unwrap();
        error(dir.path(), &["compare", "bad.toml"])
    };
    assert_eq!(with("only = []"), "bad.toml: agent \"DQN\": only: expected at least one environment, got none");
    assert_eq!(
        with("only = [\"taxi\"]"),
        "bad.toml: agent \"DQN\": only: expected environments of this comparison (cartpole, acrobot), got taxi"
    );
    let over = "only = [\"cartpole\"]\nenvironments.acrobot = { settings = { envs = 2 } }";
    assert_eq!(with(over), "bad.toml: agent \"DQN\": environments: expected environments of `only`, got acrobot");
    let nowhere = file
        .replace("agent = \"ppo\"", "agent = \"ppo\"\nonly = [\"cartpole\"]")
        .replace("agent = \"a2c\"", "agent = \"a2c\"\nonly = [\"cartpole\"]");
    fs::write(dir.path().join("bad.toml"), nowhere).unwrap();
    assert_eq!(error(dir.path(), &["compare", "bad.toml"]), "bad.toml: agents: expected an agent on acrobot, got none");
}

/// Settings without a section mean what they mean after --set; a run without an update, and rollouts that are longer than the steps, are named.
#[test]
fn a_comparison_does_not_hide_what_its_runs_did() {
    let dir = folder(&SMALL.replace("\"ppo.clip\" = 0.9", "clip = 0.9, learning_rate = 0.001"));
    lines(dir.path(), &["compare", "small.toml", "--out", "out"]);
    let report = fs::read_to_string(dir.path().join("out/report.html")).unwrap();
    assert!(report.contains("clip = 0.9\n") && report.contains("learning_rate = 0.001\n"));
    let file = "environments = [\"pendulum\"]\nsteps = 3000\nseeds = 1\n[[agents]]\nagent = \"td3\"\n";
    fs::write(dir.path().join("none.toml"), file).unwrap();
    let expected = "none.toml: agent \"td3\" on pendulum: td3.learning_starts: expected below the 3000 steps of a run, or there is no update, got 10000";
    assert_eq!(error(dir.path(), &["compare", "none.toml"]), expected);
    let file = "environments = [\"cartpole\"]\nsteps = 600\nevaluations = 6\nevaluation_episodes = 2\nseeds = 1\n[[agents]]\nagent = \"ppo\"\nsettings = { rollout_steps = 128 }\n";
    fs::write(dir.path().join("long.toml"), file).unwrap();
    lines(dir.path(), &["compare", "long.toml", "--out", "long"]);
    let summary = fs::read_to_string(dir.path().join("long/summary.md")).unwrap();
    assert!(summary.contains("ppo used 1024 steps of 600, because a rollout is long."), "{summary}");
    assert!(summary.contains("5 of 6 evaluations of ppo repeat the one before"), "{summary}");
}
