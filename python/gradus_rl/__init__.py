"""Reinforcement learning to teach with and to publish from: the environments, agents and statistics of Gradus.

    import gymnasium, gradus_rl
    env = gymnasium.make("gradus/CartPole-v1")

    from gradus_rl.sb3 import PPO
    model = PPO("MlpPolicy", "CartPole-v1").learn(50_000)

The import registers the environments; `gymnasium.make("gradus_rl:gradus/CartPole-v1")` imports the package by itself.
"""

from gradus_rl._core import Agent, Policy, World, __version__, worlds
from gradus_rl.registration import register_envs
from gradus_rl.vector import GradusVectorEnv
from gradus_rl.world import GradusEnv

register_envs()

__all__ = ["Agent", "GradusEnv", "GradusVectorEnv", "Policy", "World", "__version__", "register_envs", "worlds"]
