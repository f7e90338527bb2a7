#!/usr/bin/env bash
# Trains the presets of rl-zoo in environments of Gymnasium: scripts/gymnasium.sh [SECONDS | table]
#
# For every seed and every line of results/gymnasium/presets.csv, trains as `gradus train AGENT ENVIRONMENT` does, on one thread, evaluates greedy episodes with the seed
# 1, and adds a row to results/gymnasium/runs.csv, and rows to curves.csv. A row that is there is not made again, so the script can be stopped and continued; it stops by
# itself before a run for which the seconds that are left do not suffice [default: 28800, of all rows]. Cheap lines get ten seeds, dear ones fewer: a line has a share of the
# budget. At the end, and with `table` alone, it writes summary.csv, bridge-summary.csv and the tables of README.md. SEEDS is the most seeds of a line [default: 10], and
# ONLY a regular expression that its line of presets.csv matches [default: every line]. GRADUS names the program and GRADUS_PYTHON the Python, which needs `gymnasium[box2d]` and `minigrid`.
set -euo pipefail
TIMEFORMAT='%U %S'
cd "$(dirname "$0")/../results/gymnasium"
budget=${1:-28800}
most=${SEEDS:-10}
[ "$budget" != table ] || most=0
gradus=${GRADUS:-../../target/debug/gradus}
[ -e runs.csv ] || echo "agent,environment,seed,steps,seconds,return,deviation" >runs.csv
[ -e curves.csv ] || echo "agent,environment,seed,step,return" >curves.csv
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# a Python that notes its processor time when it ends: a program does not wait for its last one
python=${GRADUS_PYTHON:-python3}
printf '#!/usr/bin/env bash\n"%s" "$@"\ncode=$?\ntimes >>"%s"\nexit "$code"\n' "$python" "$work/times" >"$work/python"
chmod +x "$work/python"
export GRADUS_PYTHON=$work/python

for seed in $(seq 1 "$most"); do
  while IFS=, read -r agent environment _ _ episodes; do
    grep -q "^$agent,$environment,$seed," runs.csv && continue
    # what this run takes is known from the first seed
    known=$(awk -F, -v a="$agent" -v e="$environment" '$1 == a && $2 == e { s = $5 } END { print s + 0 }' runs.csv)
    spent=$(awk -F, 'NR > 1 { s += $5 } END { print s + 0 }' runs.csv)
    if awk -v b="$budget" -v s="$spent" -v k="$known" 'BEGIN { exit !(s + k > b) }'; then continue; fi
    rm -rf "$work/run"
    # the processor time of the program and of its Python, which take turns: other programs do not lengthen it
    : >"$work/times"
    seconds=$( { time nice "$gradus" train "$agent" "$environment" --seed "$seed" --threads 1 --quiet --out "$work/run"; } 2>&1 >/dev/null | tail -n 1 | awk '{ print $1 + $2 }')
    sleep 5 # the last Python ends after the program
    seconds=$(awk -F'[ms ]' -v s="$seconds" 'NR % 2 == 0 { s += 60 * $1 + $2 + 60 * $4 + $5 } END { print s }' "$work/times")
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
  done < <(tail -n +2 presets.csv | grep -E "${ONLY:-,}")
done

python3 - <<'END'
import csv, statistics
from collections import defaultdict

runs, rows = list(csv.DictReader(open("runs.csv"))), []
with open("summary.csv", "w") as file:
    file.write("agent,environment,seeds,steps,median,lowest,highest,minutes,published,deviation\n")
    for line in csv.DictReader(open("presets.csv")):
        own = [run for run in runs if (run["agent"], run["environment"]) == (line["agent"], line["environment"])]
        if not own:
            continue
        returns = [float(run["return"]) for run in own]
        digits = 3 if "MiniGrid" in line["environment"] else 1
        minutes = statistics.median(float(run["seconds"]) for run in own) / 60
        numbers = [f"{number:.{digits}f}" for number in (statistics.median(returns), min(returns), max(returns))]
        published = [f"{float(line[key]):.{digits}f}" for key in ("published", "deviation")]
        row = [line["agent"], line["environment"].removeprefix("gym:").removeprefix("minigrid/"), str(len(own)), own[0]["steps"], *numbers, f"{minutes:.1f}", *published]
        file.write(",".join(row) + "\n")
        rows.append("| " + " | ".join(row) + " |\n")
pairs = defaultdict(lambda: defaultdict(list))
for line in csv.DictReader(open("bridge.csv")):
    pairs[line["environment"]][line["program"]].append((float(line["rate"]), float(line["microseconds_of_processors_per_step"])))
bridge = []
with open("bridge-summary.csv", "w") as file:
    kinds = ("one", "two", "sync", "async")
    file.write("environment,one,two,sync,async,one_to_sync,two_to_sync,one_to_async,one_us,two_us,sync_us,async_us\n")
    for environment, of in pairs.items():
        if "sync" not in of:
            continue
        rate, used = ({kind: [pair[i] for pair in all] for kind, all in of.items()} for i in (0, 1))
        ratio = lambda own, other: f"{statistics.median(a / b for a, b in zip(rate[own], rate[other])):.2f}"
        ratios = [ratio(*pair) for pair in (("one", "sync"), ("two", "sync"), ("one", "async"))]
        row = [environment, *(f"{statistics.median(rate[kind]):.0f}" for kind in kinds), *ratios, *(f"{statistics.median(used[kind]):.0f}" for kind in kinds)]
        file.write(",".join(row) + "\n")
        bridge.append("| " + " | ".join(row) + " |\n")
page = open("README.md").read().split("\n| --- ")
assert len(page) == 3, "README.md: expected two tables"
for i, table in ((1, rows), (2, bridge)):
    head, rest = page[i].split("\n", 1)
    page[i] = head + "\n" + "".join(table) + rest[rest.index("<!--"):]
open("README.md", "w").write("\n| --- ".join(page))
END
