"""Figures of comparisons."""

import numpy as np
import pytest

from gradus_rl import figures


def test_figures_are_files_of_each_kind(tmp_path):
    random = np.random.default_rng(1)
    runs = [(np.arange(1, 301) * 20, np.arange(300) + random.normal(0, 5, 300)) for _ in range(3)]
    curves = figures.learning_curves({"PPO": runs, "A2C": runs[0]}, threshold=250, title="CartPole")
    scores = {"PPO": random.normal(1, 0.1, (2, 10)), "A2C": random.normal(0, 0.1, (2, 10))}
    for figure in (curves, figures.intervals(scores), figures.performance_profiles(scores)):
        svg = figure._repr_svg_()
        assert svg.startswith("<svg") and "PPO" in svg and "A2C" in svg
        for ending, first in (("svg", b"<svg"), ("png", b"\x89PNG"), ("pdf", b"%PDF")):
            figure.save(tmp_path / f"figure.{ending}")
            assert (tmp_path / f"figure.{ending}").read_bytes().startswith(first)


def test_wrong_input_is_one_sentence(tmp_path):
    with pytest.raises(ValueError, match="PPO: expected as many steps as returns"):
        figures.learning_curves({"PPO": (np.arange(3), np.arange(4))})
    with pytest.raises(ValueError, match="svg|png|pdf"):
        figures.intervals({"PPO": [1.0, 2.0]}).save(tmp_path / "figure.gif")
