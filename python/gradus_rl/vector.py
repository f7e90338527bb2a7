"""Many environments of Gradus for Gymnasium, stepped together."""

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from gradus_rl import _core
from gradus_rl.spaces import to_gymnasium

MODES = {AutoresetMode.NEXT_STEP: "next_step", AutoresetMode.SAME_STEP: "same_step", AutoresetMode.DISABLED: "disabled"}


class GradusVectorEnv(gymnasium.vector.VectorEnv):
    """Environments of Gradus in lockstep, without Python's lock while they step.

    Args:
        world: the name, as of `GradusEnv`.
        num_envs: how many.
        autoreset_mode: one of Gymnasium's three; `next_step` is Gymnasium's default.
        max_episode_steps: the environment's own limit, which is the only one that a vector has.

    Episodes follow from the seed of `reset`, and differ from those of `GradusEnv`.
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}

    def __init__(self, world: str, num_envs: int = 1, autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP, render_mode: str | None = None, max_episode_steps: int | None = None) -> None:
        if render_mode is not None:
            raise ValueError(f"render_mode: expected None, because vectors draw no pictures, got {render_mode}")
        mode = AutoresetMode(autoreset_mode)
        self.world = _core.World(world)
        if max_episode_steps not in (None, self.world.max_episode_steps):
            raise ValueError(f"max_episode_steps: expected {self.world.max_episode_steps}, the limit of {self.world.name}, because a vector has no other, got {max_episode_steps}")
        self.metadata = {**self.metadata, "autoreset_mode": mode}
        self.num_envs, self.render_mode = num_envs, render_mode
        self.single_observation_space, self.single_action_space = map(to_gymnasium, self.world.spaces())
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._envs = _core.VecEnv(world, num_envs, int(np.random.SeedSequence().generate_state(1, np.uint64)[0]), MODES[mode])
        width = int(np.prod(self.single_observation_space.shape or ()))
        self._rows = np.zeros((num_envs, width), np.float32)
        self._has_begun = False

    def _observations(self):
        if isinstance(self.single_observation_space, gymnasium.spaces.Discrete):
            return self._rows[:, 0].astype(np.int64)
        space = self.single_observation_space
        return self._rows.astype(space.dtype).reshape(self.num_envs, *space.shape)

    def _infos(self):
        masks = self._envs.action_masks()
        return {} if masks is None else {"action_mask": masks.astype(np.int8), "_action_mask": np.ones(self.num_envs, bool)}

    def reset(self, *, seed=None, options=None):
        """Begins new episodes; in the mode `disabled`, only those of `options["reset_mask"]` if it is given."""
        self._check_open("reset")
        mask = None if options is None else options.get("reset_mask")
        if mask is not None:
            if self.metadata["autoreset_mode"] != AutoresetMode.DISABLED:
                raise ValueError("reset_mask: expected the autoreset mode disabled, got another")
            if seed is not None:
                raise ValueError(f"seed: expected None with a reset_mask, because all environments follow from one seed, got {seed}")
            mask = np.asarray(mask)
            if mask.shape != (self.num_envs,) or mask.dtype != np.bool_ or not mask.any():
                raise ValueError(f"reset_mask: expected {self.num_envs} bools, one or more of them true, got {mask!r}")
            self._envs.begin_anew(mask)
        else:
            super().reset(seed=seed if seed is None or isinstance(seed, (int, np.integer)) else None)
            entropy = seed if seed is not None else int(self.np_random.integers(1 << 63))
            if not isinstance(entropy, (int, np.integer)):
                if len(entropy) != self.num_envs:
                    raise ValueError(f"seed: expected a number or {self.num_envs}, got {len(entropy)}")
                entropy = [int(self.np_random.integers(1 << 31)) if one is None else int(one) for one in entropy]
            self._envs.reset(int(np.random.SeedSequence(entropy).generate_state(1, np.uint64)[0]))
        self._envs.observe(self._rows)
        self._has_begun = True
        return self._observations(), self._infos()

    def step(self, actions):
        """Takes a step in each environment."""
        self._check_open("step")
        if not self._has_begun:
            raise gymnasium.error.ResetNeeded("step: expected `reset` before it, got none")
        space, n = self.single_action_space, self.num_envs
        if isinstance(space, gymnasium.spaces.MultiDiscrete):
            actions = np.ravel_multi_index(np.asarray(actions).T, space.nvec)
        kind = np.float32 if isinstance(space, gymnasium.spaces.Box) else np.int64
        if kind == np.int64 and not np.issubdtype(np.asarray(actions).dtype, np.integer):
            raise ValueError(f"actions: expected whole numbers, got {np.asarray(actions).dtype}")
        actions = np.ascontiguousarray(actions, kind).reshape(n, -1) if kind == np.float32 else np.ascontiguousarray(actions, kind)
        rewards, terminations, truncations = np.zeros(n), np.zeros(n, bool), np.zeros(n, bool)
        ended = self._envs.step(actions, self._rows, rewards, terminations, truncations)
        infos = self._infos()
        if self.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP:
            for env, _, _, row, mask in ended:
                final = int(row[0]) if row.size == 1 and self.single_observation_space.shape == () else row.astype(self.single_observation_space.dtype)
                final = final if isinstance(final, int) else final.reshape(self.single_observation_space.shape)
                info = {} if mask is None else {"action_mask": mask.astype(np.int8)}
                infos = self._add_info(infos, {"final_obs": final, "final_info": info}, env)
        return self._observations(), rewards, terminations, truncations, infos

    def _check_open(self, method):
        if self.closed:
            raise gymnasium.error.ClosedEnvironmentError(f"{method}: expected an open vector, got a closed one")

    def close_extras(self, **kwargs):
        """Forgets the environments."""
