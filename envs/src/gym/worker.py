"""Steps environments of Gymnasium for a program of Gradus. Both ends speak the protocol of docs/gym-protocol.md."""

import sys

# `python -c` looks into the current folder first: a file there named like a module of Python's must not take its place
sys.path = [path for path in sys.path if path] + [""]

import ast
import json
import math
import mmap
import os
import platform
import signal
import struct
import threading
import time
import traceback

PROTOCOL = 2

# the pipes of the protocol; what an environment reads or prints must not touch them
requests = os.dup(0)
answers = os.dup(1)
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
os.dup2(2, 1)
# Ctrl-C is for the program, which ends this process by closing the pipe
signal.signal(signal.SIGINT, signal.SIG_IGN)

# modules that register the environments of a namespace
MODULES = {"ALE": "ale_py", "MiniGrid": "minigrid", "BabyAI": "minigrid"}
# packages whose name is not that of their module
KNOWN_PACKAGES = {"ale_py": "ale-py"}
# what `gymnasium[...]` installs for environments of its own
EXTRAS = {"box2d": "box2d", "mujoco": "mujoco", "pygame": "classic-control", "toy": "toy-text"}


class Closed(BaseException):
    """The program has ended, or needs this process no more."""


class Problem(Exception):
    """What is wrong, in one line for the user."""


# Seconds for which a process looks for the other one's byte before it sleeps: waking up takes some twenty microseconds, as long as a step of a
# small environment. Where the last answer took longer, it sleeps at once.
SPIN = 100e-6
# seconds that closing environments may take
CLOSING = 5
# the bits of an ending; a text is no truth value, although it is true
TERMINATED, TRUNCATED = {False: 0, True: 1}, {False: 0, True: 2}
give_way = getattr(os, "sched_yield", lambda: time.sleep(0))


def receive(n):
    data = b""
    while len(data) < n:
        part = os.read(requests, n - len(data))
        if not part:
            raise Closed
        data += part
    return data


def send(data):
    while data:
        data = data[os.write(answers, data):]


def send_json(kind, value):
    text = json.dumps(value).encode()
    send(kind + struct.pack("<I", len(text)) + text)


def leave_with_parent(parent):
    """Ends this process when its parent has ended, also while an environment does not return."""
    while os.getppid() == parent:
        time.sleep(1.0)
    time.sleep(CLOSING)
    os._exit(0)


def late(*_):
    raise TimeoutError


def close(envs):
    """Closes environments, which may have a file to finish (a video). Each may take `CLOSING` seconds; what else goes wrong is of no interest any more."""
    for env in envs:
        try:
            if hasattr(signal, "alarm"):
                signal.signal(signal.SIGALRM, late)
                signal.alarm(CLOSING)
            env.close()
        except (Exception, SystemExit):
            pass
        finally:
            if hasattr(signal, "alarm"):
                signal.alarm(0)


def one_line(error):
    """The type, the message and the place of an exception."""
    if isinstance(error, Problem):
        return str(error)
    message = " ".join(str(error).split())
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != "<string>"]
    place = f" (at {frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}{': ' if message else ''}{message}{place}"


def value(text):
    """A Python literal, or else the text itself."""
    if text in ("true", "false"):
        return text == "true"
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def import_gymnasium():
    if sys.version_info < (3, 10):
        raise Problem(f"expected Python 3.10 or later, as gymnasium 1.0 does, got {platform.python_version()} ({sys.executable}); --python PATH names another one")
    try:
        import numpy  # noqa: F401
        import gymnasium
    except ImportError as error:
        # a package that is there and cannot be imported has a problem of its own
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing not in ("numpy", "gymnasium"):
            raise
        raise Problem(f"no module {missing} in {sys.executable}: {sys.executable} -m pip install gymnasium") from None
    if not hasattr(gymnasium.Env, "np_random_seed"):
        raise Problem(f"expected gymnasium 1.0 or later, got {gymnasium.__version__}: {sys.executable} -m pip install --upgrade gymnasium")
    return gymnasium


