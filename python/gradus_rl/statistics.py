"""Statistics of comparisons, with intervals by the stratified bootstrap (Agarwal et al., arXiv 2108.13264).

Scores are a list of runs, or a table with a list of runs for each task: `scores[task][run]`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gradus_rl import _core


class Estimate(NamedTuple):
    """A statistic, and the ends of its interval."""

    point: float
    low: float
    high: float


def _table(scores):
    array = np.asarray(scores, float)
    if array.ndim not in (1, 2):
        raise ValueError(f"scores: expected runs, or tasks x runs, got {array.ndim} dimensions")
    return np.atleast_2d(array).tolist()


def _interval(scores, statistic, gamma, resamples, level, seed):
    return Estimate(*_core.interval(_table(scores), statistic, gamma, resamples, level, seed))


def interquartile_mean(scores: Any, *, resamples: int = 50_000, level: float = 0.95, seed: int = 1) -> Estimate:
    """The mean of the middle half of all runs."""
    return _interval(scores, "interquartile_mean", 0.0, resamples, level, seed)


def mean(scores: Any, *, resamples: int = 50_000, level: float = 0.95, seed: int = 1) -> Estimate:
    """The mean over all runs and tasks."""
    return _interval(scores, "mean", 0.0, resamples, level, seed)


def median(scores: Any, *, resamples: int = 50_000, level: float = 0.95, seed: int = 1) -> Estimate:
    """The median of the tasks' means."""
    return _interval(scores, "median", 0.0, resamples, level, seed)


def optimality_gap(scores: Any, *, gamma: float = 1.0, resamples: int = 50_000, level: float = 0.95, seed: int = 1) -> Estimate:
    """The mean amount by which runs miss `gamma`."""
    return _interval(scores, "optimality_gap", gamma, resamples, level, seed)


def probability_of_improvement(x: Any, y: Any, *, resamples: int = 50_000, level: float = 0.95, seed: int = 1) -> Estimate:
    """The probability that a run of x is better than one of y on the same task; ties count half."""
    return Estimate(*_core.improvement(_table(x), _table(y), resamples, level, seed))


def performance_profile(scores: Any, taus: Sequence[float], *, resamples: int = 50_000, level: float = 0.95, seed: int = 1) -> list[Estimate]:
    """The share of runs with a score above each of `taus`, as a list of estimates."""
    return [Estimate(*one) for one in _core.profile(_table(scores), [float(tau) for tau in taus], resamples, level, seed)]
