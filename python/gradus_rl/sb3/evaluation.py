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
    # the names of Stable-Baselines3, which callbacks read
    episode_count_targets, episode_counts = [(n_eval_episodes + i) // n for i in range(n)], np.zeros(n, int)
    is_monitored = worlds.is_monitored(vector)
    observations, states, episode_starts = vector.reset(None), None, np.ones(n, bool)
    current_rewards, current_lengths = np.zeros(n), np.zeros(n, int)
    returns, lengths = [], []
    while (episode_counts < episode_count_targets).any():
        actions, states = model.predict(observations, state=states, episode_start=episode_starts, deterministic=deterministic)
        new_observations, rewards, terminated, truncated, _, infos = vector.step(actions)
        dones = terminated | truncated
        current_rewards += rewards
        current_lengths += 1
        for i in range(n):
            if episode_counts[i] < episode_count_targets[i]:
                reward, done, info = rewards[i], dones[i], infos[i]
                episode_starts[i] = done
                if callback is not None:
                    callback(locals(), globals())
                if done:
                    # a Monitor does not note the end of a life
                    noted = info.get("episode") if is_monitored else {"r": current_rewards[i], "l": current_lengths[i]}
                    if noted is not None:
                        returns.append(float(noted["r"]))
                        lengths.append(int(noted["l"]))
                        episode_counts[i] += 1
                    current_rewards[i], current_lengths[i] = 0.0, 0
        observations = new_observations
    if isinstance(env, str):
        vector.given[0].close()
    if reward_threshold is not None and np.mean(returns) <= reward_threshold:
        raise AssertionError(f"reward_threshold: expected a mean return above {reward_threshold}, got {np.mean(returns):.2f}")
    return (returns, lengths) if return_episode_rewards else (float(np.mean(returns)), float(np.std(returns)))
