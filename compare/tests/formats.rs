//! Files contain the number of their format. Older run folders are read. Newer files are refused with an error that says so. The error for
//! the old key of a renamed setting names the new key.

use std::fs;
use std::path::Path;

use gradus::evaluate::trace::Start;
use gradus::evaluate::{Mode, evaluate};
use gradus::nets::tensors;
use gradus::saved::{load_behaviour, load_policy};
use gradus::{Config, Run, Show, Trainer};
use gradus_compare::Comparison;

/// Trains a short run in `dir`.
fn trained(dir: &Path) -> Config {
    let settings = ["steps=512", "ppo.rollout_steps=64", "max_concurrent=3"];
    let config = settings.iter().try_fold(Config::preset("ppo", "cartpole", None).unwrap(), |c, setting| c.with_setting(setting)).unwrap();
    Run::create(config.clone(), dir).unwrap().train(Show::Nothing).unwrap();
    config
}

/// Rewrites a run folder in the first format, in which files do not contain a format number.
fn make_old(dir: &Path) {
    let old = |text: &str| text.replace("format = 2\n", "").replace("max_concurrent = ", "slots = ");
    let path = dir.join("config.toml");
    let settings = fs::read_to_string(&path).unwrap();
    assert!(settings.starts_with("format = 2\n") && settings.contains("max_concurrent = 3"), "{settings}");
    fs::write(&path, old(&settings)).unwrap();
    for name in ["policy.safetensors", "state.safetensors"] {
        let (tensors, note) = tensors::decode(&fs::read(dir.join(name)).unwrap()).unwrap();
        assert!(note.starts_with("format = 2\n"), "{name}: {note}");
        // checkpoints had no hashes of the logs, and tensor files no hash of their own
        let tensors = tensors.into_iter().filter(|(name, _)| name != "log_hashes").collect();
        let file = without_hash(tensors::encode(&tensors, &old(&note)));
        assert!(!tensors::is_hashed(&file));
        fs::write(dir.join(name), file).unwrap();
    }
}

/// Removes the two lines of a tensor file that mark it as a file with a hash. The header is filled up with spaces.
fn without_hash(mut file: Vec<u8>) -> Vec<u8> {
    let length = u64::from_le_bytes(file[..8].try_into().unwrap()) as usize;
    let header = String::from_utf8(file[8..8 + length].to_vec()).unwrap();
    let (start, end) = (header.find("# gradus tensors 2").unwrap(), header.find("# sha256 ").unwrap() + 9 + 64 + 2);
    let header = format!("{}{}{}", &header[..start], &header[end..], " ".repeat(end - start));
    file[8..8 + length].copy_from_slice(header.as_bytes());
    file
}

#[test]
fn a_run_folder_without_a_number_is_read_and_resumed() {
    let folder = gradus_testing::tempdir().unwrap();
    let dir = folder.path().join("run");
    let config = trained(&dir);
    let policy = load_policy(&dir).unwrap().2.parameters().to_vec();
    make_old(&dir);
    let (read, _, old) = load_policy(&dir).unwrap();
    assert_eq!((&read, old.parameters()), (&config, &policy[..]));
    // its settings can be used for another training
    let settings = fs::read_to_string(dir.join("config.toml")).unwrap();
    assert_eq!(Config::default().with_toml(&settings).unwrap(), config);
    let mut run = Run::resume(&dir).unwrap();
    assert!(run.trainer().is_finished());
    run.train(Show::Nothing).unwrap();
    drop(run);
    assert_eq!(load_policy(&dir).unwrap().2.parameters(), policy);
    assert!(fs::read_to_string(dir.join("config.toml")).unwrap().starts_with("format = 2\n"));
    // another training can begin with the policy of this run
    let begun = Trainer::new(Config { init: dir.display().to_string(), ..config }).unwrap();
    assert_eq!(begun.actor_critic().unwrap().parameters(), policy);
}

