#!/usr/bin/env bash
# Checks that the workspace compiles for Windows and macOS, with `cargo check`. The standard library is compiled from source, because the toolchain
# has no other target installed. Needs the Debian packages rustc-web, rust-web-src and libstd-rust-web-dev (rustc and the library sources of its
# version) and binutils-mingw-w64-x86-64 (dlltool). Skips the check if a package is missing. Links and runs no program.
set -euo pipefail
cd "$(dirname "$0")/.."

for package in rustc-web rust-web-src libstd-rust-web-dev binutils-mingw-w64-x86-64; do
  if ! dpkg -s "$package" >/dev/null 2>&1; then
    echo "other systems: skipped, the package $package is not installed"
    exit 0
  fi
done

# RUSTC is the packaged compiler; RUSTC_BOOTSTRAP allows cargo's unstable option -Zbuild-std
export RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1
for target in x86_64-pc-windows-gnu aarch64-apple-darwin; do
  cargo check --workspace --all-targets --locked --quiet --target "$target" --target-dir target/other-systems -Zbuild-std=std,panic_abort
  echo "$target: the library, the command, the examples, the tests and the benches compile"
done
