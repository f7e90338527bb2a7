"""Measures Gradus and its peers in turn, each in its own process, and prints one table of medians and ratios."""

import argparse
import csv
import datetime
import os
import platform
import re
import statistics
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from install import Missing, gradus, output, processor, python, version


class Side(NamedTuple):
    """How the peer or Gradus is run. The command `gradus` is our binary. The last match of `pattern` in the output is the speed."""

    command: list
    pattern: str
    # candidates for the fastest variant: options, or NAME=value for environment variables
    variants: list = [[]]
    # options of a short run that only checks that everything works
    quick: list = []

    def run(self, variant: list, cores: int, quick: bool) -> float:
        named = [part for part in variant if re.match(r"[A-Z_]+=", str(part))]
        options = [part for part in variant if part not in named] + (self.quick if quick else [])
        environment = os.environ | dict(part.split("=", 1) for part in named)
        pin = {"preexec_fn": lambda: os.sched_setaffinity(0, chosen(cores))} if hasattr(os, "sched_setaffinity") else {}
        # some peers write into the working folder
        with tempfile.TemporaryDirectory() as folder:
            program = gradus() if self.command[0] == "gradus" else self.command[0]
            text = output([program, *self.command[1:], *options], cwd=folder, env=environment, **pin)
        found = re.findall(self.pattern, text, re.MULTILINE)
        if not found:
            raise Missing(f"expected {self.pattern}, got {text.strip()[-200:] or 'nothing'}")
        return float(found[-1])


class Row(NamedTuple):
    """One peer on one task. `peer` is its name in install.py; `of` is the package whose version is printed."""

    kind: str
    what: str
    unit: str
    peer: str
    of: str
    note: str
    cores: int
    theirs: list
    pattern: str
    variants: list
    quick: list
    ours: Side

    def title(self) -> str:
        return f"{self.of} {version(self.peer, self.of)}" + (f", {self.note}" if self.note else "")


def chosen(cores: int) -> list[int]:
    """Returns the first cores that this process may run on."""
    return sorted(os.sched_getaffinity(0))[:cores]


def best(side: Side, cores: int, quick: bool) -> list:
    """Runs each variant once and returns the fastest."""
    if quick or len(side.variants) == 1:
        return side.variants[0]
    tried = [side.run(variant, cores, quick) for variant in side.variants]
    shown = (f"[{' '.join(map(str, variant))}] {figure(speed)}" for variant, speed in zip(side.variants, tried))
    print(f"    {os.path.basename(str(side.command[0]))}: {', '.join(shown)}", file=sys.stderr)
    return side.variants[tried.index(max(tried))]


def figure(speed: float) -> str:
    """Formats a speed with three digits."""
    return f"{float(f'{speed:.3g}'):,.0f}".replace(",", " ") if speed >= 100 else f"{speed:.3g}"


def spread(speeds: list[float]) -> str:
    """Formats the median and the range."""
    middle, low, high = (figure(of(speeds)) for of in (statistics.median, min, max))
    return middle if len(speeds) == 1 else f"{middle} ({low} to {high})"


COLUMNS = ["kind", "what", "unit", "peer", "variant", "date", "peer_speed", "gradus_speed", "ratio"]


