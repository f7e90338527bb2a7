"""Loads a policy trained by Gradus into Python, with NumPy alone or as a PyTorch module.

    from gradus_policy import load

    policy = load("runs/first")                     # NumPy
    action = policy.act(observation)                # the most probable action, as in `gradus eval`

    module = load("runs/first", backend="torch")    # torch.nn.Module, with `actor` and `critic` as in CleanRL's Agent
    logits = module.actor(module.normalise(torch.as_tensor(observation)))

    python cli/src/gradus_policy.py runs/first CartPole-v1 --episodes 100      # plays in Gymnasium

The folder is a run folder. Its `config.toml` describes the network and the wrappers, and `policy.safetensors` has the parameters;
docs/policy-file.md lists the tensors. You can copy this script into your own project. It needs Python 3.11.

The script repeats the steps of `gradus eval`, in this order:

1. Convert the observation to float32. An integer observation of a discrete space becomes a one-hot row.
2. If observations were normalised in training, compute (x - mean) / sqrt(variance + epsilon) in float64, round to float32 and clip.
   An image is an array of height x width x channels, of frames x height x width, or of frames x height x width x channels, or a batch of the first two. Bytes are divided by 255
   (planes of 0 and 1, as of MinAtar's games, by 1); other numbers are taken as 0 to 1.
3. Apply the convolutional layers of `network.trunk`, if there are some, and the actor's layers in float32, or those of the network of action values.
4. Take the first of the largest logits or action values for discrete actions. For continuous actions, take the mean and clip it to the bounds
   of the action space. For a Gaussian and for gSDE, the mean is the output of the last layer.
   If an action has several choices (MultiDiscrete), this is done for each of them, and the action is an array.
5. The actor of DDPG, TD3 and SAC has critics of its actions. Its action is tanh of the mean, with -1 and 1 as the bounds of the action space. SAC's
   last layer has the means first; with gSDE they are clipped to -2 and 2 before the tanh.

A policy with a recurrent cell remembers earlier observations. The caller holds its memory, which every call of `act` replaces:

    memory = policy.memory()                        # at the beginning of every episode
    action = policy.act(observation, memory=memory)

Transformers, tables, and the wrappers `frame_stack`, `atari` and `time_aware` are not supported; `load(folder, wrapped=True)` leaves these wrappers to you.
"""

import hashlib
import json
import pathlib
import re
import struct
import tomllib

import numpy as np

TYPES = {"F32": np.dtype("<f4"), "F64": np.dtype("<f8"), "U64": np.dtype("<u8")}

# Action bounds of Gymnasium's environments; the files do not store them.
BOUNDS = {"pendulum": (-2.0, 2.0), "mountain-car-continuous": (-1.0, 1.0)}

# Factors of the observations of Gymnasium's environments in runs that do not see velocities.
SEEN = {
    "cartpole-masked": [1, 0, 1, 0],
    "mountain-car-masked": [1, 0],
    "mountain-car-continuous-masked": [1, 0],
    "acrobot-masked": [1, 1, 1, 1, 0, 0],
    "pendulum-masked": [1, 1, 0],
}


class PolicyError(Exception):
    """Raised if a policy cannot be loaded. The message is one line."""


def read_safetensors(path):
    """Returns the tensors of a safetensors file by name. The file has eight bytes with the header length, a JSON header, and the numbers."""
    data = pathlib.Path(path).read_bytes()
    check_hash(path, data)
    try:
        (length,) = struct.unpack_from("<Q", data)
        header, begin = json.loads(data[8 : 8 + length]), 8 + length
        tensors = {}
        for name, about in header.items():
            if name != "__metadata__":
                first, last = about["data_offsets"]
                numbers = np.frombuffer(data[begin + first : begin + last], TYPES[about["dtype"]])
                tensors[name] = numbers.reshape(about["shape"])
        return tensors
    except (struct.error, ValueError, KeyError, TypeError, AttributeError) as error:
        raise PolicyError(f"{path}: expected a safetensors file, got something else: {error!r}") from error


def note_of(path):
    """Returns the settings that a policy file has of its own, as text; empty if it has none."""
    data = pathlib.Path(path).read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    return header.get("__metadata__", {}).get("gradus", "")


def text_of(path):
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise PolicyError(f"{path}: expected a text, got something else: {error}") from None


def settings_in(path, text):
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PolicyError(f"{path}: expected settings in TOML, got something else: {error}") from None


def check_hash(path, data):
    """Raises PolicyError if the bytes of a file have changed. The header contains the SHA-256 of the file with 64 zeros in place of the hash.
    Files of earlier versions and of other programs have no hash."""
    header = data[8 : 8 + int.from_bytes(data[:8], "little")]
    marks = [header.find(mark) for mark in (b"# gradus tensors ", b"# sha256 ")]
    if marks == [-1, -1]:
        return
    begin = 8 + marks[1] + len(b"# sha256 ")
    zeroed = data[:begin] + 64 * b"0" + data[begin + 64 :]
    if -1 in marks or data[begin : begin + 64] != hashlib.sha256(zeroed).hexdigest().encode():
        raise PolicyError(f"{path}: damaged: its SHA-256 is not the one that was stored with it")


