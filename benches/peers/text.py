#!/usr/bin/env python3
"""TRL's GRPO and ours on the same models and batches, one after the other, and one table of medians.

    python3 benches/peers/text.py

README.md beside this file says what is compared. Without PYTHON, the interpreter that has TRL, it makes one in a folder of its own.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "gradus" / "peers"
CORES = 2

# name, layers, width, heads, feed-forward width
MODELS = [("0.1 M", 2, 64, 4, 176), ("1 M", 4, 128, 4, 352)]
# prompts, completions of each
BATCHES = [(32, 8), (8, 8)]
# what TRL may be fastest with, by model and batch
VARIANTS = [[], ["--compile"], ["--micro-batches", 4]]


def output(command: list, **options) -> str:
    """What a command says, or its complaint."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stderr.strip()}")
    return done.stdout


def python_with_trl() -> str:
    if given := os.environ.get("PYTHON"):
        return given
    requirements = (HERE / "requirements.txt").read_text()
    python, done = CACHE / "bin" / "python", CACHE / "installed.txt"
    if not done.exists() or done.read_text() != requirements:
        print(f"installing TRL in {CACHE}", file=sys.stderr)
        output([sys.executable, "-m", "venv", CACHE])
        output([python, "-m", "pip", "install", "-r", HERE / "requirements.txt"])
        done.write_text(requirements)
    return str(python)


def our_binary() -> str:
    if given := os.environ.get("GRADUS"):
        return given
    # what `cargo run` runs
    print("building gradus", file=sys.stderr)
    subprocess.run(["cargo", "build", "--quiet", "--bin", "gradus"], cwd=ROOT, check=True)
    return str(Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug" / "gradus")


def measure(command: list, options: list, pattern: str) -> float:
    text = output([*command, *options])
    found = re.findall(pattern, text, re.MULTILINE)
    if not found:
        sys.exit(f"{command[0]}: expected {pattern}, got {text.strip() or 'nothing'}")
    return float(found[-1])


def say(task: tuple, peer: str, what: str):
    print("{}, {} x {}, {}: {} tokens/s".format(*task, peer, what), file=sys.stderr)


def shown(speeds: list[float]) -> str:
    """The median, and between which two all are, to three digits."""
    numbers = [float(f"{x:.3g}") for x in (statistics.median(speeds), min(speeds), max(speeds))]
    return "{:,.0f} ({:,.0f} to {:,.0f})".format(*numbers).replace(",", " ")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--repetitions", type=int, default=5, help="measurements of each, in turn")
    parser.add_argument("--only", choices=["trl", "gradus"], help="measure one of the two")
    args = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        # both on the same cores, and both take as many threads
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])

    peers = {}
    if args.only != "gradus":
        peers["trl"] = ([python_with_trl(), "-W", "ignore", HERE / "trl_grpo.py"], r"^trl .*: ([0-9.]+) tokens/s$")
    if args.only != "trl":
        peers["gradus"] = ([our_binary(), "bench", "text"], r"^tokens/s: ([0-9.]+)$")

    tasks = {}
    for model, layers, width, heads, hidden in MODELS:
        for prompts, group in BATCHES:
            options = ["--layers", layers, "--width", width, "--heads", heads, "--feed-forward-width", hidden]
            tasks[model, prompts, group] = options + ["--prompts", prompts, "--group", group]
    best = {task: [] for task in tasks}
    if "trl" in peers:
        command, pattern = peers["trl"]
        for task, options in tasks.items():
            tried = [measure(command, options + variant, pattern) for variant in VARIANTS]
            best[task] = VARIANTS[tried.index(max(tried))]
            say(task, "trl", " ".join(f"[{' '.join(map(str, v))}] {speed:.0f}" for v, speed in zip(VARIANTS, tried)))

    speeds = {task: {peer: [] for peer in peers} for task in tasks}
    for repetition in range(args.repetitions):
        for task, options in tasks.items():
            # who goes first changes, so that a machine that speeds up or slows down favours nobody
            for peer in list(peers)[:: 1 if repetition % 2 == 0 else -1]:
                command, pattern = peers[peer]
                speed = measure(command, options + (best[task] if peer == "trl" else []), pattern)
                speeds[task][peer].append(speed)
                say(task, peer, f"{speed:.0f}")

    print("| parameters | prompts x completions | TRL, tokens/s | Gradus, tokens/s | ratio of medians | ratios of pairs |")
    print("| --- | --- | --- | --- | --- | --- |")
    for (model, prompts, group), of in speeds.items():
        cells = [shown(of[peer]) if peer in of else "" for peer in ("trl", "gradus")]
        if len(of) == 2:
            pairs = [ours / theirs for theirs, ours in zip(of["trl"], of["gradus"])]
            cells += [f"{statistics.median(of['gradus']) / statistics.median(of['trl']):.2f}", f"{min(pairs):.2f} to {max(pairs):.2f}"]
        else:
            cells += ["", ""]
        print(f"| {model} | {prompts} x {group} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
