"""Records the results of Gymnasium's wrappers and running statistics for the tests.

    venv/bin/python scripts/golden/gymnasium_wrappers.py

The script writes tests/golden/wrappers.json. All seeds are fixed, so the same package versions write the same bytes.
"""

import json
from pathlib import Path

import gymnasium
import numpy as np
from gymnasium import wrappers
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.wrappers.utils import RunningMeanStd
from gymnasium.wrappers.vector import NormalizeReward

OUT = Path(__file__).resolve().parents[2] / "tests" / "golden" / "wrappers.json"
ACTIONS = [1, 1, 0, 1, 0, 0, 0, 1, 1]
LIMIT = 7


def floats(row):
    """Returns the shortest decimals that read back as these f32 numbers."""
    return [float(str(number)) for number in np.asarray(row, dtype=np.float32).ravel()]


def statistics():
    """Returns batches of rows, with the running statistics after each batch."""
    rng = np.random.default_rng(1)
    running, batches = RunningMeanStd(shape=(3,), dtype=np.float64), []
    for size in (1, 2, 7, 40, 3):
        # columns of very different scale, the last one far from 0
        rows = (rng.normal(size=(size, 3)) * [1e-3, 5.0, 0.5] + [0.0, -2.0, 1e3]).astype(np.float32)
        running.update(rows.astype(np.float64))
        after = {"count": running.count, "mean": running.mean.tolist(), "variance": running.var.tolist()}
        batches.append({"rows": floats(rows), **after})
    return batches


class Script(VectorEnv):
    """A vector environment with scripted rewards and episode ends. It resets an environment within the step that ends its episode."""

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}

    def __init__(self, rewards, terminated, truncated):
        self.num_envs, self.t = rewards.shape[1], 0
        self.script = rewards, terminated, truncated
        self.observation_space = self.single_observation_space = gymnasium.spaces.Box(0, 1, (1,))

    def step(self, actions):
        rewards, terminated, truncated = (array[self.t] for array in self.script)
        self.t += 1
        return np.zeros((self.num_envs, 1)), rewards, terminated, truncated, {}


def rewards():
    """Returns a rollout of three environments whose episodes terminate, truncate or both, and the statistics of its discounted returns."""
    rng = np.random.default_rng(2)
    steps, envs, discount = 60, 3, 0.9
    paid = rng.integers(-8, 20, size=(steps, envs)) / 8
    terminated, truncated = rng.random((steps, envs)) < 0.1, rng.random((steps, envs)) < 0.1
    env = NormalizeReward(Script(paid, terminated, truncated), gamma=discount)
    for _ in range(steps):
        _, normalised, *_ = env.step(None)
    known = env.return_rms
    return {
        "discount": discount,
        "rewards": paid.T.tolist(),
        "terminated": terminated.T.tolist(),
        "truncated": truncated.T.tolist(),
        "count": float(known.count),
        "mean": float(known.mean),
        "variance": float(known.var),
        "last_normalised": normalised.tolist(),
    }


MEAN, VARIANCE = [0.01, -0.2, 0.03, 0.1], [0.0004, 1.7, 0.0009, 0.8]


def normalised(env):
    env = wrappers.NormalizeObservation(env)
    env.update_running_mean = False
    env.obs_rms.mean, env.obs_rms.var = np.array(MEAN), np.array(VARIANCE)
    return env


WRAPPERS = {
    "frame_stack": lambda env: wrappers.FrameStackObservation(env, 3),
    "time_aware": wrappers.TimeAwareObservation,
    "time_fraction": lambda env: wrappers.TimeAwareObservation(env, normalize_time=True),
    "normalised": normalised,
    "clip_reward": lambda env: wrappers.ClipReward(env, -0.5, 0.25),
    "stacked_time": lambda env: wrappers.FrameStackObservation(wrappers.TimeAwareObservation(env), 2),
}


def play(wrap):
    """Plays wrapped CartPole from a known state until the time limit."""
    env = wrap(gymnasium.make("CartPole-v1", max_episode_steps=LIMIT))
    first, _ = env.reset(seed=3)
    start = [float(number) for number in env.unwrapped.state]
    observations, paid, truncated = [floats(first)], [], False
    for action in ACTIONS[:LIMIT]:
        observation, reward, terminated, truncated, _ = env.step(action)
        assert not terminated
        observations.append(floats(observation))
        paid.append(float(reward))
    assert truncated
    space = env.observation_space
    bound = lambda row: [str(number) for number in np.asarray(row, dtype=np.float32).ravel()]
    return {"start": start, "observations": observations, "rewards": paid, "low": bound(space.low), "high": bound(space.high)}


def one_hot():
    env = wrappers.FlattenObservation(gymnasium.make("FrozenLake-v1", is_slippery=False))
    rows = [env.reset(seed=1)[0]] + [env.step(action)[0] for action in (2, 2, 1)]
    return [floats(row) for row in rows]


def main():
    golden = {
        "statistics": statistics(),
        "rewards": rewards(),
        "limit": LIMIT,
        "actions": ACTIONS[:LIMIT],
        "mean": MEAN,
        "variance": VARIANCE,
        "cartpole": {name: play(wrap) for name, wrap in WRAPPERS.items()},
        "one_hot": one_hot(),
    }
    OUT.write_text(json.dumps(golden, separators=(",", ":")) + "\n", encoding="utf-8", newline="\n")
    print(f"{OUT.name}: {OUT.stat().st_size} bytes")


if __name__ == "__main__":
    main()