def read(folder, wrapped=False):
    """Returns the settings and the tensors of a run folder. Raises PolicyError if they are missing, invalid or not supported. With `wrapped` the
    observations will be those of the run's wrappers."""
    folder = pathlib.Path(folder)
    paths = folder / "config.toml", folder / "policy.safetensors"
    for path in paths:
        if not path.exists():
            raise PolicyError(f"{folder}: expected the folder of a finished run, got none: {path.name} is missing")
    config = settings_in(paths[0], text_of(paths[0]))
    if config.get("format", 1) not in (1, 2):
        raise PolicyError(f"{folder}: expected format 1 or 2, got {json.dumps(config['format'])}")
    if "agent" not in config or "environment" not in config:
        raise PolicyError(f"{paths[0]}: expected the settings of a run, with its agent and its environment, got others")
    if "network" not in config:
        raise PolicyError(f"{folder}: expected a multilayer perceptron, got a transformer: use `gradus sample`")
    if "wrappers" not in config:
        raise PolicyError(f"{paths[0]}: expected the section wrappers, got none")
    for key, plain in [("atari", "off"), ("frame_stack", 1), ("time_aware", False)]:
        if not wrapped and config["wrappers"].get(key, plain) != plain:
            raise PolicyError(f"{folder}: expected wrappers.{key} = {json.dumps(plain)}, got {json.dumps(config['wrappers'][key])}")
    tensors = read_safetensors(paths[1])
    made_with = settings_in(paths[1], note_of(paths[1]))
    for section in ("agent", "environment", "network", "wrappers", config["agent"]):
        ours, theirs = config.get(section), made_with.get(section)
        if None in (ours, theirs):
            continue  # of an earlier version
        same = all(ours[key] == theirs[key] for key in ours.keys() & theirs.keys()) if isinstance(ours, dict) and isinstance(theirs, dict) else ours == theirs
        # the file of an environment may be elsewhere
        if not same and not (section == "environment" and ":" in ours):
            raise PolicyError(f"{paths[1]}: made with other settings than config.toml in the same folder: {section} differs")
    if "action_values" in tensors or "weights" in tensors:
        raise PolicyError(f"{folder}: expected a multilayer perceptron, got a table of {config['agent']}: use `gradus eval` and `gradus values`")
    if "observation_statistics" in tensors:
        advice = f"`gradus train --resume {folder}` converts the file"
        raise PolicyError(f"{paths[1]}: expected tensors observations.*, got observation_statistics of an earlier version; {advice}")
    if config["wrappers"].get("normalise_observations", False) and "observations.mean" not in tensors:
        raise PolicyError(f"{paths[1]}: expected the tensor observations.mean, got none")
    # of environments of Gymnasium: the numbers of values of an action's choices, and the bounds of actions
    record = folder / "gym.toml"
    text = text_of(record) if record.exists() else ""
    lines, mark, hash = text.rpartition("# sha256 ")
    if mark and hashlib.sha256(lines.encode()).hexdigest() != hash.strip():
        raise PolicyError(f"{record}: damaged: its SHA-256 is not the one that was stored with it")
    known = settings_in(record, text)
    config["actions"] = {key: known[key] for key in ("choices", "low", "high") if key in known}
    if ("low" in known) != ("high" in known):
        raise PolicyError(f"{record}: expected both bounds of actions, got one")
    # of the observations: the kind of Gymnasium's space, the first state of a discrete one, and whether they are images of bytes
    config["seen"] = {"kind": known.get("observations"), "start": known.get("start", 0), "is_image": known.get("image", False), "parts": known.get("parts")}
    if config["network"].get("activation") not in ("tanh", "relu"):
        raise PolicyError(f"{paths[0]}: expected network.activation tanh or relu, got {json.dumps(config['network'].get('activation'))}")
    return config, tensors


def layers(tensors, name):
    """Returns one network from input to output: weight and bias of each layer, and gains and shifts of the layer normalisation after it (or None).
    The names number the layers 0, 2, 4, because activations count too."""
    found = sorted(int(match[1]) for match in (re.fullmatch(rf"{re.escape(name)}[.](\d+)[.]weight", key) for key in tensors) if match)
    pairs = [(tensors[f"{name}.{i}.weight"], tensors[f"{name}.{i}.bias"]) for i in found]
    chain = []
    for weight, bias in pairs:
        if weight.ndim == 1:
            chain[-1] = (*chain[-1][:2], (weight, bias))
        else:
            chain.append((weight, bias, None))
    return chain


NAMED_TRUNKS = {"none": "", "nature": "32x8/4,64x4/2,64x3", "impala-small": "section16,section32,section32", "arcade": "16x3"}


