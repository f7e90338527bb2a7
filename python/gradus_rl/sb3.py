"""Agents with the interface of Stable-Baselines3: `from gradus_rl.sb3 import PPO` in place of `from stable_baselines3 import PPO`.

Constructors have the arguments and defaults of Stable-Baselines3 2.9. An environment is a name, an environment or a vector of Gymnasium's, or a `VecEnv` of
Stable-Baselines3's. A name such as `CartPole-v1` that Gradus knows is the environment of Gradus, with the same dynamics; it trains without Python. What is not supported raises an error that
names it.
"""

import json
import pathlib
import time
import zipfile
from collections import deque

import gymnasium
import numpy as np

from gradus_rl import _core
from gradus_rl.spaces import from_numbers, of_gymnasium, rows_of, to_gymnasium
from gradus_rl.world import GradusEnv

__all__ = ["A2C", "DDPG", "DQN", "PPO", "SAC", "TD3", "evaluate_policy"]

INFINITE = "inf"
VERSION = 1


def _native(env):
    """Returns the name of the world of Gradus that an environment is, or None."""
    if isinstance(env, str):
        known = {_core.World(name).gymnasium_id: name for name in _core.worlds()}
        if not env.startswith("gradus/"):
            return known.get(env)
        return gymnasium.spec(env).kwargs["world"]
    while isinstance(env, (gymnasium.wrappers.OrderEnforcing, gymnasium.wrappers.PassiveEnvChecker)):
        env = env.env
    return env.world.name if type(env) is GradusEnv else None


class _Vector:
    """Environments in Python, which begin the next episode within a step. `finals` are the last observations of episodes that ended."""

    def __init__(self, env):
        self.given = env
        self.is_sb3 = not isinstance(env, (list, gymnasium.vector.VectorEnv))
        if isinstance(env, list):
            self.observation_space, self.action_space, self.num_envs = env[0].observation_space, env[0].action_space, len(env)
        elif isinstance(env, gymnasium.vector.VectorEnv):
            mode = env.metadata.get("autoreset_mode")
            if mode != gymnasium.vector.AutoresetMode.SAME_STEP:
                raise ValueError(f"env: expected a vector with the autoreset mode same_step, got {getattr(mode, 'value', mode)}")
            self.observation_space, self.action_space, self.num_envs = env.single_observation_space, env.single_action_space, env.num_envs
        else:
            self.observation_space, self.action_space, self.num_envs = env.observation_space, env.action_space, env.num_envs

    def reset(self, seed):
        env = self.given
        if isinstance(env, list):
            return np.stack([np.asarray(one.reset(seed=None if seed is None else seed + i)[0]) for i, one in enumerate(env)])
        if not self.is_sb3:
            return env.reset(seed=seed)[0]
        if seed is not None:
            env.seed(seed)
        return env.reset()

    def step(self, actions):
        env, n = self.given, self.num_envs
        finals, infos = [], [{} for _ in range(n)]
        if isinstance(env, list):
            observations, rewards, terminated, truncated = [], np.zeros(n, np.float32), np.zeros(n, bool), np.zeros(n, bool)
            for i, one in enumerate(env):
                observation, reward, terminated[i], truncated[i], infos[i] = one.step(actions[i])
                rewards[i] = float(reward)
                if terminated[i] or truncated[i]:
                    finals.append((i, np.asarray(observation)))
                    infos[i] = {**infos[i], "terminal_observation": observation}
                    observation, _ = one.reset()
                observations.append(np.asarray(observation))
            return np.stack(observations), rewards, terminated, truncated, finals, infos
        if not self.is_sb3:
            observations, rewards, terminated, truncated, info = env.step(actions)
            finals = [(i, np.asarray(info["final_obs"][i])) for i in np.flatnonzero(terminated | truncated)]
            return observations, np.asarray(rewards, np.float32), terminated, truncated, finals, infos
        observations, rewards, dones, infos = env.step(actions)
        truncated = np.array([bool(done and info.get("TimeLimit.truncated", False)) for done, info in zip(dones, infos)])
        finals = [(i, np.asarray(infos[i]["terminal_observation"])) for i in np.flatnonzero(dones)]
        return observations, np.asarray(rewards, np.float32), dones & ~truncated, truncated, finals, infos


def _vector(env):
    if isinstance(env, str):
        return _Vector([gymnasium.make(env)])
    if isinstance(env, gymnasium.Env):
        return _Vector([env])
    if isinstance(env, gymnasium.vector.VectorEnv) or (hasattr(env, "num_envs") and hasattr(env, "step_async")):
        return _Vector(env)
    raise ValueError(f"env: expected a name, an environment or a vector, got {type(env).__name__}")


def _number(value):
    if value is None:
        return INFINITE
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(float(value)) if isinstance(value, float) else str(value)


def _schedule(name, value):
    """Returns the first value of a number or a function of the remaining progress, and whether it falls to 0."""
    if not callable(value):
        return float(value), "constant"
    first, middle, last = (float(value(progress)) for progress in (1.0, 0.5, 0.0))
    if first == middle == last:
        return first, "constant"
    if last == 0.0 and np.isclose(middle, first / 2):
        return first, "linear"
    raise ValueError(f"{name}: expected a number, or a function that is constant or falls evenly to 0, got values {first}, {middle}, {last}")


