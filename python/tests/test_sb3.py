"""The interface of Stable-Baselines3."""

import copy
import json
import pickle
import zipfile

import gymnasium
import numpy as np
import pytest

from gradus_rl.sb3 import A2C, DDPG, DQN, PPO, SAC, TD3, evaluate_policy
from gradus_rl.sb3.logger import Logger
from gradus_rl.vector import GradusVectorEnv


def test_the_example_of_every_introduction():
    model = PPO("MlpPolicy", "CartPole-v1", seed=1).learn(50_000)
    env = gymnasium.make("CartPole-v1")
    mean, _ = evaluate_policy(model, env, 20)
    assert mean > 400
    observation, _ = env.reset(seed=1)
    action, state = model.predict(observation, deterministic=True)
    assert action in (0, 1) and state is None and np.shape(action) == ()
    assert model.predict(np.zeros((3, 4), np.float32))[0].shape == (3,)


@pytest.mark.parametrize("agent, env", [(PPO, "CartPole-v1"), (A2C, "CartPole-v1"), (DQN, "CartPole-v1"), (PPO, "Pendulum-v1"), (A2C, "Pendulum-v1"), (DDPG, "Pendulum-v1"), (TD3, "Pendulum-v1"), (SAC, "Pendulum-v1")])
@pytest.mark.parametrize("native", [True, False])
def test_every_agent_trains_saves_and_goes_on(agent, env, native, tmp_path):
    world = env if native else gymnasium.wrappers.TimeLimit(gymnasium.make(env).unwrapped, 200)
    smaller = {} if agent in (PPO, A2C) else {"batch_size": 32, "policy_kwargs": {"net_arch": [32, 32]}}
    model = agent("MlpPolicy", world, seed=3, **smaller)
    model.learn(600)
    assert model.num_timesteps >= 600
    observations = np.random.default_rng(1).normal(size=(20, *model.observation_space.shape)).astype(np.float32)
    actions, _ = model.predict(observations, deterministic=True)
    model.save(tmp_path / "model")
    read = agent.load(tmp_path / "model", env=world)
    assert (read.predict(observations, deterministic=True)[0] == actions).all()
    model.learn(600, reset_num_timesteps=False)
    read.learn(600, reset_num_timesteps=False)
    assert model.num_timesteps == read.num_timesteps >= 1200


def test_callbacks_see_every_step_and_stop():
    seen = []

    def callback(scope, _):
        seen.append(scope["self"].num_timesteps)
        return len(seen) < 300

    model = PPO("MlpPolicy", "CartPole-v1", n_steps=64).learn(10_000, callback=callback)
    assert seen == list(range(1, 301)) and model.num_timesteps == 300
    model.learn(64, reset_num_timesteps=False)
    assert model.num_timesteps == 364  # not the steps that were stopped, too


class Counting(gymnasium.Env):
    """Observations count the steps, 200 in an episode, from `first` on. Each has the reward 1."""

    observation_space, action_space = gymnasium.spaces.Box(0, 1e4, (1,)), gymnasium.spaces.Box(-1, 1, (1,))

    def __init__(self, first=0):
        self.first = first

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return np.array([self.first], np.float32), {}

    def step(self, action):
        self.t += 1
        return np.array([self.first + self.t], np.float32), 1.0, False, self.t == 200, {}


def numbers_of_buffer(model, tmp_path):
    """Returns the observations and what follows them in the replay buffer: 0 continues, 1 terminated, 2 truncated."""
    model.save(tmp_path / "buffer")
    state = zipfile.ZipFile(tmp_path / "buffer.zip").read("state.safetensors")
    length = 8 + int.from_bytes(state[:8], "little")
    header = json.loads(state[8:length])

    def numbers(name, kind):
        begin, end = header[name]["data_offsets"]
        return np.frombuffer(state[length + begin : length + end], kind).tolist()

    name = next(name for name in header if name.endswith(".observations") and "replay_page" in name)
    return numbers(name, np.float32), numbers(name.replace("observations", "endings"), np.uint8)


def small(agent, env, **further):
    return agent("MlpPolicy", env, seed=1, learning_starts=1000, buffer_size=100, batch_size=8, policy_kwargs={"net_arch": [8]}, **further)


