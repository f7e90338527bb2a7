"""Golden values for comparisons of pairs, from scipy, statsmodels and rliable.

Writes tests/golden/pairs.json. Run it from the root of the repository, in the environment of rliable_statistics.py:

    python scripts/golden/scipy_pairs.py

Written with scipy 1.17.1, statsmodels 0.15.0, rliable 1.2.0, arch 7.2.0 and numpy 2.4.6. The file is an array of cases. x and y are the scores of two
algorithms, [task][run]. mann_whitney is a p-value. It comes from scipy.stats.mannwhitneyu (one task; exact, or asymptotic for many runs), from
scipy.stats.permutation_test (few runs with ties), or from an exact permutation test of U (several tasks; its normal approximation for many runs). sign_flips is the p-value of scipy's exact
paired permutation test of the mean difference. paired is the mean difference with the ends of scipy.stats.bootstrap's percentile interval.
task_bootstrap has rliable's aggregates with task_bootstrap=True. The last case, holm, has p-values and their correction by statsmodels.
"""

import json
from itertools import combinations, product
from pathlib import Path

import numpy as np
from rliable import library, metrics
from scipy import stats
from statsmodels.stats.multitest import multipletests

OUTPUT = Path(__file__).resolve().parents[2] / "tests" / "golden" / "pairs.json"


def u(x, y):
    """Returns the statistic U of the Mann-Whitney test; a tie counts one half."""
    return np.sum(x[:, None] > y[None, :]) + np.sum(x[:, None] == y[None, :]) / 2


def exact_stratified(x, y):
    """Returns the p-value of the permutation test that exchanges runs within tasks, by enumeration."""
    tasks = []
    for a, b in zip(x, y):
        pooled, n = np.concatenate([a, b]), len(a)
        everything = range(len(pooled))
        tasks.append([u(pooled[list(c)], pooled[[i for i in everything if i not in c]]) for c in combinations(everything, n)])
    sums = np.array([sum(choice) for choice in product(*tasks)])
    observed = sum(u(a, b) for a, b in zip(x, y))
    less, greater = np.mean(sums <= observed + 1e-9), np.mean(sums >= observed - 1e-9)
    return min(1.0, 2 * min(less, greater))


def asymptotic_stratified(x, y):
    """Returns the p-value of the same sum of U by its normal approximation: its mean and variance are sums over the tasks, and the correction for continuity counts once."""
    observed, mean, variance = 0.0, 0.0, 0.0
    for a, b in zip(x, y):
        n, m = len(a), len(b)
        observed, mean = observed + u(a, b), mean + n * m / 2
        variance += n * m * (n + m + 1) / 12 * stats.tiecorrect(stats.rankdata(np.concatenate([a, b])))
    return min(1.0, 2 * stats.norm.sf((abs(observed - mean) - 0.5) / np.sqrt(variance)))


def paired(x, y):
    difference = np.mean(x - y, axis=0)
    flips = stats.permutation_test((difference,), np.mean, permutation_type="samples", n_resamples=np.inf)
    ends = stats.bootstrap((difference,), np.mean, method="percentile", n_resamples=50_000, random_state=1).confidence_interval
    return {"sign_flips": float(flips.pvalue), "paired": [float(difference.mean()), float(ends.low), float(ends.high)]}


def aggregates(scores):
    return np.array([metrics.aggregate_iqm(scores), metrics.aggregate_median(scores), metrics.aggregate_mean(scores)])


def main():
    rng = np.random.RandomState(7)
    normal = lambda shift, *shape: np.round(rng.normal(shift, 1.0, shape), 6)
    tied = lambda *shape: np.round(rng.uniform(0, 1, shape), 1)
    cases = []

    def case(name, x, y, mann_whitney, task_bootstrap=False):
        result = {"name": name, "x": x.tolist(), "y": y.tolist(), "mann_whitney": float(mann_whitney)}
        if x.shape == y.shape and x.shape[0] == 1 and x.shape[1] <= 12:  # enumerates 2^n assignments of signs
            result |= paired(x, y)
        if task_bootstrap:
            points, ends = library.get_interval_estimates({"x": x.T}, aggregates, reps=50_000, task_bootstrap=True)
            result["task_bootstrap"] = np.stack([points["x"], *ends["x"]]).T.tolist()
        cases.append(result)

    exact = lambda x, y: stats.mannwhitneyu(x[0], y[0], method="exact").pvalue
    asymptotic = lambda x, y: stats.mannwhitneyu(x[0], y[0], method="asymptotic").pvalue
    permuted = lambda x, y: stats.permutation_test((x[0], y[0]), u, vectorized=False, n_resamples=np.inf).pvalue
    for name, x, y, test in [
        ("ten_and_ten", normal(0.8, 1, 10), normal(0.0, 1, 10), exact),
        ("five_and_five", normal(3.0, 1, 5), normal(0.0, 1, 5), exact),
        ("uneven", normal(0.3, 1, 12), normal(0.0, 1, 7), exact),
        ("ties", tied(1, 7), tied(1, 7), permuted),
        ("many", normal(0.2, 1, 45), normal(0.0, 1, 40), asymptotic),
        ("many_ties", tied(1, 50), tied(1, 50) + 0.1, asymptotic),
    ]:
        case(name, x, y, test(x, y))
    x, y = tied(3, 3), tied(3, 4) + 0.2
    case("three_tasks", x, y, exact_stratified(x, y))
    x, y = normal(0.5, 8, 6), normal(0.0, 8, 6)
    two = (x[:2, :3], y[:2, :3])
    case("tasks_resampled", x, y, np.nan, task_bootstrap=True)
    cases[-1].pop("mann_whitney")
    case("two_tasks", *two, exact_stratified(*two))
    rng = np.random.RandomState(8)
    x, y = np.round(rng.uniform(0.05, 1.05, (3, 40)), 1), np.round(rng.uniform(0, 1, (3, 35)), 1)
    case("three_tasks_many", x, y, asymptotic_stratified(x, y))
    p = [0.011, 0.04, 0.04, 0.2, 0.003, 0.9]
    holm = {"name": "holm", "p": p, "holm": multipletests(p, method="holm")[1].tolist()}
    lines = ["{\n" + ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in case.items()) + "\n}" for case in cases + [holm]]
    OUTPUT.write_text("[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    main()
