"""Writes critic/table.csv from the comparisons and from cost.csv: python3 results/lessons/critic-table.py

Equal seconds: the time that GRPO needs for all of its tokens. The reward of another agent is that of its last evaluation within the tokens that it
generates in this time, the mean over seeds.
"""

import csv
import pathlib
import statistics

here = pathlib.Path(__file__).parent / "critic"
costs = list(csv.DictReader(open(here / "cost.csv")))


def rate(task, size, agent):
    """Seconds of a token, the median of the repetitions."""
    own = [row for row in costs if (row["task"], row["size"], row["agent"]) == (task, size, agent)]
    return statistics.median(float(row["seconds"]) / float(row["tokens"]) for row in own)


def memory(task, size, agent):
    own = [row for row in costs if (row["task"], row["size"], row["agent"]) == (task, size, agent)]
    return statistics.median(float(row["mebibytes"]) for row in own)


names = {"100k": "small", "1m": "large"}
rows = ["task,size,agent,mebibytes,seconds_per_100k_tokens,tokens,reward,low,high,tokens_in_equal_seconds,reward_in_equal_seconds"]
for task in ["addition", "chain-sum"]:
    for size in ["100k", "1m"]:
        folder = here / f"{task}-{size}"
        summary = {row["agent"]: row for row in csv.DictReader(open(folder / "summary.csv")) if row["statistic"] == "mean"}
        results = list(csv.DictReader(open(folder / "results.csv")))
        agents = list(dict.fromkeys(row["agent"] for row in results))
        last = max(int(row["step"]) for row in results if row["agent"] == "GRPO")
        for agent in agents:
            tokens = min(last, last * rate(task, size, "GRPO") / rate(task, size, agent))
            at_the_time = []
            for seed in sorted({row["seed"] for row in results}):
                own = [row for row in results if (row["agent"], row["seed"]) == (agent, seed) and int(row["step"]) <= tokens]
                at_the_time.append(float(own[-1]["return"]))
            row = summary[agent]
            rows.append(
                f'{task},{names[size]},"{agent.removesuffix(", 256 prompts")}",{memory(task, size, agent):.0f},{100_000 * rate(task, size, agent):.3f},{last},{row["value"]},{row["low"]},{row["high"]},'
                f"{tokens:.0f},{statistics.mean(at_the_time):.6f}"
            )
(here / "table.csv").write_text("\n".join(rows) + "\n")