def test_transitions_of_different_episodes_are_not_joined(tmp_path):
    model = small(SAC, Counting())
    model.learn(8)
    model.set_env(Counting(1000))
    model.learn(4)
    model.learn(4)  # begins a new episode, as in Stable-Baselines3
    model.learn(4, reset_num_timesteps=False)  # goes on with it
    model.learn(100, callback=lambda scope, _: scope["self"].num_timesteps < 11, reset_num_timesteps=False)
    observations, endings = numbers_of_buffer(model, tmp_path)
    assert observations[:20] == [*range(8), 1000, 1001, 1002, 1003, *range(1000, 1008), *range(1008, 1010)][:20]
    assert [i for i, end in enumerate(endings[:20]) if end == 2] == [7, 11]

    # a callback stops in the middle of a rollout: what it left out is not part of the next transition
    model = small(SAC, Counting(), train_freq=8)
    model.learn(100, callback=lambda scope, _: scope["self"].num_timesteps < 11)
    model.learn(8, reset_num_timesteps=False)
    observations, endings = numbers_of_buffer(model, tmp_path)
    assert observations[:16] == [*range(8), *range(11, 19)] and endings[7] == 2 and set(endings[:7]) == {0}


def test_episodes_may_last_over_several_calls():
    model = PPO("MlpPolicy", Counting(), n_steps=64, batch_size=64)
    for _ in range(7):
        model.learn(64, reset_num_timesteps=False)
    assert model.training_episodes()[1].tolist() == [200.0, 200.0]


@pytest.mark.parametrize("n", [1, 4])
@pytest.mark.parametrize("every, steps, updates", [(1, 1, lambda n: 400 / n), (1, -1, lambda n: 400), (4, 2, lambda n: 200 / n)])
def test_gradient_steps_follow_the_steps_of_the_vector(n, every, steps, updates):
    vector = gymnasium.make_vec("gradus/Pendulum-v1", num_envs=n, vectorization_mode="vector_entry_point", autoreset_mode="SameStep")
    model = SAC("MlpPolicy", vector, seed=1, learning_starts=0, train_freq=every, gradient_steps=steps, batch_size=8, policy_kwargs={"net_arch": [8]})
    seen = {}
    model.set_logger(type("Keeps", (), {"record": lambda _, key, value, **__: seen.update({key: value}), "dump": lambda *_, **__: None, "name_to_value": {}})())
    model.learn(400)
    assert seen["train/n_updates"] == updates(n)


def test_an_interruption_loses_nothing():
    import signal

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background processes ignore it
    model = PPO("MlpPolicy", "CartPole-v1", seed=1)
    steps = []
    old = signal.signal(signal.SIGALRM, lambda *_: steps.append(model._core.steps) or signal.raise_signal(signal.SIGINT))  # it may use the model
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(KeyboardInterrupt):
            model.learn(1e9)
    finally:
        signal.signal(signal.SIGALRM, old)
    assert 0 < steps[0] <= model.num_timesteps and len(model.training_episodes()[0]) > 0
    before = model.num_timesteps
    model.set_env("CartPole-v1")
    model.learn(2560, reset_num_timesteps=False)
    assert model.num_timesteps >= before + 2560


def test_episodes_begin_anew_unless_the_training_goes_on():
    returns = []
    for again in (True, False):
        model = PPO("MlpPolicy", "CartPole-v1", seed=1, n_steps=64, batch_size=64).learn(64)
        _, before = model.training_episodes()
        model.learn(64, reset_num_timesteps=again)
        steps, after = model.training_episodes()
        returns.append(after[0 if again else len(before)])
        assert again or sum(after) <= 128
    # the first episode of the second call is a whole one only if it begins there
    assert returns[0] != returns[1]


@pytest.mark.parametrize("kind", ["name", "one", "vector", "gymnasium"])
def test_evaluation_takes_every_kind_of_environment(kind):
    model = PPO("MlpPolicy", "CartPole-v1", seed=1, n_steps=64, batch_size=64).learn(64)
    env = {
        "name": lambda: "CartPole-v1",
        "one": lambda: gymnasium.make("CartPole-v1"),
        "vector": lambda: model.get_env(),
        "gymnasium": lambda: gymnasium.make_vec("gradus/CartPole-v1", num_envs=3, vectorization_mode="vector_entry_point", autoreset_mode="SameStep"),
    }[kind]()
    calls = []
    returns, lengths = evaluate_policy(model, env, 7, callback=lambda *_: calls.append(0), return_episode_rewards=True)
    assert returns == lengths and len(returns) == 7 and len(calls) >= max(lengths)
    with pytest.raises(AssertionError, match="reward_threshold: expected a mean return above 501"):
        evaluate_policy(model, env, 2, reward_threshold=501)


