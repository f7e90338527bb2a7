"""Agents with the interface of Stable-Baselines3: `from gradus_rl.sb3 import PPO` in place of `from stable_baselines3 import PPO`.

Constructors have the arguments and defaults of Stable-Baselines3 2.9. An environment is a name, an environment or a vector of Gymnasium's, or a `VecEnv` of
Stable-Baselines3's. A name such as `CartPole-v1` that Gradus knows is the environment of Gradus, with the same dynamics; it trains without Python. What is not supported raises an error that
names it.
"""

from gradus_rl.sb3.evaluation import evaluate_policy
from gradus_rl.sb3.off_policy import DDPG, DQN, SAC, TD3
from gradus_rl.sb3.on_policy import A2C, PPO

__all__ = ["A2C", "DDPG", "DQN", "PPO", "SAC", "TD3", "evaluate_policy"]
