//! Passes the compiler a hash of the code that determines a run's numbers and the list of the pages in `docs/`, and the linker the folder of
//! libtorch.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders and files of the code that determines a run's numbers. If this crate is built outside the workspace, the folders of the other crates are
/// missing. The version of this crate then determines the versions of the other crates (`=` in Cargo.toml).
const CODE: [&str; 7] = ["agents/src", "base/src", "compare/src/run.rs", "envs/src", "nets/src", "rollouts/src", "src"];

/// Files and folders that show, draw or analyse numbers but do not determine the numbers of a run. All other code in [`CODE`],
/// except tests, is hashed.
const NOT_CODE: [&str; 16] = [
    "src/config/presets.rs",
    "src/draw",
    "src/draw.rs",
    "src/evaluate/features.rs",
    "src/evaluate/record.rs",
    "src/evaluate/strip.rs",
    "src/figure",
    "src/guide.rs",
    "src/memory",
    "src/policy.rs",
    "src/program.rs",
    "src/run/curves.rs",
    "src/run/progress",
    "src/run/progress.rs",
    "src/run/tensorboard.rs",
    "src/run/verify.rs",
];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-env=GRADUS_CODE={:016x}", code());
    write_pages();
    let Ok(folder) = env::var("DEP_TCH_LIBTORCH_LIB") else { return };
    let os = env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    // lets programs built with the feature `tch` find libtorch at run time; `torch-sys` passes libtorch's folder only to direct dependents
    if os == "linux" || os == "macos" {
        println!("cargo:rustc-link-arg=-Wl,-rpath,{folder}");
    }
}

/// Returns a hash of the code that determines a run's numbers and of Cargo.lock. Tests, empty lines and comments on their own lines are
/// ignored.
fn code() -> u64 {
    let mut files = Vec::new();
    for path in CODE.iter().map(Path::new).filter(|path| path.exists()) {
        println!("cargo:rerun-if-changed={}", path.display());
        if path.is_dir() {
            collect(path, &mut files);
        } else {
            files.push(path.into());
        }
    }
    files.sort();
    let mut hash = 0xcbf2_9ce4_8422_2325; // FNV-1a
    let mut add =
        |text: &str| hash = text.bytes().chain([0]).fold(hash, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    for file in files {
        let text = read(&file);
        add(&file.to_string_lossy().replace('\\', "/"));
        // tests are at the end of a file; clippy enforces it
        let code = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        code.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")).for_each(&mut add);
    }
    if Path::new("Cargo.lock").is_file() {
        println!("cargo:rerun-if-changed=Cargo.lock");
        add(&read(Path::new("Cargo.lock")));
    }
    hash
}

/// Writes lists of pages: all of them, for `gradus guide`, and a module for each page about agents and each lesson, for the documentation of
/// the crate.
fn write_pages() {
    let (mut pages, mut modules) = (String::new(), [const { String::new() }; 2]);
    for folder in ["docs", "docs/agents", "docs/course"] {
        println!("cargo:rerun-if-changed={folder}");
        let mut files: Vec<PathBuf> = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        files.retain(|file| file.extension().is_some_and(|ending| ending == "md"));
        files.sort(); // README.md comes first
        for file in files {
            let name = file.file_stem().unwrap_or_default().to_string_lossy().replace("README", "agents");
            let path = file.to_string_lossy().replace('\\', "/");
            let text = format!(r#"include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/{path}"))"#);
            pages += &format!("({name:?}, {text}),\n");
            let family = ["docs/agents", "docs/course"].iter().position(|known| *known == folder);
            if let Some(family) = family.filter(|_| name != "agents") {
                let page = read(&file);
                let summary = page
                    .lines()
                    .find(|line| !line.is_empty() && !line.starts_with(['#', '<']))
                    .and_then(|line| line.split_inclusive(". ").next())
                    .unwrap_or_default()
                    .trim();
                let frame = r#"#[doc = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide.html"))]"#;
                modules[family] += &format!("/// {summary}\n///\n#[doc = {text}]\n///\n{frame}\npub mod {} {{}}\n", name.replace('-', "_"));
            }
        }
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    fs::write(out.join("pages.rs"), format!("[{pages}]")).expect("the output folder can be written");
    for (name, modules) in ["agents.rs", "course.rs"].iter().zip(modules) {
        fs::write(out.join(name), modules).expect("the output folder can be written");
    }
}

/// Returns a file's text with `\n` line ends; empty if the file cannot be read.
fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_default().replace("\r\n", "\n")
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        if NOT_CODE.iter().any(|other| path == Path::new(other)) || path.ends_with("tests.rs") {
            continue;
        }
        match path.is_dir() {
            true => collect(&path, files),
            false if path.extension().is_some_and(|ending| ending == "rs") => files.push(path),
            false => {}
        }
    }
}
