#!/usr/bin/env bash
# Makes the sweeps of results/sensitivity, about two core-hours, and copies their tables and figures there. A call that was stopped continues.
#
#   scripts/sensitivity.sh [FOLDER OF THE RUNS]     [default: runs/sensitivity]
set -euo pipefail
cd "$(dirname "$0")/.."
runs=${1:-runs/sensitivity}
gradus=${GRADUS:-target/debug/gradus}
for name in ppo sac dqn; do
  "$gradus" sweep "results/sensitivity/$name.toml" --out "$runs/$name"
  mkdir -p "results/sensitivity/$name"
  for file in responses.csv effects.csv response.svg choices.svg effects.svg; do
    [ ! -e "$runs/$name/$file" ] || cp "$runs/$name/$file" "results/sensitivity/$name/"
  done
done