class _Callbacks:
    """Calls functions and callbacks of Stable-Baselines3."""

    def __init__(self, callback, model):
        self.functions, self.objects = [], []
        for one in callback if isinstance(callback, (list, tuple)) else [callback]:
            if hasattr(one, "init_callback"):
                one.init_callback(model)
                self.objects.append(one)
            elif callable(one):
                self.functions.append(one)
            elif one is not None:
                raise ValueError(f"callback: expected a function or a callback, got {type(one).__name__}")

    def __bool__(self):
        return bool(self.functions or self.objects)

    def call(self, method, *arguments):
        for one in self.objects:
            getattr(one, method)(*arguments)

    def on_step(self, scope, other):
        results = [function(scope, other) for function in self.functions]
        for one in self.objects:
            one.update_locals(scope)
            results.append(one.on_step())
        return all(result is None or result for result in results)


class Logger:
    """What the last update reported, by name."""

    def __init__(self):
        self.name_to_value = {}

    def record(self, key, value, exclude=None):
        """Sets a value."""
        self.name_to_value[key] = value

    def dump(self, step=0):
        """Does nothing: values stay until they are recorded again."""


class BaseAlgorithm:
    """What all agents have in common."""

    agent = ""
    _wrapped = None
    _extra: list[str] = []

    def _set_up(self, policy, env, *, envs_of_string=1, settings, seed, verbose, stats_window_size, policy_kwargs, device, tensorboard_log, arguments):
        if policy not in ("MlpPolicy", "CnnPolicy"):
            raise ValueError(f"policy: expected MlpPolicy or CnnPolicy, got {policy if isinstance(policy, str) else type(policy).__name__}")
        if str(device) not in ("auto", "cpu"):
            raise ValueError(f"device: expected auto or cpu, got {device}")
        if tensorboard_log is not None:
            raise ValueError("tensorboard_log: expected None, because `gradus train` writes runs for TensorBoard, got a folder")
        self.policy_class, self.verbose, self.seed, self.device = policy, verbose, seed, "cpu"
        self.logger, self._settings, self._arguments = Logger(), settings + self._policy_settings(policy_kwargs or {}), arguments
        self.ep_info_buffer = deque(maxlen=stats_window_size)
        self.num_timesteps, self._core, self._policy, self._state, self._total = 0, None, None, None, 0
        self.env = self._world = self._last_obs = None
        self.observation_space = self.action_space = None
        if env is not None:
            self.set_env(env)

    def _policy_settings(self, kwargs):
        settings = []
        for key, value in kwargs.items():
            if key == "net_arch":
                settings.append(f"network.hidden={self._hidden(value)}")
            elif key == "activation_fn":
                name = (value if isinstance(value, str) else value.__name__).lower()
                if name not in ("tanh", "relu"):
                    raise ValueError(f"policy_kwargs: expected the activation_fn Tanh or ReLU, got {value}")
                settings.append(f"network.activation={name}")
            elif key == "ortho_init":
                settings.append(f"network.orthogonal={_number(bool(value))}")
            elif key == "log_std_init":
                settings.append(f"network.log_std_init={float(value)}")
            else:
                raise ValueError(f"policy_kwargs: expected net_arch, activation_fn, ortho_init or log_std_init, got {key}")
        return settings

    @staticmethod
    def _hidden(value):
        if isinstance(value, dict):
            arches = list(value.values())
            if any(arch != arches[0] for arch in arches):
                raise ValueError(f"net_arch: expected equal layers of actor and critic, got {value}")
            value = arches[0]
        return json.dumps([int(width) for width in value])

    # the environment

    def set_env(self, env, force_reset=True):
        """Sets the environment, whose spaces must be those of the one before."""
        world = _native(env)
        vector = None if world else _vector(env)
        if world:
            observations, actions = map(to_gymnasium, _core.World(world).spaces())
        else:
            observations, actions = vector.observation_space, vector.action_space
        if self.observation_space is not None and (observations, actions) != (self.observation_space, self.action_space):
            raise ValueError(f"env: expected the spaces {self.observation_space} and {self.action_space}, got {observations} and {actions}")
        num_envs = 1 if world else vector.num_envs
        if self._core is not None and num_envs != self.n_envs:
            raise ValueError(f"env: expected {self.n_envs} environments, as before, got {num_envs}")
        if self._core is not None and self._state is None:
            self._state = self._core.save()
        self.env, self._world, self._vector, self.n_envs, self._wrapped = env, world, vector, num_envs, None
        self.observation_space, self.action_space = observations, actions
        if force_reset:
            self._last_obs = None
        self._core = None

    def get_env(self):
        """Returns the environment: as a vector of Stable-Baselines3's if that is installed, otherwise as it was given."""
        if self.env is None or hasattr(self.env, "step_async"):
            return self.env
        if self._wrapped is None:
            try:
                from stable_baselines3.common.monitor import Monitor
                from stable_baselines3.common.vec_env import DummyVecEnv
            except ImportError:
                return self.env
            own = self.env
            if isinstance(own, str):
                own = gymnasium.make(own) if self._world is None else gymnasium.make("gradus/World-v0", world=self._world)
            if not isinstance(own, gymnasium.Env):
                return self.env
            self._wrapped = DummyVecEnv([lambda: Monitor(own)])
        return self._wrapped

    def _settings_now(self):
        """Returns the settings of Gradus, by name."""
        _ = self.policy
        return self._core.settings()

    def get_vec_normalize_env(self):
        """Returns None: environments are not normalised."""
        return None

    def _make_core(self, total):
        spaces = None
        if self._world is None:
            spaces = (of_gymnasium(self.observation_space, "observation space"), of_gymnasium(self.action_space, "action space"))
        trunk = []
        if self.policy_class == "CnnPolicy":
            shape = self.observation_space.shape
            if self.observation_space.dtype != np.uint8 or len(shape) < 3:
                raise ValueError(f"policy: expected MlpPolicy, because observations are no images, got CnnPolicy for {self.observation_space}")
            is_large = min(shape[-3:-1]) >= 36
            trunk = [f"network.trunk={'nature' if is_large else 'arcade'}", "network.activation=relu"]
            trunk += ["network.shared=true"] if self.agent in ("ppo", "a2c") else []
            if "net_arch" not in (self._arguments.get("policy_kwargs") or {}):
                trunk.append(f"network.hidden=[{512 if is_large else 128}]")
        name = self._world or "python"
        if self.agent == "sac" and self._arguments["target_entropy"] == "auto":
            self._extra = [f"sac.target_entropy={-float(np.prod(self.action_space.shape))}"]
        settings = [f"envs={self.n_envs}", f"steps={total}", f"seed={1 if self.seed is None else int(self.seed) % (1 << 63)}", *self._settings, *self._extra, *trunk]
        core = _core.Agent(self.agent, name, None, settings, spaces)
        if self._state is not None:
            core.load(self._state)
        return core

    # training

    def learn(self, total_timesteps, callback=None, log_interval=None, tb_log_name=None, reset_num_timesteps=True, progress_bar=False):
        """Trains for `total_timesteps` steps, rounded up to whole rollouts. Returns the model."""
        if self.env is None:
            raise ValueError("env: expected one before `learn`; `set_env` sets it")
        if self._core is not None:
            self._state = self._core.save()
        if reset_num_timesteps:
            self.num_timesteps = 0
        callbacks = _Callbacks(callback, self)
        done = 0 if self._core is None and self._state is None else self._total
        self._core = self._make_core(done + int(total_timesteps))
        self._policy = None
        before, begin, updates = self._core.steps, time.perf_counter(), 0
        self._offset = self.num_timesteps - before
        callbacks.call("on_training_start", locals(), globals())
        if self._world and not callbacks:
            while not self._core.is_finished:
                self._core.train(log_interval or (1 << 62))
                self._reported(begin, before)
        else:
            self._loop(callbacks, log_interval, begin, before)
        callbacks.call("on_training_end")
        self._total = self._core.total_steps
        return self

    def _reported(self, begin, before):
        self.ep_info_buffer.extend({"r": value, "l": length} for value, length in self._core.take_episodes())
        self.logger.name_to_value.update(self._core.report())
        self.num_timesteps = self._core.steps + self._offset
        if self.verbose:
            returns = [info["r"] for info in self.ep_info_buffer]
            rate = (self._core.steps - before) / max(time.perf_counter() - begin, 1e-9)
            print(f"{self.num_timesteps} steps, {rate:.0f} steps/s, mean return {np.mean(returns) if returns else float('nan'):.2f}", flush=True)

    def _loop(self, callbacks, log_interval, begin, before):
        core, vector = self._core, self._vector
        if vector is None:
            self._vector = vector = _Vector(_InPython(self._world, self.n_envs))
        if self._last_obs is None:
            self._last_obs = vector.reset(self.seed)
        returns, lengths = np.zeros(self.n_envs), np.zeros(self.n_envs, int)
        updates = 0
        callbacks.call("on_rollout_start")
        while not core.is_finished:
            actions = from_numbers(self.action_space, core.act(rows_of(self.observation_space, self._last_obs)))
            new_obs, rewards, terminated, truncated, finals, infos = vector.step(actions)
            self.num_timesteps += self.n_envs
            dones = terminated | truncated
            returns += rewards
            lengths += 1
            for env in np.flatnonzero(dones):
                infos[env] = {**infos[env], "episode": {"r": float(returns[env]), "l": int(lengths[env]), "t": time.perf_counter() - begin}}
                self.ep_info_buffer.append(infos[env]["episode"])
                returns[env], lengths[env] = 0.0, 0
            goes_on = callbacks.on_step({"self": self, "rewards": rewards, "dones": dones, "infos": infos, "new_obs": new_obs, "actions": actions}, globals()) if callbacks else True
            self._last_obs = new_obs
            rows = [(env, rows_of(self.observation_space, observation[None])[0]) for env, observation in finals]
            if core.observe(rows_of(self.observation_space, new_obs), rewards, terminated, truncated, rows):
                updates += 1
                self._policy = None
                self.logger.name_to_value.update(core.report())
                callbacks.call("on_rollout_end")
                if log_interval and updates % log_interval == 0 and self.verbose:
                    self._reported(begin, before)
                callbacks.call("on_rollout_start")
            if not goes_on:
                break

    # acting

    @property
    def policy(self):
        """The current policy, which acts on rows of numbers."""
        if self._policy is None:
            core = self._core
            if core is None:
                if self.env is None and self.observation_space is None:
                    raise ValueError("env: expected one before the policy is used; `set_env` sets it")
                core = self._core = self._make_core(max(self._total, 1))
            self._policy = core.policy()
        return self._policy

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        """Returns actions for one observation or for several, and `state`."""
        observation = np.asarray(observation)
        policy, space = self.policy, self.observation_space
        is_one = observation.shape == space.shape
        if not is_one and observation.shape[1:] != space.shape:
            raise ValueError(f"observation: expected the shape {space.shape} or one more dimension, got {observation.shape}")
        rows = rows_of(space, observation[None] if is_one else observation)
        actions = from_numbers(self.action_space, policy.predict(rows, deterministic))
        return (actions[0] if is_one else actions), state

    def set_random_seed(self, seed=None):
        """Sets the seed of what is trained and sampled from now on."""
        self.seed = seed
        if self._policy is not None and seed is not None:
            self._policy.set_seed(int(seed))

    def get_parameters(self):
        """Returns the parameters by name, as arrays."""
        return {"policy": self.policy.parameters()}

    def set_parameters(self, parameters, exact_match=True, device="auto"):
        """Replaces the parameters by those of `get_parameters`."""
        _ = self.policy
        self._core.set_parameters({name: np.ascontiguousarray(array, np.float32) for name, array in parameters["policy"].items()})
        self._policy = None

    # Stable-Baselines3

    def _names(self):
        """Returns triples: our name of a parameter, Stable-Baselines3's names, and the part of ours that theirs is."""
        ours = self.get_parameters()["policy"]
        last = max(int(name.split(".")[-2]) for name in ours if name.endswith("weight"))
        triples = []
        for name in ours:
            head, _, kind = name.rpartition(".")
            if name == "actor.log_std":
                triples.append((name, ["log_std"], None))
                continue
            network, _, layer = head.rpartition(".")
            is_last = int(layer) == last
            if self.agent in ("ppo", "a2c"):
                net = {"actor": ("policy_net", "action_net"), "critic": ("value_net", "value_net")}[network]
                triples.append((name, [f"{net[1]}.{kind}" if is_last else f"mlp_extractor.{net[0]}.{layer}.{kind}"], None))
            elif self.agent == "dqn":
                triples.append((name, [f"{net}.q_net.{layer}.{kind}" for net in ("q_net", "q_net_target")], None))
            elif network.startswith("critic."):
                triples.append((name, [f"{net}.qf{network[7:]}.{layer}.{kind}" for net in ("critic", "critic_target")], None))
            elif self.agent == "sac":
                half = len(ours[name]) // 2
                if is_last:
                    triples += [(name, [f"actor.mu.{kind}"], slice(0, half)), (name, [f"actor.log_std.{kind}"], slice(half, None))]
                else:
                    triples.append((name, [f"actor.latent_pi.{layer}.{kind}"], None))
            else:
                triples.append((name, [f"{net}.mu.{layer}.{kind}" for net in ("actor", "actor_target")], None))
        return triples

    def to_sb3(self, env=None):
        """Returns a model of Stable-Baselines3 with the same arguments and parameters. Needs stable-baselines3."""
        import stable_baselines3
        import torch

        if env is None:
            env = gymnasium.make(_core.World(self._world).gymnasium_id) if self._world else self.env
        arguments = {**{name: _argument(value) for name, value in self._arguments.items()}, "device": "cpu"}
        if arguments.get("action_noise") is not None:
            size = int(np.prod(self.action_space.shape))
            std = np.full(size, arguments["action_noise"]._sigma)
            arguments["action_noise"] = stable_baselines3.common.noise.NormalActionNoise(np.zeros(size), std)
        if isinstance((arguments.get("policy_kwargs") or {}).get("activation_fn"), str):
            arguments["policy_kwargs"] = {**arguments["policy_kwargs"], "activation_fn": getattr(torch.nn, arguments["policy_kwargs"]["activation_fn"])}
        model = getattr(stable_baselines3, type(self).__name__)(self.policy_class, env, seed=self.seed, **arguments)
        ours, state = self.get_parameters()["policy"], model.policy.state_dict()
        for name, theirs, part in self._names():
            for other in theirs:
                state[other] = torch.from_numpy(ours[name] if part is None else ours[name][part])
        model.policy.load_state_dict(state)
        return model

    @classmethod
    def from_sb3(cls, model, env=None, **kwargs):
        """Returns a model with the parameters of one of Stable-Baselines3. `kwargs` are further arguments of the constructor; they are not read from the model."""
        if type(model).__name__ != cls.__name__:
            raise ValueError(f"model: expected one of Stable-Baselines3's {cls.__name__}, got {type(model).__name__}")
        kwargs.setdefault("policy_kwargs", {key: value for key, value in (model.policy_kwargs or {}).items() if key in ("net_arch", "activation_fn", "ortho_init", "log_std_init")})
        own = cls("MlpPolicy", model.get_env() if env is None else env, **kwargs)
        state = {name: tensor.detach().cpu().numpy() for name, tensor in model.policy.state_dict().items()}
        parameters = {name: array.copy() for name, array in own.get_parameters()["policy"].items()}
        for name, theirs, part in own._names():
            array = state.get(theirs[0])
            if array is None or array.shape != (parameters[name] if part is None else parameters[name][part]).shape:
                raise ValueError(f"model: expected a parameter {theirs[0]} with the shape {parameters[name].shape}, got {None if array is None else array.shape}")
            if part is None:
                parameters[name] = array
            else:
                parameters[name][part] = array
        own.set_parameters({"policy": parameters})
        return own

    # files

    def save(self, path):
        """Writes the model to a file, with what is needed to train it further."""
        _ = self.policy
        file = {
            "version": VERSION,
            "class": type(self).__name__,
            "arguments": self._arguments,
            "policy": self.policy_class,
            "world": self._world,
            "n_envs": self.n_envs,
            "seed": self.seed,
            "num_timesteps": self.num_timesteps,
            "total": self._total,
            "spaces": [of_gymnasium(self.observation_space, "observation space"), of_gymnasium(self.action_space, "action space")],
        }
        state = self._core.save() if self._core is not None else self._state
        target = path
        if not hasattr(path, "write"):
            target = pathlib.Path(path)
            target = target if target.suffix else target.with_suffix(".zip")
            target.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(target, "w") as archive:
            archive.writestr("gradus.json", json.dumps(file, indent=1))
            archive.writestr("state.safetensors", state)

    @classmethod
    def load(cls, path, env=None, device="auto", custom_objects=None, print_system_info=False, force_reset=True, **kwargs):
        """Reads a model that `save` wrote. Other arguments replace those of its constructor."""
        if not hasattr(path, "read"):
            path = pathlib.Path(path)
            path = path if path.exists() else path.with_suffix(".zip")
        with zipfile.ZipFile(path) as archive:
            if "gradus.json" not in archive.namelist():
                raise ValueError(f"{path}: expected a model that {cls.__name__}.save wrote, got another archive")
            file = json.loads(archive.read("gradus.json"))
            state = archive.read("state.safetensors")
        if file["class"] != cls.__name__:
            raise ValueError(f"{path}: expected a model of {cls.__name__}, got one of {file['class']}")
        if file["version"] != VERSION:
            raise ValueError(f"{path}: expected a file of version {VERSION}, got {file['version']}")
        model = cls(file["policy"], None, **{**{name: _argument(value) for name, value in file["arguments"].items()}, "seed": file["seed"], **kwargs})
        model.observation_space, model.action_space = (to_gymnasium(tuple(space)) for space in file["spaces"])
        model.n_envs, model._world, model._vector, model._state = file["n_envs"], file["world"], None, state
        model.num_timesteps, model._total = file["num_timesteps"], file["total"]
        if env is not None:
            model.set_env(env)
        elif file["world"]:
            model.env = file["world"]
        return model


