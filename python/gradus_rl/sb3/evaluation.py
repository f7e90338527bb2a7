"""Evaluation of policies."""

from typing import Any

import gymnasium
import numpy as np


def evaluate_policy(model: Any, env: Any, n_eval_episodes: int = 10, deterministic: bool = True, return_episode_rewards: bool = False) -> tuple[Any, Any]:
    """Plays episodes: the mean return and its standard deviation, or with `return_episode_rewards` the returns and lengths."""
    env = gymnasium.make(env) if isinstance(env, str) else env
    returns, lengths = [], []
    for _ in range(n_eval_episodes):
        observation, _ = env.reset()
        total, length, is_over = 0.0, 0, False
        while not is_over:
            action, _ = model.predict(observation, deterministic=deterministic)
            observation, reward, terminated, truncated, _ = env.step(action)
            total, length, is_over = total + float(reward), length + 1, terminated or truncated
        returns.append(total)
        lengths.append(length)
    return (returns, lengths) if return_episode_rewards else (float(np.mean(returns)), float(np.std(returns)))
