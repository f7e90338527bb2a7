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


def channels_first(space):
    """Returns whether images of a space are channels x rows x columns: whether the first number is the least."""
    return space.shape[0] == min(space.shape) and space.shape[0] < space.shape[2]


def is_image(space):
    """Returns whether a box has images: three dimensions of bytes, two of them of ten or more."""
    return isinstance(space, gymnasium.spaces.Box) and space.dtype == np.uint8 and len(space.shape) == 3 and sorted(space.shape)[1] >= 10


def of_gymnasium(space, what):
    """Returns the tuple that describes a space of Gymnasium, of which `what` is the name in errors: of observations or of actions."""
    spaces = gymnasium.spaces
    if what.startswith("observation"):
        if isinstance(space, spaces.Dict):
            # the parts in the order of their names, one after the other
            low, high = [], []
            for name, part in space.spaces.items():
                if isinstance(part, (spaces.Dict, spaces.Tuple)) or is_image(part):
                    raise ValueError(f"{what}: expected Dict of numbers, without images and further Dict, got {part} as {name}")
                kind, *bounds = of_gymnasium(part, f"{what} {name}")
                part_low, part_high = ([0.0] * bounds[0], [1.0] * bounds[0]) if kind == "discrete" else bounds
                low, high = low + part_low, high + part_high
            return ("box", low, high)
        if isinstance(space, (spaces.MultiDiscrete, spaces.MultiBinary)):
            # several choices are seen as a one-hot code of each
            width = int(space.nvec.sum()) if isinstance(space, spaces.MultiDiscrete) else int(np.prod(space.shape))
            return ("box", [0.0] * width, [1.0] * width)
    if isinstance(space, spaces.Discrete):
        return ("discrete", int(space.n))
    if isinstance(space, spaces.MultiDiscrete) and space.nvec.ndim == 1:
        return ("multi_discrete", [int(n) for n in space.nvec])
    if isinstance(space, spaces.MultiBinary):
        if not isinstance(space.n, (int, np.integer)):
            raise ValueError(f"{what}: expected one dimension, got {space}: Multi-dimensional {space} action space is not supported")
        return ("multi_discrete", [2] * int(space.n))
    if is_image(space) and what.startswith("observation"):
        height, width, channels = (*space.shape[1:], space.shape[0]) if channels_first(space) else space.shape
        return ("image", 1, height, width, channels, max(1, int(space.high.max())))
    if isinstance(space, spaces.Box):
        low, high = (np.asarray(bound, np.float32).ravel() for bound in (space.low, space.high))
        return ("box", low.tolist(), high.tolist())
    raise ValueError(f"{what}: expected {'Dict, ' if what.startswith('observation') else ''}Discrete, MultiDiscrete, MultiBinary or Box, got {space}")


def stacked(space, observations):
    """Returns observations, one for each environment, as one of the whole vector."""
    if isinstance(space, gymnasium.spaces.Dict):
        return {name: np.stack([np.asarray(observation[name]) for observation in observations]) for name in space.spaces}
    return np.stack([np.asarray(observation) for observation in observations])


def is_one(space, observation):
    """Returns whether this is one observation, and not that of a vector. Raises an error if it is neither."""
    if isinstance(observation, tuple) and len(observation) == 2 and isinstance(observation[1], dict):
        raise ValueError("observation: expected an observation, got a tuple with infos: are you mixing Gym API with the vectors' API of Stable-Baselines3?")
    if isinstance(space, gymnasium.spaces.Dict):
        if not isinstance(observation, dict) or set(observation) != set(space.spaces):
            raise ValueError(f"observation: expected a dictionary of {', '.join(space.spaces)}, got {sorted(observation) if isinstance(observation, dict) else type(observation).__name__}")
        return all([is_one(part, observation[name]) for name, part in space.spaces.items()])
    shape = np.shape(observation)
    if shape != space.shape and shape[1:] != space.shape:
        raise ValueError(f"observation: expected the shape {space.shape} or one more dimension, got {shape}")
    return shape == space.shape


def fault(space, observations, rewards=()):
    """Returns a sentence about the first observation, and then the first reward, that is not as it should be; None if all are."""
    for env, observation in enumerate(observations):
        text = _fault_of(space, observation)
        if text:
            return f"observation of environment {env}: expected {text}"
    for env, reward in enumerate(rewards):
        if not np.isfinite(reward):
            return f"reward of environment {env}: expected a finite number, got {reward}"
    return None


def _fault_of(space, observation):
    if isinstance(space, gymnasium.spaces.Dict):
        for name, part in space.spaces.items():
            if not isinstance(observation, dict) or name not in observation:
                return f"a dictionary with {name}, got {observation!r}"
            text = _fault_of(part, observation[name])
            if text:
                return f"{text} in {name}"
        return None
    array = np.asarray(observation)
    if array.shape != space.shape:
        return f"the shape {space.shape}, got {array.shape}"
    if not np.issubdtype(array.dtype, np.number) and array.dtype != bool:
        return f"numbers, got {array.dtype}"
    if not np.isfinite(array).all():
        return f"finite numbers, got {array[~np.isfinite(array)].flat[0]}"
    if isinstance(space, (gymnasium.spaces.Discrete, gymnasium.spaces.MultiDiscrete)) and not space.contains(space.dtype.type(array) if array.shape == () else array):
        return f"an element of {space}, got {array}"
    return None


