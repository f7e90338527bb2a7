"""Wrong worlds, arguments and files: one sentence each, that names what was wrong."""

import gymnasium
import numpy as np
import pytest

import gradus_rl
from gradus_rl.sb3 import DQN, PPO, SAC


class AtStep37(gymnasium.Wrapper):
    """Changes what one step returns."""

    def __init__(self, change):
        super().__init__(gymnasium.make("CartPole-v1"))
        self.change, self.steps = change, 0

    def step(self, action):
        self.steps += 1
        result = list(self.env.step(action))
        return tuple(self.change(result) if self.steps == 37 else result)


WORLDS = [
    (lambda r: [r[0] * np.nan, *r[1:]], "observation of environment 0: expected finite numbers, got nan"),
    (lambda r: [r[0], np.nan, *r[2:]], "reward of environment 0: expected a finite number, got nan"),
    (lambda r: [r[0], "much", *r[2:]], "reward of environment 0: expected a number, got 'much'"),
    (lambda r: [r[0][:3], *r[1:]], r"observation of environment 0: expected the shape \(4,\), got \(3,\)"),
    (lambda r: ["none", *r[1:]], r"observation of environment 0: expected the shape \(4,\), got \(\)"),
]


@pytest.mark.parametrize("change, expected", WORLDS)
def test_a_wrong_step_is_named(change, expected):
    with pytest.raises(ValueError, match=expected) as caught:
        PPO("MlpPolicy", AtStep37(change)).learn(1000)
    assert "\n" not in str(caught.value)


def test_the_step_is_named():
    with pytest.raises(ValueError, match="after 37 steps, reward of environment 0"):
        DQN("MlpPolicy", AtStep37(WORLDS[1][0])).learn(1000)


ARGUMENTS = [
    (lambda: PPO("MlpPolicy", 3), "env: expected a name, an environment or a vector, got int"),
    (lambda: DQN("MlpPolicy", "CartPole-v1", train_freq=0), "train_freq: expected a whole number from 1 up, got 0"),
    (lambda: DQN("MlpPolicy", "CartPole-v1", gradient_steps=0), "gradient_steps: expected a whole number from 1 up or -1, got 0"),
    (lambda: PPO("Mlp", "CartPole-v1"), "policy: expected MlpPolicy, CnnPolicy or MultiInputPolicy, got Mlp"),
    (lambda: PPO("MlpPolicy", "CartPole-v1", n_steps=0), "ppo.rollout_steps: expected at least 1, got 0"),
    (lambda: PPO("MlpPolicy", "CartPole-v1", gamma=2), "ppo.gamma: expected a number from 0 to 1, got 2"),
    (lambda: PPO("MlpPolicy", "CartPole-v1", clip_range_vf=-0.2), "clip_range_vf: expected None or a positive number, got -0.2"),
    (lambda: PPO("MlpPolicy", "CartPole-v1", use_sde=True), "use_sde: expected False"),
    (lambda: PPO("MlpPolicy", "CartPole-v1", device="cuda"), "device: expected auto or cpu, got cuda"),
    (lambda: PPO("MlpPolicy", "CartPole-v1", learning_rate=lambda p: p * p), "learning_rate: expected a number, or a function that is constant or falls evenly to 0"),
    (lambda: PPO("MlpPolicy", "CartPole-v1", policy_kwargs={"net_arch": {"pi": [8], "vf": [4]}}), "net_arch: expected equal layers of actor and critic"),
    (lambda: DQN("MlpPolicy", "Pendulum-v1"), "dqn: expected an environment with discrete actions"),
    (lambda: SAC("MlpPolicy", "CartPole-v1"), "sac: expected an environment with continuous actions"),
    (lambda: SAC("MlpPolicy", "Pendulum-v1", train_freq=(1, "episode")), "train_freq: expected a number of steps"),
    (lambda: PPO("MlpPolicy", None).learn(10), "env: expected one before `learn`"),
    (lambda: PPO("MlpPolicy", "CartPole-v1").learn(0), "total_timesteps: expected a number from 1 up, got 0"),
    (lambda: PPO("MlpPolicy", "CartPole-v1").learn(10, callback=3), "callback: expected a function or a callback, got int"),
    (lambda: PPO("MlpPolicy", gymnasium.make_vec("CartPole-v1", 2)), "env: expected a vector with the autoreset mode same_step, got NextStep"),
    (lambda: PPO("MlpPolicy", "CartPole-v1").predict(gymnasium.make("CartPole-v1").reset()), "mixing Gym API"),
]


