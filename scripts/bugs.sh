#!/usr/bin/env bash
# Checks the failure set: every planted bug and every wrong fix is refused, and every right form is accepted. With a folder, draws the figures
# and writes separation.csv to it: trains each agent with its bug, and the right one, with twenty seeds, some half an hour on one core.
#
# PROGRAMS names the folder of what is built [default: a temporary folder].
#
#   scripts/bugs.sh
#   scripts/bugs.sh results/bugs
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
cargo build --quiet
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export CARGO_TARGET_DIR=${PROGRAMS:-$dir/target}

# a student's folder, with all variants in the place of the agents that were opened
"$root/target/debug/gradus" course new "$dir/eve" >"$dir/log" 2>&1 || { cat "$dir/log"; exit 1; }
cd "$dir/eve"
"$root/target/debug/gradus" course bug list >"$dir/log" 2>&1 || { cat "$dir/log"; exit 1; }
tail -1 "$dir/log"

# what a student does: a bug that is as it was, a change that is wrong, the right one, and the file as it was
expect() { # CODE TEXT COMMAND...
  local code=$1 text=$2 said got=0
  shift 2
  said=$("$root/target/debug/gradus" course bug "$@" 2>&1) || got=$?
  if [ "$got" != "$code" ] || ! grep -qF -- "$text" <<<"$said"; then
    echo "bugs: \`bug $*\`: expected the code $code and '$text', got $got and: $said" >&2
    exit 1
  fi
}
expect 2 'expected bugs/src/bug_3.rs in this program, got none' 3 --check
expect 2 'expected bugs/src/bug_3.rs, got none' 3 --hint
expect 0 'Bug 3, PPO: ' 3
expect 1 'nothing has been changed yet' 3 --check
sed -i 's/ + entropy_coefficient \* pi.entropy;/;/' bugs/src/bug_3.rs
expect 1 'Not yet. The first difference from the right agent: ' 3 --check
sed -i 's/ + value_coefficient \* value_loss;/ + value_coefficient * value_loss - entropy_coefficient * pi.entropy;/' bugs/src/bug_3.rs
expect 0 'Bug 3 is found' 3 --check
expect 0 '1 of 24 found.' list
expect 0 '1. ' 3 --hint
expect 0 '2. ' 3 --hint
echo 'this does not compile' >>bugs/src/bug_3.rs
expect 101 'error: expected one of' 3 --check
expect 0 'bugs/src/bug_3.rs is as it was' 3 --reset
expect 1 'nothing has been changed yet' 3 --check
expect 0 '0 of 24 found.' list
expect 2 'expected a bug from 1 to 24, got `25`' 25
(cd bugs && cargo run --quiet -- train bug-3 cartpole --steps 2k --out runs/3 --quiet && cargo run --quiet -- explain runs/3 >/dev/null)

cd bugs
cargo run --quiet --bin bug -- variants .
began=$SECONDS
cargo build --quiet --bin bugs
echo "bugs: all variants built in $((SECONDS - began)) s"
if [ $# -gt 0 ]; then
  cargo run --quiet --bin bugs -- bug curves "$root/$1"
else
  began=$SECONDS
  cargo run --quiet --bin bugs -- bug test >"$dir/log" || { cat "$dir/log"; exit 1; }
  echo "bugs: $(grep -c ': right' "$dir/log") right forms accepted, $(grep -vc ': right' "$dir/log") bugs and wrong fixes refused, in $((SECONDS - began)) s"
fi
