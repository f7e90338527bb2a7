"""Spaces of Gymnasium and of Gradus."""

import gymnasium
import numpy as np


def to_gymnasium(space):
    """Returns the space of Gymnasium that is described by a tuple of `gradus_rl._core`."""
    kind, *rest = space
    if kind == "discrete":
        return gymnasium.spaces.Discrete(rest[0])
    if kind == "multi_discrete":
        return gymnasium.spaces.MultiDiscrete(rest[0])
    if kind == "box":
        return gymnasium.spaces.Box(np.array(rest[0], np.float32), np.array(rest[1], np.float32), dtype=np.float32)
    if kind == "image":
        frames, height, width, channels, largest = rest
        shape = (height, width, channels) if frames == 1 else (frames, height, width, channels)
        return gymnasium.spaces.Box(0, largest, shape, np.uint8)
    vocabulary, context = rest
    # the number of tokens, then the tokens, then zeros
    return gymnasium.spaces.Box(0, max(vocabulary, context), (context + 1,), np.int64)


def of_gymnasium(space, what):
    """Returns the tuple that describes a space of Gymnasium, of which `what` is the name in errors: of observations or of actions."""
    spaces = gymnasium.spaces
    if what.startswith("observation") and isinstance(space, (spaces.MultiDiscrete, spaces.MultiBinary)):
        # several choices are seen as a one-hot code of each
        width = int(space.nvec.sum()) if isinstance(space, spaces.MultiDiscrete) else int(np.prod(space.shape))
        return ("box", [0.0] * width, [1.0] * width)
    if isinstance(space, spaces.Discrete):
        return ("discrete", int(space.n))
    if isinstance(space, spaces.MultiDiscrete) and space.nvec.ndim == 1:
        return ("multi_discrete", [int(n) for n in space.nvec])
    if isinstance(space, spaces.MultiBinary) and isinstance(space.n, (int, np.integer)):
        return ("multi_discrete", [2] * int(space.n))
    if isinstance(space, spaces.Box) and space.dtype == np.uint8 and len(space.shape) == 3 and min(space.shape[:2]) >= 10:
        height, width, channels = space.shape
        return ("image", 1, height, width, channels, 255)
    if isinstance(space, spaces.Box):
        low, high = (np.asarray(bound, np.float32).ravel() for bound in (space.low, space.high))
        return ("box", low.tolist(), high.tolist())
    raise ValueError(f"{what}: expected Discrete, MultiDiscrete, MultiBinary or Box, got {space}")


def rows_of(space, observations):
    """Returns observations of a space of Gymnasium, one for each environment, as rows of float32."""
    observations = np.asarray(observations)
    if isinstance(space, gymnasium.spaces.Discrete):
        observations = observations - space.start
    if isinstance(space, gymnasium.spaces.MultiDiscrete):
        choices = observations.reshape(len(observations), -1).astype(int) - np.asarray(space.start).ravel()
        observations = np.concatenate([np.eye(n)[choices[:, i]] for i, n in enumerate(space.nvec.ravel())], axis=1)
    return np.ascontiguousarray(observations.reshape(len(observations), -1), np.float32)


def observation_of(space, row):
    """Returns a row of float32 as an observation of a space of Gymnasium."""
    if isinstance(space, gymnasium.spaces.Discrete):
        return int(row[0])
    return row.astype(space.dtype).reshape(space.shape)


def to_number(space, action):
    """Returns an action as Gradus takes it: several choices are one number."""
    if isinstance(space, gymnasium.spaces.Discrete):
        return int(action) - int(space.start)
    if isinstance(space, gymnasium.spaces.MultiDiscrete):
        return int(np.ravel_multi_index(tuple(int(choice) for choice in action), space.nvec))
    if isinstance(space, gymnasium.spaces.MultiBinary):
        return int(np.ravel_multi_index(tuple(int(choice) for choice in action), (2,) * int(space.n)))
    return np.asarray(action, np.float32).ravel()


def from_numbers(space, actions):
    """Returns what Gradus chose for each environment as actions of a space of Gymnasium."""
    if isinstance(space, gymnasium.spaces.Discrete):
        return actions + space.start
    if isinstance(space, gymnasium.spaces.MultiDiscrete):
        return np.stack(np.unravel_index(actions, space.nvec), axis=-1).astype(space.dtype)
    if isinstance(space, gymnasium.spaces.MultiBinary):
        return np.stack(np.unravel_index(actions, (2,) * int(space.n)), axis=-1).astype(space.dtype)
    return actions.astype(space.dtype).reshape(len(actions), *space.shape)
