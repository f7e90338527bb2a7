"""Records episodes of Gymnasium's other classic-control tasks, which our environments must replay in the tests.

    python -m venv venv && venv/bin/pip install -r scripts/golden/requirements.txt
    venv/bin/python scripts/golden/gymnasium_classic.py

The script writes tests/golden/mountain_car.jsonl, mountain_car_continuous.jsonl, acrobot.jsonl and pendulum.jsonl, one episode per line;
src/evaluate/trace/mod.rs documents the format. All seeds are fixed, so on one machine the same package versions write the same bytes. On
another machine NumPy may use another library for the sine, and last digits may differ.

Each line also has `states`, the physical state in f64 after every step, for a comparison step by step.

Acrobot and a balanced pendulum are as hard to replay in open loop as CartPole (see gymnasium_cartpole.py). In a trial with other episodes, 14 of 340
episodes of Acrobot and 1 of 400 of Pendulum diverged late. No episode of the two mountain cars diverged.
"""

import json
import math
from pathlib import Path

import gymnasium
import numpy as np
from gymnasium_cartpole import shortest

OUT = Path(__file__).resolve().parents[2] / "tests" / "golden"


def constant(action):
    return lambda t, observation, rng: action


def random_choice(t, observation, rng):
    return int(rng.integers(3))


def random_force(size):
    return lambda t, observation, rng: rng.uniform(-size, size)


def noisy(act, random, share):
    """Acts like `act`, or with probability `share` like `random`."""
    return lambda t, observation, rng: random(t, observation, rng) if rng.random() < share else act(t, observation, rng)


def after(steps, first, then):
    return lambda t, observation, rng: (first if t < steps else then)(t, observation, rng)


# Mountain car


def swinging(t, observation, rng):
    """Always pushes in the direction of motion (bang-bang)."""
    return 2 if observation[1] >= 0 else 0


def swinging_left(t, observation, rng):
    """Gains speed in the valley and then drives into the wall on the left."""
    return 0 if observation[1] < 0 or observation[0] > -0.2 else 2


def pushing(force):
    return lambda t, observation, rng: force if observation[1] >= 0 else -force


def pushing_left(t, observation, rng):
    return -1.0 if observation[1] < 0 or observation[0] > -0.2 else 1.0


# Acrobot


def pumping(t, observation, rng):
    """Applies torque in the direction of rotation, so that the motor only adds energy."""
    return 2 if observation[5] >= 0 else 0


def braking(t, observation, rng):
    return 0 if observation[5] >= 0 else 2


# Pendulum


def swinging_up(t, observation, rng):
    """Adds energy until it is enough to reach the top, and balances the pendulum near the top."""
    cos, sin, speed = (float(number) for number in observation)
    if cos > 0.9:
        return np.clip(-20.0 * math.atan2(sin, cos) - 5.0 * speed, -2.0, 2.0)
    energy = speed**2 / 6 + 5.0 * cos
    return math.copysign(2.0, speed) if energy < 5.0 else -math.copysign(2.0, speed)


def play(env_id, policy, act, seed):
    env = gymnasium.make(env_id)
    rng = np.random.default_rng(seed)
    observation, _ = env.reset(seed=seed)
    state = lambda: [float(number) for number in env.unwrapped.state]  # noqa: E731
    start, states, actions, observations, rewards = state(), [], [], [observation], []
    terminated = truncated = False
    while not (terminated or truncated):
        action = act(len(actions), observation, rng)
        if isinstance(env.action_space, gymnasium.spaces.Box):
            action = np.array([action], dtype=np.float32)
        observation, reward, terminated, truncated, _ = env.step(action)
        states.append(state())
        actions.append(action)
        observations.append(observation)
        rewards.append(np.float32(reward))
    listed = lambda action: action if isinstance(action, int) else [shortest(number) for number in action]  # noqa: E731
    return {
        "env": env_id,
        "policy": policy,
        "seed": seed,
        "start": start,
        "actions": [listed(action) for action in actions],
        "observations": [[shortest(number) for number in row] for row in observations],
        "rewards": [shortest(reward) for reward in rewards],
        "terminated": bool(terminated),
        "truncated": bool(truncated),
        "states": states,
    }