def test_actions_are_elements_of_their_space():
    seen = []

    class World(Counting):
        def __init__(self, space):
            super().__init__()
            self.action_space = space

        def step(self, action):
            seen.append(action)
            assert self.action_space.contains(action), action
            return super().step(action)

    PPO("MlpPolicy", World(gymnasium.spaces.MultiDiscrete([3, 3], start=[1, -1])), n_steps=64, batch_size=64, seed=1).learn(64)
    assert {tuple(action) for action in seen} == {(i, j) for i in (1, 2, 3) for j in (-1, 0, 1)}
    seen.clear()
    PPO("MlpPolicy", World(gymnasium.spaces.Box(0, 3, (1,), np.int64)), n_steps=512, batch_size=64, seed=1).learn(512)
    counts = np.bincount([int(action[0]) for action in seen], minlength=4)
    assert counts[1] > 0.25 * counts[0]  # normal around 0 and rounded: 0.24 and 0.69 of all; cut off, it would be 0.14 and 0.84


def test_a_seed_counts_from_the_first_prediction():
    model = PPO("MlpPolicy", "CartPole-v1", seed=1)
    observations = np.zeros((20, 4), np.float32)
    predicted = []
    for _ in range(2):
        model.set_random_seed(5)
        predicted.append(model.predict(observations)[0].tolist())
    fresh = PPO("MlpPolicy", "CartPole-v1", seed=1)
    fresh.set_random_seed(5)
    assert predicted[0] == predicted[1] == fresh.predict(observations)[0].tolist()


def test_callbacks_see_the_newest_policy():
    policies = set()

    def callback(scope, _):
        policies.add(b"".join(array.tobytes() for array in scope["self"].get_parameters()["policy"].values()))

    DQN("MlpPolicy", "CartPole-v1", seed=1, learning_starts=20, buffer_size=500).learn(100, callback=callback)
    # an update after every fourth step from 20 on; a callback sees what the one before it made
    assert 18 <= len(policies) <= 21


def test_an_exception_of_a_world_is_itself():
    class Fault(Exception):
        pass

    class Broken(gymnasium.Wrapper):
        def step(self, action):
            raise Fault("here")

    with pytest.raises(Fault, match="here"):
        PPO("MlpPolicy", Broken(gymnasium.make("CartPole-v1"))).learn(100)


def test_wrong_input_is_one_sentence(tmp_path):
    with pytest.raises(ValueError, match="policy: expected MlpPolicy or CnnPolicy for observations in a Box, got MultiInputPolicy"):
        PPO("MultiInputPolicy", "CartPole-v1")
    with pytest.raises(ValueError, match="policy_kwargs: expected net_arch"):
        PPO("MlpPolicy", "CartPole-v1", policy_kwargs={"features_extractor_class": int})
    with pytest.raises(ValueError, match="env: expected the spaces"):
        PPO("MlpPolicy", "CartPole-v1").set_env("Pendulum-v1")
    with pytest.raises(ValueError, match=r"observation: expected the shape \(4,\)"):
        PPO("MlpPolicy", "CartPole-v1").predict(np.zeros(3))
    PPO("MlpPolicy", "CartPole-v1").save(tmp_path / "model.zip")
    with pytest.raises(ValueError, match="expected a model of A2C, got one of PPO"):
        A2C.load(tmp_path / "model.zip")


def test_images_are_seen_by_convolutions():
    model = PPO("CnnPolicy", "MinAtar/Breakout-v1", n_steps=64, batch_size=64).learn(128)
    assert any("convolutions" in name and array.ndim == 4 for name, array in model.get_parameters()["policy"].items())
    with pytest.raises(ValueError, match="policy: expected MlpPolicy, because observations are no images"):
        PPO("CnnPolicy", "CartPole-v1").learn(100)


