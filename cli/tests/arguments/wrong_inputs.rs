//! What the command line answers to wrong input: `tests/golden/wrong_inputs.txt` has commands that people may type, each with the answer. An answer is one
//! line on standard error and the exit code 2, and no file is written, changed or lost.
//!
//! `GRADUS_WRITE=1 cargo test --test arguments` writes the answers anew; read them before they are committed.
#![cfg(unix)]

use std::fs;
use std::path::Path;
use std::process::Command;

use gradus_testing::command::{contents, error_of};

const STUDY: &str = "environments = [\"cartpole\"]\nseeds = 2\nsteps = 600\nevaluations = 1\n[[agents]]\nagent = \"ppo\"\n";

/// A sweep, whose last line is a setting of the space.
const SWEEP: &str =
    "environments = [\"cartpole\"]\nseeds = 2\nsteps = 600\n[[agents]]\nagent = \"ppo\"\n[agents.space]\n\"ppo.clip\" = [0.1, 0.2]\n";

/// Fills a folder with short runs, a comparison, and files that are wrong in one way each.
fn prepare(dir: &Path) {
    let with = |from: &str, to: &str| STUDY.replace(from, to);
    for (name, text) in [
        ("study.toml", STUDY.into()),
        ("no-environments.toml", with("[\"cartpole\"]", "[]")),
        ("text-environments.toml", with("[\"cartpole\"]", "\"cartpole\"")),
        ("double-environments.toml", with("[\"cartpole\"]", "[\"cartpole\", \"cartpole\"]")),
        ("dqn-pendulum.toml", with("cartpole", "pendulum").replace("\"ppo\"", "\"dqn\"")),
        ("no-seeds.toml", with("seeds = 2", "seeds = 0")),
        ("no-evaluations.toml", with("evaluations = 1", "evaluations = 0")),
        ("typo.toml", with("steps", "stps")),
        ("no-agents.toml", with("[[agents]]\nagent = \"ppo\"\n", "")),
        ("double-agents.toml", with("[[agents]]\n", "[[agents]]\nagent = \"ppo\"\n[[agents]]\n")),
        ("table-of-agents.toml", with("[[agents]]", "[agents]")),
        ("names-of-agents.toml", "agents = [\"ppo\"]\n".to_owned() + &with("[[agents]]\nagent = \"ppo\"\n", "")),
        ("agent-set.toml", STUDY.to_owned() + "set = { \"ppo.clip\" = 0.1 }\n"),
        ("agent-name.toml", with("agent = ", "name = ")),
        ("sweep.toml", SWEEP.into()),
        ("empty-grid.toml", SWEEP.replace("[0.1, 0.2]", "[]")),
        ("no-grid.toml", SWEEP.replace("\"ppo.clip\" = [0.1, 0.2]\n", "")),
        ("range-grid.toml", SWEEP.replace("[0.1, 0.2]", "{ uniform = [0.1, 0.2] }")),
        ("space-typo.toml", SWEEP.replace("clip", "clib")),
        ("space-wrong.toml", SWEEP.replace("0.2]", "-1.0]")),
        ("random.toml", "design = \"random\"\n".to_owned() + SWEEP),
        ("design.toml", "design = \"latin\"\n".to_owned() + SWEEP),
        ("samples.toml", "samples = 5\n".to_owned() + SWEEP),
        ("tune.toml", "trials = 4\n".to_owned() + SWEEP),
        (
            "two-tuned.toml",
            "trials = 4\n".to_owned() + SWEEP + "[[agents]]\nname = \"b\"\nagent = \"ppo\"\nspace = { \"ppo.clip\" = [0.1] }\n",
        ),
        ("test-seeds.toml", "test_seeds = [2, 5]\n".to_owned() + SWEEP),
        ("rungs.toml", "rungs = [{ steps = 0.5, seeds = 1 }]\n".to_owned() + SWEEP),
        ("falling-rungs.toml", "rungs = [{ steps = 1.0, seeds = 1 }, { steps = 0.5, seeds = 2 }]\n".to_owned() + SWEEP),
        ("no-score.toml", SWEEP.replace("[\"cartpole\"]", "[\"cartpole\", \"acrobot\"]")),
        ("many.toml", "steps = \"many\"\n".into()),
        ("wide.toml", "[ppo]\nclip = \"wide\"\n".into()),
        ("twice.toml", "[ppo]\nclip = 0.1\nclip = 0.2\n".into()),
        ("empty.toml", String::new()),
        ("empty.csv", String::new()),
        ("header.csv", "agent,env,seed,step,return\n".into()),
        ("problems.jsonl", "{\"prompt\": \"a\"}\n".into()),
        ("notes.txt", "hello\n".into()),
        ("bad-map.txt", "slip = 0.2\nS..\n..\n".into()),
    ] {
        fs::write(dir.join(name), text).unwrap();
    }
    fs::create_dir(dir.join("nothing")).unwrap();
    fs::write(dir.join("binary.toml"), b"\xff\xfe\x00").unwrap();
    for command in [
        "train ppo cartpole --steps 2k --out run --quiet",
        "train grpo target-sum --steps 100 --set transformer.layers=1 --out text --quiet",
        "train sac pendulum --steps 300 --out sac --quiet",
        "train dqn cartpole --preset zoo --steps 1500 --out dqn --quiet",
        "compare study.toml --out comparison",
    ] {
        let output = gradus(dir, &command.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert!(output.status.success(), "{command}: {output:?}");
    }
    let policy = fs::read(dir.join("run/policy.safetensors")).unwrap();
    fs::write(dir.join("short.safetensors"), &policy[..1000]).unwrap();
}

fn gradus(dir: &Path, arguments: &[String]) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_gradus")).current_dir(dir).args(arguments).output().unwrap()
}

/// Splits a command at spaces outside of double quotes.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![];
    let (mut word, mut is_quoted, mut has_word) = (String::new(), false, false);
    for letter in command.chars().chain([' ']) {
        match letter {
            '"' => (is_quoted, has_word) = (!is_quoted, true),
            ' ' if !is_quoted => {
                if has_word {
                    words.push(std::mem::take(&mut word));
                }
                has_word = false;
            }
            letter => {
                word.push(letter);
                has_word = true;
            }
        }
    }
    words
}

#[test]
fn every_wrong_input_has_its_answer() {
    let path = gradus_testing::golden::path("wrong_inputs.txt");
    let text = fs::read_to_string(&path).unwrap();
    let folder = gradus_testing::tempdir().unwrap();
    let dir = folder.path();
    prepare(dir);
    let before = contents(dir);
    let (mut written, mut problems, mut count) = (String::new(), vec![], 0);
    for entry in text.split("\n\n").map(str::trim).filter(|entry| !entry.is_empty()) {
        let (command, expected) = entry.split_once('\n').unwrap_or((entry, ""));
        let arguments = words(command.strip_prefix("$ gradus").expect("a command begins with `$ gradus`"));
        let output = gradus(dir, &arguments);
        if output.status.success() {
            problems.push(format!("{command} was accepted"));
            continue;
        }
        let error = error_of(&output);
        let was_accepted = problems.iter().any(|problem: &String| problem.ends_with("was accepted"));
        assert!(was_accepted || contents(dir) == before, "{command} changed a file");
        if error != expected {
            problems.push(format!("{command}\n  expected {expected}\n  got      {error}"));
        }
        written += &format!("{command}\n{error}\n\n");
        count += 1;
    }
    if std::env::var_os("GRADUS_WRITE").is_some() {
        fs::write(path, written.trim_end().to_owned() + "\n").unwrap();
        return;
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(count >= 150, "{count} commands");
}