def steps_of(trunk):
    """Returns what the layers of `network.trunk` do, one after another: ("convolve", size, stride, padding, is_hidden), ("pool", size, stride, padding), ("activate",),
    ("keep",) and ("add",). A section is a convolution, pooling, and two residual blocks."""
    steps = []
    parts = [part for part in NAMED_TRUNKS.get(trunk, trunk).split(",") if part]
    for i, part in enumerate(parts):
        if part.startswith("section"):
            block = [("keep",), ("activate",), ("convolve", 3, 1, 1, True), ("convolve", 3, 1, 1, False), ("add",)]
            steps += [("convolve", 3, 1, 1, False), ("pool", 3, 2, 1), *block, *block]
            if not parts[i + 1 : i + 2] or not parts[i + 1].startswith("section"):
                steps.append(("activate",))
            continue
        kind, size, stride, padding = re.fullmatch(r"(max|\d+x)(\d+)(?:/(\d+))?(?:[+](\d+))?", part.strip()).groups()
        window = int(size), int(stride or 1), int(padding or 0)
        steps.append(("pool", *window) if kind == "max" else ("convolve", *window, True))
    return steps


def planes_of(x, planes, transposed=np.transpose):
    """Returns images as images x planes x height x width, and whether there is only one."""
    if x.ndim == 3 and x.shape[-1] == planes:
        return transposed(x, (2, 0, 1))[None], True
    if x.ndim == 3 and x.shape[0] == planes:
        return x[None], True
    if x.ndim == 4 and x.shape[-1] == planes:
        return transposed(x, (0, 3, 1, 2)), False
    if x.ndim == 4 and x.shape[1] == planes:
        return x, False
    if x.ndim == 4 and x.shape[0] * x.shape[-1] == planes:
        return transposed(x, (0, 3, 1, 2)).reshape(planes, *x.shape[1:3])[None], True
    raise ValueError(f"observation: expected an image of {planes} planes (frames x channels), got an array of the shape {x.shape}")


def see(x, tensors, name, trunk, activation):
    """Applies the convolutional layers of the part `name` to images x planes x height x width. Returns rows, plane by plane."""
    kept, number = None, 0
    for step, *window in steps_of(trunk):
        if step == "keep":
            kept = x
        elif step == "add":
            x = x + kept
        elif step == "activate":
            x = activation(x)
        else:
            size, stride, padding = window[:3]
            edge = np.float32(-np.inf if step == "pool" else 0)
            x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)), constant_values=edge)
            views = np.lib.stride_tricks.sliding_window_view(x, (size, size), (2, 3))[:, :, ::stride, ::stride]
            if step == "pool":
                x = views.max((-2, -1))
                continue
            weight, bias = (tensors[f"{name}.convolutions.{number}.{part}"] for part in ("weight", "bias"))
            x = np.moveaxis(np.tensordot(views, weight, ((1, 4, 5), (1, 2, 3))) + bias, -1, 1)
            if f"{name}.norms.{number}.weight" in tensors:
                gains, shifts = (tensors[f"{name}.norms.{number}.{part}"][:, None, None] for part in ("weight", "bias"))
                x = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + np.float32(1e-5)) * gains + shifts
            x, number = activation(x) if window[3] else x, number + 1
    return x.reshape(len(x), -1)


def atoms_of(config):
    """Returns the number of outputs per action of a network of action values: QR-DQN's quantiles, otherwise 1."""
    return config.get("qr-dqn", {}).get("quantiles", 1)


def has_action_values(tensors):
    return any(name.startswith(("q.", "advantage.")) for name in tensors)


def sigmoid(x):
    return np.float32(1) / (np.float32(1) + np.exp(-x))


def memory_of(config, tensors):
    """Returns the parts of a network that have a recurrent cell, each with the place of its numbers in a memory and how many they are, and whether it is an LSTM."""
    network = config["network"]
    is_lstm = network.get("cell", "none") == "lstm"
    n, places = network.get("cell_width", 0) * (2 if is_lstm else 1), {}
    for part in ("trunk", "actor", "q", "critic"):
        if f"{part}.cell.weight_ih" in tensors:
            places[part] = (n * len(places), n)
    return places, is_lstm


def state_of(x, start, width):
    """Returns the place of a state of a discrete space among all of them."""
    if not start <= x < start + width:
        raise ValueError(f"observation: expected a state of {start} to {start + width - 1}, got {x}")
    return int(x) - start


def flat(policy, space, observation, name=""):
    """Returns the numbers of an observation of a Gymnasium space that a policy reads: those of its parts, one after the other, without the parts that the training left out."""
    from gymnasium import spaces
    from gymnasium.spaces.utils import flatten

    if isinstance(space, (spaces.Dict, spaces.Tuple)):
        pairs = space.spaces.items() if isinstance(space, spaces.Dict) else enumerate(space.spaces)
        found = [flat(policy, inner, observation[key], f"{name}.{key}" if name else str(key)) for key, inner in pairs]
        return np.concatenate([np.zeros(0, dtype=np.float32), *found])
    if name and policy.seen["parts"] is not None and name not in policy.seen["parts"]:
        return np.zeros(0, dtype=np.float32)
    return flatten(space, observation)


