#!/usr/bin/env bash
# Builds examples/own_crate, which is not part of this workspace, and checks that every command works with its environment and its agent.
#
#   scripts/own-crate.sh [FOLDER]      builds in FOLDER (default: a temporary folder)
set -euo pipefail
cd "$(dirname "$0")/../examples/own_crate"
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
target=$(realpath -m "${1:-$temporary/target}")
comparison=$PWD/compare.toml

CARGO_TARGET_DIR=$target cargo build --quiet --locked
cd "$temporary"
own=$target/debug/own_crate

# Fails unless the output of a command contains a text.
expect() {
  local wanted=$1 output
  shift
  output=$("$@" 2>&1) || { echo "own crate: $* failed: $output" >&2; exit 1; }
  grep -qF -- "$wanted" <<<"$output" || { echo "own crate: $*: expected \`$wanted\`, got: $output" >&2; exit 1; }
}
# The same for a command that must fail with exit code 2 and one line.
refuse() {
  local wanted=$1 output status=0
  shift
  output=$("$@" 2>&1) || status=$?
  if [ $status != 2 ] || [ "$(wc -l <<<"$output")" != 1 ] || ! grep -qF -- "$wanted" <<<"$output"; then
    echo "own crate: $*: expected \`$wanted\` in one line and exit code 2, got $status: $output" >&2
    exit 1
  fi
}

expect "advantage-weighted regression" "$own" list
expect "keep a room at 20 degrees" "$own" list
expect "awr.temperature = 1.0" "$own" list --settings
expect "12 of 12 topics passed" "$own" check thermostat
expect "awr on thermostat, 50176 steps" "$own" train awr thermostat --set awr.temperature=0.9 --out awr
expect "already finished" "$own" train --resume awr
expect "over 100 episodes" "$own" eval awr
expect "episode.gif" "$own" play awr --gif episode.gif
expect "curve.svg" "$own" plot awr
expect "awr" "$own" verify awr
expect "ppo on thermostat" "$own" train ppo thermostat --steps 5k --out ppo
expect "awr on cartpole" "$own" train awr CartPole-v1 --steps 5k --out cartpole
expect "report.html" "$own" compare "$comparison" --out comparison
grep -q "^thermostat,AWR" comparison/summary.csv
refuse "awr.temperature: expected a number above 0, got 0" "$own" train awr thermostat --set awr.temperature=0
refuse "did you mean \`thermostat\`" "$own" train awr thermostad
refuse "did you mean \`awr\`" "$own" train awt thermostat
echo "own crate: 16 commands as expected"
