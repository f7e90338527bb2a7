"""Evaluation of policies."""

from collections.abc import Callable
from typing import Any

import numpy as np

from gradus_rl.sb3 import worlds
from gradus_rl.sb3.arguments import ArgumentError


def evaluate_policy(
    model: Any, env: Any, n_eval_episodes: int = 10, deterministic: bool = True, render: bool = False, callback: Callable[..., Any] | None = None,
    reward_threshold: float | None = None, return_episode_rewards: bool = False, warn: bool = True,
) -> tuple[Any, Any]:  # fmt: skip
    """Plays episodes: the mean return and its standard deviation, or with `return_episode_rewards` the returns and lengths.

    `env` is a name, an environment, or a vector of Gymnasium's or of Stable-Baselines3's, whose environments share the episodes evenly. Returns and lengths are those
    that a Monitor noted, where there is one, as in Stable-Baselines3.
    """
    if render:
        raise ArgumentError("render: expected False, because pictures come from the environment's render_mode, got True")
    if isinstance(n_eval_episodes, bool) or not isinstance(n_eval_episodes, (int, np.integer)) or n_eval_episodes < 1:
        raise ArgumentError(f"n_eval_episodes: expected a whole number from 1 up, got {n_eval_episodes}")
    vector = worlds.steps_in_python(env)
    n = vector.num_envs
    left = [(n_eval_episodes + i) // n for i in range(n)]  # episodes of each environment
    observations = vector.reset(None)
    totals, steps = np.zeros(n), np.zeros(n, int)
    returns, lengths = [], []
    while any(left):
        actions, _ = model.predict(observations, deterministic=deterministic)
        observations, rewards, terminated, truncated, _, infos = vector.step(actions)
        totals += rewards
        steps += 1
        if callback is not None:
            callback(locals(), globals())
        for i in np.flatnonzero(terminated | truncated):
            if left[i]:
                noted = infos[i].get("episode", {"r": totals[i], "l": steps[i]})
                returns.append(float(noted["r"]))
                lengths.append(int(noted["l"]))
                left[i] -= 1
            totals[i], steps[i] = 0.0, 0
    if isinstance(env, str):
        vector.given[0].close()
    if reward_threshold is not None and np.mean(returns) < reward_threshold:
        raise AssertionError(f"reward_threshold: expected a mean return of {reward_threshold}, got {np.mean(returns):.2f}")
    return (returns, lengths) if return_episode_rewards else (float(np.mean(returns)), float(np.std(returns)))
