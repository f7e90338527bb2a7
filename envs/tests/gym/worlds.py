"""Environments for the tests of `gym:`: right ones in every form, and wrong ones."""

import os
import sys
import threading
import time

import gymnasium as gym
import numpy as np
from gymnasium import spaces


class Rounded(gym.Wrapper):
    """Rounds the state after a reset to 32 bits, and puts the state of every step behind the observation."""

    def __init__(self, env):
        super().__init__(env)
        self.n = len(np.atleast_1d(env.reset(seed=0)[0])) if isinstance(env.observation_space, spaces.Box) else 1
        self.states = len(env.unwrapped.state)
        low = np.full(self.n + self.states, -np.inf, np.float32)
        self.observation_space = spaces.Box(low, -low, dtype=np.float32)

    def shown(self, observation):
        return np.concatenate([observation, np.asarray(self.env.unwrapped.state)]).astype(np.float32)

    def reset(self, seed=None, options=None):
        observation, info = self.env.reset(seed=seed, options=options)
        self.env.unwrapped.state = np.asarray(self.env.unwrapped.state).astype(np.float32).astype(np.float64)
        return self.shown(observation), info

    def step(self, action):
        observation, *rest = self.env.step(action)
        return (self.shown(observation), *rest)


class Bad(gym.Env):
    """Goes wrong in the way `how` at step 20 of an episode of 50."""

    observation_space = spaces.Box(-1, 1, (3,), np.float32)
    def __init__(self, how=""):
        self.how, self.episodes = how, 0
        self.action_space = spaces.Discrete(2)

    def close(self):
        if self.how == "close":
            raise RuntimeError("close")

    def observed(self):
        return self.np_random.uniform(-1, 1, 3).astype(np.float32)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        if self.how == "spaces" and self.episodes:
            self.observation_space = spaces.Box(-1, 1, (4,), np.float32)
        if self.how == "inside" and self.episodes:
            self.action_space.n = 3
        if self.how == "reset":
            return self.observed()
        self.episodes += 1
        return self.observed(), {}

    def step(self, action):
        self.t += 1
        observation, reward, info = self.observed(), 1.0, {}
        if self.t == 20:
            match self.how:
                case "raise":
                    raise ValueError("lost the ball")
                case "shape":
                    observation = np.zeros(4, np.float32)
                case "type":
                    observation = np.zeros(3, np.complex64)
                case "nan":
                    observation[1] = np.nan
                case "reward":
                    reward = float("inf")
                case "nothing":
                    reward = None
                case "rewards":
                    reward = np.ones(2)
                case "text":
                    reward = "much"
                case "exit":
                    sys.exit(3)
                case "die":
                    os._exit(7)
                case "info":
                    info = None
                case "mask":
                    info = {"action_mask": np.ones(2, np.int8)}
                case "four":
                    return observation, reward, False, info
                case "array":
                    reward = np.array([1.0])
                    return observation, reward, np.bool_(False), np.zeros(1, bool), info
                case "flag":
                    return observation, reward, "False", False, info
                case "flags":
                    return observation, reward, False, np.zeros(2, bool), info
                case "none":
                    return observation, reward, False, None, info
                case "print":
                    print("hello")
                    os.write(1, b"hello again\n")
                    threading.Thread(target=time.sleep, args=(0.1,), daemon=True).start()
        return observation, reward, self.t >= 50, False, info