def numbers_of(x, seen, width):
    """Returns an observation, or rows of them, as rows of numbers. The numbers of a box are put one after the other; bytes of an image are divided by 255."""
    if x.ndim == 0 and width == 1:
        x = x.reshape(1)
    if x.ndim and x.shape[-1] != width and seen["kind"] in (None, "Box") and np.prod(tuple(x.shape)) == width:
        x = x.reshape(-1)
    if x.ndim == 0 or x.shape[-1] != width:
        where = "" if seen["kind"] in (None, "Box", "Discrete") else f", those of flat(policy, space, observation) for the space {seen['kind']}"
        raise ValueError(f"observation: expected {width} numbers{where}, got the shape {tuple(x.shape)}")
    return x / np.float32(255) if seen["is_image"] and str(x.dtype).endswith("uint8") else x


def mask_of(mask, shape, choices):
    """Returns an action mask as an array of bools, which leaves an action of each choice. A row of a batch that allows nothing, as of an episode that has ended, allows everything.
    The mask of several choices is one array, or a tuple with one for each."""
    if choices and isinstance(mask, (tuple, list)) and [np.shape(part)[-1:] for part in mask] == [(n,) for n in choices]:
        mask = np.concatenate([part.cpu() if hasattr(part, "cpu") else part for part in mask], -1)
    allowed = np.array(mask.cpu() if hasattr(mask, "cpu") else mask, dtype=bool)
    if allowed.shape[-1:] != tuple(shape[-1:]):
        raise ValueError(f"action mask: expected {shape[-1]} entries, got the shape {allowed.shape}")
    for part in np.split(allowed, np.cumsum(choices or [shape[-1]])[:-1], axis=-1):
        is_empty = ~part.any(-1, keepdims=True)
        if allowed.ndim == 1 and is_empty.any():
            raise ValueError("action mask: expected at least one allowed action, got none")
        part |= is_empty
    return allowed


def check_memory(memory, rows, places):
    """Raises a ValueError if `memory` is not what a policy remembers of `rows` episodes, which are the shape of the observations without their last axis."""
    expected = (*rows, sum(n for _, n in places.values()))
    if memory is None:
        got = "None"
    elif tuple(memory.shape) != expected or not str(memory.dtype).removeprefix("torch.").startswith("float"):
        got = f"{memory.dtype} of shape {tuple(memory.shape)}"
    elif not bool((abs(memory) < float("inf")).all()):
        got = "a number that is not finite"
    else:
        return
    raise ValueError(f"memory: expected what policy.memory() returned at the beginning of the episode, floats of shape {expected}, got {got}")


def largest_of(environment):
    """The largest byte of an image: planes of Gradus have 0 and 1."""
    return 1 if re.match("(asterix|breakout|freeway|seaquest|space-invaders|door-key)", environment) else 255


def width_of(tensors):
    """Returns how many numbers an observation has: those that the first layer reads, or the recurrent cell if no layer comes before it."""
    for part in ("trunk", "actor", "q", "advantage"):
        found, cell = layers(tensors, part), tensors.get(f"{part}.cell.weight_ih")
        before = found if part == "trunk" or cell is None else found[:-1]
        if before or cell is not None:
            return (before[0][0] if before else cell).shape[1]
    raise PolicyError("expected a network of an actor or of action values, got none")


def critics_of(tensors):
    """Returns the names of the critics of actions: critic.0, critic.1 and so on; none if the critic reads observations only."""
    return sorted({".".join(name.split(".")[:2]) for name in tensors if re.match(r"critic[.]\d+[.]\d+[.]", name)})


