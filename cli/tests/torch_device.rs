//! The devices of libtorch: the library is found without settings, errors are one line, and `gradus doctor` suggests a fix.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use gradus::nets::tensors::{decode, encode};
use gradus::nets::torch::{find, gpus};
use gradus_testing::command::{contents, error_of};

/// The variable with the folders that the loader searches before the path that was set when the program was built.
const SEARCHED: &str = "LD_LIBRARY_PATH";

fn gradus(dir: &Path, arguments: &[&str], searched: Option<&Path>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gradus"));
    command.current_dir(dir).args(arguments).env_remove(SEARCHED);
    if let Some(folder) = searched {
        command.env(SEARCHED, folder);
    }
    command.output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Trains a run of 1000 steps on libtorch.
fn short_run(dir: &Path) {
    let run = ["train", "ppo", "cartpole", "--preset", "cleanrl", "--steps", "1k", "--device", "torch-cpu", "--out", "run", "--quiet"];
    let output = gradus(dir, &run, None);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Changes the settings and the checkpoint of a run as if it had been trained on `device`.
fn trained_on(run: &Path, device: &str) {
    let instead = |text: &str| text.replace("device = \"torch-cpu\"", &format!("device = \"{device}\""));
    let config = fs::read_to_string(run.join("config.toml")).unwrap();
    assert_ne!(instead(&config), config);
    fs::write(run.join("config.toml"), instead(&config)).unwrap();
    let state = run.join("state.safetensors");
    let (tensors, note) = decode(&fs::read(&state).unwrap()).unwrap();
    fs::write(state, encode(&tensors, &instead(&note))).unwrap();
}

/// Creates a libtorch in `dir` whose version file contains `version`. Its libraries are links to those of the loaded libtorch, or copies.
fn of_version(version: &str, dir: &Path) -> PathBuf {
    let here = find().folder.clone().unwrap();
    let there = dir.join("torch/lib");
    fs::create_dir_all(&there).unwrap();
    for library in fs::read_dir(&here).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file()) {
        let name = library.file_name().unwrap().to_str().unwrap();
        let copy = there.join(name);
        // a hard link or a copy, because the memory map of a process shows the targets of symbolic links
        if name.starts_with("libtorch_cpu.") {
            fs::hard_link(&library, &copy).or_else(|_| fs::copy(&library, &copy).map(|_| ())).unwrap();
        } else {
            std::os::unix::fs::symlink(&library, copy).unwrap();
        }
    }
    let nvidia = here.join("../../nvidia");
    if nvidia.exists() {
        std::os::unix::fs::symlink(nvidia, dir.join("nvidia")).unwrap();
    }
    fs::write(dir.join("torch/version.py"), format!("__version__ = '{version}'\n")).unwrap();
    there
}

/// Compiles a fake driver for CUDA up to `version` (1000 major + 10 minor) with one GPU. Its initialisation returns `code`.
fn driver(dir: &Path, code: i32, version: i32) -> PathBuf {
    let source = format!(
        "int cuInit(unsigned flags) {{ return {code}; }}
        int cuDriverGetVersion(int *version) {{ *version = {version}; return 0; }}
        int cuDeviceGetCount(int *count) {{ *count = 1; return 0; }}
        int cuDeviceGet(int *device, int ordinal) {{ *device = ordinal; return 0; }}
        int cuDeviceGetName(char *name, int length, int device) {{ __builtin_strcpy(name, \"A GPU\"); return 0; }}
        int cuDeviceTotalMem_v2(unsigned long *bytes, int device) {{ *bytes = 1ul << 34; return 0; }}"
    );
    let folder = dir.join("driver");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("driver.c"), source).unwrap();
    let compiler = Command::new("cc").current_dir(&folder).args(["-shared", "-fPIC", "-o", "libcuda.so.1", "driver.c"]).output().unwrap();
    assert!(compiler.status.success(), "{}", String::from_utf8_lossy(&compiler.stderr));
    folder
}

#[test]
fn libtorch_is_found_without_settings() {
    let output = gradus(Path::new("."), &["doctor", "--device", "torch-cpu"], None);
    let text = stdout(&output);
    assert!(text.contains("expected 2.11.0, found 2.11.0"), "{text}");
    assert!(text.contains("torch-cpu  ok     matrix product correct"), "{text}");
    assert!(!text.contains("not the libtorch that gradus was built with"), "{text}");
    for library in ["libtorch_cpu.so", "libc10.so"] {
        assert!(text.contains(library), "{text}");
    }
    assert!(output.status.success(), "{text}");
    // this test process has found libtorch, too
    assert!(find().version.as_deref().is_some_and(|version| version.starts_with("2.11.0")));
}

#[test]
fn missing_devices_are_refused() {
    let dir = gradus_testing::tempdir().unwrap();
    let error_on = |device: &str| {
        let error = error_of(&gradus(dir.path(), &["train", "ppo", "cartpole", "--device", device], None));
        assert_eq!(error, error_of(&gradus(dir.path(), &["doctor", "--device", device], None)));
        error
    };
    assert_eq!(error_on("mps"), "device mps: expected Apple's GPU, got none");
    match gpus().map(<[_]>::len) {
        Ok(1) => assert_eq!(error_on("cuda:127"), "device cuda:127: expected cuda:0, got cuda:127"),
        Ok(n) => assert_eq!(error_on("cuda:127"), format!("device cuda:127: expected cuda:0 to cuda:{}, got cuda:127", n - 1)),
        Err(trouble) => {
            for (name, device) in [("cuda", "cuda:0"), ("cuda:7", "cuda:7")] {
                let error = error_on(name);
                assert!(error.starts_with(&format!("device {device}: {}", trouble.problem)), "{error}");
            }
            let setting = gradus(dir.path(), &["train", "ppo", "cartpole", "--set", "device=cuda"], None);
            assert!(error_of(&setting).starts_with(&format!("device cuda:0: {}", trouble.problem)));
        }
    }
    let tf32 = ["train", "ppo", "cartpole", "--device", "torch-cpu", "--set", "torch.precision=tf32"];
    assert_eq!(
        error_of(&gradus(dir.path(), &tf32, None)),
        "torch.precision: expected f32 or bf16 on torch-cpu, got tf32, which needs CUDA"
    );
    assert!(contents(dir.path()).is_empty());
}

#[test]
fn another_version_of_libtorch_is_refused_and_nothing_is_lost() {
    let dir = gradus_testing::tempdir().unwrap();
    short_run(dir.path());
    let other = gradus_testing::tempdir().unwrap();
    let folder = of_version("2.10.0+cu130", other.path());
    let before = contents(dir.path());
    let problem = format!("expected libtorch 2.11.0, got 2.10.0+cu130 from {}", folder.display());
    for arguments in [&["train", "ppo", "cartpole", "--device", "torch-cpu"][..], &["train", "--resume", "run"]] {
        let error = error_of(&gradus(dir.path(), arguments, Some(&folder)));
        assert_eq!(error, format!("device torch-cpu: {problem}; run `gradus doctor` for the fix"));
    }
    assert_eq!(contents(dir.path()), before);

    let output = gradus(dir.path(), &["doctor"], Some(&folder));
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("expected 2.11.0, found 2.10.0+cu130, for CUDA 13.0"), "{text}");
    assert!(text.contains("not the libtorch that gradus was built with"), "{text}");
    assert!(text.contains(&format!("torch-cpu: {problem}\n  unset LD_LIBRARY_PATH\n")), "{text}");
    // commands that do not use libtorch ignore its version
    assert!(gradus(dir.path(), &["eval", "run", "--episodes", "2"], Some(&folder)).status.success());
}

#[test]
fn a_run_whose_device_is_missing_is_not_changed() {
    let dir = gradus_testing::tempdir().unwrap();
    short_run(dir.path());
    trained_on(&dir.path().join("run"), "cuda:99");
    let before = contents(dir.path());
    let error = error_of(&gradus(dir.path(), &["train", "--resume", "run"], None));
    assert!(error.starts_with("device cuda:99: expected "), "{error}");
    assert_eq!(contents(dir.path()), before);
}

#[test]
fn an_unsuitable_driver_is_named() {
    let dir = gradus_testing::tempdir().unwrap();
    let error = |folder: &Path| error_of(&gradus(dir.path(), &["doctor", "--device", "cuda"], Some(folder)));
    let folder = driver(dir.path(), 803, 13000);
    assert_eq!(
        error(&folder),
        "device cuda:0: expected NVIDIA's driver to start, got CUDA error 803: it was updated while its old kernel module is loaded; \
         run `gradus doctor` for the fix"
    );
    let text = stdout(&gradus(dir.path(), &["doctor"], Some(&folder)));
    assert!(text.contains("\n  sudo reboot\n"), "{text}");

    let folder = driver(dir.path(), 0, 10020);
    if let Some((major, minor)) = find().cuda {
        let problem = format!("expected a driver for CUDA {major}.{minor}, got one for CUDA up to 10.2");
        assert_eq!(error(&folder), format!("device cuda:0: {problem}; run `gradus doctor` for the fix"));
        let output = gradus(dir.path(), &["doctor"], Some(&folder));
        assert_eq!(output.status.code(), Some(2));
        assert!(stdout(&output).contains(&format!("cuda: {problem}\n  sudo apt install nvidia-driver-580\n")), "{}", stdout(&output));
    }
}
