//! Passes the folder of libtorch to the linker, and to `gradus doctor`.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let Ok(folder) = env::var("DEP_TCH_LIBTORCH_LIB") else { return };
    let os = env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    // lets the program find libtorch at run time; `torch-sys` passes libtorch's folder only to direct dependents
    if os == "linux" || os == "macos" {
        println!("cargo:rustc-link-arg=-Wl,-rpath,{folder}");
    }
    // `gradus doctor` compares the loaded libtorch with this folder
    println!("cargo:rustc-env=GRADUS_LIBTORCH={folder}");
}
