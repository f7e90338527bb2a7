"""Checks that Weights & Biases reads runs offline: `python scripts/wandb_check.py GRADUS`, where GRADUS is the program. Needs wandb.

Two ways are checked: what W&B finds in the event file while a run is trained beside it, and `scripts/to_wandb.py`. Both must give the last
row of metrics.csv, as W&B's own program prints it from the files that it would upload.
"""

import csv
import glob
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import wandb

SCRIPT = Path(__file__).with_name("to_wandb.py").resolve()


def summary(folder):
    """Returns the last values in W&B's file, by name."""
    [file] = glob.glob(f"{folder}/wandb/offline-run-*/*.wandb")
    program = Path(sys.executable).with_name("wandb")
    printed = subprocess.run([program, "leet", "inspect", "--summary", file], capture_output=True, text=True, check=True).stdout
    pairs = re.findall(r"^  ([a-z_]+/\S+) +(\S+)$", printed.partition("\nsummary\n")[2], re.MULTILINE)
    return {name: float(value) for name, value in pairs}


def check(got, metrics, what):
    with open(metrics, newline="") as file:
        *_, last = csv.DictReader(line for line in file if not line.startswith("#"))
    expected = {name: float(cell) for name, cell in last.items() if "/" in name and cell}
    expected.pop("time/total_timesteps")
    missing = [name for name in expected if name not in got]
    assert not missing, f"{what}: expected {missing}, got {sorted(got)}"
    for name, value in expected.items():
        assert abs(got[name] - value) <= 1e-5 * abs(value) + 1e-12, f"{what}: {name}: expected {value}, got {got[name]}"
    print(f"{what}: {len(expected)} metrics agree with the last row of metrics.csv")


def main():
    program = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["WANDB_SILENT"] = "true"
        beside = Path("beside")
        beside.mkdir()
        with wandb.init(project="gradus", mode="offline", dir=beside) as run:
            run._tensorboard_callback("run")  # what `sync_tensorboard` calls when a program opens an event file
            subprocess.run([program, "train", "ppo", "cartpole", "--steps", "20k", "--out", "run", "--quiet"], check=True)
        check(summary(beside), "run/metrics.csv", "the event file")
        copied = Path("copied")
        copied.mkdir()
        environment = {**os.environ, "WANDB_DIR": str(copied)}
        subprocess.run([sys.executable, SCRIPT, "run"], check=True, env=environment)
        check(summary(copied), "run/metrics.csv", "scripts/to_wandb.py")


main()
