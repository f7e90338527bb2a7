//! Tests runs with a reward model: the settings that are refused, what `gradus inspect` shows, resuming, and the rankings in a folder of
//! `gradus reward-model`.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use gradus::agents::reward_model::{Preferences, Ranking, train};
use gradus::agents::{OptimiserConfig, UpdateContext};
use gradus::envs::random::{Purpose, Stream, episode_seed};
use gradus::nets::Schedule;
use gradus::nets::tensors::{self, Data, Tensor, Tensors};
use gradus::{Config, Trainer};
use gradus_testing::command::{contents, error_of};

fn run(dir: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gradus")).current_dir(dir).args(arguments).output().unwrap()
}

fn gradus(dir: &Path, arguments: &[&str]) -> String {
    let output = run(dir, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

const PROCESS: &str = "grpo.supervision: expected outcome with a reward model that scores whole texts \
     (reward_model.supervision = outcome), got process";

/// A model that is to be trained once, on completions that all have the same reward, would never be trained.
#[test]
fn a_reward_model_without_examples_ends_the_run() {
    let dir = gradus_testing::tempdir().unwrap();
    let run = run(dir.path(), &["train", "grpo", "program-3", "--steps", "200", "--set", "reward_model.pairs=5", "--out", "run"]);
    let expected = "the 5 problems of reward_model.pairs, of program-3: expected different rewards for at least one, got 0 rankings";
    assert_eq!(error_of(&run), expected);
}

/// With a reward model that scores whole texts, process supervision would be the same as outcome supervision.
#[test]
fn process_supervision_with_a_model_of_whole_texts_is_refused() {
    let dir = gradus_testing::tempdir().unwrap();
    let process = ["train", "grpo", "chain-sum", "--set", "grpo.supervision=process", "--out", "run"];
    for learned in ["reward_model.pairs=20", "reward_model.folder=nowhere"] {
        assert_eq!(error_of(&run(dir.path(), &[&process[..], &["--set", learned]].concat())), PROCESS);
        let turned = ["train", "grpo", "chain-sum", "--set", learned, "--set", "grpo.supervision=process"];
        assert_eq!(error_of(&run(dir.path(), &turned)), PROCESS);
    }
    fs::write(dir.path().join("settings.toml"), "grpo.supervision = \"process\"\nreward_model.pairs = 20\n").unwrap();
    fs::write(
        dir.path().join("study.toml"),
        "environments = [\"chain-sum\"]\nsteps = 100\nseeds = 1\n[[agents]]\nagent = \"grpo\"\n\
         [agents.settings]\n\"grpo.supervision\" = \"process\"\n\"reward_model.pairs\" = 20\n",
    )
    .unwrap();
    let before = contents(dir.path());
    assert_eq!(error_of(&run(dir.path(), &["train", "grpo", "chain-sum", "--config", "settings.toml"])), PROCESS);
    let error = error_of(&run(dir.path(), &["compare", "study.toml", "--out", "study"]));
    assert!(error.ends_with(PROCESS), "{error}");
    assert!(contents(dir.path()) == before, "expected no new files");
}

/// The rewards of a reward model have no steps, so process supervision is not shown for them.
#[test]
fn inspect_shows_process_supervision_only_for_the_environments_own_steps() {
    let dir = gradus_testing::tempdir().unwrap();
    let train = ["train", "grpo", "chain-sum", "--steps", "100", "--set", "envs=16", "--quiet"];
    gradus(dir.path(), &[&train[..], &["--out", "own"]].concat());
    gradus(
        dir.path(),
        &[&train[..], &["--set", "reward_model.pairs=20", "--set", "reward_model.retrain_every=1", "--out", "learned"]].concat(),
    );
    let shown = |run: &str| gradus(dir.path(), &["inspect", run, "--groups", "4", "--group-size", "3"]);
    let (own, learned) = (shown("own"), shown("learned"));
    assert!(own.contains("grpo, process") && own.contains("rloo"), "{own}");
    assert!(!learned.contains("process") && learned.contains("rloo"), "{learned}");
}

/// A policy that gives some right steps.
const START: [&str; 7] = ["sft", "chain-sum", "--steps", "30", "--quiet", "--out", "start"];

const STEPS: [&str; 8] = ["reward-model", "chain-sum", "--process", "--pairs", "60", "--held-out", "20", "--quiet"];

/// `gradus reward-model --process` writes a model that GRPO and PPO learn from, further trained or not. `sample` and `inspect` show its
/// probabilities.
#[test]
fn a_process_reward_model_is_trained_used_and_shown() {
    let dir = gradus_testing::tempdir().unwrap();
    let gradus = |arguments: &[&str]| gradus(dir.path(), arguments);
    gradus(&START);
    gradus(&[&STEPS[..], &["--init", "start", "--labels", "verifier", "--out", "model"]].concat());
    let table = fs::read_to_string(dir.path().join("model/metrics.csv")).unwrap();
    let names = "completions,steps,held_out,reward_model/loss,reward_model/accuracy,reward_model/first_error,reward_model/accepted,\
                 reward_model/calibration_error,reward_model/brier";
    assert!(table.starts_with(&format!("{names}\n120,")), "{table}");
    let settings = fs::read_to_string(dir.path().join("model/config.toml")).unwrap();
    assert!(settings.contains("supervision = \"process\"") && settings.contains("labels = \"verifier\""), "{settings}");

    let of_model = ["--set", "reward_model.folder=model", "--set", "reward_model.supervision=process", "--set", "envs=16", "--quiet"];
    let train = |agent: &str, more: &[&str]| gradus(&[&["train", agent, "chain-sum", "--steps", "300"], &of_model[..], more].concat());
    train("ppo", &["--out", "ppo"]);
    let again = ["--set", "reward_model.pairs=10", "--set", "reward_model.retrain_every=1", "--set", "reward_model.labels=verifier"];
    train("grpo", &[&again[..], &["--set", "grpo.supervision=process", "--out", "grpo"]].concat());
    let columns = fs::read_to_string(dir.path().join("grpo/metrics.csv")).unwrap();
    assert!(columns.lines().next().unwrap().contains("reward_model/first_error"), "{columns}");

    for run in ["ppo", "grpo"] {
        let shown = gradus(&["inspect", run, "--groups", "4", "--group-size", "3"]);
        assert!(shown.starts_with("rewards are from the run's process reward model") && shown.contains("grpo, process"), "{shown}");
        let shown = gradus(&["sample", run, "--prompt", "3+4+2=", "-n", "3"]);
        assert!(shown.contains("learned      true") && shown.contains("learned reward"), "{shown}");
    }
    // the model of another folder instead of the run's own reward
    gradus(&["train", "grpo", "chain-sum", "--steps", "100", "--set", "envs=16", "--quiet", "--out", "own"]);
    let shown = gradus(&["inspect", "own", "--reward-model", "model", "--groups", "4", "--group-size", "3"]);
    assert!(shown.starts_with("rewards are from a process reward model") && shown.contains("grpo, process"), "{shown}");
    let shown = gradus(&["sample", "own", "--reward-model", "model", "--prompt", "3+4+2=", "-n", "3"]);
    assert!(shown.contains("learned      true"), "{shown}");
    let shown = gradus(&["sample", "own", "--prompt", "3+4+2=", "-n", "3"]);
    assert!(shown.contains("reward  advantage") && !shown.contains("learned"), "{shown}");
}

/// Wrong options and models of the other kind are refused with one line, and nothing is written.
#[test]
fn bad_input_to_process_reward_models_is_refused() {
    let dir = gradus_testing::tempdir().unwrap();
    gradus(dir.path(), &START);
    gradus(dir.path(), &[&STEPS[..], &["--init", "start", "--labels", "verifier", "--out", "steps"]].concat());
    gradus(dir.path(), &["reward-model", "chain-sum", "--init", "start", "--pairs", "60", "--held-out", "20", "--quiet", "--out", "texts"]);
    let before = contents(dir.path());
    let refused = |arguments: &[&str], expected: &str| {
        let error = error_of(&run(dir.path(), &[arguments, &["--out", "new"]].concat()));
        assert!(error.contains(expected), "{arguments:?}: {error}");
        assert!(contents(dir.path()) == before, "{arguments:?} wrote files");
    };
    let of_steps = |more: &[&'static str]| [&STEPS[..], more].concat();
    refused(&of_steps(&["--labels", "firm"]), "--labels: expected hard, soft or verifier, got firm");
    refused(&of_steps(&["--rollouts", "0"]), "--rollouts: expected a whole number from 1 up, got 0");
    refused(
        &of_steps(&["--success", "solved"]),
        "reward_model.success: expected a score of the task (exact, reward/steps, reward/answer), got solved",
    );
    refused(&of_steps(&["--set", "reward_model.ranked=plackett-luce"]), "expected only epochs and minibatch_size");
    refused(&of_steps(&["--set", "reward_model.supervision=process"]), "reward_model: expected only its training settings");
    let without_steps = ["reward-model", "addition", "--process", "--pairs", "20", "--held-out", "20"];
    refused(
        &without_steps,
        "reward_model.supervision: expected outcome, because the task does not divide solutions into steps, got process",
    );
    // an untrained policy never succeeds
    refused(&of_steps(&["--labels", "hard"]), "expected steps with different labels");
    refused(&["reward-model", "chain-sum", "--labels", "soft", "--quiet"], "--process");

    refused(&of_steps(&["--labels", "verifier", "--rollouts", "3"]), "--rollouts: expected no such option");
    // in a run the same settings are refused before a folder is created
    let in_run = |task: &str, setting: &str, expected: &str| {
        let process = ["--set", "reward_model.supervision=process", "--set", "reward_model.pairs=5", "--set", setting];
        refused(&[&["train", "grpo", task], &process[..]].concat(), expected);
    };
    in_run("chain-sum", "reward_model.success=solved", "reward_model.success: expected a score of the task");
    in_run("addition", "reward_model.rollouts=2", "reward_model.supervision: expected outcome, because the task does not divide");
    in_run("chain-sum", "reward_model.centring=0.1", "reward_model: expected the defaults of ranked and centring");
    // the folder's labels are those of the verifier
    in_run(
        "chain-sum",
        "reward_model.folder=steps",
        "expected labels as those of this run (hard, 8 rollouts, success exact), got others (verifier,",
    );

    let train = |folder: &str, kind: &str| {
        let [folder, kind] = [format!("reward_model.folder={folder}"), format!("reward_model.supervision={kind}")];
        refused(
            &["train", "grpo", "chain-sum", "--set", &folder, "--set", &kind],
            if kind.ends_with("process") {
                "expected a reward model with reward_model.supervision = process, got outcome"
            } else {
                "expected a reward model with reward_model.supervision = outcome, got process"
            },
        );
    };
    train("steps", "outcome");
    train("texts", "process");
    for setting in ["reward_model.supervision=steps", "reward_model.labels=firm", "reward_model.rollouts=0", "reward_model.rollouts=1025"] {
        let key = setting.split('=').next().unwrap();
        refused(&["train", "grpo", "chain-sum", "--set", "reward_model.pairs=5", "--set", setting], key);
    }
}

/// Trains a reward model on the task target sum and writes it to the folder `model`.
fn model(dir: &Path) {
    gradus(dir, &["reward-model", "target-sum", "--pairs", "400", "--held-out", "30", "--completions", "3", "--out", "model", "--quiet"]);
}

/// Returns the settings of a training that begins with the reward model in `model` and retrains it before each update.
fn config(dir: &Path, replay: &str) -> Config {
    let folder = format!("reward_model.folder={}", dir.join("model").display());
    let replay = format!("reward_model.replay={replay}");
    let settings =
        [&folder, &replay, "reward_model.pairs=100", "reward_model.retrain_every=1", "envs=16", "grpo.group_size=4", "steps=400"];
    let config = Config::preset("grpo", "target-sum", None).unwrap();
    settings.iter().fold(config, |config, setting| config.with_setting(setting).unwrap())
}

fn rankings(tensors: &Tensors, name: &str) -> Vec<u64> {
    match &tensors[name] {
        Tensor { data: Data::U64(words), .. } => words.clone(),
        other => panic!("expected whole numbers, got {other:?}"),
    }
}

fn count(words: &[u64]) -> usize {
    ranked(words).len()
}

/// The folder of a reward model contains the rankings that the model was trained on. A run adds these rankings to its history, and the
/// run's first retraining replays a share of them.
#[test]
fn the_first_retraining_replays_the_rankings_of_the_folder() {
    let dir = gradus_testing::tempdir().unwrap();
    model(dir.path());
    let (file, note) = tensors::decode(&fs::read(dir.path().join("model/rankings.safetensors")).unwrap()).unwrap();
    let old = rankings(&file, "rankings");
    let table = fs::read_to_string(dir.path().join("model/metrics.csv")).unwrap();
    assert!(table.lines().nth(1).unwrap().starts_with(&format!("{},", count(&old))), "{table}");
    assert_eq!(note, fs::read_to_string(dir.path().join("model/config.toml")).unwrap());

    let first = |replay: &str| {
        let mut trainer = Trainer::new(config(dir.path(), replay)).unwrap();
        let begun = trainer.save();
        trainer.iterate().unwrap();
        (begun, trainer.save())
    };
    let (begun, once) = first("0.1");
    assert_eq!(rankings(&begun, "reward_model.rankings"), old);
    let history = rankings(&once, "reward_model.rankings");
    assert!(history.len() > old.len() && history.starts_with(&old), "expected new rankings after the folder's");
    // the model was trained on the new rankings and a tenth of the old ones; both are decoded here by hand
    let new = ranked(&history[old.len()..]);
    let (trained, share) = (train_by_hand(dir.path(), &new, &ranked(&old), 0.1), (0.1 * count(&old) as f64).round() as usize);
    assert!(share > 5 && trained.1 == new.len() + share, "used {} of {} old and {} new rankings", trained.1, count(&old), new.len());
    let model = |state: &Tensors| -> Tensors {
        let part = |(name, tensor): (&String, &Tensor)| Some((name.strip_prefix("reward_model.model.")?.to_string(), tensor.clone()));
        state.iter().filter_map(part).collect()
    };
    assert!(model(&once) == trained.0, "the model did not learn from a tenth of the old rankings");
    let (_, none) = first("0");
    assert!(model(&none) == train_by_hand(dir.path(), &new, &[], 0.0).0);
    assert!(rankings(&none, "reward_model.rankings").is_empty(), "rankings that are never replayed are not kept");
}

/// Decodes rankings, each from the best text to the worst.
fn ranked(mut words: &[u64]) -> Vec<Vec<Vec<u32>>> {
    let mut rankings = Vec::new();
    while let [texts, rest @ ..] = words {
        let (lengths, mut rest) = rest.split_at(*texts as usize);
        let text = |length: &u64| {
            let (text, others) = rest.split_at(*length as usize);
            rest = others;
            text.iter().map(|token| *token as u32).collect()
        };
        rankings.push(lengths.iter().map(text).collect());
        words = rest;
    }
    rankings
}

/// Trains the reward model in the folder `model` further, on `new` and a share of `old`. Returns the model and the number of rankings used.
fn train_by_hand(dir: &Path, new: &[Vec<Vec<u32>>], old: &[Vec<Vec<u32>>], share: f32) -> (Tensors, usize) {
    let config = config(dir, "0.1");
    let world = config.world().unwrap();
    let mut model = config.network.policy(&world, 1).unwrap();
    model.load(&tensors::decode(&fs::read(dir.join("model/policy.safetensors")).unwrap()).unwrap().0).unwrap();
    let preferences = |rankings: &[Vec<Vec<u32>>]| {
        let mut next = 0..;
        let ranking = |texts: &Vec<Vec<u32>>| Ranking { rows: next.by_ref().take(texts.len()).collect(), margin: 0.0 };
        let of = rankings.iter().map(ranking).collect();
        Preferences::of_texts(world.text.as_ref().unwrap().space().width() - 1, rankings.iter().flatten().map(Vec::as_slice), of)
    };
    let seed = episode_seed(config.seed, u64::from(u32::MAX) - 2, 0);
    let mut stream = Stream::new(seed, Purpose::Shuffle, u64::MAX >> 8);
    let all = preferences(new).with_replay(&preferences(old), share, &mut stream);
    let wanted = config.reward_model.clone().unwrap();
    let optimiser = OptimiserConfig { learning_rate: wanted.learning_rate, schedule: Schedule::Constant, ..config.optimiser };
    let context = UpdateContext { seed, iteration: 0, progress: 0.0 };
    train(model.as_mut(), &all, &wanted.training, &optimiser, context).unwrap();
    (model.save(), all.rankings.len())
}

/// A run that stops after any update resumes with the same result. To resume, it does not need the folder of the reward model.
#[test]
fn a_run_resumes_without_the_folder() {
    let dir = gradus_testing::tempdir().unwrap();
    model(dir.path());
    let config = config(dir.path(), "0.5");
    let mut straight = Trainer::new(config.clone()).unwrap();
    straight.finish().unwrap();
    for stop in [0, 1, 3] {
        let mut first = Trainer::new(config.clone()).unwrap();
        (0..stop).for_each(|_| drop(first.iterate().unwrap()));
        let mut second = Trainer::new(config.clone()).unwrap();
        second.load(&first.save()).unwrap();
        second.finish().unwrap();
        assert!(second.save() == straight.save(), "stopped after {stop} updates");
    }
    let set: Vec<String> = ["pairs=30", "retrain_every=1", "folder=model"].map(|setting| format!("reward_model.{setting}")).into();
    let settings: Vec<&str> = set.iter().flat_map(|setting| ["--set", setting]).collect();
    let train = ["train", "grpo", "target-sum", "--steps", "400", "--quiet", "--out", "run", "--checkpoint-every", "0"];
    gradus(dir.path(), &[&train[..], &settings].concat());
    fs::remove_dir_all(dir.path().join("model")).unwrap();
    gradus(dir.path(), &["train", "--resume", "run", "--quiet"]);
}

/// If the folder of a reward model has no rankings or damaged ones, there is an error of one line and no run.
#[test]
fn rankings_that_cannot_be_replayed_are_refused() {
    let dir = gradus_testing::tempdir().unwrap();
    model(dir.path());
    let train = |settings: &[&str]| {
        let settings: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
        let train = ["train", "grpo", "target-sum", "--steps", "50", "--quiet", "--out", "run", "--set", "reward_model.folder=model"];
        run(dir.path(), &[&train[..], &settings].concat())
    };
    let file = dir.path().join("model/rankings.safetensors");
    let whole = fs::read(&file).unwrap();
    let (good, note) = tensors::decode(&whole).unwrap();
    let words = rankings(&good, "rankings");
    let with = |words: Vec<u64>| tensors::encode(&Tensors::from([("rankings".into(), Tensor::u64(words))]), &note);
    let (mut cut, mut foreign) = (words.clone(), words);
    cut.pop();
    *foreign.last_mut().unwrap() = 99;
    let unknown = "preferences: expected rankings of texts, got something else";
    let cases = [
        (whole[..whole.len() - 1].to_vec(), "damaged: its SHA-256 is not the one that was stored with it; "),
        (with(cut), unknown),
        (with(foreign), unknown),
        (tensors::encode(&Tensors::new(), &note), "tensor `rankings` is missing"),
        (
            tensors::encode(&good, &note.replace("seed = 1", "seed = 2")),
            "made with other settings than config.toml in the same folder: seed differs",
        ),
    ];
    for (bytes, expected) in cases {
        fs::write(&file, bytes).unwrap();
        let before = contents(dir.path());
        let error = error_of(&train(&["reward_model.pairs=20"]));
        assert!(error.starts_with(&format!("model/rankings.safetensors: {expected}")), "{error}");
        assert!(contents(dir.path()) == before, "{expected}");
    }
    fs::remove_file(&file).unwrap();
    let before = contents(dir.path());
    let expected = "model: expected rankings.safetensors, for reward_model.replay = 0.1, got none; make the folder again with \
                    `gradus reward-model`, or set reward_model.replay=0";
    assert_eq!(error_of(&train(&["reward_model.pairs=20"])), expected);
    assert!(contents(dir.path()) == before);
    // without further training of the model, or without replay, the rankings are not needed
    for settings in [&[][..], &["reward_model.pairs=20", "reward_model.replay=0"]] {
        let made = train(settings);
        assert!(made.status.success(), "{settings:?}: {}", String::from_utf8_lossy(&made.stderr));
        fs::remove_dir_all(dir.path().join("run")).unwrap();
    }
}
