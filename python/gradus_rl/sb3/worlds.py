"""Environments: those of Gradus, which train without Python, and all others."""

import gymnasium
import numpy as np

from gradus_rl import _core
from gradus_rl.sb3.arguments import ArgumentError
from gradus_rl.spaces import fault, stacked
from gradus_rl.vector import GradusVectorEnv
from gradus_rl.world import GradusEnv

SAME_STEP = gymnasium.vector.AutoresetMode.SAME_STEP


def native(env):
    """Returns the name of the world of Gradus that `env` has, and how many environments of it; None for others."""
    if isinstance(env, str):
        known = {_core.World(name).gymnasium_id: name for name in _core.worlds()}
        world = known.get(env) if not env.startswith("gradus/") else gymnasium.spec(env).kwargs.get("world")
        return None if world is None else (world, 1)
    if type(env) is GradusVectorEnv and env.metadata["autoreset_mode"] == SAME_STEP:
        return env.world.name, env.num_envs
    if type(env).__module__ == "gradus_rl.sb3.vec_env":
        return env.world.name, env.num_envs
    if type(env).__module__.startswith("stable_baselines3.") and type(env).__name__ == "DummyVecEnv":
        all = [_bare(one) for one in env.envs]
        is_ours = all and all.count(all[0]) == len(all) and all[0] is not None
        return (all[0], len(all)) if is_ours else None
    world = _bare(env)
    return None if world is None else (world, 1)


def _bare(env):
    """Returns the world's name of an environment of Gradus without wrappers that change or write something."""
    own = getattr(env, "unwrapped", None)
    limit = own.world.max_episode_steps if type(own) is GradusEnv else None
    checks = gymnasium.wrappers.OrderEnforcing, gymnasium.wrappers.PassiveEnvChecker
    while isinstance(env, checks) or _is_monitor(env) or (isinstance(env, gymnasium.wrappers.TimeLimit) and env._max_episode_steps == limit):
        env = env.env
    return env.world.name if type(env) is GradusEnv else None


def _is_monitor(env):
    """Whether this is a Monitor of Stable-Baselines3's that writes no file: an agent of Gradus knows returns and lengths by itself."""
    return type(env).__module__ == "stable_baselines3.common.monitor" and type(env).__name__ == "Monitor" and env.results_writer is None


def made(world):
    """Returns an environment of Gradus, with pictures."""
    has_pictures = "rgb_array" in _core.World(world).render_modes()
    return gymnasium.make("gradus/World-v0", world=world, render_mode="rgb_array" if has_pictures else None)


def is_monitored(vector):
    """Whether a Monitor of Stable-Baselines3's notes the ends of episodes, which are others if a wrapper around it ends lives."""
    given = vector.given
    if isinstance(given, list):
        return all(_has(env, "env", "Monitor") for env in given)
    if isinstance(given, gymnasium.vector.VectorEnv):
        envs = getattr(given.unwrapped, "envs", [])
        return len(envs) > 0 and all(_has(env, "env", "Monitor") for env in envs)
    if _has(given, "venv", "VecMonitor") or _has(given, "venv", "GradusVecEnv"):
        return True
    if type(given).__module__.startswith("stable_baselines3."):
        from stable_baselines3.common.monitor import Monitor

        return all(given.env_is_wrapped(Monitor))
    return False


def _has(env, inner, name):
    """Whether an environment, or one in it, is of a class of this name or of one that is derived from it."""
    while env is not None and all(one.__name__ != name for one in type(env).__mro__):
        env = getattr(env, inner, None)
    return env is not None


def unpacked(info, n):
    """Returns the infos of each of `n` environments from those of a vector of Gymnasium's, whose arrays have masks beside them. What is not of each environment is left out."""
    infos = [{} for _ in range(n)]
    for key, value in info.items():
        parts = unpacked(value, n) if isinstance(value, dict) else value
        if not key.startswith("_") and isinstance(parts, (list, tuple, np.ndarray)) and len(parts) == n:
            for i in np.flatnonzero(info.get(f"_{key}", np.ones(n, bool))):
                infos[i][key] = parts[i]
    return infos


