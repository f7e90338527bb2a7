"""Arguments of constructors: as settings of Gradus, and in files."""

from collections.abc import Callable

import numpy as np

# a function of the remaining progress of the training, from 1 to 0
Schedule = Callable[[float], float]

INFINITE = "inf"


class ArgumentError(ValueError, AssertionError):
    """A wrong argument. Stable-Baselines3 raises the one or the other, so this is both."""


class Falling:
    """A schedule that falls evenly from a value to 0."""

    def __init__(self, first):
        self.first = first

    def __call__(self, progress_remaining):
        return self.first * float(progress_remaining)


def number(value):
    """Returns a number, a bool or None (without limit) as a setting."""
    if value is None:
        return INFINITE
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    return repr(float(value)) if isinstance(value, (float, np.floating)) else str(value)


def schedule(name, value):
    """Returns the first value of a number or of a function of the remaining progress, and whether it falls to 0."""
    if not callable(value):
        return float(value), "constant"
    first, middle, last = (float(value(progress)) for progress in (1.0, 0.5, 0.0))
    if first == middle == last:
        return first, "constant"
    if last == 0.0 and np.isclose(middle, first / 2):
        return first, "linear"
    raise ArgumentError(f"{name}: expected a number, or a function that is constant or falls evenly to 0, got values {first}, {middle}, {last}")


def positive(name, value):
    """Returns the value of a number or of a constant function, which must be positive; None is without limit."""
    if value is None:
        return INFINITE
    first, kind = schedule(name, value)
    if not first > 0.0 or kind != "constant":
        raise ArgumentError(f"{name}: expected None or a positive number, got {value}")
    return number(first)


def refuse(**values):
    """Raises an error for arguments that Gradus does not have: each is a value and those that are allowed."""
    for name, (value, allowed) in values.items():
        if value not in allowed:
            raise ArgumentError(f"{name}: expected {' or '.join(map(str, allowed))}, because Gradus has nothing else, got {value}")


class NormalNoise:
    """Normal noise on actions, as `action_noise` takes it."""

    def __init__(self, std):
        self._mu, self._sigma = np.zeros_like(std), std


def to_file(name, value):
    """Returns an argument so that JSON can write it."""
    if name == "action_noise" and value is not None:
        return {"std": np.ravel(value._sigma).astype(float).tolist()}
    if callable(value):
        first, kind = schedule(name, value)
        return first if kind == "constant" else {"falls from": first}
    if name == "policy_kwargs" and value:
        return {key: one.__name__ if isinstance(one, type) else one for key, one in value.items()}
    return value


def from_file(value):
    """Returns what `to_file` made ready."""
    if isinstance(value, dict) and set(value) == {"falls from"}:
        return Falling(value["falls from"])
    return NormalNoise(np.array(value["std"])) if isinstance(value, dict) and set(value) == {"std"} else value


def policy_name(policy):
    """Returns the name of a policy, which may be a class of Stable-Baselines3's."""
    known = {"MlpPolicy": "MlpPolicy", "CnnPolicy": "CnnPolicy", "MultiInputPolicy": "MultiInputPolicy"}
    for prefix in ("ActorCritic", "DQN", "TD3", "SAC"):
        known |= {f"{prefix}Policy": "MlpPolicy", f"{prefix}CnnPolicy": "CnnPolicy", f"MultiInput{prefix}Policy": "MultiInputPolicy"}
    if isinstance(policy, str):
        name = policy if policy in ("MlpPolicy", "CnnPolicy", "MultiInputPolicy") else None
    else:
        is_theirs = isinstance(policy, type) and policy.__module__.startswith("stable_baselines3.")
        name = known.get(policy.__name__) if is_theirs else None
    if name is None:
        raise ArgumentError(f"policy: expected MlpPolicy, CnnPolicy or MultiInputPolicy, got {policy if isinstance(policy, str) else getattr(policy, '__name__', type(policy).__name__)}")
    return name


def hidden(value, critic):
    """Returns the widths of hidden layers, which `net_arch` has for both networks."""
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], dict):
        import warnings

        warnings.warn("net_arch: a dictionary in a list is the form of old versions; expected the dictionary itself", UserWarning, stacklevel=4)
        value = value[0]
    if isinstance(value, dict):
        # a network that is not named has no hidden layers
        arches = [list(value.get(name, [])) for name in ("pi", critic)]
        if set(value) - {"pi", critic} or arches[0] != arches[1]:
            raise ArgumentError(f"net_arch: expected equal layers of actor and critic, as pi and {critic}, got {value}")
        value = arches[0]
    if not isinstance(value, (list, tuple, np.ndarray)):
        raise ArgumentError(f"net_arch: expected a list of widths, got {value}")
    return [int(width) for width in value]


def policy_settings(kwargs, critic):
    """Returns the settings that `policy_kwargs` are."""
    settings = []
    for key, value in kwargs.items():
        if key == "net_arch":
            settings += [] if value is None else [f"network.hidden={hidden(value, critic)}"]
        elif key == "activation_fn":
            name = (value if isinstance(value, str) else value.__name__).lower()
            if name not in ("tanh", "relu"):
                raise ArgumentError(f"policy_kwargs: expected the activation_fn Tanh or ReLU, got {value}")
            settings.append(f"network.activation={name}")
        elif key == "ortho_init":
            settings.append(f"network.orthogonal={number(bool(value))}")
        elif key == "log_std_init":
            settings.append(f"network.log_std_init={float(value)}")
        elif key == "squash_output":
            if value:
                raise ArgumentError("policy_kwargs: expected squash_output=False, because it needs use_sde=True, and Gradus does not squash there, got True")
        else:
            raise ArgumentError(f"policy_kwargs: expected net_arch, activation_fn, ortho_init or log_std_init, got {key}")
    return settings
