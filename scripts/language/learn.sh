#!/usr/bin/env bash
# Trains SmolLM2 with GRPO on language/tasks/four-to-ten-words.jsonl, with the preset and the seeds 1 to 3: scripts/language/learn.sh
#
# Adds a row to results/language/runs.csv for each seed that has none: tokens and seconds of the training, its largest memory in MB, and the share of right answers to the 232 test
# questions, sampled and greedy, before and after. Needs a program with the feature `language` (GRADUS, default target/release/gradus) and scripts/models.sh.
set -euo pipefail
cd "$(dirname "$0")/../.."
gradus=${GRADUS:-target/release/gradus}
world="chat:language/tasks/four-to-ten-words.jsonl?model=models/SmolLM2-135M-Instruct.Q4_1.gguf"
table=results/language/runs.csv
[ -e $table ] || echo "seed,tokens,seconds,megabytes,sampled_before,sampled_after,greedy_before,greedy_after" >$table
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# the share of right answers of a run
right() {
  "$gradus" eval "$1" --episodes 232 --json "${@:2}" | python3 -c 'import json, sys; print(round(json.load(sys.stdin)["mean"], 4))'
}

for seed in 1 2 3; do
  grep -q "^$seed," $table && continue
  rm -rf "$work"/*
  # a learning rate that changes nothing: the model itself
  "$gradus" train grpo "$world" --seed "$seed" --quiet --steps 64 --set optimiser.learning_rate=1e-20 --out "$work/before"
  before=$(right "$work/before" --sampled --seed "$seed"),$(right "$work/before")
  began=$(date +%s)
  /usr/bin/env python3 - "$gradus" train grpo "$world" --seed "$seed" --quiet --out "$work/after" <<'END' >"$work/memory"
import resource, subprocess, sys

subprocess.run(sys.argv[1:], check=True, stdout=sys.stderr)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 // 1000000)
END
  seconds=$(($(date +%s) - began))
  after=$(right "$work/after" --sampled --seed "$seed"),$(right "$work/after")
  tokens=$(tail -n 1 "$work/after/metrics.csv" | cut -d, -f2)
  echo "$seed,$tokens,$seconds,$(cat "$work/memory"),${before%,*},${after%,*},${before#*,},${after#*,}" >>$table
done