class Policy:
    """A NumPy policy."""

    def __init__(self, config, tensors, bounds=None):
        self.environment, self.seen = config["environment"], config["seen"]
        critics = critics_of(tensors)
        self.is_discrete = "actor.log_std" not in tensors and not critics
        self.activation = {"tanh": np.tanh, "relu": lambda x: np.maximum(x, np.float32(0))}[config["network"]["activation"]]
        # `trunk` has the hidden layers if actor and critic share them
        self.trunk, self.actor, self.critic = (layers(tensors, name) for name in ("trunk", "actor", "critic"))
        self.sees, self.tensors = config["network"].get("trunk", "none"), tensors
        # with critics of actions; the critics' inputs are observation and action
        self.critics = [layers(tensors, name) for name in critics]
        self.width = self.critics[0][0][0].shape[1] - self.actor[0][0].shape[1] if critics else None
        # with action values instead of an actor: `q`, or with a dueling architecture `value` and `advantage`
        self.q, self.state_value, self.advantage = (layers(tensors, name) for name in ("q", "value", "advantage"))
        self.has_action_values, self.atoms = has_action_values(tensors), atoms_of(config)
        self.log_std = tensors.get("actor.log_std")
        self.mean, self.variance = (tensors.get(f"observations.{name}") for name in ("mean", "variance"))
        if self.mean is not None:
            self.epsilon, self.clip = (tensors[f"observations.{name}"].item() for name in ("epsilon", "clip"))
        self.bounds = bounds_of(config, bounds, self.is_discrete)
        self.choices = config["actions"].get("choices")
        self.places, self.is_lstm = memory_of(config, tensors)

    def memory(self, rows=None):
        """Returns what the policy remembers at the beginning of an episode: zeros, for one observation or for `rows` of them; nothing without a recurrent cell."""
        width = sum(n for _, n in self.places.values())
        return np.zeros(width if rows is None else (rows, width), dtype=np.float32)

    def _remember(self, x, part, before, after):
        """Applies the recurrent cell of a part: reads `before`, writes `after`, if it is not None, and returns h."""
        at, n = self.places[part]
        weight = lambda name: self.tensors[f"{part}.cell.{name}"]
        units = weight("weight_hh").shape[1]
        h = before[..., at : at + units]
        of_x, of_h = x @ weight("weight_ih").T + weight("bias_ih"), h @ weight("weight_hh").T + weight("bias_hh")
        if self.is_lstm:
            i, f, g, o = np.split(of_x + of_h, 4, -1)
            c = sigmoid(f) * before[..., at + units : at + n] + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
            new = np.concatenate([h, c], -1)
        else:
            (r_x, z_x, n_x), (r_h, z_h, n_h) = np.split(of_x, 3, -1), np.split(of_h, 3, -1)
            z = sigmoid(z_x + z_h)
            candidate = np.tanh(n_x + sigmoid(r_x + r_h) * n_h)
            new = h = (np.float32(1) - z) * candidate + z * h
        if after is not None:
            after[..., at : at + n] = new
        return h

    def normalise(self, observation):
        """Returns observations as the network reads them: rows of float32."""
        x = np.asarray(observation)
        if not np.isfinite(x).all():
            raise ValueError("observation: expected finite numbers, got others")
        if self.sees != "none":
            share = np.float32(largest_of(self.environment) if x.dtype == np.uint8 else 1)
            planes = next(numbers.shape[1] for name, numbers in self.tensors.items() if name.endswith("convolutions.0.weight"))
            images, is_single = planes_of(x, planes)
            images = images.astype(np.float32) / share
            return images[0] if is_single else images
        width = width_of(self.tensors)
        if np.issubdtype(x.dtype, np.integer) and x.ndim == 0:
            x = np.eye(width, dtype=np.float32)[state_of(x, self.seen["start"], width)]
        x = numbers_of(x, self.seen, width).astype(np.float32)
        if self.mean is None:
            return x
        x = ((x.astype(np.float64) - self.mean) / np.sqrt(self.variance + self.epsilon)).astype(np.float32)
        return np.clip(x, np.float32(-self.clip), np.float32(self.clip))

    def _forward(self, x, network, before=None, after=None):
        chain = self.trunk + network
        part = next((name for name in ("actor", "critic", "q") if getattr(self, name) is network), None)
        part = "trunk" if "trunk" in self.places else part
        # a cell that networks share comes before their own layers, and one of a network before its last layer
        cell = len(self.trunk) if part == "trunk" else len(chain) - 1
        if self.sees != "none":
            own = next((name for name in ("actor", "critic") if getattr(self, name) is network), "trunk")
            own = own if f"{own}.convolutions.0.weight" in self.tensors else "trunk"
            rows = see(x if x.ndim == 4 else x[None], self.tensors, own, self.sees, self.activation)
            x = rows if x.ndim == 4 else rows[0]
        for i, (weight, bias, norm) in enumerate(chain):
            if i == cell and part in self.places:
                x = self._remember(x, part, before, after)
            x = x @ weight.T + bias
            if norm is not None:
                x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + np.float32(1e-5)) * norm[0] + norm[1]
            if i + 1 < len(chain):
                x = self.activation(x)
        return x

    def head(self, observation, memory=None, after=None):
        """Returns the logits or the values of discrete actions, or the means of continuous actions before clipping. Writes what is remembered then to `after`, if it is not None."""
        x = self.normalise(observation)
        if self.places:
            check_memory(memory, x.shape[: -1 if self.sees == "none" else -3], self.places)
        if not self.has_action_values:
            means = self._forward(x, self.actor, memory, after)
            if after is not None and "critic" in self.places:
                self._forward(x, self.critic, memory, after)  # it has a memory of its own
            if not self.critics:
                return means
            means = means[..., : self.width]
            return means if self.log_std is None else np.clip(means, np.float32(-2), np.float32(2))
        q = self._forward(x, self.q or self.advantage, memory, after)
        q = q.reshape(*q.shape[:-1], -1, self.atoms)  # actions x quantiles
        if self.advantage:
            q = self._forward(x, self.state_value, memory, after)[..., None, :] + q - q.mean(-2, keepdims=True)
        return q.mean(-1)

    def value(self, observation, memory=None):
        """Returns the critic's estimate of the return, the largest action value, or the smallest estimate of all critics for the actor's
        action. If rewards were normalised, this is the return of the normalised rewards."""
        if self.has_action_values:
            return self.head(observation, memory).max(-1)
        if self.critics:
            pairs = np.concatenate([self.normalise(observation), np.tanh(self.head(observation))], -1)
            return np.min([self._forward(pairs, critic)[..., 0] for critic in self.critics], 0)
        x = self.normalise(observation)
        if self.places:
            check_memory(memory, x.shape[: -1 if self.sees == "none" else -3], self.places)
        return self._forward(x, self.critic, memory)[..., 0]

    def act(self, observation, mask=None, memory=None):
        """Returns the most probable action. `mask` marks the allowed discrete actions, such as `info["action_mask"]` of Gymnasium's Taxi. `memory` is what a policy
        with a recurrent cell remembers; the call replaces its numbers."""
        after = None if memory is None or not self.places else np.empty_like(memory)
        head = self.head(observation, memory, after)
        if after is not None:
            memory[...] = after
        if self.is_discrete:
            if mask is not None:
                head = np.where(mask_of(mask, head.shape, self.choices), head, -np.inf)
            if self.choices:
                parts = np.split(head, np.cumsum(self.choices)[:-1], axis=-1)
                return np.stack([np.argmax(part, axis=-1) for part in parts], -1)
            return np.argmax(head, axis=-1)
        if self.critics:
            low, high = self.bounds
            head = low + np.float32(0.5) * (np.tanh(head) + np.float32(1)) * (high - low)
        return np.clip(head, *self.bounds)