@pytest.mark.parametrize("make, expected", ARGUMENTS)
def test_wrong_arguments(make, expected):
    # Stable-Baselines3 raises the one or the other, and so does code that catches them
    with pytest.raises((ValueError, AssertionError), match=expected) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_errors_are_value_errors_and_assertion_errors():
    for kind in (ValueError, AssertionError):
        with pytest.raises(kind):
            PPO("MlpPolicy", 3)


def test_an_exception_of_a_callback_is_itself():
    def callback(scope, _):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        PPO("MlpPolicy", "CartPole-v1").learn(100, callback=callback)


def test_closed_environments():
    env = gymnasium.make("gradus/CartPole-v1")
    env.reset(seed=1)
    env.close()
    with pytest.raises(gymnasium.error.ClosedEnvironmentError, match="step: expected an open environment, got a closed one"):
        env.step(0)
    envs = gymnasium.make_vec("gradus/CartPole-v1", num_envs=2, vectorization_mode="vector_entry_point")
    envs.reset()
    envs.close()
    with pytest.raises(gymnasium.error.ClosedEnvironmentError, match="step: expected an open vector, got a closed one"):
        envs.step(np.zeros(2, int))


def test_wrong_actions_of_vectors():
    envs = gradus_rl.GradusVectorEnv("cartpole", 2)
    with pytest.raises(gymnasium.error.ResetNeeded, match="step: expected `reset` before it"):
        envs.step(np.zeros(2, int))
    envs.reset(seed=1)
    for actions, expected in [
        (np.zeros(3, int), "actions: expected 2, one per environment, got 3"),
        (np.full(2, 0.7), "actions: expected whole numbers, got float64"),
        (np.array(["a", "b"]), "actions: expected whole numbers, got <U1"),
        (np.array([0, 5]), r"action of environment 1: expected Discrete\(2\), that is 0 to 1, got 5"),
        (np.array([0, -1]), "actions: expected elements of Discrete"),
    ]:
        with pytest.raises(ValueError, match=expected):
            envs.step(actions)
    envs = gradus_rl.GradusVectorEnv("pendulum", 2)
    envs.reset(seed=1)
    with pytest.raises(ValueError, match="actions: expected 1 numbers for each environment, got 2"):
        envs.step(np.zeros((2, 2)))
    with pytest.raises(ValueError, match=r"action of environment 0: expected Box.* got \[NaN\]"):
        envs.step(np.full((2, 1), np.nan))


def test_foreign_files(tmp_path):
    import zipfile

    (tmp_path / "text.zip").write_text("hi")
    with pytest.raises(ValueError, match="expected a model that PPO.save wrote, but it wasn't a zip-file"):
        PPO.load(tmp_path / "text.zip")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("data", "{}")
    with pytest.raises(ValueError, match="got one of Stable-Baselines3's, which PPO.from_sb3 reads"):
        PPO.load(tmp_path / "other.zip")
    PPO("MlpPolicy", "CartPole-v1").save(tmp_path / "own")
    with pytest.raises(ValueError, match="env: expected the spaces"):
        PPO.load(tmp_path / "own", env="Acrobot-v1")


def test_arrays_in_another_order_are_refused():
    model = gradus_rl.sb3.PPO("MlpPolicy", "CartPole-v1", seed=1)
    rows = np.random.default_rng(1).normal(size=(6, 4)).astype(np.float32)
    expected = model.predict(rows, deterministic=True)[0]
    assert (model.predict(np.asfortranarray(rows), deterministic=True)[0] == expected).all()
    with pytest.raises(ValueError, match="numpy.ascontiguousarray"):
        model.policy.predict(np.asfortranarray(rows), True)
    with pytest.raises(ValueError, match="numpy.ascontiguousarray"):
        model.policy.inspect(np.asfortranarray(rows))


