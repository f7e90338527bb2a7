"""What all agents have in common."""

import copy
import io
import json
import pathlib
import random
import time
import warnings
import zipfile
from array import array
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np

from gradus_rl import _core, spaces
from gradus_rl.sb3 import arguments as args
from gradus_rl.sb3 import conversion, worlds
from gradus_rl.sb3.arguments import ArgumentError
from gradus_rl.sb3.logger import Callbacks, Logger, folder_of

if TYPE_CHECKING:
    from typing_extensions import Self

VERSION = 2
WHOLE = 1 << 62


class BaseAlgorithm:
    """An agent. Its attributes are the arguments of its constructor, and the next `learn` follows them."""

    agent = ""
    log_every, logs_episodes = 1, False

    if TYPE_CHECKING:
        n_envs: int

        def __init__(self, policy: Any, env: Any, **kwargs: Any) -> None: ...

        def __getattr__(self, name: str) -> Any: ...  # arguments of the constructor

    def _begin(self, scope):
        """Takes the arguments of the constructor."""
        given = {name: value for name, value in scope.items() if name not in ("self", "policy", "env", "__class__", "_init_setup_model")}
        self._names = list(given)
        for name, value in given.items():
            setattr(self, name, value)
        # as in Stable-Baselines3, no seed is another one each time
        self._drawn_seed = int(np.random.SeedSequence().generate_state(1, np.uint64)[0]) >> 1
        self.policy_class, self.policy_kwargs, self.device = args.policy_name(scope["policy"]), given["policy_kwargs"] or {}, "cpu"
        if str(given["device"]) not in ("auto", "cpu"):
            raise ArgumentError(f"device: expected auto or cpu, got {given['device']}")
        self.stats_window_size = given.get("stats_window_size", 100)
        self.num_timesteps, self._total, self._iterations, self._counted, self._begins_anew = 0, 0, 0, 0, False
        self._may_differ = False  # the number of environments, of a model that is loaded with some
        self._core = self._policy = self._state = self._learnt = self._world = self._vector = self._wrapped = self._env = self._last_obs = None
        self.observation_space = self.action_space = None
        self.logger, self._has_own_logger = Logger(), False
        self._forget_episodes()
        self._settings_of(total=1, n_envs=1)  # wrong arguments are said now
        if scope["env"] is not None:
            self.set_env(scope["env"])
            self._make_core(1)
        self.set_random_seed(self.seed)

    def _forget_episodes(self):
        self.ep_info_buffer, self.ep_success_buffer = deque(maxlen=self.stats_window_size), deque(maxlen=self.stats_window_size)
        self._episodes, self._ends, self._returns = 0, array("d"), array("d")

    def _ended(self, step, value):
        self._episodes += 1
        self._ends.append(step)
        self._returns.append(value)

    def training_episodes(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns the steps at which the episodes of the training ended, and their returns: what `gradus_rl.figures.learning_curves` draws."""
        return np.array(self._ends), np.array(self._returns)

    def _settings(self, n_envs):
        """Returns the agent's own settings in so many environments."""
        raise NotImplementedError

    def _warn(self):
        """Warns of arguments that do not go together, before a training."""

    def _settings_of(self, total, n_envs):
        seed = self._drawn_seed if self.seed is None else int(self.seed) % (1 << 63)
        return [f"envs={n_envs}", f"steps={total}", f"seed={seed}", *self._settings(n_envs), *args.policy_settings(self.policy_kwargs, self.critic)]

    @property
    def critic(self):
        """The critic's name in `net_arch`."""
        return "vf" if self.agent in ("ppo", "a2c") else "qf"

    # the environment

    def set_env(self, env: Any, force_reset: bool = True) -> None:
        """Sets the environment, whose spaces and number of environments must be those of the one before."""
        if env is self._wrapped and env is not None:
            self._use(env, force_reset)
            return
        ours = worlds.native(env)
        if ours:
            vector, n_envs = None, ours[1]
            observations, actions = map(spaces.to_gymnasium, _core.World(ours[0]).spaces())
        else:
            vector = worlds.steps_in_python(env)
            observations, actions, n_envs = vector.observation_space, vector.action_space, vector.num_envs
        if self.observation_space is not None and (observations, actions) != (self.observation_space, self.action_space):
            raise ArgumentError(f"env: expected the spaces {self.observation_space} and {self.action_space}, got {observations} and {actions}")
        if isinstance(observations, gymnasium.spaces.Dict) != (self.policy_class == "MultiInputPolicy"):
            fitting = "MultiInputPolicy" if isinstance(observations, gymnasium.spaces.Dict) else "MlpPolicy or CnnPolicy"
            raise ArgumentError(f"policy: expected {fitting} for observations in a {type(observations).__name__}, got {self.policy_class}")
        if self.observation_space is not None and n_envs != self.n_envs and not self._may_differ:
            raise ArgumentError(f"env: expected {self.n_envs} environments, as before, got {n_envs}")
        if self.observation_space is None:  # a model that was loaded knows them
            try:
                self._described = spaces.of_gymnasium(observations, "observation space"), spaces.of_gymnasium(actions, "action space")
            except ValueError as error:
                raise ArgumentError(str(error)) from None
        self._keep()
        self._env, self._world, self._vector, self._wrapped, self.n_envs = env, ours and ours[0], vector, None, n_envs
        self.observation_space, self.action_space = observations, actions
        self._reset_later(force_reset)

    def _use(self, wrapped, force_reset):
        """Goes on with what `get_env` returned."""
        self._keep()
        self._env, self._vector = wrapped, worlds.Vector(wrapped)
        if worlds.native(wrapped) is None or not force_reset:
            self._world = None
        self._reset_later(force_reset)

    def _reset_later(self, wanted):
        """Begins new episodes with the next `learn`."""
        if wanted:
            self._last_obs, self._begins_anew = None, True

    def _keep(self):
        """Keeps what was learnt until there is another core."""
        if self._core is not None:
            self._total = self._core.steps  # a training may have been stopped
            self._state, self._core = self._core.save(), None

    @property
    def env(self) -> Any:
        """The environment, as `get_env` returns it."""
        return self.get_env()

    def get_env(self) -> Any:
        """Returns the environment: as a vector of Stable-Baselines3's if that is installed, otherwise as it was given."""
        if self._env is None or hasattr(self._env, "step_async"):
            return self._env
        if self._wrapped is None:
            try:
                from stable_baselines3.common.monitor import Monitor
                from stable_baselines3.common.vec_env import DummyVecEnv
            except ImportError:
                return self._env
            own = self._env
            if isinstance(own, str):
                own = self._vector.given[0] if self._vector is not None and isinstance(self._vector.given, list) else None
                own = own or worlds.made(self._world)
            if not isinstance(own, gymnasium.Env):
                return self._env
            monitor = own
            if not isinstance(own, Monitor):
                monitor = Monitor(own)
                monitor.needs_reset = self._last_obs is None  # an episode may be going on
            self._wrapped = DummyVecEnv([lambda: monitor])
            if self.seed is not None:
                self._wrapped.seed(self.seed)
        return self._wrapped

    def get_vec_normalize_env(self):
        """Returns the VecNormalize of Stable-Baselines3's around the environment, or None."""
        env = self._env
        while env is not None and not hasattr(env, "norm_obs"):
            env = getattr(env, "venv", None)
        return env

    # the agent

    def _make_core(self, total, goes_on=True):
        """Makes an agent for so many steps, which knows what was learnt before, and whose episodes go on or begin anew."""
        trunk = []
        shape = self.observation_space.shape
        if self.policy_class == "CnnPolicy":
            if not spaces.is_image(self.observation_space) and (self.observation_space.dtype != np.uint8 or len(shape) < 3):
                raise ArgumentError(f"policy: expected MlpPolicy, because observations are no images, got CnnPolicy for {self.observation_space}")
            is_large = sorted(shape[-3:])[1] >= 36
            if "network.activation=tanh" in args.policy_settings(self.policy_kwargs, self.critic):
                raise ArgumentError("activation_fn: expected ReLU with CnnPolicy, got Tanh")
            trunk = [f"network.trunk={'nature' if is_large else 'arcade'}", "network.activation=relu"]
            layers, features = args.hidden([] if self.policy_kwargs.get("net_arch") is None else self.policy_kwargs["net_arch"], self.critic), 512 if is_large else 128
            if self.agent in ("ppo", "a2c"):
                trunk.append("network.shared=true")
                if layers:
                    raise ArgumentError(f"net_arch: expected none with CnnPolicy, whose actor and critic share all layers but the last, got {layers}")
            trunk.append(f"network.hidden={[features, *layers]}")
        if self.agent == "sac":
            # the setting is for each dimension, and Stable-Baselines3's for all together
            dimensions = float(np.prod(self.action_space.shape))
            trunk.append(f"sac.target_entropy={-1.0 if self.target_entropy == 'auto' else float(self.target_entropy) / dimensions}")
        settings = [*self._settings_of(total, self.n_envs), *trunk]
        try:
            core = _core.Agent(self.agent, self._world or "python", None, settings, None if self._world else self._described)
        except ValueError as error:
            raise ArgumentError(str(error)) from None
        if self._state is not None:
            core.load(self._state, goes_on)
        elif self._learnt is not None:
            core.load_learnt(self._learnt)
        self._core, self._policy, self._state, self._learnt = core, None, None, None

    def _ready(self):
        if self._core is None:
            if self.observation_space is None:
                raise ArgumentError("env: expected one before the policy is used; `set_env` sets it")
            self._make_core(max(self._total, 1))
        return self._core

    def _settings_now(self):
        """Returns the settings of Gradus, by name."""
        return self._ready().settings()

    # training

    def learn(self, total_timesteps: float, callback: Any = None, log_interval: int | None = None, tb_log_name: str | None = None, reset_num_timesteps: bool = True, progress_bar: bool = False) -> "Self":
        """Trains for `total_timesteps` steps, rounded up to whole rollouts. Returns the model.

        Metrics are logged after every `log_interval` updates or, for off-policy agents, episodes [default: 1 for PPO, 100 for A2C, 4 episodes], as in Stable-Baselines3.
        Off-policy agents report a group of updates together, about 1000 steps; without Python they log no more often than that.
        """
        if self._env is None:
            raise ArgumentError("env: expected one before `learn`; `set_env` sets it")
        if not isinstance(total_timesteps, (int, float, np.integer, np.floating)) or not 1 <= total_timesteps <= WHOLE:
            raise ArgumentError(f"total_timesteps: expected a number from 1 up, got {total_timesteps}")
        log_interval = log_interval or self.log_every
        self._keep()
        self._reset_later(reset_num_timesteps)
        if reset_num_timesteps:
            self.num_timesteps, self._iterations, self._counted = 0, 0, 0
            self._forget_episodes()
        self._set_logger(tb_log_name or type(self).__name__, reset_num_timesteps)
        callbacks = Callbacks(callback, self)
        is_native = self._world and not callbacks
        total = self._total + int(total_timesteps)
        rollout = self.n_steps * self.n_envs if self.agent in ("ppo", "a2c") else 1
        if self._total % rollout:
            # the steps so far are no whole rollouts of this length, and only those to come are rounded up
            total = (self._total + -(-int(total_timesteps) // rollout) * rollout) // rollout * rollout
        # the episodes of a training with callbacks are those of other environments
        self._warn()
        self._make_core(total, not self._begins_anew and self._last_obs is None if is_native else self._last_obs is not None)
        self._begins_anew = False
        bar = _bar(total_timesteps) if progress_bar else None
        self._start_steps, self._start_time, self._offset = self.num_timesteps, time.time_ns(), self.num_timesteps - self._core.steps
        self._start_iterations = self._iterations - self._core.iterations
        scope = {**locals(), "total_timesteps": int(total_timesteps) + self.num_timesteps}
        callbacks.call("on_training_start", scope, globals())
        if is_native:
            self._last_obs = None
            self._train(log_interval, bar)
        else:
            self._loop(callbacks, log_interval, bar, scope)
        callbacks.call("on_training_end")
        if bar is not None:
            bar.close()
        self._total = self._core.steps
        return self

    def _train(self, log_interval, bar):
        """Trains in a world of Gradus, which is left only to log."""
        core, logs = self._core, self._has_own_logger or self.verbose > 0 or self.tensorboard_log is not None or bar is not None
        while not core.is_finished:
            try:
                core.train(1 if logs else WHOLE)
            finally:  # an interruption loses no steps and episodes
                for step, value, length in core.take_episodes():
                    self._ended(step + self._offset, value)
                    self.ep_info_buffer.append({"r": value, "l": length, "t": (time.time_ns() - self._start_time) / 1e9})
                self.num_timesteps = core.steps + self._offset
                self._policy = None
            self._updated(log_interval, bar)

    def _loop(self, callbacks, log_interval, bar, scope):
        """Trains in environments that are stepped in Python."""
        core, vector, space = self._core, self._vector, self.observation_space
        if vector is None:
            self._vector = vector = worlds.vector_of(self._world, self.n_envs)
        if self._last_obs is None:
            self._last_obs = vector.reset(self._first_seed())
            self._current = np.zeros(self.n_envs), np.zeros(self.n_envs, int)
        returns, lengths = self._current
        is_monitored = worlds.is_monitored(vector)
        callbacks.call("on_rollout_start")
        while not core.is_finished:
            actions = spaces.from_numbers(self.action_space, core.act(spaces.rows_of(space, self._last_obs)))
            new_obs, rewards, terminated, truncated, finals, infos = vector.step(actions)
            self.num_timesteps += self.n_envs
            dones = terminated | truncated
            returns += rewards
            lengths += 1
            for env in np.flatnonzero(dones):
                if not is_monitored:
                    infos[env] = {"episode": {"r": float(returns[env]), "l": int(lengths[env]), "t": (time.time_ns() - self._start_time) / 1e9}, **infos[env]}
                returns[env], lengths[env] = 0.0, 0
                if infos[env].get("is_success") is not None:
                    self.ep_success_buffer.append(infos[env]["is_success"])
                if "episode" in infos[env]:  # of a Monitor, not at the end of a life
                    self.ep_info_buffer.append(infos[env]["episode"])
                    self._ended(self.num_timesteps, float(infos[env]["episode"]["r"]))
            goes_on = callbacks.on_step({**scope, "rewards": rewards, "dones": dones, "infos": infos, "new_obs": new_obs, "actions": actions}, globals()) if callbacks else True
            self._last_obs = new_obs
            try:
                rows = [(env, spaces.rows_of(space, spaces.stacked(space, [final]))[0]) for env, final in finals]
                is_complete = core.observe(spaces.rows_of(space, new_obs), rewards, terminated, truncated, rows)
            except ValueError as error:
                told = spaces.fault(space, spaces.each(space, new_obs, self.n_envs), rewards) or spaces.fault(space, [final for _, final in finals]) or str(error)
                raise ArgumentError(f"after {self.num_timesteps} steps, {told}") from None
            if finals and self.logs_episodes:
                self._log(log_interval)
            if is_complete:
                callbacks.call("on_rollout_end")
                core.update()
                self._policy = None
                self._updated(log_interval, bar)
                if not core.is_finished and goes_on:
                    callbacks.call("on_rollout_start")
            if not goes_on:
                break

    def _first_seed(self):
        """Returns the seed of the environments the first time, and then None."""
        seed, self._env_seed = self._env_seed, None
        return seed

    def _updated(self, log_interval, bar):
        """Reads what the last updates reported, and logs if it is time."""
        self._iterations = self._core.iterations + self._start_iterations
        for name, value in self._core.report().items():
            if value == value:  # what this training does not have is not a number
                self.logger.record(name, value)
        if bar is not None:
            bar.update(self.num_timesteps - self._start_steps - bar.n)
        self._log(log_interval)

    def _log(self, log_interval):
        """Logs if there were enough updates or, for off-policy agents, episodes."""
        last, self._counted = self._counted, self._episodes if self.logs_episodes else self._iterations
        if self._counted // log_interval > last // log_interval:
            self.dump_logs()

    # metrics

    def set_logger(self, logger: Any) -> None:
        """Logs to another logger: to one of Stable-Baselines3's, or one with its methods."""
        self.logger, self._has_own_logger = logger, True

    def _set_logger(self, name, is_new):
        if self._has_own_logger:
            return
        folder = None if self.tensorboard_log is None else folder_of(self.tensorboard_log, name, is_new)
        if is_new or folder is None or str(folder) != self.logger.dir:
            self.logger = Logger(self.verbose > 0, folder)

    def dump_logs(self, iteration=None):
        """Writes what the logger knows, and the returns of the last episodes."""
        record, seconds = self.logger.record, max((time.time_ns() - self._start_time) / 1e9, 1e-9)
        if self.ep_info_buffer:
            record("rollout/ep_rew_mean", float(np.mean([info["r"] for info in self.ep_info_buffer])))
            record("rollout/ep_len_mean", float(np.mean([info["l"] for info in self.ep_info_buffer])))
        if self.ep_success_buffer:
            record("rollout/success_rate", float(np.mean(self.ep_success_buffer)))
        record(*("time/episodes", self._episodes) if self.logs_episodes else ("time/iterations", self._iterations))
        record("time/fps", int((self.num_timesteps - self._start_steps) / seconds))
        record("time/time_elapsed", int(seconds))
        record("time/total_timesteps", self.num_timesteps)
        self.logger.dump(step=self.num_timesteps)

    def lr_schedule(self, progress_remaining: float) -> float:
        """Returns the learning rate when this part of the training, from 1 to 0, remains."""
        return float(self.learning_rate(progress_remaining) if callable(self.learning_rate) else self.learning_rate)

    # acting

    @property
    def policy(self) -> _core.Policy:
        """The current policy, which acts on rows of numbers."""
        if self._policy is None:
            self._policy = self._ready().policy()
            if self.seed is not None:
                self._policy.set_seed(int(self.seed) % (1 << 63))
        return self._policy

    def predict(self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False) -> tuple[Any, Any]:
        """Returns actions for one observation or for several, and `state`."""
        space = self.observation_space
        if space is None:
            self._ready()
        if not isinstance(observation, (dict, tuple)):
            observation = np.asarray(observation)
        is_one = spaces.is_one(space, observation)
        rows = spaces.rows_of(space, spaces.stacked(space, [observation]) if is_one else observation)
        actions = spaces.from_numbers(self.action_space, self.policy.predict(rows, deterministic))
        return (actions[0] if is_one else actions), state

    def inspect(self, observation: Any) -> dict[str, np.ndarray]:
        """Returns what the network computes from one observation or from several, as far as it has it: `values`, `action_values` and the `probabilities` of actions that are one choice."""
        space = self.observation_space
        is_one = spaces.is_one(space, observation)
        rows = spaces.rows_of(space, spaces.stacked(space, [observation]) if is_one else observation)
        if isinstance(space, gymnasium.spaces.Discrete):
            rows = spaces.codes(rows[:, 0], space.n, space, space.start)
        parts = self.policy.inspect(rows)
        return {name: array[0] for name, array in parts.items()} if is_one else parts

    def set_random_seed(self, seed: int | None = None) -> None:
        """Sets the seed of what is trained and sampled from now on, of the environments, and of Python's and NumPy's own random numbers."""
        self.seed = self._env_seed = seed
        if seed is None:
            return
        random.seed(seed)
        np.random.seed(seed % (1 << 32))
        if self.action_space is not None:
            self.action_space.seed(seed)
        if self._policy is not None:
            self._policy.set_seed(int(seed) % (1 << 63))

    def get_parameters(self) -> dict[str, dict[str, np.ndarray]]:
        """Returns the parameters by name, as arrays."""
        return {"policy": self.policy.parameters()}

    def set_parameters(self, load_path_or_dict: Any, exact_match: bool = True, device: str = "auto") -> None:
        """Replaces the parameters by those of `get_parameters` or of a file of `save`, and the target networks by copies; without `exact_match` those that are given and that the model has."""
        is_given = isinstance(load_path_or_dict, dict)
        given = (load_path_or_dict if is_given else type(self).load(load_path_or_dict).get_parameters())["policy"]
        if not exact_match:
            own = self.get_parameters()["policy"]
            given = {**own, **{name: array for name, array in given.items() if name in own}}
        self._ready().set_parameters({name: np.ascontiguousarray(array, np.float32) for name, array in given.items()})
        self._policy = None

    def to_sb3(self, env: Any = None) -> Any:
        """Returns a model of Stable-Baselines3 with the same arguments and parameters. Needs stable-baselines3."""
        return conversion.to_sb3(self, env)

    @classmethod
    def from_sb3(cls, model: Any, env: Any = None, **kwargs: Any) -> "Self":
        """Returns a model with the parameters of one of Stable-Baselines3, or of a file of its `save`. `kwargs` are further arguments of the constructor; they are not read from the model."""
        return conversion.from_sb3(cls, model, env, kwargs)

    # files

    def save(self, path: Any, exclude: Iterable[str] | None = None, include: Iterable[str] | None = None) -> None:
        """Writes the model to a file, with what is needed to train it further, without the arguments in `exclude` that are not in `include`."""
        left_out = set(exclude or ()) - set(include or ())
        core = self._ready()
        file = {
            "version": VERSION,
            "class": type(self).__name__,
            "arguments": {name: args.to_file(name, getattr(self, name)) for name in self._names if name not in left_out},
            "policy": self.policy_class,
            "world": self._world,
            "n_envs": self.n_envs,
            "num_timesteps": self.num_timesteps,
            "total": core.steps,
            "drawn_seed": self._drawn_seed,
            "largest": self._described[0][-1] if self._described[0][0] == "image" else None,
            "spaces": [spaces.to_file(self.observation_space), spaces.to_file(self.action_space)],
            "last_obs": None if self._last_obs is None else _to_file(self._last_obs),
        }
        whole = io.BytesIO()
        with zipfile.ZipFile(whole, "w") as archive:
            archive.writestr("gradus.json", json.dumps(file, indent=1, default=lambda value: value.tolist() if isinstance(value, (np.generic, np.ndarray)) else str(value)))
            archive.writestr("state.safetensors", core.save())
        if hasattr(path, "write"):
            path.write(whole.getvalue())
            return
        target = pathlib.Path(path)
        target = target if target.suffix else target.with_suffix(".zip")
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f".{target.name}.part")
        part.write_bytes(whole.getvalue())
        part.replace(target)  # a file that was there stays whole until the new one is

    def __getstate__(self) -> dict[str, Any]:
        """What is copied and pickled: the file of `save`, the environment if it is a name, and the episodes of the training."""
        file = io.BytesIO()
        self.save(file)
        kept = {name: getattr(self, name) for name in ("ep_info_buffer", "ep_success_buffer", "_episodes", "_ends", "_returns", "_iterations", "_counted")}
        return {"file": file.getvalue(), "env": self._env if isinstance(self._env, str) else None, "kept": kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        model = type(self).load(io.BytesIO(state["file"]), state["env"], force_reset=False)
        self.__dict__.update(model.__dict__ | copy.deepcopy(state["kept"]))

    @classmethod
    def load(cls, path: Any, env: Any = None, device: str = "auto", custom_objects: dict[str, Any] | None = None, print_system_info: bool = False, force_reset: bool = True, **kwargs: Any) -> "Self":
        """Reads a model that `save` wrote. `custom_objects` replace arguments of its constructor, and `kwargs` replace or add them."""
        file, state = _read(path, cls.__name__)
        arguments = {name: args.from_file(value) for name, value in file["arguments"].items()}
        arguments |= {name: value for name, value in (custom_objects or {}).items() if name in arguments}
        model = cls(file["policy"], None, **{**arguments, "device": device, **kwargs})
        model.observation_space, model.action_space = map(spaces.from_file, file["spaces"])
        model._described = spaces.of_gymnasium(model.observation_space, "observation space"), spaces.of_gymnasium(model.action_space, "action space")
        model.n_envs, model._world, model._state = file["n_envs"], file["world"], state
        model.num_timesteps, model._total = file["num_timesteps"], file["total"]
        model._drawn_seed = file.get("drawn_seed", 1)
        if "largest" not in file and model._described[0][0] == "image":
            # files of before: bytes were divided by 255
            model._described = (*model._described[0][:-1], 255), model._described[1]
        if env is not None:
            model._may_differ = True
            model.set_env(env)
            model._may_differ = False
        elif file["world"] and file["n_envs"] == 1:
            model.set_env(_core.World(file["world"]).gymnasium_id or f"gradus/{file['world']}-v0")
        if model.n_envs != file["n_envs"]:
            # episodes and transitions are those of other environments
            model._state, model._learnt, model._total = None, state, 0
        model._begins_anew = force_reset
        if not force_reset and file["last_obs"] is not None:
            model._last_obs = _from_file(file["last_obs"])
            model._current = np.zeros(model.n_envs), np.zeros(model.n_envs, int)
        return model


def _to_file(observation):
    if isinstance(observation, dict):
        return {name: _to_file(part) for name, part in observation.items()}
    array = np.asarray(observation)
    return [array.tolist(), str(array.dtype)]


def _from_file(written):
    return {name: _from_file(part) for name, part in written.items()} if isinstance(written, dict) else np.array(written[0], written[1])


def _read(path, name):
    """Returns what a file of `save` says, and the state."""
    if not hasattr(path, "read"):
        path = pathlib.Path(path)
        path = path if path.exists() else path.with_name(path.name + ".zip")
    try:
        with zipfile.ZipFile(path) as archive:
            if "gradus.json" not in archive.namelist():
                hint = f"one of Stable-Baselines3's, which {name}.from_sb3 reads" if "data" in archive.namelist() else "another archive"
                raise ArgumentError(f"{path}: expected a model that {name}.save wrote, got {hint}")
            file, state = json.loads(archive.read("gradus.json")), archive.read("state.safetensors")
    except zipfile.BadZipFile:
        raise ArgumentError(f"{path}: expected a model that {name}.save wrote, but it wasn't a zip-file") from None
    if file["version"] != VERSION:
        raise ArgumentError(f"{path}: expected a file of version {VERSION}, got {file['version']}")
    if file["class"] != name:
        raise ArgumentError(f"{path}: expected a model of {name}, got one of {file['class']}")
    return file, state


def _bar(total):
    try:
        from tqdm.auto import tqdm
    except ImportError:
        warnings.warn("progress_bar: there is none, because tqdm is not installed", stacklevel=3)
        return None
    return tqdm(total=int(total))
