#!/usr/bin/env bash
# The results of results/gymnasium: scripts/gymnasium.sh [SECONDS | table]
#
# Trains the presets of rl-zoo in environments of Gymnasium, as scripts/seeds.sh says, whose variables it takes; GRADUS_PYTHON needs `gymnasium[box2d]` and `minigrid`. Then writes
# bridge-summary.csv, from the measurements in bridge.csv, and its table in README.md.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/seeds.sh results/gymnasium "$@"
cd results/gymnasium
python3 - <<'END'
import csv, statistics
from collections import defaultdict

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
before, page = open("README.md").read().rsplit("\n| --- ", 1)
columns, rest = page.split("\n", 1)
open("README.md", "w").write(f"{before}\n| --- {columns}\n{''.join(bridge)}{rest[rest.index('<!--'):]}")
END