def at_the_limit(env_id, limit, policy, first, then):
    """Plays an episode that reaches the goal at the step of the time limit, so that both flags are set."""
    for seed in range(300, 310):
        for steps in range(limit - 140, limit - 60):
            episode = play(env_id, f"{policy} from step {steps}", after(steps, first, then), seed)
            if episode["terminated"] and episode["truncated"]:
                return episode
    raise SystemExit(f"{env_id}: expected an episode that reaches the goal at step {limit}, got none")


def mountain_car():
    plan = [("random", random_choice, range(3)), ("left", constant(0), [10]), ("none", constant(1), [11]), ("right", constant(2), [12])]
    plan += [("swinging", swinging, range(20, 25)), ("swinging, 20 % random", noisy(swinging, random_choice, 0.2), range(30, 34))]
    plan += [("into the wall", swinging_left, range(40, 42)), ("wall, then goal", after(100, swinging_left, swinging), range(50, 52))]
    episodes = [play("MountainCar-v0", policy, act, seed) for policy, act, seeds in plan for seed in seeds]
    return episodes + [at_the_limit("MountainCar-v0", 200, "swinging", constant(1), swinging)]


def mountain_car_continuous():
    plan = [("random", random_force(1.0), [0]), ("none", constant(0.0), [10]), ("right", constant(1.0), [11])]
    plan += [("swinging", pushing(1.0), range(20, 24)), ("swinging, half", pushing(0.5), range(24, 26)), ("swinging, 0.3", pushing(0.3), [26])]
    plan += [("swinging, 30 % random", noisy(pushing(0.8), random_force(1.0), 0.3), range(30, 34))]
    plan += [("wall, then goal", after(150, pushing_left, pushing(0.9)), range(40, 43))]
    env_id = "MountainCarContinuous-v0"
    episodes = [play(env_id, policy, act, seed) for policy, act, seeds in plan for seed in seeds]
    return episodes + [at_the_limit(env_id, 999, "swinging", constant(0.0), pushing(1.0))]


def acrobot():
    plan = [("pumping", pumping, range(20, 26)), ("pumping, 20 % random", noisy(pumping, random_choice, 0.2), range(30, 34))]
    plan += [("random", random_choice, range(3)), ("braking", braking, [10]), ("none", constant(1), [12])]
    episodes = [play("Acrobot-v1", policy, act, seed) for policy, act, seeds in plan for seed in seeds]
    return episodes + [at_the_limit("Acrobot-v1", 500, "pumping", constant(1), pumping)]


def pendulum():
    plan = [("random", random_force(2.0), range(5)), ("none", constant(0.0), range(10, 12)), ("left", constant(2.0), range(12, 14))]
    plan += [("right", constant(-1.7), range(14, 16)), ("swinging up", swinging_up, range(20, 28))]
    plan += [("swinging up, 20 % random", noisy(swinging_up, random_force(2.0), 0.2), range(30, 34))]
    return [play("Pendulum-v1", policy, act, seed) for policy, act, seeds in plan for seed in seeds]


def main():
    for record in (mountain_car, mountain_car_continuous, acrobot, pendulum):
        episodes = record()
        lines = [json.dumps(episode, separators=(",", ":")) for episode in episodes]
        path = OUT / f"{record.__name__}.jsonl"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
        for episode in episodes:
            ends = f"{episode['terminated']!s:5}  {episode['truncated']!s:5}"
            print(f"{episode['policy']:40} {len(episode['actions']):4} steps  {ends}  return {sum(episode['rewards']):.1f}")
        print(f"{path.name}: {len(episodes)} episodes, {sum(len(e['actions']) for e in episodes)} steps, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
