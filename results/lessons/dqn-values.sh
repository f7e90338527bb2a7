#!/usr/bin/env bash
# Trains the runs of dqn.toml again and writes the largest and the last of their estimated values to dqn/values.csv: a row for each run. Rows
# that are there are kept, so that it can be interrupted. Takes some minutes on one core.
set -euo pipefail
cd "$(dirname "$0")/../.."
cargo build --quiet
gradus=${GRADUS:-${CARGO_TARGET_DIR:-target}/debug/gradus}
table=results/lessons/dqn/values.csv
[ -f "$table" ] || echo 'agent,seed,largest,last' >"$table"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
row() { # NAME SEED SETTINGS...
  local name=$1 seed=$2
  shift 2
  grep -q "^$name,$seed," "$table" && return
  "$gradus" train dqn cartpole "$@" --seed "$seed" --threads 1 --out "$work/run" --quiet
  awk -F, -v name="$name" -v seed="$seed" '
    NR == 1 { for (i = 1; i <= NF; i++) if ($i == "train/q_value") column = i; next }
    $column != "" { last = $column; if (largest == "" || last + 0 > largest + 0) largest = last }
    END { print name "," seed "," largest "," last }' "$work/run/metrics.csv" >>"$table"
  rm -rf "$work/run"
}
for seed in $(seq 1 20); do
  row DQN "$seed"
  row "no target network" "$seed" --set dqn.target_update_interval=1
  row "buffer of 500" "$seed" --set dqn.buffer_size=500
done
