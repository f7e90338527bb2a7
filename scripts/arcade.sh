#!/usr/bin/env bash
# Trains the presets of PQN, PPO and DQN in the five arcade games: scripts/arcade.sh [SECONDS | table]
#
# For every seed and every line of results/arcade/presets.csv, trains as `gradus train AGENT GAME` does, on one thread, evaluates greedy episodes with the seed 1, and adds a row to
# results/arcade/runs.csv, and rows to curves.csv. A row that is there is not made again, so the script can be stopped and continued; it stops by itself before a run for which the
# seconds of processor time that are left do not suffice [default: 28800, of all rows]. At the end, and with `table` alone, it writes summary.csv. SEEDS is the most seeds of a
# line [default: 10], and ONLY a regular expression that its line of presets.csv matches [default: every line]. GRADUS names the program.
set -euo pipefail
TIMEFORMAT='%U %S'
cd "$(dirname "$0")/../results/arcade"
budget=${1:-28800}
most=${SEEDS:-10}
[ "$budget" != table ] || most=0
gradus=${GRADUS:-../../target/debug/gradus}
[ -e runs.csv ] || echo "agent,environment,seed,steps,seconds,return,deviation" >runs.csv
[ -e curves.csv ] || echo "agent,environment,seed,step,return" >curves.csv
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for seed in $(seq 1 "$most"); do
  while IFS=, read -r agent environment episodes; do
    grep -q "^$agent,$environment,$seed," runs.csv && continue
    # what this run takes is known from the first seed
    known=$(awk -F, -v a="$agent" -v e="$environment" '$1 == a && $2 == e { s = $5 } END { print s + 0 }' runs.csv)
    spent=$(awk -F, 'NR > 1 { s += $5 } END { print s + 0 }' runs.csv)
    if awk -v b="$budget" -v s="$spent" -v k="$known" 'BEGIN { exit !(s + k > b) }'; then continue; fi
    rm -rf "$work/run"
    seconds=$( { time nice "$gradus" train "$agent" "$environment" --seed "$seed" --threads 1 --quiet --out "$work/run"; } 2>&1 >/dev/null | tail -n 1 | awk '{ print $1 + $2 }')
    value=$(nice "$gradus" eval "$work/run" --episodes "$episodes" --seed 1 --json)
    python3 - "$work/run" "$agent,$environment,$seed" "$value" "$seconds" <<'END'
import csv, json, sys

folder, key, value, seconds = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), float(sys.argv[4])
steps = int(list(csv.DictReader(open(f"{folder}/metrics.csv")))[-1]["time/total_timesteps"])
with open("runs.csv", "a") as file:
    file.write(f"{key},{steps},{seconds:.1f},{value['mean']:.4f},{value['std']:.4f}\n")
# twenty points: the mean return of the training episodes in each twentieth of the steps
sums = [[0.0, 0] for _ in range(20)]
for episode in csv.DictReader(open(f"{folder}/episodes.csv")):
    own = sums[min(19, (int(episode["step"]) - 1) * 20 // steps)]
    own[0] += float(episode["return"])
    own[1] += 1
with open("curves.csv", "a") as file:
    for part, (total, count) in enumerate(sums, 1):
        if count:
            file.write(f"{key},{part * steps // 20},{total / count:.4f}\n")
END
  done < <(tail -n +2 presets.csv | grep -E "${ONLY:-,}")
done

python3 - <<'END'
import csv, statistics

runs = list(csv.DictReader(open("runs.csv")))
with open("summary.csv", "w") as file:
    file.write("agent,environment,seeds,steps,median,lowest,highest,minutes\n")
    for line in csv.DictReader(open("presets.csv")):
        own = [run for run in runs if (run["agent"], run["environment"]) == (line["agent"], line["environment"])]
        if own:
            returns = [float(run["return"]) for run in own]
            minutes = statistics.median(float(run["seconds"]) for run in own) / 60
            numbers = [f"{number:.1f}" for number in (statistics.median(returns), min(returns), max(returns), minutes)]
            file.write(",".join([line["agent"], line["environment"], str(len(own)), own[0]["steps"], *numbers]) + "\n")
END
