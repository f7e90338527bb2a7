"""Writes a table of results for measurements of the analysis: python3 scripts/results-table.py AGENTS TASKS SEEDS EVALUATIONS > results.csv

The returns are random. They rise with the evaluations, repeat as means of 20 episodes do, and differ between agents. The tasks are Gradus's
environments as far as these suffice.
"""

import random
import sys

ENVIRONMENTS = [
    "cartpole", "acrobot", "mountain-car", "mountain-car-continuous", "pendulum",
    "frozen-lake", "cliff-walking", "taxi", "frozen-lake-8x8", "taxi-rainy",
]


def main():
    agents, tasks, seeds, evaluations = map(int, sys.argv[1:5])
    write = sys.stdout.write
    draw = random.Random(1)
    write("agent,env,seed,step,return,score,std,min,max,length\n")
    for agent in range(agents):
        for task in range(tasks):
            name = ENVIRONMENTS[task] if task < len(ENVIRONMENTS) else f"task-{task}"
            for seed in range(1, seeds + 1):
                for evaluation in range(evaluations):
                    done = evaluation / max(evaluations - 1, 1)
                    mean = min(500.0, max(9.0, 520 * done**0.5 - 15 * (agent % 4) - 5 * task + draw.gauss(0, 40)))
                    mean = round(mean * 20) / 20
                    write(f"Agent {agent},{name},{seed},{5000 * evaluation},{mean},{mean / 500},31.5,9,500,{mean}\n")


main()