def test_schedules_and_noise_are_kept(tmp_path):
    class Noise:  # as Stable-Baselines3's, which is called for a sample
        _mu, _sigma = np.zeros(1), np.full(1, 0.3)

        def __call__(self):
            raise NotImplementedError

    settings = lambda model: dict(model._settings_now())
    PPO("MlpPolicy", "CartPole-v1", learning_rate=lambda progress: 1e-3 * progress).save(tmp_path / "ppo")
    TD3("MlpPolicy", "Pendulum-v1", action_noise=Noise(), buffer_size=1000).save(tmp_path / "td3")
    ppo, td3 = settings(PPO.load(tmp_path / "ppo")), settings(TD3.load(tmp_path / "td3"))
    assert (ppo["optimiser.schedule"], float(ppo["optimiser.learning_rate"])) == ('"linear"', 1e-3)
    assert float(td3["td3.action_noise_std"]) == pytest.approx(0.3)
    PPO("MlpPolicy", "CartPole-v1", tensorboard_log=tmp_path, policy_kwargs={"net_arch": [np.int64(32)]}).save(tmp_path / "ppo")
    assert settings(PPO.load(tmp_path / "ppo"))["network.hidden"] == "[32]"
    correlated = Noise()
    correlated._theta = 0.15
    with pytest.raises(ValueError, match="action_noise: expected None, or normal noise"):
        TD3("MlpPolicy", "Pendulum-v1", action_noise=correlated)


class Parts(gymnasium.Env):
    """CartPole, whose observation is a dictionary."""

    def __init__(self):
        self.env = gymnasium.make("CartPole-v1")
        low, high = self.env.observation_space.low, self.env.observation_space.high
        box = gymnasium.spaces.Box
        self.observation_space = gymnasium.spaces.Dict({"cart": box(low[:2], high[:2]), "pole": box(low[2:], high[2:])})
        self.action_space = self.env.action_space

    def reset(self, *, seed=None, options=None):
        observation, info = self.env.reset(seed=seed)
        return {"cart": observation[:2], "pole": observation[2:]}, info

    def step(self, action):
        observation, *rest = self.env.step(action)
        return {"cart": observation[:2], "pole": observation[2:]}, *rest


def test_a_dictionary_is_seen_as_its_parts(tmp_path):
    flat = PPO("MlpPolicy", gymnasium.wrappers.TimeLimit(gymnasium.make("CartPole-v1").unwrapped, 500), seed=1, n_steps=64).learn(256)
    parts = PPO("MultiInputPolicy", Parts(), seed=1, n_steps=64).learn(256)
    for name, array in flat.get_parameters()["policy"].items():
        assert (parts.get_parameters()["policy"][name] == array).all()
    observation = parts.observation_space.sample()
    parts.save(tmp_path / "parts")
    read = PPO.load(tmp_path / "parts")
    assert read.predict(observation, deterministic=True)[0] == parts.predict(observation, deterministic=True)[0]
    with pytest.raises(ValueError, match="policy: expected MultiInputPolicy for observations in a Dict, got MlpPolicy"):
        PPO("MlpPolicy", Parts())


def test_the_network_can_be_inspected():
    seen = PPO("MlpPolicy", "FrozenLake-v1").inspect(np.array([3, 4]))
    assert seen["values"].shape == (2,) and seen["probabilities"].shape == (2, 4) and np.allclose(seen["probabilities"].sum(axis=1), 1)
    one = DQN("MlpPolicy", "CartPole-v1", buffer_size=100).inspect(np.zeros(4, np.float32))
    assert one["action_values"].shape == (2,) and "values" not in one


def test_channels_first_is_the_same_picture():
    class Pictures(gymnasium.Env):
        def __init__(self, first):
            self.first = first
            self.observation_space = gymnasium.spaces.Box(0, 255, (2, 12, 14) if first else (12, 14, 2), np.uint8)
            self.action_space = gymnasium.spaces.Discrete(2)

        def picture(self):
            picture = np.random.default_rng(self.t).integers(256, size=(12, 14, 2), dtype=np.uint8)
            return np.moveaxis(picture, -1, 0) if self.first else picture

        def reset(self, *, seed=None, options=None):
            self.t = 0
            return self.picture(), {}

        def step(self, action):
            self.t += 1
            return self.picture(), float(action), self.t == 10, False, {}

    a, b = (A2C("CnnPolicy", Pictures(first), seed=1).learn(50).get_parameters()["policy"] for first in (True, False))
    assert all((a[name] == b[name]).all() for name in a)


