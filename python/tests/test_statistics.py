"""Statistics against formulas written here."""

import numpy as np
import pytest

from gradus_rl import statistics


def test_interquartile_mean():
    scores = np.random.default_rng(1).normal(size=(3, 8))
    estimate = statistics.interquartile_mean(scores, resamples=2000)
    assert estimate.point == pytest.approx(np.sort(scores.ravel())[6:18].mean())
    assert estimate.low < estimate.point < estimate.high
    assert statistics.mean([1.0, 2.0, 4.0]).point == pytest.approx(7 / 3)


def test_probability_of_improvement():
    x, y = [1.0, 2.0, 3.0], [0.0, 2.0, 2.5]
    expected = np.mean([(a > b) + 0.5 * (a == b) for a in x for b in y])
    assert statistics.probability_of_improvement(x, y, resamples=1000).point == pytest.approx(expected)
    assert [one.point for one in statistics.performance_profile([x], [1.5, 3.0], resamples=100)] == pytest.approx([2 / 3, 0.0])


def test_wrong_scores_are_one_sentence():
    with pytest.raises(ValueError, match="scores: expected finite numbers, got NaN for run 2 of task 1"):
        statistics.mean([1.0, float("nan")])


def test_wrong_levels_and_resamples_are_errors():
    for wrong, said in (({"level": 1.5}, "level: expected a number between 0 and 1, got 1.5"), ({"resamples": 0}, "resamples: expected at least 1, got 0")):
        with pytest.raises(ValueError, match=said):
            statistics.mean([1.0, 2.0, 3.0], **wrong)


def test_wrong_thresholds_are_errors():
    with pytest.raises(ValueError, match="gamma: expected a finite number, got NaN"):
        statistics.optimality_gap([1.0, 2.0], gamma=float("nan"))
    with pytest.raises(ValueError, match="taus: expected a finite number, got inf"):
        statistics.performance_profile([1.0, 2.0], [0.5, float("inf")])