def steps_in_python(env):
    """Returns environments that are stepped in Python."""
    if isinstance(env, str):
        # a name of Gymnasium's that Gradus knows is its world, in evaluations as in trainings
        ours = native(env)
        return Vector([made(ours[0]) if ours else gymnasium.make(env)])
    if isinstance(env, gymnasium.Env):
        return Vector([env])
    if isinstance(env, gymnasium.vector.VectorEnv) or (hasattr(env, "num_envs") and hasattr(env, "step_async")):
        return Vector(env)
    raise ArgumentError(f"env: expected a name, an environment or a vector, got {type(env).__name__}")


def vector_of(world, n):
    """Returns environments of Gradus that are stepped from Python, for callbacks."""
    return Vector(gymnasium.make_vec("gradus/World-v0", num_envs=n, world=world, vectorization_mode="vector_entry_point", autoreset_mode=SAME_STEP))


class Vector:
    """Environments that begin the next episode within a step: a list of Gymnasium's, one of its vectors, or a VecEnv of Stable-Baselines3's."""

    def __init__(self, env):
        self.given = env
        if isinstance(env, list):
            self.observation_space, self.action_space, self.num_envs = env[0].observation_space, env[0].action_space, len(env)
        elif isinstance(env, gymnasium.vector.VectorEnv):
            mode = env.metadata.get("autoreset_mode")
            if mode != SAME_STEP:
                raise ArgumentError(f"env: expected a vector with the autoreset mode same_step, got {getattr(mode, 'value', mode)}")
            self.observation_space, self.action_space, self.num_envs = env.single_observation_space, env.single_action_space, env.num_envs
        else:
            self.observation_space, self.action_space, self.num_envs = env.observation_space, env.action_space, env.num_envs

    def reset(self, seed):
        """Begins new episodes, and returns their observations."""
        env = self.given
        if isinstance(env, list):
            return stacked(self.observation_space, [one.reset(seed=None if seed is None else seed + i)[0] for i, one in enumerate(env)])
        if isinstance(env, gymnasium.vector.VectorEnv):
            return env.reset(seed=seed)[0]
        if seed is not None:
            env.seed(seed)
        return env.reset()

    def step(self, actions):
        """Returns observations, rewards, terminated, truncated, the last observations of episodes that ended with their environments, and infos."""
        env, n = self.given, self.num_envs
        if isinstance(env, list):
            return self._step_each(actions)
        if isinstance(env, gymnasium.vector.VectorEnv):
            observations, rewards, terminated, truncated, info = env.step(actions)
            finals = [(i, info["final_obs"][i]) for i in np.flatnonzero(terminated | truncated)]
            last = unpacked(info.get("final_info", {}), n)
            infos = unpacked({key: value for key, value in info.items() if key not in ("final_obs", "final_info")}, n)
            for i, final in finals:
                infos[i] = {**infos[i], **last[i], "terminal_observation": final, "TimeLimit.truncated": bool(truncated[i] and not terminated[i])}
            return observations, np.asarray(rewards, np.float32), terminated, truncated, finals, infos
        observations, rewards, dones, infos = env.step(actions)
        dones, infos = np.asarray(dones, bool), [*infos, *({} for _ in range(n - len(infos)))]
        truncated = np.array([bool(done and info.get("TimeLimit.truncated", False)) for done, info in zip(dones, infos)])
        finals = [(i, infos[i]["terminal_observation"]) for i in np.flatnonzero(dones)]
        return observations, np.asarray(rewards, np.float32), dones & ~truncated, truncated, finals, infos

    def _step_each(self, actions):
        n = self.num_envs
        observations, infos, finals = [], [], []
        rewards, terminated, truncated = np.zeros(n, np.float32), np.zeros(n, bool), np.zeros(n, bool)
        for i, env in enumerate(self.given):
            observation, reward, terminated[i], truncated[i], info = env.step(actions[i])
            try:
                rewards[i] = np.asarray(reward, float).item()
            except (TypeError, ValueError):
                raise ArgumentError(f"reward of environment {i}: expected a number, got {reward!r}") from None
            if terminated[i] or truncated[i]:
                finals.append((i, observation))
                info = {**info, "terminal_observation": observation, "TimeLimit.truncated": bool(truncated[i] and not terminated[i])}
                observation, _ = env.reset()
            observations.append(observation)
            infos.append(info)
        try:
            return stacked(self.observation_space, observations), rewards, terminated, truncated, finals, infos
        except (KeyError, ValueError):
            raise ArgumentError(fault(self.observation_space, observations) or "observations: expected equal shapes") from None
