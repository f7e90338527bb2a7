"""One environment of Gradus for Gymnasium."""

import functools

import gymnasium
import numpy as np

from gradus_rl import _core
from gradus_rl.spaces import observation_of, to_gymnasium, to_number


def _taxi(random):
    # Gymnasium draws one of the 300 states in which the passenger waits at a place that is not the destination
    states = [s for s in range(500) if (s // 4) % 5 < 4 and (s // 4) % 5 != s % 4]
    cumulative = np.cumsum(np.array([1.0 if s in set(states) else 0.0 for s in range(500)]) / len(states))
    return [float(np.argmax(cumulative > random.random()))]


def _first(state):
    def start(random):
        random.random()  # Gymnasium draws from a distribution with one state
        return [float(state)]

    return start


# the states in which Gymnasium's environments begin, drawn as they draw them
STARTS = {
    "cartpole": lambda random: random.uniform(-0.05, 0.05, (4,)),
    "mountain-car": lambda random: [random.uniform(-0.6, -0.4), 0.0],
    "mountain-car-continuous": lambda random: [random.uniform(-0.6, -0.4), 0.0],
    "pendulum": lambda random: random.uniform(np.array([-np.pi, -1.0]), np.array([np.pi, 1.0])),
    "acrobot": lambda random: random.uniform(-0.1, 0.1, (4,)).astype(np.float32),
    "taxi": _taxi,
    "cliff-walking": _first(36),
    "frozen-lake": _first(0),
}


# the types of Gymnasium's rewards, where they are not float
REWARDS = {"pendulum": np.float64, "taxi": int, "cliff-walking": int}


class GradusEnv(gymnasium.Env):
    """An environment of Gradus.

    Args:
        world: its name in Gradus, such as `cartpole` (`gradus_rl.worlds()`), or Gymnasium's.
        render_mode: `rgb_array` (rows x columns x 3), `ansi` or `None`.

    The episodes of Gymnasium's classic environments begin as theirs do, seed for seed. A stochastic environment draws its own random numbers, which follow from the seed.
    An environment ends an episode at its own limit of steps; `gymnasium.make(..., max_episode_steps=N)` can shorten it, and not lengthen it.
    """

    metadata = {"render_modes": ["rgb_array", "ansi"], "render_fps": 30}

    def __init__(self, world: str, render_mode: str | None = None) -> None:
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(f"render_mode: expected rgb_array, ansi or None, got {render_mode}")
        self.world = _core.World(world)
        self._env = _core.Env(world)
        self._start, self._reward = STARTS.get(self.world.name), REWARDS.get(self.world.name, float)
        self.observation_space, self.action_space = map(to_gymnasium, self.world.spaces())
        self.render_mode, self._is_closed = render_mode, False

    def _info(self):
        mask = self._env.action_mask()
        return {} if mask is None else {"action_mask": mask.astype(np.int8)}

    def reset(self, *, seed=None, options=None):
        """Begins the next episode; with a seed, that of the seed."""
        self._check_open("reset")
        super().reset(seed=seed)
        if self._start is None:
            row = self._env.reset(int(self.np_random.integers(1 << 63)))
        else:
            state = self._start(self.np_random)
            row = self._env.start_from([float(number) for number in state], int(self.np_random.bit_generator.state["state"]["state"] % (1 << 63)))
        return observation_of(self.observation_space, row), self._info()

    def step(self, action):
        """Takes a step."""
        self._check_open("step")
        row, reward, terminated, truncated = self._env.step(to_number(self.action_space, action))
        return observation_of(self.observation_space, row), self._reward(reward), terminated, truncated, self._info()

    def render(self):
        """Returns a picture or a text of the state, as `render_mode` says."""
        if self.render_mode == "ansi":
            return self._env.ansi()
        return self._env.picture() if self.render_mode == "rgb_array" else None

    def close(self):
        """Closes the environment, which takes no steps any more."""
        self._is_closed = True

    def _check_open(self, method):
        if self._is_closed:
            raise gymnasium.error.ClosedEnvironmentError(f"{method}: expected an open environment, got a closed one")

    @functools.cached_property
    def P(self):  # noqa: N802, Gymnasium's name
        """The transition table, as Gymnasium's toy texts have it: `P[state][action]` is a list of (probability, next state, reward, terminated). None without a table."""
        table = self.world.transitions()
        return None if table is None else {state: dict(enumerate(actions)) for state, actions in enumerate(table)}

    def save(self):
        """Returns the state of the episode, a list of whole numbers."""
        return self._env.save()

    def load(self, state):
        """Goes on with a saved episode; the next step returns the next observation."""
        self._env.load(state)
