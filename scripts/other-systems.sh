#!/usr/bin/env bash
# Whether the whole workspace compiles for Windows and macOS: `cargo check`, with the standard library checked from its sources, because the
# toolchain has no other target installed. Needs Debian's packages rustc-web, rust-web-src and libstd-rust-web-dev (rustc and the library's sources
# of one version) and binutils-mingw-w64-x86-64 (dlltool); where one is missing it says so and does nothing. Nothing is linked or run.
set -euo pipefail
cd "$(dirname "$0")/.."

for package in rustc-web rust-web-src libstd-rust-web-dev binutils-mingw-w64-x86-64; do
  if ! dpkg -s "$package" >/dev/null 2>&1; then
    echo "other systems: left out, for the package $package is not installed"
    exit 0
  fi
done

# the packaged compiler, which must allow cargo's unstable option
export RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1
for target in x86_64-pc-windows-gnu aarch64-apple-darwin; do
  cargo check --workspace --all-targets --locked --quiet --target "$target" --target-dir target/other-systems -Zbuild-std=std,panic_abort
  echo "$target: the library, the command, the examples, the tests and the benches compile"
done
