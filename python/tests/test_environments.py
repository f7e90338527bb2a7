"""The environments are Gymnasium's, as Gymnasium's own checks see them."""

import copy
import os
import pickle

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.utils.env_match import check_environments_match
from gymnasium.vector import AutoresetMode

import gradus_rl

CLASSIC = ["CartPole-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Pendulum-v1", "Acrobot-v1", "Taxi-v4", "CliffWalking-v1"]


@pytest.mark.parametrize("name", [name for name in gradus_rl.worlds() if "text" not in gradus_rl.World(name).spaces()[0]])
def test_check_env(name):
    env = gradus_rl.GradusEnv(name)
    check_env(env, skip_render_check=True)


@pytest.mark.parametrize("id", CLASSIC)
@pytest.mark.parametrize("seed", range(3))
def test_episodes_are_gymnasiums(id, seed):
    theirs, ours = gymnasium.make(id), gymnasium.make(f"gradus/{id}")
    # Gymnasium's cliff has no limit; ours ends after 1000 steps. The last bits of Pendulum's rewards follow the platform's sine in Gymnasium, and our own here
    steps = 900 if id == "CliffWalking-v1" else 3000
    check_environments_match(theirs, ours, steps, seed=seed, info_comparison="skip", skip_rew=id == "Pendulum-v1")


def test_rewards_of_pendulum_are_gymnasiums():
    theirs, ours = gymnasium.make("Pendulum-v1"), gymnasium.make("gradus/Pendulum-v1")
    theirs.reset(seed=1), ours.reset(seed=1)
    for action in np.random.default_rng(1).uniform(-2, 2, (200, 1)).astype(np.float32):
        assert ours.step(action)[1] == pytest.approx(theirs.step(action)[1], rel=1e-6)


def test_limits_and_thresholds_are_registered():
    for id in ("CartPole-v1", "MountainCar-v0"):
        theirs, ours = gymnasium.spec(id), gymnasium.spec(f"gradus/{id}")
        assert (ours.max_episode_steps, ours.reward_threshold) == (theirs.max_episode_steps, theirs.reward_threshold)
    shorter = gymnasium.make("gradus/MountainCar-v0", max_episode_steps=5)
    shorter.reset(seed=1)
    assert [shorter.step(0)[3] for _ in range(5)] == [False] * 4 + [True]
    with pytest.raises(ValueError, match="max_episode_steps: expected 200, the limit of mountain-car, because a vector has no other, got 5"):
        gymnasium.make_vec("gradus/MountainCar-v0", num_envs=2, vectorization_mode="vector_entry_point", max_episode_steps=5)


@pytest.mark.parametrize("id, action", [("Pendulum-v1", 5.0), ("MountainCarContinuous-v0", 1.5)])
def test_forces_outside_of_their_bounds(id, action):
    theirs, ours = gymnasium.make(id), gymnasium.make(f"gradus/{id}")
    theirs.reset(seed=1), ours.reset(seed=1)
    for _ in range(20):
        expected, got = theirs.step(np.array([action], np.float32)), ours.step(np.array([action], np.float32))
        assert (expected[0] == got[0]).all() and got[1] == pytest.approx(expected[1], rel=1e-6)
    vector = gymnasium.make_vec(f"gradus/{id}", num_envs=2, vectorization_mode="vector_entry_point")
    vector.reset(seed=1)
    clipped = gymnasium.make_vec(f"gradus/{id}", num_envs=2, vectorization_mode="vector_entry_point")
    clipped.reset(seed=1)
    assert (vector.step(np.full((2, 1), action))[0] == clipped.step(np.tile(clipped.single_action_space.high, (2, 1)))[0]).all()
    for env, wrong in ((ours, np.array([np.nan], np.float32)), (vector, np.full((2, 1), np.nan))):
        with pytest.raises(ValueError, match="action"):
            env.step(wrong)
    with pytest.raises(ValueError, match="action: expected a whole number, got 1.7"):
        env = gymnasium.make("gradus/CartPole-v1").unwrapped
        env.reset()
        env.step(1.7)