class _InPython:
    """A world of Gradus as a vector of Stable-Baselines3's kind, for callbacks in Python."""

    def __init__(self, world, n):
        self._world, self.num_envs = world, n
        self.observation_space, self.action_space = map(to_gymnasium, _core.World(world).spaces())
        self._vector = gymnasium.make_vec("gradus/World-v0", num_envs=n, world=world, vectorization_mode="vector_entry_point", autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP)

    def seed(self, seed):
        self._seed = seed

    def reset(self):
        return self._vector.reset(seed=getattr(self, "_seed", None))[0]

    def step(self, actions):
        observations, rewards, terminated, truncated, info = self._vector.step(actions)
        dones = terminated | truncated
        infos = [{"TimeLimit.truncated": bool(truncated[i] and not terminated[i])} for i in range(self.num_envs)]
        for i in np.flatnonzero(dones):
            infos[i]["terminal_observation"] = info["final_obs"][i]
        return observations, rewards, dones, infos


def _arguments(scope):
    """Returns the arguments of a constructor, to be written to a file."""
    left_out = ("self", "policy", "env", "__class__", "_init_setup_model", "seed")
    kept = {}
    for name, value in scope.items():
        if name in left_out:
            continue
        if callable(value):
            first, schedule = _schedule(name, value)
            value = first if schedule == "constant" else {"falls from": first}
        if name == "policy_kwargs" and value:
            value = {key: one.__name__ if isinstance(one, type) else one for key, one in value.items()}
        if name == "action_noise" and value is not None:
            value = {"std": float(np.ravel(getattr(value, "_sigma", np.nan))[0])}
        kept[name] = value
    return kept


