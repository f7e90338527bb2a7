"""Threads, forks, interruptions and memory."""

import multiprocessing
import os
import pathlib
import signal
import threading
import time

import gymnasium
import numpy as np
import pytest

from gradus_rl.sb3 import DQN, PPO


def short(seed):
    model = PPO("MlpPolicy", "CartPole-v1", seed=seed, n_steps=256).learn(512)
    return model.predict(np.full((5, 4), 0.01, np.float32), deterministic=True)[0].tolist(), float(model.get_parameters()["policy"]["actor.0.weight"].sum())


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_children_train_as_their_parent(method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    before = short(1)  # what the parent leaves behind is in a forked child
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map_async(short, [1, 1, 2]).get(120)[:2] == [before, before]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_goes_on_with_a_model():
    model = PPO("MlpPolicy", "CartPole-v1", seed=1, n_steps=256).learn(512)
    child = multiprocessing.get_context("fork").Process(target=lambda: model.learn(512, reset_num_timesteps=False))
    child.start()
    child.join(120)
    assert child.exitcode == 0


def test_threads_train_side_by_side():
    results, expected = {}, {seed: short(seed) for seed in (1, 2, 3)}
    threads = [threading.Thread(target=lambda seed=seed: results.update({seed: short(seed)})) for seed in expected]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert results == expected


def test_threads_share_a_model():
    model = PPO("MlpPolicy", "CartPole-v1", seed=1, n_steps=256).learn(512)
    rows, chosen = np.random.default_rng(1).normal(size=(100, 4)).astype(np.float32), []
    expected = model.predict(rows, deterministic=True)[0].tolist()
    threads = [threading.Thread(target=lambda: chosen.append(model.predict(rows, deterministic=True)[0].tolist())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert chosen == [expected] * 8


@pytest.mark.skipif(os.name == "nt", reason="no signals here")
def test_ctrl_c_ends_a_training():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background processes ignore it
    model = PPO("MlpPolicy", "CartPole-v1", seed=1)
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    begin = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        model.learn(100_000_000)
    assert time.perf_counter() - begin < 30
    model.predict(np.zeros(4, np.float32))
    model.learn(100)
    assert 100 <= model.num_timesteps <= 2048  # one rollout, not those that were stopped


@pytest.mark.skipif(not pathlib.Path("/proc/self/statm").exists(), reason="no /proc here")
@pytest.mark.parametrize("env", ["CartPole-v1", "python"])
def test_memory_stays_flat(env):
    resident = lambda: int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096
    world = "CartPole-v1" if env != "python" else gymnasium.wrappers.TimeLimit(gymnasium.make("CartPole-v1").unwrapped, 500)
    sizes = []
    for agent, arguments in ((PPO, {"n_steps": 64}), (DQN, {"buffer_size": 2000, "learning_starts": 50})):
        model = agent("MlpPolicy", world, seed=1, **arguments)
        for _ in range(100):
            model.learn(128, reset_num_timesteps=False)
            sizes.append(resident())
        for _ in range(100):
            agent("MlpPolicy", world, seed=1, **arguments).learn(64)
            sizes.append(resident())
    # after the first rounds nothing is added by the others
    for part in (sizes[20:100], sizes[120:200], sizes[220:300], sizes[320:]):
        assert part[-1] - part[0] < 4 << 20, [size >> 20 for size in sizes]
