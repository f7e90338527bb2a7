#!/usr/bin/env python3
"""Measures the GRPO of TRL and of Gradus in turn, on the same models and batches, and prints one table of medians.

    python3 benches/peers/text.py

README.md in this folder describes what is compared. `speed.py --only text` does the same.
"""

from install import HERE
from measure import Row, Side, main

# name, layers, width, heads, feed-forward width
MODELS = [("0.1 M", 2, 64, 4, 176), ("1 M", 4, 128, 4, 352)]
# prompts, completions per prompt
BATCHES = [(32, 8), (8, 8)]
# candidates for TRL's fastest variant, which depends on model and batch
VARIANTS = [[], ["--compile"], ["--micro-batches", 4]]
# TRL with every setting that made it faster, and with its defaults
USES = [
    ("tuned", [], VARIANTS),
    ("its defaults", ["--defaults"], [[]]),
    ("its defaults, one micro-batch", ["--defaults", "--micro-batches", 1], [[]]),
]


def rows() -> list[Row]:
    found = []
    for model, layers, width, heads, hidden in MODELS:
        for prompts, group in BATCHES:
            options = ["--layers", layers, "--width", width, "--heads", heads, "--feed-forward-width", hidden]
            options += ["--prompts", prompts, "--group", group]
            for note, more, variants in USES:
                row = Row(
                    kind="text",
                    what=f"GRPO, {model} parameters, {prompts} x {group}",
                    unit="tokens/s",
                    peer="trl",
                    of="trl",
                    note=note,
                    cores=2,
                    theirs=[HERE / "trl_grpo.py", *options, *more],
                    pattern=r"^trl .*: ([0-9.]+) tokens/s$",
                    variants=variants,
                    quick=["--updates", 2, "--warm-up", 1],
                    ours=Side(["gradus", "bench", "text", *options], r"^tokens/s: ([0-9.]+)$", quick=["--updates", 3]),
                )
                found.append(row)
    return found


if __name__ == "__main__":
    main(__doc__.split("\n\n")[0], rows())
