"""The 10-armed testbed in NumPy, for the tests: mean rewards of the rules in chapter 2 of Sutton and Barto's textbook.

    venv/bin/python scripts/golden/numpy_testbed.py

The script writes tests/golden/testbed.json. The script and the Rust code implement the textbook independently. Their problems, noise and
random choices differ, so their results agree only within Monte-Carlo error. `settings` are the settings of a rule. `overall` is the mean reward
of all steps, `late` the mean reward of the last tenth of the steps, and `optimal` the share of pulls of the best arm in the last tenth. Each has
its standard error over problems.
"""

import json
from pathlib import Path

import numpy as np

OUT = Path(__file__).resolve().parents[2] / "tests" / "golden" / "testbed.json"
PROBLEMS, STEPS, ARMS = 2000, 1000, 10


def play(rng, mean=0.0, epsilon=0.0, initial=0.0, step=None, c=None, alpha=None, baseline=False):
    q = rng.normal(mean, 1.0, (PROBLEMS, ARMS))
    best, rows = q.argmax(axis=1), np.arange(PROBLEMS)
    estimates, counts, preferences = np.full(q.shape, initial), np.zeros(q.shape), np.zeros(q.shape)
    mean_reward = np.zeros(PROBLEMS)
    rewards, optimal = np.zeros((STEPS, PROBLEMS)), np.zeros((STEPS, PROBLEMS))
    for t in range(STEPS):
        if alpha is None:
            scores = estimates
            if c is not None:
                with np.errstate(divide="ignore", invalid="ignore"):
                    scores = np.where(counts == 0, np.inf, estimates + c * np.sqrt(np.log(t + 1) / counts))
            tied = scores == scores.max(axis=1, keepdims=True)
            actions = np.where(tied, rng.random(q.shape), -1.0).argmax(axis=1)
            actions = np.where(rng.random(PROBLEMS) < epsilon, rng.integers(ARMS, size=PROBLEMS), actions)
        else:
            weights = np.exp(preferences - preferences.max(axis=1, keepdims=True))
            pi = weights / weights.sum(axis=1, keepdims=True)
            actions = (pi.cumsum(axis=1) > rng.random((PROBLEMS, 1))).argmax(axis=1)
        reward = q[rows, actions] + rng.normal(size=PROBLEMS)
        counts[rows, actions] += 1
        if alpha is None:
            size = step if step is not None else 1.0 / counts[rows, actions]
            estimates[rows, actions] += size * (reward - estimates[rows, actions])
        else:
            compared = reward - (0.0 if not baseline else reward if t == 0 else mean_reward)
            direction = -pi
            direction[rows, actions] += 1.0
            preferences += alpha * compared[:, None] * direction
            mean_reward += (reward - mean_reward) / (t + 1)
        rewards[t], optimal[t] = reward, actions == best
    return rewards, optimal


def summary(numbers):
    per_problem = numbers.mean(axis=0)
    return [round(float(per_problem.mean()), 5), round(float(per_problem.std(ddof=1) / np.sqrt(PROBLEMS)), 5)]


def main():
    greedy = [dict(epsilon=epsilon) for epsilon in (0.0, 0.01, 0.1, 1 / 16)]
    greedy += [dict(epsilon=0.0, initial=5.0, step=0.1), dict(epsilon=0.1, step=0.1), dict(initial=1.0, step=0.1)]
    bounds = [dict(c=c) for c in (0.5, 1.0, 2.0)]
    gradient = [dict(alpha=alpha, baseline=baseline, mean=4.0) for alpha in (0.1, 0.4) for baseline in (True, False)]
    gradient += [dict(alpha=alpha, baseline=True) for alpha in (0.25, 2.0)]
    lines = []
    for number, settings in enumerate(greedy + bounds + gradient):
        rewards, optimal = play(np.random.default_rng(number), **settings)
        late = STEPS - STEPS // 10
        line = {"settings": settings, "overall": summary(rewards), "late": summary(rewards[late:]), "optimal": summary(optimal[late:])}
        lines.append(json.dumps(line))
        print(lines[-1], flush=True)
    OUT.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
