"""Models go to Stable-Baselines3 and back."""

import numpy as np
import pytest

from gradus_rl import sb3

stable_baselines3 = pytest.importorskip("stable_baselines3")

CASES = [("PPO", "CartPole-v1"), ("PPO", "Pendulum-v1"), ("A2C", "CartPole-v1"), ("DQN", "CartPole-v1"), ("DDPG", "Pendulum-v1"), ("TD3", "Pendulum-v1"), ("SAC", "Pendulum-v1")]


@pytest.mark.parametrize("agent, env", CASES)
def test_models_choose_the_same_actions(agent, env):
    size = {} if agent in ("PPO", "A2C") else {"buffer_size": 1000}
    ours = getattr(sb3, agent)("MlpPolicy", env, seed=1, **size).learn(500)
    observations = np.random.default_rng(1).normal(size=(10_000, *ours.observation_space.shape)).astype(np.float32)
    theirs = ours.to_sb3()

    def near(a, b):
        assert np.mean(np.abs(np.asarray(a, float) - np.asarray(b, float)) > 1e-5) < 1e-3

    near(ours.predict(observations, deterministic=True)[0], theirs.predict(observations, deterministic=True)[0])
    fresh = getattr(stable_baselines3, agent)("MlpPolicy", env, seed=2, **size)
    back = getattr(sb3, agent).from_sb3(fresh, env=env, **size)
    near(back.predict(observations, deterministic=True)[0], fresh.predict(observations, deterministic=True)[0])
    assert back.learn(500).num_timesteps >= 500


def test_another_model_is_refused():
    with pytest.raises(ValueError, match="model: expected one of Stable-Baselines3's PPO, got A2C"):
        sb3.PPO.from_sb3(stable_baselines3.A2C("MlpPolicy", "CartPole-v1"))
