//! Says to the linker where libtorch is, so that programs built with the feature `tch` find it when they start: `torch-sys` knows, and
//! tells whoever depends on it directly.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let Ok(folder) = env::var("DEP_TCH_LIBTORCH_LIB") else { return };
    let os = env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    if os == "linux" || os == "macos" {
        println!("cargo:rustc-link-arg=-Wl,-rpath,{folder}");
    }
    // where `gradus doctor` looks first
    println!("cargo:rustc-env=GRADUS_LIBTORCH={folder}");
}