def test_vectors_of_gradus_train_without_python():
    envs = gymnasium.make_vec("gradus/CartPole-v1", num_envs=4, vectorization_mode="vector_entry_point", autoreset_mode="SameStep")
    model = PPO("MlpPolicy", envs, seed=1, n_steps=64).learn(512)
    assert model._world == "cartpole" and model.n_envs == 4 and model._vector is None
    wrapped = PPO("MlpPolicy", gymnasium.wrappers.TransformReward(gymnasium.make("gradus/CartPole-v1"), lambda reward: 2 * reward), seed=1)
    assert wrapped._world is None


def test_parameters_that_are_given():
    model, other = (PPO("MlpPolicy", "CartPole-v1", seed=seed) for seed in (1, 2))
    before, given = (one.get_parameters()["policy"] for one in (model, other))
    first, *rest = given
    part = {"policy": {first: given[first], "unknown": np.zeros(3)}}
    with pytest.raises(ValueError):
        model.set_parameters(part)
    model.set_parameters(part, exact_match=False)
    after = model.get_parameters()["policy"]
    assert (after[first] == given[first]).all() and all((after[name] == before[name]).all() for name in rest)


class Reaching(gymnasium.Env):
    """Actions of two numbers."""

    observation_space, action_space = gymnasium.spaces.Box(-1, 1, (3,), np.float32), gymnasium.spaces.Box(-1, 1, (2,), np.float32)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(3, np.float32), {}

    def step(self, action):
        return np.zeros(3, np.float32), 0.0, False, True, {}


@pytest.mark.parametrize("given, total", [("auto", -2.0), (-3.0, -3.0)])
def test_the_target_entropy_is_that_of_all_dimensions(given, total):
    model = SAC("MlpPolicy", Reaching(), seed=1, target_entropy=given)
    assert float(dict(model._settings_now())["sac.target_entropy"]) == total / 2  # for each dimension
    with pytest.raises(ValueError, match="target_entropy: expected a number or auto, got much"):
        SAC("MlpPolicy", Reaching(), target_entropy="much")


def tensors(model, path):
    """The numbers of a saved model, by their names in Gradus."""
    model.save(path)
    data = zipfile.ZipFile(path.with_suffix(".zip")).read("state.safetensors")
    n = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + n])
    return {name: data[8 + n + entry["data_offsets"][0] : 8 + n + entry["data_offsets"][1]] for name, entry in header.items() if name != "__metadata__"}


@pytest.mark.parametrize("agent, env", [(DQN, "CartPole-v1"), (SAC, "Pendulum-v1")])
def test_target_networks_follow_parameters_that_are_set(agent, env, tmp_path):
    model, other = (agent("MlpPolicy", env, seed=seed, buffer_size=100, batch_size=8, policy_kwargs={"net_arch": [8]}) for seed in (1, 2))
    model.set_parameters(other.get_parameters())
    saved = tensors(model, tmp_path / "model")
    targets = {name: numbers for name, numbers in saved.items() if name.startswith("agent.target.")}
    assert targets and all(numbers == saved[name.replace("agent.target.", "policy.")] for name, numbers in targets.items())


@pytest.mark.parametrize("agent, env", [(DQN, "CartPole-v1"), (SAC, "Pendulum-v1")])
def test_another_number_of_environments_and_a_replay_buffer(agent, env, tmp_path):
    envs = lambda n: gymnasium.make_vec(f"gradus/{env}", num_envs=n, vectorization_mode="vector_entry_point", autoreset_mode="SameStep")
    model = agent("MlpPolicy", envs(2), seed=1, buffer_size=200, learning_starts=50, batch_size=8, policy_kwargs={"net_arch": [8]}).learn(400)
    model.save(tmp_path / "two")
    for n in (1, 3):
        read = agent.load(tmp_path / "two", env=envs(n))
        before, after = (tensors(one, tmp_path / "one") for one in (model, read))
        assert all(after[name] == numbers for name, numbers in before.items() if name.startswith(("policy.", "optimiser.", "agent.target.")))
        read.learn(120, reset_num_timesteps=False)
        assert read.num_timesteps == 400 + 120
    smaller = agent.load(tmp_path / "two", env=envs(2), buffer_size=100)
    with pytest.raises(ValueError, match="replay: expected the size of the saved buffer"):
        smaller.learn(10)


