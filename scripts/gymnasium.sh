#!/usr/bin/env bash
# Trains the presets of rl-zoo in environments of Gymnasium: scripts/gymnasium.sh [SECONDS]
#
# For every seed and every line of results/gymnasium/presets.csv, trains as `gradus train AGENT ENVIRONMENT` does, on one thread, evaluates greedy episodes with the seed
# 1, and adds a row to results/gymnasium/runs.csv, and rows to curves.csv. A row that is there is not made again, so the script can be stopped and continued; it stops by
# itself before a run for which the seconds that are left do not suffice [default: 28800, of all rows]. Cheap lines get ten seeds, dear ones fewer: a line has a share of the
# budget. SEEDS is the most seeds of a line [default: 10]. GRADUS names the program and GRADUS_PYTHON the Python, which needs `gymnasium[box2d]` and `minigrid`.
set -euo pipefail
TIMEFORMAT=%R
cd "$(dirname "$0")/../results/gymnasium"
budget=${1:-28800}
gradus=${GRADUS:-../../target/debug/gradus}
[ -e runs.csv ] || echo "agent,environment,seed,steps,seconds,return,deviation" >runs.csv
[ -e curves.csv ] || echo "agent,environment,seed,step,return" >curves.csv
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for seed in $(seq 1 "${SEEDS:-10}"); do
  while IFS=, read -r agent environment _ _ episodes; do
    grep -q "^$agent,$environment,$seed," runs.csv && continue
    # what this run takes is known from the first seed
    known=$(awk -F, -v a="$agent" -v e="$environment" '$1 == a && $2 == e { s = $5 } END { print s + 0 }' runs.csv)
    spent=$(awk -F, 'NR > 1 { s += $5 } END { print s + 0 }' runs.csv)
    if awk -v b="$budget" -v s="$spent" -v k="$known" 'BEGIN { exit !(s + k > b) }'; then continue; fi
    rm -rf "$work/run"
    # the program and Python take turns, so that a second is about one of one core
    seconds=$( { time nice "$gradus" train "$agent" "$environment" --seed "$seed" --threads 1 --quiet --out "$work/run"; } 2>&1 >/dev/null | tail -n 1)
    value=$(nice "$gradus" eval "$work/run" --episodes "$episodes" --seed 1 --json)
    python3 - "$work/run" "$agent,$environment,$seed" "$value" "$seconds" <<'END'
import csv, json, sys

folder, key, value, seconds = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), float(sys.argv[4])
rows = list(csv.DictReader(open(f"{folder}/metrics.csv")))
steps = int(rows[-1]["time/total_timesteps"])
with open("runs.csv", "a") as file:
    file.write(f"{key},{steps},{seconds:.1f},{value['mean']:.4f},{value['std']:.4f}\n")
# twenty points: the mean return of the training episodes in each twentieth of the steps
episodes = list(csv.DictReader(open(f"{folder}/episodes.csv")))
with open("curves.csv", "a") as file:
    for part in range(1, 21):
        own = [float(e["return"]) for e in episodes if (part - 1) * steps / 20 < int(e["step"]) <= part * steps / 20]
        if own:
            file.write(f"{key},{part * steps // 20},{sum(own) / len(own):.4f}\n")
END
  done < <(tail -n +2 presets.csv)
done