class Pair:
    """The two sides of a row, each with its fastest variant, and their measurements."""

    def __init__(self, row: Row, quick: bool, known: list[dict]):
        self.row, self.quick, self.title, self.sides = row, quick, row.title(), None
        mine = [line for line in known if (line["what"], line["peer"]) == (row.what, self.title)]
        self.variant = mine[-1]["variant"] if mine else ""
        self.speeds = [float(line["peer_speed"]) for line in mine], [float(line["gradus_speed"]) for line in mine]

    def prepare(self):
        """Chooses the fastest variants."""
        row = self.row
        print(f"{row.what}: {self.title}", file=sys.stderr)
        sides = Side([python(row.peer), "-W", "ignore", *row.theirs], row.pattern, row.variants, row.quick), row.ours
        self.sides = [(side, best(side, row.cores, self.quick)) for side in sides]
        side, variant = self.sides[0]
        self.variant = " ".join(map(str, variant)) if len(side.variants) > 1 else ""

    def measure(self, repetition: int, to: Path | None):
        # the order alternates, so that a machine that speeds up or slows down favours neither side
        for i in (0, 1) if repetition % 2 == 0 else (1, 0):
            side, variant = self.sides[i]
            self.speeds[i].append(side.run(variant, self.row.cores, self.quick))
        theirs, ours = (figure(speeds[-1]) for speeds in self.speeds)
        print(f"{self.row.what}: {self.title}: {theirs}, gradus {ours} {self.row.unit}", file=sys.stderr)
        if to is not None:
            a, b = (float(f"{speeds[-1]:.3g}") for speeds in self.speeds)
            with to.open("a", newline="") as file:
                today = datetime.date.today()
                csv.writer(file).writerow([self.row.kind, self.row.what, self.row.unit, self.title, self.variant, today, f"{a:g}", f"{b:g}", f"{b / a:.3g}"])

    def cells(self) -> list[str]:
        theirs, ours = self.speeds
        ratios = [b / a for a, b in zip(theirs, ours)]
        ratio, pairs = statistics.median(ours) / statistics.median(theirs), ""
        if len(ratios) > 1:
            pairs = f" ({figure(min(ratios))} to {figure(max(ratios))})"
        what = f"{self.row.what}, {self.row.unit}"
        return [what, self.title + (f" `{self.variant}`" if self.variant else ""), spread(theirs), spread(ours), f"{figure(ratio)}{pairs}"]


def table(rows: list[Row], repetitions: int, quick: bool, to: Path | None):
    if to is not None and not to.exists():
        to.write_text(",".join(COLUMNS) + "\n")
    known = [] if to is None else list(csv.DictReader(to.open(newline="")))
    pairs, missing = [], {}

    def attempt(row: Row, action):
        """Runs `action`; if the peer cannot be measured, notes why."""
        try:
            action()
        except Missing as why:
            missing[f"{row.of}{', ' * bool(row.note)}{row.note} ({row.what})"] = str(why)
            print(f"left out: {row.of}: {why}", file=sys.stderr)

    for row in rows:
        attempt(row, lambda: pairs.append(Pair(row, quick, known)))
    for repetition in range(repetitions):
        for pair in pairs:
            if len(pair.speeds[1]) == repetition:
                attempt(pair.row, lambda: (pair.sides or pair.prepare(), pair.measure(repetition, to)))

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    print(f"{processor()}, {cores} cores, {platform.platform()}; {output([gradus(), '--version']).strip()}; {datetime.date.today()}\n")
    print("| what | peer | peer's speed | Gradus' speed | ratio |")
    print("| --- | --- | --- | --- | --- |")
    for pair in pairs:
        if len(pair.speeds[0]) == len(pair.speeds[1]) >= repetitions:
            print(f"| {' | '.join(pair.cells())} |")
    if missing:
        print("\nLeft out:\n")
    for name, why in missing.items():
        print(f"- {name}: {why}")


def main(description: str, rows: list[Row]):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--repetitions", type=int, default=5, help="measurements of the peer and of Gradus, in turn")
    kinds = ", ".join(sorted({row.kind for row in rows}))
    parser.add_argument("--only", nargs="+", metavar="NAME", help=f"peers, or kinds of rows: {kinds}")
    parser.add_argument("--to", type=Path, help="a CSV file for every measurement, with three digits; those that it has are not made again, so the script can be stopped and continued")
    parser.add_argument("--quick", action="store_true", help="one short run of each, to check that everything works; the speeds mean nothing")
    args = parser.parse_args()
    if args.quick and args.to:
        parser.error("--to: expected none with --quick, whose speeds mean nothing")
    names = {name for row in rows for name in (row.kind, row.peer, row.of)}
    if unknown := set(args.only or []) - names:
        parser.error(f"--only: expected {', '.join(sorted(names))}, got {', '.join(sorted(unknown))}")
    asked = [row for row in rows if args.only is None or {row.kind, row.peer, row.of} & set(args.only)]
    table(asked, 1 if args.quick else args.repetitions, args.quick, args.to)