def identify(gymnasium, name):
    """Returns the identifier that `gymnasium.make` knows, after importing the module that registers it."""
    import importlib

    def load(module):
        try:
            importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name and module.split(".")[0] == error.name.split(".")[0]:
                package = KNOWN_PACKAGES.get(module, module.split(".")[0].replace("_", "-"))
                raise Problem(
                    f"no module {module} in {sys.executable}: {sys.executable} -m pip install {package}; a module of your own must be in the current folder or in PYTHONPATH"
                ) from None
            raise

    if ":" in name:
        module, name = name.split(":", 1)
        if not all(part.isidentifier() for part in module.split(".")) or module.endswith(".py") or ":" in name:
            raise Problem(f"expected MODULE:ID, such as my_worlds:Maze-v0 of the file my_worlds.py, got {module}:{name}")
        load(module)
        return name
    if name in gymnasium.registry:
        return name
    space, slash, rest = name.partition("/")
    if slash:
        # a known namespace, or a module whose environments have names without it
        if not all(part.isidentifier() for part in space.split(".")):
            raise Problem(f"expected MODULE/ID or MODULE:ID, got {name}")
        load(MODULES.get(space, space))
        # a namespace with environments of its own has this one in another version, or none of this name
        if name in gymnasium.registry or any(known.startswith(f"{space}/") for known in gymnasium.registry):
            return name
        return rest
    known = MODULES.get(name.split("-")[0]) or ("ale_py" if "NoFrameskip-v" in name else None)
    if known:
        load(known)
    return name


# wrappers whose numbers depend on all earlier steps, and the settings that take their place
STATISTICS = {"NormalizeObservation": "wrappers.normalise_observations", "NormalizeReward": "wrappers.normalise_rewards"}


def wrap(gymnasium, env, module, text):
    """Applies the wrapper `text`, such as `FrameStackObservation(4)` or `minigrid.wrappers.ImgObsWrapper`."""
    import importlib

    try:
        call = ast.parse(text, mode="eval").body
        arguments, keywords = [], {}
        if isinstance(call, ast.Call):
            arguments = [ast.literal_eval(argument) for argument in call.args]
            keywords = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}
            call = call.func
        path = ast.unparse(call)
        if not all(part.isidentifier() for part in path.split(".")):
            raise ValueError
    except (SyntaxError, ValueError):
        raise Problem(f"wrapper: expected a name with numbers or texts, such as FrameStackObservation(4), got `{text}`") from None
    home, _, name = path.rpartition(".")
    for place in [home] if home else ["gymnasium.wrappers", f"{module}.wrappers" if module else None]:
        if place is None:
            continue
        try:
            found = getattr(importlib.import_module(place), name, None)
        except ImportError:
            continue
        if found is not None:
            if name in STATISTICS and found.__module__.startswith("gymnasium."):
                raise Problem(f"wrapper {name}: expected none with statistics, which would differ from process to process, got one; use {STATISTICS[name]}=true")
            return found(env, *arguments, **keywords)
    raise Problem(f"unknown wrapper `{path}`: expected one of gymnasium.wrappers, or module.Class")