class _NormalNoise:
    """Normal noise on actions, as `action_noise` takes it."""

    def __init__(self, std):
        self._mu, self._sigma = 0.0, std


def _argument(value):
    """Returns an argument that `_arguments` has made ready for a file."""
    if isinstance(value, dict) and set(value) == {"falls from"}:
        return lambda progress: value["falls from"] * progress
    return _NormalNoise(value["std"]) if isinstance(value, dict) and set(value) == {"std"} else value


def _refuse(**values):
    """Raises an error for arguments that Gradus does not have."""
    for name, (value, allowed) in values.items():
        if value not in allowed:
            raise ValueError(f"{name}: expected {' or '.join(map(str, allowed))}, because Gradus has nothing else, got {value}")


def _rate(value):
    first, schedule = _schedule("learning_rate", value)
    return [f"optimiser.learning_rate={first!r}", f"optimiser.schedule={schedule}"]


ON_POLICY = [
    "network.hidden=[64,64]", "network.activation=tanh", "network.shared=false", "network.orthogonal=true", "network.trunk=none", "network.cell=none",
    "optimiser.epsilon=1e-5", "optimiser.critic_learning_rate_ratio=1", "optimiser.weight_decay=0", "optimiser.clip_per_group=false", "optimiser.warmup=0",
    "reference.coefficient=0", "wrappers.normalise_observations=false", "wrappers.normalise_rewards=false", "wrappers.clip_reward=inf", "wrappers.reward_scale=1", "wrappers.time_aware=false",
]  # fmt: skip