def test_numbers_outside_a_space_are_refused():
    spaces = gymnasium.spaces
    for space, observation in [
        (spaces.MultiDiscrete([3, 2]), [-1, 0]), (spaces.MultiDiscrete([3, 2]), [1.7, 0]), (spaces.MultiDiscrete([3, 2]), [0, 2]),
        (spaces.MultiBinary(2), [0, 7]), (spaces.Dict({"a": spaces.Discrete(3)}), {"a": -1}),
    ]:  # fmt: skip
        rows = {name: np.array([part]) for name, part in observation.items()} if isinstance(observation, dict) else np.array([observation])
        with pytest.raises(ValueError, match="observation: expected an element of"):
            gradus_rl.spaces.rows_of(space, rows)


def test_what_was_silent():
    sb3 = gradus_rl.sb3
    with pytest.raises(ValueError, match="n_eval_episodes"):
        sb3.evaluate_policy(sb3.PPO("MlpPolicy", "CartPole-v1"), "CartPole-v1", -3)
    with pytest.raises(ValueError, match="net_arch"):
        sb3.PPO("MlpPolicy", "CartPole-v1", policy_kwargs={"net_arch": {"pi": [32, 32]}})
    with pytest.raises(ValueError, match="ent_coef: expected a number, auto"):
        sb3.SAC("MlpPolicy", "Pendulum-v1", ent_coef="off")
    assert "sac.auto_ent_coef=false" in sb3.SAC("MlpPolicy", "Pendulum-v1", ent_coef="0.2")._settings(1)
    mean, _ = sb3.evaluate_policy(sb3.DQN("MlpPolicy", "CliffWalking-v1", seed=1), "CliffWalking-v1", 1)  # ends, as in Gradus
    assert mean < 0


def test_without_a_seed_models_differ_and_a_model_that_is_loaded_goes_on(tmp_path):
    sb3 = gradus_rl.sb3
    first, second = (sb3.PPO("MlpPolicy", "CartPole-v1", n_steps=64) for _ in range(2))
    name = "actor.0.weight"
    assert (first.get_parameters()["policy"][name] != second.get_parameters()["policy"][name]).any()
    first.save(tmp_path / "ppo")
    with pytest.raises(FileNotFoundError):
        sb3.PPO.load(tmp_path / "ppo.best")  # not ppo.zip
    loaded = sb3.PPO.load(tmp_path / "ppo").learn(64)
    assert (loaded.get_parameters()["policy"][name] == first.learn(64).get_parameters()["policy"][name]).all()


def test_a_choice_is_said_as_it_was_given():
    with pytest.raises(ValueError, match=r"Discrete\(3, start=5\) as a, got 4$"):
        space = gymnasium.spaces.Dict({"a": gymnasium.spaces.Discrete(3, start=5)})
        gradus_rl.spaces.rows_of(space, {"a": np.array([4])})
    with pytest.raises(ValueError, match="actor and critic, as pi and qf"):
        gradus_rl.sb3.TD3("MlpPolicy", "Pendulum-v1", policy_kwargs={"net_arch": {"pi": [64]}})


def test_planes_of_bytes_are_not_divided():
    space = gymnasium.spaces.Box(0, 1, (10, 10, 4), np.uint8)
    assert gradus_rl.spaces.of_gymnasium(space, "observation space") == ("image", 1, 10, 10, 4, 1)
    space = gymnasium.spaces.Box(0, 255, (10, 10, 4), np.uint8)
    assert gradus_rl.spaces.of_gymnasium(space, "observation space")[-1] == 255


def test_a_memory_of_another_kind_is_named(tmp_path):
    import subprocess
    import sys

    run = tmp_path / "run"
    command = ["train", "ppo", "cartpole-masked", "--steps", "2000", "--quiet", "--out", str(run)]
    subprocess.run([sys.executable, "-c", "from gradus_rl.command import main; main()", *command], check=True, capture_output=True)
    policy = gradus_rl._core.Policy.open(run)
    width, observations = policy.memory_width, np.zeros((3, 4), np.float32)
    policy.predict(observations, True, None, np.zeros((3, width), np.float32))
    for wrong, got in ((np.zeros((3, width)), "float64"), (np.zeros((1, 3 * width), np.float32), r"\(1, ")):
        with pytest.raises(ValueError, match=rf"memory: expected float32 of shape \(3, {width}\), got .*{got}"):
            policy.predict(observations, True, None, wrong)
