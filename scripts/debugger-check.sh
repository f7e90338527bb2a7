#!/usr/bin/env bash
# Checks that gdb shows every local variable of an update in a program built with the profile `teach` (docs/debugger.md). Stops in the inner loop
# of PPO's update and in PPO's objective. Fails if a local is optimised out there. Skips the check if gdb is not installed.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v gdb >/dev/null; then
  echo "debugger: skipped, gdb is not installed"
  exit 0
fi
cargo build --profile teach --example cartpole_ppo --locked --quiet

line() { grep -n -m 1 "$1" agents/src/policy_gradient/ppo.rs | cut -d: -f1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
program=$PWD/target/teach/examples/cartpole_ppo
for place in 'learner.step();' '^        loss.with_diagnostics'; do
  breakpoint="ppo.rs:$(line "$place")"
  grep -q "^(gdb) break $breakpoint\$" docs/debugger.md || { echo "docs/debugger.md: expected a breakpoint at $breakpoint, got another line" >&2; exit 1; }
  shown=$(cd "$folder" && rust-gdb -batch -ex "set print elements 4" -ex "break $breakpoint" -ex run -ex "info locals" "$program" 2>&1)
  echo "ppo.rs, at '$place': $(grep -c ' = ' <<<"$shown") values shown"
  if ! grep -qE '^(advantage|estimate) = ' <<<"$shown" || grep -q 'optimized out' <<<"$shown"; then
    echo "$shown" >&2
    echo "debugger: expected a value for every local, got the output above" >&2
    exit 1
  fi
done