def bounds_of(config, bounds, is_discrete):
    """Returns the lowest and the highest action as float32."""
    environment, known = config["environment"], config["actions"]
    if bounds is None:
        bounds = (known["low"], known["high"]) if "low" in known else BOUNDS.get(environment.removesuffix("-masked"))
    if bounds is None and not is_discrete:
        raise PolicyError(f"{environment}: expected the bounds of its actions, got none: load(folder, bounds=(low, high))")
    return None if bounds is None else tuple(np.asarray(bound, dtype=np.float32) for bound in bounds)


def torch_policy(config, tensors, bounds=None):
    """Returns a PyTorch module. Its networks are `Sequential`, and the parameters have the same names as in the file, except that `value` of a
    dueling architecture is `state_value`."""
    import torch

    class Module(torch.nn.Module):
        """A PyTorch policy with the methods of `Policy`. Its parameters require gradients, so it can be trained further."""

        def __init__(self):
            super().__init__()
            activation = {"tanh": torch.nn.Tanh, "relu": torch.nn.ReLU}[config["network"]["activation"]]
            critics = critics_of(tensors)

            trunk = config["network"].get("trunk", "none")
            self.sees = trunk != "none"
            places, is_lstm = memory_of(config, tensors)
            going = {"before": None, "after": None}
            self.places, self.going = places, going

            class Chain(torch.nn.Sequential):
                """Layers that are numbered, after convolutional layers, if there are some."""

                def forward(self, x):
                    if hasattr(self, "convolutions"):
                        x = self.see(x)
                    numbered = [module for name, module in self.named_children() if name.isdigit()]
                    # a cell comes after the layers that networks share, or before the last layer of one
                    last = len(numbered) - (self.part != "trunk")
                    for i, module in enumerate([*numbered, torch.nn.Identity()]):
                        if hasattr(self, "cell") and i == last:
                            x = self.remember(x)
                        x = module(x)
                    return x

                def remember(self, x):
                    at, n = places[self.part]
                    own, is_single = going["before"][..., at : at + n], x.ndim == 1
                    x, own = (x[None], own[None]) if is_single else (x, own)
                    if is_lstm:
                        new = self.cell(x, own.split(n // 2, -1))
                        h, new = new[0], torch.cat(new, -1)
                    else:
                        h = new = self.cell(x, own)
                    if going["after"] is not None:
                        going["after"][..., at : at + n] = new[0] if is_single else new
                    return h[0] if is_single else h

                def see(self, x):
                    kept, number, is_single = None, 0, x.ndim == 3
                    x = x[None] if is_single else x
                    for step, *window in steps_of(trunk):
                        if step == "keep":
                            kept = x
                        elif step == "add":
                            x = x + kept
                        elif step == "activate":
                            x = activation()(x)
                        elif step == "pool":
                            x = torch.nn.functional.max_pool2d(x, *window)
                        else:
                            x = self.convolutions[number](x)
                            if hasattr(self, "norms") and str(number) in self.norms:
                                x = self.norms[str(number)](x.movedim(1, -1)).movedim(-1, 1)
                            x, number = activation()(x) if window[3] else x, number + 1
                    return x.flatten(1)[0] if is_single else x.flatten(1)

            def chain(name):
                modules = Chain()
                filters = [tensors[key] for key in sorted(tensors, key=lambda key: (len(key), key)) if re.match(rf"{name}[.]convolutions[.]\d+[.]weight", key)]
                norms = [key.split(".")[2] for key in tensors if re.match(rf"{name}[.]norms[.]\d+[.]weight", key)]
                if filters:
                    windows = [window for step, *window in steps_of(trunk) if step == "convolve"]
                    shapes = [(weight.shape[1], weight.shape[0], *window[:3]) for weight, window in zip(filters, windows)]
                    modules.convolutions = torch.nn.ModuleList(torch.nn.Conv2d(*shape) for shape in shapes)
                if norms:
                    modules.norms = torch.nn.ModuleDict({i: torch.nn.LayerNorm(filters[int(i)].shape[0]) for i in norms})
                add = lambda module: modules.add_module(str(sum(name.isdigit() for name, _ in modules.named_children())), module)
                modules.part = name
                if name in places:
                    weight = tensors[f"{name}.cell.weight_ih"]
                    units = tensors[f"{name}.cell.weight_hh"].shape[1]
                    modules.cell = (torch.nn.LSTMCell if is_lstm else torch.nn.GRUCell)(weight.shape[1], units)
                found = layers(tensors, name)
                for i, (weight, _, norm) in enumerate(found):
                    add(torch.nn.Linear(weight.shape[1], weight.shape[0]))
                    if norm is not None:
                        add(torch.nn.LayerNorm(weight.shape[0]))
                    if i + 1 < len(found) or name == "trunk":
                        add(activation())
                return modules

            self.has_action_values, self.atoms = has_action_values(tensors), atoms_of(config)
            self.trunk = chain("trunk")
            if self.has_action_values:
                self.q, self.advantage, self.state_value = chain("q"), chain("advantage"), chain("value")
            else:
                self.actor = chain("actor")
                self.critic = torch.nn.ModuleList(chain(name) for name in critics) if critics else chain("critic")
            self.is_discrete = "actor.log_std" not in tensors and not critics
            self.environment, self.seen = config["environment"], config["seen"]
            self.bounds = bounds_of(config, bounds, self.is_discrete)
            self.choices = config["actions"].get("choices")
            if "actor.log_std" in tensors:
                self.actor.register_parameter("log_std", torch.nn.Parameter(torch.zeros(tensors["actor.log_std"].shape)))
            self.has_statistics = "observations.mean" in tensors
            if self.has_statistics:
                self.observations = torch.nn.Module()
                for name in ("mean", "variance", "count", "epsilon", "clip"):
                    self.observations.register_buffer(name, torch.zeros(tensors[f"observations.{name}"].shape, dtype=torch.float64))
            # strict: the names of the file and of the module must match exactly; `value` is a method of the module
            named = {re.sub("^value[.]", "state_value.", name): numbers for name, numbers in tensors.items()}
            self.load_state_dict({name: torch.from_numpy(numbers.copy()) for name, numbers in named.items()})

        def normalise(self, observation):
            x = torch.as_tensor(observation)
            if not bool(torch.isfinite(x).all()):
                raise ValueError("observation: expected finite numbers, got others")
            if self.sees:
                planes = next(numbers.shape[1] for name, numbers in tensors.items() if name.endswith("convolutions.0.weight"))
                x, is_single = planes_of(x if x.dtype == torch.uint8 else x.float(), planes, torch.permute)
                x = x.float() / largest_of(self.environment) if x.dtype == torch.uint8 else x
                return x[0] if is_single else x
            width = width_of(tensors)
            if not x.is_floating_point() and x.ndim == 0:
                x = torch.nn.functional.one_hot(torch.tensor(state_of(x.item(), self.seen["start"], width)), width)
            is_bytes = x.dtype == torch.uint8
            x = numbers_of(x if is_bytes else x.float(), self.seen, width).float()
            if not self.has_statistics:
                return x
            known = self.observations
            x = ((x.double() - known.mean) / torch.sqrt(known.variance + known.epsilon)).float()
            return torch.clip(x, -known.clip.item(), known.clip.item())

        def memory(self, rows=None):
            width = sum(n for _, n in self.places.values())
            return torch.zeros(width if rows is None else (rows, width))

        def head(self, observation, memory=None, after=None):
            x = self._begun(observation, memory, after)
            if not self.has_action_values:
                means = self.actor(x)
                if after is not None and "critic" in self.places:
                    self.critic(x)  # it has a memory of its own
                if not self.has_critics_of_actions():
                    return means
                means = means[..., : self.critic[0][0].in_features - self.actor[0].in_features]
                return means.clip(-2, 2) if hasattr(self.actor, "log_std") else means
            q = (self.q if len(self.q) else self.advantage)(x).unflatten(-1, (-1, self.atoms))  # actions x quantiles
            if len(self.advantage):
                q = self.state_value(x).unsqueeze(-2) + q - q.mean(-2, keepdim=True)
            return q.mean(-1)

        def value(self, observation, memory=None):
            if self.has_action_values:
                return self.head(observation, memory).amax(-1)
            if self.has_critics_of_actions():
                pairs = torch.cat([self.normalise(observation), self.head(observation).tanh()], -1)
                return torch.stack([critic(pairs)[..., 0] for critic in self.critic]).amin(0)
            return self.critic(self._begun(observation, memory, None))[..., 0]

        def _begun(self, observation, memory, after):
            x = self.normalise(observation)
            if self.places:
                check_memory(memory, x.shape[: -3 if self.sees else -1], self.places)
            self.going.update(before=memory, after=after)
            return self.trunk(x)

        def has_critics_of_actions(self):
            return isinstance(getattr(self, "critic", None), torch.nn.ModuleList)

        def act(self, observation, mask=None, memory=None):
            with torch.no_grad():
                after = None if memory is None or not self.places else torch.empty_like(memory)
                head = self.head(observation, memory, after)
                if after is not None:
                    memory.copy_(after)
                if self.is_discrete:
                    if mask is not None:
                        head = head.masked_fill(~torch.from_numpy(mask_of(mask, head.shape, self.choices)).to(head.device), -torch.inf)
                    if self.choices:
                        return torch.stack([part.argmax(-1) for part in head.split(self.choices, -1)], -1)
                    return head.argmax(-1)
                low, high = (torch.from_numpy(bound) for bound in self.bounds)
                if self.has_critics_of_actions():
                    head = low + 0.5 * (head.tanh() + 1) * (high - low)
                return torch.clip(head, low, high)

    return Module()


def load(folder, backend="numpy", bounds=None, wrapped=False):
    """Returns the policy of a run folder. `backend` is `numpy` or `torch`. `bounds` are the lowest and the highest continuous action. They are
    not needed for Gymnasium's classic tasks and for runs in environments of Gymnasium, `gym:ID`. With `wrapped` you apply the wrappers `frame_stack`, `atari` and
    `time_aware` yourself."""
    makers = {"numpy": Policy, "torch": torch_policy}
    if backend not in makers:
        raise PolicyError(f"backend: expected numpy or torch, got {backend}")
    return makers[backend](*read(folder, wrapped), bounds)


def play(policy, env, episodes, seed=0):
    """Returns the returns of `episodes` episodes in a Gymnasium environment. A policy of a run that did not see velocities does not see them here."""
    returns, seen, space = [], SEEN.get(policy.environment, []), getattr(env, "action_space", None)
    is_flat = policy.seen["kind"] in ("MultiDiscrete", "MultiBinary", "Dict", "Tuple")
    for episode in range(episodes):
        observation, info = env.reset(seed=seed + episode)
        total, is_over, memory = 0.0, False, policy.memory()
        while not is_over:
            if seen and np.shape(observation) == (len(seen),):
                observation = observation * np.asarray(seen, dtype=observation.dtype)
            if is_flat:
                observation = flat(policy, env.observation_space, observation)
            action = np.asarray(policy.act(observation, info.get("action_mask"), memory))
            if policy.is_discrete:
                action = action.reshape(getattr(space, "shape", ())) + getattr(space, "start", 0)
            elif space is not None:
                action = (np.rint(action) if np.issubdtype(space.dtype, np.integer) else action).astype(space.dtype).reshape(space.shape)
                action = np.clip(action, space.low, space.high)  # rounded to float32, a bound may lie outside
            observation, reward, terminated, truncated, info = env.step(action if action.ndim else action.item())
            total, is_over = total + float(reward), terminated or truncated
        returns.append(total)
    return returns


def main():
    import argparse
    import sys

    parser = argparse.ArgumentParser(description="Plays the policy of a run folder in Gymnasium.")
    parser.add_argument("folder")
    parser.add_argument("environment", help="Gymnasium's name, such as CartPole-v1")
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--backend", default="numpy", choices=["numpy", "torch"])
    arguments = parser.parse_args()
    if arguments.episodes < 1:
        sys.exit(f"error: --episodes: expected a number from 1 up, got {arguments.episodes}")
    try:
        policy = load(arguments.folder, arguments.backend)
    except PolicyError as error:
        sys.exit(f"error: {error}")
    import gymnasium

    try:
        env = gymnasium.make(arguments.environment)
    except gymnasium.error.Error as error:
        sys.exit(f"error: {' '.join(str(error).split())}")
    returns = play(policy, env, arguments.episodes, arguments.seed)
    error = np.std(returns, ddof=1) / np.sqrt(len(returns)) if len(returns) > 1 else float("nan")
    print(f"mean return {np.mean(returns):.2f} over {len(returns)} episodes, standard error {error:.2f}")


if __name__ == "__main__":
    main()
