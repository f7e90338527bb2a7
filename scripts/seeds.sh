#!/usr/bin/env bash
# Trains presets with several seeds: scripts/seeds.sh FOLDER [SECONDS | table]
#
# For every seed and every line of FOLDER/presets.csv, trains as `gradus train AGENT ENVIRONMENT` does, on one thread, evaluates greedy episodes with the seed 1, and adds a row
# to FOLDER/runs.csv, and rows to curves.csv. A row that is there is not made again, so the script can be stopped and continued; it stops by itself before a run for which the
# seconds of processor time that are left do not suffice [default: 28800, of all rows]. At the end, and with `table` alone, it writes summary.csv and, in README.md, its rows
# as the first table.
#
# SEEDS is the most seeds of a line [default: 10], and ONLY a regular expression that its line of presets.csv matches [default: every line]. GRADUS names the program, and
# GRADUS_PYTHON the Python of environments of Gymnasium.
set -euo pipefail
TIMEFORMAT='%U %S'
root=$(realpath "$(dirname "$0")/..")
cd "$1"
budget=${2:-28800}
most=${SEEDS:-10}
[ "$budget" != table ] || most=0
gradus=${GRADUS:-$root/target/debug/gradus}
[ -e runs.csv ] || echo "agent,environment,seed,steps,seconds,return,deviation" >runs.csv
[ -e curves.csv ] || echo "agent,environment,seed,step,return" >curves.csv
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# a Python that notes its processor time when it ends: a program does not wait for its last one
printf '#!/usr/bin/env bash\n"%s" "$@"\ncode=$?\ntimes >>"%s"\nexit "$code"\n' "${GRADUS_PYTHON:-python3}" "$work/times" >"$work/python"
chmod +x "$work/python"
export GRADUS_PYTHON=$work/python

for seed in $(seq 1 "$most"); do
  while IFS=, read -r agent environment episodes _; do
    grep -q "^$agent,$environment,$seed," runs.csv && continue
    # what this run takes is known from the first seed
    known=$(awk -F, -v a="$agent" -v e="$environment" '$1 == a && $2 == e { s = $5 } END { print s + 0 }' runs.csv)
    spent=$(awk -F, 'NR > 1 { s += $5 } END { print s + 0 }' runs.csv)
    if awk -v b="$budget" -v s="$spent" -v k="$known" 'BEGIN { exit !(s + k > b) }'; then continue; fi
    rm -rf "$work/run"
    # the processor time of the program and of its Python, which take turns: other programs do not lengthen it
    : >"$work/times"
    seconds=$( { time nice "$gradus" train "$agent" "$environment" --seed "$seed" --threads 1 --quiet --out "$work/run"; } 2>&1 >/dev/null | tail -n 1 | awk '{ print $1 + $2 }')
    case $environment in gym:*) sleep 5 ;; esac # the last Python ends after the program
    seconds=$(awk -F'[ms ]' -v s="$seconds" 'NR % 2 == 0 { s += 60 * $1 + $2 + 60 * $4 + $5 } END { print s }' "$work/times")
    value=$(nice "$gradus" eval "$work/run" --episodes "$episodes" --seed 1 --json)
    python3 - "$work/run" "$agent,$environment,$seed" "$value" "$seconds" <<'END'
import csv, json, sys

folder, key, value, seconds = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), float(sys.argv[4])
steps = int(list(csv.DictReader(open(f"{folder}/metrics.csv")))[-1]["time/total_timesteps"])
with open("runs.csv", "a") as file:
    file.write(f"{key},{steps},{seconds:.1f},{value['mean']:.4f},{value['std']:.4f}\n")
# twenty points: the mean return of the training episodes in each twentieth of the steps
parts = [[0.0, 0] for _ in range(20)]
for episode in csv.DictReader(open(f"{folder}/episodes.csv")):
    own = parts[min(19, (int(episode["step"]) - 1) * 20 // steps)]
    own[0] += float(episode["return"])
    own[1] += 1
with open("curves.csv", "a") as file:
    for part, (total, count) in enumerate(parts, 1):
        if count:
            file.write(f"{key},{part * steps // 20},{total / count:.4f}\n")
END
  done < <(tail -n +2 presets.csv | grep -E "${ONLY:-,}")
done

python3 - <<'END'
import csv, re, statistics

# columns of presets.csv after the first three, such as published returns, are columns of the summary
lines, runs = list(csv.DictReader(open("presets.csv"))), list(csv.DictReader(open("runs.csv")))
others = list(lines[0])[3:]
with open("summary.csv", "w") as file:
    file.write(",".join(["agent,environment,seeds,steps,median,lowest,highest,minutes", *others]) + "\n")
    for line in lines:
        own = [run for run in runs if (run["agent"], run["environment"]) == (line["agent"], line["environment"])]
        if own:
            returns = [float(run["return"]) for run in own]
            digits = 3 if "MiniGrid" in line["environment"] else 1
            minutes = statistics.median(float(run["seconds"]) for run in own) / 60
            numbers = [f"{number:.{digits}f}" for number in (statistics.median(returns), min(returns), max(returns))]
            beside = [f"{float(line[key]):.{digits}f}" if re.fullmatch(r"-?[0-9.]+", line[key]) else line[key] for key in others]
            name = line["environment"].removeprefix("gym:").removeprefix("minigrid/")
            file.write(",".join([line["agent"], name, str(len(own)), own[0]["steps"], *numbers, f"{minutes:.1f}", *beside]) + "\n")
try:
    head, page = open("README.md").read().split("\n| --- ", 1)
except FileNotFoundError:
    raise SystemExit
columns, rest = page.split("\n", 1)
rows = "".join("| " + " | ".join(row) + " |\n" for row in list(csv.reader(open("summary.csv")))[1:])
open("README.md", "w").write(f"{head}\n| --- {columns}\n{rows}{rest[rest.index('<!--'):]}")
END