/// A policy acts even if its settings name a device and a precision with which this machine cannot train.
#[test]
fn a_policy_acts_without_the_device_it_was_trained_on() {
    let folder = gradus_testing::tempdir().unwrap();
    let dir = folder.path().join("run");
    trained(&dir);
    let on_a_gpu =
        |text: &str| text.replace("device = \"cpu\"", "device = \"cuda:0\"").replace("precision = \"f32\"", "precision = \"bf16\"");
    let path = dir.join("config.toml");
    fs::write(&path, on_a_gpu(&fs::read_to_string(&path).unwrap())).unwrap();
    let path = dir.join("policy.safetensors");
    let (tensors, note) = tensors::decode(&fs::read(&path).unwrap()).unwrap();
    fs::write(&path, tensors::encode(&tensors, &on_a_gpu(&note))).unwrap();
    let (config, world, policy) = load_behaviour(&dir).unwrap();
    assert_eq!(config.device.to_string(), "cuda:0");
    assert!(evaluate(policy.as_ref(), &world, 2, 1, Mode::Greedy).unwrap().mean > 1.0);
}

/// Recordings of earlier versions have the key `luck_seed` for the dynamics seed.
#[test]
fn a_recording_without_a_number_is_read() {
    let folder = gradus_testing::tempdir().unwrap();
    let path = folder.path().join("episodes.jsonl");
    let line = |key: &str| {
        format!(
            r#"{{"env":"cartpole","episode_seed":1,"{key}":7,"actions":[0],"observations":[[0,0,0,0],[0,0,0,0]],"rewards":[1],"terminated":false,"truncated":false}}"#
        )
    };
    let starts = ["dynamics_seed", "luck_seed"].map(|key| {
        fs::write(&path, line(key)).unwrap();
        gradus::evaluate::trace::read(&path).unwrap().remove(0).start
    });
    assert_eq!(starts[0], starts[1]);
    assert_eq!(starts[0], Start::Seed { seed: 1, rng: Some(7) });
}

#[test]
fn newer_formats_are_refused_with_their_number() {
    let folder = gradus_testing::tempdir().unwrap();
    let dir = folder.path().join("run");
    trained(&dir);
    let path = dir.join("config.toml");
    let settings = fs::read_to_string(&path).unwrap();
    for (number, expected) in [
        ("3", "format: expected 2 at most, got 3, written by a newer gradus"),
        ("0", "format: expected 1 to 2, got 0"),
        ("\"two\"", "format: expected a whole number, got \"two\""),
    ] {
        fs::write(&path, settings.replace("format = 2", &format!("format = {number}"))).unwrap();
        for error in [Run::resume(&dir).map(|_| ()).unwrap_err(), load_policy(&dir).map(|_| ()).unwrap_err()] {
            assert_eq!(error.to_string(), format!("{}: {expected}", path.display()));
        }
    }
    let text = "format = 2\nenvironments = [\"cartpole\"]\nnews = true\n";
    let path = folder.path().join("comparison.toml");
    fs::write(&path, text).unwrap();
    let error = Comparison::read(&path).unwrap_err().to_string();
    assert_eq!(error, format!("{}: format: expected 1 at most, got 2, written by a newer gradus", path.display()));
    let path = folder.path().join("episodes.jsonl");
    fs::write(&path, "{\"format\": 2, \"episode\": []}\n").unwrap();
    let error = gradus::evaluate::trace::read(&path).unwrap_err().to_string();
    assert!(error.ends_with("format: expected 1, the only format that this version reads, got 2"), "{error}");
}

#[test]
fn the_error_for_a_renamed_setting_names_its_new_key() {
    let error = Config::default().with_setting("slots=3").unwrap_err().to_string();
    assert_eq!(error, "unknown setting `slots`; it is called `max_concurrent` now");
    let file = Config::default().with_toml("slots = 3\n").unwrap_err().to_string();
    assert_eq!(file, error);
}