class PPO(BaseAlgorithm):
    """Proximal policy optimisation (arXiv 1707.06347)."""

    agent = "ppo"

    def __init__(
        self, policy, env, learning_rate=3e-4, n_steps=2048, batch_size=64, n_epochs=10, gamma=0.99, gae_lambda=0.95, clip_range=0.2, clip_range_vf=None,
        normalize_advantage=True, ent_coef=0.0, vf_coef=0.5, max_grad_norm=0.5, use_sde=False, sde_sample_freq=-1, rollout_buffer_class=None,
        rollout_buffer_kwargs=None, target_kl=None, stats_window_size=100, tensorboard_log=None, policy_kwargs=None, verbose=0, seed=None, device="auto",
        _init_setup_model=True,
    ):  # fmt: skip
        arguments = _arguments(locals())
        _refuse(rollout_buffer_class=(rollout_buffer_class, [None]), rollout_buffer_kwargs=(rollout_buffer_kwargs, [None]))
        clip, clip_schedule = _schedule("clip_range", clip_range)
        clip_value = INFINITE if clip_range_vf is None else _number(_schedule("clip_range_vf", clip_range_vf)[0])
        settings = [
            *ON_POLICY, *_rate(learning_rate), "optimiser.rule=adam", f"optimiser.max_grad_norm={_number(max_grad_norm)}",
            f"ppo.rollout_steps={n_steps}", "ppo.episodes_per_env=0", f"ppo.minibatch_size={batch_size}", f"ppo.epochs={n_epochs}",
            f"ppo.gamma={gamma}", f"ppo.gae_lambda={gae_lambda}", "ppo.truncated=bootstraps", f"ppo.clip={clip}", f"ppo.clip_schedule={clip_schedule}",
            f"ppo.clip_value={clip_value}", f"ppo.normalise_advantages={_number(bool(normalize_advantage))}", "ppo.normalise_over=minibatch",
            f"ppo.entropy_coefficient={float(ent_coef)}", f"ppo.value_coefficient={2 * float(vf_coef)}",  # ours multiplies half the squared error
            f"ppo.target_kl={_number(target_kl)}", "ppo.kl_stop=minibatch",
            "ppo.kl_coefficient=0", "ppo.dual_clip=inf", "ppo.huber=inf", "ppo.whiten_rewards=false", "ppo.recompute_advantages=false",
            *([f"network.gsde=true", f"network.gsde_sample_every={max(sde_sample_freq, 0)}"] if use_sde else ["network.gsde=false"]),
        ]  # fmt: skip
        self.n_steps, self.batch_size, self.n_epochs, self.gamma, self.gae_lambda = n_steps, batch_size, n_epochs, gamma, gae_lambda
        self._set_up(
            policy, env, settings=settings, seed=seed, verbose=verbose, stats_window_size=stats_window_size, policy_kwargs=policy_kwargs, device=device,
            tensorboard_log=tensorboard_log, arguments=arguments,
        )  # fmt: skip


