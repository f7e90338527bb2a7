#!/usr/bin/env bash
# Writes the documentation of our crates into target/doc, linked with each other; `cargo doc` alone writes that of 80 other crates, too.
#
# One crate after the other: rustdoc links only to crates that are there already, and `cargo doc --workspace --no-deps` takes them in any order.
set -euo pipefail
cd "$(dirname "$0")/.."
for crate in gradus-envs gradus-nets gradus-agents gradus-statistics gradus; do
  cargo doc --no-deps --locked --package "$crate"
done
