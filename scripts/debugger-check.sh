#!/usr/bin/env bash
# Checks that gdb shows every local of an update in a program of the profile `teach` (docs/debugger.md). Stops in PPO's inner loop and in its
# objective; no local may be optimised out. Skips the check if gdb is not installed.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v gdb >/dev/null; then
  echo "debugger: skipped, gdb is not installed"
  exit 0
fi
cargo build --profile teach --example cartpole_ppo --locked --quiet

line() { grep -n -m 1 "$1" agents/src/ppo.rs | cut -d: -f1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
program=$PWD/target/teach/examples/cartpole_ppo
for place in 'learner.step();' '^        LossGrad {'; do
  breakpoint="ppo.rs:$(line "$place")"
  shown=$(cd "$folder" && rust-gdb -batch -ex "set print elements 4" -ex "break $breakpoint" -ex run -ex "info locals" "$program" 2>&1)
  echo "ppo.rs, at '$place': $(grep -c ' = ' <<<"$shown") values shown"
  if ! grep -qE '^(advantage|estimate) = ' <<<"$shown" || grep -q 'optimized out' <<<"$shown"; then
    echo "$shown" >&2
    echo "expected every local with its value" >&2
    exit 1
  fi
done
