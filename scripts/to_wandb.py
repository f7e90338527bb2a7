"""Copies the settings and metrics of run folders to Weights & Biases, without a network:

    pip install wandb
    python scripts/to_wandb.py runs/ppo-cartpole-1 runs/ppo-cartpole-2 --project gradus
    wandb sync wandb/offline-run-*      # uploads them, if and when you want

Every run folder becomes a run of the same name. `--online` uploads at once. Reads only config.toml and metrics.csv.
"""

import argparse
import csv
import math
import sys
import tomllib
from pathlib import Path

try:
    import wandb
except ImportError:
    sys.exit("error: the package wandb is missing: pip install wandb")

STEPS = "time/total_timesteps"


def rows(folder):
    """Yields the numbers of every row of metrics.csv; cells without a finite number are left out."""
    with open(folder / "metrics.csv", newline="") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            numbers = {name: float(cell) for name, cell in row.items() if cell}
            yield {name: number for name, number in numbers.items() if math.isfinite(number)}


def copy(folder, project, mode):
    settings = tomllib.loads((folder / "config.toml").read_text())
    with wandb.init(project=project, name=folder.name, mode=mode, config=settings, group=settings["environment"], job_type=settings["agent"]) as run:
        run.define_metric(STEPS)
        run.define_metric("*", step_metric=STEPS)
        for row in rows(folder):
            run.log(row)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR", help="run folder")
    parser.add_argument("--project", default="gradus", help="project of Weights & Biases [default: gradus]")
    parser.add_argument("--online", action="store_true", help="upload at once")
    arguments = parser.parse_args()
    for folder in arguments.folders:
        if not (folder / "config.toml").is_file() or not (folder / "metrics.csv").is_file():
            sys.exit(f"error: {folder}: expected a run folder with config.toml and metrics.csv")
    for folder in arguments.folders:
        copy(folder, arguments.project, "online" if arguments.online else "offline")


if __name__ == "__main__":
    main()