def test_a_mask_begins_episodes_that_are_not_over():
    envs = gymnasium.make_vec("gradus/CartPole-v1", num_envs=3, vectorization_mode="vector_entry_point", autoreset_mode=AutoresetMode.DISABLED)
    envs.reset(seed=1)
    for _ in range(3):
        before = envs.step(np.array([0, 1, 0]))[0]
    after, _ = envs.reset(options={"reset_mask": np.array([True, False, False])})
    assert (after[0] != before[0]).all() and (abs(after[0]) <= 0.05).all() and (after[1:] == before[1:]).all()
    with pytest.raises(ValueError, match="seed: expected None with a reset_mask"):
        envs.reset(seed=3, options={"reset_mask": np.array([True, False, False])})


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_vectors(mode):
    envs = gymnasium.make_vec("gradus/CartPole-v1", num_envs=5, vectorization_mode="vector_entry_point", autoreset_mode=mode)
    assert envs.metadata["autoreset_mode"] == mode
    first, _ = envs.reset(seed=7)
    again, _ = envs.reset(seed=7)
    other, _ = envs.reset(seed=8)
    assert (first == again).all() and (first != other).any()
    assert first.dtype == np.float32 and first.shape == (5, 4)
    ended = np.zeros(5, bool)
    for _ in range(100):
        if mode == AutoresetMode.DISABLED and ended.any():
            envs.reset(options={"reset_mask": ended})
        before = ended
        observations, rewards, terminated, truncated, infos = envs.step(np.ones(5, np.int64))
        ended = terminated | truncated
        if mode == AutoresetMode.NEXT_STEP:
            assert (rewards[before] == 0).all() and not ended[before].any()
        if mode == AutoresetMode.SAME_STEP and ended.any():
            assert (infos["_final_obs"] == ended).all()
            for final in infos["final_obs"][ended]:
                assert abs(final[2]) > 0.2094  # the pole has fallen
            assert (np.abs(observations[ended]) <= 0.05).all()


def test_wrong_input_is_one_sentence():
    env = gradus_rl.GradusEnv("cartpole")
    with pytest.raises(ValueError, match="step: expected `reset` before it"):
        env.step(0)
    env.reset(seed=1)
    with pytest.raises(ValueError, match=r"action: expected an element of Discrete\(2\), that is 0 to 1, got 2"):
        env.step(2)
    with pytest.raises(ValueError, match="no environment|cartpol|expected"):
        gradus_rl.GradusEnv("cartpol")
    with pytest.raises(ValueError, match="render_mode"):
        gradus_rl.GradusEnv("cartpole", render_mode="human")


@pytest.mark.parametrize(
    "id, options",
    [
        ("CartPole-v1", {"low": -0.01, "high": 0.2}),
        ("MountainCar-v0", {"low": -0.5}),
        ("MountainCarContinuous-v0", {"high": -0.5}),
        ("Pendulum-v1", {"x_init": 0.1}),
        ("Acrobot-v1", {"high": 0.3}),
    ],
)
def test_options_are_gymnasiums(id, options):
    theirs, ours = gymnasium.make(id), gymnasium.make(f"gradus/{id}")
    for given in (options, None):
        np.testing.assert_array_equal(theirs.reset(seed=3, options=given)[0], ours.reset(seed=3, options=given)[0])
    np.testing.assert_array_equal(theirs.reset(seed=3, options={"other": 1})[0], ours.reset(seed=3, options={"other": 1})[0])
    for wrong in ("x", np.nan):
        with pytest.raises(ValueError, match="finite number"):
            ours.reset(options={next(iter(options)): wrong})


