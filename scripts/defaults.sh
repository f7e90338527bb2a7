#!/usr/bin/env bash
# Counts how many of 20 seeds of each default preset reach a level, with the final policy: scripts/defaults.sh [SEEDS]
#
# For every line of results/defaults/presets.csv and every seed, trains as `gradus train AGENT ENVIRONMENT` does, evaluates greedy episodes with the seed 1, and adds a
# row to results/defaults/runs.csv. A row that is there is not made again, so the script can be stopped and continued. At the end it writes agents/presets/reached.csv, which
# the program reads. SEEDS are numbers [default: 1 to 20], or `table`, which only writes this file. GRADUS names the program. Settings of ours were chosen on other seeds.
set -euo pipefail
cd "$(dirname "$0")/../results/defaults"
gradus=${GRADUS:-../../target/debug/gradus}
seeds=("$@")
[ ${#seeds[@]} -gt 0 ] || mapfile -t seeds < <(seq 1 20)
[ "${seeds[0]}" != table ] || seeds=()
[ -e runs.csv ] || echo "agent,environment,preset,seed,steps,value" >runs.csv
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# the last column of presets.csv is a number of seconds for one seed, by which cheap presets come first
while IFS=, read -r agent environment preset measure _ episodes _; do
  for seed in "${seeds[@]}"; do
    grep -q "^$agent,$environment,$preset,$seed," runs.csv && continue
    rm -rf "$work/run"
    nice "$gradus" train "$agent" "$environment" --preset "$preset" --seed "$seed" --threads 1 --quiet --out "$work/run"
    steps=$(tail -n 1 "$work/run/metrics.csv" | cut -d, -f2)
    value=$("$gradus" eval "$work/run" --episodes "$episodes" --json | python3 -c '
import json, sys
evaluation = json.load(sys.stdin)
scores = {score["name"]: score["mean"] for score in evaluation.get("scores", [])}
print(round(scores[sys.argv[1]] if sys.argv[1] in scores else evaluation["mean"], 4))' "$measure")
    echo "$agent,$environment,$preset,$seed,$steps,$value" >>runs.csv
  done
done < <(tail -n +2 presets.csv | sort -t, -s -n -k7,7)

python3 - <<'END'
import csv, statistics

runs, rows = list(csv.DictReader(open("runs.csv"))), []
with open("../../agents/presets/reached.csv", "w") as file:
    file.write("agent,environment,preset,measure,level,steps,seeds,reached,median,least\n")
    for line in csv.DictReader(open("presets.csv")):
        key = (line["agent"], line["environment"], line["preset"])
        own = [run for run in runs if (run["agent"], run["environment"], run["preset"]) == key]
        if own:
            values = [float(run["value"]) for run in own]
            reached = sum(value >= float(line["level"]) for value in values)
            numbers = [own[0]["steps"], len(values), reached, round(statistics.median(values), 2), min(values)]
            row = [*key, line["measure"], line["level"], *map(str, numbers)]
            file.write(",".join(row) + "\n")
            steps, seeds, reached, median, least = row[5:]
            rows.append("| " + " | ".join([*row[:5], steps, reached, seeds, median, least]) + " |\n")
page = open("README.md").read()
before, rest = page.split("| --- |", 1)
head, rest = rest.split("\n", 1)
open("README.md", "w").write(before + "| --- |" + head + "\n" + "".join(rows) + rest[rest.index("<!--"):])
END
