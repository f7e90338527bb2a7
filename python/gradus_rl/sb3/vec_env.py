"""Environments of Gradus for the agents of Stable-Baselines3, stepped together: `stable_baselines3.PPO("MlpPolicy", GradusVecEnv("CartPole-v1", 8))`. Needs stable-baselines3."""

import time
from typing import Any

import gymnasium
import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from gradus_rl.vector import GradusVectorEnv


class GradusVecEnv(VecEnv):
    """Environments of Gradus as a VecEnv. The infos of an episode's end have its return and length, as those of a VecMonitor.

    Args:
        world: the name, as of `GradusEnv`.
        n_envs: how many.
        seed: of the first `reset`.
    """

    def __init__(self, world: str, n_envs: int = 1, seed: int | None = None) -> None:
        self.envs = GradusVectorEnv(world, n_envs, gymnasium.vector.AutoresetMode.SAME_STEP)
        self.render_mode = None
        super().__init__(n_envs, self.envs.single_observation_space, self.envs.single_action_space)
        self.world = self.envs.world
        self._actions: Any = None
        self._begin = time.time()
        self._returns, self._lengths = np.zeros(n_envs), np.zeros(n_envs, int)
        if seed is not None:
            self.seed(seed)

    def reset(self):
        """Begins new episodes. Returns their observations."""
        observations, _ = self.envs.reset(seed=self._seeds[0])
        self._reset_seeds()
        self._returns[:], self._lengths[:] = 0, 0
        return observations

    def step_async(self, actions):
        """Keeps the actions of the next step."""
        self._actions = actions

    def step_wait(self):
        """Takes the step."""
        actions = np.asarray(self._actions)
        observations, rewards, terminated, truncated, info = self.envs.step(actions)
        dones = terminated | truncated
        self._returns += rewards
        self._lengths += 1
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(dones):
            episode = {"r": float(self._returns[i]), "l": int(self._lengths[i]), "t": round(time.time() - self._begin, 6)}
            infos[i] = {"terminal_observation": info["final_obs"][i], "TimeLimit.truncated": bool(truncated[i] and not terminated[i]), "episode": episode}
            self._returns[i], self._lengths[i] = 0.0, 0
        return observations, rewards.astype(np.float32), dones, infos

    def close(self):
        """Closes the environments."""
        self.envs.close()

    def get_attr(self, attr_name, indices=None):
        """Returns an attribute, the same for all environments; `action_masks` is a function for each, if they have masks."""
        if attr_name == "action_masks":
            if self.envs._envs.action_masks() is None:
                raise AttributeError("action_masks: expected environments with masks, got others")
            return [lambda i=i: self.envs._envs.action_masks()[i] for i in self._get_indices(indices)]
        return [getattr(self.envs, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name, value, indices=None):
        """Is not supported."""
        raise AttributeError(f"{attr_name}: expected an attribute that can be set, but environments of Gradus have none")

    def env_method(self, method_name, *method_args, indices=None, **method_kwargs):
        """Is not supported but for `action_masks`, the masks of each environment."""
        if method_name != "action_masks":
            raise AttributeError(f"{method_name}: expected action_masks, because environments of a vector have no other method")
        masks = self.envs._envs.action_masks()
        return [None if masks is None else masks[i] for i in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class, indices=None):
        """Returns False for each: returns are recorded without a Monitor."""
        return [False for _ in self._get_indices(indices)]