def test_options_have_an_order():
    with pytest.raises(ValueError, match="options: expected low at most high, got low=1, high=0.05"):
        gradus_rl.GradusEnv("cartpole").reset(options={"low": 1})
    with pytest.raises(ValueError, match="options: expected numbers from 0 up, got x_init=-1, y_init=1.0"):
        gradus_rl.GradusEnv("pendulum").reset(options={"x_init": -1})


@pytest.mark.parametrize("world", ["cartpole", "frozen-lake", "breakout", "copy"])
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_copies_go_on(world, copied):
    env = gradus_rl.GradusEnv(world)
    with pytest.raises(ValueError, match="expected `reset` before it"):
        copied(env).step(env.action_space.sample())
    env.reset(seed=5)
    env.action_space.seed(5)
    env.step(env.action_space.sample())
    other = copied(env)
    for _ in range(40):
        action = env.action_space.sample()
        assert other.action_space.sample() == action
        (row, *rest), (row_of_other, *rest_of_other) = env.step(action), other.step(action)
        np.testing.assert_array_equal(row, row_of_other)
        assert str(rest) == str(rest_of_other)
        if rest[1] or rest[2]:
            np.testing.assert_array_equal(env.reset()[0], other.reset()[0])


def test_worlds_have_the_modes_that_they_can_draw():
    assert gradus_rl.GradusEnv("cartpole").metadata["render_modes"] == ["rgb_array"]
    assert gradus_rl.GradusEnv("copy").metadata["render_modes"] == ["ansi"]
    assert gradus_rl.GradusEnv("blackjack").metadata["render_modes"] == []
    with pytest.raises(ValueError, match="render_mode: expected rgb_array or None for cartpole, got ansi"):
        gradus_rl.GradusEnv("cartpole", render_mode="ansi")
    with pytest.raises(ValueError, match="render_mode: expected None for blackjack, got rgb_array"):
        gymnasium.make("gradus/Blackjack-v1", render_mode="rgb_array")


def test_pictures():
    env = gymnasium.make("gradus/CartPole-v1", render_mode="rgb_array")
    env.reset(seed=1)
    picture = env.render()
    assert picture.dtype == np.uint8 and picture.ndim == 3 and picture.shape[2] == 3 and len(np.unique(picture)) > 3


LONG = bool(os.environ.get("GRADUS_LONG"))


@pytest.mark.skipif(not LONG, reason="takes minutes: set GRADUS_LONG=1")
@pytest.mark.parametrize("id", [id for id in CLASSIC if id not in ("CliffWalking-v1", "Acrobot-v1")])
@pytest.mark.parametrize("seed", range(10))
def test_episodes_are_gymnasiums_for_long(id, seed):
    theirs, ours = gymnasium.make(id), gymnasium.make(f"gradus/{id}")
    check_environments_match(theirs, ours, 100_000, seed=seed, info_comparison="skip", skip_rew=id == "Pendulum-v1")


@pytest.mark.skipif(not LONG, reason="takes minutes: set GRADUS_LONG=1")
@pytest.mark.parametrize("seed", range(10))
def test_acrobot_is_gymnasiums_until_chaos_shows(seed):
    # neither the platform's sine, which Gymnasium uses, nor ours is always the nearest number, and Acrobot is chaotic: late in some episodes the last bits differ
    theirs, ours = gymnasium.make("Acrobot-v1"), gymnasium.make("gradus/Acrobot-v1")
    actions = np.random.default_rng(seed)
    starts, episodes, differ = {"seed": seed}, 0, 0
    while episodes < 200:
        # Gymnasium computes the first observation in f32
        np.testing.assert_allclose(ours.reset(**starts)[0], theirs.reset(**starts)[0], rtol=1e-6)
        starts, step, is_over, is_equal = {}, 0, False, True
        while not is_over:
            action = int(actions.integers(3))
            (observation, *rest, _), (own, *own_rest, _) = theirs.step(action), ours.step(action)
            step, is_over = step + 1, rest[1] or rest[2]
            is_equal &= np.array_equal(observation, own)
            assert own_rest == rest and (is_equal or step > 250), step
        episodes, differ = episodes + 1, differ + (not is_equal)
    assert differ < 30


