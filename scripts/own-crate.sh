#!/usr/bin/env bash
# Builds examples/own_crate, which is not part of this workspace, and checks that every command works with its environment and its agent. Then
# does the same with a crate that `gradus new` writes, and checks the presets of its folder.
#
#   scripts/own-crate.sh      PROGRAMS names the folder of what is built [default: a temporary folder]
set -euo pipefail
cd "$(dirname "$0")/../examples/own_crate"
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
target=$(realpath -m "${PROGRAMS:-$temporary/target}")
comparison=$PWD/compare.toml
repository=$(realpath ../..)

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
expect "awr on thermostat: default" "$own" list --presets
expect "awr on thermostat, 50176 steps" "$own" train awr thermostat --set awr.temperature=0.9 --out awr
expect "own_crate train --resume awr --steps 100352" "$own" train --resume awr
expect "from step 50176" "$own" train --resume awr --steps 60k
refuse "own_crate train --resume awr" "$own" train awr thermostat --out awr
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

expect "begin with: cd new-crate && cargo run -- train awr thermostat" "$own" new new-crate
(cd new-crate && CARGO_TARGET_DIR=$target cargo build --quiet)
own=$target/debug/new-crate
presets=$temporary/new-crate/presets
expect "awr on thermostat, 50176 steps" "$own" train awr thermostat --out new
mkdir -p "$presets/ppo/any"
echo "steps = 2_000" >"$presets/ppo/any/short.toml"
expect "ppo on thermostat, 2048 steps" "$own" train ppo thermostat --preset short --out short
echo "awr.temprature = 2" >"$presets/awr/thermostat/hot.toml"
expect "hot.toml: unknown setting" "$own" verify new # which needs no presets
refuse "hot.toml: unknown setting \`awr.temprature\`; did you mean \`awr.temperature\`" "$own" list
rm "$presets/awr/thermostat/hot.toml"
cp "$presets/ppo/any/short.toml" "$presets"
refuse "short.toml: expected a preset in AGENT/ENVIRONMENT/NAME.toml" "$own" list
rm "$presets/short.toml"
mkdir "$presets/awt"
refuse "did you mean \`awr\`" "$own" list
rmdir "$presets/awt"
mkdir "$presets/awr/thermostad"
refuse "did you mean \`thermostat\`" "$own" list
rmdir "$presets/awr/thermostad"
mkdir -p "$presets/dqn/any"
echo "steps = 2_000" >"$presets/dqn/any/default.toml"
refuse "default.toml: preset \`default\` of dqn on any: expected an unused name" "$own" list
mv "$presets" "$temporary/moved"
expect "warning: $presets: expected a folder of presets, got none" "$own" list
mv "$temporary/moved" "$presets"
rm -r "$presets/dqn"

# runs of one's own agent are made again after its code has changed, the others are kept
comparison=$temporary/new-crate/compare.toml
expect "6 made" "$own" compare "$comparison" --out again
expect "6 kept" "$own" compare "$comparison" --out again
sed -i 's/Steps(128)/Steps(64)/' new-crate/src/awr.rs
(cd new-crate && CARGO_TARGET_DIR=$target cargo build --quiet)
expect "6 made" "$own" compare "$comparison" --out again

# the program \`gradus\` does not have the agent
gradus=${CARGO_TARGET_DIR:-$repository/target}/debug/gradus
cargo build --quiet --locked --manifest-path "$repository/Cargo.toml"
expect "unknown agent \`awr\`; only a program that has this agent can read the run" "$gradus" verify new
refuse "unknown agent \`awr\`; only a program that has this agent can read the run" "$gradus" eval new
expect "new-crate play ." bash -c "'$own' export new --hub hub >/dev/null && cat hub/README.md"
echo "own crate: all commands as expected"
