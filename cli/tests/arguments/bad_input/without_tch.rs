//! A build without the feature `tch` refuses libtorch's devices in one line, and does not change runs that were trained on a GPU.

use std::fs;
use std::path::Path;

use gradus::nets::tensors::{decode, encode};

use super::{gradus, short_run};
use gradus_testing::command::{contents, error_of};

#[test]
fn libtorchs_devices_need_the_feature() {
    let dir = gradus_testing::tempdir().unwrap();
    let expected = |device: &str| {
        let problem = "expected cpu, because this gradus was built without the feature `tch`; `gradus doctor` shows how to build with it";
        format!("device {device}: {problem}")
    };
    fs::write(dir.path().join("cuda.toml"), "device = \"cuda\"").unwrap();
    let before = contents(dir.path());
    for (name, device) in [("torch-cpu", "torch-cpu"), ("cuda", "cuda:0"), ("cuda:7", "cuda:7"), ("mps", "mps")] {
        assert_eq!(error_of(&gradus(dir.path(), &["train", "ppo", "cartpole", "--device", name])), expected(device));
        assert_eq!(error_of(&gradus(dir.path(), &["doctor", "--device", name])), expected(device));
    }
    assert_eq!(error_of(&gradus(dir.path(), &["train", "ppo", "cartpole", "--config", "cuda.toml"])), expected("cuda:0"));
    assert_eq!(contents(dir.path()), before);
}

#[test]
fn doctor_says_that_the_feature_is_off() {
    for arguments in [&["doctor"][..], &["doctor", "--device", "cpu"]] {
        let output = gradus(Path::new("."), arguments);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}");
        assert!(text.contains("the feature `tch` is off"), "{text}");
        assert!(text.contains("LIBTORCH_USE_PYTORCH=1 cargo build --features tch"), "{text}");
    }
}

#[test]
fn a_run_of_a_gpu_is_not_changed() {
    let dir = gradus_testing::tempdir().unwrap();
    short_run(dir.path());
    trained_on(&dir.path().join("run"), "cuda:0");
    let before = contents(dir.path());
    let error = error_of(&gradus(dir.path(), &["train", "--resume", "run"]));
    assert!(error.starts_with("device cuda:0: expected cpu, because this gradus was built without the feature `tch`"), "{error}");
    assert_eq!(contents(dir.path()), before);
    // an evaluation needs no GPU
    assert!(gradus(dir.path(), &["eval", "run", "--episodes", "2"]).status.success());
}

/// Changes the settings in a run's files as if the run had been trained on `device`.
fn trained_on(run: &Path, device: &str) {
    let instead = |text: &str| text.replace("device = \"cpu\"", &format!("device = \"{device}\""));
    let config = fs::read_to_string(run.join("config.toml")).unwrap();
    assert_ne!(instead(&config), config);
    fs::write(run.join("config.toml"), instead(&config)).unwrap();
    for name in ["state.safetensors", "policy.safetensors"] {
        let (tensors, note) = decode(&fs::read(run.join(name)).unwrap()).unwrap();
        fs::write(run.join(name), encode(&tensors, &instead(&note))).unwrap();
    }
}