def test_layers_follow_the_features_of_images():
    model = DQN("CnnPolicy", "MinAtar/Breakout-v1", buffer_size=100, policy_kwargs={"net_arch": [64]})
    assert dict(model._settings_now())["network.hidden"].replace(" ", "") == "[128,64]"
    with pytest.raises(ValueError, match="net_arch: expected none with CnnPolicy"):
        PPO("CnnPolicy", "MinAtar/Breakout-v1", policy_kwargs={"net_arch": [64]})
    with pytest.raises(ValueError, match="activation_fn: expected ReLU with CnnPolicy, got Tanh"):
        DQN("CnnPolicy", "MinAtar/Breakout-v1", policy_kwargs={"activation_fn": "Tanh"})


def test_another_number_of_environments(tmp_path):
    envs = lambda n: gymnasium.make_vec("gradus/CartPole-v1", num_envs=n, vectorization_mode="vector_entry_point", autoreset_mode="SameStep")
    model = PPO("MlpPolicy", envs(2), seed=1, n_steps=64).learn(256)
    model.save(tmp_path / "two")
    read = PPO.load(tmp_path / "two", env=envs(3))
    for name, array in model.get_parameters()["policy"].items():
        assert (read.get_parameters()["policy"][name] == array).all()
    read.learn(192, reset_num_timesteps=False)
    assert read.num_timesteps == 256 + 192
    with pytest.raises(ValueError, match="env: expected 3 environments, as before, got 2"):
        read.set_env(envs(2))


def test_attributes_are_arguments(tmp_path):
    model = PPO("MlpPolicy", "CartPole-v1", learning_rate=1e-3, n_steps=64, seed=1)
    assert (model.learning_rate, model.n_steps, model.batch_size, model.lr_schedule(0.5)) == (1e-3, 64, 64, 1e-3)
    model.learn(64)
    model.learning_rate = 2e-3
    model.learn(64)
    assert float(dict(model._settings_now())["optimiser.learning_rate"]) == 2e-3
    model.save(tmp_path / "model", exclude=["batch_size"])
    read = PPO.load(tmp_path / "model", custom_objects={"learning_rate": 3e-3, "unknown": 1}, n_epochs=2)
    assert (read.learning_rate, read.n_epochs, hasattr(read, "unknown")) == (3e-3, 2, False)


@pytest.mark.parametrize("native", [True, False])
def test_metrics_are_printed_and_written(native, tmp_path, capsys):
    env = "CartPole-v1" if native else gymnasium.wrappers.TimeLimit(gymnasium.make("CartPole-v1").unwrapped, 500)
    for _ in range(2):
        model = PPO("MlpPolicy", env, n_steps=128, verbose=1, tensorboard_log=tmp_path).learn(256)
    model.learn(128, reset_num_timesteps=False)
    assert [len(list((tmp_path / f"PPO_{n}").iterdir())) for n in (1, 2)] == [1, 1]
    assert all(next((tmp_path / f"PPO_{n}").iterdir()).stat().st_size > 1000 for n in (1, 2))
    printed = capsys.readouterr().out
    assert printed.count("total_timesteps") == 5 and "ep_rew_mean" in printed and "nan" not in printed
    values = model.logger.name_to_value
    assert values["time/total_timesteps"] == 384 and 0 < values["rollout/ep_len_mean"] == values["rollout/ep_rew_mean"]
    read = tmp_path / "PPO_2"
    try:
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    except ImportError:
        return
    events = EventAccumulator(str(read))
    events.Reload()
    assert [event.step for event in events.Scalars("rollout/ep_rew_mean")] == [128, 256, 384]


@pytest.mark.parametrize("native", [True, False])
def test_off_policy_agents_log_by_episodes(native):
    seen = []
    env = "CartPole-v1" if native else gymnasium.wrappers.TimeLimit(gymnasium.make("CartPole-v1").unwrapped, 500)

    class Log:
        def record(self, key, value, exclude=None):
            if key == "time/episodes":
                seen.append(value)

        def dump(self, step):
            pass

    model = DQN("MlpPolicy", env, seed=1, learning_starts=10, buffer_size=1000)
    model.set_logger(Log())
    model.learn(4000, log_interval=2)
    episodes = len(model.training_episodes()[0])
    # without Python once for a group of updates, otherwise for every second episode, also if it ends between two updates
    assert 2 <= len(seen) <= 4 if native else seen == list(range(2, episodes + 1, 2))
    assert seen == sorted(set(seen)) and seen[-1] >= episodes - 1


def test_a_seed_is_followed():
    def trained():
        model = PPO("MlpPolicy", "CartPole-v1", seed=5, n_steps=64).learn(128)
        return [int(model.predict(np.full(4, 0.01 * i, np.float32))[0]) for i in range(50)]

    assert trained() == trained()


