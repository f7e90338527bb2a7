"""Records Gymnasium's tabular environments for the tests: transition tables, start states, limits, masks and optimal values.

    venv/bin/python scripts/golden/gymnasium_tabular.py

The script writes tests/golden/tabular.json, one environment per line:

- `outcomes`: for each state and action a list of outcomes, each packed into one integer:
  ((next state x number of rewards + index of the reward) x number of probabilities + index of the probability) x 2 + terminated;
- `starts`: pairs of a start state and its probability;
- `limit`: the time limit in steps, or null; `threshold`: the reward threshold, or null; `masks`: one bit per action, or null;
- `values`: the optimal values with discount factor `gamma`, by policy iteration with exact evaluation (a linear system);
- `within`: undiscounted mean returns of episodes with the time limit `horizon`. `best` is the return of the optimal policy, by backward induction.
  `policy` is the return of the stationary policy that is greedy for `values` and takes the first of equally good actions;
- `forever`: the undiscounted mean return of this stationary policy without a time limit, or null if its episodes may never end.
"""

import json
from pathlib import Path

import gymnasium
import numpy as np

OUT = Path(__file__).resolve().parents[2] / "tests" / "golden" / "tabular.json"
GAMMA = 0.99
WORLDS = [
    ("FrozenLake-v1", {}),
    ("FrozenLake8x8-v1", {}),
    ("FrozenLake-v1", {"is_slippery": False}),
    ("FrozenLake-v1", {"success_rate": 0.7}),
    ("CliffWalking-v1", {}),
    ("CliffWalkingSlippery-v1", {}),
    ("Taxi-v4", {}),
    ("Taxi-v4", {"is_rainy": True}),
]


def arrays(P, states, actions):
    """Returns p[s, a, s'] of the transitions that do not terminate, and the mean reward r[s, a]."""
    p, r = np.zeros((states, actions, states)), np.zeros((states, actions))
    for s in range(states):
        for a in range(actions):
            for probability, following, reward, terminated in P[s][a]:
                r[s, a] += probability * reward
                if not terminated:
                    p[s, a, following] += probability
    return p, r


def first_best(q):
    """Returns the first action whose value equals the best value up to rounding, so that rounding does not decide ties."""
    return (q >= q.max(axis=1, keepdims=True) - 1e-9).argmax(axis=1)


def policy_iteration(p, r, gamma):
    states = len(r)
    policy, rows = np.zeros(states, dtype=int), np.arange(states)
    while True:
        values = np.linalg.solve(np.eye(states) - gamma * p[rows, policy], r[rows, policy])
        better = first_best(r + gamma * p @ values)
        if (better == policy).all():
            return values, policy
        policy = better


def describe(env_id, kwargs):
    env = gymnasium.make(env_id, **kwargs)
    world = env.unwrapped
    states, actions = int(env.observation_space.n), int(env.action_space.n)
    entries = [outcome for s in range(states) for a in range(actions) for outcome in world.P[s][a]]
    probabilities = sorted({float(entry[0]) for entry in entries})
    rewards = sorted({float(entry[2]) for entry in entries})

    def packed(entry):
        probability, following, reward, terminated = entry
        number = int(following) * len(rewards) + rewards.index(float(reward))
        return (number * len(probabilities) + probabilities.index(float(probability))) * 2 + int(terminated)

    p, r = arrays(world.P, states, actions)
    values, policy = policy_iteration(p, r, GAMMA)
    starts, rows = np.asarray(world.initial_state_distrib), np.arange(states)
    horizon = env.spec.max_episode_steps or 1000
    best, followed = np.zeros(states), np.zeros(states)
    for _ in range(horizon):
        best = (r + p @ best).max(axis=1)
        followed = r[rows, policy] + p[rows, policy] @ followed
    # states from which the policy may never terminate have no undiscounted value
    lasting = np.linalg.matrix_power(p[rows, policy], 2**20).sum(axis=1) > 1e-9
    system = np.eye(states) - np.where(lasting[:, None], 0.0, p[rows, policy])
    forever = np.linalg.solve(system, np.where(lasting, 0.0, r[rows, policy]))
    masks = None
    if hasattr(world, "action_mask"):
        masks = [sum(int(bit) << a for a, bit in enumerate(world.action_mask(s))) for s in range(states)]
    return {
        "id": env_id,
        "kwargs": kwargs,
        "limit": env.spec.max_episode_steps,
        "threshold": env.spec.reward_threshold,
        "states": states,
        "actions": actions,
        "probabilities": probabilities,
        "rewards": rewards,
        "outcomes": [[[packed(entry) for entry in world.P[s][a]] for a in range(actions)] for s in range(states)],
        "starts": [[s, float(starts[s])] for s in range(states) if starts[s] > 0],
        "masks": masks,
        "gamma": GAMMA,
        "values": [round(float(value), 10) for value in values],
        "within": {"horizon": horizon, "best": float(starts @ best), "policy": float(starts @ followed)},
        "forever": None if lasting[starts > 0].any() else float(starts @ forever),
    }


def main():
    worlds = [describe(env_id, kwargs) for env_id, kwargs in WORLDS]
    lines = [json.dumps(world, separators=(",", ":")) for world in worlds]
    OUT.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8", newline="\n")
    for world in worlds:
        start = sum(p * world["values"][s] for s, p in world["starts"])
        print(f"{world['id']} {world['kwargs']}: discounted {start:.5f}, within {world['within']}, forever {world['forever']}")
    print(f"{OUT.name}: {len(worlds)} environments, {OUT.stat().st_size} bytes")


if __name__ == "__main__":
    main()