class Counting(gym.Env):
    """Observations in the space `kind`, whose numbers are those of the step; the reward is 1 if the action belongs to the space."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 4}

    def __init__(self, kind, actions="discrete", limit=7, render_mode=None):
        box = spaces.Box(-9, 9, (2, 2), np.int64)
        self.observation_space = {
            "box": box,
            "bytes": spaces.Box(0, 255, (2, 3, 1), np.uint8),
            "discrete": spaces.Discrete(5, start=3),
            "multi": spaces.MultiDiscrete([3, 2]),
            "binary": spaces.MultiBinary(3),
            "dict": spaces.Dict({"z": spaces.Discrete(2), "a": box, "words": spaces.Text(5)}),
            "tuple": spaces.Tuple([spaces.Discrete(2), spaces.Tuple([box, spaces.MultiBinary(1)])]),
            "sequence": spaces.Sequence(spaces.Discrete(2)),
            "graph": spaces.Graph(spaces.Box(0, 1, (2,)), None),
            "oneof": spaces.OneOf([spaces.Discrete(2), spaces.Discrete(3)]),
            "text": spaces.Text(5),
        }[kind]
        self.action_space = {
            "discrete": spaces.Discrete(3, start=-1),
            "one": spaces.Discrete(1),
            "box": spaces.Box(np.array([-1, 0], np.float32), np.array([1, 10], np.float32)),
            "multi": spaces.MultiDiscrete([[3, 1], [2, 4]], start=[[0, 5], [-1, 0]]),
            "binary": spaces.MultiBinary((1, 3)),
            "huge": spaces.MultiDiscrete([70000, 70000]),
            "double": spaces.Box(0.1, 0.3, (1,), np.float64),
            "unbounded": spaces.Box(-np.inf, np.inf, (2,), np.float32),
            "text": spaces.Text(5),
        }[actions]
        self.limit, self.render_mode, self.seen = limit, render_mode, []

    def observed(self):
        space, t = self.observation_space, self.t
        box = np.array([[t, 1], [2, -t]])
        by_type = {
            spaces.Box: lambda: np.full(space.shape, t, np.uint8) if space.dtype == np.uint8 else box,
            spaces.Discrete: lambda: 3 + t % 5,
            spaces.MultiDiscrete: lambda: np.array([t % 3, t % 2]),
            spaces.MultiBinary: lambda: np.array([t % 2, 1, 0], np.int8),
            spaces.Dict: lambda: {"z": t % 2, "a": box, "words": "abc"},
            spaces.Tuple: lambda: (t % 2, (box, np.array([1], np.int8))),
        }
        return by_type[type(space)]()

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self.observed(), {}

    def step(self, action):
        self.t += 1
        self.last = action
        return self.observed(), float(self.action_space.contains(action)), False, self.t >= self.limit, {}

    def render(self):
        return np.full((2, 3, 3), self.t, np.uint8)


class Masked(gym.Env):
    """Only the action `t % 3` may be chosen; another one ends the episode."""

    observation_space = spaces.Box(-1, 1, (1,), np.float32)
    action_space = spaces.Discrete(3)

    def info(self):
        return {"action_mask": np.arange(3) == self.t % 3}

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return np.zeros(1, np.float32), self.info()

    def step(self, action):
        is_right = action == self.t % 3
        self.t += 1
        return np.zeros(1, np.float32), 1.0, not is_right, self.t >= 10, self.info()


class Dials(gym.Env):
    """Two dials with 3 and 4 positions, of which one each is right; the observation says which. A turn to a forbidden position ends the episode."""

    observation_space = spaces.Box(0, 1, (7,), np.float32)
    action_space = spaces.MultiDiscrete([3, 4])

    def __init__(self, masks=None):
        self.masks = masks

    def observed(self):
        self.right = (int(self.np_random.integers(3)), int(self.np_random.integers(4)))
        self.allowed = [np.ones(3, np.int8), np.ones(4, np.int8)]
        for dial in (0, 1):
            self.allowed[dial][(self.right[dial] + 1) % (3 + dial)] = 0
        info = {}
        if self.masks:
            info["action_mask"] = {"parts": tuple(self.allowed), "flat": np.concatenate(self.allowed)}[self.masks]
        observation = np.zeros(7, np.float32)
        observation[[self.right[0], 3 + self.right[1]]] = 1
        return observation, info

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self.observed()

    def step(self, action):
        self.t += 1
        is_allowed = all(self.allowed[dial][action[dial]] for dial in (0, 1))
        reward = sum(float(action[dial] == self.right[dial]) for dial in (0, 1))
        observation, info = self.observed()
        return observation, reward, bool(self.masks) and not is_allowed, self.t >= 20, info


class Point(gym.Env):
    """A point in the plane is to reach the origin: its velocities are numbers within different bounds. The reward is minus the distance."""

    observation_space = spaces.Box(-5, 5, (2,), np.float32)
    action_space = spaces.Box(np.array([-0.2, -1], np.float32), np.array([1, 0.5], np.float32))

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.t, self.place = 0, self.np_random.uniform(-1, 1, 2)
        return self.place.astype(np.float32), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.t += 1
        self.place = np.clip(self.place + 0.5 * action, -5, 5)
        return self.place.astype(np.float32), -float(np.abs(self.place).sum()), False, self.t >= 20, {}


gym.register("Dials-v0", entry_point=Dials)
gym.register("Point-v0", entry_point=Point)
gym.register("Bad-v0", entry_point=Bad)
gym.register("Counting-v0", entry_point=Counting)
gym.register("Masked-v0", entry_point=Masked)


class Images(gym.Env):
    """Observations of 84 x 84 x 4 bytes, which cost nothing to make: for the speed of the way that images take."""

    observation_space = spaces.Box(0, 255, (84, 84, 4), np.uint8)
    action_space = spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.t, self.image = 0, np.arange(84 * 84 * 4, dtype=np.int64).reshape(84, 84, 4).astype(np.uint8)
        return self.image, {}

    def step(self, action):
        self.t += 1
        return self.image, 1.0, False, self.t >= 1000, {}


gym.register("Images-v0", entry_point=Images)