def shortened(value):
    """A value in a message."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else text[:77] + "..."


class Leaf:
    """A part of an observation: `put(row, observation)` writes it to its numbers."""

    def __init__(self, name, low, high, is_byte, put):
        self.name, self.low, self.high, self.is_byte, self.put = name, low, high, is_byte, put


def leaves(spaces, np, space, name, take, keys, left_out):
    """The parts of an observation space, in the order of `gymnasium.spaces.utils.flatten`. `take` finds the part in an observation."""
    shown = name or "observation"
    if isinstance(space, spaces.Dict):
        found = []
        for key, inner in space.spaces.items():
            if name == "" and keys and key not in keys:
                continue
            found += leaves(spaces, np, inner, f"{name}.{key}" if name else str(key), lambda o, key=key: take(o)[key], keys, left_out)
        return found
    if isinstance(space, spaces.Tuple):
        found = []
        for i, inner in enumerate(space.spaces):
            found += leaves(spaces, np, inner, f"{name}.{i}" if name else str(i), lambda o, i=i: take(o)[i], keys, left_out)
        return found
    if isinstance(space, spaces.Text) or (hasattr(spaces, "Text") and type(space).__name__ == "MissionSpace"):
        left_out.append(shown)
        return []

    def shaped(o, shape, kind):
        try:
            array = np.asarray(take(o))
        except (KeyError, IndexError, TypeError, ValueError):
            raise Problem(f"{shown}: expected the shape {shape}, got {shortened(o)}") from None
        if array.shape != shape:
            raise Problem(f"{shown}: expected the shape {shape}, got {array.shape}")
        if not np.can_cast(array.dtype, kind, "same_kind"):
            raise Problem(f"{shown}: expected numbers of type {kind}, got {array.dtype}")
        if array.dtype != kind and np.issubdtype(kind, np.integer) and (array.astype(kind) != array).any():
            raise Problem(f"{shown}: expected numbers of type {kind}, got {array[array.astype(kind) != array].flat[0]}")
        return array

    if isinstance(space, spaces.Box):
        shape, kind = space.shape, space.dtype

        def put(row, o):
            row[...] = shaped(o, shape, kind).reshape(-1)

        low, high = space.low.reshape(-1).astype(np.float64), space.high.reshape(-1).astype(np.float64)
        return [Leaf(shown, low, high, space.dtype == np.uint8, put)]
    if isinstance(space, spaces.Discrete):
        n, start = int(space.n), int(space.start)

        def put(row, o):
            try:
                given = take(o)
                number = int(given) - start
                if number + start != given:
                    raise ValueError
            except (KeyError, IndexError, TypeError, ValueError):
                raise Problem(f"{shown}: expected {start} to {start + n - 1}, got {shortened(o)}") from None
            if not 0 <= number < n:
                raise Problem(f"{shown}: expected {start} to {start + n - 1}, got {number + start}")
            row[...] = 0
            row[number] = 1

        return [Leaf(shown, np.zeros(n), np.ones(n), True, put)]
    if isinstance(space, spaces.MultiDiscrete):
        sizes = space.nvec.reshape(-1).astype(int)
        starts = np.asarray(space.start).reshape(-1).astype(int) if hasattr(space, "start") else np.zeros(len(sizes), int)
        first = np.concatenate([[0], np.cumsum(sizes)[:-1]])

        def put(row, o):
            numbers = shaped(o, space.shape, np.int64).reshape(-1) - starts
            if (numbers < 0).any() or (numbers >= sizes).any():
                raise Problem(f"{shown}: expected numbers below {sizes.tolist()}, got {numbers.tolist()}")
            row[...] = 0
            row[first + numbers] = 1

        n = int(sizes.sum())
        return [Leaf(shown, np.zeros(n), np.ones(n), True, put)]
    if isinstance(space, spaces.MultiBinary):
        n = int(np.prod(space.shape))

        def put(row, o):
            numbers = shaped(o, space.shape, np.int64).reshape(-1)
            if ((numbers < 0) | (numbers > 1)).any():
                raise Problem(f"{shown}: expected numbers 0 and 1, got {numbers.tolist()}")
            row[...] = numbers

        return [Leaf(shown, np.zeros(n), np.ones(n), True, put)]
    raise Problem(f"{shown}: expected Box, Discrete, MultiDiscrete, MultiBinary, Dict or Tuple, got {type(space).__name__}")


def bounds(np, numbers):
    """Bounds for JSON: one number if all are the same, and texts for infinities."""
    def shown(number):
        return number if math.isfinite(number) else ("inf" if number > 0 else "-inf")

    if len(numbers) > 1 and (numbers == numbers[0]).all():
        return [shown(float(numbers[0]))]
    return [shown(float(number)) for number in numbers]


def used_modules(env):
    """The modules that those of an environment's classes import: `mujoco` of HalfCheetah."""
    found = set()
    for kind in type(env).__mro__:
        home = sys.modules.get(kind.__module__)
        for used in vars(home).values() if home else ():
            if type(used) is type(sys):
                found.add(used.__name__.split(".")[0])
            elif isinstance(used, type):
                found.add(used.__module__.split(".")[0])
    return found


def package_version(package):
    import importlib.metadata as metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def form(space):
    """What of a space must not change: its shape and its numbers of values."""
    n = getattr(space, "n", None)
    return (space.shape, n if n is None or isinstance(n, tuple) else str(n), str(getattr(space, "nvec", None)), len(space.spaces) if hasattr(space, "spaces") else 0)