class A2C(BaseAlgorithm):
    """Advantage actor-critic (Mnih et al., arXiv 1602.01783, without threads)."""

    agent = "a2c"

    def __init__(
        self, policy, env, learning_rate=7e-4, n_steps=5, gamma=0.99, gae_lambda=1.0, ent_coef=0.0, vf_coef=0.5, max_grad_norm=0.5, rms_prop_eps=1e-5,
        use_rms_prop=True, use_sde=False, sde_sample_freq=-1, rollout_buffer_class=None, rollout_buffer_kwargs=None, normalize_advantage=False,
        stats_window_size=100, tensorboard_log=None, policy_kwargs=None, verbose=0, seed=None, device="auto", _init_setup_model=True,
    ):  # fmt: skip
        arguments = _arguments(locals())
        _refuse(rollout_buffer_class=(rollout_buffer_class, [None]), rollout_buffer_kwargs=(rollout_buffer_kwargs, [None]))
        settings = [
            *ON_POLICY, *_rate(learning_rate), f"optimiser.rule={'rmsprop' if use_rms_prop else 'adam'}",
            f"optimiser.epsilon={rms_prop_eps if use_rms_prop else 1e-5}", f"optimiser.max_grad_norm={_number(max_grad_norm)}",
            f"a2c.rollout_steps={n_steps}", f"a2c.gamma={gamma}", f"a2c.gae_lambda={gae_lambda}", "a2c.truncated=bootstraps",
            f"a2c.normalise_advantages={_number(bool(normalize_advantage))}", f"a2c.entropy_coefficient={float(ent_coef)}",
            f"a2c.value_coefficient={2 * float(vf_coef)}",
            *([f"network.gsde=true", f"network.gsde_sample_every={max(sde_sample_freq, 0)}"] if use_sde else ["network.gsde=false"]),
        ]  # fmt: skip
        self.n_steps, self.gamma, self.gae_lambda = n_steps, gamma, gae_lambda
        self._set_up(
            policy, env, settings=settings, seed=seed, verbose=verbose, stats_window_size=stats_window_size, policy_kwargs=policy_kwargs, device=device,
            tensorboard_log=tensorboard_log, arguments=arguments,
        )  # fmt: skip