@pytest.mark.parametrize("native", [True, False])
def test_training_episodes(native):
    env = "CartPole-v1" if native else gymnasium.wrappers.TimeLimit(gymnasium.make("CartPole-v1").unwrapped, 500)
    model = PPO("MlpPolicy", env, seed=1, n_steps=128).learn(512)
    steps, returns = model.training_episodes()
    assert (np.cumsum(returns) == steps).all() and 400 < steps[-1] <= 512  # each step's reward is 1
    model.learn(128, reset_num_timesteps=False)
    more, _ = model.training_episodes()
    assert (more[: len(steps)] == steps).all() and 512 < more[-1] <= 640
    model.learn(128)
    assert model.training_episodes()[0][-1] <= 128


def test_taxi_is_learned_as_it_is_played():
    # an agent of Stable-Baselines3's has no masks, so that what it learns can be used
    model = DQN("MlpPolicy", "Taxi-v4", learning_starts=0, train_freq=100, seed=1, policy_kwargs={"net_arch": [8]}).learn(2_000)
    _, returns = model.training_episodes()
    assert returns.mean() < -300  # with masks a random policy does not drop the passenger at every place


def test_the_preset_of_a_world_leaves_nothing_in_the_defaults():
    assert dict(SAC("MlpPolicy", "MountainCarContinuous-v0", seed=1)._settings_now())["network.gsde"] == "false"
    assert float(dict(A2C("MlpPolicy", "Pendulum-v1", seed=1)._settings_now())["network.log_std_init"]) == 0.0


def test_the_update_comes_after_the_end_of_a_rollout():
    seen = []

    class Callback:
        def init_callback(self, model):
            self.model = model

        def on_training_start(self, *_):
            pass

        on_training_end = on_rollout_start = update_locals = on_training_start

        def on_step(self):
            return True

        def on_rollout_end(self):
            seen.append(self.model.get_parameters()["policy"]["actor.0.weight"].copy())

    model = PPO("MlpPolicy", "CartPole-v1", n_steps=64, seed=1)
    first = model.get_parameters()["policy"]["actor.0.weight"].copy()
    model.learn(128, callback=Callback())
    assert (seen[0] == first).all() and not (seen[1] == first).all()


class Lives(gymnasium.Wrapper):
    """Ends an episode with every fifth step and halves rewards, as the wrappers of Atari's games do at the end of a life; the next one goes on."""

    steps, is_over = 0, True

    def step(self, action):
        observation, reward, terminated, self.is_over, info = self.env.step(action)
        self.steps += 1
        return observation, reward / 2, terminated or self.steps % 5 == 0, self.is_over, info

    def reset(self, **arguments):
        return self.env.reset(**arguments) if self.is_over else (self.env.step(self.action_space.sample())[0], {})


class Monitor(gymnasium.Wrapper):
    """Notes returns as that of Stable-Baselines3 does."""

    def reset(self, **arguments):
        self.total, self.length = 0.0, 0
        return self.env.reset(**arguments)

    def step(self, action):
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.total, self.length = self.total + reward, self.length + 1
        return observation, reward, terminated, truncated, {**info, "episode": {"r": self.total, "l": self.length}} if terminated or truncated else info


def test_the_end_of_a_life_is_no_episode_of_a_monitor():
    returns, lengths = evaluate_policy(Constant(), Lives(Monitor(Counting())), 1, return_episode_rewards=True)
    assert (returns, lengths) == ([200.0], [200])
    model = PPO("MlpPolicy", Lives(Monitor(Counting())), n_steps=256, batch_size=64, seed=1).learn(512)
    assert [info["r"] for info in model.ep_info_buffer] == [200.0] * len(model.ep_info_buffer) and model.ep_info_buffer


class Constant:
    """A model with a memory: its state counts the steps since the beginning of an episode."""

    def predict(self, observations, state=None, episode_start=None, deterministic=True):
        n = len(observations)
        state = np.zeros(n) if state is None else state
        return np.zeros((n, 1), np.float32), np.where(episode_start, 0, state) + 1


def test_statistics_that_are_not_a_monitor_do_not_end_evaluations():
    env = gymnasium.wrappers.TimeLimit(gymnasium.wrappers.RecordEpisodeStatistics(Counting()), 50)
    assert evaluate_policy(Constant(), env, 2, return_episode_rewards=True) == ([50.0, 50.0], [50, 50])