def limit(env):
    """The steps after which an episode is truncated, or None. The games of the Arcade Learning Environment count frames themselves."""
    steps = env.spec.max_episode_steps if env.spec else None
    ale = getattr(env.unwrapped, "ale", None)
    if steps is not None or not hasattr(ale, "getInt"):
        return steps
    skip = Atari.SKIP if isinstance(env, Atari) else env.spec.kwargs.get("frameskip") if env.spec else None
    frames = ale.getInt("max_num_frames_per_episode")
    return -(-frames // skip) if isinstance(skip, int) and frames > 0 else None


def rate(metadata):
    """The pictures per second at which an environment is shown, or None."""
    fps = metadata.get("render_fps") if isinstance(metadata, dict) else None
    return round(fps) if isinstance(fps, (int, float)) and 1 <= fps <= 1000 else None


class Atari:
    """A game of the Arcade Learning Environment as it is usually played. An observation is the last two grey screens, of which the program makes a picture."""

    # frames that an action is repeated for, and the most that an episode waits before it begins
    SKIP, MOST_NOOPS = 4, 30

    def __init__(self, np, spaces, env, episodes):
        import ale_py

        if not isinstance(env.action_space, spaces.Discrete):
            raise Problem(f"actions: expected a Discrete space for Atari's preprocessing, got {type(env.action_space).__name__}")
        self.env, self.ale, self.has_lives = env, env.unwrapped.ale, episodes == "lives"
        names = env.unwrapped.get_action_meanings()
        self.actions = [ale_py.Action[name] for name in names]
        # games that wait for the fire button; as usual, the action behind it is tried, too
        self.openings = [1, 2] if len(names) >= 3 and names[1] == "FIRE" else []
        self.screens = np.zeros((2, *self.ale.getScreenDims()), np.uint8)
        self.observation_space, self.action_space = spaces.Box(0, 255, self.screens.shape, np.uint8), env.action_space
        # in frames
        self.limit = env.spec and env.spec.max_episode_steps and env.spec.max_episode_steps * self.SKIP
        self.frames, self.lives, self.is_over, self.is_stepped = 0, 0, True, False

    def __getattr__(self, name):
        return getattr(self.env, name)

    def play(self, action, frames=SKIP):
        """Repeats an action. Returns the sum of the rewards."""
        ale, action, total = self.ale, self.actions[action], 0.0
        for i in range(frames):
            total += ale.act(action)
            self.frames += 1
            self.is_over = ale.game_over(with_truncation=False)
            self.is_truncated = ale.game_truncated() or (self.limit is not None and self.frames >= self.limit)
            if self.is_over or self.is_truncated or i == frames - 1:
                ale.getScreenGrayscale(self.screens[1])
                if i < frames - 1 or frames == 1:
                    self.screens[0] = self.screens[1]
                break
            if i == frames - 2:
                ale.getScreenGrayscale(self.screens[0])
        return total

    def begin(self, seed=None):
        """Begins a game. A game that ends while it is waited for begins once more."""
        self.env.reset(seed=seed)
        self.frames, self.is_truncated, self.is_stepped = 0, False, False
        for _ in range(int(self.env.unwrapped.np_random.integers(1, self.MOST_NOOPS + 1))):
            self.play(0, 1)
            if self.is_over or self.is_truncated:
                self.env.reset()
                self.frames = 0

    def reset(self, *, seed=None):
        # after the loss of a life the game goes on
        if self.has_lives and self.is_stepped and not self.is_over and not self.is_truncated:
            self.play(0)
        else:
            self.begin(seed)
        if self.is_over:
            self.begin()
        for action in self.openings:
            self.play(action)
            if self.is_over or self.is_truncated:
                self.begin()
        self.lives = self.ale.lives()
        return self.screens, {}

    def step(self, action):
        self.is_stepped = True
        reward, before = self.play(int(action)), self.lives
        self.lives = self.ale.lives()
        ends = self.is_over or (self.has_lives and 0 < self.lives < before)
        return self.screens, reward, ends, self.is_truncated, {}


class Worker:
    def __init__(self):
        self.envs, self.frame, self.turns, self.is_quick, self.calls_seen = [], None, None, False, 0
        self.spare = None
        # whether the environments have been stepped, and can be rendered
        self.is_stepped, self.is_rendered = False, False

    def describe(self, request):
        """Makes one environment, and says what it is."""
        gymnasium = self.gymnasium = import_gymnasium()
        import numpy as np

        self.np, self.request = np, request
        self.name, self.can_render = identify(gymnasium, request["id"]), False
        close([self.spare] if self.spare else [])
        env = self.make_one(False)
        self.spare = env
        spec, unwrapped = env.spec, env.unwrapped
        self.can_render = "rgb_array" in (env.metadata or {}).get("render_modes", [])
        left_out = []
        spaces = gymnasium.spaces
        keys = request["keys"]
        if keys and not isinstance(env.observation_space, spaces.Dict):
            raise Problem(f"keys: expected an environment with a Dict of observations, got {type(env.observation_space).__name__}")
        unknown = [key for key in keys if key not in env.observation_space.spaces] if keys else []
        if unknown:
            raise Problem(f"keys: expected some of {', '.join(env.observation_space.spaces)}, got {', '.join(unknown)}")
        self.parts = leaves(spaces, np, env.observation_space, "", lambda o: o, keys, left_out)
        if not self.parts or not any(len(part.low) for part in self.parts):
            raise Problem(f"observations: expected numbers, got {', '.join(f'only the text {part}' for part in left_out) or f'the empty space {env.observation_space}'}")
        self.is_byte = all(part.is_byte for part in self.parts)
        self.width = sum(len(part.low) for part in self.parts)
        module = type(unwrapped).__module__.split(".")[0]
        versions = {"python": platform.python_version(), "numpy": np.__version__, "gymnasium": gymnasium.__version__}
        try:
            import importlib.metadata as metadata

            packages = metadata.packages_distributions()
            for name in {module, *used_modules(unwrapped)} - {"gymnasium", "numpy", "typing_extensions"}:
                for package in packages.get(name, []):
                    versions[package.lower()] = metadata.version(package)
        except Exception:  # a module without a package has no version
            pass
        states = int(env.observation_space.n) if isinstance(env.observation_space, spaces.Discrete) else None
        kind = next((kind for kind in ("Box", "Discrete", "MultiDiscrete", "MultiBinary", "Dict", "Tuple") if isinstance(env.observation_space, getattr(spaces, kind))), None)
        return {
            "protocol": PROTOCOL,
            "executable": sys.executable,
            "versions": versions,
            "class": type(unwrapped).__name__,
            "id": spec.id if spec else None,
            "low": bounds(np, np.concatenate([part.low for part in self.parts])),
            "high": bounds(np, np.concatenate([part.high for part in self.parts])),
            "width": self.width,
            "parts": [[part.name, len(part.low)] for part in self.parts],
            "is_byte": self.is_byte,
            "shape": env.observation_space.shape if isinstance(env.observation_space, spaces.Box) else None,
            "is_atari": request["atari"] is not None,
            "left_out": left_out,
            "states": states,
            "kind": kind,
            "start": None if states is None else int(env.observation_space.start),
            "actions": self.describe_actions(env.action_space),
            "max_episode_steps": limit(env),
            "reward_threshold": spec.reward_threshold if spec else None,
            "render_fps": rate(getattr(env.unwrapped, "metadata", None)),
        }

    def make_one(self, rendered):
        gymnasium, request = self.gymnasium, self.request
        arguments = {key: value(text) for key, text in request["arguments"].items()}
        if rendered and self.can_render:
            arguments.setdefault("render_mode", "rgb_array")
        try:
            env = gymnasium.make(self.name, disable_env_checker=True, **arguments)
        except gymnasium.error.DependencyNotInstalled as error:
            text = " ".join(str(error).split())
            extra = next((extra for word, extra in EXTRAS.items() if word in text.lower()), None)
            if extra:
                raise Problem(f"{text.split(',')[0].split('. ')[0]}: {sys.executable} -m pip install \"gymnasium[{extra}]\"") from None
            raise Problem(f"{text} ({sys.executable})") from None
        except ModuleNotFoundError as error:
            raise Problem(f"no module {error.name} in {sys.executable}: {sys.executable} -m pip install {error.name}") from None
        except gymnasium.error.UnregisteredEnv as error:
            raise Problem(" ".join(str(error).split())) from None
        module = type(env.unwrapped).__module__.split(".")[0]
        for wrapper in request["wrappers"]:
            env = wrap(gymnasium, env, module, wrapper)
        return Atari(self.np, gymnasium.spaces, env, request["atari"]) if request["atari"] else env

    def describe_actions(self, space):
        np, spaces = self.np, self.gymnasium.spaces
        if isinstance(space, spaces.Discrete):
            return {"kind": "discrete", "n": int(space.n), "start": int(space.start)}
        if isinstance(space, spaces.Box):
            if 0 in space.shape:
                raise Problem(f"actions: expected at least one number, got {space}")
            low, high = space.low.reshape(-1).astype(np.float64), space.high.reshape(-1).astype(np.float64)
            return {"kind": "box", "low": bounds(np, low), "high": bounds(np, high), "width": len(low)}
        if isinstance(space, spaces.MultiDiscrete):
            return {"kind": "multi_discrete", "sizes": space.nvec.reshape(-1).tolist()}
        if isinstance(space, spaces.MultiBinary):
            return {"kind": "multi_discrete", "sizes": [2] * int(np.prod(space.shape))}
        raise Problem(f"actions: expected Discrete, Box, MultiDiscrete or MultiBinary, got {type(space).__name__}")

    def make(self, request):
        """Makes n environments, and opens the file that is shared with the program. Returns the offsets in it."""
        np, n = self.np, request["n"]
        spare, self.spare = self.spare, None
        if self.is_stepped or len(self.envs) != n or self.is_rendered != request["rendered"]:
            close(self.envs)
            self.envs = []
            for i in range(n):
                # the environment that was described has not been reset
                fresh = spare if i == 0 and spare is not None and not request["rendered"] else self.make_one(request["rendered"])
                self.envs.append(fresh)
        self.is_stepped, self.is_rendered = False, request["rendered"]
        self.spaces = [(env.observation_space, env.action_space) for env in self.envs]
        self.forms = [(form(env.observation_space), form(env.action_space)) for env in self.envs]
        space = self.envs[0].action_space
        spaces = self.gymnasium.spaces
        is_discrete, is_box = isinstance(space, spaces.Discrete), isinstance(space, spaces.Box)
        described = self.describe_actions(space)
        # the entries of an action mask
        self.choices = described["n"] if is_discrete else 0 if is_box else sum(described["sizes"])
        action_width = int(np.prod(space.shape))
        action_kind = np.dtype(np.float32) if is_box else np.dtype(np.int64)
        kind = np.dtype(np.uint8 if self.is_byte else np.float32)
        # the program writes actions, seeds and marks; the worker rewards, flags, masks and observations
        sizes = [("asked", np.dtype(np.uint64), (8,)), ("actions", action_kind, (n, action_width)), ("seeds", np.dtype(np.uint64), (n,)), ("marks", np.dtype(np.uint8), (n,)),
                 ("answered", np.dtype(np.uint64), (8,)), ("rewards", np.dtype(np.float64), (n,)), ("flags", np.dtype(np.uint8), (n,)), ("masks", np.dtype(np.uint8), (n, self.choices)),
                 ("final_masks", np.dtype(np.uint8), (n, self.choices)), ("observations", kind, (n, self.width)),
                 ("final_observations", kind, (n, self.width))]
        at, offsets = 0, {}
        for name, of, shape in sizes:
            at = (at + 63) // 64 * 64
            offsets[name] = at
            at += of.itemsize * int(np.prod(shape))
        if self.frame is not None:
            os.close(self.frame)
        with open(request["frame"], "r+b") as file:
            file.truncate(max(at, 1))
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, max(at, 1))  # an error here, and not a signal later, if there is no room
            self.memory = mmap.mmap(file.fileno(), max(at, 1))
            self.frame = os.dup(file.fileno())
        self.turns = [memoryview(self.memory)[offsets[name]:offsets[name] + 64].cast("Q") for name in ("asked", "answered")]
        for name, of, shape in sizes:
            array = np.frombuffer(self.memory, of, int(np.prod(shape)), offsets[name]).reshape(shape)
            setattr(self, name, array)
        self.end = at
        shape = space.shape
        self.plain = is_discrete
        if is_discrete:
            start = int(space.start)
            # of NumPy's type, which spaces look at more quickly than at Python's
            self.action = (lambda number: number + start) if start else (lambda number: number)
        elif is_box:
            is_whole = np.issubdtype(space.dtype, np.integer)
            low, high = space.low, space.high

            def box_action(row):
                action = (np.rint(row) if is_whole else row).reshape(shape).astype(space.dtype)
                # a bound of float64 may lie between two numbers of float32
                return np.clip(action, low, high) if space.dtype == np.float64 else action

            self.action = box_action
        elif isinstance(space, spaces.MultiDiscrete):
            starts = np.asarray(getattr(space, "start", np.zeros(shape, np.int64)))
            self.action = lambda row: (row.reshape(shape) + starts).astype(space.dtype)
        else:
            self.action = lambda row: row.reshape(shape).astype(space.dtype)
        first, self.rows = 0, []
        for part in self.parts:
            self.rows.append((part.put, slice(first, first + len(part.low))))
            first += len(part.low)
        seen = self.envs[0].observation_space
        is_box = isinstance(seen, spaces.Box)
        # no observation has the type `object()`
        self.dtype, self.shape = (seen.dtype, seen.shape) if is_box else (object(), None)
        self.shaped = self.observations.reshape((n,) + seen.shape) if is_box else None
        self.reward_list, self.flag_list = [0.0] * n, [0] * n
        self.has_mask = False
        return {"offsets": offsets, "end": at}

    def wait(self):
        """Returns the next command. The program counts its calls in the shared file, and this process its answers; both are hints only."""
        if self.turns is not None:
            asked = self.turns[0]
            before = time.perf_counter()
            if self.is_quick:
                while asked[0] == self.calls_seen and time.perf_counter() < before + SPIN:
                    give_way()
            command = receive(1)
            self.calls_seen = asked[0]
            self.is_quick = time.perf_counter() < before + SPIN
            return command
        return receive(1)

    def write(self, i, observation):
        row = self.observations[i]
        for put, place in self.rows:
            put(row[place], observation)

    def write_mask(self, i, info):
        mask = info.get("action_mask")
        if mask is None:
            if self.has_mask:
                raise Problem('info: expected "action_mask", as before, got none')
            return
        # with several choices: one array, or one for each choice
        np = self.np
        mask = np.concatenate([np.ravel(part) for part in mask]) if isinstance(mask, (tuple, list)) and len(mask) and np.ndim(mask[0]) else np.ravel(mask)
        if len(mask) != self.choices:
            raise Problem(f'info["action_mask"]: expected {self.choices} numbers, got {len(mask)}')
        self.masks[i] = mask != 0
        self.has_mask = True

    def reset(self):
        for i in self.np.flatnonzero(self.marks).tolist():
            self.now = i
            self.reset_one(i)

    def reset_one(self, i):
        env, (observations, actions), forms = self.envs[i], self.spaces[i], self.forms[i]
        result = env.reset(seed=int(self.seeds[i]))
        if not (isinstance(result, tuple) and len(result) == 2):
            raise Problem(f"reset: expected (observation, info), got {type(result).__name__}")
        observation, info = result
        for known, now, old in ((observations, env.observation_space, forms[0]), (actions, env.action_space, forms[1])):
            # another space, or the same one, changed
            if known is not now and known != now:
                raise Problem(f"reset: expected the space {known}, got {now}")
            if form(now) != old:
                raise Problem(f"reset: expected a space of the form {old}, got {now}")
        self.write(i, observation)
        if self.choices and (self.has_mask or "action_mask" in self.dict(info)):
            self.write_mask(i, info)

    def dict(self, info):
        if not isinstance(info, dict):
            raise Problem(f"info: expected a dict, got {shortened(info)}")
        return info

    def step(self, autoresets):
        """Steps all environments and resets those whose episode has ended, if `autoresets`; otherwise steps those that are not marked."""
        envs, action, observations, dtype, shape = self.envs, self.action, self.shaped, self.dtype, self.shape
        actions = self.actions[:, 0] if self.plain else self.actions
        rewards, flags = self.reward_list, self.flag_list
        marks = None if autoresets else self.marks.tolist()  # after resets none is marked
        self.is_stepped = True
        for i, env in enumerate(envs):
            if marks and marks[i]:
                continue
            self.now = i
            try:
                result = env.step(action(actions[i]))
            except ValueError as error:
                # Gymnasium's own wrappers take five values
                if "to unpack (expected 5" in str(error):
                    raise Problem(f"step: expected (observation, reward, terminated, truncated, info): {error}") from None
                raise
            if type(result) is not tuple or len(result) != 5:
                got = f"{len(result)} values" if isinstance(result, tuple) else type(result).__name__
                raise Problem(f"step: expected (observation, reward, terminated, truncated, info), got {got}")
            observation, rewards[i], terminated, truncated, info = result
            # an observation that is one box of the right form is copied as it is
            if getattr(observation, "dtype", None) is dtype and observation.shape == shape:
                observations[i] = observation
            else:
                self.write(i, observation)
            try:
                flags[i] = TERMINATED[terminated] | TRUNCATED[truncated]
            except (KeyError, TypeError):
                flags[i] = self.flag("terminated", terminated) | 2 * self.flag("truncated", truncated)
            if type(info) is not dict:
                self.dict(info)
            if self.choices and (self.has_mask or "action_mask" in info):
                if not self.has_mask:
                    raise Problem('info: expected "action_mask" from the first reset on, or never, got the first one in a step')
                self.write_mask(i, info)
            if flags[i] and autoresets:
                self.final_observations[i] = self.observations[i]
                self.final_masks[i] = self.masks[i]
                self.reset_one(i)
        try:
            if any(reward is None or isinstance(reward, (str, bytes)) for reward in rewards):
                raise TypeError  # it would become a number
            self.rewards[:] = rewards
        except (TypeError, ValueError):
            for i, reward in enumerate(rewards):
                self.now = i
                self.rewards[i] = self.number(reward)
        self.flags[:] = flags

    def flag(self, name, given):
        """A truth value that is not one of Python's or NumPy's: an array of one."""
        array = self.np.asarray(given)
        if array.size != 1 or array.dtype.kind not in "biu" or array.reshape(()) not in (0, 1):
            raise Problem(f"{name}: expected True or False, got {shortened(given)}")
        return int(array.reshape(()))

    def number(self, reward):
        if reward is None or isinstance(reward, (str, bytes)):
            raise Problem(f"reward: expected a number, got {shortened(reward)}")
        array = self.np.asarray(reward, dtype=self.np.float64)
        if array.size != 1:
            raise Problem(f"reward: expected one number, got the shape {array.shape}")
        return float(array.reshape(()))

    def picture(self, i):
        """Writes the picture of environment i behind everything else in the file. Returns its height and width."""
        np = self.np
        try:
            picture = self.envs[i].render() if self.can_render and self.is_rendered else None
        except Exception as error:
            message = " ".join(str(error).split())
            if any(word in message.lower() for word in ("opengl", "glfw", "egl")):
                raise Problem(f"render: {type(error).__name__}: {message}; without a screen set MUJOCO_GL=egl or MUJOCO_GL=osmesa") from None
            raise
        if isinstance(picture, list):
            picture = picture[-1] if picture else None
        if picture is None:
            return {"height": 0, "width": 0}
        picture = np.ascontiguousarray(np.asarray(picture))
        if picture.ndim != 3 or picture.shape[2] != 3 or picture.dtype != np.uint8:
            raise Problem(f"render: expected rows of red, green and blue bytes, got the shape {picture.shape} of {picture.dtype}")
        data = memoryview(picture).cast("B")
        os.lseek(self.frame, self.end, os.SEEK_SET)
        while data:
            data = data[os.write(self.frame, data):]
        return {"height": picture.shape[0], "width": picture.shape[1]}


