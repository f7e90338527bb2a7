//! Files carry the number of their format: an older run folder is read, a newer file is refused in one line that says so, and a setting that
//! was renamed answers its old key with the new one.

use std::fs;
use std::path::Path;

use gradus::compare::Comparison;
use gradus::nets::tensors;
use gradus::saved::load_policy;
use gradus::{Config, Run, Show, Trainer};

/// A short run in `dir`.
fn trained(dir: &Path) -> Config {
    let settings = ["steps=512", "ppo.rollout_steps=64", "max_concurrent=3"];
    let config = settings.iter().try_fold(Config::preset("ppo", "cartpole", None).unwrap(), |c, setting| c.with_setting(setting)).unwrap();
    Run::create(config.clone(), dir).unwrap().train(Show::Nothing).unwrap();
    config
}

/// Makes of a run folder what a version before the numbers would have left.
fn made_old(dir: &Path) {
    let old = |text: &str| text.replace("format = 2\n", "").replace("max_concurrent = ", "slots = ");
    let path = dir.join("config.toml");
    let settings = fs::read_to_string(&path).unwrap();
    assert!(settings.starts_with("format = 2\n") && settings.contains("max_concurrent = 3"), "{settings}");
    fs::write(&path, old(&settings)).unwrap();
    for name in ["policy.safetensors", "state.safetensors"] {
        let (tensors, note) = tensors::decode(&fs::read(dir.join(name)).unwrap()).unwrap();
        assert!(note.starts_with("format = 2\n"), "{name}: {note}");
        fs::write(dir.join(name), tensors::encode(&tensors, &old(&note))).unwrap();
    }
}

#[test]
fn a_run_folder_without_a_number_is_read_and_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    let config = trained(&dir);
    let policy = load_policy(&dir).unwrap().2.parameters().to_vec();
    made_old(&dir);
    let (read, _, old) = load_policy(&dir).unwrap();
    assert_eq!((&read, old.parameters()), (&config, &policy[..]));
    let mut run = Run::resume(&dir).unwrap();
    assert!(run.trainer().is_finished());
    run.train(Show::Nothing).unwrap();
    drop(run);
    assert_eq!(load_policy(&dir).unwrap().2.parameters(), policy);
    // another training begins with its policy
    let begun = Trainer::new(Config { init: dir.display().to_string(), ..config }).unwrap();
    assert_eq!(begun.actor_critic().unwrap().parameters(), policy);
}

#[test]
fn a_newer_number_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    trained(&dir);
    let path = dir.join("config.toml");
    let settings = fs::read_to_string(&path).unwrap();
    for (number, expected) in [
        ("3", "format: expected 2 at most, got 3, which a newer gradus has written"),
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
    assert_eq!(error, format!("{}: format: expected 1 at most, got 2, which a newer gradus has written", path.display()));
    let path = folder.path().join("episodes.jsonl");
    fs::write(&path, "{\"format\": 2, \"episode\": []}\n").unwrap();
    let error = gradus::evaluate::trace::read(&path).unwrap_err().to_string();
    assert!(error.ends_with("format: expected 1, the only format that this version knows, got 2"), "{error}");
}

#[test]
fn a_renamed_setting_answers_its_old_key() {
    let error = Config::default().with_setting("slots=3").unwrap_err().to_string();
    assert_eq!(error, "unknown setting `slots`; it is called `max_concurrent` now");
    let file = Config::default().with_toml("slots = 3\n").unwrap_err().to_string();
    assert_eq!(file, error);
}
