"""Records episodes of Gymnasium's CartPole-v1, which our CartPole must replay in the tests.

    python -m venv venv && venv/bin/pip install -r scripts/golden/requirements.txt
    venv/bin/python scripts/golden/gymnasium_cartpole.py

The script writes tests/golden/cartpole.jsonl, one episode per line; src/evaluate/trace/mod.rs documents the format. All seeds are fixed, so
on one machine the same package versions write the same bytes. On another machine NumPy may use another library for the sine, and last digits
may differ. Each line also has `end`, the last physical state in f64, which shows differences that rounding to f32 would hide.

Replay is open loop: the recorded actions are applied, and no policy corrects the pole. Therefore a long balanced episode is the hardest test: a
difference in the last bit at the beginning grows into a different episode.
"""

import json
from pathlib import Path

import gymnasium
import numpy as np

OUT = Path(__file__).resolve().parents[2] / "tests" / "golden" / "cartpole.jsonl"
LIMIT = 500


def constant(action):
    return lambda t, observation, rng: action


def alternating(t, observation, rng):
    return t % 2


def random(t, observation, rng):
    return int(rng.integers(2))


def balancing(x=0.05, x_dot=0.1, theta_dot=0.3, noise=0.0):
    """Pushes in the direction in which the pole leans and moves, or with probability `noise` in a random direction."""

    def act(t, observation, rng):
        if rng.random() < noise:
            return int(rng.integers(2))
        position, velocity, angle, spin = (float(number) for number in observation)
        return int(angle + theta_dot * spin + x * position + x_dot * velocity > 0.0)

    return act


def giving_up(after):
    """Balances for `after` steps, then pushes to the left until the pole falls."""
    balance = balancing()
    return lambda t, observation, rng: balance(t, observation, rng) if t < after else 0


def shortest(number):
    """Returns the float with the shortest repr that reads back as this f32."""
    short = float(str(number))
    assert np.float32(short) == number, f"expected {number!r}, got {short!r}"
    return short


def play(policy, act, seed):
    env = gymnasium.make("CartPole-v1")
    rng = np.random.default_rng(seed)
    observation, _ = env.reset(seed=seed)
    start = [float(number) for number in env.unwrapped.state]
    actions, observations, rewards = [], [observation], []
    terminated = truncated = False
    while not (terminated or truncated):
        action = act(len(actions), observation, rng)
        observation, reward, terminated, truncated, _ = env.step(action)
        actions.append(action)
        observations.append(observation)
        rewards.append(float(reward))
    return {
        "env": env.spec.id,
        "policy": policy,
        "seed": seed,
        "start": start,
        "end": [float(number) for number in env.unwrapped.state],
        "actions": actions,
        "observations": [[shortest(number) for number in row] for row in observations],
        "rewards": rewards,
        "terminated": bool(terminated),
        "truncated": bool(truncated),
    }


def ending_at_the_limit(seed):
    """Plays an episode whose pole falls at the step of the time limit, so that both flags are set."""
    for after in range(LIMIT - 20, LIMIT):
        episode = play(f"balancing, then left from step {after}", giving_up(after), seed)
        if episode["terminated"] and episode["truncated"]:
            return episode
    raise SystemExit(f"seed {seed}: expected an episode whose pole falls at step {LIMIT}, got none")


def main():
    plan = [("random", random, range(12))]
    plan += [("left", constant(0), range(100, 102)), ("right", constant(1), range(110, 112)), ("alternating", alternating, range(120, 124))]
    plan += [("balancing", balancing(), range(200, 203)), ("balancing, 10 % random", balancing(noise=0.1), range(210, 212))]
    plan += [("balancing, 50 % random", balancing(noise=0.5), range(253, 256)), ("balancing, 60 % random", balancing(noise=0.6), range(230, 234))]
    plan += [("pole only", balancing(x=0.0, x_dot=0.0), range(240, 242))]
    plan += [("off the track, 20 % random", balancing(x=0.0, x_dot=-0.02, noise=0.2), range(252, 256))]
    episodes = [play(policy, act, seed) for policy, act, seeds in plan for seed in seeds]
    episodes += [ending_at_the_limit(seed) for seed in (300, 305)]

    lines = [json.dumps(episode, separators=(",", ":")) for episode in episodes]
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    for episode in episodes:
        print(f"{episode['policy']:40} {len(episode['actions']):4} steps  {episode['terminated']!s:5}  {episode['truncated']!s:5}")
    print(f"{OUT.name}: {len(episodes)} episodes, {sum(len(e['actions']) for e in episodes)} steps, {OUT.stat().st_size} bytes")


if __name__ == "__main__":
    main()
