"""One environment of Gradus for Gymnasium."""

import functools

import gymnasium
import numpy as np

from gradus_rl import _core
from gradus_rl.spaces import observation_of, to_gymnasium, to_number


def _taxi(random, **_):
    # Gymnasium draws one of the 300 states in which the passenger waits at a place that is not the destination
    states = [s for s in range(500) if (s // 4) % 5 < 4 and (s // 4) % 5 != s % 4]
    cumulative = np.cumsum(np.array([1.0 if s in set(states) else 0.0 for s in range(500)]) / len(states))
    return [float(np.argmax(cumulative > random.random()))]


def _first(state):
    def start(random, **_):
        random.random()  # Gymnasium draws from a distribution with one state
        return [float(state)]

    return start


# the states in which Gymnasium's environments begin, drawn as they draw them
STARTS = {
    "cartpole": lambda random, low, high: random.uniform(low, high, (4,)),
    "mountain-car": lambda random, low, high: [random.uniform(low, high), 0.0],
    "mountain-car-continuous": lambda random, low, high: [random.uniform(low, high), 0.0],
    "pendulum": lambda random, x_init, y_init: random.uniform(np.array([-x_init, -y_init]), np.array([x_init, y_init])),
    "acrobot": lambda random, low, high: random.uniform(low, high, (4,)).astype(np.float32),
    "taxi": _taxi,
    "cliff-walking": _first(36),
    "frozen-lake": _first(0),
}


# Gymnasium's options of `reset`, and their defaults
OPTIONS = {
    "cartpole": {"low": -0.05, "high": 0.05},
    "mountain-car": {"low": -0.6, "high": -0.4},
    "mountain-car-continuous": {"low": -0.6, "high": -0.4},
    "pendulum": {"x_init": np.pi, "y_init": 1.0},
    "acrobot": {"low": -0.1, "high": 0.1},
}


def options_of(world: str, given: dict | None) -> dict:
    """The options of a world's `reset`, with the defaults of those that are not given. Others are ignored, as in Gymnasium."""
    known = OPTIONS.get(world, {})
    given = {name: number for name, number in (given or {}).items() if name in known}  # others may be those of a wrapper
    for name, number in given.items():
        if not isinstance(number, (int, float, np.integer, np.floating)) or not np.isfinite(number):
            raise ValueError(f"options: {name}: expected a finite number, got {number!r}")
    options = {**known, **given}
    low, high = (options["low"], options["high"]) if "low" in options else (0.0, min(options.values(), default=0.0))
    if low > high:
        expected = "low at most high" if "low" in options else "numbers from 0 up"
        raise ValueError(f"options: expected {expected}, got {', '.join(f'{name}={number}' for name, number in options.items())}")
    return options


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
        self._make(world)
        modes = self.world.render_modes()
        if render_mode not in (None, *modes):
            raise ValueError(f"render_mode: expected {' or '.join([*modes, 'None'])} for {self.world.name}, got {render_mode}")
        self.metadata = {**self.metadata, "render_modes": modes}
        self._start, self._reward = STARTS.get(self.world.name), REWARDS.get(self.world.name, float)
        self.observation_space, self.action_space = map(to_gymnasium, self.world.spaces())
        self.render_mode, self._is_closed, self._has_begun = render_mode, False, False

    def _make(self, world):
        self.world, self._env = _core.World(world), _core.Env(world)

    def _info(self):
        mask = self._env.action_mask()
        return {} if mask is None else {"action_mask": mask.astype(np.int8)}

    def reset(self, *, seed=None, options=None):
        """Begins the next episode; with a seed, that of the seed. The options are Gymnasium's: `low` and `high`, or `x_init` and `y_init` of Pendulum, for where it begins."""
        self._check_open("reset")
        options = options_of(self.world.name, options)
        super().reset(seed=seed)
        if self._start is None:
            row = self._env.reset(int(self.np_random.integers(1 << 63)))
        else:
            state = self._start(self.np_random, **options)
            row = self._env.start_from([float(number) for number in state], int(self.np_random.bit_generator.state["state"]["state"] % (1 << 63)))
        self._has_begun = True
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
        self._has_begun = True

    def __getstate__(self):
        """For copies and pickles, in the middle of an episode as well."""
        own = {name: value for name, value in vars(self).items() if name not in ("world", "_env", "_start", "P")}
        return {"world": self.world.name, "state": self.save() if self._has_begun else None, "own": own}

    def __setstate__(self, saved):
        vars(self).update(saved["own"])
        self._make(saved["world"])
        self._start = STARTS.get(self.world.name)
        if saved["state"] is not None:
            self.load(saved["state"])
