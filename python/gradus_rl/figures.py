"""Figures of comparisons, as SVG, PNG and PDF: learning curves, intervals and performance profiles.

A notebook shows a figure by itself; `save("figure.png")` writes one, and the ending says the format.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gradus_rl import statistics
from gradus_rl._core import Figure

__all__ = ["Figure", "intervals", "learning_curves", "performance_profiles"]

WINDOW = 100
SETTLED = 10


def _smooth(returns, window):
    sums = np.concatenate([[0.0], np.cumsum(returns)])
    ends = np.arange(1, len(returns) + 1)
    begins = np.maximum(ends - window, 0)
    return (sums[ends] - sums[begins]) / (ends - begins)


def learning_curves(
    runs: Mapping[str, Any],
    *,
    title: str = "",
    note: str = "",
    threshold: float | None = None,
    window: int = WINDOW,
    x_label: str = "environment steps",
    y_label: str | None = None,
) -> Figure:
    """Lines of returns over steps.

    Args:
        runs: for each name a run, or a list of runs with other seeds. A run is a pair of arrays, the steps at which episodes ended and their returns, or a table of
            `gradus_rl.runs.read_episodes`. Of several runs the line is the mean over runs, and the band has its 95 % bootstrap interval.
        threshold: a return that a dashed line shows.
        window: the number of episodes of the trailing mean.
    """
    if window < 1:
        raise ValueError(f"window: expected a number from 1 up, got {window}")
    series: list[Any] = []
    for name, all_runs in runs.items():
        if not len(all_runs):
            raise ValueError(f"{name}: expected one run or more, got none")
        is_one = hasattr(all_runs, "columns") or (len(all_runs) == 2 and np.ndim(all_runs[0]) == 1)
        pairs = []
        for run in [all_runs] if is_one else all_runs:
            steps, returns = (run["step"], run["return"]) if hasattr(run, "columns") else run
            steps, returns = np.asarray(steps, float), np.asarray(returns, float)
            if steps.shape != returns.shape or steps.ndim != 1 or not len(steps):
                raise ValueError(f"{name}: expected as many steps as returns, one or more, got {steps.shape} and {returns.shape}")
            first = SETTLED if len(steps) >= 2 * SETTLED and window >= SETTLED else 0  # the mean of few episodes jumps
            pairs.append((steps[first:], _smooth(returns, window)[first:]))
        if len(pairs) == 1:
            steps, means = pairs[0]
            kept = np.unique(np.linspace(0, len(steps) - 1, min(len(steps), 1000)).astype(int))
            series.append((name, list(zip(steps[kept].tolist(), means[kept].tolist())), [], []))
            continue
        if max(steps[0] for steps, _ in pairs) > min(steps[-1] for steps, _ in pairs):
            raise ValueError(f"{name}: expected runs with steps in common, got one that begins after another has ended")
        grid = np.linspace(max(steps[0] for steps, _ in pairs), min(steps[-1] for steps, _ in pairs), 50)
        table = np.stack([np.interp(grid, steps, means) for steps, means in pairs])
        estimates = [statistics.mean(column.tolist(), resamples=2000) for column in table.T]
        points = [(x, one.point) for x, one in zip(grid.tolist(), estimates)]
        series.append((name, points, [(x, one.low, one.high) for x, one in zip(grid.tolist(), estimates)], []))
    label = y_label or f"episode return, mean of the last {window}"
    return Figure.lines(title, note, x_label, label, series, "linear", None if threshold is None else (float(threshold), f"{threshold:.4g}"))


def intervals(
    scores: Mapping[str, Any],
    *,
    statistic: Callable[[Any], statistics.Estimate] = statistics.interquartile_mean,
    title: str = "",
    note: str = "",
    x_label: str = "score",
    reference: float | None = None,
) -> Figure:
    """A point with its 95 % interval for each name of `scores`, whose runs are faint dots. `scores[name]` are runs, or tasks x runs."""
    rows = []
    for name, runs in scores.items():
        estimate = statistic(runs)
        rows.append((name, *estimate, np.ravel(np.asarray(runs, float)).tolist()))
    return Figure.intervals(title, note, x_label, rows, reference)


def performance_profiles(scores: Mapping[str, Any], *, taus: Any = None, title: str = "", note: str = "", x_label: str = "score", resamples: int = 2000) -> Figure:
    """The share of runs above a score, over scores, with 95 % bands, for each name of `scores`."""
    if taus is None:
        every = np.concatenate([np.ravel(np.asarray(runs, float)) for runs in scores.values()])
        taus = np.linspace(every.min(), every.max(), 101)
    taus, series = [float(tau) for tau in taus], list[Any]()
    for name, runs in scores.items():
        estimates = statistics.performance_profile(runs, taus, resamples=resamples)
        points = [(tau, one.point) for tau, one in zip(taus, estimates)]
        series.append((name, points, [(tau, one.low, one.high) for tau, one in zip(taus, estimates)], []))
    return Figure.lines(title, note, x_label, "share of runs above", series, "linear", None)
