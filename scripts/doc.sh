#!/usr/bin/env bash
# Writes the documentation of our crates into target/doc, with links between them, and without the 80 other crates that `cargo doc` adds.
#
# rustdoc links only to crates that are already documented. Therefore each crate follows its dependencies here. The order of
# `cargo doc --workspace --no-deps` is not defined.
set -euo pipefail
cd "$(dirname "$0")/.."
for crate in gradus-base gradus-envs gradus-checker gradus-course gradus-nets gradus-agents gradus-rollouts gradus-drawing gradus-statistics gradus gradus-compare gradus-reproduce gradus-cli gradus-bugs; do
  cargo doc --no-deps --locked --package "$crate"
done