def test_evaluations_pass_states_on_and_call_back_for_each_environment():
    seen = []

    def callback(scope, _):
        seen.append((scope["i"], scope["done"], int(scope["states"][scope["i"]])))

    evaluate_policy(Constant(), Counting(), 2, callback=callback)
    assert len(seen) == 400 and seen[199] == (0, True, 200) and seen[200] == (0, False, 1)
    with pytest.raises(AssertionError, match="above 200"):
        evaluate_policy(Constant(), Counting(), 1, reward_threshold=200.0)


def test_infos_of_a_vector_reach_callbacks():
    class Successful(Counting):
        def step(self, action):
            observation, reward, terminated, truncated, _ = super().step(action)
            return observation, reward, terminated, truncated, {"is_success": True, "parts": {"x": 1.0}}

    class Timed(gymnasium.vector.VectorWrapper):
        def step(self, actions):
            *others, info = self.env.step(actions)
            return *others, {**info, "fps": 30.0}  # not of each environment

    make = Timed(gymnasium.vector.SyncVectorEnv([Successful, Successful], autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP))
    infos = []
    model = PPO("MlpPolicy", make, n_steps=256, batch_size=64, seed=1).learn(512, callback=lambda scope, _: infos.append(scope["infos"]))
    assert list(model.ep_success_buffer) == [True, True]
    assert infos[0][1] == {"is_success": True, "parts": {"x": 1.0}}
    assert infos[199][0]["is_success"] and "terminal_observation" in infos[199][0]


def test_models_are_copied_and_pickled():
    model = PPO("MlpPolicy", "CartPole-v1", n_steps=64, seed=1).learn(128)
    observations = np.random.default_rng(1).normal(size=(20, 4)).astype(np.float32)
    for other in copy.deepcopy(model), pickle.loads(pickle.dumps(model)):
        assert other.training_episodes()[0].tolist() == model.training_episodes()[0].tolist()
        assert (other.predict(observations, deterministic=True)[0] == model.predict(observations, deterministic=True)[0]).all()
        assert other.learn(64, reset_num_timesteps=False).num_timesteps == 192
        others = other.get_parameters()["policy"]
    model.learn(64, reset_num_timesteps=False)
    for name, array in model.get_parameters()["policy"].items():
        assert (others[name] == array).all()  # episodes go on


def test_a_minibatch_is_at_most_a_rollout():
    with pytest.warns(UserWarning, match="batch_size: expected at most 32"):
        model = PPO("MlpPolicy", Counting(), n_steps=32, seed=1).learn(64)
    assert copy.deepcopy(model).predict(np.zeros(1, np.float32), deterministic=True)[0] == model.predict(np.zeros(1, np.float32), deterministic=True)[0]


def test_parameters_come_from_a_file(tmp_path):
    model = PPO("MlpPolicy", "CartPole-v1", n_steps=64, policy_kwargs={"net_arch": np.array([16, 16])}, seed=1).learn(128)
    model.save(tmp_path / "model")
    other = PPO("MlpPolicy", "CartPole-v1", n_steps=64, policy_kwargs={"net_arch": [16, 16]}, seed=2)
    other.set_parameters(tmp_path / "model.zip")
    for name, array in model.get_parameters()["policy"].items():
        assert (other.get_parameters()["policy"][name] == array).all()


def test_a_loaded_model_keeps_the_number_of_environments(tmp_path):
    envs = GradusVectorEnv("CartPole-v1", 2, gymnasium.vector.AutoresetMode.SAME_STEP)
    PPO("MlpPolicy", envs, n_steps=64, seed=1).learn(128).save(tmp_path / "model")
    with pytest.raises(ValueError, match="expected 2 environments"):
        PPO.load(tmp_path / "model").set_env("CartPole-v1")


def test_values_are_written_once(tmp_path):
    logger = Logger(folder=tmp_path)
    written = []
    logger._events = type("Events", (), {"write": lambda _, step, values: written.append((step, dict(values)))})()
    logger.record("mine/x", 1.0)
    logger.dump(10)
    logger.record("mine/y", 2.0)
    logger.dump(20)
    assert written == [(10, {"mine/x": 1.0}), (20, {"mine/y": 2.0})] and logger.name_to_value == {"mine/x": 1.0, "mine/y": 2.0}
