//! Unknown devices are refused in one line.

use std::fs;

use super::gradus;
use gradus_testing::command::{contents, error_of};

#[test]
fn unknown_devices_are_refused() {
    let dir = gradus_testing::tempdir().unwrap();
    let expected = |name: &str| format!("device: expected cpu, torch-cpu, cuda, cuda:N or mps, got {name}");
    for name in ["gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:128", "CUDA", "tpu:0"] {
        for command in [&["train", "ppo", "cartpole"][..], &["doctor"]] {
            let error = error_of(&gradus(dir.path(), &[command, &["--device", name]].concat()));
            assert_eq!(error, expected(name));
        }
        let error = error_of(&gradus(dir.path(), &["train", "ppo", "cartpole", "--set", &format!("device='{name}'")]));
        assert_eq!(error, expected(&format!("{name:?}")));
    }
    assert_eq!(error_of(&gradus(dir.path(), &["doctor", "--device", ""])), expected("nothing"));
    assert!(contents(dir.path()).is_empty());
    fs::write(dir.path().join("gpu.toml"), "device = \"gpu\"").unwrap();
    let error = error_of(&gradus(dir.path(), &["train", "ppo", "cartpole", "--config", "gpu.toml"]));
    assert_eq!(error, format!("gpu.toml: {}", expected("\"gpu\"")));
}
