#!/usr/bin/env python3
"""Other toolkits and ours at the same work, in turn on the same cores, and one table of medians and ratios.

    python3 benches/peers/speed.py [--only training environments text sb3 ...] [--repetitions 5] [--quick]

Training is PPO on CartPole with learning; environments are CartPole under random actions on one core; text is GRPO, whose rows are in
text.py. README.md beside this file says what is compared. Peers are installed on the way; one that cannot be is named below the table,
with the reason.
"""

import text
from install import HERE
from measure import Row, Side, main

# what PyTorch may be fastest with
THREADS = [["OMP_NUM_THREADS=1"], ["OMP_NUM_THREADS=2"]]


def our_training(preset: str) -> Side:
    command = ["gradus", "bench", "train", "ppo", "cartpole", "--preset", preset]
    return Side(command, r"^steps/s: ([0-9.]+)$", [[], ["--threads", 1]], ["--rounds", 2])


def training(peer: str, of: str, note: str, theirs: list, pattern: str, variants: list, quick: list, preset: str = "cleanrl") -> Row:
    what = {"cleanrl": "PPO, CleanRL's settings", "sb3": "PPO, Stable-Baselines3's defaults"}[preset]
    return Row("training", what, "steps/s", peer, of, note, 2, theirs, pattern, variants, quick, our_training(preset))


def trainings() -> list[Row]:
    sb3, name, pattern, short = [HERE / "ppo_sb3.py", "--settings"], "stable-baselines3", r"^sb3: ([0-9.]+) steps/s$", ["--steps", 1]
    # as it is: nobody said how many threads
    defaults = [*sb3, "defaults"], pattern, [[]], short
    cleanrl = ["-m", "cleanrl.ppo", "--cuda", "False", "--total-timesteps"]
    jax, compiled, threads = HERE / "ppo_jax.py", r"^jax: ([0-9.]+) steps/s$", [["--threads", 1], ["--threads", 2]]
    return [
        training("cleanrl", "cleanrl", "its ppo.py", [*cleanrl, 40_960], r"^SPS: ([0-9]+)$", THREADS, ["--total-timesteps", 2048]),
        training("sb3", name, "", [*sb3, "cleanrl"], pattern, THREADS, short),
        training("sb3", name, "its own defaults", *defaults),
        training("sb3", name, "", *defaults, preset="sb3"),
        training("jax", "jax", "compiled, CartPole of our own", [jax], compiled, threads, ["--rounds", 2]),
        training("jax", "jax", "compiled, gymnax's CartPole", [jax, "--world", "gymnax"], compiled, threads, ["--rounds", 2]),
    ]


def environments() -> list[Row]:
    pattern = r"([0-9.]+) million steps/s$"
    ours = Side(["gradus", "bench", "cartpole"], pattern, [["--envs", n] for n in (4096, 256, 1024, 16_384)])
    # the package, its peer's name in random_cartpole.py, and numbers of environments among which it is fastest
    peers = [
        ("pufferlib", "pufferlib", "pufferlib", "its environment in C", (4096, 1024, 16_384, 65_536)),
        ("jax", "gymnax", "gymnax", "compiled", (8192, 1024, 65_536)),
        ("sb3", "gymnasium", "gymnasium", "its vector environment", (4096, 1024, 16_384, 65_536)),
        ("sb3", "gymnasium", "gymnasium-sync", "SyncVectorEnv", (256, 4, 64)),
        ("envpool", "envpool", "envpool", "one thread", (1024, 256, 4096)),
    ]
    rows = []
    for peer, of, name, note, sizes in peers:
        command, variants = [HERE / "random_cartpole.py", "--peer", name], [["--envs", n] for n in sizes]
        what, unit = "CartPole, random actions, one core", "million steps/s"
        rows.append(Row("environments", what, unit, peer, of, note, 1, command, pattern, variants, ["--rounds", 2], ours))
    return rows


if __name__ == "__main__":
    main(__doc__.split("\n\n")[0], trainings() + environments() + text.rows())
