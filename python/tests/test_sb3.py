"""The interface of Stable-Baselines3."""

import gymnasium
import numpy as np
import pytest

from gradus_rl.sb3 import A2C, DDPG, DQN, PPO, SAC, TD3, evaluate_policy


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
    model = agent("MlpPolicy", world, seed=3)
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


def test_an_exception_of_a_world_is_itself():
    class Fault(Exception):
        pass

    class Broken(gymnasium.Wrapper):
        def step(self, action):
            raise Fault("here")

    with pytest.raises(Fault, match="here"):
        PPO("MlpPolicy", Broken(gymnasium.make("CartPole-v1"))).learn(100)


def test_wrong_input_is_one_sentence(tmp_path):
    with pytest.raises(ValueError, match="policy: expected MlpPolicy or CnnPolicy, got MultiInputPolicy"):
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
    class Noise:
        _mu, _sigma = np.zeros(1), np.full(1, 0.3)

    settings = lambda model: dict(model._settings_now())
    PPO("MlpPolicy", "CartPole-v1", learning_rate=lambda progress: 1e-3 * progress).save(tmp_path / "ppo")
    TD3("MlpPolicy", "Pendulum-v1", action_noise=Noise(), buffer_size=1000).save(tmp_path / "td3")
    ppo, td3 = settings(PPO.load(tmp_path / "ppo")), settings(TD3.load(tmp_path / "td3"))
    assert (ppo["optimiser.schedule"], float(ppo["optimiser.learning_rate"])) == ('"linear"', 1e-3)
    assert float(td3["td3.action_noise_std"]) == pytest.approx(0.3)