def _off_policy(agent, buffer_size, learning_starts, batch_size, tau, gamma, train_freq, gradient_steps, n_steps, refused):
    _refuse(**refused)
    if isinstance(train_freq, (tuple, list)):
        number, unit = train_freq
        if unit != "step":
            raise ValueError(f"train_freq: expected a number of steps, got {train_freq}")
        train_freq = number
    steps = train_freq if gradient_steps == -1 else gradient_steps
    return [
        f"{agent}.buffer_size={buffer_size}", f"{agent}.learning_starts={learning_starts}", f"{agent}.batch_size={batch_size}", f"{agent}.tau={float(tau)}",
        f"{agent}.gamma={gamma}", f"{agent}.rollout_steps={train_freq}", f"{agent}.updates_per_step={steps / train_freq!r}", f"{agent}.n_step={n_steps}",
        f"{agent}.priority_exponent=0", "optimiser.rule=adam", "optimiser.epsilon=1e-8", "optimiser.weight_decay=0", "optimiser.warmup=0",
        "network.cell=none", "network.trunk=none", "network.orthogonal=false", "network.activation=relu", "network.layer_norm=false", "network.shared=false",
        "optimiser.critic_learning_rate_ratio=1", "optimiser.clip_per_group=false",
        "wrappers.normalise_observations=false", "wrappers.normalise_rewards=false", "wrappers.clip_reward=inf", "wrappers.reward_scale=1", "wrappers.time_aware=false",
    ]  # fmt: skip


class DQN(BaseAlgorithm):
    """Deep Q-learning (Mnih et al., 2015)."""

    agent = "dqn"

    def __init__(
        self, policy, env, learning_rate=1e-4, buffer_size=1_000_000, learning_starts=100, batch_size=32, tau=1.0, gamma=0.99, train_freq=4,
        gradient_steps=1, replay_buffer_class=None, replay_buffer_kwargs=None, optimize_memory_usage=False, n_steps=1, target_update_interval=10_000,
        exploration_fraction=0.1, exploration_initial_eps=1.0, exploration_final_eps=0.05, max_grad_norm=10.0, stats_window_size=100, tensorboard_log=None,
        policy_kwargs=None, verbose=0, seed=None, device="auto", _init_setup_model=True,
    ):  # fmt: skip
        arguments = _arguments(locals())
        refused = {"replay_buffer_class": (replay_buffer_class, [None]), "replay_buffer_kwargs": (replay_buffer_kwargs, [None])}
        settings = [
            *_off_policy("dqn", buffer_size, learning_starts, batch_size, tau, gamma, train_freq, gradient_steps, n_steps, refused),
            *_rate(learning_rate), f"optimiser.max_grad_norm={_number(max_grad_norm)}", "network.hidden=[64,64]", "dqn.loss=huber", "dqn.double=false",
            "dqn.dueling=false", f"dqn.target_update_interval={target_update_interval}", f"dqn.exploration_fraction={exploration_fraction}",
            f"dqn.exploration_initial_eps={exploration_initial_eps}", f"dqn.exploration_final_eps={exploration_final_eps}",
        ]  # fmt: skip
        self._set_up(
            policy, env, settings=settings, seed=seed, verbose=verbose, stats_window_size=stats_window_size, policy_kwargs=policy_kwargs, device=device,
            tensorboard_log=tensorboard_log, arguments=arguments,
        )  # fmt: skip


def _noise(agent, action_noise):
    if action_noise is None:
        return [f"{agent}.action_noise_std=0"]
    std = getattr(action_noise, "_sigma", None)
    if std is None or not np.allclose(std, np.ravel(std)[0]) or not np.allclose(getattr(action_noise, "_mu", 0), 0):
        raise ValueError(f"action_noise: expected None, or normal noise with mean 0 and one standard deviation, got {action_noise}")
    return [f"{agent}.action_noise=normal", f"{agent}.action_noise_std={float(np.ravel(std)[0])}"]