def each(space, observations, n):
    """Returns the n observations of a vector, one by one."""
    if isinstance(space, gymnasium.spaces.Dict):
        return [{name: part[env] for name, part in observations.items()} for env in range(n)]
    return [observations[env] for env in range(n)]


def rows_of(space, observations):
    """Returns observations of a space of Gymnasium, one for each environment, as rows of float32."""
    spaces = gymnasium.spaces
    if isinstance(space, spaces.Dict):
        parts = []
        for name, part in space.spaces.items():
            rows = rows_of(part, observations[name])
            parts.append(codes(rows[:, 0], part.n, f"{part} as {name}", part.start) if isinstance(part, spaces.Discrete) else rows)
        return np.concatenate(parts, axis=1)
    observations = np.asarray(observations)
    if isinstance(space, spaces.Discrete):
        observations = observations - space.start
    if isinstance(space, spaces.MultiDiscrete):
        choices = observations.reshape(len(observations), -1) - np.asarray(space.start).ravel()
        observations = np.concatenate([codes(choices[:, i], n, space, np.ravel(space.start)[i]) for i, n in enumerate(space.nvec.ravel())], axis=1)
    if isinstance(space, spaces.MultiBinary) and not np.isin(observations, (0, 1)).all():
        raise ValueError(f"observation: expected an element of {space}, got {observations[~np.isin(observations, (0, 1))].flat[0]}")
    if is_image(space) and channels_first(space):
        observations = np.moveaxis(observations, 1, -1)
    return np.ascontiguousarray(observations.reshape(len(observations), -1), np.float32)


def codes(choices, n, space, start=0):
    """Returns a one-hot code of each choice, which is the number of one of n, from 0; in the space they begin with `start`."""
    wrong = choices[(choices != np.floor(choices)) | (choices < 0) | (choices >= n)]
    if len(wrong):
        raise ValueError(f"observation: expected an element of {space}, got {wrong[0] + start:g}")
    return np.eye(int(n), dtype=np.float32)[choices.astype(int)]


def observation_of(space, row):
    """Returns a row of float32 as an observation of a space of Gymnasium."""
    if isinstance(space, gymnasium.spaces.Discrete):
        return int(row[0])
    return row.astype(space.dtype).reshape(space.shape)


def to_number(space, action):
    """Returns an action as Gradus takes it: several choices are one number."""
    if isinstance(space, gymnasium.spaces.Discrete):
        return _whole(action) - int(space.start)
    if isinstance(space, gymnasium.spaces.MultiDiscrete):
        return int(np.ravel_multi_index(tuple(_whole(choice) for choice in np.asarray(action) - space.start), space.nvec))
    if isinstance(space, gymnasium.spaces.MultiBinary):
        return int(np.ravel_multi_index(tuple(_whole(choice) for choice in action), (2,) * int(space.n)))
    return np.asarray(action, np.float32).ravel()


def _whole(number):
    if number != int(number):
        raise ValueError(f"action: expected a whole number, got {number}")
    return int(number)


def from_numbers(space, actions):
    """Returns what Gradus chose for each environment as actions of a space of Gymnasium."""
    if isinstance(space, gymnasium.spaces.Discrete):
        return actions + space.start
    if isinstance(space, gymnasium.spaces.MultiDiscrete):
        return (np.stack(np.unravel_index(actions, space.nvec), axis=-1) + space.start).astype(space.dtype)
    if isinstance(space, gymnasium.spaces.MultiBinary):
        return np.stack(np.unravel_index(actions, (2,) * int(space.n)), axis=-1).astype(space.dtype)
    actions = np.rint(actions) if np.issubdtype(space.dtype, np.integer) else actions
    # a bound of float64 may lie between two numbers of float32
    return np.clip(actions.astype(space.dtype).reshape(len(actions), *space.shape), space.low, space.high)


def to_file(space):
    """Returns a space so that JSON can write it."""
    spaces = gymnasium.spaces
    if isinstance(space, spaces.Dict):
        return {"dict": [[name, to_file(part)] for name, part in space.spaces.items()]}
    if isinstance(space, spaces.Discrete):
        return {"discrete": [int(space.n), int(space.start)]}
    if isinstance(space, spaces.MultiDiscrete):
        return {"multi_discrete": [space.nvec.tolist(), str(space.dtype), np.asarray(space.start).tolist()]}
    if isinstance(space, spaces.MultiBinary):
        return {"multi_binary": list(space.shape)}
    return {"box": [space.low.tolist(), space.high.tolist(), str(space.dtype)]}


def from_file(written):
    """Returns the space that `to_file` made ready."""
    spaces = gymnasium.spaces
    kind, value = next(iter(written.items()))
    if kind == "dict":
        return spaces.Dict({name: from_file(part) for name, part in value})
    if kind == "discrete":
        return spaces.Discrete(value[0], start=value[1])
    if kind == "multi_discrete":
        return spaces.MultiDiscrete(value[0], dtype=np.dtype(value[1]), start=value[2])
    if kind == "multi_binary":
        return spaces.MultiBinary(value if len(value) > 1 else value[0])
    low, high, dtype = value
    return spaces.Box(np.array(low, dtype), np.array(high, dtype), dtype=np.dtype(dtype))