@pytest.mark.skipif(not LONG, reason="takes minutes: set GRADUS_LONG=1")
@pytest.mark.parametrize("seed", range(10))
def test_cliff_walking_is_gymnasiums_for_long(seed):
    # with Gymnasium's own time limit around both: Gradus ends after 1000 steps
    theirs, ours = (gymnasium.wrappers.TimeLimit(gymnasium.make(id), 900) for id in ("CliffWalking-v1", "gradus/CliffWalking-v1"))
    check_environments_match(theirs, ours, 100_000, seed=seed, info_comparison="skip")


@pytest.mark.parametrize("id, arguments", [("FrozenLake-v1", {}), ("FrozenLake8x8-v1", {}), ("CliffWalking-v1", {}), ("CliffWalkingSlippery-v1", {}), ("Taxi-v4", {})])
def test_transition_tables_are_gymnasiums(id, arguments):
    # what happens by chance follows from the table, of which both draw
    if f"gradus/{id}" not in gymnasium.registry:
        pytest.skip(f"Gradus has no {id}")
    theirs, ours = gymnasium.make(id, **arguments).unwrapped.P, gymnasium.make(f"gradus/{id}").unwrapped.P
    assert len(theirs) == len(ours)
    for state, actions in theirs.items():
        for action, outcomes in actions.items():
            for one, other in zip(outcomes, ours[state][action], strict=True):
                assert one[0] == pytest.approx(other[0], rel=1e-12) and tuple(map(float, one[1:])) == tuple(map(float, other[1:])), (state, action)


WRAPPERS = {
    "RecordEpisodeStatistics": {},
    "NormalizeObservation": {},
    "NormalizeReward": {},
    "DictInfoToList": {},
    "ClipReward": {"min_reward": 0.0, "max_reward": 0.5},
    "ClipAction": {},
    "FlattenObservation": {},
    "DtypeObservation": {"dtype": np.float64},
    "TransformReward": {"func": lambda reward: 2 * reward},
    "ReshapeObservation": {"shape": (2, 2)},
    "RescaleAction": {"min_action": np.float32(-1), "max_action": np.float32(1)},
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", list(WRAPPERS))
@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_wrappers_of_vectors(name, mode):
    world = "Pendulum-v1" if name in ("ClipAction", "RescaleAction") else "CartPole-v1"
    envs = gymnasium.make_vec(f"gradus/{world}", num_envs=4, vectorization_mode="vector_entry_point", autoreset_mode=mode)
    try:
        wrapped = getattr(gymnasium.wrappers.vector, name)(envs, **WRAPPERS[name])
    except (AssertionError, ValueError) as error:
        # some wrappers know only one mode, and say so
        assert mode.value.lower().replace("_", "") in str(error).lower().replace("_", "") or "reset" in str(error).lower(), error
        pytest.skip(str(error))
    observations, infos = wrapped.reset(seed=1)
    returns, told, ended = np.zeros(4), [], np.zeros(4, bool)
    for step in range(150):
        if mode == AutoresetMode.DISABLED and ended.any():
            observations, infos = wrapped.reset(options={"reset_mask": ended})
        before = ended
        actions = wrapped.action_space.sample() if world == "Pendulum-v1" else np.full(4, step % 2)
        observations, rewards, terminated, truncated, infos = wrapped.step(actions)
        assert observations in wrapped.observation_space or name.startswith("Normalize")
        ended = terminated | truncated
        if name == "RecordEpisodeStatistics":
            returns = np.where(before & (mode == AutoresetMode.NEXT_STEP), 0.0, returns + rewards)
            if ended.any():
                assert (infos["episode"]["r"][ended] == returns[ended]).all()
            returns[ended] = 0.0
    wrapped.close()