class TD3(BaseAlgorithm):
    """Twin delayed deep deterministic policy gradients (Fujimoto et al., arXiv 1802.09477)."""

    agent = "td3"

    def __init__(
        self, policy, env, learning_rate=1e-3, buffer_size=1_000_000, learning_starts=100, batch_size=256, tau=0.005, gamma=0.99, train_freq=1,
        gradient_steps=1, action_noise=None, replay_buffer_class=None, replay_buffer_kwargs=None, optimize_memory_usage=False, n_steps=1, policy_delay=2,
        target_policy_noise=0.2, target_noise_clip=0.5, stats_window_size=100, tensorboard_log=None, policy_kwargs=None, verbose=0, seed=None, device="auto",
        _init_setup_model=True,
    ):  # fmt: skip
        arguments = _arguments(locals())
        refused = {"replay_buffer_class": (replay_buffer_class, [None]), "replay_buffer_kwargs": (replay_buffer_kwargs, [None])}
        settings = [
            *_off_policy("td3", buffer_size, learning_starts, batch_size, tau, gamma, train_freq, gradient_steps, n_steps, refused),
            *_rate(learning_rate), *_noise("td3", action_noise), "optimiser.max_grad_norm=inf", "network.hidden=[400,300]",
            f"td3.policy_delay={policy_delay}", f"td3.target_policy_noise={target_policy_noise}", f"td3.target_noise_clip={target_noise_clip}",
        ]  # fmt: skip
        self._set_up(
            policy, env, settings=settings, seed=seed, verbose=verbose, stats_window_size=stats_window_size, policy_kwargs=policy_kwargs, device=device,
            tensorboard_log=tensorboard_log, arguments=arguments,
        )  # fmt: skip


class DDPG(BaseAlgorithm):
    """Deep deterministic policy gradients (Lillicrap et al., arXiv 1509.02971)."""

    agent = "ddpg"

    def __init__(
        self, policy, env, learning_rate=1e-3, buffer_size=1_000_000, learning_starts=100, batch_size=256, tau=0.005, gamma=0.99, train_freq=1,
        gradient_steps=1, action_noise=None, replay_buffer_class=None, replay_buffer_kwargs=None, optimize_memory_usage=False, n_steps=1,
        tensorboard_log=None, policy_kwargs=None, verbose=0, seed=None, device="auto", _init_setup_model=True,
    ):  # fmt: skip
        arguments = _arguments(locals())
        refused = {"replay_buffer_class": (replay_buffer_class, [None]), "replay_buffer_kwargs": (replay_buffer_kwargs, [None])}
        settings = [
            *_off_policy("ddpg", buffer_size, learning_starts, batch_size, tau, gamma, train_freq, gradient_steps, n_steps, refused),
            *_rate(learning_rate), *_noise("ddpg", action_noise), "optimiser.max_grad_norm=inf", "network.hidden=[400,300]",
        ]  # fmt: skip
        self._set_up(
            policy, env, settings=settings, seed=seed, verbose=verbose, stats_window_size=100, policy_kwargs=policy_kwargs, device=device,
            tensorboard_log=tensorboard_log, arguments=arguments,
        )  # fmt: skip


class SAC(BaseAlgorithm):
    """Soft actor-critic (Haarnoja et al., arXiv 1812.05905)."""

    agent = "sac"

    def __init__(
        self, policy, env, learning_rate=3e-4, buffer_size=1_000_000, learning_starts=100, batch_size=256, tau=0.005, gamma=0.99, train_freq=1,
        gradient_steps=1, action_noise=None, replay_buffer_class=None, replay_buffer_kwargs=None, optimize_memory_usage=False, n_steps=1, ent_coef="auto",
        target_update_interval=1, target_entropy="auto", use_sde=False, sde_sample_freq=-1, use_sde_at_warmup=False, stats_window_size=100,
        tensorboard_log=None, policy_kwargs=None, verbose=0, seed=None, device="auto", _init_setup_model=True,
    ):  # fmt: skip
        arguments = _arguments(locals())
        refused = {
            "action_noise": (action_noise, [None]),
            "replay_buffer_class": (replay_buffer_class, [None]),
            "replay_buffer_kwargs": (replay_buffer_kwargs, [None]),
            "target_update_interval": (target_update_interval, [1]),
            "use_sde": (use_sde, [False]),
        }
        is_auto = isinstance(ent_coef, str)
        first = float(ent_coef.split("_")[1]) if is_auto and "_" in ent_coef else 1.0 if is_auto else float(ent_coef)
        settings = [
            *_off_policy("sac", buffer_size, learning_starts, batch_size, tau, gamma, train_freq, gradient_steps, n_steps, refused),
            *_rate(learning_rate), "optimiser.max_grad_norm=inf", "network.hidden=[256,256]", f"sac.ent_coef={first}",
            f"sac.auto_ent_coef={_number(is_auto)}", *([] if target_entropy == "auto" else [f"sac.target_entropy={float(target_entropy)}"]),
        ]  # fmt: skip
        self._set_up(
            policy, env, settings=settings, seed=seed, verbose=verbose, stats_window_size=stats_window_size, policy_kwargs=policy_kwargs, device=device,
            tensorboard_log=tensorboard_log, arguments=arguments,
        )  # fmt: skip


def evaluate_policy(model, env, n_eval_episodes=10, deterministic=True, return_episode_rewards=False):
    """Plays episodes: the mean return and its standard deviation, or with `return_episode_rewards` the returns and lengths."""
    env = gymnasium.make(env) if isinstance(env, str) else env
    returns, lengths = [], []
    for _ in range(n_eval_episodes):
        observation, _ = env.reset()
        total, length, is_over = 0.0, 0, False
        while not is_over:
            action, _ = model.predict(observation, deterministic=deterministic)
            observation, reward, terminated, truncated, _ = env.step(action)
            total, length, is_over = total + float(reward), length + 1, terminated or truncated
        returns.append(total)
        lengths.append(length)
    return (returns, lengths) if return_episode_rewards else (float(np.mean(returns)), float(np.std(returns)))
