"""Golden values for the statistics of comparisons, from rliable.

Writes tests/golden/rliable.json. Run it from the root of the repository, in a separate environment, because rliable's bootstrap (arch) does
not work with pandas 3:

    python -m pip install rliable==1.2.0 arch==7.2.0 "pandas<3"
    python scripts/golden/rliable_statistics.py

Written with rliable 1.2.0, arch 7.2.0, scipy 1.17.1, numpy 2.4.6 and pandas 2.3.3. rliable has its own random generator, so the ends of
intervals agree only within Monte-Carlo error. Each interval comes from 50 000 resamples, or from 20 000 for pairs of algorithms. The script takes a
few minutes.

The file is an array of cases. x and y are the final scores of two algorithms, [task][run]. aggregates are those of x, improvement is the probability
that x improves on y, and profile is the performance profile of x at the thresholds taus. curve has the scores [evaluation][task][run], and curve_iqm
their interquartile mean at each evaluation. An estimate is the point and the two ends of its interval; some profiles have points only.
"""

import json
from pathlib import Path

import numpy as np
from rliable import library, metrics

OUTPUT = Path(__file__).resolve().parents[2] / "tests" / "golden" / "rliable.json"
RESAMPLES = 50_000
RESAMPLES_OF_PAIRS = 20_000  # fewer, because each resample ranks all runs of every task
TAUS = [-0.5, 0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0, 1.5]


def aggregates(scores):
    return np.array([
        metrics.aggregate_iqm(scores),
        metrics.aggregate_median(scores),
        metrics.aggregate_mean(scores),
        metrics.aggregate_optimality_gap(scores),
    ])


def improvement(x, y):
    return np.array([metrics.probability_of_improvement(x, y)])


def interval(scores, func, resamples=RESAMPLES):
    """Returns points, lower ends and upper ends."""
    points, ends = library.get_interval_estimates({"x": scores}, func, reps=resamples)
    return np.stack([points["x"], *ends["x"]]).T.tolist()


def case(name, x, y, curve=None):
    """Returns a case. Shapes: x and y [run][task], curve [run][task][evaluation]."""
    result = {
        "name": name,
        "x": x.T.tolist(),
        "y": y.T.tolist(),
        "aggregates": dict(zip(["iqm", "median", "mean", "optimality_gap"], interval(x, aggregates))),
        "improvement": interval((x, y), improvement, RESAMPLES_OF_PAIRS)[0],
        "taus": TAUS,
        "profile": interval(x, lambda scores: library.score_distributions(scores, TAUS)) if name == "ten_by_ten"
        else [[value] for value in library.score_distributions(x, TAUS).tolist()],
    }
    if curve is not None:
        iqms = lambda scores: np.array([metrics.aggregate_iqm(scores[..., at]) for at in range(scores.shape[-1])])
        result["curve"] = curve.transpose(2, 1, 0).tolist()
        result["curve_iqm"] = interval(curve, iqms)
    return result


def main():
    rng = np.random.RandomState(2021)
    normal = lambda *shape: np.round(rng.normal(0.6, 0.4, shape), 6)
    curve = np.cumsum(np.round(rng.normal(0.1, 0.2, (6, 2, 5)), 6), axis=-1)
    tied = lambda *shape: np.round(rng.uniform(0, 1.2, shape), 1)
    cases = [
        case("ten_by_ten", normal(10, 10), normal(10, 10)),
        case("one_task", normal(7, 1), normal(7, 1) - 0.2, None),
        case("curve", normal(6, 2), normal(6, 2), np.round(curve, 6)),
        case("uneven_runs", normal(5, 3) * 3 - 1, normal(9, 3)),
        case("ties", tied(8, 4), tied(8, 4)),
        case("the_same", *[tied(4, 2)] * 2),
    ]
    lines = ["{\n" + ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in case.items()) + "\n}" for case in cases]
    OUTPUT.write_text("[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    main()
