"""What a user's program looks like to a type checker."""

import gymnasium
import numpy as np

import gradus_rl
from gradus_rl import figures, statistics
from gradus_rl.sb3 import DQN, PPO, evaluate_policy
from gradus_rl.text import TextModel, grpo


def train(steps: int) -> PPO:
    model = PPO("MlpPolicy", "CartPole-v1", n_steps=64, learning_rate=lambda progress: 3e-4 * progress).learn(steps)
    assert model.n_steps == 64
    return PPO.load("first", env=gymnasium.make("CartPole-v1")) if steps < 0 else model


def compare(scores: dict[str, list[float]]) -> float:
    figure = figures.intervals(scores, statistic=statistics.mean)
    figure.save("intervals.svg")
    return statistics.probability_of_improvement(scores["a"], scores["b"]).low


def brief(completions: list[str]) -> list[float]:
    return [1.0 / (1 + len(completion)) for completion in completions]


def write() -> list[str]:
    model: TextModel = grpo(["a", "b"], brief, max_new_tokens=4, steps=2000)
    return model.generate(["a"])


world = gradus_rl.GradusEnv("cartpole")
action, _ = train(1000).predict(np.zeros(4), deterministic=True)
mean, deviation = evaluate_policy(DQN("MlpPolicy", world), "CartPole-v1")
