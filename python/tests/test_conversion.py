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
    if agent in ("PPO", "A2C"):
        import torch

        with torch.no_grad():
            rows = torch.from_numpy(observations)
            distribution = theirs.policy.get_distribution(rows).distribution
            values = theirs.policy.predict_values(rows)[:, 0].numpy()
        seen = ours.inspect(observations)
        assert np.allclose(seen["values"], values, rtol=1e-5, atol=1e-5)
        if env == "CartPole-v1":
            assert np.abs(np.log(seen["probabilities"]) - distribution.logits.numpy()).max() < 1e-5
        else:
            # the log-probability of a Gaussian follows from its mean, which was compared above, and its deviation
            assert np.allclose(ours.get_parameters()["policy"]["actor.log_std"], distribution.scale.log()[0], atol=1e-6)
    if agent == "DQN":
        assert np.allclose(ours.inspect(observations)["action_values"], theirs.q_net(theirs.policy.obs_to_tensor(observations)[0]).detach().numpy(), rtol=1e-5, atol=1e-5)
    fresh = getattr(stable_baselines3, agent)("MlpPolicy", env, seed=2, **size)
    back = getattr(sb3, agent).from_sb3(fresh, env=env, **size)
    near(back.predict(observations, deterministic=True)[0], fresh.predict(observations, deterministic=True)[0])
    assert back.learn(500).num_timesteps >= 500


def test_another_model_is_refused():
    with pytest.raises(ValueError, match="model: expected one of Stable-Baselines3's PPO, got A2C"):
        sb3.PPO.from_sb3(stable_baselines3.A2C("MlpPolicy", "CartPole-v1"))


def test_a_vector_for_their_agents():
    from gradus_rl.sb3.vec_env import GradusVecEnv

    envs = GradusVecEnv("CartPole-v1", 4, seed=1)
    first = envs.reset()
    envs.seed(1)
    assert (envs.reset() == first).all()
    lengths, ended = np.zeros(4, int), 0
    for step in range(300):
        observations, rewards, dones, infos = envs.step(np.full(4, step // 3 % 2))
        lengths += 1
        for i in np.flatnonzero(dones):
            assert infos[i]["episode"]["l"] == infos[i]["episode"]["r"] == lengths[i]
            assert not np.array_equal(infos[i]["terminal_observation"], observations[i]) and not infos[i]["TimeLimit.truncated"]
            lengths[i], ended = 0, ended + 1
    assert ended > 10
    model = stable_baselines3.PPO("MlpPolicy", envs, n_steps=64, device="cpu").learn(512)
    assert len(model.ep_info_buffer) > 3
    assert sb3.PPO("MlpPolicy", envs, n_steps=64).learn(256)._world == "cartpole"


def test_check_env_of_stable_baselines3():
    from stable_baselines3.common.env_checker import check_env

    import gradus_rl

    for world in ("cartpole", "acrobot", "pendulum", "frozen-lake", "taxi", "breakout", "umbrella-length-10"):
        check_env(gradus_rl.GradusEnv(world), warn=False)
