#!/usr/bin/env bash
# Gradescope runs this once, when the autograder's image is built: installs Rust and Gradus, and compiles what submissions need.
set -euo pipefail
autograder=${AUTOGRADER:-/autograder}
if ! command -v cargo >/dev/null; then
  apt-get update -qq
  apt-get install -y -qq build-essential curl git ca-certificates
  curl --proto '=https' -sSf https://sh.rustup.rs | sh -s -- -y --profile minimal
  . "$HOME/.cargo/env"
fi
git clone --quiet 'REPOSITORY' "$autograder/gradus"
git -C "$autograder/gradus" checkout --quiet --detach 'COMMIT'
cargo build --release --manifest-path "$autograder/gradus/Cargo.toml" --bin gradus
"$autograder/gradus/target/release/gradus" course new "$autograder/course" --path "$autograder/gradus"