def main():
    worker = Worker()
    threading.Thread(target=leave_with_parent, args=(os.getppid(),), daemon=True).start()
    try:
        serve(worker)
    except Closed:
        close([env for env in [*worker.envs, worker.spare] if env is not None])
        os._exit(0)


def serve(worker):
    while True:
        command = worker.wait()
        worker.now = None
        try:
            if command in (b"s", b"a"):
                worker.step(command == b"a")
                worker.turns[1][0] += 1
                os.write(answers, b"k")
            elif command == b"r":
                worker.reset()
                send(b"m" if worker.has_mask else b"k")
            else:
                request = json.loads(receive(struct.unpack("<I", receive(4))[0]))
                if command == b"d":
                    send_json(b"j", worker.describe(request))
                elif command == b"m":
                    send_json(b"j", worker.make(request))
                elif command == b"v":
                    import_gymnasium()
                    versions = {package: package_version(package) for package in request["packages"]}
                    versions["python"] = platform.python_version()
                    send_json(b"j", {"executable": sys.executable, "versions": versions})
                elif command == b"p":
                    send_json(b"j", worker.picture(request["env"]))
                else:
                    raise Problem(f"expected the command s, a, r, d, m, p or v, got {command!r}")
        except (Exception, SystemExit) as error:
            if not isinstance(error, Problem):
                traceback.print_exc()
                sys.stderr.flush()
            send_json(b"e", {"env": worker.now, "problem": one_line(error)})


main()
